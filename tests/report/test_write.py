"""The report of a study, as a whole."""

import json
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from math import inf
from pathlib import Path

import pytest

from heedful import LockError, UsageError
from heedful.decisions import read_policy
from heedful.evaluation.study_data import read_study_data
from heedful.protocol.crossfit import join_sides
from heedful.protocol.crossfit_file import crossfit_study
from heedful.protocol.events import log_event
from heedful.protocol.ledger import Ledger, written_row
from heedful.protocol.study import THRESHOLD_FAMILIES, FitSettings
from heedful.protocol.workspace import Workspace, read_json, write_json
from heedful.report.write import write_report
from heedful.types import Policy
from tests.evaluation.making import SAID, SETTINGS, lock_of, make_study
from tests.evaluation.recount import decide, recount, rows_of
from tests.report.conftest import ReportedStudy

FILES = ("report.html", "report.md", "report.tex", "report.json")
FIXED = (
    *("arms", "delta", "mcnemar_p", "oracle", "gap_close", "model_calls", "rerun_calls", "test_openings"),
    *("crossfit", "harm_upper", "families"),
)
VOID = {"meta", "br", "img", "input", "hr", "link"}


class Checked(HTMLParser):
    """Notes what is never closed, and every address outside the page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.addresses: list[str] = []
        self.ids: list[str | None] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [v or "" for k, v in attrs if k in ("src", "href", "xlink:href", "action", "data")]
        self.ids += [v for k, v in attrs if k == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids += [v for k, v in attrs if k == "id"]
        self.addresses += [v or "" for k, v in attrs if k in ("src", "href", "xlink:href")]

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


def read(space: Workspace, name: str) -> str:
    return (space.folder / name).read_text(encoding="utf-8")


def arms_of(space: Workspace) -> dict[str, Policy]:
    def control(name: str) -> Policy:
        return Policy(threshold=inf, sources=(name,), guards=())

    return {
        "baseline": Policy(),
        "retry": control("retry"),
        "vote": Policy(first="vote", guards=()),
        "always-rule": Policy(first="rule", guards=()),
        "always-exemplar": Policy(first="exemplar", guards=()),
        "heedful": read_policy(read_json(space.lock, "")["policy"]),
    }


def test_a_report_is_the_same_bytes_in_every_folder(study: ReportedStudy, tmp_path: Path) -> None:
    space, _ = study
    other = Workspace(tmp_path / "elsewhere")
    other.folder.mkdir()
    for file in (space.ledger, space.lock, space.events):
        shutil.copyfile(file, other.folder / file.name)
    write_report(other)
    for name in FILES:
        assert (other.folder / name).read_bytes() == (space.folder / name).read_bytes(), name


def test_the_summary_has_its_fixed_keys_first_and_is_the_json_file(study: ReportedStudy) -> None:
    space, built = study
    assert tuple(built.summary)[: len(FIXED)] == FIXED
    assert json.loads(read(space, "report.json")) == json.loads(json.dumps(built.summary, allow_nan=False))
    for arm in built.summary["arms"].values():
        assert {"n", "accuracy", "helps", "hurts", "calls_per_task"} <= set(arm)
    assert {"value", "low", "high"} <= set(built.summary["delta"])


def test_every_arm_counts_as_a_plain_recount_does(study: ReportedStudy) -> None:
    space, built = study
    rows = rows_of(space)
    for name, policy in arms_of(space).items():
        arm, counted = built.summary["arms"][name], recount(rows, policy)
        assert arm["n"] == counted.n == 300
        assert arm["accuracy"] == pytest.approx(counted.right / counted.n, abs=1e-12), name
        assert (arm["helps"], arm["hurts"]) == (counted.helps, counted.hurts), name
        assert arm["calls_per_task"] == pytest.approx(counted.calls / counted.n), name
        assert arm["tokens_per_task"] == pytest.approx(counted.tokens / counted.n), name
        assert arm["seconds_per_task"] == pytest.approx(counted.seconds / counted.n), name


def test_every_component_counts_as_a_plain_recount_does(study: ReportedStudy) -> None:
    space, built = study
    policies = built.summary["components"]["policies"]
    assert {"gate-rule", "choose-exemplar", "cascade-rule-exemplar", "cascade-exemplar-rule"} <= set(policies)
    assert {"dual-rule-exemplar", "gate-retry"} <= set(policies)
    rows = rows_of(space)
    for name, found in policies.items():
        arm, counted = built.summary["arms"][name], recount(rows, read_policy(found["policy"]))
        assert (arm["helps"], arm["hurts"]) == (counted.helps, counted.hurts), name
        assert arm["seconds_per_task"] == pytest.approx(counted.seconds / counted.n), name


def test_the_oracle_is_right_wherever_the_policy_had_a_right_answer_on_offer(study: ReportedStudy) -> None:
    space, built = study
    policy = arms_of(space)["heedful"]
    offered = 0
    for passes in rows_of(space):
        first, _ = decide(Policy(first=policy.first), passes)
        consulted = first.record.signals[policy.signal] < policy.threshold
        seconds = [passes[name] for name in policy.sources] if consulted else []
        offered += any(
            row.right for row in (passes["none"], first, *seconds) if row.record.status == "decoded"
        )
    base = built.summary["arms"]["baseline"]["accuracy"]
    mine = built.summary["arms"]["heedful"]["accuracy"]
    assert built.summary["oracle"] == pytest.approx(offered / 300)
    assert built.summary["gap_close"] == pytest.approx((mine - base) / (offered / 300 - base))


def test_model_calls_are_those_of_the_ledger(study: ReportedStudy) -> None:
    space, built = study
    lock = read_json(space.lock, "")
    assert built.summary["model_calls"] == sum(
        row.record.calls for row in Ledger(space.ledger).passes.values()
    )
    assert built.summary["rerun_calls"] == lock["fit"]["policies"] * 300
    assert "at least one call per policy and row" in read(space, "report.html")


def test_passes_of_an_earlier_prompt_were_calls_too(tmp_path: Path) -> None:
    space = make_study(tmp_path / "before", n=40)
    now = write_report(space).summary
    rows = list(Ledger(space.ledger).passes.values())
    before = [
        replace(row, record=replace(row.record, prompt="before"))
        for row in rows
        if (row.side, row.record.source) == ("test", "rule")
    ]
    space.ledger.write_bytes(b"".join(written_row(row) for row in (*before, *rows)))
    then = write_report(space).summary
    assert then["model_calls"] - now["model_calls"] == sum(row.record.calls for row in before) > 0
    assert then["arms"] == now["arms"]


def test_one_opening_raises_no_alarm_and_a_second_one_does(
    study: ReportedStudy, one_bank: ReportedStudy
) -> None:
    once, twice = read(study[0], "report.html"), read(one_bank[0], "report.html")
    assert study[1].summary["test_openings"] == 1
    assert "test side opened once" in once
    assert 'class="alarm"' not in once
    assert 'class="warned"' not in once
    assert one_bank[1].summary["test_openings"] == 2
    assert "The test side was opened 2 times." in twice
    assert 'class="alarm"' in twice
    assert twice.count('class="warned"') == 1
    for name in ("report.md", "report.tex"):
        assert "The test side was opened 2 times." in read(one_bank[0], name)
    assert "opened 2 times" in one_bank[1].text


def test_a_study_with_one_bank_says_what_it_lacks(one_bank: ReportedStudy) -> None:
    _, built = one_bank
    assert set(built.summary["arms"]) == {"baseline", "always-rule", "heedful", "gate-rule", "choose-rule"}
    assert [stage["stage"] for stage in built.summary["components"]["stages"]] == ["gate", "choose"]


def test_a_study_without_banks_or_controls_still_reports(tmp_path: Path) -> None:
    built = write_report(make_study(tmp_path / "bare", n=100, kinds={}))
    assert set(built.summary["arms"]) == {"baseline", "heedful"}
    assert "not recorded" in read(Workspace(tmp_path / "bare"), "report.md")


def test_a_source_that_was_not_recorded_is_named(tmp_path: Path) -> None:
    space = make_study(tmp_path / "gap", n=40)
    rows = [
        row
        for row in Ledger(space.ledger).passes.values()
        if (row.side, row.record.source) != ("test", "vote")
    ]
    space.ledger.write_bytes(b"".join(written_row(row) for row in rows))
    write_report(space)
    assert "Not recorded on the test side: vote." in read(space, "report.md")


def test_passes_without_logprobs_leave_the_tables_of_confidence_empty(tmp_path: Path) -> None:
    built = write_report(make_study(tmp_path / "silent", n=100, signals=False))
    text = read(Workspace(tmp_path / "silent"), "report.html")
    assert built.summary["components"]["threshold"] is None
    assert "the signal mean was not measured" in text
    assert "no pass has the signal mean on both sides" in text


def test_a_bank_that_changes_nothing_has_too_few_rows_for_an_auc(tmp_path: Path) -> None:
    space = make_study(tmp_path / "same", n=100, kinds={"retry": "memory"})
    built = write_report(space)
    assert built.summary["arms"]["always-retry"]["helps"] == 0
    assert all(found["second"] is None for found in built.summary["separability"])
    assert "too few" in read(space, "report.md")


def test_the_baseline_is_reported_when_nothing_could_be_certified(uncertified: ReportedStudy) -> None:
    space, built = uncertified
    text = read(space, "report.html")
    assert built.summary["delta"]["value"] == 0
    assert built.summary["gap_close"] is None
    assert "No policy could be certified to hurt at most 0.1% of answers" in text
    assert "no policy was certified to keep the harm limit, so the baseline was chosen" in text
    assert "Harm certificate" in text
    assert "it fixed and broke no answer" in built.text


def test_harm_is_bounded_against_the_first_pass_and_an_independent_decode(study: ReportedStudy) -> None:
    space, built = study
    harm = built.summary["harm"]
    mine, hurts = harm["arms"]["heedful"], built.summary["arms"]["heedful"]["hurts"]
    assert harm["independent_decode"] == "retry"
    assert (mine["shared"]["hurts"], mine["shared"]["upper"]) == (hurts, built.summary["harm_upper"])
    assert hurts / 300 < built.summary["harm_upper"] < 1
    assert mine["independent"]["hurts"] == hurts, "this retry repeats the first pass"
    assert harm["arms"]["retry"]["independent"] is None
    assert "Compared with an independent decode of the same prompt (retry), it hurt" in read(
        space, "report.md"
    )


def test_a_study_without_a_retry_has_no_independent_decode(one_bank: ReportedStudy) -> None:
    space, built = one_bank
    assert built.summary["harm"]["independent_decode"] is None
    assert built.summary["harm"]["arms"]["heedful"]["independent"] is None
    assert "No independent decode was recorded" in read(space, "report.md")


def test_the_families_are_named_and_the_locked_one_is_heedful(study: ReportedStudy) -> None:
    _, built = study
    family, mine = built.summary["families"]["threshold"], built.summary["arms"]["heedful"]
    assert family["locked"]
    assert (family["accuracy"], family["helps"], family["hurts"]) == (
        mine["accuracy"],
        mine["helps"],
        mine["hurts"],
    )
    assert (family["calls"], family["certified_limit"]) == (mine["calls_per_task"], None)
    assert built.summary["limits"] == [], "without a harm limit there are no others to show"


def test_other_limits_are_shown_beside_the_own_one(uncertified: ReportedStudy) -> None:
    space, built = uncertified
    limits = built.summary["limits"]
    assert [(one["limit"], one["own"]) for one in limits] == [
        (0.001, True),
        (0.01, False),
        (0.02, False),
        (0.03, False),
        (0.05, False),
    ]
    assert (limits[0]["policy"], limits[0]["test"]) == (None, None)
    assert "only the limit of the study (highlighted) is certified" in read(space, "report.md")
    rows = built.summary["fit"]
    assert (rows["rows"], rows["certifying_rows"]) == (48, 72), "the rows that the objective is from"


def test_what_the_harm_limit_costs_is_told(uncertified: ReportedStudy) -> None:
    space, built = uncertified
    unlimited = built.summary["arms"]["unlimited"]
    assert unlimited["helps"] > unlimited["hurts"] > 0
    assert "Without the harm limit, the fit side would have chosen a policy that was right on " in built.text
    assert "policy without the harm limit" in read(space, "report.md")


def test_a_small_study_leaves_out_what_is_only_noise(tmp_path: Path) -> None:
    built = write_report(make_study(tmp_path / "small", n=99))
    for name in ("report.html", "report.md", "report.tex"):
        text = read(Workspace(tmp_path / "small"), name)
        assert "With fewer than 100 test questions" in text
        assert "All arms on the test side" in text
        assert "Calibration" not in text
        assert "Significance ledger" not in text
    assert built.summary["calibration"], "the numbers stay in the JSON"


def test_seeds_are_pooled_and_tasks_stay_together(tmp_path: Path) -> None:
    built = write_report(make_study(tmp_path / "seeds", n=60, seeds=(0, 1)))
    assert built.summary["arms"]["heedful"]["n"] == 120
    assert built.summary["delta"]["n"] == 60
    assert "60 test questions (120 rows over 2 seeds)" in built.text
    once = write_report(make_study(tmp_path / "once", n=60)).summary["separability"][0]
    pooled = built.summary["separability"][0]
    assert (pooled["helps"], pooled["hurts"]) == (once["helps"], once["hurts"]), "copies prove nothing more"


def test_no_path_of_a_machine_and_no_text_of_a_pass_is_in_a_report(study: ReportedStudy) -> None:
    space, _ = study
    for name in FILES:
        text = read(space, name)
        assert SAID not in text
        assert str(space.folder) not in text
        assert "/home/" not in text
        assert "127.0.0.1" not in text
        assert not re.search(r"(?<![\w<.:/])/(?:tmp|root|work|usr|var|home)/", text)
    assert "tiny_model.gguf" in read(space, "report.html")


@pytest.mark.parametrize("which", ["study", "one_bank", "uncertified"])
def test_the_page_is_well_formed_and_needs_nothing_else(which: str, request: pytest.FixtureRequest) -> None:
    space, _ = request.getfixturevalue(which)
    text = read(space, "report.html")
    page = Checked()
    page.feed(text)
    page.close()
    assert (page.open, page.wrong) == ([], [])
    assert all(address.startswith("#") for address in page.addresses)
    assert {address[1:] for address in page.addresses} <= set(page.ids)
    assert len(page.ids) == len(set(page.ids))
    assert "http" not in text.replace("http-equiv", "")
    assert "<script" not in text
    assert "@import" not in text
    assert text.count("<svg") == text.count('role="img" aria-label="')


def test_what_had_been_explored_is_shown_as_text(study: ReportedStudy) -> None:
    space, _ = study
    assert "Explored before this study" in read(space, "report.html")
    assert "&lt;the old&gt; test half &amp; kept." in read(space, "report.html")
    assert "test half & kept." in read(space, "report.md")


def test_markdown_tables_have_as_many_cells_in_every_row(study: ReportedStudy) -> None:
    for block in read(study[0], "report.md").split("\n\n"):
        if block.startswith("|"):
            assert len({len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1


def test_latex_tables_are_closed_and_escaped(study: ReportedStudy) -> None:
    text = read(study[0], "report.tex")
    code = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
    assert code.count(r"\begin{table}") == code.count(r"\end{table}") >= 8
    assert len(re.findall(r"(?<!\\){", code)) == len(re.findall(r"(?<!\\)}", code))
    assert not re.search(r"(?<!\\)%(?!$)", code, flags=re.MULTILINE)
    assert code.isascii()


def test_a_lock_that_was_edited_is_refused(study: ReportedStudy, tmp_path: Path) -> None:
    space = Workspace(shutil.copytree(study[0].folder, tmp_path / "copy"))
    write_json(space.lock, {**read_json(space.lock, ""), "notes": "never looked at anything"})
    with pytest.raises(LockError, match="edited"):
        write_report(space)


def test_fit_passes_that_moved_are_refused(study: ReportedStudy, tmp_path: Path) -> None:
    space = Workspace(shutil.copytree(study[0].folder, tmp_path / "copy"))
    lines = space.ledger.read_bytes().splitlines(keepends=True)
    space.ledger.write_bytes(b"".join(lines[1:]))
    with pytest.raises(LockError, match="fit passes"):
        write_report(space)


def test_a_test_side_that_is_not_recorded_says_what_to_run(study: ReportedStudy, tmp_path: Path) -> None:
    space = Workspace(shutil.copytree(study[0].folder, tmp_path / "copy"))
    rows = [row for row in Ledger(space.ledger).passes.values() if row.side == "fit"]
    space.ledger.write_bytes(b"".join(written_row(row) for row in rows))
    with pytest.raises(UsageError, match="heedful study test"):
        write_report(space)


def test_an_event_of_another_lock_is_told_apart(study: ReportedStudy, tmp_path: Path) -> None:
    space = Workspace(shutil.copytree(study[0].folder, tmp_path / "copy"))
    log_event(space.events, "locked", "f" * 64, "2026-04-01T00:00:00+00:00")
    write_report(space)
    assert "ffffffffffff (a different lock)" in read(space, "report.html")
    assert lock_of(space)[:12] in read(space, "report.html")


def test_repeated_questions_count_once_in_intervals_and_are_reported(
    one_bank: ReportedStudy, tmp_path: Path
) -> None:
    space = Workspace(tmp_path / "repeats")
    shutil.copytree(one_bank[0].folder, space.folder)
    pairs = [{"fit": [], "test": [f"test-{at:03d}", f"test-{at + 1:03d}"]} for at in range(0, 40, 2)]
    both = {"fit": ["fit-000"], "test": ["test-100"]}
    write_json(space.clusters, {"questions": "q", "near": 0.95, "clusters": [*pairs, both]})
    before, after = one_bank[1].summary, write_report(space).summary
    assert before["clusters"] is None
    assert after["clusters"] == {"test": 100, "repeated": 21, "straddling": 1, "near": 0.95}
    mine, other = (summary["arms"]["heedful"] for summary in (before, after))
    assert (other["n"], other["helps"], other["accuracy"]) == (mine["n"], mine["helps"], mine["accuracy"])
    assert (mine["delta"]["n"], other["delta"]["n"]) == (120, 100)
    text = read(space, "report.md")
    assert "The fit side also asks the questions of 1 of 120 test rows" in text
    assert "Intervals and p count 100 different questions" in text
    assert "21 clusters of 42 rows count once each" in read(space, "report.html")


def test_the_cross_fitted_evaluation_stands_beside_the_locked_test(
    one_bank: ReportedStudy, tmp_path: Path
) -> None:
    space = Workspace(tmp_path / "folded")
    shutil.copytree(one_bank[0].folder, space.folder)
    data = read_study_data(space)
    table = join_sides({"fit": data.fit.table, "test": data.test.table}, data.repeats)
    found = crossfit_study(space, data.lock, table, SETTINGS, 3, lambda done, total: None)
    report = write_report(space)
    assert one_bank[1].summary["crossfit"] is None
    fields = ("n", "accuracy", "p", "helps", "hurts", "calls")
    assert {name: report.summary["crossfit"][name] for name in fields} == {
        name: getattr(found.procedure, name) for name in fields
    }
    assert report.summary["arms"] == one_bank[1].summary["arms"]
    text = read(space, "report.md")
    mine = report.summary["arms"]["heedful"]
    rows = [line for line in text.splitlines() if "locked policy on the test side" in line]
    assert len(rows) == 1
    assert f"{100 * mine['accuracy']:.1f}%" in rows[0]
    assert "| cross-fitted: the study's procedure | 240 |" in text
    assert "Cross-fitted evaluation" in read(space, "report.html")
    write_json(space.clusters, {"questions": "q", "clusters": [{"fit": ["fit-000"], "test": ["test-000"]}]})
    assert write_report(space).summary["crossfit"] is None
    assert "run heedful study crossfit again" in read(space, "report.md")


def test_a_promise_of_no_loss_is_not_called_a_harm_limit(tmp_path: Path) -> None:
    settings = FitSettings(
        families=THRESHOLD_FAMILIES, signals=("mean",), calibrated=False, folds=3, promise="no-loss"
    )
    space = make_study(tmp_path / "no-loss", n=200, settings=settings)
    report = write_report(space)
    certified = report.summary["families"]["threshold-certified"]
    assert (certified["certified"], certified["certified_limit"]) == ("no-loss", None)
    assert report.summary["families"]["threshold"]["certified"] is None
    assert "the policy was certified not to lose accuracy (95% confidence)" in report.text
    assert "the harm limit" not in report.text
    page = read(space, "report.html")
    assert "No-loss certificate" in page
    assert "chosen without the promise of no loss" in page
    fit, cost = report.summary["fit"], report.summary["cost"]
    assert fit["policies"] != cost["policies"], "the two searches see different rows"
    assert f"the one under it scored {fit['policies']:,} on " in read(space, "report.md")
