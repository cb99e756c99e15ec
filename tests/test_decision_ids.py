"""Ids of decisions are distinct, in threads and in forked processes too."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from heedful.decision_ids import DIGITS, DRAWN, new_decision_id

FORK = """
import os
from heedful.decision_ids import new_decision_id
new_decision_id()
child = os.fork()
if child:
    os.waitpid(child, 0)
print(new_decision_id(), flush=True)
"""


def test_ids_are_distinct_and_of_one_form() -> None:
    with ThreadPoolExecutor(4) as pool:
        ids = list(pool.map(lambda _: new_decision_id(), range(5 * DRAWN)))
    assert len(set(ids)) == 5 * DRAWN
    assert {len(id) for id in ids} == {DIGITS}
    assert set("".join(ids)) == set("0123456789abcdef")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform cannot fork")
def test_a_forked_process_draws_its_own_ids() -> None:
    drawn = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, check=True)
    assert len(set(drawn.stdout.split())) == 2
