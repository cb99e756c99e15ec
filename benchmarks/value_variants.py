"""Value policies with and without a prior, from the published ledgers; no pass is decoded.

    python benchmarks/value_variants.py [--json]

Three variants on SVAMP, ASDiv and MultiArith: the prior alone (nothing is fitted on the benchmark), the
prior with the study's own rows, and the own rows alone; each without a limit and certified to hurt at most
2% at 95%. `test` chooses on the fit side and judges on the known test side, so it is a second opening.
`cross-fitted` repeats the choice over five folds of all rows. A prior never saw the benchmark.
"""

import argparse
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec
import numpy as np

from heedful.evaluation.study_data import StudyData, read_study_data
from heedful.protocol.crossfit import CrossfitArm, CrossfitRows, join_sides, measure_rows
from heedful.protocol.fit import fitted_value
from heedful.protocol.harm import certify, fit_within_limit
from heedful.protocol.ladders import prior_ladder
from heedful.protocol.prior import study_prior
from heedful.protocol.replay import Replayer
from heedful.protocol.study import FitSettings
from heedful.protocol.table import Table, cluster_folds
from heedful.protocol.workspace import Workspace
from heedful.types import Policy

ROOT = Path(__file__).parents[1]
BENCHMARKS = ("svamp", "asdiv", "multiarith")
FREE = FitSettings(families=("value",))
LIMITED = msgspec.structs.replace(FREE, harm_limit=0.02)
FOLDS = 5
Procedure = Callable[[Table, list[str], str], Policy]
"""From the rows to choose on, the banks and the benchmark to a policy."""


def prior_alone(table: Table, banks: list[str], benchmark: str) -> Policy:
    policy = study_prior(table, banks, FREE, benchmark)
    assert policy is not None, "there is a prior for numbers"
    return policy


def prior_alone_certified(table: Table, banks: list[str], benchmark: str) -> Policy:
    ladder = prior_ladder(prior_alone(table, banks, benchmark), table, LIMITED)
    certificate = certify(ladder, Replayer(table), LIMITED, 1)
    return Policy() if certificate.chosen is None else ladder.steps[certificate.chosen].policy


def with_own_rows(prior: str, limit: bool) -> Procedure:
    settings = msgspec.structs.replace(LIMITED if limit else FREE, prior=prior)

    def choose(table: Table, banks: list[str], benchmark: str) -> Policy:
        known = study_prior(table, banks, settings, benchmark)
        if limit:
            return fit_within_limit(table, banks, settings, known).policy
        return fitted_value(table, banks, settings, known).policy

    return choose


PROCEDURES: Mapping[str, Procedure] = {
    "prior only": prior_alone,
    "prior + own rows": with_own_rows("auto", limit=False),
    "own rows only": with_own_rows("none", limit=False),
    "prior only, 2%": prior_alone_certified,
    "prior + own rows, 2%": with_own_rows("auto", limit=True),
    "own rows only, 2%": with_own_rows("none", limit=True),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class VariantResult:
    benchmark: str
    variant: str
    test: CrossfitArm
    crossfitted: CrossfitArm


def on_test(data: StudyData, banks: list[str], choose: Procedure) -> CrossfitArm:
    policy = choose(data.fit.table, banks, data.lock.benchmark)
    done = data.test.replay(policy)
    rows = CrossfitRows(right=done.right, calls=done.calls, policies=(policy,))
    return measure_rows(data.test.table, rows, np.random.default_rng(0))


def on_all(data: StudyData, banks: list[str], choose: Procedure) -> CrossfitArm:
    table = join_sides({"fit": data.fit.table, "test": data.test.table}, data.repeats)
    right, calls = np.zeros(len(table), dtype=bool), np.zeros(len(table), dtype=np.int64)
    policies = []
    for rest, fold in cluster_folds(table.clusters, FOLDS, np.random.default_rng(3)):
        policies.append(choose(table.rows(rest), banks, data.lock.benchmark))
        done = Replayer(table.rows(fold)).replay(policies[-1])
        right[fold], calls[fold] = done.right, done.calls
    rows = CrossfitRows(right=right, calls=calls, policies=tuple(policies))
    return measure_rows(table, rows, np.random.default_rng(0))


def cell(arm: CrossfitArm) -> str:
    value, low, high = (100 * number for number in (arm.delta.value, arm.delta.low, arm.delta.high))
    return (
        f"{100 * arm.accuracy:.1f}%, {value:+.1f} [{low:+.1f}, {high:+.1f}], p = {arm.p:.1g}, "
        f"{arm.helps} / {arm.hurts}, {arm.calls:.2f} calls"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = []
    if not options.json:
        print("| benchmark | variant | test side | cross-fitted on all rows |\n|---|---|---|---|")
    for benchmark in BENCHMARKS:
        data = read_study_data(Workspace(ROOT / "results" / f"{benchmark}-value"))
        banks = list(data.tuned_banks)
        for variant, choose in PROCEDURES.items():
            result = VariantResult(
                benchmark=benchmark,
                variant=variant,
                test=on_test(data, banks, choose),
                crossfitted=on_all(data, banks, choose),
            )
            found.append(result)
            if not options.json:
                cells = (benchmark, variant, cell(result.test), cell(result.crossfitted))
                print(f"| {' | '.join(cells)} |", flush=True)
    if options.json:
        print(json.dumps([asdict(result) for result in found], indent=1))


if __name__ == "__main__":
    main()
