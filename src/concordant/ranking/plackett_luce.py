"""Plackett–Luce: maximum (penalised) likelihood of rankings, full or in tiers, and of choices from sets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, triu

from concordant.errors import CannotRank, NoMaximumLikelihood, Setting, UsageError, did_you_mean
from concordant.preferences.graphs import Batch
from concordant.preferences.notes import Note
from concordant.preferences.ragged import centred
from concordant.preferences.status import Status
from concordant.ranking.bradley_terry import bradley_terry
from concordant.ranking.curvature import Curvature, bradley_terry_curvature
from concordant.ranking.dense_newton import safe_step
from concordant.ranking.elimination import FAR, Elimination, far_apart
from concordant.ranking.luce_terms import LuceTerms, Position
from concordant.ranking.newton import conjugate_gradients
from concordant.ranking.ranked_lists import Rankings
from concordant.ranking.scores import (
    HELP,
    RUNAWAY,
    Scores,
    check_prior,
    numbered,
    refuse_separated,
    separation_note,
    unfinished,
    where,
)
from concordant.ranking.tied_terms import Sizes, TiedPosition, TiedTerms

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Places = NDArray[np.int64]
PATIENCE = 300  # steps of conjugate gradients before elimination is tried
PAIRS = 5e7  # pairs of entries of one list for which the information is written out
KINDS = ("comparisons", "selections", "choices", "orders")
SMALL_STEP = 1e-7  # Newton's error after such a step is its square
ROUNDING = 1e-14
STRIDE = 0.1
"""A last step of Newton's method after which slopes of no more than rounding are no maximum."""


TIES = ("any-order", "davidson")


