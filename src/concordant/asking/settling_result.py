"""What is said of the top of each query: how sure it is, and what would settle it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from concordant.frames import as_pandas
from concordant.graphs import Batch

__all__ = ["FAR", "LEVEL", "NOTHING", "OPEN", "SETTLED", "SINGLE", "STATUS", "Settling"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
SETTLED, OPEN, LEVEL, FAR, NOTHING, SINGLE = range(6)
STATUS = (
    *("settled", "open", "equal scores at the boundary", "not within 1000 times the data", "no such top"),
    "a single judgment or judge",
)


@dataclass(frozen=True, eq=False)
class Settling:
    """For each graph and each k: how sure the present top k is, and what would settle it.

    Arrays of shape (graphs, tops) unless said otherwise. Everything is about the graph's largest component: ``outside``
    counts the items that no chain of comparisons connects with it, which no repetition of the same design will place.
    """

    batch: Batch
    top: tuple[int, ...]
    level: float
    status: NDArray[np.int8]
    """Index into STATUS."""
    probability: Floats
    """That the present top k, as a set, is the true one; NaN where there is no such top or nothing to go by."""
    assured: Floats
    """More judgments, over the pairs as those at hand, with which the top k *then found* is the true one with
    probability ``level``, averaged over what the truth may be given the data; inf: not within 1000 times the data."""
    extra: Floats
    """The same if the present scores were the truth (promises too much: the gap that is seen is often too large)."""
    low: Floats
    """``extra`` if the gap were at the upper end of its 80% interval,"""
    high: Floats
    """and at the lower end; inf where that end is no lead at all."""
    inside: Ints
    """Node of the batch in the top k whose lead is the least certain; −1 where there is none."""
    beyond: Ints
    """The node outside that it may have to give way to."""
    lead: Floats
    """Their difference of scores over its standard error."""
    outside: Ints
    """Shape (graphs,): items that are not connected with the largest component."""
    unlimited: NDArray[np.bool_]
    """One of the two has never lost or never won (against the others of the component): its score rests on the prior,
    and the normal law behind these numbers is rough."""
    approximate: NDArray[np.bool_]
    """Shape (graphs,): more than 2,000 connected items; those nearest the boundary, taken for independent."""
    draws: int
    """From how many draws; a probability p has the standard error √(p(1 − p)/draws)."""
    method: str
    notes: tuple[str, ...] = ()

    def to_arrow(self) -> pa.Table:
        """Return one row for each query and k."""
        prefs, tops = self.batch.prefs, len(self.top)

        def labels(node: Ints) -> pa.Array:
            flat = node.ravel()
            items = prefs.items.take(self.batch.item[np.maximum(flat, 0)])
            return pa.array(
                [label if there else None for label, there in zip(items.to_pylist(), flat >= 0, strict=True)]
            )

        return pa.table(
            {
                "query": prefs.queries.take(np.repeat(self.batch.query, tops)),
                "top": np.tile(np.array(self.top, np.int64), len(self.batch)),
                "status": pa.array([STATUS[code] for code in self.status.ravel().tolist()]),
                "probability": self.probability.ravel(),
                "judgments": np.repeat(self.batch.judgments, tops),
                "more": self.assured.ravel(),
                "more_if_as_seen": self.extra.ravel(),
                "low": self.low.ravel(),
                "high": self.high.ravel(),
                "inside": labels(self.inside),
                "beyond": labels(self.beyond),
                "lead": self.lead.ravel(),
                "not_connected": np.repeat(self.outside, tops),
                "unlimited": self.unlimited.ravel(),
                "approximate": np.repeat(self.approximate, tops),
            }
        )

    def to_pandas(self) -> Any:
        """Return the rows as a pandas data frame (pandas must be installed)."""
        return as_pandas(self.to_arrow())
