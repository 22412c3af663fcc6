"""Which layout of evaluations a file or a folder has, by what stands in it, never by what it is called."""

from __future__ import annotations

import hashlib
import itertools
import os
import shlex
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from concordant.errors import ConcordantError, InputError, counted
from concordant.io.engines.counting import with_columns
from concordant.io.log.formats import Log, locate
from concordant.io.log.headers import sniffed
from concordant.io.log.json_values import json_value
from concordant.io.log.lakes import kind_of_table
from concordant.io.published.documents import Head, head_of
from concordant.io.published.harnesses import LAYOUTS, read_inspect
from concordant.io.published.published import Layout, Published, Scores, Votes
from concordant.io.published.tables import appraise, mqm, spaced_scores
from concordant.io.published.votes import VOTES, one_hot, wmt_rankings

TABLES = ("csv", "tsv", "json", "parquet", "arrow", "stream")
BESIDE = (".json", ".jsonl", ".eval")
MOST = 50_000
"""Files and folders inside a folder that are looked at."""


def recognised(log: Log, keep: Sequence[str] = ()) -> Published | None:
    """Return a file of one of the published layouts, read; None for any other. ``keep`` are columns to keep of votes.

    Tables of scores that no layout is known for are left to ``score_tables.tabled``: a log of votes goes first.
    Errors (InputError): a file of a layout that cannot be understood.
    """
    if log.parts or log.on_spark or (log.path is None and log.format != "stream"):
        return None
    log = sniffed(log)
    if log.format == "json":
        head = head_of(log)
        if head is not None:
            layout = _layout(head)
            if layout is not None:
                return _read([(log, head)], layout, layout.reader(log.name))
    if log.format not in TABLES:
        return None
    if log.format != "json":
        if (found := appraise(log)) is not None:
            return found
        log = with_columns(log)
    elif head is None or head.form == "document":
        return None
    else:
        log = replace(log, columns=tuple(head.first), array=head.form == "array")
    readers = (lambda one: one_hot(one, keep), wmt_rankings, mqm, spaced_scores)
    return next((found for read in readers if (found := read(log)) is not None), None)


def found_in(source: str | os.PathLike[str] | Log) -> Published | None:
    """Return what a file of a published layout holds, or the files of a folder; None where it is none of that.

    Of scores the table has the columns system, task, score and, where a system has several scores on a task, trial;
    what was chosen and left out stands in ``told``. Errors (InputError): no such file, or a file of a known layout that
    cannot be understood.
    """
    if not isinstance(source, Log):
        path = Path(source)
        if path.is_dir():
            return of_folder(path)
        if path.is_file() and (zipfile.is_zipfile(path) or path.suffix.lower() == ".eval"):
            return of_archive(path)
        source = locate(source)
    return recognised(source)


def refusal(found: Published, name: str) -> InputError:
    """Return the error that says so where votes are asked for and there are scores."""
    if found.systems < 2:
        return InputError(
            f"{name} holds the {found.size} ({found.layout}); a ranking needs two: put such files into a folder, and "
            "run: concordant scores FOLDER"
        )
    return InputError(
        f"{name} holds {found.size} ({found.layout}), no votes; run: concordant scores {shlex.quote(name)}"
    )


# -- several files -----------------------------------------------------------------------------------------------------
def _layout(head: Head) -> Layout | None:
    return next((layout for layout in (*LAYOUTS, *VOTES) if layout.known(head)), None)


def _read(files: Sequence[tuple[Log, Head]], layout: Layout, taken: Scores | Votes) -> Published:
    for log, head in files:
        try:
            layout.read(log, head, taken)
        except (AttributeError, TypeError, KeyError, IndexError) as error:
            raise InputError(f"{log.name}: looks like {layout.name}, and cannot be read as that ({error})") from None
    return taken.published(layout)


