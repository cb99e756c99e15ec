"""A decision record in words."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from heedful.errors import HeedfulError
from heedful.stages.confidence import SIGNALS
from heedful.types import Entry

FindEntry = Callable[[str, str, str], Entry]


def explain(record: dict[str, Any], find: FindEntry) -> list[str]:
    """The decision step by step, as lines for a person."""
    policy = record["policy"]
    lines = [
        f"decision {record['decision']}, {datetime.fromtimestamp(record['at']):%Y-%m-%d %H:%M:%S}, "
        f"{record['model']['name']} ({record['model']['endpoint']})",
        f"question   {record['task']['question']}",
        f"1 answer   {_quoted(record['baseline'])}",
    ]
    if record["baseline"]["recalls"]:
        lines += _recalls(record, record["baseline"], find)
    lines.append(f"2 sure?    {_routed(record)}")
    for candidate in record["candidates"]:
        lines.append(f"3 again    {candidate['source']}: {_quoted(candidate)}")
        lines += _recalls(record, candidate, find)
        lines.append(f"4 verdict  {_judged(record, candidate, policy)}")
    if record["verdict"] is not None and not record["candidates"]:
        lines.append(f"4 verdict  rollback: {record['verdict']['reason']}")
    for fault in record["faults"]:
        lines.append(f"  survived {fault['stage']}: {fault['error']}")
    tokens = sum(p["tokens"]["prompt"] + p["tokens"]["completion"] for p in _passes(record))
    cached = sum(p["tokens"]["cached"] for p in _passes(record))
    calls = "1 call" if record["calls"] == 1 else f"{record['calls']} calls"
    lines.append(f"→ answer   {record['answer']}")
    lines.append(
        f"  cost     {calls}, {tokens} tokens ({cached} cached), {record['seconds']:.2f} s, "
        f"of which heedful's own {record['overhead_seconds'] * 1000:.1f} ms"
    )
    return lines


def left_out_lines(record: dict[str, Any], left_out: Sequence[dict[str, Any]]) -> list[str]:
    """What each recalled entry did, found by decoding without it."""
    lines = ["without each recalled entry:"]
    for one in left_out:
        effect = "flips the answer" if one["flipped"] else "changes nothing"
        lines.append(f"  {one['entry']}: {effect}: {one['answer']!r}")
    flipping = [one["entry"] for one in left_out if one["flipped"]]
    lines.append(
        f"the answer hangs on {', '.join(flipping)}" if flipping else "no single entry carries the answer"
    )
    return lines


def _passes(record: dict[str, Any]) -> list[dict[str, Any]]:
    return [record["baseline"], *record["candidates"]]


def _quoted(attempt: dict[str, Any]) -> str:
    return repr(attempt["answer"]) if attempt["answer"] else f"no answer in {attempt['text']!r}"


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3f}"


def _routed(record: dict[str, Any]) -> str:
    policy, route = record["policy"], record["route"]
    threshold = policy["threshold"]
    bar = f"the policy says {threshold}" if isinstance(threshold, str) else f"threshold {threshold:.3f}"
    measured = policy["signal"] in SIGNALS and SIGNALS[policy["signal"]].needs == "logprobs"
    confidence = f"{policy['signal']} log-prob" if measured else policy["signal"]
    return f"{confidence} {_number(record['confidence'])}, {bar}: {route['choice']} ({route['reason']})"


def _judged(record: dict[str, Any], candidate: dict[str, Any], policy: dict[str, Any]) -> str:
    verdict, margins = candidate["verdict"], policy["margins"]
    compared = f"confidence {_number(candidate['confidence'])} against {_number(record['confidence'])}"
    if margins is not None:
        compared += f" + margin {margins[candidate['source']]:g}"
    refused = [check["reason"] for check in candidate["checks"] if check["reason"]]
    guards = f"guards refuse: {', '.join(refused)}" if refused else "guards pass"
    return f"{compared}; {guards}: {verdict['choice']} ({verdict['reason']})"


def _recalls(record: dict[str, Any], attempt: dict[str, Any], find: FindEntry) -> list[str]:
    bank = record["sources"].get(attempt["source"], {}).get("bank", "")
    return [f"           {r['score']:.2f} {r['entry']}: {_text(bank, r, find)}" for r in attempt["recalls"]]


def _text(bank: str, recall: dict[str, Any], find: FindEntry) -> str:
    try:
        return find(bank, recall["entry"], recall["version"]).text
    except HeedfulError:
        return f"(version {recall['version'][:12]}, not in this store)"
