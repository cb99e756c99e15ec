"""The control loop: answer, and consult memory only when unsure (Algorithm 1)."""

import asyncio
import logging
import random
import time
from collections import ChainMap
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from heedful.decision_ids import new_decision_id
from heedful.decisions import decision_of
from heedful.errors import PolicyError
from heedful.limits import is_number
from heedful.observing import UNWATCHED, Tell, watched
from heedful.passes import GUARDS, RECORDED_GUARDS, Meter, empty_pass, failed_pass, make_pass, measure_signal
from heedful.ports import Guard, Journal, Model, Observer, Source
from heedful.rollout.assign import Rollout
from heedful.sources.retry import RetrySource
from heedful.stages.accept import asked_together, is_settled, judge, needs_confidence, settle
from heedful.stages.answer import refuse_bad_pattern, refuse_empty
from heedful.stages.budget import out_of_budget, passes_left
from heedful.stages.calibrate import calibrated_confidence
from heedful.stages.confidence import Signal
from heedful.stages.feasibility import (
    looks_at_confidence,
    measured_signal,
    refuse_infeasible,
)
from heedful.stages.route import choose_route
from heedful.stages.value import (
    Estimates,
    Step,
    chosen_by_value,
    compares_meanings,
    explained_answers,
    explained_step,
    sources_to_ask,
)
from heedful.stages.value_features import MISSING, Similarity, view_of
from heedful.time_limit import within
from heedful.types import (
    Assignment,
    Attempt,
    BudgetUse,
    Candidate,
    Fault,
    Outcome,
    Plan,
    Policy,
    Route,
    Spec,
    Task,
    TaskTemplate,
    Trial,
    ValueRule,
    ValueTrace,
    Verdict,
)

if TYPE_CHECKING:
    from heedful.protocol.bundle import Bundle

