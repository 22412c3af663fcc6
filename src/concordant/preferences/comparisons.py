"""What every check shares: the clean columns it ends with, and why labels, numbers and integers are refused.

Comparisons checked: from distinct raw tuples to winner, loser, tie, strength and multiplicity.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from concordant.errors import InputError, Setting, UsageError, few
from concordant.preferences.counts import MOST, exact_sum, refuse_beyond
from concordant.preferences.labels import crossed
from concordant.preferences.layouts import CLUSTERS, WEAK, Layout, Scale, canonical
from concordant.preferences.notes import Note
from concordant.preferences.values import (
    BEYOND,
    CLEAN,
    FRACTION,
    INEXACT,
    INFINITE,
    MISSING,
    NO_LABEL,
    NULL_BYTE,
    NUMBER,
    WRONG,
    Read,
    Reason,
    Verdict,
    flags,
    instants,
    integers,
    labels,
    numbers,
    texts,
)

Columns = dict[str, Any]
Ints = NDArray[np.integer]


@dataclass(frozen=True)
class Checked:
    """Clean judgments as arguments of a trusted builder, and what was refused."""

    arguments: dict[str, Any]
    verdict: Verdict
    empty: bool
    """Whether no judgment is left."""
    shares: Shares | None = None
    """What all outcomes say, where they are shares of a win."""
    gaps: tuple[int, int] = (0, 0)
    """Lists as shown whose positions have gaps, and such that go further than positions are read."""
    blank: int = 0
    """Rankings that rank nothing."""


def refuse_labels(verdict: Verdict, read: Read, role: str) -> None:
    """Refuse the tuples whose label of this role is missing, holds a null byte or is no label at all."""
    if read.fault is None:
        verdict.asked += 3  # as many as below: the order of reasons is that of all parts of a log
        return
    verdict.refuse(read.fault == MISSING, Reason(f"have no {role}", role))
    verdict.refuse(read.fault == NULL_BYTE, Reason(f"have a null byte in the {role}", role))
    verdict.refuse(
        read.fault == NO_LABEL,
        Reason(f"have a {role} that is neither a text nor an integer", role, "Labels are texts or integers."),
    )


def refuse_numbers(verdict: Verdict, read: Read, role: str, hint: str = "", *, missing: bool = True) -> None:
    """Refuse the tuples whose number of this role is not one, not finite or (unless it may be) missing."""
    if read.fault is None:
        verdict.asked += 2 + missing
        return
    if missing:
        verdict.refuse(read.fault == MISSING, Reason(f"have no {role}", role, hint))
    verdict.refuse(read.fault == WRONG, Reason(f"have a {role} that is not a number", role, hint))
    verdict.refuse(read.fault == INFINITE, Reason(f"have a {role} that is not finite", role, hint))


def read_integers(columns: Columns, verdict: Verdict, role: str, as_json: bool, least: int) -> NDArray[np.int64]:
    """Read a column of integers that are at least ``least``; refused ones come out as ``least``."""
    hint = f"A {role} is an integer, {least} or more."
    return whole_numbers(columns.pop(role), verdict, role, hint, as_json, least)


def whole_numbers(column: Any, verdict: Verdict, role: str, hint: str, as_json: bool, least: int) -> NDArray[np.int64]:
    """Read a column of integers exactly, and refuse what is none or below ``least``; that comes out as ``least``."""
    read = integers(column, as_json=as_json)
    refuse_numbers(verdict, read, role, hint)
    low, bad = read.values < least, read.values < least
    if read.fault is not None:
        said = "a real number of 2^53 or more, which may stand for another integer"
        for code, is_ in ((INEXACT, said), (BEYOND, f"beyond {MOST:,} (2^63 − 1)")):
            verdict.refuse(read.fault == code, Reason(f"have a {role} that is {is_}", role, hint))
        low = (low & (read.fault == CLEAN)) | (read.fault == FRACTION)
        bad = bad | (read.fault != CLEAN)
    else:
        verdict.asked += 2
    verdict.refuse(low, Reason(f"have a {role} that is not an integer of at least {least}", role, hint))
    return np.where(bad, least, read.values).astype(np.int64)


def times(rows: Ints, count: Ints | None, fine: NDArray[np.bool_] | None) -> Ints:
    """Return rows × count, 0 for the refused ones. Errors: InputError where that leaves 64 bits in sum."""
    if count is None:
        return rows
    count = count.astype(np.int64) if fine is None else np.where(fine, count, 0)
    refuse_beyond(exact_sum(count, rows))
    return np.asarray(count * rows)


def cross_clusters(arguments: dict[str, Any]) -> None:
    """Put the cells of several columns of clusters in the place of these."""
    if there := [arguments.pop(role) for role in CLUSTERS if role in arguments]:
        arguments["cluster"] = crossed(there)


def kept(arguments: dict[str, Any], fine: NDArray[np.bool_] | None) -> dict[str, Any]:
    """Return the columns with only the rows of a mask (all of them without one)."""
    if fine is None:
        return arguments
    return {name: _keep(value, fine) for name, value in arguments.items()}


def _keep(value: Any, fine: NDArray[np.bool_]) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, dict):
        return {name: _keep(column, fine) for name, column in value.items()}
    return value.filter(pa.array(fine)) if isinstance(value, pa.Array) else value[fine]


SAID_TIES = ("tie", "draw", "drawn", "equal", "both bad", "both_bad", "bothbad", "tie (bothbad)")
"""Words for a tie, as they are listed where an outcome is unknown."""
TIES = frozenset({*SAID_TIES, "tie(bothbad)", "tie (both bad)", "tie_bothbad"})
AMBIGUOUS = Reason(
    "have an outcome that is both a word for a side or a tie and the label of an item",
    "outcome",
    "Rename the item, or give the outcome in other words.",
)


def side_words(layout: Layout) -> frozenset[str]:
    """Return the words, in lower case, by which an outcome names a side or a tie."""
    return frozenset({*TIES, *layout.side_names[0], *layout.side_names[1]})


def has_outcomes(layout: Layout) -> bool:
    """Whether a column says in words or numbers who won."""
    return layout.sided and "outcome" in layout.roles and "grade" not in layout.roles


def numbers_among(words: Iterable[str], layout: Layout) -> dict[str, float]:
    """Return the outcomes that are numbers, but for those of which is said what they mean."""
    known = {} if layout.outcomes is None else dict(layout.outcomes.signs)
    texts_of = {word: canonical(word) for word in words}
    return {word: float(text) for word, text in texts_of.items() if NUMBER.fullmatch(text) and text not in known}


SHOWN = 3
"""Numbers beyond 0 and 1 that a refusal shows."""


@dataclass(frozen=True)
class Shares:
    """Whether the outcomes of a log are shares of a win: numbers are where some lie between 0 and 1 and none beyond.

    >>> Shares.of([0.0, 0.5]).hold, Shares.of([0.0, 1.0]).hold, Shares.of([0.5, 2.0]).hold
    (True, False, False)
    """

    between: bool = False
    """Whether some lie between 0 and 1."""
    beyond: int = 0
    """How many lie below 0 or above 1."""
    least: tuple[float, ...] = ()
    """The least of these."""

    @classmethod
    def of(cls, found: Iterable[float]) -> Shares:
        """Look at the numbers among all outcomes."""
        held = [*found]
        beyond = sorted(one for one in held if not 0 <= one <= 1)
        return cls(any(0 < one < 1 for one in held), len(beyond), tuple(beyond[:SHOWN]))

    @property
    def hold(self) -> bool:
        """Whether they are shares of a win."""
        return self.between and not self.beyond

    @staticmethod
    def note(layout: Layout, log: str) -> Note:
        """Say that outcomes are read as shares."""
        text = "{log}: the column {column!r} is read as the share of a win that {left!r} has, {right!r} having the rest"
        named = {"column": layout.roles["outcome"], "left": layout.roles["left"], "right": layout.roles["right"]}
        return Note("read as shares", text, log=log, **named)


@dataclass(frozen=True)
class _Outcomes:
    """The outcomes of some tuples, and what all outcomes of the log say of the numbers among them."""

    words: list[str]
    code: NDArray[np.integer]
    """The word of each tuple, −1 where it has none."""
    shares: Shares
    part: dict[str, float] = field(default_factory=dict)
    """The part of a win that the left side has by each word, where these are shares."""

    @classmethod
    def of(cls, column: Any, layout: Layout, as_json: bool, shares: Shares | None) -> _Outcomes:
        read = texts(column, as_json=as_json)
        words, code = list[str](), np.full(len(read), -1, np.int32)
        if not pa.types.is_null(read.type) and len(read.dictionary):
            words, code = read.dictionary.to_pylist(), pc.fill_null(read.indices, -1).to_numpy(zero_copy_only=False)
        found = numbers_among(words, layout)
        shares = Shares.of(found.values()) if shares is None else shares
        return cls(words, code, shares, found if shares.hold else {})

    @property
    def won(self) -> NDArray[np.float64] | None:
        """The part of a win that the left side has in each row, 1 where it is not said; None without such parts."""
        if not self.part:
            return None
        return np.asarray(np.array([*(self.part.get(word, 1.0) for word in self.words), 1.0])[self.code])


def check_comparisons(
    columns: Columns,
    rows: Ints,
    layout: Layout,
    *,
    as_json: bool = False,
    elsewhere: frozenset[str] = frozenset(),
    shares: Shares | None = None,
    numbered: bool = False,
) -> Checked:
    """Check distinct raw tuples of comparisons; ``columns`` holds the column of each role, ``rows`` how often each
    tuple occurs. Columns are taken out of ``columns`` as they are read, so that memory is given back. Where these are
    but a part of a log, ``elsewhere`` holds the ``side_words`` that are labels of items in any part, and ``shares`` is
    what all outcomes say. ``numbered``: the place of each tuple is kept as the time of its judgments.

    Errors (InputError) that no single row can be blamed for: labels of two types, of another type, not UTF-8.
    """
    verdict = Verdict(len(rows))
    one, other = ("left", "right") if layout.sided else ("winner", "loser")
    first, second = (labels(columns.pop(role), role, as_json=as_json) for role in (one, other))
    refuse_labels(verdict, first, one)
    refuse_labels(verdict, second, other)
    ours, theirs, names = _common(first.values, second.values, one, other)
    verdict.refuse(verdict.not_yet(ours == theirs), Reason("compare an item with itself", one))
    arguments: dict[str, Any] = {}
    for role in ("query", *CLUSTERS):
        if role in columns:
            read = labels(columns.pop(role), role, as_json=as_json)
            refuse_labels(verdict, read, role)
            arguments[role] = read.values
    cross_clusters(arguments)
    if "weight" in columns:
        arguments["weight"] = _weights(columns.pop("weight"), verdict, as_json)
    if "grade" in columns and layout.scale is not None:
        steps = _steps(columns.pop("grade"), verdict, layout.scale, as_json)
        columns["steps"], arguments["weight"] = np.sign(steps), np.maximum(np.abs(steps), 1).astype(np.float64)
    count = read_integers(columns, verdict, "count", as_json, 1) if "count" in columns else None
    said = _Outcomes.of(columns.pop("outcome"), layout, as_json, shares) if has_outcomes(layout) else None
    won = None if said is None else said.won
    result = _results(columns, verdict, layout, (ours, theirs, names), as_json, elsewhere, said)
    sign = _signs(result)
    if won is not None and ((share := np.maximum(won, 1.0 - won)) < 1).any():
        arguments["share"] = np.where(share > 0.5, share, 1.0)  # that of ties is said by them
    arguments["covariates"] = _covariates(columns, verdict, layout, as_json)
    if "time" in columns:
        arguments["time"], arguments["dated"] = _times(columns.pop("time"), verdict, as_json)
    if numbered:
        arguments["time"] = np.arange(len(rows), dtype=np.float64)
    if isinstance(result, tuple):
        return _expand_wins(arguments, verdict, rows, count, ours, theirs, names, result)
    swap = None if sign is None or not (sign < 0).any() else sign < 0
    if swap is not None:
        ours, theirs = np.where(swap, theirs, ours), np.where(swap, ours, theirs)
        for name, values in arguments["covariates"].items():
            arguments["covariates"][name] = np.where(swap, -values, values)
    arguments["tie"] = None if sign is None or not (sign == 0).any() else sign == 0
    fine = verdict.fine
    arguments["count"] = times(rows, count, fine)
    arguments |= {"winner": _named(ours, names), "loser": _named(theirs, names)}
    shared = None if said is None or won is None else said.shares
    return Checked(kept(arguments, fine), verdict, fine is not None and not fine.any(), shared)


def _common(first: Any, second: Any, one: str, other: str) -> tuple[Ints, Ints, pa.Array | None]:
    """Return both columns as integers that are equal where the labels are, and the texts they stand for."""
    kinds = [pa.types.is_integer(array.type) for array in (first, second)]
    if kinds[0] != kinds[1] and first.null_count < len(first) and second.null_count < len(second):
        said = {True: "integers", False: "texts"}
        raise InputError(
            f"the column of {one} holds {said[kinds[0]]}, the column of {other} {said[kinds[1]]}; "
            "items must be of one type"
        )
    if all(kinds):
        ours, theirs = (pc.fill_null(array, 0).to_numpy(zero_copy_only=False) for array in (first, second))
        width = np.promote_types(ours.dtype, theirs.dtype)
        return ours.astype(width, copy=False), theirs.astype(width, copy=False), None
    if kinds[0] != kinds[1]:  # one of the columns is missing throughout
        return np.zeros(len(first), np.int32), np.zeros(len(first), np.int32), None
    names = pc.unique(pa.concat_arrays([first.dictionary, second.dictionary, pa.array([""], pa.large_string())]))
    found = []
    for array in (first, second):
        place = np.append(pc.index_in(array.dictionary, names).to_numpy(zero_copy_only=False), 0).astype(np.int32)
        found.append(place[pc.fill_null(array.indices, len(array.dictionary)).to_numpy(zero_copy_only=False)])
    return found[0], found[1], names


def _named(codes: Ints, names: pa.Array | None) -> pa.Array:
    return pa.array(codes) if names is None else pa.DictionaryArray.from_arrays(pa.array(codes), names)


HEAVIEST = 1e100
"""A weight beyond it (or below its inverse) would leave float64 in the squares of sums of weights."""


def _weights(column: Any, verdict: Verdict, as_json: bool) -> NDArray[np.float64]:
    hint = f"A weight is a real number above 0, from {1 / HEAVIEST:g} to {HEAVIEST:g}."
    read = numbers(column, as_json=as_json)
    refuse_numbers(verdict, read, "weight", hint)
    verdict.refuse(read.values == 0, Reason("have a weight of zero", "weight", hint))
    verdict.refuse(read.values < 0, Reason("have a negative weight", "weight", hint))
    beyond = (read.values > HEAVIEST) | ((read.values > 0) & (read.values < 1 / HEAVIEST))
    verdict.refuse(beyond, Reason("have a weight beyond what can be added and squared", "weight", hint))
    return np.asarray(read.values)


def _steps(column: Any, verdict: Verdict, scale: Scale, as_json: bool) -> NDArray[np.int64]:
    """Read grades as their strengths: positive for the left, negative for the right, 0 for a tie."""
    hint = f"The scale has the grades {scale}."
    steps = np.array([*scale.strengths, 0], np.int64)
    off = Reason("have a grade that is not on the scale", "grade", hint)
    if scale.numbers:
        read = numbers(column, as_json=as_json)
        refuse_numbers(verdict, read, "grade", hint)
        grades = np.array(scale.grades, np.float64)
        sorter = np.argsort(grades)
        place = np.minimum(np.searchsorted(grades[sorter], read.values), len(grades) - 1)
        known = grades[sorter][place] == read.values
        verdict.refuse(verdict.not_yet(~known), off)
        return np.asarray(np.where(known, steps[sorter][place], 0), np.int64)
    said = texts(column, as_json=as_json)
    if pa.types.is_null(said.type):
        code, words = np.full(len(said), -1, np.int64), []
    else:
        code = pc.fill_null(said.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
        words = [" ".join(word.lower().split()) for word in said.dictionary.to_pylist()]
    verdict.refuse(code < 0, Reason("have no grade", "grade", hint))
    place = np.array([*(scale.grades.index(word) if word in scale.grades else -1 for word in words), -1])[code]
    verdict.refuse(verdict.not_yet(place < 0), off)
    return np.asarray(steps[place], np.int64)


def _times(column: Any, verdict: Verdict, as_json: bool) -> tuple[NDArray[np.float64], bool]:
    read, dated = instants(column, as_json=as_json)
    hint = "A time is a date or instant in ISO 8601 (2026-03-31, 2026-03-31T18:30), or, in the whole column, a number."
    if read.fault is not None:
        what = "date or instant" if dated else "number"
        for code, says in ((MISSING, "have no time"), (WRONG, f"have a time that is no {what}")):
            verdict.refuse(read.fault == code, Reason(says, "time", hint))
        verdict.refuse(read.fault == INFINITE, Reason("have a time that is not finite", "time", hint))
    return np.asarray(read.values), dated


Result = NDArray[np.int8] | tuple[NDArray[np.int64], NDArray[np.int64]] | None


def _results(
    columns: Columns,
    verdict: Verdict,
    layout: Layout,
    sides: tuple[Ints, Ints, pa.Array | None],
    as_json: bool,
    elsewhere: frozenset[str],
    said: _Outcomes | None,
) -> Result:
    """Return who won: +1 left, −1 right, 0 neither; two numbers of wins; or None where a column names the winner."""
    if not layout.sided:
        return None
    if "steps" in columns:
        return np.asarray(columns.pop("steps"), np.int8)
    if said is not None:
        return _outcomes(said, verdict, layout, sides, elsewhere)
    if "left_wins" in columns:
        left, right = (read_integers(columns, verdict, f"{side}_wins", as_json, 0) for side in ("left", "right"))
        verdict.refuse((left == 0) & (right == 0), Reason("have no win on either side", "left_wins"))
        return left, right
    scores = []
    for role in ("left_score", "right_score"):
        read = numbers(columns.pop(role), as_json=as_json)
        refuse_numbers(verdict, read, role)
        scores.append(read.values)
    return np.asarray(np.sign(scores[0] - scores[1]), np.int8)


def _signs(result: Result) -> NDArray[np.int8] | None:
    return result if isinstance(result, np.ndarray) else None


def _outcomes(
    outcomes: _Outcomes,
    verdict: Verdict,
    layout: Layout,
    sides: tuple[Ints, Ints, pa.Array | None],
    elsewhere: frozenset[str],
) -> NDArray[np.int8]:
    """Read each outcome as a word for a side or a tie, or as the label of the item that won.

    Short words for a side (a, b, 1, 2 …) give way to the label of an item; any other text that is both is refused
    unless both readings say the same of that row.
    """
    ours, theirs, names = sides
    words, said = outcomes.words, outcomes.code
    hint = _allowed(layout, outcomes.shares)
    means = layout.outcomes.sign if layout.outcomes is not None else lambda _: None
    if means(None) is None:
        verdict.refuse(said < 0, Reason("have no outcome", "outcome", hint))
    lefts, rights = layout.side_names
    own = {layout.roles[side].strip().lower() for side in ("left", "right")}
    nothing = np.int8(2)
    by_word = np.full(len(words) + 1, nothing, np.int8)
    for place, word in enumerate(words):
        plain = word.strip().lower()
        by_word[place] = 1 if plain in lefts else -1 if plain in rights else 0 if plain in TIES else nothing
    as_item = np.full(len(words) + 1, -1, np.int64)  # the item that the outcome names, -1 for none
    known = np.zeros(len(words) + 1, bool)
    if names is not None:
        if elsewhere:
            names = pc.unique(pa.concat_arrays([names, pa.array(sorted(elsewhere), pa.large_string())]))
        found = pc.index_in(pa.array(words, pa.large_string()), names)
        as_item[: len(words)] = pc.fill_null(found.cast(pa.int64()), -1).to_numpy()
        known = as_item >= 0
    else:
        asked = pa.array([*(_integer(word) for word in words), None], pa.int64())
        items = np.union1d(np.unique(ours), np.unique(theirs)) if asked.null_count < len(asked) else np.zeros(0)
        if elsewhere and len(items):
            numbered = [number for word in elsewhere if (number := _integer(word)) is not None]
            items = np.union1d(items, np.array(numbered, np.int64))
        values = pc.fill_null(asked, 0).to_numpy()
        known = np.isin(values, items) & ~asked.is_null().to_numpy(zero_copy_only=False)
        as_item = values
    weak = np.array([*(word.strip().lower() in WEAK - own for word in words), False])
    by_word[weak & known] = nothing
    for place, one in enumerate([*words, None]):
        if one in outcomes.part:
            by_word[place], known[place] = np.sign(outcomes.part[one] - 0.5), False
        elif (sign := means(one)) is not None:
            by_word[place], known[place] = sign, False
    by_side, item, is_item = by_word[said], as_item[said], known[said]
    named = np.where(is_item & (item == ours), 1, np.where(is_item & (item == theirs), -1, nothing)).astype(np.int8)
    verdict.refuse(verdict.not_yet((by_side != nothing) & is_item & (named != by_side)), AMBIGUOUS)
    result = np.where(is_item, named, by_side)
    wrong = verdict.not_yet(result == nothing)
    verdict.refuse(wrong, Reason("have an unknown outcome", "outcome", hint))
    return np.asarray(np.where(result == nothing, 0, result), np.int8)


def _integer(word: str) -> int | None:
    """Return the integer label that a text is the decimal notation of."""
    try:
        number = int(word)
    except ValueError:
        return None
    return number if str(number) == word and -(1 << 63) <= number < 1 << 63 else None


def _allowed(layout: Layout, shares: Shares) -> str:
    if shares.between and shares.beyond:
        more = shares.beyond - len(shares.least)
        shown = few(shares.least) + (f" and {more:,} more" if more else "")
        return f"Numbers are parts of a win where all lie between 0 and 1; {shares.beyond:,} values do not ({shown})."
    lefts, rights = (sorted(names - {"left", "right"}) for names in layout.side_names)
    words = ["left", "right", *lefts, *rights, *SAID_TIES]
    words += [] if layout.outcomes is None else [str(layout.outcomes)]
    return (
        f"Allowed: {', '.join(words)}, or the label of the winning item; what other values mean is said by outcomes "
        "(1=left,2=right,0=tie); graded preferences are read with a scale."
    )


def _covariates(columns: Columns, verdict: Verdict, layout: Layout, as_json: bool) -> dict[str, NDArray[np.float64]]:
    """Read the numeric columns, and make the column ``home``, as first side minus second."""
    found: dict[str, NDArray[np.float64]] = {}
    for name in layout.covariates:
        read = numbers(columns.pop(f"covariate {name}"), as_json=as_json)
        refuse_numbers(verdict, read, f"covariate {name}")
        found[name] = np.asarray(read.values)
    if layout.home is None:
        return found
    home = np.full(verdict.size, 1.0 if layout.home == "left" else -1.0)
    if "neutral" in columns:
        read = flags(columns.pop("neutral"), as_json=as_json)
        if read.fault is not None:
            hint = "Allowed: true, false, 1, 0."
            verdict.refuse(read.fault != CLEAN, Reason("do not say true or false in neutral", "neutral", hint))
        home[read.values] = 0.0
    if "home" in found:
        raise UsageError("a covariate is called 'home' already; rename it or leave out ", Setting("home"))
    return {**found, "home": home}


def _expand_wins(
    arguments: dict[str, Any],
    verdict: Verdict,
    rows: Ints,
    count: NDArray[np.int64] | None,
    ours: Ints,
    theirs: Ints,
    names: pa.Array | None,
    wins: tuple[NDArray[np.int64], NDArray[np.int64]],
) -> Checked:
    """Make of a row with two numbers of wins the comparisons it stands for."""
    fine = verdict.fine if verdict.fine is not None else np.ones(len(rows), bool)
    often = times(rows, count, fine)
    parts = []
    for number, first, second, sign in ((wins[0], ours, theirs, 1.0), (wins[1], theirs, ours, -1.0)):
        part = {name: value for name, value in arguments.items() if name != "covariates"}
        part |= {"winner": _named(first, names), "loser": _named(second, names), "count": times(often, number, fine)}
        part["covariates"] = {name: sign * values for name, values in arguments["covariates"].items()}
        parts.append(kept(part, fine & (number > 0)))
    joined = {name: _joined(parts[0][name], parts[1][name]) for name in parts[0]}
    return Checked(joined, verdict, len(joined["count"]) == 0)


def _joined(one: Any, other: Any) -> Any:
    if isinstance(one, bool):
        return one
    if isinstance(one, dict):
        return {name: _joined(one[name], other[name]) for name in one}
    if isinstance(one, pa.Array):
        both = pa.chunked_array([one, other])
        return pa.concat_arrays((both.unify_dictionaries() if pa.types.is_dictionary(one.type) else both).chunks)
    return np.concatenate([one, other])
