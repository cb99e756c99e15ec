"""The steps of a study: record, fit, lock, test."""

from collections.abc import Sequence, Set
from dataclasses import replace
from datetime import UTC, datetime

import msgspec

from heedful.errors import LockError, UsageError
from heedful.models.fleet import slots_of
from heedful.ports import Model
from heedful.protocol.asked_signals import named_signals, plan_signals, usable_settings
from heedful.protocol.cluster_file import locked_clusters, study_clusters
from heedful.protocol.clusters import Clusters
from heedful.protocol.endpoint_probe import probe
from heedful.protocol.events import (
    CHOSE,
    LOCKED,
    OPENED,
    RECORDED,
    WENT_ON,
    events_of,
    harm_choices,
    log_event,
)
from heedful.protocol.fit import fit
from heedful.protocol.fit_result import FitResult, read_fit, to_fields
from heedful.protocol.harm import certifying_tasks, fit_within_limit
from heedful.protocol.ledger import Ledger
from heedful.protocol.line_file import has_lines
from heedful.protocol.lock import Lock, make_lock, read_lock, refuse_moved, write_lock
from heedful.protocol.matched import fit_matched, samples_of
from heedful.protocol.openings import is_recorded, refuse_changed_test_passes
from heedful.protocol.passes_digest import passes_digest, side_rows
from heedful.protocol.prior import study_prior
from heedful.protocol.record import OnProgress, Recorder, Recording, outdated
from heedful.protocol.recording_speed import SpeedNotes
from heedful.protocol.setup import StudySetup
from heedful.protocol.study import settings_fields
from heedful.protocol.table import Table, read_table
from heedful.protocol.workspace import Workspace, open_workspace, tasks_looked_at, write_json
from heedful.types import Side, digest_of


async def record(
    space: Workspace,
    setup: StudySetup,
    model: Model,
    side: Side,
    on_progress: OnProgress,
    *,
    retry_failed: bool = False,
) -> Ledger:
    """Decode the missing passes of a side; only `test` may ask for the test side."""
    if side == "fit" and space.lock.exists():
        return await locked_ledger(space, setup, model, retry_failed)
    plan = await plan_signals(setup, model)
    study_clusters(space, setup)
    recording = recording_of(setup, side, retry_failed=retry_failed, signals=plan.signals)
    return await fill(space, setup, model, recording, on_progress, earlier_ledger(space, setup))


async def locked_ledger(space: Workspace, setup: StudySetup, model: Model, retry_failed: bool) -> Ledger:
    """The ledger of a locked study, if its fit side is complete: to record more would break the lock."""
    ledger = Ledger(space.ledger)
    changed = await outdated(recording_of(setup, "fit"), ledger, model.traits.fingerprint)
    failed = [row for row in ledger.passes.values() if (row.side, row.record.status) == ("fit", "failed")]
    if changed or (retry_failed and failed):
        raise LockError(
            f"the study in {space.folder} is locked, so its fit side cannot change: run heedful study test "
            "to continue with the test side, or use --out with another folder for a new study"
        )
    return ledger


async def fill(
    space: Workspace,
    setup: StudySetup,
    model: Model,
    recording: Recording,
    on_progress: OnProgress,
    parent: Ledger | None = None,
) -> Ledger:
    """Complete a recording in the study's ledger, copying passes that the parent ledger holds."""
    with Ledger(space.ledger, parent) as ledger, SpeedNotes(space.speed, model, on_progress) as tell:
        await Recorder(recording, model, ledger, tell).run(slots_of(model, setup.study.model.slots))
    return ledger


def recording_of(
    setup: StudySetup, side: Side, *, retry_failed: bool = False, signals: Sequence[str] | None = None
) -> Recording:
    """Every pass of a side; `signals` that ask questions of their own: by default those the study names."""
    return Recording(
        side=side,
        items=setup.splits.asked(side),
        sources={seed: setup.sources(side, seed) for seed in setup.study.seeds},
        benchmark=setup.benchmark,
        retry_failed=retry_failed,
        signals=named_signals(setup.study.fit) if signals is None else tuple(signals),
        measured=frozenset(("none", *setup.banks)),
    )


