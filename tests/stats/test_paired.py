import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import UsageError
from heedful.stats.paired import PairedCounts, count_pairs, gap_close

pairs = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60)


@given(pairs)
def test_the_four_counts_are_of_all_rows_and_explain_both_accuracies(rows: list[tuple[bool, bool]]) -> None:
    before, after = [b for b, _ in rows], [a for _, a in rows]
    counts = count_pairs(before, after)
    assert counts.n == len(rows)
    assert counts.base == sum(before) / len(rows)
    assert counts.accuracy == sum(after) / len(rows)
    assert counts.delta == pytest.approx(counts.accuracy - counts.base)


@given(pairs)
def test_swapping_the_passes_swaps_helps_and_hurts(rows: list[tuple[bool, bool]]) -> None:
    before, after = [b for b, _ in rows], [a for _, a in rows]
    there, back = count_pairs(before, after), count_pairs(after, before)
    assert (there.helps, there.hurts, there.delta) == (back.hurts, back.helps, -back.delta)


def test_a_help_was_wrong_before_and_a_hurt_is_wrong_after() -> None:
    counts = count_pairs([True, False, True, False, False], [True, True, False, False, True])
    assert counts == PairedCounts(both_right=1, helps=2, hurts=1, both_wrong=1)


def test_unpaired_empty_and_negative_counts_are_refused() -> None:
    with pytest.raises(UsageError, match="paired"):
        count_pairs([True], [])
    with pytest.raises(UsageError, match="at least one task"):
        count_pairs([], [])
    with pytest.raises(UsageError, match="not be negative"):
        PairedCounts(both_right=1, helps=-1, hurts=0, both_wrong=0)


def test_gap_close_gives_the_papers_share() -> None:
    assert gap_close(0.81, 0.74, 0.845) == pytest.approx(2 / 3)


@given(base=st.floats(0, 0.9), gap=st.floats(0.01, 0.1), share=st.floats(0, 1))
def test_gap_close_inverts_the_interpolation_from_base_to_oracle(
    base: float, gap: float, share: float
) -> None:
    assert gap_close(base + share * gap, base, base + gap) == pytest.approx(share, abs=1e-9)


def test_gap_close_has_no_value_without_a_gap_and_refuses_an_impossible_oracle() -> None:
    assert gap_close(0.7, 0.7, 0.7) is None
    assert gap_close(0.2, 0.3, 0.1 + 0.2) is None
    with pytest.raises(UsageError, match="cannot be below"):
        gap_close(0.7, 0.7, 0.6)
    with pytest.raises(UsageError, match="between 0 and 1"):
        gap_close(81.0, 74.0, 84.5)
