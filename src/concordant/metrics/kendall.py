"""Kendall's τ between scores and labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from concordant.errors import UsageError
from concordant.metrics.inversions import inversions, tied_pairs
from concordant.metrics.lists import Floats, as_numbers, lists_of, owners

__all__ = ["kendall_tau"]


def kendall_tau(scores: Any, labels: Any, query: Any = None, *, variant: str = "b") -> Floats:
    """Return Kendall's τ between scores and labels of every query, queries in order of first appearance.

    With C concordant and D discordant pairs of n items, τ_a = (C − D) / (n(n−1)/2) and
    τ_b = (C − D) / √((pairs not tied in score) · (pairs not tied in label)). Columns are as in ``ndcg``; n log n.
    Where it is not defined (one item; for b, all scores or all labels equal) the value is NaN, which summaries leave
    out and count. Errors: columns of different length, NaN.

    >>> kendall_tau([1, 2, 3, 4], [1, 3, 2, 4]).round(4).tolist()
    [0.6667]

    Source: Kendall (1938, 1945); Knight (1966) for the computation.
    """
    if variant not in ("a", "b"):
        raise UsageError(f"variant must be 'a' or 'b', not {variant!r}")
    score = as_numbers(scores, "scores", infinite=True)
    label = as_numbers(labels, "labels", size=len(score), infinite=True)
    lists = lists_of(query, len(score))
    score, label, owner, size = lists.take(score), lists.take(label), owners(lists.start), len(lists)
    level = np.unique(label, return_inverse=True)[1].astype(np.int64)
    order = np.lexsort((level, score, owner))  # owner is in order already, so it stays as it is
    score, level = score[order], level[order]
    length = np.diff(lists.start).astype(np.float64)
    pairs = length * (length - 1) / 2
    new = np.append(True, owner[1:] != owner[:-1])[: len(owner)]
    other_score = new | np.append(True, score[1:] != score[:-1])[: len(owner)]
    other_both = other_score | np.append(True, level[1:] != level[:-1])[: len(owner)]
    by_label = np.lexsort((level, owner))
    sorted_level = level[by_label]
    other_label = new | np.append(True, sorted_level[1:] != sorted_level[:-1])[: len(owner)]
    in_score, in_label, in_both = (tied_pairs(begin, owner, size) for begin in (other_score, other_label, other_both))
    surplus = pairs - in_score - in_label + in_both - 2.0 * inversions(owner, level, None, size)
    whole = pairs if variant == "a" else np.sqrt((pairs - in_score) * (pairs - in_label))
    value = np.full(size, np.nan)
    np.divide(surplus, whole, out=value, where=whole > 0)
    return value
