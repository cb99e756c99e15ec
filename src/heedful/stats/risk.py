"""Limits on harm that hold with a stated confidence (Learn then Test: Angelopoulos et al. 2021)."""

from collections.abc import Sequence
from itertools import takewhile
from typing import Literal

from heedful.errors import UsageError
from heedful.extras import importing
from heedful.stats.intervals import check_level

with importing("study"):
    from scipy.special import bdtr, betaincinv

Side = Literal["both", "lower", "upper"]


def binomial_p_value(hurts: int, n: int, limit: float) -> float:
    """P(Binomial(n, limit) ≤ hurts): the p-value of H0, that a task is hurt with probability > limit.

    It is small if so few hurts would be surprising for a policy that exceeds the limit.
    """
    _check_count(hurts, n)
    if not 0 < limit < 1:
        raise UsageError(f"a harm limit must be between 0 and 1, not {limit}")
    return float(bdtr(hurts, n, limit))


def no_loss_p_value(helps: int, hurts: int) -> float:
    """P(Binomial(helps + hurts, ½) ≤ hurts): the p-value of H0, that a policy hurts as often as it helps.

    It is small if so few hurts among the changed grades would be surprising for a policy that does not
    gain accuracy (the one-sided sign test).
    """
    if helps < 0 or hurts < 0:
        raise UsageError(f"helps and hurts must be counts, not {helps} and {hurts}")
    return float(bdtr(hurts, helps + hurts, 0.5))


def certify_in_order(p_values: Sequence[float], error: float) -> int:
    """How many hypotheses, starting from the first, are rejected in fixed-sequence testing.

    Each is tested at the level `error`, and testing stops at the first that is not rejected, so no
    correction for their number is needed: the probability that any true hypothesis is rejected is at most
    `error`. This holds only if the hypotheses and their order were fixed on rows other than those tested,
    and if these are independent draws from the population of tasks (so one row per task, not one per seed).
    """
    check_level(1 - error)
    if len(p_values) == 0:
        raise UsageError("there is nothing to certify: give the p-value of at least one policy")
    return sum(1 for _ in takewhile(lambda p: p <= error, p_values))


def clopper_pearson(hits: int, n: int, level: float = 0.95, side: Side = "both") -> tuple[float, float]:
    """Exact limits of a share (Clopper and Pearson 1934); a one-sided interval leaves the other end open.

    `upper` gives (0, bound): the share lies below the bound with confidence of at least `level`.
    """
    _check_count(hits, n)
    check_level(level)
    tail = (1 - level) / 2 if side == "both" else 1 - level
    low = 0.0 if hits == 0 or side == "upper" else float(betaincinv(hits, n - hits + 1, tail))
    high = 1.0 if hits == n or side == "lower" else float(betaincinv(hits + 1, n - hits, 1 - tail))
    return low, high


def _check_count(hits: int, n: int) -> None:
    if n <= 0 or not 0 <= hits <= n:
        raise UsageError(f"{hits} of {n} is not a count of rows")
