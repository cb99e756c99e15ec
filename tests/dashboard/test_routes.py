"""The pages over HTTP: what they show, whom they let in, and how they fail."""

import asyncio
import re
import sys
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.testclient import TestClient

from heedful import Database, Message, MissingError, SqliteJournal, SqliteStore, StoreError
from heedful.arms import value
from heedful.dashboard.routes import dashboard_routes
from heedful.dashboard.view import DashboardView, LockedPolicy, Viewer
from heedful.memory.entries import new_entry
from heedful.priors import read_prior
from heedful.records import Decision
from heedful.types import Assignment, Entry, Evidence, Mark
from tests.dashboard.conftest import ANA, LOCKED, client_of, view_of
from tests.dashboard.made_up import NOW, fill, made_up
from tests.test_extras import without

PAGES = ("/", "/memory", "/decisions", "/policy")
READER = Viewer(name="bo")


def accepted() -> Decision:
    """A decision whose answer memory changed for the worse, as its feedback says."""
    made = (made_up(at, n=400) for at in range(400))
    return next(
        one.decision
        for one in made
        if one.feedback and one.decision.chosen == 0 and one.feedback.grades == (True, False)
    )


def words(client: TestClient, path: str, status: int = 200) -> str:
    """The text of a page, without its tags."""
    response = client.get(path)
    assert response.status_code == status, response.text
    return " ".join(unescape(re.sub("<[^>]+>", " ", response.text)).split())


@pytest.mark.parametrize(
    "path", [*PAGES, f"/decisions/{accepted().id}", "/dashboard.css", "/decisions/nothing"]
)
def test_every_response_has_the_security_headers_and_no_inline_style_or_script(
    client: TestClient, path: str
) -> None:
    response = client.get(path)
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert response.headers["x-content-type-options"] == "nosniff"
    assert not re.search(
        r"<script|<style|\sstyle=|\son\w+=|https?://", response.text.replace("http://127.0.0.1:9/v1", "")
    )


@pytest.mark.parametrize("path", PAGES)
def test_every_page_is_labelled_for_keyboards_and_screen_readers(client: TestClient, path: str) -> None:
    page = client.get(path).text
    assert '<html lang="en">' in page
    assert '<a href="#content" class="skip">' in page
    assert f'<a href="{path}" aria-current="page">' in page
    assert page.count("<table") == page.count("<caption>")
    assert len(re.findall("<svg(?![^>]*aria-label)", page)) == 0
    assert len(re.findall(r"<(?:input|select)(?![^>]*hidden)", page)) == page.count("<label>")


def test_today_says_in_one_sentence_whether_memory_helps(client: TestClient) -> None:
    page = words(client, "/")
    assert re.search(r"Memory helped \d+ and hurt \d+ of \d+ graded answers in the last 24 hours", page)
    assert "Answers 400" in page
    assert "Where a coin decided" in page
    assert re.search(r"With a second pass 2\.00 176 \d\.\d\d s \d\.\d\d s \d+", page)
    assert re.search("in the last hour", words(client, "/?window=hour"))
    assert "in the last 24 hours" in words(client, "/?window=century")


def test_memory_lists_entries_by_harm_and_by_filters(client: TestClient) -> None:
    page = words(client, "/memory")
    assert page.index("Refunds take 30 working days.") < page.index("Refunds take 3 working days.")
    assert "author bo 2 " in page, "groups are listed"
    protected = words(client, "/memory?state=protected&sort=id")
    assert "48 bags, in six layers" in protected
    assert "Refunds" not in protected
    grouped = words(client, "/memory?group=author+bo&sort=recalls&bank=desk&page=1")
    assert ("Refunds take 30" in grouped, "Refunds take 3 " in grouped) == (True, False)
    assert "No entry passes these filters" in words(client, "/memory?state=retired")


