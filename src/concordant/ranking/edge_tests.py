"""Is the direction of each judged pair more than noise? One-sided tests of d_ij ≤ 0 against d_ij > 0.

*Sign test.* Where every judgment says j ≻ l, l ≻ j or neither with one strength, the n that take a side split
binomially, given n; where d ≤ 0 at most half the draws are wins, so P(Bin(n, ½) ≥ wins) is an exact p-value. Ties drop
out: half a win each way leaves d = P(win) − P(loss), and given a side P(win | side) > ½ says the same.

*Bets.* Strengths that differ (weights, ratings, several votes of one cluster) leave E[x] ≤ 0 as all that is known about
a judgment's net x in [−W, W]. A bet of a share λ then has E[Π(1 + λ x/W)] ≤ 1, and so has the mean over several λ: its
inverse is a p-value for every number of judgments (Markov's inequality; Waudby-Smith & Ramdas, JRSS B 86, 2024). W is
the largest strength in the graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import betainc, betaincinv, ndtr, ndtri

from concordant.preferences.counts import bit_width, rows_alike, tally
from concordant.preferences.graphs import Batch, Graphs, Kinds
from concordant.preferences.preferences import Comparisons, Lists
from concordant.preferences.ragged import Ragged

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Flags = NDArray[np.bool_]
BETS = 2.0 ** (-np.arange(16) / 2)
"""Shares λ that are bet, all with the same weight."""
BLOCK = 1 << 21
"""Votes of clusters whose nets are held at once."""
SAME = 1e-9
"""Relative size of what is rounding between equal tail probabilities or strengths."""


@dataclass(frozen=True, eq=False)
class EdgeTests:
    """One-sided p-values of every judged pair of the batch's pair tables, either way. Shapes (pairs,)."""

    above: Floats
    """p-value of first ≻ second: small when there is evidence for it."""
    below: Floats
    votes: Whole
    """Judgments (clusters) that take a side."""
    fewer: Whole
    """Of these, those for the side with fewer."""
    exact: Flags
    """Sign test; bets elsewhere."""
    independent: bool
    """Whether pairs are independent: each draw has one pair only."""

    def size(self, pairs: Whole, threshold: Floats, doubt: Floats) -> tuple[Floats, Flags]:
        """The largest chance of a p-value ≤ threshold (< 1) that a pair without net preference can have; 0 if none.

        Bets are only known to have at most the threshold itself; it is 0 where not even unanimous votes would do. Where
        the exact one-sided confidence limit (Clopper & Pearson) with error ``doubt`` says that the pair has the net
        preference that its votes show, it is the chance of the other direction at that limit, always above 0, and the
        second array is true.
        """
        votes, exact = self.votes[pairs], self.exact[pairs]
        one, place = rows_alike(votes, exact, threshold)
        number, signs, limit = votes[one], exact[one], threshold[one] * (1 + SAME)
        critical = _critical(number, limit)
        size = np.where(signs, binomial_tail(critical, number), 0.0)
        best = _inverse_mean(np.log1p(BETS)[:, None] * number[~signs].astype(np.float64))
        size[~signs] = np.where(best <= limit[~signs], threshold[one][~signs], 0.0)
        found = np.asarray(size[place], np.float64)
        beyond = exact & (np.minimum(self.above, self.below)[pairs] <= doubt) & (found > 0)
        sure = np.flatnonzero(beyond)
        lost = betaincinv(self.fewer[pairs[sure]] + 1.0, (votes - self.fewer[pairs])[sure], 1.0 - doubt[sure])
        found[sure] = np.maximum(binomial_tail(critical[place[sure]], votes[sure], np.minimum(lost, 0.5)), 1e-300)
        return found, beyond


