"""Models of every kind, changed and sealed again, against a plain reader of their files.

``python tests/resealed.py SEED NUMBER`` changes so many models and prints what came of it; a changed model is
refused, or its scores are those that a plain reader, written from the layout alone, gets from the same files.
"""

from __future__ import annotations

import faulthandler
import functools
import hashlib
import io
import json
import math
import signal
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.neural_network import MLPRegressor

import concordant as cc
from concordant.apps.models.regressors import booster_text
from concordant.learning.rankers.per_query import QueryRankers

WIDTH = 3
DRAW = np.random.default_rng(7)
ROWS = DRAW.normal(size=(24, WIDTH)).round(2)
PROBE = np.concatenate((np.zeros((1, WIDTH)), DRAW.normal(size=(9, WIDTH)) * 2))
QUERIES = [("p", "q")[row % 2] for row in range(len(PROBE))]
SECONDS = 20
NASTY = [math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, 0.0, -0.0, 1e18, -1.0, 2.5]
OTHERS = [
    *(None, True, False, -1, 0, 1, 10**30, 10**400, 1e308, 0.5, "x", "", "nan", "inf", "true", "0", [], {}, [[]]),
    *({"a": 1}, [1, "x"], ["a", "b"], [0.0] * WIDTH, [[0.0] * WIDTH], "keep", "mean", "\ud800", "\x00"),
]


# -- models ------------------------------------------------------------------------------------------------------------
def _votes(query: Any = None) -> cc.Preferences:
    draw = np.random.default_rng(3)
    items = [f"i{row:02d}" for row in range(len(ROWS))]
    score = ROWS @ [1.0, -2.0, 0.5]
    a, b = draw.integers(0, len(ROWS), size=(2, 150))
    a, b = a[a != b], b[a != b]
    first = score[a] + draw.logistic(size=len(a)) > score[b]
    names = [[items[k] for k in np.where(first, x, y)] for x, y in ((a, b), (b, a))]
    return cc.Preferences.from_comparisons(*names, query=query and [query[k % 2] for k in range(len(a))])


@functools.cache
def models() -> dict[str, Any]:
    """A fitted ranker of every kind."""
    items = [f"i{row:02d}" for row in range(len(ROWS))]
    table = {"item": items, **{name: ROWS[:, at] for at, name in enumerate(("x", "y", "z"))}}
    votes = _votes()
    labelled = (ROWS, ["q"] * len(ROWS), items), np.clip(np.round(ROWS[:, 0] + 1), 0, 4)

    def gains(regressor: Any, **options: Any) -> Any:
        return cc.AggregationRanker("log-odds", order="all", regressor=regressor, **options).fit(table, votes)

    edges = cc.EdgeRanker("ranknet", log=True).fit(table, votes)
    by_distance = cc.AbstainingRanker(edges, cost=0.2).fit(table, votes)
    made = {
        "edges": edges,
        "linear": cc.AggregationRanker("log-odds", order=[1, "all"], missing="mean").fit(table, votes),
        "lists": cc.ListRanker().fit(*labelled),
        "rankboost": cc.RankBoostRanker(rounds=15).fit(table, votes),
        "queries": QueryRankers().fit(table, _votes(["p", "q"])),
        "distance": by_distance,
        "risk": cc.AbstainingRanker(cc.ListRanker().fit(*labelled), by="risk", cost=0.3).fit(
            (ROWS, ["all"] * len(ROWS), items), votes
        ),
        "ridge": gains(Ridge()),
        "informed": cc.AggregationRanker(regressor=RandomForestRegressor(3, max_depth=3, random_state=0)).fit(
            table, votes
        ),
        "network": gains(
            MLPRegressor(hidden_layer_sizes=(4, 3), activation="tanh", max_iter=3000, tol=0.01, random_state=0)
        ),
        "forest": gains(RandomForestRegressor(4, max_depth=3, random_state=0), missing="keep"),
        "boosting": gains(GradientBoostingRegressor(n_estimators=5, random_state=0)),
        "histograms": gains(HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=3)),
    }
    try:
        import lightgbm
        import xgboost
    except ImportError:
        return made
    made["lightgbm"] = gains(lightgbm.LGBMRegressor(n_estimators=6, min_child_samples=3, verbose=-1, n_jobs=1))
    made["xgboost"] = gains(xgboost.XGBRegressor(n_estimators=6, max_depth=3, n_jobs=1), missing="keep")
    return made


def kept_files(ranker: Any, folder: Path) -> dict[str, bytes]:
    """The files of a kept model."""
    cc.save_model(ranker, folder / "kept")
    return {path.name: path.read_bytes() for path in (folder / "kept").iterdir() if path.name != "hashes.json"}


