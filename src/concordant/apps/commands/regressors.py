"""Regressors by the names that ``concordant fit`` knows, with settings that suit ranking."""

from __future__ import annotations

import importlib
from typing import Any

from concordant.errors import UsageError, did_you_mean

REGRESSORS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "hist-gradient-boosting": ("sklearn.ensemble", "HistGradientBoostingRegressor", {"max_iter": 150}),
    "random-forest": ("sklearn.ensemble", "RandomForestRegressor", {"n_estimators": 200, "min_samples_leaf": 5}),
    "network": ("sklearn.neural_network", "MLPRegressor", {"hidden_layer_sizes": (64,), "early_stopping": True}),
    "lightgbm": ("lightgbm", "LGBMRegressor", {"n_estimators": 150, "learning_rate": 0.08, "verbose": -1}),
    "xgboost": ("xgboost", "XGBRegressor", {"n_estimators": 150, "learning_rate": 0.08}),
}
"""Module, class and settings. None stands for the exact linear fit."""


def named_regressor(name: str, seed: int) -> Any:
    """Return the unfitted regressor of a name, None for 'linear'. Errors (UsageError): unknown, not installed."""
    if name == "linear":
        return None
    if name not in REGRESSORS:
        raise UsageError(f"unknown regressor {name!r}; {did_you_mean(name, ['linear', *REGRESSORS])}")
    module, kind, settings = REGRESSORS[name]
    try:
        made = getattr(importlib.import_module(module), kind)
    except ImportError:
        raise UsageError(f"--regressor {name} needs {module}, which is not installed: pip install {module}") from None
    return made(random_state=seed, **settings)
