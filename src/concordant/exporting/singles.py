"""What search engines share: numbers in float32, names in a store, 0 where a feature has no value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.errors import UsageError, few
from concordant.exporting.terms import Terms
from concordant.models.trees import Trees

__all__ = ["Split", "built", "check_names", "check_terms", "cuts", "notes_of", "shifted", "single"]

Floats = NDArray[np.float64]
SINGLE = np.finfo(np.float32)
DEEPEST = 200
"""Levels of a tree beyond which neither JSON nor the engines' recursion is sure."""
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
            "that the features have there (--feature-names, names=…)"
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
            "other; fit with --not-informed (informed=False), or export to onnx or json"
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
