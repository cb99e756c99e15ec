"""Why control can work: where confidence tells helps from hurts, and which rows a policy changes."""

import numpy as np

from heedful.report.phrases import percent
from heedful.types import Policy
from published.cells import BENCHMARKS, known_report, study_data, table

BINS = 5
SIGNAL = "mean"


def separability_table() -> str:
    """By bank, how well confidence separates helps from hurts on the test sides."""
    rows = []
    for study in (f"{benchmark}-{kind}" for kind in ("value", "new") for benchmark in BENCHMARKS):
        for one in known_report(study)["separability"]:
            if one["scope"] == "all rows":
                cells = [_auc(one[key]) for key in ("second", "gain")]
                rows.append((f"`{study}`", one["bank"], f"{one['helps']} / {one['hurts']}", *cells))
    head = ("study", "bank", "helps / hurts", "AUC of the second pass's confidence", "AUC of its gain")
    return table(head, rows)


def _auc(interval: dict[str, float] | None) -> str:
    if interval is None:
        return "–"
    return f"{interval['value']:.2f} [{interval['low']:.2f}, {interval['high']:.2f}]"


def bins_table() -> str:
    """Accuracy before and after the value policy, by the confidence of the first pass."""
    columns = {name: _bins(f"{benchmark}-value") for benchmark, name in BENCHMARKS.items()}
    labels = ["least sure", *(str(place) for place in range(2, BINS)), "surest"]
    rows = [(label, *(columns[name][at] for name in columns)) for at, label in enumerate(labels)]
    return table(("fifth by first-pass confidence", *columns), rows)


def _bins(study: str) -> list[str]:
    data = study_data(study)
    fitted = data.lock.fit.unlimited or data.lock.fit
    policy: Policy = fitted.families["value"].policy
    done = data.test.replay(policy)
    confidence = data.test.table.column("none").signals[SIGNAL]
    cells = []
    for part in np.array_split(np.argsort(confidence, kind="stable"), BINS):
        before, after = (percent(float(right[part].mean())) for right in (data.test.base_right, done.right))
        cells.append(f"{before} → {after}, {float(done.calls[part].mean()):.2f} calls")
    return cells
