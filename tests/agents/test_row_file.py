"""Rows survive crashes; damage is counted."""

from pathlib import Path

import msgspec
import pytest

from heedful.agents.agent_workspace import TextRow
from heedful.agents.row_file import RowFile
from heedful.errors import StoreError


def test_a_torn_or_changed_row_is_skipped_and_the_file_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    with RowFile(path, TextRow) as file:
        file.append(TextRow("a", "first"))
        file.append(TextRow("b", "second"))
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"first", b"fisrt") + whole[:20])
    with RowFile(path, TextRow) as file:
        assert (file.rows, file.damaged) == ([TextRow("b", "second")], 2)
        file.append(TextRow("c", "third"))
    assert RowFile(path, TextRow).rows == [TextRow("b", "second"), TextRow("c", "third")]


class EarlierRow(msgspec.Struct, frozen=True):
    digest: str


class LaterRow(msgspec.Struct, frozen=True):
    digest: str
    text: str = "unknown"


def test_a_row_of_an_earlier_version_stays_readable(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    with RowFile(path, EarlierRow) as file:
        file.append(EarlierRow("a"))
    read = RowFile(path, LaterRow)
    assert (read.rows, read.damaged) == ([LaterRow("a")], 0)


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    with (
        RowFile(path, TextRow),
        pytest.raises(StoreError, match="another process is writing"),
        RowFile(path, TextRow),
    ):
        pass
