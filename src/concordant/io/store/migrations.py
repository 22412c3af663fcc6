"""Older catalogues brought up to today's format, one version at a time.

A reader does it in memory; the next commit writes the result. Segments are the same in all versions.

Format 1 (0.1.0) did not write down which column the queries came from, nor which side was at home where, and knew how a
batch was read, not each of its contents. What it does not say is unknown until the next log settles it.

Format 2 (0.2) knew no days of batches and took nothing out; its compaction merged segments for good, so batches that it
merged can only be taken out together.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from concordant.errors import InputError
from concordant.io.log.json_values import json_value

FORMAT = 3
"""The format of catalogues that are written; what is newer is refused."""

Tables = dict[str, list[dict[str, Any]]]
Facts = dict[str, str]
Migration = Callable[[Facts, Tables], None]

UNKNOWN = "?"
"""A fact that an older format did not write down; the next log settles it."""


def _from_1(facts: Facts, tables: Tables) -> None:
    read = {row["batch"]: json_value(row["options"], "the options of a batch") for row in tables["batches"]}
    for row in tables["contents"]:
        row |= {"again": "", "options": json.dumps(read.get(row["batch"], {}), ensure_ascii=False)}
    for name, value in {"commit": "", "previous": "", "query": UNKNOWN}.items():
        facts.setdefault(name, value)
    first: dict[str, Any] = next(iter(read.values()), {})
    if "home" not in json_value(facts["covariates"], "the list of covariates"):
        return
    facts.setdefault("home", first.get("home", UNKNOWN))
    facts.setdefault("neutral", first.get("columns", {}).get("neutral", UNKNOWN))


def _from_2(facts: Facts, tables: Tables) -> None:
    facts.setdefault("keep", "0")
    for row in tables["batches"]:
        row |= {"day": "", "sign": "", "forgotten": 0}
    tables |= {"sums": [], "removed": [], "forgotten": []}


MIGRATIONS: dict[int, Migration] = {1: _from_1, 2: _from_2}
"""A version and what makes the next one of its facts and tables."""


def newer(facts: Facts) -> bool:
    """Whether a catalogue has a format of which this version knows nothing."""
    return facts["format"].isdecimal() and int(facts["format"]) > FORMAT


def migrated(facts: Facts, tables: Tables, name: str) -> Tables:
    """Bring facts (in place) and tables of a catalogue up to today's format.

    Errors (InputError): a newer format, one that is no number, or one that nothing is known of.
    """
    said = facts["format"]
    version = int(said) if said.isdecimal() else None
    if newer(facts):
        raise InputError(
            f"{name}: a store of format {version}, written by concordant {facts.get('by', '?')}; this version reads "
            f"formats up to {FORMAT}: install a newer concordant"
        )
    while version != FORMAT:
        if version not in MIGRATIONS:
            raise InputError(f"{name}: a store of unknown format {said!r}")
        MIGRATIONS[version](facts, tables)
        version += 1
    facts["format"] = str(FORMAT)
    return tables
