"""The confidence of a pass: higher always means surer."""

import re
import statistics
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import exp, fsum, isnan, log
from typing import Literal

from heedful.errors import LogprobError, PolicyError, SignalError
from heedful.plugins import Registry
from heedful.types import LEAST_SURE, Attempt, Decode, Message, Prompt, Task, Token, Traits

from .answer import same_answer, thinking_in, without_thinking
from .sampling import sample_prompt

Need = Literal["nothing", "logprobs", "top_logprobs"]
AGREEMENT_SAMPLES = 3
AGREEMENT_TEMPERATURE = 0.7
CHECK_QUESTION = "Is that answer correct? Reply with one word, yes or no."
STATED_QUESTION = (
    "How likely is it that your answer is right? Reply with a number from 0 to 100 and nothing else."
)
STATED_TOKENS = 64
"""At least; a model that thinks first gets as many as for an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """A confidence measure and what it needs from the model."""

    name: str
    needs: Need
    measure: Callable[[Decode, Sequence[Decode]], float]
    """Computes the confidence from the pass and the replies to this signal's own questions."""
    questions: Callable[[Task, Attempt], tuple[Prompt, ...]] = lambda task, attempt: ()
    extra_calls: int = 0
    threshold: float = -0.1
    """Consult below this confidence, if nobody fitted a threshold."""

    def supported_by(self, traits: Traits) -> bool:
        has = {"nothing": True, "logprobs": traits.logprobs, "top_logprobs": traits.top_logprobs >= 2}
        return has[self.needs]


def check_logprobs(decode: Decode) -> None:
    """Raise `LogprobError` for missing or impossible log-probs."""
    if not decode.text and not decode.tool_calls:
        return
    if not decode.tokens:
        raise LogprobError(f"{decode.model} returned no log-probs; run heedful probe to see what it supports")
    values = [token.logprob for token in decode.tokens]
    lowest, highest = min(values), max(values)
    if lowest < -1000 or highest > 0 or isnan(sum(values)):
        odd = next(value for value in values if not -1000 <= value <= 0)
        raise LogprobError(f"{decode.model} returned a log-prob of {odd:g}, outside -1000 to 0")
    if lowest == 0:
        raise LogprobError(f"{decode.model} returned log-probs that are all 0, which carry no information")
    if decode.text not in _joined(decode):
        raise LogprobError(f"{decode.model} returned tokens that do not match its text {decode.text[:40]!r}")


def said_tokens(decode: Decode) -> list[Token]:
    """The tokens of the answer and its working, without think blocks and end markers."""
    thought = thinking_in(decode.text)
    start = thought.end() if thought else 0
    return _between(decode, start, len(decode.text)) or list(decode.tokens)


def answer_tokens(decode: Decode) -> list[Token]:
    """The tokens that make up the graded answer; of a tool call, all of them."""
    if decode.tool_calls:
        return said_tokens(decode)
    return [] if decode.span is None else _between(decode, *decode.span)


def _joined(decode: Decode) -> str:
    return "".join([token.text for token in decode.tokens])


def _between(decode: Decode, start: int, end: int) -> list[Token]:
    """The tokens of a part of the text; a server may trim spaces, so the text may start within the tokens."""
    tokens, joined = decode.tokens, _joined(decode)
    if start == 0 and joined == decode.text[:end] and tokens and tokens[0].text and tokens[-1].text:
        return list(tokens)
    # the last occurrence: tokens may begin with reasoning that is not in the text
    at = -max(joined.rfind(decode.text), 0)
    inside = []
    for token in tokens:
        if at < end and at + len(token.text) > start:
            inside.append(token)
        at += len(token.text)
    return inside


def _p10(ordered: Sequence[float]) -> float:
    """The 10th percentile, interpolated linearly between order statistics."""
    place = 0.1 * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def _median(ordered: Sequence[float]) -> float:
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


_THRESHOLDS = {"mean": -0.1, "sum": -2.0, "first": -0.1, "min": -1.0, "median": -0.01, "p10": -0.5}
"""By summary: typical limits between sure and unsure; a study fits better ones."""


def _summaries(tokens: Sequence[Token]) -> dict[str, float]:
    """All summaries of the log-probs, by name; without tokens, the model is as unsure as can be."""
    if not tokens:
        return dict.fromkeys(_THRESHOLDS, LEAST_SURE)
    values = [token.logprob for token in tokens]
    ordered = sorted(values)
    return {
        "mean": fsum(values) / len(values),
        "sum": sum(values),
        "first": values[0],
        "min": min(values),
        "median": _median(ordered),
        "p10": _p10(ordered),
    }


def _of_logprobs(name: str, pick: Callable[[Decode], list[Token]], summary: str) -> Signal:
    def measure(decode: Decode, replies: Sequence[Decode]) -> float:
        check_logprobs(decode)
        return _summaries(pick(decode))[summary]

    return Signal(name=name, needs="logprobs", measure=measure, threshold=_THRESHOLDS[summary])


def _margin(decode: Decode, replies: Sequence[Decode]) -> float:
    check_logprobs(decode)
    return _lead(decode, said_tokens(decode))


def _lead(decode: Decode, tokens: Sequence[Token]) -> float:
    """Mean difference between the two most likely tokens, in log-probability."""
    try:
        leads = [token.top[0][1] - token.top[1][1] for token in tokens]
    except IndexError as error:
        raise LogprobError(
            f"{decode.model} returned no top_logprobs, which the signal margin needs"
        ) from error
    return fsum(leads) / len(leads) if leads else LEAST_SURE


