"""Variances of one large graph: the certified series, else elimination, else the dense factor, else a sketch.

Coefficients beside the scores (covariates, ties) enter through X = (H_ss + λ)⁻¹H_sβ and the Schur complement
S = H_ββ − H_βs X: the contrasts' covariance gains C X S⁻¹ XᵀC, and the coefficients have S⁻¹.

Exact variances of a large graph's scores by sparse elimination: chains, rings, trees, grids.

One node of each component is held at 0. With Z the inverse then, y = Z1, c = Cy and β = λ/(n − λ1ᵀy)

    C(H + λ)⁻¹ = C Z + β c yᵀ,     C(H + λ)⁻¹C = C Z C + β c cᵀ      in each component of n nodes.

diag Z comes from the entries of Z on the factor's pattern (Takahashi, Fagan and Chin, 1973), and diag(Z M Z), the
sandwich's, from their derivative in the direction −M: neither needs the whole inverse.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack, solve_triangular
from scipy.sparse import coo_array, csr_array, triu

from concordant.ranking.contrasts import Gauge
from concordant.ranking.elimination import FAR, WORK, Elimination, Factor, far_apart
from concordant.ranking.series import Spectral

Floats = NDArray[np.float64]
AFFORDED = 4e10
"""Multiplications for one solution per row of a sandwich whose middle is too dense; beyond it, random signs."""
SIGNS = 400
"""Random vectors then: a relative standard error of 3.5% in each standard error."""
TOGETHER = 16
DENSER = 10
"""How many times the Hessian's entries the sandwich's middle may take to be eliminated with it."""


def entries_of_meat(root: csr_array) -> float:
    """At least the entries of rootᵀ root, before it is computed: clusters of many items make it dense."""
    return float((np.diff(root.indptr).astype(np.float64) ** 2).sum())


@dataclass(frozen=True, eq=False)
class Variances:
    """Variances of the contrasts of a graph's scores and of its further coefficients, and how they were found."""

    scores: Floats
    coefficients: Floats
    error: float
    """Relative error of the variances: a bound (series; for 99 of 100 items where no dense factor is possible), 0
    (factor) or the sketch's standard error."""
    how: str


