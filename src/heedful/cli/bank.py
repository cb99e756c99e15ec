"""`heedful bank`: manage memory entries."""

import asyncio
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from heedful.cli.bank_evidence import SourceName, StudyFolder
from heedful.cli.options import BankName, By, Json, Scope, Store, actor, refuse_idle
from heedful.cli.output import counted, print_json, result, say
from heedful.types import Entry, Kind, Mark, State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from heedful.memory.formats import EntryFile
    from heedful.memory.storage import Storage

app = typer.Typer(
    help="Import, inspect, retire and export memory entries.", no_args_is_help=True, rich_markup_mode=None
)

EntryId = Annotated[str, typer.Argument(help="The entry's id or a unique id prefix.", metavar="ENTRY")]
Reason = Annotated[str, typer.Option("--reason", "-r", help="The reason, stored with the entry.")]
FormatName = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="File format: jsonl, text, tfgrpo, tfgrpo-yaml, ace, mem0 or one from a plug-in "
        "[default: by the file's extension and content].",
    ),
]


@app.command("import")
def import_(
    file: Annotated[
        Path, typer.Argument(help="JSON lines, a text list, or another tool's file (see --format).")
    ],
    bank: BankName = "default",
    format: FormatName = None,
    kind: Annotated[Kind, typer.Option(help="Kind of entries that do not specify one.")] = "rule",
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Skip unreadable lines and import the rest.")
    ] = False,
    embed: Annotated[
        bool, typer.Option(help="Embed the entries now rather than at the first question.")
    ] = True,
    store: Store = None,
    json: Json = False,
) -> None:
    """Add the entries of a file: all of them, or none if a line is unreadable (unless --skip-bad).

    A long file is stored in parts; if the import is interrupted, run it again.
    """
    from heedful.cli.resources import embed_now
    from heedful.memory.formats import scan_entries
    from heedful.memory.storage import open_storage

    scanned = scan_entries(file, format=format, kind=kind, skip_bad=skip_bad)
    opened, bad = open_storage(store), scanned.bad
    new, idle = _put_parts(opened, bank, scanned)
    for number, problem in bad:
        say(f"heedful: skipped line {number} of {file.name}: {problem}")
    if json:
        skipped = [{"line": number, "problem": problem} for number, problem in bad]
        print_json({"bank": bank, "read": scanned.count, "new": new, "skipped": skipped, "idle": len(idle)})
    else:
        known = f", {scanned.count - new} already present" if new < scanned.count else ""
        added = f"{counted(new, 'entry', 'entries')} added to bank {bank}{known}"
        result().print(added, markup=False, soft_wrap=True)
    _say_idle(bank, idle)
    if embed:  # after the import is acknowledged: it takes longer, and may be interrupted
        embed_now(opened, bank)


@app.command()
def add(
    text: Annotated[str, typer.Argument(help="The entry's text; of an exemplar, the problem.")],
    bank: BankName = "default",
    kind: Annotated[Kind, typer.Option(help="Kind of the entry.")] = "rule",
    response: Annotated[str, typer.Option(help="The worked answer of an exemplar.")] = "",
    tag: Annotated[list[str] | None, typer.Option(help="A tag; may be repeated.")] = None,
    source: Annotated[str, typer.Option(help="Where the entry comes from.")] = "command line",
    id: Annotated[str, typer.Option(help="The entry's id; an existing id gets a new version.")] = "",
    scope: Scope = None,
    valid_from: Annotated[str, typer.Option(help="Do not recall it before this time (ISO, UTC).")] = "",
    valid_until: Annotated[str, typer.Option(help="Do not recall it from this time on (ISO, UTC).")] = "",
    store: Store = None,
    json: Json = False,
) -> None:
    """Add an entry, or a new version of an existing one."""
    from heedful.errors import UsageError
    from heedful.memory.entries import new_entry, read_moment, read_scope
    from heedful.memory.storage import open_storage

    try:
        entry = new_entry(
            text,
            kind=kind,
            response=response,
            tags=tag or (),
            source=source,
            id=id,
            scope=read_scope(scope or ()),
            valid_from=read_moment(valid_from),
            valid_until=read_moment(valid_until),
        )
    except UsageError as error:
        raise UsageError(f"the entry was not added: {error}") from error
    opened = open_storage(store)
    new = asyncio.run(opened.put(bank, [entry]))
    entry = asyncio.run(opened.entry(bank, entry.id))
    _say_idle(bank, _idle([entry], [entry]))
    if json:
        print_json({"bank": bank, "new": new, **_fields(entry)})
        return
    result().print(
        f"{entry.id} {'added to' if new else 'is already in'} bank {bank}", markup=False, soft_wrap=True
    )


