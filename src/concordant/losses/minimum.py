"""What minimising a surrogate gives: one minimiser of each graph, and the set of them all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from concordant.errors import UsageError
from concordant.losses.argmin_set import WORK, Bounds, least_gaps, smallest_differences
from concordant.losses.objective import Objective
from concordant.preferences.status import Status

Floats = NDArray[np.float64]
Nodes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Minimum:
    """The minimisers of each graph. Shapes: ``alpha``, ``component`` (nodes,); the others (graphs,)."""

    objective: Objective
    alpha: Floats
    """One minimiser, or a point near the infimum; sum zero in each component unless values are penalised; NaN where a
    graph was left out."""
    component: Nodes
    """Connected component: scores of different ones are not compared by the surrogate."""
    value: Floats
    """The infimum; NaN where a graph was left out."""
    status: NDArray[np.int8]
    """A ``Status`` each; uniqueness is up to a shift of each component."""
    iterations: NDArray[np.int64]
    gradient: Floats
    """Largest absolute derivative at the end (0 for closed forms and for the hinge)."""
    bounds: Bounds
    """The set of all minimisers."""
    rigid: Nodes
    """The first of the nodes whose differences to each other are known to be the same at all minimisers."""

    @property
    def unique(self) -> NDArray[np.bool_]:
        """Graphs (graphs,) with one minimiser, up to a shift of each component."""
        return np.asarray(self.status == Status.ATTAINED)

    @property
    def known(self) -> NDArray[np.bool_]:
        """Graphs (graphs,) whose infimum was found."""
        return ~np.isin(self.status, (Status.STOPPED, Status.LEFT_OUT))

    @property
    def surely_least(self) -> NDArray[np.bool_]:
        """Graphs (graphs,) whose least differences are exact, not lower bounds because paths are too much work."""
        owner, number = self.objective.owner, len(self.objective)
        bounds = np.bincount(owner[self.bounds.above], minlength=number).astype(np.float64)
        return np.asarray(self.unique | (np.bincount(owner, minlength=number) * bounds <= WORK))

    def smallest_differences(self, graph: int) -> Floats:
        """Least α_i − α_j over all minimisers of a graph, shape (m, m): positive when all put i above j."""
        start = self.objective.edges.node_start
        return smallest_differences(self.bounds, self.alpha, int(start[graph]), int(start[graph + 1]))

    def extreme(self, node: Nodes, lowest: bool) -> Floats:
        """Return the minimiser with one node of each graph as low (or as high) as it can be against all others.

        Bounds on differences leave one point that is the largest in every coordinate at once when the node's is held.
        ``node`` has at most one node for each graph; other graphs keep their α, and nodes that nothing holds back are
        moved away together. Only where the status is "not unique". Shape: (nodes,).
        """
        alpha, bounds = (self.alpha, self.bounds) if lowest else (-self.alpha, self.bounds.reversed())
        start = np.full(len(self.objective), -1, np.int64)
        start[self.objective.owner[node]] = node
        from_node = start[self.objective.owner]
        mine = np.flatnonzero((from_node >= 0) & (self.component == self.component[from_node]))
        bounds = bounds.only(from_node[bounds.above] >= 0)
        gap = least_gaps(bounds, alpha, self.objective.owner, self.rigid, from_node[mine], mine)
        rise = np.maximum(alpha[from_node[mine]] - alpha[mine] - gap, 0.0)
        far = 2.0 + 2.0 * np.max(np.abs(alpha[mine]), initial=0.0) + np.max(rise[np.isfinite(rise)], initial=0.0)
        point = alpha.copy()
        point[mine] += np.minimum(rise, far)
        return np.asarray(point if lowest else -point, np.float64)

    def least_gaps(self, above: ArrayLike, below: ArrayLike) -> Floats:
        """Least α_above − α_below over all minimisers, for pairs of nodes of the batch; shape (pairs,).

        −∞ where nothing bounds it (nodes of different components, of different graphs), ∞ where it tends to infinity
        along every minimising sequence, NaN where the graph was left out. A lower bound (that of the pair's own edges)
        where shortest paths are too much work: nodes that ask × edges above 2·10⁹ in a graph of many minimisers. Raises
        UsageError for columns that do not fit and nodes that are not there.

        >>> from concordant.losses.objective import Population
        >>> from concordant.losses.minimise import minimise
        >>> from concordant.losses.surrogates import surrogate
        >>> ends, one = (np.array([0, 1, 1]), np.array([1, 0, 2])), np.ones(3)
        >>> people = Population(np.array([0, 3]), *ends, one, np.array([0.3, 0.1, 0.6]))
        >>> minimise(surrogate("ranknet").objective(people)).least_gaps([0, 0, 2], [1, 2, 0]).round(4).tolist()
        [1.0986, inf, -inf]
        """
        upper, lower = (np.asarray(nodes, np.int64) for nodes in (above, below))
        if upper.ndim != 1 or upper.shape != lower.shape:
            raise UsageError(f"above and below must be columns of one length, not {upper.shape} and {lower.shape}")
        wrong = sum(int(((nodes < 0) | (nodes >= len(self.alpha))).sum()) for nodes in (upper, lower))
        if wrong:
            raise UsageError(f"{wrong:,} nodes are not among the {len(self.alpha):,} of the batch")
        gap = self.alpha[upper] - self.alpha[lower]
        together = self.component[upper] == self.component[lower]
        owner = self.objective.owner
        open_ones = together & ~self.unique[owner[upper]] & (upper != lower) & ~np.isnan(gap)
        gap[~together & ~np.isnan(gap)] = -np.inf
        if open_ones.any():
            gap[open_ones] = least_gaps(self.bounds, self.alpha, owner, self.rigid, upper[open_ones], lower[open_ones])
        return np.asarray(gap, np.float64)
