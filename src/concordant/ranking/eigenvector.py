"""Principal eigenvector of the reciprocal matrix of win ratios (AoS §5.1, Saaty 2003)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from concordant.errors import CannotRank
from concordant.preferences.graphs import Batch, Graphs
from concordant.preferences.ragged import Ragged, centred
from concordant.preferences.status import Status
from concordant.ranking.closed_forms import C0, pair_log_odds
from concordant.ranking.scores import Scores, never_judged, unfinished

Floats = NDArray[np.float64]
SPREAD = 1e-12
"""Relative gap between the Collatz–Wielandt bounds of the eigenvalue at which a graph is done."""
FAR, SMALL = 10.0, 2_000
"""Log of a ratio from which a graph's matrix is written out in full, in graphs of up to so many items."""
WIDEST = 170.0
"""Largest log of a ratio: scores then span less than twice its exponential, and products stay in float64."""
SHIFT = 0.25
"""Share of the eigenvalue added to the diagonal: cycles otherwise make the iteration turn for long."""


def principal_eigenvector(batch: Batch, *, c0: float = C0, iterations: int = 10_000) -> Scores:
    """Perron vector of the positive reciprocal matrix A_jl = (n_jl + c0) / (n_lj + c0) (AoS §5.1).

    Pairs never judged and the diagonal have ratio 1. A is the all-ones matrix plus a sparse one, so a power step costs
    as many operations as there are pairs. s_i / s_j ≈ A_ij; each graph's scores have geometric mean 1. An item in no
    comparison has what ratio 1 against all gives: Σ_j s_j / λ (1 in a graph without comparisons).
    The power iteration stops when min (Ax)_i/x_i and max (Ax)_i/x_i, between which the eigenvalue lies (Collatz,
    Wielandt), agree to 1e-12; ``gradient`` of the result is their relative gap, ``status`` says which graphs got
    there.

    Errors: CannotRank for win ratios beyond 1e74 : 1, whose products leave floating point.

    >>> from concordant.preferences.preferences import Preferences
    >>> votes = Preferences.from_comparisons(["x"] * 3, ["y"] * 3)
    >>> principal_eigenvector(Batch.whole(votes), c0=1.0).value.round(9)
    array([2. , 0.5])
    """
    graphs = batch.graphs
    sparse, ones, lost = _matrix(graphs, c0)
    owner, number = graphs.owner, len(graphs)
    x = np.ones(graphs.nodes)
    gap = np.zeros(number)
    done = np.full(number, -1, np.int64)
    for step in range(1, iterations + 1):
        if graphs.nodes == 0:
            break
        product = (ones * graphs.node_groups.sums(x))[owner] + sparse @ x
        low, high = _bounds(product / x, graphs.node_groups)
        gap = np.where(done < 0, (high - low) / high, gap)
        new_done = (done < 0) & (gap <= SPREAD)
        done[new_done] = step
        x = np.where(new_done[owner], product / high[owner], x)  # the last step, for nothing
        if (done >= 0).all():
            break
        new = product + SHIFT * high[owner] * x
        new /= _bounds(new, graphs.node_groups)[1][owner]
        x = np.where(done[owner] < 0, new, x)
    value = np.exp(centred(np.log(x), owner))
    reached = (done >= 0) & ~lost
    return Scores(
        value=value,
        components=graphs,
        status=np.where(reached, Status.CONVERGED, Status.STOPPED).astype(np.int8),
        iterations=np.where(reached, done, iterations),
        gradient=gap,
        notes=(
            *never_judged(
                "eigenvector", graphs, "they count as level (ratio 1), which draws items with few opponents together."
            ),
            *unfinished("eigenvector", ~reached),
        ),
        options={"c0": c0},
    )


def _matrix(graphs: Graphs, c0: float) -> tuple[csr_array, Floats, NDArray[np.bool_]]:
    """A less 11ᵀ where only judged pairs have an entry, what each graph has of 11ᵀ, and which graphs lose by that.

    Small ratios beside 1 are lost in the difference, so small graphs with ratios far from 1 have all of A's entries.
    """
    odds = pair_log_odds(graphs, c0)
    beyond = np.abs(odds) > WIDEST
    if beyond.any():
        raise CannotRank(
            f"eigenvector: {int(beyond.sum()):,} pairs have win ratios beyond 1e{WIDEST / np.log(10):.0f} : 1, with "
            "which the iteration leaves floating point; take bradley-terry or log-odds, or weights nearer to each other"
        )
    rows = np.concatenate([graphs.first, graphs.second])
    columns = np.concatenate([graphs.second, graphs.first])
    far = np.zeros(len(graphs), bool)
    far[graphs.graph[np.abs(odds) > FAR]] = True
    whole = far & (graphs.sizes <= SMALL)
    away = np.expm1(np.concatenate([odds, -odds]))
    if whole.any():
        inside = np.tile(whole[graphs.graph], 2)
        away[inside] = np.exp(np.concatenate([odds, -odds]))[inside]
        for g in np.flatnonzero(whole):
            low, high = int(graphs.node_start[g]), int(graphs.node_start[g + 1])
            even = np.ones((high - low, high - low), bool)
            own = slice(int(graphs.pair_start[g]), int(graphs.pair_start[g + 1]))
            even[graphs.first[own] - low, graphs.second[own] - low] = False
            even[graphs.second[own] - low, graphs.first[own] - low] = False
            i, j = np.nonzero(even)
            rows, columns = np.concatenate([rows, i + low]), np.concatenate([columns, j + low])
            away = np.concatenate([away, np.ones(len(i))])
    matrix = csr_array((away, (rows, columns)), shape=(graphs.nodes, graphs.nodes))
    return matrix, np.where(whole, 0.0, 1.0), far & ~whole


def _bounds(x: Floats, graphs: Ragged) -> tuple[Floats, Floats]:
    """Least and largest value of each graph; 1 for a graph without nodes."""
    return graphs.least(x, 1.0), graphs.most(x, 1.0)
