"""OpenBookQA: elementary science that combines a fact with common knowledge (Mihaylov et al. 2018)."""

from heedful.benchmarks.multiple_choice import MultipleChoice
from heedful.benchmarks.word_problems import DataFile

OPENBOOKQA = MultipleChoice(
    name="openbookqa",
    files={
        "fit": (
            DataFile(
                path="openbookqa/train.jsonl",
                sha256="bc06d47e25d8127bef0f0098410a3b1c4e6dabeed9c7b64564d1ed10edecf5a2",
            ),
            DataFile(
                path="openbookqa/dev.jsonl",
                sha256="fe1e63b0146dacde47fc27897725444aec0fc5459a809e9ac9d1ad2c0024a790",
            ),
        ),
        "test": (
            DataFile(
                path="openbookqa/test.jsonl",
                sha256="920f9b45d997f41dd91393e84c1a9dffe815ff1d272d43d1159c286aea03b678",
            ),
        ),
    },
)
