"""What earlier runs on this machine took: a small file that makes the time left of the next one right.

It holds durations of pieces of work and no word of a log: which command and options they were of stands there as a
hash. ``CONCORDANT_DURATIONS`` names another file than ``durations.json`` in the folder of the user; empty: none is read
or written. A file that cannot be read or written changes nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import click

from concordant.apps.commands.saying import one_line
from concordant.errors import ConcordantError
from concordant.io.log.disk import in_place_of
from concordant.time_left import Before

WHERE = "CONCORDANT_DURATIONS"
"""The variable that names another file; empty: none."""
LAYOUT = 1
BEGINS = b'{"layout": '
"""How the file begins."""
LONGEST = 1e9
"""Seconds beyond which a number makes no sense."""
OF_ONE, ALL = 5, 100
"""Runs that are kept of one command with the same options, and in all."""
LARGEST = 1 << 22
OUTPUTS = {"output", "summary", "paths", "statistics", "quiet"}
"""Options that do not say what is read."""
DATE, NUMBERS = re.compile(r"\d{4}-?\d\d(-?\d\d)?([T ][\d:.]+Z?)?"), re.compile(r"[-+\d.,eE ]+")
"""What days and times look like, and numbers."""
Options = Mapping[str, Any]


def before(command: str, options: Options) -> tuple[Before, ...]:
    """Return the earlier runs of a command with such options, the last one first."""
    key, inputs = _key(command, options), _inputs(options)
    names = dict(_files(options))
    found = []
    for one in _kept():
        with suppress(KeyError, TypeError, ValueError, AttributeError, OverflowError):
            if one["key"] == key and 0.01 < one["slower"] < 100:
                thought = {_said(at, names): _numbers(each, names) for at, each in one["thought"].items()}
                took, after = _numbers(one["took"], names), _numbers(one["after"], names)
                course = {_said(at, names): _steps(each) for at, each in one["course"].items()}
                began = {_said(at, names): int(times) for at, times in one["began"].items()}
                known = _numbers(one["known"], names, 1e30)
                same, size = one["inputs"] == inputs, _numbers({"": one["size"]}, {}, 1e30)[""]
                found.append(Before(thought, took, after, course, began, known, float(one["slower"]), same, size))
    return tuple(found)


def keep(command: str, options: Options, run: Before) -> None:
    """Keep what a run took."""
    place = _place()
    if place is None or not _ours(place):
        return
    names = dict(_files(options))

    def rounded(seconds: Mapping[str, float]) -> dict[str, float]:
        return {_unsaid(name, names): float(f"{value:.4g}") for name, value in seconds.items()}

    one = {"key": _key(command, options), "inputs": _inputs(options), "slower": round(run.slower, 3), "size": run.size}
    one |= {"took": rounded(run.took), "after": rounded(run.after)}
    course = {_unsaid(at, names): [[round(x, 4) for x in step] for step in each] for at, each in run.course.items()}
    one |= {"known": rounded(run.known), "began": {_unsaid(at, names): times for at, times in run.began.items()}}
    one |= {"course": course, "thought": {_unsaid(at, names): rounded(each) for at, each in run.thought.items()}}
    kept = [one]
    for other in _kept():
        alike = sum(each.get("key") == other.get("key") for each in kept)
        kept += [other] if alike < OF_ONE and len(kept) < ALL else []
    with suppress(OSError, ValueError, ConcordantError):  # what is said to be left is not worth a word of trouble
        place.parent.mkdir(parents=True, exist_ok=True)
        with in_place_of(str(place), WHERE) as temporary:
            temporary.write_text(json.dumps({"layout": LAYOUT, "runs": kept}), encoding="utf-8")


def size_of_files(options: Options) -> float:
    """Bytes of the files that are read, as far as they are files."""
    read = {file for name, file in _files(options) if name.split(" ")[0] not in OUTPUTS}
    found = 0.0
    for file in read:
        with suppress(OSError, ValueError):
            found += os.path.getsize(file) if os.path.isfile(file) else 0.0
    return found


def _place() -> Path | None:
    given = os.environ.get(WHERE)
    if given is not None:
        return Path(given) if given else None
    return Path(click.get_app_dir("concordant")) / "durations.json"


def _ours(place: Path) -> bool:
    """Whether a file is not there, is empty, or begins as one of ours: no other is replaced."""
    try:
        if not place.exists():
            return True
        if not place.is_file():
            return False
        with place.open("rb") as file:
            return file.read(len(BEGINS)) in (b"", BEGINS)
    except (OSError, ValueError):
        return False


def _kept() -> list[dict[str, Any]]:
    place = _place()
    with suppress(OSError, ValueError, RecursionError, KeyError, TypeError):
        if place is not None and place.is_file() and place.stat().st_size <= LARGEST:
            found = json.loads(place.read_bytes())
            if found["layout"] == LAYOUT:
                return [one for one in found["runs"] if isinstance(one, dict)]
    return []


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, default=str).encode()).hexdigest()[:16]


def _key(command: str, options: Options) -> str:
    """A command and its options; of files what kind they are, of several that of the first; no dates: days go by."""

    def kind(value: Any) -> Any:
        if isinstance(value, list | tuple):
            files = [one for one in value if isinstance(one, str) and _is_file(one)]
            return [kind(one) for one in (files[:1] if files else value)]
        if not isinstance(value, str):
            return value
        return Path(value).suffix.lower() if _is_file(value) else DATE.sub("#", value)

    return _hash([command, sorted((name, kind(value)) for name, value in options.items() if name != "quiet")])


def _inputs(options: Options) -> str:
    """What is read, by its name."""
    return _hash(sorted((name, file) for name, file in _files(options) if name.split(" ")[0] not in OUTPUTS))


def _is_file(value: str) -> bool:
    """Whether a word looks like the name of a file; numbers, alone or in a row, do not."""
    return any(one in value for one in "/\\.") and not NUMBERS.fullmatch(value)


def _files(options: Options) -> Iterator[tuple[str, str]]:
    """Yield the files that options name; of several each by its place."""
    for name, value in options.items():
        each = value if isinstance(value, list | tuple) else [value]
        for place, one in enumerate(each):
            if isinstance(one, str) and _is_file(one):
                yield (name if len(each) == 1 else f"{name} {place}"), one_line(one)


def _unsaid(piece: str, files: Mapping[str, str]) -> str:
    """The name of a piece of work without those of files."""
    for name, file in sorted(files.items(), key=lambda each: -len(each[1])):
        piece = piece.replace(file, f"<{name}>")
    return piece


def _said(piece: str, files: Mapping[str, str]) -> str:
    for name, file in files.items():
        piece = piece.replace(f"<{name}>", file)
    return piece


def _numbers(seconds: Mapping[str, Any], files: Mapping[str, str], most: float = LONGEST) -> dict[str, float]:
    found = {_said(name, files): float(value) for name, value in seconds.items()}
    if not all(0 <= value <= most for value in found.values()):
        raise ValueError("no durations")
    return found


def _steps(course: Sequence[Sequence[float]]) -> list[tuple[float, float]]:
    found = [(float(share), float(seconds)) for share, seconds in course]
    shares, seconds = zip((0.0, 0.0), *found, strict=True)
    if any(b <= a for a, b in pairwise(shares)) or any(b < a for a, b in pairwise(seconds)):
        raise ValueError("steps go back")
    return found
