"""Older catalogues brought up to today's format, one version at a time.

A reader does it in memory; the next commit writes the result. Segments are the same in all versions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from concordant.errors import InputError

__all__ = ["FORMAT", "MIGRATIONS", "migrated"]

FORMAT = 1
"""The format of catalogues that are written; what is newer is refused."""

Tables = dict[str, list[dict[str, Any]]]
Facts = dict[str, str]
Migration = Callable[[Facts, Tables], None]

MIGRATIONS: dict[int, Migration] = {}
"""A version and what makes the next one of its facts and tables."""


def migrated(facts: Facts, tables: Tables, name: str) -> Tables:
    """Bring facts (in place) and tables of a catalogue up to today's format.

    Errors (InputError): a newer format, one that is no number, or one that nothing is known of.
    """
    said = facts["format"]
    version = int(said) if said.isdecimal() else None
    if version is not None and version > FORMAT:
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
