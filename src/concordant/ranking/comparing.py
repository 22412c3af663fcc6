"""Is a better than b? Differences of scores, one or all of them, with errors, intervals and p-values.

A p-value is that of the hypothesis that the two scores are equal; for all pairs together it is adjusted in two ways.
*max t*: the chance that the largest |t| of all pairs exceeds this one, drawn from the joint law of the scores (Westfall
and Young 1993; Hothorn, Bretz and Westfall, Biometrical Journal 50, 2008), for a normal law no larger than Šidák's
bound 1 − (1 − p)^m (Šidák, JASA 62, 1967). *Holm*: Scandinavian Journal of Statistics 6, 1979.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import expit, log1p

from concordant.errors import UsageError
from concordant.ranking.covariance import t_quantile, two_sided
from concordant.ranking.edge_tests import family_wise
from concordant.ranking.joint import Joint, Replicated
from concordant.ranking.largest import largest, quantile

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Contrast:
    """The difference of two scores of a ranking, first minus second.

    Where the data do not determine it (no chain of wins leads from either item to the other) the standard error is
    infinite, the interval has no limits and the p-value is NaN.
    """

    first: object
    second: object
    difference: float
    standard_error: float
    lower: float
    upper: float
    p_value: float
    """That the scores are equal, against either direction."""
    probability: float
    """That a vote between the two prefers the first (of a tie: half; no home side); NaN where scores do not say."""
    probability_lower: float
    probability_upper: float
    level: float
    method: str

    @property
    def determined(self) -> bool:
        """Whether the data limit the difference on both sides."""
        return bool(np.isfinite(self.standard_error))

    def __str__(self) -> str:
        names = f"{self.first} − {self.second}"
        if not self.determined:
            return f"{names}: not determined by these judgments (no chain of wins leads from either to the other)"
        text = (
            f"{names} = {self.difference:.3f} ± {self.standard_error:.3f} ({100 * self.level:g}%: {self.lower:.3f} … "
            f"{self.upper:.3f}), {p_said(self.p_value)}"
        )
        if np.isnan(self.probability):
            return text
        return text + (
            f"; a vote prefers {self.first} with probability {self.probability:.3f} ({self.probability_lower:.3f} … "
            f"{self.probability_upper:.3f})"
        )


def p_said(p: float) -> str:
    """Return a p-value in words; one that floating point does not tell from 0 is below 1e-15."""
    return "p < 1e-15" if p < 1e-15 else f"p = {p:.2g}"


@dataclass(frozen=True, eq=False)
class ScoreCovariance:
    """The covariance matrix of the scores of one query and of the coefficients beside them."""

    items: tuple[object, ...]
    """Row and column i belong to items[i]; coefficients stand after the items."""
    coefficients: tuple[str, ...]
    matrix: Floats
    """Shape (items + coefficients,) twice; of the scores as reported, each against its component's anchors. Rows of an
    item whose score the data do not limit on both sides are NaN, with an infinite variance."""
    method: str


def covariance_of(joint: Joint, order: Ints, items: tuple[object, ...]) -> ScoreCovariance:
    """Return the covariance of the scores in the order of some nodes."""
    matrix = joint.matrix.copy()
    n = joint.size
    limited = joint.links.compared & ~joint.links.separated & ~joint.gauge.lone
    open_ = np.flatnonzero(~limited) if joint.member.likelihood else np.flatnonzero(~joint.links.compared)
    matrix[open_], matrix[:, open_] = np.nan, np.nan
    matrix[open_, open_] = np.inf
    rows = np.concatenate([order, np.arange(n, len(matrix))]).astype(np.int64)
    return ScoreCovariance(items, joint.coefficients, matrix[np.ix_(rows, rows)], joint.method)


def contrast(joint: Joint, first: int, second: int, names: tuple[object, object]) -> Contrast:
    """Compare two nodes of a query."""
    if first == second:
        raise UsageError(f"{names[0]!r} is compared with itself; name two items")
    one, other = np.array([first]), np.array([second])
    gap = joint.value[one] - joint.value[other]
    lower, upper, p_value, error = _alone(joint, one, other, gap)
    known = joint.member.curvature is not None
    prefers = expit if joint.cuts is None else joint.cuts.prefers
    chance = [float(prefers(x)[0]) if known else float("nan") for x in (gap, lower, upper)]
    return Contrast(
        *names,
        difference=float(gap[0]),
        standard_error=float(error[0]),
        lower=float(lower[0]),
        upper=float(upper[0]),
        p_value=float(p_value[0]),
        probability=chance[0],
        probability_lower=chance[1],
        probability_upper=chance[2],
        level=joint.level,
        method=joint.method,
    )


def _alone(joint: Joint, first: Ints, second: Ints, gap: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Interval, p-value and standard error of each difference by itself."""
    error = joint.errors(first, second)
    known = np.isfinite(error)
    if not isinstance(joint, Replicated):
        half = t_quantile(0.5 + joint.level / 2, joint.freedom) * error
        p_value = np.where(known, two_sided(gap / error, joint.freedom), np.nan)
        return gap - half, gap + half, p_value, error
    count = len(joint.replicates)
    low = max(int(np.floor((1.0 - joint.level) / 2 * (count + 1))) - 1, 0)
    lower, upper, p_value = np.full(len(gap), -np.inf), np.full(len(gap), np.inf), np.full(len(gap), np.nan)
    step = max(1, (1 << 24) // count)
    rows = np.flatnonzero(known)
    for begin in range(0, len(rows), step):
        own = rows[begin : begin + step]
        drawn = np.sort(joint.replicates[:, first[own]] - joint.replicates[:, second[own]], axis=0)
        lower[own], upper[own] = drawn[low], drawn[count - 1 - low]
        tail = np.minimum((drawn <= 0).sum(axis=0), (drawn >= 0).sum(axis=0))
        p_value[own] = np.minimum(2.0 * (1 + tail) / (count + 1), 1.0)
    return lower, upper, p_value, error


def contrasts(joint: Joint, order: Ints, items: pa.Array, component: Ints) -> pa.Table:
    """Compare all pairs of nodes of each component, in their ``order``: the better placed item stands first.

    ``items``: labels of the nodes. Columns as ``Ranking.contrasts`` has them.
    """
    place = np.triu_indices(len(order), 1)
    first, second = order[place[0]], order[place[1]]
    same = component[first] == component[second]
    first, second = first[same], second[same]
    gap = joint.value[first] - joint.value[second]
    lower, upper, p_value, error = _alone(joint, first, second, gap)
    known = np.isfinite(error)
    together, critical = _max_t(joint, np.abs(gap) / error, p_value, known)
    half = critical * error
    holm = np.full(len(gap), np.nan)
    holm[known] = family_wise(p_value[known], int(known.sum()))
    columns = {"p_value": p_value, "p_max_t": together, "p_holm": holm}
    return pa.table(
        {
            "component": component[first] + 1,
            "first": items.take(pa.array(first)),
            "second": items.take(pa.array(second)),
            "difference": gap,
            "standard_error": error,
            "lower": lower,
            "upper": upper,
            "lower_all": gap - half,
            "upper_all": gap + half,
            **{name: pa.array(column, from_pandas=True) for name, column in columns.items()},
        }
    )


def _max_t(joint: Joint, t: Floats, p_value: Floats, known: NDArray[np.bool_]) -> tuple[Floats, float]:
    """Return p-values adjusted by the largest |t|, and the value that no |t| exceeds at the joint's level."""
    tested = int(known.sum())
    out = np.full(len(t), np.nan)
    if tested == 0:
        return out, np.inf
    weight = np.where(np.isfinite(joint.pair_errors), 1.0 / joint.pair_errors, 0.0)
    most = np.sort(largest(joint.draws, weight, joint.gauge.group))
    reached = len(most) - np.searchsorted(most, t[known] * (1 - 1e-12), side="left")
    found = (1.0 + reached) / (1.0 + len(most))
    critical = float(quantile(most, joint.level))
    if not isinstance(joint, Replicated):  # the simulation ends at 1/draws, Šidák's bound does not
        found = np.minimum(found, -np.expm1(tested * log1p(-np.minimum(p_value[known], 1 - 1e-16))))
        critical = min(critical, float(t_quantile(0.5 + 0.5 * joint.level ** (1.0 / tested), joint.freedom)))
    out[known] = np.maximum(found, p_value[known])
    return out, critical
