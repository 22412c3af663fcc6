"""Splits on categories as splits on numbers: runs of codes are cut off one after another, as plain trees can say."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.errors import UsageError

MOST_NODES = 1 << 16
"""Nodes of a tree once its sets of codes are runs."""
NONE, BEYOND = -1.0, float("inf")


def sets_of(tree: Mapping[str, str], place: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return the codes that go left at each split on categories of LightGBM's text, of which ``place`` are the sets."""
    bounds = np.array(tree["cat_boundaries"].split(), np.int64)
    words = np.array(tree["cat_threshold"].split(), np.uint32)
    if len(bounds) != int(tree["num_cat"]) + 1 or (np.diff(bounds, prepend=0, append=len(words)) < 0).any():
        raise ValueError(f"{len(bounds):,} bounds of {tree['num_cat'][:20]} sets of categories")
    bits = [np.unpackbits(words[a:b].astype("<u4").view(np.uint8), bitorder="little") for a, b in pairwise(bounds)]
    return [np.flatnonzero(bits[one]) for one in place.tolist()]


def on_numbers(tree: Mapping[str, NDArray[Any]], sets: Mapping[int, NDArray[np.int64]]) -> dict[str, NDArray[Any]]:
    """Return a tree (columns as ``joined`` takes them) whose nodes in ``sets`` are splits on numbers too.

    LightGBM sends the codes of the set to the left, and all else, missing ones too, to the right; a number has the code
    of its whole part. A run of codes is a ≤ x < b; below, codes that the path excludes are not asked for again, so
    each code takes one path. Errors (UsageError): more than ``MOST_NODES`` nodes.

    >>> leaf = {"leaf": np.array([False, True, True]), "missing_left": np.zeros(3, bool)}
    >>> stump = {"feature": np.zeros(3, int), "threshold": np.zeros(3), "value": np.array([0.0, 5.0, 7.0]), **leaf}
    >>> made = on_numbers(stump | {"left": np.array([1, -1, -1]), "right": np.array([2, -1, -1])}, {0: np.array([2])})
    >>> made["threshold"].round(3).tolist(), made["value"].tolist()
    ([3.0, 2.0, 0.0, 0.0, 0.0], [0.0, 0.0, 7.0, 5.0, 7.0])
    """
    made: dict[str, list[Any]] = {name: [] for name in tree}
    edges = {node: _edges(codes) for node, codes in sets.items()}
    waiting: list[tuple[int, dict[int, tuple[float, float]], str, int]] = [(0, {}, "", 0)]
    while waiting:
        node, known, side, parent = waiting.pop()
        own = len(made["leaf"])
        if own >= MOST_NODES:
            raise UsageError(f"a tree splits on more categories than {MOST_NODES:,} splits on numbers can say")
        if side:
            made[side][parent] = own
        feature = int(tree["feature"][node])
        low, high = known.get(feature, (NONE, BEYOND))
        inside = [one for one in edges.get(node, ()) if low < one < high]
        if node in edges and not inside:  # all codes that come here go one way
            after = sum(one <= low for one in edges[node])
            waiting.append((int(tree["left" if after % 2 else "right"][node]), known, side, parent))
            continue
        for name in made:
            made[name].append(tree[name][node])
        if node in edges:
            edge = inside[len(inside) // 2]
            made["threshold"][own] = np.nextafter(edge, -np.inf) if edge else NONE
            made["missing_left"][own] = True
            waiting.append((node, known | {feature: (edge, high)}, "right", own))
            waiting.append((node, known | {feature: (low, edge)}, "left", own))
        elif not tree["leaf"][node]:
            waiting.append((int(tree["right"][node]), known, "right", own))
            waiting.append((int(tree["left"][node]), known, "left", own))
    return {name: np.array(column, tree[name].dtype) for name, column in made.items()}


def _edges(codes: NDArray[np.int64]) -> list[float]:
    """Where runs of codes begin and end: codes with an odd number of edges at or below them are in the set."""
    begins = codes[np.diff(codes, prepend=-2) > 1]
    ends = codes[np.diff(codes, append=np.iinfo(np.int64).max) > 1] + 1
    return np.column_stack((begins, ends)).ravel().astype(np.float64).tolist()
