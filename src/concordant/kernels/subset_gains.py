"""Mean gains of the average log-odds scores of random subsets, in one pass over the draws.

The plain twin is ``concordant.learning.targets.mean_targets`` with the structure function itself. Scores are held as
integers, multiples of 2^−shift of a log-odds: their sums are exact, whatever the order of the judgments, and equal
scores are equal. Everything is a function of the one query, so threads and blocks change nothing.
"""

from __future__ import annotations

import math

import numpy as np

from concordant.kernels.compiled import compiled
from concordant.kernels.draws import HASH, ONE, S31, S40, TURNS, collect, copy, fill, shuffle, table_size

WHOLE, BLOCKS, SHUFFLED, COLLECTED = 0, 1, 2, 3
"""How a query is treated: all its judgments; blocks of permutations; independent subsets, drawn in either way."""
SHIFTS = (51, 48, 45)
"""Bits after the point of scores, for queries whose scores times their opponents stay below 2^10, 2^13, 2^16."""
LN2 = math.log(2.0)
GAPS = (701, 301, 132, 57, 23, 10, 4, 1)


# -- scores and gains of one graph ---------------------------------------------------------------------------------
@compiled
def _level(x, c0, shift):  # type: ignore[no-untyped-def]
    """log(x/2 + c0) as an integer; x is twice the wins."""
    return np.int64(np.rint(math.log(0.5 * x + c0) * 2.0**shift))


@compiled
def _add_wins(chosen, number, sign, up, win, lose, level, cells, score):  # type: ignore[no-untyped-def]
    """Add judgments, none a tie, to the cells (twice the wins of either side of each pair) and the scores.

    A log-odds is the difference of two logarithms, so a win changes the scores by a difference of one of them.
    """
    for i in range(number):
        j = chosen[i]
        here = cells[up[j]]
        cells[up[j]] = here + sign
        change = level[here + sign] - level[here]
        score[win[j]] += change
        score[lose[j]] -= change


@compiled
def _add_ties_too(chosen, number, sign, up, win, lose, tied, level, cells, score):  # type: ignore[no-untyped-def]
    """Add judgments of which some may be ties, half a win each way."""
    for i in range(number):
        j = chosen[i]
        half = sign // 2 if tied[j] else 0
        here, there = cells[up[j]], cells[up[j] ^ 1]
        cells[up[j]], cells[up[j] ^ 1] = here + sign - half, there + half
        change = level[here + sign - half] - level[here] - level[there + half] + level[there]
        score[win[j]] += change
        score[lose[j]] -= change


@compiled
def _gain(s, kind):  # type: ignore[no-untyped-def]
    """2^s − 1, 2^s or s."""
    if kind == 0:
        return math.expm1(s * LN2)
    if kind == 1:
        return np.exp2(s)
    return s


@compiled
def _descending(score, order, begin, end):  # type: ignore[no-untyped-def]
    """Shell sort of order[begin:end] by score."""
    for gap in GAPS:
        for i in range(begin + gap, end):
            node = order[i]
            at = i
            while at >= begin + gap and score[order[at - gap]] < score[node]:
                order[at] = order[at - gap]
                at -= gap
            order[at] = node


@compiled
def _ordered_gains(m, score, unit, kind, inverse, ahead, bucket, count, order, y):  # type: ignore[no-untyped-def]
    """Fill y with gains and return Z, the nodes sorted within their buckets; equal scores share one gain."""
    at = 0
    for b in range(len(count)):
        at += count[b]
        count[b] = at - count[b]
    for i in range(m):
        order[count[bucket[i]]] = i
        count[bucket[i]] += 1
    begin = 0
    for b in range(len(count)):
        if count[b] - begin > 1:
            _descending(score, order, begin, count[b])
        begin = count[b]
    Z = 0.0
    begin = 0
    while begin < m:
        end = begin + 1
        while end < m and score[order[end]] == score[order[begin]]:
            end += 1
        g = _gain(score[order[begin]] * unit, kind)
        Z += g * (inverse[begin] if end == begin + 1 else ahead[end] - ahead[begin])
        for i in range(begin, end):
            y[order[i]] = g
        begin = end
    return Z


