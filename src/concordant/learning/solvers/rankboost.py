"""RankBoost, the algorithm: threshold rules on features, boosted on pairs (Freund, Iyer, Schapire & Singer 2003).

The weight of a pair after some rounds is e^(F(loser) − F(winner)) times its first one: RankBoost descends on the
exponential loss, one rule at a time. So graded lists need no list of their pairs: potentials are gradients of the
factorised loss (``surrogates.graded``).

Rules "feature above threshold" as weak rankers: candidate thresholds, and which rule orders weighted pairs best.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from concordant.errors import InputError, Setting, UsageError, did_you_mean
from concordant.learning.solvers.least_squares import checked_rows
from concordant.losses.graded import GradedLists
from concordant.losses.objective import Objective
from concordant.preferences.ragged import Ragged
from concordant.preferences.status import Status
from concordant.progress import steps

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LEVEL = 1e-10
"""Rules whose worth differs by less than this share are equal."""


@dataclass(frozen=True)
class Rule:
    """h(x) = 1 where x[feature] > threshold, else 0, and ``missing`` where it is missing; with direction −1, 1 − h."""

    feature: int
    threshold: float
    direction: int
    missing: int
    """What h (before the direction) is where the feature is missing."""
    gain: float
    """|r|, or what the exact criterion prefers."""


@dataclass(frozen=True, eq=False)
class Table:
    """Every feature cut at its candidate thresholds: ``code`` says how many of them a value is above."""

    code: NDArray[np.integer[Any]]
    """Shape (rows, features), by columns; 0 where missing."""
    missing: list[Ints]
    """Rows in which each feature is missing."""
    threshold: list[Floats]

    @classmethod
    def of(cls, X: NDArray[Any], most: int | None) -> Table:
        """Cut X. Thresholds stand midway between neighbouring values, at most so many of each feature, evenly by rank.

        Missing values are NaN; where a feature has some, the rule "is there" (threshold −∞) is a candidate as well.
        Errors: UsageError for a matrix of another shape, InputError for infinite values.
        """
        X = np.asarray(X)
        if X.ndim != 2:
            raise UsageError(f"X must be a matrix of items by features, not of shape {X.shape}")
        if most is not None and most < 1:
            raise UsageError(f"thresholds must be at least 1, not {most}")
        wrong = int(np.isinf(X).sum())
        if wrong:
            raise InputError(f"{wrong:,} of {X.size:,} features are infinite")
        missing, thresholds = [], []
        for column in X.T:
            absent = np.flatnonzero(np.isnan(column))
            missing.append(absent)
            cuts = _midway(np.unique(column[~np.isnan(column)].astype(np.float64)), most)
            thresholds.append(np.concatenate(([-np.inf], cuts)) if len(absent) else cuts)
        widest = max((len(cuts) for cuts in thresholds), default=0)
        code = np.zeros(X.shape, np.uint8 if widest < 256 else np.uint16 if widest < 1 << 16 else np.int64, order="F")
        for feature, cuts in enumerate(thresholds):
            code[:, feature] = np.searchsorted(cuts, X[:, feature], side="left")
            code[missing[feature], feature] = 0
        return cls(code, missing, thresholds)

    def by_balance(self, potential: NDArray[Any]) -> Rule | None:
        """The rule with the largest |r|, r = Σ_pairs D (h(winner) − h(loser)) = Σ_rows potential · h.

        ``potential`` (rows,) is the weight of pairs that a row wins less that of those it loses.
        """
        best: Rule | None = None
        for feature, cuts in enumerate(self.threshold):
            if not len(cuts):
                continue
            of_code = np.bincount(self.code[:, feature], potential, len(cuts) + 1)
            absent = float(potential[self.missing[feature]].sum())
            above = np.cumsum(of_code[::-1])[::-1][1:]  # missing values are at code 0
            for fill in (0, 1) if len(self.missing[feature]) else (0,):
                best = _better(best, feature, cuts, above + fill * absent, fill)
        return best

    def by_normaliser(self, winner: Ints, loser: Ints, share: Floats) -> Rule | None:
        """The rule with the least Z = W₀ + 2√(W₊W₋) over its weight: 1 − Z = (√W₊ − √W₋)².

        W₊ is the share of pairs that the rule orders rightly, W₋ wrongly. Takes a pass over the pairs per feature.
        """
        best: Rule | None = None
        for feature, cuts in enumerate(self.threshold):
            for fill in (0, 1) if len(self.missing[feature]) and len(cuts) else (0,) if len(cuts) else ():
                right, wrong = self.sides(feature, fill, winner, loser, share)
                best = _better(best, feature, cuts, np.sqrt(right) - np.sqrt(wrong), fill)
        return best

    def sides(self, feature: int, fill: int, winner: Ints, loser: Ints, share: Floats) -> tuple[Floats, Floats]:
        """Share of the pairs that each threshold orders rightly, and wrongly."""
        number = len(self.threshold[feature])
        code = self.code[:, feature].astype(np.int64)
        if fill:
            code[self.missing[feature]] = number
        up, down = code[winner], code[loser]
        sides = []
        for high, low in ((up, down), (down, up)):
            apart = high > low  # thresholds low … high − 1 part the two
            steps = np.bincount(low[apart], share[apart], number + 1) - np.bincount(
                high[apart], share[apart], number + 1
            )
            sides.append(np.maximum(np.cumsum(steps)[:number], 0.0))
        return sides[0], sides[1]

    def apply(self, rule: Rule) -> Floats:
        """h of every row."""
        place = int(np.searchsorted(self.threshold[rule.feature], rule.threshold))
        h = (self.code[:, rule.feature] > place).astype(np.float64)
        h[self.missing[rule.feature]] = rule.missing
        return h if rule.direction > 0 else 1.0 - h


def _midway(values: Floats, most: int | None) -> Floats:
    if len(values) < 2:
        return np.zeros(0)
    below, above = values[:-1], values[1:]
    middle = below + 0.5 * (above - below)
    cuts = np.where(middle < above, middle, below)
    if most is None or len(cuts) <= most:
        return np.asarray(cuts, np.float64)
    return np.asarray(cuts[np.linspace(0, len(cuts) - 1, most).round().astype(np.int64)], np.float64)


def _better(best: Rule | None, feature: int, cuts: Floats, worth: NDArray[Any], fill: int) -> Rule | None:
    """The best of the rules so far and these; of equal ones, up to rounding, the first."""
    gains = np.abs(worth)
    place = int(np.argmax(gains >= gains.max() * (1.0 - LEVEL)))
    gain = float(gains[place])
    if best is not None and gain <= best.gain * (1.0 + LEVEL):
        return best
    return Rule(feature, float(cuts[place]), 1 if worth[place] >= 0 else -1, fill, gain)


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
    items = int(pairs.edges.node_start[-1]) if isinstance(pairs, Objective) else len(pairs.grade)
    row = checked_rows(X, rows, items)
    place = np.arange(items) if row is None else row
    source: _Listed | _Graded
    if isinstance(pairs, Objective):
        source = _Listed.of(pairs, weight)
    elif choose == "z":
        raise UsageError(
            Setting("choose", "z"), " needs the pairs one by one; take ", Setting("choose", "r"), " for graded lists"
        )
    else:
        source = _Graded.of(pairs, weight)
    epsilon = 0.5 / source.number if smoothing is None else smoothing
    if not epsilon >= 0:
        raise UsageError(f"smoothing must be at least 0, not {smoothing!r}")
    return _boost(table, source, place, int(rounds), choose, epsilon)


def _boost(table: Table, source: _Listed | _Graded, place: Ints, rounds: int, choose: str, epsilon: float) -> RankBoost:
    rows, features = table.code.shape
    F, ended = np.zeros(rows), Status.ROUNDS
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
            ended = Status.NO_RULE
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
            ended = Status.IN_ORDER
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
        ended.word,
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
        edges = pairs.edges
        if pairs.phi.name != "exponential" or edges.pull.any() or edges.offset.any():
            raise UsageError("RankBoost takes the exponential loss, without margins and penalties on values")
        w = edges.weight * _of_queries(weight, len(pairs))[pairs.owner[edges.winner]]
        keep = np.flatnonzero(w > 0)
        if not len(keep):
            raise UsageError("there is no pair to learn from")
        return cls(edges.winner[keep], edges.loser[keep], np.log(w[keep] / w[keep].sum()), pairs.nodes)

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
        return cls(lists, share / total, Ragged(lists.start).spread(share / total))

    def look(self, F: Floats) -> _View:
        value, gradient = self.lists.loss(F, "exponential")
        loss = float(self.of_query @ value)
        return _View(float(np.log(loss)), -self.of_item * gradient / loss, np.zeros(0))


def _of_queries(weight: ArrayLike | None, queries: int) -> Floats:
    share = np.ones(queries) if weight is None else np.asarray(weight, np.float64)
    if share.shape != (queries,) or not ((share >= 0) & np.isfinite(share)).all():
        raise UsageError(f"weight must hold {queries:,} finite numbers of at least 0, one for each query")
    return share
