"""AoS Figure 3 as the paper made it: both methods by the stochastic gradients (25), their steps untuned."""

from __future__ import annotations

from collections.abc import Sequence

from concordant.apps.reproduction.data import GradedLists
from concordant.apps.reproduction.fitting import GAIN
from concordant.learning.solvers.sampled import Regression
from concordant.learning.solvers.sampled_edges import EdgeSamples
from concordant.learning.solvers.stochastic import stochastic_fit
from concordant.losses.surrogates import surrogate
from concordant.preferences.preferences import Comparisons

STEPS = 20_000
RIDGE = 1e-3
RULE, AVERAGE = "1/sqrt(t)", "plain"
"""η_t = 1/(L√t), L the largest curvature of a sample; f̄ = (1/T) Σ f^t from θ = 0."""


def stochastic_risks(
    lists: GradedLists, prefs: Comparisons, orders: Sequence[int | str], steps: int, seed: int
) -> dict[str, float]:
    """NDCG risk of pairwise logistic, a comparison a step, and of gain regression, k comparisons of a query a step."""
    share = prefs.judgments / len(prefs)
    sources: dict[str, EdgeSamples | Regression] = {
        "logistic": EdgeSamples.of_judgments(lists.X, prefs, surrogate("ranknet").objective, share)
    }
    for k in orders:
        sources[str(k)] = Regression.of(lists.X, lists.alignment, prefs, order=k, gain=GAIN)
    found = {}
    for name, source in sources.items():
        fit = stochastic_fit(source, ridge=RIDGE, steps=steps, step_size=RULE, average=AVERAGE, seed=seed)
        found[name] = lists.risk(lists.X @ fit.theta)
    return found
