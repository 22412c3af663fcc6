"""Which pairs to ask next: a ranked list for annotators, with what is known of each pair and why it should be asked.

First come pairs that connect the components of a query, then those whose judgments gain most. How many votes make the
majority on one pair right is said by the binomial law, without a model.

What one more judgment gains, for all pairs of a stack of components at once: scores s with covariance V;
v_ab = V_aa + V_bb − 2V_ab, d_ab = s_a − s_b. Once V has shrunk to V', the expected number of pairs of a set C that
stand in the wrong order, averaged over the truth given the data, is for small V' about

    E(V') = √(2/π) Σ_{ab in C} p_ab √v'_ab,   p_ab = φ(d_ab/√v_ab)/√v_ab,

with p_ab the density at 0 of the true difference (∫ p_ab Φ(−|x|/√v') dx = √(2/π) p_ab √v'). k judgments on (i, j) add
the information w(e_i − e_j)(e_i − e_j)ᵀ, w = k π_ij(1 − π_ij), and by Sherman and Morrison (Ann. Math. Statist. 21,
1950) take [c_abᵀV(e_i − e_j)]² w/(1 + w v_ij) off v_ab. To first order E falls by

    gain_ij = w (e_i − e_j)ᵀ M (e_i − e_j)/(1 + w v_ij),   M = V L V,

L the Laplacian with the weights p_ab/√(2π v_ab) on C: a c-optimal design for many contrasts (Atkinson, Donev and
Tobias, Optimum Experimental Designs, 2007, ch. 10), weighted by what is undecided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.special import betainc, ndtri

from concordant.auditing.scores_covariance import LARGEST, Block, Chooser, Fitted, blocks, fitted
from concordant.auditing.stopping import check_tops, nearest
from concordant.errors import UsageError
from concordant.preferences.connectivity import Connectivity
from concordant.preferences.frames import as_pandas
from concordant.preferences.graphs import Batch, Graphs
from concordant.preferences.notes import Note, of_queries
from concordant.preferences.preferences import Preferences
from concordant.preferences.ragged import Ragged

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def tallies(graphs: Graphs, better: Ints, worse: Ints) -> tuple[Floats, Floats]:
    """Strength of all judgments on each pair of nodes, and the share that ``better`` won of it (NaN without any)."""
    width = graphs.nodes
    known = graphs.first * width + graphs.second
    key = np.minimum(better, worse) * width + np.maximum(better, worse)
    low, high = np.searchsorted(known, key), np.searchsorted(known, key, side="right")
    above, below = (np.concatenate(([0.0], np.cumsum(side))) for side in (graphs.above, graphs.below))
    won, lost = above[high] - above[low], below[high] - below[low]
    won, lost = np.where(better < worse, won, lost), np.where(better < worse, lost, won)
    total = won + lost
    share = np.divide(won, total, out=np.full(len(key), np.nan), where=total > 0)
    return total, np.clip(share, 0.0, 1.0)


def reasons(
    fit: Fitted,
    top: int | None,
    better: Ints,
    worse: Ints,
    judged: Floats,
    share: Floats,
    *,
    connects: NDArray[np.bool_],
) -> list[str]:
    """One line for each pair."""
    batch = fit.batch
    place = _places(fit)
    needed = _between(batch.graphs, better, worse, judged == 0)
    group = fit.gauge.group
    members = np.bincount(group, minlength=fit.gauge.groups)

    def label(node: int) -> str:
        return repr(batch.prefs.items.take(batch.item[node : node + 1]).to_pylist()[0])

    out = []
    for i, (a, b) in enumerate(zip(better.tolist(), worse.tolist(), strict=True)):
        if connects[i]:
            one, other = int(members[group[a]]), int(members[group[b]])
            who = f"{label(b)} was never compared" if other == 1 else f"connects {other:,} items"
            out.append(f"{who}: connects it with {one:,} others" if other == 1 else f"{who} with {one:,} others")
            continue
        told = [_boundary(top, int(place[a]), int(place[b]))]
        told += _open(fit.links, a, b, label)
        if judged[i] == 0:
            told.append("never judged, though a chain of preferences links them" if needed[i] else "never judged")
        elif share[i] < 0.5:
            told.append("the votes so far contradict the ranking")
        elif share[i] == 0.5:
            told.append("the votes so far are even")
        out.append("; ".join(told))
    return out


def _boundary(top: int | None, a: int, b: int) -> str:
    if top is None or a <= top < b:
        return f"decides place {a} against {b}"
    side = "in" if b <= top else "below"
    return f"places {a} and {b}, both {side} the top {top}: helps to place others"


def _open(links: Connectivity, a: int, b: int, label: Callable[[int], str]) -> list[str]:
    if links.separated[a] and links.separated[b]:
        return ["nothing limits their scores on both sides yet"]
    out = []
    for node in (a, b):
        above, below = links.open_above[node], links.open_below[node]
        if above or below:
            ends = "above or below" if above and below else "above" if above else "below"
            out.append(f"nothing limits {label(node)} from {ends} yet")
    return out


def _places(fit: Fitted) -> Ints:
    """Place of each node in its component, 1 the best."""
    group = fit.gauge.group
    order = np.lexsort((-fit.scores.value, group))
    return Ragged.runs(group[order]).place[np.argsort(order)] + 1


def _between(graphs: Graphs, better: Ints, worse: Ints, wanted: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether some item stands between the two by net preferences (a over it, it over b, or the other way round).

    Only then does Definition 4 (low noise) say anything of the pair, and need to know it.
    """
    found = np.zeros(len(better), bool)
    rows = np.flatnonzero(wanted)
    if len(rows) == 0:
        return found
    gap = graphs.above - graphs.below
    over = np.where(gap > 0, graphs.first, graphs.second)[gap != 0]
    under = np.where(gap > 0, graphs.second, graphs.first)[gap != 0]
    beats = csr_array((np.ones(len(over)), (over, under)), shape=(graphs.nodes, graphs.nodes))
    beaten = csr_array(beats.T)
    a, b = better[rows], worse[rows]
    one = beats[a].multiply(beaten[b]).sum(axis=1)
    other = beats[b].multiply(beaten[a]).sum(axis=1)
    found[rows] = np.asarray(one + other).ravel() > 0
    return found


