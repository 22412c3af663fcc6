"""Win, draw or loss of national football teams, foretold before each match day and updated after it; needs the peers.

``python -m benchmarks.football RESULTS.csv``: concordant (abilities that move, filtered), Elo with Davidson's draws,
TrueSkill Through Time (its forward pass) and kickscore (fitted again, warm, before each match day; of the last
``--last`` days, 3236 for all: 17 minutes). All see the matches since ``--since``; what each has to choose it chooses by
those before ``--test``. Log-loss a match, and differences to concordant with 95% intervals from match days as clusters.
``pip install -r benchmarks/football-requirements.txt`` gets the peers.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit


def matches(path: str, since: str) -> dict[str, Any]:
    """Columns of the matches since a date, in order of time; result is 1, 0, −1 of the first team."""
    with open(path, encoding="utf-8") as lines:
        rows = [row for row in csv.DictReader(lines) if row["date"] >= since and row["home_score"].isdigit()]
    names = sorted({row[side] for row in rows for side in ("home_team", "away_team")})
    code = {name: at for at, name in enumerate(names)}
    found = {side: np.array([code[row[f"{side}_team"]] for row in rows]) for side in ("home", "away")}
    found["result"] = np.sign([int(row["home_score"]) - int(row["away_score"]) for row in rows])
    found["at_home"] = np.array([row["neutral"] != "TRUE" for row in rows], float)
    found["day"] = np.array([row["date"] for row in rows], "datetime64[D]").astype(int)
    order = np.argsort(found["day"], kind="stable")
    return {name: column[order] for name, column in found.items()} | {"teams": len(names)}


def tuned(lost: Callable[[Any], float], begin: list[float], evaluations: int) -> Any:
    """Nelder and Mead's minimum."""
    simplex = np.vstack([begin, begin + np.diag(np.full(len(begin), 0.4))])
    options = {"maxfev": evaluations, "xatol": 0.01, "fatol": 1e-5, "initial_simplex": simplex}
    return minimize(lost, begin, method="Nelder-Mead", options=options).x


def concordant(data: dict[str, Any], test: int) -> tuple[Any, Any]:
    """Prior, drift, home and ties by the marginal likelihood of the earlier years; then filtered through all."""
    import concordant as cc
    from concordant.ranking.foretold import foretold

    ahead = data["result"] >= 0
    side = np.where(ahead, 1.0, -1.0) * data["at_home"]
    columns = {
        "winner": np.where(ahead, data["home"], data["away"]), "loser": np.where(ahead, data["away"], data["home"]),
        "tie": data["result"] == 0, "time": data["day"],
    }  # fmt: skip
    early = data["day"] < test
    known = cc.rank_over_time(
        cc.Preferences.from_comparisons(
            **{name: column[early] for name, column in columns.items()}, covariates={"home": side[early]}
        ),
        ties="davidson",
    )
    votes: Any = cc.Preferences.from_comparisons(**columns, covariates={"home": side})
    said = foretold(votes, known)
    chance = np.where(said["tie"], said["tie_probability"], said["win"])
    keys = zip(*(np.array(said[name]).tolist() for name in ("time", "winner", "loser", "tie")), strict=True)
    table = {(day, *sorted((one, other)), one if not tie else -1): p
             for (day, one, other, tie), p in zip(keys, chance, strict=True)}  # fmt: skip
    rows = zip(*(columns[name].tolist() for name in ("time", "winner", "loser", "tie")), strict=True)
    found = [table[day, *sorted((one, other)), one if not tie else -1] for day, one, other, tie in rows]
    return -np.log(found), {"drift a year": known.drift * 365.25**0.5, "spread": known.prior**-0.5}


