"""Paired counts: what a policy changed on the same tasks."""

from collections.abc import Iterable
from dataclasses import dataclass

from heedful.errors import UsageError

SAME = 1e-12
"""Two accuracies closer than this are equal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedCounts:
    """How many tasks were right before and after: a help was wrong before, a hurt wrong after."""

    both_right: int
    helps: int
    hurts: int
    both_wrong: int

    def __post_init__(self) -> None:
        counts = (self.both_right, self.helps, self.hurts, self.both_wrong)
        if min(counts) < 0 or sum(counts) == 0:
            raise UsageError(
                f"paired counts must not be negative and must include at least one task: {counts}"
            )

    @property
    def n(self) -> int:
        """All tasks."""
        return self.both_right + self.helps + self.hurts + self.both_wrong

    @property
    def base(self) -> float:
        """Accuracy of the baseline."""
        return (self.both_right + self.hurts) / self.n

    @property
    def accuracy(self) -> float:
        """Accuracy of the final answers."""
        return (self.both_right + self.helps) / self.n

    @property
    def delta(self) -> float:
        """Accuracy gained over the baseline: (helps − hurts) / n."""
        return (self.helps - self.hurts) / self.n


def count_pairs(baseline: Iterable[bool], final: Iterable[bool]) -> PairedCounts:
    """Count the four cases over rows; each value says whether an answer was right."""
    before, after = [bool(right) for right in baseline], [bool(right) for right in final]
    if len(before) != len(after):
        raise UsageError(f"{len(before)} baseline rows cannot be paired with {len(after)} final rows")
    pairs = list(zip(before, after, strict=True))
    return PairedCounts(
        both_right=pairs.count((True, True)),
        helps=pairs.count((False, True)),
        hurts=pairs.count((True, False)),
        both_wrong=pairs.count((False, False)),
    )


def gap_close(accuracy: float, base: float, oracle: float) -> float | None:
    """The share of the oracle's gain that was reached; None if the oracle gains nothing."""
    if not all(0 <= share <= 1 for share in (accuracy, base, oracle)):
        raise UsageError(f"accuracies must be between 0 and 1: {accuracy}, {base}, {oracle}")
    if oracle < base - SAME:
        raise UsageError(f"an oracle ({oracle}) that may keep the baseline cannot be below it ({base})")
    return (accuracy - base) / (oracle - base) if oracle - base > SAME else None
