"""Limits of items with fewer than ten wins or losses, from the exact law of their number of wins.

The wins of an item against opponents of known scores are a sum of independent draws with chances σ(δ − s_j): a
Poisson-binomial law with one unknown, δ. Its limits at a two-sided level 1 − 2α are the δ at which as many wins as
there were, or more, have probability α, and as many or fewer (Clopper & Pearson, Biometrika 26, 1934). Where there are
three judgments, a limit from the curvature promises too much: one that should hold in 97.5% held in 92.8%.

The opponents' scores, and what else the score is measured against, are estimates: the contrast T = s_i − bᵀs has
variance c²/I + V, with I the item's own information Σ n p(1 − p), c = 1 − b_i, V what is left when s_i is known to be
best for the others. Both are put together as the squares of their distances from the estimate (Zou & Donner, Statistics
in Medicine 27, 2008): lower = s − √((c (s − δ₋))² + z² V), upper likewise.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtri

from concordant.preferences.connectivity import Connectivity
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Comparisons
from concordant.preferences.ragged import Ragged
from concordant.ranking.contrasts import Gauge
from concordant.ranking.scores import Scores
from concordant.ranking.standard_errors import Intervals

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
FEW = 10
"""Wins, and losses, from which on a limit is that of the curvature."""
LARGEST_PRIOR = 0.1
"""With a larger one a score is the prior's as much as the data's, and so is its interval."""
ROWS = 1 << 20
"""Opponents that are treated at once."""
FAR = 40.0
"""No limit lies further from the score, and no opponent counts as further."""
CLOSE = 1e-5
"""A step below this is the last one: Newton's error after it is about its square."""


def exact_ends(
    found: Intervals, batch: Batch, scores: Scores, linked: Connectivity, gauge: Gauge, prior: float
) -> Intervals:
    """Put exact limits in the place of those of firm items with fewer than ten wins or losses.

    Judgments of a graph have to be plain: comparisons without ties and weights, one draw each (``method`` hessian);
    else, and with a prior above 0.1, the limits are left as they are. Judgments between items that the data do not
    limit against each other say nothing of either.
    """
    if not isinstance(batch.prefs, Comparisons) or found.method != "hessian" or prior > LARGEST_PRIOR:
        return found
    winner, loser = batch.edges.winner, batch.edges.loser
    other_than_one = batch.edges.tie | (batch.edges.strength != 1)
    plain = np.bincount(batch.graph[batch.edges.holder], other_than_one, len(batch)) == 0
    within = linked.block[winner] == linked.block[loser]
    number = np.where(within, batch.multiplicity[batch.edges.holder], 0.0)
    nodes, value = len(scores.value), scores.value
    wins, losses = np.bincount(winner, number, nodes), np.bincount(loser, number, nodes)
    few = np.minimum(wins, losses)
    own = (few > 0) & (few < FEW) & np.isfinite(found.lower) & np.isfinite(found.upper)
    own &= (gauge.weight < 1) & plain[batch.owner]
    if not own.any():
        return found
    lead = _leads(batch, scores)
    node, other = np.concatenate([winner, loser]), np.concatenate([value[loser] - lead, value[winner] + lead])
    kept = np.flatnonzero(own[node] & np.append(within, within))
    kept = kept[np.argsort(node[kept], kind="stable")]
    number = np.concatenate([number, number])[kept]
    chosen = np.flatnonzero(own)
    games = Ragged.counted(np.searchsorted(chosen, node[kept]), len(chosen))
    rare = np.where(wins <= losses, 1.0, -1.0)[chosen]  # 1: the rarer outcome is a win, its number rises with δ
    odds = games.spread(rare) * (value[node[kept]] - other[kept])
    lower, upper = found.lower.copy(), found.upper.copy()
    begin, z = 0, float(ndtri(0.5 + found.level / 2))
    while begin < len(chosen):
        end = max(int(np.searchsorted(games.start, games.start[begin] + ROWS, "right")) - 1, begin + 1)
        rows, at = slice(games.start[begin], games.start[end]), chosen[begin:end]
        law = Rare(Ragged(games.start[begin : end + 1] - games.start[begin]), odds[rows], number[rows], few[at])
        below, above, own_information = law.ends((1.0 - found.level) / 2)
        share = 1.0 - gauge.weight[at]
        rest = np.maximum(found.standard_error[at] ** 2 - share**2 / own_information, 0.0)
        down, up = (np.hypot(share * side, z * np.sqrt(rest)) for side in (below, above))
        turned = rare[begin:end] < 0
        lower[at] = value[at] - np.where(turned, up, down)
        upper[at] = value[at] + np.where(turned, down, up)
        begin = end
    return replace(found, lower=lower, upper=upper)


