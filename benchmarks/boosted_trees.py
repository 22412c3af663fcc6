"""BoostedRanker beside its peers on held-out queries: ``python -m benchmarks.boosted_trees judgments|uneven|grades``.

Two thirds of the queries of a real set train, the rest judge, NDCG@10 with gain 2^r − 1 on the true labels; ten splits
of four sets. ``judgments``: comparisons drawn from the labels (AoS (26)), 20, 160 and 640 a query; ``uneven``: the same
where some queries have most of them (Zipf). ``grades``: the labels themselves. Every arm gets the same rows; trees have
rate .05 (CatBoost .1) and as many rounds, up to 300 (150), as three folds of the training queries say, until 30 bring
no gain; a peer also chooses its depth there. Differences are paired by query; a query that several splits hold out
counts once, with the mean of its differences, so intervals are over queries. ``--table`` prints what is kept. Needs
LightGBM, XGBoost and, for ``grades``, CatBoost; the sets are not shipped (``--data``). About three hours on one core.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
import warnings
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import xgboost
from numpy.typing import NDArray

from benchmarks.quality_sets import ALL_SETS, Comparisons, Queries, Split
from concordant.learning.features.matrix import Features
from concordant.learning.rankers.aggregation import AggregationRanker
from concordant.learning.rankers.boosted import BoostedRanker
from concordant.learning.rankers.lists import ListRanker
from concordant.losses.metrics.ndcg import ndcg
from concordant.preferences.graphs import Batch
from concordant.ranking.bradley_terry import bradley_terry

Floats = NDArray[np.float64]
ROOT = Path(__file__).resolve().parent.parent
PER_QUERY = (20, 160, 640)
ROUNDS, PATIENCE, FOLDS, RATE = 300, 30, 3, 0.05
LEAVES, DEPTHS = (15, 31), (4, 6)
OURS = "BoostedRanker()"
FAIR = "linear start, logistic trees, chosen rounds"
LAMBDAMART = "LambdaMART on grades"
LINEAR = "linear default"
JUDGMENTS = {
    OURS: {},
    FAIR: {"loss": "ranknet"},
    "informed alone": {"loss": "informed"},
    "squares to informed scores alone": {"loss": "informed-regression"},
}
"""Arms that are a BoostedRanker: trees, start and choice of rounds are the same, the loss is not."""
ALIKE = "the fair arm, queries weighed alike"
REGRESSOR = "AggregationRanker(regressor=trees)"
OTHERS = (LAMBDAMART, LINEAR, REGRESSOR)
SEARCHED = "BoostedRanker(), thresholds searched"
EVERY = "BoostedRanker(), all features in each tree"
LOSSES = {
    "the pair before: gains and their squares": ["ndcg-pairwise", "gain-regression"],
    "lambda-ndcg alone": "lambda-ndcg",
    "squares to the labels alone": "label-regression",
    "ndcg-pairwise and squares to the labels": ["ndcg-pairwise", "label-regression"],
}
"""BoostedRanker of grades with other losses (asked for by ``--arms``)."""
GRADES = (
    OURS,
    "LightGBM lambdarank",
    "XGBoost rank:ndcg",
    "CatBoost YetiRank",
    "CatBoost QueryRMSE",
    "LightGBM regression",
    "ListRanker()",
    "ListRanker(ndcg-pairwise)",
    "ListRanker(regressor=trees)",
)
TREE = {
    "learning_rate": RATE,
    "num_threads": 1,
    "deterministic": True,
    "force_row_wise": True,
    "verbose": -1,
    "lambda_l2": 1.0,
}
Cell = tuple[str, int, int]


def main() -> None:
    """Measure what is not kept yet, then print the table."""
    wanted = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    wanted.add_argument("what", choices=["judgments", "uneven", "grades"])
    wanted.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    wanted.add_argument("--splits", type=int, default=10)
    wanted.add_argument("--sets", nargs="+", choices=list(ALL_SETS), default=list(ALL_SETS))
    wanted.add_argument("--arms", nargs="+", help="only these")
    wanted.add_argument("--keep", type=Path, help="file of results, one line a cell")
    wanted.add_argument("--table", action="store_true", help="print what is kept and stop")
    options = wanted.parse_args()
    keep = options.keep or ROOT / "benchmarks" / f"boosted-{options.what}.jsonl.gz"
    found = _kept(keep)
    if not options.table:
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        usual = {"judgments": (*JUDGMENTS, *OTHERS), "uneven": (*JUDGMENTS, ALIKE), "grades": GRADES}
        arms = options.arms or usual[options.what]
        uneven = options.what == "uneven"
        numbers = {"judgments": PER_QUERY, "uneven": PER_QUERY[:2], "grades": (0,)}[options.what]
        sets = {name: Queries.read(options.data, name) for name in options.sets}
        for seed, name, number in product(range(options.splits), options.sets, numbers):
            row = found.setdefault((name, number, seed), {})
            lacking = [arm for arm in arms if arm not in row]
            if not lacking:
                continue
            split = _Numbered.of(sets[name], seed)
            drawn = Comparisons.draw(split.train, number, seed, uneven=uneven) if number else None
            at = _Graded(split) if drawn is None else _Judged(split, drawn)
            for arm in lacking:
                begin = time.perf_counter()
                scores, chosen = at.scores(arm)
                row[arm] = {
                    "ndcg": [round(float(v), 5) for v in split.each(scores)],
                    "seconds": round(time.perf_counter() - begin, 2),
                    "chosen": chosen,
                }
            row["queries"] = [int(q) for q in split.held]
            _keep(keep, found)
            print(f"{name}, {number} a query, split {seed}", flush=True)
    print(_table(found))


def _kept(path: Path) -> dict[Cell, dict[str, Any]]:
    if not path.exists():
        return {}
    with gzip.open(path, "rt") as lines:
        rows = [json.loads(line) for line in lines]
    return {tuple(row.pop("cell")): row for row in rows}


def _keep(path: Path, found: dict[Cell, dict[str, Any]]) -> None:
    text = "".join(json.dumps({"cell": key, **found[key]}) + "\n" for key in sorted(found))
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


class _Numbered(Split):
    """A split that knows which queries of the set it holds out."""

    held: NDArray[np.int64]

    @classmethod
    def of(cls, queries: Queries, seed: int) -> _Numbered:
        made = super().of(queries, seed)
        order = np.random.default_rng([seed, 2013]).permutation(len(queries.size))
        held = np.sort(order[2 * len(order) // 3 :])
        tells = np.maximum.reduceat(made.test.label, made.test.start[:-1]) > np.minimum.reduceat(
            made.test.label, made.test.start[:-1]
        )
        object.__setattr__(made, "tells", tells)
        object.__setattr__(made, "held", held[tells])
        return made  # type: ignore[return-value]

    def each(self, scores: Floats) -> Floats:
        """NDCG@10 of every held-out query whose labels are not all equal."""
        found = ndcg(np.asarray(scores, np.float64), self.test.label, self.test.query, at=10, ties="averaged")
        return np.asarray(found)[self.tells]  # type: ignore[attr-defined]


def _folds(queries: int) -> list[NDArray[np.bool_]]:
    dealt = np.random.default_rng(0).permutation(queries) % FOLDS
    return [dealt == k for k in range(FOLDS)]


class _Grown:
    """A peer that grows on some rows, and its scores of other rows after each round."""

    def __init__(self, name: str, depth: int, train: Queries, label: Floats, held: Queries) -> None:
        self.added = np.zeros(len(held.label))
        self.done = 0
        if name.startswith("L"):  # LightGBM
            objective = "regression" if name.endswith("regression") else "lambdarank"
            data = lightgbm.Dataset(train.X, label, group=train.size, params={"verbose": -1})
            model = lightgbm.Booster({**TREE, "objective": objective, "num_leaves": depth, "seed": 0}, data)
            self._more = model.update
            self._one = lambda: model.predict(held.X, start_iteration=self.done, num_iteration=1, num_threads=1)
            return
        data = xgboost.DMatrix(train.X, label, qid=train.query)
        rows = xgboost.DMatrix(held.X)
        options = {"objective": "rank:ndcg", "eta": RATE, "max_depth": depth, "nthread": 1, "tree_method": "hist"}
        model = xgboost.Booster({**options, "base_score": 0.0, "seed": 0}, [data])
        self._more = lambda: model.update(data, self.done)
        self._one = lambda: model.predict(rows, output_margin=True, iteration_range=(self.done, self.done + 1))

    def round(self) -> Floats:
        self._more()
        self.added = self.added + np.asarray(self._one(), np.float64)
        self.done += 1
        return self.added


def _catboost(name: str, depth: int, train: Queries, label: Floats, held: Queries, rounds: int) -> list[Floats]:
    from catboost import CatBoost, Pool

    options = {"loss_function": name.split()[1], "iterations": rounds, "depth": depth, "learning_rate": 2 * RATE}
    quiet = {"thread_count": 1, "random_seed": 0, "verbose": False, "allow_writing_files": False}
    model = CatBoost({**options, **quiet})
    model.fit(Pool(train.X, label, group_id=train.query))
    return [np.asarray(one, np.float64) for one in model.staged_predict(held.X)]


def _searched(
    name: str, train: Queries, labels: dict[str, Floats], judge: Any, held: Queries
) -> tuple[Floats, dict[str, Any]]:
    """Scores of held-out rows of the depth, rounds and labels that order the folds best, fitted to all of train."""
    best: tuple[float, str, int, int] = (np.inf, "", 0, 0)
    for kind, depth in product(labels, LEAVES if name.startswith("L") else DEPTHS):
        parts = []
        for fold in _folds(len(train.size)):
            inside, outside = np.flatnonzero(~fold), np.flatnonzero(fold)
            label = labels[kind][np.flatnonzero(~fold[train.query])]
            parts.append((outside, name, depth, train.take(inside), label, train.take(outside)))
        lost: list[float] = []
        if name.startswith("CatBoost"):
            staged = [(outside, _catboost(*rest, ROUNDS // 2)) for outside, *rest in parts]
            lost = [sum(judge(outside, s[stage]) for outside, s in staged) for stage in range(ROUNDS // 2)]
        else:
            grown = [(outside, _Grown(*rest)) for outside, *rest in parts]
            while len(lost) < ROUNDS and len(lost) - int(np.argmin(lost or [0])) <= PATIENCE:
                lost.append(sum(judge(outside, one.round()) for outside, one in grown))
        stage = int(np.argmin(lost))
        best = min(best, (float(lost[stage]), kind, depth, stage + 1))
    _, kind, depth, rounds = best
    if name.startswith("CatBoost"):
        scores = _catboost(name, depth, train, labels[kind], held, rounds)[-1]
    else:
        last = _Grown(name, depth, train, labels[kind], held)
        scores = [last.round() for _ in range(rounds)][-1]
    return scores, {"labels": kind, "depth": depth, "rounds": rounds}


class _Graded:
    """Scorers that see the labels of the training queries."""

    def __init__(self, split: _Numbered) -> None:
        self.split = split

    def scores(self, arm: str) -> tuple[Floats, Any]:
        train = self.split.train
        if arm in LOSSES or arm.startswith(("ListRanker", "BoostedRanker")):
            tree = lightgbm.LGBMRegressor(n_estimators=100, num_leaves=15, n_jobs=1, learning_rate=RATE, verbose=-1)
            made: dict[str, Any] = {
                OURS: partial(BoostedRanker, options={"num_threads": 1}),
                **{name: partial(BoostedRanker, loss, options={"num_threads": 1}) for name, loss in LOSSES.items()},
                EVERY: partial(BoostedRanker, options={"num_threads": 1, "feature_fraction": 1.0}),
                SEARCHED: partial(
                    BoostedRanker, options={"num_threads": 1, "extra_trees": False, "feature_fraction": 1.0}
                ),
                "ListRanker()": ListRanker,
                "ListRanker(ndcg-pairwise)": partial(ListRanker, "ndcg-pairwise"),
                "ListRanker(regressor=trees)": partial(ListRanker, regressor=tree),
            }
            ranker = made[arm]().fit((train.X, train.query, np.arange(len(train.X))), train.label)
            return ranker.predict(self.split.test.X), ranker.status_.get("stopped")
        labels = {"grades": train.label}
        if arm == "LightGBM regression":
            labels = {"grades": train.label, "gains": 2.0**train.label - 1.0}
        return _searched(arm, train, labels, self._judge, self.split.test)

    def _judge(self, queries: Any, scores: Floats) -> float:
        held = self.split.train.take(queries)
        return -float(np.nansum(ndcg(scores, held.label, held.query, at=10, ties="averaged")))


class _Judged:
    """Scorers that see comparisons."""

    def __init__(self, split: _Numbered, drawn: Comparisons) -> None:
        self.split, self.drawn = split, drawn

    @cached_property
    def features(self) -> Features:
        train = self.split.train
        return Features.of(train.X, np.arange(len(train.X)), train.query)

    def scores(self, arm: str) -> tuple[Floats, Any]:
        test = self.split.test
        if arm in JUDGMENTS:
            ranker = BoostedRanker(**JUDGMENTS[arm], options={"num_threads": 1}).fit(self.features, self.drawn.prefs)
            return ranker.predict(test.X), ranker.status_["stopped"]
        if arm == ALIKE:
            votes = np.zeros(len(self.split.train.size))
            votes[[int(str(query)) for query in self.drawn.prefs.queries]] = self.drawn.prefs.judgments
            weight = 1.0 / np.maximum(votes, 1.0)[self.split.train.query]
            ranker = BoostedRanker("ranknet", options={"num_threads": 1})
            ranker.fit(self.features, self.drawn.prefs, sample_weight=weight)
            return ranker.predict(test.X), ranker.status_["stopped"]
        if arm == LINEAR:
            return AggregationRanker().fit(self.features, self.drawn.prefs).predict(test.X), None
        if arm == REGRESSOR:
            tree = lightgbm.LGBMRegressor(n_estimators=100, num_leaves=31, n_jobs=1, verbose=-1, deterministic=True)
            found = AggregationRanker(regressor=tree).fit(self.features, self.drawn.prefs)
            return found.predict(test.X), None
        return self._lambdamart()

    def _lambdamart(self) -> tuple[Floats, Any]:
        """Lambdarank on Bradley–Terry scores cut into five grades; cut, leaves, rounds by held-out judgments."""
        train, rows = self.split.train, self.drawn.where.row
        s = bradley_terry(Batch.whole(self.drawn.prefs), prior=1.0).value
        owner = train.query[rows]
        seen = Queries(train.X[rows], s, np.append(0, np.cumsum(np.bincount(owner)[np.unique(owner)])))
        widths = np.linspace(s.min(), s.max(), 6)[1:-1]
        labels = {
            "equal counts": np.searchsorted(np.quantile(s, [0.2, 0.4, 0.6, 0.8]), s).astype(np.float64),
            "equal widths": np.searchsorted(widths, s).astype(np.float64),
        }
        graphs = Batch.whole(self.drawn.prefs).graphs

        def judge(queries: Any, scores: Floats) -> float:
            place = np.full(len(rows), -1)
            inside = np.flatnonzero(np.isin(seen.query, queries))
            place[inside] = np.arange(len(inside))
            some = place[graphs.first] >= 0
            t = scores[place[graphs.first[some]]] - scores[place[graphs.second[some]]]
            return float(graphs.above[some] @ (t <= 0) + graphs.below[some] @ (t >= 0))

        return _searched(LAMBDAMART, replace(seen), labels, judge, self.split.test)


def _by_query(found: dict[Cell, dict[str, Any]], name: str, number: int, arm: str, base: str) -> dict[int, float]:
    """Mean difference base − arm of each query that some split held out."""
    gaps = defaultdict(list)
    for (of, n, _), row in found.items():
        if (of, n) == (name, number) and arm in row and base in row:
            for query, ours, theirs in zip(row["queries"], row[base]["ndcg"], row[arm]["ndcg"], strict=True):
                gaps[query].append(ours - theirs)
    return {query: float(np.mean(gap)) for query, gap in gaps.items()}


def _over_queries(columns: Iterable[tuple[str, dict[int, float]]]) -> tuple[float, float]:
    """Mean over columns of the mean over queries, and half its 95% interval: a query's columns vary together."""
    columns = list(columns)
    parts: dict[tuple[str, int], float] = defaultdict(float)
    for name, gaps in columns:
        middle = float(np.mean(list(gaps.values())))
        for query, gap in gaps.items():
            parts[name, query] += (gap - middle) / len(gaps) / len(columns)
    mean = float(np.mean([np.mean(list(gaps.values())) for _, gaps in columns]))
    return mean, 1.96 * float(np.sqrt(np.sum(np.square(list(parts.values())))))


