"""Download files and resume interrupted downloads."""

import os
import queue
import re
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from heedful.errors import MissingError

CHUNK = 1 << 18
STALL_SECONDS = 30.0

# Called with the downloaded share of the file, from 0 to 1.
Report = Callable[[float], None]


class OriginError(MissingError):
    """An origin cannot provide a file; the next origin is tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A URL and the headers that its server needs."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)


def greet(link: Link, patience: float) -> None:
    """Raise `OriginError` unless the server answers in time.

    A socket's own timeout starts again for each address and does not cover the name lookup.
    """
    answer: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def ask() -> None:
        try:
            _open(link, Request(link.url, method="HEAD"), patience).close()
            answer.put(None)
        except (OSError, HTTPException) as error:
            answer.put(_reason(error))

    threading.Thread(target=ask, daemon=True).start()
    try:
        refusal = answer.get(timeout=patience)
    except queue.Empty:
        refusal = f"no answer within {patience:g} s"
    if refusal:
        raise OriginError(refusal)


def download(link: Link, target: Path, report: Report, size: int | None = None) -> None:
    """Download to `target`, resuming an earlier interrupted download.

    A broken connection is resumed as long as each attempt receives new bytes. If `size` is given, content of
    a different length is rejected before it is fetched.
    """
    part = target.with_name(f"{target.name}.part")
    while not target.exists():
        before = _size(part)
        try:
            _transfer(link, part, report, size)
            os.replace(part, target)
        except HTTPError as error:
            error.close()
            if error.code != 416 or not before:
                raise OriginError(f"{target.name}: {_reason(error)}") from error
            part.unlink()
        except (OSError, HTTPException) as error:
            if _size(part) <= before:
                raise OriginError(f"{target.name}: {_reason(error)}") from error


def _transfer(link: Link, part: Path, report: Report, size: int | None) -> None:
    start = _size(part)
    ranges = {"Range": f"bytes={start}-"} if start else {}
    with _open(link, Request(link.url, headers=ranges), STALL_SECONDS) as response:
        done, total = _extent(response, start)
        if size is not None and total not in (None, size):
            part.unlink(missing_ok=True)
            raise OriginError(f"{part.stem} has {total} bytes, expected {size}")
        # Unbuffered, so that received bytes survive a kill.
        with part.open("ab" if done else "wb", buffering=0) as out:
            while chunk := response.read1(CHUNK):
                out.write(chunk)
                done += len(chunk)
                report(done / total if total else 0.0)
    if total is not None and done != total:
        raise ConnectionError(f"connection lost after {done} of {total} bytes")


def _extent(response: HTTPResponse, start: int) -> tuple[int, int | None]:
    """The offset of the response (0 if the server ignores ranges) and the length of the whole file."""
    if response.status != 206:
        length = response.headers.get("Content-Length")
        return 0, int(length) if length else None
    match = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", response.headers.get("Content-Range", ""))
    if match is None or int(match[1]) != start:
        raise ConnectionError("the server returned a different range than requested")
    return start, int(match[2])


def _open(link: Link, request: Request, timeout: float) -> HTTPResponse:
    for name, value in link.headers.items():
        # A key for this server must not be sent to the target of a redirect.
        request.add_unredirected_header(name, value)
    context = ssl.create_default_context()
    if bundle := os.environ.get("PIP_CERT"):
        context.load_verify_locations(bundle)
    response: HTTPResponse = urlopen(request, timeout=timeout, context=context)
    return response


def _reason(error: Exception) -> str:
    return str(error.reason if type(error) is URLError else error) or type(error).__name__


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
