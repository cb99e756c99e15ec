"""The speed of embedding many short entries, next to onnxruntime's on the same cores.

usage: python benchmarks/embedding.py [--texts 10000] [--threads 2] [--rounds 3] [--json]

Needs `pip install onnxruntime onnx` and MiniLM's weights (`heedful weights pull all-minilm-l6-v2`). The
graph for onnxruntime is built here from the same weights. Both get the same batches of texts of equal length
(for onnxruntime larger ones, which it prefers), in alternating rounds, so that load on the machine affects
both alike. The ratios are medians over the rounds; the limit is 3. On a busy machine the ratio of CPU time
is the more reliable one, with --threads 1: waiting threads of onnxruntime spin.
"""

import argparse
import json
import random
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from heedful.memory.embed import HEADS, LAYERS, WIDTH, MiniLM
from heedful.models import weights
from heedful.models.embedded import usable_cores

LIMIT = 3.0
BATCH = 64
WORDS = [
    *("parcel", "depot", "street", "van", "invoice", "refund", "customer", "returns", "before", "after"),
    *("noon", "friday", "island", "bridge", "tram", "signature", "manager", "kitchen", "bicycle", "frame"),
    *("titanium", "price", "euro", "opens", "closes", "early", "weekend", "night", "shelf", "opposite"),
]


def short_entries(count: int) -> list[str]:
    """Sentences of 5 to 30 words."""
    rng = random.Random(1)
    return [" ".join(rng.choices(WORDS, k=rng.randint(5, 30))) + f" {n}." for n in range(count)]


