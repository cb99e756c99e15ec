"""Decide whether memory is consulted at all."""

from heedful.types import Policy, Route, Spent

from .budget import out_of_budget


def choose_route(confidence: float | None, policy: Policy, spent: Spent = Spent()) -> Route:
    """Consult iff confidence < threshold (eq. 5) and the budget allows it.

    Without a confidence only a policy that always consults may do so: not knowing is no licence.
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
