"""H_NN of ranking with abstention: a network whose norms are bounded by projection, and Φ of pairs on tensors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from concordant.abstention.points import ScorerClass, conjugate, phi_named
from concordant.errors import ConcordantError, UsageError
from concordant.losses.pair_losses import pair_loss
from concordant.preferences.status import Status
from concordant.torch.losses import on_tensors
from concordant.torch.scorers import ReluScorer


def pair_losses(margin: Tensor, *, phi: str, k: float = 1.0) -> Tensor:
    """Return Φ of margins h_higher − h_lower, in their shape and precision; differentiable.

    Errors: UsageError for an unknown φ or k ≤ 0.

    >>> pair_losses(torch.tensor([0.0, 2.0]), phi="hinge").tolist()
    [1.0, 0.0]
    """
    if phi_named(phi, k).name == "sigmoid":
        return 1.0 - torch.tanh(k * margin)
    return on_tensors(pair_loss(phi))(margin)


def project(rows: Tensor, radius: float, q: float) -> Tensor:
    """Return each row's nearest point in {‖w‖_q ≤ radius}, q = 1, 2 or ∞; ``abstention.linear.project`` on tensors.

    >>> project(torch.tensor([[3.0, 2.5], [0.25, 0.5]]), 1.0, 1).tolist()
    [[0.75, 0.25], [0.25, 0.5]]
    """
    if q == math.inf:
        return rows.clamp(-radius, radius)
    if q == 2:
        length = torch.linalg.vector_norm(rows, dim=-1, keepdim=True)
        return rows * torch.clamp(radius / length.clamp(min=1e-30), max=1.0)
    size = rows.abs()
    over = size.sort(dim=-1, descending=True).values.cumsum(-1) - radius
    place = torch.arange(1, rows.shape[-1] + 1, device=rows.device)
    cut = (over / place).amax(-1, keepdim=True).clamp(min=0)  # the cut is the largest of the means over the head
    return rows.sign() * (size - cut).clamp(min=0)


class BoundedReluScorer(ReluScorer):
    """h(x) = Σ_j u_j (w_j·x + b_j)₊, ‖u‖₁ ≤ Λ, ‖w_j‖_q ≤ W, |b_j| ≤ B, 1/p + 1/q = 1, p the ``norm`` of distances.

    ``project_`` brings the weights back within the bounds after a step, to the nearest point. Errors: UsageError for
    bounds, norm and sizes.

    Parameters
    ----------
    features, hidden : number of features and of units j.
    W, Lambda, B : the bounds W, Λ and B; each may be ∞.
    norm : p, which is 1, 2 or 'inf'.
    seed : weights start at random from it alone, within the bounds.
    dtype : of the weights.

    >>> scorer = BoundedReluScorer(3, 5, W=0.5, Lambda=2.0, B=0.25)
    >>> bool(scorer.outer.abs().sum() <= 2.0), bool(scorer.inner.abs().sum(1).max() <= 0.5 + 1e-12)
    (True, True)

    Source: RwA, section 2.1.
    """

    def __init__(
        self,
        features: int,
        hidden: int,
        *,
        W: float,
        Lambda: float,
        B: float,
        norm: float | str = "inf",
        seed: int = 0,
        dtype: Any = torch.float64,
    ) -> None:
        super().__init__(features, hidden, seed=seed, dtype=dtype)
        self.scorers = ScorerClass(W, Lambda, B)
        self.radii = (float(W), float(Lambda), float(B))
        _, self.q = conjugate(norm)
        self.project_()

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def project_(self) -> None:
        """Replace the weights by the nearest ones within the bounds."""
        W, most, B = self.radii
        if not math.isinf(W):
            self.inner.copy_(project(self.inner, W, self.q))
        if not math.isinf(most):
            self.outer.copy_(project(self.outer[None, :], most, 1)[0])
        self.bias.clamp_(-B, B)


@dataclass(frozen=True)
class BoundedFit:
    """How a network was trained; the network itself was changed in place."""

    status: str
    """"local minimum": residual ≤ tolerance (a stationary point; networks are not convex); else "stopped ..."."""
    steps: int
    value: float
    """Mean of Φ over all the pairs, at the end."""
    residual: float
    """Largest change of a weight by a projected gradient step of length 1, at the end."""
    values: tuple[float, ...]
    """Mean of Φ over the pairs of each epoch, as they were met."""


def fit_pairs(
    scorer: BoundedReluScorer,
    X: Any,
    higher: Any,
    lower: Any,
    *,
    phi: str,
    k: float = 1.0,
    weight: Any = None,
    epochs: int = 100,
    batch: int | None = None,
    rate: float = 0.01,
    tolerance: float = 1e-6,
    seed: int = 0,
) -> BoundedFit:
    """Minimise the weighted mean of Φ(h(x_higher) − h(x_lower)) over pairs, weights projected after every step of Adam.

    The step falls as a half cosine. The weights that end an epoch of the lowest loss are kept.

    Parameters
    ----------
    scorer : the network, changed in place.
    X : (items, features).
    higher, lower : (pairs,) places of items, the far pairs that the learner does not decline.
    phi, k : Φ, 'hinge', 'exponential' or 'sigmoid', and the steepness of the sigmoid.
    weight : (pairs,); None, 1.
    epochs, batch, seed : passes over the pairs; pairs at a time (None, all); their order is drawn from ``seed``.
    rate : step of Adam at the start; at the end it is 0.
    tolerance : largest residual of a local minimum.

    Errors: UsageError for shapes and options, ConcordantError when the loss stops being finite.

    >>> scorer = BoundedReluScorer(1, 4, W=1.0, Lambda=1.0, B=1.0)
    >>> found = fit_pairs(scorer, [[0.0], [1.0]], [1], [0], phi="hinge", epochs=200, rate=0.05)
    >>> round(found.value, 3)  # W = Λ = 1 and distance 1: the scores lie at most 1 apart
    0.0
    """
    if epochs < 1 or rate <= 0 or (batch is not None and batch < 1):
        raise UsageError(f"epochs and batch must be at least 1 and rate positive, not {epochs}, {batch}, {rate:g}")
    data = _Pairs(scorer, X, higher, lower, weight, phi, k)
    adam = torch.optim.Adam(scorer.parameters(), lr=rate)
    draw = torch.Generator().manual_seed(seed)
    number = len(data.higher)
    size = number if batch is None else min(batch, number)
    steps = epochs * -(-number // size)
    course = torch.optim.lr_scheduler.CosineAnnealingLR(adam, steps)
    values: list[float] = []
    best, kept = data.value(), data.weights()
    for _ in range(epochs):
        parts = [None] if size == number else torch.randperm(number, generator=draw).split(size)
        total = torch.zeros((), dtype=data.x.dtype, device=data.x.device)
        for part in parts:
            adam.zero_grad()
            value = data.loss(None if part is None else part.to(data.x.device))
            value.backward()
            adam.step()
            scorer.project_()
            course.step()
            total += value.detach() / len(parts)
        values.append(float(total))
        if not math.isfinite(values[-1]):
            raise ConcordantError(f"the loss became {values[-1]} in epoch {len(values)}; take a lower rate or bounds")
        now = data.value()
        if now <= best:
            best, kept = now, data.weights()
    data.restore(kept)
    residual = data.residual()
    data.restore(kept)
    return BoundedFit(
        (Status.LOCAL if residual <= tolerance else Status.STOPPED).word, steps, best, residual, tuple(values)
    )


class _Pairs:
    """The loss of a scorer on a list of pairs."""

    def __init__(
        self, scorer: BoundedReluScorer, X: Any, higher: Any, lower: Any, weight: Any, phi: str, k: float
    ) -> None:
        like = scorer.inner
        self.scorer, self.phi, self.k = scorer, phi_named(phi, k).name, k
        self.x = torch.as_tensor(np.array(X) if not isinstance(X, Tensor) else X).to(like)
        self.higher, self.lower = (_places(column, like.device) for column in (higher, lower))
        number = len(self.higher)
        self.weight = torch.ones(number).to(like) if weight is None else torch.as_tensor(np.array(weight)).to(like)
        if self.x.ndim != 2 or self.x.shape[1] != like.shape[1]:
            raise UsageError(f"X must be (items, {like.shape[1]}), not {tuple(self.x.shape)}")
        if self.lower.shape != (number,) or self.weight.shape != (number,) or not number:
            raise UsageError("higher, lower and weight must be columns of one length, at least 1")
        low, high = (int(end) for end in torch.cat((self.higher, self.lower)).aminmax())
        if low < 0 or high >= len(self.x):
            raise UsageError(f"places must lie in 0…{len(self.x) - 1}; found {low}…{high}")
        if not bool((self.weight >= 0).all()) or not float(self.weight.sum()) > 0:
            raise UsageError("weights must not be negative, and one of them positive")

    def loss(self, part: Tensor | None) -> Tensor:
        """Weighted mean over some pairs (None: all), the weights relative to their mean over all pairs."""
        up, down, weight = self.higher, self.lower, self.weight
        if part is not None:
            up, down, weight = up[part], down[part], weight[part]
        items, place = torch.unique(torch.cat((up, down)), return_inverse=True)
        scores = self.scorer(self.x[items])
        margin = scores[place[: len(up)]] - scores[place[len(up) :]]
        return (weight * pair_losses(margin, phi=self.phi, k=self.k)).mean() / self.weight.mean()

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def value(self) -> float:
        return float(self.loss(None))

    def weights(self) -> list[Tensor]:
        return [p.detach().clone() for p in self.scorer.parameters()]

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def restore(self, kept: list[Tensor]) -> None:
        for p, old in zip(self.scorer.parameters(), kept, strict=True):
            p.copy_(old)

    def residual(self) -> float:
        """Largest change of a weight by a projected step of length 1; moves the weights."""
        self.scorer.zero_grad()
        self.loss(None).backward()
        before = self.weights()
        with torch.no_grad():
            for p in self.scorer.parameters():
                p -= p.grad
        self.scorer.project_()
        self.scorer.zero_grad()
        changes = zip(self.scorer.parameters(), before, strict=True)
        return max(float((p.detach() - old).abs().max()) for p, old in changes)


def _places(column: Any, device: Any) -> Tensor:
    places = torch.as_tensor(np.array(column) if not isinstance(column, Tensor) else column)
    if places.ndim != 1 or places.is_floating_point():
        raise UsageError("higher and lower must be columns of places: integers")
    return places.to(device).long()
