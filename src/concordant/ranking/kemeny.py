"""Kemeny orders: the best order of each query of a log for the pairwise loss, with what is proven of it.

As a structure: the order that contradicts the fewest judgments, with level stretches where no judgment decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from concordant.errors import UsageError
from concordant.kernels.arrays import in_parts, read_only
from concordant.preferences.connectivity import Differences, connectivity
from concordant.preferences.frames import as_pandas
from concordant.preferences.graphs import Batch, Graphs
from concordant.preferences.labels import Labels
from concordant.preferences.notes import Note, of_queries
from concordant.preferences.preferences import Preferences
from concordant.preferences.ragged import Ragged
from concordant.preferences.status import Status
from concordant.ranking.best_orders import (
    CHUNK,
    CUT_SHORT,
    METHODS,
    BestOrders,
    Components,
    Solved,
    best_orders,
    component_tables,
)
from concordant.ranking.scores import Scores, numbered

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
EXACT_UP_TO, EXACT_ON_REQUEST = 12, 20
"""Items of a strongly connected component that subsets are gone through for: always, and when asked to be exact."""
ROUGHLY_UP_TO, ROUGH_WORK = 8, 30_000
"""The same in a replicate of the bootstrap, and the visits of edges that the search of a larger one may take."""


@dataclass(frozen=True, eq=False, repr=False)
class OptimalOrders:
    """Items of each query from the first to the last; columns of rows, then columns of queries."""

    queries: Labels
    items: Labels
    query: NDArray[np.int32]
    item: NDArray[np.int32]
    rank: NDArray[np.int64]
    """From 1; orders are strict. 0 for items that nobody judged, which stand last (in tables it is missing then)."""
    loss: Floats
    """Pairwise loss of each query's order: the mean over its judgments of the strength that the order contradicts."""
    lower: Floats
    """No order of the query has a smaller loss."""
    exact: NDArray[np.bool_]
    method: NDArray[np.int8]
    """Index into METHODS."""
    judgments: NDArray[np.int64]
    """Judgments of each query: loss × judgments is the Kemeny distance where these are rankings."""

    def __len__(self) -> int:
        return len(self.item)

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table: query, item, rank, and the query's loss, lower, exact, method."""
        methods = pa.DictionaryArray.from_arrays(pa.array(self.method[self.query]), pa.array(METHODS))
        return pa.table(
            {
                "query": self.queries.take(self.query),
                "item": self.items.take(self.item),
                "rank": pa.array(self.rank, mask=self.rank == 0),
                "loss": self.loss[self.query],
                "lower": self.lower[self.query],
                "exact": self.exact[self.query],
                "method": methods.cast(pa.string()),
            }
        )

    def to_pandas(self) -> Any:
        """Return the rows as a pandas data frame (pandas must be installed)."""
        return as_pandas(self.to_arrow())

    def __repr__(self) -> str:
        return (
            f"OptimalOrders({len(self.queries):,} queries, {len(self):,} rows, {int(self.exact.sum()):,} proven best)"
        )


def optimal_order(prefs: Preferences, *, exact: bool = False, time_limit: float = 10.0, seed: int = 0) -> OptimalOrders:
    """Order the items of every query so that the pairwise loss of the mean preferences is least.

    loss = Σ_{i<j} s_ij 1(i below j) + s_ji 1(i above j) with s the mean over the query's judgments, ties half to each
    side; for rankings loss × judgments is the Kemeny distance (a tied pair of a judgment adds ½ whatever the order).
    Strongly connected components of the difference graph with at most 12 items are solved exactly; larger ones by a
    local search that is often proven best by its bound. ``exact`` goes through subsets up to 20 items and gives
    what is left open to an integer program, ``time_limit`` seconds for each component. Of several best orders one;
    items that nobody judged have no rank and stand after the others.

    Errors: UsageError when ``prefs`` are no Preferences or the time is not positive.

    >>> votes = Preferences.from_orders(["q"] * 9, [1, 1, 1, 2, 2, 2, 3, 3, 3], list("abcabcbca"), [1, 2, 3] * 3)
    >>> best = optimal_order(votes)
    >>> best.to_arrow()["item"].to_pylist(), (best.loss * best.judgments).round(6).tolist(), best.exact.tolist()
    (['a', 'b', 'c'], [2.0], [True])

    Source: Duchi, Mackey and Jordan (2013), (10), (11), Proposition 3; Kemeny, Daedalus 88 (1959).
    """
    if not isinstance(prefs, Preferences):
        raise UsageError(f"optimal_order takes Preferences, not {type(prefs).__name__}; read them first")
    batch = Batch.whole(prefs)
    best = best_orders(
        batch.graphs,
        exact_up_to=EXACT_ON_REQUEST if exact else EXACT_UP_TO,
        programme=exact,
        time_limit=time_limit,
        seed=seed,
    )
    judgments = np.maximum(batch.judgments, 1)
    compared = connectivity(batch.graphs).compared
    rows = np.lexsort((best.place, ~compared, batch.owner))
    rank = np.where(compared[rows], np.arange(len(rows)) - batch.node_start[batch.owner[rows]] + 1, 0)
    return OptimalOrders(
        prefs.queries, prefs.items, batch.query[batch.owner[rows]], batch.item[rows], rank,
        best.loss / judgments, best.lower / judgments, best.exact, best.method, batch.judgments,
    )  # fmt: skip


