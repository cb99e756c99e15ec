"""Bytes from a server into a file, going on where a killed or cut-off download left off."""

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

# Told which share of the file is here, from 0 to 1.
Report = Callable[[float], None]


class OriginError(MissingError):
    """One origin could not give a file; the next one is tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """An address and the headers its server wants."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)


def greet(link: Link, patience: float) -> None:
    """Raise unless the server answers in time.

    A socket's own timeout counts for each address anew and leaves out the name look-up.
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
    """Download to `target`, going on from what an earlier, killed or cut-off download left.

    A cut connection is taken up again as long as each attempt brings new bytes; content of another
    length than `size`, if that is pinned, is refused before it is fetched.
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
            raise OriginError(f"{part.stem} would be {total} bytes, expected {size}")
        # Unbuffered, so that every byte received outlives a kill.
        with part.open("ab" if done else "wb", buffering=0) as out:
            while chunk := response.read1(CHUNK):
                out.write(chunk)
                done += len(chunk)
                report(done / total if total else 0.0)
    if total is not None and done != total:
        raise ConnectionError(f"cut off after {done} of {total} bytes")


def _extent(response: HTTPResponse, start: int) -> tuple[int, int | None]:
    """Where the answer begins (0 from a server that ignores ranges) and how long the whole is."""
    if response.status != 206:
        length = response.headers.get("Content-Length")
        return 0, int(length) if length else None
    match = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", response.headers.get("Content-Range", ""))
    if match is None or int(match[1]) != start:
        raise ConnectionError("the server answered with another range than asked for")
    return start, int(match[2])


def _open(link: Link, request: Request, timeout: float) -> HTTPResponse:
    for name, value in link.headers.items():
        # A key for this server must not follow a redirect to another.
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
