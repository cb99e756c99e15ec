"""A served request's sampling settings are recorded, and used again by `heedful why --leave-one-out`."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from heedful import Database, SqliteJournal, SqliteStore
from heedful.memory.stored import StoredBank
from tests.cli.conftest import Heedful
from tests.faulty import FaultyServer
from tests.serve.serving import NOTE, make_service, serving
from tests.serve.test_chat_route import unsure
from tests.test_feedback import decide


@pytest.mark.parametrize(
    ("given", "recorded", "sentence"),
    [
        ({"temperature": 0}, {"temperature": 0}, ""),
        (
            {"temperature": 0.7, "top_p": 0.9, "seed": 3, "vendor": 1},
            {"temperature": 0.7, "top_p": 0.9, "seed": 3},
            "the request was sampled (temperature 0.7, top_p 0.9, seed 3): a change may be chance",
        ),
        ({}, {"temperature": None}, "the request was sampled (temperature of the endpoint)"),
    ],
)
def test_leave_one_out_samples_like_the_request(
    given: dict[str, Any], recorded: dict[str, Any], sentence: str, heedful: Heedful, tmp_path: Path
) -> None:
    store = SqliteStore(Database(tmp_path / "heedful.db"))
    asyncio.run(store.put("desk", [NOTE]))
    bank = StoredBank(store, "desk", method="bm25")
    with FaultyServer(unsure) as upstream:
        with serving(make_service(upstream.url, tmp_path, store=store, bank=bank)) as client:
            id = client.ask(**given).headers["x-heedful-decision"]
            assert client.send("GET", f"/v1/decisions/{id}").json["model"]["sampling"] == recorded
        done = heedful("why", id, "--leave-one-out", "--store", str(tmp_path / "heedful.db"))
    assert done.code == 0, done.err
    assert "the answer depends on desk" in done.out
    assert (sentence or "without each") in done.out
    assert ("chance" in done.out) == bool(sentence)
    again = upstream.requests[-1].body
    assert {name: again.get(name) for name in recorded} == recorded


def test_each_piece_of_feedback_has_a_line(heedful: Heedful, tmp_path: Path) -> None:
    store = tmp_path / "s.db"
    database = Database(store)
    id = decide(journal=SqliteJournal(database)).decision
    database.close()
    assert "feedback" not in heedful("why", id, "--store", str(store)).out
    heedful("feedback", id, "--right", "--store", str(store))
    heedful("feedback", id, "--answer", "green", "--store", str(store))
    said = heedful("why", id, "--store", str(store)).out
    given = heedful("why", id, "--store", str(store), "--json").json["feedback"]
    assert "\n  feedback grade: right\n" in said
    assert "\n  feedback answer: green\n" in said
    assert {one["kind"] for one in given} == {"grade", "answer"}
