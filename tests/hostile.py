"""Hostile inputs for every command: good files of each format, ways to break them, and options nobody should give.

A ``Case`` is drawn from a ``random.Random``, so that hypothesis can shrink it, and a seed can repeat it.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import io
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import click
import duckdb
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

from concordant.apps.commands import cli
from concordant.io.store.known import beside
from running import exit_status

__all__ = [
    *("COMMANDS", "READS", "WRITES", "Case", "broken_model", "draw_case", "every_command", "good_files"),
    *("good_folder", "read_and_written", "sealed"),
]

PAIRS = ["a,b", "b,a", "a,c", "b,c", "c,b", "a,b", "c,d", "d,a"]
VOTES = "winner,loser\n" + "".join(f"{pair}\n" for pair in PAIRS)
FEATURES = "item,x,y\na,1,0.5\nb,2,-1\nc,0,3\nd,4,0\n"
LETOR = "".join(f"{(7 * i + i // 4) % 3} qid:{i // 4} 1:{i % 5 / 2} 2:{i % 3}\n" for i in range(40)).encode()
PREFLIB = (
    b"# FILE NAME: x.soc\n# NUMBER ALTERNATIVES: 3\n# NUMBER VOTERS: 5\n# ALTERNATIVE NAME 1: A\n"
    b"# ALTERNATIVE NAME 2: B\n# ALTERNATIVE NAME 3: C\n3: 1,2,3\n2: 2,3,1\n"
)
TEXTS = {
    "sides.csv": "left,right,winner,query,worker\na,b,left,q,w\nb,c,right,q,w\nc,a,tie,r,v\na,c,left,r,v\n",
    "scored.csv": "home_team,away_team,home_score,away_score,neutral\na,b,1,0,False\nb,c,2,2,True\nc,a,0,3,False\n",
    "clicks.csv": "query,session,position,item,clicked\nq,1,1,a,0\nq,1,2,b,1\nq,2,1,b,1\nq,2,2,a,0\n",
    "orders.csv": "query,judgment,item,rank\nq,1,a,1\nq,1,b,2\nq,2,b,1\nq,2,a,1\nq,2,c,2\n",
    "ratings.csv": "user,item,rating\n1,a,3\n1,b,5\n2,a,4\n2,c,1\n",
    "scores.csv": "query,item,score\n,a,1.5\n,b,0.5\n,c,-1\n,d,0\n",
    "labels.csv": "item,label\na,2\nb,1\nc,0\nd,1\n",
    "weights.csv": "winner,loser,weight,count\na,b,1,2\nb,a,0.5,1\nb,c,2,3\nc,a,1,1\n",
}
CELLS = [
    *("1e400", "-1e400", "1" * 31, "-0", "-0.0", "NaN", "nan", "inf", "-inf", "Infinity", "1e308", "-1e308", "1e-320"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775809", "0x10", "1_000", "１２", "1e5", "1.5"),
    *("", " ", '"', '""', "'", ",", "\t", "\r", "\n", "\\", "\x00", "\x1b[31m", "\ufeff", "\u202e"),
    *("👩‍🚀", "é", "e\u0301"),
    *("null", "None", "true", "left", "tie", "[1]", "{}", '{"a":1}', "=1+1", "'; DROP TABLE t; --"),
    *("../../x", "[/red]"),
    *("%s", "{0}", "$(id)", "a" * 5000, "qid:1", "1:", ":1", "1:nan", "#", "2 qid:x 1:1"),
]
VALUES = [
    *("0", "-1", "1", "2", "3", "0.5", "-0.0", "1e-9", "0.999999", "1e400", "nan", "inf", "-inf"),
    *("1" * 31, "2147483648"),
    *("9223372036854775808", "", " ", "x", "١", "1_0", "0x1", "auto", "all", "none", "\x1b[1m"),
    *("a\nb", "é", "../x", "--help"),
]
ROLES = [
    "winner",
    "loser",
    "left",
    "right",
    "outcome",
    "query",
    "weight",
    "count",
    "item",
    "rating",
    "session",
    "rank",
    "grade",
]
INTS = [
    *("0", "1", "2", "3", "7", "20", "-1"),
    "2147483648",
    "9223372036854775807",
    "9223372036854775808",
    "1" * 31,
    "x",
]
FLOATS = [*("0", "1", "0.5", "-0.0", "1e-9", "0.999999", "-1", "3"), *("1e300", "1e400", "nan", "inf", "-inf", "x")]
PRIORS = [*FLOATS, "auto"]
SIZES = ["1KB", "1MB", "0GB", "-1GB", "1e9GB", "99999999999TB", "nanGB", "80%", "4GB", "2GB", "", " ", "x"]
COLUMNS = [
    "winner",
    "loser",
    "item",
    "query",
    "x",
    "y",
    "left",
    "rank",
    "clicked",
    "no such",
    "",
    "a\nb",
    "\x1b",
    "'\"",
]
READING: dict[str, list[str]] = {
    **{f"--{role}": COLUMNS for role in ROLES},
    "--scale": [*("-3:3", "7:1", "1:5", "1:2", "-3:2", "0:0", "x", "", ":", "a,b", "a,a", "é,b, ,c", "3,2,1"), *VALUES],
    "--outcomes": [*("1=left,2=right", "left=tie", "a=b=left", "=tie", "x=", "=", ",", "left=up"), *VALUES],
    "--tie-values": ["tie", "0,both", ",", "left,right", "a\nb", *VALUES],
    "--pool": [],
    "--no-pool": [],
    "--kind": ["comparisons", "selections", "choices", "orders", "ratings", "labels", "x", ""],
    "--clicks": ["all", "first", "last", "skip", "raise", "x"],
    "--on-error": ["skip", "raise", "x"],
    "--engine": ["memory", "duckdb", "x"],
    "--memory-limit": SIZES,
    "--threads": ["1", "2", *INTS],
    "--cluster": COLUMNS,
    "--master": ["", "x"],
}
TIES = ["half", "davidson", "cumulative", "any-order", "x"]
STRUCTURES = ["bradley-terry", "plackett-luce", "log-odds", "thurstone-mosteller", "borda", "budgeted-borda"]
STRUCTURES += ["eigenvector", "copeland", "counting", "kemeny", "cascade", "rrf", "combsum", "x", ""]
STRUCTURES += ["position-based", "dependent-click", "inverse-propensity"]
LOSSES = ["gain-regression", "difference-graph", "linear", "ndcg-pairwise", "err-pairwise", "ranksvm", "ranknet"]
LOSSES += ["majority", "rankboost", "margin-based", "x", ""]
PHIS = ["hinge", "squared-hinge", "logistic", "exponential", "x", ""]
DAYS = ["2026-01-31", "2026-13-45", "20260131", "0001-01-01", "9999-12-31", "yesterday", "", "2026-01-31T00:00"]
TIMES = ["90d", "2y", "1", "0", "-1d", "1e400", "nan", "d", "", "2026-01-01", "2026-13-45", "x"]
ENDINGS = [*("csv", "tsv", "parquet", "arrow", "json", "jsonl") * 3, "feather", "xlsx", "", "CSV"]
FLAG: list[str] = []
FEATURE = {"--feature-item": COLUMNS, "--feature-query": COLUMNS, "--stream": FLAG, "--in-memory": FLAG}
OPTIONS: dict[str, dict[str, list[str]]] = {
    "rank": READING
    | {"--structure": STRUCTURES, "--prior": PRIORS, "--ties": TIES, "--covariate": COLUMNS}
    | {"--home": FLAG, "--neutral": COLUMNS, "--interval": ["hessian", "sandwich", "bootstrap", "none", "x"]}
    | {"--replicates": INTS, "--level": FLOATS, "--quasi": FLAG, "--pool": FLAG, "--across-components": FLAG}
    | {"--seed": INTS, "--rows": INTS, "--quiet": FLAG, "--log-format": ["json", "x"], "--statistics": FLAG}
    | {"--time": COLUMNS, "--half-life": TIMES, "--moving": FLAG, "--drift": FLOATS, "--at": TIMES}
    | {"--as-of": DAYS, "--since": DAYS, "--last": TIMES}
    | {"--paths": ["paths.csv", "no/paths.csv", "x", ""], "--coefficients": ["c.csv", "paths.csv", "x", ""]}
    | {"--reference": [*COLUMNS, "a"], "--k": FLOATS, "--normalise": ["z-score", "min-max", "x"]}
    | {"--unranked": ["last", "missing", "x"], "--qrels": ["x.qrels", "votes.csv", "no.qrels", ""]}
    | {"--metric": ["ndcg@10", "map", "auc", "x", ""]},
    "compare": READING
    | {"--time": COLUMNS, "--half-life": TIMES, "--at": TIMES, "--as-of": DAYS, "--with": DAYS, "--last": TIMES}
    | {"--structure": STRUCTURES, "--prior": PRIORS, "--ties": TIES, "--home": FLAG}
    | {"--interval": ["hessian", "sandwich", "bootstrap", "none", "x"], "--replicates": INTS, "--level": FLOATS}
    | {"--ranks": ["together", "alone", "tiers", "x"], "--top": INTS, "--rows": INTS, "--pool": FLAG, "--quiet": FLAG},
    "explain": READING
    | {"--feature-item": COLUMNS, "--effects": ["random", "none", "x"], "--spread": FLOATS, "--level": FLOATS}
    | {"--feature-columns": [*COLUMNS, "x,y", "x,x", ","], "--abilities": ["abilities.csv", "x", ""], "--home": FLAG},
    "tree": READING
    | {"--by": COLUMNS, "--names": COLUMNS, "--alpha": FLOATS, "--min-judgments": INTS, "--max-depth": INTS}
    | {"--structure": ["plackett-luce", "borda", "x"], "--ties": ["half", "davidson", "x"], "--prior": FLOATS}
    | {"--pool": FLAG, "--seed": INTS, "--quiet": FLAG},
    "scores": {f"--{role}": COLUMNS for role in ("system", "task", "score", "trial", "weight", "cluster", "metric")}
    | {"--layout": ["long", "systems-by-tasks", "tasks-by-systems", "x"], "--tasks": [*COLUMNS, "x,y", "x,x", ","]}
    | {"--lower-is-better": FLAG, "--lower": COLUMNS, "--by": ["median", "win-rate", "borda", "bradley-terry", "x"]}
    | {"--level": FLOATS, "--top": INTS, "--resamples": ["100", *INTS], "--seed": INTS, "--rows": INTS, "--quiet": FLAG}
    | {"--nemenyi": FLAG},
    "look": READING
    | {"--top": INTS, "--ranks": FLAG, "--direct": FLAG, "--ask": INTS, "--level": FLOATS, "--pool": FLAG}
    | {"--rows": INTS, "--quiet": FLAG},
    "pairs": {
        name: of
        for name, of in READING.items()
        if name not in ("--clicks", "--master", "--cluster", "--pool", "--no-pool")
    }
    | {"--texts": ["votes.csv", "items.csv", "no.csv", ""], "--prompts": ["votes.csv", "x", ""], "--level": FLAG}
    | {"--quiet": FLAG},
    "judges": READING
    | {"--judge": COLUMNS, "--covariate": COLUMNS, "--match": COLUMNS, "--these": FLAG, "--level": FLOATS}
    | {
        "--replicates": ["0", "20", "x"],
        "--ranking": ["r.csv", "r", ""],
        "--per-vote": ["v.csv", "x"],
        "--quiet": FLAG,
    },
    "axioms": READING
    | {
        "--least": INTS,
        "--refits": ["0", "1", "x"],
        "--worst": INTS,
        "--cases": FLAG,
        "--level": FLOATS,
        "--seed": INTS,
    }
    | {"--feature-item": COLUMNS, "--score": COLUMNS, "--unsafe-load-pickle": FLAG, "--quiet": FLAG},
    "camps": READING
    | FEATURE
    | {"--judge": COLUMNS, "--number": ["auto", "2", *INTS], "--most": ["1", "2", "x"], "--prior": VALUES}
    | {"--folds": ["2", "1", "x"], "--starts": ["1", "2", "x"], "--members": ["m.csv", "m", ""], "--quiet": FLAG},
    "fit": READING
    | FEATURE
    | {"--loss": LOSSES, "--phi": PHIS, "--structure": STRUCTURES, "--order": VALUES, "--subsets": INTS}
    | {"--gain": ["2^s-1", "2^s", "identity", "x"], "--informed": FLAG, "--not-informed": FLAG, "--ridge": VALUES}
    | {
        "--regressor": ["linear", "boosted", "hist-gradient-boosting", "network", "lightgbm", "xgboost", "x"],
        "--seed": INTS,
    }
    | {
        "--log-features": FLAG,
        "--as-given": FLAG,
        "--missing": ["mean", "median", "zero", "keep", "x"],
        "--folds": INTS,
    }
    | {"--feature-columns": [*COLUMNS, "x,y", "x,x", ","], "--monotone": ["x=+1", "x=-1,y=0", "x=2", "no=1", "=", ""]}
    | {"--regressor-options": ["max_depth=3", "learning_rate=x", "rounds=2", "no=1", "x", "=", ""]}
    | {"--validate": ["0.3", "0", "1", "nan", "votes.csv", "train.txt", "no.csv", ""]}
    | {"--start": ["model", "no", "votes.csv", ""]},
    "score": FEATURE
    | {"--abstain": FLOATS, "--abstain-by": ["distance", "risk", "x"], "--gamma": VALUES, "--norm": ["1", "2", "inf"]}
    | {"--share": FLOATS, "--memory-limit": SIZES, "--unsafe-load-pickle": FLAG, "--quiet": FLAG},
    "evaluate": READING
    | {"--convention": ["burges", "sklearn", "trec", "xgboost", "lightgbm", "letor4", "x"]}
    | {"--metric": ["ndcg", "err@3", "map", "precision@0", "auc", "kendall-tau", "pairwise-loss", "mrr@-1", "ndcg@x"]}
    | {"--per-query": FLAG, "--unmatched": ["skip", "x"], "--level": FLOATS, "--query": COLUMNS, "--item": COLUMNS}
    | {"--score": COLUMNS, "--label": COLUMNS, "--coefficients": ["c.csv", "scores.csv", ""], "--home": FLAG}
    | {"--split": ["random", "cluster", "time", "x"], "--folds": INTS, "--prior": PRIORS, "--time": COLUMNS}
    | {"--structure": STRUCTURES, "--half-life": TIMES, "--target": ["pairwise", "ndcg@10", "err@0", "x"]},
    "audit": READING
    | {"--surrogate": [*LOSSES, "ranknet:hinge", ":", "a:b:c"], "--ties": ["heavier", "paper"], "--exact": FLAG}
    | {"--time-limit": FLOATS, "--structure": STRUCTURES, "--order": VALUES, "--replicates": INTS, "--level": FLOATS}
    | {"--top": INTS, "--ask": INTS, "--pool": FLAG, "--seed": INTS, "--rows": INTS, "--quiet": FLAG}
    | {"--keep-partial": FLAG},
    "counterexample": {"--phi": PHIS, "--items": INTS, "--within": ["low-noise", "acyclic", "any", "x"]}
    | {"--votes": INTS, "--budget": ["0", "-1", "1", "50", "x", "1e400"], "--seed": INTS},
    "ingest": READING
    | {
        "--covariate": COLUMNS,
        "--home": FLAG,
        "--neutral": COLUMNS,
        "--grown": FLAG,
        "--again": VALUES,
        "--known": ["none", "missing.known.json", "votes.csv", ""],
        "--wait": ["0", "-1", "nan", "x"],
        "--batch": VALUES,
        "--day": DAYS,
        "--keep": ["90d", "all", "0d", "-1d", "1e400", "1.5d", "x", ""],
        "--excluding": ["s.store", "votes.csv", "missing.store", ""],
    },
    "store batches": {"--all": FLAG, "--json": FLAG},
    "store remove": {"--batch": ["votes.csv", *VALUES], "--number": INTS, "--day": DAYS, "--before": DAYS},
    "store replace": {"--batch": ["votes.csv", *VALUES], "--number": ["1", *INTS], "--day": DAYS, "--cluster": COLUMNS},
    "store forget": {
        "--cluster": VALUES,
        "--id": VALUES,
        "--ids": ["votes.csv", "missing.txt", ""],
        "--wait": ["0", "x"],
    },
    "store day": {"--batch": ["votes.csv", *VALUES], "--number": ["1", *INTS]},
    "store backup": {"--wait": ["0", "x"]},
    "store restore": {"--wait": ["0", "x"]},
    "store info": {"--batches": FLAG},
    "store verify": {"--quiet": FLAG},
    "store compact": {"--wait": ["0", "-1", "nan", "x"], "--memory-limit": SIZES, "--threads": ["1", "2", *INTS]},
    "store export": {"--quiet": FLAG},
    "reproduce": {"--device": ["cuda", "x", ""], "--seed": INTS},
    "demo": {"--seed": ["-1", "x", "1e400", "", "1" * 31]},
    "report": READING | {"--seed": INTS, "--level": FLOATS, "--quiet": FLAG},
    "export": {"--name": COLUMNS, "--license": VALUES, "--no-audit": FLAG, "--quiet": FLAG},
}
OPTIONS["doctor"] = {"--json": FLAG, "--quiet": FLAG}
COMMANDS = list(OPTIONS)
WRITERS = ("compact", "remove", "replace", "forget", "day", "backup", "restore")
"""Commands that change a store."""
WRITES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("compare", "look", "pairs", "score", "report", "counterexample", "reproduce", "demo"), ("output",)
    ),
    "doctor": ("output",),
    "rank": ("output", "coefficients", "paths", "positions"),
    "explain": ("output", "abilities"),
    "tree": ("output", "picture"),
    "scores": ("output", "pairs", "averages", "plot"),
    "judges": ("output", "ranking", "per_vote"),
    "axioms": ("output",),
    "camps": ("output", "members", "model"),
    "fit": ("model",),
    "evaluate": (),
    "audit": ("output", "edges"),
    "ingest": ("store",),
    "export": ("output", "card"),
    "serve": (),
    "store info": ("output",),
    "store batches": ("output",),
    **dict.fromkeys(("store remove", "store replace", "store forget", "store day", "store restore"), ("file",)),
    "store backup": ("copy",),
    "store verify": (),
    "store compact": ("file",),
    "store export": ("output",),
}
"""Parameters of each command that name what it writes: files, folders, stores."""
READS: dict[str, tuple[str, ...]] = {
    "doctor": ("file",),
    "rank": ("log", "more", "propensities", "qrels", "start"),
    "compare": ("log", "new", "propensities"),
    "explain": ("log", "features"),
    "tree": ("log",),
    "scores": ("file",),
    "look": ("log",),
    "pairs": ("log", "texts", "prompts"),
    "judges": ("log", "model_judge"),
    "axioms": ("log", "scorer", "features"),
    "camps": ("log", "features"),
    "fit": ("log", "features", "propensities", "validate", "start"),
    "score": ("model", "features", "judgments", "judged_features"),
    "evaluate": ("scores", "labels", "more", "against", "features", "coefficients"),
    "audit": ("log", "propensities"),
    "report": ("log", "features", "model", "scores", "model_judge"),
    "export": ("model", "log", "held_out", "labels", "features", "held_out_features"),
    "serve": ("model", "features", "judgments", "judged_features", "token_file", "shadow"),
    "ingest": ("logs", "known", "excluding"),
    "reproduce": ("name", "data"),
    "counterexample": ("name",),
    "demo": (),
    **dict.fromkeys(("store info", "store batches", "store verify", "store export", "store backup"), ("file",)),
    **dict.fromkeys(("store compact", "store remove"), ()),
    "store forget": ("ids",),
    "store day": ("day",),
    "store replace": ("log",),
    "store restore": ("copy",),
}
"""Parameters that name what it reads, and never changes (or, of counterexample and reproduce, what to do)."""


@dataclass
class Case:
    """A command line and the files it meets; ``named`` are names that it may write beside those of its options."""

    arguments: list[str]
    files: dict[str, bytes] = field(default_factory=dict)
    named: set[str] = field(default_factory=set)


# -- what a command line names -----------------------------------------------------------------------------------------
def every_command() -> Iterator[tuple[str, click.Command]]:
    """Yield each command with its name; of a group its own commands, as ``store info``."""
    context = click.Context(cli)
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from ((f"{name} {inner}", one) for inner, one in command.commands.items())
        else:
            yield name, command


def read_and_written(arguments: list[str]) -> tuple[set[str], set[str]]:
    """Return the names that a command line reads, and those it may write, by the parser of the command itself."""
    known = dict(every_command())
    size = next((size for size in (1, 2) if " ".join(arguments[:size]) in known), 0)
    if not size:
        return set(), set()
    name = " ".join(arguments[:size])
    values = known[name].make_context(name, arguments[size:], resilient_parsing=True).params

    def named(parameters: tuple[str, ...]) -> set[str]:
        given = [values.get(parameter) for parameter in parameters]
        flat = [one for value in given for one in (value if isinstance(value, tuple | list) else [value])]
        return {os.path.normpath(one) for one in flat if isinstance(one, str) and one}

    written = named((*WRITES[name], "summary"))
    if name == "store export":
        written |= {str(beside(Path(output))) for output in written if Path(output).name}
    if name == "ingest" or name.split()[-1] in WRITERS:
        written |= {f"{store}{more}" for store in written for more in (".parts", ".lock")}
    return named(READS[name]), written


# -- what is good -----------------------------------------------------------------------------------------------------
@functools.cache
def good_files() -> dict[str, bytes]:
    """Return a small file of every format that holds a log, features, scores or labels."""
    votes = pa.table({"winner": [pair[0] for pair in PAIRS], "loser": [pair[2] for pair in PAIRS]})
    features = pa.table({"item": ["a", "b", "c", "d"], "x": [1.0, 2, 0, 4], "y": [0.5, -1, 3, 0]})
    lines = "".join(json.dumps(row) + "\n" for row in votes.to_pylist())
    made = {name: text.encode() for name, text in TEXTS.items()}
    made |= {"votes.csv": VOTES.encode(), "features.csv": FEATURES.encode(), "votes.jsonl": lines.encode()}
    made |= {"votes.tsv": VOTES.replace(",", "\t").encode(), "votes.json": json.dumps(votes.to_pylist()).encode()}
    made |= {"votes.csv.gz": gzip.compress(VOTES.encode(), mtime=0), "train.svm": LETOR, "train.txt": LETOR}
    made |= {"x.qrels": b"1 0 a 2\n1 0 b 0\n1 0 c 1\n1 0 d 0\n", "x.soc": PREFLIB, "train.txt.gz": gzip.compress(LETOR)}
    made |= {"a.run": b"1 Q0 a 1 .9 a\n1 Q0 b 2 .5 a\n1 Q0 c 3 .1 a\n", "b.run": b"1 Q0 d 1 7 b\n1 Q0 a 2 3 b\n"}
    for name, table in (("votes", votes), ("features", features)):
        for ending, write in (("parquet", pa.parquet.write_table), ("arrow", pa.feather.write_feather)):
            buffer = io.BytesIO()
            write(table, buffer)
            made[f"{name}.{ending}"] = buffer.getvalue()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "votes.duckdb")
        with duckdb.connect(str(path)) as connection:
            connection.execute("CREATE TABLE votes AS SELECT 'a' AS winner, 'b' AS loser")
        made["votes.duckdb"] = path.read_bytes()
    return made


@functools.cache
def good_folder(kind: str) -> dict[str, bytes]:
    """Return the files of a fitted model or of a store, as the commands make them."""
    commands = {
        "model": ["fit", "votes.csv", "-f", "features.csv", "-m", "model", "--loss", "ranknet", "-q"],
        "informed": ["fit", "votes.csv", "-f", "features.csv", "-m", "informed", "-q"],
        "trees": ["fit", "train.txt", "-m", "trees", "-r", "hist-gradient-boosting", "-q"],
        "network": ["fit", "train.txt", "-m", "network", "-r", "network", "-q"],
        "s.store": ["ingest", "votes.csv", "--store", "s.store", "-q"],
    }
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            inputs = ("votes.csv", "features.csv", "train.txt")
            for name in inputs:
                Path(name).write_bytes(good_files()[name])
            assert exit_status(*commands[kind]) == 0
            made = {path.as_posix(): path.read_bytes() for path in sorted(Path().rglob("*")) if path.is_file()}
        finally:
            os.chdir(before)
    return {name: data for name, data in made.items() if name not in inputs}


# -- what is broken ---------------------------------------------------------------------------------------------------
def broken(random: Random, data: bytes) -> bytes:
    """Return bytes that were cut, flipped, repeated, refilled or given a hostile cell; sometimes the same ones."""
    how = random.choice(
        ["same", "cut", "flip", "repeat", "cell", "cell", "cell", "noise", "insert", "deep", "encoding"]
    )
    if how == "noise" or not data:
        return random.randbytes(random.choice([0, 1, 7, 300]))
    at = random.randrange(len(data))
    if how == "cut":
        return data[:at]
    if how == "flip":
        changed = bytearray(data)
        for _ in range(random.choice([1, 2, 20])):
            changed[random.randrange(len(data))] ^= 1 << random.randrange(8)
        return bytes(changed)
    if how == "repeat":
        return data[:at] + data[random.randrange(at + 1) :]
    if how == "insert":
        return data[:at] + random.choice(CELLS).encode("utf-8", "replace") + data[at:]
    if how == "cell":
        return _other_cell(random, data)
    if how == "deep":
        return _deep(random, data)
    if how == "encoding":
        return data.decode("utf-8", "replace").encode(random.choice(["utf-16", "utf-8-sig", "utf-32"]))
    return data


def _other_cell(random: Random, data: bytes) -> bytes:
    """A field between separators becomes a hostile one; JSON gets the value as it is, or as a text."""
    marks = [at for at, byte in enumerate(data) if byte in b',\n\t :"']
    if len(marks) < 2:
        return data
    place = random.randrange(len(marks) - 1)
    cell = random.choice(CELLS).encode()
    return data[: marks[place] + 1] + cell + data[marks[place + 1] :]


def _deep(random: Random, data: bytes) -> bytes:
    """JSON of 10^5 levels, alone or as a value."""
    many = 100_000
    opened, closed = random.choice([(b"[", b"]"), (b'{"a":', b"}")])
    deep = opened * many + (b"1" + closed * many if random.random() < 0.7 else b"")
    return random.choice([deep, b'{"winner":' + deep + b',"loser":"b"}\n', data + deep, data.replace(b'"a"', deep, 1)])


def broken_model(random: Random, kind: str) -> dict[str, bytes]:
    """Return a model with broken files; often with hashes that fit them, as someone who means harm would write them."""
    files = dict(good_folder(kind))
    name = random.choice(sorted(files))
    if random.random() < 0.6 and name.endswith(".json"):
        files[name] = broken_json(random, files[name])
    else:
        files[name] = broken(random, files[name])
    if random.random() < 0.2:
        files.pop(random.choice(sorted(files)))
    return sealed(files, kind) if random.random() < 0.75 else files


def sealed(files: dict[str, bytes], kind: str) -> dict[str, bytes]:
    """Return the files of a model with a list of hashes that fits them."""
    own = {
        name.split("/")[1]: hashlib.sha256(data).hexdigest()
        for name, data in sorted(files.items())
        if not name.endswith("hashes.json")
    }
    sign = hashlib.sha256(json.dumps(own).encode()).hexdigest()
    return files | {f"{kind}/hashes.json": (json.dumps({"files": own, "of this list": sign}, indent=1) + "\n").encode()}


def broken_json(random: Random, data: bytes) -> bytes:
    """Return a document with one value, anywhere in it, that is missing or of another type."""
    document = json.loads(data)
    others = [None, True, -1, 0, 10**30, 1e308, float("nan"), "x", "", [], {}, [[]], {"a": 1}, [1, "x"], ["a", "b"]]
    at, steps = document, random.randrange(1, 7)
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        if not keys:
            break
        key, steps = random.choice(keys), steps - 1
        if steps and isinstance(at[key], dict | list) and at[key]:
            at = at[key]
            continue
        if isinstance(at, dict) and random.random() < 0.3:
            del at[key]
        else:
            at[key] = random.choice(others)
        break
    return json.dumps(document).encode()


# -- command lines ----------------------------------------------------------------------------------------------------
LOGS = ["votes.csv", "votes.tsv", "votes.jsonl", "votes.json", "votes.csv.gz", "votes.parquet", "votes.arrow", "x.soc"]
LOGS += ["train.svm", "train.txt", "x.qrels", "sides.csv", "scored.csv", "clicks.csv", "orders.csv", "ratings.csv"]
LOGS += ["weights.csv", "votes.duckdb", "a.run"]
TABLES = [
    "features.csv",
    "features.csv",
    "features.parquet",
    "features.arrow",
    "train.txt",
    "train.txt.gz",
    "scores.csv",
]


def draw_case(random: Random, command: str) -> Case:
    """Draw a case of one command."""
    case = Case(command.split())
    PARTS[command.split()[0]](random, case)
    known = list((_by_type(command) | OPTIONS[command]).items())
    for _ in range(random.choice([0, 0, 1, 1, 2, 4])):
        name, values = random.choice(known)
        if name in case.arguments and random.random() < 0.9:  # twice is refused
            continue
        case.arguments += [name, random.choice(values)] if values else [name]
    if random.random() < 0.02:
        case.arguments.append(random.choice(["--no-such", "extra", "", "-", "--output", "-o"]))
    return case


@functools.cache
def _by_type(command: str) -> dict[str, list[str]]:
    """Return values for every option of a command, by its type; not for those that name files."""
    found = {}
    named = {*WRITES.get(command, ()), *READS.get(command, ()), "master", "engine", "summary", "exit_status"}
    for one in dict(every_command())[command].params:
        if isinstance(one, click.Option) and not one.is_eager and one.name not in named:
            kind = one.type.name
            choices = [*one.type.choices, "x"] if isinstance(one.type, click.Choice) else None
            values = INTS if kind.startswith("integer") else FLOATS if kind.startswith("float") else VALUES + COLUMNS
            found[max(one.opts, key=len)] = FLAG if one.is_flag else choices or values
    return found


def _log(random: Random, case: Case, names: list[str] = LOGS) -> str:
    """Add a log, mostly broken, to the case: a file, a folder of files, a store, or nothing under its name."""
    how = random.random()
    if how < 0.06 and names is LOGS:
        case.files |= _broken_one(random, good_folder("s.store"))
        return "s.store"
    if how < 0.1:
        return random.choice(["nothing.csv", "", "-", ".", "..", "x" * 300, "a::b", "votes.xlsx"])
    name = random.choice(names)
    data = good_files()[name] if random.random() < 0.25 else broken(random, good_files()[name])
    if how < 0.14:
        case.files |= {f"folder/{name}": data, f"folder/b-{name}": good_files()[name]}
        return "folder"
    if how < 0.2:  # what the ending says is not what the file is
        other = random.choice(names)
        case.files[other] = data
        return other
    case.files[name] = data
    return f"{name}::votes" if name.endswith(".duckdb") and random.random() < 0.9 else name


def _broken_one(random: Random, files: dict[str, bytes]) -> dict[str, bytes]:
    name = random.choice(sorted(files))
    return files | {name: broken(random, files[name])} if random.random() < 0.8 else files


def _output(random: Random, case: Case, option: str = "--output") -> None:
    if random.random() < 0.6:
        name = random.choice(["out", "out", "out", "out", "out", "no/such/out"]) + "." + random.choice(ENDINGS)
        if random.random() < 0.05:
            name = random.choice([*case.files, "", ".", "a\nb.csv", "x" * 300 + ".csv"])
        case.arguments += [option, name]


def _rank(random: Random, case: Case) -> None:
    case.arguments.append(_log(random, case))
    if random.random() < 0.1:
        case.arguments.append(_log(random, case, ["a.run", "b.run", "votes.csv"]))
    _output(random, case)


def _compare(random: Random, case: Case) -> None:
    _rank(random, case)
    if random.random() < 0.5:
        case.arguments += ["--pair", random.choice(["a", "b", "A", "1", *CELLS]), random.choice(["b", "c", "2", "a"])]
    elif random.random() < 0.3:
        case.arguments += ["--by", random.choice(COLUMNS), "--since", random.choice(["b", "2", "2026-01-02", ""])]
        case.arguments += random.choice([[], ["--fail-if-worse", "a"], ["--shared", "common"], ["--shared", "x"]])


def _tree(random: Random, case: Case) -> None:
    _rank(random, case)
    case.arguments += ["--by", random.choice(COLUMNS), "--min-judgments", random.choice(["1", "2", "5"])]
    if random.random() < 0.3:
        case.arguments += ["--picture", random.choice(["tree.svg", "tree.png", "no/such/tree.svg", "votes.csv", ""])]


def _judges(random: Random, case: Case) -> None:
    _rank(random, case)
    case.arguments += ["--judge", random.choice(["worker", *COLUMNS])] if random.random() < 0.6 else []
    case.arguments += ["--model-judge", _log(random, case)] if random.random() < 0.4 else []


def _axioms(random: Random, case: Case) -> None:
    _rank(random, case)
    case.arguments += [_log(random, case, TABLES) if random.random() < 0.7 else "model", "--refits", "1"]
    case.arguments += ["--features", _log(random, case, TABLES)] if random.random() < 0.5 else []


def _camps(random: Random, case: Case) -> None:
    _rank(random, case)
    case.arguments += ["--judge", random.choice(["worker", *COLUMNS])] if random.random() < 0.6 else []
    case.arguments += ["--features", _log(random, case, TABLES)] if random.random() < 0.3 else []
    case.arguments += ["--most", "2", "--starts", "1", "--folds", "2"]


def _audit(random: Random, case: Case) -> None:
    _rank(random, case)
    if random.random() < 0.2:
        _output(random, case, "--edges")
    case.arguments += ["--replicates", "20"]
    if random.random() < 0.2:
        case.arguments += ["--fragility", *random.choice([[], ["--pair", "a", "b"], ["--pool"]])]


def _explain(random: Random, case: Case) -> None:
    _rank(random, case)
    if random.random() < 0.95:
        case.arguments += ["--features", _log(random, case, TABLES)]


def _fit(random: Random, case: Case) -> None:
    case.arguments.append(_log(random, case))
    if random.random() < 0.8:
        case.arguments += ["--features", _log(random, case, TABLES)]
    case.arguments += ["--model", random.choice(["out", "out", "out", "no/such/out", "folder", "votes.csv", ""])]


def _with_model(random: Random, case: Case) -> None:
    kind = random.choice(["model", "model", "trees", "network"])
    case.files |= good_folder(kind) if random.random() < 0.3 else broken_model(random, kind)
    case.arguments += ["--model", kind]


def _score(random: Random, case: Case) -> None:
    _with_model(random, case)
    case.arguments += ["--features", _log(random, case, TABLES)]
    if random.random() < 0.2:
        case.arguments += ["--judgments", _log(random, case)]
    if random.random() < 0.2:
        case.arguments += ["--judged-features", _log(random, case, TABLES)]
    _output(random, case)


def _scores(random: Random, case: Case) -> None:
    if random.random() < 0.6:
        cells = [f"s{a},t{b},{(7 * a + 3 * b) % 5},{1 + b % 2},{b // 3}" for a in range(4) for b in range(8)]
        wide = [f"s{a}," + ",".join(str((7 * a + 3 * b) % 5) for b in range(8)) for a in range(4)]
        long = random.random() < 0.5
        head = "system,task,score,weight,x" if long else ",".join(["model", *(f"t{b}" for b in range(8))])
        case.files["systems.csv"] = "\n".join([head, *(cells if long else wide), ""]).encode()
        if random.random() < 0.7:
            case.files["systems.csv"] = broken(random, case.files["systems.csv"])
        case.arguments.append("systems.csv")
    else:
        case.arguments.append(_log(random, case, ["scores.csv", *TABLES, "votes.csv", "votes.json"]))
    _output(random, case)
    for option in ("--pairs", "--averages"):
        if random.random() < 0.3:
            _output(random, case, option)
    if random.random() < 0.3:
        case.arguments += ["--plot", random.choice(["p.svg", "p.png", "no/such/p.svg", "votes.csv", ""])]


def _evaluate(random: Random, case: Case) -> None:
    if random.random() < 0.2:
        case.arguments += [_log(random, case), "--split", random.choice(["random", "random", "cluster", "time"])]
        return
    case.arguments += [_log(random, case, ["scores.csv", "scores.csv", *TABLES])]
    case.arguments += [_log(random, case, ["labels.csv", "labels.csv", "x.qrels", "train.txt", "votes.json"])]
    if random.random() < 0.2:
        case.arguments += ["--against", _log(random, case, ["scores.csv", "labels.csv"])]


def _counterexample(random: Random, case: Case) -> None:
    case.arguments.append(random.choice([*LOSSES, "theorem-2", "theorem-3", "orderings"]))
    case.arguments += ["--budget", "30"]
    if random.random() < 0.4:
        case.files["votes.csv"] = b""
        case.arguments += ["--output", random.choice(["out", "votes.csv", "no/such/out", "", "\x1b[1m"])]


def _ingest(random: Random, case: Case) -> None:
    case.arguments += [_log(random, case) for _ in range(random.choice([1, 1, 1, 2]))]
    store = random.choice(["out.store", "s.store", "no/such/out.store", "votes.csv", "folder", ""])
    if store == "s.store" and "s.store" not in case.files:
        case.files |= _broken_one(random, good_folder("s.store"))
    case.arguments += ["--store", store]


def _store(random: Random, case: Case) -> None:
    case.files |= _broken_one(random, good_folder("s.store"))
    case.arguments.append(random.choice(["s.store", "s.store", "s.store", _log(random, case)]))
    command = case.arguments[1]
    if command == "export":
        case.arguments += ["--output", random.choice(["out", "s"]) + "." + random.choice(ENDINGS)]
    elif command in ("info", "batches"):
        _output(random, case)
    elif command == "day":
        case.arguments.append(random.choice(DAYS))
    elif command in ("replace", "backup", "restore"):
        other = [_log(random, case)] if command == "replace" else ["copy.store", "s.store", "no/such/x", "folder", ""]
        case.arguments.append(random.choice(other))


def _reproduce(random: Random, case: Case) -> None:
    data = {
        "data/u.data": b"1\t1\t5\t0\n1\t2\t3\t0\n2\t1\t4\t0\n",
        "data/u.item": b"1|Toy Story (1995)|01-Jan-1995||x|0|0|0|1|1|1|0|0|0|0|0|0|0|0|0|0|0|0|0\n",
        "data/S1.txt": LETOR,
        "data/mslr_merged_by_query.svm.gz": gzip.compress(LETOR),
        "data/data_batch_1.bin": bytes(3073 * 2),
        "data/test_batch.bin": bytes(3073),
    }
    for name in random.sample(sorted(data), 3):
        case.files[name] = broken(random, data[name])
    case.arguments.append(random.choice(["table1", "fig2", "fig3", "fig4", "images", "x", ""]))
    case.arguments += [
        "--quick",
        "--data",
        random.choice(["data", "data", "nothing", "", "\x1b[1m"]),
        "--output",
        "out",
    ]


def _demo(random: Random, case: Case) -> None:
    case.files["votes.csv"] = b""
    case.arguments += ["--output", random.choice(["votes.csv", "x" * 300, "votes.csv/x"])]


def _report(random: Random, case: Case) -> None:
    case.arguments.append(_log(random, case))
    if random.random() < 0.3:
        case.arguments += ["--features", _log(random, case, TABLES)]
    if random.random() < 0.3:
        _with_model(random, case)
    if random.random() < 0.3:
        case.arguments += ["--scores", _log(random, case, TABLES)]
    case.arguments += ["--output", random.choice(["out.html", "out.html", "out.csv", "no/such/out.html", "votes.csv"])]


def _export(random: Random, case: Case) -> None:
    _with_model(random, case)
    case.arguments += ["--to", random.choice(["onnx", "elasticsearch", "opensearch", "solr", "json"])]
    case.arguments += ["--output", random.choice(["out", "out.json", "out.onnx", "no/such/out", "model", "votes.csv"])]
    if random.random() < 0.3:
        case.arguments += ["--card", random.choice(["out.md", "out", "model", "no/such/out.md", "votes.csv"])]
        if random.random() < 0.5:
            case.arguments += ["--log", _log(random, case), "--features", _log(random, case, TABLES)]


def _doctor(random: Random, case: Case) -> None:
    case.arguments.append(_log(random, case, random.choice([LOGS, TABLES])))
    _output(random, case)


PARTS: dict[str, Callable[[Random, Case], None]] = {
    "doctor": _doctor,
    "rank": _rank,
    "compare": _compare,
    "explain": _explain,
    "tree": _tree,
    "look": _rank,
    "pairs": _rank,
    "judges": _judges,
    "axioms": _axioms,
    "camps": _camps,
    "fit": _fit,
    "score": _score,
    "scores": _scores,
    "evaluate": _evaluate,
    "audit": _audit,
    "counterexample": _counterexample,
    "ingest": _ingest,
    "store": _store,
    "reproduce": _reproduce,
    "demo": _demo,
    "report": _report,
    "export": _export,
}
