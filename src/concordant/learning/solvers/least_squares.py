"""Weighted least squares with a free intercept per query: one pass over the features, then a Cholesky factorisation.

The matrix of features as solvers take it.

Rows of features block by block, whole queries at a time: centred, weighted, free of what is only rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from concordant.errors import InputError, UsageError
from concordant.kernels.arrays import read_only
from concordant.kernels.compiled import compiles
from concordant.learning.features.sparse_rows import SparseRows
from concordant.preferences.ragged import Ragged
from concordant.preferences.status import Status

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
BLOCK = 1 << 19
"""Values of X that are centred at a time: few enough to stay in the processor's cache between the steps."""
LARGE = 1 << 21
"""Values of X from which on it pays to load compiled loops."""


def query_blocks(start: Ints, width: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of queries with about BLOCK values of X each."""
    first, queries = 0, len(start) - 1
    most = max(1, BLOCK // max(width, 1))
    while first < queries:
        last = max(first + 1, int(np.searchsorted(start, start[first] + most, side="right")) - 1)
        yield first, min(last, queries)
        first = last


def preparing(
    X: NDArray[Any],
    start: Ints,
    weight: Floats,
    rows: NDArray[np.integer[Any]] | None,
    intercept: str,
    mean: Floats,
    level: Floats,
) -> Callable[[int, int], NDArray[Any]]:
    """Return what gives the rows of queries first … last − 1, centred and times the root of their weights.

    ``level`` gains Σ w mean² of each column over the queries where it is not constant. A large matrix is read by a
    compiled loop, once, where the same steps in NumPy pass over each block many times.
    """
    if (
        intercept == "query"
        and isinstance(X, np.ndarray)
        and X.size >= LARGE
        and compiles()
        and X.flags.c_contiguous
        and X.dtype in (np.float32, np.float64)
    ):
        return _compiled(X, start, weight, rows, level)

    def prepare(first: int, last: int) -> NDArray[Any]:
        x = _rows(X, start, rows, first, last)
        if intercept == "query":
            x, means = centred(start[first : last + 1] - start[first], x)
            level[:] += (weight[first:last] * Ragged(start[first : last + 1]).sizes) @ np.square(means)
        elif intercept == "one":
            x = x - mean.astype(x.dtype)
        else:
            x = x.copy()
        x *= np.sqrt(of_nodes(weight, start, first, last))[:, None].astype(x.dtype)
        return x

    return prepare


def ahead(
    prepare: Callable[[int, int], NDArray[Any]], blocks: Iterable[tuple[int, int]]
) -> Iterator[tuple[int, int, NDArray[Any]]]:
    """Yield each block with its rows, which one thread prepares, in order, while the block before is worked on."""
    heeded = np.geterr()  # of this thread

    def work(first: int, last: int) -> NDArray[Any]:
        with np.errstate(**heeded):
            return prepare(first, last)

    with ThreadPoolExecutor(1) as pool:
        waiting: tuple[int, int, Future[NDArray[Any]]] | None = None
        for first, last in blocks:
            following = first, last, pool.submit(work, first, last)
            if waiting is not None:
                yield *waiting[:2], waiting[2].result()
            waiting = following
        if waiting is not None:
            yield *waiting[:2], waiting[2].result()


def _compiled(
    X: NDArray[Any], start: Ints, weight: Floats, rows: NDArray[np.integer[Any]] | None, level: Floats
) -> Callable[[int, int], NDArray[Any]]:
    from concordant.kernels.subset_gains import centred_rows

    begins = read_only(start, np.int64)
    of_node = read_only(np.arange(len(X)) if rows is None else rows, np.int64)
    root = read_only(np.sqrt(weight).astype(X.dtype), X.dtype)
    matrix = read_only(X, X.dtype)

    def prepare(first: int, last: int) -> NDArray[Any]:
        out = np.empty((int(start[last] - start[first]), X.shape[1]), X.dtype)
        centred_rows(matrix, of_node, begins, first, last, root, out, level)
        return out

    return prepare


def _rows(X: NDArray[Any], start: Ints, rows: NDArray[np.integer[Any]] | None, first: int, last: int) -> NDArray[Any]:
    part = slice(int(start[first]), int(start[last]))
    return np.asarray(X[part] if rows is None else X[rows[part]])


def of_nodes(weight: Floats, start: Ints, first: int, last: int) -> Floats:
    """Return the weight of each node of the queries first … last − 1."""
    return Ragged(start[first : last + 1]).spread(weight[first:last])


def centred(start: Ints, value: NDArray[Any]) -> tuple[NDArray[Any], Floats]:
    """Return the rows less their mean in each query, and the means, 0 where the column is constant in the query.

    Sums are of what exceeds the first row of the query, so nothing, not even rounding, is left of what is constant.
    """
    size = Ragged(start).sizes
    some = np.flatnonzero(size)
    means = np.zeros((len(size), value.shape[1]))
    if len(some) == 0:
        return value.copy(), means
    first = value[start[some]].astype(np.float64)
    beyond = value - np.repeat(first, size[some], axis=0)
    sums = np.add.reduceat(beyond, start[some], axis=0)
    centre = first + sums / size[some, None]
    means[some] = np.where(sums == 0.0, 0.0, centre)
    return value - np.repeat(centre.astype(value.dtype), size[some], axis=0), means


def weighted_means(
    X: NDArray[Any], Y: Floats, start: Ints, weight: Floats, rows: NDArray[Any] | None
) -> tuple[Floats, Floats]:
    """Weighted means of the columns of X and Y, summed as what exceeds the first row: exact for what is constant."""
    total, nodes = float((weight * Ragged(start).sizes).sum()), int(start[-1])
    sum_x, sum_y = np.zeros(X.shape[1]), np.zeros(Y.shape[1])
    if not (total > 0 and nodes > 0):
        return sum_x, sum_y
    first = 0 if rows is None else int(rows[0])
    first_x, first_y = np.asarray(X[first : first + 1], np.float64)[0], Y[0]
    for first, last in query_blocks(start, X.shape[1]):
        w = of_nodes(weight, start, first, last)
        sum_x += w @ (_rows(X, start, rows, first, last) - first_x)
        sum_y += w @ (Y[int(start[first]) : int(start[last])] - first_y)
    return first_x + sum_x / total, first_y + sum_y / total


INTERCEPTS = ("query", "one", "none")
SINGULAR = 1e-12
"""Directions whose share of the curvature of standardised columns is below this are not determined."""
ROUNDING = 8.0
"""Units of rounding of a column's means that may be left of it where it is constant: it is zero then."""


@dataclass(frozen=True, eq=False)
class LinearFit:
    """Coefficients of a linear scorer f(x) = x'θ and how they were found."""

    theta: Floats
    """Shape (features,), or (features, targets) when several targets were fitted at once."""
    ridge: float
    ended: Status
    gradient: float
    """Largest absolute entry of the gradient at θ."""
    value: Floats
    """Objective at θ, for each target (shape () for one)."""
    undetermined: int = 0
    """Number of directions that the data and the ridge leave free."""
    intercept: Floats | None = None
    """The one intercept (0 when there is none); None with one per query, which no order sees."""
    iterations: int = 0
    gap: float | None = None
    """Duality gap: by how much the objective can be above its minimum at most; None where none was computed."""

    @property
    def status(self) -> str:
        """How the fit ended, and ', undetermined directions set to 0' where some are."""
        free = self.undetermined and self.ended != Status.STOPPED
        return self.ended.word + (", undetermined directions set to 0" if free else "")

    @property
    def converged(self) -> bool:
        """Whether θ is a minimiser to the precision asked for."""
        return self.ended not in (Status.STOPPED, Status.NOT_ATTAINED)


@dataclass(frozen=True, eq=False)
class NormalEquations:
    """XᵀWX, XᵀWy and yᵀWy, centred within each query: all that the fits with any ridge need.

    The problem is min over θ and t of Σ_q (w_q/2) Σ_j (x_qj'θ + t_q − y_qj)² + (λ/2) ‖θ‖². Minimising over the
    intercepts t_q replaces x and y by what exceeds their mean in the query, which leaves the orders, and so the
    consistency, as they are. With w_q = n̂_q/(n m_q) and mean gain targets it is the U-statistic risk (18) of (28).
    Equations of parts of the queries add up to those of all, each weighted as in the whole.

    >>> X = np.array([[0.0], [1.0], [5.0], [7.0]])
    >>> y = np.array([10.0, 11.0, 0.0, 2.0])  # slope 1 in both queries, with intercepts far apart
    >>> equations = NormalEquations.of(X, y, np.array([0, 2, 4]), np.array([0.5, 0.5]))
    >>> equations.solve(0.0).theta.round(12).tolist()
    [1.0]
    >>> parts = [NormalEquations.of(X[at], y[at], np.array([0, 2]), np.array([0.5])) for at in ([0, 1], [2, 3])]
    >>> bool(np.allclose(sum(parts).gram, equations.gram))
    True
    """

    gram: Floats
    """Σ w x̃ x̃', shape (features, features)."""
    moment: Floats
    """Σ w x̃ ỹ, shape (features, targets)."""
    squares: Floats
    """Σ w ỹ², shape (targets,)."""
    mean_x: Floats
    """What was subtracted from every row with one intercept; zeros otherwise."""
    mean_y: Floats
    intercept: str
    single: bool
    """Whether the targets were given as one column without a second axis."""
    level: Floats
    """Σ w mean² of each column, over the queries where it is not constant: what its rounding is measured by."""
    total: float
    """Σ w over all rows."""
    precision: float
    """Unit of rounding of the features."""

    @classmethod
    def of(
        cls,
        X: NDArray[np.floating[Any]],
        y: Floats,
        start: Ints,
        weight: Floats,
        *,
        rows: NDArray[np.integer[Any]] | None = None,
        intercept: str = "query",
    ) -> NormalEquations:
        """Add the equations up in one pass over X (two with ``intercept='one'``), block by block.

        Shapes: ``y`` (nodes,) or (nodes, targets), ``start`` (queries + 1,) where the nodes of each query begin,
        ``weight`` (queries,), ``rows`` (nodes,) the row of X of each node (default: in order). ``intercept`` is
        'query', 'one' for all, or 'none'. Blocks are multiplied in X's precision and added in float64. A column that
        is constant where it is centred, to within rounding, is one of zeros.

        Errors (UsageError): shapes that do not fit, rows that X does not have, negative weights, an unknown intercept.
        """
        single = y.ndim == 1
        Y = np.asarray(y[:, None] if single else y, np.float64)
        X = X if X.dtype.kind == "f" else X.astype(np.float64)
        nodes = int(start[-1])
        if intercept not in INTERCEPTS:
            raise UsageError(f"intercept must be one of {', '.join(INTERCEPTS)}, not {intercept!r}")
        if len(Y) != nodes or len(weight) != len(start) - 1 or len(X if rows is None else rows) != nodes:
            raise UsageError(
                f"shapes do not fit: {nodes:,} items in {len(start) - 1:,} queries, {len(Y):,} targets, "
                f"{len(weight):,} weights, {len(X if rows is None else rows):,} rows of features"
            )
        if rows is not None and len(rows) and not (rows.min() >= 0 and rows.max() < len(X)):
            raise UsageError(f"rows must be among the {len(X):,} rows of features, 0 … {len(X) - 1:,}")
        if not (weight >= 0).all():
            raise UsageError("weights of queries may not be negative")
        width = X.shape[1]
        mean_x, mean_y = np.zeros(width), np.zeros(Y.shape[1])
        if intercept == "one":
            mean_x, mean_y = weighted_means(X, Y, start, weight, rows)
        gram, moment = np.zeros((width, width)), np.zeros((width, Y.shape[1]))
        squares = np.zeros(Y.shape[1])
        total = float((weight * Ragged(start).sizes).sum())
        level = total * np.square(mean_x)
        prepare = preparing(X, start, weight, rows, intercept, mean_x, level)
        for first, last, x in ahead(prepare, query_blocks(start, width)):
            t = Y[int(start[first]) : int(start[last])]
            t = centred(start[first : last + 1] - start[first], t)[0] if intercept == "query" else t - mean_y
            t *= np.sqrt(of_nodes(weight, start, first, last))[:, None]
            gram += x.T @ x
            moment += (x.T @ t.astype(x.dtype)).astype(np.float64)
            squares += (t * t).sum(axis=0)
        precision = float(np.finfo(X.dtype).eps)
        _forget_rounding(gram, moment, level, precision)
        return cls(gram, moment, squares, mean_x, mean_y, intercept, single, level, total, precision)

    def __add__(self, other: object) -> NormalEquations:
        """Return the equations of the rows of both: with an intercept per query no query may be in both.

        Errors (UsageError): other shapes, another kind of intercept.
        """
        if not isinstance(other, NormalEquations):
            return NotImplemented
        mine, theirs = ((*each.moment.shape, each.intercept, each.single) for each in (self, other))
        if mine != theirs:
            raise UsageError(
                f"equations of {mine[0]:,} features, {mine[1]:,} targets and intercept {mine[2]!r} do not add up with "
                f"those of {theirs[0]:,}, {theirs[1]:,} and {theirs[2]!r}"
            )
        total = self.total + other.total
        share = other.total / total if total > 0 else 0.0
        apart_x, apart_y = other.mean_x - self.mean_x, other.mean_y - self.mean_y
        between = self.total * share  # 0 without an intercept that both share
        gram = self.gram + other.gram + between * np.outer(apart_x, apart_x)
        moment = self.moment + other.moment + between * np.outer(apart_x, apart_y)
        squares = self.squares + other.squares + between * np.square(apart_y)
        mean_x, mean_y = (
            (other.mean_x, other.mean_y)
            if self.total == 0
            else (
                self.mean_x + share * apart_x,
                self.mean_y + share * apart_y,
            )
        )
        level = total * np.square(mean_x) if self.intercept == "one" else self.level + other.level
        precision = max(self.precision, other.precision)
        _forget_rounding(gram, moment, level, precision)
        return NormalEquations(
            gram, moment, squares, mean_x, mean_y, self.intercept, self.single, level, total, precision
        )

    def __radd__(self, other: object) -> NormalEquations:
        return self if other == 0 else NotImplemented  # so that sum() works

    def of_one_query(self) -> NormalEquations:
        """Return the equations of one query whose rows came in parts, added up with ``intercept='one'``."""
        level = np.where(np.diag(self.gram) > 0, self.level, 0.0)
        none_x, none_y = np.zeros_like(self.mean_x), np.zeros_like(self.mean_y)
        return replace(self, mean_x=none_x, mean_y=none_y, intercept="query", level=level)

    def scaled(self, unit: Floats) -> NormalEquations:
        """Return the equations of the features times ``unit`` (features,), such as 1 over their deviations."""
        return replace(
            self,
            gram=self.gram * unit[:, None] * unit,
            moment=self.moment * unit[:, None],
            mean_x=self.mean_x * unit,
            level=self.level * np.square(unit),
        )

    def solve(self, ridge: float) -> LinearFit:
        """Return θ = (XᵀWX + λI)⁻¹ XᵀWy. Errors (UsageError): a negative or infinite ridge.

        Columns are brought to unit curvature before the factorisation, so their scales do not matter. Where nothing
        determines a direction (a feature constant in every query, two equal features without ridge) the solution that
        is smallest in these units is taken, and said.
        """
        if not (np.isfinite(ridge) and ridge >= 0):
            raise UsageError(f"the ridge must be a number of at least 0, not {ridge!r}")
        A = self.gram + ridge * np.eye(len(self.gram))
        scale = np.sqrt(np.diag(A))
        unit = 1.0 / np.where(scale > 0, scale, 1.0)
        theta, free = _solve_unit(A * unit[:, None] * unit, self.moment * unit[:, None])
        theta *= unit[:, None]
        residual = A @ theta - self.moment
        value = 0.5 * ((theta * (A @ theta - 2 * self.moment)).sum(axis=0) + self.squares)
        ended = Status.CLOSED_FORM
        intercept = None if self.intercept == "query" else self.mean_y - self.mean_x @ theta
        gradient = float(np.abs(residual).max(initial=0.0))
        if not self.single:
            return LinearFit(theta, ridge, ended, gradient, value, free, intercept)
        one = None if intercept is None else intercept[0]
        return LinearFit(theta[:, 0], ridge, ended, gradient, value[0], free, one)

    @cached_property
    def largest_curvature(self) -> float:
        """Largest eigenvalue of XᵀWX: the smoothness of the loss, for the steps of gradient methods."""
        return float(np.linalg.eigvalsh(self.gram)[-1]) if len(self.gram) else 0.0


def _forget_rounding(gram: Floats, moment: Floats, level: Floats, precision: float) -> None:
    """Set columns to zero that are constant where they are centred, but for rounding."""
    constant = np.diag(gram) <= np.square(ROUNDING * precision) * level
    gram[constant, :], gram[:, constant], moment[constant] = 0.0, 0.0, 0.0


def _solve_unit(A: Floats, b: Floats) -> tuple[Floats, int]:
    """Solve a system with unit (or zero) diagonal; return the solution and the number of free directions."""
    if len(A) == 0:
        return b.copy(), 0
    try:
        factor = np.linalg.cholesky(A)
        if np.diag(factor).min() ** 2 > SINGULAR:
            return np.asarray(scipy.linalg.cho_solve((factor, True), b)), 0
    except np.linalg.LinAlgError:
        pass
    values, vectors = np.linalg.eigh(A)
    kept = values > SINGULAR * max(float(values[-1]), 1e-300)
    inverse = np.where(kept, 1.0 / np.where(kept, values, 1.0), 0.0)
    return np.asarray(vectors @ (inverse[:, None] * (vectors.T @ b))), int((~kept).sum())


def checked_matrix(X: Any) -> Any:
    """Return X as a matrix of floats, not copied where it is one. Errors: UsageError, InputError when not finite."""
    if isinstance(X, SparseRows):
        return X  # a normaliser has seen it
    X = np.asarray(X)
    if X.ndim != 2:
        raise UsageError(f"X must be a matrix of items by features, not of shape {X.shape}")
    X = X if X.dtype.kind == "f" else X.astype(np.float64)
    most = max(1, BLOCK // max(X.shape[1], 1))
    wrong = sum(int((~np.isfinite(X[begin : begin + most])).sum()) for begin in range(0, len(X), most))
    if wrong:
        raise InputError(f"{wrong:,} of {X.size:,} features are not finite; a Normaliser fills or flags missing values")
    return X


def checked_rows(X: NDArray[Any], rows: NDArray[np.integer[Any]] | None, nodes: int) -> NDArray[np.int64] | None:
    """Return the row of X of each of so many items. Errors (UsageError): another number, rows that X has not."""
    row = None if rows is None else np.asarray(rows, np.int64)
    if (len(X) if row is None else len(row)) != nodes:
        given = f"{len(X):,} rows of X" if row is None else f"{len(row):,} rows named"
        raise UsageError(f"shapes do not fit: {nodes:,} items but {given}")
    if row is not None and len(row) and (row.min() < 0 or row.max() >= len(X)):
        raise UsageError(f"rows must lie between 0 and {len(X) - 1:,}; they reach from {row.min():,} to {row.max():,}")
    return row


def checked_ridge(ridge: float) -> float:
    """Return a ridge that is finite and at least 0, or raise UsageError."""
    if not (np.isfinite(ridge) and ridge >= 0):
        raise UsageError(f"the ridge must be a number of at least 0, not {ridge!r}")
    return float(ridge)


def products(X: Any, theta: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Xθ in double precision, shape (rows,), some rows at a time: no copy of X in that precision is made."""
    if isinstance(X, SparseRows):
        return X @ theta
    out = np.empty(len(X))
    most = max(1, BLOCK // max(X.shape[1], 1))
    for begin in range(0, len(X), most):
        np.matmul(np.asarray(X[begin : begin + most], np.float64), theta, out=out[begin : begin + most])
    return out
