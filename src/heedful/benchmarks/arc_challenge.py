"""ARC-Challenge: science questions that retrieval and co-occurrence got wrong (Clark et al. 2018)."""

from heedful.benchmarks.multiple_choice import MultipleChoice
from heedful.benchmarks.word_problems import DataFile

ARC_CHALLENGE = MultipleChoice(
    name="arc_challenge",
    files={
        "fit": (
            DataFile(
                path="arc_challenge/train.jsonl",
                sha256="48db0486127529f373c81106defb525a13e378bffefddc538e5b242e37288aa1",
            ),
            DataFile(
                path="arc_challenge/dev.jsonl",
                sha256="4d43dc3dae64e82f941eeab0789f6f343ff287228d25badd4df89020abb5c42a",
            ),
        ),
        "test": (
            DataFile(
                path="arc_challenge/test.jsonl",
                sha256="2c8cec48d314ab8b2c5987cece5139d19814eba7f5c76cab1e66e5258a8e3257",
            ),
        ),
    },
)
