"""Score maps r(s): scores of structures that are lists or graphs (AoS, end of §3.3), for losses of scores.

Where the structure is an order of the items, or who beats whom among them, its values are finitely many, so that a
surrogate that is consistent for NDCG or ERR of r(s) is uniformly so (AoS Theorem 1, Assumption C). A map is used in the
place of a structure's name: it takes a batch and returns its scores.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.errors import UsageError, did_you_mean, whole_number
from concordant.preferences.connectivity import Differences
from concordant.preferences.graphs import Batch
from concordant.preferences.ragged import Ragged
from concordant.ranking.adjacency import mean_adjacency
from concordant.ranking.scores import Scores, closed_form
from concordant.ranking.structures import structure

Floats = NDArray[np.float64]
OfBatch = Callable[[Batch], Scores]
OF_LISTS, OF_GRAPHS = ("places", "reciprocal", "top"), ("wins", "reach", "net")
CELLS = 1 << 22
"""Entries of tables that are held at a time."""


def scores_of_lists(
    values: str | Callable[[Floats], Floats] = "places",
    *,
    order: str = "kemeny",
    top: int | None = None,
    **options: Any,
) -> OfBatch:
    """Map lists to scores: r(s)_i is a value of the place p that item i has in the order s, p from 1 to m.

    'places' m − p; 'reciprocal' 1/p; 'top' 1 where p ≤ ``top``, else 0; or a function of the places of one list, (m,),
    to values (m,). ``order`` names the structure whose order is the list, with its ``options``: 'kemeny' is the list
    that contradicts the fewest judgments, one judge's own list where k = 1 and judges give lists. Items that share
    places stand at their middle (and are in the top where that is).

    Errors: UsageError for unknown names, 'top' without ``top``; for a function that does not return a finite number for
    each item.

    >>> from concordant.preferences.preferences import Preferences
    >>> votes = Preferences.from_comparisons(["x", "y", "z", "x"], ["y", "z", "x", "w"], count=[3, 2, 1, 1])
    >>> batch = Batch.whole(votes)  # w, x, y, z; the best order is x, y, z, and x, w
    >>> scores_of_lists("places")(batch).value.tolist()
    [0.0, 3.0, 2.0, 1.0]
    >>> scores_of_lists("top", top=2)(batch).value.tolist()
    [0.0, 1.0, 1.0, 0.0]

    Source: Duchi, Mackey and Jordan (2013), §3.3, after Lemma 1.
    """
    _known(values, OF_LISTS)
    if (values == "top") != (top is not None):
        raise UsageError("top is the number of places that count, for the values top and nothing else")
    if top is not None:
        whole_number(top, "top", 1)
    base = structure(order)
    base.check(None, options)

    def mapped(batch: Batch) -> Scores:
        found = base(batch, **options)
        graphs = Ragged(batch.node_start)
        place = _places(graphs, found.value)
        if callable(values):
            parts = [_checked(values(place[nodes]), (nodes.stop - nodes.start,)) for nodes in graphs.slices]
            value = np.concatenate(parts) if parts else place
        elif values == "top":
            value = (place <= float(top or 0)).astype(np.float64)
        else:
            value = graphs.spread(graphs.sizes) - place if values == "places" else 1.0 / place
        return closed_form(batch.graphs, np.asarray(value, np.float64), {"values": _name(values)}, found.notes)

    return mapped


def scores_of_graphs(values: str | Callable[[Floats], Floats] = "wins") -> OfBatch:
    """Map graphs to scores: r(s) of the difference graph d_ij = [s_ij − s_ji]₊ of the mean adjacency s.

    'wins': items that i is preferred to less those preferred to it (Copeland). 'reach': items that a chain of
    preferences leads to from i, less those from which one leads to i: that of the transitive closure, for graphs with
    holes. 'net': Σ_j (d_ij − d_ji), weights and all. Or a function of the matrix d, (m, m), to values (m,). The first
    two read no weights, so the structures are finitely many.

    Errors: UsageError for unknown names, and for a function that does not return a finite number for each item.

    >>> from concordant.preferences.preferences import Preferences
    >>> votes = Preferences.from_comparisons(["x", "y", "y"], ["y", "z", "w"], count=[3, 2, 1])
    >>> batch = Batch.whole(votes)  # w, x, y, z: x > y, y > z, y > w
    >>> scores_of_graphs("wins")(batch).value.tolist(), scores_of_graphs("reach")(batch).value.tolist()
    ([-1.0, 1.0, 1.0, -1.0], [-2.0, 3.0, 1.0, -2.0])

    Source: Duchi, Mackey and Jordan (2013), §3.3, after Lemma 1; §5.3.
    """
    _known(values, OF_GRAPHS)

    def mapped(batch: Batch) -> Scores:
        net = Differences.of(mean_adjacency(batch))
        value: NDArray[Any]
        if callable(values) or values == "reach":
            value = np.zeros(net.nodes)
            for nodes, weight in _matrices(net):
                if callable(values):
                    value[nodes] = np.stack([_checked(values(one), (len(one),)) for one in weight])
                else:
                    closed = _closure(weight > 0)
                    value[nodes] = closed.sum(axis=2) - closed.sum(axis=1)
        else:
            weight = net.weight if values == "net" else np.ones(len(net.weight))
            value = np.bincount(net.winner, weight, net.nodes) - np.bincount(net.loser, weight, net.nodes)
        return closed_form(batch.graphs, np.asarray(value, np.float64), {"values": _name(values)})

    return mapped


def _known(values: Any, names: tuple[str, ...]) -> None:
    if not callable(values) and values not in names:
        raise UsageError(f"unknown values {values!r}; {did_you_mean(str(values), names)} A function is allowed too.")


def _name(values: Any) -> str:
    return str(getattr(values, "__name__", values))


def _checked(values: Any, shape: tuple[int, ...]) -> Floats:
    try:
        found = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        found = np.zeros(0)
    if found.shape != shape or not np.isfinite(found).all():
        raise UsageError("values must return a finite number for each item")
    return found


def _places(graphs: Ragged, scores: Floats) -> Floats:
    """Place of each node in its graph by decreasing score, from 1; equal ones share the middle."""
    owner = graphs.owner
    order = np.lexsort((-scores, owner))
    runs = Ragged.runs(owner[order], scores[order])
    middle = runs.first + 0.5 * (runs.sizes + 1) - graphs.first[owner[order[runs.first]]]
    place = np.empty(len(order))
    place[order] = runs.spread(middle)
    return place


def _matrices(net: Differences) -> list[tuple[NDArray[np.int64], Floats]]:
    """The difference graphs of one size as dense tables: nodes (graphs, m) and weights (graphs, m, m)."""
    sizes = net.node_groups.sizes
    first = net.node_groups.first
    found = []
    for size in np.unique(sizes[sizes > 0]).tolist():
        alike = np.flatnonzero(sizes == size)
        step = max(1, CELLS // (size * size))
        for begin in range(0, len(alike), step):
            some = alike[begin : begin + step]
            row = np.full(len(sizes), -1)
            row[some] = np.arange(len(some))
            edge = np.flatnonzero(row[net.graph] >= 0)
            base = first[net.graph[edge]]
            weight = np.zeros((len(some), size, size))
            weight[row[net.graph[edge]], net.winner[edge] - base, net.loser[edge] - base] = net.weight[edge]
            found.append((first[some][:, None] + np.arange(size), weight))
    return found


def _closure(beats: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whom a chain leads to, of each table (graphs, m, m)."""
    reach = beats
    for _ in range(max(beats.shape[1] - 1, 1).bit_length()):
        reach = reach | (np.matmul(reach.astype(np.float64), reach.astype(np.float64)) > 0)
    return reach
