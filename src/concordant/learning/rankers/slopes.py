"""What trees are grown on: the gradient and the diagonal curvature of a loss at scores of all nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

from concordant.kernels.arrays import in_ranges
from concordant.learning.features.matrix import Matrix
from concordant.losses.objective import Objective
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences
from concordant.preferences.ragged import Ragged
from concordant.ranking.bradley_terry import bradley_terry

Floats = NDArray[np.float64]
Slopes = Callable[[Floats], tuple[Floats, Floats]]
"""Of scores (nodes,): gradient and curvature of the loss by each, shape (nodes,)."""
FAR = 300.0
"""Difference of scores beyond which a pair is as good as decided."""

TOP = 30
"""Ranks that λ-weights look at, as LightGBM does."""


@dataclass(frozen=True, eq=False)
class InformedSlopes:
    """Bradley–Terry whose scores may leave the scorer: min over s of −log L(s) + ‖s − f‖²/(2τ²), a Moreau envelope.

    Its gradient is (f − s*)/τ², s* the informed scores with prior mean f; as τ² → 0 it is that of pairwise logistic
    loss, and with many judgments that of squares to the scores of the query alone.
    """

    prefs: Preferences
    tau2: float
    groups: Ragged
    weight: Floats
    """Of each query."""

    def __call__(self, scores: Floats) -> tuple[Floats, Floats]:
        """Return gradient and curvature."""
        batch = Batch.whole(self.prefs)
        mean = self.groups.centred(scores)
        found = bradley_terry(batch, prior=1.0 / self.tau2, mean=mean, covariates=False, tolerance=1e-4).value
        graphs = batch.graphs
        chance = 1.0 / (1.0 + np.exp(found[graphs.second] - found[graphs.first]))
        each = (graphs.above + graphs.below) * chance * (1.0 - chance)
        ends = np.concatenate((graphs.first, graphs.second))
        bend = np.bincount(ends, np.concatenate((each, each)), len(scores))
        weight = self.groups.spread(self.weight)
        return weight * (mean - found) / self.tau2, weight * bend / (1.0 + self.tau2 * bend)


@dataclass(frozen=True, eq=False)
class CentredSquares:
    """½ Σ w (f_j + t_q − y_j)², the free intercept t_q of each query at its best in every round."""

    target: Floats
    weight: Floats
    """Of each node."""
    groups: Ragged

    def __call__(self, scores: Floats) -> tuple[Floats, Floats]:
        """Return gradient and curvature."""
        left = scores - self.target
        total = self.groups.sums(self.weight)
        mean = self.groups.sums(self.weight * left) / np.where(total > 0, total, 1.0)
        return self.weight * (left - self.groups.spread(mean)), self.weight


@dataclass(frozen=True, eq=False)
class GainSlopes:
    """Σ_q w_q Σ_j g_j Σ_l log(1 + exp(α_l − α_j)): gains against every other item of the query (AoS §3.3)."""

    gain: Floats
    groups: Ragged
    weight: Floats
    """Of each query."""

    @cached_property
    def _falling(self) -> tuple[NDArray[np.int64], Floats, Floats]:
        """The nodes of each query by falling gain, these gains times the query's weight, and its number of pairs."""
        order = np.lexsort((-self.gain, self.groups.owner))
        gains = (self.gain * self.groups.spread(self.weight))[order]
        return order, gains, self.groups.sums(gains > 0) * self.groups.sizes

    def _relative(self, scores: Floats) -> Floats:
        """exp(α), divided by the largest of the query, by falling gain."""
        top = self.groups.spread(self.groups.most(scores))
        return np.asarray(np.exp(np.maximum(scores - top, -FAR))[self._falling[0]], np.float64)

    def __call__(self, scores: Floats) -> tuple[Floats, Floats]:
        """Return gradient and curvature."""
        from concordant.kernels.pair_slopes import gain_pairs

        (order, gains, cost), relative, start = self._falling, self._relative(scores), self.groups.start
        sums = np.zeros((2, len(scores)))
        in_ranges(lambda first, last: gain_pairs(relative, gains, start, first, last, *sums), cost)
        found = np.empty_like(sums)
        found[:, order] = sums
        return found[0], found[1]

    def value(self, scores: Floats) -> float:
        """Return the loss."""
        from concordant.kernels.pair_slopes import gain_losses

        (_, gains, cost), relative, start = self._falling, self._relative(scores), self.groups.start
        value = np.zeros(len(self.groups))
        in_ranges(lambda first, last: gain_losses(relative, gains, start, first, last, value), cost)
        return float(value.sum())

    def linear(self, Z: Matrix, ridge: float) -> Floats:
        """Return the coefficients that minimise the loss of Zθ + (ridge/2) ‖θ‖², by L-BFGS."""

        def slope(theta: Floats) -> tuple[float, Floats]:
            scores = Z @ theta
            value, gradient = self.value(scores), self(scores)[0]
            return value + 0.5 * ridge * float(theta @ theta), Z.T @ gradient + ridge * theta

        found = scipy.optimize.minimize(
            slope, np.zeros(Z.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": 200}
        )
        return np.asarray(found.x, np.float64)


@dataclass(frozen=True, eq=False)
class LambdaSlopes:
    """Σ_q w_q Σ |ΔNDCG_jl| log(1 + exp(α_l − α_j)) over pairs with g_j > g_l, as the order by α is: LambdaMART's.

    ΔNDCG is what NDCG would lose if the two changed places: |g_j − g_l| |D_j − D_l| / DCG*, D_r = 1/log2(1 + r). Pairs
    have at least one of the ``TOP`` items of most score; items of equal score stand as they come. It is the gradient of
    no loss: the weights move with the order.
    """

    gain: Floats
    groups: Ragged
    weight: Floats
    """Of each query."""

    @cached_property
    def _share(self) -> Floats:
        """w_q / DCG*_q, up to the rank ``TOP``; 0 where nothing can be gained."""
        order = np.lexsort((-self.gain, self.groups.owner))
        place = self.groups.place
        best = self.groups.sums(np.where(place < TOP, self.gain[order] / np.log2(2.0 + place), 0.0))
        return np.asarray(np.where(best > 0, self.weight / np.where(best > 0, best, 1.0), 0.0), np.float64)

    def __call__(self, scores: Floats) -> tuple[Floats, Floats]:
        """Return gradient and curvature."""
        from concordant.kernels.pair_slopes import falling, lambda_pairs

        groups, start, order = self.groups, self.groups.start, np.empty(len(scores), np.int64)
        in_ranges(lambda first, last: falling(scores, start, first, last, order), groups.sizes)
        ordered, gains = scores[order], self.gain[order]
        relative = np.exp(np.maximum(ordered - groups.spread(groups.most(scores)), -FAR))
        discount = 1.0 / np.log2(2.0 + np.arange(int(groups.sizes.max(initial=0))))
        share, sums = self._share, np.zeros((2, len(scores)))
        cost = groups.sizes * np.minimum(groups.sizes, TOP)
        in_ranges(
            lambda first, last: lambda_pairs(relative, gains, discount, share, start, first, last, TOP, *sums), cost
        )
        found = np.empty_like(sums)
        found[:, order] = sums
        return found[0], found[1]


@dataclass(frozen=True, eq=False)
class EdgeSlopes:
    """Any surrogate on edges, such as the difference graph; each edge by itself."""

    objective: Objective
    weight: Floats
    """Of each graph."""

    def __call__(self, scores: Floats) -> tuple[Floats, Floats]:
        """Return gradient and curvature."""
        edges, of_nodes = self.objective.curvature(scores)
        found = self.objective.edges
        ends = np.concatenate((found.winner, found.loser))
        bend = of_nodes + np.bincount(ends, np.concatenate((edges, edges)), len(scores))
        weight = self.weight[self.objective.owner]
        return weight * self.objective.gradient(scores), weight * bend


@dataclass(frozen=True, eq=False)
class InUnits:
    """Slopes divided by the mean curvature at the start, so that what boosting counts in absolute terms has meaning."""

    slopes: Slopes
    unit: float

    @classmethod
    def of(cls, slopes: Slopes, scores: Floats) -> InUnits:
        """Measure the unit at scores."""
        bend = slopes(scores)[1]
        some = bend > 0
        return cls(slopes, float(bend[some].mean()) if some.any() else 1.0)

    def __call__(self, scores: Floats) -> tuple[Floats, Floats]:
        """Return gradient and curvature."""
        gradient, curvature = self.slopes(scores)
        return gradient / self.unit, curvature / self.unit
