"""Variances of one large graph: the certified series, else the dense factor, else a sketch.

Coefficients beside the scores (covariates, ties) enter through X = (H_ss + λ)⁻¹H_sβ and the Schur complement
S = H_ββ − H_βs X: the contrasts' covariance gains C X S⁻¹ XᵀC, and the coefficients have S⁻¹.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack, solve_triangular
from scipy.sparse import csr_array

from concordant.uncertainty.contrasts import Gauge
from concordant.uncertainty.series import Spectral

__all__ = ["CERTIFIED", "Variances", "large_variances"]

Floats = NDArray[np.float64]
DENSE_LARGE = 6000
"""Largest graph for which a dense factor (8 bytes × n²) is made."""
CERTIFIED = 1e-3
"""Relative error of a variance up to which the series counts as exact (half of it in a standard error)."""
NEARLY = 0.02
"""Relative error up to which the sandwich's series, which has no certificate, is used (and called approximate)."""
TOLERABLE = 0.5
"""Bound on the relative error (of 99 of 100 variances) up to which the series is used where no dense factor is
possible, and called approximate. The bound allows for the worst design: with 20 random comparisons for each item it is
.15–.2, while the standard errors are within 1% of the exact ones, .2% in the mean."""
PROBES = 200
"""Most random vectors of the sketch: a relative standard error of 1/√(2·200) = 5% in each standard error."""
PROBE_WORK = 4e9
"""The sketch takes as many vectors as it can with so many multiplications, but at least 16."""


@dataclass(frozen=True, eq=False)
class Variances:
    """Variances of the contrasts of a graph's scores and of its further coefficients, and how they were found."""

    scores: Floats
    coefficients: Floats
    error: float
    """Relative error of the variances: a bound (series; for 99 of 100 items where no dense factor is possible), 0
    (factor) or the sketch's standard error."""
    how: str


def large_variances(hessian: csr_array, prior: float, gauge: Gauge, root: csr_array | None) -> Variances:
    """Variances for one graph; ``hessian`` is over its nodes, then its coefficients; ``root`` is the sandwich's."""
    nodes = len(gauge.group)
    plain = hessian.shape[0] == nodes
    spectral = Spectral(hessian if plain else csr_array(hessian[:nodes, :nodes]), prior, gauge)
    meat = None if root is None else csr_array(root[:, :nodes].T @ root[:, :nodes])
    found = spectral.hessian_variance() if meat is None else spectral.sandwich_variance(meat)
    fits = hessian.shape[0] <= DENSE_LARGE
    how = "series"
    enough = TOLERABLE if not fits else CERTIFIED if root is None else NEARLY
    error = np.inf if found is None else float(np.quantile(found[1], 1.0 if fits else 0.99))
    if found is not None and error <= enough:
        variance = found[0]
    elif fits:
        return _factored(hessian, prior, gauge, root)
    else:
        (variance, error), how = _sketched(spectral, root, nodes), "sketch"
    if plain:
        return Variances(variance, np.zeros(0), error, how)
    joint = _with_coefficients(spectral, hessian, variance, root)
    if joint is None:
        raise FloatingPointError("the scores' system with coefficients did not converge")
    return Variances(*joint, error, how)


def _with_coefficients(
    spectral: Spectral, hessian: csr_array, variance: Floats, root: csr_array | None
) -> tuple[Floats, Floats] | None:
    """Add what the estimation of the coefficients costs the scores."""
    nodes = len(variance)
    side = np.asarray(hessian[:nodes, nodes:].toarray())
    columns = [spectral.solve(column, free=True) for column in side.T]
    if any(column is None for column in columns):
        return None
    response = np.column_stack([spectral.gauge.centre(column) for column in columns if column is not None])
    schur = np.asarray(hessian[nodes:, nodes:].toarray()) - side.T @ response
    inverse = np.linalg.inv(schur)
    mixed = response @ inverse
    if root is None:
        return variance + np.einsum("ik,ik->i", mixed, response), np.diagonal(inverse).copy()
    rest = np.asarray(root[:, :nodes] @ response) - root[:, nodes:].toarray()
    pulled = [spectral.solve(column) for column in np.asarray(root[:, :nodes].T @ rest).T]
    if any(column is None for column in pulled):
        return None
    across = np.column_stack([spectral.gauge.centre(column) for column in pulled if column is not None])
    spread = rest.T @ rest
    scores = variance + 2.0 * np.einsum("ik,ik->i", mixed, across) + np.einsum("ik,kl,il->i", mixed, spread, mixed)
    return np.maximum(scores, 0.0), np.diagonal(inverse @ spread @ inverse).copy()


