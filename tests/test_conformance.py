"""Every model adapter passes the public conformance suite, and the suite refuses what does not conform."""

import asyncio
from dataclasses import replace

import pytest

from heedful import ModelError, ScriptedModel
from heedful.models.scripted import SCRIPTED
from heedful.testing import check_model, check_model_fails_openly
from heedful.types import Decode, Token


def test_the_scripted_model_conforms():
    asyncio.run(check_model(ScriptedModel(script=lambda prompt: "blue it is")))
    silent = replace(SCRIPTED, logprobs=False, top_logprobs=0)
    asyncio.run(check_model(ScriptedModel(script=lambda prompt: "blue", traits=silent)))
    asyncio.run(check_model_fails_openly(ScriptedModel(script=lambda prompt: ModelError("down"))))


@pytest.mark.engine
def test_the_embedded_model_and_so_the_chat_adapter_conform(engine):
    asyncio.run(check_model(engine))
    asyncio.run(check_model(engine.chat))


@pytest.mark.parametrize(
    ("reply", "complaint"),
    [
        (Decode(text=""), "gets a text"),
        (Decode(text="blue"), "make sense"),
        (Decode(text="blue", tokens=(Token("blue", 0.0),)), "make sense"),
        (Decode(text="blue", tokens=(Token("blue", -0.1),)), "alternatives"),
        (Decode(text="blue", tokens=(Token("blue", -0.1, (("a", -2.0), ("b", -1.0))),)), "highest first"),
    ],
)
def test_a_model_that_does_not_conform_is_told_why(reply, complaint):
    with pytest.raises(AssertionError, match=complaint):
        asyncio.run(check_model(ScriptedModel(script=lambda prompt: reply)))


def test_a_model_that_changes_its_mind_does_not_conform():
    replies = iter(["blue", "red", "blue", "red"])
    with pytest.raises(AssertionError, match="same twice"):
        asyncio.run(check_model(ScriptedModel(script=lambda prompt: next(replies))))