@compiled
def _gains(m, score, unit, kind, inverse, ahead, bucket, count, first, shared, order, y):  # type: ignore[no-untyped-def]
    """Fill y with G(s) and return Z(s). Scores fall into buckets by value; mostly one bucket holds one value."""
    low, high = score[0], score[0]
    for i in range(1, m):
        low, high = min(low, score[i]), max(high, score[i])
    scale = 0.0 if low == high else (len(count) - 1) / np.float64(high - low)
    fill(count, len(count), 0)
    mixed = False
    for i in range(m):
        at = np.int32((high - score[i]) * scale)
        bucket[i] = at
        if count[at] == 0:
            first[at] = score[i]
        mixed |= first[at] != score[i]
        count[at] += 1
    if mixed:
        return _ordered_gains(m, score, unit, kind, inverse, ahead, bucket, count, order, y)
    Z = 0.0
    begin = 0
    for b in range(len(count)):
        if count[b] > 0:
            shared[b] = _gain(first[b] * unit, kind)
            end = begin + count[b]
            Z += shared[b] * (inverse[begin] if end == begin + 1 else ahead[end] - ahead[begin])
            begin = end
    for i in range(m):
        y[i] = shared[bucket[i]]
    return Z


# -- a query -------------------------------------------------------------------------------------------------------
@compiled
def _pairs(winner, loser, place, m, table, number, up, win, lose):  # type: ignore[no-untyped-def]
    """Find the places of the items of each judgment and the cell of its winner's side; return the number of pairs."""
    size = table_size(len(winner))
    mask = np.uint64(size - 1)
    fill(table, size, -1)
    pairs = 0
    for j in range(len(winner)):
        a, b = place[winner[j]], place[loser[j]]
        win[j], lose[j] = a, b
        pair = np.int64(min(a, b)) * m + max(a, b)
        at = ((np.uint64(pair) * HASH) >> S31) & mask
        while table[at] != -1 and table[at] != pair:
            at = (at + ONE) & mask
        if table[at] == -1:
            table[at] = pair
            number[at] = pairs
            pairs += 1
        up[j] = 2 * number[at] + (0 if a < b else 1)
    return pairs


@compiled
def _whole_scores(count, up, win, lose, tied, pairs, c0, shift, cells, score):  # type: ignore[no-untyped-def]
    """Cells and scores of all judgments."""
    fill(cells, 2 * pairs, 0)
    fill(score, len(score), 0)
    for j in range(len(count)):
        if tied[j]:
            cells[up[j]] += count[j]
            cells[up[j] ^ 1] += count[j]
        else:
            cells[up[j]] += 2 * count[j]
    for j in range(len(count)):
        cell = up[j]
        # once for each pair: at its first judgment the cells are turned round, so that the others see it is done
        if cells[cell] >= 0:
            change = _level(cells[cell], c0, shift) - _level(cells[cell ^ 1], c0, shift)
            score[win[j]] += change
            score[lose[j]] -= change
            cells[cell], cells[cell ^ 1] = -cells[cell] - 1, -cells[cell ^ 1] - 1
    for cell in range(2 * pairs):
        cells[cell] = -cells[cell] - 1


@compiled
def _holder(before, position):  # type: ignore[no-untyped-def]
    """The judgment that a position belongs to: before[j] ≤ position < before[j + 1]."""
    low, high = 0, len(before) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if before[middle] <= position:
            low = middle
        else:
            high = middle
    return low


@compiled
def _draw(nth, way, k, rounds, key, base, cards, before, table, found, chosen):  # type: ignore[no-untyped-def]
    """Draw subset nth into chosen; return how many judgments that are, and whether they are those left out."""
    total = before[-1]
    if way == BLOCKS:
        turn, block = nth // rounds, nth % rounds
        if block == 0:
            copy(base, total, cards)
        shuffle(cards, total, block * k, (block + 1) * k, key, TURNS + (np.uint64(turn) << S40))
        for i in range(k):
            chosen[i] = cards[block * k + i]
        return k, False
    if way == COLLECTED:
        collect(total, k, key, np.uint64(nth) << S40, table, found)
        for i in range(k):
            chosen[i] = _holder(before, found[i])
        return k, False
    copy(base, total, cards)
    steps = min(k, total - k)
    shuffle(cards, total, 0, steps, key, np.uint64(nth) << S40)
    copy(cards, steps, chosen)
    return steps, steps < k


