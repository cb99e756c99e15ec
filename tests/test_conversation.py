"""Tasks that carry a conversation, tools and what banks are searched with."""

import asyncio
import json
from collections.abc import Sequence

import pytest

from heedful import (
    ChatModel,
    Controller,
    Episode,
    MemorySource,
    Message,
    ScriptedModel,
    Task,
    Tool,
    new_entry,
)
from heedful.decisions import decision_fields, decision_of, read_decision
from heedful.models.scripted import Reply
from heedful.stages.compose import compose, first_prompt
from heedful.types import Audience, Decode, Outcome, Policy, Prompt, Recall, Token, ToolCall
from tests.faulty import FaultyServer, in_turn, sends
from tests.making import FixedBank

ADD = Tool(name="add", description="Adds.", parameters={"type": "object", "required": ["a", "b"]})
CALL = ToolCall(id="c1", name="add", arguments='{"b": 2, "a": 1}')
EARLIER = (
    Message(role="system", content="Be brief."),
    Message(role="user", content="Add one and two."),
    Message(role="assistant", content="", tool_calls=(CALL,)),
    Message(role="tool", content="3", tool_call_id="c1"),
)
RULE = new_entry("Sums are even.", kind="rule", id="even")
EXEMPLAR = new_entry("Add two and two.", kind="exemplar", response="4", id="four")


def roles(prompt: Prompt) -> list[str]:
    return [message.role for message in prompt.messages]


def test_prompts_and_digests_of_plain_tasks_stay_as_published_ledgers_have_them() -> None:
    prompt = first_prompt(Task(question="What is it?", instructions="Be brief.", id="t"))
    assert roles(prompt) == ["system", "user"]
    assert prompt.digest == "2740d048723a87b39ccf22e9ed4a9de6c913bb368d64b3977ce8d4e88a448717"


def test_the_conversation_stands_between_the_system_message_and_the_question() -> None:
    task = Task(question="And twice that?", instructions="You add.", earlier=EARLIER, tools=(ADD,))
    plain = first_prompt(task)
    assert roles(plain) == ["system", "system", "user", "assistant", "tool", "user"]
    assert plain.tools == (ADD,)
    noted = compose(task, [RULE], "after")
    assert noted.messages[:-1] == plain.messages[:-1], "the first pass's messages stay a prefix"
    assert noted.messages[-1].content.startswith("And twice that?\n\nNotes")
    system = compose(task, [RULE], "system")
    assert system.messages[1].content == "Be brief.\n\nNotes that may help:\n- Sums are even."
    shown = compose(task, [EXEMPLAR])
    assert roles(shown) == ["system", "system", "user", "assistant", "user", "assistant", "tool", "user"]


def test_a_conversation_that_ends_with_a_tools_result_needs_no_question() -> None:
    task = Task(question="", earlier=EARLIER)
    assert roles(first_prompt(task)) == ["system", "user", "assistant", "tool"]
    assert task.search_text == "Add one and two."
    assert compose(task, [RULE]).messages[-1] == Message(
        role="user", content="Notes that may help:\n- Sums are even."
    )


def test_banks_are_searched_with_the_query_or_else_the_question() -> None:
    asked: list[str] = []

    class Listening(FixedBank):
        async def recall(
            self, query: str, *, limit: int, audience: Audience | None = None
        ) -> Sequence[Recall]:
            asked.append(query)
            return ()

    source = MemorySource(bank=Listening([]))
    for task in (
        Task(question="Q?"),
        Task(question="Q?", query="the topic"),
        Task(question="", earlier=EARLIER),
    ):
        asyncio.run(source.prepare(task, None))
    assert asked == ["Q?", "the topic", "Add one and two."]


def test_without_an_id_a_task_is_known_by_its_content() -> None:
    one, same, other = (Task(question=q) for q in ("What is it?", "What is it?", "What was it?"))
    assert one.id == same.id != other.id
    assert Task(question="What is it?", earlier=EARLIER).id != one.id
    assert one.after(EARLIER).id == Task(question="What is it?", earlier=EARLIER).id
    assert Task(question="What is it?", id="mine").after(EARLIER).id == "mine"


def test_fifty_questions_without_ids_are_fifty_tasks_of_evidence() -> None:
    assert len({Task(question=f"Question {number}?").id for number in range(50)}) == 50


def test_an_episodes_prompts_hold_what_was_seen_and_done() -> None:
    model = ScriptedModel(script=lambda prompt: (f"go {len(prompt.messages)}", -0.1))
    episode = Episode(controller=Controller(model=model, policy=Policy()))

    async def walk() -> list[Outcome]:
        return [await episode.step(Task(question=f"Room {n}")) for n in range(3)]

    outcomes = asyncio.run(walk())
    said = [(message.role, message.content) for message in model.prompts[-1].messages]
    assert said == [
        ("user", "Room 0"),
        ("assistant", "go 1"),
        ("user", "Room 1"),
        ("assistant", "go 3"),
        ("user", "Room 2"),
    ]
    kept = read_decision(json.loads(json.dumps(decision_fields(decision_of(outcomes[-1], at=1.0)))))
    assert kept.task == outcomes[-1].task
    assert len(kept.task.earlier) == 4
    assert len({outcome.task.id for outcome in outcomes}) == 3


