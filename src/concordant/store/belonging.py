"""To which catalogue a folder of segments belongs: two catalogues never write into one folder.

The folder says which commit last wrote there. A catalogue that is not of this commit, nor of the one before it (its
writer was killed in between), is an older copy, or was written on elsewhere: nothing is read or removed by it.
"""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

from concordant.errors import InputError
from concordant.json_values import json_value
from concordant.store import files
from concordant.store.catalogue import Catalogue, parts_folder

__all__ = ["HEAD", "belongs", "claim"]

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
