"""Which of the entries recalled together carried the answer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from heedful.decisions import read_task
from heedful.errors import LockError, UsageError
from heedful.ports import Model
from heedful.stages.answer import read_answer, same_answer
from heedful.stages.compose import compose
from heedful.types import Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """The answer as it is without one entry."""

    entry: str
    answer: str
    flipped: bool
    """Whether the answer is another without it."""


async def leave_one_out(
    record: dict[str, Any], model: Model, find: Callable[[str, str, str], Entry]
) -> Sequence[LeftOut]:
    """Decode a recorded second pass again without each recalled entry.

    `find(bank, entry, version)` gives the entry as it was then. The prompt is rebuilt first and
    must have the recorded digest, else the comparison would be with something else.
    """
    candidate = _consulted(record)
    spec = record["sources"][candidate["source"]]
    task = read_task(record["task"])
    entries = [find(spec["bank"], recall["entry"], recall["version"]) for recall in candidate["recalls"]]
    rebuilt = compose(task, entries, spec["placement"], spec["heading"])
    if rebuilt.digest != candidate["prompt_digest"]:
        raise LockError("the recorded prompt cannot be rebuilt by this version of heedful; ask again")
    left_out = []
    for entry in entries:
        others = [other for other in entries if other is not entry]
        decode = await model.decode(compose(task, others, spec["placement"], spec["heading"]))
        answer = read_answer(decode, task).answer
        flipped = not same_answer(answer, candidate["answer"])
        left_out.append(LeftOut(entry=entry.id, answer=answer, flipped=flipped))
    return left_out


def _consulted(record: dict[str, Any]) -> dict[str, Any]:
    """The memory pass to look into: the one that became the answer, or the last one tried."""
    passes: list[dict[str, Any]] = [c for c in record["candidates"] if c["recalls"]]
    if record["chosen"] is not None and record["candidates"][record["chosen"]]["recalls"]:
        chosen: dict[str, Any] = record["candidates"][record["chosen"]]
        return chosen
    if record["baseline"]["recalls"]:
        passes = [record["baseline"], *passes]
    if not passes:
        raise UsageError(f"decision {record['decision']} used no memory, so there is nothing to leave out")
    return passes[-1]
