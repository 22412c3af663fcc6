"""Do scores reach the least expected NDCG or ERR loss of a law of relevance scores (AoS §3.3, Corollary 1, Lemma 1)?

The law is that of a structure's scores, the scores are those of a surrogate's minimiser. ERR: the value of an order is
Σ_i 1/F(i) E[G_(i) Π_{h<i} (1 − G_(h))] (AoS (16)): what an item adds depends only on the *set* before it, so the best
order of a few items comes by dynamic programming over subsets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.auditing.regret import CLOSE, NO, UNKNOWN, YES, SurrogateVerdict, worse_minimisers
from concordant.auditing.transitivity import FAILS, HOLDS, UNDETERMINED
from concordant.errors import InputError, UsageError, did_you_mean
from concordant.learning.rankers.plans import CHANCES
from concordant.learning.rankers.target import Target
from concordant.losses.expected_gains import GAINS, best_values, expected_gains
from concordant.losses.gains import Gain, inverse_discount
from concordant.losses.minimise import minimise
from concordant.losses.minimum import Minimum
from concordant.losses.objective import Relevance
from concordant.losses.surrogates import Chosen
from concordant.preferences.connectivity import Differences
from concordant.preferences.graphs import Batch, Graphs
from concordant.preferences.preferences import Preferences
from concordant.preferences.ragged import Ragged
from concordant.preferences.status import Status
from concordant.ranking.click_models import usual_clicks
from concordant.ranking.scores import Scores
from concordant.ranking.structures import Structure
from concordant.ranking.structures import structure as find_structure

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Nodes = NDArray[np.int64]
MOST_ITEMS = 12
"""Items up to which the best order is found exactly."""
CELLS = 1 << 22
"""Numbers of a table of subsets that are held at a time."""


def value_of(gains: Floats, weight: Floats, inverse: Floats, order: Nodes) -> Floats:
    """Σ_i inverse_i E[G_(i) Π_{h<i} (1 − G_(h))] of an order of each row.

    ``gains`` (rows, draws, items), ``weight`` (rows, draws) shares of the draws times what passes everything before,
    ``inverse`` (rows, items) 1/F of the places, ``order`` (rows, items). Returns (rows,).
    """
    placed = np.take_along_axis(gains, order[:, None, :], axis=2)
    passed = np.cumprod(1.0 - placed, axis=2)
    examined = np.concatenate((np.ones_like(passed[:, :, :1]), passed[:, :, :-1]), axis=2)
    return np.asarray(np.einsum("rd,rdi,ri->r", weight, placed * examined, inverse), np.float64)


def mixed_best(gains: Floats, weight: Floats, inverse: Floats) -> Floats:
    """An upper bound of the value of any order: each draw in the best order of its own, by gain (Lemma 1)."""
    flat = gains.reshape(-1, 1, gains.shape[2])
    order = np.argsort(-flat[:, 0], axis=1, kind="stable")
    places = np.repeat(inverse, gains.shape[1], axis=0)
    return np.asarray(value_of(flat, weight.reshape(-1, 1), places, order).reshape(weight.shape).sum(axis=1))


def arranged(gains: Floats, weight: Floats, inverse: Floats, *, worst: bool = False) -> tuple[Nodes, bool]:
    """Return the order of the largest (``worst``: the smallest) value of each row, and whether it is surely that.

    With one draw it is the order by gain (Lemma 1), with up to ``MOST_ITEMS`` items dynamic programming, else the
    better one of the order by expected gain and the greedy order, which no swap of neighbours improves.
    """
    sign = -1.0 if worst else 1.0
    rows, draws, items = gains.shape
    expected = np.einsum("rd,rdi->ri", weight, gains)
    by_gain = np.argsort(-sign * expected, axis=1, kind="stable")
    if draws == 1 or items < 2:
        return by_gain, True
    if items <= MOST_ITEMS:
        step = max(1, CELLS // (2**items * max(draws, items)))
        parts = [slice(begin, begin + step) for begin in range(0, rows, step)]
        found = [_by_subsets(gains[part], weight[part], inverse[part], sign) for part in parts]
        return np.concatenate(found) if found else by_gain, True
    greedy = _greedy(gains, weight, sign)
    better = sign * (value_of(gains, weight, inverse, greedy) - value_of(gains, weight, inverse, by_gain)) > 0
    return np.where(better[:, None], greedy, by_gain), False


def _greedy(gains: Floats, weight: Floats, sign: float) -> Nodes:
    """At each place the item that adds most given those before it.

    Swapping neighbours a, b after a set S changes the value by (1/F(i) − 1/F(i+1)) (E[w_S G_b] − E[w_S G_a]).
    """
    rows, _, items = gains.shape
    order = np.empty((rows, items), np.int64)
    passing = weight.copy()
    used = np.zeros((rows, items), bool)
    row = np.arange(rows)
    for place in range(items):
        adds = sign * np.einsum("rd,rdi->ri", passing, gains)
        adds[used] = -np.inf
        pick = adds.argmax(axis=1)
        order[:, place], used[row, pick] = pick, True
        passing *= 1.0 - gains[row, :, pick]
    return order


def _by_subsets(gains: Floats, weight: Floats, inverse: Floats, sign: float) -> Nodes:
    rows, draws, items = gains.shape
    passing = np.empty((rows, draws, 2**items))  # share of the draws times Π over the subset of 1 − G
    passing[:, :, 0] = weight
    for j in range(items):
        passing[:, :, 2**j : 2 ** (j + 1)] = passing[:, :, : 2**j] * (1.0 - gains[:, :, j, None])
    adds = sign * (passing.transpose(0, 2, 1) @ gains)  # (rows, subsets, items)
    subset = np.arange(2**items)
    size = np.bitwise_count(subset)
    best = np.full((rows, 2**items), -np.inf)
    best[:, 0] = 0.0
    last = np.zeros((rows, 2**items), np.int8)
    for placed in range(items):
        for j in range(items):
            before = subset[(size == placed) & (subset >> j & 1 == 0)]
            after = before | 1 << j
            reached = best[:, before] + inverse[:, placed, None] * adds[:, before, j]
            better = reached > best[:, after]
            best[:, after] = np.where(better, reached, best[:, after])
            last[:, after] = np.where(better, j, last[:, after])
    order = np.empty((rows, items), np.int64)
    left = np.full(rows, 2**items - 1)
    for place in range(items - 1, -1, -1):
        order[:, place] = last[np.arange(rows), left]
        left ^= 1 << order[:, place]
    return order


TARGETS = {"ndcg": "2^s-1", "precision": "2^s-1", "err": "err"}
"""Target losses and the gain that each is used with unless another is given."""
DISCOUNTS: Mapping[str, Gain] = {"precision": np.ones_like}
"""F of targets where it is not log2(1 + j)."""
ROUNDING = 1e-12
"""Share of the largest gain within which gains, and for ERR values, are level."""


@dataclass(frozen=True, eq=False)
class GainRegrets:
    """Expected losses of scores under laws of relevance; arrays have one entry per graph, ``place`` one per node."""

    loss: Floats
    """Of the scores; ties in them are broken the worst way."""
    optimal_loss: Floats
    """The least loss of an order, or where not ``exact`` the least one found."""
    lower: Floats
    """No order has a smaller loss: equal to ``optimal_loss`` where ``exact``."""
    exact: Flags
    """Both losses are exact; False only for ERR with more than 12 items (or tied ones) and several draws."""
    consistent: NDArray[np.int8]
    """The scores lie in argmin ℓ(·, μ), whichever way their ties are broken: a place in ``VERDICTS``."""
    place: Nodes
    """Place of each node in an order of that least loss, 0 first."""

    @property
    def regret(self) -> Floats:
        """Loss of the scores less the least loss; a lower bound of the regret where not ``exact``."""
        return np.asarray(np.maximum(self.loss - self.optimal_loss, 0.0))


def gain_regrets(
    law: Relevance,
    alpha: Floats,
    target: str = "ndcg",
    *,
    gain: str | None = None,
    at: int | None = None,
    close: float = 0.0,
) -> GainRegrets:
    """Return the expected loss of scores and how far it is from the least one, for each law of a batch.

    - ``ndcg``: ℓ(α, μ) = ∫ (1 − Σ_j G(s_j) / (Z(s) F(π_α(j)))) dμ, F(j) = log2(1 + j); a draw with Z(s) = 0 has loss 0.
      Least when items are in decreasing order of ∫ G(s_j)/Z(s) dμ (Corollary 1); items level in it may be in any
      order, and below the cut-off ``at`` so may all.
    - ``precision``: the same with F(j) = 1.
    - ``err``: ℓ(α, μ) = ∫ (1 − Σ_i 1/i G_(i) Π_{h<i} (1 − G_(h))) dμ. For one draw, as for a product law, the order by
      ∫ G(s_j) dμ is the best (Lemma 1: in its proof swapping neighbours gains (p_i − p_{i+1}) times a factor that is
      0 after an item with G = 1: behind it any order is as good). For other laws it need not be: two kinds of
      users want variety. Then it is found by dynamic programming over subsets, up to 12 items; else the best of the
      order by gain, the greedy order and the scores' own is compared with, and ``exact`` is False.

    ``alpha`` (nodes,) may be infinite, not NaN. Scores within ``close`` of the next one (in order of size) are tied.
    Gains are those of ``concordant.losses.expected_gains``; "err" is scaled by the largest score of the whole batch.

    Errors: unknown target or gain, gains outside [0, 1] (err), negative Z (ndcg), scores that are too few or NaN.

    >>> law = Relevance.of([[2.0, 0.0, 1.1], [0.0, 2.0, 1.1]])  # one reader's first item is the other one's last
    >>> found = gain_regrets(law, np.array([1.0, 1.0, 1.1]))    # the mean scores
    >>> found.regret.round(3).tolist(), found.consistent.tolist(), found.place.tolist()
    ([0.048], [1], [0, 1, 2])
    """
    if target not in TARGETS:
        raise UsageError(f"unknown target {target!r}; {did_you_mean(target, TARGETS)}")
    gain = TARGETS[target] if gain is None else gain
    scores = np.asarray(alpha, np.float64)
    if scores.shape != (int(law.node_start[-1]),):
        raise UsageError(f"alpha must have one score for each of the {law.node_start[-1]:,} nodes, not {scores.shape}")
    if np.isnan(scores).any():
        raise InputError(f"{int(np.isnan(scores).sum()):,} of {len(scores):,} scores are NaN")
    if not close >= 0:
        raise UsageError(f"close must be at least 0, not {close!r}")
    group = _tie_groups(law, scores, close)
    return _err(law, group, gain, at) if target == "err" else _ndcg(law, group, gain, at, DISCOUNTS.get(target))


def _tie_groups(law: Relevance, scores: Floats, close: float) -> Nodes:
    """Number the groups of tied scores of each graph, the highest first."""
    order = np.lexsort((-scores, law.owner))
    ranked = scores[order]
    with np.errstate(invalid="ignore"):  # inf − inf: equal, so tied
        apart = ~(ranked[:-1] - ranked[1:] <= close) & (ranked[:-1] != ranked[1:])
    new = np.concatenate((np.ones(min(1, len(order)), bool), apart | (np.diff(law.owner[order]) != 0)))
    group = np.empty(len(order), np.int64)
    group[order] = np.cumsum(new) - 1
    return group


def _ndcg(law: Relevance, group: Nodes, gain: str, at: int | None, discount: Gain | None) -> GainRegrets:
    graph, owner = Ragged(law.node_start), law.owner
    expected = expected_gains(law, gain, normalised=True, at=at, signed=True, discount=discount)
    some = law.share @ (
        best_values(GAINS[gain](law.scores), law.node_start, at, discount) > 0
    )  # draws with Z(s) = 0 have loss 0
    graphs, position = len(graph), graph.place
    inverse = inverse_discount(int(graph.sizes.max(initial=0)), discount, at)[position]
    best_order = np.lexsort((-expected, owner))
    best, mine = expected[best_order], expected[np.lexsort((expected, group))]  # groups follow the graphs
    close = ROUNDING * graph.spread(graph.most(np.abs(expected)))
    wrong = (best - mine > close) | (mine - best > close)
    fails = np.bincount(owner[wrong & (inverse > 0)], minlength=graphs) > 0
    if discount is not None:  # where places weigh the same, other orders may do as well
        fails &= graph.sums((best - mine) * inverse - close) > 0
    optimal, loss = (some - graph.sums(of * inverse) for of in (best, mine))
    loss = np.where(fails, loss, optimal)
    place = np.empty(len(owner), np.int64)
    place[best_order] = position
    verdict = np.where(fails, FAILS, HOLDS).astype(np.int8)
    return GainRegrets(loss, optimal, optimal, np.ones(graphs, bool), verdict, place)


def _err(law: Relevance, group: Nodes, gain: str, at: int | None) -> GainRegrets:
    expected_gains(law, gain, normalised=False)  # refuses gains that are no chances
    gains, start = GAINS[gain](law.scores), law.node_start
    size = Ragged(start).sizes
    inverse = inverse_discount(int(size.max(initial=0)), lambda place: place, at)
    graphs = len(size)
    loss, optimal, lower = np.zeros((3, graphs))
    best_sure, worst_sure = np.ones((2, graphs), bool)
    place = np.zeros(int(start[-1]), np.int64)
    for items in np.unique(size):
        alike = np.flatnonzero(size == items)
        step = max(1, CELLS // max(1, int(items) * len(gains)))
        for begin in range(0, len(alike), step):
            chosen = alike[begin : begin + step]
            node = start[chosen][:, None] + np.arange(items)
            table = np.ascontiguousarray(gains[:, node].transpose(1, 0, 2))
            share = np.broadcast_to(law.share, table.shape[:2]).copy()
            places = np.broadcast_to(inverse[:items], (len(chosen), items))
            order, surely = arranged(table, share, places)
            mine, sure_ties = _worst_of_ties(table, share, places, group[node])
            value, own = (value_of(table, share, places, found) for found in (order, mine))
            ahead = own > value  # only where the best order was not found for sure, or by rounding
            order = np.where(ahead[:, None], mine, order)
            value = np.maximum(own, value)
            loss[chosen], optimal[chosen] = 1 - own, 1 - value
            lower[chosen] = 1 - (value if surely else np.maximum(value, mixed_best(table, share, places)))
            best_sure[chosen], worst_sure[chosen] = surely, sure_ties
            place[node] = np.argsort(order, axis=1)
    fails = loss - optimal > ROUNDING
    known = worst_sure & (best_sure | (loss - lower <= ROUNDING))
    verdict = np.where(fails, FAILS, np.where(known, HOLDS, UNDETERMINED)).astype(np.int8)
    return GainRegrets(loss, optimal, lower, best_sure & worst_sure, verdict, place)


def _worst_of_ties(gains: Floats, share: Floats, places: Floats, group: Nodes) -> tuple[Nodes, Flags]:
    """Order each row by its groups, and items of a group the worst way: groups do not see each other's order."""
    rows, _, items = gains.shape
    sorter = np.argsort(group, axis=1, kind="stable")
    sure = np.ones(rows, bool)
    ranked = np.take_along_axis(group, sorter, axis=1)
    new = np.ones((rows, items), bool)
    new[:, 1:] = ranked[:, 1:] != ranked[:, :-1]
    row, begin = np.nonzero(new)
    length = np.diff(np.append(row * items + begin, rows * items))
    passing = np.cumprod(1.0 - np.take_along_axis(gains, sorter[:, None, :], axis=2), axis=2)
    for tied in np.unique(length[length > 1]):
        which = np.flatnonzero(length == tied)
        r, column = row[which], begin[which][:, None] + np.arange(tied)
        members = sorter[r[:, None], column]
        before = share[r]
        behind = column[:, 0] > 0
        before[behind] *= passing[r[behind], :, column[behind, 0] - 1]
        inner, surely = arranged(
            gains[r[:, None], :, members].transpose(0, 2, 1), before, places[r[:, None], column], worst=True
        )
        sorter[r[:, None], column] = np.take_along_axis(members, inner, axis=1)
        sure[r] &= surely
    return sorter, sure


