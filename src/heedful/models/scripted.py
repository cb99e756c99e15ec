"""The public fake: a model with scripted replies, for tests and for trying out policies."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from heedful.errors import ModelError
from heedful.types import Decode, Prompt, Token, Traits, Usage

Reply = str | tuple[str, float] | Decode | Exception
"""A text, a text with the log-prob of each of its tokens, a whole decode, or an error to raise."""

SCRIPTED = Traits(name="scripted", endpoint="scripted", top_logprobs=2, fingerprint="scripted")


@dataclass(slots=True, kw_only=True)
class ScriptedModel:
    """Answers from a mapping of question (the last user message) to reply, or from a function."""

    script: Mapping[str, Reply] | Callable[[Prompt], Reply]
    traits: Traits = SCRIPTED
    prompts: list[Prompt] = field(default_factory=list)
    """Every prompt received, in order."""

    async def decode(self, prompt: Prompt) -> Decode:
        self.prompts.append(prompt)
        await asyncio.sleep(0)  # like any model, let others run meanwhile
        reply = self._reply(prompt)
        if isinstance(reply, Exception):
            raise reply
        return reply if isinstance(reply, Decode) else self._decode_of(reply, prompt)

    async def aclose(self) -> None:
        """Nothing to close."""

    def _reply(self, prompt: Prompt) -> Reply:
        if callable(self.script):
            return self.script(prompt)
        question = prompt.messages[-1].content
        if question not in self.script:
            raise ModelError(f"the script has no reply to {question!r}")
        return self.script[question]

    def _decode_of(self, reply: str | tuple[str, float], prompt: Prompt) -> Decode:
        text, logprob = (reply, -0.1) if isinstance(reply, str) else reply
        tokens = spoken(text, logprob) if self.traits.logprobs else ()
        usage = Usage(
            prompt_tokens=sum(len(m.content.split()) for m in prompt.messages),
            completion_tokens=len(text.split()),
        )
        return Decode(text=text, answer=text.strip(), tokens=tokens, usage=usage, model=self.traits.name)


def spoken(text: str, logprob: float) -> tuple[Token, ...]:
    """A text as word tokens that share one log-prob."""
    words = text.split(" ")
    return tuple(
        Token(word if i == 0 else f" {word}", logprob, ((word, logprob), ("…", logprob - 1.0)))
        for i, word in enumerate(words)
    )
