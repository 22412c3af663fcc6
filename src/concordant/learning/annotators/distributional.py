"""A distribution of worth for each item: how much people like it, and how far they differ about it.

To whoever votes, item a is worth u_a ~ N(μ_a, s_a²), and prefers a to b with probability

    P(a ≻ b) = Φ((μ_a − μ_b) / √(s_a² + s_b²)),   μ = x'θ, log s = x'η − log √2,

Thurstone's case III (where the spreads s are equal, case V), or σ in the place of Φ (where they are equal, Bradley–
Terry). Without features every item has a μ and an s of its own. The unit is fixed by the geometric mean of the spreads,
1/√2, so that equal spreads are the usual model; the level of μ is arbitrary. θ and η maximise

    Σ_votes log P − (λ/2)‖θ‖² − (ν/2)‖η‖²

of standardised features (of items: of μ and log s). The maximum need not be the only one: the search begins at equal
spreads. λ and ν are chosen by held-out votes, ν = ∞, equal spreads, among them.

*What a spread is.* Votes on an item of great spread are nearer to a coin than its mean says. Disagreement of people,
their carelessness with it and context that nobody wrote down all look so; pairs alone do not tell them apart. Without
features and priors spreads are determined from four items on that all meet.

Source: Siththaranjan, Laidlaw and Hadfield-Menell, Distributional preference learning, ICLR 2024 (arXiv 2312.08358);
Thurstone, A law of comparative judgment, Psychological Review 34, 1927.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, log_expit, log_ndtr, ndtri

from concordant.errors import CannotRank, Setting, UsageError, did_you_mean, whole_number
from concordant.learning.annotators.design import Design, comparisons, masses, shares_won
from concordant.learning.annotators.scorers import HALF, STEEPEST, SpreadScorer
from concordant.preferences.frames import as_pandas
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Comparisons, Preferences
from concordant.preferences.ragged import Ragged
from concordant.preferences.sampling import deal, label_keys, uniform_bits
from concordant.preferences.status import Status
from concordant.progress import stage

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LINKS = ("probit", "logistic")
ITEM_PRIORS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
FEATURE_PRIORS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)
SPREAD_PRIORS = (np.inf, 1000.0, 100.0, 10.0, 1.0)
FEW_QUERIES = 10
"""Queries from which on whole ones are held out where there are features, as the scorer is for new ones."""
SURE = 1.64
EXACT, ROUGH = (1e-7, 2_000), (1e-4, 300)
"""Largest derivative, per vote, that ends a search, and its steps at most; those of a fit to a part of the votes."""


@dataclass(frozen=True, eq=False, repr=False)
class Distributional:
    """What ``distributional`` found; arrays have an entry for each item of each query, as in ``Batch.whole(prefs)``.

    >>> import concordant as cc
    >>> votes = cc.Preferences.from_comparisons(["a", "b", "a", "c"], ["b", "c", "c", "b"], count=[4, 3, 5, 1])
    >>> found = cc.distributional(votes, prior=1.0, spread_prior=float("inf"))
    >>> found.to_arrow()["item"].to_pylist(), found.spread.round(2).tolist()
    (['a', 'b', 'c'], [0.71, 0.71, 0.71])
    """

    mean: Floats
    spread: Floats
    coefficients: Floats | None
    """θ for features as they were given; None without features."""
    spread_coefficients: Floats | None
    """η, likewise: by one unit more of a feature log s is so much greater."""
    link: str
    prior: float
    spread_prior: float
    log_likelihood: float
    """Of the votes, without the priors."""
    gradient: float
    """Largest absolute derivative of what is maximised."""
    status: str
    gain: float
    """By how much less a held-out vote loses than with equal spreads, and its standard error; NaN where nothing was
    held out."""
    gain_error: float
    notes: tuple[str, ...]
    _design: Design
    _theta: Floats
    _eta: Floats

    def predict(self, features: Any) -> tuple[Floats, Floats]:
        """Return mean and spread of items by their features, whether they were judged or not; each (rows,)."""
        return self.scorer.predict(features), self.scorer.spread(features)

    @cached_property
    def scorer(self) -> SpreadScorer:
        """The scorer by itself, which ``save_model`` keeps. Errors: UsageError without features."""
        return SpreadScorer.of(self._design, self._theta, self._eta, self.status)

    def quantile(self, share: float, features: Any = None) -> Floats:
        """Return what an item is worth to a share of the people at most: μ + s Φ⁻¹(share), (items or rows,).

        A low one, such as .1, ranks by those who like an item least. With the logistic link it takes the worths for
        normal all the same.
        """
        if not 0 < share < 1:
            raise UsageError(f"share must lie between 0 and 1, not {share!r}")
        mean, spread = (self.mean, self.spread) if features is None else self.predict(features)
        return np.asarray(mean + spread * ndtri(share), np.float64)

    def probability(self, first: Any, second: Any, query: Any = None) -> float:
        """Return P(first ≻ second) of two items that were judged (of a query, where there are several)."""
        one, other = (self._node(item, query) for item in (first, second))
        margin = (self.mean[one] - self.mean[other]) / np.hypot(self.spread[one], self.spread[other])
        return float(np.exp(_log_chance(self.link, np.array([margin]))[0]))

    def _node(self, item: Any, query: Any) -> int:
        batch = self._design.batch
        queries = batch.prefs.queries
        if query is None and len(queries) > 1:
            raise UsageError(f"there are {len(queries):,} queries; name one of them")
        graph = 0 if query is None else int(queries.codes_of([query])[0])
        code = int(batch.prefs.items.codes_of([item])[0])
        found = np.flatnonzero((batch.owner == graph) & (batch.item == code))
        if not len(found):
            raise UsageError(f"{item!r} was not judged{'' if query is None else f' in query {query!r}'}")
        return int(found[0])

    def to_arrow(self) -> pa.Table:
        """Return a row for each item: query (of several), item, rank (by the mean), mean, spread."""
        batch = self._design.batch
        order = np.lexsort((batch.item, -self.mean, batch.owner))
        queries = {"query": batch.prefs.queries.take(batch.owner[order])} if len(batch) > 1 else {}
        columns = {
            "item": batch.prefs.items.take(batch.item[order]), "rank": Ragged.runs(batch.owner[order]).place + 1,
            "mean": self.mean[order], "spread": self.spread[order],
        }  # fmt: skip
        return pa.table(queries | columns)

    def to_pandas(self) -> Any:
        """Return ``to_arrow`` as a pandas data frame (pandas must be installed)."""
        return as_pandas(self.to_arrow())

    def __repr__(self) -> str:
        return (
            f"Distributional({len(self.mean):,} items, spreads from {self.spread.min():.2f} to {self.spread.max():.2f})"
        )


def distributional(
    prefs: Preferences,
    features: Any = None,
    *,
    link: str = "probit",
    prior: float | str = "auto",
    spread_prior: float | str = "auto",
    folds: int = 3,
    seed: int = 0,
) -> Distributional:
    """Find how much each item is worth to people on average, and how far they differ about it, by maximum likelihood.

    Formula, what is identified and source: ``concordant.learning.annotators.distributional``.

    Parameters
    ----------
    prefs : comparisons; a tie is half a win each way.
    features : of the items, as rankers take them: then mean and log-spread are linear in them, and ``predict`` knows
        new items. None: each item has both of its own.
    link : 'probit' (Φ) or 'logistic' (σ).
    prior : precision λ of the normal prior on means (on coefficients of standardised features), or 'auto'.
    spread_prior : precision ν of that on log-spreads; infinity: equal spreads. 'auto': what foretells held-out votes
        best, equal spreads among it.
    folds, seed : into how many parts votes (with features and ten queries or more, queries) are dealt to be held out.

    Errors: UsageError for other judgments than comparisons and for options.

    >>> import concordant as cc
    >>> wins = [("a", "b", 9), ("b", "a", 1), ("c", "b", 6), ("b", "c", 4), ("a", "c", 6), ("c", "a", 4)]
    >>> winner, loser, count = zip(*wins * 4)
    >>> found = cc.distributional(cc.Preferences.from_comparisons(winner, loser, count=count), spread_prior=1.0)
    >>> bool(found.spread[2] > found.spread[0])  # of c people think differently
    True
    """
    known = comparisons(prefs, "means and spreads")
    if link not in LINKS:
        raise UsageError(f"unknown link {link!r}; {did_you_mean(str(link), LINKS)}")
    folds = whole_number(folds, "folds", 2)
    for name, value in (("prior", prior), ("spread_prior", spread_prior)):
        wrong = isinstance(value, str | bool) or not value > 0 or (name == "prior" and not np.isfinite(value))
        if value != "auto" and wrong:
            raise UsageError(f"{name} must be a positive number or 'auto', not {value!r}")
    design = Design.of(known, features, what="means and spreads")
    votes = _Votes.of(known, design, link)
    if not votes.mass.any():
        raise CannotRank("there are no comparisons")
    usual = ITEM_PRIORS if features is None else FEATURE_PRIORS
    priors = usual if prior == "auto" else (float(prior),)
    spreads = SPREAD_PRIORS if spread_prior == "auto" else (float(spread_prior),)
    gain, error = np.nan, np.nan
    if len(priors) > 1 or len(spreads) > 1:
        with stage("choosing the priors"):
            best, best_spread, gain, error = _chosen(votes, known, design, priors, spreads, folds, seed)
    else:
        best, best_spread = priors[0], spreads[0]
    with stage("finding means and spreads"):
        found = votes.fitted(votes.mass, best, best_spread)
    mean, level = design.times(found.theta), votes.levels(found.eta)
    place = np.unique(design.batch.owner, return_inverse=True)[1]
    mean = mean - (np.bincount(place, mean) / np.bincount(place))[place]
    result = Distributional(
        mean=mean, spread=np.exp(level - HALF), coefficients=None if features is None else found.theta / design.scale,
        spread_coefficients=None if features is None else found.eta / design.scale, link=link, prior=best,
        spread_prior=best_spread,
        log_likelihood=found.value, gradient=found.gradient, status=found.status.word, gain=gain, gain_error=error,
        notes=(), _design=design, _theta=found.theta, _eta=found.eta,
    )  # fmt: skip
    return replace(result, notes=(*_notes(result, level, spread_prior == "auto"),))


def _notes(found: Distributional, level: Floats, chosen: bool) -> Iterator[Note]:
    if chosen and not np.isfinite(found.spread_prior):
        yield Note("equal spreads", "held-out votes support no spreads: people are as divided about every item")
    elif np.isfinite(found.gain) and np.isfinite(found.spread_prior):
        text = "with spreads a held-out vote has a log-loss {how} by {gain:.4f} ± {error:.4f} than with equal ones"
        text += "" if found.gain > SURE * found.gain_error else ": no more than chance"
        how = "less" if found.gain > 0 else "greater"
        yield Note("spreads", text, how=how, gain=abs(found.gain), error=found.gain_error)
    if ends := int((np.abs(level) >= STEEPEST - 1e-9).sum()):
        text = "the spread of {ends:items} is at the end of what is allowed; {ask} draws spreads together"
        yield Note("spread at the end", text, ends=ends, ask=Setting("spread_prior", 10.0))
    if found.status == Status.STOPPED.word:
        yield Note("stopped", "the search stopped before convergence")


# -- likelihood --------------------------------------------------------------------------------------------------------
def _log_chance(link: str, margin: Floats) -> Floats:
    return np.asarray(log_ndtr(margin) if link == "probit" else log_expit(margin), np.float64)


def _slope(link: str, margin: Floats) -> Floats:
    """The derivative of the logarithm of Φ or σ."""
    if link == "logistic":
        return np.asarray(expit(-margin), np.float64)
    return np.asarray(np.exp(-0.5 * margin**2 - 0.5 * np.log(2.0 * np.pi) - log_ndtr(margin)), np.float64)


@dataclass(frozen=True, eq=False)
class _Fit:
    theta: Floats
    eta: Floats
    value: float
    gradient: float
    status: Status


@dataclass(frozen=True, eq=False)
class _Votes:
    """Distinct votes, a row each: pairs of nodes, and what is known of these."""

    first: Ints
    second: Ints
    won: Floats
    mass: Floats
    design: Design
    link: str

    @classmethod
    def of(cls, prefs: Comparisons, design: Design, link: str) -> _Votes:
        first, second = design.batch.sides(prefs)
        return cls(first, second, shares_won(prefs), prefs.count * masses(prefs), design, link)

    def levels(self, eta: Floats) -> Floats:
        """log s + log √2 of every node: without features less the mean of all, which fixes the unit."""
        level = self.design.times(eta)
        level = level - level.mean() if self.design.X is None else level
        return np.clip(level, -STEEPEST, STEEPEST)

    def chances(self, theta: Floats, eta: Floats) -> Floats:
        """log P and log(1 − P) of every vote's first; shape (2, votes)."""
        margin = self._margin(self.design.times(theta), self.levels(eta))[0]
        return np.stack([_log_chance(self.link, margin), _log_chance(self.link, -margin)])

    def _margin(self, mean: Floats, level: Floats) -> tuple[Floats, Floats, Floats]:
        square = np.exp(2.0 * level - 2.0 * HALF)
        one, other = square[self.first], square[self.second]
        return (mean[self.first] - mean[self.second]) / np.sqrt(one + other), one, other

    def objective(
        self, mass: Floats, theta: Floats, eta: Floats, prior: float, nu: float
    ) -> tuple[float, Floats, Floats]:
        """Minus what is maximised, and its derivatives in θ and η."""
        X, nodes = self.design.X, len(self.design.batch.item)
        mean, free = self.design.times(theta), self.design.times(eta)
        level = self.levels(eta)
        margin, one, other = self._margin(mean, level)
        won, lost = mass * self.won, mass * (1.0 - self.won)
        value = -(won @ _log_chance(self.link, margin) + lost @ _log_chance(self.link, -margin))
        d = lost * _slope(self.link, -margin) - won * _slope(self.link, margin)  # in the margin
        along = d / np.sqrt(one + other)
        of_mean = np.bincount(self.first, along, nodes) - np.bincount(self.second, along, nodes)
        shrink = -d * margin / (one + other)
        pulled = np.bincount(self.first, shrink * one, nodes) + np.bincount(self.second, shrink * other, nodes)
        centre = free.mean() if X is None else 0.0
        of_level = np.where(np.abs(free - centre) < STEEPEST, pulled, 0.0)
        slopes = (of_mean, of_level - of_level.mean()) if X is None else (of_mean @ X, of_level @ X)
        weight = nu if np.isfinite(nu) else 0.0
        value += 0.5 * prior * theta @ theta + 0.5 * weight * eta @ eta
        return float(value), slopes[0] + prior * theta, slopes[1] + weight * eta

    def fitted(self, mass: Floats, prior: float, nu: float, effort: tuple[float, int] = EXACT) -> _Fit:
        """Search from equal spreads (ν = ∞: stay there)."""
        size = len(self.design.batch.item) if self.design.X is None else self.design.X.shape[1]
        scale = 1.0 / max(float(mass.sum()), 1e-300)
        none = np.zeros(size)

        def of_means(free: Floats) -> tuple[float, Floats]:
            value, slope, _ = self.objective(mass, free, none, prior, np.inf)
            return value * scale, slope * scale

        def of_both(free: Floats) -> tuple[float, Floats]:
            value, *slopes = self.objective(mass, free[:size], free[size:], prior, nu)
            return value * scale, np.concatenate(slopes) * scale

        tolerance, most = effort
        options = {"maxiter": most, "gtol": tolerance, "ftol": 0.0, "maxcor": 20, "maxfun": 4 * most}
        found = minimize(of_means, none, jac=True, method="L-BFGS-B", options=options)
        theta, eta = found.x, none
        if np.isfinite(nu):
            found = minimize(of_both, np.concatenate([theta, none]), jac=True, method="L-BFGS-B", options=options)
            theta, eta = found.x[:size], found.x[size:]
        slope = float(np.abs(found.jac).max(initial=0.0))
        ended = Status.CONVERGED if slope <= 10 * tolerance else Status.STOPPED
        likely = self.chances(theta, eta)
        value = float((mass * self.won) @ likely[0] + (mass * (1.0 - self.won)) @ likely[1])
        return _Fit(theta, eta, value, slope, ended)


