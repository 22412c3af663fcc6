"""What search engines share: numbers in float32, names in a store, 0 where a feature has no value.

The model JSON of the learning-to-rank plugin of Elasticsearch and OpenSearch (``_createmodel``).

Source: "Uploading A Trained Model" in the documentation of o19s/elasticsearch-learning-to-rank, and the parsers of that
plugin and of opensearch-project/opensearch-learning-to-rank-base, which agree on the model. Where trees send a feature
without a value the former heeds since 2024 (o19s, #482), the latter since 3.8 (#379).

The model JSON of Solr's module ltr (``PUT …/schema/model-store``).

Source: the chapter Learning To Rank of Solr's reference guide, and the classes it names: LinearModel,
MultipleAdditiveTreesModel, NeuralNetworkModel, StandardNormalizer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.apps.export.terms import Terms
from concordant.apps.models.regressors import Network, Trees
from concordant.errors import Setting, UsageError, few
from concordant.preferences.ragged import Ragged

Floats = NDArray[np.float64]
SINGLE = np.finfo(np.float32)
DEEPEST = 200
"""Levels of a tree beyond which neither JSON nor the engines' recursion is sure."""
WINDOW = 100
"""Documents that a search scores anew; whoever searches may take others, the same for both models."""
Split = Callable[[int, int, Any, Any], Any]
"""Inner node, its depth, what its left and its right child became ↦ what it becomes."""


def single(value: float) -> float:
    """Return a number as float32 has it, a zero without sign."""
    return float(np.float32(value)) + 0.0


def check_names(terms: Terms, engine: str, forbidden: str = "") -> None:
    """Refuse names of features that cannot stand in a store. Errors (UsageError)."""
    wrong = [
        name for name in terms.names if not name.strip() or not name.isprintable() or any(c in forbidden for c in name)
    ]
    if wrong:
        marks = f", with none of {' '.join(forbidden)} in them" if forbidden else ""
        raise UsageError(
            f"{engine} cannot name {few(wrong)}: names of features are printable and not blank{marks}; give the names "
            "that the features have there (",
            Setting("feature_names"),
            ")",
        )


def check_terms(terms: Terms, engine: str, *, networks: bool = False) -> None:
    """Refuse what an engine has no form for. Errors (UsageError), which say what is allowed."""
    allowed = f"{engine} takes a linear scorer, trees{', a network' if networks else ''}; onnx and json take more"
    if terms.foreign is not None:
        raise UsageError(f"{terms.ranker} is neither: {allowed}")
    if terms.network is not None and not networks:
        raise UsageError(f"{terms.ranker} is a network: {allowed}")
    if terms.weights is not None and (terms.trees is not None or terms.network is not None):
        raise UsageError(
            f"{terms.ranker} is a sum of a linear scorer and what a regressor adds to it, and {engine} has one or the "
            "other; elasticsearch and opensearch add up two models, onnx and json take it as one"
        )
    if terms.log and terms.trees is None:
        raise UsageError(
            f"{engine} takes no logarithm of a feature before a weight; let the feature be the logarithm there, "
            "sign(x)·log(1 + |x|), and fit on it as it is, or export to onnx or json"
        )
    numbers = [terms.mean, terms.scale, *([] if terms.weights is None else [terms.weights])]
    numbers += [] if terms.trees is None else [terms.trees.value]
    numbers += [] if terms.network is None else [*terms.network.weights, *terms.network.biases]
    large = max((float(np.abs(part).max(initial=0.0)) for part in numbers), default=0.0)
    if large > float(SINGLE.max) or float(terms.scale.min(initial=1.0)) < float(SINGLE.tiny):
        raise UsageError(f"{engine} reckons in float32, which has no room for some of the model's numbers")


def notes_of(terms: Terms, engine: str) -> Iterator[str]:
    """What a reader should know."""
    yield from terms.notes
    if terms.intercept and terms.trees is None and terms.network is None:
        lower = f"scores in {engine} are lower by {terms.intercept:.6g}"
        yield f"{lower}, which changes no order: its linear model has no constant"
    if terms.missing != "raise" and (terms.trees is None or engine == "Solr"):
        yield f"{engine} takes a feature without a value to be 0, whatever the model does with a missing one"
    elif terms.missing != "raise" and engine == "OpenSearch":
        yield "OpenSearch sends a feature without a value where the trees say from 3.8 on; before to the right, or as 0"


def shifted(terms: Terms) -> Iterator[tuple[str, float, float]]:
    """Name, mean and scale of the features that the normaliser changes; trees have it in their thresholds."""
    if terms.trees is None:
        for name, mean, scale in zip(terms.names, terms.mean, terms.scale, strict=True):
            if mean != 0 or scale != 1:
                yield name, single(mean), single(scale)


def cuts(trees: Trees) -> NDArray[np.float32]:
    """Return the largest float32 that goes left at each node: x ≤ cut says of a float32 what x ≤ threshold says."""
    with np.errstate(over="ignore"):
        cut = trees.threshold.astype(np.float32)
        cut = np.where(cut > trees.threshold, np.nextafter(cut, np.float32(-np.inf)), cut)
    return np.clip(cut, SINGLE.min, SINGLE.max)


