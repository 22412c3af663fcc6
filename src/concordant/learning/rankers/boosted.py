"""BoostedRanker: a linear scorer first, then trees on the gradient of a loss of aggregated judgments or of grades."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from concordant.errors import InputError, Setting, UsageError, did_you_mean
from concordant.learning.features.matrix import Matrix
from concordant.learning.features.normalising import Normaliser
from concordant.learning.rankers.choosing import target_weights
from concordant.learning.rankers.columns import Columns
from concordant.learning.rankers.disagreement import FEW_QUERIES
from concordant.learning.rankers.estimator import LinearRanker, agreement_with_labels, known
from concordant.learning.rankers.growing import Growing, Share, Uncoded, lightgbm, stopped_at, without
from concordant.learning.rankers.plans import RIDGE, Plan, Recipe
from concordant.learning.rankers.regression import refuse_negative
from concordant.learning.rankers.regressors import as_regressor
from concordant.learning.rankers.slopes import (
    CentredSquares,
    EdgeSlopes,
    GainSlopes,
    InformedSlopes,
    InUnits,
    LambdaSlopes,
    Slopes,
)
from concordant.learning.rankers.stopping import ENOUGH, Likelihood
from concordant.learning.rankers.target import Target
from concordant.learning.rankers.targeting import TargetMaker
from concordant.learning.rankers.validation import Training, learning_rows, matched
from concordant.learning.scikit import check_is_fitted
from concordant.learning.solvers.least_squares import NormalEquations
from concordant.losses.expected_gains import expected_gains
from concordant.losses.objective import Population, Relevance
from concordant.losses.surrogates import surrogate
from concordant.preferences.graphs import Batch
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Preferences
from concordant.preferences.ragged import Ragged
from concordant.preferences.splits import clusters_of, folds
from concordant.ranking.click_models import usual_clicks

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
OF_JUDGMENTS = ("informed", "informed-regression", "difference-graph", "ranknet", "gain-regression", "lambda-ndcg")
OF_GRADES = ("lambda-ndcg", "ndcg-pairwise", "err-pairwise", "gain-regression", "label-regression")
HELD = 300
"""Held-out queries with grades that suffice to choose the number of trees by."""
MANY = 20
"""Features from which on a tree sees half of them: the same order in half the time, on sets of 46 to 300."""
SURE = (1.0, 3.0)
"""Standard errors by which held-out judgments are likelier than by a coin, for trees to be grown: by the linear scorer
alone, or with the best number of trees."""
GENTLE = 10.0
"""Ridge of the linear scorer of gains, in pairs' worth of curvature."""


@dataclass(frozen=True, eq=False)
class Start:
    """A loss and the linear scorer that its trees start from."""

    name: str
    slopes: Slopes
    theta: Floats


def regressed(
    name: str, Z: Matrix, target: Floats, groups: Ragged, weight: Floats, unknown: NDArray[np.bool_] | None = None
) -> Start:
    """Return squares to a target with their linear scorer; ``weight`` is that of each node of each query.

    ``unknown``: nodes that have no target.
    """
    there = np.ones(len(target), bool) if unknown is None else ~unknown
    start = Ragged.of_sizes(groups.sums(there).astype(np.int64)).start
    equations = NormalEquations.of(Z if there.all() else Z[there], target[there], start, weight)
    theta = np.asarray(equations.solve(RIDGE).theta, np.float64)
    return Start(name, CentredSquares(target, groups.spread(weight) * there, groups), theta)


