"""What the minimisers of a surrogate lose by the pairwise loss, against the best order of each query."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from concordant.errors import UsageError
from concordant.losses.minimum import Minimum
from concordant.preferences.connectivity import Differences
from concordant.preferences.graphs import Graphs
from concordant.preferences.ragged import Ragged
from concordant.preferences.status import Status
from concordant.ranking.best_orders import BestOrders

Floats = NDArray[np.float64]
Nodes = NDArray[np.int64]
TIES = ("heavier", "paper")
CLOSE = 1e-9
"""Scores of a minimiser nearer than this are tied. They are found to 2e-10 (weights a millionfold apart); one vote in
10⁸ moves them by 1e-8, and is a preference."""
TRIES = 24
"""Minimisers that are tried from either end of edges before a verdict is left open."""
ROUNDING = 1e-9
"""Regrets below this share of a graph's weight are 0."""
NO, YES, UNKNOWN = 0, 1, -1
"""Is every minimiser optimal? UNKNOWN: the best order is not known to be best, or there is no minimum to judge."""


def check_ties(ties: str) -> None:
    """Refuse an unknown rule for ties."""
    if ties not in TIES:
        raise UsageError(f"ties must be 'heavier' or 'paper', not {ties!r}")


def order_loss(mean: Graphs, alpha: Floats, ties: str = "heavier", *, close: float = 0.0) -> Floats:
    """Return ℓ(α) = Σ_{i<j} s_ij 1(α_i ≤ α_j) + Σ_{i>j} s_ij 1(α_i < α_j) of each graph, s the mean adjacency.

    Shapes: ``alpha`` (nodes,), the result (graphs,), in the unit of ``mean`` (strength per judgment). Scores that
    differ by no more than ``close`` are tied. A tie is charged the heavier direction, max(s_ij, s_ji); ``ties="paper"``
    takes the formula literally, items numbered by their labels (counts do not remember the order of a log's rows).

    >>> from concordant.preferences.graphs import Batch
    >>> from concordant.preferences.preferences import Preferences
    >>> from concordant.ranking.adjacency import mean_adjacency
    >>> mean = mean_adjacency(Batch.whole(Preferences.from_comparisons(["x", "x", "x", "y"], ["y", "y", "y", "x"])))
    >>> [order_loss(mean, np.array(alpha)).tolist() for alpha in ([1.0, 0.0], [0.0, 1.0], [0.0, 0.0])]
    [[0.25], [0.75], [0.75]]

    Source: Duchi, Mackey and Jordan (2013), (10), (11).
    """
    check_ties(ties)
    gap = alpha[mean.first] - alpha[mean.second]
    tied = mean.above if ties == "paper" else np.maximum(mean.above, mean.below)
    charged = np.where(np.abs(gap) <= close, tied, np.where(gap > 0, mean.below, mean.above))
    return mean.pairs.sums(charged)


@dataclass(frozen=True, eq=False)
class Regrets:
    """What the minimisers of a surrogate lose. Shapes: (graphs,), but for ``flipped`` and ``gap`` (edges,)."""

    loss: Floats
    """Largest pairwise loss found among the minimisers; NaN where there is no minimum to judge."""
    most: Floats
    """Upper bound over all minimisers; equal to ``loss`` where there is one."""
    gap: Floats
    """Least α_winner − α_loser over all minimisers, for each edge of the difference graph."""
    flipped: NDArray[np.bool_]
    """Edges of the difference graph that some minimiser does not order rightly."""
    wrong: NDArray[np.bool_]
    """Those of them that the pairwise loss charges; by ``ties="paper"`` not every tie."""


def regrets(mean: Graphs, net: Differences, found: Minimum, ties: str = "heavier") -> Regrets:
    """Charge the minimisers of a surrogate with the pairwise loss, the worst one where there are many.

    Every pair is charged as by the minimiser that treats it worst, which bounds the loss of all of them; the minimiser
    at hand is one of them. Where the infimum is not attained its order is that of every minimising sequence.
    """
    gap = found.least_gaps(net.winner, net.loser)
    known = found.known
    right = mean_floor(mean)
    at_hand = order_loss(mean, found.alpha, ties, close=CLOSE)
    flipped = ~(gap > CLOSE)
    # under the paper's rule a tie is charged as if the item numbered later stood above
    wrong = flipped if ties == "heavier" else ~(gap > np.where(net.winner > net.loser, -CLOSE, CLOSE))
    most = np.maximum(right + net.edges.sums(np.where(wrong, net.weight, 0.0)), at_hand)
    most = np.where(found.unique, at_hand, most)
    nothing = np.full(len(net), np.nan)
    return Regrets(
        np.where(known, at_hand, nothing),
        np.where(known, most, nothing),
        gap,
        flipped & known[net.graph],
        wrong & known[net.graph],
    )


