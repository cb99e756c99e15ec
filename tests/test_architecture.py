"""Who may import whom."""

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import heedful
from heedful.extras import EXTRAS, IMPORTED_AS

ROOT = Path(heedful.__file__).parent
CORE = {"types", "errors"}
MAY_IMPORT = {
    "types": {"errors", "limits"},
    "errors": set(),
    "limits": {"errors"},
    "mismatch": set(),
    "records": {"types"},
    "plugins": {"errors"},
    "extras": {"errors"},
    "ports": {"types", "errors", "records"},
    "arms": {"types"},
    "priors": {"types", "errors"},
    "stages": {"types", "errors", "plugins"},
    "sources": {"types", "errors", "limits", "ports", "stages", "plugins"},
    "passes": {"types", "ports", "records", "stages", "plugins"},
    "decisions": {"types", "errors", "mismatch", "records", "passes"},
    "decision_ids": set(),
    "control": {
        *("types", "errors", "limits", "ports", "stages", "sources", "passes", "decisions", "protocol"),
        *("decision_ids", "rollout", "observing", "time_limit"),
    },
    "observing": {"ports"},
    "time_limit": set(),
    "telemetry": {"types", "ports", "extras"},
    "rollout": {"types", "errors", "limits", "records", "feedback", "stages", "stats"},
    "adapters": {"types", "errors", "ports", "models", "control", "protocol"},
    "episode": {"types", "stages", "control"},
    "feedback": {"types", "errors", "records", "stages"},
    "trials": {"records", "feedback", "stages", "stats"},
    "credit": {"types", "errors", "ports", "records", "stages", "sources", "passes"},
    "explain": {"types", "errors", "ports", "records", "stages", "sources", "decisions", "credit"},
    "models": {"types", "errors", "limits", "extras", "ports", "stages", "plugins"},
    "memory": {
        *("types", "errors", "limits", "mismatch", "extras", "ports", "records", "decisions", "feedback"),
        *("models", "plugins"),
    },
    "testing": {"types", "errors", "ports", "records", "stages", "memory"},
    "demo": {"types", "errors", "ports", "arms", "control", "decisions", "memory", "benchmarks", "protocol"},
    "stats": {"errors", "extras"},
    "governance": {"types", "errors", "ports", "memory", "credit"},
    "benchmarks": {"types", "errors", "mismatch", "ports", "memory", "plugins"},
    "protocol": {
        *("types", "errors", "extras", "ports", "records", "stages", "sources", "passes", "decisions"),
        *("mismatch", "memory", "models", "benchmarks", "stats", "priors"),
    },
    "experiments": {
        *("types", "errors", "ports", "records", "arms", "decisions", "sources", "memory", "models"),
        *("benchmarks", "stats", "governance", "protocol"),
    },
    "evaluation": {"types", "errors", "records", "stages", "stats", "protocol"},
    "report": {"types", "extras", "decisions", "stats", "protocol", "evaluation", "experiments"},
    "environments": {"types", "errors", "extras", "ports", "plugins"},
    "agents": {
        *("types", "errors", "ports", "records", "arms", "stages", "sources", "decisions", "control"),
        *("episode", "memory", "models", "benchmarks", "stats", "environments", "protocol", "report"),
    },
    "dashboard": {
        *("types", "errors", "extras", "ports", "records", "decisions", "feedback", "explain", "stages"),
        *("sources", "stats", "trials", "governance", "protocol", "report"),
    },
    "serve": {
        *("types", "errors", "extras", "ports", "records", "stages", "decisions", "control", "feedback"),
        *("models", "memory", "benchmarks", "dashboard", "limits", "sources", "time_limit", "decision_ids"),
    },
    "cli": None,
    "__init__": None,
    "__main__": None,
}
HEAVY = {"numpy", "scipy", "aiohttp", "xllamacpp", "bm25s", "tokenizers", "safetensors", "huggingface_hub"}
ARRAYS_ARE_THEIR_TRADE = (
    *("memory/index", "memory/dense", "memory/lexical", "memory/vectors", "memory/embed"),
    *("memory/vector_file", "memory/columns", "memory/hnsw", "memory/nearest", "memory/large"),
    *("memory/postgres/vectors", "memory/postgres/recall"),
    *("agents/agent_fit", "agents/agent_metrics"),
    *("stats/", "governance/", "protocol/", "experiments/", "evaluation/", "report/"),
)
"""Modules that are themselves imported only where they are used."""


def modules() -> Iterator[tuple[Path, Path, ast.Module]]:
    for path in sorted(ROOT.rglob("*.py")):
        yield path, path.relative_to(ROOT), ast.parse(path.read_text())


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (
                [f"{node.module}.{alias.name}" for alias in node.names]
                if node.module == "heedful"
                else [node.module]
            )
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_imports_point_in_one_direction() -> None:
    wrong = []
    for _, relative, tree in modules():
        room = relative.parts[0].removesuffix(".py")
        allowed = MAY_IMPORT[room]
        for name in imported(tree):
            parts = name.split(".")
            if parts[0] != "heedful" or allowed is None or len(parts) < 2:
                continue
            if parts[1] != room and parts[1] not in allowed:
                wrong.append(f"{relative} imports {name}")
    assert wrong == []


def test_heavy_packages_are_imported_where_they_are_used_not_at_start() -> None:
    wrong = []
    for _, relative, tree in modules():
        for node in tree.body:
            names = (
                imported(ast.Module(body=[node], type_ignores=[]))
                if isinstance(node, ast.Import | ast.ImportFrom)
                else ()
            )
            wrong += [
                f"{relative}: {n}"
                for n in names
                if n.split(".")[0] in HEAVY and not relative.as_posix().startswith(ARRAYS_ARE_THEIR_TRADE)
            ]
    assert wrong == []


