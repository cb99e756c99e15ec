"""`heedful feedback`: say whether an answer was right."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from heedful.cli.options import Json, Store
from heedful.cli.output import print_json, result, say
from heedful.errors import UsageError

if TYPE_CHECKING:
    from heedful.memory.feedback import FeedbackReceipt
    from heedful.records import Decision, Feedback


def feedback(
    decision: Annotated[str, typer.Argument(help="Id of a decision, an id prefix, or `last`.")],
    right: Annotated[bool, typer.Option("--right", help="The answer is right.")] = False,
    wrong: Annotated[bool, typer.Option("--wrong", help="The answer is wrong.")] = False,
    answer: Annotated[
        str | None, typer.Option(help="The right answer; it grades every pass of the decision.")
    ] = None,
    prefer: Annotated[
        Literal["first", "memory", "tie"] | None,
        typer.Option(help="Which answer is better: the first one, or the one with memory."),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(help="How --answer is compared: text, contains, number, choice, exact, json:PATH."),
    ] = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Give feedback on a recorded decision; sent twice it counts once."""
    from heedful.cli.resources import open_known_store
    from heedful.serve.given_feedback import GivenFeedback, feedback_on, receipt_fields

    given = [right, wrong, answer is not None, prefer is not None]
    if sum(given) != 1:
        raise UsageError("give one of --right, --wrong, --answer TEXT and --prefer first|memory|tie")
    if metric is not None and answer is None:
        raise UsageError("--metric needs --answer TEXT")
    opened = open_known_store(store)
    recorded = asyncio.run(opened.journal.find(decision))
    said = feedback_on(
        recorded,
        GivenFeedback(
            decision=recorded.id,
            right=right if right or wrong else None,
            answer=answer,
            prefer=prefer,
            given_metric=metric,
        ),
    )
    receipt = asyncio.run(opened.feedback.give(said))
    if json:
        print_json(receipt_fields(said, receipt))
        return
    _say_missed(recorded, said)
    _say_absent(receipt, asyncio.run(opened.banks()))
    every = asyncio.run(opened.feedback.of([recorded]))[recorded.id]
    stronger = _stronger(recorded, said, every)
    result().print(f"{_line(recorded, said, receipt)}{stronger}", markup=False, soft_wrap=True)


def _say_missed(decision: "Decision", said: "Feedback") -> None:
    """Warn if a pass that is graded wrong contains the right answer."""
    from heedful.benchmarks.metrics import contains_text

    wrong = [r for r, good in zip(decision.passes, said.grades, strict=False) if not good and r.answer]
    if said.kind == "answer" and any(contains_text(record.answer, said.value) for record in wrong):
        say(
            f"heedful: an answer graded wrong contains {said.value!r}; if it is right, send the feedback "
            "again with --metric contains"
        )


def _say_absent(receipt: "FeedbackReceipt", banks: Mapping[str, int]) -> None:
    """Name the banks of a locked study or bundle that are not in the store, which judges its own banks."""
    for bank in receipt.evidence:
        if bank not in banks:
            say(
                f"heedful: the evidence is stored, but bank {bank} is not in this store, so heedful govern "
                f"cannot use it: heedful bank import FILE --bank {bank} with the bank's file brings it in"
            )


def _stronger(decision: "Decision", said: "Feedback", every: Sequence["Feedback"]) -> str:
    """Which other feedback the evidence comes from; empty if it comes from this one."""
    from heedful.feedback import deciding_feedback

    decided = deciding_feedback(decision, every)
    if decided is None or decided.kind == said.kind:
        return ""
    return f" (from the {decided.kind} given before, which is stronger than this {said.kind})"


def _line(decision: "Decision", said: "Feedback", receipt: "FeedbackReceipt") -> str:
    graded = [
        f"{'first' if place == 0 else record.source} {'right' if right else 'wrong'}"
        for place, (record, right) in enumerate(zip(decision.passes, said.grades, strict=False))
        if record.status == "decoded"
    ]
    known = "" if receipt.new else ", known already"
    line = f"{decision.id}: {', '.join(graded) or said.value}{known}"
    if not receipt.evidence:
        return f"{line}; no evidence about an entry"
    counted = [
        f"{sum(e.utility > 0 for e in seen)} help, {sum(e.utility < 0 for e in seen)} hurt, "
        f"{sum(e.utility == 0 for e in seen)} no difference in bank {bank}"
        for bank, seen in receipt.evidence.items()
    ]
    return f"{line}; evidence: {'; '.join(counted)}"
