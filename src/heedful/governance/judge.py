"""Apply a retirement rule to the utilities of entries and groups."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from heedful.errors import UsageError
from heedful.governance.bounds import RULES, Bound
from heedful.governance.sign_test import benjamini_hochberg, least_turned, sign_p_value

RULE_NAMES = ("sign", *RULES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What a rule says about the utilities of an entry or a group."""

    condemned: bool
    bound: float | None = None
    """Upper bound of the mean utility; None by the sign test."""
    p_value: float | None = None
    """Of the sign test; None by a bound."""
    reason: str

    @property
    def rank(self) -> float:
        """The most harmful first, among judgements by one rule."""
        return min(value for value in (self.bound, self.p_value) if value is not None)


def require_rule(name: str) -> None:
    if name not in RULE_NAMES:
        raise UsageError(f"there is no retirement rule {name!r}; choose from {', '.join(RULE_NAMES)}")


def judge(
    utilities: Sequence[float], rule: str, delta: float, bounds: Mapping[str, Bound] = RULES
) -> Judgement:
    """A judgement with error δ."""
    helps, hurts = (sum(1 for value in utilities if value * sign > 0) for sign in (1, -1))
    mean = sum(utilities) / max(1, len(utilities))
    counts = f"{rule}: mean utility {mean:+.2f} over {len(utilities)} tasks ({helps} helps, {hurts} hurts)"
    if rule == "sign":
        p_value = sign_p_value(helps, hurts)
        reason = f"{counts}, p = {p_value:.2g}"
        return Judgement(condemned=p_value <= delta, p_value=p_value, reason=reason)
    bound = bounds[rule](utilities, delta)
    reason = f"{counts}, below {bound:+.2f} with {100 * (1 - delta):.4g}% confidence"
    return Judgement(condemned=bound < 0, bound=bound, reason=reason)


def judge_entries(samples: Sequence[Sequence[float]], rule: str, delta: float) -> list[Judgement]:
    """A judgement of each entry: by the sign test with Benjamini–Hochberg, otherwise one by one.

    Only entries with enough turned answers to be condemned count in Benjamini–Hochberg. P-values are
    exact given these numbers, so a choice by them does not raise the false discovery rate.
    """
    if rule != "sign":
        return [judge(utilities, rule, delta) for utilities in samples]
    enough = [sum(value != 0 for value in sample) >= least_turned(delta) for sample in samples]
    able = [judge(sample, rule, delta) for sample, can in zip(samples, enough, strict=True) if can]
    rejected = iter(benjamini_hochberg([one.rank for one in able], delta))
    return [
        judge(sample, rule, delta if can and next(rejected) else 0.0)
        for sample, can in zip(samples, enough, strict=True)
    ]
