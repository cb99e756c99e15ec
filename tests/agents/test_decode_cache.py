"""Decodes that are shared between arms and runs."""

import asyncio
from dataclasses import replace
from pathlib import Path

from heedful.agents.decode_cache import CachedModel, DecodeRow
from heedful.agents.row_file import RowFile
from heedful.models.scripted import SCRIPTED, ScriptedModel
from heedful.types import Message, Prompt

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
