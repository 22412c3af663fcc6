"""Difference graphs: net preferences of each view, and the cycles among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from concordant.differences import Differences
from concordant.populations.cycles import Cycles, cycles
from concordant.populations.neighbours import Neighbours
from concordant.reporting.beats import nearest_top
from concordant.reporting.values import fair
from concordant.reporting.views import Stage, View
from concordant.structures.adjacency import mean_adjacency

__all__ = ["graphs_of"]

Ints = NDArray[np.int64]
EDGES = 30_000
"""Net preferences of all views at most."""


@dataclass(frozen=True, eq=False)
class _Graphs:
    """The difference graphs of a stage."""

    net: Differences
    component: Ints
    """Number of the strong component of each node in its graph, 1 the largest; 0: the node is on no cycle."""
    cycles: Cycles
    judgments: NDArray[np.float64]
    """Strength of the judgments on the pair of each edge."""
    sign_holds: NDArray[np.float64]
    """Share of the resamples in which the edge keeps its direction; NaN where nothing was resampled."""


def graphs_of(views: list[View], edges: dict[int, pa.Table | None]) -> list[dict[str, Any]]:
    """Return the difference graph of each view; ``edges``: what the audit of each stage (by id) says of noise.

    An edge is [winner, loser, net preference per judgment, judgments of the pair, share of resamples that keep its
    direction or null, whether it is on a cycle, number of its strong component or 0]. Where there are too many, those
    of the cycles shown come first, then those of the items that rank highest.
    """
    stages = {id(view.stage): view.stage for view in views}
    found = {key: _found(stage, edges.get(key)) for key, stage in stages.items()}
    sizes = [int(np.diff(found[id(view.stage)].net.edge_start)[view.query]) for view in views]
    return [_graph(view, found[id(view.stage)], most) for view, most in zip(views, fair(sizes, EDGES), strict=True)]


def _found(stage: Stage, known: pa.Table | None) -> _Graphs:
    mean = mean_adjacency(stage.batch)
    net = Differences.of(mean)
    graphs, nodes = stage.batch.graphs, stage.batch.graphs.nodes
    total = graphs.wins + graphs.losses + graphs.ties
    pair = np.searchsorted(
        graphs.first * nodes + graphs.second,
        np.minimum(net.winner, net.loser) * nodes + np.maximum(net.winner, net.loser),
    )
    # rows of an audit stand as the edges do: by query, winner, loser
    holds = np.full(len(net.winner), np.nan)
    if known is not None:
        holds = known["sign_holds"].to_numpy().astype(np.float64)
    return _Graphs(net, _components(net), cycles(Neighbours.of(mean)), total[pair], holds)


def _components(net: Differences) -> Ints:
    """Number the strong components of more than one node in each graph, the largest first."""
    if not net.nodes:
        return np.zeros(0, np.int64)
    beats = csr_array((np.ones(len(net.winner), np.int8), (net.winner, net.loser)), shape=(net.nodes, net.nodes))
    strong = connected_components(beats, directed=True, connection="strong")[1].astype(np.int64)
    name, first, size = np.unique(strong, return_index=True, return_counts=True)
    owner = net.owner[first]
    order = np.lexsort((first, -size, owner))
    begin = np.searchsorted(owner[order], owner[order])
    number = np.empty(len(name), np.int64)
    number[order] = np.arange(len(order)) - begin + 1
    return np.asarray(np.where(size > 1, number, 0)[strong], np.int64)


def _graph(view: View, found: _Graphs, most: int) -> dict[str, Any]:
    net, outer, place = found.net, view.stage.outer, view.stage.place
    begin, end = int(net.edge_start[view.query]), int(net.edge_start[view.query + 1])
    shown = [
        found.cycles.node[found.cycles.start[c] : found.cycles.start[c + 1]]
        for c in np.flatnonzero(found.cycles.graph == view.query).tolist()
    ]
    edges = np.arange(begin, end)
    winner, loser = net.winner[edges], net.loser[edges]
    order = nearest_top(place[winner], place[loser])
    width = net.nodes
    on_shown = {
        a * width + b for nodes in shown for a, b in zip(nodes.tolist(), np.roll(nodes, -1).tolist(), strict=True)
    }
    first = np.isin(winner * width + loser, sorted(on_shown))[order]
    chosen = edges[np.concatenate((order[first], order[~first]))[:most]]
    winner, loser = net.winner[chosen], net.loser[chosen]
    part = np.where(found.component[winner] == found.component[loser], found.component[winner], 0)
    facts = (net.weight[chosen], found.judgments[chosen], found.sign_holds[chosen], part > 0, part)
    columns = (outer[winner], outer[loser], *facts)
    nodes = np.arange(net.node_start[view.query], net.node_start[view.query + 1])
    return {
        "nodes": outer[nodes[np.argsort(place[nodes])][: view.rows]],
        "edges": [list(row) for row in zip(*(column.tolist() for column in columns), strict=True)],
        "cycles": [outer[cycle] for cycle in shown],
        "components": int(found.component[nodes].max(initial=0)),
        "left_out": end - begin - len(chosen),
    }
