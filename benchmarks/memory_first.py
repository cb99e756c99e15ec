"""Should a value policy ask memory first? Cross-validated on the published fit sides; no pass is decoded.

    python benchmarks/memory_first.py            # print the arms
    python benchmarks/memory_first.py --write    # and write results/memory_first.json

A value policy that answers without memory first is compared with one that answers with worked exemplars
first, the best bank in every prompt of each fit side, and may then ask the model without memory. Both are
fitted on four fifths of the fit rows and judged on the fifth, at several prices of a call; folds are drawn
three times. No test row is used. It takes about ten minutes.
"""

import argparse
import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from heedful.evaluation.study_data import StudyData, read_study_data
from heedful.protocol.prior import study_prior
from heedful.protocol.replay import Replayer
from heedful.protocol.study import FitSettings
from heedful.protocol.table import Bools, Table, cluster_folds
from heedful.protocol.value_fit import fit_value
from heedful.protocol.workspace import Workspace
from heedful.stats.bootstrap import paired_interval
from heedful.stats.intervals import Interval
from heedful.types import Policy

RESULTS = Path(__file__).parents[1] / "results"
FILE = RESULTS / "memory_first.json"
BENCHMARKS = ("svamp", "asdiv", "multiarith")
BANKS = ("exemplar", "rule", "worked")
FIRSTS = ("none", "worked")
COSTS = (0.01, 0.03, 0.08)
FOLDS, DRAWS = 5, 3


def fitted(table: Table, first: str, benchmark: str) -> Policy:
    """A value policy that asks `first` first, and then the model without memory or any other bank."""
    prior = study_prior(table, BANKS, FitSettings(families=("value",)), benchmark)
    sources = tuple(source for source in ("none", *BANKS) if source != first)
    known = None if prior is None or prior.value is None else prior.value.trees
    return fit_value(Replayer(table), Policy(first=first, sources=sources), COSTS[0], 0, prior=known)


def at_cost(policy: Policy, cost: float) -> Policy:
    """The same policy at another price of a call: its estimators do not depend on the price."""
    assert policy.value is not None, "it is a value policy"
    return replace(policy, value=replace(policy.value, cost=cost))


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnArm:
    """Policies on rows that they were not fitted on, averaged over the draws of the folds."""

    accuracy: float
    delta: Interval
    helps: float
    hurts: float
    calls: float


def measured(data: StudyData, first: str) -> dict[float, DrawnArm]:
    """For each price, what the policies of the folds do on the rows that they were not fitted on."""
    table = data.fit.table
    right = {cost: np.zeros((DRAWS, len(table)), dtype=bool) for cost in COSTS}
    calls = {cost: np.zeros((DRAWS, len(table))) for cost in COSTS}
    for draw in range(DRAWS):
        for rest, fold in cluster_folds(table.clusters, FOLDS, np.random.default_rng(draw)):
            policy, judge = fitted(table.rows(rest), first, data.lock.benchmark), Replayer(table.rows(fold))
            for cost in COSTS:
                done = judge.replay(at_cost(policy, cost))
                right[cost][draw, fold], calls[cost][draw, fold] = done.right, done.calls
    return {cost: averaged(table, right[cost], float(calls[cost].mean())) for cost in COSTS}


def averaged(table: Table, right: Bools, calls: float) -> DrawnArm:
    base = table.column("none").right
    changes = right.astype(float) - base
    return DrawnArm(
        accuracy=float(right.mean()),
        delta=paired_interval(changes.mean(axis=0), table.clusters, np.random.default_rng(0)),
        helps=float((changes > 0).sum() / DRAWS),
        hurts=float((changes < 0).sum() / DRAWS),
        calls=calls,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="Write results/memory_first.json.")
    options = parser.parse_args()
    found = []
    for benchmark in BENCHMARKS:
        data = read_study_data(Workspace(RESULTS / f"{benchmark}-new"))
        for first in FIRSTS:
            for cost, arm in measured(data, first).items():
                found.append({"benchmark": benchmark, "first": first, "cost": cost, **asdict(arm)})
                print(json.dumps(found[-1]), flush=True)
    if options.write:
        FILE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
