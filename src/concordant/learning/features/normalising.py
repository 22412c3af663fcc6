"""Normaliser: what is done to features before a linear model sees them, learned in one pass and kept with the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from concordant.errors import InputError, Setting, UsageError, did_you_mean, few
from concordant.io.log.json_values import Fields
from concordant.kernels.arrays import in_threads
from concordant.learning.features.matrix import Features, Matrix, check_values
from concordant.learning.features.sparse_rows import SparseRows, like, sparse_moments

Floats = NDArray[np.float64]
BLOCK = 1 << 16
"""Values of a matrix that are worked on at a time: few enough to stay in the processor's cache."""
TOGETHER = 32
"""Blocks that a thread takes at a time."""


@dataclass(frozen=True, eq=False)
class Moments:
    """Of each column, over the values that are not NaN; shape (columns,).

    Moments of parts add up to those of the whole, so that rows may come in pieces, from anywhere, in any order.

    >>> found = Moments.of(np.array([[1.0, 5.0], [3.0, 5.0], [np.nan, 5.0]]))
    >>> found.mean.tolist(), found.deviation.tolist(), found.present.tolist()
    ([2.0, 5.0], [1.0, 0.0], [2, 3])
    >>> parts = Moments.of(np.array([[1.0], [2.0]])) + Moments.of(np.array([[6.0]]))
    >>> parts.mean.tolist(), (parts.deviation**2).round(12).tolist()
    ([3.0], [4.666666666667])

    Source of the sum: Chan, Golub and LeVeque (1979).
    """

    mean: Floats
    """0 where no value is there."""
    deviation: Floats
    """Population standard deviation; exactly 0 for a constant column."""
    present: NDArray[np.int64]

    @classmethod
    @np.errstate(over="ignore", invalid="ignore")
    def of(cls, X: Any, *, log: bool = False) -> Moments:
        """Take the moments of X, or of its signed logarithms.

        Sums are of what exceeds the mean of the first rows, so no digits are lost to columns far from 0. Where squares
        are beyond float64 the deviation is infinite or NaN.
        """
        if issparse(X):
            return cls(*sparse_moments(X, signed_log(X.data) if log else X.data))
        width = X.shape[1]
        blocks = row_blocks(X)
        shift = np.zeros(width)
        if blocks:
            first = _float64(X[blocks[0]], log)
            there = ~np.isnan(first)
            shift = np.where(there, first, 0.0).sum(axis=0) / np.maximum(there.sum(axis=0), 1)
        total, squares, present = np.zeros(width), np.zeros(width), np.zeros(width, np.int64)
        low, high = np.full(width, np.inf), np.full(width, -np.inf)

        def work(parts: list[slice]) -> list[tuple[Any, ...]]:
            with np.errstate(over="ignore", invalid="ignore"):  # each thread has its own
                return [_of_block(_float64(X[part], log), shift) for part in parts]

        for found in in_threads(work, [blocks[k : k + TOGETHER] for k in range(0, len(blocks), TOGETHER)]):
            for least, most, sums, square, rows in found:  # in the order of the rows, whatever the threads
                np.fmin(low, least, out=low)
                np.fmax(high, most, out=high)
                total += sums
                squares += square
                present += rows
        some = np.maximum(present, 1)
        excess = total / some
        same = low >= high
        mean = np.where(present == 0, 0.0, np.where(same, low, shift + excess))
        return cls(mean, np.where(same, 0.0, np.sqrt(np.maximum(squares / some - excess**2, 0.0))), present)

    @np.errstate(over="ignore", invalid="ignore")
    def __add__(self, other: object) -> Moments:
        """Return the moments of both sets of rows together; a column that is constant in them all has deviation 0.

        Errors (UsageError): another number of columns.
        """
        if not isinstance(other, Moments):
            return NotImplemented
        if len(self.mean) != len(other.mean):
            raise UsageError(f"moments of {len(self.mean):,} and of {len(other.mean):,} columns do not add up")
        present = self.present + other.present
        some = np.maximum(present, 1)
        apart = np.where((self.present > 0) & (other.present > 0), other.mean - self.mean, 0.0)
        mean = np.where(self.present > 0, self.mean + apart * (other.present / some), other.mean)
        within = self.present / some * self.deviation**2 + other.present / some * other.deviation**2
        between = (self.present / some) * (other.present / some) * apart**2
        return Moments(mean, np.sqrt(within + between), present)

    def __radd__(self, other: object) -> Moments:
        return self if other == 0 else NotImplemented  # so that sum() works


def _float64(X: NDArray[np.floating[Any]], log: bool) -> Floats:
    return signed_log(X) if log else X.astype(np.float64)


