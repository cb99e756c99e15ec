"""How many graded rows does a value policy need? From the published ledgers; no pass is decoded.

    python benchmarks/labels.py            # print the curve
    python benchmarks/labels.py --write    # and write results/labels.json

A value policy is fitted on some rows of a fit side, drawn three times by seed, and judged on the test side,
which was known when value policies were built. With 0 rows it is the prior with the margin of its card. A
prior never saw the benchmark. It takes about ten minutes.
"""

import argparse
import json
from pathlib import Path
from statistics import fmean

import msgspec
import numpy as np

from heedful.evaluation.study_data import StudyData, read_study_data
from heedful.protocol.fit import fitted_value
from heedful.protocol.prior import study_prior
from heedful.protocol.study import FitSettings
from heedful.protocol.workspace import Workspace
from heedful.types import Policy

RESULTS = Path(__file__).parents[1] / "results"
FILE = RESULTS / "labels.json"
BENCHMARKS = ("svamp", "asdiv")
ROWS = (0, 20, 40, 80, 160, 440)
DRAWS = 3
SETTINGS = FitSettings(families=("value",))


def policy_on(data: StudyData, rows: int, draw: int, prior: str) -> Policy:
    """The value policy from this many rows of the fit side."""
    table, settings = data.fit.table, msgspec.structs.replace(SETTINGS, prior=prior)
    known = study_prior(table, data.tuned_banks, settings, data.lock.benchmark)
    if not rows:
        return known or Policy()
    drawn = np.random.default_rng([draw, rows]).permutation(len(table))[:rows]
    return fitted_value(table.rows(np.sort(drawn)), data.tuned_banks, settings, known).policy


def measured(data: StudyData, rows: int, prior: str) -> dict[str, object]:
    """Gain in points, helps and hurts, averaged over the draws."""
    base, found = data.test.base_right, []
    for draw in range(DRAWS if 0 < rows < len(data.fit.table) else 1):
        done = data.test.replay(policy_on(data, rows, draw, prior))
        helps, hurts = int((done.right & ~base).sum()), int((base & ~done.right).sum())
        found.append((float(100 * (done.right.mean() - base.mean())), helps, hurts, float(done.calls.mean())))
    gains, helps, hurts, calls = ([one[at] for one in found] for at in range(4))
    return {
        "gain": fmean(gains),
        "gains": gains,
        "helps": fmean(helps),
        "hurts": fmean(hurts),
        "calls": fmean(calls),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    found = []
    for benchmark in BENCHMARKS:
        data = read_study_data(Workspace(RESULTS / f"{benchmark}-value"))
        for prior, rows in ((prior, rows) for prior in ("auto", "none") for rows in ROWS):
            if rows or prior == "auto":
                line = {"benchmark": benchmark, "prior": prior == "auto", "rows": rows}
                found.append({**line, **measured(data, rows, prior)})
                print(json.dumps(found[-1]), flush=True)
    if options.write:
        FILE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
