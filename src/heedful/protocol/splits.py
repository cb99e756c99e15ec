"""Which rows are asked on each side, and which are left for building banks."""

import random
from collections.abc import Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from heedful.benchmarks.items import bare_question, normal_question, with_choices
from heedful.errors import LeakError, UsageError
from heedful.ports import Benchmark
from heedful.protocol.study import SplitSettings
from heedful.types import Entry, Item, Side

CONTAINED_WORDS = 6
"""A shorter question is compared with the whole text of an entry, not searched for within it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Splits:
    fit: Sequence[Item]
    test: Sequence[Item]
    pool: Sequence[Item]
    """Rows of the fit side that are not asked; banks are built from them."""
    test_side: Sequence[Item] = ()
    """All rows of the test side; `test` holds those that are asked."""

    @property
    def parts(self) -> dict[str, Sequence[Item]]:
        """The rows of a study, by purpose."""
        return {"fit": self.fit, "test": self.test, "pool": self.pool}

    def asked(self, side: Side) -> Sequence[Item]:
        return self.fit if side == "fit" else self.test

    def refuse_shared_questions(self) -> None:
        """Refuse a question that is on both sides: the policy would be tested on what it was chosen on."""
        fit = {normal_question(with_choices(item)): item.id for item in (*self.fit, *self.pool)}
        tested = {item.id: item for item in (*self.test, *self.test_side)}.values()
        shared = [(fit.get(normal_question(with_choices(item))), item.id) for item in tested]
        if pairs := [f"{one} and {other}" for one, other in shared if one is not None]:
            raise LeakError(
                f"{len(pairs)} of the questions are on the fit and on the test side ({', '.join(pairs[:3])}; "
                "case and punctuation do not count): remove one of each pair"
            )

    def unasked(self, entries: Sequence[Entry]) -> list[Entry]:
        """The entries that contain no question of the test side, and none that is asked on the fit side.

        An entry with the answer to a fit question makes memory look better than it is, and a harm limit
        certified on such rows would not hold.
        """
        asked = {normal_question(item.question) for item in (*self.fit, *self.test, *self.test_side)}
        long = [f" {question} " for question in asked if question.count(" ") + 1 >= CONTAINED_WORDS]
        return [entry for entry in entries if not _holds(entry, asked, long)]


def split(benchmark: Benchmark, data: Path, settings: SplitSettings) -> Splits:
    """Draw the rows by seed: a larger fit side extends a smaller one of the same seed."""
    fit, test = _shuffled(benchmark.load(data, "fit"), settings.seed), benchmark.load(data, "test")
    asked = len(fit) - settings.pool if settings.fit is None else settings.fit
    if not fit or not test:
        raise UsageError(
            f"{benchmark.name} has no rows on the {'test' if fit else 'fit'} side: a study needs both sides"
        )
    if asked < 1 or asked + settings.pool > len(fit):
        raise UsageError(
            f"{benchmark.name} has {len(fit)} rows on the fit side; {asked} to ask and {settings.pool} "
            "for banks are too many: lower [split] fit or pool"
        )
    if settings.test is not None and settings.test > len(test):
        raise UsageError(
            f"{benchmark.name} has {len(test)} rows on the test side; {settings.test} to ask are too many: "
            "lower [split] test"
        )
    shuffled = _shuffled(test, settings.seed)
    chosen = test if settings.test is None else shuffled[: settings.test]
    pooled = len(fit) - settings.pool
    if settings.unused is not None:
        left = [*fit[asked:pooled], *(() if settings.test is None else shuffled[settings.test :])]
        chosen = _unused(left, fit[:asked], settings, benchmark.name)
    return Splits(fit=fit[:asked], test=chosen, pool=fit[pooled:], test_side=test)


def _unused(left: Sequence[Item], fit: Sequence[Item], settings: SplitSettings, name: str) -> Sequence[Item]:
    """Rows that the split leaves unused, drawn by seed; a row that repeats a fit question is left out."""
    assert settings.unused is not None, "the caller asks for unused rows"
    known = {normal_question(with_choices(item)) for item in fit}
    drawn = [i for i in _shuffled(left, settings.seed) if normal_question(with_choices(i)) not in known]
    if settings.unused > len(drawn):
        raise UsageError(
            f"{name} has {len(drawn)} rows that this split leaves unused; {settings.unused} to ask are too "
            "many: lower [split] unused"
        )
    return drawn[: settings.unused]


def _holds(entry: Entry, asked: Set[str], long: Sequence[str]) -> bool:
    """Whether an entry is an asked question, or contains a long one."""
    text = f" {normal_question(f'{entry.text} {entry.response}')} "
    return normal_question(bare_question(entry.text)) in asked or any(question in text for question in long)


def _shuffled(items: Sequence[Item], seed: int) -> list[Item]:
    return random.Random(seed).sample(list(items), len(items))
