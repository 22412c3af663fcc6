"""Queries whose judgments are those of an earlier ranking: they keep its rows, which are what they would get again.

What a query's rows follow from, beside its judgments, are the settings, a few facts of the whole log (whether
anything in it is tied, weighted or clustered), and whether the critical value of its rank intervals is drawn. A table
of the ranking carries the settings and two 64-bit signs of each query.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from concordant.errors import InputError, UsageError
from concordant.preferences.labels import Labels
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Comparisons, Lists, Preferences
from concordant.preferences.ragged import Ragged
from concordant.preferences.sampling import uniform_bits
from concordant.ranking.flags import LABELS
from concordant.ranking.structures import Structure
from concordant.record import versions

Ints = NDArray[np.int64]
Signs = NDArray[np.uint64]
SIGNS, HOW = "concordant queries", "ranked"
"""Metadata of a table: the signs of its queries in the order of their labels; inside ``concordant``, the settings."""
FACTS = {"tied": "ties", "weighted": "strengths", "clusters": "clusters"}
"""Of a log, as they are called."""
VERSIONS = ("concordant", "numpy", "scipy")
"""What may change the last bits."""
SOME = 1 << 20
"""Labels at a time."""
ROWS = ("component", "rank", "score", "lower", "upper", "judgments", "rank_lower", "rank_upper", "provisional")


# -- signs ---------------------------------------------------------------------------------------------------------
def query_signs(prefs: Preferences, drawn: NDArray[np.bool_]) -> Signs:
    """Two 64-bit signs of each query, equal where its judgments, and what is ``drawn``, are; shape (queries, 2).

    Each is a sum over the distinct judgments of a hash of all that one says, so their order is of no account.

    >>> one = Preferences.from_comparisons(["a", "b", "x"], ["b", "a", "y"], query=[1, 1, 2])
    >>> other = Preferences.from_comparisons(["x", "a", "b", "b"], ["y", "b", "a", "c"], query=[2, 1, 1, 1])
    >>> (query_signs(one, np.zeros(2, bool)) == query_signs(other, np.zeros(2, bool))).all(axis=1).tolist()
    [False, True]
    """
    return np.stack([_signs(prefs, drawn, seed) for seed in (0, 1)], axis=1)


def _signs(prefs: Preferences, drawn: NDArray[np.bool_], seed: int) -> Signs:
    item, said = label_signs(prefs.items), list[Any]([prefs.count])
    if prefs.cluster is not None and prefs.clusters is not None:
        said.append(label_signs(prefs.clusters)[prefs.cluster])
    row: Signs = np.full(prefs.distinct, 1 + seed, np.uint64)
    if isinstance(prefs, Comparisons):
        row = _mixed(row, item[prefs.winner], item[prefs.loser])
        said += [each for each in (prefs.tie, prefs.weight, prefs.share, prefs.time) if each is not None]
        said += [] if prefs.covariates is None else list(prefs.covariates.T)
    elif isinstance(prefs, Lists):
        entry = _mixed(prefs.lists.place.astype(np.uint64), item[prefs.list_item], prefs.list_value)
        row = _mixed(row, _sums(prefs.lists, entry))
    of_query = _sums(prefs.groups, _mixed(row, *said))
    known, of_item = prefs.declared.T
    declared = _mixed(np.full(len(known), 3 + seed, np.uint64), item[of_item])
    np.add.at(of_query, known, declared)
    return _mixed(of_query, prefs.groups.sizes, drawn)


def label_signs(labels: Labels) -> Signs:
    """A 64-bit sign of each label: of an integer by its value, of a text a sum over its bytes and their places.

    >>> one, other = (label_signs(Labels.encode(column)[0]) for column in (["ab", "ba"], ["b", "ba"]))
    >>> len({*one.tolist(), *other.tolist()})
    3
    """
    values = labels.values
    if pa.types.is_integer(values.type):
        return uniform_bits(np.full(len(values), 5, np.uint64), np.asarray(values).astype(np.int64).view(np.uint64))
    found = [np.zeros(0, np.uint64)]
    for begin in range(0, len(values), SOME):
        texts = values.slice(begin, SOME).cast(pa.large_binary())
        start = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset :][: len(texts) + 1]
        data = texts.buffers()[2]
        every = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)[start[0] : start[-1]]
        words = Ragged(start - start[0])
        place = words.place.astype(np.uint64) << np.uint64(8)
        letters = uniform_bits(np.full(len(every), 7, np.uint64), place | every.astype(np.uint64))
        found.append(_mixed(_sums(words, letters), words.sizes))
    return np.concatenate(found)


def _mixed(sign: Signs, *columns: Any) -> Signs:
    for column in columns:
        plain = np.asarray(column)
        plain = plain if plain.dtype == np.uint64 else plain.astype(np.float64 if plain.dtype.kind == "f" else np.int64)
        sign = uniform_bits(sign, np.ascontiguousarray(plain).view(np.uint64))
    return sign


def _sums(groups: Ragged, of_rows: Signs) -> Signs:
    total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(of_rows, dtype=np.uint64)])
    return np.asarray(total[groups.start[1:]] - total[groups.start[:-1]], np.uint64)


def settings(prefs: Preferences, asked: Mapping[str, Any]) -> str:
    """What the rows of all queries follow from, beside their judgments, as JSON: what was asked, facts, versions."""
    facts: dict[str, Any] = {"kind": prefs.kind, "weighted": prefs.weighted, "tied": prefs.tied}
    facts |= {"clusters": prefs.clusters is not None, "columns of clusters": [*prefs.cluster_columns]}
    known = {name: one for name, one in versions().items() if name in VERSIONS}
    return json.dumps({**asked, **facts, **known}, sort_keys=True, default=_plain)


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else str(value)


def metadata(table: pa.Table, rests: Mapping[str, Any], interval: str, how: str, signs: Signs) -> dict[str, Any]:
    """The metadata of a table of a ranking, by which it is known whether anything in it was changed."""
    told = {**rests, "interval": interval, HOW: how, "rows": _rows_sign(table, how, signs)}
    return {"concordant": json.dumps(told), SIGNS: np.ascontiguousarray(signs).tobytes()}


def _rows_sign(table: pa.Table, how: str, signs: Signs) -> str:
    """A sign of the rows of a ranking in their order, and of what else is known of it."""
    row: Signs = np.arange(table.num_rows, dtype=np.uint64)
    for name in ("query", "item", "flag"):
        labels, codes = Labels.encode(table[name])
        row = _mixed(row, label_signs(labels)[codes])
    row = _mixed(row, *_numbers(table).values())
    beside = _mixed(signs.ravel(), np.arange(signs.size)), label_signs(Labels.encode([how])[0])
    return f"{int(np.concatenate([row, *beside]).sum(dtype=np.uint64)):016x}"


def _numbers(table: pa.Table) -> dict[str, NDArray[Any]]:
    """Columns of numbers and marks as in a ``Ranking``, where a rank that is missing is 0."""
    names = (*ROWS, *({"quasi_error"} & {*table.column_names}))
    return {
        name: pc.fill_null(table[name], 0).to_numpy() if "rank" in name else table[name].to_numpy() for name in names
    }


# -- an earlier ranking --------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Earlier:
    """A ranking some of whose queries may keep their rows."""

    table: pa.Table
    queries: Labels
    signs: Signs
    how: Mapping[str, Any]
    interval: str

    @classmethod
    def of(cls, table: pa.Table) -> Earlier:
        """Read what a table of a ranking carries. Errors (InputError): nothing that says what its queries hold."""
        held = table.schema.metadata or {}
        try:
            told = json.loads(held[b"concordant"])
            written, interval, rows = str(told[HOW]), str(told["interval"]), str(told["rows"])
            signs, how = np.frombuffer(held[SIGNS.encode()], np.uint64).reshape(-1, 2), json.loads(written)
        except (KeyError, ValueError, TypeError, RecursionError):
            raise InputError(
                "the earlier ranking does not say what its queries hold, as those of one query, of Spark, over time or "
                "rewritten by others do not; name one of several queries that concordant rank wrote as Parquet or Arrow"
            ) from None
        try:
            table = table.select([*_numbers(table), "query", "item", "flag"])
            plain = [one.with_type(pa.large_string()) if "string" in str(one.type) else one for one in table.schema]
            table = table.cast(pa.schema(plain))
            queries = Labels.encode(table["query"])[0]
            same = len(queries) == len(signs) and isinstance(how, dict) and _rows_sign(table, written, signs) == rows
        except (KeyError, ValueError, TypeError, NotImplementedError, pa.ArrowException):
            same = False
        if not same:
            raise InputError("the earlier ranking was changed since it was made (rows, their order or what they hold)")
        return cls(table, queries, signs, how, interval)

    def kept(self, prefs: Preferences, how: str, signs: Signs) -> Kept:
        """The queries whose judgments are the same, and their rows. Errors (UsageError): other settings."""
        now = json.loads(how)
        wrong = sorted(name for name in {*self.how, *now} if self.how.get(name) != now.get(name))
        for name in (name for name in FACTS if name in wrong):
            has, had = (
                ("this log has", "its log had none") if now.get(name) else ("this log has no", "its log had some")
            )
            raise UsageError(
                f"the earlier ranking is of no use: {has} {FACTS[name]}, {had}, and limits of all queries follow from "
                "that; rank all queries once"
            )
        if wrong:
            given = [
                f"{name} {' and now '.join('not given' if one.get(name) is None else repr(one[name]) for one in both)}"
                for name in wrong
                if (both := (self.how, now))
            ]
            raise UsageError(f"the earlier ranking was made otherwise ({', '.join(given)}): rank all queries once")
        same = self.same(prefs.queries, signs)
        return Kept(same, self.columns(prefs.queries, prefs.items, same), self.interval)

    def same(self, queries: Labels, signs: Signs) -> NDArray[np.bool_]:
        """Which of some queries have the signs that they had."""
        place = self.queries.codes_of(queries.values)
        own = np.maximum(place, 0)
        return np.asarray((place >= 0) & (self.signs[own] == signs).all(axis=1)) if len(self.signs) else place >= 0

    def columns(self, queries: Labels, items: Labels, same: NDArray[np.bool_]) -> dict[str, NDArray[Any]]:
        """The rows of the queries that are the same, codes and marks as in a ``Ranking``, in their order."""
        query = queries.codes_of(self.table["query"])
        kept = np.flatnonzero((query >= 0) & same[np.maximum(query, 0)])
        table = self.table.take(pa.array(kept))
        found = _numbers(table)
        flags = pc.index_in(table["flag"], pa.array(LABELS)).to_numpy()
        return {**found, "query": query[kept], "item": items.codes_of(table["item"]), "flag": flags}


@dataclass(frozen=True, eq=False)
class Kept:
    """Queries that keep their rows."""

    same: NDArray[np.bool_]
    """Of each query."""
    columns: dict[str, NDArray[Any]]
    interval: str

    @property
    def note(self) -> Note:
        """What is to be said."""
        text = (
            "{kept:,} of {of:queries} {of:has|have} the judgments of the earlier ranking and {of:keeps its|keep "
            "their} rows; notes on fits, ends of intervals and convergence are of the others alone"
        )
        return Note("rows kept", text, kept=int(self.same.sum()), of=len(self.same))


def refuse_whole(
    member: Structure, interval: str, options: Mapping[str, Any], covariates: bool, reference: bool
) -> None:
    """Refuse an earlier ranking where rows of a query rest on other queries, or go with coefficients: UsageError."""
    drawn = interval == "bootstrap" or (interval == "auto" and member.curvature is None and member.reads != "exposures")
    coefficients = options.get("ties") in ("davidson", "cumulative") or (covariates and options.get("covariates", True))
    estimated = member.linked is not None or ("propensities" in member.options and not options.get("propensities"))
    for wrong, what in (
        (estimated, f"{member.name} is estimated from all queries"),
        (options.get("prior") == "auto", "the prior is chosen from all queries"),
        (drawn, f"the intervals of {member.name} are a bootstrap, whose number of replicates rests on all queries"),
        (coefficients, "a table of scores does not hold the coefficients beside them"),
        (reference, "whether the reference can be zero is found from all queries"),
    ):
        if wrong:
            raise UsageError(f"an earlier ranking is of no use here: {what}; rank without it")