def built(trees: Trees, leaf: Callable[[int], Any], split: Split) -> list[Any]:
    """Return each tree as nested values, from the leaves up. Errors (UsageError): trees too deep."""
    made: dict[int, Any] = {}
    for root in trees.root.tolist():
        waiting = [(int(root), 0)]
        order = []
        while waiting:
            node, depth = waiting.pop()
            if depth > DEEPEST:
                raise UsageError(f"a tree is more than {DEEPEST} levels deep; fit with a max_depth")
            order.append((node, depth))
            left, right = int(trees.left[node]), int(trees.right[node])
            if left != node:
                waiting += [(left, depth + 1), (right, depth + 1)]
        for node, depth in reversed(order):
            left, right = int(trees.left[node]), int(trees.right[node])
            made[node] = leaf(node) if left == node else split(node, depth, made[left], made[right])
    return [made[int(root)] for root in trees.root]


def elasticsearch_json(terms: Terms, name: str, engine: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the body of ``POST _ltr/_featureset/SET/_createmodel`` and what a reader should know.

    ``model/linear`` with ``feature_normalizers``, or ``model/xgboost+json`` with the normaliser in the thresholds; of a
    sum of both the two bodies as ``models``, and as ``rescore`` what a search adds them up by. Errors (UsageError):
    what the plugin has no form for.
    """
    if terms.weights is not None and terms.trees is not None and terms.network is None:
        if terms.absent:
            raise UsageError(
                f"{terms.ranker} learned from missing values, which {engine} takes to be 0 in a linear model and "
                "not in trees; fit with ",
                Setting("missing", "zero"),
                " or export to onnx or json",
            )
        parts = {f"{name}-linear": replace(terms, trees=None), f"{name}-trees": replace(terms, weights=None)}
        made = [elasticsearch_json(part, called, engine) for called, part in parts.items()]
        add = (
            "two models: post each of them; the rescore of the file adds their scores up where from + size of a search "
            "is at most its window_size"
        )
        bodies, said = [body for body, _ in made], [note for _, notes in made for note in notes]
        return {"models": bodies, "rescore": [_rescore(*one) for one in zip(parts, (0, 1))]}, (
            *dict.fromkeys(said),
            add,
        )
    check_names(terms, engine)
    check_terms(terms, engine)
    inner: dict[str, Any]
    if terms.trees is not None:
        inner = {
            "type": "model/xgboost+json",
            "definition": json.dumps(_splits(terms, terms.trees), ensure_ascii=False),
        }
    else:
        assert terms.weights is not None
        weights = dict(zip(terms.names, map(single, terms.weights), strict=True))
        normalizers = {
            feature: {"standard": {"mean": mean, "standard_deviation": scale}}
            for feature, mean, scale in shifted(terms)
        }
        inner = {"type": "model/linear", **({"feature_normalizers": normalizers} if normalizers else {})}
        inner["definition"] = json.dumps(weights, ensure_ascii=False)
    return {"model": {"name": name, "model": inner}}, tuple(notes_of(terms, engine))


def _rescore(model: str, before: int) -> dict[str, Any]:
    """Add a model's score to what there was, so many times; every document of the window has one."""
    query = {"sltr": {"model": model, "params": {}}}
    return {
        "window_size": WINDOW,
        "query": {"rescore_query": query, "query_weight": before, "rescore_query_weight": 1, "score_mode": "total"},
    }


def _splits(terms: Terms, trees: Trees) -> list[Any]:
    """XGBoost's dump: left ("yes") when x is below the split condition; leaves are added up."""
    with np.errstate(over="ignore"):
        below = np.minimum(np.nextafter(cuts(trees), np.float32(np.inf)), np.finfo(np.float32).max)
    absent = trees.threshold >= 0 if terms.missing == "raise" else trees.missing_left

    number = Ragged(np.append(trees.root, len(trees.left))).place

    def leaf(node: int) -> dict[str, Any]:
        return {"nodeid": int(number[node]), "leaf": single(trees.value[node])}

    def split(node: int, depth: int, yes: dict[str, Any], no: dict[str, Any]) -> dict[str, Any]:
        return {
            "nodeid": int(number[node]),
            "depth": depth,
            "split": terms.names[trees.feature[node]],
            "split_condition": float(below[node]),
            "yes": yes["nodeid"],
            "no": no["nodeid"],
            "missing": yes["nodeid"] if absent[node] else no["nodeid"],
            "children": [yes, no],
        }

    found = built(trees, leaf, split)
    base = single(trees.base)
    return [*found, {"nodeid": 0, "leaf": base}] if base or not found else found


ENGINE_SOLR = "Solr"
MODEL, NORM = "org.apache.solr.ltr.model", "org.apache.solr.ltr.norm"
SLACK = np.float32(1e-6)
"""What MultipleAdditiveTreesModel adds to every threshold."""
ACTIVATIONS = {"identity": "identity", "relu": "relu", "tanh": "tanh", "logistic": "sigmoid"}


def solr_json(terms: Terms, name: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the body of the model and what a reader should know.

    Linear scorers and networks have a StandardNormalizer for each feature, trees have it in their thresholds. Errors
    (UsageError): what Solr has no form for.
    """
    check_names(terms, ENGINE_SOLR, ",=")
    check_terms(terms, ENGINE_SOLR, networks=True)
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
        "store": "_DEFAULT_",
        "features": [{"name": one, **({"norm": norms[one]} if one in norms else {})} for one in terms.names],
        "params": params,
    }
    return model, tuple(notes_of(terms, ENGINE_SOLR))


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
