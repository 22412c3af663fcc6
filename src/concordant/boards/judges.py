"""Judges of comparisons: how reliable each is, what it prefers beside quality, how far it agrees with the others.

Judge k prefers i to j with probability σ(β_k d + z'γ_k): d = s_i − s_j is the difference of the scores that the *other*
judges give the two, z what stands first (±1) and covariates such as a difference in length. β_k is 0 for a judge who
votes by a coin, negative for one who votes against the others. Judges are a mixture,

    β_k = 0 with probability π, else N(μ, τ²);   γ_k ~ N(γ̄, ω²),

whose parameters are those under which the votes are likeliest (EM, each judge's β and γ integrated out by Laplace's
approximation), with weak priors: means are normal about 1 (of effects 0) with standard deviation 1, and to each
variance a judge is added who is ½ away, so that few judges make it neither 0 nor infinite. The
reliability of a judge is the mean of β_k / μ given the votes: 1 is a typical judge, 0 a coin. A judge with few votes
is drawn to the others. Votes weigh as the reliability of who cast them, not below 0 nor above 1: with noise of equal
size in each vote weights like these lose least, and none above 1 keeps the scores those of typical judges. Scores and
weights are found in turn. The scores of the others than k are one Newton step from those of all.

Agreement is that of votes on the same pair of the same query (``concordant.boards.agreement``), whichever queries are
measured by one scale.

Source: Chen, Bennett, Collins-Thompson and Horvitz, Pairwise ranking aggregation in a crowdsourced setting, WSDM 2013
(one reliability for each judge).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import expit, log_expit, ndtr, ndtri

from concordant.boards.agreement import Said
from concordant.errors import CannotRank, InputError, Setting, UsageError, counted, few, whole_number
from concordant.preferences.counted import recounted
from concordant.preferences.graphs import Batch
from concordant.preferences.labels import Labels
from concordant.preferences.notes import Note
from concordant.preferences.pooling import scattered
from concordant.preferences.preferences import Comparisons, Preferences
from concordant.progress import stage, steps_left
from concordant.ranking.bradley_terry import bradley_terry
from concordant.ranking.rank import Ranking, rank
from concordant.ranking.standard_errors import wilson
from concordant.stages import Stage

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
PRIOR = 0.5
"""Precision of the scores that judges are measured by: with .01 a few votes foretell worse than a coin."""
ROUNDS, STILL = 20, 0.005
"""Scores and weights in turn, at most, and the change of a weight that ends it."""
STEPS, EM_STEPS = 30, 200
CLOSE = 1e-4
"""The change of the mixture in a step that ends a round."""
LATER = 6
"""Steps of all rounds after the first, about."""
LEAST = 1e-3
"""The weight of a judge whose votes are to count nothing, as an edge has to have some strength."""
APART = 0.5
"""How far from the mean the judge is who is added to each variance."""
FAR, MOST = 10.0, 2_000
"""Differences of scores and items of a query, at most."""
SMALL = 40
"""Items of a query up to which the scores of the others are found for all judges side by side."""


@dataclass(frozen=True)
class Judges:
    """What ``judges`` found; arrays have an entry for each judge.

    >>> import concordant as cc
    >>> who = ["ann"] * 30 + ["bob"] * 30
    >>> found = cc.judges(cc.Preferences.from_comparisons([*"aab"] * 20, [*"bcc"] * 20, cluster=who))
    >>> found.to_arrow().select(["judge", "votes", "agreement"]).to_pylist()[0], found.alpha[0]
    ({'judge': 'ann', 'votes': 30, 'agreement': 1.0}, 1.0)
    """

    names: Labels
    column: str
    votes: Ints
    reliability: Floats
    lower: Floats
    upper: Floats
    by_coin: Floats
    """Probability that the judge votes by a coin."""
    weight: Floats
    effects: dict[str, tuple[Floats, Floats]]
    """Of what stands first ("first") and of each covariate: log-odds by which the judge prefers it, standard error."""
    agreement: Floats
    """Share of the other votes on the same pair that say the same."""
    shared: Ints
    """Votes on pairs that others voted on, too."""
    alpha: tuple[float, float, float]
    """Krippendorff's, with its interval; NaN where no pair has two votes."""
    level: float
    ties: Floats
    notes: tuple[str, ...]
    prefs: Comparisons
    rows: Ints
    """The judge of each distinct vote of ``prefs``."""
    said_same: Floats
    """Of each distinct vote: the share of the other votes on the pair that say the same."""
    others: Ints
    pool: bool | None = None
    """Whether all queries have one scale; None: where items stand in many of them."""

    @property
    def random(self) -> list[Any]:
        """The judges who rather vote by a coin than not."""
        return list(self.names.take(np.flatnonzero(self.by_coin > 0.5)).to_pylist())

    def to_arrow(self) -> pa.Table:
        """Return a row for each judge, the most reliable first.

        Columns: judge, votes, reliability with its interval, by_coin (probability that it votes by a coin), weight,
        first (share in which it prefers what stands first of two equally good ones) with its interval and the same for
        each covariate (the larger one, by a standard deviation), agreement with its interval, shared, ties.
        """
        z = float(ndtri(0.5 + self.level / 2))
        columns: dict[str, Any] = {
            "votes": self.votes, "reliability": self.reliability, "lower": self.lower, "upper": self.upper,
            "by_coin": self.by_coin, "weight": self.weight,
        }  # fmt: skip
        for name, (value, error) in self.effects.items():
            columns |= {name: expit(value), f"{name}_lower": expit(value - z * error)}
            columns |= {f"{name}_upper": expit(value + z * error)}
        low, high = wilson(np.nan_to_num(self.agreement) * self.shared, self.shared.astype(np.float64), self.level)
        none = self.shared == 0
        columns |= {"agreement": self.agreement, "agreement_lower": np.where(none, np.nan, low)}
        columns |= {"agreement_upper": np.where(none, np.nan, high), "shared": self.shared, "ties": self.ties}
        order = np.argsort(-self.reliability, kind="stable")
        table = {"judge": self.names.take(order)}
        return pa.table(
            table | {name: pa.array(np.asarray(one)[order], from_pandas=True) for name, one in columns.items()}
        )

    def votes_table(self) -> pa.Table:
        """Return a row for each distinct vote.

        Columns: query, judge, winner, loser, tie, count, same (share of the other votes on this pair that say the
        same), others (their number), weight.
        """
        prefs = self.prefs
        tie = np.zeros(prefs.distinct, bool) if prefs.tie is None else prefs.tie
        found: dict[str, Any] = {"query": prefs.queries.take(prefs.query)} if len(prefs.queries) > 1 else {}
        found |= {
            "judge": self.names.take(self.rows), "winner": prefs.items.take(prefs.winner),
            "loser": prefs.items.take(prefs.loser), "tie": tie, "count": prefs.count,
            "same": pa.array(self.said_same, from_pandas=True), "others": self.others, "weight": self.weight[self.rows],
        }  # fmt: skip
        return pa.table(found)

    def weighed(self) -> Comparisons:
        """Return the votes, each as strong as who cast it is reliable (times its own strength).

        >>> import concordant as cc
        >>> who = ["x"] * 27 + ["y"] * 27
        >>> prefs = cc.Preferences.from_comparisons(["a", "a", "b"] * 18, ["b", "c", "c"] * 18, cluster=who)
        >>> cc.rank(cc.judges(prefs).weighed()).to_arrow()["item"].to_pylist()
        ['a', 'b', 'c']
        """
        own = np.maximum(self.weight, LEAST)[self.rows]
        return replace(self.prefs, weight=own if self.prefs.weight is None else own * self.prefs.weight)

    def ranking(self, **options: Any) -> Ranking:
        """Rank the items by the votes ``weighed``, over all queries that have one scale; ``options``: of ``rank``."""
        return rank(on_one_scale(self.weighed(), self.pool), **options)

    def lines(self) -> Iterator[str]:
        """Yield what a person wants to know of the judges, as sentences."""
        alpha, low, high = self.alpha
        if np.isfinite(alpha):
            text = (
                "agreement of votes on the same pair: Krippendorff's α = {alpha:.2f} ({low:.2f} … {high:.2f}; 0: by "
                "chance, 1: always)"
            )
            yield Note("agreement", text, alpha=alpha, low=low, high=high)
        else:
            same = "the same pair of the same query" if len(self.prefs.queries) > 1 else "the same pair"
            why = f"all votes on {same} are ties" if self.shared.any() else f"no two votes are on {same}"
            yield Note("no agreement", why + ", so agreement says nothing")
        coins = self.random
        if coins:
            order = np.argsort(-self.by_coin, kind="stable")[:8]
            text = "{found:judges} {found:votes|vote} rather by a coin than not: {items}"
            names = self.names.take(order[: min(len(coins), 8)]).to_pylist()
            yield Note("by a coin", text, items=names, others=max(len(coins) - 8, 0), found=len(coins))
        else:
            yield Note("no coins", "no judge votes by a coin rather than not")
        z = float(ndtri(0.5 + self.level / 2))
        for name, (value, error) in self.effects.items():
            sure = np.abs(value) > z * error
            what = "what stands first" if name == "first" else f"the larger {name}"
            text = "{some:,} of {of:judges} surely {some:prefers|prefer} {what}, {less:,} the other"
            some, less = (int((sure & (sign * value > 0)).sum()) for sign in (1, -1))
            yield Note("bias", text, what=what, of=len(value), some=some, less=less)


