import asyncio
import io
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import pytest

from heedful import ModelError, RequestError, ScriptedModel, StoreError
from heedful.models.scripted import Reply
from heedful.protocol.ledger import Ledger, read_row, written_row
from heedful.protocol.record import Recorder, Recording
from heedful.sources import RetrySource
from heedful.types import Decode, Prompt, Traits, Usage
from tests.making import ledger_row
from tests.protocol.making import Letters, recorded, sources

ROW = ledger_row("none", "t", text="é\u2028", answer="a", usage=Usage(prompt_tokens=3))


def model(text: str = "a", **settings: Any) -> ScriptedModel:
    return ScriptedModel(script=lambda prompt: (text, -0.5), **settings)


def test_a_row_comes_back_as_it_was(tmp_path: Path) -> None:
    assert read_row(written_row(ROW).rstrip(b"\n")) == ROW


def test_every_pass_is_decoded_once_and_resuming_decodes_nothing(tmp_path: Path) -> None:
    first, again = model(), model()
    ledger = recorded(tmp_path / "l.jsonl", first, sources(), 5)
    assert len(ledger.passes) == 5 * 7
    assert sum(row.record.calls for row in ledger.passes.values()) == len(first.prompts)
    recorded(tmp_path / "l.jsonl", again, sources(), 5)
    assert again.prompts == []


def test_samples_are_recorded_before_the_controls(tmp_path: Path) -> None:
    named = sources() | {"sample": RetrySource(temperature=0.7, seed=2)}
    ledger = recorded(tmp_path / "l.jsonl", model(), named, 3)
    order = list(dict.fromkeys(row.record.source for row in ledger.distinct()))
    assert order[:4] == ["none", "one", "two", "sample"]
    assert set(order[4:]) == {"retry", "reflect", "vote", "verify"}


def test_a_damaged_row_is_named_and_only_it_is_recorded_again(tmp_path: Path) -> None:
    path = tmp_path / "l.jsonl"
    recorded(path, model(), {"none": sources()["none"]}, 4)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b'"a"', b'"b"', 1)
    path.write_bytes(b"".join(lines))
    assert [(d.line, d.problem) for d in Ledger(path).damage] == [(2, "the row does not match its checksum")]
    again = model()
    ledger = recorded(path, again, {"none": sources()["none"]}, 4)
    assert (len(again.prompts), len(ledger.passes)) == (1, 4)


def test_a_row_cut_in_the_middle_does_not_swallow_the_next(tmp_path: Path) -> None:
    path = tmp_path / "l.jsonl"
    recorded(path, model(), {"none": sources()["none"]}, 3)
    path.write_bytes(path.read_bytes()[:-20])
    again = model()
    recorded(path, again, {"none": sources()["none"]}, 3)
    ledger = Ledger(path)
    assert (len(again.prompts), len(ledger.passes), len(ledger.damage)) == (1, 3, 1)


class Full(io.BytesIO):
    """A disk with room for so many bytes more."""

    def __init__(self, file: IO[bytes], room: int) -> None:
        super().__init__()
        self.file, self.room = file, room

    def write(self, data: Any) -> int:
        part = data[: self.room]
        self.room -= len(part)
        return self.file.write(part)

    def fileno(self) -> int:
        return self.file.fileno()

    def close(self) -> None:
        self.file.close()
        super().close()


def test_a_row_that_was_written_in_part_is_told_and_swallows_no_other(tmp_path: Path) -> None:
    path = tmp_path / "l.jsonl"
    rows = [replace(ROW, task=f"t{n}") for n in range(3)]
    with Ledger(path) as ledger:
        opened = ledger._file
        assert opened._file is not None
        disk = opened._file = Full(opened._file, len(written_row(rows[0])) + 10)
        ledger.append(rows[0])
        with pytest.raises(StoreError, match="no space for a whole row"):
            ledger.append(rows[1])
        disk.room = 10_000
        ledger.append(rows[2])
    read = Ledger(path)
    assert [row.task for row in read.passes.values()] == ["t0", "t2"]
    assert [damage.line for damage in read.damage] == [2]


