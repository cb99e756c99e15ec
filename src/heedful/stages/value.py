"""Estimate the value of memory: how likely each answer is right, and what asking once more would gain.

Every feature has the same meaning in every study and names no source, so that an estimator that was
fitted on other benchmarks can be used. A feature that is not available counts as `MISSING`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from heedful.stages.answer import same_answer
from heedful.stages.calibrate import logistic
from heedful.types import LEAST_SURE, Attempt, Candidate, TreeEnsemble, ValueRule, Verdict

MISSING = -9999.0
SIGNALS = ("mean", "sum", "first", "min", "median", "p10", "margin", "answer_mean", "answer_min")
OWN = (*SIGNALS, "tokens", "characters", "recall", "is_first")
OTHERS = ("same", "others", "share_same", "same_as_first", "contained")
RIVALS = ("rival_mean", "rival_min", "friend_mean", "friend_min", "friend_margin")
ANSWER_FEATURES = (*OWN, *OTHERS, *RIVALS)
GAIN_FEATURES = ("best", "first", "lead", "asked", "distinct", "mean", "min", "margin", "answer_mean", "kind")


@dataclass(frozen=True, slots=True, kw_only=True)
class PassView:
    """What the estimator may know of a pass."""

    answer: str
    signals: Mapping[str, float]
    tokens: int
    characters: int
    recall: float | None
    """The best recall score."""


def view_of(attempt: Attempt) -> PassView:
    """A live pass as the estimator sees it."""
    return PassView(
        answer=attempt.decode.answer,
        signals=attempt.signals,
        tokens=attempt.usage.completion_tokens,
        characters=len(attempt.decode.text),
        recall=max((recall.score for recall in attempt.recalls), default=None),
    )


def answer_features(views: Sequence[PassView], place: int) -> list[float]:
    """The features of one pass among all passes so far; the first view is the first pass."""
    view = views[place]
    others = [other for at, other in enumerate(views) if at != place]
    friends = [other for other in others if view.answer and same_answer(other.answer, view.answer)]
    rivals = [other for other in others if other not in friends]
    same_as_first = place > 0 and bool(view.answer) and same_answer(views[0].answer, view.answer)
    contained = any(_contains(view.answer, other.answer) for other in rivals)
    return [
        *(_signal(view, name) for name in SIGNALS),
        float(view.tokens),
        float(view.characters),
        MISSING if view.recall is None else view.recall,
        float(place == 0),
        float(len(friends)),
        float(len(others)),
        len(friends) / len(others) if others else MISSING,
        float(same_as_first),
        float(contained),
        _best(rivals, "mean"),
        _best(rivals, "min"),
        _best(friends, "mean"),
        _best(friends, "min"),
        _best(friends, "margin"),
    ]


def gain_features(views: Sequence[PassView], chances: Sequence[float], kind: float) -> list[float]:
    """The features of asking one more source; `kind` tells sources of one policy apart."""
    ranked = sorted(chances, reverse=True)
    distinct = [
        at
        for at, view in enumerate(views)
        if not any(same_answer(view.answer, earlier.answer) for earlier in views[:at])
    ]
    return [
        ranked[0],
        chances[0],
        ranked[0] - ranked[1] if len(ranked) > 1 else MISSING,
        float(len(views)),
        float(len(distinct)),
        *(_signal(views[0], name) for name in ("mean", "min", "margin", "answer_mean")),
        kind,
    ]


Asked = tuple[int, ...]
"""Places of the passes that answered so far, ascending: 0 is the first pass, 1 the first source."""


@dataclass(slots=True, kw_only=True)
class Estimates:
    """What trees estimate for one task; each number is computed when it is first needed."""

    answer: TreeEnsemble
    gains: TreeEnsemble
    views: dict[int, PassView]
    """By place; a source without an answer has none."""
    _chances: dict[Asked, list[float]] = field(default_factory=dict)
    _gains: dict[tuple[Asked, int], float] = field(default_factory=dict)

    def answered(self, consulted: Sequence[int]) -> Asked:
        """The first pass and the consulted sources that have an answer."""
        return (0, *sorted(place for place in consulted if place in self.views))

    def chances(self, asked: Asked) -> list[float]:
        """How likely each answer so far is right."""
        if asked not in self._chances:
            views = [self.views[place] for place in asked]
            self._chances[asked] = [
                logistic(total(self.answer, answer_features(views, at))) for at in range(len(views))
            ]
        return self._chances[asked]

    def gain(self, asked: Asked, place: int) -> float:
        """The expected gain of asking the source at a place, before its cost."""
        if (asked, place) not in self._gains:
            views = [self.views[at] for at in asked]
            features = gain_features(views, self.chances(asked), float(place - 1))
            self._gains[asked, place] = total(self.gains, features)
        return self._gains[asked, place]


def worth_asking(estimates: Estimates, rule: ValueRule, asked: Asked, waiting: Sequence[int]) -> int | None:
    """The source with the largest expected gain above its cost, the earlier on a tie; None: stop asking."""
    values = {place: estimates.gain(asked, place) - rule.cost * rule.calls[place - 1] for place in waiting}
    best = max(waiting, key=lambda place: (values[place], -place), default=None)
    return best if best is not None and values[best] > 0 else None


def sources_to_ask(estimates: Estimates, rule: ValueRule, passes: int | None) -> Iterator[int]:
    """The places to ask, at most `passes`; the caller adds the view of an answer before the next."""
    consulted: list[int] = []
    waiting = list(range(1, len(rule.calls) + 1))
    while passes is None or len(consulted) < passes:
        place = worth_asking(estimates, rule, estimates.answered(consulted), waiting)
        if place is None:
            return
        waiting.remove(place)
        consulted.append(place)
        yield place


def best_answer(estimates: Estimates, margin: float, asked: Asked, allowed: Sequence[int]) -> int:
    """The place whose answer to give: the likeliest that is allowed and beats the first by the margin."""
    chances = dict(zip(asked, estimates.chances(asked), strict=True))
    best = max((0, *allowed), key=lambda place: (chances[place], -place))
    return best if chances[best] > chances[0] + margin else 0


def chosen_by_value(
    estimates: Estimates, rule: ValueRule, asked: Asked, judged: Mapping[int, Candidate]
) -> dict[int, Candidate]:
    """The candidates with their chances of being right; only the likeliest that may be taken is accepted."""
    chances = dict(zip(asked, estimates.chances(asked), strict=True))
    allowed = [at + 1 for at, candidate in judged.items() if candidate.verdict.choice == "accept"]
    chosen = best_answer(estimates, rule.margin, asked, allowed)
    less_likely = Verdict(choice="rollback", reason="less likely")
    return {
        at: replace(
            candidate,
            confidence=chances.get(at + 1),
            verdict=less_likely if at + 1 in allowed and at + 1 != chosen else candidate.verdict,
        )
        for at, candidate in judged.items()
    }


def total(trees: TreeEnsemble, values: Sequence[float]) -> float:
    """The sum of the leaves that a row of features reaches, in the order of the trees."""
    result = trees.base
    feature, threshold, left, right = trees.feature, trees.threshold, trees.left, trees.right
    for node in trees.roots:
        while feature[node] >= 0:
            node = left[node] if values[feature[node]] <= threshold[node] else right[node]
        result += trees.value[node]
    return result


def _signal(view: PassView, name: str) -> float:
    value = view.signals.get(name, MISSING)
    return MISSING if value <= LEAST_SURE else value


def _best(views: Sequence[PassView], signal: str) -> float:
    return max((_signal(view, signal) for view in views), default=MISSING)


def _contains(answer: str, other: str) -> bool:
    """Whether one of two answers contains the other as words."""
    one, two = f" {' '.join(answer.casefold().split())} ", f" {' '.join(other.casefold().split())} "
    return bool(answer and other) and (one in two or two in one)