T = TypeVar("T")
MEMORY_FREE: Mapping[str, Source] = MappingProxyType({"none": RetrySource(), "retry": RetrySource()})
"""Sources that every controller has: the memory-free pass under its two names."""
NO_ROUTE = Route(choice="keep", reason="patience")
PATIENCE = 60.0
FAIR = 0.5
"""The chance that the coin of a trial allows memory."""
LEAST_RECORDING_SECONDS = 1.0
"""Minimum time to record a decision, even when patience has run out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Controller:
    """Answers a task, consulting memory only when the model is unsure."""

    model: Model
    policy: Policy
    sources: Mapping[str, Source] = field(default_factory=dict)
    guards: Mapping[str, Guard] = field(default_factory=dict)
    """Guards in addition to `format`, `valid` and `progress`; the policy selects the active ones."""
    journal: Journal | None = None
    """Where decisions are recorded."""
    patience: float | None = PATIENCE
    """Time limit in seconds for everything after the first pass, whose answer stands if the limit is
    exceeded; None: no limit."""
    similarity: Similarity | None = None
    """How alike two answers are, for value policies fitted on text; `heedful.memory.answer_similarity`."""
    template: TaskTemplate = field(default_factory=TaskTemplate)
    """Makes a task of a question that is given as text."""
    explore: float = 0.0
    """Share of answers for which a fair coin decides whether an accepted memory answer may be used."""
    chance: Callable[[], float] = random.SystemRandom().random
    """Draws the coins, uniformly from 0 to 1."""
    rollout: Rollout | None = None
    """Whose answers the policy chooses; None: everyone's."""
    observer: Observer | None = None
    """Watches decisions and passes; `heedful.telemetry.Telemetry` makes spans of them."""

    @classmethod
    def from_study(
        cls,
        folder: Path | str,
        *,
        data: Path | None = None,
        model: Model | None = None,
        journal: Journal | None = None,
        patience: float | None = PATIENCE,
        explore: float = 0.0,
        strict: bool = False,
    ) -> Self:
        """The locked policy of a study with its sources, banks, task template and model; see `from_bundle`.

        `data` is the folder of benchmark data, if the study needs it.
        """
        from heedful.protocol.export import study_bundle
        from heedful.protocol.workspace import open_workspace

        made = study_bundle(open_workspace(Path(folder), None), data)
        return cls.from_bundle(
            made.bundle,
            model=model,
            journal=journal,
            patience=patience,
            explore=explore,
            strict=strict,
            moved=made.moved,
        )

    @classmethod
    def from_bundle(
        cls,
        bundle: "Bundle | Path | str",
        *,
        model: Model | None = None,
        journal: Journal | None = None,
        patience: float | None = PATIENCE,
        explore: float = 0.0,
        strict: bool = False,
        moved: Sequence[str] = (),
    ) -> Self:
        """The policy of a bundle that `heedful study export` wrote.

        What changed since the lock is logged as a warning, or raises a `LockError` if `strict`; `moved` names
        changes that are known already. `model` replaces the bundle's own.
        """
        from heedful.protocol.bundle import Bundle, check_moved, read_bundle

        bundle = bundle if isinstance(bundle, Bundle) else read_bundle(Path(bundle))
        model = bundle.make_model() if model is None else model
        if names := run_sync(check_moved(bundle, model, moved, strict=strict)):
            logging.getLogger("heedful").warning(
                "changed since %s was locked: %s", bundle.study, ", ".join(names)
            )
        return cls(
            model=model,
            policy=bundle.policy,
            sources=bundle.make_sources(),
            journal=journal,
            patience=patience,
            similarity=bundle.similarity,
            template=bundle.task,
            explore=explore,
        )

    def __post_init__(self) -> None:
        object.__setattr__(self, "sources", {**MEMORY_FREE, **self.sources})
        object.__setattr__(self, "guards", ChainMap(dict(self.guards), cast(dict[str, Guard], GUARDS)))
        critics = [name for name, source in self.sources.items() if source.memory_free_first]
        refuse_infeasible(self.policy, self.model.traits, self.sources, critics, self.guards)
        value = self.policy.value
        if value is not None and compares_meanings(value.trees) and self.similarity is None:
            raise PolicyError(
                "the policy compares answers by their meaning: set similarity to "
                "heedful.memory.answer_similarity"
            )
        if self.patience is not None and not (is_number(self.patience) and self.patience > 0):
            raise PolicyError(
                f"patience is {self.patience!r} s; set it to more than 0 seconds, or to None for no limit"
            )
        if not 0 <= self.explore <= 1 or (self.explore and self.journal is None):
            raise PolicyError(
                f"explore is {self.explore}; it must be from 0 to 1, and it needs a journal for its coins"
            )

    async def answer(
        self,
        task: Task | str,
        *,
        spent: BudgetUse = BudgetUse(),
        model: Model | None = None,
        decision: str = "",
    ) -> Outcome:
        """Return the first pass's answer or that of an accepted second pass; faults never lose the answer.

        A question given as text becomes a task by the controller's template. `model` replaces the
        controller's own for this answer; `decision` is the id of its record, drawn if empty.
        """
        task = self.template.task(task) if isinstance(task, str) else task
        refuse_empty(task)
        refuse_bad_pattern(task)
        assignment = None if self.rollout is None else self.rollout.assign(task)
        run = Run(
            meter=Meter(model or self.model), decision=decision or new_decision_id(), assignment=assignment
        )
        if self.observer is None:
            return await self._decide(task, spent, run)
        traits = run.meter.model.traits
        with self._watched(run, lambda by: by.deciding(run.decision, task, traits)) as tell:
            outcome = await self._decide(task, spent, run)
            tell(outcome)
        return outcome

    async def _decide(self, task: Task, spent: BudgetUse, run: "Run") -> Outcome:
        await self._begin_trial(run)
        so_far = await self._opening(task, run)
        deadline = None if self.patience is None else time.monotonic() + self.patience
        try:
            await within(self.patience, self._consult(task, so_far, spent, run))
        except TimeoutError:
            so_far.late = True
            run.faults.append(Fault(stage="patience", error=f"no decision within {self.patience:g} s"))
        return await self._recorded(self._outcome(task, so_far, run), run, deadline)

    def answer_sync(self, task: Task | str) -> Outcome:
        """`answer` for synchronous code; also works inside a running event loop (a notebook)."""
        return run_sync(self.answer(task))

    def _watched(
        self, run: "Run", open: Callable[[Observer], AbstractContextManager[Tell[T]]]
    ) -> AbstractContextManager[Tell[T]]:
        return watched(self.observer, open, lambda: run.surviving("observer"))

    def _watched_pass(self, run: "Run", name: str) -> AbstractContextManager[Tell[Attempt]]:
        if self.observer is None:
            return UNWATCHED
        return self._watched(run, lambda by: by.passing(run.decision, name, run.meter.model.traits))

    async def _begin_trial(self, run: "Run") -> None:
        """Draw and store the coin before anything is decoded, so that no answer can influence it.

        Where a rollout serves the first answer in any case, a coin has nothing to decide.
        """
        if run.serves_first or self.journal is None or not self.explore or self.chance() >= self.explore:
            return
        trial = Trial(share=self.explore, allowed=self.chance() < FAIR)
        with run.surviving("journal"):
            await within(self.patience, self.journal.announce(run.decision, trial))
            run.trial = trial

    async def _opening(self, task: Task, run: "Run") -> "Consultation":
        """The first pass; if it uses memory, also the control without memory that a rollout or trial needs.

        The pass that is served in any case comes first: the failure of the other one cannot lose it.
        """
        name = self.policy.first
        if name == "none" or not (run.serves_first or run.trial):
            return Consultation(first=await self._first_pass(name, task, run))
        served = await self._first_pass("none" if run.serves_first else name, task, run)
        so_far = Consultation(first=served)
        with run.surviving("control"):
            if run.trial:
                so_far.control = await self._first_pass("none", task, run)
            elif not run.in_control_group:
                so_far = Consultation(first=await self._first_pass(name, task, run), control=served)
        if so_far.control is None:
            run.trial = None  # on both sides of the coin, so what is left stays a fair comparison
        return so_far

    async def _first_pass(self, name: str, task: Task, run: "Run") -> Attempt:
        """A source's pass; the memory-free pass if that source fails or has nothing to add."""
        with self._watched_pass(run, name) as tell:
            attempt = None if name == "none" else await self._attempt(name, task, None, run)
            if attempt is None or attempt.status != "decoded":
                free = MEMORY_FREE["none"]
                plan = await free.prepare(task, None)
                assert plan is not None, "a memory-free pass always has a prompt"
                attempt = await make_pass("none", free, plan, task, Meter(run.meter), None)
            attempt = self._guarded(RECORDED_GUARDS, task, attempt, attempt, run)
            tell(attempt)
        return attempt

    async def _consult(self, task: Task, so_far: "Consultation", spent: BudgetUse, run: "Run") -> None:
        """Fill in route and candidates; sources that do not depend on each other run concurrently."""
        policy = self.policy
        if run.in_control_group:
            so_far.route = Route(choice="keep", reason="control group")
            return
        if policy.value is not None:
            await self._consult_by_value(policy.value, task, so_far, spent, run)
            return
        so_far.confidence = await self._confidence(task, so_far.first, None, run)
        so_far.route = choose_route(so_far.confidence, policy, spent)
        if so_far.route.choice == "keep":
            return
        sources = policy.sources[: passes_left(policy.budget, spent)]
        done = 0
        while done < len(sources):
            places = range(done, done + asked_together(policy, done, len(sources)))
            await asyncio.gather(*(self._candidate(at, sources[at], task, so_far, run) for at in places))
            done = places.stop
            if is_settled(so_far.first.decode.answer, so_far.candidates(), len(sources) - done, policy):
                return

    async def _consult_by_value(
        self, rule: ValueRule, task: Task, so_far: "Consultation", spent: BudgetUse, run: "Run"
    ) -> None:
        """Ask while the expected gain exceeds the cost, then choose the likeliest answer (eq. 3)."""
        policy = self.policy
        names = (policy.first, *policy.sources)
        similar = run.likeness(self.similarity) if compares_meanings(rule.trees) else None
        estimates = Estimates(trees=rule.trees, views={0: view_of(so_far.first)}, similar=similar)
        spent_up = out_of_budget(policy.budget, spent)
        left = 0 if spent_up else passes_left(policy.budget, spent)
        so_far.route = Route(choice="keep", reason=spent_up or "not worth it")
        steps: list[Step] = []
        for step in sources_to_ask(estimates, rule, left):
            steps.append(step)
            if step.pays:
                so_far.route = Route(choice="consult", reason="worth it")
                await self._candidate(step.place - 1, names[step.place], task, so_far, run)
                attempt = so_far.judged[step.place - 1].attempt
                if attempt.status == "decoded":
                    estimates.views[step.place] = view_of(attempt)
        asked = estimates.answered([at + 1 for at in so_far.judged])
        so_far.confidence = estimates.chances(asked)[0]
        judged = chosen_by_value(estimates, rule, asked, so_far.judged)
        so_far.judged = {at: with_value_reason(candidate) for at, candidate in judged.items()}
        so_far.value = ValueTrace(
            steps=tuple(explained_step(step, names) for step in steps),
            answers=explained_answers(estimates, asked, names),
            margin=rule.margin,
        )

    async def _attempt(self, name: str, task: Task, baseline: Attempt | None, run: "Run") -> Attempt:
        """A source's pass, whether decoded, empty or failed."""
        source, meter = self.sources[name], Meter(run.meter)
        plan: Plan | None = None
        attempt = empty_pass(name)
        with run.surviving(f"source:{name}") as faults:
            plan = await within(self.patience, source.prepare(task, baseline))
            if plan is not None:
                attempt = await make_pass(name, source, plan, task, meter, baseline)
        return failed_pass(name, plan, meter, faults[0].error) if faults else attempt

    async def _confidence(
        self, task: Task, attempt: Attempt, first: Attempt | None, run: "Run"
    ) -> float | None:
        """The pass's confidence by the policy's signal; `first` is given for a second pass only."""
        signal = measured_signal(self.policy)
        looked_at = looks_at_confidence(self.policy) if first is None else needs_confidence(self.policy)
        if not signal.supported_by(run.meter.traits) or (signal.extra_calls and not looked_at):
            return None
        confidence = None
        with run.surviving(f"confidence:{attempt.source}"):
            confidence = await self._measure(signal, task, attempt, first, run)
        return confidence  # noqa: RET504 - a fault leaves it None

    async def _measure(
        self, signal: Signal, task: Task, attempt: Attempt, first: Attempt | None, run: "Run"
    ) -> float | None:
        if calibrators := self.policy.calibrators:
            calibrator = calibrators.first if first is None else calibrators.sources[attempt.source]
            return calibrated_confidence(calibrator, attempt, first)
        if signal.name in attempt.signals:
            return attempt.signals[signal.name]
        return await measure_signal(signal, task, attempt, run.meter)

    async def _candidate(self, place: int, name: str, task: Task, so_far: "Consultation", run: "Run") -> None:
        first, confidence = so_far.first, None
        with self._watched_pass(run, name) as tell:
            attempt = await self._attempt(name, task, first, run)
            tell(attempt)
        if attempt.status == "decoded":
            confidence = await self._confidence(task, attempt, first, run)
            guards = (*RECORDED_GUARDS, *self.policy.guards)
            attempt = self._guarded(guards, task, first, attempt, run)
        verdict = judge(so_far.confidence, confidence, attempt, self.policy)
        so_far.judged[place] = Candidate(attempt=attempt, confidence=confidence, verdict=verdict)

    def _guarded(
        self, guards: Sequence[str], task: Task, first: Attempt, attempt: Attempt, run: "Run"
    ) -> Attempt:
        """The pass with the reason of each guard; a guard that raises counts as a refusal."""
        reasons = {}
        for name in dict.fromkeys(guards):
            reasons[name] = f"{name}:fault"
            with run.surviving(f"guard:{name}"):
                reasons[name] = self.guards[name].refuses(task, first.decode, attempt.decode) or ""
        return replace(attempt, guards=reasons)

    def _outcome(self, task: Task, so_far: "Consultation", run: "Run") -> Outcome:
        candidates = so_far.candidates()
        first = so_far.first
        chosen = accepted = None if so_far.late else settle(first.decode.answer, candidates, self.policy)
        verdict = None if so_far.route.choice == "keep" else overall(so_far, chosen)
        held_back = run.held_back
        if so_far.control is not None:
            chosen, verdict = (len(candidates), held_back) if held_back else (chosen, verdict)
            unjudged = Verdict(choice="rollback", reason="control")
            candidates += (Candidate(attempt=so_far.control, confidence=None, verdict=unjudged),)
        elif accepted is not None and held_back:
            chosen, verdict = None, held_back
        specs: dict[str, Spec] = {}
        with run.surviving("sources"):
            named = ("none", self.policy.first, *self.policy.sources)
            specs = {name: self.sources[name].spec for name in named}
        seconds = time.perf_counter() - run.started
        return Outcome(
            task=task,
            policy=self.policy,
            baseline=first,
            confidence=so_far.confidence,
            route=so_far.route,
            candidates=candidates,
            verdict=verdict,
            chosen=chosen,
            calls=run.meter.calls,
            usage=run.meter.usage,
            faults=tuple(run.faults),
            seconds=seconds,
            overhead_seconds=seconds - run.meter.busy_seconds,
            decision=run.decision,
            model=run.meter.traits,
            sources=specs,
            value=so_far.value,
            trial=None if run.trial is None else replace(run.trial, accepted=accepted),
            assignment=None if run.assignment is None else replace(run.assignment, accepted=accepted),
        )

    async def _recorded(self, outcome: Outcome, run: "Run", deadline: float | None) -> Outcome:
        if self.journal is None:
            return outcome
        left = None if deadline is None else max(deadline - time.monotonic(), LEAST_RECORDING_SECONDS)
        with run.surviving("journal") as faults:
            await within(left, self.journal.record(decision_of(outcome, time.time())))
        return replace(outcome, faults=tuple(run.faults)) if faults else outcome


