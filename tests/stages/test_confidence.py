import math
import statistics
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful import LogprobError
from heedful.errors import SignalError
from heedful.stages.answer import read_answer
from heedful.stages.compose import first_prompt
from heedful.stages.confidence import SIGNALS, check_logprobs, free_signals, signal_named
from heedful.types import LEAST_SURE, Attempt, Decode, Token, Traits
from tests.making import decode, task

SAID = Decode(
    text="14 - 8 = 6. Answer: 6",
    tokens=(
        Token("14 - 8 =", -0.4, (("14 - 8 =", -0.4), ("8", -1.4))),
        Token(" 6.", -0.2, ((" 6.", -0.2), (" 7", -0.8))),
        Token(" Answer:", -0.1, ((" Answer:", -0.1), (" So", -2.1))),
        Token(" 6", -0.3, ((" 6", -0.3), (" 5", -1.5))),
        Token("", -0.9, (("", -0.9), ("\n", -1.1))),
    ),
    model="test",
)
READ = read_answer(SAID, task(answer_pattern=r"Answer: (\d+)"))


def measured(name: str, said: Decode = READ, replies: Sequence[Decode] = ()) -> float:
    return signal_named(name).measure(said, replies)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mean", -0.25),
        ("sum", -1.0),
        ("first", -0.4),
        ("min", -0.4),
        ("median", -0.25),
        ("p10", -0.37),
        ("answer_mean", -0.3),
        ("answer_sum", -0.3),
        ("answer_first", -0.3),
        ("answer_min", -0.3),
        ("margin", (1.0 + 0.6 + 2.0 + 1.2) / 4),
    ],
)
def test_a_signal_measures_the_tokens_that_were_said(name: str, value: float) -> None:
    assert measured(name) == pytest.approx(value)


def test_think_blocks_do_not_count() -> None:
    thinking = Decode(
        text="<think>hm</think>\n6", tokens=(Token("<think>hm</think>\n", -4.0), Token("6", -0.5))
    )
    assert measured("mean", read_answer(thinking, task())) == -0.5


def test_no_answer_is_least_sure() -> None:
    lost = read_answer(SAID, task(answer_pattern=r"Result: (\d+)"))
    assert measured("answer_mean", lost) == LEAST_SURE
    assert measured("mean", Decode(text="")) == LEAST_SURE


@pytest.mark.parametrize(
    ("tokens", "complaint"),
    [
        ((), "returned no log-probs"),
        ((Token("6", 0.0),), "all 0"),
        ((Token("6", -1200.0),), "-1200"),
        ((Token("6", math.nan),), "nan"),
        ((Token("6", 0.7),), "0.7"),
        ((Token("7", -0.1),), "do not match its text"),
    ],
)
def test_logprobs_that_cannot_be_true_are_refused_by_the_endpoints_name(
    tokens: tuple[Token, ...], complaint: str
) -> None:
    with pytest.raises(LogprobError, match=complaint) as caught:
        check_logprobs(Decode(text="6", tokens=tokens, model="http://127.0.0.1:1/v1"))
    assert "http://127.0.0.1:1/v1" in str(caught.value)


def test_a_server_that_trims_spaces_still_rebuilds_the_text() -> None:
    check_logprobs(Decode(text="6", tokens=(Token("\n 6", -0.2), Token("", -0.1))))


def attempt(said: Decode) -> Attempt:
    return Attempt(source="none", prompt=first_prompt(task()), decode=said)


def test_agreement_is_the_share_of_samples_with_the_same_answer() -> None:
    signal = signal_named("agreement")
    questions = signal.questions(task(), attempt(decode("blue")))
    assert len(questions) == signal.extra_calls == 3
    assert len({q.digest for q in questions}) == 3
    replies = [decode("Blue."), decode("red"), decode("blue")]
    assert signal.measure(decode("blue"), replies) == pytest.approx(2 / 3)


def test_ptrue_weighs_yes_against_no_and_falls_back_on_the_word() -> None:
    signal = signal_named("ptrue")
    (question,) = signal.questions(task(), attempt(decode("blue")))
    assert [m.role for m in question.messages] == ["user", "assistant", "user"]
    tops = ((" Yes", math.log(0.6)), ("no", math.log(0.2)), ("yes", math.log(0.2)))
    assert signal.measure(
        decode("blue"), [Decode(text="Yes", tokens=(Token("Yes", -0.5, tops),))]
    ) == pytest.approx(0.8)
    assert signal.measure(decode("blue"), [Decode(text="No, it is not")]) == 0.0
    assert signal.measure(decode("blue"), [Decode(text=" yes")]) == 1.0


