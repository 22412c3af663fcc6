"""A prior for aggregation from the features: what a first pairwise fit expects of every item, and how surely."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from concordant.errors import InputError, UsageError, counted
from concordant.learning.features.matrix import Alignment
from concordant.learning.solvers.edges import fit_edges
from concordant.learning.solvers.least_squares import products
from concordant.losses.surrogates import surrogate
from concordant.preferences.graphs import Batch, Graphs
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Preferences
from concordant.preferences.sampling import deal, label_keys, uniform_bits
from concordant.progress import stage
from concordant.ranking.bradley_terry import bradley_terry

Floats = NDArray[np.float64]
Matrix = NDArray[np.floating[Any]]
FOLDS = 3
FEW_QUERIES = 10
"""Queries from which on whole ones are held out for the ridge."""
SURE = 0.5
"""Standard errors by which held-out judgments may be less likely under the ridge that is taken."""
DECADE = 10.0
"""How much greater than the best the ridge that is taken may be; far beyond it the scorer has no scale left."""
SAMPLE = 1 << 15
"""Pairs of items on which the two numbers are chosen; more hardly change them."""
PRECISIONS = (1e-2, 1e6, 10.0**0.5)
"""Least, greatest and step of n · ridge, the precision of a normal prior on θ, in the search."""
VARIANCES = (2.0**-8, 2.0**6, 2.0)
"""The same of τ²."""
COARSE = 10.0**1.5, 4.0
"""Factors between the first candidates."""


@dataclass(frozen=True, eq=False)
class Informed:
    """A normal prior N(mean, τ²) of the scores of every query, for ``bradley_terry``.

    Use: ``mean_targets(prefs, "bradley-terry", options=prior.options, …)``.
    """

    mean: Floats
    """x'θ less its mean in the query, one for each node of ``Batch.whole(prefs)``."""
    tau2: float
    """Variance of the scores about the mean."""
    theta: Floats
    """Coefficients of the pairwise logistic scorer."""
    ridge: float
    """Its ridge λ, of (λ/2)‖θ‖² beside the risk (1/n) Σ log(1 + e^−margin) over the n judgments."""
    ridge_curve: tuple[tuple[float, float], ...] = ()
    """(ridge, mean log-likelihood of a held-out comparison) of all ridges tried, ascending; empty when given."""
    tau2_curve: tuple[tuple[float, float], ...] = ()
    """The same of τ²; what τ² = 0 would give, the scorer by itself, first."""
    notes: tuple[Note, ...] = ()
    precision: float = 0.0
    """n · ridge, the precision of a normal prior on θ, which the search tries on a grid."""

    @property
    def options(self) -> dict[str, Any]:
        """Options of the structure "bradley-terry"."""
        return {"prior": 1.0 / self.tau2, "mean": self.mean}


