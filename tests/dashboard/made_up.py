"""A store of made-up decisions: a help desk whose memory mostly helps, with one note that hurts.

python -m tests.dashboard.made_up STORE [DECISIONS]
"""

import json
import random
import sqlite3
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from heedful.control import run_sync
from heedful.decisions import decision_fields, policy_id
from heedful.feedback import evidence_of
from heedful.memory import SqliteStore
from heedful.memory.database import Database
from heedful.memory.entries import new_entry
from heedful.records import CandidateRecord, Decision, Feedback, ModelRef, PassRecord, RecallRef
from heedful.types import (
    AnswerEstimate,
    Fault,
    FeatureEffect,
    GainEstimate,
    Mark,
    Policy,
    Route,
    Task,
    Trial,
    Usage,
    ValueTrace,
    Verdict,
)

NOW = 1_790_000_000.0
DAY = 86_400.0
SCRIPT = "<script>document.title = 'taken over'</script> The desk <b>never</b> closes."
BANK = (
    new_entry("The support desk opens at 7 am on weekdays.", kind="fact", id="opening", source="handbook"),
    new_entry("Parcels leave the warehouse at four.", kind="fact", id="parcels", source="handbook"),
    new_entry("Refunds take 3 working days.", kind="fact", id="refunds", tags=("author:ana",)),
    new_entry("Refunds take 30 working days.", kind="fact", id="old-refunds", tags=("author:bo", "2019")),
    new_entry(SCRIPT, kind="rule", id="script", tags=("author:bo", "2019")),
    new_entry(
        "How many bags fit a pallet?", kind="exemplar", response="48 bags, in six layers of eight.", id="bags"
    ),
)
QUESTIONS = (
    ("When does the support desk open?", "at 9 am", "at 7 am", "opening"),
    ("When do parcels leave?", "in the evening", "at four", "parcels"),
    ("How long does a refund take?", "3 working days", "30 working days", "old-refunds"),
    ("How long do I wait for my refund?", "two weeks", "3 working days", "refunds"),
    ("Is the desk ever closed?", "on Sundays", "never", "script"),
    ("How many bags fit a pallet?", "40 bags", "48 bags", "bags"),
)
POLICY = Policy(signal="mean", threshold=-0.6, sources=("notes",), margins={"notes": 0.05})
VALUE_POLICY = Policy(sources=("notes",), combine="value")


@dataclass(frozen=True)
class MadeUp:
    decision: Decision
    feedback: Feedback | None


def made_up(number: int, *, n: int, span: float = DAY, now: float = NOW, by_value: bool = False) -> MadeUp:
    """The decision with this number out of n; the newest is number 0."""
    rng = random.Random(number)
    question, first, second, entry = QUESTIONS[rng.randrange(len(QUESTIONS))]
    confidence = -rng.expovariate(1.6)
    consult = confidence < POLICY.threshold
    accept = consult and rng.random() < 0.6
    trial = (
        Trial(share=0.2, allowed=rng.random() < 0.5, accepted=0 if accept else None)
        if number % 5 == 0
        else None
    )
    used = accept and (trial is None or trial.allowed)
    pass_one = _pass("none", first, confidence, rng)
    candidates: tuple[CandidateRecord, ...] = ()
    if consult:
        pass_two = _pass("notes", second, confidence + 0.2, rng, entry)
        verdict = (
            Verdict(choice="accept", reason="margin met")
            if accept
            else Verdict(choice="rollback", reason="margin")
        )
        candidates = (CandidateRecord(record=pass_two, confidence=confidence + 0.2, verdict=verdict),)
    passes = (pass_one, *(candidate.record for candidate in candidates))
    decision = Decision(
        id=f"{number:06x}{rng.randrange(16**10):010x}",
        at=now - 1 - span * number / n,
        task=Task(question=question, id=f"task-{number}"),
        model=ModelRef(name="made-up-1b", endpoint="http://127.0.0.1:9/v1", fingerprint="f" * 12),
        policy=VALUE_POLICY if by_value else POLICY,
        policy_id=policy_id(VALUE_POLICY if by_value else POLICY),
        sources={
            "notes": {"kind": "memory", "bank": "desk", "placement": "after", "heading": "Notes:", "limit": 3}
        },
        first=pass_one,
        confidence=0.4 + 0.5 * rng.random() if by_value else confidence,
        route=_route(consult, by_value),
        candidates=candidates,
        verdict=_verdict(candidates, accept, used),
        chosen=0 if used else None,
        answer=second if used else first,
        calls=len(passes),
        usage=Usage(
            prompt_tokens=sum(p.usage.prompt_tokens for p in passes), completion_tokens=8 * len(passes)
        ),
        seconds=sum(p.seconds for p in passes) + 0.002,
        overhead_seconds=0.002,
        faults=(Fault(stage="source:notes", error="StoreError: the store is locked"),)
        if number % 97 == 5
        else (),
        value=_trace(consult, rng) if by_value else None,
        trial=trial,
    )
    return MadeUp(decision, _feedback(decision, rng))


