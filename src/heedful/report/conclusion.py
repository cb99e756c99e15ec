"""The result in a few sentences that say a missing gain as plainly as a gain."""

from dataclasses import dataclass
from typing import Literal

from heedful.evaluation.evaluate import Alternative, Evaluation
from heedful.report.phrases import called, change, p_value, percent, points, share
from heedful.stats.intervals import Interval
from heedful.types import Policy

Tone = Literal["gain", "none", "loss"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    tone: Tone
    headline: str
    further: tuple[str, ...]


def conclude(evaluation: Evaluation) -> Conclusion:
    """What came out, what control added to mere retrieval, and what memory-free controls reached."""
    paired = evaluation.heedful.paired
    tone: Tone = "none" if not paired.clear else "gain" if paired.delta.value > 0 else "loss"
    further = [
        _verdict(evaluation, tone),
        _against_retrieval(evaluation),
        _against_controls(evaluation),
        _without_limit(evaluation),
    ]
    return Conclusion(
        tone=tone,
        headline=_unchanged(evaluation) if idle(evaluation.lock.policy) else _headline(evaluation),
        further=tuple(sentence for sentence in further if sentence),
    )


def idle(policy: Policy) -> bool:
    """Whether a policy is the model without memory."""
    return policy.first == "none" and (not policy.sources or policy.threshold == float("-inf"))


def _questions(evaluation: Evaluation) -> str:
    rows, tasks = evaluation.heedful.n, evaluation.tasks
    seeds = f" ({rows} rows over {len(evaluation.lock.seeds)} seeds)" if rows != tasks else ""
    return f"{tasks} test questions{seeds}"


def _headline(evaluation: Evaluation) -> str:
    arm, base = evaluation.heedful, evaluation.baseline
    paired = arm.paired
    return (
        f"On {_questions(evaluation)} heedful was right on {percent(arm.accuracy.value)} where the model "
        f"without memory was right on {percent(base.accuracy.value)}: {points(paired.delta.value)} points "
        f"{_within(paired.delta)}, p = {p_value(paired.p)}; it spoiled {paired.hurts} "
        f"{_answers(paired.hurts)} and mended {paired.helps}, at {called(arm.calls)} a question."
    )


def _unchanged(evaluation: Evaluation) -> str:
    base = evaluation.baseline
    return (
        f"On {_questions(evaluation)} heedful answered as the model without memory, right on "
        f"{share(base.accuracy)}: the fit side chose to consult nothing, so nothing was gained and "
        "nothing was spoiled, at 1 call a question."
    )


def _verdict(evaluation: Evaluation, tone: Tone) -> str:
    story = evaluation.lock.fit
    if idle(evaluation.lock.policy):
        certificate = story.certificate
        if certificate is None or not certificate.path:
            return "No policy with memory did better on the fit side by cross-validation."
        return (
            f"No policy could be certified to spoil at most {percent(certificate.limit)} of answers "
            f"({certificate.confidence:.0%} confidence), so the baseline was chosen."
        )
    if tone == "none":
        return f"No gain is shown: with {evaluation.tasks} questions the difference cannot be told from 0."
    return "Memory made the answers worse under this policy." if tone == "loss" else ""


def _against_retrieval(evaluation: Evaluation) -> str:
    policy = evaluation.lock.policy
    if policy.first != "none" and not policy.sources:
        return (
            f"The chosen policy is simply {policy.first} memory in every prompt: control adds nothing to it."
        )
    found = next((one for one in evaluation.alternatives if one.kind == "always"), None)
    if found is None:
        return ""
    what = f"{found.arm.name.removeprefix('always-')} memory in every prompt"
    reached = f"right on {percent(found.arm.accuracy.value)}, {_spoiled(found)}"
    delta, mine = found.paired.delta, "Without memory the model" if idle(policy) else "heedful"
    if not found.paired.clear:
        apart = f"in accuracy the two cannot be told apart ({change(delta)} points)"
        return f"Mere retrieval, {what}, was {reached}: {apart}."
    if delta.value > 0:
        return f"{mine} beats mere retrieval, {what} ({reached}), by {change(delta)} points."
    return f"Mere retrieval, {what}, was better: {reached}, ahead by {change(_reversed(delta))} points."


def _reversed(delta: Interval) -> Interval:
    return Interval(low=-delta.high, high=-delta.low, value=-delta.value, n=delta.n)


def _spoiled(found: Alternative) -> str:
    paired = found.arm.paired
    return f"spoiling {paired.hurts} and mending {paired.helps}, at {called(found.arm.calls)}"


def _against_controls(evaluation: Evaluation) -> str:
    found = next((one for one in evaluation.alternatives if one.kind == "control"), None)
    if found is None:
        return ""
    return (
        f"The best control without memory, {found.arm.name}, was right on "
        f"{percent(found.arm.accuracy.value)} at {called(found.arm.calls)} "
        f"(heedful against it: {change(found.paired.delta)} points)."
    )


def _without_limit(evaluation: Evaluation) -> str:
    """What the harm limit costs."""
    found = next((one for one in evaluation.alternatives if one.kind == "unlimited"), None)
    if found is None or idle(found.arm.policy):
        return ""
    return (
        f"Without its harm limit the fit side would have chosen a policy that was right on "
        f"{percent(found.arm.accuracy.value)}, {_spoiled(found)}."
    )


def _within(delta: Interval) -> str:
    return f"[95% interval {points(delta.low)} to {points(delta.high)}]"


def _answers(count: int) -> str:
    return "answer" if count == 1 else "answers"
