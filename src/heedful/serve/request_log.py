"""One line of JSON per request, without any text of prompts or answers."""

import asyncio
import logging
import sys
import time
from collections.abc import Mapping
from typing import TextIO

import msgspec

from heedful.serve.reply import Reply

LOG = logging.getLogger("heedful.serve")
NAMED = ("decision", "route", "verdict", "bypass")
"""Headers of ours that the log repeats."""
LINE_SECONDS = 0.1
"""How long the line of a request may wait."""


class JsonLines(logging.Formatter):
    """A log record as a JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        about = record.args if isinstance(record.args, Mapping) else {}
        line: dict[str, object] = {"at": round(record.created, 3), "level": record.levelname.lower()}
        line |= {"event": record.msg, **about} if about else {"event": record.getMessage()}
        if record.exc_info and record.exc_info[0] is not None:
            line |= {"error": record.exc_info[0].__name__, "trace": _trace(record)}
        return msgspec.json.encode(line).decode()


def _trace(record: logging.LogRecord) -> list[str]:
    """Where an error arose; its message may quote a prompt, so it is left out."""
    frames, trace = [], record.exc_info[2] if record.exc_info else None
    while trace is not None:
        code = trace.tb_frame.f_code
        frames.append(f"{code.co_filename.rpartition('heedful/')[2]}:{trace.tb_lineno} {code.co_name}")
        trace = trace.tb_next
    return frames


class LineHandler(logging.StreamHandler[TextIO]):
    """Writes JSON lines; those of requests together, a few times a second."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self.setFormatter(JsonLines())
        self._waiting: list[str] = []

    def add(self, line: str) -> None:
        """Write a line soon. A log record for each request would cost more than its routing, and a write
        would let a thread that stores decisions take the interpreter."""
        assert self.lock is not None, "only a closed handler has none"
        with self.lock:
            if not self._waiting:
                asyncio.get_running_loop().call_later(LINE_SECONDS, self.flush)
            self._waiting.append(line)

    def flush(self) -> None:
        assert self.lock is not None, "only a closed handler has none"
        with self.lock:
            lines, self._waiting = self._waiting, []
            if lines:
                self.stream.write("".join(f"{line}\n" for line in lines))
            super().flush()


def log_to_stderr(level: int) -> None:
    """Write the server's log to stderr; the lines that wait are written when the process ends."""
    handler = LineHandler(sys.stderr)
    for log in (LOG, logging.getLogger("uvicorn.error")):
        log.handlers, log.propagate = [handler], False
    LOG.setLevel(level)


def log_request(path: str, reply: Reply, started: float, caller: str) -> None:
    """Log a finished request; its headers name decision, route, verdict and bypass."""
    level = logging.WARNING if reply.failure else logging.INFO
    if not LOG.handlers or not LOG.isEnabledFor(level):
        return
    ms = round((time.perf_counter() - started) * 1000, 1)
    line: dict[str, object] = {"at": round(time.time(), 3), "event": "request"}
    line |= {"level": "warning" if reply.failure else "info", "path": path, "status": reply.status, "ms": ms}
    if reply.failure:
        line["failed"] = reply.failure
    if caller:
        line["caller"] = caller
    for name in NAMED:
        if (value := reply.headers.get(f"x-heedful-{name}")) is not None:
            line[name] = value
    for handler in LOG.handlers:
        if isinstance(handler, LineHandler):
            handler.add(msgspec.json.encode(line).decode())
