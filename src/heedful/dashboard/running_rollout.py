"""Rollouts and trials that the newest decisions take part in, in words."""

from collections.abc import Sequence

from heedful.dashboard.layout import moment
from heedful.dashboard.markup import Markup, element
from heedful.dashboard.view import DashboardView
from heedful.records import Decision, DecisionFilter
from heedful.types import Assignment, Trial

RECENT = 100
"""Newest decisions of a window that are read."""


async def running_rollout(view: DashboardView, policy: str, since: float) -> list[Markup]:
    """One sentence about the newest rollout of a policy, and one about its newest trial."""
    recent = await view.journal.select(DecisionFilter(since=since, policy=policy), RECENT)
    by_coin = await view.journal.select(DecisionFilter(since=since, policy=policy, coin=True), 1)
    return rollout_sentences([*recent, *by_coin])


def rollout_sentences(newest_first: Sequence[Decision]) -> list[Markup]:
    """A sentence per kind, with the time of the newest decision that takes part."""
    sentences = []
    assigned = next((one for one in newest_first if one.assignment is not None), None)
    if assigned is not None and assigned.assignment is not None:
        sentences.append(_sentence(_rollout_words(assigned.assignment), assigned))
    tried = next((one for one in newest_first if one.trial is not None), None)
    if tried is not None and tried.trial is not None:
        sentences.append(_sentence(_trial_words(tried.trial), tried))
    return sentences


def _sentence(words: str, newest: Decision) -> Markup:
    return element("p", words, " The newest such answer: ", moment(newest.at), ".")


def _rollout_words(assignment: Assignment) -> str:
    if assignment.mode == "shadow":
        return "Rollout, shadow: users get the first answers; the choices of the policy are only recorded."
    return (
        f"Rollout, canary: the policy chooses the answers of {100 * assignment.share:.3g}% of the users; the "
        "others get the first answer, without a confidence and without a second pass."
    )


def _trial_words(trial: Trial) -> str:
    return (
        f"Randomised trial: in {100 * trial.share:.3g}% of the answers a coin decides whether memory may "
        "change them."
    )
