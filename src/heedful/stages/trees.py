"""Evaluate tree ensembles: plain arrays, no library."""

from collections.abc import Collection, Sequence

from heedful.types import FeatureEffect, TreeEnsemble


def total(trees: TreeEnsemble, values: Sequence[float]) -> float:
    """The sum of the leaves that a row of features reaches, in the order of the trees."""
    result = trees.base
    feature, threshold, left, right = trees.feature, trees.threshold, trees.left, trees.right
    for node in trees.roots:
        while feature[node] >= 0:
            node = left[node] if values[feature[node]] <= threshold[node] else right[node]
        result += trees.value[node]
    return result


def strongest_effects(trees: TreeEnsemble, values: Sequence[float], most: int) -> tuple[FeatureEffect, ...]:
    """The features that moved the sum most.

    On its way down a tree a row moves from the mean of one node to the mean of the next; each step is
    credited to the feature that the node looks at (Saabas 2014).
    """
    effects = [0.0] * len(trees.features)
    for node in trees.roots:
        while (feature := trees.feature[node]) >= 0:
            branch = trees.left if values[feature] <= trees.threshold[node] else trees.right
            effects[feature] += trees.value[branch[node]] - trees.value[node]
            node = branch[node]
    order = sorted(range(len(effects)), key=lambda at: (-abs(effects[at]), at))
    return tuple(
        FeatureEffect(feature=trees.features[at], value=values[at], effect=effects[at])
        for at in order[:most]
        if effects[at]
    )


def looks_at(trees: TreeEnsemble, features: Collection[str]) -> bool:
    """Whether any node looks at one of these features."""
    places = {at for at, name in enumerate(trees.features) if name in features}
    return not places.isdisjoint(trees.feature)
