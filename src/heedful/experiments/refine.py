"""The closed loop: evidence, retirement, replacement, and recording again what that changed.

Everything happens on the fit side, before the lock. Each iteration is judged by the objective of
the best kind of policy that uses its bank, on folds that the policy was not tuned on; the best
iteration, the earlier on a tie, becomes the study's bank. The evidence that retires entries comes
from the same rows, so an iteration looks better there than it will on the test side: that one judges.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from heedful import arms
from heedful.errors import HeedfulError, LockError, UsageError
from heedful.experiments.build import unleaked
from heedful.experiments.derive import Experiment, with_bank
from heedful.experiments.evidence import table_evidence
from heedful.experiments.replies import Replies
from heedful.governance.distill import fix_prompt, read_lesson
from heedful.governance.evidence import standings
from heedful.governance.retire import Sentence, Terms, review
from heedful.memory.dense import Embedder
from heedful.ports import Model
from heedful.protocol.fit import Held, cross_validate, tune
from heedful.protocol.harm import hurts_of
from heedful.protocol.ledger import Ledger
from heedful.protocol.record import Recorder
from heedful.protocol.replay import Replayer
from heedful.protocol.setting import Setting
from heedful.protocol.steps import policy_banks, recording_of, refined_ledger
from heedful.protocol.table import Table
from heedful.protocol.workspace import REFINED, Workspace, write_text
from heedful.types import Entry, Item, Policy

SHOWN = 3
"""Tasks that an entry hurt, shown to the writer who is to replace it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Iteration:
    number: int
    entries: int
    """Live entries of the bank."""
    retired: Sequence[Sentence]
    replaced: Sequence[Entry]
    changed: int
    """Passes with memory whose prompt is another than in the iteration before."""
    calls: int
    """Model calls that took; the rest was recorded already."""
    written: int
    """Calls of the writer."""
    accuracy: float
    """Of the best kind of policy that uses the source, on held-out folds of the fit side."""
    objective: float
    always: float
    """Accuracy with memory in every prompt."""
    hurts: int
    """Tasks that memory in every prompt hurts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refined:
    source: str
    iterations: Sequence[Iteration]
    chosen: int
    bank: str
    """The bank of the study's source from now on."""
    spared: Sequence[Sentence] = ()
    """Condemned by the last evidence, but protected or beyond the share that may go at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Who writes better rules, and the embedder that keeps them off the test side."""

    model: Model
    embedder: Embedder


async def refine(
    asked: Experiment,
    terms: Terms,
    iterations: int,
    writer: Writer | None,
    keep: Callable[[Refined], None] = lambda found: None,
) -> Refined:
    """Run the loop; without a writer entries are only retired.

    `keep` gets the result before the study is changed, so that a kill cannot lose it.
    """
    space, setting, source = asked.space, asked.setting, asked.source
    _refuse_unrefinable(space, setting, source)
    await _copied(asked, setting, refined_ledger(space, setting))
    table = await asked.table()
    entries = asked.entries
    kept = space.folder / asked.name / "replies.jsonl"
    replies = None if writer is None else Replies(kept, writer.model)
    banks = [entries]
    ledgers = [Ledger(space.ledger)]
    best = _best(table, setting, source)
    found = [_judged(0, entries, table, source, best)]
    spared: Sequence[Sentence] = ()
    for number in range(1, iterations + 1):
        judged = review(standings(entries, table_evidence(table, source, best.policy)), terms)
        going, spared = judged.going, judged.spared
        if not going:
            break
        written = 0 if replies is None else replies.asked
        after, replaced = await _replaced(entries, going, table, source, setting, replies)
        if writer is not None:
            replaced = unleaked(replaced, setting, writer.embedder)
        entries = [*after, *replaced]
        label = bank_label(setting, source, entries)
        varied = await asked.vary(label, f"iteration {number}", table, entries, parent=ledgers[-1])
        _require_only_changed(varied.calls, varied.changed)
        table = varied.table
        best = _best(table, setting, source)
        found.append(
            replace(
                _judged(number, entries, table, source, best),
                retired=going,
                replaced=replaced,
                changed=varied.changed,
                calls=varied.calls,
                written=0 if replies is None else replies.asked - written,
            )
        )
        banks.append(entries)
        ledgers.append(varied.ledger)
    chosen = max(found, key=lambda one: (round(one.objective, 9), -one.number)).number
    bank = setting.study.sources[source].bank
    if chosen > 0:
        label = bank_label(setting, source, banks[chosen])
        bank = f"{asked.name}/{source}-{label}/{source}.jsonl"
    refined = Refined(source=source, iterations=found, chosen=chosen, bank=bank, spared=spared)
    keep(refined)
    if chosen > 0:
        await _adopt(asked, bank, banks[chosen], ledgers[chosen])
    return refined


