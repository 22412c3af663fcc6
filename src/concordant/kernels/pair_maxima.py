"""The largest weighted difference of each of many draws, rows that cannot hold it skipped."""

from __future__ import annotations

import numpy as np

from concordant.kernels.compiled import compiled, reordered


@compiled
def pair_maxima(draws, weight, most, first):  # type: ignore[no-untyped-def]
    """Write max over i, j of (z_i − z_j) w_ij of each draw z to ``most``, and the i where it is to ``first``.

    ``draws`` (draws, items), ``weight`` (items, items), at least 0. The row of i holds nothing above (z_i − min z) max_j
    w_ij, so it is looked at where that is above what other rows hold; the highest item's row comes first. Where no
    difference is above 0, ``most`` is 0 and ``first`` −1.
    """
    count, items = draws.shape
    widest = np.empty(items)
    for i in range(items):
        widest[i] = weight[i].max()
    for row in range(count):
        values = draws[row]
        least = values.min()
        found, at = 0.0, -1
        top = int(np.argmax((values - least) * widest))
        for step in range(-1, items):
            i = top if step < 0 else step
            if (values[i] - least) * widest[i] > found:
                here = _row_maximum(values, values[i], weight[i])
                if here > found:
                    found, at = here, i
        most[row], first[row] = found, at


@reordered
def _row_maximum(values, own, weight):  # type: ignore[no-untyped-def]
    found = 0.0
    for j in range(len(values)):
        found = max(found, (own - values[j]) * weight[j])
    return found
