"""A small logistic regression, for calibrators."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from heedful.errors import UsageError
from heedful.extras import importing
from heedful.stats.arrays import Floats, flags, numbers

with importing("study"):
    from scipy.special import expit

STEPS = 200
SHORTEST = 1e-12
SETTLED = 1e-14
"""Stop when a Newton step is expected to reduce the loss by less than this share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Logistic:
    """Weights over standardised features: sigmoid(bias + Σ weight · (feature − mean) / scale)."""

    weights: tuple[float, ...]
    bias: float
    means: tuple[float, ...]
    scales: tuple[float, ...]

    def probability(self, features: ArrayLike) -> Floats:
        """The probability of being right, for each row of features."""
        rows = numbers(features, "features", dimensions=2)
        if rows.shape[1] != len(self.weights):
            raise UsageError(f"the model was fitted on {len(self.weights)} features, not {rows.shape[1]}")
        standard = (rows - np.array(self.means)) / np.array(self.scales)
        return np.asarray(expit(standard @ np.array(self.weights) + self.bias))


def fit_logistic(features: ArrayLike, right: ArrayLike, penalty: float) -> Logistic:
    """Minimise Σ log-loss + penalty/2 · Σ weight² over standardised features; the bias is not penalised.

    The penalty is scikit-learn's 1/C. A constant feature gets weight 0; perfectly separable rows
    get finite weights because the penalty is above 0.
    """
    if not penalty > 0:
        raise UsageError(f"the penalty must be above 0, not {penalty}: separable rows have no fit without it")
    rows = numbers(features, "features", dimensions=2)
    targets = flags(right, "right", len(rows))
    if targets.all() or not targets.any():
        raise UsageError(f"all {len(rows)} rows have the same outcome: a fit needs both right and wrong rows")
    means, scales = standard(rows)
    design = np.column_stack((np.ones(len(rows)), (rows - means) / scales))
    ridge = np.full(design.shape[1], float(penalty))
    ridge[0] = 0.0
    bias, *weights = newton(design, targets.astype(np.float64), ridge).tolist()
    return Logistic(
        weights=tuple(weights), bias=bias, means=tuple(means.tolist()), scales=tuple(scales.tolist())
    )


def standard(rows: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each column; a constant column gets scale 1 and becomes 0."""
    constant = np.ptp(rows, axis=0) == 0
    means = np.where(constant, rows[0], rows.mean(axis=0))
    return means, np.where(constant, 1.0, rows.std(axis=0))


def newton(design: Floats, targets: Floats, ridge: Floats) -> Floats:
    """Fit a logistic regression by Newton steps (iteratively reweighted least squares).

    Targets may lie between 0 and 1. A step that does not lower the loss is halved, and 1e-12 on the
    diagonal keeps a constant column solvable (Lin, Lin and Weng 2007). The loss of many rows is rounded:
    if not even a small part of a step lowers it, the whole step is the last one.
    """
    weights = np.zeros(design.shape[1])
    for _ in range(STEPS):
        probability = expit(design @ weights)
        gradient = design.T @ (probability - targets) + ridge * weights
        curvature = design.T * (probability * (1 - probability)) @ design + np.diag(ridge + 1e-12)
        step = np.asarray(np.linalg.solve(curvature, gradient), dtype=np.float64)
        loss = _loss(design, targets, ridge, weights)
        if gradient @ step <= SETTLED * (1 + loss):
            return weights - step
        length = 1.0
        while _loss(design, targets, ridge, weights - length * step) > loss and length > SHORTEST:
            length /= 2
        if length < 1 and _loss(design, targets, ridge, weights - length * step) >= loss:
            return weights - step
        weights = weights - length * step
    raise UsageError(f"the logistic fit did not converge in {STEPS} steps: raise the penalty")


def _loss(design: Floats, targets: Floats, ridge: Floats, weights: Floats) -> float:
    margin = design @ weights
    return float((np.logaddexp(0, margin) - targets * margin).sum() + (ridge * weights**2).sum() / 2)
