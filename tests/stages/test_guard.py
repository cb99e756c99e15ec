import pytest

from heedful import ContractGuard
from heedful.passes import GUARDS
from heedful.types import Decode, Message, Task, Tool, ToolCall
from tests.making import decode, task

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def reason(guard: str, asked: Task, said: Decode) -> str | None:
    return GUARDS[guard].refuses(asked, decode("old"), said)


@pytest.mark.parametrize(
    ("asked", "said", "expected"),
    [
        (task(), decode("new"), None),
        (task(), decode("new", answer=""), "format:no-answer"),
        (task(schema=SCHEMA), decode('{"n": 3}'), None),
        (task(schema=SCHEMA), decode('{"n": "x"}'), "format:schema"),
        (task(schema=SCHEMA), decode("three"), "format:not-json"),
    ],
)
def test_format_refuses_what_does_not_parse(asked: Task, said: Decode, expected: str | None) -> None:
    assert reason("format", asked, said) == expected


def test_valid_refuses_what_is_not_allowed_and_passes_without_a_list() -> None:
    assert reason("valid", task(choices=("open door", "wait")), decode("Open door.")) is None
    assert reason("valid", task(choices=("open door",)), decode("fly")) == "valid:not-allowed"
    assert reason("valid", task(), decode("fly")) is None


def test_progress_refuses_an_action_already_taken_at_this_observation() -> None:
    steps = [("a locked door", "push"), ("a hall", "go")]
    earlier = tuple(
        message
        for seen, done in steps
        for message in (Message(role="user", content=seen), Message(role="assistant", content=done))
    )
    assert reason("progress", task("a locked door", earlier=earlier), decode("push")) == "progress:repeated"
    assert reason("progress", task("a locked door", earlier=earlier), decode("go")) is None
    assert reason("progress", task("a locked door"), decode("push")) is None


def test_contract_asks_the_users_own_predicate() -> None:
    brief = ContractGuard(lambda asked, answer: len(answer) < 5)
    assert brief.refuses(task(), decode("old"), decode("new")) is None
    assert brief.refuses(task(), decode("old"), decode("far too long")) == "contract:broken"


TOOL = Tool(name="add", parameters=SCHEMA)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (ToolCall(name="add", arguments='{"n": 3}'), None),
        (ToolCall(name="add", arguments='{"n": "x"}'), "format:tool-arguments"),
        (ToolCall(name="add", arguments="three"), "format:tool-arguments"),
        (ToolCall(name="multiply", arguments='{"n": 3}'), "format:unknown-tool"),
    ],
)
def test_format_refuses_calls_of_unknown_tools_and_arguments_that_do_not_fit(
    call: ToolCall, expected: str | None
) -> None:
    said = Decode(text="", tool_calls=(call,), answer="a call")
    assert reason("format", task(tools=(TOOL,)), said) == expected


def test_progress_knows_a_call_that_was_made_here() -> None:
    call = ToolCall(name="add", arguments='{"n": 3}')
    earlier = (
        Message(role="user", content="here"),
        Message(role="assistant", content="", tool_calls=(call,)),
    )
    again = Decode(text="", tool_calls=(call,), answer='{"arguments": {"n": 3}, "name": "add"}')
    assert reason("progress", task("here", earlier=earlier), again) == "progress:repeated"
