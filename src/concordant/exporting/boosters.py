"""LightGBM and XGBoost models, kept as text, as plain trees; neither package is needed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from concordant.errors import InputError, UsageError
from concordant.models.regressors import TextBooster
from concordant.models.trees import Trees, joined

__all__ = ["booster_trees"]

LIGHTGBM = (
    *("regression", "regression_l1", "huber", "fair", "quantile", "mape", "lambdarank", "rank_xendcg", "custom"),
)
XGBOOST = (
    *("reg:squarederror", "reg:linear", "reg:absoluteerror", "reg:pseudohubererror", "reg:quantileerror"),
    *("rank:pairwise", "rank:ndcg", "rank:map"),
)
"""Objectives whose predictions are the sum of the trees."""
CATEGORY, DEFAULT_LEFT = 1, 2
"""Bits of LightGBM's decision_type; the two above them say how values can be missing."""


def booster_trees(booster: TextBooster) -> Trees:
    """Return the trees of a booster. Errors: UsageError for trees of a kind that others do not have; InputError."""
    try:
        return _lightgbm(booster.text) if booster.package == "lightgbm" else _xgboost(json.loads(booster.text))
    except (KeyError, IndexError, TypeError, ValueError) as error:
        if isinstance(error, InputError | UsageError):
            raise
        raise InputError(f"the {booster.package} model cannot be read: {type(error).__name__} {error}") from None


def _lightgbm(text: str) -> Trees:
    """Read the text format: a head, then one block for each tree (LightGBM, ``Tree::ToString``)."""
    head, *blocks = text.split("\nTree=")
    facts = _lines(head)
    objective = facts.get("objective", "custom").split()
    _refuse_unless(objective[0] in LIGHTGBM and "sqrt" not in objective, "lightgbm", f"objective {' '.join(objective)}")
    _refuse_unless(facts["num_tree_per_iteration"] == "1", "lightgbm", "several outputs")
    parts = []
    for block in blocks:
        tree = _lines(block.split("\n\n")[0])
        _refuse_unless(tree.get("num_cat", "0") == "0", "lightgbm", "splits on categories")
        _refuse_unless(tree.get("is_linear", "0") == "0", "lightgbm", "linear models in its leaves")
        parts.append(_lightgbm_tree(tree))
    scale = 1.0 / max(len(parts), 1) if "average_output" in facts else 1.0
    return joined(parts, 0.0, scale, single=False)


def _lightgbm_tree(tree: Mapping[str, str]) -> dict[str, Any]:
    leaves = np.array(tree["leaf_value"].split(), np.float64)
    inner = len(leaves) - 1
    kind = np.array(tree.get("decision_type", "").split(), np.int64)
    missing = (kind >> 2) & 3
    _refuse_unless(not (missing == 1).any(), "lightgbm", "zero_as_missing")
    threshold = np.array(tree.get("threshold", "").split(), np.float64)
    default = np.where(missing == 2, (kind & DEFAULT_LEFT) > 0, threshold >= 0)  # else a missing value counts as 0
    below = {side: np.array(tree.get(f"{side}_child", "").split(), np.int64) for side in ("left", "right")}
    none = np.full(len(leaves), -1)
    return {
        "feature": np.concatenate((np.array(tree.get("split_feature", "").split(), np.int64), none)),
        "threshold": np.concatenate((threshold, np.zeros(len(leaves)))),
        **{side: np.concatenate((np.where(to < 0, inner + ~to, to), none)) for side, to in below.items()},
        "leaf": np.arange(inner + len(leaves)) >= inner,
        "missing_left": np.concatenate((default, none > 0)),
        "value": np.concatenate((np.zeros(inner), leaves)),
    }


def _xgboost(model: Mapping[str, Any]) -> Trees:
    """Read the JSON format (XGBoost, ``doc/model.schema``): x goes left when it is below the split, both float32."""
    learner = model["learner"]
    booster, objective = learner["gradient_booster"], learner["objective"]["name"]
    _refuse_unless(booster["name"] == "gbtree", "xgboost", f"booster {booster['name']}")
    _refuse_unless(objective in XGBOOST, "xgboost", f"objective {objective}")
    numbers = learner["learner_model_param"]
    _refuse_unless(int(numbers.get("num_target", 1)) <= 1, "xgboost", "several outputs")
    base = np.ravel(json.loads(str(numbers["base_score"])))
    parts = []
    for tree in booster["model"]["trees"]:
        _refuse_unless(not any(tree["split_type"]), "xgboost", "splits on categories")
        left, right = (np.array(tree[f"{side}_children"], np.int64) for side in ("left", "right"))
        cut = np.array(tree["split_conditions"], np.float32)
        parts.append(
            {
                "feature": np.array(tree["split_indices"], np.int64),
                "threshold": np.nextafter(cut, np.float32(-np.inf)).astype(np.float64),
                "left": left,
                "right": right,
                "leaf": left < 0,
                "missing_left": np.array(tree["default_left"]) != 0,
                "value": cut.astype(np.float64),
            }
        )
    return joined(parts, float(np.float32(base[0])), 1.0, single=True)


def _lines(text: str) -> dict[str, str]:
    """The lines ``name=value`` of a block; a line that is a name alone has no value."""
    return {name: value for name, _, value in (line.partition("=") for line in text.splitlines()) if name}


def _refuse_unless(allowed: bool, package: str, what: str) -> None:
    if not allowed:
        raise UsageError(
            f"this {package} model has {what}, which no export here can say; allowed are trees of numeric splits whose "
            "sum is the prediction"
        )
