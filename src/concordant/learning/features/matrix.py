"""Features: a checked, immutable matrix with rows of items and named columns, and how its rows match preferences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from concordant.errors import InputError, Setting, UsageError, counted, few
from concordant.io.log.json_values import unicode_text
from concordant.kernels.arrays import in_threads
from concordant.preferences.counts import read_only
from concordant.preferences.labels import Labels, look_alike
from concordant.preferences.preferences import Preferences
from concordant.preferences.ragged import Grouped

Ints = NDArray[np.int32]
Matrix = NDArray[np.floating[Any]]
MISSING = ("raise", "keep")
ROWS = 1 << 15
"""Rows whose values are looked at together."""
FILL = (
    "; a ranker fills what is missing (NaN) with ",
    Setting("missing", "mean"),
    ", boosted trees take it as it is (",
    Setting("missing", "keep"),
    ")",
)


class NotNumbers(InputError, TypeError):
    """Something in a matrix of features is of a type that is no number."""


@dataclass(frozen=True, eq=False, repr=False)
class Features:
    """One row of numbers for each (query, item), in the order given.

    Without queries (``query is None``) a row holds for its item in every query.

    >>> features = Features.of([[1.0, 2.0], [3.0, 4.0]], item=["x", "y"], query=["q", "q"], names=["a", "b"])
    >>> features
    Features(2 rows, 1 query, 2 items, 2 features)
    >>> features.items.tolist(), features.X[:, 1].tolist()
    (['x', 'y'], [2.0, 4.0])
    """

    X: Matrix
    """Shape (rows, names), float64 or float32, read-only, or a ``csr_array``; NaN where a value is missing (if that was
    allowed)."""
    items: Labels
    item: Ints
    """Item code of each row."""
    queries: Labels
    query: Ints | None
    """Query code of each row; None when rows hold for every query."""
    names: tuple[str, ...]
    """Name of each column."""
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Levels of each column of categories, which holds their codes 0, 1, …; none of most features."""
    letor: bool = False
    """Whether the rows are those of a LETOR file, where a label of −1 says that nobody judged the row."""

    @classmethod
    def of(
        cls,
        X: Any,
        item: Any,
        query: Any = None,
        names: Sequence[str] | None = None,
        *,
        missing: str = "raise",
        name: str = "features",
    ) -> Features:
        """Check a matrix, the labels of its rows and the names of its columns, and keep them.

        Parameters
        ----------
        X : array-like of shape (rows, columns). float32 stays float32, everything else becomes float64. A float array
            that is C-contiguous is not copied. A sparse matrix of SciPy becomes a ``csr_array`` of float64.
        item, query : columns of texts or integers. Without ``query`` a row holds for its item in every query.
        names : names of the columns; None, "1", "2", …
        missing : 'raise', or 'keep', which lets NaN through for a ``Normaliser`` to fill.
        name : what errors call the source.

        Errors (InputError): lengths that differ, two rows of one (query, item), a name twice, NaN or infinite values,
        each with the rows (numbered from 1) and columns.
        """
        if missing not in MISSING:
            raise UsageError(f"missing must be one of {', '.join(MISSING)}, not {missing!r}")
        matrix = _matrix(X, name)
        labels = {"item": _codes(item, "item", name)}
        rows = matrix.shape[0]
        if query is not None:
            labels["query"] = _codes(query, "query", name)
        for role, (_, codes) in labels.items():
            if len(codes) != rows:
                raise InputError(
                    f"{name}: the matrix has {rows:,} rows and the column of {role} {len(codes):,}; give one "
                    "label for each row"
                )
        called = _names(names, matrix.shape[1], name)
        (items, item_codes), (queries, query_codes) = labels["item"], labels.get("query", (Labels.empty(), None))
        _refuse_twice(items, item_codes, queries, query_codes, name)
        check_values(matrix, called, missing=missing, name=name)
        return cls(matrix, items, item_codes, queries, query_codes, called)

    def __post_init__(self) -> None:
        for name in ("X", "item", "query"):
            if (column := getattr(self, name)) is not None:
                object.__setattr__(self, name, column if issparse(column) else read_only(column))

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update({name: state[name] for name in self.__dataclass_fields__})  # without what was cached
        self.__post_init__()

    def __len__(self) -> int:
        return int(self.X.shape[0])

    @property
    def categories(self) -> tuple[int, ...]:
        """Places of the columns of categories, ascending."""
        return tuple(place for place, name in enumerate(self.names) if name in self.levels)

    @property
    def sparse(self) -> bool:
        """Whether X is a sparse matrix of SciPy (a ``csr_array``)."""
        return bool(issparse(self.X))

    def refuse_sparse(self, what: str) -> None:
        """Raise UsageError where X is sparse."""
        if self.sparse:
            raise UsageError(f"{what} takes no sparse matrix; make it a dense one, or take a linear scorer")

    def refuse_special(self, what: str) -> None:
        """Raise UsageError where X is sparse or has columns of categories."""
        self.refuse_sparse(what)
        self.refuse_categories(what)

    def refuse_categories(self, what: str) -> None:
        """Raise UsageError where columns are of categories."""
        if self.levels:
            raise UsageError(f"{what} takes columns of numbers; {few(self.levels)} hold categories")

    def __repr__(self) -> str:
        queries = "every query" if self.query is None else counted(len(self.queries), "queries")
        rows, items = counted(len(self), "rows"), counted(len(self.items), "items")
        return f"Features({rows}, {queries}, {items}, {counted(len(self.names), 'features')})"

    def take(self, rows: NDArray[Any]) -> Features:
        """Return the rows of a mask or of row numbers, with the labels that they use."""
        items, item = _used(self.items, self.item[rows])
        queries, query = (self.queries, None) if self.query is None else _used(self.queries, self.query[rows])
        return replace(self, X=self.X[rows], items=items, item=item, queries=queries, query=query)

    def where(self, row: int) -> str:
        """Say which query and item a row stands for."""
        item = f"item {self.items[self.item[row]]!r}"
        return item if self.query is None else f"query {self.queries[self.query[row]]!r}, {item}"


