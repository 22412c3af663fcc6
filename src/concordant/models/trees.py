"""Tree ensembles as plain arrays, so that a fitted forest or boosting can be kept without a pickle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

from concordant.errors import InputError
from concordant.json_values import Fields
from concordant.threads import in_ranges

__all__ = ["Trees", "joined"]

Floats = NDArray[np.float64]
FORESTS = (RandomForestRegressor, ExtraTreesRegressor)
BLOCK = 1 << 16
"""Rows, times trees, that go down together."""
MANY = 1 << 22
"""Rows times trees beyond which compiled loops do it."""
MOST_TREES, DEEPEST = 100_000, 10_000
"""Trees, and levels of one, beyond which a model is refused: each costs a step of its own."""
WHAT = "the trees of the model"


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
    single_sum: bool = False
    """Whether the values are added up in float32, from the base on, as XGBoost does."""

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
        if len(X) * len(self.root) > MANY:
            return self._compiled(np.ascontiguousarray(X))
        found = np.full(len(X), 0.0 if self.single_sum else self.base)
        for begin in range(0, len(X), BLOCK):
            part = np.ascontiguousarray(X[begin : begin + BLOCK])
            total = np.full(len(part), self.base, np.float32) if self.single_sum else np.zeros(len(part))
            together = max(1, BLOCK // len(part))
            for first in range(0, len(self.root), together):
                leaves = self._leaves(part, self.root[first : first + together])
                for values in self.value[leaves].astype(total.dtype, copy=False):
                    total += values  # tree by tree: a score has the same bits whatever rows stand beside it
            found[begin : begin + BLOCK] += self.scale * total
        return found

    def _compiled(self, X: NDArray[Any]) -> Floats:
        """As ``predict``, in threads; the bits are the same."""
        from concordant.kernels.tree_walks import add_leaves

        total = np.full(len(X), self.base, np.float32) if self.single_sum else np.zeros(len(X))
        value = self.value.astype(total.dtype)
        nodes = (self.root, self.feature, self.threshold, self.left, self.right, self.missing_left, value)
        in_ranges(lambda first, last: add_leaves(X, *nodes, first, last, total), np.full(len(X), float(len(self.root))))
        return np.asarray((0.0 if self.single_sum else self.base) + self.scale * total.astype(np.float64), np.float64)

    def _leaves(self, X: NDArray[Any], root: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the leaf of each tree that each row falls into, shape (trees, rows), level by level."""
        values, row = X.ravel(), np.arange(len(X)) * X.shape[1]
        gaps = bool(np.isnan(values).any())
        node = np.repeat(root, len(X)).reshape(len(root), len(X))
        while True:
            x = values.take(self.feature.take(node) + row)
            goes_left = x <= self.threshold.take(node)
            if gaps:
                goes_left = np.where(np.isnan(x), self.missing_left.take(node), goes_left)
            below = np.where(goes_left, self.left.take(node), self.right.take(node))
            if (below == node).all():
                return node
            node = below

    def to_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return what JSON keeps and the arrays."""
        names = ("root", "feature", "threshold", "left", "right", "missing_left", "value")
        values = {"base": self.base, "scale": self.scale, "single": self.single, "single_sum": self.single_sum}
        return values, {name: getattr(self, name) for name in names}

    @classmethod
    def from_state(cls, values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Trees:
        """Return the trees of a ``to_state``. Errors (InputError): columns or children that are not those of trees."""
        given = Fields(values, WHAT)
        scalars: Any = {name: given.number(name) for name in ("base", "scale")}
        scalars["single"] = given.flag("single")
        scalars["single_sum"] = "single_sum" in values and given.flag("single_sum")
        kinds = {"root": "i", "feature": "i", "threshold": "f", "left": "i", "right": "i", "missing_left": "b"}
        if sorted(arrays) != sorted([*kinds, "value"]) or any(
            arrays[name].dtype.kind != kind or arrays[name].ndim != 1 for name, kind in (kinds | {"value": "f"}).items()
        ):
            raise given.wrong("their columns do not go together")
        columns: Any = {name: array.astype(TYPES[array.dtype.kind], copy=False) for name, array in arrays.items()}
        made = cls(**columns, **scalars)
        made.check()
        return made

    def check(self) -> None:
        """Refuse what are no trees: a walk from each root ends in a leaf of its own with a finite value.

        Errors (InputError): columns of different lengths; children that are not there, above their parent or of two
        parents; numbers that are not finite; more trees or levels than ``MOST_TREES`` and ``DEEPEST``.
        """
        own = np.arange(self.feature.size)
        below = (self.left, self.right)
        if any(column.shape != own.shape for column in (self.threshold, *below, self.missing_left, self.value)):
            raise InputError(f"{WHAT} cannot be read: their columns do not go together")
        if len(self.root) > MOST_TREES:
            raise InputError(f"the model has {len(self.root):,} trees; at most {MOST_TREES:,} are allowed")
        ahead = all(((side >= own) & (side < len(own))).all() for side in below)  # else a walk may never end
        if not ahead or not ((self.root >= 0) & (self.root < len(own))).all() or (self.feature < 0).any():
            raise InputError(f"{WHAT} cannot be read: a node that is not there, or above its parent")
        inner = self.left != own
        parents = np.bincount(self.root, minlength=len(own))
        for side in below:
            parents += np.bincount(side[inner], minlength=len(own))
        if (inner != (self.right != own)).any() or (parents > 1).any():
            raise InputError(f"{WHAT} cannot be read: a node with one child, or with two parents")
        if np.isnan(self.threshold).any() or not np.isfinite(self.value).all():
            raise InputError(f"{WHAT} cannot be read: thresholds or values are not finite")
        if not (np.isfinite(self.base) and np.isfinite(self.scale)):
            raise InputError(f"{WHAT} cannot be read: base or scale is not finite")
        level = self.root
        for _ in range(DEEPEST):
            level = level[inner[level]]
            if len(level) == 0:
                return
            level = np.concatenate((self.left[level], self.right[level]))
        raise InputError(f"a tree of the model has more than {DEEPEST:,} levels")


TYPES = {"i": np.int64, "f": np.float64, "b": np.bool_}


def _of_trees(trees: list[Any], base: float, scale: float) -> Trees | None:
    if any(tree.tree_.n_outputs != 1 for tree in trees):
        return None
    parts = [
        {
            "feature": part.feature,
            "threshold": part.threshold,
            "left": part.children_left,
            "right": part.children_right,
            "leaf": part.children_left < 0,
            "missing_left": np.asarray(part.missing_go_to_left, bool),
            "value": part.value[:, 0, 0],
        }
        for part in (tree.tree_ for tree in trees)
    ]
    return joined(parts, base, scale, single=True)


def _of_histograms(regressor: Any) -> Trees | None:
    nodes = [predictor.nodes for (predictor,) in regressor._predictors]
    if any(part["is_categorical"].any() for part in nodes) or regressor.loss not in ("squared_error", "absolute_error"):
        return None
    parts = [
        {
            "feature": part["feature_idx"],
            "threshold": part["num_threshold"],
            "left": part["left"].astype(np.int64),
            "right": part["right"].astype(np.int64),
            "leaf": part["is_leaf"].astype(bool),
            "missing_left": part["missing_go_to_left"].astype(bool),
            "value": part["value"],
        }
        for part in nodes
    ]
    return joined(parts, float(np.ravel(regressor._baseline_prediction)[0]), 1.0, single=False)


def joined(
    parts: Sequence[Mapping[str, NDArray[Any]]], base: float, scale: float, *, single: bool, single_sum: bool = False
) -> Trees:
    """Return trees as one: nodes are numbered through; a leaf becomes its own child and asks for feature 0.

    Each tree has columns feature, threshold, left, right, leaf, missing_left and value, its root first.
    """
    sizes = [len(part["leaf"]) for part in parts]
    root = np.cumsum([0, *sizes])[:-1].astype(np.int64)
    shift, own = np.repeat(root, sizes), np.arange(sum(sizes))

    def column(name: str, kind: type) -> NDArray[Any]:
        return np.concatenate([np.zeros(0, kind), *(part[name] for part in parts)])

    leaf = column("leaf", bool)
    return Trees(
        root,
        np.where(leaf, 0, column("feature", np.int64)).astype(np.int64),
        np.where(leaf, 0.0, column("threshold", np.float64)).astype(np.float64),
        np.where(leaf, own, column("left", np.int64) + shift),
        np.where(leaf, own, column("right", np.int64) + shift),
        column("missing_left", bool),
        column("value", np.float64),
        base,
        scale,
        single,
        single_sum,
    )
