from math import inf

from hypothesis import given
from hypothesis import strategies as st

from heedful.stages.route import choose_route
from heedful.types import LEAST_SURE, Policy

sureties = st.one_of(st.none(), st.floats(-10, 0), st.just(LEAST_SURE))


@given(confidence=sureties, threshold=st.one_of(st.floats(-10, 0), st.sampled_from([inf, -inf])))
def test_memory_is_consulted_exactly_below_the_threshold(confidence: float | None, threshold: float) -> None:
    route = choose_route(confidence, Policy(sources=("rule",), threshold=threshold))
    expected = threshold == inf or (confidence is not None and confidence < threshold)
    assert (route.choice == "consult") == expected


@given(confidence=sureties)
def test_a_policy_without_sources_never_consults(confidence: float | None) -> None:
    assert choose_route(confidence, Policy(threshold=inf)).choice == "keep"
