"""Tables of arms: each study's own, the benchmarks side by side, and the paper's figures."""

from collections.abc import Mapping

from heedful.report.phrases import p_value, percent
from published.cells import (
    BENCHMARKS,
    NOT_YET,
    Fields,
    best_always,
    gain,
    known_report,
    newest_study,
    report,
    right,
    span,
    table,
)

HEAD = ("arm", "right", "against no memory, points", "p", "helps", "hurts", "calls")
CONTROLS = {
    "retry": "asked again (retry)",
    "vote": "majority of three samples (vote)",
    "reflect": "criticise, then answer again (reflect)",
    "verify": "answer again unless the model confirms (verify)",
}
BANKS = {
    "always-exemplar": "exemplars as turns, always",
    "always-rule": "rules in the system message, always",
    "always-worked": "exemplars worked in the model's own words, always",
    "always-exemplar_rerank": "exemplars as turns, recall reranked by meaning, always",
    "always-exemplar_after": "exemplars in the user's message, always",
    "always-built": "distilled rules, always",
    "always-fact": "facts in the system message, always",
}


def arms_table(study: str) -> str:
    """Every arm of a study on its test side."""
    found = known_report(study)
    arms = found["arms"]
    limited = "unlimited" in arms
    mine = "heedful" if not limited else f"heedful, {_promise(found)}"
    names = {**BANKS, **CONTROLS, "heedful": mine, "unlimited": "heedful without the harm limit"}
    rows = [("no memory", right(arms["baseline"]), "", "", "", "", "1.00")]
    rows += [_row(label, arms[name]) for name, label in names.items() if name in arms]
    bound = found["oracles"]["all_banks"]
    perfect = f"{percent(bound['value'])} [{100 * bound['low']:.1f}, {100 * bound['high']:.1f}]"
    rows.append(("a perfect choice among the passes of the banks", perfect, "", "", "", "", ""))
    return table(HEAD, rows)


def _promise(found: Fields) -> str:
    nothing = any("no policy was certified" in note for note in found["fit"]["notes"])
    return "limit of 2% hurts: nothing was certified" if nothing else "certified to hurt at most 2%"


def _row(label: str, arm: Fields) -> tuple[str, ...]:
    counts = (str(arm["helps"]), str(arm["hurts"]), f"{arm['calls_per_task']:.2f}")
    return (label, right(arm), span(arm["delta"]), p_value(arm["mcnemar_p"]), *counts)


def side_by_side(cells: Mapping[str, Mapping[str, str]], studies: Mapping[str, str] | None = None) -> str:
    """One column per benchmark, one row per label; `studies` by benchmark, by default `NAME-value`."""
    named = studies or {benchmark: f"{benchmark}-value" for benchmark in BENCHMARKS}
    sizes = {benchmark: known_report(study)["arms"]["baseline"]["n"] for benchmark, study in named.items()}
    head = ["", *(f"{name}, n = {sizes[benchmark]}" for benchmark, name in BENCHMARKS.items())]
    return table(
        head, [(label, *(row[benchmark] for benchmark in BENCHMARKS)) for label, row in cells.items()]
    )


def summary_table() -> str:
    """The table of README.md: rows never asked before, where they are recorded."""
    studies = {benchmark: newest_study(benchmark) for benchmark in BENCHMARKS}
    rows: dict[str, dict[str, str]] = {}
    for benchmark, study in studies.items():
        found = known_report(study)
        arms = found["arms"]
        matched = found.get("matched", {"arms": {}, "differences": {}})
        difference = matched["differences"].get("memory-compute")
        cells = {
            "the model without memory": percent(arms["baseline"]["accuracy"]),
            "memory in every prompt, the best bank": _if_known(arms[best_always(arms)]),
            "majority of the first answer and two samples": _if_known(arms.get("vote")),
            "**heedful: value policy**": _if_known(found["families"]["value"]),
            "**heedful: certified to hurt at most 2%**": _if_known(arms["heedful"]),
            "Δ compute: value policy with samples only": _if_known(matched["arms"].get("compute")),
            "Δ memory: value policy with memory only, same calls": _if_known(matched["arms"].get("memory")),
            "Δ memory − Δ compute": NOT_YET if difference is None else span(difference["delta"]),
        }
        for label, cell in cells.items():
            rows.setdefault(label, {})[benchmark] = cell
    return side_by_side(rows, studies)


def _if_known(arm: Fields | None) -> str:
    return NOT_YET if arm is None else gain(arm, with_p=False)


CROSSFIT = {
    "best threshold policy": "threshold",
    "prior alone": "prior",
    "value policy": "value",
    "Δ compute": "compute",
    "Δ memory": "memory",
    "both": "both",
}
"""Cross-fitted families by their labels."""


def crossfit_table() -> str:
    """The procedures on all rows of each newest study, every row judged by a policy fitted without it."""
    return cross_fitted({name: newest_study(benchmark) for benchmark, name in BENCHMARKS.items()})


def cross_fitted(studies: Mapping[str, str]) -> str:
    """The cross-fitted families of studies by name, one column per study."""
    columns = [_folded(report(study)) for study in studies.values()]
    labels = max(columns, key=len)
    rows = [(label, *(column.get(label, NOT_YET) for column in columns)) for label in labels]
    return table(("", *studies), rows)


def _folded(found: Fields | None) -> dict[str, str]:
    """The cells of a cross-fitted result, if there is one."""
    folded = None if found is None else found["crossfit"]
    if folded is None:
        return {}
    known = folded["families"]
    cells = {"rows": str(folded["n"]), "certified to hurt at most 2%": gain(folded)}
    cells |= {label: gain(known[name]) for label, name in CROSSFIT.items() if name in known}
    if "memory-compute" in folded.get("differences", {}):
        cells["Δ memory − Δ compute"] = span(folded["differences"]["memory-compute"])
    return cells