@app.command()
def ls(
    bank: Annotated[
        str | None, typer.Option("--bank", "-b", help="Name of the bank [default: all banks].")
    ] = None,
    state: Annotated[State | None, typer.Option(help="Only entries in this state.")] = None,
    sort: Annotated[
        Literal["age", "harm"], typer.Option(help="Sort oldest first, or most harmful first.")
    ] = "age",
    store: Store = None,
    json: Json = False,
) -> None:
    """List entries with their state."""
    from heedful.cli.resources import open_known_store, require_bank

    opened = open_known_store(store)
    if bank is not None:
        require_bank(opened, bank)
    names = [bank] if bank is not None else list(asyncio.run(opened.banks()))
    banks = {
        name: [e for e in _sorted(opened, name, sort) if state is None or e.state == state] for name in names
    }
    if json:
        print_json(
            {"banks": {name: [_fields(entry) for entry in entries] for name, entries in banks.items()}}
        )
        return
    if not banks:
        say("no bank yet: heedful bank import FILE creates one")
    for name, entries in banks.items():
        _draw(name, entries)


@app.command()
def evidence(
    context: typer.Context,
    bank: BankName = "default",
    study: StudyFolder = None,
    source: SourceName = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Show the effect of groups and entries: helps, hurts, and mean utility with its interval."""
    from heedful.cli.bank_evidence import group_fields, read_bank_evidence, standing_fields
    from heedful.cli.resources import open_known_store, require_bank
    from heedful.governance.evidence import by_harm

    if study is None:
        refuse_idle(context, ("source",), "without --study")
    opened = open_known_store(store)
    require_bank(opened, bank)
    known = read_bank_evidence(opened, bank, study, source)
    standings = by_harm(known.standings())
    groups = [group_fields(group, group.utilities()) for group in reversed(known.groups(bank))]
    if json:
        entries = [standing_fields(standing) for standing in standings]
        print_json({"bank": bank, "groups": groups, "entries": entries})
        return
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("id", "uses", "tasks", "helps", "hurts", "mean utility [95%]", "state", "text"):
        table.add_column(
            heading,
            no_wrap=heading != "text",
            justify="left" if heading in ("id", "state", "text") else "right",
        )
    for group in groups:
        name, size = f"{group['kind']} {group['name']}", counted(len(group["entries"]), "entry", "entries")
        counts = (str(group[key]) for key in ("tasks", "helps", "hurts"))
        table.add_row(escape(name), "", *counts, f"{group['mean']:+.2f}", "", size)
    for standing in standings:
        entry, (low, high) = standing.entry, standing.interval
        mean = f"{standing.mean:+.2f} [{low:+.2f}, {high:+.2f}]" if standing.tasks else "not used"
        counts = (str(n) for n in (standing.uses, standing.tasks, standing.helps, standing.hurts))
        table.add_row(escape(entry.id), *counts, mean, escape(_state(entry)), escape(entry.text))
    result().print(table)


@app.command()
def show(entry: EntryId, bank: BankName = "default", store: Store = None, json: Json = False) -> None:
    """Show an entry: content, versions, state changes, evidence."""
    from dataclasses import asdict
    from datetime import datetime

    from heedful.cli.resources import open_known_store, require_bank

    opened = open_known_store(store)
    require_bank(opened, bank)
    found = asyncio.run(opened.entry(bank, entry))
    evidence = [e for e in asyncio.run(opened.evidence(bank)) if e.entry == found.id]
    seen = Counter("help" if e.utility > 0 else "hurt" if e.utility < 0 else "none" for e in evidence)
    history = asyncio.run(opened.history(bank, found.id))
    versions = [version.digest for version in asyncio.run(opened.versions(bank, found.id))]
    if json:
        changes = [asdict(change) for change in history]
        counted = {"uses": len(evidence), "helps": seen["help"], "hurts": seen["hurt"]}
        print_json(
            {"bank": bank, **_fields(found), "versions": versions, "history": changes, "evidence": counted}
        )
        return
    lines = [f"{found.id}  {found.kind}, {_state(found)}", f"  {found.text}"]
    lines += [f"  → {found.response}"] if found.response else []
    lines += [f"  tags: {', '.join(found.tags)}"] if found.tags else []
    lines += [f"  source: {found.source}"] if found.source else []
    lines += [f"  {limit}" for limit in limits_of(found)]
    lines += [f"  version: {found.digest[:12]} ({len(versions)} in total)"]
    lines += [f"  evidence: {len(evidence)} uses, {seen['help']} helps, {seen['hurt']} hurts"]
    for change in history:
        when, why = datetime.fromtimestamp(change.at), change.reason or "no reason given"
        who = f" by {change.by}" if change.by else ""
        lines.append(f"  {when:%Y-%m-%d %H:%M} {change.state}{who}: {why}")
    result().print("\n".join(lines), markup=False, soft_wrap=True)


@app.command()
def retire(
    entry: EntryId,
    reason: Reason = "",
    by: By = None,
    bank: BankName = "default",
    store: Store = None,
    json: Json = False,
) -> None:
    """Retire an entry: it stays in the bank but is never recalled."""
    _change(Mark(entry=entry, state="retired", reason=reason, by=actor(by)), bank, store, json)


@app.command()
def restore(
    entry: EntryId,
    reason: Reason = "",
    by: By = None,
    bank: BankName = "default",
    store: Store = None,
    json: Json = False,
) -> None:
    """Make a retired, quarantined or protected entry active again."""
    _change(Mark(entry=entry, state="active", reason=reason, by=actor(by)), bank, store, json)


@app.command()
def protect(
    entry: EntryId,
    reason: Reason = "",
    by: By = None,
    bank: BankName = "default",
    store: Store = None,
    json: Json = False,
) -> None:
    """Protect an entry: it cannot be retired."""
    _change(Mark(entry=entry, state="protected", reason=reason, by=actor(by)), bank, store, json)


@app.command()
def export(
    file: Annotated[Path | None, typer.Argument(help="Output file [default: standard output].")] = None,
    bank: BankName = "default",
    format: FormatName = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Write a bank in a format that `import` can read; only JSON lines preserve everything."""
    from heedful.cli.resources import open_known_store, require_bank
    from heedful.errors import UsageError
    from heedful.memory.formats import format_of, write_entries

    opened = open_known_store(store)
    require_bank(opened, bank)
    entries = asyncio.run(opened.entries(bank))
    if json and file is None:
        print_json({"bank": bank, "entries": [_fields(entry) for entry in entries]})
        return
    try:
        old = file.read_text(encoding="utf-8") if file is not None and file.exists() else ""
        chosen = format or ("jsonl" if file is None else format_of(file, old))
        if chosen != "jsonl":  # no other format can express that an entry is retired
            entries = [entry for entry in entries if entry.live]
        written = write_entries(entries, chosen, old)
        if file is None:
            typer.echo(written, nl=False)
            return
        part = file.with_name(f"{file.name}.part")
        part.write_text(written, encoding="utf-8")
        part.replace(file)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot write {file}: {getattr(error, 'strerror', error)}") from error
    if json:
        print_json({"bank": bank, "written": len(entries), "file": str(file)})
        return
    say(f"{counted(len(entries), 'entry', 'entries')} written to {file}")


def _put_parts(store: "Storage", bank: str, scanned: "EntryFile") -> tuple[int, list[Entry]]:
    """Store the entries part by part: how many are new, and those that the bank never recalls."""
    from heedful.cli.progress import shown_progress
    from heedful.memory.formats import PART

    new, done, idle = 0, 0, list[Entry]()
    with shown_progress() as show:
        for entries in scanned.parts():
            new += asyncio.run(store.put(bank, entries))
            done += len(entries)
            stored = asyncio.run(store.named(bank, [entry.id for entry in entries]))
            idle += _idle(stored, entries)
            if scanned.count > PART:
                show(
                    "importing", done, scanned.count, partial("{} of {} entries".format, done, scanned.count)
                )
    return new, idle


def _idle(stored: "Sequence[Entry]", given: "Sequence[Entry]") -> list[Entry]:
    """The given entries that the bank never recalls, for example because they were purged before."""
    ids = {entry.id for entry in given}
    return [entry for entry in stored if entry.id in ids and not entry.live]


def _say_idle(bank: str, idle: "Sequence[Entry]") -> None:
    if idle:
        states = ", ".join(sorted({_state(entry) for entry in idle}))
        say(
            f"heedful: {counted(len(idle), 'entry', 'entries')} of these will not be recalled ({states}): "
            f"heedful bank restore {idle[0].id} --bank {bank} makes one active again"
        )


def _sorted(store: "Storage", bank: str, by: str) -> "Sequence[Entry]":
    entries = asyncio.run(store.entries(bank))
    if by == "age":
        return entries
    from heedful.governance.evidence import by_harm, standings

    return [standing.entry for standing in by_harm(standings(entries, asyncio.run(store.evidence(bank))))]


def _change(mark: Mark, bank: str, store: str | None, json: bool) -> None:
    from heedful.cli.resources import open_known_store, require_bank

    opened = open_known_store(store)
    require_bank(opened, bank)
    [changed] = asyncio.run(opened.mark(bank, [mark]))
    if json:
        print_json({"bank": bank, **_fields(changed)})
        return
    result().print(f"{changed.id} in bank {bank} is now {_state(changed)}", markup=False, soft_wrap=True)


def _draw(name: str, entries: list[Entry]) -> None:
    """One line per entry, printed plainly: rich needs seconds for a table of thousands of rows."""
    rows = [("id", "kind", "state", "text")]
    rows += [(entry.id, entry.kind, _state(entry), " ".join(entry.text.split())) for entry in entries]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    typer.echo(f"{name}: {counted(len(entries), 'entry', 'entries')}")
    lines = ("  ".join([*map(str.ljust, row[:3], widths), row[3]]).rstrip() for row in rows)
    typer.echo("\n".join(lines))


def limits_of(entry: Entry) -> list[str]:
    """The scope and times of an entry in words."""
    from heedful.memory.entries import entry_fields

    fields = entry_fields(entry)
    scope = [f"scope: {', '.join(f'{key}={value}' for key, value in entry.scope.items())}"]
    times = [f"{name.replace('_', ' ')}: {fields[name]}" for name in ("valid_from", "valid_until")]
    return [*(scope if entry.scope else []), *(time for time in times if not time.endswith("None"))]


def _state(entry: Entry) -> str:
    return f"{entry.state}: {entry.reason}" if entry.reason else entry.state


def _fields(entry: Entry) -> dict[str, Any]:
    from heedful.memory.entries import entry_fields

    return entry_fields(entry)
