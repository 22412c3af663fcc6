"""AoS Theorem 4: the risk tends to the Bayes risk as judgments grow and the order k grows more slowly than they.

Two populations of comparisons of three items on which the pairwise logistic loss tends to a wrong order: the four
graphs of Theorem 3 for the pairwise loss, and unevenly compared items for NDCG. Every run is a query of its own with
free scores, so that nothing but the surrogate and the aggregation matters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from concordant.apps.reproduction.outcome import Efforts, Outcome, Row, Setting
from concordant.learning.targets.mean_targets import mean_targets
from concordant.losses.metrics.metrics import summarise
from concordant.losses.metrics.ndcg import ndcg
from concordant.losses.minimise import minimise
from concordant.losses.objective import Objective, Population, WeightedEdges
from concordant.losses.pair_losses import pair_loss, value_penalty
from concordant.losses.surrogates import net_preferences, surrogate
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences

Floats = NDArray[np.float64]
EDGES = np.array([(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)])
"""Outcomes (winner, loser) of a judgment."""
POWERS = (0.25, 0.5, 0.75, 1.0)
"""a of k = n^a; 1 is complete aggregation."""
NUMBERS = (100, 300, 1_000, 3_000, 10_000, 30_000)
RUNS, PARTITIONS = 100, 8
"""The U-statistic is the mean over the blocks of so many random partitions."""
CLOSE = 1e-7
"""Scores nearer than this are tied."""


@dataclass(frozen=True)
class _World:
    """A population: how likely each outcome is, how scores are made from subsets, and the excess risk of scores."""

    name: str
    title: str
    chance: tuple[float, ...]
    scores: Callable[[Preferences, int | str, int, int], Floats]
    """Of (preferences, order, subsets, seed): shape (runs, 3)."""
    excess: Callable[[Floats], Floats]
    """Risk less the Bayes risk, of shape (runs,)."""
    efforts: tuple[float, ...]
    """Milliseconds of a run, about, of each of NUMBERS."""


# -- Theorem 3's graphs, pairwise loss ----------------------------------------------------------------------------
THEOREM = (0.25, 0.0, 0.5, 0.24, 0.01, 0.0)


def _from_difference_graphs(prefs: Preferences, order: int | str, subsets: int, seed: int) -> Floats:
    """Minimise (23) with logistic φ on the mean of the difference graphs of the subsets."""
    if isinstance(order, str):
        batch = Batch.whole(prefs)
    else:
        batch = Batch.subsets(prefs, order, subsets, seed=seed, partition=True)
    edges = net_preferences(Population.of(batch))
    graph = np.searchsorted(batch.node_start, edges.winner, side="right") - 1
    first, run_ = batch.node_start[graph], batch.query[graph].astype(np.int64)
    cell = run_ * 9 + (edges.winner - first) * 3 + (edges.loser - first)
    runs = len(prefs.queries)
    drawn = np.bincount(batch.query, minlength=runs)
    weight = np.bincount(cell, edges.weight, runs * 9)
    used = np.flatnonzero(weight)
    owner, pair = used // 9, used % 9
    start = np.arange(runs + 1) * 3
    mean = WeightedEdges.of(start, owner * 3 + pair // 3, owner * 3 + pair % 3, weight[used] / drawn[owner])
    found = minimise(Objective(mean, pair_loss("logistic"), value_penalty("square")), tolerance=1e-9)
    return found.alpha.reshape(-1, 3)


def _pairwise_excess(scores: Floats) -> Floats:
    """Expected pairwise loss (10), a tie charged the heavier direction, less that of the best order."""
    chance = np.zeros((3, 3))
    chance[EDGES[:, 0], EDGES[:, 1]] = THEOREM
    return _expected_loss(scores, chance) - _expected_loss(np.array([[2.0, 1.0, 0.0]]), chance)


def _expected_loss(scores: Floats, chance: Floats) -> Floats:
    loss = np.zeros(len(scores))
    for i, j in ((0, 1), (0, 2), (1, 2)):
        gap = scores[:, i] - scores[:, j]
        tie = np.abs(gap) <= CLOSE
        loss += np.where(tie, max(chance[i, j], chance[j, i]), np.where(gap > 0, chance[j, i], chance[i, j]))
    return loss


# -- uneven comparisons, NDCG -------------------------------------------------------------------------------------
SHARE = {(0, 1): 0.8, (0, 2): 0.1, (1, 2): 0.1}
ODDS = {(0, 1): 0.5, (0, 2): -0.2, (1, 2): 1.0}
"""How often each pair is compared and the log-odds of its first item: no Bradley–Terry model has these."""
LIMIT = np.array([0.5 - 0.2, -0.5 + 1.0, 0.2 - 1.0]) / 2
"""Average log-odds: the second item is best, though it mostly loses to the first."""
UNEVEN = tuple(share * float(expit(sign * ODDS[pair])) for pair, share in SHARE.items() for sign in (1, -1))


def _from_log_odds(prefs: Preferences, order: int | str, subsets: int, seed: int) -> Floats:
    """Gain regression (28): free scores equal the mean targets."""
    found = mean_targets(prefs, order=order, subsets=subsets, gain="2^s", seed=seed, partition=True)
    return found.value.reshape(-1, 3)


def _ndcg_excess(scores: Floats) -> Floats:
    """NDCG loss on the limit scores; the Bayes risk is 0."""
    query = np.repeat(np.arange(len(scores)), 3)
    labels = np.tile(LIMIT, len(scores))
    return np.asarray(1.0 - ndcg(scores.ravel(), labels, query, at=None, gain=np.exp2, ties="worst"))


POPULATIONS = (
    _World(
        "theorem 3",
        "Theorem 3's graphs, pairwise loss",
        THEOREM,
        _from_difference_graphs,
        _pairwise_excess,
        (14, 8, 54, 40, 60, 220),
    ),
    _World("uneven", "uneven comparisons, NDCG", UNEVEN, _from_log_odds, _ndcg_excess, (0.9, 0.9, 1.4, 4, 9, 26)),
)


def run(setting: Setting) -> Outcome:
    """Run the experiment: excess risk against n for each rate of k, scheme and population."""
    numbers = NUMBERS[:3] if setting.quick else NUMBERS
    runs = 50 if setting.quick else RUNS
    rows: list[Row] = []
    told = Efforts(setting, runs * sum(sum(world.efforts[: len(numbers)]) for world in POPULATIONS))
    for place, world in enumerate(POPULATIONS):
        for n, effort in zip(numbers, world.efforts, strict=False):
            prefs = _sample(world, n, runs, np.random.default_rng([setting.seed, place, n]))
            rows += _methods(world, prefs, n, setting.seed)
            told.done(runs * effort)
    return Outcome(
        "consistency",
        "AoS Theorem 4: excess risk as judgments grow",
        rows,
        _agreement(rows),
        lambda figure: _draw(figure, rows),
        size=(8.0, 5.2),
        notes=(
            f"{runs} runs of n comparisons of three items; k = n^a. U-statistic (19): the blocks of {PARTITIONS} "
            "random partitions into k judgments each; one partition: the blocks of one alone. 'changed': "
            "share of runs whose order changes when the same judgments are divided anew.",
        ),
    )


def _sample(world: _World, n: int, runs: int, rng: np.random.Generator) -> Preferences:
    """Counts of n judgments for each run; the run is the query, and all three items belong to it."""
    counts = rng.multinomial(n, world.chance, size=runs)
    query, outcome = np.nonzero(counts)
    winner, loser = EDGES[outcome].T
    return Preferences.from_comparisons(winner, loser, query=query, count=counts[query, outcome])


def _methods(world: _World, prefs: Preferences, n: int, seed: int) -> list[Row]:
    pairwise = minimise(surrogate("ranknet").objective(Batch.whole(prefs)), tolerance=1e-9).alpha.reshape(-1, 3)
    rows = [_row(world, n, "pairwise logistic", 1, pairwise, pairwise)]
    for power in POWERS:
        k: int | str = "all" if power == 1.0 else max(2, round(n**power))
        schemes = {"U-statistic": PARTITIONS, "one partition": 1}
        for scheme, partitions in schemes.items():
            if isinstance(k, str) and partitions == 1:
                continue
            subsets = 1 if isinstance(k, str) else partitions * (n // k)
            once, again = (world.scores(prefs, k, subsets, 2 * seed + draw) for draw in (0, 1))
            rows.append(_row(world, n, f"{scheme}, a = {power:g}", k, once, again))
    return rows


def _row(world: _World, n: int, method: str, k: int | str, scores: Floats, again: Floats) -> Row:
    found = summarise(world.excess(scores))
    changed = (_order(scores) != _order(again)).any(axis=1).mean()
    return {"population": world.name, "n": n, "method": method, "k": str(k), "excess risk": found.mean,
            "standard error": found.standard_error, "changed": float(changed)}  # fmt: skip


def _order(scores: Floats) -> NDArray[np.int64]:
    return np.argsort(-np.round(scores / CLOSE), axis=1, kind="stable")


def _agreement(rows: Sequence[Row]) -> list[str]:
    said = []
    for world in POPULATIONS:
        mine = [row for row in rows if row["population"] == world.name]
        last = {row["method"]: row for row in mine if row["n"] == max(row["n"] for row in mine)}
        logistic = last["pairwise logistic"]["excess risk"]
        rates = [power for power in POWERS if last[f"U-statistic, a = {power:g}"]["excess risk"] < 0.1 * logistic]
        n = max(row["n"] for row in mine)
        said.append(
            f"{world.title}: at n = {n:,} pairwise logistic keeps an excess risk of {logistic:.4f}; the U-statistic is "
            f"below a tenth of it for a = {', '.join(f'{power:g}' for power in rates) or 'none'}."
        )
        pairs = [
            (row["changed"], other["changed"])
            for row in mine
            if row["method"].startswith("U-statistic")
            for other in mine
            if (other["n"], other["method"]) == (row["n"], row["method"].replace("U-statistic", "one partition"))
        ]
        means = np.mean(pairs, axis=0)
        said.append(
            f"{world.title}: dividing the same judgments anew changes the order in {means[1]:.1%} of runs with one "
            f"partition, in {means[0]:.1%} with the U-statistic (means over n and a < 1)."
        )
    return said


def _draw(figure: Any, rows: Sequence[Row]) -> None:
    """A row for each population; left the U-statistic, right one partition."""
    panels = figure.subplots(len(POPULATIONS), 2, sharey="row", sharex=True)
    for world, line in zip(POPULATIONS, panels, strict=True):
        mine = [row for row in rows if row["population"] == world.name]
        for axis, scheme in zip(line, ("U-statistic", "one partition"), strict=True):
            for method in dict.fromkeys(row["method"] for row in mine):
                if not method.startswith((scheme, "pairwise")):
                    continue
                points = [row for row in mine if row["method"] == method]
                axis.errorbar([row["n"] for row in points], [row["excess risk"] for row in points],
                              [2 * row["standard error"] for row in points], marker="o", markersize=3, capsize=2,
                              label=method.removeprefix(scheme + ", "),
                              color="black" if method.startswith("pairwise") else None)  # fmt: skip
            axis.set_xscale("log")
            axis.set_title(f"{world.title}: {scheme}", fontsize=8)
        line[0].set_ylabel("excess risk")
        line[0].legend(fontsize=7)
    for axis in panels[-1]:
        axis.set_xlabel("judgments n")
