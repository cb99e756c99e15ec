"""MultiArith: multi-step word problems (Roy and Roth 2015)."""

from heedful.benchmarks.word_problems import DataFile, WordProblems, worked_equation

MULTIARITH = WordProblems(
    name="multiarith",
    files={
        "fit": DataFile(
            path="multiarith/train.jsonl",
            sha256="c2e01d583816a2249e65b56d463f0152bf762c42580024365f6e77d1f492f69b",
        ),
        "test": DataFile(
            path="multiarith/test.jsonl",
            sha256="b76ea7a3bf5889c5ea87e3aaf5276d99c4ff60a56d33ce7c3e37781a47160545",
        ),
    },
    worked=lambda item: worked_equation(item.meta["equation"], item.answer),
)
