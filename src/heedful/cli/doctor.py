"""`heedful doctor`: check the installation."""

import asyncio
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import typer

from heedful.cli.options import Json, ModelName, Store, Url, refuse_idle
from heedful.cli.output import counted, print_json, result
from heedful.errors import HeedfulError
from heedful.extras import EXTRAS, IMPORTED_AS, absent, pip_line

CORE = ("aiohttp", "bm25s", "jsonschema", "msgspec", "numpy")


def doctor(
    context: typer.Context,
    url: Url = None,
    model: ModelName = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Check Python, packages, weights, the store and the endpoint; exit 1 if something must be fixed."""
    if url is None:
        refuse_idle(context, ("model",), "without --url")
    checks: dict[str, Callable[[], str]] = {
        "python": _python,
        "packages": lambda: _versions(CORE, "--force-reinstall heedful"),
        **{extra: partial(_extra, extra) for extra in EXTRAS},
        "plug-ins": _plugins,
        "weights": _weights,
        "store": lambda: _store(store),
        "key": _key,
    }
    if url is not None:
        checks["endpoint"] = lambda: _endpoint(url, model or "")
    findings = [_finding(name, check) for name, check in checks.items()]
    if json:
        print_json({"ok": all(f["ok"] for f in findings), "checks": findings})
    else:
        for finding in findings:
            mark = "ok  " if finding["ok"] else "FIX "
            result().print(f"{mark} {finding['name']:<10} {finding['detail']}", markup=False, soft_wrap=True)
    if not all(finding["ok"] for finding in findings):
        raise typer.Exit(1)


def _finding(name: str, check: Callable[[], str]) -> dict[str, Any]:
    try:
        return {"name": name, "ok": True, "detail": check()}
    except HeedfulError as error:
        return {"name": name, "ok": False, "detail": str(error)}


def _python() -> str:
    return f"{sys.version.split()[0]} on {sys.platform}"


def _extra(extra: str) -> str:
    if absent(extra):
        return f"not installed; {pip_line(extra)} installs {', '.join(EXTRAS[extra])}"
    return _versions(EXTRAS[extra], f"--force-reinstall 'heedful[{extra}]'")


def _versions(packages: Sequence[str], reinstall: str) -> str:
    from importlib.metadata import version

    broken = []
    for name in packages:
        try:
            importlib.import_module(IMPORTED_AS.get(name, name))
        except (ImportError, OSError) as error:
            broken.append(f"{name} ({error})")
    if broken:
        raise HeedfulError(f"cannot import {', '.join(broken)}: pip install {reinstall}")
    return ", ".join(f"{name} {version(name)}" for name in packages)


def _weights() -> str:
    from heedful.models import weights
    from heedful.models.catalogue import CATALOGUE

    present = [name for name in CATALOGUE if weights.status(name).state == "present"]
    for name in present:
        weights.verify(name)
    needed = [name for name in ("smollm2-135m", "all-minilm-l6-v2") if name not in present]
    absent = f"; pulled at first use: {', '.join(needed)}" if needed else ""
    return f"{', '.join(present) + ' present, sha256 verified' if present else 'none present'}{absent}"


def _store(place: str | None) -> str:
    from heedful.memory.storage import default_place, exists, open_storage

    if not exists(place or default_place()):
        return f"{place or default_place()} does not exist yet; the first entry or answer creates it"
    opened = open_storage(place)
    condition = asyncio.run(opened.condition())
    asyncio.run(opened.ready())
    banks = asyncio.run(opened.banks())
    entries = counted(sum(banks.values()), "entry", "entries")
    return f"{opened.location}: {counted(len(banks), 'bank')}, {entries}, {condition}"


def _key() -> str:
    return (
        "OPENAI_API_KEY is set"
        if os.environ.get("OPENAI_API_KEY")
        else "OPENAI_API_KEY is not set; local models need no key"
    )


def _plugins() -> str:
    from heedful.benchmarks import BENCHMARKS
    from heedful.environments.making import ENVIRONMENTS
    from heedful.memory.bank import RECALL_METHODS
    from heedful.memory.formats import FORMATS
    from heedful.models.schemes import MODELS
    from heedful.passes import GUARDS
    from heedful.plugins import Registry
    from heedful.sources.kinds import SOURCES
    from heedful.stages.confidence import SIGNALS

    registries: list[Registry[Any]] = [
        *(BENCHMARKS, ENVIRONMENTS, FORMATS, GUARDS, MODELS, RECALL_METHODS, SIGNALS, SOURCES)
    ]
    if broken := [problem for registry in registries for problem in registry.broken()]:
        raise HeedfulError(f"cannot use {'; '.join(broken)}: fix or uninstall the package")
    added = [f"{name} ({registry.group})" for registry in registries for name in registry.added()]
    return ", ".join(added) or "none"


def _endpoint(url: str, name: str) -> str:
    from heedful.models.schemes import ModelOptions, make_model
    from heedful.types import Message, Prompt

    model = make_model(ModelOptions(url=url, model=name, timeout=20.0, retries=0))
    prompt = Prompt(messages=(Message(role="user", content="Say hello."),), max_tokens=4)
    decode = asyncio.run(model.decode(prompt))
    return f"{url} answers in {decode.seconds:.2f} s, {'with' if decode.tokens else 'without'} log-probs"
