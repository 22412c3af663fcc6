"""Near pairs where few coordinates tell most points apart: cells of equal size, swept along one coordinate."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from concordant.abstention.parts import Counts, summed
from concordant.abstention.points import Near, Points, sampled_differences

__all__ = ["count_in_cells", "shares_within"]

RUN = 64
"""Points of one cell that are within reach along the line that cells are swept on: enough to compare side by side."""
PARTS = 32
AXES = 3
"""Coordinates that cells are cut along at most."""
SAMPLE = 4096

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def shares_within(X: Floats, gamma: float) -> tuple[Ints, Floats]:
    """Return the coordinates, those that tell most pairs apart first, and the share of pairs within gamma on each.

    Shares are those of a sample of pairs, the same in each call.
    """
    share = (sampled_differences(X, SAMPLE) <= gamma).mean(axis=0)
    order = np.argsort(share, kind="stable")
    return order, share[order]


def count_in_cells(points: Points, near: Near) -> Counts:
    """Count near pairs and mistakes within each limit.

    Cells are cut by quantiles of the coordinates that tell most pairs apart. Two cells are compared only if their
    boxes are within reach, a point only with those of the other cell within what reach is left along the line.
    """
    from concordant.kernels.near_columns import near_in_cells

    reach = float(near.gammas[-1])
    order, share = shares_within(points.X, reach)
    axis = int(order[0])
    sorted_by, start = _cells(points.X, _cuts(order, share, len(points.X)), axis)
    X = np.ascontiguousarray(points.X[sorted_by].T)
    label, score = points.label[sorted_by], points.score[sorted_by]
    low = np.ascontiguousarray(np.minimum.reduceat(X, start[:-1], axis=1).T)
    high = np.ascontiguousarray(np.maximum.reduceat(X, start[:-1], axis=1).T)

    def count(first: int, last: int, found: Ints, wrong: Ints) -> None:
        near_in_cells(X, axis, label, score, start, low, high, near.power, reach, near.limits, first, last, found,
                      wrong)  # fmt: skip

    cells = len(start) - 1
    return summed(count, np.unique(np.linspace(0, cells, min(cells, PARTS) + 1).astype(int)).tolist(), len(near.limits))


def _cuts(order: Ints, share: Floats, n: int) -> list[tuple[int, int]]:
    """Coordinates to cut along and in how many pieces: the first is swept, and cut only if there is work to share."""
    cells = max(1, min(n * float(share[0]) / RUN, 4096, n / 8))
    others = order[1 : 1 + AXES][share[1 : 1 + AXES] < 0.9]
    pieces = round(cells ** (1 / max(len(others), 1))) if len(others) else 1
    cuts = [(int(axis), pieces) for axis in others] if pieces > 1 else []
    made = pieces ** len(cuts)
    return cuts if made >= PARTS or n < 8 * PARTS else [*cuts, (int(order[0]), -(-PARTS // made))]


def _cells(X: Floats, cuts: list[tuple[int, int]], axis: int) -> tuple[Ints, Ints]:
    """Return the points cell by cell, sorted along the axis within each, and the cells' offsets."""
    n, cells = len(X), 1
    cell = np.zeros(n, np.int64)
    for along, pieces in cuts:
        cells *= pieces
        cell[np.lexsort((X[:, along], cell))] = np.arange(n) * cells // n
    order = np.lexsort((X[:, axis], cell))
    return order, np.searchsorted(cell[order], np.arange(cells + 1))
