"""One query that no task can hold, by structures that have no likelihood of pairs or lists: sums over shares.

What a structure reads of a query is small where its items are few, however many judged them: who won how often against
whom, how often an item was shown and clicked at each place, what the lists give to each item. Each share counts that,
the counts add up, and the ranking is made of them on the driver by the functions that make it in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from inspect import signature
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from concordant.apps.spark.click_sums import CLICKS, batch_of
from concordant.apps.spark.divided import InOnePass, Read, Reading, declared
from concordant.apps.spark.frames import JudgedQueries
from concordant.apps.spark.learning_held import Sums
from concordant.apps.spark.redrawn import Again, as_judged
from concordant.apps.spark.shares import CELLS, Positions, Share, Tabled, Tally, TooMuch, Whole
from concordant.apps.spark.splitting import Divided
from concordant.errors import Setting, UsageError
from concordant.preferences.connectivity import connectivity
from concordant.preferences.graphs import Batch, Edges, Graphs
from concordant.preferences.labels import Labels
from concordant.preferences.preferences import Preferences
from concordant.preferences.ragged import Ragged, centred
from concordant.progress import stage
from concordant.ranking.closed_forms import (
    PRECISE,
    SUMS,
    balanced,
    mean_position,
    one_sided,
    refuse_one_sided,
    too_far,
    weighted_differences,
)
from concordant.ranking.multinomial import Replicates
from concordant.ranking.newton import conjugate_gradients
from concordant.ranking.rank import Ranking, rank
from concordant.ranking.ranked_lists import (
    all_linked,
)
from concordant.ranking.scores import Scores, closed_form
from concordant.ranking.structures import STRUCTURES, Structure
from concordant.ranking.structures import structure as find_structure

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
TRAVELLING = 1 << 24
"""Pairs that tasks send at a time, at most."""
PASSES = 1000
"""Steps of conjugate gradients, at most."""
OF_RANK = {*signature(rank).parameters}
"""What ``rank`` is asked for beside the options of a structure."""
DRAWN = 1 << 29
"""Numbers of all replicates of a bootstrap that tasks send, at most."""


# -- in a task -----------------------------------------------------------------------------------------------------
def _sizes(share: Share) -> Sums:
    """Judgments of each item, and pairs of which it is the first."""
    size = len(share.touched)
    pairs = np.bincount(share.first, minlength=size) if isinstance(share, Tabled) else np.zeros(size, np.int64)
    return Sums(touched=share.touched, pairs=pairs)


def _tabled(share: Share) -> Tabled:
    if not isinstance(share, Tabled):
        raise TypeError("a share has no pair table")
    return share


@dataclass(frozen=True)
class _PairsOf:
    """The pairs whose first item is among some: wins, losses, ties, judgments."""

    begin: int
    end: int

    def __call__(self, share: Share) -> Sums:
        table = _tabled(share)
        graphs = table.graphs()
        own = np.flatnonzero((graphs.first >= self.begin) & (graphs.first < self.end))
        counts = graphs.wins, graphs.losses, graphs.ties, table.judged
        key = graphs.first[own] * graphs.nodes + graphs.second[own]
        return Sums(pairs=Tally.of(key, *[each[own] for each in counts]))


def _one_sided(share: Share) -> Sums:
    return Sums(pairs=one_sided(_tabled(share).graphs()))


def _by_item(share: Share, *, structure: str, options: Mapping[str, Any]) -> Sums:
    """What the pairs of a share add up to, of each item."""
    return Sums(enumerate(SUMS[structure].sums(_tabled(share).graphs(), **options)))


@dataclass(frozen=True)
class _Differences:
    """What the differences of a share's pairs pull at each item, the diagonal of their equations, their weights' ends.

    These are least-squares equations, (D_Ω − Ω)s = (Ω∘A)1.
    """

    options: Mapping[str, Any]

    def __call__(self, share: Share) -> Sums:
        graphs, omega, odds = self.of(share)
        ends = [(omega.min(), omega.max())] if len(omega) else []
        pull = graphs.add_to_nodes(omega * odds, -omega * odds)
        return Sums(pull=pull, diagonal=graphs.add_to_nodes(omega, omega), ends=ends)

    def of(self, share: Share) -> tuple[Graphs, Floats, Floats]:
        """The pair table of a share, and Ω and A of each pair."""
        table = _tabled(share)
        graphs = table.graphs()
        batch = _of_pairs(Batch.whole(Preferences.empty()), graphs, np.asarray(table.judged, np.float64))
        return graphs, *weighted_differences(batch, **self.options)


@dataclass(frozen=True, eq=False)
class _Balance(_Differences):
    """The matrix of these equations times a vector."""

    along: Floats

    def __call__(self, share: Share) -> Sums:
        graphs, omega, _ = self.of(share)
        flow = omega * (self.along[graphs.first] - self.along[graphs.second])
        return Sums(image=graphs.add_to_nodes(flow, -flow))


def _of_positions(share: Share) -> Sums:
    if not isinstance(share, Positions):
        raise TypeError("a share has no positions")
    total, mass = share.sums()
    return Sums(total=total, mass=mass)


def _added(share: Share, *, structure: str, options: Mapping[str, Any]) -> Sums:
    """What the lists of a share give to each item."""
    found = find_structure(structure).function(batch_of(share), **options)
    return Sums(touched=share.touched, value=found.value)


# -- on the driver -------------------------------------------------------------------------------------------------
def reading(structure: str, kind: str) -> Reading | None:
    """Return how a structure reads such a query; None where that is no sum over judgments."""
    member = find_structure(structure)
    if structure in READINGS:
        return READINGS[structure]
    if member.reads != "pairs" or member.likelihood:
        return None
    return POSITIONS if member.positions and kind == "orders" else PAIRS


def refuse_estimated(structure: Any) -> NoReturn:
    """Refuse the bootstrap of a query that no task can hold, of what all of a log tells. Errors: UsageError."""
    member = find_structure(structure)
    raise UsageError(
        f"on Spark there is no bootstrap of {member.name} where no task can hold a query and its replicates take too "
        "many numbers together, or clusters have several columns; ask for fewer replicates, or leave ",
        Setting("interval"),
        " out, or work without Spark",
    )


def estimated(structure: Any, options: Mapping[str, Any]) -> bool:
    """Whether a structure estimates from the whole log how often positions are examined or readers go on."""
    member = find_structure(structure) if isinstance(structure, str) else None
    if member is None:
        return False
    return bool(member.linked) or ("propensities" in member.options and not options.get("propensities"))


def summable(judged: JudgedQueries, structure: Any, asked: Mapping[str, Any]) -> bool:
    """Whether the ranking of one query follows from what shares count: that of a structure without a likelihood of
    pairs or lists.
    """
    if not isinstance(structure, str) or structure not in STRUCTURES or judged.kind not in STRUCTURES[structure].kinds:
        return False
    return reading(structure, judged.kind) is not None and (
        asked.get("interval") != "bootstrap" or judged.cluster_columns < 2
    )


def ranked(
    judged: JudgedQueries, label: Any, structure: str, asked: Mapping[str, Any], read: Read | None = None
) -> tuple[Ranking, list[str]] | None:
    """The ranking of a divided query by ``concordant.rank`` and what is to be noted; None without judgments.

    ``asked``: what ``rank`` takes; ``read``: what is known of the query already. Errors: TooMuch; as of any task and
    of ``rank``.
    """
    with _shares(judged, label, structure, options_of_rank(asked)) as (shares, how):
        if shares is None:
            return None
        whole = as_judged(judged, label) if asked["interval"] == "bootstrap" else None
        return of_shares(shares, how, find_structure(structure), asked, judged.kind, whole, read)


def scored(
    judged: JudgedQueries, label: Any, structure: str, options: Mapping[str, Any]
) -> tuple[Divided, Scores] | None:
    """The shares of a query, freed again, and the scores of its items, to learn from; None without judgments.

    Of lists as shown nothing is learned from what stands below the last click, unless the structure reads that.
    Errors: TooMuch; as of any task.
    """
    member = find_structure(structure)
    with _shares(judged, label, structure, options, cut=not member.below) as (shares, how):
        if shares is None:
            return None
        batch = Batch.whole(declared(judged.kind, shares.query, shares.items))
        return shares, how.read(shares, member, options).scores(batch)


@contextmanager
def _shares(
    judged: JudgedQueries, label: Any, structure: str, options: Mapping[str, Any], *, cut: bool = False
) -> Iterator[tuple[Divided | None, Reading]]:
    """The shares of a query as a structure wants them, and how it reads them. Errors: TooMuch; as of any task."""
    how = reading(structure, judged.kind)
    if how is None:
        raise TooMuch
    find_structure(structure).check(judged.kind, options)
    shares = Divided.of(judged, label, how.kept, linked=how.linked, cut=cut)
    try:
        yield shares, how
    finally:
        if shares is not None:
            shares.forget()


def of_shares(
    shares: Divided,
    how: Reading,
    member: Structure,
    asked: Mapping[str, Any],
    kind: str,
    whole: Divided | None = None,
    read: Read | None = None,
) -> tuple[Ranking, list[str]]:
    """The ranking of a query by ``concordant.rank``, and what is to be noted. Errors: TooMuch; as of ``rank``.

    ``whole``: shares that have kept their judgments, where these are drawn again; ``read``: what is known already.
    """
    found = how.read(shares, member, options_of_rank(asked)) if read is None else read
    again = None if whole is None else Again.of(whole, shares)
    try:
        if again is not None:
            member = replace(member, redraws=partial(_redraws, again, how, found, member))
        board, notes = of_read(found, shares.query, shares.items, member, asked, kind)
    finally:
        if again is not None:
            again.forget()
    looked = "; whether the model fits was not looked at" if member.expects else ""
    return board, [*notes, shares.said + looked]


def _redraws(
    again: Again,
    how: Reading,
    read: Read,
    member: Structure,
    batch: Batch,
    options: Mapping[str, Any],
    replicates: int,
    seed: int,
) -> Replicates:
    """The replicates of a bootstrap, each of what shares count of it. Errors: TooMuch."""
    size = len(batch.item)
    numbers = max(read.numbers, size)
    if numbers * replicates > DRAWN:
        raise TooMuch
    draw, number = again.draw(replicates, seed)
    values = how.again(again, draw, how, read, member, options, batch)
    return Replicates(values, np.zeros(len(batch), np.int64), np.full(len(batch), number))


def of_read(
    found: Read, query: Labels, items: Labels, member: Structure, asked: Mapping[str, Any], kind: str
) -> tuple[Ranking, list[str]]:
    """The ranking of a query by what is known of it, and what ``rank`` notes. Errors: as of ``rank``."""
    prefs = declared(kind, query, items)
    board = rank(prefs, _standing_in(member, found), **asked)
    return board, [str(note) for note in board.notes if note not in prefs.notes]


def options_of_rank(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the structure among what ``rank`` is asked for."""
    return {name: value for name, value in asked.items() if name not in OF_RANK}


