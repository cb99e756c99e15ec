import pytest

from heedful import ContractGuard
from heedful.control import GUARDS
from heedful.types import Step
from tests.making import decode, task

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def reason(guard, asked, said):
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
def test_format_refuses_what_does_not_parse(asked, said, expected):
    assert reason("format", asked, said) == expected


def test_valid_refuses_what_is_not_allowed_and_passes_without_a_list():
    assert reason("valid", task(choices=("open door", "wait")), decode("Open door.")) is None
    assert reason("valid", task(choices=("open door",)), decode("fly")) == "valid:not-allowed"
    assert reason("valid", task(), decode("fly")) is None


def test_progress_refuses_an_action_already_taken_at_this_observation():
    history = (Step(observation="a locked door", action="push"), Step(observation="a hall", action="go"))
    assert reason("progress", task("a locked door", history=history), decode("push")) == "progress:repeated"
    assert reason("progress", task("a locked door", history=history), decode("go")) is None
    assert reason("progress", task("a locked door"), decode("push")) is None


def test_contract_asks_the_users_own_predicate():
    brief = ContractGuard(lambda asked, answer: len(answer) < 5)
    assert brief.refuses(task(), decode("old"), decode("new")) is None
    assert brief.refuses(task(), decode("old"), decode("far too long")) == "contract:broken"
