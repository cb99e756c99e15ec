"""Route, accept and budget keep their promises."""

from dataclasses import replace
from itertools import pairwise
from math import inf

from hypothesis import given
from hypothesis import strategies as st

from heedful.stages.accept import judge
from heedful.stages.budget import after_step, out_of_budget, passes_left
from heedful.stages.route import choose_route
from heedful.types import LEAST_SURE, Attempt, Budget, BudgetUse, Policy, Prompt
from tests.making import decode

sureties = st.one_of(st.none(), st.floats(-10, 0), st.just(LEAST_SURE))
POLICY = Policy(sources=("rule",), margins={"rule": 0.1}, threshold=0.0)


def attempt(guards):
    return Attempt(source="rule", prompt=Prompt(messages=()), decode=decode("a"), guards=guards)


@given(confidence=sureties, threshold=st.one_of(st.floats(-10, 0), st.sampled_from([inf, -inf])))
def test_memory_is_consulted_exactly_below_the_threshold(confidence, threshold):
    route = choose_route(confidence, Policy(sources=("rule",), threshold=threshold))
    expected = threshold == inf or (confidence is not None and confidence < threshold)
    assert (route.choice == "consult") == expected


@given(confidence=sureties)
def test_a_policy_without_sources_never_consults(confidence):
    assert choose_route(confidence, Policy(threshold=inf)).choice == "keep"


@given(
    baseline=sureties,
    candidate=sureties,
    reasons=st.lists(st.sampled_from(["", "", "format:no-answer"]), max_size=3),
    margin=st.one_of(st.none(), st.floats(-1, 1)),
)
def test_accepting_needs_every_guard_and_the_margin(baseline, candidate, reasons, margin):
    policy = Policy(sources=("rule",), margins=None if margin is None else {"rule": margin})
    guards = {f"g{place}": reason for place, reason in enumerate(reasons)}
    policy = replace(policy, guards=tuple(guards))
    accepted = judge(baseline, candidate, attempt(guards), policy).choice == "accept"
    known = baseline is not None and candidate is not None and candidate > LEAST_SURE
    met = margin is None or (known and candidate >= baseline + margin)
    assert accepted == (met and not any(reasons))


@given(margin=st.floats(-1, 1), extra=st.floats(0, 1), baseline=st.floats(-5, 0), candidate=st.floats(-5, 0))
def test_a_larger_margin_never_accepts_more(margin, extra, baseline, candidate):
    def accepts(m):
        policy = Policy(margins={"rule": m}, guards=())
        return judge(baseline, candidate, attempt({}), policy).choice == "accept"

    assert accepts(margin) or not accepts(margin + extra)


@given(
    passes=st.one_of(st.none(), st.integers(0, 5)),
    cooldown=st.integers(0, 4),
    wants=st.lists(st.integers(0, 2), max_size=30),
)
def test_an_episode_never_spends_more_than_its_budget_nor_inside_its_cooldown(passes, cooldown, wants):
    budget, spent, bought = Budget(passes=passes, cooldown=cooldown), BudgetUse(), []
    for want in wants:
        left = passes_left(budget, spent)
        made = 0 if out_of_budget(budget, spent) else (want if left is None else min(want, left))
        bought.append(made)
        spent = after_step(spent, made)
    assert passes is None or sum(bought) <= passes
    consulted = [i for i, made in enumerate(bought) if made]
    assert all(b - a > cooldown for a, b in pairwise(consulted))
