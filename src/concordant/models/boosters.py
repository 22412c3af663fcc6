"""LightGBM and XGBoost models as plain trees, read from the text of their packages; neither package is needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.errors import InputError, UsageError, few
from concordant.json_values import Fields, json_value
from concordant.models.trees import Trees, joined

__all__ = ["booster_text", "booster_trees"]

LIGHTGBM = (
    *("regression", "regression_l1", "huber", "fair", "quantile", "mape", "lambdarank", "rank_xendcg", "custom"),
)
XGBOOST = (
    *("reg:squarederror", "reg:linear", "reg:absoluteerror", "reg:pseudohubererror", "reg:quantileerror"),
    *("rank:pairwise", "rank:ndcg", "rank:map"),
)
"""Objectives whose predictions are the sum of the trees."""
PACKAGES = ("lightgbm", "xgboost")
CATEGORY, DEFAULT_LEFT = 1, 2
"""Bits of LightGBM's decision_type; the two above them say how values can be missing."""


def booster_text(regressor: Any) -> tuple[str, str] | None:
    """Return the package of a fitted regressor of LightGBM or XGBoost and the model in its text; None for others."""
    name = type(regressor).__module__.split(".")[0]
    if name == "lightgbm" and hasattr(regressor, "booster_"):
        return name, regressor.booster_.model_to_string()
    if name == "xgboost" and hasattr(regressor, "get_booster"):
        return name, bytes(regressor.get_booster().save_raw("json")).decode()
    return None


def booster_trees(package: str, text: str) -> Trees:
    """Return the trees of a model in the text of its package; their predictions have the same bits.

    Neither package sees the text: theirs end the process on a text that is not their own.

    Errors: UsageError for trees of a kind that others do not have; InputError for what cannot be read.
    """
    if package not in PACKAGES:
        raise InputError(f"the model names the package {package!r}; known are {few(PACKAGES)}")
    try:
        made = _lightgbm(text) if package == "lightgbm" else _xgboost(json_value(text, "the xgboost model"))
    except (InputError, UsageError):
        raise
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise InputError(f"the {package} model cannot be read: {type(error).__name__} {error}") from None
    made.check()
    return made


def _lightgbm(text: str) -> Trees:
    """Read the text format: a head, then one block for each tree (LightGBM, ``Tree::ToString``)."""
    head, *blocks = text.split("\nTree=")
    facts = _lines(head)
    objective = facts.get("objective", "custom").split() or [""]
    _refuse_unless(objective[0] in LIGHTGBM and "sqrt" not in objective, "lightgbm", f"objective {' '.join(objective)}")
    _refuse_unless(facts["num_tree_per_iteration"] == "1", "lightgbm", "several outputs")
    sizes = facts.get("tree_sizes", "").split()
    if len(sizes) != len(blocks):
        raise ValueError(f"it speaks of {len(sizes):,} trees and has {len(blocks):,}")
    parts = []
    for place, block in enumerate(blocks):
        number, _, rest = block.split("\n\n")[0].partition("\n")
        if number != str(place):
            raise ValueError(f"tree {number[:20]!r} stands in the place of {place:,}")
        tree = _lines(rest)
        _refuse_unless(tree["num_cat"] == "0", "lightgbm", "splits on categories")
        _refuse_unless(tree["is_linear"] == "0", "lightgbm", "linear models in its leaves")
        parts.append(_lightgbm_tree(tree))
    scale = 1.0 / max(len(parts), 1) if "average_output" in facts else 1.0
    return joined(parts, 0.0, scale, single=False)