def _verdict(candidates: Sequence[CandidateRecord], accept: bool, used: bool) -> Verdict | None:
    if accept and not used:
        return Verdict(choice="rollback", reason="held out")
    return candidates[0].verdict if candidates else None


def _route(consult: bool, by_value: bool) -> Route:
    reasons = ("worth it", "not worth it") if by_value else ("below threshold", "above threshold")
    return Route(choice="consult", reason=reasons[0]) if consult else Route(choice="keep", reason=reasons[1])


def _pass(source: str, answer: str, confidence: float, rng: random.Random, entry: str = "") -> PassRecord:
    recalled = [known for known in BANK if known.id == entry]
    return PassRecord(
        source=source,
        prompt="d" * 64,
        model="f" * 12,
        status="decoded",
        text=f"The answer is {answer}.",
        answer=answer,
        finish="stop",
        signals={"mean": confidence, "min": 2 * confidence},
        guards={"format": "", "valid": ""},
        recalls=tuple(RecallRef(entry=e.id, version=e.digest, score=0.82) for e in recalled),
        calls=1,
        usage=Usage(prompt_tokens=60 + 40 * len(recalled), completion_tokens=8),
        seconds=0.3 + 0.2 * rng.random(),
    )


def _trace(consult: bool, rng: random.Random) -> ValueTrace:
    gain = 0.012 + 0.1 * rng.random() if consult else 0.009 * rng.random()
    reasons = (
        FeatureEffect(feature="mean", value=-0.8, effect=-0.4),
        FeatureEffect(feature="same", value=0, effect=0.1),
    )
    return ValueTrace(
        steps=(GainEstimate(source="notes", gain=gain, cost=0.01, asked=consult),),
        answers=(AnswerEstimate(source="none", chance=0.6, reasons=reasons),),
        margin=0.0,
    )


def _feedback(decision: Decision, rng: random.Random) -> Feedback | None:
    """For a third of the decisions a known answer, for some only a grade."""
    right = {question: second for question, _, second, _ in QUESTIONS} | {QUESTIONS[2][0]: "3 working days"}
    target = right[decision.task.question]
    drawn = rng.random()
    if drawn < 0.3:
        grades = tuple(record.answer == target for record in decision.passes)
        return Feedback(decision=decision.id, kind="answer", value=target, metric="text", grades=grades)
    if drawn < 0.4:
        value = "right" if decision.answer == target else "wrong"
        return Feedback(decision=decision.id, kind="grade", value=value)
    return None


def fill(file: Path, n: int, *, span: float = DAY, now: float = NOW, by_value: bool = False) -> None:
    """A store with a bank, n decisions over a span of time, their feedback and their evidence."""
    database = Database(file)
    store = SqliteStore(database)
    run_sync(store.put("desk", BANK))
    run_sync(store.mark("desk", [Mark(entry="bags", state="protected", reason="checked by hand")]))
    with database.writing() as connection:
        for one in (made_up(at, n=n, span=span, now=now, by_value=by_value) for at in reversed(range(n))):
            _insert(connection, one)
    database.close()


def _insert(connection: sqlite3.Connection, one: MadeUp) -> None:
    decision, given = one.decision, one.feedback
    record = json.dumps(decision_fields(decision), ensure_ascii=False)
    connection.execute(
        "INSERT INTO decisions (id, at, record) VALUES (?, ?, ?)", (decision.id, decision.at, record)
    )
    if given is None:
        return
    row = (decision.id, given.kind, decision.at, given.value, given.metric, json.dumps(given.grades))
    connection.execute("INSERT INTO feedback VALUES (?, ?, ?, ?, ?, ?)", row)
    connection.executemany(
        "INSERT INTO evidence (at, bank, entry, version, task, utility, decision, feedback) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, 1)",
        [
            (decision.at, bank, e.entry, e.version, e.task, e.utility, e.decision)
            for bank, seen in evidence_of(decision, [given]).items()
            for e in seen
        ],
    )


if __name__ == "__main__":
    fill(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 400)
