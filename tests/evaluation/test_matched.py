"""Memory against compute: value policies over samples, banks and both at the same number of calls."""

from pathlib import Path

import pytest

from heedful.evaluation.arm_results import main_arms
from heedful.evaluation.matched import compare_matched
from heedful.evaluation.study_data import StudyData, read_study_data
from heedful.protocol.matched import fit_matched, samples_of
from heedful.protocol.study import FitSettings, SourceSettings
from heedful.protocol.workspace import Workspace
from heedful.report.write import write_report
from tests.evaluation.making import make_study

SETTINGS = FitSettings(families=("gate", "value"), signals=("mean",), calibrated=False, folds=2, prior="none")
KINDS = {"rule": "memory", "exemplar": "memory", "sample": "retry"}


@pytest.fixture(scope="module")
def sampled(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A study with two banks, of which one is strong, and one sample without memory."""
    return make_study(tmp_path_factory.mktemp("matched") / "study", n=150, kinds=KINDS, settings=SETTINGS)


@pytest.fixture(scope="module")
def data(sampled: Workspace) -> StudyData:
    return read_study_data(sampled)


def test_every_policy_makes_the_same_number_of_calls(data: StudyData) -> None:
    matched = compare_matched(data)
    assert matched is not None
    assert {arm.name: arm.policy.sources for arm in matched.arms} == {
        "compute": ("sample",),
        "memory": ("rule", "exemplar"),
        "both": ("rule", "exemplar", "sample"),
    }
    assert [arm.consulted for arm in matched.arms] == [1, 1, 1]
    assert matched.arm("compute").calls == 2
    nothing = sum(record.status == "nothing" for record in data.test.table.column("exemplar").passes)
    assert all(2 - nothing / 150 <= arm.calls <= 2 for arm in matched.arms), "less where a bank is silent"


def test_a_difference_is_paired_and_equals_the_difference_of_the_gains(data: StudyData) -> None:
    matched = compare_matched(data)
    assert matched is not None
    for one in matched.differences:
        first, second = (matched.arm(name).paired.delta.value for name in (one.first, one.second))
        assert one.paired.delta.value == pytest.approx(first - second)
        assert one.paired.delta.low <= one.paired.delta.value <= one.paired.delta.high
    memory, compute = matched.arm("memory"), matched.arm("compute")
    assert memory.paired.delta.value > compute.paired.delta.value, "the made-up bank knows more than a sample"


def test_the_report_has_both_gains_and_their_difference(sampled: Workspace) -> None:
    report = write_report(sampled)
    found = report.summary["matched"]
    assert set(found["arms"]) == {"compute", "memory", "both"}
    assert set(found["differences"]) == {"memory-compute", "both-compute", "both-memory"}
    for written in (report.text, (sampled.folder / "report.md").read_text()):
        assert "What the gain is made of" in written
        assert "Δ compute" in written


def test_a_study_without_samples_has_no_such_comparison(study: Workspace) -> None:
    data = read_study_data(study)
    assert compare_matched(data) is None
    assert fit_matched(data.fit.table, ["rule"], [], SETTINGS, "") == {}
    assert "matched" not in write_report(study).summary


def test_samples_are_retries_with_a_temperature_on_both_sides() -> None:
    sources = {
        "bank": SourceSettings(bank="pool"),
        "greedy": SourceSettings(kind="retry"),
        "warm": SourceSettings(kind="retry", temperature=0.7),
        "late": SourceSettings(kind="retry", temperature=0.7, sides=("test",)),
        "vote": SourceSettings(kind="vote"),
    }
    assert samples_of(sources) == ("warm",)


def test_the_vote_is_the_majority_of_the_first_pass_and_two_samples(tmp_path: Path) -> None:
    kinds = {"exemplar": "memory", "sample": "retry", "sample2": "retry"}
    study = make_study(tmp_path / "study", n=80, kinds=kinds, settings=SETTINGS)
    data = read_study_data(study)
    [vote] = [arm for arm in main_arms(data) if arm.name == "vote"]
    columns = [data.test.table.column(name) for name in ("none", "sample", "sample2")]
    majority, calls = [], []
    for row in range(len(vote.right)):
        first, one, two = [(column.passes[row].answer, bool(column.right[row])) for column in columns]
        majority.append(two[1] if one[0] == two[0] != first[0] else first[1])
        calls.append(2 if one[0] == first[0] else 3)
    assert vote.right.tolist() == majority
    assert vote.calls == pytest.approx(sum(calls) / len(calls))
    write_report(study)
    assert "the majority of the first pass and two samples" in (study.folder / "report.md").read_text()
