"""What the target decides, on real queries: ``python -m benchmarks.targets``.

Comparisons are drawn from labels and scorers judged by NDCG@10 of held-out queries, as in ``benchmarks.quality``.
*stopping*: boosted trees that stop early by the target beside the same that stop by their squared error on rows that
they hold out. *ridge*: the default linear scorer, the ridge of its first stage being that of least held-out loss of the
target, beside the usual, of the greatest likelihood. The sets are not shipped: ``--data`` names the folder that holds
them. About half an hour on one core.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student
from sklearn.ensemble import HistGradientBoostingRegressor

from benchmarks.quality_sets import Comparisons, Queries, Split
from concordant.learning.features.matrix import Features
from concordant.learning.rankers import targeting
from concordant.learning.rankers.aggregation import AggregationRanker
from concordant.learning.rankers.target import Target
from concordant.learning.targets.informed import informed_prior
from concordant.preferences.splits import folds

ROOT = Path(__file__).resolve().parent.parent
SETS = ("MQ2008", "MSLR piece")
TARGETS = ("pairwise", "ndcg@10")
PRECISIONS = 10.0 ** np.arange(-2.0, 6.5, 0.5)
Floats = NDArray[np.float64]


class ByItself(HistGradientBoostingRegressor):
    """Stops by its squared error, since no ranker knows its class."""


def main() -> None:
    """Print a table for each part."""
    wanted = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    wanted.add_argument("parts", nargs="*", default=["stopping", "ridge"], help="stopping, ridge; default: both")
    wanted.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    wanted.add_argument("--splits", type=int, default=10)
    wanted.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    wanted.add_argument("--per-query", nargs="+", type=int, default=[20, 160])
    options = wanted.parse_args()
    measures = {"stopping": stopping, "ridge": ridge}
    if unknown := [part for part in options.parts if part not in measures]:
        wanted.error(f"unknown part {unknown[0]!r}; the parts are {', '.join(measures)}")
    queries = {name: Queries.read(options.data, name) for name in options.sets}
    for part in options.parts:
        print(f"\n## {part}", flush=True)
        for name, per_query in product(options.sets, options.per_query):
            found: dict[str, list[tuple[float, ...]]] = {}
            for seed in range(options.splits):
                split = Split.of(queries[name], seed)
                for arm, row in measures[part](split, Comparisons.draw(split.train, per_query, seed)):
                    found.setdefault(arm, []).append(row)
            for arm, rows in found.items():
                print(f"{name}, {per_query} a query, {arm}: {_said(np.array(rows))}", flush=True)


def _said(rows: Floats) -> str:
    """NDCG@10 and its difference to the usual with an interval over splits, then what else the rows hold."""
    difference = rows[:, 0] - rows[:, 1]
    half = student.ppf(0.975, len(rows) - 1) * difference.std(ddof=1) / np.sqrt(len(rows)) if len(rows) > 1 else np.nan
    shown = f"NDCG@10 {rows[:, 0].mean():.4f}, {difference.mean():+.4f} ± {half:.4f} (worst {difference.min():+.4f}, "
    shown += f"best {difference.max():+.4f}) to {rows[:, 1].mean():.4f}"
    others = (f"; {each.mean():.3g} ({each.min():.3g} to {each.max():.3g})" for each in rows.T[2:])
    return shown + "".join(others)


def _fitted(ranker: AggregationRanker, split: Split, drawn: Comparisons) -> tuple[float, float]:
    """NDCG@10 of held-out queries, and seconds of the fit."""
    features = Features.of(split.train.X, np.arange(len(split.train.X)), split.train.query)
    begin = time.process_time()
    ranker.fit(features, drawn.prefs)
    spent = time.process_time() - begin
    return split.test.quality(ranker.predict(split.test.X)), spent


def stopping(split: Split, drawn: Comparisons) -> Iterator[tuple[str, tuple[float, ...]]]:
    """NDCG by target, by squared error; iterations of both; time of the fit over that of the usual one."""
    trees: dict[str, Any] = {"max_iter": 150, "early_stopping": True, "random_state": 0}
    for target in TARGETS:
        usual = AggregationRanker(regressor=ByItself(**trees), target=target)
        own = AggregationRanker(regressor=HistGradientBoostingRegressor(**trees), target=target)
        (before, slow), (after, spent) = _fitted(usual, split, drawn), _fitted(own, split, drawn)
        yield (
            f"trees by {target} less by squared error (iterations, of the latter, time of the fit over its)",
            (after, before, own.status_["iterations"], usual.regressor_.n_iter_, spent / slow),
        )


def ridge(split: Split, drawn: Comparisons) -> Iterator[tuple[str, tuple[float, ...]]]:
    """NDCG with the first stage's ridge by the target, and by likelihood; both ridges."""
    usual = AggregationRanker()
    before, _ = _fitted(usual, split, drawn)
    prefs, where, Z = drawn.prefs, drawn.where, split.Z_train
    loss = np.zeros((len(TARGETS), len(PRECISIONS)))
    for train, held in folds(prefs, 3, split="queries", seed=0):
        priors = [informed_prior(Z, where, train, ridge=one / len(train), tau2=1.0) for one in PRECISIONS]
        for place, name in enumerate(TARGETS):
            judge = Target.of(name, "comparisons").judge(held)
            loss[place] += [judge.weight.sum() * judge.loss((Z @ prior.theta)[where.row]) for prior in priors]
    for name, lost in zip(TARGETS, loss, strict=True):
        taken = float(PRECISIONS[int(lost.argmin())]) / len(prefs)
        with patch.object(targeting, "informed_prior", lambda *a, **b: informed_prior(*a, **{"ridge": taken, **b})):  # noqa: B023
            after, _ = _fitted(AggregationRanker(), split, drawn)
        arm = f"ridge of the first stage by {name} less by likelihood (ridge, of the latter)"
        yield arm, (after, before, taken, usual.status_["prior_ridge"])


if __name__ == "__main__":
    main()
