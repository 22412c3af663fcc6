"""A store copied as it was at one moment, while others write to it; a copy put back in the place of a store."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from concordant.errors import ConcordantError, InputError
from concordant.io.engines.duckdb import Settings
from concordant.io.store.batches import forgetting_signs
from concordant.io.store.catalogue import Catalogue, contradictions, ids_of, read_catalogue, sized
from concordant.io.store.commits import Changed, check_place, commit, confirm
from concordant.io.store.files import WAIT
from concordant.io.store.known import belongs


@dataclass(frozen=True)
class Copied:
    """What was copied."""

    batches: int
    judgments: int
    files: int
    bytes: int
    revision: int
    """Of the store that was copied."""
    forgotten: int = 0
    """Judgments of the copy that were left out, for who made them was forgotten since."""
    fresh: bool = False
    """Whether it was put where no store was, so that who was forgotten since is not known."""


def backup(store: Path, copy: Path, *, by: str, wait: float = WAIT) -> Copied:
    """Copy a store as it is at one moment; writers may go on. The copy is a store, there whole or not at all.

    Every file is held against its SHA-256. Errors (InputError): no store, a damaged one, something under that name.
    """
    if os.path.lexists(copy):
        raise InputError(f"{copy}: is there already; a backup is made under a new name")
    check_place(copy)
    source = Path(os.path.realpath(store))
    while True:
        there = read_catalogue(source)
        try:
            files = _whole(source, there)
            made = Changed(there, copied=files)
            commit(copy, lambda _, made=made: made, by=by, wait=wait)  # type: ignore[misc]
        except ConcordantError:
            if read_catalogue(source).facts.revision == there.facts.revision:
                raise
            continue  # what was to be copied was merged or taken out meanwhile: copy what there is now
        return _copied(there, read_catalogue(copy))


def restore(copy: Path, store: Path, *, by: str, wait: float = WAIT, settings: Settings | None = None) -> Copied:
    """Put what a copy holds in the place of a store, or where none is, in one commit.

    Who is forgotten in the store stays forgotten. Errors (InputError): a damaged copy; a store that is damaged.
    """
    source = Path(os.path.realpath(copy))
    there = read_catalogue(source)
    files, batches = _whole(source, there), {one.batch: one for one in (*there.batches, *there.removed)}
    if os.path.realpath(store) == str(source):
        raise InputError(f"{store}: a store is not put in its own place")

    if os.path.exists(store):
        try:
            confirm(store, read_catalogue(Path(os.path.realpath(store))))
        except InputError as error:
            raise InputError(
                f"{error}; what is damaged is not overwritten: move the store and its folder away, then restore"
            ) from None

    def change(old: Catalogue | None) -> Changed:
        if old is None:
            return Changed(there, copied=files)
        if old.facts.created != there.facts.created:
            raise InputError(
                f"{copy}: no copy of {store}, but of a store that was begun at {there.facts.created}, not at "
                f"{old.facts.created}; restore it under another name"
            )
        known = {(one.salt, one.sign) for one in there.forgotten}
        since = [one for one in old.forgotten if (one.salt, one.sign) not in known]
        changed = forgetting_signs(source, there, since, settings or Settings())
        made = {file.file for one in changed.ids if (file := ids_of(batches[one])) is not None}
        kept = {part.file for part in changed.catalogue.files} - made
        return replace(changed, copied={name: path for name, path in files.items() if name in kept})

    fresh = not os.path.exists(store)
    new = commit(store, change, by=by, wait=wait)
    return replace(_copied(there, there if new is None else new), fresh=fresh)


def _whole(source: Path, catalogue: Catalogue) -> Mapping[str, Path]:
    """Return the files of a store by name. Errors (InputError): one is missing, or does not go with the others."""
    belongs(source, catalogue)
    if wrong := next(contradictions(catalogue), None):
        raise InputError(f"{source}: {wrong}")
    return {part.file: sized(source, part) for part in catalogue.files}


def _copied(there: Catalogue, new: Catalogue) -> Copied:
    size = sum(part.bytes for part in new.files)
    left_out = there.judgments - new.judgments
    return Copied(len(new.batches), new.judgments, len(new.files), size, there.facts.revision, left_out)
