"""What one more judgment on a pair would gain, for all pairs of a stack of components at once.

Scores s with covariance V; v_ab = V_aa + V_bb − 2V_ab, d_ab = s_a − s_b. Once V has shrunk to V', the expected number
of pairs of a set C that stand in the wrong order, averaged over the truth given the data, is for small V' about

    E(V') = √(2/π) Σ_{ab in C} p_ab √v'_ab,   p_ab = φ(d_ab/√v_ab)/√v_ab,

with p_ab the density at 0 of the true difference (∫ p_ab Φ(−|x|/√v') dx = √(2/π) p_ab √v'). k judgments on (i, j) add
the information w(e_i − e_j)(e_i − e_j)ᵀ, w = k π_ij(1 − π_ij), and by Sherman and Morrison (Ann. Math. Statist. 21,
1950) take [c_abᵀV(e_i − e_j)]² w/(1 + w v_ij) off v_ab. To first order E falls by

    gain_ij = w (e_i − e_j)ᵀ M (e_i − e_j)/(1 + w v_ij),   M = V L V,

L the Laplacian with the weights p_ab/√(2π v_ab) on C: a c-optimal design for many contrasts (Atkinson, Donev and
Tobias, Optimum Experimental Designs, 2007, ch. 10), weighted by what is undecided.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["chosen_pairs", "undecided_weights"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
SHORTLIST, PER_PAIR = 400, 40
"""How many of the best pairs the greedy choice goes on with: at least so many, and so many for each pair wanted."""


def undecided_weights(value: Floats, covariance: Floats, top: NDArray[np.bool_] | None) -> Floats:
    """The weights p_ab/√(2π v_ab) of the pairs in C: all, or one inside ``top`` and one outside; shape (G, n, n)."""
    v = _between(covariance)
    t = np.abs(value[:, :, None] - value[:, None, :]) / np.sqrt(v)
    weight = np.exp(-0.5 * t * t) / (2.0 * np.pi * v)
    if top is not None:
        weight *= top[:, :, None] != top[:, None, :]
    np.einsum("gii->gi", weight)[:] = 0.0
    return np.asarray(weight)


def chosen_pairs(
    value: Floats, covariance: Floats, weight: Floats, most: int, each: float = 1.0
) -> tuple[Ints, Ints, Floats]:
    """Choose up to ``most`` different pairs, one after the other, as if the earlier ones had ``each`` more judgments.

    ``value`` (G, n), ``covariance`` and ``weight`` (G, n, n). Returns columns of the better and the worse item and the
    gain when chosen, shapes (G, pairs). The choice is among the 400 pairs (40 for each wanted) that gain most alone.
    """
    n = value.shape[1]
    laplacian = -weight
    np.einsum("gii->gi", laplacian)[:] = weight.sum(axis=2)
    mixed = covariance @ laplacian @ covariance
    first, second, v, m, w = _shortlist(value, covariance, mixed, most, each)
    pairs = min(most, n * (n - 1) // 2)
    better, worse = np.empty((len(value), pairs), np.int64), np.empty((len(value), pairs), np.int64)
    gains = np.empty((len(value), pairs))
    steps: list[tuple[Floats, Floats, Floats, Floats]] = []  # V' and M' are V and M less these rank-one terms
    graph = np.arange(len(value))
    free = np.ones(first.shape, bool)
    for number in range(pairs):
        gain = np.where(free, w * m / (1.0 + w * v), -1.0)
        at = gain.argmax(axis=1)
        i, j = first[graph, at], second[graph, at]
        better[:, number], worse[:, number], gains[:, number] = i, j, gain[graph, at]
        free[graph, at] = False
        u = covariance[graph, :, i] - covariance[graph, :, j]
        q = mixed[graph, :, i] - mixed[graph, :, j]
        for beta, kappa, old_u, old_q in steps:
            along_u = (old_u[graph, i] - old_u[graph, j])[:, None]
            along_q = (old_q[graph, i] - old_q[graph, j])[:, None]
            u = u - beta * old_u * along_u
            q = q - beta * (old_u * along_q + old_q * along_u) + beta**2 * kappa * old_u * along_u
        beta = (w[graph, at] / (1.0 + w[graph, at] * (u[graph, i] - u[graph, j])))[:, None]
        kappa = (q[graph, i] - q[graph, j])[:, None]
        steps.append((beta, kappa, u, q))
        du = np.take_along_axis(u, first, 1) - np.take_along_axis(u, second, 1)
        dq = np.take_along_axis(q, first, 1) - np.take_along_axis(q, second, 1)
        v = v - beta * du * du
        m = np.maximum(m - 2.0 * beta * du * dq + beta**2 * kappa * du * du, 0.0)
    return better, worse, gains


def _between(matrix: Floats) -> Floats:
    """x_aa + x_bb − 2x_ab of all pairs, above 0 off the diagonal; 1 on it."""
    own = np.einsum("gii->gi", matrix)
    out = own[:, :, None] + own[:, None, :] - 2.0 * matrix
    floor = 1e-12 * np.maximum(own.max(axis=1), 1e-300)
    out = np.maximum(out, floor[:, None, None])
    np.einsum("gii->gi", out)[:] = 1.0
    return np.asarray(out)


def _shortlist(
    value: Floats, covariance: Floats, mixed: Floats, most: int, each: float
) -> tuple[Ints, Ints, Floats, Floats, Floats]:
    """The pairs with the largest gains: first, second, v, dᵀMd and w of each, shapes (G, pairs)."""
    n = value.shape[1]
    row, column = np.triu_indices(n, 1)
    pick = row * n + column

    def of_pairs(matrix: Floats) -> Floats:
        own = np.einsum("gii->gi", matrix)
        return np.asarray(own[:, row] + own[:, column] - 2.0 * matrix.reshape(len(matrix), -1)[:, pick])

    v, m = np.maximum(of_pairs(covariance), 0.0), np.maximum(of_pairs(mixed), 0.0)
    half = np.exp(-0.5 * np.abs(value[:, row] - value[:, column]))
    w = each * (half / (1.0 + half * half)) ** 2
    keep = min(len(row), max(SHORTLIST, PER_PAIR * most))
    if keep == len(row):
        shape = v.shape
        return np.broadcast_to(row, shape), np.broadcast_to(column, shape), v, m, w
    best = np.sort(np.argpartition(-(w * m / (1.0 + w * v)), keep - 1, axis=1)[:, :keep], axis=1)
    v, m, w = (np.take_along_axis(matrix, best, 1) for matrix in (v, m, w))
    return row[best], column[best], v, m, w
