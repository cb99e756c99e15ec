"""The paper's arms as named points of the policy space; no arm has code of its own."""

from collections.abc import Mapping, Sequence
from math import inf

from .types import Budget, Policy, ValueRule, ValueTrees


def never() -> Policy:
    """The baseline: one pass, no memory."""
    return Policy()


def retry(threshold: float = inf, *, signal: str = "mean") -> Policy:
    """The same prompt again without memory, at the cost of a second pass."""
    return Policy(signal=signal, threshold=threshold, sources=("retry",))


def always(source: str) -> Policy:
    """Memory in every prompt and no rollback: one call with a longer prompt."""
    return Policy(first=source, guards=())


def fixed_budget(source: str, *, passes: int = 2) -> Policy:
    """Consult at every step until the budget is spent, and accept every second answer."""
    return Policy(threshold=inf, sources=(source,), guards=(), budget=Budget(passes=passes))


def gate(source: str, threshold: float, *, signal: str = "mean") -> Policy:
    """Consult when unsure, and accept a second answer that passes the guards."""
    return Policy(signal=signal, threshold=threshold, sources=(source,))


def choose(source: str, threshold: float, margin: float, *, signal: str = "mean") -> Policy:
    """Consult when unsure, and accept a second answer that is surer by a margin."""
    return Policy(signal=signal, threshold=threshold, sources=(source,), margins={source: margin})


def cascade(
    sources: Sequence[str], threshold: float, margins: Mapping[str, float] | None, *, signal: str = "mean"
) -> Policy:
    """Try the sources in order; the first accepted candidate wins."""
    return Policy(signal=signal, threshold=threshold, sources=tuple(sources), margins=margins)


def agree(sources: Sequence[str], threshold: float, *, signal: str = "mean") -> Policy:
    """Accept an answer that two sources share and the first pass does not."""
    return Policy(signal=signal, threshold=threshold, sources=tuple(sources), combine="agree")


def dual(
    sources: Sequence[str], threshold: float, margins: Mapping[str, float] | None, *, signal: str = "mean"
) -> Policy:
    """Try every source; the surest accepted candidate wins."""
    return Policy(signal=signal, threshold=threshold, sources=tuple(sources), margins=margins, combine="dual")


def value(
    trees: ValueTrees,
    sources: Sequence[str],
    *,
    cost: float = 0.02,
    margin: float = 0.1,
) -> Policy:
    """Ask while the expected gain exceeds the cost of a call; take an answer that is likelier by a margin.

    The defaults are cautious: they are for trees of a prior (`heedful.priors`), used without any label.
    """
    rule = ValueRule(trees=trees, costs=(1.0,) * len(sources), cost=cost, margin=margin)
    return Policy(sources=tuple(sources), combine="value", value=rule)
