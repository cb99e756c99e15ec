"""Memory can never take an answer away: whatever fails, the first answer stands and the record says so."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, cast

import pytest

from heedful import (
    ChatModel,
    ContractGuard,
    Controller,
    Database,
    MemoryBank,
    MemorySource,
    MissingError,
    ModelError,
    Outcome,
    Policy,
    ScriptedModel,
    SqliteJournal,
    SqliteStore,
    StoreError,
    Task,
    arms,
    new_entry,
)
from heedful.decisions import decision_of
from heedful.models.scripted import Reply
from heedful.ports import Bank, Journal
from heedful.records import Decision
from heedful.types import Prompt, Spec
from tests.faulty import (
    FaultyServer,
    Play,
    Request,
    answers,
    answers_in_tokens,
    answers_without_logprobs,
    babbles,
    body,
    completion,
    cuts_the_stream,
    fails,
    hangs,
    hangs_up,
    in_turn,
    sends,
    stalls,
    truncates,
    words,
)
from tests.making import FixedBank

NOTE = new_entry("Parcels leave the warehouse in Zürich at four.", kind="fact", id="parcels")
TASK = Task(question="When do parcels leave the warehouse?", instructions="Be brief.", id="t")
FIRST = "Um fünf – 五時に 😀, I think."
SECOND = "At four."
CHOOSE = arms.choose("memory", -0.1, 0.0)
UNSURE = answers(FIRST, -0.9)
RETRIES = 2


def with_odd_logprobs(text: str) -> dict[str, Any]:
    reply = completion(text, words(text, -0.1))
    reply["choices"][0]["logprobs"]["content"][0]["logprob"] = "quite sure"
    return reply


BROKEN_PASSES: dict[str, tuple[Play, str]] = {
    "500": (fails(500, "on fire"), "returned 500"),
    "429 with seconds": (fails(429, retry_after="2"), "returned 429"),
    "429 with a date": (fails(429, retry_after="Sun, 06 Nov 1994 08:49:37 GMT"), "returned 429"),
    "429 for an hour": (fails(429, retry_after="3600"), "try again in 3600 s"),
    "hang": (hangs, "did not answer within"),
    "stall": (stalls, "did not answer within"),
    "truncated body": (truncates, "/chat/completions failed"),
    "cut stream": (cuts_the_stream, "/chat/completions failed"),
    "hang up": (hangs_up, "/chat/completions failed"),
    "no http": (babbles, "/chat/completions failed"),
    "no json": (body(b"<html>"), "not JSON"),
    "odd json": (sends({"choices": []}), "did not return a chat completion"),
    "no object": (sends([1]), "instead of a JSON object"),
    "401": (fails(401), "OPENAI_API_KEY"),
    "404": (fails(404, "no such model"), "no such model"),
    "400": (fails(400, "context too long"), "context too long"),
}
"""Ways in which a pass gives no answer, and what is then said."""

BROKEN_LOGPROBS: dict[str, tuple[Callable[[str], Play], str]] = {
    "missing": (answers_without_logprobs, "no log-probs"),
    "unreadable": (lambda text: sends(with_odd_logprobs(text)), "no log-probs"),
    "not a number": (lambda text: answers(text, float("nan")), "nan"),
    "all zero": (lambda text: answers(text, 0.0), "all 0"),
    "below -1000": (lambda text: answers(text, -1e6), "-1e+06"),
    "above zero": (lambda text: answers(text, 0.5), "0.5"),
    "other tokens": (
        lambda text: answers_in_tokens(text, words("something else", -0.1)),
        "do not match",
    ),
}
"""Ways in which an answer comes without a confidence, and what is then said."""


def cases(faults: dict[str, tuple[Any, str]]) -> pytest.MarkDecorator:
    found = [pytest.param(*fault, id=name) for name, fault in faults.items()]
    return pytest.mark.parametrize(("fault", "complaint"), found)


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.fixture
def journal(store: SqliteStore) -> SqliteJournal:
    return SqliteJournal(store.database)


async def no_wait(seconds: float) -> None:
    """Stands in for sleeping."""


def patience(fault: Play) -> float:
    """Short only where the server says nothing: a busy machine must not look like a fault."""
    return 0.3 if fault in (hangs, stalls) else 30.0


def answer(
    server: FaultyServer,
    journal: Journal | None = None,
    policy: Policy = CHOOSE,
    bank: Bank | None = None,
    timeout: float = 30.0,
    **settings: Any,
) -> Outcome:
    controller = Controller(
        model=ChatModel(base_url=server.url, timeout=timeout, retries=RETRIES, sleep=no_wait),
        policy=policy,
        sources={"memory": MemorySource(bank=bank or MemoryBank("notes", [NOTE], method="bm25"))},
        journal=journal,
        **settings,
    )
    return controller.answer_sync(TASK)


def assert_the_baseline_stands(outcome: Outcome) -> None:
    assert outcome.answer.encode() == FIRST.encode()
    assert outcome.decode is outcome.baseline.decode
    assert outcome.chosen is None
    assert outcome.decode.text == FIRST


def assert_recorded(outcome: Outcome, journal: SqliteJournal) -> None:
    """The decision record tells the same as the outcome, and it can be read by its id."""
    record = asyncio.run(journal.find(outcome.decision))
    assert record == decision_of(outcome, at=record.at)
    assert (record.answer, record.chosen) == (outcome.answer, None)


def test_a_second_pass_without_a_fault_is_taken(journal: SqliteJournal) -> None:
    with FaultyServer(in_turn(UNSURE, answers(SECOND, -0.05))) as server:
        outcome = answer(server, journal)
    assert (outcome.answer, outcome.faults, outcome.verdict.choice) == (SECOND, (), "accept")
    assert NOTE.text in server.requests[1].question
    assert asyncio.run(journal.find(outcome.decision)).answer == SECOND


@cases(BROKEN_PASSES)
def test_a_broken_second_pass_is_rolled_back(fault: Play, complaint: str, journal: SqliteJournal) -> None:
    with FaultyServer(in_turn(UNSURE, fault)) as server:
        outcome = answer(server, journal, timeout=patience(fault))
    assert_the_baseline_stands(outcome)
    assert (outcome.route.choice, outcome.route.reason) == ("consult", "unsure")
    assert (outcome.verdict.choice, outcome.verdict.reason) == ("rollback", "fault")
    assert [fault.stage for fault in outcome.faults] == ["source:memory"]
    assert complaint in outcome.faults[0].error
    assert outcome.calls == 2
    assert_recorded(outcome, journal)


@cases(BROKEN_LOGPROBS)
def test_a_second_pass_whose_confidence_is_unknown_is_rolled_back(
    fault: Callable[[str], Play], complaint: str, journal: SqliteJournal
) -> None:
    with FaultyServer(in_turn(UNSURE, fault(SECOND))) as server:
        outcome = answer(server, journal)
    assert_the_baseline_stands(outcome)
    assert (outcome.verdict.choice, outcome.verdict.reason) == ("rollback", "no confidence")
    assert [fault.stage for fault in outcome.faults] == ["confidence:memory"]
    assert complaint in outcome.faults[0].error
    assert outcome.candidates[0].confidence is None
    assert_recorded(outcome, journal)
    assert asyncio.run(journal.find(outcome.decision)).candidates[0].record.text == SECOND


def test_a_second_pass_that_recovers_within_its_retries_is_taken(journal: SqliteJournal) -> None:
    with FaultyServer(in_turn(UNSURE, hangs_up, fails(503), answers(SECOND, -0.05))) as server:
        outcome = answer(server, journal)
    assert (outcome.answer, outcome.faults, outcome.calls) == (SECOND, (), 2)


def test_an_empty_second_answer_is_rolled_back(journal: SqliteJournal) -> None:
    with FaultyServer(in_turn(UNSURE, answers("", -0.05))) as server:
        outcome = answer(server, journal)
    assert_the_baseline_stands(outcome)
    assert outcome.verdict.reason == "format:no-answer"
    assert_recorded(outcome, journal)


@pytest.mark.parametrize("combine", ["cascade", "dual"])
def test_a_broken_source_leaves_the_next_one_its_chance(
    combine: Literal["cascade", "dual"], journal: SqliteJournal
) -> None:
    policy = Policy(
        threshold=-0.1,
        sources=("memory", "retry"),
        margins={"memory": 0.0, "retry": 0.0},
        combine=combine,
    )
    with FaultyServer(in_turn(UNSURE, fails(400), answers(SECOND, -0.05))) as server:
        outcome = answer(server, journal, policy)
    # in a dual both are asked at once, and either may be the one that the server refuses
    by_status = {candidate.attempt.status: candidate.attempt.source for candidate in outcome.candidates}
    assert set(by_status) == {"failed", "decoded"}
    assert outcome.answer == SECOND
    assert combine == "dual" or by_status == {"failed": "memory", "decoded": "retry"}
    assert [fault.stage for fault in outcome.faults] == [f"source:{by_status['failed']}"]


def test_questions_of_a_signal_that_fail_give_no_confidence(journal: SqliteJournal) -> None:
    policy = arms.choose("memory", 0.9, 0.0, signal="agreement")
    with FaultyServer(in_turn(UNSURE, answers("Um sechs."), fails(400))) as server:
        outcome = answer(server, journal, policy)
    assert_the_baseline_stands(outcome)
    assert (outcome.route.choice, outcome.route.reason) == ("keep", "no confidence")
    assert [fault.stage for fault in outcome.faults] == ["confidence:none"]
    assert_recorded(outcome, journal)


@cases(BROKEN_LOGPROBS)
def test_a_first_pass_whose_confidence_is_unknown_is_kept(
    fault: Callable[[str], Play], complaint: str, journal: SqliteJournal
) -> None:
    with FaultyServer(in_turn(fault(FIRST), answers(SECOND, -0.05))) as server:
        outcome = answer(server, journal)
    assert_the_baseline_stands(outcome)
    assert (outcome.route.choice, outcome.route.reason) == ("keep", "no confidence")
    assert (outcome.confidence, outcome.verdict) == (None, None)
    assert [fault.stage for fault in outcome.faults] == ["confidence:none"]
    assert complaint in outcome.faults[0].error
    assert len(server.requests) == 1
    assert_recorded(outcome, journal)


@cases({name: fault for name, fault in BROKEN_PASSES.items() if name != "401"})
def test_a_first_pass_that_fails_for_good_is_an_error_for_there_is_nothing_to_fall_back_to(
    fault: Any, complaint: str, journal: SqliteJournal
) -> None:
    with FaultyServer(in_turn(fault)) as server, pytest.raises(ModelError, match=complaint):
        answer(server, journal, timeout=patience(fault))


def test_a_first_pass_without_a_key_says_which_to_set(journal: SqliteJournal) -> None:
    with FaultyServer(in_turn(fails(401))) as server, pytest.raises(MissingError, match="OPENAI_API_KEY"):
        answer(server, journal)


@pytest.mark.parametrize("error", [StoreError("the bank is gone"), RuntimeError("odd"), TimeoutError("late")])
def test_a_failing_recall_is_rolled_back_at_one_call(error: Exception, journal: SqliteJournal) -> None:
    with FaultyServer(in_turn(UNSURE, answers(SECOND, -0.05))) as server:
        outcome = answer(server, journal, bank=FixedBank([NOTE], error=error))
    assert_the_baseline_stands(outcome)
    assert (outcome.verdict.choice, outcome.verdict.reason) == ("rollback", "fault")
    assert [fault.stage for fault in outcome.faults] == ["source:memory"]
    assert f"{type(error).__name__}: {error}" == outcome.faults[0].error
    assert (outcome.calls, len(server.requests)) == (1, 1)
    assert_recorded(outcome, journal)


def test_a_recall_that_gives_nonsense_is_rolled_back(journal: SqliteJournal) -> None:
    nonsense = FixedBank(["no entry"])  # type: ignore[list-item]
    with FaultyServer(in_turn(UNSURE, answers(SECOND, -0.05))) as server:
        outcome = answer(server, journal, bank=nonsense)
    assert_the_baseline_stands(outcome)
    assert [fault.stage for fault in outcome.faults] == ["source:memory"]
    assert_recorded(outcome, journal)


class Unspoken(FixedBank):
    """A bank that cannot say what it is."""

    @property
    def spec(self) -> Spec:
        raise StoreError("the digest cannot be had")


def test_a_bank_that_cannot_be_described_costs_no_answer(journal: SqliteJournal) -> None:
    with FaultyServer(in_turn(UNSURE, fails(400))) as server:
        outcome = answer(server, journal, bank=Unspoken([NOTE]))
    assert_the_baseline_stands(outcome)
    assert [fault.stage for fault in outcome.faults] == ["source:memory", "sources"]
    assert_recorded(outcome, journal)


def test_memory_first_decodes_without_memory_when_recall_fails(journal: SqliteJournal) -> None:
    bank = FixedBank([NOTE], error=StoreError("the bank is gone"))
    with FaultyServer(in_turn(UNSURE)) as server:
        outcome = answer(server, journal, arms.always("memory"), bank)
    assert_the_baseline_stands(outcome)
    assert (outcome.baseline.source, outcome.baseline.recalls, outcome.calls) == ("none", (), 1)
    assert [fault.stage for fault in outcome.faults] == ["source:memory"]
    assert NOTE.text not in server.requests[0].question
    assert_recorded(outcome, journal)
    assert asyncio.run(journal.find(outcome.decision)).first.source == "none"


@cases(BROKEN_PASSES)
def test_memory_first_decodes_without_memory_when_the_pass_with_memory_breaks(
    fault: Play, complaint: str, journal: SqliteJournal
) -> None:
    def script(request: Request) -> Play:
        return fault if NOTE.text in request.question else UNSURE

    with FaultyServer(script) as server:
        outcome = answer(server, journal, arms.always("memory"), timeout=patience(fault))
    assert_the_baseline_stands(outcome)
    assert (outcome.baseline.source, outcome.calls) == ("none", 2)
    assert complaint in outcome.faults[0].error
    assert_recorded(outcome, journal)


def broken_predicate(task: Task, said: str) -> bool:
    raise ZeroDivisionError(f"cannot weigh {said!r}")


@pytest.mark.parametrize(
    "policy",
    [
        Policy(threshold=-0.1, sources=("memory",), margins={"memory": 0.0}, guards=("contract",)),
        Policy(threshold=float("inf"), sources=("memory",), guards=("format", "contract")),
    ],
)
def test_a_guard_that_raises_refuses(policy: Policy, journal: SqliteJournal) -> None:
    with FaultyServer(in_turn(UNSURE, answers(SECOND, -0.05))) as server:
        outcome = answer(server, journal, policy, guards={"contract": ContractGuard(broken_predicate)})
    assert_the_baseline_stands(outcome)
    assert (outcome.verdict.choice, outcome.verdict.reason) == ("rollback", "contract:fault")
    assert [fault.stage for fault in outcome.faults] == ["guard:contract"]
    assert "ZeroDivisionError: cannot weigh 'At four.'" in outcome.faults[0].error
    assert_recorded(outcome, journal)


def test_a_schema_that_is_no_schema_refuses_the_second_answer(journal: SqliteJournal) -> None:
    task = Task(question=TASK.question, schema={"type": "no such type"})
    with FaultyServer(in_turn(answers("5", -0.9), answers("4", -0.05))) as server:
        controller = Controller(
            model=ChatModel(base_url=server.url),
            policy=CHOOSE,
            sources={"memory": MemorySource(bank=FixedBank([NOTE]))},
            journal=journal,
        )
        outcome = controller.answer_sync(task)
    assert (outcome.answer, outcome.verdict.reason) == ("5", "format:fault")
    assert {fault.stage for fault in outcome.faults} == {"guard:format"}
    assert_recorded(outcome, journal)


class BrokenJournal:
    """Raises what it is given."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def record(self, decision: Decision) -> None:
        raise self._error

    async def find(self, decision: str) -> Decision:
        raise self._error

    async def recent(self, limit: int) -> Sequence[Decision]:
        raise self._error

    async def purge(self, before: float) -> int:
        raise self._error

    async def aclose(self) -> None:
        raise self._error


