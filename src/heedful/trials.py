"""The effect of memory on the answers of a randomised trial."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from heedful.feedback import GRADES, trial_pair
from heedful.records import Decision, Feedback
from heedful.stages.answer import same_answer
from heedful.stats.intervals import Interval, difference_of_shares


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialEffect:
    """Graded answers on which the coin decided: the memory answer was used, or held out."""

    used: int = 0
    used_right: int = 0
    held_out: int = 0
    held_out_right: int = 0

    @property
    def difference(self) -> Interval | None:
        """Share of right answers with memory minus without; None if one side is empty."""
        if not self.used or not self.held_out:
            return None
        return difference_of_shares(self.used_right, self.used, self.held_out_right, self.held_out)


def trial_effect(decisions: Iterable[Decision], feedback: Mapping[str, Sequence[Feedback]]) -> TrialEffect:
    """The effect over the graded decisions of a trial in which the two answers differ.

    The coin decides only there: everywhere else both sides give the same answer, so the effect is 0.
    """
    counts = {True: [0, 0], False: [0, 0]}
    for decision in decisions:
        right = final_grade(decision, feedback.get(decision.id, ()))
        if right is not None and coin_decided(decision) and decision.trial is not None:
            counts[decision.trial.allowed][0] += 1
            counts[decision.trial.allowed][1] += right
    (used, used_right), (held_out, held_out_right) = counts[True], counts[False]
    return TrialEffect(used=used, used_right=used_right, held_out=held_out, held_out_right=held_out_right)


def coin_decided(decision: Decision) -> bool:
    """Whether the other side of the coin would have given another answer."""
    pair = trial_pair(decision)
    return pair is not None and not same_answer(pair.memory.answer, pair.control.answer)


def final_grade(decision: Decision, feedback: Sequence[Feedback]) -> bool | None:
    """Whether the final answer is right, by a known answer or else by a grade; None if nobody said."""
    by_kind = {given.kind: given for given in feedback}
    if "answer" in by_kind:
        return by_kind["answer"].grades[0 if decision.chosen is None else decision.chosen + 1]
    return GRADES[by_kind["grade"].value] if "grade" in by_kind else None
