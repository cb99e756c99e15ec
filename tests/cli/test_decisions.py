import asyncio
import json
import time
from pathlib import Path

import pytest

from heedful import Database, SqliteJournal
from tests.cli.conftest import Heedful
from tests.test_feedback import decide


@pytest.fixture
def store(tmp_path: Path) -> str:
    return str(tmp_path / "decisions.db")


@pytest.fixture
def made(store: str) -> list[str]:
    """Three decisions: one that accepted memory, and a trial that used it and one that held it out."""
    database = Database(store)
    journal = SqliteJournal(database)
    coins: tuple[tuple[float, ...], ...] = ((), (0.1, 0.4), (0.1, 0.6))
    ids = [decide(journal=journal, coins=draw, question=f"Sky {n}?").decision for n, draw in enumerate(coins)]
    database.close()
    return ids


def listed(heedful: Heedful, store: str, *words: str) -> list[str]:
    done = heedful("decisions", "ls", "--store", store, "--json", *words)
    assert done.code == 0, done.err
    return [decision["id"] for decision in done.json["decisions"]]


def test_decisions_are_listed_newest_first_and_filtered(
    heedful: Heedful, store: str, made: list[str]
) -> None:
    assert listed(heedful, store) == made[::-1]
    assert listed(heedful, store, "--limit", "1") == made[2:]
    assert listed(heedful, store, "--verdict", "rollback") == [made[2]]
    assert listed(heedful, store, "--route", "keep") == []
    assert listed(heedful, store, "--bank", "colours") == made[::-1]
    assert listed(heedful, store, "--bank", "other") == []
    assert listed(heedful, store, "--entry", "sky") == made[::-1]
    assert listed(heedful, store, "--entry", "green") == []
    assert listed(heedful, store, "--since", "1h") == made[::-1]
    assert listed(heedful, store, "--until", "1h") == []
    assert listed(heedful, store, "--user", "ana") == []
    heedful("feedback", made[0], "--right", "--store", store)
    assert listed(heedful, store, "--graded") == [made[0]]
    assert listed(heedful, store, "--ungraded") == [made[2], made[1]]
    table = heedful("decisions", "ls", "--store", store)
    assert made[1] in table.out
    assert "held out" not in table.out


def test_show_tells_the_trial_and_the_feedback(heedful: Heedful, store: str, made: list[str]) -> None:
    heedful("feedback", made[2], "--answer", "blue", "--store", store)
    told = heedful("decisions", "show", made[2][:-2], "--store", store)
    assert "the coin of a trial held memory out, so the first answer stands" in told.out
    assert "memory was held out, for 50% of answers" in told.out
    assert "feedback answer: blue" in told.out
    shown = heedful("decisions", "show", made[2], "--store", store, "--json").json
    assert (shown["trial"]["allowed"], shown["feedback"][0]["grades"]) == (False, [True, False])


def test_export_writes_whole_decisions_oldest_first(
    heedful: Heedful, store: str, made: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "out.jsonl"
    assert heedful("decisions", "export", str(file), "--store", store).code == 0
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert [row["id"] for row in rows] == made
    assert heedful("decisions", "export", "--store", store).out == file.read_text()
    assert heedful("decisions", "export", "--store", store, "--json").json["decisions"] == rows
    file.unlink()
    told = heedful("decisions", "export", str(file), "--store", store, "--json")
    assert told.json == {"written": 3, "file": str(file)}
    assert [json.loads(line) for line in file.read_text().splitlines()] == rows


def test_stats_count_grades_and_the_effect_of_the_trial(
    heedful: Heedful, store: str, made: list[str]
) -> None:
    for id, said in ((made[0], "--wrong"), (made[1], "--right"), (made[2], "--wrong")):
        heedful("feedback", id, said, "--store", store)
    counted = heedful("decisions", "stats", "--store", store, "--json").json
    assert (counted["decisions"], counted["graded"]["right"], counted["graded"]["n"]) == (3, 1, 3)
    assert counted["reasons"] == {"gate": 2, "held out": 1}
    trials = counted["trials"]
    assert (trials["begun"], trials["decided"], trials["difference"]) == (2, 2, 1.0)
    assert trials["low"] < 1.0
    told = heedful("decisions", "stats", "--store", store).out
    assert "memory used: 1 of 1 right, held out: 0 of 1; difference +100.0%" in told


def test_feedback_tells_what_it_proves_and_counts_once(heedful: Heedful, store: str, made: list[str]) -> None:
    told = heedful("feedback", made[0], "--answer", "green", "--store", store)
    assert (
        told.out
        == f"{made[0]}: first wrong, notes right; evidence: 1 help, 0 hurt, 0 no difference in bank colours\n"
    )
    again = heedful("feedback", made[0], "--answer", "green", "--store", store, "--json").json
    assert (again["new"], [seen["utility"] for seen in again["evidence"]]) == (False, [1.0])
    alone = heedful("feedback", made[0], "--right", "--store", store)
    assert alone.code == 0
    shown = heedful("bank", "evidence", "--bank", "colours", "--store", store)
    assert "unknown bank" in shown.err, "evidence about a bank outside the store is kept, not shown"


def test_an_answer_that_contains_the_target_but_is_graded_wrong_is_pointed_out(
    heedful: Heedful, store: str
) -> None:
    database = Database(store)
    decision = decide(first="It is blue.", journal=SqliteJournal(database)).decision
    database.close()
    told = heedful("feedback", decision, "--answer", "blue", "--store", store)
    assert "--metric contains" in told.err
    better = heedful(
        "feedback", decision, "--answer", "blue", "--metric", "contains", "--store", store, "--json"
    )
    assert better.json["grades"] == [True, False]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "give one of --right"),
        (("--right", "--wrong"), "give one of --right"),
        (("--answer", " "), "the right answer is empty"),
        (("--right", "--metric", "text"), "--metric needs --answer"),
        (("--answer", "x", "--metric", "silly"), "unknown metric 'silly'"),
    ],
)
def test_bad_feedback_gets_one_sentence(
    heedful: Heedful, store: str, made: list[str], words: tuple[str, ...], message: str
) -> None:
    done = heedful("feedback", made[0], *words, "--store", store)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert done.err.count("\n") == 1


