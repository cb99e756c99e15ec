"""A writer behind an endpoint."""

import asyncio
from pathlib import Path

from heedful import ChatModel
from heedful.experiments.replies import Replies
from heedful.types import Message, Prompt
from tests.faulty import FaultyServer, Play, Request, answers, fails

ASKED = Prompt(
    messages=(Message(role="user", content="Reply as JSON."),), max_tokens=20, schema={"type": "object"}
)


def test_an_endpoint_that_refuses_a_schema_is_asked_without(tmp_path: Path) -> None:
    def script(request: Request) -> Play:
        return fails(400, "no such parameter") if "response_format" in request.body else answers("{}")

    with FaultyServer(script) as server:
        writer = ChatModel(base_url=server.url, logprobs=False)
        replies = Replies(tmp_path / "replies.jsonl", writer)
        assert asyncio.run(replies.ask(ASKED)) == "{}"
        assert len(server.requests) == 2
        assert all("logprobs" not in request.body for request in server.requests)
        assert asyncio.run(Replies(tmp_path / "replies.jsonl", writer).ask(ASKED)) == "{}"
        assert len(server.requests) == 2, "what was replied is kept"
