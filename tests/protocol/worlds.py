"""Synthetic passes of a fit side with a known share of helps and hurts."""

import numpy as np
from numpy.typing import NDArray

from heedful.protocol.study import FitSettings
from heedful.protocol.table import Column, Table, make_column
from heedful.records import PassRecord, RecallRef

SMALL = FitSettings(
    signals=("mean",), families=("gate", "choose"), calibrated=False, folds=3, firsts=("none",)
)


def column(
    source: str, right: NDArray[np.bool_], confidence: NDArray[np.float64], answers: None = None
) -> Column:
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


def table(**columns: Column) -> Table:
    n = len(next(iter(columns.values())).passes)
    return Table(tasks=tuple(f"t{i}" for i in range(n)), seeds=(0,) * n, columns=columns)


def world(rng: np.random.Generator, n: int, *, help_rate: float, hurt_rate: float, telling: float) -> Table:
    """A bank that mends and spoils at these rates, with confidences that tell right from wrong or not."""
    base = rng.random(n) < 0.6
    bank = np.where(base, rng.random(n) >= hurt_rate, rng.random(n) < help_rate)

    def sure(right: NDArray[np.bool_]) -> NDArray[np.float64]:
        return -0.8 + telling * right + 0.2 * rng.normal(size=n).clip(-3, 3)

    return table(none=column("none", base, sure(base)), bank=column("bank", bank, sure(bank)))
