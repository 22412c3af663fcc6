"""Surrogates as differentiable functions on torch tensors, scorers to train with them, a loss for reward models.

``pip install "concordant[torch]"``; then ``from concordant import torch as ct``. Everything works on ragged batches, on
any device, in float32 and float64, without a Python loop over queries.

=====================================  ==============================================================================
``edge_loss``, ``value_penalty``       the two sums that every surrogate is made of, on tensors
``against_all``                        gains against every other item (NDCG, ERR), without the m² edges
``net_preferences``                    raw votes → the edges of the difference graph
``TorchObjective``, ``surrogate``      any member of the registry as a module: scores → value of each graph
``PreferenceLoss``                     in place of ``-logsigmoid(chosen - rejected).mean()`` with several annotators
``PromptBatches``                      batches that keep the votes on a prompt together
``vote_metrics``                       how far rewards agree with votes, beside the best that any scorer can do
``trl``                                collator and trainer for TRL (extra ``[trl]``; import it by its name)
``LinearScorer``, ``ReluScorer``       two scorers; ``fit`` trains them or any other module
``fit_informed``, ``informed_targets``  votes aggregated by prompt with the scorer as prior, and fitted, in turn
``TorchRegressor``                     the same as a scikit-learn regressor
``BoundedReluScorer``, ``fit_pairs``   a small network within its norm bounds, trained on pairs that may be declined
=====================================  ==============================================================================
"""

from __future__ import annotations

try:
    import torch as _torch  # noqa: F401, I001  (absolute: the library, not this package; first: others look for it)
    import sklearn as _sklearn  # noqa: F401
except ModuleNotFoundError as missing:
    packages = {"sklearn": "scikit-learn", "torch": "PyTorch"}
    if missing.name not in packages:
        raise
    raise ModuleNotFoundError(
        f'concordant.torch needs {packages[missing.name]}, which is not installed: pip install "concordant[torch]"',
        name=missing.name,
    ) from None

from concordant.torch.abstention import BoundedReluScorer, fit_pairs
from concordant.torch.agreement import vote_metrics
from concordant.torch.batches import PromptBatches
from concordant.torch.fitting import Fit, fit
from concordant.torch.graded import GradedObjective, against_all
from concordant.torch.informed import InformedFit, fit_informed, informed_targets
from concordant.torch.losses import MARGINS, PENALTIES, edge_loss, per_graph, value_penalty
from concordant.torch.objective import TorchObjective, surrogate
from concordant.torch.regressor import TorchRegressor
from concordant.torch.scorers import LinearScorer, ReluScorer
from concordant.torch.votes import PreferenceLoss, net_preferences

__all__ = [
    "MARGINS",
    "PENALTIES",
    "BoundedReluScorer",
    "Fit",
    "GradedObjective",
    "InformedFit",
    "LinearScorer",
    "PreferenceLoss",
    "PromptBatches",
    "ReluScorer",
    "TorchObjective",
    "TorchRegressor",
    "against_all",
    "edge_loss",
    "fit",
    "fit_informed",
    "fit_pairs",
    "informed_targets",
    "net_preferences",
    "per_graph",
    "surrogate",
    "value_penalty",
    "vote_metrics",
]
