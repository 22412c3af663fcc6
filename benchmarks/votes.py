"""Logs drawn from a Bradley–Terry model, written once and read by every contender."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.feather as feather
import pyarrow.parquet as pq

SPREAD = 0.5  # standard deviation of the log-abilities: every item wins and loses, so the maximum likelihood exists


def draw(rng: np.random.Generator, ability: np.ndarray, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (winner, loser) of comparisons of uniform pairs."""
    items = len(ability)
    a = rng.integers(0, items, rows, dtype=np.int32)
    b = (a + rng.integers(1, items, rows, dtype=np.int32)) % items
    a_wins = rng.random(rows) < 1 / (1 + np.exp(ability[b] - ability[a]))
    return np.where(a_wins, a, b), np.where(a_wins, b, a)


def write_votes(path: Path, rows: int, items: int, *, texts: bool, seed: int = 1) -> Path:
    """Write winner, loser and the same votes as model_a, model_b, winner_side (sides at random)."""
    if path.exists():
        return path
    rng = np.random.default_rng(seed)
    winner, loser = draw(rng, rng.normal(0, SPREAD, items), rows)
    columns = {"winner": winner, "loser": loser}
    if texts:
        a_won = rng.random(rows) < 0.5
        columns |= {"model_a": np.where(a_won, winner, loser), "model_b": np.where(a_won, loser, winner)}
        names = pa.array([f"model-{i:06d}" for i in range(items)], pa.string())
        table = pa.table({name: pc.take(names, pa.array(codes)) for name, codes in columns.items()})
        side = np.where(a_won, "model_a", "model_b")
        table = table.append_column("side", pa.array(side, pa.string()))
    else:
        table = pa.table({name: pa.array(codes.astype(np.int64)) for name, codes in columns.items()})
    feather.write_feather(table, path, compression="uncompressed")
    return path


def write_queries(
    path: Path, rows: int, queries: int, items: int, *, seed: int = 1, first: float = 0.0, people: int = 0,
    length: float = 0.0, grades: int = 0,
) -> Path:  # fmt: skip
    """Stream a Parquet log of integer ids (query, winner, loser), block by block in bounded memory.

    A share ``first`` of the rows is moved to query 0. ``people``: how many made them, a column more. ``length``: the
    coefficient of a covariate (winner less loser, four digits), a column more, where it is not 0. ``grades``: how many
    of clearness there are, a column more.
    """
    if path.exists():
        return path
    rng = np.random.default_rng(seed)
    ability = rng.normal(0, SPREAD, (queries, items)).astype(np.float32)
    schema = pa.schema([("query", pa.int32()), ("winner", pa.int32()), ("loser", pa.int32())])
    who = np.random.default_rng(seed + 1)
    if people:
        schema = schema.append(pa.field("person", pa.int32()))
    if length:
        schema = schema.append(pa.field("length", pa.float64()))
    if grades:
        schema = schema.append(pa.field("weight", pa.int8()))
    partial = path.with_suffix(".part")
    with pq.ParquetWriter(partial, schema, compression="zstd") as out:
        for begin in range(0, rows, 2_000_000):
            n = min(2_000_000, rows - begin)
            query = rng.integers(0, queries, n, dtype=np.int32)
            if first:
                query[rng.random(n) < first] = 0
            a = rng.integers(0, items, n, dtype=np.int32)
            b = (a + rng.integers(1, items, n, dtype=np.int32)) % items
            z = who.normal(size=n).round(4) if length else np.zeros(0)
            lead = length * z if length else np.float32(0.0)
            a_wins = rng.random(n, np.float32) < 1 / (1 + np.exp(ability[query, b] - ability[query, a] - lead))
            winner, loser = np.where(a_wins, a, b), np.where(a_wins, b, a)
            person = [who.integers(0, people, n, dtype=np.int32)] if people else []
            longer = [np.where(a_wins, z, -z)] if length else []
            clear = [who.integers(1, grades + 1, n, dtype=np.int8)] if grades else []
            out.write_table(pa.table([query, winner, loser, *person, *longer, *clear], schema=schema))
    partial.rename(path)
    return path


