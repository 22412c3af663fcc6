"""RankBoost, the algorithm: threshold rules on features, boosted on pairs (Freund, Iyer, Schapire & Singer 2003).

The weight of a pair after some rounds is e^(F(loser) − F(winner)) times its first one: RankBoost descends on the
exponential loss, one rule at a time. So graded lists need no list of their pairs: potentials are gradients of the
factorised loss (``surrogates.graded``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from concordant.errors import UsageError, did_you_mean
from concordant.progress import steps
from concordant.solvers.matrices import checked_rows
from concordant.solvers.threshold_rules import Rule, Table
from concordant.surrogates.graded import GradedLists
from concordant.surrogates.objective import Objective

__all__ = ["CHOICES", "RankBoost", "rankboost"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
CHOICES = ("r", "z")
NOTHING = 1e-12
"""A rule whose |r| is below this helps no more."""


@dataclass(frozen=True, eq=False)
class RankBoost:
    """F(x) = Σ_t α_t h_t(x), each h_t 1 where a feature is above (direction −1: not above) a threshold, else 0.

    Shapes: all (rounds,). Where the feature is missing (NaN) h is ``missing`` if the direction is 1, else 1 − it.
    """

    feature: Ints
    threshold: Floats
    alpha: Floats
    direction: Ints
    missing: Ints
    z: Floats
    """Z_t; their product is the exponential loss of the training pairs and bounds the share that F misorders."""
    features: int
    status: str
    """'all rounds made', 'no rule orders the pairs better than chance' or 'all pairs in order, the loss is 0 in
    rounding'."""

    def scores(self, X: NDArray[Any]) -> Floats:
        """F of every row of X (rows, features); NaN is missing. Errors (UsageError): another number of features."""
        X = np.asarray(X)
        if X.ndim != 2 or X.shape[1] != self.features:
            raise UsageError(f"X must have {self.features:,} columns; its shape is {X.shape}")
        total = np.zeros(len(X))
        for feature in np.unique(self.feature):
            total += self._of_feature(int(feature), X[:, feature])
        return total

    def _of_feature(self, feature: int, x: NDArray[Any]) -> Floats:
        """All rules of one feature at once: a step function of its value."""
        mine = np.flatnonzero(self.feature == feature)
        mine = mine[np.argsort(self.threshold[mine], kind="stable")]
        alpha, up = self.alpha[mine], self.direction[mine] > 0
        passed = np.concatenate(([0.0], np.cumsum(np.where(up, alpha, -alpha)))) + alpha[~up].sum()
        found = passed[np.searchsorted(self.threshold[mine], x, side="left")]
        on = (self.missing[mine] == 1) == up
        return np.asarray(np.where(np.isnan(x), alpha[on].sum(), found), np.float64)


def rankboost(
    X: NDArray[Any],
    pairs: Objective | GradedLists,
    *,
    rows: NDArray[np.integer[Any]] | None = None,
    weight: ArrayLike | None = None,
    rounds: int = 100,
    choose: str = "r",
    smoothing: float | None = None,
    thresholds: int | None = 255,
) -> RankBoost:
    """Boost threshold rules on weighted pairs.

    ``pairs`` are the edges of ``surrogate("rankboost").objective(batch)``, or ``GradedLists`` (every item against every
    one of lower grade, in linear time); ``weight`` (queries,) multiplies those of each query. ``rows`` is the row of X
    of each item (default: in order). Weights D are scaled to sum 1. Each round takes the rule h, of all features and
    ``thresholds`` cuts of each (None: all), that has

    - ``choose='r'``: the largest |r|, r = Σ D (h(winner) − h(loser)), with α = ½ log((1 + r + ε)/(1 − r + ε));
    - ``choose='z'``: the least Z = Σ D e^(α(h(loser) − h(winner))), with α = ½ log((W₊ + ε)/(W₋ + ε)), W₊ and W₋ the
      weight of the pairs ordered rightly and wrongly; a pass over listed pairs for every feature.

    ε is ``smoothing`` (default 1/(2 · pairs)): it keeps α finite for a rule without mistakes. A missing value (NaN) is
    above no threshold or above all, whichever is better for the rule.

    Errors: UsageError for unknown options, shapes that do not fit and no pair; InputError for infinite features.

    >>> model = rankboost(np.array([[1.0], [2.0], [3.0]]), GradedLists.of([0, 1, 1]), rounds=1)
    >>> model.feature.tolist(), model.threshold.tolist(), model.scores(np.array([[0.0], [9.0]])).round(3).tolist()
    ([0], [1.5], [0.0, 1.099])
    """
    if choose not in CHOICES:
        raise UsageError(f"unknown choice {choose!r}; {did_you_mean(str(choose), CHOICES)}")
    if not isinstance(rounds, int | np.integer) or rounds < 1:
        raise UsageError(f"rounds must be an integer of at least 1, not {rounds!r}")
    table = Table.of(X, thresholds)
    items = int(pairs.arcs.node_start[-1]) if isinstance(pairs, Objective) else len(pairs.grade)
    row = checked_rows(X, rows, items)
    place = np.arange(items) if row is None else row
    source: _Listed | _Graded
    if isinstance(pairs, Objective):
        source = _Listed.of(pairs, weight)
    elif choose == "z":
        raise UsageError("choose='z' needs the pairs one by one; take choose='r' for graded lists")
    else:
        source = _Graded.of(pairs, weight)
    epsilon = 0.5 / source.number if smoothing is None else smoothing
    if not epsilon >= 0:
        raise UsageError(f"smoothing must be at least 0, not {smoothing!r}")
    return _boost(table, source, place, int(rounds), choose, epsilon)


