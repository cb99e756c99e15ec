"""Decodes that are shared between arms and runs."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from heedful.agents.decode_cache import CachedModel, DecodeRow
from heedful.agents.row_file import RowFile
from heedful.errors import ModelError
from heedful.models.scripted import SCRIPTED, Reply, ScriptedModel
from heedful.types import Decode, Message, Prompt

PROMPT = Prompt(messages=(Message(role="user", content="Hello?"),))


def hello(fingerprint: str = "one") -> ScriptedModel:
    return ScriptedModel(script={"Hello?": ("Hi", -0.3)}, traits=replace(SCRIPTED, fingerprint=fingerprint))


def test_a_prompt_is_decoded_once_also_after_a_restart(tmp_path: Path) -> None:
    decodes = []
    for _ in range(2):
        with RowFile(tmp_path / "decodes.jsonl", DecodeRow) as file:
            model = CachedModel(model=hello(), file=file)
            decodes += [asyncio.run(model.decode(PROMPT)) for _ in range(2)]
    assert decodes[0] == decodes[1] == decodes[2] == decodes[3]
    assert (model.decoded, model.saved) == (0, 2)


def test_another_model_or_temperature_is_another_decode() -> None:
    model = CachedModel(model=hello())
    asyncio.run(model.decode(PROMPT))
    asyncio.run(model.decode(replace(PROMPT, temperature=0.7, seed=1)))
    assert (model.decoded, model.saved) == (2, 0)


def test_arms_that_ask_the_same_at_the_same_time_wait_for_one_decode() -> None:
    model = CachedModel(model=hello())

    async def both() -> list[Decode]:
        return list(await asyncio.gather(*(model.decode(PROMPT) for _ in range(3))))

    decodes = asyncio.run(both())
    assert decodes[0] == decodes[1] == decodes[2]
    assert (model.decoded, model.saved) == (1, 2)


def test_a_failed_decode_fails_everyone_who_waits_and_is_tried_again_later() -> None:
    replies: Iterator[Reply] = iter([ModelError("gone"), ("Hi", -0.3)])
    model = CachedModel(model=ScriptedModel(script=lambda prompt: next(replies)))

    async def twice() -> list[BaseException | Decode]:
        waiting = (model.decode(PROMPT), model.decode(PROMPT))
        return list(await asyncio.gather(*waiting, return_exceptions=True))

    assert [type(outcome) for outcome in asyncio.run(twice())] == [ModelError, ModelError]
    assert asyncio.run(model.decode(PROMPT)).text == "Hi"