def _table(found: dict[Cell, dict[str, Any]]) -> str:
    base = OURS
    cells = [
        (name, n)
        for name in ALL_SETS
        for n in sorted({key[1] for key in found})
        if any(k[:2] == (name, n) for k in found)
    ]
    arms = sorted({arm for row in found.values() for arm in row if arm != "queries"} - {base})
    shown = [f"{name} {n}" if n else name for name, n in cells]
    lines = [f"| {base} less | " + " | ".join(shown) + " | mean | seconds |", "|---" * (len(cells) + 3) + "|"]
    means = [
        np.mean([np.mean(row[base]["ndcg"]) for key, row in found.items() if key[:2] == cell and base in row])
        for cell in cells
    ]
    lines.append(
        "| nothing | " + " | ".join(f"{m:.4f}" for m in means) + f" | {np.mean(means):.4f} | {_seconds(found, base)} |"
    )
    for arm in arms:
        columns = [(name, _by_query(found, name, n, arm, base)) for name, n in cells]
        if not all(gaps for _, gaps in columns):
            continue
        each = [_over_queries([one]) for one in columns]
        whole = _over_queries(columns)
        text = [f"{mean:+.4f} ± {half:.4f}" for mean, half in [*each, whole]]
        lines.append(f"| {arm} | " + " | ".join(text) + f" | {_seconds(found, arm)} |")
    return "\n".join(lines) + "\n"


def _seconds(found: dict[Cell, dict[str, Any]], arm: str) -> str:
    """Mean seconds, of the runs whose machine was not stopped meanwhile."""
    taken = [row[arm]["seconds"] for row in found.values() if arm in row and row[arm]["seconds"] is not None]
    return f"{np.mean(taken):.1f}"


if __name__ == "__main__":
    main()
