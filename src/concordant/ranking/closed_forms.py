"""Structures in closed form: average log-odds, shares of wins (AoS §5.1, §6.2), Thurstone–Mosteller (AoS (22))."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import expit, ndtri

from concordant.errors import UsageError
from concordant.preferences.connectivity import connectivity, net_weights
from concordant.preferences.graphs import Batch, Graphs
from concordant.preferences.ragged import centred
from concordant.preferences.status import Status
from concordant.ranking.elimination import FAR, Elimination
from concordant.ranking.newton import conjugate_gradients
from concordant.ranking.ranked_lists import Rankings
from concordant.ranking.scores import Scores, closed_form, never_judged, numbered, unfinished

C0 = 0.5
"""What is added to the wins of either side of a pair: half a win, which removes the first-order bias of an empirical
logit (Haldane 1956, Anscombe 1956)."""


def pair_log_odds(graphs: Graphs, c0: float) -> NDArray[np.float64]:
    """Return log (n_jl + c0) / (n_lj + c0) of each pair, first against second."""
    if not np.isfinite(c0) or c0 < 0:
        raise UsageError(f"c0 is added to the counts of wins and must be a number ≥ 0, not {c0}")
    if c0 == 0:
        refuse_one_sided(one_sided(graphs))
    return np.asarray(np.log((graphs.above + c0) / (graphs.below + c0)))


def one_sided(graphs: Graphs) -> int:
    """How many pairs were won by one side only."""
    return int(((graphs.above == 0) | (graphs.below == 0)).sum())


def refuse_one_sided(pairs: int) -> None:
    """Refuse c0 = 0 where that many pairs were won by one side only. Errors: UsageError."""
    if pairs:
        raise UsageError(f"c0 = 0, but {pairs:,} pairs were won by one side only: log-odds need c0 > 0 there")


def average_log_odds(batch: Batch, *, c0: float = C0) -> Scores:
    """Average empirical log-odds against the other items (AoS §6.2).

    s(i) = 1/(m−1) Σ_{j≠i} log (n_ij + c0) / (n_ji + c0), pairs never judged counting 0; m the items of the query.
    c0 is added to the counts, not to the frequencies n/k, so it fades as judgments come in. Under the BTL model (26)
    with every pair compared the scores tend to m/(m−1) · (r_i − r̄) (27). A graph's scores sum to zero.

    Errors: UsageError when c0 < 0, or when c0 = 0 and a pair was won by one side only.

    >>> from concordant.preferences.preferences import Preferences
    >>> average_log_odds(Batch.whole(Preferences.from_comparisons(["x"] * 3, ["y"] * 3)), c0=1.0).value.round(4)
    array([ 1.3863, -1.3863])
    """
    return SUMS["log-odds"].scores(batch.graphs, c0=c0)


def _mean_odds(graphs: Graphs, total: Floats, *, c0: float = C0) -> Scores:
    others = np.maximum(graphs.sizes - 1, 1)[graphs.owner]
    said = (
        "they count as even odds, which is biased on incomplete designs. thurstone-mosteller and bradley-terry are not."
    )
    return closed_form(graphs, total / others, {"c0": c0}, never_judged("log-odds", graphs, said))


Floats = NDArray[np.float64]


def counting(batch: Batch) -> Scores:
    """Plain win rate: s_j = n_j· / (n_j· + n_·j), a tie half a win; ½ for items in no comparison.

    It does not ask against whom an item won.

    >>> from concordant.preferences.preferences import Preferences
    >>> counting(Batch.whole(Preferences.from_comparisons(["x", "x", "y"], ["y", "z", "z"]))).value.tolist()
    [1.0, 0.5, 0.0]
    """
    return SUMS["counting"].scores(batch.graphs)


def borda(batch: Batch) -> Scores:
    """Borda scores (AoS §5.1), from pairs or, for orders, from positions.

    Pairs: s = A1 with A_jl = (n_jl − n_lj) / (n_jl + n_lj) on observed pairs, 0 elsewhere: conditional frequencies,
    so that an item gains nothing by being compared often; a graph's scores sum to zero.
    Orders: s_j = the mean, over the lists that hold j and at least one other item, of
    (items below j − items above j) / (items of the list − 1), in [−1, 1]; items tied with j count on neither side,
    which is half each. For full orders this is 2 b_j / (m − 1) − 1 with b_j the classic mean Borda count, and equals
    A1 / (m − 1). Items in no comparison have 0.

    >>> from concordant.preferences.preferences import Preferences
    >>> borda(Batch.whole(Preferences.from_comparisons(["x", "x", "y"], ["y", "z", "z"]))).value.tolist()
    [2.0, 0.0, -2.0]
    """
    if batch.prefs.kind == "orders":
        return _positional(batch)
    return SUMS["borda"].scores(batch.graphs)


def copeland(batch: Batch) -> Scores:
    """Copeland scores: s_j = Σ over the opponents met of sign(n_jl − n_lj), ties half a win each way.

    An item that beats all others (a Condorcet winner) has the highest score, m − 1, and no other item has it. A pair
    that is level counts 0, which is half a win of the score that counts wins (its 2·wins − opponents is this one), as
    does one that was never judged; a graph's scores sum to zero. By how much an item wins does not matter.

    >>> from concordant.preferences.preferences import Preferences
    >>> votes = Preferences.from_comparisons(["x", "x", "y", "z"], ["y", "y", "x", "y"])
    >>> copeland(Batch.whole(votes)).value.tolist()
    [1.0, -2.0, 1.0]
    """
    return SUMS["copeland"].scores(batch.graphs)


def budgeted_borda(batch: Batch) -> Scores:
    """Probability of beating an opponent met, opponents counted alike (AoS §5.1, Ammar & Shah 2011).

    s_j = the mean over the observed l of n_jl / (n_jl + n_lj); ½ for items in no comparison.

    >>> from concordant.preferences.preferences import Preferences
    >>> votes = Preferences.from_comparisons(["x", "x", "y", "y"], ["y", "z", "z", "x"])
    >>> budgeted_borda(Batch.whole(votes)).value.tolist()
    [0.75, 0.75, 0.0]
    """
    return SUMS["budgeted-borda"].scores(batch.graphs)


def _positional(batch: Batch) -> Scores:
    lists = Rankings.of(batch)
    return closed_form(lists.chain(), mean_position(*positional_sums(lists, len(batch.item))), {})


def positional_sums(lists: Rankings, nodes: int) -> tuple[Floats, Floats]:
    """Return for each node Σ (items below − items above) / (items of the list − 1) over its lists, and their number."""
    others = (lists.length - 1)[lists.row].astype(float)
    mass = lists.weight[lists.row]
    total = np.bincount(lists.node, mass * (lists.below - lists.above) / others, nodes)
    return total.astype(float), np.bincount(lists.node, mass, nodes).astype(float)


def mean_position(total: Floats, mass: Floats) -> Floats:
    """Return the mean of ``positional_sums``, Borda's score; 0 for an item in no list of several."""
    return _ratio(total, mass, 0.0)