def _chosen(
    votes: _Votes,
    prefs: Comparisons,
    design: Design,
    priors: tuple[float, ...],
    spreads: tuple[float, ...],
    folds: int,
    seed: int,
) -> tuple[float, float, float, float]:
    """λ and ν of the least loss of held-out votes; how much less than with equal spreads, and the standard error."""
    keys = label_keys(prefs.queries, seed)
    if design.X is not None and len(keys) >= FEW_QUERIES:
        place = np.argsort(np.argsort(uniform_bits(keys, np.zeros(len(keys), np.uint64)), kind="stable"), kind="stable")
        of_query = (place % folds)[prefs.query]
        shares = np.array([np.where(of_query == fold, prefs.count, 0) for fold in range(folds)])
    else:
        shares = deal(prefs.start, prefs.count, keys, folds)
    strength = masses(prefs)
    known: dict[tuple[float, float], Floats] = {}

    def loss(prior: float, nu: float) -> Floats:
        """Of one of each distinct vote in each fold; shape (folds, votes)."""
        if (prior, nu) not in known:
            each = []
            for share in shares:
                found = votes.fitted(strength * (prefs.count - share), prior, nu, ROUGH)
                one, other = votes.chances(found.theta, found.eta)
                each.append(-strength * (votes.won * one + (1.0 - votes.won) * other))
            known[prior, nu] = np.array(each)
        return known[prior, nu]

    def total(prior: float, nu: float) -> float:
        return float((shares * loss(prior, nu)).sum())

    at = len(priors) // 2
    for way in (-1, 1):
        begun = at
        while 0 <= at + way < len(priors) and total(priors[at + way], spreads[0]) < total(priors[at], spreads[0]):
            at += way
        if at != begun:
            break
    best = min(spreads, key=lambda nu: total(priors[at], nu))
    less = loss(priors[at], np.inf) - loss(priors[at], best)
    mass = float((prefs.count * strength).sum())
    mean = float((shares * less).sum() / mass)
    off = less - mean * strength
    if prefs.cluster is None:
        square, number = float((shares * off**2).sum()), len(prefs)
    else:
        parts = np.bincount(prefs.cluster, (shares * off).sum(0))
        square, number = float((parts**2).sum()), len(parts)
    return priors[at], best, mean, float(np.sqrt(square * number / max(number - 1, 1))) / mass