def _all_finite(X: Matrix) -> bool:
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(X.sum(dtype=np.float64)))  # a finite sum has only finite terms


def check_values(X: Any, names: Sequence[str], *, missing: str, name: str, begin: int | None = None) -> None:
    """Raise InputError for infinite values and, unless ``missing`` is 'keep', for NaN, naming rows and columns.

    ``begin`` says that X is a part of a larger matrix, and which row of it is its first (from 0).
    """
    if issparse(X):
        bad = np.isinf(X.data) if missing == "keep" else ~np.isfinite(X.data)
        if not bad.any():
            return
        row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))[bad]
        _refuse_values(row + (begin or 0), X.indices[bad], X.data[bad], X.nnz, names, missing, name, "")
    if all(in_threads(_all_finite, [X[begin : begin + ROWS] for begin in range(0, len(X), ROWS)])):
        return
    bad = np.isinf(X) if missing == "keep" else ~np.isfinite(X)
    if not bad.any():
        return
    rows, columns = np.nonzero(bad)
    part = "" if begin is None else f" in rows {begin + 1:,} to {begin + len(X):,}"
    _refuse_values(rows + (begin or 0), columns, X[bad], X.size, names, missing, name, part)


def _refuse_values(
    rows: Any, columns: Any, values: Any, size: int, names: Sequence[str], missing: str, name: str, part: str
) -> None:
    shown = "; ".join(
        f"row {row + 1:,}, column {names[column]!r}: {value}"
        for row, column, value in zip(rows[:4].tolist(), columns[:4].tolist(), values[:4], strict=True)
    )
    more = "" if len(rows) <= 4 else "; …"
    hint = () if missing == "keep" or not np.isnan(values).any() else FILL
    raise InputError(f"{name}: {len(rows):,} of {size:,} values{part} are not finite ({shown}{more})", *hint)