@dataclass(slots=True, kw_only=True)
class Consultation:
    """The state of a consultation, filled in step by step so that a timeout still records finished steps."""

    first: Attempt
    control: Attempt | None = None
    """Of a policy that uses memory first, in a shadow or a trial: the pass without memory."""
    confidence: float | None = None
    route: Route = NO_ROUTE
    judged: dict[int, Candidate] = field(default_factory=dict)
    """By position in the policy's sources."""
    late: bool = False
    value: ValueTrace | None = None

    def candidates(self) -> tuple[Candidate, ...]:
        """In the policy's order, not in the order of completion."""
        return tuple(self.judged[place] for place in sorted(self.judged))


@dataclass(slots=True, kw_only=True)
class Run:
    """The id, the trial, the cost and the faults of one answer in progress."""

    meter: Meter
    decision: str
    trial: Trial | None = None
    assignment: Assignment | None = None
    faults: list[Fault] = field(default_factory=list)
    started: float = field(default_factory=time.perf_counter)

    @property
    def serves_first(self) -> bool:
        """Whether a rollout serves the first answer, whatever the policy chooses."""
        return self.assignment is not None and self.assignment.arm == "first"

    @property
    def in_control_group(self) -> bool:
        """Whether this answer belongs to the part of a canary that works without memory."""
        return self.serves_first and self.assignment is not None and self.assignment.mode == "canary"

    @property
    def held_back(self) -> Verdict | None:
        """The verdict on an accepted memory answer that is not served; None if it is served."""
        if self.serves_first:
            return Verdict(choice="rollback", reason="shadow")
        if self.trial is not None and not self.trial.allowed:
            return Verdict(choice="rollback", reason="held out")
        return None

    def surviving(self, stage: str) -> "SurvivedStage":
        """Record a failure in the block and continue; the block gets the faults of this stage."""
        return SurvivedStage(stage, self.faults)

    def likeness(self, similar: Similarity | None) -> Similarity:
        """A similarity that counts as missing where it fails."""

        def measured(one: str, other: str) -> float:
            found = MISSING
            with self.surviving("similarity"):
                assert similar is not None, "a controller is not made without a similarity that it needs"
                found = similar(one, other)
            return found  # noqa: RET504 - a fault leaves it missing

        return measured


