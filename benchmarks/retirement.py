"""How often the retirement rules err, and how soon they act: the tables of docs/governance.md.

usage: python benchmarks/retirement.py [--json] [--runs 2000] [--ledger results/multiarith]
"""

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heedful import new_entry
from heedful.experiments.study_evidence import table_evidence
from heedful.governance.bounds import EVEN, RULES, TILTED, StakeMixture, first_condemned
from heedful.governance.evidence import recall_outcomes, standings
from heedful.governance.judge import judge, judge_entries
from heedful.governance.retire import review
from heedful.governance.terms import RetirementTerms
from heedful.protocol.ledger import Ledger
from heedful.protocol.table import read_table
from heedful.types import Evidence

DELTA = 0.05
TASKS = 1000
Floats = NDArray[np.float64]
Row = dict[str, str | float]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultTable:
    title: str
    rows: Sequence[Row]


def drawn(rng: np.random.Generator, helps: float, hurts: float, *shape: int) -> Floats:
    """Utilities of an entry with these shares of helps and hurts."""
    return rng.choice([-1.0, 0.0, 1.0], p=[hurts, 1 - helps - hurts, helps], size=shape)


def condemned_after(
    values: Floats, rule: str, delta: float = DELTA, mixture: StakeMixture = TILTED
) -> Floats:
    """For each run, the tasks until the rule condemns, if it looks after each task; infinite: never."""
    tasks = np.array([first_condemned(run, rule, delta, mixture) for run in values], dtype=float)
    return np.where(tasks > 0, tasks, np.inf)


def watched(runs: int) -> ResultTable:
    kinds = {
        "harmless, often changes the answer (40% helps, 40% hurts)": (0.4, 0.4),
        "harmless, rarely changes the answer (5%, 5%)": (0.05, 0.05),
        "slightly good (12%, 10%)": (0.12, 0.1),
        "never helps, hurts 10%": (0.0, 0.1),
        "never helps, hurts 30%": (0.0, 0.3),
        "helps 10%, hurts 40%": (0.1, 0.4),
    }
    rows = []
    for kind, shares in kinds.items():
        values = drawn(np.random.default_rng(1), *shares, runs, TASKS)
        row: Row = {"entry": kind}
        for rule in RULES:
            row[f"`{rule}`"] = _share_and_median(condemned_after(values, rule))
        row["`betting`, even stakes"] = _share_and_median(condemned_after(values, "betting", mixture=EVEN))
        rows.append(row)
    return ResultTable(title=f"Condemned when checked after each of {TASKS} tasks", rows=rows)


def soon(runs: int) -> ResultTable:
    values = drawn(np.random.default_rng(2), 0.0, 0.1, runs, TASKS)
    rows: list[Row] = []
    for name, mixture in (("tilted stakes", TILTED), ("even stakes", EVEN)):
        for delta in (DELTA, DELTA / 2):
            after = condemned_after(values, "betting", delta, mixture)
            rows.append(
                {
                    "rule": f"`betting`, {name}, δ = {delta:g}",
                    "median recalls": f"{np.median(after):.0f}",
                    "condemned within 40 recalls": _percent(after <= 40),
                }
            )
    return ResultTable(title="An entry that never helps and hurts on 10% of its recalls", rows=rows)


