"""The pages say what the published ledgers say."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_every_table_is_rebuilt_and_a_changed_number_is_found(tmp_path: Path) -> None:
    for name in ("benchmarks", "results"):
        shutil.copytree(ROOT / name, tmp_path / name)
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    [row] = [line for line in page.splitlines() if line.startswith("| the model without memory |")]
    first = row.split(" | ")[1]
    changed = row.replace(first, f"{float(first.rstrip('%')) + 0.1:.1f}%", 1)
    (tmp_path / "README.md").write_text(page.replace(row, changed), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "benchmarks/reproduce.py", "--pages"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stderr.splitlines() == [
        "README.md: the table summary is not what the ledgers say",
        "differences: 1; python benchmarks/reproduce.py --write updates them",
    ]
    assert done.returncode == 1
