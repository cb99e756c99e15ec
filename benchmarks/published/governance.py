"""What the group rule does with each bank of the arithmetic benchmarks, from the recorded fit sides.

The tasks of a fit side arrive in the order of the split, each with memory in its prompt. The bank is one
group; its rule is checked after every task (`betting`, valid at any time) and once at the end (`sign`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from heedful.evaluation.study_data import StudyData
from heedful.governance.bounds import GROUP_RULES
from heedful.governance.judge import judge
from heedful.governance.poison import is_bad
from heedful.protocol.ledger import Ledger
from heedful.protocol.table import Bools, Column, read_table
from heedful.report.phrases import p_value, percent
from published.cells import BENCHMARKS, RESULTS, Fields, calls_of, published, span, study_data, table

DELTA = 0.05 / 2
"""Groups have half of the error; a bank whose entries have one source is one group."""
POISONED = RESULTS / "asdiv-value" / "controls"
"""ASDiv's exemplars with 30% by an author who poisons, made by `heedful study controls`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BankVerdict:
    helps: int
    hurts: int
    tasks: int
    retired_after: int | None
    """Tasks until the rule retires the bank, checked after each; None: never."""
    p: float
    """Of the sign test, once, on all tasks."""


def utilities_of(data: StudyData, column: Column, rows: Iterable[int], without: Bools) -> list[float]:
    """The effect of the passes of these fit rows on each different question, in the order of arrival.

    `without` says where the answer is right that they are compared with.
    """
    seen: dict[str, float] = {}
    for at in rows:
        if column.decoded[at]:
            seen.setdefault(data.fit.table.clusters[at], float(column.right[at]) - float(without[at]))
    return list(seen.values())


def verdict_on(data: StudyData, bank: str) -> BankVerdict:
    column = data.fit.table.column(bank)
    return _verdict(utilities_of(data, column, range(len(data.fit.table)), data.fit.base_right), DELTA)


def _verdict(found: Sequence[float], delta: float) -> BankVerdict:
    ends = [n for n in range(1, len(found) + 1) if found[n - 1] < 0]  # only a hurt can condemn
    retired = next((n for n in ends if judge(found[:n], "betting", delta, GROUP_RULES).condemned), None)
    once = judge(found, "sign", delta)
    assert once.p_value is not None, "the sign test has a p-value"
    helps, hurts = (sum(value * sign > 0 for value in found) for sign in (1, -1))
    return BankVerdict(helps=helps, hurts=hurts, tasks=len(found), retired_after=retired, p=once.p_value)


def groups_table() -> str:
    """Every bank: its evidence on the fit side, and whether the group rule retires it."""
    rows = []
    for benchmark, name in BENCHMARKS.items():
        data = study_data(f"{benchmark}-value")
        for bank in data.tuned_banks:
            rows.append((name, bank, *_verdict_cells(verdict_on(data, bank), DELTA)))
    head = ("benchmark", "bank", "helps / hurts", "checked after every task", "one look at the end")
    return table(head, rows)


def _verdict_cells(one: BankVerdict, delta: float) -> tuple[str, str, str]:
    after = "never" if one.retired_after is None else f"after {one.retired_after} tasks"
    once = "retired" if one.p <= delta else "stays"
    return f"{one.helps} / {one.hurts} of {one.tasks}", after, f"{once}, p = {p_value(one.p)}"


def author_table() -> str:
    """The evidence about the author who poisons: against no memory, and left out of recall.

    The fit side; groups have half of the error, shared by two kinds: the bank, and its one source.
    """
    data, ledger = study_data("asdiv-value"), Ledger(POISONED / "exemplar-poisoned-0.3" / "ledger.jsonl")
    known, delta = data.fit.table, DELTA / 2
    column = read_table(ledger, "fit", list(dict.fromkeys(known.tasks)), (0,)).column("exemplar")
    clean = known.column("exemplar").right
    bad = [[is_bad(recall.entry) for recall in row.recalls] for row in column.passes]
    exposed = [at for at, one in enumerate(bad) if any(one)]
    alone = [at for at in exposed if all(bad[at])]
    judged = {
        "the bank, against no memory": (range(len(bad)), data.fit.base_right),
        "the author, alone in the prompt, against no memory": (alone, data.fit.base_right),
        "the author, in any prompt, against no memory": (exposed, data.fit.base_right),
        "the author, in any prompt, against recall without the author": (exposed, clean),
    }
    rows = []
    for label, (places, without) in judged.items():
        verdict = _verdict(utilities_of(data, column, places, without), delta)
        rows.append((label, *_verdict_cells(verdict, delta)))
    head = ("what is judged", "helps / hurts", "checked after every task", "one look at the end")
    return table(head, rows)


def poisoned_table() -> str:
    """The test side with the poisoned bank, and without the author."""
    found = published("asdiv-value/controls/exemplar-test.json")
    clean, poisoned = (one["arms"] for one in found["rates"])
    labels = {"always": "exemplars in every prompt", "heedful": "heedful, the certified policy (prior alone)"}
    rows = [
        (label, _cell(clean[arm]), _cell(poisoned[arm]), span(poisoned[arm]["change"]))
        for arm, label in labels.items()
    ]
    head = (f"test side, n = {found['tasks']}", "without the author", "30% by the author", "change, points")
    return table(head, rows)


def effect_table() -> str:
    """MultiArith's test side with its exemplars and without them, as `benchmarks/governance.py` wrote it."""
    found = published("governance.json")
    rows = [
        (one["arm"], *(_cell(one[when]) for when in ("before", "after")), span(one["change"]))
        for one in found["arms"]
    ]
    head = (f"test side, n = {found['n']}", "before", "after the bank is retired", "change, points")
    return table(head, rows)


def _cell(one: Fields) -> str:
    return f"{percent(one['accuracy'])}, {one['helps']} / {one['hurts']}, {calls_of(one):.2f} calls"
