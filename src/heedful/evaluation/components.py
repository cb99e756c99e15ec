"""Component isolation: gate, choose and several banks at one frozen threshold."""

from dataclasses import dataclass

from heedful.evaluation.arm_results import BASELINE, Arm, PairedChange, compare, measure
from heedful.evaluation.study_data import StudyData
from heedful.protocol.fit import threshold_at, tune_at
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
    """The best component of a stage, chosen on the fit side, compared with that of the previous stage."""

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
    threshold = threshold_at(data.fit, SIGNAL, PERCENTILE)
    if threshold is None:
        return Isolation(threshold=None, fit_rows=len(data.fit.table), components=(), stages=())
    best = tune_at(data.fit, data.tuned_banks, SIGNAL, threshold)
    components = [
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
        components=(*components, *_gated_retries(data, threshold)),
        stages=_stages(data, components),
    )


def _gated_retries(data: StudyData, threshold: float) -> list[Component]:
    """Gates whose second pass has no memory, if a retry was recorded."""
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
