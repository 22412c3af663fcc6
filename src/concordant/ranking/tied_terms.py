"""The Davidson–Luce log-likelihood of many lists: ties are outcomes, with a parameter for each number of tied items.

Of the items A that are left, the set S is placed next with probability δ_|S| (Π_{i∈S} e^θ_i)^{1/|S|} over the sum of
the same over all sets of A whose size was ever tied, δ_1 = 1 (Firth, Kosmidis & Turner, arXiv:1909.07123; Turner, van
Etten, Firth & Kosmidis, Computational Statistics 35, 2020, (1)); with two items it is Davidson's model. The sums over
sets are elementary symmetric polynomials (``kernels.tied_choices``). All of it is log-linear in (θ, log δ).
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.special import gammaln

from concordant.errors import Setting, UsageError
from concordant.kernels.arrays import in_parts
from concordant.preferences.ragged import Ragged
from concordant.ranking.ranked_lists import Rankings

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
FARTHEST = 300.0  # of a score below the best of its list, and of log C(items, tied), so that sums stay finite
BLOCKS = 1 << 22  # numbers of blocks of the information at once


@dataclass(frozen=True, eq=False)
class Sizes:
    """How many items tie, of each graph: the sizes that were seen, 1 among them, and the parameter of each."""

    groups: Ragged
    order: Places
    """Items that are placed together, ascending in each graph."""
    part: Places
    """Sizes of different parts were never available together but in favour of the larger: their log δ are infinite
    against each other."""
    parameter: Places
    """Number of the parameter log δ among all of them; −1 for those that stay 0, the first of each part."""

    @classmethod
    def of(cls, lists: Rankings, graphs: int, graph: Places) -> Sizes:
        """Return the sizes of the graphs; graph (lists,)."""
        size, first = lists.tier_size, lists.tier_first
        row = lists.row[first]
        left = lists.groups.spread(lists.start[1:])[first] - first
        width = int(size.max(initial=1)) + 1
        keys = np.unique(np.concatenate([graph[row] * width + size, np.arange(graphs) * width + 1]))
        reach = np.zeros(len(keys), np.int64)
        np.maximum.at(reach, np.searchsorted(keys, graph[row] * width + size), left)
        return cls.reaching(Ragged.counted(keys // width, graphs), keys % width, reach)

    @classmethod
    def reaching(cls, groups: Ragged, order: Places, reach: Places) -> Sizes:
        """Return the sizes by the largest choice out of which each of them was ever taken, 0 for none."""
        reach = reach.copy()  # of the size, or a smaller one
        for here in groups.slices:
            reach[here] = np.maximum.accumulate(reach[here])
        cut = np.zeros(len(order), bool)
        cut[1:] = order[1:] > reach[:-1]  # nothing so small was placed while so many were left
        cut[groups.first] = True
        part = np.cumsum(cut) - 1
        return cls(groups, order, part, np.where(cut, -1, np.cumsum(~cut) - 1))

    @property
    def endless(self) -> NDArray[np.bool_]:
        """Whose δ is infinite against that of one item."""
        return np.asarray(self.part > self.part[self.groups.first][self.groups.owner])

    @property
    def free(self) -> Places:
        """Where the parameters stand among the sizes."""
        return np.flatnonzero(self.parameter >= 0)


class TiedTerms:
    """The terms of the log-likelihood of some ranked lists whose ties are outcomes; as ``LuceTerms``."""

    def __init__(self, lists: Rankings, sizes: Sizes | None = None) -> None:
        nodes = Ragged(lists.node_start)
        self.lists = lists
        graph = nodes.owner[lists.node[lists.start[:-1]]]
        self.sizes = Sizes.of(lists, len(nodes), graph) if sizes is None else sizes
        self.nodes = int(nodes.start[-1])
        own, self.at_size = self.sizes.groups.take(graph)
        self.own = own
        width = int(self.sizes.order.max(initial=1)) + 1
        row = lists.row[lists.tier_first]
        self.tiers = Ragged.counted(row, len(graph))
        keys = self.sizes.groups.owner * width + self.sizes.order
        self.choice = np.searchsorted(keys, graph[row] * width + lists.tier_size) - self.sizes.groups.first[graph[row]]
        place = lists.tier_first - lists.start[row]
        self.tier = np.insert(place, self.tiers.start[1:], lists.length)
        largest = self.sizes.groups.most(self.sizes.order)[graph]
        items = lists.length.astype(float)
        many = (
            gammaln(items + 1)
            - gammaln(np.minimum(largest, items) + 1)
            - gammaln(items - np.minimum(largest, items) + 1)
        )
        if (far := np.flatnonzero(many > FARTHEST)).size:
            raise UsageError(
                f"plackett-luce: ties of {int(largest[far[0]]):,} among the {int(items[far[0]]):,} items of a list: "
                "the sums over all sets of so many items are beyond floating point; read ties as an order that is not "
                "known (",
                Setting("ties", "any-order"),
                ")",
            )

    @property
    def extra_owner(self) -> Places:
        """The graph of each log δ."""
        return self.sizes.groups.owner[self.sizes.free]

    def take(self, rows: Places) -> TiedTerms:
        """Return the terms of some of the lists, with the parameters of all."""
        return TiedTerms(self.lists.take(rows), self.sizes)

    def weighted(self, weight: Floats) -> TiedTerms:
        """Return the terms of the same lists as they are held so often."""
        found = copy(self)
        found.lists = replace(self.lists, weight=weight)
        return found

    def at(self, point: Floats) -> TiedPosition:
        """Evaluate at scores of the nodes and, behind them, the log δ."""
        return TiedPosition(self, point)


class TiedPosition:
    """The log-likelihood at given scores and log δ."""

    def __init__(self, terms: TiedTerms, point: Floats) -> None:
        self.terms = terms
        lists, sizes = terms.lists, terms.sizes
        score = point[lists.node]
        self.score = np.maximum(score - lists.groups.spread(lists.groups.most(score)), -FARTHEST)
        level = np.zeros(len(sizes.order))
        level[sizes.free] = point[terms.nodes :]
        self.level = level[terms.at_size]
        self.length = len(point)

    def _arguments(self) -> tuple[NDArray[np.generic], ...]:
        terms = self.terms
        own = (terms.own.start, terms.sizes.order[terms.at_size], terms.sizes.part[terms.at_size], self.level)
        return (terms.lists.start, self.score, terms.tiers.start, terms.tier, terms.choice, *own, terms.lists.weight)

    def _run(self, vector: Floats) -> tuple[Floats, ...]:
        """Values of the lists; gradient, product and bound of the diagonal of entries, and of sizes."""
        from concordant.kernels.tied_choices import tied_choices

        terms, lists = self.terms, self.terms.lists
        tilt = np.zeros(len(terms.sizes.order))
        tilt[terms.sizes.free] = vector[terms.nodes :]
        out = [np.zeros(n) for n in (len(lists.weight), *[len(lists.node)] * 3, *[len(terms.at_size)] * 3)]
        moves = vector[lists.node], tilt[terms.at_size]
        same = self._arguments()

        def work(part: Places) -> None:
            tied_choices(*same, *moves, part[0], part[-1] + 1, *out)

        cost = lists.length * np.maximum(terms.own.sums(terms.sizes.order[terms.at_size]), 1)
        in_parts(work, np.arange(len(lists.weight)), cost, 1 << 16)
        return tuple(out)

    @cached_property
    def _still(self) -> tuple[Floats, ...]:
        return self._run(np.zeros(self.length))

    def value(self) -> float:
        """Return the log-likelihood."""
        return float(self._still[0].sum())

    @property
    def extra_entries(self) -> tuple[Floats, Places]:
        """Gradient of the sizes of each list, and the parameter of each, −1 where it is none."""
        return self._still[4], self.terms.sizes.parameter[self.terms.at_size]

    def gradient_entries(self) -> Floats:
        """Return ∂ log-likelihood / ∂θ through each entry."""
        return self._still[1]

    def gradient(self) -> Floats:
        """Return the gradient, shape (nodes + log δ,)."""
        return self._joined(self._still[1], self._still[4])

    def diagonal(self) -> Floats:
        """Return a bound of the diagonal of the information, of its size: what preconditions a solver."""
        return self._joined(self._still[3], self._still[6])

    def times(self, vector: Floats) -> Floats:
        """Multiply the information by a vector of the parameters."""
        found = self._run(vector)
        return self._joined(found[2], found[5])

    def _joined(self, entries: Floats, of_sizes: Floats) -> Floats:
        terms = self.terms
        parameter = terms.sizes.parameter[terms.at_size]
        free = parameter >= 0
        extras = np.bincount(parameter[free], of_sizes[free], self.length - terms.nodes)
        return np.concatenate([np.bincount(terms.lists.node, entries, terms.nodes), extras])

    def information(self) -> csr_array:
        """Return the information as a sparse matrix over scores and log δ."""
        from concordant.kernels.tied_choices import tied_information

        terms, lists = self.terms, self.terms.lists
        both = lists.length + terms.own.sizes
        whole = csr_array((self.length, self.length))
        for part in Ragged.runs((np.cumsum(both**2) - both**2) // BLOCKS).slices:
            rows = np.arange(part.start, part.stop)
            block = Ragged.of_sizes(both[rows] ** 2)
            cells = np.zeros(int(block.start[-1]))
            tied_information(*self._arguments(), rows, block.start, cells)
            own, width = self._parameters(rows), both[rows]
            begin = np.cumsum(width) - width  # of each list among the parameters
            above = np.repeat(own, np.repeat(width, width))
            beside = own[np.repeat(begin, width**2) + block.place % block.spread(width)]
            known = (above >= 0) & (beside >= 0)
            shape = (self.length, self.length)
            whole = whole + coo_array((cells[known], (above[known], beside[known])), shape=shape).tocsr()
        return csr_array(whole)

    def _parameters(self, rows: Places) -> Places:
        """The parameters of some lists, one after the other: their nodes, then their sizes, −1 for no parameter."""
        terms, lists = self.terms, self.terms.lists
        entries, nodes = lists.groups.take(rows)
        sizes, own = terms.own.take(rows)
        extra = terms.sizes.parameter[terms.at_size[own]]
        row = np.append(entries.owner, sizes.owner)
        found = np.append(lists.node[nodes], np.where(extra >= 0, terms.nodes + extra, -1))
        return np.asarray(found[np.argsort(row, kind="stable")])
