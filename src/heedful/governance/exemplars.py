"""Choose worked examples that cover the questions, and most of all those the model gets wrong."""

import numpy as np
from numpy.typing import NDArray

MISTAKE_WEIGHT = 2.0
"""How much more a question counts that the model answered wrong."""


def covering(similarities: NDArray[np.float64], wrong: NDArray[np.bool_], size: int) -> list[int]:
    """The places of `size` examples that leave every question with a near one, chosen greedily.

    The gain of an example is by how much it brings questions nearer to their nearest example,
    weighted by mistakes (facility location; greedy is within 1 − 1/e of the best). Ties go to the
    earlier place.
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
