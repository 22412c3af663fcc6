"""What a reader keeps of a large store: the same bits as the whole, in every history, damaged or not."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import concordant as cc
from concordant.io.ingest import Store
from concordant.io.read import read_log
from concordant.io.store import stored, summed
from concordant.io.store.catalogue import parts_folder
from concordant.io.store.segments import fingerprint
from running import exit_status
from store_faults import kept_database


@pytest.fixture(scope="module", autouse=True)
def _kept_database() -> Iterator[None]:
    with kept_database():
        yield


@pytest.fixture(autouse=True)
def _small_ones_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summed, "LARGE", 1)


@pytest.fixture(name="store")
def _store(tmp_path: Path) -> Store:
    return Store(tmp_path / "votes.store")


def votes(draw: random.Random, *, texts: bool = True, weighted: bool = False) -> pa.Table:
    """Votes of a few people, some of them ties."""
    rows = draw.randrange(1, 60)
    items = [draw.sample(range(draw.choice([3, 9])), 2) for _ in range(rows)]
    name: Any = (lambda item: f"item {item}") if texts else int
    columns: dict[str, Any] = {
        "prompt": [f"p{draw.randrange(3)}" for _ in range(rows)],
        "model_a": [name(one) for one, _ in items],
        "model_b": [name(other) for _, other in items],
        "winner": [draw.choice(["model_a", "model_b", "model_b", "tie"]) for _ in range(rows)],
        "judge": [draw.randrange(7) for _ in range(rows)],
    }
    return pa.table(columns | ({"weight": [draw.choice([1.0, 2.0]) for _ in range(rows)]} if weighted else {}))


def sums(store: Store) -> list[Path]:
    return sorted(path for path in parts_folder(store.path).iterdir() if summed.KEPT.fullmatch(path.name))


def _without_people(prefs: Any) -> Any:
    """The same judgments, counted anew from their labels."""
    names = {"winner": prefs.items.take(prefs.winner), "loser": prefs.items.take(prefs.loser)}
    query = prefs.queries.take(prefs.query)
    return cc.Preferences.from_comparisons(*names.values(), query, prefs.weight, tie=prefs.tie, count=prefs.count)


def same(store: Store) -> None:
    """Read with what was kept, and by DuckDB without it."""
    kept, whole = cc.read(store.path), cc.read(store.path, engine="duckdb")
    assert kept == whole and fingerprint(kept) == fingerprint(whole)
    assert all(getattr(kept, name).dtype == getattr(whole, name).dtype for name in ("winner", "cluster", "count"))
    before = sums(store)
    for engine in (None, "duckdb"):  # scores alone need nobody's name
        alone = read_log(store.path, clustered=False, engine=engine).preferences
        assert alone.clusters is None and alone == _without_people(whole)
    assert sums(store) == before  # a sum without people is not kept


@pytest.mark.parametrize("seed", range(3))
def test_any_history_has_the_bits_of_the_whole(store: Store, tmp_path: Path, seed: int) -> None:
    """Days come, are replaced and removed, people are forgotten, segments merged; readers keep what they add up."""
    draw, days, used = random.Random(seed), list[str](), 0
    for step in range(9):
        day = f"2026-01-{step + 1:02d}"
        path = tmp_path / f"{day}.parquet"
        pa.parquet.write_table(votes(draw, texts=seed % 2 == 0), path)
        what = (
            draw.choice(["ingest", "ingest", "replace", "remove", "forget", "compact"]) if len(days) > 1 else "ingest"
        )
        if what == "ingest":
            store.ingest(path, cluster="judge", columns={"query": "prompt"}, day=day)
            days.append(day)
        elif what == "replace":
            store.replace(path, day=draw.choice(days))
        elif what == "remove":
            store.remove(day=days.pop(draw.randrange(len(days))))
        elif what == "forget":
            if (left := cc.read(store.path)).clusters:
                store.forget(draw.choice(left.clusters.tolist()))
        else:
            store.compact()
        if draw.random() < 0.7:
            same(store)
            used += bool(sums(store))
    assert store.verify().leftovers == ()
    same(store)
    assert used


def _two_days(store: Store, tmp_path: Path, **kind: Any) -> None:
    for number in range(2):
        path = tmp_path / f"{number}.parquet"
        pa.parquet.write_table(votes(random.Random(number), **kind), path)
        store.ingest(path, cluster="judge", columns={"query": "prompt"})


def test_what_is_damaged_is_not_read(store: Store, tmp_path: Path) -> None:
    _two_days(store, tmp_path)
    same(store)
    (path,) = sums(store)
    whole = path.read_bytes()
    for at in (0, 9, len(whole) // 3, len(whole) // 2, len(whole) - 40, len(whole) - 1):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        same(store)
    for cut in (b"", whole[:20], whole[: len(whole) // 2], whole[:-1]):
        path.write_bytes(cut)
        same(store)
    path.unlink()
    path.symlink_to(os.devnull)
    same(store)
    assert store.verify().leftovers == ()


def test_who_is_forgotten_is_in_no_sum(store: Store, tmp_path: Path) -> None:
    _two_days(store, tmp_path)
    same(store)
    assert sums(store)
    person = cc.read(store.path).clusters.tolist()[0]
    store.forget(person)
    assert not sums(store)
    same(store)


def test_a_sum_outlives_the_next_day_and_is_made_anew_where_much_is_new(store: Store, tmp_path: Path) -> None:
    _two_days(store, tmp_path)
    same(store)
    before = sums(store)
    path = tmp_path / "late.parquet"
    pa.parquet.write_table(votes(random.Random(7)), path)
    store.ingest(path, cluster="judge", columns={"query": "prompt"})
    assert sums(store) == before
    same(store)
    assert len(sums(store)) == 1 and sums(store) != before


def test_weights_are_added_up_by_the_engine_and_nothing_is_kept(store: Store, tmp_path: Path) -> None:
    _two_days(store, tmp_path, weighted=True)
    same(store)
    assert not sums(store)


def test_items_that_nobody_judged_are_known(store: Store) -> None:
    known = cc.Preferences.from_comparisons(["a", "b"], ["b", "c"], query=["p", "q"], cluster=[1, 2])
    store.ingest(known)
    store.ingest(known.folds(2)[0])  # declares what its half has not
    same(store)


def test_windows_read_what_is_theirs(store: Store, tmp_path: Path) -> None:
    for number in range(3):
        path = tmp_path / f"{number}.parquet"
        pa.parquet.write_table(votes(random.Random(number)), path)
        store.ingest(path, cluster="judge", columns={"query": "prompt"}, day=f"2026-01-0{number + 1}")
    same(store)
    part = {"as_of": "2026-01-02"}
    assert cc.read(store.path, **part) == cc.read(store.path, engine="duckdb", **part)
    assert cc.read(store.path) == cc.read(store.path, engine="duckdb")


def test_counts_beyond_32_bits(store: Store) -> None:
    many = cc.Preferences.from_comparisons(["a", "b"], ["b", "a"], cluster=[1, 1], count=[1 << 40, 3])
    store.ingest(many)
    store.ingest(cc.Preferences.from_comparisons(["a", "c"], ["b", "a"], cluster=[1, 1]))
    same(store)
    same(store)
    assert cc.read(store.path).count.max() == (1 << 40) + 1
    assert np.array_equal(cc.rank(cc.read(store.path)).score, cc.rank(cc.read(store.path, engine="duckdb")).score)


@pytest.mark.parametrize("more", [[], ["--min-judgments", "5"]], ids=str)
def test_scores_alone_do_without_the_people(store: Store, tmp_path: Path, monkeypatch: Any, more: list[str]) -> None:
    """Quietly and without intervals nothing depends on who judged: the same bytes, and no cluster is read."""
    _two_days(store, tmp_path)
    asked, output = ["rank", store.path, "--interval", "none", *more], ["-o", tmp_path / "ranking.csv"]
    assert exit_status(*asked, *output) == 0
    said = (tmp_path / "ranking.csv").read_bytes()
    asked_for: list[bool] = []
    read = stored.merged
    monkeypatch.setattr(stored, "merged", lambda *given: [asked_for.append(given[-1]), read(*given)][1])
    assert exit_status(*asked, *output, "-q") == 0
    assert (tmp_path / "ranking.csv").read_bytes() == said
    for other in (["--summary", tmp_path / "run.json", *output], ["-o", tmp_path / "ranking.parquet"]):
        assert exit_status(*asked, "-q", *other) == 0
    assert exit_status(*asked, *output) == 0 == exit_status("rank", store.path, "-q", *output)
    assert asked_for == [False, True, True, True, True]
