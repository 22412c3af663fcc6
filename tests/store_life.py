"""The life of a store under kills: days that come late, doubled, corrected, removed; people who are forgotten.

``python tests/store_life.py --days 30 --rows 333334 --people 20000 --kills 100`` runs it at that size and prints what
was done. After every step, killed or not, the counts are those of a sum that knows nothing of the package: NumPy over
the votes as they were drawn.
"""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

import concordant as cc
from concordant.io.ingest import Store
from store_faults import Action, Worker, kept_database

ITEMS = 200
Keys = NDArray[np.int64]


@dataclass
class Votes:
    """Votes of a day, drawn: three columns of integers."""

    winner: Keys
    loser: Keys
    worker: Keys

    @classmethod
    def drawn(cls, seed: int, rows: int, people: int) -> Votes:
        draw = np.random.default_rng(seed)
        winner = draw.integers(0, ITEMS, rows)
        return cls(winner, (winner + draw.integers(1, ITEMS, rows)) % ITEMS, draw.integers(0, people, rows))

    def key(self) -> Keys:
        """A number for each vote."""
        return (self.worker * ITEMS + self.winner) * ITEMS + self.loser

    def write(self, path: Path, order: Keys | None = None, compression: str = "snappy") -> Path:
        """Write them as Parquet."""
        path.parent.mkdir(parents=True, exist_ok=True)
        table = pa.table({"winner": self.winner, "loser": self.loser, "worker": self.worker})
        pa.parquet.write_table(table if order is None else table.take(order), path, compression=compression)
        return path


@dataclass(frozen=True)
class Truth:
    """What a store should hold: the votes of each day, and who is forgotten."""

    days: dict[str, Keys] = field(default_factory=dict)
    forgotten: frozenset[int] = frozenset()

    def counts(self) -> dict[str, Any]:
        """Votes by kind, and how often each was made."""
        key = np.concatenate([np.zeros(0, np.int64), *self.days.values()])
        worker = key // (ITEMS * ITEMS)
        return counted(key[~np.isin(worker, [*self.forgotten])])

    def having(self, day: str, votes: Votes | None) -> Truth:
        """With other votes on a day, or none."""
        others = {name: key for name, key in self.days.items() if name != day}
        return Truth(others if votes is None else others | {day: votes.key()}, self.forgotten)

    def without(self, worker: int) -> Truth:
        """With one more who is forgotten."""
        return Truth(self.days, self.forgotten | {worker})


def counted(key: Keys) -> dict[str, Any]:
    """Each key once, and its number."""
    keys, count = np.unique(key, return_counts=True)
    return {"key": keys, "count": count}


def held(store: Path) -> dict[str, Any]:
    """What a store holds, as ``Truth.counts`` says it."""
    prefs: Any = cc.read(store) if store.exists() else cc.Preferences.empty()
    if not len(prefs):
        return counted(np.zeros(0, np.int64))
    items, people = np.array(prefs.items.tolist()), np.array(prefs.clusters.tolist())
    key = (people[prefs.cluster] * ITEMS + items[prefs.winner]) * ITEMS + items[prefs.loser]
    order = np.argsort(key)
    return {"key": key[order], "count": prefs.count[order]}


def same(a: dict[str, Any], b: dict[str, Any]) -> bool:
    """Whether counts are equal."""
    return all(np.array_equal(a[name], b[name]) for name in a)