def edge_tests(batch: Batch) -> EdgeTests:
    """Test the direction of every pair of ``batch.graphs``; a cluster of judgments counts as one draw.

    >>> from concordant.preferences.preferences import Preferences
    >>> votes = Preferences.from_comparisons(["x"] * 5 + ["y", "y"], ["y"] * 5 + ["z", "z"])
    >>> found = edge_tests(Batch.whole(votes))
    >>> found.above.tolist(), found.below.tolist(), found.votes.tolist()  # 1/2⁵, 1/2²
    ([0.03125, 0.25], [1.0, 1.0], [5, 2])
    """
    prefs, graphs = batch.prefs, batch.graphs
    independent = not isinstance(prefs, Lists) and prefs.cluster is None
    if not prefs.weighted and prefs.cluster is None:
        up, down, votes = sides_taken(graphs.wins, graphs.losses)
        exact = np.ones(len(up), bool)
        return EdgeTests(_tail(up, votes), _tail(down, votes), votes, np.minimum(up, down), exact, independent)
    pair, net, times = _draws(batch)
    most = np.zeros(len(graphs))
    least = np.full(len(graphs), np.inf)
    np.maximum.at(most, graphs.graph[pair], np.abs(net))
    np.minimum.at(least, graphs.graph[pair], np.abs(net))
    unit = (least >= most * (1 - SAME))[graphs.graph]
    up, down, votes = sides_taken(
        *(np.bincount(pair[side], times[side], len(unit)).astype(np.float64) for side in (net > 0, net < 0))
    )
    above, below = _tail(up, votes), _tail(down, votes)
    bet = ~unit[pair]
    share = net[bet] / most[graphs.graph[pair[bet]]]
    for p, sign in ((above, 1.0), (below, -1.0)):
        with np.errstate(divide="ignore"):  # all is lost where λ = 1 and x = −W
            logs = np.stack([_sums(pair[bet], times[bet], np.log1p(rate * sign * share), len(unit)) for rate in BETS])
        p[~unit] = np.minimum(_inverse_mean(logs[:, ~unit]), 1.0)
    return EdgeTests(above, below, votes, np.minimum(up, down), unit, independent)


def sides_taken(up: Floats, down: Floats) -> tuple[Whole, Whole, Whole]:
    """Return votes for, against and of either side as integers; from 2^53 on they are those of float64.

    >>> [int(votes[0]) >> 61 for votes in sides_taken(np.array([2.0**62]), np.array([2.0**62]))]
    [2, 1, 3]
    """
    most = np.nextafter(2.0**63, 0)
    votes = np.minimum(np.rint(up) + np.rint(down), most).astype(np.int64)
    won = np.minimum(np.minimum(np.rint(up), most).astype(np.int64), votes)
    return won, votes - won, votes


def _draws(batch: Batch) -> tuple[Whole, Floats, Floats]:
    """(pair, net strength for first ≻ second, how many draws) of the draws that take a side."""
    if batch.kinds is not None:
        return _nets(batch.graphs, batch.kinds)
    graphs, edges, prefs = batch.graphs, batch.edges, batch.prefs
    pair = graphs.pair_of(edges.winner, edges.loser)
    net = np.where(edges.tie, 0.0, np.where(edges.winner > edges.loser, -edges.strength, edges.strength))
    times = batch.multiplicity[edges.holder].astype(np.float64)
    if prefs.cluster is None:
        if isinstance(prefs, Comparisons) and prefs.share is not None:  # both parts of a win are one draw
            _, first, draw = np.unique(edges.holder, return_index=True, return_inverse=True)
            pair, times, net = pair[first], times[first], np.bincount(draw, net).astype(np.float64)
        kept = net != 0
        return pair[kept], net[kept], times[kept]
    cluster = prefs.cluster[batch.judgment[edges.holder]].astype(np.int64)
    width = bit_width(int(cluster.max(initial=0)) + 1)
    cells, place = np.unique((pair << width) | cluster, return_inverse=True)
    total: Floats = np.bincount(place, net * times, len(cells)).astype(np.float64)
    weight = np.bincount(place, np.abs(net) * times, len(cells))
    kept = np.abs(total) > SAME * weight
    return (cells[kept] >> width).astype(np.int64), total[kept], np.ones(int(kept.sum()))


