"""What is wrong with a study file is said in one sentence."""

from pathlib import Path

import pytest

from heedful import (
    MissingError,
    UsageError,
)
from heedful.protocol.setup import prepare
from heedful.protocol.workspace import open_workspace
from tests.protocol.shelves import ROWS, STUDY


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (STUDY.replace("metric", "metrik"), "metrik"),
        (STUDY.replace('kind = "vote"', 'kind = "luck"'), "luck|Invalid enum"),
        ("name = ", "not TOML"),
        (STUDY + '[sources.none]\nbank = "notes.txt"\n', "'none' is reserved"),
        (STUDY.replace('bank = "notes.txt"\nplacement', "placement"), "must have a bank"),
        ('name = "x"\nbenchmark = "golf"\n[sources.retry]\nkind = "retry"\n', "no benchmark 'golf'"),
        (STUDY.replace("fit.jsonl", "gone.jsonl"), "gone.jsonl"),
        (STUDY.replace("[fit]", "[split]\nfit = 10000\n[fit]"), "too many"),
        (STUDY.replace('["mean", "min"]', '["luck"]'), "signals has 'luck'"),
        (STUDY.replace("[fit]", '[fit]\nfamilies = ["gates"]'), "families has 'gates'"),
        (STUDY.replace("[fit]", '[fit]\nfirsts = ["retry"]'), "firsts has 'retry'"),
        (STUDY.replace("[fit]", "[fit]\nfirsts = []"), "length >= 1.*firsts"),
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
        (STUDY.replace("[fit]", "[fit]\nharm_limit = 2"), "< 1.*harm_limit"),
        (STUDY.replace("[fit]", "[fit]\nconfidence = 95"), "< 1.*confidence"),
        (STUDY.replace("[fit]", "[model]\nslots = 0\n[fit]"), ">= 1.*slots"),
        (STUDY.replace("[fit]", "[split]\ntest = -3\n[fit]"), ">= 1.*test"),
        (STUDY.replace("[fit]", "[split]\npool = -3\n[fit]"), ">= 0.*pool"),
        (STUDY.replace('kind = "vote"', 'kind = "vote"\nsides = []'), "length >= 1.*sides"),
        (STUDY.replace('bank = "notes.txt"\nplacement', 'bank = "notes.txt"\nlimit = 0\nplacement'), "limit"),
        ("seeds = []\n" + STUDY, "length >= 1.*seeds"),
        ("seeds = [1, 1]\n" + STUDY, "a seed twice"),
        (STUDY.replace('test = "test.jsonl"\n', ""), "file, or fit and test"),
        (
            STUDY.replace("[sources.notes]", 'answer_pattern = "("\n[sources.notes]'),
            "not a regular expression",
        ),
        (STUDY.replace('"test.jsonl"', '"empty.jsonl"'), "no rows on the test side"),
    ],
)
def test_a_wrong_study_file_gets_one_clear_sentence(study: Path, text: str, complaint: str) -> None:
    study.write_text(text)
    (study.parent / "empty.jsonl").write_text("")
    with pytest.raises((UsageError, MissingError), match=complaint) as caught:
        prepare(open_workspace(study, study.parent / "out").study, None)
    assert "\n" not in str(caught.value)
