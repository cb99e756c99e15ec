"""The arms of an agent study as policies."""

from dataclasses import replace
from math import inf

from heedful import arms
from heedful.agents.guards import AGENT_GUARDS
from heedful.types import Budget, Policy

MEMORY = "memory"
"""The name of the memory source in every policy of an agent."""
SIGNAL = "answer_mean"
"""The mean log-prob of the action's tokens."""
NEVER_MET = 1e9
"""A margin that no second pass meets."""


def fixed_arms(budget: Budget, threshold: float) -> dict[str, Policy]:
    """The arms that need no fitting; retry is routed as the threshold policy, to match its calls."""
    retry = replace(arms.retry(threshold, signal=SIGNAL), guards=AGENT_GUARDS, budget=budget)
    return {
        "no memory": arms.never(),
        "retry": retry,
        "always": arms.always(MEMORY),
        "fixed budget": replace(arms.fixed_budget(MEMORY), guards=("format", "valid")),
    }


def threshold_policy(threshold: float, margin: float, budget: Budget) -> Policy:
    """Consult when unsure, within the budget; accept what is surer by a margin and passes the guards."""
    policy = arms.choose(MEMORY, threshold, margin, signal=SIGNAL)
    return replace(policy, guards=AGENT_GUARDS, budget=budget)


def shadow_policy() -> Policy:
    """Consult memory at every step and never accept: the episode is that of no memory."""
    policy = arms.choose(MEMORY, inf, NEVER_MET, signal=SIGNAL)
    return replace(policy, guards=AGENT_GUARDS)
