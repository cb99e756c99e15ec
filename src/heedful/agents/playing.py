"""Play many episodes: resume where an earlier run stopped, and continue after an episode that failed."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from heedful.agents.agent_study import AgentSetup
from heedful.agents.agent_workspace import AgentFiles, EpisodeKey, newest
from heedful.agents.decode_cache import CachedModel
from heedful.agents.episode_record import EpisodeRecord
from heedful.agents.play import Arm, Player
from heedful.agents.world_worker import WorldWorker
from heedful.decisions import policy_id
from heedful.errors import ModelError, WorldError
from heedful.models.fleet import slots_of
from heedful.ports import Model
from heedful.types import EpisodeSide

FAILURES_IN_A_ROW = 5
"""After this many different episodes failed in a row, the model or the environment is taken to be down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeJob:
    """An episode to play."""

    side: EpisodeSide
    arm: Arm
    seed: int
    script: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayingProgress:
    done: int
    total: int
    decoded: int
    saved: int
    """Decodes that another arm, or an interrupted run, had already made."""
    failed: int = 0


OnPlaying = Callable[[PlayingProgress], None]
OnStage = Callable[[str, PlayingProgress], None]


def in_stage(tell: OnStage, stage: str) -> OnPlaying:
    """Tells the progress of one stage."""
    return lambda progress: tell(stage, progress)


@dataclass(slots=True, kw_only=True)
class EpisodeRunner:
    """Plays the episodes that the files lack."""

    setup: AgentSetup
    files: AgentFiles
    model: Model
    retry_failed: bool = False
    cached: CachedModel = field(init=False)
    _unsettled: list[EpisodeRecord] = field(default_factory=list)
    """Failures since the last success: written only after another episode succeeds."""

    def __post_init__(self) -> None:
        self.cached = CachedModel(model=self.model, file=self.files.decodes)

    async def play(self, jobs: Sequence[EpisodeJob], on_progress: OnPlaying) -> list[EpisodeRecord]:
        """The records of all jobs, in their order."""
        known = newest(self.files.episodes.rows)
        waiting = iter([job for job in jobs if self._is_missing(known.get(self._key(job)))])
        records = {self._key(job): known.get(self._key(job)) for job in jobs}
        left = sum(self._is_missing(record) for record in records.values())
        total, failed = len(jobs), 0

        def tell() -> None:
            cached = self.cached
            on_progress(
                PlayingProgress(
                    done=total - left,
                    total=total,
                    decoded=cached.decoded,
                    saved=cached.saved,
                    failed=failed,
                )
            )

        async def work() -> None:
            nonlocal left, failed
            worker = WorldWorker(self.setup.make, self.setup.study.act.world_patience)
            try:
                for job in waiting:
                    record = await self._player().play(worker, job.side, job.seed, job.arm, job.script)
                    self._keep(record)
                    records[self._key(job)] = record
                    left, failed = left - 1, failed + record.failed
                    tell()
            finally:
                worker.close()

        tell()
        slots = slots_of(self.model, self.setup.study.model.slots)
        workers = [asyncio.create_task(work()) for _ in range(slots if left else 0)]
        try:
            await asyncio.gather(*workers)
        finally:
            for task in workers:
                task.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
        self._settle()
        return [record for job in jobs if (record := records[self._key(job)]) is not None]

    def _player(self) -> Player:
        setup, files = self.setup, self.files
        return Player(
            model=self.cached,
            settings=setup.study.acting,
            example=setup.example,
            sources=setup.sources,
            remember=files.remember,
        )

    def _is_missing(self, record: EpisodeRecord | None) -> bool:
        return record is None or (self.retry_failed and record.failed)

    def _keep(self, record: EpisodeRecord) -> None:
        """Store a record; failures of many episodes in a row end the run, which can be resumed."""
        if not record.failed:
            self._settle()
            self.files.episodes.append(record)
            return
        self._unsettled.append(record)
        if len({failed.seed for failed in self._unsettled}) >= FAILURES_IN_A_ROW:
            kind = WorldError if record.end == "environment" else ModelError
            raise kind(
                f"{FAILURES_IN_A_ROW} episodes failed in a row, the last one with: {record.error}; "
                "played episodes are kept, run the same command again"
            )

    def _settle(self) -> None:
        """Write the pending failures: the model and the environment work, so they concern their episodes."""
        for record in self._unsettled:
            self.files.episodes.append(record)
        self._unsettled = []

    def _key(self, job: EpisodeJob) -> EpisodeKey:
        fingerprint = self.model.traits.fingerprint
        return (job.side, job.arm.name, policy_id(job.arm.policy), fingerprint, job.seed, job.script)


def jobs_of(side: EpisodeSide, arms: Sequence[Arm], seeds: Sequence[int]) -> list[EpisodeJob]:
    """Every arm on every episode, episode by episode: an interrupted run has complete pairs."""
    return [EpisodeJob(side=side, arm=arm, seed=seed) for seed in seeds for arm in arms]
