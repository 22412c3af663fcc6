"""Quasi-standard errors: one number per item from which the standard error of any difference can be had.

Quasi-variances q minimise Σ_{i<j} (log(q_i + q_j) − log v_ij)², v_ij the variance of s_i − s_j; then √(q_i + q_j) is
about the standard error of the difference, whatever the reference item (Firth & de Menezes, Biometrika 91, 2004, the
criterion (1) of §2). With three items the fit is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from concordant.connectivity import Connectivity
from concordant.errors import UsageError
from concordant.graphs import Batch
from concordant.structures.curvature import Curvature
from concordant.uncertainty.contrasts import Gauge
from concordant.uncertainty.covariance import Meat, Units, far_units, stacks

__all__ = ["QuasiVariances", "quasi_errors", "quasi_variances"]

Floats = NDArray[np.float64]
MOST = 500


@dataclass(frozen=True, eq=False)
class QuasiVariances:
    """Quasi-variances of n items and how well they reproduce the differences."""

    variance: Floats
    """Shape (n,); may be negative for an item (then it has no quasi-standard error), nan for fewer than two items."""
    error: Floats
    """Quasi-standard errors √variance, nan where that is negative."""
    worst: tuple[float, float]
    """Smallest and largest relative error of a difference's standard error, √(q_i + q_j)/√v_ij − 1."""
    iterations: int


def quasi_variances(covariance: Floats, *, tolerance: float = 1e-12, max_iterations: int = 100) -> QuasiVariances:
    """Return the quasi-variances of scores with this covariance matrix (of contrasts; any gauge gives the same).

    ``covariance`` has shape (n, n), n at most 500 (the criterion sums over all pairs and each step solves n equations:
    for larger sets use the standard errors against the anchors). With two items only q_1 + q_2 is determined; it is
    split evenly. Errors: UsageError for more than 500 items or a matrix that is not square.

    >>> quasi_variances(np.diag([1.0, 2.0, 4.0])).variance.round(9).tolist()
    [1.0, 2.0, 4.0]
    """
    matrix = np.asarray(covariance, np.float64)
    n = len(matrix)
    if matrix.shape != (n, n):
        raise UsageError(f"a covariance matrix is square, not of shape {matrix.shape}")
    if n > MOST:
        raise UsageError(f"quasi-variances of {n:,} items: at most {MOST} are allowed")
    if n < 2:
        none = np.full(n, np.nan)
        return QuasiVariances(none, none, (0.0, 0.0), 0)
    own = np.diagonal(matrix)
    finite = bool(np.isfinite(matrix).all())
    wanted = own[:, None] + own[None, :] - 2.0 * matrix if finite else np.zeros((n, n))
    np.fill_diagonal(wanted, 1.0)
    if (wanted <= 0).any():
        raise UsageError("some difference has no positive finite variance; leave out items that are not determined")
    if n == 2:
        variance, iterations = np.full(2, wanted[0, 1] / 2), 0
    else:
        variance, iterations = _minimise(wanted, tolerance, max_iterations)
    with np.errstate(invalid="ignore"):
        error = np.sqrt(variance)
    off = ~np.eye(n, dtype=bool)
    ratio = np.sqrt((variance[:, None] + variance[None, :])[off] / wanted[off]) - 1.0
    return QuasiVariances(variance, error, (float(ratio.min()), float(ratio.max())), iterations)


def quasi_errors(
    batch: Batch, curvature: Curvature, connectivity: Connectivity, *, method: str = "hessian"
) -> tuple[Floats, Floats]:
    """Return the quasi-standard errors of all nodes, component by component, and the largest relative error of each
    graph.

    Shapes (nodes,) and (graphs,). Infinite for items that are separated or never compared; nan in graphs of more than
    500 nodes, where a difference has no variance or an infinite one, and where the quasi-variance is negative.
    """
    gauge = Gauge.of(batch.node_start, connectivity)
    units = Units.of(batch, curvature, gauge)
    chosen = np.flatnonzero((np.diff(batch.node_start)[units.graph] <= MOST) & ~far_units(units, curvature))
    meat = Meat.of(batch, curvature).matrix() if method == "sandwich" else None
    error = np.where(connectivity.compared & ~connectivity.separated, np.nan, np.inf)
    worst = np.full(len(batch), np.nan)
    for ids, n, matrices in stacks(units, curvature, gauge, meat, chosen):
        for nodes, matrix in zip(ids[:, :n], matrices, strict=True):
            for group in np.unique(gauge.group[nodes]):
                own = np.flatnonzero((gauge.group[nodes] == group) & np.isnan(error[nodes]))
                if len(own) < 2:
                    continue
                part = matrix[np.ix_(own, own)]
                spread = np.diagonal(part)[:, None] + np.diagonal(part)[None, :] - 2.0 * part
                if not (np.isfinite(part).all() and (spread[~np.eye(len(own), dtype=bool)] > 0).all()):
                    continue  # a difference without spread, or with nothing to go by
                found = quasi_variances(part)
                error[nodes[own]] = found.error
                graph = batch.owner[nodes[0]]
                worst[graph] = np.fmax(worst[graph], max(map(abs, found.worst)))
    return error, worst


def _minimise(wanted: Floats, tolerance: float, max_iterations: int) -> tuple[Floats, int]:
    """Gauss–Newton from the least-squares fit of q_i + q_j to v_ij, halving steps that do not improve."""
    n = len(wanted)
    log_wanted = np.log(wanted)
    row = wanted.sum(axis=1) - 1.0
    q = (row - row.sum() / (2 * (n - 1))) / (n - 2)
    if _both(q).min() <= 0:
        q = row / (2 * (n - 1))
    loss = _loss(q, log_wanted)
    iterations = 0
    while iterations < max_iterations:
        iterations += 1
        both = _both(q)
        rest = np.log(both) - log_wanted
        np.fill_diagonal(rest, 0.0)
        weight = 1.0 / both**2
        np.fill_diagonal(weight, 0.0)
        normal = weight + np.diag(weight.sum(axis=1))
        step = np.linalg.solve(normal, (rest / both).sum(axis=1))
        size = 1.0
        while size > 1e-8:
            new = q - size * step
            if _both(new).min() > 0 and _loss(new, log_wanted) <= loss:
                break
            size /= 2
        else:
            break
        q, loss = new, _loss(new, log_wanted)
        if np.abs(size * step).max() <= tolerance * np.abs(q).max():
            break
    return q, iterations


def _both(q: Floats) -> Floats:
    both = q[:, None] + q[None, :]
    np.fill_diagonal(both, 1.0)
    return both


def _loss(q: Floats, log_wanted: Floats) -> float:
    rest = np.log(_both(q)) - log_wanted
    np.fill_diagonal(rest, 0.0)
    return float((rest**2).sum() / 2)
