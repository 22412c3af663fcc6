"""What is held out says after how many trees or epochs a regressor stops, and how much it adds to a linear scorer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.learning.features.matrix import Matrix
from concordant.learning.rankers.disagreement import FEW_QUERIES
from concordant.learning.rankers.estimator import agreement_with_labels, known
from concordant.learning.rankers.regressors import fit_regressor, named, prepared, stages
from concordant.learning.rankers.target import ROUNDING, Target
from concordant.learning.rankers.validation import Training
from concordant.learning.scikit import clone, exactly
from concordant.preferences.graphs import Batch
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Preferences
from concordant.preferences.splits import clusters_of, folds

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Grow = Callable[[Any, tuple[Any, ...], Matrix, int, int], Iterator[Floats]]
"""Of a model, what it is fitted to, rows to predict, the stages that it has and shall have: predictions of the new."""
MANY_ROWS = 10_000
"""Rows beyond which early_stopping="auto" of ``HistGradientBoostingRegressor`` is on."""
ENOUGH = 30
"""Held-out queries that suffice: parts of them are held out, one after another, until so many are."""
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Of what a regressor says beyond a linear scorer, how much may be added to it."""
LIGHTGBM = ("early_stopping_round", "early_stopping_rounds", "early_stopping", "n_iter_no_change")


@dataclass(frozen=True, eq=False)
class Regression:
    """What a regressor is fitted to: rows of the features (first those of the nodes), a target and a weight of each."""

    rows: Ints
    target: Floats
    weight: Floats
    scorer: Floats | None = None
    """Coefficients of the linear scorer that predictions are added to."""
    owner: Ints | None = None
    """The query of each row, whose intercept is free; −1: none."""

    def without(self, training: Training, held: NDArray[np.bool_]) -> Regression:
        """The same with no weight on the nodes of some queries."""
        weight = self.weight.copy()
        weight[: len(training.row)][training.groups.spread(held)] = 0.0
        return replace(self, weight=weight)


@dataclass(frozen=True, eq=False)
class Part:
    """What a regressor is fitted to where something is held out, and how its order of that is charged."""

    regression: Regression
    nodes: Ints
    """Held-out nodes."""
    loss: Callable[[Floats], float]
    """Of scores of all nodes."""
    weight: float
    likelihood: Callable[[Floats], float] | None = None
    """Minus the mean log-likelihood of held-out judgments under such scores, where shares are judged by that."""


@dataclass(frozen=True, eq=False)
class Likelihood:
    """Minus the mean log-likelihood of held-out comparisons under scores, by the logistic model."""

    batch: Batch
    weight: Floats
    """Of each pair."""

    @classmethod
    def of(cls, held: Preferences, weight: Floats) -> Likelihood:
        """Of queries with weights."""
        graphs = Batch.whole(held).graphs
        return cls(Batch.whole(held), weight[graphs.graph] * (graphs.above + graphs.below))

    def loss(self, scores: Floats) -> float:
        """Return the mean loss of a comparison."""
        graphs = self.batch.graphs
        margin = scores[graphs.first] - scores[graphs.second]
        share = graphs.above / np.maximum(graphs.above + graphs.below, 1e-300)
        each = share * np.logaddexp(0.0, -margin) + (1.0 - share) * np.logaddexp(0.0, margin)
        return float(self.weight @ each) / max(float(self.weight.sum()), 1e-300)

    def over_a_coin(self, scores: Floats) -> Floats:
        """Return by how much judgments are likelier than by equal scores, in sum, and the sum of squares over them."""
        graphs = self.batch.graphs
        margin = scores[graphs.first] - scores[graphs.second]
        times = self.weight / np.maximum(graphs.above + graphs.below, 1e-300)
        gain = np.log(2.0) - np.logaddexp(0.0, [-margin, margin])
        count = np.array([graphs.above, graphs.below])
        return np.array([np.sum(count * times * gain), np.sum(count * (times * gain) ** 2)])


