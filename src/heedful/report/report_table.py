"""A table of the report, before it becomes HTML, Markdown, LaTeX or plain text."""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportTable:
    """Cells as text: the first column names the row, the others are numbers."""

    name: str
    title: str
    note: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    marked: frozenset[int] = frozenset()
    """Rows to highlight."""
    warned: frozenset[int] = frozenset()
    """Rows to show as a warning."""
    words: frozenset[int] = frozenset()
    """Columns of words rather than numbers, besides the first."""
    folded: bool = False
    """Whether the page shows it collapsed: the numbers behind a figure."""
    empty: str = "not recorded"
    """Shown instead of a table without rows."""


def some_columns(table: ReportTable, head: dict[str, str]) -> ReportTable:
    """Only these columns, renamed."""
    kept = [table.head.index(name) for name in head]
    rows = tuple(tuple(row[at] for at in kept) for row in table.rows)
    return replace(table, head=tuple(head.values()), rows=rows)


def plain_text(table: ReportTable) -> str:
    """The table for a terminal."""
    if not table.rows:
        return f"{table.title}: {table.empty}"
    lines = [table.head, *table.rows]
    widths = [max(len(line[at]) for line in lines) for at in range(len(table.head))]
    drawn = []
    for line in lines:
        cells = [line[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        drawn.append("  ".join(cells).rstrip())
    return "\n".join(drawn)
