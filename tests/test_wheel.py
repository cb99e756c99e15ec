"""The wheel without extras, installed into an environment of its own."""

import os
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

import pytest

from heedful.extras import EXTRAS
from tests.faulty import FaultyServer, answers, in_turn

ROOT = Path(__file__).parent.parent

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("wheel")]


@dataclass(frozen=True)
class Installed:
    """The command line of an environment that holds heedful without extras."""

    folder: Path

    def run(self, *words: str, program: str = "heedful") -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        settings = {**kept, "XDG_DATA_HOME": str(self.folder / "data")}
        command = [str(self.folder / "bin" / program), *words]
        return subprocess.run(command, env=settings, cwd=self.folder, capture_output=True, text=True)


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("core")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    venv.create(folder, with_pip=True)
    installed = Installed(folder)
    done = installed.run("install", "-q", *map(str, folder.glob("*.whl")), program="pip")
    assert done.returncode == 0, done.stderr
    return installed


def test_the_core_brings_no_package_of_an_extra_and_prints_its_help(core: Installed) -> None:
    listed = core.run("list", "--format", "freeze", program="pip").stdout.lower()
    packages = {line.partition("==")[0] for line in listed.splitlines()}
    assert packages.isdisjoint({*(one for extra in EXTRAS.values() for one in extra), "huggingface-hub"})
    done = core.run("--help")
    assert (done.returncode, "heedful" in done.stdout) == (0, True)


def test_the_core_asks_an_endpoint_and_recalls_by_words(core: Installed) -> None:
    notes = core.folder / "notes.txt"
    notes.write_text("The support desk of Brightwater opens at 7 am.\n")
    assert core.run("bank", "import", str(notes), "--bank", "b").returncode == 0
    probed = answers(
        "red, green and blue", -0.5
    )  # the first question to a new endpoint finds out what it accepts
    with FaultyServer(in_turn(probed, answers("at 9", -2.0), answers("at 7", -0.1))) as server:
        question = "When does the support desk open?"
        done = core.run("ask", question, "--bank", "b", "--recall", "bm25", "--url", server.url)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("at 7\nconsult")
    assert "Brightwater" in str(server.requests[2].body["messages"])
    assert "The support desk of Brightwater" in core.run("why", "last").stdout


def test_the_core_governs_a_bank_and_is_sound(core: Installed) -> None:
    notes = core.folder / "more.txt"
    notes.write_text("Brightwater ships parcels by tram.\n")
    assert core.run("bank", "import", str(notes), "--bank", "c").returncode == 0
    assert "no entry of bank c needs to be retired" in core.run("govern", "--bank", "c").stdout
    found = core.run("doctor")
    assert (found.returncode, found.stderr) == (0, "")


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("demo", "pip install 'heedful[embedded,study]'"),
        ("ask hello?", "pip install 'heedful[embedded]'"),
        ("weights pull smollm2-135m", "pip install 'heedful[embedded]'"),
        (f"study report {ROOT}/results/svamp", "pip install 'heedful[study]'"),
        (f"study run {ROOT}/studies/svamp.toml", "pip install 'heedful[study]'"),
    ],
)
def test_the_core_names_the_pip_line_of_what_it_lacks(core: Installed, command: str, line: str) -> None:
    done = core.run(*command.split())
    assert (done.returncode, done.stdout) == (3, ""), done.stderr
    assert line in done.stderr
    assert "Traceback" not in done.stderr
