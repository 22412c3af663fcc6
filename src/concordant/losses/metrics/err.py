"""The ERR family: expected reciprocal rank, a cascade of users who stop at what satisfies them."""

from __future__ import annotations

from typing import Any

import numpy as np

from concordant.errors import InputError, Setting, UsageError
from concordant.losses.metrics.conventions import Discount, Gain, convention_of, discount_of, gain_of
from concordant.losses.metrics.judged_lists import Floats, as_numbers, check_cutoff, lists_of, matrices, ranked


def err(
    scores: Any,
    labels: Any,
    query: Any = None,
    at: int | None = None,
    convention: str = "burges",
    *,
    item: Any = None,
    highest: float | None = None,
    gain: Gain | None = None,
    discount: Discount = "rank",
    ties: str | None = None,
) -> Floats:
    """Return the expected reciprocal rank of every query, queries in order of first appearance.

    ERR = Σ_r 1/F(r) · G(s_(r)) · Π_{i < r} (1 − G(s_(i))), with F(r) = r and G(s) = (2^s − 1) / 2^highest unless others
    are given; the loss (16) of the source is 1 − ERR. Negative labels gain 0.

    Parameters
    ----------
    scores, labels, query, item : columns, as in ``ndcg``.
    at : the cut-off; None, the whole list.
    convention : the rule for ties and the precision of scores, as in ``ndcg``.
    highest : top of the grade scale; None, the highest of the labels given (name it where parts are compared).
    gain : G, a name, a table or a function into [0, 1].
    discount : F, a name, a table or a function.
    ties : 'input', 'item', 'worst' or 'best'; sklearn needs it, as an average over tied orders has no closed form here.

    Errors: as in ``ndcg``; a gain outside [0, 1]; labels above ``highest``.

    >>> err([3, 2, 1], [1, 2, 0], highest=2).tolist()
    [0.53125]

    Source: Chapelle, Metzler, Zhang and Grinspan (2009); Duchi, Mackey and Jordan (2013), (16).
    """
    rule = convention_of(convention)
    at = check_cutoff(at)
    score = as_numbers(scores, "scores", infinite=True)
    label = as_numbers(labels, "labels", size=len(score))
    if (ties or rule.ties) == "averaged":
        raise UsageError(
            "err has no closed form for averaged ties; give ", Setting("ties"), ": worst, best, input or item"
        )
    stop = _stopping(label, gain, highest)
    lists = lists_of(query, len(score))
    score, stop = lists.take(score), lists.take(stop)
    stop = rule.retrieved(score, stop)
    order = ranked(lists, score, stop, at=at, ties=ties or rule.ties, single=rule.single, item=item)
    deepest = int(order.rank.max(initial=0))
    worth = discount_of(discount, deepest if at is None else min(at, deepest))
    value = np.zeros(len(lists))
    for which, matrix in matrices(order.start, stop[order.place], np.arange(len(lists)), 0.0):
        reached = matrix[:, : len(worth)]
        examined = np.cumprod(1.0 - reached[:, :-1], axis=1)
        examined = np.concatenate((np.ones((len(reached), 1)), examined), axis=1)
        value[which] = (reached * examined) @ worth[: reached.shape[1]]
    return value


def _stopping(label: Floats, gain: Gain | None, highest: float | None) -> Floats:
    """Return the probability that a user stops at each document."""
    if gain is not None:
        found = gain_of(gain, label)
        if np.any((found < 0) | (found > 1)):
            wrong = label[int(((found < 0) | (found > 1)).argmax())]
            raise InputError(f"the gain of an ERR is a probability; that of label {wrong:g} is not within [0, 1]")
        return found
    top = float(label.max(initial=0.0)) if highest is None else float(highest)
    if not np.isfinite(top) or top < 0:
        raise UsageError(f"highest must be a finite label of at least 0, not {highest!r}")
    if label.size and label.max() > top:
        place = int((label > top).argmax())
        raise InputError(
            f"{int((label > top).sum()):,} labels are above the highest, {top:g} (first: {label[place]:g})"
        )
    kept = np.maximum(label, 0.0)
    return np.asarray(np.exp2(kept - top) - np.exp2(-top), np.float64)