def judges(
    prefs: Preferences,
    judge: str | None = None,
    *,
    pool: bool | None = None,
    level: float = 0.95,
    replicates: int = 1000,
    seed: int = 0,
) -> Judges:
    """Say of each judge how reliable it is, whether it prefers what stands first or is longer, and who agrees.

    Formula and source: ``concordant.boards.judges``.

    Parameters
    ----------
    prefs : comparisons whose clusters say who judged: ``read(…, cluster="worker")``. With ``home="left"`` what each
        prefers by position is found, with covariates what it prefers by them, such as a difference in length.
        Votes agree, or do not, where they are on the same pair of the same query, so keep the queries (prompts) apart
        when the log is read: ``read(…, columns={"query": "prompt"}, pool=False)``. Of preferences that are pooled all
        votes on a pair are compared, whatever the prompt was.
    judge : the column of who judged, where there are several columns of clusters.
    pool : whether reliability, what judges prefer and the ranking are by one scale over all queries (True) or by one
        for each (False); None: one over all where items stand in many of them. Agreement and α do not depend on it.
    level : confidence level of the intervals.
    replicates, seed : of the bootstrap of Krippendorff's α.

    Errors: UsageError for other judgments than comparisons, or where nobody says who judged; CannotRank for a single
    judge.

    >>> import concordant as cc
    >>> pairs = [("a", "b"), ("a", "c"), ("b", "c")] * 20
    >>> coin = [pair[::-1] if place % 2 else pair for place, pair in enumerate(pairs)]
    >>> winner, loser = zip(*pairs, *pairs, *pairs, *coin)
    >>> who = ["ann"] * 60 + ["bob"] * 60 + ["eve"] * 60 + ["fay"] * 60
    >>> found = cc.judges(cc.Preferences.from_comparisons(winner, loser, cluster=who))
    >>> found.random, found.weight.round(1).tolist()
    (['fay'], [1.0, 1.0, 1.0, 0.0])
    """
    if not 0 < level < 1:
        raise UsageError(f"level must lie between 0 and 1, not {level}")
    replicates = whole_number(replicates, "replicates")
    if not isinstance(prefs, Comparisons):
        raise UsageError(f"judges are compared by comparisons, not by {prefs.kind or 'nothing'}")
    names, rows, column = who_judged(prefs, judge)
    if len(names) < 2:
        raise CannotRank(f"{column!r} names {counted(len(names), 'judges')}; how reliable one is shows beside others")
    if not isinstance(pool, bool | None):
        raise UsageError(f"pool must be True, False or None, not {pool!r}")
    scale = on_one_scale(prefs, pool)
    found, units = _weigh(scale, who_judged(scale, judge)[1], len(names))
    said = Said.of(prefs)
    same, others = said.agreement()
    seen, count = others > 0, prefs.count.astype(np.float64)
    number, shared, agreed, ties = (
        np.bincount(rows, count * part, len(names)) for part in (1.0, seen, np.where(seen, same, 0.0), said.vote == 2)
    )
    mu = found.middle
    low, high = found.ends(level)
    effects = {name: (found.mixed(1 + at)[0], np.sqrt(found.mixed(1 + at)[1])) for at, name in enumerate(units)}
    return Judges(
        names=names, column=column, votes=number.astype(np.int64), reliability=found.mixed(0)[0] / mu,
        lower=low / mu, upper=high / mu, by_coin=found.coin, weight=found.weight, effects=effects,
        agreement=np.divide(agreed, shared, out=np.full(len(names), np.nan), where=shared > 0),
        shared=shared.astype(np.int64), alpha=said.alpha(level, replicates, seed), level=level,
        ties=ties / np.maximum(number, 1.0), notes=(*_notes(prefs, scale, pool, units, found),), prefs=prefs,
        rows=rows, said_same=same, others=others, pool=pool,
    )  # fmt: skip


