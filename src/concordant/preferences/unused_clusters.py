"""The note on columns that say who judged, or what was asked, and are not used; of these as many as can be."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from concordant.errors import Setting, shown
from concordant.preferences.notes import Note

UNUSED = "unused cluster"
"""The code of the note that speaks of such columns."""


def unused_clusters(log: str, found: Mapping[str, str], there: tuple[str, ...] = ()) -> Note:
    """Return the note on columns (and what they look like) that are not used beside those that are ``there``."""
    text = (
        "{log}: {columns:the column {names} looks|the columns {names} look} like {what} and {columns:is|are} not used: "
        "{ask} allows for judgments that depend on each other"
    )
    return Note(
        UNUSED, text, log=log, columns=len(found), names=" and ".join(map(shown, found)),
        what=" and ".join(found.values()), ask=Setting("cluster", (*there, *found)), found=tuple(found.items()),
    )  # fmt: skip


def one_cluster(notes: Iterable[str], *, used: bool = True, beside: Collection[str] = ()) -> Iterator[str]:
    """Yield the notes, of one that suggests columns of clusters the first of them; none of it where one is there.

    ``used``: whether clusters mean anything here; else nothing is suggested. ``beside``: columns that were read as
    clusters and are none, such as one that divides the judgments.

    >>> note = unused_clusters("votes.csv", {"judge": "who judged", "prompt": "what was asked"})
    >>> note.numbers["ask"].value, [one.numbers["ask"].value for one in one_cluster([note])]
    (('judge', 'prompt'), [('judge',)])
    >>> [*one_cluster([unused_clusters("votes.csv", {"prompt": "what was asked"}, ("judge",))])]
    []
    """
    for note in notes:
        if not isinstance(note, Note) or note.code != UNUSED:
            yield note
        elif used:
            found = note.numbers["found"]
            known = [name for name, _ in found]
            if all(name in known or name in beside for name in note.numbers["ask"].value):
                yield unused_clusters(note.numbers["log"], dict(found[:1]))
