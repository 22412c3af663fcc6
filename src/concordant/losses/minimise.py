"""Minimisers of surrogates over α ∈ ℝ^m, for all graphs of a batch: what a surrogate elicits from a population.

Closed form for the linear φ and for gains against all; else the strong components are minimised one by one, by the
network simplex method for piecewise linear φ (sums of hinges) and Newton's method for smooth φ, and moved apart
(``pieces.py``). φ that tends to 0 without reaching it has a minimiser only where every edge lies on a cycle: else the
infimum is followed, exactly. A minimiser is called unique where no φ that is flat or linear leaves it room.

Minima of smooth surrogates within strong components: compiled block by block, or all in one sparse system.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from concordant.errors import UsageError
from concordant.kernels.arrays import in_ranges, read_only
from concordant.kernels.newton_blocks import EXPONENTIAL, KINDS, newton_blocks
from concordant.losses.argmin_set import Bounds, loose_blocks, rigid_nodes
from concordant.losses.gains_to_all import closed_form, has_closed_form
from concordant.losses.hinge import by_circulation
from concordant.losses.minimum import Minimum
from concordant.losses.newton import newton
from concordant.losses.objective import Objective
from concordant.losses.pieces import Pieces
from concordant.preferences.ragged import centred
from concordant.preferences.status import Status

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
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
    small = real & (pieces.size <= LARGEST) & (compiled and objective.phi.kernel in KINDS)
    if small.any():
        nodes, own, steps[small], settled[small] = _compiled(pieces, small, tolerance, most)
        alpha[nodes] = own
    rest = real & ~small
    if objective.phi.ends:
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
    edges, kind = pieces.within.edges, KINDS[str(pieces.within.phi.kernel)]
    packed = pieces.packed(small)
    alpha, blocks = np.zeros(len(packed.nodes)), int(small.sum())
    steps, settled = np.zeros(blocks, np.int64), np.zeros(blocks, bool)
    offset = edges.offset[packed.edges]
    if kind == EXPONENTIAL:  # a factor of all weights of a block, which may be beyond floats
        highest = np.maximum.reduceat(offset, packed.edge_start[:-1])
        offset = offset - np.repeat(highest, np.diff(packed.edge_start))
    columns = (packed.node_start, packed.edge_start, packed.winner, packed.loser)
    given = [read_only(column, np.int64) for column in columns]
    given += [read_only(column, np.float64) for column in (edges.weight[packed.edges], offset)]
    size = pieces.size[small]

    def work(first: int, last: int) -> None:
        newton_blocks(kind, *given, first, last, tolerance, most, alpha, steps, settled)

    in_ranges(work, size * size + 16 * pieces.edges[small])
    return packed.nodes, alpha, steps, settled


Nodes = NDArray[np.int64]
FAR = 40.0
"""Gap that stands for infinity in the reported α: φ is below 1e-17 there."""
SHORT = 1e-9
"""How far a difference must be from where φ is flat or linear, and its slope from that there, to count as curved."""
SLIM = 1e-7
"""Share of an edge's weight by which its dual must differ from a bound."""


