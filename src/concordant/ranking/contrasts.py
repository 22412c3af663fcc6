"""The gauge of a component: scores are known up to a shift, so a standard error is that of a contrast.

The contrast of item i is its score minus the mean score of the component's *anchors*, (e_i − b)ᵀs with b = 1/|anchors|
on them, and so is the score that is reported. Anchors are the items of the component's largest strong block, those
whose scores against each other the data limit on both sides; without separated items that is the whole component, and
the gauge is sum zero. Where the block is a single item no contrast has two limits, and all items of the component are
anchors. A reference item, where a component holds it, is the only anchor.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from concordant.preferences.connectivity import Connectivity
from concordant.preferences.ragged import Ragged

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Gauge:
    """Which nodes belong together and which of them the shift is measured against."""

    group: NDArray[np.int64]
    """Component of each node, numbered over the batch."""
    groups: int
    weight: Floats
    """b: 1/|anchors| on the anchors of the node's component, 0 elsewhere; sums to 1 in each component."""
    lone: NDArray[np.bool_]
    """Nodes that are all there is of their component's largest strong block, while the component has more."""

    @classmethod
    def of(
        cls, node_start: NDArray[np.int64], connectivity: Connectivity, reference: NDArray[np.bool_] | None = None
    ) -> Gauge:
        """Anchor every component of a batch, at the node of ``reference`` where it has one."""
        owner = Ragged(node_start).owner
        width = int(connectivity.component.max(initial=0)) + 1
        _, group = np.unique(owner * width + connectivity.component, return_inverse=True)
        groups = int(group.max(initial=-1)) + 1
        size = np.bincount(group, minlength=groups)
        anchor = ~connectivity.separated
        anchors = np.bincount(group, anchor, groups)
        lone = anchor & ((anchors == 1) & (size > 1))[group]
        anchor |= (anchors <= 1)[group]
        if reference is not None:
            anchor = np.where((np.bincount(group, reference, groups) > 0)[group], reference, anchor)
        anchors = np.bincount(group, anchor, groups)
        return cls(group.astype(np.int64), groups, anchor / anchors[group], lone)

    def sums(self, of_nodes: Floats) -> Floats:
        """Sum over each component, in the order of its nodes whatever stands beside it; shape (groups,)."""
        return np.asarray(np.bincount(self.group, of_nodes, self.groups), np.float64)

    def spread(self, of_groups: Floats) -> Floats:
        """Give every node the value of its component."""
        return np.full(len(self.group), of_groups[0]) if self.groups == 1 else of_groups[self.group]

    def centre(self, scores: Floats) -> Floats:
        """Subtract the anchors' mean: s − bᵀs."""
        return scores - self.spread(self.sums(self.weight * scores))

    def take(self, nodes: NDArray[np.int64]) -> Gauge:
        """The gauge of some nodes (whole components)."""
        labels, group = np.unique(self.group[nodes], return_inverse=True)
        return Gauge(group, len(labels), self.weight[nodes], self.lone[nodes])


def firm(node_start: NDArray[np.int64], connectivity: Connectivity) -> NDArray[np.bool_]:
    """Nodes that the data limit on both sides."""
    lone = Gauge.of(node_start, connectivity).lone
    return np.asarray(connectivity.compared & ~connectivity.separated & ~lone, bool)


def held_at(
    node_start: NDArray[np.int64], connectivity: Connectivity, item: NDArray[np.int32], zero: int | None
) -> Gauge | None:
    """The gauge whose reference is the item of this code, wherever it is a firm one; None without a code."""
    if zero is None:
        return None
    return Gauge.of(node_start, connectivity, firm(node_start, connectivity) & (item == zero))
