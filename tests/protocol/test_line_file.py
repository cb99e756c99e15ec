"""Files of lines, and their packed form."""

import gzip
from pathlib import Path

import pytest

from heedful.errors import StoreError
from heedful.protocol.ledger import Ledger
from heedful.protocol.line_file import LineFile, has_lines, pack, packed, read_lines
from tests.making import ledger_row

ROWS = [ledger_row("none", f"t{n}", text="a", answer="a") for n in range(3)]


def test_a_packed_ledger_is_read_line_by_line_as_before(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with Ledger(path) as ledger:
        for row in ROWS[:2]:
            ledger.append(row)
    lines = read_lines(path)
    pack(path)
    assert (path.exists(), has_lines(path)) == (False, True)
    assert read_lines(path) == lines
    assert list(Ledger(path).passes.values()) == ROWS[:2]
    assert gzip.decompress(packed(path).read_bytes()).splitlines() == lines[:-1]


def test_packing_the_same_lines_gives_the_same_bytes(tmp_path: Path) -> None:
    contents = []
    for name in ("a", "b"):
        path = tmp_path / name
        path.write_bytes(b"one\ntwo\n")
        pack(path)
        contents.append(packed(path).read_bytes())
    assert contents[0] == contents[1]


def test_a_packed_file_is_unpacked_before_a_line_is_appended(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with Ledger(path) as ledger:
        ledger.append(ROWS[0])
    pack(path)
    with Ledger(path) as ledger:
        ledger.append(ROWS[2])
    assert not packed(path).exists()
    assert list(Ledger(path).passes.values()) == [ROWS[0], ROWS[2]]


def test_the_file_itself_counts_if_a_crash_left_both_forms(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"old\n")
    pack(path)
    path.write_bytes(b"old\nnew\n")
    assert read_lines(path) == [b"old", b"new", b""]
    with LineFile(path) as file:
        file.append(b"newer\n")
    assert (read_lines(path)[:-1], packed(path).exists()) == ([b"old", b"new", b"newer"], False)


def test_a_damaged_packed_file_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"line\n" * 100)
    pack(path)
    packed(path).write_bytes(packed(path).read_bytes()[:-9])
    with pytest.raises(StoreError, match="is damaged"):
        read_lines(path)
