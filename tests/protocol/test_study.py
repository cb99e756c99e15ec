"""What is wrong with a study file is said in one sentence."""

import re
import tomllib
from pathlib import Path

import pytest
from typer.main import get_command

from heedful import MemoryBank, MissingError, UsageError
from heedful.cli.main import app
from heedful.protocol.idle_settings import refuse_idle_settings
from heedful.protocol.setup import prepare
from heedful.protocol.study import SourceSettings, read_study
from heedful.protocol.workspace import open_workspace
from tests.protocol.shelves import ROWS, STUDY

STUDIES = Path(__file__).parents[2] / "studies"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (STUDY.replace("metric", "metrik"), "metrik"),
        (STUDY.replace('kind = "vote"', 'kind = "luck"'), "luck"),
        ("name = ", "not TOML"),
        (STUDY + '[sources.none]\nbank = "notes.txt"\n', "'none' is reserved"),
        (STUDY.replace('bank = "notes.txt"\nplacement', "placement"), "must have a bank"),
        ('name = "x"\nbenchmark = "golf"\n[sources.retry]\nkind = "retry"\n', "no benchmark 'golf'"),
        (STUDY.replace("fit.jsonl", "gone.jsonl"), "gone.jsonl"),
        (STUDY.replace("[fit]", "[split]\nfit = 10000\n[fit]"), "too many"),
        (STUDY.replace('["mean", "min"]', '["luck"]'), "signals has 'luck'"),
        (STUDY.replace('["gate", ', '["gates", '), "families has 'gates'"),
        (STUDY.replace("[fit]", '[fit]\nfirsts = ["retry"]'), "firsts has 'retry'"),
        (STUDY.replace("[fit]", "[fit]\nfirsts = []"), "`fit.firsts` must have at least 1 item"),
        (
            STUDY.replace("[fit]", '[fit]\nfirsts = ["notes"]').replace(
                "[sources.notes]", '[sources.notes]\nsides = ["fit"]'
            ),
            "firsts has 'notes'",
        ),
        (STUDY.replace("[fit]", "[split]\ntest = 500\n[fit]"), f"{ROWS} rows on the test side; 500"),
        (STUDY.replace('kind = "vote"', 'kind = "vote"\ntemperature = 0'), "must be above 0"),
        (STUDY.replace('kind = "reflect"', 'kind = "reflect"\ntemperature = 1'), "decodes greedily"),
        (STUDY.replace("[sources.notes]", "[sources.notes]\ntemperature = 1"), "decodes greedily"),
        (STUDY.replace("[fit]", "[fit]\nharm_limit = 2"), "`fit.harm_limit` must be below 1"),
        (STUDY.replace("[fit]", "[fit]\nconfidence = 95"), "`fit.confidence` must be below 1"),
        (STUDY.replace("[fit]", "[model]\nslots = 0\n[fit]"), "`model.slots` must be at least 1"),
        (STUDY.replace("[fit]", "[split]\ntest = -3\n[fit]"), "`split.test` must be at least 1"),
        (STUDY.replace("[fit]", "[split]\npool = -3\n[fit]"), "`split.pool` must be at least 0"),
        (STUDY.replace('kind = "vote"', 'kind = "vote"\nsides = []'), "sides` must have at least 1 item"),
        (STUDY.replace('bank = "notes.txt"\nplacement', 'bank = "notes.txt"\nlimit = 0\nplacement'), "limit"),
        ("seeds = []\n" + STUDY, "`seeds` must have at least 1 item"),
        ("seeds = [1, 1]\n" + STUDY, "a seed twice"),
        (STUDY.replace('test = "test.jsonl"\n', ""), "file, or fit and test"),
        (
            STUDY.replace("[sources.notes]", 'answer_pattern = "("\n[sources.notes]'),
            "not a regular expression",
        ),
        (STUDY.replace('"test.jsonl"', '"empty.jsonl"'), "no rows on the test side"),
        (STUDY.replace('"desk"', '"../../evil"'), "cannot be named '../../evil'"),
        (STUDY.replace('"desk"', '""'), "cannot be named ''"),
        (STUDY.replace('"desk"', '"/tmp/evil"'), "cannot be named '/tmp/evil'"),
        (STUDY.replace('"desk"', '"a\\u0000b"'), "cannot be named"),
        (STUDY.replace('"desk"', '".."'), "cannot be named '..'"),
        (STUDY.replace("[sources.other]", '[sources."../other"]'), "source cannot be named '../other'"),
        (STUDY.replace("[fit]", "[model]\ntimeout = inf\n[fit]"), "`model.timeout` must be a finite number"),
        (STUDY.replace("[fit]", "[fit]\ncost = nan"), "`fit.cost` must be a finite number"),
        (STUDY.replace("[sources.other]", "threshold = 0.5\n[sources.other]"), "threshold has no effect"),
        (STUDY.replace("[sources.reflect]", "recall = 'bm25'\n[sources.reflect]"), "recall has no effect"),
        (STUDY.replace("[fit]", "[model]\nmodel = 'm'\n[fit]"), "model has no effect on the embedded"),
        (
            STUDY.replace("[fit]", "[model]\nurl = 'http://127.0.0.1:9/v1'\nthreads = 2\n[fit]"),
            "threads has no effect on an endpoint",
        ),
        (STUDY.replace("[fit]", "[fit]\nconfidence = 0.9"), "confidence has no effect without a harm_limit"),
        (STUDY.replace("[fit]", '[fit]\nprior = "none"'), "prior has no effect on families without value"),
        (re.sub("families = .*", "families = []", STUDY), r"`fit.families`.* 1"),
    ],
)
def test_a_wrong_study_file_gets_one_clear_sentence(study: Path, text: str, complaint: str) -> None:
    study.write_text(text)
    (study.parent / "empty.jsonl").write_text("")
    with pytest.raises((UsageError, MissingError), match=complaint) as caught:
        prepare(open_workspace(study, study.parent / "out").study, None)
    assert "\n" not in str(caught.value)


