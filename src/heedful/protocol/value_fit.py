"""Fit the estimators of a value policy: which answers are right, and what asking once more gains."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from heedful.extras import importing
from heedful.protocol.replay import Replayer
from heedful.protocol.table import Floats, task_folds
from heedful.protocol.value_replay import RowViews, row_views
from heedful.stages.value import (
    ANSWER_FEATURES,
    GAIN_FEATURES,
    Estimates,
    answer_features,
    best_answer,
    gain_features,
)
from heedful.types import Policy, TreeEnsemble, ValueRule

ANSWER_TREES, ANSWER_DEPTH, ANSWER_RATE = 100, 3, 0.05
GAIN_TREES, GAIN_DEPTH, GAIN_RATE = 60, 2, 0.06
SUBSAMPLE = 0.8
LEAST_LEAF = 8
INNER_FOLDS = 5
NO_TREES = TreeEnsemble(features=(), roots=(), feature=(), threshold=(), left=(), right=(), value=())


def fit_value(replayer: Replayer, policy: Policy, cost: float, seed: int) -> Policy:
    """The policy with estimators for its first pass and sources, from the rows of a table only."""
    table = replayer.table
    rows = row_views(table, replayer.first(policy.first), policy.sources)
    answer = fit_answer(rows, range(len(rows)), seed)
    gain = fit_gain(rows, held_out_estimates(rows, table.tasks, seed), seed)
    columns = [table.column(source) for source in policy.sources]
    calls = tuple(float(c.calls[c.decoded].mean()) if c.decoded.any() else 1.0 for c in columns)
    rule = ValueRule(answer=answer, gain=gain, calls=calls, cost=cost)
    return replace(policy, combine="value", value=rule)


def fit_answer(rows: Sequence[RowViews], places: Iterable[int], seed: int) -> TreeEnsemble:
    """Trees for the log-odds that an answer is right, trained on every state of every row."""
    features, right = [], []
    for row in (rows[place] for place in places):
        for asked in row.states():
            views = [row.views[place] for place in asked]
            features += [answer_features(views, at) for at in range(len(asked))]
            right += [row.right[place] for place in asked]
    return boosted_classifier(np.array(features), np.array(right, dtype=float), seed)


def held_out_estimates(rows: Sequence[RowViews], tasks: Sequence[str], seed: int) -> list[Estimates]:
    """For each row the estimates of answer trees that did not see its task."""
    found: dict[int, Estimates] = {}
    for rest, fold in task_folds(tasks, INNER_FOLDS, np.random.default_rng([seed, 2])):
        trees = fit_answer(rows, rest, seed)
        for place in fold.tolist():
            found[place] = Estimates(answer=trees, gains=NO_TREES, views=dict(rows[place].views))
    return [found[place] for place in range(len(rows))]


def fit_gain(rows: Sequence[RowViews], estimates: Sequence[Estimates], seed: int) -> TreeEnsemble:
    """Trees for the change in being right when one more source is asked."""
    features, changes = [], []
    for row, known in zip(rows, estimates, strict=True):
        right = {asked: row.right[best_answer(known, 0.0, asked, asked)] for asked in row.states()}
        for asked in right:
            views = [row.views[place] for place in asked]
            for place in row.views:
                if place not in asked:
                    features.append(gain_features(views, known.chances(asked), float(place - 1)))
                    changes.append(float(right[tuple(sorted((*asked, place)))]) - float(right[asked]))
    return boosted_regressor(np.array(features), np.array(changes), seed)


def boosted_classifier(x: Floats, y: Floats, seed: int) -> TreeEnsemble:
    with importing("study"):
        from sklearn.ensemble import GradientBoostingClassifier

    if len(set(y.tolist())) < 2:  # nothing to tell apart: the share of right answers
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