def plackett_luce(batch: Batch, *, prior: float = 0.01, ties: str = "any-order", iterations: int = 100) -> Scores:
    """Log-abilities θ that maximise the Plackett–Luce likelihood with a weak normal prior.

    An order i_1 ≻ … ≻ i_m has probability Π_r exp θ_{i_r} / Σ_{u≥r} exp θ_{i_u} (Plackett 1975, Luce 1959); items
    that a list leaves out take no part in it. A list with tied items is the event that those of a better tier stand
    above those of a worse one, in whatever order within: the sum of the probabilities of all orders that agree,
    Π_T P(T above the rest R), P = ∫₀^∞ e^−y Π_{i∈T} (1 − exp(−y e^θ_i / Σ_R e^θ_j)) dy, so the last tier, such as the
    items that a ballot does not rank, contributes 1. With ``ties="davidson"`` a tie is an outcome, judged equal: of the
    items that are left the set S is placed next with probability ∝ δ_|S| (Π_{i∈S} e^θ_i)^{1/|S|} among all sets of
    sizes that ever tied, δ_1 = 1 (Davidson–Luce; ``ranking.tied_terms``), log δ_d in ``coefficients["ties of d"]``: −∞
    where d items never tied, +∞ where they did whenever they could. (Comparisons are read as Bradley–Terry's, a tie
    half a win each, or Davidson's.)
    A choice is the chosen item against the set; a selection the clicked item against all examined, those above it and
    itself.

    ``prior`` is the precision of θ ~ N(0, 1/prior), 0 for plain maximum likelihood. Scores sum to zero in every
    component; items in no list have 0. ``gradient`` of the result is the largest entry of the penalised gradient.
    Newton's method with conjugate gradients; wide steps are shortened so that they cannot overshoot (self-concordance:
    |D³(u, v, v)| ≤ range(u) D²(v, v)), and where tiers make one overshoot all the same half of it is taken back.

    Errors: UsageError for ratings and for a negative prior; NoMaximumLikelihood (prior 0), naming the items, when the
    lists do not connect every item to every other of its component by a chain of wins (Hunter 2004, Assumption 1), or
    where ties are outcomes and scores and log δ can grow together for ever.

    >>> from concordant.preferences.preferences import Preferences
    >>> races = Preferences.from_orders(["q"] * 6, [1, 1, 1, 2, 2, 2], ["x", "y", "z"] * 2, [1, 2, 3, 2, 1, 3])
    >>> plackett_luce(Batch.whole(races)).value.round(2)
    array([ 1.53,  1.53, -3.05])
    """
    check_prior(prior)
    if not isinstance(ties, str) or ties not in TIES:
        raise UsageError(f"unknown treatment of ties {ties!r} by plackett-luce; {did_you_mean(str(ties), TIES)}")
    options = {"prior": float(prior), "ties": ties}
    if batch.prefs.kind == "comparisons":  # the same likelihood, for which pair tables are enough
        found = bradley_terry(batch, prior=prior, ties=ties if ties == "davidson" else "half", covariates=False)
        return replace(found, options=options)
    lists, terms = _read(batch, ties)
    shape = lists.linked(ties)
    if prior == 0:
        refuse_separated(batch, shape)
    graphs, nodes, extra = len(batch), len(batch.item), terms.extra_owner
    owner, length = np.concatenate([batch.owner, extra]), nodes + len(extra)
    group = numbered(batch.owner, shape.component)
    held = np.concatenate([np.full(nodes, float(prior)), np.zeros(len(extra))])

    def level(x: Floats) -> Floats:
        return np.concatenate([centred(x[:nodes], group), x[nodes:]])

    total = np.bincount(batch.owner[lists.node[lists.start[:-1]]], lists.weight, graphs)
    own = np.concatenate([np.bincount(lists.node, lists.weight[lists.row], nodes), total[extra]])
    heaviest = _largest(own, owner, graphs)
    theta = np.zeros(length)
    first, left = np.zeros(graphs), np.zeros(graphs)
    steps = np.zeros(graphs, np.int64)
    open_ = heaviest > 0
    status = np.where(open_, Status.STOPPED, Status.CONVERGED).astype(np.int8)
    live = terms
    stiff = np.zeros(graphs, bool)
    moved, climb = np.zeros(length), np.zeros(graphs)  # the last step, and the slope along it where it began
    strides, endless = np.zeros(graphs), np.zeros(graphs, bool)
    for step in range(1, iterations + 1):
        busy = open_[owner[live.lists.node[live.lists.start[:-1]]]]
        if 2 * np.count_nonzero(busy) < len(live.lists.weight):
            live = live.take(np.flatnonzero(busy))  # the graphs that are done are left out
        at = live.at(theta)
        slope = np.where(open_[owner], level(at.gradient()) - held * theta, 0.0)  # sums to 0 but for rounding
        left = _largest(np.abs(slope), owner, graphs)
        first = left if step == 1 else first
        level_here = open_ & (_largest(np.abs(slope) - ROUNDING * own, owner, graphs) <= 0)
        status[level_here] = Status.CONVERGED
        endless |= level_here & (strides > STRIDE)  # it levels off, but there is no top
        open_ &= status == Status.STOPPED
        if not open_.any():
            break
        along = np.asarray(np.bincount(owner, slope * moved, graphs), np.float64)
        back = open_ & _overshot(along, climb)
        theta = theta - 0.5 * np.where(back[owner], moved, 0.0)
        moved, climb = np.where(back[owner], 0.5 * moved, 0.0), np.where(back, 0.5 * climb, 0.0)
        slope = np.where(back[owner], 0.0, slope)
        exact = left / np.where(first > 0, first, 1.0) + ROUNDING * heaviest / np.where(left > 0, left, 1.0)
        move, solved = _newton(at, slope, held, batch, owner, stiff, np.clip(exact, 1e-9, 0.1))
        reach = _largest(move, owner, graphs) + _largest(-move, owner, graphs)
        taken = safe_step(_within(live.lists, move, owner, graphs, nodes))[owner] * move
        theta = np.where(open_[owner], level(theta + taken), theta)
        moved, climb = moved + taken, climb + np.bincount(owner, slope * taken, graphs)
        strides = _largest(np.abs(taken), owner, graphs)
        steps[open_] = step
        status[open_ & solved & ~back & (reach <= SMALL_STEP)] = Status.CONVERGED
        open_ &= status == Status.STOPPED
        if not open_.any():
            break
    end = terms.at(theta)
    left = _largest(np.abs(end.gradient() - held * theta), owner, graphs)
    far = _far(lists, end, prior, batch)
    status[far] = Status.STOPPED
    if prior == 0 or len(extra):
        refuse_unbounded(batch, theta, owner, status, endless & (prior == 0))
    coefficients, said = _coefficients(terms, theta, batch)
    return Scores(
        value=theta[:nodes],
        components=shape.component,
        status=status,
        iterations=steps,
        gradient=left,
        coefficients=coefficients,
        notes=separation_note(batch, shape, prior) + said + ending_notes(terms.lists.weight, status, far),
        options=options | {"whole lists": True},
    )


def refuse_unbounded(batch: Batch, point: Floats, owner: Places, status: NDArray[np.int8], endless: Flags) -> None:
    """A fit that is still under way at odds of e^30 has no maximum, nor has one that is known to be ``endless``."""
    lost = np.flatnonzero(((status[owner] == Status.STOPPED) & (np.abs(point) > RUNAWAY)) | endless[owner])
    if len(lost):
        raise NoMaximumLikelihood(
            f"the maximum likelihood{where(batch, int(owner[lost[0]]))} does not exist: scores or the parameters of "
            "ties grow without end. ",
            *HELP,
        )


