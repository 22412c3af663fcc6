"""Scores from shares of wins: counting, Borda, budgeted Borda (AoS §5.1)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from concordant.graphs import Batch, Graphs
from concordant.structures.gauge import closed_form
from concordant.structures.rankings import Rankings
from concordant.structures.scores import Scores

__all__ = ["borda", "budgeted_borda", "counting"]

Floats = NDArray[np.float64]


def counting(batch: Batch) -> Scores:
    """Plain win rate: s_j = n_j· / (n_j· + n_·j), a tie half a win; ½ for items in no comparison.

    It does not ask against whom an item won.

    >>> from concordant.preferences import Preferences
    >>> counting(Batch.whole(Preferences.from_comparisons(["x", "x", "y"], ["y", "z", "z"]))).value.tolist()
    [1.0, 0.5, 0.0]
    """
    graphs = batch.graphs
    won = graphs.add_to_nodes(graphs.above, graphs.below)
    lost = graphs.add_to_nodes(graphs.below, graphs.above)
    return closed_form(graphs, _ratio(won, won + lost, 0.5), {})


def borda(batch: Batch) -> Scores:
    """Borda scores (AoS §5.1), from pairs or, for orders, from positions.

    Pairs: s = A1 with A_jl = (n_jl − n_lj) / (n_jl + n_lj) on observed pairs, 0 elsewhere: conditional frequencies,
    so that an item gains nothing by being compared often; a graph's scores sum to zero.
    Orders: s_j = the mean, over the lists that hold j and at least one other item, of
    (items below j − items above j) / (items of the list − 1), in [−1, 1]; items tied with j count on neither side,
    which is half each. For full orders this is 2 b_j / (m − 1) − 1 with b_j the classic mean Borda count, and equals
    A1 / (m − 1). Items in no comparison have 0.

    >>> from concordant.preferences import Preferences
    >>> borda(Batch.whole(Preferences.from_comparisons(["x", "x", "y"], ["y", "z", "z"]))).value.tolist()
    [2.0, 0.0, -2.0]
    """
    if batch.prefs.kind == "orders":
        return _positional(batch)
    graphs = batch.graphs
    margin = _margin(graphs)
    return closed_form(graphs, graphs.add_to_nodes(margin, -margin), {})


def budgeted_borda(batch: Batch) -> Scores:
    """Probability of beating an opponent met, opponents counted alike (AoS §5.1, Ammar & Shah 2011).

    s_j = the mean over the observed l of n_jl / (n_jl + n_lj); ½ for items in no comparison.

    >>> from concordant.preferences import Preferences
    >>> votes = Preferences.from_comparisons(["x", "x", "y", "y"], ["y", "z", "z", "x"])
    >>> budgeted_borda(Batch.whole(votes)).value.tolist()
    [0.75, 0.75, 0.0]
    """
    graphs = batch.graphs
    share = 0.5 * (1.0 + _margin(graphs))
    met = graphs.add_to_nodes(np.ones(len(share)), np.ones(len(share)))
    return closed_form(graphs, _ratio(graphs.add_to_nodes(share, 1.0 - share), met, 0.5), {})


def _positional(batch: Batch) -> Scores:
    lists = Rankings.of(batch)
    others = (lists.length - 1)[lists.row].astype(float)
    beyond = lists.below - lists.above
    nodes = len(batch.item)
    mass = lists.weight[lists.row]
    total = np.bincount(lists.node, mass * beyond / others, nodes).astype(float)
    return closed_form(lists.chain(), _ratio(total, np.bincount(lists.node, mass, nodes).astype(float), 0.0), {})


def _margin(graphs: Graphs) -> Floats:
    """A_jl of each pair, first against second."""
    return np.asarray((graphs.above - graphs.below) / (graphs.above + graphs.below))


def _ratio(part: Floats, whole: Floats, otherwise: float) -> Floats:
    return np.asarray(np.divide(part, whole, out=np.full(len(part), otherwise), where=whole > 0))
