"""McNemar's test: did a policy improve more answers than it worsened?"""

import numpy as np
from numpy.typing import ArrayLike

from heedful.errors import UsageError
from heedful.extras import importing
from heedful.stats.arrays import Groups, by_task, numbers

with importing("study"):
    from scipy.special import bdtr


def mcnemar(helps: int, hurts: int) -> float:
    """The exact two-sided p-value that a change is as likely to hurt as to help (McNemar 1947).

    Under that hypothesis helps ~ Binomial(helps + hurts, ½); the smaller tail is doubled and
    capped at 1. Without any change the p-value is 1.
    """
    if helps < 0 or hurts < 0:
        raise UsageError(f"helps and hurts must be counts, not {helps} and {hurts}")
    return min(1.0, 2 * float(bdtr(min(helps, hurts), helps + hurts, 0.5)))


def mcnemar_by_task(differences: ArrayLike, groups: Groups) -> float:
    """The same test for row differences; rows of one task (several seeds) count once, by their sum."""
    sums, _ = by_task(numbers(differences, "differences"), groups)
    return mcnemar(int(np.count_nonzero(sums > 0)), int(np.count_nonzero(sums < 0)))
