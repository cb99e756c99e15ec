"""SVAMP: elementary word problems with misleading details (Patel et al. 2021)."""

from heedful.benchmarks.word_problems import DataFile, WordProblems, worked_equation

SVAMP = WordProblems(
    name="svamp",
    files={
        "fit": DataFile(
            path="svamp/train.jsonl",
            sha256="5478cc5fd0f320cfd1d299c002da50632820854f852edd54f71082ac4875eb15",
        ),
        "test": DataFile(
            path="svamp/test.jsonl",
            sha256="30ba00c61dba48757ab7dd20b953d2496bb6ab4e5e2e023207941200892b2b32",
        ),
    },
    worked=lambda item: worked_equation(item.meta["equation"], item.answer),
)
