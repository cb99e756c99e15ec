"""Are the chances of a value policy right? Estimated chance against the share of right answers."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from heedful.evaluation.families import families_of
from heedful.evaluation.study_data import StudyData
from heedful.protocol.table import Bools, Floats
from heedful.stats.calibration import Calibration, measure_calibration
from heedful.stats.intervals import Interval, share_of
from heedful.types import Policy

BINS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliabilityBin:
    """Answers with nearly the same chance."""

    chance: float
    """The mean estimate."""
    right: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Reliability:
    """The estimator of one family on all answers of the test side, after every source was asked."""

    family: str
    measured: Calibration
    bins: tuple[ReliabilityBin, ...]


def check_estimators(data: StudyData) -> tuple[Reliability, ...]:
    """The estimators of every value policy that the lock holds, without its promise."""
    fitted = data.lock.fit.unlimited or data.lock.fit
    found = []
    for name, family in families_of(fitted).items():
        policy = family.policy
        if policy.value is not None and all(map(data.tested, (policy.first, *policy.sources))):
            found.append(_reliability(data, name, policy))
    return tuple(found)


def _reliability(data: StudyData, family: str, policy: Policy) -> Reliability:
    chances, right, clusters = zip(*_answers(data, policy), strict=True)
    estimated, outcome = np.array(chances), np.array(right)
    return Reliability(
        family=family,
        measured=measure_calibration(estimated, outcome),
        bins=tuple(_bins(estimated, outcome, clusters)),
    )


def _answers(data: StudyData, policy: Policy) -> Iterator[tuple[float, bool, str]]:
    """Chance, grade and cluster of every answer."""
    assert policy.value is not None, "only a value policy estimates chances"
    columns = [data.test.first(policy.first), *map(data.test.table.column, policy.sources)]
    clusters = data.clusters
    for row, estimates in enumerate(data.test.estimates(policy, policy.value.trees)):
        asked = estimates.answered(range(1, len(columns)))
        for place, chance in zip(asked, estimates.chances(asked), strict=True):
            yield chance, bool(columns[place].right[row]), clusters[row]


def _bins(chances: Floats, right: Bools, clusters: tuple[str, ...]) -> Iterator[ReliabilityBin]:
    """Bins of equal mass, by rising chance."""
    for rows in np.array_split(np.argsort(chances, kind="stable"), BINS):
        if len(rows):
            yield ReliabilityBin(
                chance=float(chances[rows].mean()),
                right=share_of(right[rows], [clusters[row] for row in rows]),
            )
