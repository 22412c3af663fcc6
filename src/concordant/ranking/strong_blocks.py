"""Strong blocks fitted apart: the scores of plain pairs where no prior holds separated items.

Between two strong blocks all judgments go one way, so they add nothing to the supremum of the likelihood: that is the
product of the maxima of the blocks, each by its own judgments, with the blocks as far apart as one likes. A fit with
next to no prior comes to the same scores within blocks, but Newton moves separated items outwards by about 1 a step. It
is still made where it may matter which separated items are nearest to others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.preferences.connectivity import Connectivity
from concordant.preferences.graphs import Batch, Graphs
from concordant.preferences.ragged import Ragged
from concordant.preferences.status import Status
from concordant.ranking.bradley_terry import filled
from concordant.ranking.contrasts import Gauge
from concordant.ranking.dense_newton import fit_dense
from concordant.ranking.newton import fit_sparse
from concordant.ranking.problem import Problem
from concordant.ranking.scores import Scores

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
NEXT_TO_NONE = 1e-7
"""Prior of the fit in which separated items stand as far away as makes no difference to the others."""
APART = 1000.0
"""How far beyond the scores of the largest block others stand: a judgment the other way has chance 0 in float64."""
NEAREST = 4
"""Items on either side that are held against each other before one side is called surely above the other."""
PAIRWISE = 300
"""Graphs up to this size have all their differences looked at; larger ones the scores' own intervals."""


Blocks = Callable[[Batch, Connectivity, Mapping[str, Any]], tuple[Floats, Flags] | None]
"""Scores of each strong block by its own judgments alone, mean 0, and graphs in which they were not found; or None."""


def without_prior(
    batch: Batch,
    fit: Callable[..., Scores],
    options: Mapping[str, Any],
    linked: Connectivity,
    gauge: Gauge,
    blocks: Blocks | None = None,
) -> tuple[Scores, Floats]:
    """Scores by the judgments alone, as far as these determine them, within strong blocks; and an order of all nodes.

    Whoever beat the largest block of a component by chains of wins is far above it, whoever lost to it far below. The
    order, shape (nodes,), is that of a fit with next to no prior wherever it counts, and so are the scores of other
    likelihoods than that of plain pairs, whose ``blocks`` are fitted by themselves.
    """
    given = {**options, "prior": NEXT_TO_NONE}
    apart = None if blocks is None else blocks(batch, linked, given)
    if apart is None:
        found = fit(batch, **given)
        return found, found.value
    value, lost = apart
    far = APART + 2.0 * batch.node_groups.most(np.abs(value))
    value += far[batch.owner] * (linked.open_above.astype(float) - linked.open_below)
    chosen = np.flatnonzero(lost | _by_order(batch.graphs, linked, gauge))
    found, order = fit(part(batch, chosen), **given), value.copy()
    order[batch.node_groups.take(chosen)[1]] = found.value
    value = np.where(lost[batch.owner], order, value)
    return replace(found, value=value, components=linked.component), order


def part(batch: Batch, graphs: Ints) -> Batch:
    """Some graphs of a batch."""
    taken, held = batch.groups.take(graphs)
    return Batch(batch.prefs, batch.query[graphs], taken.start, batch.judgment[held], batch.multiplicity[held])


def blocks_of_pairs(batch: Batch, linked: Connectivity, options: Mapping[str, Any]) -> tuple[Floats, Flags] | None:
    """Bradley–Terry's maximum in each strong block by itself, as ``Blocks``; None with other parameters than scores."""
    covariates = options.get("covariates") is not False and len(batch.prefs.covariate_names) > 0
    if options.get("ties", "half") != "half" or covariates:
        return None
    limits = {name: options[name] for name in ("tolerance", "max_iterations") if name in options}
    return _of_blocks(batch.graphs, linked, **limits)