# -- who judged --------------------------------------------------------------------------------------------------------
def who_judged(prefs: Comparisons, judge: str | None) -> tuple[Labels, Ints, str]:
    """The judges, the judge of each distinct vote, and what their column is called."""
    if prefs.clusters is None or prefs.cluster is None:
        raise UsageError("the votes do not say who judged: name the column (", Setting("judge"), ")")
    known = prefs.cluster_columns
    if not known:
        return prefs.clusters, prefs.cluster.astype(np.int64), judge or "cluster"
    if judge is None:
        raise UsageError(f"the votes depend on {few(known)}: say which of them is the judge (", Setting("judge"), ")")
    names = prefs.by_cluster(judge).clusters or Labels.empty()
    return names, prefs.cluster_codes[known.index(judge)][prefs.cluster].astype(np.int64), judge


def with_length(prefs: Preferences, judge: str, columns: tuple[str, str]) -> Preferences:
    """Return votes whose clusters are the judge and the texts of both sides with a covariate ``length`` in their place.

    It is (a − b)/(a + b) of the two texts, or of two columns of numbers, winner less loser; the votes have to know
    which stood first (``home``). Errors: UsageError for what is no vote between two sides; InputError where one of two
    columns of numbers has something else or is negative.
    """
    if not isinstance(prefs, Comparisons) or prefs.covariates is None or "home" not in prefs.covariate_names:
        raise UsageError("lengths are for comparisons of two sides")
    if prefs.cluster is None or prefs.clusters is None or not {judge, *columns} <= {*prefs.cluster_columns}:
        raise UsageError(f"the votes have to be read with the clusters {few((judge, *columns))}")
    cells = [json.loads(label) for label in prefs.clusters.tolist()]
    known = [[cell[prefs.cluster_columns.index(name)] for cell in cells] for name in columns]
    a, b = _lengths(known, columns)
    home = prefs.covariates[:, prefs.covariate_names.index("home")]
    length = home * ((a - b) / np.maximum(a + b, 1e-300))[prefs.cluster]
    names = sorted([*prefs.covariate_names, "length"])
    at = names.index("length")
    covariates = np.insert(prefs.covariates, at, length, axis=1)
    labels, codes, _ = who_judged(prefs, judge)
    plain = replace(prefs, covariates=covariates, covariate_names=tuple(names), clusters=labels,
                    cluster=codes.astype(np.int32), cluster_columns=())  # fmt: skip
    return recounted(plain, prefs.query, prefs.count)


