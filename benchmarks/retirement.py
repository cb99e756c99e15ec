"""How often each retirement rule condemns an entry when it is checked after every task.

usage: python benchmarks/retirement.py [--json] [--entries 2000] [--tasks 1000]
"""

import argparse
import json

import numpy as np

from heedful.governance.bounds import RULES, first_condemned

DELTA = 0.05
ENTRIES = {
    "mean 0, often changes the answer (40% helps, 40% hurts)": (0.4, 0.4),
    "mean 0, seldom does (5%, 5%)": (0.05, 0.05),
    "mean +.02 (12%, 10%)": (0.12, 0.10),
    "mean -.3 (0%, 30%)": (0.0, 0.3),
    "mean -.3 (10%, 40%)": (0.1, 0.4),
}


def measure(entries: int, tasks: int) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for kind, (helps, hurts) in ENTRIES.items():
        rng = np.random.default_rng(1)
        values = rng.choice([-1.0, 0.0, 1.0], p=[hurts, 1 - helps - hurts, helps], size=(entries, tasks))
        figures: dict[str, object] = {"entry": kind}
        for rule in RULES:
            tasks_needed = np.array([first_condemned(row, rule, DELTA) for row in values])
            condemned = tasks_needed > 0
            figures[rule] = {
                "condemned": float(condemned.mean()),
                "median_tasks": float(np.median(tasks_needed[condemned])) if condemned.any() else None,
            }
        rows.append(figures)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--entries", type=int, default=2000)
    parser.add_argument("--tasks", type=int, default=1000)
    chosen = parser.parse_args()
    rows = measure(chosen.entries, chosen.tasks)
    if chosen.json:
        print(json.dumps({"entries": chosen.entries, "tasks": chosen.tasks, "rows": rows}, indent=2))
        return
    print(f"| entry | {' | '.join(f'`{rule}`' for rule in RULES)} |")
    print("|---|" + "---|" * len(RULES))
    for row in rows:
        print(f"| {row['entry']} | {' | '.join(cell(row[rule]) for rule in RULES)} |")


def cell(figures: object) -> str:
    assert isinstance(figures, dict)
    after = f", after {figures['median_tasks']:.0f} tasks" if figures["condemned"] > 0.5 else ""
    return f"{figures['condemned']:.1%}{after}"


if __name__ == "__main__":
    main()
