"""One-sided limits of items whose score the data limit on one side only: never lost, never won, separated.

Say that item i, and whoever stands between, always won against the anchors of its component (``contrasts``). Its
likelihood rises with δ = s_i − mean of the anchors towards a supremum. The lower limit at a one-sided level 1 − α is
the δ at which the *relative profile likelihood* max{L : δ} / sup L is α. Where the scores of the others are known, that
is the exact test: L/sup L at δ is then the chance of such an outcome, and no outcome speaks more for i (one item, n
wins of n: p = α^{1/n}; Clopper & Pearson, Biometrika 26, 1934). The bound by χ² would promise too much at the end of
the range. The prior plays no part.

What is maximised over: the scores of the items between i and the anchors, exactly; those of the firm items that they
met as normal about their maximum likelihood, with its covariance (of the Hessian or the sandwich). Judgments between i
and the rest add nothing to that maximum, which is found without them (``strong_blocks``) or, of other likelihoods than
that of plain pairs, with a prior that is next to none. In a component without any
two items that the data limit against each other the mean is that of all items, and whoever has beaten all by chains of
wins has a lower limit, whoever has lost to all an upper one. One more than 180 away from the firm items met is none.

With the sandwich judgments are no independent draws of the model. Then each judgment, or cluster, counts once on the
way from an item to those below it: the chance that all its wins happen is at most that of any of them, whatever their
dependence, so at most their geometric mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array

from concordant.preferences.connectivity import Connectivity
from concordant.preferences.graphs import Batch
from concordant.preferences.ragged import Ragged
from concordant.ranking.choices import Choices
from concordant.ranking.contrasts import Gauge
from concordant.ranking.covariance import Meat, Units, far_units, stacks
from concordant.ranking.curvature import Curvature
from concordant.ranking.profile_likelihood import MOST, Asked, Laws, Profiles
from concordant.ranking.scores import Scores
from concordant.ranking.standard_errors import score_intervals
from concordant.ranking.strong_blocks import Blocks, firm_nodes, outermost, part, without_prior

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
WHOLE = 1000
"""Units of up to so many parameters give the covariance of firm items; of larger ones their variances are taken."""

TOGETHER = 1 << 21
"""Numbers of covariances from which profiles are computed before there are more."""


# -- limits ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Separated:
    """Graphs with separated items at their fit without a prior."""

    batch: Batch
    linked: Connectivity
    gauge: Gauge
    value: Floats
    """Scores against the anchors."""
    order: Floats
    """Scores by which nodes of a component are near to each other."""
    curvature: Curvature
    scores: Scores
    method: str
    choices: Choices
    links: tuple[csr_array, csr_array]
    """Who won against whom (or tied), and who lost to whom."""
    nodes: Ints
    """Of the whole batch."""

    @classmethod
    def of(
        cls,
        whole: Batch,
        fit: Callable[..., Scores],
        bend: Callable[[Batch, Scores], Curvature],
        options: Mapping[str, Any],
        linked: Connectivity,
        gauge: Gauge,
        *,
        lists: bool,
        method: str,
        blocks: Blocks | None = None,
    ) -> Separated | None:
        """Fit the graphs with separated items as ``fit`` does, with the curvature ``bend``; None where there are none.

        ``lists``: the structure reads lists stage by stage; ``method``: hessian or sandwich, for the firm items;
        ``blocks``: what fits strong blocks by themselves, where something does.
        """
        graphs = np.unique(whole.owner[(linked.separated | gauge.lone) & linked.compared])
        if len(graphs) == 0:
            return None
        batch, nodes = part(whole, graphs), whole.node_groups.take(graphs)[1]
        here = Connectivity(*(getattr(linked, name)[nodes] for name in linked.__dataclass_fields__))
        given, own = {name: value for name, value in options.items() if name != "mean"}, gauge.take(nodes)
        scores, order = without_prior(batch, fit, given, here, own, blocks)
        choices = Choices.of(batch, scores, here, lists=lists, once=method == "sandwich")
        curvature = bend(batch, scores)
        value, links = own.centre(scores.value), _links(choices, len(nodes))
        return cls(batch, here, own, value, order, curvature, scores, method, choices, links, nodes)

    def ends(self, tail: float, value: Floats) -> tuple[Floats, Floats]:
        """Lower and upper limits of the separated nodes, each at one-sided 1 − tail, at the level of ``value``.

        Shape that of ``value``, nodes of the whole batch; −inf and inf where the data set none, NaN for other nodes.
        """
        total, level = len(value), self.gauge.spread(self.gauge.sums(self.gauge.weight * value[self.nodes]))
        own = self.nodes[(self.linked.separated | self.gauge.lone) & self.linked.compared]
        lower, upper = np.full(total, np.nan), np.full(total, np.nan)
        lower[own], upper[own] = -np.inf, np.inf
        for target, below, limit in self._limits(-float(np.log(tail))):
            limit = np.where(np.isnan(limit), -np.inf if below else np.inf, limit + level[target])
            (lower if below else upper)[self.nodes[target]] = limit
        return lower, upper

    def _limits(self, far: float) -> Iterator[tuple[Ints, bool, Floats]]:
        """Yield nodes, whether their lower limits follow, and these: δ where the profile is ``far`` below its end."""
        linked, some = self.linked, ~self.alone
        up = linked.open_above & ~linked.open_below & some
        down = linked.open_below & ~linked.open_above & some
        for profiles in self.profiles():
            for side, within in enumerate((up, down)):
                if profiles.laws is not None:
                    begin = profiles.nodes[within[profiles.nodes]]
                    groups, node = profiles.reached(self.links[side], begin, within)
                    asked = Asked(groups, node, begin, np.ones(len(begin), bool), side)
                else:
                    begin = profiles.nodes[profiles.units.spread(profiles.units.sizes) <= MOST]
                    groups, node = profiles.reached(self.links[side], begin, self.alone)
                    all_ = np.flatnonzero(groups.sizes == profiles.units.sizes[profiles.unit[begin]])
                    asked = Asked(groups, node, begin, np.zeros(len(begin), bool), side, mean=True).some(all_)
                yield asked.given, side == 0, profiles.limits(asked, far)

    @cached_property
    def _by_node(self) -> csr_array:
        """Which choices have an alternative with each node."""
        rows, columns = self.choices.node.T.ravel(), np.tile(Ragged(self.choices.start).owner, 2)
        shape = len(self.value), len(self.choices.start) - 1
        return csr_array((np.ones(len(rows), bool), (rows, columns)), shape=shape)

    @cached_property
    def outermost(self) -> tuple[Flags, Flags]:
        """Nodes of the one block of a component that lost to no other, and of the one that beat none."""
        of = Ragged(self.links[0].indptr.astype(np.int64)).owner, self.links[0].indices
        return outermost(*of, self.linked, self.gauge)

    @cached_property
    def alone(self) -> Flags:
        """Nodes of components without two items that the data limit against each other."""
        gauge = self.gauge
        return np.asarray(np.bincount(gauge.group, gauge.lone, gauge.groups)[gauge.group] > 0)

    @cached_property
    def firm(self) -> Flags:
        """Nodes that the data limit on both sides."""
        return firm_nodes(self.linked, self.gauge)

    def profiles(self, among: Flags | None = None) -> Iterator[Profiles]:
        """Yield what makes the profiles of all units that have separated nodes, or some, many units at a time."""
        held = self.choices, self.value, self.linked.block, self.firm, self._by_node
        chosen = np.ones(len(self.value), bool) if among is None else among
        alone = np.flatnonzero(self.alone & chosen)
        alone = alone[np.argsort(self.gauge.group[alone], kind="stable")]
        rest = ((Ragged.runs(self.gauge.group[alone]), alone, None),) if len(alone) else ()
        for units, nodes, laws in chain(self._laws(self.linked.separated & ~self.alone & chosen), rest):
            unit, place = (np.zeros(len(self.value), np.int64) for _ in range(2))
            unit[nodes], place[nodes] = units.owner, units.place
            yield Profiles(*held, units, nodes, unit, place, laws)

    def _laws(self, open_: Flags) -> Iterator[tuple[Ragged, Ints, Laws]]:
        """Nodes of units with open ones, and the laws of their firm nodes; units without a finite one are left out."""
        curvature, units, inner, far = self._bread
        unit = np.empty(len(units.order), np.int64)
        unit[units.order] = units.groups.owner
        chosen = np.unique(unit[: len(open_)][open_])
        small = (units.size[chosen] <= WHOLE) & ~far[chosen]
        meat = Meat.of(self.batch, curvature) if self.method == "sandwich" else None
        spread = np.ones(len(self.batch), bool) if meat is None else meat.clusters > 1
        place = np.zeros(len(unit), np.int64)
        place[inner.order] = inner.groups.place
        held, numbers = [], 0
        for ids, n, matrices in stacks(inner, curvature, self.gauge, meat, chosen[small]):
            known = np.isfinite(matrices[:, :n, :n]).all(axis=(1, 2)) & spread[units.graph[unit[ids[:, 0]]]]
            held.append((unit[ids[known, 0]], matrices[known, :n, :n].ravel()))
            numbers += len(held[-1][1])
            if numbers > TOGETHER:
                yield _together(units, inner, place, held)
                held, numbers = [], 0
        if numbers:
            yield _together(units, inner, place, held)
        if small.all():
            return
        error = score_intervals(
            self.batch, self.scores, curvature, connectivity=self.linked, method=self.method, gauge=self.gauge
        ).standard_error
        for one in chosen[~small]:
            nodes = units.parameters(int(one))[: units.nodes[one]]
            variance = np.where(self.firm[nodes], error[nodes] ** 2, 0.0)
            if np.isfinite(variance).all():
                place[nodes] = np.arange(len(nodes))
                begin, width = np.zeros(1, np.int64), np.array([len(nodes)])
                yield Ragged.of_sizes(width), nodes, Laws(variance, begin, width, place, whole=False)

    @cached_property
    def _bread(self) -> tuple[Curvature, Units, Units, Flags]:
        """The curvature of the firm nodes, units, these without nodes that are not firm, and which lie far apart."""
        curvature = _of_firm(self.curvature, self.firm, self.batch.node_groups)
        units = Units.of(self.batch, curvature, self.gauge, whole=WHOLE)
        inner = units.only(np.append(self.firm, np.ones(len(curvature.extra_owner), bool)))
        return curvature, units, inner, far_units(inner, curvature)


def _together(units: Units, inner: Units, place: Ints, held: list[tuple[Ints, Floats]]) -> tuple[Ragged, Ints, Laws]:
    """Nodes of some units, one behind the other, and the laws of their firm nodes."""
    unit, numbers = (np.concatenate(column) for column in zip(*held, strict=True))
    groups, width = Ragged.of_sizes(units.nodes[unit]), inner.nodes[unit]
    nodes = units.order[groups.spread(units.start[unit]) + groups.place]
    return groups, nodes, Laws(numbers, np.cumsum(width**2) - width**2, width, place)


def _links(choices: Choices, n: int) -> tuple[csr_array, csr_array]:
    first = choices.node[choices.start[:-1]]
    wins, losses = Ragged(choices.start).spread(first[:, 0]), choices.node[:, 1]
    source, target = np.concatenate([wins, first[:, 1]]), np.concatenate([losses, first[:, 0]])
    links = csr_array((np.ones(len(source), bool), (source, target)), shape=(n, n))
    return links, csr_array(links.T)


def _of_firm(curvature: Curvature, firm: Flags, graphs: Ragged) -> Curvature:
    """The curvature of the firm nodes (and coefficients) alone: each other one stands by itself.

    It does with the mean of its graph's firm ones, so whatever else there is changes no rounding.
    """
    only = diags_array(own := np.append(firm, np.ones(len(curvature.extra_owner), bool)).astype(float))
    mean = graphs.sums(curvature.hessian.diagonal()[: len(firm)] * firm) / np.maximum(graphs.sums(firm), 1.0)
    typical = np.append(graphs.spread(np.where(mean > 0, mean, 1.0)), np.ones(len(curvature.extra_owner)))
    hessian = csr_array(only @ curvature.hessian @ only + diags_array((1.0 - own) * typical))
    made = curvature.meat
    return replace(
        curvature,
        hessian=hessian,
        gradients=lambda *of: csr_array(curvature.gradients(*of) @ only),
        meat=None if made is None else lambda: made().times(only),
    )