def _lengths(known: list[list[Any]], columns: tuple[str, str]) -> Floats:
    """Lengths of texts; of two columns of numbers, these."""
    try:
        numbers = np.array(known, np.float64)
    except ValueError:
        return np.array([[len(str(one)) for one in texts] for texts in known], np.float64)
    if not (numbers >= 0).all() or not np.isfinite(numbers).all():
        raise InputError(
            f"lengths are numbers of at least 0; the columns {columns[0]!r} and {columns[1]!r} have others"
        )
    return numbers


def _recurring(prefs: Preferences) -> bool:
    """Whether items stand in many queries, so that one scale serves all."""
    queries = np.bincount(prefs.members[1], minlength=len(prefs.items))
    return len(prefs.queries) > 1 and bool((queries > 1).sum() * 2 >= (queries > 0).sum())


def on_one_scale(prefs: Comparisons, pool: bool | None = None) -> Comparisons:
    """The votes of all queries together, where that is asked for; where it is not said, if items stand in many."""
    if len(prefs.queries) < 2 or pool is False:
        return prefs
    whole = prefs.pool() if pool or _recurring(prefs) or scattered(prefs) else prefs
    return whole if isinstance(whole, Comparisons) else prefs


def _notes(
    prefs: Comparisons, scale: Comparisons, pool: bool | None, units: dict[str, float], found: _Model
) -> Iterator[str]:
    if scale is not prefs:
        why = "" if pool else "the items stand in many of the {of_all:queries}: "
        over = "all {of_all:queries}" if pool else "all of them ({each}: one for each)"
        text = f"{why}the judges are measured by one scale over {over}; agreement is that of votes on the same pair of "
        each = Setting("pool", False)
        yield Note("one scale", text + "the same query", of_all=len(prefs.queries), each=each)
    if prefs.weighted:
        yield Note("strengths", "reliability and agreement heed which side was preferred, not how strongly")
    if not found.agree:
        yield Note(
            "no common scale",
            "the judges do not agree with each other beyond chance, so none is more reliable than another; all weigh 1",
        )
    for name, size in units.items():
        if name != "first":
            yield Note("unit", "{name}: larger by {size:.4g}, a standard deviation", name=name, size=size)