class SurvivedStage:
    """A block of third-party code (memory, guards, stores), whose exceptions never lose the first answer.

    A class, because every answer enters several of them.
    """

    __slots__ = ("_all", "_faults", "_stage")

    def __init__(self, stage: str, faults: list[Fault]) -> None:
        self._stage, self._all = stage, faults
        self._faults: list[Fault] = []

    def __enter__(self) -> list[Fault]:
        return self._faults

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        if kind is None or not issubclass(kind, Exception):
            return False
        self._faults.append(Fault(stage=self._stage, error=f"{kind.__name__}: {error}"))
        self._all += self._faults
        return True


def with_value_reason(candidate: Candidate) -> Candidate:
    """The candidate of a value policy; an accepted one is the likeliest to be right."""
    if candidate.verdict.choice == "rollback":
        return candidate
    return replace(candidate, verdict=Verdict(choice="accept", reason="likeliest"))


def overall(so_far: Consultation, chosen: int | None) -> Verdict:
    """The verdict on a consultation: that of the chosen candidate, or why none was chosen."""
    candidates = so_far.candidates()
    if so_far.late:
        return Verdict(choice="rollback", reason="patience")
    if chosen is not None:
        return candidates[chosen].verdict
    decoded = [candidate for candidate in candidates if candidate.attempt.status == "decoded"]
    last = (decoded or candidates)[-1].verdict
    return Verdict(choice="rollback", reason="no agreement") if last.choice == "accept" else last


def run_sync(answer: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to completion, in a separate thread if this one already runs an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(answer)
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(asyncio.run, answer).result()
