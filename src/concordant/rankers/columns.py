"""Features of a fit: normalised when something needs them so, else left as they are and scaled in the result."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from concordant.features.matrix import Matrix
from concordant.features.normalising import Normaliser
from concordant.solvers.least_squares import NormalEquations

__all__ = ["Columns", "WholeColumns"]

Floats = NDArray[np.float64]
BLOCK = 1 << 20
"""Values that are multiplied at a time in double precision."""


class Columns(ABC):
    """Normalised features of a fit, wherever they are."""

    @property
    @abstractmethod
    def matrix(self) -> Matrix:
        """The normalised matrix. Errors: UsageError where it is not in memory."""

    @abstractmethod
    def equations(
        self, Y: Floats, start: NDArray[np.int64], weight: Floats, *, rows: NDArray[np.int64], intercept: str
    ) -> NormalEquations:
        """Return the normal equations of the normalised features (see ``NormalEquations.of``)."""

    @abstractmethod
    def times(self, theta: Floats) -> Floats:
        """Return Zθ but for a constant in each column that no order sees; shape (rows, columns of θ)."""


@dataclass(frozen=True, eq=False)
class WholeColumns(Columns):
    """A matrix, the normaliser fitted to it, and how the ranker applies it.

    Subtracting a mean and dividing by a standard deviation commutes with sums of squares centred in each query: for
    least squares with an intercept per query no normalised copy of X is made.

    >>> X = np.array([[1.0], [3.0], [10.0], [14.0]])
    >>> normaliser = Normaliser(missing="raise").fit(X)
    >>> columns = WholeColumns(X, normaliser, Normaliser.apply)
    >>> given = {"start": np.array([0, 2, 4]), "weight": np.ones(2), "rows": np.arange(4), "intercept": "query"}
    >>> scaled = columns.equations(np.arange(4.0), **given)
    >>> bool(np.allclose(scaled.gram, NormalEquations.of(columns.matrix, np.arange(4.0), **given).gram))
    True
    """

    X: Matrix
    normaliser: Normaliser
    normalised: Callable[[Normaliser, Matrix], Matrix]

    @cached_property
    def matrix(self) -> Matrix:
        """The normalised matrix, a copy, made when first asked for."""
        return self.normalised(self.normaliser, self.X)

    @property
    def _linear(self) -> bool:
        """Whether normalising only shifts and scales: no logarithm, nothing missing."""
        absent = self.normaliser.absent
        return not self.normaliser.log and absent is not None and not absent.any()

    @property
    def _scale(self) -> Floats:
        scale = self.normaliser.scale
        assert scale is not None
        return scale if self.normaliser.standardise else np.ones(len(scale))

    def equations(
        self, Y: Floats, start: NDArray[np.int64], weight: Floats, *, rows: NDArray[np.int64], intercept: str
    ) -> NormalEquations:
        if not (self._linear and intercept == "query"):
            return NormalEquations.of(self.matrix, Y, start, weight, rows=rows, intercept=intercept)
        found = NormalEquations.of(self.X, Y, start, weight, rows=rows, intercept=intercept)
        return found.scaled(1.0 / self._scale)

    def times(self, theta: Floats) -> Floats:
        scaled = theta / self._scale[:, None] if self._linear else theta
        X = self.X if self._linear else self.matrix
        out = np.empty((len(X), theta.shape[1]))
        step = max(1, BLOCK // max(X.shape[1], 1))
        for begin in range(0, len(X), step):
            np.matmul(np.asarray(X[begin : begin + step], np.float64), scaled, out=out[begin : begin + step])
        return out
