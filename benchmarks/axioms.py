"""Axioms: do the counterexamples fail, are they found, are they mended; who finds Condorcet winners; how long it takes.

``python -m benchmarks.axioms counterexamples`` fits the usual loss (pairwise logistic), soft Condorcet and leximax
Copeland to the profiles of ``PROFILES`` and audits each. ``condorcet [../shared/data/preflib]`` draws 500 profiles with
features of fewer dimensions than items, keeps those with a Condorcet winner that a linear scorer can put first, and
counts how often each does; with a folder of PrefLib, also the sets there, with random features. ``times`` measures
leximax Copeland. Soft Condorcet: Lanctot et al. (2025), the sigmoid loss Σ n_ab σ((s_b − s_a)/τ), here of linear
scores, minimised from several starts.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog, minimize
from scipy.special import expit

import concordant as cc
from concordant.auditing.counterexamples import known_counterexample
from concordant.preferences.graphs import Batch
from concordant.ranking.pair_votes import PairVotes

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
STARTS = 8


# -- profiles ----------------------------------------------------------------------------------------------------------
def profile(utility: Floats, times: Any = None) -> cc.Preferences:
    """Return all pairs of the orders that columns of utilities give, a voter each (or so many); equal ones tie."""
    items, voters = utility.shape
    often = np.ones(voters, int) if times is None else times
    rows: list[tuple[int, int, bool, str]] = []
    for voter in range(voters):
        for i, j in combinations(range(items), 2):
            one, other = (i, j) if utility[i, voter] >= utility[j, voter] else (j, i)
            level = bool(utility[i, voter] == utility[j, voter])
            rows += [(one, other, level, f"{voter}-{n}") for n in range(int(often[voter]))]
    winner, loser, tie, who = zip(*rows, strict=True)
    return cc.Preferences.from_comparisons(list(winner), list(loser), tie=list(tie), cluster=list(who))


def features_of(X: Floats) -> cc.Features:
    """Return rows for the items 0, 1, …"""
    return cc.Features.of(np.asarray(X, np.float64), np.arange(len(X)))


def pareto() -> tuple[cc.Preferences, cc.Features]:
    """Three voters, linear in two features, all prefer the item 1 to 0, as in the theorem of Ge et al. (2024), §3.

    On x they disagree 2 to 1 whatever its size, so that a logistic scorer that is right about the pair (10, 0) expects
    too much of (100, 100), and takes it from y, which all of them like.
    """
    X = np.array([[0.0, 0.0], [0.0, 1.0], [10.0, 0.0], [110.0, 100.0]])
    return profile(X @ np.array([[3.0, 2.0, -3.0], [1.0, 1.0, 1.0]])), features_of(X)


def majority() -> tuple[cc.Preferences, cc.Features]:
    """Five voters, linear in two features; a linear scorer has all majorities (Ge et al. 2024, §3)."""
    X = np.array([[1.0, 3.0], [3.0, -2.0], [0.0, -4.0]])
    voters = np.array([[-3.0, 1.0], [3.0, 1.0], [-1.0, 1.0], [2.0, 0.0], [-2.0, 1.0]])
    return profile(X @ voters.T), features_of(X)


def hidden_context() -> tuple[cc.Preferences, cc.Features]:
    """The utilities of Siththaranjan et al. (2024), §3: x below .8, else 2x or 0 by a context that nobody records.

    Six of eleven people are in the first context (of the paper every other one: nothing has a majority then).
    """
    x = np.arange(1, 11) / 10
    utility = np.stack((np.where(x < 0.8, x, 2 * x), np.where(x < 0.8, x, 0.0)), axis=1)
    return profile(utility, [6, 5]), features_of(np.eye(10))


def ours() -> tuple[cc.Preferences, cc.Features]:
    """Theorem 3 of Duchi, Mackey and Jordan (2013), a hundred comparisons of three items."""
    table = known_counterexample("theorem-3").votes
    winner, loser = np.nonzero(table)
    return cc.Preferences.from_comparisons(winner, loser, count=table[winner, loser]), features_of(np.eye(3))


PROFILES: dict[str, Callable[[], tuple[cc.Preferences, cc.Features]]] = {
    "Pareto (2405.14758)": pareto,
    "majority (2405.14758)": majority,
    "hidden context (2312.08358)": hidden_context,
    "Theorem 3 (ours)": ours,
}


# -- scorers -----------------------------------------------------------------------------------------------------------
def logistic(prefs: cc.Preferences, features: cc.Features) -> Floats:
    """The usual loss of reward models."""
    return np.asarray(cc.EdgeRanker("ranknet", ridge=1e-6).fit(features, prefs).predict(features), np.float64)


def majority_loss(prefs: cc.Preferences, features: cc.Features) -> Floats:
    """The majority-consistent loss."""
    return np.asarray(cc.EdgeRanker("majority", ridge=1e-6).fit(features, prefs).predict(features), np.float64)


def leximax(prefs: cc.Preferences, features: cc.Features, **options: Any) -> Floats:
    """Leximax Copeland subject to Pareto."""
    return np.asarray(cc.CopelandRanker(**options).fit(features, prefs).predict(features), np.float64)


def plain_leximax(prefs: cc.Preferences, features: cc.Features) -> Floats:
    """Leximax Copeland, whatever is unanimous."""
    return leximax(prefs, features, pareto=None)


def soft_condorcet(prefs: cc.Preferences, features: cc.Features, tau: float = 1.0, seed: int = 0) -> Floats:
    """Soft Condorcet (sigmoid loss) of linear scores: the best of several starts."""
    graphs = Batch.whole(prefs).graphs
    Z = np.asarray(features.X, np.float64)
    Z = (Z - Z.mean(axis=0)) / np.where(Z.std(axis=0) > 0, Z.std(axis=0), 1.0)
    D = Z[graphs.first] - Z[graphs.second]
    net = (graphs.above - graphs.below) / (graphs.above + graphs.below).sum()

    def loss(w: Floats) -> tuple[float, Floats]:
        wrong = expit(-(D @ w) / tau)
        return float(net @ wrong), np.asarray(-(D.T @ (net * wrong * (1 - wrong))) / tau, np.float64)

    rng = np.random.default_rng(seed)
    starts = [np.zeros(Z.shape[1]), *rng.normal(size=(STARTS, Z.shape[1]))]
    bounds = [(-100.0, 100.0)] * Z.shape[1]
    found = [minimize(loss, one, jac=True, method="L-BFGS-B", bounds=bounds) for one in starts]
    return np.asarray(Z @ min(found, key=lambda one: float(one.fun)).x, np.float64)


SCORERS = {
    "logistic": logistic,
    "soft Condorcet": soft_condorcet,
    "majority loss": majority_loss,
    "leximax Copeland": leximax,
}


# -- what is measured --------------------------------------------------------------------------------------------------
def counterexamples() -> Iterator[dict[str, Any]]:
    """Yield what the audit says of each scorer on each profile."""
    for name, make in PROFILES.items():
        prefs, features = make()
        for scorer, fit in SCORERS.items():
            score = fit(prefs, features)
            found = cc.axiom_audit(prefs, dict(enumerate(score.tolist())), features)
            rows = {row["axiom"]: row for row in found.table.to_pylist()}
            yield {"profile": name, "scorer": scorer} | {
                axiom: f"{rows[axiom]['violated']} of {rows[axiom]['of']}"
                for axiom in ("pareto", "majority", "condorcet winner", "condorcet order")
            } | {"fewest majorities": rows["majority"]["best"]}  # fmt: skip


def winner_of(prefs: cc.Preferences) -> int | None:
    """Return the place of the item that a majority prefers to each other, where there is one."""
    score = cc.structure("copeland")(Batch.whole(prefs)).value
    best = int(np.argmax(score))
    return best if score[best] == len(score) - 1 else None


def hold(rows: Floats) -> bool:
    """Whether some w has rows @ w > 0: by Gordan's theorem no λ ≥ 0 of sum 1 has λ @ rows = 0, which SciPy looks for.

    Nothing of the package takes part.
    """
    size = np.linalg.norm(rows, axis=1, keepdims=True)
    if not len(rows) or not size.all():
        return not len(rows)
    table = np.vstack((np.ones(len(rows)), (rows / size).T))
    found = linprog(np.zeros(len(rows)), A_eq=table, b_eq=np.append(1.0, np.zeros(rows.shape[1])), method="highs-ipm")
    return bool(found.status == 2)


def expressible(prefs: cc.Preferences, X: Floats, winner: int) -> tuple[bool, bool, bool]:
    """Whether linear scorers have: the winner first; all unanimous pairs; both."""
    others = np.setdiff1d(np.arange(len(X)), [winner])
    votes = PairVotes.of(Batch.whole(prefs))
    above, below = votes.directed(votes.unanimous())
    first, unanimous = X[winner] - X[others], X[above] - X[below]
    return hold(first), hold(unanimous), hold(np.vstack((first, unanimous)))


def condorcet(profiles: Iterator[tuple[cc.Preferences, Floats]]) -> dict[str, Any]:
    """Count profiles whose Condorcet winner can be first, and how often each scorer puts it there."""
    counts: dict[str, Any] = {"profiles": 0, "with a winner": 0, "can be first": 0, "unless Pareto excludes it": 0}
    first = dict.fromkeys((*SCORERS, "without Pareto"), 0)
    kept = dict.fromkeys(first, 0)
    for prefs, X in profiles:
        counts["profiles"] += 1
        if (winner := winner_of(prefs)) is None:
            continue
        counts["with a winner"] += 1
        alone, unanimous, together = expressible(prefs, X, winner)
        if not alone:
            continue
        free = together or not unanimous  # where no scorer has all unanimous pairs anyway, the winner goes before them
        counts["can be first"] += 1
        counts["unless Pareto excludes it"] += free
        features = cc.Features.of(X, np.asarray(prefs.items.tolist()))
        for name, fit in {**SCORERS, "without Pareto": plain_leximax}.items():
            score = fit(prefs, features)
            right = bool(score[winner] > np.delete(score, winner).max())
            first[name] += right
            kept[name] += right and free
    return counts | {name: f"{first[name]} ({kept[name]} of those that Pareto leaves)" for name in first}


def drawn(number: int, seed: int) -> Iterator[tuple[cc.Preferences, Floats]]:
    """Yield profiles of 3 to 10 items, d < m features, 3 to 25 voters: linear ones, linear with noise, any orders."""
    rng = np.random.default_rng(seed)
    for n in range(number):
        items, voters = int(rng.integers(3, 11)), 2 * int(rng.integers(1, 13)) + 1
        X = rng.normal(size=(items, int(rng.integers(2, items))))
        utility = X @ (rng.normal(size=(X.shape[1], voters)) + rng.normal(size=(X.shape[1], 1)))
        noise = (0.0, 1.0, np.inf)[n % 3]
        utility = (
            rng.normal(size=utility.shape) if noise == np.inf else utility + noise * rng.normal(size=utility.shape)
        )
        yield profile(utility), X


def published(folder: Path, seed: int, most: int = 60) -> Iterator[tuple[cc.Preferences, Floats]]:
    """Yield the complete sets of PrefLib with random features, a third as many as items."""
    rng = np.random.default_rng(seed)
    for path in sorted(folder.rglob("*.[st]oc")):
        prefs = cc.read(path)
        items = len(prefs.items)
        if 3 <= items <= most:
            yield prefs, rng.normal(size=(items, max(2, items // 3)))


def times(seed: int = 0) -> Iterator[dict[str, Any]]:
    """Yield how long leximax Copeland takes: exact with all pairs judged, approximated with many items."""
    rng = np.random.default_rng(seed)
    for items, d, votes, kind in (
        (100, 20, 31, "linear voters"), (100, 20, 31, "any orders"), (10_000, 20, 0, "300,000 comparisons"),
    ):  # fmt: skip
        X = rng.normal(size=(items, d))
        if votes:
            utility = X @ (rng.normal(size=(d, votes)) + 0.5 * rng.normal(size=(d, 1)))
            order = rng.normal(size=utility.shape) if kind == "any orders" else utility
            rank = np.argsort(np.argsort(-order, axis=0), axis=0) + 1
            columns = (np.repeat(np.arange(votes), items), np.tile(np.arange(items), votes), rank.T.ravel())
            prefs = cc.Preferences.from_orders(None, *columns)
        else:
            one, other = rng.integers(items, size=(2, 300_000))
            truth = X @ rng.normal(size=d) + rng.normal(size=items)
            up = rng.random(len(one)) < expit(truth[one] - truth[other])
            apart = one != other
            prefs = cc.Preferences.from_comparisons(np.where(up, one, other)[apart], np.where(up, other, one)[apart])
        began = time.perf_counter()
        ranker = cc.CopelandRanker().fit(features_of(X), prefs)
        seconds = time.perf_counter() - began
        known = {name: ranker.status_[name] for name in ("exact", "places", "programs", "gap", "margin")}
        yield {"items": items, "features": d, "votes": kind, "seconds": round(seconds, 1)} | known


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.axioms", description=__doc__)
    parser.add_argument("what", nargs="?", default="counterexamples", choices=("counterexamples", "condorcet", "times"))
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--profiles", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    if asked.what == "condorcet":
        print("drawn", condorcet(drawn(asked.profiles, asked.seed)), flush=True)
        if asked.folder is not None:
            print("PrefLib", condorcet(published(asked.folder, asked.seed)), flush=True)
        return
    for row in counterexamples() if asked.what == "counterexamples" else times(asked.seed):
        print(row, flush=True)


if __name__ == "__main__":
    main()
