"""The server's log: JSON lines, those of requests gathered for a moment."""

import asyncio
import io
import json
import logging

from heedful.serve.request_log import LINE_SECONDS, LineHandler


def test_lines_of_requests_are_written_together_and_soon() -> None:
    async def story() -> str:
        stream = io.StringIO()
        handler = LineHandler(stream)
        handler.add("one")
        handler.add("two")
        assert stream.getvalue() == ""
        await asyncio.sleep(2 * LINE_SECONDS)
        handler.close()
        return stream.getvalue()

    assert asyncio.run(story()) == "one\ntwo\n"


def test_nothing_that_waits_is_lost_when_logging_ends() -> None:
    async def story(handler: LineHandler) -> None:
        handler.add("last")

    stream = io.StringIO()
    handler = LineHandler(stream)
    asyncio.run(story(handler))
    assert stream.getvalue() == ""
    handler.flush()  # as `logging` does when the process ends
    handler.close()
    assert stream.getvalue() == "last\n"


def test_other_records_are_json_lines_too() -> None:
    stream = io.StringIO()
    handler = LineHandler(stream)
    handler.handle(logging.LogRecord("x", logging.WARNING, "f", 1, "reload of %s failed", ("keys",), None))
    handler.close()
    line = json.loads(stream.getvalue())
    assert (line["level"], line["event"]) == ("warning", "reload of keys failed")
