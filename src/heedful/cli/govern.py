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
        Literal["betting", "hoeffding", "hoeffding-paper"],
        typer.Option(help="The rule that condemns an entry."),
    ] = "betting",
    confidence: Annotated[float, typer.Option(help="Confidence level of the rule.")] = 0.95,
    max_share: Annotated[float, typer.Option(help="Maximum share of the bank to retire in one run.")] = 0.25,
    quarantine: Annotated[
        bool, typer.Option("--quarantine", help="Quarantine entries instead of retiring them.")
    ] = False,
    apply: Annotated[
        bool, typer.Option("--apply", help="Apply the changes; without it nothing changes.")
    ] = False,
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
    verdicts = review(bank_standings(opened, bank, study, source), terms)
    if apply:
        marks = [Mark(entry=c.standing.entry.id, state=c.state, reason=c.reason) for c in verdicts.going]
        asyncio.run(opened.mark(bank, marks))
    if json:
        going, spared = (list(map(_fields, side)) for side in (verdicts.going, verdicts.spared))
        print_json({"bank": bank, "rule": rule, "applied": apply, "going": going, "spared": spared})
        return
    console = result()
    for condemned in (*verdicts.going, *verdicts.spared):
        entry, state = condemned.standing.entry, condemned.state
        verb = "stays" if condemned in verdicts.spared else state if apply else f"would be {state}"
        console.print(f"{entry.id} {verb}: {entry.text}", markup=False, soft_wrap=True)
        console.print(f"  {condemned.reason}", markup=False, soft_wrap=True)
    if not verdicts.going:
        console.print(f"no entry of bank {bank} needs to be retired")
    elif apply:
        say(f"heedful bank restore ENTRY --bank {bank} restores an entry")
    else:
        say("nothing was changed; use --apply to apply the changes")


def bank_standings(
    store: "SqliteStore", bank: str, study: Path | None, source: str | None
) -> list["EntryStanding"]:
    """The standing of a bank's entries by the store's evidence, or by that of a study's fit side."""
    from heedful.governance.evidence import standings

    entries = asyncio.run(store.entries(bank))
    if study is None:
        return standings(entries, asyncio.run(store.evidence(bank)))
    from heedful.errors import UsageError
    from heedful.experiments.study_evidence import study_evidence
    from heedful.protocol.workspace import open_workspace

    evidence = study_evidence(open_workspace(study, None), source or bank)
    known = {(entry.id, entry.digest) for entry in entries}
    if not any((observed.entry, observed.version) in known for observed in evidence):
        raise UsageError(
            f"bank {bank!r} has none of the entries that the study recalled from {source or bank!r}: "
            "choose the bank that the study used, or set --source"
        )
    return standings(entries, evidence)


def _fields(condemned: "Condemnation") -> dict[str, Any]:
    fields = standing_fields(condemned.standing)
    return {**fields, "bound": condemned.bound, "to": condemned.state, "reason": condemned.reason}


def standing_fields(standing: "EntryStanding") -> dict[str, Any]:
    """An entry's standing as JSON."""
    return {
        "entry": standing.entry.id,
        "text": standing.entry.text,
        "state": standing.entry.state,
        "uses": standing.uses,
        "tasks": standing.tasks,
        "helps": standing.helps,
        "hurts": standing.hurts,
        "mean": standing.mean,
        "low": standing.low,
        "high": standing.high,
        "why": standing.entry.reason,
    }
