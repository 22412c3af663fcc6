"""The model JSON of Solr's module ltr (``PUT …/schema/model-store``).

Source: the chapter Learning To Rank of Solr's reference guide, and the classes it names: LinearModel,
MultipleAdditiveTreesModel, NeuralNetworkModel, StandardNormalizer.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.exporting.singles import built, check_names, check_terms, cuts, notes_of, shifted, single
from concordant.exporting.terms import Terms
from concordant.models.regressors import Network
from concordant.models.trees import Trees

__all__ = ["solr_json"]

ENGINE = "Solr"
MODEL, NORM = "org.apache.solr.ltr.model", "org.apache.solr.ltr.norm"
SLACK = np.float32(1e-6)
"""What MultipleAdditiveTreesModel adds to every threshold."""
ACTIVATIONS = {"identity": "identity", "relu": "relu", "tanh": "tanh", "logistic": "sigmoid"}


def solr_json(terms: Terms, name: str, store: str = "_DEFAULT_") -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the body of the model and what a reader should know.

    Linear scorers and networks have a StandardNormalizer for each feature, trees have it in their thresholds. Errors
    (UsageError): what Solr has no form for.
    """
    check_names(terms, ENGINE, ",=")
    check_terms(terms, ENGINE, networks=True)
    norms = {
        feature: {"class": f"{NORM}.StandardNormalizer", "params": {"avg": repr(mean), "std": repr(scale)}}
        for feature, mean, scale in shifted(terms)
    }
    params: dict[str, Any]
    if terms.trees is not None:
        kind, params = "MultipleAdditiveTreesModel", {"trees": _trees(terms, terms.trees)}
    elif terms.network is not None:
        kind, params = "NeuralNetworkModel", {"layers": _layers(terms.network)}
    else:
        assert terms.weights is not None
        kind, params = "LinearModel", {"weights": dict(zip(terms.names, map(single, terms.weights), strict=True))}
    model = {
        "class": f"{MODEL}.{kind}",
        "name": name,
        "store": store,
        "features": [{"name": one, **({"norm": norms[one]} if one in norms else {})} for one in terms.names],
        "params": params,
    }
    return model, tuple(notes_of(terms, ENGINE))


def _trees(terms: Terms, trees: Trees) -> list[Any]:
    """Left when x ≤ threshold + 1e-6, all float32; values of leaves times the tree's weight are added up."""
    threshold = _less_slack(cuts(trees))

    def leaf(node: int) -> dict[str, Any]:
        return {"value": repr(single(trees.value[node]))}

    def split(node: int, _: int, left: Any, right: Any) -> dict[str, Any]:
        feature = terms.names[trees.feature[node]]
        return {"feature": feature, "threshold": repr(float(threshold[node])), "left": left, "right": right}

    found = [{"weight": "1", "root": root} for root in built(trees, leaf, split)]
    base = single(trees.base)
    return [*found, {"weight": "1", "root": {"value": repr(base)}}] if base or not found else found


def _less_slack(cut: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the float32 that comes nearest to the cut once the slack is on top; for most that is the cut itself."""
    best = cut - SLACK
    largest = np.finfo(np.float32).max
    for _ in range(2):
        for towards in (-largest, largest):
            near = np.nextafter(best, towards)
            better = np.abs((near + SLACK).astype(np.float64) - cut) < np.abs((best + SLACK).astype(np.float64) - cut)
            best = np.where(better, near, best)
    return best


def _layers(network: Network) -> list[Any]:
    """Matrices with a row for each unit; Solr reads entries as Double, so none may look like an integer."""
    last = len(network.weights) - 1
    return [
        {
            "matrix": [[single(value) for value in row] for row in weight.T],
            "bias": [single(value) for value in np.ravel(bias)],
            "activation": ACTIVATIONS["identity" if place == last else network.activation],
        }
        for place, (weight, bias) in enumerate(zip(network.weights, network.biases, strict=True))
    ]
