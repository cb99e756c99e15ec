"""Make memory ready before the first request."""

import time
from collections.abc import Sequence

from heedful.ports import Bank
from heedful.serve.served_policies import ServedPolicy
from heedful.sources.memory import MemorySource
from heedful.types import Audience

QUESTION = "Is memory ready?"


async def warm_up(policies: Sequence[ServedPolicy]) -> dict[str, str]:
    """Load every bank: its weights, its vectors and its index; by bank, the problems of those that fail."""
    problems: dict[str, str] = {}
    for policy in policies:
        controller = policy.controller
        for name in (controller.policy.first, *controller.policy.sources):
            source = controller.sources[name]
            if isinstance(source, MemorySource):
                try:
                    await _recall_once(source.bank)
                except Exception as error:  # banks are other people's code, and memory never costs an answer
                    problems[source.bank.name] = str(error) or type(error).__name__
    return problems


async def _recall_once(bank: Bank) -> None:
    """Recall for everybody; if entries are limited to a scope, also for the first of these scopes."""
    await bank.recall(QUESTION, limit=1)
    scope = next((entry.scope for entry in bank.entries() if entry.live and entry.scope), None)
    if scope is not None:
        await bank.recall(QUESTION, limit=1, audience=Audience(scope=scope, at=time.time()))