def test_an_episode_takes_tool_calls_and_their_results() -> None:
    def script(prompt: Prompt) -> Reply:
        if prompt.messages[-1].role == "tool":
            return "It is 3."
        return Decode(text="", tool_calls=(CALL,))

    model = ScriptedModel(script=script)
    episode = Episode(controller=Controller(model=model, policy=Policy()))
    first = asyncio.run(episode.step(Task(question="Add one and two.", tools=(ADD,))))
    assert json.loads(first.answer) == {"name": "add", "arguments": {"a": 1, "b": 2}}
    result = Message(role="tool", content="3", tool_call_id="c1")
    second = asyncio.run(episode.step(Task(question="", earlier=(result,), tools=(ADD,))))
    assert second.answer == "It is 3."
    assert roles(model.prompts[-1]) == ["user", "assistant", "tool"]
    assert model.prompts[-1].messages[1].tool_calls == (CALL,)


@pytest.mark.parametrize("arguments", ['{"a":1,"b":2}', '{"b": 2, "a": 1}'])
def test_calls_with_the_same_arguments_are_the_same_answer(arguments: str) -> None:
    model = ScriptedModel(
        script=lambda prompt: Decode(text="", tool_calls=(ToolCall(name="add", arguments=arguments),))
    )
    outcome = Controller(model=model, policy=Policy()).answer_sync(Task(question="Add.", tools=(ADD,)))
    assert outcome.answer == '{"arguments": {"a": 1, "b": 2}, "name": "add"}'


def test_tools_and_calls_go_over_the_wire_and_come_back() -> None:
    reply = {
        "choices": [
            {
                "message": {
                    "content": None,
                    "tool_calls": [
                        {"id": "c2", "type": "function", "function": {"name": "add", "arguments": '{"a": 3}'}}
                    ],
                },
                "finish_reason": "tool_calls",
            }
        ]
    }
    task = Task(question="And now?", earlier=EARLIER, tools=(ADD,))

    async def ask(url: str) -> Decode:
        model = ChatModel(base_url=url)
        try:
            return await model.decode(first_prompt(task))
        finally:
            await model.aclose()

    with FaultyServer(in_turn(sends(reply))) as server:
        decode = asyncio.run(ask(server.url))
    assert decode.tool_calls == (ToolCall(id="c2", name="add", arguments='{"a": 3}'),)
    sent = server.requests[0].body
    assert sent["tools"][0]["function"]["parameters"] == dict(ADD.parameters)
    assert sent["messages"][2]["tool_calls"][0]["function"] == {"name": "add", "arguments": CALL.arguments}
    assert sent["messages"][3] == {"role": "tool", "content": "3", "tool_call_id": "c1"}


def test_samples_of_agreement_are_asked_with_the_same_tools() -> None:
    model = ScriptedModel(script=lambda prompt: Decode(text="", tool_calls=(CALL,)))
    policy = Policy(signal="agreement", threshold=0.5, sources=("retry",))
    outcome = Controller(model=model, policy=policy).answer_sync(Task(question="Add.", tools=(ADD,)))
    assert (outcome.confidence, outcome.calls) == (1.0, 4)
    assert all(prompt.tools == (ADD,) for prompt in model.prompts)


def test_a_tool_call_without_log_probs_has_an_unknown_confidence_and_stands() -> None:
    def script(prompt: Prompt) -> Decode:
        noted = "Notes" in prompt.messages[-1].content
        text = Decode(text="It rains.", tokens=(Token("It rains.", -2.5),))
        return text if noted else Decode(text="", tool_calls=(CALL,), model="silent")

    controller = Controller(
        model=ScriptedModel(script=script),
        policy=Policy(threshold=-0.5, sources=("notes",), margins={"notes": 0.0}),
        sources={"notes": MemorySource(bank=FixedBank([RULE]))},
    )
    outcome = controller.answer_sync(Task(question="Add.", tools=(ADD,)))
    assert (outcome.confidence, outcome.route.reason) == (None, "no confidence")
    assert outcome.decode.tool_calls == (CALL,)


def test_the_confidence_of_a_tool_call_is_that_of_all_its_tokens() -> None:
    tokens = (Token('{"name":', -0.5), Token(' "add"}', -1.5))
    model = ScriptedModel(script=lambda prompt: Decode(text="", tool_calls=(CALL,), tokens=tokens))
    outcome = Controller(model=model, policy=Policy()).answer_sync(Task(question="Add.", tools=(ADD,)))
    assert outcome.baseline.signals["mean"] == outcome.baseline.signals["answer_mean"] == -1.0
