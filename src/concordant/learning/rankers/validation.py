"""What rankers are given: rows of features in any of the allowed forms, and what was judged about them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from concordant.errors import InputError, UsageError, few
from concordant.learning.features.categories import coded_frame
from concordant.learning.features.matrix import Features, Matrix
from concordant.learning.features.reading import read_features
from concordant.learning.features.streamed import FeatureFile
from concordant.learning.rankers.judged import Judged
from concordant.losses.metrics.judged_lists import as_numbers
from concordant.preferences.counted import refuse_crossed
from concordant.preferences.layouts import ALIASES, plain
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Preferences
from concordant.preferences.ragged import Grouped, Ragged
from concordant.ranking.click_models import usual_clicks
from concordant.ranking.ranked_lists import examined_only, lists_with_gaps
from concordant.ranking.structures import structure as find_structure

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Training(Grouped):
    """Rows of features and the nodes that are learned from: all judged items of each query, by query, then item."""

    features: Features
    named: bool
    """Whether the columns have names of their own."""
    start: Ints
    """Nodes of query q are start[q]:start[q + 1]."""
    row: Ints
    """Row of the features of each node."""
    unjudged: int
    """Rows that no judgment speaks of."""
    judged: Preferences | Floats
    """Preferences, or the relevance of each node."""
    weight: Floats
    """Weight of each query from ``sample_weight``; ones without."""
    said: tuple[Note, ...] = field(default=(), kw_only=True)
    """What a reader should know of how the rows were read."""
    plain: bool = field(default=False, kw_only=True)
    """Whether a plain matrix and plain numbers were given, one list."""
    cut: int = field(default=0, kw_only=True)
    """Queries of which only some rows were chosen (``Judged.cut``)."""

    @property
    def rows(self) -> int:
        """Number of rows of the features, judged or not."""
        return len(self.features)

    @property
    def labelled(self) -> bool:
        """Whether relevance labels were judged, and not preferences."""
        return not isinstance(self.judged, Preferences)

    @property
    def flat(self) -> bool:
        """Whether no query has two items of different label."""
        return self.labelled and not (self.groups.most(self.labels) > self.groups.least(self.labels)).any()

    @property
    def prefs(self) -> Preferences:
        """The preferences. Errors: InputError where there are labels."""
        if not isinstance(self.judged, Preferences):
            raise InputError("these are relevance labels, where preferences are needed")
        return self.judged

    @property
    def labels(self) -> Floats:
        """The relevance of each node. Errors: InputError where there are preferences."""
        if isinstance(self.judged, Preferences):
            raise InputError("these are preferences, where relevance labels are needed")
        return self.judged

    @property
    def share(self) -> Floats:
        """w_q n̂_q / Σ w n̂: the weight of each query in the risk (a labelled query is one judgment)."""
        judgments = np.ones(len(self.weight)) if self.labelled else self.prefs.judgments
        total = self.weight * judgments
        return np.asarray(total / max(float(total.sum()), 1e-300), np.float64)

    @property
    def notes(self) -> tuple[Note, ...]:
        """What a reader should know."""
        single = int((np.diff(self.start) == 1).sum())
        clicks = not self.labelled and self.prefs.kind == "selections"
        return (*self.said, *said_of_rows(self.unjudged, self.rows, single, len(self.start) - 1, clicks))

    def refuse_cut(self) -> None:
        """Raise InputError where a split cut queries apart: nothing can be judged or held out by them."""
        if self.cut:
            raise InputError(f"{_cut_apart(self.cut, len(self.weight))}; what is held out has to be whole: {SPLIT}")


SPLIT = "split by query, for instance GroupKFold with groups=judged.query"


def _cut_apart(cut: int, queries: int) -> str:
    return f"{cut:,} of {queries:,} queries are cut apart: of their rows only some were chosen"


def said_of_rows(unjudged: int, rows: int, single: int, queries: int, clicks: bool = False) -> tuple[Note, ...]:
    """Return what a reader should know of rows of features and of queries; ``clicks``: of a log of clicks."""
    without = "{rows:,} of {of:,} rows are in no judgment" + (" or were never examined" if clicks else "")
    without += ": nothing is learned there"
    alone = "{queries:,} of {of:,} queries have a single item: nothing to order"
    return (
        *((Note("rows without judgment", without, rows=unjudged, of=rows),) if unjudged else ()),
        *((Note("single items", alone, queries=single, of=queries),) if single else ()),
    )


def rows_of(X: Any, missing: str, names: tuple[str, ...] | None = None) -> tuple[Features, bool]:
    """Return the rows of X as Features, and whether its columns have names.

    X is Features, a tuple (matrix, query, item), a file or a table with a column of items (as ``read_features``
    takes), or a matrix whose rows have no labels (numbered instead). A frame whose columns are ``names`` is a matrix.
    """
    keep = "raise" if missing == "raise" else "keep"
    if isinstance(X, Features):
        return X, True
    if isinstance(X, FeatureFile):
        raise UsageError(f"{X.log.name}: features that stay on disk do not do here; read_features reads them")
    if isinstance(X, tuple):
        if len(X) != 3:
            raise UsageError(f"a tuple of features is (X, query, item), not one of {len(X)}")
        matrix, query, item = X
        called = _column_names(matrix)
        return framed(matrix, item, query, called, keep), called is not None
    if isinstance(X, str | os.PathLike) or (_is_table(X) and not _is_matrix(X, names)):
        return read_features(X, missing=keep), True
    called = _column_names(X)
    return framed(X, np.arange(1, _rows(X) + 1), None, called, keep), called is not None


def framed(X: Any, item: Any, query: Any, names: tuple[str, ...] | None, missing: str) -> Features:
    """Return the rows of a matrix, which may be a frame with columns of categories."""
    found = coded_frame(X)
    if found is None:
        return Features.of(X, item, query, names, missing=missing)
    return replace(Features.of(found[0], item, query, names or tuple(found[1]), missing=missing), levels=found[1])


def _rows(X: Any) -> int:
    """Return the number of rows of a matrix of any make. Errors: UsageError where it is none."""
    shape = getattr(X, "shape", None)
    if isinstance(shape, tuple) and len(shape) > 0:  # a sparse matrix has no length
        return int(shape[0])
    if not hasattr(X, "__len__") and hasattr(X, "__array__"):
        X = np.asarray(X)
    if not hasattr(X, "__len__") or isinstance(X, type | bytes | Preferences) or shape == ():
        raise UsageError(f"features are a table, a matrix or a tuple (X, query, item), not {type(X).__name__}")
    return len(X)


def _columns(X: Any) -> list[Any] | None:
    """The names of the columns of a table, whatever it is made of."""
    if isinstance(X, Mapping) and not issparse(X):  # a matrix of SciPy may be a dict
        return list(X)
    columns = getattr(X, "column_names", None) or getattr(X, "columns", None)
    return list(columns) if isinstance(columns, Iterable) else None


def _is_table(X: Any) -> bool:
    return _columns(X) is not None or hasattr(X, "__arrow_c_stream__")


def _is_matrix(X: Any, names: tuple[str, ...] | None) -> bool:
    """A frame of numbers: its columns are the features that are known, or none of them names items."""
    columns = _columns(X)
    if columns is None or isinstance(X, Mapping) or not hasattr(X, "to_numpy"):
        return False
    if names is not None and set(columns) == set(names):
        return True
    return not any(plain(str(column)) in ALIASES["item"] for column in columns)


def _column_names(X: Any) -> tuple[str, ...] | None:
    columns = _columns(X)
    return tuple(columns) if columns and all(isinstance(column, str) for column in columns) else None


def matched(features: Features, named: bool, names: tuple[str, ...] | None, width: int, who: str = "Ranker") -> Matrix:
    """Return the matrix with the columns that the ranker was fitted on, in its order.

    Errors (InputError): names that differ, saying which; without names, another number of columns.
    """
    if not named or names is None:
        if features.X.shape[1] != width:
            found = features.X.shape[1]
            raise InputError(f"X has {found} features, but {who} is expecting {width} features as input")
        return features.X
    refuse_other_names(features.names, names)
    if features.names == names:
        return features.X
    place = {name: column for column, name in enumerate(features.names)}
    chosen = features.X[:, [place[name] for name in names]]
    return chosen if features.sparse else np.ascontiguousarray(chosen)


def refuse_other_names(given: tuple[str, ...], names: tuple[str, ...]) -> None:
    """Raise InputError where the names of features are not those that a ranker was fitted on, in whatever order."""
    there, known = set(given), set(names)
    missing, extra = [name for name in names if name not in there], [name for name in given if name not in known]
    if missing or extra:
        said = [f"lack {few(missing)}"] if missing else []
        said += [f"have {few(extra)}, which were not there when the ranker was fitted"] if extra else []
        raise InputError(f"the features {' and '.join(said)}; it was fitted on {len(names):,}: {few(names)}")


def reads_below(structure: Any, y: Any) -> bool:
    """Whether a structure, or the usual one of these clicks, reads what stands below the last click of a list."""
    prefs = y.prefs if isinstance(y, Judged) else y
    if structure is None or structure == "auto":
        if not isinstance(prefs, Preferences):
            return False
        return find_structure(usual_clicks(prefs)).below or lists_with_gaps(prefs) > 0  # so that each part is, too
    listed = structure if isinstance(structure, list | tuple) else [structure]
    return any(callable(one) or find_structure(one).below for one in listed)


def learning_rows(
    X: Any,
    y: Any,
    missing: str,
    sample_weight: Any = None,
    *,
    structure: Any = None,
    whole: bool = False,
    qid: Any = None,
    group: Any = None,
) -> Training:
    """Match rows of features with what was judged about them.

    y is Judged (then X is a matrix with its rows, or Features), Preferences (then X has labelled rows) or a relevance
    label for each row. Of clicks only items that somebody examined are taken; all that were shown where the structure
    reads what stands below the last click, and where ``whole``.
    ``qid`` (rows,) or ``group`` (queries,) name the queries of rows that do not. A plain matrix and plain numbers are
    one list of grades. Errors: InputError for judged items without features, labels that are not numbers, lengths that
    differ; UsageError for a matrix without labels of rows and preferences.
    """
    if y is None:
        raise UsageError("a ranker requires y to be passed, but the target y is None")
    whole = whole or reads_below(structure, y)
    plain = not isinstance(y, Judged | Preferences) and not says_items(X) and qid is None and group is None
    X, y, said = with_queries(X, y, missing, qid, group)
    if isinstance(y, Judged):
        y = y if whole or y.prefs is None else replace(y, prefs=examined_only(y.prefs))
        matrix = X.X if isinstance(X, Features) else X[0] if isinstance(X, tuple) else X
        called = X.names if isinstance(X, Features) else _column_names(matrix)
        keep = "raise" if missing == "raise" else "keep"
        rows = framed(matrix, np.arange(1, _rows(matrix) + 1), None, called, keep)
        judged, named = y, called is not None
        levels = X.levels if isinstance(X, Features) else rows.levels
        features = replace(judged.beside(rows.X, rows.names), levels=levels)
    else:
        features, named = _labelled(X, y, missing)
        if isinstance(y, Preferences):
            refuse_crossed(y, "a ranker")
            y = y if whole else examined_only(y)
            judged = Judged(features.items, features.item, features.queries, features.query, y, None)
        else:
            labels = as_numbers(y, "labels", size=len(features))
            unknown = labels == -1.0 if features.letor else np.zeros(len(labels), bool)
            if unknown.any():
                labels = np.where(unknown, np.nan, labels)
                text = "{rows:,} of {of:,} rows have the label −1, not judged: they are left out"
                said = (*said, Note("not judged", text, rows=int(unknown.sum()), of=len(labels)))
            judged = Judged(features.items, features.item, features.queries, features.query, None, labels)
    start, row, found = judged.nodes()
    if len(found) == 0:
        what = "judgments" if isinstance(found, Preferences) else "rows"
        raise InputError(f"there are no {what} to learn from")
    if features.X.shape[1] == 0:
        raise InputError(f"0 feature(s) (shape={features.X.shape}) while a minimum of 1 is required.")
    if judged.cut:
        text = "{cut:,} of {of:,} queries are cut apart: of their rows only some were chosen; " + SPLIT
        said = (*said, Note("queries cut apart", text, cut=judged.cut, of=len(start) - 1))
    used = np.zeros(len(features), bool)
    used[row] = True
    if judged.labels is not None:
        used |= np.isnan(judged.labels)
    weight = _query_weights(sample_weight, len(features), start, row)
    unjudged = int((~used).sum())
    return Training(features, named, start, row, unjudged, found, weight, said=said, plain=plain, cut=judged.cut)


def with_queries(X: Any, y: Any, missing: str, qid: Any = None, group: Any = None) -> tuple[Any, Any, tuple[Note, ...]]:
    """Return rows and judgments that say their queries as ``qid`` or ``group`` do, and what a reader should know.

    ``qid`` has the query of each row, ``group`` the numbers of rows of queries that stand one after another. A plain
    matrix with plain numbers and neither is one list. Errors: UsageError where both are given, or the rows say their
    queries already; InputError for another length.
    """
    named = says_items(X)
    if qid is None and group is None:
        if named or isinstance(y, Judged | Preferences):
            return X, y, ()
        judged = Judged.of_labels(y)
        if len(judged) == 1:
            raise InputError("1 sample is no list: there is nothing to order")
        text = "the rows name no queries: all {rows:,} are one list of grades; qid or group would say otherwise"
        return X, judged, (Note("one list", text, rows=len(judged)),)
    asked = "group" if qid is None else "qid"
    if qid is not None and group is not None:
        raise UsageError("qid says the query of each row, group how many rows each query has; give one of them")
    if isinstance(y, Judged):
        raise UsageError(f"Judged says the query of each row already; leave {asked} out")
    rows = rows_of(X, missing)[0] if named else None
    if rows is not None and rows.query is not None:
        raise UsageError(f"the rows say their query already; leave {asked} out")
    size = _rows(X) if rows is None else len(rows)
    query = queries_of(qid, group, size)
    if rows is None:
        if isinstance(y, Preferences):
            return X, y, ()  # which is refused: nothing says the item of a row
        return X, Judged.of_labels(y, query=query), ()
    made = Features.of(rows.X, rows.items.take(rows.item), query, rows.names, missing="keep")
    return replace(made, levels=rows.levels, letor=rows.letor), y, ()


def queries_of(qid: Any, group: Any, rows: int) -> Any:
    """Return the query of each row: as given, or 1, 2, … of ``group`` (queries,), the numbers of their rows.

    Errors (InputError): not one query for each row; numbers of rows that are no whole numbers above 0, or that do not
    add up to the rows.
    """
    if qid is not None:
        if len(qid) != rows:
            raise InputError(f"qid has {len(qid):,} entries, X has {rows:,} rows; it names the query of each row")
        return qid
    size = as_numbers(group, "group")
    wrong = (size != np.floor(size)) | (size < 1)
    if wrong.any():
        raise InputError(f"group holds {size[wrong.argmax()]:g}; it says how many rows each query has, 1 or more")
    if size.sum() != rows:
        raise InputError(f"group adds up to {int(size.sum()):,} rows, X has {rows:,}; it says how many each query has")
    return np.repeat(np.arange(1, len(size) + 1), size.astype(np.int64))


def says_items(X: Any) -> bool:
    """Whether rows say their items: Features, (X, query, item), a file, a table with a column of items."""
    made = isinstance(X, Features | FeatureFile | tuple | str | os.PathLike)
    return made or (_is_table(X) and not _is_matrix(X, None))


def _labelled(X: Any, y: Any, missing: str) -> tuple[Features, bool]:
    if not says_items(X):
        raise UsageError(
            f"the rows of a plain matrix do not say which item and query they are; give Features, (X, query, item) or "
            f"a table with a column of items, or wrap the {'preferences' if isinstance(y, Preferences) else 'labels'} "
            "with Judged.of, which names the rows"
        )
    return rows_of(X, missing)


def _query_weights(given: Any, rows: int, start: Ints, row: Ints) -> Floats:
    """Return one weight per query from one per row. Errors (InputError): negative, not constant in a query, all 0."""
    if given is None:
        return np.ones(len(start) - 1)
    weight = as_numbers(given, "sample_weight", size=None)
    if len(weight) != rows:
        raise InputError(f"sample_weight has {len(weight):,} entries, X has {rows:,} rows")
    if (weight < 0).any():
        raise InputError(f"sample_weight: {int((weight < 0).sum()):,} of {rows:,} weights are negative")
    of_nodes = weight[row]
    first = of_nodes[start[:-1]]
    differs = Ragged(start).spread(first) != of_nodes
    if differs.any():
        raise InputError(
            f"sample_weight differs within a query ({int(differs.sum()):,} rows); a weight multiplies the loss of a "
            "whole query, so all rows of a query need the same"
        )
    if not first.any():
        raise InputError("sample_weight is zero for every query that was judged")
    return first