@compiled
def _end_round(part, members, y0, first, total, squares, crossed):  # type: ignore[no-untyped-def]
    """Add the sums of a round, less what they would be at the means of the first, to the sums over rounds."""
    for i in range(len(part)):
        if first:
            y0[i] = part[i] / members
        excess = part[i] - members * y0[i]
        total[i] += excess
        squares[i] += excess * excess
        crossed[i] += members * excess
        part[i] = 0.0


@compiled
def _divided(y, Z, normalise, least):  # type: ignore[no-untyped-def]
    """Divide the gains by Z, or make them 0 where there is no best order; return whether that is so."""
    if not normalise:
        return False
    none = not least < Z
    factor = 0.0 if none else 1.0 / Z
    for i in range(len(y)):
        y[i] *= factor
    return none


@compiled
def level_table(length, c0):  # type: ignore[no-untyped-def]
    """The logarithms of x/2 + c0, x = 0 … length − 1, as integers at each of the shifts."""
    table = np.empty((len(SHIFTS), length), np.int64)
    for row in range(len(SHIFTS)):
        for x in range(length):
            table[row, x] = _level(x, c0, SHIFTS[row])
    return table


@compiled
def _sizes(codes, way, k, member_start, start, count):  # type: ignore[no-untyped-def]
    """The most items, distinct judgments and held cards of the queries."""
    widest, most, longest = 1, 1, 1
    for q in codes:
        widest = max(widest, member_start[q + 1] - member_start[q])
        most = max(most, start[q + 1] - start[q])
        cards = k if way[q] == COLLECTED else 1
        if way[q] == BLOCKS or way[q] == SHUFFLED:
            for j in range(start[q], start[q + 1]):
                cards += count[j]
        longest = max(longest, cards)
    return widest, most, longest


@compiled
def _mean_and_error(y0, total, squares, crossed, units, members, draws, value, error):  # type: ignore[no-untyped-def]
    """The mean over draws and its standard error from sums over rounds; ``members``: draws of each round, squared."""
    scale = units / max(units - 1, 1) / np.float64(draws) ** 2
    for i in range(len(value)):
        excess = total[i] / draws
        spread = squares[i] - 2 * excess * crossed[i] + excess * excess * members
        value[i] = y0[i] + excess
        error[i] = math.sqrt(max(spread, 0.0) * scale) if units > 1 else 0.0


