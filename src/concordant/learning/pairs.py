"""Pairs to train a reward model on: the votes of all annotators, opposite ones cancelled before there are batches.

The difference graph of each prompt (AoS (23)) is a sum over pairs of answers, so once it is written as rows of prompt,
chosen, rejected and weight, the loss Σ weight · φ(r(chosen) − r(rejected)) is a plain sum over rows: the same in any
batches, on any number of devices.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from concordant.errors import InputError, Setting, UsageError, counted, few
from concordant.io.engines.counting import choose, with_columns
from concordant.io.forms import Columns
from concordant.io.log.formats import Log, locate
from concordant.io.log.tables import from_object
from concordant.io.noted import PROMPTS
from concordant.io.read import read_log
from concordant.io.score_tables import NAMES
from concordant.io.store.catalogue import is_store
from concordant.preferences.connectivity import Differences
from concordant.preferences.graphs import Batch, Graphs
from concordant.preferences.layouts import ALIASES, plain
from concordant.preferences.messages import message_label
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Preferences
from concordant.preferences.unused_clusters import UNUSED
from concordant.progress import stage
from concordant.ranking.best_orders import BestOrders, best_orders

ASKED = ("prompt", "question")
"""Columns that hold the prompt itself, where no other is the query."""
TEXTS = ("text", "answer", "response", "output", "result", "completion", "content", "messages", "conversation")
"""What the column of a text is usually called, in plain spelling."""
HASHED = re.compile(r"#[0-9a-f]{12}$")
"""How labels of conversations end."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Rows of prompt, chosen, rejected, weight and votes; what was cancelled, and the best that a scorer can do.

    ``str`` says it in a sentence; ``len`` is the number of rows.

    >>> found = pairs({"prompt": ["2+2?"] * 3, "chosen": ["4", "4", "5"], "rejected": ["5", "5", "4"]})
    >>> len(found), found.weight, found.votes, found.cancelled, round(found.ceiling, 3)
    (1, 1.0, 3.0, 2.0, 0.667)
    """

    table: pa.Table
    """``weight``: how many more votes there are for ``chosen`` than for ``rejected``; ``votes``: all votes on the two,
    ties included. Both are sums of strengths where votes have such."""
    votes: float
    """All votes that were read and compare different answers."""
    ties: float
    cancelled: float
    """Votes without those left over: Σ over pairs of 2 min(n_ij, n_ji)."""
    level: int
    """Pairs with as many votes one way as the other."""
    prompts: int
    ceiling: float
    """The largest share of votes that any scorer agrees with, one order for each prompt, a tie being half a vote."""
    notes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.table)

    @property
    def weight(self) -> float:
        """Σ weight, by which a loss is divided that is to be a mean over what is left."""
        return float(np.sum(self.table["weight"].to_numpy()))

    def to_arrow(self) -> pa.Table:
        """Return the rows."""
        return self.table

    def __str__(self) -> str:
        return (
            f"{counted(len(self), 'pairs')} of weight {self.weight:,.10g} from {self.votes:,.10g} votes on "
            f"{counted(self.prompts, 'prompts')}, of which {self.cancelled:,.10g} cancel and {self.ties:,.10g} are ties"
        )


def pairs(
    source: Any,
    *,
    texts: Any = None,
    prompts: Any = None,
    level: bool = False,
    columns: Mapping[str, str] | None = None,
    on_error: str = "raise",
    **reading: Any,
) -> Pairs:
    """Return the pairs of answers that a reward model is to tell apart, each once, weighted by its net votes.

    On each prompt the votes of all annotators are added up before training: pair {i, j} has the weight |n_ij − n_ji|
    and stands as the majority has it; level pairs are left out. So Σ weight · φ(r_chosen − r_rejected) over the rows
    is the loss of the difference graph of *all* votes, whichever rows a batch holds. Divide by a fixed number, such as
    ``Pairs.weight``, never by the weight of the batch.

    Parameters
    ----------
    source : a log as ``read`` takes it, or Preferences. The query is the prompt (a column ``prompt`` or ``question`` is
        found where no usual name of the query is); the items are the answers: texts, lists of messages, or names whose
        texts stand in ``texts``. Without a prompt, equal answers are taken for one.
    texts : a table (or its path) of the answers: columns with the item, the query (if the text depends on it) and the
        text, found by what they hold. Items with the same text are one answer.
    prompts : a table (or its path) with the query and the text of the prompt.
    level : keep pairs whose votes cancel, with weight 0: they add nothing to the loss, and belong to an evaluation.
    columns, on_error : as of ``read``. With 'skip' votes on answers without a text are left out.
    **reading : as of ``read``.

    Errors: InputError where nothing is left, an answer or a prompt has no text or two; and what ``read`` refuses.

    >>> votes = {"prompt": ["2+2?"] * 4, "chosen": ["4", "4", "5", "4"], "rejected": ["5", "5", "4", "22"]}
    >>> found = pairs(votes)
    >>> print(found)
    2 pairs of weight 2 from 4 votes on 1 prompt, of which 2 cancel and 0 are ties
    >>> found.to_arrow().to_pylist()[1]
    {'prompt': '2+2?', 'chosen': '4', 'rejected': '5', 'weight': 1, 'votes': 3}

    Source: Duchi, Mackey and Jordan (2013), (17) and (23).
    """
    roles: Mapping[str, str] = {}
    told: list[str] = []
    if isinstance(source, Preferences):
        prefs = source
    else:
        source, columns = _with_prompt(source, dict(columns or {}))
        try:
            found = read_log(source, columns=columns, on_error=on_error, pool=False, **reading)
        except InputError as problem:
            if on_error == "raise" and "with itself" in str(problem):
                raise InputError(
                    *problem.args, " ", Setting("on_error", "skip"), " leaves identical answers out"
                ) from None
            raise
        prefs, roles = found.preferences, found.roles
        told = [found.report()] if found.rejects else []
        told += [note for note in found.notes if not isinstance(note, Note) or note.code != UNUSED]
    with stage("matching texts"):
        batch = Batch.whole(prefs)
        asked = _prompts(prefs, prompts, source, roles)
        answers = _answers(prefs, batch, texts, source, roles)
        graphs, known, same = _graphs(prefs, batch, asked, answers, on_error)
    if known:
        lost = counted(known, "votes")
        told.append(Note("without text", "{lost} on answers or prompts without a text are left out", lost=lost))
    if blank := sum(isinstance(one, str) and not one.strip() for one in asked):
        text = "{blank:prompt is|prompts are} empty, or nothing but white space"
        told.append(Note("empty prompt", "{blank:,} " + text, blank=blank))
    if same:
        text = "{same:vote compares|votes compare} answers with the same text and {same:is|are} left out"
        told.append(Note("same text", "{same:,} " + text, same=same))
    best = best_orders(graphs)
    with stage("making pairs"):
        return _netted(prefs, batch, graphs, best, asked, answers, roles, level, texts is None, tuple(told))


# -- what is judged ----------------------------------------------------------------------------------------------------
def _log(source: Any) -> Log:
    path = isinstance(source, str | os.PathLike)
    return with_columns(locate(source) if path else from_object(source))


def _with_prompt(source: Any, columns: dict[str, str]) -> tuple[Any, dict[str, str]]:
    """Return what is to be read, and the columns with that of the prompt where only its name tells."""
    path = isinstance(source, str | os.PathLike)
    if "query" in columns or "items" in columns or (path and is_store(Path(source))):
        return source, columns
    with suppress(InputError):  # ``read`` says what is wrong
        log = _log(source)
        there = Columns(log.columns, [*columns.values()], log.name)
        if there.find(ALIASES["query"], "query", several=True) is None:
            asked = next((name for one in ASKED if (name := there.find((one,), "query"))), None)
            columns |= {} if asked is None else {"query": asked}
        source = log.table if isinstance(log.table, pa.Table) and not path else source
    return source, columns


def _values(log: Log, columns: Iterable[str]) -> dict[str, list[Any]]:
    """Return columns as Python has them."""
    names = [*dict.fromkeys(columns)]
    rows = [row for _, row in choose(log, None, None, None).placed_rows(names)]
    if log.as_json:
        rows = [tuple([None if one is None else json.loads(one) for one in row]) for row in rows]
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}


def _conversations(labels: Any, source: Any, roles: Mapping[str, str], *names: str) -> dict[str, Any]:
    """Return the messages that labels stand for, of the columns of these roles; nothing where labels are texts."""
    if not len(labels) or not all(isinstance(one, str) and HASHED.search(one) for one in labels):
        return {}
    wanted = [roles[name] for name in names if name in roles]
    log = None
    if not isinstance(source, Preferences) and not (isinstance(source, str | os.PathLike) and is_store(Path(source))):
        log = _log(source)
    if log is None or not {*wanted} <= {*log.columns}:
        raise InputError(
            f"these are labels of conversations, not the conversations: {few(labels, 2)}; name the log that has them"
        )
    found = [value for column in _values(log, wanted).values() for value in column]
    return {label: value for value in found if (label := message_label(value)) is not None}


def _prompts(prefs: Preferences, prompts: Any, source: Any, roles: Mapping[str, str]) -> list[Any]:
    """Return what each query asks; None where it has no text."""
    labels = prefs.queries.tolist()
    if prompts is not None:
        if "query" not in roles and len(labels) < 2:
            raise UsageError("the log has no query, so ", Setting("prompts"), " says nothing; name its column with ",
                             Setting("columns", key="query"))  # fmt: skip
        name, rows = _keyed(prompts, [("query", {str(one) for one in labels})], ("prompt", *TEXTS, "question"))
        found = _looked_up(name, rows)
        return [found.get((str(one),)) for one in labels]
    said = _conversations(labels, source, roles, "query")
    return [said.get(one, one) for one in labels]


def _answers(prefs: Preferences, batch: Batch, texts: Any, source: Any, roles: Mapping[str, str]) -> list[Any]:
    """Return what each node of the batch says; None where it has no text."""
    labels = prefs.items.tolist()
    if texts is None:
        sides = ("winner", "loser", "left", "right", "item")
        said = _conversations(labels, source, roles, *sides)
        return [said.get(labels[item], labels[item]) for item in batch.item]
    items, queries = ({str(one) for one in column} for column in (labels, prefs.queries.tolist()))
    name, rows = _keyed(texts, [("item", items), ("query", queries)], TEXTS)
    found = _looked_up(name, rows)
    whole = all(len(key) == 1 for key in found)
    query = [str(one) for one in prefs.queries.tolist()]
    return [
        found.get((str(labels[item]),) if whole else (str(labels[item]), query[owner]))
        for item, owner in zip(batch.item.tolist(), batch.query[batch.owner].tolist(), strict=True)
    ]


KEYS = {
    "item": (*ALIASES["item"], *NAMES["system"]),
    "query": (*ALIASES["query"], *PROMPTS),
}


def _keyed(
    source: Any, sought: list[tuple[str, set[str]]], words: tuple[str, ...]
) -> tuple[str, list[tuple[tuple[str, ...], Any]]]:
    """Return the name of a table, and key and text of its rows; a column is a key that holds labels of the log."""
    log = _log(source)
    text = next((column for word in words for column in log.columns if plain(column) == word), None)
    if text is None:
        raise InputError(f"{log.name}: no column holds texts; known names: {few(words, 20)}; there: {few(log.columns)}")
    values = _values(log, log.columns)
    keys: list[list[Any]] = []
    for role, labels in sought:
        met = {
            column: len({str(one) for one in values[column] if isinstance(one, str | int)} & labels)
            for column in log.columns
            if column != text
        }
        usual = [column for column in met if plain(column) in KEYS[role] and met[column]]
        best = max(usual or met, key=lambda column: met[column], default=None)
        if best is not None and met[best]:
            keys.append(values[best])
        elif role == sought[0][0]:
            which = {"item": "items", "query": "queries"}[role]
            raise InputError(f"{log.name}: no column holds the {which} of the log, such as {few(sorted(labels), 3)}")
    return log.name, [
        (tuple(map(str, key)), str(said) if isinstance(said, int | float) else said)
        for *key, said in zip(*keys, values[text], strict=True)
        if said is not None
    ]


def _looked_up(name: str, rows: list[tuple[tuple[str, ...], Any]]) -> dict[tuple[str, ...], Any]:
    found: dict[tuple[str, ...], Any] = {}
    for key, said in rows:
        if found.setdefault(key, said) != said:
            raise InputError(f"{name}: two texts stand for {few(key)}")
    return found


# -- what is left of the votes -----------------------------------------------------------------------------------------
def _graphs(
    prefs: Preferences, batch: Batch, asked: list[Any], answers: list[Any], on_error: str
) -> tuple[Graphs, int, int]:
    """Return the pair tables with one node for each text, and the votes that lack a text or compare equal ones."""
    edges, owner = batch.edges, batch.owner
    there = np.array([one is not None for one in answers], bool) & np.array([one is not None for one in asked])[owner]
    times = batch.multiplicity[edges.holder]
    known = there[edges.winner] & there[edges.loser]
    if not known.all() and on_error != "skip":
        lost = int(np.append(edges.winner, edges.loser)[~np.append(there[edges.winner], there[edges.loser])][0])
        where, item = prefs.queries[int(batch.query[owner[lost]])], prefs.items[int(batch.item[lost])]
        raise InputError(
            f"{int(times[~known].sum()):,} of {int(times.sum()):,} votes are on answers or prompts without a text, "
            f"such as item {item!r} of query {where!r}; ",
            Setting("on_error", "skip"),
            " leaves them out",
        )
    first: dict[tuple[int, str], int] = {}
    texts = [one if isinstance(one, str) else json.dumps(one, sort_keys=True, default=str) for one in answers]
    node = np.array([first.setdefault(key, place) for place, key in enumerate(zip(owner.tolist(), texts))], np.int64)
    differ = node[edges.winner] != node[edges.loser] if len(node) else np.zeros(0, bool)
    kept = known & differ
    mass = times * edges.strength if prefs.weighted else times
    sides = node[edges.winner[kept]], node[edges.loser[kept]]
    graphs = Graphs.from_edges(batch.node_start, *sides, mass[kept], edges.tie[kept])
    return graphs, int(times[~known].sum()), int(times[known & ~differ].sum())


def _netted(
    prefs: Preferences, batch: Batch, graphs: Graphs, best: BestOrders, asked: list[Any], answers: list[Any],
    roles: Mapping[str, str], level: bool, names: bool, told: tuple[str, ...],
) -> Pairs:  # fmt: skip
    net = Differences.of(graphs)
    votes = graphs.wins + graphs.losses + graphs.ties
    total, ties = float(votes.sum()), float(graphs.ties.sum())
    flat = len(net.level_first)
    if not len(votes):
        raise InputError("nothing is left to train on: ", *([told[-1]] if told else ["no vote compares two answers"]))
    if not len(net.weight) and not level:
        raise InputError(
            f"nothing is left to train on: all {total:,.10g} votes {'are ties' if ties == total else 'cancel'} (on "
            f"each of {counted(len(votes), 'pairs')} of answers as many are for one as for the other); ",
            Setting("level"),
            " keeps them with weight 0",
        )
    chosen, rejected, weight = net.winner, net.loser, net.weight
    if level:
        chosen, rejected = np.append(chosen, net.level_first), np.append(rejected, net.level_second)
        weight = np.append(weight, np.zeros(flat))
        order = np.argsort(graphs.owner[chosen], kind="stable")
        chosen, rejected, weight = chosen[order], rejected[order], weight[order]
    query = batch.query[graphs.owner[chosen]].tolist()
    table = _table([asked[one] for one in query], [answers[one] for one in chosen.tolist()],
                   [answers[one] for one in rejected.tolist()], prefs, roles)  # fmt: skip
    for name, column in (("weight", weight), ("votes", votes[graphs.pair_of(chosen, rejected)])):
        whole = (column == np.rint(column)).all()
        table = table.append_column(name, pa.array(column.astype(np.int64) if whole else column))
    judged = int(np.count_nonzero(np.bincount(graphs.graph, minlength=len(graphs))))
    cancelled = 2.0 * float(np.minimum(graphs.wins, graphs.losses).sum())
    ceiling = 1.0 - float(best.lower.sum()) / max(total, 1.0)
    notes = _notes(cancelled, flat, level, judged, int((best.largest > 1).sum()), ceiling)
    if "prompt" not in table.column_names:
        notes = (_no_prompt(table, roles), *notes)
    if len(prefs.items) < 0.5 * len(batch.item) and names:
        text = "{systems:items} recur on {prompts:prompts}, as names of systems do, not answers; {ask} adds the texts"
        notes = (Note("names", text, systems=len(prefs.items), prompts=judged, ask=Setting("texts")), *notes)
    return Pairs(table, total, ties, cancelled, flat, judged, ceiling, (*told, *notes))


def _notes(cancelled: float, flat: int, level: bool, prompts: int, cyclic: int, ceiling: float) -> tuple[str, ...]:
    notes = []
    if not cancelled:
        text = "no two votes contradict each other: nothing cancels, and the loss of these pairs is the usual one"
        notes.append(Note("nothing cancels", text))
    if flat and not level:
        text = "{level:pair has|pairs have} as many votes one way as the other and {level:is|are} left out"
        notes.append(Note("level", "{level:,} " + text, level=flat))
    if cyclic:
        text = (
            "in {cyclic:,} of {prompts:prompts} majorities go round in a circle, so no scorer agrees with all of them"
        )
        notes.append(Note("cycles", text, cyclic=cyclic, prompts=prompts))
    text = "no scorer agrees with more than {share:.1%} of the votes (a tie is half a vote)"
    return (*notes, Note("ceiling", text, share=ceiling))


# -- as trainers take it -----------------------------------------------------------------------------------------------
def _table(
    asked: list[Any], chosen: list[Any], rejected: list[Any], prefs: Preferences, roles: Mapping[str, str]
) -> Any:
    """Return prompt, chosen and rejected, all texts or all messages; what is no prompt keeps the log's own name."""
    spoken = all(isinstance(one, list) for one in (*chosen, *rejected))
    if not spoken and any(isinstance(one, list) for one in asked):
        chosen, rejected = ([_said("assistant", one) for one in column] for column in (chosen, rejected))
        spoken = True
    whole = spoken and all(
        one and {"assistant", "gpt"}.isdisjoint(map(str, one[0].values())) for one in chosen + rejected
    )
    own = roles.get("query", "query")
    named = whole or all(not isinstance(one, list) and re.fullmatch(r"-?\d+", str(one)) for one in asked)
    if spoken and not named:
        asked = [_said("user", one) for one in asked]
    columns: dict[str, list[Any]] = {"chosen": chosen, "rejected": rejected}
    if (len(prefs.queries) > 1 or "query" in roles) and not (whole and own == "prompt"):
        columns = {f"{own}_id" if named and own == "prompt" else own if named else "prompt": asked} | columns
    try:
        return pa.table({name: pa.array(column) for name, column in columns.items()})
    except pa.ArrowException as error:
        raise InputError(f"the answers cannot stand in one column: {str(error).splitlines()[0][:200]}") from None


def _said(role: str, text: Any) -> Any:
    return text if isinstance(text, list) else [{"role": role, "content": str(text)}]


def _no_prompt(table: pa.Table, roles: Mapping[str, str]) -> Note:
    if isinstance(table["chosen"][0].as_py(), list) and "query" in roles:
        text = "the answers begin with what was asked, so there is no column 'prompt', which trainers put before them"
        return Note("whole conversations", text)
    if "query" in roles:
        text = "the column {column!r} numbers the prompts and has no text: there is no column 'prompt'; {ask} adds it"
        return Note("no prompt", text, column=roles["query"], ask=Setting("prompts"))
    text = "no column of the log is its prompt ({ask} names one): equal answers are taken for one, whatever was asked"
    return Note("no prompt", text, ask=Setting("columns", key="query"))
