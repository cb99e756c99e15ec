"""ARC-Easy: grade-school science questions (Clark et al. 2018)."""

from heedful.benchmarks.multiple_choice import MultipleChoice
from heedful.benchmarks.word_problems import DataFile

ARC_EASY = MultipleChoice(
    name="arc_easy",
    files={
        "fit": (
            DataFile(
                path="arc_easy/train.jsonl",
                sha256="870f1d4be658b50d8c12266de02b0b0ad4f84ca2ad33e17ac9c9ee581eea6742",
            ),
            DataFile(
                path="arc_easy/dev.jsonl",
                sha256="0e59262f49c581379866e2d3e368ff8288d7b54c3e8001a0b075eeb0fafd4da1",
            ),
        ),
        "test": (
            DataFile(
                path="arc_easy/test.jsonl",
                sha256="2ba2710319d04e95382137999a4f232b877db17f53ba117ac19c27f8a7bc5a0f",
            ),
        ),
    },
)