def test_harm_in_use_comes_before_entries_without_grades_and_before_retired_ones(tmp_path: Path) -> None:
    outcomes = {"mixed": (6, 9), "good": (0, 3), "harmful": (2, 0), "retired": (9, 0), "ungraded": (0, 0)}
    entries = {id: new_entry(f"About {id}.", kind="fact", id=id) for id in outcomes}
    evidence = [
        Evidence(entry=id, version=entries[id].digest, task=f"{id} {at}", utility=-1 if at < hurts else 1)
        for id, (hurts, helps) in outcomes.items()
        for at in range(hurts + helps)
    ]
    database = Database(tmp_path / "s.db")
    store = SqliteStore(database)
    asyncio.run(store.put("desk", list(entries.values())))
    asyncio.run(store.observe("desk", evidence))
    asyncio.run(store.mark("desk", [Mark(entry="retired", state="retired", reason="harm")]))
    page = words(client_of(view_of(database)), "/memory")
    order = sorted(outcomes, key=lambda id: page.index(f"About {id}."))
    assert order == ["harmful", "mixed", "good", "ungraded", "retired"]
    database.close()


def test_many_entries_come_in_pages(tmp_path: Path) -> None:
    database = Database(tmp_path / "s.db")
    entries = [Entry(id=f"e{at:03}", kind="fact", text=f"Fact {at}.") for at in range(120)]
    asyncio.run(SqliteStore(database).put("many", entries))
    client = client_of(view_of(database, viewer=READER))
    assert "page 1 of 3, 120 entries" in words(client, "/memory")
    last = words(client, "/memory?sort=id&page=3")
    assert ("Fact 119." in last, "Fact 99." in last, "Next" in last) == (True, False, False)
    database.close()


def test_a_script_in_an_entry_stays_text(client: TestClient) -> None:
    page = client.get("/memory").text
    assert "&lt;script&gt;document.title" in page
    assert "<script" not in page


def test_decisions_are_searched_filtered_and_paged(client: TestClient) -> None:
    assert "Older →" in words(client, "/decisions")
    second = words(client, "/decisions?page=2")
    assert "← Newer" in second
    assert words(client, "/decisions?page=x") == words(client, "/decisions")
    assert "parcels" not in words(client, "/decisions?q=PALLET")
    kept = words(client, "/decisions?route=keep&graded=yes&window=day&bank=desk")
    assert ("rolled back" in kept.partition("Time")[2].partition("Apply")[2], "right answer:" in kept) == (
        False,
        True,
    )
    assert "No decision passes" in words(client, "/decisions?entry=nobody")
    assert "No decision passes" in words(client, "/decisions?route=keep&verdict=accept")
    assert "No decision passes" in words(client, "/decisions?page=999999")


def test_a_decision_shows_both_answers_with_the_difference_and_the_reasons(client: TestClient) -> None:
    decision = accepted()
    page = client.get(f"/decisions/{decision.id}").text
    assert "<mark>3</mark>" in page
    assert "<mark>30</mark>" in page
    text = words(client, f"/decisions/{decision.id[:-4]}")
    assert "First answer right" in text
    assert "Second answer: notes given to the user wrong" in text
    assert "Refunds take 30 working days. old-refunds desk 0.82" in text
    assert "guards pass: accept (margin met)" in text
    assert "right answer: 3 working days" in text


@pytest.mark.parametrize(
    "query",
    [
        "q=%00",
        "q=%ff",
        f"q={'%25' * 9000}",
        "page=%D9%A3",
        "page=-1",
        "window=",
        "graded=maybe",
        "bank=%3Cb%3E",
        "&&=",
    ],
)
@pytest.mark.parametrize("path", PAGES)
def test_no_parameter_breaks_a_page(client: TestClient, path: str, query: str) -> None:
    assert client.get(f"{path}?{query}").status_code == 200


def test_a_conversation_and_a_scope_are_shown(database: Database) -> None:
    turn = Message(role="user", content="Hello <there>")
    decision = accepted()
    task = replace(decision.task, earlier=(turn,), scope={"user": "cem"})
    asyncio.run(SqliteJournal(database).record(replace(decision, id="talk", task=task)))
    text = words(client_of(view_of(database)), "/decisions/talk")
    assert "Conversation before the question: 1 message user Hello <there>" in text
    assert "Scope user=cem" in text


def test_long_texts_are_shortened_and_the_page_says_how_to_get_them(database: Database) -> None:
    decision = accepted()
    turns = tuple(Message(role="user", content=f"turn {at} " + "t" * 9_000) for at in range(300))
    task = replace(decision.task, question="q" * 2_500_000, earlier=turns)
    first = replace(decision.first, text="f" * 100_000, answer="g" * 100_000)
    record = replace(decision, id="long", task=task, first=first, answer="a" * 30_000)
    asyncio.run(SqliteJournal(database).record(record))
    client = client_of(view_of(database))
    page = words(client, "/decisions/long")
    assert len(page) < 150_000
    assert "[2,480,000 more characters]" in page
    assert "heedful decisions show long --json" in page
    assert "300 messages, the last 2 are shown user turn 298" in page
    assert "--json" not in words(client, f"/decisions/{decision.id}")


