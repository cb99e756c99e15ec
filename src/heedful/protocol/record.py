"""Decode the passes that the ledger lacks, keeping every slot of the model busy."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from heedful.errors import HeedfulError, ModelError, RequestError, SignalError
from heedful.passes import (
    GUARDS,
    RECORDED_GUARDS,
    Meter,
    failed_pass,
    make_pass,
    measure_signal,
    pass_digest,
    pass_record,
    recall_refs,
)
from heedful.ports import AnswerJudge, Benchmark, Model, Source
from heedful.protocol.ledger import Ledger, Pass
from heedful.records import PassRecord, SignalCost
from heedful.stages.answer import read_answer
from heedful.stages.confidence import signal_named
from heedful.types import Attempt, Decode, Item, Plan, Side, Task

SAME_SCORE = 1e-6
"""Scores of the same entry differ by less than this between machines."""
FAILURES_IN_A_ROW = 5
"""After this many failures in a row the endpoint is taken to be down, not to refuse these passes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """One side of a study."""

    side: Side
    items: Sequence[Item]
    sources: Mapping[int, Mapping[str, Source]]
    """By seed, with the same names under each; `none` first: the controls use its answer."""
    benchmark: Benchmark
    retry_failed: bool = False
    """Whether failed passes are decoded again."""
    signals: tuple[str, ...] = ()
    """Signals that ask questions of their own, to be measured."""
    measured: frozenset[str] = frozenset()
    """The sources on whose passes they are measured."""

    def lacks_signal(self, record: PassRecord) -> bool:
        """Whether a wanted signal was not measured on a pass."""
        wanted = record.status == "decoded" and record.source in self.measured
        return wanted and any(name not in record.signal_costs for name in self.signals)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingProgress:
    done: int
    total: int
    calls: int
    failed: int = 0


OnProgress = Callable[[RecordingProgress], None]


