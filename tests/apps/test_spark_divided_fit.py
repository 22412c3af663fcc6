"""The default fit where one query is too large for a task: its slices give what memory gives, no task has all of it."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from concordant.errors import InputError, UsageError
from concordant.io.read import read
from concordant.learning.features.normalising import Normaliser
from concordant.learning.rankers.aggregation import AggregationRanker
from concordant.learning.rankers.validation import reads_below
from concordant.learning.targets import informed
from concordant.preferences import sampling
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences, keep
from concordant.preferences.sampling import label_keys
from concordant.ranking.ranked_lists import examined_only
from spark_session import spark_tests, why_not

pytestmark = spark_tests
if not why_not():
    from concordant.apps.spark.frames import JudgedQueries
    from concordant.apps.spark.learning_chosen import Choosing
    from concordant.apps.spark.learning_cutting import (
        Cuts,
        ListRanges,
        Ranges,
        _Cutting,
        _Ends,
        _Gathering,
        _labels,
        _Sampled,
        _Seconds,
    )
    from concordant.apps.spark.learning_held import Sums, _Making, objects, pieces
    from concordant.apps.spark.learning_passes import Dealing
    from concordant.apps.spark.learning_slices import Winners, begins

Table = dict[str, Any]
FEATURES = ("x", "y", "z")


def votes(
    sizes: dict[str, tuple[int, int]],
    *,
    ties: float = 0.0,
    people: int = 0,
    weights: bool = False,
    shared: bool = False,
    covariates: int = 0,
    grades: int = 0,
) -> Any:
    """Comparisons of queries of so many items and rows, and the features of the items; ``covariates`` of each row."""
    rng = np.random.default_rng(len(sizes) + sum(rows for _, rows in sizes.values()))
    log: Table = {name: [] for name in ("query", "left", "right", "outcome")}
    rows: Table = {"query": [], "item": [], **{name: [] for name in FEATURES}}
    for query, (items, number) in sizes.items():
        X = rng.normal(size=(items, len(FEATURES)))
        score = X @ [1.5, -1.0, 0.5] + rng.normal(size=items)
        one = rng.integers(0, items, number)
        other = (one + rng.integers(1, items, number)) % items
        wins = rng.random(number) < 1 / (1 + np.exp(score[other] - score[one]))
        outcome = np.where(rng.random(number) < ties, "tie", np.where(wins, "left", "right"))
        columns = ([query] * number, [f"i{c}" for c in one], [f"i{c}" for c in other], outcome.tolist())
        for name, values in zip(("query", "left", "right", "outcome"), columns, strict=True):
            log[name] += values
        rows["query"] += [query] * items
        rows["item"] += [f"i{c}" for c in range(items)]
        for name, column in zip(FEATURES, X.T, strict=True):
            rows[name] += column.tolist()
    if people:
        log["annotator"] = [f"a{code}" for code in rng.integers(0, people, len(log["query"]))]
    for name in ("length", "style")[:covariates]:  # the longer one wins more often
        sign = np.array([{"left": 1, "right": -1, "tie": 0}[one] for one in log["outcome"]])
        log[name] = (rng.integers(-3, 4, len(sign)) + sign * (rng.random(len(sign)) < 0.4)).tolist()
    if shared:
        shares = {"left": 0.8, "right": 0.0, "tie": 0.5}
        log["outcome"] = [shares[one] for one in log["outcome"]]
    if grades:
        log["weight"] = rng.integers(1, grades + 1, len(log["query"])).tolist()
    if weights:
        log["weight"] = rng.choice([0.5, 1.0, 2.0], len(log["query"])).tolist()
    return log, rows


def lists(
    kind: str,
    sizes: dict[str, tuple[int, int]],
    *,
    people: int = 0,
    ties: bool = False,
    most: int = 4,
    clicks: int = 1,
) -> tuple[Table, Table]:
    """Rankings, choices, ratings or clicks of queries of so many items and lists, and the features.

    A list has 1 to ``most`` items, of which up to ``clicks`` are clicked.
    """
    rng = np.random.default_rng(sum(rows for _, rows in sizes.values()))
    value = {"orders": "rank", "ratings": "rating"}.get(kind, "clicked")
    log: Table = {name: [] for name in ("query", "session" if value == "clicked" else "judgment", "item", value)}
    log |= {"position": []} if kind == "selections" else {}
    log |= {"person": []} if people else {}
    rows: Table = {"query": [], "item": [], **{name: [] for name in FEATURES}}
    number = 0
    for query, (items, judgments) in sizes.items():
        X = rng.normal(size=(items, len(FEATURES)))
        score = X @ [1.5, -1.0, 0.5] + rng.normal(size=items)
        for _ in range(judgments):
            number += 1
            some = rng.permutation(items)[: rng.integers(2 if kind == "choices" else 1, most + 1)]
            noisy = score[some] + rng.gumbel(size=len(some))
            place = np.argsort(np.argsort(-noisy)) + 1
            place = np.minimum(place, 2) if ties else place
            said = {"rank": place, "clicked": (place == 1).astype(int), "rating": np.clip(np.round(noisy), -2, 2)}
            columns = {"query": [query] * len(some), "item": [f"i{c}" for c in some], value: said[value].tolist()}
            columns |= {"position": [at + (number % 4 == 0 and at > 2) for at in range(1, len(some) + 1)]}
            if kind == "selections":
                clicked = np.flatnonzero(rng.random(len(some)) < 1 / (1 + np.exp(-score[some])))[:clicks]
                columns["clicked"] = [int(place in clicked) for place in range(len(some))]
            columns |= {"judgment": [number] * len(some), "session": [number] * len(some)}
            columns |= {"person": [f"a{number * 7 % max(people, 1)}"] * len(some)}
            for name in log:
                log[name] += columns[name]
        rows["query"] += [query] * items
        rows["item"] += [f"i{c}" for c in range(items)]
        for name, column in zip(FEATURES, X.T, strict=True):
            rows[name] += column.tolist()
    return log, rows


def impressions(sizes: dict[str, tuple[int, int]]) -> tuple[Table, Table]:
    """Rows of one item each at one of three positions, of queries of so many items and rows, and the features."""
    rng = np.random.default_rng(len(sizes))
    log: Table = {name: [] for name in ("query", "session", "item", "position", "clicked")}
    rows: Table = {"query": [], "item": [], **{name: [] for name in FEATURES}}
    for query, (items, number) in sizes.items():
        X = rng.normal(size=(items, len(FEATURES)))
        item, place = rng.integers(0, items, number), rng.integers(1, 4, number)
        chance = 1 / (1 + np.exp(-(X @ [1.5, -1.0, 0.5])[item])) / place**2
        log["query"] += [query] * number
        log["session"] += [f"{query} {at}" for at in range(number)]
        log["item"] += [f"i{c}" for c in item]
        log["position"] += place.tolist()
        log["clicked"] += (rng.random(number) < chance).astype(int).tolist()
        rows["query"] += [query] * items
        rows["item"] += [f"i{c}" for c in range(items)]
        for name, column in zip(FEATURES, X.T, strict=True):
            rows[name] += column.tolist()
    return log, rows


def one_of_several_clicks(sizes: dict[str, tuple[int, int]]) -> tuple[Table, Table]:
    """Lists with one click at most but for a single one: most parts of the log have none of it."""
    log, rows = lists("selections", sizes)
    last = max(place for place, position in enumerate(log["position"]) if position == 3)
    at = [place for place, one in enumerate(log["session"]) if one == log["session"][last]]
    for place in at:
        log["clicked"][place] = int(log["position"][place] < 3)
    return log, rows


SMALL = {f"q{number}": (5, 40) for number in range(14)}
CASES: dict[str, tuple[Any, dict[str, Any], tuple[str, ...]]] = {
    "one query": (votes({"large": (20, 900)}), {}, ("large",)),
    "ties": (votes({"large": (12, 500)}, ties=0.3), {"folds": 4}, ("large",)),
    "clusters": (votes({"large": (12, 600), "p": (4, 30)}, people=25), {}, ("large",)),
    "beside small ones": (votes({**SMALL, "large": (15, 700)}, ties=0.1), {}, ("large",)),
    "weights": (votes({**SMALL, "large": (15, 700)}, weights=True), {}, ("large",)),
    "shared wins": (votes({**SMALL, "large": (15, 700)}, ties=0.1, shared=True), {}, ("large",)),
    "two": (votes({"large": (15, 400), "larger": (16, 500), "p": (5, 60)}, weights=True), {}, ("large", "larger")),
    "τ² given": (votes({"large": (12, 300)}), {"tau2": 0.5, "ridge": 0.3, "gate": False}, ("large",)),
    "hardly any": (votes({"large": (5, 7)}), {}, ("large",)),
    "structure": (votes({**SMALL, "large": (12, 400)}), {"structure": "log-odds", "order": "all"}, ("large",)),
    "structures": (
        votes({**SMALL, "large": (12, 400)}, ties=0.2),
        {"structure": ["copeland", "bradley-terry", "log-odds"], "order": "all", "gain": ["identity", "2^s"]},
        ("large",),
    ),
    "c0": (
        votes({"large": (9, 300)}),
        {"structure": "log-odds", "structure_options": {"c0": [0.1, 1.0]}, "order": "all", "ridge": 0.01},
        ("large",),
    ),
    "orders": (
        votes({**SMALL, "large": (9, 300)}, ties=0.1),
        {"structure": ["log-odds", "copeland"], "order": [1, 7, 60, 280, "all"], "gain": ["2^s-1", "identity"]},
        ("large",),
    ),
    "order of weights": (votes({"large": (9, 300)}, weights=True), {"structure": "log-odds", "ridge": 0.1}, ("large",)),
    "covariate": (votes({**SMALL, "large": (12, 500)}, covariates=1), {}, ("large",)),
    "covariates of one query": (votes({"large": (9, 400)}, ties=0.2, covariates=2), {}, ("large",)),
    "covariates of people": (votes({"large": (9, 300)}, people=25, covariates=1), {"tau2": 0.3}, ("large",)),
    "covariates of weights": (
        votes({"large": (9, 400), "larger": (7, 410)}, ties=0.2, weights=True, covariates=2),
        {"structure": ["bradley-terry", "log-odds"], "order": "all", "gain": ["2^s-1", "identity"]},
        ("large", "larger"),
    ),
    "covariate and ties": (
        votes({**SMALL, "large": (9, 300)}, ties=0.3, covariates=1),
        {"structure": "bradley-terry", "structure_options": {"ties": "davidson", "prior": 0.1}, "order": "all"},
        ("large",),
    ),
    "no prior": (
        votes({"large": (7, 400)}, covariates=1),
        {"structure": "bradley-terry", "structure_options": {"prior": 0.0}, "order": "all"},
        ("large",),
    ),
    "left out": (
        votes({"large": (7, 200)}, covariates=1),
        {"structure": "bradley-terry", "structure_options": {"covariates": False}, "order": ["all", 150]},
        ("large",),
    ),
    "orders of covariates": (votes({"large": (9, 300)}, covariates=1), {"order": [40, "all"]}, ("large",)),
    "thresholds": (
        votes({**SMALL, "large": (9, 300)}, ties=0.3, grades=3),
        {"structure": "bradley-terry", "structure_options": {"ties": "cumulative"}, "order": "all"},
        ("large",),
    ),
    "thresholds, orders, a covariate": (
        votes({"large": (9, 300), "larger": (8, 310)}, ties=0.2, grades=2, covariates=1),
        {
            "structure": "bradley-terry",
            "structure_options": {"ties": "cumulative", "prior": 0.1},
            "order": [40, "all"],
            "gain": ["2^s-1", "identity"],
        },
        ("large", "larger"),
    ),
    "a threshold of ties": (
        votes({"large": (7, 200)}, ties=0.3, covariates=1),
        {"structure_options": {"ties": "cumulative", "covariates": False}, "structure": "bradley-terry"},
        ("large",),
    ),
    "ties of the informed": (
        votes({**SMALL, "large": (9, 300)}, ties=0.3),
        {"informed": True, "structure_options": {"ties": "davidson"}},
        ("large",),
    ),
    "ties of rankings": (
        lists("orders", {**SMALL, "large": (9, 300)}, ties=True),
        {"structure": "bradley-terry", "structure_options": {"ties": "davidson"}, "order": "all"},
        ("large",),
    ),
    "covariates that are not read": (
        votes({"large": (9, 300)}, covariates=1),
        {"structure": "plackett-luce", "order": "all"},
        ("large",),
    ),
    "any order of the tied": (
        lists("orders", {**SMALL, "large": (9, 300)}, ties=True),
        {"structure": "plackett-luce", "structure_options": {"ties": "any-order"}, "order": "all"},
        ("large",),
    ),
    "ties of several sizes": (
        lists("orders", {**SMALL, "large": (9, 300), "larger": (8, 320)}, ties=True),
        {"structure": "plackett-luce", "structure_options": {"ties": "davidson", "prior": 0.1}, "order": ["all", 40]},
        ("large", "larger"),
    ),
    "ties of two": (
        votes({"large": (9, 300)}, ties=0.3, covariates=1),
        {"structure": "plackett-luce", "structure_options": {"ties": "davidson"}, "order": "all"},
        ("large",),
    ),
    "one order": (
        votes({**SMALL, "large": (16, 600)}),
        {"structure": "copeland", "order": 20, "ridge": 0.01, "gain": "identity"},
        ("large",),
    ),
    "order of the informed": (votes({**SMALL, "large": (9, 300)}, people=20), {"order": 30}, ("large",)),
    "gain of the informed": (votes({**SMALL, "large": (9, 300)}), {"informed": True, "gain": "2^s-1"}, ("large",)),
    "orders of rankings": (
        lists("orders", {**SMALL, "large": (9, 200), "larger": (5, 220)}),
        {"structure": "borda", "subsets": 5},
        ("large", "larger"),
    ),
    "order of choices": (
        lists("choices", {"large": (9, 300)}),
        {"structure": "plackett-luce", "order": 20},
        ("large",),
    ),
    "votes by ndcg": (votes({**SMALL, "large": (9, 300)}, ties=0.1), {"target": "ndcg@3"}, ("large",)),
    "votes by err": (votes({"large": (9, 300), "larger": (8, 310)}), {"target": "err"}, ("large", "larger")),
    "people by precision": (
        votes({**SMALL, "large": (9, 300)}, people=12),
        {"target": "precision@2", "gate": False},
        ("large",),
    ),
    "people by ndcg": (votes({"large": (9, 400), "p": (5, 60)}, people=60), {"target": "ndcg@3"}, ("large",)),
    "people by err": (lists("orders", {"large": (9, 400)}, people=50), {"target": "err"}, ("large",)),
    "rankings by ndcg": (lists("orders", {"large": (9, 300), "p": (5, 40)}), {"target": "ndcg"}, ("large",)),
    "choices by ndcg": (lists("choices", {"large": (7, 200)}), {"target": "ndcg@2", "folds": 3}, ("large",)),
    "clicks": (lists("selections", {**SMALL, "large": (9, 300)}), {}, ("large",)),
    "clicks of one query": (lists("selections", {"large": (9, 300)}), {"order": "all"}, ("large",)),
    "clicks by choices": (
        lists("selections", {"large": (9, 300), "p": (5, 60)}),
        {"structure": "plackett-luce", "order": [40, "all"], "target": "ndcg@3"},
        ("large",),
    ),
    "clicks by pairs": (lists("selections", {**SMALL, "large": (9, 300)}), {"target": "pairwise"}, ("large",)),
    "clicks of people by pairs": (
        lists("selections", {"large": (9, 300), "larger": (8, 320), **SMALL}, people=40),
        {"target": "pairwise", "order": [20, "all"]},
        ("large", "larger"),
    ),
    "informed clicks by pairs": (
        lists("selections", {**SMALL, "large": (9, 300)}, people=20),
        {"target": "pairwise", "informed": True},
        ("large",),
    ),
    "informed clicks of one query by pairs": (
        lists("selections", {"large": (9, 300)}),
        {"target": "pairwise", "informed": True},
        ("large",),
    ),
    "several clicks by pairs": (
        lists("selections", {"large": (9, 300), "p": (5, 60)}, clicks=3),
        {"target": "pairwise", "structure": "log-odds", "order": "all", "split": "queries", "folds": 2},
        ("large",),
    ),
    "several clicks": (lists("selections", {**SMALL, "large": (9, 300)}, clicks=3), {}, ("large",)),
    "several clicks, two at most": (
        lists("selections", {**SMALL, "large": (9, 300)}, clicks=2, most=6),
        {},
        ("large",),
    ),
    "several clicks and a gate": (
        lists("selections", {"large": (9, 300), "p": (5, 15)}, clicks=2, most=6),
        {"order": "all", "gate": True, "folds": 2},
        ("large",),
    ),
    "pairs of clicks and a gate": (
        lists("selections", {"large": (9, 300), "p": (5, 40)}),
        {"order": "all", "gate": True, "folds": 2, "target": "pairwise"},
        ("large",),
    ),
    "clicks by positions": (
        lists("selections", {**SMALL, "large": (9, 300)}),
        {"structure": ["position-based", "dependent-click"], "order": [40, "all"]},
        ("large",),
    ),
    "propensities of positions": (
        lists("selections", {**SMALL, "large": (9, 600)}, clicks=9, most=3),
        {"structure": "inverse-propensity", "order": "all", "ridge": [0.1, 1.0], "target": "pairwise"},
        ("large",),
    ),
    "several clicks of one query": (lists("selections", {"large": (9, 300)}, clicks=3), {}, ("large",)),
    "several clicks of people": (
        lists("selections", {**SMALL, "large": (9, 300), "larger": (8, 310)}, clicks=3, people=30),
        {"target": "ndcg@3"},
        ("large", "larger"),
    ),
    "a list of several clicks": (one_of_several_clicks({"p": (5, 40), "large": (9, 300)}), {}, ("large",)),
    "a list of several clicks, a gate": (
        one_of_several_clicks({**SMALL, "large": (9, 300)}),
        {"order": "all", "gate": True, "folds": 2},
        ("large",),
    ),
    "clicks by a named model": (
        lists("selections", {**SMALL, "large": (9, 300)}),
        {"structure": "dependent-click", "order": [40, "all"]},
        ("large",),
    ),
    "several clicks by a named model": (
        lists("selections", {**SMALL, "large": (9, 300)}, clicks=3),
        {"structure": "position-based", "order": [40, "all"]},
        ("large",),
    ),
    "clicks with gaps": (impressions({**SMALL, "large": (60, 1500)}), {}, ("large",)),
    "clicks with gaps and a gate": (
        impressions({"large": (9, 900), "p": (5, 90)}),
        {"order": "all", "gate": True, "folds": 2},
        ("large",),
    ),
    "clicks with gaps, orders": (
        impressions({**SMALL, "large": (9, 600)}),
        {"structure": "auto", "order": [30, "all"]},
        ("large",),
    ),
    "several clicks, orders": (
        lists("selections", {**SMALL, "large": (9, 300)}, clicks=3),
        {"structure": "auto", "order": [30, "all"]},
        ("large",),
    ),
    "several clicks, a structure": (
        lists("selections", {**SMALL, "large": (9, 300)}, clicks=3),
        {"structure": "log-odds", "order": "all", "ridge": [0.1, 1.0]},
        ("large",),
    ),
    "several clicks, propensities": (
        lists("selections", {**SMALL, "large": (9, 300)}, clicks=3),
        {
            "structure": "inverse-propensity",
            "structure_options": {"propensities": [1.0, 0.8, 0.6, 0.5, 0.45]},
            "order": "all",
            "ridge": [0.1, 1.0],
        },
        ("large",),
    ),
    "rankings": (lists("orders", {"large": (9, 300)}), {}, ("large",)),
    "few rankings": (lists("orders", {"large": (6, 150)}, ties=True), {"tau2": 0.5, "ridge": 0.3}, ("large",)),
    "rankings with ties": (lists("orders", {**SMALL, "large": (9, 300)}, ties=True), {}, ("large",)),
    "rankings of people": (lists("orders", {"large": (9, 300), "p": (4, 30)}, people=20), {}, ("large",)),
    "choices": (lists("choices", {**SMALL, "large": (9, 300)}), {}, ("large",)),
    "ratings": (lists("ratings", {**SMALL, "large": (9, 300), "larger": (8, 320)}), {}, ("large", "larger")),
    "structures of rankings": (
        lists("orders", {**SMALL, "large": (9, 300)}),
        {"structure": ["borda", "plackett-luce"], "order": "all", "gain": ["2^s-1", "identity"]},
        ("large",),
    ),
}
LISTS = [name for name, ((log, _), _, _) in CASES.items() if "item" in log]


@dataclass
class Here:
    """Objects of tasks in this process, as they come back from Spark."""

    objects: list[Any]

    def sums(self, work: Callable[[Any], Any]) -> Any:
        return sum((pickle.loads(pickle.dumps(work))(each) for each in self.objects), Sums())

    def changed(self, change: Callable[[Any], Any]) -> Here:
        return Here([pickle.loads(pickle.dumps(change(each))) for each in self.objects])

    def exchanged(self, send: Callable[[Any], Any], receive: Callable[[list[Any], int], Any], number: int) -> Here:
        sent: dict[int, list[Any]] = {place: [] for place in range(number)}
        for each in self.objects:
            for place, part in send(each):
                sent[place].append(pickle.loads(pickle.dumps(part)))
        return Here([receive(parts, place) for place, parts in sent.items()])

    def some(self, buckets: Sequence[int]) -> Here:
        return Here([each for each in self.objects if each.bucket in buckets])

    def forget(self) -> None:
        """There is nothing to free."""


def in_shares(whole: Any, shares: int, size: int) -> tuple[list[Any], Any, Any]:
    """Shares of a query, how they are cut into slices, and its items; equal lists may be in two shares."""
    half = whole.count // 2 if whole.kind != "comparisons" else np.zeros(whole.distinct, np.int64)
    if whole.kind == "comparisons":
        place = (whole.winner + whole.loser + whole.winner * whole.loser) % shares
    else:
        place = np.arange(whole.distinct) * 5 % shares
    parts = [(np.flatnonzero(place == share), whole.count - half) for share in range(shares)]
    parts += [(np.flatnonzero((half > 0) & (place == share)), half) for share in range(shares)]
    own = [keep(whole, at, count[at], whole.declared[:0]) for at, count in parts if len(at)]
    items = sum(map(_labels, own), Sums())["items"]
    if whole.kind != "comparisons":
        keys = sum((_Sampled(items, 2.0)(part) for part in own), Sums())["keys"]
        return own, _Cutting(ListRanges.of(items, keys, max(size // 2, 1))), items
    ends = _Ends(items)
    number = sum(map(ends, own), Sums())["number"]  # type: ignore[arg-type]
    some = np.flatnonzero(number > size)
    of_pairs = sum(map(_Seconds(ends, some), own), Sums())["number"] if len(some) else np.zeros((0, len(number)))
    return own, _Cutting(Ranges(ends, Cuts.of(number, some, of_pairs, size))), items


def here(prefs: Preferences, rows: Table, divided: Sequence[str], shares: int, size: int) -> tuple[Here, Normaliser]:
    """What tasks make of a log."""
    X = np.column_stack([rows[name] for name in FEATURES])
    normaliser = Normaliser().fit(X)
    making = _Making(None, 1 << 30, True, len(FEATURES), normaliser, True)  # type: ignore[arg-type]
    table = pa.table({"query": rows["query"], "item": rows["item"], **dict(zip(("x0", "x1", "x2"), X.T, strict=True))})
    small = [query for query in prefs.queries if query not in divided]
    made = [making.made(place, prefs.select(small[place::2]), table) for place in range(2) if small[place::2]]
    bucket = len(made)
    for query, label in enumerate(divided):
        own, cutting, items = in_shares(prefs.select([label]), shares, size)
        cut: dict[int, list[Any]] = {}
        for source, part in enumerate(own):
            for batch in cutting(pieces(source, part)):
                found = objects(iter([batch.select(["bucket", "left", "piece"])]))
                cut.setdefault(int(batch[0][0].as_py()), []).extend(each for _, each in found)
        gathering = _Gathering(making, items, query, bucket, "pairs" if prefs.kind == "comparisons" else "lists")
        slices = [gathering.made(at, pieces_of, table) for at, pieces_of in cut.items()]
        bucket += max(cut) + 1
        made += [each for each in slices if each is not None]
    return Here(made), normaliser


def whose(log: Table) -> dict[str, Any]:
    """How the columns of people and of covariates are named."""
    named = [name for name in ("annotator", "person") if name in log]
    covariates = [name for name in ("length", "style") if name in log]
    return ({"cluster": named[0]} if named else {}) | ({"covariates": covariates} if covariates else {})


def learned(name: str, shares: int = 3, size: int = 100) -> tuple[Any, Any]:
    """What Choosing learns from slices, and the ranker fitted in memory."""
    (log, rows), params, divided = CASES[name]
    prefs = read(log, **whose(log))
    named = params.get("structure", "auto") != "auto"
    cut = not reads_below(params["structure"] if named else None, prefs)
    held, normaliser = here(examined_only(prefs) if cut else prefs, rows, divided, shares, size)
    choosing = Choosing(AggregationRanker(**params), str(prefs.kind), held, normaliser)  # type: ignore[arg-type]
    return choosing.learned(None, len(rows["item"])), AggregationRanker(**params).fit(rows, prefs)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", CASES)
def test_slices_give_the_fit_of_memory(name: str) -> None:
    (theta, how, notes, curve), plain = learned(name)
    np.testing.assert_allclose(theta, plain.coef_standardised_, rtol=0, atol=1e-9)
    for key in how.prior:
        assert how.prior[key] == pytest.approx(plain.status_[key], rel=1e-12)
    facts = how.facts.status(32)
    assert {key: plain.status_[key] for key in facts} == pytest.approx(facts)
    assert how.ended["ridge"] == plain.ridge_
    for own, known in zip((gate.row for gate in how.gates), plain.status_.get("gate", []), strict=True):
        tried, others = own.pop("candidates"), known["candidates"]
        assert own == {key: value for key, value in known.items() if key != "candidates"}
        for one, other in zip(tried, others, strict=True):
            assert one == pytest.approx(other, abs=1e-12)
    assert (curve is None) == (not hasattr(plain, "cv_"))
    if curve is not None:
        assert curve.best == plain.cv_.best
        np.testing.assert_allclose(curve["loss"], plain.cv_["loss"], rtol=1e-12, atol=1e-12)
    told = [str(note) for note in plain.status_["notes"]]
    assert all(str(note) in told for note in notes)
    mine = [str(note) for note in notes if note.code in ("several clicks", "gaps", "one click")]
    assert mine == [note for note in told if "they are read by" in note]
    if name.startswith("clicks with gaps"):
        assert plain.status_["structure"] == "position-based" and len(mine) == ("structure" not in CASES[name][1])


ON_SPARK = ["τ² given", "beside small ones", "few rankings", "clicks of one query", "one order", "covariates of people"]
ON_SPARK += ["several clicks and a gate", "clicks with gaps", "pairs of clicks and a gate"]


@pytest.mark.parametrize("name", ON_SPARK)
def test_no_task_has_all_of_it(spark: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from concordant.apps.spark import learning_cutting
    from concordant.spark import fit

    monkeypatch.setattr(JudgedQueries, "alone", lambda *_: pytest.fail("a task of its own was asked for"))
    monkeypatch.setattr(learning_cutting, "SHARE", 150)
    (log, rows), params, large = CASES[name]
    if name == "τ² given":  # and no column of queries
        log, rows = ({key: values for key, values in table.items() if key != "query"} for table in (log, rows))
    reading = whose(log) | ({"unranked": "last"} if "rank" in log else {})
    plain = AggregationRanker(**params).fit(rows, read(log, **reading))
    frames = (spark.createDataFrame(pa.table(table)).repartition(3) for table in (log, rows))
    ours = fit(AggregationRanker(**params), *frames, most=60 if name == "τ² given" else 110, **reading)
    np.testing.assert_allclose(ours.coef_, plain.coef_, rtol=0, atol=1e-9 * np.abs(plain.coef_).max())
    for key in ("tau2", "ridge", "rows", "queries", "structure", "target"):
        assert ours.status_.get(key) == plain.status_.get(key), key
    assert ours.status_.get("prior_ridge", 0.0) == pytest.approx(plain.status_.get("prior_ridge", 0.0), rel=1e-12)
    for one, other in zip(ours.status_.get("gate", []), plain.status_.get("gate", []), strict=True):
        for mine, theirs in zip(one["candidates"], other["candidates"], strict=True):
            assert mine == pytest.approx(theirs, abs=1e-12)
    chosen = name in ("beside small ones", "covariates of people", "clicks with gaps")
    assert hasattr(ours, "cv_") == hasattr(plain, "cv_") == chosen
    if hasattr(plain, "cv_"):
        assert ours.cv_.best == plain.cv_.best
        np.testing.assert_allclose(ours.cv_["loss"], plain.cv_["loss"], rtol=1e-12)
    what = "the log: " if name == "τ² given" else "query 'large': "
    by = "lists" if "item" in log else "pairs"
    divided = [str(note) for note in ours.status_["notes"] if f"divided among tasks by their {by}" in str(note)]
    assert len(divided) == len(large) and divided[0].startswith(what)
    assert all(int(note.split("(")[1].split(" slices)")[0]) > 1 for note in divided)
    apart = ("in a task of its own", "positions do not run")  # what memory says as it reads, and not in a fit
    others = [note for note in ours.status_["notes"] if not any(one in str(note) for one in (*divided, *apart))]
    assert [str(note) for note in others] == [str(note) for note in plain.status_["notes"]]


@pytest.mark.parametrize(("name", "kept"), [("several clicks", 12), ("several clicks of one query", 2)])
def test_clicks_are_read_alike_by_tasks_and_by_the_driver(
    name: str, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the bit, however tasks keep where the moves lead."""
    from concordant.apps.spark import learning_clicks

    found = [learned(name, size=200)[0]]
    monkeypatch.setattr(learning_clicks, "FEW", 0)
    monkeypatch.setattr(learning_clicks, "KEPT", kept)
    found.append(learned(name, size=200)[0])
    usual, other = ([theta.tolist(), [gate.row for gate in how.gates]] for theta, how, _, _ in found)
    assert other == usual


