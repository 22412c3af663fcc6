"""Features of a fit, normalised when something needs them so: in memory, in a file, or elsewhere, as sums only."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from concordant.errors import InputError, UsageError
from concordant.learning.features.key_index import Placed, place, rows_by_query
from concordant.learning.features.matrix import Features, Matrix
from concordant.learning.features.normalising import Moments, Normaliser, signed_log
from concordant.learning.features.streamed import FeatureFile
from concordant.learning.rankers.edge_sources import clicks_note, note_of_usual
from concordant.learning.rankers.plans import Plan, Recipe, ridges_to_try
from concordant.learning.rankers.validation import Training, refuse_other_names
from concordant.learning.solvers.grouped_rows import GroupedRows
from concordant.learning.solvers.least_squares import NormalEquations
from concordant.learning.solvers.sparse_least_squares import WIDE, SparseEquations
from concordant.learning.targets.mean_targets import TargetFacts
from concordant.memory import needs
from concordant.preferences.labels import Labels
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Preferences
from concordant.preferences.ragged import Ragged
from concordant.ranking.ranked_lists import examined_only
from concordant.ranking.structures import STRUCTURES

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
        self,
        Y: Floats,
        start: NDArray[np.int64],
        weight: Floats,
        *,
        rows: NDArray[np.int64],
        intercept: str,
        without: NDArray[np.bool_] | None = None,
    ) -> NormalEquations | SparseEquations:
        """Return the normal equations of the normalised features (see ``NormalEquations.of``).

        ``without``: nodes that have no target, and no part in them.
        """

    @abstractmethod
    def times(self, theta: Floats) -> Floats:
        """Return Zθ but for a constant in each column that no order sees; shape (rows, columns of θ)."""


@dataclass(frozen=True, eq=False)
class Summed:
    """All that a linear fit to targets needs of judgments and features that lie elsewhere."""

    equations: NormalEquations
    """Of the targets on the normalised features, with an intercept per query."""
    normaliser: Normaliser
    facts: TargetFacts
    notes: tuple[str, ...]
    """What a reader should know of rows and judgments."""


@dataclass(frozen=True, eq=False)
class Learned:
    """How a fit to votes came about: what ``status_`` is made of."""

    plan: Plan
    facts: TargetFacts
    ended: dict[str, Any]
    ridge: float
    ridges: list[float]
    prior: dict[str, Any] = field(default_factory=dict)
    """What the prior of an informed aggregation is."""
    beyond: bool = False
    """Whether what was fitted is what targets add to the scorer of the prior."""
    gated: bool = False
    gates: list[Any] = field(default_factory=list)
    unchosen: InputError | None = None
    """Why nothing could be chosen on held-out judgments."""

    def warnings(self, kind: str) -> Iterator[Note]:
        """What the user may want to do otherwise."""
        told = self.gated or self.unchosen is not None
        if not self.facts.largest:
            text = "no query has two items of different targets: nothing was learned, and no score says anything"
            yield Note("nothing learned", text)
        if self.beyond and np.isinf(self.ridge) and not told:
            text = (
                "informed: held-out judgments do not show that aggregation improves on the pairwise logistic scorer, "
                "which therefore stands"
            )
            yield Note("pairwise scorer stands", text)
        elif len(self.ridges) > 1 and not self.beyond and self.ridge in (min(self.ridges), max(self.ridges)):
            end = "least" if self.ridge == min(self.ridges) else "greatest"
            text = f"the ridge chosen, {{value:g}}, is the {end} that was tried"
            yield Note("end of what was tried", text, value=self.ridge)
        known = STRUCTURES.get(self.plan.row["structure"])
        if kind == "selections" and known and known.reads == "pairs":
            yield clicks_note(known.name)
        if self.unchosen is not None:
            taken = "nothing is added to the pairwise logistic scorer"
            if not self.beyond:
                ridge = f", with ridge {self.ridge:g}" if self.ridge else ""
                taken = f"all judgments of a query are aggregated at once{ridge}"
            text = "too few judgments to choose by cross-validation: {why}; {taken}"
            yield Note("not chosen", text, why=self.unchosen.args[0], taken=taken)


class TargetSums(ABC):
    """Judgments and features that lie elsewhere: targets are made and added up there, and only sums come.

    A ranker's ``fit`` takes it in the place of features and judgments. By itself it gives one plan with one ridge; what
    can do more overrides ``learned``.
    """

    place: str
    """Where that is, in words, such as "on Spark"."""

    @abstractmethod
    def begin(self, ranker: Any) -> str:
        """Refuse parameters of a ranker that need more than these sums, before any work; return the kind of log.

        Errors: UsageError, InputError.
        """

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The names of the features, once it has begun."""

    @abstractmethod
    def summed(self, plan: Plan, recipe: Recipe, normaliser: Normaliser) -> Summed:
        """Make the targets of a plan, fit the normaliser to all rows, and add everything up. Errors: InputError."""

    def learned(self, ranker: Any, kind: str) -> tuple[Floats, Normaliser, Learned, tuple[str, ...], Any]:
        """Return coefficients, normaliser, how they came about, notes of rows and targets, and the curve if any."""
        plan, ridge = ranker._plans(kind)[0], ridges_to_try(ranker.ridge, False)[0]
        found = self.summed(plan, ranker._recipe(), ranker._normaliser())
        fit = found.equations.solve(ridge)
        ended = {"status": fit.status, "iterations": fit.iterations, "gradient": fit.gradient, "ridge": ridge}
        how = Learned(plan, found.facts, ended, ridge, [ridge])
        clicks = kind == "selections" and ranker.structure is None  # others need more than these sums
        usual = note_of_usual(0, 0, 0, str(plan.structure), False) if clicks else []
        return fit.theta, found.normaliser, how, (*found.notes, *found.facts.notes, *usual), None


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
        scale = self.normaliser.fitted()[1]
        return scale if self.normaliser.standardise else np.ones(len(scale))

    def equations(
        self,
        Y: Floats,
        start: NDArray[np.int64],
        weight: Floats,
        *,
        rows: NDArray[np.int64],
        intercept: str,
        without: NDArray[np.bool_] | None = None,
    ) -> NormalEquations | SparseEquations:
        if without is not None:
            Y, start, rows = Y[~without], _start_without(start, without), rows[~without]
        if issparse(self.X):
            return self._of_sparse(Y, start, weight, rows, intercept)
        if not (self._linear and intercept == "query"):
            return NormalEquations.of(self.matrix, Y, start, weight, rows=rows, intercept=intercept)
        found = NormalEquations.of(self.X, Y, start, weight, rows=rows, intercept=intercept)
        return found.scaled(1.0 / self._scale)

    def _of_sparse(
        self, Y: Floats, start: NDArray[np.int64], weight: Floats, rows: NDArray[np.int64], intercept: str
    ) -> NormalEquations | SparseEquations:
        Z: Any = self.matrix  # SparseRows
        if self.X.shape[1] > WIDE:
            return SparseEquations(Z[rows], Y, start, weight, intercept)
        return NormalEquations.of(Z, Y, start, weight, rows=rows, intercept=intercept)

    def times(self, theta: Floats) -> Floats:
        if issparse(self.X):
            return np.asarray(self.matrix @ theta)
        scaled = theta / self._scale[:, None] if self._linear else theta
        X = self.X if self._linear else self.matrix
        out = np.empty((len(X), theta.shape[1]))
        step = max(1, BLOCK // max(X.shape[1], 1))
        for begin in range(0, len(X), step):
            np.matmul(np.asarray(X[begin : begin + step], np.float64), scaled, out=out[begin : begin + step])
        return out


def _start_without(start: NDArray[np.int64], without: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Where the nodes of each query begin among those that are left."""
    return Ragged.of_sizes(Ragged(start).sums(~without).astype(np.int64)).start


Ints = NDArray[np.int64]
Scorer = Callable[[Matrix], Floats]


@dataclass(frozen=True, eq=False)
class StreamedTraining(Training):
    """The judged rows of a file: row j of what ``StreamedColumns`` returns is node j; ``features`` holds names only."""

    file: FeatureFile
    placed: Placed

    @classmethod
    def of(cls, file: FeatureFile, y: Any, sample_weight: Any = None, *, whole: bool = False) -> StreamedTraining:
        """Match the rows of a file with preferences; ``whole`` as of ``learning_rows``.

        Errors: InputError as of ``place``, and without judgments; UsageError for anything but Preferences, and for
        ``sample_weight``.
        """
        if not isinstance(y, Preferences):
            raise UsageError("features that stay on disk are matched with Preferences; read_features reads them")
        if sample_weight is not None:
            raise UsageError("sample_weight has an entry for each row; features that stay on disk take none")
        if len(y) == 0:
            raise InputError("there are no judgments to learn from")
        y = y if whole else examined_only(y)
        placed = place(file, y)
        nothing = np.zeros(0, np.int32)
        none = Features(np.zeros((0, len(file.names))), Labels.empty(), nothing, Labels.empty(), None, file.names)
        nodes, queries = int(placed.start[-1]), len(placed.start) - 1
        row: Any = np.arange(nodes, dtype=np.int32 if nodes < 1 << 31 else np.int64)
        return cls(none, True, placed.start, row, placed.unjudged, y, np.ones(queries), file, placed)

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
        self,
        Y: Floats,
        start: Ints,
        weight: Floats,
        *,
        rows: NDArray[np.integer[Any]],
        intercept: str,
        without: NDArray[np.bool_] | None = None,
    ) -> NormalEquations:
        place = None
        if without is not None:
            place = np.where(without, -1, np.cumsum(~without) - 1)
            Y, start = Y[~without], _start_without(start, without)
        total = GroupedRows(Y, start, weight, width=len(self.file.names), intercept=intercept)
        if intercept != "query" or self.missing != "raise":
            normaliser = self.normaliser
            for X, row, node in rows_by_query(self.file, self.placed, missing=self.missing):
                total.add(self.normalised(normaliser, X), *_left(row, node, place))
            return total.equations()
        found: list[Moments] = []
        seen = (lambda X: found.append(self._moments(X))) if self.moments is None else None
        for X, row, node in rows_by_query(self.file, self.placed, seen=seen):
            total.add(signed_log(X) if self.unfitted.log else X, *_left(row, node, place))
        if self.moments is None:
            self.moments = reduce(add, found)
        scale = self.normaliser.fitted()[1]
        return total.equations().scaled(1.0 / scale) if self.unfitted.standardise else total.equations()

    def times(self, theta: Floats) -> Floats:
        out = np.empty((int(self.placed.start[-1]), theta.shape[1]))
        for begin, X in self.file.blocks(missing=self.missing):
            row, node = self.placed.nodes(begin, begin + len(X))
            out[node] = (self.normalised(self.normaliser, X) @ theta)[row]
        return out

    def _moments(self, X: Matrix) -> Moments:
        return Moments.of(X, log=self.unfitted.log)


def _left(row: Any, node: Any, place: Ints | None) -> tuple[Any, Any]:
    """The rows whose nodes are left, and the places of these."""
    if place is None:
        return row, node
    kept = place[node] >= 0
    return row[kept], place[node[kept]]


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


COMPILED, BYTES, BYTES_OF_CELL = 110e6, 350, 24
"""What libraries, a distinct judgment (a pair of a list) and a number of the features take while a scorer is fitted."""


def note_needs(training: Training) -> None:
    """Take note of what the fit will hold: judgments and their folds, features as they are and as they are seen."""
    cells = 0 if isinstance(training, StreamedTraining) else int(np.prod(training.features.X.shape))
    text = f"a fit to {training.prefs.distinct:,} distinct judgments and {cells:,} numbers of features"
    needs(COMPILED + BYTES * float(training.prefs.work.sum()) + BYTES_OF_CELL * cells, text)
