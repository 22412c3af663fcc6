"""Second derivatives and per-judgment gradients of a fitted Bradley–Terry likelihood, for intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.special import xlogy

from concordant.preferences.graphs import Batch, Graphs
from concordant.ranking.cumulative import Graded
from concordant.ranking.problem import davidson_derivatives, davidson_probabilities, win_derivatives, win_probability
from concordant.ranking.scores import Scores

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
BLOCK = 1 << 17  # pairs whose weights are computed at once


@dataclass(frozen=True, eq=False)
class Curvature:
    """Second derivatives and per-judgment gradients of a fitted likelihood.

    Parameters: the nodes, then the extra coefficients graph by graph (covariates in the order of their names, then
    log ν).
    """

    hessian: csr_array
    """Shape (parameters, parameters), of the negative log-likelihood at the fit without the prior: for Bradley–Terry
    the weighted Laplacian Σ n p(1 − p)."""
    prior: float
    """Precision to add on the nodes' diagonal."""
    gradients: Callable[..., csr_array]
    """Computes ``contributions``, which only the sandwich needs; where ``by_kind`` also those of the batch it is given,
    such as that of the kinds of judgments."""
    log_likelihood: Callable[[], float]
    """Computes the log-likelihood at the fit, all graphs together, without the prior."""
    extra_owner: Ints
    """Graph of each extra parameter."""
    extra_name: tuple[str, ...] = ()
    """Its name, as in ``Scores.coefficients``."""
    by_kind: bool = False
    meat: Callable[[], Any] | None = None
    """Makes the ``Meat`` of the sandwich where the judgments lie elsewhere and only their sums are here."""

    @cached_property
    def contributions(self) -> csr_array:
        """Shape (held judgments, parameters): gradient of the log-likelihood of one draw of that judgment.

        Strength is included, multiplicity not.
        """
        return self.gradients()


def pair_weights(graphs: Graphs, value: Floats) -> Floats:
    """n p(1 − p) of every pair at these scores (no covariates, ties half a win each way); shape (pairs,).

    >>> votes = Graphs.from_edges(np.array([0, 2]), np.array([0, 1]), np.array([1, 0]), np.array([3.0, 1.0]))
    >>> pair_weights(votes, np.zeros(2))
    array([1.])
    """
    pairs = len(graphs.first)
    out = np.empty(pairs)
    for begin in range(0, pairs, BLOCK):
        k = slice(begin, begin + BLOCK)
        win, loss = win_probability(value[graphs.first[k]] - value[graphs.second[k]])
        win *= loss
        out[k] = win * (graphs.wins[k] + graphs.losses[k] + graphs.ties[k])
    return out


def laplacian(graphs: Graphs, weights: Floats) -> csr_array:
    """Return the weighted Laplacian of the pairs, shape (nodes, nodes)."""
    n = graphs.nodes
    upper = coo_array((-weights, (graphs.first, graphs.second)), shape=(n, n)).tocsr()
    nodes = np.arange(n)
    diagonal = csr_array((graphs.add_to_nodes(weights, weights), (nodes, nodes)), shape=(n, n))
    return (upper + upper.T + diagonal).tocsr()


def bradley_terry_curvature(batch: Batch, scores: Scores) -> Curvature:
    """Return the curvature of a fit by ``bradley_terry`` on this batch.

    Any kind of judgments that was read as pairs: several edges of one judgment add up in its row. The contributions
    are computed only when asked for.
    """
    covariates = bool(scores.options.get("covariates"))
    if scores.options.get("ties") == "cumulative":
        return _of_thresholds(batch, scores)
    graphs = Graphs.of(batch, covariates=True) if covariates else batch.graphs
    names = batch.prefs.covariate_names if covariates else ()
    place, owner, extra_name = _extras(graphs, scores, names)
    return Curvature(
        _hessian(graphs, scores, names, place),
        float(scores.options.get("prior", 0.0)),
        lambda of=batch: _contributions(of, scores, names, place, graphs.nodes + len(owner)),
        partial(_log_likelihood, graphs, scores, names),
        owner,
        extra_name,
        by_kind=True,
    )