# -- reliability and weights -------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Votes:
    """Votes that are alike, a row."""

    judge: Ints
    won: Floats
    """1, or ½ for a tie: rows are winner less loser."""
    count: Floats
    x: Floats
    """(rows, 1 + names): the difference of scores, what stands first (±1), covariates in standard deviations."""


@dataclass(frozen=True)
class _Model:
    """Judges as a mixture: of each its β and γ if it does not vote by a coin, and γ if it does."""

    mean: Floats
    variance: Floats
    share: float
    """π."""
    value: Floats
    """(judges, 1 + names)."""
    error: Floats
    """Variances, of that shape."""
    coin_value: Floats
    coin_error: Floats
    coin: Floats
    """Probability that the judge votes by a coin."""

    @property
    def agree(self) -> bool:
        """Whether judges follow the scores of the others beyond chance."""
        sure = (1.0 - self.coin) / (self.variance[0] + self.error[:, 0])
        return bool(self.mean[0] > 3.0 / np.sqrt(max(sure.sum(), 1e-300)))

    @property
    def middle(self) -> float:
        """μ: the slope of a typical judge."""
        return float(self.mean[0]) if self.agree else np.nan

    @property
    def weight(self) -> Floats:
        """Reliability, not below 0 nor above 1."""
        return np.clip(self.mixed(0)[0] / self.middle, 0.0, 1.0) if self.agree else np.ones(len(self.coin))

    def mixed(self, place: int) -> tuple[Floats, Floats]:
        """Mean and variance of β (0) or of an effect."""
        none = np.zeros(len(self.coin))
        other, wide = (none, none) if place == 0 else (self.coin_value[:, place], self.coin_error[:, place])
        one, r = self.value[:, place], self.coin
        mean = (1.0 - r) * one + r * other
        return mean, (1.0 - r) * (self.error[:, place] + (one - mean) ** 2) + r * (wide + (other - mean) ** 2)

    def ends(self, level: float) -> tuple[Floats, Floats]:
        """The quantiles of β that the level asks for; β may be 0 with a probability of its own."""
        b, s, r = self.value[:, 0], np.sqrt(self.error[:, 0]), self.coin
        below, rest = (1.0 - r) * ndtr(-b / s), np.maximum(1.0 - r, 1e-12)
        found = []
        for q in (0.5 - level / 2, 0.5 + level / 2):
            inside = np.where(q < below, q, q - r) / rest
            value = b + s * ndtri(np.clip(inside, 1e-12, 1.0 - 1e-12))
            found.append(np.where((q >= below) & (q <= below + r), 0.0, value))
        return found[0], found[1]


