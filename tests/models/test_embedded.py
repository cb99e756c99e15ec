import asyncio
from typing import Any

import pytest

from heedful import EmbeddedModel, MissingError, UsageError
from heedful.models.embedded import SPINS, _set_waiting
from heedful.types import Message, Prompt

QUESTIONS = (
    "Name a colour of the sky at noon.",
    "Name a colour of the sky at night.",
    "Count from one to five.",
)


def prompt(question: str) -> Prompt:
    told = "You are a helpful assistant who answers every question in one short sentence."
    messages = (Message(role="system", content=told), Message(role="user", content=question))
    return Prompt(messages=messages, max_tokens=12)


@pytest.mark.engine
def test_a_repeatable_model_gives_the_same_bits_whatever_it_decoded_before(engine: EmbeddedModel) -> None:
    async def tokens(model: EmbeddedModel, order: tuple[str, ...]) -> dict[str, list[tuple[str, float]]]:
        replies = {question: await model.decode(prompt(question)) for question in order}
        await model.aclose()
        return {question: [(t.text, t.logprob) for t in reply.tokens] for question, reply in replies.items()}

    model = EmbeddedModel(slots=1, repeatable=True)
    forwards = asyncio.run(tokens(model, QUESTIONS))
    backwards = asyncio.run(tokens(model, QUESTIONS[::-1]))
    assert forwards == backwards
    assert all(len(found) > 1 for found in forwards.values())


def test_a_repeatable_model_has_a_fingerprint_of_its_own_and_one_slot() -> None:
    plain, repeatable = EmbeddedModel(slots=1), EmbeddedModel(slots=1, repeatable=True)
    assert plain.traits.fingerprint != repeatable.traits.fingerprint
    with pytest.raises(UsageError, match="set slots to 1"):
        EmbeddedModel(repeatable=True)


def test_threads_spin_for_a_moment_unless_the_environment_says_otherwise() -> None:
    free: dict[str, str] = {}
    _set_waiting(free)
    assert free == {"GOMP_SPINCOUNT": SPINS}
    passive = {"OMP_WAIT_POLICY": "passive"}
    _set_waiting(passive)
    assert passive == {"OMP_WAIT_POLICY": "passive"}


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"threads": 100_000}, "threads.* from 1 to 512"),
        ({"threads": 0}, "threads.* from 1 to 512"),
        ({"threads": "2"}, "threads.* is '2'"),
        ({"slots": 0}, "slots.* from 1 to 256"),
        ({"context": 0}, "context.* at least 1"),
        ({"weights": None}, "weights.* is None; give a name or a GGUF file"),
    ],
)
def test_a_setting_that_would_end_the_engine_is_refused(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        EmbeddedModel(**settings)


def test_weights_that_are_not_there_are_named() -> None:
    with pytest.raises(MissingError, match=r"no model 'nosuch\.gguf'"):
        EmbeddedModel(weights="nosuch.gguf")
