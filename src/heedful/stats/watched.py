"""Exact intervals of a share that hold however often you look."""

from collections.abc import Callable
from math import inf, lgamma, log

from heedful.errors import UsageError
from heedful.stats.intervals import Interval, check_level

PRIOR = 0.5
"""Both parameters of the beta mixture (Jeffreys)."""
STEPS = 60
"""Bisections: more than the precision of a float needs."""


def watched_share(hits: int, n: int, level: float = 0.95) -> Interval:
    """The share with an interval that covers the truth at every n at once, with probability `level`.

    For the true share p the likelihood ratio of a beta mixture against p is a martingale, so it ever exceeds
    1/(1 - level) with probability at most 1 - level (Ville 1939; Robbins 1970). The interval holds every p
    that the ratio does not rule out. It is exact, and wider than Clopper and Pearson's for a single look.
    """
    check_level(level)
    if n <= 0 or not 0 <= hits <= n:
        raise UsageError(f"{hits} of {n} is not a count of answers")
    mixture = _log_beta(hits + PRIOR, n - hits + PRIOR) - _log_beta(PRIOR, PRIOR)

    def is_ruled_out(share: float) -> bool:
        likelihood = _power(share, hits) + _power(1 - share, n - hits)
        return mixture - likelihood >= -log(1 - level)

    share = hits / n
    return Interval(
        low=_edge(0.0, share, is_ruled_out), high=_edge(1.0, share, is_ruled_out), value=share, n=n
    )


def _edge(end: float, share: float, is_ruled_out: Callable[[float], bool]) -> float:
    """The last value between the share and an end of the range that is not ruled out."""
    if not is_ruled_out(end):
        return end
    outside, inside = end, share
    for _ in range(STEPS):
        middle = (outside + inside) / 2
        outside, inside = (middle, inside) if is_ruled_out(middle) else (outside, middle)
    return outside


def _power(base: float, exponent: int) -> float:
    """The log of a power, where 0 to the power of 0 is 1."""
    if not exponent:
        return 0.0
    return exponent * log(base) if base > 0 else -inf


def _log_beta(a: float, b: float) -> float:
    return lgamma(a) + lgamma(b) - lgamma(a + b)
