"""The consistency bounds Γ of ranking with abstention, from the least surrogate gap that a target gap t allows."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from concordant.abstention.points import ScorerClass, checked_gamma, phi_named
from concordant.errors import UsageError, did_you_mean

Floats = NDArray[np.float64]
SETTINGS = ("general", "bipartite")


def calibration(
    t: ArrayLike,
    *,
    phi: str,
    W: float,
    gamma: float,
    setting: str = "general",
    Lambda: float | None = None,
    B: float | None = None,
    k: float = 1.0,
    convex: bool = False,
) -> Floats:
    """Return Ψ(t): the infimum of the surrogate gap of a far pair whose order has target gap t, in the shape of t.

    The gap of a pair is its conditional risk less the least one of the class. The target gap of a wrong order is
    |2η − 1| ('general', η the probability of y = +1) or |η − η'| ('bipartite', η and η' those of a positive label).
    With w = ``ScorerClass.reach(γ)``:

    - hinge t min(w, 1) and sigmoid t tanh(kw), in both settings;
    - exponential, general: 1 − √(1 − t²) up to tanh w, then 1 − cosh w + t sinh w;
    - exponential, bipartite: t² up to tanh(w/2), then t(1 − e^(−w)) − (1 − t)² sinh²(w/2). This one is not convex, so
      it says nothing of means over pairs; ``convex=True`` gives its convex minorant: t² up to t* = 1 − e^(−w/2), then
      t*² + 2t*(t − t*). The others are convex already.

    γ = 0 gives 0: a surrogate gap that says nothing.
    Errors: UsageError for t outside [0, 1], γ < 0, bounds that are not positive, unknown φ or setting.

    >>> calibration([0.0, 0.5, 1.0], phi="exponential", W=1.0, gamma=1.0).round(4).tolist()
    [0.0, 0.134, 0.6321]

    Source: RwA, proofs of Theorems 2.1 and 3.1; the convex minorant is ours.
    """
    at = np.asarray(t, np.float64)
    if not ((at >= 0) & (at <= 1)).all():
        raise UsageError(
            f"t must lie in [0, 1], the range of the target gap; {int((~((at >= 0) & (at <= 1))).sum())} do not"
        )
    phi_named(phi, k)
    w = ScorerClass(W, Lambda, B).reach(checked_gamma(gamma))
    if checked_setting(setting) == "general" or phi != "exponential":
        return least_gap(at, w, phi, k)
    if convex:
        knee = -np.expm1(-w / 2)
        return np.asarray(np.where(at <= knee, at * at, knee * (2 * at - knee)))
    half = np.sinh(np.minimum(w / 2, 300.0))
    return np.asarray(np.where(at <= np.tanh(w / 2), at * at, -at * np.expm1(-w) - np.square((1 - at) * half)))


def sharp_bound(
    gap: ArrayLike,
    *,
    phi: str,
    W: float,
    gamma: float,
    setting: str = "general",
    Lambda: float | None = None,
    B: float | None = None,
    k: float = 1.0,
) -> Floats:
    """Return the largest target gap in [0, 1] that a surrogate gap allows: the inverse of the (convex) Ψ, at most 1.

    It holds for means over pairs as for single pairs, because Ψ is convex, and is the best function of the gap that
    does. Never above ``consistency_bound`` but for the bipartite exponential, see there. γ = 0 gives 1.
    Errors: UsageError as in ``calibration``, and for a negative gap.

    >>> sharp_bound([0.0, 0.134, 0.6321], phi="exponential", W=1.0, gamma=1.0).round(3).tolist()
    [0.0, 0.5, 1.0]
    """
    g = np.asarray(gap, np.float64)
    if not (g >= 0).all():
        raise UsageError(f"the surrogate gap must not be negative; {int((~(g >= 0)).sum())} are")
    phi_named(phi, k)
    w = ScorerClass(W, Lambda, B).reach(checked_gamma(gamma))
    bipartite = checked_setting(setting) == "bipartite"
    if w == 0:
        return np.ones(g.shape)
    if phi != "exponential":
        return np.minimum(g / (np.minimum(w, 1.0) if phi == "hinge" else np.tanh(k * w)), 1.0)
    if bipartite:
        knee = -np.expm1(-w / 2)
        return np.minimum(np.where(g <= knee * knee, np.sqrt(g), knee / 2 + g / (2 * knee)), 1.0)
    small = np.minimum(g, 1.0)
    inner = np.sqrt(small * (2 - small))
    with np.errstate(over="ignore"):
        outer = 1.0 - (-np.expm1(-w) - small) / np.sinh(w)
    return np.minimum(np.where(inner <= np.tanh(w), inner, outer), 1.0)


def least_gap(t: Floats, w: Floats, phi: str, k: float) -> Floats:
    """Return 1 − min over |s| ≤ w of (1 + t)/2 Φ(s) + (1 − t)/2 Φ(−s): the gap of a pair left at s = 0."""
    if phi == "hinge":
        return np.asarray(t * np.minimum(w, 1.0))
    if phi == "sigmoid":
        return np.asarray(t * np.tanh(k * w))
    inside = t * t / (1 + np.sqrt(1 - t * t))
    outside = -np.expm1(-w) - (1 - t) * np.sinh(np.minimum(w, 300.0))  # 1 − cosh w + t sinh w without cancellation
    return np.asarray(np.where(t <= np.tanh(w), inside, outside))


def checked_setting(setting: str) -> str:
    """Return the setting; UsageError unless it is 'general' or 'bipartite'."""
    if setting not in SETTINGS:
        raise UsageError(f"unknown setting {setting!r}; {did_you_mean(str(setting), SETTINGS)}")
    return setting


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

    With w = Wγ for linear scorers and Λ min(Wγ, Wγ/2 + B) for networks with one hidden layer, it is the same in both
    settings for hinge, t/min(w, 1), and sigmoid, t/tanh(kw); for exponential it is max{√(2t), 2t/tanh w} in the
    'general' and max{√t, t/tanh(w/2)} in the 'bipartite' setting. M is the minimisability gap. Γ is not cut at 1,
    beyond which it says nothing.

    Parameters
    ----------
    t : surrogate gaps ≥ 0.
    phi : Φ, 'hinge', 'exponential' or 'sigmoid'.
    W : bound on the ℓ_q norm of weights, where distances are ℓ_p and 1/p + 1/q = 1.
    gamma : the distance γ ≥ 0 up to which pairs are declined.
    setting : 'general', or 'bipartite', where the risk is the mean over all pairs of points and pairs of equal labels
        count 0.
    Lambda, B : Λ bounds the ℓ₁ norm of a network's outer weights and B its biases; None, scorers are linear.
    k : steepness of the sigmoid, 1 − tanh(kt).

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
