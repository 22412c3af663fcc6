"""Plackett–Luce: maximum (penalised) likelihood of rankings, full or in tiers, and of choices from sets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, triu

from concordant.errors import UsageError
from concordant.preferences.graphs import Batch
from concordant.preferences.notes import Note
from concordant.preferences.ragged import centred
from concordant.preferences.status import Status
from concordant.ranking.bradley_terry import bradley_terry
from concordant.ranking.curvature import Curvature
from concordant.ranking.dense_newton import safe_step
from concordant.ranking.elimination import FAR, Elimination, far_apart
from concordant.ranking.luce_terms import LuceTerms, Position, information
from concordant.ranking.newton import conjugate_gradients
from concordant.ranking.ranked_lists import Rankings
from concordant.ranking.scores import (
    Scores,
    check_prior,
    numbered,
    refuse_separated,
    separation_note,
    unfinished,
)

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
PATIENCE = 300  # steps of conjugate gradients before elimination is tried
PAIRS = 5e7  # pairs of entries of one list for which the information is written out
KINDS = ("comparisons", "selections", "choices", "orders")
SMALL_STEP = 1e-7  # Newton's error after such a step is its square
ROUNDING = 1e-14


def plackett_luce(batch: Batch, *, prior: float = 0.01, iterations: int = 100) -> Scores:
    """Log-abilities θ that maximise the Plackett–Luce likelihood with a weak normal prior.

    An order i_1 ≻ … ≻ i_m has probability Π_r exp θ_{i_r} / Σ_{u≥r} exp θ_{i_u} (Plackett 1975, Luce 1959); items
    that a list leaves out take no part in it. A list with tied items is the event that those of a better tier stand
    above those of a worse one, in whatever order within: the sum of the probabilities of all orders that agree,
    Π_T P(T above the rest R), P = ∫₀^∞ e^−y Π_{i∈T} (1 − exp(−y e^θ_i / Σ_R e^θ_j)) dy, so the last tier, such as the
    items that a ballot does not rank, contributes 1. (Comparisons are read as Bradley–Terry's, a tie half a win each.)
    A choice is the chosen item against the set; a selection the clicked item against all examined, those above it and
    itself.

    ``prior`` is the precision of θ ~ N(0, 1/prior), 0 for plain maximum likelihood. Scores sum to zero in every
    component; items in no list have 0. ``gradient`` of the result is the largest entry of the penalised gradient.
    Newton's method with conjugate gradients; wide steps are shortened so that they cannot overshoot (self-concordance:
    |D³(u, v, v)| ≤ range(u) D²(v, v)), and where tiers make one overshoot all the same half of it is taken back.

    Errors: UsageError for ratings and for a negative prior; NoMaximumLikelihood (prior 0), naming the items, when the
    lists do not connect every item to every other of its component by a chain of wins (Hunter 2004, Assumption 1).

    >>> from concordant.preferences.preferences import Preferences
    >>> races = Preferences.from_orders(["q"] * 6, [1, 1, 1, 2, 2, 2], ["x", "y", "z"] * 2, [1, 2, 3, 2, 1, 3])
    >>> plackett_luce(Batch.whole(races)).value.round(2)
    array([ 1.53,  1.53, -3.05])
    """
    check_prior(prior)
    if batch.prefs.kind == "comparisons":  # the same likelihood, for which pair tables are enough
        found = bradley_terry(batch, prior=prior, covariates=False)
        return replace(found, options={"prior": float(prior)})
    lists, terms = _read(batch)
    shape = lists.connected()
    if prior == 0:
        refuse_separated(batch, shape)
    owner, graphs, nodes = batch.owner, len(batch), len(batch.item)
    group = numbered(owner, shape.component)
    own = np.bincount(lists.node, lists.weight[lists.row], nodes).astype(float)
    heaviest = _largest(own, owner, graphs)
    theta = np.zeros(nodes)
    first, left = np.zeros(graphs), np.zeros(graphs)
    steps = np.zeros(graphs, np.int64)
    open_ = heaviest > 0
    status = np.where(open_, Status.STOPPED, Status.CONVERGED).astype(np.int8)
    live, live_terms = lists, terms
    stiff = np.zeros(graphs, bool)
    moved, climb = np.zeros(nodes), np.zeros(graphs)  # the last step, and the slope along it where it began
    for step in range(1, iterations + 1):
        if 2 * np.count_nonzero(busy := open_[owner[live.node[live.start[:-1]]]]) < len(live.weight):
            live = live.take(np.flatnonzero(busy))  # the graphs that are done are left out
            live_terms = LuceTerms(live)
        at = live_terms.at(theta)
        slope = np.where(open_[owner], centred(at.gradient(), group) - prior * theta, 0.0)  # sums to 0 but for rounding
        left = _largest(np.abs(slope), owner, graphs)
        first = left if step == 1 else first
        status[open_ & (_largest(np.abs(slope) - ROUNDING * own, owner, graphs) <= 0)] = Status.CONVERGED
        open_ &= status == Status.STOPPED
        if not open_.any():
            break
        along = np.asarray(np.bincount(owner, slope * moved, graphs), np.float64)
        back = open_ & _overshot(along, climb)
        theta = theta - 0.5 * np.where(back[owner], moved, 0.0)
        moved, climb = np.where(back[owner], 0.5 * moved, 0.0), np.where(back, 0.5 * climb, 0.0)
        slope = np.where(back[owner], 0.0, slope)
        exact = left / np.where(first > 0, first, 1.0) + ROUNDING * heaviest / np.where(left > 0, left, 1.0)
        move, solved = _newton(at, slope, prior, batch, stiff, np.clip(exact, 1e-9, 0.1))
        reach = _largest(move, owner, graphs) + _largest(-move, owner, graphs)
        taken = safe_step(_within(live, move, owner, graphs))[owner] * move
        theta = centred(theta + taken, group)
        moved, climb = moved + taken, climb + np.bincount(owner, slope * taken, graphs)
        steps[open_] = step
        status[open_ & solved & ~back & (reach <= SMALL_STEP)] = Status.CONVERGED
        open_ &= status == Status.STOPPED
        if not open_.any():
            break
    end = terms.at(theta)
    left = _largest(np.abs(end.gradient() - prior * theta), owner, graphs)
    far = _far(lists, end, prior, batch)
    status[far] = Status.STOPPED
    return Scores(
        value=theta,
        components=shape.component,
        status=status,
        iterations=steps,
        gradient=left,
        notes=separation_note(batch, shape, prior) + _notes(terms, status, far),
        options={"prior": prior},
    )


def _overshot(along: Floats, climb: Floats) -> Flags:
    """Whether the likelihood falls, where a step ended, half as steeply as it rose where the step began."""
    return along < -0.5 * climb


def luce_terms(batch: Batch) -> LuceTerms:
    """Return the likelihood of the lists of a batch, one by one (for its curvature)."""
    return LuceTerms(Rankings.of(batch))


def _read(batch: Batch) -> tuple[Rankings, LuceTerms]:
    kind = batch.prefs.kind
    if kind is not None and kind not in KINDS:
        raise UsageError(
            f"plackett-luce reads {', '.join(KINDS[:-1])} and {KINDS[-1]}, not {kind}: turn these into orders, or use "
            "bradley-terry, which reads them as pairs."
        )
    lists = Rankings.of(batch)
    return lists, LuceTerms(lists)


def _newton(
    at: Position, slope: Floats, prior: float, batch: Batch, stiff: Flags, tolerance: Floats
) -> tuple[Floats, Flags]:
    """Solve (information + prior) x = slope; also which graphs are solved. ``stiff`` learns which need elimination."""
    graphs = len(batch)
    move, solved = conjugate_gradients(
        lambda v: at.times(v) + prior * v,
        at.diagonal() + prior,
        np.where(stiff[batch.owner], 0.0, slope),
        batch.owner,
        graphs,
        tolerance=tolerance,
        iterations=PATIENCE,
    )
    hard = ~solved | stiff
    if not hard.any():
        return move, solved
    if float((at.terms.lists.length.astype(float) ** 2).sum()) > PAIRS:
        return move, solved  # more pairs of entries than memory should hold
    whole = csr_array(information(at))
    for g in np.flatnonzero(hard).tolist():
        nodes = slice(int(batch.node_start[g]), int(batch.node_start[g + 1]))
        upper = triu(whole[nodes, nodes], 1).tocoo()
        order = Elimination.of(upper.row.astype(np.int64), upper.col.astype(np.int64), nodes.stop - nodes.start)
        solved[g] = order is not None
        if order is not None:
            held = np.full(nodes.stop - nodes.start, prior)
            move[nodes] = order.factor(np.maximum(-upper.data, 0.0), held).solve(slope[nodes])
            stiff[g] = True
    return move, solved


def _far(lists: Rankings, at: Position, prior: float, batch: Batch) -> Flags:
    """Graphs whose lists are held so unevenly often that sums over items lose some of them."""
    far = np.zeros(len(batch), bool)
    if len(lists.weight) == 0:
        return far
    graph = batch.owner[lists.node[lists.start[:-1]]]
    most, least = np.zeros(len(batch)), np.full(len(batch), np.inf)
    np.maximum.at(most, graph, lists.weight)
    np.minimum.at(least, graph, lists.weight)
    uneven = np.flatnonzero(least < FAR * most)
    if len(uneven) == 0 or float((lists.length.astype(float) ** 2).sum()) > PAIRS:
        far[uneven] = True
        return far
    whole = csr_array(information(at))
    for g in uneven.tolist():
        nodes = slice(int(batch.node_start[g]), int(batch.node_start[g + 1]))
        upper = triu(whole[nodes, nodes], 1).tocoo()
        far[g] = far_apart(upper.row, upper.col, np.maximum(-upper.data, 0.0), prior, nodes.stop - nodes.start)
    return far


def _within(lists: Rankings, move: Floats, owner: NDArray[np.int64], graphs: int) -> Floats:
    """Largest range of a step over the items of any one list: what the likelihood sees of it."""
    of, out = move[lists.node], np.zeros(graphs)
    np.maximum.at(out, owner[lists.node[lists.start[:-1]]], lists.groups.most(of) - lists.groups.least(of))
    return out


def _largest(x: Floats, owner: NDArray[np.int64], graphs: int) -> Floats:
    """Largest value of each graph (0 for a graph without nodes)."""
    out = np.full(graphs, -np.inf)
    np.maximum.at(out, owner, x)
    return np.where(np.isfinite(out), out, 0.0)


def _notes(terms: LuceTerms, status: NDArray[np.int8], far: Flags) -> tuple[Note, ...]:
    notes = []
    if far.any():
        weight = terms.lists.weight
        text = (
            "plackett-luce: the lists of {graphs:graphs} count from {least} to {most} times, too far apart for the "
            "arithmetic: do not rely on their scores."
        )
        least, most = f"{weight.min():.3g}", f"{weight.max():.3g}"
        notes.append(Note("strengths far apart", text, graphs=int(far.sum()), least=least, most=most))
    return (*notes, *unfinished("plackett-luce", status == Status.STOPPED))


def plackett_luce_curvature(batch: Batch, scores: Scores) -> Curvature:
    """Return the curvature of a fit by ``plackett_luce`` on this batch.

    The Hessian of the negative log-likelihood is Σ_A w_A (diag p − p pᵀ), p_i = e^θ_i / S_A on the items of a remaining
    set A: a Laplacian with an edge between any two items that share a list.
    """
    at = luce_terms(batch).at(scores.value)
    lists = at.terms.lists

    def gradients() -> csr_array:
        draws = at.gradient_entries() / batch.multiplicity[lists.holder][lists.row]
        shape = (len(batch.judgment), len(batch.item))
        return coo_array((draws, (lists.holder[lists.row], lists.node)), shape=shape).tocsr()

    return Curvature(
        hessian=information(at),
        prior=float(scores.options.get("prior", 0.0)),
        gradients=gradients,
        extra_owner=np.zeros(0, np.int64),
    )
