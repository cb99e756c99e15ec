import asyncio
from typing import Any

import pytest

from heedful import MemoryBank, SqliteStore, StoredBank, UsageError, new_entry


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"kind": "wisdom"}, "kind is 'wisdom'; choose one of fact, rule"),
        ({"text": None}, "text is None; set it to text"),
        ({"text": "  "}, "the text is empty"),
        ({"kind": "exemplar"}, "an exemplar needs a response"),
        ({"response": 7}, "response is 7; set it to text"),
        ({"tags": "shipping"}, "tags are 'shipping'; give a list"),
        ({"tags": [1]}, r"tags are \[1\]; give a list"),
        ({"id": 5}, "id is 5; set it to text"),
    ],
)
def test_an_entry_of_the_wrong_type_is_refused(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        new_entry(**{"text": "Ship before noon.", "kind": "rule", **settings})


@pytest.mark.parametrize("name", ["", " ", "a\nb", "desk ", "a\0b", None, 7])
def test_a_name_that_cannot_be_shown_on_one_line_names_no_bank(store: SqliteStore, name: Any) -> None:
    for use in (
        lambda: MemoryBank(name, ()),
        lambda: StoredBank(store, name),
        lambda: asyncio.run(store.put(name, [])),
    ):
        with pytest.raises(UsageError, match="a bank cannot be named"):
            use()


@pytest.mark.parametrize("threshold", [float("nan"), "0.6", None])
def test_a_threshold_of_recall_is_a_number(threshold: Any) -> None:
    with pytest.raises(UsageError, match="set it to a number such as"):
        MemoryBank("desk", (), threshold=threshold)
