"""Tree ensembles as plain arrays, so that a fitted forest or boosting can be kept without a pickle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeRegressor

__all__ = ["Trees"]

Floats = NDArray[np.float64]
FORESTS = (RandomForestRegressor, ExtraTreesRegressor)
BLOCK = 1 << 16
"""Rows that go down the trees together."""


@dataclass(frozen=True, eq=False)
class Trees:
    """f(x) = base + scale · Σ_t value of the leaf of tree t that x falls into.

    Nodes of all trees stand one after another; ``root[t]`` is the first of tree t. At an inner node x goes left when
    x[feature] ≤ threshold, a missing value where ``missing_left`` says. A leaf is its own child.

    >>> X = np.arange(8.0)[:, None]
    >>> fitted = RandomForestRegressor(n_estimators=3, random_state=0).fit(X, X[:, 0] > 3)
    >>> bool(np.allclose(Trees.of(fitted).predict(X), fitted.predict(X)))
    True
    """

    root: NDArray[np.int64]
    feature: NDArray[np.int64]
    threshold: Floats
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    missing_left: NDArray[np.bool_]
    value: Floats
    base: float
    scale: float
    single: bool
    """Whether x is rounded to float32 before it is compared, as scikit-learn's own trees do."""

    @classmethod
    def of(cls, regressor: Any) -> Trees | None:
        """Take over the trees of a fitted scikit-learn ensemble; None when it is none, or splits on categories."""
        if type(regressor) is HistGradientBoostingRegressor:
            return _of_histograms(regressor)
        if type(regressor) is DecisionTreeRegressor:
            return _of_trees([regressor], 0.0, 1.0)
        if type(regressor) in FORESTS:
            return _of_trees(list(regressor.estimators_), 0.0, 1.0 / len(regressor.estimators_))
        if type(regressor) is GradientBoostingRegressor and hasattr(regressor.init_, "constant_"):
            base = float(np.ravel(regressor.init_.constant_)[0])
            return _of_trees(list(regressor.estimators_[:, 0]), base, float(regressor.learning_rate))
        return None

    def predict(self, X: NDArray[Any]) -> Floats:
        """Return f of each row of X, shape (rows,)."""
        X = np.asarray(X)
        X = X.astype(np.float32) if self.single else X.astype(np.float64, copy=False)
        found = np.full(len(X), self.base)
        for begin in range(0, len(X), BLOCK):
            part = X[begin : begin + BLOCK]
            rows = np.arange(len(part))
            total = np.zeros(len(part))
            for root in self.root:
                node = np.full(len(part), root)
                while True:
                    x = part[rows, self.feature[node]]
                    goes_left = np.where(np.isnan(x), self.missing_left[node], x <= self.threshold[node])
                    below = np.where(goes_left, self.left[node], self.right[node])
                    if (below == node).all():
                        break
                    node = below
                total += self.value[node]
            found[begin : begin + BLOCK] += self.scale * total
        return found

    def to_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what JSON keeps and the arrays."""
        names = ("root", "feature", "threshold", "left", "right", "missing_left", "value")
        values = {"base": self.base, "scale": self.scale, "single": self.single}
        return values, {name: getattr(self, name) for name in names}

    @classmethod
    def from_state(cls, values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Trees:
        """Return the trees of a ``to_state``."""
        return cls(**arrays, base=values["base"], scale=values["scale"], single=values["single"])


def _of_trees(trees: list[Any], base: float, scale: float) -> Trees | None:
    if any(tree.tree_.n_outputs != 1 for tree in trees):
        return None
    parts = [tree.tree_ for tree in trees]
    return _joined(
        [part.node_count for part in parts],
        [part.feature for part in parts],
        [part.threshold for part in parts],
        [part.children_left for part in parts],
        [part.children_right for part in parts],
        [part.children_left < 0 for part in parts],
        [np.asarray(part.missing_go_to_left, bool) for part in parts],
        [part.value[:, 0, 0] for part in parts],
        base,
        scale,
        single=True,
    )


def _of_histograms(regressor: Any) -> Trees | None:
    parts = [predictor.nodes for (predictor,) in regressor._predictors]
    if any(part["is_categorical"].any() for part in parts) or regressor.loss not in ("squared_error", "absolute_error"):
        return None
    return _joined(
        [len(part) for part in parts],
        [part["feature_idx"] for part in parts],
        [part["num_threshold"] for part in parts],
        [part["left"].astype(np.int64) for part in parts],
        [part["right"].astype(np.int64) for part in parts],
        [part["is_leaf"].astype(bool) for part in parts],
        [part["missing_go_to_left"].astype(bool) for part in parts],
        [part["value"] for part in parts],
        float(np.ravel(regressor._baseline_prediction)[0]),
        1.0,
        single=False,
    )


def _joined(
    sizes: list[int],
    feature: list[Any],
    threshold: list[Any],
    left: list[Any],
    right: list[Any],
    leaf: list[Any],
    missing_left: list[Any],
    value: list[Any],
    base: float,
    scale: float,
    *,
    single: bool,
) -> Trees:
    """Number the nodes of all trees through; a leaf becomes its own child and asks for feature 0."""
    root = np.concatenate(([0], np.cumsum(sizes)[:-1])).astype(np.int64)
    shift = np.repeat(root, sizes)
    own, is_leaf = np.arange(int(np.sum(sizes))), np.concatenate(leaf)
    return Trees(
        root,
        np.where(is_leaf, 0, np.concatenate(feature)).astype(np.int64),
        np.where(is_leaf, 0.0, np.concatenate(threshold)).astype(np.float64),
        np.where(is_leaf, own, np.concatenate(left) + shift),
        np.where(is_leaf, own, np.concatenate(right) + shift),
        np.concatenate(missing_left),
        np.concatenate(value).astype(np.float64),
        base,
        scale,
        single,
    )