def test_feedback_on_an_unknown_decision_is_refused(heedful: Heedful, store: str, made: list[str]) -> None:
    done = heedful("feedback", "zzz", "--right", "--store", store)
    assert (done.code, done.out) == (2, "")
    assert "'zzz' is not a recorded decision" in done.err


def test_feedback_names_the_stronger_kind_and_a_bank_that_is_not_in_the_store(
    heedful: Heedful, store: str, made: list[str]
) -> None:
    told = heedful("feedback", made[0], "--answer", "blue", "--store", store)
    assert "bank colours is not in this store" in told.err
    assert "stronger" not in told.out
    heedful("bank", "add", "The sky is green.", "--id", "sky", "--bank", "colours", "--store", store)
    told = heedful("feedback", made[0], "--wrong", "--store", store)
    assert told.err == ""
    assert "(from the answer given before, which is stronger than this grade)" in told.out


def test_a_bundle_that_is_another_file_is_named_as_such(heedful: Heedful, tmp_path: Path) -> None:
    file = tmp_path / "q.jsonl"
    file.write_text("{}\n{}\n")
    done = heedful("ask", "q", "--policy", str(file))
    assert done.code == 2
    assert f"{file} is not a bundle" in done.err


def test_purge_takes_the_last_decision_and_no_ambiguous_one(
    heedful: Heedful, store: str, made: list[str]
) -> None:
    refused = heedful("purge", "--decision", "zzz", "--store", store)
    assert (refused.code, "'zzz' is not a recorded decision" in refused.err) == (2, True)
    assert heedful("purge", "--decision", "last", "--store", store).code == 0
    assert listed(heedful, store) == made[1::-1]


def test_a_time_that_cannot_be_read_names_dates_and_spans(
    heedful: Heedful, store: str, made: list[str]
) -> None:
    done = heedful("decisions", "ls", "--since", "yesterday", "--store", store)
    assert done.code == 2
    assert "write it as 2026-01-31 or 2026-01-31T12:00, or as a span before now such as 7d" in done.err


def test_purge_by_age_and_by_decision(heedful: Heedful, store: str, made: list[str]) -> None:
    counted = heedful("purge", "--decision", made[0], "--dry-run", "--store", store, "--json").json
    assert counted == {"entries": 0, "decisions": 1, "deleted": False}
    assert listed(heedful, store) == made[::-1]
    assert "0 entries, 1 decision\n" in heedful("purge", "--decision", made[0][:-4], "--store", store).out
    assert listed(heedful, store) == [made[2], made[1]]
    assert heedful("purge", "--keep", "1h", "--store", store, "--json").json["decisions"] == 0
    with Database(store).writing() as connection:
        connection.execute("UPDATE decisions SET at = ?", (time.time() - 7200,))
    assert heedful("purge", "--keep", "1h", "--store", store, "--json").json["decisions"] == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("purge",), "give one of --entry"),
        (("purge", "--entry", "x"), "give one of --entry"),
        (("purge", "--user", "a", "--decision", "b"), "give one of --entry"),
        (("purge", "--user", "a", "--with-decisions"), "--with-decisions needs --bank"),
        (("purge", "--keep", "soon"), "'soon' is not a span of time"),
        (("decisions", "ls", "--since", "soon"), "'soon' is not a time"),
        (("decisions", "ls", "--since", "1d", "--until", "2d"), "is not after"),
    ],
)
def test_bad_words_get_one_sentence(
    heedful: Heedful, store: str, words: tuple[str, ...], message: str
) -> None:
    done = heedful(*words, "--store", store)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_live_evidence_reaches_govern(heedful: Heedful, store: str) -> None:
    database = Database(store)
    journal = SqliteJournal(database)
    ids = [decide(journal=journal, question=f"Sky {n}?").decision for n in range(25)]
    database.close()
    heedful(
        "bank",
        "add",
        "The sky is green.",
        "--kind",
        "fact",
        "--id",
        "sky",
        "--bank",
        "colours",
        "--store",
        store,
    )
    for id in ids:
        heedful("feedback", id, "--answer", "blue", "--store", store)
        heedful("feedback", id, "--answer", "blue", "--store", store)
    found = heedful("govern", "--bank", "colours", "--max-share", "1", "--store", store, "--json").json
    assert [(going["entry"], going["tasks"], going["hurts"]) for going in found["going"]] == [("sky", 25, 25)]
    assert asyncio.run(SqliteJournal(Database(store)).find("last")).answer == "green"
