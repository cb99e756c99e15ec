"""A chat request in the hands of the control loop."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass

from heedful.serve.chat_answer import NO_VERDICT
from heedful.serve.request_model import RequestModel
from heedful.serve.serve_metrics import ServeMetrics
from heedful.serve.served_policies import ServedPolicy
from heedful.stages.accept import asked_together
from heedful.types import Outcome


@dataclass(frozen=True, slots=True)
class ControlledChat:
    """A request with its policy, its model and the id of its decision."""

    policy: ServedPolicy
    model: RequestModel
    decision: str

    async def decide(self, metrics: ServeMetrics) -> Outcome:
        """Run the control loop."""
        outcome = await self.policy.controller.answer(
            self.model.chat.task, model=self.model, decision=self.decision
        )
        metrics.count_outcome(self.policy.name, outcome)
        return outcome

    @property
    def serves_first(self) -> bool:
        """Whether the first answer is served whatever the policy decides, so that it need not wait."""
        rollout, first = self.policy.controller.rollout, self.policy.controller.policy.first
        if not self.policy.can_consult:
            return True
        return first == "none" and rollout is not None and rollout.assign(self.model.chat.task).arm == "first"

    @property
    def decides_later(self) -> bool:
        """Whether the policy only watches: the client need not wait for its decision."""
        rollout = self.policy.controller.rollout
        return rollout is not None and rollout.mode == "shadow" and self.serves_first

    @property
    def early_headers(self) -> dict[str, str]:
        """The headers of an answer before its decision; what a shadow would have done is not known yet."""
        kept = {"x-heedful-route": "keep", "x-heedful-verdict": NO_VERDICT}
        return {"x-heedful-decision": self.decision, **({} if self.policy.can_consult else kept)}

    def speculate(self) -> None:
        """Start the second passes that the policy would ask first, together with the first pass."""
        self.model.preparing = asyncio.create_task(self._begin_second_passes())

    async def _begin_second_passes(self) -> None:
        controller = self.policy.controller
        names = controller.policy.sources[
            : asked_together(controller.policy, 0, len(controller.policy.sources))
        ]
        for source in (controller.sources[name] for name in names):
            if source.memory_free_first:  # a critic needs the first answer
                continue
            with suppress(Exception):  # sources are other people's code; the controller reports their faults
                plan = await source.prepare(self.model.chat.task, None)
                if plan is not None:
                    self.model.begin(plan.prompt)
