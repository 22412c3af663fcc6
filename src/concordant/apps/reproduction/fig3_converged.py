"""AoS Figure 3 with both methods at their minima: every setting of either chosen on held-out queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from concordant.apps.reproduction.data import GradedLists
from concordant.apps.reproduction.fitting import (
    HeldOut,
    Mask,
    complete_targets,
    equations,
    informed_targets,
    likelihood_targets,
    logistic,
    order_targets,
    risks,
)
from concordant.learning.solvers.least_squares import NormalEquations
from concordant.preferences.preferences import Comparisons
from concordant.ranking.closed_forms import C0

Floats = NDArray[np.float64]
RIDGES = (1e-6, 1e-4, 1e-3, 1e-2, 3e-2, 1e-1, 0.3, 1.0, 3.0)
"""The same for every method."""
C0S = (0.001, 0.01, 0.1, C0)
SCALES = (1.0, 2.0, 4.0, 8.0, 16.0)
"""c₀, and β of G(βs), that the average log-odds may choose from."""
TAU2 = (1 / 16, 1 / 4, 1.0)
GAINS = ("identity", "2^s-1")
"""Variance about the first stage's scores, and gain, that feature-informed aggregation may choose from."""
SUBSETS = 16
PARTS = 3
"""Parts of the queries, each judged by fits on the others."""
LOGISTIC, ALL, UNTUNED, BT, INFORMED = "logistic", "all", "c₀ = ½, β = 1", "bradley-terry", "informed"
"""Methods. UNTUNED is ALL without a choice of c₀ and β; BT, not in the paper, is complete aggregation by
Bradley–Terry in the place of the average log-odds."""
ON_DRAWS = {LOGISTIC: "logistic, on draws", ALL: "all, on draws"}
"""The two with their settings chosen by the risk of the training queries on other draws."""


@dataclass(frozen=True)
class Chosen:
    """Settings of the methods, by their names."""

    ridge: Mapping[str, float]
    c0: Mapping[str, float]
    scale: Mapping[str, float]
    tau2: float
    gain: str

    @property
    def orders(self) -> list[int | str]:
        return [each if each == ALL else int(each) for each in self.ridge if each == ALL or each.isdigit()]


def orders_of(per_query: int, orders: Sequence[int]) -> list[int | str]:
    """The orders k that are below the comparisons a query, and all."""
    return [*(k for k in orders if k < per_query), ALL]


def choose(
    lists: GradedLists,
    draws: Sequence[Comparisons],
    orders: Sequence[int | str],
    seed: int,
    told: Callable[[float], None] = lambda _: None,
) -> Chosen:
    """Choose every setting by the mean risk of held-out queries on these draws; ``told`` hears of shares of each.

    The ridge of each method is one of RIDGES. c₀ and β are chosen for complete aggregation and serve every order. For
    pairwise logistic and complete aggregation the choice by the training queries on the same draws is made, too.
    """
    divisions = [HeldOut.of(lists, PARTS, [seed, number]) for number in range(len(draws))]
    judged = _Judged()
    ways = [(c0, scale) for c0 in C0S for scale in SCALES]
    everyone = np.ones(len(lists), bool)
    firsts: list[dict[bytes, Floats]] = []
    for prefs, held in zip(draws, divisions, strict=True):
        first = _First(lists, prefs)
        judged.add(LOGISTIC, held.risk(first.theta))
        judged.add(ON_DRAWS[LOGISTIC], risks(lists, first.theta(everyone)))
        targets = complete_targets(lists, prefs, C0S, SCALES)
        fit = _Least(lists, prefs, targets)
        judged.add(ALL, held.risk(fit.theta))
        judged.add(ON_DRAWS[ALL], risks(lists, fit.theta(everyone)))
        firsts.append(first.known)
        told(0.7)
    at = judged.best(LOGISTIC)
    ridge = {name: RIDGES[judged.best(name)] for name in (LOGISTIC, ON_DRAWS[LOGISTIC])}
    c0, scale = {UNTUNED: C0}, {UNTUNED: 1.0}
    for name in (ALL, ON_DRAWS[ALL]):
        place, way = divmod(judged.best(name), len(ways))
        ridge[name] = RIDGES[place]
        c0[name], scale[name] = ways[way]
    plain = judged.table(ALL)[:, ways.index((C0, 1.0))]
    ridge[UNTUNED] = RIDGES[int(plain.argmin())]
    partial = [k for k in orders if k != ALL]
    manners = [(tau2, gain) for tau2 in TAU2 for gain in GAINS]
    for prefs, held, known in zip(draws, divisions, firsts, strict=True):
        if partial:
            targets = order_targets(prefs, partial, SUBSETS, seed, c0=c0[ALL], scale=scale[ALL])
            judged.add("orders", held.risk(_Least(lists, prefs, targets).theta))
        judged.add(BT, held.risk(_Least(lists, prefs, likelihood_targets(lists, prefs)).theta))
        judged.add(INFORMED, held.risk(_Informed(lists, prefs, known, at).theta))
        told(0.3)
    if partial:
        best = judged.table("orders").argmin(axis=0)
        ridge |= {str(k): RIDGES[int(place)] for k, place in zip(partial, best, strict=True)}
    ridge[BT] = RIDGES[judged.best(BT)]
    place, manner = divmod(judged.best(INFORMED), len(manners))
    ridge[INFORMED] = RIDGES[place]
    ordered = [LOGISTIC, *(str(k) for k in orders), UNTUNED, BT, INFORMED, *ON_DRAWS.values()]
    return Chosen({name: ridge[name] for name in ordered}, c0, scale, *manners[manner])


