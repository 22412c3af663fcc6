"""The area under the ROC curve: how often a relevant row stands above an irrelevant one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.errors import InputError
from concordant.metrics.lists import Floats, Lists, as_numbers, lists_of, owners, threshold

__all__ = ["auc", "placements", "split"]

Ints = NDArray[np.int64]


def auc(scores: Any, labels: Any, query: Any = None, *, relevant: float = 1.0) -> Floats:
    """Return the area under the ROC curve of every query, queries in order of first appearance.

    With P rows that have a label of at least ``relevant`` (positive) and N others (negative),
    AUC = (1/(P N)) Σ_{i positive, j negative} 1[s_i > s_j] + ½ 1[s_i = s_j]; it is 1 − the bipartite misranking loss.
    Pairs are counted in integers, in n log n. Columns are as in ``ndcg``; scores may be infinite. A query of one class
    only has no value: NaN, which summaries leave out and count.
    Errors (InputError): columns of different length, NaN, no query with both classes.

    >>> auc([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1]).tolist(), auc([1, 1, 2, 3], [0, 1, 1, 0], query=[7, 7, 8, 8]).tolist()
    ([0.75], [0.5, 0.0])

    Source: Hanley and McNeil (1982); Mao, Mohri and Zhong (2023), section 3.
    """
    threshold(relevant)
    score = as_numbers(scores, "scores", infinite=True)
    label = as_numbers(labels, "labels", size=len(score), infinite=True)
    lists = lists_of(query, len(score))
    if len(lists) == 1:
        above, below = split(score, label, relevant)
        twice = np.array([placements(np.sort(above), np.sort(below)).sum()])
        pairs = np.array([len(above) * len(below)])
    else:
        twice, pairs = _by_query(lists, lists.take(score), lists.take(label) >= relevant)
        if not pairs.any():
            raise InputError(
                f"labels: none of {len(lists):,} queries has rows both below {relevant:g} and of at least "
                f"{relevant:g}; the AUC compares the two classes"
            )
    value = np.full(len(lists), np.nan)
    np.divide(twice, 2.0 * pairs, out=value, where=pairs > 0)
    return value


def split(score: Floats, label: Floats, relevant: float) -> tuple[Floats, Floats]:
    """Return the scores of the positive and of the negative rows. Error (InputError): one class only."""
    positive = label >= relevant
    above, below = score[positive], score[~positive]
    if not len(above) or not len(below):
        side = "below" if not len(above) else "at least"
        raise InputError(
            f"labels: all {len(score):,} are {side} {relevant:g}; the AUC compares rows with labels of at least "
            f"{relevant:g} (positive) with the others, and there is one class only"
        )
    return above, below


def placements(these: Floats, those: Floats) -> Ints:
    """Return for each of ``these`` twice the number of ``those`` below it, equal ones half; both sorted.

    >>> placements(np.array([1.0, 2.0]), np.array([0.0, 1.0, 1.0])).tolist()
    [4, 6]
    """
    found = np.searchsorted(those, these, side="left")
    found += np.searchsorted(those, these, side="right")
    return np.asarray(found, np.int64)


def _by_query(lists: Lists, score: Floats, positive: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """Return twice the concordant pairs (ties half) of each query, and all of its pairs."""
    owner = owners(lists.start)
    positives = np.append(0, np.cumsum(positive))[lists.start]
    each = np.diff(positives)
    pairs = each * (np.diff(lists.start) - each)
    order = np.lexsort((score, owner))
    score, positive = score[order], positive[order]
    begin = np.flatnonzero(np.append(True, (score[1:] != score[:-1]) | (owner[1:] != owner[:-1]))[: len(score)])
    ups = np.add.reduceat(positive, begin, dtype=np.int64) if len(begin) else begin
    downs = np.diff(np.append(begin, len(score))) - ups
    whose = owner[begin]
    before = np.cumsum(downs) - downs - (lists.start - positives)[:-1][whose]
    running = np.append(0, np.cumsum(ups * (2 * before + downs)))
    ends = np.searchsorted(whose, np.arange(len(lists) + 1))
    return np.diff(running[ends]), pairs