def _of_block(values: Floats, shift: Floats) -> tuple[Floats, Floats, Floats, Floats, NDArray[np.int64] | int]:
    """Least, greatest, sum and sum of squares beyond ``shift``, and number present, of each column; spoils values."""
    least, most = np.fmin.reduce(values, axis=0), np.fmax.reduce(values, axis=0)
    values -= shift
    sums, there = values.sum(axis=0), len(values)
    if np.isnan(sums).any():
        gaps = np.isnan(values)
        there -= gaps.sum(axis=0)
        values[gaps] = 0.0
        sums = values.sum(axis=0)
    return least, most, sums, np.einsum("ij,ij->j", values, values), there


def row_blocks(X: NDArray[Any]) -> list[slice]:
    """Return slices of rows with about BLOCK values each."""
    step = max(1, BLOCK // max(X.shape[1], 1))
    return [slice(begin, begin + step) for begin in range(0, len(X), step)]


def signed_log(X: NDArray[np.floating[Any]]) -> Floats:
    """Return sign(x) · log(1 + |x|).

    >>> signed_log(np.array([-1.0, 0.0, 1.0])).round(4).tolist()
    [-0.6931, 0.0, 0.6931]
    """
    wide = X.astype(np.float64)
    return np.asarray(np.copysign(np.log1p(np.abs(wide)), wide))


FILLS = ("mean", "median", "zero", "raise")


@dataclass(frozen=True, eq=False)
class Normaliser:
    """Fill missing values, take logarithms, subtract the mean and divide by the standard deviation, per column.

    z = (t(x) − mean) / scale; mean and scale (population, divided by n) are those of t over the values present in
    training. A column that is constant in training becomes 0 in training and is only shifted otherwise (its scale is
    1).

    Parameters
    ----------
    standardise : whether the mean is subtracted and the difference divided by the scale.
    log : whether t(x) = sign(x)·log(1 + |x|) rather than x.
    missing : what a missing value becomes before it is standardised: the 'mean' or the 'median' of t, 'zero' for that
        of 0, or 'raise' (an error).
    names, mean, scale, fill, absent, constant : what ``fit`` finds, see below.

    >>> X = np.array([[1.0, 5.0], [3.0, 5.0], [np.nan, 5.0]])
    >>> fitted = Normaliser().fit(X)
    >>> fitted.apply(X).tolist(), fitted.constant.tolist()
    ([[-1.0, 0.0], [1.0, 0.0], [0.0, 0.0]], [False, True])
    >>> Normaliser.from_dict(fitted.to_dict()).apply(X).tolist() == fitted.apply(X).tolist()
    True
    """

    standardise: bool = True
    log: bool = False
    missing: str = "mean"
    names: tuple[str, ...] = ()
    mean: Floats | None = None
    """After the logarithm; None before ``fit``."""
    scale: Floats | None = None
    fill: Floats | None = None
    """What a missing value of each column is taken to be, after the logarithm."""
    absent: NDArray[np.int64] | None = None
    """Number of values of each column that were missing in training."""
    constant: NDArray[np.bool_] | None = None
    """Whether each column had one value (or none) in training."""

    def __post_init__(self) -> None:
        if self.missing not in FILLS:
            raise UsageError(f"missing: {self.missing!r}; {did_you_mean(str(self.missing), FILLS)}")

    def fit(self, features: Features | Matrix, names: Sequence[str] | None = None) -> Normaliser:
        """Return the normaliser with means, scales and fills of these rows. Errors: infinite values, no rows."""
        X = features.X if isinstance(features, Features) else _matrix(features)
        given = features.names if isinstance(features, Features) else names
        called = tuple(given) if given else tuple(map(str, range(1, X.shape[1] + 1)))
        check_values(X, called, missing="raise" if self.missing == "raise" else "keep", name="features")
        if issparse(X) and self.missing == "median":
            raise UsageError("missing values of a sparse matrix are filled with 'mean' or 'zero', not the median")
        found = Moments.of(X, log=self.log)
        return self.with_moments(found, called, X.shape[0], self._medians(X) if self.missing == "median" else None)

    def with_moments(
        self, found: Moments, names: Sequence[str], rows: int, medians: Floats | None = None
    ) -> Normaliser:
        """Return the normaliser of rows whose moments are known (of their signed logarithms, with ``log=True``).

        ``medians`` of the columns are needed where ``missing`` is 'median'. Errors (InputError): no rows, columns whose
        values are so large that their squares are beyond float64.
        """
        if rows == 0:
            raise InputError("a normaliser needs at least one row to learn from")
        beyond = ~(np.isfinite(found.mean) & np.isfinite(found.deviation))
        if beyond.any():
            wrong = [called for called, each in zip(names, beyond, strict=True) if each]
            raise InputError(
                f"features: the squares of {few(wrong)} are beyond float64; "
                "give them in a larger unit, or take logarithms (",
                Setting("log", True),
                ")",
            )
        fill = {"median": medians, "zero": np.zeros(len(found.mean))}.get(self.missing, found.mean)
        if fill is None:
            raise UsageError("missing='median' needs the medians beside the moments")
        constant = found.deviation == 0
        return replace(
            self,
            names=tuple(names),
            mean=found.mean,
            scale=np.where(constant, 1.0, found.deviation),
            fill=fill,
            absent=rows - found.present,
            constant=constant,
        )

    def leaving(self, columns: Sequence[int]) -> Normaliser:
        """Return the normaliser that leaves some columns, of codes, as they are, with −1 where nothing is there."""
        if not columns:
            return self
        mean, scale, fill, _, _ = (np.array(each, np.float64) for each in self.fitted())
        mean[list(columns)], scale[list(columns)], fill[list(columns)] = 0.0, 1.0, -1.0
        return replace(self, mean=mean, scale=scale, fill=fill)

    def _medians(self, X: Matrix) -> Floats:
        return np.array([self.median(X[:, column]) for column in range(X.shape[1])], np.float64)

    def median(self, column: NDArray[np.floating[Any]]) -> float:
        """Return the median of what is there of a column, after the logarithm; 0 where nothing is."""
        values = column[~np.isnan(column)]
        if len(values) == 0:
            return 0.0
        return float(np.median(signed_log(values) if self.log else values.astype(np.float64)))

    def apply(self, X: Any) -> Any:
        """Return the normalised matrix, a new array of X's precision, or ``SparseRows`` of a sparse one.

        Errors: not fitted, another width, infinities.
        """
        mean, scale, fill, _, _ = self.fitted()
        X = _matrix(X)
        if X.shape[1] != len(mean):
            raise InputError(f"features: {X.shape[1]:,} columns, the normaliser was fitted on {len(mean):,}")
        check_values(X, self.names, missing="raise" if self.missing == "raise" else "keep", name="features")
        if issparse(X):
            values = signed_log(X.data) if self.log else X.data
            values = np.where(np.isnan(values), fill[X.indices], values)
            rows = SparseRows(like(X, values), np.zeros(len(mean)))
            return SparseRows(rows.X, mean).scaled(1.0 / scale) if self.standardise else rows
        out = np.empty_like(X)
        absent = bool(np.isnan(X.sum(dtype=np.float64)))  # infinities were refused
        for part in row_blocks(X):
            values = signed_log(X[part]) if self.log else X[part].astype(np.float64)
            if absent:
                np.copyto(values, fill, where=np.isnan(values))
            if self.standardise:
                values -= mean
                values /= scale
            out[part] = values
        return out

    def to_dict(self) -> dict[str, Any]:
        """Return the state as numbers, texts and lists, which JSON keeps to the bit."""
        mean, scale, fill, absent, constant = self.fitted()
        return {
            "standardise": self.standardise,
            "log": self.log,
            "missing": self.missing,
            "names": list(self.names),
            "mean": mean.tolist(),
            "scale": scale.tolist(),
            "fill": fill.tolist(),
            "absent": absent.tolist(),
            "constant": constant.tolist(),
        }

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Normaliser:
        """Return the normaliser of a ``to_dict``; InputError when something is missing or of another type or length."""
        given = Fields(state, "the state of the normaliser")
        columns = {name: np.array(given.numbers(name), np.float64) for name in ("mean", "scale", "fill")}
        made = cls(
            given.flag("standardise"),
            given.flag("log"),
            given.text("missing", FILLS),
            given.texts("names"),
            **columns,
            absent=np.array(given.wholes("absent"), np.int64),
            constant=np.array(given.flags("constant"), bool),
        )
        sizes = {len(made.names), *(len(column) for column in made.fitted())}
        if len(sizes) > 1:
            raise given.wrong("its columns are of different length")
        if not (columns["scale"] > 0).all():
            raise given.wrong("a scale is not above 0")
        if len(set(made.names)) < len(made.names):
            raise given.wrong("a name is there twice")
        return made

    def fitted(self) -> tuple[Floats, Floats, Floats, NDArray[np.int64], NDArray[np.bool_]]:
        """Return mean, scale, fill, absent and constant of each column. Errors (UsageError): not fitted."""
        if self.mean is None or self.scale is None or self.fill is None or self.absent is None or self.constant is None:
            raise UsageError("the normaliser is not fitted yet; call fit first")
        return self.mean, self.scale, self.fill, self.absent, self.constant


def _matrix(X: Any) -> Any:
    if issparse(X):
        return X
    array = np.asarray(X)
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)
