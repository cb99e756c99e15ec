"""The control loop: answer, and consult memory only when unsure (Algorithm 1)."""

import asyncio
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from heedful.errors import PolicyError
from heedful.ports import Guard, Journal, Model, Source
from heedful.sources.retry import RetrySource
from heedful.stages.accept import is_settled, judge, needs_confidence, settle
from heedful.stages.answer import read_answer, refuse_bad_pattern
from heedful.stages.budget import after_step, passes_left
from heedful.stages.calibrate import calibrated_confidence
from heedful.stages.compose import first_prompt
from heedful.stages.confidence import Signal, signal_named
from heedful.stages.guard import FormatGuard, ProgressGuard, ValidGuard
from heedful.stages.route import choose_route
from heedful.types import (
    Attempt,
    Candidate,
    Check,
    Decode,
    Fault,
    Outcome,
    Policy,
    Prompt,
    Route,
    Spec,
    Spent,
    Step,
    Task,
    Traits,
    Verdict,
)

GUARDS: Mapping[str, Guard] = MappingProxyType(
    {"format": FormatGuard(), "valid": ValidGuard(), "progress": ProgressGuard()}
)
MEMORY_FREE: Mapping[str, Source] = MappingProxyType({"none": RetrySource(), "retry": RetrySource()})
"""Sources that every controller has: the memory-free pass, by its two names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Controller:
    """Answers a task, consulting memory only when the model is unsure."""

    model: Model
    policy: Policy
    sources: Mapping[str, Source] = field(default_factory=dict)
    guards: Mapping[str, Guard] = field(default_factory=dict)
    """Guards beside `format`, `valid` and `progress`; the policy says which are active."""
    journal: Journal | None = None
    """Where decision records are kept."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sources", {**MEMORY_FREE, **self.sources})
        object.__setattr__(self, "guards", {**GUARDS, **self.guards})
        refuse_impossible(self)

    async def answer(self, task: Task, *, spent: Spent = Spent()) -> Outcome:
        """The first pass's answer, or an accepted second pass's; a fault can never take it away."""
        refuse_bad_pattern(task)
        run = Run(model=self.model)
        baseline = await self._first_pass(task, run)
        confidence = await self._confidence(task, baseline, None, run)
        route = choose_route(confidence, self.policy, spent)
        candidates: list[Candidate] = []
        if route.choice == "consult":
            sources = self.policy.sources[: passes_left(self.policy.budget, spent)]
            for left, source in zip(range(len(sources) - 1, -1, -1), sources, strict=True):
                candidate = await self._candidate(source, task, baseline, confidence, run)
                candidates += [] if candidate is None else [candidate]
                if is_settled(baseline.decode.answer, candidates, left, self.policy):
                    break
        outcome = self._outcome(task, baseline, confidence, route, candidates, run)
        return await self._recorded(outcome, run)

    def answer_sync(self, task: Task) -> Outcome:
        return asyncio.run(self.answer(task))

    async def _first_pass(self, task: Task, run: "Run") -> Attempt:
        if self.policy.first != "none":
            attempt = await self._attempt(self.policy.first, task, None, run)
            if attempt is not None:
                return attempt
        prompt = first_prompt(task)
        decode = read_answer(await run.decode(prompt), task)
        return Attempt(source="none", prompt=prompt, decode=decode)

    async def _attempt(self, name: str, task: Task, baseline: Attempt | None, run: "Run") -> Attempt | None:
        attempt = None
        with run.surviving(f"source:{name}"):
            plan = await self.sources[name].prepare(task, baseline)
            if plan is not None:
                attempt = await self.sources[name].attempt(plan, task, run, baseline)
        return None if attempt is None else replace(attempt, source=name)

    async def _confidence(
        self, task: Task, attempt: Attempt, first: Attempt | None, run: "Run"
    ) -> float | None:
        signal = measured_signal(self.policy)
        if not signal.supported_by(self.model.traits) or (signal.extra_calls and not looks_at(self.policy)):
            return None
        confidence = None
        with run.surviving(f"confidence:{attempt.source}"):
            if self.policy.calibrators is not None:
                calibrator = self.policy.calibrators["first" if first is None else attempt.source]
                confidence = calibrated_confidence(calibrator, attempt, first)
            else:
                questions = signal.questions(task, attempt)
                replies = [read_answer(await run.decode(question), task) for question in questions]
                confidence = signal.measure(attempt.decode, replies)
        return confidence

    async def _candidate(
        self, name: str, task: Task, baseline: Attempt, confidence: float | None, run: "Run"
    ) -> Candidate | None:
        attempt = await self._attempt(name, task, baseline, run)
        if attempt is None:
            return None
        surety = None
        if needs_confidence(self.policy) or measured_signal(self.policy).extra_calls == 0:
            surety = await self._confidence(task, attempt, baseline, run)
        checks = [self._check(guard, task, baseline, attempt, run) for guard in self.policy.guards]
        verdict = judge(confidence, surety, checks, name, self.policy)
        return Candidate(attempt=attempt, confidence=surety, checks=tuple(checks), verdict=verdict)

    def _check(self, name: str, task: Task, baseline: Attempt, attempt: Attempt, run: "Run") -> Check:
        reason: str | None = f"{name}:fault"
        with run.surviving(f"guard:{name}"):
            reason = self.guards[name].refuses(task, baseline.decode, attempt.decode)
        return Check(guard=name, reason=reason or "")

    def _outcome(
        self,
        task: Task,
        baseline: Attempt,
        confidence: float | None,
        route: Route,
        candidates: Sequence[Candidate],
        run: "Run",
    ) -> Outcome:
        chosen = settle(baseline.decode.answer, candidates, self.policy)
        specs: dict[str, Spec] = {}
        with run.surviving("sources"):
            specs = {name: self.sources[name].spec for name in (self.policy.first, *self.policy.sources)}
        seconds = time.perf_counter() - run.started
        return Outcome(
            task=task,
            policy=self.policy,
            baseline=baseline,
            confidence=confidence,
            route=route,
            candidates=tuple(candidates),
            verdict=None if route.choice == "keep" else overall(candidates, chosen, run),
            chosen=chosen,
            calls=run.calls,
            faults=tuple(run.faults),
            seconds=seconds,
            overhead_seconds=seconds - run.model_seconds,
            decision=secrets.token_hex(6),
            model=self.model.traits,
            sources=specs,
        )

    async def _recorded(self, outcome: Outcome, run: "Run") -> Outcome:
        if self.journal is None:
            return outcome
        with run.surviving("journal"):
            await asyncio.to_thread(self.journal.record, outcome)
        return replace(outcome, faults=tuple(run.faults))


