"""Value and derivatives of gains against all, pair by pair: no table of pairs is made."""

from __future__ import annotations

import math

from concordant.kernels.compiled import compiled

__all__ = ["pairs_of_gains"]


@compiled
def pairs_of_gains(logistic, start, gain, alpha, first, last, value, slope, terms):  # type: ignore[no-untyped-def]
    """Fill value (graphs,) with Σ_{j≠l} g_j φ(α_j − α_l), slope (items,) with its derivative, and terms (items,).

    These are what each derivative is the sum of, all positive; φ is log(1 + e^−t), or e^−t. Each graph first … last − 1
    has items start[g]:start[g + 1], all of positive gain. The twin is ``Objective`` with its arcs.
    """
    for graph in range(first, last):
        total = 0.0
        for j in range(start[graph], start[graph + 1]):
            own, mine = 0.0, 0.0
            for k in range(start[graph], j):
                d = alpha[j] - alpha[k]
                if logistic:
                    e = math.exp(-abs(d))
                    log = math.log1p(e)
                    win, lose = (e / (1.0 + e), 1.0 / (1.0 + e)) if d >= 0.0 else (1.0 / (1.0 + e), e / (1.0 + e))
                    total += gain[j] * (log + max(-d, 0.0)) + gain[k] * (log + max(d, 0.0))
                else:
                    win = math.exp(-d)
                    lose = 1.0 / win
                    total += gain[j] * win + gain[k] * lose
                up, down = gain[j] * win, gain[k] * lose
                own += down - up
                mine += down + up
                slope[k] += up - down
                terms[k] += up + down
            slope[j] += own
            terms[j] += mine
        value[graph] = total
