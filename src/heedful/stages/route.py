"""Decide whether to consult memory."""

from heedful.types import BudgetUse, Policy, Route

from .budget import out_of_budget


def choose_route(confidence: float | None, policy: Policy, spent: BudgetUse = BudgetUse()) -> Route:
    """Consult iff confidence < threshold (eq. 5) and the budget allows it.

    An unknown confidence never triggers consultation, except under a policy that always consults.
    """
    if not policy.sources or policy.threshold == float("-inf"):
        return Route(choice="keep", reason="never")
    if reason := out_of_budget(policy.budget, spent):
        return Route(choice="keep", reason=reason)
    if policy.threshold == float("inf"):
        return Route(choice="consult", reason="always")
    if confidence is None:
        return Route(choice="keep", reason="no confidence")
    if confidence < policy.threshold:
        return Route(choice="consult", reason="unsure")
    return Route(choice="keep", reason="sure")
