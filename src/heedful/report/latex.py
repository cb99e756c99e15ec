"""The tables as LaTeX (booktabs), for inclusion in a paper."""

from collections.abc import Sequence

from heedful.report.report_table import ReportTable

SIGNS = {
    "\\": r"\textbackslash{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\N{MINUS SIGN}": "$-$",
    "–": "--",
    "→": r"$\rightarrow$",
    "×": r"$\times$",
    "′": "$'$",
    "…": r"\ldots{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "λ": r"$\lambda$",
    "τ": r"$\tau$",
    "Δ": r"$\Delta$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
}
WIDE = 75
"""A table wider than this many characters is shrunk to the text width."""


def latex_report(title: str, paragraphs: Sequence[str], tables: Sequence[ReportTable]) -> str:
    """A fragment for `\\input`: the result as comments, then the tables."""
    lines = [
        f"% {' '.join(title.split())}",
        *(f"% {' '.join(paragraph.split())}" for paragraph in paragraphs),
        "% needs \\usepackage{booktabs}, \\usepackage{graphicx}",
    ]
    return "\n".join([*lines, "", *(_table(table) for table in tables)])


def _table(table: ReportTable) -> str:
    if not table.rows:
        return f"% {table.title}: {table.empty}\n"
    columns = "".join("l" if at == 0 or at in table.words else "r" for at in range(len(table.head)))
    lines = [
        r"\begin{table}[t]",
        r"\centering\small",
        r"\resizebox{\linewidth}{!}{%" if _width(table) > WIDE else "{%",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        _line([escape(cell) for cell in table.head]),
        r"\midrule",
    ]
    for at, row in enumerate(table.rows):
        cells = [escape(cell) for cell in row]
        lines.append(_line([rf"\textbf{{{c}}}" if c and at in table.marked else c for c in cells]))
    lines += [
        r"\bottomrule",
        r"\end{tabular}}",
        rf"\caption{{\textbf{{{escape(table.title)}.}} {escape(table.note)}}}",
        rf"\label{{tab:{table.name}}}",
        r"\end{table}",
        "",
    ]
    return "\n".join(lines)


def _width(table: ReportTable) -> int:
    lines = (table.head, *table.rows)
    return sum(max(len(line[at]) for line in lines) + 2 for at in range(len(table.head)))


def _line(cells: Sequence[str]) -> str:
    first, *rest = cells
    return " & ".join([f"{{{first}}}" if first.startswith("[") else first, *rest]) + r" \\"


def escape(text: str) -> str:
    return "".join(SIGNS.get(sign, sign) for sign in " ".join(text.split()))
