"""Keep a fitted ranker and restore it: the state of the ranker, its features' names, and its regressor."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import concordant
from concordant.abstaining.ranker import AbstainingRanker
from concordant.errors import InputError, UsageError, did_you_mean
from concordant.models.directory import Contents, check_target, read_directory, write_directory
from concordant.models.regressors import plain_regressor, restored_regressor
from concordant.rankers.kept import RANKERS

__all__ = ["FORMAT", "load_model", "save_model"]

FORMAT = 1
"""Version of the layout; a reader refuses what is newer than itself."""
PICKLE = "regressor.pickle"
KEPT: dict[str, type[Any]] = {**RANKERS, AbstainingRanker.__name__: AbstainingRanker}
"""Classes with ``to_state`` and ``from_state``, by their names."""


def save_model(
    ranker: Any, path: str | os.PathLike[str], *, about: dict[str, Any] | None = None, unsafe_pickle: bool = False
) -> Path:
    """Write a fitted ranker to a directory of JSON and plain arrays, with a hash of every file.

    Regressors with a plain form (linear models, networks and trees of scikit-learn, LightGBM, XGBoost) are kept in it.
    Any other can only be pickled, and whoever loads a pickle runs the code in it: ``unsafe_pickle=True`` does so.
    ``about`` is kept beside the state (how the model was made).

    Errors: NotFittedError; UsageError when the place is taken or the regressor has no plain form.
    """
    target = check_target(path)
    values, arrays = ranker.to_state()
    files: dict[str, bytes] = {}
    held: dict[str, Any] | None = None
    foreign = ranker.foreign_
    if foreign is not None:
        plain = plain_regressor(foreign)
        if plain is not None:
            kind, regressor = plain
            state, columns = regressor.to_state()
            held = {"kind": kind, "class": type(foreign).__name__, "values": state}
            arrays = {**arrays, **{f"regressor-{name}": column for name, column in columns.items()}}
        elif unsafe_pickle:
            held = {"kind": "pickle", "class": type(foreign).__name__}
            files[PICKLE] = pickle.dumps(foreign)
        else:
            raise UsageError(
                f"a {type(foreign).__name__} has no plain form to be kept in; only a pickle could keep it, and loading "
                "a pickle runs whatever code is in it. unsafe_pickle=True keeps one all the same"
            )
    contents = {
        "format": FORMAT,
        "concordant": concordant.__version__,
        "ranker": type(ranker).__name__,
        "state": values,
        "regressor": held,
        "about": about or {},
    }
    return write_directory(target, Contents(contents, dict(arrays), files))


def load_model(path: str | os.PathLike[str], *, unsafe_pickle: bool = False) -> Any:
    """Return the ranker of a model directory; its scores are those of the ranker that was kept.

    Every file's hash is checked first. No pickle is read unless ``unsafe_pickle=True`` asks for it.

    Errors (InputError): no model, a changed byte, a newer format, an unknown ranker; UsageError for a pickle.
    """
    found = read_directory(path)
    kept = found.values
    version = kept.get("format")
    if not isinstance(version, int) or version > FORMAT:
        raise InputError(
            f"{path}: a model of format {version!r}, written by concordant {kept.get('concordant')!r}; this version "
            f"reads formats up to {FORMAT}"
        )
    name = str(kept.get("ranker"))
    if name not in KEPT:
        raise InputError(f"{path}: unknown ranker {name!r}; {did_you_mean(name, KEPT)}")
    prefix = "regressor-"
    own = {key: array for key, array in found.arrays.items() if not key.startswith(prefix)}
    ranker = KEPT[name].from_state(kept["state"], own)
    held = kept["regressor"]
    if held is None:
        return ranker
    if held["kind"] != "pickle":
        columns = {key.removeprefix(prefix): array for key, array in found.arrays.items() if key.startswith(prefix)}
        ranker.regressor_ = restored_regressor(held["kind"], held["values"], columns)
        return ranker
    if not unsafe_pickle:
        raise UsageError(
            f"{path} holds a pickled {held['class']}; loading a pickle runs whatever code is in it. If you trust where "
            "it comes from: unsafe_pickle=True (--unsafe-load-pickle)"
        )
    ranker.regressor_ = pickle.loads(found.files[PICKLE])
    return ranker
