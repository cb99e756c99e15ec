"""What the group rule does with each bank of the arithmetic benchmarks, from the recorded fit sides.

The tasks of a fit side arrive in the order of the split, each with memory in its prompt. The bank is one
group; its rule is checked after every task (`betting`, valid at any time) and once at the end (`sign`).
"""

import json
from dataclasses import dataclass

from heedful.evaluation.study_data import StudyData
from heedful.governance.bounds import GROUP_RULES
from heedful.governance.judge import judge
from heedful.report.phrases import p_value, percent
from published.cells import BENCHMARKS, RESULTS, Fields, study_data, table

DELTA = 0.05 / 2
"""Groups have half of the error; a bank whose entries have one source is one group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BankVerdict:
    helps: int
    hurts: int
    tasks: int
    retired_after: int | None
    """Tasks until the rule retires the bank, checked after each; None: never."""
    p: float
    """Of the sign test, once, on all tasks."""


def utilities_of(data: StudyData, bank: str) -> list[float]:
    """The effect of the bank on each different question of the fit side, in the order of arrival."""
    table, column = data.fit.table, data.fit.table.column(bank)
    seen: dict[str, float] = {}
    for at, cluster in enumerate(table.clusters):
        if column.decoded[at]:
            seen.setdefault(cluster, float(column.right[at]) - float(data.fit.base_right[at]))
    return list(seen.values())


def verdict_on(data: StudyData, bank: str) -> BankVerdict:
    found = utilities_of(data, bank)
    ends = [n for n in range(1, len(found) + 1) if found[n - 1] < 0]  # only a hurt can condemn
    retired = next((n for n in ends if judge(found[:n], "betting", DELTA, GROUP_RULES).condemned), None)
    once = judge(found, "sign", DELTA)
    assert once.p_value is not None, "the sign test has a p-value"
    helps, hurts = (sum(value * sign > 0 for value in found) for sign in (1, -1))
    return BankVerdict(helps=helps, hurts=hurts, tasks=len(found), retired_after=retired, p=once.p_value)


def groups_table() -> str:
    """Every bank: its evidence on the fit side, and whether the group rule retires it."""
    rows = []
    for benchmark, name in BENCHMARKS.items():
        data = study_data(f"{benchmark}-value")
        for bank in data.tuned_banks:
            one = verdict_on(data, bank)
            after = "never" if one.retired_after is None else f"after {one.retired_after} tasks"
            once = "retired" if one.p <= DELTA else "stays"
            rows.append(
                (
                    name,
                    bank,
                    f"{one.helps} / {one.hurts} of {one.tasks}",
                    after,
                    f"{once}, p = {p_value(one.p)}",
                )
            )
    head = ("benchmark", "bank", "helps / hurts", "checked after every task", "one look at the end")
    return table(head, rows)


def effect_table() -> str:
    """MultiArith's test side with its exemplars and without them, as `benchmarks/governance.py` wrote it."""
    found = json.loads((RESULTS / "governance.json").read_text(encoding="utf-8"))
    rows = [(one["arm"], *(_cell(one[when]) for when in ("before", "after"))) for one in found["arms"]]
    return table((f"test side, n = {found['n']}", "before", "after the bank is retired"), rows)


def _cell(one: Fields) -> str:
    return f"{percent(one['accuracy'])}, {one['helps']} / {one['hurts']}, {one['calls']:.2f} calls"
