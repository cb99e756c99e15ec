"""Decide whether a second pass may replace the first."""

from collections.abc import Sequence

from heedful.types import LEAST_SURE, Candidate, Check, Policy, Verdict


def judge(
    baseline: float | None, candidate: float | None, checks: Sequence[Check], source: str, policy: Policy
) -> Verdict:
    """Accept iff every guard passed and candidate ≥ baseline + margin (eq. 7).

    Rollback is the default: each check may only refuse, and the last line is the single place
    where a candidate is accepted, so a new check can never widen acceptance.
    """
    for check in checks:
        if check.reason:
            return Verdict(choice="rollback", reason=check.reason)
    if needs_confidence(policy):
        if candidate is None or candidate <= LEAST_SURE:
            return Verdict(choice="rollback", reason="no confidence")
        if policy.margins is not None:
            if baseline is None:
                return Verdict(choice="rollback", reason="no confidence")
            if not candidate >= baseline + policy.margins[source]:
                return Verdict(choice="rollback", reason="margin")
    return Verdict(choice="accept", reason="gate" if policy.margins is None else "margin met")


def needs_confidence(policy: Policy) -> bool:
    """Whether acceptance looks at the candidate's confidence."""
    return policy.margins is not None or policy.combine == "dual"


def settle(candidates: Sequence[Candidate], policy: Policy) -> int | None:
    """Which accepted candidate becomes the answer: the first (cascade) or the surest (dual)."""
    accepted = [i for i, c in enumerate(candidates) if c.verdict.choice == "accept"]
    if not accepted:
        return None
    if policy.combine == "cascade":
        return accepted[0]
    return max(accepted, key=lambda i: (_surety(candidates[i]), -i))


def _surety(candidate: Candidate) -> float:
    return LEAST_SURE if candidate.confidence is None else candidate.confidence
