"""Logistic losses on pairs of graded items, compiled: one division a pair, none where both have the same gain."""

from __future__ import annotations

import math

import numpy as np

from concordant.kernels.compiled import compiled, reordered

MANY = 1e150


def _gain_pairs_plainly(score, gain, start, first, last, gradient, curvature):  # type: ignore[no-untyped-def]
    """The twin of ``gain_pairs``: an item with all that follow."""
    for query in range(first, last):
        here = slice(start[query], start[query + 1])
        scores, gains, slopes, bends = score[here], gain[here], gradient[here], curvature[here]
        for j in range(int((gains > 0.0).sum())):
            p = scores[j + 1 :] / (scores[j] + scores[j + 1 :])
            both = (gains[j] + gains[j + 1 :]) * p
            pull, turn = gains[j + 1 :] - both, both * (1.0 - p)
            slopes[j + 1 :] -= pull
            bends[j + 1 :] += turn
            slopes[j] += pull.sum()
            bends[j] += turn.sum()


@reordered(twin=_gain_pairs_plainly)
def gain_pairs(score, gain, start, first, last, gradient, curvature):  # type: ignore[no-untyped-def]
    """Add the gradient of Σ_j g_j Σ_l≠j log(1 + exp(α_l − α_j)) of queries first … last, and its curvature's diagonal.

    ``score`` is exp(α), divided by the largest of the query and at least 1e-130; gains fall within a query.
    """
    for query in range(first, last):
        begin, end = start[query], start[query + 1]
        scores, gains = score[begin:end], gain[begin:end]
        slopes, bends = gradient[begin:end], curvature[begin:end]
        for j in range(end - begin):
            g, own = gains[j], scores[j]
            if g <= 0.0:
                break
            slope = 0.0
            bend = 0.0
            for other in range(j + 1, end - begin):
                p = scores[other] / (own + scores[other])
                both = (g + gains[other]) * p
                pull = gains[other] - both
                turn = both * (1.0 - p)
                slope += pull
                bend += turn
                slopes[other] -= pull
                bends[other] += turn
            slopes[j] += slope
            bends[j] += bend


def _gain_losses_plainly(score, gain, start, first, last, value):  # type: ignore[no-untyped-def]
    """The twin of ``gain_losses``."""
    for query in range(first, last):
        here = slice(start[query], start[query + 1])
        scores, gains = score[here], gain[here]
        own = range(int((gains > 0.0).sum()))
        value[query] = sum(gains[j] * (np.log1p(scores / scores[j]).sum() - np.log(2.0)) for j in own)


@reordered(twin=_gain_losses_plainly)
def gain_losses(score, gain, start, first, last, value):  # type: ignore[no-untyped-def]
    """Set Σ_j g_j Σ_l≠j log(1 + exp(α_l − α_j)) of queries first … last; logarithms are taken of products."""
    for query in range(first, last):
        begin, end = start[query], start[query + 1]
        total = 0.0
        for j in range(begin, end):
            if gain[j] <= 0.0:
                break
            over = 1.0 / score[j]
            product = 0.5  # its pair with itself
            logarithm = 0.0
            for other in range(begin, end):
                product *= 1.0 + score[other] * over
                if product > MANY:
                    logarithm += math.log(product)
                    product = 1.0
            total += gain[j] * (logarithm + math.log(product))
        value[query] = total


@compiled
def falling(score, start, first, last, order):  # type: ignore[no-untyped-def]
    """Set the places of queries first … last by falling score, those of equal score as they come."""
    for query in range(first, last):
        begin, end = start[query], start[query + 1]
        order[begin:end] = begin + np.argsort(-score[begin:end], kind="mergesort")


def _lambda_pairs_plainly(score, gain, discount, share, start, first, last, top, gradient, curvature):  # type: ignore[no-untyped-def]  # fmt: skip
    """The twin of ``lambda_pairs``: an item with all that follow."""
    for query in range(first, last):
        here = slice(start[query], start[query + 1])
        scores, gains, slopes, bends = score[here], gain[here], gradient[here], curvature[here]
        for j in range(min(top, len(scores)) if share[query] > 0.0 else 0):
            apart = gains[j] - gains[j + 1 :]
            p = scores[j + 1 :] / (scores[j] + scores[j + 1 :])
            swap = apart * (discount[j] - discount[j + 1 : len(scores)]) * share[query]
            pull, turn = swap * np.where(apart > 0.0, p, 1.0 - p), np.abs(swap) * p * (1.0 - p)
            slopes[j + 1 :] += pull
            bends[j + 1 :] += turn
            slopes[j] -= pull.sum()
            bends[j] += turn.sum()


@reordered(twin=_lambda_pairs_plainly)
def lambda_pairs(score, gain, discount, share, start, first, last, top, gradient, curvature):  # type: ignore[no-untyped-def]
    """Add Σ |ΔDCG| · share · log(1 + exp(α_low − α_high)) of queries first … last to gradient and curvature.

    Items stand by falling score, exp(α) as in ``gain_pairs``; pairs have at least one of the ``top`` first.
    """
    for query in range(first, last):
        begin, end = start[query], start[query + 1]
        scores, gains = score[begin:end], gain[begin:end]
        slopes, bends = gradient[begin:end], curvature[begin:end]
        for j in range(min(top, end - begin) if share[query] > 0.0 else 0):
            slope = 0.0
            bend = 0.0
            for other in range(j + 1, end - begin):
                apart = gains[j] - gains[other]
                p = scores[other] / (scores[j] + scores[other])  # that the other is above, of logits α
                swap = apart * (discount[j] - discount[other]) * share[query]
                pull = swap * p if apart > 0.0 else swap * (1.0 - p)  # below 0 where the other is to be above
                turn = abs(swap) * p * (1.0 - p)
                slope -= pull
                bend += turn
                slopes[other] += pull
                bends[other] += turn
            slopes[j] += slope
            bends[j] += bend
