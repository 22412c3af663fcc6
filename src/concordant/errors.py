"""What can go wrong, as a tree of exceptions.

::

    ConcordantError(ValueError)       anything a user can mend; the command prints it as one line and exits with 2
    ├── InputError                    the log cannot be read, or rows of it cannot be understood
    ├── UsageError                    an option or an argument that is not allowed here
    └── CannotRank                    the data do not determine what was asked for
        └── NoMaximumLikelihood       plain maximum likelihood does not exist (names the items)
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = [
    *("CannotRank", "ConcordantError", "InputError", "NoMaximumLikelihood", "UsageError"),
    *("counted", "did_you_mean", "few"),
]


class ConcordantError(ValueError):
    """Base of all errors that concordant raises on purpose."""


class InputError(ConcordantError):
    """The log cannot be read, or rows of it cannot be understood."""


class UsageError(ConcordantError):
    """An option or an argument that is not allowed here."""


class CannotRank(ConcordantError):
    """The data do not determine what was asked for."""


class NoMaximumLikelihood(CannotRank):
    """Plain maximum likelihood does not exist on these data."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Say which known names there are, and the closest one first.

    >>> did_you_mean("bradly-terry", ["bradley-terry", "borda"])
    "did you mean 'bradley-terry'? Known: borda, bradley-terry."
    """
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"{hint}Known: {', '.join(names)}."


def few(names: Iterable[object], most: int = 8) -> str:
    """Join names for a message, the first ``most`` of them and the number of the others.

    >>> few(["a", "b", "c"], most=2)
    "'a', 'b' and 1 more"
    """
    listed = list(names)
    text = ", ".join(repr(name) for name in listed[:most])
    return text if len(listed) <= most else f"{text} and {len(listed) - most:,} more"


def counted(number: int, name: str) -> str:
    """Write a number with its noun.

    >>> counted(1, "queries"), counted(1200, "items"), counted(1, "distinct")
    ('1 query', '1,200 items', '1 distinct')
    """
    if number == 1 and name.endswith("ies") and name != "ties":
        name = name[:-3] + "y"
    elif number == 1 and name.endswith("s"):
        name = name[:-1]
    return f"{number:,} {name}"
