"""Which shadow decisions speak for a policy: those of the same policy, endpoint and banks."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from heedful.records import Decision
from heedful.rollout.shadow import is_shadow
from heedful.types import Spec

EMBEDDED = "embedded"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowCase:
    """What a report or a promotion is about."""

    policy: str
    """The policy's id."""
    endpoint: str
    banks: frozenset[str]
    model: str = ""
    """One model; empty: whichever models the requests named at the endpoint."""

    def covers(self, decision: Decision) -> bool:
        return (
            is_shadow(decision)
            and decision.policy_id == self.policy
            and decision.model.endpoint == self.endpoint
            and self.model in ("", decision.model.name)
            and bank_names(decision.sources) == self.banks
        )


def case_of(decision: Decision, model: str = "") -> ShadowCase:
    """The case that a shadow decision belongs to; embedded models have one endpoint and differ by name."""
    embedded = decision.model.name if decision.model.endpoint == EMBEDDED else ""
    return ShadowCase(
        policy=decision.policy_id,
        endpoint=decision.model.endpoint,
        banks=bank_names(decision.sources),
        model=model or embedded,
    )


def bank_names(sources: Mapping[str, Spec]) -> frozenset[str]:
    return frozenset(str(spec["bank"]) for spec in sources.values() if spec.get("bank"))


def models_of(decisions: Sequence[Decision]) -> dict[str, int]:
    """How many decisions each model has, the most frequent first."""
    return dict(Counter(decision.model.name for decision in decisions).most_common())


def with_these_entries(decisions: Sequence[Decision], sources: Mapping[str, Spec]) -> int:
    """How many decisions were made with the present content of the banks."""
    now = _contents(sources)
    return sum(_contents(decision.sources) == now for decision in decisions)


def _contents(sources: Mapping[str, Spec]) -> dict[str, object]:
    return {str(spec["bank"]): spec.get("digest") for spec in sources.values() if spec.get("bank")}
