"""Decode once: a model that remembers what it was asked."""

import asyncio
from dataclasses import dataclass, field

from heedful.ports import Model
from heedful.types import Decode, Prompt, Traits


@dataclass(slots=True)
class RecordedModel:
    """Passes each distinct prompt on once and answers it again from memory.

    Policies that are compared on the same questions then see the same decodes, and the comparison
    costs no more model calls than there are distinct prompts.
    """

    model: Model
    decodes: dict[str, "asyncio.Task[Decode]"] = field(default_factory=dict)

    @property
    def traits(self) -> Traits:
        return self.model.traits

    async def decode(self, prompt: Prompt) -> Decode:
        if prompt.digest not in self.decodes:
            self.decodes[prompt.digest] = asyncio.ensure_future(self.model.decode(prompt))
        return await self.decodes[prompt.digest]
