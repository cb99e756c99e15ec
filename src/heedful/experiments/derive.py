"""The same study with other banks: what is not touched by the change is not decoded again."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from heedful import arms
from heedful.decisions import read_policy
from heedful.errors import StoreError, UsageError
from heedful.memory.bank import MemoryBank
from heedful.memory.formats import write_entries
from heedful.ports import Model, Source
from heedful.protocol.ledger import Ledger
from heedful.protocol.lock import log_event
from heedful.protocol.record import OnProgress, Progress, Recorder, Recording
from heedful.protocol.setting import Setting
from heedful.protocol.steps import now
from heedful.protocol.table import Column, Table, read_table
from heedful.protocol.workspace import Workspace, read_json, write_text
from heedful.sources.memory import MemorySource
from heedful.types import Attempt, Entry, Plan, Policy, Recall, Side, Spec, Task

Tell = Callable[[str, Progress], None]
"""How far the recording under a title is."""
Sources = Callable[[int], Mapping[str, Source]]
"""The sources of a variant by seed, `none` first."""


def bank_source(setting: Setting, wanted: str | None) -> str:
    """The source that is wanted, or the study's only one with a bank."""
    names = list(setting.banks)
    if wanted is None and len(names) == 1:
        return names[0]
    if wanted not in names:
        asked = "several banks" if wanted is None else f"no bank {wanted!r}"
        raise UsageError(f"the study {setting.study.name} has {asked}: give --source {'|'.join(names)}")
    return wanted


def with_bank(setting: Setting, source: str, entries: Sequence[Entry]) -> Setting:
    """The setting with other entries in one of its banks."""
    old = setting.banks[source]
    bank = MemoryBank(old.name, entries, method=old.method, threshold=old.threshold)
    return replace(setting, banks={**setting.banks, source: bank})


def only(setting: Setting, side: Side, source: str) -> Sources:
    """The memory-free pass and one source of a setting."""

    def named(seed: int) -> Mapping[str, Source]:
        every = setting.sources(side, seed)
        if source not in every:
            raise UsageError(f"the study {setting.study.name} does not ask {source} on the {side} side")
        return {name: every[name] for name in ("none", source)}

    return named


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedRetrieval:
    """A memory source that finds what was found before, whatever it says now."""

    inner: MemorySource
    found: Mapping[str, Sequence[Recall]]
    """Per task."""

    @property
    def spec(self) -> Spec:
        return self.inner.spec

    async def prepare(self, task: Task, baseline: Attempt | None) -> Plan | None:
        recalls = self.found[task.id]
        return self.inner.plan(recalls, task) if recalls else None

    async def attempt(self, plan: Plan, task: Task, model: Model, baseline: Attempt | None) -> Attempt:
        return await self.inner.attempt(plan, task, model, baseline)


def frozen(sources: Sources, source: str, found: Mapping[str, Sequence[Recall]]) -> Sources:
    """The sources with recalls that are given by task instead of being looked up."""

    def named(seed: int) -> Mapping[str, Source]:
        every = dict(sources(seed))
        inner = every[source]
        assert isinstance(inner, MemorySource), "a bank's source is a memory source"
        return {**every, source: FixedRetrieval(inner=inner, found=found)}

    return named


async def record_variant(
    space: Workspace,
    name: str,
    setting: Setting,
    sources: Sources,
    model: Model,
    side: Side,
    tell: OnProgress,
    tasks: Collection[str] | None = None,
    parent: Ledger | None = None,
) -> tuple[Ledger, int]:
    """The passes of a variant, on some tasks or all, and how many model calls it took.

    They are kept in the study's folder; what the study, or the variant that is given as `parent`, has
    recorded already is not decoded again.
    """
    calls = 0
    with Ledger(space.folder / name / "ledger.jsonl", parent or Ledger(space.ledger)) as ledger:
        items = setting.splits.fit if side == "fit" else setting.splits.test
        items = [item for item in items if tasks is None or item.id in tasks]
        for seed in setting.study.seeds:
            recording = Recording(
                side=side, seed=seed, items=items, sources=sources(seed), benchmark=setting.benchmark
            )
            recorder = Recorder(recording, model, ledger, tell)
            await recorder.run(setting.study.model.slots)
            calls += recorder.calls
    return ledger, calls


def variant_table(ledger: Ledger, table: Table, setting: Setting, side: Side) -> Table:
    """A variant's passes in the rows of the study's table."""
    return read_table(ledger, side, list(dict.fromkeys(table.tasks)), setting.study.seeds)


def study_policy(space: Workspace) -> Policy:
    """The policy that was locked, or chosen where nothing is locked yet."""
    file = space.lock if space.lock.exists() else space.fit
    return read_policy(read_json(file, "run heedful study fit first")["policy"])


def policy_for(space: Workspace, source: str) -> Policy:
    """The study's policy where there is one and it uses the source, else the source in every prompt."""
    if space.lock.exists() or space.fit.exists():
        policy = study_policy(space)
        if source in (policy.first, *policy.sources):
            return policy
    return arms.always(source)


def refuse_closed(space: Workspace, setting: Setting, side: Side, doing: str) -> None:
    """The test side may be asked again only after the locked study has opened it; the journal says so."""
    if side == "fit":
        return
    if not any(row.side == "test" for row in Ledger(space.ledger).passes.values()):
        raise UsageError("the test side is not open yet: run heedful study test, or give --side fit")
    log_event(space.journal, f"asked the test side again: {doing}", read_json(space.lock, "")["lock"], now())


def exchanged(table: Table, source: str, column: Column) -> Table:
    """The table with another column for a source."""
    return replace(table, columns={**table.columns, source: column})


def keep_bank(folder: Path, name: str, entries: Sequence[Entry]) -> None:
    """Write down the bank of a variant, so that its passes can be traced."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"{folder} cannot be made: {error.strerror}") from error
    write_text(folder / f"{name}.jsonl", write_entries(entries, "jsonl"))
