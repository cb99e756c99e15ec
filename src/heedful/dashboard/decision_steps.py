"""The steps of a decision in words, much as `heedful why` prints them."""

from collections.abc import Sequence

from heedful.dashboard.markup import Markup, element, join
from heedful.dashboard.shortened import shortened
from heedful.explain import (
    overruled_words,
    reason_words,
    route_words,
    trial_words,
    verdict_words,
    worth_words,
)
from heedful.records import Decision
from heedful.stages.value_features import FEATURE_WORDS, MISSING
from heedful.types import FeatureEffect

ABSENT = {
    "friend": "no other pass with log-probs agrees",
    "rival": "no other pass with log-probs disagrees",
    "share": "there is no other pass",
    "recall": "nothing was recalled",
}
"""By the first word of a feature: why it may have no value."""


def decision_steps(decision: Decision) -> Markup:
    """What decided, step by step, and the features behind the estimates of a value policy."""
    value = decision.value
    steps: list[tuple[str, str]] = [("Sure?", route_words(decision))]
    steps += [("Worth it?", worth_words(step)) for step in (() if value is None else value.steps)]
    steps += [(f"Verdict on {c.record.source}", verdict_words(decision, c)) for c in decision.candidates]
    steps += [("Overruled", words) for words in (overruled_words(decision),) if words]
    steps += [("Trial", words) for words in (trial_words(decision),) if words]
    steps += [(f"Survived fault in {fault.stage}", fault.error) for fault in decision.faults]
    estimates = [
        join(
            [
                element(
                    "p", f"{_whose(answer.source, decision)}: {answer.chance:.0%} likely right, because of"
                ),
                element("ul", [element("li", effect_words(reason)) for reason in answer.reasons]),
            ]
        )
        for answer in (() if value is None else value.answers)
    ]
    return join([pairs(steps), *estimates])


def effect_words(reason: FeatureEffect) -> str:
    """A feature and its effect; of a missing feature, why it is missing."""
    why = ABSENT.get(reason.feature.partition("_")[0])
    if reason.value != MISSING or why is None:
        return reason_words(reason)
    return f"{reason.effect:+.2f} {why} (missing: {FEATURE_WORDS[reason.feature]})"


def _whose(source: str, decision: Decision) -> str:
    return "First answer" if source == decision.first.source else f"Answer of {source}"


def pairs(named: Sequence[tuple[str, str | Markup]]) -> Markup:
    """Names with their words, one below the other."""
    rows = [
        join([element("dt", name), element("dd", words if isinstance(words, Markup) else shortened(words))])
        for name, words in named
    ]
    return element("dl", rows, class_="pairs")
