"""MiniLM in NumPy gives the vectors that sentence-transformers gives."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from heedful.errors import MissingError
from heedful.memory.embed import MAX_TOKENS, MiniLM

REFERENCE = json.loads(Path(__file__).with_name("minilm_reference.json").read_text(encoding="utf-8"))
TEXTS = REFERENCE["texts"]
SHARE_OF_OTHER_THREADS = """
import pathlib, sys, time
from heedful.memory.embed import MiniLM
model = MiniLM(pathlib.Path(sys.argv[1]))
texts = ["a short one", "river " * 60, "river " * 256]
process, thread = time.process_time(), time.thread_time()
model.embed(texts)
thread = time.thread_time() - thread
print((time.process_time() - process) / thread - 1)
"""


@pytest.fixture(scope="module")
def model(minilm: Path) -> MiniLM:
    return MiniLM(minilm)


@pytest.mark.engine
def test_similarities_are_those_of_sentence_transformers(model: MiniLM) -> None:
    vectors = model.embed(TEXTS).astype(np.float64)
    np.testing.assert_allclose(vectors @ vectors.T, REFERENCE["similarities"], rtol=0, atol=1e-5)


@pytest.mark.engine
def test_a_batch_gives_what_each_text_gives_alone_in_the_order_of_the_texts(model: MiniLM) -> None:
    texts = [*TEXTS, *TEXTS[:9]]
    alone = np.concatenate([model.embed([text]) for text in texts])
    np.testing.assert_allclose(model.embed(texts), alone, rtol=0, atol=1e-6)
    np.testing.assert_allclose(model.embed(texts[::-1]), alone[::-1], rtol=0, atol=1e-6)


@pytest.mark.engine
def test_several_threads_give_what_one_gives(model: MiniLM, minilm: Path) -> None:
    np.testing.assert_array_equal(MiniLM(minilm, threads=3).embed(TEXTS), model.embed(TEXTS))


@pytest.mark.engine
def test_embedding_starts_no_blas_threads(minilm: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SHARE_OF_OTHER_THREADS, str(minilm)], capture_output=True, text=True
    )
    assert float(done.stdout) < 0.2, done.stderr


@pytest.mark.engine
def test_rows_are_float32_of_unit_length(model: MiniLM) -> None:
    vectors = model.embed(TEXTS)
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(TEXTS), 384)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=0, atol=1e-6)


@pytest.mark.engine
def test_a_long_text_is_cut_at_256_tokens(model: MiniLM) -> None:
    room = MAX_TOKENS - 2  # [CLS] and [SEP] take two
    full, longer, shorter = (
        model.embed([" ".join(["river"] * words)])[0] for words in (room, room + 50, room - 1)
    )
    assert MAX_TOKENS == 256
    np.testing.assert_array_equal(longer, full)
    assert not np.array_equal(shorter, full)


@pytest.mark.engine
def test_no_texts_give_no_rows(model: MiniLM) -> None:
    assert model.embed([]).shape == (0, 384)


def test_a_missing_folder_says_how_to_get_the_weights(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match=r"model\.safetensors .*heedful weights pull all-minilm-l6-v2"):
        MiniLM(tmp_path / "nowhere")


@pytest.mark.parametrize("content", [b"", b"\x08" + b"\0" * 7 + b"{}      "])
def test_weights_of_something_else_say_how_to_get_the_right_ones(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.safetensors").write_bytes(content)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(MissingError, match="remove it, then run: heedful weights pull all-minilm-l6-v2"):
        MiniLM(tmp_path)