@pytest.mark.skipif(sys.platform == "win32", reason="no flock")
def test_two_processes_do_not_record_to_one_ledger(tmp_path: Path) -> None:
    with (
        Ledger(tmp_path / "l.jsonl"),
        pytest.raises(StoreError, match="another process is writing"),
        Ledger(tmp_path / "l.jsonl"),
    ):
        pass


def test_another_prompt_or_model_is_recorded_anew(tmp_path: Path) -> None:
    path = tmp_path / "l.jsonl"
    recorded(path, model(), {"none": sources()["none"]}, 3)
    other = model(traits=Traits(name="other", fingerprint="other"))
    recorded(path, other, {"none": sources()["none"]}, 3)
    assert len(other.prompts) == 3
    silenced = sources(frozenset(["fit q0?"]))
    kept = {name: silenced[name] for name in ("none", "one")}
    recorded(path, other, kept, 3)
    loud = {name: sources()[name] for name in ("none", "one")}
    before = len(other.prompts)
    ledger = recorded(path, other, loud, 3)
    assert len(other.prompts) == before + 1, "only the pass whose prompt changed"
    assert ledger.passes["fit", 0, "one", "fit0"].record.status == "decoded"


def test_going_back_to_an_earlier_prompt_decodes_nothing(tmp_path: Path) -> None:
    path, asked = tmp_path / "l.jsonl", model()
    loud = {name: sources()[name] for name in ("none", "one")}
    silent = {name: sources(frozenset(["fit q0?"]))[name] for name in ("none", "one")}
    for kept in (loud, silent, loud):
        ledger = recorded(path, asked, kept, 3)
    assert len(asked.prompts) == 6
    assert ledger.passes["fit", 0, "one", "fit0"].record.status == "decoded"


def test_what_a_parent_recorded_is_copied_not_decoded(tmp_path: Path) -> None:
    asked = model()
    kept = {name: sources()[name] for name in ("none", "one")}
    parent = recorded(tmp_path / "parent.jsonl", asked, kept, 3)
    benchmark = Letters(3)
    recording = Recording(
        side="fit", items=benchmark.load(tmp_path, "fit"), sources={0: kept}, benchmark=benchmark
    )
    with Ledger(tmp_path / "child.jsonl", parent) as child:
        asyncio.run(Recorder(recording, asked, child, lambda progress: None).run(2))
    assert len(asked.prompts) == 6
    assert Ledger(tmp_path / "child.jsonl").passes == parent.passes


def test_a_verified_answer_keeps_its_signals_when_the_first_pass_was_remembered(tmp_path: Path) -> None:
    path = tmp_path / "l.jsonl"
    yes = ScriptedModel(script=lambda p: "yes" if "correct?" in p.messages[-1].content else ("a", -0.5))
    recorded(path, yes, {"none": sources()["none"]}, 2)
    named = sources()
    ledger = recorded(path, yes, {"none": named["none"], "verify": named["verify"]}, 2)
    row, base = (ledger.passes["fit", 0, name, "fit0"].record for name in ("verify", "none"))
    assert (row.calls, row.signals, row.answer) == (1, base.signals, base.answer)


def test_an_endpoint_that_is_gone_stops_the_recording_and_what_was_recorded_is_kept(tmp_path: Path) -> None:
    path, seen = tmp_path / "l.jsonl", []

    def script(prompt: Prompt) -> Reply:
        seen.append(prompt)
        return ModelError("the endpoint is gone") if len(seen) > 4 else ("a", -0.5)

    with pytest.raises(ModelError, match=r"5 passes failed in a row.*the endpoint is gone"):
        recorded(path, ScriptedModel(script=script), {"none": sources()["none"]}, 12)
    assert {row.record.status for row in Ledger(path).passes.values()} == {"decoded"}
    assert len(Ledger(path).passes) == 4


