from typing import Any

import pytest

from heedful import MemoryBank, MemorySource, UsageError


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"placement": "behind"}, "placement.* is 'behind'; choose one of auto, after"),
        ({"limit": 0}, "limit.* is 0; set it to a whole number of at least 1"),
        ({"limit": "3"}, "limit.* is '3'"),
        ({"heading": None}, "heading.* is None; set it to text"),
        ({"bank": "desk"}, "bank.* is 'desk'; give a bank"),
    ],
)
def test_a_memory_source_that_cannot_work_is_refused(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        MemorySource(**{"bank": MemoryBank("desk", ()), **settings})