def _margin(graphs: Graphs) -> Floats:
    """A_jl of each pair, first against second."""
    return np.asarray((graphs.above - graphs.below) / (graphs.above + graphs.below))


@dataclass(frozen=True)
class PairSums:
    """Scores that follow from what the pairs of each item add up to, so that parts of a pair table add up as well."""

    terms: Callable[..., tuple[tuple[Floats, Floats], ...]]
    """What each pair adds to its first and to its second item, of each of the sums; of pair tables and options."""
    made: Callable[..., Scores]
    """The scores, of pair tables (but for their pairs), the sums and options."""

    def sums(self, graphs: Graphs, **options: Any) -> tuple[Floats, ...]:
        """Add the pairs up by node."""
        return tuple([graphs.add_to_nodes(*ends) for ends in self.terms(graphs, **options)])

    def scores(self, graphs: Graphs, **options: Any) -> Scores:
        """Return the scores of the nodes."""
        return self.made(graphs, *self.sums(graphs, **options), **options)


def _odds(graphs: Graphs, *, c0: float = C0) -> tuple[tuple[Floats, Floats], ...]:
    odds = pair_log_odds(graphs, c0)
    return ((odds, -odds),)


def _margins(graphs: Graphs) -> tuple[tuple[Floats, Floats], ...]:
    margin = _margin(graphs)
    return ((margin, -margin),)


def _sides(graphs: Graphs) -> tuple[tuple[Floats, Floats], ...]:
    side = np.sign(net_weights(graphs))
    return ((side, -side),)


def _shares(graphs: Graphs) -> tuple[tuple[Floats, Floats], ...]:
    share = 0.5 * (1.0 + _margin(graphs))
    return (share, 1.0 - share), (np.ones(len(share)), np.ones(len(share)))


def _both(graphs: Graphs) -> tuple[tuple[Floats, Floats], ...]:
    return (graphs.above, graphs.below), (graphs.below, graphs.above)


SUMS: Mapping[str, PairSums] = {
    "log-odds": PairSums(_odds, _mean_odds),
    "borda": PairSums(_margins, lambda graphs, total: closed_form(graphs, total, {})),
    "copeland": PairSums(_sides, lambda graphs, total: closed_form(graphs, total, {})),
    "budgeted-borda": PairSums(_shares, lambda graphs, won, met: closed_form(graphs, _ratio(won, met, 0.5), {})),
    "counting": PairSums(_both, lambda graphs, won, lost: closed_form(graphs, _ratio(won, won + lost, 0.5), {})),
}
"""By the name of the structure; of borda the scores from pairs."""