def _letter(decode: Decode, replies: Sequence[Decode]) -> float:
    """The log of the answer's share of the probability of all single letters at its place."""
    check_logprobs(decode)
    tokens = answer_tokens(decode)
    if not _one_letter(tokens):
        raise LogprobError(f"the signal letter needs an answer of one letter, not {decode.answer[:40]!r}")
    return _share_of_letter(tokens[0])


def _one_letter(tokens: Sequence[Token]) -> bool:
    return len(tokens) == 1 and _is_letter(tokens[0].text) and len(tokens[0].top) >= 2


def _share_of_letter(token: Token) -> float:
    letters = {text.strip(): logprob for text, logprob in reversed(token.top) if _is_letter(text)}
    letters[token.text.strip()] = token.logprob
    return token.logprob - log(sum(map(exp, letters.values())))


def _is_letter(text: str) -> bool:
    return len(text.strip()) == 1 and text.strip().isalpha()


def _samples(task: Task, attempt: Attempt) -> tuple[Prompt, ...]:
    numbers = range(1, AGREEMENT_SAMPLES + 1)
    return tuple(sample_prompt(attempt.prompt, AGREEMENT_TEMPERATURE, number) for number in numbers)


def _agreement(decode: Decode, replies: Sequence[Decode]) -> float:
    return statistics.fmean(same_answer(reply.answer, decode.answer) for reply in replies)


def _truth_check(task: Task, attempt: Attempt) -> tuple[Prompt, ...]:
    reply = Message(role="assistant", content=attempt.decode.text)
    check = Message(role="user", content=CHECK_QUESTION)
    return (Prompt(messages=(*attempt.prompt.messages, reply, check), max_tokens=2),)


def _ptrue(decode: Decode, replies: Sequence[Decode]) -> float:
    """The probability of "yes" among yes and no in the first token; without top_logprobs, 1 or 0."""
    reply = replies[0]
    first = reply.tokens[0].top if reply.tokens else ()
    weight = {"yes": 0.0, "no": 0.0}
    for text, logprob in first:
        if (word := text.strip().casefold()) in weight:
            weight[word] += exp(logprob)
    if total := sum(weight.values()):
        return weight["yes"] / total
    verdict = re.match(r"\W*(yes|no)\b", without_thinking(reply.text), re.IGNORECASE)
    if verdict is None:
        raise SignalError(f"{reply.model} replied {reply.text[:40]!r} instead of yes or no")
    return float(verdict[1].casefold() == "yes")


def _stated_question(task: Task, attempt: Attempt) -> tuple[Prompt, ...]:
    reply = Message(role="assistant", content=without_thinking(attempt.decode.text))
    question = Message(role="user", content=STATED_QUESTION)
    messages = (*attempt.prompt.messages, reply, question)
    return (Prompt(messages=messages, max_tokens=max(STATED_TOKENS, task.max_tokens)),)


def _stated(decode: Decode, replies: Sequence[Decode]) -> float:
    """The number that the model states, as a share: 85, 85% and 0.85 are the same."""
    reply = replies[0]
    number = re.search(r"\d+(?:\.\d+)?|\.\d+", without_thinking(reply.text))
    value = -1.0 if number is None else float(number[0])
    if number is not None and "." in number[0] and value <= 1 and "%" not in reply.text:
        return value
    if not 0 <= value <= 100:
        raise SignalError(f"{reply.model} replied {reply.text[:40]!r} instead of a number from 0 to 100")
    return value / 100


_OWN: dict[str, Signal] = {
    **{name: _of_logprobs(name, said_tokens, name) for name in _THRESHOLDS},
    **{f"answer_{name}": _of_logprobs(f"answer_{name}", answer_tokens, name) for name in _THRESHOLDS},
    "margin": Signal(name="margin", needs="top_logprobs", measure=_margin, threshold=3.0),
    "letter": Signal(name="letter", needs="top_logprobs", measure=_letter, threshold=-0.1),
    "agreement": Signal(
        name="agreement",
        needs="nothing",
        measure=_agreement,
        questions=_samples,
        extra_calls=AGREEMENT_SAMPLES,
        threshold=0.9,
    ),
    "ptrue": Signal(
        name="ptrue",
        needs="nothing",
        measure=_ptrue,
        questions=_truth_check,
        extra_calls=1,
        threshold=0.5,
    ),
    "stated": Signal(
        name="stated",
        needs="nothing",
        measure=_stated,
        questions=_stated_question,
        extra_calls=1,
        threshold=0.8,
    ),
}
SIGNALS: Registry[Signal] = Registry("heedful.signals", _OWN, fits=lambda part: isinstance(part, Signal))


WITHOUT_LOGPROBS = "agreement"
"""The signal to use if nobody chose one and the endpoint returns no log-probs."""


def signal_named(name: str) -> Signal:
    if name not in SIGNALS:
        raise PolicyError(f"unknown signal {name!r}; choose one of {', '.join(SIGNALS)}")
    return SIGNALS[name]


def free_signals(decode: Decode) -> dict[str, float]:
    """Every signal that needs no extra call; unavailable signals are left out."""
    try:
        check_logprobs(decode)
    except LogprobError:
        return {}
    said, answer = said_tokens(decode), answer_tokens(decode)
    values = _summaries(said)
    of_answer = values if answer == said else _summaries(answer)
    values = {**values, **{f"answer_{name}": value for name, value in of_answer.items()}}
    with suppress(LogprobError):
        values["margin"] = _lead(decode, said)
    if _one_letter(answer):
        values["letter"] = _share_of_letter(answer[0])
    for name, signal in SIGNALS.added().items():
        if signal.extra_calls == 0:
            with suppress(LogprobError):
                values[name] = signal.measure(decode, ())
    return values
