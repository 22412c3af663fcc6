"""What a surrogate on edges reads: graphs or scores of the judgments, the rows of their items, and weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.errors import UsageError
from concordant.learning.rankers.plans import CHANCES
from concordant.learning.rankers.validation import Training
from concordant.learning.targets.mean_targets import one_subset
from concordant.losses.objective import Population, Relevance
from concordant.losses.surrogates import Surrogate
from concordant.preferences.graphs import Batch
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Preferences
from concordant.preferences.ragged import Ragged
from concordant.ranking.click_models import examination, usual_clicks
from concordant.ranking.ranked_lists import UNSEEN, lists_with_gaps, several_clicks
from concordant.ranking.scores import Scores
from concordant.ranking.structures import structure as find_structure

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Source:
    """Graphs with the row of X of each of their nodes and the weight of each graph in the risk."""

    law: Population | Relevance
    rows: Ints
    """Row of the features of each node."""
    weight: Floats
    """Weight of each graph; they add up to 1."""
    facts: dict[str, Any]
    notes: tuple[Note, ...] = ()


def of_labels(training: Training, reads: str) -> Source:
    """Return the labels as a point law of scores, or as one person's ratings of each query."""
    law: Population | Relevance
    if reads == "scores":
        law = Relevance.of(training.labels, training.start)
    else:
        query, item = training.groups.owner, training.groups.place
        law = Population.of(Batch.whole(Preferences.from_ratings(query, item, training.labels)))
    return Source(law, training.row, training.share, {"order": "all", "structure": None})


def of_preferences(
    training: Training,
    member: Surrogate,
    *,
    structure: Any,
    structure_options: Mapping[str, Any],
    order: int | str,
    subsets: int,
    seed: int,
) -> Source:
    """Return what the surrogate reads of the preferences: (17) with all judgments, or (18) with k-subsets.

    With ``order`` k each query has ``subsets`` graphs, or draws of its scores, of weight n̂_q/(n B); a query with at
    most k judgments has one, all of them.
    """
    prefs = training.prefs
    if member.reads != "scores" and structure is not None:
        raise UsageError(f"{member.name} reads the preferences themselves; it takes no structure")
    if member.reads == "judgments" and order != "all":
        raise UsageError(f"{member.name} takes each judgment by itself, without aggregation; its order is 'all'")
    if order != "all" and (isinstance(order, bool) or not isinstance(order, int | np.integer) or order < 1):
        raise UsageError(f"order must be 'all' or an integer of at least 1, not {order!r}")
    batch = Batch.whole(prefs) if isinstance(order, str) else Batch.subsets(prefs, int(order), subsets, seed=seed)
    drawn = np.bincount(batch.query, minlength=len(prefs.queries))
    notes = [] if isinstance(order, str) else one_subset(int((prefs.judgments <= order).sum()), len(drawn), order)
    facts: dict[str, Any] = {"order": order, "structure": None}
    if member.reads != "scores":
        if prefs.kind == "selections":
            notes.append(clicks_note(member.name))
        rows = training.row[training.groups.take(batch.query)[1]]
        weight = (training.share / drawn)[batch.query]
        return Source(Population.of(batch), rows, weight, facts, tuple(notes))
    name = structure_for(member, structure, prefs)
    if structure is None and name in CHANCES:
        notes += usual_note(prefs, name)
    function = find_structure(name) if isinstance(name, str) else name
    found = function(batch, **structure_options)
    facts["structure"] = name if isinstance(name, str) else name.__name__
    value = np.minimum(found.value, 1.0) if name in CHANCES else found.value  # a mean of clicks over θ can be above
    known = np.ones(len(value), bool) if found.known is None else found.known
    table, told = (_draws(batch, each, training.start, drawn) for each in (value, known.astype(np.float64)))
    some: NDArray[np.bool_] = np.asarray(
        told.any(axis=0)
    )  # an item is in the place of the mean of the draws in which it was examined
    mean = (table * told).sum(axis=0) / np.maximum(told.sum(axis=0), 1.0)
    start = Ragged.of_sizes(training.groups.sums(some).astype(np.int64)).start
    law = Relevance.of(np.where(told > 0, table, mean)[:, some], start)
    said = [note for note in found.notes if note.code != UNSEEN]  # they are left out
    return Source(law, training.row[some], training.share, facts, (*notes, *said))


