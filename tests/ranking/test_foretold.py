"""Judgments foretold before their time: the filter against its formula, minimised and integrated by brute force."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import concordant as cc
from concordant.preferences.preferences import Comparisons
from concordant.ranking.foretold import foretold


def votes_of(**more: Any) -> Comparisons:
    columns: dict[str, Any] = {
        "winner": ["a", "a", "b", "c", "c", "a", "d"], "loser": ["b", "c", "c", "a", "b", "b", "a"],
        "time": [0, 0, 1, 1, 3, 3, 7], "tie": [False, True, False, False, False, True, False],
        "covariates": {"home": [1.0, -1.0, 0.0, 1.0, -1.0, 1.0, 0.0]},
    }  # fmt: skip
    made = cc.Preferences.from_comparisons(**{**columns, **more})
    assert isinstance(made, Comparisons)
    return made


def log_chance(state: Any, row: dict[str, Any], davidson: bool) -> float:
    """Of the winner named, or a tie; the state holds a, b, c, d, home and log ν."""
    place = dict(zip("abcd", range(4), strict=True))
    margin = state[place[row["winner"]]] - state[place[row["loser"]]] + row["home"] * state[4]
    if davidson:
        total = np.log(np.exp(margin / 2) + np.exp(-margin / 2) + np.exp(state[5]))
        return float((state[5] if row["tie"] else margin / 2) - total)
    won, lost = -np.log1p(np.exp(-margin)), -np.log1p(np.exp(margin))
    return float((won + lost) / 2 if row["tie"] else won)


@pytest.mark.parametrize("ties", ["half", "davidson"])
def test_each_time_is_the_maximum_of_what_was_known_and_judged(ties: str) -> None:
    votes, davidson = votes_of(), ties == "davidson"
    known = cc.rank_over_time(votes, prior=0.8, drift=0.6, ties=ties)
    said = foretold(votes, known).to_pylist()
    assert [row["time"] for row in said] == sorted(row["time"] for row in said)
    keys = zip([0, 0, 1, 1, 3, 3, 7], "aabccad", "bccabba", strict=True)
    homes = dict(zip(keys, [1.0, -1.0, 0.0, 1.0, -1.0, 1.0, 0.0], strict=True))
    for row in said:
        row["home"] = homes[row["time"], row["winner"], row["loser"]]
    extras = 1 + davidson
    mean = np.concatenate([np.zeros(4), known.fit.beta])
    covariance = np.eye(4 + extras) / 0.8  # who has not played yet is as sure as the prior
    covariance[4:, 4:] = known.fit.coefficients
    last, played = 0.0, set[str]()
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    for time in (0.0, 1.0, 3.0, 7.0):
        rows = [row for row in said if row["time"] == time]
        for item in played:
            covariance["abcd".index(item), "abcd".index(item)] += 0.36 * (time - last)
        for row in rows:
            along = np.zeros(4 + extras)
            along["abcd".index(row["winner"])], along["abcd".index(row["loser"])], along[4] = 1, -1, row["home"]
            spread = np.sqrt(along @ covariance @ along)
            log_nu = mean[5] if davidson else -np.inf
            margin = along @ mean + spread * nodes
            total = np.exp(margin / 2) + np.exp(-margin / 2) + np.exp(log_nu)
            assert row["win"] == pytest.approx(np.exp(margin / 2) / total @ weights / weights.sum(), abs=1e-6)
            if davidson:
                assert row["tie_probability"] == pytest.approx(
                    np.exp(log_nu) / total @ weights / weights.sum(), abs=1e-6
                )
            played |= {row["winner"], row["loser"]}
        inverse, before = np.linalg.inv(covariance), mean

        def lost(x: Any, inverse: Any = inverse, before: Any = before, rows: Any = rows) -> float:
            return float(
                0.5 * (x - before) @ inverse @ (x - before) - sum(log_chance(x, row, davidson) for row in rows)
            )

        mean = minimize(lost, before, method="BFGS", options={"gtol": 1e-9}).x
        size, h = len(mean), 1e-3
        curvature = np.empty((size, size))
        for i in range(size):
            for j in range(size):
                e, f = np.eye(size)[i] * h, np.eye(size)[j] * h
                ends = lost(mean + e + f) - lost(mean + e - f) - lost(mean - e + f) + lost(mean - e - f)
                curvature[i, j] = ends / (4 * h * h)
        covariance, last = np.linalg.inv(curvature), time


def test_what_cannot_be_foretold_is_said() -> None:
    known = cc.rank_over_time(votes_of(), prior=1.0, drift=0.5)
    for votes in (votes_of(covariates=None), votes_of(time=[f"2026-01-0{at}" for at in range(1, 8)])):
        with pytest.raises(cc.UsageError, match="the covariates and the kind of times"):
            foretold(votes, known)
    with pytest.raises(cc.UsageError, match="of one query"):
        foretold(votes_of(query=list("uuuvvvv")), known)