def test_an_error_in_a_question_file_names_the_users_file_and_nothing_is_copied(study: Path) -> None:
    (study.parent / "fit.jsonl").write_text('{"id": "1", "question": "q"}\n')
    with pytest.raises(UsageError, match="the key `answer` is missing") as caught:
        open_workspace(study, study.parent / "out")
    assert str(study.parent / "fit.jsonl") in str(caught.value)
    assert not (study.parent / "out").exists()


def test_a_wrong_reuse_is_found_before_a_folder_is_made(study: Path) -> None:
    study.write_text(f'reuse = "../missing"\n{STUDY}')
    with pytest.raises(UsageError, match=r"reuse is '../missing', but .*missing is not a study folder"):
        open_workspace(study, study.parent / "out")
    assert not (study.parent / "out").exists()


def test_a_locked_study_with_a_setting_without_effect_can_still_be_opened(study: Path) -> None:
    out = study.parent / "out"
    open_workspace(study, out)
    (out / "study.toml").write_text(STUDY.replace("[sources.other]", "threshold = 0.5\n[sources.other]"))
    with pytest.raises(UsageError, match="no effect"):
        open_workspace(out, None)
    (out / "lock.json").write_text("{}")
    assert open_workspace(out, None).folder == out


def test_every_way_to_recall_has_the_same_default() -> None:
    settings, bank = SourceSettings(bank="notes.txt"), MemoryBank("notes", ())
    assert (settings.recall, settings.threshold) == (bank.method, bank.threshold) == ("dense", 0.6)
    options = {option.name: option.default for option in get_command(app).commands["ask"].params}  # type: ignore[attr-defined]
    assert (options["recall"], options["similarity"]) == ("dense", 0.6)


@pytest.mark.parametrize("file", sorted(STUDIES.glob("*.toml")), ids=lambda file: file.name)
def test_a_published_study_names_its_recall_and_has_no_setting_without_effect(file: Path) -> None:
    study = read_study(file)
    refuse_idle_settings(study, file)
    tables = tomllib.loads(file.read_text(encoding="utf-8"))["sources"]
    banks = [name for name, source in study.sources.items() if source.bank]
    assert banks
    assert all("recall" in tables[name] for name in banks)
