"""The state that every fitted ranker has: parameters, names and normalisation of its features, status."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from concordant.errors import InputError
from concordant.features.normalising import Normaliser
from concordant.json_values import Fields
from concordant.rankers.estimator import Ranker

__all__ = ["described", "numbers_of", "plain_values", "restored"]

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
    given = Fields(values, "the state of the ranker")
    if given["ranker"] != cls.__name__:
        raise InputError(f"this is the state of a {given['ranker']}, not of a {cls.__name__}")
    try:
        made = cls(**given.fields("params").values)
    except TypeError as error:
        raise given.wrong(str(error)[:160]) from None
    normaliser = Normaliser.from_dict(given["normaliser"])
    names = None if given["names"] is None else given.texts("names")
    width = given.whole("features")
    if {width, len(normaliser.names), width if names is None else len(names)} != {width}:
        raise given.wrong(f"it does not hold {width:,} features throughout")
    if names is not None and names != normaliser.names:
        raise given.wrong("the names of its features are not those of its normaliser")
    alike = made._normaliser()
    if (alike.standardise, alike.log, alike.missing) != (normaliser.standardise, normaliser.log, normaliser.missing):
        raise given.wrong("its parameters are not those of its normaliser")
    made.status_ = dict(given.fields("status").values)
    given.fields("status").text("status")
    made._keep(normaliser, names, width)
    return made


def numbers_of(arrays: Mapping[str, NDArray[Any]], name: str, width: int) -> NDArray[np.float64]:
    """Return an array of so many finite numbers. Errors (InputError)."""
    found = arrays.get(name)
    if found is None or found.dtype.kind != "f" or found.shape != (width,) or not np.isfinite(found).all():
        raise InputError(f"the state of the ranker cannot be read: it has no {width:,} finite numbers as {name}")
    return np.array(found, np.float64)