@dataclass(frozen=True, eq=False)
class Part:
    """What trees are grown on where something is held out, and what scores of that lose."""

    start: Start
    rows: Ints | None
    """Nodes that are learned from; None: all."""
    held: Any
    """Nodes that are held out, or rows of an eval set."""
    groups: Ragged
    """Queries of the held-out rows."""
    loss: Callable[[Floats], float]
    """Of scores of the held-out rows."""
    weight: float
    over_a_coin: Callable[[Floats], Floats] | None = None
    """How much likelier held-out judgments are by scores than by a coin, and the sum of its squares."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """An eval set: normalised rows of its nodes, and what was judged about them."""

    training: Training
    Z: Matrix

    def part(self, start: Start, asked: str | None) -> Part:
        """Return what is charged by it; trees are grown on all nodes. Errors (InputError): it judges nothing."""
        held = self.training
        judge, weight = judge_of(held, asked)
        if held.flat or not weight > 0 or np.isnan(judge.loss(np.zeros(len(self.Z)))):
            raise InputError("eval_set: none of its queries has anything that tells scores apart")
        return Part(start, None, self.Z, held.groups, judge.loss, weight)


def judge_of(held: Training, asked: str | Target | None) -> tuple[Any, float]:
    """Return what judges scores of all nodes, and its weight: labels by the target, nDCG@10 where none is named.

    Of judgments minus the log-likelihood where no target is named, of clicks that of the usual target.
    """
    if held.labelled:
        judge: Any = Labels(held.labels, held.groups, held.weight, Target.of(asked or "ndcg@10", "comparisons"))
        return judge, float(held.weight.sum())
    if asked is None and held.prefs.kind != "selections":
        judge = Likelihood.of(held.prefs, held.weight)
    else:
        judge = Target.of(asked, str(held.prefs.kind)).judge(held.prefs, held.weight)
    return judge, float(np.sum(judge.weight))


@dataclass(frozen=True, eq=False)
class Labels:
    """1 less a metric of lists of grades, the mean over queries that tell."""

    labels: Floats
    groups: Ragged
    weight: Floats
    """Of each query."""
    target: Target

    def loss(self, scores: Floats) -> float:
        """Return the loss of scores of all rows; NaN where no query tells."""
        value = agreement_with_labels(scores, self.labels, self.groups.owner, self.target, halved=True)
        told = ~np.isnan(value) & (self.weight > 0)
        return 1.0 - float(np.average(value[told], weights=self.weight[told])) if told.any() else float("nan")


class BoostedRanker(LinearRanker):
    """Fit a linear scorer by a loss of aggregated judgments or of grades, then grow trees on the gradient of that loss.

    Where nothing is named two losses are fitted and their scores summed, which orders better than either. Of judgments:
    informed Bradley–Terry (scores of each query about the scorer, with variance τ²; its gradient is (f − s*)/τ²) and
    squares to the scores that it gives; their mean. Of clicks: squares to the scores of the usual structure. Of grades:
    pairs weighted by what NDCG loses when they change places (``lambda-ndcg``; for ERR ``err-pairwise``) and squares to
    the labels, each divided by its spread, by trees that draw their thresholds (extremely randomised: LightGBM's
    ``extra_trees``) and, of twenty features or more, each see half. That ordered four real sets best; what is
    consistent for NDCG by itself are ``ndcg-pairwise`` and ``gain-regression``. Trees are as many, from none up, as
    lose least on held-out queries: judgments are less likely, of grades the target's loss; then they are grown on all.
    An ``eval_set`` of ``fit`` is held out instead.

    Parameters
    ----------
    loss : 'auto', one of 'informed', 'informed-regression', 'difference-graph', 'ranknet' (judgments), 'ndcg-pairwise',
        'err-pairwise' (gains against every other item), 'label-regression' (grades), 'gain-regression' (squares to
        gains over Z, of judgments to the usual structure's scores), 'lambda-ndcg' (of judgments the gains are 2^s − 1
        of informed scores), or a list of these.
    target : "ndcg@10", "err@10", "pairwise", … (``Target``), by which ``score`` and the number of trees judge.
    rounds, early_stopping : trees of a loss at most; without a lower loss for so many no more are tried.
    learning_rate, leaves, leaf_rows, l2, options : of the trees; ``options`` are further parameters of LightGBM.
    monotone : −1, 0 or 1 for each feature; coefficients of the linear scorer that contradict are 0.
    categories : columns (places or names) of codes of categories, 0, 1, …, NaN where missing: trees split on sets of
        codes, the linear scorer has nothing of them.
    tau2 : variance of informed scores, 'auto' from held-out judgments.
    standardise, log, missing : what is done to features (``Normaliser``); 'keep': trees know missing values, the linear
        scorer has them at the mean.
    folds, seed : parts of the queries that are held out in turn (of fewer than ten, of the judgments); 0: nothing is
        held out, and all ``rounds`` are grown.

    Attributes: ``regressor_`` (an ``LGBMRegressor``), ``scorer_standardised_``, ``curve_`` (held-out loss after 0, 1, …
    trees, by loss), ``explain_`` (coefficient and gain of each feature), ``status_``. Errors: InputError, UsageError
    (LightGBM is not installed).

    >>> X, query = np.arange(24.0)[:, None] % 6, np.repeat(list("pqrs"), 6)
    >>> ranker = BoostedRanker(rounds=5, folds=2).fit((X, query, np.arange(24)), X[:, 0] // 2)
    >>> bool((np.diff(ranker.predict(X[:6])) > 0).all())
    True

    Source: Friedman (2001); Geurts, Ernst and Wehenkel (2006); Duchi, Mackey and Jordan (2013), §3.3, (28).
    """

    def __init__(
        self,
        loss: Any = "auto",
        *,
        target: str | None = None,
        rounds: int = 300,
        early_stopping: int = 30,
        learning_rate: float = 0.05,
        leaves: int = 15,
        leaf_rows: int = 20,
        l2: float = 1.0,
        options: Mapping[str, Any] | None = None,
        monotone: Any = None,
        categories: Any = None,
        tau2: float | str = "auto",
        standardise: bool = True,
        log: bool = False,
        missing: str = "keep",
        folds: int = 3,
        seed: int = 0,
    ) -> None:
        self.loss = loss
        self.target = target
        self.rounds = rounds
        self.early_stopping = early_stopping
        self.learning_rate = learning_rate
        self.leaves = leaves
        self.leaf_rows = leaf_rows
        self.l2 = l2
        self.options = options
        self.monotone = monotone
        self.categories = categories
        self.tau2 = tau2
        self.standardise = standardise
        self.log = log
        self.missing = missing
        self.folds = folds
        self.seed = seed

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, qid: Any = None, group: Any = None, eval_set: Any = None
    ) -> Self:
        """Learn from the judgments or labels ``y`` on the rows ``X``, as every ranker does.

        Parameters
        ----------
        X, y : rows, and judgments or labels on them.
        sample_weight : a weight of each row, the same within a query.
        qid, group : the query of each row, or the sizes of the queries in the order of the rows, of a plain matrix.
        eval_set : a pair (X, y) of rows and of judgments or labels on them, which may be of another kind than y (learn
            from clicks, judge by grades). Then ``curve_`` is its loss, the trees are as many as lose least on it, and
            nothing else is held out: all of y is learned from, nothing of the eval set.
        """
        self._eval_set = eval_set
        try:
            return super().fit(X, y, sample_weight, qid=qid, group=group)
        finally:
            self._forget("_eval_set", "_uncoded")

    def _held_out(self, training: Training, columns: Any) -> HeldOut | None:
        """Read the eval set. Errors (UsageError, InputError): those of ``fit``, naming it."""
        given = getattr(self, "_eval_set", None)
        if given is None:
            return None
        if isinstance(given, list) and len(given) == 1:  # as LightGBM takes it
            given = given[0]
        if not isinstance(given, tuple | list) or len(given) != 2:
            raise UsageError("eval_set is a pair (X, y) of rows and of what was judged about them")
        try:
            held = learning_rows(given[0], given[1], self.missing_, whole=True)
            names = training.features.names if training.named else None
            features = self._levelled(held.features, dict(training.features.levels), codes=True)
            X = matched(features, held.named, names, training.features.X.shape[1])
            return HeldOut(held, self._normalised(columns.normaliser, X)[held.row])
        except (InputError, UsageError) as error:
            raise type(error)("eval_set: ", *error.args) from None

    @property
    def _takes_sparse(self) -> bool:
        return False

    @property
    def _knows_categories(self) -> bool:
        return True

    def _check(self) -> None:
        Target.of(self.target, "comparisons")
        listed = self.loss if isinstance(self.loss, list | tuple) else [self.loss]
        known_losses = tuple(dict.fromkeys(("auto", *OF_JUDGMENTS, *OF_GRADES)))
        for name in listed:
            if name not in known_losses:
                raise UsageError(f"unknown loss {name!r}; {did_you_mean(str(name), known_losses)}")
        for name in ("rounds", "early_stopping"):
            if not isinstance(getattr(self, name), int | np.integer) or getattr(self, name) < (name != "rounds"):
                raise UsageError(f"{name} must be a whole number, not {getattr(self, name)!r}")
        if not isinstance(self.folds, int | np.integer) or self.folds < 0 or self.folds == 1:
            raise UsageError(f"folds must be a whole number of at least 2, or 0 for no search, not {self.folds!r}")
        listed = self._categories
        if any(isinstance(one, bool) or not isinstance(one, int | np.integer | str) for one in listed):
            raise UsageError(f"categories are places or names of columns, not {self.categories!r}")
        if len(set(listed)) < len(listed):
            raise UsageError(f"categories: a column is named twice: {self.categories!r}")
        if listed and (self.log or self.missing not in ("keep", "raise")):
            raise UsageError(
                "categories are codes: they need ", Setting("log", False), " and ", Setting("missing", "keep"), " or ",
                Setting("missing", "raise"),
            )  # fmt: skip

    @property
    def _categories(self) -> tuple[Any, ...]:
        given = self.categories
        return () if given is None else (given,) if isinstance(given, int | str) else tuple(given)

    def _normaliser(self) -> Normaliser:
        made = super()._normaliser()
        categories = self._categories
        return Uncoded(made.standardise, made.log, made.missing, categories=categories) if categories else made

    @property
    def explain_(self) -> pa.Table:
        """What features are worth: feature, coefficient, gain and splits, those of most gain first.

        ``coefficient`` belongs to the standardised feature in the linear scorer, ``gain`` is the feature's share of
        what the splits of all trees gain on their losses, ``splits`` how many split on it.
        """
        check_is_fitted(self)
        names = range(1, self.n_features_in_ + 1) if self._names is None else self._names
        table = {"feature": [str(name) for name in names], "coefficient": self.scorer_standardised_.tolist()}
        found = pa.table(table | {name: self.status_[f"{name}_of_features"] for name in ("gain", "splits")})
        return found.sort_by([("gain", "descending")])

    def _params(self, width: int, *, drawn: bool) -> dict[str, Any]:
        wise = "force_col_wise" if drawn else "force_row_wise"
        wise = next((name for name in self.options or {} if name.startswith("force_")), wise)  # both are an error
        found = {
            **({"extra_trees": True} if drawn else {}),
            **({"feature_fraction": 0.5} if drawn and width >= MANY else {}),
            "objective": "none",
            "metric": "None",
            "learning_rate": self.learning_rate,
            "num_leaves": self.leaves,
            "min_data_in_leaf": self.leaf_rows,
            "lambda_l2": self.l2,
            "seed": self.seed,
            "deterministic": True,
            wise: True,
            "feature_pre_filter": False,
            "verbosity": -1,
            **(self.options or {}),
        }
        return found if self.monotone is None else {**found, "monotone_constraints": list(self.monotone)}

    def _learn(self, training: Training, columns: Any) -> None:
        if training.flat:
            raise InputError("no query has two items of different label: trees have nothing to learn from")
        Z = columns.matrix[training.row]
        held = self._held_out(training, columns)
        places = tuple(sorted({*getattr(columns.normaliser, "places", ()), *training.features.categories}))
        signs = np.zeros(Z.shape[1]) if self.monotone is None else np.asarray(self.monotone)
        if signs.shape != (Z.shape[1],) or not np.isin(signs, (-1, 0, 1)).all() or signs[list(places)].any():
            raise UsageError(f"monotone is -1, 0 or 1 for each of {Z.shape[1]:,} features, 0 for categories")
        params = self._params(Z.shape[1], drawn=training.labelled and self.loss == "auto")
        growing = Growing(Z, params, places)
        if places:  # the linear scorer has nothing of them
            columns = replace(columns, X=without(columns.X, places))
        self._uncoded = np.isin(np.arange(Z.shape[1]), places, invert=True)
        kind = Grades if training.labelled else Judgments
        problem: Any = kind(self, training, growing.known, columns)
        shares, spread, thetas, notes = [], [], [], [*training.notes]
        self.curve_: dict[str, list[float]] = {}
        stopped = []
        by = "all {most:,} trees, as was asked" if self.folds == 0 and held is None else ""
        by = by or "{rounds:,} of {most:,} trees, by the loss on " + ("the eval set" if held else "held-out queries")
        coin = "no trees: with them or without, held-out judgments are not surely likelier than by a coin"
        try:
            for name in problem.losses:
                whole, told = problem.start(name), True
                theta = self._allowed(whole.theta)
                start = growing.known @ theta
                if held is not None:
                    rounds, wide, told = self._rounds([held.part(whole, self.target)], name, growing)
                elif self.folds:
                    rounds, wide, told = self._rounds([*problem.parts(name)], name, growing)
                else:
                    rounds, wide = self.rounds, float(training.groups.centred(start).std())
                spread.append(wide)
                shares.append(Share(InUnits.of(whole.slopes, start), start, rounds, 1.0))
                thetas.append(theta)
                stopped.append({"loss": name, "iterations": rounds, "of": self.rounds})
                notes.append(
                    Note("trees", "{loss}: " + (by if told else coin), loss=name, rounds=rounds, most=self.rounds)
                )
            scales = problem.scales(spread)
            booster = growing.grown([replace(one, scale=scale) for one, scale in zip(shares, scales, strict=True)])
        except lightgbm().basic.LightGBMError as error:
            raise UsageError(f"LightGBM: {error}") from None
        regressor = as_regressor(booster, Z.shape[1], params)
        self._take_regressor(regressor, 1.0, np.sum([s * t for s, t in zip(scales, thetas, strict=True)], axis=0))
        said = " and ".join(problem.losses)
        self.status_ = {"status": f"linear scorer and trees by {said}", "iterations": None, "gradient": None}
        self.status_ |= {"stopped": stopped, "scales": [float(one) for one in scales], "notes": notes}
        gain = booster.feature_importance("gain")
        self.status_ |= {"gain_of_features": (gain / max(gain.sum(), 1e-300)).tolist()}
        self.status_ |= {"splits_of_features": booster.feature_importance("split").astype(int).tolist()}

    def _allowed(self, theta: Floats) -> Floats:
        """Coefficients without those of categories and those that contradict a monotone constraint."""
        theta = np.where(self._uncoded, theta, 0.0)
        if self.monotone is None:
            return theta
        return np.where(np.asarray(self.monotone) * theta < 0, 0.0, theta)

    def _rounds(self, parts: list[Part], name: str, growing: Growing) -> tuple[int, float, bool]:
        """Return how many trees lose least on what is held out, the spread of the scores there, whether that tells."""
        parts = [part for part in parts if part.weight > 0]
        if not parts:
            return 0, 1.0, True
        weight = np.array([part.weight for part in parts])
        best: list[Any] = [np.inf, 1.0]
        told = False

        def losses() -> Iterator[float]:
            nonlocal told
            bases, runs = [], []
            for part in parts:
                theta = self._allowed(part.start.theta)
                start = growing.known @ theta
                bases.append(known(part.held) @ theta if part.held.ndim == 2 else start[part.held])
                units = InUnits.of(part.start.slopes, start)
                runs.append(growing.stages(units, start, part.rows, part.held))
            for stage in range(self.rounds + 1):
                lost, wide, over = [], [], []
                for part, base, run in zip(parts, bases, runs, strict=True):
                    scores = base
                    if stage:
                        added = next(run, None)
                        if added is None:
                            return
                        scores = base + added
                    lost.append(part.loss(scores))
                    wide.append(float(part.groups.centred(scores).std()))
                    over.append(part.over_a_coin(scores) if part.over_a_coin else (np.inf, 0.0))
                loss = float(weight @ np.nan_to_num(lost) / weight.sum())
                if loss < best[0]:
                    best[:] = [loss, float(np.mean(wide))]
                    gain, squares = np.sum(np.array(over), axis=0)
                    told = told or bool(gain > SURE[stage > 0] * np.sqrt(squares))
                yield loss

        rounds, self.curve_[name] = stopped_at(losses(), self.rounds, self.early_stopping)
        return rounds if told else 0, best[1], told


class Judgments:
    """Losses of preferences, their linear scorers, and what is held out."""

    def __init__(self, ranker: BoostedRanker, training: Training, Z: Matrix, columns: Columns) -> None:
        self.ranker, self.training, self.Z = ranker, training, Z
        kind = str(training.prefs.kind)
        self.clicks = kind == "selections"
        self.target = Target.of(ranker.target, kind).reading(training.prefs)
        listed = list(ranker.loss) if isinstance(ranker.loss, list | tuple) else [ranker.loss]
        if listed == ["auto"]:
            listed = ["gain-regression"] if self.clicks else ["informed", "informed-regression"]
        wrong = [name for name in listed if name not in OF_JUDGMENTS]
        if wrong:
            raise UsageError(f"{wrong[0]} is a loss of grades; of judgments: {', '.join(OF_JUDGMENTS)}")
        self.losses = tuple(listed)
        recipe = Recipe({}, 1, None, ranker.seed)
        self.maker = TargetMaker(training, columns, recipe, not self.clicks, ranker.tau2)

    def start(self, name: str, prefs: Preferences | None = None) -> Start:
        """Return a loss of these judgments (all of them) with its linear scorer."""
        prefs = self.training.prefs if prefs is None else prefs
        groups, weight = self.training.groups, self.training.weight
        if name == "gain-regression" or self.clicks:
            structure = usual_clicks(self.training.prefs) if self.clicks else "log-odds"
            targets = self.maker.recipe.targets([Plan(structure, "all", "identity", False)], prefs)[0]
            each = target_weights(targets, weight)
            start = regressed(name, self.Z, targets.value, groups, each, targets.unknown)
            if name == "gain-regression":
                return start
            if name != "lambda-ndcg":
                raise UsageError(f"{name} is a loss of comparisons; of clicks: gain-regression, lambda-ndcg")
            return Start(name, LambdaSlopes(targets.value, groups, weight * (each > 0)), start.theta)
        prior = self.maker.prior_of(prefs)
        if name == "informed":
            return Start(name, InformedSlopes(prefs, prior.tau2, groups, weight), prior.theta)
        judged = weight * (prefs.judgments > 0)
        if name in ("informed-regression", "lambda-ndcg"):
            found = self.maker([Plan("bradley-terry", "all", "identity", False)], prefs)[0].value
            if name == "informed-regression":
                return Start(name, CentredSquares(found, groups.spread(judged), groups), prior.theta)
            gains = np.exp2(found - groups.spread(groups.least(found))) - 1.0
            return Start(name, LambdaSlopes(gains, groups, judged), prior.theta)
        objective = surrogate(name).objective(Population.of(Batch.whole(prefs)))
        return Start(name, EdgeSlopes(objective, weight * prefs.judgments), prior.theta)

    def parts(self, name: str) -> Iterator[Part]:
        """Hold out whole queries; of fewer than ten judgments, or clusters of these."""
        prefs, n = self.training.prefs, self.ranker.folds
        few = len(prefs.queries) < max(FEW_QUERIES, 2 * n)
        split = "queries" if not few else "clusters" if len(clusters_of(prefs)) >= n else "judgments"
        looked = min(n, -(-ENOUGH * n // max(len(prefs.queries), 1)))
        for train, held in islice(folds(prefs, n, split=split, seed=self.ranker.seed), looked):
            if not len(train) or not len(held):
                continue
            groups = self.training.groups
            nodes = np.flatnonzero(groups.spread(held.judgments > 0))
            left = np.flatnonzero(groups.spread(train.judgments > 0))
            asked = None if self.ranker.target is None else self.target
            judge, weight = judge_of(replace(self.training, judged=held), self.target if self.clicks else asked)
            of_nodes = partial(_elsewhere, judge.loss, nodes, len(groups.owner))
            likely = isinstance(judge, Likelihood)
            over = partial(_elsewhere, judge.over_a_coin, nodes, len(groups.owner)) if likely else None
            lists = Ragged.of_sizes(groups.sizes[held.judgments > 0])
            yield Part(self.start(name, train), left, nodes, lists, of_nodes, weight, over)

    def scales(self, spread: list[float]) -> list[float]:
        """All losses of judgments have scores in the same units."""
        return [1.0 / len(spread)] * len(spread)


def _elsewhere(judge: Callable[[Floats], Any], nodes: Ints, size: int, scores: Floats) -> Any:
    """Return what is said of scores of some nodes, which those of others have no part in."""
    every = np.zeros(size)
    every[nodes] = scores
    return judge(every)


class Grades:
    """Losses of relevance labels, their linear scorers, and what is held out."""

    def __init__(self, ranker: BoostedRanker, training: Training, Z: Matrix, columns: Columns) -> None:
        differences = training.plain and ranker.target is None and bool((training.labels < 0).any())
        if not differences:
            refuse_negative(training)
        self.ranker, self.training, self.Z = ranker, training, Z
        self.target = Target.of(ranker.target or ("pairwise" if differences else "ndcg@10"), "comparisons")
        listed = list(ranker.loss) if isinstance(ranker.loss, list | tuple) else [ranker.loss]
        if listed == ["auto"]:
            listed = ["err-pairwise" if self.target.name == "err" else "lambda-ndcg", "label-regression"]
        wrong = [name for name in listed if name not in OF_GRADES]
        if wrong:
            raise UsageError(f"{wrong[0]} is a loss of judgments; of grades: {', '.join(OF_GRADES)}")
        self.losses = tuple(listed)
        law = Relevance.of(training.labels, training.start)
        err = self.target.name == "err"
        self.gains = (
            training.labels if differences else expected_gains(law, "err" if err else "2^s-1", normalised=not err)
        )

    def start(self, name: str, held: NDArray[np.bool_] | None = None) -> Start:
        """Return a loss with its linear scorer, without the queries that are held out."""
        groups = self.training.groups
        weight = np.asarray(self.training.weight, np.float64)
        weight = weight if held is None else np.where(held, 0.0, weight)
        if name in ("gain-regression", "label-regression"):
            target = self.gains if name == "gain-regression" else np.asarray(self.training.labels, np.float64)
            each = weight / np.maximum(groups.sizes, 1) / max(weight.sum(), 1e-300)
            return regressed(name, self.Z, target, groups, each)
        pairs = GainSlopes(self.gains, groups, weight)
        theta = pairs.linear(self.Z, GENTLE)
        if name == "lambda-ndcg":
            return Start(name, LambdaSlopes(np.exp2(self.training.labels) - 1.0, groups, weight), theta)
        return Start(name, pairs, theta)

    def parts(self, name: str) -> Iterator[Part]:
        """Hold out whole queries; nothing of fewer than twice as many as folds."""
        self.training.refuse_cut()
        queries, n = len(self.training.weight), self.ranker.folds
        dealt = np.random.default_rng(self.ranker.seed).permutation(queries) % n
        looked = min(n, -(-HELD * n // max(queries, 1)))
        for part in range(looked if queries >= 2 * n else 0):
            held = dealt == part
            groups = self.training.groups
            of_nodes = groups.spread(held)
            nodes, lists = np.flatnonzero(of_nodes), Ragged.of_sizes(groups.sizes[held])
            weight = self.training.weight[held]
            loss = Labels(self.training.labels[nodes], lists, weight, self.target).loss
            yield Part(self.start(name, held), np.flatnonzero(~of_nodes), nodes, lists, loss, float(weight.sum()))

    def scales(self, spread: list[float]) -> list[float]:
        """Bring the scores of the losses to the same spread."""
        return [spread[0] / one if spread[0] > 0 and one > 0 else 1.0 for one in spread]
