"""Our own JSON: all that a score is made of, for a page of code in any language. ``docs/export.md`` describes it."""

from __future__ import annotations

from typing import Any

import numpy as np

import concordant
from concordant.apps.export.terms import Terms
from concordant.apps.models.regressors import Network, Trees
from concordant.errors import UsageError

FORMAT, VERSION = "concordant scorer", 1


def plain_json(terms: Terms, name: str) -> dict[str, Any]:
    """Return the scorer as nested values; numbers are float64 to the bit. Errors (UsageError): no plain form."""
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
