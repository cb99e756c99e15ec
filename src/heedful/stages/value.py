"""Estimate the value of memory: how likely each answer is right, and what asking once more would gain."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from heedful.stages.calibrate import logistic
from heedful.stages.trees import looks_at, strongest_effects, total
from heedful.stages.value_features import (
    BY_SIMILARITY,
    MISSING,
    PassView,
    Similarity,
    answer_features,
    gain_features,
)
from heedful.types import AnswerEstimate, Candidate, GainEstimate, ValueRule, ValueTrees, Verdict

REASONS = 3
"""How many features an explanation names for each answer."""
PER_UNIT = {"calls": 1, "tokens": 1000}
"""How many calls or tokens λ prices."""

Asked = tuple[int, ...]
"""Places of the passes that answered so far, ascending: 0 is the first pass, 1 the first source."""


@dataclass(slots=True, kw_only=True)
class Estimates:
    """What trees estimate for one task; each number is computed when it is first needed."""

    trees: ValueTrees
    views: dict[int, PassView]
    """By place; a source without an answer has none."""
    similar: Similarity | None = None
    """How alike two answers are; None: not available."""
    prior: "Estimates | None" = field(init=False, default=None)
    _log_odds: dict[Asked, list[float]] = field(init=False, default_factory=dict)
    _gains: dict[tuple[Asked, int], float] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        prior = self.trees.prior
        if prior is not None:
            self.prior = Estimates(trees=prior, views=self.views, similar=self.similar)

    def answered(self, consulted: Sequence[int]) -> Asked:
        """The first pass and the consulted sources that have an answer."""
        return (0, *sorted(place for place in consulted if place in self.views))

    def features(self, asked: Asked) -> list[list[float]]:
        """The features of each answer so far."""
        views = [self.views[place] for place in asked]
        before = [MISSING] * len(asked) if self.prior is None else self.prior.log_odds(asked)
        return [answer_features(views, at, self.similar, before[at]) for at in range(len(views))]

    def log_odds(self, asked: Asked) -> list[float]:
        """The log-odds that each answer so far is right."""
        if asked not in self._log_odds:
            self._log_odds[asked] = [total(self.trees.answer, values) for values in self.features(asked)]
        return self._log_odds[asked]

    def chances(self, asked: Asked) -> list[float]:
        """How likely each answer so far is right."""
        return [logistic(odds) for odds in self.log_odds(asked)]

    def gain(self, asked: Asked, place: int) -> float:
        """The expected gain of asking the source at a place, before its cost."""
        if (asked, place) not in self._gains:
            self._gains[asked, place] = total(self.trees.gain, self.gain_features(asked, place))
        return self._gains[asked, place]

    def gain_features(self, asked: Asked, place: int) -> list[float]:
        """The features of asking the source at a place."""
        source = float(place - 1) if self.trees.by_source else MISSING
        before = MISSING if self.prior is None else self.prior.gain(asked, place)
        return gain_features([self.views[at] for at in asked], self.chances(asked), source, before)


def with_priors(trees: ValueTrees | None) -> list[ValueTrees]:
    """The trees, and the prior that they use."""
    return [] if trees is None else [trees, *with_priors(trees.prior)]


def compares_meanings(trees: ValueTrees) -> bool:
    """Whether the trees look at the similarity of answers."""
    return any(looks_at(part.answer, BY_SIMILARITY) for part in with_priors(trees))


def price(rule: ValueRule, place: int) -> float:
    """What asking the source at a place costs, in accuracy."""
    return rule.cost * rule.costs[place - 1] / PER_UNIT[rule.unit]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One point of a consultation: the best source to ask next, and whether it is worth its cost."""

    place: int
    gain: float
    cost: float

    @property
    def value(self) -> float:
        return self.gain - self.cost

    @property
    def pays(self) -> bool:
        return self.value > 0


def best_step(estimates: Estimates, rule: ValueRule, asked: Asked, waiting: Sequence[int]) -> Step | None:
    """The source with the largest expected gain above its cost, the earlier on a tie; None: none is left."""
    steps = [Step(place=p, gain=estimates.gain(asked, p), cost=price(rule, p)) for p in waiting]
    return max(steps, key=lambda step: (step.value, -step.place), default=None)


def sources_to_ask(estimates: Estimates, rule: ValueRule, passes: int | None) -> Iterator[Step]:
    """The steps of a consultation of at most `passes`; the last one may be a step that does not pay.

    The caller asks the source of a step that pays, and adds the view of its answer before the next.
    """
    consulted: list[int] = []
    waiting = list(range(1, len(rule.costs) + 1))
    while passes is None or len(consulted) < passes:
        step = best_step(estimates, rule, estimates.answered(consulted), waiting)
        if step is None:
            return
        yield step
        if not step.pays:
            return
        waiting.remove(step.place)
        consulted.append(step.place)


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


def explained_answers(
    estimates: Estimates, asked: Asked, sources: Sequence[str]
) -> tuple[AnswerEstimate, ...]:
    """Each answer with its chance and the features that moved it most; `sources` by place."""
    return tuple(
        AnswerEstimate(
            source=sources[place],
            chance=chance,
            reasons=strongest_effects(estimates.trees.answer, values, REASONS),
        )
        for place, chance, values in zip(
            asked, estimates.chances(asked), estimates.features(asked), strict=True
        )
    )


def explained_step(step: Step, sources: Sequence[str]) -> GainEstimate:
    """A step in a decision record; `sources` by place."""
    return GainEstimate(source=sources[step.place], gain=step.gain, cost=step.cost, asked=step.pays)