def _of_thresholds(batch: Batch, scores: Scores) -> Curvature:
    """The curvature of a fit with ``ties="cumulative"``: scores, then covariates and free thresholds graph by graph."""
    graded = Graded.fitted(batch, scores.coefficients)
    names = graded.names
    graphs, whole, own = graded.graphs, (*names, *graded.thresholds), graded.taken(scores.coefficients)
    there = np.column_stack([*[graphs.pairs.sizes > 0] * len(names), graded.free])
    place, owner, extra_name = _numbered(graphs.nodes, there, whole)
    known = replace(scores, coefficients={**scores.coefficients, **dict(zip(graded.thresholds, own.T, strict=True))})
    size = graphs.nodes + len(owner)

    def gradients() -> csr_array:
        edge, winner, loser, _, z = graded.split
        return graded.contributions(_margins(known, whole, graded.graph[edge], winner, loser, z), own, place, size)

    return Curvature(
        csr_array(_hessian(graphs, known, whole, place) + graded.bend(own, place[:, len(names) :], size)),
        float(scores.options.get("prior", 0.0)),
        gradients,
        lambda: _log_likelihood(graphs, known, whole) + graded.apart(own),
        owner,
        extra_name,
    )


def _extras(graphs: Graphs, scores: Scores, names: tuple[str, ...]) -> tuple[Ints, Ints, tuple[str, ...]]:
    """Parameter number of each (graph, coefficient), −1 where there is none; graph and name of each in turn."""
    judged = graphs.pairs.sizes > 0
    there = [judged] * len(names)
    if "ties" in scores.coefficients and scores.options.get("ties") == "davidson":
        names = (*names, "ties")
        there = [*there, np.isfinite(scores.coefficients["ties"])]
    if not names:
        return np.zeros((len(graphs), 0), np.int64), np.zeros(0, np.int64), ()
    return _numbered(graphs.nodes, np.column_stack(there), names)


def _numbered(nodes: int, present: NDArray[np.bool_], names: tuple[str, ...]) -> tuple[Ints, Ints, tuple[str, ...]]:
    place = np.full(present.shape, -1, np.int64)
    place[present] = nodes + np.arange(int(present.sum()))
    owner, column = np.nonzero(present)
    return place, owner.astype(np.int64), tuple(names[i] for i in column)


def _margins(
    scores: Scores, names: tuple[str, ...], graph: Ints, j: Ints, other: Ints, covariates: Floats | None
) -> Floats:
    margin = scores.value[j] - scores.value[other]
    if covariates is not None:
        for i, name in enumerate(names):
            margin += covariates[:, i] * scores.coefficients[name][graph]
    return margin


def _log_nu(scores: Scores, graph: Ints) -> tuple[Floats, NDArray[np.bool_]]:
    """log ν for each pair or edge (0 where there is none), and where there is one."""
    if scores.options.get("ties") != "davidson":
        return np.zeros(len(graph)), np.zeros(len(graph), bool)
    log_nu = scores.coefficients["ties"][graph]
    own = np.isfinite(log_nu)
    return np.where(own, log_nu, 0.0), own