def _refuse_unrefinable(space: Workspace, setting: Setting, source: str) -> None:
    if space.lock.exists():
        raise LockError(f"{space.lock} exists: a locked study stays locked; refine before heedful study lock")
    if setting.study.sources[source].bank == "pool":
        raise UsageError(
            f"the bank of {source} is made of the pool's rows: only a bank that is a file can be refined"
        )
    with_bank_named(space.study.read_text(encoding="utf-8"), source, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Best:
    """The best kind of policy that uses the source."""

    held: Held
    policy: Policy


def _best(table: Table, setting: Setting, source: str) -> _Best:
    banks, settings = policy_banks(setting, table), setting.study.fit
    using = (
        held
        for held in cross_validate(table, banks, settings)
        if source in (held.kind.first, *held.kind.sources)
    )
    held = next(using, None)
    if held is None:
        raise UsageError(
            f"no policy of the study uses {source}: it needs a bank that is asked on both sides, and to be "
            "among `firsts` or the sources of a family in [fit]"
        )
    return _Best(held=held, policy=tune(table, banks, settings).best[held.kind].policy)


def _judged(number: int, entries: Sequence[Entry], table: Table, source: str, best: _Best) -> Iteration:
    replayer, always = Replayer(table), arms.always(source)
    return Iteration(
        number=number,
        entries=sum(entry.live for entry in entries),
        retired=(),
        replaced=(),
        changed=0,
        calls=0,
        written=0,
        accuracy=best.held.accuracy,
        objective=best.held.objective,
        always=float(replayer.replay(always).right.mean()),
        hurts=hurts_of(replayer, always),
    )


async def _replaced(
    entries: Sequence[Entry],
    going: Sequence[Sentence],
    table: Table,
    source: str,
    setting: Setting,
    writer: Replies | None,
) -> tuple[list[Entry], list[Entry]]:
    """The bank after retirement, and what the writer would put in the place of rules that went."""
    sentences = {one.standing.entry.id: one for one in going}
    after: list[Entry] = []
    replaced: list[Entry] = []
    items = {item.id: item for item in setting.splits.fit}
    for entry in entries:
        if entry.id not in sentences:
            after.append(entry)
            continue
        sentence = sentences[entry.id]
        after.append(replace(entry, state=sentence.state, reason=sentence.reason))
        if writer is not None and entry.kind != "exemplar":
            text = read_lesson(await writer.ask(fix_prompt(entry.text, _harmed(entry, table, source, items))))
            if text is not None and text.casefold() != entry.text.casefold():
                replaced.append(
                    replace(entry, id=f"{entry.id}'", text=text, state="active", reason="", source="refined")
                )
    return after, replaced


def _harmed(entry: Entry, table: Table, source: str, items: dict[str, Item]) -> list[tuple[str, str, str]]:
    """Tasks that were hurt while the entry was in the prompt: question, text without memory, text with it."""
    plain, column = table.column("none"), table.column(source)
    hurt = (plain.right & column.decoded & ~column.right).nonzero()[0].tolist()
    rows = [at for at in hurt if any(seen.entry == entry.id for seen in column.passes[at].recalls)]
    return [
        (items[table.tasks[at]].question, plain.passes[at].text, column.passes[at].text)
        for at in rows[:SHOWN]
    ]


def _require_only_changed(calls: int, changed: int) -> None:
    """Only passes whose prompt changed may be decoded; fewer are where some had been recorded before."""
    if calls > changed:
        raise HeedfulError(f"{calls} passes were decoded but {changed} had changed: the ledgers do not agree")


async def _adopt(asked: Experiment, bank: str, entries: Sequence[Entry], ledger: Ledger) -> None:
    """Make the chosen iteration's bank the study's; its passes are copied, none is decoded.

    The study names the bank before its passes are there: `fit` refuses passes of entries that the
    bank no longer has, and `record` copies what is missing, as does the next `refine`.
    """
    space, source = asked.space, asked.source
    text = with_bank_named(space.study.read_text(encoding="utf-8"), source, bank)
    space.fit.unlink(missing_ok=True)
    write_text(space.study, text if text.startswith(REFINED) else f"{REFINED}\n{text}")
    await _copied(asked, with_bank(asked.setting, source, entries), ledger)


async def _copied(asked: Experiment, setting: Setting, parent: Ledger | None) -> None:
    """Let the study's ledger have what a round recorded."""
    if parent is not None:
        tell = partial(asked.tell, "copying the chosen passes")
        with Ledger(asked.space.ledger, parent) as ledger:
            recorder = Recorder(recording_of(setting, "fit"), asked.model, ledger, tell)
            await recorder.run(setting.study.model.slots)


def with_bank_named(toml: str, source: str, bank: str) -> str:
    """The study file with another bank for a source."""
    head = rf"^\[sources\.[\"']?{re.escape(source)}[\"']?\][ \t]*\n"
    table = re.search(head + r"(.*?)(?=^\[|\Z)", toml, re.MULTILINE | re.DOTALL)
    line = None if table is None else re.search(r"^[ \t]*bank[ \t]*=.*$", table[1], re.MULTILINE)
    if table is None or line is None:
        raise UsageError(f"the study file has no [sources.{source}] with a bank on a line of its own")
    start = table.start(1) + line.start()
    return f'{toml[:start]}bank = "{bank}"{toml[start + len(line[0]) :]}'


def bank_label(setting: Setting, source: str, entries: Sequence[Entry]) -> str:
    """The same bank has the same label in every run."""
    return with_bank(setting, source, entries).banks[source].digest[:8]