def _lightgbm_tree(tree: Mapping[str, str]) -> dict[str, Any]:
    leaves = np.array(tree["leaf_value"].split(), np.float64)
    inner = len(leaves) - 1
    if int(tree["num_leaves"]) != len(leaves):
        raise ValueError(f"{tree['num_leaves'][:20]} leaves with {len(leaves):,} values")

    def column(name: str, kind: type) -> NDArray[Any]:
        found: NDArray[Any] = np.array(tree[name].split() if inner else [], kind)
        if len(found) != inner:
            raise ValueError(f"{name} has {len(found):,} entries for {inner:,} splits")
        return found

    kind = column("decision_type", np.int64)
    missing = (kind >> 2) & 3
    if ((kind < 0) | (kind > 15) | (missing == 3)).any():
        raise ValueError("a decision_type that it does not have")
    _refuse_unless(not (kind & CATEGORY).any(), "lightgbm", "splits on categories")
    _refuse_unless(not (missing == 1).any(), "lightgbm", "zero_as_missing")
    threshold = column("threshold", np.float64)
    default = np.where(missing == 2, (kind & DEFAULT_LEFT) > 0, threshold >= 0)  # else a missing value counts as 0
    none = np.full(len(leaves), -1)
    below = {side: column(f"{side}_child", np.int64) for side in ("left", "right")}
    if any(((to >= inner) | (to < -len(leaves))).any() for to in below.values()):
        raise ValueError("a child that is not there")
    return {
        "feature": np.concatenate((column("split_feature", np.int64), none)),
        "threshold": np.concatenate((threshold, np.zeros(len(leaves)))),
        **{side: np.concatenate((np.where(to < 0, inner + ~to, to), none)) for side, to in below.items()},
        "leaf": np.arange(inner + len(leaves)) >= inner,
        "missing_left": np.concatenate((default, none > 0)),
        "value": np.concatenate((np.zeros(inner), leaves)),
    }


def _xgboost(model: Any) -> Trees:
    """Read the JSON format (XGBoost, ``doc/model.schema``): x goes left when it is below the split, both float32."""
    learner = Fields(model, "the xgboost model").fields("learner")
    booster, objective = learner.fields("gradient_booster"), learner.fields("objective").text("name")
    _refuse_unless(booster.text("name") == "gbtree", "xgboost", f"booster {booster.text('name')}")
    _refuse_unless(objective in XGBOOST, "xgboost", f"objective {objective}")
    numbers = learner.fields("learner_model_param").values
    _refuse_unless(int(numbers.get("num_target", 1)) <= 1, "xgboost", "several outputs")
    base = np.ravel(np.array(json_value(str(numbers["base_score"]), "base_score"), np.float32))
    _refuse_unless(len(base) == 1, "xgboost", "several outputs")
    parts = []
    for given in booster.fields("model")["trees"]:
        tree = Fields(given, "a tree of the xgboost model")
        _refuse_unless(not any(tree["split_type"]), "xgboost", "splits on categories")
        left, right = (_children(tree[f"{side}_children"]) for side in ("left", "right"))
        cut = np.array(tree.numbers("split_conditions"), np.float32)
        columns = {
            "feature": np.array(tree.wholes("split_indices"), np.int64),
            "threshold": np.nextafter(cut, np.float32(-np.inf)).astype(np.float64),
            "left": left,
            "right": right,
            "leaf": left < 0,
            "missing_left": np.array([_bit(one) for one in tree["default_left"]], bool),
            "value": cut.astype(np.float64),
        }
        if len({len(column) for column in columns.values()}) != 1 or not len(cut):
            raise ValueError("columns of a tree differ in length")
        if ((left < 0) != (right < 0)).any() or any((side >= len(cut)).any() for side in (left, right)):
            raise ValueError("a child that is not there")
        parts.append(columns)
    return joined(parts, float(base[0]), 1.0, single=True, single_sum=True)


def _children(given: Any) -> NDArray[np.int64]:
    if not all(isinstance(one, int) and not isinstance(one, bool) for one in given):
        raise TypeError("a child that is no number of a node")
    return np.array(given, np.int64)


def _bit(given: Any) -> bool:
    if given not in (0, 1):
        raise ValueError(f"default_left {given!r}")
    return bool(given)


def _lines(text: str) -> dict[str, str]:
    """The lines ``name=value`` of a block; a line that is a name alone has no value. Errors (ValueError): one twice."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, _, value = line.partition("=")
        if name in found:
            raise ValueError(f"{name[:40]!r} stands there twice")
        if name:
            found[name] = value
    return found


def _refuse_unless(allowed: bool, package: str, what: str) -> None:
    if not allowed:
        raise UsageError(
            f"this {package} model has {what[:80]}, which plain trees cannot say; allowed are trees of numeric splits "
            "whose sum is the prediction"
        )
