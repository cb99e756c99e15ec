"""Decodes by prompt: what one arm has decoded, no other arm decodes again."""

import asyncio
from dataclasses import dataclass, field

import msgspec

from heedful.agents.row_file import RowFile
from heedful.ports import Model
from heedful.types import Decode, Prompt, Traits, digest_of


class DecodeRow(msgspec.Struct, frozen=True, kw_only=True):
    """A decode and the digest of its prompt and model."""

    key: str
    decode: Decode


@dataclass(slots=True, kw_only=True)
class CachedModel:
    """A model that answers a prompt from the cache if it was decoded before; a cache file survives crashes.

    Every arm still counts its calls: the cache saves time, not the cost of a policy.
    """

    model: Model
    file: RowFile[DecodeRow] | None = None
    decoded: int = 0
    saved: int = 0
    """Decodes answered from the cache."""
    _known: dict[str, Decode] = field(default_factory=dict)
    _running: dict[str, asyncio.Task[Decode]] = field(default_factory=dict)
    """Decodes in progress, which other arms wait for."""

    def __post_init__(self) -> None:
        if self.file is not None:
            self._known = {row.key: row.decode for row in self.file.rows}

    @property
    def traits(self) -> Traits:
        return self.model.traits

    async def decode(self, prompt: Prompt) -> Decode:
        key = digest_of([prompt.digest, self.traits.fingerprint])[:32]
        if key in self._known:
            self.saved += 1
            return self._known[key]
        running = self._running.get(key)
        if running is None:
            running = self._running[key] = asyncio.create_task(self._decode(key, prompt))
            running.add_done_callback(lambda done: self._end(key, done))
        else:
            self.saved += 1
        return await asyncio.shield(running)

    def _end(self, key: str, done: "asyncio.Task[Decode]") -> None:
        del self._running[key]
        if not done.cancelled():
            done.exception()  # whoever waits has it; if nobody does any more, it is of no interest

    async def _decode(self, key: str, prompt: Prompt) -> Decode:
        decode = await self.model.decode(prompt)
        self.decoded += 1
        self._known[key] = decode
        if self.file is not None:
            self.file.append(DecodeRow(key=key, decode=decode))
        return decode

    async def aclose(self) -> None:
        await self.model.aclose()
