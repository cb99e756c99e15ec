"""Conformance suites for models, banks, stores, journals, benchmarks and environments.

    def test_my_model_conforms():
        asyncio.run(check_model(MyModel()))

Each raises `AssertionError` with a sentence that states the requirement that is not met.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

from heedful.errors import LogprobError, ModelError, UsageError
from heedful.memory.entries import new_entry
from heedful.ports import (
    Bank,
    Benchmark,
    Contract,
    DecisionReader,
    Environment,
    Journal,
    Model,
    Store,
    Teacher,
)
from heedful.records import (
    CandidateRecord,
    Decision,
    DecisionFilter,
    ModelRef,
    PassRecord,
    RecallRef,
    Traffic,
)
from heedful.stages.answer import read_answer
from heedful.stages.confidence import check_logprobs
from heedful.types import (
    CALLER,
    Audience,
    Decode,
    Entry,
    EpisodeSide,
    Evidence,
    Grounds,
    Item,
    Mark,
    Message,
    Observation,
    Policy,
    Prompt,
    Route,
    Side,
    State,
    Task,
    Tool,
    ToolCall,
    Trial,
    Usage,
    Verdict,
)

QUESTION = Prompt(messages=(Message(role="user", content="Say the word blue."),), max_tokens=12)
ENTRIES = (
    new_entry("The capital of Freedonia is Fredville.", kind="fact", id="capital"),
    new_entry("Parcels leave the warehouse at four.", kind="rule", id="parcels"),
    new_entry("Parcels leave the warehouse at four.", kind="fact", id="parcels-twin"),
    new_entry("How many is a dozen?", kind="exemplar", response="A dozen is 12.", id="dozen"),
)
STATES: tuple[State, ...] = get_args(State)
_FIRST = PassRecord(
    source="none",
    prompt="digest",
    model="fingerprint",
    status="decoded",
    text="blue",
    answer="blue",
    finish="stop",
    signals={"mean": -0.25},
    guards={"format": ""},
    calls=1,
    usage=Usage(prompt_tokens=7, completion_tokens=1, cached_tokens=2),
    seconds=0.5,
)
SAME_SHORT_ID = (
    new_entry("Part 5188 of shelf 303 holds w3490 w624 w229 w3680.", kind="rule"),
    new_entry("Part 31750 of shelf 486 holds w4270 w4236 w1630 w1126.", kind="rule"),
)
DECISION = Decision(
    id="0abc",
    at=0.0,
    task=Task(
        question="Say the word blue.",
        earlier=(Message(role="assistant", content="", tool_calls=(ToolCall(name="paint", id="c1"),)),),
        tools=(Tool(name="paint", parameters={"type": "object"}),),
    ),
    model=ModelRef(name="model", endpoint="endpoint", fingerprint="fingerprint"),
    policy=Policy(threshold=float("inf"), sources=("facts",), margins={"facts": 0.5}),
    policy_id="policy",
    sources={"facts": {"kind": "memory", "bank": "facts", "limit": 3}},
    first=_FIRST,
    confidence=-0.25,
    route=Route(choice="consult", reason="always"),
    candidates=(
        CandidateRecord(
            record=replace(_FIRST, source="facts", recalls=(RecallRef(entry="e", version="v", score=0.75),)),
            confidence=None,
            verdict=Verdict(choice="rollback", reason="no confidence"),
        ),
    ),
    verdict=Verdict(choice="rollback", reason="no confidence"),
    chosen=None,
    answer="blue",
    calls=2,
    usage=Usage(prompt_tokens=14, completion_tokens=2, cached_tokens=4),
    seconds=1.0,
    overhead_seconds=0.001,
    faults=(),
)


def require(holds: bool, sentence: str) -> None:
    if not holds:
        raise AssertionError(sentence)


async def check_model(model: Model) -> None:
    """A model answers, describes its log-probs correctly, and can be used concurrently and after closing."""
    require(isinstance(model, Model), _lacks(model, Model))
    require(bool(model.traits.name), "a model's traits have a name")
    require(model.traits.fingerprint != "", "a model's traits have a fingerprint")
    decode = await model.decode(QUESTION)
    _check_decode(model, decode)
    again = await model.decode(QUESTION)
    require(again.text == decode.text, "a repeated greedy decode returns the same text")
    both = await asyncio.gather(model.decode(QUESTION), model.decode(QUESTION))
    require(all(isinstance(result, Decode) for result in both), "decodes can run concurrently")
    await model.aclose()
    require((await model.decode(QUESTION)).text == decode.text, "a closed model can be used again")


def _check_decode(model: Model, decode: Decode) -> None:
    require(isinstance(decode, Decode), "decode returns a Decode")
    require(bool(decode.text), "a plain question gets a text reply")
    require(decode.seconds >= 0, "a decode's time is not negative")
    if not model.traits.logprobs:
        require(decode.tokens == (), "a model whose traits say `logprobs=False` returns no tokens")
        return
    try:
        check_logprobs(decode)
    except LogprobError as error:
        raise AssertionError(f"the log-probs are valid: {error}") from error
    for token in decode.tokens:
        require(len(token.top) >= min(1, model.traits.top_logprobs), "tokens have their alternatives")
        values = [logprob for _, logprob in token.top]
        require(values == sorted(values, reverse=True), "alternatives are sorted, highest first")


async def check_model_fails_openly(model: Model) -> None:
    """A model whose endpoint is unavailable raises `ModelError` and nothing else."""
    try:
        await model.decode(QUESTION)
    except ModelError:
        return
    raise AssertionError("a model that cannot answer raises ModelError")


async def check_bank(make: Callable[[Sequence[Entry]], Bank]) -> None:
    """A bank recalls matching entries in a fixed order, and never retired ones."""
    bank = make(ENTRIES)
    require(isinstance(bank, Bank), _lacks(bank, Bank))
    require({e.id for e in bank.entries()} == {e.id for e in ENTRIES}, "a bank keeps all its entries")
    recalls = await bank.recall("When do parcels leave the warehouse?", limit=2)
    require([r.entry.id for r in recalls] == ["parcels", "parcels-twin"], "the best come first, ties by id")
    scores = [recall.score for recall in recalls]
    require(scores == sorted(scores, reverse=True), "scores decrease from first to last")
    again = await bank.recall("When do parcels leave the warehouse?", limit=2)
    require(again == recalls, "the same query recalls the same entries")
    require(
        len(await bank.recall("When do parcels leave the warehouse?", limit=1)) == 1, "the limit is respected"
    )
    await _check_states_of_bank(make)
    await _check_audience(make)
    _check_digest(make)
    require(tuple(await make(()).recall("anything", limit=3)) == (), "an empty bank recalls nothing")


async def _check_states_of_bank(make: Callable[[Sequence[Entry]], Bank]) -> None:
    for state in STATES:
        bank = make([replace(e, state=state, reason="test") if e.id == "parcels" else e for e in ENTRIES])
        recalled = {r.entry.id for r in await bank.recall("When do parcels leave the warehouse?", limit=4)}
        if state in ("retired", "quarantined"):
            require("parcels" not in recalled, f"a {state} entry is never recalled")
        else:
            require("parcels" in recalled, f"an entry that is {state} is recalled")
        require("parcels" in {e.id for e in bank.entries()}, f"a {state} entry stays in the bank")


async def _check_audience(make: Callable[[Sequence[Entry]], Bank]) -> None:
    """An entry of one user, or of another time, takes no place among the recalled entries of others."""
    parcels = next(entry for entry in ENTRIES if entry.id == "parcels")
    private_to = replace(parcels, scope={"user": "ana"})
    ana = Audience(scope={"user": "ana", "app": "x"}, at=5.0)
    for private, seen, unseen in (
        (private_to, ana, Audience(at=5.0)),
        (private_to, ana, Audience(scope={"user": "bo"}, at=5.0)),
        (replace(parcels, valid_from=5.0), Audience(at=5.0), Audience(at=4.0)),
        (replace(parcels, valid_until=5.0), Audience(at=4.0), Audience(at=5.0)),
    ):
        bank = make([private if entry.id == "parcels" else entry for entry in ENTRIES])
        query = "When do parcels leave the warehouse?"
        visible = [recall.entry.id for recall in await bank.recall(query, limit=1, audience=seen)]
        require(visible == ["parcels"], "an entry is recalled within its scope and time")
        hidden = [recall.entry.id for recall in await bank.recall(query, limit=1, audience=unseen)]
        require(hidden == ["parcels-twin"], "an entry is not recalled outside its scope and time")
        require(make([private]).digest != make([parcels]).digest, "scope and time change the digest")


def _check_digest(make: Callable[[Sequence[Entry]], Bank]) -> None:
    digest = make(ENTRIES).digest
    require(
        make(tuple(reversed(ENTRIES))).digest == digest, "the order of entries does not change the digest"
    )
    require(make(ENTRIES[1:]).digest != digest, "a different set of entries has a different digest")
    changed = [replace(ENTRIES[0], state="retired", reason="test"), *ENTRIES[1:]]
    require(make(changed).digest != digest, "retiring an entry changes the digest")


def check_benchmark(benchmark: Benchmark, data: Path) -> None:
    """A benchmark loads the same rows every time, separates its sides and grades its own targets as right."""
    require(isinstance(benchmark, Benchmark), _lacks(benchmark, Benchmark))
    sides: dict[Side, Sequence[Item]] = {side: benchmark.load(data, side) for side in ("fit", "test")}
    items = [item for rows in sides.values() for item in rows]
    require(bool(items), "a benchmark has rows")
    for side, rows in sides.items():
        require(list(benchmark.load(data, side)) == list(rows), "the rows of a side have a fixed order")
    ids = [item.id for item in items]
    require(len(set(ids)) == len(ids), "every row has a unique id across both sides")
    for item in items:
        task = benchmark.task(item)
        require(task.id == item.id, "a task has its row's id")
        require(item.question in task.question, "a task contains its row's question")
        require(benchmark.grade(item.answer, item), f"the target of {item.id} is graded as right")
        require(not benchmark.grade("", item), "an empty answer is graded as wrong")
        _check_exemplar(benchmark, item)


def _check_exemplar(benchmark: Benchmark, item: Item) -> None:
    worked = benchmark.exemplar(item)
    if worked is None:
        return
    require(worked.kind == "exemplar" and bool(worked.response), "an exemplar has a worked response")
    decode = read_answer(Decode(text=worked.response), benchmark.task(item))
    require(benchmark.grade(decode.answer, item), f"the exemplar of {item.id} gives the right answer")


async def check_store(store: Store) -> None:
    """A store appends entries, marks states, stores evidence and increases its revision.

    The banks `conformance` and `conformance twins` must be unused.
    """
    require(isinstance(store, Store), _lacks(store, Store))
    bank = "conformance"
    require(list(await store.entries(bank)) == [], "the bank `conformance` is unused")
    require(await store.put(bank, ENTRIES) == len(ENTRIES), "new entries are counted")
    before = await store.revision(bank)
    require(await store.put(bank, ENTRIES) == 0, "adding existing entries adds nothing")
    require(await store.revision(bank) == before, "adding nothing does not change the revision")
    require(tuple(await store.entries(bank)) == ENTRIES, "entries are returned unchanged and in order")
    require((await store.banks()).get(bank) == len(ENTRIES), "a bank is listed with its number of entries")
    require(list(await store.entries("another bank")) == [], "banks are separate")
    await _check_states(store, bank)
    await _check_versions(store, bank)
    evidence = Evidence(entry="dozen", version=ENTRIES[3].digest, task="t1", utility=-1.0, decision="d1")
    await store.observe(bank, [evidence])
    require(list(await store.evidence(bank)) == [evidence], "evidence is returned unchanged")
    await _refuses(store.observe(bank, [replace(evidence, utility=2.0)]), "a utility of 2 is refused")
    require(list(await store.evidence("another bank")) == [], "evidence is stored per bank")
    for _ in range(2):
        await store.put("conformance twins", SAME_SHORT_ID)
        texts = [entry.text for entry in await store.entries("conformance twins")]
        require(
            texts == [entry.text for entry in SAME_SHORT_ID], "one short id for two contents loses neither"
        )


async def _check_states(store: Store, bank: str) -> None:
    before = await store.revision(bank)
    [marked] = await store.mark(bank, [Mark(entry="dozen", state="retired", reason="test")])
    require(marked.state == "retired", "mark returns the new state")
    require((await store.entry(bank, "dozen")).state == "retired", "a mark is stored")
    require(await store.revision(bank) > before, "a mark increases the revision")
    changes = [(change.state, change.reason) for change in await store.history(bank, "dozen")]
    require(changes == [("retired", "test")], "the history lists every change with its reason")
    await _check_audit(store, bank)
    await store.mark(bank, [Mark(entry="capital", state="protected")])
    for state in ("retired", "quarantined"):
        both = [Mark(entry="parcels", state=state), Mark(entry="capital", state=state)]
        await _refuses(store.mark(bank, both), f"a protected entry cannot be {state}")
    require((await store.entry(bank, "parcels")).state == "active", "marks are applied all or none")
    refused = [change for change in await store.audit(bank) if change.entry == "parcels"]
    require(len(refused) == 2, "a refused change is not in the audit log")


async def _check_audit(store: Store, bank: str) -> None:
    known = len(await store.audit(bank))
    grounds = Grounds(rule="betting", tasks=9, helps=1, hurts=8, bound=-0.25)
    for mark in (
        Mark(entry="parcels", state="quarantined", reason="harm", by="govern", grounds=grounds),
        Mark(entry="parcels", state="active", reason="checked", by="ana"),
    ):
        await store.mark(bank, [mark])
    new = (await store.audit(bank))[known:]
    told = [(c.entry, c.before, c.state, c.reason, c.by, c.grounds) for c in new]
    require(
        told
        == [
            ("parcels", "active", "quarantined", "harm", "govern", grounds),
            ("parcels", "quarantined", "active", "checked", "ana", None),
        ],
        "the audit log has every change in order, with who made it, why and on which evidence",
    )
    require(list(await store.audit("another bank")) == [], "banks have separate audit logs")


async def _check_versions(store: Store, bank: str) -> None:
    old = ENTRIES[0]
    new = new_entry("The capital of Freedonia is Newtown.", kind="fact", id=old.id)
    before = await store.revision(bank)
    require(await store.put(bank, [new]) == 1, "a changed entry is a new version")
    require(await store.revision(bank) > before, "a new version increases the revision")
    current = await store.entry(bank, old.id)
    require((current.text, current.state) == (new.text, "protected"), "a new version keeps the entry's state")
    digests = [version.digest for version in await store.versions(bank, old.id)]
    require(digests == [old.digest, new.digest], "versions are listed oldest first")
    require((await store.version(bank, old.id, old.digest)).text == old.text, "an old version is found")
    await _refuses(store.entry(bank, "nobody"), "an unknown entry is refused")


async def check_journal(journal: Journal) -> None:
    """A journal stores complete decisions, finds them and purges old ones; it must be empty."""
    require(isinstance(journal, Journal), _lacks(journal, Journal))
    await _refuses(journal.find("last"), "an empty journal has no last decision")
    decisions = [replace(DECISION, id=f"{place}abc", at=float(place)) for place in range(3)]
    for decision in decisions:
        await journal.record(decision)
    await journal.announce("0abc", Trial(share=0.5, allowed=True))
    require(await journal.find("1abc") == decisions[1], "a decision is returned unchanged")
    require(await journal.find("1") == decisions[1], "a decision is found by an id prefix")
    require((await journal.find("last")).id == "2abc", "the last decision is the newest")
    recent = [decision.id for decision in await journal.recent(2)]
    require(recent == ["2abc", "1abc"], "recent decisions come newest first, at most `limit` of them")
    require(await journal.purge(before=2.0) == 2, "purge deletes older decisions and counts them")
    require(len(await journal.recent(9)) == 1, "purged decisions are gone")


async def check_decision_reader(journal: Journal) -> None:
    """A journal that is a `DecisionReader` filters, pages and counts; it must be empty."""
    require(isinstance(journal, DecisionReader), _lacks(journal, DecisionReader))
    if not isinstance(journal, DecisionReader):
        return
    kept = replace(
        DECISION, route=Route(choice="keep", reason="sure"), candidates=(), verdict=None, sources={}
    )
    for decision in (
        replace(DECISION, id="0abc", at=0.0, trial=Trial(share=0.5, allowed=True, accepted=0)),
        replace(kept, id="1abc", at=1.0, answer="100% red", policy_id="other"),
        replace(DECISION, id="2abc", at=2.0, task=replace(DECISION.task, scope={CALLER: "desk"})),
    ):
        await journal.record(decision)
    for wanted, ids, sentence in (
        (DecisionFilter(), ["2abc", "1abc", "0abc"], "without a filter every decision is read, newest first"),
        (DecisionFilter(since=1.0, until=2.0), ["1abc"], "a time window includes its start only"),
        (DecisionFilter(route="keep"), ["1abc"], "decisions are filtered by route"),
        (DecisionFilter(verdict="rollback"), ["2abc", "0abc"], "decisions are filtered by verdict"),
        (DecisionFilter(bank="facts"), ["2abc", "0abc"], "decisions are filtered by bank"),
        (DecisionFilter(entry="e"), ["2abc", "0abc"], "decisions are filtered by recalled entry"),
        (DecisionFilter(caller="desk"), ["2abc"], "decisions are filtered by caller"),
        (DecisionFilter(graded=False), ["2abc", "1abc", "0abc"], "without feedback nothing is graded"),
        (DecisionFilter(coin=True), ["0abc"], "decisions are filtered by the coin of a trial"),
        (DecisionFilter(policy="other"), ["1abc"], "decisions are filtered by policy"),
        (DecisionFilter(search="0% RED"), ["1abc"], "a search is literal and ignores case"),
        (DecisionFilter(search="0_ red"), [], "a search has no wildcards"),
    ):
        require([one.id for one in await journal.select(wanted)] == ids, sentence)
        require([one.id for one in await journal.facts(wanted, 9)] == ids, f"{sentence}, also as facts")
    page = [one.id for one in await journal.select(DecisionFilter(), 1, 1)]
    require(page == ["1abc"], "a page is the next `limit` decisions after `skip`")
    await _check_counts(journal)


async def _check_counts(journal: DecisionReader) -> None:
    [newest] = await journal.facts(DecisionFilter(), 1)
    flags = (newest.unchanged, newest.memory_first, newest.memory_chosen)
    numbers = (newest.confidence, newest.chosen, *flags, newest.grades)
    require(numbers == (-0.25, None, True, False, False, ()), "facts are those of the decision")
    counts = await journal.traffic(DecisionFilter())
    consulted = Traffic(route="consult", verdict="rollback", decisions=2, calls=4, tokens=32, faulty=0)
    require(consulted in counts and len(counts) == 2, "traffic is counted by route and verdict")
    require(list(await journal.traffic(DecisionFilter(since=9.0))) == [], "no decisions are no traffic")
    require(dict(await journal.recalls("facts")) == {"e": 2}, "recalls are counted per entry")
    require(dict(await journal.recalls("facts", "desk")) == {"e": 1}, "recalls are counted per caller")
    require(dict(await journal.recalls("facts", "other")) == {}, "another caller's recalls are not counted")


NONSENSE = "xyzzy nonsense"
EPISODE_SIDES: tuple[EpisodeSide, ...] = get_args(EpisodeSide)


def check_environment(make: Callable[[], Environment]) -> None:
    """Check that episodes are repeatable, that invalid actions change nothing, and that solutions solve."""
    world = make()
    try:
        require(isinstance(world, Environment), _lacks(world, Environment))
        seeds = {side: list(world.seeds(side)) for side in EPISODE_SIDES}
        require(all(seeds.values()), "every side has episodes")
        listed = [seed for side in EPISODE_SIDES for seed in seeds[side]]
        require(len(set(listed)) == len(listed), "no episode is listed twice, on one side or on two")
        require(list(world.seeds("test")) == seeds["test"], "a side is always listed in the same order")
        for seed in (seeds["pool"][0], seeds["test"][0]):
            _check_episode(world, seed)
        _check_gold(world, seeds["pool"][0])
        _check_contract(world, seeds["test"][0])
        world.close()
        world.close()
        require(world.reset(listed[0]).text != "", "a closed environment can be reset again")
    finally:
        world.close()


def _check_episode(world: Environment, seed: int) -> None:
    first = world.reset(seed)
    require(bool(first.text.strip()), "the first observation has a text")
    require(not first.done and 0 <= first.score < 1, "an episode starts neither done nor solved")
    require(len(set(first.actions)) == len(first.actions), "a valid action is listed once")
    trace = _walk(world, seed)
    require(trace == _walk(world, seed), "the same seed and actions give the same observations")
    require(all(0 <= seen.score <= 1 for seen in trace), "a score is between 0 and 1")
    if first.actions:
        world.reset(seed)
        after = world.step(NONSENSE)
        require(
            (after.score, after.done, after.actions) == (first.score, first.done, first.actions),
            "an invalid action changes nothing",
        )


def _walk(world: Environment, seed: int, steps: int = 5) -> list[Observation]:
    """The observations after the last valid action of each step."""
    trace = [world.reset(seed)]
    while len(trace) <= steps and not trace[-1].done:
        plain = [action for action in trace[-1].actions if not action.endswith("[...]")]
        trace.append(world.step(plain[-1] if plain else NONSENSE))
    return trace


def _check_gold(world: Environment, seed: int) -> None:
    if not isinstance(world, Teacher):
        return
    actions = list(world.gold(seed))
    seen = world.reset(seed)
    for action in actions:
        seen = world.step(action)
    require(seen.done and seen.score == 1, "the actions of `gold` end the episode with a score of 1")


def _check_contract(world: Environment, seed: int) -> None:
    if isinstance(world, Contract):
        for action in (*world.reset(seed).actions[:20], NONSENSE):
            reason = world.breaks(action)
            require(reason is None or bool(reason), "`breaks` returns a reason code, or None")


def _lacks(thing: object, port: type) -> str:
    """The error for a value that lacks methods of a port."""
    missing = [name for name in dir(port) if not name.startswith("_") and not hasattr(thing, name)]
    return f"{type(thing).__name__} is not a {port.__name__}: it lacks {', '.join(missing)}"


async def _refuses(call: Awaitable[object], sentence: str) -> None:
    try:
        await call
    except UsageError:
        return
    raise AssertionError(f"{sentence}, with a UsageError")
