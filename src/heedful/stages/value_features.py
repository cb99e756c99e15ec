"""The features from which the value of memory is estimated.

Every feature has the same meaning in every study and names no source, so that an estimator that was
fitted on other benchmarks can be used. A feature that is not available counts as `MISSING`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from heedful.stages.answer import is_amount, same_answer
from heedful.types import LEAST_SURE, Attempt

MISSING = -9999.0
SIGNALS = ("mean", "sum", "first", "min", "median", "p10", "margin", "answer_mean", "answer_min")
WITHOUT_LOGPROBS = ("agreement", "ptrue", "stated")
OWN = (*SIGNALS, *WITHOUT_LOGPROBS, "tokens", "characters", "recall", "is_first")
OTHERS = ("same", "others", "share_same", "same_as_first", "contained", "similar", "similar_to_first")
RIVALS = ("rival_mean", "rival_min", "friend_mean", "friend_min", "friend_margin")
ANSWER_FEATURES = (*OWN, *OTHERS, *RIVALS, "prior")
GAIN_FEATURES = (
    *("best", "first", "lead", "asked", "distinct", "mean", "min", "margin", "answer_mean"),
    *("source", "prior_gain"),
)
BY_SIMILARITY = ("similar", "similar_to_first")
"""Features that need a similarity of texts."""
FEATURE_WORDS: Mapping[str, str] = {
    **{name: f"the {name} log-prob of its tokens" for name in ("mean", "median", "min", "first", "p10")},
    "sum": "the sum of the log-probs of its tokens",
    "margin": "the gap to the second likeliest tokens",
    "answer_mean": "the mean log-prob of the answer's own tokens",
    "answer_min": "the lowest log-prob of the answer's own tokens",
    "agreement": "the share of samples with the same answer",
    "ptrue": "the model's yes when asked whether it is right",
    "stated": "the confidence that the model stated",
    "tokens": "the length of its text in tokens",
    "characters": "the length of its text in characters",
    "recall": "the best recall score",
    "is_first": "whether it is the first answer",
    "same": "how many other passes give the same answer",
    "others": "how many other passes there are",
    "share_same": "the share of the other passes that give the same answer",
    "same_as_first": "whether it repeats the first answer",
    "contained": "whether another answer contains it, or the other way round",
    "similar": "its likeness to the nearest other answer",
    "similar_to_first": "its likeness to the first answer",
    "rival_mean": "the mean log-prob of the surest pass that disagrees",
    "rival_min": "the lowest log-prob of a pass that disagrees",
    "friend_mean": "the mean log-prob of the surest pass that agrees",
    "friend_min": "the lowest log-prob of a pass that agrees",
    "friend_margin": "the token gap of a pass that agrees",
    "prior": "the estimate of the prior",
}
Similarity = Callable[[str, str], float]
"""How alike two texts are, from -1 to 1."""


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


def answer_features(
    views: Sequence[PassView], place: int, similar: Similarity | None = None, prior: float = MISSING
) -> list[float]:
    """The features of one pass among all passes so far; the first view is the first pass."""
    view = views[place]
    others = [other for at, other in enumerate(views) if at != place]
    friends = [other for other in others if view.answer and same_answer(other.answer, view.answer)]
    rivals = [other for other in others if other not in friends]
    same_as_first = place > 0 and bool(view.answer) and same_answer(views[0].answer, view.answer)
    contained = any(_contains(view.answer, other.answer) for other in rivals)
    return [
        *(_signal(view, name) for name in (*SIGNALS, *WITHOUT_LOGPROBS)),
        float(view.tokens),
        float(view.characters),
        MISSING if view.recall is None else view.recall,
        float(place == 0),
        float(len(friends)),
        float(len(others)),
        len(friends) / len(others) if others else MISSING,
        float(same_as_first),
        float(contained),
        max((_likeness(view, other, similar) for other in others), default=MISSING),
        _likeness(view, views[0], similar) if place else MISSING,
        _best(rivals, "mean"),
        _best(rivals, "min"),
        _best(friends, "mean"),
        _best(friends, "min"),
        _best(friends, "margin"),
        prior,
    ]


def gain_features(
    views: Sequence[PassView], chances: Sequence[float], source: float, prior_gain: float = MISSING
) -> list[float]:
    """The features of asking one more source; `source` tells sources of one policy apart."""
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
        source,
        prior_gain,
    ]


def _signal(view: PassView, name: str) -> float:
    value = view.signals.get(name, MISSING)
    return MISSING if value <= LEAST_SURE else value


def _best(views: Sequence[PassView], signal: str) -> float:
    return max((_signal(view, signal) for view in views), default=MISSING)


def _contains(answer: str, other: str) -> bool:
    """Whether one of two answers contains the other as words."""
    one, two = f" {' '.join(answer.casefold().split())} ", f" {' '.join(other.casefold().split())} "
    return bool(answer and other) and (one in two or two in one)


def _likeness(view: PassView, other: PassView, similar: Similarity | None) -> float:
    """The similarity of two answers in words; between numbers there is only equal and not equal."""
    answers = view.answer, other.answer
    if similar is None or not all(answers) or any(map(is_amount, answers)):
        return MISSING
    return 1.0 if same_answer(*answers) else similar(*answers)
