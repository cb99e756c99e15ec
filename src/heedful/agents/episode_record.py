"""The record of an episode: every step with its passes, and how the episode ended."""

from dataclasses import dataclass
from typing import Literal

from heedful.records import CandidateRecord, PassRecord
from heedful.types import NO_USAGE, EpisodeSide, Fault, Route, Usage, Verdict

SUCCESS = 1.0 - 1e-9
End = Literal["done", "steps", "loop", "nonsense", "context", "model", "environment"]
"""Why an episode ended: the environment said so; the step limit; no progress; no valid action for many
steps; the prompt was too long; the model or the environment failed."""
FAILURES: tuple[End, ...] = ("context", "model", "environment")


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """One step; texts of observations are stored by digest, those of entries are in the bank."""

    observation: str
    """Digest of the observation before the action."""
    choices: int
    """Number of valid actions."""
    first: PassRecord
    confidence: float | None
    route: Route
    candidates: tuple[CandidateRecord, ...]
    verdict: Verdict | None
    chosen: int | None
    """Index of the candidate whose action was executed; None: the first pass's."""
    action: str
    """The executed action."""
    first_action: str
    """The action of the first pass, as it would have been executed."""
    second_action: str
    """The valid action of the last second pass; empty if there was none."""
    valid: bool
    score: float
    """After the action."""
    calls: int
    usage: Usage = NO_USAGE
    faults: tuple[Fault, ...] = ()

    @property
    def routed(self) -> bool:
        """Whether memory was asked: by a second pass, or in the first prompt."""
        return self.route.choice == "consult" or self.first.source != "none"

    @property
    def accepted(self) -> bool:
        """Whether an answer with memory, or of another second pass, was taken."""
        return self.chosen is not None or self.first.source != "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeRecord:
    """A played episode."""

    side: EpisodeSide
    arm: str
    policy: str
    """The id of the policy."""
    model: str
    """Fingerprint of the model."""
    seed: int
    script: tuple[str, ...] = ()
    """Actions that were executed without a decode before the first step."""
    goal: str
    """Digest of the goal's text."""
    kind: str = ""
    steps: tuple[StepRecord, ...] = ()
    score: float = 0.0
    end: End
    error: str = ""

    @property
    def key(self) -> tuple[EpisodeSide, str, str, str, int, tuple[str, ...]]:
        return (self.side, self.arm, self.policy, self.model, self.seed, self.script)

    @property
    def success(self) -> bool:
        return self.score >= SUCCESS

    @property
    def failed(self) -> bool:
        """Whether the model or the environment failed, so that the score says nothing about the arm."""
        return self.end in FAILURES

    @property
    def calls(self) -> int:
        return sum(step.calls for step in self.steps)

    @property
    def routed(self) -> int:
        return sum(step.routed for step in self.steps)

    @property
    def accepted(self) -> int:
        return sum(step.accepted for step in self.steps)

    @property
    def invalid(self) -> int:
        return sum(not step.valid for step in self.steps)
