"""`heedful govern`: retire entries on evidence."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from heedful.cli.options import BankName, Json, Store
from heedful.cli.output import print_json, result, say

if TYPE_CHECKING:
    from heedful.governance.evidence import EntryStanding
    from heedful.governance.retire import Condemnation
    from heedful.memory import SqliteStore

StudyFolder = Annotated[
    Path | None, typer.Option("--study", help="Folder of a study whose fit side is the evidence.")
]
SourceName = Annotated[
    str | None, typer.Option("--source", help="The study's source [default: the bank's name].")
]


def govern(
    bank: BankName = "default",
    study: StudyFolder = None,
    source: SourceName = None,
    rule: Annotated[
        Literal["betting", "hoeffding", "hoeffding-paper"], typer.Option(help="When an entry is condemned.")
    ] = "betting",
    confidence: Annotated[float, typer.Option(help="How sure the rule must be.")] = 0.95,
    max_share: Annotated[float, typer.Option(help="At most this share of the bank goes at once.")] = 0.25,
    quarantine: Annotated[
        bool, typer.Option("--quarantine", help="Set entries aside; a run without this retires them.")
    ] = False,
    apply: Annotated[bool, typer.Option("--apply", help="Do it; without this nothing changes.")] = False,
    store: Store = None,
    json: Json = False,
) -> None:
    """Show which entries the evidence condemns, and retire them with --apply."""
    from heedful.cli.resources import open_store, require_bank
    from heedful.governance.retire import RetirementTerms, review
    from heedful.types import Mark

    terms = RetirementTerms(rule=rule, confidence=confidence, max_share=max_share, quarantine=quarantine)
    opened = open_store(store)
    require_bank(opened, bank)
    found = review(bank_standings(opened, bank, study, source), terms)
    if apply:
        marks = [Mark(entry=one.standing.entry.id, state=one.state, reason=one.reason) for one in found.going]
        asyncio.run(opened.mark(bank, marks))
    if json:
        going, spared = (list(map(_fields, side)) for side in (found.going, found.spared))
        print_json({"bank": bank, "rule": rule, "applied": apply, "going": going, "spared": spared})
        return
    console = result()
    for one in (*found.going, *found.spared):
        entry = one.standing.entry
        verb = "stays" if one in found.spared else one.state if apply else f"would be {one.state}"
        console.print(f"{entry.id} {verb}: {entry.text}", markup=False, soft_wrap=True)
        console.print(f"  {one.reason}", markup=False, soft_wrap=True)
    if not found.going:
        console.print(f"no entry of bank {bank} has to go")
    elif apply:
        say(f"heedful bank restore ENTRY --bank {bank} takes an entry back")
    else:
        say("nothing was changed; --apply does it")


def bank_standings(
    store: "SqliteStore", bank: str, study: Path | None, source: str | None
) -> list["EntryStanding"]:
    """What the store's evidence, or that of a study's fit side, says of a bank's entries."""
    from heedful.governance.evidence import standings

    entries = asyncio.run(store.entries(bank))
    if study is None:
        return standings(entries, asyncio.run(store.evidence(bank)))
    from heedful.errors import UsageError
    from heedful.experiments.study_evidence import study_evidence
    from heedful.protocol.workspace import open_workspace

    evidence = study_evidence(open_workspace(study, None), source or bank)
    known = {(entry.id, entry.digest) for entry in entries}
    if not any((one.entry, one.version) in known for one in evidence):
        raise UsageError(
            f"bank {bank!r} holds none of the entries that the study recalled from {source or bank!r}: "
            "give the bank that the study used, or --source"
        )
    return standings(entries, evidence)


def _fields(one: "Condemnation") -> dict[str, Any]:
    return {**standing_fields(one.standing), "bound": one.bound, "to": one.state, "reason": one.reason}


def standing_fields(one: "EntryStanding") -> dict[str, Any]:
    """An entry's standing as JSON."""
    return {
        "entry": one.entry.id,
        "text": one.entry.text,
        "state": one.entry.state,
        "uses": one.uses,
        "tasks": one.tasks,
        "helps": one.helps,
        "hurts": one.hurts,
        "mean": one.mean,
        "low": one.low,
        "high": one.high,
        "why": one.entry.reason,
    }
