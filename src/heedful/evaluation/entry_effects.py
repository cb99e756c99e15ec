"""Helps and hurts by entry, with memory in every prompt on the test side."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heedful.evaluation.study_data import StudyData
from heedful.stats.mcnemar import mcnemar

SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryEffect:
    """The tasks that recalled an entry; entries recalled together share the outcome."""

    bank: str
    entry: str
    rows: int
    helps: int
    hurts: int

    @property
    def net(self) -> int:
        return self.helps - self.hurts

    @property
    def p(self) -> float:
        return mcnemar(self.helps, self.hurts)


@dataclass(frozen=True, slots=True, kw_only=True)
class BankEffects:
    bank: str
    recalled: int
    """Distinct entries that were recalled."""
    shown: tuple[EntryEffect, ...]
    """Those with the largest |helps − hurts|."""


def weigh_entries(data: StudyData) -> tuple[BankEffects, ...]:
    """For every bank, the entries with the largest net effect."""
    return tuple(_bank(data, bank) for bank in data.banks)


def _bank(data: StudyData, bank: str) -> BankEffects:
    rows, helps, hurts = Counter[str](), Counter[str](), Counter[str]()
    column, base = data.test.table.column(bank), data.test.base_right
    for at in np.flatnonzero(data.once & column.decoded):
        entries = {recall.entry for recall in column.passes[at].recalls}
        rows.update(entries)
        helps.update(entries if column.right[at] and not base[at] else ())
        hurts.update(entries if base[at] and not column.right[at] else ())
    effects = [
        EntryEffect(bank=bank, entry=entry, rows=count, helps=helps[entry], hurts=hurts[entry])
        for entry, count in rows.items()
    ]
    return BankEffects(bank=bank, recalled=len(effects), shown=_most_moved(effects, SHOWN))


def lopsided(banks: Sequence[BankEffects], count: int) -> tuple[EntryEffect, ...]:
    """The entries of all banks with the largest net effect."""
    return _most_moved([one for bank in banks for one in bank.shown], count)


def _most_moved(entries: Sequence[EntryEffect], count: int) -> tuple[EntryEffect, ...]:
    moved = [one for one in entries if one.net]
    moved.sort(key=lambda one: (-abs(one.net), one.p, -one.rows, one.bank, one.entry))
    return tuple(moved[:count])
