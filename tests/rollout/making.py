"""Decisions of a shadow, and feedback on them."""

from collections.abc import Sequence
from dataclasses import replace

from heedful.feedback import answer_feedback
from heedful.records import CandidateRecord, Decision, Feedback, PassRecord, RecallRef
from heedful.testing import DECISION
from heedful.types import Assignment, Task, Usage, Verdict

RECALL = RecallRef(entry="sky", version="v", score=1.0)


def shadow_decision(name: str, first: str, memory: str | None, **changes: object) -> Decision:
    """An answer in the shadow; without `memory` the policy kept the first one."""
    decision = replace(
        DECISION,
        id=name,
        task=Task(question=name),
        sources={"memory": {"kind": "memory", "bank": "notes"}},
        first=replace(DECISION.first, answer=first, calls=1, usage=Usage(prompt_tokens=10), seconds=0.5),
        candidates=() if memory is None else (_candidate(memory),),
        answer=first,
        chosen=None,
        calls=1 if memory is None else 2,
        usage=Usage(prompt_tokens=10 if memory is None else 30),
        seconds=0.5 if memory is None else 1.5,
        route=replace(DECISION.route, choice="keep" if memory is None else "consult"),
        assignment=Assignment(
            mode="shadow", arm="first", share=0.0, key="k", accepted=None if memory is None else 0
        ),
    )
    return replace(decision, **changes)  # type: ignore[arg-type]


def _candidate(answer: str) -> CandidateRecord:
    record = PassRecord(
        source="memory", prompt="p", model="m", status="decoded", answer=answer, recalls=(RECALL,)
    )
    return CandidateRecord(record=record, confidence=None, verdict=Verdict(choice="accept", reason="gate"))


def told(decisions: Sequence[Decision], right: str) -> dict[str, list[Feedback]]:
    """The same right answer to every question."""
    return {one.id: [answer_feedback(one, right, "text", lambda a, b: a == b)] for one in decisions}