def earlier_ledger(space: Workspace, setup: StudySetup) -> Ledger | None:
    """The ledger of the study to reuse, or the one next to a bank that `heedful study refine` made."""
    if setup.study.reuse:
        reused = open_workspace(setup.folder / setup.study.reuse, None).ledger
        if not has_lines(reused):
            raise UsageError(f"the study to reuse has no ledger {reused}: correct reuse in the study file")
        return Ledger(reused)
    for source in setup.study.sources.values():
        beside = (space.folder / source.bank_file).parent / "ledger.jsonl"
        if source.bank_file and beside != space.ledger and has_lines(beside):
            return Ledger(beside)
    return None


def fit_study(space: Workspace, setup: StudySetup) -> FitResult:
    """Choose a policy on the fit side, and write it to fit.json with how it was chosen."""
    table = side_table(space, setup, "fit")
    refuse_stale(table, setup)
    banks = policy_banks(setup, table)
    settings = usable_settings(setup.study.fit, table)
    prior = study_prior(table, banks, settings, setup.benchmark.name)
    result = fit(table, banks, settings, prior)
    if settings.certifies:
        refuse_looked_at(space, certifying_tasks(table, settings))
        limited = fit_within_limit(table, banks, settings, prior, looked_at=tasks_looked_at(space))
        result = replace(limited, unlimited=result)
    samples = samples_of(setup.study.sources)
    result = replace(result, matched=fit_matched(table, banks, samples, settings, setup.benchmark.name))
    if settings is not setup.study.fit:
        told = f"The passes have no log-probs; confidence is measured by {', '.join(settings.signals)}."
        result = replace(result, notes=(*result.notes, told))
    result = replace(result, passes=passes_digest(Ledger(space.ledger), "fit"))
    result = replace(result, made_of=fit_digest(setup, result, study_clusters(space, setup)))
    if settings.certifies and result.made_of not in harm_choices(space.events):
        log_event(space.events, CHOSE, "", now(), made_of=result.made_of)
    write_json(space.fit, to_fields(result))
    return result


def refuse_looked_at(space: Workspace, certifying: Set[str]) -> None:
    """Refuse to certify a harm limit on rows that were used to refine a bank."""
    if shared := certifying & tasks_looked_at(space):
        raise LockError(
            f"a bank was refined on {len(shared)} of the {len(certifying)} rows that would certify the harm "
            "limit: set harm_limit, [fit] seed and [split] before heedful study refine, in a new folder"
        )


def fit_digest(setup: StudySetup, fitted: FitResult, clusters: Clusters) -> str:
    """A digest of a fit result and of everything it depends on besides the passes."""
    study = setup.study
    return digest_of(
        {
            "found": to_fields(replace(fitted, made_of="")),
            "settings": settings_fields(study.fit),
            "banks": {name: msgspec.to_builtins(study.sources[name]) for name in setup.banks},
            "rows": [item.id for item in setup.splits.fit],
            "seeds": study.seeds,
            "clusters": clusters.digest,
        }
    )


def policy_banks(setup: StudySetup, table: Table) -> list[str]:
    """The sources that a policy may use: those that the study names, or every bank that is also tested."""
    sources = setup.study.sources
    if setup.study.fit.sources is not None:
        return [name for name in setup.study.fit.sources if name in table.columns]
    return [name for name in setup.banks if "test" in sources[name].sides and name in table.columns]


def refuse_stale(table: Table, setup: StudySetup) -> None:
    """Refuse passes whose recalled entries are no longer in their bank in the same version."""
    for name, bank in setup.banks.items():
        live = {(e.id, e.digest) for e in bank.entries() if e.live}
        for row in table.columns[name].passes if name in table.columns else ():
            if any((recall.entry, recall.version) not in live for recall in row.recalls):
                raise UsageError(
                    f"the passes of {name} were recorded with another bank: run heedful study record first"
                )


