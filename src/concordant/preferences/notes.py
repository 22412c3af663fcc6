"""Notes: what a reader of a result should know, as records that print as sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from concordant.errors import ConcordantError, Setting, counted, few

if TYPE_CHECKING:  # the help of commands is quick without NumPy
    import numpy as np
    from numpy.typing import NDArray

MOST = 8
"""Items that a note names; how many others there are is its number ``others``."""


class _Whole(int):
    """A whole number in a sentence: with a noun ("1 query"), or as the choice between the words for one and several."""

    def __format__(self, spec: str) -> str:
        one, bar, several = spec.partition("|")
        if bar:
            return one if self == 1 else several
        return counted(int(self), spec) if spec.replace(" ", "").isalpha() else format(int(self), spec)


class Note(str):
    """A sentence that a reader of a result should know, and what it is made of.

    ``code`` names what is said, whatever the data; ``numbers`` are its numbers by name, ``items`` and ``query`` whom it
    is about. Their names stand in ``text`` in braces. A whole number takes a noun, or two words for one and several.
    ``of`` is the number of all queries. A ``Setting`` is a parameter, which a command writes as its option.

    >>> text = "{fits:fits} {fits:is|are} unfinished; ask for {ask}"
    >>> note = Note("unfinished", text, fits=1, ask=Setting("interval", "bootstrap"))
    >>> note, note.code, note.numbers["fits"]
    ("1 fit is unfinished; ask for interval='bootstrap'", 'unfinished', 1)
    >>> note.said(lambda setting: f"another {setting.name}")
    '1 fit is unfinished; ask for another interval'
    """

    code: str
    text: str
    items: tuple[Any, ...]
    query: Any
    numbers: Mapping[str, Any]

    def __new__(cls, code: str, text: str, *, items: Iterable[Any] = (), query: Any = None, **numbers: Any) -> Note:
        named = tuple(dict.fromkeys(items))
        made = super().__new__(cls, _said(text, named, query, numbers, str))
        made.code, made.text, made.items, made.query, made.numbers = code, text, named, query, numbers
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.code, self.text, self.items, self.query, dict(self.numbers))

    def said(self, write: Callable[[Setting], str] = str) -> str:
        """Return the sentence with its parameters as ``write`` writes them."""
        return _said(self.text, self.items, self.query, self.numbers, write)


def _again(code: str, text: str, items: tuple[Any, ...], query: Any, numbers: Mapping[str, Any]) -> Note:
    return Note(code, text, items=items, query=query, **numbers)


def _said(
    text: str, items: tuple[Any, ...], query: Any, numbers: Mapping[str, Any], write: Callable[[Setting], str]
) -> str:
    def value(one: Any) -> Any:
        if isinstance(one, Setting):
            return write(one)
        if isinstance(one, ConcordantError | Note):
            return one.said(write)
        return _Whole(one) if isinstance(one, int) else one

    whose = "" if query is None else f" of query {query!r}"
    shown = few([*items, *[None] * int(numbers.get("others", 0))], most=max(len(items), 1))
    values = {name: value(one) for name, one in numbers.items()}
    return text.format_map(values | {"items": shown, "query": whose})


def of_queries(code: str, which: NDArray[np.bool_], text: str, **numbers: Any) -> tuple[Note, ...]:
    """Return a note that says something of the queries that are marked, or nothing where none is.

    >>> import numpy as np
    >>> of_queries("ties", np.array([True, False]), "{queries:has|have} ties"), of_queries("odd", np.zeros(2, bool), "")
    (('1 of 2 queries has ties',), ())
    """
    text = "{of:the query|{queries:,} of {of:,} queries} " + text
    return (Note(code, text, queries=int(which.sum()), of=len(which), **numbers),) if which.any() else ()


def added_up(notes: Iterable[str], of: int) -> tuple[str, ...]:
    """Return notes on parts of the queries as notes on all ``of`` of them, each once.

    Of notes that say the same, whole numbers are added, of other numbers the largest is kept.

    >>> import numpy as np
    >>> parts = [*of_queries("odd", np.array([True, True, False]), "{queries:is|are} odd")] * 2
    >>> added_up([*parts, "as it is", "as it is"], 6)
    ('4 of 6 queries are odd', 'as it is')
    """
    found: dict[Any, str] = {}
    for note in notes:
        key: Any = note
        if isinstance(note, Note):
            fixed = [(name, str(one)) for name, one in note.numbers.items() if not isinstance(one, int | float)]
            key = (note.code, note.text, note.query, *fixed)
            before = found.get(key)
            note = _sum(before if isinstance(before, Note) else None, note, of)
        found[key] = note
    return tuple(found.values())


def _sum(one: Note | None, other: Note, of: int) -> Note:
    numbers, items = dict(other.numbers), other.items
    if one is not None:
        for name, value in one.numbers.items():
            if isinstance(value, int | float):
                numbers[name] = value + numbers[name] if isinstance(value, int) else max(value, numbers[name])
        items = tuple(dict.fromkeys(one.items + other.items))
    if len(items) > MOST:
        numbers["others"] = numbers.get("others", 0) + len(items) - MOST
    if "of" in numbers:
        numbers["of"] = of
    return Note(other.code, other.text, items=items[:MOST], query=other.query, **numbers)
