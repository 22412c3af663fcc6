"""What a structure function returns, scores that sum to zero in each component, and errors where there are none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import NegativeCycleError, bellman_ford
from scipy.sparse.linalg import lsmr

from concordant.errors import CannotRank, NoMaximumLikelihood, Setting, UsageError, few
from concordant.preferences.connectivity import Connectivity, connectivity
from concordant.preferences.graphs import Batch, Graphs
from concordant.preferences.notes import MOST, Note
from concordant.preferences.status import Status
from concordant.ranking.problem import Problem


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of the nodes of a batch with the status of each graph.

    Shapes: ``value`` and ``component`` (nodes,), ``status``, ``iterations``, ``gradient`` (graphs,).
    """

    value: NDArray[np.float64]
    components: NDArray[np.int32] | Graphs
    """The component of each node, or the comparison graphs, whose components are found when somebody asks."""
    status: NDArray[np.int8]
    """A ``Status`` each."""
    iterations: NDArray[np.int64]
    gradient: NDArray[np.float64]
    """Largest absolute entry of the gradient at the end (0 for closed forms)."""
    coefficients: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    """Coefficients beside the scores, one per graph: covariates, log ν of Davidson's ties ("ties"), log δ of
    Davidson–Luce's ("ties of 2")."""
    notes: tuple[Note, ...] = ()
    """What a reader of the scores should know."""
    options: dict[str, Any] = field(default_factory=dict)
    """The options that they were computed with."""
    known: NDArray[np.bool_] | None = None
    """Of clicks: which nodes were examined, and so have a score of their own; None: all."""

    @cached_property
    def component(self) -> NDArray[np.int32]:
        """Component of the comparison graph, 0 the largest; scores are comparable within one only."""
        return connectivity(self.components).component if isinstance(self.components, Graphs) else self.components


Floats = NDArray[np.float64]


