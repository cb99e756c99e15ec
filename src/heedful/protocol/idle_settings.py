"""Refuse settings of a study file that have no effect: their author expects one."""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from heedful.errors import UsageError
from heedful.memory.bank import WITHOUT_THRESHOLD
from heedful.protocol.study import VALUE, WITHOUT_BANK, Study

FOR_BANKS = ("placement", "recall", "threshold", "limit", "heading")
FOR_EMBEDDED = ("weights", "context", "threads", "repeatable")
FOR_ENDPOINTS = ("model", "timeout")


def refuse_idle_settings(study: Study, file: Path) -> None:
    """Raise `UsageError` that names the first setting without effect."""
    refuse_idle_keys(_idle(study, tomllib.loads(file.read_text(encoding="utf-8"))), file)


def refuse_idle_keys(idle: Iterable[tuple[str, str]], file: Path) -> None:
    """Raise `UsageError` about the first of these keys, each with the reason why it has no effect."""
    for key, reason in idle:
        raise UsageError(f"{file}: {key} has no effect {reason}; leave it out")


def _idle(study: Study, tables: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The keys without effect, each with the reason."""
    for name, source in study.sources.items():
        given = tables["sources"][name]
        if source.kind in WITHOUT_BANK:
            yield from (
                (f"[sources.{name}] {key}", f"on {source.kind}, which has no bank")
                for key in FOR_BANKS
                if key in given
            )
        elif "threshold" in given and source.recall in WITHOUT_THRESHOLD:
            yield f"[sources.{name}] threshold", f"on recall by {source.recall}, which uses no similarity"
    yield from _idle_fit(study, tables.get("fit", {}))
    yield from idle_model_settings(tables.get("model", {}), study.model.url)


def idle_model_settings(given: Mapping[str, Any], url: str) -> Iterator[tuple[str, str]]:
    """The keys of [model] without effect, each with the reason."""
    if not url:
        yield from ((f"[model] {key}", "on the embedded model") for key in FOR_ENDPOINTS if key in given)
    elif url.startswith(("http:", "https:")):
        yield from ((f"[model] {key}", "on an endpoint") for key in FOR_EMBEDDED if key in given)


def _idle_fit(study: Study, given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if "confidence" in given and not study.fit.certifies:
        yield "[fit] confidence", "without a harm_limit or promise = 'no-loss'"
    if "prior" in given and VALUE not in study.fit.families:
        yield "[fit] prior", "on families without value"
