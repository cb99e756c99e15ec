"""Upper bounds of an entry's mean utility, from one value in [-1, 1] per task.

An entry is condemned when the bound falls below 0. The rules give different guarantees:

- `hoeffding-paper` uses the paper's radius sqrt(ln(2/δ) / 2n). That is Hoeffding's for values in
  [0, 1]; on [-1, 1] it is half as wide as it has to be, so it guarantees nothing.
- `hoeffding` uses the correct radius, sqrt(2 ln(2/δ) / n). It is valid for one look, not for many.
- `betting` is valid under continuous monitoring. It bets against the entry: a gambler stakes a share
  of their wealth on harm at every task. For an entry whose mean is not below 0, the wealth exceeds
  1/δ with probability at most δ (Ville's inequality). Several shares are mixed, so that the order of
  tasks is irrelevant (Waudby-Smith and Ramdas 2024). The mixture leans towards the full stake, which
  condemns an entry that never helps after the fewest hurts possible.

`governance/sign_test.py` has the rule for a single look.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import log, sqrt
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from heedful.errors import UsageError

Bound = Callable[[Sequence[float], float], float]
"""From the values and δ to the upper bound; 1 without values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StakeMixture:
    """Shares of a gambler's wealth that are staked on harm, and the part of the wealth on each."""

    stakes: tuple[float, ...]
    weights: tuple[float, ...]

    def log_wealth(self, gains: NDArray[np.float64]) -> NDArray[np.float64]:
        """Log of the mixed wealth, from the log wealth of each stake in the first axis.

        A full stake is lost with the first help; the others keep the mixture finite.
        """
        most = gains.max(axis=0)
        wealth: NDArray[np.float64] = most + np.log(np.array(self.weights) @ np.exp(gains - most))
        return wealth

    def log_gains(self, values: NDArray[np.float64], mean: float = 0.0) -> NDArray[np.float64]:
        """Log of what each stake, in the first axis, gains at each value by betting on less than `mean`."""
        with np.errstate(divide="ignore"):
            gains: NDArray[np.float64] = np.log1p(
                -np.array(self.stakes)[:, None] * ((values - mean) / (1 - mean))
            )
        return gains


TILTED = StakeMixture(stakes=(1.0, 0.9, 0.7, 0.5, 0.3), weights=(0.45, 0.2, 0.15, 0.12, 0.08))
"""Condemns: most of the wealth is on harm without any help."""
EVEN = StakeMixture(stakes=tuple(n / 20 for n in range(1, 20)), weights=(1 / 19,) * 19)
"""Estimates, and condemns groups: small stakes find harm that is diluted by helps, given many tasks."""

RADII: Mapping[str, Callable[[float], float]] = MappingProxyType(
    {"hoeffding-paper": lambda delta: log(2 / delta) / 2, "hoeffding": lambda delta: 2 * log(2 / delta)}
)
"""By rule, the squared radius times n as a function of δ."""


def hoeffding_paper(values: Sequence[float], delta: float) -> float:
    return _mean_plus(values, RADII["hoeffding-paper"](delta))


def hoeffding(values: Sequence[float], delta: float) -> float:
    return _mean_plus(values, RADII["hoeffding"](delta))


def betting(values: Sequence[float], delta: float, mixture: StakeMixture = TILTED) -> float:
    """The smallest mean that the gambler's wealth rules out, by bisection."""
    seen, repeats = np.unique(_checked(values), return_counts=True)
    low, high = -1.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        ruled_out = float(mixture.log_wealth(mixture.log_gains(seen, middle) @ repeats)) >= log(1 / delta)
        low, high = (low, middle) if ruled_out else (middle, high)
    return high


def log_wealth(values: NDArray[np.float64], mean: float = 0.0, mixture: StakeMixture = TILTED) -> float:
    """Log of the wealth after betting that the values' mean is below `mean`, starting from 1."""
    return float(mixture.log_wealth(mixture.log_gains(values, mean).sum(axis=1)))


def betting_interval(values: Sequence[float], confidence: float) -> tuple[float, float]:
    """An interval of the mean utility that is valid however often it is computed."""
    half = (1 - confidence) / 2
    return -betting([-value for value in values], half, EVEN), betting(values, half, EVEN)


RULES: Mapping[str, Bound] = MappingProxyType(
    {"betting": betting, "hoeffding": hoeffding, "hoeffding-paper": hoeffding_paper}
)
GROUP_RULES: Mapping[str, Bound] = MappingProxyType({**RULES, "betting": partial(betting, mixture=EVEN)})
"""For groups, whose harm is diluted by their better entries."""


def first_condemned(values: Sequence[float], rule: str, delta: float, mixture: StakeMixture = TILTED) -> int:
    """The number of tasks after which a rule, applied after each task, first condemns; 0: never."""
    seen = _checked(values)
    if rule == "betting":
        condemned = mixture.log_wealth(np.cumsum(mixture.log_gains(seen), axis=1)) >= log(1 / delta)
    else:
        n = np.arange(1, len(seen) + 1)
        condemned = np.cumsum(seen) / n + np.sqrt(RADII[rule](delta) / n) < 0
    return int(condemned.argmax()) + 1 if condemned.any() else 0


def _mean_plus(values: Sequence[float], squared: float) -> float:
    seen = _checked(values)
    return min(1.0, float(seen.mean()) + sqrt(squared / len(seen))) if len(seen) else 1.0


def _checked(values: Sequence[float]) -> NDArray[np.float64]:
    seen = np.asarray(values, dtype=np.float64)
    if len(seen) and not (np.isfinite(seen).all() and (np.abs(seen) <= 1).all()):
        raise UsageError("a utility must be between -1 and 1")
    return seen
