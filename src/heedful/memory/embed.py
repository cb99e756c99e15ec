"""Sentence embeddings with all-MiniLM-L6-v2, computed with NumPy alone (docs/design/003)."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from math import pi, sqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heedful.errors import MissingError
from heedful.extras import importing
from heedful.memory.index import Floats

with importing("embedded"):
    from safetensors import SafetensorError
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

WIDTH, HEADS, LAYERS = 384, 12, 6
MAX_TOKENS = 256
BATCH_TOKENS = 512
SLAB, DEPTH, TILE = 32, 128, 64
"""Rows, inputs and outputs of one product: above 2**18 multiplications OpenBLAS starts spinning threads."""
_HOW_TO_PULL = "run: heedful weights pull all-minilm-l6-v2"


class MiniLM:
    """Embeds texts as sentence-transformers does with all-MiniLM-L6-v2.

    A single text is embedded in the calling thread; many texts are distributed over `threads` threads.
    """

    def __init__(self, folder: Path, *, threads: int = 1) -> None:
        for file in (folder / "model.safetensors", folder / "tokenizer.json"):
            if not file.is_file():
                raise MissingError(f"{file} is missing: {_HOW_TO_PULL}")
        self._threads = threads
        self._network = _read_network(folder / "model.safetensors")
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        # The file's own settings pad and truncate every text to 128 tokens.
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MAX_TOKENS)

    def embed(self, texts: Sequence[str]) -> Floats:
        """One row of unit length per text, in the order of the texts.

        A repeated text is computed once: on some processors its place in a batch moves the last digits.
        """
        rows = {text: row for row, text in enumerate(dict.fromkeys(texts))}
        return self._embed_distinct(list(rows))[[rows[text] for text in texts]]

    def _embed_distinct(self, texts: list[str]) -> Floats:
        tokens = [encoding.ids for encoding in self._tokenizer.encode_batch(texts)]
        vectors = np.empty((len(tokens), WIDTH), np.float32)

        def fill(rows: list[int]) -> None:
            vectors[rows] = _encode(self._network, np.array([tokens[row] for row in rows]))

        batches = list(_batches([len(ids) for ids in tokens]))
        if self._threads == 1 or len(batches) == 1:
            for rows in batches:
                fill(rows)
        else:
            with ThreadPoolExecutor(self._threads) as pool:
                list(pool.map(fill, batches))
        return vectors


@dataclass(frozen=True, slots=True)
class _Affine:
    """A weight and a bias: of a normalisation, or of a matrix product whose weight is tiled."""

    weight: Floats
    bias: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layer:
    queries_keys_values: _Affine
    attended: _Affine
    attended_norm: _Affine
    widened: _Affine
    narrowed: _Affine
    narrowed_norm: _Affine


@dataclass(frozen=True, slots=True, kw_only=True)
class _Network:
    words: Floats
    positions: Floats
    norm: _Affine
    layers: tuple[_Layer, ...]


def _read_network(file: Path) -> _Network:
    try:
        tensors = load_file(file)
        return _Network(
            words=tensors["embeddings.word_embeddings.weight"],
            positions=tensors["embeddings.position_embeddings.weight"]
            + tensors["embeddings.token_type_embeddings.weight"][0],
            norm=_affine(tensors, "embeddings.LayerNorm"),
            layers=tuple(_layer(tensors, f"encoder.layer.{number}") for number in range(LAYERS)),
        )
    except (SafetensorError, KeyError) as error:
        raise MissingError(
            f"{file} does not contain all-MiniLM-L6-v2 ({error}): remove it, then {_HOW_TO_PULL}"
        ) from error


def _layer(tensors: Mapping[str, Floats], name: str) -> _Layer:
    query, key, value = (_affine(tensors, f"{name}.attention.self.{x}") for x in ("query", "key", "value"))
    scale = np.float32(1 / sqrt(WIDTH // HEADS))
    scaled = _Affine(query.weight * scale, query.bias * scale)
    return _Layer(
        queries_keys_values=_tiled(scaled, key, value),
        attended=_tiled(_affine(tensors, f"{name}.attention.output.dense")),
        attended_norm=_affine(tensors, f"{name}.attention.output.LayerNorm"),
        widened=_tiled(_affine(tensors, f"{name}.intermediate.dense")),
        narrowed=_tiled(_affine(tensors, f"{name}.output.dense")),
        narrowed_norm=_affine(tensors, f"{name}.output.LayerNorm"),
    )


def _affine(tensors: Mapping[str, Floats], name: str) -> _Affine:
    return _Affine(tensors[f"{name}.weight"], tensors[f"{name}.bias"])


def _tiled(*products: _Affine) -> _Affine:
    """The products side by side, their weights (out × in) cut into tiles of DEPTH in × TILE out."""
    weight = np.concatenate([product.weight for product in products])
    tiles = weight.reshape(len(weight) // TILE, TILE, -1, DEPTH).transpose(2, 0, 3, 1)
    return _Affine(np.ascontiguousarray(tiles), np.concatenate([product.bias for product in products]))


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Group rows of equal length, which need no padding and no mask."""
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    for length, group in groupby(order, key=lengths.__getitem__):
        rows, step = list(group), max(1, BATCH_TOKENS // length)
        yield from (rows[start : start + step] for start in range(0, len(rows), step))


def _slabs(rows: int) -> Iterator[slice]:
    return (slice(start, start + SLAB) for start in range(0, rows, SLAB))


def _encode(network: _Network, ids: NDArray[np.int64]) -> Floats:
    """The mean of the last hidden states of each row of `ids`, normalised to unit length."""
    texts, length = ids.shape
    states = (network.words[ids] + network.positions[:length]).reshape(-1, WIDTH)
    _normalise(states, network.norm)
    for layer in network.layers:
        attended = _attend(_apply(states, layer.queries_keys_values), texts)
        attended = _apply(attended, layer.attended)
        attended += states
        _normalise(attended, layer.attended_norm)
        widened = _apply(attended, layer.widened)
        for slab in _slabs(len(widened)):
            _gelu(widened[slab])
        states = _apply(widened, layer.narrowed)
        states += attended
        _normalise(states, layer.narrowed_norm)
    means: Floats = states.reshape(texts, length, WIDTH).mean(axis=1)
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    return means


def _attend(queries_keys_values: Floats, texts: int) -> Floats:
    """Softmax attention of every head; the queries are already scaled."""
    parts = queries_keys_values.reshape(texts, -1, 3, HEADS, WIDTH // HEADS)
    queries, keys, values = parts.transpose(2, 0, 3, 1, 4)
    mixed = np.empty((texts, parts.shape[1], HEADS, WIDTH // HEADS), np.float32)
    for slab in _slabs(parts.shape[1]):
        scores = queries[:, :, slab] @ keys.swapaxes(-1, -2)
        scores -= scores.max(axis=-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=-1, keepdims=True)
        np.matmul(scores, values, out=mixed[:, slab].swapaxes(1, 2))
    return mixed.reshape(-1, WIDTH)


def _apply(states: Floats, affine: _Affine) -> Floats:
    """`states` times the weight plus the bias, in products small enough to stay in the calling thread."""
    product = np.empty((len(states), len(affine.bias)), np.float32)
    bias = affine.bias.reshape(-1, 1, TILE)
    for slab in _slabs(len(states)):
        slices = states[slab].reshape(-1, len(affine.weight), 1, DEPTH).transpose(1, 2, 0, 3)
        columns = product[slab].reshape(-1, len(bias), TILE).swapaxes(0, 1)
        np.add((slices @ affine.weight).sum(axis=0), bias, out=columns)
    return product


def _normalise(states: Floats, affine: _Affine) -> None:
    """Layer normalisation in place."""
    states -= states.mean(axis=1, keepdims=True)
    variances = np.einsum("ij,ij->i", states, states)[:, None] / np.float32(WIDTH)
    states /= np.sqrt(variances + np.float32(1e-12))
    states *= affine.weight
    states += affine.bias


def _gelu(x: Floats) -> None:
    """x Φ(x) in place, with Φ by Abramowitz & Stegun 26.2.17 (error below 7.5e-8).

    For x < 0 the formula gives 1 − Φ(|x|), so both signs are max(x, 0) − |x| (1 − Φ(|x|)).
    """
    size = np.abs(x)
    t = np.reciprocal(np.float32(0.2316419) * size + np.float32(1))
    tail = np.float32(1.330274429) * t
    for coefficient in (-1.821255978, 1.781477937, -0.356563782, 0.319381530):
        tail += np.float32(coefficient)
        tail *= t
    np.multiply(size, size, out=t)
    t *= np.float32(-0.5)
    tail *= np.exp(t, out=t)
    size *= np.float32(1 / sqrt(2 * pi))
    tail *= size
    np.maximum(x, 0, out=x)
    x -= tail
