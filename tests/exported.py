"""Readers of exported models that follow the formats' documents, not our code; models of every kind to export."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import xgboost
from sklearn import ensemble, linear_model, neural_network, tree
from threadpoolctl import threadpool_limits

import concordant as cc

REAL = Path(__file__).parent / "data" / "clueweb09"
TREES = {
    "hist": lambda: ensemble.HistGradientBoostingRegressor(max_iter=10, random_state=0),
    "forest": lambda: ensemble.RandomForestRegressor(10, max_leaf_nodes=40, random_state=0),
    "extra": lambda: ensemble.ExtraTreesRegressor(10, max_leaf_nodes=40, random_state=0),
    "tree": lambda: tree.DecisionTreeRegressor(random_state=0),
    "gradient": lambda: ensemble.GradientBoostingRegressor(n_estimators=20, random_state=0),
    "lightgbm": lambda: lightgbm.LGBMRegressor(n_estimators=20, verbose=-1, n_jobs=1, random_state=0),
    "xgboost": lambda: xgboost.XGBRegressor(n_estimators=20, n_jobs=1, random_state=0),
}
NETWORKS = {
    "relu": lambda: neural_network.MLPRegressor(hidden_layer_sizes=(8,), max_iter=20, random_state=0),
    "tanh": lambda: neural_network.MLPRegressor(
        hidden_layer_sizes=(6, 3), activation="tanh", max_iter=20, random_state=0
    ),
    "logistic": lambda: neural_network.MLPRegressor(
        hidden_layer_sizes=(4,), activation="logistic", max_iter=20, random_state=0
    ),
}
LINEAR = {"ridge": linear_model.Ridge, "none": lambda: None, "huber": linear_model.HuberRegressor}


@cache
def learning() -> tuple[cc.Features, np.ndarray]:
    """The first queries of the training file, every fifth document: quick to fit."""
    features, labels = cc.read_judged(REAL / "train.txt.gz")
    some = np.arange(0, len(labels), 5)
    return features.take(some), labels[some]


@cache
def held_out() -> np.ndarray:
    """Documents that no model has seen."""
    return cc.read_features(REAL / "test.txt.gz").X


@cache
def fitted(kind: str, log: bool = False) -> Any:
    """A ranker with this regressor on real features."""
    make: Callable[[], Any] = {**TREES, **NETWORKS, **LINEAR}[kind]
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")  # of solvers that stop early
        return cc.ListRanker(regressor=make(), log=log, gain="2^s-1", normalise=True, missing="raise").fit(*learning())


def elasticsearch_score(body: Mapping[str, Any], row: Mapping[str, float], number: type = np.float32) -> float:
    """Score as "Uploading A Trained Model" says: normalizers, then weights; or XGBoost's trees, yes when below."""
    inner = body["model"]["model"]
    assert isinstance(body["model"]["name"], str) and isinstance(inner["definition"], str)
    definition = json.loads(inner["definition"])
    if inner["type"] == "model/linear":
        total = number(0)
        for feature, weight in definition.items():
            value = number(row.get(feature, 0.0))
            for kind, norm in inner.get("feature_normalizers", {}).get(feature, {}).items():
                assert kind == "standard"
                value = (value - number(norm["mean"])) / number(norm["standard_deviation"])
            total += number(weight) * value
        return float(total)
    assert inner["type"] == "model/xgboost+json"
    total = number(0)
    for node in definition:
        while "leaf" not in node:
            assert isinstance(node["depth"], int) and len(node["children"]) == 2
            yes, no = node["children"]
            assert (yes["nodeid"], no["nodeid"]) == (node["yes"], node["no"])
            value = np.float32(row.get(node["split"], math.nan))
            below = node["missing"] == node["yes"] if np.isnan(value) else value < np.float32(node["split_condition"])
            node = yes if below else no
        total += number(node["leaf"])
    return float(total)


def solr_score(model: Mapping[str, Any], row: Mapping[str, float], number: type = np.float32) -> float:
    """Score as the classes of Solr's reference guide do; every feature and its norm first."""
    values = {}
    for feature in model["features"]:
        value = number(row.get(feature["name"], 0.0))
        if "norm" in feature:
            assert feature["norm"]["class"] == "org.apache.solr.ltr.norm.StandardNormalizer"
            params = {key: number(text) for key, text in feature["norm"]["params"].items()}
            value = (value - params["avg"]) / params["std"]
        values[feature["name"]] = value
    kind, params = model["class"].removeprefix("org.apache.solr.ltr.model."), model["params"]
    if kind == "LinearModel":
        assert set(params["weights"]) == set(values)
        return float(sum((number(params["weights"][name]) * value for name, value in values.items()), number(0)))
    if kind == "NeuralNetworkModel":
        layer = list(values.values())
        for part in params["layers"]:
            assert all(type(weight) is float for line in part["matrix"] for weight in line)
            layer = [
                solr_activation(
                    part["activation"], sum((number(w) * v for w, v in zip(line, layer, strict=True)), number(bias))
                )
                for line, bias in zip(part["matrix"], part["bias"], strict=True)
            ]
        return float(layer[0])
    assert kind == "MultipleAdditiveTreesModel"
    total = number(0)
    for each in params["trees"]:
        node = each["root"]
        while "value" not in node:
            cut = np.float32(node["threshold"]) + np.float32(1e-6)
            node = node["left" if np.float32(values[node["feature"]]) <= cut else "right"]
        total += number(each["weight"]) * number(node["value"])
    return float(total)


def solr_activation(name: str, value: Any) -> Any:
    """The activation functions of NeuralNetworkModel."""
    kind = type(value)
    return {
        "identity": lambda: value,
        "relu": lambda: max(value, kind(0)),
        "tanh": lambda: kind(math.tanh(value)),
        "sigmoid": lambda: kind(1 / (1 + math.exp(-value))),
    }[name]()


def json_score(model: Mapping[str, Any], x: np.ndarray) -> float:
    """Score as docs/export.md describes our JSON, with Python's own numbers alone."""
    if model["missing"] == "raise" and any(map(math.isnan, x)):
        return math.nan
    z = []
    for value, fill, mean, scale in zip(x, model["fill"], model["mean"], model["scale"], strict=True):
        t = math.copysign(math.log1p(abs(value)), value) if model["log"] else float(value)
        if math.isnan(value) and model["missing"] != "keep":
            t = fill
        z.append((t - mean) / scale)
    total = model["intercept"]
    for weight, value in zip(model.get("weights", ()), z, strict="weights" in model):
        total += 0.0 if math.isnan(value) else weight * value
    for each in model.get("trees", ()):
        node = 0
        while each["left"][node] >= 0:
            value = x[each["feature"][node]]
            left = each["missing_left"][node] if math.isnan(value) else value <= each["threshold"][node]
            node = each["left" if left else "right"][node]
        total += each["value"][node]
    if "network" in model:
        layer = z
        layers = model["network"]["layers"]
        for part in layers:
            name = model["network"]["activation"] if part is not layers[-1] else "identity"
            name = {"logistic": "sigmoid"}.get(name, name)
            layer = [
                solr_activation(name, sum((w * v for w, v in zip(line, layer, strict=True)), bias))
                for line, bias in zip(part["weights"], part["bias"], strict=True)
            ]
        total += layer[0]
    return total