def side_table(space: Workspace, setup: StudySetup, side: Side) -> Table:
    tasks, clusters = [item.id for item in setup.splits.asked(side)], study_clusters(space, setup)
    return read_table(Ledger(space.ledger), side, tasks, setup.study.seeds, clusters)


async def lock_study(space: Workspace, setup: StudySetup, model: Model) -> Lock:
    """Fix everything that decides the test result."""
    if space.lock.exists():
        raise LockError(f"{space.lock} exists already: a locked study stays locked; use another folder")
    fitted = read_fit(space.fit)
    ledger = Ledger(space.ledger)
    if fitted.passes != passes_digest(ledger, "fit"):
        raise LockError("passes were recorded after the policy was chosen: run heedful study fit again")
    clusters = study_clusters(space, setup)
    if fitted.made_of != fit_digest(setup, fitted, clusters):
        raise LockError(
            f"the study or {space.fit} was changed after the policy was chosen: run heedful study fit again"
        )
    if stale := await outdated(recording_of(setup, "fit"), ledger, model.traits.fingerprint):
        raise LockError(
            f"the passes of {', '.join(stale)} have a different bank, prompt, model or grading: "
            "run heedful study record, then heedful study fit"
        )
    choices = len(harm_choices(space.events))
    earlier = earlier_ledger(space, setup)
    probed = await probe(model)
    lock = make_lock(setup, model.traits, probed, ledger, fitted, clusters, choices, now(), earlier)
    log_event(space.events, LOCKED, lock.lock, lock.locked_at)
    write_lock(space.lock, lock)
    return lock


async def verify_lock(space: Workspace, setup: StudySetup, model: Model) -> Lock:
    """The lock, if nothing changed since it was made, nor since its test side was recorded."""
    lock = await unmoved_lock(space, setup, model)
    refuse_changed_test_passes(space, lock, Ledger(space.ledger))
    return lock


async def unmoved_lock(space: Workspace, setup: StudySetup, model: Model) -> Lock:
    """The lock, if nothing that it fixes changed since it was made."""
    lock = read_lock(space.lock)
    refuse_moved(lock, setup, model.traits, await probe(model), Ledger(space.ledger))
    locked_clusters(space, lock)
    events_of(space.events, lock.lock)
    return lock


async def open_test_side(
    space: Workspace, setup: StudySetup, model: Model, on_progress: OnProgress, *, retry_failed: bool = False
) -> Lock:
    """Verify the lock, log that the test side is opened, and record it.

    If the test side is recorded as it would be today, nothing is decoded or logged.
    """
    if await is_finished(space, setup, model, retry_failed):
        return read_lock(space.lock)
    lock = await unmoved_lock(space, setup, model)
    if not setup.splits.test:
        raise UsageError(f"{setup.benchmark.name} has no rows on the test side")
    plan = await plan_signals(setup, model)
    opened = [
        event.event for event in events_of(space.events, lock.lock) if event.event in (OPENED, RECORDED)
    ]
    resumes = bool(opened) and (retry_failed or opened[-1] == OPENED)
    log_event(space.events, WENT_ON if resumes else OPENED, lock.lock, now())
    recording = recording_of(setup, "test", retry_failed=retry_failed, signals=plan.signals)
    ledger = await fill(space, setup, model, recording, on_progress, earlier_ledger(space, setup))
    log_event(space.events, RECORDED, lock.lock, now(), passes=passes_digest(ledger, "test"))
    return lock


async def is_finished(space: Workspace, setup: StudySetup, model: Model, retry_failed: bool) -> bool:
    """Whether the whole test side was recorded under this lock and would be the same today.

    Raises `LockError` if something moved; the endpoint is not asked whether it still replies the same.
    """
    lock, ledger = read_lock(space.lock), Ledger(space.ledger)
    if not is_recorded(space, lock, ledger):
        return False
    if retry_failed and any(row.record.status == "failed" for row in side_rows(ledger, "test")):
        return False
    refuse_moved(lock, setup, model.traits, lock.model.probe, ledger)
    return not await outdated(recording_of(setup, "test"), ledger, model.traits.fingerprint)


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