@dataclass(frozen=True)
class Law:
    """How the law μ of score vectors is made: the structure's scores of all judgments, or of k-subsets of them."""

    structure: Structure
    order: int | None
    """Judgments aggregated at a time; None: all of them, a point law."""
    subsets: int
    seed: int
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of the structure."""

    @property
    def chances(self) -> bool:
        """Whether the structure's scores are probabilities."""
        return self.structure.name in CHANCES or self.structure.reversal == "complement"

    @classmethod
    def of(
        cls,
        prefs: Preferences,
        structure: str | None,
        order: int | str,
        subsets: int,
        seed: int,
        options: Mapping[str, Any] | None = None,
    ) -> Law:
        """Check what was asked for; without a structure log-odds, or the usual one for selections."""
        name = structure or (usual_clicks(prefs) if prefs.kind == "selections" else "log-odds")
        member = find_structure(name)
        member.check(prefs.kind, options or {})
        if order == "all":
            return cls(member, None, 1, seed, options or {})
        if isinstance(order, bool) or not str(order).isdecimal() or int(order) < 1:
            raise UsageError(f"order must be 'all' or a number of judgments, at least 1, not {order!r}")
        if subsets < 1:
            raise UsageError(f"subsets must be at least 1, not {subsets}")
        return cls(member, int(order), subsets, seed, options or {})

    def scores(self, batch: Batch) -> Scores:
        """Return the structure's scores; estimates of chances above 1, which inverse propensities can make, are 1."""
        found = self.structure(batch, **self.options)
        return replace(found, value=np.minimum(found.value, 1.0)) if self.chances else found

    def relevance(self, batch: Batch) -> Relevance:
        """Return the scores of the graphs of a batch of whole queries: a row for each subset."""
        if self.order is None:
            return Relevance.of(self.scores(batch).value, batch.node_start)
        drawn = Batch.subsets(batch.prefs, self.order, self.subsets, seed=self.seed, queries=batch.query)
        scores = self.scores(drawn)
        known = np.ones(len(scores.value), bool) if scores.known is None else scores.known
        last = np.searchsorted(drawn.query, batch.query, side="right") - 1  # queries of few judgments have one subset
        first = np.searchsorted(drawn.query, batch.query)
        rows = []
        for draw in range(self.subsets):
            graph = np.minimum(first + draw, last)
            shift = drawn.node_start[graph] - batch.node_start[:-1]
            rows.append(np.arange(len(batch.item)) + shift[batch.owner])
        table, told = scores.value[np.stack(rows)], known[np.stack(rows)]
        if not told.all():  # an item that a subset leaves unexamined is in the place of its mean, or of all judgments
            mean = np.where(told, table, 0.0).sum(axis=0) / np.maximum(told.sum(axis=0), 1)
            table = np.where(told, table, np.where(told.any(axis=0), mean, self.scores(batch).value))
        return Relevance.of(table, batch.node_start)


