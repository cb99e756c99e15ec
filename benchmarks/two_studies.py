"""Two locked studies of the same test rows, arm by arm: what did the second change?

For studies that differ in one thing, such as a bank before and after `heedful study refine`. Arms are paired
by name, rows by task; positive is in favour of the second study. It needs no data and no model calls:

    python benchmarks/two_studies.py results/svamp-loop-before results/svamp-loop
"""

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from heedful.protocol.workspace import open_workspace
from heedful.report.arms import compare, main_arms
from heedful.report.material import gather
from heedful.report.wording import change, p_value


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("first", type=Path)
    parser.add_argument("second", type=Path)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    first, second = (gather(open_workspace(folder, None)) for folder in (given.first, given.second))
    if first.tasks != second.tasks:
        parser.error("the two studies have other test rows")
    before = {arm.name: arm for arm in main_arms(first)}
    after = {arm.name: arm for arm in main_arms(second)}
    found = {
        name: compare(second, arm.right, before[name].right) for name, arm in after.items() if name in before
    }
    if given.json:
        print(json.dumps({name: asdict(paired) for name, paired in found.items()}))
        return
    for name, paired in found.items():
        print(
            f"{name}: {before[name].accuracy.value:.1%} → {after[name].accuracy.value:.1%}, "
            f"{change(paired.delta)} points, {paired.helps} better, {paired.hurts} worse, "
            f"p = {p_value(paired.p)}, n = {len(set(first.tasks))}"
        )


if __name__ == "__main__":
    main()
