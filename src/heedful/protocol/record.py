"""Decode what the ledger does not hold yet, with every slot of the model busy."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from heedful.control import GUARDS
from heedful.errors import HeedfulError
from heedful.ports import Benchmark, Model, Source
from heedful.protocol.ledger import Ledger, Pass, Seen
from heedful.stages.answer import read_answer
from heedful.stages.confidence import free_signals
from heedful.types import Attempt, Decode, Item, Plan, Recall, Side, Task, digest_of

RECORDED_GUARDS = ("format", "valid")
SAME_SCORE = 1e-6
"""Scores of the same entry differ by less between machines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """One side of a study."""

    side: Side
    items: Sequence[Item]
    sources: Mapping[int, Mapping[str, Source]]
    """By seed, the same names under each; `none` first: the controls work on its answer."""
    benchmark: Benchmark


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    done: int
    total: int
    calls: int


OnProgress = Callable[[Progress], None]


class Recorder:
    """Records the passes of a side; a pass that is in the ledger unchanged is not decoded again."""

    def __init__(self, recording: Recording, model: Model, ledger: Ledger, on_progress: OnProgress) -> None:
        self.recording = recording
        self.model = model
        self.ledger = ledger
        self.done = 0
        self.calls = 0
        self._report = on_progress
        self._baselines: dict[tuple[int, str], tuple[Attempt, Pass]] = {}

    async def run(self, slots: int) -> None:
        """One source after the other, so that a recording that is ended early has whole arms.

        `slots` passes run at once, those of the longest questions first so that the tail is short.
        """
        self._tell()
        items = sorted(self.recording.items, key=lambda item: -len(item.question))
        seeds = list(self.recording.sources)
        first, *others = self.recording.sources[seeds[0]]
        for names in ([first], others):
            await self._work([(s, name, item) for name in names for s in seeds for item in items], slots)

    async def _work(self, passes: Sequence[tuple[int, str, Item]], slots: int) -> None:
        waiting = iter(passes)

        async def worker() -> None:
            for seed, name, item in waiting:
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
        first = None if baseline is None else baseline[0]
        plan = await source.prepare(task, first)
        empty = self._empty(seed, name, item, source, plan)
        found = self.ledger.find(empty)
        row = None if found is None else as_of_today(found, plan, task, item, self.recording.benchmark)
        if row is None and plan is not None:
            attempt = await self._attempt(source, plan, task, first, empty)
            row = self._filled(empty, attempt, item, task, baseline)
        row = row or empty
        if row is not self.ledger.passes.get(row.key):
            self.ledger.append(row)
        if name == "none" and plan is not None:
            self._baselines[seed, item.id] = _remembered(row, plan), row
        self.done += 1
        self._tell()

    def _empty(self, seed: int, name: str, item: Item, source: Source, plan: Plan | None) -> Pass:
        return Pass(
            side=self.recording.side,
            seed=seed,
            source=name,
            task=item.id,
            prompt=pass_digest(source, plan),
            model=self.model.traits.fingerprint,
            status="nothing",
        )

    async def _attempt(
        self, source: Source, plan: Plan, task: Task, baseline: Attempt | None, row: Pass
    ) -> Attempt:
        try:
            attempt = await source.attempt(plan, task, self.model, baseline)
        except HeedfulError as error:
            raise type(error)(f"recording {row.source} for {row.task}: {error}") from error
        self.calls += attempt.calls
        return replace(attempt, source=row.source)

    def _filled(
        self, empty: Pass, attempt: Attempt, item: Item, task: Task, baseline: tuple[Attempt, Pass] | None
    ) -> Pass:
        decode = attempt.decode
        # a control may hand back the first pass itself, which is known by its row only
        kept = baseline is not None and decode is baseline[0].decode
        return replace(
            empty,
            status="decoded",
            text=decode.text,
            answer=decode.answer,
            right=bool(decode.answer) and self.recording.benchmark.grade(decode.answer, item),
            signals=baseline[1].signals if baseline is not None and kept else free_signals(decode),
            guards={guard: GUARDS[guard].refuses(task, decode, decode) or "" for guard in RECORDED_GUARDS},
            recalls=_seen(attempt.recalls),
            calls=attempt.calls,
            prompt_tokens=attempt.usage.prompt_tokens,
            completion_tokens=attempt.usage.completion_tokens,
            cached_tokens=attempt.usage.cached_tokens,
            seconds=attempt.seconds,
        )

    def _tell(self) -> None:
        total = len(self.recording.items) * sum(map(len, self.recording.sources.values()))
        self._report(Progress(done=self.done, total=total, calls=self.calls))


async def outdated(recording: Recording, ledger: Ledger, fingerprint: str) -> list[str]:
    """Sources with passes that the recording would not keep as they are: another prompt or model, an answer
    that is read or graded otherwise today, other recalls."""
    found: dict[str, None] = {}
    for seed, sources in recording.sources.items():
        for item in recording.items:
            task, baseline = recording.benchmark.task(item), None
            for name, source in sources.items():
                row = ledger.passes.get((recording.side, seed, name, item.id))
                if row is None:
                    found[name] = None
                    break
                plan = await source.prepare(task, baseline)
                asked = (row.prompt, row.model) == (pass_digest(source, plan), fingerprint)
                if not asked or as_of_today(row, plan, task, item, recording.benchmark) is not row:
                    found[name] = None
                if name == "none" and plan is not None:
                    baseline = _remembered(row, plan)
    return list(found)


def pass_digest(source: Source, plan: Plan | None) -> str:
    """What a pass hangs on: its first prompt and the source's settings, but not a bank's other entries."""
    settings = {key: value for key, value in source.spec.items() if key != "digest"}
    return digest_of([None if plan is None else plan.prompt.digest, settings])


def _seen(recalls: Sequence[Recall]) -> tuple[Seen, ...]:
    return tuple(Seen(entry=r.entry.id, version=r.entry.digest, score=r.score) for r in recalls)


def as_of_today(row: Pass, plan: Plan | None, task: Task, item: Item, benchmark: Benchmark) -> Pass | None:
    """A recorded pass with the grade and the recalls of today: the metric or the target may be another.

    The row itself where nothing changed; None where its answer is read elsewhere in the text, which takes
    another decode: the signals of an answer hang on where it stands.
    """
    if row.status == "decoded" and read_answer(Decode(text=row.text), task).answer != row.answer:
        return None
    row = _with_recalls(row, plan)
    right = bool(row.answer) and benchmark.grade(row.answer, item)
    return row if right == row.right else replace(row, right=right)


def _with_recalls(row: Pass, plan: Plan | None) -> Pass:
    """A recorded pass with the recalls of today: another bank may score the same entries differently."""
    now = () if plan is None else _seen(plan.recalls)
    same = len(now) == len(row.recalls) and all(
        (one.entry, one.version) == (other.entry, other.version) and abs(one.score - other.score) < SAME_SCORE
        for one, other in zip(now, row.recalls, strict=True)
    )
    return row if same else replace(row, recalls=now)


def _remembered(row: Pass, plan: Plan) -> Attempt:
    """A recorded pass as the controls need it, in a resumed run too: its prompt and its text."""
    decode = Decode(text=row.text, answer=row.answer)
    return Attempt(source=row.source, prompt=plan.prompt, decode=decode)
