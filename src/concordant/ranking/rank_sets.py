"""Which ranks the data leave open: four statements, each with its own critical value (Mogstad, Romano, Shaikh and
Wilhelm, Review of Economic Studies 91, 2024).

*together*: the ranks of all items of a component at once. Item i is certainly above j when (s_i − s_j)/s.e. exceeds the
critical value c, the quantile of the largest such t of the hypotheses "s_i ≤ s_j" that are not yet rejected; c is drawn
again without the rejected ones until none falls (their §3.3 and Romano and Wolf, JASA 100, 2005). The rank of i lies in
[1 + certainly above it, n − certainly below it]. Where the data limit some items on one side, the differences take half
of the error, here and below, and who is surely first or last by one-sided limits the other half
(``rank_intervals.outermost``).

*alone*: the rank of one item, whatever is said of others: c is that of its own n − 1 differences.

*top*: a set that holds all of the first k. With the true first k in a set C, none of them leaves it unless some t of
"another item is above j", j in C, exceeds c; so C starts with all items, loses those with k items certainly above them,
and c is drawn again for what is left (step-down as above). For k = 1 there is only one item not to lose, and c is that
of each candidate's own differences (Hsu, Annals of Statistics 9, 1981).

*tiers*: cuts of the order after k items that are all certainly among the first k, by *together*: of two items in
different tiers the one in the better tier is better, for all such pairs at once. Within a tier the data cannot split
the order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import ndtri

from concordant.errors import Idle, Setting, UsageError, did_you_mean, whole_number
from concordant.progress import steps
from concordant.ranking.joint import Varying
from concordant.ranking.largest import Held, critical, quantile
from concordant.ranking.rank_intervals import among_others, outermost

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
KINDS = ("together", "alone", "top", "tiers")
OWN = 2e9
"""Items squared × draws up to which every item has a critical value of its own."""
EQUAL = 1e-9
"""A t above a draw by no more than this share is equal to it: of few signs what was seen is one of the draws."""


def rank_sets(joint: Varying, kind: str, top: int | None, nodes: Ints, items: pa.Array, ranked: Flags) -> pa.Table:
    """Return what ``Ranking.rank_sets`` says of some nodes, in their order; ``items`` are their labels.

    ``ranked``: which nodes have a rank; of the others nothing is said, nor do they count for the ranks.
    """
    if kind not in KINDS:
        raise UsageError(f"unknown kind of rank set {kind!r}; {did_you_mean(str(kind), KINDS)}")
    if kind == "top" and top is None:
        raise UsageError("the first how many? Give ", Setting("top", 3), ", for instance")
    if kind != "top" and top is not None:
        raise Idle("top", f"the kind of rank sets is {kind}", "leave it out, or take the kind top")
    group = joint.group.astype(np.int64)
    never = ~ranked[nodes]
    columns = {"component": group[nodes] + 1, "item": items}
    if kind == "alone":
        lower, upper = _alone(joint, nodes, group, ranked)
        return pa.table(columns | _bounds(lower[nodes], upper[nodes], never))
    if kind == "top":
        k = whole_number(top, "top")
        among = _first(joint, ranked) if k == 1 else _among_first(joint, k, ranked)
        among &= _with_separated(joint, *_open(joint, group), group, ranked)[0] <= k
        return pa.table(columns | {"among_first": pa.array(among[nodes], mask=never)})
    lower, upper = _together(joint, group, ranked)
    if kind == "together":
        return pa.table(columns | _bounds(lower[nodes], upper[nodes], never))
    tiers = _tiers(upper, joint.value, np.where(ranked, group, -1))
    return pa.table(columns | {"tier": pa.array(tiers[nodes], mask=never)})


def _bounds(lower: Ints, upper: Ints, never: Flags) -> dict[str, pa.Array]:
    """Columns of ranks, missing for items without one."""
    return {"rank_lower": pa.array(lower, mask=never), "rank_upper": pa.array(upper, mask=never)}


def _together(joint: Varying, group: Ints, ranked: Flags) -> tuple[Ints, Ints]:
    """Ranks of all nodes; items that the data limit on one side take half of the error, as in the columns."""
    above = certainly_above(joint, ranked, joint.level_of_differences)
    lower, upper = _open(joint, group)
    return _with_separated(joint, lower + above.sum(axis=0), upper - above.sum(axis=1), group, ranked)


def _open(joint: Varying, group: Ints) -> tuple[Ints, Ints]:
    """All ranks of a component, for each of its nodes."""
    size = np.bincount(group, joint.compared).astype(np.int64)[group]
    return np.ones(len(size), np.int64), size


def _with_separated(joint: Varying, lower: Ints, upper: Ints, group: Ints, ranked: Flags) -> tuple[Ints, Ints]:
    """Narrow ranks by which separated items surely stand first or last; then count the ranked items only."""
    lower, upper = outermost(lower, upper, joint.separated, joint.level)
    return among_others(lower, upper, group, joint.compared & ~ranked)


def _t(joint: Varying, ranked: Flags) -> tuple[Floats, Floats]:
    """(s_i − s_j)/s.e. of all ordered pairs of the ranked items, −inf where not determined, and 1/s.e., 0 there."""
    error = joint.pair_errors
    known = np.isfinite(error) & ranked[:, None] & ranked
    weight = np.divide(1.0, error, out=np.zeros_like(error), where=known)
    t = (joint.value[:, None] - joint.value) * weight
    return np.where(known, t - EQUAL * np.abs(t), -np.inf), weight


def _step_down(
    joint: Varying, weight: Floats, reject: Callable[[float], Flags], left: Callable[[Flags], Flags], level: float
) -> Flags:
    """Reject hypotheses by ever smaller critical values, those of the hypotheses that are ``left``."""
    group = joint.group.astype(np.int64)
    rejected, held = np.zeros(weight.shape, bool), Held.of(len(joint.draws))
    while True:
        found = rejected | reject(critical(joint.draws, np.where(left(rejected), weight, 0.0), group, level, held))
        if (found == rejected).all():
            return rejected
        rejected = found


def certainly_above(joint: Varying, ranked: Flags, level: float | None = None) -> Flags:
    """Return which items are certainly above which, all statements at once; shape (items, items).

    Entry i, j: item i is above item j. ``level``: the joint's where not given.
    """
    level = joint.level if level is None else level
    held: dict[Any, Flags] = vars(joint).setdefault("_certain", {})
    key = level, ranked.tobytes()
    if key not in held:
        t, weight = _t(joint, ranked)
        held[key] = _step_down(joint, weight, lambda least: t > least, lambda rejected: ~rejected, level)
    return held[key]


def _among_first(joint: Varying, k: int, ranked: Flags) -> Flags:
    """Which items may be among the first k of their component."""
    t, weight = _t(joint, ranked)

    def reject(least: float) -> Flags:
        out = (t > least).sum(axis=0) >= k
        return np.asarray(np.broadcast_to(out, t.shape), bool)

    out = _step_down(joint, weight, reject, lambda rejected: ~rejected, joint.level_of_differences)[0]
    return np.asarray(~out, bool)


def _first(joint: Varying, ranked: Flags) -> Flags:
    """Which items may be the first of their component: each candidate by the law of its own differences.

    Its critical value lies between that of one difference and that of all, so few candidates need draws.
    """
    t, weight = _t(joint, ranked)
    draws, ahead, level = joint.draws, t.max(axis=0), joint.level_of_differences
    all_of_them = critical(draws, weight, joint.group.astype(np.int64), level)
    out = np.asarray(ahead <= all_of_them, bool)
    least = float(ndtri(level)) if joint.normal else 0.0
    for j in steps("candidates", np.flatnonzero(out & (ahead > least)).tolist()):
        others = np.flatnonzero(weight[:, j])
        most = ((draws[:, others] - draws[:, [j]]) * weight[others, j]).max(axis=1)
        out[j] = ahead[j] <= quantile(most, level)
    return out


def _alone(joint: Varying, nodes: Ints, group: Ints, ranked: Flags) -> tuple[Ints, Ints]:
    """Ranks of all nodes, each of ``nodes`` by the critical value of its own differences."""
    t, weight = _t(joint, ranked)
    draws, level = joint.draws, joint.level_of_differences
    if float(len(nodes)) * joint.size * len(draws) > OWN:
        raise UsageError(
            f"rank sets of {len(nodes):,} of {joint.size:,} items, each with a critical value of its own, take long: "
            "name the items that matter"
        )
    lower, upper = _open(joint, group)
    for j in steps("items", nodes.tolist()):
        others = np.flatnonzero(weight[j])
        if len(others) == 0:
            continue
        scaled = (draws[:, others] - draws[:, [j]]) * weight[j, others]
        ahead = t[others, j]
        up, down = np.zeros(len(others), bool), np.zeros(len(others), bool)
        while True:  # hypotheses "other is not above j" and "j is not above other" that are left
            most = np.maximum(_most(scaled[:, ~up]), _most(-scaled[:, ~down]))
            least = float(quantile(most, level))
            more_up, more_down = up | (ahead > least), down | (-ahead > least)
            if (more_up == up).all() and (more_down == down).all():
                break
            up, down = more_up, more_down
        lower[j], upper[j] = 1 + up.sum(), upper[j] - down.sum()
    return _with_separated(joint, lower, upper, group, ranked)


def _most(values: Floats) -> Floats:
    return np.asarray(values.max(axis=1, initial=0.0))


def _tiers(upper: Ints, value: Floats, group: Ints) -> Ints:
    """Number of the tier of each item in its component: a cut after k items of which none has a rank beyond k."""
    tier = np.ones(len(value), np.int64)
    for number in np.unique(group):
        nodes = np.flatnonzero(group == number)
        nodes = nodes[np.argsort(-value[nodes], kind="stable")]
        cut = np.maximum.accumulate(upper[nodes])[:-1] <= np.arange(1, len(nodes))
        tier[nodes[1:]] = 1 + np.cumsum(cut)
    return tier
