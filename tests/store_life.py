"""The life of a store under kills: days that come late, doubled, corrected, removed; people and votes forgotten.

``python tests/store_life.py --days 30 --rows 333334 --people 20000 --kills 100`` runs it at that size and prints what
was done. After every step, killed or not, the counts are those of a sum that knows nothing of the package: NumPy over
the votes as they were drawn. Lives with ids of votes and without take turns. A store whose files are, byte for byte,
those that were read and compared before is not read again.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
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
PEOPLE = 1 << 20
Keys = NDArray[np.int64]


@dataclass(frozen=True)
class Votes:
    """Votes of a day, drawn: columns of integers, the first one their ids."""

    vote: Keys
    winner: Keys
    loser: Keys
    worker: Keys

    @classmethod
    def drawn(cls, day: int, version: int, rows: int, people: int) -> Votes:
        """Draw them; those of another version of a day have the same ids."""
        draw = np.random.default_rng([day, version])
        winner = draw.integers(0, ITEMS, rows)
        loser = (winner + draw.integers(1, ITEMS, rows)) % ITEMS
        return cls(day * rows + np.arange(rows), winner, loser, draw.integers(0, people, rows))

    @property
    def key(self) -> Keys:
        """A number for each vote, by what was judged and by whom."""
        return (self.winner * ITEMS + self.loser) * PEOPLE + self.worker

    def write(self, path: Path, order: Keys | None = None, compression: str = "snappy") -> Path:
        """Write them as Parquet."""
        path.parent.mkdir(parents=True, exist_ok=True)
        table = pa.table(vars(self))
        pa.parquet.write_table(table if order is None else table.take(order), path, compression=compression)
        return path


@dataclass(frozen=True)
class Truth:
    """What a store should hold: the votes of each day, and who is forgotten."""

    days: dict[str, Votes] = field(default_factory=dict)
    forgotten: frozenset[int] = frozenset()
    """People."""
    gone: frozenset[int] = frozenset()
    """Votes."""

    @cached_property
    def counts(self) -> Counts:
        """Votes by kind, and how often each was made."""
        kept = [np.zeros(0, np.int64)]
        for votes in self.days.values():
            out = np.isin(votes.worker, [*self.forgotten]) | np.isin(votes.vote, [*self.gone])
            kept.append(votes.key[~out])
        return np.unique(np.concatenate(kept), return_counts=True)

    def having(self, day: str, votes: Votes | None) -> Truth:
        """With other votes on a day, or none."""
        others = {name: key for name, key in self.days.items() if name != day}
        return replace(self, days=others if votes is None else others | {day: votes})

    def without(self, worker: int | None = None, votes: Sequence[int] = ()) -> Truth:
        """With one more who is forgotten, or some votes."""
        people = self.forgotten if worker is None else self.forgotten | {worker}
        return replace(self, forgotten=people, gone=self.gone | {*votes})


Counts = tuple[Keys, Keys]
"""Keys in order, and how often each is there."""


def held(store: Path) -> Counts:
    """What a store holds, as ``Truth.counts`` says it."""
    prefs: Any = cc.read(store) if store.exists() else cc.Preferences.empty()
    if not len(prefs):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    items, people = np.array(prefs.items.tolist()), np.array(prefs.clusters.tolist())
    return (items[prefs.winner] * ITEMS + items[prefs.loser]) * PEOPLE + people[prefs.cluster], prefs.count


def same(a: Counts, b: Counts) -> bool:
    """Whether counts are equal."""
    return all(np.array_equal(one, other) for one, other in zip(a, b, strict=True))


def signs(store: Path) -> dict[str, str]:
    """The SHA-256 of each file of a store."""
    files = [store, *store.with_name(f"{store.name}.parts").glob("[!.]*")]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else "" for path in files}


@dataclass
class Life:
    """A store that lives through days and kills."""

    folder: Path
    rows: int
    people: int
    draw: random.Random
    kills: int
    """Most kills of one step."""
    ids: bool = False
    """Whether the store knows votes by their ids."""
    read: tuple[dict[str, str], Counts] | None = None
    """The files of the store when it was last read, and what it held."""
    died: Counter[str] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)
    truth: Truth = field(default_factory=Truth)

    @property
    def store(self) -> Path:
        return self.folder / "votes.store"

    @property
    def options(self) -> dict[str, Any]:
        """How logs are read."""
        return {"cluster": "worker", "columns": {"id": "vote"}} if self.ids else {"cluster": "worker"}

    def holds(self, *truths: Truth, verified: bool = False) -> bool:
        """Whether the store holds one of some truths."""
        there = signs(self.store)
        if self.read is None or not self.read[0].items() <= there.items():
            self.read = there, held(self.store)
            if verified:
                Store(self.store).verify()
        return any(same(self.read[1], one.counts) for one in truths)

    def step(self, method: str, *arguments: Any, after: Truth | None = None, called: str = "", **options: Any) -> None:
        """Do something to the store, killed some times first; it holds what it held, or what it is to hold."""
        actions: list[Action] = [(method, arguments, {**options, "wait": 600})]
        name, before, then = called or method, self.truth, after or self.truth
        for _ in range(self.draw.randint(1, self.kills) if self.kills else 0):
            most = self.draw.choice([12, 36, 36, 200] if len(before.days) > 9 else [12, 36])
            die_at = self.draw.randrange(most if self.died[name] else 4)  # the first time no command is done by then
            _, killed = Worker(self.store, actions, die_at=die_at).finish()
            self.died[name] += killed
            assert self.holds(before, then), f"{name} {arguments}, killed"
            if method == "backup" and arguments[0].exists():  # killed when all of it was there
                assert same(held(arguments[0]), before.counts)
                Store(arguments[0]).verify()
                for path in self.folder.glob(f"{arguments[0].name}*"):
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
            if not killed:
                break
        acknowledged, killed = Worker(self.store, actions).finish()
        assert (acknowledged, killed) == (1, False), name
        assert self.holds(then, verified=True), f"{name} {arguments}"
        self.done[name] += 1
        self.truth = then

    def day(self, number: int) -> str:
        return f"2026-01-{number:02d}"

    def votes(self, number: int, version: int = 0) -> tuple[Votes, Path]:
        """The votes of a day and where they lie."""
        votes = Votes.drawn(number, version, self.rows, self.people)
        name = f"part-{version}.parquet"
        return votes, votes.write(self.folder / "lake" / f"day={self.day(number)}" / name)

    def ingest(self, number: int, version: int = 0) -> None:
        votes, path = self.votes(number, version)
        self.step("ingest", path, **self.options, after=self.truth.having(self.day(number), votes))

    def doubled(self, number: int, version: int = 0) -> None:
        """The same day again: its file, then in another order and packing."""
        votes, path = self.votes(number, version)
        order = np.random.default_rng(number).permutation(self.rows)
        self.step("ingest", path, **self.options)
        self.step("ingest", votes.write(path.with_name("again.parquet"), order, "zstd"), **self.options)

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
        self.step("compact")
        corrected = order[2]
        if self.ids:
            self.forget_votes(corrected, order[1])
            self.step("compact")
            yield "votes forgotten"
        votes, path = self.votes(corrected, 1)
        day = self.day(corrected)
        again = {"columns": self.options["columns"]} if self.ids else {}
        self.step("replace", path, day=day, **self.options | again, after=self.truth.having(day, votes))
        if (
            not self.ids
        ):  # a file of what was replaced is known; votes by their ids would contradict those that are there
            self.doubled(corrected, 0)
        yield "a corrected day"
        gone = 3 % self.people
        self.step("forget", gone, after=self.truth.without(gone))
        self.doubled(order[0])
        yield "somebody forgotten"
        self.step("remove", day=self.day(order[1]), after=self.truth.having(self.day(order[1]), None))
        self.doubled(order[1])
        yield "a day removed"
        copy = self.folder / "copy.store"
        self.step("backup", copy)
        kept = self.truth
        assert same(held(copy), kept.counts)
        Store(copy).verify()
        yield "backed up"
        self.ingest(order[-1])
        other = 5 % self.people
        self.step("forget", other, after=self.truth.without(other))
        if self.ids:
            self.forget_votes(order[0], order[-1])
        self.step("restore", copy, after=replace(self.truth, days=kept.days))
        self.ingest(order[-1])
        yield "restored"
        self.step("date", self.day(order[0]), number=Store(self.store).info().batches[0].batch)
        keep = days - 2
        newest = max(self.truth.days)
        oldest = f"2026-01-{int(newest[-2:]) - keep + 1:02d}"
        left = replace(self.truth, days={day: votes for day, votes in self.truth.days.items() if day >= oldest})
        self.step("retain", f"{keep}d", after=left)
        yield "old days gone"

    def forget_votes(self, *days: int) -> None:
        """Forget a thousandth of the votes of some days by their ids; their files bring none of them back."""
        some = np.concatenate([self.truth.days[self.day(day)].vote for day in days])
        ids = np.random.default_rng(len(some)).choice(some, max(len(some) // 1000, 3), replace=False).tolist()
        self.step("forget", ids=ids, called="forget votes", after=self.truth.without(votes=ids))
        self.doubled(days[0])


def repeated(make: Callable[[int], Life], days: int, kills: int) -> Life:
    """Live again and again until so many processes were killed; return the last life with the sums of all."""
    died, done, number = Counter[str](), Counter[str](), 0
    while True:
        life = make(number)
        for what in life.lived(days):
            print(f"{what}: {time.strftime('%H:%M:%S')}, killed: {dict(life.died)}", flush=True)
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
        number += asked.seed
        return Life(folder, asked.rows, asked.people, random.Random(number), asked.each, ids=number % 2 == 1)

    with kept_database():
        life = repeated(make, asked.days, asked.kills)
    print(f"{asked.days} days, {asked.days * asked.rows:,} votes, {time.perf_counter() - begun:,.0f} s")
    print(f"{life.died.total():,} processes killed: {dict(life.died)}")
    print(f"{life.done.total():,} steps, the counts right after each: {dict(life.done)}")


if __name__ == "__main__":
    main()
