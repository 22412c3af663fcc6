"""Kemeny orders: the best order of each query of a log for the pairwise loss, with what is proven of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from concordant.errors import UsageError
from concordant.preferences.frames import as_pandas
from concordant.preferences.graphs import Batch
from concordant.preferences.labels import Labels
from concordant.preferences.preferences import Preferences
from concordant.ranking.best_orders import METHODS, best_orders

Floats = NDArray[np.float64]
EXACT_UP_TO, EXACT_ON_REQUEST = 12, 20
"""Items of a strongly connected component that subsets are gone through for: always, and when asked to be exact."""


@dataclass(frozen=True, eq=False, repr=False)
class OptimalOrders:
    """Items of each query from the first to the last; columns of rows, then columns of queries."""

    queries: Labels
    items: Labels
    query: NDArray[np.int32]
    item: NDArray[np.int32]
    rank: NDArray[np.int64]
    """From 1; orders are strict."""
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
                "rank": self.rank,
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
    what is left open to an integer program, ``time_limit`` seconds for each component. Of several best orders one.

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
    rows = np.lexsort((best.place, batch.owner))
    return OptimalOrders(
        prefs.queries, prefs.items, batch.query[batch.owner[rows]], batch.item[rows], best.place[rows] + 1,
        best.loss / judgments, best.lower / judgments, best.exact, best.method, batch.judgments,
    )  # fmt: skip