@pytest.mark.parametrize(
    "error", [StoreError("the disk is full"), OSError(28, "No space left"), KeyError("x")]
)
@pytest.mark.parametrize("second", [answers(SECOND, -0.05), fails(400)])
def test_a_journal_that_raises_changes_no_answer(error: Exception, second: Play) -> None:
    with FaultyServer(in_turn(UNSURE, second)) as server:
        plain = answer(server)
    with FaultyServer(in_turn(UNSURE, second)) as server:
        outcome = answer(server, cast(Journal, BrokenJournal(error)))
    assert outcome.answer.encode() == plain.answer.encode()
    assert (outcome.route, outcome.verdict, outcome.chosen) == (plain.route, plain.verdict, plain.chosen)
    assert [fault.stage for fault in outcome.faults] == [*(f.stage for f in plain.faults), "journal"]
    assert type(error).__name__ in outcome.faults[-1].error


def settled(database: Database, pragma: str) -> None:
    with database.reading() as connection:
        connection.execute(f"PRAGMA {pragma}").fetchall()


@pytest.mark.parametrize(
    ("breaks", "mends", "complaint"),
    [
        ("query_only=ON", "query_only=OFF", "readonly"),
        ("max_page_count=1", "max_page_count=100000", "disk is full"),
    ],
    ids=["a read-only store", "a full disk"],
)
def test_a_store_that_cannot_be_written_costs_no_answer_and_works_again_later(
    breaks: str, mends: str, complaint: str, store: SqliteStore, journal: SqliteJournal
) -> None:
    long = "x" * 200_000
    with FaultyServer(lambda request: answers(long, -0.01)) as server:
        settled(store.database, breaks)
        outcome = answer(server, journal)
        settled(store.database, mends)
        later = answer(server, journal)
    assert outcome.answer == later.answer == long
    assert [fault.stage for fault in outcome.faults] == ["journal"]
    assert complaint in outcome.faults[0].error
    assert later.faults == ()
    assert asyncio.run(journal.find("last")).id == later.decision


