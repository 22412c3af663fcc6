"""Minima of smooth surrogates within strong components: compiled block by block, or all in one sparse system."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from concordant.kernels.columns import read_only
from concordant.kernels.surrogate_newton import EXPONENTIAL, LOGISTIC, SQUARED_HINGE, newton_blocks
from concordant.surrogates.margins import MARGINS
from concordant.surrogates.newton_blocks import newton
from concordant.surrogates.pieces import Pieces
from concordant.threads import in_ranges

__all__ = ["COMPILED", "within_blocks"]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
COMPILED = {"logistic": LOGISTIC, "exponential": EXPONENTIAL, "squared-hinge": SQUARED_HINGE}
"""Margin functions that the kernel knows; any other smooth φ takes the plain way."""
LARGEST = 400
"""Nodes of a block that the kernel eliminates in a dense table."""


def within_blocks(
    pieces: Pieces, tolerance: float, most: int, *, compiled: bool = True
) -> tuple[Floats, NDArray[np.int64], Flags]:
    """Minimise within every block; return α (nodes,), iterations and convergence (blocks,)."""
    objective = pieces.within
    alpha, steps = np.zeros(objective.nodes), np.zeros(pieces.number, np.int64)
    settled = np.ones(pieces.number, bool)
    real = pieces.size > 1
    known = compiled and objective.phi.name in COMPILED and objective.phi is MARGINS.get(objective.phi.name)
    small = real & (pieces.size <= LARGEST) & known
    if small.any():
        nodes, own, steps[small], settled[small] = _compiled(pieces, small, tolerance, most)
        alpha[nodes] = own
    rest = real & ~small
    if np.isfinite(objective.phi.zero_from):
        rest |= ~settled  # weights so far apart that a whole block's slope does not see some of them
    if rest.any():
        other, steps_of_rest, done = newton(objective, pieces.block, pieces.number, True, tolerance, most, only=rest)
        inside = rest[pieces.block]
        alpha[inside], steps[rest], settled[rest] = other[inside], steps_of_rest[rest], done[rest]
    return alpha, steps, settled


def _compiled(
    pieces: Pieces, small: Flags, tolerance: float, most: int
) -> tuple[NDArray[np.int64], Floats, NDArray[np.int64], Flags]:
    """Nodes of the small blocks and their α; iterations and convergence of each."""
    arcs, kind = pieces.within.arcs, COMPILED[pieces.within.phi.name]
    packed = pieces.packed(small)
    alpha, blocks = np.zeros(len(packed.nodes)), int(small.sum())
    steps, settled = np.zeros(blocks, np.int64), np.zeros(blocks, bool)
    margin = arcs.margin[packed.arcs]
    if kind == EXPONENTIAL:  # a factor of all weights of a block, which may be beyond floats
        highest = np.maximum.reduceat(margin, packed.arc_start[:-1])
        margin = margin - np.repeat(highest, np.diff(packed.arc_start))
    columns = (packed.node_start, packed.arc_start, packed.winner, packed.loser)
    given = [read_only(column, np.int64) for column in columns]
    given += [read_only(column, np.float64) for column in (arcs.weight[packed.arcs], margin)]
    size = pieces.size[small]

    def work(first: int, last: int) -> None:
        newton_blocks(kind, *given, first, last, tolerance, most, alpha, steps, settled)

    in_ranges(work, size * size + 16 * pieces.arcs[small])
    return packed.nodes, alpha, steps, settled
