"""How few votes does a place hang on? The fewest that change it, found by influence, refitted, and bounded below.

A question is a set of pairs, an item ahead and one behind: of the first place the first with every other, of the first
k each of them with each of the rest, or one pair. It is answered otherwise once some item behind is level with one
ahead. Found: the units (votes, judges, items) of the greatest influence on the difference of two scores, y·c_u with
y = H⁻¹(e_a − e_b), are taken one after the other, H and y anew after each refit; then as many less one are chosen anew
where the two are level, as long as that succeeds. Proven: ``boards.reach`` says up to which number no choice of units
succeeds; between both, all choices are refitted where they are few.

Sources: influence of sets: Broderick, Giordano and Meager, An automatic finite-sample robustness metric (2020);
of boards of models: Huang, Shen, Wei and Broderick (2025). The lower bound is derived in ``boards.reach``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import combinations, combinations_with_replacement, islice
from math import comb
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack
from scipy.special import expit

from concordant.boards.reach import Reach
from concordant.boards.refits import Changes, Votes, units_of, votes_of
from concordant.errors import InputError, Setting, UsageError, counted, whole_number
from concordant.preferences.counts import rows_alike
from concordant.preferences.graphs import Batch
from concordant.preferences.labels import Labels
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Comparisons, Preferences
from concordant.progress import stage
from concordant.ranking.rank import rank
from concordant.ranking.scores import check_prior
from concordant.ranking.shown import html_lines, html_words, in_markdown

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LEVEL = 1e-9
"""Two scores nearer than that are level."""
TRIED = 8
"""Pairs that are tried for the fewest units, those that seem to need the fewest first."""
REFITS, WORK = 30_000, 1_600_000_000
"""Choices of units that are all refitted, at most, and that times the cube of the items."""
NEXT, NEXT_WORK = 8, 30_000_000
"""Items that are tried as the next to leave, at least, and that times the cube of the items, else."""
CLOSE = 0.01
"""Of what was found: how near the largest number that is proven not to do is looked for."""
MOST_ITEMS = 2_000
"""Items beyond which the matrices are too large."""
HOW = {
    "removed": ("without {}", "removal"),
    "flipped": ("with {} turned round", "turning round"),
    "added": ("with {}", "addition"),
}
"""How a change is said."""


@dataclass(frozen=True, eq=False)
class Fragility:
    """The fewest votes, judges or items that change the answer; ``print`` shows it in sentences.

    >>> import concordant as cc
    >>> votes = cc.Preferences.from_comparisons(["a", "b"], ["b", "a"], count=[30, 20])
    >>> print(cc.fragility(votes).lines()[1])
    - without 10 of 50 judgments (20%): b is level with a or ahead (no fewer do)
    """

    question: str
    """What may change: "the first place of gpt-4"."""
    table: pa.Table
    """Columns unit (judgments, a column of clusters, items), change (removed, flipped, added), fewest (as found and
    refitted; missing where none was found), at_least (fewer are proven not to do), of (how many there are; missing of
    what is added), ahead and behind (which item is then no longer ahead of which)."""
    witness: pa.Table
    """What was found: columns unit, change, label (of a cluster or item), winner, loser, tie, times."""
    notes: tuple[Note, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        told = [{name: value for name, value in row.items() if value is not None} for row in self.witness.to_pylist()]
        return {"question": self.question, "fewest": self.table.to_pylist(), "witness": told}

    def lines(self) -> list[str]:
        """Return it in sentences."""
        rows = self.table.to_pylist()
        if rows[0]["fewest"] == 0:
            return [
                f"Nothing need change {self.question}: {rows[0]['behind']} is level with {rows[0]['ahead']} already."
            ]
        return [f"How little changes {self.question} (by Bradley–Terry scores):", *map(_said, rows)]

    def to_markdown(self, said: Callable[[str], str] = str) -> str:
        """Return the sentences and the notes in Markdown. ``said``: how a note is written."""
        title, *found = self.lines()
        notes = [f"- {in_markdown(said(note))}" for note in self.notes]
        return "\n".join([in_markdown(title), "", *(f"- {in_markdown(line[2:])}" for line in found), *notes, ""])

    def _repr_html_(self) -> str:
        title, *found = self.lines()
        return f"<div>{html_words(title)}{html_lines([*(line[2:] for line in found), *self.notes])}</div>"

    def __str__(self) -> str:
        return "\n".join([*self.lines(), *self.notes])


def _said(row: Mapping[str, Any]) -> str:
    fewest, least, of, change = row["fewest"], row["at_least"], row["of"], row["change"]
    noun = {"judgments": "judgments", "items": "items", "clusters": "clusters of judgments"}.get(
        row["unit"], f"clusters by {row['unit']}"
    )
    if fewest is None:
        proven = f"; that of {least - 1:,} or fewer is proven not to" if least > 1 else ""
        return f"- no {HOW[change][1]} of {noun} was found that changes it{proven}"
    what = (
        counted(fewest, "more judgments")
        if of is None
        else f"{fewest:,} of {of:,} {noun} ({float(f'{100 * fewest / of:.2g}'):g}%)"
    )
    fewer = "no fewer do" if least == fewest else f"fewer than {least:,} never do"
    return f"- {HOW[change][0].format(what)}: {row['behind']} is level with {row['ahead']} or ahead ({fewer})"


def fragility(
    prefs: Preferences, *, top: int = 1, pair: tuple[Any, Any] | None = None, prior: float = 0.01
) -> Fragility:
    """Say how few votes, judges or items would change the first place, the first items, or which of two is ahead.

    With Bradley–Terry scores as ``rank`` gives them (ties half a win each way) the question is answered otherwise once
    an item that was behind is level with one that was ahead. Judgments are removed, turned round (winner and loser
    change places) or added, clusters removed or turned round whole, items removed with all their judgments. ``fewest``
    were found and refitted exactly, fewer than ``at_least`` are proven not to do. Items that no judgments connect any
    more stand as the prior has them; items without a rank stand outside.

    Parameters
    ----------
    prefs : comparisons of one query.
    top : the first ``top`` items as a set; 1 is the first place.
    pair : two items, in place of the top: is the better of the two still ahead?
    prior : precision of the normal prior, above 0.

    Errors: UsageError for other judgments, several queries, covariates, or wrong options; InputError where fewer than
    two items have a rank.

    >>> import concordant as cc
    >>> votes = cc.Preferences.from_comparisons(list("aaabbc"), list("bccaca"), count=[30, 25, 3, 24, 20, 4])
    >>> found = cc.fragility(votes)
    >>> found.table.select(["unit", "change", "fewest", "at_least"]).to_pylist()[0]
    {'unit': 'judgments', 'change': 'removed', 'fewest': 3, 'at_least': 3}

    Source: Broderick, Giordano and Meager (2020) for influence; the bound: see ``concordant.boards.reach``.
    """
    question, board = _asked(prefs, top, pair, prior)
    items, whole = prefs.items, votes_of(board.batch, prior, whole=True)
    rows: list[dict[str, Any]] = []
    told: list[dict[str, Any]] = []
    with stage("fragility"):
        for unit, change, changes, label in _ways(board, whole):
            search = _Search(board.votes if change != "added" else whole, board, changes)
            found = search.answer()
            rows.append(_row(unit, change, found, board, None if change == "added" else int(changes.most.sum())))
            if found.times is not None:
                told += [
                    {"unit": unit, "change": change, "times": int(found.times[u]), **label(u)}
                    for u in np.flatnonzero(found.times).tolist()
                ]
        found = _without_items(board)
        rows.append(_row("items", "removed", found, board, len(board.batch.item)))
        if found.times is not None:
            told += [
                {"unit": "items", "change": "removed", "times": 1, "label": str(items[board.batch.item[i]])}
                for i in np.flatnonzero(found.times).tolist()
            ]
    kind = items.values.type
    schema = {"unit": pa.string(), "change": pa.string(), "label": pa.string(), "winner": kind, "loser": kind}
    schema |= {"tie": pa.bool_(), "times": pa.int64()}
    outside = len(board.batch.item) - board.ranked
    text = "{outside:items} {outside:has|have} no rank and {outside:stands|stand} outside: {outside:it is|they are} "
    note = Note("outside", text + "no rival, but {outside:its|their} judgments count", outside=outside)
    return Fragility(
        question,
        pa.Table.from_pylist(rows),
        pa.Table.from_pylist(told, schema=pa.schema([*schema.items()])),
        (note,) if outside else (),
    )


@dataclass(frozen=True, eq=False)
class _Board:
    """What is asked of whom: each of ``ahead`` with each of ``behind`` (nodes)."""

    batch: Batch
    votes: Votes
    scores: Floats
    ahead: Ints
    behind: Ints
    ranked: int

    @property
    def pairs(self) -> tuple[Ints, Ints]:
        return np.repeat(self.ahead, len(self.behind)), np.tile(self.behind, len(self.ahead))

    def changed(self, scores: Floats) -> NDArray[np.bool_]:
        """Whether somebody behind is level with somebody ahead; scores of shape (fits, items), NaN: not there."""
        with np.errstate(invalid="ignore"):
            low = np.fmin.reduce(scores[:, self.ahead], axis=1)
            return np.asarray(low - np.fmax.reduce(scores[:, self.behind], axis=1) <= LEVEL)

    def nearest(self, scores: Floats) -> tuple[int, int]:
        """Who is then least ahead of whom."""
        return (
            int(self.ahead[np.nanargmin(scores[self.ahead])]),
            int(self.behind[np.nanargmax(scores[self.behind])]),
        )


@dataclass(frozen=True, eq=False)
class _Found:
    at_least: int
    fewest: int | None = None
    times: Floats | None = None
    scores: Floats | None = None


def _asked(prefs: Preferences, top: int, pair: tuple[Any, Any] | None, prior: float) -> tuple[str, _Board]:
    if not isinstance(prefs, Preferences):
        raise UsageError(
            f"fragility takes Preferences, not {type(prefs).__name__}; read them first: fragility(read(…))"
        )
    if not isinstance(prefs, Comparisons):
        raise UsageError(f"how few votes a place hangs on is known of comparisons, not of {prefs.kind or 'nothing'}")
    if prefs.covariate_names:
        raise UsageError("fragility knows no covariates; leave them out, or take the judgments without them")
    if len(prefs.queries) != 1:
        text = f"fragility is asked of one query, not of {len(prefs.queries):,}; take one, or all as one population ("
        raise UsageError(text, Setting("pool"), ")")
    check_prior(prior)
    if prior == 0:
        raise UsageError("prior must be above 0: after votes are taken a plain maximum need not exist")
    if len(prefs.items) > MOST_ITEMS:
        raise UsageError(f"fragility takes {MOST_ITEMS:,} items at most, not {len(prefs.items):,}")
    board = rank(prefs, prior=prior)
    batch = Batch.whole(prefs)
    own = (board.component == 1) & (board.rank > 0)
    order = batch.node_of(np.zeros(int(own.sum()), np.int64), board.item[own])
    if len(order) < 2:
        raise InputError(f"{counted(len(order), 'items')} of {len(board)} with a rank: there is no place to lose")
    votes = votes_of(batch, prior, whole=False)
    scores = votes.fit(votes.wins[None], votes.total[None])[0]
    order = order[np.argsort(-scores[order], kind="stable")]
    names = [prefs.items[code] for code in batch.item.tolist()]
    if pair is not None:
        codes = prefs.items.codes_of(pa.array([*pair], prefs.items.values.type))
        ranked = dict(zip(batch.item[order].tolist(), order.tolist(), strict=True))
        for name, code in zip(pair, codes.tolist(), strict=True):
            if code not in ranked:
                raise UsageError(f"{name!r} is no item with a rank in this log")
        if codes[0] == codes[1]:
            raise UsageError(f"{pair[0]!r} is compared with itself; name two items")
        nodes = np.array([ranked[code] for code in codes.tolist()])
        one, other = nodes[np.argsort(-scores[nodes], kind="stable")]
        pairs = _Board(batch, votes, scores, np.array([one]), np.array([other]), len(order))
        return f"that {names[one]} is ahead of {names[other]}", pairs
    whole_number(top, "top", 1)
    if top >= len(order):
        raise UsageError(f"top must be below the {len(order):,} items that have a rank, not {top}")
    question = f"the first place of {names[order[0]]}" if top == 1 else f"who is among the first {top}"
    return question, _Board(batch, votes, scores, order[:top], order[top:], len(order))


def _ways(board: _Board, whole: Votes) -> Iterator[tuple[str, str, Changes, Callable[[int], dict[str, Any]]]]:
    """What is taken, how, and how a unit is called."""
    batch, votes = board.batch, board.votes
    prefs: Any = batch.prefs

    def vote(of: Ints, u: int) -> dict[str, Any]:
        row = int(batch.judgment[of[u]])
        return {
            "winner": prefs.items[prefs.winner[row]],
            "loser": prefs.items[prefs.loser[row]],
            "tie": bool(prefs.tie is not None and prefs.tie[row]),
        }

    wins, losses, total, times = units_of(batch, votes)
    wins, losses, total, times, first = _alike(wins, losses, total, times)
    for change, changes in _taken(wins, losses, total, times):
        yield "judgments", change, changes, partial(vote, first)
    first_items, second_items = (
        prefs.items.take(batch.item[nodes]).to_pylist() for nodes in (whole.first, whole.second)
    )
    one = csr_array((np.ones(len(whole.first)), (np.arange(len(whole.first)),) * 2))
    none = csr_array(one.shape)
    added = Changes(
        csr_array(vstack([-one, none])), csr_array(vstack([-one, -one])), np.full(2 * len(whole.first), np.inf)
    )

    def new(u: int) -> dict[str, Any]:
        way = (first_items, second_items) if u < len(whole.first) else (second_items, first_items)
        u %= len(whole.first)
        return {"winner": way[0][u], "loser": way[1][u], "tie": False}

    yield "judgments", "added", added, new
    for place, codes in enumerate(prefs.cluster_ways):
        wins, losses, total, times = units_of(batch, votes, codes.astype(np.int64))
        name = prefs.cluster_columns[place] if prefs.cluster_columns else "clusters"
        labels = prefs.by_cluster(name).clusters if prefs.cluster_columns else prefs.clusters
        for change, changes in _taken(wins, losses, total, times):
            yield name, change, changes, partial(_called, labels)


def _called(labels: Labels, u: int) -> dict[str, Any]:
    return {"label": str(labels[u])}


def _alike(wins: csr_array, losses: csr_array, total: csr_array, times: Ints) -> tuple[Any, ...]:
    """Add up the counts of votes that differ by their judge only; the last is one of each."""
    sums = (np.asarray(side.sum(axis=1)).ravel() for side in (wins, total))
    first, kind = rows_alike(total.indices, *sums)  # a vote has one pair
    most = np.bincount(kind, times).astype(np.int64)
    return wins[first], losses[first], total[first], most, first


def _taken(wins: csr_array, losses: csr_array, total: csr_array, times: Ints) -> Iterator[tuple[str, Changes]]:
    most = times.astype(np.float64)
    yield "removed", Changes(wins, total, most)
    yield "flipped", Changes(csr_array(wins - losses), csr_array(total.shape), most)


def _row(unit: str, change: str, found: _Found, board: _Board, of: int | None) -> dict[str, Any]:
    names: list[Any] = [None, None]
    if found.scores is not None:
        names = [board.batch.prefs.items[board.batch.item[node]] for node in board.nearest(found.scores)]
    return {
        "unit": unit, "change": change, "fewest": found.fewest, "at_least": found.at_least, "of": of,
        "ahead": names[0], "behind": names[1],
    }  # fmt: skip


# -- the fewest --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class _Search:
    votes: Votes
    board: _Board
    changes: Changes

    def answer(self) -> _Found:
        """Return the fewest units that were found, and the number below which none do."""
        board = self.board
        if board.changed(board.scores[None])[0]:
            return _Found(0, 0, np.zeros(len(self.changes.most)), board.scores)
        reach = Reach(self.votes, board.scores, self.changes, *board.pairs)
        needed = reach.needed()
        best: Floats | None = None
        for place in np.argsort(needed, kind="stable")[:TRIED].tolist():
            if best is not None and needed[place] > 2 * best.sum():
                break
            found = self._greedy(int(reach.ahead[place]), int(reach.behind[place]))
            if found is not None and (best is None or found.sum() < best.sum()):
                best = found
        most = int(best.sum()) if best is not None else int(min(self.changes.most.sum() + 1, 1 << 20))
        least, below = most, 0  # at ``below`` it is proven that so many do not do
        while least - below > max(1, CLOSE * most):
            middle = most - 1 if least == most and below == 0 else (below + least) // 2
            below, least = (middle, least) if reach.held(middle) else (below, middle)
        below, best = self._exhausted(below, most, best)
        if best is None:
            return _Found(below + 1)
        scores = self._refit(best)
        return _Found(min(below + 1, int(best.sum())), int(best.sum()), best, scores)

    def _refit(self, times: Floats, start: Floats | None = None) -> Floats:
        return np.asarray(self.votes.fit(*self.changes.after(self.votes, times[None]), start)[0])

    def _influence(self, times: Floats, scores: Floats, ahead: int, behind: int) -> Floats:
        _, total = self.changes.after(self.votes, times[None])
        contrast = np.zeros(self.votes.items)
        contrast[[ahead, behind]] = 1.0, -1.0
        wanted = np.linalg.solve(self.votes.curvature(scores[None], total)[0], contrast)
        return self.changes.influence(self.votes, scores, wanted)

    def _greedy(self, ahead: int, behind: int) -> Floats | None:
        """Take the units of the greatest influence, some at a time and the last one by one; then fewer, chosen anew."""
        times, scores, most = np.zeros(len(self.changes.most)), self.board.scores, self.changes.most
        while not self.board.changed(scores[None])[0]:
            value = np.where(times < most, self._influence(times, scores, ahead, behind), 0.0)
            if value.max(initial=0.0) <= 0:
                return None
            order = np.argsort(-value, kind="stable")
            order = order[value[order] > 0]
            open_ = scores[ahead] - scores[behind]
            left = np.minimum((most - times)[order], np.ceil(open_ / value[order]))
            steps = np.cumsum(left * value[order])
            asked = max(1.0, np.ceil(left[: int(np.searchsorted(steps, open_)) + 1].sum() / 4))
            times[order] += np.clip(asked - (np.cumsum(left) - left), 0.0, left)
            scores = self._refit(times, scores)
        while times.sum() > 1:
            value = self._influence(times, scores, ahead, behind)
            order = np.argsort(-value, kind="stable")
            fewer = np.zeros(len(times))
            left = np.minimum(most[order], times.sum())
            fewer[order] = np.clip(times.sum() - 1 - (np.cumsum(left) - left), 0.0, left)
            tried = self._refit(fewer, scores)
            if not self.board.changed(tried[None])[0]:
                break
            times, scores = fewer, tried
        return times

    def _exhausted(self, below: int, most: int, best: Floats | None) -> tuple[int, Floats | None]:
        """Refit all choices of more units than ``below`` and fewer than ``most``, as long as they are few."""
        units, refits = len(self.changes.most), min(REFITS, WORK // self.votes.items**3)
        for m in range(below + 1, most):
            number = comb(units + m - 1, m)
            if number > refits:
                break
            refits -= number
            for times in _choices(self.changes.most, m):
                scores = self.votes.fit(*self.changes.after(self.votes, times), self.board.scores)
                if (there := self.board.changed(scores)).any():
                    return below, times[int(there.argmax())]
            below = m
        return below, best


def _choices(most: Floats, m: int) -> Iterator[Floats]:
    """All ways of taking m units, some at a time."""
    every = combinations_with_replacement(range(len(most)), m)
    while some := [*islice(every, 4_096)]:
        times = np.zeros((len(some), len(most)))
        np.add.at(times, (np.repeat(np.arange(len(some)), m), np.array(some).ravel()), 1.0)
        times = times[(times <= most).all(axis=1)]
        if len(times):
            yield times


def _without_items(board: _Board) -> _Found:
    """The fewest items without whose judgments the order of the others changes: all choices while they are few, then
    one after the other."""
    votes, size = board.votes, len(board.batch.item)
    nothing = np.zeros(size, bool)
    if board.changed(board.scores[None])[0]:
        return _Found(0, 0, nothing.astype(np.float64), board.scores)
    refits = min(REFITS, WORK // size**3)

    def tried(gone: NDArray[np.bool_]) -> Floats:
        kept = ~(gone[:, votes.first] | gone[:, votes.second])
        scores = votes.fit(votes.wins * kept, votes.total * kept, board.scores)
        return np.where(gone, np.nan, scores)

    def allowed(gone: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return np.asarray(~(gone[:, board.ahead].all(axis=1) | gone[:, board.behind].all(axis=1)))

    below = 0
    for m in range(1, size - 1):
        if comb(size, m) > refits:
            break
        refits -= comb(size, m)
        every = combinations(range(size), m)
        while some := [*islice(every, 4_096)]:
            gone = np.zeros((len(some), size), bool)
            np.put_along_axis(gone, np.array(some), True, axis=1)
            gone = gone[allowed(gone)]
            scores = tried(gone)
            if len(gone) and (there := board.changed(scores)).any():
                place = int(there.argmax())
                return _Found(m, m, gone[place].astype(np.float64), scores[place])
        below = m
    left, scores = nothing.copy(), board.scores
    tries = max(NEXT, NEXT_WORK // size**3)
    while True:
        rows = left | np.eye(size, dtype=bool)[~left]
        rows = rows[allowed(rows)]
        if not len(rows):
            return _Found(below + 1)
        if len(rows) > tries:
            value = _by_items(board, left, scores)
            rows = rows[np.argsort((rows & ~left) @ -value, kind="stable")[:tries]]
        each = tried(rows)
        gap = np.nanmin(each[:, board.ahead], axis=1) - np.nanmax(each[:, board.behind], axis=1)
        place = int(gap.argmin())
        left, scores = rows[place], each[place]
        if gap[place] <= LEVEL:
            return _Found(below + 1, int(left.sum()), left.astype(np.float64), scores)


def _by_items(board: _Board, gone: NDArray[np.bool_], scores: Floats) -> Floats:
    """How much taking the judgments of an item lowers the least difference, to first order."""
    votes, contrast = board.votes, np.zeros(board.votes.items)
    kept = ~(gone[votes.first] | gone[votes.second])
    contrast[list(board.nearest(scores))] = 1.0, -1.0
    scores = np.where(gone, 0.0, scores)
    wanted = np.linalg.solve(votes.curvature(scores[None], (votes.total * kept)[None])[0], contrast)
    value = votes.between(wanted) * kept * (votes.wins - votes.total * expit(votes.between(scores)))
    return np.asarray(abs(votes.ends).T @ value)
