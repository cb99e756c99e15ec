"""Texts that are too long for a page."""

from collections.abc import Sequence

from heedful.types import Message

MOST_SHOWN = 20_000
"""Characters of a text, and of a conversation, that a page shows."""


def shortened(text: str) -> str:
    """The beginning of a long text, and how much is missing."""
    missing = len(text) - MOST_SHOWN
    return text if missing <= 0 else f"{text[:MOST_SHOWN]}… [{missing:,} more characters]"


def newest_turns(turns: Sequence[Message]) -> Sequence[Message]:
    """The last messages that fit on a page, and at least one."""
    room = MOST_SHOWN
    for place, turn in enumerate(reversed(turns)):
        room -= len(turn.content)
        if room < 0:
            return turns[-max(place, 1) :]
    return turns
