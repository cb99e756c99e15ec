"""llama.cpp in this process, called through the same client as any endpoint."""

import hashlib
import os
import secrets
from collections.abc import MutableMapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from heedful.errors import MissingError, ModelError, UsageError
from heedful.extras import importing
from heedful.limits import refuse_count
from heedful.models.catalogue import CATALOGUE
from heedful.models.chat import ChatModel
from heedful.models.schemes import ModelOptions
from heedful.types import Decode, Prompt, Traits, digest_of

DEFAULT_WEIGHTS = "smollm2-135m"
SPINS = "1000"
"""How often a waiting thread looks before it sleeps; see docs/design/009-embedded-engine.md."""
CACHE_MIB = 512
"""Cache for prompts that no longer have a slot; the engine's own default is 8 GiB."""
MOST_THREADS, MOST_SLOTS = 512, 256
"""Limits of the engine: it ends the process when they are exceeded."""
PATIENCE = 3600.0
"""Seconds per decode: next to a stream of short requests a long one advances by one token per prompt read,
and 160 tokens took over ten minutes on one core."""


@dataclass(frozen=True, kw_only=True)
class EmbeddedModel:
    """Runs a GGUF file: one from the catalogue (`heedful weights list`) or your own.

    The weights are loaded at the first decode. Greedy decodes depend slightly on slots and flash attention,
    so the fingerprint covers both: decode once, and keep the result.
    """

    weights: str | Path = DEFAULT_WEIGHTS
    threads: int | None = None
    """None: one for each core that this process may use. Use 1 if the cores are shared."""
    slots: int = 4
    """Number of concurrent requests."""
    context: int = 2048
    """Tokens per slot, prompt and answer together."""
    flash_attention: bool = True
    """If on, single, batched and cached decodes of short prompts are bit-identical; longer prompts that are
    decoded together still differ by about 0.01 in log-prob (both with the default model)."""
    repeatable: bool = False
    """Decode one request at a time and read every prompt from its start: the same prompt then gives the
    same log-probs to the last bit, whatever was decoded before it."""
    top_logprobs: int = 5
    traits: Traits = field(init=False)

    def __post_init__(self) -> None:
        if not isinstance(self.weights, str | Path):
            raise UsageError(f"EmbeddedModel(weights) is {self.weights!r}; give a name or a GGUF file")
        if self.threads is not None:
            refuse_count("EmbeddedModel(threads)", self.threads, least=1, most=MOST_THREADS)
        refuse_count("EmbeddedModel(slots)", self.slots, least=1, most=MOST_SLOTS)
        refuse_count("EmbeddedModel(context)", self.context, least=1)
        refuse_count("EmbeddedModel(top_logprobs)", self.top_logprobs, least=0)
        if self.repeatable and self.slots != 1:
            raise UsageError("a repeatable model decodes one request at a time: set slots to 1")
        repeatable = ["repeatable"] if self.repeatable else []
        traits = Traits(
            name=str(self.weights),
            endpoint="embedded",
            top_logprobs=self.top_logprobs,
            fingerprint=digest_of(
                [_sha256(self.weights), self.slots, self.context, self.flash_attention, *repeatable]
            ),
        )
        object.__setattr__(self, "traits", traits)

    @cached_property
    def _file(self) -> Path:
        """The model file, looked up at the first decode: the fingerprint does not need it."""
        if isinstance(self.weights, str) and self.weights in CATALOGUE:
            from heedful.models import weights

            return weights.path(self.weights) / CATALOGUE[self.weights].files[0].name
        return Path(self.weights)

    @property
    def chat(self) -> ChatModel:
        """The client of the engine; the engine stops when this model is garbage-collected."""
        return self._running[1]

    @cached_property
    def _running(self) -> tuple[Any, ChatModel]:
        key = secrets.token_hex(16)
        server = self._start(self._file, key)
        chat = ChatModel(
            base_url=server.listening_address,
            model=self._file.stem,
            key=key,
            top_logprobs=self.top_logprobs,
            concurrency=self.slots,
            timeout=PATIENCE,
        )
        return server, chat

    async def decode(self, prompt: Prompt) -> Decode:
        return await self.chat.decode(prompt)

    async def aclose(self) -> None:
        """Stop the engine; the next decode starts it again."""
        running = self.__dict__.pop("_running", None)
        if running is not None:
            await running[1].aclose()

    def _start(self, file: Path, key: str) -> Any:
        _set_waiting(os.environ)
        try:
            with importing("embedded"):
                import xllamacpp
        except (ImportError, OSError) as error:
            raise MissingError(
                f"cannot load the embedded engine ({error}); on Linux, install the system package libgomp"
            ) from error
        flash = xllamacpp.llama_flash_attn_type
        params = xllamacpp.CommonParams()
        params.model.path = str(file)
        params.model_alias = {file.stem}
        params.api_keys = [key]
        params.n_parallel = self.slots
        params.n_ctx = self.context * self.slots
        params.cpuparams.n_threads = self.threads or usable_cores()
        params.cpuparams_batch.n_threads = self.threads or usable_cores()
        params.flash_attn_type = (
            flash.LLAMA_FLASH_ATTN_TYPE_ENABLED
            if self.flash_attention
            else flash.LLAMA_FLASH_ATTN_TYPE_DISABLED
        )
        params.cache_prompt = not self.repeatable
        params.cache_ram_mib = 0 if self.repeatable else CACHE_MIB
        params.ui = False
        params.verbosity = -1
        try:
            return xllamacpp.Server(params)
        except RuntimeError as error:
            raise ModelError(f"the engine cannot load {file.name}: {error}") from error


def _set_waiting(environment: MutableMapping[str, str]) -> None:
    """Let waiting threads spin for a moment before they sleep, unless the environment says otherwise.

    The engine's library reads this once, when it loads. Threads that sleep at once cost a quarter of the
    speed on a free machine; threads that spin long bring two busy processes on two cores to a standstill.
    """
    if not environment.keys() & {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"}:
        environment["GOMP_SPINCOUNT"] = SPINS


def embedded_model(options: ModelOptions) -> EmbeddedModel:
    return EmbeddedModel(
        weights=options.weights,
        threads=options.threads,
        slots=options.slots,
        context=options.context,
        repeatable=options.repeatable,
    )


def usable_cores() -> int:
    """Number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _sha256(chosen: str | Path) -> str:
    """The pinned sha256 of weights in the catalogue; of any other file, the sha256 of its content."""
    if isinstance(chosen, str) and chosen in CATALOGUE:
        return CATALOGUE[chosen].files[0].sha256
    file = Path(chosen)
    if not file.is_file():
        known = ", ".join(CATALOGUE)
        raise MissingError(f"no model {str(chosen)!r}: give a GGUF file or one of {known}")
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
