from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.stages.accept import asked_together, judge
from heedful.types import LEAST_SURE, Attempt, PassStatus, Policy, Prompt
from tests.making import decode

sureties = st.one_of(st.none(), st.floats(-10, 0), st.just(LEAST_SURE))


def attempt(guards: Mapping[str, str]) -> Attempt:
    return Attempt(source="rule", prompt=Prompt(messages=()), decode=decode("a"), guards=guards)


@given(
    baseline=sureties,
    candidate=sureties,
    reasons=st.lists(st.sampled_from(["", "", "format:no-answer"]), max_size=3),
    margin=st.one_of(st.none(), st.floats(-1, 1)),
)
def test_accepting_needs_every_guard_and_the_margin(
    baseline: float | None, candidate: float | None, reasons: list[str], margin: float | None
) -> None:
    policy = Policy(sources=("rule",), margins=None if margin is None else {"rule": margin})
    guards = {f"g{place}": reason for place, reason in enumerate(reasons)}
    policy = replace(policy, guards=tuple(guards))
    accepted = judge(baseline, candidate, attempt(guards), policy).choice == "accept"
    if margin is None:
        met = True
    elif baseline is None or candidate is None:
        met = False
    else:
        met = candidate > LEAST_SURE and candidate >= baseline + margin
    assert accepted == (met and not any(reasons))


@given(margin=st.floats(-1, 1), extra=st.floats(0, 1), baseline=st.floats(-5, 0), candidate=st.floats(-5, 0))
def test_a_larger_margin_never_accepts_more(
    margin: float, extra: float, baseline: float, candidate: float
) -> None:
    def accepts(m: float) -> bool:
        policy = Policy(margins={"rule": m}, guards=())
        return judge(baseline, candidate, attempt({}), policy).choice == "accept"

    assert accepts(margin) or not accepts(margin + extra)


@pytest.mark.parametrize(("status", "reason"), [("failed", "fault"), ("nothing", "nothing recalled")])
def test_a_pass_that_was_not_decoded_is_never_accepted(status: PassStatus, reason: str) -> None:
    empty = replace(attempt({}), status=status)
    verdict = judge(-1.0, 0.0, empty, Policy(guards=()))
    assert (verdict.choice, verdict.reason) == ("rollback", reason)


@pytest.mark.parametrize(
    ("combine", "total", "batches"),
    [("cascade", 3, [1, 1, 1]), ("dual", 3, [3]), ("agree", 2, [1, 1]), ("agree", 4, [2, 1, 1])],
)
def test_sources_are_asked_together_only_where_each_is_asked_in_any_case(
    combine: Literal["cascade", "dual", "agree"], total: int, batches: list[int]
) -> None:
    asked, made = 0, []
    while asked < total:
        made.append(asked_together(Policy(combine=combine), asked, total))
        asked += made[-1]
    assert made == batches
