"""What a policy would have changed while it ran in the shadow, and what that would have cost."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from heedful.errors import UsageError
from heedful.feedback import PREFERENCES, compared_pass
from heedful.records import Decision, Feedback, PassRecord
from heedful.stages.answer import same_answer
from heedful.stats.bootstrap import paired_interval
from heedful.stats.intervals import Interval
from heedful.stats.watched import watched_share

LEVEL = 0.95
LIMIT = 0.02
"""The default limit of harm: the share of all answers that memory may turn from right to wrong."""
MOST_GRADES = 100_000
"""More graded answers than anybody will collect."""
SEED = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedAnswer:
    """An answer that the policy would have replaced."""

    decision: str
    question: str
    first: str
    memory: str
    effect: float | None
    """1: memory is right and the first answer wrong; -1: the reverse; 0: no difference; None: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowCost:
    """What the policy costs per answer beyond the served pass."""

    calls: Interval
    tokens: Interval
    seconds: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowReport:
    """The effect of one policy on the answers of a shadow; a question counts once."""

    policy: str
    """The policy's id."""
    repeated: int
    """Further decisions about a question that is counted already."""
    consulted: Interval
    """Share of answers for which memory was consulted."""
    changed: Interval
    """Share of answers that the policy would have replaced by another one."""
    changes: tuple[ChangedAnswer, ...]
    """Every such answer, oldest first."""
    cost: ShadowCost

    @property
    def answers(self) -> int:
        return self.changed.n

    @property
    def graded(self) -> int:
        """Changed answers whose effect is known."""
        return sum(change.effect is not None for change in self.changes)

    @property
    def undecided(self) -> int:
        return len(self.changes) - self.graded

    @property
    def helps(self) -> Interval | None:
        """Share of helps among the graded changes; None without any."""
        return self._share(lambda effect: effect > 0)

    @property
    def hurts(self) -> Interval | None:
        return self._share(lambda effect: effect < 0)

    @property
    def harm_bound(self) -> float:
        """Upper bound of the share of all answers that the policy would hurt.

        An answer that does not change is not hurt. So the share is that of changed answers times that of
        hurts among them; each factor is bounded with half of the error.
        """
        return _bound_of_changes(self) * _bound_of_hurts(sum(map(_is_hurt, self.changes)), self.graded)

    def _share(self, counts: Callable[[float], bool]) -> Interval | None:
        effects = [change.effect for change in self.changes if change.effect is not None]
        return watched_share(sum(map(counts, effects)), len(effects), LEVEL) if effects else None


def shadow_report(
    decisions: Sequence[Decision], feedback: Mapping[str, Sequence[Feedback]], policy: str
) -> ShadowReport:
    """The report on one policy's shadow decisions, given in any order."""
    of_policy = [one for one in decisions if is_shadow(one) and one.policy_id == policy]
    if not of_policy:
        raise UsageError(
            f"there is no shadow decision of policy {policy!r}: heedful ask --shadow records them"
        )
    counted = _once(sorted(of_policy, key=lambda one: one.at), feedback)
    changes = tuple(change for one in counted if (change := _change(one, feedback.get(one.id, ()))))
    n = len(counted)
    return ShadowReport(
        policy=policy,
        repeated=len(of_policy) - n,
        consulted=watched_share(sum(one.route.choice == "consult" for one in counted), n, LEVEL),
        changed=watched_share(len(changes), n, LEVEL),
        changes=changes,
        cost=_cost(counted),
    )


def is_shadow(decision: Decision) -> bool:
    return decision.assignment is not None and decision.assignment.mode == "shadow"


def grades_needed(report: ShadowReport, limit: float = LIMIT) -> int | None:
    """How many further changed answers must be graded to keep the limit, if they are hurt as often as the
    graded ones so far; None if no number suffices."""
    hurts, graded = sum(map(_is_hurt, report.changes)), report.graded
    share, changed = (hurts / graded if graded else 0.0), _bound_of_changes(report)

    def suffices(n: int) -> bool:
        return changed * _bound_of_hurts(max(hurts, ceil(share * n)), n) <= limit

    if not suffices(MOST_GRADES):
        return None
    low, high = graded, MOST_GRADES
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle + 1, high)
    return low - graded


def _bound_of_changes(report: ShadowReport) -> float:
    return watched_share(len(report.changes), report.answers, (1 + LEVEL) / 2).high


def _bound_of_hurts(hurts: int, graded: int) -> float:
    return watched_share(hurts, graded, (1 + LEVEL) / 2).high if graded else 1.0


def _is_hurt(change: ChangedAnswer) -> bool:
    return change.effect is not None and change.effect < 0


def _once(decisions: Sequence[Decision], feedback: Mapping[str, Sequence[Feedback]]) -> list[Decision]:
    """One decision per question: the first one whose effect is known, or else the first one."""
    by_task: dict[str, Decision] = {}
    for decision in decisions:
        known = by_task.setdefault(decision.task.id, decision)
        if _effect(known, feedback.get(known.id, ())) is None:
            effect = _effect(decision, feedback.get(decision.id, ()))
            by_task[decision.task.id] = known if effect is None else decision
    return list(by_task.values())


def _change(decision: Decision, given: Sequence[Feedback]) -> ChangedAnswer | None:
    """The change that the policy would have made; None if the answer stays the same."""
    served, wanted = decision.passes[_served(decision)], decision.passes[_wanted(decision)]
    if same_answer(wanted.answer, served.answer):
        return None
    return ChangedAnswer(
        decision=decision.id,
        question=decision.task.question or decision.task.search_text,
        first=served.answer,
        memory=wanted.answer,
        effect=_effect(decision, given),
    )


def _served(decision: Decision) -> int:
    """The pass, by its place in the decision, that was served: the one without memory."""
    return 0 if decision.chosen is None else decision.chosen + 1


def _wanted(decision: Decision) -> int:
    """The pass that the policy chose."""
    accepted = None if decision.assignment is None else decision.assignment.accepted
    return 0 if accepted is None else accepted + 1


def _effect(decision: Decision, given: Sequence[Feedback]) -> float | None:
    """The effect of serving the policy's choice; a grade of the served answer says nothing about another."""
    by_kind, served, wanted = {one.kind: one for one in given}, _served(decision), _wanted(decision)
    if answer := by_kind.get("answer"):
        return float(answer.grades[wanted]) - float(answer.grades[served])
    preference = by_kind.get("preference")
    if preference is None or compared_pass(decision) is not decision.passes[wanted]:
        return None
    return PREFERENCES[preference.value]


def _cost(decisions: Sequence[Decision]) -> ShadowCost:
    import numpy as np

    def added(amounts: Sequence[float]) -> Interval:
        tasks = [decision.task.id for decision in decisions]
        return paired_interval(amounts, tasks, np.random.default_rng(SEED), LEVEL)

    def served(decision: Decision) -> PassRecord:
        return decision.passes[_served(decision)]

    return ShadowCost(
        calls=added([d.calls - _times(d) * served(d).calls for d in decisions]),
        tokens=added([d.usage.tokens - _times(d) * served(d).usage.tokens for d in decisions]),
        seconds=added([d.seconds - _times(d) * served(d).seconds for d in decisions]),
    )


def _times(decision: Decision) -> int:
    """How often to subtract the served pass: once more if only the shadow made it, not the policy."""
    return 1 if decision.chosen is None else 2
