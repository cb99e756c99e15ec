from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.errors import UsageError
from heedful.stats.bootstrap import paired_interval

outcomes = st.lists(st.sampled_from([-1, 0, 1]), min_size=1, max_size=80)


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


@given(outcomes)
def test_the_interval_holds_the_mean_and_counts_the_tasks(differences: list[int]) -> None:
    interval = paired_interval(differences, None, rng(), resamples=1000)
    assert interval.low <= interval.value <= interval.high
    assert interval.value == pytest.approx(np.mean(differences))
    assert interval.n == len(differences)


@given(outcomes)
def test_the_same_rng_gives_the_same_interval_and_the_order_of_rows_does_not_matter(
    differences: list[int],
) -> None:
    first = paired_interval(differences, None, rng(), resamples=200)
    assert first == paired_interval(differences, None, rng(), resamples=200)
    turned = paired_interval(differences[::-1], None, rng(), resamples=200)
    assert (first.low, first.high) == (turned.low, turned.high)


@given(outcomes)
def test_a_task_of_its_own_for_every_row_is_no_grouping(differences: list[int]) -> None:
    alone = [f"task {place:03}" for place in range(len(differences))]
    grouped = paired_interval(differences, alone, rng(), resamples=200)
    assert grouped == paired_interval(differences, None, rng(), resamples=200)


@given(outcomes, st.integers(2, 4))
def test_repeating_every_row_of_a_task_adds_no_certainty(differences: list[int], seeds: int) -> None:
    once = paired_interval(differences, None, rng(), resamples=200)
    ids = list(range(len(differences))) * seeds
    repeated = paired_interval(differences * seeds, ids, rng(), resamples=200)
    assert repeated.n == once.n
    assert (repeated.low, repeated.high) == pytest.approx((once.low, once.high))


@settings(max_examples=20)
@given(outcomes, st.floats(0.5, 0.9))
def test_a_higher_level_is_never_narrower(differences: list[int], level: float) -> None:
    narrow = paired_interval(differences, None, rng(), level=level, resamples=500)
    wide = paired_interval(differences, None, rng(), level=0.97, resamples=500)
    assert wide.low <= narrow.low
    assert narrow.high <= wide.high


def test_the_ends_are_those_of_drawing_rows_one_by_one_plus_half_a_step() -> None:
    differences = np.repeat([1, -1, 0], [36, 12, 252])
    drawn = rng().choice(differences, size=(20_000, 300)).mean(axis=1)
    interval = paired_interval(differences, None, rng(), resamples=20_000)
    expected = np.quantile(drawn, (0.025, 0.975)) + np.array([-1, 1]) / 600
    assert (interval.low, interval.high) == pytest.approx(tuple(expected), abs=1.01 / 300)


def test_tasks_with_unequal_numbers_of_rows_weigh_by_their_rows() -> None:
    interval = paired_interval([1, 1, 1, 0], ["a", "a", "a", "b"], rng())
    assert (interval.value, interval.n) == (0.75, 2)
    assert interval.low <= 0
    assert interval.high >= 1


def test_values_without_a_lattice_take_blocks_and_are_not_widened() -> None:
    scores = rng().normal(size=400)
    interval = paired_interval(scores, None, rng())
    half = 1.959964 * scores.std() / 20
    assert (interval.low, interval.high) == pytest.approx(
        (scores.mean() - half, scores.mean() + half), abs=0.01
    )


def test_equal_differences_give_an_interval_of_no_width() -> None:
    interval = paired_interval([0] * 50, None, rng())
    assert (interval.low, interval.high) == (0, 0)


@pytest.mark.parametrize(
    ("differences", "groups", "settings", "match"),
    [
        ([], None, {}, "cannot compute a statistic"),
        ([0, float("nan")], None, {}, "not finite"),
        ([0, 1], ["a"], {}, "task ids"),
        ([0, 1], None, {"level": 95}, "confidence level"),
        ([0, 1], None, {"resamples": 10}, "too few"),
    ],
)
def test_what_has_no_interval_is_refused(
    differences: list[float], groups: list[str] | None, settings: dict[str, Any], match: str
) -> None:
    with pytest.raises(UsageError, match=match):
        paired_interval(differences, groups, rng(), **settings)


@pytest.mark.parametrize("sign", [1, -1])
def test_an_interval_of_differences_stays_between_all_hurt_and_all_helped(sign: int) -> None:
    interval = paired_interval([sign] * 9 + [0], None, rng())
    assert -1 <= interval.low <= interval.high <= 1
    assert 1 in (interval.high, -interval.low)


def test_an_interval_of_other_values_has_no_such_bounds() -> None:
    assert paired_interval([3, 4, 5, 3], None, rng()).high > 4
