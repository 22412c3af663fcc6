"""Which zero the scores have: differences are what the data determine, so each component of a graph sums to zero."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from concordant.connectivity import connectivity
from concordant.graphs import Graphs
from concordant.structures.scores import CLOSED_FORM, Scores

__all__ = ["centre", "closed_form", "incomplete", "numbered"]

Floats = NDArray[np.float64]


def numbered(owner: NDArray[np.int64], component: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return a number for each node's component that differs between graphs."""
    most = int(component.max(initial=0)) + 1
    return np.asarray(np.unique(owner * most + component, return_inverse=True)[1], np.int64)


def centre(values: Floats, group: NDArray[np.int64]) -> Floats:
    """Subtract from each value the mean of its group (groups numbered from 0)."""
    mean = np.bincount(group, values) / np.bincount(group) if len(group) else np.zeros(0)
    return np.asarray(values - mean[group])


def closed_form(graphs: Graphs, value: Floats, options: dict[str, Any], notes: tuple[str, ...] = ()) -> Scores:
    """Wrap scores that a formula gave, with the components of the comparison graphs, found when somebody asks."""
    return Scores(
        value=value,
        component=cast(Any, lambda: connectivity(graphs).component),
        status=np.full(len(graphs), CLOSED_FORM, np.int8),
        iterations=np.zeros(len(graphs), np.int64),
        gradient=np.zeros(len(graphs)),
        notes=notes,
        options=options,
    )


def incomplete(graphs: Graphs) -> NDArray[np.bool_]:
    """Return for each graph whether some pair of its items was never judged."""
    size = np.diff(graphs.node_start)
    return np.asarray(np.diff(graphs.pair_start) < size * (size - 1) // 2, bool)
