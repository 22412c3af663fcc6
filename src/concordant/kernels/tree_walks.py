"""Many rows going down many trees, row by row and tree by tree."""

from __future__ import annotations

import numpy as np

from concordant.kernels.compiled import compiled

TOGETHER = 256
"""Rows that go down one tree before the next one is begun."""


@compiled
def add_leaves(X, root, feature, threshold, left, right, missing_left, value, first, last, total):  # type: ignore[no-untyped-def]
    """Add to ``total`` of rows first … last − 1 the value of the leaf of each tree that they fall into.

    The twin is ``concordant.apps.models.regressors.Trees._leaves``; the trees are added in the same order.
    """
    for begin in range(first, last, TOGETHER):
        for tree in range(len(root)):
            for row in range(begin, min(last, begin + TOGETHER)):
                node = root[tree]
                while left[node] != node:
                    x = X[row, feature[node]]
                    goes_left = missing_left[node] if np.isnan(x) else x <= threshold[node]
                    node = left[node] if goes_left else right[node]
                total[row] += value[node]