def write_features(path: Path, queries: int, items: int, width: int = 10, *, seed: int = 1) -> Path:
    """Write query, item and features of the items of ``write_queries``: their abilities in much noise."""
    if path.exists():
        return path
    rng = np.random.default_rng(seed)
    ability = rng.normal(0, SPREAD, (queries, items)).ravel()
    columns = {"query": np.repeat(np.arange(queries), items), "item": np.tile(np.arange(items), queries)}
    for place in range(width):
        columns[f"x{place}"] = ability * rng.normal() + rng.normal(size=len(ability))
    pq.write_table(pa.table(columns), path)
    return path


def write_scattered(path: Path, rows: int, queries: int, *, items: int = 50, seed: int = 3) -> Path:
    """Write a Parquet log of scattered 64-bit ids: queries of so many items of 10^7, whose judgments hardly repeat."""
    if path.exists():
        return path
    rng = np.random.default_rng(seed)
    labels, catalogue = rng.integers(0, 2**62, queries), rng.integers(0, 2**62, 10**7)
    item = (rng.integers(0, len(catalogue), (queries, 1)) + 200_003 * np.arange(items)) % len(catalogue)
    ability = rng.normal(0, SPREAD, (queries, items)).astype(np.float32)
    schema = pa.schema([("query", pa.int64()), ("winner", pa.int64()), ("loser", pa.int64())])
    partial = path.with_suffix(".part")
    with pq.ParquetWriter(partial, schema, compression="zstd") as out:
        for begin in range(0, rows, 2_000_000):
            n = min(2_000_000, rows - begin)
            query, a = rng.integers(0, queries, n), rng.integers(0, items, n)
            b = (a + rng.integers(1, items, n)) % items
            a_wins = rng.random(n, np.float32) < 1 / (1 + np.exp(ability[query, b] - ability[query, a]))
            first, second = catalogue[item[query, a]], catalogue[item[query, b]]
            columns = [labels[query], np.where(a_wins, first, second), np.where(a_wins, second, first)]
            out.write_table(pa.table(columns, schema=schema))
    partial.rename(path)
    return path


def write_rankings(path: Path, rankings: int, items: int, shown: int, seed: int = 1) -> Path:
    """Write judgment, item and rank of Plackett–Luce rankings of some of the items."""
    if path.exists():
        return path
    rng = np.random.default_rng(seed)
    ability = rng.normal(0, 1, items)
    chosen = rng.random((rankings, items)).argsort(axis=1)[:, :shown]
    order = np.argsort(-(ability[chosen] + rng.gumbel(size=chosen.shape)), axis=1)
    table = pa.table(
        {
            "judgment": np.repeat(np.arange(rankings), shown),
            "item": np.take_along_axis(chosen, order, axis=1).ravel(),
            "rank": np.tile(np.arange(1, shown + 1), rankings),
        }
    )
    feather.write_feather(table, str(path), compression="uncompressed")
    return path


def write_orders(path: Path, number: int, items: int, shown: int, *, seed: int = 1, tiers: int = 99) -> Path:
    """Stream a Parquet log of Plackett–Luce rankings, as ``write_rankings`` draws them, in bounded memory.

    The last of them share a place where there are more than ``tiers``.
    """
    if path.exists():
        return path
    rng = np.random.default_rng(seed)
    ability = rng.normal(0, 1, items)
    schema = pa.schema([("judgment", pa.int64()), ("item", pa.int32()), ("rank", pa.int8())])
    partial = path.with_suffix(".part")
    with pq.ParquetWriter(partial, schema, compression="zstd") as out:
        for begin in range(0, number, 400_000):
            n = min(400_000, number - begin)
            chosen = rng.integers(0, items, (n, shown), np.int32)
            while (twice := np.flatnonzero((np.diff(np.sort(chosen, axis=1), axis=1) == 0).any(axis=1))).size:
                chosen[twice] = rng.integers(0, items, (len(twice), shown), np.int32)
            order = np.argsort(-(ability[chosen] + rng.gumbel(size=chosen.shape)), axis=1)
            item = np.take_along_axis(chosen, order, axis=1).ravel()
            judgment, rank = np.repeat(np.arange(begin, begin + n), shown), np.tile(np.arange(1, shown + 1), n)
            rank = np.minimum(rank, tiers).astype(np.int8)
            out.write_table(pa.table([judgment, item, rank], schema=schema))
    partial.rename(path)
    return path
