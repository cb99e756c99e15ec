"""Evidence from a study: the effect of each recalled entry on the tasks of the fit side."""

from heedful.errors import UsageError
from heedful.protocol.cluster_file import fit_clusters
from heedful.protocol.harm import choosing_rows
from heedful.protocol.ledger import Ledger
from heedful.protocol.lock import study_policy
from heedful.protocol.replay import Replayer
from heedful.protocol.study import read_study
from heedful.protocol.table import Table, read_table
from heedful.protocol.workspace import Workspace
from heedful.types import Evidence, Policy


def study_evidence(space: Workspace, source: str, table: Table | None = None) -> list[Evidence]:
    """Evidence from the fit rows that the study's policy routes to the source; from all before a fit."""
    policy = study_policy(space) if space.fitted else None
    return table_evidence(table or evidence_table(space, source), source, policy)


def evidence_table(space: Workspace, source: str) -> Table:
    """The rows of the fit side that may be evidence.

    With a harm limit, the certifying rows are left out: they must not influence a bank.
    """
    return choosing_rows(_fit_table(space, source), read_study(space.study).fit)


def table_evidence(table: Table, source: str, policy: Policy | None = None) -> list[Evidence]:
    """For each recalled entry on every routed row: right with the source minus right without it.

    Routed rows are those on which the policy asks the source after the first pass; for other policies,
    or none, all rows on which the source decoded a pass.
    """
    routed = table.column(source).decoded
    if policy is not None and source in policy.sources[: policy.budget.passes]:
        routed = Replayer(table).replay(policy).decoded[policy.sources.index(source)]
    plain, column = table.column("none"), table.column(source)
    return [
        Evidence(
            entry=recall.entry,
            version=recall.version,
            task=table.tasks[at],
            utility=float(column.right[at]) - float(plain.right[at]),
        )
        for at in routed.nonzero()[0]
        for recall in column.passes[at].recalls
    ]


def _fit_table(space: Workspace, source: str) -> Table:
    """The rows of the fit side that are recorded both without memory and with the source."""
    study = read_study(space.study)
    ledger = Ledger(space.ledger)
    passes = [row for row in ledger.passes.values() if row.side == "fit"]
    if not passes:
        raise UsageError(f"the ledger {space.ledger} is empty: run heedful study record first")
    banks = [name for name, settings in study.sources.items() if settings.bank]
    if source not in banks:
        raise UsageError(f"the study {study.name} has no bank {source!r}; it has {', '.join(banks)}")
    recorded = {row.task for row in passes if row.record.source == source}
    shared = [row.task for row in passes if row.record.source == "none" and row.task in recorded]
    if not shared:
        raise UsageError(f"no pass of {source} is recorded yet: run heedful study record")
    return read_table(ledger, "fit", list(dict.fromkeys(shared)), study.seeds, fit_clusters(space))
