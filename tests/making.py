"""Small values for tests."""

from collections.abc import Sequence

from heedful.models.scripted import spoken
from heedful.types import Decode, Entry, Recall, Spec, Task


def decode(text: str, logprob: float = -0.5, answer: str | None = None) -> Decode:
    said = text.strip() if answer is None else answer
    start = text.find(said)
    return Decode(
        text=text,
        answer=said,
        span=(start, start + len(said)) if said else None,
        tokens=spoken(text, logprob) if text else (),
        model="test",
    )


def task(question: str = "What is it?", **settings: object) -> Task:
    return Task(question=question, id="t", **settings)  # type: ignore[arg-type]


class FixedBank:
    """Recalls the same entries for every question, or raises what it is given."""

    name = "fixed"
    digest = "fixed"

    def __init__(self, entries: Sequence[Entry], error: Exception | None = None) -> None:
        self._entries = tuple(entries)
        self._error = error

    @property
    def spec(self) -> Spec:
        return {"bank": self.name, "digest": self.digest, "recall": "fixed"}

    def entries(self) -> Sequence[Entry]:
        return self._entries

    async def recall(self, query: str, *, limit: int) -> Sequence[Recall]:
        if self._error is not None:
            raise self._error
        return tuple(Recall(entry=entry, score=1.0) for entry in self._entries[:limit])