# -- within blocks -----------------------------------------------------------------------------------------------
def _of_blocks(
    graphs: Graphs, linked: Connectivity, tolerance: float = 1e-10, max_iterations: int = 100
) -> tuple[Floats, Flags]:
    """The maximum likelihood of each strong block by itself, mean 0, and graphs in which it was not found."""
    blocks, nodes = _blocks(graphs, linked.block)
    value = np.zeros(blocks.nodes)
    dense = filled(blocks, 0.0)
    chosen, none = np.flatnonzero(dense), np.zeros(blocks.nodes, np.int32)
    fit = fit_dense(
        blocks, chosen, none, prior=0.0, tolerance=tolerance, max_iterations=max_iterations, value=value
    )  # fmt: skip
    lost = np.zeros(len(blocks), bool)
    lost[chosen] = fit.status == Status.STOPPED
    dense[chosen[fit.too_wide]] = False
    rest = np.flatnonzero(~dense)
    if len(rest):
        problem = Problem(
            blocks.node_start, blocks.pair_start, blocks.first, blocks.second, blocks.wins, blocks.losses, None, None,
            blocks.owner, 0.0,
        ).take(rest)  # fmt: skip
        by_pairs = fit_sparse(problem, tolerance=tolerance, max_iterations=max_iterations)
        value[blocks.node_groups.take(rest)[1]] = by_pairs.score
        lost[rest] = by_pairs.status == Status.STOPPED
    out, left = np.zeros(graphs.nodes), np.zeros(len(graphs), bool)
    out[nodes] = value
    left[graphs.owner[nodes[blocks.node_start[:-1][lost]]]] = True
    return out, left


def _blocks(graphs: Graphs, block: NDArray[np.int32]) -> tuple[Graphs, Ints]:
    """Strong blocks of several nodes as graphs by themselves, and their nodes."""
    nodes = np.argsort(block, kind="stable")
    runs = Ragged.runs(block[nodes])
    several = np.flatnonzero(runs.sizes > 1)
    runs, rows = runs.take(several)
    nodes = nodes[rows]
    place = np.full(graphs.nodes, -1, np.int64)
    place[nodes] = np.arange(len(nodes))
    number = np.full(graphs.nodes, -1, np.int64)
    number[nodes] = runs.owner
    pairs = np.flatnonzero(block[graphs.first] == block[graphs.second])
    of = number[graphs.first[pairs]]
    order = np.argsort(of, kind="stable")
    pairs, of = pairs[order], of[order]
    return Graphs(
        runs.start, Ragged.counted(of, len(several)).start, place[graphs.first[pairs]], place[graphs.second[pairs]],
        graphs.above[pairs], graphs.below[pairs], np.zeros(len(pairs)), None,
    ), nodes  # fmt: skip


# -- between blocks ----------------------------------------------------------------------------------------------
def outermost(winner: Ints, loser: Ints, linked: Connectivity, gauge: Gauge) -> tuple[Flags, Flags]:
    """Nodes of the one block of a component that lost to no other, and of the one that beat none; no firm ones."""
    block, group = linked.block, gauge.group
    firm, members = firm_nodes(linked, gauge), np.bincount(group, minlength=gauge.groups)
    apart = block[winner] != block[loser]
    found = []
    for inner in (loser[apart], winner[apart]):
        passed = np.zeros(int(block.max(initial=0)) + 1, bool)
        passed[block[inner]] = True
        ahead = np.flatnonzero(linked.compared & ~passed[block])
        first = np.unique(block[ahead], return_index=True)[1]
        one = np.bincount(group[ahead[first]], minlength=gauge.groups) == 1
        one &= np.bincount(group[ahead], minlength=gauge.groups) < members
        one &= np.bincount(group[ahead], firm[ahead], gauge.groups) == 0
        found.append(np.isin(np.arange(len(block)), ahead[one[group[ahead]]]))
    return found[0], found[1]


def firm_nodes(linked: Connectivity, gauge: Gauge) -> Flags:
    """Nodes that the data limit on both sides."""
    alone = np.bincount(gauge.group, gauge.lone, gauge.groups)[gauge.group] > 0
    return np.asarray(linked.compared & ~linked.separated & ~alone, bool)


def _by_order(graphs: Graphs, linked: Connectivity, gauge: Gauge) -> Flags:
    """Graphs in which the order of separated items may count for who is surely first or last.

    Where one block stands ahead of all others, those next to it are not the largest block's, or that has too few.
    """
    group, firm = gauge.group, firm_nodes(linked, gauge)
    size, few = np.bincount(group, minlength=gauge.groups), np.bincount(group, firm, gauge.groups) < NEAREST
    small = (size > 1 + NEAREST) & (size <= PAIRWISE)
    counts = np.zeros(len(graphs), bool)
    behind = linked.open_below & ~linked.open_above, linked.open_above & ~linked.open_below
    up, down = graphs.above > 0, graphs.below > 0
    winner, loser = (
        np.concatenate([one[up], other[down]])
        for one, other in ((graphs.first, graphs.second), (graphs.second, graphs.first))
    )
    for ahead, after in zip(outermost(winner, loser, linked, gauge), behind, strict=True):
        beside = np.bincount(group, ~(firm | after | ahead), gauge.groups) > 0
        counts[graphs.owner[ahead & (small & (few | beside))[group]]] = True
    return counts
