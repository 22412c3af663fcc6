"""Does the default scorer reach the right order, and at what price: ``python -m benchmarks.default_scorer``.

Populations with known shares are sampled; features are an indicator of each item and three columns of noise, so the
features can express every order. *theorem-3*: the population on which pairwise logistic converges to a wrong order.
*acyclic*: the known populations and ``--drawn`` random ones (3 to 6 items, low noise where drawn so). *ndcg*: one whose
best order for NDCG is not the one for the pairwise loss. *bradley-terry*: where the model holds, half of the time with
scores that the features express only in part; the loss is what the gate costs. About an hour on one core.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student
from sklearn.ensemble import HistGradientBoostingRegressor

import concordant as cc
from concordant.auditing.counterexamples import KNOWN

Floats = NDArray[np.float64]
PARTS = ("theorem-3", "acyclic", "ndcg", "bradley-terry")
NOISE = 3
QUERIES, ITEMS, WIDTH, NEW = 30, 8, 6, 200
"""Of the Bradley–Terry populations: queries, items of each, features; queries that judge."""


def main() -> None:
    """Print a table for each part."""
    wanted = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    wanted.add_argument("parts", nargs="*", default=list(PARTS), help=f"of {', '.join(PARTS)}; default: all")
    wanted.add_argument("--drawn", type=int, default=200, help="random acyclic populations")
    wanted.add_argument("--runs", type=int, default=10, help="runs of theorem-3 and ndcg")
    options = wanted.parse_args()
    made = {
        "theorem-3": lambda: theorem_3(options.runs),
        "acyclic": lambda: acyclic(options.drawn),
        "ndcg": lambda: ndcg(options.runs),
        "bradley-terry": bradley_terry,
    }
    if unknown := [part for part in options.parts if part not in made]:
        wanted.error(f"unknown part {unknown[0]!r}; the parts are {', '.join(PARTS)}")
    for part in options.parts:
        print(f"\n## {part}", flush=True)
        for line in made[part]():
            print(line, flush=True)


def sampled(votes: Floats, n: int, queries: int, seed: int) -> tuple[Any, cc.Preferences]:
    """Features and ``n`` comparisons of a population; votes[i, j] is the share of i over j."""
    rng, items = np.random.default_rng(seed), len(votes)
    log, rows = [], []
    for query, size in enumerate(rng.multinomial(n, np.full(queries, 1 / queries))):
        count = rng.multinomial(size, (votes / votes.sum()).ravel()).reshape(items, items)
        log += [(query, i, j, count[i, j]) for i, j in zip(*np.nonzero(count), strict=True)]
        rows += [(query, i, np.r_[np.eye(items)[i], rng.normal(size=NOISE)]) for i in range(items)]
    query, winner, loser, count = map(np.array, zip(*log, strict=True))
    of, item, X = zip(*rows, strict=True)
    features = (np.array(X), np.array(of), np.array(item))
    return features, cc.Preferences.from_comparisons(winner, loser, query, count=count)


def excess(scores: Floats, votes: Floats) -> float:
    """Mean over queries of the pairwise loss of an order above that of the best one, by trying all orders."""
    share = votes / votes.sum()
    apart = ~np.eye(len(votes), dtype=bool)

    def loss(one: Floats) -> float:
        return float((share * (1 - np.sign(one[:, None] - one[None, :])) / 2)[apart].sum())

    best = min(loss(np.array(order, float)) for order in permutations(range(len(votes))))
    return float(np.mean([loss(one) - best for one in scores.reshape(-1, len(votes))]))


def taken(ranker: Any) -> str:
    """What the gates took."""
    names = (next(one["name"] for one in gate["candidates"] if one["taken"]) for gate in ranker.status_["gate"])
    return " + ".join(names)


def theorem_3(runs: int) -> Iterator[str]:
    """Excess of the default, linear and with trees."""
    votes = np.array(KNOWN["theorem-3"].votes, float)
    yield "| scorer | queries | judgments | mean excess | largest | runs at 0 |"
    yield "|---|---|---|---|---|---|"
    for name, regressor in (("linear", None), ("trees", HistGradientBoostingRegressor(random_state=0))):
        for queries in (1, 20, 30):
            for n in (3_000, 40_000, 300_000):
                found = []
                for seed in range(runs):
                    features, prefs = sampled(votes, n, queries, seed)
                    ranker = cc.AggregationRanker(regressor=regressor).fit(features, prefs)
                    found.append(excess(ranker.predict(features), votes))
                zero = sum(value == 0 for value in found)
                yield f"| {name} | {queries} | {n:,} | {np.mean(found):.5f} | {max(found):.4f} | {zero} of {runs} |"


def an_acyclic(rng: np.random.Generator) -> Floats:
    """Shares of a random population whose net preferences follow one order of 3 to 6 items."""
    items = int(rng.integers(3, 7))
    total = np.triu(rng.gamma(0.5, size=(items, items)), 1)
    better = 0.5 + 0.5 * rng.random((items, items)) ** rng.choice([0.5, 1, 3])
    order, votes = rng.permutation(items), np.zeros((items, items))
    for i, j in zip(*np.triu_indices(items, 1), strict=True):
        votes[order[i], order[j]] = total[i, j] * better[i, j]
        votes[order[j], order[i]] = total[i, j] * (1 - better[i, j])
    return votes / votes.sum()


def acyclic(number: int) -> Iterator[str]:
    """Excess with and without the gate."""
    rng = np.random.default_rng(7)
    populations = [
        *(an_acyclic(rng) for _ in range(number)),
        *(np.array(known.votes, float) for known in KNOWN.values()),
    ]
    yield f"{len(populations)} populations, 5 queries, linear"
    yield "| judgments | mean excess | largest | above .005 | without gate: mean | largest | above .005 | time |"
    yield "|---|---|---|---|---|---|---|---|"
    for n in (1_000, 30_000, 1_000_000):
        with_gate, without, spent = [], [], np.zeros(2)
        for seed, votes in enumerate(populations):
            features, prefs = sampled(votes, n, 5, seed)
            for place, (gate, found) in enumerate((("auto", with_gate), (False, without))):
                begin = time.perf_counter()
                ranker = cc.AggregationRanker(gate=gate).fit(features, prefs)
                spent[place] += time.perf_counter() - begin
                found.append(excess(ranker.predict(features), votes))
        said = " | ".join(
            f"{np.mean(found):.5f} | {max(found):.4f} | {sum(value > 0.005 for value in found)}"
            for found in (with_gate, without)
        )
        yield f"| {n:,} | {said} | {spent[0] / spent[1]:.2f} |"


def ndcg(runs: int) -> Iterator[str]:
    """NDCG risk by the target that is named."""
    votes = np.zeros((3, 3))
    for (i, j), share, wins in (((0, 1), 0.30, 0.60), ((1, 2), 0.02, 0.80), ((0, 2), 0.68, 0.52)):
        votes[i, j], votes[j, i] = share * wins, share * (1 - wins)
    odds = np.log(np.where(votes > 0, votes, 1.0) / np.where(votes.T > 0, votes.T, 1.0))
    gain, discount = 2 ** (odds.sum(axis=1) / 2) - 1, 1 / np.log2(2 + np.arange(3))

    def risk(one: Floats) -> float:
        value, best = (float((gain[np.argsort(-order)] * discount).sum()) for order in (one, gain))
        return 1 - value / best

    yield "| target | judgments | mean risk | largest | taken |"
    yield "|---|---|---|---|---|"
    for target in ("ndcg", "pairwise"):
        for n in (20_000, 200_000, 2_000_000):
            found, names = [], set()
            for seed in range(runs):
                features, prefs = sampled(votes, n, 20, seed)
                ranker = cc.AggregationRanker(target=target).fit(features, prefs)
                found.append(float(np.mean([risk(one) for one in ranker.predict(features).reshape(-1, 3)])))
                names.add(taken(ranker))
            yield f"| {target} | {n:,} | {np.mean(found):.4f} | {max(found):.4f} | {', '.join(sorted(names))} |"


def bradley_terry() -> Iterator[str]:
    """NDCG risk on new queries with the gate less that without it, 20 populations."""
    yield "| comparisons a query | mean difference | upper end of its 95% interval | gate opened |"
    yield "|---|---|---|---|"
    for per_query in (20, 80, 320, 1_280):
        differences, opened = [], 0
        for seed in range(20):
            rng = np.random.default_rng(seed)
            X, theta = rng.normal(size=(QUERIES * ITEMS, WIDTH)), rng.normal(size=WIDTH) * 0.7
            score = X @ theta + (0.5 * rng.normal(size=len(X)) if seed % 2 else 0.0)
            number, query = per_query * QUERIES, np.repeat(np.arange(QUERIES), ITEMS)
            first = rng.integers(0, len(X), number)
            second = query[first] * ITEMS + (first % ITEMS + rng.integers(1, ITEMS, number)) % ITEMS
            won = rng.random(number) < 1 / (1 + np.exp(score[second] - score[first]))
            prefs = cc.Preferences.from_comparisons(
                np.where(won, first, second), np.where(won, second, first), query[first]
            )
            new = rng.normal(size=(NEW * ITEMS, WIDTH))
            truth, of = np.exp2(new @ theta), np.repeat(np.arange(NEW), ITEMS)
            risk = []
            for gate in ("auto", False):
                ranker = cc.AggregationRanker(gate=gate).fit((X, query, np.arange(len(X))), prefs)
                risk.append(1 - cc.ndcg(ranker.predict(new), truth, of, gain="linear", at=None).mean())
                opened += gate == "auto" and not ranker.status_["gate"][0]["candidates"][0]["taken"]
            differences.append(risk[0] - risk[1])
        spread = float(student.ppf(0.975, 19) * np.std(differences, ddof=1) / np.sqrt(20))
        yield f"| {per_query:,} | {np.mean(differences):+.5f} | {np.mean(differences) + spread:+.5f} | {opened} of 20 |"


if __name__ == "__main__":
    main()
