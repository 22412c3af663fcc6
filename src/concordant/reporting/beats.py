"""Who beats whom: the judged pairs of each view."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.reporting.values import fair
from concordant.reporting.views import View

__all__ = ["beats_of", "nearest_top"]

Ints = NDArray[np.int64]
PAIRS = 40_000
"""Pairs of all views at most."""


def beats_of(views: list[View]) -> list[dict[str, Any]]:
    """Return for each view the pairs that were judged: better and worse item, wins of either, ties.

    Wins are sums of strengths (their number where none has a weight). Where there are too many, the pairs of the items
    that rank highest are shown.
    """
    sizes = [int(np.diff(view.stage.batch.graphs.pair_start)[view.query]) for view in views]
    return [_beats(view, most) for view, most in zip(views, fair(sizes, PAIRS), strict=True)]


def _beats(view: View, most: int) -> dict[str, Any]:
    stage = view.stage
    graphs, place, outer = stage.batch.graphs, stage.place, stage.outer
    pairs = np.arange(graphs.pair_start[view.query], graphs.pair_start[view.query + 1])
    first, second = graphs.first[pairs], graphs.second[pairs]
    chosen = nearest_top(place[first], place[second])[:most]
    pairs, first, second = pairs[chosen], first[chosen], second[chosen]
    swap = place[first] > place[second]
    better, worse = np.where(swap, second, first), np.where(swap, first, second)
    wins, losses = graphs.wins[pairs], graphs.losses[pairs]
    columns = (
        outer[better], outer[worse], np.where(swap, losses, wins), np.where(swap, wins, losses), graphs.ties[pairs]
    )  # fmt: skip
    rows = [list(row) for row in zip(*(column.tolist() for column in columns), strict=True)]
    return {"pairs": rows, "left_out": int(graphs.pair_start[view.query + 1] - graphs.pair_start[view.query]) - most}


def nearest_top(one: Ints, other: Ints) -> Ints:
    """Order pairs of places so that those of the first m items come before all others, for every m."""
    return np.lexsort((np.minimum(one, other), np.maximum(one, other)))
