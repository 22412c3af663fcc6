"""Intervals for ranks that hold for all items of a graph at once.

Simultaneous confidence intervals for all differences s_i − s_j of a component say which items are certainly above
which; then rank i lies in [1 + #{j certainly above i}, n − #{j certainly below i}], for all i together with the
intervals' probability (Mogstad, Romano, Shaikh & Wilhelm, Review of Economic Studies 91, 2024, §3). The critical value
is the quantile of max |t| over the pairs: from Gaussian draws with the scores' covariance, or from bootstrap
replicates. Differences that the data do not determine (separated items) are never called certain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from concordant.errors import UsageError
from concordant.preferences.connectivity import Connectivity
from concordant.preferences.graphs import Batch
from concordant.preferences.sampling import whole_seed
from concordant.progress import stage, steps
from concordant.ranking.bootstrap import Bootstrap
from concordant.ranking.contrasts import Gauge
from concordant.ranking.covariance import Meat, Units, far_units, stacks, t_quantile
from concordant.ranking.curvature import Curvature
from concordant.ranking.scores import Scores
from concordant.ranking.standard_errors import Intervals

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
PAIRWISE = 300
"""Graphs up to this size have all their differences looked at; larger ones the scores' own intervals."""
DRAWS = 5000
"""Gaussian draws for the quantile: its level is met to ±.003 (one standard error)."""
SPREAD = 1e-9
"""A standard error below this times the score is rounding."""
ROUNDING = 1e-13
WORK = 5e8
"""Pairs × draws up to which the quantile is drawn; beyond (very many graphs) Šidák's bound is used."""


@dataclass(frozen=True, eq=False)
class RankIntervals:
    """Smallest and largest rank of each node within its component, 1 the best; shape (nodes,)."""

    lower: Ints
    upper: Ints
    level: float
    how: str


def rank_intervals(
    batch: Batch,
    scores: Scores,
    curvature: Curvature,
    intervals: Intervals,
    *,
    connectivity: Connectivity,
    seed: int = 0,
) -> RankIntervals:
    """Rank intervals from the covariance of the scores, by the method and at the level of ``intervals``.

    Graphs of up to 300 items: all differences, critical value the simulated quantile of max |t| (a fixed seed, 5,000
    draws) or, when there are too many graphs for that, Šidák's bound over the pairs. Larger graphs: simultaneous
    intervals of the scores (Šidák over the items), i above j when they do not overlap; by sorting, n log n,
    conservative. An item never compared has [1, items of its graph]; a separated one [1, items of its component].
    """
    level = intervals.level
    gauge = Gauge.of(batch.node_start, connectivity)
    freedom = np.full(len(batch), np.inf) if intervals.freedom is None else intervals.freedom
    size = batch.sizes
    certain = connectivity.compared & ~connectivity.separated & ~gauge.lone & np.isfinite(intervals.standard_error)
    lower, upper = ranks_from_intervals(
        batch, scores, gauge, intervals.standard_error, certain, level=level, freedom=freedom
    )
    chosen = np.flatnonzero((size <= PAIRWISE) & (size > 1))
    drawn = float((size[chosen] ** 2 / 2).sum()) * DRAWS <= WORK
    meat = Meat.of(batch, curvature) if intervals.method == "sandwich" else None
    units = Units.of(batch, curvature, gauge)
    part = np.flatnonzero(np.isin(units.graph, chosen) & ~far_units(units, curvature))
    with stage("rank intervals", len(part)) as advance:
        for ids, n, matrix in stacks(units, curvature, gauge, meat, part):
            nodes = ids[:, :n]
            known = np.asarray(np.isfinite(matrix).all(axis=(1, 2)))
            matrix = np.where(known[:, None, None], matrix, 0.0)
            pairs = _pairs(matrix[:, :n, :n], scores.value[nodes], gauge.group[nodes], certain[nodes])
            of = freedom[batch.owner[nodes[:, 0]]]
            critical = _drawn_quantile(matrix[:, :n, :n], pairs, level, seed, of) if drawn else _sidak(pairs, level, of)
            above, below = _certain(scores.value[nodes], pairs, critical)
            _write(lower, upper, nodes, above, below, gauge, batch, connectivity.compared)
            advance(len(ids))
    how = "max |t| of all differences" if drawn else "Šidák over all differences"
    return RankIntervals(lower, upper, level, how)


