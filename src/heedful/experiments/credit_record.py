"""The recorded passes of `heedful study credit`, as credit of entries for single outcomes."""

from collections.abc import Sequence
from functools import cache

from heedful.protocol.ledger import Key, Ledger, Pass
from heedful.protocol.table import Table
from heedful.protocol.workspace import Workspace
from heedful.records import RecallRef


def recorded_credit(space: Workspace, table: Table, source: str) -> dict[tuple[str, str], bool]:
    """By task and entry, whether leaving the entry out changes the outcome, as far as it is recorded.

    Rows are those of the table on which memory turned the answer.
    """

    @cache
    def ledger(label: str) -> Ledger:
        return Ledger(space.folder / "credit" / f"{source}-{label}" / "ledger.jsonl")

    credit: dict[tuple[str, str], bool] = {}
    plain, column = table.column("none"), table.column(source)
    for at in (column.decoded & (plain.right != column.right)).nonzero()[0].tolist():
        task, recalls, right = table.tasks[at], column.passes[at].recalls, bool(column.right[at])
        key: Key = ("fit", table.seeds[at], source, task)
        again = _with_recalls(ledger("again").passes.get(key), recalls)
        if again is None:
            continue
        for place, recall in enumerate(recalls):
            rest = (*recalls[:place], *recalls[place + 1 :])
            row = _with_recalls(ledger(f"without-{place + 1}").passes.get(key), rest)
            if again.right != right:  # an outcome that does not recur depends on no entry
                credit[task, recall.entry] = False
            elif row is not None:
                without = row.right if row.record.calls else bool(plain.right[at])
                credit[task, recall.entry] = without != right
    return credit


def _with_recalls(row: Pass | None, recalls: Sequence[RecallRef]) -> Pass | None:
    """The pass, unless it was recorded with other recalls."""
    if row is None or _versions(row.record.recalls) != _versions(recalls):
        return None
    return row


def _versions(recalls: Sequence[RecallRef]) -> list[tuple[str, str]]:
    return [(recall.entry, recall.version) for recall in recalls]
