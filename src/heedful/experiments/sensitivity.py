"""Accuracy, harm and cost against the size of a bank, the noise in it and what it cost to build."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from heedful.experiments.controls import control_policies
from heedful.experiments.derive import Experiment
from heedful.experiments.measure import Measured, measure_arms
from heedful.governance.poison import KINDS, spoiled
from heedful.protocol.workspace import Workspace
from heedful.types import Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The arms with one variant of the bank."""

    axis: str
    """`size` or `noise`."""
    value: float
    entries: int
    construction: float | None
    """Model calls that building so many entries took; None where that is not known."""
    arms: Mapping[str, Measured]
    changed: int
    """Passes that this bank changed, and that had to be recorded."""


async def sensitivity(asked: Experiment, sizes: Sequence[float], noises: Sequence[float]) -> list[Point]:
    """Every size with no noise, and every noise at full size, on the same rows."""
    policies = control_policies(asked)
    policies = {arm: policies[arm] for arm in ("always", "heedful")}
    table = asked.table()
    entries = asked.entries
    order = random.Random(asked.seed).sample(entries, len(entries))
    each = _built_calls(asked.space, asked.setting.study.sources[asked.source].bank, len(entries))
    variants: list[tuple[str, float, list[Entry]]] = []
    for size in sorted(sizes):
        chosen = order[: max(1, round(size * len(order)))]
        variants.append(("size", size, [entry for entry in entries if entry in chosen]))
    variants += [("noise", rate, spoiled(entries, rate, list(KINDS), asked.seed)) for rate in sorted(noises)]
    points = []
    for axis, value, bank in variants:
        varied = await asked.vary(f"{axis}-{value:g}", f"{axis} {value:g}", table, bank)
        built = None if each is None else each * (len(bank) if axis == "size" else len(entries))
        points.append(
            Point(
                axis=axis,
                value=value,
                entries=len(bank),
                construction=built,
                arms=measure_arms(varied.table, table, policies),
                changed=varied.changed,
            )
        )
    return points


def _built_calls(space: Workspace, bank: str, entries: int) -> float | None:
    """Model calls an entry of a bank that `heedful bank build` made, from what it left behind."""
    if bank not in ("rules.jsonl", "exemplars.jsonl"):
        return None
    folder = space.folder / "build"
    files = [folder / name for name in ("ledger.jsonl", "replies.jsonl")]
    lines = sum(file.read_bytes().count(b"\n") for file in files if file.exists())
    return lines / entries if lines and entries else None
