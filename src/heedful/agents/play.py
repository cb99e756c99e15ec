"""Play one episode: at each step act, consult memory if the policy says so, and execute one action."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from heedful.agents.actions import match_action
from heedful.agents.episode_record import End, EpisodeRecord, StepRecord
from heedful.agents.guards import agent_guards
from heedful.agents.step_task import ActingSettings, step_task
from heedful.agents.trail import Trail
from heedful.agents.world_worker import WorldWorker
from heedful.control import Controller
from heedful.decisions import decision_of, policy_id
from heedful.episode import Episode
from heedful.errors import ModelError, RequestError, WorldError
from heedful.ports import Model, Source
from heedful.types import EpisodeSide, Message, Observation, Outcome, Policy, digest_of

INVALID_IN_A_ROW = 20
"""An episode ends after this many steps in a row without a valid action."""
SourcesOf = Callable[[str], Mapping[str, Source]]
"""The sources for episodes of a type of goal: memory about other types stays out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """A policy under the name by which it is reported."""

    name: str
    policy: Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class StepView:
    """A step as it happened, for somebody who watches."""

    number: int
    observation: Observation
    outcome: Outcome
    record: StepRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Player:
    """Plays episodes of one side with one model."""

    model: Model
    settings: ActingSettings
    example: tuple[Message, ...] = ()
    """Turns of a solved episode, at the beginning of every prompt."""
    sources: SourcesOf = lambda kind: {}
    patience: float | None = 600.0
    """Time limit of a consultation in seconds."""
    remember: Callable[[str], object] = lambda text: None
    """Stores a text that the record names by digest."""
    watch: Callable[[StepView], object] = lambda step: None

    async def play(
        self, worker: WorldWorker, side: EpisodeSide, seed: int, arm: Arm, script: Sequence[str] = ()
    ) -> EpisodeRecord:
        """Play an episode to its end; a world that fails is started again once.

        `script` holds actions to execute first, without a decode.
        """
        play = Play(player=self, worker=worker, arm=arm, seed=seed)
        try:
            await play.run(script)
        except WorldError:
            play = Play(player=self, worker=worker, arm=arm, seed=seed)
            try:
                await play.run(script)
            except WorldError as error:
                play.end, play.error = "environment", str(error)
        return play.record(side, tuple(script))


@dataclass(slots=True, kw_only=True)
class Play:
    """An episode in progress."""

    player: Player
    worker: WorldWorker
    arm: Arm
    seed: int
    steps: list[StepRecord] = field(default_factory=list)
    trail: Trail = field(default_factory=lambda: Trail(now=Observation(text=""), goal=""))
    end: End = "steps"
    error: str = ""

    async def run(self, script: Sequence[str]) -> None:
        """Reset the world, execute the script, then act until the episode ends."""
        first = await self.worker.reset(self.seed)
        self.trail = Trail(now=first, goal=first.goal or first.text)
        self.player.remember(self.trail.goal)
        for action in script:
            self.trail.move(action, await self.worker.step(action))
        episode = Episode(controller=self._controller(first.kind))
        while self._may_go_on():
            outcome = await self._decide(episode)
            if outcome is None:
                return
            await self._execute(outcome)

    def _controller(self, kind: str) -> Controller:
        player = self.player
        return Controller(
            model=player.model,
            policy=self.arm.policy,
            sources=player.sources(kind),
            guards=agent_guards(self.trail, self.worker.environment),
            patience=player.patience,
        )

    def _may_go_on(self) -> bool:
        """Whether there is another step; sets the reason of the end if not."""
        trail, invalid = self.trail, self.steps[-INVALID_IN_A_ROW:]
        if trail.now.done:
            self.end = "done"
        elif len(trail.steps) >= self.player.settings.steps:
            self.end = "steps"
        elif len(invalid) == INVALID_IN_A_ROW and not any(step.valid for step in invalid):
            self.end = "nonsense"
        elif trail.in_loop():
            self.end = "loop"
        else:
            return True
        return False

    async def _decide(self, episode: Episode) -> Outcome | None:
        """The outcome of this step; None if the model cannot answer. A prompt too long is shortened once."""
        for last_try in (False, True):
            id = f"{self.seed}:{len(self.trail.steps)}"
            task = step_task(self.trail, self.player.settings, id, self.player.example)
            episode.earlier = ()  # the history in the question is shorter than past turns
            try:
                return await episode.step(task)
            except RequestError as error:
                if last_try or not self.trail.shorten():
                    self.end, self.error = "context", str(error)
                    return None
            except ModelError as error:
                self.end, self.error = "model", str(error)
                return None
        return None

    async def _execute(self, outcome: Outcome) -> None:
        """Execute the chosen action; one that is not valid is never preferred to the first pass's."""
        before, actions = self.trail.now, self.trail.now.actions
        first = outcome.baseline.decode.answer
        first_action = match_action(first, actions) or first
        second = [match_action(candidate.attempt.decode.answer, actions) for candidate in outcome.candidates]
        taken = None if outcome.chosen is None else second[outcome.chosen]
        action = taken or first_action
        after = await self.worker.step(action)
        self.trail.move(action, after)
        self.player.remember(before.text)
        decision = decision_of(outcome, at=0.0)
        step = StepRecord(
            observation=text_digest(before.text),
            choices=len(actions),
            first=decision.first,
            confidence=outcome.confidence,
            route=outcome.route,
            candidates=decision.candidates,
            verdict=outcome.verdict,
            chosen=outcome.chosen if taken else None,
            action=action,
            first_action=first_action,
            second_action=next((named for named in reversed(second) if named), ""),
            valid=match_action(action, actions) is not None,
            score=after.score,
            calls=outcome.calls,
            usage=outcome.usage,
            faults=outcome.faults,
        )
        self.steps.append(step)
        self.player.watch(
            StepView(number=len(self.trail.steps), observation=before, outcome=outcome, record=step)
        )

    def record(self, side: EpisodeSide, script: tuple[str, ...]) -> EpisodeRecord:
        return EpisodeRecord(
            side=side,
            arm=self.arm.name,
            policy=policy_id(self.arm.policy),
            model=self.player.model.traits.fingerprint,
            seed=self.seed,
            script=script,
            goal=text_digest(self.trail.goal),
            kind=self.trail.now.kind,
            steps=tuple(self.steps),
            score=self.trail.now.score,
            end=self.end,
            error=self.error,
        )


def text_digest(text: str) -> str:
    """The name of a text in records."""
    return digest_of(text)[:16]
