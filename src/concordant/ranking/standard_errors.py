"""Standard errors and intervals of the scores of likelihood structures: Hessian or sandwich.

Each score is measured against its component's anchors (``contrasts``). Two-sided intervals are score ± z·s.e.; where
the data set no limit the end is infinite.

Intervals of proportions that are never of zero width.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import ndtri

from concordant.errors import Setting, UsageError, did_you_mean
from concordant.preferences.connectivity import Connectivity
from concordant.preferences.graphs import Batch
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Comparisons, Lists, Preferences
from concordant.ranking.contrasts import Gauge
from concordant.ranking.covariance import SILENT, Meat, Units, far_units, stacks, t_quantile
from concordant.ranking.curvature import Curvature
from concordant.ranking.large_variances import CERTIFIED, large_variances
from concordant.ranking.scores import Scores, named

Floats = NDArray[np.float64]
Stacks = list[tuple[NDArray[np.int64], int, Floats]]
METHODS = ("hessian", "sandwich")
SMALL = 400
"""Graphs with at most so many parameters are inverted in stacks; larger ones one by one."""

ENOUGH = 10.0
"""Wins and losses of an item from which on limits by the spread of judgments hold about as often as they say."""
KEPT = 1 << 23
"""Numbers of covariances that are kept for who asks for them next."""


@dataclass(frozen=True, eq=False)
class Intervals:
    """Intervals for the scores of a batch."""

    lower: Floats
    """Shape (nodes,); −inf where the data set no lower limit."""
    upper: Floats
    standard_error: Floats
    """Of the contrast with the component's anchors; inf where nothing was observed."""
    coefficient_error: Floats
    """Of the coefficients beside the scores, in the order of the curvature's extra parameters."""
    coefficient_names: tuple[str, ...]
    approximate: NDArray[np.bool_]
    """Per graph: found by a series or a sketch whose error is not certified to be negligible."""
    method: str
    level: float
    notes: tuple[Note, ...] = ()
    freedom: Floats | None = None
    """Degrees of freedom of each graph's t law; None: the normal law."""
    covariances: Stacks | None = None
    """Those of graphs, of one size together, from which these are; None where they are many."""


def default_method(batch: Batch, scores: Scores) -> str:
    """Return the method that ``auto`` stands for: the Hessian where every judgment is one draw of the model.

    Judgments of one cluster depend on each other, and so do the edges of a list read as pairs; a tie taken as half a
    win each way, and a strength other than 1, do not have the model's variance: then the sandwich. Plackett–Luce
    takes a list as one draw, with its ties.
    """
    ties = scores.options.get("ties")
    if scores.options.get("uneven") and ties == "half":  # there are ties or strengths, in judgments that lie elsewhere
        return "sandwich"
    return method_for(batch.prefs, ties, whole=bool(scores.options.get("whole lists")))


def method_for(prefs: Preferences, ties: object, *, whole: bool) -> str:
    """Return the ``default_method`` of a fit to these preferences.

    ``ties`` is its treatment of ties, None where it has none; ``whole`` says that it takes a list as one draw.
    """
    plain = whole if isinstance(prefs, Lists) else not prefs.weighted and (ties == "davidson" or not prefs.tied)
    plain |= ties == "cumulative"
    return "hessian" if plain and prefs.cluster is None else "sandwich"


