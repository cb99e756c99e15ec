"""AIME 2024: thirty competition problems with integer answers; a test side only."""

from heedful.benchmarks.word_problems import DataFile, WordProblems

AIME24 = WordProblems(
    name="aime24",
    files={
        "test": DataFile(
            path="aime24/test.jsonl",
            sha256="01a876ef99272b322c192aaaa45ba2c06e33b04d50529d6afe0daf0af6702f5a",
        )
    },
    worked=lambda item: None,
    instructions="Solve the problem step by step. End with the integer result, like this: Answer: 204",
    max_tokens=1024,
)
