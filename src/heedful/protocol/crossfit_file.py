"""The file crossfit.json of a study: the cross-fitted result, and what it was computed from."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields

import msgspec
import numpy as np

from heedful.errors import UsageError
from heedful.mismatch import mismatch
from heedful.protocol.cluster_file import SIDES, locked_clusters
from heedful.protocol.crossfit import (
    PROCEDURE,
    CrossfitArm,
    OnFold,
    crossfit,
    measure_rows,
    paired_difference,
)
from heedful.protocol.events import CROSSFITTED, events_of, log_event
from heedful.protocol.ledger import Ledger
from heedful.protocol.lock import Lock
from heedful.protocol.matched import COMPUTE, DIFFERENCES
from heedful.protocol.passes_digest import passes_digest
from heedful.protocol.study import FitSettings
from heedful.protocol.table import Table
from heedful.protocol.workflow import now
from heedful.protocol.workspace import Workspace, read_json, write_json
from heedful.stats.intervals import Interval
from heedful.types import Side, digest_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossfit:
    """The cross-fitted result of a study."""

    procedure: CrossfitArm
    """Whatever the study's settings choose in each fold."""
    families: Mapping[str, CrossfitArm]
    """Other choices from the same fits: without the harm limit, without estimators, with estimators."""
    folds: int
    rows: Mapping[Side, int]
    clusters: int
    sources: tuple[str, ...]
    made_of: str
    """Digest of the lock, the passes of both sides and the clusters."""
    differences: Mapping[str, Interval] = field(default_factory=dict)
    """Between value policies at equal calls, such as `memory-compute`; empty without samples."""


def crossfit_study(
    space: Workspace,
    lock: Lock,
    table: Table,
    settings: FitSettings,
    folds: int,
    on_fold: OnFold,
) -> Crossfit:
    """Cross-fit a tested study on the joined rows of both sides, and write crossfit.json."""
    banks = settings.sources or [
        name for name, kind in lock.kinds.items() if kind == "memory" and name in table.columns
    ]
    samples = lock.fit.matched[COMPUTE].policy.sources if lock.fit.matched else ()
    rows = crossfit(table, banks, settings, folds, on_fold, lock.benchmark, samples)
    arms = {name: measure_rows(table, found, _rng(lock)) for name, found in rows.items()}
    result = Crossfit(
        procedure=arms.pop(PROCEDURE),
        families=arms,
        folds=folds,
        rows={side: len(lock.splits[side]) * len(lock.seeds) for side in SIDES},
        clusters=len(set(table.clusters)),
        sources=tuple(banks),
        made_of=inputs_digest(space, lock),
        differences={
            f"{first}-{second}": paired_difference(table, rows[first], rows[second], _rng(lock))
            for first, second in DIFFERENCES
            if first in rows and second in rows
        },
    )
    if all(event.event != CROSSFITTED for event in events_of(space.events, lock.lock)):
        log_event(space.events, CROSSFITTED, lock.lock, now())
    whole = crossfit_fields(result)
    write_json(space.crossfit, {**whole, "digest": digest_of(whole)})
    return result


def _rng(lock: Lock) -> np.random.Generator:
    return np.random.default_rng(int(lock.lock[:16], 16))


def inputs_digest(space: Workspace, lock: Lock) -> str:
    """A digest of everything that a cross-fitted result depends on."""
    ledger, clusters = Ledger(space.ledger), locked_clusters(space, lock)
    return digest_of([lock.lock, *(passes_digest(ledger, side) for side in SIDES), clusters.digest])


def crossfit_fields(result: Crossfit) -> dict[str, object]:
    """The result as a JSON object, the figures of the procedure first."""
    whole = asdict(result)
    procedure = whole.pop("procedure")
    if not result.differences:  # as files of studies without samples have it
        del whole["differences"]
    return {**procedure, **whole}


def read_crossfit(space: Workspace) -> Crossfit | None:
    """The cross-fitted result of a study; None if there is none."""
    if not space.crossfit.exists():
        return None
    raw = read_json(space.crossfit, "")
    names = [field.name for field in fields(CrossfitArm)]
    digest = raw.pop("digest", None)  # early files have none
    if digest not in (None, digest_of(raw)):
        raise UsageError("crossfit.json was edited")
    try:
        return msgspec.convert({**raw, "procedure": {name: raw[name] for name in names}}, Crossfit)
    except (KeyError, msgspec.ValidationError) as error:
        raise UsageError(f"crossfit.json is not a cross-fitted result ({mismatch(error)})") from error


def usable_crossfit(space: Workspace, lock: Lock) -> tuple[Crossfit | None, str]:
    """The cross-fitted result, if it is as it was computed from these passes; else what is wrong with it."""
    try:
        found = read_crossfit(space)
    except UsageError as error:
        return None, str(error).replace(str(space.crossfit), "crossfit.json")
    if found is None or found.made_of == inputs_digest(space, lock):
        return found, ""
    return None, "crossfit.json was computed from other passes"
