"""The grid of policies that a fit may choose from."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations, product
from math import inf

import numpy as np

from heedful.protocol.calibrators import fit_calibrators
from heedful.protocol.fit_result import PolicyKind
from heedful.protocol.replay import Replayer
from heedful.protocol.study import FitSettings
from heedful.protocol.table import Floats
from heedful.stages.calibrate import CALIBRATED
from heedful.types import Policy

PERCENTILES = tuple(range(5, 101, 5))
SINGLE_MARGINS = (0, 10, 20, 30, 40, 50, 60, 70, 80, 90)
PAIR_MARGINS = (0, 20, 40, 60, 80)
"""Margins are taken at these percentiles of the difference in confidence, and at 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRecipe:
    """A policy without its threshold."""

    policy: Policy
    kind: PolicyKind


def recipes(replayer: Replayer, banks: Sequence[str], settings: FitSettings) -> Iterator[PolicyRecipe]:
    """The whole grid: first source × family × signal × sources × margins."""
    firsts = ("none", *banks) if settings.firsts is None else settings.firsts
    for first in firsts:
        family = "never" if first == "none" else "always"
        yield PolicyRecipe(policy=Policy(first=first), kind=PolicyKind(first, family))
        others = [source for source in ("none", *banks) if source != first]
        for signal in (*settings.signals, *((CALIBRATED,) if settings.calibrated else ())):
            start = Policy(first=first, signal=signal)
            if signal == CALIBRATED:
                start = replace(start, calibrators=fit_calibrators(replayer, first, others))
            yield from _of_signal(replayer, start, others, settings)


def _of_signal(
    replayer: Replayer, start: Policy, others: Sequence[str], settings: FitSettings
) -> Iterator[PolicyRecipe]:
    def recipe(family: str, sources: tuple[str, ...], margins: Mapping[str, float] | None) -> PolicyRecipe:
        policy = replace(start, sources=sources, margins=margins)
        if family == "agree":
            policy = replace(policy, combine="agree")
        elif family == "dual":
            policy = replace(policy, combine="dual")
        return PolicyRecipe(policy=policy, kind=PolicyKind(start.first, family, start.signal, sources))

    for source in others:
        if "gate" in settings.families:
            yield recipe("gate", (source,), None)
        if "choose" in settings.families:
            for margin in _margins(replayer, start, source, SINGLE_MARGINS):
                yield recipe("choose", (source,), {source: margin})
    if "agree" in settings.families:
        for size in (2, 3):
            for several in permutations(others, size):
                yield recipe("agree", several, None)
    pairs = {"cascade": permutations(others, 2), "dual": combinations(others, 2)}
    for family, sets in pairs.items():
        if family in settings.families:
            for one, other in sets:
                grids = [_margins(replayer, start, source, PAIR_MARGINS) for source in (one, other)]
                for m1, m2 in product(*grids):
                    yield recipe(family, (one, other), {one: m1, other: m2})


def _margins(replayer: Replayer, start: Policy, source: str, percentiles: Sequence[int]) -> list[float]:
    """Margins to try: 0, and percentiles of how much surer the source is than the first pass."""
    difference = replayer.source_confidence(start, source) - replayer.first_confidence(start)
    known = difference[np.isfinite(difference) & (np.abs(difference) < 500)]
    if not len(known):
        return [0.0]
    return sorted({0.0, *(float(value) for value in np.percentile(known, percentiles))})


def thresholds_of(replayer: Replayer, policy: Policy) -> Floats:
    """Percentiles p5…p100 of the first pass's confidence; p100 routes every row."""
    if not policy.sources:
        return np.array([-inf])
    confidence = replayer.first_confidence(policy)
    known = confidence[np.isfinite(confidence)]
    if not len(known):
        return np.array([-inf])
    cuts = np.percentile(known, PERCENTILES)
    cuts[-1] = np.nextafter(cuts[-1], inf)
    return np.asarray(cuts)
