"""Do the scores of a model change with a property of the judgments? Tests of that by the score contributions.

At the maximum of the likelihood the contributions ψ of all judgments (gradients of the log-likelihood) add up to zero.
If one model holds for all, those of judgments with a low value of a property do, too, but for chance. Contributions are
added up in the units that are independent of each other (all judgments of a judge, say), J = Σ_u ψ_u ψ_uᵀ. With S the
sum over the units up to a cut and τ their share of the judgments:

- numbers: the largest Sᵀ J⁻¹ S / (τ(1 − τ)) over the cuts with 10% of the judgments on either side (supLM). Its law for
  many units is that of a Brownian bridge of k dimensions at just these τ: over √(τ(1 − τ)) it is an Ornstein–Uhlenbeck
  process, whose radius is a Markov chain from cut to cut, so the chance to stay below a bound is integrated cut by cut.
- names: Σ_c S_cᵀ J⁻¹ S_c / τ_c over the values c, χ² with k(C − 1) degrees of freedom.

With fewer than ten units for each degree of freedom J is too uncertain for these laws. Then the p-value is the share of
up to 9,999 permutations of the units' values with a statistic as large (Besag & Clifford, Biometrika 78, 1991), and
with fewer than three units for each score J is the information matrix of the model.

Sources: Zeileis & Hornik, Statistica Neerlandica 61 (2007); Andrews, Econometrica 61 (1993), (4.1)–(4.5); Zeileis,
Hothorn & Hornik, Journal of Computational and Graphical Statistics 17 (2008); permutations: Zeileis & Hothorn,
Statistical Papers 54 (2013).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import chdtrc, gammaincinv, gammaln, ive, xlogy

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Kind = Literal["number", "name"]

TRIM = 0.1
"""Share of the judgments that a cut leaves on either side, at least, to be tested."""
PER_DEGREE = 10
"""Units for each degree of freedom from which on the laws for many units are used."""
PER_DIRECTION = 3
"""Units for each score from which on their own variance is the measure, not the information of the model."""
PERMUTATIONS, EXCEEDED = 9999, 200
"""Permutations that are drawn, at most, and how many have to reach the statistic for fewer to say enough."""
TOGETHER = 50_000
"""Numbers that are permuted side by side."""
MUCH = 2_000_000_000
"""Numbers that are permuted in all, beyond which 999 permutations do."""
NODES, PER_WIDTH = 160, 1.5
"""Nodes of an integral, at most, and how many of them lie in a standard deviation of a step from cut to cut."""
NOTHING = -750.0
"""The exponent below which a density is 0."""
FLAT = 1e-9
"""A direction with less of the variance than that is one in which nothing varies."""


@dataclass(frozen=True)
class Instability:
    """A test of whether the scores change with a property, in one group.

    ``unit``: what is taken as independent, a column of clusters or "judgment"; ``why`` says why there is no test, and
    is empty where there is one.
    """

    property: str
    kind: Kind
    unit: str
    units: int
    statistic: float = np.nan
    df: int = 0
    """k for numbers (the largest of χ²'s with that many), k(C − 1) for names."""
    p_value: float = np.nan
    p_adjusted: float = np.nan
    """Times the number of properties that were tested in the group (Bonferroni), at most 1."""
    law: Literal["", "many units", "permutations"] = ""
    why: str = ""


@dataclass(frozen=True, eq=False)
class Units:
    """The contributions of one group, by what is independent.

    ``psi``: a row for each kind of unit, ``times`` how often it is there, ``size`` the judgments of one.
    """

    unit: str
    psi: csr_array
    times: Ints
    size: Floats
    information: Floats
    """Negative second derivatives of the log-likelihood, of the same parameters."""

    @property
    def number(self) -> int:
        return int(self.times.sum())

    def outer(self) -> Floats:
        """J = Σ ψψᵀ."""
        weighted = self.psi.multiply(self.times[:, None])
        return np.asarray((self.psi.T @ csr_array(weighted)).toarray(), np.float64)

    def each(self) -> tuple[Floats, Floats]:
        """The contributions and sizes, a row for each unit."""
        return np.repeat(self.psi.toarray(), self.times, axis=0), np.repeat(self.size, self.times)

    def untested(self, name: str, kind: Kind, why: str) -> Instability:
        """Say why there is no test of a property."""
        return Instability(name, kind, self.unit, self.number, why=why)


def whitener(variance: Floats) -> Floats:
    """Return W with W Wᵀ = J⁺, shape (parameters, directions that vary)."""
    scale = np.sqrt(np.maximum(np.diag(variance), 0.0))
    known = scale > 0
    scale = np.where(known, scale, 1.0)
    values, vectors = np.linalg.eigh(np.where(known[:, None] & known, variance / scale[:, None] / scale, 0.0))
    there = values > FLAT * max(float(values[-1]) if len(values) else 0.0, np.finfo(float).tiny)
    return np.asarray(vectors[:, there] / np.sqrt(values[there]) / scale[:, None])


def instability(units: Units, name: str, value: Ints, kind: Kind, enough: NDArray[np.bool_], seed: int) -> Instability:
    """Test one property. ``value``: that of each row of ``units``, from 0, numbers in their order.

    ``enough`` (numbers): whether a cut after each value but the last leaves as much as is asked for on both sides.
    """
    values = int(value.max()) + 1
    found = whitener(units.outer())
    k = found.shape[1]
    df = k * (values - 1) if kind == "name" else k
    many = units.number >= PER_DEGREE * df
    if units.number < PER_DIRECTION * k:
        found = whitener(units.information)
        k = found.shape[1]
        df = k * (values - 1) if kind == "name" else k
    if k == 0:
        return units.untested(name, kind, "no score is determined")
    weight = units.times * units.size
    cells = np.asarray(
        csr_array((units.times.astype(float), (value, np.arange(len(value)))), shape=(values, len(value))) @ units.psi
        @ found
    )  # fmt: skip
    share = np.bincount(value, weight, values) / weight.sum()
    if kind == "name":
        statistic, cuts = float(_of_names(cells, share)), np.zeros(0, np.int64)
    else:
        before = np.cumsum(share)[:-1]
        cuts = np.flatnonzero(enough & (before >= TRIM - 1e-12) & (before <= 1 - TRIM + 1e-12))
        if not len(cuts):
            return units.untested(name, kind, f"no cut leaves {TRIM:.0%} of the judgments on both sides")
        statistic = float(_of_numbers(cells, share)[cuts].max())
    if many:
        p = float(chdtrc(df, statistic)) if kind == "name" else supremum_tail(statistic, before[cuts], k)
        return Instability(name, kind, units.unit, units.number, statistic, df, p, law="many units")
    psi, size = units.each()
    p = _permuted(psi @ found, size, np.repeat(value, units.times), kind, cuts, statistic, seed)
    return Instability(name, kind, units.unit, units.number, statistic, df, p, law="permutations")


def _of_names(cells: Floats, share: Floats) -> Floats:
    return np.asarray(((cells**2).sum(axis=-1) / share).sum(axis=-1))


def _of_numbers(cells: Floats, share: Floats) -> Floats:
    """The statistic at the cut after each value but the last."""
    before = np.cumsum(share, axis=-1)[..., :-1]
    return np.asarray((np.cumsum(cells, axis=-2)[..., :-1, :] ** 2).sum(axis=-1) / (before * (1 - before)))


def _permuted(psi: Floats, size: Floats, value: Ints, kind: Kind, cuts: Ints, statistic: float, seed: int) -> float:
    """Share of the permutations of the units' values, the given one among them, with a statistic as large."""
    sorter = np.argsort(value, kind="stable")
    begin = np.flatnonzero(np.append(True, np.diff(value[sorter]) > 0))
    random = np.random.default_rng(seed)
    total, reached = size.sum(), 1
    most = int(np.clip(MUCH / max(psi.size, 1), 999, PERMUTATIONS))
    some = max(1, TOGETHER // max(psi.size, 1))
    for first in range(0, most, some):
        mixed = np.array([random.permutation(len(value)) for _ in range(min(some, most - first))])
        cells = np.add.reduceat(psi[mixed], begin, axis=1)
        share = np.add.reduceat(size[mixed], begin, axis=1) / total
        drawn = _of_names(cells, share) if kind == "name" else _of_numbers(cells, share)[:, cuts].max(axis=1)
        as_large = np.flatnonzero(drawn >= statistic * (1 - 1e-9))
        if reached + len(as_large) > EXCEEDED:
            return EXCEEDED / (first + int(as_large[EXCEEDED - reached]) + 1)
        reached += len(as_large)
    return reached / (most + 1)


# -- the law of the largest for many units -----------------------------------------------------------------------------
def supremum_tail(bound: float, share: Floats, k: int) -> float:
    """Return P(max_i ‖B(τ_i)‖² / (τ_i(1 − τ_i)) ≥ bound) of a Brownian bridge B of k dimensions.

    ``share``: the τ_i, ascending. Radii R_i of consecutive points have the density of Rice's law: given R_i = v,
    R_{i+1} is the length of a normal vector about ρv with variance 1 − ρ², ρ² = τ_i(1 − τ_{i+1}) / ((1 − τ_i)τ_{i+1}).

    >>> round(supremum_tail(3.8415, np.array([0.5]), 1), 4)
    0.05
    """
    if bound <= 0:
        return 1.0
    first = float(chdtrc(k, bound))
    low, high = np.sqrt(2 * gammaincinv(k / 2, 1e-14)), np.sqrt(bound)
    if first == 0.0:
        return first
    if high <= low:
        return 1.0
    narrow = PER_WIDTH * (high - low) / NODES  # of a step between cuts nearer than that, only one cut is kept
    odds = share / (1 - share)
    kept = [0]
    for place in range(1, len(share)):
        if 1 - odds[kept[-1]] / odds[place] >= narrow**2:
            kept.append(place)
    rho = np.sqrt(odds[kept[:-1]] / odds[kept[1:]])
    wide = np.sqrt(1 - rho**2)
    least = wide.min() if len(wide) else 1.0
    nodes, weights = np.polynomial.legendre.leggauss(int(np.clip(PER_WIDTH * (high - low) / least, 40, NODES)))
    u = low + (high - low) * (nodes + 1) / 2
    weights = weights * (high - low) / 2
    density = np.exp(xlogy(k - 1, u) - u**2 / 2 - (k / 2 - 1) * np.log(2) - gammaln(k / 2))
    left = first  # the mass that has gone beyond the bound
    for here, sigma in zip(rho, wide, strict=True):
        before = weights @ density
        density = _rice(u[:, None], here * u, sigma, k) @ (weights * density)
        left += before - weights @ density
    return float(np.clip(left, first, min(1.0, len(share) * first)))


def _rice(u: Floats, centre: Floats, sigma: float, k: int) -> Floats:
    """Density at u of the length of a normal vector of k dimensions about one of length ``centre``."""
    order = k / 2 - 1
    z = u * centre / sigma**2
    power = order * np.log(u / centre) + np.log(u / sigma**2) - (u - centre) ** 2 / (2 * sigma**2)
    found, some = np.zeros(power.shape), power > NOTHING
    found[some] = np.exp(power[some] + _log_ive(order, z[some]))
    return found


def _log_ive(order: float, z: Floats) -> Floats:
    """log(I_order(z) e^−z); of high orders by Debye's expansion (Abramowitz & Stegun 9.7.7)."""
    if order <= 50:
        return np.asarray(np.log(np.maximum(ive(order, z), np.finfo(float).tiny)))
    t = z / order
    root = np.sqrt(1 + t**2)
    p = 1 / root
    eta = root + np.log(t / (1 + root))
    terms = 1 + (3 * p - 5 * p**3) / (24 * order) + (81 * p**2 - 462 * p**4 + 385 * p**6) / (1152 * order**2)
    return np.asarray(order * eta - z - 0.5 * np.log(2 * np.pi * order * root) + np.log(terms))