def rank_intervals_of_replicates(
    boot: Bootstrap, batch: Batch, *, connectivity: Connectivity, level: float = 0.95, places: bool = False
) -> RankIntervals:
    """Rank intervals from bootstrap replicates: critical value the quantile of max |t| over them.

    t_ij = (difference in the replicate − in the point estimate)/its standard deviation. Items with an infinite or
    undetermined score in some replicate are never called certain. Scores that are ``places`` (of which many pairs never
    change) are bounded one by one instead, all together, as those of large graphs are.
    """
    if not 0 < level < 1:
        raise UsageError(f"the level of an interval lies between 0 and 1, not {level}")
    gauge = Gauge.of(batch.node_start, connectivity)
    value = boot.scores.value
    finite = np.isfinite(boot.replicates).all(axis=0) & connectivity.compared
    certain = finite & ~boot.always[0] & ~boot.always[1]
    moved = np.where(finite, boot.replicates - value, 0.0)
    error = np.sqrt((moved**2).mean(axis=0))
    lower, upper = ranks_from_intervals(batch, boot.scores, gauge, error, certain, level=level, draws=moved)
    size = batch.sizes
    for graph in steps("rank intervals", np.flatnonzero((size <= PAIRWISE) & (size > 1) & (not places))):
        nodes = np.arange(batch.node_start[graph], batch.node_start[graph + 1])[None, :]
        own = moved[:, nodes[0]]
        matrix = (own.T @ own / len(own))[None]
        pairs = _pairs(matrix, value[nodes], gauge.group[nodes], certain[nodes])
        critical = _quantile_of_largest(own[None], pairs, level)
        above, below = _certain(value[nodes], pairs, critical)
        _write(lower, upper, nodes, above, below, gauge, batch, connectivity.compared)
    return RankIntervals(lower, upper, level, "max |t| over bootstrap replicates")


def ranks_from_intervals(
    batch: Batch,
    scores: Scores,
    gauge: Gauge,
    error: Floats,
    certain: Flags,
    *,
    level: float,
    draws: Floats | None = None,
    freedom: Floats | None = None,
) -> tuple[Ints, Ints]:
    """Ranks by sorting simultaneous intervals s ± c·s.e.; c by Šidák over the graph's items or from ``draws``."""
    size = batch.sizes
    if draws is None:
        tested = np.maximum(batch.node_groups.sums(certain), 1)
        critical = t_quantile(0.5 + 0.5 * level ** (1.0 / tested), np.inf if freedom is None else freedom)
    else:
        known = np.where(certain & (error > 0), error, np.inf)
        scaled = np.abs(draws) / known
        critical = _quantiles(batch.node_groups.most(scaled.T), level)
    half = np.where(certain, critical[batch.owner] * np.where(certain, error, 0.0), 0.0)
    lower, upper = ranks_from_ends(scores.value - half, scores.value + half, gauge, certain)
    alone = (lower == upper) & ~certain
    return lower, np.where(alone, size[batch.owner], upper)


def ranks_from_ends(low: Floats, high: Floats, gauge: Gauge, certain: Flags) -> tuple[Ints, Ints]:
    """Ranks from simultaneous intervals [low, high]: i is above j when they do not overlap; by sorting, n log n."""
    _, place = np.unique(np.concatenate([low, high]), return_inverse=True)
    width = len(place) + 1
    lows = gauge.group * width + place[: len(low)]
    highs = gauge.group * width + place[len(low) :]
    sorted_lows, sorted_highs = np.sort(lows[certain]), np.sort(highs[certain])
    # certain items of the component whose lower end is above this upper end, and the other way round
    end = np.searchsorted(sorted_lows, (gauge.group + 1) * width)
    above = end - np.searchsorted(sorted_lows, highs, side="right")
    begin = np.searchsorted(sorted_highs, gauge.group * width)
    below = np.searchsorted(sorted_highs, lows, side="left") - begin
    members = np.bincount(gauge.group, minlength=gauge.groups)[gauge.group]
    lower = np.where(certain, 1 + above, 1)
    upper = np.where(certain, members - below, members)
    return lower.astype(np.int64), upper.astype(np.int64)


