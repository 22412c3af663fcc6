"""Thurstone–Mosteller least squares on pairwise log-odds (AoS (22))."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array
from scipy.sparse.linalg import splu

from concordant.connectivity import connectivity
from concordant.errors import UsageError
from concordant.graphs import Batch, Graphs
from concordant.structures.conjugate_gradients import conjugate_gradients
from concordant.structures.gauge import centre, numbered
from concordant.structures.log_odds import C0, pair_log_odds
from concordant.structures.scores import CLOSED_FORM, CONVERGED, STOPPED, Scores

__all__ = ["thurstone_mosteller"]

Floats = NDArray[np.float64]
PRECISE = 1e-14
STEPS = 300
"""Conjugate gradients get so many steps; graphs that need more (long chains) are then factorised instead."""
DIRECT = 3_000
"""Graphs of more items than this are factorised only when they are nearly trees, else get LONG steps."""
LONG = 20_000


def thurstone_mosteller(batch: Batch, *, c0: float = C0, weights: str = "pairs") -> Scores:
    """Least-squares scores s_i − s_j ≈ A_ij (AoS (22)): s = (D_Ω − Ω)^† (Ω∘A) 1, A_jl = log (n_jl+c0)/(n_lj+c0).

    Ω_jl is 1 on judged pairs and 0 elsewhere (``weights="pairs"``, the paper), or the strength n_jl + n_lj of the
    judgments (``weights="counts"``). Unjudged pairs take no part, so incomplete designs are not biased. The solution
    of least norm: scores sum to zero in every component; items in no comparison have 0.

    Solved as one sparse Laplacian system over the batch, by conjugate gradients, and by factorisation where those are
    slow (long chains). ``gradient``: the largest entry of (D_Ω − Ω)s − (Ω∘A)1.

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
    if not solved.all():
        size, pairs = np.diff(graphs.node_start), np.diff(graphs.pair_start)
        direct = ~solved & ((size <= DIRECT) | (pairs <= 1.1 * size))
        if not (solved | direct).all():
            value = np.where((solved | direct)[graphs.owner], value, _solve(laplacian, pull, graphs, LONG)[0])
        if direct.any():
            value = _factorised(laplacian, pull, direct[graphs.owner], group, value)
    value = centre(value, group)
    left = np.abs(laplacian @ value - pull)
    gradient = np.zeros(len(graphs))
    np.maximum.at(gradient, graphs.owner, left)
    scale = np.zeros(len(graphs))
    np.maximum.at(scale, graphs.owner, laplacian.diagonal() * np.maximum(np.abs(value), 1.0))
    reached = np.where(gradient <= 1e-9 * np.maximum(scale, 1.0), CONVERGED, STOPPED)
    return Scores(
        value=value,
        component=component,
        status=np.where(np.diff(graphs.pair_start) == 0, CLOSED_FORM, reached).astype(np.int8),
        iterations=np.zeros(len(graphs), np.int64),
        gradient=gradient,
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


def _factorised(
    laplacian: csr_array, pull: Floats, chosen: NDArray[np.bool_], group: NDArray[np.int64], value: Floats
) -> Floats:
    """Solve for the chosen nodes by a sparse factorisation, the first node of each component held at 0."""
    _, anchors = np.unique(group, return_index=True)
    free = chosen.copy()
    free[anchors] = False
    block = csc_array(laplacian[free][:, free])
    factor = splu(block, permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True}, diag_pivot_thresh=0.0)
    answer = factor.solve(pull[free])
    answer += factor.solve(pull[free] - block @ answer)
    value = np.where(chosen, 0.0, value)
    value[free] = answer
    return value