def one_look(runs: int) -> ResultTable:
    """Studies with 30 harmless and 10 harmful entries, 60 recalls each."""
    rng = np.random.default_rng(3)
    harmless, harmful = (
        drawn(rng, *shares, runs // 4, n, 60) for shares, n in (((0.1, 0.1), 30), ((0.0, 0.2), 10))
    )
    rows: list[Row] = []
    for rule in ("sign", "betting", "hoeffding", "hoeffding-paper"):
        alone = [[one.condemned for one in judge_entries(list(study), rule, DELTA)] for study in harmless]
        both = [
            [one.condemned for one in judge_entries([*good, *bad], rule, DELTA)]
            for good, bad in zip(harmless, harmful, strict=True)
        ]
        found = np.array(both)
        false, gone = found[:, :30].sum(axis=1), np.maximum(found.sum(axis=1), 1)
        rows.append(
            {
                "rule": f"`{rule}`" + (" with Benjamini–Hochberg" if rule == "sign" else ""),
                "a harmless bank loses an entry": _percent(np.array(alone).any(axis=1)),
                "harmless among the retired": f"{(false / gone).mean():.1%}",
                "harmful entries found": _percent(found[:, 30:]),
            }
        )
    return ResultTable(title="One look at 40 entries with 60 recalls each, 10 of them hurt 20%", rows=rows)


def groups(runs: int, ledger: Path) -> ResultTable:
    """MultiArith's exemplars in random orders of the recorded fit tasks, and harmless groups."""
    rng = np.random.default_rng(4)
    book = Ledger(ledger / "ledger.jsonl")
    tasks = list(dict.fromkeys(row.task for row in book.passes.values() if row.side == "fit"))
    evidence = table_evidence(read_table(book, "fit", tasks, [0]), "exemplar")
    bank = np.array([next(iter(one.recalled.values())) for one in recall_outcomes(evidence)])
    orders = np.array([rng.permutation(bank) for _ in range(runs // 2)])
    by_entry: dict[str, dict[str, float]] = {}
    for one in evidence:
        by_entry.setdefault(one.entry, {})[one.task] = one.utility
    single = [first_condemned(list(seen.values()), "betting", DELTA / 2) for seen in by_entry.values()]
    first = np.array([_first_entry(rng.permutation(tasks).tolist(), by_entry) for _ in range(runs // 20)])
    helps, hurts = int((bank > 0).sum()), int((bank < 0).sum())
    rows: list[Row] = [
        {
            "group": f"{name}, δ = {delta:g}",
            "condemned": _share_and_median(condemned_after(orders, "betting", delta, EVEN)),
        }
        for name, delta in (("the bank", DELTA), ("the bank", DELTA / 2))
    ]
    of_entries = f"{len(single)} recalled entries, δ = {DELTA / 2:g}"
    rows.append({"group": f"the first of its {of_entries}", "condemned": _share_and_median(first)})
    rows.append(
        {
            "group": f"its {of_entries}, after all tasks",
            "condemned": f"{sum(after > 0 for after in single)}, by outcomes that they share",
        }
    )
    harmless = drawn(rng, 0.15, 0.15, runs, TASKS)
    rows.append(
        {
            "group": f"a harmless group (15%, 15%), δ = {DELTA / 2:g}",
            "condemned": _share_and_median(condemned_after(harmless, "betting", DELTA / 2, EVEN)),
        }
    )
    return ResultTable(
        title=f"MultiArith's exemplars ({helps} helps, {hurts} hurts on {len(bank)} fit tasks)", rows=rows
    )


def _first_entry(order: Sequence[str], by_entry: Mapping[str, Mapping[str, float]]) -> float:
    """After how many tasks in this order the first entry is condemned."""
    place = {task: number for number, task in enumerate(order, start=1)}
    soonest = np.inf
    for seen in by_entry.values():
        tasks = sorted(seen, key=place.__getitem__)
        after = first_condemned([seen[task] for task in tasks], "betting", DELTA / 2)
        soonest = min(soonest, place[tasks[after - 1]] if after else np.inf)
    return soonest


def companions(runs: int) -> ResultTable:
    """A harmful entry and an innocent one that is recalled with it; leave-one-out errs on 5% of outcomes."""
    innocent, guilty = (new_entry(name, kind="rule", id=name) for name in ("innocent", "guilty"))
    rows: list[Row] = []
    for together in (1.0, 0.8):
        for label, own, credited in (
            ("shared outcomes count in full", False, False),
            ("own outcomes, leave-one-out not run", True, False),
            ("own outcomes, leave-one-out run", True, True),
        ):
            rng = np.random.default_rng(5)
            gone = {"innocent": 0, "guilty": 0}
            for _ in range(runs // 10):
                evidence: list[Evidence] = []
                credit: dict[tuple[str, str], bool] = {}
                for n, (value, noise) in enumerate(
                    zip(drawn(rng, 0.02, 0.2, 60), drawn(rng, 0.02, 0.02, 60), strict=True)
                ):
                    both = rng.random() < together
                    for entry in (innocent, guilty) if both else (innocent,):
                        evidence.append(
                            Evidence(
                                entry=entry.id,
                                version=entry.digest,
                                task=f"{n}",
                                utility=value if both else noise,
                            )
                        )
                        credit[f"{n}", entry.id] = (entry is guilty) != (rng.random() < 0.05)
                terms = RetirementTerms(max_share=1, own_outcomes=own)
                found = review(
                    standings([innocent, guilty], evidence, credit=credit if credited else {}), terms
                )
                for one in found.going:
                    gone[one.standing.entry.id] += 1
            rows.append(
                {
                    "innocent entry": f"recalled with the guilty one on {together:.0%} of its tasks",
                    "rule": label,
                    "innocent retired": f"{gone['innocent'] / (runs // 10):.1%}",
                    "guilty retired": f"{gone['guilty'] / (runs // 10):.1%}",
                }
            )
    return ResultTable(title="Companions: 60 tasks, the guilty entry hurts 20% and helps 2%", rows=rows)


def repeats(runs: int) -> ResultTable:
    """Harmless entries (20%, 20%) on 60 questions that occur several times with the same outcome."""
    rows: list[Row] = []
    for copies in (1, 2, 3, 5):
        first = drawn(np.random.default_rng(6), 0.2, 0.2, runs // 2, 60)
        every = np.repeat(first, copies, axis=1)
        rows.append(
            {
                "copies of a question": copies,
                "`sign`, by task id": _percent(_judged(every, "sign")),
                "`sign`, by cluster": _percent(_judged(first, "sign")),
                "`betting`, by task id": _percent(np.isfinite(condemned_after(every, "betting"))),
                "`betting`, by cluster": _percent(np.isfinite(condemned_after(first, "betting"))),
            }
        )
    return ResultTable(title="A harmless entry whose questions are repeated under other ids", rows=rows)


def observations(runs: int) -> ResultTable:
    """Harmless entries that hurt five tasks of six in 60% of decodes and always help the sixth."""
    rows: list[Row] = []
    for count in (1, 5, 20):
        rng = np.random.default_rng(7)
        helped = rng.random((runs // 2, 60, 1)) < 1 / 6
        seen = np.where(helped, 1.0, np.where(rng.random((runs // 2, 60, count)) < 0.6, -1.0, 1.0))
        rows.append(
            {
                "observations per task": count,
                "`sign` on their mean": _percent(_judged(seen.mean(axis=2), "sign")),
                "`sign` on the first": _percent(_judged(seen[:, :, 0], "sign")),
            }
        )
    return ResultTable(title="A harmless entry whose tasks are observed several times", rows=rows)


def probes(runs: int) -> ResultTable:
    """Entries that hurt 10% and never help, after 20 recalls; suspects have more hurts than helps."""
    rng = np.random.default_rng(8)
    rows: list[Row] = []
    kinds = {"hurts 10%": (0.0, 0.1), "harmless (5%, 5%)": (0.05, 0.05)}
    for kind, shares in kinds.items():
        used, probed = drawn(rng, *shares, runs, 20), drawn(rng, *shares, runs, 80)
        suspect = used.sum(axis=1) < 0
        row: Row = {"entry": kind, "suspects": _percent(suspect)}
        for count in (0, 20, 40, 80):
            values = np.hstack([used, probed[:, :count]])
            row[f"retired with {count} probes"] = _percent(suspect & _judged(values, "betting", DELTA / 2))
        rows.append(row)
    return ResultTable(
        title="Suspects after 20 recalls, probed on further tasks (`betting`, δ = 0.025)", rows=rows
    )


def _judged(values: Floats, rule: str, delta: float = DELTA) -> NDArray[np.bool_]:
    return np.array([judge(list(run), rule, delta).condemned for run in values])


def _percent(shares: NDArray[np.bool_]) -> str:
    return f"{shares.mean():.1%}"


def _share_and_median(after: Floats) -> str:
    share = np.isfinite(after).mean()
    return f"{share:.1%}, half after {np.median(after):.0f} tasks" if share > 0.5 else f"{share:.1%}"


def printed(table: ResultTable) -> str:
    head = list(table.rows[0])
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    lines += [f"| {' | '.join(str(row[key]) for key in head)} |" for row in table.rows]
    return "\n".join([f"### {table.title}", "", *lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--ledger", type=Path, default=Path("results/multiarith"))
    chosen = parser.parse_args()
    measures: list[Callable[[int], ResultTable]] = [
        watched,
        soon,
        one_look,
        lambda runs: groups(runs, chosen.ledger),
        companions,
        repeats,
        observations,
        probes,
    ]
    tables = [measure(chosen.runs) for measure in measures]
    if chosen.json:
        print(
            json.dumps(
                {"runs": chosen.runs, "tables": {one.title: list(one.rows) for one in tables}}, indent=2
            )
        )
        return
    for table in tables:
        print(printed(table))


if __name__ == "__main__":
    main()
