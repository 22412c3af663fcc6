"""Days of batches: read from where a log lies; which batches are of some days; which are too old to be kept."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from urllib.parse import unquote

from concordant.errors import InputError, Setting, UsageError, counted, few
from concordant.io.store.catalogue import Catalogue, Ingestion
from concordant.preferences.notes import Note
from concordant.preferences.times import duration
from concordant.preferences.windows import Window

WRITTEN = re.compile(r"(?<!\d)((?:19|20)\d\d)([-_.]?)(\d\d)\2(\d\d)(?!\d)")
"""A date in a name: 2026-01-31, 2026_01_31 or 20260131."""
FOLDER = re.compile(rf"(?:\w+=)?{WRITTEN.pattern}(?:[T ]00:00(?::00(?:\.0+)?)?Z?)?")
"""A folder that holds a day: 2026-01-31 or day=2026-01-31."""
SHORT = re.compile(r"\w+=((?:19|20)\d\d)-(\d{1,2})-(\d{1,2})")
"""One that is written without zeros: day=2026-1-31."""
FOLDERS = re.compile(r"(?:^|[/\\])(?:year=)?((?:19|20)\d\d)[/\\](?:month=)?(\d{1,2})[/\\](?:day=)?(\d{1,2})(?=[/\\]|$)")
"""A day in three folders: year=2026/month=1/day=31 or 2026/01/31."""


WEEK = 7
"""Days without a log that are nothing out of the way."""


def day_of(path: str) -> tuple[str, str]:
    """Return the day that a path names, and what of it does: the name, else a folder of a day alone (the last one).

    Where that names several days there is none, and these are what is returned beside it.

    >>> day_of("lake/day=2026-01-31/part-0.parquet"), day_of("votes-20260131.csv")
    (('2026-01-31', 'day=2026-01-31'), ('2026-01-31', 'votes-20260131.csv'))
    >>> day_of("clicks/2026/01/31/09/x.json.gz")
    ('2026-01-31', '2026/01/31')
    >>> day_of("year=2026/month=1/day=31/x.csv")[0], day_of("votes.csv"), day_of("2026-01-01_2026-01-31.csv")
    ('2026-01-31', ('', ''), ('', "'2026-01-01', '2026-01-31'"))
    >>> day_of("day=2026-1-31/x.csv")[0], day_of("2026/01/31/x.csv")[0], day_of("day=2026-01-31 00%3A00%3A00/x.csv")[0]
    ('2026-01-31', '2026-01-31', '2026-01-31')
    """
    *folders, name = re.split(r"[/\\]", unquote(path).rstrip("/\\"))
    for part in (name, *filter(FOLDER.fullmatch, reversed(folders))):
        if days := sorted({one for found in WRITTEN.finditer(part) if (one := _date(found[1], found[3], found[4]))}):
            return (days[0], part) if len(days) == 1 else ("", few(days))
    short = (SHORT.fullmatch(part) for part in reversed((*folders, name)))
    for found in (*short, FOLDERS.search(path)):
        if found and (day := _date(*found.groups())):
            return day, found[0].strip("/\\")
    return "", ""


def day_of_all(path: str, parts: Sequence[str]) -> tuple[str, str]:
    """Return the day that a path names, or all of its parts do, and how; else none, and the days they are of."""
    day, how = day_of(path)
    if day or how or not parts:
        return day, how
    found = {day_of(part) for part in parts}
    days = {day for day, _ in found}
    if len(days) == 1 and days != {""}:
        return min(found)
    return "", few(sorted(days - {""})) if len(days) > 1 else ""


def _date(year: str, month: str, day: str) -> str:
    try:
        return date(int(year), int(month), int(day)).isoformat()
    except ValueError:
        return ""


def all_dated(batches: Collection[Ingestion], store: str) -> None:
    """Refuse batches of which some have no day. Errors: InputError."""
    if without := [batch.name for batch in batches if not batch.day]:
        raise InputError(
            f"{store}: {len(without):,} of {counted(len(batches), 'logs')} {'has' if len(without) == 1 else 'have'} no "
            f"day ({few(without, 3)}); concordant store day gives them one"
        )


def of_window(window: Window, store: str) -> Callable[[Catalogue], tuple[Ingestion, ...]]:
    """Return what chooses the batches of the days of a window.

    It raises InputError where batches have no day, and where none is of those days.
    """

    def chosen(catalogue: Catalogue) -> tuple[Ingestion, ...]:
        if not window:
            return catalogue.batches
        all_dated(catalogue.batches, store)
        days = [batch.day for batch in catalogue.batches]
        if not days:
            raise InputError(f"{store}: there are no batches")
        first, last = window.days(max(days))
        found = tuple([batch for batch in catalogue.batches if first <= batch.day <= last])
        if not found:
            raise InputError(
                f"{store}: no batch is {said_span(first, last)}; what there is is {said_span(min(days), max(days))}"
            )
        return found

    return chosen


def window_note(window: Window, catalogue: Catalogue, chosen: Sequence[Ingestion]) -> Note:
    """Say which days were read, of how many batches, and which of these days have none."""
    first, last = window.days(max(batch.day for batch in catalogue.batches))
    days = sorted({batch.day for batch in chosen})
    without = missing(max(first, days[0]) if window.last is None else first, last, days)
    text = "days {first} to {last}: {batches:,} of {of:logs}"
    text += "; of {without:days} there is none ({some})" if without else ""
    return Note("days", text, first=days[0], last=days[-1], batches=len(chosen), of=len(catalogue.batches),
                without=len(without), some=few(without, 3))  # fmt: skip


def said_span(first: str, last: str) -> str:
    """Say from which day to which."""
    if first == date.min.isoformat():
        return f"up to {last}"
    return f"of {first}" if first == last else f"of {first} to {last}"


def missing(first: str, last: str, days: Iterable[str]) -> list[str]:
    """Return the days of a span that are not among some."""
    there, begin = {*days}, date.fromisoformat(first)
    span = (date.fromisoformat(last) - begin).days + 1
    return [day for n in range(span) if (day := (begin + timedelta(n)).isoformat()) not in there]


def days_kept(value: int | str) -> int:
    """Return how many days are to be kept; 0 for all. Errors: UsageError.

    >>> days_kept("90d"), days_kept("2w"), days_kept("all")
    (90, 14, 0)
    """
    try:
        length = 0.0 if value == "all" else duration(value, True)
    except UsageError:
        length = 0.5
    if length != int(length):
        raise UsageError(Setting("keep", value), ": a number of whole days such as 90d or 12w, or all")
    return int(length)


def oldest_kept(days: Iterable[str], keep: int) -> str:
    """Return the first of the ``keep`` days up to the newest one.

    >>> oldest_kept(["2026-01-31", "2026-01-02"], 30)
    '2026-01-02'
    """
    newest = date.fromisoformat(max(days))
    return (newest - timedelta(min(keep - 1, (newest - date.min).days))).isoformat()


def check_kept(day: str, there: Sequence[str], keep: int, name: str, *, said: bool = True) -> None:
    """Refuse a log of no day, of one that is not kept, or of one to come, which would push the others out.

    So would one that is long after all others: it is refused unless how long days are kept was ``said`` with it.
    """
    how = f"the store keeps the last {counted(keep, 'days')}"
    if not day:
        raise InputError(f"{name}: {how}, so every log has a day; name it (", Setting("day"), ")")
    today = datetime.now(UTC).date()
    if date.fromisoformat(day) > today + timedelta(1):
        raise InputError(f"{name}: its day {day} is yet to come (today is {today}), and {how} up to the newest one")
    newest = max(there, default=day)
    gap = (date.fromisoformat(day) - date.fromisoformat(newest)).days
    if not said and gap >= keep and gap > WEEK:
        raise InputError(
            f"{name}: its day {day} is {gap:,} days after the newest one ({newest}), so that nothing of what is there "
            f"would be kept: {how}; if that is right, say it once more (",
            Setting("keep", f"{keep}d"),
            ")",
        )
    if day < (oldest := oldest_kept([*there, day], keep)):
        raise InputError(f"{name}: its day {day} is outside what is kept: {how}, from {oldest} on")
