"""`heedful ask`: answer one question with the control loop."""

import asyncio
from typing import Annotated

import typer

from heedful.cli.model_options import learn_fields, read_extra
from heedful.cli.options import (
    BankName,
    Extra,
    Headers,
    Json,
    ModelName,
    Store,
    Threads,
    Url,
    Weights,
    refuse_idle,
    refuse_idle_model_options,
)
from heedful.cli.output import print_json, result, say
from heedful.cli.policy import Arm, policy_of
from heedful.errors import UsageError
from heedful.types import DEFAULT_RECALL, DEFAULT_THRESHOLD, Outcome, Placement

LOCKED_SECONDS = 5.0
"""How long an answer may wait for a store that another process has locked."""


def ask(
    context: typer.Context,
    question: Annotated[str, typer.Argument(help="The question.")],
    bank: BankName = "default",
    arm: Annotated[Arm, typer.Option(help="How memory is used.")] = "choose",
    signal: Annotated[
        str | None,
        typer.Option(
            help="How confidence is measured [default: mean, or agreement without log-probs].",
            show_default=False,
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            help="Consult memory below this confidence [default: that of the signal].", show_default=False
        ),
    ] = None,
    margin: Annotated[float, typer.Option(help="Accept a second answer that is surer by this much.")] = 0.0,
    placement: Annotated[Placement, typer.Option(help="Where to put memory in the prompt.")] = "auto",
    recall: Annotated[
        str, typer.Option(help="Recall method: dense, bm25, bm25_rerank, or one from a plug-in.")
    ] = DEFAULT_RECALL,
    similarity: Annotated[
        float, typer.Option(help="Minimum cosine similarity of dense recall.")
    ] = DEFAULT_THRESHOLD,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of entries in a prompt.")] = 3,
    instructions: Annotated[str, typer.Option(help="The system message.")] = "Answer in a few words.",
    max_tokens: Annotated[int, typer.Option(min=1, help="Maximum length of an answer in tokens.")] = 64,
    logprobs: Annotated[
        bool, typer.Option(help="Request log-probs; agreement, ptrue and stated do not need them.")
    ] = True,
    patience: Annotated[
        float, typer.Option(min=0.1, help="Time limit in seconds after the first answer.")
    ] = 60.0,
    timeout: Annotated[
        float, typer.Option(min=0.1, help="Time limit in seconds for each call of an endpoint.")
    ] = 120.0,
    url: Url = None,
    model: ModelName = None,
    header: Headers = None,
    extra: Extra = "{}",
    weights: Weights = "smollm2-135m",
    threads: Threads = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Answer a question; memory is consulted only when the model is unsure."""
    from heedful.cli.resources import open_bank, open_model, open_store, require_bank
    from heedful.cli.waiting import with_notice
    from heedful.control import Controller
    from heedful.errors import StoreError
    from heedful.memory import MemoryBank
    from heedful.memory.journal import SqliteJournal
    from heedful.models.headers import read_headers
    from heedful.models.schemes import ModelOptions
    from heedful.ports import Bank
    from heedful.sources import MemorySource
    from heedful.stages.confidence import WITHOUT_LOGPROBS, signal_named
    from heedful.types import Task

    _refuse_useless(context, question, arm, recall, url)
    options = ModelOptions(
        url=url or "",
        model=model or "",
        logprobs=logprobs,
        timeout=timeout,
        weights=weights,
        threads=threads,
        headers=read_headers(header or ()),
        extra=read_extra(extra),
    )
    if url and signal is None and logprobs and arm in ("gate", "choose"):
        learn_fields(options)
    answering = open_model(options)
    measured = signal_named(signal or ("mean" if answering.traits.logprobs else WITHOUT_LOGPROBS))
    sure_from = measured.threshold if threshold is None else threshold
    policy = policy_of(arm, "memory", measured.name, sure_from, margin)
    memory: Bank = MemoryBank(bank, ())
    journal = None
    try:
        opened = open_store(store, wait=LOCKED_SECONDS)
        if bank != "default":
            require_bank(opened, bank)
        if arm not in ("never", "retry"):
            memory = open_bank(opened, bank, recall, similarity)
        journal = SqliteJournal(opened.database)
    except StoreError as error:  # a memory failure never costs the answer
        say(f"heedful: answering without memory: {error}")
    controller = Controller(
        model=answering,
        policy=policy,
        sources={"memory": MemorySource(bank=memory, placement=placement, limit=limit)},
        journal=journal,
        patience=patience,
    )
    task = Task(question=question, instructions=instructions, max_tokens=max_tokens)
    limit_words = f" for at most {timeout:g} s (--timeout)" if url else ""
    notice = f"heedful: still waiting for {url or 'the embedded model'}{limit_words} …"
    outcome = asyncio.run(with_notice(controller.answer(task), notice))
    for fault in outcome.faults:
        say(f"heedful: survived a fault in {fault.stage}: {fault.error}")
    if json:
        print_json(summary(outcome))
        return
    console = result()
    console.print(outcome.answer, markup=False)
    recorded = journal is not None and not any(fault.stage == "journal" for fault in outcome.faults)
    console.print(_decision_line(outcome, recorded), style="dim", markup=False)


def _refuse_useless(context: typer.Context, question: str, arm: Arm, recall: str, url: str | None) -> None:
    """Refuse an empty question, and options that the arm, the recall method or the model ignores."""
    from heedful.memory.bank import WITHOUT_THRESHOLD

    if not question.strip():
        raise UsageError("the question is empty; write it in quotes after heedful ask")
    refuse_idle_model_options(context, url)
    if arm in ("never", "always", "fixed-budget"):
        refuse_idle(context, ("signal", "threshold"), f"with --arm {arm}, which ignores confidence")
    if arm != "choose":
        refuse_idle(context, ("margin",), f"with --arm {arm}, which has no margin")
    if recall in WITHOUT_THRESHOLD:
        refuse_idle(context, ("similarity",), f"with --recall {recall}")


def summary(outcome: Outcome) -> dict[str, object]:
    """The stable fields of an answer."""
    verdict = outcome.verdict
    return {
        "answer": outcome.answer,
        "route": outcome.route.choice,
        "verdict": None if verdict is None else verdict.choice,
        "reason": outcome.route.reason if verdict is None else verdict.reason,
        "confidence": outcome.confidence,
        "calls": outcome.calls,
        "decision": outcome.decision,
    }


def _decision_line(outcome: Outcome, recorded: bool) -> str:
    confidence = "unknown" if outcome.confidence is None else f"{outcome.confidence:.2f}"
    line = f"{outcome.route.choice} ({outcome.route.reason}, confidence {confidence})"
    if outcome.verdict is not None:
        line += f" → {outcome.verdict.choice} ({outcome.verdict.reason})"
    calls = "1 call" if outcome.calls == 1 else f"{outcome.calls} calls"
    record = f"heedful why {outcome.decision}" if recorded else "not recorded"
    return f"{line}, {calls}; {record}"
