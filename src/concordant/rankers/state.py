"""The state that every fitted ranker has: parameters, names and normalisation of its features, status."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from concordant.errors import InputError
from concordant.features.normalising import Normaliser
from concordant.rankers.estimator import Ranker

__all__ = ["described", "restored"]

R = TypeVar("R", bound=Ranker)


def plain_values(value: Any) -> Any:
    """Return a value as JSON keeps it (tuples as lists, NumPy numbers as numbers); TypeError when it cannot."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {str(key): plain_values(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain_values(each) for each in value]
    json.dumps(value)
    return value


def described(ranker: Any) -> dict[str, Any]:
    """Return the state of a fitted ranker but for what its scores are made of, as values that JSON keeps.

    Errors: NotFittedError.
    """
    check_is_fitted(ranker)
    params, lost = {}, []
    for name, value in ranker.get_params(deep=False).items():
        try:
            params[name] = plain_values(value)
        except TypeError:
            lost.append(name)
    names = getattr(ranker, "feature_names_in_", None)
    return {
        "ranker": type(ranker).__name__,
        "params": params,
        "not_kept": lost,
        "features": ranker.n_features_in_,
        "names": None if names is None else list(names),
        "normaliser": ranker.normaliser_.to_dict(),
        "status": plain_values(ranker.status_),
    }


def restored(cls: type[R], values: Mapping[str, Any]) -> R:
    """Return a ranker with the state of ``described``. Errors (InputError): what is missing or does not fit."""
    try:
        if values["ranker"] != cls.__name__:
            raise InputError(f"this is the state of a {values['ranker']}, not of a {cls.__name__}")
        made = cls(**values["params"])
        normaliser = Normaliser.from_dict(values["normaliser"])
        names = None if values["names"] is None else tuple(str(name) for name in values["names"])
        width = int(values["features"])
        made.status_ = dict(values["status"])
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"the state of the ranker cannot be read: {type(error).__name__} {error}") from None
    if {width, len(normaliser.names), width if names is None else len(names)} != {width}:
        raise InputError(f"the state of the ranker cannot be read: it does not hold {width:,} features throughout")
    made._keep(normaliser, names, width)
    return made