def _ratio(part: Floats, whole: Floats, otherwise: float) -> Floats:
    return np.asarray(np.divide(part, whole, out=np.full(len(part), otherwise), where=whole > 0))


PRECISE = 1e-14
STEPS = 300
"""Conjugate gradients get so many steps; graphs that need more (long chains) are then eliminated instead."""
LONG = 20_000
"""Steps for those that elimination would fill too much."""


Differences = Callable[[Floats, Floats], Floats]
DIFFERENCES = ("log-odds", "probit", "shares", "margins")


def pair_differences(batch: Batch, differences: str | Differences, c0: float) -> Floats:
    """Return A of (22) for each pair, first against second: by how much the judgments put the first ahead.

    With p = (n_jl + c0)/(n_jl + n_lj + 2 c0), 'log-odds' is log p/(1 − p), 'probit' √2 Φ⁻¹(p), the difference of scores
    in Thurstone's case V, and 'shares' 2p − 1. 'margins' is (n_jl − n_lj)/(judgments of the pair + 2 c0), the mean
    strength: of goals, or of ratings that differ (equal ones are no judgment of a pair). A function of (n_jl, n_lj) has
    to be skew-symmetric. Errors: UsageError.
    """
    graphs = batch.graphs
    odds = pair_log_odds(graphs, c0) if differences in ("log-odds", "probit") else np.zeros(0)
    if differences == "log-odds":
        return odds
    if differences == "probit":
        return np.asarray(-np.sqrt(2.0) * np.sign(odds) * ndtri(expit(-np.abs(odds))), np.float64)
    above, below = np.asarray(graphs.above, np.float64), np.asarray(graphs.below, np.float64)
    if differences == "shares":
        if not np.isfinite(c0) or c0 < 0:
            raise UsageError(f"c0 is added to the counts of wins and must be a number ≥ 0, not {c0}")
        return np.asarray((above - below) / (above + below + 2.0 * c0), np.float64)
    if differences == "margins":
        if not np.isfinite(c0) or c0 < 0:
            raise UsageError(f"c0 is added to the numbers of judgments and must be a number ≥ 0, not {c0}")
        edges = batch.edges
        judged = np.bincount(
            graphs.pair_of(edges.winner, edges.loser), batch.multiplicity[edges.holder], len(graphs.first)
        )
        return np.asarray((above - below) / (judged + 2.0 * c0), np.float64)
    if not callable(differences):
        raise UsageError(f"differences is {', '.join(map(repr, DIFFERENCES))} or a function, not {differences!r}")
    found, turned = (np.asarray(differences(*ends), np.float64) for ends in ((above, below), (below, above)))
    if found.shape != above.shape or not np.isfinite(found).all():
        raise UsageError("differences must return a finite number for each pair")
    if not np.allclose(found, -turned, rtol=1e-9, atol=1e-12):
        raise UsageError("differences must change its sign when the two sides of a pair are swapped")
    return found


def thurstone_mosteller(
    batch: Batch, *, c0: float = C0, weights: str = "pairs", differences: str | Differences = "log-odds"
) -> Scores:
    """Least-squares scores s_i − s_j ≈ A_ij (AoS (22)): s = (D_Ω − Ω)^† (Ω∘A) 1, A_jl = log (n_jl+c0)/(n_lj+c0).

    ``differences`` is A: 'log-odds', 'probit', 'shares' or 'margins' (``pair_differences``), or a function of the two
    columns (n_jl, n_lj) of wins of each pair, which knows no c0. Ω_jl is 1 on judged pairs and 0 elsewhere
    (``weights="pairs"``, the paper), or the strength n_jl + n_lj of the judgments (``weights="counts"``). Unjudged
    pairs take no part, so incomplete designs are not biased. The solution of least norm: scores sum to zero in every
    component; items in no comparison have 0.

    Solved as one sparse Laplacian system over the batch, by conjugate gradients, and by elimination where those are
    slow (long chains) or the weights lie far apart. ``gradient``: the largest entry of (D_Ω − Ω)s − (Ω∘A)1.

    Errors: UsageError for unknown ``weights``, ``differences`` or a c0 that is not allowed, for a function that is not
    skew-symmetric.

    >>> from concordant.preferences.preferences import Preferences
    >>> votes = Preferences.from_comparisons(["x"] * 3 + ["y"] * 3, ["y"] * 3 + ["z"] * 3)
    >>> thurstone_mosteller(Batch.whole(votes), c0=1.0).value.round(4)
    array([ 1.3863,  0.    , -1.3863])
    """
    graphs = batch.graphs
    omega, odds = weighted_differences(batch, c0=c0, weights=weights, differences=differences)
    component = connectivity(graphs).component
    group = numbered(graphs.owner, component)
    pull = graphs.add_to_nodes(omega * odds, -omega * odds)
    laplacian = _laplacian(graphs, omega)
    value, solved = _solve(laplacian, pull, graphs, STEPS)
    long = np.zeros(len(graphs), bool)
    far = _far(graphs, omega)
    for g in np.flatnonzero(~solved | far):
        nodes = slice(int(graphs.node_start[g]), int(graphs.node_start[g + 1]))
        pairs = slice(int(graphs.pair_start[g]), int(graphs.pair_start[g + 1]))
        first, second = graphs.first[pairs] - nodes.start, graphs.second[pairs] - nodes.start
        order = Elimination.of(first, second, nodes.stop - nodes.start)
        none = np.zeros(nodes.stop - nodes.start)
        found = None if order is None else order.least_squares(omega[pairs], (omega * odds)[pairs], none, none)
        long[g] = found is None
        if found is not None:
            value[nodes], solved[g] = found, True
    if long.any():
        again, ended = _solve(laplacian, pull, graphs, LONG)
        value = np.where(long[graphs.owner], again, value)
        solved = np.where(long, ended & ~far, solved)
    value = centred(value, group)
    left = laplacian @ value - pull
    given = {"c0": c0, "weights": weights, "differences": getattr(differences, "__name__", differences)}
    return balanced(graphs, component, value, solved, left, laplacian.diagonal(), given)


