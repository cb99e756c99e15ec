"""The threshold among the confidences of answers, in a picture and in words."""

import re
from dataclasses import replace
from math import inf

import pytest

from heedful.dashboard.charts import LEFT, RIGHT, WIDTH
from heedful.dashboard.routing_chart import routing_chart, routing_values
from heedful.types import LEAST_SURE
from tests.dashboard.made_up import POLICY, VALUE_POLICY
from tests.dashboard.test_effects import facts

VALUES = [-at / 100 for at in range(100)]


@pytest.mark.parametrize(
    ("threshold", "edge", "label", "words"),
    [
        (
            -9.0,
            LEFT,
            "← threshold −9",
            "−9 lies left of the chart, below all values: every first answer is kept.",
        ),
        (
            0.5,
            WIDTH - RIGHT,
            "threshold 0.5 →",
            "0.5 lies right of the chart, above all values: memory is consulted for every answer.",
        ),
    ],
)
def test_a_threshold_outside_the_values_is_at_the_edge_and_in_words(
    threshold: float, edge: int, label: str, words: str
) -> None:
    page = routing_chart(replace(POLICY, threshold=threshold), VALUES)
    assert re.search(rf'<line x1="{edge}" x2="{edge}" [^>]*class="mark"', page)
    assert f">{label}</text>" in page
    assert page.count(f"The threshold {words}") == 2, "in the caption and for screen readers"


def test_outliers_beyond_the_threshold_make_it_nearly_every_answer() -> None:
    page = routing_chart(replace(POLICY, threshold=-5.0), [*VALUES, *VALUES, -9.0])
    assert "below nearly all values: nearly every first answer is kept." in page


def test_a_threshold_among_the_values_needs_no_words() -> None:
    page = routing_chart(POLICY, VALUES)
    assert ">threshold −0.6</text>" in page
    assert "lies" not in page


def test_a_policy_that_always_consults_has_no_threshold() -> None:
    page = routing_chart(replace(POLICY, threshold=inf), VALUES)
    assert "The policy always consults memory, so the chart has no threshold." in page
    assert 'class="mark"' not in page


def test_a_value_policy_that_never_asks_has_its_threshold_on_the_right() -> None:
    page = routing_chart(VALUE_POLICY, [-0.02, -0.01])
    assert "The threshold 0 lies right of the chart, above all values: every first answer is kept." in page


def test_answers_without_a_number_are_left_out() -> None:
    known = [facts(confidence=-1.0), facts(confidence=None), facts(confidence=LEAST_SURE)]
    assert routing_values(POLICY, known) == [-1.0]
    assert routing_values(VALUE_POLICY, [facts(net_value=0.5), facts()]) == [0.5]
