"""The signal `calibrated`: a fitted probability of being right instead of a raw confidence."""

from collections.abc import Mapping, Sequence
from math import exp, inf

from heedful.stages.answer import same_answer
from heedful.stages.confidence import check_logprobs
from heedful.types import Attempt, Calibrator

CALIBRATED = "calibrated"


def calibrated_confidence(calibrator: Calibrator, attempt: Attempt, first: Attempt | None) -> float | None:
    """The probability that a pass is right; `first` is given for a second pass only."""
    check_logprobs(attempt.decode)
    said = None if first is None else first.decode.answer
    scores = [recall.score for recall in attempt.recalls]
    return probability(calibrator, features_of(attempt.signals, attempt.decode.answer, said, scores))


def features_of(
    signals: Mapping[str, float], answer: str, first_answer: str | None, scores: Sequence[float]
) -> dict[str, float]:
    """The features of a calibrator: the pass's signals, agreement with the first pass, best recall score."""
    agreement = 0.0 if first_answer is None else float(same_answer(answer, first_answer))
    return {**signals, "agreement": agreement, "recall": max(scores, default=0.0)}


def probability(calibrator: Calibrator, values: Mapping[str, float]) -> float | None:
    """The calibrated probability; None if a feature is missing."""
    if any(name not in values for name in calibrator.features):
        return None
    floors = calibrator.floors or (-inf,) * len(calibrator.features)
    seen = [max(values[name], floor) for name, floor in zip(calibrator.features, floors, strict=True)]
    parts = zip(seen, calibrator.weights, calibrator.means, calibrator.scales, strict=True)
    z = calibrator.bias + sum(w * (value - mean) / scale for value, w, mean, scale in parts)
    return logistic(z)


def logistic(log_odds: float) -> float:
    return 1 / (1 + exp(-log_odds)) if log_odds >= 0 else exp(log_odds) / (1 + exp(log_odds))
