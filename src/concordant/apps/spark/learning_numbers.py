"""The two numbers of the prior where the sample of queries has one that no task can hold: from sums over its slices.

What is done is what ``informed_prior`` does: the whole queries of the sample are on the driver, of the divided ones
come values, gradients and curvature of the pairwise scorer, gradients of the scores, and likelihoods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from concordant.apps.spark.learning_held import WHOLE, Held, Split, Summing, Sums, Work
from concordant.apps.spark.learning_passes import Asked, Fit, Totals, minimised
from concordant.apps.spark.learning_slices import Along, Graph, Part, fitted
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

    thetas: Mapping[float, Mapping[Split, Floats]]
    """By the precision of their prior."""

    def __call__(self, held: Held) -> Sums:
        found = Sums()
        for precision, of_splits in self.thetas.items():
            for split, theta in of_splits.items():
                found += Sums({precision: likely(held, split, products(held.Z, theta)[held.row])})
        return found


@dataclass(frozen=True, eq=False)
class OfScores:
    """The same under scores of the items of divided queries."""

    scores: Mapping[Graph, Floats]

    def __call__(self, held: Held) -> Sums:
        found = Sums()
        for (query, split, prior), score in self.scores.items():
            if held.slice is not None and held.slice.query == query:
                found += Sums({prior: likely(held, split, score)})
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

    slices: Summing
    pairs: Summing
    """Their pairs alone."""
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
    """Scorers by the precision of their prior."""
    means: dict[float, tuple[dict[Split, Floats], dict[Part, Floats]]] = field(default_factory=dict)
    of_precisions: dict[float, float] = field(default_factory=dict)
    of_variances: dict[tuple[float, float], float] = field(default_factory=dict)
    """By precision and variance: likelihoods that were asked for, or will be."""

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

    def expect(self, precisions: Sequence[float], variances: Sequence[float]) -> None:
        """Find scorers and likelihoods of all of them in the same passes."""
        self._find_scorers([one for one in precisions if one not in self.thetas])
        if new := {one: self.thetas[one] for one in precisions if one not in self.of_precisions}:
            for one, found in self.sums(OfScorers(new)).items():
                self.of_precisions[one] = float(found["value"] / max(found["mass"], 1e-300))
        if asked := [one for one in variances if (precisions[-1], one) not in self.of_variances]:
            self._find_variances(precisions[-1], asked)

    def likelihood_of_precision(self, precision: float) -> float:
        """Mean log-likelihood of the held-out comparisons under the scorers."""
        self.expect([precision], ())
        return self.of_precisions[precision]

    def within_an_error(self, precision: float, best: float) -> bool:
        """Whether held-out judgments do not show that a precision is worse than the best, by ``SURE`` errors."""
        self._find_scorers([one for one in (precision, best) if one not in self.thetas])
        other, one = self.thetas[best], self.thetas[precision]
        found = self.sums(Gaps({split: (other[split], one[split]) for split in self.splits}))
        return bool(found["total"] <= SURE * np.sqrt(found["square"]))

    def likelihood_of_variance(self, precision: float, variance: float) -> float:
        """The same under the scores of each query; under the scorer alone for variance 0."""
        self.expect([precision], [variance])
        return self.of_variances[precision, variance]

    def _find_scorers(self, precisions: Sequence[float]) -> None:
        """θ of each fold with priors of these precisions, from that of the nearest known."""
        asked: dict[Fit, Asked] = {}
        for one in precisions:
            near = min(self.thetas, key=lambda known: abs(np.log(known / one)), default=None)
            for split in self.splits:
                begin = self.start if near is None else self.thetas[near][split]
                asked["ranknet", split, one] = self._asked(split, one, begin)
        found = minimised(self, asked, self.seed)
        for one in precisions:
            self.thetas[one] = {split: found["ranknet", split, one] for split in self.splits}

    def _asked(self, split: Split, precision: float, start: Floats) -> Asked:
        mass = max(self.masses[split, "mass"], 1e-300)
        return Asked(mass, precision / mass, start)

    def _find_variances(self, precision: float, variances: Sequence[float]) -> None:
        local, means = self._means(precision)
        priors = {one: 1 / one if one > 0 else np.inf for one in variances}
        graphs = {(*part, prior): mean for prior in priors.values() for part, mean in means.items()}
        if some := {graph: mean for graph, mean in graphs.items() if np.isfinite(graph[-1])}:
            graphs |= {
                graph: found.value for graph, found in fitted(self.pairs, some, self.masses, tolerance=LOOSE).items()
            }
        found = self.pairs.sums(OfScores(graphs))
        for one, prior in priors.items():
            both = found[prior]
            if self.local is not None:
                both += sum((self._local_likely(self.local, split, local[split], prior) for split in THIRDS), Sums())
            self.of_variances[precision, one] = float(both["value"] / max(both["mass"], 1e-300))

    @staticmethod
    def _local_likely(held: Held, split: Split, mean: Floats, prior: float) -> Sums:
        score = mean
        if np.isfinite(prior):
            rest = Batch.whole(held.learned(split))
            score = bradley_terry(rest, prior=prior, mean=mean, covariates=False, tolerance=LOOSE).value
        return likely(held, split, score)

    def _means(self, precision: float) -> tuple[dict[Split, Floats], dict[Part, Floats]]:
        """Prior means of the nodes by scorers that have not seen a third (nor, with folds of queries, its query)."""
        if precision in self.means:
            return self.means[precision]
        thetas = self.thetas[precision]
        asked = {
            (query, split): thetas["queries", fold] if self.by_query else thetas[split]
            for query, fold in self.folds.items()
            for split in THIRDS
        }
        found = self.slices.sums(Along(asked))
        local = {} if self.local is None else {split: self._local(self.local, thetas, split) for split in THIRDS}
        self.means[precision] = local, {part: found[part] for part in asked}
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
