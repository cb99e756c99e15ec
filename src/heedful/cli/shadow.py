"""`heedful shadow`: what a policy would have changed while it ran in the shadow."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.moments import moment_of
from heedful.cli.options import Json, Store
from heedful.cli.output import counted, print_json, result
from heedful.errors import UsageError

if TYPE_CHECKING:
    from heedful.records import Decision
    from heedful.rollout.promote import Promotion
    from heedful.rollout.shadow import ChangedAnswer, ShadowReport
    from heedful.stats.intervals import Interval

app = typer.Typer(
    help="Report what a policy would have changed in the shadow.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
SHOWN = 5
"""Number of changed answers that are shown in words."""
WORDS = {1.0: "help", -1.0: "hurt", 0.0: "no difference", None: "not graded"}


@app.callback()
def _group() -> None:
    """Report what a policy would have changed in the shadow."""


@app.command()
def report(
    since: Annotated[
        str | None, typer.Option(help="Decisions from this time on: an ISO date, or a span such as 7d.")
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(help="A bundle, or the id of a policy [default: that of the newest decision]."),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Only decisions of this model [default: all models at the endpoint].")
    ] = None,
    limit: Annotated[float, typer.Option(help="Maximum share of answers that may be hurt.")] = 0.02,
    store: Store = None,
    json: Json = False,
) -> None:
    """Say what the policy would have changed, helped, hurt and cost, and whether it may be promoted."""
    from heedful.cli.resources import open_known_store
    from heedful.records import DecisionFilter
    from heedful.rollout.case import models_of
    from heedful.rollout.promote import may_promote
    from heedful.rollout.shadow import is_shadow, shadow_report

    opened = open_known_store(store)
    wanted = DecisionFilter(since=moment_of(since))
    shadows = [one for one in asyncio.run(opened.journal.select(wanted)) if is_shadow(one)]
    feedback = asyncio.run(opened.feedback.of(shadows))
    own = _of_one_case(shadows, _policy_id(policy, shadows), model or "")
    reported = shadow_report(own, feedback, own[0].policy_id)
    promotion = may_promote(reported, limit)
    models, others = models_of(own), len(shadows) - len(own)
    if json:
        print_json({**_fields(reported, promotion, limit), "models": models, "others": others})
        return
    lines = _lines(reported, promotion, models, others)
    result().print("\n".join(lines), markup=False, soft_wrap=True)


def _of_one_case(shadows: Sequence["Decision"], policy: str, model: str) -> list["Decision"]:
    """The decisions of a policy at the endpoint and with the banks of the newest one."""
    from heedful.rollout.case import case_of, models_of

    of_policy = [one for one in shadows if one.policy_id == policy]
    named = [one for one in of_policy if model in ("", one.model.name)]
    if not named:
        raise UsageError(
            f"--model {model} has no shadow decision; there are: {', '.join(models_of(of_policy))}"
        )
    case = case_of(named[0], model)
    return [one for one in named if case.covers(one)]


def _policy_id(given: str | None, shadows: Sequence["Decision"]) -> str:
    """The id of the policy to report: a bundle's, one by its prefix, or that of the newest decision."""
    if not shadows:
        raise UsageError("there is no shadow decision in this time: heedful ask --shadow records them")
    if given is None:
        return shadows[0].policy_id
    if Path(given).is_file():
        from heedful.decisions import policy_id
        from heedful.protocol.bundle import read_bundle

        return policy_id(read_bundle(Path(given)).policy)
    ids = sorted({one.policy_id for one in shadows})
    matches = [id for id in ids if id.startswith(given)]
    if len(matches) != 1:
        raise UsageError(
            f"--policy {given} is not a bundle and not the id of one policy; shadow decisions have: "
            f"{', '.join(ids)}"
        )
    return matches[0]


def _fields(report: "ShadowReport", promotion: "Promotion", limit: float) -> dict[str, Any]:
    return {
        "policy": report.policy,
        "answers": report.answers,
        "repeated": report.repeated,
        "consulted": asdict(report.consulted),
        "changed": asdict(report.changed),
        "graded": report.graded,
        "undecided": report.undecided,
        "helps": None if report.helps is None else asdict(report.helps),
        "hurts": None if report.hurts is None else asdict(report.hurts),
        "harm_bound": report.harm_bound,
        "limit": limit,
        "promote": promotion.allowed,
        "reason": promotion.reason,
        "grades_needed": promotion.grades_needed,
        "cost": asdict(report.cost),
        "changes": [asdict(change) for change in report.changes],
    }


def _lines(
    report: "ShadowReport", promotion: "Promotion", models: Mapping[str, int], others: int
) -> list[str]:
    left_out = [
        counted(report.repeated, "repeated question"),
        counted(others, "decision") + " of other policies, endpoints, models or banks",
    ]
    cost = report.cost
    lines = [
        f"policy {report.policy}: {counted(report.answers, 'answer')} in the shadow "
        f"(left out: {', '.join(left_out)})",
        f"  models     {', '.join(f'{name} ({n})' for name, n in models.items())}",
        f"  consulted  {_share(report.consulted)}",
        f"  changed    {_share(report.changed)}",
        f"  graded     {report.graded} of {counted(len(report.changes), 'change')}, "
        f"{report.undecided} undecided",
    ]
    if report.helps is not None and report.hurts is not None:
        lines += [f"  helps      {_share(report.helps)}", f"  hurts      {_share(report.hurts)}"]
    lines += [
        f"  cost       per answer {_number(cost.calls)} calls, {_number(cost.tokens)} tokens, "
        f"{_number(cost.seconds)} s beyond the served pass",
        f"  promote    {'yes' if promotion.allowed else 'no'}: {promotion.reason}",
    ]
    return [*lines, *(_example(change) for change in _most_telling(report.changes))]


def _share(share: "Interval") -> str:
    return f"{share.value:.1%} [{share.low:.1%}, {share.high:.1%}] of {share.n}"


def _number(amount: "Interval") -> str:
    return f"{amount.value:.2f} [{amount.low:.2f}, {amount.high:.2f}]"


def _most_telling(changes: Sequence["ChangedAnswer"]) -> list["ChangedAnswer"]:
    """Hurts first, then helps, then changes without a grade."""
    order = {-1.0: 0, 1.0: 1, None: 2, 0.0: 3}
    return sorted(changes, key=lambda change: order.get(change.effect, 3))[:SHOWN]


def _example(change: "ChangedAnswer") -> str:
    return (
        f"  {WORDS.get(change.effect, 'graded')}: {change.question!r}: {change.first!r} would become "
        f"{change.memory!r}; heedful why {change.decision}"
    )
