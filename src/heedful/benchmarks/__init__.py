"""Benchmarks: questions and their grading, one short file each and one line here."""

from heedful.plugins import Registry
from heedful.ports import Benchmark

BENCHMARKS: Registry[Benchmark] = Registry(
    "heedful.benchmarks",
    {
        name: f"heedful.benchmarks.{name}:{name.upper()}"
        for name in ("svamp", "asdiv", "multiarith", "openbookqa", "arc_easy", "arc_challenge", "aime24")
    },
    fits=lambda part: isinstance(part, Benchmark) and not isinstance(part, type),
)

__all__ = ["BENCHMARKS"]
