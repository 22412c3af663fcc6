"""Do the thresholds and one scale explain graded preferences? Residuals of pairs of items, and a test of the fit.

With Y the grade of a judgment, positive for the first item of its pair, e and v its mean and variance at the fit
(``Cuts.grades``) and D the slopes of a pair's Σ e by the parameters, scores and thresholds fitted with the prior λ and
the information A leave Σ (Y − e) the variance Σ v − 2 D A⁻¹ Dᵀ + D A⁻¹ (A − λ) A⁻¹ Dᵀ, since the covariance of Y and
the gradient of the log-likelihood is D. The test is that of X² = Σ (Σ (Y − e))²/Σ v by random signs of judgments, or
clusters (``lack_of_fit``): whether the *mean* grade of each pair is that of one scale, not whether the thresholds are
the same for all pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, diags_array

from concordant.preferences.connectivity import connectivity
from concordant.preferences.graphs import Batch
from concordant.ranking.bradley_terry import bradley_terry
from concordant.ranking.cumulative import Cuts
from concordant.ranking.curvature import Curvature, bradley_terry_curvature
from concordant.ranking.lack_of_fit import (
    FEWEST,
    FIXED_PRIOR,
    MOST_GRAPHS,
    WIDEST,
    Units,
    by_signs,
    inverse_information,
)
from concordant.ranking.scores import Scores

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class GradedPairs:
    """What a fit with ``ties="cumulative"`` expects of the grades of each judgment, edge by edge, by pairs of items."""

    batch: Batch
    curve: Curvature
    first: Ints
    """Nodes of each pair, as ``second``."""
    second: Ints
    joined: csr_array
    """(pairs, edges): 1 where a judgment is of the pair."""
    grade: Floats
    """Of each edge, positive for the pair's first; so are the next."""
    mean: Floats
    variance: Floats
    slopes: csr_array
    """(edges, parameters): of the mean."""

    @classmethod
    def of(cls, batch: Batch, scores: Scores) -> GradedPairs:
        """Lay out the judgments of a fit by ``bradley_terry``."""
        edges, nodes, curve = batch.edges, len(batch.item), bradley_terry_curvature(batch, scores)
        low, high = np.minimum(edges.winner, edges.loser), np.maximum(edges.winner, edges.loser)
        sign, rows = np.where(edges.winner == low, 1.0, -1.0), np.arange(len(low))
        found, pair = np.unique(low * nodes + high, return_inverse=True)
        graph = batch.graph[edges.holder]
        margin, beside = scores.value[low] - scores.value[high], list[tuple[str, Floats]]()
        for name in batch.prefs.covariate_names if scores.options.get("covariates") else ():
            z = sign * np.asarray(edges.covariates)[:, batch.prefs.covariate_names.index(name)]
            margin = margin + z * scores.coefficients[name][graph]
            beside.append((name, z))
        place = {
            key: nodes + at for at, key in enumerate(zip(curve.extra_owner.tolist(), curve.extra_name, strict=True))
        }
        mean, variance, slope = np.zeros((3, len(low)))
        row, column, entry = list[Ints](), list[Ints](), list[Floats]()
        for one in np.unique(graph).tolist():
            own = np.flatnonzero(graph == one)
            cuts = Cuts.of({name: float(each[one]) for name, each in scores.coefficients.items()})
            mean[own], variance[own], slope[own], slopes = (cuts or Cuts((), np.zeros(0))).grades(margin[own])
            slopes |= {name: slope[own] * z[own] for name, z in beside}
            for name, each in slopes.items():
                if (one, name) in place:
                    row, column, entry = [*row, own], [*column, np.full(len(own), place[one, name])], [*entry, each]
        where = (np.concatenate([rows, rows, *row]), np.concatenate([low, high, *column]))
        shape = (len(low), nodes + len(curve.extra_name))
        moved = coo_array((np.concatenate([slope, -slope, *entry]), where), shape=shape).tocsr()
        joined = coo_array((np.ones(len(low)), (pair.ravel(), rows)), shape=(len(found), len(low))).tocsr()
        grade = np.where(edges.tie, 0.0, sign * edges.strength)
        return cls(batch, curve, found // nodes, found % nodes, joined, grade, mean, variance, moved)

    @cached_property
    def times(self) -> Floats:
        """How often each judgment was made."""
        return self.batch.multiplicity[self.batch.edges.holder].astype(np.float64)

    def parameters(self, graph: int) -> Ints:
        """Those of a graph: its nodes, then its coefficients."""
        start = self.batch.node_start
        extras = len(self.batch.item) + np.flatnonzero(self.curve.extra_owner == graph)
        return np.concatenate([np.arange(start[graph], start[graph + 1]), extras])

    def pairs(self, graph: int) -> Ints:
        """The pairs of a graph."""
        start = self.batch.node_start
        return np.flatnonzero((self.first >= start[graph]) & (self.first < start[graph + 1]))

    def fit(self, graph: int, pairs: Ints) -> tuple[csr_array, Floats]:
        """D of a graph's pairs by its parameters, and A⁻¹ of these."""
        own, nodes = self.parameters(graph), int(self.batch.sizes[graph])
        whole = self.curve.hessian[own][:, own].toarray()
        moving = (self.joined[pairs] @ diags_array(self.times) @ self.slopes)[:, own].tocsr()
        return moving, inverse_information(whole, nodes, self.curve.prior)

    def units(self, graph: int, pairs: Ints) -> Units:
        """Clusters, or distinct judgments, of a graph."""
        edges, cluster = self.batch.edges, self.batch.prefs.cluster
        here = np.flatnonzero(self.batch.graph[edges.holder] == graph)
        holder = edges.holder[here]
        label, unit = np.unique(
            holder if cluster is None else cluster[self.batch.judgment[holder]], return_inverse=True
        )
        times = np.ones(len(here)) if cluster is None else self.times[here]
        gather = coo_array((times, (unit.ravel(), np.arange(len(here)))), shape=(len(label), len(here))).tocsr()
        of_pair = self.joined[pairs][:, here].T.tocsr()
        residual, variance = (
            gather @ diags_array(each[here]) @ of_pair for each in (self.grade - self.mean, self.variance)
        )
        draws = self.batch.multiplicity[label] if cluster is None else np.ones(len(label), np.int64)
        return Units(
            residual.tocsr(),
            variance.tocsr(),
            gather @ self.curve.contributions[holder][:, self.parameters(graph)],
            draws,
        )


def graded_lack_of_fit(batch: Batch, scores: Scores, *, seed: int = 0) -> Floats:
    """Return the p-value of each graph's test that one scale explains the mean grades of its pairs; NaN where untested.

    As of ``lack_of_fit``: graphs with fewer than 30 judgments, no more pairs than scores, or more than 500 parameters.
    """
    found = np.full(len(batch), np.nan)
    if float(scores.options.get("prior", 0.0)) > FIXED_PRIOR:
        chosen = bool(scores.options.get("covariates"))
        scores = bradley_terry(batch, prior=FIXED_PRIOR, ties="cumulative", covariates=chosen)
    held = GradedPairs.of(batch, scores)
    blocks = connectivity(batch.graphs).component.astype(np.int64)
    free = batch.graphs.pairs.sizes - (batch.sizes - batch.node_groups.most(blocks) - 1)
    open_ = np.flatnonzero((batch.judgments >= FEWEST) & (free > 0))
    for graph in open_.tolist() if len(open_) <= MOST_GRAPHS else ():
        if len(held.parameters(graph)) > WIDEST:
            continue
        pairs = held.pairs(graph)
        moving, inverse = held.fit(graph, pairs)
        variance = (held.joined @ (held.times * held.variance))[pairs]
        if (variance > 0).all():  # not so where all judgments are ties
            found[graph] = by_signs(held.units(graph, pairs), moving, inverse, variance, seed)
    return found
