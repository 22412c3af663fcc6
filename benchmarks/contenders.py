"""What is timed: each contender loads its best input, then works. ``running.contend`` gives it a process of its own.

Loading and imports are not timed; everything from the loaded input to the answer is. Peers get the input that suits
them best and their default (loosest) tolerances.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Work = Callable[[], Any]
Answer = Callable[[Any], dict[str, Any]]
Contender = Callable[[dict[str, Any]], tuple[Work, Answer]]

REGISTRY: dict[str, Contender] = {}


def contender(function: Contender) -> Contender:
    """Register a function that loads an input and returns (the work, what its result says)."""
    REGISTRY[function.__name__] = function
    return function


def _table(case: dict[str, Any], *columns: str) -> Any:
    import pyarrow.feather as feather

    return feather.read_table(case["path"], columns=list(columns), memory_map=False)


def _scores(names: Any, values: Any) -> dict[str, Any]:
    import numpy as np

    names = np.asarray(names, dtype=object)
    values = np.asarray(values, float)
    return {"names": [str(name) for name in names], "scores": [float(x) for x in values]}


# -- ours ------------------------------------------------------------------------------------------------------------
@contender
def concordant(case: dict[str, Any]) -> tuple[Work, Answer]:
    """``cc.read`` and ``cc.rank`` from a table in memory: frame is arrow, pandas or object."""
    import concordant as cc
    import concordant.ranking.rank  # so that no import is timed

    frame = _table(case, *case["columns"])
    read = dict(case.get("read", {}))
    if case["frame"] != "arrow":
        frame = frame.to_pandas()
        if case["frame"] == "object":
            frame = frame.astype(object)

    def work() -> Any:
        return cc.rank(cc.read(frame, **read), **case["rank"])

    def answer(board: Any) -> dict[str, Any]:
        table = board.to_arrow()
        if not case.get("scores"):
            return {"rows": len(table)}
        return _scores(table["item"].to_pylist(), table["score"].to_numpy()) | {"rows": len(table)}

    return work, answer


@contender
def concordant_file(case: dict[str, Any]) -> tuple[Work, Answer]:
    """``cc.read`` of a file and ``cc.rank``."""
    import concordant as cc
    import concordant.ranking.rank

    def work() -> Any:
        return cc.rank(cc.read(case["path"], **case.get("read", {})), **case["rank"])

    return work, lambda board: {"rows": len(board.to_arrow())}


# -- peers -----------------------------------------------------------------------------------------------------------
@contender
def evalica(case: dict[str, Any]) -> tuple[Work, Answer]:
    """evalica's compiled solver, point estimate, from lists of labels (or from arrays of codes, if these are known)."""
    import numpy as np
    from evalica import Winner, bradley_terry

    table = _table(case, "winner", "loser")
    xs, ys = table["winner"].to_pylist(), table["loser"].to_pylist()
    winners = [Winner.X] * len(xs)
    if case.get("codes"):
        names = sorted(set(xs) | set(ys))
        code = {name: i for i, name in enumerate(names)}
        xs, ys = np.array([code[x] for x in xs]), np.array([code[y] for y in ys])
        return (
            lambda: bradley_terry(xs, ys, winners, solver="pyo3"),
            lambda result: _scores([names[i] for i in result.scores.index], np.log(result.scores.to_numpy())),
        )
    return (
        lambda: bradley_terry(xs, ys, winners, solver="pyo3"),
        lambda result: _scores(result.scores.index, np.log(result.scores.to_numpy())),
    )


@contender
def evalica_bootstrap(case: dict[str, Any]) -> tuple[Work, Answer]:
    """evalica's bootstrap (percentile: BCa needs a jackknife of every row), of as many replicates as the case says."""
    from evalica import Winner, bootstrap, bradley_terry

    table = _table(case, "winner", "loser")
    xs, ys = table["winner"].to_pylist(), table["loser"].to_pylist()
    winners = [Winner.X] * len(xs)

    def work() -> Any:
        return bootstrap(
            bradley_terry, xs, ys, winners, n_resamples=case["resamples"], bootstrap_method="percentile", random_state=1
        )

    return work, lambda result: {"rows": len(result.low)}


@contender
def choix_rankings(case: dict[str, Any]) -> tuple[Work, Answer]:
    """choix's I-LSR for rankings, again and again on rankings drawn with replacement."""
    import choix as peer
    import numpy as np

    table = _table(case, "judgment", "item")
    items = np.asarray(table["item"])
    lists = items.reshape(-1, case["shown"])

    def work() -> Any:
        rng = np.random.default_rng(1)
        draws = (lists[rng.integers(0, len(lists), len(lists))].tolist() for _ in range(case["resamples"]))
        return [peer.ilsr_rankings(int(items.max()) + 1, drawn, tol=1e-8) for drawn in draws]

    return work, lambda result: {"rows": len(result)}


@contender
def choix(case: dict[str, Any]) -> tuple[Work, Answer]:
    """choix's fastest maximum likelihood, I-LSR, from a list of pairs of integers."""
    import choix as peer

    table = _table(case, "winner", "loser")
    names = sorted(set(table["winner"].to_pylist()) | set(table["loser"].to_pylist()))
    code = {name: i for i, name in enumerate(names)}
    pairs = [(code[w], code[x]) for w, x in zip(table["winner"].to_pylist(), table["loser"].to_pylist(), strict=True)]
    return lambda: peer.ilsr_pairwise(len(names), pairs), lambda scores: _scores(names, scores)


@contender
def arena_rank(case: dict[str, Any]) -> tuple[Work, Answer]:
    """arena-rank's preparation, fit and sandwich intervals from a pandas frame.

    Columns of categories make its preparation fastest. Its first run also compiles; the best of several does not
    count that.
    """
    import pandas as pd
    from arena_rank.models.bradley_terry import BradleyTerry
    from arena_rank.utils.data_utils import PairDataset

    frame = _table(case, "model_a", "model_b", "side").to_pandas()
    kind = pd.CategoricalDtype(sorted(set(frame["model_a"]) | set(frame["model_b"])))
    frame = frame.astype({"model_a": kind, "model_b": kind, "side": "category"})

    def work() -> Any:
        data = PairDataset.from_pandas(frame, outcome_col="side")
        model = BradleyTerry(n_competitors=len(data.competitors))
        result = model.compute_ratings_and_cis(data)
        result["scores"] = model.params["ratings"].block_until_ready()
        for name in ("rating_lower", "rating_upper"):
            result[name].block_until_ready()
        return result

    return work, lambda result: _scores(result["competitors"], result["scores"])


@contender
def duckdb_group_by(case: dict[str, Any]) -> tuple[Work, Answer]:
    """DuckDB's own GROUP BY of a Parquet file, the counts only summed, never fetched."""
    import duckdb

    session = duckdb.connect()
    for name, value in case.get("settings", {}).items():
        session.execute(f"SET {name} = '{value}'")
    query = (
        "SELECT count(*), sum(n) FROM "
        f"(SELECT query, winner, loser, count(*) AS n FROM read_parquet('{case['path']}') GROUP BY ALL)"
    )
    return lambda: session.execute(query).fetchone(), lambda row: {"counts": int(row[0]), "rows": int(row[1])}