def worse_minimisers(
    net: Differences,
    wrong: NDArray[np.bool_],
    found: Minimum,
    loss: Floats,
    enough: Floats,
    loss_of: Callable[[Floats], Floats],
) -> Floats:
    """Return the largest loss of some more minimisers of each graph, until one loses more than ``enough``.

    Where there are many minimisers those that push one end of a wrongly ordered edge as far as it goes are tried, the
    heaviest first, ``TRIES`` from either end, and points half way between them, which are minimisers too. Graphs of
    one minimiser, and those of enough NaN, keep ``loss``. ``wrong``: edges of ``net`` that some minimiser contradicts.
    """
    loss, before = loss.copy(), found.alpha
    pushed = [_heaviest(net, ends, wrong) for ends in (net.winner, net.loser)]
    many = (found.status == Status.NOT_UNIQUE) & found.surely_least
    for turn, lowest in itertools.product(range(TRIES), (True, False)):
        nodes, rank = pushed[0 if lowest else 1]
        mine = nodes[(rank == turn) & (many & (loss <= enough))[net.owner[nodes]]]
        if not len(mine):
            continue
        there = net.owner[mine]
        point = found.extreme(mine, lowest)
        for tried in (point, (point + before) / 2.0):
            loss[there] = np.maximum(loss[there], loss_of(tried)[there])
        before = np.where(np.isin(net.owner, there), point, before)
    return loss


def _heaviest(net: Differences, ends: Nodes, wrong: NDArray[np.bool_]) -> tuple[Nodes, Nodes]:
    """Nodes at the ends of wrongly ordered edges, the heaviest of each graph first, and their rank in it."""
    weight = np.bincount(ends[wrong], net.weight[wrong], net.nodes)
    nodes = np.flatnonzero(weight > 0)
    nodes = nodes[np.lexsort((-weight[nodes], net.owner[nodes]))]
    return nodes, Ragged.runs(net.owner[nodes]).place


def mean_floor(mean: Graphs) -> Floats:
    """Return Σ min(s_ij, s_ji) of each graph: what every order pays."""
    return mean.pairs.sums(np.minimum(mean.above, mean.below))


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
    found: Minimum, mean: Graphs, net: Differences, best: BestOrders, acyclic: NDArray[np.bool_], ties: str
) -> SurrogateVerdict:
    """Charge the minimisers of a surrogate of preferences with the pairwise loss (10)."""
    charged = regrets(mean, net, found, ties)
    number = len(mean)
    heaviest = net.edges.most(np.where(charged.wrong, net.weight, 0.0))
    # without cycles every contradicted preference costs its weight, and some minimiser contradicts the heaviest
    at_least = np.where(acyclic & found.surely_least, mean_floor(mean) + heaviest, 0.0)
    loss = np.maximum(charged.loss, at_least)
    tolerance = ROUNDING * mean.pairs.sums(mean.above + mean.below)
    open_ = (loss <= best.loss + tolerance) & (charged.most > best.lower + tolerance)
    enough = np.where(open_, best.loss + tolerance, np.nan)

    def loss_of(alpha: Floats) -> Floats:
        return order_loss(mean, alpha, ties, close=CLOSE)

    loss = np.maximum(loss, worse_minimisers(net, charged.wrong, found, charged.loss, enough, loss_of))
    regret, most = loss - best.loss, charged.most - best.lower
    regret, most = (np.where(np.abs(value) <= tolerance, 0.0, value) for value in (regret, most))
    consistent = np.where(regret > 0, NO, np.where((most <= 0) & best.exact, YES, UNKNOWN)).astype(np.int8)
    consistent[np.isnan(regret)] = UNKNOWN
    return SurrogateVerdict(
        found.status,
        loss,
        regret,
        np.maximum(most, regret),
        consistent,
        *contradicted(net, charged.flipped, number),
        found.alpha,
    )


def contradicted(net: Differences, flipped: NDArray[np.bool_], graphs: int) -> tuple[Nodes, Nodes, Nodes]:
    """Return the number of net preferences that are flipped in each graph, and both ends of the heaviest of them."""
    flips = np.flatnonzero(flipped)
    flips = flips[np.argsort(net.weight[flips], kind="stable")]
    last = np.full(graphs, -1, np.int64)
    last[net.graph[flips]] = flips  # the last one written is the heaviest
    some = last >= 0
    above, below = np.full(graphs, -1, np.int64), np.full(graphs, -1, np.int64)
    above[some], below[some] = net.winner[last[some]], net.loser[last[some]]
    return np.bincount(net.graph[flips], minlength=graphs).astype(np.int64), above, below
