"""Features of a fit that are not in memory: each question about them is a pass over their file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.errors import InputError, UsageError
from concordant.features.in_order import rows_by_query
from concordant.features.matrix import Features, Matrix
from concordant.features.moments import Moments, signed_log
from concordant.features.normalising import Normaliser
from concordant.features.placing import Placed, place
from concordant.features.streamed import FeatureFile
from concordant.labels import Labels
from concordant.preferences import Preferences
from concordant.rankers.columns import Columns
from concordant.rankers.intake import Training, refuse_other_names
from concordant.solvers.grouped_rows import GroupedRows
from concordant.solvers.least_squares import NormalEquations

__all__ = ["StreamedColumns", "StreamedTraining", "scores_of_file", "scores_of_nodes"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Scorer = Callable[[Matrix], Floats]


@dataclass(frozen=True, eq=False)
class StreamedTraining(Training):
    """The judged rows of a file: row j of what ``StreamedColumns`` returns is node j; ``features`` holds names only."""

    file: FeatureFile
    placed: Placed

    @classmethod
    def of(cls, file: FeatureFile, y: Any, sample_weight: Any = None) -> StreamedTraining:
        """Match the rows of a file with preferences.

        Errors: InputError as of ``place``, and without judgments; UsageError for anything but Preferences, and for
        ``sample_weight``.
        """
        if not isinstance(y, Preferences):
            raise UsageError("features that stay on disk are matched with Preferences; read_features reads them")
        if sample_weight is not None:
            raise UsageError("sample_weight has an entry for each row; features that stay on disk take none")
        if len(y) == 0:
            raise InputError("there are no judgments to learn from")
        placed = place(file, y)
        nothing = np.zeros(0, np.int32)
        none = Features(np.zeros((0, len(file.names))), Labels.empty(), nothing, Labels.empty(), None, file.names)
        nodes, queries = int(placed.start[-1]), len(placed.start) - 1
        row: Any = np.arange(nodes, dtype=np.int32 if nodes < 1 << 31 else np.int64)
        return cls(none, True, placed.start, row, placed.unjudged, y, None, np.ones(queries), file, placed)

    @property
    def rows(self) -> int:
        return len(self.file)


class StreamedColumns(Columns):
    """Features on disk, the normaliser that is to be fitted to all their rows, and how the ranker applies it.

    One pass over the file gives the normaliser and the normal equations together where normalising only shifts and
    scales (an intercept per query, nothing may be missing), and two otherwise.
    """

    def __init__(
        self,
        file: FeatureFile,
        placed: Placed,
        normaliser: Normaliser,
        normalised: Callable[[Normaliser, Matrix], Matrix],
    ) -> None:
        self.file, self.placed, self.unfitted, self.normalised = file, placed, normaliser, normalised
        self.moments: Moments | None = None
        self.missing = "raise" if normaliser.missing == "raise" else "keep"

    @cached_property
    def normaliser(self) -> Normaliser:
        """The normaliser of all rows of the file."""
        if self.moments is None:
            self.moments = reduce(add, (self._moments(X) for _, X in self.file.blocks(missing=self.missing)))
        medians = None
        if self.unfitted.missing == "median":  # one column at a time
            medians = np.array([self.unfitted.median(self.file.column(name)) for name in self.file.names])
        return self.unfitted.with_moments(self.moments, self.file.names, len(self.file), medians)

    @property
    def matrix(self) -> Matrix:
        raise UsageError(f"{self.file.log.name}: this needs the features in memory; read_features reads them")

    @np.errstate(over="ignore", invalid="ignore")  # the normaliser refuses what is too large
    def equations(
        self, Y: Floats, start: Ints, weight: Floats, *, rows: NDArray[np.integer[Any]], intercept: str
    ) -> NormalEquations:
        total = GroupedRows(Y, start, weight, width=len(self.file.names), intercept=intercept)
        if intercept != "query" or self.missing != "raise":
            normaliser = self.normaliser
            for X, row, node in rows_by_query(self.file, self.placed, missing=self.missing):
                total.add(self.normalised(normaliser, X), row, node)
            return total.equations()
        found: list[Moments] = []
        seen = (lambda X: found.append(self._moments(X))) if self.moments is None else None
        for X, row, node in rows_by_query(self.file, self.placed, seen=seen):
            total.add(signed_log(X) if self.unfitted.log else X, row, node)
        if self.moments is None:
            self.moments = reduce(add, found)
        scale = self.normaliser.scale
        assert scale is not None
        return total.equations().scaled(1.0 / scale) if self.unfitted.standardise else total.equations()

    def times(self, theta: Floats) -> Floats:
        out = np.empty((int(self.placed.start[-1]), theta.shape[1]))
        for begin, X in self.file.blocks(missing=self.missing):
            row, node = self.placed.nodes(begin, begin + len(X))
            out[node] = (self.normalised(self.normaliser, X) @ theta)[row]
        return out

    def _moments(self, X: Matrix) -> Moments:
        return Moments.of(X, log=self.unfitted.log)


def scores_of_file(file: FeatureFile, scorer: Scorer, names: tuple[str, ...] | None, missing: str) -> Floats:
    """Return the score of every row, in the order of the file; ``names`` are those that the ranker was fitted on."""
    out = np.empty(len(file))
    for begin, X in _blocks(file, names, missing):
        out[begin : begin + len(X)] = scorer(X)
    return out


def scores_of_nodes(training: StreamedTraining, scorer: Scorer, names: tuple[str, ...] | None, missing: str) -> Floats:
    """Return the score of every node."""
    out = np.empty(len(training.row))
    for begin, X in _blocks(training.file, names, missing):
        row, node = training.placed.nodes(begin, begin + len(X))
        out[node] = scorer(X)[row]
    return out


def _blocks(file: FeatureFile, names: tuple[str, ...] | None, missing: str) -> Any:
    if names is not None:
        refuse_other_names(file.names, names)
    return file.blocks(names, missing="raise" if missing == "raise" else "keep")
