"""Which rows are asked on which side, and which are left to build banks from."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from heedful.benchmarks.items import bare_question, normal_question
from heedful.errors import UsageError
from heedful.ports import Benchmark
from heedful.protocol.study import SplitSettings
from heedful.types import Entry, Item, Side


@dataclass(frozen=True, slots=True, kw_only=True)
class Splits:
    fit: Sequence[Item]
    test: Sequence[Item]
    pool: Sequence[Item]
    """Rows of the fit side that are not asked: banks are built from them."""

    def asked(self, side: Side) -> Sequence[Item]:
        return self.fit if side == "fit" else self.test

    def untested(self, entries: Sequence[Entry]) -> list[Entry]:
        """The entries whose normalised text does not occur on the test side."""
        asked = {normal_question(item.question) for item in self.test}
        return [entry for entry in entries if normal_question(bare_question(entry.text)) not in asked]


def split(benchmark: Benchmark, data: Path, settings: SplitSettings) -> Splits:
    """Draw the rows by seed: a larger fit side extends a smaller one of the same seed."""
    fit, test = _shuffled(benchmark.load(data, "fit"), settings.seed), benchmark.load(data, "test")
    asked = len(fit) - settings.pool if settings.fit is None else settings.fit
    if asked < 0 or asked + settings.pool > len(fit):
        raise UsageError(
            f"{benchmark.name} has {len(fit)} rows on the fit side; {asked} to ask and {settings.pool} "
            "for banks are too many"
        )
    chosen = test if settings.test is None else _shuffled(test, settings.seed)[: settings.test]
    return Splits(fit=fit[:asked], test=chosen, pool=fit[len(fit) - settings.pool :])


def _shuffled(items: Sequence[Item], seed: int) -> list[Item]:
    return random.Random(seed).sample(list(items), len(items))
