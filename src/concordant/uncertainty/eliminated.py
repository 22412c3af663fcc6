"""Exact variances of a large graph's scores by sparse elimination: chains, rings, trees, grids.

One node of each component is held at 0. With Z the inverse then, y = Z1, c = Cy and β = λ/(n − λ1ᵀy)

    C(H + λ)⁻¹ = C Z + β c yᵀ,     C(H + λ)⁻¹C = C Z C + β c cᵀ      in each component of n nodes.

diag Z comes from the entries of Z on the factor's pattern (Takahashi, Fagan and Chin, 1973), and diag(Z M Z), the
sandwich's, from their derivative in the direction −M: neither needs the whole inverse.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, triu

from concordant.structures.elimination import WORK, Elimination, Factor
from concordant.uncertainty.contrasts import Gauge

__all__ = ["Eliminated", "Variances", "entries_of_meat"]

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
