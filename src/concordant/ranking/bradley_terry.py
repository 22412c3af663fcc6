"""Bradley–Terry maximum likelihood, with a normal prior, Davidson's ties and covariates of the comparison."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from concordant.errors import CannotRank, NoMaximumLikelihood, UsageError, counted, did_you_mean
from concordant.preferences.connectivity import Connectivity, connectivity
from concordant.preferences.graphs import Batch, Graphs
from concordant.preferences.notes import Note
from concordant.preferences.ragged import Ragged
from concordant.preferences.status import Status
from concordant.ranking.cumulative import CUMULATIVE, Graded
from concordant.ranking.dense_newton import WIDEST, fit_dense
from concordant.ranking.elimination import FAR
from concordant.ranking.newton import fit_sparse
from concordant.ranking.problem import Problem
from concordant.ranking.scores import (
    HELP,
    Scores,
    check_prior,
    items_of,
    named,
    refuse_beyond,
    refuse_endless_ties,
    refuse_runaway,
    refuse_separated,
    refuse_undetermined,
    separation_note,
    undetermined,
    uneven,
    uneven_note,
    where,
)

Floats = NDArray[np.float64]


def prior_mean(batch: Batch, mean: ArrayLike | None, prior: float) -> Floats | None:
    """Return the prior's mean at each node of the batch, None for zeros."""
    if mean is None:
        return None
    if prior == 0:
        raise UsageError("a mean belongs to a prior: give its precision as a positive number, such as 1")
    members = batch.prefs.member_groups
    try:
        values = np.asarray(mean, np.float64)
    except (TypeError, ValueError):
        raise UsageError(f"the prior's mean must be an array of numbers, not {mean!r}"[:160]) from None
    if values.shape != (int(members.start[-1]),):
        raise UsageError(
            f"the prior's mean has shape {values.shape}; it must have one number for each item of each query: "
            f"{int(members.start[-1]):,} in {counted(len(batch.prefs.queries), 'queries')}"
        )
    if not np.isfinite(values).all():
        raise UsageError(f"{int((~np.isfinite(values)).sum()):,} of {len(values):,} prior means are not finite")
    return np.asarray(values[members.take(batch.query)[1]], np.float64)


def held_together(graphs: Graphs) -> Connectivity:
    """A prior with means says where every item stands: one component, and nothing is without limit."""
    none, never = np.zeros(graphs.nodes, np.int32), np.zeros(graphs.nodes, bool)
    return Connectivity(none, graphs.owner.astype(np.int32), ~never, ~never, never, never)


def farthest(graphs: Graphs, mean: Floats) -> Floats:
    """Largest prior mean of each graph, in size."""
    most = np.zeros(len(graphs))
    np.maximum.at(most, graphs.owner, np.abs(mean))
    return most


Ints = NDArray[np.int64]
TIES = ("half", "davidson", "cumulative")
LARGE = 512  # graphs up to this size are solved densely when their pairs fill the matrix
FILLED = 6  # which they do from size²/6 on: sums over pairs cost more each than those over a matrix