def _boost(table: Table, source: _Listed | _Graded, place: Ints, rounds: int, choose: str, epsilon: float) -> RankBoost:
    rows, features = table.code.shape
    F, status = np.zeros(rows), "all rounds made"
    before = source.look(np.zeros(len(place)))
    made: list[tuple[Rule, float, float]] = []
    for _ in steps("rounds of boosting", range(rounds)):
        if choose == "r":
            rule = table.by_balance(np.bincount(place, before.potential, rows))
        else:
            assert isinstance(source, _Listed)
            ends = place[source.winner], place[source.loser]
            rule = table.by_normaliser(*ends, before.share)
        if rule is None or rule.gain <= NOTHING:
            status = "no rule orders the pairs better than chance"
            break
        h = table.apply(rule)
        if choose == "r":
            alpha = 0.5 * np.log((1 + rule.gain + epsilon) / max(1 - rule.gain + epsilon, 1e-300))
        else:
            step = h[ends[0]] - h[ends[1]]
            right, wrong = before.share[step > 0].sum(), before.share[step < 0].sum()
            alpha = 0.5 * np.log((right + epsilon) / max(wrong + epsilon, 1e-300))
        F += alpha * h
        after = source.look(F[place])
        made.append((rule, float(alpha), float(np.exp(after.log_loss - before.log_loss))))
        before = after
        if after.log_loss < -650.0:
            status = "all pairs in order, the loss is 0 in rounding"
            break
    rules = [rule for rule, _, _ in made]
    return RankBoost(
        np.array([rule.feature for rule in rules], np.int64),
        np.array([rule.threshold for rule in rules], np.float64),
        np.array([alpha for _, alpha, _ in made], np.float64),
        np.array([rule.direction for rule in rules], np.int64),
        np.array([rule.missing for rule in rules], np.int64),
        np.array([z for *_, z in made], np.float64),
        features,
        status,
    )


@dataclass(frozen=True, eq=False)
class _View:
    """The pairs under some scores."""

    log_loss: float
    """log Σ D₁ e^(F(loser) − F(winner)), D₁ the first weights."""
    potential: NDArray[Any]
    """Weight of the pairs an item wins less that of those it loses, weights summing to 1."""
    share: Floats
    """Weight of each listed pair; empty where they are not listed."""


@dataclass(frozen=True, eq=False)
class _Listed:
    winner: Ints
    loser: Ints
    log_weight: Floats
    nodes: int

    @property
    def number(self) -> float:
        return float(len(self.winner))

    @classmethod
    def of(cls, pairs: Objective, weight: ArrayLike | None) -> _Listed:
        arcs = pairs.arcs
        if pairs.phi.name != "exponential" or arcs.pull.any() or arcs.margin.any():
            raise UsageError("RankBoost takes the exponential loss, without margins and penalties on values")
        w = arcs.weight * _of_queries(weight, len(pairs))[pairs.owner[arcs.winner]]
        keep = np.flatnonzero(w > 0)
        if not len(keep):
            raise UsageError("there is no pair to learn from")
        return cls(arcs.winner[keep], arcs.loser[keep], np.log(w[keep] / w[keep].sum()), pairs.nodes)

    def look(self, F: Floats) -> _View:
        size = self.log_weight - (F[self.winner] - F[self.loser])
        top = float(size.max())
        share = np.exp(size - top)
        total = float(share.sum())
        share /= total
        potential = np.bincount(self.winner, share, self.nodes) - np.bincount(self.loser, share, self.nodes)
        return _View(top + float(np.log(total)), potential, share)


@dataclass(frozen=True, eq=False)
class _Graded:
    lists: GradedLists
    of_query: Floats
    of_item: Floats

    @property
    def number(self) -> float:
        return float(self.lists.pairs.sum())

    @classmethod
    def of(cls, lists: GradedLists, weight: ArrayLike | None) -> _Graded:
        share = _of_queries(weight, len(lists.start) - 1)
        total = float(share @ lists.pairs)
        if total <= 0:
            raise UsageError("there is no pair to learn from")
        return cls(lists, share / total, np.repeat(share / total, np.diff(lists.start)))

    def look(self, F: Floats) -> _View:
        value, gradient = self.lists.loss(F, "exponential")
        loss = float(self.of_query @ value)
        return _View(float(np.log(loss)), -self.of_item * gradient / loss, np.zeros(0))


def _of_queries(weight: ArrayLike | None, queries: int) -> Floats:
    share = np.ones(queries) if weight is None else np.asarray(weight, np.float64)
    if share.shape != (queries,) or not ((share >= 0) & np.isfinite(share)).all():
        raise UsageError(f"weight must hold {queries:,} finite numbers of at least 0, one for each query")
    return share