@pytest.mark.parametrize(("shares", "size"), [(1, 10**6), (2, 90), (5, 25)])
@pytest.mark.parametrize("name", ["beside small ones", "rankings of people"])
def test_the_cut_changes_nothing(name: str, shares: int, size: int) -> None:
    """Folds are dealt by the place of a judgment among all, wherever it lies: the fit is the same to rounding."""
    (usual, _, _, curve), _ = learned(name)
    (theta, _, _, other), plain = learned(name, shares, size)
    np.testing.assert_allclose(theta, usual, rtol=0, atol=1e-10)
    np.testing.assert_allclose(theta, plain.coef_standardised_, rtol=0, atol=1e-10)
    np.testing.assert_allclose(other["loss"], curve["loss"], rtol=1e-12)


@pytest.mark.parametrize("name", ["two", "rankings"])
def test_curvature_by_products_changes_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of too many pairs the slices keep the curvature to themselves, and multiply by it: many more passes."""
    from concordant.apps.spark import learning_slices

    passes = {True: 0, False: 0}

    def sums(self: Here, work: Callable[[Any], Any]) -> Any:
        passes[learning_slices.CURVES > 0] += 1
        return sum((work(each) for each in self.objects), Sums())

    monkeypatch.setattr(Here, "sums", sums)
    (usual, _, _, _), _ = learned(name)
    monkeypatch.setattr(learning_slices, "CURVES", 0)
    (theta, _, _, _), _ = learned(name)
    np.testing.assert_allclose(theta, usual, rtol=0, atol=1e-10)
    assert passes[False] > 1.3 * passes[True] > 0


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("first", [64, 1])
def test_slices_of_lists_are_ranges_in_their_order(name: str, first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after another they are the lists of the query, whatever of a list tells where a slice ends."""
    from concordant.apps.spark import learning_cutting

    monkeypatch.setattr(learning_cutting, "FIRST", first)
    (log, rows), _, divided = CASES[name]
    prefs = examined_only(read(log, **whose(log)))
    held, _ = here(prefs, rows, divided, 3, 40)
    for query, label in enumerate(divided):
        slices = [each for each in held.objects if each.slice is not None and each.slice.query == query]
        slices.sort(key=lambda each: each.slice.number)
        whole: Any = prefs.select([label])
        assert len(slices) > 1 and sum(each.prefs.distinct for each in slices) == whole.distinct
        for column in ("list_item", "list_value", "count"):
            parts = [getattr(each.prefs, column) for each in slices]
            np.testing.assert_array_equal(np.concatenate(parts), getattr(whole, column))