def test_a_store_that_was_closed_costs_no_answer(tmp_path: Path) -> None:
    database = Database(tmp_path / "s.db")
    database.close()
    with FaultyServer(in_turn(UNSURE, fails(400))) as server:
        outcome = answer(server, SqliteJournal(database))
    assert_the_baseline_stands(outcome)
    assert [fault.stage for fault in outcome.faults] == ["source:memory", "journal"]


def test_a_commit_that_fails_keeps_nothing_and_does_not_block_the_next(store: SqliteStore) -> None:
    settled(store.database, "foreign_keys=ON")
    with store.database.writing() as connection:
        connection.execute("CREATE TABLE parent (id INTEGER PRIMARY KEY)")
        connection.execute("CREATE TABLE child (id REFERENCES parent DEFERRABLE INITIALLY DEFERRED)")
    with pytest.raises(StoreError, match="FOREIGN KEY"), store.database.writing() as connection:
        connection.execute("INSERT INTO child VALUES (5)")
    assert asyncio.run(store.put("notes", [NOTE])) == 1
    with store.database.reading() as connection:
        assert connection.execute("SELECT count(*) FROM child").fetchone()[0] == 0


def test_a_full_disk_is_named_as_such(store: SqliteStore) -> None:
    settled(store.database, "max_page_count=1")
    big = new_entry("y" * 200_000, kind="fact", id="big")
    with pytest.raises(StoreError, match="disk is full"):
        asyncio.run(store.put("notes", [big]))
    assert asyncio.run(store.entries("notes")) == []


