"""The budget of second passes."""

from heedful.types import Budget, BudgetUse


def out_of_budget(budget: Budget, spent: BudgetUse) -> str | None:
    """Why no second pass is allowed now; None if one is."""
    if budget.passes is not None and spent.passes >= budget.passes:
        return "budget"
    if spent.steps_since is not None and spent.steps_since <= budget.cooldown:
        return "cooldown"
    return None


def passes_left(budget: Budget, spent: BudgetUse) -> int | None:
    """How many second passes are left; None: no limit."""
    return None if budget.passes is None else max(0, budget.passes - spent.passes)


def after_step(spent: BudgetUse, passes: int) -> BudgetUse:
    """The budget used after a step with this many second passes."""
    if passes:
        return BudgetUse(passes=spent.passes + passes, steps_since=1)
    since = None if spent.steps_since is None else spent.steps_since + 1
    return BudgetUse(passes=spent.passes, steps_since=since)