def informed_prior(
    X: Matrix,
    alignment: Alignment,
    prefs: Preferences,
    *,
    ridge: float | str = "auto",
    tau2: float | str = "auto",
    precision: float | None = None,
    weight: Floats | None = None,
    seed: int = 0,
) -> Informed:
    """Fit a pairwise logistic scorer θ to all comparisons and say how far the items of a query lie from it.

    Stage one minimises (1/n) Σ n_jl log(1 + e^−(x_j − x_l)'θ) + (λ/2)‖θ‖². It does not converge to the right order
    where no linear scorer does, but wastes nothing. Stage two is Bradley–Terry in each query with s ~ N(x'θ, τ²):
    with few judgments the scores are those of the scorer, with many the prior washes out.

    ``X`` (rows, features) should be standardised; ``alignment`` says which row belongs to each item of each query.
    With "auto" both numbers are chosen by the likelihood of held-out comparisons. λ is the greatest ridge whose
    likelihood is within half a standard error, over judgments, of the best (a whole one costs trees on few judgments),
    and at most tenfold the best; whole queries are held out, by thirds, since the scorer is for queries that it has not
    seen. (Of fewer than ten queries a third of the judgments is held out.) Then τ² is that of the greatest likelihood:
    a third of the judgments of each query is held out; scores come from the others, with prior means from the θ that
    has not seen the query, so nothing of what τ² is judged by. Of more than 32,768 judged pairs of items as many
    queries are drawn as have about that many, by their labels and ``seed``; λn is then kept the same, as for a normal
    prior on θ; ``precision`` is λn where it is known, in the place of ``ridge``. ``weight`` (queries,) multiplies what
    each query counts for in stage one and in both choices; only ratios matter.

    Errors: UsageError for numbers out of range and shapes that do not fit, InputError without comparisons.

    >>> votes = Preferences.from_comparisons(["a", "b", "a", "c"], ["b", "c", "c", "b"], [1, 1, 2, 2])
    >>> X = np.array([[1.0], [0.0], [-1.0], [1.0], [0.0], [-1.0]])
    >>> rows = Alignment(np.array([0, 3, 6]), np.arange(6), np.arange(0))
    >>> prior = informed_prior(X, rows, votes, ridge=0.1, tau2=0.5)
    >>> prior.theta.round(3).tolist(), prior.mean[:3].round(3).tolist()
    ([0.767], [0.767, 0.0, -0.767])
    >>> bradley_terry(Batch.whole(votes), **prior.options).value[[0, 2]].round(2).tolist()
    [0.91, -0.91]

    Source: method, section 9; for comparison: empirical Bayes with a regression prior (Fay and Herriot, JASA 74, 1979).
    """
    _check(X, alignment, prefs, ridge, tau2)
    problem = _Problem(np.asarray(X), alignment, prefs, seed, weight)
    if problem.total <= 0:
        raise InputError("informed aggregation needs comparisons: these preferences prefer no item to another")
    chosen = chosen_numbers(problem, ridge, tau2, precision)
    with stage("fitting the pairwise scorer"):
        theta = problem.fit(problem.whole.graphs, chosen.precision)
    mean = alignment.groups.centred(products(X, theta)[alignment.row])
    return chosen.prior(mean, theta, problem.total)


@dataclass(frozen=True)
class Numbers:
    """The two numbers of a prior, and how they came about."""

    precision: float
    """n · ridge, of a normal prior on θ."""
    variance: float
    """τ²."""
    ridge_curve: tuple[tuple[float, float], ...]
    tau2_curve: tuple[tuple[float, float], ...]
    notes: tuple[Note, ...]

    def prior(self, mean: Floats, theta: Floats, total: float) -> Informed:
        """Return the prior of comparisons of this strength, with its scorer."""
        ridge = self.precision / total
        curves = self.ridge_curve, self.tau2_curve
        return Informed(mean, self.variance, theta, ridge, *curves, self.notes, self.precision)


def numbers_of_sample(
    X: Matrix, alignment: Alignment, prefs: Preferences, total: float, *, tau2: float | str = "auto", seed: int = 0
) -> tuple[Numbers, Floats]:
    """Return the numbers that ``informed_prior`` chooses, and θ of these queries.

    ``prefs`` are the queries that it draws of a log whose comparisons have the strength ``total``. Errors: as there.
    """
    _check(X, alignment, prefs, "auto", tau2)
    problem = _Problem(np.asarray(X), alignment, prefs, seed)
    own, problem.total = problem.total, total
    chosen = chosen_numbers(problem, "auto", tau2)
    return chosen, problem.fit(problem.whole.graphs, chosen.precision * own / total)


