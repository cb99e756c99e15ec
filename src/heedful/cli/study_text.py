"""A study's fit and status in words."""

from typing import Any


def fitted_lines(fitted: dict[str, Any]) -> list[str]:
    """What was chosen on the fit side, and how far its score flatters it."""
    kind, policy = fitted["kind"], fitted["policy"]
    lines = [
        f"chosen out of {fitted['policies']} policies on {fitted['rows']} rows: {_named(kind)}",
        f"  threshold {policy['threshold']}, margins {policy['margins']}",
        f"  objective {fitted['objective']:.4f} on the rows it was tuned on, "
        f"{fitted['held_out_objective']:.4f} on held-out folds (optimism {fitted['optimism']:+.4f})",
    ]
    lines += [f"  {note}" for note in fitted["notes"]]
    if fitted["certificate"] is not None:
        lines += _certificate_lines(fitted["certificate"])
    lines.append("best kinds by cross-validation (objective, accuracy, calls a task):")
    for held in fitted["leaders"][:6]:
        scores = f"{held['objective']:.4f}  {held['accuracy']:.4f}  {held['calls']:.2f}"
        lines.append(f"  {scores}  {_named(held['kind'])}")
    return lines


def status_lines(found: dict[str, Any]) -> list[str]:
    lines = [f"{found['study']} in {found['folder']}"]
    for side, told in found["sides"].items():
        for source, count in told["sources"].items():
            lines.append(f"  {side:<5} {source:<12} {count['recorded']:>5} of {count['wanted']}")
    lines += [f"  {damage_line(**damaged)}" for damaged in found["damaged_rows"]]
    steps = [step for step in ("fitted", "locked") if found[step]]
    lines.append(f"  {', '.join(steps) or 'not fitted yet'}; test side opened {found['test_openings']} times")
    if found["seconds_left"]:
        lines.append(f"  about {found['seconds_left'] / 60:.0f} minutes of recording left")
    return lines


def damage_line(line: int, problem: str) -> str:
    return (
        f"line {line} of the ledger is damaged ({problem}): what it held is recorded again if it is missing"
    )


def _named(kind: dict[str, Any]) -> str:
    chain = " → ".join([kind["first"], *kind["sources"]])
    return f"{kind['family']} {chain}" + (f" by {kind['signal']}" if kind["signal"] else "")


def _certificate_lines(certificate: dict[str, Any]) -> list[str]:
    kept = sum(one["certified"] for one in certificate["path"])
    return [
        f"  harm limit {certificate['limit']:.1%} at {certificate['confidence']:.0%} confidence: "
        f"{kept} of {len(certificate['path'])} policies certified "
        f"(chosen on {certificate['chosen_on']} rows, tested on {certificate['tested_on']} others)"
    ]