def score_intervals(
    batch: Batch,
    scores: Scores,
    curvature: Curvature,
    *,
    connectivity: Connectivity,
    method: str = "auto",
    level: float = 0.95,
    gauge: Gauge | None = None,
) -> Intervals:
    """Return intervals for the scores that a likelihood structure found, at the curvature it found there.

    ``hessian``: variance diag(C(H + λ)⁻¹C); ``sandwich``: diag(C(H + λ)⁻¹M(H + λ)⁻¹C), clustered when the preferences
    have a cluster column. A separated item has one infinite end; its finite end takes the larger of the two standard
    errors, since the residuals of an item that only wins say nothing; so does an item without residuals (all ties).
    Items never compared have (−inf, inf), and so has every item of a graph with a single judgment (cluster) under the
    sandwich, which needs two. ``gauge``: what the scores are measured against, when not the component's firm items.

    Graphs of up to 400 parameters are inverted exactly; larger ones by a series that is certified to 5e-4 in the
    standard errors, else by sparse elimination where its fill allows (chains, trees, grids), else (up to 6,000) by a
    dense factor, else approximately (``approximate``), and where none of these gives an answer not at all: infinite
    ends and a note.
    Errors: UsageError for an unknown method or a level outside (0, 1). Source: Huber (1967), White (1982).
    """
    if method == "auto":
        method = default_method(batch, scores)
    if method not in METHODS:
        raise UsageError(f"unknown interval method {method!r}: {did_you_mean(method, [*METHODS, 'auto'])}")
    if not 0 < level < 1:
        raise UsageError(f"the level of an interval lies between 0 and 1, not {level}")
    usual, gauge = gauge is None, Gauge.of(batch.node_start, connectivity) if gauge is None else gauge
    meat = Meat.of(batch, curvature) if method == "sandwich" else None
    variance, extra, approximate, notes, kept = _variances(batch, curvature, gauge, meat)
    if meat is not None:
        own = np.asarray(curvature.hessian.diagonal(), np.float64)[: len(variance)]
        known = np.where(np.isfinite(variance), variance, np.nan)
        silent = connectivity.separated | (connectivity.compared & (known * own <= SILENT))
        if silent.any():
            of_model = _variances(batch, curvature, gauge, None, np.unique(batch.owner[silent]))[0]
            variance[silent] = np.maximum(variance, of_model)[silent]
        few = meat.clusters < 2
        if few.any():
            variance[few[batch.owner]] = np.inf
            extra[few[np.asarray(curvature.extra_owner, np.int64)]] = np.inf
            notes.append(too_few(int(few.sum())))
    variance[~connectivity.compared] = np.inf
    error = np.sqrt(variance)
    freedom = None if meat is None else meat.freedom
    half = t_quantile(0.5 + level / 2, np.inf if freedom is None else freedom[batch.owner]) * error
    above, below = infinite_ends(gauge, connectivity)
    value = scores.value
    return Intervals(
        lower=np.where(below, -np.inf, value - half),
        upper=np.where(above, np.inf, value + half),
        standard_error=error,
        coefficient_error=np.sqrt(extra),
        coefficient_names=curvature.extra_name,
        approximate=approximate,
        method=method,
        level=level,
        notes=tuple(notes),
        freedom=freedom,
        covariances=kept if usual else None,
    )


def too_few(graphs: int) -> Note:
    """Say that in so many graphs there is nothing that a sandwich could go by."""
    text = (
        "{graphs:queries} {graphs:has|have} fewer than two judgments or clusters: there is no spread between them to "
        "go by and {graphs:its|their} intervals are infinite ({ask} would take all preferences for independent)"
    )
    return Note("too few judgments", text, graphs=graphs, ask=Setting("interval", "hessian"))


def few_weighted(prefs: Preferences) -> tuple[Note, ...]:
    """Say of how many items the wins or the losses, weighted, are too few for limits by their spread.

    Weights w are worth (Σ w)²/Σ w² judgments. Source: Kish (1965), Survey Sampling.
    """
    if not isinstance(prefs, Comparisons) or prefs.weight is None or prefs.clusters is not None:
        return ()
    both = np.ones(len(prefs.count), bool) if prefs.tie is None else ~prefs.tie
    nodes = prefs.query.astype(np.int64) * len(prefs.items) + np.stack([prefs.winner, prefs.loser])
    _, place = np.unique(nodes, return_inverse=True)
    place = place.reshape(nodes.shape)
    weight, count = prefs.weight[both], prefs.count[both].astype(np.float64)
    sides = []
    for side in place:
        total, squares = (np.bincount(side[both], count * weight**p, place.max() + 1) for p in (1, 2))
        sides.append(np.divide(total**2, squares, out=np.zeros(len(squares)), where=squares > 0))
    number = int((np.minimum(*sides) < ENOUGH).sum())
    text = (
        "of {few:items} the wins or the losses, as they are weighted, are worth fewer than {enough}: limits by how "
        "judgments spread are too narrow for so few"
    )
    return (Note("few weighted", text, few=number, enough="ten"),) if number else ()


