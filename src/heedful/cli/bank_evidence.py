"""A bank of the store with its evidence: from the store, or from the fit side of a study."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.errors import UsageError
from heedful.types import Entry, Evidence

if TYPE_CHECKING:
    from heedful.governance.evidence import EntryStanding
    from heedful.governance.groups import GroupStanding
    from heedful.memory.storage import Storage

StudyFolder = Annotated[
    Path | None, typer.Option("--study", help="Folder of a study whose fit side is the evidence.")
]
SourceName = Annotated[
    str | None, typer.Option("--source", help="The study's source [default: the bank's name].")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class BankEvidence:
    entries: Sequence[Entry]
    evidence: Sequence[Evidence]
    credit: Mapping[tuple[str, str], bool] = field(default_factory=dict)
    """By task and entry: the results of leave-one-out."""
    probes: Sequence[Evidence] = ()
    cluster_of: Mapping[str, str] = field(default_factory=dict)
    """From a task to its cluster of equal questions, which counts once."""
    left_out: Sequence["GroupStanding"] | None = None
    """The groups, compared with recall without them; None: compared with no memory."""

    def groups(self, bank: str) -> Sequence["GroupStanding"]:
        from heedful.governance.groups import group_standings

        if self.left_out is not None:
            return self.left_out
        return group_standings(bank, self.entries, self.evidence, self.cluster_of)

    def standings(self) -> list["EntryStanding"]:
        from heedful.governance.evidence import standings

        return standings(
            self.entries, self.evidence, cluster_of=self.cluster_of, credit=self.credit, probes=self.probes
        )


def read_bank_evidence(store: "Storage", bank: str, study: Path | None, source: str | None) -> BankEvidence:
    """A bank's entries and evidence by the store, or by a study's fit side."""
    entries = asyncio.run(store.entries(bank))
    if study is None:
        return BankEvidence(entries=entries, evidence=asyncio.run(store.evidence(bank)))
    known = _study_evidence(entries, study, source or bank)
    ours = {(entry.id, entry.digest) for entry in entries}
    if not any((observed.entry, observed.version) in ours for observed in known.evidence):
        raise UsageError(_other_entries(bank, entries, known.evidence))
    return known


def _study_evidence(entries: Sequence[Entry], study: Path, source: str) -> BankEvidence:
    from heedful.agents.agent_evidence import is_agent_study, read_agent_evidence
    from heedful.agents.agent_workspace import AgentFolder
    from heedful.experiments.credit_record import recorded_credit
    from heedful.experiments.study_evidence import evidence_table, study_evidence
    from heedful.protocol.workspace import open_workspace

    if is_agent_study(AgentFolder(study)):
        return BankEvidence(entries=entries, evidence=read_agent_evidence(AgentFolder(study)))
    space = open_workspace(study, None)
    table = evidence_table(space, source)
    return BankEvidence(
        entries=entries,
        evidence=study_evidence(space, source, table),
        credit=recorded_credit(space, table, source),
        cluster_of=table.cluster_of,
    )


def _other_entries(bank: str, entries: Sequence[Entry], evidence: Sequence[Evidence]) -> str:
    ids = {entry.id for entry in entries}
    hint = (
        " (its entries of the same ids have another content, for example another --kind)"
        if any(observed.entry in ids for observed in evidence)
        else ""
    )
    return (
        f"bank {bank!r} has none of the entries that the study recalled{hint}: "
        "choose the bank that the study used, or set --source"
    )


def group_fields(group: "GroupStanding", utilities: Sequence[float]) -> dict[str, Any]:
    """A group and its effect as JSON."""
    return {
        "kind": group.kind,
        "name": group.name,
        "entries": sorted(group.ids),
        "tasks": len(utilities),
        "helps": sum(value > 0 for value in utilities),
        "hurts": sum(value < 0 for value in utilities),
        "mean": sum(utilities) / len(utilities),
    }


def standing_fields(standing: "EntryStanding") -> dict[str, Any]:
    """An entry's standing as JSON."""
    low, high = standing.interval
    return {
        "entry": standing.entry.id,
        "text": standing.entry.text,
        "state": standing.entry.state,
        "uses": standing.uses,
        "tasks": standing.tasks,
        "helps": standing.helps,
        "hurts": standing.hurts,
        "mean": standing.mean,
        "low": low,
        "high": high,
        "why": standing.entry.reason,
    }