def _hessian(graphs: Graphs, scores: Scores, names: tuple[str, ...], place: Ints) -> csr_array:
    n, extras = graphs.nodes, int((place >= 0).sum())
    if extras == 0:
        return laplacian(graphs, pair_weights(graphs, scores.value))
    graph = graphs.graph
    margin = pair_margins(graphs, scores, names)
    log_nu, own = _log_nu(scores, graph)
    curve = win_derivatives(margin, graphs.above, graphs.below)[1]
    cross = bend = np.zeros(0)
    if own.any():
        _, own_curve, _, cross, bend = davidson_derivatives(margin, log_nu, graphs.wins, graphs.losses, graphs.ties)
        curve = np.where(own, own_curve, curve)
    z = np.zeros((len(curve), 0)) if graphs.covariates is None else graphs.covariates
    scored = laplacian(graphs, curve).tocoo()
    rows, columns, values = [scored.row], [scored.col], [scored.data]

    def add(i: Ints, j: Ints, x: Floats) -> None:
        keep = (i >= 0) & (j >= 0)
        rows.append(i[keep])
        columns.append(j[keep])
        values.append(x[keep])

    flows = list((z * curve[:, None]).T)
    if own.any():
        flows.append(np.where(own, cross, 0.0))
    judged = np.flatnonzero(graphs.add_to_nodes(np.ones(len(curve)), np.ones(len(curve))))
    for i, flow in enumerate(flows):
        here, border = place[graphs.owner[judged], i], graphs.add_to_nodes(flow, -flow)[judged]
        add(judged, here, border)
        add(here, judged, border)
        for k in range(z.shape[1]):
            corner = graphs.pairs.sums(flow * z[:, k])
            add(place[:, i], place[:, k], corner)
            if i >= z.shape[1]:
                add(place[:, k], place[:, i], corner)
    if own.any():
        add(place[:, -1], place[:, -1], graphs.pairs.sums(bend))
    whole = coo_array(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=(n + extras, n + extras)
    )
    return whole.tocsr()


def pair_margins(graphs: Graphs, scores: Scores, names: tuple[str, ...]) -> Floats:
    """s_j − s_l + z·β of each pair, with the covariates ``names``; shape (pairs,)."""
    return _margins(scores, names, graphs.graph, graphs.first, graphs.second, graphs.covariates)


def log_likelihood(graphs: Graphs, margin: Floats, log_nu: Floats | None) -> float:
    """Return the log-likelihood of pairs with these margins, all together."""
    return float(pair_log_likelihoods(graphs, margin, log_nu).sum())


def pair_log_likelihoods(graphs: Graphs, margin: Floats, log_nu: Floats | None) -> Floats:
    """Return the log-likelihood of each pair with these margins.

    ``log_nu`` of Davidson's ties, of each pair: −∞ or NaN where nothing tied, ∞ where all did; None: half wins.
    """
    win, loss = win_probability(margin)
    plain = xlogy(graphs.above, win) + xlogy(graphs.below, loss)
    if log_nu is None:
        return np.asarray(plain)
    own = np.isfinite(log_nu)
    win, loss, tie = davidson_probabilities(margin, np.where(own, log_nu, 0.0))
    tied = xlogy(graphs.wins, win) + xlogy(graphs.losses, loss) + xlogy(graphs.ties, tie)
    return np.asarray(np.where(own, tied, np.where(np.isposinf(log_nu), 0.0, plain)))


def _log_likelihood(graphs: Graphs, scores: Scores, names: tuple[str, ...]) -> float:
    log_nu = scores.coefficients["ties"][graphs.graph] if scores.options.get("ties") == "davidson" else None
    return log_likelihood(graphs, pair_margins(graphs, scores, names), log_nu)


def _contributions(batch: Batch, scores: Scores, names: tuple[str, ...], place: Ints, parameters: int) -> csr_array:
    edges = batch.edges
    graph = batch.graph[edges.holder]
    z = edges.covariates if names else None
    margin = _margins(scores, names, graph, edges.winner, edges.loser, z)
    log_nu, own = _log_nu(scores, graph)
    win, loss = win_probability(margin)
    pull = np.where(edges.tie, 0.5 * (loss - win), loss)
    tie_pull = np.zeros(len(pull))
    if own.any():
        win, loss, tie = davidson_probabilities(margin, log_nu)
        pull = np.where(own, np.where(edges.tie, 0.5 * (loss - win), loss + 0.5 * tie), pull)
        tie_pull = np.where(edges.tie, win + loss, -tie)
    pull *= edges.strength
    rows, columns, values = [edges.holder, edges.holder], [edges.winner, edges.loser], [pull, -pull]
    extra = [z[:, i] * pull for i in range(len(names))] if z is not None else []
    if place.shape[1] > len(names):
        extra.append(tie_pull * edges.strength)
    for i, x in enumerate(extra):
        there = place[graph, i] >= 0
        rows.append(edges.holder[there])
        columns.append(place[graph, i][there])
        values.append(x[there])
    entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
    return coo_array(entries, shape=(len(batch.judgment), parameters)).tocsr()
