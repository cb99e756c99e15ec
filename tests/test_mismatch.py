"""Data of the wrong form are described without the decoder's own words."""

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
import pytest
from msgspec import Meta

from heedful.mismatch import mismatch


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    count: Annotated[int, Meta(ge=1, le=9)] = 1
    share: Annotated[float, Meta(gt=0, lt=1)] = 0.5
    kind: Literal["rule", "fact"] = "rule"
    names: Annotated[tuple[str, ...], Meta(min_length=2)] = ("a", "b")
    limit: int | None = None


class Whole(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    part: Part = Part()
    parts: Mapping[str, Part] = {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}", "the key `name` is missing"),
        ('{"name": "x", "nmae": 1}', "the key `nmae` is unknown"),
        ('{"name": "x", "part": {"size": 1}}', "the key `size` is unknown in `part`"),
        ('{"name": 1}', "`name` must be text, not a whole number"),
        ('{"name": "x", "part": {"count": 0}}', "`part.count` must be at least 1"),
        ('{"name": "x", "part": {"count": 10}}', "`part.count` must be at most 9"),
        ('{"name": "x", "part": {"count": 1.5}}', "`part.count` must be a whole number, not a number"),
        ('{"name": "x", "part": {"share": 0}}', "`part.share` must be above 0"),
        ('{"name": "x", "part": {"share": 1}}', "`part.share` must be below 1"),
        ('{"name": "x", "part": {"names": ["a"]}}', "`part.names` must have at least 2 items"),
        ('{"name": "x", "part": {"names": ["a", 1]}}', "`part.names[1]` must be text, not a whole number"),
        ('{"name": "x", "part": {"limit": "a"}}', "`part.limit` must be a whole number or null, not text"),
        ('{"name": "x", "parts": {"a": {"kind": "poem"}}}', "`parts.….kind` has the unknown value 'poem'"),
        ('{"name": "x", "part": []}', "`part` must be an object with keys, not a list"),
        ("[1]", "it must be an object with keys, not a list"),
        ('{"name": ', "the JSON ends too early"),
        ('{"name": x}', "not JSON at byte 9"),
    ],
)
def test_the_problem_is_said_in_plain_words(text: str, said: str) -> None:
    with pytest.raises(msgspec.MsgspecError) as caught:
        msgspec.json.decode(text, type=Whole)
    assert mismatch(caught.value) == said


def test_an_unfamiliar_error_is_passed_on_with_its_place() -> None:
    assert mismatch(ValueError("odd")) == "odd"
    assert mismatch(ValueError("odd - at `$.part`")) == "odd (at `part`)"
