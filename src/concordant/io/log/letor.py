"""Judged documents: LETOR/SVMLight files and TREC qrels become ratings, one judgment per query."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pyarrow as pa

from concordant.errors import InputError
from concordant.io.log.formats import Log, opened

DOCID = re.compile(r"docid\s*[=:]\s*(\S+)", re.IGNORECASE)


def read_letor(log: Log) -> Log:
    """Read ``rel qid:… k:v … # docid``: columns query, item, rating.

    The item is what follows ``docid =``; without it the comment, where no query has one twice; else the number of the
    line within its query, from 1.
    """
    lines: list[int] = []
    labels: list[str] = []
    queries: list[str] = []
    comments: list[str] = []
    with opened(log) as text:
        for number, line in enumerate(text, 1):
            body, _, comment = line.partition("#")
            if not body.strip():
                continue
            parts = body.split(None, 2)
            if len(parts) < 2 or not parts[1].startswith("qid:") or len(parts[1]) == 4:
                raise InputError(f"{log.name}: line {number:,} is not of the form 'label qid:query 1:value …'")
            lines.append(number)
            labels.append(parts[0])
            queries.append(parts[1][4:])
            comments.append(comment.strip())
    return _ratings(log, lines, queries, _documents(queries, comments), labels)


def _documents(queries: list[str], comments: list[str]) -> list[str]:
    named = [DOCID.search(comment) for comment in comments]
    if all(named):
        return [match.group(1) for match in named if match]
    if all(comments) and len(set(zip(queries, comments, strict=True))) == len(comments):
        return comments
    seen: dict[str, int] = {}
    found = []
    for query in queries:
        seen[query] = seen.get(query, 0) + 1
        found.append(str(seen[query]))
    return found


def read_qrels(log: Log) -> Log:
    """Read ``query iteration document relevance``: columns query, item, rating."""
    lines: list[int] = []
    columns: tuple[list[str], list[str], list[str]] = ([], [], [])
    with opened(log) as text:
        for number, line in enumerate(text, 1):
            parts = line.split()
            if not parts:
                continue
            if len(parts) != 4:
                raise InputError(f"{log.name}: line {number:,} has {len(parts)} fields, qrels have 4")
            lines.append(number)
            for column, value in zip(columns, (parts[0], parts[2], parts[3]), strict=True):
                column.append(value)
    return _ratings(log, lines, *columns)


def _ratings(log: Log, lines: list[int], query: list[str], item: list[str], rating: list[str]) -> Log:
    if not lines:
        raise InputError(f"{log.name}: the file holds no rows")
    names = ("query", "item", "rating")
    texts = [pa.array(column, pa.large_string()) for column in (query, item, rating)]
    table = pa.table(dict(zip(names, texts, strict=True)))
    return replace(log, columns=names, table=table, lines=np.array(lines))
