"""A disk that forgets: what a power cut may leave of the files that a process wrote.

Bytes last once their file was made durable (fsync), names once their folder was. Until then any part of them may be
there. The recorder looks at the whole folder before and after every step, so it also sees what DuckDB and Arrow write.
"""

from __future__ import annotations

import itertools
import random
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Change:
    """Names of one folder that went away and came in one indivisible step."""

    folder: str
    gone: tuple[str, ...] = ()
    came: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Moment:
    """What the power may fail on: what is surely on the disk, and what is only in memory.

    Files and folders have numbers of their own (a rename keeps them); a folder has no bytes.
    """

    acknowledged: int
    step: str
    kept: dict[str, int]
    pending: tuple[Change, ...]
    cached: dict[int, bytes | None]
    durable: dict[int, bytes]

    def outcomes(self, most: int = 5) -> Iterator[dict[str, bytes | None]]:
        """Yield the disks that may be found: any part of the pending changes, any fate of bytes not made durable."""
        tail = self.pending[-most:]
        for chosen in itertools.product((False, True), repeat=len(tail)):
            names = dict(self.kept)
            for change in (*self.pending[: -len(tail) or None], *itertools.compress(tail, chosen)):
                for name in change.gone:
                    names.pop(name, None)
                names.update(change.came)
            for fate in FATES:
                yield {name: self._bytes(number, fate) for name, number in sorted(names.items())}

    def _bytes(self, number: int, fate: str) -> bytes | None:
        now, kept = self.cached[number], self.durable.get(number)
        if now is None or now == kept or fate == "written":
            return now
        if fate == "lost":
            return kept or b""
        if fate == "cut":
            return now[: len(now) // 2]
        return random.Random(number).randbytes(len(now))


FATES = ("written", "lost", "cut", "garbled")


@dataclass
class Disk:
    """Records what a process does beside a store, as a disk sees it."""

    root: Path
    acknowledged: int = 0
    moments: list[Moment] = field(default_factory=list)
    _numbers: dict[int, int] = field(default_factory=dict)
    _names: dict[str, int] = field(default_factory=dict)
    _kept: dict[str, int] = field(default_factory=dict)
    _cached: dict[int, bytes | None] = field(default_factory=dict)
    _durable: dict[int, bytes] = field(default_factory=dict)
    _pending: list[Change] = field(default_factory=list)
    _next: Iterator[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.root.mkdir()

    def acknowledge(self) -> None:
        """Take note that a log was acknowledged."""
        self.acknowledged += 1
        self._note("acknowledged")

    def __call__(self, name: str, path: str, after: bool) -> None:
        """Take note of a step."""
        self._look()
        if name == "fsync" and after:
            where = Path(path)
            if where.is_dir():
                self._keep_names(self._inside(where))
            else:
                number = self._names[self._inside(where)]
                now = self._cached[number]
                assert now is not None
                self._durable[number] = now
        self._note(f"{'after' if after else 'before'} {name} {Path(path).name}")

    def _inside(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    def _keep_names(self, folder: str) -> None:
        self._pending = [change for change in self._pending if change.folder != folder]
        self._kept = {name: number for name, number in self._kept.items() if _folder(name) != folder}
        self._kept |= {name: number for name, number in self._names.items() if _folder(name) == folder}

    def _look(self) -> None:
        """Compare the folder with how it was, and number what is new."""
        found: dict[str, int] = {}
        inodes: dict[int, int] = {}
        for path in sorted(self.root.rglob("*")):
            status = path.stat()
            number = self._numbers.get(status.st_ino)
            if number is None:
                number = next(self._next)
            inodes[status.st_ino] = found[self._inside(path)] = number
            self._cached[number] = None if stat.S_ISDIR(status.st_mode) else path.read_bytes()
        self._pending += _changes(self._names, found)
        self._names, self._numbers = found, inodes

    def _note(self, step: str) -> None:
        self.moments.append(
            Moment(
                self.acknowledged,
                step,
                dict(self._kept),
                tuple(self._pending),
                dict(self._cached),
                dict(self._durable),
            )
        )


def _folder(name: str) -> str:
    return Path(name).parent.as_posix()


def _changes(old: dict[str, int], new: dict[str, int]) -> Iterator[Change]:
    """Yield what happened to names: files that were renamed, went away, or came."""
    gone = {name: number for name, number in old.items() if name not in new}
    for name, number in new.items():
        if old.get(name) != number:
            before = [other for other, same in gone.items() if same == number]
            yield Change(_folder(name), tuple(before), ((name, number),))
            for other in before:
                del gone[other]
    for name in gone:
        yield Change(_folder(name), (name,))


def write_disk(root: Path, disk: dict[str, bytes | None]) -> None:
    """Make files and folders; what stands in a folder that was lost is lost too."""
    for name, content in disk.items():
        path = root / name
        if not path.parent.is_dir():
            continue
        if content is None:
            path.mkdir()
        else:
            path.write_bytes(content)
