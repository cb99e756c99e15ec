"""Fit the shipped priors on the published ledgers, and show where they transfer.

    python benchmarks/priors.py            # the table, from the ledgers
    python benchmarks/priors.py --write    # and the files in src/heedful/priors

Only fit sides are read. Every row of the table is a prior that never saw the benchmark (or the model)
it is judged on; nothing is tuned on the judged rows.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from heedful import arms
from heedful.priors import AnswerKind, HeldOutGain, Prior, PriorCard
from heedful.protocol.ledger import Ledger
from heedful.protocol.lock import Lock, read_lock
from heedful.protocol.replay import Replayer
from heedful.protocol.table import read_table
from heedful.protocol.value_fit import UNFITTED, fit_trees
from heedful.protocol.value_replay import RowViews, row_views
from heedful.types import TreeEnsemble, ValueTrees

ROOT = Path(__file__).parents[1]
PRIORS = ROOT / "src/heedful/priors"
COST, MARGIN, SEED = 0.02, 0.2, 0
STUDIES: dict[AnswerKind, tuple[str, ...]] = {"number": ("svamp", "asdiv", "multiarith")}
"""Published studies by the kind of their answers."""
FURTHER = ("svamp-0.5b", "asdiv-0.5b")
"""Studies of a second model: judged, not fitted on."""
DIGITS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class FitSide:
    """The fit side of a published study, with the banks that its policies may use."""

    study: str
    benchmark: str
    model: str
    banks: tuple[str, ...]
    replayer: Replayer

    @property
    def rows(self) -> list[RowViews]:
        return row_views(self.replayer.table, self.replayer.first("none"), self.banks)


def fit_side(study: str) -> FitSide:
    folder = ROOT / "results" / study
    lock: Lock = read_lock(folder / "lock.json")
    table = read_table(Ledger(folder / "ledger.jsonl"), "fit", lock.splits["fit"], lock.seeds)
    banks = tuple(name for name, kind in lock.kinds.items() if kind == "memory" and name in table.columns)
    return FitSide(
        study=study,
        benchmark=study.removesuffix("-0.5b"),
        model=lock.model.name,
        banks=banks,
        replayer=Replayer(table),
    )


def fit_prior(name: str, sides: Sequence[FitSide]) -> ValueTrees:
    """Trees over the rows of all sides; they cannot tell sources apart."""
    rows = [row for side in sides for row in side.rows]
    tasks = [f"{side.study} {task}" for side in sides for task in side.replayer.table.tasks]
    kind = replace(UNFITTED, by_source=False, origin=name)
    trees = fit_trees(rows, tasks, kind, SEED)
    return replace(trees, answer=rounded(trees.answer), gain=rounded(trees.gain))


def rounded(trees: TreeEnsemble) -> TreeEnsemble:
    """Fewer digits make a smaller file; a prior is what its file says."""
    short = tuple(float(f"{number:.{DIGITS}g}") for number in trees.value)
    cuts = tuple(float(f"{number:.{DIGITS}g}") for number in trees.threshold)
    return replace(trees, value=short, threshold=cuts, base=float(f"{trees.base:.{DIGITS}g}"))


def judged(trees: ValueTrees, side: FitSide) -> HeldOutGain:
    done = side.replayer.replay(arms.value(trees, side.banks, cost=COST, margin=MARGIN))
    base = side.replayer.base_right
    return HeldOutGain(
        benchmark=side.study,
        model=side.model,
        rows=len(base),
        base=float(base.mean()),
        accuracy=float(done.right.mean()),
        helps=int((done.right & ~base).sum()),
        hurts=int((base & ~done.right).sum()),
        calls=float(done.calls.mean()),
    )


def line(fitted_on: Sequence[str], gain: HeldOutGain) -> str:
    return (
        f"| {', '.join(fitted_on)} | {gain.benchmark} | {gain.model} | {gain.rows} | {100 * gain.base:.1f} "
        f"| {100 * gain.accuracy:.1f} | {100 * (gain.accuracy - gain.base):+.1f} "
        f"| {gain.helps} / {gain.hurts} | {gain.calls:.2f} |"
    )


def priors_of(kind: AnswerKind, sides: Sequence[FitSide], further: Sequence[FitSide]) -> list[Prior]:
    """A prior on all sides, and one without each side, judged on the side it did not see."""
    without: dict[str, ValueTrees] = {}
    held_out: list[HeldOutGain] = []
    for left in sides:
        rest = [side for side in sides if side is not left]
        without[left.study] = fit_prior(f"{kind}-without-{left.study}", rest)
        gains = [
            judged(without[left.study], side) for side in (left, *further) if side.benchmark == left.benchmark
        ]
        for gain in gains:
            print(line([side.study for side in rest], gain), flush=True)
        held_out += gains
    everything = fit_prior(kind, sides)
    made = [(everything, sides, tuple(held_out))]
    for left, trees in without.items():
        rest = [side for side in sides if side.study != left]
        made.append((trees, rest, tuple(g for g in held_out if g.benchmark.removesuffix("-0.5b") == left)))
    return [
        Prior(
            card=PriorCard(
                name=trees.origin,
                kind=kind,
                fitted_on=tuple(side.benchmark for side in used),
                models=tuple(dict.fromkeys(side.model for side in used)),
                rows=sum(len(side.replayer.table) for side in used),
                cost=COST,
                margin=MARGIN,
                held_out=gains,
            ),
            trees=trees,
        )
        for trees, used, gains in made
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the files in src/heedful/priors")
    options = parser.parse_args()
    print("| fitted on | judged on | model | rows | no memory | prior | gain | helps / hurts | calls |")
    print("|---|---|---|---|---|---|---|---|---|")
    further = [fit_side(study) for study in FURTHER if (ROOT / "results" / study / "lock.json").exists()]
    for kind, studies in STUDIES.items():
        for prior in priors_of(kind, [fit_side(study) for study in studies], further):
            if options.write:
                file = PRIORS / f"{prior.card.name}.json"
                file.write_bytes(msgspec.json.encode(prior) + b"\n")
                print(f"wrote {file.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
