"""The test rows of an arm in words: question, both answers, recalled entries and grades."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from heedful.evaluation.study_data import StudyData
from heedful.protocol.study_texts import StudyTexts
from heedful.records import PassRecord, RecallRef
from heedful.types import Policy

Effect = Literal["mended", "spoiled", "right", "wrong"]
"""mended: wrong without memory, right in the end; spoiled: the reverse; else the grade of both answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryText:
    """A recalled entry in words; the text is empty if it is not known."""

    id: str
    text: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChange:
    """A test row without memory and under an arm."""

    task: str
    seed: int
    effect: Effect
    question: str
    """Empty if the study's texts are not known."""
    targets: tuple[str, ...]
    first_answer: str
    """Without memory."""
    final_answer: str
    source: str
    """The source of the final answer."""
    entries: tuple[EntryText, ...]
    """Recalled for the final answer."""


def rows_of_arm(data: StudyData, policy: Policy, texts: StudyTexts | None) -> tuple[RowChange, ...]:
    """Every test row, in the order of the ledger's tasks."""
    done, table = data.test.replay(policy), data.test.table
    first = data.test.first(policy.first)
    base = table.column("none")
    rows = []
    for at in range(len(table)):
        chosen = int(done.chosen[at])
        final = first.passes[at] if chosen < 0 else table.column(policy.sources[chosen]).passes[at]
        effect = _effect(bool(base.right[at]), bool(done.right[at]))
        rows.append(_row(table.tasks[at], table.seeds[at], effect, base.passes[at], final, texts))
    return tuple(rows)


def changed_rows(rows: Sequence[RowChange]) -> tuple[RowChange, ...]:
    """Spoiled rows, then mended rows."""
    return tuple(row for effect in ("spoiled", "mended") for row in rows if row.effect == effect)


def _effect(before: bool, after: bool) -> Effect:
    if before == after:
        return "right" if after else "wrong"
    return "mended" if after else "spoiled"


def _row(
    task: str, seed: int, effect: Effect, base: PassRecord, final: PassRecord, texts: StudyTexts | None
) -> RowChange:
    item = None if texts is None else texts.items.get(task)
    return RowChange(
        task=task,
        seed=seed,
        effect=effect,
        question="" if item is None else item.question,
        targets=() if item is None else item.targets,
        first_answer=base.answer,
        final_answer=final.answer,
        source=final.source,
        entries=tuple(_entry(final.source, recall, texts) for recall in final.recalls),
    )


def _entry(source: str, recall: RecallRef, texts: StudyTexts | None) -> EntryText:
    known = None if texts is None else texts.entries.get(source, {}).get(recall.entry)
    text = "" if known is None else f"{known.text} → {known.response}" if known.response else known.text
    return EntryText(id=recall.entry, text=text, score=recall.score)
