"""The page about a counterfactual replay: what the content of entries is worth."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from heedful.experiments.counterfactual import (
    AGAIN,
    VERSIONS,
    Contrast,
    CounterfactualResult,
    EditWorth,
    Version,
)
from heedful.report.pages.experiment_page import ExperimentPage, caveats
from heedful.report.phrases import change, p_value, percent, policy_words, share
from heedful.report.report_table import ReportTable
from heedful.report.svg import BLUE, GREY, ORANGE, Figure, draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes


COLOURS = {"repair": BLUE, "corrupt": ORANGE, "again": GREY}


def counterfactual_page(study: str, found: CounterfactualResult) -> ExperimentPage:
    return ExperimentPage(
        title=f"{study}: what the content of {found.source} is worth",
        sentences=_sentences(found),
        tables=(_effects(found), _localisation(found), _edits(found)),
        figures=(_figure(found),),
        summary=_summary(found),
    )


def _sentences(found: CounterfactualResult) -> list[str]:
    sentences = [
        f"{len(found.edits)} entries of {found.source} were edited; {found.hits} of {found.rows} rows of the "
        f"{found.side} side had recalled at least one of them.",
        "Rows that recalled no edited entry are identical under both edits, as they must be.",
    ]
    if not found.repaired:
        sentences.append("No repairs were given, so the repaired bank is the original bank.")
    for arm, worth in found.arms.items():
        parts = [f"the corrupted bank changes accuracy by {change(worth.change['fixed', 'corrupt'])} points"]
        if found.repaired:
            parts.append(f"the repaired bank by {change(worth.change['fixed', 'repair'])}")
        parts.append(f"decoding again without any edit by {change(worth.change[AGAIN])}")
        line = f"{arm}: with the recalls held fixed, {', '.join(parts)}."
        if worth.hits.change is not None and worth.hits.p is not None:
            line += (
                f" On the rows that recalled an edited entry, repair minus corrupt is "
                f"{change(worth.hits.change)} points ({worth.hits.helps} helps, {worth.hits.hurts} hurts, "
                f"McNemar p = {p_value(worth.hits.p)})"
            )
            if worth.localised is not None:
                line += f"; one-sided randomisation test of hit × edit: p = {p_value(worth.localised)}"
            line += "."
        sentences.append(line)
    if "heedful" in found.arms:
        sentences.append(f"The policy of heedful: {policy_words(found.arms['heedful'].policy)}")
    policies = {arm: worth.policy for arm, worth in found.arms.items()}
    return sentences + caveats(found.source, found.side, policies)


def _named(version: Version) -> str:
    mode, edit = version
    return f"{edit}, {'recalled again' if mode == 'free' else 'recalls held fixed'}"


def _effects(found: CounterfactualResult) -> ReportTable:
    rows = []
    for arm, worth in found.arms.items():
        rows.append((f"{arm}, original", share(worth.original), "", "", "", ""))
        again = share(worth.right[AGAIN]), change(worth.change[AGAIN])
        rows.append((f"{arm}, original, hits decoded again", *again, "", "", str(found.hits)))
        for version in VERSIONS:
            mode, edit = version
            rows.append(
                (
                    f"{arm}, {_named(version)}",
                    share(worth.right[version]),
                    change(worth.change[version]),
                    change(worth.drift[edit]) if mode == "free" else "",
                    percent(found.same[version]),
                    str(found.changed[version]),
                )
            )
    return ReportTable(
        name="effects",
        title="Effect of the edits",
        note="Right with a 95% Wilson interval; change relative to the original bank, in percentage points "
        "with a 95% bootstrap interval over tasks. Drift: what recalling again changes beyond the content. "
        "Same: share of rows that recall the original entries. Changed: passes with a different prompt, or "
        "decoded again; the same for every arm. Decoding the hits again without any edit shows the "
        "decoder's noise.",
        head=("Arm, edit", "Right [95%]", "Change, points [95%]", "Drift, points [95%]", "Same", "Changed"),
        rows=tuple(rows),
    )


def _localisation(found: CounterfactualResult) -> ReportTable:
    def row(name: str, one: Contrast) -> tuple[str, ...]:
        difference = "" if one.change is None else change(one.change)
        p = "" if one.p is None else p_value(one.p)
        return name, str(one.rows), difference, str(one.helps), str(one.hurts), p

    return ReportTable(
        name="localisation",
        title="Repair minus corrupt, recalls held fixed",
        note="Hits: rows whose frozen recalls contain an edited entry. p: exact McNemar test.",
        head=("Arm, rows", "n", "Change, points [95%]", "Helps", "Hurts", "p"),
        rows=tuple(
            row(f"{arm}, {name}", one)
            for arm, worth in found.arms.items()
            for name, one in (("hits", worth.hits), ("others", worth.others))
        ),
    )


def _edits(found: CounterfactualResult) -> ReportTable:
    def edited(entry: Any) -> str:
        return str(entry.response if entry.kind == "exemplar" else entry.text)

    rows = [(name, edited(edit.repair), edited(edit.corrupt)) for name, edit in found.edits.items()]
    return ReportTable(
        name="edits",
        title="The edits",
        note="In an exemplar, the worked answer is edited.",
        head=("Entry", "Repaired", "Corrupted"),
        rows=tuple(rows),
        words=frozenset((1, 2)),
        folded=True,
    )


def _figure(found: CounterfactualResult) -> Figure:
    places = [(arm, version) for arm in found.arms for version in (*VERSIONS, AGAIN)][::-1]

    def paint(axes: "Axes") -> None:
        for place, (arm, version) in enumerate(places):
            mode, edit = version
            effect, colour = found.arms[arm].change[version], COLOURS[edit]
            axes.plot((100 * effect.low, 100 * effect.high), (place, place), color=colour, linewidth=2)
            axes.plot(100 * effect.value, place, "o" if mode == "fixed" else "s", color=colour, markersize=6)
        axes.axvline(0, color=GREY, linestyle=":", linewidth=1)
        axes.set_yticks(range(len(places)), [f"{arm}, {edit}, {mode}" for arm, (mode, edit) in places])
        axes.set_xlabel("change in accuracy, percentage points (95% intervals)")
        axes.set_title("What the edits change")

    return draw(
        "counterfactual",
        "Change in accuracy under repaired and corrupted entries, recalled again and with recalls held fixed",
        "Squares: recalled again with the edited bank. Circles: recalls held fixed, so only the content "
        "differs. Grey: nothing edited, decoded again.",
        1.2 + 0.25 * len(places),
        paint,
    )


def _summary(found: CounterfactualResult) -> dict[str, Any]:
    return {
        "edited": list(found.edits),
        "rows": found.rows,
        "hits": found.hits,
        "repaired": found.repaired,
        "same": {_key(version): same for version, same in found.same.items()},
        "changed": {_key(version): changed for version, changed in found.changed.items()},
        "arms": {arm: _worth(worth) for arm, worth in found.arms.items()},
    }


def _worth(worth: EditWorth) -> dict[str, Any]:
    return {
        "original": asdict(worth.original),
        "right": {_key(version): asdict(right) for version, right in worth.right.items()},
        "change": {_key(version): asdict(change) for version, change in worth.change.items()},
        "drift": {edit: asdict(drift) for edit, drift in worth.drift.items()},
        "hits": asdict(worth.hits),
        "others": asdict(worth.others),
        "localised_p": worth.localised,
    }


def _key(version: Version) -> str:
    return "-".join(version)
