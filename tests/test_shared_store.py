"""Two servers on one Postgres, one of them killed: the small version of benchmarks/shared_store.py."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.timeout(900)  # six processes start, on two cores beside the other tests
def test_two_servers_lose_nothing_and_count_nothing_twice_when_one_is_killed() -> None:
    words = [sys.executable, "benchmarks/shared_store.py", "--requests", "120", "--kills", "1", "--json"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (".", *sys.path)))}
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    counted = json.loads(done.stdout)
    assert counted["acknowledged"] == 120
    assert counted["evidence"] >= 120
    for name in ("decisions_lost", "feedback_lost", "feedback_twice", "evidence_twice"):
        assert counted[name] == 0, counted
    assert counted["evidence_differences"] == 0, counted