def _standing_in(member: Structure, found: Read) -> Structure:
    known: dict[str, Any] = {} if found.trials is None else {"trials": lambda _: found.trials}
    return replace(
        member, function=lambda batch, **_: found.scores(batch), linked=lambda _: found.links,
        touched=lambda _: found.touched, expects=False, **known,
    )  # fmt: skip


def _pairs(shares: Divided, member: Structure, options: Mapping[str, Any]) -> Read:
    """Structures of pairs, from the pair table of the query."""
    with stage("adding up pairs"):
        found = shares.sums(_sizes)
        try:
            key, counts = pair_table(shares, found["pairs"])
        except TooMuch:
            if shares.by == "pairs" and member.name in (*SUMS, "thurstone-mosteller"):
                return _beyond(shares, member, options, int(found["pairs"].sum()))
            raise
    graphs, judged = _graphs(key, counts, len(shares.items))

    def scores(batch: Batch) -> Scores:
        return member.function(_of_pairs(batch, graphs, judged), **options)

    return Read(scores, connectivity(graphs), found["touched"], numbers=len(key))


def _graphs(key: Ints, counts: tuple[NDArray[Any], ...], size: int) -> tuple[Graphs, Floats]:
    """The pair table of so many items, and how many judgments each pair has."""
    first, second = np.divmod(key, max(size, 1))
    wins, losses, ties, judged = (np.asarray(each, np.float64) for each in counts)
    return Graphs(np.array([0, size]), np.array([0, len(first)]), first, second, wins, losses, ties, None), judged


