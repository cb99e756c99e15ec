"""`heedful govern`: retire groups and entries on evidence."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from heedful.cli.bank_evidence import BankEvidence, SourceName, StudyFolder, read_bank_evidence
from heedful.cli.govern_text import live_fields, print_live, print_review, review_fields
from heedful.cli.options import BankName, By, Json, Store, actor, refuse_idle
from heedful.cli.output import counted, print_json, say
from heedful.cli.study import Data
from heedful.errors import UsageError

if TYPE_CHECKING:
    from heedful.credit import AnswerWithout
    from heedful.governance.retire import RetirementReview
    from heedful.governance.terms import RetirementTerms
    from heedful.memory.storage import Storage
    from heedful.ports import Model
    from heedful.types import Mark

RuleName = Literal["auto", "sign", "betting", "hoeffding", "hoeffding-paper"]


def govern(
    context: typer.Context,
    bank: BankName = "default",
    study: StudyFolder = None,
    source: SourceName = None,
    rule: Annotated[
        RuleName,
        typer.Option(help="The rule that condemns; auto: sign with --study, betting otherwise."),
    ] = "auto",
    confidence: Annotated[float, typer.Option(help="Confidence level of the rule.")] = 0.95,
    max_share: Annotated[float, typer.Option(help="Maximum share of the bank to retire in one run.")] = 0.25,
    quarantine: Annotated[
        bool, typer.Option("--quarantine", help="Quarantine entries instead of retiring them.")
    ] = False,
    probe: Annotated[
        int, typer.Option(min=0, help="Recall each suspect on up to N further tasks of the study.")
    ] = 0,
    leave_groups_out: Annotated[
        bool,
        typer.Option(
            "--leave-groups-out",
            help="Decode the study's tasks again without each source, author and tag of the bank.",
        ),
    ] = False,
    leave_one_out: Annotated[
        bool,
        typer.Option("--leave-one-out", help="Decode decisions again without each entry that shares them."),
    ] = False,
    live: Annotated[
        bool,
        typer.Option(
            "--live", help="Quarantine first; retire or restore quarantined entries on further evidence."
        ),
    ] = False,
    apply: Annotated[
        bool, typer.Option("--apply", help="Apply the changes; without it nothing changes.")
    ] = False,
    by: By = None,
    data: Data = None,
    store: Store = None,
    json: Json = False,
) -> None:
    """Show which groups and entries the evidence condemns, and retire them with --apply."""
    from heedful.cli.resources import open_known_store, require_bank
    from heedful.governance.terms import RetirementTerms

    if not apply:
        refuse_idle(context, ("by",), "without --apply")
    if live:
        idle = ("study", "source", "quarantine", "probe", "leave_groups_out", "leave_one_out", "data")
        refuse_idle(context, idle, "with --live, which judges the evidence of the store in steps")
    if study is None:
        refuse_idle(context, ("source",), "without --study")
    if not (probe or leave_groups_out):
        refuse_idle(context, ("data",), "without --study and --probe or --leave-groups-out")
    terms = RetirementTerms(
        rule=_chosen_rule(rule, study, probe),
        confidence=confidence,
        max_share=max_share,
        quarantine=quarantine,
        own_outcomes=True,
        credit_command=_credit_command(bank, study, source),
    )
    _refuse_misplaced(study, probe, leave_groups_out, leave_one_out)
    opened = open_known_store(store)
    require_bank(opened, bank)
    if live:
        _govern_live(opened, bank, terms, actor(by), apply, json)
        return
    known = read_bank_evidence(opened, bank, study, source)
    calls = 0
    if study is not None and (probe or leave_groups_out):
        _refuse_agents(study)
    if study is not None and leave_groups_out:
        known, calls = _with_groups_left_out(known, bank, (study, source or bank, data))
    if study is not None and probe:
        known, probe_calls = _with_probes(known, terms, bank, (study, source or bank, data), probe)
        calls += probe_calls
    if leave_one_out:
        known = _with_credit(known, terms, bank, opened)
    reviewed = _review(known, terms, bank)
    if apply:
        asyncio.run(opened.mark(bank, _marks(reviewed, terms, actor(by))))
    if json:
        fields = {"bank": bank, "rule": terms.rule, "applied": apply, "calls": calls}
        print_json({**fields, **review_fields(reviewed)})
        return
    print_review(reviewed, terms, bank, apply)


def _marks(reviewed: "RetirementReview", terms: "RetirementTerms", by: str) -> "list[Mark]":
    from heedful.governance.live import grounds_of
    from heedful.types import Mark

    return [
        Mark(
            entry=one.standing.entry.id,
            state=one.state,
            reason=one.reason,
            by=by,
            grounds=grounds_of(one, reviewed, terms.rule),
        )
        for one in reviewed.going
    ]


def _govern_live(
    store: "Storage", bank: str, terms: "RetirementTerms", by: str, apply: bool, json: bool
) -> None:
    from heedful.governance.live import govern_live

    reviewed = asyncio.run(govern_live(store, bank, terms, by=by, apply=apply))
    if json:
        print_json(live_fields(reviewed, bank, terms.rule, apply))
        return
    print_live(reviewed, bank, apply)


def _chosen_rule(rule: RuleName, study: Path | None, probe: int) -> str:
    """The rule; probes are a further look, which only `betting` allows."""
    if probe and rule not in ("auto", "betting"):
        raise UsageError(
            f"probes are a further look at the evidence, which {rule} does not allow: use betting"
        )
    if rule != "auto":
        return rule
    return "sign" if study is not None and not probe else "betting"


def _refuse_misplaced(study: Path | None, probe: int, leave_groups_out: bool, leave_one_out: bool) -> None:
    for option, given in (("--probe", probe), ("--leave-groups-out", leave_groups_out)):
        if given and study is None:
            raise UsageError(
                f"{option} needs tasks with known answers: give the folder of a study with --study"
            )
    if leave_one_out and study is not None:
        raise UsageError(
            "--leave-one-out examines recorded decisions; for a study, run heedful study credit and then "
            "heedful govern --study"
        )


def _refuse_agents(study: Path) -> None:
    from heedful.agents.agent_evidence import is_agent_study
    from heedful.agents.agent_workspace import AgentFolder

    if is_agent_study(AgentFolder(study)):
        raise UsageError(
            f"{study} is a study of agents, whose tasks cannot be decoded again one by one: "
            "leave out --probe and --leave-groups-out"
        )


def _credit_command(bank: str, study: Path | None, source: str | None) -> str:
    if study is None:
        return f"heedful govern --bank {bank} --leave-one-out"
    return f"heedful study credit {study} --source {source or bank}"


def _review(known: BankEvidence, terms: "RetirementTerms", bank: str) -> "RetirementReview":
    from heedful.governance.retire import review

    return review(known.standings(), terms, known.groups(bank))


def _with_groups_left_out(
    known: BankEvidence, bank: str, place: tuple[Path, str, Path | None]
) -> tuple[BankEvidence, int]:
    """The evidence with groups compared with recall without them, and the number of model calls."""
    from heedful.cli.study_experiments import open_experiment
    from heedful.experiments.group_effects import leave_groups_out

    study, source, data = place
    with open_experiment("without", study, data, None, source) as experiment:
        effects = asyncio.run(
            leave_groups_out(experiment, bank, known.entries, known.evidence, known.cluster_of)
        )
    names = [f"{group.kind} {group.name}" for group in effects.groups if group.left_out]
    if names:
        say(f"left out: {', '.join(names)}; {counted(effects.calls, 'call')}")
    else:
        say(f"bank {bank} has no source, author or tag of two recalled entries or more to leave out")
    return replace(known, left_out=effects.groups), effects.calls


def _with_probes(
    known: BankEvidence, terms: "RetirementTerms", bank: str, place: tuple[Path, str, Path | None], count: int
) -> tuple[BankEvidence, int]:
    """The evidence with that of probes, and the number of model calls."""
    from heedful.cli.study_experiments import open_experiment
    from heedful.experiments.suspect_probe import probe_suspects
    from heedful.governance.retire import suspects

    wanted = suspects(known.standings(), _review(known, terms, bank))
    say(f"{counted(len(wanted), 'suspect')}, up to {count} probes each")
    if not wanted:
        return known, 0
    study, source, data = place
    with open_experiment("probe", study, data, None, source) as experiment:
        probed = asyncio.run(probe_suspects(experiment, wanted, count))
    return replace(known, probes=probed.evidence), probed.calls


def _with_credit(known: BankEvidence, terms: "RetirementTerms", bank: str, store: "Storage") -> BankEvidence:
    """The evidence with leave-one-out on the decisions of condemned entries that share their outcomes."""
    from heedful.cli.why import model_of
    from heedful.credit import leave_one_out
    from heedful.governance.live_credit import live_credit, open_decisions

    spared = _review(known, terms, bank).spared
    shared = {one.standing.entry.id for one in spared if one.standing.uncredited}
    decisions = open_decisions(known.evidence, shared)
    sharing = counted(len(shared), "entry", "entries")
    say(f"{sharing} with shared outcomes; decoding {counted(len(decisions), 'decision')} again …")
    journal, models = store.journal, dict[str, "Model"]()

    async def examine(id: str) -> "Sequence[AnswerWithout]":
        decision = await journal.find(id)
        name = f"{decision.model.endpoint} {decision.model.name}"
        if name not in models:
            models[name] = model_of(decision, None)
        return await leave_one_out(decision, models[name], store.version)

    return replace(known, credit=asyncio.run(live_credit(decisions, examine, say)))
