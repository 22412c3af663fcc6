"""Keep a fitted ranker and restore it: the state of the ranker, its features' names, and its regressor."""

from __future__ import annotations

import os
import pickle
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

import concordant
from concordant.abstention.ranker import AbstainingRanker
from concordant.apps.models.directory import ORIGIN, Contents, check_target, read_directory, write_directory
from concordant.apps.models.regressors import plain_regressor, restored_regressor
from concordant.errors import ConcordantError, InputError, Setting, UsageError, did_you_mean
from concordant.learning.annotators.camps import Camps
from concordant.learning.annotators.distributional import Distributional
from concordant.learning.rankers.kept import RANKERS
from concordant.record import made_of, telling

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
    ``about`` is kept beside the state (how the model was made). Of ``Camps`` and ``Distributional``, found with
    features, their ``scorer`` is kept, without the votes and the annotators.

    Errors: NotFittedError; UsageError when the place is taken or the regressor has no plain form.

    >>> import tempfile
    >>> import concordant as cc
    >>> votes = cc.Preferences.from_comparisons(["b", "c", "c"], ["a", "a", "b"])
    >>> features = {"item": ["a", "b", "c"], "length": [1.0, 2.0, 3.0]}
    >>> ranker = cc.AggregationRanker("log-odds", order="all").fit(features, votes)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     same = cc.load_model(cc.save_model(ranker, f"{folder}/model"))
    >>> bool((same.predict(features) == ranker.predict(features)).all())
    True
    """
    target = check_target(path)
    ranker = ranker.scorer if isinstance(ranker, Camps | Distributional) else ranker
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
                "a pickle runs whatever code is in it. ",
                Setting("unsafe_pickle", True),
                " keeps one all the same",
            )
    contents = {
        "format": FORMAT,
        "concordant": concordant.__version__,
        "ranker": type(ranker).__name__,
        "state": values,
        "regressor": held,
        "about": about or {},
        "made": {"time": _now(), "of": made_of()},
    }
    return write_directory(target, Contents(contents, dict(arrays), files))


@telling("model", lambda ranker: {"sha256": ranker.origin_["hash"], "ranker": type(ranker).__name__})
def load_model(path: str | os.PathLike[str], *, unsafe_pickle: bool = False) -> Any:
    """Return the ranker of a model directory; its scores are those of the ranker that was kept.

    Every file's hash is checked first. No pickle is read unless ``unsafe_pickle=True`` asks for it. ``origin_`` of what
    is returned says where it comes from: its ``hash``, the SHA-256 of all that decides a score; when and of what it was
    ``made``, the latter where a record of the fit was kept (``recording``; every command keeps one); the version of
    ``concordant`` that wrote it; what the writer said ``about`` it.

    Errors (InputError): no model, a changed byte, a newer format, an unknown ranker, parts that do not fit together;
    UsageError for a pickle.

    >>> load_model("no-such-folder")
    Traceback (most recent call last):
    concordant.errors.InputError: no-such-folder: there is no model directory
    """
    found = read_directory(path)
    kept = found.values
    version = kept.get("format")
    if isinstance(version, bool) or not isinstance(version, int) or not 1 <= version <= FORMAT:
        raise InputError(
            f"{path}: a model of format {version!r}, written by concordant {kept.get('concordant')!r}; this version "
            f"reads formats up to {FORMAT}"
        )
    name = str(kept.get("ranker"))
    if name not in KEPT:
        raise InputError(f"{path}: unknown ranker {name!r}; {did_you_mean(name, KEPT)}")
    if PICKLE in found.files and not unsafe_pickle:
        raise UsageError(
            f"{path} holds a pickled regressor; loading a pickle runs whatever code is in it. If you trust where it "
            "comes from: ",
            Setting("unsafe_pickle", True),
        )
    try:
        ranker = _restored(KEPT[name], found)
        _try_out(ranker)
    except ConcordantError as error:
        raise type(error)(f"{path}: {str(error)[:1000]}") from None
    except Exception as error:  # the hashes hold, but whoever wrote them wrote something else than a model
        raise InputError(f"{path}: the model cannot be restored: {type(error).__name__}: {error}") from error
    ranker.origin_ = {"hash": found.sign, **{name: kept.get(name) for name in ORIGIN}}
    return ranker


def _now() -> str:
    """When a model is kept; SOURCE_DATE_EPOCH, in seconds, sets another time, so that two runs write equal bytes."""
    said = os.environ.get("SOURCE_DATE_EPOCH", "")
    when = datetime.fromtimestamp(int(said), UTC) if said.isdecimal() and len(said) < 12 else datetime.now(UTC)
    return when.isoformat(timespec="seconds")


def _restored(kind: type[Any], found: Contents) -> Any:
    """Return the ranker with its regressor."""
    prefix = "regressor-"
    own = {key: array for key, array in found.arrays.items() if not key.startswith(prefix)}
    ranker = kind.from_state(found.values["state"], own)
    held = found.values["regressor"]
    if held is None:
        return ranker
    if held["kind"] == "pickle":
        ranker.regressor_ = pickle.loads(found.files[PICKLE])
        return ranker
    columns = {key.removeprefix(prefix): array for key, array in found.arrays.items() if key.startswith(prefix)}
    ranker.regressor_ = restored_regressor(held["kind"], held["values"], columns, ranker.n_features_in_)
    return ranker


def _try_out(ranker: Any) -> None:
    """Score a row of zeros: parts of a model that do not fit together fail here, not in the middle of a table."""
    try:
        with np.errstate(all="ignore"):
            scores = np.asarray(ranker.predict(np.zeros((1, ranker.n_features_in_))), np.float64)
    except ConcordantError:  # a package that is not installed, or rankers that ask for the query: predict says so
        return
    if scores.shape != (1,) or np.isnan(scores).any():
        raise InputError("the model cannot be restored: it does not give a row a score")
