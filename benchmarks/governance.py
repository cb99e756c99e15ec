"""What retiring a harmful bank does to memory in every prompt and to a value policy; no pass is decoded.

    python benchmarks/governance.py            # print it
    python benchmarks/governance.py --write    # and write results/governance.json

On MultiArith the group rule retires the exemplars (`published/governance.py`). The value policy is fitted
again on the same fit rows without them, and both are judged on the test side.
"""

import argparse
import json
from dataclasses import asdict

from published.cells import RESULTS, study_data
from published.governance import verdict_on

from heedful.evaluation.arm_results import Arm, compare, measure
from heedful.evaluation.study_data import StudyData
from heedful.protocol.fit import fitted_value
from heedful.protocol.prior import study_prior
from heedful.protocol.study import FitSettings
from heedful.types import Policy

SETTINGS = FitSettings(families=("value",))


def fields_of(arm: Arm) -> dict[str, float]:
    counts = {"helps": arm.paired.helps, "hurts": arm.paired.hurts}
    return {"accuracy": arm.accuracy.value, **counts, "calls": arm.calls}


def effect_of(data: StudyData, name: str, before: Arm, after: Arm) -> dict[str, object]:
    """An arm before and after, with the paired difference of its right answers."""
    change = asdict(compare(data, after.right, before.right).delta)
    return {"arm": name, "before": fields_of(before), "after": fields_of(after), "change": change}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    data = study_data("multiarith-value")
    kept = [bank for bank in data.tuned_banks if verdict_on(data, bank).retired_after is None]
    (retired,) = (bank for bank in data.tuned_banks if bank not in kept)
    fitted = data.lock.fit.unlimited or data.lock.fit
    prior = study_prior(data.fit.table, kept, SETTINGS, data.lock.benchmark)
    without = fitted_value(data.fit.table, kept, SETTINGS, prior).policy
    policies = {
        f"{retired}s in every prompt": (Policy(first=retired, guards=()), Policy()),
        "value policy, prior and own rows": (fitted.families["value"].policy, without),
    }
    arms = [
        effect_of(data, name, measure(data, name, before), measure(data, name, after))
        for name, (before, after) in policies.items()
    ]
    text = json.dumps({"n": len(data.test.base_right), "retired": retired, "arms": arms}, indent=1)
    print(text)
    if options.write:
        (RESULTS / "governance.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
