"""With keys, the dashboard shows a caller their own decisions, banks and figures; an admin sees all."""

import asyncio
import base64
import html
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from heedful import Database, SqliteStore, new_entry
from heedful.decision_ids import DIGITS
from heedful.memory.stored import StoredBank
from heedful.serve.callers import Caller, CallerKey, Callers, Rights, key_hash
from heedful.serve.operator_pages import operator_pages
from tests.faulty import FaultyServer, Play, Request, answers
from tests.serve.serving import Answer, Client, make_service, serving

PAGES = ("/", "/memory", "/decisions", "/policy")
WINDOWS = ("?window=hour", "?window=day", "?window=week")
SECRETS = ("What does bob want", "bob's wish", "bobsnote", "Only for bob", "bobsbank", "Bob's own bank")


def wishes(request: Request) -> Play:
    """Unsure without a note about a wish."""
    said = json.dumps(request.body["messages"])
    who = "bob" if "bob want" in said else "ann"
    return answers(f"{who}'s wish", -0.1 if "holds wishes" in said else -0.9)


@dataclass
class Desk:
    """A server with decisions and feedback of ann and of bob."""

    client: Client
    ids: dict[str, str]

    def get(self, who: str, path: str) -> Answer:
        login = base64.b64encode(f"x:{who}".encode()).decode()
        return self.client.send("GET", path, Authorization=f"Basic {login}")

    def page(self, who: str, path: str) -> str:
        answer = self.get(who, path)
        assert answer.status == 200, (who, path, answer.status)
        return html.unescape(answer.body.decode())

    def post(self, who: str, path: str, value: object) -> Answer:
        return self.client.post(path, value, Authorization=f"Bearer {who}")


def caller(name: str, **rights: Any) -> CallerKey:
    return CallerKey(hash=key_hash(name), caller=Caller(name=name, rights=Rights(**rights)))


@contextmanager
def desk(folder: Path) -> Iterator[Desk]:
    store = SqliteStore(Database(folder / "heedful.db"))
    shared = [
        new_entry("The desk holds wishes.", kind="fact", id="desk"),
        new_entry(
            "Only for bob: the desk holds wishes.", kind="fact", id="bobsnote", scope={"caller": "bob"}
        ),
        new_entry("Only for the team of bob.", kind="fact", id="bobsnote-team", scope={"team": "b"}),
    ]
    asyncio.run(store.put("fixed", shared))
    asyncio.run(store.put("bobsbank", [new_entry("Bob's own bank.", kind="fact", id="x")]))
    keys = [caller("ann", banks=("fixed",)), caller("bob", scopes=("team=b",)), caller("root", admin=True)]
    bank = StoredBank(store, "fixed", method="bm25")
    with FaultyServer(wishes) as upstream:
        service = make_service(upstream.url, folder, callers=Callers(keys), store=store, bank=bank)
        with serving(service, operator_pages(service, store)) as client:
            made = Desk(client, {})
            for who, times in (("ann", 1), ("bob", 3)):
                for time in range(times):
                    message = {"role": "user", "content": f"What does {who} want from desk {time}?"}
                    reply = made.post(who, "/v1/chat/completions", {"model": "m", "messages": [message]})
                    made.ids[who] = reply.headers["x-heedful-decision"]
                    given = {"decision": made.ids[who], "answer": f"{who}'s wish"}
                    assert made.post(who, "/v1/feedback", given).status == 200
            yield made


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with desk(tmp_path_factory.mktemp("desk")) as made:
        yield made


def test_no_page_shows_a_caller_anything_of_another(filled: Desk) -> None:
    paths = [
        *(page + window for page in PAGES for window in ("", *WINDOWS)),
        "/decisions?q=bob",
        "/decisions?entry=bobsnote",
        "/decisions?bank=bobsbank",
        "/memory?bank=bobsbank",
        "/memory?sort=recalls",
        "/memory?state=active",
        f"/decisions/{filled.ids['ann']}",
    ]
    for path in paths:
        shown = filled.page("ann", path).replace('value="bob', "").replace("q=bob", "")
        assert not [secret for secret in (*SECRETS, filled.ids["bob"]) if secret in shown], path


def test_a_foreign_decision_is_as_unknown_as_one_that_never_was(filled: Desk) -> None:
    replies = [filled.get("ann", f"/decisions/{id}") for id in (filled.ids["bob"], "0" * DIGITS)]
    texts = [re.sub(f"[0-9a-f]{{{DIGITS}}}", "ID", reply.body.decode()) for reply in replies]
    assert [reply.status for reply in replies] == [404, 404]
    assert texts[0] == texts[1]
    assert filled.get("ann", f"/decisions/{filled.ids['bob'][:20]}").status == 404
    assert filled.get("ann", "/decisions/last").status == 404, "the newest one is bob's"


def test_figures_count_the_callers_own_decisions(filled: Desk) -> None:
    answers_of = {
        who: re.search(r"Answers</dt>\s*<dd[^>]*>\D*(\d+)", filled.page(who, "/"))
        for who in ("ann", "bob", "root")
    }
    assert {who: match[1] for who, match in answers_of.items() if match} == {
        "ann": "1",
        "bob": "3",
        "root": "4",
    }


def test_an_entry_s_recalls_and_evidence_are_the_callers_own(filled: Desk) -> None:
    for who, count in (("ann", "1"), ("root", "4")):
        [row] = [
            row
            for row in filled.page(who, "/memory?bank=fixed").split("<tr")
            if "The desk holds wishes." in row and "Only" not in row
        ]
        recalls, graded, *_ = re.findall(r'data-label="(?:Recalls|Graded tasks)"[^>]*>(\d+)', row)
        assert (recalls, graded) == (count, count), who


def test_bob_and_an_admin_see_what_is_theirs(filled: Desk) -> None:
    assert "Only for the team of bob." in filled.page("bob", "/memory?bank=fixed")
    for who in ("bob", "root"):
        assert "What does bob want" in filled.page(who, "/decisions")
        assert filled.get(who, f"/decisions/{filled.ids['bob']}").status == 200
    assert "What does ann want" not in filled.page("bob", "/decisions")
    assert "What does ann want" in filled.page("root", "/decisions")


def test_only_an_admin_changes_memory_reloads_and_reads_the_counters(filled: Desk) -> None:
    assert "Retire" not in filled.page("ann", "/memory")
    login = base64.b64encode(b"x:ann").decode()
    marked = filled.client.send(
        "POST", "/memory/mark", b"bank=fixed&entry=desk&state=retired", Authorization=f"Basic {login}"
    )
    assert marked.status == 403
    statuses = {
        who: (
            filled.client.send("GET", "/metrics", Authorization=f"Bearer {who}").status,
            filled.post(who, "/v1/admin/reload", {}).status,
        )
        for who in ("ann", "root")
    }
    assert statuses == {"ann": (403, 403), "root": (200, 200)}


def test_readiness_names_parts_to_everybody_and_details_to_admins(tmp_path: Path) -> None:
    keys = Callers([caller("ann"), caller("root", admin=True)])
    service = make_service(
        "http://127.0.0.1:9/v1", tmp_path, callers=keys, without_memory={"bobsbank": "no weights"}
    )
    with serving(service) as client:
        replies = {
            who: client.send("GET", "/readyz", Authorization=f"Bearer {who}").json
            for who in ("", "ann", "root")
        }
    assert (
        replies[""]
        == replies["ann"]
        == {
            "status": "unready",
            "upstream": "an admin's key shows why",
            "without_memory": "an admin's key shows why",
        }
    )
    assert replies["root"]["without_memory"] == {"bobsbank": "no weights"}