def refusing(question: str, error: Exception) -> ScriptedModel:
    return ScriptedModel(
        script=lambda prompt: error if question in prompt.messages[-1].content else ("a", -0.5)
    )


@pytest.mark.parametrize("error", [RequestError("too long"), ModelError("did not answer within 9 s")])
def test_a_row_that_the_endpoint_refuses_is_a_failed_pass_and_the_recording_goes_on(
    tmp_path: Path, error: ModelError | RequestError
) -> None:
    path, named = tmp_path / "l.jsonl", sources()
    kept = {name: named[name] for name in ("none", "one", "reflect")}
    ledger = recorded(path, refusing("fit q1?", error), kept, 4)
    status = {key: row.record.status for key, row in ledger.passes.items()}
    assert len(status) == 12, "every source of every row has its pass"
    failed = {(source, task) for (_, _, source, task), found in status.items() if found == "failed"}
    assert failed == {("none", "fit1"), ("one", "fit1"), ("reflect", "fit1")}
    row = ledger.passes["fit", 0, "none", "fit1"]
    assert (row.right, row.record.answer, row.record.calls) == (False, "", 1)
    assert str(error) in row.record.error
    again = model()
    recorded(path, again, kept, 4)
    assert again.prompts == [], "a failed pass is not asked again by itself"
    healed = recorded(path, again, kept, 4, retry_failed=True)
    assert {row.record.status for row in healed.passes.values()} == {"decoded"}
    assert len(again.prompts) == 4, "only what had failed: one call each, and two of the critic"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_disk_is_one_sentence_and_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "l.jsonl"
    path.symlink_to("/dev/full")
    ledger = Ledger(tmp_path / "other.jsonl")
    with path.open("ab", buffering=0) as full:
        ledger._file._file = full
        with pytest.raises(StoreError, match="No space left on device; recorded rows are kept"):
            ledger.append(ROW)


CHILD = """
import asyncio, sys
from pathlib import Path
from heedful import ScriptedModel
from tests.protocol.making import recorded, sources

def script(prompt):
    return ("a", -0.5)

named = sources()
ledger_path = Path(sys.argv[1])
from heedful.protocol.ledger import Ledger
append = Ledger.append
def told(self, row):
    append(self, row)
    print(*row.key, flush=True)
Ledger.append = told
recorded(ledger_path, ScriptedModel(script=script), {"none": named["none"], "one": named["one"]}, 400)
"""


@pytest.mark.slow
def test_kill_9_while_recording_loses_nothing_that_was_written(tmp_path: Path) -> None:
    path = tmp_path / "l.jsonl"
    told = set()
    for kill_after in (1, 7, 30, 90, 200):
        child = subprocess.Popen([sys.executable, "-c", CHILD, str(path)], stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        for count, line in enumerate(child.stdout, start=1):
            told.add(tuple(line.split()))
            if count >= kill_after:
                child.send_signal(signal.SIGKILL)
                break
        child.stdout.close()
        child.wait()
        held = {tuple(map(str, key)) for key in Ledger(path).passes}
        assert told <= held
    again = model()
    recorded(path, again, {name: sources()[name] for name in ("none", "one")}, 400)
    assert len(Ledger(path).passes) == 800
    assert len(again.prompts) <= 800 - len(told)


def test_slots_are_kept_full_and_never_exceeded(tmp_path: Path) -> None:
    running, most = 0, 0

    class Counting:
        traits = Traits(name="c", fingerprint="c")

        async def decode(self, prompt: Prompt) -> Decode:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0)
            running -= 1
            return await model().decode(prompt)

        async def aclose(self) -> None:
            """Nothing to close."""

    benchmark = Letters(12)
    items, kept = benchmark.load(tmp_path, "fit"), {"none": sources()["none"]}
    recording = Recording(side="fit", items=items, sources={0: kept}, benchmark=benchmark)
    ledger = Ledger(tmp_path / "l.jsonl")
    with ledger:
        asyncio.run(Recorder(recording, Counting(), ledger, lambda p: None).run(3))
    assert most == 3
