"""What the report says in words."""

from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

from heedful.evaluation.evaluate import evaluate
from heedful.evaluation.study_data import StudyData, read_study_data
from heedful.report.conclusion import Conclusion, conclude
from heedful.report.phrases import (
    called,
    change,
    duration,
    listed,
    p_value,
    points,
    policy_brief,
    policy_words,
    share,
)
from heedful.stats.intervals import Interval
from heedful.types import Policy
from tests.evaluation.making import make_study
from tests.report.conftest import ReportedStudy


@pytest.fixture(scope="module")
def data(study: ReportedStudy) -> StudyData:
    return read_study_data(study[0])


def found_with(data: StudyData, policy: Policy) -> Conclusion:
    """What would be said had this policy been locked."""
    return conclude(
        evaluate(replace(data, lock=replace(data.lock, fit=replace(data.lock.fit, policy=policy))))
    )


def test_a_gain_is_told_with_its_interval_harm_and_cost(data: StudyData) -> None:
    found = conclude(evaluate(data))
    assert found.tone == "gain"
    assert found.headline.startswith("On 300 test questions, heedful was right on ")
    for word in ("95% interval", "p = ", "It fixed", "broke", "calls per question."):
        assert word in found.headline


def test_a_policy_that_is_plain_retrieval_is_called_that(data: StudyData) -> None:
    found = found_with(data, Policy(first="exemplar", guards=()))
    text = " ".join(found.further)
    assert "The chosen policy puts exemplar memory in every prompt" in text
    assert (
        "Compared with the recorded pass without memory, which this policy does not start with, it hurt"
        in text
    )
    assert "which a rollback reuses" not in text
    gate = found_with(data, Policy(threshold=inf, sources=("rule",)))
    assert "recorded first pass, which a rollback reuses" in " ".join(gate.further)


def test_no_gain_is_said_plainly(data: StudyData) -> None:
    found = found_with(data, Policy(threshold=inf, sources=("retry",)))
    assert found.tone == "none"
    assert "No gain is shown" in " ".join(found.further)
    assert "Plain retrieval (exemplar memory in every prompt) was better" in " ".join(found.further)


def test_a_loss_is_said_plainly(tmp_path: Path) -> None:
    space = make_study(tmp_path / "loss", n=80, kinds={"useless": "memory"})
    found = found_with(read_study_data(space), Policy(threshold=inf, sources=("useless",), guards=()))
    assert found.tone == "loss"
    assert "Memory made the answers worse" in " ".join(found.further)


def test_consulting_nothing_is_said_plainly(data: StudyData) -> None:
    found = found_with(data, Policy())
    assert "heedful answered as the model without memory" in found.headline
    assert "No policy with memory did better on the fit side" in found.further[0]


def test_policies_in_words() -> None:
    assert policy_words(Policy()) == "Answer without memory; consult nothing."
    assert policy_words(Policy(first="rule", guards=())) == "Answer with rule memory; consult nothing."
    gate = Policy(threshold=-0.5, sources=("rule",))
    assert policy_words(gate) == (
        "Answer without memory first; if the confidence (mean) is below −0.5, consult rule. A second "
        "answer is accepted if it passes the guards format and valid; otherwise the first answer stands."
    )
    cascade = replace(gate, sources=("rule", "none"), margins={"rule": 0.25, "none": -0.5})
    words = policy_words(cascade)
    assert "consult rule, then answer again without memory, until an answer is accepted" in words
    assert "(from rule) surer than the first by at least 0.25" in words
    assert "(without memory) less sure than the first by at most 0.5" in words
    assert policy_brief(cascade) == "none → rule → none if mean < −0.5, margins 0.25, −0.5"
    assert "Any second answer is accepted." in policy_words(replace(gate, guards=(), threshold=inf))


def test_numbers_in_words() -> None:
    found = Interval(value=0.153, low=-0.001, high=0.2, n=10)
    assert change(found) == "+15.3 [−0.1, +20.0]"
    assert share(Interval(value=0.5, low=0.4, high=0.6, n=10)) == "50.0% [40.0, 60.0]"
    assert points(-0.00001) == "0.0"
    assert [p_value(p) for p in (1.0, 0.0321, 1.2e-9)] == ["1", "0.032", "1.2e-9"]
    assert [called(calls) for calls in (1.0, 1.94, 4.0)] == ["1 call", "1.94 calls", "4 calls"]
    assert [duration(s) for s in (3.0, 600.0, 9000.0)] == ["3.0 s", "10.0 min", "2.5 h"]
    assert listed(("a", "b", "c")) == "a, b and c"
