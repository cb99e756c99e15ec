"""Whether a policy may leave the shadow."""

from dataclasses import dataclass

from heedful.errors import UsageError
from heedful.rollout.shadow import LIMIT, ShadowReport, grades_needed


@dataclass(frozen=True, slots=True, kw_only=True)
class Promotion:
    """Whether the limit holds, why, and what is missing."""

    allowed: bool
    reason: str
    grades_needed: int | None
    """Further changed answers to grade, if they are hurt as often as those so far; None: none suffices."""


def may_promote(report: ShadowReport, limit: float = LIMIT) -> Promotion:
    """Allow a policy only if the upper bound of its harm is within the limit; valid at every look."""
    if not 0 < limit < 1:
        raise UsageError(f"the limit of harm must be between 0 and 1, not {limit:g}")
    bound, needed = report.harm_bound, grades_needed(report, limit)
    within = bound <= limit
    relation = "within" if within else "above"
    reason = f"at most {bound:.2%} of answers would be hurt (95%), {relation} the limit of {limit:.2%}"
    if not within:
        reason += f"; {_missing(report, needed)}"
    return Promotion(allowed=within, reason=reason, grades_needed=0 if within else needed)


def _missing(report: ShadowReport, needed: int | None) -> str:
    if needed is None:
        return "more grades will not settle it: collect more answers, or fit a more careful policy"
    available = min(needed, report.undecided)
    changes, them = ("change", "it is") if needed == 1 else ("changes", "they are")
    further = f"{needed} further graded {changes} would settle it if {them} hurt as often as those so far"
    waiting = "is recorded and waits" if available == 1 else "are recorded and wait"
    return f"{further}; {available} of them {waiting} for a grade"
