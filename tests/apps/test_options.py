"""No option is ignored in silence: every option of every command on every kind of input, and pairs of them drawn.

An option that is given is read, or refused by its name before anything is written. Where the output is the same with
and without it, byte by byte, ``SAME`` says why that is right.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import click
import numpy as np
import pyarrow.parquet as pq
import pytest

import concordant as cc
from concordant.apps.commands.given import ANYWHERE, Options
from concordant.apps.commands.shared_options import ROLES
from concordant.io.ingest import Store
from concordant.io.store.segments import fingerprint
from hostile import every_command, good_files, good_folder, read_and_written
from running import exit_status
from seeds import seed

# -- inputs ------------------------------------------------------------------------------------------------------------
RANDOM = np.random.default_rng(0)
PEOPLE, QUERIES, ITEMS = ["u", "v", "w"], ["p", "q"], ["a", "b", "c", "d"]


SOC = """# FILE NAME: orders.soc
# TITLE: x
# DESCRIPTION:
# DATA TYPE: soc
# NUMBER ALTERNATIVES: 3
# NUMBER VOTERS: 7
# NUMBER UNIQUE ORDERS: 3
# ALTERNATIVE NAME 1: a
# ALTERNATIVE NAME 2: b
# ALTERNATIVE NAME 3: c
3: 1,2,3
2: 2,3,1
2: 3,1,2
"""


def _rows(header: str, rows: list[tuple[Any, ...]]) -> bytes:
    return "\n".join([header, *(",".join(map(str, row)) for row in rows), ""]).encode()


def _draw(names: list[str]) -> str:
    return names[int(RANDOM.integers(len(names)))]


def _pair() -> list[str]:
    return [ITEMS[place] for place in RANDOM.permutation(4)[:2]]


def _votes(number: int = 60) -> list[tuple[Any, ...]]:
    """Comparisons of two queries by three people: winner, loser, query, person, how often, how strong, an x of each."""
    rows = []
    for _ in range(number):
        first, second = sorted(_pair()) if RANDOM.random() < 0.7 else _pair()
        counted, strong = int(RANDOM.integers(1, 3)), float(RANDOM.integers(1, 4)) / 2
        rows.append((first, second, _draw(QUERIES), _draw(PEOPLE), counted, strong, round(RANDOM.normal(), 2)))
    return rows


def _lists(kind: str) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for number in range(24):
        query, person, order = _draw(QUERIES), _draw(PEOPLE), [ITEMS[at] for at in RANDOM.permutation(4)]
        clicked = int(RANDOM.integers(0, 4 if kind == "choices" else 5))
        for place, item in enumerate(order):
            said = {"orders": place + 1, "ratings": ITEMS.index(item) + int(RANDOM.integers(3))}.get(
                kind, int(place == clicked)
            )
            rows.append((query, number, person, place + 1, item, said))
    return rows


def _earlier(votes: bytes) -> bytes:
    """The ranking of a log as a table that says what its queries hold."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "votes.csv")
        log.write_bytes(votes)
        board = replace(cc.rank(cc.read(log)), rests={"log": "votes.csv"})
        pq.write_table(board.to_arrow(), Path(folder, "earlier.parquet"))
        return Path(folder, "earlier.parquet").read_bytes()


