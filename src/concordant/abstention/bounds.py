"""The consistency bounds Γ of ranking with abstention: what a surrogate gap says of the abstention loss."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from concordant.abstention.calibration import checked_setting
from concordant.abstention.classes import ScorerClass, checked_gamma
from concordant.abstention.phis import phi_named
from concordant.errors import UsageError

__all__ = ["consistency_bound"]

Floats = NDArray[np.float64]


def consistency_bound(
    t: ArrayLike,
    *,
    phi: str,
    W: float,
    gamma: float,
    setting: str = "general",
    Lambda: float | None = None,
    B: float | None = None,
    k: float = 1.0,
) -> Floats:
    """Return Γ(t): R_abs(h) − R*_abs + M_abs ≤ Γ(R_Φ(h) − R*_Φ + M_Φ) for every h of the class, in the shape of t.

    With w = Wγ for linear scorers (``Lambda`` not given) and Λ min(Wγ, Wγ/2 + B) for networks with one hidden layer,
    the same in both settings for hinge t/min(w, 1) and sigmoid t/tanh(kw); exponential max{√(2t), 2t/tanh w} in the
    'general' and max{√t, t/tanh(w/2)} in the 'bipartite' setting. M is the minimisability gap. Distances are ℓ_p, norms
    of w ℓ_q with 1/p + 1/q = 1. Γ is not cut at 1, beyond which it says nothing. In the bipartite setting the risk is
    the mean over all pairs of points; pairs of equal labels count 0.

    γ = 0 gives ∞ everywhere: without abstention no such bound exists (Theorems 4.1 and 4.3; docs/why-abstain.md).

    The bipartite exponential Γ holds for every pair; that it holds for means over pairs would follow if it were
    concave, which it is not, and for some mixtures of pairs it fails by a little. ``sharp_bound`` holds for pairs and
    means, and is what ``certificate`` uses.

    Errors: UsageError for t < 0, γ < 0, bounds that are not positive, a network without B, unknown φ or setting.

    >>> consistency_bound([0.0, 0.02, 0.5], phi="exponential", W=1.0, gamma=0.5).round(4).tolist()
    [0.0, 0.2, 2.164]
    >>> consistency_bound(0.02, phi="hinge", W=1.0, gamma=0.0).item()
    inf

    Source: RwA, Theorems 2.1 and 3.1; w of the network corrected (the paper's ΛWγ needs B ≥ Wγ/2).
    """
    try:
        gap = np.asarray(t, np.float64)
    except (TypeError, ValueError):
        raise UsageError(f"t, a surrogate gap, must be real numbers, not {type(t).__name__}") from None
    if not (gap >= 0).all():
        raise UsageError(f"t, a surrogate gap, must not be negative; {int((~(gap >= 0)).sum())} of {gap.size} are")
    phi_named(phi, k)
    scale = 2.0 if checked_setting(setting) == "general" else 1.0
    w = ScorerClass(W, Lambda, B).reach(checked_gamma(gamma))
    if w == 0:
        return np.full(gap.shape, np.inf)
    if phi == "exponential":
        return np.asarray(np.maximum(np.sqrt(scale * gap), scale * gap / np.tanh(w * scale / 2)))
    return np.asarray(gap / (np.minimum(w, 1.0) if phi == "hinge" else np.tanh(k * w)))