def of_scores(scores: Scores, row: Ints) -> Source:
    """What surrogates read of the scores of all judgments of one query, whose items have these rows."""
    some = np.ones(len(row), bool) if scores.known is None else scores.known
    law = Relevance.of(scores.value[some], np.array([0, int(some.sum())]))
    return Source(law, row[some], np.ones(1), {"order": "all"})


def clicks_note(name: str) -> Note:
    """Say what pairs read from click logs do."""
    text = (
        "{name} reads a click as preferred to what stands above it and never the reverse: lists shown in one order "
        "teach it to reverse that order; the structure 'cascade' (with err-pairwise or gain regression) does not"
    )
    return Note("pairs of clicks", text, name=name)


def notes_of_clicks(prefs: Preferences, unnamed: bool, taken: str, clicks: str) -> list[Note]:
    """Say what clicks are read by, where that is not named, and where positions cannot be compared."""
    notes = usual_note(prefs, clicks) if unnamed else []
    return [*notes, *(examination(prefs).apart if taken == "position-based" else ())]


def usual_note(prefs: Preferences, name: str) -> list[Note]:
    """Say what clicks are read by where nothing is named, and why."""
    if prefs.kind != "selections":
        return []
    several, gaps = several_clicks(prefs), lists_with_gaps(prefs)
    linked = bool(gaps and not several) and examination(prefs).linked
    return note_of_usual(several, gaps, len(prefs), name, linked)


def note_of_usual(several: int, gaps: int, lists: int, name: str, linked: bool) -> list[Note]:
    """The same from how many lists have several clicks or gaps, of so many; ``linked``: whether positions are."""
    told = ", for the log tells how often positions are examined"
    if several:
        text = "{several:,} of {of:,} lists have more than one click: they are read by {name}"
        text += told if name == "position-based" else ""
        return [Note("several clicks", text, several=several, of=lists, name=name)]
    if not gaps:
        text = (
            "no list has more than one click: they are read by {name}, as by readers who go down from the top and stop "
            "where they click; if yours look here and there, name the structure position-based"
        )
        return [Note("one click", text, name=name)]
    text = "in {gaps:,} of {of:,} lists positions have gaps: they are read by {name}"
    alike = ", which explains the clicks as well as position-based, whose parameters are more"
    unlinked = ", for clicked items do not link the positions: what is liked and what stands high cannot be told apart"
    text += told if name == "position-based" else alike if linked else unlinked
    return [Note("gaps", text, gaps=gaps, of=lists, name=name)]


def structure_for(member: Surrogate, given: Any, prefs: Preferences) -> Any:
    """The structure given, or the usual one: for ERR chances in [0, 1], else log-odds."""
    if given is not None:
        return given
    clicks = prefs.kind == "selections" and member.consistent_for == "err"
    return usual_structure(member, str(prefs.kind), usual_clicks(prefs) if clicks else "")


def usual_structure(member: Surrogate, kind: str, clicks: str = "cascade") -> str:
    """The usual one of a kind of judgments; ``clicks``: that of the clicks."""
    if member.consistent_for != "err":
        return "log-odds"
    return clicks if kind == "selections" else "budgeted-borda"


def _draws(batch: Batch, value: Floats, start: Ints, drawn: Ints) -> Floats:
    """Return scores of shape (draws, nodes); a query with one draw has it repeated."""
    most = int(drawn.max(initial=1))
    first = Ragged.of_sizes(drawn).first
    table = np.empty((most, int(start[-1])))
    queries = Ragged(start)
    owner, local = queries.owner, queries.place
    for draw in range(most):
        graph = (first + np.where(drawn > 1, draw, 0))[owner]
        table[draw] = value[batch.node_start[graph] + local]
    return table