def _nets(graphs: Graphs, kinds: Kinds) -> tuple[Whole, Floats, Floats]:
    """The same where clusters made plain comparisons: how many of them have each net number of votes for a pair."""
    signs = kinds.signs(graphs)
    entries = np.cumsum(abs(signs) @ np.diff(kinds.who.indptr))
    found = [(np.zeros(0, np.int64),) * 3]
    for rows in Ragged.runs(entries // BLOCK).slices:
        net = csr_array(signs[rows] @ kinds.who)
        most = int(np.abs(net.data).max(initial=0))
        width, pairs = 2 * most + 1, Ragged(net.indptr.astype(np.int64))
        key, times = tally(pairs.owner * width + net.data + most, bit_width(len(pairs) * width), None)
        found.append((key // width + rows.start, key % width - most, times.astype(np.int64)))
    pair, value, times = (np.concatenate(column) for column in zip(*found, strict=True))
    kept = value != 0
    return pair[kept], value[kept].astype(np.float64), times[kept].astype(np.float64)


def _sums(pair: Whole, times: Floats, value: Floats, pairs: int) -> Floats:
    """Σ times · value for each pair; −∞ stays −∞."""
    return np.asarray(np.bincount(pair, np.maximum(times * value, -1e300), pairs), np.float64)


def _inverse_mean(logs: Floats) -> Floats:
    """1 / mean of exp(logs) over the first axis."""
    top = logs.max(axis=0)
    return np.asarray(np.exp(-top) / np.exp(np.maximum(logs - top, -700.0)).mean(axis=0))


def binomial_tail(wins: Any, votes: Any, share: Any = 0.5) -> Floats:
    """P(Bin(votes, share) ≥ wins) = I_share(wins, votes − wins + 1), the incomplete beta function.

    >>> binomial_tail(np.array([0, 3, 5, 6]), 5).tolist()  # (10 + 5 + 1)/2⁵, 1/2⁵
    [1.0, 0.5, 0.03125, 0.0]
    """
    wins = np.asarray(wins, np.float64)
    inside = betainc(np.maximum(wins, 1.0), np.maximum(votes - wins + 1.0, 1.0), share)
    return np.where(wins <= 0, 1.0, np.where(wins > votes, 0.0, inside))


def _critical(votes: Whole, limit: Floats) -> Whole:
    """The fewest wins with P(Bin(votes, ½) ≥ wins) ≤ limit, votes + 1 where there are none: bisection about Φ's."""
    z = np.minimum(-ndtri(np.clip(limit, 1e-300, 0.5)), 40.0)
    about, reach = (votes + z * np.sqrt(votes)) / 2, 3 + z**2
    low, high = (np.clip(about + side, 0, votes + 1).astype(np.int64) for side in (-reach, reach))
    low = np.where(binomial_tail(low, votes) > limit, low, -1)  # where that many wins are too few, or none at all
    high = np.where(binomial_tail(high, votes) <= limit, high, votes + 1)
    while len(apart := np.flatnonzero(high - low > 1)):
        middle = (low + (high - low) // 2)[apart]
        enough = binomial_tail(middle, votes[apart]) <= limit[apart]
        high[apart[enough]], low[apart[~enough]] = middle[enough], middle[~enough]
    return high


def _tail(wins: Whole, votes: Whole) -> Floats:
    """P(Bin(votes, ½) ≥ wins)."""
    first, place = rows_alike(wins, votes)
    won, cast = wins[first], votes[first]
    tail = binomial_tail(won, cast)
    if (many := cast >= 1 << 53).any():  # a normal law to 1e-12, where not every integer has a float64 of its own
        tail[many] = ndtr((cast[many] - 2.0 * won[many]) / np.sqrt(cast[many]))
    return np.asarray(tail[place], np.float64)


def family_wise(p_value: Floats, tested: int) -> Floats:
    """Return Holm's adjusted p-values of the smallest of ``tested`` (Scand. J. Statist. 6, 1979).

    >>> family_wise(np.array([0.01, 0.04, 0.001]), 10).round(3).tolist()
    [0.09, 0.32, 0.01]
    """
    sorter = np.argsort(p_value, kind="stable")
    adjusted = np.empty(len(sorter))
    adjusted[sorter] = np.maximum.accumulate(p_value[sorter] * (tested - np.arange(len(sorter))))
    return np.minimum(adjusted, 1.0)
