"""Populations on which a surrogate, with infinite data, ranks wrongly: the one that costs most.

Counterexamples of the papers, as votes on three items.

The search for the small population on which a surrogate loses most: scores on two levels, one programme for each.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from concordant.auditing.small_populations import (
    WITHIN,
    Programme,
    Verdict,
    best_order_of,
    every_pair,
    in_class,
    judge,
    unit_populations,
    whole_votes,
    written_order,
)
from concordant.errors import UsageError, did_you_mean
from concordant.losses.objective import Objective, Population
from concordant.losses.surrogates import surrogate
from concordant.preferences.preferences import Preferences
from concordant.progress import stage, steps

Floats = NDArray[np.float64]
Build = Callable[[Population], Objective]
CLEAR = 0.05
"""How far the scores of a clear failure lie from a tie (relative to the gap), or subgradients from their ends."""
NEGLIGIBLE = 1e-9
KEPT, KEPT_AT_KINKS = 3, 12
"""Candidates that are refined; where φ has a kink there is nothing to refine."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """Scores on two levels, ``gap`` apart, with the regret of the worst population they minimise."""

    regret: float
    programme: Programme
    upper: NDArray[np.bool_]
    """Items of the upper level."""
    gap: float

    def scores(self, clear: float) -> Floats:
        """Items of a level in the wrong order, ``clear`` of the gap apart (the whole gap when alone); 0 is a tie."""
        apart = 1.0 if clear and self.upper.all() else clear
        scores = self.gap * (self.upper + apart * np.arange(len(self.upper)))
        return np.asarray(scores - scores.mean(), np.float64)


class PopulationSearch:
    """The linear programmes of one surrogate over a class of populations, and the scores that are worth trying.

    Where the worst of all populations is known in closed form, and in a search over all weak orders for 3 and 4 items,
    its minimiser has two levels.
    """

    def __init__(self, build: Build, items: int, within: str) -> None:
        self.units, self.items, self.within = build(unit_populations(items)), items, within
        self.mixes = _mixes(build, self.units, items)
        self.smooth = self.units.phi.smooth
        edges = self.units.edges
        if self.units.penalised:
            self.reach = float(np.max(self.units.penalty.inverse(1.0 / edges.pull)))
        else:
            phi = self.units.phi
            self.reach = (phi.zero_from if phi.ends else 1.0) + float(np.max(edges.offset, initial=0.0))

    def candidates(self, budget: int, rng: np.random.Generator) -> list[Candidate]:
        """The best scores with positive regret, most regret first, their gaps refined."""
        tried = list(itertools.product(self._programmes(budget, rng), self._levels(), self._gaps()))
        if len(tried) > budget:
            tried = [tried[place] for place in np.sort(rng.permutation(len(tried))[:budget])]
        found = [self._tried(*one) for one in steps("linear programmes", tried)]
        found = sorted((one for one in found if one.regret > NEGLIGIBLE), key=_most_first)
        found = found[: KEPT if self.smooth else KEPT_AT_KINKS]
        return sorted((self._refined(one, 0.0) for one in steps("refining the worst", found)), key=_most_first)

    def shares(self, one: Candidate, *, clear: bool) -> tuple[Floats, Floats] | None:
        """Shares of the pairs on which the failure is clear, or those of largest regret, and what must balance."""
        far = CLEAR if clear else 0.0
        if clear:
            one = self._refined(self._tried(one.programme, one.upper, one.gap, far), far)
        scores = one.scores(far if self.smooth else 0.0)
        regret, shares = one.programme.most(scores, 0.0 if self.smooth else far)
        return None if shares is None or regret < NEGLIGIBLE else (shares, one.programme.balance(scores, shares))

    def _programmes(self, most: int, rng: np.random.Generator) -> list[Programme]:
        """One for all pairs; where opposite votes cancel, one for each choice of a direction for each pair.

        There they change nothing but the number of votes, so the worst population has none.
        """
        pairs = every_pair(self.items)
        chosen = [np.arange(len(pairs))]
        if not self.mixes:
            down = np.flatnonzero(pairs[:, 0] < pairs[:, 1])
            up = np.array([np.flatnonzero((pairs == pairs[place, ::-1]).all(axis=1))[0] for place in down], np.int64)
            choices = 1 if self.within != "any" else 2 ** len(down)
            codes = np.arange(choices) if choices <= most else np.sort(rng.choice(choices, most, replace=False))
            turned = (codes[:, None] >> np.arange(len(down))) & 1 > 0
            chosen = [np.sort(np.where(row, up, down)) for row in turned]
        return [Programme(self.units, self.items, self.within, places) for places in chosen]

    def _levels(self) -> list[NDArray[np.bool_]]:
        sides = itertools.product((False, True), repeat=self.items)
        return [np.array(upper) for upper in sides if any(upper)]

    def _gaps(self) -> Floats:
        if not self.smooth:
            return self.reach * np.array([1.0, 2.0])  # vertices of the sets of minimisers
        return self.reach * np.geomspace(0.15, 3.0, 6)

    def _tried(self, programme: Programme, upper: NDArray[np.bool_], gap: float, clear: float = 0.0) -> Candidate:
        one = Candidate(0.0, programme, upper, float(gap))
        scores = one.scores(clear if self.smooth else 0.0)
        return replace(one, regret=programme.most(scores, 0.0 if self.smooth else clear)[0])

    def _refined(self, one: Candidate, clear: float) -> Candidate:
        """The gap of largest regret near the one given, where gaps are continuous."""
        if not self.smooth:
            return one
        found = minimize_scalar(
            lambda log: -self._tried(one.programme, one.upper, np.exp(log), clear).regret,
            bounds=(np.log(one.gap) - 0.6, np.log(one.gap) + 0.6),
            method="bounded",
            options={"xatol": 1e-6},
        )
        better = self._tried(one.programme, one.upper, float(np.exp(found.x)), clear)
        return better if better.regret > one.regret else one


def _most_first(one: Candidate) -> float:
    """Sorts the most regret first; mirror images, alike but for rounding, keep their order."""
    return -round(one.regret, 6)


def _mixes(build: Build, units: Objective, items: int) -> bool:
    """Whether the surrogate of two opposite populations mixed is the mean of theirs, so that no votes cancel."""
    half = np.full(2, 0.5)
    mixed = build(Population(np.array([0, items]), np.array([0, 1]), np.array([1, 0]), np.ones(2), half))
    alpha = np.arange(items) / items
    each = units.gradient(np.tile(alpha, len(units))).reshape(-1, items)
    opposite = [int(np.flatnonzero((every_pair(items) == pair).all(axis=1))[0]) for pair in ((0, 1), (1, 0))]
    return bool(np.allclose(mixed.gradient(alpha), each[opposite].mean(axis=0)))


MOST_ITEMS = 6
MOST_VOTES = 10**7


@dataclass(frozen=True, eq=False)
class Counterexample:
    """Votes on a few items, each one comparison, and what a surrogate makes of them."""

    name: str
    """The surrogate it was made for, or the result it is taken from."""
    within: str
    """The smallest class it is in: low noise, acyclic or any."""
    votes: NDArray[np.int64]
    """(items, items): votes for the row over the column."""
    verdict: Verdict | None = None
    """Of the surrogate it was made for."""
    largest: float | None = None
    """Largest regret per vote that the search met on any shares, ties included; whole votes need not reach it."""
    source: str = ""
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def regret(self) -> float:
        """Pairwise loss per vote over that of the best order; 0 where no surrogate is named."""
        return 0.0 if self.verdict is None else self.verdict.regret

    @property
    def optimum(self) -> float:
        """Pairwise loss of the best order per vote."""
        return best_order_of(self.votes)[1]

    @property
    def right_order(self) -> str:
        """An order of least pairwise loss, items from 1."""
        place = np.argsort(best_order_of(self.votes)[0])
        return written_order(-place.astype(np.float64))

    @property
    def preferences(self) -> Preferences:
        """The votes as preferences between items 1, 2, …"""
        winner, loser = np.nonzero(self.votes)
        return Preferences.from_comparisons(
            (winner + 1).tolist(), (loser + 1).tolist(), count=self.votes[winner, loser].tolist()
        )

    def judge(self, name: str, phi: str | None = None) -> Verdict:
        """Return what another surrogate makes of the votes."""
        return judge(self.votes, name, phi=phi)


def class_of(votes: NDArray[np.int64]) -> str:
    """Return the smallest class that votes are in."""
    return next(within for within in WITHIN if in_class(votes, within))


def find_counterexample(
    name: str,
    *,
    phi: str | None = None,
    items: int = 3,
    within: str = "low noise",
    votes: int = 1000,
    budget: int = 2000,
    seed: int = 0,
    **options: Any,
) -> Counterexample | None:
    """Search populations of single comparisons for the one on which the minimiser of a surrogate loses most.

    The regret is the pairwise loss (10) of the minimiser over that of the best order, per vote, a tie charged the
    heavier direction. For fixed scores the worst population is a linear programme. The largest regret is at a tie as a
    rule, so the population returned keeps away from it: a little less regret, but a clear failure. The result is
    checked: it is in the class, and its regret is that of the minimiser found anew.

    Parameters
    ----------
    name : a surrogate of the registry that reads preferences.
    phi : its margin function; None, its usual one.
    items : 2 to 6.
    within : which populations: 'low noise' (Definition 4), 'acyclic' difference graphs or 'any'.
    votes : about how many whole votes the population has (ten times as many, and so on, where rounding would lose the
        failure).
    budget : number of linear programmes, over scores on two levels and all sets of items on the upper one, then
        refined.
    seed : matters where not all scores can be tried.
    **options : options of the surrogate.

    Judgments of several edges have no more to show for surrogates that aggregate or have a linear h: they read the
    mean alone. (With another h two items are enough to go wrong.)

    None when nothing was found, which is not a proof (but there is one for difference-graph within "acyclic", AoS
    (23), and for linear within "low noise", ICML). Errors: unknown names, 2 to 6 items.

    >>> found = find_counterexample("ranknet")
    >>> found.right_order, found.verdict.order, round(found.largest, 4)  # (3 − √6)/6
    ('1 > 2 > 3', '1 > 3 > 2', 0.0918)
    >>> find_counterexample("difference-graph", within="acyclic") is None
    True

    Source: Duchi, Mackey and Jordan (2013), Theorems 2 and 3, Lemma 13.
    """
    within = within.replace("-", " ")
    if within not in WITHIN:
        raise UsageError(f"within must be {', '.join(map(repr, WITHIN[:-1]))} or 'any', not {within!r}")
    for label, number, least, most in (
        ("items", items, 2, MOST_ITEMS),
        ("votes", votes, 10, MOST_VOTES),
        ("budget", budget, 1, None),
        ("seed", seed, 0, None),
    ):
        if isinstance(number, bool) or not isinstance(number, int) or number < least or (most and number > most):
            limit = f"from {least} to {most:,}" if most else f"of at least {least}"
            raise UsageError(f"{label} must be an integer {limit}, not {number!r}")
    member = surrogate(name)
    if member.reads == "scores":
        judge(np.array([[0, 1], [0, 0]]), name)  # says why not
    search = PopulationSearch(partial(member.objective, phi=phi, **options), items, within)
    found = search.candidates(budget, np.random.default_rng(seed))
    if not found:
        return None
    for clear in (True, False):
        shares = [search.shares(one, clear=clear) for one in found]
        with stage("whole votes"):
            tried = [_checked(*one, items, within, votes, name, phi, options) for one in shares if one is not None]
        kept = [one for one in tried if one is not None]
        if kept:
            best = max(kept, key=lambda one: (round(one.regret, 9), -int(one.votes.sum())))
            return replace(best, largest=max(*(one.regret for one in found), best.regret), options=options)
    return None


def _checked(
    shares: Floats,
    balance: Floats,
    items: int,
    within: str,
    votes: int,
    name: str,
    phi: str | None,
    options: dict[str, Any],
) -> Counterexample | None:
    """Round to whole votes, more of them until the class and the failure survive it."""
    number = votes
    while number <= MOST_VOTES:
        whole = whole_votes(shares, items, within, number, balance)
        if whole is not None and in_class(whole, within):
            verdict = judge(whole, name, phi=phi, **options)
            if verdict.regret > 0:
                return Counterexample(name, class_of(whole), whole, verdict)
        number *= 10
    return None


_THEOREM_2 = Counterexample(
    "theorem-2",
    "low noise",
    np.array([[0, 4, 9], [0, 0, 1], [4, 0, 0]]),
    source="Duchi, Mackey and Jordan (2013), proof of Theorem 2: half the people say 1 > 2 with strength 4 and 1 > 3 "
    "with strength 9, the others 2 > 3 with strength 1 and 3 > 1 with strength 4",
)
"""G1 = {1→2, 1→3} and G2 = {2→3, 3→1}, each half; Lemma 13 asks Y_23 < Y_31 Y_12/(Y_13 + Y_12) = 16/13.

