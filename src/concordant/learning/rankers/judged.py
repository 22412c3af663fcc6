"""Judged: what people said about the rows of a feature matrix, one entry per row, so that scikit-learn can split it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.errors import InputError, UsageError, counted
from concordant.learning.features.matrix import Alignment, Features, align
from concordant.losses.metrics.judged_lists import as_numbers
from concordant.preferences.labels import Labels
from concordant.preferences.preferences import Preferences
from concordant.preferences.ragged import Ragged

Ints = NDArray[np.int32]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Judged:
    """The judgments on the rows of X: preferences among the items of a query, or a relevance label for each row.

    It has as many entries as X has rows and is indexed by rows, as scikit-learn does when it splits: the rows chosen
    keep the judgments of their queries. Use a splitter over queries (``GroupKFold`` with ``groups=judged.query``); to
    keep only some of the items that a query's judgments speak of is an error.

    >>> votes = Preferences.from_comparisons(["a", "c"], ["b", "d"], query=["p", "q"])
    >>> judged = Judged.of(votes, query=["p", "p", "q", "q"], item=["a", "b", "c", "d"])
    >>> judged
    Judged(4 rows, 2 queries, 2 judgments)
    >>> judged[[2, 3]].item.tolist(), len(judged[[2, 3]].prefs)
    (['c', 'd'], 1)
    """

    items: Labels
    item_code: Ints
    """Item of each row."""
    queries: Labels
    query_code: Ints | None
    """Query of each row; None when a row holds for its item in every query."""
    prefs: Preferences | None
    labels: Floats | None
    """Relevance of each row, when that is what was judged; NaN where nobody judged it."""
    whole: NDArray[np.int64] | None = None
    """Rows of each query, by code, before any were chosen: of labels whose queries were named."""

    @classmethod
    def of(cls, prefs: Preferences, *, item: Any, query: Any = None) -> Judged:
        """Say which item (and query) of the preferences each row of X is.

        Without ``query`` a row holds for its item in every query. Rows that no judgment speaks of are allowed. Errors
        (InputError): columns of different length, a (query, item) twice, a judged item without a row.
        """
        if not isinstance(prefs, Preferences):
            raise UsageError(
                f"Judged.of takes Preferences, not {type(prefs).__name__}; for labels use Judged.of_labels"
            )
        judged = cls._coded(item, query, prefs=prefs)
        judged.align()
        return judged

    @classmethod
    def of_labels(cls, labels: Any, *, query: Any = None, item: Any = None) -> Judged:
        """Give each row its relevance label: complete preference data.

        Without ``query`` all rows are one query's; ``item`` defaults to the number of the row. Errors (InputError):
        labels that are not finite numbers, columns of different length, a (query, item) twice.
        """
        values = as_numbers(labels, "labels")
        item = np.arange(1, len(values) + 1) if item is None else item
        made = cls._coded(item, ["all"] * len(values) if query is None else query, labels=values)
        return made if query is None else replace(made, whole=made._sizes)

    @classmethod
    def _coded(cls, item: Any, query: Any, *, prefs: Preferences | None = None, labels: Floats | None = None) -> Judged:
        rows = Features.of(np.zeros((len(item), 0)), item, query, name="judged rows")
        if labels is not None and len(labels) != len(rows):
            raise InputError(f"{len(labels):,} labels for {len(rows):,} rows; give one label for each row")
        return cls(rows.items, rows.item, rows.queries, rows.query, prefs, labels)

    @property
    def _sizes(self) -> NDArray[np.int64]:
        codes = np.zeros(0, np.int32) if self.query_code is None else self.query_code
        return np.bincount(codes, minlength=len(self.queries))

    @property
    def cut(self) -> int:
        """Queries of labelled rows that a choice of rows cut apart: some of their rows are here, some are not.

        >>> judged = Judged.of_labels([2, 0, 1, 0], query=["p", "p", "q", "q"])
        >>> judged[:3].cut, judged[:2].cut
        (1, 0)
        """
        if self.whole is None:
            return 0
        left = self._sizes
        return int(((left > 0) & (left < self.whole)).sum())

    @property
    def shape(self) -> tuple[int]:
        """(rows,)"""
        return (len(self.item_code),)

    def __len__(self) -> int:
        return len(self.item_code)

    def __repr__(self) -> str:
        queries = "every query" if self.query_code is None else counted(len(np.unique(self.query_code)), "queries")
        held = "labels" if self.prefs is None else counted(len(self.prefs), "judgments")
        return f"Judged({counted(len(self), 'rows')}, {queries}, {held})"

    @property
    def query(self) -> NDArray[Any]:
        """Label of the query of each row, for ``groups=``. Errors: UsageError where rows hold for every query."""
        if self.query_code is None:
            raise UsageError("these rows hold for their item in every query, so they have no groups; give query=")
        return np.asarray(self.queries.take(self.query_code).to_numpy(zero_copy_only=False))

    @property
    def item(self) -> NDArray[Any]:
        """Label of the item of each row."""
        return np.asarray(self.items.take(self.item_code).to_numpy(zero_copy_only=False))

    def __getitem__(self, key: Any) -> Judged:
        """Return the chosen rows (row numbers, a mask or a slice) and the judgments of their queries.

        Errors (InputError): a row twice; rows of a query without all items that its judgments speak of.
        """
        if isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis:  # how scikit-learn indexes arrays
            key = key[0]
        rows = np.atleast_1d(np.arange(len(self))[key])
        if len(np.unique(rows)) < len(rows):
            raise InputError(
                f"{len(rows) - len(np.unique(rows)):,} rows are chosen more than once; draw queries or judgments with "
                "repetition instead of rows"
            )
        chosen = replace(
            self,
            item_code=self.item_code[rows],
            query_code=None if self.query_code is None else self.query_code[rows],
            labels=None if self.labels is None else self.labels[rows],
        )
        if self.prefs is None:
            return chosen
        prefs = self.prefs
        if chosen.query_code is not None:
            mine = np.zeros(len(self.queries), bool)
            mine[chosen.query_code] = True
            codes = self.queries.codes_of(prefs.queries.values)
            held = np.flatnonzero((codes >= 0) & mine[codes])
            if len(held) < len(prefs.queries):
                prefs = prefs.select(prefs.queries.take(held).to_pylist()) if len(held) else Preferences.empty()
        chosen = replace(chosen, prefs=prefs)
        try:
            chosen.align()
        except InputError as error:
            raise InputError(
                f"the rows chosen cut queries apart: {error}. Split by query, for instance GroupKFold with "
                "groups=judged.query"
            ) from None
        return chosen

    def align(self) -> Alignment:
        """Return the row of every item of every query of the preferences. Errors: InputError, items without a row."""
        prefs = Preferences.empty() if self.prefs is None else self.prefs
        return align(self.beside(np.zeros((len(self), 0))), prefs)

    def nodes(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Preferences | Floats]:
        """Return the nodes of each query (offsets), the row of each, and the preferences or the label of each."""
        if self.prefs is not None:
            found = self.align()
            return np.asarray(found.start, np.int64), found.row, self.prefs
        query = np.zeros(len(self), np.int32) if self.query_code is None else self.query_code
        row = np.lexsort((self.item_code, query)).astype(np.int64)
        row = row if self.labels is None else row[~np.isnan(self.labels[row])]
        return Ragged.runs(query[row]).start, row, np.zeros(0) if self.labels is None else self.labels[row]

    def beside(self, X: NDArray[Any], names: tuple[str, ...] = ()) -> Features:
        """Return the matrix X with this object's labels of rows. Errors: InputError, another number of rows."""
        if X.shape[0] != len(self):
            raise InputError(f"X has {X.shape[0]:,} rows, the judgments are on {len(self):,}")
        return Features(X, self.items, self.item_code, self.queries, self.query_code, names)