@dataclass(frozen=True)
class Growth:
    """How a regressor that was asked to stop early grows, some stages (trees, epochs) at a time."""

    count: str
    """Its parameter that limits the stages."""
    off: Mapping[str, Any]
    """Parameters with which it does not stop by itself."""
    patience: int
    """Stages without improvement after which it stops."""
    grow: Grow

    @classmethod
    def of(cls, regressor: Any, rows: int) -> Growth | None:
        """Return how a regressor grows; None where it was not asked to stop early, or its stages are unknown."""
        given = regressor.get_params(deep=False)
        if exactly(regressor, "HistGradientBoostingRegressor"):
            asked = given["early_stopping"]
            on = rows > MANY_ROWS if isinstance(asked, str) else bool(asked)
            found = cls("max_iter", {"early_stopping": False}, given["n_iter_no_change"], partial(_staged, "max_iter"))
            return found if on else None
        if exactly(regressor, "GradientBoostingRegressor"):
            patience = given["n_iter_no_change"]
            found = cls("n_estimators", {"n_iter_no_change": None}, patience, partial(_staged, "n_estimators"))
            return found if patience else None
        if exactly(regressor, "MLPRegressor"):
            on = given["early_stopping"] and given["solver"] in ("sgd", "adam")
            off = {"early_stopping": False, "n_iter_no_change": given["max_iter"] + 1}
            return cls("max_iter", off, given["n_iter_no_change"], _epochs) if on else None
        if named(regressor) == "lightgbm.LGBMRegressor" and given["boosting_type"] == "gbdt":
            asked = {name: int(given[name]) for name in LIGHTGBM if given.get(name)}
            return cls("n_estimators", dict.fromkeys(asked, 0), min(asked.values()), _lightgbm) if asked else None
        if named(regressor) == "xgboost.XGBRegressor" and given["booster"] in (None, "gbtree"):
            asked = given["early_stopping_rounds"]
            return cls("n_estimators", {"early_stopping_rounds": None}, int(asked), _xgboost) if asked else None
        return None


def _staged(count: str, model: Any, data: tuple[Any, ...], held: Matrix, since: int, to: int) -> Iterator[Floats]:
    Z, y, extra = data
    yield from stages(model.set_params(warm_start=True, **{count: to}).fit(Z, y, **extra), held, since, to)


def _epochs(model: Any, data: tuple[Any, ...], held: Matrix, since: int, to: int) -> Iterator[Floats]:
    Z, y, extra = data
    if not since and model.random_state is not None:  # one stream of numbers, and not the same in each epoch
        model.set_params(random_state=np.random.RandomState(model.random_state))
    for _ in range(since, to):
        yield model.partial_fit(Z, y, **extra).predict(held)


def _lightgbm(model: Any, data: tuple[Any, ...], held: Matrix, since: int, to: int) -> Iterator[Floats]:
    Z, y, extra = data
    model.set_params(n_estimators=to - since).fit(Z, y, init_model=model.booster_ if since else None, **extra)
    yield from stages(model, held, since, to)


def _xgboost(model: Any, data: tuple[Any, ...], held: Matrix, since: int, to: int) -> Iterator[Floats]:
    Z, y, extra = data
    model.set_params(n_estimators=to - since).fit(Z, y, xgb_model=model.get_booster() if since else None, **extra)
    yield from stages(model, held, since, to)


@dataclass(frozen=True)
class Stopped:
    """After how many stages the regressor stops, and why."""

    stages: int
    most: int
    loss: float
    """Mean over what was held out after so many stages."""
    looked: int
    """Stages that were looked at."""
    target: Target
    held: str
    """What was held out."""

    @property
    def row(self) -> dict[str, Any]:
        """The choice as values that JSON keeps."""
        numbers = {"iterations": self.stages, "of": self.most, "looked_at": self.looked, "loss": self.loss}
        return {**numbers, "target": str(self.target), "held_out": self.held}

    @property
    def note(self) -> Note:
        """The choice in one line."""
        text = "the regressor stops after {stages:,} of {most:,} iterations, by its loss on {held} (target {target})"
        facts: dict[str, Any] = {"stages": self.stages, "most": self.most, "target": str(self.target)}
        return Note("stopped early", text, held=self.held, **facts)


def stopping_point(losses: list[float], patience: int) -> tuple[int, bool]:
    """Return the stage (from 1) of least loss before ``patience`` stages without a lower one, and whether these came.

    >>> stopping_point([0.3, 0.2, 0.25, 0.2, 0.1], 2), stopping_point([0.3, 0.2, 0.25], 2)
    ((2, True), (2, False))
    """
    best = 0
    for stage, loss in enumerate(losses):
        if loss < losses[best] - ROUNDING:
            best = stage
        elif stage - best >= patience:
            return best + 1, True
    return best + 1, False


