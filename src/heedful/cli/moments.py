"""Times and spans on the command line."""

import re
import time

from heedful.errors import UsageError

SPANS = {"h": 3600.0, "d": 86400.0, "w": 604800.0}


def span_of(text: str) -> float:
    """A span such as 12h, 30d or 8w, in seconds."""
    match = re.fullmatch(r"(\d+)([hdw])", text.strip())
    if match is None:
        raise UsageError(f"{text!r} is not a span of time; write it as 12h, 30d or 8w")
    return int(match[1]) * SPANS[match[2]]


def moment_of(text: str | None) -> float | None:
    """A time from an ISO date (UTC unless it names a zone), or from a span before now."""
    if text is None:
        return None
    if re.fullmatch(r"\d+[hdw]", text.strip()):
        return time.time() - span_of(text)
    from heedful.memory.entries import read_moment

    try:
        return read_moment(text)
    except UsageError as error:
        raise UsageError(f"{error}, or as a span before now such as 7d") from error
