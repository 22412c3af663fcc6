"""People beside judge models, and judges who vote at random.

``python -m benchmarks.judges people ../shared/data/arena_judges`` draws 1,000 of the 26,919 comparisons that people
decided, 2,000 times, and puts each judge model's verdicts on all of them beside: how often the 95% intervals hold the
score of all human votes, for each of the 20 systems, and how wide they are beside those of the people alone.

``python -m benchmarks.judges random`` draws boards of 20 systems, abilities normal with standard deviation 1, on which
200 judges cast 40 votes each, 30 of them by a coin: the area under the curve of finding these, and how far the weighted
scores are from the scores without them (root of the mean square over the systems).
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtri, stdtrit

from concordant.boards.prediction_powered import Powered, board, fit_scores

Floats = NDArray[np.float64]
JUDGES = ("gpt-4-0125-preview", "claude-3-opus-20240229", "gpt-3.5-turbo")


# -- people and a judge ------------------------------------------------------------------------------------------------
def verdicts(folder: Path) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64], dict[str, Floats]]:
    """Return the systems, the sides of each comparison and what people and judges said of the first."""
    rows = {}
    for name in ("human", *JUDGES):
        with gzip.open(folder / f"{name}.jsonl.gz", "rt") as file:
            rows[name] = [json.loads(line) for line in file]
    systems = sorted({row[side] for row in rows["human"] for side in ("model_a", "model_b")})
    code = {name: place for place, name in enumerate(systems)}
    first, second = (np.array([code[row[side]] for row in rows["human"]]) for side in ("model_a", "model_b"))
    won = {"model_a": 1.0, "model_b": 0.0}
    return systems, first, second, {
        name: np.array([won.get(row["winner"], 0.5) for row in rows[name]]) for name in rows
    }  # fmt: skip


def people(folder: Path, labels: int, draws: int, seed: int) -> dict[str, Any]:
    """Draw labels of people without replacement; the truth is the fit to all of them."""
    systems, first, second, said = verdicts(folder)
    size, number = len(systems), len(first)
    truth = fit_scores(first, second, said["human"], size)[0]
    side = np.ones(number)
    surprise = {name: said[name] - fit_scores(first, second, said[name], size, side)[1] for name in JUDGES}
    rng = np.random.default_rng(seed)
    held = {name: np.zeros((3, size)) for name in ("people", *JUDGES)}
    width = {name: np.zeros((3, size)) for name in held}
    began = time.perf_counter()
    for _ in range(draws):
        rows = rng.choice(number, labels, replace=False)
        z = stdtrit(np.bincount(first[rows], minlength=size) + np.bincount(second[rows], minlength=size) - 1, 0.975)
        for name in JUDGES:
            for place, these in enumerate((True, False)):
                found: Powered = board(first[rows], second[rows], said["human"][rows], surprise[name][rows], size,
                                       number, these=these)  # fmt: skip
                held[name][place] += np.abs(found.score - truth) <= z * found.standard_error
                width[name][place] += 2 * z * found.standard_error
                if name == JUDGES[0]:
                    held["people"][place] += np.abs(found.people - truth) <= z * found.people_error
                    width["people"][place] += 2 * z * found.people_error
    result: dict[str, Any] = {"draws": draws, "seconds": time.perf_counter() - began}
    print(f"{draws:,} draws of {labels:,} of {number:,}, seed {seed}, {result['seconds']:.0f} s")
    for place, what in enumerate(("of these comparisons", "of new ones, too")):
        print(f"intervals {what}")
        for name in held:
            share, wide = held[name][place] / draws, width[name][place] / draws
            saved = 1 - (wide / (width["people"][place] / draws)).mean()
            print(f"  {name:24} coverage {share.mean():.2%} ({share.min():.2%} … {share.max():.2%})"
                  f"  width {wide.mean():.4f}  narrower by {saved:.2%}")  # fmt: skip
            result[f"{name} {place}"] = (share, wide)
    for name in JUDGES:
        alone = board(first, second, said[name], np.zeros(number), size, number)
        inside = np.abs(alone.people - truth) <= ndtri(0.975) * alone.people_error
        print(f"  {name} alone, its own intervals by all {number:,}: {int(inside.sum())} of {size} hold")
    return result


# -- judges who vote by a coin -----------------------------------------------------------------------------------------
def crowd(seed: int, judges: int, coins: int, votes: int, systems: int = 20) -> tuple[Floats, list[NDArray[Any]]]:
    """Draw abilities and votes: judge, winner, loser; the first ``coins`` judges vote by a coin."""
    rng = np.random.default_rng(seed)
    ability = rng.normal(size=systems)
    judge = np.repeat(np.arange(judges), votes)
    one = rng.integers(systems, size=len(judge))
    other = (one + rng.integers(1, systems, size=len(judge))) % systems
    first = rng.random(len(judge)) < expit((judge >= coins) * (ability[one] - ability[other]))
    return ability - ability.mean(), [judge, np.where(first, one, other), np.where(first, other, one)]


def scores_of(ranking: Any, systems: int) -> Floats:
    """The scores of a ranking by the number of the system."""
    found = np.zeros(systems)
    found[ranking.items.values.to_numpy()[ranking.item]] = ranking.score
    return found - found.mean()


def random(boards: int, seed: int, judges: int = 200, coins: int = 30, votes: int = 40) -> Floats:
    """Find the coins, and rank by weighted votes; print means over the boards and their extremes."""
    import concordant as cc

    rows, bad = [], np.arange(judges) < coins
    for draw in range(boards):
        ability, (judge, winner, loser) = crowd(seed + draw, judges, coins, votes)
        prefs = cc.Preferences.from_comparisons(winner, loser, cluster=judge)
        fine = judge >= coins
        found = cc.judges(prefs, replicates=1)
        clean = cc.Preferences.from_comparisons(winner[fine], loser[fine])
        size = len(ability)
        without = scores_of(cc.rank(clean, interval="none"), size)
        plain = scores_of(cc.rank(prefs, interval="none"), size)
        weighted = scores_of(found.ranking(interval="none"), size)
        off = [float(np.sqrt(((one - other) ** 2).mean())) for one, other in
               ((plain, without), (weighted, without), (without, ability), (weighted, ability))]  # fmt: skip
        inside = (found.lower <= ~bad) & (~bad <= found.upper)
        rows.append([cc.auc(-found.reliability, bad)[0], cc.auc(-found.agreement, bad)[0], *off,
                     (found.by_coin[bad] > 0.5).mean(), (found.by_coin[~bad] > 0.5).mean(), inside.mean()])  # fmt: skip
    names = (
        "AUC of reliability", "AUC of agreement with the others, unweighted",
        "unweighted scores from those without the coins", "weighted scores from those without the coins",
        "scores without the coins from the abilities", "weighted scores from the abilities",
        "coins found (probability above 1/2)", "others taken for coins", "95% intervals of reliability that hold",
    )  # fmt: skip
    print(f"{boards} boards of 20 systems, {judges} judges of {votes} votes, {coins} by a coin, seeds from {seed}")
    for name, column in zip(names, np.array(rows).T, strict=True):
        print(f"  {name:50} {column.mean():.4f}  ({column.min():.4f} … {column.max():.4f})")
    return np.array(rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["people", "random"])
    parser.add_argument("folder", nargs="?", type=Path, default=Path("../shared/data/arena_judges"))
    parser.add_argument("--labels", type=int, default=1_000)
    parser.add_argument("--draws", type=int)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    if asked.what == "people":
        people(asked.folder, asked.labels, asked.draws or 2_000, asked.seed)
    else:
        random(asked.draws or 50, asked.seed)