def bradley_terry(
    batch: Batch,
    *,
    prior: float = 0.01,
    ties: str = "half",
    covariates: bool | None = None,
    tolerance: float = 1e-10,
    max_iterations: int = 100,
    mean: ArrayLike | None = None,
) -> Scores:
    """Scores that maximise Σ n_jl log σ(s_j − s_l + z·β) − (prior/2)‖s − mean‖² in every graph of the batch.

    The scores, log-abilities of shape (nodes,), sum to zero within each component. ``prior`` is the precision of a
    normal prior on the scores; coefficients are not penalised. Its ``mean`` is 0 or one number for each item of each
    query, as in ``Batch.whole(prefs)`` (whatever graphs the batch holds); then scores keep the level that it gives
    them, items never compared have their prior mean, and every graph is one component. A tie is half a win each way or,
    with ``ties="davidson"``, an outcome with P(tie) = ν√(π_jπ_l)/(π_j + π_l + ν√(π_jπ_l)), one ν per graph, log ν in
    ``coefficients["ties"]``. With ``ties="cumulative"`` strengths are grades, and a tie and the wins of each grade are
    ordered outcomes with thresholds (``ranking.cumulative``; without grades Rao and Kupper's ties), those of each graph
    in ``coefficients["threshold 0|1"]`` and so on. Covariates (of the comparison, winner minus loser, a home effect for
    instance) are used when there are any, one β per graph; the gradient of a coefficient is by the
    covariate scaled to at most 1. Neutral value 0 (the prior mean where given).

    Errors: NoMaximumLikelihood when ``prior`` is 0 and the maximum does not exist, CannotRank when a coefficient is
    not determined or infinite, UsageError for options.

    >>> from concordant.preferences.preferences import Preferences
    >>> votes = Preferences.from_comparisons(["x", "y"], ["y", "x"], count=[3, 1])
    >>> scores = bradley_terry(Batch.whole(votes), prior=0)
    >>> (scores.value[0] - scores.value[1]).round(9) == np.log(3).round(9)
    np.True_

    Source: Bradley and Terry, Biometrika 39, 1952; Davidson, JASA 65, 1970; Duchi, Mackey, Jordan, Ann. Statist.
    41(5), 2013, (26).
    """
    names = _check(batch, prior, ties, covariates, tolerance, max_iterations)
    if ties == "cumulative":
        if mean is not None:
            refuse_means()
        return _cumulative(batch, names, float(prior), {"tolerance": tolerance, "max_iterations": max_iterations})
    centre = prior_mean(batch, mean, prior)
    graphs = Graphs.of(batch, covariates=True) if names else batch.graphs
    links = connectivity(graphs) if centre is None else held_together(graphs)
    if prior == 0:
        refuse_separated(batch, links)
    fitted = _fit(batch, graphs, links, names, float(prior), centre, ties, tolerance, max_iterations)
    lost = undetermined(graphs, len(names)) if names and prior > 0 else np.zeros((len(batch), 0), bool)
    return Scores(
        fitted.value if centre is None else fitted.value + centre,
        links.component,
        fitted.status,
        fitted.iterations,
        fitted.gradient,
        fitted.coefficients,
        (*_notes(batch, graphs, links, fitted, prior, centre is not None), *lost_notes(names, lost)),
        {"prior": float(prior), "ties": ties, "covariates": bool(names), "mean": centre is not None}
        | {f"undetermined {name}": column for name, column in zip(names, lost.T, strict=False) if column.any()},
    )