def of_folder(folder: Path) -> Published | None:
    """Return what all files of one layout in a folder and the folders in it hold; None where there are none.

    Of a harness that writes both, scores of samples go before their means. Errors (InputError): files of several
    harnesses.
    """
    if kind_of_table(folder):
        return None
    name = folder.name or str(folder)
    found: dict[str, list[tuple[Log, Head]]] = {}
    by_name = {layout.name: layout for layout in (*LAYOUTS, *VOTES)}
    archives, others = [], []
    for path in _files(folder):
        if path.suffix.lower() == ".eval":
            archives.append(path)
            continue
        try:
            log = replace(locate(path), name=str(path.relative_to(folder)))
            head = head_of(log) if log.path is not None else None
        except ConcordantError:
            head = None
        layout = None if head is None else _layout(head)
        if head is None or layout is None or layout.alone:
            others.append(path.name)
        else:
            found.setdefault(layout.name, []).append((log, head))
    if archives:
        found.setdefault("Inspect log", [])
    if not found:
        return None
    families: dict[str, list[str]] = {}
    for one in found:
        families.setdefault(by_name[one].family or one, []).append(one)
    if len(families) > 1:
        raise InputError(f"{name}: the folder holds files of several kinds ({'; '.join(found)}); name one of one kind")
    chosen = by_name[max(found, key=lambda one: by_name[one].grain)]
    taken = chosen.reader(name)
    if len(found) > 1:
        taken.say("{names}: they say more than the means beside them, which are left out", chosen.name)
    copies, files = _once([*archives, *(Path(log.paths[0]) for log, _ in found[chosen.name])], chosen.named)
    if copies:
        taken.say(
            "files that equal another one, byte by byte, are read once: {names}",
            f"{len(copies):,}, such as {copies[0]}",
        )
    for path in archives:
        if path in files and isinstance(taken, Scores):
            read_inspect(_archived(path), taken)
    taken.places = _places(folder, files)
    taken.say(f"{counted(len(files), 'files')} {'is' if len(files) == 1 else 'are'} read together")
    unknown = [one for one in others if one not in ("model_meta.json", "run_spec.json", "scenario.json")]
    if unknown:
        taken.say("files of other kinds are not read: {names}", f"{len(unknown):,}, such as {sorted(unknown)[0]}")
    kept = [(replace(log, name=f"{name}: {log.name}"), head) for log, head in found[chosen.name] if log.path in files]
    return _read(kept, chosen, taken)


def _places(folder: Path, files: set[Path]) -> dict[Path, str]:
    """Return what tells files apart: the folder of which each has its own, else the uppermost that differs.

    Where all lie in one folder there is none: what a file is called is for its layout to say.
    """
    parts = {path: path.relative_to(folder).parts[:-1] for path in files}
    depth = min((len(one) for one in parts.values()), default=0)
    names = [{path: one[level] for path, one in parts.items()} for level in range(depth)]
    differ = [one for one in names if len({*one.values()}) > 1]
    return next((one for one in differ if len({*one.values()}) == len(files)), differ[0] if differ else {})


def _once(paths: Sequence[Path], named: str) -> tuple[list[str], set[Path]]:
    """Return the names of files that say the same of the same system as one before, byte by byte; and the others."""
    seen: dict[tuple[bytes, Path | None], Path] = {}
    copies = []
    for path in paths:
        with path.open("rb") as file:
            of = {"inside": None, "folder": path.parent, "file": path}[named]
            key = (hashlib.file_digest(file, "sha256").digest(), of)
        if seen.setdefault(key, path) is not path:
            copies.append(path.name)
    return copies, {*seen.values()}


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(itertools.islice(folder.rglob("*"), MOST)):
        endings = [one.lower() for one in path.suffixes[-2:]]
        ending = endings[-2] if endings[-1:] == [".gz"] and len(endings) > 1 else (endings[-1] if endings else "")
        if ending in BESIDE and path.is_file() and not path.name.startswith("_") and path.stat().st_size:
            yield path


def of_archive(path: Path) -> Published | None:
    """Return the scores of an archive of Inspect (.eval); None where it is none."""
    try:
        with zipfile.ZipFile(path) as archive:
            if not {"header.json", "_journal/start.json"} & {*archive.namelist()}:
                return None
    except zipfile.BadZipFile as error:
        raise InputError(f"{path.name}: an archive of Inspect (.eval) that is cut or damaged: {error}") from None
    scores = Scores(path.name)
    read_inspect(_archived(path), scores)
    return scores.published("Inspect log")


def _archived(path: Path) -> dict[str, Any]:
    """Return an archive of Inspect as the document that its other form of log is."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            start = "header.json" if "header.json" in names else "_journal/start.json"
            whole: dict[str, Any] = json_value(archive.read(start), f"{path.name}: {start}", constants=True)
            samples = [one for one in names if one.startswith("samples/") and one.endswith(".json")]
            whole["samples"] = [json_value(archive.read(one), f"{path.name}: {one}", constants=True) for one in samples]
    except (zipfile.BadZipFile, NotImplementedError, OSError, KeyError, TypeError) as error:
        raise InputError(f"{path.name}: the archive cannot be read: {error}") from None
    if not isinstance(whole.get("eval"), dict):
        raise InputError(f"{path.name}: an archive, but no log of Inspect")
    return whole