def grown(
    regressor: Any, growth: Growth, parts: list[Part], training: Training, Z: Matrix
) -> tuple[int, list[float], list[Floats]]:
    """Grow a regressor on each part, side by side, until the mean loss of what they hold out falls no more.

    Returns how many stages have the least, the losses of all stages looked at, and the scores of the nodes in each part
    after so many stages (0 where nothing is held out).
    """
    most = int(regressor.get_params(deep=False)[growth.count])
    weight = np.array([part.weight for part in parts])
    runs = []
    for part in parts:
        one = part.regression
        model, *data, unit = prepared(regressor, Z[one.rows], one.target, one.weight, one.owner)
        held = Z[training.row[part.nodes]]
        base = 0.0 if one.scorer is None else known(held) @ one.scorer
        runs.append((model.set_params(**growth.off), tuple(data), held, base, unit))
    losses: list[float] = []
    best: list[Floats] = []
    while len(losses) < most:
        since = len(losses)
        to = min(since + 2 * max(growth.patience, 1), most)  # each call bins the features anew
        found = zip(*(growth.grow(model, data, held, since, to) for model, data, held, *_ in runs), strict=True)
        for predicted in found:
            scores = [np.zeros(len(training.row)) for _ in parts]
            for each, part, (*_, base, unit), new in zip(scores, parts, runs, predicted, strict=True):
                each[part.nodes] = base + unit * np.asarray(new, np.float64)
            lost = np.nan_to_num([part.loss(each) for part, each in zip(parts, scores, strict=True)])
            losses.append(float((weight * lost).sum() / weight.sum()))
            stages, ended = stopping_point(losses, growth.patience)
            best = scores if stages == len(losses) else best
            if ended:
                return stages, losses, best
    return stages, losses, best


def judged_parts(
    training: Training,
    make: Callable[[Preferences], Regression],
    target: Target,
    n: int,
    seed: int,
    likelihood: bool,
) -> tuple[list[Part], str]:
    """Hold out whole queries, for which the regressor is new; of fewer than ten judgments, or clusters of these.

    A part of n costs a fit to the others, so there are no more than hold ``ENOUGH`` queries.
    ``make``: what the regressor is fitted to, by the judgments that are left. ``likelihood``: whether shares of it are
    judged by that.
    """
    prefs = training.prefs
    few = len(prefs.queries) < max(FEW_QUERIES, 2 * n)
    split = "queries" if not few else "clusters" if len(clusters_of(prefs)) >= n else "judgments"
    parts, looked = [], _enough(len(prefs.queries), n)
    for train, held in islice(folds(prefs, n, split=split, seed=seed), looked):
        judge = target.judge(held, training.weight)
        if judge.edges and len(train):
            left = make(train).without(training, train.judgments == 0)
            nodes = np.flatnonzero(training.groups.spread(held.judgments > 0))
            by = Likelihood.of(held, training.weight).loss if likelihood else None
            parts.append(Part(left, nodes, judge.loss, float(judge.weight.sum()), by))
    return parts, f"{looked} of {n} parts of the {split}"


