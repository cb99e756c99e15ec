"""Synthetic passes of a fit side with a known share of helps and hurts."""

import numpy as np

from heedful.protocol.study import FitSettings
from heedful.protocol.table import Table, make_column
from heedful.records import PassRecord, RecallRef

SMALL = FitSettings(
    signals=("mean",), families=("gate", "choose"), calibrated=False, folds=3, firsts=("none",)
)


def column(source, right, confidence, answers=None):
    return make_column(
        [
            PassRecord(
                source=source,
                prompt="p",
                model="m",
                status="decoded",
                answer="a" if good else "b",
                signals={name: float(c) for name in ("mean", "min", "median", "answer_mean")},
                guards={"format": "", "valid": ""},
                recalls=(RecallRef(entry="e", version="v", score=0.5),) if source != "none" else (),
                calls=1,
            )
            for good, c in zip(right, confidence, strict=True)
        ],
        [bool(good) for good in right],
    )


def table(**columns):
    n = len(next(iter(columns.values())).passes)
    return Table(tasks=tuple(f"t{i}" for i in range(n)), seeds=(0,) * n, columns=columns)


def world(rng, n, *, help_rate, hurt_rate, telling):
    """A bank that mends and spoils at these rates, with confidences that tell right from wrong or not."""
    base = rng.random(n) < 0.6
    bank = np.where(base, rng.random(n) >= hurt_rate, rng.random(n) < help_rate)

    def sure(right):
        return -0.8 + telling * right + 0.2 * rng.normal(size=n).clip(-3, 3)

    return table(none=column("none", base, sure(base)), bank=column("bank", bank, sure(bank)))
