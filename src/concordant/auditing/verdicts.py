"""Does a surrogate lead to an optimal order of each query? Its minimisers against the best order, in numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from concordant.auditing.regret import ROUNDING, mean_floor, regrets, worse_minimisers
from concordant.losses.minimise import minimise
from concordant.losses.surrogates import Chosen
from concordant.preferences.connectivity import Differences
from concordant.preferences.graphs import Batch, Graphs
from concordant.ranking.best_orders import BestOrders

Floats = NDArray[np.float64]
Nodes = NDArray[np.int64]
NO, YES, UNKNOWN = 0, 1, -1
"""Is every minimiser optimal? UNKNOWN: the best order is not known to be best, or there is no minimum to judge."""


@dataclass(frozen=True, eq=False)
class SurrogateVerdict:
    """What one surrogate makes of each graph of a batch. Shapes: (graphs,)."""

    status: NDArray[np.int8]
    """A ``Status`` each."""
    loss: Floats
    """Target loss of the worst minimiser found; NaN without one."""
    regret: Floats
    """Its excess over the best order at hand."""
    regret_at_most: Floats
    """Proven upper bound of the regret of every minimiser."""
    consistent: NDArray[np.int8]
    flipped: Nodes
    """Net preferences that some minimiser contradicts (ties count)."""
    above: Nodes
    """Node that the heaviest of them puts first; −1: none."""
    below: Nodes
    alpha: Floats
    """One minimiser; shape (nodes,)."""


def judge_by_pairs(
    chosen: Chosen,
    batch: Batch,
    mean: Graphs,
    net: Differences,
    best: BestOrders,
    acyclic: NDArray[np.bool_],
    ties: str,
) -> SurrogateVerdict:
    """Minimise a surrogate of preferences on every graph and charge its minimisers with the pairwise loss (10)."""
    source = mean if chosen.member.reads == "adjacency" else batch
    found = minimise(chosen.member.objective(source, phi=chosen.phi))
    charged = regrets(mean, net, found, ties)
    number = len(mean)
    heaviest = net.edges.most(np.where(charged.wrong, net.weight, 0.0))
    # without cycles every contradicted preference costs its weight, and some minimiser contradicts the heaviest
    at_least = np.where(acyclic & found.surely_least, mean_floor(mean) + heaviest, 0.0)
    loss = np.maximum(charged.loss, at_least)
    tolerance = ROUNDING * mean.pairs.sums(mean.above + mean.below)
    open_ = (loss <= best.loss + tolerance) & (charged.most > best.lower + tolerance)
    enough = np.where(open_, best.loss + tolerance, np.nan)
    loss = np.maximum(loss, worse_minimisers(mean, net, found, charged, enough, ties))
    regret, most = loss - best.loss, charged.most - best.lower
    regret, most = (np.where(np.abs(value) <= tolerance, 0.0, value) for value in (regret, most))
    consistent = np.where(regret > 0, NO, np.where((most <= 0) & best.exact, YES, UNKNOWN)).astype(np.int8)
    consistent[np.isnan(regret)] = UNKNOWN
    flips = np.flatnonzero(charged.flipped)
    flips = flips[np.argsort(net.weight[flips], kind="stable")]
    last = np.full(number, -1, np.int64)
    last[net.graph[flips]] = flips  # the last one written is the heaviest
    some = last >= 0
    above, below = np.full(number, -1, np.int64), np.full(number, -1, np.int64)
    above[some], below[some] = net.winner[last[some]], net.loser[last[some]]
    return SurrogateVerdict(
        found.status,
        loss,
        regret,
        np.maximum(most, regret),
        consistent,
        np.bincount(net.graph[flips], minlength=number).astype(np.int64),
        above,
        below,
        found.alpha,
    )