The proof takes Y_23 ≤ (Y_13 − Y_12)/2 for low noise. That leaves Y_31 out: Definition 4 asks Y_13 − Y_31 ≥ Y_12 + Y_23,
so Y_13 > Y_12 + Y_31 and Y_23 ≤ Y_13 − Y_12 − Y_31, as here (9 − 4 = 4 + 1). The theorem stands. The surrogates (12)
with the identity for h read the mean strengths alone, so single comparisons in these numbers are the same population.
"""
_THEOREM_3 = Counterexample(
    "theorem-3",
    "low noise",
    np.array([[0, 25, 50], [0, 0, 1], [24, 0, 0]]),
    source="Duchi, Mackey and Jordan (2013), proof of Theorem 3: one comparison each, 1 > 2, 2 > 3, 1 > 3 and "
    "3 > 1 with probabilities .25, .01, .5 and .24",
)
_ORDERINGS = Counterexample(
    "orderings",
    "acyclic",
    np.array([[0, 6, 6], [4, 0, 10], [4, 0, 0]]),
    source="Duchi, Mackey and Jordan (2010), section 3.1: six of ten people order 1 > 2 > 3, four 2 > 3 > 1; every "
    "pair of an order is one vote",
)
"""All pairs are compared equally often, so the logistic minimiser orders by votes won: 2 (14) before 1 (12)."""

KNOWN: Mapping[str, Counterexample] = MappingProxyType({one.name: one for one in (_THEOREM_2, _THEOREM_3, _ORDERINGS)})


def known_counterexample(name: str) -> Counterexample:
    """Look a counterexample of the papers up: "theorem-2", "theorem-3" or "orderings".

    >>> known_counterexample("theorem-3").right_order, known_counterexample("theorem-3").judge("ranknet").order
    ('1 > 2 > 3', '1 > 3 > 2')
    """
    if name not in KNOWN:
        raise UsageError(f"unknown counterexample {name!r}; {did_you_mean(name, KNOWN)}")
    return KNOWN[name]
