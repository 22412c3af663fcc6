"""The mark that the fields of a table seem to be separated by, where it is another one than its ending says."""

from __future__ import annotations

from collections.abc import Sequence

MARKS = {";": "semicolons", "\t": "tabs", "|": "vertical bars", ",": "commas"}


def mark_of(columns: Sequence[str]) -> str:
    """Return the mark that stands between names in the heading of a table, not its own; nothing where none does.

    >>> mark_of(["a;b;c"]), mark_of(["a;b;c, if any", "day"]), mark_of(["a;b", "c", "d"]), mark_of(["a, b", "c"])
    (';', ';', '', '')
    """
    if len(columns) == 1:
        return next((mark for mark in MARKS if mark in columns[0]), "")
    several = [mark for mark in MARKS if mark not in ",|"]  # bars stand in names of metrics
    numbers = {mark: sum(name.count(mark) for name in columns) for mark in several}
    return next((mark for mark, number in numbers.items() if columns and number >= len(columns)), "")


def separated(columns: Sequence[str]) -> str:
    """Say, in brackets, what the fields seem to be separated by and what is to be done; nothing where all is well."""
    mark = mark_of(columns)
    return f" (fields seem to be separated by {mark!r}; a .csv file has commas, a .tsv file tabs)" if mark else ""
