"""Training of any scorer on any objective, by whole batches or by some queries at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from concordant.errors import ConcordantError, UsageError
from concordant.preferences.status import Status
from concordant.torch.losses import spans

METHODS = ("lbfgs", "adam")
IDLE = 10
"""Steps of L-BFGS without a lower value or a smaller derivative, after which rounding has the last word."""


@dataclass(frozen=True)
class Fit:
    """How a scorer was trained; the scorer itself was changed in place.

    >>> Fit(status="converged", steps=3, value=0.5, gradient=1e-9, values=(0.7, 0.5, 0.5)).status
    'converged'
    """

    status: str
    """"converged" when gradient ≤ tolerance · max(1, |value|); else "stopped before convergence"."""
    steps: int
    """Passes over the data: iterations of L-BFGS, epochs of Adam."""
    value: float
    """Objective with the ridge at the end, over all queries."""
    gradient: float
    """Largest absolute derivative in a parameter, there."""
    values: tuple[float, ...]
    """The objective after each pass (the mean of its mini-batches for Adam)."""


def fit(
    scorer: nn.Module,
    X: Any,
    objective: Any,
    *,
    rows: Any = None,
    weight: Any = None,
    ridge: float = 0.0,
    method: str = "lbfgs",
    steps: int = 200,
    batch: int | None = None,
    rate: float = 0.01,
    tolerance: float = 1e-8,
    seed: int = 0,
) -> Fit:
    """Minimise Σ_g weight_g · objective_g(scorer(X[rows])) + (ridge/2)‖θ‖² over the parameters θ of the scorer.

    Parameters
    ----------
    scorer : the module, changed in place. Its parameters named "bias" are not penalised.
    X : (items, features).
    objective : a ``TorchObjective``, a ``GradedObjective`` or a module like them.
    rows : (nodes,) the row of X of each node of the objective; None, in order.
    weight : (graphs,); None, 1.
    ridge : weight of the penalty.
    method : 'lbfgs' uses all queries in each step, with a line search; 'adam' takes ``batch`` queries at a time.
    steps : passes at most.
    batch, rate, seed : of Adam: queries at a time (None, all), in an order drawn from ``seed``, and the step.
    tolerance : training ends when every derivative is ≤ ``tolerance`` · max(1, |value|) (Adam looks before every tenth
        pass).

    Errors: UsageError for shapes and options, ConcordantError when the objective stops being finite.

    >>> from concordant.preferences.graphs import Batch
    >>> from concordant.preferences.preferences import Preferences
    >>> from concordant.torch.objective import surrogate
    >>> from concordant.torch.scorers import LinearScorer
    >>> votes = Preferences.from_comparisons(["x", "x", "x", "y"], ["y", "y", "y", "x"])
    >>> scorer = LinearScorer(1)
    >>> found = fit(scorer, [[1.0], [0.0]], surrogate("ranknet", Batch.whole(votes)))
    >>> found.status, round(scorer.weight.item(), 4)  # log 3
    ('converged', 1.0986)
    """
    if method not in METHODS:
        raise UsageError(f"unknown method {method!r}; allowed: {', '.join(METHODS)}")
    if method == "lbfgs" and batch is not None:
        raise UsageError("lbfgs takes all queries in every step; mini-batches need method='adam'")
    if steps < 0 or ridge < 0 or (batch is not None and batch < 1):
        raise UsageError(f"steps and ridge must be at least 0 and batch at least 1, not {steps}, {ridge:g}, {batch}")
    training = _Training(scorer, X, objective, rows, weight, ridge)
    if not training.parameters:
        raise UsageError("the scorer has no parameters to train")
    if method == "lbfgs":
        taken, values = _lbfgs(training, steps, tolerance)
    else:
        taken, values = _adam(training, steps, batch or len(objective), rate, tolerance, seed)
    value = training.backward(None)
    slope = training.slope()
    training.clear()
    ended = Status.CONVERGED if slope <= tolerance * max(1.0, abs(value)) else Status.STOPPED
    return Fit(ended.word, taken, value, slope, tuple(values))


class _Training:
    """The objective as a function of the parameters."""

    def __init__(self, scorer: nn.Module, X: Any, objective: Any, rows: Any, weight: Any, ridge: float) -> None:
        named = [(name, p) for name, p in scorer.named_parameters() if p.requires_grad]
        self.parameters = [p for _, p in named]
        self.penalised = [p for name, p in named if name.rsplit(".", 1)[-1] != "bias"]
        self.scorer, self.objective, self.ridge = scorer, objective, ridge
        like = self.parameters[0] if named else torch.zeros(0)
        start = objective.node_start
        if start.device != like.device:
            raise UsageError(f"the objective is on {start.device}, the scorer on {like.device}; move one with .to(…)")
        self.x = _tensor(X, like.device).to(like.dtype)
        if self.x.ndim != 2:
            raise UsageError(f"X must be (items, features), not {tuple(self.x.shape)}")
        if rows is not None:
            self.x = self.x[_tensor(rows, like.device).long()]
        if len(self.x) != objective.nodes:
            raise UsageError(f"there are {len(self.x):,} rows of features for {objective.nodes:,} nodes")
        graphs = len(objective)
        self.weight = torch.ones(graphs, dtype=like.dtype, device=like.device)
        if weight is not None:
            self.weight = _tensor(weight, like.device).to(like.dtype)
            if self.weight.shape != (graphs,):
                raise UsageError(f"weight has shape {tuple(self.weight.shape)}, there are {graphs:,} graphs")

    def value(self, graphs: Tensor | None) -> Tensor:
        """Objective of all graphs, or of some of them times the inverse of their share."""
        if graphs is None:
            value = (self.weight * self.objective(self.scorer(self.x))).sum()
        else:
            node, _ = spans(self.objective.node_start, graphs)
            part = self.objective.take(graphs)
            value = (self.weight[graphs] * part(self.scorer(self.x[node]))).sum() * (len(self.objective) / len(graphs))
        if self.ridge:
            value = value + 0.5 * self.ridge * sum(p.square().sum() for p in self.penalised)
        return value

    def backward(self, graphs: Tensor | None) -> float:
        """Leave the derivative in the parameters and return the value."""
        self.clear()
        value = self.value(graphs)
        value.backward()
        return float(value.detach())

    def slope(self) -> float:
        """Largest absolute derivative."""
        return max(
            (float(p.grad.abs().max()) for p in self.parameters if p.grad is not None and p.numel()), default=0.0
        )

    def clear(self) -> None:
        for p in self.parameters:
            p.grad = None


def _lbfgs(training: _Training, steps: int, tolerance: float) -> tuple[int, list[float]]:
    search = torch.optim.LBFGS(
        training.parameters,
        max_iter=1,
        max_eval=50,
        tolerance_grad=0.0,
        tolerance_change=0.0,
        history_size=20,
        line_search_fn="strong_wolfe",
    )

    slopes: list[float] = []

    def closure() -> float:
        value = training.backward(None)
        slopes.append(training.slope())
        return value

    values: list[float] = []
    lowest, flattest, idle = np.inf, np.inf, 0
    for taken in range(steps):
        slopes.clear()
        before = float(search.step(closure))  # value and, in slopes[0], derivative where the step began
        _finite(before, taken)
        idle = 0 if before < lowest or slopes[0] < flattest else idle + 1
        lowest, flattest = min(lowest, before), min(flattest, slopes[0])
        if slopes[0] <= tolerance * max(1.0, abs(before)) or idle == IDLE:
            return taken, values
        values.append(before)
    return steps, values


def _adam(
    training: _Training, steps: int, batch: int, rate: float, tolerance: float, seed: int
) -> tuple[int, list[float]]:
    draw = torch.Generator().manual_seed(seed)
    adam = torch.optim.Adam(training.parameters, lr=rate)
    graphs = len(training.objective)
    device = training.weight.device
    whole = batch >= graphs
    values: list[float] = []
    for taken in range(steps):
        if taken % 10 == 0:
            value = training.backward(None)
            _finite(value, taken)
            if training.slope() <= tolerance * max(1.0, abs(value)):
                return taken, values
        parts = [None] if whole else torch.randperm(graphs, generator=draw).to(device).split(batch)
        total = 0.0
        for part in parts:
            total += training.backward(part) * (1.0 if part is None else len(part) / graphs)
            adam.step()
        _finite(total, taken)
        values.append(total)
    return steps, values


def _finite(value: float, step: int) -> None:
    if not np.isfinite(value):
        raise ConcordantError(
            f"the objective became {value} in pass {step + 1}; take a lower rate, or scale the features"
        )


def _tensor(column: Any, device: Any) -> Tensor:
    if isinstance(column, torch.Tensor):
        return column.to(device)
    return torch.as_tensor(np.require(column, requirements="W"), device=device)  # a copy only if it is read-only