def _factored(hessian: csr_array, prior: float, gauge: Gauge, root: csr_array | None) -> Variances:
    """Exact, by the Cholesky factor A = L Lᵀ of the dense matrix, in place (one n×n matrix)."""
    nodes, size = len(gauge.group), hessian.shape[0]
    bread = np.zeros((size, size), order="F")
    entries = hessian.tocoo()
    bread[entries.row, entries.col] = entries.data
    diagonal = np.einsum("ii->i", bread)
    diagonal[:nodes] += prior
    total, count = gauge.sums(diagonal[:nodes].copy()), gauge.sums(np.ones(nodes))
    shift = np.where(total > 0, total, count) / count**2
    order = np.argsort(gauge.group, kind="stable")
    for part, amount in zip(np.split(order, np.cumsum(count.astype(int))[:-1]), shift, strict=True):
        if len(part) == nodes:
            bread[:nodes, :nodes] += amount
        else:
            bread[np.ix_(part, part)] += amount
    factor, failed = lapack.dpotrf(bread, lower=1, clean=0, overwrite_a=1)
    if failed:
        raise np.linalg.LinAlgError("the Hessian is singular: the maximum likelihood does not exist")
    padded = np.concatenate([gauge.weight, np.zeros(size - nodes)])
    anchors = _solved(factor, padded)
    if root is not None:
        return _factored_sandwich(factor, gauge, root, anchors)
    inverse, _ = lapack.dtrtri(factor, lower=1, overwrite_c=1)
    variance = np.empty(size)
    for begin in range(0, size, 512):  # diag(L⁻ᵀL⁻¹): the squares of each column of L⁻¹, below the diagonal
        block = np.tril(inverse[begin:, begin : begin + 512])
        variance[begin : begin + 512] = np.einsum("ij,ij->j", block, block)
    mean = gauge.spread(gauge.sums(gauge.weight * anchors[:nodes]))
    scores = np.maximum(variance[:nodes] - 2.0 * anchors[:nodes] + mean, 0.0)
    return Variances(scores, _apart(variance, anchors, nodes), 0.0, "factor")


def _apart(variance: Floats, anchors: Floats, nodes: int) -> Floats:
    """Variances of the coefficients, which no gauge touches."""
    return variance[nodes : len(anchors)].copy()


def _solved(factor: Floats, right: Floats) -> Floats:
    half = solve_triangular(factor, right, lower=True, check_finite=False)
    return np.asarray(solve_triangular(factor, half, lower=True, trans="T", check_finite=False))


def _factored_sandwich(factor: Floats, gauge: Gauge, root: csr_array, anchors: Floats) -> Variances:
    """Variances diag(T A⁻¹ M A⁻¹ Tᵀ), T the contrasts."""
    nodes, size = len(gauge.group), factor.shape[0]
    meat = csr_array(root.T @ root)
    back = _solved(factor, np.asarray(meat @ anchors))
    inverse, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
    for begin in range(0, size, 512):  # the lower triangle mirrored, block by block
        end = begin + 512
        inverse[begin:end, end:] = inverse[end:, begin:end].T
        square = inverse[begin:end, begin:end]
        square[:] = np.tril(square) + np.tril(square, -1).T
    variance = np.empty(size)
    for begin in range(0, size, 256):
        block = np.ascontiguousarray(inverse[:, begin : begin + 256])
        variance[begin : begin + 256] = np.einsum("ij,ij->j", block, meat @ block)
    mean = gauge.spread(gauge.sums(gauge.weight * back[:nodes]))
    scores = np.maximum(variance[:nodes] - 2.0 * back[:nodes] + mean, 0.0)
    return Variances(scores, variance[nodes:].copy(), 0.0, "factor")


def _sketched(spectral: Spectral, root: csr_array | None, nodes: int) -> tuple[Floats, float]:
    """Mean squares of C(H + λ)⁻¹Rᵀz over random signs z, with RᵀR = H + λ or M."""
    rng = np.random.default_rng(2)
    gauge = spectral.gauge
    matrix = csr_array(spectral.hessian)
    row = np.repeat(np.arange(nodes), np.diff(matrix.indptr))
    upper = row < matrix.indices
    first, second = row[upper], matrix.indices[upper]
    strength = np.sqrt(np.maximum(-matrix.data[upper], 0.0))
    total = np.zeros(nodes)
    done = 0
    for _ in range(int(np.clip(PROBE_WORK / (50 * max(matrix.nnz, 1)), 16, PROBES))):
        if root is None:
            push = strength * rng.choice((-1.0, 1.0), len(strength))
            right = np.asarray(np.bincount(first, push, nodes) - np.bincount(second, push, nodes), np.float64)
            right += np.sqrt(spectral.prior) * gauge.centre(rng.choice((-1.0, 1.0), nodes))
        else:
            right = np.asarray(root[:, :nodes].T @ rng.choice((-1.0, 1.0), root.shape[0]))
        right -= gauge.spread(gauge.sums(right) / gauge.sums(np.ones(nodes)))
        answer = spectral.solve(right, free=True, tolerance=1e-3)
        if answer is not None:
            total += gauge.centre(answer) ** 2
            done += 1
    if not done:
        return np.full(nodes, np.inf), np.inf
    return total / done, float(np.sqrt(2.0 / done))
