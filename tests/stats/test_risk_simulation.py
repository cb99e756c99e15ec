"""Learn then Test in 2,000 synthetic studies: how often the harm limit is broken."""

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from heedful.stats.risk import binomial_p_value, certify_in_order

STUDIES, POLICIES, LIMIT, CONFIDENCE = 2000, 20, 0.05, 0.95
MOST_BROKEN = 0.05 + 3 * np.sqrt(0.05 * 0.95 / STUDIES)


def certified(hurts: NDArray[np.int64], n: int) -> int:
    return certify_in_order([binomial_p_value(count, n, LIMIT) for count in hurts.tolist()], 1 - CONFIDENCE)


def hurts_of(rng: np.random.Generator, n: int, harms: NDArray[np.float64], shared: bool) -> NDArray[np.int64]:
    """Hurts of every policy; `shared` rows are hurt by all policies whose harm exceeds one draw."""
    if shared:
        draws = np.sort(rng.random((STUDIES, n)), axis=1)
        return np.stack([np.searchsorted(row, harms) for row in draws])
    return rng.binomial(n, harms, size=(STUDIES, POLICIES))


def certified_harms(
    rng: np.random.Generator, n: int, harms: NDArray[np.float64], shared: bool
) -> Iterator[NDArray[np.float64]]:
    """For each study the harms of what was certified, ordered on one half and tested on the other."""
    learnt, tested = (hurts_of(rng, n, harms, shared) for _ in range(2))
    orders = np.argsort(learnt + rng.random(learnt.shape), axis=1)
    for order, hurts in zip(orders, tested, strict=True):
        yield harms[order[: certified(hurts[order], n)]]


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(
    "harms",
    [
        np.full(POLICIES, LIMIT + 1e-6),
        np.linspace(0.8 * LIMIT, 1.2 * LIMIT, POLICIES),
        np.linspace(0.2 * LIMIT, 2 * LIMIT, POLICIES),
    ],
    ids=["all just above", "around", "a path"],
)
def test_the_limit_is_broken_in_at_most_the_stated_share_of_studies(
    harms: NDArray[np.float64], shared: bool
) -> None:
    rng = np.random.default_rng(13)
    broken = sum((kept > LIMIT).any() for kept in certified_harms(rng, 700, harms, shared))
    assert broken / STUDIES <= MOST_BROKEN


def test_safe_policies_are_certified_in_most_studies() -> None:
    rng = np.random.default_rng(17)
    harms = np.linspace(0.2 * LIMIT, 2 * LIMIT, POLICIES)
    kept = [len(found) for found in certified_harms(rng, 700, harms, shared=True)]
    assert np.mean(np.array(kept) >= 3) > 0.9


def test_ordering_on_the_tested_rows_themselves_would_break_the_limit() -> None:
    """Why the order must come from other rows: the luckiest of many is put first."""
    rng, harms = np.random.default_rng(19), np.full(POLICIES, LIMIT + 1e-6)
    tested = np.sort(hurts_of(rng, 700, harms, shared=False), axis=1)
    broken = np.mean([certified(row, 700) > 0 for row in tested])
    assert broken > 0.3
