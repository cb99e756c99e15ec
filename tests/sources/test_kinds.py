import pytest

from heedful import MemoryBank, MemorySource, RetrySource
from heedful.ports import Source
from heedful.sources import ReflectSource, VerifySource, VoteSource
from heedful.sources.kinds import SOURCES, SourceOptions

BANK = MemoryBank("b", (), method="bm25")


@pytest.mark.parametrize(
    ("kind", "options", "expected"),
    [
        (
            "memory",
            SourceOptions(bank=BANK, placement="system", limit=5, heading="Notes:"),
            MemorySource(bank=BANK, placement="system", limit=5, heading="Notes:"),
        ),
        ("retry", SourceOptions(seed=2), RetrySource()),
        ("retry", SourceOptions(seed=2, temperature=0.3), RetrySource(temperature=0.3, seed=2001)),
        ("reflect", SourceOptions(seed=2), ReflectSource()),
        ("vote", SourceOptions(seed=2), VoteSource(temperature=0.7, seed=2)),
        ("verify", SourceOptions(seed=2, temperature=0.3), VerifySource(temperature=0.3, seed=2)),
    ],
)
def test_a_kind_takes_of_its_options_what_it_needs(
    kind: str, options: SourceOptions, expected: Source
) -> None:
    assert SOURCES[kind](options) == expected
