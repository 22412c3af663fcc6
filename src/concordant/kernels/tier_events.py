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
def _step(peak, x):  # type: ignore[no-untyped-def]
    """Step of the trapezoidal rule."""
    return min(STEP, NARROWER * len(x) ** -0.25, WIDTH / math.sqrt(-_slope(peak, x)[1]))


@compiled
def tier_events(start, square, x, tiers, first, last, value, gradient, hessian):  # type: ignore[no-untyped-def]
    """Fill log I, ∂ log I/∂x and ∂² log I/∂x² of tiers[first] … tiers[last − 1].

    I = ∫₀^∞ e^−y Π_i (1 − e^(−a_i y)) dy with a_i = e^x_i, the odds of item i over the sum of those below: the chance
    that exponential times of rates a_i are all less than one of rate 1. With y = e^t the integrand is log-concave in t,
    analytic in |Im t| < π/2, and falls at least exponentially at both ends, so the trapezoidal rule converges
    geometrically (Trefethen & Weideman, SIAM Review 56, 2014). Shapes: start (tiers + 1,), x, gradient (items of all
    tiers,), value (tiers,), hessian a block for each tier, row by row, from square (tiers + 1,) on.
    """
    widest = 0
    for tier in tiers[first:last]:
        widest = max(widest, start[tier + 1] - start[tier])
    ratio, fall, own, mean = np.empty(widest), np.empty(widest), np.empty(widest), np.empty(widest)
    cross = np.empty((widest, widest))
    for tier in tiers[first:last]:
        here = x[start[tier] : start[tier + 1]]
        size = len(here)
        peak = _peak(here)
        step = _step(peak, here)
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


@compiled
def wide_rule(start, x, tiers, first, last, rule):  # type: ignore[no-untyped-def]
    """Fill first node, step and number of nodes of the rule for some of the tiers, named by ``tiers``; rule (tiers, 3).

    The nodes are those at which the integrand of ``tier_events`` has fallen by no more than ``DROP``.
    """
    for place in range(first, last):
        here = x[start[tiers[place]] : start[tiers[place] + 1]]
        ratio, fall = np.empty(len(here)), np.empty(len(here))
        peak = _peak(here)
        step = _step(peak, here)
        highest = _point(peak, here, ratio, fall)
        nodes = 0
        for side in range(2):
            number = side
            while _point(peak + (1 - 2 * side) * number * step, here, ratio, fall) - highest >= -DROP:
                number += 1
            nodes += number - side
        rule[place, 0] = peak - (number - 1) * step
        rule[place, 1] = step
        rule[place, 2] = nodes


@compiled
def wide_events(start, square, x, tiers, rule, room, first, last, value, gradient, own, rows):  # type: ignore[no-untyped-def]
    """Fill log I, ∂ log I/∂x and the parts of ∂² log I/∂x² of wide tiers, in memory that grows with their items.

    With p the shares of the nodes, r_i and r_i' as in ``_point``, m_i = Σ p r_i: ∂² log I = diag Σ p r_i' + Σ p (r − m)
    (r − m)ᵀ. ``own``: Σ p r_i', where ``square`` has room for the tier; ``rows``: √p (r − m), one row of the tier's
    items for each of its nodes, from ``room`` on.
    """
    for place in range(first, last):
        tier, nodes, begin = tiers[place], int(rule[place, 2]), room[place]
        here = x[start[tier] : start[tier + 1]]
        size = len(here)
        fall, shares = np.empty((nodes, size)), np.empty(nodes)
        for k in range(nodes):
            row = rows[begin + k * size : begin + (k + 1) * size]
            shares[k] = _point(rule[place, 0] + k * rule[place, 1], here, row, fall[k])
        highest = shares.max()
        shares = np.exp(shares - highest)
        total = shares.sum()
        value[tier] = highest + math.log(rule[place, 1] * total)
        shares /= total
        for i in range(size):
            mean = bend = 0.0
            for k in range(nodes):
                mean += shares[k] * rows[begin + k * size + i]
                bend += shares[k] * fall[k, i]
            gradient[start[tier] + i] = mean
            own[square[tier] + i] = bend
            for k in range(nodes):
                rows[begin + k * size + i] = math.sqrt(shares[k]) * (rows[begin + k * size + i] - mean)


