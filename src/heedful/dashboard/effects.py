"""What memory did to graded answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from heedful.errors import UsageError
from heedful.feedback import GRADES
from heedful.governance.bounds import betting_interval
from heedful.records import DecisionFacts
from heedful.stats.intervals import Interval, wilson

Effect = Literal["help", "hurt", "none"]
Tone = Literal["gain", "loss", "unclear"]
LEVEL = 0.95
BY_PREFERENCE: dict[str, Effect] = {"memory": "help", "first": "hurt", "tie": "none"}


def memory_effect(facts: DecisionFacts) -> Effect | None:
    """What memory did to the final answer; None if the feedback does not prove it.

    "Right" or "wrong" about an answer that memory changed does not say what the other answer was worth.
    """
    if facts.memory_first or not is_graded(facts):
        return None
    if not facts.memory_chosen:
        return "none"
    if facts.grades:
        gain = _final_grade(facts) - facts.grades[0]
        return "help" if gain > 0 else "hurt" if gain < 0 else "none"
    if facts.preference is not None:
        return BY_PREFERENCE[facts.preference]
    return "none" if facts.unchanged else None


def final_right(facts: DecisionFacts) -> bool | None:
    """Whether the final answer is right; None if nobody said."""
    if facts.grades:
        return _final_grade(facts)
    return None if facts.grade is None else GRADES[facts.grade]


def first_right(facts: DecisionFacts) -> bool | None:
    """Whether the first pass's answer is right; None if nobody said."""
    if facts.grades:
        return facts.grades[0]
    return final_right(facts) if facts.chosen is None or facts.unchanged else None


def is_graded(facts: DecisionFacts) -> bool:
    return bool(facts.grades) or facts.grade is not None or facts.preference is not None


def _final_grade(facts: DecisionFacts) -> bool:
    return facts.grades[0 if facts.chosen is None else facts.chosen + 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectCounts:
    """Graded answers by what memory did to them."""

    graded: int
    helps: int
    hurts: int
    unproven: int
    """Answers that memory changed and whose feedback does not compare them."""
    right: int
    judged: int
    """Answers that somebody called right or wrong, or whose right answer is known."""

    @property
    def proven(self) -> int:
        return self.graded - self.unproven

    @property
    def tone(self) -> Tone:
        """Whether the net effect is good or bad news, to the digits that a page shows."""
        if self.net is None or round(self.net.low, 3) <= 0 <= round(self.net.high, 3):
            return "unclear"
        return "gain" if self.net.low > 0 else "loss"

    @property
    def net(self) -> Interval | None:
        """Helps minus hurts per answer with a 95% interval that stays valid however often you look."""
        if not self.proven:
            return None
        rest = self.proven - self.helps - self.hurts
        low, high = betting_interval([1.0] * self.helps + [-1.0] * self.hurts + [0.0] * rest, LEVEL)
        return Interval(low=low, high=high, value=(self.helps - self.hurts) / self.proven, n=self.proven)


def count_effects(graded: Sequence[DecisionFacts]) -> EffectCounts:
    """Count the effects of memory on graded answers."""
    if not graded or not all(map(is_graded, graded)):
        raise UsageError(f"effects are counted on graded answers, at least one; got {len(graded)} answers")
    effects = [memory_effect(facts) for facts in graded]
    judged = [right for facts in graded if (right := final_right(facts)) is not None]
    return EffectCounts(
        graded=len(graded),
        helps=effects.count("help"),
        hurts=effects.count("hurt"),
        unproven=effects.count(None),
        right=sum(judged),
        judged=len(judged),
    )


def share_interval(hits: int, n: int) -> Interval:
    """A share with its 95% Wilson interval; refuses n = 0."""
    low, high = wilson(hits, n)
    return Interval(low=low, high=high, value=hits / n, n=n)
