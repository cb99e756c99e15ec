"""The code that decides a study's result: a digest of each module, and the commit it is from."""

import ast
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import resolve_name
from pathlib import Path

from heedful.ports import Benchmark
from heedful.types import digest_of

PACKAGE = Path(__file__).parents[1]
DECIDING = (
    "stages/*.py",
    "sources/*.py",
    *(f"memory/{name}.py" for name in ("bank", "index", "lexical", "dense", "rerank", "embed", "vectors")),
    "passes.py",
    *(f"protocol/{name}.py" for name in ("record", "table", "replay", "value_replay")),
)
"""Recalls, prompts, answers, confidence, decisions; the benchmark in use adds its tasks and grading."""
BENCHMARKS = "heedful.benchmarks"


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeState:
    """The code that made a lock."""

    modules: Mapping[str, str]
    """A digest of each module that decides, by its path in the package."""
    commit: str | None = None
    """The git commit, if heedful runs from a checkout."""
    dirty: bool | None = None
    """Whether the package differed from that commit."""

    @property
    def checkout(self) -> str:
        """The commit in words; empty if heedful does not run from a checkout."""
        return (self.commit or "") + (", with changes" if self.dirty else "")

    def changed(self, modules: Mapping[str, str]) -> list[str]:
        """The modules whose digests differ."""
        names = {**self.modules, **modules}
        return [name for name in names if self.modules.get(name) != modules.get(name)]


def code_state(benchmark: Benchmark) -> CodeState:
    """The deciding code as it is now, with the commit it comes from."""
    return CodeState(modules=module_digests(benchmark), commit=_git("rev-parse", "HEAD"), dirty=_dirty())


def module_digests(benchmark: Benchmark, package: Path = PACKAGE) -> dict[str, str]:
    """A digest of each module that decides, by its place in the package."""
    files = [file for name in DECIDING for file in sorted(package.glob(name))]
    modules = {file.relative_to(package).as_posix(): tree_digest(file) for file in files}
    for name, file in sorted(_benchmark_files(benchmark)):
        if file.is_relative_to(PACKAGE):
            name = file.relative_to(PACKAGE).as_posix()
            file = package / name
        modules[name] = tree_digest(file)
    return modules


def tree_digest(file: Path) -> str:
    """Digest the behaviour of a module: its syntax tree without docstrings, comments, layout and imports.

    Imports say where a name comes from, not how it is used, so a helper may move.
    """
    return _source_digest(file.read_bytes())


@cache
def _source_digest(source: bytes) -> str:
    return digest_of(_plain(ast.parse(source)))


def _plain(part: object) -> object:
    """A syntax tree as JSON, the same under every version of Python: empty fields are left out."""
    if isinstance(part, ast.AST):
        fields = {name: value for name, value in ast.iter_fields(part) if value is not None and value != []}
        return [type(part).__name__, {name: _plain(value) for name, value in fields.items()}]
    if isinstance(part, list):
        return [_plain(one) for one in part if not _says_nothing(one)]
    return repr(part)


def _says_nothing(node: object) -> bool:
    docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return docstring or isinstance(node, ast.Import | ast.ImportFrom)


def _benchmark_files(benchmark: Benchmark) -> Iterator[tuple[str, Path]]:
    """The module of a benchmark, the module of its class, and the benchmark modules these import."""
    waiting, known = [_module_of(benchmark), type(benchmark).__module__], set[str]()
    while waiting:
        name = waiting.pop()
        source = None if name in known else getattr(import_module(name), "__file__", None)
        known.add(name)
        if source is not None and source.endswith(".py"):
            file = Path(source)
            yield name, file
            waiting += _imported_benchmarks(file, name.rpartition(".")[0])


def _module_of(benchmark: Benchmark) -> str:
    """The module that holds the benchmark, ours or a plug-in's; else that of its class."""
    holders = [
        name
        for name, module in list(sys.modules.items())
        if not hasattr(module, "__path__")
        and any(value is benchmark for value in list(getattr(module, "__dict__", {}).values()))
    ]
    ours = (name for name in sorted(holders) if name.startswith(f"{BENCHMARKS}."))
    return next(ours, min(holders, default=type(benchmark).__module__))


def _imported_benchmarks(file: Path, package: str) -> list[str]:
    imports = (node for node in ast.walk(ast.parse(file.read_bytes())) if isinstance(node, ast.ImportFrom))
    names = [resolve_name("." * node.level + (node.module or ""), package) for node in imports]
    return [name for name in names if name.startswith(f"{BENCHMARKS}.")]


def _dirty() -> bool | None:
    changes = _git("status", "--porcelain", "--untracked-files=no", ".")
    return None if changes is None else bool(changes)


def _git(*command: str) -> str | None:
    """The output of git in the checkout that contains the package; None outside a checkout."""
    for arguments in (("ls-files", "--error-unmatch", "__init__.py"), command):
        try:
            done = subprocess.run(
                ["git", "-C", str(PACKAGE), *arguments],
                capture_output=True,
                text=True,
                timeout=30,
                check=True,
            )
        except (OSError, subprocess.SubprocessError):
            return None
    return done.stdout.strip()
