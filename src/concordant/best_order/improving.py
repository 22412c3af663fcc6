"""An order from elsewhere takes the place of a searched one that it beats."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from concordant.best_order.orders import MET_BOUND, BestOrders
from concordant.graphs import Graphs

__all__ = ["improved"]

BETTER = 1e-9
"""Share of a graph's weight by which an order must lose less to be called better."""


def improved(best: BestOrders, mean: Graphs, scores: NDArray[np.float64]) -> tuple[BestOrders, NDArray[np.bool_]]:
    """Return the best orders, those of the scores (highest first) where they lose less, and which those are.

    Ties of the scores are broken by the order at hand. The bound and the method stay those of the search; an order
    that meets the bound is best. Shapes: ``scores`` (nodes,), NaN where a graph has none; the flags (graphs,).
    """
    order = np.lexsort((best.place, -scores, mean.owner))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order)) - mean.node_start[mean.owner[order]]
    charged = np.where(place[mean.first] < place[mean.second], mean.below, mean.above)
    loss, total = (np.bincount(mean.graph, value, len(mean)) for value in (charged, mean.above + mean.below))
    better = ~best.exact & (loss < best.loss - BETTER * total)
    if not better.any():
        return best, better
    met = better & (loss - best.lower <= MET_BOUND * total)
    return replace(
        best,
        place=np.where(better[mean.owner], place, best.place),
        loss=np.where(better, loss, best.loss),
        lower=np.where(met, loss, best.lower),
        exact=best.exact | met,
    ), better
