"""Which row of the features belongs to which item of which query of the preferences."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from concordant.errors import InputError, counted
from concordant.features.matrix import Features
from concordant.labels import Labels, look_alike
from concordant.preferences import Preferences

__all__ = ["Alignment", "align", "refuse_missing", "refuse_other_types"]

SOUGHT = 4
"""Labels without features that are compared with the labels of features."""


@dataclass(frozen=True, eq=False)
class Alignment:
    """Rows of the features for the nodes of ``Batch.whole(prefs)``: all items of each query, ascending by code."""

    start: NDArray[np.int64]
    """Nodes of query q of the preferences are start[q]:start[q + 1]."""
    row: NDArray[np.int64]
    """Row of the features of each node."""
    unjudged: NDArray[np.int64]
    """Rows of the features that no query of the preferences has: allowed, they can be scored but not learned from."""


def align(features: Features, prefs: Preferences) -> Alignment:
    """Find the row of the features of every item of every query of the preferences.

    Features without queries hold for every query. Errors: InputError for items with preferences but no features, and
    for labels that are texts on one side and integers on the other.

    >>> prefs = Preferences.from_comparisons(["b"], ["a"], query=["q"])
    >>> features = Features.of([[1.0], [2.0], [3.0]], item=["b", "a", "c"], query=["q", "q", "q"])
    >>> found = align(features, prefs)
    >>> found.row.tolist(), found.unjudged.tolist()
    ([1, 0], [2])
    """
    start, item = prefs.members
    query = np.repeat(np.arange(len(prefs.queries), dtype=np.int64), np.diff(start))
    refuse_other_types(features.items, None if features.query is None else features.queries, prefs)
    codes = features.items.codes_of(prefs.items.values)[item].astype(np.int64)
    missing = codes < 0
    width = max(len(features.items), 1)
    if features.query is None:
        key, sought = features.item.astype(np.int64), codes
    else:
        query_codes = features.queries.codes_of(prefs.queries.values)[query].astype(np.int64)
        missing |= query_codes < 0
        key, sought = features.query.astype(np.int64) * width + features.item, query_codes * width + codes
    row = _rows(key, sought)
    missing |= (key[row] != sought) if len(key) else True
    if missing.any():
        known = (features.items, None if features.query is None else features.queries)
        refuse_missing(len(features), prefs, query[missing], item[missing], known)
    judged = np.zeros(len(features), bool)
    judged[row] = True
    return Alignment(start, row, np.flatnonzero(~judged))


def _rows(key: NDArray[np.int64], sought: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each key that is sought stands, or anywhere if it does not."""
    if len(key) == 0:
        return np.zeros(len(sought), np.int64)
    span = int(key.max()) + 1
    if span <= 8 * len(key):  # a table of what is where is quicker than a search
        table = np.zeros(span, np.int32 if len(key) < 1 << 31 else np.int64)
        table[key] = np.arange(len(key), dtype=table.dtype)
        return np.asarray(table[np.clip(sought, 0, span - 1)], np.int64)
    order = np.argsort(key, kind="stable")
    return np.asarray(order[np.minimum(np.searchsorted(key[order], sought), len(key) - 1)], np.int64)


def refuse_other_types(items: Labels, queries: Labels | None, prefs: Preferences) -> None:
    """Raise InputError where labels are texts on one side and integers on the other."""
    pairs = [("item", items, prefs.items), *([] if queries is None else [("query", queries, prefs.queries)])]
    for role, theirs, ours in pairs:
        if len(theirs) and len(ours) and type(theirs[0]) is not type(ours[0]):
            kinds = {str: "texts", int: "integers"}
            raise InputError(
                f"labels of {role} are {kinds[type(theirs[0])]} in the features ({theirs[0]!r}) and "
                f"{kinds[type(ours[0])]} in the preferences ({ours[0]!r}); give both the same type"
            )


def refuse_missing(
    rows: int,
    prefs: Preferences,
    query: NDArray[np.integer],
    item: NDArray[np.integer],
    known: tuple[Labels, Labels | None],
) -> None:
    """Raise InputError for items with preferences that none of the rows is about.

    ``known`` are labels of items and, if there are any, of queries of the features, among which look-alikes are sought.
    """
    shown = "; ".join(
        f"query {prefs.queries[q]!r}, item {prefs.items[i]!r}"
        for q, i in zip(query[:4].tolist(), item[:4].tolist(), strict=True)
    )
    more = f"; and {len(query) - 4:,} more" if len(query) > 4 else ""
    nodes = int(prefs.members[0][-1])
    alike = next(filter(None, (look_alike(prefs.items[i], known[0]) for i in item[:SOUGHT].tolist())), "")
    if not alike and known[1] is not None:
        alike = next(filter(None, (look_alike(prefs.queries[q], known[1]) for q in query[:SOUGHT].tolist())), "")
    raise InputError(
        f"{len(query):,} of {nodes:,} items with preferences have no features ({shown}{more}); the features hold "
        f"{counted(rows, 'rows')}{alike}"
    )