class Recorder:
    """Records the passes of a side; a pass that is unchanged in the ledger is not decoded again."""

    def __init__(self, recording: Recording, model: Model, ledger: Ledger, on_progress: OnProgress) -> None:
        self.recording = recording
        self.model = model
        self.ledger = ledger
        self.done = 0
        self.calls = 0
        self.failed = 0
        self._report = on_progress
        self._baselines: dict[tuple[int, str], Attempt] = {}
        self._unsettled: list[Pass] = []
        """Failures since the last success: written only after the endpoint answers again."""

    async def run(self, slots: int) -> None:
        """Decode every missing pass, `slots` at once, the longest questions first to keep the tail short.

        One source comes after another, so that an interrupted recording has complete arms. But the other
        memory-free passes of a question stay together: they repeat or extend its first prompt, which the
        engine then has in its cache. Samples, which a policy may consult, come before controls.
        """
        self._tell()
        items = sorted(self.recording.items, key=lambda item: -len(item.question))
        seeds = list(self.recording.sources)
        sources = self.recording.sources[seeds[0]]
        banks = [name for name, source in sources.items() if "bank" in source.spec]
        first, *free = [name for name in sources if name not in banks]
        rows = [(seed, item) for seed in seeds for item in items]
        await self._work([[(seed, first, item)] for seed, item in rows], slots)
        chains = [[(seed, name, item)] for name in banks for seed, item in rows]
        samples = [name for name in free if _is_sample(sources[name])]
        for group in (samples, [name for name in free if name not in samples]):
            chains += [[(seed, name, item) for name in group] for seed, item in rows if group]
        await self._work(chains, slots)
        self._keep_unsettled()

    async def _work(self, chains: Sequence[Sequence[tuple[int, str, Item]]], slots: int) -> None:
        """Work through chains of passes, `slots` chains at once."""
        waiting = iter(chains)

        async def worker() -> None:
            for chain in waiting:
                for seed, name, item in chain:
                    await self._record(seed, name, item)

        workers = [asyncio.create_task(worker()) for _ in range(slots)]
        try:
            await asyncio.gather(*workers)
        finally:
            for task in workers:
                task.cancel()

    async def _record(self, seed: int, name: str, item: Item) -> None:
        source = self.recording.sources[seed][name]
        task = self.recording.benchmark.task(item)
        baseline = self._baselines.get((seed, item.id))
        if source.memory_free_first and baseline is None:
            attempt = failed_pass(name, None, Meter(self.model), "the first pass failed")
            row = self._row(seed, item, pass_record(attempt, source.spec, self.model.traits.fingerprint))
            self._append(row)
        else:
            plan = await source.prepare(task, baseline)
            row = await self._known_or_made(seed, name, item, plan, baseline)
            if name == "none" and plan is not None and row.record.status == "decoded":
                self._baselines[seed, item.id] = _remembered(row, plan)
        self.done += 1
        self.failed += row.record.status == "failed"
        self._tell()

    async def _known_or_made(
        self, seed: int, name: str, item: Item, plan: Plan | None, baseline: Attempt | None
    ) -> Pass:
        """The row of a pass: from the ledger if it would be the same today, else decoded."""
        source, benchmark = self.recording.sources[seed][name], self.recording.benchmark
        task = benchmark.task(item)
        wanted = PassRecord(
            source=name,
            prompt=pass_digest(source.spec, None if plan is None else plan.prompt),
            model=self.model.traits.fingerprint,
            status="nothing",
        )
        found = self.ledger.find(self._row(seed, item, wanted))
        row = None
        if found is not None:
            await judged(found.record, item, benchmark)
            row = as_of_today(found, plan, task, item, benchmark)
        if row is not None and self.recording.lacks_signal(row.record):
            row = None
        if row is not None and row.record.status == "failed" and self.recording.retry_failed:
            row = None
        if row is None and plan is not None:
            return await self._make(seed, name, item, plan, baseline)
        row = row or self._row(seed, item, wanted)
        self._append(row)
        return row

    async def _make(self, seed: int, name: str, item: Item, plan: Plan, baseline: Attempt | None) -> Pass:
        """Decode a pass; one that the endpoint refuses becomes a failed pass, and recording continues."""
        source, meter = self.recording.sources[seed][name], Meter(self.model)
        task = self.recording.benchmark.task(item)
        try:
            attempt = await make_pass(name, source, plan, task, meter, baseline)
            guards = {
                g: GUARDS[g].refuses(task, attempt.decode, attempt.decode) or "" for g in RECORDED_GUARDS
            }
            attempt, costs = await self._measured(replace(attempt, guards=guards), task)
            failure = None
        except ModelError as error:
            attempt, costs = failed_pass(name, plan, meter, f"{type(error).__name__}: {error}"), {}
            failure = error
        except HeedfulError as error:
            raise type(error)(f"recording {name} for {item.id}: {error}") from error
        self.calls += meter.calls + sum(cost.calls for cost in costs.values())
        record = pass_record(attempt, source.spec, self.model.traits.fingerprint)
        record = replace(record, signal_costs=costs)
        await judged(record, item, self.recording.benchmark)
        row = self._row(seed, item, record)
        if failure is None or isinstance(failure, RequestError):
            self._keep_unsettled()
            self._append(row)
        else:
            self._unsettled.append(row)
            if len(self._unsettled) >= FAILURES_IN_A_ROW:
                raise ModelError(
                    f"{FAILURES_IN_A_ROW} passes failed in a row, the last one {name} for {item.id}: "
                    f"{failure}; recorded passes are kept, run the same command again"
                ) from failure
        return row

    async def _measured(self, attempt: Attempt, task: Task) -> tuple[Attempt, dict[str, SignalCost]]:
        """A pass with the wanted signals that ask questions of their own, and what they cost.

        A question that the model refuses, or answers unreadably, leaves its signal out.
        """
        signals, costs = dict(attempt.signals), dict[str, SignalCost]()
        for name in self.recording.signals if attempt.source in self.recording.measured else ():
            meter = Meter(self.model)
            with suppress(RequestError, SignalError):
                signals[name] = await measure_signal(signal_named(name), task, attempt, meter)
            costs[name] = SignalCost(calls=meter.calls, usage=meter.usage)
        return replace(attempt, signals=signals), costs

    def _keep_unsettled(self) -> None:
        """Write the pending failures: the endpoint answers, so they concern their passes only."""
        for row in self._unsettled:
            self._append(row)
        self._unsettled = []

    def _append(self, row: Pass) -> None:
        if row != self.ledger.passes.get(row.key):
            self.ledger.append(row)

    def _row(self, seed: int, item: Item, record: PassRecord) -> Pass:
        right = graded(record, item, self.recording.benchmark)
        return Pass(side=self.recording.side, seed=seed, task=item.id, record=record, right=right)

    def _tell(self) -> None:
        total = len(self.recording.items) * sum(map(len, self.recording.sources.values()))
        self._report(RecordingProgress(done=self.done, total=total, calls=self.calls, failed=self.failed))