def _leads(batch: Batch, scores: Scores) -> Floats:
    """What covariates add to the winner's side of each edge."""
    edges, graph = batch.edges, batch.graph[batch.edges.holder]
    lead = np.zeros(len(edges.winner))
    if scores.options.get("covariates") and edges.covariates is not None:
        for i, name in enumerate(batch.prefs.covariate_names):
            lead += edges.covariates[:, i] * scores.coefficients[name][graph]
    return lead


class Rare:
    """The law of the number K of an item's rarer outcomes, of chance σ(u + odds) in each of its judgments."""

    def __init__(self, games: Ragged, odds: Floats, number: Floats, few: Floats) -> None:
        """``games``: judgments of each item; ``number``: how often each; ``few``: K as it was, below ``FEW``.

        ``odds`` are those at the score, u = 0.
        """
        self.games, self.odds, self.number, self.few = games, np.clip(odds, -FAR, FAR), number, few
        with np.errstate(divide="ignore"):
            self.log_terms = np.log(self._terms())

    def _terms(self) -> Floats:
        """Coefficients of xʲ in Π (1 + x e^odds)^number, j < FEW; shape (items, FEW).

        Products of neighbours until one is left: sums of positive terms only, so no digits are lost.
        """
        terms = np.ones((FEW, len(self.odds)))
        one = np.exp(self.odds)
        for j in range(1, FEW):
            terms[j] = terms[j - 1] * one * np.maximum(self.number - (j - 1), 0.0) / j
        games = self.games
        while games.sizes.max(initial=0) > 1:
            first = games.place % 2 == 0
            pairs = np.flatnonzero(first & (games.place < games.sizes[games.owner] - 1))
            one, other = terms[:, pairs], terms[:, pairs + 1]
            for j in range(FEW):
                terms[j, pairs] = (one[: j + 1] * other[j::-1]).sum(axis=0)
            terms = terms[:, first]
            games = Ragged.of_sizes((games.sizes + 1) // 2)
        return terms.T

    def at_most(self, u: Floats, most: Floats, items: Ints) -> tuple[Floats, Floats]:
        """log P(K ≤ most) of some items at u, and its derivative."""
        games, rows = self.games.take(items)
        x = games.spread(u) + self.odds[rows]
        none = -games.sums(self.number[rows] * np.logaddexp(0.0, x))
        slope = -games.sums(self.number[rows] * expit(x))
        j = np.arange(FEW)
        terms = np.where(j <= most[:, None], self.log_terms[items] + j * u[:, None], -np.inf)
        largest = terms.max(axis=1)
        share = np.exp(terms - largest[:, None])
        whole = share.sum(axis=1)
        return none + largest + np.log(whole), slope + (share * j).sum(axis=1) / whole

    def ends(self, tail: float) -> tuple[Floats, Floats, Floats]:
        """How far below and above the score the limits lie, and the information there; shape (items,) each."""
        p = expit(self.odds)
        information = self.games.sums(self.number * p * (1.0 - p))
        half = -float(ndtri(tail)) / np.sqrt(information)
        above = self._where(np.minimum(half, 4.0), self.few, np.log(tail))
        return -self._where(-np.minimum(half, 4.0), self.few - 1.0, np.log1p(-tail)), above, information

    def _where(self, u: Floats, most: Floats, log_tail: float) -> Floats:
        """The u at which log P(K ≤ most) is ``log_tail``: Newton's method between two ends that close in."""
        low, high, left = np.full(len(u), -FAR), np.full(len(u), FAR), np.arange(len(u))
        target = np.log(-log_tail)
        for _ in range(100):
            at = u[left]
            value, slope = self.at_most(at, most[left], left)
            low[left], high[left] = (
                np.where(value > log_tail, at, low[left]),
                np.where(value > log_tail, high[left], at),
            )
            with np.errstate(all="ignore"):  # log(−log P) is all but straight in u
                moved = at - (np.log(-value) - target) * value / slope
            inside = (moved > low[left]) & (moved < high[left])
            u[left] = np.where(inside, moved, (low[left] + high[left]) / 2)
            left = left[np.abs(u[left] - at) > CLOSE]
            if len(left) == 0:
                break
        return u
