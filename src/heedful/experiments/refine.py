"""The closed loop: evidence, retirement, replacement, and recording the passes these change.

Everything happens on the fit side, before the lock. Each iteration is judged by the objective of
the best kind of policy that uses its bank, on folds that the policy was not tuned on. The bank of the
best iteration, the earlier one on a tie, becomes the study's bank. The evidence that retires entries
comes from the same rows, so an iteration looks better there than it will on the test side.
In a study with a harm limit, the loop uses only the rows that choose the policy: the rows that
certify it must not influence the bank.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from heedful import arms
from heedful.errors import HeedfulError, LockError, UsageError
from heedful.experiments.arm_measures import ArmMeasure, measure_arms
from heedful.experiments.bank_building import unleaked
from heedful.experiments.replies import Replies
from heedful.experiments.study_evidence import table_evidence
from heedful.experiments.variant import Experiment, with_bank
from heedful.governance.distill import fix_prompt, read_lesson
from heedful.governance.evidence import standings
from heedful.governance.retire import Condemnation, review
from heedful.governance.terms import RetirementTerms
from heedful.memory.index import Embedder
from heedful.ports import Model
from heedful.protocol.fit import cross_validate, tune
from heedful.protocol.fit_result import HeldOutScore
from heedful.protocol.harm import choosing_rows
from heedful.protocol.ledger import Ledger
from heedful.protocol.setup import StudySetup
from heedful.protocol.table import Table
from heedful.protocol.workflow import earlier_ledger, fill, policy_banks, recording_of
from heedful.protocol.workspace import REFINED, Workspace, tasks_looked_at, write_json, write_text
from heedful.types import Entry, Policy

SHOWN = 3
"""How many tasks that an entry hurt are shown to the writer who replaces it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefineIteration:
    number: int
    entries: int
    """Live entries of the bank."""
    accuracy: float
    """Accuracy of the best kind of policy that uses the source, on held-out folds of the fit side."""
    objective: float
    always: ArmMeasure
    """Memory in every prompt."""
    retired: Sequence[Condemnation] = ()
    replaced: Sequence[Entry] = ()
    changed: int = 0
    """Passes with memory whose prompt differs from the previous iteration."""
    calls: int = 0
    """Model calls made in this run; the other passes were already recorded."""
    written: int = 0
    """Replies of the writer, cached or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefineResult:
    source: str
    iterations: Sequence[RefineIteration]
    chosen: int
    bank: str
    """The bank of the study's source from now on."""
    tasks: int
    """Tasks of the fit side that the loop used."""
    spared: Sequence[Condemnation] = ()
    """Condemned by the last evidence, but protected or beyond the share that may go at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """The model that writes better rules, and the embedder that keeps test questions out of them."""

    model: Model
    embedder: Embedder


async def refine(
    experiment: Experiment,
    terms: RetirementTerms,
    iterations: int,
    writer: Writer | None,
    keep: Callable[[RefineResult], None] = lambda result: None,
) -> RefineResult:
    """Run the loop; without a writer, entries are only retired.

    `keep` gets the result before the study changes, so a crash cannot lose it.
    """
    space, setup, source = experiment.space, experiment.setup, experiment.source
    _refuse_unrefinable(space, setup, source)
    await _copied(experiment, setup, earlier_ledger(space, setup))
    table = await experiment.table()
    rounds = [_round(experiment, 0, experiment.entries, table, Ledger(space.ledger), table)]
    spared: Sequence[Condemnation] = ()
    for number in range(1, iterations + 1):
        last = rounds[-1]
        evidence = table_evidence(last.seen, source, last.policy)
        judged = review(standings(last.entries, evidence, cluster_of=last.seen.cluster_of), terms)
        spared = judged.spared
        if not judged.going:
            break
        rounds.append(await _next(experiment, number, last, judged.going, writer, table))
    chosen = max(rounds, key=lambda one: (round(one.iteration.objective, 9), -one.iteration.number))
    bank = setup.study.sources[source].bank
    if chosen is not rounds[0]:
        label = bank_label(setup, source, chosen.entries)
        bank = f"{experiment.name}/{source}-{label}/{source}.jsonl"
    result = RefineResult(
        source=source,
        iterations=[one.iteration for one in rounds],
        chosen=chosen.iteration.number,
        bank=bank,
        tasks=len(set(chosen.seen.tasks)),
        spared=spared,
    )
    keep(result)
    if chosen is not rounds[0]:
        await _adopt(experiment, bank, chosen)
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class _Round:
    """A bank with its passes, and the best policy that uses it."""

    entries: Sequence[Entry]
    table: Table
    seen: Table
    """The rows of the table that the loop may use."""
    ledger: Ledger
    policy: Policy
    iteration: RefineIteration


def _round(
    experiment: Experiment,
    number: int,
    entries: Sequence[Entry],
    table: Table,
    ledger: Ledger,
    original: Table,
) -> _Round:
    seen = choosing_rows(table, experiment.setup.study.fit)
    held, policy = _best(seen, experiment.setup, experiment.source)
    iteration = RefineIteration(
        number=number,
        entries=sum(entry.live for entry in entries),
        accuracy=held.accuracy,
        objective=held.objective,
        always=measure_arms(
            seen,
            choosing_rows(original, experiment.setup.study.fit),
            {"always": arms.always(experiment.source)},
        )["always"],
    )
    return _Round(entries=entries, table=table, seen=seen, ledger=ledger, policy=policy, iteration=iteration)


async def _next(
    experiment: Experiment,
    number: int,
    last: _Round,
    going: Sequence[Condemnation],
    writer: Writer | None,
    original: Table,
) -> _Round:
    """Retire and replace entries, and record the passes that this changes."""
    sentences = {one.standing.entry.id: one for one in going}
    entries = [_sentenced(entry, sentences.get(entry.id)) for entry in last.entries]
    gone = [one.standing.entry for one in going if one.standing.entry.kind != "exemplar"]
    better: Sequence[Entry] = ()
    if writer is not None:
        replies = Replies(experiment.space.folder / experiment.name / "replies.jsonl", writer.model)
        written = [await _better(entry, last.seen, experiment, replies) for entry in gone]
        better = unleaked([one for one in written if one is not None], experiment.setup, writer.embedder)
    entries += better
    label = bank_label(experiment.setup, experiment.source, entries)
    varied = await experiment.vary(label, f"iteration {number}", last.table, entries, parent=last.ledger)
    _require_only_changed(varied.calls, varied.changed)
    this = _round(experiment, number, entries, varied.table, varied.ledger, original)
    iteration = replace(
        this.iteration,
        retired=going,
        replaced=better,
        changed=varied.changed,
        calls=varied.calls,
        written=0 if writer is None else len(gone),
    )
    return replace(this, iteration=iteration)


def _refuse_unrefinable(space: Workspace, setup: StudySetup, source: str) -> None:
    if space.lock.exists():
        raise LockError(f"{space.lock} exists: a locked study stays locked; refine before heedful study lock")
    if setup.study.sources[source].bank == "pool":
        raise UsageError(f"the bank of {source} is made from pool rows: only a bank in a file can be refined")
    with_bank_named(space.study.read_text(encoding="utf-8"), source, "")


def _best(table: Table, setup: StudySetup, source: str) -> tuple[HeldOutScore, Policy]:
    """The best kind of policy that uses the source, and its numbers on all rows."""
    banks, settings = policy_banks(setup, table), setup.study.fit
    for held in cross_validate(table, banks, settings):
        if source in (held.kind.first, *held.kind.sources):
            return held, tune(table, banks, settings)[0][held.kind].policy
    raise UsageError(
        f"no policy of the study uses {source}: it needs a bank that is asked on both sides, and to be "
        "among `firsts` or the sources of a family in [fit]"
    )


def _sentenced(entry: Entry, sentence: Condemnation | None) -> Entry:
    return entry if sentence is None else replace(entry, state=sentence.state, reason=sentence.reason)


async def _better(entry: Entry, table: Table, experiment: Experiment, writer: Replies) -> Entry | None:
    """The writer's replacement for a retired rule; None if it is invalid."""
    harmed = _harmed(entry, table, experiment)
    problems = " ".join(question for question, _, _ in harmed)
    text = read_lesson(await writer.ask(fix_prompt(entry.text, harmed)), problems)
    if text is None or text.casefold() == entry.text.casefold():
        return None
    return replace(entry, id=f"{entry.id}'", text=text, state="active", reason="", source="refined")


