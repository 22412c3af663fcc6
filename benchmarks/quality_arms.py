"""Scorers of the quality experiment: linear ones and boosted trees, each from the comparisons alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import lightgbm
import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit

from benchmarks.quality_sets import Comparisons, Split
from concordant.learning.features.matrix import Alignment, Features
from concordant.learning.rankers.aggregation import AggregationRanker
from concordant.learning.solvers.least_squares import NormalEquations
from concordant.learning.targets.informed import Informed, informed_prior
from concordant.learning.targets.mean_targets import Targets, mean_targets
from concordant.preferences.graphs import Batch, Graphs
from concordant.preferences.preferences import Preferences
from concordant.ranking.bradley_terry import bradley_terry

__all__ = ["GROWN", "LINEAR", "LOGISTIC", "RANKER", "TREES", "TRUTH", "Arms"]

Floats = NDArray[np.float64]
RIDGES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
"""Ridges of the regressions, relative to the mean curvature of the features."""
FOLDS = 3
ROUNDS = 100
TREE = {
    "learning_rate": 0.1,
    "num_leaves": 31,
    "min_data_in_leaf": 20,
    "deterministic": True,
    "force_row_wise": True,
    "num_threads": 1,
    "verbose": -1,
}
LOGISTIC = "pairwise logistic"
TRUTH = "lambdarank on the true labels"
RANKER = "AggregationRanker()"
GROWN = "AggregationRanker(regressor=trees)"
"""The rankers as they come, from features and comparisons on."""
LINEAR = (
    LOGISTIC,
    "log-odds, (2^s - 1)/Z",
    "Bradley-Terry, (2^s - 1)/Z",
    "Bradley-Terry, s",
    "informed, (2^s - 1)/Z",
    "informed, s",
    "informed, s beyond the scorer",
    "informed, s beyond the scorer, ridge 1",
    RANKER,
)
TREES = (
    LOGISTIC,
    "lambdarank on 5 grades, equal counts",
    "lambdarank on 5 grades, equal widths",
    "Bradley-Terry, s",
    "informed, (2^s - 1)/Z",
    "informed, s",
    "informed, s beyond the scorer",
    GROWN,
    TRUTH,
)


@dataclass(frozen=True, eq=False)
class Arms:
    """All scorers of one split and one draw; scores are those of the test rows."""

    split: Split
    drawn: Comparisons

    @cached_property
    def prior(self) -> Informed:
        """The pairwise logistic scorer, ridge and τ² by held-out judgments."""
        return informed_prior(self.split.Z_train, self.drawn.where, self.drawn.prefs)

    @cached_property
    def graphs(self) -> Graphs:
        return Batch.whole(self.drawn.prefs).graphs

    @cached_property
    def grades(self) -> Floats:
        """Aggregated scores (Bradley–Terry, prior variance 1) of the compared items."""
        return bradley_terry(Batch.whole(self.drawn.prefs), prior=1.0).value

    # -- linear --------------------------------------------------------------------------------------------------
    def linear(self, name: str) -> Floats:
        if name == RANKER:
            return self._ranker(AggregationRanker())
        if name == LOGISTIC:
            return np.asarray(self.split.Z_test @ self.prior.theta)
        make = {
            "log-odds, (2^s - 1)/Z": _targets("log-odds"),
            "Bradley-Terry, (2^s - 1)/Z": _targets("bradley-terry", {"prior": 1.0}),
            "Bradley-Terry, s": _targets("bradley-terry", {"prior": 1.0}, gain="identity"),
            "informed, (2^s - 1)/Z": self._informed("2^s-1"),
        }.get(name, self._informed("identity"))
        beyond = "beyond" in name
        if name.endswith("ridge 1"):
            return np.asarray(self.split.Z_test @ self._ridges(self.drawn, make, beyond)[:, RIDGES.index(1.0)])
        losses = np.zeros((len(self.split.train.size), len(RIDGES) + beyond))  # of each query when held out
        for learn, judge in self._folds:
            thetas = self._ridges(learn, make, beyond)
            D = self.split.Z_train[judge[0]] - self.split.Z_train[judge[1]]
            t = D @ thetas  # minus log-likelihood where scores are log-odds
            np.add.at(losses, self.split.train.query[judge[0]], -log_expit(t) if "(2^s" not in name else t <= 0)
        best = int(losses.sum(axis=0)[: len(RIDGES)].argmin())
        return np.asarray(self.split.Z_test @ self._ridges(self.drawn, make, beyond)[:, best])

    def _ranker(self, ranker: AggregationRanker) -> Floats:
        """Scores of a ranker that is given the training items by query and row, as the comparisons name them."""
        train = self.split.train
        features = Features.of(train.X, np.arange(len(train.X)), train.query)
        return np.asarray(ranker.fit(features, self.drawn.prefs).predict(self.split.test.X), np.float64)

    @cached_property
    def _folds(self) -> list[tuple[Comparisons, tuple[Any, Any]]]:
        """(what is learned from, winner and loser rows judged by): a third of the queries held out."""
        prefs = self.drawn.prefs
        fold = np.random.default_rng(0).permutation(len(prefs.queries)) % FOLDS
        row = np.array([int(str(item)) for item in prefs.items], np.int64)
        times = np.repeat(np.arange(len(prefs.count)), prefs.count)
        parts = []
        for k in range(FOLDS):
            learn = prefs.select([q for q, f in zip(prefs.queries, fold, strict=True) if f != k])
            rows = np.array([int(str(item)) for item in learn.items], np.int64)[Batch.whole(learn).item]
            held = times[fold[prefs.query[times]] == k]
            where = Alignment(learn.members[0], rows, np.zeros(0, np.int64))
            parts.append((Comparisons(learn, where), (row[prefs.winner[held]], row[prefs.loser[held]])))
        return parts

    @cached_property
    def _priors(self) -> dict[Comparisons, Informed]:
        """Of each fold, with ridge and τ² as chosen on the whole."""
        Z, tau2 = self.split.Z_train, self.prior.tau2
        ridge = self.prior.ridge * len(self.drawn.prefs)
        return {
            part: informed_prior(Z, part.where, part.prefs, ridge=ridge / len(part.prefs), tau2=tau2)
            for part, _ in self._folds
        }

    def _informed(self, gain: str) -> Callable[[Comparisons], tuple[Targets, Floats]]:
        def make(drawn: Comparisons) -> tuple[Targets, Floats]:
            prior = self.prior if drawn is self.drawn else self._priors[drawn]
            plain = gain == "identity"
            options = prior.options
            made = mean_targets(drawn.prefs, "bradley-terry", options=options, gain=gain, normalise=not plain)
            return made, prior.theta

        return make

    def _ridges(self, drawn: Comparisons, make: Callable[..., tuple[Targets, Floats]], beyond: bool) -> Floats:
        """θ of all ridges, shape (features, ridges)."""
        targets, first = make(drawn)
        y, Z, rows = targets.value, self.split.Z_train, drawn.where.row
        if beyond:
            y = y - drawn.where.groups.centred((Z @ first)[rows])
        equations = NormalEquations.of(Z, y, targets.start, targets.weight, rows=rows)
        level = float(np.trace(equations.gram)) / len(equations.gram)
        thetas = np.column_stack([equations.solve(ridge * level).theta for ridge in RIDGES])
        return np.column_stack([thetas + first[:, None], first]) if beyond else thetas

    # -- trees ---------------------------------------------------------------------------------------------------
    def trees(self, name: str) -> Floats:
        rows = self.drawn.where.row
        if name == GROWN:
            return self._ranker(AggregationRanker(regressor=lightgbm.LGBMRegressor(n_estimators=ROUNDS, **TREE)))
        if name == LOGISTIC:
            return self._boosted(rows, np.zeros(len(rows)), _pairwise(self.graphs))
        if name == TRUTH:
            train = self.split.train
            return self._boosted(np.arange(len(train.label)), train.label, "lambdarank", train.size)
        if name.startswith("lambdarank"):
            s = self.grades
            cuts = np.quantile(s, [0.2, 0.4, 0.6, 0.8])
            if name.endswith("widths"):
                cuts = np.linspace(s.min(), s.max(), 6)[1:-1]
            return self._boosted(rows, np.searchsorted(cuts, s), "lambdarank", np.diff(self.drawn.where.start))
        if name == "Bradley-Terry, s":
            return self._boosted(rows, self.grades, "regression")
        if name == "informed, (2^s - 1)/Z":
            y = self.drawn.where.groups.centred(self._informed("2^s-1")(self.drawn)[0].value)
            return self._boosted(rows, y / y.std(), "regression")
        y = self._informed("identity")(self.drawn)[0].value
        if name == "informed, s":
            return self._boosted(rows, y, "regression")
        left = np.zeros(len(self.split.Z_train))  # items that were never compared are where the scorer has them
        left[rows] = y - self.prior.mean
        every = np.arange(len(left))
        return self.split.Z_test @ self.prior.theta + self._boosted(every, left, "regression")

    def _boosted(self, rows: Any, y: Any, objective: Any, group: Any = None) -> Floats:
        data = lightgbm.Dataset(self.split.train.X[rows], y, group=group, params={"verbose": -1})
        model = lightgbm.train({**TREE, "objective": objective}, data, ROUNDS)
        return np.asarray(model.predict(self.split.test.X, num_threads=1), np.float64)


def _targets(
    structure: str, options: dict[str, Any] | None = None, gain: str = "2^s-1"
) -> Callable[[Comparisons], tuple[Targets, Floats]]:
    def make(drawn: Comparisons) -> tuple[Targets, Floats]:
        prefs: Preferences = drawn.prefs
        made = mean_targets(prefs, structure, options=options, gain=gain, normalise=gain != "identity")
        return made, np.zeros(0)

    return make


def _pairwise(graphs: Graphs) -> Callable[[Floats, Any], tuple[Floats, Floats]]:
    """Gradient and curvature of Σ n_jl log(1 + e^−(f_j − f_l)) by the scores of the compared items."""

    def objective(score: Floats, _: Any) -> tuple[Floats, Floats]:
        p = expit(score[graphs.first] - score[graphs.second])
        pull = graphs.above * (1 - p) - graphs.below * p
        bend = (graphs.above + graphs.below) * p * (1 - p)
        return graphs.add_to_nodes(-pull, pull), graphs.add_to_nodes(bend, bend)

    return objective
