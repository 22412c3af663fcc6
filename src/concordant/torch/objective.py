"""Any member of the registry as a module: its edges become tensors once; scores go in, values of graphs come out."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from concordant.losses.expected_gains import expected_gains
from concordant.losses.objective import Objective, Population, Relevance
from concordant.losses.pair_losses import pair_loss
from concordant.losses.pair_losses import value_penalty as numpy_penalty
from concordant.losses.surrogates import from_gains_to_all
from concordant.losses.surrogates import surrogate as numpy_surrogate
from concordant.preferences.graphs import Batch, Graphs
from concordant.torch.graded import GradedObjective
from concordant.torch.losses import edge_terms, on_tensors, per_graph, real_scores, spans, value_penalty


class TorchObjective(nn.Module):  # type: ignore[misc]
    """Conditional surrogate risk of each graph: Σ_e w_e φ(α_i − α_j − h_e) + Σ_i ν_i r(α_i − t_i), e from i to j.

    ``TorchObjective.of(objective)`` takes the edges of an ``Objective`` of ``surrogates``: whatever the registry builds
    needs no line here. The module has buffers: ``.to(device)`` and ``.float()`` move them; scores of another precision
    decide the precision of the result. Calling it with scores (nodes,) gives the values (graphs,), differentiable.
    Errors: UsageError for scores of another length or kind.

    Parameters
    ----------
    node_start : (graphs + 1,); nodes of graph g are node_start[g]:node_start[g + 1].
    winner, loser : (edges,) the nodes i and j.
    weight, margin : (edges,) w and h.
    pull, target : (nodes,) ν and t.
    phi, penalty : φ and r, by name.

    >>> from concordant.preferences.preferences import Preferences
    >>> votes = Preferences.from_comparisons(["x", "x", "x", "y"], ["y", "y", "y", "x"])
    >>> risk = surrogate("ranknet", Batch.whole(votes))
    >>> scores = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    >>> risk(scores).sum().backward()
    >>> scores.grad.tolist()
    [-0.25, 0.25]

    Source: AoS (11)–(13), (23), (28); ICML (14).
    """

    def __init__(
        self,
        node_start: Tensor,
        winner: Tensor,
        loser: Tensor,
        weight: Tensor,
        margin: Tensor,
        pull: Tensor,
        target: Tensor,
        *,
        phi: str = "logistic",
        penalty: str = "square",
    ) -> None:
        super().__init__()
        on_tensors(pair_loss(phi)), on_tensors(numpy_penalty(penalty))  # both have to be known
        self.phi, self.penalty = phi, penalty
        size = node_start.diff()
        owner = torch.repeat_interleave(torch.arange(len(size), device=node_start.device), size)
        of_edge = owner[winner]
        order = torch.argsort(of_edge, stable=True)  # edges of one graph stand together, so that ``take`` can slice
        begin = torch.searchsorted(of_edge[order], torch.arange(len(size) + 1, device=node_start.device))
        columns = {
            "node_start": node_start,
            "owner": owner,
            "edge_start": begin,
            "winner": winner[order],
            "loser": loser[order],
            "weight": weight[order],
            "margin": margin[order],
            "pull": pull,
            "target": target,
        }
        for name, column in columns.items():
            self.register_buffer(name, column)
        self._pulled = bool((pull != 0).any())
        self._shifted = bool((margin != 0).any())

    @classmethod
    def of(cls, objective: Objective, *, dtype: Any = torch.float64, device: Any = None) -> TorchObjective:
        """Copy an ``Objective`` to tensors; weights get ``dtype``."""
        edges = objective.edges

        def places(column: Any) -> Tensor:
            return torch.as_tensor(np.array(column, np.int64), device=device)

        def numbers(column: Any) -> Tensor:
            return torch.as_tensor(np.array(column, np.float64), device=device).to(dtype)

        return cls(
            *(places(column) for column in (edges.node_start, edges.winner, edges.loser)),
            *(numbers(column) for column in (edges.weight, edges.offset, edges.pull, edges.pulled_to)),
            phi=objective.phi.name,
            penalty=objective.penalty.name,
        )

    @property
    def nodes(self) -> int:
        """Number of scores it takes."""
        return len(self.owner)

    def __len__(self) -> int:
        return len(self.node_start) - 1

    def forward(self, scores: Tensor) -> Tensor:
        """Return the value of each graph at scores (nodes,); shape (graphs,)."""
        real_scores(scores, self.nodes, self.node_start.device)
        margin = self.margin if self._shifted else None
        terms = edge_terms(scores, self.winner, self.loser, self.weight, self.phi, margin)
        value = per_graph(terms, self.owner.index_select(0, self.winner), len(self))
        if not self._pulled:
            return value
        pulls = value_penalty(scores, self.pull, self.target, penalty=self.penalty, reduction="none")
        return value + per_graph(pulls, self.owner, len(self))

    def take(self, graphs: Tensor) -> TorchObjective:
        """Return the objective of these graphs alone (int64 places, in the order given), as for a mini-batch."""
        node, node_start = spans(self.node_start, graphs)
        edge, edge_start = spans(self.edge_start, graphs)
        shift = torch.repeat_interleave(node_start[:-1] - self.node_start[graphs], edge_start.diff())
        return TorchObjective(
            node_start,
            self.winner[edge] + shift,
            self.loser[edge] + shift,
            self.weight[edge],
            self.margin[edge],
            self.pull[node],
            self.target[node],
            phi=self.phi,
            penalty=self.penalty,
        )


def surrogate(
    name: str,
    source: Batch | Graphs | Population | Relevance,
    *,
    phi: str | None = None,
    penalty: str | None = None,
    dtype: Any = torch.float64,
    device: Any = None,
    **options: Any,
) -> TorchObjective | GradedObjective:
    """Return a member of the registry as a module: scores (nodes,) → value of each graph (graphs,).

    Members that weigh a gain against every other item ("ndcg-pairwise", "err-pairwise") become a ``GradedObjective``,
    which holds m numbers in the place of m² edges. Errors are those of ``losses.surrogates``.

    Parameters
    ----------
    name : of the member.
    source : a Batch, a Population or a mean adjacency (Graphs), or the Relevance of members that read scores.
    phi, penalty : margin function and penalty on values; None, the member's own.
    dtype, device : of the module.
    **options : options of the member.

    >>> from concordant.losses.objective import Relevance
    >>> risk = surrogate("ndcg-pairwise", Relevance.of([2.0, 0.0, 1.0]), phi="exponential")
    >>> type(risk).__name__, round(risk(torch.zeros(3)).item(), 4)
    ('GradedObjective', 2.4298)
    """
    member = numpy_surrogate(name)
    if member.edges is from_gains_to_all and isinstance(source, Relevance):
        alone = Relevance(np.array([0, 1]), np.zeros((1, 1)), np.ones(1))
        checked = member.objective(alone, phi=phi, penalty=penalty, **options)  # names of options and of φ
        gains = expected_gains(source, **{**member.defaults, **options})
        return GradedObjective(
            torch.as_tensor(np.array(source.node_start, np.int64), device=device),
            torch.as_tensor(gains, device=device).to(dtype),
            phi=checked.phi.name,
        )
    return TorchObjective.of(member.objective(source, phi=phi, penalty=penalty, **options), dtype=dtype, device=device)
