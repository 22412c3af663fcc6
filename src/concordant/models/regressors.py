"""Regressors of other packages as plain values and arrays: linear models, networks, trees."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn import linear_model
from sklearn.neural_network import MLPRegressor

from concordant.errors import InputError, UsageError
from concordant.json_values import Fields
from concordant.models.boosters import booster_text, booster_trees
from concordant.models.trees import Trees

__all__ = ["Network", "PlainLinear", "PlainRegressor", "plain_regressor", "restored_regressor"]

Floats = NDArray[np.float64]
State = tuple[dict[str, Any], dict[str, NDArray[Any]]]
LINEAR = tuple(
    getattr(linear_model, name)
    for name in (
        *("LinearRegression", "Ridge", "RidgeCV", "Lasso", "LassoCV", "ElasticNet", "ElasticNetCV", "BayesianRidge"),
        *("ARDRegression", "HuberRegressor", "SGDRegressor", "QuantileRegressor"),
    )
)
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
        if type(regressor) not in LINEAR or np.ndim(regressor.coef_) != 1:
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
        if type(regressor) is not MLPRegressor or regressor.out_activation_ != "identity" or regressor.n_outputs_ != 1:
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

    >>> fitted = linear_model.Ridge().fit([[0.0], [1.0]], [0.0, 1.0])
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
