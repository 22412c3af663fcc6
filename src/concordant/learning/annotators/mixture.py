"""Mixtures of Bradley–Terry models over annotators, on arrays: expectation–maximisation from several starts.

Annotator k belongs to camp c with probability π_c; in camp c the first of pair p is preferred with probability
σ(d_p'θ_c), d_p what is known of the first less what is known of the second (of items without features the difference
of two unit vectors). With a_kp and b_kp the votes of k for the first and the second (a tie is half a vote each way),

    ℓ = Σ_k log Σ_c π_c exp(Σ_p a_kp log σ(d_p'θ_c) + b_kp log σ(−d_p'θ_c)) − (λ/2) Σ_c ‖θ_c‖².

A step finds the probability r_kc of each camp for each annotator, then π_c = mean of r_kc and a Newton step on θ_c with
votes weighted by r_kc, which does not lower ℓ. Camps that start level stay level, so starts differ: annotators are
dealt to camps by chance, or each joins the nearest of some of them by what one ranking for all leaves unexplained.

Source: Dempster, Laird and Rubin, JRSS B 39, 1977; mixtures of ranking models: Murphy and Martin, CSDA 41, 2003;
Gormley and Murphy, JRSS A 169, 2006 (of Plackett–Luce, which of pairs is Bradley–Terry).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, logsumexp

from concordant.preferences.status import Status

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
SHORT, LONG = 15, 1_000
"""Steps of every start, and of those that are followed to the end."""
FOLLOWED = 2
"""Starts that are followed to the end: the best after the short run."""
EXACT = 1e-15
"""Change of ℓ, per vote, that ends the search for a single camp, where steps are Newton's alone."""
HALVINGS = 30
"""Of a Newton step, at most."""
SAME = 1e-3
"""Starts whose ℓ differs by no more, in all, ended at the same maximum."""
AXES = 5
"""Principal axes of unexplained votes by which annotators are grouped."""


@dataclass(frozen=True, eq=False)
class Differences:
    """D, what is known of the first of each pair less what is known of the second: (pairs, parameters).

    Of items without features a row is a difference of unit vectors, which is not written out.
    """

    first: Ints
    second: Ints
    width: int
    """Parameters."""
    D: Floats | None = None
    """Of features."""

    @classmethod
    def of(cls, first: Ints, second: Ints, nodes: int, X: Floats | None) -> Differences:
        """Make them of the nodes of each pair and the features of the nodes."""
        return cls(first, second, nodes) if X is None else cls(first, second, X.shape[1], X[first] - X[second])

    def take(self, pairs: Ints) -> Differences:
        """Return those of some pairs."""
        return replace(
            self, first=self.first[pairs], second=self.second[pairs], D=None if self.D is None else self.D[pairs]
        )

    def times(self, theta: Floats) -> Floats:
        """Return Dθ, of θ (parameters, …)."""
        found = theta[self.first] - theta[self.second] if self.D is None else self.D @ theta
        return np.asarray(found, np.float64)

    def back(self, value: Floats) -> Floats:
        """Return D'v of v (pairs,)."""
        if self.D is not None:
            return np.asarray(value @ self.D, np.float64)
        found = np.bincount(self.first, value, self.width) - np.bincount(self.second, value, self.width)
        return np.asarray(found, np.float64)

    def curve(self, weight: Floats) -> Floats:
        """Return D' diag(w) D."""
        if self.D is not None:
            return np.asarray(self.D.T @ (self.D * weight[:, None]), np.float64)
        apart = np.bincount(self.first * self.width + self.second, weight, self.width**2)
        apart = apart.reshape(self.width, self.width)
        apart = apart + apart.T
        return np.asarray(np.diag(apart.sum(0)) - apart, np.float64)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Votes of annotators on pairs, as sums."""

    D: Differences
    first: Any
    """(annotators, pairs) sparse: votes for the first, a_kp."""
    second: Any

    @property
    def votes(self) -> float:
        """All votes, by their strength."""
        return float(self.first.sum() + self.second.sum())

    def of(self, annotators: NDArray[Any]) -> Pairs:
        """Return the votes of some annotators."""
        return replace(self, first=self.first[annotators], second=self.second[annotators])

    def likelihoods(self, theta: Floats) -> Floats:
        """Return the log-likelihood of each annotator's votes in each camp; ``theta`` is (camps, parameters)."""
        margin = self.D.times(theta.T)
        return np.asarray(self.first @ log_expit(margin) + self.second @ log_expit(-margin), np.float64)


@dataclass(frozen=True, eq=False)
class Mixture:
    """Camps as they were found, the largest first."""

    share: Floats
    """π, (camps,)."""
    theta: Floats
    """(camps, parameters)."""
    value: float
    """ℓ."""
    rises: tuple[float, ...]
    """ℓ after each step of the start that was taken."""
    status: Status
    agreeing: int
    """How many of the starts that were followed to the end, and short ones that came as far, reached this ℓ."""

    def membership(self, pairs: Pairs) -> Floats:
        """Return the probability of each camp for each annotator, by these votes; shape (annotators, camps)."""
        return _memberships(self.share, pairs.likelihoods(self.theta))[0]


