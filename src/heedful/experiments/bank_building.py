"""Build a bank from the pool rows of a study: exemplars, or rules distilled from rollouts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from heedful.benchmarks.items import bare_question, normal_question
from heedful.errors import HeedfulError, UsageError
from heedful.experiments.replies import Replies
from heedful.governance.distill import (
    NEAREST,
    RELATED,
    AttemptGroup,
    RuleChange,
    change_prompt,
    changed,
    grouped,
    lesson_prompt,
    read_change,
    read_lesson,
)
from heedful.governance.exemplars import covering
from heedful.memory.entries import new_entry
from heedful.memory.formats import write_entries
from heedful.memory.index import Embedder
from heedful.models.fleet import slots_of
from heedful.ports import Model, Source
from heedful.protocol.ledger import Ledger
from heedful.protocol.record import OnProgress, Recorder, Recording
from heedful.protocol.setup import StudySetup
from heedful.protocol.table import Bools
from heedful.protocol.workspace import Workspace, write_json, write_text
from heedful.sources import RetrySource
from heedful.types import Entry, Item

NEAR_DUPLICATE = 0.95
SAMPLES = 3
"""Sampled rollouts per task, besides the greedy one."""
TEMPERATURE = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class BankBuild:
    entries: Sequence[Entry]
    leaked: int
    """Entries or pool rows left out because their question is asked, or nearly a test question."""
    rollouts: int
    """Model calls of the study's model."""
    written: int = 0
    """Calls of the writer."""
    nonsense: int = 0
    """Invalid replies of the writer."""
    groups: int = 0
    """Tasks with a contrast to learn from."""


async def build_exemplars(
    space: Workspace, setup: StudySetup, model: Model, embedder: Embedder, size: int, tell: OnProgress
) -> BankBuild:
    """Worked examples that cover the pool, above all the questions the model got wrong."""
    pool = _pool(setup)
    ledger = await rollouts(space, setup, model, pool, 0, tell)
    exemplars = [(item.id, setup.benchmark.exemplar(item)) for item in pool]
    task_of = {entry.id: task for task, entry in exemplars if entry is not None}
    worked = [entry for _, entry in exemplars if entry is not None]
    kept = unleaked(worked, setup, embedder)
    if not kept:
        raise UsageError(f"{setup.benchmark.name} has no exemplars for its rows")
    vectors = embedder.embed([entry.text for entry in kept])
    wrong = np.array([not ledger.passes["fit", 0, "none", task_of[entry.id]].right for entry in kept])
    chosen = covering(np.asarray(vectors @ vectors.T, dtype=np.float64), wrong, size)
    return BankBuild(
        entries=[kept[place] for place in chosen],
        leaked=len(worked) - len(kept),
        rollouts=_calls(ledger, 0),
    )


async def build_worked(
    space: Workspace, setup: StudySetup, model: Model, embedder: Embedder, tell: OnProgress
) -> tuple[dict[str, str], BankBuild]:
    """The model's own right attempts at the pool's tasks, by task, for use as worked answers."""
    pool = _pool(setup)
    ledger = await rollouts(space, setup, model, pool, SAMPLES, tell)
    clean = _untested_rows(pool, setup, embedder)
    worked = {}
    for item in clean:
        rows = (row for row in ledger.passes.values() if row.task == item.id and row.right)
        if (row := next(rows, None)) is not None:
            worked[item.id] = _in_form(row.record.text, setup.benchmark.exemplar(item))
    return worked, BankBuild(entries=(), leaked=len(pool) - len(clean), rollouts=_calls(ledger, SAMPLES))


def _in_form(text: str, exemplar: Entry | None) -> str:
    """An attempt on one line, with the ending of the benchmark's own worked answers."""
    line = " ".join(text.split())
    ending = "" if exemplar is None else exemplar.response.rpartition("Answer:")[2].strip()
    if not ending or exemplar is None or "Answer:" not in exemplar.response:
        return line
    return f"{line.partition('Answer:')[0].strip()} Answer: {ending}".strip()


def write_responses(file: Path, worked: Mapping[str, str]) -> None:
    """Worked answers by row, without the rows' texts."""
    lines = (msgspec.json.encode({"id": id, "response": text}).decode() for id, text in worked.items())
    write_text(file, "".join(f"{line}\n" for line in lines))


async def build_rules(
    space: Workspace,
    setup: StudySetup,
    model: Model,
    writer: Model,
    embedder: Embedder,
    size: int,
    budget: int,
    tell: OnProgress,
    on_step: Callable[[int, int, int], None],
) -> BankBuild:
    """Rules distilled from right and wrong rollouts; every reply is saved before it is used."""
    pool = _pool(setup)
    ledger = await rollouts(space, setup, model, pool, SAMPLES, tell)
    clean = _untested_rows(pool, setup, embedder)
    groups = _groups(setup, ledger, clean)
    replies = Replies(space.folder / "build" / "replies.jsonl", writer)
    rules: dict[str, str] = {}
    nonsense = 0
    for number, group in enumerate(groups, start=1):
        if replies.asked + (2 if rules else 1) > budget:  # two calls: the lesson, and what to do with it
            break
        change = await _change(group, rules, replies, embedder)
        nonsense += change is None
        if change is not None and (len(rules) < size or change.operation != "add"):
            rules = changed(rules, change, number)
        on_step(number, len(groups), len(rules))
    if replies.asked and not rules:
        raise HeedfulError(
            f"the writer {replies.name} gave no valid rule in {replies.asked} calls; "
            "choose another one with --writer-url and --writer-model"
        )
    entries = [new_entry(text, kind="rule", id=id, source="heedful bank build") for id, text in rules.items()]
    kept = unleaked(entries, setup, embedder)
    if not kept:
        raise UsageError(
            f"no rule came out of {len(groups)} tasks to learn from with a budget of {budget} calls; use a "
            "larger --budget, or a study with more rows in its pool"
        )
    return BankBuild(
        entries=kept,
        leaked=len(pool) - len(clean) + len(entries) - len(kept),
        rollouts=_calls(ledger, SAMPLES),
        written=replies.asked,
        nonsense=nonsense,
        groups=len(groups),
    )


