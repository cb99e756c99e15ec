"""What feedback on a decision proves about the entries that it recalled."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from heedful.errors import UsageError
from heedful.records import Decision, Feedback, FeedbackKind, PassRecord
from heedful.stages.answer import same_answer
from heedful.types import Evidence

PREFERENCES: Mapping[str, float] = {"first": -1.0, "tie": 0.0, "memory": 1.0}
GRADES: Mapping[str, bool] = {"right": True, "wrong": False}
STRONGEST_FIRST: tuple[FeedbackKind, ...] = ("answer", "preference", "grade")
"""A known answer grades both passes; a preference compares them; a grade needs a trial to prove anything."""


def grade_feedback(decision: Decision, right: bool) -> Feedback:
    """The final answer is right or wrong."""
    return Feedback(decision=decision.id, kind="grade", value="right" if right else "wrong")


def preference_feedback(decision: Decision, preferred: str) -> Feedback:
    """The answer without memory is better, the one with memory is, or neither."""
    if preferred not in PREFERENCES:
        raise UsageError(f"{preferred!r} is not a preference; choose {', '.join(PREFERENCES)}")
    if memory_free_pass(decision) is None or compared_pass(decision) is None:
        raise UsageError(
            f"decision {decision.id} has no pair of answers with and without memory, "
            "so there is nothing to prefer: say whether the answer is right, or give the right one"
        )
    return Feedback(decision=decision.id, kind="preference", value=preferred)


def answer_feedback(
    decision: Decision, answer: str, metric: str, same: Callable[[str, str], bool]
) -> Feedback:
    """The right answer, and by it the grade of every recorded pass; `same` is the metric."""
    if not answer.strip():
        raise UsageError("the right answer is empty; answer needs a text")
    try:
        grades = tuple(bool(record.answer and same(record.answer, answer)) for record in decision.passes)
    except Exception as error:  # a metric may be the user's own code
        raise UsageError(f"the metric {metric} fails on decision {decision.id}: {error}") from error
    return Feedback(decision=decision.id, kind="answer", value=answer, metric=metric, grades=grades)


def evidence_of(decision: Decision, given: Sequence[Feedback]) -> dict[str, list[Evidence]]:
    """The evidence by bank that all feedback on a decision gives; the strongest kind decides."""
    strongest = deciding_feedback(decision, given)
    return {} if strongest is None else _by_bank(decision, _EFFECTS[strongest.kind](decision, strongest))


def deciding_feedback(decision: Decision, given: Sequence[Feedback]) -> Feedback | None:
    """The feedback of the strongest kind that proves anything."""
    by_kind = {feedback.kind: feedback for feedback in given}
    ordered = [by_kind[kind] for kind in STRONGEST_FIRST if kind in by_kind]
    return next((one for one in ordered if _EFFECTS[one.kind](decision, one)), None)


Effects = list[tuple[PassRecord, float]]
"""Passes with memory, each with the utility of its entries."""


def _effects_of_answer(decision: Decision, feedback: Feedback) -> Effects:
    """Paired: every decoded memory pass against the pass without memory."""
    graded = list(zip(decision.passes, feedback.grades, strict=True))
    free = memory_free_pass(decision)
    base = next((right for record, right in graded if record is free), None)
    if base is None:
        return []
    return [(record, float(right) - float(base)) for record, right in graded if _used_memory(record)]


def _effects_of_preference(decision: Decision, feedback: Feedback) -> Effects:
    record = compared_pass(decision)
    return [] if record is None else [(record, PREFERENCES[feedback.value])]


def _effects_of_grade(decision: Decision, feedback: Feedback) -> Effects:
    """In a trial: ±1, whose mean over the fair coin is the effect of using the memory answer.

    With A = ±1 for used and held out and Y = ±1 for right and wrong, E[A·Y] is the share of right answers
    with memory minus the share without, for every task on which the coin decides.
    """
    pair = trial_pair(decision)
    if decision.trial is None or pair is None:
        return []
    if same_answer(pair.memory.answer, pair.control.answer):
        return [(pair.memory, 0.0)]
    right = GRADES[feedback.value]
    return [(pair.memory, 1.0 if right == decision.trial.allowed else -1.0)]


_EFFECTS: Mapping[FeedbackKind, Callable[[Decision, Feedback], Effects]] = {
    "answer": _effects_of_answer,
    "preference": _effects_of_preference,
    "grade": _effects_of_grade,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialPair:
    """The two passes between which the coin of a trial chose."""

    memory: PassRecord
    control: PassRecord


def trial_pair(decision: Decision) -> TrialPair | None:
    """The pair of a trial; None if the policy chose no answer with memory."""
    if decision.trial is None:
        return None
    accepted = decision.trial.accepted
    memory = decision.first if accepted is None else decision.candidates[accepted].record
    unjudged = [one.record for one in decision.candidates if one.verdict.reason == "control"]
    control = next(iter(unjudged if decision.first.recalls else [decision.first]), None)
    return None if control is None or not _used_memory(memory) else TrialPair(memory=memory, control=control)


def memory_free_pass(decision: Decision) -> PassRecord | None:
    """The decoded pass without memory: the first one, or a later pass of the source `none`."""
    decoded = [record for record in decision.passes if record.status == "decoded"]
    first = [record for record in decoded if record is decision.first and not record.recalls]
    return next(iter([*first, *(record for record in decoded if record.source == "none")]), None)


def compared_pass(decision: Decision) -> PassRecord | None:
    """The memory pass that a preference is about: the one that became the answer, or the last one decoded."""
    used = [record for record in decision.passes if _used_memory(record)]
    chosen = None if decision.chosen is None else decision.candidates[decision.chosen].record
    return chosen if chosen is not None and chosen in used else next(reversed(used), None)


def _used_memory(record: PassRecord) -> bool:
    return record.status == "decoded" and bool(record.recalls)


def _by_bank(decision: Decision, effects: Effects) -> dict[str, list[Evidence]]:
    banks: dict[str, list[Evidence]] = {}
    for record, utility in effects:
        bank = decision.sources.get(record.source, {}).get("bank")
        for recall in record.recalls if isinstance(bank, str) else ():
            evidence = Evidence(
                entry=recall.entry,
                version=recall.version,
                task=decision.task.id,
                utility=utility,
                decision=decision.id,
            )
            banks.setdefault(str(bank), []).append(evidence)
    return banks