def balanced(
    graphs: Graphs,
    component: NDArray[np.int32],
    value: Floats,
    solved: NDArray[np.bool_],
    left: Floats,
    diagonal: Floats,
    options: dict[str, Any],
) -> Scores:
    """Return Thurstone–Mosteller's scores with how well they solve their equations.

    Parameters
    ----------
    graphs : pair tables, but for their pairs.
    component, value : of each node.
    solved : whether the equations of a graph were solved, as far as was seen while they were.
    left, diagonal : (D_Ω − Ω)s − (Ω∘A)1, and the diagonal of D_Ω − Ω.
    options : those of the structure.
    """
    left, solved = np.abs(left), solved.copy()
    gradient = np.zeros(len(graphs))
    np.maximum.at(gradient, graphs.owner, left)
    scale = diagonal * np.maximum(np.abs(value), 1.0)  # of each item: a weak one is not lost beside others
    np.logical_and.at(solved, graphs.owner, left <= 1e-9 * scale)
    judged = graphs.pairs.sizes > 0
    return Scores(
        value=value,
        components=component,
        status=np.where(judged, np.where(solved, Status.CONVERGED, Status.STOPPED), Status.CLOSED_FORM).astype(np.int8),
        iterations=np.zeros(len(graphs), np.int64),
        gradient=gradient,
        notes=unfinished("thurstone-mosteller", judged & ~solved),
        options=options,
    )


def weighted_differences(
    batch: Batch, *, c0: float = C0, weights: str = "pairs", differences: str | Differences = "log-odds"
) -> tuple[Floats, Floats]:
    """Return Ω and A of (22) for each pair, first against second. Errors: UsageError."""
    if weights not in ("pairs", "counts"):
        raise UsageError(f"weights is 'pairs' or 'counts', not {weights!r}")
    odds = pair_differences(batch, differences, c0)
    return np.ones(len(odds)) if weights == "pairs" else batch.graphs.above + batch.graphs.below, odds


def too_far(least: Floats, most: Floats) -> NDArray[np.bool_]:
    """Whether weights of pairs, of which these are the ends, lie too far apart for sums over nodes."""
    return np.asarray(least < FAR * most, bool)


def _laplacian(graphs: Graphs, omega: Floats) -> csr_array:
    """D_Ω − Ω of the whole batch."""
    nodes = np.arange(graphs.nodes)
    rows = np.concatenate([graphs.first, graphs.second, nodes])
    columns = np.concatenate([graphs.second, graphs.first, nodes])
    entries = np.concatenate([-omega, -omega, graphs.add_to_nodes(omega, omega)])
    return csr_array((entries, (rows, columns)), shape=(graphs.nodes, graphs.nodes))


def _solve(laplacian: csr_array, pull: Floats, graphs: Graphs, steps: int) -> tuple[Floats, NDArray[np.bool_]]:
    return conjugate_gradients(
        laplacian.__matmul__,
        laplacian.diagonal(),
        pull,
        graphs.owner,
        len(graphs),
        tolerance=PRECISE,
        iterations=steps,
    )


def _far(graphs: Graphs, omega: Floats) -> NDArray[np.bool_]:
    """Graphs whose weights lie too far apart for sums over nodes."""
    return too_far(graphs.pairs.least(omega), graphs.pairs.most(omega))
