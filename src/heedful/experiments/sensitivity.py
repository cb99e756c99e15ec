"""Accuracy, harm and cost against the size of a bank, the noise in it and what it cost to build."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from heedful.experiments.controls import control_policies
from heedful.experiments.derive import Experiment, Variant
from heedful.governance.poison import KINDS, spoiled
from heedful.protocol.replay import Replayer
from heedful.protocol.workspace import Workspace
from heedful.stats.paired import PairedCounts, count_pairs
from heedful.types import Entry, Policy


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
        points.append(_point(axis, value, len(bank), built, varied, policies))
    return points


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
    varied: Variant,
    policies: Mapping[str, Policy],
) -> Point:
    replayer = Replayer(varied.table)
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
        recorded=varied.calls,
    )
