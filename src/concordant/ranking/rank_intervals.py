"""Intervals for ranks that hold for all items of a graph at once.

Simultaneous confidence intervals for all differences s_i − s_j of a component say which items are certainly above
which; then rank i lies in [1 + #{j certainly above i}, n − #{j certainly below i}], for all i together with the
intervals' probability (Mogstad, Romano, Shaikh & Wilhelm, Review of Economic Studies 91, 2024, §3). The critical value
is the quantile of max |t| over the pairs: from Gaussian draws with the scores' covariance, or from bootstrap
replicates. Differences that the data do not determine are not among them.

An item, or a strong block, that always won against all others of its component stands first when the likelihood at
which it is level with any of them is small beside the supremum, then the next one likewise, until one is not surely
above the rest; so from the last upwards. Such a sequence needs no correction for how many it tests. It may err in half
of what the level allows (a quarter from either side), and the differences in the other half.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from concordant.errors import UsageError
from concordant.preferences.connectivity import Connectivity
from concordant.preferences.counts import rows_alike
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences
from concordant.preferences.ragged import Ragged
from concordant.preferences.sampling import whole_seed
from concordant.progress import stage, steps
from concordant.ranking.bootstrap import Bootstrap
from concordant.ranking.choices import clusters_of
from concordant.ranking.contrasts import Gauge
from concordant.ranking.covariance import Meat, Units, far_units, stacks, t_quantile
from concordant.ranking.curvature import Curvature
from concordant.ranking.profile_likelihood import Profiles
from concordant.ranking.scores import Scores
from concordant.ranking.separated import Separated
from concordant.ranking.standard_errors import SMALL, Intervals
from concordant.ranking.strong_blocks import NEAREST, PAIRWISE

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
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


AT_ONCE = 2_000_000
"""Judgments (or pairs of a list) of which it is decided together what is drawn."""


def share_of(batch: Batch) -> float:
    """Return how many times as many judgments are decided on together, however many a batch has."""
    return _share(batch.prefs, batch.query)


def _share(prefs: Preferences, queries: NDArray[Any]) -> float:
    work = prefs.work
    return max(float(min(AT_ONCE, work.sum()) / max(work[queries].sum(), 1)), 1.0)


def draws(prefs: Preferences, queries: NDArray[Any]) -> bool:
    """Whether the critical values of some queries, which are decided on together, are drawn."""
    sizes = prefs.member_groups.sizes[queries]
    chosen = sizes[(sizes <= PAIRWISE) & (sizes > 1)]
    return float((chosen**2 / 2).sum()) * DRAWS * _share(prefs, queries) <= WORK


def rank_intervals(
    batch: Batch,
    scores: Scores,
    curvature: Curvature,
    intervals: Intervals,
    *,
    connectivity: Connectivity,
    counted: Flags | None = None,
    separated: Separated | None = None,
    seed: int = 0,
    drawn: bool | None = None,
) -> RankIntervals:
    """Rank intervals from the covariance of the scores, by the method and at the level of ``intervals``.

    Graphs of up to 300 items: all differences, critical value the simulated quantile of max |t| (a fixed seed, 5,000
    draws) or, when there are too many graphs for that, Šidák's bound over the pairs. Larger graphs: simultaneous
    intervals of the scores (Šidák over the items), i above j when they do not overlap; by sorting, n log n,
    conservative. An item never compared has [1, items of its graph]; a separated one [1, items of its component], or
    less where ``separated`` says that it stands first or last; one that is not ``counted`` likewise. ``drawn``: whether
    critical values are drawn, where that is decided for more graphs than these.
    """
    level = levels(batch, intervals.level, separated)
    gauge = Gauge.of(batch.node_start, connectivity)
    freedom = np.full(len(batch), np.inf) if intervals.freedom is None else intervals.freedom
    size = batch.sizes
    certain = connectivity.compared & ~connectivity.separated & ~gauge.lone & np.isfinite(intervals.standard_error)
    certain &= True if counted is None else counted
    lower, upper = ranks_from_intervals(
        batch, scores, gauge, intervals.standard_error, certain, level=level, freedom=freedom
    )
    chosen = np.flatnonzero((size <= PAIRWISE) & (size > 1))
    drawn = draws(batch.prefs, batch.query) if drawn is None else drawn
    with stage("rank intervals", len(chosen)) as advance:
        for ids, n, matrix in _covariances(batch, curvature, intervals, gauge, chosen):
            known = np.asarray(np.isfinite(matrix).all(axis=(1, 2)))
            nodes, matrix = ids[:, :n], np.where(known[:, None, None], matrix, 0.0)[:, :n, :n]
            of, own = (each[batch.owner[nodes[:, 0]]] for each in (freedom, level))
            beside = np.zeros((2, *nodes.shape), np.int64)
            for rows, place in _certain_ones(np.ones(nodes.shape, bool) if drawn else certain[nodes]):
                here, part = nodes[rows, place], matrix[rows[:, :, None], place[:, :, None], place[:, None, :]]
                pairs, r = _pairs(part, scores.value[here], gauge.group[here], certain[here]), rows[:, 0]
                critical = _drawn_quantile(part, pairs, own[r], seed, of[r]) if drawn else _sidak(pairs, own[r], of[r])
                beside[:, rows, place] = _certain(scores.value[here], pairs, critical)
            _write(lower, upper, nodes, beside[0], beside[1], gauge, batch, connectivity.compared)
            advance(len(ids))
    how = "max |t| of all differences" if drawn else "Šidák over all differences"
    return RankIntervals(*outermost(lower, upper, separated, intervals.level), intervals.level, how)


def _covariances(
    batch: Batch, curvature: Curvature, intervals: Intervals, gauge: Gauge, chosen: Ints
) -> Iterator[tuple[Ints, int, Floats]]:
    """Covariances of some graphs of one size together, those from which the intervals are where they were kept."""
    parameters = batch.sizes + np.bincount(np.asarray(curvature.extra_owner, np.int64), minlength=len(batch))
    if intervals.covariances is not None and (parameters[chosen] <= SMALL).all():
        wanted = np.isin(np.arange(len(batch)), chosen)
        for ids, n, matrix in intervals.covariances:
            some = wanted[batch.owner[ids[:, 0]]]
            yield (ids, n, matrix) if some.all() else (ids[some], n, matrix[some])
        return
    meat = Meat.of(batch, curvature) if intervals.method == "sandwich" else None
    units = Units.of(batch, curvature, gauge)
    part = np.flatnonzero(np.isin(units.graph, chosen) & ~far_units(units, curvature))
    yield from stacks(units, curvature, gauge, meat, part)


def rank_intervals_of_replicates(
    boot: Bootstrap,
    batch: Batch,
    *,
    connectivity: Connectivity,
    counted: Flags | None = None,
    separated: Separated | None = None,
    level: float = 0.95,
    places: bool = False,
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
    finite &= True if counted is None else counted
    certain = finite & ~boot.always[0] & ~boot.always[1]
    moved = np.where(finite, boot.replicates - value, 0.0)
    error = np.sqrt((moved**2).mean(axis=0))
    within = levels(batch, level, separated)
    lower, upper = ranks_from_intervals(batch, boot.scores, gauge, error, certain, level=within, draws=moved)
    size = batch.sizes
    for graph in steps("rank intervals", np.flatnonzero((size <= PAIRWISE) & (size > 1) & (not places))):
        nodes = np.arange(batch.node_start[graph], batch.node_start[graph + 1])[None, :]
        own = moved[:, nodes[0]]
        matrix = (own.T @ own / len(own))[None]
        pairs = _pairs(matrix, value[nodes], gauge.group[nodes], certain[nodes])
        critical = _quantile_of_largest(own[None], pairs, within[graph : graph + 1])
        above, below = _certain(value[nodes], pairs, critical)
        _write(lower, upper, nodes, above, below, gauge, batch, connectivity.compared)
    ends = outermost(lower, upper, separated, level)
    return RankIntervals(*ends, level, "max |t| over bootstrap replicates")


def ranks_from_intervals(
    batch: Batch,
    scores: Scores,
    gauge: Gauge,
    error: Floats,
    certain: Flags,
    *,
    level: Floats,
    draws: Floats | None = None,
    freedom: Floats | None = None,
) -> tuple[Ints, Ints]:
    """Ranks by sorting simultaneous intervals s ± c·s.e.; c by Šidák over the graph's items or from ``draws``.

    ``level``: of each graph.
    """
    size = batch.sizes
    if draws is None:
        tested = np.maximum(batch.node_groups.sums(certain), 1)
        critical = t_quantile(0.5 + 0.5 * level ** (1.0 / tested), np.inf if freedom is None else freedom)
    else:
        known = np.where(certain & (error > 0), error, np.inf)
        scaled = np.abs(draws) / known
        most = batch.node_groups.most(scaled.T)
        critical = np.array([_quantiles(*own) for own in zip(most, level, strict=True)])
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


def among_others(lower: Ints, upper: Ints, group: Ints, apart: Flags) -> tuple[Ints, Ints]:
    """Rank intervals among the items that do not stand ``apart``, 0 for those that do.

    An item apart is above another where its whole interval is; of its differences nothing else was counted.
    """
    width = int(max(lower.max(initial=0), upper.max(initial=0))) + 1
    base = group * width
    ends, begins = np.sort((base + upper)[apart]), np.sort((base + lower)[apart])
    here = np.searchsorted(ends, base)
    above = np.searchsorted(ends, base + lower) - here
    below = np.searchsorted(begins, base + width) - np.searchsorted(begins, base + upper, side="right")
    total = np.searchsorted(ends, base + width) - here
    ranked = ~apart & (upper > 0)
    return np.where(ranked, lower - above, 0), np.where(ranked, upper - (total - below), 0)


def places(
    owner: Ints, component: NDArray[np.int32], after: Ints, value: Floats, item: NDArray[np.int32], tolerance: float
) -> tuple[Ints, Ints]:
    """Return the rows in order and the rank of each: 1 + the number of clearly better items of its component.

    ``after`` is 0 for items that are ranked; the others have rank 0 and follow them in their component. Items that
    share a rank stand by item, whatever the last bits of their scores.
    """
    order = np.lexsort((item, -value, after, component, owner))
    group = owner[order] * (int(component.max(initial=0)) + 1) + component[order]
    sorted_value = value[order]
    new_group = np.diff(group, prepend=-1) != 0
    drop = np.abs(np.diff(sorted_value, prepend=np.inf)) > tolerance * np.maximum(1.0, np.abs(sorted_value))
    index = np.arange(len(order))
    group_begin = np.maximum.accumulate(np.where(new_group, index, 0))
    tie_begin = np.maximum.accumulate(np.where(new_group | drop, index, 0))
    beside = (np.diff(tie_begin) == 0) & (np.diff(after[order]) == 0)
    if (beside & (np.diff(item[order]) < 0)).any():
        order = order[np.lexsort((item[order], after[order], tie_begin))]
    return order, np.where(after[order] == 0, tie_begin - group_begin + 1, 0)


def anywhere(batch: Batch, linked: Connectivity, ranked: Flags, upper: Ints) -> Ints:
    """Return the worst ranks among the items of all components: those of another one may all be better."""
    size = batch.node_groups.sums(ranked).astype(np.int64)[batch.owner]
    group = batch.owner * (int(linked.component.max(initial=0)) + 1) + linked.component
    members = np.bincount(group, ranked)[group].astype(np.int64) if len(group) else size
    return np.where(upper > 0, np.minimum(upper + size - members, size), 0)


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


def _certain_ones(certain: Flags) -> Iterator[tuple[Ints, Ints]]:
    """Rows, shape (some, 1), with about as many certain ones, and the places of these, filled up with others."""
    order, number = np.argsort(~certain, axis=1, kind="stable"), certain.sum(axis=1)
    width = np.minimum(-(-number // 8) * 8, certain.shape[1])
    for most in np.unique(width[number > 1]).tolist():
        rows = np.flatnonzero((width == most) & (number > 1))
        yield rows[:, None], order[rows, :most]


def _certain(value: Floats, pairs: Floats, critical: Floats) -> tuple[Ints, Ints]:
    """For each node how many are certainly above it, and how many below."""
    ahead = value[:, :, None] - value[:, None, :]
    with np.errstate(invalid="ignore"):
        sure = ahead > critical[:, None, None] * pairs
    sure &= np.isfinite(pairs)
    return sure.sum(axis=1), sure.sum(axis=2)


def _sidak(pairs: Floats, level: Floats, freedom: Floats) -> Floats:
    tested = np.maximum(np.isfinite(pairs).sum(axis=(1, 2)) / 2, 1)
    return t_quantile(0.5 + 0.5 * level ** (1.0 / tested), freedom)


def _drawn_quantile(matrix: Floats, pairs: Floats, level: Floats, seed: int, freedom: Floats) -> Floats:
    """Quantile of max |t| under N(0, matrix) for each of the stack; with few clusters under the t law."""
    size = matrix.shape[1]
    seed_of = whole_seed(seed) % (1 << 128)
    normal = np.random.default_rng([seed_of, size]).standard_normal((DRAWS, size))
    step = max(1, (1 << 22) // (DRAWS * size))
    out = np.empty(len(matrix))
    for begin in range(0, len(matrix), step):
        part = slice(begin, begin + step)
        values, vectors = np.linalg.eigh(matrix[part])  # V√ΛVᵀ, unlike V√Λ, does not turn with the last bits of these
        draws = normal @ ((vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]) @ vectors.swapaxes(1, 2))
        for one, of in enumerate(freedom[part]):
            if np.isfinite(of):
                draws[one] /= np.sqrt(np.random.default_rng([seed_of, size, int(of)]).chisquare(of, DRAWS) / of)[
                    :, None
                ]
        out[part] = _quantile_of_largest(draws, pairs[part], level[part])
    return out


def _quantile_of_largest(draws: Floats, pairs: Floats, level: Floats) -> Floats:
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
        chosen = np.flatnonzero(span * weight.max(initial=0.0) >= _quantiles(most, level[graph]))
        most[chosen] = _largest(np.ascontiguousarray(values[chosen].T), weight)
        out[graph] = _quantiles(most, level[graph])
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


# -- first and last ----------------------------------------------------------------------------------------------
def levels(batch: Batch, level: float, separated: Separated | None) -> Floats:
    """The level that differences are compared at in each graph: where some items are separated, these take half."""
    out = np.full(len(batch), level)
    if separated is not None:
        out[np.unique(batch.owner[separated.nodes])] = 1.0 - 0.5 * (1.0 - level)
    return out


def outermost(lower: Ints, upper: Ints, separated: Separated | None, level: float) -> tuple[Ints, Ints]:
    """Narrow rank intervals by who surely stands first or last among the separated items, one after the other."""
    if separated is None:
        return lower, upper
    far = -float(np.log((1.0 - level) / 4.0))
    direct = _direct(separated) if separated.method == "sandwich" else None
    some = np.unique(separated.gauge.group[separated.outermost[0] | separated.outermost[1]])
    for profiles in separated.profiles(np.isin(separated.gauge.group, some)):
        few = profiles.units.spread(profiles.units.sizes) <= PAIRWISE
        members = profiles.nodes[few]
        members = members[np.argsort(separated.gauge.group[members], kind="stable")]
        groups = Ragged.runs(separated.gauge.group[members])
        if not len(groups):
            continue
        sides = [_sequences(separated, profiles, groups, members, top, far, direct) for top in (True, False)]
        first, last = (np.bincount(of, minlength=len(groups)) for _, of, _, _ in sides)
        own, total = separated.nodes[members], groups.sizes
        lower[own] = np.minimum(lower[own] + groups.spread(first), groups.spread(total))
        upper[own] = np.maximum(upper[own] - groups.spread(last), 1)
        for top, (nodes, of, low, high) in zip((True, False), sides, strict=True):
            at = separated.nodes[nodes]
            lower[at], upper[at] = (low, high) if top else (total[of] + 1 - high, total[of] + 1 - low)
    return lower, upper


def _sequences(
    separated: Separated,
    profiles: Profiles,
    groups: Ragged,
    members: Ints,
    top: bool,
    far: float,
    direct: tuple[Ints, Floats] | None,
) -> tuple[Ints, Ints, Ints, Ints]:
    """Return nodes that surely stand before all that follow, their components, and the places of each one's block.

    Of all components side by side: the outermost block of each, then the one that follows, until one is not sure.
    Places count from the outermost inwards.
    """
    down, up = separated.links if top else separated.links[::-1]
    block, value, count = separated.linked.block, separated.order * (1.0 if top else -1.0), len(separated.value)
    group, rest, beaten = np.full(count, -1), np.zeros(count, bool), np.zeros(int(block.max(initial=0)) + 1, bool)
    group[members], rest[members] = groups.owner, True
    leads, row = Ragged(up.indptr.astype(np.int64)).take(members)
    loser, winner = leads.spread(members), up.indices[row]
    here = rest[winner] & (block[loser] != block[winner])
    loser, winner = loser[here], winner[here]
    passed, found = np.zeros(len(groups), np.int64), [np.zeros((4, 0), np.int64)]
    while rest.any():
        left = members[rest[members]]
        here = rest[winner] & rest[loser]
        loser, winner = loser[here], winner[here]
        beaten[:] = False
        beaten[block[loser]] = True
        ahead = left[~beaten[block[left]]]
        _, first = np.unique(block[ahead], return_index=True)
        one = np.bincount(group[ahead[first]], minlength=len(groups)) == 1
        one &= np.bincount(group[ahead[separated.firm[ahead]]], minlength=len(groups)) == 0
        inner = left[beaten[block[left]]]
        one &= np.bincount(group[inner], minlength=len(groups)) > 0
        rest[left[~one[group[left]]]] = False
        ahead, inner = ahead[one[group[ahead]]], inner[one[group[inner]]]
        near, next_ = (_nearest(nodes, group, by) for nodes, by in ((ahead, value), (inner, -value)))
        sure = one.copy()
        for some in (1, NEAREST):  # as a rule the nearest two decide
            i, j = _beside(near, next_, group, sure, some)
            apart = _apart(profiles, i, j, (down, up), rest, far, top, direct)
            sure[group[i[~apart]]] = False
        rest[left[~sure[group[left]]]] = False
        ahead = ahead[sure[group[ahead]]]
        blocks = np.bincount(group[ahead], minlength=len(groups))
        of = group[ahead]
        found.append(np.stack([ahead, of, passed[of] + 1, passed[of] + blocks[of]]))
        passed += blocks
        rest[ahead] = False
    nodes, of, low, high = np.concatenate(found, axis=1)
    return nodes, of, low, high


def _nearest(nodes: Ints, group: Ints, by: Floats) -> tuple[Ragged, Ints]:
    """The first few nodes of each group by ascending value."""
    nodes = nodes[np.lexsort((by[nodes], group[nodes]))]
    runs = Ragged.runs(group[nodes])
    kept = nodes[runs.place < NEAREST]
    return Ragged.runs(group[kept]), kept


def _beside(
    near: tuple[Ragged, Ints], next_: tuple[Ragged, Ints], group: Ints, sure: Flags, some: int
) -> tuple[Ints, Ints]:
    """Pairs of the first ``some`` on either side of the groups that are still ``sure``, whose groups are the same."""
    (one, i), (two, j) = near, next_
    place, with_ = one.place, Ragged.of_sizes(np.minimum(two.sizes, some)[one.owner])
    first = with_.spread(i)
    second = j[with_.spread(two.first[one.owner]) + with_.place]
    kept = sure[group[first]] & (with_.spread(place) < some)
    if some > 1:
        kept &= (with_.spread(place) > 0) | (with_.place > 0)  # the nearest two are known
    return first[kept], second[kept]


def _apart(
    profiles: Profiles,
    i: Ints,
    j: Ints,
    links: tuple[csr_array, csr_array],
    rest: Flags,
    far: float,
    top: bool,
    direct: tuple[Ints, Floats] | None,
) -> Flags:
    """Whether the likelihood where i and j of each pair are level is ``far`` below the supremum; shape (pairs,)."""
    if direct is not None:
        keys, times = direct
        wanted = (i if top else j) * len(rest) + (j if top else i)
        at = np.searchsorted(keys, wanted, side="right") - 1  # the first key is that of no pair
        return np.asarray(np.log(2.0) * np.where(keys[at] == wanted, times[at], 0.0) >= far)
    between: list[Ints] = []
    for side, ends in zip(links, (i, j), strict=True):
        each, where = np.unique(ends, return_inverse=True)
        groups, nodes = profiles.reached(side, each, rest)
        taken, row = groups.take(where)
        between.append(taken.owner * len(rest) + nodes[row])
    pair, node = np.divmod(np.intersect1d(between[0], between[1], assume_unique=True), len(rest))
    groups = Ragged.counted(pair, len(i))
    return profiles.apart(profiles.level(groups, node, i, j), far)


def _direct(separated: Separated) -> tuple[Ints, Floats]:
    """How many judgments (or clusters) say that one item beats another: where they are level each does so with ½.

    Pairs as winner · n + loser, ascending, and the number of each; before them −1, which none has 0 times.
    """
    batch, edges, n = separated.batch, separated.batch.edges, len(separated.value)
    cluster = clusters_of(batch)
    kept = np.arange(len(edges.holder))  # a judgment says of a pair but once that one item beats the other
    if cluster is not None:
        kept = rows_alike(cluster[edges.holder], edges.winner, edges.loser)[0]
    kept = kept[~edges.tie[kept]]
    times = batch.multiplicity[edges.holder[kept]] if cluster is None else np.ones(len(kept))
    keys, where = np.unique(edges.winner[kept].astype(np.int64) * n + edges.loser[kept], return_inverse=True)
    return np.append(-1, keys), np.append(0.0, np.bincount(where, times, len(keys)))
