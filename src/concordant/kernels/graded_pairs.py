"""Losses of all pairs of graded lists without a pass over the pairs: sweeps of sorted scores, factors of exponentials.

For the hinges grades are compared bit by bit: each pair of ranks differs first at one bit, so ⌈log2 grades⌉ sweeps of
two classes meet every pair once. Sums grow by positive terms only, so nothing cancels.
"""

from __future__ import annotations

import math

import numpy as np

from concordant.kernels.compiled import compiled


@compiled
def hinge_pairs(score, rank, grade, start, bits, square, differ, value, gradient):  # type: ignore[no-untyped-def]
    """Add Σ w max(0, 1 − (α_i − α_j))^(1 or 2) over rank_i > rank_j to value and gradient.

    Each query is sorted by score; w = 1, or grade_i − grade_j with ``differ``. Shapes: value (queries,), start
    (queries + 1,), the others (items,).
    """
    for q in range(len(start) - 1):
        n = start[q + 1] - start[q]
        at = np.arange(start[q], start[q + 1])
        held = np.empty(n, at.dtype)
        for bit in range(bits - 1, -1, -1):
            begin = 0
            while begin < n:
                head = rank[at[begin]] >> (bit + 1)
                end, low = begin, begin
                while end < n and rank[at[end]] >> (bit + 1) == head:
                    low += 1 - ((rank[at[end]] >> bit) & 1)
                    end += 1
                if begin < low < end:
                    a, b = begin, low  # losers to the front, winners behind, each still sorted
                    for e in range(begin, end):
                        if (rank[at[e]] >> bit) & 1:
                            held[b] = at[e]
                            b += 1
                        else:
                            held[a] = at[e]
                            a += 1
                    for e in range(begin, end):
                        at[e] = held[e]
                    value[q] += _sweep(score, grade, at, begin, low, end, square, differ, gradient)
                begin = end


@compiled
def _sweep(score, grade, at, begin, low, end, square, differ, gradient):  # type: ignore[no-untyped-def]
    """Losers at[begin:low] against winners at[low:end]. w = (grade_i − level) + (level − grade_j), both of one sign."""
    level = grade[at[low]]
    for e in range(low, end):
        level = min(level, grade[at[e]])
    total = 0.0
    count, short, squares = 0.0, 0.0, 0.0  # losers within reach: Σ 1, Σ d, Σ d² with d = 1 − (α_i − α_j)
    wcount, wshort, wsquares = 0.0, 0.0, 0.0  # the same times level − grade_j
    p, last = low - 1, score[at[end - 1]]
    for e in range(end - 1, low - 1, -1):
        i = at[e]
        step = last - score[i]
        last = score[i]
        squares += step * (2.0 * short + step * count)
        short += step * count
        wsquares += step * (2.0 * wshort + step * wcount)
        wshort += step * wcount
        while p >= begin and score[i] - score[at[p]] < 1.0:
            d = 1.0 - (score[i] - score[at[p]])
            count, short, squares = count + 1.0, short + d, squares + d * d
            if differ:
                w = level - grade[at[p]]
                wcount, wshort, wsquares = wcount + w, wshort + w * d, wsquares + w * d * d
            p -= 1
        u = grade[i] - level if differ else 1.0
        if square:
            total += u * squares + wsquares
            gradient[i] -= 2.0 * (u * short + wshort)
        else:
            total += u * short + wshort
            gradient[i] -= u * count + wcount
    count, short, wcount, wshort = 0.0, 0.0, 0.0, 0.0
    p, last = low, score[at[begin]]
    for e in range(begin, low):
        j = at[e]
        step = score[j] - last
        last = score[j]
        short += step * count
        wshort += step * wcount
        while p < end and score[at[p]] - score[j] < 1.0:
            d = 1.0 - (score[at[p]] - score[j])
            u = grade[at[p]] - level if differ else 1.0
            wcount, wshort = wcount + u, wshort + u * d
            count, short = count + 1.0, short + d
            p += 1
        v = level - grade[j] if differ else 0.0
        gradient[j] += 2.0 * (v * short + wshort) if square else v * count + wcount
    return total


@compiled
def exponential_pairs(score, rank, grade, start, differ, value, gradient):  # type: ignore[no-untyped-def]
    """Add Σ w e^(α_j − α_i) over rank_i > rank_j; each query is sorted by rank. Sums are scaled by their largest
    term, so only a loss beyond the range of floats overflows."""
    for q in range(len(start) - 1):
        at = np.arange(start[q], start[q + 1])
        value[q] += _factors(score, rank, grade, at, 1.0, differ, gradient)
        _factors(score, rank, grade, at[::-1], -1.0, differ, gradient)


@compiled
def _factors(score, rank, grade, at, sign, differ, gradient):  # type: ignore[no-untyped-def]
    """From the lowest grade up (sign 1) the winners' side of each pair; from the highest down (sign −1) the losers'."""
    total, n, begin = 0.0, len(at), 0
    top, mass, wmass = -np.inf, 0.0, 0.0  # Σ e^(±α − top) of the grades passed, and the same times the grades' distance
    while begin < n:
        end = begin
        while end < n and rank[at[end]] == rank[at[begin]]:
            end += 1
        if begin > 0:
            wmass += abs(grade[at[begin]] - grade[at[begin - 1]]) * mass
            for e in range(begin, end):
                part = (wmass if differ else mass) * np.exp(top - sign * score[at[e]])  # may be infinite
                total += part
                gradient[at[e]] -= sign * part
        for e in range(begin, end):
            x = sign * score[at[e]]
            if x > top:
                shrink = math.exp(top - x)
                mass, wmass, top = mass * shrink, wmass * shrink, x
            mass += math.exp(x - top)
        begin = end
    return total


def _logistic_plainly(score, rank, grade, start, differ, value, gradient):  # type: ignore[no-untyped-def]
    """The twin of ``logistic_pairs``: an item with all of lower grades."""
    for q in range(len(start) - 1):
        here = slice(start[q], start[q + 1])
        lower = np.searchsorted(rank[here], rank[here])
        for i in range(here.stop - here.start):
            others = slice(here.start, here.start + lower[i])
            gap = score[here.start + i] - score[others]
            w = grade[here.start + i] - grade[others] if differ else 1.0
            z = np.exp(-np.abs(gap))
            value[q] += (w * (np.log1p(z) + np.maximum(-gap, 0.0))).sum()
            slope = w * np.where(gap > 0, z, 1.0) / (1.0 + z)
            gradient[others] += slope
            gradient[here.start + i] -= slope.sum()


@compiled(twin=_logistic_plainly)
def logistic_pairs(score, rank, grade, start, differ, value, gradient):  # type: ignore[no-untyped-def]
    """Add Σ w log(1 + e^(α_j − α_i)) over rank_i > rank_j, pair by pair; each query is sorted by rank."""
    for q in range(len(start) - 1):
        at = np.arange(start[q], start[q + 1])
        total, lower = 0.0, 0
        for e in range(len(at)):
            i = at[e]
            if rank[i] != rank[at[lower]]:
                lower = e
                while lower > 0 and rank[at[lower - 1]] == rank[i]:
                    lower -= 1
            pull = 0.0
            for f in range(lower):
                j = at[f]
                w = grade[i] - grade[j] if differ else 1.0
                gap = score[i] - score[j]
                z = math.exp(-abs(gap))
                total += w * (math.log1p(z) + max(-gap, 0.0))
                slope = w * (z if gap > 0 else 1.0) / (1.0 + z)
                pull += slope
                gradient[j] += slope
            gradient[i] -= pull
        value[q] += total
