"""Who may import whom."""

import ast
from pathlib import Path

import heedful

ROOT = Path(heedful.__file__).parent
CORE = {"types", "errors"}
MAY_IMPORT = {
    "types": set(),
    "errors": set(),
    "records": {"types"},
    "plugins": set(),
    "ports": {"types", "errors", "records"},
    "arms": {"types"},
    "stages": {"types", "errors", "plugins"},
    "sources": {"types", "errors", "ports", "stages", "plugins"},
    "passes": {"types", "ports", "records", "stages", "plugins"},
    "decisions": {"types", "errors", "records", "passes"},
    "control": {"types", "errors", "ports", "stages", "sources", "passes", "decisions"},
    "credit": {"types", "errors", "ports", "records", "stages", "sources", "passes"},
    "models": {"types", "errors", "ports", "stages", "plugins"},
    "memory": {"types", "errors", "ports", "records", "decisions", "models", "plugins"},
    "testing": {"types", "errors", "ports", "records", "stages", "memory"},
    "demo": {"types", "errors", "ports", "arms", "control", "decisions", "memory", "benchmarks", "protocol"},
    "stats": {"errors"},
    "governance": {"types", "errors", "memory"},
    "benchmarks": {"types", "errors", "ports", "memory", "plugins"},
    "protocol": {
        *("types", "errors", "ports", "records", "stages", "sources", "passes", "decisions"),
        *("memory", "models", "benchmarks", "stats"),
    },
    "experiments": {
        *("types", "errors", "ports", "arms", "decisions", "sources", "memory"),
        *("benchmarks", "stats", "governance", "protocol"),
    },
    "evaluation": {"types", "errors", "records", "stages", "stats", "protocol"},
    "report": {"types", "decisions", "stats", "protocol", "evaluation", "experiments"},
    "cli": None,
    "__init__": None,
    "__main__": None,
}
HEAVY = {"numpy", "scipy", "aiohttp", "xllamacpp", "bm25s", "tokenizers", "safetensors", "huggingface_hub"}
ARRAYS_ARE_THEIR_TRADE = (
    *("memory/ranking", "memory/dense", "memory/lexical", "memory/vectors", "memory/embed"),
    *("stats/", "governance/", "protocol/", "experiments/", "evaluation/", "report/"),
)
"""Modules that are themselves imported only where they are used."""


def modules():
    for path in sorted(ROOT.rglob("*.py")):
        yield path, path.relative_to(ROOT), ast.parse(path.read_text())


def imported(tree: ast.AST):
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (
                [f"{node.module}.{alias.name}" for alias in node.names]
                if node.module == "heedful"
                else [node.module]
            )
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_imports_point_in_one_direction():
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


def test_heavy_packages_are_imported_where_they_are_used_not_at_start():
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


def test_all_lists_what_is_exported():
    exported = {name for name in vars(heedful) if not name.startswith("_") and name in heedful.__all__}
    assert exported == set(heedful.__all__)
    assert sorted(heedful.__all__) == heedful.__all__


def test_only_fit_goes_through_the_grid_of_policies():
    goers = {
        relative.as_posix()
        for _, relative, tree in modules()
        for node in ast.walk(tree)
        if (isinstance(node, ast.Name) and node.id == "recipes")
        or (isinstance(node, ast.Attribute) and node.attr == "sweep")
    }
    assert goers == {"protocol/fit.py"}
