"""The two numbers of the prior where the sample of queries has one that no task can hold: from sums over its slices.

What is done is what ``informed_prior`` does: the whole queries of the sample are on the driver, of the divided ones
come values, gradients and curvature of the pairwise scorer, gradients of the scores, and likelihoods.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from concordant.apps.spark.learning_held import WHOLE, Held, HeldFrame, Split, Summing, Sums, Work
from concordant.apps.spark.learning_passes import Asked, Totals, minimised
from concordant.apps.spark.learning_slices import Along, Part, fitted
from concordant.learning.solvers.least_squares import products
from concordant.learning.targets.informed import FOLDS, SURE, Numbers, chosen_numbers
from concordant.preferences.graphs import Batch
from concordant.ranking.bradley_terry import bradley_terry

Floats = NDArray[np.float64]
LOOSE = 1e-4
"""Tolerance of the scores that variances are judged by, as in memory."""
THIRDS: list[Split] = [("judgments", fold) for fold in range(FOLDS)]
OF_QUERIES: list[Split] = [("queries", fold) for fold in range(FOLDS)]


@dataclass(frozen=True)
class OfScorers:
    """Log-likelihood of what each fold holds out under the scorer that has not seen it, and its strength."""

    thetas: Mapping[Split, Floats]

    def __call__(self, held: Held) -> Sums:
        found = Sums(value=0.0, mass=0.0)
        for split, theta in self.thetas.items():
            found += likely(held, split, products(held.Z, theta)[held.row])
        return found


@dataclass(frozen=True, eq=False)
class OfScores:
    """The same under scores of the items of divided queries."""

    scores: Mapping[Part, Floats]

    def __call__(self, held: Held) -> Sums:
        found = Sums(value=0.0, mass=0.0)
        for (query, split), score in self.scores.items():
            if held.slice is not None and held.slice.query == query:
                found += likely(held, split, score)
        return found


def likely(held: Held, split: Split, score: Floats) -> Sums:
    """Log-likelihood of what a fold holds out under scores of the nodes, and its strength."""
    first, second = held.ends
    above, below = held.held_wins(split)
    margin = score[first] - score[second]
    value = above @ np.logaddexp(0.0, -margin) + below @ np.logaddexp(0.0, margin)
    return Sums(value=-float(value), mass=float(above.sum() + below.sum()))


@dataclass(frozen=True)
class Gaps:
    """By how much judgments held out are more likely under one scorer than under another, and the squares."""

    thetas: Mapping[Split, tuple[Floats, Floats]]

    def __call__(self, held: Held) -> Sums:
        found = Sums(total=0.0, square=0.0)
        for split, pair in self.thetas.items():
            prefs = held.left_out(split)
            if not len(prefs):
                continue
            batch = Batch.whole(prefs)
            edges = batch.edges
            gap = np.zeros(len(edges.holder))
            for theta, sign in zip(pair, (-1.0, 1.0), strict=True):
                score = products(held.Z, theta)[held.row]
                margin = score[edges.winner] - score[edges.loser]
                gap += sign * (np.logaddexp(0.0, -margin) + np.where(edges.tie, 0.5 * margin, 0.0))
            each = np.bincount(edges.holder, gap * edges.strength, len(batch.judgment)).astype(np.float64)
            found += Sums(total=float(batch.multiplicity @ each), square=float(batch.multiplicity @ each**2))
        return found


@dataclass(eq=False)
class SampledSums:
    """The sample, dealt into thirds of judgments and of queries: ``Likelihoods`` of whole and of divided queries."""

    slices: HeldFrame | Summing
    local: Held | None
    """The queries that are not divided."""
    folds: Mapping[int, int]
    """Of each divided query, where whole ones are held out."""
    by_query: bool
    total: float
    """Strength of all comparisons of the log."""
    seed: int
    start: Floats
    masses: Sums = field(init=False)
    thetas: dict[float, dict[Split, Floats]] = field(default_factory=dict)
    means: dict[float, tuple[dict[Split, Floats] | None, dict[int, dict[Split, Floats]]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.masses = self.sums(Totals((WHOLE, *self.splits), True))

    def sums(self, work: Work) -> Sums:
        """Do a piece of work on the driver's queries and on the slices, and add up."""
        mine = Sums() if self.local is None else work(self.local)
        return mine + self.slices.sums(work)

    @property
    def splits(self) -> list[Split]:
        """What the scorer learns from, and what it is judged by."""
        return OF_QUERIES if self.by_query else THIRDS

    def scorers(self, precision: float) -> dict[Split, Floats]:
        """θ of each fold with a prior of this precision."""
        if precision not in self.thetas:
            near = min(self.thetas, key=lambda one: abs(np.log(one / precision)), default=None)
            begin = dict.fromkeys(self.splits, self.start) if near is None else self.thetas[near]
            asked = {("ranknet", split): self._asked(split, precision, begin[split]) for split in self.splits}
            found = minimised(self, asked, self.seed)
            self.thetas[precision] = {split: theta for (_, split), theta in found.items()}
        return self.thetas[precision]

    def _asked(self, split: Split, precision: float, start: Floats) -> Asked:
        mass = max(self.masses[split, "mass"], 1e-300)
        return Asked(mass, precision / mass, start)

    def likelihood_of_precision(self, precision: float) -> float:
        """Mean log-likelihood of the held-out comparisons under the scorers."""
        found = self.sums(OfScorers(self.scorers(precision)))
        return float(found["value"] / max(found["mass"], 1e-300))

    def within_an_error(self, precision: float, best: float) -> bool:
        """Whether held-out judgments do not show that a precision is worse than the best, by ``SURE`` errors."""
        other, one = self.scorers(best), self.scorers(precision)
        found = self.sums(Gaps({split: (other[split], one[split]) for split in self.splits}))
        return bool(found["total"] <= SURE * np.sqrt(found["square"]))

    def likelihood_of_variance(self, precision: float, variance: float) -> float:
        """The same under the scores of each query; under the scorer alone for variance 0."""
        local, means = self._means(precision)
        parts = {(query, split): mean for query, of_splits in means.items() for split, mean in of_splits.items()}
        if variance > 0:
            made = fitted(self.slices, parts, 1 / variance, tolerance=LOOSE)
            parts = {part: score for part, (score, _) in made.items()}
        found = self.slices.sums(OfScores(parts))
        for split in THIRDS if self.local is not None else ():
            assert self.local is not None and local is not None
            score = local[split]
            if variance > 0:
                rest = Batch.whole(self.local.learned(split))
                score = bradley_terry(rest, prior=1 / variance, mean=score, covariates=False, tolerance=LOOSE).value
            found += likely(self.local, split, score)
        return float(found["value"] / max(found["mass"], 1e-300))

    def _means(self, precision: float) -> tuple[dict[Split, Floats] | None, dict[int, dict[Split, Floats]]]:
        """Prior means of the nodes by scorers that have not seen a third (nor, with folds of queries, its query)."""
        if precision in self.means:
            return self.means[precision]
        thetas = self.scorers(precision)
        asked = {
            (query, split): thetas["queries", fold] if self.by_query else thetas[split]
            for query, fold in self.folds.items()
            for split in THIRDS
        }
        found = self.slices.sums(Along(asked))
        of_slices = {query: {split: found[query, split] for split in THIRDS} for query in self.folds}
        local = None if self.local is None else {split: self._local(self.local, thetas, split) for split in THIRDS}
        self.means[precision] = local, of_slices
        return self.means[precision]

    def _local(self, held: Held, thetas: Mapping[Split, Floats], split: Split) -> Floats:
        if not self.by_query:
            return held.groups.centred(products(held.Z, thetas[split])[held.row])
        fold = held.groups.spread(held.query_fold)
        parts = [np.where(fold == k, products(held.Z, thetas["queries", k])[held.row], 0.0) for k in range(FOLDS)]
        return held.groups.centred(np.sum(parts, axis=0))

    def numbers(self, tau2: float | str) -> tuple[Numbers, Floats]:
        """Return the numbers that ``informed_prior`` chooses, and θ of the sample. Errors: UsageError for a τ²."""
        chosen = chosen_numbers(self, "auto", tau2)
        own = self.masses[WHOLE, "mass"]
        asked = self._asked(WHOLE, chosen.precision * own / self.total, self.start)
        return chosen, minimised(self, {("ranknet", WHOLE): asked}, self.seed)["ranknet", WHOLE]
