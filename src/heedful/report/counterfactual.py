"""What a counterfactual replay found, as a page."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from heedful.experiments.counterfactual import EDITS, MODES, Contrast, Counterfactual
from heedful.report.analysis import Analysis
from heedful.report.drawing import BLUE, GREY, ORANGE, Drawing, draw
from heedful.report.sheet import Sheet
from heedful.report.wording import change, p_value, percent, points, policy_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def counterfactual_analysis(study: str, found: Counterfactual) -> Analysis:
    return Analysis(
        name="counterfactual",
        title=f"{study}: what the content of {found.source} is worth",
        sentences=_sentences(found),
        sheets=(_effects(found), _localisation(found), _edits(found)),
        drawings=(_figure(found),),
        summary=_summary(found),
    )


def _sentences(found: Counterfactual) -> list[str]:
    fixed = {edit: found.effects["fixed", edit] for edit in EDITS}
    said = [
        f"{len(found.edits)} entries of {found.source} were edited; {found.hits.rows} of "
        f"{found.hits.rows + found.others.rows} rows of the {found.side} side had recalled one of them.",
        "With the recalls held fixed, the repaired bank changes accuracy by "
        f"{change(fixed['repair'].change)} points and the corrupted one by "
        f"{change(fixed['corrupt'].change)}.",
        "Rows that had recalled no edited entry are the same under both edits, as they must be.",
        f"Counted are the answers of this policy. {policy_words(found.policy)}",
    ]
    if found.hits.change is not None and found.localised is not None:
        said.append(
            f"On the rows that had, repair minus corrupt is {change(found.hits.change)} points "
            f"({found.hits.helps} helps, {found.hits.hurts} hurts); a one-sided randomisation test of "
            f"whether the difference sits on them gives p = {p_value(found.localised)}."
        )
    return said


def _effects(found: Counterfactual) -> Sheet:
    rows = []
    for edit in EDITS:
        for mode in MODES:
            effect = found.effects[mode, edit]
            rows.append(
                (
                    f"{edit}, {'recalled again' if mode == 'free' else 'recalls held fixed'}",
                    percent(effect.accuracy),
                    change(effect.change),
                    percent(effect.same),
                    points(found.drift[edit]) if mode == "free" else "0",
                    str(effect.calls),
                )
            )
    return Sheet(
        name="effects",
        title="Effect of the edits",
        note=f"Accuracy with the bank as it is: {percent(found.original)}. Change in percentage points with "
        "a 95% bootstrap interval over tasks. Same: share of rows whose recalled entries are the original "
        "ones. Drift: what recalling again changes beyond the content.",
        head=("Edit", "Right", "Change, points [95%]", "Same", "Drift, points", "Calls"),
        rows=tuple(rows),
    )


def _localisation(found: Counterfactual) -> Sheet:
    def row(name: str, one: Contrast) -> tuple[str, ...]:
        told = "" if one.change is None else change(one.change)
        return (
            name,
            str(one.rows),
            told,
            str(one.helps),
            str(one.hurts),
            "" if one.p is None else p_value(one.p),
        )

    return Sheet(
        name="localisation",
        title="Repair minus corrupt, recalls held fixed",
        note="Hits: rows whose frozen recalls contain an edited entry. p: exact McNemar test.",
        head=("Rows", "n", "Change, points [95%]", "Helps", "Hurts", "p"),
        rows=(row("hits", found.hits), row("others", found.others)),
    )


def _edits(found: Counterfactual) -> Sheet:
    def said(entry: Any) -> str:
        return str(entry.response if entry.kind == "exemplar" else entry.text)

    rows = [(name, said(edit.repair), said(edit.corrupt)) for name, edit in found.edits.items()]
    return Sheet(
        name="edits",
        title="The edits",
        note="Of an exemplar the worked answer is edited.",
        head=("Entry", "Repaired", "Corrupted"),
        rows=tuple(rows),
        words=frozenset((1, 2)),
        folded=True,
    )


def _figure(found: Counterfactual) -> Drawing:
    places = [(edit, mode) for edit in EDITS for mode in MODES]

    def paint(axes: "Axes") -> None:
        for place, (edit, mode) in enumerate(reversed(places)):
            effect, colour = found.effects[mode, edit].change, BLUE if edit == "repair" else ORANGE
            axes.plot((100 * effect.low, 100 * effect.high), (place, place), color=colour, linewidth=2)
            axes.plot(100 * effect.value, place, "o" if mode == "fixed" else "s", color=colour, markersize=6)
        axes.axvline(0, color=GREY, linestyle=":", linewidth=1)
        axes.set_yticks(range(len(places)), [f"{edit}, {mode}" for edit, mode in reversed(places)])
        axes.set_xlabel("change in accuracy, percentage points (95% intervals)")
        axes.set_title("What the edits change")

    return draw(
        "counterfactual",
        "Change in accuracy under repaired and corrupted entries, recalled again and with recalls held fixed",
        "Squares: recalled again with the edited bank. Circles: the recalls held fixed, so that only the "
        "content differs.",
        2.2,
        paint,
    )


def _summary(found: Counterfactual) -> dict[str, Any]:
    return {
        "side": found.side,
        "source": found.source,
        "edited": list(found.edits),
        "original": found.original,
        "effects": {
            f"{mode}-{edit}": {
                "accuracy": effect.accuracy,
                "change": asdict(effect.change),
                "same": effect.same,
                "calls": effect.calls,
            }
            for (mode, edit), effect in found.effects.items()
        },
        "content": {edit: found.effects["fixed", edit].change.value for edit in EDITS},
        "drift": dict(found.drift),
        "hits": asdict(found.hits),
        "others": asdict(found.others),
        "localised_p": found.localised,
    }
