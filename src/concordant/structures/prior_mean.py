"""The means of a normal prior on Bradley–Terry scores: which node has which, and what they make of a graph."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from concordant.connectivity import Connectivity
from concordant.errors import UsageError, counted
from concordant.graphs import Batch, Graphs
from concordant.listing import take_lists

__all__ = ["farthest", "held_together", "prior_mean"]

Floats = NDArray[np.float64]


def prior_mean(batch: Batch, mean: ArrayLike | None, prior: float) -> Floats | None:
    """Return the prior's mean at each node of the batch, None for zeros."""
    if mean is None:
        return None
    if prior == 0:
        raise UsageError("a mean belongs to a prior: give its precision as a positive number (prior=1, for instance)")
    member_start, _ = batch.prefs.members
    try:
        values = np.asarray(mean, np.float64)
    except (TypeError, ValueError):
        raise UsageError(f"the prior's mean must be an array of numbers, not {mean!r}"[:160]) from None
    if values.shape != (int(member_start[-1]),):
        raise UsageError(
            f"the prior's mean has shape {values.shape}; it must have one number for each item of each query: "
            f"{int(member_start[-1]):,} in {counted(len(batch.prefs.queries), 'queries')}"
        )
    if not np.isfinite(values).all():
        raise UsageError(f"{int((~np.isfinite(values)).sum()):,} of {len(values):,} prior means are not finite")
    return np.asarray(values[take_lists(member_start, batch.query)[1]], np.float64)


def held_together(graphs: Graphs) -> Connectivity:
    """A prior with means says where every item stands: one component, and nothing is without limit."""
    none, never = np.zeros(graphs.nodes, np.int32), np.zeros(graphs.nodes, bool)
    return Connectivity(none, graphs.owner.astype(np.int32), ~never, never, never)


def farthest(graphs: Graphs, mean: Floats) -> Floats:
    """Largest prior mean of each graph, in size."""
    most = np.zeros(len(graphs))
    np.maximum.at(most, graphs.owner, np.abs(mean))
    return most