@dataclass(slots=True, kw_only=True)
class Run:
    """One answer under way: stands in for the model to count its calls, and keeps what failed."""

    model: Model
    calls: int = 0
    model_seconds: float = 0.0
    faults: list[Fault] = field(default_factory=list)
    started: float = field(default_factory=time.perf_counter)

    @property
    def traits(self) -> Traits:
        return self.model.traits

    async def decode(self, prompt: Prompt) -> Decode:
        self.calls += 1
        start = time.perf_counter()
        try:
            return await self.model.decode(prompt)
        finally:
            self.model_seconds += time.perf_counter() - start

    @contextmanager
    def surviving(self, stage: str) -> Iterator[None]:
        """Note a failure and go on: memory, guards and stores are other people's code, and whatever
        they raise must not take the baseline's answer away."""
        try:
            yield
        except Exception as error:
            self.faults.append(Fault(stage=stage, error=f"{type(error).__name__}: {error}"))


def overall(candidates: Sequence[Candidate], chosen: int | None, run: Run) -> Verdict:
    """The verdict on a consultation: the winner's, or why nothing won."""
    if chosen is not None:
        return candidates[chosen].verdict
    if candidates:
        last = candidates[-1].verdict
        return Verdict(choice="rollback", reason="no agreement") if last.choice == "accept" else last
    failed = any(fault.stage.startswith("source:") for fault in run.faults)
    return Verdict(choice="rollback", reason="fault" if failed else "nothing recalled")


def looks_at(policy: Policy) -> bool:
    """Whether any decision of the policy looks at a confidence."""
    routed = policy.sources != () and abs(policy.threshold) != float("inf")
    return routed or (policy.threshold != float("-inf") and needs_confidence(policy))


def measured_signal(policy: Policy) -> Signal:
    """The signal a policy measures; calibrators work on those that come with log-probs."""
    return signal_named("mean" if policy.calibrators is not None else policy.signal)


def refuse_impossible(controller: Controller) -> None:
    """Raise `PolicyError` for a policy that this model, these sources or these guards cannot carry out."""
    policy, traits = controller.policy, controller.model.traits
    for name in (policy.first, *policy.sources):
        if name not in controller.sources:
            known = ", ".join(sorted(controller.sources))
            raise PolicyError(f"the policy names the source {name!r}, which is not among {known}")
        if policy.first != "none" and controller.sources[name].spec.get("on") == "none":
            raise PolicyError(f"the source {name!r} works on a memory-free first pass; set first = 'none'")
    for name in policy.guards:
        if name not in controller.guards:
            known = ", ".join(sorted(controller.guards))
            raise PolicyError(f"the policy names the guard {name!r}, which is not among {known}")
    for name in policy.sources:
        if policy.margins is not None and name not in policy.margins:
            raise PolicyError(f"the policy has margins but none for its source {name!r}")
    if policy.threshold != policy.threshold:
        raise PolicyError("the policy's threshold is not a number")
    if policy.calibrators is not None:
        missing = [role for role in ("first", *policy.sources) if role not in policy.calibrators]
        if missing:
            raise PolicyError(f"the policy has calibrators but none for {', '.join(missing)}")
    signal = measured_signal(policy)
    if looks_at(policy) and not signal.supported_by(traits):
        raise PolicyError(
            f"the signal {signal.name!r} needs {signal.needs}, which {traits.name} does not give; "
            "choose agreement or ptrue, or run heedful probe to see what it can give"
        )


@dataclass(slots=True, kw_only=True)
class Episode:
    """The same loop for each step of an agent, with one budget over the whole episode."""

    controller: Controller
    spent: Spent = field(default_factory=Spent)
    steps: list[Step] = field(default_factory=list)

    async def step(self, task: Task) -> Outcome:
        """Choose the next action; the task's question is what the agent sees now."""
        task = replace(task, history=(*task.history, *self.steps))
        outcome = await self.controller.answer(task, spent=self.spent)
        self.spent = after_step(self.spent, len(outcome.candidates))
        self.steps.append(Step(observation=task.question, action=outcome.answer))
        return outcome
