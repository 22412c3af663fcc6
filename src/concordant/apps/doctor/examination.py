"""What was found of a file, as sentences and as plain data."""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(repr=False)
class Examination:
    """What a file is, whether something can be done with it, and what.

    Printed it is what ``concordant doctor`` prints; ``to_dict()`` is all of it as plain data.

    Parameters
    ----------
    name : of the file.
    what : it is, in words.
    usable : whether something can be done with it.
    found : facts by name, as sentences.
    supports : what can be learned from it.
    stops : what stops it, or has to be settled.
    notes : what else is worth knowing.
    commands : to run next, ready to paste, each with what it is for.
    numbers : the facts as numbers.

    >>> seen = Examination("x.csv", "nothing that is known", stops=["It has one column."])
    >>> print(seen)
    x.csv: nothing that is known
    <BLANKLINE>
    What stops it
      It has one column.
    """

    name: str
    what: str
    usable: bool = False
    found: list[tuple[str, str]] = field(default_factory=list)
    supports: list[str] = field(default_factory=list)
    stops: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    commands: list[tuple[str, str]] = field(default_factory=list)
    numbers: dict[str, Any] = field(default_factory=dict)

    def lines(self) -> Iterator[str]:
        """Yield the lines for a person to read."""
        yield f"{self.name}: {self.what}"
        width = max([len(name) for name, _ in self.found], default=0)
        parts = (
            ("What is there", [f"{name:<{width}}  {said}" for name, said in self.found]),
            ("What it supports", self.supports),
            ("What to settle" if self.usable else "What stops it", self.stops),
            ("Worth knowing", self.notes),
        )
        for title, said in parts:
            if said:
                yield from ("", title, *(f"  {one}" for one in said))
        if self.commands:
            yield from ("", "Next")
            for command, purpose in self.commands:
                yield f"  # {purpose}"
                yield f"  {command}"

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def __repr__(self) -> str:
        return f"Examination({self.name}: {self.what})"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {
            "file": self.name,
            "what": self.what,
            "usable": self.usable,
            "found": dict(self.found),
            "supports": self.supports,
            "stops": self.stops,
            "notes": self.notes,
            "commands": [{"command": command, "for": purpose} for command, purpose in self.commands],
            "numbers": self.numbers,
        }
