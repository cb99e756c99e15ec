"""Tables of other tasks and another model: question answering, and the 0.5B model."""

from collections.abc import Mapping
from dataclasses import asdict

from heedful import arms as policies
from heedful.evaluation.arm_results import measure
from heedful.priors import read_prior
from heedful.report.phrases import p_value, percent
from published.arms import BANKS, CONTROLS, CROSSFIT, cross_fitted
from published.cells import NOT_YET, Fields, gain, report, span, study_data, table

ANSWERS = {"OpenBookQA": "openbookqa", "ARC-Easy": "arc_easy", "ARC-Challenge": "arc_challenge"}
SMALL_MODEL = {"SVAMP": "svamp-0.5b", "ASDiv": "asdiv-0.5b"}
ROWS: Mapping[str, tuple[str, str]] = {
    **{label: ("arms", name) for name, label in (BANKS | CONTROLS).items()},
    "best threshold policy of the fit side": ("families", "threshold"),
    "prior alone, its margin from the fit side": ("families", "prior"),
    "**value policy: prior and own rows**": ("families", "value"),
    "**locked: certified to hurt at most 2%**": ("arms", "heedful"),
    "Δ compute: the procedure over samples without memory": ("matched", "compute"),
    "Δ memory: the same over memory, at the same calls": ("matched", "memory"),
}
"""Each row's part of a report, and its name there."""
SHIPPED = {"`number`": "number", "`number-no-logprobs`": "number-no-logprobs"}
FAMILIES = {"best threshold policy": "threshold", "prior alone": "prior"}


def answers_table() -> str:
    return _side_by_side(ANSWERS)


def answers_crossfit_table() -> str:
    return cross_fitted(ANSWERS, FAMILIES | CROSSFIT)


def shipped_prior_table() -> str:
    """The shipped priors on the test sides, without any graded row of these benchmarks."""
    rows = []
    for label, prior in SHIPPED.items():
        cells = (NOT_YET if report(study) is None else _shipped(prior, study) for study in ANSWERS.values())
        rows.append((label, *cells))
    return table(("", *ANSWERS), rows)


def _shipped(name: str, study: str) -> str:
    card, trees = read_prior(name).card, read_prior(name).trees
    policy = policies.value(trees, ("exemplar", "fact"), cost=card.cost, margin=card.margins["choice"])
    arm = measure(study_data(study), name, policy)
    counts = f"{arm.paired.helps} / {arm.paired.hurts}, {arm.calls:.2f} calls"
    parts = (percent(arm.accuracy.value), span(asdict(arm.paired.delta)), f"p = {p_value(arm.paired.p)}")
    return ", ".join((*parts, counts))


def small_model_crossfit_table() -> str:
    return cross_fitted(SMALL_MODEL, FAMILIES | CROSSFIT)


def small_model_table() -> str:
    return _side_by_side(SMALL_MODEL)


def _side_by_side(studies: Mapping[str, str]) -> str:
    """One column per study; the rows that any of them has."""
    reports = {name: report(study) for name, study in studies.items()}
    rows = [("the model without memory", *map(_baseline, reports.values()))]
    for label, (part, name) in ROWS.items():
        arms = [_arm(found, part, name) for found in reports.values()]
        if any(arms):
            rows.append((label, *(NOT_YET if arm is None else gain(arm) for arm in arms)))
    return table(("", *(_head(name, found) for name, found in reports.items())), rows)


def _head(name: str, found: Fields | None) -> str:
    return name if found is None else f"{name}, n = {found['arms']['baseline']['n']}"


def _baseline(found: Fields | None) -> str:
    return NOT_YET if found is None else percent(found["arms"]["baseline"]["accuracy"])


def _arm(found: Fields | None, part: str, name: str) -> Fields | None:
    if found is None or part not in found:
        return None
    arms = found[part]["arms"] if part == "matched" else found[part]
    arm: Fields | None = arms.get(name)
    return arm