def _coefficients(
    terms: LuceTerms | TiedTerms, point: Floats, batch: Batch
) -> tuple[dict[str, Floats], tuple[Note, ...]]:
    """The log δ of each graph by name, and what is said where they are not finite."""
    if isinstance(terms, LuceTerms):
        return {}, ()
    return tie_coefficients(terms.sizes, point[len(batch.item) :])


def tie_coefficients(sizes: Sizes, level: Floats) -> tuple[dict[str, Floats], tuple[Note, ...]]:
    """The log δ of each graph by name, given those that are free, and what is said where they are not finite."""
    graphs = len(sizes.groups)
    value = np.where(sizes.endless, np.inf, 0.0)
    ours = sizes.free[value[sizes.free] == 0]
    value[ours] = level[sizes.parameter[ours]]
    found = {tie_name(d): np.full(graphs, -np.inf) for d in np.unique(sizes.order).tolist() if d > 1}
    for owner, order, one in zip(sizes.groups.owner, sizes.order.tolist(), value, strict=True):
        if order > 1:
            found[tie_name(order)][owner] = one
    endless = np.unique(sizes.groups.owner[np.isinf(value)])
    text = "ties in {of:the rankings|{graphs:,} of {of:,} graphs}: items tied whenever they could; their δ is infinite"
    note = Note("nothing but ties", text, graphs=len(endless), of=graphs)
    return found, (note,) if len(endless) else ()


def tie_name(size: int) -> str:
    """Return what log δ of so many tied items is called.

    >>> tie_name(2)
    'ties of 2'
    """
    return f"ties of {size}"


def _overshot(along: Floats, climb: Floats) -> Flags:
    """Whether the likelihood falls, where a step ended, half as steeply as it rose where the step began."""
    return along < -0.5 * climb


def fitted_terms(batch: Batch, scores: Scores) -> tuple[Rankings, LuceTerms | TiedTerms, Floats]:
    """Return the lists of a batch, the likelihood that a fit to them maximised, and where: scores, then log δ."""
    lists, terms = _read(batch, scores.options.get("ties", "any-order"))
    own = [scores.coefficients[name][g] for name, g in zip(_tie_names(terms), terms.extra_owner.tolist(), strict=True)]
    return lists, terms, np.concatenate([scores.value, own])


def _tie_names(terms: LuceTerms | TiedTerms) -> tuple[str, ...]:
    """The names of the log δ that stand behind the scores."""
    return tuple(tie_name(int(d)) for d in terms.sizes.order[terms.sizes.free]) if isinstance(terms, TiedTerms) else ()


def luce_terms(batch: Batch) -> LuceTerms:
    """Return the likelihood of the lists of a batch, one by one (for its curvature)."""
    return LuceTerms(Rankings.of(batch))


def _read(batch: Batch, ties: str) -> tuple[Rankings, LuceTerms | TiedTerms]:
    kind = batch.prefs.kind
    if kind is not None and kind not in KINDS:
        raise UsageError(
            f"plackett-luce reads {', '.join(KINDS[:-1])} and {KINDS[-1]}, not {kind}: turn these into orders, or use "
            "bradley-terry, which reads them as pairs."
        )
    lists = Rankings.of(batch)
    return lists, TiedTerms(lists) if ties == "davidson" and kind == "orders" else LuceTerms(lists)


def _newton(
    at: Position | TiedPosition, slope: Floats, held: Floats, batch: Batch, owner: Places, stiff: Flags,
    tolerance: Floats,
) -> tuple[Floats, Flags]:  # fmt: skip
    """Solve (information + prior) x = slope; also which graphs are solved. ``stiff`` learns which need elimination."""
    graphs = len(batch)
    move, solved = conjugate_gradients(
        lambda v: at.times(v) + held * v,
        at.diagonal() + held,
        np.where(stiff[owner], 0.0, slope),
        owner,
        graphs,
        tolerance=tolerance,
        iterations=PATIENCE,
    )
    hard = ~solved | stiff
    if not hard.any() or isinstance(at, TiedPosition):
        return move, solved
    if float((at.terms.lists.length.astype(float) ** 2).sum()) > PAIRS:
        return move, solved  # more pairs of entries than memory should hold
    whole = csr_array(at.information())
    for g in np.flatnonzero(hard).tolist():
        nodes = slice(int(batch.node_start[g]), int(batch.node_start[g + 1]))
        upper = triu(whole[nodes, nodes], 1).tocoo()
        order = Elimination.of(upper.row.astype(np.int64), upper.col.astype(np.int64), nodes.stop - nodes.start)
        solved[g] = order is not None
        if order is not None:
            move[nodes] = order.factor(np.maximum(-upper.data, 0.0), held[nodes]).solve(slope[nodes])
            stiff[g] = True
    return move, solved


