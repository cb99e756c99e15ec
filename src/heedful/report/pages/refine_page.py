"""The page about the closed loop: what each round cost and gained."""

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
    sentences = [
        f"{len(found.iterations) - 1} rounds, judged on {found.tasks} tasks of the fit side, changed "
        f"{changed} prompts, which took one model call each; {calls} of them were made in this run."
    ]
    if len(found.iterations) == 1:
        sentences = [
            "Every entry that the evidence condemns is spared, so nothing was done."
            if found.spared
            else "The evidence condemns no entry, so nothing was done."
        ]
    chosen = "the original bank" if found.chosen == 0 else f"iteration {found.chosen}"
    sentences.append(f"Chosen by the held-out objective: {chosen}; the study's bank is now {found.bank}.")
    return sentences


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
        "in every prompt; change relative to the original bank, helps and hurts relative to no memory. Held "
        "out: the best kind of policy that uses the source, on folds it was not tuned on. All on the fit "
        "side, whose rows also gave the evidence, so later rounds look better than they are.",
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
    rows += [
        (f"spared: {one.standing.entry.id}", one.standing.entry.text, one.reason) for one in found.spared
    ]
    return ReportTable(
        name="retired",
        title="Retired and spared entries",
        note="The first column gives the iteration and the entry.",
        head=("Entry", "Text", "Reason"),
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
