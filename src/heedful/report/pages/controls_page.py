"""The page about bad entries: what they do under each arm."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from heedful.experiments.controls import ControlResult
from heedful.report.pages.experiment_page import ExperimentPage, arm_fields, caveats
from heedful.report.phrases import change, percent, points, share
from heedful.report.report_table import ReportTable
from heedful.report.svg import BLUE, GREEN, ORANGE, PURPLE, Figure, draw
from heedful.types import Side

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {"always": ORANGE, "gate": PURPLE, "choose": GREEN, "heedful": BLUE}


def controls_page(study: str, source: str, side: Side, found: Sequence[ControlResult]) -> ExperimentPage:
    return ExperimentPage(
        title=f"{study}: bad entries in {source}",
        sentences=_sentences(source, side, found),
        tables=(_harm(found), _removals(found)),
        figures=(_figure(found),),
        summary={"rates": [_rate(one) for one in found]},
    )


def _sentences(source: str, side: Side, found: Sequence[ControlResult]) -> list[str]:
    clean, worst = found[0], found[-1]
    n = clean.arms["always"].counts.n
    sentences = [
        f"{worst.bad} of {worst.entries} entries in {source} were bad ({worst.rate:.0%}); they reached the "
        f"prompt on {percent(worst.exposed)} of {n} rows of the {side} side. "
        "Every arm was chosen on the clean fit side."
    ]
    for arm, measured in worst.arms.items():
        before = clean.arms[arm].counts.hurts
        sentences.append(
            f"{arm}: {percent(measured.right.value)} right ({change(measured.change)} points compared with "
            f"the clean bank), {measured.counts.hurts} hurts ({before} with the clean bank)."
        )
    return sentences + caveats(source, side, {arm: measured.policy for arm, measured in worst.arms.items()})


def _harm(found: Sequence[ControlResult]) -> ReportTable:
    rows = []
    for one in found:
        for arm, measured in one.arms.items():
            rows.append(
                (
                    f"{one.rate:.0%} bad, {arm}",
                    share(measured.right),
                    points(measured.counts.delta),
                    change(measured.change) if one.bad else "",
                    str(measured.counts.helps),
                    str(measured.counts.hurts),
                    share(measured.hurt),
                    percent(one.exposed),
                )
            )
    return ReportTable(
        name="harm",
        title="Harm by arm",
        note="Helps and hurts are relative to the answer without memory. Exposed: rows whose recalls contain "
        "a bad entry. Shares have 95% Wilson intervals, differences (in percentage points) 95% bootstrap "
        "intervals over tasks.",
        head=(
            *("Bank, arm", "Right [95%]", "Against no memory", "Against the clean bank [95%]"),
            *("Helps", "Hurts", "Hurts, share [95%]", "Exposed"),
        ),
        rows=tuple(rows),
        marked=frozenset(at for at, row in enumerate(rows) if row[0].endswith("heedful")),
    )


def _removals(found: Sequence[ControlResult]) -> ReportTable:
    rows = []
    for one in found:
        for rule, removal in one.removal.items():
            after = "" if removal.median_tasks is None else f"{removal.median_tasks:.0f}"
            bad = f"{removal.bad_gone} of {removal.bad}"
            rows.append((f"{one.rate:.0%} bad, {rule}", bad, after, str(removal.good_gone)))
    return ReportTable(
        name="removal",
        title="What retirement detects",
        note="Simulated: every row is graded in order, and every entry is judged after each of its recalls. "
        "Bad retired: out of those recalled at least once. After: the median number of an entry's recalls.",
        head=("Bank, rule", "Bad retired", "After, tasks", "Good retired"),
        rows=tuple(rows),
    )


def _figure(found: Sequence[ControlResult]) -> Figure:
    rates = [100 * one.rate for one in found]

    def paint(axes: "Axes") -> None:
        for arm, colour in COLOURS.items():
            shares = [100 * one.arms[arm].hurt.value for one in found]
            axes.plot(rates, shares, marker="o", color=colour, label=arm)
        axes.set_xlabel("bad entries in the bank, %")
        axes.set_ylabel("answers hurt by memory, %")
        axes.set_ylim(bottom=0)
        axes.set_title("Harm by share of bad entries")
        axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))

    values = "; ".join(
        f"{arm} {one.arms[arm].counts.hurts} hurts at {one.rate:.0%}" for one in found for arm in COLOURS
    )
    return draw("controls", values, "Answers right without memory and wrong in the end.", 2.8, paint)


def _rate(one: ControlResult) -> dict[str, Any]:
    return {
        "rate": one.rate,
        "bad": one.bad,
        "entries": one.entries,
        "exposed": one.exposed,
        "changed": one.changed,
        "arms": {arm: arm_fields(measured) for arm, measured in one.arms.items()},
        "removal": {rule: asdict(removal) for rule, removal in one.removal.items()},
    }