def test_without_the_extra_the_routes_name_its_pip_line(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    without(monkeypatch, "serve")
    monkeypatch.setitem(sys.modules, "starlette.routing", None)
    with pytest.raises(MissingError, match=r"pip install 'heedful\[serve\]'"):
        dashboard_routes(view_of(database))


def test_an_unknown_decision_is_not_found_and_the_page_says_what_to_do(client: TestClient) -> None:
    page = words(client, "/decisions/nothing", 404)
    assert "'nothing' is not a recorded decision; the header x-heedful-decision of an answer names it" in page
    assert "heedful ask" not in page
    several = words(client, "/decisions/0000", 404)
    assert "give a longer id; the header x-heedful-decision of an answer names it" in several


def test_the_policy_page_marks_the_threshold_and_what_moved(database: Database) -> None:
    locked = words(client_of(view_of(database, locked=LOCKED)), "/policy")
    assert "Nothing changed since the lock." in locked
    assert "threshold −0.6" in locked
    assert "graded first answers" in locked
    moved = client_of(view_of(database, locked=replace(LOCKED, moved=("source notes",))))
    assert "source notes changed since the lock." in words(moved, "/policy")
    other = replace(LOCKED, policy=replace(LOCKED.policy, threshold=-0.7))
    page = words(client_of(view_of(database, locked=other)), "/policy")
    assert "Another policy gave 400 of 400 answers in the last 7 days." in page
    assert "0 first answers of this policy are graded; a curve needs at least 20." in page


def test_the_policy_page_says_which_answers_its_chart_counts(database: Database) -> None:
    decision = made_up(0, n=400).decision
    journal = SqliteJournal(database)
    asyncio.run(journal.record(replace(decision, id="unknown", confidence=None)))
    asyncio.run(journal.record(replace(decision, id="other", policy_id="other")))
    page = words(client_of(view_of(database, locked=LOCKED)), "/policy")
    assert "The chart counts 400 of 402 answers in the last 7 days; " in page
    assert "it leaves out 1 of another policy and 1 without a confidence. Today counts every answer" in page


def test_the_policy_page_tells_of_a_running_rollout(database: Database) -> None:
    client = client_of(view_of(database, locked=LOCKED))
    page = words(client, "/policy")
    assert "Randomised trial: in 20% of the answers a coin decides" in page
    assert "Rollout" not in page
    canary = Assignment(mode="canary", arm="first", share=0.1, key="k")
    decision = replace(made_up(0, n=400).decision, id="canary", at=NOW, assignment=canary)
    asyncio.run(SqliteJournal(database).record(decision))
    page = words(client, "/policy")
    assert "Rollout, canary: the policy chooses the answers of 10% of the users" in page
    assert "The newest such answer: 2026-09-21 14:13 UTC" in page


def test_the_policy_page_names_a_prior_as_a_shipped_one(database: Database) -> None:
    policy = value(read_prior("number").trees, ("notes",))
    page = words(client_of(view_of(database, locked=LockedPolicy(policy=policy))), "/policy")
    assert "(by the shipped prior “number”)" in page


def test_a_value_policy_shows_expected_gain_against_cost(tmp_path: Path) -> None:
    fill(tmp_path / "v.db", 200, by_value=True)
    database = Database(tmp_path / "v.db")
    client = client_of(view_of(database))
    page = words(client, "/policy")
    assert "expected gain minus cost of asking memory" in page
    assert "The dotted diagonal is perfect." in page
    text = words(client, "/decisions/last")
    assert "expected gain" in text
    assert "First answer: 60% likely right, because of -0.40 the mean log-prob of its tokens" in text
    database.close()


def test_an_empty_store_has_pages_that_say_so(tmp_path: Path) -> None:
    database = Database(tmp_path / "empty.db")
    client = client_of(view_of(database))
    assert "No answers in the last 24 hours." in words(client, "/")
    assert "There are no banks yet" in words(client, "/memory")
    assert "No decision passes these filters." in words(client, "/decisions")
    assert "No policy is known" in words(client, "/policy")
    database.close()


def test_a_store_that_fails_is_named_without_a_traceback(database: Database) -> None:
    class Broken(SqliteStore):
        async def banks(self) -> dict[str, int]:
            raise StoreError("the store is locked; wait and try again")

    view = replace(view_of(database), store=Broken(database))
    assert "the store is locked; wait and try again" in words(client_of(view), "/memory", 503)


def test_who_is_refused_by_the_viewer_function_sees_nothing(database: Database) -> None:
    def stranger(request: Request) -> Viewer:
        raise HTTPException(401)

    client = client_of(replace(view_of(database), viewer=stranger))
    assert [client.get(path).status_code for path in PAGES] == [401] * 4
    assert client.post("/memory/mark").status_code == 401


def form(client: TestClient, **changed: str) -> dict[str, str]:
    """The fields of the form that retires `old-refunds`, as a browser would send them."""
    page = client.get("/memory").text
    found = next(part for part in page.split("<form") if 'value="old-refunds"' in part)
    fields = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', unescape(found)))
    return {**fields, "reason": "outdated", **changed}


SAME_ORIGIN = {"origin": "http://dashboard.test"}


def state(view: DashboardView, entry: str = "old-refunds") -> tuple[str, str]:
    known = asyncio.run(view.store.entry("desk", entry))
    return known.state, known.reason


def test_an_admin_retires_and_restores_an_entry_with_a_reason(database: Database) -> None:
    view = view_of(database)
    client = client_of(view)
    done = client.post("/memory/mark", data=form(client), headers=SAME_ORIGIN, follow_redirects=False)
    assert (done.status_code, done.headers["location"]) == (303, "/memory?bank=desk&sort=harm&page=1")
    assert state(view) == ("retired", "outdated (ana)")
    fields = form(client, reason="checked again")
    assert fields["state"] == "active"
    client.post("/memory/mark", data=fields, headers=SAME_ORIGIN)
    assert state(view) == ("active", "checked again (ana)")


@pytest.mark.parametrize(
    ("changed", "headers", "status"),
    [
        ({"token": "0" * 64}, SAME_ORIGIN, 403),
        ({}, {"origin": "https://evil.test"}, 403),
        ({}, {}, 403),
        ({"reason": " "}, SAME_ORIGIN, 400),
        ({"entry": "old"}, SAME_ORIGIN, 400),
        ({"bank": "x"}, SAME_ORIGIN, 400),
        ({"state": "protected"}, SAME_ORIGIN, 400),
        ({"entry": "bags"}, SAME_ORIGIN, 400),
        ({"reason": "x" * 20_000}, SAME_ORIGIN, 400),
    ],
)
def test_a_forged_or_invalid_form_changes_nothing(
    database: Database, changed: dict[str, str], headers: dict[str, str], status: int
) -> None:
    view = view_of(database)
    client = client_of(view)
    assert client.post("/memory/mark", data=form(client, **changed), headers=headers).status_code == status
    assert state(view) == ("active", "")
    assert state(view, "bags") == ("protected", "checked by hand")


def test_a_form_without_the_cookie_of_its_page_is_refused(database: Database) -> None:
    view = view_of(database)
    client = client_of(view)
    fields = form(client)
    cookie = client.get("/memory", headers={"cookie": ""}).headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert client_of(view).post("/memory/mark", data=fields, headers=SAME_ORIGIN).status_code == 403


def test_the_way_back_stays_on_the_dashboard(database: Database) -> None:
    client = client_of(view_of(database))
    fields = form(client, back="//evil.test/memory")
    done = client.post("/memory/mark", data=fields, headers=SAME_ORIGIN, follow_redirects=False)
    assert done.headers["location"] == "/memory"


def test_who_may_only_read_has_no_buttons_and_cannot_send_forms(database: Database) -> None:
    view = view_of(database, viewer=READER)
    client = client_of(view)
    assert "Retire" not in words(client, "/memory")
    data = form(client_of(view_of(database, viewer=ANA)))
    assert client.post("/memory/mark", data=data, headers=SAME_ORIGIN).status_code == 403
    assert state(view) == ("active", "")