def fitted_risks(lists: GradedLists, prefs: Comparisons, chosen: Chosen, seed: int) -> dict[str, float]:
    """NDCG risk of every method, fitted on all queries, with its chosen settings."""
    ridge, orders = chosen.ridge, [k for k in chosen.orders if k != ALL]
    first = logistic(lists, prefs, [ridge[LOGISTIC], ridge[ON_DRAWS[LOGISTIC]]])
    names = [*(str(k) for k in orders)]
    parts = [order_targets(prefs, orders, SUBSETS, seed, c0=chosen.c0[ALL], scale=chosen.scale[ALL])] if orders else []
    for name in (ALL, UNTUNED, ON_DRAWS[ALL]):
        names.append(name)
        parts.append(complete_targets(lists, prefs, [chosen.c0[name]], [chosen.scale[name]]))
    names += [BT, INFORMED]
    parts.append(likelihood_targets(lists, prefs))
    parts.append(informed_targets(lists, prefs, first[:, 0], chosen.tau2, [chosen.gain]))
    normal = equations(lists, np.column_stack(parts), prefs)
    theta = np.column_stack([normal.solve(ridge[name]).theta[:, place] for place, name in enumerate(names)])
    found = dict(
        zip([LOGISTIC, ON_DRAWS[LOGISTIC], *names], risks(lists, np.column_stack([first, theta])), strict=True)
    )
    return {name: float(found[name]) for name in ridge}


class _Judged:
    """Sums of risks over draws, of every method and setting."""

    def __init__(self) -> None:
        self._sum = dict[str, Floats]()

    def add(self, name: str, found: Floats) -> None:
        self._sum[name] = self._sum[name] + found if name in self._sum else found

    def table(self, name: str) -> Floats:
        """Shape (ridges, ways)."""
        return self._sum[name].reshape(len(RIDGES), -1)

    def best(self, name: str) -> int:
        return int(self._sum[name].argmin())


class _Fit:
    """θ of all settings from the queries that train, those of one ridge together."""

    def __init__(self, lists: GradedLists, prefs: Comparisons) -> None:
        self.lists, self.prefs = lists, prefs

    def solved(self, targets: Floats, train: Mask) -> Floats:
        normal: NormalEquations = equations(self.lists, targets, self.prefs, train=train)
        return np.column_stack([normal.solve(ridge).theta for ridge in RIDGES])


class _First(_Fit):
    """Pairwise logistic; what was fitted is kept for the feature-informed aggregation."""

    def __init__(self, lists: GradedLists, prefs: Comparisons) -> None:
        super().__init__(lists, prefs)
        self.known: dict[bytes, Floats] = {}

    def theta(self, train: Mask) -> Floats:
        key = train.tobytes()
        if key not in self.known:
            self.known[key] = logistic(self.lists, self.prefs, RIDGES, train=train)
        return self.known[key]


class _Least(_Fit):
    """Regression on targets."""

    def __init__(self, lists: GradedLists, prefs: Comparisons, targets: Floats) -> None:
        super().__init__(lists, prefs)
        self.targets = targets

    def theta(self, train: Mask) -> Floats:
        return self.solved(self.targets, train)


class _Informed(_Fit):
    """Regression on targets about the first stage of the same queries."""

    def __init__(self, lists: GradedLists, prefs: Comparisons, known: Mapping[bytes, Floats], at: int) -> None:
        super().__init__(lists, prefs)
        self.known, self.at = known, at

    def theta(self, train: Mask) -> Floats:
        first = self.known[train.tobytes()][:, self.at]
        each = [informed_targets(self.lists, self.prefs, first, tau2, GAINS) for tau2 in TAU2]
        return self.solved(np.column_stack(each), train)
