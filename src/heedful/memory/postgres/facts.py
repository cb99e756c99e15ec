"""The columns of a decision, by which Postgres finds it."""

from collections.abc import Iterator

from heedful.memory.journal import decision_values
from heedful.records import Decision
from heedful.types import CALLER

DECISION_COLUMNS = (
    *("id", "at", "record", "route", "verdict", "chosen", "confidence", "net_value", "seconds", "calls"),
    *("tokens", "faults", "policy", "memory_first", "memory_chosen", "unchanged", "coin", "person"),
    *("caller", "question", "answer"),
)


def decision_columns(decision: Decision) -> tuple[object, ...]:
    """The values of `DECISION_COLUMNS`; the record itself is complete."""
    chosen, first = decision.chosen, decision.first
    steps = decision.value.steps if decision.value is not None else ()
    return (
        *decision_values(decision),
        decision.route.choice,
        decision.verdict.choice if decision.verdict is not None else None,
        chosen,
        decision.confidence,
        steps[0].gain - steps[0].cost if steps else None,
        decision.seconds,
        decision.calls,
        decision.usage.prompt_tokens + decision.usage.completion_tokens,
        len(decision.faults),
        decision.policy_id,
        bool(first.recalls),
        chosen is not None and bool(decision.candidates[chosen].record.recalls),
        decision.answer == first.answer,
        _coin(decision),
        _storable(decision.task.scope.get("user")),
        _storable(decision.task.scope.get(CALLER)),
        _storable(decision.task.question),
        _storable(decision.answer),
    )


def uses_of(decision: Decision) -> Iterator[tuple[str, str, str]]:
    """Decision, bank and entry: banks that it might have used (without entry), and recalled entries."""
    banks = {name: str(spec["bank"]) for name, spec in decision.sources.items() if spec.get("bank")}
    uses = dict.fromkeys((bank, "") for bank in banks.values())
    for record in decision.passes:
        if record.source in decision.sources:
            bank = banks.get(record.source, "")
            uses |= dict.fromkeys((bank, recall.entry) for recall in record.recalls)
    for bank, entry in uses:
        yield decision.id, bank, entry


def _coin(decision: Decision) -> bool:
    trial = decision.trial
    return trial is not None and (trial.accepted is not None or bool(decision.first.recalls))


def _storable(text: str | None) -> str | None:
    """A text for searching: Postgres cannot store the NUL character, which the record writes as an escape."""
    return None if text is None else text.replace("\x00", "\ufffd")