def all_files(folder: Path) -> dict[str, dict[str, bytes]]:
    """The files of every kind; boosters also as their packages' text, as they were kept before."""
    found = {}
    for kind, ranker in models().items():
        found[kind] = kept_files(ranker, folder)
        booster = None if getattr(ranker, "foreign_", None) is None else booster_text(ranker.foreign_)
        if booster is not None:
            files = {name: data for name, data in found[kind].items() if not name.startswith("regressor-")}
            state = json.loads(files["model.json"])
            state["regressor"] = {"kind": "booster", "class": "x", "values": {"package": booster[0]}}
            text = np.frombuffer(booster[1].encode(), np.uint8)
            found[f"{kind} text"] = files | {
                "model.json": json.dumps(state).encode(),
                "regressor-text.npy": stored(text),
            }
    return found


def stored(array: Any) -> bytes:
    """The bytes of an array's file."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def write_sealed(files: dict[str, bytes], folder: Path) -> None:
    """Write files as a model whose hashes fit."""
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    own = {name: hashlib.sha256(data).hexdigest() for name, data in sorted(files.items())}
    sign = hashlib.sha256(json.dumps(own).encode()).hexdigest()
    text = json.dumps({"files": own, "of this list": sign}, indent=1) + "\n"
    for name, data in (files | {"hashes.json": text.encode()}).items():
        (folder / name).write_bytes(data)


# -- changes -----------------------------------------------------------------------------------------------------------
def changed(random: Random, files: dict[str, bytes]) -> dict[str, bytes]:
    """Return the files with one thing in them changed."""
    name = random.choice(sorted(files))
    data = files[name]
    how = random.random()
    if how < 0.04:
        other = random.choice(sorted(files))
        return files | {name: files[other]}
    if how < 0.07:
        return {each: content for each, content in files.items() if each != name}
    if how < 0.4 and name.endswith(".npy"):
        return files | {name: _array_changed(random, data)}
    if how < 0.6 and name == "model.json":
        return files | {name: _field_changed(random, data)}
    at = random.randrange(len(data))
    if random.random() < 0.7:
        byte = random.choice(
            [data[at] ^ (1 << random.randrange(8)), random.randrange(256), *b'0123456789-.eE"{}[],:= \n']
        )
        return files | {name: data[:at] + bytes([byte]) + data[at + 1 :]}
    cut = random.randrange(1, 40)
    piece = random.choice([b"", data[at : at + cut] * 2, random.randbytes(cut), b"9" * cut, b"[" * 3000])
    return files | {name: data[:at] + piece + data[at + cut :]}


def _array_changed(random: Random, data: bytes) -> bytes:
    array = np.load(io.BytesIO(data)).copy()
    how = random.randrange(6)
    if how < 4 and array.size:
        flat = array.reshape(-1)
        nasty = NASTY if array.dtype.kind == "f" else [0, 1, -1, 2, 3, 10**6, 2**62, -(2**62), len(flat)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            flat[random.randrange(len(flat))] = np.array(random.choice(nasty)).astype(array.dtype)
        return stored(array)
    if how == 4:
        return stored(array[: random.randrange(len(array) + 1)] if random.random() < 0.5 else array[None])
    kind = random.choice(["<f4", ">f8", "<i4", "<c16", "?", "<u1", "<U3"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return stored(array.astype(kind))


def _field_changed(random: Random, data: bytes) -> bytes:
    document = json.loads(data)
    at, steps = document, random.randrange(1, 7)
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        if not keys:
            return data
        key, steps = random.choice(keys), steps - 1
        if not (steps and isinstance(at[key], dict | list) and at[key]):
            break
        at = at[key]
    how = random.randrange(5)
    if how == 0:
        del at[key]
    elif how == 1 and isinstance(at, dict):
        at[f"{key}x"] = at.pop(key)
    elif how == 2 and isinstance(at, dict):
        mark = "a name that stands for another one"
        at[mark] = random.choice(OTHERS)
        return json.dumps(document).replace(json.dumps(mark), json.dumps(key)).encode()
    else:
        at[key] = random.choice(OTHERS)
    return json.dumps(document).encode()


# -- a plain reader ----------------------------------------------------------------------------------------------------
def _number(value: Any) -> float:
    assert isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value), value
    return float(value)


def _flag(value: Any) -> bool:
    assert isinstance(value, bool), value
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len(dict(pairs)) == len(pairs), "a name twice"
    return dict(pairs)


def plain_scores(files: dict[str, bytes], rows: np.ndarray) -> list[float]:
    """Score rows from the files of a model, number by number."""
    document = json.loads(files["model.json"], object_pairs_hook=_unique)
    arrays = {name[:-4]: np.load(io.BytesIO(data)) for name, data in files.items() if name.endswith(".npy")}
    state = document["state"]
    if document["ranker"] == "AbstainingRanker":
        inside, state = state["inside"]["ranker"], state["inside"]["state"]
    else:
        inside = document["ranker"]
    if inside == "QueryRankers":
        place = [state["queries"].index(query) for query in QUERIES]
        return [
            _score(
                state["states"][at],
                {k.split("-", 1)[1]: a for k, a in arrays.items() if k.split("-", 1)[0] == str(at)},
                None,
                row,
            )
            for at, row in zip(place, rows.tolist())
        ]
    return [_score(state, arrays, document["regressor"], row) for row in rows.tolist()]


def _score(state: Any, arrays: Any, held: Any, row: list[float]) -> float:
    given = state["normaliser"]
    z = []
    for x, mean, scale in zip(row, given["mean"], given["scale"], strict=True):
        t = math.copysign(math.log1p(abs(x)), x) if _flag(given["log"]) else x
        z.append((t - _number(mean)) / _number(scale) if _flag(given["standardise"]) else t)
    if state["ranker"] == "RankBoostRanker":
        total = 0.0
        for at in range(len(arrays["alpha"])):
            above = z[arrays["feature"][at]] > arrays["threshold"][at]
            total += float(arrays["alpha"][at]) * (above == (arrays["direction"][at] == 1))
        return total
    if "regressor_unit" not in state:
        return sum(z[at] * float(arrays["coef"][at]) for at in range(len(z)))
    columns = {name[len("regressor-") :]: array for name, array in arrays.items() if name.startswith("regressor-")}
    found = _regressed(held["kind"], held["values"], columns, z) * _number(state["regressor_unit"])
    return found + (sum(z[at] * float(arrays["scorer"][at]) for at in range(len(z))) if "scorer" in arrays else 0.0)


def _regressed(kind: str, values: Any, columns: Any, z: list[float]) -> float:
    if kind == "linear":
        return sum(z[at] * float(columns["coef"][at]) for at in range(len(z))) + _number(values["intercept"])
    if kind == "network":
        hidden = np.array(z)
        act = {"tanh": np.tanh, "identity": lambda x: x, "relu": lambda x: np.maximum(x, 0)}
        act["logistic"] = lambda x: 1 / (1 + np.exp(-x))
        for place in range(values["layers"]):
            hidden = hidden @ columns[f"weight-{place}"] + columns[f"bias-{place}"]
            hidden = act[values["activation"]](hidden) if place + 1 < values["layers"] else hidden
        assert hidden.shape == (1,)
        return float(hidden[0])
    assert kind == "trees", "the text of a booster has no plain reader here"
    single = _flag(values["single"])
    total = 0.0
    for root in columns["root"].tolist():
        node = root
        for _ in range(1000):
            if columns["left"][node] == node:
                break
            x = z[columns["feature"][node]]
            left = float(np.float32(x) if single else x) <= columns["threshold"][node]
            node = int(columns["left" if left else "right"][node])
        total += float(columns["value"][node])
    return _number(values["base"]) + _number(values["scale"]) * total


# -- the trial ---------------------------------------------------------------------------------------------------------
def trial(kind: str, files: dict[str, bytes], before: np.ndarray, folder: Path) -> str:
    """Load and score a changed model: 'refused', 'same' or 'other scores'; AssertionError for anything else."""
    write_sealed(files, folder)
    try:
        ranker = cc.load_model(folder)
        given = (PROBE, QUERIES, list(range(len(PROBE)))) if kind == "queries" else PROBE
        scores = ranker.predict(given)
        if hasattr(ranker, "tiers"):
            ranker.tiers(given)
    except cc.ConcordantError as error:
        said = str(error)
    else:
        said = ""
    assert "\n" not in said and len(said) < 1500, said
    if said:
        return "refused"
    assert scores.shape == (len(PROBE),) and np.isfinite(scores).all(), scores
    if np.array_equal(scores, before):
        return "same"
    if kind.endswith("text"):  # no plain reader; what is not the same must at least be of the size of trees
        return "other scores"
    with np.errstate(all="ignore"):
        wanted = np.array(plain_scores(files, PROBE))
    size = max(1.0, float(np.abs(wanted).max()))
    assert np.allclose(scores, wanted, rtol=1e-5 if "xgboost" in kind else 1e-8, atol=1e-6 * size), (scores, wanted)
    return "other scores"


def main(seed: int, number: int) -> None:
    faulthandler.enable()
    warnings.simplefilter("error")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kinds = all_files(folder)
        before = {}
        for kind, files in kinds.items():
            write_sealed(files, folder / "model")
            given = (PROBE, QUERIES, list(range(len(PROBE)))) if kind == "queries" else PROBE
            before[kind] = cc.load_model(folder / "model").predict(given)
            if not kind.endswith("text"):
                assert np.allclose(before[kind], plain_scores(files, PROBE), rtol=1e-5, atol=1e-6), kind
        counts: Counter[str] = Counter()
        names, failures = sorted(kinds), []
        for case in range(number):
            random = Random(f"{seed} {case}")
            kind = names[case % len(names)]
            files = changed(random, kinds[kind])
            print(f"\r{case} {kind}", end="", file=sys.stderr, flush=True)
            signal.alarm(SECONDS)  # what hangs ends the process
            try:
                counts[f"{kind}: {trial(kind, files, before[kind], folder / 'model')}"] += 1
            except Exception as error:
                failures.append(f"seed {seed}, case {case}, {kind}: {type(error).__name__}: {error}"[:400])
            finally:
                signal.alarm(0)
    print(json.dumps({"cases": number, "failures": failures, **counts}, indent=0))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
