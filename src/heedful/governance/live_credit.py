"""Leave-one-out on recorded decisions: which of the entries in a prompt the outcome depends on."""

from collections.abc import Awaitable, Callable, Collection, Sequence

from heedful.credit import AnswerWithout
from heedful.errors import HeedfulError
from heedful.types import Evidence

Examine = Callable[[str], Awaitable[Sequence[AnswerWithout]]]
"""Decodes a decision, given by its id, without each of its entries."""


def open_decisions(evidence: Sequence[Evidence], entries: Collection[str]) -> dict[str, str]:
    """The decisions in which one of the entries was present at a turned answer, with their tasks."""
    return {
        seen.decision: seen.task
        for seen in evidence
        if seen.decision and seen.utility and seen.entry in entries
    }


async def live_credit(
    decisions: dict[str, str], examine: Examine, tell: Callable[[str], None]
) -> dict[tuple[str, str], bool]:
    """By task and entry, whether leaving the entry out changes the answer.

    A decision that cannot be decoded again is reported and gives no credit.
    """
    credit: dict[tuple[str, str], bool] = {}
    for decision, task in decisions.items():
        try:
            answers = await examine(decision)
        except HeedfulError as error:
            tell(f"decision {decision} cannot be examined: {error}")
            continue
        for answer in answers:
            credit.setdefault((task, answer.entry), answer.flipped)
    return credit