def roots(tree: ast.AST) -> list[str]:
    return [name.split(".")[0] for name in imported(tree)]


def blocks_of_an_extra(tree: ast.AST) -> Iterator[str]:
    """The extra that a `with importing(extra)` names, once for each import inside it."""
    for node in ast.walk(tree):
        match node:
            case ast.With(items=[ast.withitem(ast.Call(ast.Name("importing"), [ast.Constant(str(extra))]))]):
                yield from (extra for _ in roots(node))


def import_names(extra: str) -> set[str]:
    return {IMPORTED_AS.get(package, package) for package in EXTRAS[extra]}


def for_type_checkers(tree: ast.Module) -> Iterator[str]:
    """The extra of each import that never runs."""
    for node in tree.body:
        match node:
            case ast.If(test=ast.Name("TYPE_CHECKING")):
                yield from (extra for extra in EXTRAS for root in roots(node) if root in import_names(extra))


def test_a_package_of_an_extra_is_imported_where_its_absence_is_explained() -> None:
    extra_of = {
        IMPORTED_AS.get(package, package): extra for extra, packages in EXTRAS.items() for package in packages
    }
    wrong = []
    for _, relative, tree in modules():
        explained = Counter(blocks_of_an_extra(tree)) + Counter(for_type_checkers(tree))
        needed = Counter(extra_of[root] for root in roots(tree) if root in extra_of)
        wrong += [relative] if needed != explained else []
    assert wrong == []


def test_all_lists_what_is_exported() -> None:
    tree = ast.parse((ROOT / "__init__.py").read_text())
    typed = [node for node in tree.body if isinstance(node, ast.If) and isinstance(node.test, ast.Name)]
    exported = {
        alias.name for node in typed[0].body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert exported == set(heedful.__all__) == set(dir(heedful))
    assert sorted(heedful.__all__) == heedful.__all__


@pytest.mark.parametrize("name", heedful.__all__)
def test_an_export_is_there_under_its_own_name(name: str) -> None:
    value = getattr(heedful, name)
    assert value.__name__ in (name, f"heedful.{name}")
    assert value is getattr(heedful, name)


def test_what_is_not_exported_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = heedful.Nothing  # type: ignore[attr-defined]


def test_importing_heedful_loads_nothing_of_it() -> None:
    code = "import heedful, sys; print(*(name for name in sys.modules if name.startswith('heedful.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


def test_only_fit_goes_through_the_grid_of_policies() -> None:
    goers = {
        relative.as_posix()
        for _, relative, tree in modules()
        for node in ast.walk(tree)
        if (isinstance(node, ast.Name) and node.id == "recipes")
        or (isinstance(node, ast.Attribute) and node.attr == "sweep")
    }
    assert goers == {"protocol/fit.py"}


CROSS_CUTTING = {
    "test_acceptance_property.py": "whatever happens, an answer is the first pass's or an accepted one",
    "test_architecture.py": "who may import whom",
    "test_conformance.py": "every adapter against the public suites",
    "test_conversation.py": "tasks with a conversation and tools, from prompt to record",
    "test_crash.py": "kill -9 at any moment",
    "test_deploy.py": "compose file, image and manifests under deploy/",
    "test_docs.py": "what the docs show and say",
    "test_fail_open.py": "whatever fails, the first answer stands",
    "test_injection.py": "text from memory cannot steer control",
    "test_patience.py": "a slow second pass, and passes that run at once",
    "test_reproduce.py": "the tables of the pages",
    "test_results.py": "the published results",
    "test_shared_store.py": "two servers on one Postgres, one of them killed",
    "test_static.py": "ruff and mypy",
    "test_value_control.py": "value policies from the live loop to the record",
    "test_wheel.py": "the package as it is installed",
    "agents/test_real_episodes.py": "episodes of every world with the smoke model",
    "dashboard/test_browser.py": "every page in a real browser",
    "benchmarks/test_graders.py": "how all benchmarks read and grade",
    "cli/test_circle.py": "from the first shadow to a canary, as docs/circle.md shows it",
    "cli/test_store_url.py": "every command with a store in Postgres",
    "cli/test_missing_extras.py": "commands without their extras",
    "governance/test_retirement_simulation.py": "how often the rules err, and how soon they act",
    "memory/postgres/test_roles.py": "the roles of docs/postgres.md",
    "serve/test_postgres.py": "servers on one Postgres, and its absence",
    "memory/test_formats.py": "all file formats",
    "serve/test_fuzz.py": "odd bodies, as benchmarks/fuzz.py sends them",
    "serve/test_soak.py": "a server under load whose parts fail, as in benchmarks/soak.py",
    "sources/test_critics.py": "the two sources that criticise an answer",
    "stats/test_bootstrap_coverage.py": "how often an interval holds the truth",
    "stats/test_risk_simulation.py": "how often a certificate holds",
}
"""Tests that belong to no single module, and what they are about."""


def test_tests_mirror_the_package() -> None:
    tests = Path(__file__).parent
    named = {file.relative_to(tests).as_posix() for file in tests.rglob("test_*.py")}
    of_package = {relative.as_posix() for _, relative, _ in modules()}
    strays = {
        name
        for name in named - set(CROSS_CUTTING)
        if (Path(name).parent / Path(name).name.removeprefix("test_")).as_posix() not in of_package
    }
    rooms = {module.split("/")[0] for module in of_package if "/" in module}
    assert strays == set()
    assert {name for name in CROSS_CUTTING if name not in named} == set()
    assert {room for room in rooms if not any(name.startswith(f"{room}/") for name in named)} == set()
