"""`--store postgresql://…`: every command, and what is said when it does not work."""

from pathlib import Path

import pytest

from tests.cli.conftest import Heedful
from tests.faulty import FaultyServer, answers
from tests.test_extras import without

UNREACHABLE = "postgresql://ana:s3cret@127.0.0.1:1/heedful"


def test_the_commands_of_a_bank_work_in_postgres(heedful: Heedful, postgres_url: str, tmp_path: Path) -> None:
    at = ("--store", postgres_url)
    assert heedful("bank", "add", "The desk opens at 7 am.", "--id", "desk", *at).code == 0
    assert heedful("bank", "retire", "desk", "--reason", "closed", *at).code == 0
    shown = heedful("bank", "show", "de", *at, "--json").json
    assert (shown["id"], shown["state"], shown["reason"]) == ("desk", "retired", "closed")
    assert [change["state"] for change in heedful("bank", "audit", *at, "--json").json["changes"]] == [
        "retired"
    ]
    assert heedful("bank", "restore", "desk", *at).code == 0
    assert heedful("bank", "export", str(tmp_path / "out.jsonl"), *at).code == 0
    assert "7 am" in (tmp_path / "out.jsonl").read_text()
    assert heedful("purge", "--entry", "desk", "--bank", "default", "--dry-run", *at, "--json").json == {
        "entries": 1,
        "decisions": 0,
        "deleted": False,
    }
    assert heedful("purge", "--entry", "desk", "--bank", "default", *at).code == 0
    assert heedful("bank", "ls", *at, "--json").json["banks"] == {}


def test_answers_are_explained_graded_and_purged_in_postgres(heedful: Heedful, postgres_url: str) -> None:
    at = ("--store", postgres_url)
    with FaultyServer(lambda request: answers("7 am", -0.01)) as server:
        asked = heedful("ask", "When?", "--url", server.url, "--model", "m", *at, "--json")
    assert asked.json["answer"] == "7 am"
    id = asked.json["decision"]
    assert heedful("why", "last", *at, "--json").json["id"] == id
    assert heedful("feedback", id, "--right", *at, "--json").json["new"] is True
    assert heedful("feedback", id, "--right", *at, "--json").json["new"] is False
    assert [d["id"] for d in heedful("decisions", "ls", "--graded", *at, "--json").json["decisions"]] == [id]
    assert heedful("purge", "--decision", id, *at, "--json").json["decisions"] == 1
    purged = heedful("why", id, *at)
    assert (purged.code, "was purged on" in purged.err) == (2, True)


def test_the_doctor_names_the_versions(heedful: Heedful, postgres_url: str) -> None:
    checks = heedful("doctor", "--store", postgres_url, "--json").json["checks"]
    [store] = [check for check in checks if check["name"] == "store"]
    assert store["ok"]
    assert "Postgres 1" in store["detail"]
    assert "pgvector 0." in store["detail"]


def test_a_store_that_cannot_be_reached_is_one_sentence_without_the_password(heedful: Heedful) -> None:
    for words in (("bank", "ls"), ("decisions", "ls"), ("serve", "--port", "0"), ("why", "last")):
        done = heedful(*words, "--store", UNREACHABLE)
        assert (done.code, done.out) == (1, "")
        assert "cannot be reached" in done.err
        assert done.err.count("\n") == 1
        assert "s3cret" not in done.err


@pytest.mark.parametrize(
    "place",
    [
        "postgresql:/ana:s3cret@127.0.0.1/db",
        "postgresql:://ana:s3cret@127.0.0.1/db",
        "postgresql//ana:s3cret@127.0.0.1/db",
        "PostgreSQL://ana:s3cret@127.0.0.1/db",
        "host=127.0.0.1 user=ana password=s3cret",
    ],
)
def test_a_misspelt_url_is_no_file_and_is_not_shown(
    place: str, heedful: Heedful, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for words in (("bank", "ls", "--store", place), ("store", "move", place, "new.db")):
        done = heedful(*words)
        assert (done.code, "write postgresql://USER:PASSWORD@HOST" in done.err) == (2, True), done.err
        assert "s3cret" not in done.err
    assert list(tmp_path.iterdir()) == []


def test_a_store_without_a_name_is_refused(heedful: Heedful) -> None:
    done = heedful("bank", "ls", "--store", "")
    assert (done.code, "the store has no name" in done.err) == (2, True), done.err


def test_an_answer_does_not_need_the_store(heedful: Heedful) -> None:
    with FaultyServer(lambda request: answers("7 am", -0.01)) as server:
        asked = heedful("ask", "When?", "--url", server.url, "--model", "m", "--store", UNREACHABLE, "--json")
    assert (asked.code, asked.json["answer"]) == (0, "7 am")
    assert "answering without memory" in asked.err
    assert "s3cret" not in asked.out + asked.err


def test_a_missing_driver_is_named_with_its_pip_line(
    heedful: Heedful, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    without(monkeypatch, "postgres")
    for name in [name for name in sys.modules if name.startswith("heedful.memory.postgres.")]:
        monkeypatch.delitem(sys.modules, name)
    done = heedful("bank", "ls", "--store", UNREACHABLE)
    assert done.code == 3
    assert "pip install 'heedful[postgres]'" in done.err


def test_an_unknown_scheme_is_refused(heedful: Heedful) -> None:
    done = heedful("bank", "ls", "--store", "mysql://127.0.0.1/x")
    assert (done.code, "does not know mysql://" in done.err) == (2, True)