@dataclass(frozen=True, eq=False)
class Eliminated:
    """H + λ of some components, factored with one node of each held at 0."""

    factor: Factor
    gauge: Gauge
    level: Floats
    """y, 0 where there is no prior."""
    tilt: Floats
    """c."""
    push: Floats
    """β at each node."""
    middle: csr_array | None
    """M within components, when the factor carries its direction."""

    @classmethod
    def of(
        cls, hessian: csr_array, prior: float, gauge: Gauge, root: csr_array | None, *, work: float = WORK
    ) -> Eliminated | None:
        """Factor, if there is an order with little fill; ``hessian`` over the nodes only."""
        nodes = len(gauge.group)
        middle = None
        if root is not None and entries_of_meat(root) <= DENSER * (hessian.nnz + nodes):
            middle = csr_array(root[:, :nodes].T @ root[:, :nodes])
        upper = triu(hessian, 1).tocoo()
        rows, columns = upper.row.astype(np.int64), upper.col.astype(np.int64)
        weight, turned = -upper.data, np.zeros(0)
        if middle is not None:
            own = middle.tocoo()
            same = gauge.group[own.row] == gauge.group[own.col]
            shape = (nodes, nodes)
            middle = csr_array(coo_array((own.data[same], (own.row[same], own.col[same])), shape=shape))
            own = triu(middle, 1).tocoo()
            key = np.concatenate([rows * nodes + columns, own.row.astype(np.int64) * nodes + own.col])
            pair, place = np.unique(key, return_inverse=True)
            rows, columns = pair // nodes, pair % nodes
            turned = np.asarray(np.bincount(place[len(weight) :], own.data, len(pair)), np.float64)
            weight = np.asarray(np.bincount(place[: len(weight)], weight, len(pair)), np.float64)
        order = Elimination.of(rows, columns, nodes, work=work)
        if order is None:
            return None
        held = np.full(nodes, prior)
        factor = order.factor(np.maximum(weight, 0.0), held, turned)
        roots = order.roots
        factor.pivot[np.diff(order.column) == 0] = 0.0
        if ((factor.pivot <= 0) & (np.diff(order.column) > 0)).any() or len(roots) != gauge.groups:
            return None
        level = push = np.zeros(nodes)
        if prior > 0:
            level = factor.solve(np.ones(nodes))
            drained = 1.0 - np.asarray(hessian @ level)[roots]  # into the node held at 0: H is −w there
            push = np.empty(gauge.groups)
            push[gauge.group[roots]] = prior / drained
            push = gauge.spread(push)
        return cls(factor, gauge, level, gauge.centre(level), push, middle)

    def contrast(self, right: Floats) -> Floats:
        """C(H + λ)⁻¹ right, shape (nodes, sides)."""
        answer = self.factor.solve(right)
        out = np.empty_like(answer)
        for i in range(right.shape[1]):
            lift = self.push * self.gauge.spread(self.gauge.sums(self.level * right[:, i]))
            out[:, i] = self.gauge.centre(answer[:, i]) + lift * self.tilt
        return out

    def variance(self, root: csr_array | None) -> Variances:
        """Variances of the contrasts: Hessian, or sandwich with M = rootᵀ root."""
        none = np.zeros(0)
        if root is not None and self.middle is None:
            return self._by_rows(root)
        gauge = self.gauge
        own, bent = self.factor.inverse_diagonal()
        anchors = self.factor.solve(gauge.weight)
        if root is None:
            mean = gauge.spread(gauge.sums(gauge.weight * anchors))
            found = own - 2.0 * anchors + mean + self.push * self.tilt**2
            return Variances(np.maximum(found, 0.0), none, 0.0, "elimination")
        assert self.middle is not None
        back = self.factor.solve(self.middle @ anchors)
        found = bent - 2.0 * back + gauge.spread(gauge.sums(gauge.weight * back))
        if self.push.any():
            pulled = self.middle @ self.level
            found += 2.0 * self.push * self.tilt * gauge.centre(self.factor.solve(pulled))
            found += (self.push * self.tilt) ** 2 * gauge.spread(gauge.sums(self.level * pulled))
        return Variances(np.maximum(found, 0.0), none, 0.0, "elimination")

    def _by_rows(self, root: csr_array) -> Variances:
        """Σ over the rows u of (C(H + λ)⁻¹u)², or the mean over random signs where there are too many rows."""
        nodes = len(self.gauge.group)
        rows = csr_array(root[:, :nodes])
        exact = 4.0 * rows.shape[0] * len(self.factor.weight) <= AFFORDED
        many = rows.shape[0] if exact else SIGNS
        rng = np.random.default_rng(2)
        total = np.zeros(nodes)
        for begin in range(0, many, TOGETHER):
            end = min(begin + TOGETHER, many)
            if exact:
                right = np.asarray(rows[begin:end].toarray()).T
            else:
                right = np.asarray(rows.T @ rng.choice((-1.0, 1.0), (rows.shape[0], end - begin)))
            answer = self.contrast(right)
            total += np.einsum("ij,ij->i", answer, answer)
        error = 0.0 if exact else float(np.sqrt(2.0 / many))
        return Variances(total if exact else total / many, np.zeros(0), error, "elimination" if exact else "sketch")


Solve = Callable[[Floats], Floats | None]
"""C(H + λ)⁻¹ times some columns."""
DENSE_LARGE = 6000
"""Largest graph for which a dense factor (8 bytes × n²) is made."""
THIN, QUICK = 9, 1e8
"""Entries of the Hessian for each node, and multiplications, up to which elimination comes before the series."""
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
MEAT = 3e8
"""Most entries of a sandwich's middle that are computed."""


def large_variances(hessian: csr_array, prior: float, gauge: Gauge, root: csr_array | None) -> Variances:
    """Variances for one graph; ``hessian`` is over its nodes, then its coefficients; ``root`` is the sandwich's.

    They are infinite (``how`` = "none") where nothing gives them: where the equations are not solved, or where weights
    lie too far apart for the sandwich.
    """
    nodes = len(gauge.group)
    alone = hessian.shape[0] == nodes
    of_nodes = hessian if alone else csr_array(hessian[:nodes, :nodes])
    far, strengths = _spread(of_nodes, prior, root, nodes)
    if strengths or (far and not alone):
        return _nothing(hessian.shape[0], nodes)
    spectral = Spectral(of_nodes, prior, gauge)
    fits = hessian.shape[0] <= DENSE_LARGE and not far
    solve: Solve = spectral.contrast
    thin = of_nodes.nnz <= THIN * nodes
    exact = Eliminated.of(of_nodes, prior, gauge, root, work=QUICK) if thin else None
    found = None if far or exact is not None else _series(spectral, root, fits)
    if found is None:
        exact = exact or Eliminated.of(of_nodes, prior, gauge, root)
        if exact is not None:
            solve = exact.contrast
            found = exact.variance(root)
        elif fits:
            return _factored(hessian, prior, gauge, root)
        elif not far:
            found = _sketched(spectral, root, nodes)
    if found is None:
        return _nothing(hessian.shape[0], nodes)
    if alone:
        return found
    joint = _with_coefficients(solve, hessian, found.scores, root)
    return _nothing(hessian.shape[0], nodes) if joint is None else Variances(*joint, found.error, found.how)