async def rollouts(
    space: Workspace, setup: StudySetup, model: Model, pool: Sequence[Item], samples: int, tell: OnProgress
) -> Ledger:
    """Attempts at the pool's tasks without memory: one greedy, the others sampled."""
    sources: dict[str, Source] = {"none": RetrySource()}
    for sample in range(1, samples + 1):
        sources[f"sample{sample}"] = RetrySource(temperature=TEMPERATURE, seed=sample)
    recording = Recording(side="fit", items=pool, sources={0: sources}, benchmark=setup.benchmark)
    with Ledger(space.folder / "build" / "ledger.jsonl") as ledger:
        await Recorder(recording, model, ledger, tell).run(slots_of(model, setup.study.model.slots))
    return ledger


def write_bank(file: Path, built: BankBuild) -> None:
    """Write the bank atomically, and its cost to a file next to it."""
    write_text(file, write_entries(built.entries, "jsonl"))
    write_json(cost_file(file), {"rollouts": built.rollouts, "written": built.written})


def cost_file(bank: Path) -> Path:
    return bank.with_suffix(".cost.json")


async def _change(
    group: AttemptGroup, rules: Mapping[str, str], writer: Replies, embedder: Embedder
) -> RuleChange | None:
    """The change that a group's lesson makes to the list; None if the writer's reply is invalid."""
    lesson = read_lesson(await writer.ask(lesson_prompt(group)), group.question)
    if lesson is None:
        return None
    near = _related(lesson, rules, embedder)
    if not near:
        return RuleChange(operation="add", rule=lesson)
    return read_change(await writer.ask(change_prompt(lesson, near)), lesson, near)


def _related(lesson: str, rules: Mapping[str, str], embedder: Embedder) -> dict[str, str]:
    """The rules most similar to a lesson, if they are related to it."""
    if not rules:
        return {}
    vectors = embedder.embed([lesson, *rules.values()])
    similarity = vectors[1:] @ vectors[0]
    order = np.argsort(-similarity, kind="stable")[:NEAREST]
    ids = list(rules)
    related = [ids[place] for place in sorted(order.tolist()) if similarity[place] >= RELATED]
    return {id: rules[id] for id in related}


def _groups(setup: StudySetup, ledger: Ledger, pool: Sequence[Item]) -> list[AttemptGroup]:
    """Tasks with a wrong attempt and a right one, or a worked solution; mixed attempts first."""
    mixed: list[AttemptGroup] = []
    others: list[AttemptGroup] = []
    for item in pool:
        rows = [
            row for row in ledger.passes.values() if row.task == item.id and row.record.status == "decoded"
        ]
        worked = setup.benchmark.exemplar(item)
        contrast = grouped(
            [(row.record.text, row.right) for row in rows], None if worked is None else worked.response
        )
        if contrast is not None:
            right, wrong = contrast
            group = AttemptGroup(task=item.id, question=item.question, right=right, wrong=wrong)
            (mixed if any(row.right for row in rows) else others).append(group)
    return [*mixed, *others]


def _untested_rows(pool: Sequence[Item], setup: StudySetup, embedder: Embedder) -> list[Item]:
    """The pool without rows whose question is asked, or nearly the same as a test question."""
    asked = [new_entry(item.question, kind="fact", id=item.id) for item in pool]
    kept = {entry.id for entry in unleaked(asked, setup, embedder)}
    return [item for item in pool if item.id in kept]


def unleaked(entries: Sequence[Entry], setup: StudySetup, embedder: Embedder) -> list[Entry]:
    """The entries whose text is neither asked nor nearly the same as a test question."""
    kept = setup.splits.unasked(entries)
    if not kept or not setup.splits.test:
        return kept
    near = near_duplicates(kept, setup.splits.test, embedder)
    return [entry for entry, nearly in zip(kept, near, strict=True) if not nearly.any()]


def near_duplicates(entries: Sequence[Entry], items: Sequence[Item], embedder: Embedder) -> Bools:
    """Which entries (rows) are nearly the same as which questions (columns)."""
    questions = embedder.embed([normal_question(item.question) for item in items])
    own = embedder.embed([normal_question(bare_question(entry.text)) for entry in entries])
    return np.asarray(own @ questions.T >= NEAR_DUPLICATE)


def _pool(setup: StudySetup) -> Sequence[Item]:
    if not setup.splits.pool:
        raise UsageError(
            f"the study {setup.study.name} leaves no rows for banks: set, for example, [split] pool = 100"
        )
    return setup.splits.pool


def _calls(ledger: Ledger, samples: int) -> int:
    """Calls for the greedy attempts and this many samples each; the ledger may hold more."""
    names = {"none", *(f"sample{sample}" for sample in range(1, samples + 1))}
    return sum(row.record.calls for row in ledger.passes.values() if row.record.source in names)