def value_table() -> str:
    """Threshold policies, value policies and certificates, on the test sides and on all rows."""
    rows: dict[str, dict[str, str]] = {}
    for benchmark in BENCHMARKS:
        found = known_report(f"{benchmark}-value")
        families, folded = found["families"], found["crossfit"]
        cells = {
            "best threshold policy of the fit side": families["threshold"],
            "prior alone, its margin from the fit side": families["prior"],
            "**value policy: prior and own rows**": families["value"],
            "locked: certified to hurt at most 2%": found["arms"]["heedful"],
            "cross-fitted on all rows, 2% limit": folded,
            "cross-fitted on all rows, value policy": folded["families"]["value"],
        }
        for label, arm in cells.items():
            n = f"n = {folded['n']}: " if label.startswith("cross-fitted") else ""
            rows.setdefault(label, {})[benchmark] = n + gain(arm)
    return side_by_side(rows)


def lead_table() -> str:
    """The locked policy minus what a user would do instead."""
    rows: dict[str, dict[str, str]] = {}
    for benchmark in BENCHMARKS:
        found = known_report(f"{benchmark}-value")
        others = {one["arm"]: one for one in found["alternatives"]}
        for label, name in (
            ("memory in every prompt, the best bank", best_always(found["arms"])),
            ("majority of three samples", "vote"),
            ("asked again", "retry"),
        ):
            one = others[name]
            cell = f"{span(one['delta'])}, p = {p_value(one['mcnemar_p'])}"
            rows.setdefault(f"heedful at 2% − {label}", {})[benchmark] = cell
    return side_by_side(rows)


def price_table() -> str:
    """The value policy of each lock at other prices of a call."""
    studies = {benchmark: newest_study(benchmark) for benchmark in BENCHMARKS}
    rows: dict[str, dict[str, str]] = {}
    for benchmark, study in studies.items():
        for point in known_report(study)["frontier"]:
            if point["family"] == "value":
                rows.setdefault(f"λ = {point['cost']:g}", {})[benchmark] = gain(point)
    return side_by_side(rows, studies)


def matched_table() -> str:
    """Memory against compute at the same number of calls."""
    rows = []
    for study in ("svamp-new", "asdiv-new", "multiarith-new"):
        found = report(study)
        if found is None or "matched" not in found:
            rows.append((f"`{study}`", *(NOT_YET,) * 4))
            continue
        arms, differences = found["matched"]["arms"], found["matched"]["differences"]
        cells = [_with_tokens(arms[name]) for name in ("compute", "memory", "both")]
        rows.append((f"`{study}`", *cells, span(differences["memory-compute"]["delta"])))
    head = ("study", "Δ compute: samples", "Δ memory: banks", "both", "memory − compute, points")
    return table(head, rows)


def _with_tokens(arm: Fields) -> str:
    return f"{gain(arm)}, {arm['tokens_per_task']:.0f} tokens"


PAPER = {
    "SVAMP": ("svamp-new", "74.0 → 81.0, +7.0 [+4.3, +9.8]"),
    "ASDiv": ("asdiv-new", "77.5 → 85.2, +7.7 [+5.5, +10.0]"),
    "MultiArith": ("multiarith-new", "87.8 → 89.1, +1.3 [−0.2, +2.8]"),
}
PAPER_QA = {
    "OpenBookQA": ("openbookqa", "50.5 / 48.2 / 50.5 / 51.8"),
    "ARC-Easy": ("arc_easy", "66.3 / 70.2 / 66.3 / 72.5"),
    "ARC-Challenge": ("arc_challenge", "25.5 / 27.5 / 25.2 / 27.8"),
}


def paper_table() -> str:
    """The paper's gains beside ours on the arithmetic benchmarks."""
    rows = []
    for name, (study, theirs) in PAPER.items():
        found = known_report(study)
        base = f"{100 * found['arms']['baseline']['accuracy']:.1f}"
        cells = []
        for arm in (found["families"]["threshold"], found["families"]["value"]):
            cells.append(f"{base} → {100 * arm['accuracy']:.1f}, {span(arm['delta'])}")
        rows.append((name, theirs, *cells))
    head = ("benchmark", "the paper, TAG", "ours, best threshold policy", "ours, value policy")
    return table(head, rows)


def paper_answers_table() -> str:
    """The paper's figures on question answering beside ours."""
    rows = []
    for name, (study, theirs) in PAPER_QA.items():
        found = report(study)
        ours = (NOT_YET,) * 4 if found is None else _answers(found)
        rows.append((name, theirs, *ours))
    ours_head = ("ours: the same", "ours, best threshold policy", "ours, prior alone", "ours, value policy")
    return table(("benchmark", "the paper: base / retrieve / retry / gate", *ours_head), rows)


def _answers(found: Fields) -> tuple[str, ...]:
    """The paper's arms, retrieval and gate with the bank that is best in every prompt; then our families."""
    arms, families = found["arms"], found["families"]
    best = best_always(arms)
    names = ("baseline", best, "retry", best.replace("always", "gate"))
    shares = " / ".join(f"{100 * arms[name]['accuracy']:.1f}" for name in names)
    ours = (families[name] for name in ("threshold", "prior", "value"))
    return (shares, *(f"{100 * arm['accuracy']:.1f}, {span(arm['delta'])}" for arm in ours))
