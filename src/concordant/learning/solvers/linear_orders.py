"""What a linear scorer can say of pairs: whether it can order all of them, how few it must break, which orders it has.

A pair "a above b" is the open half space {w : (x_a − x_b)'w > 0}; a set of pairs can be ordered as wanted if the half
spaces have a point in common. With rows D of unit length max {t : D w ≥ t, ‖w‖∞ ≤ 1} is a linear program: t > 0 with
such a point, and t = 0 with multipliers y ≥ 0, D'y = 0, whose support is a set of pairs (d + 1 at most) that cannot
hold together. Margins below ``LEAST`` count as none: float64 does not tell them from rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import combinations
from math import comb

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array, hstack

from concordant.progress import stage

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LEAST = 1e-9
"""Sine of the angle between w and the border of a half space, at least, for the pair to be ordered."""
PRECISE = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
AT_ONCE, MORE = 400, 60
"""Rows of a linear program that are written out at once; beyond, those that are broken are added, so many at a time."""
PROGRAMS, COVERS, NODES = 150, 12, 200
"""Of the search for the fewest broken pairs: linear programs, integer programs and nodes of each of these, at most (no
seconds: the answer is the same everywhere)."""
RAYS = 20_000
"""Sets of d − 1 pairs up to which all rays are looked at, and the answer is exact."""


def rows_between(Z: Floats, above: Ints, below: Ints) -> Floats:
    """Return (z_a − z_b)/‖z_a − z_b‖ of each pair, 0 where the two have the same features; shape (pairs, d)."""
    D = Z[above] - Z[below]
    length = np.linalg.norm(D, axis=1, keepdims=True)
    same = length <= 1e-12 * (1.0 + np.abs(Z[above]).max(axis=1, keepdims=True, initial=0.0))
    return np.asarray(np.where(same, 0.0, D / np.where(same, 1.0, length)), np.float64)


@dataclass(frozen=True, eq=False)
class Widest:
    """The point deepest inside of all half spaces, or pairs that cannot hold together."""

    margin: float
    """Least (D w)_i/‖w‖; 0 where there is no common point."""
    point: Floats
    clash: Ints
    """Rows that cannot hold together; empty where the margin is positive."""
    programs: int


def widest(D: Floats, near: Floats | None = None) -> Widest:
    """Return max_w min_i (D w)_i, rows being added as they are broken; ``near``: a point that may be close.

    >>> found = widest(np.array([[1.0, 0.0], [0.0, 1.0], [-0.8, -0.6]]))
    >>> found.margin, found.clash.tolist()
    (0.0, [0, 1, 2])
    """
    rows, d = D.shape
    if rows == 0:
        return Widest(1.0, np.zeros(d) if near is None else near, np.zeros(0, np.int64), 0)
    if rows <= AT_ONCE:
        held = np.arange(rows)
    else:
        first = D @ (D.mean(axis=0) if near is None else near)
        held = np.sort(np.argpartition(first, AT_ONCE // 2)[: AT_ONCE // 2])
    programs = 0
    while True:
        programs += 1
        table = np.hstack((-D[held], np.ones((len(held), 1))))
        cost = np.zeros(d + 1)
        cost[-1] = -1.0
        limits = [*[(-1.0, 1.0)] * d, (0.0, 1.0)]
        found = scipy.optimize.linprog(
            cost, A_ub=table, b_ub=np.zeros(len(held)), bounds=limits, method="highs-ds", options=PRECISE
        )
        if found.x is None:  # the tolerance is beyond what the numbers allow
            found = scipy.optimize.linprog(cost, A_ub=table, b_ub=np.zeros(len(held)), bounds=limits, method="highs")
        point = found.x[:-1]
        reached = D @ point
        length = float(np.linalg.norm(point))
        if length == 0 or float(reached[held].min()) <= LEAST * length:
            multipliers = -found.ineqlin.marginals
            return Widest(0.0, point, held[multipliers > 1e-9 * max(multipliers.max(), 1e-300)], programs)
        lacking = np.setdiff1d(np.flatnonzero(reached < float(found.x[-1]) - 1e-9), held)
        if len(lacking) == 0:
            return Widest(float(reached.min()) / length, point, np.zeros(0, np.int64), programs)
        worst = lacking[np.argsort(reached[lacking], kind="stable")[:MORE]]
        held = np.sort(np.concatenate((held, worst)))


def excluding(D: Floats, first: Floats) -> Ints:
    """Return rows of D that cannot all hold beside ``first``, by no w; none where D and ``first`` hold together.

    Of rows that hold without ``first``, which holds without them.

    >>> excluding(np.array([[0.0, 1.0], [1.0, 1.0], [-1.0, 0.0]]), np.array([[1.0, 0.0]])).tolist()
    [2]
    """
    clash = widest(np.vstack((D, first))).clash
    return clash[clash < len(D)]


@dataclass(frozen=True, eq=False)
class Fewest:
    """How few of some pairs a linear scorer has to break: proven from below, found from above."""

    lower: float
    upper: float
    point: Floats
    """It breaks pairs of the weight ``upper``."""
    broken: NDArray[np.bool_]
    """By ``point``; shape (pairs,)."""

    @property
    def exact(self) -> bool:
        """Whether no linear scorer breaks less than what was found."""
        return self.lower >= self.upper


def fewest_broken(D: Floats, weight: Floats, *, start: Floats | None = None) -> Fewest:
    """Bound the least Σ weight of rows with (D w)_i not above 0, over all w; weights are whole numbers.

    In few dimensions all rays of the arrangement are looked at. Else, of every set of pairs that cannot hold together
    one has to go: the least weight that meets all such sets found so
    far is a bound from below (an integer program), and where what it leaves can hold, it is the answer; else the sets
    that the linear program then finds join. From above: the least that any point met on the way breaks. It ends after
    ``PROGRAMS`` or ``COVERS``, with both bounds. ``start``: a scorer that is known.

    >>> D = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])
    >>> found = fewest_broken(D, np.ones(3))
    >>> found.lower, found.upper, found.exact
    (1.0, 1.0, True)

    Source: minimum covers of irreducible infeasible sets: Parker and Ryan, Ann. Math. Artif. Intell. 17, 1996.
    """
    none = ~D.any(axis=1)
    fixed = float(weight[none].sum())
    live = np.flatnonzero(~none)
    rows, own = D[live], weight[live].astype(np.float64)
    flat = _flat(rows)
    if comb(len(live), max(flat.shape[1] - 1, 0)) <= RAYS:
        cost, inner = _by_rays(rows @ flat, own)
        return Fewest(cost + fixed, cost + fixed, flat @ inner, _broken(D, flat @ inner))
    points = [_elastic(rows, own), *([] if start is None else [start])]
    clashes: list[Ints] = []
    gone, lower = np.zeros(len(live), bool), 0.0
    spent = 0
    with stage("programs", PROGRAMS) as at:
        for _ in range(COVERS):
            new, point = _clashes(rows, ~gone, PROGRAMS - spent, at)
            clashes, spent = clashes + new, spent + len(new) + 1
            points += [] if point is None else [point]
            best = min(points, key=lambda one: float(own[_broken(rows, one)].sum()))
            upper = float(own[_broken(rows, best)].sum())
            if not new:
                break
            gone, bound = _cover(clashes, own)
            lower = max(lower, float(np.ceil(bound - 1e-6)))
            if spent >= PROGRAMS or lower >= upper:
                break
    return Fewest(lower + fixed, upper + fixed, best, _broken(D, best))


def _flat(D: Floats) -> Floats:
    """Return an orthonormal basis of the space of the rows, as columns."""
    _, size, basis = np.linalg.svd(D, full_matrices=False)
    return np.asarray(basis[size > 1e-9 * max(size.max(initial=0.0), 1.0)].T, np.float64)


def _by_rays(D: Floats, weight: Floats, most: float = np.inf) -> tuple[float, Floats]:
    """Return the least weight of broken rows and a point, D of full column rank d: by all rays of the arrangement.

    The best cell has an extreme ray, where d − 1 independent rows vanish. What is strictly broken on it is broken in
    the cell, and how to break least of the rows that vanish is the same question in the d − 1 dimensions across it.
    """
    rows, d = D.shape
    if d == 0:
        return 0.0, np.zeros(0)
    if d == 1:
        costs = [float(weight[sign * D[:, 0] <= 0].sum()) for sign in (1.0, -1.0)]
        return min(costs), np.array([1.0 if costs[0] <= costs[1] else -1.0])
    chosen = np.array([*combinations(range(rows), d - 1)], np.int64)
    _, size, across = np.linalg.svd(D[chosen])
    rays = across[size[:, -1] > 1e-9, -1]
    rays = np.concatenate((rays, -rays))
    values = rays @ D.T
    costs = np.where(values < -1e-9, weight, 0.0).sum(axis=1)
    best, point = most, np.zeros(d)
    seen: set[bytes] = set()
    for at in np.argsort(costs, kind="stable"):
        if costs[at] >= best:
            break
        level = np.abs(values[at]) <= 1e-9
        if (mark := np.sign(np.where(level, 0.0, values[at])).astype(np.int8).tobytes()) in seen:
            continue
        seen.add(mark)
        flat = _flat(D[level])
        cost, inner = _by_rays(D[level] @ flat, weight[level], best - costs[at])
        if costs[at] + cost < best:
            best = float(costs[at]) + cost
            step, now = D @ (flat @ inner), values[at]
            falling = ~level & (step * np.sign(now) < 0)
            reach = float((np.abs(now[falling]) / np.abs(step[falling])).min(initial=1.0))
            point = rays[at] + 0.5 * reach * (flat @ inner)
    return best, point / max(float(np.linalg.norm(point)), 1e-300)


def _clashes(
    D: Floats, alive: NDArray[np.bool_], most: int, told: Callable[[], object]
) -> tuple[list[Ints], Floats | None]:
    """Return sets of pairs that cannot hold together, none in two of them, and a point that has all the others.

    After ``most`` sets it stops, without a point. ``told`` is called after each linear program.
    """
    found: list[Ints] = []
    left = alive.copy()
    while len(found) < most:
        held = np.flatnonzero(left)
        one = widest(D[held])
        told()
        if len(one.clash) == 0:
            return found, one.point
        found.append(held[one.clash])
        left[found[-1]] = False
    return found, None


def _cover(clashes: list[Ints], weight: Floats) -> tuple[NDArray[np.bool_], float]:
    """Return pairs of the least weight of which each set holds one, and that weight, proven from below."""
    owner = np.repeat(np.arange(len(clashes), dtype=np.int32), [len(one) for one in clashes])
    held = np.concatenate(clashes).astype(np.int32)  # milp of SciPy before 1.15 takes no other
    table = csr_array((np.ones(len(owner)), (owner, held)), shape=(len(clashes), len(weight)))
    found = scipy.optimize.milp(
        weight,
        constraints=[scipy.optimize.LinearConstraint(table, lb=1.0)],
        integrality=np.ones(len(weight)),
        bounds=scipy.optimize.Bounds(0.0, 1.0),
        options={"node_limit": NODES, "mip_rel_gap": 0.0},
    )
    bound = 0.0 if found.mip_dual_bound is None else float(found.mip_dual_bound)
    chosen = np.ones(len(weight), bool) if found.x is None else found.x > 0.5
    return chosen, bound


def _broken(D: Floats, point: Floats) -> NDArray[np.bool_]:
    return np.asarray(D @ point <= LEAST * max(float(np.linalg.norm(point)), 1e-300), bool)


def _elastic(D: Floats, weight: Floats) -> Floats:
    """Return the minimiser of Σ weight max(0, 1 − D w), the convex stand-in."""
    rows, d = D.shape
    if rows == 0:
        return np.zeros(d)
    table = hstack((-D, -diags_array(np.ones(rows)))).tocsr()
    limits = [*[(-1e6, 1e6)] * d, *[(0.0, None)] * rows]
    cost = np.concatenate((np.zeros(d), weight))
    found = scipy.optimize.linprog(cost, A_ub=table, b_ub=-np.ones(rows), bounds=limits, method="highs")
    return np.asarray(found.x[:d] if found.x is not None else np.zeros(d), np.float64)


def most_kept(D: Floats, weight: Floats, held: Floats | None = None) -> tuple[NDArray[np.bool_], Floats]:
    """Return pairs that can all hold, to which none can be added, and the point deepest inside of them.

    Those that the convex stand-in keeps come first, then the others, each by their weight where it can hold beside all
    that were taken and the half spaces ``held``, which have a common point.

    >>> kept, point = most_kept(np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]]), np.array([2.0, 1.0, 1.0]))
    >>> kept.tolist(), bool(point[0] > 0)
    ([True, False, True], True)
    """
    base = D[:0] if held is None else held
    some: NDArray[np.bool_] = np.asarray(D.any(axis=1), bool)
    found = widest(np.vstack((base, D[some])))
    if len(found.clash) == 0:
        return some, found.point
    many = np.full(len(base), 1.0 + float(weight.sum()))
    lost = _broken(D, _elastic(np.vstack((base, D)), np.append(many, weight)))
    kept = some & ~lost
    inside = widest(np.vstack((base, D[kept])))
    if len(inside.clash):
        kept, inside = np.zeros(len(D), bool), widest(base)
    point = inside.point
    for row in np.lexsort((-weight, lost)):
        if kept[row] or not some[row]:
            continue
        if D[row] @ point <= LEAST * float(np.linalg.norm(point)):
            one = widest(np.vstack((base, D[kept], D[[row]])), point)
            if len(one.clash):
                continue
            point = one.point
        kept[row] = True
    return kept, widest(np.vstack((base, D[kept])), point).point


@dataclass(frozen=True, eq=False)
class Leximax:
    """The order of the rule as far as it was proven, and a scorer that has it."""

    point: Floats
    rows: Floats
    """Half spaces that the point lies in: the pairs asked for, and those of the places that are proven."""
    order: list[list[int]]
    """Of each query its nodes, the first of its blocks of equal features, in the proven places."""
    programs: int
    exact: bool
    """Whether all places asked for are proven."""
    margin: float
    """The least margin of a place that was taken by a linear program."""


@dataclass(eq=False)
class _Query:
    """The items of a query that have no place yet, the best first, and whom each is known to be blocked by."""

    rest: list[int]
    front: Floats
    """The half spaces of the last item that was placed, above each of the rest."""
    placed: list[int] = field(default_factory=list)
    blocked: dict[int, set[int]] = field(default_factory=dict)

    def take(self, item: int, Z: Floats) -> None:
        """Give the item the next place."""
        self.rest.remove(item)
        self.placed.append(item)
        self.front = rows_between(Z, np.full(len(self.rest), item), np.array(self.rest, np.int64))


def leximax(
    Z: Floats, queries: list[list[int]], asked: Floats, point: Floats, *, places: int | None = None, programs: int
) -> Leximax:
    """Give place after place to the best item that a linear scorer can still put there.

    Of each query (nodes, the best first) the first place goes to the first item for which some w has it above all
    others, then the second to the first that some w has above the rest, with what was decided before; place by place,
    at each the queries in their order. An item that cannot have a place stays blocked as long as those with whom that
    was proven have none, so most need no second program; what the last point puts first needs none.

    Parameters
    ----------
    Z : (nodes, d) features.
    queries : of each query its nodes, the best first; nodes of equal features once.
    asked : (pairs, d) half spaces that hold throughout, with ``point`` inside.
    point : (d,) where to begin.
    places : places of each query, at most; None: all.
    programs : linear programs, at most.

    >>> Z = np.array([[0.0], [1.0], [2.0]])
    >>> found = leximax(Z, [[1, 0, 2]], np.zeros((0, 1)), np.ones(1), programs=99)
    >>> found.order, found.point.tolist()
    ([[0, 1, 2]], [-1.0])

    Source: Ge, Halpern, Micha, Procaccia, Shapira, Vorobeychik and Wu (2024), Section 4.
    """
    none = np.zeros((0, Z.shape[1]))
    state = [_Query(list(nodes), none) for nodes in queries]
    chain, spent, least = asked, 0, 1.0
    most = max((len(one) for one in queries), default=0) - 1
    most = most if places is None else min(places, most)
    turns = [(place, query) for place in range(most) for query in state]
    exact = True
    for _, query in turns:
        if len(query.rest) < 2:
            continue
        held = np.vstack([chain, *(one.front for one in state if one is not query)])
        rest = np.array(query.rest, np.int64)
        lead = int(rest[int(np.argmax(Z[rest] @ point))])
        chosen = None
        for item in query.rest:
            if item in query.blocked and query.blocked[item].isdisjoint(query.placed):
                continue
            others = rest[rest != item]
            above = rows_between(Z, np.full(len(others), item), others)
            if item == lead and (above @ point).min() > LEAST * np.linalg.norm(point):
                chosen = item
                break
            if spent >= programs:
                break
            own = np.vstack((held, _step(Z, query, item)))
            found = widest(np.vstack((own, above)), point)
            spent += found.programs
            if len(found.clash) == 0:
                chosen, point, least = item, found.point, min(least, found.margin)
                break
            query.blocked[item] = set(others[found.clash[found.clash >= len(own)] - len(own)].tolist())
        if chosen is None:
            exact = False
            break
        chain = np.vstack((chain, _step(Z, query, chosen)))
        query.take(chosen, Z)
    rows = np.vstack([chain, *(one.front for one in state)])
    order = [one.placed + (one.rest if len(one.rest) == 1 else []) for one in state]
    return Leximax(point, rows, order, spent, exact, least)


def _step(Z: Floats, query: _Query, item: int) -> Floats:
    """The half space of the last item that was placed above the next, where there is one."""
    last = np.array(query.placed[-1:], np.int64)
    return rows_between(Z, last, np.full(len(last), item))


def pushed(rows: Floats, inside: Floats, wanted: Floats) -> Floats:
    """Return the point as far from ``inside`` towards the direction ``wanted`` as the half spaces allow, less 1%.

    >>> pushed(np.array([[1.0, 0.0]]), np.array([1.0, 0.0]), np.array([-1.0, 1.0])).round(3).tolist()
    [0.01, 0.41]
    """
    size = float(np.linalg.norm(wanted))
    if size == 0:
        return inside
    aim = wanted * (np.linalg.norm(inside) / size if np.any(inside) else 1.0)
    if (rows @ aim > LEAST * np.linalg.norm(aim)).all():
        return wanted
    now, step = rows @ inside, rows @ (aim - inside)
    falling = step < 0
    reach = float((now[falling] / -step[falling]).min(initial=1.0))
    return np.asarray(inside + 0.99 * reach * (aim - inside), np.float64)
