"""A chat request as a task of the control loop, which still knows the client's own messages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from heedful.models.chat_messages import ROLES, JsonMessage, message_of, schema_of, text_of, tools_of
from heedful.serve.chat_call import ChatCall
from heedful.stages.compose import first_prompt
from heedful.types import Message, Prompt, Task, TaskTemplate


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatTask:
    """A task and the JSON of its messages, so that every pass sends what the client wrote."""

    task: Task
    system: JsonMessage | None
    """The client's first system message."""
    question: JsonMessage | None
    """The last user turn; None after a tool's result."""
    earlier: Mapping[int, JsonMessage] = field(repr=False)
    """The other messages, by the identity of the task's own."""
    first: Prompt = field(repr=False)
    messages: Sequence[JsonMessage] = field(repr=False)
    """The messages of the memory-free pass."""

    def json_messages(self, prompt: Prompt) -> Sequence[JsonMessage]:
        """The messages of a prompt: the client's own where the prompt has them unchanged."""
        if prompt.messages == self.first.messages:
            return self.messages
        return [self._json(message) for message in prompt.messages]

    def is_pass(self, prompt: Prompt) -> bool:
        """Whether a prompt asks the task itself, not a question about an answer to it."""
        same = prompt.tools == self.task.tools and prompt.schema == self.task.schema
        return same and (self.question is None or self._asks(prompt.messages[-1]))

    def _json(self, message: Message) -> JsonMessage:
        if (known := self.earlier.get(id(message))) is not None:
            return known
        if self.question is not None and self._asks(message):
            return {**self.question, "content": message.content}
        if message.role == "system" and self.system is not None:
            return {**self.system, "content": message.content}
        return {"role": message.role, "content": message.content}

    def _asks(self, message: Message) -> bool:
        """Whether it is the question, perhaps with notes before or after it."""
        question = self.task.question
        return message.role == "user" and message.content.startswith(question) | message.content.endswith(
            question
        )


def chat_task(call: ChatCall, template: TaskTemplate, scope: Mapping[str, str], query_turns: int) -> ChatTask:
    """The task of a chat request that can be controlled.

    The template's instructions are used if the request has no system message. Banks are searched with the
    last `query_turns` user turns.
    """
    given: list[JsonMessage] = call.fields["messages"]
    system = given[0] if ROLES[given[0]["role"]] == "system" else None
    question = given[-1] if given[-1]["role"] == "user" else None
    middle = given[system is not None : len(given) - (question is not None)]
    earlier = tuple(map(message_of, middle))
    instructions = template.instructions if system is None else text_of(system)
    turns = [text_of(message) for message in given if message["role"] == "user"][-query_turns:]
    task = Task(
        question="" if question is None else text_of(question),
        instructions=instructions,
        answer_pattern=template.answer_pattern,
        schema=schema_of(call.fields.get("response_format")),
        max_tokens=_length(call) or template.max_tokens,
        earlier=earlier,
        tools=tools_of(call.fields.get("tools")),
        query="\n".join(turns) if len(turns) > 1 else "",
        scope=scope,
    )
    added = [{"role": "system", "content": instructions}] if system is None and instructions else []
    return ChatTask(
        task=task,
        system=system,
        question=question,
        earlier={id(message): own for message, own in zip(earlier, middle, strict=True)},
        first=first_prompt(task),
        messages=[*added, *given],
    )


def _length(call: ChatCall) -> int:
    """The length that a request sets, for the record of its decision; 0 if it sets none."""
    lengths = (call.fields.get(name) for name in ("max_completion_tokens", "max_tokens"))
    return next((length for length in lengths if type(length) is int and length > 0), 0)
