from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from heedful.stages.budget import after_step, out_of_budget, passes_left
from heedful.types import Budget, BudgetUse


@given(
    passes=st.one_of(st.none(), st.integers(0, 5)),
    cooldown=st.integers(0, 4),
    wants=st.lists(st.integers(0, 2), max_size=30),
)
def test_an_episode_never_spends_more_than_its_budget_nor_inside_its_cooldown(
    passes: int | None, cooldown: int, wants: list[int]
) -> None:
    budget, spent, bought = Budget(passes=passes, cooldown=cooldown), BudgetUse(), []
    for want in wants:
        left = passes_left(budget, spent)
        made = 0 if out_of_budget(budget, spent) else (want if left is None else min(want, left))
        bought.append(made)
        spent = after_step(spent, made)
    assert passes is None or sum(bought) <= passes
    consulted = [i for i, made in enumerate(bought) if made]
    assert all(b - a > cooldown for a, b in pairwise(consulted))
