"""Two scorers f(x): a linear one, and one hidden layer of ReLU (RwA §8's H_lin and H_NN)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from concordant.errors import UsageError


class LinearScorer(nn.Module):  # type: ignore[misc]
    """f(x) = w·x, from w = 0; no intercept, which no difference of scores would see.

    >>> LinearScorer(3)(torch.ones(2, 3, dtype=torch.float64)).tolist()
    [0.0, 0.0]
    """

    def __init__(self, features: int, *, dtype: Any = torch.float64) -> None:
        super().__init__()
        if features < 1:
            raise UsageError(f"a scorer needs at least one feature, not {features}")
        self.weight = nn.Parameter(torch.zeros(features, dtype=dtype))

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores (rows,) of features (rows, features)."""
        return x @ self.weight


class ReluScorer(nn.Module):  # type: ignore[misc]
    """f(x) = Σ_j u_j (w_j·x + b_j)₊ with ``hidden`` units.

    It starts at random from ``seed`` alone (w_j of variance 2/features, u_j of variance 1/hidden), whatever the state
    of torch's own generator.

    >>> one, two = ReluScorer(3, 5, seed=1), ReluScorer(3, 5, seed=1)
    >>> x = torch.rand(4, 3, dtype=torch.float64)
    >>> bool((one(x) == two(x)).all()), one(x).shape
    (True, torch.Size([4]))
    """

    def __init__(self, features: int, hidden: int, *, seed: int = 0, dtype: Any = torch.float64) -> None:
        super().__init__()
        if features < 1 or hidden < 1:
            raise UsageError(f"a scorer needs at least one feature and one unit, not {features} and {hidden}")
        draw = torch.Generator().manual_seed(seed)

        def normal(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=draw, dtype=torch.float64).to(dtype)

        self.inner = nn.Parameter(normal(hidden, features) * (2.0 / features) ** 0.5)
        self.bias = nn.Parameter(torch.zeros(hidden, dtype=dtype))
        self.outer = nn.Parameter(normal(hidden) * hidden**-0.5)

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores (rows,) of features (rows, features)."""
        return torch.relu(x @ self.inner.T + self.bias) @ self.outer
