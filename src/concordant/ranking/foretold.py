"""Judgments foretold before their time: abilities that move, filtered forward, each time with what was known before it.

The state holds the abilities of all items and the coefficients (home side, log ν of ties), normal with mean m and
covariance P. From a time to the next P grows by drift² Δt on the diagonal of the abilities. The judgments of a time are
first foretold, P(win) = E[P(win | margin)]; then m is moved to the maximum of their log-likelihood less the normal
penalty, and P by its curvature there:

    m ← m + P_S g,      P ← P − P_S J (1 + P_SS J)⁻¹ P_Sᵀ

with the gradient g and the curvature J of the log-likelihood by the states S that the judgments touch (Fahrmeir,
Journal of the American Statistical Association 87, 1992: the posterior mode filter, all items jointly).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from concordant.errors import UsageError
from concordant.preferences.preferences import Comparisons
from concordant.preferences.times import as_times
from concordant.ranking.over_time import Paths, chances
from concordant.ranking.problem import davidson_derivatives, win_derivatives

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MOST = 5_000
"""Items whose covariance is kept whole."""


def foretold(votes: Comparisons, known: Paths) -> pa.Table:
    """Return each distinct judgment with what was said of it before its time, in order of time.

    ``known`` gives prior, drift, treatment of ties, and where the coefficients begin; its abilities are not used.
    Columns: time, winner, loser, tie, count, win, tie_probability (with Davidson's ties) and loss, of the winner.

    Errors: UsageError for other covariates than those of ``known``, more than 5,000 items, several queries.
    """
    if votes.covariate_names != known.prefs.covariate_names or votes.dated != known.prefs.dated:
        raise UsageError("judgments to be foretold need the covariates and the kind of times of the fit")
    if len(votes.queries) != 1 or len(votes.items) > MOST or votes.time is None:
        raise UsageError(f"judgments of one query are foretold, with times, of up to {MOST:,} items")
    items, extras, davidson = len(votes.items), len(known.fit.beta), known.ties == "davidson"
    sorter = np.argsort(votes.time, kind="stable")
    time, one, other = votes.time[sorter], votes.winner[sorter].astype(np.int64), votes.loser[sorter].astype(np.int64)
    z = np.zeros((len(sorter), 0)) if votes.covariates is None else np.asarray(votes.covariates)[sorter]
    tie = np.zeros(len(sorter), bool) if votes.tie is None else votes.tie[sorter]
    strength = votes.count[sorter].astype(np.float64) * (1.0 if votes.weight is None else votes.weight[sorter])
    mean, covariance = np.zeros(items + extras), np.zeros((items + extras, items + extras))
    mean[items:], covariance[items:, items:] = known.fit.beta, known.fit.coefficients
    born, diagonal = np.zeros(items, bool), np.arange(items)
    cuts = np.flatnonzero(np.diff(time, prepend=-np.inf))
    said: list[dict[str, Floats]] = []
    for begin, end in zip(cuts, [*cuts[1:], len(time)], strict=True):
        if begin:
            alive = diagonal[born]
            covariance[alive, alive] += known.drift**2 * (time[begin] - time[begin - 1])
        rows = slice(begin, end)
        new = np.setdiff1d(np.concatenate([one[rows], other[rows]]), diagonal[born])
        covariance[new, new], born[new] = 1.0 / known.prior, True
        touched = np.unique(np.concatenate([one[rows], other[rows], np.arange(items, items + extras)]))
        design = np.zeros((end - begin, len(touched)))
        place = np.arange(end - begin)
        design[place, np.searchsorted(touched, one[rows])] = 1.0
        design[place, np.searchsorted(touched, other[rows])] = -1.0
        design[:, len(touched) - extras : len(touched) - extras + z.shape[1]] = z[rows]
        inner = covariance[np.ix_(touched, touched)]
        variance = ((design @ inner) * design).sum(axis=1)
        log_nu = float(mean[-1]) if davidson else None
        found = chances(design @ mean[touched], np.maximum(variance, 0.0), log_nu, known.level)
        said.append({name: found[name] for name in ("win", "tie", "loss") if name in found})
        at, gradient, curvature = _updated(mean[touched], inner, design, strength[rows], tie[rows], davidson)
        beside = covariance[:, touched]
        mean = mean + beside @ gradient
        mean[touched] = at
        half = np.linalg.solve(np.eye(len(touched)) + curvature @ inner, curvature)
        covariance -= beside @ (0.5 * (half + half.T)) @ beside.T
    columns = {name: np.concatenate([each[name] for each in said]) for name in said[0]}
    if davidson:
        columns["tie_probability"] = columns.pop("tie")
    names = votes.items
    table = {"time": as_times(time, votes.dated), "winner": names.take(one), "loser": names.take(other)}
    return pa.table(table | {"tie": tie, "count": votes.count[sorter], **columns})


def _updated(
    mean: Floats, inner: Floats, design: Floats, strength: Floats, tie: NDArray[np.bool_], davidson: bool
) -> tuple[Floats, Floats, Floats]:
    """Return the maximum by some judgments, and gradient and curvature of their log-likelihood there."""
    at = mean.copy()
    none = np.zeros(len(strength))
    for _ in range(50):
        margin = design @ at
        if davidson:
            wins, ties = np.where(tie, 0.0, strength), np.where(tie, strength, 0.0)
            log_nu = np.full(len(margin), at[-1])
            pull, curve, lean, cross, bend = davidson_derivatives(margin, log_nu, wins, none, ties)
        else:
            above, below = np.where(tie, 0.5 * strength, strength), np.where(tie, 0.5 * strength, 0.0)
            pull, curve = win_derivatives(margin, above, below)
        gradient = design.T @ pull
        curvature = design.T @ (curve[:, None] * design)
        if davidson:
            gradient[-1] += lean.sum()
            mixed = design.T @ cross
            curvature[-1] += mixed
            curvature[:, -1] += mixed
            curvature[-1, -1] += bend.sum()
        step = np.linalg.solve(np.eye(len(at)) + inner @ curvature, inner @ gradient - (at - mean))
        if np.abs(step).max() < 1e-9:
            break
        at = at + step * min(1.0, 5.0 / np.abs(step).max())
    return at, gradient, curvature
