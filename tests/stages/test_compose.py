from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful import new_entry
from heedful.stages.compose import compose, first_prompt
from heedful.types import Placement, Prompt
from tests.making import task

RULE = new_entry("Ship before noon.", kind="rule", id="r")
WORKED = new_entry("2 + 2?", kind="exemplar", response="2 + 2 = 4. Answer: 4", id="e")
TASK = task("3 + 3?", instructions="Be brief.")


def roles(prompt: Prompt) -> list[str]:
    return [message.role for message in prompt.messages]


def test_after_keeps_the_first_prompt_as_a_prefix() -> None:
    first, second = first_prompt(TASK), compose(TASK, [RULE, WORKED], "after")
    assert second.messages[:-1] == first.messages[:-1]
    assert second.messages[-1].content.startswith(first.messages[-1].content)
    assert "Ship before noon." in second.messages[-1].content
    assert "Answer: 4" in second.messages[-1].content


def test_before_puts_notes_in_front_of_the_question() -> None:
    content = compose(TASK, [RULE], "before").messages[-1].content
    assert content.index("Ship before noon.") < content.index("3 + 3?")


def test_system_puts_notes_into_the_system_message_even_where_there_was_none() -> None:
    assert "Ship" in compose(TASK, [RULE], "system").messages[0].content
    bare = compose(task("3 + 3?"), [RULE], "system")
    assert (roles(bare), bare.messages[-1].content) == (["system", "user"], "3 + 3?")


def test_turns_give_exemplars_as_earlier_chat_and_other_entries_after_the_question() -> None:
    prompt = compose(TASK, [RULE, WORKED], "turns")
    assert roles(prompt) == ["system", "user", "assistant", "user"]
    assert prompt.messages[1].content == "2 + 2?"
    assert prompt.messages[2].content == "2 + 2 = 4. Answer: 4"
    assert "Ship before noon." in prompt.messages[3].content


def test_auto_is_turns_for_exemplars_and_after_for_the_rest() -> None:
    assert compose(TASK, [RULE], "auto") == compose(TASK, [RULE], "after")
    assert compose(TASK, [WORKED], "auto") == compose(TASK, [WORKED], "turns")


def test_advice_leaves_out_the_situation_of_a_hint_and_nothing_else() -> None:
    hint = new_entry("On a page with red shoes.", kind="hint", response="Next action: buy", id="h")
    bare = new_entry("Look at the price first.", kind="hint", id="b")
    content = compose(TASK, [hint, bare, RULE, WORKED], "advice").messages[-1].content
    assert "red shoes" not in content
    for shown in ("- Next action: buy", bare.text, RULE.text, WORKED.text, WORKED.response):
        assert shown in content
    assert compose(TASK, [bare, RULE], "advice") == compose(TASK, [bare, RULE], "after")


@pytest.mark.parametrize("placement", get_args(Placement))
@given(question=st.text(min_size=1), note=st.text(min_size=1).filter(str.strip))
def test_question_and_note_stand_in_every_prompt_once_and_the_first_prompt_has_no_note(
    placement: Placement, question: str, note: str
) -> None:
    entry = new_entry(note, kind="rule", id="n")
    prompt = compose(task(question), [entry], placement, heading="NOTES")
    whole = "\n".join(m.content for m in prompt.messages)
    assert question in whole
    assert note in whole
    assert first_prompt(task(question)).messages[-1].content == question
    assert compose(task(question), [], placement) == first_prompt(task(question))