def _matrix(X: Any, name: str) -> Any:
    try:
        given = X.to_numpy() if hasattr(X, "to_numpy") and not isinstance(X, np.ndarray) else X
    except (TypeError, ValueError) as error:
        raise InputError(f"{name}: not a matrix of numbers: {str(error)[:160]}") from None
    if issparse(given):
        return _sparse(given, name)
    if np.ma.is_masked(given):
        raise InputError(f"{name}: values are masked; NaN stands for a missing value (X.filled(np.nan))")
    try:
        array = np.asarray(given)
        if array.dtype.kind == "c":
            raise ValueError("Complex data not supported")
        if array.dtype == object and not any(isinstance(value, str | bytes) for value in array.flat):
            array = array.astype(np.float64)
        matrix: Matrix = np.ascontiguousarray(array, np.float32 if array.dtype == np.float32 else np.float64)
    except (OverflowError, TypeError, ValueError) as error:
        kind = NotNumbers if isinstance(error, TypeError) else InputError
        raise kind(f"{name}: not a matrix of numbers: {str(error)[:160]}") from None
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name}: the matrix holds {array.dtype}, features are real numbers")
    if array.ndim != 2:
        shapes = "; X.reshape(-1, 1) is one feature, X.reshape(1, -1) one row" if array.ndim == 1 else ""
        said = f"the matrix has {counted(array.ndim, 'dimensions')}, it must have 2 (rows, features)"
        raise InputError(f"{name}: {said}. Reshape your data{shapes}")
    return matrix


def _sparse(given: Any, name: str) -> Any:
    if given.ndim != 2 or given.dtype.kind not in "biuf":
        raise InputError(f"{name}: a sparse {type(given).__name__} of {given.dtype} is no matrix of real numbers")
    whole = given.format == "csr" and given.has_canonical_format
    made = csr_array(given, dtype=np.float64, copy=not whole)
    made.sum_duplicates()
    return made


def _codes(column: Any, role: str, name: str) -> tuple[Labels, Ints]:
    try:
        return Labels.encode(column)
    except InputError as error:
        raise InputError(f"{name}: the column of {role}: {error}") from None


def _names(names: Sequence[str] | None, width: int, name: str) -> tuple[str, ...]:
    called = tuple(str(place + 1) for place in range(width)) if names is None else tuple(names)
    if len(called) != width:
        raise InputError(f"{name}: {len(called):,} names for {width:,} columns; give one name for each column")
    wrong = [each for each in called if not isinstance(each, str)]
    if wrong:
        raise InputError(f"{name}: names of features are texts, not {wrong[0]!r}")
    if broken := [each for each in called if not unicode_text(each)]:
        raise InputError(f"{name}: names of features are texts of Unicode, not {ascii(broken[0])[:80]}")
    if len(set(called)) < width:
        twice = sorted({each for each in called if called.count(each) > 1})
        raise InputError(f"{name}: the feature names {few(twice)} are there more than once")
    return called


def _refuse_twice(items: Labels, item: Ints, queries: Labels, query: Ints | None, name: str) -> None:
    key = item.astype(np.int64) if query is None else query.astype(np.int64) * max(len(items), 1) + item
    sorter = np.argsort(key, kind="stable")
    again = np.flatnonzero(np.diff(key[sorter]) == 0)
    if len(again) == 0:
        return
    first, second = int(sorter[again[0]]), int(sorter[again[0] + 1])
    whose = "" if query is None else f"query {queries[query[first]]!r}, "
    unit = "item" if query is None else "(query, item)"
    raise InputError(
        f"{name}: {len(again):,} of {len(key):,} rows repeat an earlier {unit}: rows {first + 1:,} and {second + 1:,} "
        f"are both {whose}item {items[item[first]]!r}; give each {unit} one row"
    )


def _used(labels: Labels, codes: Ints) -> tuple[Labels, Ints]:
    used, new = np.unique(codes, return_inverse=True)
    return Labels(labels.take(used)), new.astype(np.int32)


SOUGHT = 4
"""Labels without features that are compared with the labels of features."""


@dataclass(frozen=True, eq=False)
class Alignment(Grouped):
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
    query = prefs.member_groups.owner
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
    sorter = np.argsort(key, kind="stable")
    return np.asarray(sorter[np.minimum(np.searchsorted(key[sorter], sought), len(key) - 1)], np.int64)


def refuse_other_types(items: Labels, queries: Labels | None, prefs: Preferences) -> None:
    """Raise InputError where labels are texts on one side and integers on the other."""
    pairs = [("item", items, prefs.items), *([] if queries is None else [("query", queries, prefs.queries)])]
    for role, theirs, ours in pairs:
        if len(theirs) and len(ours) and type(theirs[0]) is not type(ours[0]):
            if role == "query" and list(ours) == ["all"]:
                raise InputError(
                    f"the features have queries ({theirs[0]!r}, …), the preferences are of one query, 'all'; if those "
                    "were put together when they were read, read them with ",
                    Setting("pool", False),
                )
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
