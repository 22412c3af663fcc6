"""How often the test of fit rejects logs that fit, and one that does not. ``python -m benchmarks.fit_tests``.

Each design is drawn anew for every log: scores from N(0, 1), pairs evenly, outcomes by the model. *clusters*: half of
the judgments of a cluster follow one draw. *home*: the first side has .4 more; *covariate*: .4 times a normal number.
*grades*: thresholds .4, 1.1, 2.5 on the difference with a logistic error, fitted as cumulative logits. A rate between
3 and 7% is fine at 5%; its standard error stands beside it. *theorem-3*: 300 votes on the population on which one scale
does not fit.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtr

from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences
from concordant.ranking.bradley_terry import bradley_terry
from concordant.ranking.closed_forms import thurstone_mosteller
from concordant.ranking.graded_fit import graded_lack_of_fit
from concordant.ranking.lack_of_fit import MOST_GRAPHS, lack_of_fit

Floats = NDArray[np.float64]
CUTS = np.array([0.4, 1.1, 2.5])


@dataclass(frozen=True)
class Design:
    """Logs of so many items and judgments."""

    kind: str
    items: int
    judgments: int
    clusters: int = 0
    beside: str = ""
    """'home' or 'covariate'."""

    @property
    def name(self) -> str:
        clusters = f" in {self.clusters} clusters" if self.clusters else ""
        return f"{self.kind}: {self.items} items, {self.judgments:,} judgments{clusters}"


DESIGNS = (
    *(Design("plain", items, judgments) for items, judgments in ((3, 200), (12, 70), (30, 100), (200, 2_000))),
    Design("ties", 10, 200),
    *(Design("clusters", items, n, clusters) for items, n, clusters in ((30, 500, 100), (8, 300, 50), (4, 400, 20))),
    *(Design("home", m, n, beside="home") for m, n in ((5, 60), (12, 150), (20, 100), (20, 300), (30, 2_000))),
    *(Design("home, clusters", m, n, c, "home") for m, n, c in ((6, 600, 60), (10, 1_000, 100), (20, 1_000, 50))),
    *(Design("covariate, clusters", m, n, c, "covariate") for m, n, c in ((6, 600, 60), (20, 1_000, 50))),
    *(Design("normal", m, n) for m, n in ((4, 80), (8, 100), (12, 300), (20, 200), (30, 150))),
    *(Design("grades", m, n, c) for m, n, c in ((6, 250, 0), (12, 600, 0), (6, 600, 60))),
    Design("theorem-3", 3, 300),
)


def main() -> None:
    """Print a row for each design as it is done."""
    wanted = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    wanted.add_argument("designs", nargs="*", help="beginnings of names of designs, such as home; default: all")
    wanted.add_argument("--logs", type=int, default=100)
    wanted.add_argument("--seed", type=int, default=0)
    options = wanted.parse_args()
    chosen = [one for one in DESIGNS if not options.designs or one.name.startswith(tuple(options.designs))]
    if not chosen:
        wanted.error(f"no design begins so; there are {', '.join(dict.fromkeys(one.kind for one in DESIGNS))}")
    print("| design | rejected at 5% | standard error | untested |\n|---|---|---|---|")
    for design in chosen:
        random = np.random.default_rng([options.seed, DESIGNS.index(design)])
        parts = [min(MOST_GRAPHS, options.logs - begin) for begin in range(0, options.logs, MOST_GRAPHS)]
        p = np.concatenate([p_values(design, part, random) for part in parts])
        rate, tested = float((p <= 0.05).sum()), int((~np.isnan(p)).sum())
        rate = rate / max(tested, 1)
        error = np.sqrt(rate * (1 - rate) / max(tested, 1))
        print(f"| {design.name} | {rate:.4f} | {error:.4f} | {len(p) - tested} |", flush=True)


def p_values(design: Design, logs: int, random: np.random.Generator) -> Floats:
    """The p-values of so many logs."""
    if design.kind == "theorem-3":
        drawn = random.multinomial(design.judgments, [0.25, 0.01, 0.5, 0.24], logs)
        query, kind = np.nonzero(drawn)
        winner, loser = np.array([0, 1, 0, 2])[kind], np.array([1, 2, 2, 0])[kind]
        prefs = Preferences.from_comparisons(winner, loser, query, count=drawn[query, kind])
    else:
        prefs = sampled(design, logs, random)
    batch = Batch.whole(prefs)
    if design.kind == "grades":
        return graded_lack_of_fit(batch, bradley_terry(batch, ties="cumulative"))
    normal = design.kind == "normal"
    return lack_of_fit(batch, thurstone_mosteller(batch, differences="probit") if normal else bradley_terry(batch))


def sampled(design: Design, logs: int, random: np.random.Generator) -> Preferences:
    """Logs of the model, a query each."""
    shape = (logs, design.judgments)
    score = random.normal(size=(logs, design.items))
    one = random.integers(0, design.items, shape)
    other = (one + random.integers(1, design.items, shape)) % design.items
    z = random.normal(size=shape) if design.beside == "covariate" else np.ones(shape)
    margin = np.take_along_axis(score, one, 1) - np.take_along_axis(score, other, 1)
    margin += 0.4 * z * bool(design.beside)
    uniform = random.random(shape)
    cluster = None
    if design.clusters:
        of = np.repeat(np.arange(design.clusters), design.judgments // design.clusters)
        shared = random.random((logs, design.clusters))[:, of]
        uniform = np.where(random.random(shape) < 0.5, shared, uniform)
        cluster = (np.arange(logs)[:, None] * design.clusters + of).ravel()
    tie = None if design.kind != "ties" else (random.random(shape) < 0.2).ravel()
    strength = None
    if design.kind == "grades":
        grade = np.searchsorted(CUTS, np.abs(margin - logit(uniform))).ravel()
        tie, strength = grade == 0, np.maximum(grade, 1).astype(np.float64)
    won = uniform < (ndtr(margin / np.sqrt(2)) if design.kind == "normal" else expit(margin))
    winner, loser = np.where(won, one, other).ravel(), np.where(won, other, one).ravel()
    beside = {design.beside: np.where(won, z, -z).ravel()} if design.beside else None
    query = np.repeat(np.arange(logs), design.judgments)
    return Preferences.from_comparisons(
        winner, loser, query, tie=tie, weight=strength, cluster=cluster, covariates=beside
    )


if __name__ == "__main__":
    main()
