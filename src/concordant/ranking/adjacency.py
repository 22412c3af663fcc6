"""Matrix-valued structures: mean adjacency and difference graph (AoS §2, §3.2.2, §5.3), kept as pair tables.

Only judged pairs are stored; a pair that is not there was never judged, which is not the same as a difference of 0.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from concordant.preferences.connectivity import net_weights
from concordant.preferences.graphs import Batch, Graphs


def mean_adjacency(batch: Batch) -> Graphs:
    """Average adjacency matrix of the judgments of each graph: s = (1/k) Σ Y_i (AoS §5.3).

    Entry s_jl is ``above`` of the pair (j, l), s_lj its ``below``: the mean strength a judgment gives to j ≻ l, ties
    half a win each. k is the number of judgments of the graph, with multiplicity.

    >>> from concordant.preferences.preferences import Preferences
    >>> mean = mean_adjacency(Batch.whole(Preferences.from_comparisons(["x", "x", "y", "x"], ["y", "y", "x", "z"])))
    >>> mean.above.tolist(), mean.below.tolist()
    ([0.5, 0.25], [0.25, 0.0])
    """
    graphs = batch.graphs
    k = np.maximum(batch.judgments, 1)[graphs.graph].astype(float)
    return replace(graphs, wins=graphs.wins / k, losses=graphs.losses / k, ties=graphs.ties / k)


def difference_graph(batch: Batch) -> Graphs:
    """Difference graph of the mean adjacency: weights [s_ij − s_ji]₊ (AoS §3.2.2 and (23)).

    ``wins`` of a pair is the weight of first → second, ``losses`` of second → first; at most one is positive, both
    are 0 where the judged pair is level. There are no ties.

    >>> from concordant.preferences.preferences import Preferences
    >>> net = difference_graph(Batch.whole(Preferences.from_comparisons(["x", "x", "y", "x"], ["y", "y", "x", "z"])))
    >>> net.wins.tolist(), net.losses.tolist()
    ([0.25, 0.25], [0.0, 0.0])
    """
    mean = mean_adjacency(batch)
    net = net_weights(mean)
    return replace(mean, wins=np.maximum(net, 0.0), losses=np.maximum(-net, 0.0), ties=np.zeros(len(net)))
