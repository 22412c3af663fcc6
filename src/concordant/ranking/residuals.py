"""Residuals of the pairs of a Bradley–Terry fit, and of graded preferences, and their standard errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from concordant.preferences.graphs import Batch
from concordant.ranking.graded_fit import GradedPairs
from concordant.ranking.lack_of_fit import SIGNED, WIDEST, Design, FittedPairs, heights, two_items, unit_residuals
from concordant.ranking.scores import Scores

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Residuals:
    """What the scores expect of each pair of items, and what was observed; shapes (pairs,)."""

    graph: Ints
    first: Ints
    """Nodes, as ``second``."""
    second: Ints
    judgments: Floats
    expected: Floats
    observed: Floats
    standardised: Floats
    """NaN where the error is 0 or one unit alone says what it is."""


def standardised(batch: Batch, scores: Scores) -> Residuals:
    """Return residuals of pairs of items, added up over the values of covariates, and over their standard errors.

    With J what adds pairs up, V their variances, X the design, A the information with the prior λ and M = J V X:
    var(J r) = J V 1 − 2 M A⁻¹ Mᵀ + M A⁻¹ (A − λ) A⁻¹ Mᵀ, on the diagonal. Of C clusters with the residuals r_c it is
    Σ_c (J r_c − M A⁻¹ Xᵀ r_c)² · C/(C − 1), where two or more of them judged the pair: one alone would be its own
    standard error. Graphs with more than ``WIDEST`` parameters: √(J V 1), a little too large.
    """
    if scores.options.get("ties") == "cumulative":
        return _of_grades(batch, scores)
    fitted = FittedPairs.of(batch, scores)
    graphs = fitted.graphs
    joined = two_items(graphs, slice(0, len(graphs.first)))
    lead = joined.indices[joined.indptr[:-1]]
    variance, residual = joined @ fitted.variance, joined @ fitted.residual
    place = np.searchsorted(graphs.graph[lead], np.arange(len(graphs) + 1))
    clustered = batch.prefs.cluster is not None
    for graph in range(len(graphs)):
        pairs, nodes = fitted.part(graph)
        wide = nodes.stop - nodes.start + fitted.extras > WIDEST
        if pairs.stop == pairs.start or (wide and not clustered):
            continue
        own, summed = slice(place[graph], place[graph + 1]), two_items(graphs, pairs)
        if wide:
            judged = unit_residuals(batch, fitted, graph)
            variance[own] = _of_clusters(judged[0] @ summed.T, judged[1] @ summed.T, None)
            continue
        design, v = Design.of(fitted, graph), fitted.variance[pairs]
        inverse = design.inverse(v, fitted.prior)
        moving = (summed @ design.matrix.multiply(v[:, None])).tocsr()
        if clustered:
            judged = unit_residuals(batch, fitted, graph)
            variance[own] = _of_clusters(
                judged[0] @ summed.T, judged[1] @ summed.T, (judged[0] @ design.matrix, inverse @ moving.T)
            )
            continue
        inner = inverse - fitted.prior * (inverse[:, : design.nodes] @ inverse[: design.nodes])
        variance[own] += heights(moving, inner - 2 * inverse)
    some = variance > 1e-9 * (joined @ fitted.variance)
    found = np.where(some, residual / np.sqrt(np.where(some, variance, 1.0)), np.nan)
    judgments, expected, observed = (joined @ each for each in (fitted.judgments, fitted.expected, graphs.above))
    graph_of, first, second = (each[lead].astype(np.int64) for each in (graphs.graph, graphs.first, graphs.second))
    return Residuals(graph_of, first, second, judgments, expected, observed, found)


def _of_grades(batch: Batch, scores: Scores) -> Residuals:
    """The same of graded preferences, whose observed and expected sums are those of grades, positive for the first."""
    held = GradedPairs.of(batch, scores)
    model, residual = (held.joined @ (held.times * x) for x in (held.variance, held.grade - held.mean))
    variance, clustered = model.copy(), batch.prefs.cluster is not None
    for graph in range(len(batch)):
        pairs, own = held.pairs(graph), held.parameters(graph)
        if not len(pairs) or (len(own) > WIDEST and not clustered):
            continue
        units = held.units(graph, pairs) if clustered else None
        if len(own) > WIDEST and units is not None:
            variance[pairs] = _of_clusters(units.residual, units.variance, None)
            continue
        moving, inverse = held.fit(graph, pairs)
        if units is not None:
            variance[pairs] = _of_clusters(units.residual, units.variance, (units.score, inverse @ moving.T))
            continue
        nodes = int(batch.sizes[graph])
        inner = inverse - held.curve.prior * (inverse[:, :nodes] @ inverse[:nodes])
        variance[pairs] += heights(moving, inner - 2 * inverse)
    some = variance > 1e-9 * model
    found = np.where(some, residual / np.sqrt(np.where(some, variance, 1.0)), np.nan)
    judgments, expected, observed = (
        held.joined @ (held.times * x) for x in (np.ones_like(held.mean), held.mean, held.grade)
    )
    graph_of = np.searchsorted(batch.node_start, held.first, side="right") - 1
    return Residuals(graph_of, held.first, held.second, judgments, expected, observed, found)


def _of_clusters(residual: csr_array, shares: csr_array, fit: tuple[csr_array, Floats] | None) -> Floats:
    """The variance of residuals of pairs of items from those of the clusters, 0 where one alone judged the pair.

    ``residual`` and ``shares`` of the variance: (clusters, pairs). ``fit``: the clusters' gradients and A⁻¹ Mᵀ; None
    leaves out that the scores were fitted.
    """
    units, pairs = residual.shape
    total = np.zeros(pairs)
    step = max(1, SIGNED // max(pairs, 1))
    for begin in range(0, units, step):
        left = residual[begin : begin + step].toarray()
        if fit is not None:
            left -= fit[0][begin : begin + step] @ fit[1]
        total += (left**2).sum(axis=0)
    several = np.bincount(shares.tocsr().indices, minlength=pairs) > 1
    return np.where(several, total * (units / max(units - 1, 1)), 0.0)
