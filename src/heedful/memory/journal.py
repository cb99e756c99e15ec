"""Decision records in SQLite."""

import json
import time
from dataclasses import dataclass
from typing import Any

from heedful.decisions import to_record
from heedful.errors import UsageError
from heedful.memory.database import Database
from heedful.types import Outcome


@dataclass(frozen=True, slots=True)
class SqliteJournal:
    """Keeps decision records; a record is on disk when `record` returns."""

    database: Database

    def record(self, outcome: Outcome) -> None:
        now = time.time()
        row = (outcome.decision, now, json.dumps(to_record(outcome, now), ensure_ascii=False))
        with self.database.writing() as connection:
            connection.execute("INSERT INTO decisions (id, at, record) VALUES (?, ?, ?)", row)

    def find(self, decision: str) -> dict[str, Any]:
        """A record by its id, by a beginning of it, or `last`."""
        with self.database.reading() as connection:
            if decision == "last":
                query, key = "SELECT record FROM decisions ORDER BY at DESC, rowid DESC LIMIT 1", ()
                rows = connection.execute(query, key).fetchall()
            else:
                rows = connection.execute(
                    "SELECT record FROM decisions WHERE substr(id, 1, ?) = ?", (len(decision), decision)
                ).fetchall()
        if len(rows) == 1:
            record: dict[str, Any] = json.loads(rows[0]["record"])
            return record
        problem = "fits several decisions; give more of it" if rows else "is not a recorded decision"
        raise UsageError(f"{decision!r} {problem}; heedful ask prints the id of each")