@compiled
def pairs_of_lists(start, node, corner, width, left, share, until, odds, table):  # type: ignore[no-untyped-def]
    """Add (left_i + share_i [j not in i's tier]) odds_j to the cell of the nodes of every two entries i before j.

    The cells of a list's graph, ``width`` nodes square, begin at ``corner``; ``until``: where the entry's tier ends.
    """
    for row in range(len(start) - 1):
        for i in range(start[row], start[row + 1]):
            cells = corner[row] + node[i] * width[row]
            for j in range(i + 1, until[i]):
                table[cells + node[j]] += left[i] * odds[j]
            both = left[i] + share[i]
            for j in range(until[i], start[row + 1]):
                table[cells + node[j]] += both * odds[j]


@compiled
def _tier_slope(x, gradient):  # type: ignore[no-untyped-def]
    """Fill ∂ log I/∂x of one tier, as ``tier_events`` does; return its sum."""
    size = len(x)
    ratio, fall = np.empty(size), np.empty(size)
    peak = _peak(x)
    step = _step(peak, x)
    highest = _point(peak, x, ratio, fall)
    total = 0.0
    gradient[:] = 0.0
    for side in range(2):
        number = side
        while True:
            exponent = _point(peak + (1 - 2 * side) * number * step, x, ratio, fall) - highest
            if exponent < -DROP:
                break
            share = math.exp(exponent)
            total += share
            for i in range(size):
                gradient[i] += share * ratio[i]
            number += 1
    pushed = 0.0
    for i in range(size):
        gradient[i] /= total
        pushed += gradient[i]
    return pushed


@compiled
def pulls(start, node, tiers, tier_start, atom, times, draws, score, out):  # type: ignore[no-untyped-def]
    """Add to out (replicates, nodes) the gradients of the log-likelihood of lists, weighted by draws of their atoms.

    Shapes: start, tier_start (lists + 1,), node (entries,), tiers: the entries where the tiers of each list begin that
    stand above others, and where the last of them ends; atom, times (lists,), draws (replicates, atoms), score
    (replicates, nodes).
    """
    longest = 0
    for row in range(len(start) - 1):
        longest = max(longest, start[row + 1] - start[row])
    below, inner = np.empty(longest + 1), np.empty(longest)
    odds = np.empty(score.shape[1])
    for replicate in range(len(draws)):
        highest = score[replicate].max()
        for i in range(len(odds)):
            odds[i] = math.exp(score[replicate, i] - highest)
        for row in range(len(start) - 1):
            weight = draws[replicate, atom[row]] * times[row]
            if weight == 0:
                continue
            first, last = start[row], start[row + 1]
            below[last - first] = 0.0
            for i in range(last - 1, first - 1, -1):
                below[i - first] = below[i - first + 1] + odds[node[i]]
            held = 0.0
            begin = tiers[tier_start[row]]
            for place in range(tier_start[row] + 1, tier_start[row + 1]):
                end = tiers[place]
                if end - begin == 1:
                    held += 1.0 / below[begin - first]
                    out[replicate, node[begin]] += weight * (1.0 - odds[node[begin]] * held)
                else:
                    rest = below[end - first]
                    x = np.empty(end - begin)
                    for i in range(begin, end):
                        x[i - begin] = math.log(odds[node[i]] / rest)
                    pushed = _tier_slope(x, inner[: end - begin])
                    for i in range(begin, end):
                        out[replicate, node[i]] += weight * (inner[i - begin] - odds[node[i]] * held)
                    held += pushed / rest
                begin = end
            for i in range(begin, last):
                out[replicate, node[i]] -= weight * odds[node[i]] * held