def _of_replicate(found: Sums, _: Read, member: Structure, options: Mapping[str, Any], batch: Batch) -> Scores:
    """The scores of the pairs that a replicate has."""
    tally = found["pairs"]
    if tally.key is None:
        raise TooMuch
    graphs, judged = _graphs(tally.key, tally.columns, len(batch.item))
    return (member.replicate or member.function)(_of_pairs(batch, graphs, judged), **options)


def _beyond(shares: Divided, member: Structure, options: Mapping[str, Any], pairs: int) -> Read:
    """Scores that follow from sums over pairs, so many that these are not brought together; no two shares hold one."""
    member.function(Batch.whole(Preferences.empty()), **options)  # what is wrong with the options is said here
    if options.get("c0") == 0 and options.get("differences", "log-odds") in ("log-odds", "probit"):
        refuse_one_sided(shares.sums(_one_sided)["pairs"])
    shares.link()
    none, no = np.zeros(0, np.int64), np.zeros(0)
    pairless = Graphs(np.array([0, len(shares.items)]), np.array([0, pairs]), none, none, no, no, no, None)
    made = _added_up if member.name in SUMS else _balanced
    value = replace(made(shares, member, options, pairless), components=shares.links.component)
    return Read(lambda _: value, shares.links, shares.touched, numbers=pairs)


def _added_up(shares: Divided, member: Structure, options: Mapping[str, Any], pairless: Graphs) -> Scores:
    sums = shares.sums(partial(_by_item, structure=member.name, options=options))
    return SUMS[member.name].made(pairless, *(sums[place] for place in range(len(sums))), **options)


