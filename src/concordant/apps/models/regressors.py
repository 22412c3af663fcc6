"""Regressors of other packages as values and arrays, without a pickle: linear models, networks, trees."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from concordant.apps.models.categories import on_numbers, sets_of
from concordant.errors import InputError, UsageError, few
from concordant.io.log.json_values import Fields, json_value
from concordant.kernels.arrays import in_ranges
from concordant.kernels.compiled import compiles
from concordant.learning.scikit import exactly

Floats = NDArray[np.float64]
FORESTS = ("RandomForestRegressor", "ExtraTreesRegressor")
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
    >>> from sklearn.ensemble import RandomForestRegressor
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
        if exactly(regressor, "HistGradientBoostingRegressor"):
            return _of_histograms(regressor)
        if exactly(regressor, "DecisionTreeRegressor"):
            return _of_trees([regressor], 0.0, 1.0)
        if exactly(regressor, *FORESTS):
            return _of_trees(list(regressor.estimators_), 0.0, 1.0 / len(regressor.estimators_))
        if exactly(regressor, "GradientBoostingRegressor") and hasattr(regressor.init_, "constant_"):
            base = float(np.ravel(regressor.init_.constant_)[0])
            return _of_trees(list(regressor.estimators_[:, 0]), base, float(regressor.learning_rate))
        return None

    def predict(self, X: NDArray[Any]) -> Floats:
        """Return f of each row of X, shape (rows,)."""
        X = np.asarray(X)
        X = X.astype(np.float32) if self.single else X.astype(np.float64, copy=False)
        if len(X) * len(self.root) > MANY and compiles():
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


LIGHTGBM = (
    *("regression", "regression_l1", "huber", "fair", "quantile", "mape", "lambdarank", "rank_xendcg", "custom"),
)
XGBOOST = (
    *("reg:squarederror", "reg:linear", "reg:absoluteerror", "reg:pseudohubererror", "reg:quantileerror"),
    *("rank:pairwise", "rank:ndcg", "rank:map"),
)
"""Objectives whose predictions are the sum of the trees."""
PACKAGES = ("lightgbm", "xgboost")
CATEGORY, DEFAULT_LEFT = 1, 2
"""Bits of LightGBM's decision_type; the two above them say how values can be missing."""


def booster_text(regressor: Any) -> tuple[str, str] | None:
    """Return the package of a fitted regressor of LightGBM or XGBoost and the model in its text; None for others."""
    name = type(regressor).__module__.split(".")[0]
    if name == "lightgbm" and hasattr(regressor, "booster_"):
        return name, regressor.booster_.model_to_string()
    if name == "xgboost" and hasattr(regressor, "get_booster"):
        return name, bytes(regressor.get_booster().save_raw("json")).decode()
    return None


def booster_trees(package: str, text: str) -> Trees:
    """Return the trees of a model in the text of its package; their predictions have the same bits.

    Neither package sees the text: theirs end the process on a text that is not their own.

    Errors: UsageError for trees of a kind that others do not have; InputError for what cannot be read.
    """
    if package not in PACKAGES:
        raise InputError(f"the model names the package {package!r}; known are {few(PACKAGES)}")
    try:
        made = _lightgbm(text) if package == "lightgbm" else _xgboost(json_value(text, "the xgboost model"))
    except (InputError, UsageError):
        raise
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise InputError(f"the {package} model cannot be read: {type(error).__name__} {error}") from None
    made.check()
    return made