@compiled
def mean_gains(  # type: ignore[no-untyped-def]
    codes, way, precision, k, subsets, key, member_start, member, place, start, winner, loser, tied, count,
    c0, levels, kind, scale, normalise, least, inverse, ahead, value, error, zero,
):  # fmt: skip
    """Fill in mean targets, their Monte Carlo errors and the number of subsets with Z ≤ least of the queries ``codes``.

    ``way`` and ``precision`` (an index into SHIFTS) have an entry for each query; ``place`` is scratch, an entry for
    each item; ``levels`` is ``level_table``; gains are of ``scale`` times the score; ``ahead`` are the sums of
    ``inverse`` before each position.
    """
    widest, most, longest = _sizes(codes, way, k, member_start, start, count)
    table, number = np.empty(table_size(max(most, longest)), np.int64), np.empty(table_size(most), np.int32)
    sides = np.empty((3, most), np.int32)
    before_all = np.zeros(most + 1, np.int64)
    base, cards, chosen = np.empty(longest, np.int32), np.empty(longest, np.int32), np.empty(longest, np.int32)
    found = np.empty(longest, np.int64)
    cells, all_cells = np.empty(2 * most, np.int64), np.empty(2 * most, np.int64)
    scores, sums = np.empty((2, widest), np.int64), np.empty((6, widest))
    order, bucket = np.empty(widest, np.int32), np.empty(widest, np.int32)
    counts, first = np.empty(table_size(widest), np.int32), np.empty(table_size(widest), np.int64)
    shared = np.empty(table_size(widest))
    for q in codes:
        nodes = slice(member_start[q], member_start[q + 1])
        m = nodes.stop - nodes.start
        if m == 0:
            continue
        for i in range(m):
            place[member[nodes.start + i]] = i
        here = slice(start[q], start[q + 1])
        many, tie = count[here], tied[here]
        up, win, lose = sides[0, : len(many)], sides[1, : len(many)], sides[2, : len(many)]
        pairs = _pairs(winner[here], loser[here], place, m, table, number, up, win, lose)
        before = before_all[: len(many) + 1]
        with_ties, expand = False, way[q] == BLOCKS or way[q] == SHUFFLED
        for j in range(len(many)):
            before[j + 1] = before[j] + many[j]
            with_ties |= tie[j]
            for at in range(before[j], before[j + 1] if expand else before[j]):
                base[at] = j
        score, all_score = scores[0, :m], scores[1, :m]
        y, y0, part, total, squares, crossed = (
            sums[0, :m],
            sums[1, :m],
            sums[2, :m],
            sums[3, :m],
            sums[4, :m],
            sums[5, :m],
        )
        for row in (part, total, squares, crossed):
            fill(row, m, 0.0)
        shift, level = SHIFTS[precision[q]], levels[precision[q]]
        unit = scale * 2.0**-shift / max(m - 1, 1)
        _whole_scores(many, up, win, lose, tie, pairs, c0, shift, all_cells, all_score)
        draws = 1 if way[q] == WHOLE else subsets
        rounds = before[-1] // k if way[q] == BLOCKS else 1
        per_unit = rounds if draws > rounds else 1
        units, in_unit, members = 0, 0, 0
        for nth in range(draws):
            taken, left_out = 0, True
            if way[q] != WHOLE:
                held = table[: table_size(min(k, longest))]
                taken, left_out = _draw(nth, way[q], k, rounds, key[q], base, cards, before, held, found, chosen)
            if left_out:
                copy(all_cells, 2 * pairs, cells)
                copy(all_score, m, score)
            else:
                fill(cells, 2 * pairs, 0)
                fill(score, m, 0)
            sign = -2 if left_out else 2
            if with_ties:
                _add_ties_too(chosen, taken, sign, up, win, lose, tie, level, cells, score)
            else:
                _add_wins(chosen, taken, sign, up, win, lose, level, cells, score)
            buckets = counts[: table_size(m)]
            Z = _gains(m, score, unit, kind, inverse, ahead, bucket, buckets, first, shared, order, y)
            zero[q] += _divided(y, Z, normalise, least)
            for i in range(m):
                part[i] += y[i]
            in_unit += 1
            if in_unit == per_unit or nth == draws - 1:
                _end_round(part, in_unit, y0, units == 0, total, squares, crossed)
                units += 1
                members += in_unit * in_unit
                in_unit = 0
        _mean_and_error(y0, total, squares, crossed, units, members, draws, value[nodes], error[nodes])


@compiled
def centred_rows(X, rows, start, first, last, root, out, level):  # type: ignore[no-untyped-def]
    """Fill out with root_q (x − mean of x over the query) for the nodes of queries first … last − 1.

    The twin is in ``concordant.learning.solvers.least_squares``. Shapes: ``rows`` (nodes,) the row of X of
    each node, ``start`` (queries + 1,), ``root`` (queries,) in X's precision, as ``out`` (nodes of these queries,
    columns). Means are summed in float64, as what exceeds the query's first row: nothing is left of a constant column.
    ``level`` (columns,) gains Σ root² mean² over the nodes of the queries where the column is not constant.
    """
    width = X.shape[1]
    base, sums, mean = np.empty(width), np.empty(width), np.empty(width, out.dtype)
    for q in range(first, last):
        size = start[q + 1] - start[q]
        if size == 0:
            continue
        for column in range(width):
            base[column] = X[rows[start[q]], column]
            sums[column] = 0.0
        for node in range(start[q], start[q + 1]):
            row = rows[node]
            for column in range(width):
                sums[column] += X[row, column] - base[column]
        for column in range(width):
            middle = base[column] + sums[column] / size
            mean[column] = middle
            if sums[column] != 0.0:
                level[column] += root[q] * root[q] * size * middle * middle
        for node in range(start[q], start[q + 1]):
            row, at = rows[node], node - start[first]
            for column in range(width):
                out[at, column] = (X[row, column] - mean[column]) * root[q]
