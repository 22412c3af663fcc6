"""Targets as they are returned: one for each item, with their Monte Carlo error and what a reader should know."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Targets", "centre", "said_of_targets"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Targets:
    """Targets of the items of each query, with their Monte Carlo error and the weights of the queries.

    Items stand as in ``Batch.whole(prefs)``: by query, then by item code.
    """

    start: Ints
    """Items of query q are start[q]:start[q + 1]."""
    value: Floats
    """ȳ, shape (items of all queries,)."""
    error: Floats
    """Monte Carlo standard error of ȳ; 0 where ȳ is exact (and where one subset was drawn, which does not tell).
    It falls as 1/√B."""
    weight: Floats
    """n̂_q / (n m_q) for each query, so that Σ_q weight_q ‖f(q) − ȳ_q‖² is twice the quadratic risk, less a constant."""
    drawn: Ints
    """Subsets that each query's targets are the mean of; 1 where all its judgments are one."""
    zero: Ints
    """How many of them had Z = 0: they count as targets 0."""
    exact: NDArray[np.bool_]
    """Whether the query's only subset is all its judgments (order 'all', or no more than k of them)."""
    order: int | None = None
    """k; None for all judgments."""
    stopped: int = 0
    """Graphs whose structure stopped before convergence."""

    def centred(self) -> Floats:
        """Return the targets less their mean in each query: the free intercept per query taken out."""
        return centre(self.start, self.value)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know, in words."""
        k, exact, zero = self.order, int(self.exact.sum()), int(self.zero.sum())
        with_zero = int((self.zero > 0).sum())
        return said_of_targets(k, len(self.exact), exact, int(self.drawn.sum()), zero, with_zero, self.stopped)


def said_of_targets(
    order: int | None, queries: int, exact: int, drawn: int, zero: int, with_zero: int, stopped: int
) -> tuple[str, ...]:
    """Return what a reader should know of targets, in words, from sums over their queries."""
    said = []
    if order is not None and exact:
        said.append(
            f"{exact:,} of {queries:,} queries have at most {order:,} judgments: all of them are their one subset"
        )
    if zero:
        said.append(
            f"{zero:,} of {drawn:,} subsets (in {with_zero:,} queries) have no best order (Z = 0): their targets are 0"
        )
    if stopped:
        said.append(f"{stopped:,} structures stopped before convergence")
    return tuple(said)


def centre(start: Ints, value: Floats) -> Floats:
    """Subtract from each value, or each row of a matrix, the mean over its query; shape (nodes,) or (nodes, columns).

    >>> centre(np.array([0, 2, 3]), np.array([1.0, 3.0, 5.0])).tolist()
    [-1.0, 1.0, 0.0]
    """
    size = np.diff(start)
    some = np.flatnonzero(size)
    if len(some) == 0:
        return value.copy()
    means = np.add.reduceat(value, start[some], axis=0) / size[some].reshape(-1, *[1] * (value.ndim - 1))
    return np.asarray(value - np.repeat(means, size[some], axis=0))