def _harmed(entry: Entry, table: Table, experiment: Experiment) -> list[tuple[str, str, str]]:
    """Tasks hurt with the entry in the prompt: question, text without memory, text with memory."""
    items = {item.id: item for item in experiment.setup.splits.fit}
    plain, column = table.column("none"), table.column(experiment.source)
    hurt = (plain.right & column.decoded & ~column.right).nonzero()[0].tolist()
    rows = [at for at in hurt if any(recall.entry == entry.id for recall in column.passes[at].recalls)]
    return [
        (items[table.tasks[at]].question, plain.passes[at].text, column.passes[at].text)
        for at in rows[:SHOWN]
    ]


def _require_only_changed(calls: int, changed: int) -> None:
    """Check that only passes with a changed prompt were decoded; some may have been recorded before."""
    if calls > changed:
        raise HeedfulError(
            f"{calls} passes were decoded, but only {changed} had changed: the ledgers are inconsistent"
        )


async def _adopt(experiment: Experiment, bank: str, chosen: _Round) -> None:
    """Make the chosen iteration's bank the study's; its passes are copied, not decoded.

    The study names the bank before its passes are copied: `fit` refuses passes of entries that the
    bank no longer has, and `record` copies missing passes, as does the next `refine`.
    """
    space, source = experiment.space, experiment.source
    text = with_bank_named(space.study.read_text(encoding="utf-8"), source, bank)
    space.fit.unlink(missing_ok=True)
    write_json(space.looked_at, {"tasks": sorted({*tasks_looked_at(space), *chosen.seen.tasks})})
    write_text(space.study, text if text.startswith(REFINED) else f"{REFINED}\n{text}")
    await _copied(experiment, with_bank(experiment.setup, source, chosen.entries), chosen.ledger)


async def _copied(experiment: Experiment, setup: StudySetup, parent: Ledger | None) -> None:
    """Copy the passes of a round into the study's ledger."""
    if parent is not None:
        tell = partial(experiment.tell, "copying the chosen passes")
        recording = recording_of(setup, "fit")
        await fill(experiment.space, setup, experiment.model, recording, tell, parent)


def with_bank_named(toml: str, source: str, bank: str) -> str:
    """The study file with another bank for a source."""
    head = rf"^\[sources\.[\"']?{re.escape(source)}[\"']?\][ \t]*\n"
    table = re.search(head + r"(.*?)(?=^\[|\Z)", toml, re.MULTILINE | re.DOTALL)
    line = None if table is None else re.search(r"^[ \t]*bank[ \t]*=.*$", table[1], re.MULTILINE)
    if table is None or line is None:
        raise UsageError(f"the study file has no [sources.{source}] table with `bank` on its own line")
    start = table.start(1) + line.start()
    return f'{toml[:start]}bank = "{bank}"{toml[start + len(line[0]) :]}'


def bank_label(setup: StudySetup, source: str, entries: Sequence[Entry]) -> str:
    """A label of a bank: the same in every run."""
    return with_bank(setup, source, entries).banks[source].digest[:8]
