"""Decide whether a second pass may replace the first."""

from collections.abc import Sequence

from heedful.stages.answer import same_answer
from heedful.types import LEAST_SURE, Attempt, Candidate, Policy, Verdict


def judge(baseline: float | None, confidence: float | None, attempt: Attempt, policy: Policy) -> Verdict:
    """Accept iff every guard passes and confidence ≥ baseline + margin (eq. 7).

    Rollback is the default: each check can only refuse, and only the last line accepts a candidate, so a new
    check can never widen acceptance.
    """
    if attempt.status != "decoded":
        return Verdict(
            choice="rollback", reason="fault" if attempt.status == "failed" else "nothing recalled"
        )
    for guard in policy.guards:
        if reason := attempt.guards[guard]:
            return Verdict(choice="rollback", reason=reason)
    if needs_confidence(policy):
        if confidence is None or confidence <= LEAST_SURE:
            return Verdict(choice="rollback", reason="no confidence")
        if policy.margins is not None:
            if baseline is None:
                return Verdict(choice="rollback", reason="no confidence")
            if not confidence >= baseline + policy.margins[attempt.source]:
                return Verdict(choice="rollback", reason="margin")
    return Verdict(choice="accept", reason="gate" if policy.margins is None else "margin met")


def needs_confidence(policy: Policy) -> bool:
    """Whether acceptance depends on the candidate's confidence."""
    return policy.margins is not None or policy.combine == "dual"


def settle(first: str, candidates: Sequence[Candidate], policy: Policy) -> int | None:
    """The index of the accepted candidate that replaces the first pass's answer; None: the first stands.

    It is the first one (cascade), the surest one (dual), or the first of two that give the same answer, which
    differs from that of the first pass (agree).
    """
    accepted = [i for i, c in enumerate(candidates) if c.verdict.choice == "accept"]
    if policy.combine == "agree":
        return next(iter(_agreeing(first, candidates, accepted)), None)
    if not accepted:
        return None
    if policy.combine == "cascade":
        return accepted[0]
    return max(accepted, key=lambda i: (_surety(candidates[i]), -i))


def asked_together(policy: Policy, asked: int, total: int) -> int:
    """How many of the next sources run in any case, and can therefore run concurrently."""
    if policy.combine == "dual":
        return total - asked
    return 2 if policy.combine == "agree" and asked == 0 and total > 2 else 1


def is_settled(first: str, candidates: Sequence[Candidate], left: int, policy: Policy) -> bool:
    """Whether the outcome is final, so that the `left` further candidates need not be decoded."""
    accepted = [i for i, c in enumerate(candidates) if c.verdict.choice == "accept"]
    if policy.combine == "dual":
        return False
    if policy.combine == "cascade":
        return bool(accepted)
    others = [i for i in accepted if not same_answer(_said(candidates[i]), first)]
    return bool(_agreeing(first, candidates, accepted)) or (left < 2 and not others)


def _agreeing(first: str, candidates: Sequence[Candidate], accepted: Sequence[int]) -> list[int]:
    """Accepted candidates whose answer another accepted one shares and the first pass does not."""
    others = [i for i in accepted if not same_answer(_said(candidates[i]), first)]
    return [
        i
        for i in others
        if any(i != j and same_answer(_said(candidates[i]), _said(candidates[j])) for j in others)
    ]


def _said(candidate: Candidate) -> str:
    return candidate.attempt.decode.answer


def _surety(candidate: Candidate) -> float:
    return LEAST_SURE if candidate.confidence is None else candidate.confidence