SHORTLIST, PER_PAIR = 400, 40
"""How many of the best pairs the greedy choice goes on with: at least so many, and so many for each pair wanted."""


def undecided_weights(value: Floats, covariance: Floats, top: NDArray[np.bool_] | None) -> Floats:
    """The weights p_ab/√(2π v_ab) of the pairs in C: all, or one inside ``top`` and one outside; shape (G, n, n)."""
    v = _between_gains(covariance)
    t = np.abs(value[:, :, None] - value[:, None, :]) / np.sqrt(v)
    weight = np.exp(-0.5 * t * t) / (2.0 * np.pi * v)
    if top is not None:
        weight *= top[:, :, None] != top[:, None, :]
    np.einsum("gii->gi", weight)[:] = 0.0
    return np.asarray(weight)


def chosen_pairs(
    value: Floats, covariance: Floats, weight: Floats, most: int, each: float = 1.0
) -> tuple[Ints, Ints, Floats]:
    """Choose up to ``most`` different pairs, one after the other, as if the earlier ones had ``each`` more judgments.

    ``value`` (G, n), ``covariance`` and ``weight`` (G, n, n). Returns columns of the better and the worse item and the
    gain when chosen, shapes (G, pairs). The choice is among the 400 pairs (40 for each wanted) that gain most alone.
    """
    n = value.shape[1]
    laplacian = -weight
    np.einsum("gii->gi", laplacian)[:] = weight.sum(axis=2)
    mixed = covariance @ laplacian @ covariance
    first, second, v, m, w = _shortlist(value, covariance, mixed, most, each)
    pairs = min(most, n * (n - 1) // 2)
    better, worse = np.empty((len(value), pairs), np.int64), np.empty((len(value), pairs), np.int64)
    gains = np.empty((len(value), pairs))
    steps: list[tuple[Floats, Floats, Floats, Floats]] = []  # V' and M' are V and M less these rank-one terms
    graph = np.arange(len(value))
    free = np.ones(first.shape, bool)
    for number in range(pairs):
        gain = np.where(free, w * m / (1.0 + w * v), -1.0)
        at = gain.argmax(axis=1)
        i, j = first[graph, at], second[graph, at]
        better[:, number], worse[:, number], gains[:, number] = i, j, gain[graph, at]
        free[graph, at] = False
        u = covariance[graph, :, i] - covariance[graph, :, j]
        q = mixed[graph, :, i] - mixed[graph, :, j]
        for beta, kappa, old_u, old_q in steps:
            along_u = (old_u[graph, i] - old_u[graph, j])[:, None]
            along_q = (old_q[graph, i] - old_q[graph, j])[:, None]
            u = u - beta * old_u * along_u
            q = q - beta * (old_u * along_q + old_q * along_u) + beta**2 * kappa * old_u * along_u
        beta = (w[graph, at] / (1.0 + w[graph, at] * (u[graph, i] - u[graph, j])))[:, None]
        kappa = (q[graph, i] - q[graph, j])[:, None]
        steps.append((beta, kappa, u, q))
        du = np.take_along_axis(u, first, 1) - np.take_along_axis(u, second, 1)
        dq = np.take_along_axis(q, first, 1) - np.take_along_axis(q, second, 1)
        v = v - beta * du * du
        m = np.maximum(m - 2.0 * beta * du * dq + beta**2 * kappa * du * du, 0.0)
    return better, worse, gains


def _between_gains(matrix: Floats) -> Floats:
    """x_aa + x_bb − 2x_ab of all pairs, above 0 off the diagonal; 1 on it."""
    own = np.einsum("gii->gi", matrix)
    out = own[:, :, None] + own[:, None, :] - 2.0 * matrix
    floor = 1e-12 * np.maximum(own.max(axis=1), 1e-300)
    out = np.maximum(out, floor[:, None, None])
    np.einsum("gii->gi", out)[:] = 1.0
    return np.asarray(out)


def _shortlist(
    value: Floats, covariance: Floats, mixed: Floats, most: int, each: float
) -> tuple[Ints, Ints, Floats, Floats, Floats]:
    """The pairs with the largest gains: first, second, v, dᵀMd and w of each, shapes (G, pairs)."""
    n = value.shape[1]
    row, column = np.triu_indices(n, 1)
    pick = row * n + column

    def of_pairs(matrix: Floats) -> Floats:
        own = np.einsum("gii->gi", matrix)
        return np.asarray(own[:, row] + own[:, column] - 2.0 * matrix.reshape(len(matrix), -1)[:, pick])

    v, m = np.maximum(of_pairs(covariance), 0.0), np.maximum(of_pairs(mixed), 0.0)
    half = np.exp(-0.5 * np.abs(value[:, row] - value[:, column]))
    w = each * (half / (1.0 + half * half)) ** 2
    keep = min(len(row), max(SHORTLIST, PER_PAIR * most))
    if keep == len(row):
        shape = v.shape
        return np.broadcast_to(row, shape), np.broadcast_to(column, shape), v, m, w
    best = np.sort(np.argpartition(-(w * m / (1.0 + w * v)), keep - 1, axis=1)[:, :keep], axis=1)
    v, m, w = (np.take_along_axis(matrix, best, 1) for matrix in (v, m, w))
    return row[best], column[best], v, m, w


@dataclass(frozen=True, eq=False)
class Questions:
    """Pairs to ask, the most useful first in each query; arrays have one entry per pair."""

    batch: Batch
    graph: Ints
    number: Ints
    """1 for the first pair of its query."""
    better: Ints
    """Node of the batch that ranks higher at present (of pairs that connect components: the one in the largest)."""
    worse: Ints
    judgments: Floats
    """Strength of the judgments so far (their number, where none has a weight)."""
    share: Floats
    """Of these, how much ``better`` won, ties half; NaN when never judged."""
    predicted: Floats
    """The share that the present scores predict."""
    gain: Floats
    """Expected number of pairs of items put in the right order; inf where the pair connects components."""
    to_settle: Floats
    """More votes on this pair until the majority of all is right with the level's probability, if the true
    share is (won + 1)/(votes + 2), Laplace's rule; no model. inf at even votes, NaN when never judged."""
    reason: list[str]
    top: int | None
    notes: tuple[Note, ...] = ()

    def __len__(self) -> int:
        return len(self.graph)

    def to_arrow(self) -> pa.Table:
        """Return one row for each pair."""
        prefs, item = self.batch.prefs, self.batch.item
        return pa.table(
            {
                "query": prefs.queries.take(self.batch.query[self.graph]),
                "number": self.number,
                "better": prefs.items.take(item[self.better]),
                "worse": prefs.items.take(item[self.worse]),
                "judgments": self.judgments,
                "share": pa.array(self.share, from_pandas=True),
                "predicted": self.predicted,
                "gain": self.gain,
                "to_settle": pa.array(self.to_settle, from_pandas=True),
                "reason": self.reason,
            }
        )

    def to_pandas(self) -> Any:
        """Return the rows as a pandas data frame (pandas must be installed)."""
        return as_pandas(self.to_arrow())


TURNS = np.array([0, 1, -1, 2, -2])
"""Which opponents from the largest component take turns, as steps from the one in the middle of interest."""


def connecting_pairs(fit: Fitted, top: int | None, most: int) -> tuple[Ints, Ints, Ints]:
    """Graph and two nodes of up to ``most`` pairs of each graph, one for each component but the largest.

    The item that stands for a component is its best with ``top``, else its middle one. Its opponent stands about place
    ``top`` of the largest component (the boundary, which the answer will be compared with), else about its middle; five
    of them take turns. Returned with the opponent first.
    """
    batch, component = fit.batch, fit.links.component
    order = np.lexsort((-fit.scores.value, component, batch.owner))
    own = component[order]
    graph = batch.owner[order]
    parts = Ragged.runs(own, graph)
    begin, size = parts.first, parts.sizes
    number, graph = own[begin].astype(np.int64), graph[begin]
    main = np.zeros(len(batch), np.int64)
    main[graph[number == 0]] = np.flatnonzero(number == 0)
    chosen = np.flatnonzero((number > 0) & (number <= most))
    speaker = begin[chosen] + (0 if top is not None else (size[chosen] - 1) // 2)
    home = main[graph[chosen]]
    middle = (size[home] - 1) // 2 if top is None else np.minimum(top - 1, size[home] - 1)
    place = np.clip(middle + TURNS[(number[chosen] - 1) % len(TURNS)], 0, size[home] - 1)
    return graph[chosen], order[begin[home] + place], order[speaker]


MOST = 1 << 30
"""Half the votes beyond which no number is given."""


def votes_for_majority(share: ArrayLike, level: float = 0.95) -> Floats:
    """Least odd n with P(the majority of n votes is on the right side) ≥ level, elementwise.

    With p = max(share, 1 − share) the chance that a vote goes the right way, P = P(Bin(n, p) ≥ (n + 1)/2) =
    I_p((n + 1)/2, (n + 1)/2), which grows with odd n; about z²p(1 − p)/(p − ½)² for p near ½. ``share`` in [0, 1]; inf
    for ½ (or so near it that more than 2·10⁹ votes would be needed), NaN where it is NaN.

    Errors: UsageError for a level outside (0.5, 1) or a share outside [0, 1].

    >>> votes_for_majority([0.6, 0.75, 1.0, 0.5])
    array([67.,  9.,  1., inf])

    Source: de Condorcet 1785; the binomial law.
    """
    if not 0.5 < level < 1:
        raise UsageError(f"the level lies between 0.5 and 1, not {level}")
    p = np.asarray(share, np.float64)
    if ((p < 0) | (p > 1)).any():
        raise UsageError("a share lies between 0 and 1")
    p = np.maximum(p, 1.0 - p)
    found = np.full(p.shape, np.nan)
    known = ~np.isnan(p)
    half = _halves(p[known], level)
    found[known] = np.where(half >= MOST, np.inf, 2.0 * half - 1.0)
    return found


def _halves(p: Floats, level: float) -> NDArray[np.int64]:
    """Least h with I_p(h, h) ≥ level, for n = 2h − 1 votes, MOST at the most; shape as ``p``, of one dimension."""
    with np.errstate(divide="ignore"):
        near = 0.5 * ndtri(level) ** 2 * p * (1.0 - p) / (p - 0.5) ** 2  # the normal law
    low = np.minimum(0.99 * near - 3.0, MOST - 1).clip(0).astype(np.int64)
    high = np.minimum(1.01 * near + 4.0, MOST).astype(np.int64)
    low[betainc(np.maximum(low, 1), np.maximum(low, 1), p) >= level] = 0  # low is too few
    short = betainc(high, high, p) < level
    low[short] = high[short]  # nearer than the normal law says; at MOST no number is given
    high[short] = MOST
    while len(open_ := np.flatnonzero(high - low > 1)):
        middle = (low[open_] + high[open_]) // 2
        enough = betainc(middle, middle, p[open_]) >= level
        high[open_[enough]], low[open_[~enough]] = middle[enough], middle[~enough]
    return np.asarray(high, np.int64)


HELD = 1 << 21
"""Numbers of a matrix of a stack held at once."""


def pairs_to_ask(
    source: Preferences | Batch | Fitted,
    *,
    top: int | None = None,
    most: int = 20,
    each: int = 1,
    level: float = 0.95,
    prior: float = 0.01,
    ties: str = "half",
) -> Questions:
    """List for each query the pairs whose judgments would decide most, the best first.

    First pairs that connect components: without them nothing else compares their items. Then the pairs with the largest
    ``gain``, the expected number of pairs in the wrong order that ``each`` more judgments on the pair put right, to
    first order and for small errors (``gains``): among all pairs of items, or with ``top`` among those of an
    item of the present top k and one below it. Pairs are chosen one after the other, as if the earlier ones had been
    judged already, so that the list is not twenty times the same question. Nothing here is random.

    Errors: InputError when nothing is compared; UsageError for numbers below 1, for a ``top`` that no query has and for
    options of ``bradley_terry``.

    >>> votes = Preferences.from_comparisons(["x", "x", "y", "z"], ["y", "z", "z", "y"], count=[9, 9, 3, 3])
    >>> first = pairs_to_ask(votes, most=1).to_arrow().to_pylist()[0]
    >>> first["better"], first["worse"], first["judgments"], first["share"], first["reason"]
    ('y', 'z', 6.0, 0.5, 'decides place 2 against 3; the votes so far are even')
    """
    for name, number in (("most", most), ("each", each)):
        if number < 1:
            raise UsageError(f"{name} is a number of at least 1, not {number}")
    if not 0.5 < level < 1:
        raise UsageError(f"the level lies between 0.5 and 1, not {level}")
    fit = fitted(source, prior=prior, ties=ties)
    batch = fit.batch
    if top is not None:
        check_tops((top,), batch.sizes)
    graph, better, worse = connecting_pairs(fit, top, most)
    approximate = np.zeros(len(batch), bool)
    rows = [(graph, better, worse, np.full(len(graph), np.inf))]
    for block in blocks(fit, widest() if top is None else nearest((top,)), main=top is not None):
        approximate[block.graph] |= not block.whole
        rows.extend(_chosen(block, top, most, float(each)))
    graph, better, worse, gain = (np.concatenate(column) for column in zip(*rows, strict=True))
    order = np.lexsort((np.arange(len(graph)), -gain, graph))
    order = order[gain[order] > 0]
    order = order[Ragged.runs(graph[order]).place < most]
    graph, better, worse, gain = graph[order], better[order], worse[order], gain[order]
    judged, share = tallies(batch.graphs, better, worse)
    needed = votes_for_majority((share * judged + 1.0) / (judged + 2.0), level)
    return Questions(
        batch=batch,
        graph=graph,
        number=Ragged.runs(graph).place + 1,
        better=better,
        worse=worse,
        judgments=judged,
        share=share,
        predicted=1.0 / (1.0 + np.exp(-(fit.scores.value[better] - fit.scores.value[worse]))),
        gain=gain,
        to_settle=np.maximum(needed - judged, 0.0),
        reason=reasons(fit, top, better, worse, judged, share, connects=np.isinf(gain)),
        top=top,
        notes=_notes(fit, top, most, approximate),
    )


def widest() -> Chooser:
    """Choose the items of a large component whose scores are the least certain."""

    def choose(_: Floats, error: Floats) -> Ints:
        return np.sort(np.argsort(-error, kind="stable")[:LARGEST])

    return choose


def _chosen(block: Block, top: int | None, most: int, each: float) -> Iterator[tuple[Ints, Ints, Ints, Floats]]:
    """Graph, better and worse node, gain of the pairs chosen in a block."""
    n = block.nodes.shape[1]
    step = max(1, HELD // n**2)
    for begin in range(0, len(block.graph), step):
        part = block.some(slice(begin, begin + step))
        inside = None if top is None else part.place < top
        weight = undecided_weights(part.value, part.covariance, inside)
        first, second, gain = chosen_pairs(part.value, part.covariance, weight, most, each)
        row = np.arange(len(part.graph))[:, None]
        graph = np.broadcast_to(part.graph[:, None], first.shape)
        yield graph.ravel(), part.nodes[row, first].ravel(), part.nodes[row, second].ravel(), gain.ravel()


def _notes(fit: Fitted, top: int | None, most: int, approximate: NDArray[np.bool_]) -> tuple[Note, ...]:
    batch = fit.batch
    components = np.zeros(len(batch), np.int64)
    np.maximum.at(components, batch.owner, fit.links.component.astype(np.int64))
    which = "least certain" if top is None else "nearest the boundary"
    told = (
        *of_queries(
            "few pairs",
            components > most,
            "{queries:needs|need} more than the {most:,.0f} pairs listed only to connect {queries:its|their} items "
            "(the largest {largest:,.0f})",
            most=float(most),
            largest=float(components.max(initial=0)),
        ),
        *of_queries(
            "nearest asked",
            approximate,
            f"{{queries:has|have}} more than {LARGEST:,} connected items: only pairs of the {LARGEST:,} {which} were "
            "looked at, their errors taken for independent",
        ),
    )
    if top is None:
        return told
    text = "{queries:has|have} at most {top:,.0f} items: no boundary there"
    return (*told, *of_queries("no boundary", batch.sizes <= top, text, top=float(top)))