def minimise(objective: Objective, *, tolerance: float = 1e-11, max_iterations: int = 200) -> Minimum:
    """Minimise every graph of the objective over the scores of its items.

    In a converged fit the derivative of each node is below ``tolerance`` times the terms it is the sum of; piecewise
    linear φ are solved exactly, but blocks whose nodes × edges exceed 6·10⁸ are left out and their graphs say so.
    Raises UsageError for a linear φ without a penalty (unbounded below), for the hinge with one, and for a penalty on
    the values of some items only.

    >>> from concordant.preferences.preferences import Preferences
    >>> from concordant.preferences.graphs import Batch
    >>> from concordant.losses.surrogates import surrogate
    >>> votes = Preferences.from_comparisons(["x", "x", "x", "y"], ["y", "y", "y", "x"])
    >>> found = minimise(surrogate("ranknet").objective(Batch.whole(votes)))
    >>> found.alpha.round(4).tolist(), Status(found.status[0]).word  # log(3)/2
    ([0.5493, -0.5493], 'attained')
    """
    if not isinstance(objective, Objective):
        raise UsageError(
            f"minimise takes an objective, not {type(objective).__name__}; surrogate(…).objective(batch) makes one"
        )
    phi = objective.phi
    if not phi.bounded and not objective.penalised and len(objective.edges.weight):
        raise UsageError(f"the {phi.name} loss has no lower bound without a penalty on values")
    if phi.piecewise_linear and objective.penalised:
        raise UsageError(f"{phi.name} with a penalty on values is not minimised here; take squared-hinge")
    pulled = int((objective.edges.pull > 0).sum())
    if 0 < pulled < objective.nodes:
        raise UsageError(f"the values of {pulled:,} of {objective.nodes:,} items are penalised; all or none may be")
    if objective.penalised:
        return _penalised(objective, tolerance, max_iterations)
    if phi.piecewise_linear:
        return replace(_hinge(Pieces.of(objective.as_hinges().merged())), objective=objective)
    if has_closed_form(objective):
        return closed_form(objective, tolerance, FAR)
    pieces = Pieces.of(objective.merged())
    objective = pieces.objective
    near, steps, settled = within_blocks(pieces, tolerance, max_iterations)
    with np.errstate(over="ignore", invalid="ignore"):  # exponentials of large offsets
        slope, value = _largest(objective, pieces.within.gradient(near)), pieces.within.value(near)
    found = (_ended if phi.ends else _along_infimum)(pieces, near, *_stretches(pieces, near))
    found.status[pieces.largest_in_graph(~settled) > 0] = Status.STOPPED
    return found.told(value, pieces.largest_in_graph(steps), slope)


@dataclass(frozen=True, eq=False)
class _Face:
    """The minimisers as found."""

    pieces: Pieces
    alpha: Floats
    status: NDArray[np.int8]
    bounds: Bounds
    rigid: Nodes

    def told(self, value: Floats, steps: NDArray[np.int64], slope: Floats) -> Minimum:
        pieces = self.pieces
        return Minimum(
            pieces.objective, self.alpha, pieces.component, value, self.status, steps, slope, self.bounds, self.rigid
        )


def _largest(objective: Objective, of_nodes: Floats) -> Floats:
    largest = np.zeros(len(objective))
    np.maximum.at(largest, objective.owner, np.abs(of_nodes))
    return largest


def _penalised(objective: Objective, tolerance: float, most: int) -> Minimum:
    """Strictly convex: one minimiser; in closed form t + (r')⁻¹(Σ_j (a_ij − a_ji)/ν) for the linear φ (ICML (15))."""
    edges, owner, nodes = objective.edges, objective.owner, objective.nodes
    number = len(objective)
    if objective.phi.linear:
        net = np.bincount(edges.winner, edges.weight, nodes) - np.bincount(edges.loser, edges.weight, nodes)
        alpha = edges.pulled_to + objective.penalty.inverse(-objective.phi.derivative(np.zeros(1)) * net / edges.pull)
        steps, settled = np.zeros(number, np.int64), np.ones(number, bool)
        slope = np.zeros(number)
    else:
        alpha, steps, settled = newton(objective, owner, number, False, tolerance, most)
        slope = _largest(objective, objective.gradient(alpha))
    status = np.where(settled, Status.ATTAINED, Status.STOPPED).astype(np.int8)
    root = edges.node_start[:-1][owner]
    bounds = Bounds.fixed(alpha, root)
    return Minimum(objective, alpha, owner, objective.value(alpha), status, steps, slope, bounds, root)


def _along_infimum(pieces: Pieces, near: Floats, bounds: Bounds, equal: Bounds) -> _Face:
    """φ > 0 tends to 0: all between strong components goes to infinity."""
    objective, across = pieces.objective, pieces.across
    edges = objective.edges
    above = edges.winner[across]
    depth = pieces.depths(np.ones(len(above)))
    widest = np.zeros(len(objective))
    np.maximum.at(widest, objective.owner[edges.winner], edges.offset)
    spread = 2.0 * _largest(objective, near) + FAR + widest
    alpha = centred(near - depth[pieces.block] * spread[objective.owner], pieces.component)
    status = np.full(len(objective), Status.ATTAINED, np.int8)
    status[objective.owner[above]] = Status.NOT_ATTAINED
    return _face(pieces, near, alpha, status, bounds, equal, np.full(len(above), np.inf))


