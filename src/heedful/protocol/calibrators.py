"""Fit the small logistic models that the signal `calibrated` uses."""

from collections.abc import Sequence

import numpy as np

from heedful.protocol.replay import Replayer, features
from heedful.protocol.table import Column
from heedful.stats.logistic import fit_logistic
from heedful.types import LEAST_SURE, Calibrator, Calibrators

FIRST_FEATURES = ("mean", "min", "median", "answer_mean")
SECOND_FEATURES = (*FIRST_FEATURES, "agreement", "recall")
PENALTY = 1.0


def fit_calibrators(replayer: Replayer, first: str, sources: Sequence[str]) -> Calibrators:
    """One calibrator for the first pass and one for each source, from the rows of this table only."""
    first_pass = replayer.first(first)
    return Calibrators(
        first=_fit(first_pass, None, FIRST_FEATURES),
        sources={
            source: _fit(replayer.table.column(source), first_pass, SECOND_FEATURES) for source in sources
        },
    )


def _fit(column: Column, first: Column | None, names: tuple[str, ...]) -> Calibrator:
    rows = [
        ([values[name] for name in names], bool(right))
        for right, decoded, values in zip(column.right, column.decoded, features(column, first), strict=True)
        if decoded and all(name in values for name in names)
    ]
    if len({right for _, right in rows}) < 2:  # one outcome only: use the share of right answers
        share = np.mean([right for _, right in rows]) if rows else 0.5
        bias = float(np.log((share * len(rows) + 1) / ((1 - share) * len(rows) + 1)))
        zeros, ones = (0.0,) * len(names), (1.0,) * len(names)
        return Calibrator(features=names, weights=zeros, bias=bias, means=zeros, scales=ones)
    seen = np.array([x for x, _ in rows])
    floors = np.where(seen > LEAST_SURE, seen, np.inf).min(axis=0)
    floors = np.where(np.isfinite(floors), floors, LEAST_SURE)
    fitted = fit_logistic(np.maximum(seen, floors), np.array([y for _, y in rows]), PENALTY)
    return Calibrator(
        features=names,
        weights=fitted.weights,
        bias=fitted.bias,
        means=fitted.means,
        scales=fitted.scales,
        floors=tuple(floors.tolist()),
    )
