"""Tables of other tasks and another model: question answering, and the 0.5B model."""

from collections.abc import Mapping
from dataclasses import asdict

from heedful import arms as policies
from heedful.evaluation.arm_results import compare, main_arms, measure
from heedful.priors import read_prior
from heedful.report.phrases import p_value, percent
from published.arms import BANKS, CONTROLS, cross_fitted
from published.cells import NOT_YET, Fields, best_always, family_arm, gain, report, span, study_data, table

ANSWERS = {"OpenBookQA": "openbookqa", "ARC-Easy": "arc_easy", "ARC-Challenge": "arc_challenge"}
SMALL_MODEL = {"SVAMP": "svamp-0.5b", "ASDiv": "asdiv-0.5b"}
ROWS: Mapping[str, tuple[str, str]] = {
    **{label: ("arms", name) for name, label in (BANKS | CONTROLS).items() if name != "vote"},
    "majority of the first answer and two samples": ("arms", "vote"),
    "best threshold policy of the fit side": ("families", "threshold"),
    "prior alone, its margin from the fit side": ("families", "prior"),
    "**value policy: prior and own rows**": ("families", "value"),
    "**locked: certified to hurt at most 2%**": ("arms", "heedful"),
    "Δ compute: value policy with samples only": ("matched", "compute"),
    "Δ memory: value policy with memory only, same calls": ("matched", "memory"),
    "value policy with both, same calls": ("matched", "both"),
}
"""Each row's part of a report, and its name there."""
SHIPPED = {"`number`": "number", "`number-no-logprobs`": "number-no-logprobs"}
LEADS = {"prior alone": "prior", "value policy": "value"}


def answers_table() -> str:
    return _side_by_side(ANSWERS)


def answers_crossfit_table() -> str:
    return cross_fitted(ANSWERS)


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
    return cross_fitted(SMALL_MODEL)


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
    if any(found is not None and "matched" in found for found in reports.values()):
        rows.append(("Δ memory − Δ compute", *map(_difference, reports.values())))
    for label, family in LEADS.items():
        leads = (_lead(study, family) for study in studies.values())
        rows.append((f"{label} − the best memory in every prompt", *leads))
    return table(("", *(_head(name, found) for name, found in reports.items())), rows)


def _head(name: str, found: Fields | None) -> str:
    return name if found is None else f"{name}, n = {found['arms']['baseline']['n']}"


def _baseline(found: Fields | None) -> str:
    return NOT_YET if found is None else percent(found["arms"]["baseline"]["accuracy"])


def _difference(found: Fields | None) -> str:
    return NOT_YET if found is None else span(found["matched"]["differences"]["memory-compute"]["delta"])


def _lead(study: str, family: str) -> str:
    """How much more often a family of the lock is right than the best memory in every prompt."""
    found = report(study)
    if found is None:
        return NOT_YET
    data = study_data(study)
    always = {arm.name: arm for arm in main_arms(data)}[best_always(found["arms"])]
    paired = compare(data, family_arm(study, family).right, always.right)
    return f"{span(asdict(paired.delta))}, p = {p_value(paired.p)}"


def _arm(found: Fields | None, part: str, name: str) -> Fields | None:
    if found is None or part not in found:
        return None
    arms = found[part]["arms"] if part == "matched" else found[part]
    arm: Fields | None = arms.get(name)
    return arm