def _enough(queries: int, n: int) -> int:
    """How many of n parts hold enough queries; each costs a fit to the others."""
    return min(n, -(-ENOUGH * n // max(queries, 1)))


def labelled_parts(
    training: Training, regression: Regression, target: Target, n: int, seed: int
) -> tuple[list[Part], str]:
    """The same for labels, each query of which is judged by itself; none of fewer than twice as many queries."""
    training.refuse_cut()
    queries = len(training.weight)
    dealt = np.random.default_rng(seed).permutation(queries) % n
    parts, looked = [], _enough(queries, n)
    for part in range(looked if queries >= 2 * n else 0):
        held = dealt == part
        nodes = np.flatnonzero(training.groups.spread(held))
        loss = partial(of_labels, training, target, held, nodes)
        parts.append(Part(regression.without(training, held), nodes, loss, float(training.weight[held].sum())))
    return parts, f"{looked} of {n} parts of the queries"


def of_labels(training: Training, target: Target, held: NDArray[np.bool_], nodes: Ints, scores: Floats) -> float:
    owner = (np.cumsum(held) - 1)[training.groups.owner[nodes]]
    value = agreement_with_labels(scores[nodes], training.labels[nodes], owner, target, halved=True)
    told = ~np.isnan(value)
    weight = training.weight[held][told]
    return 1.0 - float(np.average(value[told], weights=weight)) if weight.sum() > 0 else float("nan")


@dataclass(frozen=True)
class Held:
    """What was learned about a regressor from what was held out: when it stops, how much it adds to a scorer."""

    regressor: Any
    stop: Stopped | None = None
    share: float = 1.0
    notes: tuple[Note, ...] = ()


def held_out(
    regressor: Any,
    Z: Matrix,
    training: Training,
    regression: Regression,
    target: Target,
    parts_of: Callable[[], tuple[Iterable[Part], str]],
) -> Held:
    """Return the regressor to be fitted to all, with as many stages as lose least, and how much of it is added.

    A regressor that was not asked to stop early keeps its stages; one that is no addition to a linear scorer is taken
    whole; where nothing can be held out nothing changes. The stages are those of a regressor that is fitted to the rest
    of each part: their losses are added up over the parts, and it grows until as many stages as it was told bring no
    lower one. So are the losses of the scorer with each of ``SHARES`` of it; of equal ones the largest is taken.
    """
    growth = Growth.of(regressor, int((regression.weight > 0).sum()))
    if growth is None and regression.scorer is None:
        return Held(regressor)
    found, held = parts_of()
    parts = [part for part in found if part.weight > 0 and (part.regression.weight > 0).any()]
    if not parts:
        return Held(regressor)
    stop = None
    if growth is None:
        scores = [_tried(regressor, part, training, Z) for part in parts]
    else:
        stages, losses, scores = grown(regressor, growth, parts, training, Z)
        most = int(regressor.get_params(deep=False)[growth.count])
        regressor = clone(regressor).set_params(**growth.off, **{growth.count: stages})
        stop = Stopped(stages, most, losses[stages - 1], len(losses), target, held)
    if regression.scorer is None:
        return Held(regressor, stop)
    share = _share(parts, scores, training, Z)
    text = "{share:.0%} of what the regressor says beyond the linear scorer is added to it, by the loss on {held}"
    return Held(regressor, stop, share, (Note("share of the regressor", text, share=share, held=held),))


def least_loss(
    regressor: Any,
    Z: Matrix,
    training: Training,
    regression: Regression,
    parts_of: Callable[[], tuple[Iterable[Part], str]],
) -> float:
    """Return the least mean loss on what is held out, at the best number of stages; NaN where nothing can be."""
    parts = [part for part in parts_of()[0] if part.weight > 0 and (part.regression.weight > 0).any()]
    if not parts:
        return float("nan")
    growth = Growth.of(regressor, int((regression.weight > 0).sum()))
    if growth is not None:
        return min(grown(regressor, growth, parts, training, Z)[1])
    lost = [part.loss(_tried(regressor, part, training, Z)) for part in parts]
    return float(np.average(np.nan_to_num(lost), weights=[part.weight for part in parts]))


def _tried(regressor: Any, part: Part, training: Training, Z: Matrix) -> Floats:
    """Scores of all nodes, 0 where nothing is held out, by the regressor fitted to the rest of a part."""
    one = part.regression
    fitted, unit = fit_regressor(regressor, Z[one.rows], one.target, one.weight, one.owner)
    held = Z[training.row[part.nodes]]
    scores = np.zeros(len(training.row))
    scores[part.nodes] = unit * np.asarray(fitted.predict(held), np.float64).reshape(len(held))
    if one.scorer is not None:
        scores[part.nodes] += known(held) @ one.scorer
    return scores


def _share(parts: list[Part], scores: list[Floats], training: Training, Z: Matrix) -> float:
    """The share of least loss over the parts."""
    lost = np.zeros(len(SHARES))
    for part, whole in zip(parts, scores, strict=True):
        base, scorer = np.zeros(len(whole)), part.regression.scorer
        base[part.nodes] = 0.0 if scorer is None else known(Z[training.row[part.nodes]]) @ scorer
        loss = part.likelihood or part.loss
        lost += part.weight * np.nan_to_num([loss(base + share * (whole - base)) for share in SHARES])
    return max(share for share, one in zip(SHARES, lost, strict=True) if one <= lost.min() + ROUNDING)
