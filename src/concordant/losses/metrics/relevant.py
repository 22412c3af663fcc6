"""Metrics of relevant and irrelevant documents: precision, average precision, reciprocal rank."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.errors import Setting, UsageError
from concordant.losses.metrics.conventions import Convention, convention_of
from concordant.losses.metrics.judged_lists import (
    Floats,
    Lists,
    Ranked,
    as_numbers,
    check_cutoff,
    lists_of,
    ranked,
    threshold,
)
from concordant.losses.metrics.ndcg import best_attainable, discounted


def precision(
    scores: Any,
    labels: Any,
    query: Any = None,
    at: int | None = 10,
    convention: str = "burges",
    *,
    item: Any = None,
    relevant: float = 1.0,
    divide: str = "k",
    ties: str | None = None,
) -> Floats:
    """Return the precision among the first ``at`` of every query, queries in order of first appearance.

    Parameters
    ----------
    scores, labels, query, item : columns, as in ``ndcg``.
    at : the cut-off k; None, the length of the list.
    convention, ties : the rule for ties and the precision of scores, as in ``ndcg``.
    relevant : the least label of a relevant document.
    divide : 'k', (number of relevant among the first k) / k, also where the list is shorter than k; or 'attainable',
        the member of family (14) with G(s) = s (negative labels: 0), F = 1 up to k and infinite after: Σ_{r ≤ k} s_(r)
        over the best attainable sum, and 0 where that is 0.

    Errors: as in ``ndcg``.

    >>> precision([3, 2, 1], [1, 0, 1], at=2).tolist()
    [0.5]
    >>> precision([3, 2, 1], [2, 0, 1], at=2, divide="attainable").round(4).tolist()
    [0.6667]

    Source: Duchi, Mackey and Jordan (2013), section 2.2.
    """
    if divide not in ("k", "attainable"):
        raise UsageError(f"divide must be 'k' or 'attainable', not {divide!r}")
    at = check_cutoff(at)
    score, label, lists, rule = _checked(scores, labels, query, convention, relevant)
    label = np.maximum(label, 0.0) if divide == "attainable" else (label >= relevant).astype(np.float64)
    order = _order(lists, score, label, rule, at, ties, item)
    length = lists.groups.sums(rule.retrieved(score, np.ones(len(score))))
    longest = int(lists.groups.sizes.max(initial=0))
    worth = np.ones(longest if at is None else min(at, longest))
    value = discounted(order, rule.retrieved(score, label), worth, averaged=(ties or rule.ties) == "averaged")
    whole = np.full(len(lists), float(at)) if at is not None else length
    if divide == "attainable":
        whole = best_attainable(lists, label, worth)
    value[whole == 0] = 0.0
    np.divide(value, whole, out=value, where=whole > 0)
    return value


def average_precision(
    scores: Any,
    labels: Any,
    query: Any = None,
    at: int | None = None,
    convention: str = "burges",
    *,
    item: Any = None,
    relevant: float = 1.0,
    divide: str | None = None,
    ties: str | None = None,
    empty: float | None = None,
) -> Floats:
    """Return the average precision of every query, queries in order of first appearance.

    AP = (1/R) Σ_{r ≤ k, relevant} (number of relevant among the first r) / r. Errors: as in ``ndcg``.

    Parameters
    ----------
    scores, labels, query, item : columns, as in ``ndcg``.
    at : the cut-off k; None, the whole list.
    convention : which rules for ties, ``divide`` and ``empty``, and the precision of scores, as in ``ndcg``.
    relevant : the least label of a relevant document.
    divide : what R is: 'relevant', the number of all relevant documents of the query, or 'attainable', that
        number but at most k (map@k of XGBoost and LightGBM, and so the default of their conventions).
    ties : as in ``ndcg``. 'averaged' (sklearn) counts a group of equal scores as retrieved together, as scikit-learn's
        ``average_precision_score`` does; a cut-off is then not allowed.
    empty : the value of a query without relevance (0; xgboost and lightgbm: 1).

    >>> average_precision([4, 3, 2, 1], [1, 0, 1, 0]).round(4).tolist()
    [0.8333]

    Source: Buckley and Voorhees (2005).
    """
    at = check_cutoff(at)
    score, label, lists, rule = _checked(scores, labels, query, convention, relevant)
    divide = divide or ("attainable" if rule.name in ("lightgbm", "xgboost") else "relevant")
    if divide not in ("relevant", "attainable"):
        raise UsageError(f"divide must be 'relevant' or 'attainable', not {divide!r}")
    grouped = (ties or rule.ties) == "averaged"
    if grouped and at is not None:
        raise UsageError(
            "average precision with a cut-off has no rule for averaged ties; leave the cut-off, or give ",
            Setting("ties", "worst"),
        )
    hit = (label >= relevant).astype(np.float64)
    total = np.add.reduceat(hit, lists.start[:-1]) if len(hit) else np.zeros(len(lists))
    order = _order(lists, score, hit, rule, at, ties, item)
    by_rank = rule.retrieved(score, hit)[order.place]
    found, rank = _so_far(order, by_rank), order.rank
    if grouped and len(rank):
        begin, group = order.runs()
        last = np.append(begin[1:], len(rank)) - 1
        found, rank = found[last][group], rank[last][group]
    counts = by_rank * found / rank
    if at is not None:
        counts[rank > at] = 0.0
    value = order.sums(counts)
    whole = np.minimum(total, at) if at is not None and divide == "attainable" else total
    value = np.divide(value, whole, out=value, where=whole > 0)
    value[total == 0] = rule.empty if empty is None else empty
    return value


def reciprocal_rank(
    scores: Any,
    labels: Any,
    query: Any = None,
    at: int | None = None,
    convention: str = "burges",
    *,
    item: Any = None,
    relevant: float = 1.0,
    ties: str | None = None,
) -> Floats:
    """Return 1 / (rank of the first relevant document) of every query, queries in order of first appearance.

    Parameters
    ----------
    scores, labels, query, item : columns, as in ``ndcg``.
    at : the cut-off; the value is 0 without a relevant document up to there. None, the whole list.
    convention : the rule for ties and the precision of scores, as in ``ndcg``.
    relevant : the least label of a relevant document.
    ties : 'input', 'item', 'worst' or 'best'; sklearn needs it, as there is no rule for averaged ties.

    Errors: as in ``ndcg``.

    >>> reciprocal_rank([3, 2, 1, 5], [0, 1, 1, 0], ["a", "a", "a", "b"]).tolist()
    [0.5, 0.0]

    Source: Voorhees (1999).
    """
    at = check_cutoff(at)
    score, label, lists, rule = _checked(scores, labels, query, convention, relevant)
    if (ties or rule.ties) == "averaged":
        raise UsageError(
            "reciprocal rank has no rule for averaged ties; give ", Setting("ties"), ": worst, best, input or item"
        )
    hit = (label >= relevant).astype(np.float64)
    hit = rule.retrieved(score, hit)
    order = _order(lists, score, hit, rule, at, ties, item)
    counted = hit[order.place] > 0 if at is None else (hit[order.place] > 0) & (order.rank <= at)
    inverse = np.where(counted, 1.0 / order.rank, 0.0)
    return np.maximum.reduceat(inverse, order.start[:-1]) if len(inverse) else np.zeros(len(lists))


def _checked(
    scores: Any, labels: Any, query: Any, convention: str, relevant: float
) -> tuple[Floats, Floats, Lists, Convention]:
    threshold(relevant)
    rule = convention_of(convention)
    score = as_numbers(scores, "scores", infinite=True)
    label = as_numbers(labels, "labels", size=len(score))
    lists = lists_of(query, len(score))
    return lists.take(score), lists.take(label), lists, rule


def _order(
    lists: Lists, score: Floats, label: Floats, rule: Convention, at: int | None, ties: str | None, item: Any
) -> Ranked:
    return ranked(lists, score, label, at=at, ties=ties or rule.ties, single=rule.single, item=item)


def _so_far(order: Ranked, hit: Floats) -> NDArray[np.float64]:
    """Return the number of hits at or above each rank of its list."""
    total = np.cumsum(hit)
    return np.asarray(total - order.groups.spread(np.append(0.0, total)[order.groups.first]), np.float64)
