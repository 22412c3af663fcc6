"""How many times the data would settle a top set: from draws of the scores' errors.

Let s be the scores, V their covariance, T the first k places. With c times the data the errors are N(0, V/c).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

__all__ = ["errors", "least_multiples", "multiple_at", "multiple_with_truth_unknown", "range_of_multiples"]

Floats = NDArray[np.float64]
Draws = NDArray[np.float32]
STEPS = 5
"""Most steps towards the multiple, between 1 and the largest."""
CLOSE = 0.3
"""Logarithms of two multiples so near each other are interpolated between."""


def errors(covariance: Floats, normal: Draws) -> Draws:
    """Draws from N(0, covariance), up to a shift of all items, for a stack; shape (G, draws, n).

    ``covariance`` (G, n, n), ``normal`` (draws, n). A shift is added to make the matrix definite: no difference of two
    items sees it.
    """
    n = covariance.shape[1]
    scale = np.einsum("gii->g", covariance) / n
    scale = np.where(scale > 0, scale, 1.0)
    lifted = covariance + scale[:, None, None]
    np.einsum("gii->gi", lifted)[:] += 1e-9 * scale[:, None]
    try:
        root = np.linalg.cholesky(lifted)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(lifted)
        root = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    return np.asarray(normal @ root.astype(np.float32).swapaxes(1, 2))


def least_multiples(value: Floats, error: Draws, inside: NDArray[np.bool_]) -> Floats:
    """For each draw the least √c from which on s + error/√c has the same top set; shape (G, draws).

    √c = max over i in T, j not in T of (e_j − e_i)/(s_i − s_j), at least 0; found by Dinkelbach's iteration (Management
    Science 13, 1967): the ratio at the pair that is most in the wrong at the present √c, until that is right.
    ``value`` (G, n), ``error`` (G, draws, n), ``inside`` (G, n), everything inside at least as large as outside.
    """
    graphs, draws, n = error.shape
    root = np.zeros(graphs * draws, np.float32)
    flat = error.reshape(-1, n)
    value = value.astype(np.float32)
    within = np.where(inside, np.float32(0), np.float32(np.inf))
    without = np.where(inside, np.float32(-np.inf), np.float32(0))
    active = np.arange(len(root))
    for step in range(60):
        graph, each = active // draws, np.arange(len(active))
        own, s = flat if step == 0 else flat[active], value[graph]
        now = root[active, None] * s + own
        low, high = (now + within[graph]).argmin(axis=1), (now + without[graph]).argmax(axis=1)
        gap, lead = s[each, low] - s[each, high], own[each, high] - own[each, low]
        with np.errstate(divide="ignore", invalid="ignore"):
            new = np.where(gap > 0, lead / gap, np.where(lead > 0, np.inf, 0.0)).astype(np.float32)
        grown = new > root[active] * np.float32(1 + 1e-6)
        root[active] = np.maximum(new, root[active])
        active = active[grown & np.isfinite(new)]
        if not len(active):
            break
    return root.reshape(graphs, draws).astype(np.float64)


def multiple_at(root: Floats, level: float) -> Floats:
    """The c at which a share ``level`` of the draws is right: the squared quantile, rounded up; shape (G,)."""
    draws = root.shape[1]
    place = min(int(np.ceil(level * (draws + 1))), draws) - 1
    return np.asarray(np.sort(root, axis=1)[:, place] ** 2)


def range_of_multiples(multiple: Floats, level: float, share: float) -> tuple[Floats, Floats]:
    """The multiple if the gap were at the ends of its two-sided interval of probability ``share``.

    A gap of t standard errors needs c = (z/t)², z the normal quantile of ``level``; c read backwards gives an effective
    t for the whole boundary, and t ± z_share gives the ends (infinite where t − z_share ≤ 0).
    """
    z, spread = float(ndtri(level)), float(ndtri(0.5 + share / 2))
    with np.errstate(divide="ignore"):
        t = z / np.sqrt(multiple)
        high = np.where(t > spread, (z / np.maximum(t - spread, 1e-150)) ** 2, np.inf)
        return np.where(np.isinf(t), 0.0, (z / (t + spread)) ** 2), high


def multiple_with_truth_unknown(value: Floats, now: Draws, later: Draws, top: int, level: float, most: float) -> Floats:
    """The c with which the set then found is right with probability ``level`` whatever the truth may be; shape (G,).

    Given the data the true scores are about N(s, V). With c times the data the scores will be s' = s + √(1 − 1/c) η and
    the truth s' + ν/√c, with η, ν independent N(0, V) (``now``, ``later``): c is the least for which both have the same
    top set with the probability asked for; inf beyond ``most``. The chance of a wrong set falls like a power of c, so
    the root is sought by interpolation on logarithmic scales, in the bracket that is known.
    """
    scores = value.astype(np.float32)
    floor = 0.25 / now.shape[1]
    target = np.log(1.0 - level)

    def wrong(c: Floats, rows: NDArray[np.int64]) -> Floats:
        if len(rows) == len(scores):
            agreed = _agreement(scores, now, later, top, c)
        else:
            agreed = _agreement(scores[rows], now[rows], later[rows], top, c)
        return np.asarray(np.log(np.maximum(1.0 - agreed, floor)))

    everyone = np.arange(len(value))
    low, high = np.zeros(len(value)), np.full(len(value), np.log(most))
    at_low, at_high = wrong(np.exp(low), everyone), wrong(np.exp(high), everyone)
    settled, never = at_low <= target, at_high > target
    for step in range(STEPS):
        rows = np.flatnonzero(~settled & ~never & (high - low > CLOSE))
        if not len(rows):
            break
        share = (at_low[rows] - target) / np.maximum(at_low[rows] - at_high[rows], 1e-12)
        share = np.clip(share, 0.1, 0.9) if step % 2 == 0 else 0.5
        middle = low[rows] + share * (high[rows] - low[rows])
        found = wrong(np.exp(middle), rows)
        enough = found <= target
        high[rows[enough]], at_high[rows[enough]] = middle[enough], found[enough]
        low[rows[~enough]], at_low[rows[~enough]] = middle[~enough], found[~enough]
    share = np.clip((at_low - target) / np.maximum(at_low - at_high, 1e-12), 0.0, 1.0)
    answer = np.exp(low + share * (high - low))
    return np.where(never, np.inf, np.where(settled, 1.0, answer))


def _agreement(value: Draws, now: Draws, later: Draws, top: int, multiple: Floats) -> Floats:
    """Probability that found and true top set are the same with so many times the data; shape (G,)."""
    c = multiple[:, None, None].astype(np.float32)
    found = value[:, None, :] + np.sqrt(np.maximum(1.0 - 1.0 / c, 0.0)) * now
    true = found + later / np.sqrt(c)
    if top == 1:
        return np.asarray((found.argmax(axis=2) == true.argmax(axis=2)).mean(axis=1))
    least = -np.partition(-found, top - 1, axis=2)[:, :, top - 1 : top]
    chosen = found >= least
    inner = np.where(chosen, true, np.inf).min(axis=2)
    return np.asarray((inner > np.where(chosen, -np.inf, true).max(axis=2)).mean(axis=1))
