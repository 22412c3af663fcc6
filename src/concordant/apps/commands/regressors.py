"""Regressors by the names that ``concordant fit`` knows, with settings that suit ranking."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from concordant.errors import Unavailable, UsageError, did_you_mean

REGRESSORS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "hist-gradient-boosting": ("sklearn.ensemble", "HistGradientBoostingRegressor", {"max_iter": 150}),
    "random-forest": ("sklearn.ensemble", "RandomForestRegressor", {"n_estimators": 200, "min_samples_leaf": 5}),
    "network": ("sklearn.neural_network", "MLPRegressor", {"hidden_layer_sizes": (64,), "early_stopping": True}),
    "lightgbm": ("lightgbm", "LGBMRegressor", {"n_estimators": 150, "learning_rate": 0.08, "verbose": -1}),
    "xgboost": ("xgboost", "XGBRegressor", {"n_estimators": 150, "learning_rate": 0.08}),
}
"""Module, class and settings."""
NAMES = ("linear", "boosted", *REGRESSORS)
"""What ``--regressor`` takes: None of them, the exact linear fit; a ``BoostedRanker``; and regressors."""
MORE = {"lightgbm": ("early_stopping_round", "extra_trees", "max_bin", "max_delta_step", "path_smooth", "verbose")}
"""Parameters that ``get_params`` does not tell of."""
OF_TREES = (
    *("bagging_fraction", "bagging_freq", "extra_trees", "feature_fraction", "lambda_l1", "max_bin", "max_depth"),
    *("min_gain_to_split", "min_sum_hessian_in_leaf", "num_threads", "path_smooth"),
)
"""Parameters of LightGBM that a ``BoostedRanker`` hands on."""


def named_regressor(name: str, seed: int, given: Mapping[str, Any]) -> Any:
    """Return the unfitted regressor of a name with options, None for 'linear'.

    Errors (UsageError): an unknown name, a package that is not installed, an option that the regressor does not have.
    """
    if name == "linear":
        return None
    if name not in REGRESSORS:
        raise UsageError(f"unknown regressor {name!r}; {did_you_mean(name, NAMES)}")
    module, kind, settings = REGRESSORS[name]
    try:
        made = getattr(importlib.import_module(module), kind)
    except ImportError:
        if module.startswith("sklearn"):
            raise Unavailable(f"--regressor {name} needs scikit-learn: pip install 'concordant[sklearn]'") from None
        raise Unavailable(f"--regressor {name} needs {module}, which is not installed: pip install {module}") from None
    check_options(name, given, {**dict.fromkeys(MORE.get(name, ()), 0), **made().get_params(deep=False)})
    return made(random_state=seed, **{**settings, **given})


def check_options(name: str, given: Mapping[str, Any], usual: Mapping[str, Any]) -> None:
    """Refuse options that the regressor of a name does not have, and texts where LightGBM wants numbers.

    ``usual``: the values of its options where they are not given.
    """
    allowed = {*usual} - {"random_state"}
    for key, value in given.items():
        if key == "random_state":
            raise UsageError("--regressor-options random_state=…: --seed N says it")
        if key not in allowed:
            raise UsageError(f"--regressor-options {key}=…: {name} has no such option; {did_you_mean(key, allowed)}")
        if (
            name in ("boosted", "lightgbm")
            and isinstance(usual[key], int | float)
            and not isinstance(value, int | float)
        ):
            raise UsageError(f"--regressor-options {key}={value}: {key} is a number")


def said_options(given: Iterable[str]) -> dict[str, Any]:
    """Return options that are said as KEY=VALUE: numbers, true, false, null and lists as in JSON, else texts.

    >>> said_options(["max_depth=6", "learning_rate=.1", "loss=absolute_error", "early_stopping=true"])
    {'max_depth': 6, 'learning_rate': 0.1, 'loss': 'absolute_error', 'early_stopping': True}
    """
    found: dict[str, Any] = {}
    for text in given:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not key or not equals or key in found:
            why = "it is given twice" if key in found else "write KEY=VALUE"
            raise UsageError(f"--regressor-options {text!r}: {why}")
        found[key] = _value(value)
    return found


def _value(text: str) -> Any:
    for read in (json.loads, float):
        try:
            value = read(text)
        except ValueError:
            continue
        return tuple(value) if isinstance(value, list) else text if isinstance(value, dict) else value
    return text


def monotone_signs(text: str, names: Iterable[str]) -> list[int]:
    """Return −1, 0 or 1 for each feature, of NAME=+1,NAME=-1,….

    >>> monotone_signs("age=-1, price=+1", ["price", "age", "size"])
    [1, -1, 0]
    """
    signs = dict.fromkeys(names, 0)
    for part in text.split(","):
        name, _, sign = (one.strip() for one in part.rpartition("="))
        if sign not in ("+1", "1", "0", "-1"):
            raise UsageError(f"--monotone {part.strip()!r}: write NAME=+1 (never falls) or NAME=-1 (never rises)")
        if name not in signs:
            raise UsageError(f"--monotone {name}={sign}: there is no such feature; {did_you_mean(name, signs)}")
        signs[name] = int(sign)
    return [*signs.values()]
