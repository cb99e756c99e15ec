"""What is asked and when an answer is right: one short file a benchmark, one line here."""

from collections.abc import Mapping
from types import MappingProxyType

from heedful.benchmarks.aime24 import AIME24
from heedful.benchmarks.arc_challenge import ARC_CHALLENGE
from heedful.benchmarks.arc_easy import ARC_EASY
from heedful.benchmarks.asdiv import ASDIV
from heedful.benchmarks.multiarith import MULTIARITH
from heedful.benchmarks.openbookqa import OPENBOOKQA
from heedful.benchmarks.svamp import SVAMP
from heedful.ports import Benchmark

BENCHMARKS: Mapping[str, Benchmark] = MappingProxyType(
    {
        benchmark.name: benchmark
        for benchmark in (SVAMP, ASDIV, MULTIARITH, OPENBOOKQA, ARC_EASY, ARC_CHALLENGE, AIME24)
    }
)

__all__ = ["BENCHMARKS"]
