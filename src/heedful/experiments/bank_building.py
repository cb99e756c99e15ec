"""Build a bank from rows of the fit side that are left to banks: exemplars, or rules from rollouts."""

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
from heedful.memory.ranking import Embedder
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
"""Rollouts of a task beside the greedy one, from which rules are distilled."""
TEMPERATURE = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class BankBuild:
    entries: Sequence[Entry]
    leaked: int
    """Entries, or rows to make them of, left out because they are on the test side, or nearly."""
    rollouts: int
    """Model calls of the study's model."""
    written: int = 0
    """Calls of the writer."""
    nonsense: int = 0
    """Replies of the writer that made no sense."""
    groups: int = 0
    """Tasks with something to learn from."""


async def build_exemplars(
    space: Workspace, setup: StudySetup, model: Model, embedder: Embedder, size: int, tell: OnProgress
) -> BankBuild:
    """Worked examples that cover the pool, and most of all what the model got wrong there."""
    pool = _pool(setup)
    ledger = await rollouts(space, setup, model, pool, 0, tell)
    made = [(item.id, setup.benchmark.exemplar(item)) for item in pool]
    task_of = {entry.id: task for task, entry in made if entry is not None}
    worked = [entry for _, entry in made if entry is not None]
    kept = unleaked(worked, setup, embedder)
    if not kept:
        raise UsageError(f"{setup.benchmark.name} makes no exemplars of its rows")
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
    """The model's own right attempts at the pool's tasks, by task, as worked answers for exemplars."""
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
    """An attempt on one line, ending as the benchmark's own worked answers end."""
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
    """Rules distilled from right and wrong rollouts; every reply is on disk before it is used."""
    pool = _pool(setup)
    ledger = await rollouts(space, setup, model, pool, SAMPLES, tell)
    clean = _untested_rows(pool, setup, embedder)
    groups = _groups(setup, ledger, clean)
    replies = Replies(space.folder / "build" / "replies.jsonl", writer)
    rules: dict[str, str] = {}
    nonsense = 0
    for number, group in enumerate(groups, start=1):
        if replies.asked + (2 if rules else 1) > budget:  # a lesson, and what to do with it
            break
        change = await _change(group, rules, replies, embedder)
        nonsense += change is None
        if change is not None and (len(rules) < size or change.operation != "add"):
            rules = changed(rules, change, number)
        on_step(number, len(groups), len(rules))
    if replies.asked and not rules:
        raise HeedfulError(
            f"the writer {replies.name} gave no rule that makes sense in {replies.asked} calls; "
            "choose another with --writer-url and --writer-model"
        )
    made = [new_entry(text, kind="rule", id=id, source="heedful bank build") for id, text in rules.items()]
    kept = unleaked(made, setup, embedder)
    if not kept:
        raise UsageError(
            f"no rule was made of {len(groups)} tasks to learn from with a budget of {budget} calls; give a "
            "larger --budget, or a study with more rows in its pool"
        )
    return BankBuild(
        entries=kept,
        leaked=len(pool) - len(clean) + len(made) - len(kept),
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
        await Recorder(recording, model, ledger, tell).run(setup.study.model.slots)
    return ledger


def write_bank(file: Path, built: BankBuild) -> None:
    """The whole bank, or nothing; what it cost is written beside it."""
    write_text(file, write_entries(built.entries, "jsonl"))
    write_json(cost_file(file), {"rollouts": built.rollouts, "written": built.written})


def cost_file(bank: Path) -> Path:
    return bank.with_suffix(".cost.json")


async def _change(
    group: AttemptGroup, rules: Mapping[str, str], writer: Replies, embedder: Embedder
) -> RuleChange | None:
    """What a group's lesson does to the list; None where the writer's reply makes no sense."""
    lesson = read_lesson(await writer.ask(lesson_prompt(group)), group.question)
    if lesson is None:
        return None
    near = _related(lesson, rules, embedder)
    if not near:
        return RuleChange(operation="add", rule=lesson)
    return read_change(await writer.ask(change_prompt(lesson, near)), lesson, near)


def _related(lesson: str, rules: Mapping[str, str], embedder: Embedder) -> dict[str, str]:
    """The rules that are about the same as a lesson, the nearest of them."""
    if not rules:
        return {}
    vectors = embedder.embed([lesson, *rules.values()])
    likeness = vectors[1:] @ vectors[0]
    order = np.argsort(-likeness, kind="stable")[:NEAREST]
    ids = list(rules)
    return {ids[place]: rules[ids[place]] for place in sorted(order.tolist()) if likeness[place] >= RELATED}


def _groups(setup: StudySetup, ledger: Ledger, pool: Sequence[Item]) -> list[AttemptGroup]:
    """Tasks with a wrong attempt and something right to hold against it; mixed attempts first."""
    mixed: list[AttemptGroup] = []
    others: list[AttemptGroup] = []
    for item in pool:
        rows = [
            row for row in ledger.passes.values() if row.task == item.id and row.record.status == "decoded"
        ]
        worked = setup.benchmark.exemplar(item)
        found = grouped(
            [(row.record.text, row.right) for row in rows], None if worked is None else worked.response
        )
        if found is not None:
            right, wrong = found
            group = AttemptGroup(task=item.id, question=item.question, right=right, wrong=wrong)
            (mixed if any(row.right for row in rows) else others).append(group)
    return [*mixed, *others]


def _untested_rows(pool: Sequence[Item], setup: StudySetup, embedder: Embedder) -> list[Item]:
    """The pool without rows whose question is asked, or nearly the same as one on the test side."""
    asked = [new_entry(item.question, kind="fact", id=item.id) for item in pool]
    kept = {entry.id for entry in unleaked(asked, setup, embedder)}
    return [item for item in pool if item.id in kept]


def unleaked(entries: Sequence[Entry], setup: StudySetup, embedder: Embedder) -> list[Entry]:
    """The entries whose text is not asked, nor nearly the same as a question on the test side."""
    kept = setup.splits.unasked(entries)
    if not kept or not setup.splits.test:
        return kept
    near = near_duplicates(kept, setup.splits.test, embedder)
    return [entry for entry, nearly in zip(kept, near, strict=True) if not nearly.any()]


def near_duplicates(entries: Sequence[Entry], items: Sequence[Item], embedder: Embedder) -> Bools:
    """Which entry (row) says nearly the same as which question (column)."""
    questions = embedder.embed([normal_question(item.question) for item in items])
    own = embedder.embed([normal_question(bare_question(entry.text)) for entry in entries])
    return np.asarray(own @ questions.T >= NEAR_DUPLICATE)


def _pool(setup: StudySetup) -> Sequence[Item]:
    if not setup.splits.pool:
        raise UsageError(
            f"the study {setup.study.name} leaves no rows to banks: give it [split] pool = 100 or so"
        )
    return setup.splits.pool


def _calls(ledger: Ledger, samples: int) -> int:
    """Calls for the greedy attempts and for so many samples each; the ledger may hold more."""
    asked = {"none", *(f"sample{sample}" for sample in range(1, samples + 1))}
    return sum(row.record.calls for row in ledger.passes.values() if row.record.source in asked)
