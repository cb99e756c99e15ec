"""The closed loop: evidence, retirement, replacement, and recording again what that changed.

Everything happens on the fit side, before the lock. Each iteration is judged by the objective of
the best kind of policy with its bank, on folds that the policy was not tuned on; the best
iteration, the earlier on a tie, becomes the study's bank. The evidence that retires entries comes
from the same rows, so an iteration looks better there than it will on the test side: that one judges.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from heedful.errors import HeedfulError, LockError, UsageError
from heedful.experiments.derive import Experiment, with_bank
from heedful.experiments.evidence import table_evidence
from heedful.experiments.replies import Replies
from heedful.governance.distill import fix_prompt, read_lesson
from heedful.governance.evidence import standings
from heedful.governance.retire import Sentence, Terms, review
from heedful.ports import Model
from heedful.protocol.fit import Fitted, fit
from heedful.protocol.ledger import Ledger
from heedful.protocol.setting import Setting
from heedful.protocol.steps import record
from heedful.protocol.table import Table
from heedful.protocol.workspace import REFINED, Workspace, write_text
from heedful.types import Entry, Item

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
    """Of the best kind of policy, on held-out folds of the fit side."""
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
    """The bank of the study's source now."""


async def refine(asked: Experiment, terms: Terms, iterations: int, writer: Model | None) -> Refined:
    """Run the loop; without a writer entries are only retired."""
    space, setting, source = asked.space, asked.setting, asked.source
    _refuse_unrefinable(space, setting, source)
    table = asked.table()
    entries = asked.entries
    replies = None if writer is None else Replies(space.folder / asked.name / "replies.jsonl", writer)
    banks = [entries]
    ledgers = [Ledger(space.ledger)]
    fitted = _fit(table, setting)
    found = [_judged(0, entries, table, source, fitted)]
    for number in range(1, iterations + 1):
        evidence = table_evidence(table, source, fitted.choice.policy)
        going = review(standings(entries, evidence), terms).going
        if not going:
            break
        written = 0 if replies is None else replies.asked
        entries, replaced = await _replaced(entries, going, table, source, setting, replies)
        label = bank_label(setting, source, entries)
        varied = await asked.vary(label, f"iteration {number}", table, entries, parent=ledgers[-1])
        _require_only_changed(varied.calls, varied.changed)
        table = varied.table
        fitted = _fit(table, setting)
        judged = _judged(number, entries, table, source, fitted)
        found.append(
            replace(
                judged,
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
        bank = await _adopt(asked, banks[chosen], ledgers[chosen])
    return Refined(source=source, iterations=found, chosen=chosen, bank=bank)


def _refuse_unrefinable(space: Workspace, setting: Setting, source: str) -> None:
    if space.lock.exists():
        raise LockError(f"{space.lock} exists: a locked study stays locked; refine before heedful study lock")
    if setting.study.sources[source].bank == "pool":
        raise UsageError(
            f"the bank of {source} is made of the pool's rows: only a bank that is a file can be refined"
        )
    with_bank_named(space.study.read_text(encoding="utf-8"), source, "")


def _fit(table: Table, setting: Setting) -> Fitted:
    banks = [name for name in setting.banks if name in table.columns]
    return fit(table, banks, setting.study.fit)


def _judged(number: int, entries: Sequence[Entry], table: Table, source: str, fitted: Fitted) -> Iteration:
    plain, column = table.column("none"), table.column(source)
    with_memory = column.right | (plain.right & ~column.decoded)
    return Iteration(
        number=number,
        entries=sum(entry.live for entry in entries),
        retired=(),
        replaced=(),
        changed=0,
        calls=0,
        written=0,
        accuracy=fitted.held.accuracy,
        objective=fitted.held.objective,
        always=float(with_memory.mean()),
        hurts=int((plain.right & ~with_memory).sum()),
    )


async def _replaced(
    entries: Sequence[Entry],
    going: Sequence[Sentence],
    table: Table,
    source: str,
    setting: Setting,
    writer: Replies | None,
) -> tuple[list[Entry], list[Entry]]:
    """The bank after retirement, with what the writer put in the place of rules that went."""
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
    return [*after, *replaced], replaced


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


async def _adopt(asked: Experiment, entries: Sequence[Entry], ledger: Ledger) -> str:
    """Make the chosen iteration's bank the study's; its passes are copied, none is decoded.

    The study names the bank before its passes are there: `fit` refuses passes of entries that the
    bank no longer has, and `record` copies what is missing.
    """
    space, source = asked.space, asked.source
    label = bank_label(asked.setting, source, entries)
    bank = f"{asked.name}/{source}-{label}/{source}.jsonl"
    text = with_bank_named(space.study.read_text(encoding="utf-8"), source, bank)
    space.fit.unlink(missing_ok=True)
    write_text(space.study, text if text.startswith(REFINED) else f"{REFINED}\n{text}")
    refined = with_bank(asked.setting, source, entries)
    tell = partial(asked.tell, "copying the chosen passes")
    await record(space, refined, asked.model, "fit", tell, parent=ledger)
    return bank


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
