"""Every row is judged by a policy that saw neither the row nor its near-duplicates."""

from dataclasses import replace as with_fields

import numpy as np
import pytest
from msgspec.structs import replace

from heedful.protocol.clusters import Clusters, QuestionCluster
from heedful.protocol.crossfit import (
    PROCEDURE,
    UNLIMITED,
    crossfit,
    fitted_policies,
    join_sides,
    measure_rows,
)
from heedful.protocol.fit import fit
from heedful.protocol.fit_result import PRIOR, THRESHOLD
from heedful.protocol.harm import fit_within_limit
from heedful.protocol.replay import Replayer
from heedful.protocol.study import VALUE
from heedful.protocol.table import Ints, Table, cluster_folds, make_column
from tests.protocol.worlds import SMALL, world

FOLDS = 3


def nobody(done: int, total: int) -> None:
    pass


@pytest.fixture(scope="module")
def rows() -> Table:
    """60 questions, the first 20 of them asked twice."""
    drawn = world(np.random.default_rng(5), 80, help_rate=0.4, hurt_rate=0.1, telling=0.3)
    return with_fields(drawn, cluster_of={f"t{n + 60}": f"t{n}" for n in range(20)})


def folds_of(table: Table) -> list[Ints]:
    return [fold for _, fold in cluster_folds(table.clusters, FOLDS, np.random.default_rng([SMALL.seed, 3]))]


def test_a_fold_is_judged_by_the_policy_of_the_other_folds(rows: Table) -> None:
    found = crossfit(rows, ["bank"], SMALL, FOLDS, nobody)[PROCEDURE]
    assert len(found.policies) == FOLDS
    for fold, policy in zip(folds_of(rows), found.policies, strict=True):
        done = Replayer(rows.rows(fold)).replay(policy)
        assert found.right[fold].tolist() == done.right.tolist()
        assert found.calls[fold].tolist() == done.calls.tolist()


def test_a_policy_does_not_depend_on_the_rows_it_judges_nor_on_their_copies(rows: Table) -> None:
    before = crossfit(rows, ["bank"], SMALL, FOLDS, nobody)[PROCEDURE].policies
    for number, fold in enumerate(folds_of(rows)):
        inside = {rows.clusters[at] for at in fold}
        turned = [cluster in inside for cluster in rows.clusters]
        columns = {
            name: make_column(c.passes, [bool(r) != t for r, t in zip(c.right, turned, strict=True)])
            for name, c in rows.columns.items()
        }
        after = crossfit(with_fields(rows, columns=columns), ["bank"], SMALL, FOLDS, nobody)[
            PROCEDURE
        ].policies
        assert after[number] == before[number]
        assert after != before, "the other folds did see these rows"


def test_the_figures_count_every_row_once_and_every_cluster_once(rows: Table) -> None:
    found = crossfit(rows, ["bank"], SMALL, FOLDS, nobody)[PROCEDURE]
    arm = measure_rows(rows, found, np.random.default_rng(0))
    base = rows.column("none").right
    assert (arm.n, arm.delta.n) == (80, 60)
    assert arm.accuracy == found.right.mean()
    assert (arm.helps, arm.hurts) == ((found.right & ~base).sum(), (base & ~found.right).sum())
    assert arm.delta.value == pytest.approx((arm.helps - arm.hurts) / 80)
    assert arm.calls == found.calls.mean()


def test_with_a_harm_limit_the_choice_without_it_is_judged_too(rows: Table) -> None:
    found = crossfit(rows, ["bank"], replace(SMALL, harm_limit=0.001), FOLDS, nobody)
    assert list(found) == [PROCEDURE, UNLIMITED]
    assert found[PROCEDURE].right.tolist() == rows.column("none").right.tolist(), "nothing can be certified"
    unlimited = crossfit(rows, ["bank"], SMALL, FOLDS, nobody)[PROCEDURE]
    assert found[UNLIMITED].policies == unlimited.policies


def test_a_fold_is_fitted_as_the_study_is(rows: Table) -> None:
    assert fitted_policies(rows, ["bank"], SMALL)[PROCEDURE] == fit(rows, ["bank"], SMALL).policy
    limited = replace(SMALL, harm_limit=0.2)
    found = fitted_policies(rows, ["bank"], limited)
    assert found[PROCEDURE] == fit_within_limit(rows, ["bank"], limited).policy
    assert found[PROCEDURE].sources, "20% can be certified"


def test_threshold_and_value_policies_are_judged_side_by_side(rows: Table) -> None:
    settings = replace(SMALL, families=("gate", VALUE), folds=2, prior="number")
    found = fitted_policies(rows.rows(range(30)), ["bank"], settings)
    assert set(found) == {PROCEDURE, THRESHOLD, VALUE, PRIOR}
    assert found[THRESHOLD].value is None
    assert found[VALUE].value is not None
    assert found[PROCEDURE] in (found[THRESHOLD], found[VALUE], found[PRIOR])
    assert found[PRIOR].value is not None
    assert found[PRIOR].value.trees.origin == "number"


def test_both_sides_are_joined_with_the_sources_that_both_have() -> None:
    rng = np.random.default_rng(6)
    fit, test = (world(rng, 4, help_rate=0.4, hurt_rate=0.1, telling=0.3) for _ in range(2))
    extra = with_fields(fit, columns={**fit.columns, "only fit": fit.column("bank")})
    clusters = Clusters(clusters=(QuestionCluster(fit=("t0", "t1"), test=("t3",)),))
    both = join_sides({"fit": extra, "test": test}, clusters)
    assert list(both.columns) == ["none", "bank"]
    assert both.column("bank").right.tolist() == [*fit.column("bank").right, *test.column("bank").right]
    assert len(set(both.tasks)) == 8, "the same id on two sides is two tasks"
    assert [both.clusters.count(cluster) for cluster in both.clusters] == [3, 3, 1, 1, 1, 1, 1, 3]