def _lightgbm(text: str) -> Trees:
    """Read the text format: a head, then one block for each tree (LightGBM, ``Tree::ToString``)."""
    head, *blocks = text.split("\nTree=")
    facts = _lines(head)
    objective = facts.get("objective", "custom").split() or [""]
    _refuse_unless(objective[0] in LIGHTGBM and "sqrt" not in objective, "lightgbm", f"objective {' '.join(objective)}")
    _refuse_unless(facts["num_tree_per_iteration"] == "1", "lightgbm", "several outputs")
    sizes = facts.get("tree_sizes", "").split()
    if len(sizes) != len(blocks):
        raise ValueError(f"it speaks of {len(sizes):,} trees and has {len(blocks):,}")
    parts = []
    for place, block in enumerate(blocks):
        number, _, rest = block.split("\n\n")[0].partition("\n")
        if number != str(place):
            raise ValueError(f"tree {number[:20]!r} stands in the place of {place:,}")
        tree = _lines(rest)
        _refuse_unless(tree["is_linear"] == "0", "lightgbm", "linear models in its leaves")
        parts.append(_lightgbm_tree(tree))
    scale = 1.0 / max(len(parts), 1) if "average_output" in facts else 1.0
    return joined(parts, 0.0, scale, single=False)


def _lightgbm_tree(tree: Mapping[str, str]) -> dict[str, Any]:
    leaves = np.array(tree["leaf_value"].split(), np.float64)
    inner = len(leaves) - 1
    if int(tree["num_leaves"]) != len(leaves):
        raise ValueError(f"{tree['num_leaves'][:20]} leaves with {len(leaves):,} values")

    def column(name: str, kind: type) -> NDArray[Any]:
        found: NDArray[Any] = np.array(tree[name].split() if inner else [], kind)
        if len(found) != inner:
            raise ValueError(f"{name} has {len(found):,} entries for {inner:,} splits")
        return found

    kind = column("decision_type", np.int64)
    missing = (kind >> 2) & 3
    if ((kind < 0) | (kind > 15) | (missing == 3)).any():
        raise ValueError("a decision_type that it does not have")
    on_codes = np.flatnonzero(kind & CATEGORY)
    _refuse_unless(not (missing == 1).any(), "lightgbm", "zero_as_missing")
    threshold = column("threshold", np.float64)
    default = np.where(missing == 2, (kind & DEFAULT_LEFT) > 0, threshold >= 0)  # else a missing value counts as 0
    none = np.full(len(leaves), -1)
    below = {side: column(f"{side}_child", np.int64) for side in ("left", "right")}
    if any(((to >= inner) | (to < -len(leaves))).any() for to in below.values()):
        raise ValueError("a child that is not there")
    made = {
        "feature": np.concatenate((column("split_feature", np.int64), none)),
        "threshold": np.concatenate((threshold, np.zeros(len(leaves)))),
        **{side: np.concatenate((np.where(to < 0, inner + ~to, to), none)) for side, to in below.items()},
        "leaf": np.arange(inner + len(leaves)) >= inner,
        "missing_left": np.concatenate((default, none > 0)),
        "value": np.concatenate((np.zeros(inner), leaves)),
    }
    if not len(on_codes):
        return made
    found = sets_of(tree, threshold[on_codes].astype(np.int64))
    return on_numbers(made, dict(zip(on_codes.tolist(), found, strict=True)))


def _xgboost(model: Any) -> Trees:
    """Read the JSON format (XGBoost, ``doc/model.schema``): x goes left when it is below the split, both float32."""
    learner = Fields(model, "the xgboost model").fields("learner")
    booster, objective = learner.fields("gradient_booster"), learner.fields("objective").text("name")
    _refuse_unless(booster.text("name") == "gbtree", "xgboost", f"booster {booster.text('name')}")
    _refuse_unless(objective in XGBOOST, "xgboost", f"objective {objective}")
    numbers = learner.fields("learner_model_param").values
    _refuse_unless(int(numbers.get("num_target", 1)) <= 1, "xgboost", "several outputs")
    base = np.ravel(np.array(json_value(str(numbers["base_score"]), "base_score"), np.float32))
    _refuse_unless(len(base) == 1, "xgboost", "several outputs")
    weights = booster.fields("model").values.get("weight_drop") or []
    _refuse_unless(all(one == 1.0 for one in weights), "xgboost", "trees weighted by dropout (rate_drop)")
    parts = []
    for given in booster.fields("model")["trees"]:
        tree = Fields(given, "a tree of the xgboost model")
        _refuse_unless(not any(tree["split_type"]), "xgboost", "splits on categories")
        left, right = (_children(tree[f"{side}_children"]) for side in ("left", "right"))
        cut = np.array(tree.numbers("split_conditions"), np.float32)
        columns = {
            "feature": np.array(tree.wholes("split_indices"), np.int64),
            "threshold": np.nextafter(cut, np.float32(-np.inf)).astype(np.float64),
            "left": left,
            "right": right,
            "leaf": left < 0,
            "missing_left": np.array([_bit(one) for one in tree["default_left"]], bool),
            "value": cut.astype(np.float64),
        }
        if len({len(column) for column in columns.values()}) != 1 or not len(cut):
            raise ValueError("columns of a tree differ in length")
        if ((left < 0) != (right < 0)).any() or any((side >= len(cut)).any() for side in (left, right)):
            raise ValueError("a child that is not there")
        parts.append(columns)
    return joined(parts, float(base[0]), 1.0, single=True, single_sum=True)