def _nothing(size: int, nodes: int) -> Variances:
    return Variances(np.full(nodes, np.inf), np.full(size - nodes, np.inf), np.inf, "none")


def _spread(hessian: csr_array, prior: float, root: csr_array | None, nodes: int) -> tuple[bool, bool]:
    """Whether the Hessian's weights lie far apart, and whether the sandwich's lie far from them."""
    upper = triu(hessian, 1).tocoo()
    far = far_apart(upper.row, upper.col, np.maximum(-upper.data, 0.0), prior, nodes)
    if root is None:
        return far, False
    own, middle = hessian.diagonal(), np.asarray(root[:, :nodes].power(2).sum(axis=0)).ravel()
    known = (own > 0) & (middle > 0)
    ratio = middle[known] / own[known]
    usual = 0.0 if not len(ratio) else float(ratio.min() if far else np.median(ratio))
    return far, bool(len(ratio) and usual < FAR * ratio.max())


def _series(spectral: Spectral, root: csr_array | None, fits: bool) -> Variances | None:
    """The series where its bound is good enough."""
    nodes = len(spectral.gauge.group)
    if root is not None and entries_of_meat(root) > MEAT:
        return None
    meat = None if root is None else csr_array(root[:, :nodes].T @ root[:, :nodes])
    found = spectral.hessian_variance() if meat is None else spectral.sandwich_variance(meat)
    if found is None:
        return None
    enough = TOLERABLE if not fits else CERTIFIED if root is None else NEARLY
    error = float(np.quantile(found[1], 1.0 if fits else 0.99))
    return Variances(found[0], np.zeros(0), error, "series") if error <= enough else None


def _with_coefficients(
    solve: Solve, hessian: csr_array, variance: Floats, root: csr_array | None
) -> tuple[Floats, Floats] | None:
    """Add what the estimation of the coefficients costs the scores."""
    nodes = len(variance)
    side = np.asarray(hessian[:nodes, nodes:].toarray())
    response = solve(side)
    if response is None:
        return None
    schur = np.asarray(hessian[nodes:, nodes:].toarray()) - side.T @ response
    try:
        inverse = np.linalg.inv(schur)
    except np.linalg.LinAlgError:
        return None
    mixed = response @ inverse
    if root is None:
        return variance + np.einsum("ik,ik->i", mixed, response), np.diagonal(inverse).copy()
    rest = np.asarray(root[:, :nodes] @ response) - root[:, nodes:].toarray()
    across = solve(np.asarray(root[:, :nodes].T @ rest))
    if across is None:
        return None
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
    sorter = np.argsort(gauge.group, kind="stable")
    for part, amount in zip(np.split(sorter, np.cumsum(count.astype(int))[:-1]), shift, strict=True):
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


def _sketched(spectral: Spectral, root: csr_array | None, nodes: int) -> Variances | None:
    """Mean squares of C(H + λ)⁻¹Rᵀz over random signs z, with RᵀR = H + λ or M; None where a solution is not found.

    Every vector counts or none: those that are hard to solve for are the ones that carry the large variances.
    """
    rng = np.random.default_rng(2)
    gauge = spectral.gauge
    upper = triu(spectral.hessian, 1).tocoo()
    strength = np.sqrt(np.maximum(-upper.data, 0.0))
    total = np.zeros(nodes)
    probes = int(np.clip(PROBE_WORK / (50 * max(2 * upper.nnz, 1)), 16, PROBES))
    for begin in range(0, probes, TOGETHER):
        many = min(TOGETHER, probes - begin)
        right = np.zeros((nodes, many))
        for i in range(many):
            if root is None:
                push = strength * rng.choice((-1.0, 1.0), len(strength))
                right[:, i] = np.bincount(upper.row, push, nodes) - np.bincount(upper.col, push, nodes)
                right[:, i] += np.sqrt(spectral.prior) * gauge.centre(rng.choice((-1.0, 1.0), nodes))
            else:
                right[:, i] = root[:, :nodes].T @ rng.choice((-1.0, 1.0), root.shape[0])
            right[:, i] -= gauge.spread(gauge.sums(right[:, i]) / gauge.sums(np.ones(nodes)))
        answer = spectral.contrast(right)
        if answer is None:
            return None
        total += np.einsum("ij,ij->i", answer, answer)
    return Variances(total / probes, np.zeros(0), float(np.sqrt(2.0 / probes)), "sketch")
