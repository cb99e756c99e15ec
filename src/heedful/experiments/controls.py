"""Negative controls: the same study with bad entries added to a bank.

Every arm was chosen on the clean fit side; nothing is tuned to the bad entries.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from heedful import arms
from heedful.experiments.arm_measures import ArmMeasure, measure_arms
from heedful.experiments.study_evidence import table_evidence
from heedful.experiments.variant import Experiment
from heedful.governance.bounds import RULES, first_condemned
from heedful.governance.poison import is_bad, spoiled
from heedful.protocol.fit import tune
from heedful.protocol.lock import study_policy
from heedful.protocol.table import Table
from heedful.protocol.workflow import side_table
from heedful.types import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """What a retirement rule removes from the bank if it is applied after every task."""

    bad: int
    """Bad entries that were recalled at least once."""
    bad_gone: int
    good_gone: int
    median_tasks: float | None
    """Median number of an entry's recalls before it is removed, over the bad entries removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlResult:
    """The arms at one rate of bad entries."""

    rate: float
    bad: int
    entries: int
    exposed: float
    """Share of rows whose recalls contain a bad entry."""
    arms: Mapping[str, ArmMeasure]
    removal: Mapping[str, Removal] = field(default_factory=dict)
    """By retirement rule."""
    changed: int = 0
    """Passes that the bad entries changed and that had to be recorded."""


async def controls(
    experiment: Experiment, rates: Sequence[float], kinds: Sequence[str]
) -> list[ControlResult]:
    """Every arm at every rate, the clean bank first."""
    policies = control_policies(experiment)
    mixtures = {rate: spoiled(experiment.live, rate, kinds, experiment.seed) for rate in rates}
    clean = await experiment.table()
    size = len(experiment.live)

    def controlled(table: Table, rate: float, entries: int, changed: int) -> ControlResult:
        column = table.column(experiment.source)
        exposed = [any(is_bad(recall.entry) for recall in row.recalls) for row in column.passes]
        return ControlResult(
            rate=rate,
            bad=entries - size,
            entries=entries,
            exposed=sum(exposed) / len(exposed),
            arms=measure_arms(table, clean, policies),
            removal={rule: _removal(table, experiment.source, rule) for rule in RULES},
            changed=changed,
        )

    results = [controlled(clean, 0.0, size, 0)]
    for rate, mixed in mixtures.items():
        label = f"{'-'.join(kinds)}-{rate:g}"
        varied = await experiment.vary(label, f"{rate:.0%} bad entries", clean, mixed)
        results.append(controlled(varied.table, rate, len(mixed), varied.changed))
    return results


def control_policies(experiment: Experiment) -> dict[str, Policy]:
    """The arms: always, the best gate and the best choose on the fit side, and the study's policy."""
    settings = msgspec.structs.replace(
        experiment.setup.study.fit, families=("gate", "choose"), firsts=("none",)
    )
    best = tune(side_table(experiment.space, experiment.setup, "fit"), [experiment.source], settings)[0]
    policies = {"always": arms.always(experiment.source)}
    for family in ("gate", "choose"):
        choices = [one for kind, one in best.items() if kind.family == family]
        if choices:
            policies[family] = min(choices, key=lambda one: one.rank).policy
    return {**policies, "heedful": study_policy(experiment.space)}


def _removal(table: Table, source: str, rule: str) -> Removal:
    """Simulate grading every row in order and judging every entry after each of its recalls."""
    utilities: dict[str, dict[str, float]] = {}
    for one in table_evidence(table, source):
        utilities.setdefault(one.entry, {}).setdefault(one.task, one.utility)
    gone = {entry: first_condemned(list(tasks.values()), rule, 0.05) for entry, tasks in utilities.items()}
    after = sorted(tasks for entry, tasks in gone.items() if tasks and is_bad(entry))
    return Removal(
        bad=sum(map(is_bad, utilities)),
        bad_gone=len(after),
        good_gone=sum(bool(tasks) and not is_bad(entry) for entry, tasks in gone.items()),
        median_tasks=after[len(after) // 2] if after else None,
    )
