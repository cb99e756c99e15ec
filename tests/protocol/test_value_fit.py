from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier

from heedful import Policy
from heedful.protocol.replay import Replayer
from heedful.protocol.table import make_column
from heedful.protocol.value_fit import ANSWER_RATE, boosted_classifier, exported, fit_value
from heedful.protocol.value_replay import row_views
from heedful.stages.trees import total
from heedful.stages.value_features import ANSWER_FEATURES, answer_features
from tests.protocol.worlds import world

BANK = Policy(sources=("bank",))


def rows(seed: int, n: int, telling: float = 0.3) -> Replayer:
    rng = np.random.default_rng(seed)
    return Replayer(world(rng, n, help_rate=0.4, hurt_rate=0.15, telling=telling))


def test_a_fitted_rule_gains_on_rows_it_did_not_see_and_hurts_few() -> None:
    policy = fit_value(rows(1, 300), BANK, cost=0.01, seed=0)
    unseen = rows(2, 1000)
    done = unseen.replay(policy)
    always = unseen.replay(Policy(first="bank", guards=()))
    base = unseen.base_right
    assert done.right.mean() > base.mean() + 0.08
    assert done.right.mean() > always.right.mean()
    assert (base & ~done.right).mean() < 0.5 * (base & ~always.right).mean()
    assert 1 < done.calls.mean() < 2, "it does not ask where there is nothing to gain"


def test_a_higher_price_asks_less_and_a_margin_changes_fewer_answers() -> None:
    policy, unseen = fit_value(rows(1, 300), BANK, cost=0.01, seed=0), rows(2, 400)
    assert policy.value is not None
    calls = [
        unseen.replay(replace(policy, value=replace(policy.value, cost=cost))).calls.mean()
        for cost in (0.0, 0.05, 1.0)
    ]
    assert calls[0] >= calls[1] >= calls[2] == 1
    changed = [
        int((unseen.replay(replace(policy, value=replace(policy.value, margin=margin))).chosen >= 0).sum())
        for margin in (0.0, 0.3, 1.0)
    ]
    assert changed[0] > changed[1] > changed[2] == 0


def test_a_fit_is_reproducible() -> None:
    assert fit_value(rows(1, 120), BANK, cost=0.01, seed=3) == fit_value(
        rows(1, 120), BANK, cost=0.01, seed=3
    )


def test_rows_that_are_all_right_give_their_share_and_no_tree() -> None:
    trees = boosted_classifier(np.zeros((8, len(ANSWER_FEATURES))), np.ones(8), seed=0)
    assert trees.roots == ()
    assert trees.base == pytest.approx(np.log(9))


def test_exported_trees_say_what_the_library_says() -> None:
    replayer = rows(4, 200)
    views = row_views(replayer.table, replayer.first("none"), ("bank",))
    pairs = [([row.views[place] for place in asked], row) for row in views for asked in row.states()]
    x = np.array([answer_features(seen, 0) for seen, _ in pairs])
    y = np.array([row.right[0] for _, row in pairs])
    model = GradientBoostingClassifier(n_estimators=20, learning_rate=ANSWER_RATE, random_state=0).fit(x, y)
    trees = exported(model, ANSWER_FEATURES, float(np.log(y.mean() / (1 - y.mean()))), ANSWER_RATE)
    ours = [total(trees, row) for row in x.tolist()]
    assert ours == pytest.approx(model.decision_function(x).tolist(), abs=1e-9)


@pytest.mark.parametrize("n", [2, 4, 9, 20])
def test_a_handful_of_rows_is_no_reason_to_fail(n: int) -> None:
    policy = fit_value(rows(1, n), BANK, cost=0.01, seed=0)
    assert rows(2, 30).replay(policy).right.mean() >= 0


def test_a_source_that_never_answers_is_not_asked() -> None:
    table = rows(1, 60).table
    silent = make_column([replace(r, status="nothing") for r in table.column("bank").passes], [False] * 60)
    replayer = Replayer(replace(table, columns={**table.columns, "bank": silent}))
    done = replayer.replay(fit_value(replayer, BANK, cost=0.01, seed=0))
    assert done.calls.max() == 1
    assert not done.consulted.any()
