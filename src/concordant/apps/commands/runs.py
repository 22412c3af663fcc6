"""TREC runs: whether logs are some, a ranking written as one, and runs judged by qrels as trec_eval does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from concordant.apps.commands.evaluate import mean_row
from concordant.apps.commands.matching import read_valued
from concordant.apps.commands.output import put_file
from concordant.errors import InputError, UsageError, counted
from concordant.io.engines.counting import with_columns
from concordant.io.engines.memory import arrow_table
from concordant.io.log.formats import located
from concordant.io.log.headers import sniffed
from concordant.io.store.catalogue import is_store
from concordant.losses.metrics.metrics import METRICS, canonical, compare, metric, summarise
from concordant.ranking.rank import Ranking

ENDING = ".run"


def are_runs(names: Sequence[str]) -> bool:
    """Whether a log is of TREC runs; several names are looked at when they are read."""
    if is_store(Path(names[0])):
        return False
    try:
        log = located(names)
    except InputError:  # whoever reads it says why
        return False
    return sniffed(log.parts[0] if log.parts else log).format == "run"


def write_run(board: Ranking, name: str) -> int:
    """Write a ranking as a run, its structure as the tag; return the number of rows, items without a rank left out.

    Errors (UsageError): items of one query that cannot be compared, labels that are empty or hold white space.
    """
    stands = np.flatnonzero(board.rank > 0)
    if (board.component[stands] > 1).any():
        raise UsageError(
            f"--output {name}: a run has one order for a query, and some items here were never compared with others "
            "(column component of other formats)"
        )
    query, item = board.query[stands], board.item[stands]
    begin = np.flatnonzero(np.diff(query, prepend=-1))
    place = np.arange(len(query)) - np.repeat(begin, np.diff(np.append(begin, len(query)))) + 1
    labels = [pc.cast(of.take(codes), pa.large_string()) for of, codes in ((board.queries, query), (board.items, item))]
    for texts in labels:
        bad = texts.filter(pc.match_substring_regex(texts, r"^$|\s"))
        if len(bad):
            raise UsageError(f"--output {name}: fields of a run hold no white space, as {bad[0].as_py()!r} does")
    ranks, scores = (pa.array(column).cast(pa.large_string()) for column in (place, board.score[stands]))
    fields = [labels[0], "Q0", labels[1], ranks, scores, board.structure, " "]
    fields = [pa.scalar(one, pa.large_string()) if isinstance(one, str) else one for one in fields]
    lines = pc.binary_join_element_wise(*fields).to_pylist() if len(stands) else []
    put_file(name, lambda temporary: Path(temporary).write_text("".join(f"{line}\n" for line in lines), "utf-8"))
    return len(lines)


def judges_of(metrics: Sequence[str]) -> dict[str, Callable[..., Any]]:
    """Return the metrics of some names. Errors (UsageError): unknown ones, and those that take no cut-off."""
    found = {name: metric(name, "trec") for said in metrics for name in said.split(",")}
    if rankless := [name for name in found if (known := canonical(name)) and not METRICS[known].cutoff]:
        raise UsageError(f"--metric {rankless[0]}: runs are judged by what is at the top, such as ndcg@10 or map")
    return found


def judged(
    board: Ranking, names: Sequence[str], qrels: str, judges: Mapping[str, Callable[..., Any]], level: float
) -> tuple[pa.Table, list[str]]:
    """Return a row for each metric of the fused run and of every run alone, paired differences beside, and notes.

    A document without a label is not relevant, one that a run leaves out gains nothing, and a query that it leaves out
    counts 0. Queries are those with labels that some run has. Errors (InputError): there is none.
    """
    labels = read_valued(qrels, "label", {})
    if labels.query is None:
        raise InputError(f"{qrels}: no column of the query")
    score = np.where(board.rank > 0, board.score, -np.inf)
    rows = [("fused", board.queries.take(board.query), board.items.take(board.item), score), *_alone(names)]
    of_query = _codes([labels.query, *(row[1] for row in rows)])[1]
    item, of_item = _codes([labels.item, *(row[2] for row in rows)])
    key = [q * len(item) + i for q, i in zip(of_query, of_item, strict=True)]
    ours, theirs = np.unique(of_query[0]), np.unique(np.concatenate(of_query[1:]))
    both = np.intersect1d(ours, theirs)
    if not len(both):
        raise InputError(f"{qrels} has no query of the runs; its first is {labels.query[0].as_py()!r}")
    every = np.unique(np.concatenate(key))
    every = every[np.isin(every // len(item), both)]
    column, document = every // len(item), item.take(pa.array(every % len(item)))
    label = _filled(every, key[0], labels.value, 0.0)
    scores = [_filled(every, keys, row[3], -np.inf) for row, keys in zip(rows, key[1:], strict=True)]
    table = []
    for name, judge in judges.items():
        values = [judge(score, label, column, item=document) for score in scores]
        for row, value in zip(rows, values, strict=True):
            pair = compare(values[0], value, level=level)
            ends: dict[str, float] = {
                "difference": pair.mean,
                "lower": pair.lower,
                "upper": pair.upper,
                "p_value": pair.p_value,
            }
            against = dict.fromkeys(ends) if row is rows[0] else ends
            table.append({"run": row[0], **mean_row(name, summarise(value), None), **against})
    left = {f"of {qrels} without a run": len(ours), "of the runs without labels": len(theirs)}
    said = {what: number - len(both) for what, number in left.items() if number > len(both)}
    return pa.Table.from_pylist(table), [
        f"left out: {counted(number, 'queries')} {what}" for what, number in said.items()
    ]


def _alone(names: Sequence[str]) -> Iterator[tuple[str, Any, Any, Any]]:
    """Yield tag, queries, documents and scores of each run."""
    table = arrow_table(with_columns(located(names)), ("query", "judgment", "item", "score")).unify_dictionaries()
    for tag in sorted(pc.unique(table["judgment"]).to_pylist()):
        own = table.filter(pc.equal(table["judgment"], tag))
        yield tag, own["query"], own["item"], own["score"].to_numpy()


def _codes(columns: Sequence[Any]) -> tuple[pa.Array, list[Any]]:
    """Return the texts of some columns, each once, and the codes of each column."""
    texts = [pc.cast(one, pa.large_string()) for one in columns]
    parts = [chunk for one in texts for chunk in (one.chunks if isinstance(one, pa.ChunkedArray) else [one])]
    whole = pa.concat_arrays(parts).dictionary_encode()
    ends = np.cumsum([len(one) for one in texts])[:-1]
    return whole.dictionary, np.split(whole.indices.to_numpy(zero_copy_only=False).astype(np.int64), ends)


def _filled(every: Any, keys: Any, values: Any, fill: float) -> Any:
    """Return the values at the keys among all of ``every``, others filled."""
    found = np.full(len(every), fill)
    place = np.minimum(np.searchsorted(every, keys), len(every) - 1)
    here = every[place] == keys
    found[place[here]] = values[here]
    return found
