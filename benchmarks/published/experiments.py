"""Tables of the experiments on banks: the closed loop, counterfactuals, bad entries, labelled rows."""

from heedful.evaluation.arm_results import compare, main_arms
from heedful.report.phrases import p_value, percent
from published.cells import Fields, published, span, study_data, table


def _share(interval: Fields) -> str:
    return f"{percent(interval['value'])} [{100 * interval['low']:.1f}, {100 * interval['high']:.1f}]"


def loop_table() -> str:
    """The rounds of `heedful study refine` on the fit side."""
    found = published("svamp-loop/refine/rule-e6d369d2.json")
    rows = []
    for one in found["iterations"]:
        number, always = one["number"], one["always"]
        label = f"{number} (chosen)" if number == found["chosen"] else str(number)
        later = (str(len(one["retired"])), str(one["changed"])) if number else ("", "")
        change = span(always["change"]) if number else ""
        counts = f"{always['helps']} / {always['hurts']}"
        held_out = percent(one["accuracy"])
        rows.append((label, str(one["entries"]), *later, _share(always["right"]), change, counts, held_out))
    head = (
        "round",
        "rules",
        "retired",
        "prompts changed",
        "always, right",
        "change, points",
        "helps / hurts",
    )
    return table((*head, "held out"), rows)


def loop_test_table() -> str:
    """The bank before and after the loop on the test side."""
    before, after = study_data("svamp-loop-before"), study_data("svamp-loop")
    first, second = ({arm.name: arm for arm in main_arms(data)} for data in (before, after))
    rows = []
    for label, name in (
        ("rules in every prompt", "always-rule"),
        ("the policy chosen on each fit side", "heedful"),
    ):
        paired = compare(after, second[name].right, first[name].right)
        shares = [percent(arms[name].accuracy.value) for arms in (first, second)]
        delta = {"value": paired.delta.value, "low": paired.delta.low, "high": paired.delta.high}
        rows.append((label, *shares, span(delta), p_value(paired.p)))
    return table(("", "before", "after two rounds", "paired difference, points", "p"), rows)


def counterfactual_table() -> str:
    """SVAMP's worked exemplars repaired and corrupted, recalls held fixed."""
    labels = {"always": "worked exemplars in every prompt", "heedful": "heedful, the locked policy"}
    return _edits_table("svamp/counterfactual/worked-test.json", labels)


def counterfactual_asdiv_table() -> str:
    """ASDiv's exemplars corrupted, recalls held fixed."""
    labels = {"always": "exemplars in every prompt", "heedful": "heedful, the certified policy (prior alone)"}
    return _edits_table("asdiv-value/counterfactual/exemplar-test.json", labels)


def _edits_table(path: str, labels: Fields) -> str:
    found = published(path)
    edits = {"decoded again": "again", "repaired, change": "repair", "corrupted, change": "corrupt"}
    if not found["repaired"]:
        del edits["repaired, change"]
    rows = []
    for name, label in labels.items():
        arm = found["arms"][name]
        changes = [span(arm["change"][f"fixed-{edit}"]) for edit in edits.values()]
        hits = arm["hits"]
        counts = f"{hits['helps']} / {hits['hurts']}"
        p = f"{arm['localised_p']:.2g}"
        rows.append((label, percent(arm["original"]["value"]), *changes, span(hits["change"]), counts, p))
    against = "repair" if found["repaired"] else "original"
    hit = f"{against} − corrupt on the {found['hits']} rows"
    return table(("", "original", *edits, hit, "helps / hurts", "one-sided randomisation p"), rows)


def controls_table() -> str:
    """Banks with 30% bad entries."""
    labels = {"rule": "rules", "worked": "worked exemplars"}
    rows = []
    for source, label in labels.items():
        clean, bad = published(f"svamp/controls/{source}-test.json")["rates"]
        for arm in ("always", "gate", "choose", "heedful"):
            before, after = clean["arms"][arm], bad["arms"][arm]
            shares = [percent(one["accuracy"]) for one in (before, after)]
            hurt = f"{after['hurts']}: {_share(after['hurt'])}"
            rows.append((f"{label}, {arm}", *shares, span(after["change"]), str(before["hurts"]), hurt))
    head = ("bank, arm", "right, clean", "right, 30% bad", "change, points", "hurts, clean", "hurts, 30% bad")
    return table(head, rows)


def labels_table() -> str:
    """Value policies by the number of graded rows, as `benchmarks/labels.py` wrote them."""
    found = {(one["benchmark"], one["prior"], one["rows"]): one for one in published("labels.json")}
    columns = [(b, p) for b in ("svamp", "asdiv") for p in (True, False)]
    rows = [
        (str(rows), *(_gains(found.get((b, p, rows))) for b, p in columns))
        for rows in sorted({rows for _, _, rows in found})
    ]
    names = {"svamp": "SVAMP", "asdiv": "ASDiv"}
    head = [f"{names[b]}, {'prior and own rows' if p else 'own rows only'}" for b, p in columns]
    return table(("graded rows", *head), rows)


def _gains(one: Fields | None) -> str:
    if one is None:
        return ""
    low, high = min(one["gains"]), max(one["gains"])
    spread = f" ({low:+.1f} to {high:+.1f})".replace("-", "−") if len(one["gains"]) > 1 else ""
    gain = f"{one['gain']:+.1f}".replace("-", "−")
    return f"{gain}{spread}, {one['helps']:.0f} / {one['hurts']:.0f}, {one['calls']:.2f} calls"
