"""The report as Markdown."""

from collections.abc import Sequence

from heedful.report.report_table import ReportTable


def markdown_report(title: str, paragraphs: Sequence[str], tables: Sequence[ReportTable]) -> str:
    """A title, paragraphs, then the tables."""
    parts = [f"# {escape(title)}", *(escape(paragraph) for paragraph in paragraphs)]
    for table in tables:
        parts += [f"## {escape(table.title)}", _table(table), escape(table.note)]
    return "\n\n".join(parts) + "\n"


def _table(table: ReportTable) -> str:
    if not table.rows:
        return escape(table.empty)
    rule = ["---" if at == 0 or at in table.words else "---:" for at in range(len(table.head))]
    lines = [_line(table.head), f"| {' | '.join(rule)} |"]
    for at, row in enumerate(table.rows):
        cells = [escape(cell) for cell in row]
        lines.append(_joined([f"**{cell}**" if cell and at in table.marked else cell for cell in cells]))
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return _joined([escape(cell) for cell in cells])


def _joined(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def escape(text: str) -> str:
    """Text on one line, with the signs of Markdown escaped."""
    for sign in ("\\", "`", "*", "_", "|", "<", ">"):
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.split())
