"""The model JSON of the learning-to-rank plugin of Elasticsearch and OpenSearch (``_createmodel``).

Source: "Uploading A Trained Model" in the documentation of o19s/elasticsearch-learning-to-rank, and the parsers of that
plugin and of opensearch-project/opensearch-learning-to-rank-base, which agree.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from concordant.exporting.singles import built, check_names, check_terms, cuts, notes_of, shifted, single
from concordant.exporting.terms import Terms
from concordant.models.trees import Trees

__all__ = ["elasticsearch_json"]

ENGINE = "Elasticsearch"


def elasticsearch_json(terms: Terms, name: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the body of ``POST _ltr/_featureset/SET/_createmodel`` and what a reader should know.

    ``model/linear`` with ``feature_normalizers``, or ``model/xgboost+json`` with the normaliser in the thresholds.
    Errors (UsageError): what the plugin has no form for.
    """
    check_names(terms, ENGINE)
    check_terms(terms, ENGINE)
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
    return {"model": {"name": name, "model": inner}}, tuple(notes_of(terms, ENGINE))


def _splits(terms: Terms, trees: Trees) -> list[Any]:
    """XGBoost's dump: left ("yes") when x is below the split condition; leaves are added up."""
    with np.errstate(over="ignore"):
        below = np.minimum(np.nextafter(cuts(trees), np.float32(np.inf)), np.finfo(np.float32).max)
    absent = trees.threshold >= 0 if terms.missing == "raise" else trees.missing_left

    number = np.arange(len(trees.left)) - np.repeat(trees.root, np.diff([*trees.root, len(trees.left)]))

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
