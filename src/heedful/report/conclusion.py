"""The result in a few sentences, which report a missing gain as plainly as a gain."""

from dataclasses import dataclass
from typing import Literal

from heedful.evaluation.arm_results import BASELINE
from heedful.evaluation.evaluate import Alternative, Evaluation
from heedful.protocol.fit_result import HarmCertificate
from heedful.report.phrases import (
    called,
    change,
    p_value,
    percent,
    points,
    promise_name,
    promise_words,
    share,
)
from heedful.stats.intervals import Interval
from heedful.types import Policy

Tone = Literal["gain", "none", "loss"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    tone: Tone
    headline: str
    further: tuple[str, ...]


def conclude(evaluation: Evaluation) -> Conclusion:
    """The result, what control added to plain retrieval, and what memory-free controls reached."""
    paired = evaluation.heedful.paired
    tone: Tone = "none" if not paired.clear else "gain" if paired.delta.value > 0 else "loss"
    further = [
        _verdict(evaluation, tone),
        _harm(evaluation),
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
    """Whether a policy always answers as the model without memory."""
    asks = policy.value is not None or policy.threshold != float("-inf")
    return policy.first == "none" and (not policy.sources or not asks)


def _questions(evaluation: Evaluation) -> str:
    rows, tasks = evaluation.heedful.n, evaluation.tasks
    seeds = f" ({rows} rows over {len(evaluation.lock.seeds)} seeds)" if rows != tasks else ""
    return f"{tasks} test questions{seeds}"


def _headline(evaluation: Evaluation) -> str:
    arm, base = evaluation.heedful, evaluation.baseline
    paired = arm.paired
    return (
        f"On {_questions(evaluation)}, heedful was right on {percent(arm.accuracy.value)} and the model "
        f"without memory on {percent(base.accuracy.value)}: {points(paired.delta.value)} points "
        f"{_within(paired.delta)}, p = {p_value(paired.p)}. It fixed {paired.helps} "
        f"{_answers(paired.helps)} and broke {paired.hurts}, at {called(arm.calls)} per question."
        f"{_certified(evaluation.lock.fit.certificate)}"
    )


def _certified(certificate: HarmCertificate | None) -> str:
    """What the fit side certified; under a promise, only a certified policy or the baseline is chosen."""
    if certificate is None:
        return ""
    return (
        f" On the fit side, the policy was certified {promise_words(certificate)} "
        f"({certificate.confidence:.0%} confidence)."
    )


def _unchanged(evaluation: Evaluation) -> str:
    base = evaluation.baseline
    return (
        f"On {_questions(evaluation)}, heedful answered as the model without memory, right on "
        f"{share(base.accuracy)}: the policy chosen on the fit side consults nothing, so it fixed and "
        "broke no answer, at 1 call per question."
    )


def _verdict(evaluation: Evaluation, tone: Tone) -> str:
    story = evaluation.lock.fit
    if idle(evaluation.lock.policy):
        certificate = story.certificate
        if certificate is None or not any(one.path for one in story.certificates):
            return "No policy with memory did better on the fit side in cross-validation."
        return (
            f"No policy could be certified {promise_words(certificate)} "
            f"({certificate.confidence:.0%} confidence), so the baseline was chosen."
        )
    if tone == "none":
        return f"No gain is shown: with {evaluation.tasks} questions, the difference is not significant."
    return "Memory made the answers worse under this policy." if tone == "loss" else ""


def _harm(evaluation: Evaluation) -> str:
    """What the test side proves about harm by itself, against both references."""
    if idle(evaluation.lock.policy):
        return ""
    harm, noise = evaluation.harm.heedful, evaluation.harm.of(BASELINE).independent
    plain_first = evaluation.lock.policy.first == "none"
    reference = "first pass" if plain_first else "pass without memory"
    reused = "which a rollback reuses" if plain_first else "which this policy does not start with"
    sentence = (
        f"Compared with the recorded {reference}, {reused}, it hurt {harm.shared.hurts} of "
        f"{harm.shared.tasks} questions: at most {percent(harm.shared.upper)}, by the test side alone, with "
        "95% confidence."
    )
    if harm.independent is None or noise is None:
        return sentence
    return (
        f"{sentence} Compared with an independent decode of the same prompt ({evaluation.harm.reference}), "
        f"it hurt {harm.independent.hurts} (at most {percent(harm.independent.upper)}), and the "
        f"{reference} itself {noise.hurts}, which is the noise of decoding."
    )


def _against_retrieval(evaluation: Evaluation) -> str:
    policy = evaluation.lock.policy
    if policy.first != "none" and not policy.sources:
        return f"The chosen policy puts {policy.first} memory in every prompt; control adds nothing to that."
    retrieval = _best(evaluation, "always")
    if retrieval is None:
        return ""
    bank = retrieval.arm.name.removeprefix("always-")
    where = f"({bank} memory in every prompt)"
    reached = f"right on {percent(retrieval.arm.accuracy.value)}, {_effects(retrieval)}"
    delta, mine = retrieval.paired.delta, "The model without memory" if idle(policy) else "heedful"
    if not retrieval.paired.clear:
        apart = f"the difference is not significant (heedful − retrieval: {change(delta)} points)"
        return f"Plain retrieval {where} was {reached}; {apart}."
    if delta.value > 0:
        return f"{mine} beats plain retrieval {where}, which was {reached}, by {change(delta)} points."
    return f"Plain retrieval {where} was better: {reached}, ahead by {change(_reversed(delta))} points."


def _reversed(delta: Interval) -> Interval:
    return Interval(low=-delta.high, high=-delta.low, value=-delta.value, n=delta.n)


def _effects(alternative: Alternative) -> str:
    paired = alternative.arm.paired
    return (
        f"fixing {paired.helps} {_answers(paired.helps)} and breaking {paired.hurts}, "
        f"at {called(alternative.arm.calls)}"
    )


def _best(evaluation: Evaluation, kind: str) -> Alternative | None:
    """The alternative of a kind that was right most often."""
    return next((one for one in evaluation.alternatives if one.kind == kind), None)


def _against_controls(evaluation: Evaluation) -> str:
    control = _best(evaluation, "control")
    if control is None:
        return ""
    return (
        f"The best control without memory, {control.arm.name}, was right on "
        f"{percent(control.arm.accuracy.value)} at {called(control.arm.calls)} "
        f"(heedful − {control.arm.name}: {change(control.paired.delta)} points)."
    )


def _without_limit(evaluation: Evaluation) -> str:
    """What the harm limit or the promise costs."""
    unlimited = _best(evaluation, "unlimited")
    if unlimited is None or idle(unlimited.arm.policy):
        return ""
    promise = promise_name(evaluation.lock.fit.certificate)
    return (
        f"Without the {promise}, the fit side would have chosen a policy that was right on "
        f"{percent(unlimited.arm.accuracy.value)}, {_effects(unlimited)}."
    )


def _within(delta: Interval) -> str:
    return f"[95% interval {points(delta.low)} to {points(delta.high)}]"


def _answers(count: int) -> str:
    return "answer" if count == 1 else "answers"
