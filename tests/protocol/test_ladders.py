"""Ladders are fixed before the rows that test them."""

import numpy as np
import pytest
from msgspec.structs import replace

from heedful import Policy, UsageError
from heedful.protocol.ladders import MARGINS, margin_ladder, own_ladder, prior_ladder, threshold_ladder
from heedful.protocol.replay import Replayer
from heedful.protocol.study import FitSettings
from heedful.protocol.table import Table
from heedful.protocol.value_fit import fit_value
from tests.protocol.worlds import world

SETTINGS = FitSettings(families=("value",), harm_limit=0.05)


def rows(seed: int, n: int = 150) -> Table:
    return world(np.random.default_rng(seed), n, help_rate=0.4, hurt_rate=0.1, telling=0.3)


@pytest.fixture(scope="module")
def prior() -> Policy:
    return fit_value(Replayer(rows(1)), Policy(sources=("bank",)), cost=0.01, seed=0)


def margins(policies: tuple[Policy, ...]) -> list[float]:
    return [policy.value.margin for policy in policies if policy.value is not None]


def test_a_smaller_margin_changes_more_answers(prior: Policy) -> None:
    unseen = Replayer(rows(2, 400))
    changed = [int((unseen.replay(step).chosen >= 0).sum()) for step in margin_ladder(prior)]
    assert margins(margin_ladder(prior)) == list(MARGINS)
    assert changed == sorted(changed)
    assert changed[-1] > changed[0]


def test_a_higher_threshold_consults_more_often() -> None:
    unseen = Replayer(rows(2))
    ladder = threshold_ladder(unseen, Policy(sources=("bank",), margins={"bank": 0.0}))
    consulted = [int(unseen.replay(step).consulted.sum()) for step in ladder]
    assert consulted == sorted(consulted)
    assert consulted[-1] == 150


def test_the_trees_of_an_own_ladder_do_not_depend_on_the_rows_that_test_it() -> None:
    one, other = (own_ladder(rows(1), rows(seed), ["bank"], SETTINGS) for seed in (2, 3))
    assert one.steps == other.steps
    assert one.chosen_on == 150


def test_a_prior_is_tested_on_every_row_and_chosen_on_none(prior: Policy) -> None:
    ladder = prior_ladder(prior, rows(2), SETTINGS)
    assert (ladder.chosen_on, len(ladder.testing)) == (0, 150)


def test_the_promise_of_no_loss_tests_the_boldest_margin_first(prior: Policy) -> None:
    ladder = prior_ladder(prior, rows(2), replace(SETTINGS, harm_limit=None, promise="no-loss"))
    assert margins(tuple(step.policy for step in ladder.steps)) == sorted(MARGINS)


def test_a_policy_without_an_estimator_has_no_ladder_of_margins() -> None:
    with pytest.raises(UsageError, match="needs a value policy"):
        margin_ladder(Policy(sources=("bank",)))
