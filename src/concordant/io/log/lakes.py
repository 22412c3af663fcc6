"""Which files a log of many files is: folders as they lie, patterns, and columns that stand in the names of folders."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from concordant.errors import InputError, few

UNFINISHED = ("._copying_", ".tmp", ".temp", ".inprogress", ".partial", ".part", ".filepart", ".crdownload", "~")
"""Endings of files that somebody still writes."""
CHECKSUM = ".crc"
NONE = "__HIVE_DEFAULT_PARTITION__"
"""How Hive and Spark write that a value is missing."""
DELTA = "_delta_log"
METADATA, DESCRIBES = "metadata", ".metadata.json"
"""The folder of an Iceberg table that says what it is, and the ending of the files in it that do."""


class Several(str):
    """The names of several files or folders that are one log, as one text, or what they are ``called`` together."""

    names: tuple[str, ...]

    def __new__(cls, names: Sequence[str], called: str = "") -> Several:
        shown = names if len(names) <= 3 else [*names[:2], f"{len(names) - 2:,} others"]
        made = super().__new__(cls, called or " + ".join(shown))
        made.names = tuple(names)
        return made


@dataclass(frozen=True)
class Found:
    """Files, in the order of their names, each with how it is called beside the others; and those not finished."""

    files: tuple[tuple[Any, str], ...] = ()
    """Paths, or files in an object store (``objects.Remote``)."""
    unfinished: tuple[str, ...] = ()


def is_hidden(name: str) -> bool:
    """Whether a file or a folder is no part of a log, as Hive and Spark have it: _SUCCESS, .part-0.crc, _temporary.

    >>> [is_hidden(name) for name in ("_SUCCESS", ".x.crc", "_day=1", "day=1")]
    [True, True, False, False]
    """
    return name.startswith(".") or (name.startswith("_") and "=" not in name) or name.endswith(CHECKSUM)


def kind_of_table(folder: Path) -> str:
    """Return whether a folder is that of a 'Delta' or an 'Iceberg' table; nothing of any other."""
    if (folder / DELTA).is_dir():
        return "Delta"
    metadata = folder / METADATA
    names = os.listdir(metadata) if metadata.is_dir() and os.access(metadata, os.R_OK) else []
    return "Iceberg" if any(name.endswith(DESCRIBES) for name in names) else ""


def among_others(folder: str, kind: str) -> InputError:
    """Say that a table with a log of its own lies among files."""
    article = "an" if kind == "Iceberg" else "a"
    return InputError(
        f"{folder}: {article} {kind} table among other files; its files alone do not say its rows: name it"
    )


def walked(folder: Path) -> Found:
    """Return the files in a folder and in the folders in it. Errors (InputError): a folder that cannot be read."""
    files, unfinished, seen = [], [], {os.path.realpath(folder)}

    def fail(error: OSError) -> None:
        raise InputError(f"{error.filename or folder}: {error.strerror or error}") from None

    for place, inside, names in os.walk(folder, onerror=fail, followlinks=True):
        here = Path(place)
        if (kind := kind_of_table(here)) and here != folder:
            raise among_others(str(here), kind)
        inside[:] = [name for name in inside if not is_hidden(name)]
        for name in list(inside):
            real = os.path.realpath(here / name)
            if real in seen:
                raise InputError(f"{here / name}: the folder stands in the log twice, by a link")
            seen.add(real)
        for name in names:
            path = here / name
            called = path.relative_to(folder).as_posix()
            if is_hidden(name):
                continue
            if name.lower().endswith(UNFINISHED):
                unfinished.append(called)
            else:
                files.append((path, called))
    return Found(tuple(sorted(files)), tuple(sorted(unfinished)))


def is_pattern(given: str) -> bool:
    """Whether a text is a pattern of names (``*``, ``?``, ``[``) and not itself the name of something."""
    return glob.has_magic(given) and not os.path.lexists(given)


def matched(given: str) -> Found:
    """Return the files that a pattern matches, and those in folders that it matches. Errors (InputError): none."""
    parts = given.split("/")
    base = next(place for place, part in enumerate(parts) if glob.has_magic(part))
    names = sorted(glob.glob(given, recursive=True))
    names = [name for name in names if not any(is_hidden(part) for part in name.rstrip("/").split("/")[base:])]
    if not names:
        folder = "/".join(parts[:base]) or ("/" if given.startswith("/") else ".")
        there = "" if os.path.isdir(folder) else f": there is no folder {folder}"
        raise InputError(f"no file matches {given}{there}")
    return together(_found(names))


def _found(names: Iterable[str]) -> Iterator[Found]:
    for name in names:
        if os.path.isdir(name):
            inside = walked(Path(name))
            root = name.rstrip("/")
            yield Found(
                tuple([(path, f"{root}/{called}") for path, called in inside.files]),
                tuple([f"{root}/{called}" for called in inside.unfinished]),
            )
        elif name.lower().endswith(UNFINISHED):
            yield Found(unfinished=(name,))
        else:
            yield Found(((Path(name), name),))


def together(found: Iterable[Found]) -> Found:
    """Return files of several places, each once, in the order of their names."""
    all_of = list(found)
    files = {os.path.abspath(path): (path, called) for one in all_of for path, called in one.files}
    return Found(
        tuple(sorted(files.values())),
        tuple(dict.fromkeys(name for one in all_of for name in one.unfinished)),
    )


def folder_columns(path: str) -> tuple[tuple[str, str | None], ...]:
    """Return the columns that a file has by the names of its folders, and their values, which are texts.

    Errors (InputError): one column twice; a name that is no Unicode.

    >>> folder_columns("lake/day=2026-11-25/lang=pt%2FBR/kind=__HIVE_DEFAULT_PARTITION__/part-0.parquet")
    (('day', '2026-11-25'), ('lang', 'pt/BR'), ('kind', None))
    """
    found: dict[str, str | None] = {}
    for part in path.split("/")[:-1]:
        name, mark, value = part.partition("=")
        name = unquote(name)
        if not mark or not name:
            continue
        if name in found:
            raise InputError(f"{path}: two of its folders say what {name!r} is")
        found[name] = None if value in (NONE, "") else unquote(value)
    for text in (*found, *found.values()):
        try:
            (text or "").encode()
        except UnicodeEncodeError:
            raise InputError(f"{path!a}: the name of a folder has invalid encoding (no UTF-8)") from None
    return tuple(found.items())


def packed_twice(names: Iterable[str]) -> str:
    """Return what is said of files of which one seems to be another one, packed; nothing where there are none."""
    there = {*names}
    both = [name for name in sorted(there) if f"{name}.gz" in there]
    return few([f"{name} and {name}.gz" for name in both], 3) if both else ""