@pytest.mark.parametrize("name", ["ties", "clusters", "weights", "rankings", "rankings of people", "choices"])
@pytest.mark.parametrize("cards", [1 << 22, 7])
def test_folds_of_slices_are_those_of_the_query(name: str, cards: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every distinct judgment each fold holds out as many as in memory, many equal ones dealt without a shuffle."""
    monkeypatch.setattr(sampling, "CARDS", cards)
    (log, rows), _, (label,) = CASES[name]
    log = {key: [*values, *values[:1] * 700] for key, values in log.items()}  # one judgment many times
    for name in {"session", "judgment"} & {*log}:
        log[name] = [*log[name][:-700], *range(-700, 0)]
    prefs = read(log, **whose(log))
    held, _ = here(prefs, rows, (label,), 3, 40)
    slices = [each for each in held.objects if each.slice is not None]
    distinct = {0: sum(each.prefs.distinct for each in slices)}
    places = begins(Here(slices).sums(Winners(4, distinct)))
    none = np.zeros(0, np.uint64)
    dealing = Dealing(4, 5, frozenset(["judgments"]), True, {}, none, distinct, places)
    dealt = Here(slices).changed(dealing).objects
    for fold, part in enumerate(prefs.select([label]).folds(4, seed=5)):
        mine: Preferences = sum((each.left_out(("judgments", fold)) for each in dealt), Preferences.empty())
        assert mine.select([label]) == part.select([label])  # without what is declared


def test_a_sample_without_the_divided_query(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the queries that are drawn first are pairs enough, the two numbers are theirs."""
    monkeypatch.setattr(informed, "SAMPLE", 12)
    (log, _), _, divided = CASES["beside small ones"]
    prefs = read(log)
    order = informed.drawn_queries(label_keys(prefs.queries, 0), Batch.whole(prefs).graphs.pairs.sizes)
    assert prefs.queries.codes_of(list(divided))[0] not in order
    (theta, how, _, _), plain = learned("beside small ones")
    np.testing.assert_allclose(theta, plain.coef_standardised_, rtol=0, atol=1e-9)
    assert how.prior["tau2"] == plain.status_["tau2"]


def test_what_is_not_divided(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has a task of its own, and is refused by name where that could not hold it."""
    from concordant.spark import fit

    log, rows = CASES["beside small ones"][0]
    frames = [spark.createDataFrame(pa.table(table)) for table in (log, rows)]
    monkeypatch.setattr("concordant.apps.spark.frames.MOST_ALONE", 10)
    asked: list[dict[str, Any]] = [{"structure": lambda batch: batch}]
    for params in asked:
        said = r"query 'large' has \d+ distinct judgments.*A linear scorer is fitted to structures by name"
        with pytest.raises(UsageError, match=said):
            fit(AggregationRanker(**params), *frames, most=100)
    monkeypatch.setattr("concordant.apps.spark.frames.MOST_ALONE", 1 << 24)
    with pytest.raises(UsageError, match=r"a pair of items of query 'large' has 3 distinct judgments, and a task"):
        fit(*frames, most=2)
    odd = {key: [*values[:-1], "maybe" if key == "outcome" else values[-1]] for key, values in log.items()}
    with pytest.raises(InputError, match="maybe"):
        fit(odd, frames[1], most=100, session=spark)


def test_lacking_features_are_said_once() -> None:
    (log, rows), _, divided = CASES["beside small ones"]
    prefs = read(log)
    gone = {key: values[:-2] for key, values in rows.items()}
    with pytest.raises(InputError) as plain:
        AggregationRanker().fit(gone, prefs)
    held, normaliser = here(prefs, gone, divided, 3, 40)
    choosing = Choosing(AggregationRanker(), "comparisons", held, normaliser)  # type: ignore[arg-type]
    with pytest.raises(InputError) as ours:
        choosing.learned(None, len(gone["item"]))  # type: ignore[arg-type]
    assert str(ours.value) == str(plain.value)


def test_readers_side_by_side_share_passes_and_end_together() -> None:
    from concordant.apps.spark.learning_parts import side_by_side

    passes: list[list[str]] = []

    def passed(works: Any) -> Any:
        passes.append(sorted(works))
        return {key: Sums(found=2 * work) for key, work in works.items()}

    def reader(times: int) -> Callable[[Any], int]:
        def read(ask: Any) -> int:
            value = 1
            for _ in range(times):
                value = ask(value)["found"]
            if times > 8:
                raise InputError("too often")
            return value

        return read

    assert side_by_side({"one": reader(1), "none": reader(0), "three": reader(3)}, passed) == {
        "one": 2,
        "none": 1,
        "three": 8,
    }
    assert len(passes) == 3 and passes[-1] == ["three"]
    with pytest.raises(InputError, match="too often"):
        side_by_side({"one": reader(1), "many": reader(9)}, passed)

    def broken(_: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        side_by_side({"one": reader(1), "two": reader(2)}, broken)
    assert side_by_side({}, passed) == {}
