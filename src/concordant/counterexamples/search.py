"""The search for the small population on which a surrogate loses most: scores on two levels, one programme for each."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from concordant.counterexamples.small_populations import Programme, every_pair, unit_populations
from concordant.surrogates.objective import Objective
from concordant.surrogates.population import Population

__all__ = ["Candidate", "PopulationSearch"]

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
        arcs = self.units.arcs
        if self.units.penalised:
            self.reach = float(np.max(self.units.penalty.inverse(1.0 / arcs.pull)))
        else:
            self.reach = 1.0 + float(np.max(arcs.margin, initial=0.0))

    def candidates(self, budget: int, rng: np.random.Generator) -> list[Candidate]:
        """The best scores with positive regret, most regret first, their gaps refined."""
        tried = list(itertools.product(self._programmes(budget, rng), self._levels(), self._gaps()))
        if len(tried) > budget:
            tried = [tried[place] for place in np.sort(rng.permutation(len(tried))[:budget])]
        found = [self._tried(*one) for one in tried]
        found = sorted((one for one in found if one.regret > NEGLIGIBLE), key=_most_first)
        found = found[: KEPT if self.smooth else KEPT_AT_KINKS]
        return sorted((self._refined(one, 0.0) for one in found), key=_most_first)

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
