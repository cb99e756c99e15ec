"""`heedful ask`: answer one question with the control loop."""

from typing import Annotated

import typer

from heedful.cli.model_options import learn_fields, read_extra
from heedful.cli.options import BankName, Extra, Headers, Json, ModelName, Store, Threads, Url, Weights
from heedful.cli.output import print_json, result, say
from heedful.cli.policy import Arm, policy_of
from heedful.types import Outcome, Placement


def ask(
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
    ] = "dense",
    similarity: Annotated[float, typer.Option(help="Minimum cosine similarity of dense recall.")] = 0.6,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of entries in a prompt.")] = 3,
    instructions: Annotated[str, typer.Option(help="The system message.")] = "Answer in a few words.",
    max_tokens: Annotated[int, typer.Option(min=1, help="Maximum length of an answer in tokens.")] = 64,
    logprobs: Annotated[
        bool, typer.Option(help="Request log-probs; agreement, ptrue and stated do not need them.")
    ] = True,
    patience: Annotated[
        float, typer.Option(min=0.1, help="Time limit in seconds after the first answer.")
    ] = 60.0,
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

    options = ModelOptions(
        url=url or "",
        model=model or "",
        logprobs=logprobs,
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
    try:
        opened = open_store(store)
    except StoreError as error:  # a memory failure never costs the answer
        say(f"heedful: answering without memory: {error}")
        memory: Bank = MemoryBank(bank, ())
        journal = None
    else:
        if bank != "default":
            require_bank(opened, bank)
        journal = SqliteJournal(opened.database)
        memory = MemoryBank(bank, ())
        if arm not in ("never", "retry"):
            memory = open_bank(opened, bank, recall, similarity)
    controller = Controller(
        model=answering,
        policy=policy,
        sources={"memory": MemorySource(bank=memory, placement=placement, limit=limit)},
        journal=journal,
        patience=patience,
    )
    task = Task(question=question, instructions=instructions, max_tokens=max_tokens)
    outcome = controller.answer_sync(task)
    for fault in outcome.faults:
        say(f"heedful: survived a fault in {fault.stage}: {fault.error}")
    if json:
        print_json(summary(outcome))
        return
    console = result()
    console.print(outcome.answer, markup=False)
    recorded = journal is not None and not any(fault.stage == "journal" for fault in outcome.faults)
    console.print(_decision_line(outcome, recorded), style="dim", markup=False)


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