def _weigh(prefs: Comparisons, judge: Ints, judges: int) -> tuple[_Model, dict[str, float]]:
    """Find scores and weights in turn; returned are the judges and the units of what else they may prefer."""
    batch = Batch.whole(prefs)
    sizes = batch.node_groups.sizes
    if sizes.max(initial=0) > MOST:
        raise UsageError(f"judges are compared on up to {MOST:,} items of a query, not {sizes.max():,}")
    first, second = batch.sides(prefs)
    z, units = _covariates(prefs)
    won = np.ones(prefs.distinct) if prefs.tie is None else np.where(prefs.tie, 0.5, 1.0)
    count = prefs.count.astype(np.float64)
    weight, model = np.ones(judges), _start(judges, 1 + z.shape[1])
    with stage("weighing") as at:
        for _ in range(ROUNDS):
            each = np.maximum(weight, LEAST)[judge]
            known = replace(prefs, weight=each)
            score = bradley_terry(replace(batch, prefs=known), prior=PRIOR, covariates=False).value
            apart = _by_others(score, first, second, won, count * each, judge, batch)
            votes = _Votes(judge, won, count, np.column_stack([apart, z]))
            model = _fitted(votes, judges, model, at)
            before, weight = weight, model.weight
            if np.abs(weight - before).max() < STILL:
                break
    return model, units


def _start(judges: int, names: int) -> _Model:
    none = np.zeros((judges, names))
    return _Model(np.eye(names)[0], np.full(names, 0.25), 0.1, none, none, none, none, np.full(judges, 0.1))


def _covariates(prefs: Comparisons) -> tuple[Floats, dict[str, float]]:
    """What stands first and the covariates, winner less loser, in their units."""
    columns: list[Floats] = []
    units: dict[str, float] = {}
    if prefs.covariates is None:
        return np.zeros((prefs.distinct, 0)), units
    for name in sorted(prefs.covariate_names, key=lambda name: name != "home"):
        column = prefs.covariates[:, prefs.covariate_names.index(name)]
        unit = 1.0 if name == "home" else float(np.sqrt(np.average(column**2, weights=prefs.count))) or 1.0
        columns.append(column / unit)
        units["first" if name == "home" else name] = unit
    return np.column_stack(columns), units


def _by_others(
    score: Floats, first: Ints, second: Ints, won: Floats, mass: Floats, judge: Ints, batch: Batch
) -> Floats:
    """Differences of the scores without the votes of the judge itself: a Newton step from those of all."""
    margin = score[first] - score[second]
    chance = expit(margin)
    bent, off = mass * chance * (1.0 - chance), mass * (won - chance)
    moved = np.empty(len(first))
    start = batch.prefs.start
    for graph, (low, high) in enumerate(zip(start[:-1].tolist(), start[1:].tolist(), strict=True)):
        base, size = int(batch.node_start[graph]), int(batch.node_groups.sizes[graph])
        whose, one, other = judge[low:high], first[low:high] - base, second[low:high] - base
        weight, slope = bent[low:high], off[low:high]
        whole = _curvature(np.zeros(high - low, np.int64), one, other, weight, 1, size)[0] + PRIOR * np.eye(size)
        if size <= SMALL:
            own, who = np.unique(whose, return_inverse=True)
            of_item = np.bincount(who * size + one, slope, len(own) * size)
            of_item -= np.bincount(who * size + other, slope, len(own) * size)
            rest = whole - _curvature(who, one, other, weight, len(own), size)
            step = np.linalg.solve(rest, of_item.reshape(len(own), size)[..., None])[..., 0]
            moved[low:high] = step[who, one] - step[who, other]
            continue
        inverse = np.linalg.inv(whole)
        for rows in np.split(sorter := np.argsort(whose, kind="stable"), np.flatnonzero(np.diff(whose[sorter])) + 1):
            i, j, w, g = one[rows], other[rows], weight[rows], slope[rows]
            if len(rows) < size:  # X (H − X'WX)⁻¹ X' = (I − AW)⁻¹ A, A = X H⁻¹ X'
                part = inverse[i] - inverse[j]
                A = part[:, i] - part[:, j]
                moved[low + rows] = np.linalg.solve(np.eye(len(rows)) - A * w, A @ g)
            else:
                rest = whole - _curvature(np.zeros(len(rows), np.int64), i, j, w, 1, size)[0]
                step = np.linalg.solve(rest, np.bincount(i, g, size) - np.bincount(j, g, size))
                moved[low + rows] = step[i] - step[j]
    return np.clip(margin - moved, -FAR, FAR)


