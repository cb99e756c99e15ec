"""Parts of other packages enter by entry points; a broken one is named and left out."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PLUGIN = """
from dataclasses import dataclass, replace
from typing import ClassVar
from heedful import Decode, ScriptedModel
from heedful.benchmarks.svamp import SVAMP
from heedful.memory.formats import FileFormat
from heedful.memory.entries import new_entry
from heedful.memory.lexical import lexical_index
from heedful.sources import RetrySource
from heedful.stages.confidence import Signal


class PoliteGuard:
    def refuses(self, task, baseline, candidate):
        return None if "please" in candidate.answer else "polite:rude"


LENGTH = Signal(name="length", needs="nothing", measure=lambda decode, replies: -float(len(decode.text)))
SHOUTS = FileFormat(
    read=lambda text, kind: ((1, new_entry(text.upper(), kind=kind)),),
    write=lambda entries, old: "",
    fits=lambda suffix, text: suffix == ".shout",
)
QUIZ = replace(SVAMP, name="quiz")


def again(given):
    assert given.options == {"times": 2}
    return RetrySource(seed=given.seed)


def backwards(given):
    index = lexical_index(given)
    return index


def echo(options):
    return ScriptedModel(script=lambda prompt: ("please " + options.url, -0.5))


def broken(options):
    return None


def exploding(options):
    raise RuntimeError("kaboom")


NOT_A_GUARD = 7
"""
POINTS = """
[heedful.guards]
polite = plugin:PoliteGuard
format = plugin:PoliteGuard
seven = plugin:NOT_A_GUARD
gone = no_such_module:Guard
missing = plugin:NoSuchGuard
[heedful.signals]
length = plugin:LENGTH
[heedful.formats]
shouts = plugin:SHOUTS
[heedful.benchmarks]
quiz = plugin:QUIZ
[heedful.sources]
again = plugin:again
[heedful.recall]
backwards = plugin:backwards
[heedful.models]
echo = plugin:echo
broken = plugin:broken
exploding = plugin:exploding
"""
USING = """
import json
from pathlib import Path
from heedful import Controller, MemoryBank, Policy, Task
from heedful.benchmarks import BENCHMARKS
from heedful.memory.formats import read_entries
from heedful.models.schemes import ModelOptions, make_model
from heedful.passes import GUARDS
from heedful.sources.kinds import SOURCES, SourceOptions
from heedful.memory import bank

Path("a.shout").write_text("hello")
entries, _ = read_entries(Path("a.shout"))
model = make_model(ModelOptions(url="echo:there"))
policy = Policy(signal="length", threshold=0.0, sources=("retry",), guards=("polite",))
outcome = Controller(model=model, policy=policy).answer_sync(Task(question="?"))
print(json.dumps({
    "guards": sorted(GUARDS),
    "own_format": type(GUARDS["format"]).__name__,
    "benchmark": BENCHMARKS["quiz"].name,
    "entry": entries[0].text,
    "recall": [r.entry.text for r in __import__("asyncio").run(
        MemoryBank("b", entries, method="backwards").recall("HELLO", limit=1))],
    "source": SOURCES["again"](SourceOptions(seed=4, options={"times": 2})).seed,
    "answer": outcome.answer,
    "confidence": outcome.confidence,
    "signal": outcome.baseline.signals["length"],
    "verdict": outcome.verdict.reason,
}))
"""


@pytest.fixture
def plugin(tmp_path: Path) -> dict[str, str]:
    """An installed package with plug-ins, as an environment for a child process."""
    site = tmp_path / "site"
    info = site / "plugin-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    (site / "plugin.py").write_text(PLUGIN)
    path = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path, "XDG_DATA_HOME": str(tmp_path)}


def test_every_kind_of_part_can_come_from_another_package(plugin: dict[str, str], tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", USING], env=plugin, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == {
        "guards": ["format", "polite", "progress", "valid"],
        "own_format": "FormatGuard",
        "benchmark": "quiz",
        "entry": "HELLO",
        "recall": ["HELLO"],
        "source": 4,
        "answer": "please echo:there",
        "confidence": -17.0,
        "signal": -17.0,
        "verdict": "gate",
    }
    said = done.stderr
    assert "Traceback" not in said
    for name, why in {
        "format of plugin": "heedful.guards already has a part named 'format'",
        "seven of plugin": "int has the wrong type for heedful.guards",
        "gone of plugin": "ModuleNotFoundError: No module named 'no_such_module'",
        "missing of plugin": "AttributeError",
    }.items():
        assert f"skipping the plug-in {name} (heedful.guards): " in said
        assert why in said


def test_the_command_line_takes_a_plug_ins_model_format_and_recall(
    plugin: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "a.shout").write_text("hello")

    def heedful(*words: str, code: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "heedful", *words],
            env=plugin,
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.returncode == code, done.stderr
        return done.stdout or done.stderr

    assert "1 entry added" in heedful("bank", "import", "a.shout", "--bank", "b")
    asked = heedful(
        "ask",
        "HELLO?",
        "--bank",
        "b",
        "--url",
        "echo:x",
        "--recall",
        "backwards",
        "--threshold",
        "0",
        "--json",
    )
    assert (json.loads(asked)["answer"], json.loads(asked)["verdict"]) == ("please echo:x", "accept")
    probed = json.loads(heedful("probe", "echo:x", "--json"))
    assert (probed["endpoint"], probed["logprobs"], probed["deterministic_text"]) == ("scripted", "raw", True)
    assert "its URL is not recorded: give --url" in heedful("why", "--leave-one-out", code=2)
    left = json.loads(heedful("why", "--leave-one-out", "--url", "echo:x", "--json"))["leave_one_out"]
    assert [one["flipped"] for one in left] == [False]
    checks = json.loads(heedful("doctor", "--json", code=1))["checks"]
    [plug_ins] = [check for check in checks if check["name"] == "plug-ins"]
    assert not plug_ins["ok"]
    assert "seven of plugin (heedful.guards): int has the wrong type for heedful.guards" in plug_ins["detail"]


def test_a_part_that_nobody_has_is_named_with_those_there_are() -> None:
    from heedful import MemoryBank, UsageError
    from heedful.memory.formats import format_named
    from heedful.models.schemes import ModelOptions, make_model

    with pytest.raises(UsageError, match="unknown recall method 'magic'; choose one of dense, bm25"):
        MemoryBank("b", (), method="magic")
    with pytest.raises(UsageError, match="unknown file format 'xls'; choose one of tfgrpo"):
        format_named("xls")
    with pytest.raises(UsageError, match="'ftp://x' is not a supported URL"):
        make_model(ModelOptions(url="ftp://x"))


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("broken:x", "it made a NoneType, which is not a Model"),
        ("exploding:x", "RuntimeError: kaboom"),
    ],
)
def test_a_model_of_a_plug_in_that_fails_is_one_sentence(
    plugin: dict[str, str], tmp_path: Path, url: str, says: str
) -> None:
    command = [sys.executable, "-m", "heedful", "ask", "hello", "--url", url]
    done = subprocess.run(command, env=plugin, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert f"the plug-in '{url[:-2]}' of heedful.models failed: {says}" in done.stderr
    assert "Traceback" not in done.stderr
