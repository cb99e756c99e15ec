"""A model that grades."""

import asyncio
from pathlib import Path

import pytest

from heedful import ScriptedModel, UsageError
from heedful.benchmarks.judge import Judge
from heedful.types import Item, Prompt

CITY = Item(id="c", question="Where is it?", answer="Ghent", also=("Gent",))


def says(prompt: Prompt) -> str:
    asked = prompt.messages[-1].content
    assert "Right answer: Ghent | Gent" in asked
    if "Given answer: hm" in asked:
        return "Perhaps."
    return "<think>no?</think> Yes." if "Given answer: in Gent" in asked else "No, it is not."


def test_an_answer_is_judged_once_even_by_another_process(tmp_path: Path) -> None:
    model = ScriptedModel(script=says)
    judge = Judge(model=model, cache=tmp_path / "judge.jsonl")
    assert asyncio.run(judge.judge("in Gent", CITY)) is True
    assert asyncio.run(judge.judge("in Gent", CITY)) is True
    assert asyncio.run(judge.judge("in Bruges", CITY)) is False
    assert asyncio.run(judge.judge("hm", CITY)) is None
    assert len(model.prompts) == 3
    again = Judge(model=model, cache=tmp_path / "judge.jsonl")
    assert (again.verdict("in Gent", CITY), again.verdict("hm", CITY)) == (True, False)
    assert len(model.prompts) == 3


def test_other_instructions_are_another_judge(tmp_path: Path) -> None:
    model = ScriptedModel(script=says)
    asyncio.run(Judge(model=model, cache=tmp_path / "j").judge("in Gent", CITY))
    other = Judge(model=model, cache=tmp_path / "j", instructions="Be strict.")
    with pytest.raises(UsageError, match="has not been judged"):
        other.verdict("in Gent", CITY)


def test_a_line_cut_by_a_crash_is_judged_again_and_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "j").write_text('{"key": "x", "ri')
    model = ScriptedModel(script=says)
    assert asyncio.run(Judge(model=model, cache=tmp_path / "j").judge("in Gent", CITY)) is True
    assert Judge(model=model, cache=tmp_path / "j").verdict("in Gent", CITY) is True
    (tmp_path / "k").write_text('{"id": 1}\n')
    with pytest.raises(UsageError, match="line 1 is not a verdict"):
        Judge(model=model, cache=tmp_path / "k")