def _children(given: Any) -> NDArray[np.int64]:
    if not all(isinstance(one, int) and not isinstance(one, bool) for one in given):
        raise TypeError("a child that is no number of a node")
    return np.array(given, np.int64)


def _bit(given: Any) -> bool:
    if given not in (0, 1):
        raise ValueError(f"default_left {given!r}")
    return bool(given)


def _lines(text: str) -> dict[str, str]:
    """The lines ``name=value`` of a block; a line that is a name alone has no value. Errors (ValueError): one twice."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, _, value = line.partition("=")
        if name in found:
            raise ValueError(f"{name[:40]!r} stands there twice")
        if name:
            found[name] = value
    return found


def _refuse_unless(allowed: bool, package: str, what: str) -> None:
    if not allowed:
        raise UsageError(
            f"this {package} model has {what[:80]}, which plain trees cannot say; allowed are trees of numeric splits "
            "whose sum is the prediction"
        )


State = tuple[dict[str, Any], dict[str, NDArray[Any]]]
LINEAR = (
    *("LinearRegression", "Ridge", "RidgeCV", "Lasso", "LassoCV", "ElasticNet", "ElasticNetCV", "BayesianRidge"),
    *("ARDRegression", "HuberRegressor", "SGDRegressor", "QuantileRegressor"),
)
"""Linear models of scikit-learn."""
ACTIVATIONS: Mapping[str, Callable[[Floats], Floats]] = MappingProxyType(
    {
        "identity": lambda z: z,
        "relu": lambda z: np.maximum(z, 0.0),
        "tanh": np.tanh,
        "logistic": lambda z: np.asarray(expit(z), np.float64),
    }
)


class PlainRegressor(Protocol):
    """What a kept regressor can do: predict, and be kept again."""

    def predict(self, X: NDArray[Any]) -> Floats: ...
    def to_state(self) -> State: ...


@dataclass(frozen=True, eq=False)
class PlainLinear:
    """f(x) = x'coef + intercept, of any linear model of scikit-learn."""

    coef: Floats
    intercept: float

    @classmethod
    def of(cls, regressor: Any) -> PlainLinear | None:
        if not exactly(regressor, *LINEAR) or np.ndim(regressor.coef_) != 1:
            return None
        return cls(np.asarray(regressor.coef_, np.float64), float(np.ravel(regressor.intercept_)[0]))

    def predict(self, X: NDArray[Any]) -> Floats:
        return np.asarray(X @ self.coef + self.intercept, np.float64)

    def to_state(self) -> State:
        return {"intercept": self.intercept}, {"coef": self.coef}

    @classmethod
    def from_state(cls, values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> PlainLinear:
        return cls(_floats(arrays, "coef", 1), Fields(values, "the linear model").number("intercept"))


@dataclass(frozen=True, eq=False)
class Network:
    """A multilayer perceptron with one output: x ↦ W_L a(… a(W_1 x + b_1) …) + b_L."""

    weights: tuple[Floats, ...]
    biases: tuple[Floats, ...]
    activation: str

    @classmethod
    def of(cls, regressor: Any) -> Network | None:
        if (
            not exactly(regressor, "MLPRegressor")
            or regressor.out_activation_ != "identity"
            or regressor.n_outputs_ != 1
        ):
            return None
        return cls(tuple(regressor.coefs_), tuple(regressor.intercepts_), regressor.activation)

    def predict(self, X: NDArray[Any]) -> Floats:
        hidden = np.asarray(X)
        for place, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            hidden = hidden @ weight + bias
            if place + 1 < len(self.weights):
                hidden = ACTIVATIONS[self.activation](hidden)
        return np.asarray(hidden[:, 0], np.float64)

    def to_state(self) -> State:
        arrays = {f"weight-{place}": weight for place, weight in enumerate(self.weights)}
        arrays |= {f"bias-{place}": bias for place, bias in enumerate(self.biases)}
        return {"activation": self.activation, "layers": len(self.weights)}, arrays

    @classmethod
    def from_state(cls, values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Network:
        given = Fields(values, "the network of the model")
        layers = range(given.whole("layers", 1))
        if len(arrays) != 2 * len(layers):
            raise given.wrong(f"it has {len(arrays):,} arrays for {len(layers):,} layers")
        weights = tuple(_floats(arrays, f"weight-{place}", 2) for place in layers)
        biases = tuple(_floats(arrays, f"bias-{place}", 1) for place in layers)
        wide = [weight.shape[1] for weight in weights]
        follows = [weight.shape[0] for weight in weights[1:]] == wide[:-1] and wide[-1] == 1
        if not follows or [len(bias) for bias in biases] != wide:
            raise given.wrong("its layers do not follow each other to one output")
        return cls(weights, biases, given.text("activation", tuple(ACTIVATIONS)))


def _floats(arrays: Mapping[str, NDArray[Any]], name: str, dimensions: int) -> Floats:
    """An array of finite numbers. Errors (InputError)."""
    found = arrays.get(name)
    if found is None or found.dtype.kind != "f" or found.ndim != dimensions or not np.isfinite(found).all():
        raise InputError(f"the regressor of the model cannot be read: {name} is no array of finite numbers")
    return found


KINDS: Mapping[str, Any] = MappingProxyType({"linear": PlainLinear, "trees": Trees, "network": Network})


def plain_regressor(regressor: Any) -> tuple[str, PlainRegressor] | None:
    """Return the kind and the plain form of a fitted regressor; None when only a pickle could keep it.

    >>> from sklearn.linear_model import Ridge
    >>> fitted = Ridge().fit([[0.0], [1.0]], [0.0, 1.0])
    >>> kind, plain = plain_regressor(fitted)
    >>> kind, bool(np.allclose(plain.predict(np.ones((1, 1))), fitted.predict([[1.0]])))
    ('linear', True)
    """
    for kind, member in KINDS.items():
        if isinstance(regressor, member):
            return kind, regressor
        if (plain := member.of(regressor)) is not None:
            return kind, plain
    if (booster := booster_text(regressor)) is None:
        return None
    try:
        return "trees", booster_trees(*booster)
    except UsageError:  # trees that split on categories, say
        return None


def restored_regressor(
    kind: str, values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], features: int
) -> PlainRegressor:
    """Return the regressor of a ``to_state``.

    Errors (InputError): an unknown kind, parts that do not fit each other, or not so many features.
    """
    restored: PlainRegressor
    if kind == "booster":  # older models hold the text of LightGBM or XGBoost
        text = arrays["text"].tobytes().decode()
        restored = booster_trees(Fields(values, "the booster of the model").text("package"), text)
    elif kind in KINDS:
        restored = KINDS[kind].from_state(values, arrays)
    else:
        raise InputError(f"the model holds a regressor of unknown kind {kind!r}")
    if isinstance(restored, Trees) and (restored.feature >= features).any():
        raise InputError(f"the trees of the model ask for more than its {features:,} features")
    wide = restored.coef if isinstance(restored, PlainLinear) else None
    wide = restored.weights[0] if isinstance(restored, Network) else wide
    if wide is not None and len(wide) != features:
        raise InputError(f"the regressor of the model takes {len(wide):,} features, the model has {features:,}")
    return restored
