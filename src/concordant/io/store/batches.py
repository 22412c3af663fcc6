"""Batches that are taken out, people who are forgotten: what that makes of a catalogue, and what keeps them out.

Nothing is changed in place: segments without a person's judgments, or without some votes, take the place of those with
them, in one commit. What was taken out leaves its sign behind: the contents of a batch stay known, of a cluster the
catalogue keeps a salted hash, of a vote the hash of its id; by these they are left out of every later log.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
from numpy.typing import NDArray

from concordant.errors import InputError, Setting, UsageError, counted, few
from concordant.io.engines.duckdb import Settings
from concordant.io.store.catalogue import (
    Catalogue,
    Content,
    Facts,
    Forgotten,
    Ingestion,
    Removed,
    Segment,
    Sum,
    forgotten_votes,
    ids_of,
    kept_ids,
)
from concordant.io.store.commits import Changed, now, to_write
from concordant.io.store.days import oldest_kept
from concordant.io.store.stored import checked, judgments_of, merged
from concordant.io.votes import ROW, hashed_ids, ids_left, places
from concordant.preferences.labels import Labels
from concordant.preferences.preferences import Preferences, keep
from concordant.preferences.windows import said_day
from concordant.progress import steps

WHOLE = re.compile(r"0|-?[1-9][0-9]*")
"""An integer as it is written."""
REMOVED = "removed"
"""The reason of a batch that was taken out because somebody said so."""
OLDER = "older than the "
"""How the reason of a batch begins that was too old to be kept."""


# -- which batches -----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Which:
    """Batches by their names, numbers or days, or all that are of a day before one."""

    names: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    days: tuple[str, ...] = ()
    before: str | None = None
    ways: tuple[str, ...] = ("batch", "number", "day", "before")
    """How they may be named."""

    def of(self, catalogue: Catalogue, store: str, *, gone: bool = False) -> tuple[Ingestion, ...]:
        """Return them; with ``gone`` those that were removed already are left out.

        Errors: nobody asked for any, none there, a name that several have.
        """
        asks: dict[str, tuple[Callable[[Ingestion], Any], tuple[Any, ...]]] = {
            "batch": (lambda batch: batch.name, self.names),
            "number": (lambda batch: batch.batch, self.numbers),
            "day": (lambda batch: batch.day, tuple([said_day(day) for day in self.days])),
        }
        chosen: dict[int, Ingestion] = {}
        before = [batch for batch in catalogue.removed if gone and batch.why == REMOVED]
        again = False  # the same command, run again
        for how, (value, asked) in asks.items():
            for one in asked:
                found = [batch for batch in catalogue.batches if value(batch) == one]
                if not found and any(value(batch) == one for batch in before):
                    again = True
                    continue
                if not found:
                    there = list(dict.fromkeys(value(batch) for batch in catalogue.batches if value(batch)))
                    close = get_close_matches(str(one), map(str, there), 1)
                    hint = f"did you mean {close[0]!r}? " if close else ""
                    hint += f"There are {few(there)}" if there else "none has one"
                    raise InputError(f"{store}: no batch with ", Setting(how, one), f": {hint}")
                if how == "batch" and len(found) > 1:
                    numbers = few([batch.batch for batch in found])
                    raise InputError(
                        f"{store}: {len(found):,} batches are called {one!r}, the numbers {numbers}; name one by its ",
                        Setting("number"),
                    )
                chosen |= {batch.batch: batch for batch in found}
        if self.before is not None:
            first = said_day(self.before, "before")
            older = [batch for batch in catalogue.batches if batch.day and batch.day < first]
            again |= any("" < batch.day < first for batch in before)
            if not older and not again:
                raise InputError(f"{store}: no batch is of a day before {first}")
            chosen |= {batch.batch: batch for batch in older}
        if not chosen and not again:
            ways = [part for name in self.ways for part in (Setting(name), ", ")]
            raise UsageError("no batch is named (", *ways[:-1], ")")
        return tuple([batch for batch in catalogue.batches if batch.batch in chosen])


def refuse_rewritten(store: Catalogue, contents: Iterable[Content]) -> None:
    """Refuse a file, or a table in one, that was taken in and holds something else now. Errors: InputError."""
    live, names = {batch.batch for batch in store.batches}, {content.name for content in contents}
    if before := [one for one in store.contents if one.batch in live and one.name in names]:
        files = sum(one.batch == before[0].batch for one in store.contents)
        whole = "it" if files == 1 else f"all {files:,} files of that batch, as they are now,"
        raise InputError(
            f"{before[0].name}: it held something else when it was taken in (batch {before[0].batch}), and without ids "
            f"of votes it cannot be told what is new; concordant store replace puts {whole} in its place; if all is "
            "new, take it in alone under another name: ",
            Setting("batch"),
        )


def next_number(catalogue: Catalogue) -> int:
    """Return the number of the next batch; no number is given twice."""
    return 1 + max((batch.batch for batch in (*catalogue.batches, *catalogue.removed)), default=0)


# -- batches taken out -------------------------------------------------------------------------------------------------
def without(catalogue: Catalogue, gone: Collection[Ingestion], why: str, *, ids: bool = True) -> Catalogue:
    """Return the catalogue without some batches, which stay known; without ``ids`` their votes may come again.

    Errors (InputError): an older version has merged one of them with others.
    """
    catalogue.holding(gone)  # or that is refused
    numbers = {batch.batch for batch in gone}
    left = tuple([batch for batch in catalogue.batches if batch.batch not in numbers])
    used, when = {batch.segment for batch in left}, now()
    dead = []
    for batch in gone:
        options = batch.options if ids else _without_ids(batch.options)
        dead.append(Removed(**{**vars(batch), "segment": "", "options": options}, removed=when, why=why))
    return replace(
        catalogue,
        batches=left,
        segments=tuple([segment for segment in catalogue.segments if segment.file in used]),
        sums=tuple([one for one in catalogue.sums if not one.numbers & numbers]),
        removed=(*catalogue.removed, *dead),
    )


def _without_ids(options: str) -> str:
    return json.dumps({name: value for name, value in json.loads(options).items() if name != "ids"}, ensure_ascii=False)


def expired(catalogue: Catalogue) -> Catalogue:
    """Return the catalogue without the batches that are older than what the store keeps."""
    days = [batch.day for batch in catalogue.batches if batch.day]
    if not catalogue.facts.keep or not days:
        return catalogue
    oldest = oldest_kept(days, catalogue.facts.keep)
    gone = [batch for batch in catalogue.batches if batch.day and batch.day < oldest]
    why = f"{OLDER}{counted(catalogue.facts.keep, 'days')} that are kept"
    return without(catalogue, gone, why) if gone else catalogue


def tombstones(catalogue: Catalogue, other: Catalogue) -> Catalogue:
    """Return the catalogue with the batches that were taken out of another store: they stay out of this one, too.

    Errors (InputError): this one has some of it.
    """
    live, dead = {batch.batch for batch in catalogue.batches}, {batch.batch for batch in other.removed}
    there = {content.sha256: content.batch in live for content in catalogue.contents}
    gone = [content for content in other.contents if content.batch in dead]
    if twice := [content.name for content in gone if there.get(content.sha256)]:
        raise InputError(f"{few(twice, 3)}: taken out of that store, and held by this one; remove it here, too")
    gone = [content for content in gone if content.sha256 not in there]
    number = next_number(catalogue)
    new = {old: number + place for place, old in enumerate(sorted({content.batch for content in gone}))}
    removed = [
        replace(batch, batch=new[batch.batch], options=_without_ids(batch.options))
        for batch in other.removed
        if batch.batch in new
    ]
    contents = [replace(one, batch=new[one.batch]) for one in gone]
    return replace(catalogue, contents=(*catalogue.contents, *contents), removed=(*catalogue.removed, *removed))


# -- people and votes that are forgotten -----------------------------------------------------------------------------
def sign_of(label: Any, salt: str) -> str:
    """Return by what a label is known that must not be kept."""
    return hashlib.sha256(f"{salt}\0{label}".encode()).hexdigest()


def are_forgotten(labels: Labels, forgotten: Iterable[Forgotten]) -> NDArray[np.bool_]:
    """Return for each label whether it is forgotten."""
    found, salts = np.zeros(len(labels), bool), dict[str, set[str]]()
    for one in forgotten:
        if one.salt:
            salts.setdefault(one.salt, set()).add(one.sign)
    for salt, signs in salts.items():
        found |= np.array([sign_of(label, salt) in signs for label in labels.tolist()], bool)
    return found


def remembered(prefs: Preferences, forgotten: Collection[Forgotten]) -> NDArray[Any]:
    """Return how often each judgment stays: not at all, of those who are forgotten."""
    if not forgotten or prefs.clusters is None or prefs.cluster is None:
        return prefs.count
    return np.where(are_forgotten(prefs.clusters, forgotten)[prefs.cluster], 0, prefs.count)


def counted_so(prefs: Preferences, count: NDArray[Any]) -> Preferences:
    """Return preferences with other counts, those without judgments that count 0."""
    if np.array_equal(count, prefs.count):
        return prefs
    rows = np.flatnonzero(count)
    return keep(prefs, rows, count[rows], prefs.declared) if len(rows) else Preferences.empty()


def labels_said(facts: Facts, labels: Sequence[Any], store: str, *, ids: bool) -> list[Any]:
    """Return labels of clusters as the store has them; ``ids``: whether it could forget votes, too.

    Errors (UsageError): it has no clusters, nobody is named.
    """
    if not labels:
        who = f"the label of a {facts.cluster}" if facts.cluster else ""
        which = "ids of votes" if ids else ""
        named = " or ".join(filter(None, (who, which))) or "the label of a cluster, which the store does not keep"
        raise UsageError(f"{store}: nobody is named to be forgotten; name {named}")
    if facts.clusters is None:
        raise UsageError(
            f"{store}: the store keeps no clusters, so nobody is told from others in it; make it anew from its logs, "
            "with ",
            Setting("cluster"),
        )
    if facts.clusters == "texts":
        return [str(label) for label in labels]
    if bad := [label for label in labels if not WHOLE.fullmatch(str(label))]:
        raise UsageError(f"{store}: each {facts.cluster} is an integer there, as 3 or -12, not {bad[0]!r}")
    return [int(label) for label in labels]


def forgetting(store: Path, catalogue: Catalogue, labels: Sequence[Any], settings: Settings) -> Changed | None:
    """Return the catalogue without the judgments of some clusters; None where all of them are forgotten already.

    Errors (InputError): a cluster that no judgment has; batches that an older version has merged.
    """
    fresh = [label for label in labels if not any(one.sign == sign_of(label, one.salt) for one in catalogue.forgotten)]
    if not fresh:
        return None
    target, taken = Path(os.path.realpath(store)), dict[str, dict[Any, int]]()
    for part in steps("looking through segments", (*catalogue.segments, *catalogue.sums)):
        taken[part.file] = judgments_of(checked(target, part), settings, fresh)
    total = {label: sum(taken[part.file].get(label, 0) for part in catalogue.segments) for label in fresh}
    if nobody := [label for label, judgments in total.items() if not judgments]:
        raise InputError(
            f"{store}: no judgment has the {catalogue.facts.cluster} {few(nobody, 3)}; nobody was forgotten"
        )
    salt = next((one.salt for one in catalogue.forgotten if one.salt), "") or secrets.token_hex(16)
    signs = [Forgotten(sign_of(label, salt), salt, total[label], now()) for label in fresh]
    less = {file: sum(found.values()) for file, found in taken.items() if found}
    return _rewritten(target, catalogue, less, _Gone(signs), settings)


@dataclass
class _Gone:
    """What is to be forgotten: people, and votes of some files."""

    signs: Sequence[Forgotten]
    votes: dict[str, tuple[NDArray[Any], NDArray[Any]]] = field(default_factory=dict)
    """By the names of segments: rows, and how often each is taken out."""
    batches: set[int] = field(default_factory=set)
    """The batches whose ids change."""
    there: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, bool))
    """Which of the votes any batch has."""

    def left(self, file: str, prefs: Preferences) -> NDArray[Any]:
        """Return how often each judgment of a file stays."""
        left = remembered(prefs, self.signs).astype(np.int64)
        if file in self.votes:
            np.subtract.at(left, *self.votes[file])
        return np.maximum(left, 0)  # a vote of who is forgotten, too, is gone already


def _found(target: Path, catalogue: Catalogue, signs: Sequence[Forgotten]) -> _Gone:
    """Look for votes. Errors (InputError): those of batches that an earlier version took in."""
    ids, gone = forgotten_votes(signs), _Gone(signs)
    gone.there = np.zeros(len(ids), bool)
    for batch in steps("looking through ids", (*catalogue.batches, *catalogue.removed) if len(ids) else ()):
        if (file := ids_of(batch)) is None:
            continue
        table = pa.parquet.read_table(checked(target, file))
        found, where = places(table, ids)
        gone.there[found] = True
        gone.batches |= {batch.batch} if len(where) else set()
        if len(where) and batch.segment:
            if ROW not in table.column_names:
                raise InputError(
                    f"{target}: the batch {batch.batch} ({batch.name}) was taken in by an earlier version of "
                    "concordant, which did not write down what each vote was; make the store anew from its logs"
                )
            row, count = (table[name].take(pa.array(where)).fill_null(0).to_numpy() for name in (ROW, "count"))
            gone.votes[batch.segment] = row[count > 0].astype(np.int64), count[count > 0]
    return gone


def forgetting_votes(store: Path, catalogue: Catalogue, ids: Sequence[Any], settings: Settings) -> Changed | None:
    """Return the catalogue without votes, by their ids; None where all of them are forgotten already.

    Errors (UsageError): none is named, no ids are kept; (InputError): ids of no vote, votes of an earlier version.
    """
    target = Path(os.path.realpath(store))
    if not kept_ids(catalogue):
        raise UsageError(
            f"{store}: the store knows no ids of votes, so none is told from others in it; make it anew from its logs, "
            "with ",
            Setting("columns", key="id"),
        )
    names = list(dict.fromkeys(map(str, ids)))
    hashes = hashed_ids(names)
    before = pc.is_in(hashes, value_set=forgotten_votes(catalogue.forgotten))
    fresh = hashes.filter(pc.invert(before))
    if not len(fresh):
        return None
    sign = Forgotten(b"".join(fresh.to_pylist()).hex(), "", 0, now())
    gone = _found(target, catalogue, [sign])
    if not gone.there.all():
        asked = [name for name, known in zip(names, before.to_pylist(), strict=True) if not known]
        unknown = [name for name, known in zip(asked, gone.there, strict=True) if not known]
        said = f"no vote has the id {few(unknown, 3)}" if len(unknown) < 4 else f"{len(unknown):,} ids are of no vote"
        some = f" (such as {few(unknown[:3])})" if len(unknown) > 3 else ""
        raise InputError(f"{store}: {said}{some}; nothing was forgotten")
    less = {file: int(count.sum()) for file, (_, count) in gone.votes.items() if len(count)}
    gone.signs = [replace(sign, judgments=sum(less.values()))]
    return _rewritten(target, _without_sums(catalogue, less), less, gone, settings)


def _without_sums(catalogue: Catalogue, files: Collection[str]) -> Catalogue:
    """Return the catalogue without the sums of what some segments hold; the next ``compact`` makes them anew."""
    numbers = {batch.batch for batch in catalogue.batches if batch.segment in files}
    return replace(catalogue, sums=tuple([one for one in catalogue.sums if not one.numbers & numbers]))


def forgetting_signs(target: Path, catalogue: Catalogue, signs: Sequence[Forgotten], settings: Settings) -> Changed:
    """Return the catalogue without people and votes that are known by their signs alone."""
    gone, less = _found(target, catalogue, signs), dict[str, int]()
    for part in (*catalogue.segments, *catalogue.sums) if signs else ():
        path = checked(target, part)
        if isinstance(part, Sum) and gone.votes:
            continue  # which of its judgments these are is not known
        prefs = merged({part.sign: path}, catalogue.facts, settings)
        if number := len(prefs) - int(gone.left(part.file, prefs).sum()):
            less[part.file] = number
    return _rewritten(target, _without_sums(catalogue, gone.votes), less, gone, settings)


def _rewritten(target: Path, catalogue: Catalogue, less: Mapping[str, int], gone: _Gone, settings: Settings) -> Changed:
    """Return the catalogue without what is gone; ``less``: how many judgments that is of each file."""
    shared = [batch.segment for batch in catalogue.batches if batch.segment in less]
    if len({*shared}) < len(shared):
        raise InputError(
            f"{target}: some of these judgments lie in batches that an earlier version of concordant has merged; make "
            "the store anew from its logs"
        )
    parts = (*catalogue.segments, *catalogue.sums)
    left = dict[str, NDArray[Any]]()

    def made(part: Segment) -> Preferences:
        prefs = merged({part.sign: checked(target, part)}, catalogue.facts, settings)
        left[part.file] = gone.left(part.file, prefs)
        return counted_so(prefs, left[part.file])

    def ids(batch: Ingestion, file: Segment) -> pa.Table:
        table = pa.parquet.read_table(checked(target, file))
        return ids_left(table, left.get(batch.segment), forgotten_votes(gone.signs))

    def stands(part: Segment) -> dict[str, Any]:
        return {**vars(part), **vars(to_write(f"new {part.file}"))} if part.file in less else {**vars(part)}

    batches, changed = [], dict[int, Callable[[], pa.Table]]()
    for batch in (*catalogue.batches, *catalogue.removed):
        if (file := ids_of(batch)) is not None and (batch.batch in gone.batches or batch.segment in less):
            changed[batch.batch] = partial(ids, batch, file)
    for batch in catalogue.batches:
        if number := less.get(batch.segment, 0):
            kept, taken = batch.judgments - number, batch.forgotten + number
            batch = replace(batch, segment=f"new {batch.segment}", judgments=kept, forgotten=taken)
        batches.append(batch)
    new = replace(
        catalogue,
        batches=tuple(batches),
        segments=tuple([type(part)(**stands(part)) for part in catalogue.segments]),
        sums=tuple([type(part)(**stands(part)) for part in catalogue.sums]),
        forgotten=(*catalogue.forgotten, *gone.signs),
    )
    return Changed(new, {f"new {part.file}": partial(made, part) for part in parts if part.file in less}, ids=changed)
