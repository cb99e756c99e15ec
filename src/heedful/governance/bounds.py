"""Upper bounds of an entry's mean utility, from one value in [-1, 1] per task.

An entry is condemned when the bound falls below 0. The rules give different guarantees:

- `hoeffding-paper` uses the paper's radius sqrt(ln(2/δ) / 2n). That is Hoeffding's for values in
  [0, 1]; on [-1, 1] it is half as wide as it has to be, so it guarantees nothing.
- `hoeffding` uses the correct radius, sqrt(2 ln(2/δ) / n). It is valid for one look, not for many.
- `betting` is valid under continuous monitoring. It bets against the entry: a gambler stakes a share
  of their wealth on harm at every task. For an entry whose mean is not below 0, the wealth exceeds
  1/δ with probability at most δ (Ville's inequality). The shares are mixed evenly, which adapts the
  bet to the variance and makes the order of tasks irrelevant (Waudby-Smith and Ramdas 2024).
"""

from collections.abc import Callable, Mapping, Sequence
from math import log, sqrt
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from heedful.errors import UsageError

Bound = Callable[[Sequence[float], float], float]
"""From the values and δ to the upper bound; 1 without values."""
STAKES = np.arange(1, 20) / 20
"""Shares of the gambler's wealth staked on harm, mixed evenly."""


RADII: Mapping[str, Callable[[float], float]] = MappingProxyType(
    {"hoeffding-paper": lambda delta: log(2 / delta) / 2, "hoeffding": lambda delta: 2 * log(2 / delta)}
)
"""By rule, the squared radius times n as a function of δ."""


def hoeffding_paper(values: Sequence[float], delta: float) -> float:
    return _mean_plus(values, RADII["hoeffding-paper"](delta))


def hoeffding(values: Sequence[float], delta: float) -> float:
    return _mean_plus(values, RADII["hoeffding"](delta))


def betting(values: Sequence[float], delta: float) -> float:
    """The smallest mean that the gambler's wealth rules out, by bisection."""
    seen = _checked(values)
    low, high = -1.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if log_wealth(seen, middle) >= log(1 / delta) else (middle, high)
    return high


def log_wealth(values: NDArray[np.float64], mean: float = 0.0) -> float:
    """Log of the wealth after betting that the values' mean is below `mean`, starting from 1."""
    gains = np.log1p(-STAKES[:, None] * (values - mean) / (1 - mean)).sum(axis=1)
    most = gains.max()
    return float(most + np.log(np.exp(gains - most).mean()))


def betting_interval(values: Sequence[float], confidence: float) -> tuple[float, float]:
    """An interval of the mean utility that is valid however often it is computed."""
    half = (1 - confidence) / 2
    return -betting([-value for value in values], half), betting(values, half)


RULES: Mapping[str, Bound] = MappingProxyType(
    {"betting": betting, "hoeffding": hoeffding, "hoeffding-paper": hoeffding_paper}
)


def first_condemned(values: Sequence[float], rule: str, delta: float) -> int:
    """The number of tasks after which a rule, applied after each task, first condemns; 0: never."""
    seen = _checked(values)
    if rule == "betting":
        gains = np.cumsum(np.log1p(-STAKES[:, None] * seen), axis=1)
        most = gains.max(axis=0)
        condemned = most + np.log(np.exp(gains - most).mean(axis=0)) >= log(1 / delta)
    else:
        n = np.arange(1, len(seen) + 1)
        condemned = np.cumsum(seen) / n + np.sqrt(RADII[rule](delta) / n) < 0
    return int(condemned.argmax()) + 1 if condemned.any() else 0


def rule_named(name: str) -> Bound:
    if name not in RULES:
        raise UsageError(f"there is no retirement rule {name!r}; choose from {', '.join(RULES)}")
    return RULES[name]


def _mean_plus(values: Sequence[float], squared: float) -> float:
    seen = _checked(values)
    return min(1.0, float(seen.mean()) + sqrt(squared / len(seen))) if len(seen) else 1.0


def _checked(values: Sequence[float]) -> NDArray[np.float64]:
    seen = np.asarray(values, dtype=np.float64)
    if len(seen) and not (np.isfinite(seen).all() and (np.abs(seen) <= 1).all()):
        raise UsageError("a utility must be between -1 and 1")
    return seen
