"""Logistic losses on all pairs of graded items, compiled: one exponential an item, one division a pair."""

from __future__ import annotations

import math

from concordant.kernels.compiled import reordered

MANY = 1e150


@reordered
def gain_pairs(score, gain, start, value, gradient, curvature):  # type: ignore[no-untyped-def]
    """Set Σ_j g_j Σ_l≠j log(1 + exp(α_l − α_j)) of each query, its gradient and the diagonal of its curvature.

    ``score`` is exp(α), divided by the largest of the query and at least 1e-130. Logarithms are taken of products.
    """
    for query in range(len(start) - 1):
        begin, end = start[query], start[query + 1]
        total = 0.0
        for j in range(begin, end):
            slope = 0.0
            bend = 0.0
            product = 1.0
            g, over = gain[j], 1.0 / score[j]
            for other in range(begin, end):
                odds = 1.0 + score[other] * over
                p = 1.0 / odds
                both = (g + gain[other]) * p
                slope += both - g
                bend += both * (1.0 - p)
                product *= odds
                if product > MANY:
                    total += g * math.log(product)
                    product = 1.0
            total += g * (math.log(product) - math.log(2.0))
            gradient[j] = slope  # its pair with itself adds g − g
            curvature[j] = bend - 0.5 * g
        value[query] = total