# -- the structure -----------------------------------------------------------------------------------------------
def kemeny(batch: Batch) -> Scores:
    """Minus the place of each item in the order of its graph that contradicts the fewest judgments; shape (nodes,).

    The order minimises Σ over judged pairs of the strength of the judgments that prefer the item behind (ties are
    none), in each component of the comparison graph by itself, places from 1. A strongly connected component of the
    majorities with at most 12 items is gone through exactly, and items that stand either way in its best orders share
    the middle of their places; a larger one is searched, with a bound, and neighbours between which no judgment
    decides share it. Items that no chain of majorities orders stand by the chains that lead down from them less those
    that lead up, equal ones at the same place: every order that breaks such ties is as good. An item that no judgment
    touches has place 1 of its own component.

    >>> votes = Preferences.from_comparisons(["x", "y", "z", "x"], ["y", "z", "x", "w"], count=[3, 2, 1, 1])
    >>> kemeny(Batch.whole(votes)).value.tolist()  # w, x, y, z
    [-4.0, -1.0, -2.0, -3.0]

    Source: Kemeny, Daedalus 88 (1959); Duchi, Mackey and Jordan (2013), (10), (11).
    """
    return _kemeny(batch, EXACT_UP_TO, None)


def rough_kemeny(batch: Batch) -> Scores:
    """Return ``kemeny`` with a short search, for replicates of the bootstrap; exact for components of up to 8 items."""
    return _kemeny(batch, ROUGHLY_UP_TO, ROUGH_WORK)


def _kemeny(batch: Batch, exact_up_to: int, work: int | None) -> Scores:
    graphs = batch.graphs
    solved = Solved.of(Components.of(Differences.of(graphs)), exact_up_to, 0, work)
    best = solved.joined(graphs)
    component = connectivity(graphs).component
    place, shared = _places(numbered(batch.owner, component), -_leads(solved.parts), _offsets(solved, exact_up_to))
    status = np.where(best.exact, Status.CLOSED_FORM, Status.CONVERGED)
    status[~best.exact & (best.method == CUT_SHORT)] = Status.STOPPED
    level = np.bincount(batch.owner[shared], minlength=len(batch)) > 0
    none = np.zeros(len(batch), np.int64)
    notes = _notes(graphs, best, level)
    return Scores(-place, component, status.astype(np.int8), none, none.astype(np.float64), notes=notes)


def _places(group: Ints, *keys: Ints) -> tuple[Floats, NDArray[np.bool_]]:
    """Place of each node in its group by the keys, from 1; equal ones share the middle, and which do."""
    sorter = np.lexsort((*keys[::-1], group))
    begin = Ragged.runs(group[sorter])
    runs = Ragged.runs(group[sorter], *(key[sorter] for key in keys))
    middle = runs.first + 0.5 * (runs.sizes + 1) - begin.first[begin.owner[runs.first]]
    place, shared = np.empty(len(sorter)), np.empty(len(sorter), bool)
    place[sorter], shared[sorter] = runs.spread(middle), runs.spread(runs.sizes > 1)
    return place, shared


def _leads(parts: Components) -> Ints:
    """Items of the longest chain of majorities that leads down from each node less those of the longest that leads up.

    Of two items with a majority between them the winner has the larger lead, unless a cycle joins them: these have one.
    """
    from concordant.kernels import orders as kernels

    above, below = np.zeros(len(parts), np.int64), np.zeros(len(parts), np.int64)
    order = np.lexsort((parts.places(), parts.graph))
    out = np.searchsorted(parts.cross_from, np.arange(len(parts) + 1))
    start, target, size = (read_only(x, np.int64) for x in (out, parts.cross_to, parts.sizes))
    kernels.chains(order, start, target, size, above, below)
    return np.asarray((below - above)[parts.number], np.int64)


def _offsets(solved: Solved, exact_up_to: int) -> Ints:
    """Place of each node within its strongly connected component, from the middle, in half places."""
    from concordant.kernels import orders as kernels

    parts = solved.parts
    size = parts.sizes
    offset = np.zeros(len(parts.node), np.int64)
    if len(small := np.flatnonzero((size > 1) & (size <= exact_up_to))):
        tables = component_tables(parts)
        cost = size[small] << size[small]
        in_parts(lambda some: kernels.stretches(some, *tables, offset), small, cost, CHUNK)
    if len(large := np.flatnonzero(size > exact_up_to)):
        kernels.runs(large, *component_tables(parts)[:4], solved.place, offset)
    found = np.empty_like(offset)
    found[parts.node] = offset
    return found


def _notes(graphs: Graphs, best: BestOrders, level: NDArray[np.bool_]) -> tuple[Note, ...]:
    """How many preferences the orders contradict, what is not proven, and where several orders are as good."""
    tied = 0.5 * graphs.pairs.sums(graphs.ties)
    held = float((graphs.wins + graphs.losses).sum())
    lost = float((best.loss - tied).sum())
    text = (
        "{of:the order contradicts|the orders of {of:,} queries contradict} {lost:,} of {held:,} preferences between "
        "two items"
    )
    open_ = ~best.exact
    if not open_.any():
        text += ", as few as any order"
    notes = [Note("contradicted", text, lost=round(lost), held=round(held), of=len(graphs))]
    if open_.any():
        text = (
            "{of:the order is|{queries:,} of {of:,} orders are} not proven best: another may contradict up to "
            "{fewer:,} preferences fewer"
        )
        gap = int(np.ceil(best.gap.sum() - 1e-9))
        notes.append(Note("not proven best", text, queries=int(open_.sum()), of=len(graphs), fewer=gap))
    text = "{queries:has|have} items whose order no judgment decides: they share a place"
    return (*notes, *of_queries("level stretches", level, text))
