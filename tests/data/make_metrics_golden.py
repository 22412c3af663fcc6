"""Compute ``metrics_golden.json`` with the originals; run by hand in an environment that has them.

pip install pytrec-eval-terrier ir-measures ranx scikit-learn xgboost lightgbm
python tests/data/make_metrics_golden.py
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path

import numpy as np

warnings.filterwarnings("ignore")
TARGET = Path(__file__).with_name("metrics_golden.json")
PACKAGES = ("pytrec-eval-terrier", "ir-measures", "ranx", "scikit-learn", "xgboost", "lightgbm")
LENGTHS = [1, 1, 2, 3, 5, 8, 10, 11, 20, 20, 33, 40]


def lists(seed: int, *, ties: bool, lowest: int) -> dict[str, list]:
    """Draw queries of several lengths, the last two without relevance; rows are shuffled across queries."""
    draw = np.random.default_rng(seed)
    query = np.repeat([str(101 + number) for number in range(len(LENGTHS))], LENGTHS)
    size = len(query)
    label = draw.integers(lowest, 5, size)
    label[np.isin(query, ["102", "111"])] = 0
    score = draw.integers(0, 6, size) / 4 if ties else draw.permutation(size) / 128
    item = np.array([f"d{number}" for number in draw.permutation(size)])
    order = draw.permutation(size)
    return {
        "query": query[order].tolist(),
        "item": item[order].tolist(),
        "score": score[order].tolist(),
        "label": label[order].tolist(),
    }


def by_query(data: dict[str, list]) -> list[tuple[np.ndarray, np.ndarray, list[str]]]:
    """Scores, labels and items of each query, queries in order of first appearance."""
    query = np.array(data["query"])
    found = []
    for name in dict.fromkeys(data["query"]):
        rows = np.flatnonzero(query == name)
        found.append((np.array(data["score"])[rows], np.array(data["label"])[rows], [data["item"][i] for i in rows]))
    return found


def of_sklearn(data: dict[str, list]) -> dict[str, list]:
    from sklearn.metrics import average_precision_score, ndcg_score

    found: dict[str, list] = {}
    for at in (3, 10, None):
        found[f"ndcg@{at}" if at else "ndcg"] = [
            ndcg_score([label], [score], k=at) if len(label) > 1 else None for score, label, _ in by_query(data)
        ]
    found["map"] = [
        float(average_precision_score(label >= 1, score)) if (label >= 1).any() else None
        for score, label, _ in by_query(data)
    ]
    return found


def of_trec(data: dict[str, list]) -> dict[str, list]:
    import pytrec_eval

    names = {
        "ndcg": "ndcg",
        "ndcg@3": "ndcg_cut_3",
        "ndcg@10": "ndcg_cut_10",
        "map": "map",
        "map@5": "map_cut_5",
        "rr": "recip_rank",
        "precision@5": "P_5",
    }
    rows = list(zip(data["query"], data["item"], data["score"], data["label"]))
    qrels: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    for query, item, score, label in rows:
        qrels.setdefault(query, {})[item] = int(label)
        run.setdefault(query, {})[item] = score
    judge = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg", "ndcg_cut.3,10", "map", "map_cut.5", "recip_rank", "P.5"})
    found = judge.evaluate(run)
    return {ours: [found[query][theirs] for query in qrels] for ours, theirs in names.items()}


def of_xgboost(data: dict[str, list]) -> dict[str, list]:
    import xgboost

    def one(score: np.ndarray, label: np.ndarray, name: str, **options: object) -> float:
        matrix = xgboost.DMatrix(np.zeros((len(score), 1)), label=label, base_margin=score)
        matrix.set_group([len(score)])
        parameters = {"objective": "rank:ndcg", "eval_metric": name, "base_score": 0.0, **options}
        return float(xgboost.Booster(parameters, [matrix]).eval(matrix).rsplit(":", 1)[1])

    found = {
        name: [one(score, label, name) for score, label, _ in by_query(data)]
        for name in ("ndcg@3", "ndcg@10", "ndcg@100", "ndcg@10-")
    }
    found["linear ndcg@10"] = [one(score, label, "ndcg@10", ndcg_exp_gain=False) for score, label, _ in by_query(data)]
    for name in ("map@5", "map@5-"):
        found[name] = [one(score, (label >= 1).astype(float), name) for score, label, _ in by_query(data)]
    return found


def of_lightgbm(data: dict[str, list]) -> dict[str, list]:
    import lightgbm

    options = {"verbose": -1, "min_data_in_bin": 1, "feature_pre_filter": False}
    train = lightgbm.Dataset(np.zeros((4, 1)), label=[0, 1, 0, 1], group=[4], params=options)

    def one(score: np.ndarray, label: np.ndarray, name: str, at: int) -> float:
        values: dict = {}
        valid = lightgbm.Dataset(
            np.zeros((len(score), 1)), label=label, group=[len(score)], init_score=score, reference=train
        )
        parameters = {"objective": "lambdarank", "metric": name, "eval_at": [at], "verbose": -1}
        lightgbm.train(parameters, train, 1, valid_sets=[valid], callbacks=[lightgbm.record_evaluation(values)])
        return float(values["valid_0"][f"{name}@{at}"][0])

    cases = {"ndcg@3": ("ndcg", 3), "ndcg@10": ("ndcg", 10), "ndcg": ("ndcg", 100), "map@5": ("map", 5)}
    return {ours: [one(score, label, *case) for score, label, _ in by_query(data)] for ours, case in cases.items()}


def of_ranx(data: dict[str, list]) -> dict[str, list]:
    from ranx import Qrels, Run, evaluate

    qrels: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    for query, item, score, label in zip(data["query"], data["item"], data["score"], data["label"]):
        qrels.setdefault(query, {})[item] = int(label)
        run.setdefault(query, {})[item] = score
    found = {}
    for ours, theirs in {"ndcg@3": "ndcg_burges@3", "ndcg@10": "ndcg_burges@10", "rr": "mrr"}.items():
        scored = Run(run)
        evaluate(Qrels(qrels), scored, theirs, save_results_in_run=True)
        found[ours] = [float(scored.scores[theirs][query]) for query in qrels]
    return found


def of_gdeval(data: dict[str, list]) -> dict[str, list]:
    import ir_measures

    rows = list(zip(data["query"], data["item"], data["score"], data["label"]))
    qrels = [ir_measures.Qrel(query, item, int(label)) for query, item, _, label in rows]
    run = [ir_measures.ScoredDoc(query, item, score) for query, item, score, _ in rows]
    judge = next(one for one in ir_measures.DefaultPipeline.providers if one.NAME == "gdeval")
    found: dict[str, list] = {}
    for ours, theirs in {"ndcg@10": "nDCG(dcg='exp-log2')@10", "err@5": "ERR@5", "err@10": "ERR@10"}.items():
        measure = ir_measures.parse_measure(theirs)
        values = {value.query_id: value.value for value in judge.iter_calc([measure], qrels, run)}
        found[ours] = [values.get(query) for query in dict.fromkeys(data["query"])]
    return found


def alone(function: Callable[..., dict[str, list]], *arguments: object) -> dict[str, list]:
    """Call in a process of its own: the OpenMP libraries of the originals do not live together."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def main() -> None:
    tied, distinct = lists(1, ties=True, lowest=0), lists(2, ties=False, lowest=0)
    signed = lists(3, ties=True, lowest=-1)
    signed["score"] = [score + 1e-10 * (place % 3) for place, score in enumerate(signed["score"])]
    golden = {
        "made by": {"script": Path(__file__).name, **{name: version(name) for name in PACKAGES}},
        "data": {"tied": tied, "distinct": distinct, "signed": signed},
        "values": [
            {"data": "tied", "convention": "sklearn", "values": alone(of_sklearn, tied)},
            {"data": "tied", "convention": "trec", "values": alone(of_trec, tied)},
            {"data": "signed", "convention": "trec", "values": alone(of_trec, signed)},
            {"data": "tied", "convention": "xgboost", "values": alone(of_xgboost, tied)},
            {"data": "tied", "convention": "lightgbm", "values": alone(of_lightgbm, tied)},
            {"data": "distinct", "convention": "burges", "by": "ranx", "values": alone(of_ranx, distinct)},
            {
                "data": "distinct",
                "convention": "burges",
                "by": "gdeval by ir-measures (five digits)",
                "within": 5.1e-6,
                "values": alone(of_gdeval, distinct),
            },
        ],
    }
    TARGET.write_text(json.dumps(golden, indent=None, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
