"""The facts of each query's population that decide which losses can lead to the right order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from concordant.connectivity import connectivity
from concordant.graphs import Graphs
from concordant.populations.completions import HeavierPaths, heavier_paths
from concordant.populations.cycles import Cycles, cycles
from concordant.populations.neighbours import Neighbours
from concordant.populations.tournament import RowSums, Winners, row_sums, winners
from concordant.populations.triples import Triples, triples
from concordant.populations.verdicts import FAILS, HOLDS, UNDETERMINED

__all__ = ["Shapes", "shapes"]

Flags = NDArray[np.bool_]
Nodes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Shapes:
    """Facts of the mean adjacency s of each graph, d_ij = s_ij − s_ji; arrays have one entry per graph.

    A pair that was never judged is unknown, not level. Nodes are those of the batch; evidence is nodes and weights.
    """

    node_start: Nodes
    items: Nodes
    pairs: Nodes
    """Judged pairs."""
    level: Nodes
    """Judged pairs without a net preference."""
    components: Nodes
    """Sets of items that judged pairs connect; an item that was never judged is one of its own."""
    acyclic: Flags
    """The difference graph has no cycle."""
    cycles: Cycles
    """Strong components of the difference graph; shortest cycles as evidence."""
    low_noise: NDArray[np.int8]
    """Definition 4, a place in ``VERDICTS``."""
    triples: Triples
    """The paths i → j → k that it is about."""
    heavier_paths: HeavierPaths
    """Longer paths that decide it where these leave it open."""
    row_sums: RowSums
    """Condition (16) of ICML, on what was judged."""
    winners: Winners
    """Condorcet winner and Smith set."""

    def __len__(self) -> int:
        return len(self.items)

    @property
    def complete(self) -> Flags:
        """Every pair of items was judged: nothing is unknown."""
        return np.asarray(2 * self.pairs == self.items * (self.items - 1))


def shapes(mean: Graphs) -> Shapes:
    """Return what the difference graph of each population is like.

    - **acyclic**: then a topological order has the least pairwise loss (10); else ``cycles`` shows shortest ones.
    - **low noise** (Definition 4): d_ik ≥ d_ij + d_jk for all edges i → j, j → k. It *holds* when every such pair
      (i, k) was judged and reaches the sum (equality does, and so does what is short of it by 1e-12 of the three
      pairs' weight); it *fails* when a judged pair (a level one has d = 0) falls short, or, whatever the pairs
      never judged would be, when there is a cycle or a judged pair that a longer path outweighs (``heavier_paths``).
      Otherwise it is *undetermined*: a pair it needs was never judged (``triples.missing``), and some values of such
      pairs would make it hold, others fail; or there are too many paths (``triples.left_out``).
    - **row sums** (ICML (16)): Σ_j d_ij > Σ_j d_kj whenever d_ik > 0. Sums run over the judged pairs. On sparse data
      this is a statement about the population as it was sampled, which is also the one that loss (10) and the
      value-regularised linear surrogate are evaluated on: where it holds, the order by row sums contradicts no judged
      pair. It says nothing of pairs never judged.
    - **Condorcet winner**: the item with d > 0 against every other one. There is none when each item has a judged
      pair that it does not win; as long as some item has not, and was not judged against all, it is undetermined.
    - **Smith set**: the smallest nonempty set whose members all have d > 0 against all others. Level and never judged
      pairs do not separate, so on sparse data it is large; pairs judged later can only make it smaller, as long as
      the others stay as they are.

    Time and memory grow with pairs, and with the paths of two edges (bounded). ``mean`` is a batch of pair tables as
    ``mean_adjacency`` returns them. Source: Duchi, Mackey and Jordan (2013), §3.2, Definition 4; (2010), (16).

    >>> from concordant.populations.verdicts import VERDICTS
    >>> from concordant.graphs import Batch
    >>> from concordant.preferences import Preferences
    >>> from concordant.structures.adjacency import mean_adjacency
    >>> votes = Preferences.from_comparisons(["a", "b", "c"], ["b", "c", "a"], count=[3, 2, 1])
    >>> found = shapes(mean_adjacency(Batch.whole(votes)))
    >>> found.acyclic.tolist(), found.cycles.node.tolist(), VERDICTS[found.low_noise[0]], found.winners.smith.tolist()
    ([False], [0, 1, 2], 'fails', [3])
    """
    judged = Neighbours.of(mean)
    ways, paths = cycles(judged), triples(judged)
    pairs = np.diff(mean.pair_start)
    edges = np.diff(np.concatenate(([0], np.cumsum(judged.beaten)))[mean.node_start])
    acyclic = ways.largest <= 1
    fails = (paths.violated > 0) | ~acyclic
    open_ = ~fails & ((paths.unknown > 0) | (paths.left_out > 0))
    longer = heavier_paths(judged, np.flatnonzero(open_))
    fails |= longer.pair[:, 0] >= 0
    return Shapes(
        mean.node_start,
        np.diff(mean.node_start),
        pairs,
        pairs - edges,
        _components(mean),
        acyclic,
        ways,
        np.where(fails, FAILS, np.where(open_, UNDETERMINED, HOLDS)).astype(np.int8),
        paths,
        longer,
        row_sums(judged),
        winners(judged),
    )


def _components(mean: Graphs) -> Nodes:
    """How many components each graph has."""
    most = np.zeros(len(mean), np.int64)
    np.maximum.at(most, mean.owner, connectivity(mean).component.astype(np.int64) + 1)
    return most
