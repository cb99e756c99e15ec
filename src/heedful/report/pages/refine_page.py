"""What each round of the closed loop cost and gained, as a page."""

from typing import TYPE_CHECKING, Any

from heedful.experiments.refine import RefineResult
from heedful.report.pages.experiment_page import ExperimentPage, arm_fields
from heedful.report.phrases import change, percent, plain, share
from heedful.report.report_table import ReportTable
from heedful.report.svg import BLUE, ORANGE, Figure, draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes


COUNTED = ("number", "entries", "changed", "calls", "written", "accuracy", "objective")


def refine_page(study: str, found: RefineResult) -> ExperimentPage:
    return ExperimentPage(
        title=f"{study}: the closed loop on {found.source}",
        sentences=_sentences(found),
        tables=(_rounds(found), _retired(found)),
        figures=(_figure(found),),
        summary=_summary(found),
    )


def _sentences(found: RefineResult) -> list[str]:
    changed, calls = (sum(getattr(one, key) for one in found.iterations) for key in ("changed", "calls"))
    said = [
        f"{len(found.iterations) - 1} rounds, judged on {found.tasks} tasks of the fit side, changed "
        f"{changed} prompts; they cost as many model calls, {calls} of them in this run."
    ]
    if len(found.iterations) == 1:
        said = [
            "The entries that the evidence condemns all stay, so there was nothing to do."
            if found.spared
            else "The evidence condemns no entry, so there was nothing to do."
        ]
    kept = "the bank as it was" if found.chosen == 0 else f"iteration {found.chosen}"
    said.append(f"Chosen by the held-out objective: {kept}; the study's bank is now {found.bank}.")
    return said


def _rounds(found: RefineResult) -> ReportTable:
    rows = [
        (
            str(one.number),
            str(one.entries),
            str(len(one.retired)),
            str(len(one.replaced)),
            f"{one.changed} / {one.calls}",
            str(one.written),
            share(one.always.right),
            "" if one.number == 0 else change(one.always.change),
            f"{one.always.counts.helps} / {one.always.counts.hurts}",
            percent(one.accuracy),
            plain(one.objective, 4),
        )
        for one in found.iterations
    ]
    return ReportTable(
        name="rounds",
        title="Rounds",
        note="Changed / calls: passes whose prompt changed, and those that had to be decoded. Always: memory "
        "in every prompt, its change against the bank as it was, and rows against no memory. Held out: the "
        "best kind of policy that uses the source, on folds it was not tuned on. All on the fit side, whose "
        "rows also gave the evidence, so that later rounds are flattered.",
        head=(
            *("Iteration", "Entries", "Retired", "Replaced", "Changed / calls", "Written"),
            *("Always, right", "Change", "Helps / hurts", "Held out, right", "Objective"),
        ),
        rows=tuple(rows),
        marked=frozenset((found.chosen,)),
    )


def _retired(found: RefineResult) -> ReportTable:
    rows = [
        (f"{one.number}: {gone.standing.entry.id}", gone.standing.entry.text, gone.reason)
        for one in found.iterations
        for gone in one.retired
    ]
    rows += [(f"stays: {one.standing.entry.id}", one.standing.entry.text, one.reason) for one in found.spared]
    return ReportTable(
        name="retired",
        title="What went, and why",
        note="Iteration and entry.",
        head=("Entry", "Text", "Why"),
        rows=tuple(rows),
        words=frozenset((1, 2)),
        empty="nothing was retired",
    )


def _figure(found: RefineResult) -> Figure:
    numbers = [one.number for one in found.iterations]

    def paint(axes: "Axes") -> None:
        always = [100 * one.always.right.value for one in found.iterations]
        axes.plot(numbers, always, "s-", color=ORANGE, label="always")
        held = [100 * one.accuracy for one in found.iterations]
        axes.plot(numbers, held, "o-", color=BLUE, label="best policy, held out")
        axes.set_xticks(numbers)
        axes.set_xlabel("iteration")
        axes.set_ylabel("right, %")
        axes.set_title("Accuracy on the fit side by iteration")
        axes.legend(loc="best")

    return draw("refine", "Accuracy on the fit side by iteration", "Fit side only.", 2.6, paint)


def _summary(found: RefineResult) -> dict[str, Any]:
    return {
        "chosen": found.chosen,
        "bank": found.bank,
        "spared": [one.standing.entry.id for one in found.spared],
        "iterations": [
            {
                **{key: getattr(one, key) for key in COUNTED},
                "always": arm_fields(one.always),
                "retired": [gone.standing.entry.id for gone in one.retired],
                "replaced": [entry.id for entry in one.replaced],
            }
            for one in found.iterations
        ],
    }
