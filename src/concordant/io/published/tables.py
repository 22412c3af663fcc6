"""Tables as WMT publishes them: errors marked in translations (MQM), scores of segments, exports of Appraise."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from concordant.errors import InputError
from concordant.io.engines.memory import arrow_table
from concordant.io.log.formats import Log, opened
from concordant.io.published.published import SCORES, Published, Scores
from concordant.preferences.layouts import plain
from concordant.preferences.values import decode

WEIGHTS = (("non-translation", 25.0), ("major", 5.0), ("minor", 1.0))


def _role(columns: Sequence[str], names: Sequence[str], taken: Sequence[str] = ()) -> str | None:
    """Return the column with the first of the names that is there."""
    there = {plain(column): column for column in reversed(columns) if column not in taken}
    there |= {key.replace("_", ""): column for key, column in there.items()}
    return next((there[one] for name in names for one in (name, name.replace("_", "")) if one in there), None)


def _column(table: pa.Table, name: str, as_json: bool) -> list[Any]:
    column = table[name]
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    values = column.to_pylist()
    return [decode(one) for one in values] if as_json else values


def _cell(text: str) -> float | None:
    """Return a number; NaN where there is none, None for another text."""
    try:
        return float("nan") if text.strip().lower() in ("", "none", "nan") else float(text)
    except ValueError:
        return None


def mqm(log: Log) -> Published | None:
    """Read WMT's annotations of errors (MQM): a score for each system, segment and rater.

    It is minus the sum of the weights of the errors: 25 for a text that is no translation, 5 for a major one, 1 for a
    minor one, 0.1 for minor punctuation (Freitag and others, 2021, table 3).
    """
    need = {"system", "rater", "category", "severity"}
    segment = _role(log.columns, ("globalSegId", "global_seg_id", "seg_id", "segment_id"))
    if not need <= {plain(name) for name in log.columns} or segment is None:
        return None
    document = _role(log.columns, ("doc", "document")) if plain(segment) == "seg_id" else None
    used = {one: _role(log.columns, (one,)) for one in sorted(need)} | {"segment": segment}
    used |= {"document": document} if document else {}
    table = arrow_table(log, [name for name in used.values() if name])
    read = {role: _column(table, name, log.as_json) for role, name in used.items() if name}
    total: dict[tuple[str, str, str], float] = {}
    for place, severity in enumerate(read["severity"]):
        task = str(read["segment"][place]) if not document else f"{read['document'][place]}/{read['segment'][place]}"
        key = (str(read["system"][place]), task, str(read["rater"][place]))
        total[key] = total.get(key, 0.0) - _weight(str(severity), str(read["category"][place]))
    scores = Scores(log.name)
    scores.say("a score is minus the weighted errors of a segment: major 5, minor 1, punctuation .1, no translation 25")
    for (system, task, rater), value in total.items():
        scores.add(system, task, value, rater)
    found = scores.published("WMT annotations of errors (MQM)")
    return Published(found.layout, SCORES, found.table, found.told, tuple((k, v) for k, v in used.items() if v))


def _weight(severity: str, category: str) -> float:
    severity, category = severity.lower(), category.lower()
    if "non-translation" in category:
        return 25.0
    if severity == "minor" and category.startswith("fluency/punctuation"):
        return 0.1
    return next((weight for name, weight in WEIGHTS if severity == name), 0.0)


LANGUAGE = re.compile(r"[A-Za-z]{2,3}([_-][A-Za-z]+)?")


def appraise(log: Log) -> Published | None:
    """Read an export of Appraise, which has no header: who, system, item, type, languages, score, document, and more.

    Items that only check the annotators (BAD, CHK, REF) and tutorials are left out; documents are judged as a whole,
    too.
    """
    if log.format not in ("csv", "tsv"):
        return None
    with opened(log) as text:
        rows = csv.reader(text, delimiter=log.delimiter)
        if not _of_appraise(next(rows, [])):
            return None
    scores = Scores(log.name)
    scores.say("an export of Appraise; a task is a segment of a document, what several people said of it are trials")
    with opened(log) as text:
        for number, row in enumerate(csv.reader(text, delimiter=log.delimiter), 1):
            if not _of_appraise(row):
                raise InputError(
                    f"{log.name}: line {number:,} is none of Appraise: who, system, item, type (TGT), two languages, "
                    f"score, document … ({', '.join(row)[:60]!r})"
                )
            _, system, item, kind, source, target, score, document, *rest = row
            if kind != "TGT" or "tutorial" in document or "tutorial" in system:
                scores.missing["are of tutorials" if kind == "TGT" else "check the annotators"] += 1
                continue
            whole = " as a whole" if rest[0] == "True" else f"/{item}"
            scores.add(system, f"{source}-{target}/{document}{whole}", _cell(score))
    found = scores.published("export of Appraise")
    where = (("system", "column 2"), ("task", "columns 5, 6, 8, 3"), ("score", "column 7"))
    return Published(found.layout, SCORES, found.table, found.told, where)


def _of_appraise(row: Sequence[str]) -> bool:
    return (
        len(row) >= 9
        and row[3] in ("TGT", "BAD", "REF", "CHK")
        and all(LANGUAGE.fullmatch(one) for one in row[4:6])
        and _cell(row[6]) is not None
    )


def spaced_scores(log: Log) -> Published | None:
    """Read WMT's scores of segments, whose columns (system, a score, seg_id) stand apart by spaces or tabs."""
    heading = log.columns[0].split() if log.columns else []
    if {"system", "seg_id"} - set(heading) or len(heading) != 3 or "\t".join(log.columns).split() != heading:
        return None
    score = next(name for name in heading if name not in ("system", "seg_id"))
    scores = Scores(log.name)
    with opened(log) as text:
        for number, line in enumerate(text, 1):
            fields = line.split()
            if number == 1 or not fields:
                continue
            if len(fields) != 3:
                raise InputError(f"{log.name}: line {number:,} has {len(fields)} fields, the header has 3")
            row: Mapping[str, str] = dict(zip(heading, fields, strict=True))
            cell = _cell(row[score])
            if cell is None:
                raise InputError(f"{log.name}: line {number:,}: the score {row[score][:40]!r} is no number")
            scores.add(row["system"], row["seg_id"], None if cell != cell else cell)
    found = scores.published("WMT scores of segments")
    where = (("system", "system"), ("task", "seg_id"), ("score", score))
    return Published(found.layout, SCORES, found.table, found.told, where)
