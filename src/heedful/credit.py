"""Find which recalled entries an answer depends on."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from heedful.errors import LockError, UsageError
from heedful.passes import pass_digest
from heedful.ports import Model
from heedful.records import Decision, PassRecord
from heedful.sources.memory import memory_settings
from heedful.stages.answer import read_answer, same_answer
from heedful.stages.compose import compose
from heedful.types import Entry, Prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerWithout:
    """The answer when one entry is left out."""

    entry: str
    answer: str
    flipped: bool
    """Whether leaving the entry out changes the answer."""


async def leave_one_out(
    decision: Decision, model: Model, find: Callable[[str, str, str], Awaitable[Entry]]
) -> Sequence[AnswerWithout]:
    """Decode a recorded second pass again without each recalled entry.

    `find(bank, entry, version)` returns the entry in that version. The rebuilt prompt must have the recorded
    digest; without that check the comparison could be with a different prompt.
    """
    record = _consulted(decision)
    spec, task = decision.sources[record.source], decision.task
    settings = memory_settings(spec)
    assert settings is not None, "only a memory source recalls"
    entries = [await find(settings.bank, recall.entry, recall.version) for recall in record.recalls]
    rebuilt = compose(task, entries, settings.placement, settings.heading)
    if pass_digest(spec, rebuilt) != record.prompt:
        raise LockError("this version of heedful cannot rebuild the recorded prompt; ask the question again")
    answers = []
    for entry in entries:
        others = [other for other in entries if other is not entry]
        prompt = compose(task, others, settings.placement, settings.heading)
        decode = await model.decode(_sampled(prompt, decision.model.sampling))
        answer = read_answer(decode, task).answer
        flipped = not same_answer(answer, record.answer)
        answers.append(AnswerWithout(entry=entry.id, answer=answer, flipped=flipped))
    return answers


def _sampled(prompt: Prompt, sampling: Mapping[str, int | float | None]) -> Prompt:
    """The prompt with the temperature and the seed of the served request."""
    temperature, seed = sampling.get("temperature"), sampling.get("seed")
    return replace(prompt, temperature=temperature or 0.0, seed=prompt.seed if seed is None else int(seed))


def examined_pass_won(decision: Decision) -> bool:
    """Whether the pass that `leave_one_out` examines became the answer."""
    chosen = decision.first if decision.chosen is None else decision.candidates[decision.chosen].record
    return _consulted(decision) is chosen


def _consulted(decision: Decision) -> PassRecord:
    """The memory pass to examine: the one that became the answer, or the last one decoded."""
    used = [record for record in decision.passes if record.recalls and record.status == "decoded"]
    if not used:
        raise UsageError(f"decision {decision.id} used no memory, so there is nothing to leave out")
    chosen = None if decision.chosen is None else decision.candidates[decision.chosen].record
    return chosen if chosen is not None and chosen in used else used[-1]
