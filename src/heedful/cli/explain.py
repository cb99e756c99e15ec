"""Explain a decision as text."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING

from heedful.credit import examined_pass_won
from heedful.decisions import THRESHOLD_WORDS
from heedful.errors import HeedfulError
from heedful.sources.memory import memory_settings
from heedful.stages.confidence import SIGNALS
from heedful.stages.value_features import FEATURE_WORDS, MISSING

if TYPE_CHECKING:
    from heedful.credit import AnswerWithout
    from heedful.ports import Store
    from heedful.records import CandidateRecord, Decision, PassRecord, RecallRef

EntryTexts = Mapping["RecallRef", str]


async def entry_texts(decision: "Decision", store: "Store") -> EntryTexts:
    """The texts of the recalled entries, in the versions that were recalled."""
    texts = {}
    for record in decision.passes:
        settings = memory_settings(decision.sources.get(record.source, {}))
        for recall in record.recalls:
            try:
                bank = "" if settings is None else settings.bank
                texts[recall] = (await store.version(bank, recall.entry, recall.version)).text
            except HeedfulError:
                texts[recall] = f"(version {recall.version[:12]}, not in this store)"
    return texts


def explain(decision: "Decision", texts: EntryTexts) -> list[str]:
    """The decision step by step, as lines of text."""
    model = decision.model
    lines = [
        f"decision {decision.id}, {datetime.fromtimestamp(decision.at):%Y-%m-%d %H:%M:%S}, "
        f"{model.name} ({model.endpoint})",
        f"question   {decision.task.question or decision.task.search_text}",
        f"1 answer   {_quoted(decision.first)}",
        *_recalls(decision.first, texts),
        f"2 sure?    {_routed(decision)}",
        *_worth(decision),
    ]
    for candidate in decision.candidates:
        if candidate.record.status == "nothing":
            lines.append(f"3 again    {candidate.record.source}: nothing recalled")
        if candidate.record.status == "decoded":
            lines.append(f"3 again    {candidate.record.source}: {_quoted(candidate.record)}")
            lines += _recalls(candidate.record, texts)
        lines.append(f"4 verdict  {_judged(decision, candidate)}")
    if decision.verdict is not None and decision.verdict.reason == "patience":
        lines.append("4 verdict  rollback: patience exceeded, so the first answer stands")
    lines += _estimates(decision)
    if decision.verdict is not None and decision.verdict.reason == "held out":
        lines.append("4 verdict  rollback: the coin of a trial held memory out, so the first answer stands")
    for fault in decision.faults:
        lines.append(f"  survived {fault.stage}: {fault.error}")
    calls = "1 call" if decision.calls == 1 else f"{decision.calls} calls"
    lines.append(f"→ answer   {decision.answer}")
    lines.append(
        f"  cost     {calls}, {decision.usage.tokens} tokens ({decision.usage.cached_tokens} cached), "
        f"{decision.seconds:.2f} s, of which heedful's overhead {decision.overhead_seconds * 1000:.1f} ms"
    )
    return lines


def without_lines(decision: "Decision", answers: Sequence["AnswerWithout"]) -> list[str]:
    """The effect of each recalled entry, measured by decoding without it."""
    rejected = not examined_pass_won(decision)
    title = "without each recalled entry"
    lines = [f"{title}, in the memory answer that was rejected:" if rejected else f"{title}:"]
    subject = "the rejected memory answer" if rejected else "the answer"
    for without in answers:
        effect = "changes the answer" if without.flipped else "no change"
        lines.append(f"  {without.entry}: {effect}: {without.answer!r}")
    flipping = [without.entry for without in answers if without.flipped]
    lines.append(
        f"{subject} depends on {', '.join(flipping)}"
        if flipping
        else f"{subject} does not depend on a single entry"
    )
    return lines


def without_fields(answers: Sequence["AnswerWithout"]) -> list[dict[str, object]]:
    return [asdict(without) for without in answers]


def _quoted(record: "PassRecord") -> str:
    return repr(record.answer) if record.answer else f"no answer in {record.text!r}"


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3f}"


def _routed(decision: "Decision") -> str:
    policy, route = decision.policy, decision.route
    if policy.combine == "value":
        return f"chance of being right {_number(decision.confidence)}: {route.choice} ({route.reason})"
    word = THRESHOLD_WORDS.get(policy.threshold)
    bar = f"the policy consults {word}" if word else f"threshold {policy.threshold:.3f}"
    measured = policy.signal in SIGNALS and SIGNALS[policy.signal].needs == "logprobs"
    confidence = f"{policy.signal} log-prob" if measured else policy.signal
    return f"{confidence} {_number(decision.confidence)}, {bar}: {route.choice} ({route.reason})"


def _worth(decision: "Decision") -> list[str]:
    """Of a value policy: what decided each further pass."""
    steps = [] if decision.value is None else decision.value.steps
    return [
        f"  worth?   {step.source}: expected gain {100 * step.gain:.1f} points, cost {100 * step.cost:.1f}: "
        + ("ask" if step.asked else "stop")
        for step in steps
    ]


def _estimates(decision: "Decision") -> list[str]:
    """Of a value policy: how likely each answer is right, and the features that moved the estimate most."""
    lines = []
    for answer in () if decision.value is None else decision.value.answers:
        lines.append(f"  right?   {answer.source}: {answer.chance:.0%}")
        for reason in answer.reasons:
            shown = "not available" if reason.value == MISSING else f"{reason.value:.4g}"
            lines.append(f"           {reason.effect:+.2f} {FEATURE_WORDS[reason.feature]}: {shown}")
    return lines


def _judged(decision: "Decision", candidate: "CandidateRecord") -> str:
    record, verdict, policy = candidate.record, candidate.verdict, decision.policy
    if record.status == "failed":
        return f"rollback: the pass of {record.source} failed"
    if record.status == "nothing":
        return f"rollback: nothing recalled from {record.source}"
    name = "chance" if policy.combine == "value" else "confidence"
    compared = f"{name} {_number(candidate.confidence)} against {_number(decision.confidence)}"
    margin = (policy.margins or {}).get(record.source) if decision.value is None else decision.value.margin
    if margin is not None:
        compared += f" + margin {margin:g}"
    refused = [reason for guard in policy.guards if (reason := record.guards.get(guard))]
    guards = f"guards refuse: {', '.join(refused)}" if refused else "guards pass"
    return f"{compared}; {guards}: {verdict.choice} ({verdict.reason})"


def _recalls(record: "PassRecord", texts: EntryTexts) -> list[str]:
    return [f"           {recall.score:.2f} {recall.entry}: {texts[recall]}" for recall in record.recalls]
