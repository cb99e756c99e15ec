"""Choose worked examples that cover the questions, above all those the model gets wrong."""

import numpy as np
from numpy.typing import NDArray

MISTAKE_WEIGHT = 2.0
"""The weight of a question that the model answered wrong."""


def covering(similarities: NDArray[np.float64], wrong: NDArray[np.bool_], size: int) -> list[int]:
    """The indices of `size` examples, chosen greedily so that every question has a near one.

    The gain of an example is the increase in similarity between questions and their nearest example,
    weighted by mistakes (facility location; greedy is within 1 − 1/e of the best). Ties go to the
    lower index.
    """
    weights = np.where(wrong, MISTAKE_WEIGHT, 1.0)
    nearest = np.full(len(similarities), -1.0)
    chosen: list[int] = []
    for _ in range(min(size, len(similarities))):
        gains = weights @ np.maximum(similarities - nearest[:, None], 0)
        gains[chosen] = -np.inf
        best = int(gains.argmax())
        chosen.append(best)
        nearest = np.maximum(nearest, similarities[:, best])
    return chosen
