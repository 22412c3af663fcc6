"""The pairwise loss: the weight of the preferences that an order contradicts.

Kendall's τ between scores and labels.

Weighted inversions of many sequences at once, in n log n: what Kendall's τ and the pairwise loss are made of.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.errors import InputError, UsageError
from concordant.losses.metrics.judged_lists import Floats, Lists, as_numbers, lists_of

Ints = NDArray[np.int64]


def inversions(owner: Ints, level: Ints, value: Floats | None, size: int) -> Floats:
    """Return Σ (value_i − value_j) over the pairs i before j with level_i > level_j, for each of ``size`` sequences.

    ``owner`` is the sequence of each entry (ascending), ``level`` an integer ≥ 0 and ``value`` a number per entry
    (None: count the pairs). Two levels differ first in some bit: bit by bit from the highest, entries that agree in
    the higher bits stand together, in their order, and every 0 after a 1 is an inversion. With p the largest value of
    the zeros of such a group, value_i − value_j = (value_i − p) + (p − value_j), each at least 0 where values ascend
    with levels: nothing cancels, within a sequence or between two, however large the values are.
    """
    total = np.zeros(size)
    if not len(level):
        return total
    for bit in range(int(level.max()).bit_length() - 1, -1, -1):
        one = (level >> bit) & 1
        group = np.append(True, (owner[1:] != owner[:-1]) | (level[1:] >> (bit + 1) != level[:-1] >> (bit + 1)))
        begin = np.flatnonzero(group)
        place = np.cumsum(group) - 1
        ones = np.where(one == 0, _before(one, begin, place), 0)
        if value is None:
            lost = ones.astype(np.float64)
        else:
            zeros = np.add.reduceat(1 - one, begin)[place] - _before(1 - one, begin, place)  # from here on
            times = np.where(one == 1, zeros, ones)
            middle = np.maximum.reduceat(np.where(one == 0, value, -np.inf), begin)[place]
            with np.errstate(over="ignore"):
                apart = np.where(times > 0, abs(value - np.where(times > 0, middle, value)), 0.0)
                lost = apart * times
        total += np.bincount(owner, lost, size)
        order = np.lexsort((one, place))
        owner, level = owner[order], level[order]
        value = None if value is None else value[order]
    return total


def _before(values: Ints, begin: Ints, place: Ints) -> Ints:
    """Return the sum of the values before each entry within its group."""
    running = np.cumsum(values) - values
    return running - running[begin][place]


def tied_pairs(begin: NDArray[np.bool_], owner: Ints, size: int) -> Floats:
    """Return the number of pairs within the runs that begin where ``begin`` is true, for each sequence."""
    first = np.flatnonzero(begin)
    run = np.diff(np.append(first, len(begin))).astype(np.float64)
    return np.asarray(np.bincount(owner[first], run * (run - 1) / 2, size), np.float64)


def pairwise_loss(
    scores: Any,
    labels: Any = None,
    query: Any = None,
    *,
    edges: Any = None,
    adjacency: Any = None,
    ties: str = "heavier",
    normalise: bool = False,
) -> Floats:
    """Return the pairwise loss of every query, queries in order of first appearance.

    L = Σ_{i<j} Y_ij 1(α_i ≤ α_j) + Σ_{i>j} Y_ij 1(α_i < α_j), where Y_ij ≥ 0 is the weight of “i above j” and items are
    numbered by first appearance (the order of rows). Without any preference it is 0. One of ``labels``, ``edges`` and
    ``adjacency`` gives the preferences.

    Parameters
    ----------
    scores, query : columns of one length, as in ``ndcg``.
    labels : Y_ij = max(0, label_i − label_j), in n log n.
    edges : a tuple (first, second) or (first, second, weight) of columns: row numbers from 0 within one query, weights
        ≥ 0 (1 without). Repeated edges add up.
    adjacency : the n × n matrix Y of the rows.
    ties : 'heavier' charges the heavier direction, max(Y_ij, Y_ji); 'paper' is the formula taken literally, Y_ij with i
        the item that appears first, so that the loss depends on the numbering.
    normalise : whether to divide by the total weight (with opposite edges both counted).

    Errors: none or several of the three, columns of different length, NaN scores, edges across queries.

    >>> pairwise_loss([1, 2, 3], [2, 0, 1]).tolist(), pairwise_loss([0, 0], edges=([0, 1], [1, 0], [1, 3])).tolist()
    ([3.0], [3.0])

    Source: Duchi, Mackey and Jordan (2013), (10).
    """
    if sum(given is not None for given in (labels, edges, adjacency)) != 1:
        raise UsageError("pairwise_loss takes one of labels, edges and adjacency")
    if ties not in ("heavier", "paper"):
        raise UsageError(f"ties must be 'heavier' or 'paper', not {ties!r}")
    score = as_numbers(scores, "scores", infinite=True)
    lists = lists_of(query, len(score))
    if labels is not None:
        label = as_numbers(labels, "labels", size=len(score))
        loss, whole = _from_labels(lists, lists.take(score), lists.take(label), ties)
    else:
        first, second, weight = _edges(edges, len(score)) if edges is not None else _matrix(adjacency, len(score))
        loss, whole = _from_edges(lists, score, first, second, weight, ties)
    if normalise:
        loss = np.divide(loss, whole, out=np.zeros_like(loss), where=whole > 0)
    return loss


def _from_labels(lists: Lists, score: Floats, label: Floats, ties: str) -> tuple[Floats, Floats]:
    """Charge the pairs that stand in ascending order of score with the higher label first."""
    owner = lists.groups.owner
    level = np.unique(label, return_inverse=True)[1].astype(np.int64)
    keys = (-level, score, owner) if ties == "heavier" else (score, owner)
    sorter = np.lexsort(keys)
    loss = inversions(owner, level[sorter], label[sorter], len(lists))
    downwards = np.lexsort((-level, owner))
    return loss, inversions(owner, level[downwards], label[downwards], len(lists))


def _from_edges(
    lists: Lists, score: Floats, first: NDArray[np.int64], second: NDArray[np.int64], weight: Floats, ties: str
) -> tuple[Floats, Floats]:
    rows, owner = len(score), np.empty(len(score), np.int64)
    owner[np.arange(rows) if lists.rows is None else lists.rows] = lists.groups.owner
    across = owner[first] != owner[second]
    if across.any():
        place = int(across.argmax())
        raise InputError(
            f"edges: {int(across.sum()):,} of {len(first):,} join rows of different queries "
            f"(first: rows {first[place]} and {second[place]})"
        )
    low, high = np.minimum(first, second), np.maximum(first, second)
    pair, code = np.unique(low * rows + high, return_inverse=True)
    low, high = pair // max(rows, 1), pair % max(rows, 1)
    forward = np.bincount(code, np.where(first < second, weight, 0.0), len(pair))
    backward = np.bincount(code, np.where(first > second, weight, 0.0), len(pair))
    tied = np.maximum(forward, backward) if ties == "heavier" else forward
    above, below = score[low] > score[high], score[low] < score[high]
    charged = np.where(above, backward, np.where(below, forward, tied))
    size = len(lists)
    loss, whole = (np.bincount(owner[low], amount, size) for amount in (charged, forward + backward))
    return np.asarray(loss, np.float64), np.asarray(whole, np.float64)


def _edges(edges: Any, rows: int) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
    if not isinstance(edges, tuple | list) or len(edges) not in (2, 3):
        raise UsageError("edges is a tuple (first, second) or (first, second, weight) of columns")
    first, second = (_row_numbers(column, rows) for column in edges[:2])
    if len(first) != len(second):
        raise InputError(f"edges: first has {len(first):,} rows, second has {len(second):,}")
    weight = np.ones(len(first)) if len(edges) == 2 else as_numbers(edges[2], "weight")
    if len(weight) != len(first):
        raise InputError(f"edges: weight has {len(weight):,} rows, first has {len(first):,}")
    return _positive(first, second, weight)


def _row_numbers(column: Any, rows: int) -> NDArray[np.int64]:
    found = np.asarray(column)
    if found.ndim != 1 or (found.dtype.kind not in "iu" and len(found)):
        raise InputError(f"edges hold row numbers (integers), not {found.dtype}")
    found = found.astype(np.int64)
    if len(found) and (found.min() < 0 or found.max() >= rows):
        wrong = found[int(((found < 0) | (found >= rows)).argmax())]
        raise InputError(f"edges: there is no row {wrong}; there are {rows:,}, numbered from 0")
    return found


def _matrix(adjacency: Any, rows: int) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
    if hasattr(adjacency, "tocoo"):
        sparse = adjacency.tocoo()
        shape, first, second, weight = sparse.shape, sparse.row, sparse.col, as_numbers(sparse.data, "adjacency")
    else:
        dense = np.asarray(adjacency, np.float64)
        shape = dense.shape
        first, second = np.nonzero(dense) if dense.ndim == 2 else (np.zeros(0, np.int64),) * 2
        weight = as_numbers(dense[first, second], "adjacency") if dense.ndim == 2 else np.zeros(0)
    if tuple(shape) != (rows, rows):
        raise InputError(f"adjacency must be of shape ({rows}, {rows}), one row and column per score, not {shape}")
    return _positive(np.asarray(first, np.int64), np.asarray(second, np.int64), weight)


def _positive(
    first: NDArray[np.int64], second: NDArray[np.int64], weight: Floats
) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
    if len(weight) and weight.min() < 0:
        place = int((weight < 0).argmax())
        raise InputError(f"weights of preferences must be at least 0; {weight[place]:g} from {first[place]} to "
                         f"{second[place]}")  # fmt: skip
    loops = first == second
    if loops.any():
        raise InputError(f"edges: {int(loops.sum()):,} go from a row to itself (first: row {first[loops.argmax()]})")
    return first, second, weight


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
    score, label, owner, size = lists.take(score), lists.take(label), lists.groups.owner, len(lists)
    level = np.unique(label, return_inverse=True)[1].astype(np.int64)
    sorter = np.lexsort((level, score, owner))  # owner is in order already, so it stays as it is
    score, level = score[sorter], level[sorter]
    length = lists.groups.sizes.astype(np.float64)
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
