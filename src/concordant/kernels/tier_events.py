"""The chance that every item of a tier finishes before every item below it: an integral for each tier of each list."""

from __future__ import annotations

import math

import numpy as np

from concordant.kernels.compiled import compiled

STEP, NARROWER, WIDTH = 0.3, 0.38, 0.8
"""Step of the trapezoidal rule: at most, times the fourth root of the tier's size, and of the peak's width 1/√−ℓ''."""
DROP = 30.0
"""The integrand is followed until it has fallen by this exponent."""


@compiled
def _slope(t, x):  # type: ignore[no-untyped-def]
    """First and second derivative of t − e^t + Σ log(1 − exp(−e^(t + x_i)))."""
    e = math.exp(t)
    first, second = 1.0 - e, -e
    for i in range(len(x)):
        z = math.exp(t + x[i])
        r = z / math.expm1(z) if z < 700.0 else 0.0
        first += r
        second += r * (1.0 - z - r)
    return first, second


@compiled
def _peak(x):  # type: ignore[no-untyped-def]
    """Where the concave exponent is largest, between 0 and log(1 + items)."""
    low, high = 0.0, math.log(1.0 + len(x))
    t = 0.5 * (low + high)
    for _ in range(60):
        first, second = _slope(t, x)
        if first > 0.0:
            low = t
        else:
            high = t
        move = -first / second
        if abs(move) < 1e-6:
            break
        t += move
        if not low < t < high:
            t = 0.5 * (low + high)
        if high - low < 1e-9:
            break
    return t


@compiled
def _point(t, x, ratio, fall):  # type: ignore[no-untyped-def]
    """Fill r_i = z_i/(e^z_i − 1) and z r'(z) = r (1 − z − r), z_i = e^(t + x_i); return the exponent."""
    total = t - math.exp(t)
    for i in range(len(x)):
        z = math.exp(t + x[i])
        if z < 700.0:
            r = z / math.expm1(z)
            ratio[i] = r
            fall[i] = r * (1.0 - z - r)
            total += math.log(-math.expm1(-z))
        else:
            ratio[i] = fall[i] = 0.0
    return total


@compiled
def tier_events(start, square, x, first, last, value, gradient, hessian):  # type: ignore[no-untyped-def]
    """Fill log I, ∂ log I/∂x and ∂² log I/∂x² of the tiers first … last − 1.

    I = ∫₀^∞ e^−y Π_i (1 − e^(−a_i y)) dy with a_i = e^x_i, the odds of item i over the sum of those below: the chance
    that exponential times of rates a_i are all less than one of rate 1. With y = e^t the integrand is log-concave in t,
    analytic in |Im t| < π/2, and falls at least exponentially at both ends, so the trapezoidal rule converges
    geometrically (Trefethen & Weideman, SIAM Review 56, 2014). Shapes: start (tiers + 1,), x, gradient (items of all
    tiers,), square (tiers + 1,) and hessian (Σ items²,): a block for each tier, row by row; value (tiers,).
    """
    widest = 0
    for tier in range(first, last):
        widest = max(widest, start[tier + 1] - start[tier])
    ratio, fall, own, mean = np.empty(widest), np.empty(widest), np.empty(widest), np.empty(widest)
    cross = np.empty((widest, widest))
    for tier in range(first, last):
        here = x[start[tier] : start[tier + 1]]
        size = len(here)
        peak = _peak(here)
        step = min(STEP, NARROWER * size**-0.25, WIDTH / math.sqrt(-_slope(peak, here)[1]))
        highest = _point(peak, here, ratio, fall)
        total = 0.0
        for i in range(size):
            mean[i] = own[i] = 0.0
            for k in range(i + 1):
                cross[i, k] = 0.0
        for side in range(2):
            number = side  # the peak itself once
            while True:
                t = peak + number * step if side == 0 else peak - number * step
                exponent = _point(t, here, ratio, fall) - highest
                if exponent < -DROP:
                    break
                share = math.exp(exponent)
                total += share
                for i in range(size):
                    part = share * ratio[i]
                    mean[i] += part
                    own[i] += share * fall[i]
                    for k in range(i + 1):
                        cross[i, k] += part * ratio[k]
                number += 1
        value[tier] = highest + math.log(step * total)
        block = square[tier]
        for i in range(size):
            mean[i] /= total
            gradient[start[tier] + i] = mean[i]
            for k in range(i + 1):
                both = cross[i, k] / total - mean[i] * mean[k]
                if i == k:
                    both += own[i] / total
                hessian[block + i * size + k] = both
                hessian[block + k * size + i] = both
