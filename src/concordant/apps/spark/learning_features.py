"""Features as a Spark DataFrame: which columns they are, what is wrong with them, and the moments of each, in one pass.

Tasks return small results (counts, a few samples, sums); whatever is refused is told with all its rows counted.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn
from pyspark.sql.types import StringType

from concordant.apps.spark.frames import PLACE, Table
from concordant.apps.spark.label_columns import has_null_byte, label_column
from concordant.apps.spark.telling import told
from concordant.errors import InputError, Setting
from concordant.learning.features.matrix import FILL
from concordant.learning.features.normalising import Moments, signed_log
from concordant.learning.features.reading import chosen_columns, in_letters
from concordant.preferences.values import CLEAN, INFINITE, MISSING, numbers

Floats = NDArray[np.float64]
SHOWN = 4
"""Samples of what is wrong."""
BLOB = "found binary"


@dataclass(frozen=True, eq=False)
class FeatureFrame:
    """A DataFrame with the columns item, query (or none: rows hold for every query) and x0, x1, …, one a feature."""

    frame: DataFrame
    """Items and queries are of the type bigint or string."""
    names: tuple[str, ...]
    """Name of each feature."""
    keys: tuple[str, ...]
    """("query", "item") or ("item",)."""
    name: str

    @classmethod
    def of(cls, table: Table, *, columns: Mapping[str, str], names: Sequence[str] | None = None) -> FeatureFrame:
        """Choose columns as ``read_features`` does; the columns ``PLACE`` are kept where the table has them.

        Errors (InputError): no column of items or several, a name that is not there, no column left for features, items
        or queries that are no labels.
        """
        item, query, _, chosen = chosen_columns(table.name, table.columns, columns, names)
        keys = {role: column for role, column in (("query", query), ("item", item)) if column is not None}
        picked = [_key(table, column, role).alias(role) for role, column in keys.items()]
        picked += [table.column(column).alias(f"x{place}") for place, column in enumerate(chosen)]
        picked += [fn.col(part) for part in PLACE if part in table.frame.columns]
        return cls(table.frame.select(*picked), tuple(chosen), tuple(keys), table.name)

    def labelled_like(self, schema: pa.Schema) -> tuple[FeatureFrame, list[str]]:
        """Return the features with labels of the types that the log has, and what was done, in words.

        Errors (InputError): texts that are not written as integers are where the log has integers.
        """
        frame, said = self.frame, []
        for role in self.keys:
            integers, kind = pa.types.is_integer(schema.field(role).type), dict(frame.dtypes)[role]
            column = fn.col(role)
            if integers and kind == "string":
                cast = column.try_cast("bigint")
                with told(self.name):
                    odd = frame.where(column.isNotNull() & ~cast.cast("string").eqNullSafe(column)).select(role).first()
                if odd is not None:
                    raise InputError(
                        f"labels of {role} are texts in the features ({odd[0]!r}) and integers in the preferences; "
                        "give both the same type"
                    )
                column = cast
            if integers != (kind == "bigint"):
                ours, theirs = ("integers", "texts") if integers else ("texts", "integers")
                said.append(f"{role}: {ours} in the log and {theirs} in the features, matched as they are written")
            frame = frame.withColumn(role, column.cast("bigint" if integers else "string"))
        return replace(self, frame=frame), said


def _key(table: Table, column: str, role: str) -> Column:
    """The labels of a column; none where a text holds a null byte."""
    kind, unsigned = table.type_of(column), column in table.unsigned
    label = label_column(table.column(column), kind, role, table.name, unsigned=unsigned)
    return fn.when(~has_null_byte(label), label) if isinstance(kind, StringType) else label


# -- in a task -----------------------------------------------------------------------------------------------------
def matrix(table: pa.Table | pa.RecordBatch, width: int) -> tuple[Floats, NDArray[np.bool_]]:
    """Return columns x0, x1, … as a matrix with NaN for missing values, and where something is no number.

    >>> matrix(pa.table({"x0": ["1.5", None], "x1": [3, 4]}), 2)[0].tolist()
    [[1.5, 3.0], [nan, 4.0]]
    """
    X = np.empty((table.num_rows, width))
    wrong = np.zeros(X.shape, bool)
    for place in range(width):
        column = table.column(f"x{place}")
        if pa.types.is_boolean(column.type):
            column = column.cast(pa.int8())
        if pa.types.is_floating(column.type):
            X[:, place] = column.to_numpy(zero_copy_only=False) if isinstance(column, pa.Array) else column.to_numpy()
            continue
        read = numbers(column)
        X[:, place] = read.values
        if read.fault is None:
            continue
        X[read.fault == MISSING, place] = np.nan
        for row in np.flatnonzero((read.fault != CLEAN) & (read.fault != MISSING)):
            infinite = in_letters(column[int(row)].as_py()) if read.fault[row] == INFINITE else None
            if infinite is None:
                wrong[row, place] = True
            else:
                X[row, place] = infinite
    return X, wrong


@dataclass(frozen=True)
class Examined:
    """What a pass over rows of features found; examined parts add up."""

    rows: int
    moments: Any
    """``Moments`` of the columns, or 0 where there was no row."""
    unlabelled: int = 0
    """Rows without an item or a query."""
    wrong: tuple[int, tuple[str, ...]] = (0, ())
    """Values that are no numbers: how many, and samples."""
    infinite: tuple[int, tuple[str, ...]] = (0, ())
    missing: tuple[int, tuple[str, ...]] = (0, ())

    def __add__(self, other: Examined) -> Examined:
        return Examined(
            self.rows + other.rows,
            self.moments + other.moments,
            self.unlabelled + other.unlabelled,
            _both(self.wrong, other.wrong),
            _both(self.infinite, other.infinite),
            _both(self.missing, other.missing),
        )

    def check(self, name: str, width: int, missing: str) -> None:
        """Raise InputError for rows that cannot be learned from, with how many there are and where some stand."""
        if self.rows == 0:
            raise InputError(f"{name}: there are no rows")
        if self.unlabelled:
            raise InputError(f"{name}: {self.unlabelled:,} of {self.rows:,} rows have no valid item or query")
        if self.wrong[0]:
            raise InputError(
                f"{name}: {_values(self.wrong, self.rows * width)} are not numbers; choose the columns that are "
                "features with ",
                Setting("names"),
            )
        refused = _both(self.infinite, self.missing) if missing == "raise" else self.infinite
        if refused[0]:
            hint = FILL if missing == "raise" and self.missing[0] else ()
            raise InputError(f"{name}: {_values(refused, self.rows * width, 'not finite')}", *hint)


def _both(one: tuple[int, tuple[str, ...]], two: tuple[int, tuple[str, ...]]) -> tuple[int, tuple[str, ...]]:
    return one[0] + two[0], tuple(sorted((*one[1], *two[1]))[:SHOWN])


def _values(found: tuple[int, tuple[str, ...]], of: int, what: str = "") -> str:
    number, samples = found
    said = f" are {what}" if what else ""
    more = "" if number <= len(samples) else "; …"
    return f"{number:,} of {of:,} values{said} ({'; '.join(samples)}{more})"


@dataclass(frozen=True)
class _Examine:
    """The task: one pass over the batches of a partition."""

    names: tuple[str, ...]
    keys: tuple[str, ...]
    log: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found: Examined | None = None
        for batch in batches:
            if batch.num_rows:
                one = self.examined(batch)
                found = one if found is None else found + one
        if found is not None:
            yield _pickled(found)

    def examined(self, batch: pa.RecordBatch) -> Examined:
        X, wrong = matrix(batch, len(self.names))
        missing, infinite = np.isnan(X) & ~wrong, np.isinf(X)
        bare = np.zeros(len(X), bool)
        for key in self.keys:
            bare |= batch.column(key).is_null().to_numpy(zero_copy_only=False)

        def told(mask: NDArray[np.bool_]) -> tuple[int, tuple[str, ...]]:
            rows, columns = np.nonzero(mask)
            first = zip(rows[:SHOWN].tolist(), columns[:SHOWN].tolist(), strict=True)
            return len(rows), tuple(self.place(batch, X, wrong, row, column) for row, column in first)

        clean = np.where(wrong | infinite, np.nan, X) if wrong.any() or infinite.any() else X
        return Examined(
            len(X), Moments.of(clean, log=self.log), int(bare.sum()), told(wrong), told(infinite), told(missing)
        )

    def place(self, batch: pa.RecordBatch, X: Floats, wrong: NDArray[np.bool_], row: int, column: int) -> str:
        where = ", ".join(f"{key} {batch.column(key)[row].as_py()!r}" for key in self.keys)
        value = repr(str(batch.column(f"x{column}")[row].as_py())[:60]) if wrong[row, column] else X[row, column]
        return f"{where}, column {self.names[column]!r}: {value}"


def _pickled(found: Any) -> pa.RecordBatch:
    """Return one row with one Python object in it, as tasks hand small results over."""
    return pa.RecordBatch.from_pydict({"found": pa.array([pickle.dumps(found)], pa.binary())})


# -- on the driver -------------------------------------------------------------------------------------------------
def examine(features: FeatureFrame, *, log: bool) -> Examined:
    """Read all rows once and return what was found; nothing is refused yet."""
    task = _Examine(features.names, features.keys, log)
    found = features.frame.mapInArrow(task, BLOB).toArrow()["found"].to_pylist()
    return sum((pickle.loads(each) for each in found), Examined(0, 0))


DIGIT = 12
"""Bits of a value that a pass looks at."""


@dataclass(frozen=True)
class _Digits:
    """The task: how often each next digit occurs among the values that begin with some digits."""

    width: int
    begins: NDArray[np.uint64]
    """Shape (2, columns): of the lower and of the upper middle value."""
    shift: int
    bits: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = [self.counted(matrix(batch, self.width)[0]) for batch in batches if batch.num_rows]
        if found:
            yield _pickled(sum(found))

    def counted(self, X: Floats) -> NDArray[np.int64]:
        """Return counts of shape (2, columns, digits)."""
        sign, size = np.uint64(1 << 63), 1 << self.bits
        key = (np.ascontiguousarray(X) + 0.0).view(np.uint64)
        key = np.where(key & sign, ~key, key | sign)  # sorts as the values do
        digit = ((key >> np.uint64(self.shift)) & np.uint64(size - 1)).astype(np.int64)
        place = digit + size * np.arange(self.width)
        known = ~np.isnan(X)
        counts = []
        for begin in self.begins:
            above = self.shift + self.bits
            same = known & (key >> np.uint64(above) == begin >> np.uint64(above)) if above < 64 else known
            counts.append(np.bincount(place[same], minlength=self.width * size).reshape(self.width, size))
        return np.array(counts, np.int64)


def medians(features: FeatureFrame, present: NDArray[np.int64], *, log: bool) -> Floats:
    """Return the median of what is there of each column (after the logarithm), as memory has it; 0 where nothing is.

    Its digits are found one after another from counts, in six passes that send a table of 2^13 numbers for each column.
    """

    def counts(digits: _Digits) -> NDArray[np.int64]:
        found = features.frame.mapInArrow(digits, BLOB).toArrow()["found"].to_pylist()
        return np.asarray(sum(pickle.loads(each) for each in found), np.int64)

    return medians_by(counts, present, log=log)


def medians_by(
    counts: Callable[[_Digits], NDArray[np.int64]], present: NDArray[np.int64], *, log: bool = False
) -> Floats:
    """Find medians by the counts of their digits."""
    rank = np.array([np.maximum(present - 1, 0) // 2, present // 2])
    begins = np.zeros(rank.shape, np.uint64)
    for shift in (*range(64 - DIGIT, 0, -DIGIT), 0):
        bits = min(DIGIT, 64 - shift) if shift else 64 % DIGIT
        total = counts(_Digits(len(present), begins, shift, bits)).cumsum(axis=-1)
        digit = np.minimum((total <= rank[:, :, None]).sum(axis=-1), (1 << bits) - 1)
        before = np.take_along_axis(total, np.maximum(digit - 1, 0)[:, :, None], axis=-1)[:, :, 0]
        rank = rank - np.where(digit > 0, before, 0)
        begins = begins | (digit.astype(np.uint64) << np.uint64(shift))
    sign = np.uint64(1 << 63)
    low, high = np.where(begins & sign, begins ^ sign, ~begins).view(np.float64)
    ends = (signed_log(low), signed_log(high)) if log else (low, high)
    return np.asarray(np.where(present > 0, (ends[0] + ends[1]) / 2, 0.0), np.float64)


def refuse_twice(features: FeatureFrame) -> None:
    """Raise InputError where two rows are of one item (of one query); only the labels are shuffled."""
    keys = list(features.keys)
    counted = features.frame.dropna(subset=keys).groupBy(*keys).count().where("count > 1")
    samples = [fn.min_by(fn.col(key), fn.struct(*keys)).alias(key) for key in keys]
    found = counted.agg(fn.sum(fn.col("count") - 1).alias("again"), *samples).first()
    if not found["again"]:
        return
    unit = "item" if len(keys) == 1 else "(query, item)"
    which = ", ".join(f"{key} {found[key]!r}" for key in keys)
    raise InputError(
        f"{features.name}: {found['again']:,} of the rows repeat an earlier {unit}, such as {which}; give each {unit} "
        "one row"
    )
