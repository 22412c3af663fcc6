"""Derivatives of the two likelihoods of a pair: Bradley–Terry (a tie is half a win each way) and Davidson's with ties.

With margin t = s_j − s_l + z·β: Bradley–Terry P(j ≻ l) = σ(t). Davidson (JASA 65, 1970, with ν = e^τ): probabilities
of win, loss and tie proportional to e^{t/2}, e^{−t/2}, e^τ.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["davidson_derivatives", "davidson_probabilities", "win_derivatives", "win_probability"]

Floats = NDArray[np.float64]


def win_probability(margin: Floats) -> tuple[Floats, Floats]:
    """σ(t) and σ(−t), each to full relative precision.

    >>> win_probability(np.array([0.0]))
    (array([0.5]), array([0.5]))
    """
    small = np.exp(-np.abs(margin))
    large = 1.0 / (1.0 + small)
    small *= large
    ahead = margin >= 0
    return np.where(ahead, large, small), np.where(ahead, small, large)


def win_derivatives(margin: Floats, above: Floats, below: Floats) -> tuple[Floats, Floats]:
    """First derivative of above·log σ(t) + below·log σ(−t) by t, and minus the second."""
    win, loss = win_probability(margin)
    pull = above * loss
    pull -= below * win
    win *= loss
    win *= above + below
    return pull, win


def davidson_probabilities(margin: Floats, log_nu: Floats) -> tuple[Floats, Floats, Floats]:
    """Probabilities of win, loss and tie."""
    half = 0.5 * margin
    top = np.maximum(np.abs(half), log_nu)
    win, loss, tie = np.exp(half - top), np.exp(-half - top), np.exp(log_nu - top)
    total = win + loss + tie
    return win / total, loss / total, tie / total


def davidson_derivatives(
    margin: Floats, log_nu: Floats, wins: Floats, losses: Floats, ties: Floats
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """(pull, curve, tie pull, cross, tie curve): derivatives of the log-likelihood by t, −tt, τ, −tτ, −ττ."""
    win, loss, tie = davidson_probabilities(margin, log_nu)
    total = wins + losses + ties
    pull = wins * (loss + 0.5 * tie) - losses * (win + 0.5 * tie) - 0.5 * ties * (win - loss)
    curve = total * (win * loss + 0.25 * tie * (win + loss))
    tie_pull = ties * (win + loss) - (wins + losses) * tie
    cross = -0.5 * total * tie * (win - loss)
    return pull, curve, tie_pull, cross, total * tie * (win + loss)
