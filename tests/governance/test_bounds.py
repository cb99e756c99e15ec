"""What the retirement rules really do, by simulation, and that they are what they say."""

from math import log, sqrt

import numpy as np
import pytest
from numpy.typing import NDArray

from heedful import UsageError
from heedful.governance.bounds import (
    RULES,
    TILTED,
    betting,
    betting_interval,
    first_condemned,
    log_wealth,
)

DELTA = 0.05
RUNS, TASKS = 2000, 1000


def drawn(
    help_share: float, hurt_share: float, runs: int = RUNS, tasks: int = TASKS, seed: int = 7
) -> NDArray[np.float64]:
    """Utilities of an entry: -1, 0 or 1 at every task."""
    shares = [hurt_share, 1 - help_share - hurt_share, help_share]
    return np.random.default_rng(seed).choice([-1.0, 0.0, 1.0], p=shares, size=(runs, tasks))


def condemned_after(values: NDArray[np.float64], rule: str) -> NDArray[np.int64]:
    """In each run, after how many tasks the rule first condemns when it looks after every one; 0: never."""
    return np.array([first_condemned(run, rule, DELTA) for run in values])


def test_looking_after_every_task_is_the_rule_itself() -> None:
    run = drawn(0.1, 0.3, 1, 400)[0]
    for name, rule in RULES.items():
        first = condemned_after(run[None, :], name)[0]
        assert first > 0
        assert rule(run[:first], DELTA) < 0 <= rule(run[: first - 1], DELTA)


def test_the_other_rules_break_their_promise_when_looked_at_after_every_task() -> None:
    values = drawn(0.4, 0.4)
    assert (condemned_after(values, "hoeffding-paper") > 0).mean() > 0.3
    assert (condemned_after(values, "hoeffding") > 0).mean() < (
        condemned_after(values, "hoeffding-paper") > 0
    ).mean()


@pytest.mark.parametrize(("help_share", "hurt_share"), [(0.0, 0.3), (0.1, 0.4), (0.2, 0.5)])
def test_betting_condemns_a_harmful_entry_sooner_than_hoeffding(help_share: float, hurt_share: float) -> None:
    values = drawn(help_share, hurt_share, runs=400)
    soon, late = condemned_after(values, "betting"), condemned_after(values, "hoeffding")
    assert (soon > 0).all()
    assert np.median(soon) < np.median(np.where(late > 0, late, TASKS + 1))


def test_radii_are_those_of_the_formulas() -> None:
    values = [-1.0, 0.0, 1.0, -1.0]
    assert RULES["hoeffding-paper"](values, 0.1) == pytest.approx(-0.25 + sqrt(log(20) / 8))
    assert RULES["hoeffding"](values * 10, 0.1) == pytest.approx(-0.25 + sqrt(2 * log(20) / 40))


def test_wealth_is_that_of_the_gambler_and_does_not_depend_on_the_order() -> None:
    values = np.array([-1.0, 0.5, 0.0, -1.0])
    gains = [np.prod([1 - stake * v for v in values]) for stake in TILTED.stakes]
    by_hand = np.dot(TILTED.weights, gains)
    assert log_wealth(values) == pytest.approx(log(by_hand))
    assert log_wealth(values[::-1]) == pytest.approx(log_wealth(values))


def test_the_interval_holds_the_mean_and_narrows() -> None:
    few, many = drawn(0.3, 0.1, 1, 20)[0], drawn(0.3, 0.1, 1, 800)[0]
    low, high = betting_interval(many, 0.95)
    assert low <= many.mean() <= high
    wide = betting_interval(few, 0.95)
    assert high - low < wide[1] - wide[0]


def test_nothing_seen_says_nothing() -> None:
    assert all(rule([], DELTA) == 1 for rule in RULES.values())
    assert betting_interval([], 0.95) == (-1, 1)


@pytest.mark.parametrize("values", [[2.0], [float("nan")]])
def test_a_utility_outside_its_range_is_refused(values: list[float]) -> None:
    with pytest.raises(UsageError, match="between -1 and 1"):
        betting(values, DELTA)


def test_five_hurts_without_a_help_condemn_at_five_percent_and_no_four_can() -> None:
    assert betting([-1.0] * 5, DELTA) < 0 <= betting([-1.0] * 4, DELTA)


def test_a_help_costs_the_full_stake_and_not_the_others() -> None:
    assert sum(TILTED.weights) == pytest.approx(1)
    wealth = np.exp(log_wealth(np.array([1.0])))
    assert wealth == pytest.approx(0.2 * 0.1 + 0.15 * 0.3 + 0.12 * 0.5 + 0.08 * 0.7)
    assert betting([1.0] + [-1.0] * 12, DELTA) < 0
