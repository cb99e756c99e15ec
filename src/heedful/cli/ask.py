"""`heedful ask`: one question through the control loop."""

from typing import Annotated

import typer

from heedful.cli.options import BankName, Json, ModelName, Store, Threads, Url, Weights
from heedful.cli.output import print_json, result, say
from heedful.cli.policy import Arm, policy_of
from heedful.types import Outcome, Placement


def ask(
    question: Annotated[str, typer.Argument(help="The question.")],
    bank: BankName = "default",
    arm: Annotated[Arm, typer.Option(help="How memory is used.")] = "choose",
    signal: Annotated[str, typer.Option(help="How confidence is measured.")] = "mean",
    threshold: Annotated[float, typer.Option(help="Consult memory below this confidence.")] = -0.1,
    margin: Annotated[float, typer.Option(help="Accept a second answer that is surer by this much.")] = 0.0,
    placement: Annotated[Placement, typer.Option(help="Where memory stands in the prompt.")] = "auto",
    recall: Annotated[
        str, typer.Option(help="How entries are found: dense, bm25, bm25_rerank, or a plug-in's way.")
    ] = "dense",
    similarity: Annotated[float, typer.Option(help="Least cosine similarity of dense recall.")] = 0.6,
    limit: Annotated[int, typer.Option(min=1, help="Most entries in a prompt.")] = 3,
    instructions: Annotated[str, typer.Option(help="The system message.")] = "Answer in a few words.",
    max_tokens: Annotated[int, typer.Option(min=1, help="Longest answer.")] = 64,
    logprobs: Annotated[
        bool, typer.Option(help="Ask the endpoint for log-probs; agreement and ptrue need none.")
    ] = True,
    patience: Annotated[
        float, typer.Option(min=0.1, help="Seconds after the first answer; past them it stands.")
    ] = 60.0,
    url: Url = None,
    model: ModelName = None,
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
    from heedful.models.options import ModelOptions
    from heedful.ports import Bank
    from heedful.sources import MemorySource
    from heedful.types import Task

    policy = policy_of(arm, "memory", signal, threshold, margin)
    try:
        opened = open_store(store)
    except StoreError as error:  # memory can never take an answer away
        say(f"heedful: answering without memory: {error}")
        memory: Bank = MemoryBank(bank, ())
        journal = None
    else:
        if bank != "default":
            require_bank(opened, bank)
        memory, journal = open_bank(opened, bank, recall, similarity), SqliteJournal(opened.database)
    controller = Controller(
        model=open_model(
            ModelOptions(
                url=url or "", model=model or "", logprobs=logprobs, weights=weights, threads=threads
            )
        ),
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
    console.print(_story(outcome, recorded), style="dim", markup=False)


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


def _story(outcome: Outcome, recorded: bool) -> str:
    confidence = "unknown" if outcome.confidence is None else f"{outcome.confidence:.2f}"
    said = f"{outcome.route.choice} ({outcome.route.reason}, confidence {confidence})"
    if outcome.verdict is not None:
        said += f" → {outcome.verdict.choice} ({outcome.verdict.reason})"
    calls = "1 call" if outcome.calls == 1 else f"{outcome.calls} calls"
    record = f"heedful why {outcome.decision}" if recorded else "not recorded"
    return f"{said}, {calls}; {record}"
