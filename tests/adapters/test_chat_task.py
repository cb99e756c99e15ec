from typing import Any

import pytest

from heedful.adapters.chat_task import ChatTask, Untouched, chat_task
from heedful.types import Message, TaskTemplate

ASKED = {"role": "user", "content": "What is it?"}


def read(**fields: Any) -> ChatTask:
    asked = chat_task(
        {"messages": [ASKED], **fields}, TaskTemplate(answer_pattern="A: (.*)", instructions="Hm.")
    )
    assert isinstance(asked, ChatTask)
    return asked


def test_the_last_user_turn_is_the_question_and_the_rest_stands_before_it() -> None:
    system = {
        "role": "developer",
        "content": [{"type": "text", "text": "Be"}, {"type": "text", "text": "brief."}],
    }
    asked = read(messages=[system, ASKED])
    assert asked.task.question == "What is it?"
    assert asked.task.earlier == (Message(role="system", content="Be\nbrief."),)
    assert asked.as_sent(asked.task.earlier[0]) is system
    assert asked.as_sent(Message(role="user", content="another")) is None
    assert (asked.task.answer_pattern, asked.task.instructions) == ("A: (.*)", "")


@pytest.mark.parametrize(
    ("response_format", "schema"),
    [
        ({"type": "text"}, None),
        ({"type": "json_object"}, {"type": "object"}),
        (
            {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "array"}}},
            {"type": "array"},
        ),
        ("NOT_GIVEN", None),
    ],
)
def test_a_json_answer_is_checked_by_its_schema(response_format: object, schema: object) -> None:
    assert read(response_format=response_format).task.schema == schema


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"n": 3}, "n > 1"),
        ({"modalities": ["text", "audio"]}, "audio"),
        ({"tools": [{"type": "custom"}]}, "not a function"),
        ({"messages": []}, "unknown form"),
        ({"messages": [{"role": "ghost", "content": "boo"}]}, "ghost"),
        ({"messages": [7]}, "unknown form"),
        ({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}, "input_audio"),
    ],
)
def test_what_cannot_be_controlled_is_named(fields: dict[str, Any], reason: str) -> None:
    untouched = chat_task({"messages": [ASKED], **fields})
    assert isinstance(untouched, Untouched)
    assert reason in untouched.reason
