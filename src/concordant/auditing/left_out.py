"""What an audit leaves out because it is too large, and why: notes made from its tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from concordant.errors import of_queries, queries_said
from concordant.surrogates.minimum import STATUS

__all__ = ["left_out", "of_all"]

WHY = {
    "left out: too large": "have too many items and preferences",
    "stopped before convergence": "were still moving when the time for them was spent",
}
"""Why nothing is said of a surrogate, by its status."""


def left_out(queries: pa.Table, surrogates: pa.Table) -> list[str]:
    """Which surrogates were not minimised, which orders not searched to the end, what was not resampled."""
    number = len(queries)
    notes = []
    status, name = np.array(surrogates["status"].to_pylist()), np.array(surrogates["surrogate"].to_pylist())
    for word in STATUS:
        if word in WHY and (status == word).any():
            names, counts = np.unique(name[status == word], return_counts=True)
            each = ", ".join(f"{one} ({count:,})" for one, count in zip(names.tolist(), counts.tolist(), strict=True))
            notes.append(
                of_queries(int(counts.max()), number, f"{WHY[word]}: no minimiser, hence no verdict, of {each}")
            )
    short = sum("too large" in method for method in queries["optimal_method"].to_pylist())
    if short:
        notes.append(of_queries(short, number, "are too large to search for the best order to the end"))
    if "acyclic_share" in queries.column_names:
        shares = queries["acyclic_share"].to_numpy(zero_copy_only=False).astype(float)
        unknown = int(np.isnan(shares).sum())
        if unknown:
            notes.append(of_queries(unknown, number, "have too many pairs to be resampled: no shares of replicates"))
    return notes


def of_all(notes: Sequence[str], queries: int) -> tuple[str, ...]:
    """Return notes on parts as notes on all queries: “5 of 9 queries …” of each part becomes one count.

    >>> of_all(["2 of 3 queries are odd", "the query is odd", "as it is"], 4)
    ('3 of 4 queries are odd', 'as it is')
    """
    counts: dict[str, int] = {}
    for number, said in map(queries_said, notes):
        counts[said] = counts.get(said, 0) + number
    return tuple(of_queries(n, queries, said) if n else said for said, n in counts.items())