def _stretches(pieces: Pieces, near: Floats) -> tuple[Bounds, Bounds]:
    """φ smooth: all minimisers share φ'(d_e), so d_e where φ is curved; else d_e stays where φ is linear, or is 0.

    Returns bounds, and those of them that are equalities.
    """
    edges, phi = pieces.within.edges, pieces.objective.phi
    gap = pieces.within.gaps(near)
    if phi.strictly_convex:
        fixed = Bounds.fixed(near, pieces.root)
        return fixed, fixed
    slope, steepest = phi.derivative(gap), phi.derivative(np.array([0.0, max(phi.linear_to, -FAR)]))
    faint = -SHORT * steepest[0]
    ended = phi.ends & ((gap >= phi.zero_from - SHORT) | (slope >= -faint))
    linear = np.isfinite(phi.linear_to) & ((gap <= phi.linear_to + SHORT) | (slope <= steepest[1] + faint))
    least = Bounds(edges.winner, edges.loser, np.where(ended, phi.zero_from, gap) + edges.offset)
    most = Bounds(edges.loser, edges.winner, -(phi.linear_to + edges.offset)).only(linear)
    return least.only(~linear).and_also(most.above, most.below, most.least), least.only(~ended & ~linear)


def _ended(pieces: Pieces, near: Floats, bounds: Bounds, equal: Bounds) -> _Face:
    """φ ends at z: edges between strong components get at least z + h, and nothing bounds them from above."""
    objective, across = pieces.objective, pieces.across
    edges = objective.edges
    above, below = edges.winner[across], edges.loser[across]
    want = objective.phi.zero_from + edges.offset[across]
    depth = pieces.depths(want - (near[above] - near[below]))
    alpha = centred(near - depth[pieces.block], pieces.component)
    status = np.full(len(objective), Status.ATTAINED, np.int8)
    status[objective.owner[above]] = Status.NOT_UNIQUE
    return _face(pieces, near, alpha, status, bounds, equal, want)


def _face(
    pieces: Pieces, near: Floats, alpha: Floats, status: NDArray[np.int8], bounds: Bounds, equal: Bounds, want: Floats
) -> _Face:
    """Add up bounds within and between strong components; where they leave room the minimiser is not unique."""
    objective = pieces.objective
    above, below = objective.edges.winner[pieces.across], objective.edges.loser[pieces.across]
    if equal is bounds:  # nothing has room
        return _Face(pieces, alpha, status, bounds.and_also(above, below, want), pieces.root)
    undecided = (status == Status.ATTAINED)[objective.owner]
    bounds = bounds.and_also(equal.below, equal.above, -equal.least)
    rigid = rigid_nodes(equal, objective.nodes)
    root = np.where(undecided, pieces.root, np.arange(objective.nodes))
    loose = loose_blocks(bounds.only(undecided[bounds.above]), near, objective.owner, rigid, root)
    status[objective.owner[loose]] = Status.NOT_UNIQUE
    return _Face(pieces, alpha, status, bounds.and_also(above, below, want), rigid)


def _hinge(pieces: Pieces) -> Minimum:
    """Complementary to the dual of each block: differences at least 1 + h where y < w, at most that where y > 0."""
    objective, edges = pieces.objective, pieces.within.edges
    near, dual, steps, large = by_circulation(pieces)
    left_out = pieces.largest_in_graph(large) > 0
    slim = SLIM * edges.weight
    tried = ~left_out[objective.owner[edges.winner]]
    free, tight = tried & (dual < edges.weight - slim), tried & (dual > slim)
    want = 1.0 + edges.offset
    bounds = Bounds(edges.winner, edges.loser, want)
    short = bounds.only(tight & ~free)  # at most 1 + h, and nothing bounds them from below
    bounds, equal = bounds.only(free).and_also(short.below, short.above, -short.least), bounds.only(free & tight)
    found = _ended(pieces, near, bounds, equal)
    found.status[left_out] = Status.LEFT_OUT
    found.alpha[left_out[objective.owner]] = np.nan
    value = np.where(left_out, np.nan, pieces.within.value(near))
    return found.told(value, pieces.largest_in_graph(steps), np.zeros(len(value)))
