"""A decision in words: each step by itself, and all of them as lines of text."""

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
    from heedful.types import FeatureEffect, GainEstimate

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
        f"2 sure?    {route_words(decision)}",
        *(f"  worth?   {worth_words(step)}" for step in (decision.value.steps if decision.value else ())),
    ]
    for candidate in decision.candidates:
        if candidate.record.status == "nothing":
            lines.append(f"3 again    {candidate.record.source}: nothing recalled")
        if candidate.record.status == "decoded":
            lines.append(f"3 again    {candidate.record.source}: {_quoted(candidate.record)}")
            lines += _recalls(candidate.record, texts)
        lines.append(f"4 verdict  {verdict_words(decision, candidate)}")
    lines += _estimate_lines(decision)
    if overruled := overruled_words(decision):
        lines.append(f"4 verdict  {overruled}")
    for fault in decision.faults:
        lines.append(f"  survived {fault.stage}: {fault.error}")
    lines.append(f"→ answer   {decision.answer}")
    lines.append(f"  cost     {cost_words(decision)}")
    return lines


def overruled_words(decision: "Decision") -> str:
    """Why the first answer stands whatever the candidates are worth; empty if nothing overruled them."""
    reason = "" if decision.verdict is None else decision.verdict.reason
    if reason == "patience":
        return "rollback: patience exceeded, so the first answer stands"
    if reason == "held out":
        return "rollback: the coin of a trial held memory out, so the first answer stands"
    if reason == "shadow":
        return "rollback: a shadow serves the answer without memory, whatever the policy accepts"
    return ""


def trial_words(decision: "Decision") -> str:
    """The coin of a trial; empty if the answer took part in none."""
    if decision.trial is None:
        return ""
    allowed = "allowed" if decision.trial.allowed else "held out"
    return f"memory was {allowed}, for {decision.trial.share:.0%} of answers"


def cost_words(decision: "Decision") -> str:
    calls = "1 call" if decision.calls == 1 else f"{decision.calls} calls"
    return (
        f"{calls}, {decision.usage.tokens} tokens ({decision.usage.cached_tokens} cached), "
        f"{decision.seconds:.2f} s, of which heedful's overhead {decision.overhead_seconds * 1000:.1f} ms"
    )


def without_lines(decision: "Decision", answers: Sequence["AnswerWithout"]) -> list[str]:
    """The effect of each recalled entry, measured by decoding without it."""
    rejected = not examined_pass_won(decision)
    title = "without each recalled entry"
    lines = [f"{title}, in the memory answer that was rejected:" if rejected else f"{title}:"]
    subject = "the rejected memory answer" if rejected else "the answer"
    for without in answers:
        effect = "changes the answer" if without.flipped else "no change"
        lines.append(f"  {without.entry}: {effect}: {without.answer!r}")
    sampling = decision.model.sampling
    if sampling and sampling.get("temperature") != 0:
        lines.append(f"  the request was sampled ({_settings(sampling)}): a change may be chance")
    flipping = [without.entry for without in answers if without.flipped]
    lines.append(
        f"{subject} depends on {', '.join(flipping)}"
        if flipping
        else f"{subject} does not depend on a single entry"
    )
    return lines


def _settings(sampling: Mapping[str, int | float | None]) -> str:
    words = [f"{name} {'of the endpoint' if value is None else value}" for name, value in sampling.items()]
    return ", ".join(words)


def without_fields(answers: Sequence["AnswerWithout"]) -> list[dict[str, object]]:
    return [asdict(without) for without in answers]


def _quoted(record: "PassRecord") -> str:
    return repr(record.answer) if record.answer else f"no answer in {record.text!r}"


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3f}"


def route_words(decision: "Decision") -> str:
    """The confidence of the first pass, the threshold, and the route."""
    policy, route = decision.policy, decision.route
    if policy.combine == "value":
        return f"chance of being right {_number(decision.confidence)}: {route.choice} ({route.reason})"
    word = THRESHOLD_WORDS.get(policy.threshold)
    bar = f"the policy consults {word}" if word else f"threshold {policy.threshold:.3f}"
    measured = policy.signal in SIGNALS and SIGNALS[policy.signal].needs == "logprobs"
    confidence = f"{policy.signal} log-prob" if measured else policy.signal
    return f"{confidence} {_number(decision.confidence)}, {bar}: {route.choice} ({route.reason})"


def worth_words(step: "GainEstimate") -> str:
    """Of a value policy: what decided a further pass."""
    return (
        f"{step.source}: expected gain {100 * step.gain:.1f} points, cost {100 * step.cost:.1f}: "
        f"{'ask' if step.asked else 'stop'}"
    )


def reason_words(reason: "FeatureEffect") -> str:
    """A feature that moved the estimate of an answer, and by how much."""
    shown = "not available" if reason.value == MISSING else f"{reason.value:.4g}"
    return f"{reason.effect:+.2f} {FEATURE_WORDS[reason.feature]}: {shown}"


def _estimate_lines(decision: "Decision") -> list[str]:
    """Of a value policy: how likely each answer is right, and the features that moved the estimate most."""
    lines = []
    for answer in () if decision.value is None else decision.value.answers:
        lines.append(f"  right?   {answer.source}: {answer.chance:.0%}")
        lines += [f"           {reason_words(reason)}" for reason in answer.reasons]
    return lines


def verdict_words(decision: "Decision", candidate: "CandidateRecord") -> str:
    """The comparison with the first pass, the guards, and the verdict."""
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
