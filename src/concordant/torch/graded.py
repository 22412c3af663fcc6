"""Gains against every other item of a query, Σ_j g_j Σ_l φ(α_j − α_l), without keeping the m² edges.

The exponential factorises, the hinges need one sort (m log m); other φ go through the pairs some at a time, and the
pairs are made again for the derivative, so memory stays linear in the number of items.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from concordant.errors import UsageError
from concordant.losses.pair_losses import pair_loss
from concordant.torch.losses import on_tensors, per_graph, places, real_scores, spans, tensors

BLOCK = 1 << 22
"""Pairs that are held at once."""


def against_all(scores: Tensor, gains: Tensor, start: Tensor, *, phi: str = "logistic", block: int = BLOCK) -> Tensor:
    """Return Σ_j g_j Σ_{l≠j} φ(α_j − α_l) of each query, differentiable in the scores.

    Shapes: ``scores`` α and ``gains`` g ≥ 0 (nodes,), ``start`` (queries + 1,) int64, the nodes of query q being
    start[q]:start[q + 1]; the result (queries,). Work is m log m a query for "hinge" and "squared-hinge", m for
    "exponential" and "linear", m² for the rest ("logistic"), ``block`` pairs at once. What is added up over a sort is
    added in float64. Errors: shapes that differ.

    >>> start = torch.tensor([0, 2, 2, 5])
    >>> against_all(torch.tensor([0.0, 1.0, 0.0, 0.0, 2.0]), torch.ones(5), start, phi="hinge").tolist()
    [2.0, 0.0, 8.0]

    Source: AoS §3.3 (whose argument is printed the wrong way round); Buffoni et al. 2011.
    """
    real_scores(scores)
    tensors(gains=gains)
    places(None, start=start)
    near = start.device.type == "cpu"  # elsewhere a look at it is waited for
    if start.ndim != 1 or not len(start) or (near and (int(start[0]) != 0 or bool((start.diff() < 0).any()))):
        raise UsageError("start must rise from 0: the places where each query begins, and the number of nodes")
    if gains.shape != scores.shape:
        raise UsageError(f"gains have shape {tuple(gains.shape)}, scores {tuple(scores.shape)}")
    loss = pair_loss(phi)
    on_tensors(loss)  # there has to be such a form
    size = start.diff()
    owner = torch.repeat_interleave(torch.arange(len(size), device=start.device), size)
    if len(owner) != len(scores):
        raise UsageError(f"start ends at {len(owner):,} but there are {len(scores):,} scores")
    gains = gains.to(scores.dtype)
    if not len(scores):
        return per_graph(scores, owner, len(size))
    if loss.kernel == "exponential":
        return per_graph(gains * _exponentials(scores, gains, owner, len(size)), owner, len(size))
    if loss.kernel == "linear":
        total = per_graph(scores, owner, len(size))
        return per_graph(gains * (total[owner] - size[owner] * scores), owner, len(size))
    if loss.kernel in ("hinge", "squared-hinge"):
        wide = _hinges(scores.double(), owner, start, loss.kernel == "squared-hinge")
        return per_graph(gains * wide.to(scores.dtype), owner, len(size))
    return _in_blocks(scores, gains, start, phi, block)


def _exponentials(scores: Tensor, gains: Tensor, owner: Tensor, graphs: int) -> Tensor:
    """Σ_{l≠j} e^(α_l − α_j) for every j; anything finite where the gain is 0."""
    top = torch.full((graphs,), -torch.inf, dtype=scores.dtype, device=scores.device)
    top = top.scatter_reduce(0, owner, scores.detach(), "amax")[owner]
    mass = per_graph(torch.exp(scores - top), owner, graphs)[owner]
    return torch.exp(top - torch.where(gains == 0, top, scores)) * mass - 1.0


def _hinges(scores: Tensor, owner: Tensor, start: Tensor, squared: bool) -> Tensor:
    """Σ_{l≠j} max(0, 1 − α_j + α_l)^p for every j: the l with α_l > α_j − 1 are the end of the sorted query."""
    size = start.diff()
    mean = per_graph(scores.detach(), owner, len(size)) / size.clamp(min=1)
    x = scores - mean[owner]  # differences stay, sums over many queries stay small
    order = _by_query(x.detach(), owner)
    ordered = x[order]
    nodes = len(x)
    both = torch.cat((x.detach(), x.detach() - 1.0))  # equal to the threshold: the score first, its term is 0
    rank = _by_query(both, torch.cat((owner, owner)))
    is_score = rank < nodes
    before = is_score.cumsum(0)[~is_score]  # scores of earlier queries, and of this one up to the threshold
    cut = torch.empty_like(before)
    cut[rank[~is_score] - nodes] = before
    end = start[1:][owner]
    number = (end - cut).to(x.dtype)
    above = _tails(ordered, cut, end)
    room = 1.0 - x
    if not squared:
        return room * number + above - 1.0
    return room.square() * number + 2.0 * room * above + _tails(ordered.square(), cut, end) - 1.0


def _by_query(values: Tensor, owner: Tensor) -> Tensor:
    """The stable order by query, then by value."""
    by_value = torch.argsort(values, stable=True)
    return by_value[torch.argsort(owner[by_value], stable=True)]


def _tails(ordered: Tensor, cut: Tensor, end: Tensor) -> Tensor:
    total = torch.cat((ordered.new_zeros(1), ordered.cumsum(0)))
    return total[end] - total[cut]


def _in_blocks(scores: Tensor, gains: Tensor, start: Tensor, phi: str, block: int) -> Tensor:
    """All ordered pairs, ``block`` at once or one item against its query; derivatives make the pairs of a block again.

    Queries of like size stand together as rows of one matrix, filled up at the end.
    """
    size, order = start.diff().sort(descending=True, stable=True)
    widths = size.cpu()
    value = torch.zeros(len(size), dtype=scores.dtype, device=scores.device)
    value = value + scores[:0].sum()  # differentiable also where no query has two items
    first = 0
    while first < len(order) and widths[first] > 1:
        width = int(widths[first])
        rows = order[first : first + max(1, block // width**2)]
        first += len(rows)
        column = torch.arange(width, device=scores.device)
        there = column < start.diff()[rows, None]
        place = torch.where(there, start[rows, None] + column, start[rows, None])
        alpha = scores.index_select(0, place.ravel()).reshape(place.shape)
        gain = torch.where(there, gains[place], torch.zeros_like(alpha))
        items = max(1, min(width, block // width))
        for begin in range(0, width, items):
            part = checkpoint(
                _block, alpha, gain, there, phi, begin, begin + items, use_reentrant=False, preserve_rng_state=False
            )
            value = value.index_add(0, rows, part)
    return value


def _block(alpha: Tensor, gain: Tensor, there: Tensor, phi: str, begin: int, end: int) -> Tensor:
    """Σ_j g_j Σ_l φ(α_j − α_l) of each row, j from begin to end, without the pair of j with itself."""
    term = on_tensors(pair_loss(phi))(alpha[:, begin:end, None] - alpha[:, None, :])
    column = torch.arange(alpha.shape[1], device=alpha.device)
    pair = there[:, None, :] & (column[begin:end, None] != column)
    return (gain[:, begin:end] * torch.where(pair, term, torch.zeros_like(term)).sum(2)).sum(1)


class GradedObjective(nn.Module):  # type: ignore[misc]
    """``against_all`` as a module: gains and queries are buffers, scores (nodes,) go in, values (graphs,) come out.

    >>> risk = GradedObjective(torch.tensor([0, 2]), torch.tensor([1.0, 0.0]), phi="logistic")
    >>> len(risk), risk.nodes, round(risk(torch.zeros(2)).item(), 4)
    (1, 2, 0.6931)
    """

    def __init__(self, node_start: Tensor, gains: Tensor, *, phi: str = "logistic") -> None:
        super().__init__()
        on_tensors(pair_loss(phi))  # it has to be known
        self.phi = phi
        self.register_buffer("node_start", node_start)
        self.register_buffer("gains", gains)

    @property
    def nodes(self) -> int:
        """Number of scores it takes."""
        return len(self.gains)

    def __len__(self) -> int:
        return len(self.node_start) - 1

    def forward(self, scores: Tensor) -> Tensor:
        """Return the value of each graph at scores (nodes,); shape (graphs,)."""
        real_scores(scores, self.nodes, self.node_start.device)
        return against_all(scores, self.gains, self.node_start, phi=self.phi)

    def take(self, graphs: Tensor) -> GradedObjective:
        """Return the objective of these graphs alone (int64 places, in the order given)."""
        node, node_start = spans(self.node_start, graphs)
        return GradedObjective(node_start, self.gains[node], phi=self.phi)
