"""`heedful study rows`: the test rows of a study in words."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from heedful.cli.options import Json
from heedful.cli.output import print_json, result, say
from heedful.cli.study import Data, Place

if TYPE_CHECKING:
    from heedful.evaluation.arm_results import Arm
    from heedful.evaluation.row_changes import RowChange


def add_to(app: typer.Typer) -> None:
    """Add this command to `heedful study`."""
    app.command()(rows)


def rows(
    place: Place,
    spoiled: Annotated[
        bool,
        typer.Option("--spoiled", help="Only rows that memory made wrong."),
    ] = False,
    mended: Annotated[
        bool,
        typer.Option("--mended", help="Only rows that memory made right."),
    ] = False,
    every: Annotated[bool, typer.Option("--all", help="Every test row.")] = False,
    arm: Annotated[str, typer.Option(help="An arm of the report, such as always-NAME.")] = "heedful",
    data: Data = None,
    json: Json = False,
) -> None:
    """Show test rows in words: question, both answers, recalled entries and grades."""
    from heedful.errors import UsageError
    from heedful.evaluation.arm_results import main_arms
    from heedful.evaluation.row_changes import changed_rows, rows_of_arm
    from heedful.evaluation.study_data import read_study_data
    from heedful.protocol.study_texts import read_texts
    from heedful.protocol.workspace import open_workspace

    if every and (spoiled or mended):
        raise UsageError("--all already includes spoiled and mended rows; use --all alone")
    space = open_workspace(place, None)
    study = read_study_data(space)
    policy = _arm(arm, main_arms(study)).policy
    texts = read_texts(space, data)
    if texts is None:
        say(
            "heedful: the study's questions and entries cannot be read, so only ids are shown: give the "
            "benchmark's data with --data FOLDER, or restore the files that study.toml names"
        )
    shown = rows_of_arm(study, policy, texts)
    wanted = {effect for effect, asked in (("spoiled", spoiled), ("mended", mended)) if asked}
    if not every:
        shown = tuple(row for row in changed_rows(shown) if not wanted or row.effect in wanted)
    if json:
        print_json({"study": study.lock.study, "arm": arm, "rows": [asdict(row) for row in shown]})
        return
    text = "\n\n".join("\n".join(_lines(row)) for row in shown)
    result().print(text or "no such row", markup=False, soft_wrap=True)


def _arm(name: str, arms: "tuple[Arm, ...]") -> "Arm":
    from heedful.errors import UsageError

    for arm in arms:
        if arm.name == name:
            return arm
    raise UsageError(f"unknown arm {name!r}; choose one of {', '.join(arm.name for arm in arms)}")


def _lines(row: "RowChange") -> list[str]:
    seed = f", seed {row.seed}" if row.seed else ""
    right_first = row.effect in ("spoiled", "right")
    right_last = row.effect in ("mended", "right")
    return [
        f"{row.effect}  {row.task}{seed}",
        f"  question        {row.question or 'not available: use --data FOLDER'}",
        *([f"  right answer    {' | '.join(row.targets)}"] if row.targets else []),
        f"  without memory  {row.first_answer!r} ({'right' if right_first else 'wrong'})",
        f"  in the end      {row.final_answer!r} ({'right' if right_last else 'wrong'}, from {row.source})",
        *(f"  recalled {entry.score:>6.2f} {entry.text or entry.id}" for entry in row.entries),
    ]