def elo(data: dict[str, Any], test: int) -> tuple[Any, Any]:
    """Ratings that move by k (result − expected); P by Davidson's draws at the margin with a home advantage."""
    columns = [data[name].tolist() for name in ("home", "away", "result", "at_home")]

    def run(x: Any) -> Any:
        step, advantage, nu, scale = np.exp(x[0]), x[1], np.exp(x[2]), np.exp(x[3])
        rating = [0.0] * data["teams"]
        found = np.empty(len(data["day"]))
        for at, (one, other, result, home) in enumerate(zip(*columns, strict=True)):
            margin = rating[one] - rating[other] + advantage * home
            half = np.exp(scale * margin / 2)
            total = half + 1 / half + nu
            found[at] = (half if result > 0 else 1 / half if result < 0 else nu) / total
            change = step * ((result + 1) / 2 - 1 / (1 + np.exp(-margin)))
            rating[one] += change
            rating[other] -= change
        return -np.log(found)

    begin = np.searchsorted(data["day"], (data["day"][0] + test) // 2)
    end = np.searchsorted(data["day"], test)
    best = tuned(lambda x: float(run(x)[begin:end].mean()), [np.log(0.2), 0.5, -0.2, 0.0], 120)
    return run(best), dict(zip(("log k", "home", "log nu", "log scale"), best.round(3).tolist(), strict=True))


def through_time(data: dict[str, Any], test: int) -> tuple[Any, Any]:
    """TrueSkill Through Time, forward; the home side plays beside its advantage, a player that does not move."""
    import trueskillthroughtime as ttt

    teams = [
        [[f"t{one}", "at home"] if home else [f"t{one}"], [f"t{other}"]]
        for one, other, home in zip(data["home"], data["away"], data["at_home"], strict=True)
    ]
    results = [[max(result, 0), max(-result, 0)] for result in data["result"].tolist()]

    def run(x: Any, rows: slice) -> Any:
        sigma, gamma, tie = np.exp(x[0]), np.exp(x[1]), expit(x[2])
        home = ttt.Player(ttt.Gaussian(x[3], 0.2), 0.0, 0.0)
        history = ttt.History(
            teams[rows], results[rows], data["day"][rows].tolist(), {"at home": home}, 0.0, sigma, 1.0, gamma, tie
        )
        return -np.log([event.evidence for batch in history.batches for event in batch.events])

    end = int(np.searchsorted(data["day"], test))
    first = int(np.searchsorted(data["day"], test - 8 * 365))
    burn = int(np.searchsorted(data["day"], test - 5 * 365)) - first
    best = tuned(lambda x: float(run(x, slice(first, end))[burn:].mean()), [np.log(1.6), np.log(0.015), -1.1, 0.5], 40)
    return run(best, slice(None)), dict(
        zip(("log sigma", "log gamma", "ties", "home"), best.round(3).tolist(), strict=True)
    )


def kickscore(data: dict[str, Any], test: int, known: dict[str, float], last: int) -> tuple[Any, Any]:
    """Constant and Wiener kernels with the variances that the marginal likelihood gives, fitted before each day."""
    import kickscore as ks

    days = data["day"]
    rows = list(zip(data["home"], data["away"], data["result"], data["at_home"], days, strict=True))
    begin = int(np.searchsorted(days, days[-1] - last))
    first = int(np.searchsorted(days, days[begin] - 6 * 365))

    def model(margin: float, start: int, end: int) -> Any:
        made = ks.TernaryModel(margin=margin, obs_type="logit")
        made.add_item("at home", kernel=ks.kernel.Constant(var=1.0))
        for team in range(data["teams"]):
            kernel = ks.kernel.Constant(var=known["spread"] ** 2)
            kernel += ks.kernel.Wiener(var=known["drift a year"] ** 2 / 365.25, t0=float(days[start]))
            made.add_item(f"t{team}", kernel=kernel)
        for row in rows[start:end]:
            observe(made, row)
        made.fit(tol=1e-2)
        return made

    def sides(row: Any) -> tuple[list[str], list[str]]:
        one, other, _, home, _ = row
        return [f"t{one}", *(["at home"] if home else [])], [f"t{other}"]

    def observe(made: Any, row: Any) -> None:
        one, other = sides(row)
        if row[2] < 0:
            one, other = other, one
        made.observe(one, other, t=float(row[4]), tie=bool(row[2] == 0))

    end = int(np.searchsorted(days, test))
    early = int(np.searchsorted(days, test - 4 * 365))
    margin = max((0.6, 0.75, 0.9, 1.05, 1.2), key=lambda value: model(value, early, end).log_likelihood)
    made = model(margin, first, begin)
    found = np.full(len(rows), np.nan)
    at = begin
    while at < len(rows):
        stop = int(np.searchsorted(days, days[at], "right"))
        for place in range(at, stop):
            chance = made.probabilities(*sides(rows[place]), t=float(days[at]))
            found[place] = -np.log(chance[{1: 0, 0: 1, -1: 2}[int(rows[place][2])]])
        for row in rows[at:stop]:
            observe(made, row)
        made.fit(tol=1e-2)
        at = stop
    return found, {"margin": margin}


def compared(loss: Any, ours: Any, day: Any) -> dict[str, Any]:
    """Log-loss, and the difference to ours with a 95% interval, match days as clusters."""
    there = np.isfinite(loss)
    difference = (loss - ours)[there]
    mean = float(difference.mean())
    sums = np.bincount(np.unique(day[there], return_inverse=True)[1], difference - mean)
    half = 1.96 * float(np.sqrt((sums**2).sum())) / len(difference)
    return {"matches": int(there.sum()), "log-loss": round(float(loss[there].mean()), 4),
            "ours there": round(float(ours[there].mean()), 4),
            "less ours": [round(mean, 4), round(mean - half, 4), round(mean + half, 4)]}  # fmt: skip


def main() -> None:
    """Print a line of JSON for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results")
    parser.add_argument("--since", default="2006-01-01")
    parser.add_argument("--test", default="2018-01-01")
    parser.add_argument("--last", type=int, default=365, help="days of kickscore; 0: without")
    options = parser.parse_args()
    data, test = matches(options.results, options.since), int(np.datetime64(options.test, "D").astype(int))
    kept = data["day"] >= test
    ours, chosen = concordant(data, test)
    begun = time.process_time()
    print(
        json.dumps(
            {"concordant": {"matches": int(kept.sum()), "log-loss": round(float(ours[kept].mean()), 4)} | chosen}
        )
    )
    ways = {"elo": elo, "trueskill through time": through_time}
    if options.last:
        ways["kickscore"] = lambda data, test: kickscore(data, test, chosen, options.last)
    for name, way in ways.items():
        loss, said = way(data, test)
        found = compared(loss[kept], ours[kept], data["day"][kept])
        print(json.dumps({name: found | said, "seconds": round(time.process_time() - begun)}), flush=True)


if __name__ == "__main__":
    main()