@dataclass(frozen=True)
class Yardstick:
    """The loss of lists that scores are charged with: a target, the gain of the law's scores, how near scores tie."""

    target: Target
    law: Law
    gain: str
    close: float = 0.0

    @classmethod
    def own(cls, chosen: Chosen, law: Law) -> Yardstick:
        """Return the loss that a surrogate of scores is consistent for, with the gain that it takes."""
        return cls(Target(chosen.target), law, _own_gain(chosen, law))

    @classmethod
    def asked(cls, target: Target, law: Law) -> Yardstick:
        """Return a target with the gain by which ``fit`` judges by it: 2^s − 1, chances as they are."""
        gain = "identity" if law.chances else "sigmoid" if target.name == "err" else "2^s-1"
        return cls(target, law, gain, CLOSE)

    def regrets(self, law: Relevance, alpha: Floats) -> GainRegrets:
        """Charge scores."""
        known = np.where(np.isnan(alpha), 0.0, alpha)
        return gain_regrets(law, known, self.target.name, gain=self.gain, at=self.target.at, close=self.close)

    def charge(self, law: Relevance, alpha: Floats, status: NDArray[np.int8], known: Flags) -> SurrogateVerdict:
        """Charge scores as a verdict; what is not ``known`` has none."""
        charged = self.regrets(law, alpha)
        none = np.full(len(charged.loss), -1, np.int64)
        nothing = np.where(known, 0.0, np.nan)
        regret = np.where(charged.regret > ROUNDING, charged.regret, 0.0)
        consistent = np.where(regret > 0, NO, np.where(charged.exact, YES, UNKNOWN))
        return SurrogateVerdict(
            status,
            charged.loss + nothing,
            regret + nothing,
            regret + nothing,
            np.where(known, consistent, UNKNOWN).astype(np.int8),
            np.zeros(len(none), np.int64),
            none,
            none,
            alpha,
        )


