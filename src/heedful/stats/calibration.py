"""Platt scaling of confidences, and measures of how well probabilities are calibrated."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from heedful.errors import UsageError
from heedful.extras import importing
from heedful.stats.arrays import Bools, Floats, flags, numbers
from heedful.stats.logistic import newton, standard
from heedful.stats.ranking import midranks

with importing("study"):
    from scipy.special import expit

BINS = 10
CLIP = 1e-12
"""Probabilities are clipped this far from 0 and 1 in the NLL, which is infinite there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Platt:
    """sigmoid(slope · score + intercept): the probability of being right at a score."""

    slope: float
    intercept: float

    def probability(self, scores: ArrayLike) -> Floats:
        """The probability of being right at each score."""
        return np.asarray(expit(self.slope * numbers(scores, "scores") + self.intercept))


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """How far n probabilities are from the outcomes; lower is better."""

    n: int
    ece: float
    brier: float
    nll: float


def fit_platt(scores: ArrayLike, right: ArrayLike, smooth: bool = True) -> Platt:
    """Platt scaling: logistic regression of right on one score, by maximum likelihood.

    Smoothing (Platt 1999) replaces the targets 1 and 0 by (R + 1) / (R + 2) and 1 / (W + 2) for R
    right and W wrong rows, so separable scores, or rows with one outcome, still have a finite fit.
    Without smoothing such rows are refused.
    """
    values = numbers(scores, "scores")
    outcome = flags(right, "right", len(values))
    if not smooth and _separable(values, outcome):
        raise UsageError("the scores separate right from wrong: only smooth=True has a finite fit")
    means, scales = standard(values[:, None])
    centre, scale = float(means[0]), float(scales[0])
    design = np.column_stack((np.ones(len(values)), (values - centre) / scale))
    targets = _smoothed(outcome) if smooth else outcome.astype(np.float64)
    bias, weight = newton(design, targets, np.zeros(2)).tolist()
    return Platt(slope=weight / scale, intercept=bias - weight * centre / scale)


def measure_calibration(probabilities: ArrayLike, right: ArrayLike) -> Calibration:
    """ECE, Brier score and NLL of the same rows."""
    given, outcome = _checked(probabilities, right)
    return Calibration(
        n=len(given), ece=ece(given, outcome), brier=brier(given, outcome), nll=nll(given, outcome)
    )


def ece(probabilities: ArrayLike, right: ArrayLike, bins: int = BINS) -> float:
    """Expected calibration error (Naeini et al. 2015) over bins of equal mass (Nguyen and O'Connor 2015).

    The mean over rows of |share right − mean probability| in the row's bin. Rows are binned by
    midrank, so equal probabilities share a bin and the order of rows does not matter.
    """
    given, outcome = _checked(probabilities, right)
    if bins < 1:
        raise UsageError(f"{bins} bins are too few: use at least 1")
    bin_of = ((2 * midranks(given) - 1) * bins // (2 * len(given))).astype(np.int64)
    return float(np.abs(np.bincount(bin_of, weights=outcome - given)).sum() / len(given))


def brier(probabilities: ArrayLike, right: ArrayLike) -> float:
    """The mean squared difference between probability and outcome (Brier 1950)."""
    given, outcome = _checked(probabilities, right)
    return float(np.mean((given - outcome) ** 2))


def nll(probabilities: ArrayLike, right: ArrayLike) -> float:
    """The mean negative log-likelihood in nats, probabilities clipped to [1e-12, 1 − 1e-12]."""
    given, outcome = _checked(probabilities, right)
    clipped = np.clip(given, CLIP, 1 - CLIP)
    return float(-np.mean(np.where(outcome, np.log(clipped), np.log1p(-clipped))))


def _checked(probabilities: ArrayLike, right: ArrayLike) -> tuple[Floats, Bools]:
    given = numbers(probabilities, "probabilities")
    if given.min() < 0 or given.max() > 1:
        raise UsageError(f"probabilities must be between 0 and 1, not {given.min()} to {given.max()}")
    return given, flags(right, "right", len(given))


def _smoothed(outcome: Bools) -> Floats:
    right, wrong = int(outcome.sum()), int((~outcome).sum())
    return np.where(outcome, (right + 1) / (right + 2), 1 / (wrong + 2))


def _separable(values: Floats, outcome: Bools) -> bool:
    """Whether the likelihood has no maximum: one outcome only, or a score that separates the two."""
    right, wrong = values[outcome], values[~outcome]
    if not len(right) or not len(wrong):
        return True
    separated = right.min() >= wrong.max() or wrong.min() >= right.max()
    return bool(separated and np.ptp(values) > 0)
