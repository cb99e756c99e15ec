"""Choosing a policy on the fit side."""

import numpy as np
import pytest
from msgspec.structs import replace

from heedful import UsageError
from heedful.protocol.calibrators import fit_calibrators
from heedful.protocol.fit import fit, folds_of, tune
from heedful.protocol.fit_result import BASELINE
from heedful.protocol.harm import fit_within_limit
from heedful.protocol.replay import Replayer
from heedful.protocol.study import THRESHOLD_FAMILIES, FitSettings
from heedful.protocol.table import Table
from heedful.stages.calibrate import probability
from heedful.types import LEAST_SURE
from tests.protocol.worlds import SMALL, column, table, world


def test_a_bank_that_only_helps_is_used_and_one_that_only_hurts_is_not() -> None:
    rng = np.random.default_rng(1)
    good = fit(world(rng, 400, help_rate=0.5, hurt_rate=0.0, telling=0.4), ["bank"], SMALL)
    bad = fit(world(rng, 400, help_rate=0.0, hurt_rate=0.5, telling=0.0), ["bank"], SMALL)
    assert good.policy.sources == ("bank",)
    assert good.leaders[0].accuracy > 0.7
    assert bad.kind == BASELINE


def test_memory_first_is_chosen_where_it_is_cheaper_and_as_good() -> None:
    rng = np.random.default_rng(2)
    helpful = world(rng, 400, help_rate=0.9, hurt_rate=0.0, telling=0.0)
    chosen = fit(
        helpful,
        ["bank"],
        FitSettings(families=THRESHOLD_FAMILIES, signals=("mean",), calibrated=False, folds=3),
    )
    assert (chosen.kind.first, chosen.kind.family) == ("bank", "always")


def test_a_useless_source_shows_optimism_but_is_not_chosen_for_it() -> None:
    rng = np.random.default_rng(3)
    noise = world(rng, 200, help_rate=0.1, hurt_rate=0.1, telling=0.0)
    tuned, _ = tune(noise, ["bank"], SMALL)
    fitted = fit(noise, ["bank"], SMALL)
    luckiest = max(choice.objective for choice in tuned.values())
    assert fitted.kind == BASELINE
    assert luckiest > fitted.objective, "the luckiest of the grid looks better on its own rows"


def test_the_price_of_calls_moves_the_choice() -> None:
    rng = np.random.default_rng(4)
    rows = world(rng, 400, help_rate=0.2, hurt_rate=0.0, telling=0.1)
    cheap = fit(rows, ["bank"], SMALL)
    dear = fit(rows, ["bank"], replace(SMALL, cost=0.5))
    assert cheap.policy.sources
    assert dear.kind == BASELINE


def test_a_calibrator_earns_its_place_where_agreement_tells() -> None:
    rng = np.random.default_rng(5)
    n = 500
    base = rng.random(n) < 0.5
    bank = np.where(base, rng.random(n) < 0.75, rng.random(n) < 0.5)
    base_c = -0.6 + 0.15 * base + 0.3 * rng.normal(size=n)
    bank_c = -0.6 + 0.5 * bank + 0.2 * rng.normal(size=n)
    rows = table(none=column("none", base, base_c), bank=column("bank", bank, bank_c))
    fitted = fit(rows, ["bank"], replace(SMALL, families=("choose",), calibrated=True))
    signals = {held.kind.signal: held.objective for held in reversed(fitted.leaders)}
    assert signals["calibrated"] > signals["mean"]


def test_a_pass_without_an_answer_does_not_flatten_a_calibrator() -> None:
    rng = np.random.default_rng(12)
    right = rng.random(200) < 0.5
    sure = -0.6 + 0.4 * right + 0.1 * rng.normal(size=200)
    mute = np.where(np.arange(200) < 4, LEAST_SURE, sure)
    whole, some = (
        fit_calibrators(Replayer(table(none=column("none", right, c))), "none", []).first
        for c in (sure, mute)
    )
    assert some.scales == pytest.approx(whole.scales, rel=0.2)
    assert some.floors == (mute[4:].min(),) * 4
    features = dict.fromkeys(some.features, LEAST_SURE)
    assert probability(some, features) == probability(some, dict.fromkeys(some.features, some.floors[0]))


def test_the_seeds_of_a_task_stay_on_one_side_of_a_fold() -> None:
    rng = np.random.default_rng(6)
    rows = world(rng, 60, help_rate=0.2, hurt_rate=0.1, telling=0.2)
    twice = Table(tasks=rows.tasks[:30] * 2, seeds=(0,) * 30 + (1,) * 30, columns=rows.columns)
    for rest, fold in folds_of(twice, SMALL):
        assert not {twice.tasks[i] for i in rest} & {twice.tasks[i] for i in fold}


@pytest.mark.parametrize(
    ("n", "limit", "enough"), [(1, None, False), (2, None, True), (4, 0.1, False), (7, 0.1, True)]
)
def test_a_tiny_fit_side_is_fitted_or_refused_in_a_sentence(
    n: int, limit: float | None, enough: bool
) -> None:
    rng = np.random.default_rng(4)
    settings = replace(SMALL, harm_limit=limit, families=("gate", "agree"), folds=5)
    few = world(rng, n, help_rate=0.5, hurt_rate=0.1, telling=0.4)
    few = Table(tasks=few.tasks, seeds=few.seeds, columns={**few.columns, "other": few.column("bank")})
    run = fit if limit is None else fit_within_limit
    if enough:
        run(few, ["bank", "other"], settings)
    else:
        with pytest.raises(UsageError, match="questions"):
            run(few, ["bank", "other"], settings)