def _own_gain(chosen: Chosen, law: Law) -> str:
    """Gains for ERR are chances: the scores themselves where they are, else their sigmoid."""
    default = str(chosen.member.defaults.get("gain", "2^s"))
    return "sigmoid" if chosen.target == "err" and not law.chances else default


def minimised(chosen: Chosen, source: Batch | Graphs | Relevance, law: Law) -> Minimum:
    """Minimise a surrogate on what it reads."""
    options = {"gain": _own_gain(chosen, law)} if "gain" in chosen.member.defaults else {}
    return minimise(chosen.member.objective(source, phi=chosen.phi, **options))


def judge_by_gains(found: Minimum, by: Yardstick, law: Relevance) -> SurrogateVerdict:
    """Charge the minimisers of a surrogate with a loss of lists, where there are many the worst one found.

    Of many minimisers it is said that all are right only where each puts the items in a best order of the law.
    """
    verdict = by.charge(law, found.alpha, found.status, found.known)
    many = found.known & (found.status == Status.NOT_UNIQUE)
    if not many.any() or not by.close:
        return verdict
    charged = by.regrets(law, found.alpha)
    order = np.lexsort((charged.place, law.owner))
    same = law.owner[order[:-1]] == law.owner[order[1:]]
    above, below = order[:-1][same], order[1:][same]
    start = Ragged.counted(law.owner[above], len(many)).start
    empty = np.zeros(0, np.int64)
    best = Differences(law.node_start, start, above, below, np.ones(len(above)), empty, empty)
    wrong = ~(found.least_gaps(above, below) > CLOSE) & many[law.owner[above]]
    open_ = best.edges.most(wrong.astype(np.int64)) > 0
    least = charged.optimal_loss + ROUNDING

    def loss_of(alpha: Floats) -> Floats:
        return by.regrets(law, alpha).loss

    worst = worse_minimisers(best, wrong, found, verdict.loss, np.where(open_, least, np.nan), loss_of)
    regret = np.where(worst > least, worst - charged.optimal_loss, 0.0) + np.where(found.known, 0.0, np.nan)
    most = np.where(open_, 1.0 - charged.lower, verdict.regret_at_most)  # no order loses more than 1
    consistent = np.where(regret > 0, NO, np.where(open_, UNKNOWN, verdict.consistent)).astype(np.int8)
    return replace(verdict, loss=worst, regret=regret, regret_at_most=most, consistent=consistent)
