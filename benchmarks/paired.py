"""Compare two arms on the same test rows, from one locked study or from two.

Use it to compare two banks of a study, or a bank before and after `heedful study refine`. A positive
difference favours the second arm. It needs no data and no model calls:

    python benchmarks/paired.py results/svamp-rules:always-rule results/svamp-rules:always-built
"""

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from heedful.evaluation.arm_results import Arm, compare, main_arms
from heedful.evaluation.study_data import StudyData, read_study_data
from heedful.protocol.workspace import open_workspace
from heedful.report.phrases import change, p_value, percent


def read_arm(named: str) -> tuple[StudyData, Arm]:
    folder, _, name = named.rpartition(":")
    data = read_study_data(open_workspace(Path(folder), None))
    arms = {arm.name: arm for arm in main_arms(data)}
    if name not in arms:
        raise SystemExit(f"{folder} has no arm {name!r}: it has {', '.join(arms)}")
    return data, arms[name]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("first", metavar="STUDY:ARM")
    parser.add_argument("second", metavar="STUDY:ARM")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    (data, before), (other, after) = read_arm(given.first), read_arm(given.second)
    if data.test.table.tasks != other.test.table.tasks:
        raise SystemExit("the two arms have different test rows")
    comparison = compare(other, after.right, before.right)
    if given.json:
        print(
            json.dumps({"first": before.accuracy.value, "second": after.accuracy.value, **asdict(comparison)})
        )
        return
    accuracies = f"{percent(before.accuracy.value)} → {percent(after.accuracy.value)}"
    counts = f"{comparison.helps} better, {comparison.hurts} worse, n = {comparison.delta.n}"
    print(f"{accuracies}: {change(comparison.delta)} points, p = {p_value(comparison.p)}, {counts}")


if __name__ == "__main__":
    main()