def numbered(owner: NDArray[np.int64], component: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return a number for each node's component that differs between graphs."""
    most = int(component.max(initial=0)) + 1
    return np.asarray(np.unique(owner * most + component, return_inverse=True)[1], np.int64)


def closed_form(graphs: Graphs, value: Floats, options: dict[str, Any], notes: tuple[Note, ...] = ()) -> Scores:
    """Wrap scores that a formula gave, with the components of the comparison graphs, found when somebody asks."""
    return Scores(
        value=value,
        components=graphs,
        status=np.full(len(graphs), Status.CLOSED_FORM, np.int8),
        iterations=np.zeros(len(graphs), np.int64),
        gradient=np.zeros(len(graphs)),
        notes=notes,
        options=options,
    )


def never_judged(name: str, graphs: Graphs, said: str) -> tuple[Note, ...]:
    """Say of a structure what it makes of pairs of items that were never judged, where there are some."""
    holes = int((graphs.pairs.sizes < graphs.sizes * (graphs.sizes - 1) // 2).sum())
    text = name + ": some pairs were never judged{of:| in {graphs:,} of {of:,} graphs}; " + said
    return (Note("pairs never judged", text, graphs=holes, of=len(graphs)),) if holes else ()


def unfinished(name: str, stopped: NDArray[np.bool_]) -> tuple[Note, ...]:
    """Say of how many graphs a structure stopped before convergence, where it did."""
    text = name + ": {graphs:graphs} stopped before convergence."
    return (Note("stopped", text, graphs=int(stopped.sum()), of=len(stopped)),) if stopped.any() else ()


Ints = NDArray[np.int64]
UNDETERMINED = 1e-10  # relative curvature below which a coefficient is not determined by the data
ALIKE = 1e-7  # share of a covariate that is left beside differences between items, below which it is one
SLIGHTEST = 1e-100  # prior, as with weights
BEYOND = 1e9  # a score that only an iteration without a limit has
UNEVEN = 1e8  # ratio of strengths that is worth a word
RUNAWAY = 30.0  # log-odds that an unfinished fit has when there is no maximum
HELP = ("Ask for a weak prior (", Setting("prior", 0.01), "), which gives a finite and flagged answer")


def check_prior(prior: float) -> None:
    """Refuse a prior that is no precision, or one that float64 would lose beside any weight."""
    if not (prior == 0 or SLIGHTEST <= prior <= 1 / SLIGHTEST):
        raise UsageError(
            f"the prior is a precision: 0 (none) or a positive number from {SLIGHTEST:g} to {1 / SLIGHTEST:g}, "
            f"not {prior}"
        )


def where(batch: Batch, graph: int) -> str:
    """Name the query of a graph when there are several."""
    prefs = batch.prefs
    return f" of query {prefs.queries[int(batch.query[graph])]!r}" if len(prefs.queries) > 1 else ""


def named(batch: Batch, nodes: Ints) -> dict[str, Any]:
    """Return the items of some nodes for a note: the first few, each once, and how many others there are."""
    codes, first = np.unique(batch.item[nodes], return_index=True)
    shown = codes[np.argsort(first)][:MOST]
    return {"items": [batch.prefs.items[int(code)] for code in shown], "others": len(codes) - len(shown)}


def items_of(batch: Batch, nodes: Ints) -> str:
    """Name the items of some nodes, the first few of them, each once."""
    found = named(batch, nodes)
    return few(found["items"] + [None] * found["others"])


def refuse_separated(batch: Batch, links: Connectivity) -> None:
    """Without a prior every component must be strongly connected (Ford, 1957)."""
    nodes = np.flatnonzero(links.separated)
    if len(nodes) == 0:
        return
    owners = np.unique(batch.owner[nodes])
    here = nodes[batch.owner[nodes] == owners[0]]
    more = f" ({len(owners) - 1:,} more queries or subsets alike)" if len(owners) > 1 else ""
    raise NoMaximumLikelihood(
        f"the maximum likelihood{where(batch, int(owners[0]))} does not exist: "
        f"{no_limits(links, here, partial(items_of, batch))}{more}. ",
        *HELP,
    )


def no_limits(links: Connectivity, here: Ints, named: Callable[[Ints], str]) -> str:
    """Say which of some nodes no chain of wins limits, from above or from below."""
    sides = [(side, here[which[here]]) for side, which in (("above", links.open_above), ("below", links.open_below))]
    return "; ".join([f"no chain of wins limits {named(beyond)} from {side}" for side, beyond in sides if len(beyond)])


def separation_note(batch: Batch, links: Connectivity, prior: float) -> tuple[Note, ...]:
    """Say which items only the prior keeps finite.

    Where no item of a component is limited on both sides, the one that the others are measured by is one of them.
    """
    nodes = np.flatnonzero(links.unlimited)
    if len(nodes) == 0 or prior == 0:
        return ()
    text = (
        "wins and losses set the scores of {items} no limit: only the prior, a pull to the middle (precision "
        "{prior:g}), keeps them finite"
    )
    return (Note("kept finite by the prior", text, prior=float(prior), **named(batch, nodes)),)


def refuse_endless_ties(batch: Batch, graphs: Graphs, links: Connectivity, chosen: Ints) -> None:
    """Davidson's maximum, without a prior, needs a cycle of judgments with more wins than ties.

    Otherwise scores with s_j − s_l ≥ 2 for every win and |s_j − s_l| ≤ 2 for every tie exist, and log ν and the
    scores can grow along them for ever at no cost. Each graph has ties and wins and is strongly connected.
    """
    mutual = graphs.pairs.sums((graphs.wins > 0) & (graphs.losses > 0)) > 0
    for g in chosen[~mutual[chosen]]:  # two wins, one each way, are such a cycle: few graphs remain
        low, pairs = int(graphs.node_start[g]), slice(int(graphs.pair_start[g]), int(graphs.pair_start[g + 1]))
        size = int(graphs.node_start[g + 1]) - low
        first, second = graphs.first[pairs] - low, graphs.second[pairs] - low
        wins, losses, ties = graphs.wins[pairs] > 0, graphs.losses[pairs] > 0, graphs.ties[pairs] > 0
        down, up = wins | ties, losses | ties
        length = np.concatenate([np.where(wins, -1.0, 1.0)[down], np.where(losses, -1.0, 1.0)[up]])
        source, target = np.append(first[down], second[up]), np.append(second[down], first[up])
        ends = source.astype(np.int32), target.astype(np.int32)  # the widest that bellman_ford of SciPy 1.13 takes
        roots = np.unique(links.component[low : low + size], return_index=True)[1]
        try:
            bellman_ford(csr_array((length, ends), shape=(size, size)), indices=roots)
        except NegativeCycleError:
            continue
        raise NoMaximumLikelihood(
            f"the maximum likelihood with Davidson's ties{where(batch, int(g))} does not exist: no cycle of judgments "
            f"has more wins than ties, so the scores of {items_of(batch, low + np.arange(size))} and log ν can grow "
            "without end. ",
            *HELP,
            ", or count ties as half a win each (",
            Setting("ties", "half"),
            ")",
        )


def refuse_undetermined(batch: Batch, names: tuple[str, ...], chosen: Ints, weak: Floats) -> None:
    """Coefficients whose likelihood is flat, scores profiled out."""
    lost = np.flatnonzero(weak < UNDETERMINED)
    if len(lost) and names:
        raise CannotRank(
            f"the coefficient{'s' if len(names) > 1 else ''} of {few(names)} cannot be determined from the comparisons"
            f"{where(batch, int(chosen[lost[0]]))}: a covariate is a combination of the others and of differences "
            "between items; leave it out or, if it is a property of the items, ask for a larger prior"
        )


def undetermined(graphs: Graphs, covariates: int) -> NDArray[np.bool_]:
    """Return which coefficients the prior on the scores decides: shape (graphs, covariates).

    A covariate z of pairs is the difference of a property of the items, z = Bs for some s, B the pairs' incidence: then
    scores and coefficient explain the same, and only the prior tells them apart. With several covariates each takes
    part in a combination of them that is such a difference.

    >>> from concordant.preferences.preferences import Preferences
    >>> votes = Preferences.from_comparisons(["x", "y"], ["y", "z"], covariates={"age": [3.0, 1.0]})
    >>> undetermined(Graphs.of(Batch.whole(votes), covariates=True), 1)
    array([[ True]])
    """
    lost = np.zeros((len(graphs), covariates), bool)
    for graph, part in enumerate(graphs.pairs.slices):
        z = np.zeros((0, covariates)) if graphs.covariates is None else graphs.covariates[part]
        size = np.sqrt((z**2).sum(axis=0))
        if not len(z) or not size.all():
            continue
        node, rows = graphs.node_start[graph], np.arange(len(z))
        sides = [np.ones(len(z)), -np.ones(len(z))]
        ends = [graphs.first[part] - node, graphs.second[part] - node]
        shape = (len(z), int(graphs.sizes[graph]))
        incidence = csr_array((np.concatenate(sides), (np.tile(rows, 2), np.concatenate(ends))), shape=shape)
        left = np.column_stack([_residual(incidence, column) for column in (z / size).T])
        _, value, vector = np.linalg.svd(left, full_matrices=False)
        lost[graph] = (np.abs(vector[value < ALIKE]) > np.sqrt(ALIKE)).any(axis=0)
    return lost


def _residual(incidence: csr_array, column: Floats) -> Floats:
    found = lsmr(incidence, column, atol=1e-13, btol=1e-13, conlim=0.0, maxiter=20 * incidence.shape[1])[0]
    return np.asarray(column - incidence @ found, np.float64)


def refuse_runaway(
    batch: Batch,
    names: tuple[str, ...],
    chosen: Ints,
    status: NDArray[np.int8],
    extra: Floats,
    problem: Problem,
    score: Floats,
) -> None:
    """A fit with coefficients that is still under way at odds of e^30 has no maximum."""
    if extra.shape[1] == 0:
        return
    farthest = np.abs(extra).max(axis=1)
    if problem.prior == 0:
        farthest = np.maximum(farthest, problem.node_groups.most(np.abs(score)))
    lost = np.flatnonzero((status == Status.STOPPED) & (farthest > RUNAWAY))
    if len(lost) == 0:
        return
    g = int(lost[0])
    place = where(batch, int(chosen[g]))
    worst = int(np.abs(extra[g]).argmax())
    if np.abs(extra[g, worst]) > RUNAWAY and worst < len(names):
        raise CannotRank(
            f"the coefficient of {names[worst]!r} has no finite maximum likelihood: the covariate separates wins from "
            f"losses in the comparisons{place}; leave it out"
        )
    low, high = int(problem.node_start[g]), int(problem.node_start[g + 1])
    far = np.flatnonzero(np.abs(score[low:high]) > RUNAWAY / 2) + int(batch.node_start[chosen[g]])
    named = f": {items_of(batch, far)} would be infinitely far from the others" if len(far) else ""
    raise NoMaximumLikelihood(f"the maximum likelihood{place} does not exist{named}. ", *HELP)


def refuse_beyond(batch: Batch, chosen: Ints, status: NDArray[np.int8], problem: Problem, score: Floats) -> None:
    """Refuse scores that left every range: weights so far apart that their likelihood vanishes in float64."""
    most = problem.node_groups.most(np.where(np.isfinite(score), np.abs(score), np.inf))
    lost = np.flatnonzero((status == Status.STOPPED) & (most > BEYOND))
    if len(lost):
        g = int(chosen[lost[0]])
        nodes = np.arange(int(batch.node_start[g]), int(batch.node_start[g + 1]))
        pairs = slice(int(problem.pair_start[lost[0]]), int(problem.pair_start[lost[0] + 1]))
        raise CannotRank(
            f"the scores of {items_of(batch, nodes)}{where(batch, g)} cannot be computed: the strengths of their "
            f"judgments, {_range(problem.above[pairs], problem.below[pairs])}, are too far apart for floating point"
        )


def uneven_note(batch: Batch, graphs: Graphs, stopped: Ints) -> tuple[Note, ...]:
    """Name the strengths of a fit that stopped, where they lie far apart."""
    for g in stopped[uneven(graphs, stopped)].tolist():
        nodes = np.arange(int(graphs.node_start[g]), int(graphs.node_start[g + 1]))
        pairs = slice(int(graphs.pair_start[g]), int(graphs.pair_start[g + 1]))
        text = (
            "the strengths of the judgments{query} are {strengths}, too far apart for the arithmetic: do not rely on "
            "the scores of {items}"
        )
        strengths = _range(graphs.above[pairs], graphs.below[pairs])
        prefs = batch.prefs
        query = prefs.queries[int(batch.query[g])] if len(prefs.queries) > 1 else None
        return (Note("strengths far apart", text, query=query, strengths=strengths, **named(batch, nodes)),)
    return ()


def uneven(graphs: Graphs, chosen: Ints) -> NDArray[np.bool_]:
    """Return which of some graphs have strengths far apart."""
    above, below = graphs.above, graphs.below
    sides = np.minimum(np.where(above > 0, above, np.inf), np.where(below > 0, below, np.inf))
    least, most = graphs.pairs.least(sides, np.inf), graphs.pairs.most(np.maximum(above, below))
    return np.asarray((most > UNEVEN * least)[chosen], bool)


def _range(above: Floats, below: Floats) -> str:
    sides = np.concatenate([above, below])
    sides = sides[sides > 0]
    return f"from {sides.min():.3g} to {sides.max():.3g}" if len(sides) else "none"
