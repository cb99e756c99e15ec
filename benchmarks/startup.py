"""How long `import heedful` and `heedful --help` take, on an idle machine.

usage: python benchmarks/startup.py [--json]
"""

import argparse
import json
import statistics
import subprocess
import sys
import time

COMMANDS = {
    "python": [sys.executable, "-c", "pass"],
    "import_heedful": [sys.executable, "-c", "import heedful"],
    "heedful_help": [sys.executable, "-m", "heedful", "--help"],
}
LIMITS = {"import_heedful": 0.25, "heedful_help": 0.5}
ROUNDS = 11


def seconds(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    as_json = parser.parse_args().json
    medians = {
        name: statistics.median(seconds(command) for _ in range(ROUNDS)) for name, command in COMMANDS.items()
    }
    figures = {
        "import_heedful_seconds": medians["import_heedful"],
        "heedful_help_seconds": medians["heedful_help"],
        "python_seconds": medians["python"],
        "import_to_python_ratio": medians["import_heedful"] / medians["python"],
        "rounds": ROUNDS,
    }
    if as_json:
        print(json.dumps(figures, indent=2))
        return
    for name, limit in LIMITS.items():
        print(f"{name:<16} {medians[name]:.3f} s (median of {ROUNDS}; at most {limit} s wanted)")
    print(f"{'bare python':<16} {medians['python']:.3f} s")


if __name__ == "__main__":
    main()