def fit_mixture(pairs: Pairs, camps: int, *, prior: float, starts: int, seed: int, still: float = 1e-8) -> Mixture:
    """Return the mixture of so many camps with the greatest ℓ that the starts lead to.

    λ is the ``prior``, positive; a change of ℓ by ``still``, per vote, ends the search.

    >>> from scipy import sparse
    >>> one, other = sparse.csr_array([[9.0], [8.0], [1.0]]), sparse.csr_array([[1.0], [2.0], [9.0]])
    >>> pairs = Pairs(Differences(np.array([0]), np.array([1]), 1, np.array([[1.0]])), one, other)
    >>> found = fit_mixture(pairs, 2, prior=0.01, starts=4, seed=0)
    >>> found.share.round(2).tolist(), found.theta[:, 0].round(1).tolist()
    ([0.67, 0.33], [1.7, -2.2])
    """
    level = np.zeros((1, pairs.D.width))
    alone = _rising(pairs, np.ones(1), level, prior, LONG, EXACT)
    if camps == 1:
        return replace(alone, agreeing=1)
    rng = np.random.default_rng([seed, camps])
    short = [
        _rising(pairs, *_begun(pairs, alone.theta, camps, at, rng, prior), prior, SHORT, still)
        for at in range(max(starts, 1))
    ]
    short.sort(key=lambda one: -one.value)
    ended = [_rising(pairs, one.share, one.theta, prior, LONG, still, one.rises) for one in short[:FOLLOWED]]
    best = max(ended, key=lambda one: one.value)
    agreeing = sum(abs(one.value - best.value) <= SAME for one in ended)
    order = np.argsort(-best.share, kind="stable")
    return replace(best, share=best.share[order], theta=best.theta[order], agreeing=agreeing)


def _begun(
    pairs: Pairs, alone: Floats, camps: int, at: int, rng: np.random.Generator, prior: float
) -> tuple[Floats, Floats]:
    """Where a start begins: every second one with groups by unexplained votes, the others with chance ones."""
    number = pairs.first.shape[0]
    if at % 2 == 0:
        chance = expit(pairs.D.times(alone[0]))
        both = pairs.first + pairs.second
        rest = (pairs.first - both.multiply(chance[None, :])).tocsr()
        off = np.array([pairs.D.back(row) for row in rest.toarray()])
        off /= np.sqrt(np.maximum(np.asarray(both.sum(axis=1)), 1e-300))[:, None]
        left, size, _ = np.linalg.svd(off, full_matrices=False)
        places = (left * size)[:, :AXES]
        middle = places[rng.choice(number, min(camps, number), replace=False)]
        group = ((places[:, None] - middle) ** 2).sum(-1).argmin(1)
        r = 0.1 / camps + 0.9 * (group[:, None] == np.arange(camps))
    else:
        r = rng.dirichlet(np.full(camps, 0.5), size=number)
    theta = np.tile(alone, (camps, 1))
    return r.mean(0) / r.mean(0).sum(), _climbed(pairs, r, theta, prior)


def _memberships(share: Floats, likelihood: Floats) -> tuple[Floats, Floats]:
    with np.errstate(divide="ignore"):
        joint = likelihood + np.log(share)
    total = logsumexp(joint, axis=1)
    return np.exp(joint - total[:, None]), np.asarray(total, np.float64)


def _rising(
    pairs: Pairs, share: Floats, theta: Floats, prior: float, steps: int, still: float, before: tuple[float, ...] = ()
) -> Mixture:
    rises, ended = list(before), Status.STOPPED
    enough = still * max(pairs.votes, 1.0)
    for step in range(steps + 1):
        r, each = _memberships(share, pairs.likelihoods(theta))
        value = float(each.sum()) - 0.5 * prior * float((theta**2).sum())
        last = step > 0 and value - rises[-1] <= enough
        rises.append(value)
        if last:
            ended = Status.CONVERGED
            break
        if step < steps:
            share, theta = r.mean(0), _climbed(pairs, r, theta, prior)
    return Mixture(share, theta, rises[-1], tuple(rises), ended, 0)


def _climbed(pairs: Pairs, r: Floats, theta: Floats, prior: float) -> Floats:
    """A Newton step on the coefficients of each camp with votes weighted by r; it lowers no log-likelihood."""
    first, second = np.asarray(pairs.first.T @ r), np.asarray(pairs.second.T @ r)
    known = np.flatnonzero((first + second).sum(1) > 0)
    D = pairs.D if len(known) == len(first) else pairs.D.take(known)
    return np.array([_newton(D, *votes, prior) for votes in zip(first[known].T, second[known].T, theta, strict=True)])


def _newton(D: Differences, first: Floats, second: Floats, theta: Floats, prior: float) -> Floats:
    def value(margin: Floats, theta: Floats) -> float:
        right = log_expit(margin)
        return float(first @ right + second @ (right - margin) - 0.5 * prior * theta @ theta)

    margin, both = D.times(theta), first + second
    now, chance = value(margin, theta), expit(margin)
    curve = D.curve(both * chance * (1.0 - chance))
    curve[np.diag_indices_from(curve)] += prior
    move = np.asarray(np.linalg.solve(curve, D.back(first - both * chance) - prior * theta), np.float64)
    length, along = 1.0, D.times(move)
    for _ in range(HALVINGS):
        if value(margin + length * along, theta + length * move) >= now:
            return np.asarray(theta + length * move, np.float64)
        length *= 0.5
    return theta
