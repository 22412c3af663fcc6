"""What a layout of a log is made of: the columns there, the way to read its rows, and what came out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from concordant.errors import InputError, Setting, few
from concordant.io.engines.counting import Counter
from concordant.io.log.formats import Empty, Log
from concordant.io.log.rows import Sought, find
from concordant.preferences.layouts import ALIASES, Layout, plain
from concordant.preferences.preferences import Preferences
from concordant.preferences.values import Reason, Reject, say
from concordant.progress import stage
from concordant.record import said_of

LACKING = {role: role for role in ("clicked", "judgment", "rank", "query (or user, or judgment)")} | {
    "session": "session (what was shown together; a number for each row where that was one item)"
}
"""What a layout may lack alone, all its other roles being there, and what it is; what tells nothing is left out."""

GRADED = frozenset({"label", "labels", "relevance", "rel", "grade"})
"""What a column of graded labels of items is called."""
MANY_OF = {"selections": "shown lists", "choices": "choices", "orders": "rankings", "ratings": "ratings"}
"""What judgments of each kind are called that have no weights."""


def lacking(attempts: Mapping[str, object]) -> list[str]:
    """Say which layouts lack one thing only, given what each lacks."""
    told = [(layout, str(what)) for layout, what in attempts.items()]
    return [f"{one} lacks {LACKING.get(what, what)}" for one, what in told if what in LACKING or " to go with " in what]


def weightless(name: str, kind: str, column: str) -> list[str | Setting]:
    """Say that judgments of a kind other than comparisons have no weights, and what they have."""
    text = f"{name}: weights are for comparisons only; {MANY_OF[kind]} have counts: whole numbers that say how often a "
    return [text + "row was seen are given as ", Setting("columns", column, key="count")]


def similar(columns: Sequence[str]) -> list[str | Setting]:
    """Say which columns seem to be meant, where names of roles stand in longer names; of several those of names."""
    label = next((column for column in columns if plain(column) in GRADED), None)
    if label is not None and {plain(column) for column in columns} & {*ALIASES["item"]}:
        as_ratings = Setting("columns", label, key="rating")
        return ["Graded labels are fitted to features with ", Setting("kind", "labels"), "; ", as_ratings,
                " reads them as ratings. "]  # fmt: skip
    for roles in (("winner", "loser"), ("left", "right"), ("item", "rank"), ("item", "rating")):
        found = [_containing(columns, role) for role in roles]
        meant = next((rest for rest in ("name", "id") if all(rest in one for one in found)), None)
        if meant is None and any(len(one) != 1 for one in found):
            continue
        chosen = [one[meant] if meant else next(iter(one.values())) for one in found]
        if chosen[0] != chosen[1] and chosen != [*roles]:
            one, other = (Setting("columns", column, key=role) for role, column in zip(roles, chosen, strict=True))
            return ["Perhaps ", one, " ", other, "? "]
    return []


def _containing(columns: Sequence[str], role: str) -> dict[str, str]:
    """The columns of whose names, taken apart into words, one is that of a role, by the other words."""
    parted = {column: plain(column).split("_") for column in columns}
    return {"_".join(word for word in words if word != role): name for name, words in parted.items() if role in words}


class NothingFits(InputError):
    """No layout fits the columns of a log."""


@dataclass(frozen=True)
class Reading:
    """What came out of a log: the preferences, the number of its rows, and what was refused.

    ``roles`` says which column was read as what; ``str(reject)`` says one reason in a sentence.
    """

    preferences: Preferences
    rows: int
    name: str
    roles: Mapping[str, str]
    rejects: tuple[Reject, ...] = ()
    usual: str | None = None
    """What it usually means in such a log that a ranking leaves items out."""
    rests: Mapping[str, Any] = field(default_factory=dict)
    """Of a store: its revision, the batches that were read, their first and last day."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know of how the log was read, and labels that look alike."""
        return self.preferences.notes

    @property
    def record(self) -> dict[str, Any]:
        """What stands of the log in the record of a run (``concordant.recording``)."""
        prefs = self.preferences
        return {
            "kind": str(prefs.kind),
            "columns": dict(self.roles),
            "rows": self.rows,
            "refused": said_of(self.rejects),
            "judgments": len(prefs),
            "queries": len(prefs.queries),
            "items": len(prefs.items),
            "notes": [getattr(note, "code", str(note)) for note in prefs.notes],
        }

    def report(self) -> str:
        """Return one line about all that was refused; empty when nothing was."""
        return say(self.name, self.rejects) if self.rejects else ""


@dataclass(frozen=True)
class Form:
    """A way to lay out judgments of one kind in rows: what it is recognised by, and how its rows are read.

    ``fit`` returns the column of each role, or what is missing. ``read`` takes the log and its engine, the columns, and
    what to do with lists of several clicks and with rows that cannot be understood; a row may be several entries.
    """

    kind: str
    known: str
    """The columns that it is recognised by, in words."""
    fit: Callable[[Columns, dict[str, str], str | None], dict[str, str] | str]
    """Of the columns there, the roles that were given and ``home``."""
    read: Callable[[Counter, Layout, str, str], Reading]


class Columns:
    """The columns of a log, looked up by alias; a column given for one role is not found again for another."""

    def __init__(self, columns: Sequence[str], taken: Sequence[str], name: str) -> None:
        self.all = tuple(columns)
        self.taken = set(taken)
        self.name = name

    def find(self, aliases: Sequence[str], role: str, *, several: bool = False) -> str | None:
        """Return the column that one of the aliases names, exactly or else in plain spelling."""
        exact = [alias for alias in aliases if alias in self.all and alias not in self.taken]
        joined = {alias.replace("_", "") for alias in aliases}
        loose = [c for c in self.all if c not in self.taken and plain(c).replace("_", "") in joined and c not in exact]
        found = exact or loose
        if len(found) > 1 and not several:
            raise InputError(
                f"{self.name}: {few(found)} could each be the {role}; say which one with ",
                Setting("columns", key=role),
            )
        return found[0] if found else None


def some(log: Log, total: int) -> None:
    """Refuse a log without rows."""
    if total == 0:
        raise Empty(f"{log.name}: there is a header but no rows" if log.path else f"{log.name}: there are no rows")


def places(counter: Counter, roles: Mapping[str, str], sought: list[Sought]) -> dict[Reason, Any]:
    """Return places and values of some of the rows that are sought."""
    log = counter.log
    columns = list(dict.fromkeys(roles.values()))
    with stage("looking for the lines of refused rows"):
        return find(counter.placed_rows(columns), roles, columns, sought, place=log.place, as_json=log.as_json)
