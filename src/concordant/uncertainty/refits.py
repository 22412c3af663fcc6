"""Bradley–Terry refits of many replicates of one graph at once, from the point estimate.

The replicates share the pairs, and their scores lie near the point estimate s. So all are solved together by the chord
method: s_r ← s_r + (H + λ)⁻¹ (Bᵀ(w_r − n_r ∘ σ(B s_r)) − λ s_r) with the Hessian H of the *point estimate*, B the
pairs-by-nodes incidence. One factor serves all replicates; every step is two sparse products, one exponential per pair
and replicate, and one dense product. A replicate whose steps do not shrink fast enough is left to Newton's method.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from concordant.graphs import Batch, Graphs
from concordant.structures.curvature import laplacian, pair_weights
from concordant.structures.elimination import far_apart
from concordant.uncertainty.draws import Atoms

__all__ = ["Chord"]

Floats = NDArray[np.float64]
STEPS = 40
ACCURATE = 1e-8
"""Estimated distance of a score from its solution at which a replicate is done."""


@dataclass(frozen=True, eq=False)
class Chord:
    """One graph's pairs, how its atoms fill them, and the inverse of its Hessian at the point estimate."""

    point: Floats
    prior: float
    incidence: csr_array
    """Shape (pairs, nodes): +1 at the first, −1 at the second item."""
    back: csr_array
    above: csr_array
    """Shape (pairs, atoms): wins of the first over the second, half the ties, in one draw of each atom."""
    total: csr_array
    inverse: Floats

    @classmethod
    def of(cls, batch: Batch, atoms: Atoms, point: Floats, prior: float) -> Chord:
        """Prepare a batch of one graph."""
        edges = batch.edges
        nodes = int(batch.node_start[-1])
        swap = edges.winner > edges.loser
        first, second = np.minimum(edges.winner, edges.loser), np.maximum(edges.winner, edges.loser)
        labels, pair = np.unique(first * nodes + second, return_inverse=True)
        mass = edges.strength * atoms.multiplicity[edges.holder]
        share = np.where(edges.tie, 0.5, np.where(swap, 0.0, 1.0)) * mass
        shape = (len(labels), len(atoms.count))
        where = (pair, atoms.member[edges.holder])
        rows = np.arange(len(labels))
        signs = np.concatenate([np.ones(len(labels)), -np.ones(len(labels))])
        ends = np.concatenate([labels // nodes, labels % nodes])
        incidence = coo_array((signs, (np.concatenate([rows, rows]), ends)), shape=(len(labels), nodes)).tocsr()
        above, total = (coo_array((x, where), shape=shape).tocsr() for x in (share, mass))
        above.eliminate_zeros()
        return cls(point, prior, incidence, incidence.T.tocsr(), above, total, _inverse(batch.graphs, point, prior))

    def fit(self, draws: NDArray[np.int64]) -> tuple[Floats, NDArray[np.bool_]]:
        """Scores of shape (replicates, nodes) for draws of shape (replicates, atoms), and which are solved."""
        columns = np.ascontiguousarray(draws.T, np.float64)
        above, total = self.above @ columns, self.total @ columns
        unbound = self.prior == 0 and not self._bound_together(above, total)
        if unbound or not np.isfinite(self.inverse).all():
            return np.tile(self.point, (len(draws), 1)), np.zeros(len(draws), bool)
        scores = np.repeat(self.point[:, None], len(draws), axis=1)
        solved = np.zeros(len(draws), bool)
        live = np.arange(len(draws))
        now, last = scores.copy(), np.zeros(len(draws))
        for _ in range(STEPS):
            step = self.inverse @ self._gradient(now, above, total)
            now += step
            length = np.abs(step).max(axis=0)
            rate = np.minimum(np.divide(length, last, out=np.ones_like(length), where=last > 0), 1.0)
            done = (length * rate <= ACCURATE * (1.0 - rate)) & (length < 1e-3)
            last = length
            if done.all() or done.sum() * 4 > len(live):
                scores[:, live], solved[live] = now, done
                stay = ~done
                live, now, last = live[stay], now[:, stay], last[stay]
                above, total = above[:, stay], total[:, stay]
                if len(live) == 0:
                    break
        scores[:, live] = now
        return scores.T, solved

    def _gradient(self, now: Floats, above: Floats, total: Floats) -> Floats:
        rest = self.incidence @ now
        np.negative(rest, out=rest)
        with np.errstate(over="ignore"):
            np.exp(rest, out=rest)
        rest += 1.0
        np.divide(total, rest, out=rest)
        np.subtract(above, rest, out=rest)
        pull = self.back @ rest
        if self.prior:
            pull -= self.prior * now
        return np.asarray(pull)

    def _bound_together(self, above: Floats, total: Floats) -> bool:
        """Whether the wins that all replicates have make every item reachable from every other."""
        wins, losses = (above > 0).all(axis=1), (total - above > 0).all(axis=1)
        ends = self.incidence.indices.reshape(-1, 2)
        value = self.incidence.data.reshape(-1, 2)[:, 0]
        first, second = np.where(value > 0, ends[:, 0], ends[:, 1]), np.where(value > 0, ends[:, 1], ends[:, 0])
        source, target = np.r_[first[wins], second[losses]], np.r_[second[wins], first[losses]]
        nodes = self.incidence.shape[1]
        beats = csr_array((np.ones(len(source), np.int8), (source, target)), shape=(nodes, nodes))
        blocks, _ = connected_components(beats, directed=True, connection="strong")
        return int(blocks) == 1


def _inverse(graphs: Graphs, point: Floats, prior: float) -> Floats:
    """(H + λ)⁻¹ on scores that sum to zero in each component; NaN where weights lie too far apart for it."""
    weight = pair_weights(graphs, point)
    hessian = laplacian(graphs, weight).toarray()
    nodes = len(hessian)
    if far_apart(graphs.first, graphs.second, weight, prior, nodes):
        return np.full((nodes, nodes), np.nan)
    _, part = connected_components(hessian < 0, directed=False)
    same = part[:, None] == part[None, :]
    level = np.bincount(part, np.diagonal(hessian)) / np.bincount(part)
    hessian += np.where(same, (np.where(level > 0, level, 1.0) / np.bincount(part))[part][:, None], 0.0)
    hessian[np.diag_indices(nodes)] += prior
    try:
        inverse = np.linalg.inv(hessian)
    except np.linalg.LinAlgError:
        return np.full((nodes, nodes), np.nan)
    inverse -= (same @ inverse) / same.sum(axis=1)[:, None]
    return np.asarray(inverse)
