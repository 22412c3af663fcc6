"""The multinomial bootstrap of any structure: judgments, or whole clusters, drawn with replacement from the counts.

A replicate of a query with n judgments is n draws with probabilities count/n; with a cluster column, as many clusters
as there are, each with all its judgments. The judgment is the unit, never its edges (Efron, Ann. Statist. 7, 1979;
clusters: Davison & Hinkley 1997, §3.8).

Of Bradley–Terry and Plackett–Luce the replicates of a graph are fitted together (``chords``), of others one by one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.errors import NoMaximumLikelihood, Setting, UsageError
from concordant.kernels.arrays import in_threads
from concordant.preferences.connectivity import Connectivity, connectivity
from concordant.preferences.counted import refuse_crossed
from concordant.preferences.graphs import Batch
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Preferences
from concordant.progress import stage, steps
from concordant.ranking.bradley_terry import bradley_terry
from concordant.ranking.chords import Chord, ListChord
from concordant.ranking.contrasts import Gauge
from concordant.ranking.multinomial import Atoms, AtomsOf, Redraws, Stream, streams
from concordant.ranking.plackett_luce import plackett_luce
from concordant.ranking.ranked_lists import Rankings
from concordant.ranking.scores import Scores
from concordant.ranking.standard_errors import Intervals, infinite_ends

Floats = NDArray[np.float64]
MANY_LISTS = 100
"""Distinct lists from which on a graph of Plackett–Luce is refitted by the chord method; fewer in stacks."""
FAST_NODES = (24, 1500)
"""Graphs of Bradley–Terry of these sizes are refitted by the chord method; smaller ones in stacks, larger ones one by
one."""
MOST = 200_000_000
"""Scores that are kept at most, replicates × nodes."""
FALLBACK_PRIOR = 0.01
"""What a replicate without a maximum likelihood is fitted with, before its unlimited scores are made infinite."""


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """Replicates of the scores of a batch."""

    scores: Scores
    """The point estimate."""
    replicates: Floats
    """Shape (replicates, nodes); ±inf where a replicate sets no limit, nan where it does not say on which side."""
    unlimited: NDArray[np.int64]
    """Per graph: replicates in which some score had no limit or a component fell apart (found only when prior = 0,
    or where the refit needed Newton's method)."""
    always: tuple[NDArray[np.bool_], NDArray[np.bool_]]
    """Nodes without an upper and without a lower limit in the data themselves."""
    few: int = 0
    """Graphs with fewer than two judgments (clusters), which say nothing about spread: no end of theirs is limited."""

    def intervals(self, level: float = 0.95) -> Intervals:
        """Percentile intervals: the order statistics at (1 ∓ level)/2, outwards; undetermined scores widen both ends.

        Errors: UsageError when there are too few replicates for the level.
        """
        count = len(self.replicates)
        tail = (1.0 - level) / 2
        low = int(np.floor(tail * (count + 1))) - 1
        if low < 0:
            raise UsageError(
                f"{count} replicates are too few for a {100 * level:g}% interval; take at least "
                f"{int(np.ceil(1 / tail)):,}"
            )
        lower = np.sort(np.where(np.isnan(self.replicates), -np.inf, self.replicates), axis=0)[low]
        upper = np.sort(np.where(np.isnan(self.replicates), np.inf, self.replicates), axis=0)[count - 1 - low]
        above, below = self.always
        with np.errstate(invalid="ignore"):
            error = np.where(np.isfinite(self.replicates).all(axis=0), self.replicates.std(axis=0, ddof=1), np.inf)
        return Intervals(
            lower=np.where(below, -np.inf, lower),
            upper=np.where(above, np.inf, upper),
            standard_error=error,
            coefficient_error=np.zeros(0),
            coefficient_names=(),
            approximate=np.zeros(len(self.unlimited), bool),
            method="bootstrap",
            level=level,
            notes=self._notes(),
        )

    def _notes(self) -> tuple[Note, ...]:
        notes = []
        if self.few:
            text = (
                "{graphs:graphs} {graphs:has|have} fewer than two judgments or clusters: a bootstrap draws the same "
                "again and again, and {graphs:its|their} intervals are infinite"
            )
            notes.append(Note("too few judgments", text, graphs=int(self.few)))
        if affected := int((self.unlimited > 0).sum()):
            text = (
                "in up to {most:,.0f} of {replicates:,.0f} bootstrap replicates (in {graphs:graphs}) an item only won "
                "or only lost or was not drawn, or scores and parameters could grow together without end: such scores "
                "count as infinite without a prior, and are as finite as the prior makes them with one"
            )
            most, replicates = float(self.unlimited.max()), float(len(self.replicates))
            notes.append(Note("unlimited replicates", text, graphs=affected, most=most, replicates=replicates))
        return tuple(notes)


def bootstrap(
    data: Preferences | Batch,
    structure: Callable[..., Scores] = bradley_terry,
    *,
    replicates: int = 1000,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
    clustered: bool = True,
    likelihood: bool | None = None,
    threads: int | None = None,
    gauge: Gauge | None = None,
) -> Bootstrap:
    """Draw the judgments again ``replicates`` times and compute the structure on each.

    ``structure(batch, **options)`` is any structure function. ``likelihood`` (True for Bradley–Terry and
    Plackett–Luce when not given) says that its scores are known up to a shift per component: then each replicate is
    shifted so that the anchors of the component (``contrasts``, or those of ``gauge``) have the mean 0, as in the point
    estimate, and items that the data do not limit get infinite ends. Results depend on the labels of queries, the data
    of the query and the seed, not on the batch or ``threads``. Without a prior, a replicate in which the maximum
    likelihood does not exist counts with infinite scores for the items concerned (nan where the side is open), never
    dropped.

    Errors: UsageError when replicates × items is too large to keep.
    """
    batch = data if isinstance(data, Batch) else Batch.whole(data)
    if clustered:
        refuse_crossed(batch.prefs, "the bootstrap")
    chosen = dict(options or {})
    nodes = int(batch.node_start[-1])
    if replicates < 2 or replicates * nodes > MOST:
        raise UsageError(
            f"{replicates:,} replicates of {nodes:,} scores: at least 2 replicates are needed and at most {MOST:,} "
            "numbers kept; take fewer replicates, or ",
            Setting("interval", "sandwich"),
        )
    function = getattr(structure, "function", structure)
    if likelihood is None:  # click rates are absolute: a likelihood too, but of no gauge
        shifting = getattr(structure, "gauge", "sum zero") == "sum zero"
        likelihood = shifting and bool(
            getattr(structure, "likelihood", getattr(function, "__name__", "") in _LIKELIHOODS)
        )
    point = structure(batch, **chosen)
    workers = threads or min(os.cpu_count() or 1, 8)
    refit = _Refit(getattr(structure, "replicate", None) or structure, chosen, likelihood)
    redraws: Redraws | None = getattr(structure, "redraws", None)
    if redraws is not None:
        elsewhere = redraws(batch, chosen, replicates, seed)
        values, unlimited, few = elsewhere.values, elsewhere.unlimited, elsewhere.draws < 2
    else:
        made = partial(getattr(structure, "atoms", None) or Atoms.of, seed=seed, clustered=clustered)
        values, unlimited = _replicates(batch, refit, point, function, replicates, made, workers)
        few = _draws(batch, clustered, getattr(structure, "atoms", None)) < 2
    alone = few[batch.owner]
    if not likelihood:
        return Bootstrap(point, values, unlimited, (alone, alone), int(few.sum()))
    links = refit.links(batch)
    gauge = Gauge.of(batch.node_start, links) if gauge is None else gauge
    point = point if chosen.get("mean") is not None else replace(point, value=gauge.centre(point.value))
    _shift(values, point.value, gauge)
    above, below = infinite_ends(gauge, links)
    return Bootstrap(point, values, unlimited, (above | alone, below | alone), int(few.sum()))


def _replicates(
    batch: Batch,
    refit: _Refit,
    point: Scores,
    function: Callable[..., Scores],
    replicates: int,
    atoms: Callable[[Batch], list[Atoms]],
    workers: int,
) -> tuple[Floats, NDArray[np.int64]]:
    """Replicates of all graphs, and per graph those in which some score had no limit."""
    chosen = refit.options
    values = np.empty((replicates, len(point.value)))
    unlimited = np.zeros(len(batch), np.int64)
    in_pairs = chosen.get("ties", "half") == "half" and chosen.get("mean") is None
    in_pairs &= not batch.prefs.covariate_names or not _uses_covariates(chosen)
    of_lists = function is plackett_luce and batch.prefs.kind != "comparisons" and chosen.get("ties") != "davidson"
    if of_lists or (function is bradley_terry and in_pairs):
        size = batch.sizes
        small = (size >= FAST_NODES[0]) & (size <= FAST_NODES[1])
        if of_lists:
            small = (size <= FAST_NODES[1]) & (batch.groups.sizes >= MANY_LISTS)
        fast = np.flatnonzero(small)
        for graph in steps("graphs", fast, costs=(batch.groups.sizes[fast] + FAST_NODES[0]).tolist()):
            own = slice(int(batch.node_start[graph]), int(batch.node_start[graph + 1]))
            values[:, own], unlimited[graph] = _together(
                _one_graph(batch, int(graph)), point.value[own], refit, replicates, atoms, workers
            )
        rest = np.flatnonzero(~small)
    else:
        rest = np.arange(len(batch))
    if len(rest):
        _one_by_one(batch, rest, refit, values, unlimited, atoms)
    return values, unlimited


def _draws(batch: Batch, clustered: bool, atoms: AtomsOf | None) -> NDArray[np.int64]:
    """Number of judgments (or clusters) of each graph, or of those that are elsewhere."""
    if atoms is not None:
        return np.array([own.draws for own in atoms(batch, 0, clustered=clustered)], np.int64)
    cluster = batch.prefs.cluster if clustered else None
    if cluster is None:
        return batch.judgments
    width = int(cluster.max(initial=0)) + 1
    labels = np.unique(batch.graph * width + cluster[batch.judgment])
    return np.bincount(labels // width, minlength=len(batch))


_LIKELIHOODS = ("bradley_terry", "plackett_luce")


def _uses_covariates(options: Mapping[str, Any]) -> bool:
    return options.get("covariates") is not False


def _shift(values: Floats, point: Floats, gauge: Gauge) -> None:
    """Give the anchors of every component their mean of the point estimate, in every replicate, in place."""
    wanted = gauge.sums(gauge.weight * point)
    anchored = gauge.weight > 0
    for row in values:
        known = np.isfinite(row) & anchored
        share = np.where(known, gauge.weight, 0.0)
        mass = gauge.sums(share)
        mean = gauge.sums(share * np.where(known, row, 0.0)) / np.where(mass > 0, mass, 1.0)
        goal = wanted if known.sum() == anchored.sum() else gauge.sums(share * point) / np.where(mass > 0, mass, 1.0)
        row += gauge.spread(goal - mean)


def _pairs_connect(batch: Batch, _: object) -> Connectivity:
    return connectivity(batch.graphs)


# -- refits ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class _Refit:
    """Compute the structure on batches of replicates, whether or not the maximum likelihood exists."""

    structure: Callable[..., Scores]
    options: dict[str, Any]
    likelihood: bool

    def links(self, batch: Batch) -> Connectivity:
        """Return what connects the items, as the structure sees it: lists themselves where it reads them."""
        found: Connectivity = getattr(self.structure, "links", _pairs_connect)(batch, self.options.get("ties"))
        return found

    def __call__(self, batch: Batch) -> tuple[Floats, NDArray[np.bool_]]:
        """Scores of the nodes, and the graphs in which some had no limit or fell apart."""
        if not self.likelihood:
            return self.structure(batch, **self.options).value, np.zeros(len(batch), bool)
        links = self.links(batch)
        loose = links.separated | (links.component > 0)
        bad = batch.node_groups.sums(loose) > 0
        if self.options.get("prior") != 0:
            return self.structure(batch, **self.options).value, bad
        if not bad.any():
            return self._fitted(batch)
        value = np.empty(len(batch.item))
        good = np.flatnonzero(~bad)
        value[~bad[batch.owner]], endless = self._fitted(_graphs_of(batch, good))
        loose_graphs = _graphs_of(batch, np.flatnonzero(bad))
        rescued = self.structure(loose_graphs, **{**self.options, "prior": FALLBACK_PRIOR})
        value[bad[batch.owner]] = rescued.value
        bad[good] = endless
        return without_limits(value, batch.node_start, links), bad

    def _fitted(self, batch: Batch) -> tuple[Floats, NDArray[np.bool_]]:
        """The maximum likelihood of graphs whose items are connected; of one without it nothing is known (nan)."""
        try:
            return self.structure(batch, **self.options).value, np.zeros(len(batch), bool)
        except NoMaximumLikelihood:
            if len(batch) == 1:
                return np.full(len(batch.item), np.nan), np.ones(1, bool)
        halves = np.array_split(np.arange(len(batch)), 2)
        each = [self._fitted(_graphs_of(batch, half)) for half in halves]
        return np.concatenate([value for value, _ in each]), np.concatenate([endless for _, endless in each])


def without_limits(value: Floats, node_start: NDArray[np.int64], links: Connectivity) -> Floats:
    """Scores without a prior, infinite where no judgment limits them; nan where the side is open."""
    above, below = infinite_ends(Gauge.of(node_start, links), links)
    found = np.where(above, np.inf, np.where(below, -np.inf, value))
    return np.where((above & below) | (links.component > 0), np.nan, found)


def _one_graph(batch: Batch, graph: int) -> Batch:
    return batch if len(batch) == 1 else _graphs_of(batch, np.array([graph]))


def _graphs_of(batch: Batch, graphs: NDArray[np.integer]) -> Batch:
    """The batch of some of its graphs."""
    taken, held = batch.groups.take(graphs)
    return Batch(batch.prefs, batch.query[graphs], taken.start, batch.judgment[held], batch.multiplicity[held])


def _replicated(batch: Batch, times: NDArray[np.int64]) -> Batch:
    """One graph for every replicate and graph of the batch; times (replicates, held) are the multiplicities."""
    replicates, width = times.shape
    flat = times.ravel()
    held = np.flatnonzero(flat)
    bounds = (np.arange(replicates)[:, None] * width + batch.start[:-1]).ravel()
    start = np.append(np.searchsorted(held, bounds), len(held)).astype(np.int64)
    query = np.tile(batch.query, replicates)
    return Batch(batch.prefs, query, start, batch.judgment[held % width], flat[held])


def _together(
    batch: Batch, point: Floats, refit: _Refit, replicates: int, made: Callable[[Batch], list[Atoms]], threads: int
) -> tuple[Floats, int]:
    """Replicates of one graph by the chord method, the stubborn ones by the structure itself."""
    atoms = made(batch)[0]
    kind = Chord if getattr(refit.structure, "function", refit.structure) is bradley_terry else ListChord
    if len(point) == 0 or len(Rankings.of(batch).weight if kind is ListChord else batch.edges.holder) == 0:
        return np.tile(point, (replicates, 1)), 0
    chord = kind.of(batch, atoms, point, float(refit.options.get("prior", 0.01)))

    def work(stream: Stream) -> tuple[Floats, int]:
        draws = atoms.drawn(stream)
        scores, solved = chord.fit(draws)
        left, beyond = np.flatnonzero(~solved), 0
        if len(left):
            again = _replicated(batch, draws[left][:, atoms.member] * atoms.multiplicity)
            values, bad = refit(again)
            scores[left], beyond = values.reshape(len(left), -1), int(bad.sum())
        advance(stream.end - stream.begin)
        return scores, beyond

    with stage("bootstrap", replicates) as advance:
        parts = in_threads(work, streams(len(atoms.count), replicates), threads)
    return np.concatenate([scores for scores, _ in parts]), sum(bad for _, bad in parts)


def _one_by_one(
    batch: Batch,
    graphs: NDArray[np.integer],
    refit: _Refit,
    values: Floats,
    unlimited: NDArray[np.int64],
    made: Callable[[Batch], list[Atoms]],
) -> None:
    """Replicates of any structure: graphs and replicates side by side in batches of bounded size."""
    part = batch if len(graphs) == len(batch) else _graphs_of(batch, graphs)
    atoms = made(part)
    columns = np.flatnonzero(np.isin(batch.owner, graphs))
    replicates = len(values)
    plans = [list(streams(len(own.count), replicates)) for own in atoms]
    width = len(part.judgment)
    step = int(np.clip((1 << 18) // max(width, 1), 1, replicates))
    kept: list[tuple[int, NDArray[np.int64]]] = [(0, np.zeros((0, len(own.member)), np.int64)) for own in atoms]
    begins = range(0, replicates, step)
    costs = [min(step, replicates - begin) for begin in begins]
    for begin in steps("bootstrap", begins, costs=costs, single=True, apart=True):  # the first draws for others, too
        end = min(begin + step, replicates)
        times = np.empty((end - begin, width), np.int64)
        for graph, own in enumerate(atoms):
            have, drawn = kept[graph]
            blocks = [drawn]
            while have + sum(len(block) for block in blocks) < end:
                stream = plans[graph].pop(0)
                blocks.append(own.drawn(stream)[:, own.member] * own.multiplicity)
            drawn = np.concatenate(blocks)
            times[:, part.start[graph] : part.start[graph + 1]] = drawn[: end - have]
            kept[graph] = (end, drawn[end - have :])
        scores, bad = refit(_replicated(part, times))
        values[begin:end, columns] = scores.reshape(end - begin, -1)
        unlimited[graphs] += bad.reshape(end - begin, -1).sum(axis=0)
