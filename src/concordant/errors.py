"""What can go wrong, as a tree of exceptions.

::

    ConcordantError(ValueError)       anything a user can mend; the command prints it as one line and exits with 2
    ├── InputError                    the log cannot be read, or rows of it cannot be understood
    ├── UsageError                    an option or an argument that is not allowed here
    │   ├── Idle                      one that would do nothing here: nothing reads it on the way that the others choose
    │   └── Unavailable               the surroundings fail: the disk, a lock, memory, a package; later it may work
    └── CannotRank                    the data do not determine what was asked for
        └── NoMaximumLikelihood       plain maximum likelihood does not exist (names the items)
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral
from types import MappingProxyType
from typing import Any, TypeVar

__all__ = [
    *("CannotRank", "ConcordantError", "Idle", "InputError", "NoMaximumLikelihood", "Unavailable", "UsageError"),
    *("refuse_idle", "Setting", "counted", "did_you_mean", "few", "in_order", "twice", "whole_number"),
]


_Name = TypeVar("_Name", str, int)
_Member = TypeVar("_Member")


@dataclass(frozen=True)
class Setting:
    """A parameter that a message asks for; a command writes it as the option that it is there.

    >>> str(Setting("kind")), str(Setting("clicks", "skip")), str(Setting("columns", key="query"))
    ('kind', "clicks='skip'", "columns={'query': …}")
    """

    name: str
    value: Any = None
    key: str = ""
    """The key that is asked for, of a parameter that takes a mapping."""
    of: str = ""
    """What is read, where it is not a log: "features"."""

    def __str__(self) -> str:
        if self.key:
            return f"{self.name}={{{self.key!r}: {'…' if self.value is None else repr(self.value)}}}"
        return self.name if self.value is None else f"{self.name}={self.value!r}"


class ConcordantError(ValueError):
    """Base of all errors that concordant raises on purpose. Its arguments are the parts of its sentence.

    >>> import concordant as cc
    >>> try:
    ...     cc.read("no-such-file.csv")
    ... except cc.ConcordantError as problem:
    ...     print(type(problem).__name__, problem)
    InputError no file no-such-file.csv
    """

    def __str__(self) -> str:
        return self.said()

    def said(self, write: Callable[[Setting], str] = str) -> str:
        """Return the sentence with its parameters as ``write`` writes them."""
        return "".join(
            write(part) if isinstance(part, Setting) else part.said(write) if hasattr(part, "said") else str(part)
            for part in self.args
        )


class InputError(ConcordantError):
    """The log cannot be read, or rows of it cannot be understood.

    >>> import concordant as cc
    >>> cc.read({"winner": ["a", "b"], "loser": ["b", None]})
    Traceback (most recent call last):
    concordant.errors.InputError: ...
    """


class UsageError(ConcordantError):
    """An option or an argument that is not allowed here.

    >>> import concordant as cc
    >>> cc.structure("bradly-terry")
    Traceback (most recent call last):
    concordant.errors.UsageError: unknown structure 'bradly-terry'; did you mean 'bradley-terry'? Known: ...
    """


class Idle(UsageError):
    """An option that would do nothing here: nothing reads it on the way that the others choose.

    ``option`` is its name, ``why`` says why nothing reads it, ``instead`` what to do.

    >>> import concordant as cc
    >>> cc.rank(cc.Preferences.from_comparisons(["a", "b"], ["b", "a"]), interval="hessian", replicates=50)
    Traceback (most recent call last):
    concordant.errors.Idle: replicates does nothing here: only the bootstrap draws replicates, ...
    """

    def __init__(self, option: str, why: str, instead: str = "leave it out") -> None:
        super().__init__(option, why, instead)  # as pickle gives them back
        self.option, self.why, self.instead = option, why, instead

    def said(self, write: Callable[[Setting], str] = str) -> str:
        """Return the sentence with its parameters as ``write`` writes them."""
        return f"{write(Setting(self.option))} does nothing here: {self.why}; {self.instead}"


class Unavailable(UsageError):
    """The surroundings fail, not the call: a full disk, no permission, another writer, a package that is not installed.

    The same call may work later, or elsewhere.

    >>> import concordant as cc
    >>> issubclass(cc.Unavailable, cc.UsageError)
    True
    """


def refuse_idle(given: Mapping[str, Any], usual: Mapping[str, Any], why: str, instead: str = "leave it out") -> None:
    """Refuse the first option that was given and would do nothing: whose value is not the ``usual`` one.

    >>> refuse_idle({"level": 0.9, "seed": 1}, {"level": 0.95}, "no interval is asked for")
    Traceback (most recent call last):
    concordant.errors.Idle: level does nothing here: no interval is asked for; leave it out
    """
    for name, value in usual.items():
        if given[name] != value:
            raise Idle(name, why, instead)


class CannotRank(ConcordantError):
    """The data do not determine what was asked for.

    >>> import concordant as cc
    >>> try:
    ...     cc.rank(cc.Preferences.from_comparisons(["a"], ["b"]), prior=0)
    ... except cc.CannotRank as problem:
    ...     print(str(problem)[:41])
    the maximum likelihood does not exist: no
    """


class NoMaximumLikelihood(CannotRank):
    """Plain maximum likelihood does not exist on these data.

    >>> import concordant as cc
    >>> cc.rank(cc.Preferences.from_comparisons(["a"], ["b"]), prior=0)
    Traceback (most recent call last):
    concordant.errors.NoMaximumLikelihood: the maximum likelihood does not exist: no chain of wins limits 'b' ...
    """


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Say which known names there are, and the closest one first.

    >>> did_you_mean("bradly-terry", ["bradley-terry", "borda"])
    "did you mean 'bradley-terry'? Known: borda, bradley-terry."
    """
    names = sorted(known)
    close = difflib.get_close_matches(str(name)[:200], names, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"{hint}Known: {', '.join(names)}."


def in_order(names: Iterable[str], members: Mapping[str, _Member]) -> Mapping[str, _Member]:
    """Return the members of a registry in the order of their names. Errors: one without a name there, or the reverse.

    >>> list(in_order(["b", "a"], {"a": 1, "b": 2}).items())
    [('b', 2), ('a', 1)]
    """
    named = list(names)
    if odd := {*named} ^ {*members}:
        raise LookupError(f"named and not registered, or the reverse: {few(sorted(odd))}")
    return MappingProxyType({name: members[name] for name in named})


def whole_number(value: object, what: str, least: int = 1, most: int = 1 << 31) -> int:
    """Return an option that has to be an integer from ``least`` to ``most``, or refuse it.

    >>> whole_number(3, "the number of folds")
    3
    """
    number = least - 1 if isinstance(value, bool) or not isinstance(value, Integral) else int(value)
    if number < least:
        raise UsageError(f"{what} must be an integer of at least {least}, not {str(repr(value))[:80]}")
    if number > most:
        raise UsageError(f"{what} must be at most {most:,}")
    return number


LONGEST = 64
"""Characters of a name that a message shows whole."""


def shown(name: object, longest: int = LONGEST) -> str:
    """Write a name for a message; a very long one by its beginning and its length.

    >>> shown("a"), len(shown("a" * 5000))
    ("'a'", 76)
    """
    text = repr(name)
    return text if len(text) <= longest else f"{text[: longest - 8]}… ({len(text) - 2:,} characters)"


def few(names: Iterable[object], most: int = 8) -> str:
    """Join names for a message, the first ``most`` of them and the number of the others.

    >>> few(["a", "b", "c"], most=2)
    "'a', 'b' and 1 more"
    """
    listed = list(names)
    longest = LONGEST if len(listed) <= 16 else LONGEST // 2
    text = ", ".join(shown(name, longest) for name in listed[:most])
    return text if len(listed) <= most else f"{text} and {len(listed) - most:,} more"


def twice(names: Iterable[_Name]) -> list[_Name]:
    """Return the names that are there more than once, sorted.

    >>> twice(["b", "a", "b"])
    ['b']
    """
    return sorted(name for name, times in Counter(names).items() if times > 1)


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