def _balanced(shares: Divided, _: Structure, options: Mapping[str, Any], pairless: Graphs) -> Scores:
    """Thurstone–Mosteller's scores by conjugate gradients, a pass a step."""
    component, owner = shares.links.component, np.zeros(len(shares.items), np.int64)
    with stage("fitting scores"):
        found = shares.sums(_Differences(options))
        right = found["pull"], owner, 1

        def image(along: Floats) -> Floats:
            return np.asarray(shares.sums(_Balance(options, along))["image"], np.float64)

        value, solved = conjugate_gradients(image, found["diagonal"], *right, tolerance=PRECISE, iterations=PASSES)
        value = centred(value, component.astype(np.int64))
        left = image(value) - found["pull"]
    least, most = (np.array([end]) for end in (min(found["ends"])[0], max(one[1] for one in found["ends"])))
    solved &= ~too_far(least, most)
    return balanced(pairless, component, value, solved, left, found["diagonal"], dict(options))


def pair_table(shares: Divided, sizes: Ints) -> tuple[Ints, tuple[NDArray[Any], ...]]:
    """The pair table of a query, fetched some pairs at a time; ``sizes``: pairs by their first item, over all shares.

    Errors: TooMuch.
    """
    if shares.by == "pairs" and sizes.sum() > CELLS:
        raise TooMuch
    items = np.arange(len(sizes))
    most = np.minimum(sizes, shares.tasks * (len(items) - 1 - items)) if len(items) else sizes
    keys: list[Ints] = []
    counts: list[tuple[NDArray[Any], ...]] = []
    for run in Ragged.runs(np.cumsum(most) // TRAVELLING).slices:
        part = shares.sums(_PairsOf(run.start, run.stop))["pairs"]
        if part.key is None or sum(map(len, keys)) + len(part.key) > CELLS:
            raise TooMuch
        keys.append(part.key)
        counts.append(part.columns)
    return np.concatenate(keys), tuple([np.concatenate(each) for each in zip(*counts, strict=True)])


def _of_pairs(batch: Batch, graphs: Graphs, judged: Floats) -> Batch:
    """A batch of one graph that is known by its pair table; each pair is as one judgment that was made often."""
    pair, found = np.arange(len(judged)), Batch.whole(batch.prefs)
    strength = (graphs.wins + graphs.losses + graphs.ties) / np.maximum(judged, 1.0)
    edges = Edges(pair, graphs.first, graphs.second, strength, np.zeros(len(pair), bool), None)
    vars(found).update(graphs=graphs, edges=edges, multiplicity=judged.astype(np.int64))
    return found


def _positional(shares: Divided, member: Structure, options: Mapping[str, Any]) -> Read:
    """Borda's scores of rankings, from the positions of their items."""
    found, links = shares.sums(_of_positions), shares.links

    def scores(batch: Batch) -> Scores:
        return replace(_of_places(found, None, member, options, batch), components=links.component)

    return Read(scores, links, shares.touched)


def _of_places(found: Sums, _: Read | None, __: Structure, ___: Mapping[str, Any], batch: Batch) -> Scores:
    return closed_form(batch.graphs, mean_position(found["total"], found["mass"]), {})


def _fused(shares: Divided, member: Structure, options: Mapping[str, Any]) -> Read:
    member.function(Batch.whole(Preferences.empty()), **options)  # what is wrong with the options is said here
    found = shares.sums(partial(_added, structure=member.name, options=options))
    touched = found["touched"]
    return Read(lambda batch: _of_lists(found, None, member, options, batch), all_linked(touched > 0), touched)


def _of_lists(found: Sums, _: Read | None, __: Structure, options: Mapping[str, Any], batch: Batch) -> Scores:
    value = found["value"]
    return replace(closed_form(batch.graphs, value, dict(options)), components=np.zeros(len(value), np.int32))


def _pair_counts(_: Structure, __: Mapping[str, Any], items: int) -> Callable[[Share], Sums]:
    return _PairsOf(0, items)


def _list_counts(member: Structure, options: Mapping[str, Any], _: int) -> Callable[[Share], Sums]:
    return partial(_added, structure=member.name, options=options)


PAIRS = Reading(Tabled, _pairs, InOnePass(_pair_counts, _of_replicate))
POSITIONS = Reading(Positions, _positional, InOnePass(lambda *_: _of_positions, _of_places), linked=True)
READINGS: Mapping[str, Reading] = {
    **CLICKS,
    "rrf": Reading(Whole, _fused, InOnePass(_list_counts, _of_lists)),
    "combsum": Reading(Whole, _fused, InOnePass(_list_counts, _of_lists)),
}
"""How the structures that read lists read a query that is divided."""
