"""The largest weighted difference of each of many draws, rows that cannot hold it skipped."""

from __future__ import annotations

import numpy as np

from concordant.kernels.compiled import compiled, reordered

SLACK = 1.0 + 1e-12
"""What rounding may take from a bound."""


@compiled
def pair_maxima(draws, weight, floor, most, pair, bound):  # type: ignore[no-untyped-def]
    """Write max over i, j of (z_i − z_j) w_ij of each draw z to ``most``; one below ``floor`` may be too small.

    ``draws`` (draws, items), ``weight`` (items, items), at least 0. Of z_i above z_j one is as far as the other, or
    farther, from the middle m, so a difference that i has with an item nearer to it is at most 2 |z_i − m| max_j w_ij:
    the items for which that, or what the least and the greatest of the draw allow, is above what others hold are looked
    at, with all partners. The item with the largest bound comes first, and with an infinite floor alone.

    ``pair`` (draws, 2), from −1 on, and ``bound`` (draws,), from infinity on, keep where the largest was found and what
    no difference exceeds. A later call with fewer pairs (weights that became 0) goes by them: where the pair is still
    there and holds what the bound allows, nothing is looked at.
    """
    count, items = draws.shape
    across = weight.T.copy()
    widest = np.empty(items)
    for i in range(items):
        widest[i] = max(weight[i].max(), across[i].max())
    part = widest * widest / max((widest * widest).sum(), 1e-300)
    reach, minus = np.empty(items), np.empty(items)
    for row in range(count):
        values, first, second, found = draws[row], pair[row, 0], pair[row, 1], 0.0
        if first >= 0:
            found = (values[first] - values[second]) * weight[first, second]
        if found > 0 if floor == np.inf else bound[row] <= max(found, floor):
            most[row] = found
            continue
        middle, top = _reaches(values, widest, part, reach, minus)
        best = -1
        for step in range(-1, items):
            i = top if step < 0 else step
            if step < 0 or reach[i] > max(found, floor):
                if values[i] > middle:
                    own = _row_maximum(values, values[i], weight[i])
                else:
                    own = _row_maximum(minus, minus[i], across[i])
                if own > found:
                    found, best = own, i
        if best >= 0:
            upper = values[best] > middle
            partner = (
                _partner(values, best, weight[best], found) if upper else _partner(minus, best, across[best], found)
            )
            pair[row, 0], pair[row, 1] = (best, partner) if upper else (partner, best)
        most[row] = found
        bound[row] = min(bound[row], max(found, floor))


@reordered
def _reaches(values, widest, part, reach, minus):  # type: ignore[no-untyped-def]
    """Write how much each item may hold to ``reach``; return the middle of the draw and the item of the largest."""
    middle, least, greatest = 0.0, np.inf, -np.inf
    for i in range(len(values)):
        value = values[i]
        middle += value * part[i]
        least, greatest = min(least, value), max(greatest, value)
        minus[i] = -value
    for i in range(len(values)):
        value = values[i]
        away = 2.0 * abs(value - middle)
        reach[i] = min(away, value - least if value > middle else greatest - value) * widest[i] * SLACK
    top = 0
    for i in range(1, len(values)):
        top = i if reach[i] > reach[top] else top
    return middle, top


@reordered
def _row_maximum(values, own, weight):  # type: ignore[no-untyped-def]
    """At least 0. Numbers from 0 on are ordered as their bits read as integers, of which processors compare many."""
    found = np.int64(0)
    for j in range(len(values)):
        bits = np.float64((own - values[j]) * weight[j]).view(np.int64)
        found = bits if bits > found else found
    return np.int64(found).view(np.float64)


@compiled
def _partner(values, i, weight, found):  # type: ignore[no-untyped-def]
    """The item with which item i holds what was found."""
    for j in range(len(values)):
        if (values[i] - values[j]) * weight[j] >= found:
            return j
    return i
