"""Write a fitted ranker in a format that others read: ONNX, Elasticsearch, OpenSearch, Solr, plain JSON."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import concordant
from concordant.apps.export.search_engines import elasticsearch_json, solr_json
from concordant.apps.export.terms import Terms, terms_of
from concordant.apps.models.directory import is_model
from concordant.apps.models.regressors import Network, Trees
from concordant.apps.models.saving import load_model
from concordant.errors import Unavailable, UsageError, did_you_mean
from concordant.io.log.disk import check_replaced, in_place_of

FORMATS = ("onnx", "elasticsearch", "opensearch", "solr", "json")
PLUGINS = {"elasticsearch": "Elasticsearch", "opensearch": "OpenSearch"}
"""Engines whose learning-to-rank plugins read one and the same model."""


@dataclass(frozen=True)
class Exported:
    """What was written: where, in which format, and what a reader should know."""

    path: Path
    format: str
    size: int
    """Bytes."""
    notes: tuple[str, ...]


def export_model(
    ranker: Any,
    path: str | os.PathLike[str],
    *,
    to: str,
    name: str | None = None,
    feature_names: Any = None,
    query: Any = None,
    unsafe_pickle: bool = False,
) -> Exported:
    """Write a fitted ranker, or the model in a directory, for other software, its normaliser included.

    Parameters
    ----------
    ranker : a fitted ranker, or the directory of a model.
    path : the file; what was there is replaced, whole or not at all.
    to : 'onnx' (input ``features`` (rows, features) float64, output ``scores`` (rows,)), 'elasticsearch',
        'opensearch', 'solr' or 'json'; docs/export.md describes each.
    name : of the model; None, the file's without its ending.
    feature_names : what the features are called there, in the order of the model's; None, its own names.
    query : which of the scorers of ``QueryRankers``.
    unsafe_pickle : whether a model that holds a pickle is loaded.

    ONNX and JSON score as ``predict`` does on float64 features, beside rounding (1e-15, XGBoost 1e-7, which adds up its
    trees in float32); search engines compute in float32. Errors: NotFittedError; UsageError for a scorer that the
    format has no form for, a place that cannot be written, ONNX without the extra; InputError for a directory that
    holds no model.

    >>> import json, tempfile
    >>> from concordant.learning.rankers.lists import ListRanker
    >>> rows = ([[0.0], [1.0], [2.0], [3.0], [0.0], [1.0]], list("ppppqq"), list(range(6)))
    >>> ranker = ListRanker().fit(rows, [0, 1, 2, 3, 0, 1])
    >>> folder = tempfile.TemporaryDirectory()
    >>> made = export_model(ranker, f"{folder.name}/scorer.json", to="json", feature_names=["length"])
    >>> scorer = json.loads(made.path.read_text())
    >>> scorer["features"], scorer["weights"] == ranker.coef_standardised_.tolist()
    (['length'], True)
    >>> folder.cleanup()
    """
    if to not in FORMATS:
        raise UsageError(f"unknown format {to!r}; {did_you_mean(str(to), FORMATS)}")
    place = check_place(path)
    terms = terms_of(loaded(ranker, unsafe_pickle=unsafe_pickle), query=query, names=feature_names)
    data, notes = exported(terms, to, place.stem if name is None else name)
    with in_place_of(place) as temporary:
        temporary.write_bytes(data)
    return Exported(place, to, len(data), notes)


def loaded(ranker: Any, *, unsafe_pickle: bool = False) -> Any:
    """Return the ranker, or the one of a directory."""
    if isinstance(ranker, str | os.PathLike):
        return load_model(ranker, unsafe_pickle=unsafe_pickle)
    return ranker


def exported(terms: Terms, to: str, name: str) -> tuple[bytes, tuple[str, ...]]:
    """Return the file of a format and what a reader should know. Errors (UsageError)."""
    if not name.strip() or not name.isprintable():
        raise UsageError(f"the name of the model must be printable and not blank, not {name!r}")
    if to == "onnx":
        from concordant.apps.export.onnx import onnx_bytes

        return onnx_bytes(terms, name), terms.notes
    notes = terms.notes
    if to in PLUGINS:
        made, notes = elasticsearch_json(terms, name, PLUGINS[to])
    elif to == "solr":
        made, notes = solr_json(terms, name)
    else:
        made = plain_json(terms, name)
    indent = 1 if terms.trees is None and terms.network is None else None
    return (json.dumps(made, ensure_ascii=False, allow_nan=False, indent=indent) + "\n").encode(), notes


def check_place(path: str | os.PathLike[str], option: str = "--output") -> Path:
    """Return the file that is to be written. Errors (UsageError): a folder, in one that is not there, in a model."""
    place = Path(path)
    if place.is_dir():
        raise UsageError(f"{option} {path} is a directory; name a file")
    check_replaced(place, option)
    folder = place.resolve().parent
    if not folder.is_dir():
        raise UsageError(f"{option} {path}: the folder {place.parent} does not exist")
    if is_model(folder):
        raise UsageError(f"{option} {path} lies in a model, which holds its own files only; name another folder")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise Unavailable(f"{option} {path}: no permission to write in the folder {place.parent}")
    return place


FORMAT, VERSION = "concordant scorer", 1


def plain_json(terms: Terms, name: str) -> dict[str, Any]:
    """Return all that a score is made of (docs/export.md), float64 to the bit. Errors (UsageError): no plain form."""
    if terms.foreign is not None:
        raise UsageError(
            f"{terms.ranker} has no plain form; json takes linear models, networks and trees of scikit-learn, LightGBM "
            "and XGBoost, onnx whatever skl2onnx has a converter for"
        )
    made: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "name": name,
        "concordant": concordant.__version__,
        "ranker": terms.ranker,
        "features": list(terms.names),
        "missing": terms.missing,
        "log": terms.log,
        "fill": terms.fill.tolist(),
        "mean": terms.mean.tolist(),
        "scale": terms.scale.tolist(),
        "intercept": terms.intercept,
    }
    if terms.weights is not None:
        made["weights"] = terms.weights.tolist()
    if terms.trees is not None:
        made["intercept"] += terms.trees.base
        made["trees"] = _trees(terms.trees)
    if terms.network is not None:
        made["network"] = _network(terms.network)
    return made


def _trees(trees: Trees) -> list[dict[str, Any]]:
    """Columns of each tree, its root first; a leaf has no children (-1)."""
    ends = [*trees.root[1:].tolist(), len(trees.left)]
    made = []
    for begin, end in zip(trees.root.tolist(), ends, strict=True):
        part = slice(begin, end)
        leaf = trees.left[part] == np.arange(begin, end)
        made.append(
            {
                "feature": trees.feature[part].tolist(),
                "threshold": trees.threshold[part].tolist(),
                "left": np.where(leaf, -1, trees.left[part] - begin).tolist(),
                "right": np.where(leaf, -1, trees.right[part] - begin).tolist(),
                "missing_left": trees.missing_left[part].tolist(),
                "value": trees.value[part].tolist(),
            }
        )
    return made


def _network(network: Network) -> dict[str, Any]:
    """Weights have a row for each unit of the layer."""
    layers = [
        {"weights": weight.T.tolist(), "bias": np.ravel(bias).tolist()}
        for weight, bias in zip(network.weights, network.biases, strict=True)
    ]
    return {"activation": network.activation, "layers": layers}