def drawn_queries(keys: NDArray[np.uint64], pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the queries on which the numbers are chosen, in random order; ``pairs``: judged ones of each query."""
    sorter = np.argsort(uniform_bits(keys, np.full(len(keys), 1 << 61, np.uint64)), kind="stable")
    held = np.cumsum(pairs[sorter])
    return sorter[: int(np.searchsorted(held, SAMPLE)) + 1]


class Likelihoods(Protocol):
    """What the two numbers are chosen by: what held-out comparisons say, wherever these lie."""

    total: float
    """Strength of all comparisons of the log."""

    def expect(self, precisions: Sequence[float], variances: Sequence[float]) -> None:
        """These are asked for next (variances: with the last precision): what they share may be done at once."""
        ...

    def likelihood_of_precision(self, precision: float) -> float:
        """Mean log-likelihood of the held-out comparisons under scorers with this precision."""
        ...

    def within_an_error(self, precision: float, best: float) -> bool:
        """Whether held-out judgments do not show that a precision is worse than the best, by ``SURE`` errors."""
        ...

    def likelihood_of_variance(self, precision: float, variance: float) -> float:
        """That of the scores of each query about its scorer; of the scorer alone for variance 0."""
        ...


def chosen_numbers(
    problem: Likelihoods, ridge: float | str, tau2: float | str, precision: float | None = None
) -> Numbers:
    """Choose what is not given. Errors (UsageError): numbers out of range."""
    check_numbers(ridge, tau2)
    ridge_curve: tuple[tuple[float, float], ...] = ()
    tau2_curve: tuple[tuple[float, float], ...] = ()
    notes: list[Note] = []
    if precision is not None:
        pass
    elif ridge == "auto":
        with stage("choosing the ridge of the pairwise scorer"):
            found = peak(
                problem.likelihood_of_precision, PRECISIONS, COARSE[0], lambda values: problem.expect(values, ())
            )
            best = max(found, key=lambda value: found[value])
            precision = _greatest(best, PRECISIONS, lambda value: problem.within_an_error(value, best))
            found[precision] = problem.likelihood_of_precision(precision)
        ridge_curve = tuple((value / problem.total, found[value]) for value in sorted(found))
        notes.extend(_edge("ridge", precision, PRECISIONS, precision / problem.total))
    else:
        precision = float(ridge) * problem.total
    if tau2 == "auto":
        with stage("choosing the variance of the scores"):
            found = peak(
                lambda value: problem.likelihood_of_variance(precision, value),
                VARIANCES,
                COARSE[1],
                lambda values: problem.expect([precision], values),
            )
        variance = max(found, key=lambda value: found[value])
        alone = (0.0, problem.likelihood_of_variance(precision, 0.0))
        tau2_curve = (alone, *((value, found[value]) for value in sorted(found)))
        notes.extend(_edge("τ²", variance, VARIANCES, variance))
    else:
        variance = float(tau2)
    return Numbers(precision, variance, ridge_curve, tau2_curve, tuple(notes))


class _Problem:
    """The comparisons, split into what is learned from and what is held out, and the fits to each part."""

    def __init__(
        self, X: Matrix, alignment: Alignment, prefs: Preferences, seed: int, weight: Floats | None = None
    ) -> None:
        self.X, self.alignment, self.prefs = X, alignment, prefs
        self.whole = Batch.whole(prefs)
        self.weight = np.ones(len(self.whole)) if weight is None else np.asarray(weight, np.float64)
        self.total = _mass(self.whole.graphs)
        weighted = self.mass(self.whole.graphs)
        self.weight = self.weight * (self.total / weighted if weighted > 0 else 1.0)  # a mean judgment weighs 1
        self.keys = label_keys(prefs.queries, seed)
        self.thetas: dict[tuple[int, float], Floats] = {}

    def mass(self, graphs: Graphs) -> float:
        """Strength of all comparisons, each with the weight of its query."""
        return float((self.weight[graphs.graph] * (graphs.above + graphs.below)).sum())

    def fit(self, graphs: Graphs, precision: float) -> Floats:
        """θ of these graphs (of all queries) with a prior of this precision, whatever their number."""
        objective = surrogate("ranknet").objective(graphs)
        total = max(self.mass(graphs), 1e-300)
        weight = self.weight / total
        fitted = fit_edges(self.X, objective, ridge=precision / total, rows=self.alignment.row, weight=weight)
        return np.asarray(fitted.theta, np.float64)

    # -- what is held out ----------------------------------------------------------------------------------------
    @cached_property
    def sampled(self) -> NDArray[np.int64]:
        """The queries on which ridge and τ² are chosen, in random order."""
        return drawn_queries(self.keys, self.whole.graphs.pairs.sizes)

    @cached_property
    def fold(self) -> NDArray[np.int64]:
        """The fold of each query, −1 for those not sampled."""
        fold = np.full(len(self.keys), -1)
        fold[self.sampled] = np.arange(len(self.sampled)) % FOLDS
        return fold

    @property
    def by_query(self) -> bool:
        """Whether there are queries enough to hold whole ones out; else θ leaves out a third of the judgments."""
        return len(self.sampled) >= FEW_QUERIES

    @cached_property
    def shares(self) -> list[tuple[Batch, Batch]]:
        """(rest, held out): the judgments of each sampled query dealt into parts; graphs have all items of theirs."""
        count = np.where(self.fold[self.prefs.query] >= 0, self.prefs.count, 0).astype(np.int64)
        shares = deal(self.prefs.start, count, self.keys, FOLDS)
        return [(self._batch(count - share), self._batch(share)) for share in shares]

    @cached_property
    def splits(self) -> list[tuple[Batch, Batch]]:
        """(learned from, judged by) of the scorer in each fold."""
        if not self.by_query:
            return self.shares
        count, fold = self.prefs.count.astype(np.int64), self.fold[self.prefs.query]
        return [
            (self._batch(np.where((fold >= 0) & (fold != k), count, 0)), self._batch(np.where(fold == k, count, 0)))
            for k in range(FOLDS)
        ]

    def _batch(self, count: NDArray[np.int64]) -> Batch:
        rows = np.flatnonzero(count)
        start = np.searchsorted(rows, self.prefs.start).astype(np.int64)
        return Batch(self.prefs, np.arange(len(self.prefs.queries), dtype=np.int32), start, rows, count[rows])

    # -- what it says --------------------------------------------------------------------------------------------
    def expect(self, precisions: Sequence[float], variances: Sequence[float]) -> None:
        """They share nothing here."""

    def unseen(self, fold: int, precision: float) -> Floats:
        """Scores by the θ that has not seen what the fold holds out; shape (nodes,)."""
        if (fold, precision) not in self.thetas:
            self.thetas[fold, precision] = self.fit(self.splits[fold][0].graphs, precision)
        return products(self.X, self.thetas[fold, precision])[self.alignment.row]

    def mean(self, share: int, precision: float) -> Floats:
        """Prior means of the nodes by a θ that has not seen the share (nor, with folds of queries, its query)."""
        if not self.by_query:
            return self.alignment.groups.centred(self.unseen(share, precision))
        fold = self.alignment.groups.spread(self.fold)
        parts = [np.where(fold == k, self.unseen(k, precision), 0.0) for k in range(FOLDS)]
        return self.alignment.groups.centred(np.sum(parts, axis=0))

    def likelihood_of_precision(self, precision: float) -> float:
        """Mean log-likelihood of the held-out comparisons under the scorers."""
        held = [judge.graphs for _, judge in self.splits]
        value = sum(_likelihood(graphs, self.unseen(k, precision), self.weight) for k, graphs in enumerate(held))
        return value / max(sum(map(self.mass, held)), 1e-300)

    def within_an_error(self, precision: float, best: float) -> bool:
        """Whether held-out judgments do not show that a precision is worse than the best, by ``SURE`` errors."""
        total, square = 0.0, 0.0
        for fold, (_, held) in enumerate(self.splits):
            edges = held.edges
            gap = np.zeros(len(edges.holder))
            for value, sign in ((best, 1.0), (precision, -1.0)):
                margin = (score := self.unseen(fold, value))[edges.winner] - score[edges.loser]
                tied = np.where(edges.tie, 0.5 * margin, 0.0)  # log σ(m), of a tie the mean of both sides
                gap -= sign * (np.logaddexp(0.0, -margin) + tied)
            each = np.bincount(edges.holder, gap * edges.strength, len(held.judgment)).astype(np.float64)
            each = each * self.weight[held.query][held.graph]
            total += float(held.multiplicity @ each)
            square += float(held.multiplicity @ each**2)
        return bool(total <= SURE * np.sqrt(square))

    def likelihood_of_variance(self, precision: float, variance: float) -> float:
        """The same under the scores of each query; under the scorer alone for variance 0."""
        value, total = 0.0, 0.0
        for share, (rest, held) in enumerate(self.shares):
            score = self.mean(share, precision)
            if variance > 0:
                score = bradley_terry(rest, prior=1 / variance, mean=score, covariates=False, tolerance=1e-4).value
            value += _likelihood(held.graphs, score, self.weight)
            total += self.mass(held.graphs)
        return value / max(total, 1e-300)


def _mass(graphs: Graphs) -> float:
    return float(graphs.above.sum() + graphs.below.sum())


def _likelihood(graphs: Graphs, score: Floats, weight: Floats) -> float:
    """Log-likelihood of the comparisons, each with the weight of its query (graphs,)."""
    margin = score[graphs.first] - score[graphs.second]
    each = graphs.above * np.logaddexp(0.0, -margin) + graphs.below * np.logaddexp(0.0, margin)
    return -float((weight[graphs.graph] * each).sum())


def peak(
    value: Callable[[float], float],
    span: tuple[float, float, float],
    coarse: float,
    expect: Callable[[list[float]], None] = lambda _: None,
) -> dict[float, float]:
    """Climb from the middle of the range in coarse steps, then look at the fine steps beside the best.

    One peak is expected; the values of all points tried are returned. ``expect`` is told what is asked for next.
    """
    least, greatest, fine = span
    points = list(_steps(least, greatest, fine))
    stride = max(1, round(np.log(coarse) / np.log(fine)))
    tried: dict[int, float] = {}

    def look(at: int) -> float:
        if at not in tried:
            tried[at] = value(points[at])
        return tried[at]

    at = len(points) // 2
    while stride >= 1:
        beside = [p for p in (at - stride, at + stride) if 0 <= p < len(points)]
        expect([points[p] for p in (*beside, at) if p not in tried])
        best = max(beside, key=look)
        if look(best) > look(at):
            at = best
        else:
            stride //= 2
    return {points[at]: found for at, found in tried.items()}


def _greatest(best: float, span: tuple[float, float, float], fine: Callable[[float], bool]) -> float:
    """The greatest value, of a decade from the best on, up to which all steps are fine."""
    points = [one for one in _steps(*span) if best * (1 + 1e-9) < one < best * DECADE * (1 + 1e-9)]
    for place, point in enumerate(points):
        if not fine(point):
            return points[place - 1] if place else best
    return points[-1] if points else best


def _steps(least: float, greatest: float, factor: float) -> Iterator[float]:
    number = round(np.log(greatest / least) / np.log(factor))
    yield from (float(least * factor**step) for step in range(number + 1))


def _edge(name: str, chosen: float, span: tuple[float, float, float], shown: float) -> list[Note]:
    least, greatest = span[0] * 1.01, span[1] / 1.01
    if least < chosen < greatest:
        return []
    text = f"informed: {name} = {{value:.3g}} is the {'least' if chosen <= least else 'greatest'} that was tried"
    return [Note("end of what was tried", text, value=float(shown))]


def check_numbers(ridge: float | str, tau2: float | str) -> None:
    """Refuse what is no ridge and no variance."""
    for name, value in (("ridge", ridge), ("tau2", tau2)):
        if isinstance(value, str) and value == "auto":
            continue
        if isinstance(value, str | bool) or not np.isfinite(value) or value < 0 or (name == "tau2" and value == 0):
            least = "a positive number" if name == "tau2" else "a number of at least 0"
            raise UsageError(f"{name} must be {least} or 'auto', not {value!r}")


def _check(X: Matrix, alignment: Alignment, prefs: Preferences, ridge: float | str, tau2: float | str) -> None:
    check_numbers(ridge, tau2)
    if np.ndim(X) != 2:
        raise UsageError(f"features must be a matrix (rows, features), not of shape {np.shape(X)}")
    start, _ = prefs.members
    if not np.array_equal(start, alignment.start) or len(alignment.row) != start[-1]:
        raise UsageError(
            f"the alignment has {counted(len(alignment.row), 'items')} in "
            f"{counted(len(alignment.start) - 1, 'queries')}, the preferences {counted(int(start[-1]), 'items')} in "
            f"{counted(len(prefs.queries), 'queries')}; "
            "align the features with these preferences"
        )
    if len(alignment.row) and not 0 <= alignment.row.min() <= alignment.row.max() < len(X):
        raise UsageError(f"the alignment names rows up to {int(alignment.row.max()):,} of {len(X):,}")
