"""How much of a study's test result rests on near-duplicates of test questions?

Benchmarks built from variations (SVAMP) contain the same story with different numbers on both sides. This
splits the test rows by whether a recalled entry is nearly identical to the row's question (MiniLM cosine at
least 0.95), and counts the locked policy's helps and hurts in both parts. It does the same for test questions
that are nearly identical to a question of the fit side. It needs the benchmark data, but no model calls:

    python benchmarks/near_duplicates.py results/svamp --data FOLDER
"""

import argparse
import json
from pathlib import Path

import numpy as np

from heedful.benchmarks.items import normal_question
from heedful.experiments.bank_building import NEAR_DUPLICATE, near_duplicates
from heedful.experiments.variant import study_policy
from heedful.memory.embed import MiniLM
from heedful.models.weights import pull
from heedful.protocol.replay import Replayer
from heedful.protocol.setup import prepare
from heedful.protocol.workflow import side_table
from heedful.protocol.workspace import open_workspace


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("study", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    space = open_workspace(given.study, None)
    setup = prepare(space.study, given.data)
    table, policy = side_table(space, setup, "test"), study_policy(space)
    embedder = MiniLM(pull("all-minilm-l6-v2"))
    items = {item.id: at for at, item in enumerate(setup.splits.test)}
    near = np.zeros(len(table), dtype=bool)
    figures: dict[str, object] = {"policy_sources": list(policy.sources)}
    for name in (policy.first, *policy.sources):
        if name not in setup.banks:
            continue
        entries = setup.banks[name].entries()
        alike = near_duplicates(entries, setup.splits.test, embedder)
        place = {entry.id: at for at, entry in enumerate(entries)}
        figures[f"near_entries_{name}"] = f"{int(alike.any(axis=1).sum())} of {len(entries)}"
        for at, row in enumerate(table.column(name).passes):
            near[at] |= any(alike[place[recall.entry], items[table.tasks[at]]] for recall in row.recalls)
    fit, test = (
        embedder.embed([normal_question(item.question) for item in side])
        for side in (setup.splits.fit, setup.splits.test)
    )
    close = (test @ fit.T >= NEAR_DUPLICATE).any(axis=1)
    near_fit = np.array([close[items[task]] for task in table.tasks])
    replayer = Replayer(table)
    base, final = replayer.base_right, replayer.replay(policy).right
    parts = {"near": near, "others": ~near, "near_fit_row": near_fit, "far_from_fit_rows": ~near_fit}
    for part, rows in parts.items():
        helps, hurts = int((final & ~base & rows).sum()), int((base & ~final & rows).sum())
        figures[part] = {
            "rows": int(rows.sum()),
            "baseline": round(float(base[rows].mean()), 4) if rows.any() else None,
            "heedful": round(float(final[rows].mean()), 4) if rows.any() else None,
            "helps": helps,
            "hurts": hurts,
        }
    if given.json:
        print(json.dumps(figures))
    else:
        for key, value in figures.items():
            print(f"{key}: {value}")


if __name__ == "__main__":
    main()
