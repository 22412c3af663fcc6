"""Second derivatives and per-judgment gradients of a fitted Plackett–Luce likelihood, for intervals."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from concordant.graphs import Batch
from concordant.listing import take_lists
from concordant.structures.curvature import Curvature
from concordant.structures.luce_terms import Position
from concordant.structures.plackett_luce import luce_terms
from concordant.structures.scores import Scores

__all__ = ["plackett_luce_curvature"]

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
BLOCK = 1 << 21  # pairs of entries at once


def plackett_luce_curvature(batch: Batch, scores: Scores) -> Curvature:
    """Return the curvature of a fit by ``plackett_luce`` on this batch.

    The Hessian of the negative log-likelihood is Σ_A w_A (diag p − p pᵀ), p_i = e^θ_i / S_A on the items of a remaining
    set A: a Laplacian with an edge between any two items that share a list.
    """
    at = luce_terms(batch).at(scores.value)
    lists = at.terms.lists

    def gradients() -> csr_array:
        draws = at.gradient_entries() / batch.multiplicity[lists.holder][lists.row]
        shape = (len(batch.judgment), len(batch.item))
        return coo_array((draws, (lists.holder[lists.row], lists.node)), shape=shape).tocsr()

    return Curvature(
        hessian=_hessian(at),
        prior=float(scores.options.get("prior", 0.0)),
        gradients=gradients,
        extra_owner=np.zeros(0, np.int64),
    )


def _hessian(at: Position) -> csr_array:
    node, n = at.terms.lists.node, at.nodes
    whole = csr_array((n, n))
    for first, second, weight in (*_across_tiers(at), *_within_tiers(at)):
        weight = -weight * at.odds[first] * at.odds[second]
        whole = whole + coo_array((weight, (node[first], node[second])), shape=(n, n)).tocsr()
    whole = whole + whole.T
    nodes = np.arange(n)
    return (whole + csr_array((-np.asarray(whole.sum(axis=1)).ravel(), (nodes, nodes)), shape=(n, n))).tocsr()


def _across_tiers(at: Position) -> Iterator[tuple[Places, Places, Floats]]:
    """Pairs of entries (better, worse) with Σ w_A / S_A² over the sets that hold both: those that hold the better."""
    lists = at.terms.lists
    squares = at.squares[0]
    work = np.cumsum(lists.length**2 // 2)
    for rows in np.split(np.arange(len(work)), np.flatnonzero(np.diff(work // BLOCK)) + 1):
        start, entries = take_lists(lists.start, rows)
        later = np.repeat(start[1:], np.diff(start)) - np.arange(len(entries)) - 1
        first = np.repeat(np.arange(len(entries)), later)
        second = first + 1 + np.arange(len(first)) - np.repeat(np.cumsum(later) - later, later)
        first, second = entries[first], entries[second]
        if not lists.top:  # within a tier the sets that hold one do not all hold the other
            apart = lists.tier[first] != lists.tier[second]
            first, second = first[apart], second[apart]
        yield first, second, squares[first]


def _within_tiers(at: Position) -> Iterator[tuple[Places, Places, Floats]]:
    for (tier, rest), above in zip(at.tiers(), at.squares[1], strict=True):
        t = tier.entry.shape[1]
        i, j = np.triu_indices(t, 1)
        for part, sets in at.blocks(tier, rest):
            both = tier.sets.pairs(tier.sets.share * tier.weight[part, None] / sets**2, i, j) + above[part, None]
            entry = tier.entry[part]
            yield entry[:, i].ravel(), entry[:, j].ravel(), both.ravel()