def test_every_part_may_fail_in_one_answer() -> None:
    bank = Unspoken([NOTE], error=RuntimeError("odd"))
    policy = Policy(
        threshold=-0.1,
        sources=("memory", "retry"),
        margins={"memory": 0.0, "retry": 0.0},
        guards=("contract",),
    )
    with FaultyServer(in_turn(UNSURE, answers_without_logprobs(SECOND))) as server:
        outcome = answer(
            server,
            cast(Journal, BrokenJournal(StoreError("gone"))),
            policy,
            bank,
            guards={"contract": ContractGuard(broken_predicate)},
        )
    assert_the_baseline_stands(outcome)
    stages = [fault.stage for fault in outcome.faults]
    assert stages == ["source:memory", "confidence:retry", "guard:contract", "sources", "journal"]


def test_answers_side_by_side_keep_their_faults_apart(journal: SqliteJournal) -> None:
    """Every other question's second pass is broken; each outcome tells of its own."""

    def reply(prompt: Prompt) -> Reply:
        asked = prompt.messages[-1].content
        if NOTE.text not in asked:
            return (FIRST, -0.9)
        return ModelError("broken") if "odd" in asked else (SECOND, -0.05)

    controller = Controller(
        model=ScriptedModel(script=reply),
        policy=CHOOSE,
        sources={"memory": MemorySource(bank=FixedBank([NOTE]))},
        journal=journal,
    )

    async def many() -> list[Outcome]:
        tasks = [Task(question=f"{'odd' if n % 2 else 'even'} {n}") for n in range(20)]
        return await asyncio.gather(*(controller.answer(task) for task in tasks))

    for outcome in asyncio.run(many()):
        odd = outcome.task.question.startswith("odd")
        assert (outcome.answer, len(outcome.faults)) == ((FIRST, 1) if odd else (SECOND, 0))
        assert asyncio.run(journal.find(outcome.decision)).answer == outcome.answer
