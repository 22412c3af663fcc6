"""The margin functions φ and value penalties r of ``surrogates/margins.py`` on tensors; derivatives are autograd's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from concordant.errors import UsageError
from concordant.losses.margins import margin_function
from concordant.losses.margins import value_penalty as numpy_penalty

__all__ = ["MARGINS", "PENALTIES", "margin_named", "penalty_named"]


Function = Callable[[Tensor], Tensor]

MARGINS: Mapping[str, Function] = MappingProxyType(
    {
        "hinge": lambda t: torch.relu(1.0 - t),
        "squared-hinge": lambda t: torch.relu(1.0 - t).square(),
        "logistic": lambda t: -logsigmoid(t),  # softplus(−t) without its cut at 20
        "exponential": lambda t: torch.exp(-t),
        "linear": lambda t: -t,
    }
)
"""φ by name; the derivative of the hinge at its kink is 0, as in ``surrogates.margins``."""

PENALTIES: Mapping[str, Function] = MappingProxyType(
    {
        "square": torch.square,
        "cosh": lambda t: 2.0 * torch.sinh(0.5 * t).square(),  # cosh t − 1 without cancellation
    }
)
"""r by name."""


def margin_named(name: str) -> Function:
    """Return φ on tensors; the error for an unknown name suggests the closest.

    >>> margin_named("logistic")(torch.tensor([0.0, -800.0], dtype=torch.float64)).tolist()
    [0.6931471805599453, 800.0]
    """
    return _known(MARGINS, margin_function(name).name)


def penalty_named(name: str) -> Function:
    """Return r on tensors; the error for an unknown name suggests the closest."""
    return _known(PENALTIES, numpy_penalty(name).name)


def _known(functions: Mapping[str, Function], name: str) -> Function:
    if name not in functions:
        raise UsageError(f"{name!r} is not written for torch yet; it has {', '.join(functions)}")
    return functions[name]
