"""The policies that a server answers with, by name, and how they are replaced while it runs."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from heedful.control import Controller
from heedful.dashboard.view import LockedPolicy
from heedful.serve.callers import Caller
from heedful.serve.refusal import RefusalError
from heedful.stages.feasibility import looks_at_confidence, measured_signal
from heedful.types import Traits

DEFAULT = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedPolicy:
    """A policy with its sources."""

    name: str
    controller: Controller
    banks: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Request fields that a lock fixed, for requests that do not set them."""
    locked: LockedPolicy | None = None
    """What its bundle locks, for the dashboard; None: the policy is not locked."""
    usable: bool = True
    """False: the upstream has no signal that a policy could use, so requests pass through."""

    @property
    def can_consult(self) -> bool:
        """Whether memory may replace a first answer."""
        policy = self.controller.policy
        return bool(policy.sources) and (policy.value is not None or policy.threshold > -inf)

    def lacks_signal(self, traits: Traits) -> bool:
        """Whether the upstream does not return what the policy decides by."""
        policy = self.controller.policy
        if not self.usable:
            return True
        if traits.logprobs and traits.top_logprobs >= 2:  # all that any signal needs
            return False
        if policy.value is not None:
            return not traits.logprobs and self.controller.model.traits.logprobs
        return looks_at_confidence(policy) and not measured_signal(policy).supported_by(traits)


Load = Callable[[], Sequence[ServedPolicy]]


@dataclass(slots=True)
class PolicyShelf:
    """Chooses a request's policy; a reload replaces all policies at once.

    A rollout (shadow, canary) belongs in `choose`: it sees the request's policy name and its caller.
    """

    load: Load
    policies: Sequence[ServedPolicy]

    def choose(self, name: str, bank: str, caller: Caller) -> ServedPolicy:
        """The policy that a request names, or the first one; within the rights of its caller."""
        wanted = name or self.policies[0].name
        fitting = [p for p in self.policies if p.name == wanted and caller.rights.allows_policy(p.name)]
        if not fitting:
            raise RefusalError(404, f"there is no policy {wanted!r}{caller.limit}; GET /v1/models names them")
        for policy in fitting:
            if (not bank or bank in policy.banks) and all(map(caller.rights.allows_bank, policy.banks)):
                return policy
        problem = f"policy {wanted!r} has no bank {bank!r}" if bank else f"policy {wanted!r} has no bank"
        raise RefusalError(404, f"{problem}{caller.limit}")

    async def reload(self) -> Sequence[ServedPolicy]:
        """Read the policies again; if that fails, the old ones stay in use and the error is raised."""
        self.policies = await asyncio.to_thread(self.load)
        return self.policies
