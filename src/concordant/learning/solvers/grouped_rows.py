"""Normal equations of rows that come block by block, the rows of each query one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.learning.solvers.least_squares import NormalEquations
from concordant.preferences.ragged import Ragged

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class GroupedRows:
    """Adds up what ``NormalEquations.of`` makes of a matrix that is never there as a whole.

    A query whose rows go on in the next block stays open until all have come, as equations with one intercept, which
    is the query's own; so a query may be larger than any block.

    >>> X, y = np.array([[0.0], [1.0], [5.0], [7.0]]), np.array([10.0, 11.0, 0.0, 2.0])
    >>> rows = GroupedRows(y, np.array([0, 2, 4]), np.array([0.5, 0.5]), width=1)
    >>> for node in ([2], [3, 0], [1]):  # in the order in which a file has them
    ...     rows.add(X[node], np.arange(len(node)), np.array(node))
    >>> rows.equations().solve(0.0).theta.round(12).tolist()
    [1.0]
    """

    def __init__(self, Y: Floats, start: Ints, weight: Floats, *, width: int, intercept: str = "query") -> None:
        """Shapes: ``Y`` (nodes,) or (nodes, targets), ``start`` (queries + 1,), ``weight`` (queries,)."""
        self.Y, self.start, self.weight, self.intercept = Y, start, weight, intercept
        self.size = Ragged(start).sizes
        nothing = np.zeros(0, np.int64)
        self.total = self._of(np.zeros((0, width)), nothing, nothing, nothing, nothing, intercept)
        self.open: dict[int, NormalEquations] = {}
        self.left: dict[int, int] = {}

    def add(self, X: NDArray[np.floating[Any]], rows: Ints, nodes: Ints) -> None:
        """Take in some rows of X and the node that each is."""
        if len(nodes) > 1 and not (nodes[1:] > nodes[:-1]).all():
            sorter = np.argsort(nodes, kind="stable")
            rows, nodes = rows[sorter], nodes[sorter]
        query = np.searchsorted(self.start, nodes, side="right") - 1
        runs = Ragged.runs(query)
        begin, size = runs.first, runs.sizes
        queries = query[begin]
        whole = (size == self.size[queries]) if self.intercept == "query" else np.ones(len(size), bool)
        of_whole = runs.spread(whole)
        kept = (rows[of_whole], nodes[of_whole])
        self.total = self.total + self._of(X, *kept, queries[whole], size[whole], self.intercept)
        for part in np.flatnonzero(~whole):
            at = slice(int(begin[part]), int(begin[part] + size[part]))
            found = self._of(X, rows[at], nodes[at], queries[[part]], size[[part]], "one")
            self._go_on(int(queries[part]), int(size[part]), found)

    def equations(self) -> NormalEquations:
        """Return the sum of all, once every node of every query has come."""
        assert not self.open, "rows of a query did not come"
        return self.total

    def _of(
        self, X: NDArray[np.floating[Any]], rows: Ints, nodes: Ints, queries: Ints, size: Ints, intercept: str
    ) -> NormalEquations:
        start = Ragged.of_sizes(size).start
        return NormalEquations.of(X, self.Y[nodes], start, self.weight[queries], rows=rows, intercept=intercept)

    def _go_on(self, query: int, size: int, found: NormalEquations) -> None:
        self.open[query] = self.open[query] + found if query in self.open else found
        self.left[query] = self.left.get(query, int(self.size[query])) - size
        if self.left[query] == 0:
            del self.left[query]
            self.total = self.total + self.open.pop(query).of_one_query()
