"""What an export of a store knows beside its judgments: the files they came from, and how those were read.

An export is read, filtered and taken into a new store: so votes leave a store. The new store has to know the files of
the old one, or the next run takes them in again and brings the votes back. The list of them lies beside the export
(``_votes.parquet.known.json``; names that begin with ``_`` are no part of a folder of logs), and every row of the
export names it in the column ``exported_from``, so that rows which another program has filtered do not pass for a log
of their own.

To which catalogue a folder of segments belongs: two catalogues never write into one folder.

The folder says which commit last wrote there. A catalogue that is not of this commit, nor of the one before it (its
writer was killed in between), is an older copy, or was written on elsewhere: nothing is read or removed by it.
"""

from __future__ import annotations

import hashlib
import json
import stat
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from concordant.errors import InputError
from concordant.io.log.disk import read_regular
from concordant.io.log.json_values import json_value
from concordant.io.store import files
from concordant.io.store.catalogue import Catalogue, Content, Facts, Forgotten, is_store, parts_folder, read_catalogue

MARK = "exported_from"
"""The column of an export that names its list."""
PINS = ("kind", "items", "queries", "clusters", "cluster", "covariates", "query", "home", "neutral")
LARGEST = 1 << 30


@dataclass(frozen=True)
class KnownFiles:
    """The facts of a store that was exported, its judgments, and the files that they came from."""

    facts: Facts
    judgments: int
    contents: tuple[Content, ...]
    forgotten: tuple[Forgotten, ...] = ()
    """Who is forgotten there, and stays so."""

    def plain(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        facts = {name: value for name, value in asdict(self.facts).items() if name in PINS}
        contents = [{n: v for n, v in vars(content).items() if n != "batch"} for content in self.contents]
        people = {"forgotten": [vars(one) for one in self.forgotten]} if self.forgotten else {}
        return {"facts": facts, "judgments": self.judgments, "contents": contents, **people}

    def options(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return options of reading that fit the columns of an export, where none are given for them."""
        options = dict(given)
        if self.facts.clusters is not None and options.get("cluster") is None:
            options["cluster"] = "cluster"
        if self.facts.covariates and not options.get("covariates"):
            options["covariates"] = self.facts.covariates
        return options

    @property
    def mark(self) -> str:
        """A name for it that nothing else has: a part of the SHA-256 of what it says."""
        said = json.dumps(self.plain(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(said.encode()).hexdigest()[:16]


def known_files(catalogue: Catalogue) -> KnownFiles:
    """Return what an export of a store knows."""
    people = tuple([replace(one, judgments=0) for one in catalogue.forgotten])
    return KnownFiles(catalogue.facts, catalogue.judgments, catalogue.contents, people)


def beside(path: Path) -> Path:
    """Return where the list of an export lies.

    >>> beside(Path("out/votes.parquet")).as_posix()
    'out/_votes.parquet.known.json'
    """
    return path.with_name(f"_{path.name}.known.json")


def save(known: KnownFiles, path: Path) -> None:
    """Write the list of an export. Errors: InputError where something else lies there."""
    if path.exists() or path.is_symlink():
        load(path)
    said = json.dumps({"concordant": "files of an export", "mark": known.mark, **known.plain()}, indent=1)
    files.write_new(path, lambda temporary: temporary.write_text(said + "\n", encoding="utf-8"))


def load(path: Path) -> KnownFiles:
    """Return the list that a file is, that lies beside an export, or that a store has.

    Errors (InputError): no such file, something else, a list that was changed.
    """
    if is_store(path):
        return known_files(read_catalogue(path))
    if not path.name:
        raise InputError(f"{path}: a folder, not the list of known files of an export")
    if not path.name.endswith(".known.json"):
        path = beside(path)
    try:
        said = json_value(read_regular(path, LARGEST), str(path))
        facts = Facts(
            **{**said["facts"], "covariates": tuple(said["facts"]["covariates"])}, created="", by="", revision=0
        )
        contents = tuple([Content(**row, batch=0) for row in said["contents"]])
        people = tuple([Forgotten(**row) for row in said.get("forgotten", ())])
        known = KnownFiles(facts, said["judgments"], contents, people)
        rows: list[Any] = [*contents, *people]
        whole = all(isinstance(getattr(row, f.name), int | str) for row in rows for f in fields(row))
        if not whole or known.mark != said["mark"]:
            raise ValueError
    except FileNotFoundError:
        raise InputError(f"no file {path}, the list of known files that belongs to an export") from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"{path}: no list of known files of an export, or one that was changed") from None
    return known


HEAD = "catalogue.json"
"""Names the catalogue that last wrote into the folder, and its commit."""
LONGEST = 1 << 16


def belongs(target: Path, catalogue: Catalogue) -> None:
    """Refuse a catalogue whose folder was last written by another one. Errors: InputError, which says how to mend it.

    Stores of version 0.1 have no such sign; they get it by their next commit.
    """
    head = _head(target)
    facts = catalogue.facts
    if head is not None and head["commit"] not in (facts.commit, facts.previous):
        folder = parts_folder(target).name
        raise InputError(
            f"{target}: it is at revision {facts.revision:,}, and its folder {folder} was last written by revision "
            f"{head['revision']} of {head['catalogue']}: this catalogue is an older copy, or another one shares the "
            f"folder; put the other one back, or, to keep this one, copy the folder, remove {folder}/{HEAD} and verify"
        )


def claim(target: Path, catalogue: Catalogue) -> None:
    """Write down that a catalogue, which is in its place already, is the one that the folder belongs to."""
    facts = catalogue.facts
    head = {"catalogue": target.name, "revision": facts.revision, "commit": facts.commit}
    if facts.commit and _head(target) != head:
        files.write_new(
            parts_folder(target) / HEAD, lambda path: path.write_text(json.dumps(head) + "\n", encoding="utf-8")
        )


def _head(target: Path) -> dict[str, Any] | None:
    path = parts_folder(target) / HEAD
    try:
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode) or found.st_size > LONGEST:
            raise ValueError
        head: dict[str, Any] = json_value(path.read_bytes(), str(path))
        if set(head) != {"catalogue", "revision", "commit"}:
            raise ValueError
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, TypeError):
        raise InputError(
            f"{target}: {path.parent.name}/{HEAD}, which says whose folder it is, is damaged; remove it, then verify"
        ) from None
    return head
