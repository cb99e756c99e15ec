"""A writer whose replies are saved, so interrupted work resumes without asking again."""

import json
import os
from dataclasses import replace
from pathlib import Path

from heedful.errors import RequestError, StoreError
from heedful.ports import Model
from heedful.types import Prompt, digest_of


class Replies:
    """Asks a model once for each prompt; a reply is saved before it is used."""

    def __init__(self, path: Path, model: Model) -> None:
        self.name = model.traits.name
        self.asked = 0
        """Prompts asked so far, cached or not."""
        self._path, self._model = path, model
        self._known: dict[str, str] = {}
        for line in path.read_bytes().splitlines() if path.exists() else ():
            try:
                fields = json.loads(line)
                self._known[fields["prompt"]] = fields["text"]
            except (ValueError, KeyError, TypeError):
                continue  # a line truncated by a crash: it is asked again

    async def ask(self, prompt: Prompt) -> str:
        self.asked += 1
        key = digest_of([prompt.digest, self._model.traits.fingerprint])
        if key not in self._known:
            self._keep(key, await self._reply(prompt))
        return self._known[key]

    async def _reply(self, prompt: Prompt) -> str:
        """The model's reply; if it refuses the schema, it is asked without: the prompt names the format."""
        try:
            decode = await self._model.decode(prompt)
        except RequestError:
            if prompt.schema is None:
                raise
            decode = await self._model.decode(replace(prompt, schema=None))
        return decode.text

    def _keep(self, key: str, text: str) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("ab") as file:
                if file.tell() and not self._path.read_bytes().endswith(b"\n"):
                    file.write(b"\n")
                file.write(json.dumps({"prompt": key, "text": text}, ensure_ascii=False).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise StoreError(f"{self._path} cannot be written: {error.strerror}") from error
        self._known[key] = text
