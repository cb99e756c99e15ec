"""Record what sentence-transformers says, for test_embed.py to compare with.

Usage, in an environment of its own (it needs torch, which heedful does not):

    pip install torch sentence-transformers
    python tests/memory/record_minilm_reference.py FOLDER

FOLDER holds the whole of all-MiniLM-L6-v2 as published, with its modules.json and tokenizer files.
"""

import json
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
from sentence_transformers import SentenceTransformer

TEXTS = (
    "How many apples does Anna have left after she gives away three?",
    "Anna hands out three apples; what number of them remains with her?",
    "The derivative of sin(x) is cos(x).",
    "?",
    "",
    "3.14159 + 2,718 = 2721.14159; 50% of $1,200.00 is 600",
    "Ärger über naïve Größen: Żółć, Δx → ∞, 東京タワーは高い。 🙂",
    'WAIT... what?! (really?) -- "quoted", [bracketed], {braced} & e-mail@example.org;\ttab\nnew line',
    "heedful",
    "A train leaves the station at noon and travels north at sixty miles an hour. " * 5,
    "Rivers carry water from the mountains to the sea, and the sea gives it back as rain. " * 30,
    " ".join(f"step {number}: take {number * 7} away from {number * 11}." for number in range(1, 60)),
)
PACKAGES = ("sentence-transformers", "transformers", "tokenizers", "torch")


def main(folder: str) -> None:
    """Embed the texts one by one and write their similarities beside this file."""
    model = SentenceTransformer(folder, device="cpu")
    vectors = np.stack([model.encode(text, normalize_embeddings=True) for text in TEXTS]).astype(np.float64)
    record = {
        "how": "record_minilm_reference.py: each text encoded alone on the CPU in float32, "
        "similarities by dot product in float64, rounded to 8 digits.",
        "versions": {package: version(package) for package in PACKAGES},
        "max_seq_length": model.max_seq_length,
        "texts": TEXTS,
        "similarities": np.round(vectors @ vectors.T, 8).tolist(),
    }
    target = Path(__file__).with_name("minilm_reference.json")
    target.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