class Graph:
    """An ONNX graph under construction; every operation returns the name of its output."""

    def __init__(self, tensors: dict[str, np.ndarray]) -> None:
        self.tensors = tensors
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, onnx.TensorProto] = {}

    def weight(self, name: str, *, turned: bool = False) -> str:
        value = self.tensors[name]
        self.constants[name] = numpy_helper.from_array(
            np.ascontiguousarray(value.T if turned else value), name
        )
        return name

    def constant(self, value: object, kind: type = np.int64) -> str:
        name = f"constant{len(self.constants)}"
        self.constants[name] = numpy_helper.from_array(np.array(value, kind), name)
        return name

    def op(self, kind: str, *inputs: str, **settings: object) -> str:
        name = f"node{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **settings))
        return name

    def dense(self, states: str, name: str) -> str:
        product = self.op("MatMul", states, self.weight(f"{name}.weight", turned=True))
        return self.op("Add", product, self.weight(f"{name}.bias"))

    def norm(self, states: str, name: str) -> str:
        scale, bias = self.weight(f"{name}.weight"), self.weight(f"{name}.bias")
        return self.op("LayerNormalization", states, scale, bias, axis=-1, epsilon=1e-12)

    def heads(self, states: str) -> str:
        split = self.op("Reshape", states, self.constant([0, 0, HEADS, WIDTH // HEADS]))
        return self.op("Transpose", split, perm=[0, 2, 1, 3])

    def attention(self, states: str, name: str) -> str:
        query, key, value = (
            self.heads(self.dense(states, f"{name}.self.{part}")) for part in ("query", "key", "value")
        )
        scores = self.op("MatMul", query, self.op("Transpose", key, perm=[0, 1, 3, 2]))
        scaled = self.op("Mul", scores, self.constant((WIDTH // HEADS) ** -0.5, np.float32))
        mixed = self.op("MatMul", self.op("Softmax", scaled, axis=-1), value)
        joined = self.op("Transpose", mixed, perm=[0, 2, 1, 3])
        joined = self.op("Reshape", joined, self.constant([0, 0, WIDTH]))
        return self.dense(joined, f"{name}.output.dense")


def onnx_graph(folder: Path) -> bytes:
    """MiniLM without padding and mask: token ids and positions to the mean of the last states."""
    graph = Graph(load_file(folder / "model.safetensors"))
    words = graph.op("Gather", graph.weight("embeddings.word_embeddings.weight"), "ids")
    places = graph.op("Gather", graph.weight("embeddings.position_embeddings.weight"), "positions")
    kinds = graph.op("Gather", graph.weight("embeddings.token_type_embeddings.weight"), graph.constant(0))
    states = graph.norm(graph.op("Add", graph.op("Add", words, places), kinds), "embeddings.LayerNorm")
    for number in range(LAYERS):
        layer = f"encoder.layer.{number}"
        attended = graph.op("Add", graph.attention(states, f"{layer}.attention"), states)
        attended = graph.norm(attended, f"{layer}.attention.output.LayerNorm")
        wide = graph.op("Gelu", graph.dense(attended, f"{layer}.intermediate.dense"))
        narrow = graph.op("Add", graph.dense(wide, f"{layer}.output.dense"), attended)
        states = graph.norm(narrow, f"{layer}.output.LayerNorm")
    graph.nodes.append(helper.make_node("ReduceMean", [states, graph.constant([1])], ["means"], keepdims=0))
    inputs = [
        helper.make_tensor_value_info("ids", TensorProto.INT64, ["texts", "length"]),
        helper.make_tensor_value_info("positions", TensorProto.INT64, ["length"]),
    ]
    outputs = [helper.make_tensor_value_info("means", TensorProto.FLOAT, ["texts", WIDTH])]
    made = helper.make_graph(graph.nodes, "minilm", inputs, outputs, list(graph.constants.values()))
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    return model.SerializeToString()


class OnnxMiniLM:
    """The same embeddings with onnxruntime."""

    def __init__(self, folder: Path, threads: int) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self._session = onnxruntime.InferenceSession(onnx_graph(folder), options, ["CPUExecutionProvider"])
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(256)

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        tokens = [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))]
        by_length = defaultdict(list)
        for row, ids in enumerate(tokens):
            by_length[len(ids)].append(row)
        vectors = np.empty((len(tokens), WIDTH), np.float32)
        for length, rows in by_length.items():
            for start in range(0, len(rows), BATCH):
                part = rows[start : start + BATCH]
                given = {"ids": np.array([tokens[row] for row in part]), "positions": np.arange(length)}
                [means] = self._session.run(["means"], given)
                vectors[part] = means / np.linalg.norm(means, axis=1, keepdims=True)
        return vectors


def timed(model: MiniLM | OnnxMiniLM, texts: Sequence[str]) -> np.ndarray:
    """Seconds on the clock and of CPU time."""
    start = np.array([time.perf_counter(), time.process_time()])
    model.embed(texts)
    return np.array([time.perf_counter(), time.process_time()]) - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--texts", type=int, default=10_000)
    parser.add_argument("--threads", type=int, default=usable_cores())
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    folder, texts = weights.path("all-minilm-l6-v2"), short_entries(given.texts)
    ours, theirs = MiniLM(folder, threads=given.threads), OnnxMiniLM(folder, given.threads)
    off = float(np.abs(ours.embed(texts[:100]) - theirs.embed(texts[:100])).max())
    seconds = np.array([[timed(ours, texts), timed(theirs, texts)] for _ in range(given.rounds)])
    numpy_seconds, onnx_seconds = np.median(seconds[:, :, 0], axis=0).tolist()
    ratio, cpu_ratio = np.median(seconds[:, 0] / seconds[:, 1], axis=0).tolist()
    figures = {
        "texts": given.texts,
        "threads": given.threads,
        "numpy_seconds": numpy_seconds,
        "onnxruntime_seconds": onnx_seconds,
        "ratio": ratio,
        "cpu_ratio": cpu_ratio,
        "limit": LIMIT,
        "largest_difference": off,
    }
    if given.json:
        print(json.dumps(figures, indent=2))
        return
    for name, value in figures.items():
        print(f"{name:<20} {value:.3g}" if isinstance(value, float) else f"{name:<20} {value:,}")


if __name__ == "__main__":
    main()