@dataclass
class Life:
    """A store that lives through days and kills."""

    folder: Path
    rows: int
    people: int
    draw: random.Random
    kills: int
    """Most kills of one step."""
    died: Counter[str] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)
    truth: Truth = field(default_factory=Truth)

    @property
    def store(self) -> Path:
        return self.folder / "votes.store"

    def step(self, method: str, *arguments: Any, after: Truth | None = None, **options: Any) -> None:
        """Do something to the store, killed some times first; it holds what it held, or what it is to hold."""
        actions: list[Action] = [(method, arguments, options)]
        before, then = self.truth.counts(), (after or self.truth).counts()
        for _ in range(self.draw.randint(1, self.kills) if self.kills else 0):
            _, killed = Worker(self.store, actions, die_at=self.draw.randrange(self.draw.choice([12, 36]))).finish()
            self.died[method] += killed
            found = held(self.store)
            assert same(found, before) or same(found, then), f"{method} {arguments}, killed"
            if not killed:
                break
        acknowledged, killed = Worker(self.store, actions).finish()
        assert (acknowledged, killed) == (1, False), method
        assert same(held(self.store), then), f"{method} {arguments}"
        Store(self.store).verify()
        self.done[method] += 1
        self.truth = after or self.truth

    def day(self, number: int) -> str:
        return f"2026-01-{number:02d}"

    def votes(self, number: int, version: int = 0) -> tuple[Votes, Path]:
        """The votes of a day and where they lie."""
        votes = Votes.drawn(1000 * version + number, self.rows, self.people)
        name = f"part-{version}.parquet"
        return votes, votes.write(self.folder / "lake" / f"day={self.day(number)}" / name)

    def ingest(self, number: int, version: int = 0) -> None:
        votes, path = self.votes(number, version)
        self.step("ingest", path, cluster="worker", wait=600, after=self.truth.having(self.day(number), votes))

    def doubled(self, number: int, version: int = 0) -> None:
        """The same day again: its file, then in another order and packing."""
        votes, path = self.votes(number, version)
        order = np.random.default_rng(number).permutation(self.rows)
        self.step("ingest", path, cluster="worker", wait=600)
        self.step("ingest", votes.write(path.with_name("again.parquet"), order, "zstd"), cluster="worker", wait=600)

    def lived(self, days: int) -> Iterator[str]:
        """Live through so many days; yield what was done."""
        order = [*range(1, days + 1)]
        late = order.pop(1)
        for number in order[:-1]:
            self.ingest(number)
        yield "days"
        self.ingest(late)
        yield "a late day"
        self.doubled(late)
        self.doubled(order[0])
        yield "doubled days"
        self.step("compact", wait=600)
        corrected = order[2]
        votes, path = self.votes(corrected, 1)
        day = self.day(corrected)
        self.step("replace", path, day=day, wait=600, after=self.truth.having(day, votes))
        self.doubled(corrected, 0)
        yield "a corrected day"
        gone = 3 % self.people
        self.step("forget", gone, wait=600, after=self.truth.without(gone))
        self.doubled(order[0])
        yield "somebody forgotten"
        self.step("remove", day=self.day(order[1]), wait=600, after=self.truth.having(self.day(order[1]), None))
        self.doubled(order[1])
        yield "a day removed"
        copy = self.folder / "copy.store"
        self.step("backup", copy, wait=600)
        kept = self.truth
        assert same(held(copy), kept.counts())
        Store(copy).verify()
        yield "backed up"
        self.ingest(order[-1])
        other = 5 % self.people
        self.step("forget", other, wait=600, after=self.truth.without(other))
        self.step("restore", copy, wait=600, after=Truth(kept.days, self.truth.forgotten))
        self.ingest(order[-1])
        yield "restored"
        self.step("date", self.day(order[0]), number=Store(self.store).info().batches[0].batch, wait=600)
        keep = days - 2
        newest = max(self.truth.days)
        oldest = f"2026-01-{int(newest[-2:]) - keep + 1:02d}"
        left = Truth({day: key for day, key in self.truth.days.items() if day >= oldest}, self.truth.forgotten)
        self.step("retain", f"{keep}d", wait=600, after=left)
        yield "old days gone"


def repeated(make: Callable[[int], Life], days: int, kills: int) -> Life:
    """Live again and again until so many processes were killed; return the last life with the sums of all."""
    died, done, number = Counter[str](), Counter[str](), 0
    while True:
        life = make(number)
        for _ in life.lived(days):
            pass
        died, done, number = died + life.died, done + life.done, number + 1
        shutil.rmtree(life.folder)
        if died.total() >= kills:
            life.died, life.done = died, done
            return life


def main() -> None:
    """Run it at a size of one's choice."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in {"days": 30, "rows": 333_334, "people": 20_000, "kills": 100, "seed": 0, "each": 4}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    asked, begun = parser.parse_args(), time.perf_counter()

    def make(number: int) -> Life:
        folder = Path(tempfile.mkdtemp(prefix="store-life-"))
        return Life(folder, asked.rows, asked.people, random.Random(asked.seed + number), asked.each)

    with kept_database():
        life = repeated(make, asked.days, asked.kills)
    print(f"{asked.days} days, {asked.days * asked.rows:,} votes, {time.perf_counter() - begun:,.0f} s")
    print(f"{life.died.total():,} processes killed: {dict(life.died)}")
    print(f"{life.done.total():,} steps, the counts right after each: {dict(life.done)}")


if __name__ == "__main__":
    main()
