"""`heedful study judge-check`: how often the judge of a study errs."""

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.options import Json
from heedful.cli.output import print_json, result, say
from heedful.cli.study import Data, Out, Place, open_study, pull_study_weights

if TYPE_CHECKING:
    from heedful.protocol.judge_check import JudgeCheck
    from heedful.stats.intervals import Interval


def add_to(app: typer.Typer) -> None:
    """Add this command to `heedful study`."""
    app.command("judge-check")(judge_check)


def judge_check(
    place: Place,
    sample: Annotated[
        Path, typer.Option(help="JSON lines with id, answer and right (true or false), graded by a person.")
    ],
    data: Data = None,
    out: Out = None,
    json: Json = False,
) -> None:
    """Measure how often the judge of a study errs, on answers that a person graded."""
    from heedful.protocol.judge_check import check_judge

    _, setup = open_study(place, data, out)
    pull_study_weights(setup)
    say("judging the sample …")
    check = asyncio.run(check_judge(setup, sample))
    if json:
        print_json(asdict(check))
        return
    result().print("\n".join(_lines(check)), markup=False, soft_wrap=True)


def _lines(check: "JudgeCheck") -> list[str]:
    return [
        f"the judge agrees with the person on {_share(check.agreement)}",
        f"  wrong answers called right: {_share(check.false_right)}",
        f"  right answers called wrong: {_share(check.false_wrong)}",
        f"  replies that were neither yes nor no: {check.unclear}",
        *(
            f"  {error.id}: the person says {'right' if error.right else 'wrong'}: {error.answer!r}"
            for error in check.errors
        ),
    ]


def _share(share: "Interval | None") -> str:
    if share is None:
        return "the sample has none"
    return f"{share.value:.1%} of {share.n} (95% interval {share.low:.1%} to {share.high:.1%})"
