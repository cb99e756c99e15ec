"""The speed of replaying and fitting policies from a ledger.

usage: python benchmarks/replay.py [--json]
Replays 10,000 policies over 2,000 rows, compares that with a plain loop over policies and rows, and fits
the whole default grid on 700 rows.
"""

import argparse
import json
import resource
import time
from dataclasses import replace
from itertools import product

import numpy as np

from heedful.protocol.fit import fit
from heedful.protocol.replay import Replayer
from heedful.protocol.study import THRESHOLD_FAMILIES, FitSettings
from heedful.protocol.table import Table, make_column
from heedful.records import PassRecord, RecallRef
from heedful.stages.accept import judge
from heedful.stages.route import choose_route
from heedful.types import Attempt, Decode, Policy, Prompt

SIGNALS = FitSettings().signals
BANKS = ("rule", "exemplar")
LOOPED = 20


def random_table(rows: int, seed: int) -> Table:
    """Passes of three sources that are correlated, and more confident when right."""
    rng = np.random.default_rng(seed)
    ease = rng.normal(size=rows)
    columns = {}
    for source, skill in {"none": 0.1, "rule": 0.2, "exemplar": 0.5}.items():
        right = skill + 0.8 * ease + 0.7 * rng.normal(size=rows) > 0
        level = -0.7 + 0.25 * right + 0.1 * ease + 0.1 * rng.normal(size=rows)
        values = {name: np.minimum(level + 0.05 * rng.normal(size=rows), -1e-4) for name in SIGNALS}
        columns[source] = make_column(
            [
                PassRecord(
                    source=source,
                    prompt="p",
                    model="m",
                    status="decoded",
                    answer="right" if right[i] else f"wrong {rng.integers(5)}",
                    signals={name: float(value[i]) for name, value in values.items()},
                    guards={"format": "", "valid": ""},
                    recalls=() if source == "none" else (RecallRef(entry="e", version="v", score=0.5),),
                    calls=1,
                )
                for i in range(rows)
            ],
            right.tolist(),
        )
    return Table(tasks=tuple(f"t{i}" for i in range(rows)), seeds=(0,) * rows, columns=columns)


def recipes() -> list[Policy]:
    """500 policies without their thresholds."""
    chains = [("rule",), ("exemplar",), ("rule", "exemplar"), ("exemplar", "rule")]
    margins = np.linspace(-0.2, 0.2, 10)
    policies = [
        Policy(signal=signal, threshold=0.0, sources=chain, combine=combine, margins=dict.fromkeys(chain, m))
        for signal, chain, combine, m in product(SIGNALS, chains, ("cascade", "dual"), margins.tolist())
    ]
    return policies[:500]


def loop(policy: Policy, table: Table) -> int:
    """Replay the policy with a plain loop over the rows and the live controller's stage functions."""
    right = 0
    base = table.columns["none"].passes
    empty = Attempt(
        source="", prompt=Prompt(messages=()), decode=Decode(text=""), guards={"format": "", "valid": ""}
    )
    for at, first in enumerate(base):
        confidence = first.signals[policy.signal]
        answer = table.columns["none"].right[at]
        if choose_route(confidence, policy).choice == "consult":
            best = None
            for source in policy.sources:
                row = table.columns[source].passes[at]
                surety = row.signals[policy.signal]
                attempt = replace(empty, source=source)
                if judge(confidence, surety, attempt, policy).choice == "accept":
                    if best is None or (policy.combine == "dual" and surety > best):
                        best, answer = surety, table.columns[source].right[at]
                    if policy.combine == "cascade":
                        break
        right += answer
    return right


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    as_json = parser.parse_args().json
    table, grid = random_table(2000, seed=1), recipes()
    thresholds = np.percentile(table.columns["none"].signals["mean"], range(5, 105, 5))
    start = time.process_time()
    replayer = Replayer(table)
    scores = [replayer.sweep(policy, thresholds) for policy in grid]
    replay_seconds = time.process_time() - start
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    start = time.process_time()
    for place in range(LOOPED):
        policy = replace(grid[place * 25], threshold=float(thresholds[7]))
        assert loop(policy, table) == scores[place * 25].right[7], "the loop and the replay must agree"
    loop_seconds = (time.process_time() - start) / LOOPED * len(grid) * len(thresholds)

    start = time.process_time()
    fitted = fit(random_table(700, seed=2), BANKS, FitSettings(families=THRESHOLD_FAMILIES))
    figures = {
        "policies": len(grid) * len(thresholds),
        "rows": len(table),
        "cpu_seconds": replay_seconds,
        "peak_mb": peak_mb,
        "ratio_to_loop": loop_seconds / replay_seconds,
        "fit_seconds": time.process_time() - start,
        "fit_policies": fitted.policies,
        "fit_rows": fitted.rows,
    }
    if as_json:
        print(json.dumps(figures, indent=2))
        return
    for name, value in figures.items():
        print(f"{name:<14} {value:,.3f}" if isinstance(value, float) else f"{name:<14} {value:,}")


if __name__ == "__main__":
    main()
