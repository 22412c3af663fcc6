"""Gain regression on 10^4 queries × 120 items × 136 features against X.T @ X and LightGBM: a case of ``make bench``.

``python -m benchmarks.learning NAME FOLDER PRECISION`` measures one contender in a process of its own. Ours is timed
from features and counted preferences to coefficients: the rows of the items found, mean targets over 32 subsets of 100
judgments, the normal equations, the solution. The comparisons are drawn as in AoS (26) from a linear model with noise:
query uniform, pair uniform, i ≻ j with probability σ(r_i − r_j).
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cases import Case, Row
from benchmarks.measure import measure

QUERIES, ITEMS, WIDTH, JUDGMENTS = 10_000, 120, 136, 160
ORDER, SUBSETS, RIDGE, ROUNDS = 100, 32, 1e-4, 100
ORDERS = (1, 2, 5, 10, 20, 40, 60, 80, 100, "all")
RIDGES = (1e-6, 1e-5, 1e-4, 1e-3)
PRECISIONS = ("float32", "float64")


def write_learning(folder: Path, queries: int) -> None:
    """Write X.npy (float32) and log.npz (query, winner, loser) unless they are there."""
    if (folder / "log.npz").exists():
        return
    rng = np.random.default_rng(0)
    X = rng.standard_normal((queries * ITEMS, WIDTH), dtype=np.float32)
    theta = rng.standard_normal(WIDTH).astype(np.float32) / np.sqrt(np.float32(WIDTH))
    relevance = (X @ theta + 0.5 * rng.standard_normal(len(X), dtype=np.float32)).reshape(queries, ITEMS)
    n = queries * JUDGMENTS
    query, i = rng.integers(0, queries, n), rng.integers(0, ITEMS, n)
    j = (i + rng.integers(1, ITEMS, n)) % ITEMS
    first = rng.random(n) < 1 / (1 + np.exp(relevance[query, j] - relevance[query, i]))
    np.save(folder / "X.npy", X)
    np.savez(folder / "log.npz", query=query, winner=np.where(first, i, j), loser=np.where(first, j, i))


def _load(folder: Path, precision: str) -> tuple[np.ndarray, Any]:
    import concordant as cc

    with np.load(folder / "log.npz") as log:
        prefs = cc.Preferences.from_comparisons(log["winner"], log["loser"], query=log["query"])
    X = np.load(folder / "X.npy", mmap_mode="r")  # so that one matrix alone is in memory
    return np.array(X, precision), prefs


def ours(folder: Path, precision: str) -> dict[str, Any]:
    """X.T @ X, a fit, and a grid of orders and ridges, on the same matrix in the same process."""
    from concordant.learning.features.matrix import Features, align
    from concordant.learning.rankers.aggregation import AggregationRanker
    from concordant.learning.solvers.least_squares import NormalEquations
    from concordant.learning.targets.mean_targets import mean_targets, mean_targets_of_orders

    X, counted = _load(folder, precision)
    queries = len(X) // ITEMS
    features = Features.of(X, item=np.tile(np.arange(ITEMS), queries), query=np.repeat(np.arange(queries), ITEMS))

    def fit() -> Any:
        prefs = replace(counted)  # nothing kept from the run before
        place = align(features, prefs)
        targets = mean_targets(prefs, order=ORDER, subsets=SUBSETS)
        equations = NormalEquations.of(features.X, targets.value, place.start, targets.weight, rows=place.row)
        return equations.solve(RIDGE)

    def grid() -> Any:
        prefs = replace(counted)
        place = align(features, prefs)
        targets = mean_targets_of_orders(prefs, ORDERS, subsets=SUBSETS)
        columns = np.column_stack([of_order.value for of_order in targets])
        equations = NormalEquations.of(features.X, columns, place.start, targets[0].weight, rows=place.row)
        return [equations.solve(ridge) for ridge in RIDGES]

    def estimator() -> Any:
        return AggregationRanker("log-odds", order=ORDER, subsets=SUBSETS, ridge=RIDGE).fit(features, replace(counted))

    def product() -> Any:
        return features.X.T @ features.X

    first, _ = measure(fit, 1)
    found = {}
    works = {"product": product, "fit": fit, "estimator": estimator, "grid": grid, "product again": product}
    for name, work in works.items():
        found[name], _ = measure(work, 3)
    found["fit"]["first"] = first["seconds"][0]
    return found | {"bytes": X.nbytes}


def lightgbm(folder: Path, precision: str) -> dict[str, Any]:
    """``lambdarank``, 100 rounds, otherwise default settings, from a matrix and five grades of net wins."""
    import lightgbm as library

    X, prefs = _load(folder, precision)
    wins = np.zeros(len(X))
    np.add.at(wins, prefs.query.astype(np.int64) * ITEMS + prefs.winner, prefs.count)
    np.add.at(wins, prefs.query.astype(np.int64) * ITEMS + prefs.loser, -prefs.count.astype(np.int64))
    grade = np.searchsorted([-2, 0, 1, 3], wins, side="right")
    settings = {"objective": "lambdarank", "verbosity": -1}
    made = []

    def binning() -> Any:
        made.append(library.Dataset(X, grade, group=np.full(len(X) // ITEMS, ITEMS), params=settings).construct())

    def train() -> Any:
        return library.train(settings, made[0], num_boost_round=ROUNDS)

    bins, _ = measure(binning, 1)
    rounds, _ = measure(train, 1)
    return {"binning": bins, "rounds": rounds}


CONTENDERS: dict[str, Callable[[Path, str], dict[str, Any]]] = {"ours": ours, "lightgbm": lightgbm}


def _contend(name: str, folder: Path, precision: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.learning", name, str(folder), precision],
        cwd=Path(__file__).resolve().parent.parent,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["failed"])[-1][:300]}
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))


def _row(case: Case, name: str, figures: dict[str, Any], note: str = "") -> Row:
    seconds = figures.get("seconds", [float("nan")])
    best = int(np.argmin(seconds))
    result = figures | {"best": seconds[best], "busy": figures.get("processor", [float("nan")])[best]}
    result.setdefault("first", seconds[0])
    case.rows.append(Row(name, result, note))
    print(f"    {name}: {seconds[best]:.3f} s, peak {result.get('peak', float('nan')):,.0f} MiB {note}", flush=True)
    return case.rows[-1]


def learning(folder: Path, scale: float, *, contenders: tuple[str, ...] = ("ours", "lightgbm")) -> Case:
    """A linear fit by gain regression, and a grid of them."""
    queries = int(QUERIES * scale)
    case = Case(
        f"gain regression, {queries:,} queries × {ITEMS} items × {WIDTH} features, "
        f"{queries * JUDGMENTS:,} comparisons, k = {ORDER}, {SUBSETS} subsets"
    )
    write_learning(folder, queries)
    fits: dict[str, Row] = {}
    for precision in PRECISIONS if "ours" in contenders else ():
        found = _contend("ours", folder, precision)
        if "error" in found:
            case.rows.append(Row(f"concordant, {precision}", found))
            print(f"    {found['error']}", flush=True)
            continue
        product = _row(case, f"NumPy X.T @ X, {precision}", found["product"])
        again = _row(case, f"NumPy X.T @ X, {precision}, after the others", found["product again"])
        fits[precision] = fit = _row(case, f"concordant, a fit, {precision}", found["fit"])
        whole = _row(
            case, f"concordant, AggregationRanker.fit, {precision}", found["estimator"], "features standardised too"
        )
        grid = _row(case, f"concordant, {len(ORDERS)} orders × {len(RIDGES)} ridges, {precision}", found["grid"])
        case.bar(f"a fit / X.T @ X, {precision}", fit.seconds / min(product.seconds, again.seconds), "×", most=5)
        least = min(product.seconds, again.seconds)
        case.bar(f"AggregationRanker.fit / X.T @ X, {precision}", whole.seconds / least, "×", most=5)
        case.bar(f"grid / a fit, {precision}", grid.seconds / fit.seconds, "×", most=6)
        memory = max(fit.peak, whole.peak, grid.peak) * 2**20 / found["bytes"]
        case.bar(f"peak memory of the process / X, {precision}", memory, "×", most=2.5)
    if "lightgbm" in contenders:
        found = _contend("lightgbm", folder, "float32")
        if "error" in found:
            case.rows.append(Row("LightGBM lambdarank", found))
            print(f"    {found['error']}", flush=True)
        rounds = _row(case, f"LightGBM lambdarank, {ROUNDS} rounds, bins made before", found.get("rounds", {}))
        bins = _row(case, "LightGBM, making the bins", found.get("binning", {}))
        for precision, fit in fits.items():
            case.bar(f"LightGBM's rounds / a fit, {precision}", rounds.seconds / fit.seconds, "×", least=15)
            both = rounds.seconds + bins.seconds
            case.bar(f"LightGBM's bins and rounds / a fit, {precision}", both / fit.seconds, "×", least=15)
    return case


if __name__ == "__main__":
    print(json.dumps(CONTENDERS[sys.argv[1]](Path(sys.argv[2]), sys.argv[3])))