def infinite_ends(gauge: Gauge, connectivity: Connectivity) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which scores have no upper limit and which no lower one.

    A component whose largest strong block is one item has no two-sided contrast; that item is then unlimited above
    when another one is unlimited below it, and the other way round.
    """
    above, below = connectivity.open_above.copy(), connectivity.open_below.copy()
    if gauge.lone.any():
        some_below = np.bincount(gauge.group, connectivity.open_below, gauge.groups) > 0
        some_above = np.bincount(gauge.group, connectivity.open_above, gauge.groups) > 0
        above |= gauge.lone & some_below[gauge.group]
        below |= gauge.lone & some_above[gauge.group]
    return above | ~connectivity.compared, below | ~connectivity.compared


def _variances(
    batch: Batch, curvature: Curvature, gauge: Gauge, meat: Meat | None, graphs: NDArray[np.int64] | None = None
) -> tuple[Floats, Floats, NDArray[np.bool_], list[Note], Stacks | None]:
    """Variances of the nodes' contrasts and of the coefficients, which graphs are approximate, how, and covariances."""
    nodes = int(batch.node_start[-1])
    variance = np.zeros(nodes + len(curvature.extra_owner))
    approximate = np.zeros(len(batch), bool)
    units = Units.of(batch, curvature, gauge, whole=SMALL)
    chosen = np.arange(len(units.size)) if graphs is None else np.flatnonzero(np.isin(units.graph, graphs))
    small = units.size[chosen] <= SMALL
    small &= ~far_units(units, curvature)[chosen]
    none: list[NDArray[np.int64]] = []
    kept: Stacks | None = [] if graphs is None and (units.size[chosen[small]] ** 2).sum() <= KEPT else None
    for ids, n, matrix in stacks(units, curvature, gauge, meat, chosen[small]):
        variance[ids] = np.einsum("gii->gi", matrix)
        if kept is not None:
            kept.append((ids, n, matrix))
        none.extend(row for row in ids if not np.isfinite(variance[row]).all())
    ways: dict[str, list[float]] = {}
    for unit in chosen[~small]:
        ids = units.parameters(int(unit))
        own = gauge if len(ids) == len(variance) else gauge.take(ids[: units.nodes[unit]])
        hessian, root = _one(curvature, meat, ids)
        found = large_variances(hessian, curvature.prior, own, root)
        variance[ids] = np.concatenate([found.scores, found.coefficients])
        if meat is not None and meat.minus is not None:  # never below the mean of the ways' own variances
            less = large_variances(hessian, curvature.prior, own, _rows_of(meat.minus, ids))
            taken = np.concatenate([less.scores, less.coefficients])
            variance[ids] = np.maximum(variance[ids] - taken, variance[ids] / 2)
        if found.how == "none":
            none.append(ids)
        elif found.error > CERTIFIED:
            approximate[units.graph[unit]] = True
            ways.setdefault(found.how, []).append(found.error / 2)
    text = (
        "standard errors of {components:one large component|{components:,} large components} are approximate "
        "({how} {worst:.1%})"
    )
    notes = [
        Note("approximate standard errors", text, components=len(errors), how=_WORDS[how], worst=float(max(errors)))
        for how, errors in ways.items()
    ]
    if none:
        lost = np.concatenate(none)
        variance[lost] = np.inf
        approximate[batch.owner[lost[lost < nodes]]] = True
        lost = lost[lost < nodes]
        if meat is not None:  # one cluster has no spread, which is said by itself
            lost = lost[meat.clusters[batch.owner[lost]] > 1]
        if len(lost):
            text = (
                "no intervals for {items}: their equations are too uneven for floating point (weights far apart, or "
                "long chains with many comparisons); {ask} draws some"
            )
            notes.append(Note("no intervals", text, ask=Setting("interval", "bootstrap"), **named(batch, lost)))
    return np.maximum(variance[:nodes], 0.0), np.maximum(variance[nodes:], 0.0), approximate, notes, kept


_WORDS = {
    "series": "from the first terms of a series, for 99 of 100 items to within about",
    "sketch": "by random projections, relative standard error",
}


def _one(curvature: Curvature, meat: Meat | None, ids: NDArray[np.int64]) -> tuple[csr_array, csr_array | None]:
    """One unit's Hessian and root of the meat."""
    hessian = csr_array(curvature.hessian)
    if len(ids) == hessian.shape[0]:
        return hessian, None if meat is None else csr_array(meat.root[np.diff(meat.root.indptr) > 0])
    hessian = csr_array(hessian[ids][:, ids])
    if meat is None:
        return hessian, None
    return hessian, _rows_of(meat.root, ids)


def _rows_of(root: csr_array, ids: NDArray[np.int64]) -> csr_array:
    """The rows of one unit."""
    part = csr_array(root[:, ids])
    return csr_array(part[np.diff(part.indptr) > 0])


def wilson(successes: Floats, trials: Floats, level: float) -> tuple[Floats, Floats]:
    """Wilson's score interval of a proportion, elementwise; (0, 1) where there were no trials.

    With p = successes/trials, n trials and z the normal quantile: (p + z²/2n ± z√(p(1−p)/n + z²/4n²)) / (1 + z²/n)
    (Wilson, JASA 22, 1927). It has a width also where p is 0 or 1.

    >>> low, high = wilson(np.array([0.0]), np.array([10.0]), 0.95)
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([0.0], [0.2775])
    """
    z = float(ndtri(0.5 + level / 2))
    n = np.where(trials > 0, trials, 1.0)
    p = successes / n
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(p * (1 - p) / n + (z / (2 * n)) ** 2)
    none = trials <= 0
    return np.where(none, 0.0, np.maximum(middle - half, 0.0)), np.where(none, 1.0, np.minimum(middle + half, 1.0))
