"""Component isolation: gate, choose and several banks at one frozen threshold."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from heedful.evaluation.arms import BASELINE, Arm, PairedChange, compare, measure
from heedful.evaluation.study_data import StudyData
from heedful.protocol.fit import recipes
from heedful.protocol.fit_result import PolicyKind
from heedful.protocol.replay import Replayer
from heedful.protocol.study import FAMILIES, FitSettings
from heedful.types import Policy

PERCENTILE = 35
SIGNAL = "mean"
STAGES = {"gate": ("gate",), "choose": ("choose",), "multibank": ("agree", "cascade", "dual")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """One stack of control stages; its margins were tuned on the fit side at the frozen threshold."""

    family: str
    arm: Arm
    fit_accuracy: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """The best component of a stage, chosen on the fit side, against that of the stage before."""

    name: str
    arm: Arm
    before: str
    paired: PairedChange


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolation:
    threshold: float | None
    """None: the signal was not recorded, so there is nothing to isolate."""
    fit_rows: int
    components: tuple[Component, ...]
    stages: tuple[Stage, ...]


def isolate(data: StudyData) -> Isolation:
    """Every stack of stages at p35 of the fit side's first-pass confidence."""
    threshold = frozen_threshold(data.fit, SIGNAL)
    if threshold is None:
        return Isolation(threshold=None, fit_rows=len(data.fit.table), components=(), stages=())
    best = _tuned(data, threshold)
    found = [
        Component(
            family=kind.family,
            arm=measure(data, "-".join((kind.family, *kind.sources)), policy),
            fit_accuracy=float(data.fit.replay(policy).right.mean()),
        )
        for kind, policy in best.items()
    ]
    return Isolation(
        threshold=threshold,
        fit_rows=len(data.fit.table),
        components=(*found, *_gated_retries(data, threshold)),
        stages=_stages(data, found),
    )


def frozen_threshold(replayer: Replayer, signal: str) -> float | None:
    """p35 of the memory-free pass's confidence; None when it was not measured."""
    confidence = replayer.confidence(Policy(signal=signal), "first")
    known = confidence[np.isfinite(confidence)]
    return float(np.percentile(known, PERCENTILE)) if len(known) else None


def _tuned(data: StudyData, threshold: float) -> Mapping[PolicyKind, Policy]:
    """Of every kind the policy that is right most often on the fit side, then the cheapest."""
    settings = FitSettings(signals=(SIGNAL,), firsts=("none",), calibrated=False)
    best: dict[PolicyKind, tuple[tuple[int, int], Policy]] = {}
    for recipe in recipes(data.fit, data.tuned_banks, settings):
        if recipe.policy.sources:
            scores = data.fit.sweep(recipe.policy, [threshold])
            rank = (-int(scores.right[0]), int(scores.calls[0]))
            if recipe.kind not in best or rank < best[recipe.kind][0]:
                best[recipe.kind] = rank, replace(recipe.policy, threshold=threshold)
    ordered = sorted(best, key=lambda kind: FAMILIES.index(kind.family))
    return {kind: best[kind][1] for kind in ordered}


def _gated_retries(data: StudyData, threshold: float) -> list[Component]:
    """The same second passes without memory, where a retry was recorded."""
    retries = [name for name in data.controls if data.lock.kinds[name] == "retry"]
    gates = {name: Policy(signal=SIGNAL, threshold=threshold, sources=(name,)) for name in retries}
    return [
        Component(
            family="control",
            arm=measure(data, f"gate-{name}", policy),
            fit_accuracy=float(data.fit.replay(policy).right.mean()),
        )
        for name, policy in gates.items()
        if name in data.fit.table.columns
    ]


def _stages(data: StudyData, components: list[Component]) -> tuple[Stage, ...]:
    stages: list[Stage] = []
    before, right = BASELINE, data.test.base_right
    for name, families in STAGES.items():
        inside = [one for one in components if one.family in families]
        if inside:
            arm = max(inside, key=lambda one: one.fit_accuracy).arm
            paired = compare(data, arm.right, right)
            stages.append(Stage(name=name, arm=arm, before=before, paired=paired))
            before, right = arm.name, arm.right
    return tuple(stages)
