"""Rows of vectors survive crashes and several writers."""

import subprocess
import sys
from pathlib import Path

import numpy as np

from heedful.memory.index import Floats
from heedful.memory.vector_file import MISSING, VectorFile

KEYS = [bytes([n]) * 32 for n in range(9)]


def vectors(*numbers: int) -> Floats:
    return np.array([[n, n + 0.5] for n in numbers], np.float32)


def stored(file: VectorFile, *keys: bytes) -> list[float]:
    return [float(file.rows()[place][0]) for place in file.places(keys)]


def data(folder: Path) -> Path:
    [file] = folder.glob("*.f32")
    return file


def test_rows_are_found_again_and_a_known_key_keeps_its_row(tmp_path: Path) -> None:
    VectorFile(tmp_path, "m").append(KEYS[:2], vectors(0, 1))
    again = VectorFile(tmp_path, "m")
    again.append(KEYS[1:3], vectors(7, 2))
    assert stored(again, *KEYS[:3]) == [0, 1, 2]
    assert again.places([KEYS[8]]).tolist() == [MISSING]


def test_a_torn_tail_is_overwritten(tmp_path: Path) -> None:
    VectorFile(tmp_path, "m").append(KEYS[:2], vectors(0, 1))
    with open(data(tmp_path), "ab") as torn:
        torn.write(b"half a row" * 3)
    again = VectorFile(tmp_path, "m")
    again.append(KEYS[2:3], vectors(2))
    assert stored(again, *KEYS[:3]) == [0, 1, 2]


def test_lost_rows_are_forgotten_and_their_places_are_void(tmp_path: Path) -> None:
    file = VectorFile(tmp_path, "m")
    file.append(KEYS[:3], vectors(0, 1, 2))
    with open(data(tmp_path), "r+b") as cut:
        cut.truncate(2 * 8 + 3)
    again = VectorFile(tmp_path, "m")
    assert again.places(KEYS[:3]).tolist() == [0, 1, MISSING]
    assert again.generation
    again.append(KEYS[3:4], vectors(3))
    assert stored(again, KEYS[0], KEYS[1], KEYS[3]) == [0, 1, 3]


def test_another_encoder_starts_anew(tmp_path: Path) -> None:
    file = VectorFile(tmp_path, "m")
    file.append(KEYS[:2], vectors(0, 1))
    before = file.generation
    file.append(KEYS[2:3], np.ones((1, 5), np.float32))
    assert file.generation != before
    assert file.places(KEYS[:3]).tolist() == [MISSING, MISSING, 0]


def test_a_forgotten_row_is_overwritten_and_indexes_are_deleted(tmp_path: Path) -> None:
    file = VectorFile(tmp_path, "m")
    file.append(KEYS[:3], vectors(5, 6, 7))
    (tmp_path / "b-3-x.index").write_bytes(b"holds copies")
    file.forget([KEYS[1]])
    assert np.float32(6).tobytes() not in data(tmp_path).read_bytes()
    assert stored(file, KEYS[0], KEYS[2]) == [5, 7]
    assert list(tmp_path.glob("*.index")) == []


WRITING = """
import sys
from pathlib import Path
import numpy as np
from heedful.memory.vector_file import VectorFile
file, step = VectorFile(Path(sys.argv[1]), "m"), int(sys.argv[2])
for n in range(0, 120, step):
    file.append([n.to_bytes(32, "big")], np.full((1, 2), n, np.float32))
"""


def test_two_processes_write_the_same_cache(tmp_path: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", WRITING, str(tmp_path), step]) for step in ("2", "3")]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    written = [n for n in range(120) if n % 2 == 0 or n % 3 == 0]
    keys = [n.to_bytes(32, "big") for n in written]
    assert stored(VectorFile(tmp_path, "m"), *keys) == written
