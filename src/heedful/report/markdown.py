"""The report as Markdown."""

from collections.abc import Sequence

from heedful.report.sheet import Sheet


def markdown_report(title: str, paragraphs: Sequence[str], sheets: Sequence[Sheet]) -> str:
    """A title, paragraphs, then the tables."""
    parts = [f"# {escape(title)}", *(escape(paragraph) for paragraph in paragraphs)]
    for sheet in sheets:
        parts += [f"## {escape(sheet.title)}", _table(sheet), escape(sheet.note)]
    return "\n\n".join(parts) + "\n"


def _table(sheet: Sheet) -> str:
    if not sheet.rows:
        return escape(sheet.empty)
    rule = ["---" if at == 0 or at in sheet.words else "---:" for at in range(len(sheet.head))]
    lines = [_line(sheet.head), f"| {' | '.join(rule)} |"]
    for at, row in enumerate(sheet.rows):
        cells = [escape(cell) for cell in row]
        lines.append(_joined([f"**{cell}**" if cell and at in sheet.marked else cell for cell in cells]))
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return _joined([escape(cell) for cell in cells])


def _joined(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def escape(text: str) -> str:
    """Text that Markdown leaves as it is, on one line."""
    for sign in ("\\", "`", "*", "_", "|", "<", ">"):
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.split())