@functools.cache
def files() -> dict[str, bytes]:
    """Return a file of every kind that a command reads."""
    votes = _votes()
    plain = [(winner, loser, query, person, x) for winner, loser, query, person, _, _, x in votes]
    sides = [
        (*((winner, loser, "left") if x > 0 else (loser, winner, "right")), query, person, x, int(x > 1))
        for winner, loser, query, person, _, _, x in votes
    ]
    scored = [
        (one, other, int(RANDOM.integers(3)), int(RANDOM.integers(3)), RANDOM.random() < 0.3, query)
        for one, other, query, *_ in votes
    ]
    made = dict(good_files())
    made["votes.csv"] = _rows("winner,loser,query,worker,x", plain)
    dates = [f"2026-{1 + at // 20:02d}-{1 + at % 20:02d}" for at in range(len(plain))]
    made["timed.csv"] = _rows(
        "winner,loser,worker,date,x", [(a, b, who, dates[at], x) for at, (a, b, _, who, x) in enumerate(plain)]
    )
    made["counted.csv"] = _rows("winner,loser,query,worker,count,weight,x", votes)
    made["sides.csv"] = _rows("left,right,winner,query,worker,x,neutral", sides)
    grades = [(one, other, round(2 * x) if abs(x) < 1.2 else 0, who) for one, other, _, who, _, _, x in votes]
    made["graded.csv"] = _rows("left,right,grade,worker", grades)
    made["scored.csv"] = _rows("home_team,away_team,home_score,away_score,neutral,query", scored)
    for kind, name in (("selections", "clicked"), ("choices", "chosen"), ("orders", "rank"), ("ratings", "rating")):
        rows = _lists(kind)
        owner = "session" if kind in ("selections", "choices") else "judgment"
        if kind == "selections":
            made[f"{kind}.csv"] = _rows(f"query,{owner},worker,position,item,{name}", rows)
        else:
            made[f"{kind}.csv"] = _rows(f"query,{owner},worker,item,{name}", [(*r[:3], *r[4:]) for r in rows])
    made["features.csv"] = _rows("item,x,y,z", [(item, at, (-1) ** at * 0.5, at * at) for at, item in enumerate(ITEMS)])
    rows = [(query, item, at + 0.25 * len(query), (-1) ** at) for query in QUERIES for at, item in enumerate(ITEMS)]
    made["by-query.csv"] = _rows("query,item,x,y", rows)
    made["scores.csv"] = _rows("query,item,score", [(query, item, -at) for at, (query, item, *_) in enumerate(rows)])
    made["others.csv"] = _rows("query,item,score", [(q, i, (5 * at) % 7) for at, (q, i, *_) in enumerate(rows)])
    made["propensities.csv"] = b"position,propensity\n1,1\n2,0.6\n3,0.4\n4,0.2\n"
    made["labels.csv"] = _rows(
        "query,item,label", [(q, i, (3 * at + at // 4) % 4) for at, (q, i, *_) in enumerate(rows)]
    )
    made["earlier.parquet"] = _earlier(made["votes.csv"])
    made["texts.csv"] = _rows("item,text", [(item, "ab"[at % 2]) for at, item in enumerate(ITEMS)])
    made["prompts.csv"] = _rows("query,text", [(query, f"What is {query}?") for query in QUERIES])
    systems = [
        (f"s{a}", f"t{b}", f"g{b // 2}", round(1 + a % 3 + RANDOM.normal(), 2)) for a in range(5) for b in range(14)
    ]
    made["systems.csv"] = _rows(
        "system,task,family,score,weight,seed", [(*row, 1 + int(row[1][1:]) % 3, 1) for row in systems]
    )
    wide = [(f"s{a}", *(row[3] for row in systems if row[0] == f"s{a}")) for a in range(5)]
    made["wide.csv"] = _rows(",".join(["name", *(f"t{b}" for b in range(14))]), wide)
    metrics = [(*row[:2], metric, row[3] * sign) for row in systems for metric, sign in (("acc", 1), ("loss", -1))]
    made["metrics.csv"] = _rows("model,dataset,metric,value", metrics)
    made["one-list.csv"] = _rows("item,score", [(item, (7 * at) % 4) for at, item in enumerate(ITEMS)])
    made["one-labels.csv"] = _rows("item,label", [(item, int(at % 2)) for at, item in enumerate(ITEMS)])
    made["orders.soc"] = SOC.encode()
    for name, places in (("a", (0, 1, 2)), ("b", (3, 0))):
        made[f"{name}.run"] = b"".join(
            f"{q} Q0 {ITEMS[(at + shift) % 4]} {place} {3.5 / place} {name}\n".encode()
            for shift, q in enumerate(QUERIES)
            for place, at in enumerate(places, 1)
        )
    battles = [(at, one, other, won, "left" if (x > 0) ^ (at % 4 == 0) else "right")
               for at, (one, other, won, _, _, x, _) in enumerate(sides)]  # fmt: skip
    made["people.csv"] = _rows("id,left,right,winner", [row[:4] for row in battles[:40]])
    made["said.csv"] = _rows("id,left,right,winner", [(*row[:3], row[4]) for row in battles])
    made["x.qrels"] = b"".join(f"{q} 0 {i} {at % 3}\n".encode() for at, (q, i, *_) in enumerate(rows))
    return made


# -- every command on every kind of input -----------------------------------------------------------------------------
LOGS = {
    "comparisons": ["votes.csv"],
    "counted comparisons": ["counted.csv"],
    "Parquet": ["votes.parquet"],
    "JSON lines": ["votes.jsonl"],
    "sides": ["sides.csv"],
    "scored matches": ["scored.csv"],
    "clicks": ["selections.csv"],
    "choices": ["choices.csv"],
    "orders": ["orders.csv"],
    "ratings": ["ratings.csv"],
    "LETOR": ["train.txt"],
    "qrels": ["x.qrels"],
    "PrefLib": ["orders.soc"],
    "store": ["s.store"],
    "folder": ["folder"],
    "database": ["votes.duckdb::votes"],
}
"""A log of every kind, by what it is."""
TABLES = {name: LOGS[name] for name in ("counted comparisons", "sides", "clicks", "PrefLib", "store")}
"""Those that differ for whoever only looks at judgments."""
F = ["-f", "features.csv"]
BOOSTED = ["-r", "boosted", "--regressor-options", "leaf_rows=1"]
INPUTS: dict[str, dict[str, list[str]]] = {
    "doctor": {"comparisons": ["votes.csv"], "features": ["features.csv"], "store": ["s.store"]},
    "rank": {**LOGS, "clicks by the cascade": ["selections.csv", "--structure", "cascade"]}
    | {"clicks by position": ["selections.csv", "--structure", "position-based"]}
    | {"clicks by propensity": ["selections.csv", "--structure", "inverse-propensity"]}
    | {"win rates": ["counted.csv", "--structure", "borda"], "no interval": ["counted.csv", "--interval", "none"]}
    | {"graded": ["graded.csv", "--grade", "grade", "--scale", "2:-2", "--ties", "half"]}
    | {"half-life": ["timed.csv", "--time", "date", "--half-life", "3w"]}
    | {"days": ["timed.csv", "--time", "date", "--as-of", "2026-02-11"]}
    | {"moving": ["timed.csv", "--time", "date", "--moving"]}
    | {"runs": ["a.run", "b.run"], "judged runs": ["a.run", "b.run", "--qrels", "x.qrels"]}
    | {"scores of runs": ["a.run", "b.run", "--structure", "combsum"]}
    | {"bootstrap": ["counted.csv", "--interval", "bootstrap"], "hessian": ["votes.csv", "--interval", "hessian"]},
    "compare": {name: LOGS[name] for name in ("counted comparisons", "sides", "PrefLib", "store")}
    | {"pair": ["counted.csv", "--pair", "a", "b"], "tiers": ["counted.csv", "--ranks", "tiers"]}
    | {
        "two boards": ["timed.csv", "votes.csv", "--pool"],
        "periods": ["timed.csv", "--by", "date", "--since", "2026-02-11"],
    }
    | {"top": ["counted.csv", "--top", "2"], "one population": ["votes.csv", "--pool", "--interval", "hessian"]},
    "tree": {
        "numbers": ["timed.csv", "--by", "x", "--min-judgments", "5"],
        "names": ["timed.csv", "--by", "worker", "--min-judgments", "5", "--alpha", "0.99"],
        "pooled": ["counted.csv", "--by", "query", "--min-judgments", "5", "--pool"],
    },
    "scores": {
        "long": ["systems.csv", "--pairs", "pairs.csv"],
        "wide": ["wide.csv", "--averages", "averages.csv"],
        "metrics": ["metrics.csv", "--metric", "acc", "--plot", "p.svg"],
        "Bradley–Terry": ["wide.csv", "--by", "bradley-terry"],
        "median": ["systems.csv", "--by", "median"],
    },
    "look": {"comparisons": ["votes.csv"], "sides": ["sides.csv"], "store": ["s.store"]}
    | {"one population": ["votes.csv", "--pool", "-o", "o.json"], "ranks": ["votes.csv", "--ranks", "--direct"]},
    "pairs": {name: [*LOGS[name], "-o", "p.jsonl"] for name in ("comparisons", "sides", "orders", "store")}
    | {"texts": ["votes.csv", "--texts", "texts.csv", "-o", "p.parquet"]},
    "judges": {name: LOGS[name] for name in ("comparisons", "sides", "counted comparisons")}
    | {"people and a model": ["people.csv", "--model-judge", "said.csv"]},
    "axioms": {name: [*LOGS[name], "others.csv"] for name in ("counted comparisons", "sides")}
    | {"store": ["s.store", "one-list.csv"]}
    | {"features": ["votes.csv", "others.csv", *F], "cases": ["votes.csv", "others.csv", "--cases"]}
    | {"model": ["votes.csv", "model", *F, "--cluster", "worker"]},
    "camps": {
        "comparisons": ["votes.csv", "--most", "2", "--starts", "1"],
        "two": ["sides.csv", "--number", "2"],
        "features": ["votes.csv", *F, "--number", "2"],
    },
    "audit": {name: [*log, "--replicates", "20"] for name, log in TABLES.items()}
    | {"no replicates": ["sides.csv", "--replicates", "0"], "pairs": ["sides.csv", "--surrogate", "ranknet"]}
    | {"scores": ["sides.csv", "--surrogate", "ndcg-pairwise", "--replicates", "20"]}
    | {"propensities": ["selections.csv", "--structure", "inverse-propensity", "--replicates", "0"]}
    | {"fragile": ["timed.csv", "--surrogate", "ranknet", "--fragility", "--replicates", "0", "-o", "f.json"]},
    "report": {name: [*LOGS[name], "--no-audit", "-o", "o.html"] for name in ("sides", "PrefLib", "store")}
    | {"features": ["votes.csv", *F, "-o", "o.html", "--no-audit"], "audit": ["sides.csv", "-o", "o.html"]}
    | {"model": ["votes.csv", "-m", "model", "-o", "o.html", "--no-audit"]}
    | {"model and features": ["votes.csv", "-m", "model", *F, "-o", "o.html", "--no-audit"]}
    | {"people and a model": ["people.csv", "--model-judge", "said.csv", "-o", "o.html", "--no-audit"]}
    | {"scores": ["sides.csv", "--scores", "others.csv", "-o", "o.html"]},
    "explain": {"comparisons": ["votes.csv", *F], "sides": ["sides.csv", "-f", "features.csv", "--effects", "none"]},
    "ingest": {name: [*log, "--store", "new.store"] for name, log in LOGS.items() if name != "store"},
    "fit": {name: [*log, *F, "-m", "m", "--structure", "log-odds"] for name, log in TABLES.items() if name != "PrefLib"}
    | {"informed": ["votes.csv", *F, "-m", "m"], "features by query": ["votes.csv", "-f", "by-query.csv", "-m", "m"]}
    | {"LETOR": ["train.txt", "-m", "m"], "labels": ["labels.csv", "--kind", "labels", "-f", "by-query.csv", "-m", "m"]}
    | {"Parquet": ["votes.csv", "-f", "features.parquet", "-m", "m", "--structure", "log-odds"]}
    | {f"loss {loss}": ["votes.csv", *F, "-m", "m", "--loss", loss] for loss in ("ranknet", "difference-graph")}
    | {"loss of scores": ["votes.csv", *F, "-m", "m", "--loss", "ndcg-pairwise"]}
    | {"stochastic": ["votes.csv", *F, "-m", "m", "--loss", "ranknet", "--solver", "stochastic", "--steps", "50"]}
    | {"labels by pairs": ["train.txt", "-m", "m", "--loss", "ranknet"]}
    | {"propensities": ["selections.csv", *F, "-m", "m", "--structure", "inverse-propensity", "--order", "all"]}
    | {"drawn subsets": ["votes.csv", *F, "-m", "m", "--structure", "log-odds", "--order", "3"]}
    | {"trees": ["votes.csv", *F, "-m", "m", "-r", "random-forest", "--order", "2"]}
    | {"boosted": ["votes.csv", *F, "-m", "m", "-r", "boosted"], "boosted labels": ["train.txt", "-m", "m", *BOOSTED]},
    "score": {"CSV": ["-m", "model", *F], "Parquet": ["-m", "model", "-f", "features.parquet"]}
    | {"LETOR": ["-m", "trees", "-f", "train.txt"]}
    | {"tiers": ["-m", "model", *F, "--abstain", "0.2", "--gamma", "0.5"]}
    | {"chosen tiers": ["-m", "model", *F, "--abstain", "0.2", "--judgments", "votes.csv"]}
    | {"risk": ["-m", "model", *F, "--abstain", "0.2", "--judgments", "votes.csv", "--abstain-by", "risk"]},
    "evaluate": {"table": ["scores.csv", "labels.csv"], "qrels": ["scores.csv", "x.qrels"]}
    | {"judgments": ["scores.csv", "counted.csv"], "model": ["trees", "train.txt"]}
    | {"held out": ["counted.csv", "--split", "random"]}
    | {"held out by time": ["timed.csv", "--split", "time", "--time", "date"]}
    | {"two scorers": ["scores.csv", "labels.csv", "--against", "others.csv"]}
    | {"by query": ["scores.csv", "labels.csv", "--per-query"]}
    | {"one list": ["one-list.csv", "one-labels.csv", "--metric", "auc"]}
    | {"plain metrics": ["scores.csv", "labels.csv", "--metric", "kendall-tau"]},
    "export": {"model": ["-m", "model", "--to", "json", "-o", "o.json"], "card": ["-m", "model", "--card", "o.md"]}
    | {"card of a log": ["-m", "model", "--card", "o.md", "--log", "votes.csv", *F]}
    | {"card of held-out": ["-m", "model", "--card", "o.md", "--held-out", "votes.csv", *F]}
    | {"card of labels": ["-m", "trees", "--card", "o.md", "--labels", "train.txt"]},
    "counterexample": {"searched": ["ranknet", "--budget", "30"], "known": ["theorem-3"]},
    "store info": {"store": ["s.store"]},
    "store batches": {"store": ["s.store"]},
    "store remove": {"store": ["s.store", "--number", "1"]},
    "store replace": {"store": ["s.store", "people.csv", "--number", "1"]},
    "store forget": {},  # s.store knows nobody
    "store day": {"store": ["s.store", "2026-01-31", "--number", "1"]},
    "store backup": {"store": ["s.store", "copy.store"]},
    "store restore": {"store": ["t.store", "s.store"]},
    "store verify": {"store": ["s.store"]},
    "store compact": {"store": ["s.store"]},
    "store export": {"store": ["s.store", "-o", "o.csv"]},
    "demo": {},
    "serve": {},
    "reproduce": {},
}
COLUMN = {"query": "query", "cluster": "worker", "covariates": "x", "neutral": "neutral", "feature_item": "item"}
COLUMN |= {"feature_query": "query", "left_score": "home_score", "right_score": "away_score", "label": "label"}
VALUES: dict[str, list[str]] = {
    **{role: [COLUMN.get(role, role)] for role in ROLES},
    **{name: [column] for name, column in COLUMN.items() if name not in ROLES},
    "left": ["left", "home_team"],
    "right": ["right", "away_team"],
    "kind": ["comparisons", "selections", "choices", "orders", "ratings", "labels"],
    "structure": ["plackett-luce", "borda", "cascade"],
    "prior": ["0.5", "auto"],
    "reference": ["a"],
    "by": ["worker", "query", "win-rate", "median", "borda", "bradley-terry"],
    "system": ["task", "dataset"],
    "task": ["family", "metric", "system"],
    "trial": ["family", "seed"],
    "metric": ["loss"],
    "layout": ["tasks-by-systems", "long"],
    "tasks": ["t0,t1,t2,t3,t4,t5,t6"],
    "lower": ["t3"],
    "resamples": ["300"],
    "pairs": ["pairs.csv"],
    "averages": ["averages.csv"],
    "plot": ["p.svg"],
    "names": ["x"],
    "alpha": ["0.999"],
    "max_depth": ["1"],
    "picture": ["tree.svg"],
    "least": ["3"],
    "refits": ["1"],
    "worst": ["1"],
    "judge": ["worker", "query"],
    "length": ["left right"],
    "ranking": ["ranking.csv"],
    "per_vote": ["per-vote.csv"],
    "model_judge": ["said.csv"],
    "id": ["id"],
    "match": ["id"],
    "most": ["1"],
    "starts": ["2"],
    "members": ["members.csv"],
    "time": ["date", "x"],
    "half_life": ["3w"],
    "at": ["2026-02-11"],
    "drift": ["0.02"],
    "paths": ["paths.csv"],
    "min_judgments": ["1000"],
    "coefficients": ["coefficients.csv"],
    "ties": ["davidson", "paper", "cumulative"],
    "grade": ["grade"],
    "scale": ["-2:2", "-3:3"],
    "outcomes": ["left=right,right=left", "1=left,2=right,0=tie"],
    "tie_values": ["left", "0,both,"],
    "clicks": ["first"],
    "unranked": ["last", "missing"],
    "k": ["1"],
    "normalise": ["z-score"],
    "qrels": ["x.qrels"],
    "on_error": ["skip"],
    "engine": ["memory", "duckdb"],
    "master": ["local"],
    "memory_limit": ["1GB"],
    "threads": ["1"],
    "interval": ["bootstrap", "none"],
    "replicates": ["45", "30", "0"],
    "level": ["0.8"],
    "rows": ["2"],
    "seed": ["7"],
    "score": ["score"],
    "propensities": ["propensities.csv"],
    "clip": ["0.9"],
    "positions": ["positions.csv"],
    "surrogates": ["ranknet", "ndcg-pairwise"],
    "time_limit": ["3"],
    "order": ["2", "all", "auto"],
    "top": ["2"],
    "pair": ["a b", "b c"],
    "ranks": ["tiers", "alone"],
    "values": ["2026-01-02 2026-02-11", "u v"],
    "since": ["2026-02-01", "0"],
    "shared": ["none", "common"],
    "fail_if_worse": ["a"],
    "ask": ["1", "0"],
    "group": ["worker"],
    "output": ["out.csv", "out.json", "out"],
    "edges": ["edges.csv"],
    "features": ["features.csv", "by-query.csv"],
    "feature_columns": ["x", "1"],
    "model": ["model"],
    "title": ["T"],
    "loss": ["ranknet", "ndcg-pairwise", "linear"],
    "phi": ["hinge", "logistic", "squared-hinge"],
    "subsets": ["3"],
    "gain": ["2^s", "identity"],
    "score_scale": ["2", "auto"],
    "c0": ["2", "auto"],
    "target": ["ndcg@3", "pairwise", "err@2"],
    "regressor": ["hist-gradient-boosting"],
    "regressor_options": ["max_depth=2", "rounds=2"],
    "monotone": ["x=+1", "1=-1"],
    "validate": ["0.5", "counted.csv"],
    "ridge": ["0.5"],
    "missing": ["mean", "keep"],
    "folds": ["2"],
    "effects": ["none"],
    "spread": ["0.7"],
    "abilities": ["abilities.csv"],
    "split": ["random", "cluster"],
    "solver": ["stochastic"],
    "steps": ["40"],
    "radius": ["0.01"],
    "abstain": ["0.4"],
    "abstain_by": ["distance", "risk"],
    "gamma": ["0.1"],
    "norm": ["1"],
    "share": ["0.3"],
    "judgments": ["votes.csv"],
    "judged_features": ["features.csv"],
    "metrics": ["err@2"],
    "convention": ["trec"],
    "against": ["others.csv"],
    "scores": ["others.csv"],
    "unmatched": ["skip", "trec"],
    "item": ["item"],
    "to": ["solr", "elasticsearch", "opensearch"],
    "card": ["card.md"],
    "name": ["n"],
    "feature_names": ["one,two,three"],
    "of_query": ["1"],
    "log": ["votes.csv"],
    "held_out": ["votes.csv"],
    "labels": ["train.txt"],
    "held_out_features": ["features.csv"],
    "license": ["mit"],
    "items": ["4", "all"],
    "within": ["acyclic"],
    "votes": ["5000"],
    "budget": ["40"],
    "wait": ["1"],
    "again": ["monday"],
    "batch": ["votes.csv", "monday"],
    "number": ["2", "1"],
    "day": ["2026-01-31"],
    "before": ["2026-02-01"],
    "ids": ["votes.csv"],
    "keep": ["90d", "all"],
    "excluding": ["s.store"],
    "as_of": ["2026-02-11", "2026-01-31"],
    "last": ["3w"],
    "known": ["none", "missing.known.json"],
    "store": ["new.store"],
    "texts": ["texts.csv"],
    "prompts": ["prompts.csv"],
    "data": ["."],
    "device": ["cuda"],
    "log_format": ["json"],
    "host": ["::1"],
    "host_name": ["a.example"],
    "token_file": ["token"],
    "port": ["0"],
    "workers": ["2"],
    "max_items": ["5"],
    "max_body": ["1MB"],
    "limit_concurrency": ["3"],
    "timeout": ["3"],
    "watch": ["5"],
    "start": ["informed", "earlier.parquet"],
    "shadow": ["model"],
    "shadow_share": ["0.5"],
    "summary": ["run.json"],
    "exit_status": ["detailed"],
}
"""Values for each option, each valid somewhere and none the default; flags have none."""
COMMANDS = dict(every_command())


@dataclass(frozen=True)
class Run:
    """What a command line did."""

    status: int
    said: str
    output: tuple[tuple[str, str], ...]
    """Name and hash of stdout and of every file that is new or was changed."""
    read: frozenset[str]


class _Said(io.TextIOWrapper):
    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", errors="surrogateescape", write_through=True)

    def text(self) -> bytes:
        return self.buffer.getvalue()  # type: ignore[attr-defined,no-any-return]


@contextlib.contextmanager
def _inside(folder: str) -> Iterator[tuple[_Said, _Said]]:
    before, here = (sys.stdout, sys.stderr), os.getcwd()
    sys.stdout, sys.stderr = out, err = _Said(), _Said()
    os.chdir(folder)
    try:
        yield out, err
    finally:
        os.chdir(here)
        sys.stdout, sys.stderr = before


def _hashes() -> dict[str, str]:
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(Path().rglob("*")) if path.is_file()
    }


@functools.cache
def run(*arguments: str) -> Run:
    """Run a command line where the files of all kinds are."""
    made = files() | good_folder("model") | good_folder("informed") | good_folder("trees") | good_folder("s.store")
    with tempfile.TemporaryDirectory() as folder, _inside(folder) as (out, err):
        needed = read_and_written(list(arguments))
        wanted = {name.split("/")[0].split("::")[0] for name in set().union(*needed)}
        for name, data in made.items():
            if name.split("/")[0].removesuffix(".parts") in wanted:
                Path(name).parent.mkdir(exist_ok=True)
                Path(name).write_bytes(data)
        if "folder" in wanted:
            Path("folder").mkdir()
            for number in (1, 2):
                Path("folder", f"{number}.csv").write_bytes(files()["votes.csv"])
        before = _hashes()
        seen: list[Options] = []
        of = vars(Options)["of"]

        def noted(kind: type[Options], *asked: Any) -> Options:
            seen.append(of.__func__(kind, *asked))
            return seen[-1]

        Options.of = classmethod(noted)  # type: ignore[method-assign,assignment]
        try:
            status = exit_status(*arguments)
        finally:
            Options.of = of  # type: ignore[method-assign]
        changed = {name: sign for name, sign in _hashes().items() if before.get(name) != sign}
        output = {"stdout": hashlib.sha256(out.text()).hexdigest(), **changed}
        if status == 0 and arguments[0] in ("audit", "look"):  # whose summary is part of what it finds
            output["stderr"] = hashlib.sha256(err.text()).hexdigest()
        if status == 0 and "new.store" in changed:  # whose bytes hold the time and random names
            output = {"new.store": fingerprint(Store("new.store").preferences())}
        read = frozenset(seen[0]._way.read) if seen else frozenset()
        return Run(status, err.text().decode("utf-8", "surrogateescape"), tuple(sorted(output.items())), read)


def options_of(command: str) -> list[click.Option]:
    return [one for one in COMMANDS[command].params if isinstance(one, click.Option)]


SHARED = {
    *ROLES,
    "kind",
    "cluster",
    "clicks",
    "unranked",
    "pool",
    "on_error",
    "engine",
    "master",
    "memory_limit",
    "threads",
}
"""Options of reading a log. One function reads every log, for whichever command: rank shows what it makes of them on
every kind of input, other commands do on their first inputs."""
FORMATS = ("Parquet", "JSON lines", "qrels", "folder", "database")
"""Inputs that differ from others by their format alone: roles of columns say nothing new there."""


OF_THE_RUN = ("summary", "exit_status")
"""Options that have to do with no input: one is enough."""


def cells(command: str) -> list[tuple[str, click.Option]]:
    """Return the inputs of a command, each with every option that it does not have already."""
    found = []
    for place, (what, base) in enumerate(INPUTS[command].items()):
        for option in options_of(command):
            if option.is_eager or {*option.opts, *option.secondary_opts} & {*base}:
                continue
            if (option.name in ROLES and what in FORMATS) or (option.name in OF_THE_RUN and place):
                continue
            if option.name in SHARED and command != "rank" and place > 1 and what not in ("LETOR", "labels", "PrefLib"):
                continue
            found.append((what, option))
    return found


def ways(option: click.Option) -> list[list[str]]:
    """Return the ways to give an option, each other than its default."""
    flag = max(option.opts, key=len)
    if option.is_flag:
        both = [flag, *([max(option.secondary_opts, key=len)] if option.secondary_opts else [])]
        return [[one] for one in both if not (option.secondary_opts and (one == flag) is option.default)]
    return [[flag, *([value] if option.nargs == 1 else value.split())] for value in VALUES[str(option.name)]]


SAME: dict[str, dict[str, str]] = {
    "*": {
        **{f"--{role.replace('_', '-')}": "names the column that is found without it" for role in ROLES},
        **dict.fromkeys(
            ("--feature-item", "--feature-query", "--score", "--label", "--item", "--query"),
            "names the column that is found without it",
        ),
        "--kind": "says what is found without it; what does not fit is refused",
        "--spreadsheet-safe": "no label begins like a formula",
        "--quiet": "less is said; what is written is the same",
        "--log-format": "it is said in another form; what is written is the same",
        "--exit-status": "says how it ended in another number",
        "--summary": "the record stands beside the result, which is the same",
        "--seed": "nothing was drawn here, or nothing that shows",
        "--on-error": "every row can be understood",
        "--clicks": "no list has more than one click",
        "--pool": "the log is one query, or its queries are apart without it",
        "--engine": "engines count alike, to the bit",
        "--memory-limit": "bounds the work, not the result",
        "--threads": "bounds the work, not the result",
        "--wait": "nobody else writes to the store",
        "--unsafe-load-pickle": "a permission; this model holds no pickle",
        "--missing": "no feature is missing",
        "--unmatched": "every row has its partner",
    },
    "rank": {
        "--ties": "the log has no ties",
        "--across-components": "comparisons connect all items",
        "--structure": "of comparisons plackett-luce is bradley-terry",
        "--interval": "every query is judged once: nothing to draw from",
        "--statistics": "it is said, not written",
        "--start": "the rows that are kept are those of the whole",
        "--level": "every query is judged once: no interval is finite",
        "--k": "few items: the order, by which runs are judged, is the same",
        "--normalise": "few items: the order, by which runs are judged, is the same",
        "--unranked": "few items: the order, by which runs are judged, is the same",
    },
    "tree": {
        "--ties": "the log has no ties",
        "--structure": "of comparisons plackett-luce is bradley-terry",
        "--max-depth": "few judgments: nothing is divided twice",
        "--alpha": "few judgments: nothing is divided",
        "--names": "few judgments: nothing is divided",
        "--by": "few judgments: nothing is divided",
    },
    "scores": {
        "--layout": "says what is found without it",
        "--system": "names the column that is found without it",
        "--higher-is-better": "no name says that less is better",
        "--task": "names the column that is found without it",
        "--resamples": "the critical value is the same to the last pair",
        "--trial": "a column of ones: one trial a cell",
        "--weight": "names the column that is found without it",
    },
    "axioms": {
        "--score": "names the column that is found without it",
        "--least": "few pairs, and none that all agree on",
        "--refits": "what is fitted again keeps its order",
        "--features": "with --cases the best of their scorers is said, not written",
        "--level": "few votes: nothing is sure",
    },
    "pairs": {"--level": "no pair is level"},
    "look": {"--direct": "few votes: nothing is excluded", "--level": "few votes: nothing is excluded"},
    "judges": {
        "--judge": "names the column that is found without it",
        "--match": "names the column that is found without it",
        "--replicates": "alpha is said, not written",
    },
    "camps": {
        "--judge": "names the column that is found without it",
        "--most": "few votes: one camp",
        "--number": "few votes: one camp",
        "--prior": "auto is what is taken without it",
        "--starts": "few votes: every start ends at the same maximum",
        "--folds": "few votes: one camp",
        "--seed": "few votes: one camp",
    },
    "compare": {
        "--fail-if-worse": "the exit status, and a line; what is written is the same",
        "--shared": "the two periods share no judgment",
        "--ties": "the log has no ties",
        "--structure": "of comparisons plackett-luce is bradley-terry",
        "--level": "few items: the sets are the same",
        "--interval": "few items: the sets are the same",
        "--min-judgments": "differences are those of all items, only ranks leave some apart",
        "--prior": "few items: the sets are the same",
        "--ranks": "few items: the sets are the same",
        "--top": "few items: the sets are the same",
        "--covariate": "few items: the sets are the same",
        "--home": "few items: the sets are the same",
        "--cluster": "few items: the sets are the same",
        "--weight": "few items: the sets are the same",
        "--count": "few items: the sets are the same",
    },
    "evaluate": {"--structure": "of comparisons plackett-luce is bradley-terry"},
    "fit": {
        "--start": "the choices are those that the fit makes, too",
        "--in-memory": "F is read into memory without it, too",
        "--stream": "F on disk or in memory: the model is the same",
        "--order": "says what is taken without it",
        "--structure": "says what is taken without it",
        "--loss": "says what is taken without it",
        "--phi": "says what is taken without it",
        "--informed": "says what is taken without it",
        "--not-informed": "says what is taken without it",
    },
    "score": {
        "--in-memory": "F is read into memory without it, too",
        "--stream": "F on disk or in memory: the scores are the same",
        "--abstain-by": "few items: the tiers are the same",
        "--norm": "few items: the tiers are the same",
        "--gamma": "few items: the tiers are the same",
        "--share": "few items: the tiers are the same",
        "--abstain": "few items: the tiers are the same",
        "--judged-features": "names the features that are taken without it",
    },
    "audit": {
        "--keep-partial": "nothing interrupts it",
        "--exact": "the best orders are exact without it, few items as they have",
        "--ties": "no minimiser has tied scores",
        "--structure": "every surrogate is right by it, too: the table has verdicts only",
        "--order": "every surrogate is right by it, too: the table has verdicts only",
        "--level": "nothing is near the border",
    },
    "counterexample": {"--phi": "says what is taken without it"},
    "export": {"--held-out-features": "names the features that are taken without it"},
    "ingest": {
        "--grown": "a permission; no file has grown",
        "--batch": "names the batch; the judgments are the same",
        "--day": "says the day of the batch; the judgments are the same",
        "--keep": "one batch: none is older",
        "--excluding": "nothing was taken out of that store",
    },
}
"""Options that were read and left the output as it was, to the byte, and why that is right; * stands for every command.

Each was looked at by itself. One that is not here is ignored, or a test of it is missing.
"""


def test_every_option_has_a_value_to_try() -> None:
    names = {str(one.name) for name in COMMANDS for one in options_of(name) if not one.is_flag and not one.is_eager}
    assert names <= {*VALUES}
    assert {*INPUTS} == {*COMMANDS}


EVERY = [(command, what) for command, inputs in INPUTS.items() for what in inputs]
ALL = os.environ.get("CONCORDANT_OPTIONS") == "all"
"""Whether every cell is run (many minutes); else each option on one input of its command, and a part of the others."""
SHARE = 0.06


def chosen(command: str) -> list[tuple[str, click.Option]]:
    """Return each option with an input on which it is read, if there is one, and some more, drawn."""
    random = Random(f"{command} {seed(1)}")
    drawn = cells(command)
    random.shuffle(drawn)
    first: dict[str, tuple[str, click.Option]] = {}
    for what, option in drawn:
        first.setdefault(str(option.name), (what, option))
    return drawn if ALL else [*first.values(), *(cell for cell in drawn if random.random() < SHARE)]


@pytest.mark.parametrize("command", [name for name, inputs in INPUTS.items() if inputs])
def test_no_option_is_ignored(command: str) -> None:
    for what, option in chosen(command):
        base = [*command.split(), *INPUTS[command][what]]
        for way in ways(option):
            check([*base, *way], run(*base), [option], f"{command}, {what}: {' '.join(way)}")


def check(arguments: list[str], before: Run, options: list[click.Option], about: str) -> Run:
    """Hold a command line with options against the one without."""
    found = run(*arguments)
    assert before.status == 0, before.said
    assert found.status in (0, 2) and "Traceback" not in found.said, f"{about}: {found.said}"
    assert "nothing read it" not in found.said, about
    if found.status:
        written = [one for one in found.output if one[0] != "run.json"]  # the record of a run that failed, too
        assert len(written) == 1, f"{about}: something was written: {found.output}"
        return found
    for option in options:
        exposed = option.expose_value and option.name not in ANYWHERE
        assert not exposed or option.name in found.read, f"{about}: never read"
    if found.output == before.output:
        for option in options:
            why = SAME["*"] | SAME.get(arguments[0], {})
            assert {*option.opts, *option.secondary_opts} & {*why}, f"{about}: the output is the same without it"
    return found


@pytest.mark.parametrize("number", range(60))
def test_pairs_of_options(number: int) -> None:
    """Two options drawn, on an input drawn."""
    random = Random(seed(number))
    command = random.choice([name for name, inputs in INPUTS.items() if inputs])
    what = random.choice(sorted(INPUTS[command]))
    known = [option for one, option in cells(command) if one == what]
    pair = random.sample(known, min(2, len(known)))
    added = [random.choice(ways(option)) for option in pair]
    base = [*command.split(), *INPUTS[command][what]]
    check([*base, *(word for way in added for word in way)], run(*base), pair, f"{command}, {what}: {added}")


@pytest.mark.parametrize(
    ("command", "what"), [(name, what) for name, what in EVERY if name in ("rank", "fit") and what != "store"]
)
def test_a_column_that_is_not_there_is_never_ignored(command: str, what: str) -> None:
    base = INPUTS[command][what]
    for option in options_of(command):
        named = {*ROLES, "cluster", "covariates", "neutral", "label", "feature_item", "feature_query"}
        if option.name in named - {"tie_values"}:
            flag = max(option.opts, key=len)
            found = run(*command.split(), *base, flag, "no such column")
            assert found.status == 2 and len(found.output) == 1, f"{command}, {what}: {flag}: {found.said}"


def test_data_for_an_experiment_that_makes_its_own() -> None:
    found = run("reproduce", "consistency", "--quick", "-o", "out", "--data", ".")
    assert found.status == 2 and "--data does nothing here: consistency makes its own data" in found.said


@pytest.mark.parametrize("command", COMMANDS)
def test_an_option_given_twice_is_refused(command: str) -> None:
    for option in options_of(command):
        if option.is_eager or option.multiple:
            continue
        way = ways(option)[0]
        found = run(*command.split(), *way, *way)
        assert found.status in (2, 4) and f"{way[0]}" in found.said and "is given twice; give it once" in found.said
