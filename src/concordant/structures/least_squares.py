"""Thurstone–Mosteller least squares on pairwise log-odds (AoS (22))."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from concordant.connectivity import connectivity
from concordant.errors import UsageError
from concordant.graphs import Batch, Graphs
from concordant.structures.conjugate_gradients import conjugate_gradients
from concordant.structures.elimination import FAR, Elimination
from concordant.structures.gauge import centre, numbered
from concordant.structures.log_odds import C0, pair_log_odds
from concordant.structures.scores import CLOSED_FORM, CONVERGED, STOPPED, Scores

__all__ = ["thurstone_mosteller"]

Floats = NDArray[np.float64]
PRECISE = 1e-14
STEPS = 300
"""Conjugate gradients get so many steps; graphs that need more (long chains) are then eliminated instead."""
LONG = 20_000
"""Steps for those that elimination would fill too much."""


def thurstone_mosteller(batch: Batch, *, c0: float = C0, weights: str = "pairs") -> Scores:
    """Least-squares scores s_i − s_j ≈ A_ij (AoS (22)): s = (D_Ω − Ω)^† (Ω∘A) 1, A_jl = log (n_jl+c0)/(n_lj+c0).

    Ω_jl is 1 on judged pairs and 0 elsewhere (``weights="pairs"``, the paper), or the strength n_jl + n_lj of the
    judgments (``weights="counts"``). Unjudged pairs take no part, so incomplete designs are not biased. The solution
    of least norm: scores sum to zero in every component; items in no comparison have 0.

    Solved as one sparse Laplacian system over the batch, by conjugate gradients, and by elimination where those are
    slow (long chains) or the weights lie far apart. ``gradient``: the largest entry of (D_Ω − Ω)s − (Ω∘A)1.

    Errors: UsageError for unknown ``weights`` or a c0 that is not allowed.

    >>> from concordant.preferences import Preferences
    >>> votes = Preferences.from_comparisons(["x"] * 3 + ["y"] * 3, ["y"] * 3 + ["z"] * 3)
    >>> thurstone_mosteller(Batch.whole(votes), c0=1.0).value.round(4)
    array([ 1.3863,  0.    , -1.3863])
    """
    if weights not in ("pairs", "counts"):
        raise UsageError(f"weights is 'pairs' or 'counts', not {weights!r}")
    graphs = batch.graphs
    odds = pair_log_odds(graphs, c0)
    omega = np.ones(len(odds)) if weights == "pairs" else graphs.above + graphs.below
    component = connectivity(graphs).component
    group = numbered(graphs.owner, component)
    pull = graphs.add_to_nodes(omega * odds, -omega * odds)
    laplacian = _laplacian(graphs, omega)
    value, solved = _solve(laplacian, pull, graphs, STEPS)
    long = np.zeros(len(graphs), bool)
    far = _far(graphs, omega)
    for g in np.flatnonzero(~solved | far):
        nodes = slice(int(graphs.node_start[g]), int(graphs.node_start[g + 1]))
        pairs = slice(int(graphs.pair_start[g]), int(graphs.pair_start[g + 1]))
        first, second = graphs.first[pairs] - nodes.start, graphs.second[pairs] - nodes.start
        order = Elimination.of(first, second, nodes.stop - nodes.start)
        none = np.zeros(nodes.stop - nodes.start)
        found = None if order is None else order.least_squares(omega[pairs], (omega * odds)[pairs], none, none)
        long[g] = found is None
        if found is not None:
            value[nodes], solved[g] = found, True
    if long.any():
        again, ended = _solve(laplacian, pull, graphs, LONG)
        value = np.where(long[graphs.owner], again, value)
        solved = np.where(long, ended & ~far, solved)
    value = centre(value, group)
    left = np.abs(laplacian @ value - pull)
    gradient = np.zeros(len(graphs))
    np.maximum.at(gradient, graphs.owner, left)
    scale = laplacian.diagonal() * np.maximum(np.abs(value), 1.0)  # of each item: a weak one is not lost beside others
    np.logical_and.at(solved, graphs.owner, left <= 1e-9 * scale)
    judged = np.diff(graphs.pair_start) > 0
    stopped = int((judged & ~solved).sum())
    return Scores(
        value=value,
        component=component,
        status=np.where(judged, np.where(solved, CONVERGED, STOPPED), CLOSED_FORM).astype(np.int8),
        iterations=np.zeros(len(graphs), np.int64),
        gradient=gradient,
        notes=(f"thurstone-mosteller: {stopped:,} graphs stopped before convergence.",) if stopped else (),
        options={"c0": c0, "weights": weights},
    )


def _laplacian(graphs: Graphs, omega: Floats) -> csr_array:
    """D_Ω − Ω of the whole batch."""
    nodes = np.arange(graphs.nodes)
    rows = np.concatenate([graphs.first, graphs.second, nodes])
    columns = np.concatenate([graphs.second, graphs.first, nodes])
    entries = np.concatenate([-omega, -omega, graphs.add_to_nodes(omega, omega)])
    return csr_array((entries, (rows, columns)), shape=(graphs.nodes, graphs.nodes))


def _solve(laplacian: csr_array, pull: Floats, graphs: Graphs, steps: int) -> tuple[Floats, NDArray[np.bool_]]:
    return conjugate_gradients(
        laplacian.__matmul__,
        laplacian.diagonal(),
        pull,
        graphs.owner,
        len(graphs),
        tolerance=PRECISE,
        iterations=steps,
    )


def _far(graphs: Graphs, omega: Floats) -> NDArray[np.bool_]:
    """Graphs whose weights lie too far apart for sums over nodes."""
    far = np.zeros(len(graphs), bool)
    some = np.flatnonzero(np.diff(graphs.pair_start))
    if len(some):
        begin = graphs.pair_start[some]
        far[some] = np.minimum.reduceat(omega, begin) < FAR * np.maximum.reduceat(omega, begin)
    return far
