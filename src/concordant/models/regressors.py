"""Regressors of other packages as plain values and arrays: linear models, networks, trees, and boosters' own texts."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn import linear_model
from sklearn.neural_network import MLPRegressor

from concordant.errors import InputError, few
from concordant.models.trees import Trees

__all__ = ["Network", "PlainLinear", "PlainRegressor", "TextBooster", "plain_regressor", "restored_regressor"]

Floats = NDArray[np.float64]
State = tuple[dict[str, Any], dict[str, NDArray[Any]]]
LINEAR = tuple(
    getattr(linear_model, name)
    for name in (
        *("LinearRegression", "Ridge", "RidgeCV", "Lasso", "LassoCV", "ElasticNet", "ElasticNetCV", "BayesianRidge"),
        *("ARDRegression", "HuberRegressor", "SGDRegressor", "QuantileRegressor"),
    )
)
BOOSTERS = ("lightgbm", "xgboost")
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
        return cls(arrays["coef"], values["intercept"])


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
        layers = range(values["layers"])
        return cls(
            tuple(arrays[f"weight-{place}"] for place in layers),
            tuple(arrays[f"bias-{place}"] for place in layers),
            values["activation"],
        )


@dataclass(frozen=True, eq=False)
class TextBooster:
    """A LightGBM or XGBoost model in the text format of its package, which must be installed to score with it."""

    package: str
    text: str

    @classmethod
    def of(cls, regressor: Any) -> TextBooster | None:
        name = type(regressor).__module__.split(".")[0]
        if name == "lightgbm" and hasattr(regressor, "booster_"):
            return cls(name, regressor.booster_.model_to_string())
        if name == "xgboost" and hasattr(regressor, "get_booster"):
            return cls(name, bytes(regressor.get_booster().save_raw("json")).decode())
        return None

    def predict(self, X: NDArray[Any]) -> Floats:
        predict = self._booster.predict if self.package == "lightgbm" else self._booster.inplace_predict
        return np.asarray(predict(X), np.float64)

    @cached_property
    def _booster(self) -> Any:
        """The model as its package has it, read once."""
        try:
            module = importlib.import_module(self.package)
        except ImportError:
            raise InputError(f"the model is one of {self.package}, which is not installed") from None
        if self.package == "lightgbm":
            return module.Booster(model_str=self.text)
        booster = module.Booster()
        booster.load_model(bytearray(self.text.encode()))
        return booster

    def __getstate__(self) -> dict[str, Any]:
        return {"package": self.package, "text": self.text}

    def to_state(self) -> State:
        return {"package": self.package}, {"text": np.frombuffer(self.text.encode(), np.uint8)}

    @classmethod
    def from_state(cls, values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> TextBooster:
        if values["package"] not in BOOSTERS:  # it is imported to predict
            raise InputError(f"the model names the package {values['package']!r}; known are {few(BOOSTERS)}")
        return cls(values["package"], arrays["text"].tobytes().decode())


KINDS: Mapping[str, Any] = MappingProxyType(
    {"linear": PlainLinear, "trees": Trees, "network": Network, "booster": TextBooster}
)


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
    return None


def restored_regressor(
    kind: str, values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], features: int
) -> PlainRegressor:
    """Return the regressor of a ``to_state``. Errors (InputError): an unknown kind, trees of more features."""
    if kind not in KINDS:
        raise InputError(f"the model holds a regressor of unknown kind {kind!r}")
    restored: PlainRegressor = KINDS[kind].from_state(values, arrays)
    if isinstance(restored, Trees) and (restored.feature >= features).any():
        raise InputError(f"the trees of the model ask for more than its {features:,} features")
    return restored
