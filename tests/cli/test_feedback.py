"""`heedful feedback`."""

from pathlib import Path

import pytest

from heedful import Database, SqliteJournal
from tests.cli.conftest import Heedful
from tests.serve.test_given_feedback import UNMEANT
from tests.test_feedback import decide


@pytest.mark.parametrize(("answer", "metric", "problem"), UNMEANT)
def test_an_answer_that_cannot_be_meant_is_refused_on_the_command_line(
    answer: str, metric: str, problem: str, tmp_path: Path, heedful: Heedful
) -> None:
    store = tmp_path / "s.db"
    database = Database(store)
    id = decide(journal=SqliteJournal(database)).decision
    database.close()
    words = ("feedback", id, "--answer", answer, "--metric", metric, "--store", str(store))
    done = heedful(*words)
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert problem in done.err
    assert heedful("decisions", "ls", "--graded", "--store", str(store), "--json").json["decisions"] == []
