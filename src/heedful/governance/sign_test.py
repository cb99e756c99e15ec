"""The rule for a single look: of the answers that memory turned, too many were hurts.

Tasks without a difference say nothing about the direction, so only turned answers count. An entry
that is not harmful turns at least half of them to the better; the p-value is the exact binomial
probability of as many hurts, given the number of turned answers.
"""

from collections.abc import Sequence
from math import ceil, comb, log2


def sign_p_value(helps: int, hurts: int) -> float:
    """The one-sided exact p-value of this many hurts among the turned answers."""
    turned = helps + hurts
    tail = sum(comb(turned, count) for count in range(hurts, turned + 1))
    return tail / (1 << turned)


def least_turned(delta: float) -> int:
    """The fewest turned answers with which any rule with error δ can condemn: five at 5%."""
    return ceil(log2(1 / delta))


def benjamini_hochberg(p_values: Sequence[float], level: float) -> list[bool]:
    """Which hypotheses to reject, with a false discovery rate of at most `level` (1995)."""
    order = sorted(p_values)
    limits = [p for rank, p in enumerate(order, start=1) if p <= level * rank / len(order)]
    return [bool(limits) and p <= limits[-1] for p in p_values]
