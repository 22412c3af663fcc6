"""Second derivatives and per-judgment gradients of a fitted Plackett–Luce likelihood, for intervals."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array, csr_array

from concordant.graphs import Batch
from concordant.structures.curvature import Curvature
from concordant.structures.luce_terms import information
from concordant.structures.plackett_luce import luce_terms
from concordant.structures.scores import Scores

__all__ = ["plackett_luce_curvature"]


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
        hessian=information(at),
        prior=float(scores.options.get("prior", 0.0)),
        gradients=gradients,
        extra_owner=np.zeros(0, np.int64),
    )
