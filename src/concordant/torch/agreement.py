"""How far rewards agree with the votes of annotators, beside the best that any scorer can do."""

from __future__ import annotations

import torch
from torch import Tensor

from concordant.errors import UsageError
from concordant.torch.losses import real_scores, tensors

BINS = 10
"""Classes of the confidence of a prediction, from a half to 1."""


def vote_metrics(chosen: Tensor, rejected: Tensor, weight: Tensor, votes: Tensor) -> dict[str, float]:
    """Return how the rewards of pairs (as ``pairs`` writes them) agree with the votes on them.

    With d = r_chosen − r_rejected, and of a pair's n votes the share s = (1 + weight/n)/2 for ``chosen`` (ties are half
    a vote each way), summed over the pairs by n:

    - ``vote_accuracy``: the share of votes for the side with the higher reward (equal ones: half);
    - ``vote_ceiling``: Σ n max(s, 1 − s) / Σ n, which no scorer exceeds: annotators do not agree with each other;
    - ``of_ceiling``: the one by the other;
    - ``calibration_error``: how far the probability σ(|d|) that the reward states lies from the share of votes for that
      side, |mean stated − mean share| over ten classes of equal width (the expected calibration error);
    - ``vote_log_loss``: mean of −s log σ(d) − (1 − s) log σ(−d).

    Shapes: all (pairs,). Pairs without votes do not count; without any vote all are NaN, and with a reward
    that is NaN all but the ceiling. Level pairs (weight 0) belong
    to the evaluation: without them accuracy and ceiling are those of the other pairs. Errors: UsageError for shapes
    that differ, and weights beyond the votes.

    >>> r = torch.tensor([2.0, 0.0, 1.0])
    >>> found = vote_metrics(r, torch.zeros(3), torch.tensor([3, 1, 0]), torch.tensor([5, 3, 2]))
    >>> {name: round(value, 3) for name, value in found.items()}["vote_accuracy"]
    0.65
    """
    real_scores(chosen)
    real_scores(rejected, len(chosen))
    tensors(weight=weight, votes=votes)
    for name, column in (("weight", weight), ("votes", votes)):
        if column.shape != chosen.shape:
            raise UsageError(f"{name} has shape {tuple(column.shape)}, there are {len(chosen):,} pairs")
    judged = votes > 0
    kind = torch.float32 if chosen.device.type == "mps" else torch.float64
    gap, net, n = ((column[judged]).to(kind) for column in (chosen - rejected, weight, votes))
    if bool((net.abs() > n * (1 + 1e-6)).any()):
        raise UsageError("a pair has more weight than votes: weight is the votes for one side less those for the other")
    share, total = 0.5 * (1 + net / n), n.sum()
    ahead = torch.where(gap >= 0, share, 1 - share)  # of the side that the reward prefers
    agreed = torch.where(gap == 0, torch.full_like(share, 0.5), ahead)
    agreed = torch.where(gap.isnan(), torch.full_like(share, torch.nan), agreed)
    stated = torch.sigmoid(gap.abs())
    place = ((2 * stated - 1) * BINS).nan_to_num(0).long().clamp(max=BINS - 1)
    off = (
        torch.zeros(BINS, dtype=kind, device=gap.device).index_add(0, place, n * (agreed - stated)).abs().sum() / total
    )
    soft = torch.nn.functional.softplus
    accuracy, ceiling = ((n * one).sum() / total for one in (agreed, torch.maximum(share, 1 - share)))
    return {
        "vote_accuracy": accuracy.item(),
        "vote_ceiling": ceiling.item(),
        "of_ceiling": (accuracy / ceiling).item(),
        "calibration_error": off.item(),
        "vote_log_loss": ((n * (share * soft(-gap) + (1 - share) * soft(gap))).sum() / total).item(),
    }
