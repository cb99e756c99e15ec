"""Fit the estimators of a value policy: which answers are right, and what asking once more gains."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from heedful.extras import importing
from heedful.memory.likeness import similarity_if_present
from heedful.protocol.replay import Replayer
from heedful.protocol.table import Column, Floats, cluster_folds
from heedful.protocol.value_replay import RowViews, row_views
from heedful.stages.value import Estimates, best_answer
from heedful.stages.value_features import ANSWER_FEATURES, GAIN_FEATURES, Similarity
from heedful.types import CostUnit, Policy, TreeEnsemble, ValueRule, ValueTrees

ANSWER_TREES, ANSWER_DEPTH, ANSWER_RATE = 100, 3, 0.05
GAIN_TREES, GAIN_DEPTH, GAIN_RATE = 60, 2, 0.06
SUBSAMPLE = 0.8
LEAST_LEAF = 8
FEWEST_ROWS = 4 * LEAST_LEAF
"""With fewer, trees would fit noise, and a sample of them may hold one outcome only."""
INNER_FOLDS = 5
NO_TREES = TreeEnsemble(features=(), roots=(), feature=(), threshold=(), left=(), right=(), value=())
Likeness = Callable[[], Similarity | None]
"""Gives the similarity of texts, if there is one."""
UNFITTED = ValueTrees(answer=NO_TREES, gain=NO_TREES)


def fit_value(
    replayer: Replayer,
    policy: Policy,
    cost: float,
    seed: int,
    *,
    unit: CostUnit = "calls",
    prior: ValueTrees | None = None,
) -> Policy:
    """The policy with estimators for its first pass, sources and budget, from the rows of a table only."""
    table = replayer.table
    rows = row_views(table, replayer.first(policy.first), policy.sources, policy.budget.passes)
    trees = fit_trees(rows, table.clusters, replace(UNFITTED, prior=prior), seed)
    costs = tuple(mean_cost(table.column(source), unit) for source in policy.sources)
    return replace(policy, combine="value", value=ValueRule(trees=trees, costs=costs, unit=unit, cost=cost))


def mean_cost(column: Column, unit: CostUnit) -> float:
    """What a pass of a source costs on average, where it decodes one."""
    spent = column.calls if unit == "calls" else column.tokens
    return float(spent[column.decoded].mean()) if column.decoded.any() else 1.0


def fit_trees(
    rows: Sequence[RowViews],
    clusters: Sequence[str],
    kind: ValueTrees,
    seed: int,
    likeness: Likeness = similarity_if_present,
) -> ValueTrees:
    """Both estimators; `kind` says whether they use a prior and tell sources apart.

    Without a likeness, answers are equal or different, as the actions of an agent are.
    """
    answer = fit_answer(rows, range(len(rows)), kind, seed, likeness)
    gain = fit_gain(rows, held_out_estimates(rows, clusters, kind, seed, likeness), seed)
    return replace(kind, answer=answer, gain=gain)


def fit_answer(
    rows: Sequence[RowViews],
    places: Iterable[int],
    kind: ValueTrees,
    seed: int,
    likeness: Likeness = similarity_if_present,
) -> TreeEnsemble:
    """Trees for the log-odds that an answer is right, trained on every state of every row."""
    features, right = [], []
    for row in (rows[place] for place in places):
        known = estimates_of(row, kind, likeness)
        for asked in row.states():
            features += known.features(asked)
            right += [row.right[place] for place in asked]
    return boosted_classifier(np.array(features), np.array(right, dtype=float), seed)


def estimates_of(row: RowViews, trees: ValueTrees, likeness: Likeness = similarity_if_present) -> Estimates:
    return Estimates(trees=trees, views=dict(row.views), similar=likeness())


def held_out_estimates(
    rows: Sequence[RowViews],
    clusters: Sequence[str],
    kind: ValueTrees,
    seed: int,
    likeness: Likeness = similarity_if_present,
) -> list[Estimates]:
    """For each row the estimates of answer trees that did not see its cluster."""
    found: dict[int, Estimates] = {}
    for rest, fold in cluster_folds(clusters, INNER_FOLDS, np.random.default_rng([seed, 2])):
        trees = replace(kind, answer=fit_answer(rows, rest, kind, seed, likeness))
        for place in fold.tolist():
            found[place] = estimates_of(rows[place], trees, likeness)
    return [found[place] for place in range(len(rows))]


def fit_gain(rows: Sequence[RowViews], estimates: Sequence[Estimates], seed: int) -> TreeEnsemble:
    """Trees for the change in being right when one more source is asked."""
    features, changes = [], []
    for row, known in zip(rows, estimates, strict=True):
        right = {asked: row.right[best_answer(known, 0.0, asked, asked)] for asked in row.states()}
        for asked in right:
            for place in row.views:
                further = tuple(sorted((*asked, place)))
                if place not in asked and further in right:
                    features.append(known.gain_features(asked, place))
                    changes.append(float(right[further]) - float(right[asked]))
    return boosted_regressor(np.array(features), np.array(changes), seed)


def boosted_classifier(x: Floats, y: Floats, seed: int) -> TreeEnsemble:
    with importing("study"):
        from sklearn.ensemble import GradientBoostingClassifier

    if len(set(y.tolist())) < 2 or len(y) < FEWEST_ROWS:  # nothing to tell apart: the share of right answers
        share = (float(y.sum()) + 1) / (len(y) + 2)
        return replace(NO_TREES, features=ANSWER_FEATURES, base=float(np.log(share / (1 - share))))
    model = GradientBoostingClassifier(
        n_estimators=ANSWER_TREES,
        max_depth=ANSWER_DEPTH,
        learning_rate=ANSWER_RATE,
        subsample=SUBSAMPLE,
        min_samples_leaf=LEAST_LEAF,
        random_state=seed,
    ).fit(x, y)
    prior = float(np.mean(y))
    return exported(model, ANSWER_FEATURES, float(np.log(prior / (1 - prior))), ANSWER_RATE)


def boosted_regressor(x: Floats, y: Floats, seed: int) -> TreeEnsemble:
    with importing("study"):
        from sklearn.ensemble import GradientBoostingRegressor

    if len(y) < FEWEST_ROWS:  # too few to learn from: the mean gain, none if no source ever answered
        return replace(NO_TREES, features=GAIN_FEATURES, base=float(np.mean(y)) if len(y) else 0.0)
    model = GradientBoostingRegressor(
        n_estimators=GAIN_TREES,
        max_depth=GAIN_DEPTH,
        learning_rate=GAIN_RATE,
        subsample=SUBSAMPLE,
        min_samples_leaf=LEAST_LEAF,
        random_state=seed,
    ).fit(x, y)
    return exported(model, GAIN_FEATURES, float(np.mean(y)), GAIN_RATE)


def exported(model: Any, features: tuple[str, ...], base: float, rate: float) -> TreeEnsemble:
    """The trees of a fitted ensemble as arrays of ours, each leaf already times the learning rate."""
    nodes: dict[str, list[Any]] = {name: [] for name in ("feature", "threshold", "left", "right", "value")}
    roots = []
    for tree in (estimator.tree_ for estimator in model.estimators_[:, 0]):
        offset = len(nodes["feature"])
        roots.append(offset)
        leaf = tree.children_left < 0
        nodes["feature"] += np.where(leaf, -1, tree.feature).tolist()
        nodes["threshold"] += np.where(leaf, 0.0, tree.threshold).tolist()
        nodes["left"] += np.where(leaf, 0, tree.children_left + offset).tolist()
        nodes["right"] += np.where(leaf, 0, tree.children_right + offset).tolist()
        nodes["value"] += _node_values(tree, rate).tolist()
    return TreeEnsemble(
        features=features,
        roots=tuple(roots),
        base=base,
        **{name: tuple(values) for name, values in nodes.items()},
    )


def _node_values(tree: Any, rate: float) -> Floats:
    """What each leaf adds; of an inner node the mean over the rows that reached it."""
    values = rate * tree.value[:, 0, 0]
    for node in range(tree.node_count - 1, -1, -1):  # children come after their parent
        left, right = tree.children_left[node], tree.children_right[node]
        if left >= 0:
            rows = tree.weighted_n_node_samples
            values[node] = (rows[left] * values[left] + rows[right] * values[right]) / rows[node]
    return np.asarray(values)
