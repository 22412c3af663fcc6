"""H(ε) of AoS (8) over classes of populations, and ζ of Theorem 1: bounds that are proven, each from both sides.

A population is given by numbers θ in which the surrogate is linear: shares of single comparisons, Σ θ = 1, or the
expected gains E G(s)/Z(s) of a law of scores. With the right order fixed, a set W of contradicted preferences confines
α to a cone and θ to a polytope (class, normalisation, target excess ≥ ε), and H(ε) is the least over W of

    e_W(θ) = min over the cone of ℓ_φ(α, θ) − min over all α of ℓ_φ(α, θ).

- *Difference graph*, acyclic: no loss is left in the right order, and a contradicted edge costs φ(0) at least, so
  H(ε) = φ(0) ε, whatever the number of items.
- *Square penalties* (linear, gain regression): e_W is the square of a distance, convex in (α, θ) together: a convex
  quadratic programme for each W. Below, its linearisation at the solution found, least over the polytope.
- *Others, three items*: on a simplex of θ with vertices v, for any α₀, e_W(θ) ≥ min over the cone of ℓ_φ(α, θ) −
  ℓ_φ(α₀, θ), which is concave in θ, hence at least its least value at the vertices. Simplices are halved until the
  bound meets the best population found, or the budget ends.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog, minimize

from concordant.auditing.counterexamples import PopulationSearch
from concordant.auditing.polytopes import PRECISE, corners, simplices
from concordant.auditing.small_populations import class_rows, every_pair
from concordant.auditing.suboptimality import Between, _at_least_0, set_partitions, suboptimality
from concordant.errors import UsageError, whole_number
from concordant.losses.gains import inverse_discount
from concordant.losses.minimise import minimise
from concordant.losses.objective import Objective, Population, Relevance, WeightedEdges
from concordant.losses.pair_losses import pair_loss, value_penalty
from concordant.losses.surrogates import Chosen, choose

Floats = NDArray[np.float64]
Nodes = NDArray[np.int64]
CLASSES = ("low noise", "acyclic", "any")
MOST_ITEMS = {"linear": 4, "gain-regression": 5}
"""Items of the quadratic programmes; the branch and bound takes three."""
BATCH = 1024
SAME = 1e-12


@dataclass(frozen=True, eq=False)
class UniformSuboptimality:
    """Bounds of H(ε), with a population and scores that show the upper one."""

    surrogate: str
    within: str
    epsilon: float
    lower: float
    upper: float
    """∞ where no population of the class has so much to lose."""
    population: Floats | None
    """Shares of the comparisons, (items, items), row over column; or expected gains, (items,)."""
    scores: Floats | None
    """Scores that lose ``epsilon`` there at a surrogate excess of ``upper`` (the limit, where that is not attained)."""
    method: str
    """closed form, quadratic programmes, a witness, or branch and bound."""


def uniform_suboptimality(
    surrogate: str,
    epsilon: float,
    *,
    within: str = "low noise",
    items: int = 3,
    tolerance: float = 1e-3,
    budget: int = 20_000,
    **options: Any,
) -> UniformSuboptimality:
    """Bound H(ε): the least surrogate excess, over a class of populations, that goes with a target excess of ε.

    H(ε) = inf_{μ, α} {ℓ_φ(α, μ) − inf ℓ_φ(·, μ) | ℓ(α, μ) − inf ℓ(·, μ) ≥ ε}; ties of α are charged the worst way.
    Where H(ε) > 0 for every ε > 0 the surrogate is uniformly consistent on the class (Definition 2, Proposition 1).
    Over *all* populations H(ε) is 0 for small ε and the pairwise loss: where three items are preferred in a circle
    every convex surrogate that treats items alike has a minimiser with all level, which loses 2/3 (and where the best
    order of many items is NP-hard to find no tractable convex surrogate finds it, Proposition 3). So a class is named.

    Parameters
    ----------
    surrogate : a name of the registry, with another φ as "name:phi"; not err-pairwise.
    epsilon : target excess, of the pairwise loss or of 1 − NDCG.
    within : populations of single comparisons of strength 1 whose shares add up to 1 and whose net preferences are in
        'low noise' (Definition 4), 'acyclic', or 'any'. For surrogates of scores all laws of scores, whatever is named.
    items : difference-graph any number, linear up to 4, gain-regression up to 5, the others 3 (for 'any' all of them).
    tolerance : the branch and bound ends when the bounds are so close.
    budget : its number of simplices; then the bounds are as far apart as they are.
    **options : options of the surrogate.

    Errors: UsageError for what is not in these lists.

    >>> found = uniform_suboptimality("difference-graph:hinge", 0.1, within="acyclic", items=7)
    >>> found.lower, found.upper, found.method
    (0.1, 0.1, 'closed form')
    >>> found = uniform_suboptimality("ranknet", 0.05)  # inconsistent in low noise, up to (3 − √6)/6
    >>> found.upper, found.method
    (0.0, 'a witness')

    Source: Duchi, Mackey and Jordan (2013), (8), Propositions 1 and 3, Theorem 1.
    """
    _at_least_0("epsilon", epsilon)
    _at_least_0("tolerance", tolerance)
    whole_number(items, "items", 2)
    whole_number(budget, "budget", 1)
    within = within.replace("-", " ")
    if within not in CLASSES:
        raise UsageError(f"within must be {', '.join(map(repr, CLASSES[:-1]))} or 'any', not {within!r}")
    chosen = choose([surrogate])[0]
    if chosen.target == "err":
        raise UsageError(f"{chosen.name}: an excess of ERR is not linear in the population; H(ε) is not bounded here")
    case = _Case(chosen, within if chosen.target == "pairwise" else "any law", epsilon, items, options)
    if epsilon == 0:
        return case.known(0.0, None, None, "closed form")
    if chosen.target == "pairwise" and within == "any":
        if items == 2:
            case = _Case(chosen, "acyclic", epsilon, items, options)
        else:
            return _circle(case)
    if chosen.name.startswith("difference-graph"):
        return _cancelled(case)
    most = MOST_ITEMS.get(chosen.member.name, 3)
    if items > most:
        raise UsageError(f"{chosen.name} within {case.within!r} is bounded for up to {most} items, not {items}")
    if chosen.member.name in MOST_ITEMS:
        return _by_programmes(case)
    witness = _witness(case) if chosen.target == "pairwise" and items > 2 else None
    return witness if witness is not None else _Branching(case).run(tolerance, budget)


@dataclass(frozen=True)
class _Case:
    """What is asked for."""

    chosen: Chosen
    within: str
    epsilon: float
    items: int
    options: dict[str, Any]

    def known(self, value: float, population: Floats | None, scores: Floats | None, how: str) -> UniformSuboptimality:
        return self.told(value, value, population, scores, how)

    def told(
        self, lower: float, upper: float, population: Floats | None, scores: Floats | None, how: str
    ) -> UniformSuboptimality:
        return UniformSuboptimality(self.chosen.name, self.within, self.epsilon, lower, upper, population, scores, how)

    def impossible(self) -> UniformSuboptimality:
        """No population has so much to lose."""
        return self.known(np.inf, None, None, "closed form")

    def objective(self, source: Population | Relevance) -> Objective:
        return self.chosen.member.objective(source, phi=self.chosen.phi, **self.options)


def _table(items: int, shares: Floats) -> Floats:
    """Shares of ``every_pair`` as a matrix, winner × loser."""
    table = np.zeros((items, items))
    table[tuple(every_pair(items).T)] = shares
    return table


def _people(table: Floats) -> Population:
    winner, loser = np.nonzero(table)
    return Population(np.array([0, len(table)]), winner, loser, np.ones(len(winner)), table[winner, loser])


def _judged(case: _Case, table: Floats) -> tuple[float, Floats | None]:
    """H(ε, μ) of a matrix of shares, and scores that have it: an upper bound of H(ε)."""
    found = suboptimality(_people(table), case.chosen.name, **case.options)
    place = int(np.searchsorted(found.target_excess, case.epsilon * (1 - SAME)))
    return found.at(case.epsilon).upper, found.scores[place] if place < len(found.scores) else None


def _circle(case: _Case) -> UniformSuboptimality:
    """A circle of three; more than it loses, the bounds are 0 and what a single preference needs."""
    table = np.zeros((case.items, case.items))
    table[[0, 1, 2], [1, 2, 0]] = 1 / 3
    upper, scores = _judged(case, table)
    if upper <= PRECISE:
        return case.known(0.0, table, scores, "a witness")
    alone = np.zeros((case.items, case.items))
    alone[0, 1] = 1.0
    single, at = _judged(case, alone)
    if not np.isfinite(min(upper, single)):
        return case.impossible()
    return case.told(0.0, *((upper, table, scores) if upper < single else (single, alone, at)), "a witness")


def _cancelled(case: _Case) -> UniformSuboptimality:
    """φ(0) ε: only one net preference, of ε, contradicted by a tie; everything else is even."""
    case.objective(_people(np.array([[0.0, 1.0], [0.0, 0.0]])))  # refuses unknown options
    if case.epsilon > 1 + SAME:
        return case.impossible()
    value = float(pair_loss(case.chosen.phi).value(np.zeros(1))[0]) * case.epsilon
    table = np.zeros((case.items, case.items))
    table[0, 1], table[1, 0] = (1 + case.epsilon) / 2, (1 - case.epsilon) / 2
    return case.known(value, table, np.zeros(case.items), "closed form")


def _witness(case: _Case) -> UniformSuboptimality | None:
    """A population on which minimisers lose ε: H(ε) = 0."""
    search = PopulationSearch(lambda source: case.objective(source), case.items, case.within)
    for one in search.candidates(400, np.random.default_rng(0)):
        if one.regret < case.epsilon * (1 - SAME):
            continue
        found = search.shares(one, clear=False)
        if found is None:
            continue
        table = _table(case.items, np.where(found[0] > PRECISE, found[0], 0.0))
        table /= table.sum()
        # shares of a linear programme are right to 1e-9, and so is the regret
        upper, scores = _judged(
            _Case(case.chosen, case.within, case.epsilon - PRECISE, case.items, case.options), table
        )
        if upper <= PRECISE:
            return case.known(0.0, table, scores, "a witness")
    return None


# -- polytopes ---------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class _Region:
    """A cone of scores and the populations on which all of it loses ε: rows · θ ≥ right, equal · θ = sums."""

    below: tuple[tuple[int, int], ...]
    """(i, j): α_i ≤ α_j."""
    rows: Floats
    right: Floats
    equal: Floats
    sums: Floats


def _regions(case: _Case) -> Iterator[_Region]:
    return _regions_of_gains(case) if case.chosen.target == "ndcg" else _regions_of_pairs(case)


def _regions_of_pairs(case: _Case) -> Iterator[_Region]:
    pairs, items = every_pair(case.items), case.items
    rows = np.vstack((np.eye(len(pairs)), class_rows(pairs, items, case.within)))
    forward = list(itertools.combinations(range(items), 2))
    for number in range(1, len(forward) + 1):
        for wrong in itertools.combinations(forward, number):
            net = sum((pairs == (i, j)).all(axis=1) * 1.0 - (pairs == (j, i)).all(axis=1) for i, j in wrong)
            yield _Region(
                wrong,
                np.vstack((rows, net)),
                np.append(np.zeros(len(rows)), case.epsilon),
                np.ones((1, len(pairs))),
                np.ones(1),
            )


def _regions_of_gains(case: _Case) -> Iterator[_Region]:
    """Expected G/Z of laws of scores: g ≥ 0, Σ g ≥ 1, Z(g) ≤ 1 (the convex hull of all g with Z(g) = 1).

    The ends of the simplex are laws with one good item; any other g lies between its multiple there and that on Z = 1.
    """
    items = case.items
    inverse = inverse_discount(items, at={**case.chosen.member.defaults, **case.options}.get("at"))
    sorted_ = np.eye(items)[:-1] - np.eye(items)[1:]
    rows = np.vstack((np.eye(items), sorted_, np.ones(items), -inverse))
    right = np.concatenate((np.zeros(2 * items - 1), [1.0, -1.0]))
    for order in itertools.permutations(range(items)):
        lost = inverse.copy()
        lost[list(order)] -= inverse
        if (lost != 0).any():
            chain = tuple((order[place + 1], order[place]) for place in range(items - 1))
            yield _Region(
                chain, np.vstack((rows, lost)), np.append(right, case.epsilon), np.zeros((0, items)), np.zeros(0)
            )


# -- quadratic programmes ----------------------------------------------------------------------------------------
def _by_programmes(case: _Case) -> UniformSuboptimality:
    """min weight · |α − M θ|² over a cone and a polytope, for each of them: convex in both."""
    items = case.items
    settings = {**case.chosen.member.defaults, **case.options}
    if case.chosen.target == "pairwise":
        case.objective(_people(np.array([[0.0, 1.0], [0.0, 0.0]])))
        pairs = every_pair(items)
        matrix = np.zeros((items, len(pairs)))
        matrix[pairs[:, 0], np.arange(len(pairs))] += 0.5 / settings["nu"]
        matrix[pairs[:, 1], np.arange(len(pairs))] -= 0.5 / settings["nu"]
        weight = float(settings["nu"])
    else:
        if not settings["normalised"]:
            raise UsageError(f"{case.chosen.name}: NDCG asks for gains that are normalised")
        case.objective(Relevance.of([1.0, 0.0]))
        matrix, weight = np.eye(items), 0.5 / items
    best: tuple[float, Floats, Floats] | None = None
    lower = np.inf
    for region in _regions(case):
        found = _programme(region, matrix, weight)
        if found is None:
            continue
        lower = min(lower, found[0])
        if best is None or found[1] < best[0]:
            best = found[1:]
    if best is None:
        return case.impossible()
    upper, scores, theta = best
    shown = _table(items, theta) if case.chosen.target == "pairwise" else theta
    return case.told(min(max(lower - SAME, 0.0), upper), upper, shown, scores, "quadratic programmes")


def _programme(region: _Region, matrix: Floats, weight: float) -> tuple[float, float, Floats, Floats] | None:
    """Lower bound, value, α and θ; None when the polytope is empty."""
    items, number = matrix.shape
    cone = np.zeros((len(region.below), items + number))
    for row, (i, j) in zip(cone, region.below, strict=True):
        row[i], row[j] = -1.0, 1.0
    above = np.vstack((cone, np.hstack((np.zeros((len(region.rows), items)), region.rows))))
    least = np.concatenate((np.zeros(len(cone)), region.right))
    equal = np.hstack((np.zeros((len(region.equal), items)), region.equal))
    reach = float(np.abs(matrix).max()) + 1.0  # α nearest to M θ in the cone lies between its entries
    bounds = [(-reach, reach)] * items + [(0.0, 1.0)] * number
    both = np.hstack((np.eye(items), -matrix))
    rules: dict[str, Any] = {"A_ub": -above, "b_ub": -least, "bounds": bounds}
    if len(equal):
        rules |= {"A_eq": equal, "b_eq": region.sums}

    def value(x: Floats) -> float:
        return float(weight * np.sum((both @ x) ** 2))

    def slope(x: Floats) -> Floats:
        return np.asarray(2.0 * weight * both.T @ (both @ x), np.float64)

    start = linprog(np.zeros(items + number), method="highs", **rules)
    if start.status != 0:
        return None
    constraints = [{"type": "ineq", "fun": lambda x: above @ x - least, "jac": lambda _: above}]
    if len(equal):
        constraints.append({"type": "eq", "fun": lambda x: equal @ x - region.sums, "jac": lambda _: equal})
    x = start.x
    found = minimize(
        value,
        x,
        jac=slope,
        bounds=bounds,
        constraints=constraints,
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 500},
    )
    inside = (above @ found.x >= least - PRECISE).all() and np.abs(equal @ found.x - region.sums).max(
        initial=0
    ) < PRECISE
    x = found.x if inside and value(found.x) < value(x) else x
    lower = 0.0
    for _ in range(50):  # the linearisation is below; a step towards its end, where it is far
        end = linprog(slope(x), method="highs", **rules).x
        gap = float(slope(x) @ (x - end))
        lower = max(lower, value(x) - max(gap, 0.0))
        if gap <= PRECISE * max(value(x), PRECISE):
            break
        step = end - x
        bend = 2.0 * weight * float(np.sum((both @ step) ** 2))
        x = x + step * (1.0 if bend <= gap else gap / bend)
    return lower, value(x), x[:items], x[items:]


# -- branch and bound --------------------------------------------------------------------------------------------
class _Branching:
    """Best first: the simplex of the least lower bound is halved along its longest side."""

    def __init__(self, case: _Case) -> None:
        self.case, items = case, case.items
        pairs = every_pair(items)
        if case.chosen.target == "pairwise":
            base = items * np.arange(len(pairs))
            ones = np.ones(len(pairs))
            units = Population(items * np.arange(len(pairs) + 1), base + pairs[:, 0], base + pairs[:, 1], ones, ones)
            self.offset = case.objective(units).edges.offset
            self.column = np.arange(len(pairs))
        else:
            if not {**case.chosen.member.defaults, **case.options}["normalised"]:
                raise UsageError(f"{case.chosen.name}: NDCG asks for gains that are normalised")
            case.objective(Relevance.of([1.0, 0.0]))
            self.offset, self.column = np.zeros(len(pairs)), pairs[:, 0]  # the gain of an item, against every other
        self.pairs, self.phi = pairs, pair_loss(case.chosen.phi)
        self.blocks = set_partitions(items)
        self.alone = int(np.flatnonzero(self.blocks.max(axis=1) == items - 1)[0])

    def minima(self, theta: Floats) -> tuple[Floats, Floats]:
        """Infimum with the ties of each partition, (populations, partitions), and scores there."""
        number, ways = len(theta), len(self.blocks)
        blocks = np.tile(self.blocks, (number, 1))
        start = np.concatenate(([0], np.cumsum(blocks.max(axis=1) + 1)))
        node = blocks + start[:-1, None]
        winner, loser = node[:, self.pairs[:, 0]], node[:, self.pairs[:, 1]]
        weight = np.repeat(theta[:, self.column], ways, axis=0)
        inside = winner == loser
        fixed = np.where(inside, weight * self.phi.value(-self.offset), 0.0).sum(axis=1)
        offset = np.broadcast_to(self.offset, winner.shape)
        edges = WeightedEdges.of(start, winner[~inside], loser[~inside], weight[~inside], offset=offset[~inside])
        found = minimise(Objective(edges, self.phi, value_penalty("square")))
        if not found.known.all():
            raise UsageError("weights of a population are too far apart")  # pragma: no cover
        value = (found.value + fixed).reshape(number, ways)
        return value, found.alpha[node].reshape(number, ways, -1)

    def at(self, alpha: Floats, theta: Floats) -> Floats:
        """ℓ_φ of every population (last axes (…, n)) at scores (…, items)."""
        gap = alpha[..., self.pairs[:, 0]] - alpha[..., self.pairs[:, 1]] - self.offset
        with np.errstate(over="ignore"):
            value = self.phi.value(gap)
        weight = theta[..., self.column]
        return np.asarray(np.where(weight > 0, weight * np.where(weight > 0, value, 0.0), 0.0).sum(axis=-1))

    def run(self, tolerance: float, budget: int) -> UniformSuboptimality:
        """Halve until the bounds are close."""
        self.regions = list(_regions(self.case))
        self.points = np.zeros((0, self._numbers))
        self.lowest = np.zeros((0, len(self.regions)))
        """Infimum over the cone of each region, at each point."""
        self.free, self.scores = np.zeros(0), np.zeros((0, self.case.items))
        self.place: dict[bytes, int] = {}
        self.upper, self.shown = np.inf, (-1, -1)
        open_: list[_Cells] = []
        for number, region in enumerate(self.regions):
            points = corners(region.rows, region.right, region.equal, region.sums)
            tight = np.abs(points @ region.rows.T - region.right) <= PRECISE
            known, parts = self._known(points), simplices(points, tight)
            if parts:
                cells = known[np.array(parts)]
                open_.append(self._bounded(cells, np.full(len(cells), number)))
        if not open_:
            return self.case.impossible()
        made, dropped = sum(map(len, open_)), np.inf
        while True:
            # cells of one region have one number of corners, but regions may differ
            least = min(float(cells.bound.min()) if len(cells) else np.inf for cells in open_)
            if not np.isfinite(least) or self.upper - max(least, 0.0) <= tolerance or made >= budget:
                break
            again = []
            for cells in open_:
                hopeless = cells.bound >= self.upper - tolerance
                dropped = min(dropped, float(cells.bound[hopeless].min(initial=np.inf)))
                order = np.flatnonzero(~hopeless)
                order = order[np.argsort(cells.bound[order], kind="stable")]
                first, rest = order[:BATCH], order[BATCH:]
                if len(first):
                    halves = self._halved(cells.only(first))
                    made += len(halves)
                    again.append(halves.and_also(cells.only(rest)))
            open_ = again
        lower = min([dropped, self.upper, *(float(cells.bound.min(initial=np.inf)) for cells in open_)])
        lower = min(max(lower - PRECISE, 0.0), self.upper)
        point, region_of = self.shown
        theta = self.points[point]
        shown = _table(self.case.items, theta) if self.case.chosen.target == "pairwise" else theta
        upper = 0.0 if self.upper <= SAME else self.upper
        return self.case.told(lower, upper, shown, self._scores_at(point, region_of), "branch and bound")

    @property
    def _numbers(self) -> int:
        return int(self.column.max()) + 1

    def _known(self, points: Floats) -> Nodes:
        """Numbers of points; minima of new ones."""
        keys = [point.tobytes() for point in points]
        fresh = {key: point for key, point in zip(keys, points, strict=True) if key not in self.place}
        if fresh:
            theta = np.array(list(fresh.values()))
            value, alpha = self.minima(theta)
            self.place |= {key: len(self.points) + number for number, key in enumerate(fresh)}
            lowest = [np.where(self._within(one, alpha), value, np.inf).min(axis=1) for one in self.regions]
            self.points = np.concatenate((self.points, theta))
            self.free = np.concatenate((self.free, value[:, self.alone]))
            self.scores = np.concatenate((self.scores, alpha[:, self.alone]))
            self.lowest = np.concatenate((self.lowest, np.stack(lowest, axis=1)))
        return np.array([self.place[key] for key in keys], np.int64)

    @staticmethod
    def _within(region: _Region, alpha: Floats) -> NDArray[np.bool_]:
        return np.asarray(np.all([alpha[..., i] <= alpha[..., j] for i, j in region.below], axis=0))

    def _scores_at(self, point: int, region: int) -> Floats:
        value, alpha = self.minima(self.points[point][None])
        inside = np.where(self._within(self.regions[region], alpha[0]), value[0], np.inf)
        return np.asarray(alpha[0][int(inside.argmin())], np.float64)

    def _bounded(self, cells: Nodes, region: Nodes) -> _Cells:
        """Bound simplices from below by the best of some α₀, and the least excess by their corners."""
        lowest = self.lowest[cells, region[:, None]]
        excess = np.maximum(lowest - self.free[cells], 0.0)
        best = np.unravel_index(int(excess.argmin()), excess.shape)
        if excess[best] < self.upper:
            self.upper, self.shown = float(excess[best]), (int(cells[best]), int(region[best[0]]))
        theta = self.points[cells]
        _, alpha = self.minima(theta.mean(axis=1))
        tried = np.concatenate((alpha[:, self.alone][:, None], self.scores[cells]), axis=1)
        bound = (lowest[:, None] - self.at(tried[:, :, None], theta[:, None])).min(axis=2).max(axis=1)
        return _Cells(cells, region, bound)

    def _halved(self, cells: _Cells) -> _Cells:
        theta = self.points[cells.corners]
        apart = np.abs(theta[:, :, None] - theta[:, None]).sum(axis=3).reshape(len(cells), -1)
        one, other = np.divmod(apart.argmax(axis=1), theta.shape[1])
        row = np.arange(len(cells))
        middle = self._known((theta[row, one] + theta[row, other]) / 2)
        halves = np.concatenate((cells.corners, cells.corners))
        halves[row, one], halves[len(cells) + row, other] = middle, middle
        found = self._bounded(halves, np.concatenate((cells.region, cells.region)))
        return _Cells(halves, found.region, np.maximum(found.bound, np.tile(cells.bound, 2)))


@dataclass(frozen=True, eq=False)
class _Cells:
    """Simplices of populations."""

    corners: Nodes
    """Numbers of points, (cells, corners)."""
    region: Nodes
    bound: Floats

    def __len__(self) -> int:
        return len(self.bound)

    def only(self, keep: Nodes) -> _Cells:
        return _Cells(self.corners[keep], self.region[keep], self.bound[keep])

    def and_also(self, other: _Cells) -> _Cells:
        return _Cells(
            np.concatenate((self.corners, other.corners)),
            np.concatenate((self.region, other.region)),
            np.concatenate((self.bound, other.bound)),
        )


def transfer(surrogate: str, delta: float, *, grid: Sequence[float] | None = None, **options: Any) -> Between:
    """Bound ζ(δ) of Theorem 1: the most target excess R(f) − R* that a surrogate excess of δ may hide, on a class.

    ζ(δ) = sup {R(f) − R* : R_φ(f) − R_φ* ≤ δ} over all f, all queries and their probabilities, populations of the
    class: the least concave function above the inverse of H, since queries may be mixed. From the bounds of H(ε) on a
    ``grid`` of ε (None: .02, .05, .1, .2, …, .9, 1; it should go up to 1): above by the convex hull of the lower
    bounds, each holding for all larger ε, below by mixtures of the populations found. ``options`` are those of
    ``uniform_suboptimality``. ζ(0) = 0 and ζ continuous there: uniformly consistent on the class (Definition 2).

    Errors: UsageError as there, and for a grid that is empty or not positive.

    >>> [round(bound, 4) for bound in transfer("difference-graph:hinge", 0.02, within="acyclic")]  # ζ(δ) = δ
    [0.02, 0.02]

    Source: Duchi, Mackey and Jordan (2013), Definition 2, Theorem 1.
    """
    _at_least_0("delta", delta)
    steps = sorted({0.02, 0.05, *np.round(np.arange(0.1, 1.01, 0.1), 1).tolist()} if grid is None else set(grid))
    for epsilon in steps:
        _at_least_0("epsilon", epsilon)
    if not steps or steps[0] == 0:
        raise UsageError("grid must have target excesses above 0")
    first = uniform_suboptimality(surrogate, steps[0], **options)
    if first.method == "closed form" and np.isfinite(first.upper):
        slope = first.upper / steps[0]  # H(ε) = φ(0) ε up to the whole weight
        return Between(min(delta / slope, 1.0), min(delta / slope, 1.0))
    found = [first, *(uniform_suboptimality(surrogate, epsilon, **options) for epsilon in steps[1:])]
    # H(ε) ≥ the bound at the last step before ε: nothing beyond the next step is hidden below it
    floors = np.concatenate(([0.0], [min(one.lower, np.finfo(float).max) for one in found]))
    reach = np.concatenate((steps, [1.0]))
    kept = [place for place, one in enumerate(found) if np.isfinite(one.upper)]
    costs, gained = [0.0, *(found[place].upper for place in kept)], [0.0, *(steps[place] for place in kept)]
    return Between(_concave(costs, gained, delta), _concave(floors.tolist(), reach.tolist(), delta))


def _concave(costs: list[float], gained: list[float], delta: float) -> float:
    """Most of Σ p · gained with Σ p · cost ≤ δ, Σ p = 1."""
    pairs = [(cost, gain) for cost, gain in zip(costs, gained, strict=True) if cost < 1e300]
    best = max(gain for cost, gain in pairs if cost <= delta)
    for (low, small), (high, large) in itertools.product(pairs, pairs):
        if low <= delta < high:
            best = max(best, small + (large - small) * (delta - low) / (high - low))
    return float(best)
