"""Guards of an agent's second action: it is valid, it makes progress, and it keeps to the contract."""

from dataclasses import dataclass

from heedful.agents.actions import match_action
from heedful.agents.trail import Trail
from heedful.ports import Contract, Environment, Guard
from heedful.types import Decode, Task

AGENT_GUARDS = ("format", "valid", "progress", "contract")
"""The guards of every controlled arm; the first is heedful's own."""


@dataclass(frozen=True, slots=True)
class ValidActionGuard:
    """The reply names a valid action."""

    trail: Trail

    def refuses(self, task: Task, baseline: Decode, candidate: Decode) -> str | None:
        return None if match_action(candidate.answer, self.trail.now.actions) else "valid:not-allowed"


@dataclass(frozen=True, slots=True)
class StepProgressGuard:
    """The action was not tried here before, and does not go back and forth."""

    trail: Trail

    def refuses(self, task: Task, baseline: Decode, candidate: Decode) -> str | None:
        now, steps = self.trail.now, self.trail.steps
        action = match_action(candidate.answer, now.actions) or candidate.answer
        tried = [step for step in steps if step.observation == now.text and step.action == action]
        if tried:
            return "progress:repeated" if any(step.effect for step in tried) else "progress:no-effect"
        last = [step.action for step in steps[-3:]]
        if len(last) == 3 and last[0] == last[2] and last[1] == action:
            return "progress:ping-pong"
        return None


@dataclass(frozen=True, slots=True)
class WorldContractGuard:
    """The action keeps to the rules that the environment states."""

    trail: Trail
    environment: Environment

    def refuses(self, task: Task, baseline: Decode, candidate: Decode) -> str | None:
        if not isinstance(self.environment, Contract):
            return None
        action = match_action(candidate.answer, self.trail.now.actions) or candidate.answer
        return self.environment.breaks(action)


def agent_guards(trail: Trail, environment: Environment) -> dict[str, Guard]:
    """The guards of one episode by name."""
    return {
        "valid": ValidActionGuard(trail),
        "progress": StepProgressGuard(trail),
        "contract": WorldContractGuard(trail, environment),
    }
