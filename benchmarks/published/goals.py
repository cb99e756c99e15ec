"""The goals for rows never asked before, and how far the value policy of each benchmark got."""

from dataclasses import asdict

from heedful.evaluation.arm_results import Arm, compare, main_arms, measure
from heedful.evaluation.study_data import StudyData
from heedful.report.phrases import p_value, percent
from published.cells import (
    BENCHMARKS,
    NOT_YET,
    best_always,
    family_arm,
    known_report,
    report,
    span,
    study_data,
    table,
)

GOALS = ("≥ +8 points", "p < .001", "hurts ≤ 2%", "≤ 2 calls")
RIVALS = {"always": "the best memory in every prompt", "vote": "vote", "compute": "samples, same procedure"}


def goals_table() -> str:
    head = ("study", *GOALS, *(f"− {rival}" for rival in RIVALS.values()))
    return table(head, [_row(f"{benchmark}-new") for benchmark in BENCHMARKS])


def _row(study: str) -> tuple[str, ...]:
    if report(study) is None:
        return (f"`{study}`", *(NOT_YET,) * (len(GOALS) + len(RIVALS)))
    data = study_data(study)
    mine = family_arm(study, "value")
    hurts, n = mine.paired.hurts, len(data.test.base_right)
    delta = mine.paired.delta
    reached = (
        (delta.value >= 0.08, span(asdict(delta))),
        (mine.paired.p < 0.001, f"p = {p_value(mine.paired.p)}"),
        (hurts <= 0.02 * n, f"{percent(hurts / n)} ({hurts} of {n})"),
        (mine.calls <= 2, f"{mine.calls:.2f}"),
    )
    rivals = _rivals(data, study)
    return (
        f"`{study}`",
        *(f"{'yes' if good else 'no'}: {cell}" for good, cell in reached),
        *(_lead(data, mine, rivals.get(name)) for name in RIVALS),
    )


def _rivals(data: StudyData, study: str) -> dict[str, Arm]:
    arms = {arm.name: arm for arm in main_arms(data)}
    found = {"always": arms[best_always(known_report(study)["arms"])]}
    if "vote" in arms:
        found["vote"] = arms["vote"]
    compute = data.lock.fit.matched.get("compute")
    if compute is not None and all(map(data.tested, compute.policy.sources)):
        found["compute"] = measure(data, "compute", compute.policy)
    return found


def _lead(data: StudyData, mine: Arm, rival: Arm | None) -> str:
    if rival is None:
        return NOT_YET
    paired = compare(data, mine.right, rival.right)
    reached = "yes" if paired.delta.low > 0 else "no"
    return f"{reached}: {span(asdict(paired.delta))}, p = {p_value(paired.p)}"
