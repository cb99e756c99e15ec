"""The time of `import heedful` and `heedful --help`, and the size of the core without extras.

usage: python benchmarks/startup.py [--json] [--no-size]

Run it on an idle machine. To measure the size, it installs the core into a new environment, which takes
half a minute and needs a package registry.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
import venv
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parent.parent
COMMANDS = {
    "python": [sys.executable, "-c", "pass"],
    "import_heedful": [sys.executable, "-c", "import heedful"],
    "heedful_help": [sys.executable, "-m", "heedful", "--help"],
}
LIMITS = {"import_heedful": 0.15, "heedful_help": 0.3}
CORE_LIMIT = 130
ROUNDS = 11


def seconds(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start


def core_megabytes() -> float:
    """MB of disk blocks (1 MB = 2**20) that heedful without extras adds to an empty environment."""
    with TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        empty = blocks(Path(folder))
        pip = [str(Path(folder, "bin", "pip")), "install", "-q", "--disable-pip-version-check", str(ROOT)]
        subprocess.run(pip, check=True, stderr=subprocess.DEVNULL)
        return (blocks(Path(folder)) - empty) * 512 / 2**20


def blocks(folder: Path) -> int:
    return sum(path.lstat().st_blocks for path in folder.rglob("*"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--no-size", action="store_true", help="do not install the core to measure its size")
    arguments = parser.parse_args()
    medians = {
        name: statistics.median(seconds(command) for _ in range(ROUNDS)) for name, command in COMMANDS.items()
    }
    core = None if arguments.no_size else core_megabytes()
    if arguments.json:
        timed = {f"{name}_seconds": medians[name] for name in COMMANDS}
        ratio = medians["import_heedful"] / medians["python"]
        print(
            json.dumps(
                {**timed, "import_to_python_ratio": ratio, "core_megabytes": core, "rounds": ROUNDS}, indent=2
            )
        )
        return
    for name, limit in LIMITS.items():
        print(f"{name:<16} {medians[name]:.3f} s (median of {ROUNDS}; limit {limit} s)")
    print(f"{'bare python':<16} {medians['python']:.3f} s")
    if core is not None:
        print(f"{'core on disk':<16} {core:.0f} MB without extras (limit {CORE_LIMIT} MB)")


if __name__ == "__main__":
    main()
