"""Variances of a large graph's scores from the first terms of a series, with a bound on what is left out.

Let H be the Hessian of one or more components, a weighted Laplacian, d its diagonal, D = diag(d) + λ and, for each
component, v = d/√(Σd). Then K = (H + λ + Σ v vᵀ)⁻¹ = D^{−½}(I − N)⁻¹D^{−½}, where N is the normalised adjacency with
its largest eigenvector taken out, and the covariance of the contrasts is, exactly,

    C(H + λ)⁻¹C = C K C + λ (CK1)(CK1)ᵀ / (n − λ1ᵀK1)      in each component of n nodes.

CK1 and Kb are one or two sparse solves. What costs n³ is diag K. With x = N e_i and q_i = ‖x‖²

    ((I − N)⁻¹)_ii = 1 + N_ii + xᵀ(I − N)⁻¹x,     q_i/(1 − μ_low) ≤ xᵀ(I − N)⁻¹x ≤ q_i/(1 − μ_high),

μ the extreme eigenvalues of N (Lanczos). q_i costs one pass over the edges, and in designs where everybody meets many
it is about 1/degree, so the interval is short: that is the certificate. Eigenvectors that Lanczos finds exactly (there
are a few outside the bulk when scores spread) are taken out of N and put in by their closed form.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh_tridiagonal, eigvalsh_tridiagonal
from scipy.sparse import csr_array

from concordant.ranking.contrasts import Gauge
from concordant.ranking.newton import conjugate_gradients

Floats = NDArray[np.float64]
ROWS = 1 << 16
"""Rows that are scaled at a time."""
LANCZOS = 40
"""Most steps of the eigenvalue iteration."""
STEPS_WORK = 2e9
"""Multiplications after which columns that are solved side by side are given up, 400 steps at least."""
HUGE = 200_000
"""From so many nodes on no basis is kept, and solves (which matter to order 1/n) are rough."""


@dataclass(frozen=True, eq=False)
class Spectral:
    """H + λ of some components, scaled by its diagonal. ``hessian`` is over the nodes only."""

    hessian: csr_array
    prior: float
    gauge: Gauge

    @cached_property
    def degree(self) -> Floats:
        """The diagonal d of H."""
        return np.asarray(self.hessian.diagonal(), np.float64)

    @cached_property
    def scale(self) -> Floats:
        """D^{−½}; 1 for nodes that nothing determines."""
        full = self.degree + self.prior
        return 1.0 / np.sqrt(np.where(full > 0, full, 1.0))

    @cached_property
    def volume(self) -> Floats:
        """Σ d of each component (1 where it is 0)."""
        total = self.gauge.sums(self.degree)
        return np.where(total > 0, total, 1.0)

    @cached_property
    def top(self) -> Floats:
        """D^{−½}v, the direction taken out of the adjacency."""
        return self.scale * self.degree / np.sqrt(self.gauge.spread(self.volume))

    @cached_property
    def adjacency(self) -> csr_array:
        """D^{−½}(diag(d) − H)D^{−½}: no diagonal, entries ≥ 0."""
        matrix = csr_array(self.hessian)
        data = np.empty(len(matrix.data), np.float32 if len(self.scale) > HUGE else np.float64)
        for begin in range(0, matrix.shape[0], ROWS):
            length = np.diff(matrix.indptr[begin : begin + ROWS + 1])
            row = np.repeat(np.arange(begin, begin + len(length)), length)
            part = slice(int(matrix.indptr[begin]), int(matrix.indptr[begin + len(length)]))
            column = matrix.indices[part]
            off = -matrix.data[part] * self.scale[column] * self.scale[row]
            off[column == row] = 0.0
            data[part] = off
        return csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)

    def project(self, x: Floats) -> Floats:
        """Top · (topᵀ x) in each component."""
        return self.top * self.gauge.spread(self.gauge.sums(self.top * x))

    def times(self, x: Floats) -> Floats:
        """N x."""
        return np.asarray(self.adjacency @ x) - self.project(x)

    @cached_property
    def outliers(self) -> tuple[Floats, Floats]:
        """Eigenvalues (k,) and eigenvectors (nodes, k) of N at the ends of its spectrum, those found to 1e-4."""
        size = len(self.degree)
        return (np.zeros(0), np.zeros((size, 0))) if size > HUGE else _eigenpairs(self.times, size)

    @cached_property
    def range(self) -> tuple[float, float]:
        """Bounds of the spectrum of N beside its outliers: extreme Ritz values moved outwards by a margin."""
        values, vectors = self.outliers

        def rest(x: Floats) -> Floats:
            image = self.times(x)
            return np.asarray(image - vectors @ (values * (vectors.T @ x))) if len(values) else image

        return _spectrum(rest, len(self.degree), LANCZOS if len(self.degree) <= HUGE else LANCZOS // 2)

    @property
    def gapless(self) -> bool:
        """Whether some part of the graph hangs by a thread, so that no series helps."""
        return max(self.range[1], float(self.outliers[0].max(initial=-1.0))) >= 0.98

    @cached_property
    def second_moment(self) -> Floats:
        """q_i = (N²)_ii."""
        squares = _row_sums(self.adjacency, self.adjacency.data**2)
        norm = self.gauge.spread(self.gauge.sums(self.top**2))
        return np.asarray(np.maximum(squares - 2.0 * self.top * (self.adjacency @ self.top) + self.top**2 * norm, 0.0))

    def solve(self, right: Floats, *, free: bool = False, tolerance: float | None = None) -> Floats | None:
        """K right, or (H + λ)⁻¹ right with ``free`` (right then sums to zero); None if it takes too long."""
        owner = np.zeros(len(right), np.int64)
        if tolerance is None:
            tolerance = 1e-9 if len(right) <= HUGE else 1e-3

        def apply(x: Floats) -> Floats:
            y = x / self.scale
            image = y - self.adjacency @ (x / self.scale)
            return np.asarray((image if free else image + self.project(y)) / self.scale)

        answer, done = conjugate_gradients(
            apply, 1.0 / self.scale**2, right, owner, 1, tolerance=tolerance, iterations=400
        )
        return answer if done.all() else None

    def contrast(self, right: Floats) -> Floats | None:
        """C(H + λ)⁻¹ right for columns that sum to zero in each component; None where one does not end.

        Conjugate gradients with the diagonal, side by side, to a residual that the slowest direction can bear.
        """
        nodes, sides = right.shape
        inverse = self.scale[:, None] ** 2
        x, rest = np.zeros_like(right), np.array(right, np.float64)
        polished = inverse * rest
        way = polished.copy()
        size = np.einsum("ij,ij->j", rest, polished)
        goal = size * 1e-18
        steps = int(np.clip(STEPS_WORK / max(self.hessian.nnz * sides, 1), 400, 5_000))
        for _ in range(steps):
            if (size <= goal).all():
                return np.column_stack([self.gauge.centre(column) for column in x.T]).reshape(nodes, sides)
            image = self.hessian @ way + self.prior * way
            bend = np.einsum("ij,ij->j", way, image)
            open_ = (size > goal) & (bend > 0)
            step = np.divide(size, bend, out=np.zeros(sides), where=open_)
            x += step * way
            rest -= step * image
            polished = inverse * rest
            new = np.einsum("ij,ij->j", rest, polished)
            way = polished + np.divide(new, size, out=np.zeros(sides), where=open_) * way
            size = np.where(open_, new, size)
        return None

    @cached_property
    def of_ones(self) -> Floats | None:
        """K1."""
        return self.solve(np.ones(len(self.degree)))

    @cached_property
    def of_anchors(self) -> Floats | None:
        """K b of each component (they do not mix)."""
        size = self.gauge.spread(self.gauge.sums(np.ones(len(self.degree))))
        if np.allclose(self.gauge.weight, 1.0 / size, rtol=1e-12, atol=0):
            return None if self.of_ones is None else self.of_ones / size
        return self.solve(self.gauge.weight)

    @cached_property
    def diagonal(self) -> tuple[Floats, Floats]:
        """K_ii and a bound on its error.

        Inside the certified interval the estimate adds the term that a random design has, q·mean(q).
        """
        low, high = self.range
        values, vectors = self.outliers
        q = np.maximum(self.second_moment - vectors**2 @ values**2, 0.0)
        lower, upper = q / (1.0 - low), q / (1.0 - high)
        rest = np.clip(q * (1.0 + float(q.mean())), lower, upper)
        error = np.maximum(rest - lower, upper - rest)
        rest += vectors**2 @ (values**2 / (1.0 - values))
        return (1.0 - self.top**2 + rest) * self.scale**2, error * self.scale**2

    def hessian_variance(self) -> tuple[Floats, Floats] | None:
        """The variance of every contrast and bounds on their relative errors; None when the spectrum has no gap."""
        if self.gapless:
            return None
        ones, anchors = self.of_ones, self.of_anchors
        if ones is None or anchors is None:
            return None
        gauge = self.gauge
        diagonal, error = self.diagonal
        mean = gauge.spread(gauge.sums(gauge.weight * anchors))
        free = gauge.sums(np.ones(len(ones))) - self.prior * gauge.sums(ones)
        shift = self.prior * gauge.centre(ones) ** 2 / gauge.spread(np.where(free > 0, free, 1.0))
        variance = np.maximum(diagonal - 2.0 * anchors + mean + shift, 0.0)
        return variance, _share(error, variance)

    def sandwich_variance(self, meat: csr_array) -> tuple[Floats, Floats] | None:
        """The same with M in the middle: diag(K M K) = diag K + diag(K(M − H − λ)K) − (Kv)², second term to order N².

        ``meat`` is M over the nodes. The second array is the size of the second-order term against the variance, a
        measure of the error rather than a bound.
        """
        if self.gapless:
            return None
        ones, anchors = self.of_ones, self.of_anchors
        if ones is None or anchors is None:
            return None
        back = self.solve(np.asarray(meat @ anchors))
        if back is None:
            return None
        gauge, top = self.gauge, self.top
        along = (1.0 - self.prior * ones) / np.sqrt(gauge.spread(self.volume))
        middle = csr_array(meat)
        data = middle.data * self.scale[middle.indices] * np.repeat(self.scale, np.diff(middle.indptr))
        scaled = csr_array((data, middle.indices, middle.indptr), shape=middle.shape)
        own = scaled.diagonal() - 1.0
        excess = scaled @ top + self.adjacency @ top - top  # (M − H − λ) top
        crossed = self.adjacency.multiply(scaled + self.adjacency).sum(axis=1)
        first = 2.0 * (crossed - top * excess)
        moved = _row_sums(self.adjacency, self.adjacency.data**2 * own[self.adjacency.indices])
        moved += top**2 * gauge.spread(gauge.sums(top**2 * own)) - 2.0 * top * (self.adjacency @ (top * own))
        second = moved + 2.0 * self.second_moment * own
        mean = gauge.spread(gauge.sums(gauge.weight * back))
        variance = self.diagonal[0] - along**2 + (own + first + second) * self.scale**2 - 2.0 * back + mean
        variance = np.maximum(variance, 0.0)
        return variance, _share(np.abs(second * self.scale**2), variance)


def _share(part: Floats, whole: Floats) -> Floats:
    """Part/whole, 0 where the whole is 0."""
    return np.asarray(np.divide(part, whole, out=np.zeros_like(whole), where=whole > 0))


def _row_sums(matrix: csr_array, data: Floats) -> Floats:
    """Sum of the values of each row."""
    return np.asarray(csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape).sum(axis=1), np.float64)


def _lanczos(
    times: Callable[[Floats], Floats], size: int, steps: int, seed: int, basis: list[Floats] | None
) -> tuple[Floats, Floats, float]:
    """Lanczos' tridiagonal matrix from a fixed random start, and the size of the last residual.

    With a ``basis`` list the vectors are kept in it and made orthogonal again at every step.
    """
    now = np.random.default_rng(seed).standard_normal(size)
    now /= np.linalg.norm(now)
    before = np.zeros(size)
    diagonal: list[float] = []
    beside: list[float] = []
    norm = 0.0
    for _ in range(min(steps, size)):
        if diagonal:
            beside.append(norm)
        image = times(now)
        diagonal.append(float(now @ image))
        image -= diagonal[-1] * now
        if beside:
            image -= beside[-1] * before
        if basis is not None:
            basis.append(now)
            kept = np.array(basis)
            image -= kept.T @ (kept @ image)
        norm = float(np.linalg.norm(image))
        if norm < 1e-10:
            break
        before, now = now, image / norm
    return np.array(diagonal), np.array(beside), norm


def _eigenpairs(times: Callable[[Floats], Floats], size: int) -> tuple[Floats, Floats]:
    """Eigenpairs at either end of the spectrum that the iteration has found to 1e-4."""
    basis: list[Floats] = []
    diagonal, beside, norm = _lanczos(times, size, LANCZOS, 1, basis)
    ritz, vectors = eigh_tridiagonal(diagonal, beside)
    found = np.abs(norm * vectors[-1]) < 1e-4
    ends = np.logical_and.accumulate(found) | np.logical_and.accumulate(found[::-1])[::-1]
    return ritz[ends], np.array(basis).T @ vectors[:, ends]


def _spectrum(times: Callable[[Floats], Floats], size: int, steps: int) -> tuple[float, float]:
    """The interval that holds the eigenvalues."""
    diagonal, beside, _ = _lanczos(times, size, steps, 2, None)
    ritz = eigvalsh_tridiagonal(diagonal, beside)
    margin = 0.02 * float(ritz[-1] - ritz[0])
    return float(ritz[0]) - margin, float(ritz[-1]) + margin
