"""What a policy depends on, and whether it is feasible."""

from collections.abc import Collection
from math import inf, isnan

from heedful.errors import PolicyError
from heedful.stages.accept import needs_confidence
from heedful.stages.confidence import Signal, signal_named
from heedful.stages.value import with_priors
from heedful.stages.value_features import ANSWER_FEATURES, GAIN_FEATURES
from heedful.types import Policy, Traits, ValueRule


def looks_at_confidence(policy: Policy) -> bool:
    """Whether any decision of the policy depends on a confidence."""
    routed = policy.sources != () and abs(policy.threshold) != inf
    return routed or (policy.threshold != -inf and needs_confidence(policy))


def measured_signal(policy: Policy) -> Signal:
    """The signal that a policy measures; calibrators use the signals that come with log-probs."""
    return signal_named("mean" if policy.calibrators is not None else policy.signal)


def refuse_infeasible(
    policy: Policy,
    traits: Traits,
    sources: Collection[str],
    critics: Collection[str],
    guards: Collection[str],
) -> None:
    """Raise `PolicyError` if the model, the sources or the guards do not support the policy.

    `critics` are the sources that need a memory-free first pass.
    """
    named = (policy.first, *policy.sources)
    _refuse_unknown("source", named, sources)
    _refuse_unknown("guard", policy.guards, guards)
    for name in named:
        if policy.first != "none" and name in critics:
            raise PolicyError(f"the source {name!r} needs a memory-free first pass; set first = 'none'")
    for what, known in (
        ("margins", policy.margins),
        ("calibrators", None if policy.calibrators is None else policy.calibrators.sources),
    ):
        if known is not None and (missing := [name for name in policy.sources if name not in known]):
            raise PolicyError(f"the policy has {what} but none for {', '.join(map(repr, missing))}")
    if (policy.combine == "value") != (policy.value is not None):
        raise PolicyError("the combination 'value' and a value rule go together")
    if policy.value is not None:
        _refuse_other_rule(policy.value, policy.sources)
    if isnan(policy.threshold):
        raise PolicyError("the policy's threshold is not a number")
    signal = measured_signal(policy)
    if looks_at_confidence(policy) and not signal.supported_by(traits):
        raise PolicyError(
            f"the signal {signal.name!r} needs {signal.needs}, which {traits.name} does not return; "
            "choose agreement, ptrue or stated, or run heedful probe to see what it supports"
        )


def _refuse_other_rule(rule: ValueRule, sources: Collection[str]) -> None:
    if len(rule.costs) != len(sources):
        raise PolicyError(f"the value rule was fitted for {len(rule.costs)} sources, not {len(sources)}")
    for trees in with_priors(rule.trees):
        if (trees.answer.features, trees.gain.features) != (ANSWER_FEATURES, GAIN_FEATURES):
            raise PolicyError("the value rule was fitted by another version of heedful: fit it again")


def _refuse_unknown(what: str, names: Collection[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            raise PolicyError(
                f"the policy names the {what} {name!r}, which is not among {', '.join(sorted(known))}"
            )
