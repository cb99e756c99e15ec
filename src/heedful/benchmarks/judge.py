"""A model that grades answers: its verdicts are cached, and its error rate can be measured."""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

from heedful.benchmarks.items import with_choices
from heedful.errors import StoreError, UsageError
from heedful.ports import Model
from heedful.types import Item, Message, Prompt, digest_of

INSTRUCTIONS = (
    "You grade answers. An answer is right if it means the same as one of the right answers, whatever its "
    "wording; an answer that also claims something that contradicts it is wrong. Reply with one word, yes if "
    "the answer is right, or no if it is wrong."
)
_THINKING = re.compile(r"\s*<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)|.*?</think(?:ing)?>", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """Asks a model whether an answer is right; the same answer to the same question is judged once."""

    model: Model
    cache: Path
    """A file of verdicts, one JSON object per line."""
    instructions: str = INSTRUCTIONS
    max_tokens: int = 8
    _verdicts: dict[str, bool | None] = field(init=False, default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.cache.exists():
            for number, line in enumerate(self.cache.read_bytes().split(b"\n"), start=1):
                self._take(number, line)

    def _take(self, number: int, line: bytes) -> None:
        try:
            row = json.loads(line) if line.strip() else None
        except ValueError:  # a line cut by a crash: the answer is judged again
            return
        if row is not None:
            if not isinstance(row, dict) or row.get("right") not in (True, False, None) or "key" not in row:
                raise UsageError(
                    f"{self.cache} line {number} is not a verdict: remove the file to judge again"
                )
            self._verdicts[str(row["key"])] = row["right"]

    @property
    def settings(self) -> list[str]:
        """What decides its verdicts, for locks."""
        return [self.model.traits.fingerprint, self.instructions]

    def verdict(self, answer: str, item: Item) -> bool:
        """A verdict given before; a reply that was neither yes nor no counts as no."""
        key = self._key(answer, item)
        if key not in self._verdicts:
            raise UsageError(f"the answer to {item.id} has not been judged: run heedful study record")
        return bool(self._verdicts[key])

    async def judge(self, answer: str, item: Item) -> bool | None:
        """Judge an answer, unless it was judged before; None: the reply is neither yes nor no."""
        key = self._key(answer, item)
        if key not in self._verdicts:
            reply = (await self.model.decode(self._prompt(answer, item))).text
            word = re.search(r"\b(yes|no)\b", _THINKING.sub("", reply, count=1), re.IGNORECASE)
            self._keep(key, None if word is None else word[1].casefold() == "yes", item.id, answer)
        return self._verdicts[key]

    def _keep(self, key: str, right: bool | None, task: str, answer: str) -> None:
        line = json.dumps({"key": key, "right": right, "task": task, "answer": answer}, ensure_ascii=False)
        try:
            self.cache.parent.mkdir(parents=True, exist_ok=True)
            with self.cache.open("ab") as file:
                file.write(f"\n{line}".encode())
        except OSError as error:
            raise StoreError(f"the verdicts in {self.cache} cannot be written: {error.strerror}") from error
        self._verdicts[key] = right

    def _key(self, answer: str, item: Item) -> str:
        return digest_of([*self.settings, self._prompt(answer, item).digest])[:24]

    def _prompt(self, answer: str, item: Item) -> Prompt:
        right = " | ".join(item.targets)
        asked = f"Question: {with_choices(item)}\nRight answer: {right}\nGiven answer: {answer}\nIs it right?"
        messages = (
            Message(role="system", content=self.instructions),
            Message(role="user", content=asked),
        )
        return Prompt(messages=messages, max_tokens=self.max_tokens)
