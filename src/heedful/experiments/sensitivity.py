"""Accuracy, harm and cost against the size of a bank, the noise in it and what it cost to build."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from heedful.experiments.controls import control_policies
from heedful.experiments.derive import Tell, exchanged, only, record_variant, variant_table, with_bank
from heedful.governance.poison import KINDS, spoiled
from heedful.ports import Model
from heedful.protocol.replay import Replayer
from heedful.protocol.setting import Setting
from heedful.protocol.steps import side_table
from heedful.protocol.table import Table
from heedful.protocol.workspace import Workspace
from heedful.stats.paired import PairedCounts, count_pairs
from heedful.types import Entry, Policy, Side


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The arms with one variant of the bank."""

    axis: str
    """`size` or `noise`."""
    value: float
    entries: int
    construction: float | None
    """Model calls that building so many entries took; None where that is not known."""
    counts: Mapping[str, PairedCounts]
    calls: Mapping[str, float]
    """By arm, a task."""
    tokens: Mapping[str, float]
    recorded: int
    """Model calls that this point took."""


async def sensitivity(
    space: Workspace,
    setting: Setting,
    model: Model,
    source: str,
    sizes: Sequence[float],
    noises: Sequence[float],
    side: Side,
    rows: int | None,
    seed: int,
    tell: Tell,
) -> list[Point]:
    """Every size with no noise, and every noise at full size, on the same rows."""
    policies = control_policies(space, setting, source)
    policies = {arm: policies[arm] for arm in ("always", "heedful")}
    whole = side_table(space, setting, side)
    drawn = _drawn(list(dict.fromkeys(whole.tasks)), rows, seed)
    table = whole.rows([at for at, task in enumerate(whole.tasks) if task in drawn])
    entries = list(setting.banks[source].entries())
    order = random.Random(seed).sample(entries, len(entries))
    each = _built_calls(space, setting.study.sources[source].bank, len(entries))
    points = []
    variants: list[tuple[str, float, list[Entry]]] = []
    for size in sorted(sizes):
        chosen = order[: max(1, round(size * len(order)))]
        variants.append(("size", size, [entry for entry in entries if entry in chosen]))
    variants += [("noise", rate, spoiled(entries, rate, list(KINDS), seed)) for rate in sorted(noises)]
    for axis, value, bank in variants:
        changed = with_bank(setting, source, bank)
        name = f"sensitivity/{source}-{axis}-{value:g}"
        told = partial(tell, f"{axis} {value:g}")
        ledger, made = await record_variant(
            space, name, changed, only(changed, side, source), model, side, told, set(table.tasks)
        )
        column = variant_table(ledger, table, setting, side).column(source)
        built = None if each is None else each * (len(bank) if axis == "size" else len(entries))
        points.append(_point(axis, value, len(bank), built, exchanged(table, source, column), policies, made))
    return points


def _drawn(tasks: Sequence[str], rows: int | None, seed: int) -> set[str]:
    """So many tasks, with all their seeds."""
    return set(tasks if rows is None or rows >= len(tasks) else random.Random(seed).sample(tasks, rows))


def _built_calls(space: Workspace, bank: str, entries: int) -> float | None:
    """Model calls an entry of a bank that `heedful bank build` made, from what it left behind."""
    if bank not in ("rules.jsonl", "exemplars.jsonl"):
        return None
    folder = space.folder / "build"
    files = [folder / name for name in ("ledger.jsonl", "replies.jsonl")]
    lines = sum(file.read_bytes().count(b"\n") for file in files if file.exists())
    return lines / entries if lines and entries else None


def _point(
    axis: str,
    value: float,
    entries: int,
    construction: float | None,
    table: Table,
    policies: Mapping[str, Policy],
    recorded: int,
) -> Point:
    replayer = Replayer(table)
    done = {arm: replayer.replay(policy) for arm, policy in policies.items()}
    base = replayer.base_right.tolist()
    return Point(
        axis=axis,
        value=value,
        entries=entries,
        construction=construction,
        counts={arm: count_pairs(base, one.right.tolist()) for arm, one in done.items()},
        calls={arm: float(one.calls.mean()) for arm, one in done.items()},
        tokens={arm: float(one.tokens.mean()) for arm, one in done.items()},
        recorded=recorded,
    )
