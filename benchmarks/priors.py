"""Fit the shipped priors on the published ledgers, and show where they transfer.

    python benchmarks/priors.py            # the table, from the ledgers
    python benchmarks/priors.py --write    # and the files in src/heedful/priors

Only fit sides are read. Every row of the table is a prior that never saw the benchmark (or the model)
it is judged on. The margins for numbers and texts were chosen on the judged rows, that for letters was not.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from heedful import arms
from heedful.priors import AnswerKind, HeldOutGain, Prior, PriorCard
from heedful.protocol.ledger import Ledger, Pass
from heedful.protocol.lock import read_lock
from heedful.protocol.replay import Replayer
from heedful.protocol.table import read_table
from heedful.protocol.value_fit import UNFITTED, fit_trees
from heedful.protocol.value_replay import RowViews, row_views
from heedful.types import TreeEnsemble, ValueTrees

ROOT = Path(__file__).parents[1]
PRIORS = ROOT / "src/heedful/priors"
COST, SEED = 0.02, 0
MARGINS: dict[AnswerKind, float] = {"number": 0.1, "text": 0.05, "choice": 0.1}
"""Chosen on fit rows: of the three benchmarks by priors that had not seen them, and of the demo.

For choices it is the margin for numbers; nothing was chosen."""
WITHOUT_LOGPROBS: dict[AnswerKind, float] = {
    kind: margin for kind, margin in MARGINS.items() if kind != "text"
}
"""Without log-probs no gain was shown for answers in words."""
FITTED_ON = ("svamp", "asdiv", "multiarith")
CHOICES = ("openbookqa", "arc_easy", "arc_challenge")
FURTHER = ("svamp-0.5b", "asdiv-0.5b", "demo", *CHOICES)
"""Studies of other models and other answers: judged, never fitted on."""
DIGITS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class FitSide:
    """The fit side of a published study, with the banks that its policies may use."""

    study: str
    model: str
    banks: tuple[str, ...]
    replayer: Replayer

    @property
    def benchmark(self) -> str:
        return self.study.removesuffix("-0.5b")

    @property
    def kind(self) -> AnswerKind:
        if self.study in CHOICES:
            return "choice"
        return "text" if self.study == "demo" else "number"

    @property
    def rows(self) -> list[RowViews]:
        return row_views(self.replayer.table, self.replayer.first("none"), self.banks)


def fit_side(study: str, *, logprobs: bool = True) -> FitSide:
    folder = ROOT / "results" / study
    lock = read_lock(folder / "lock.json")
    ledger = Ledger(folder / "ledger.jsonl")
    if not logprobs:
        ledger.passes = {key: without_logprobs(row) for key, row in ledger.passes.items()}
    table = read_table(ledger, "fit", lock.splits["fit"], lock.seeds)
    banks = tuple(name for name, kind in lock.kinds.items() if kind == "memory" and name in table.columns)
    return FitSide(study=study, model=lock.model.name, banks=banks, replayer=Replayer(table))


def without_logprobs(row: Pass) -> Pass:
    """A pass as an endpoint without log-probs would give it."""
    return replace(row, record=replace(row.record, signals={}))


def fit_prior(name: str, sides: Sequence[FitSide]) -> ValueTrees:
    """Trees over the rows of all sides; they cannot tell sources apart."""
    rows = [row for side in sides for row in side.rows]
    tasks = [f"{side.study} {task}" for side in sides for task in side.replayer.table.tasks]
    trees = fit_trees(rows, tasks, replace(UNFITTED, by_source=False, origin=name), SEED)
    return replace(trees, answer=rounded(trees.answer), gain=rounded(trees.gain))


def rounded(trees: TreeEnsemble) -> TreeEnsemble:
    """Fewer digits make a smaller file; a prior is what its file says."""

    def short(number: float) -> float:
        return float(f"{number:.{DIGITS}g}")

    return replace(
        trees,
        value=tuple(map(short, trees.value)),
        threshold=tuple(map(short, trees.threshold)),
        base=short(trees.base),
    )


def judged(trees: ValueTrees, side: FitSide) -> HeldOutGain:
    policy = arms.value(trees, side.banks, cost=COST, margin=MARGINS[side.kind])
    done, base = side.replayer.replay(policy), side.replayer.base_right
    gain = HeldOutGain(
        study=side.study,
        model=side.model,
        rows=len(base),
        base=float(base.mean()),
        accuracy=float(done.right.mean()),
        helps=int((done.right & ~base).sum()),
        hurts=int((base & ~done.right).sum()),
        calls=float(done.calls.mean()),
    )
    print(line(trees.origin, gain), flush=True)
    return gain


def line(prior: str, gain: HeldOutGain) -> str:
    return (
        f"| {prior} | {gain.study} | {gain.model} | {gain.rows} | {100 * gain.base:.1f} "
        f"| {100 * gain.accuracy:.1f} | {100 * (gain.accuracy - gain.base):+.1f} "
        f"| {gain.helps} / {gain.hurts} | {gain.calls:.2f} |"
    )


def priors_of(*, logprobs: bool) -> list[Prior]:
    """A prior on all studies, and one without each, judged on the study that it did not see."""
    name = "number" if logprobs else "number-no-logprobs"
    sides = [fit_side(study, logprobs=logprobs) for study in FITTED_ON]
    recorded = [study for study in FURTHER if (ROOT / "results" / study / "lock.json").exists()]
    further = [fit_side(study, logprobs=logprobs) for study in recorded]
    held_out: list[HeldOutGain] = []
    priors = []
    for left in sides:
        rest = [side for side in sides if side is not left]
        trees = fit_prior(f"{name}-without-{left.study}", rest)
        gains = [judged(trees, side) for side in (left, *further) if side.benchmark == left.benchmark]
        held_out += gains
        priors.append(Prior(card=card(trees, rest, gains, logprobs), trees=trees))
    trees = fit_prior(name, sides)
    held_out += [judged(trees, side) for side in further if side.benchmark not in FITTED_ON]
    return [*priors, Prior(card=card(trees, sides, held_out, logprobs), trees=trees)]


def card(
    trees: ValueTrees, used: Sequence[FitSide], gains: Sequence[HeldOutGain], logprobs: bool
) -> PriorCard:
    return PriorCard(
        name=trees.origin,
        fitted_on=tuple(side.benchmark for side in used),
        models=tuple(dict.fromkeys(side.model for side in used)),
        rows=sum(len(side.replayer.table) for side in used),
        logprobs=logprobs,
        cost=COST,
        margins=MARGINS if logprobs else WITHOUT_LOGPROBS,
        held_out=tuple(gains),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the files in src/heedful/priors")
    options = parser.parse_args()
    print("| prior | judged on | model | rows | no memory | prior | gain | helps / hurts | calls |")
    print("|---|---|---|---|---|---|---|---|---|")
    shipped = [*priors_of(logprobs=True), priors_of(logprobs=False)[-1]]
    for prior in shipped if options.write else ():
        file = PRIORS / f"{prior.card.name}.json"
        file.write_bytes(msgspec.json.encode(prior) + b"\n")
        print(f"wrote {file.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