def _cumulative(batch: Batch, names: tuple[str, ...], prior: float, limits: dict[str, float]) -> Scores:
    """Fit scores, coefficients and thresholds; graphs in which the same thresholds are free side by side."""
    graded = Graded.of(batch, names)
    graphs, links, total = graded.graphs, graded.links, len(batch)
    if prior == 0:
        refuse_separated(batch, links)
        refuse_endless(batch, graded.endless())
    none = {name: np.zeros(total) for name in (*names, *graded.thresholds)}
    status = np.full(total, Status.CONVERGED, np.int8)
    out = Fitted(np.zeros(graphs.nodes), status, np.zeros(total, np.int64), np.zeros(total), none)
    kinds, kind = np.unique(np.column_stack([graded.free, graded.counts[:, 0] > 0]), axis=0, return_inverse=True)
    for number, free in enumerate(kinds[:, :-1]):
        chosen = np.flatnonzero((kind.ravel() == number) & ~graded.only_ties)
        columns = [*range(len(names)), *(len(names) + np.flatnonzero(free))]
        z = None if graphs.covariates is None or not columns else graphs.covariates[:, columns]
        part, between = replace(graphs, covariates=z), Thresholds.of(graded, chosen)
        _fit_sparse(batch, part, links, names, chosen, prior, None, False, limits, out, between)
    cuts = graded.filled(graded.taken(out.coefficients))
    out.coefficients.update(zip(graded.thresholds, cuts.T, strict=True))
    z = None if graphs.covariates is None else graphs.covariates[:, : len(names)]
    lost = (
        undetermined(replace(graphs, covariates=z), len(names)) if names and prior > 0 else np.zeros((total, 0), bool)
    )
    said = _notes(batch, graphs, links, out, prior, False)
    endless = graded.endless() if prior > 0 and total == 1 and graphs.nodes <= LARGE else None
    return Scores(
        out.value, links.component, out.status, out.iterations, out.gradient, out.coefficients,
        (*said, *threshold_notes(batch, graded, prior, endless), *lost_notes(names, lost)),
        {"prior": prior, "ties": "cumulative", "covariates": bool(names), "mean": False}
        | {f"undetermined {name}": column for name, column in zip(names, lost.T, strict=False) if column.any()},
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Those of some graphs that have the same ones."""

    names: tuple[str, ...] = ()
    gaps: Floats | None = None
    tied: bool = False
    begin: Floats | None = None

    @classmethod
    def of(cls, graded: Graded, chosen: Ints) -> Thresholds:
        """Those of some graphs that have the same outcomes."""
        if not len(chosen):
            return cls()
        own, counts = np.flatnonzero(graded.free[chosen[0]]), graded.counts[chosen]
        return cls(
            tuple(graded.thresholds[k] for k in own),
            counts[counts > 0].reshape(len(chosen), len(own) + 1)[:, :-1],
            bool(counts[0, 0] > 0),
            graded.begin()[np.ix_(chosen, own)],
        )


NO_THRESHOLDS = Thresholds()


def refuse_means() -> None:
    """Refuse a prior with means beside thresholds. Errors: UsageError."""
    raise UsageError("a prior with means of its own does not go with ", CUMULATIVE)


def refuse_endless(batch: Batch, endless: tuple[int, Ints] | None) -> None:
    """Refuse scores and thresholds that can grow for ever (``Graded.endless``)."""
    if endless is not None:
        raise NoMaximumLikelihood(
            f"the maximum likelihood with thresholds{where(batch, endless[0])} does not exist: the scores of "
            f"{items_of(batch, endless[1])} and thresholds can grow without end. ",
            *HELP,
        )


def threshold_notes(batch: Batch, graded: Graded, prior: float, endless: tuple[int, Ints] | None) -> tuple[Note, ...]:
    """Say what a reader of a fit with thresholds should know; ``endless``: what can grow for ever but for the prior."""
    notes, total = [], len(graded.counts)
    if endless is not None:
        text = (
            "only the prior, a pull to the middle (precision {prior:g}), keeps the scores of {items} and thresholds "
            "finite"
        )
        notes.append(Note("kept finite by the prior", text, prior=prior, **named(batch, endless[1])))
    only = graded.only_ties
    text = "nothing but ties in {of:the comparisons|{graphs:,} of {of:,} graphs}: thresholds are infinite, all scores 0"
    if total and not graded.free.any() and not only.any():
        text = "no ties and one grade: {asked} has no threshold, and the fit is plain Bradley–Terry"
        notes.append(Note("no thresholds", text, asked=CUMULATIVE))
    elif (ties := only & (graded.counts[:, 0] > 0)).any():
        notes.append(Note("nothing but ties", text, graphs=int(ties.sum()), of=total))
    return tuple(notes)


@dataclass(frozen=True, eq=False)
class Fitted:
    """Where the graphs of a batch ended."""

    value: Floats
    """Less the prior's mean."""
    status: NDArray[np.int8]
    iterations: Ints
    gradient: Floats
    coefficients: dict[str, Floats]


def _check(
    batch: Batch, prior: float, ties: str, covariates: bool | None, tolerance: float, max_iterations: int
) -> tuple[str, ...]:
    """Check the options; return the names of the covariates to use."""
    check_prior(prior)
    if not isinstance(ties, str) or ties not in TIES:
        raise UsageError(f"unknown treatment of ties {ties!r}; {did_you_mean(str(ties), TIES)}")
    if not 0 < tolerance < 1 or max_iterations < 1:
        raise UsageError(
            f"tolerance must lie between 0 and 1 and max_iterations be at least 1, not {tolerance} and {max_iterations}"
        )
    there = batch.prefs.covariate_names
    if covariates and not there:
        raise UsageError("covariates were asked for, but these preferences have none")
    return () if covariates is False else there


# -- the fit -----------------------------------------------------------------------------------------------------
def _fit(
    batch: Batch,
    graphs: Graphs,
    links: Connectivity,
    names: tuple[str, ...],
    prior: float,
    mean: Floats | None,
    ties: str,
    tolerance: float,
    max_iterations: int,
) -> Fitted:
    total = len(graphs)
    out = Fitted(
        np.zeros(graphs.nodes),
        np.full(total, Status.CONVERGED, np.int8),
        np.zeros(total, np.int64),
        np.zeros(total),
        {name: np.zeros(total) for name in names},
    )
    pairs = graphs.pairs.sizes
    judged = pairs > 0
    limits = {"tolerance": tolerance, "max_iterations": max_iterations}
    open_ = judged
    if ties == "davidson":
        some, others = _tied(graphs)
        out.coefficients["ties"] = np.where(others, -np.inf, np.where(some, np.inf, np.nan))
        both = np.flatnonzero(judged & some & others)
        open_ = judged & ~(some & others)
        if mean is not None:
            open_ &= others  # an infinite ν explains ties alone, wherever the scores are
        if prior == 0 and not names:
            refuse_endless_ties(batch, graphs, links, both)
        _fit_sparse(batch, graphs, links, names, both, prior, mean, True, limits, out)
    dense = open_ & filled(graphs, prior)
    if names:
        dense = np.zeros(total, bool)
    if mean is not None:
        dense &= farthest(graphs, mean) < WIDEST / 2
    chosen = np.flatnonzero(dense)
    fit = fit_dense(
        graphs,
        chosen,
        links.component,
        prior=prior,
        mean=mean,
        value=out.value,
        tolerance=tolerance,
        max_iterations=max_iterations,
    )
    out.status[chosen], out.iterations[chosen], out.gradient[chosen] = fit.status, fit.iterations, fit.gradient
    dense[chosen[fit.too_wide]] = False
    _fit_sparse(batch, graphs, links, names, np.flatnonzero(open_ & ~dense), prior, mean, False, limits, out)
    return out


def filled(graphs: Graphs, prior: float) -> NDArray[np.bool_]:
    """Return which graphs are solved densely."""
    size = graphs.sizes
    dense = (size <= LARGE) & (FILLED * graphs.pairs.sizes >= size * size) & ~_uneven(graphs, prior)
    return np.asarray(dense, bool)


def _uneven(graphs: Graphs, prior: float) -> NDArray[np.bool_]:
    """Graphs with strengths that may be lost beside others (``elimination`` looks closer)."""
    most = graphs.pairs.most(graphs.above + graphs.below)
    least = graphs.pairs.least(np.minimum(_or_infinite(graphs.above), _or_infinite(graphs.below)), np.inf)
    return np.asarray((np.minimum(least, prior) if prior > 0 else least) < FAR * most)


def _or_infinite(strength: Floats) -> Floats:
    return np.where(strength > 0, strength, np.inf)


def _tied(graphs: Graphs) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which graphs have ties, and which have other outcomes."""
    return graphs.pairs.sums(graphs.ties) > 0, graphs.pairs.sums(graphs.wins + graphs.losses) > 0


def _fit_sparse(
    batch: Batch,
    graphs: Graphs,
    links: Connectivity,
    names: tuple[str, ...],
    chosen: Ints,
    prior: float,
    mean: Floats | None,
    davidson: bool,
    limits: dict[str, float],
    out: Fitted,
    between: Thresholds = NO_THRESHOLDS,
) -> None:
    """Fit some graphs with the sparse solver and write how they ended into ``out``."""
    if len(chosen) == 0:
        return
    scaled, scale = _scaled(batch, graphs, names, chosen)
    begin, gaps = None, None
    if between.names and between.begin is not None and between.gaps is not None:
        begin = np.zeros((len(graphs), len(names) + len(between.names)))
        gaps = np.ones((len(graphs), len(between.names)))
        begin[chosen, len(names) :], gaps[chosen] = between.begin, between.gaps
    problem = Problem(
        graphs.node_start,
        graphs.pair_start,
        graphs.first,
        graphs.second,
        graphs.wins if davidson else graphs.above,
        graphs.losses if davidson else graphs.below,
        graphs.ties if davidson else None,
        scaled,
        _numbered(links.component, graphs),
        prior,
        None if mean is None else mean[graphs.first] - mean[graphs.second],
        gaps,
        between.tied,
        begin,
    )
    if len(chosen) < len(graphs):
        problem = problem.take(chosen)
    fit = fit_sparse(problem, tolerance=limits["tolerance"], max_iterations=int(limits["max_iterations"]))
    refuse_undetermined(batch, names, chosen, fit.weak)
    refuse_runaway(batch, names, chosen, fit.status, fit.extra, problem, fit.score)
    refuse_beyond(batch, chosen, fit.status, problem, fit.score)
    if problem.extras:  # a coefficient rests on sums over all pairs, in which small strengths are lost
        fit.status[uneven(graphs, chosen)] = Status.STOPPED
    if len(chosen) == len(graphs):
        out.value[:] = fit.score
    else:
        out.value[np.isin(graphs.owner, chosen)] = fit.score
    out.status[chosen], out.iterations[chosen], out.gradient[chosen] = fit.status, fit.iterations, fit.gradient
    for i, name in enumerate((*names, *between.names)):
        out.coefficients[name][chosen] = fit.extra[:, i] / scale[chosen, i]
    if davidson:
        out.coefficients["ties"][chosen] = fit.extra[:, -1]


def _numbered(component: NDArray[np.int32], graphs: Graphs) -> Ints:
    """Number the components over the batch."""
    if not component.any():
        return graphs.owner
    before = Ragged.of_sizes(graphs.node_groups.most(component.astype(np.int64)) + 1).start
    return before[graphs.owner] + component


def _scaled(batch: Batch, graphs: Graphs, names: tuple[str, ...], chosen: Ints) -> tuple[Floats | None, Floats]:
    """Covariates of each graph over a power of two that brings them to at most 1, and that scale."""
    z = graphs.covariates
    if z is None or not z.shape[1]:
        return None, np.ones((len(graphs), 0))
    scale = scales(batch, names, chosen, graphs.pairs.most(np.abs(z)))
    return z / scale[graphs.graph], scale


def scales(batch: Batch, names: tuple[str, ...], chosen: Ints, most: Floats) -> Floats:
    """The power of two that brings each covariate of each graph to at most 1; ``most``: their largest sizes.

    Errors: CannotRank where one is 0 in all comparisons of a chosen graph.
    """
    for g, i in np.argwhere(most[chosen] == 0)[:1]:
        raise CannotRank(
            f"the covariate {names[i]!r} is 0 in every comparison{where(batch, int(chosen[g]))}, so its coefficient is "
            "not determined; leave it out"
        )
    return np.asarray(np.exp2(np.ceil(np.log2(np.where(most > 0, most, 1.0)))), np.float64)


def lost_notes(names: tuple[str, ...], lost: NDArray[np.bool_]) -> tuple[Note, ...]:
    """Say which coefficients the data do not determine; ``lost`` has the shape (graphs, names)."""
    text = (
        "the coefficient of {name!r} is not determined by the data{of:| in {graphs:graphs}}: the covariate is a "
        "difference of properties of the items, which the scores express as well; what is shown is the prior's, its "
        "interval is infinite"
    )
    return tuple(
        Note("undetermined coefficient", text, items=[name], name=name, graphs=int(column.sum()), of=len(lost))
        for name, column in zip(names, lost.T, strict=False)
        if column.any()
    )


def _notes(
    batch: Batch, graphs: Graphs, links: Connectivity, fitted: Fitted, prior: float, mean: bool
) -> tuple[Note, ...]:
    stopped = np.flatnonzero(fitted.status == Status.STOPPED)
    return fit_notes(batch, links, fitted, prior, uneven_note(batch, graphs, stopped), mean=mean)


def fit_notes(
    batch: Batch, links: Connectivity, fitted: Fitted, prior: float, why: tuple[Note, ...] = (), *, mean: bool = False
) -> tuple[Note, ...]:
    """Say what a reader of a fit should know; ``why``: why some stopped, where that is known."""
    notes, graphs = [], len(fitted.status)
    stopped = np.flatnonzero(fitted.status == Status.STOPPED)
    if len(stopped):
        worst = float(fitted.gradient[stopped].max())
        text = "{fits:,} of {of:fits} stopped before convergence (gradient {worst:.1e})"
        notes.append(Note("stopped", text, fits=len(stopped), of=graphs, worst=worst))
        notes.extend(why)
    notes.extend(separation_note(batch, links, prior))
    zero = "as the prior has them" if mean else "0"
    for code, limit, what in (
        (
            "no ties",
            -np.inf,
            "nothing is to be learned of them, and the scores are those of plain Bradley–Terry (ν = 0)",
        ),
        ("nothing but ties", np.inf, f"all scores are {zero} (ν is infinite)"),
    ):
        if number := int((fitted.coefficients.get("ties", np.zeros(0)) == limit).sum()):
            text = code + " in {of:the comparisons|{graphs:,} of {of:,} graphs}: " + what
            notes.append(Note(code, text, graphs=number, of=graphs))
    return tuple(notes)
