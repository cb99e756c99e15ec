"""The report as one self-contained HTML file."""

from collections.abc import Mapping, Sequence
from html import escape

from heedful.evaluation.evaluate import Evaluation
from heedful.report.conclusion import Conclusion
from heedful.report.phrases import policy_words, times
from heedful.report.protocol_tables import alarms, model_name
from heedful.report.report_table import ReportTable
from heedful.report.style import STYLE
from heedful.report.svg import Figure

Part = ReportTable | Figure | str | None
Section = tuple[str, Sequence[Part]]


def page(
    evaluation: Evaluation, conclusion: Conclusion, first: Sequence[Part], rest: Sequence[Section]
) -> str:
    """The whole report; the result and the parts in `first` make up the first screen."""
    title = evaluation.lock.study
    links = " · ".join(f'<a href="#{_anchor(name)}">{escape(name)}</a>' for name, _ in rest)
    return _whole(
        f"{title}: heedful report",
        [
            f"<h1>{escape(title)}</h1>",
            _alarms(evaluation),
            f'<div class="first"><div>{_words(evaluation, conclusion)}</div>',
            *(_part(part) for part in first),
            "</div>",
            _notes(evaluation),
            f"<nav>{links}</nav>",
            *(_section(name, parts) for name, parts in rest),
        ],
    )


def small_page(
    title: str, sentences: Sequence[str], parts: Sequence[Part], links: Mapping[str, str] | None = None
) -> str:
    """A page about one result: sentences, links (words by file), then tables and figures."""
    named = (f'<a href="{escape(file)}">{escape(words)}</a>' for file, words in (links or {}).items())
    nav = f"<nav>{' · '.join(named)}</nav>" if links else ""
    body = [*map(_part, sentences), nav, *map(_part, parts)]
    return _whole(title, [f"<h1>{escape(title)}</h1>", *body])


def _whole(title: str, body: Sequence[str]) -> str:
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape(title)}</title>",
            f"<style>{STYLE}</style></head><body><main>",
            *body,
            "</main></body></html>",
            "",
        ]
    )


def _words(evaluation: Evaluation, conclusion: Conclusion) -> str:
    lock = evaluation.lock
    about = (
        f"{lock.benchmark} · {model_name(evaluation)} · locked {lock.locked_at} ({lock.lock[:12]}) · "
        f"test side opened {times(evaluation.openings)}"
    )
    lines = [
        f'<p class="about">{escape(about)}</p>',
        f'<p class="result {conclusion.tone}">{escape(conclusion.headline)}</p>',
        *(f"<p>{escape(sentence)}</p>" for sentence in conclusion.further),
        f'<p class="policy"><b>The policy:</b> {escape(policy_words(lock.policy))}</p>',
    ]
    return "\n".join(lines)


def _alarms(evaluation: Evaluation) -> str:
    sentences = alarms(evaluation)
    if evaluation.damaged:
        sentences.append(f"Damaged lines of the ledger that were skipped: {evaluation.damaged}.")
    return "\n".join(f'<p class="alarm" role="alert">{escape(sentence)}</p>' for sentence in sentences)


def _notes(evaluation: Evaluation) -> str:
    notes = evaluation.lock.notes.strip()
    if not notes:
        return ""
    return f'<aside><h2>Explored before this study</h2><p class="notes">{escape(notes)}</p></aside>'


def _section(name: str, parts: Sequence[Part]) -> str:
    inside = "\n".join(_part(part, name) for part in parts)
    return f'<section id="{_anchor(name)}"><h2>{escape(name)}</h2>\n{inside}</section>'


def _anchor(name: str) -> str:
    return name.lower().replace(" ", "-")


def _part(part: Part, under: str = "") -> str:
    """A part of a section; a table with the name of its section gets no title of its own."""
    if part is None:
        return ""
    if isinstance(part, str):
        return f"<p>{escape(part)}</p>"
    if isinstance(part, Figure):
        return f"<figure>{part.svg}<figcaption>{escape(part.caption)}</figcaption></figure>"
    title = escape(part.title)
    if part.folded:
        return f"<details><summary>The numbers: {title}</summary>{_table(part)}</details>"
    return f'<div class="table">{"" if part.title == under else f"<h3>{title}</h3>"}{_table(part)}</div>'


def _table(table: ReportTable) -> str:
    if not table.rows:
        return f'<p class="empty">{escape(table.empty)}</p>'
    kinds = ["w" if at == 0 or at in table.words else "n" for at in range(len(table.head))]
    heads = zip(kinds, table.head, strict=True)
    head = "".join(f'<th class="{kind}" scope="col">{escape(cell)}</th>' for kind, cell in heads)
    body = "\n".join(_row(row, kinds, _look(table, at)) for at, row in enumerate(table.rows))
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(table.title)}">'
        f'<table id="table-{table.name}"><thead><tr>{head}</tr></thead>'
        f"<tbody>\n{body}\n</tbody></table></div>"
        f'<p class="note">{escape(table.note)}</p>'
    )


def _look(table: ReportTable, at: int) -> str:
    if at in table.warned:
        return ' class="warned"'
    return ' class="marked"' if at in table.marked else ""


def _row(row: Sequence[str], kinds: Sequence[str], look: str) -> str:
    first, *rest = row
    cells = "".join(f'<td class="{k}">{escape(cell)}</td>' for k, cell in zip(kinds[1:], rest, strict=True))
    return f'<tr{look}><th class="w" scope="row">{escape(first)}</th>{cells}</tr>'