def _curvature(group: Ints, first: Ints, second: Ints, weight: Floats, groups: int, size: int) -> Floats:
    both = np.bincount((group * size + first) * size + second, weight, groups * size**2).reshape(groups, size, size)
    both = both + both.transpose(0, 2, 1)
    diagonal = np.zeros_like(both)
    diagonal[:, np.arange(size), np.arange(size)] = both.sum(2)
    return np.asarray(diagonal - both, np.float64)


def _fitted(votes: _Votes, judges: int, model: _Model, at: Stage) -> _Model:
    """Find the mixture under which the votes are likeliest."""
    names = votes.x.shape[1]
    coin, first, moves = replace(votes, x=votes.x * (np.arange(names) > 0)), not at.done, list[float]()
    for _ in range(EM_STEPS):
        value, error, evidence = _posterior(votes, model.value, model.mean, model.variance)
        other, wide, against = _posterior(coin, model.coin_value, model.mean * (np.arange(names) > 0), model.variance)
        odds = np.log(model.share) - np.log1p(-model.share) + against - evidence
        r = expit(odds)
        mixed = (1.0 - r)[:, None] * value + r[:, None] * other
        number = np.where(np.arange(names) == 0, (1.0 - r).sum(), float(judges))
        mean = (mixed.sum(0) + model.variance * (np.arange(names) == 0)) / (number + model.variance)
        square = (1.0 - r) @ (error + (value - mean) ** 2) + (r @ (wide + (other - mean) ** 2)) * (np.arange(names) > 0)
        variance = (square + APART**2) / (number + 1.0)
        share = (r.sum() + 0.5) / (judges + 1.0)
        moved = np.abs(np.concatenate([mean - model.mean, np.sqrt(variance) - np.sqrt(model.variance)])).max()
        moves.append(max(float(moved), float(abs(share - model.share))))
        model = _Model(mean, variance, float(share), value, error, other, wide, r)
        left = steps_left(moves, CLOSE)
        rest = None if left is None else min(left, EM_STEPS - len(moves)) + LATER * first
        at.reach(at.done + 1, None if rest is None else at.done + 1 + rest)
        if moves[-1] < CLOSE:
            break
    return model


def _posterior(votes: _Votes, start: Floats, mean: Floats, variance: Floats) -> tuple[Floats, Floats, Floats]:
    """Mode and variances of each judge's slopes with a normal prior, and the log-evidence (Laplace).

    Shapes (judges, names), (judges, names), (judges,). A column of x that is 0 adds nothing to the evidence.
    """
    judges, names = start.shape
    value, prior = start.copy(), 1.0 / variance
    x, judge = votes.x, votes.judge
    for _ in range(STEPS):
        chance = expit((x * value[judge]).sum(1))
        off, bent = votes.count * (votes.won - chance), votes.count * chance * (1.0 - chance)
        slope = prior * (mean - value)
        slope += np.column_stack([np.bincount(judge, off * x[:, at], judges) for at in range(names)])
        H = np.empty((judges, names, names))
        for at in range(names):
            for to in range(at + 1):
                H[:, at, to] = H[:, to, at] = np.bincount(judge, bent * x[:, at] * x[:, to], judges)
        H += np.diag(prior)
        step = np.linalg.solve(H, slope[..., None])[..., 0]
        value = value + step * np.minimum(1.0, 2.0 / np.maximum(np.abs(step).max(1, keepdims=True), 1e-300))
        if np.abs(step).max() < 1e-6:
            break
    margin = (x * value[judge]).sum(1)
    fit = votes.count * (votes.won * log_expit(margin) + (1.0 - votes.won) * log_expit(-margin))
    evidence = np.bincount(judge, fit, judges) - 0.5 * (prior * (value - mean) ** 2).sum(1)
    evidence += 0.5 * np.log(prior).sum() - 0.5 * np.linalg.slogdet(H)[1]
    return value, np.diagonal(np.linalg.inv(H), axis1=1, axis2=2).copy(), evidence
