"""Accuracy, harm and cost as functions of a bank's size, its noise and its construction cost."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from heedful import arms
from heedful.errors import LeakError, UsageError
from heedful.experiments.arm_measures import ArmMeasure, measure_arms
from heedful.experiments.bank_building import cost_file
from heedful.experiments.variant import Experiment
from heedful.governance.poison import KINDS, spoiled
from heedful.memory.formats import read_entries
from heedful.protocol.fit_result import VALUE, FitResult
from heedful.protocol.lock import study_fit
from heedful.protocol.setup import StudySetup
from heedful.protocol.workspace import read_json
from heedful.types import Entry, Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class SensitivityPoint:
    """The arms with one variant of the bank."""

    axis: str
    """`size`, `noise` or `construction`."""
    value: float
    """A share, or the number of model calls to build the bank."""
    entries: int
    arms: Mapping[str, ArmMeasure]
    changed: int
    """Passes that this bank changed and that had to be recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BankVariant:
    """A bank that replaces the source's own."""

    axis: str
    value: float
    label: str
    entries: Sequence[Entry]


async def sensitivity(
    experiment: Experiment, sizes: Sequence[float], noises: Sequence[float], built: Sequence[Path] = ()
) -> list[SensitivityPoint]:
    """Every size without noise, every noise at full size, and every built bank, on the same rows."""
    banks = [
        *_parts(experiment, sizes),
        *_noisy(experiment, noises),
        *sorted((_built(file, experiment.setup) for file in built), key=lambda bank: bank.value),
    ]
    policies = {"always": arms.always(experiment.source), **_chosen(study_fit(experiment.space))}
    table = await experiment.table()
    points = []
    for bank in banks:
        varied = await experiment.vary(bank.label, f"{bank.axis} {bank.value:g}", table, bank.entries)
        points.append(
            SensitivityPoint(
                axis=bank.axis,
                value=bank.value,
                entries=len(bank.entries),
                arms=measure_arms(varied.table, table, policies),
                changed=varied.changed,
            )
        )
    return points


def _chosen(fitted: FitResult) -> dict[str, Policy]:
    """The study's policy, and its value policy without a harm limit if that is another one."""
    policies = {"heedful": fitted.policy}
    value = (fitted.unlimited or fitted).families.get(VALUE)
    if value is not None and value.policy != fitted.policy:
        policies["value"] = value.policy
    return policies


def _parts(experiment: Experiment, sizes: Sequence[float]) -> list[BankVariant]:
    """Parts of the bank; each is contained in the next larger one."""
    order = random.Random(experiment.seed).sample(experiment.live, len(experiment.live))
    parts = []
    for size in sorted(sizes):
        chosen = {entry.id for entry in order[: max(1, round(size * len(order)))]}
        entries = [entry for entry in experiment.live if entry.id in chosen]
        parts.append(BankVariant(axis="size", value=size, label=f"size-{size:g}", entries=entries))
    return parts


def _noisy(experiment: Experiment, noises: Sequence[float]) -> list[BankVariant]:
    return [
        BankVariant(
            axis="noise",
            value=rate,
            label=f"noise-{rate:g}",
            entries=spoiled(experiment.live, rate, list(KINDS), experiment.seed),
        )
        for rate in sorted(noises)
    ]


def _built(file: Path, setup: StudySetup) -> BankVariant:
    """A bank made by `heedful bank build`, with its model calls."""
    entries = read_entries(file)[0]
    if len(setup.splits.unasked(entries)) < len(entries):
        raise LeakError(f"{file} contains a question of the fit or the test side: remove the entry")
    cost = read_json(cost_file(file), f"{file} must be made by heedful bank build, which writes its cost")
    try:
        calls = int(cost["rollouts"]) + int(cost["written"])
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{cost_file(file)} must contain the numbers `rollouts` and `written`") from error
    return BankVariant(axis="construction", value=calls, label=f"built-{file.stem}", entries=entries)
