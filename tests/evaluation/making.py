"""A study folder as the protocol leaves it, with made-up passes."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from heedful.protocol.events import log_event
from heedful.protocol.fit import fit
from heedful.protocol.fit_result import to_fields
from heedful.protocol.harm import fit_within_limit
from heedful.protocol.ledger import Ledger, Pass, written_row
from heedful.protocol.lock import PLANNED
from heedful.protocol.matched import fit_matched
from heedful.protocol.passes_digest import passes_digest
from heedful.protocol.study import THRESHOLD_FAMILIES, FitSettings
from heedful.protocol.table import read_table
from heedful.protocol.workspace import Workspace, read_json, write_json
from heedful.records import RecallRef
from heedful.types import Side, Usage, digest_of
from tests.making import ledger_row

KINDS = {"rule": "memory", "exemplar": "memory", "retry": "retry", "vote": "vote"}
SAID = "the model said this about seventeen purple apples"
"""In every recorded text; it must not reach a report."""
SETTINGS = FitSettings(families=THRESHOLD_FAMILIES, signals=("mean",), calibrated=False, folds=3)
STRENGTH = {
    "none": 0.0,
    "retry": 0.0,
    "rule": 0.35,
    "exemplar": 0.9,
    "vote": 0.15,
    "useless": -3.0,
    "sample": 0.0,
    "sample2": 0.0,
}
"""How much likelier a source makes a right answer (on the logit scale)."""


def make_study(
    folder: Path,
    *,
    n: int = 300,
    kinds: dict[str, str] = KINDS,
    settings: FitSettings = SETTINGS,
    seeds: Sequence[int] = (0,),
    openings: int = 1,
    notes: str = "",
    strength: dict[str, float] = STRENGTH,
    signals: bool = True,
) -> Workspace:
    """A study that was recorded, fitted, locked and tested."""
    space = Workspace(folder)
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        row
        for side in ("fit", "test")
        for seed in seeds
        for row in made_passes(side, seed, n, kinds, strength, signals)
    ]
    space.ledger.write_bytes(b"".join(written_row(row) for row in rows))
    write_lock(space, kinds, settings, n, seeds, notes)
    for opening in range(openings):
        log_event(
            space.events, "opened the test side", lock_of(space), f"2026-03-0{opening + 2}T10:00:00+00:00"
        )
    return space


def lock_of(space: Workspace) -> str:
    return str(read_json(space.lock, "")["lock"])


def write_lock(
    space: Workspace, kinds: dict[str, str], settings: FitSettings, n: int, seeds: Sequence[int], notes: str
) -> dict[str, Any]:
    ledger = Ledger(space.ledger)
    table = read_table(ledger, "fit", names("fit", n), seeds)
    banks = [name for name, kind in kinds.items() if kind == "memory"]
    found = fit(table, banks, settings)
    if settings.certifies:
        found = replace(fit_within_limit(table, banks, settings), unlimited=found)
    samples = [name for name in kinds if name.startswith("sample")]
    fitted = to_fields(replace(found, matched=fit_matched(table, banks, samples, settings, "made-up")))
    write_json(space.fit, fitted)
    content = {
        "study": "apples & pears",
        "benchmark": "made-up",
        "locked_at": "2026-03-01T09:00:00+00:00",
        "policy": fitted["policy"],
        "fit": {key: value for key, value in fitted.items() if key != "policy"},
        "model": {"name": "/home/someone/weights/tiny_model.gguf", "endpoint": "http://127.0.0.1:8080"},
        "sources": {name: {"kind": kind} for name, kind in kinds.items()},
        "kinds": kinds,
        "splits": {"fit": names("fit", n), "test": names("test", n), "pool": []},
        "dropped": {bank: [] for bank in banks},
        "seeds": list(seeds),
        "statistics": list(PLANNED),
        "notes": notes,
        "digests": {
            **{f"bank:{bank}": digest_of(bank) for bank in banks},
            "data:test": digest_of("test"),
            "model": digest_of("model"),
            "fit passes": passes_digest(ledger, "fit"),
            "code": digest_of("code"),
        },
    }
    lock = {**content, "lock": digest_of(content)}
    write_json(space.lock, lock)
    log_event(space.events, "locked", str(lock["lock"]), str(content["locked_at"]))
    return lock


def names(side: Side, n: int) -> list[str]:
    return [f"{side}-{at:03d}" for at in range(n)]


def made_passes(
    side: Side, seed: int, n: int, kinds: dict[str, str], strength: dict[str, float], signals: bool
) -> list[Pass]:
    """Passes whose confidence says something about being right; `retry` repeats the first pass."""
    rng = np.random.default_rng([seed, side == "test"])
    skill = rng.normal(0.2, 1.2, n)
    rows: list[Pass] = []
    for source in ("none", *kinds):
        for at, task in enumerate(names(side, n)):
            chance = 1 / (1 + np.exp(-(skill[at] + strength.get(source, 0.0))))
            right = bool(rng.random() < chance)
            mean = float(-np.exp(-0.5 * skill[at] - 0.8 * right + rng.normal(0, 0.5)))
            if source == "retry":
                right, mean = rows[at].right, rows[at].record.signals.get("mean", 0.0)
            rows.append(made_pass(side, seed, source, task, right, mean, signals, kinds.get(source, ""), at))
    return rows


def made_pass(
    side: Side,
    seed: int,
    source: str,
    task: str,
    right: bool,
    mean: float,
    signals: bool,
    kind: str,
    at: int,
) -> Pass:
    silent = kind == "memory" and at % 25 == 0  # now and then nothing is recalled
    if silent:
        return ledger_row(source, task, side=side, seed=seed, status="nothing")
    recalled = [f"{source}-{(at * 7) % 40}", f"{source}-{at % 9}"] if kind == "memory" else []
    return ledger_row(
        source,
        task,
        side=side,
        seed=seed,
        right=right,
        text=SAID,
        answer="a" if right else "b",
        signals=measured(mean) if signals else {},
        guards={"format": "" if at % 31 else "no answer", "valid": ""},
        recalls=tuple(RecallRef(entry=e, version="v", score=0.5) for e in dict.fromkeys(recalled)),
        calls=3 if source == "vote" else 1,
        usage=Usage(prompt_tokens=100 + 50 * len(recalled), completion_tokens=20),
        seconds=0.5 + 0.1 * len(recalled),
    )


def measured(mean: float) -> dict[str, float]:
    return {
        "mean": mean,
        "sum": 20 * mean,
        "first": mean / 2,
        "min": 3 * mean,
        "median": mean * 0.9,
        "answer_mean": 1.2 * mean,
        "p10": 2 * mean,
        "margin": -1 / (mean - 0.1),
    }
