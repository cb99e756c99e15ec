"""Values of the wrong type or out of range are refused where they are made."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful import Budget, Policy, PolicyError, UsageError
from heedful.decisions import policy_fields, read_policy
from heedful.types import digest_of, plain_digest_of, plainly_written


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"combine": "bogus"}, "combine is 'bogus'; choose one of cascade, dual"),
        ({"threshold": float("nan")}, "threshold is nan, which is not a number"),
        ({"threshold": "-0.1"}, "threshold is '-0.1', which is not a number"),
        ({"threshold": None}, "threshold is None"),
        ({"sources": "memory"}, r"sources are 'memory'; give a tuple"),
        ({"guards": ["format"]}, "guards are .*; give a tuple"),
        ({"margins": {"memory": float("nan")}}, "margins are .*nan.*each must be a number"),
        ({"margins": {"memory": "0"}}, "each must be a number"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(PolicyError, match=complaint):
        Policy(**settings)


def test_infinite_thresholds_are_policies_and_survive_a_copy() -> None:
    for threshold in (float("inf"), float("-inf")):
        policy = replace(Policy(), threshold=threshold)
        assert read_policy(policy_fields(policy)) == policy


@pytest.mark.parametrize(
    "settings", [{"passes": -1}, {"passes": 1.5}, {"passes": "2"}, {"cooldown": -1}, {"cooldown": True}]
)
def test_a_budget_is_a_whole_number_of_at_least_0(settings: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="a whole number of at least 0"):
        Budget(**settings)
    assert Budget(passes=0).passes == 0


plain = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(), st.floats().filter(plainly_written)),
    lambda parts: st.one_of(st.lists(parts), st.dictionaries(st.text(), parts)),
)


@given(value=plain)
def test_the_fast_digest_of_plain_values_is_the_digest(value: object) -> None:
    assert plain_digest_of(value) == digest_of(value)


@pytest.mark.parametrize("number", [1e-5, 1e16, float("nan"), float("inf"), ["in", "a list"]])
def test_what_encoders_write_differently_is_not_plain(number: object) -> None:
    assert not plainly_written(number)
