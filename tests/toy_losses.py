"""Margin functions as somebody else would write them, one of each kind that the registry has none of."""

from contextlib import contextmanager

import numpy as np

from concordant.losses import pair_losses
from concordant.losses.pair_losses import PairLoss, register

ROUNDED = PairLoss(
    "rounded-hinge",
    "¾ − t to ½, (1 − t)² to 1, then 0",
    lambda t: np.where(t < 0.5, 0.75 - t, np.maximum(1.0 - t, 0.0) ** 2),
    lambda t: -np.clip(2.0 * (1.0 - t), 0.0, 1.0),
    lambda t: np.where((t > 0.5) & (t < 1.0), 2.0, 0.0),
    torch=lambda torch, t: torch.where(t < 0.5, 0.75 - t, torch.relu(1.0 - t).square()),
    curvature_bound=2.0,
    zero_from=1.0,
    linear_to=0.5,
)
"""Differentiable, linear, then curved, then 0: opposite edges of one weight leave α_i − α_j anywhere within ±½."""
TAILED = PairLoss(
    "linear-exponential",
    "1 − t to 0, then e^(−t)",
    lambda t: np.where(t < 0.0, 1.0 - t, np.exp(-np.maximum(t, 0.0))),
    lambda t: -np.exp(-np.maximum(t, 0.0)),
    lambda t: np.where(t > 0.0, np.exp(-np.maximum(t, 0.0)), 0.0),
    torch=lambda torch, t: torch.where(t < 0.0, 1.0 - t, torch.exp(-torch.relu(t))),
    curvature_bound=1.0,
    linear_to=0.0,
)
"""Linear, then a tail that never ends."""
CUBED = PairLoss(
    "cubed-hinge",
    "max(0, 1 − t)³",
    lambda t: np.maximum(1.0 - t, 0.0) ** 3,
    lambda t: -3.0 * np.maximum(1.0 - t, 0.0) ** 2,
    lambda t: 6.0 * np.maximum(1.0 - t, 0.0),
    torch=lambda torch, t: torch.relu(1.0 - t) ** 3,
    zero_from=1.0,
)
"""Its curvature fades out where it ends."""
CORNERED = PairLoss(
    "three-corners",
    "½ max(0, 1 − t) + max(0, ¼ − t) + 1½ max(0, −2 − t)",
    lambda t: 0.5 * np.maximum(1 - t, 0) + np.maximum(0.25 - t, 0) + 1.5 * np.maximum(-2 - t, 0),
    lambda t: -0.5 * (t < 1) - 1.0 * (t < 0.25) - 1.5 * (t < -2),
    lambda t: np.zeros_like(t),
    torch=lambda torch, t: 0.5 * torch.relu(1 - t) + torch.relu(0.25 - t) + 1.5 * torch.relu(-2 - t),
    zero_from=1.0,
    linear_to=-2.0,
    kinks=((1.0, 0.5), (0.25, 1.0), (-2.0, 1.5)),
)
"""Piecewise linear."""
TOYS = {phi.name: phi for phi in (ROUNDED, TAILED, CUBED, CORNERED)}


@contextmanager
def registered():
    """The toys beside the margin functions of the house, as long as this is open."""
    try:
        for phi in TOYS.values():
            register(phi)
        yield
    finally:
        for name in TOYS:
            pair_losses._REGISTERED.pop(name, None)
