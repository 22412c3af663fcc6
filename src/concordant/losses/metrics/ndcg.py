"""The NDCG family: discounted cumulative gain over the best attainable one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from concordant.errors import InputError
from concordant.losses.metrics.conventions import Discount, Gain, convention_of, discount_of
from concordant.losses.metrics.judged_lists import (
    Floats,
    Lists,
    Ranked,
    as_numbers,
    check_cutoff,
    lists_of,
    matrices,
    ranked,
)

PART = 1 << 17
"""Rows that are worked on together: what they need stays in the processor's cache."""
THREADS = 2


def ndcg(
    scores: Any,
    labels: Any,
    query: Any = None,
    at: int | None = 10,
    convention: str = "burges",
    *,
    item: Any = None,
    gain: Gain | None = None,
    discount: Discount | None = None,
    ties: str | None = None,
    empty: float | None = None,
) -> Floats:
    """Return the normalised discounted cumulative gain of every query, queries in order of first appearance.

    NDCG@k = (1/Z) Σ_{r ≤ k} G(s_(r)) / F(r), where s_(r) is the label at rank r by descending score and Z the same sum
    for the best order; the loss (14) of the source is 1 − NDCG.

    Parameters
    ----------
    scores, labels, query, item : columns of one length (arrays, lists, Arrow, pandas, polars), rows in any order.
        Without ``query`` all rows are one query.
    at : the cut-off k; None, the whole list.
    convention : 'burges' (2^s − 1, ties in the order of rows), 'sklearn' (gain s, ties averaged), 'trec' (gain s,
        scores in single precision, ties by item descending: needs ``item`` where items of different labels are tied),
        'xgboost', 'lightgbm' (a query without relevance counts 1) or 'letor4' (discount 1, 1, log2 r); see
        ``CONVENTIONS``. What follows replaces what it says.
    gain : G, a name, a table of the gains of labels 0, 1, …, or a function.
    discount : F, a name, a table or a function.
    ties : 'input', 'item', 'averaged', 'worst' or 'best'.
    empty : the value where no order attains a positive gain, such as 0 for XGBoost's ``ndcg-``.

    Every query gets a value. Negative labels gain what G says (trec: 0; lightgbm: an error), so that values may then
    leave [0, 1]. Errors: columns of different length, NaN scores, labels that are not finite or above the convention's
    table, unknown names.

    >>> ndcg([0.1, 0.2, 0.3, 4, 70], [10, 0, 0, 1, 5], at=None).round(6).tolist()
    [0.409738]
    >>> ndcg([3, 2, 1, 2, 1], [0, 1, 2, 0, 1], ["a", "a", "a", "b", "b"], at=2, convention="sklearn").round(4).tolist()
    [0.2398, 0.6309]

    Source: Järvelin and Kekäläinen (2002); Burges et al. (2005); Duchi, Mackey and Jordan (2013), (14).
    """
    rule = convention_of(convention)
    at = check_cutoff(at)
    score = as_numbers(scores, "scores", infinite=True)
    label = as_numbers(labels, "labels", size=len(score))
    lists = lists_of(query, len(score))
    worth = discount_of(rule.discount if discount is None else discount, _deepest(lists, at))
    broken = ties or rule.ties
    score, label = lists.take(score), lists.take(label)

    def work(part: Lists, where: slice) -> Floats:
        gained = rule.gains(label[where], gain)
        order = ranked(part, score[where], gained, at=at, ties=broken, single=rule.single, item=item)
        there = rule.retrieved(score[where], gained)
        value = discounted(order, there, worth, averaged=broken == "averaged")
        best = best_attainable(part, gained, worth)
        nothing = best <= 0
        value = np.divide(value, best, out=np.zeros_like(value), where=~nothing)
        value[nothing] = rule.empty if empty is None else empty
        return value

    parts = lists.parts(PART) if broken != "item" and not callable(gain) else []
    if len(parts) < 2:
        return work(lists, slice(None))
    with ThreadPoolExecutor(max_workers=THREADS) as pool:
        try:
            return np.concatenate(list(pool.map(lambda part: work(*part), parts)))
        except InputError:
            return work(lists, slice(None))  # says of all labels which are wrong


def _deepest(lists: Lists, at: int | None) -> int:
    """The lowest rank that counts."""
    longest = int(lists.groups.sizes.max(initial=0))
    return longest if at is None else min(at, longest)


def discounted(order: Ranked, gain: Floats, worth: Floats, *, averaged: bool) -> Floats:
    """Return Σ_r gain(r) · worth(r) of each list, ranks beyond ``worth`` worth nothing; tied gains may be averaged."""
    by_rank = gain[order.place]
    if averaged and order.tied.any():
        begin, group = order.runs()
        total, size = np.add.reduceat(by_rank, begin), np.diff(np.append(begin, len(by_rank)))
        by_rank = (total / size)[group]
    return order.sums(by_rank * np.append(worth, 0.0)[np.minimum(order.rank - 1, len(worth))])


def best_attainable(lists: Lists, gain: Floats, worth: Floats) -> Floats:
    """Return Σ_r of each list in the order of descending gain (for a worth that falls with the rank)."""
    best, depth = np.zeros(len(lists)), len(worth)
    worth = np.asarray(np.sort(worth)[::-1], np.float64)
    for which, matrix in matrices(lists.start, gain, np.arange(len(lists)), -np.inf):
        width = matrix.shape[1]
        if width > depth:
            matrix = np.partition(matrix, width - depth, axis=1)[:, width - depth :]
        top = -np.sort(-matrix, axis=1)
        top[np.isneginf(top)] = 0.0
        best[which] = top @ worth[: top.shape[1]]
    return best