# -- differences -------------------------------------------------------------------------------------------------
def _pairs(matrix: Floats, value: Floats, group: Ints, certain: Flags) -> Floats:
    """Standard errors of s_i − s_j, inf where the difference is not determined; shape (G, n, n).

    A difference without any spread is none that is certain: the judgments that should show one are all alike.
    """
    own = np.einsum("gii->gi", matrix)
    both = np.maximum(own[:, :, None] + own[:, None, :], 0.0)
    square = np.maximum(both - 2.0 * matrix, 0.0) + ROUNDING * both  # what is lost where two items stand close together
    open_ = (group[:, :, None] == group[:, None, :]) & certain[:, :, None] & certain[:, None, :]
    np.einsum("gii->gi", open_)[:] = False
    error = np.sqrt(square)
    return np.where(open_ & (error > SPREAD * np.maximum(1.0, np.abs(value[:, :, None]))), error, np.inf)


def _certain(value: Floats, pairs: Floats, critical: Floats) -> tuple[Ints, Ints]:
    """For each node how many are certainly above it, and how many below."""
    ahead = value[:, :, None] - value[:, None, :]
    with np.errstate(invalid="ignore"):
        sure = ahead > critical[:, None, None] * pairs
    sure &= np.isfinite(pairs)
    return sure.sum(axis=1), sure.sum(axis=2)


def _sidak(pairs: Floats, level: float, freedom: Floats) -> Floats:
    tested = np.maximum(np.isfinite(pairs).sum(axis=(1, 2)) / 2, 1)
    return t_quantile(0.5 + 0.5 * level ** (1.0 / tested), freedom)


def _drawn_quantile(matrix: Floats, pairs: Floats, level: float, seed: int, freedom: Floats) -> Floats:
    """Quantile of max |t| under N(0, matrix) for each of the stack; with few clusters under the t law."""
    size = matrix.shape[1]
    seed_of = whole_seed(seed) % (1 << 128)
    normal = np.random.default_rng([seed_of, size]).standard_normal((DRAWS, size))
    step = max(1, (1 << 22) // (DRAWS * size))
    out = np.empty(len(matrix))
    for begin in range(0, len(matrix), step):
        part = slice(begin, begin + step)
        values, vectors = np.linalg.eigh(matrix[part])
        root = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
        draws = normal @ root.swapaxes(1, 2)
        for one, of in enumerate(freedom[part]):
            if np.isfinite(of):
                draws[one] /= np.sqrt(np.random.default_rng([seed_of, size, int(of)]).chisquare(of, DRAWS) / of)[
                    :, None
                ]
        out[part] = _quantile_of_largest(draws, pairs[part], level)
    return out


def _quantile_of_largest(draws: Floats, pairs: Floats, level: float) -> Floats:
    """Quantile over the draws of max over pairs of |difference|/s.e.; draws of shape (G, draws, n), result (G,).

    A draw's t of its two extreme items bounds its maximum from below, its range over the least s.e. from above. Only
    draws whose upper bound reaches the quantile of the lower bounds can matter, a tenth or so: the answer is exact.
    """
    with np.errstate(divide="ignore"):
        scale = np.where(pairs > 0, 1.0 / pairs, 0.0)
    out = np.empty(len(draws))
    for graph, (values, weight) in enumerate(zip(draws, scale, strict=True)):
        each = np.arange(len(values))
        high, low = values.argmax(axis=1), values.argmin(axis=1)
        span = values[each, high] - values[each, low]
        most = span * weight[high, low]
        chosen = np.flatnonzero(span * weight.max(initial=0.0) >= _quantiles(most, level))
        most[chosen] = _largest(np.ascontiguousarray(values[chosen].T), weight)
        out[graph] = _quantiles(most, level)
    return out


def _largest(values: Floats, scale: Floats) -> Floats:
    """Max over pairs of |difference| · scale for values of shape (n, draws); shape (draws,)."""
    most = np.zeros(values.shape[1])
    for i in range(len(values) - 1):
        gap = np.abs(values[i + 1 :] - values[i])
        gap *= scale[i, i + 1 :, None]
        np.maximum(most, gap.max(axis=0), out=most)
    return most


def _quantiles(most: Floats, level: float) -> Floats:
    """The order statistic at the level, rounded up, along the last axis."""
    place = min(int(np.ceil(level * (most.shape[-1] + 1))), most.shape[-1]) - 1
    return np.asarray(np.sort(most, axis=-1)[..., place])


def _write(
    lower: Ints, upper: Ints, nodes: Ints, above: Ints, below: Ints, gauge: Gauge, batch: Batch, compared: Flags
) -> None:
    members = np.bincount(gauge.group, minlength=gauge.groups)[gauge.group[nodes]]
    total = batch.sizes[batch.owner[nodes]]
    lower[nodes] = 1 + above
    upper[nodes] = np.where(compared[nodes], members - below, total)
