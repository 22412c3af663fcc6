"""Bradley–Terry scores of a batch and the covariance matrix of those that can be compared, component by component."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from concordant.errors import CannotRank, InputError
from concordant.preferences.connectivity import Connectivity, connectivity
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences
from concordant.ranking.bradley_terry import bradley_terry
from concordant.ranking.contrasts import Gauge
from concordant.ranking.covariance import SILENT, Meat, Units, far_units, stacks
from concordant.ranking.curvature import Curvature, bradley_terry_curvature
from concordant.ranking.large_variances import large_variances
from concordant.ranking.scores import Scores
from concordant.ranking.standard_errors import default_method

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Chooser = Callable[[Floats, Floats], Ints]
LARGEST = 2_000
"""Items of a component whose whole covariance matrix is used."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """The Bradley–Terry fit of a batch, with what bounds its scores."""

    batch: Batch
    scores: Scores
    curvature: Curvature
    links: Connectivity
    gauge: Gauge
    method: str
    """``hessian`` or ``sandwich``, as ``rank`` chooses by itself."""

    @cached_property
    def meat(self) -> Meat | None:
        """The middle of the sandwich, where it is one."""
        return Meat.of(self.batch, self.curvature) if self.method == "sandwich" else None

    @cached_property
    def single(self) -> NDArray[np.bool_]:
        """Graphs whose sandwich rests on a single judgment or judge, and so has no spread to go by."""
        return np.zeros(len(self.batch), bool) if self.meat is None else self.meat.clusters < 2


@dataclass(frozen=True, eq=False)
class Block:
    """Components of one size side by side."""

    graph: Ints
    """Shape (components,)."""
    nodes: Ints
    """Shape (components, n), as nodes of the batch, best score first (equal ones: the first node first)."""
    place: Ints
    """Place of each in its component, 0 first: 0 … n − 1 unless some items are left out."""
    value: Floats
    covariance: Floats
    """Shape (components, n, n): of the scores, up to a shift of all of them."""
    whole: bool
    """False where the component is larger than ``LARGEST``: only some of its items, taken for independent."""

    def some(self, part: slice) -> Block:
        """Return some of the components."""
        columns = ("graph", "nodes", "place", "value", "covariance")
        return replace(self, **{name: getattr(self, name)[part] for name in columns})


def fitted(source: Preferences | Batch | Fitted, *, prior: float = 0.01, ties: str = "half") -> Fitted:
    """Fit Bradley–Terry to whole queries (Preferences) or to the graphs of a batch.

    Errors: InputError when no two items are compared anywhere, and those of ``bradley_terry``.
    """
    if isinstance(source, Fitted):
        return source
    batch = source if isinstance(source, Batch) else Batch.whole(source)
    if len(batch.graphs.first) == 0:
        raise InputError(
            f"no pair of items is compared in {len(batch):,} queries with {int(batch.judgments.sum()):,} judgments, so "
            "there is nothing to settle; judgments with at least two items are needed"
        )
    scores = bradley_terry(batch, prior=prior, ties=ties)
    links = connectivity(batch.graphs)
    curvature = bradley_terry_curvature(batch, scores)
    gauge = Gauge.of(batch.node_start, links)
    return Fitted(batch, scores, curvature, links, gauge, default_method(batch, scores))


def blocks(fit: Fitted, choose: Chooser, *, main: bool) -> Iterator[Block]:
    """Yield every component of at least two items (with ``main`` the largest of each graph only).

    Components of up to 2,000 items come whole; of a larger one the 2,000 that ``choose`` names, given the scores in
    descending order and their standard errors (answer: places, ascending). Sandwich: an item that never lost or never
    won, or without residuals, has at least the variance 1/(H_ii + λ), because its residuals say nothing; so has every
    item of a graph with a single judgment or judge.
    """
    batch, curvature, links = fit.batch, fit.curvature, fit.links
    units = Units.of(batch, curvature, fit.gauge, whole=0)
    first = units.order[units.start[:-1]]
    wanted = units.nodes > 1
    if main:
        wanted &= (links.component[np.minimum(first, len(links.component) - 1)] == 0) | (units.size > units.nodes)
    if far_units(units, curvature)[wanted].any():
        raise CannotRank(
            "the strengths of the judgments lie too far apart for the covariance of the scores in floating point, so "
            "nothing can be said about what more judgments would settle"
        )
    small = units.size <= LARGEST
    meat = fit.meat
    floor = np.zeros(len(batch.item))
    if meat is not None:
        own = np.asarray(curvature.hessian.diagonal(), np.float64)[: len(floor)] + curvature.prior
        floor = 1.0 / np.maximum(own, 1e-300)
    for ids, n, matrix in stacks(units, curvature, fit.gauge, meat, np.flatnonzero(wanted & small)):
        nodes, covariance = ids[:, :n], matrix[:, :n, :n]
        if meat is not None:
            diagonal = np.einsum("gii->gi", covariance)
            bare = links.separated[nodes] | (diagonal <= SILENT * floor[nodes]) | fit.single[batch.owner[nodes]]
            diagonal += np.where(bare, np.maximum(floor[nodes] - diagonal, 0.0), 0.0)
        if ids.shape[1] == n:
            yield _ordered(fit, nodes, covariance)
            continue
        for row, own_matrix in zip(nodes, covariance, strict=True):  # coefficients join a graph's components
            for component in np.unique(links.component[row])[: 1 if main else None]:
                part = np.flatnonzero(links.component[row] == component)
                if len(part) > 1:
                    yield _ordered(fit, row[part][None], own_matrix[np.ix_(part, part)][None])
    for unit in np.flatnonzero(wanted & ~small):
        yield from _large(fit, units.parameters(int(unit)), int(units.nodes[unit]), choose, main)


def _ordered(fit: Fitted, nodes: Ints, covariance: Floats) -> Block:
    value = fit.scores.value[nodes]
    order = np.argsort(-value, axis=1, kind="stable")
    row = np.arange(len(nodes))[:, None]
    place = np.broadcast_to(np.arange(nodes.shape[1]), nodes.shape)
    matrix = covariance[row[:, :, None], order[:, :, None], order[:, None, :]]
    return Block(fit.batch.owner[nodes[:, 0]], nodes[row, order], place, value[row, order], matrix, True)


def _large(fit: Fitted, ids: Ints, n: int, choose: Chooser, main: bool) -> Iterator[Block]:
    """The chosen items of the components of one large unit, with their own variances only."""
    curvature, links = fit.curvature, fit.links
    hessian = csr_array(csr_array(curvature.hessian)[ids][:, ids])
    root = None if fit.meat is None else csr_array(fit.meat.root[:, ids])
    gauge = fit.gauge.take(ids[:n])
    variance = large_variances(hessian, curvature.prior, gauge, root).scores
    if not np.isfinite(variance).all():
        raise CannotRank(
            f"the standard errors of {len(gauge.group):,} items were not found (long chains with many comparisons), so "
            "nothing can be said about what more judgments would settle"
        )
    own = np.asarray(hessian.diagonal(), np.float64)[:n] + curvature.prior
    bare = links.separated[ids[:n]] | (variance * own <= SILENT) | fit.single[fit.batch.owner[ids[:n]]]
    variance = np.where(bare, np.maximum(variance, 1.0 / own), variance)
    for component in np.unique(links.component[ids[:n]])[: 1 if main else None]:
        part = np.flatnonzero(links.component[ids[:n]] == component)
        if len(part) < 2:
            continue
        part = part[np.argsort(-fit.scores.value[ids[part]], kind="stable")]
        value = fit.scores.value[ids[part]]
        place = choose(value, np.sqrt(variance[part])) if len(part) > LARGEST else np.arange(len(part))
        nodes = ids[part[place]]
        covariance = np.diag(variance[part[place]])[None]
        owner = fit.batch.owner[nodes[:1]]
        yield Block(owner, nodes[None], place[None], value[place][None], covariance, len(part) <= LARGEST)
