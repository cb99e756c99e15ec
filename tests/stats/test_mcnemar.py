import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.contingency_tables import mcnemar as oracle

from heedful.errors import UsageError
from heedful.stats.mcnemar import mcnemar, mcnemar_by_task

counts = st.integers(0, 400)


@given(helps=counts, hurts=counts)
def test_the_p_value_is_statsmodels_exact_one(helps: int, hurts: int) -> None:
    expected = oracle([[10, helps], [hurts, 10]], exact=True).pvalue
    assert mcnemar(helps, hurts) == pytest.approx(float(expected), rel=1e-9, abs=1e-300)


@given(helps=counts, hurts=counts)
def test_the_p_value_is_symmetric_and_a_probability(helps: int, hurts: int) -> None:
    assert 0 < mcnemar(helps, hurts) == mcnemar(hurts, helps) <= 1


@given(hurts=st.integers(0, 60), more=st.integers(0, 60))
def test_more_helps_never_raise_the_p_value(hurts: int, more: int) -> None:
    assert mcnemar(hurts + more + 1, hurts) <= mcnemar(hurts + more, hurts) + 1e-12


def test_no_change_at_all_is_no_evidence_and_negative_counts_are_refused() -> None:
    assert mcnemar(0, 0) == 1
    with pytest.raises(UsageError, match="counts"):
        mcnemar(-1, 3)


def test_copies_of_a_task_prove_nothing_more() -> None:
    differences, tasks = [1, 1, 1, 0, -1], ["a", "b", "c", "d", "e"]
    once = mcnemar_by_task(differences, tasks)
    assert once == mcnemar(3, 1)
    assert mcnemar_by_task(differences * 3, tasks * 3) == once
    assert mcnemar_by_task([1, -1], ["a", "a"]) == 1
