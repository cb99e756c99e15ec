"""A short soak: `benchmarks/soak.py` runs the long one."""

import json
import subprocess
import sys
from pathlib import Path


def test_every_answer_survives_failing_second_passes_and_a_failing_store() -> None:
    words = ("--requests", "400", "--concurrency", "20", "--json")
    command = [sys.executable, "-m", "benchmarks.soak", *words]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout)
    assert result["requests"] == 400
    assert (result["lost"], result["decisions"]["missing"]) == ([], 0)
    assert len(result["second_passes_failed"]) == 10, "every way to fail occurs"
    assert set(result["store_calls"]) == {"works", "raises", "hangs", "locked", "read-only"}
    assert min(result["kept"], result["replaced"], result["feedback"]["acknowledged"]) > 0
