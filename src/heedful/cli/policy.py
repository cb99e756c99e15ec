"""Policies from command-line options."""

from collections.abc import Callable, Sequence
from typing import Literal

from heedful import arms
from heedful.errors import UsageError
from heedful.priors import prior_for
from heedful.types import Policy

Arm = Literal["never", "retry", "always", "fixed-budget", "gate", "choose", "value"]
Combine = Literal["cascade", "dual", "agree"]


def policy_of(
    arm: Arm, sources: Sequence[str], signal: str, threshold: float, margin: float, combine: Combine
) -> Policy:
    """The policy of an arm with one source, or with several that `combine` puts together."""
    source, several = sources[0], len(sources) > 1
    if several and arm in ("gate", "choose"):
        return _combined(arm, sources, signal, threshold, margin, combine)
    policies: dict[str, Callable[[], Policy]] = {
        "never": arms.never,
        "retry": lambda: arms.retry(threshold, signal=signal),
        "always": lambda: arms.always(source),
        "fixed-budget": lambda: arms.fixed_budget(source),
        "gate": lambda: arms.gate(source, threshold, signal=signal),
        "choose": lambda: arms.choose(source, threshold, margin, signal=signal),
    }
    return policies[arm]()


class NoPriorError(UsageError):
    """No shipped prior fits a model without log-probs."""


def prior_policy(sources: Sequence[str], margin: float | None, *, logprobs: bool) -> Policy:
    """The shipped prior over these sources, with its own cautious margin unless another one is given."""
    prior = prior_for("text", logprobs=logprobs)
    if prior is None:
        raise NoPriorError(
            "--arm value needs log-probs, which the model does not return: use --arm choose, or fit a value "
            "policy in a study"
        )
    card = prior.card
    used = card.margins["text"] if margin is None else margin
    return arms.value(prior.trees, sources, cost=card.cost, margin=used)


def refuse_combination(arm: Arm, banks: Sequence[str], combine: Combine | None) -> None:
    """Refuse several banks where the arm or the combination cannot use them."""
    if len(banks) > 1 and arm in ("always", "fixed-budget"):
        raise UsageError(f"--arm {arm} takes one bank; use --arm gate or choose with several")
    if combine is not None and arm == "value":
        raise UsageError("--combine has no effect with --arm value, which decides itself; leave it out")
    if len(banks) > 1 and combine == "agree" and arm == "choose":
        raise UsageError("--combine agree compares answers, not confidences: use --arm gate")


def _combined(
    arm: Arm, sources: Sequence[str], signal: str, threshold: float, margin: float, combine: Combine
) -> Policy:
    margins = dict.fromkeys(sources, margin) if arm == "choose" else None
    if combine == "agree":
        return arms.agree(sources, threshold, signal=signal)
    if combine == "dual":
        return arms.dual(sources, threshold, margins, signal=signal)
    return arms.cascade(sources, threshold, margins, signal=signal)
