"""Fewer segments, the same judgments: all of them merged into one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from concordant.engines.duckdb import Settings
from concordant.preferences import Preferences
from concordant.store.catalogue import Catalogue
from concordant.store.commits import HERE, commit
from concordant.store.lock import WAIT
from concordant.store.stored import read_stored

__all__ = ["Compacted", "compact"]


@dataclass(frozen=True)
class Compacted:
    """What a store was and has become: segments, rows (distinct judgments) and bytes."""

    segments: tuple[int, int]
    rows: tuple[int, int]
    bytes: tuple[int, int]


def compact(store: Path, settings: Settings | None = None, *, by: str, wait: float = WAIT) -> Compacted:
    """Merge the segments of a store into one. It stays readable meanwhile, and other writers may go on."""
    while True:
        prefs, seen = read_stored(store, settings)
        if len(seen.segments) <= 1:
            return Compacted(*[(size, size) for size in _sizes(seen)])

        def change(now: Catalogue | None, prefs: Preferences = prefs, seen: Catalogue = seen) -> Merged:
            if now is None or not set(seen.segments) <= set(now.segments):
                return None  # someone else has merged some of them
            gone = {segment.file for segment in seen.segments}
            rest = tuple([segment for segment in now.segments if segment.file not in gone])
            moved = tuple([replace(each, segment=HERE) if each.segment in gone else each for each in now.batches])
            return replace(now, segments=rest, batches=moved), prefs

        new = commit(store, change, by=by, wait=wait)
        if new is not None:
            old, now = _sizes(seen), _sizes(new)
            return Compacted(*[(before, after) for before, after in zip(old, now, strict=True)])


Merged = tuple[Catalogue, Preferences] | None


def _sizes(catalogue: Catalogue) -> tuple[int, int, int]:
    segments = catalogue.segments
    return len(segments), sum(each.rows for each in segments), sum(each.bytes for each in segments)
