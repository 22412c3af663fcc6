"""The two sums that every surrogate is made of: weighted edges under φ, and a penalty on values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from concordant.errors import UsageError
from concordant.losses.pair_losses import PAIR_LOSSES, PairLoss, Penalty, pair_loss
from concordant.losses.pair_losses import PENALTIES as NUMPY_PENALTIES
from concordant.losses.pair_losses import value_penalty as numpy_penalty

REDUCTIONS = ("sum", "mean", "none", "graph")
Function = Callable[[Tensor], Tensor]


def on_tensors(function: PairLoss | Penalty) -> Function:
    """Return φ or r on tensors; UsageError when it has no such form.

    >>> on_tensors(pair_loss("logistic"))(torch.tensor([0.0, -800.0], dtype=torch.float64)).tolist()
    [0.6931471805599453, 800.0]
    """
    form = function.torch
    if form is None:
        raise UsageError(f"{function.name!r} has no form on tensors: give it one, torch=lambda torch, t: …")
    return lambda t: form(torch, t)


class _OnTensors(Mapping[str, Function]):
    """The forms on tensors of what a registry holds now."""

    def __init__(self, functions: Mapping[str, PairLoss] | Mapping[str, Penalty]) -> None:
        self.functions = functions

    def __getitem__(self, name: str) -> Function:
        return on_tensors(self.functions[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self.functions)

    def __len__(self) -> int:
        return len(self.functions)


MARGINS: Mapping[str, Function] = _OnTensors(PAIR_LOSSES)
"""φ by name; the derivative of the hinge at its kink is 0, as in ``losses.pair_losses``."""
PENALTIES: Mapping[str, Function] = _OnTensors(NUMPY_PENALTIES)
"""r by name."""


def edge_loss(
    scores: Tensor,
    winner: Tensor,
    loser: Tensor,
    weight: Tensor | None = None,
    *,
    phi: str = "logistic",
    margin: Tensor | None = None,
    graph: Tensor | None = None,
    graphs: int | None = None,
    reduction: str = "sum",
) -> Tensor:
    """Return Σ_e w_e φ(α_winner(e) − α_loser(e) − h_e), differentiable in the scores α (and in w and h).

    With weight 1 and reduction 'mean' it is the usual ``-logsigmoid(r_chosen - r_rejected).mean()``.

    Parameters
    ----------
    scores : (nodes,), α, of any number of queries one after another.
    winner, loser : (edges,) int64 places in ``scores``.
    weight, margin : (edges,) w and h; None, 1 and 0. Weights are not looked at (a negative one makes the loss unbounded
        below).
    phi : φ by name.
    graph, graphs : (nodes,) the graph of each node, and the number of graphs, for reduction 'graph'.
    reduction : 'sum'; 'mean', divided by Σ w_e (0 when that is 0); 'none', the term of every edge; 'graph', the sum of
        each graph.

    Errors: shapes that differ, scores that are not real numbers, an unknown φ or reduction.

    >>> scores = torch.tensor([1.0, 0.0, 3.0], requires_grad=True)
    >>> loss = edge_loss(scores, torch.tensor([0, 0]), torch.tensor([1, 2]), phi="hinge")
    >>> loss.backward()
    >>> loss.item(), scores.grad.tolist()
    (3.0, [-1.0, 0.0, 1.0])

    Source: the family of AoS (12), (13), (23).
    """
    real_scores(scores)
    places(len(scores), winner=winner, loser=loser)
    tensors(weight=weight, margin=margin, graph=graph, optional=True)
    if winner.shape != loser.shape or winner.ndim != 1:
        raise UsageError(
            f"winner has shape {tuple(winner.shape)}, loser {tuple(loser.shape)}; both must be (edges,) of one length"
        )
    for name, column in (("weight", weight), ("margin", margin)):
        if column is not None and column.shape != winner.shape:
            raise UsageError(f"{name} has shape {tuple(column.shape)}, there are {len(winner):,} edges")
    term = edge_terms(scores, winner, loser, weight, phi, margin)
    if reduction == "graph":
        return per_graph(term, *_graph_of(scores, graph, graphs, winner))
    return _reduced(term, None if weight is None else weight.to(scores.dtype), reduction)


def edge_terms(
    scores: Tensor, winner: Tensor, loser: Tensor, weight: Tensor | None, phi: str, margin: Tensor | None
) -> Tensor:
    """Return the term of every edge; nothing is checked."""
    gap = scores.index_select(0, winner) - scores.index_select(0, loser)
    if margin is not None:
        gap = gap - margin.to(scores.dtype)
    term = on_tensors(pair_loss(phi))(gap)
    return term if weight is None else term * weight.to(scores.dtype)


def value_penalty(
    scores: Tensor,
    pull: Tensor,
    target: Tensor | None = None,
    *,
    penalty: str = "square",
    graph: Tensor | None = None,
    graphs: int | None = None,
    reduction: str = "sum",
) -> Tensor:
    """Return Σ_i ν_i r(α_i − t_i), the penalty on values of ICML (14) and the pointwise loss of AoS (28).

    Parameters
    ----------
    scores, pull, target : (nodes,) α, ν and t; without ``target`` t is 0.
    penalty : r, 'square' (t²) or 'cosh' (cosh t − 1).
    graph, graphs, reduction : as in ``edge_loss``; 'mean' divides by Σ ν_i.

    >>> value_penalty(torch.tensor([1.0, 3.0]), torch.tensor([0.5, 0.5]), torch.tensor([1.0, 1.0])).item()
    2.0
    """
    real_scores(scores)
    tensors(pull=pull)
    tensors(target=target, graph=graph, optional=True)
    for name, column in (("pull", pull), ("target", target)):
        if column is not None and column.shape != scores.shape:
            raise UsageError(f"{name} has shape {tuple(column.shape)}, scores {tuple(scores.shape)}")
    pull = pull.to(scores.dtype)
    away = scores if target is None else scores - target.to(scores.dtype)
    term = pull * on_tensors(numpy_penalty(penalty))(away)
    if reduction == "graph":
        return per_graph(term, *_graph_of(scores, graph, graphs))
    return _reduced(term, pull, reduction)


def per_graph(values: Tensor, graph: Tensor, graphs: int) -> Tensor:
    """Add values up by graph; shape (graphs,), 0 for a graph without any.

    On CUDA the order of additions, and so the last bits, may differ between runs unless
    ``torch.use_deterministic_algorithms(True)`` is set.

    >>> per_graph(torch.tensor([1.0, 2.0, 4.0]), torch.tensor([0, 0, 2]), 3).tolist()
    [3.0, 0.0, 4.0]
    """
    return torch.zeros(graphs, dtype=values.dtype, device=values.device).index_add(0, graph, values)


def spans(start: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
    """Return the entries of the chosen ragged lists and where each of them begins among these.

    >>> entries, begin = spans(torch.tensor([0, 2, 2, 5]), torch.tensor([2, 0]))
    >>> entries.tolist(), begin.tolist()
    ([2, 3, 4, 0, 1], [0, 3, 5])
    """
    size = start[chosen + 1] - start[chosen]
    begin = torch.cat((size.new_zeros(1), size.cumsum(0)))
    shift = torch.repeat_interleave(start[chosen] - begin[:-1], size)
    return torch.arange(len(shift), device=start.device) + shift, begin


def tensors(*, optional: bool = False, **given: Any) -> None:
    """Raise UsageError for what is no tensor; ``optional``: or None."""
    for name, column in given.items():
        if not isinstance(column, Tensor) and not (optional and column is None):
            raise UsageError(f"{name} must be a torch tensor, not {type(column).__name__}")


def places(nodes: int | None, **given: Any) -> None:
    """Raise UsageError unless these are tensors of integers, and on a processor none that is not in 0 … nodes − 1."""
    tensors(**given)
    for name, column in given.items():
        if column.is_floating_point() or column.is_complex() or column.dtype == torch.bool:
            raise UsageError(f"{name} must hold integers, not {str(column.dtype).removeprefix('torch.')}")
        if nodes is not None and column.device.type == "cpu" and column.numel():
            wrong = int(((column < 0) | (column >= nodes)).sum())
            if wrong:
                raise UsageError(f"{wrong:,} of {column.numel():,} places of {name} are not in 0…{nodes - 1}")


def real_scores(scores: Tensor, nodes: int | None = None, device: Any = None) -> None:
    """Raise UsageError unless the scores are a flat tensor of real numbers (of this many nodes, on this device)."""
    tensors(scores=scores)
    if scores.ndim != 1 or not scores.is_floating_point():
        raise UsageError(
            f"scores must be a flat tensor of real numbers, not {str(scores.dtype).removeprefix('torch.')} of shape "
            f"{tuple(scores.shape)}"
        )
    if nodes is not None and len(scores) != nodes:
        raise UsageError(f"there are {len(scores):,} scores for {nodes:,} nodes")
    if device is not None and scores.device != device:
        raise UsageError(f"the scores are on {scores.device}, the objective on {device}; move one with .to(…)")


def _graph_of(
    scores: Tensor, graph: Tensor | None, graphs: int | None, nodes: Tensor | None = None
) -> tuple[Tensor, int]:
    """Return the graph of each of these nodes (None: of all) and the number of graphs, once they are checked."""
    if graph is None or graphs is None:
        raise UsageError("reduction 'graph' needs graph, the graph of each node, and graphs, their number")
    places(graphs, graph=graph)
    if graph.shape != scores.shape:
        raise UsageError(f"graph has shape {tuple(graph.shape)}, scores {tuple(scores.shape)}")
    return graph if nodes is None else graph.index_select(0, nodes), graphs


def _reduced(term: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
    if reduction == "none":
        return term
    if reduction == "sum":
        return term.sum()
    if reduction != "mean":
        raise UsageError(f"unknown reduction {reduction!r}; allowed: {', '.join(REDUCTIONS)}")
    total = term.new_tensor(float(len(term))) if weight is None else weight.sum()
    return term.sum() / torch.where(total == 0, torch.ones_like(total), total)
