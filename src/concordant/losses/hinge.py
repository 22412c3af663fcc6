"""Minima of the hinge loss within strong components, with a dual that tells the set of all minimisers.

min Σ w ξ, ξ ≥ 0, ξ_e ≥ 1 + h_e − (α_i − α_j). With any optimal dual y (0 ≤ y_e ≤ w_e) the minimisers are the α that are
complementary to it: α_i − α_j ≥ 1 + h_e where y_e < w_e, and ≤ 1 + h_e where y_e > 0.
"""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy import sparse

from concordant.errors import ConcordantError
from concordant.kernels.arrays import in_ranges, read_only
from concordant.kernels.circulation import circulations
from concordant.losses.pieces import Pieces

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
LARGEST = 6e8
"""Nodes × edges of the largest block that is tried (some 5 seconds)."""
STEPS = 100
"""Steps for each edge, far more than any known block takes, before the linear programme is asked."""


def by_circulation(pieces: Pieces) -> tuple[Floats, Floats, NDArray[np.int64], Flags]:
    """Minimise within every block by the network simplex; return α (nodes,), y (edges within blocks,), steps (blocks,)
    and which blocks were left out because they are too large (blocks,)."""
    edges = pieces.within.edges
    alpha, dual = np.zeros(len(pieces.block)), np.zeros(len(edges.weight))
    steps = np.zeros(pieces.number, np.int64)
    large = pieces.size * pieces.edges.astype(np.float64) > LARGEST
    chosen = (pieces.size > 1) & ~large
    if not chosen.any():
        return alpha, dual, steps, large
    packed = pieces.packed(chosen)
    blocks = int(chosen.sum())
    own, flow = np.zeros(len(packed.nodes)), np.zeros(len(packed.edges))
    turns, solved = np.zeros(blocks, np.int64), np.zeros(blocks, bool)
    columns = (packed.node_start, packed.edge_start, packed.winner, packed.loser)
    given = [read_only(column, np.int64) for column in columns]
    given += [read_only(column[packed.edges], np.float64) for column in (edges.weight, 1.0 + edges.offset)]

    def work(first: int, last: int) -> None:
        circulations(*given, first, last, STEPS, own, flow, turns, solved)

    in_ranges(work, pieces.size[chosen] * pieces.edges[chosen])
    alpha[packed.nodes], dual[packed.edges], steps[chosen] = own, flow, turns
    if not solved.all():
        odd = np.zeros(pieces.number, bool)
        odd[np.flatnonzero(chosen)[~solved]] = True
        again, prices = by_linear_programme(pieces, odd)
        alpha = np.where(odd[pieces.block], again, alpha)
        dual = np.where(odd[pieces.block[edges.winner]], prices, dual)
    return alpha, dual, steps, large


def by_linear_programme(pieces: Pieces, chosen: Flags) -> tuple[Floats, Floats]:
    """Do the same for the chosen blocks by a linear programme (HiGHS), all in one with diagonal blocks."""
    edges = pieces.within.edges
    alpha, dual = np.zeros(len(pieces.block)), np.zeros(len(edges.weight))
    mine = np.flatnonzero(chosen[pieces.block[edges.winner]])
    inside = np.flatnonzero(chosen[pieces.block])
    number, nodes = len(mine), len(inside)
    if number:
        place = np.zeros(len(pieces.block), np.int64)
        place[inside] = np.arange(nodes)
        row, ones = np.arange(number), np.ones(number)
        column = np.concatenate((place[edges.winner[mine]], place[edges.loser[mine]], nodes + row))
        table = sparse.csr_array(
            (np.concatenate((-ones, ones, -ones)), (np.tile(row, 3), column)), (number, nodes + number)
        )
        weight, block = edges.weight[mine], pieces.block[edges.winner[mine]]
        heaviest = np.zeros(pieces.number)  # blocks do not compete: each is scaled by itself
        np.maximum.at(heaviest, block, weight)
        cost = np.concatenate((np.zeros(nodes), weight / heaviest[block]))
        pinned = pieces.root[inside] == inside
        low = np.concatenate((np.where(pinned, 0.0, -np.inf), np.zeros(number)))
        high = np.concatenate((np.where(pinned, 0.0, np.inf), np.full(number, np.inf)))
        want = -(1.0 + edges.offset[mine])
        found = scipy.optimize.linprog(
            cost, A_ub=table, b_ub=want, bounds=np.column_stack((low, high)), method="highs-ds"
        )
        if found.status != 0:
            raise ConcordantError(f"the linear programme of the hinge loss was not solved: {found.message}")
        alpha[inside] = found.x[:nodes]
        dual[mine] = -np.asarray(found.ineqlin.marginals) * heaviest[block]
    return alpha, dual