def test_each_signal_declares_what_it_needs() -> None:
    blind = Traits(name="x", logprobs=False)
    assert [name for name, s in SIGNALS.items() if s.supported_by(blind)] == ["agreement", "ptrue", "stated"]
    assert not SIGNALS["margin"].supported_by(Traits(name="x", top_logprobs=1))
    assert SIGNALS["margin"].supported_by(Traits(name="x", top_logprobs=2))


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("85", 0.85),
        ("85%", 0.85),
        ("I am 85% sure.", 0.85),
        ("0.85", 0.85),
        ("0.5%", 0.005),
        ("1", 0.01),
        ("100", 1.0),
        ("<think>50?</think> 90", 0.9),
    ],
)
def test_a_stated_confidence_is_a_share(said: str, value: float) -> None:
    assert measured("stated", replies=[Decode(text=said)]) == pytest.approx(value)


@pytest.mark.parametrize(
    ("name", "said"), [("stated", "quite"), ("stated", "900"), ("ptrue", "Well"), ("ptrue", "")]
)
def test_a_reply_that_states_no_confidence_is_refused_and_not_taken_for_a_low_one(
    name: str, said: str
) -> None:
    with pytest.raises(SignalError, match="instead of"):
        measured(name, replies=[Decode(text=said, model="m")])


def test_the_question_about_confidence_follows_the_answer_without_its_thoughts() -> None:
    thoughtful = task(max_tokens=900)
    attempt = Attempt(
        source="none", prompt=first_prompt(thoughtful), decode=Decode(text="<think>6?</think>6")
    )
    (asked,) = signal_named("stated").questions(thoughtful, attempt)
    assert [message.role for message in asked.messages[-2:]] == ["assistant", "user"]
    assert (asked.messages[-2].content, asked.max_tokens) == ("6", 900)


def test_the_default_threshold_belongs_to_the_signal() -> None:
    for name, signal in SIGNALS.items():
        shares = name in ("agreement", "ptrue", "stated")
        assert (0 < signal.threshold < 1) if shares else (signal.threshold < 0 or name == "margin"), name


def test_an_opening_tag_in_the_prompt_leaves_only_the_closing_one() -> None:
    said = Decode(text="hm, 7?</think>\n6", tokens=(Token("hm, 7?</think>\n", -4.0), Token("6", -0.5)))
    read = read_answer(said, task())
    assert (read.answer, measured("mean", read)) == ("6", -0.5)


def test_reasoning_among_the_tokens_that_is_not_in_the_text_does_not_count() -> None:
    said = Decode(text="6", tokens=(Token("is it 6", -4.0), Token("?", -3.0), Token("6", -0.5)))
    assert measured("mean", read_answer(said, task())) == -0.5


@given(st.lists(st.floats(-20, -1e-6), min_size=1, max_size=30))
def test_mean_lies_between_min_and_zero_and_sum_is_n_means(values: list[float]) -> None:
    tokens = tuple(Token("a", value) for value in values)
    said = replace(decode("a" * len(values)), tokens=tokens)
    low, mean, total = (measured(name, said) for name in ("min", "mean", "sum"))
    assert low <= mean + 1e-12
    assert mean <= 0
    assert total == pytest.approx(mean * len(values))
    assert measured("median", said) == pytest.approx(statistics.median(values))


def chosen(letter: str, logprob: float, *top: tuple[str, float]) -> Decode:
    said = Decode(
        text=f"Answer: {letter}",
        tokens=(
            Token("Answer:", -0.01, (("Answer:", -0.01), ("The", -5.0))),
            Token(f" {letter}", logprob, top),
        ),
        model="test",
    )
    return read_answer(said, task(answer_pattern=r"Answer: (\w+)"))


def test_letter_is_the_share_of_the_answer_among_all_letters_at_its_place() -> None:
    said = chosen("B", math.log(0.4), (" B", math.log(0.4)), (" C", math.log(0.3)), (" the", math.log(0.2)))
    assert measured("letter", said) == pytest.approx(math.log(0.4 / 0.7))
    assert free_signals(said)["letter"] == measured("letter", said)
    twice = chosen("B", math.log(0.5), (" B", math.log(0.5)), ("C", math.log(0.25)), (" C", math.log(0.125)))
    assert measured("letter", twice) == pytest.approx(math.log(0.5 / 0.75))


def test_letter_is_unknown_for_an_answer_that_is_not_one_letter() -> None:
    for said in (READ, chosen("maybe", -0.1, (" maybe", -0.1), (" B", -3.0)), chosen("B", -0.1)):
        with pytest.raises(LogprobError, match=r"needs an answer of one letter"):
            measured("letter", said)
        assert "letter" not in free_signals(said)
