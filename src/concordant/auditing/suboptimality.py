"""How little surrogate excess a given excess of the target loss needs, at one population: H(ε, μ) of AoS (9).

The target depends on the weak order of α alone, and ties are charged the worst way, so {α : target excess ≥ ε} is a
union of closed cones {α : α_i ≤ α_j for some pairs}. On a cone a convex surrogate comes nearest to its infimum where it
is minimised under some of these as *equalities*: take the coarsest set partition P of the items for which the infimum
over the cone is not larger when items of one block are tied. Every minimising sequence of the surrogate with these ties
then ends inside the cone, for a segment from it to a sequence in the cone would cross the border at a tie more, at no
higher value. So H(ε, μ) is the least infimum, over the set partitions whose minimiser has a target excess of at least
ε, less the infimum: Bell(m) small problems without constraints (5, 15, 52, 203, 877, 4,140 for 3 to 8 items), and the
whole curve in ε at once.

Beyond that both sides are bounded. Above: some partitions. Below: an order of target excess ε contradicts pairs that
weigh ε at least, so one of them is at least as dear as the dearest that ε cannot do without.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from concordant.auditing.gain_laws import Law, gain_regrets
from concordant.auditing.regret import mean_floor, order_loss
from concordant.errors import CannotRank, InputError, Setting, UsageError
from concordant.losses.expected_gains import expected_gains
from concordant.losses.gains import inverse_discount
from concordant.losses.minimise import minimise
from concordant.losses.objective import Objective, Population, Relevance, WeightedEdges
from concordant.losses.surrogates import Chosen, choose
from concordant.preferences.graphs import Batch, Graphs
from concordant.preferences.preferences import Preferences
from concordant.ranking.best_orders import best_orders

Floats = NDArray[np.float64]
Blocks = NDArray[np.int64]
Excess = Callable[[Floats], Floats]
"""Target excess of each row of scores (rows, items), ties charged the worst way."""
Source = Preferences | Batch | Graphs | Population | Relevance | ArrayLike
EXACT_UP_TO, MOST_ITEMS = 8, 60
"""Items up to which all set partitions are gone through, and up to which there are bounds."""
LEVEL = 1e-12
"""Share of the surrogate's weight (of the target's range) below which an excess is 0."""


class Between(NamedTuple):
    """A number between two bounds; both are the number where it is known."""

    lower: float
    upper: float


@lru_cache(maxsize=16)
def set_partitions(items: int) -> Blocks:
    """Return all set partitions, the block of each item numbered by first appearance; shape (Bell(items), items).

    >>> set_partitions(3).tolist()
    [[0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 1], [0, 1, 2]]
    """
    rows = np.zeros((1, min(items, 1)), np.int64)
    for _ in range(items - 1):
        more = rows.max(axis=1) + 2
        again = np.repeat(rows, more, axis=0)
        last = np.arange(len(again)) - np.repeat(np.cumsum(more) - more, more)
        rows = np.concatenate((again, last[:, None]), axis=1)
    rows.setflags(write=False)
    return rows


def tied(objective: Objective, blocks: Blocks) -> tuple[Objective, Floats]:
    """Return the surrogate of one graph with the items of each block tied, for every row of blocks, and what is fixed.

    ``blocks`` (rows, items) numbers the blocks of a row from 0; the constant part of each row has shape (rows,).
    """
    edges, phi = objective.edges, objective.phi
    rows, number = len(blocks), blocks.max(axis=1) + 1
    start = np.concatenate(([0], np.cumsum(number)))
    node = blocks + start[:-1, None]
    winner, loser = node[:, edges.winner], node[:, edges.loser]
    weight, offset = (np.broadcast_to(column, winner.shape) for column in (edges.weight, edges.offset))
    inside = winner == loser
    fixed = np.where(inside, edges.weight * phi.value(-edges.offset), 0.0).sum(axis=1)
    pull = np.asarray(np.bincount(node.ravel(), np.tile(edges.pull, rows), start[-1]), np.float64)
    target = np.bincount(node.ravel(), np.tile(edges.pull * edges.pulled_to, rows), start[-1])
    target = np.divide(target, pull, out=np.zeros_like(pull), where=pull > 0)
    if edges.pulled_to.any():
        if objective.penalty.name != "square":
            raise UsageError(
                f"ties of items that are pulled to values of their own need the square, not {objective.penalty.name}"
            )
        fixed = fixed + (edges.pull * (edges.pulled_to - target[node]) ** 2).sum(axis=1)
    outside = ~inside
    joined = WeightedEdges(
        start, winner[outside], loser[outside], weight[outside], offset[outside], pull, np.asarray(target, np.float64)
    )
    return Objective(joined, phi, objective.penalty), np.asarray(fixed, np.float64)


def _minima(objective: Objective, blocks: Blocks) -> tuple[Floats, Floats]:
    """Infimum of the surrogate with the ties of each row, (rows,), and scores there, (rows, items)."""
    joined, fixed = tied(objective, blocks)
    found = minimise(joined)
    lost = int((~found.known).sum())
    if lost:
        raise CannotRank(f"{lost:,} of {len(blocks):,} minima of the surrogate were not found: weights too far apart")
    start = joined.edges.node_start
    return found.value + fixed, found.alpha[blocks + start[:-1, None]]


@dataclass(frozen=True, eq=False)
class Suboptimality:
    """H(ε, μ) of a surrogate at one population, as stairs: what each excess of the target costs at least."""

    surrogate: str
    target: str
    """The loss that the surrogate stands for: pairwise, ndcg or err."""
    exact: bool
    """Whether the bounds meet (up to 8 items)."""
    surrogate_excess: Floats
    """Increasing; shape (steps,)."""
    target_excess: Floats
    """What scores of that surrogate excess can lose, increasing; shape (steps,)."""
    scores: Floats
    """Such scores (near the infimum where it is not attained); shape (steps, items)."""
    least_excess: Floats
    """Below this surrogate excess … (increasing; shape (floors,))."""
    most_target: Floats
    """… no more than this target excess is possible (increasing; shape (floors,))."""

    def at(self, epsilon: float) -> Between:
        """Return H(ε, μ): the least surrogate excess of scores that lose at least ε; ∞ where no scores do.

        0 for some ε > 0: the surrogate is not consistent at this population (AoS Proposition 2).
        """
        _at_least_0("epsilon", epsilon)
        if epsilon == 0:
            return Between(0.0, 0.0)
        near = epsilon * (1.0 - LEVEL)
        upper = _step(self.target_excess, near, self.surrogate_excess)
        floor = int(np.searchsorted(self.most_target, near, side="left"))
        lower = 0.0 if floor == 0 else float(self.least_excess[floor - 1])
        return Between(upper, upper) if self.exact else Between(min(lower, upper), upper)

    def hidden(self, delta: float) -> Between:
        """Return sup {target excess : surrogate excess ≤ δ}: how much target loss a surrogate excess may hide.

        At δ = 0 what minimisers (or the limits of minimising sequences) lose at most.
        """
        _at_least_0("delta", delta)
        place = int(np.searchsorted(self.surrogate_excess, delta, side="right"))
        lower = float(self.target_excess[place - 1])
        floor = int(np.searchsorted(self.least_excess, delta, side="right"))
        upper = float(self.most_target[min(floor, len(self.most_target) - 1)])
        return Between(lower, lower) if self.exact else Between(lower, max(lower, upper))


def _at_least_0(name: str, value: float) -> None:
    if isinstance(value, bool) or not np.isreal(value) or not np.isfinite(value) or value < 0:
        raise UsageError(f"{name} must be a finite number of at least 0, not {value!r}")


def _step(stairs: Floats, value: float, height: Floats) -> float:
    place = int(np.searchsorted(stairs, value, side="left"))
    return float(height[place]) if place < len(height) else float("inf")


def suboptimality(
    source: Source, surrogate: str, *, query: Any = None, structure: str | None = None, **options: Any
) -> Suboptimality:
    """How little surrogate excess hides a given excess of the target loss, at the population of one query.

    H(ε, μ) = inf_α {ℓ_φ(α, μ) − inf ℓ_φ(·, μ) | ℓ(α, μ) − inf ℓ(·, μ) ≥ ε}, ties of α charged the worst way, and its
    reading backwards, sup {target excess : surrogate excess ≤ δ}. Exact up to 8 items (to the precision of the minima,
    about 1e-11 of the weights): the least over all ways of tying items, see the module. From 9 to 60 items two bounds.
    The unit of the pairwise loss is strength per judgment, NDCG and ERR are in [0, 1].

    Parameters
    ----------
    source : a log, or one graph: Preferences, Batch, Graphs, Population; for surrogates of scores also a law of them:
        Relevance, or scores (draws, items), equally likely.
    surrogate : a name of the registry, with another φ as "name:phi".
    query : label of the query, where the log has several.
    structure : for surrogates of scores: the law is the point law of this structure's scores of all judgments.
    **options : options of the surrogate.

    Errors: UsageError for unknown names, sources of more than one query, more than 60 items; InputError for a log
    without judgments.

    >>> from concordant.auditing.counterexamples import known_counterexample
    >>> votes = known_counterexample("theorem-3").preferences
    >>> suboptimality(votes, "ranknet").at(0.01)  # its own minimiser loses .01 (AoS Theorem 3)
    Between(lower=0.0, upper=0.0)
    >>> cut = suboptimality(votes, "difference-graph")
    >>> round(cut.at(0.01).upper, 6), round(cut.hidden(0.1).upper, 2)  # .01 log 2: a tie of 2 and 3
    (0.006931, 0.01)

    Source: Duchi, Mackey and Jordan (2013), (9), Proposition 2.
    """
    chosen = choose([surrogate])[0]
    member = chosen.member
    if structure is not None and (member.reads != "scores" or not isinstance(source, Preferences)):
        raise UsageError(f"structure makes scores of a log; {chosen.name} with this source has no use for one")
    read, gain = _population(source, chosen, query, structure)
    if member.reads == "scores" and "gain" not in options and gain is not None:
        options = {**options, "gain": gain}
    objective = member.objective(read, phi=chosen.phi, **options)
    items = objective.nodes
    if items > MOST_ITEMS:
        raise UsageError(f"{items} items: there are bounds for up to {MOST_ITEMS}")
    if isinstance(read, Relevance):
        excess, pairs, weight, spare = _of_gains(read, chosen, {**member.defaults, **options})
    else:
        excess, pairs, weight, spare = _of_pairs(Population.of(read).adjacency)
    return _curve(chosen, objective, excess, pairs, weight, spare)


def _population(
    source: Source, chosen: Chosen, query: Any, structure: str | None
) -> tuple[Batch | Graphs | Population | Relevance, str | None]:
    """Return the one graph that is asked for, and the gain that its scores need (None: the surrogate's own)."""
    gain = None
    read: Batch | Graphs | Population | Relevance
    if isinstance(source, Preferences):
        if not len(source.queries):
            raise InputError("there is no judgment, so no population")
        labels = list(source.queries.tolist())
        if query is None and len(labels) > 1:
            raise UsageError(
                f"the log has {len(labels):,} queries; say which: ", Setting("query", labels[0]), ", for one"
            )
        if query is not None and query not in labels:
            raise UsageError(f"there is no query {query!r}")
        read = Batch.whole(source, np.array([0 if query is None else labels.index(query)]))
        if chosen.member.reads == "scores":
            law = Law.of(source, structure, "all", 1, 0)
            gain = "sigmoid" if chosen.target == "err" and not law.chances else None
            read = law.relevance(read)
    elif isinstance(source, (Batch, Graphs, Population, Relevance)):
        read = source
    elif chosen.member.reads == "scores":
        try:
            read = Relevance.of(np.asarray(source, np.float64).tolist())
        except (TypeError, ValueError) as problem:
            if isinstance(problem, UsageError):
                raise
            raise UsageError(f"a law of scores is a table (draws, items) of numbers, not {source!r}") from None
    else:
        raise UsageError(f"a population is Preferences, Batch, Graphs or Population, not {type(source).__name__}")
    if query is not None and not isinstance(source, Preferences):
        raise UsageError("query chooses among the queries of a log; this source is one graph")
    graphs = len(read.node_start) - 1
    if graphs != 1:
        raise UsageError(f"H(ε, μ) is that of one population, not of {graphs:,} graphs")
    return read, gain


Target = tuple[Excess, NDArray[np.int64], Floats, float]
"""The excess; pairs (number, 2) that right scores put first over second; their weight; what the best order pays.

An order of target excess ε contradicts pairs of weight ε + what the best order pays, at least.
"""


def _of_pairs(mean: Graphs) -> Target:
    best = best_orders(mean, programme=True)
    if not best.exact[0]:
        raise CannotRank("the best order is not known to be best: a cycle of too many items")
    least, items = float(best.loss[0]), int(mean.node_start[-1])
    floor = float(mean_floor(mean)[0])
    scale = LEVEL * max(float((mean.above + mean.below).sum()), LEVEL)
    above = mean.above >= mean.below
    ends = np.where(above[:, None], np.stack((mean.first, mean.second), 1), np.stack((mean.second, mean.first), 1))
    net = np.abs(mean.above - mean.below)

    def excess(scores: Floats) -> Floats:
        lost = scores[:, ends[:, 0]] <= scores[:, ends[:, 1]]
        found = floor + lost @ net - least
        return np.where(found > scale, found, 0.0)

    assert items == 0 or np.isclose(excess(np.zeros((1, items)))[0] + least, order_loss(mean, np.zeros(items))[0])
    some = net > scale
    return excess, ends[some], net[some], least - floor


def _of_gains(law: Relevance, chosen: Chosen, options: dict[str, Any]) -> Target:
    items, gain, at = int(law.node_start[-1]), str(options["gain"]), options.get("at")

    def excess(scores: Floats) -> Floats:
        rows = len(scores)
        start = items * np.arange(rows + 1)
        tiled = Relevance(start, np.tile(law.scores, rows), law.share)
        found = gain_regrets(tiled, scores.ravel(), chosen.target, gain=gain, at=at)
        if not found.exact.all():
            raise CannotRank("the best order for ERR is not known to be best: more than 12 items and several draws")
        return np.where(found.regret > LEVEL, found.regret, 0.0)

    if chosen.target != "ndcg":
        return excess, np.zeros((0, 2), np.int64), np.zeros(0), 0.0
    value = expected_gains(law, gain, normalised=True, at=at, signed=True)
    inverse = inverse_discount(items, at=at)
    steepest = float(np.max(-np.diff(inverse), initial=0.0))  # swapping neighbours once for each pair sorts any order
    above, below = np.nonzero(value[:, None] > value[None, :])
    return excess, np.stack((above, below), 1), steepest * (value[above] - value[below]), 0.0


def _curve(
    chosen: Chosen, objective: Objective, excess: Excess, pairs: NDArray[np.int64], weight: Floats, spare: float
) -> Suboptimality:
    items = objective.nodes
    exact = items <= EXACT_UP_TO
    apart = np.arange(items)[None]
    least, best = _minima(objective, apart)
    if exact:
        blocks = set_partitions(items)
    else:
        if chosen.target == "err":
            raise UsageError(f"ERR has no bounds beyond {EXACT_UP_TO} items")
        blocks = np.concatenate((apart, _pair_ties(items, pairs), _run_ties(best[0])))
    value, scores = _minima(objective, blocks)
    scale = LEVEL * max(1.0, float(np.abs(value).max()))
    over = np.where(value - least[0] > scale, value - least[0], 0.0)
    lost = excess(scores)
    order = np.lexsort((-lost, over))
    stair = order[np.maximum.accumulate(lost[order]) == lost[order]]
    stair = stair[np.concatenate(([True], np.diff(lost[stair]) > 0))]
    most, cost = lost[stair], over[stair]
    floors, reach = cost, most
    if not exact:
        wrong = best[0][pairs[:, 0]] <= best[0][pairs[:, 1]]
        dear = np.where(wrong, 0.0, over[1 : 1 + len(pairs)])
        rank = np.argsort(dear, kind="stable")
        # below the cost of the pairs from one on, only those before it can be contradicted
        floors, reach = dear[rank], np.maximum(np.concatenate(([0.0], np.cumsum(weight[rank])[:-1])) - spare, 0.0)
        floors = np.append(floors, np.inf)
        reach = np.minimum(np.append(reach, max(float(weight.sum()) - spare, 0.0)), lost.max())  # all tied lose most
    return Suboptimality(chosen.name, chosen.target, exact, cost, most, scores[stair], floors, reach)


def _pair_ties(items: int, pairs: NDArray[np.int64]) -> Blocks:
    """One row for each pair: its two items tied, the others alone."""
    low, high = pairs.min(axis=1, initial=items), pairs.max(axis=1, initial=0)
    item = np.arange(items)[None]
    return np.asarray(np.where(item == high[:, None], low[:, None], item - (item > high[:, None])), np.int64)


def _run_ties(scores: Floats) -> Blocks:
    """Runs of neighbours in the order of the scores tied, from two to all of them."""
    items, order = len(scores), np.argsort(-scores, kind="stable")
    rows = []
    for length in range(2, items + 1):
        for begin in range(items - length + 1):
            block = np.empty(items, np.int64)
            block[order] = np.concatenate(
                (np.arange(begin), np.full(length, begin), np.arange(begin + 1, items - length + 1))
            )
            rows.append(block)
    return np.array(rows, np.int64).reshape(-1, items)


def hidden_in_log(
    prefs: Preferences, surrogate: str, delta: float, *, structure: str | None = None, **options: Any
) -> Between:
    """Bound how much target loss a surrogate excess of δ may hide in a log of many queries.

    sup {R(f) − R* : R_φ(f) − R_φ* ≤ δ} with R(f) = Σ_q p_q ℓ(f(q), μ_q) (AoS (3), (6)) over all f, where p_q is the
    query's share of the judgments and μ_q its judgments: an excess may be spent on the queries where it hides most.
    Above: the best mixture of steps of ``suboptimality`` (each query's least concave function above its stairs);
    below: the steps that fit into δ whole. They are at most one step of one query apart where every query is exact.
    ``options`` are those of ``suboptimality``. Errors: as there.

    >>> log = Preferences.from_comparisons(list("abab"), list("baba"), query=list("qqrr"), count=[3, 1, 2, 2])
    >>> hidden_in_log(log, "ranknet", 0.0)  # nobody's minimiser is wrong; two level items have nothing to lose
    Between(lower=0.0, upper=0.0)

    Source: Duchi, Mackey and Jordan (2013), (3), (6), Definition 1.
    """
    _at_least_0("delta", delta)
    if not isinstance(prefs, Preferences):
        raise UsageError(f"a log of queries is Preferences, not {type(prefs).__name__}")
    if not len(prefs.queries):
        raise InputError("there is no judgment, so no population")
    share = prefs.judgments / prefs.judgments.sum()
    start = {"lower": 0.0, "upper": 0.0}
    rises: dict[str, list[tuple[float, float]]] = {"lower": [], "upper": []}
    for label, part in zip(prefs.queries.tolist(), share.tolist(), strict=True):
        found = suboptimality(prefs, surrogate, query=label, structure=structure, **options)
        sides = {"lower": (found.surrogate_excess, found.target_excess)}
        # a finite cost pays for what is possible below the next one
        finite = np.isfinite(found.least_excess[:-1])
        floors = (found.least_excess[:-1][finite], found.most_target[1:][finite])
        sides["upper"] = sides["lower"] if found.exact else floors
        for side, (costs, gains) in sides.items():
            hull = _hull(np.append(0.0, part * costs), np.append(0.0, part * gains))
            start[side] += hull[0][1]
            rises[side] += [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(hull)]
    whole, mixed = start["lower"], start["upper"]
    left = delta
    for cost, gain in sorted(rises["upper"], key=_dearest_last):
        mixed += gain * min(1.0, left / cost)
        left = max(left - cost, 0.0)
    left = delta
    for cost, gain in sorted(rises["lower"], key=_dearest_last):
        if cost > left:
            break  # a later step of this query needs this one
        whole, left = whole + gain, left - cost
    return Between(whole, max(mixed, whole))


def _dearest_last(rise: tuple[float, float]) -> float:
    cost, gain = rise
    return -gain / cost


def _hull(cost: Floats, gain: Floats) -> list[tuple[float, float]]:
    """Corners of the least concave function above some points, from the best at cost 0 to the best of all."""
    corners: list[tuple[float, float]] = []
    for x, y in sorted(zip(cost.tolist(), gain.tolist(), strict=True), key=lambda point: (point[0], -point[1])):
        if corners and y <= corners[-1][1]:
            continue
        while len(corners) > 1 and (corners[-1][1] - corners[-2][1]) * (x - corners[-1][0]) <= (y - corners[-1][1]) * (
            corners[-1][0] - corners[-2][0]
        ):
            corners.pop()
        corners.append((x, y))
    return corners
