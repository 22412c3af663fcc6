"""The list of questions for annotators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from concordant.frames import as_pandas
from concordant.graphs import Batch

__all__ = ["Questions"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Questions:
    """Pairs to ask, the most useful first in each query; arrays have one entry per pair."""

    batch: Batch
    graph: Ints
    number: Ints
    """1 for the first pair of its query."""
    better: Ints
    """Node of the batch that ranks higher at present (of pairs that connect components: the one in the largest)."""
    worse: Ints
    judgments: Floats
    """Strength of the judgments so far (their number, where none has a weight)."""
    share: Floats
    """Of these, how much ``better`` won, ties half; NaN when never judged."""
    predicted: Floats
    """The share that the present scores predict."""
    gain: Floats
    """Expected number of pairs of items put in the right order; inf where the pair connects components."""
    to_settle: Floats
    """More votes on this pair until the majority of all is right with the level's probability, if the true
    share is (won + 1)/(votes + 2), Laplace's rule; no model. inf at even votes, NaN when never judged."""
    reason: list[str]
    top: int | None
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.graph)

    def to_arrow(self) -> pa.Table:
        """Return one row for each pair."""
        prefs, item = self.batch.prefs, self.batch.item
        return pa.table(
            {
                "query": prefs.queries.take(self.batch.query[self.graph]),
                "number": self.number,
                "better": prefs.items.take(item[self.better]),
                "worse": prefs.items.take(item[self.worse]),
                "judgments": self.judgments,
                "share": pa.array(self.share, from_pandas=True),
                "predicted": self.predicted,
                "gain": self.gain,
                "to_settle": pa.array(self.to_settle, from_pandas=True),
                "reason": self.reason,
            }
        )

    def to_pandas(self) -> Any:
        """Return the rows as a pandas data frame (pandas must be installed)."""
        return as_pandas(self.to_arrow())