def _is_sample(source: Source) -> bool:
    return source.spec.get("kind") == "retry" and bool(source.spec.get("temperature"))


def graded(record: PassRecord, item: Item, benchmark: Benchmark) -> bool:
    """Whether a pass is right; a pass without an answer is wrong."""
    return bool(record.answer) and benchmark.grade(record.answer, item)


async def judged(record: PassRecord, item: Item, benchmark: Benchmark) -> None:
    """Ask the judge of a benchmark that has one about a pass."""
    if record.answer and isinstance(benchmark, AnswerJudge):
        try:
            await benchmark.judge(record.answer, item)
        except ModelError as error:
            raise ModelError(
                f"the judge failed on {record.source} for {item.id}: {error}; recorded passes are kept, run "
                "the same command again"
            ) from error


async def outdated(recording: Recording, ledger: Ledger, fingerprint: str) -> list[str]:
    """Sources with missing passes, or passes that the recording would replace: a different prompt, model or
    recalls, or an answer that is read or graded differently today."""
    found: dict[str, None] = {}
    for seed, sources in recording.sources.items():
        for item in recording.items:
            task, baseline = recording.benchmark.task(item), None
            for name, source in sources.items():
                row = ledger.passes.get((recording.side, seed, name, item.id))
                if row is None:
                    found[name] = None
                    break
                if source.memory_free_first and baseline is None:
                    continue
                plan = await source.prepare(task, baseline)
                await judged(row.record, item, recording.benchmark)
                digest = pass_digest(source.spec, None if plan is None else plan.prompt)
                asked = (row.record.prompt, row.record.model) == (digest, fingerprint)
                lacks = recording.lacks_signal(row.record)
                if not asked or lacks or as_of_today(row, plan, task, item, recording.benchmark) is not row:
                    found[name] = None
                if name == "none" and plan is not None and row.record.status == "decoded":
                    baseline = _remembered(row, plan)
    return list(found)


def as_of_today(row: Pass, plan: Plan | None, task: Task, item: Item, benchmark: Benchmark) -> Pass | None:
    """A recorded pass with today's grade and recalls: the metric or the target may have changed.

    The row itself if nothing changed; None if its answer is now read from another part of the text. That
    takes a new decode: the signals of an answer depend on its position.
    """
    record = row.record
    reread = read_answer(Decode(text=record.text, tool_calls=record.tool_calls), task).answer
    if record.status == "decoded" and reread != record.answer:
        return None
    row = _with_recalls(row, plan)
    right = graded(row.record, item, benchmark)
    return row if right == row.right else replace(row, right=right)


def _with_recalls(row: Pass, plan: Plan | None) -> Pass:
    """A recorded pass with today's recalls: another bank may score the same entries differently."""
    now, before = () if plan is None else recall_refs(plan.recalls), row.record.recalls
    same = len(now) == len(before) and all(
        (today.entry, today.version) == (then.entry, then.version)
        and abs(today.score - then.score) < SAME_SCORE
        for today, then in zip(now, before, strict=True)
    )
    return row if same else replace(row, record=replace(row.record, recalls=now))


def _remembered(row: Pass, plan: Plan) -> Attempt:
    """A recorded pass as the controls need it, also in a resumed run."""
    record = row.record
    decode = Decode(text=record.text, answer=record.answer, tool_calls=record.tool_calls)
    free = {name: value for name, value in record.signals.items() if name not in record.signal_costs}
    return Attempt(source=record.source, prompt=plan.prompt, decode=decode, signals=free)
