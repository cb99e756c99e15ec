"""One pass: decode the prepared prompt, count its cost, measure its signals, and record it."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from heedful.plugins import Registry
from heedful.ports import Guard, Model, Source
from heedful.records import PassRecord, RecallRef
from heedful.stages.answer import read_answer
from heedful.stages.confidence import Signal, free_signals
from heedful.stages.guard import FormatGuard, ProgressGuard, ValidGuard
from heedful.types import (
    NO_USAGE,
    Attempt,
    Decode,
    Plan,
    Prompt,
    Recall,
    Spec,
    Task,
    Traits,
    Usage,
    digest_of,
    plain_digest_of,
    plainly_written,
)

GUARDS: Registry[Guard] = Registry(
    "heedful.guards",
    {"format": FormatGuard(), "valid": ValidGuard(), "progress": ProgressGuard()},
    fits=lambda part: isinstance(part, Guard) and not isinstance(part, type),
)
RECORDED_GUARDS = ("format", "valid")
"""Guards that run on every pass, so that any policy that uses them can be replayed."""
NO_PROMPT = Prompt(messages=())


@dataclass(slots=True)
class Meter:
    """Wraps a model and counts its calls, tokens and time."""

    model: Model
    calls: int = 0
    usage: Usage = NO_USAGE
    seconds: float = 0.0
    """Sum over all calls."""
    busy_seconds: float = 0.0
    """Time during which at least one call was in progress."""
    _under_way: int = 0
    _since: float = 0.0

    @property
    def traits(self) -> Traits:
        return self.model.traits

    async def decode(self, prompt: Prompt) -> Decode:
        self.calls += 1
        if not self._under_way:
            self._since = time.perf_counter()
        self._under_way += 1
        try:
            decode = await self.model.decode(prompt)
        finally:
            self._under_way -= 1
            if not self._under_way:
                self.busy_seconds += time.perf_counter() - self._since
        self.usage += decode.usage
        self.seconds += decode.seconds
        return decode

    async def aclose(self) -> None:
        """Leave the model open: its owner closes it."""


async def make_pass(
    name: str, source: Source, plan: Plan, task: Task, meter: Meter, baseline: Attempt | None
) -> Attempt:
    """Decode the prepared pass, with its cost and every signal that needs no further call."""
    attempt = await source.attempt(plan, task, meter, baseline)
    decode = attempt.decode
    # a control may return the first pass itself, whose tokens are not stored between runs
    reused = baseline is not None and decode is baseline.decode
    signals = baseline.signals if baseline is not None and reused else free_signals(decode)
    return _metered(attempt, meter, source=name, signals=signals)


async def measure_signal(signal: Signal, task: Task, attempt: Attempt, model: Model) -> float:
    """A pass's confidence by a signal that asks questions of its own."""
    questions = signal.questions(task, attempt)
    replies = await asyncio.gather(*(model.decode(question) for question in questions))
    return signal.measure(attempt.decode, [read_answer(reply, task) for reply in replies])


def empty_pass(name: str) -> Attempt:
    """A pass without a call, because the source had nothing to add."""
    return Attempt(source=name, prompt=NO_PROMPT, decode=Decode(text=""), status="nothing", calls=0)


def failed_pass(name: str, plan: Plan | None, meter: Meter, error: str) -> Attempt:
    """A pass that failed: it has no answer, but its calls are counted."""
    prompt, recalls = (NO_PROMPT, ()) if plan is None else (plan.prompt, plan.recalls)
    attempt = Attempt(source=name, prompt=prompt, decode=Decode(text=""), recalls=recalls, status="failed")
    return _metered(attempt, meter, error=error)


def _metered(attempt: Attempt, meter: Meter, **measured: Any) -> Attempt:
    return replace(attempt, calls=meter.calls, usage=meter.usage, seconds=meter.seconds, **measured)


def pass_record(attempt: Attempt, spec: Spec, fingerprint: str) -> PassRecord:
    """The record of a pass; `spec` holds the settings of its source."""
    decode = attempt.decode
    return PassRecord(
        source=attempt.source,
        prompt=pass_digest(spec, None if attempt.prompt is NO_PROMPT else attempt.prompt),
        model=fingerprint,
        status=attempt.status,
        text=decode.text,
        answer=decode.answer,
        tool_calls=decode.tool_calls,
        finish=decode.finish if attempt.status == "decoded" else "",
        signals=dict(attempt.signals),
        guards=dict(attempt.guards),
        recalls=recall_refs(attempt.recalls),
        calls=attempt.calls,
        usage=attempt.usage,
        seconds=attempt.seconds,
        error=attempt.error,
    )


def pass_digest(spec: Spec, prompt: Prompt | None) -> str:
    """A digest of everything that determines a pass: its first prompt and its source's settings.

    The bank's digest is left out: entries that are not recalled do not matter.
    """
    settings = {key: value for key, value in spec.items() if key != "digest"}
    digest = plain_digest_of if all(map(plainly_written, settings.values())) else digest_of
    return digest([None if prompt is None else prompt.digest, settings])


def recall_refs(recalls: Sequence[Recall]) -> tuple[RecallRef, ...]:
    return tuple(RecallRef(entry=r.entry.id, version=r.entry.digest, score=r.score) for r in recalls)
