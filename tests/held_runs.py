"""Runs of drawn commands in this process, and what every one of them must hold."""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hostile import Case, read_and_written
from running import exit_status

__all__ = ["LONGEST", "check_words", "elsewhere", "run", "snapshot", "unasked"]

LONGEST = 30.0
"""Seconds of the processor that no case may take; nearly all take less than a tenth of one."""


def run(case: Case, folder: Path) -> tuple[int, str]:
    """Run a case inside a folder, hold all that is promised against what happened; return status and stderr."""
    for name, data in case.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    before, began = snapshot(folder), time.process_time()
    with elsewhere(folder) as (said, scratch):
        status = exit_status(*case.arguments)
        took = time.process_time() - began
        left = [path.name for path in scratch.rglob("*")]
    text = said.getvalue().decode("utf-8", "surrogateescape")
    check_words(status, text)
    assert unasked(case, before, snapshot(folder), done=status == 0 or ": taken in, " in text) == set(), text
    assert left == [], f"temporary files {left}\n{text}"
    assert took < LONGEST
    return status, text


def check_words(status: int, text: str) -> None:
    """Status 0 without an error, or status 2 with one line that says what is wrong."""
    lines = [line for line in text.split("\n") if line]
    as_json = lines[-1:] and lines[-1].startswith("{")
    errors = [line for line in lines if (json.loads(line)["level"] == "error" if as_json else line[:7] == "error: ")]
    assert status in (0, 2), text
    assert len(errors) == (status == 2), text
    assert "Traceback" not in text
    assert all(len(line) < 3000 for line in errors)
    assert all(character.isprintable() for line in lines for character in line), text


def unasked(case: Case, before: dict[str, str], after: dict[str, str], *, done: bool) -> set[str]:
    """Return what was changed although the command line does not name it as an output, or names it as an input too.

    ``done`` says that the command succeeded, at least in part: of several logs those before a bad one are in the
    store. Else nothing may change.
    """
    changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    if not done:
        return changed
    read, written = read_and_written(case.arguments)
    written |= case.named
    asked = {name for name in changed if any(_inside(name, one) or _inside(one, name) for one in written)}
    return (changed - asked) | {name for name in asked & {*before} if any(_inside(name, one) for one in read)}


def _inside(name: str, named: str) -> bool:
    return name == named or name.startswith(f"{named}/")


def snapshot(folder: Path) -> dict[str, str]:
    """The names below a folder, with the hashes of the files."""
    return {
        path.relative_to(folder).as_posix(): "" if path.is_dir() else hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
    }


@contextmanager
def elsewhere(folder: Path) -> Iterator[tuple[io.BytesIO, Path]]:
    """Work in a folder, with temporary files and what is said kept apart."""
    here, out, words = os.getcwd(), (sys.stdout, sys.stderr), io.BytesIO()
    with tempfile.TemporaryDirectory() as scratch:
        tempfile.tempdir = scratch
        os.chdir(folder)
        spoken = io.TextIOWrapper(words, encoding="utf-8", errors="surrogateescape", write_through=True)
        sys.stdout, sys.stderr = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), spoken
        try:
            yield words, Path(scratch)
        finally:
            spoken.detach()  # else it closes what it wrote to
            (sys.stdout, sys.stderr), tempfile.tempdir = out, None
            os.chdir(here)
