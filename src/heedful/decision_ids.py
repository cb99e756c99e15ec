"""Ids of decision records: the second, then random digits.

Ids of one time are neighbours in the index of a store, so each write changes few of its pages, however many
decisions the store holds.
"""

import os
import secrets
import time
from collections import deque

TIME_DIGITS, RANDOM_DIGITS = 8, 16
"""Hexadecimal. 64 random bits keep the ids of one second distinct."""
DIGITS = TIME_DIGITS + RANDOM_DIGITS
DRAWN = 256
"""Random parts drawn at a time: a thread that asks the system for bytes lets another one run."""
_drawn: deque[str] = deque()


def new_decision_id() -> str:
    """A new id, in any thread."""
    return f"{int(time.time()):0{TIME_DIGITS}x}{_random_digits()}"


def _random_digits() -> str:
    try:
        return _drawn.pop()
    except IndexError:
        digits = secrets.token_hex(DRAWN * RANDOM_DIGITS // 2)
        first, *others = (digits[at : at + RANDOM_DIGITS] for at in range(0, len(digits), RANDOM_DIGITS))
        _drawn.extend(others)
        return first


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_drawn.clear)  # or parent and child would use the same digits