def _far(lists: Rankings, at: Position | TiedPosition, prior: float, batch: Batch) -> Flags:
    """Graphs whose lists are held so unevenly often that sums over items lose some of them."""
    far = np.zeros(len(batch), bool)
    if len(lists.weight) == 0:
        return far
    graph = batch.owner[lists.node[lists.start[:-1]]]
    most, least = np.zeros(len(batch)), np.full(len(batch), np.inf)
    np.maximum.at(most, graph, lists.weight)
    np.minimum.at(least, graph, lists.weight)
    uneven = np.flatnonzero(least < FAR * most)
    if len(uneven) == 0 or isinstance(at, TiedPosition) or float((lists.length.astype(float) ** 2).sum()) > PAIRS:
        far[uneven] = True
        return far
    whole = csr_array(at.information())
    for g in uneven.tolist():
        nodes = slice(int(batch.node_start[g]), int(batch.node_start[g + 1]))
        upper = triu(whole[nodes, nodes], 1).tocoo()
        far[g] = far_apart(upper.row, upper.col, np.maximum(-upper.data, 0.0), prior, nodes.stop - nodes.start)
    return far


def _within(lists: Rankings, move: Floats, owner: Places, graphs: int, nodes: int) -> Floats:
    """Largest range of a step over the items of any one list, and over the sizes of ties: what the likelihood sees."""
    of, out = move[lists.node], np.zeros(graphs)
    np.maximum.at(out, owner[lists.node[lists.start[:-1]]], lists.groups.most(of) - lists.groups.least(of))
    up, down = np.zeros(graphs), np.zeros(graphs)
    np.maximum.at(up, owner[nodes:], move[nodes:])
    np.minimum.at(down, owner[nodes:], move[nodes:])
    return out + up - down


def _largest(x: Floats, owner: NDArray[np.int64], graphs: int) -> Floats:
    """Largest value of each graph (0 for a graph without nodes)."""
    out = np.full(graphs, -np.inf)
    np.maximum.at(out, owner, x)
    return np.where(np.isfinite(out), out, 0.0)


def ending_notes(weight: Floats, status: NDArray[np.int8], far: Flags) -> tuple[Note, ...]:
    """Say what a reader of a fit should know; ``weight`` of its lists, ``far``: where these are too far apart."""
    notes = []
    if far.any():
        text = (
            "plackett-luce: the lists of {graphs:graphs} count from {least} to {most} times, too far apart for the "
            "arithmetic: do not rely on their scores."
        )
        least, most = f"{weight.min():.3g}", f"{weight.max():.3g}"
        notes.append(Note("strengths far apart", text, graphs=int(far.sum()), least=least, most=most))
    return (*notes, *unfinished("plackett-luce", status == Status.STOPPED))


def refuse_infinite(point: Floats) -> None:
    """Refuse the curvature where parameters of ties are infinite. Errors: CannotRank."""
    if not np.isfinite(point).all():
        raise CannotRank(
            "some items tied whenever they could, which leaves the parameters of ties without standard errors: ask for "
            "no intervals (",
            Setting("interval", "none"),
            ")",
        )


def plackett_luce_curvature(batch: Batch, scores: Scores) -> Curvature:
    """Return the curvature of a fit by ``plackett_luce`` on this batch.

    The Hessian of the negative log-likelihood is Σ_A w_A (diag p − p pᵀ), p_i = e^θ_i / S_A on the items of a remaining
    set A: a Laplacian with an edge between any two items that share a list. The log δ of ties stand behind the scores.
    """
    ties, prior = scores.options.get("ties", "any-order"), float(scores.options.get("prior", 0.0))
    if ties == "davidson" and batch.prefs.kind == "comparisons":
        return bradley_terry_curvature(batch, scores)
    lists, terms, point = fitted_terms(batch, scores)
    extra = _tie_names(terms)
    refuse_infinite(point)
    at = terms.at(point)

    def gradients() -> csr_array:
        times = batch.multiplicity[lists.holder].astype(float)
        rows, columns, draws = [lists.holder[lists.row]], [lists.node], [at.gradient_entries() / times[lists.row]]
        if isinstance(at, TiedPosition):
            of_sizes, parameter = at.extra_entries
            row, known = at.terms.own.owner, parameter >= 0
            rows.append(lists.holder[row[known]])
            columns.append(len(batch.item) + parameter[known])
            draws.append((of_sizes / times[row])[known])
        ends = (np.concatenate(rows), np.concatenate(columns))
        return coo_array((np.concatenate(draws), ends), shape=(len(batch.judgment), len(point))).tocsr()

    return Curvature(at.information(), prior, gradients, at.value, terms.extra_owner, extra)
