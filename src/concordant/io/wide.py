"""Logs of which one row is several entries: ballots, best and worst of a set, tables with a column for each item.

- *ballots*: ``rank1 … rankN`` (choice, preference, place) hold the first to the last choice of a voter.
- *best–worst*: ``best``, ``worst`` and the set ``option1 … optionN``: best before the others, they before the worst.
- *items* (asked for: a table of numbers does not say by itself what its cells are): each column named is an item. A row
  is a ranking (cells are ranks, 1 the best), ratings of one judge, or, of comparisons, the wins of the item that it
  begins with over each of the others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from concordant.errors import Idle, InputError, Setting, UsageError, few, shown
from concordant.io.engines.counting import Counter
from concordant.io.forms import Columns, Form, Reading, places, some, weightless
from concordant.io.log.rows import MOST_SOUGHT, SAMPLES, Sought
from concordant.preferences.comparisons import check_comparisons
from concordant.preferences.layouts import ALIASES, CLUSTERS, Layout, plain
from concordant.preferences.lists import UNITS, RawLists, check_lists
from concordant.preferences.notes import Note
from concordant.preferences.preferences import counted_comparisons, counted_lists, with_cluster_columns
from concordant.preferences.ragged import Ragged
from concordant.preferences.values import Reason, Reject, Verdict, flat, is_text, labels, numbers, say, texts
from concordant.progress import stage

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
PLACES = re.compile(r"(?:rank|choice|preference|pref|place|pick)_?([0-9]+)")
OPTIONS = re.compile(r"(?:option|item|alternative|alt)_?([0-9]+)")
BEST, WORST = ("best", "most"), ("worst", "least")
JUDGES = (*ALIASES["judgment"], "respondent", "respondent_id", "participant", "user", "user_id", "id", "rater", "")
"""What a column is called that numbers or names the rows of a table of items."""
AGAIN = 1_000_000
"""Rows up to which a log is read once more to say on which lines something stands that is no error."""
PLACE, OPTION, CELL = "place ", "option ", "item "
"""What the roles of the columns of a row begin with."""


def _numbered(there: Columns, pattern: re.Pattern[str], role: str) -> dict[str, str] | str:
    """The columns PREFIX1 … PREFIXn, all of one prefix and none missing."""
    found = {c: match for c in there.all if c not in there.taken and (match := pattern.fullmatch(plain(c)))}
    prefixes = {plain(column)[: match.start(1)] for column, match in found.items()}
    order = {int(match[1]): column for column, match in found.items()}
    if len(order) < 2 or len(prefixes) > 1 or len(order) < len(found) or set(order) != set(range(1, len(order) + 1)):
        return f"columns that are numbered from 1 on ({role.strip()}1, {role.strip()}2, …)"
    return {f"{role}{number}": order[number] for number in sorted(order)}


def _ballots(there: Columns, roles: dict[str, str], _: str | None) -> dict[str, str] | str:
    if unused := set(roles) - {"query", "count", "judgment", *CLUSTERS}:
        return f"a use for {', '.join(sorted(unused))}"
    found = _numbered(there, PLACES, PLACE)
    return found if isinstance(found, str) else _beside(there, roles) | found


def _best_worst(there: Columns, roles: dict[str, str], _: str | None) -> dict[str, str] | str:
    if unused := set(roles) - {"query", "count", "judgment", *CLUSTERS}:
        return f"a use for {', '.join(sorted(unused))}"
    best, worst = there.find(BEST, "best item"), there.find(WORST, "worst item")
    found = _numbered(there, OPTIONS, OPTION)
    if best is None or worst is None or isinstance(found, str):
        return "best, worst and the set shown (option1, option2, …)"
    return {**_beside(there, roles), "best": best, "worst": worst, **found}


def _beside(there: Columns, roles: Mapping[str, str]) -> dict[str, str]:
    """Query and count; who voted is no part of a vote, unless it is a cluster."""
    more = {role: there.find(ALIASES[role], role) for role in ("query", "count") if role not in roles}
    given = {role: column for role, column in roles.items() if role != "judgment"}
    return given | {role: column for role, column in more.items() if column is not None}


def items_layout(
    columns: Sequence[str], name: str, kind: str | None, items: Any, roles: Mapping[str, str]
) -> tuple[str, dict[str, str]]:
    """Return form and roles of a table with a column for each item; ``items`` are names, or 'all'.

    Errors: UsageError where it is not said what the cells are, InputError for columns that are not there.
    """
    if kind not in ("orders", "ratings", "comparisons"):
        raise UsageError(
            f"{name}: columns that are items hold ranks (1 the best), ratings (higher is better) or wins over each of "
            "the columns; say which: ",
            Setting("kind", "orders"),
            ", ",
            Setting("kind", "ratings"),
            " or ",
            Setting("kind", "comparisons"),
        )
    if "weight" in roles and kind != "comparisons":
        raise UsageError(*weightless(name, kind, roles["weight"]))
    if unused := set(roles) - {"query", "count", "judgment", "item", *CLUSTERS}:
        raise UsageError(f"{name}: where columns are items there is no use for {', '.join(sorted(unused))}")
    listed = [one.strip() for one in items.split(",")] if isinstance(items, str) and items != "all" else items
    there = Columns(columns, list(roles.values()), name)
    given = _beside(there, roles)
    if kind == "comparisons":
        if "count" in roles:
            raise UsageError(f"{name}: the cells of a table of wins are counts already; leave count out")
        given.pop("count", None)
        label = roles.get("item") or next((column for column in columns if column not in given.values()), "")
        given["item"] = label
    if listed == "all":
        taken = {*given.values(), *roles.values()}
        listed = [c for c in columns if c not in taken and (kind == "comparisons" or plain(c) not in JUDGES)]
    if not isinstance(listed, list | tuple) or len(listed) < 2 or len(set(listed)) < len(listed):
        raise UsageError(f"{name}: items are at least two columns, each once, or all; not {items!r}")
    if missing := [one for one in listed if one not in columns]:
        raise InputError(f"{name}: no column {few(missing)} (asked for as items); columns there: {few(columns, 40)}")
    cells = {f"{CELL}{one}": one for one in listed}
    return {"comparisons": "table of wins", "orders": "table of ranks", "ratings": "table of ratings"}[kind], {
        **{role: column for role, column in given.items() if role != "judgment"},
        **cells,
    }


# -- rows and their cells --------------------------------------------------------------------------------------------
class _Rows:
    """Distinct rows of a wide log, and their cells one after the other, those of row r together."""

    def __init__(self, counter: Counter, layout: Layout, lead: str) -> None:
        self.counter, self.layout = counter, layout
        self.columns, times = counter.count_rows(layout.roles)
        self.times = times.astype(np.int64)
        self.total = int(self.times.sum())
        some(counter.log, self.total)
        self.roles = [role for role in layout.roles if role.startswith(lead)]
        cells = _stacked([flat(self.columns[role]) for role in self.roles])
        size, width = len(self.times), len(self.roles)
        by_row = np.arange(size * width).reshape(width, size).T.ravel()
        held = ~_empty(cells, counter.log.as_json)[by_row]
        self.cells = cells.take(pa.array(by_row[held]))
        self.row, self.column = np.repeat(np.arange(size), width)[held], np.tile(np.arange(width), size)[held]
        self.held = np.bincount(self.row, minlength=size)
        """Of each row, the number of its cells that say something."""
        self.last = np.zeros(size, np.int64)
        """Of each row, the place of the last of them, counted from 1."""
        self.last[self.row] = self.column + 1
        self.refused: list[tuple[Reason, NDArray[np.int64], NDArray[np.int64]]] = []
        """Reason, rows, and the column to blame of each (−1: none)."""

    def lists(self, item: Any, role: str, value: Any) -> RawLists:
        """A list of each row; ``item`` and ``value`` are the cells, or what is made of their places."""
        keys = {name: flat(self.columns[name]) for name in ("query", *CLUSTERS) if name in self.columns}
        entries = {"item": flat(item), role: value}
        if self.counter.log.as_json:  # what the engine hands over is JSON; what is made here is not
            entries = {name: one if one is self.cells else _in_json(one) for name, one in entries.items()}
        if "count" in self.columns:
            entries["count"] = flat(self.columns["count"]).take(pa.array(self.row))
        return RawLists(keys, entries, Ragged.counted(self.row, len(self.times)).start, self.times)

    def refuse(self, verdict: Verdict, blame: NDArray[np.int64]) -> None:
        """Keep what is refused of rows; ``blame`` is a cell of each, −1 for none."""
        for reason, at in verdict.refused:
            cell = blame[at]
            self.refused.append((reason, at, np.where(cell >= 0, self.column[np.maximum(cell, 0)], -1)))

    def rejects(self, unit: str) -> tuple[Reject, ...]:
        """What was refused, with places and values."""
        log, sought = self.counter.log, Sought(tuple(self.layout.roles))
        blamed: dict[Reason, list[Reason]] = {}
        for reason, at, column in self.refused:
            values = [flat(self.columns[role]).take(pa.array(at)).to_pylist() for role in self.layout.roles]
            for one, row in zip(column.tolist(), zip(*values, strict=True), strict=True):
                named = Reason(reason.says, self.roles[one] if one >= 0 else reason.role, reason.hint)
                sought.add(row, named, as_json=log.as_json)
                if named not in blamed.setdefault(reason, []):
                    blamed[reason].append(named)
        found = places(self.counter, self.layout.roles, [sought]) if sought.reasons else {}
        return tuple(
            Reject(
                reason,
                int(self.times[at].sum()),
                self.total,
                tuple(sorted((one for named in blamed[reason] for one in found.get(named, ())), key=_line)[:SAMPLES]),
                unit,
            )
            for reason, at, _ in self.refused
        )

    def notes(self, *, ordered: bool) -> tuple[Note, ...]:
        """Say how many rows hold nothing, and, where columns are places, how many leave out one before another."""
        fine = np.ones(len(self.times), bool)
        for _, at, _ in self.refused:
            fine[at] = False
        empty = "{log}: {rows:,} of {of:rows} {rows:holds|hold} no item and {rows:is|are} left out{lines}"
        gaps = (
            "{log}: {rows:,} of {of:rows} {rows:leaves|leave} a place empty before one that is filled, and "
            "{rows:is|are} read as if the next choice stood there{lines}"
        )
        found = [("empty rows", empty, fine & (self.held == 0))]
        found += [("places left empty", gaps, fine & (self.held < self.last))] if ordered else []
        return tuple(
            Note(code, text, log=self.counter.log.name, rows=int(self.times[which].sum()), of=self.total,
                 lines=self._lines(np.flatnonzero(which)))
            for code, text, which in found
            if which.any()
        )  # fmt: skip

    def _lines(self, at: NDArray[np.int64]) -> str:
        """Where some of these rows stand, in brackets; nothing of a log that is too long to be read again for it."""
        if self.total > AGAIN:
            return ""
        log, sought, reason = self.counter.log, Sought(tuple(self.layout.roles)), Reason("", "")
        chosen = pa.array(at[:MOST_SOUGHT])
        values = [flat(self.columns[role]).take(chosen).to_pylist() for role in self.layout.roles]
        for row in zip(*values, strict=True):
            sought.add(row, reason, as_json=log.as_json)
        lines = [place for place, _ in places(self.counter, self.layout.roles, [sought]).get(reason, ())]
        return f" ({'; '.join(lines)})" if lines else ""


def _line(sample: tuple[str, object]) -> int:
    """The number at the end of a place."""
    digits = re.search(r"[0-9,]+$", sample[0])
    return int(digits[0].replace(",", "")) if digits else 0


def _decoded(column: Any, role: str, as_json: bool) -> pa.Array:
    """Labels as they are, of a JSON log what its texts say."""
    return flat(labels(column, role, as_json=True).values if as_json else column)


def _in_json(made: pa.Array) -> pa.Array:
    """Values of ours as an engine hands over those of a JSON log: the JSON text of each."""
    coded = made if pa.types.is_dictionary(made.type) else made.dictionary_encode()
    words = [json.dumps(value) for value in coded.dictionary.to_pylist()]
    return pa.DictionaryArray.from_arrays(coded.indices, pa.array(words, pa.large_string()))


def _stacked(columns: Sequence[pa.Array]) -> pa.Array:
    """Columns one after the other: as texts where one holds texts, else as numbers."""
    if any(is_text(c.type.value_type if pa.types.is_dictionary(c.type) else c.type) for c in columns):
        decoded = [c.dictionary_decode() if pa.types.is_dictionary(c.type) else c for c in columns]
        return flat(pa.concat_arrays([one.cast(pa.large_string()) for one in decoded]))
    if all(pa.types.is_integer(c.type) or pa.types.is_null(c.type) for c in columns):
        return pa.concat_arrays([c.cast(pa.int64()) for c in columns])
    if all(pa.types.is_integer(c.type) or pa.types.is_floating(c.type) or pa.types.is_null(c.type) for c in columns):
        return pa.concat_arrays([c.cast(pa.float64()) for c in columns])
    return flat(pa.concat_arrays([c.cast(pa.large_string()) for c in columns]))


def _empty(cells: pa.Array, as_json: bool) -> Flags:
    """Cells that say nothing: missing, empty texts, NaN."""
    none = cells.is_null(nan_is_null=pa.types.is_floating(cells.type)).to_numpy(zero_copy_only=False)
    if pa.types.is_dictionary(cells.type):
        blank = np.array([text.strip() in ("", '""' if as_json else "") for text in cells.dictionary.to_pylist()], bool)
        none = none | np.append(blank, False)[cells.indices.fill_null(len(blank)).to_numpy(zero_copy_only=False)]
    return np.asarray(none, bool)


def _read_lists(rows: _Rows, lists: RawLists, on_error: str, more: Verdict | None = None) -> Reading:
    """Check and count the lists of the rows; ``more``: rows that are refused already."""
    log, layout = rows.counter.log, rows.layout
    with stage("checking lists"):
        checked, verdicts = check_lists(lists, Layout(layout.kind, layout.roles), as_json=log.as_json)
    if more is not None and more.code is not None:
        rows.refuse(more, np.full(more.size, -1))
        raise InputError(say(log.name, rows.rejects(UNITS[layout.kind])))
    rows.refuse(verdicts.lists, verdicts.blame)
    if layout.kind == "ratings" and verdicts.rows.code is not None:
        for reason, at in verdicts.rows.refused:
            rows.refused.append((reason, rows.row[at], rows.column[at]))
    rejects = rows.rejects(UNITS[layout.kind]) if rows.refused else ()
    if checked.empty or (rejects and on_error == "raise"):
        raise InputError(say(log.name, rejects) if rejects else f"{log.name}: no judgment is left, every cell is empty")
    with stage("adding up judgments"):
        prefs = with_cluster_columns(counted_lists(**checked.arguments), layout.clusters)
    prefs = replace(prefs, told=(*prefs.told, *rows.notes(ordered=layout.form == "ballots")))
    return Reading(prefs, rows.total, log.name, layout.roles, rejects)


def _read_ballots(counter: Counter, layout: Layout, _: str, on_error: str) -> Reading:
    rows = _Rows(counter, layout, PLACE)
    return _read_lists(rows, rows.lists(rows.cells, "rank", pa.array(rows.column + 1)), on_error)


def _read_items(counter: Counter, layout: Layout, _: str, on_error: str) -> Reading:
    rows = _Rows(counter, layout, CELL)
    names = pa.array([role.removeprefix(CELL) for role in rows.roles], pa.large_string())
    item = pa.DictionaryArray.from_arrays(pa.array(rows.column.astype(np.int32)), names)
    return _read_lists(rows, rows.lists(item, "rank" if layout.kind == "orders" else "rating", rows.cells), on_error)


def _read_best_worst(counter: Counter, layout: Layout, _: str, on_error: str) -> Reading:
    rows = _Rows(counter, layout, OPTION)
    shown_item = _texts(rows.cells)
    rank, found = np.full(len(rows.row), 2.0), {}
    for role, place in (("best", 1.0), ("worst", 3.0)):
        said = _texts(flat(rows.columns[role]))
        same = shown_item == said[rows.row]
        rank[same] = place
        found[role] = np.bincount(rows.row[same], minlength=len(rows.times)) > 0
    wrong = Verdict(len(rows.times))
    for role in ("best", "worst"):
        wrong.refuse(~found[role], Reason(f"have no {role} item among those shown", role))
    twice = _texts(flat(rows.columns["best"])) == _texts(flat(rows.columns["worst"]))
    wrong.refuse(np.asarray(twice & found["best"]), Reason("name one item as best and as worst", "best"))
    return _read_lists(rows, rows.lists(rows.cells, "rank", pa.array(rank)), on_error, wrong)


def _texts(column: pa.Array) -> NDArray[Any]:
    decoded = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    return np.array(decoded.cast(pa.large_string()).fill_null("").to_pylist(), object)


def _read_wins(counter: Counter, layout: Layout, _: str, on_error: str) -> Reading:
    """Each cell is the number of wins of the row's item over the column's; a zero is no judgment."""
    if on_error == "skip":
        raise Idle("on_error", f"{counter.log.name} is a table of wins, which is read whole")
    rows = _Rows(counter, layout, CELL)
    log, names = counter.log, [role.removeprefix(CELL) for role in rows.roles]
    count = numbers(rows.cells, as_json=log.as_json)
    own = _texts(texts(rows.columns["item"], as_json=log.as_json))
    winner, loser = own[rows.row], np.array(names, object)[rows.column]
    wrong = Verdict(len(rows.cells))
    hint = "A cell is the number of wins of the row's item over the column's: an integer, 0 or more."
    bad = (count.values < 0) | (count.values != np.floor(count.values))
    bad |= np.zeros(len(bad), bool) if count.fault is None else count.fault != 0
    wrong.refuse(bad, Reason("hold a cell that is no number of wins", "item", hint))
    wrong.refuse((winner == loser) & (count.values != 0), Reason("hold wins of an item over itself", "item", hint))
    if unknown := sorted(set(own) - set(names)):
        raise InputError(
            f"{log.name}: the rows of {few(unknown)} (column {shown(layout.roles['item'])}) have no column of that "
            "name; a table of wins has a row and a column for each item"
        )
    for reason, at in wrong.refused:
        rows.refused.append((reason, rows.row[at], rows.column[at]))
    if rows.refused:
        raise InputError(say(log.name, rows.rejects("rows")))
    some_wins = np.flatnonzero(count.values > 0)
    if not len(some_wins):
        raise InputError(f"{log.name}: no cell is above 0: nobody won")
    columns: dict[str, Any] = {
        "winner": flat(pa.array(winner[some_wins], pa.large_string())),
        "loser": flat(pa.array(loser[some_wins], pa.large_string())),
        "count": pa.array(count.values[some_wins].astype(np.int64)),
    }
    columns |= {
        role: _decoded(rows.columns[role], role, log.as_json).take(pa.array(rows.row[some_wins]))
        for role in ("query", *CLUSTERS)
        if role in rows.columns
    }
    plain_layout = Layout("comparisons", {role: role for role in columns})
    checked = check_comparisons(columns, rows.times[rows.row[some_wins]], plain_layout, as_json=False)
    if checked.verdict.refused:
        raise InputError(f"{log.name}: {'; '.join(reason.says for reason, _ in checked.verdict.refused)}")
    prefs = with_cluster_columns(counted_comparisons(**checked.arguments), layout.clusters)
    return Reading(prefs, rows.total, log.name, layout.roles)


WIDE = {
    "ballots": Form("orders", "rank1, rank2, … (or choice, preference, place)", _ballots, _read_ballots),
    "best-worst sets": Form("orders", "best, worst, option1, option2, …", _best_worst, _read_best_worst),
}
"""Those that are recognised by their columns."""
TABLES = {
    "table of ranks": _read_items,
    "table of ratings": _read_items,
    "table of wins": _read_wins,
}
"""Those that are asked for, with how they are read."""
