"""What was found of a file, as sentences and as plain data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Examination:
    """What a file is, whether something can be done with it, and what.

    ``found`` are facts by name, as sentences; ``numbers`` the same as numbers. ``commands`` are ready to paste, each
    with what it is for.

    >>> seen = Examination("x.csv", "nothing that is known", stops=["It has one column."])
    >>> print("\\n".join(seen.lines()))
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
            ("What stops it", self.stops),
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
