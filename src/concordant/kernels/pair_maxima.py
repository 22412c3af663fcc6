"""The largest weighted difference of each of many draws, rows that cannot hold it skipped."""

from __future__ import annotations

import numpy as np

from concordant.kernels.compiled import compiled, reordered


@compiled
def pair_maxima(draws, weight, floor, most):  # type: ignore[no-untyped-def]
    """Write max over i, j of (z_i − z_j) w_ij of each draw z to ``most``; one below ``floor`` may be too small.

    ``draws`` (draws, items), ``weight`` (items, items), at least 0. The row of i holds nothing above (z_i − min z)
    max_j w_ij, so it is looked at where that is above what other rows hold. The row where it is largest comes first,
    and with an infinite floor alone.
    """
    count, items = draws.shape
    widest = np.empty(items)
    for i in range(items):
        widest[i] = weight[i].max()
    for row in range(count):
        values = draws[row]
        least = values.min()
        top = int(np.argmax((values - least) * widest))
        found = _row_maximum(values, values[top], weight[top])
        for i in range(items):
            if (values[i] - least) * widest[i] > max(found, floor):
                found = max(found, _row_maximum(values, values[i], weight[i]))
        most[row] = found


@reordered
def _row_maximum(values, own, weight):  # type: ignore[no-untyped-def]
    """At least 0. Numbers from 0 on are ordered as their bits read as integers, of which processors compare many."""
    found = np.int64(0)
    for j in range(len(values)):
        bits = np.float64((own - values[j]) * weight[j]).view(np.int64)
        found = bits if bits > found else found
    return np.int64(found).view(np.float64)
