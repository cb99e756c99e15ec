"""What a report shows of the user's own texts."""

from collections.abc import Mapping
from dataclasses import dataclass

from heedful.evaluation.row_changes import RowChange, changed_rows, rows_of_arm
from heedful.evaluation.study_data import StudyData
from heedful.protocol.grading_check import GradingWarning, check_grading
from heedful.protocol.study_texts import StudyTexts


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyWords:
    warnings: tuple[GradingWarning, ...]
    """Signs that the metric misreads answers."""
    changes: tuple[RowChange, ...]
    """The test rows that the locked policy spoiled, then those that it mended."""
    entries: Mapping[tuple[str, str], str]
    """The text of each entry, by source and id."""


def words_of(data: StudyData, texts: StudyTexts) -> StudyWords:
    return StudyWords(
        warnings=check_grading(data.graded_passes(), texts.items, texts.benchmark),
        changes=changed_rows(rows_of_arm(data, data.lock.policy, texts)),
        entries={
            (source, id): entry.text
            for source, entries in texts.entries.items()
            for id, entry in entries.items()
        },
    )
