"""Choices that may tie: sums over all sets of a few sizes, by elementary symmetric polynomials of what is left."""

from __future__ import annotations

import math

import numpy as np

from concordant.kernels.compiled import compiled


@compiled
def _list(score, tier, choice, order, part, level, weight, along, tilt, out, held):  # type: ignore[no-untyped-def]
    """Add one list's value, gradient and products; what ``tied_choices`` does for each of its lists.

    S[i, c] = Σ over the sets of c among the entries i, i + 1, … of the product of their a = e^(score/d), for each size
    d: S[i, c] = S[i + 1, c] + a_i S[i + 1, c − 1]. The derivatives run through the same sums backwards.
    """
    entries, sizes, tiers = len(score), len(order), len(tier) - 1
    gradient, product, spread, of_size, along_size, spread_size = out
    width = 0
    for k in range(sizes):
        width += order[k] + 1
    S, dS, a, total, change, back, bend = held
    begin = 0
    for k in range(sizes):
        d = order[k]
        S[entries, begin : begin + d + 1] = 0.0
        dS[entries, begin : begin + d + 1] = 0.0
        S[entries, begin] = 1.0
        for i in range(entries - 1, -1, -1):
            a[k, i] = math.exp(score[i] / d)
            da = a[k, i] * along[i] / d
            S[i, begin], dS[i, begin] = 1.0, 0.0
            for c in range(begin + 1, begin + d + 1):
                S[i, c] = S[i + 1, c] + a[k, i] * S[i + 1, c - 1]
                dS[i, c] = dS[i + 1, c] + a[k, i] * dS[i + 1, c - 1] + da * S[i + 1, c - 1]
        begin += d + 1
    value = 0.0
    for t in range(tiers):
        first, chosen = tier[t], choice[t]
        end, total[t], change[t] = 0, 0.0, 0.0
        for k in range(sizes):
            end += order[k] + 1
            if part[k] == part[chosen]:
                total[t] += math.exp(level[k]) * S[first, end - 1]
                change[t] += math.exp(level[k]) * (tilt[k] * S[first, end - 1] + dS[first, end - 1])
        change[t] /= total[t]
        value += weight * (level[chosen] - math.log(total[t]))
        of_size[chosen] += weight
        for i in range(first, tier[t + 1]):
            value += weight * score[i] / order[chosen]
            gradient[i] += weight / order[chosen]
    begin = 0
    for k in range(sizes):
        d = order[k]
        back[: d + 1], bend[: d + 1] = 0.0, 0.0
        t = 0
        for i in range(entries):
            if t < tiers and tier[t] == i:
                if part[k] == part[choice[t]]:
                    pull = weight * math.exp(level[k]) / total[t]
                    share = pull * S[i, begin + d] / weight
                    rise = pull * dS[i, begin + d] + weight * share * (tilt[k] - change[t])
                    back[d] += pull
                    bend[d] += pull * (tilt[k] - change[t])
                    of_size[k] -= weight * share
                    along_size[k] += rise
                    spread_size[k] += weight * share * (1.0 - share)
                t += 1
            mine = turn = 0.0
            da = along[i] / d
            for c in range(1, d + 1):
                mine += back[c] * S[i + 1, begin + c - 1]
                turn += bend[c] * S[i + 1, begin + c - 1] + back[c] * dS[i + 1, begin + c - 1]
            gradient[i] -= mine * a[k, i] / d
            product[i] += (turn + mine * da) * a[k, i] / d
            spread[i] += mine * a[k, i] / (d * d)
            for c in range(d):
                bend[c] += a[k, i] * (bend[c + 1] + da * back[c + 1])
                back[c] += a[k, i] * back[c + 1]
        begin += d + 1
    return value


@compiled
def _scratch(start, size_start, order, first, last):  # type: ignore[no-untyped-def]
    """Room for what ``_list`` computes of any of the lists first … last − 1."""
    most = wide = many = deep = 0
    for row in range(first, last):
        width = 0
        for d in order[size_start[row] : size_start[row + 1]]:
            width, deep = width + d + 1, max(deep, d + 1)
        most, wide = max(most, start[row + 1] - start[row]), max(wide, width)
        many = max(many, size_start[row + 1] - size_start[row])
    sums = (np.zeros((most + 1, wide)), np.zeros((most + 1, wide)), np.zeros((many, most)))
    return (*sums, np.zeros(most), np.zeros(most), np.zeros(deep), np.zeros(deep))


@compiled
def tied_choices(start, score, tier_start, tier, choice, size_start, order, part, level, weight, along, tilt, first, last, value, gradient, product, spread, of_size, along_size, spread_size):  # type: ignore[no-untyped-def] # fmt: skip # noqa: E501
    """Fill the log-likelihood of lists first … last − 1, its gradient, and what the information does to a vector.

    Each tier is chosen among the entries from its own on: a set of size d with probability ∝ δ_d Π e^(score/d). Of
    lists without weight nothing is filled.
    Shapes: start, tier_start, size_start (lists + 1,); score, along, gradient, product, spread (entries,): ``spread``
    is an upper bound of the diagonal; tier (tiers + lists,) where each begins, and the list's end; choice (tiers,)
    which of the list's sizes; order, part, level = log δ, tilt, of_size, along_size, spread_size (sizes of each list,):
    sizes of different parts are never available together.
    """
    held = _scratch(start, size_start, order, first, last)
    for row in range(first, last):
        if weight[row] == 0.0:
            continue
        e, s = slice(start[row], start[row + 1]), slice(size_start[row], size_start[row + 1])
        t = slice(tier_start[row] + row, tier_start[row + 1] + row + 1)
        out = (gradient[e], product[e], spread[e], of_size[s], along_size[s], spread_size[s])
        value[row] = _list(
            score[e], tier[t], choice[tier_start[row] : tier_start[row + 1]], order[s], part[s], level[s], weight[row],
            along[e], tilt[s], out, held,
        )  # fmt: skip


@compiled
def tied_information(start, score, tier_start, tier, choice, size_start, order, part, level, weight, rows, block, cells):  # type: ignore[no-untyped-def] # fmt: skip # noqa: E501
    """Fill the information of some lists in blocks: its entries, then its sizes, row by row; arguments as above."""
    held = _scratch(start, size_start, order, rows[0], rows[-1] + 1)
    for place in range(len(rows)):
        row = rows[place]
        e, s = slice(start[row], start[row + 1]), slice(size_start[row], size_start[row + 1])
        t = slice(tier_start[row] + row, tier_start[row + 1] + row + 1)
        entries, sizes = start[row + 1] - start[row], size_start[row + 1] - size_start[row]
        both = entries + sizes
        for one in range(both):
            unit = np.zeros(both)
            unit[one] = 1.0
            found, rest, more = np.zeros(both), np.zeros(both), np.zeros(both)
            out = (rest[:entries], found[:entries], more[:entries], rest[entries:], found[entries:], more[entries:])
            _list(
                score[e], tier[t], choice[tier_start[row] : tier_start[row + 1]], order[s], part[s], level[s],
                weight[row], unit[:entries], unit[entries:], out, held,
            )  # fmt: skip
            cells[block[place] + one * both : block[place] + (one + 1) * both] = found
