"""Recall suspects on purpose: put an entry alone into the prompt of tasks that did not recall it.

An entry that is seldom recalled can hurt for a long time before the evidence suffices. A probe gives
further evidence on the fit tasks that are nearest to the entry. It is paired with the recorded pass
without memory, and the entry is alone, so the outcome is its own. But recall did not choose the entry
there: a probe shows whether it hurts near its own tasks.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from heedful.experiments.fixed_retrieval import frozen
from heedful.experiments.variant import Experiment, only
from heedful.memory.bank import MemoryBank
from heedful.protocol.harm import choosing_rows
from heedful.protocol.table import Table
from heedful.types import Entry, Evidence, Recall


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    evidence: Sequence[Evidence]
    calls: int
    """Model calls made in this run; the other probes were already recorded."""


async def probe_suspects(experiment: Experiment, suspects: Sequence[Entry], count: int) -> ProbeResult:
    """Up to `count` probes of each suspect; with a harm limit, certifying rows are not used."""
    table = choosing_rows(await experiment.table(), experiment.setup.study.fit)
    questions = _questions(experiment, table)
    evidence: list[Evidence] = []
    calls = 0
    for number, entry in enumerate(suspects, start=1):
        asked = await _nearest(entry, questions, table, experiment.source, count)
        title = f"probing suspect {number} of {len(suspects)}"
        found, extra_calls = await _probe(experiment, entry, asked, title)
        evidence += found
        calls += extra_calls
    return ProbeResult(evidence=evidence, calls=calls)


def _questions(experiment: Experiment, table: Table) -> MemoryBank:
    """The questions of the table as a bank, to search with an entry's text."""
    tasks = set(table.tasks)
    items = [item for item in experiment.setup.splits.fit if item.id in tasks]
    entries = [Entry(id=item.id, kind="fact", text=item.question) for item in items]
    method = experiment.setup.banks[experiment.source].method
    return MemoryBank("questions", entries, method=method, threshold=-1.0)


async def _nearest(
    entry: Entry, questions: MemoryBank, table: Table, source: str, count: int
) -> dict[str, tuple[Recall, ...]]:
    """The nearest tasks that did not recall the entry, each with the entry as its recall."""
    recalled = {
        task
        for task, row in zip(table.tasks, table.column(source).passes, strict=True)
        if any(recall.entry == entry.id for recall in row.recalls)
    }
    hits = await questions.recall(entry.text, limit=count + len(recalled))
    fresh = [hit for hit in hits if hit.entry.id not in recalled][:count]
    return {hit.entry.id: (Recall(entry=entry, score=hit.score),) for hit in fresh}


async def _probe(
    experiment: Experiment, entry: Entry, asked: dict[str, tuple[Recall, ...]], title: str
) -> tuple[list[Evidence], int]:
    source, side, seed = experiment.source, experiment.side, experiment.setup.study.seeds[0]
    sources = frozen(only(experiment.setup, side, source), source, asked)
    folder = experiment.space.folder / experiment.name / f"{source}-{entry.digest[:12]}"
    ledger, calls = await experiment.record(folder, title, sources, asked, seeds=[seed])
    pairs = [(ledger.passes[side, seed, source, t], ledger.passes[side, seed, "none", t]) for t in asked]
    evidence = [
        Evidence(
            entry=entry.id,
            version=entry.digest,
            task=row.task,
            utility=float(row.right) - float(plain.right),
        )
        for row, plain in pairs
        if row.record.status == "decoded"
    ]
    return evidence, calls
