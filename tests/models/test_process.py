"""A model in a process of its own: replies, errors, and a process that dies."""

import asyncio
import os
import signal

import pytest

from heedful import ModelError, RequestError, ScriptedModel
from heedful.errors import MissingError
from heedful.models.process import ProcessModel
from heedful.models.scripted import SCRIPTED, Reply
from heedful.types import Message, Prompt


def asks(text: str) -> Prompt:
    return Prompt(messages=(Message(role="user", content=text),))


def reply(prompt: Prompt) -> Reply:
    match prompt.messages[-1].content:
        case "who":
            return str(os.getpid())
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "long":
            return RequestError("too long")
        case "odd":
            return ZeroDivisionError("by zero")
    return "yes"


def scripted() -> ScriptedModel:
    return ScriptedModel(script=reply)


def unmade() -> ScriptedModel:
    raise MissingError("no engine; install it")


def test_a_process_decodes_reports_errors_and_is_replaced_after_its_death() -> None:
    async def go() -> None:
        model = ProcessModel(scripted, SCRIPTED)
        try:
            decodes = await asyncio.gather(*(model.decode(asks(f"q{n}")) for n in range(20)))
            assert {(decode.text, len(decode.tokens)) for decode in decodes} == {("yes", 1)}
            first = int((await model.decode(asks("who"))).text)
            assert first == model.pid != os.getpid()
            with pytest.raises(RequestError, match="too long"):
                await model.decode(asks("long"))
            with pytest.raises(ModelError, match="ZeroDivisionError: by zero"):
                await model.decode(asks("odd"))
            with pytest.raises(ModelError, match=f"process {first} ended with exit code -9"):
                await model.decode(asks("die"))
            assert int((await model.decode(asks("who"))).text) != first
        finally:
            await model.aclose()
        assert model.pid is None

    asyncio.run(go())


def test_a_model_that_cannot_be_made_in_the_process_says_why_here() -> None:
    async def go() -> None:
        model = ProcessModel(unmade, SCRIPTED)
        try:
            await model.decode(asks("q"))
        finally:
            await model.aclose()

    with pytest.raises(MissingError, match="no engine; install it"):
        asyncio.run(go())
