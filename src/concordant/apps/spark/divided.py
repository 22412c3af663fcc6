"""The ranking of a query that is divided among tasks: that of ``rank``, given what the shares add up to.

Scores, what connects the items and how many judgments touch them are known of all of them. Intervals need the
information, and the sandwich its middle, which are sums over pairs, or over lists. Lists that hold items which the data
do not limit on both sides, of which as a rule there are few, come here as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from concordant.apps.spark.clustered import LARGEST, crossed, every_way
from concordant.apps.spark.learning_held import Sums
from concordant.apps.spark.redrawn import AT_ONCE, Again, Draw
from concordant.apps.spark.shares import Share, TooMuch, Ways
from concordant.apps.spark.splitting import Divided, Fitted, Holding, Information, MiddleOfShares
from concordant.preferences.connectivity import Connectivity
from concordant.preferences.counted import declare
from concordant.preferences.graphs import Batch
from concordant.preferences.labels import Labels
from concordant.preferences.preferences import Comparisons, Preferences, counted_lists
from concordant.preferences.ragged import Ragged
from concordant.preferences.status import Status
from concordant.progress import stage
from concordant.ranking.click_models import Examination
from concordant.ranking.contrasts import Gauge
from concordant.ranking.covariance import Meat
from concordant.ranking.curvature import Curvature
from concordant.ranking.dependent_clicks import GoingOn
from concordant.ranking.multinomial import Replicates
from concordant.ranking.rank import Ranking, rank
from concordant.ranking.scores import Scores, separation_note, unfinished
from concordant.ranking.strong_blocks import firm_nodes
from concordant.ranking.structures import Structure

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
OF_TWO = {"orders": (1.0, 2.0), "choices": (1.0, 0.0), "selections": (0.0, 1.0), "ratings": (2.0, 1.0)}
"""Values of the items of a list of two by kind: the first is preferred, but in selections."""


@dataclass(frozen=True)
class Read:
    """What the structure functions of memory take from a query, known from sums; arrays by its items."""

    scores: Callable[[Batch], Scores]
    links: Connectivity
    touched: Ints
    trials: tuple[Floats, Floats] | None = None
    numbers: int = 0
    """How many numbers tell the scores, where these are not those of the items."""
    examined: Examination | None = None
    """How often positions are examined, which replicates of a bootstrap take as it is."""
    going: GoingOn | None = None
    """How often readers go on after a click, likewise."""


@dataclass(frozen=True)
class Reading:
    """How a structure reads a query that is divided: what a share keeps, and what is made of the shares."""

    kept: type[Share]
    read: Callable[[Divided, Structure, Mapping[str, Any]], Read]
    again: Redrawing
    linked: bool = False
    """Whether what connects the items is found by the shares."""


Redrawing = Callable[[Again, Draw, Reading, Read, Structure, Mapping[str, Any], Batch], Floats]
"""The scores of all replicates of a bootstrap, of shape (replicates, items). Errors: TooMuch."""


@dataclass(frozen=True)
class InOnePass:
    """Replicates of what shares count of each."""

    counts: Callable[[Structure, Mapping[str, Any], int], Callable[[Share], Sums]]
    """What shares count for the scores of so many items, which ``scores`` makes of it."""
    scores: Callable[[Sums, Read, Structure, Mapping[str, Any], Batch], Scores]

    def __call__(
        self, again: Again, draw: Draw, how: Reading, read: Read, member: Structure, options: Mapping[str, Any],
        batch: Batch,
    ) -> Floats:  # fmt: skip
        """Of shape (replicates, items), some replicates in a pass."""
        size = len(batch.item)
        values, at_once = np.zeros((draw.replicates, size)), max(1, AT_ONCE // max(read.numbers, size, 1))
        for replicate, found in again.each(draw, self.counts(member, options, size), how.kept, at_once):
            values[replicate] = self.scores(found, read, member, options, batch).value
        return values


@dataclass(frozen=True, eq=False)
class Known:
    """A divided query as ``rank`` sees it: few judgments or none, and all that has to be known of the others."""

    shares: Divided
    structure: Structure
    options: Mapping[str, Any]
    """Of its fit, but for the prior."""
    fits: dict[float, Fitted] = field(default_factory=dict)
    """By the prior."""
    again: Again | None = field(default=None, kw_only=True)
    """The judgments as they were made, where they are to be drawn again."""

    def ranked(self, asked: Mapping[str, Any]) -> Ranking:
        """The ranking, its notes those on this query. Errors: TooMuch; as of ``rank``."""
        prefs = self._judgments(self._some(asked))
        member = replace(
            self.structure, function=self._scores, linked=self._links, curvature=self._curvature,
            touched=self._touched, blocks=self._blocks, redraws=self._redraws, expects=False,
        )  # fmt: skip
        board = rank(prefs, member, **asked)
        left = {*prefs.notes, *(note for note in board.notes if getattr(note, "code", "") == "clusters")}
        return replace(board, notes=tuple(note for note in board.notes if note not in left))

    def forget(self) -> None:
        """Free what is kept of the query."""
        self.shares.forget()
        if self.again is not None:
            self.again.forget()

    def _some(self, asked: Mapping[str, Any]) -> Flags:
        """The items whose judgments are needed as they are."""
        links, method = self.shares.links, asked["interval"]
        firm = firm_nodes(links, Gauge.of(np.array([0, len(self.shares.items)]), links))
        some = links.compared & ~firm
        return some if method != "none" else np.zeros(len(some), bool)

    def _judgments(self, some: Flags) -> Preferences:
        """All judgments of some items, and what stands for the others."""
        shares = self.shares
        found = self._held(some) if some.any() else Preferences.empty()
        if found is None:
            raise TooMuch
        found = found + self._round(~some, found) if found.kind is not None else self._nothing()
        size = len(shares.items)
        return declare(found, (shares.query.take(np.zeros(size, np.int64)), shares.items.take(np.arange(size))))

    def _held(self, some: Flags) -> Preferences | None:
        """The judgments of some items; None: too many."""
        shares = self.shares
        way = int(np.argmin(shares.numbers)) if shares.columns else None
        found: Preferences | None = shares.sums(Holding(some, shares.items, way))["held"].prefs
        return found

    def _nothing(self) -> Preferences:
        """No judgments, of the kind of all."""
        none = np.zeros(0, np.int32)
        if self.shares.by == "pairs":
            return Comparisons(winner=none, loser=none)
        return counted_lists("orders", np.zeros(1, np.int64), self.shares.items.take(none), np.zeros(0))

    def _round(self, rest: Flags, found: Preferences) -> Preferences:
        """Lists of two that go once round the other items of each block; ``found``: what is beside them."""
        pairs = self._cycle(rest)
        size, shares = len(pairs), self.shares
        if not size:
            return Preferences.empty()
        kind = str(found.kind)
        turned = pairs[:, ::-1] if kind == "selections" else pairs  # a click says more than what was shown before it
        ends, item, value = 2 * np.arange(size + 1), shares.items.take(turned.ravel()), np.tile(OF_TWO[kind], size)
        whose = None if found.clusters is None else found.clusters.take(np.zeros(size, np.int64))
        query = shares.query.take(np.zeros(size, np.int64))
        return counted_lists(kind, ends, item, value, query=query, cluster=whose)

    def _cycle(self, rest: Flags) -> Ints:
        """Some of the items in a row, block by block, each with the next: they are on chains of wins to each other.

        That is all that is taken from judgments between items that the data limit on both sides.
        """
        block = self.shares.links.block
        own = np.flatnonzero(rest & self.shares.links.compared)
        own = own[np.argsort(block[own], kind="stable")]
        runs = Ragged.runs(block[own])
        after = np.append(own[1:], own[:1])
        after[runs.start[1:] - 1] = own[runs.first]
        return np.column_stack([own, after])[runs.spread(runs.sizes) > 1]

    def _codes(self, batch: Batch) -> Ints:
        """The items of a batch by their codes among those of the query."""
        return self.shares.items.codes_of(batch.prefs.items.take(batch.item)).astype(np.int64)

    def _scores(self, batch: Batch, *, prior: float = 0.01, **_: Any) -> Scores:
        if not len(batch):
            return self._none(prior)
        if prior not in self.fits:
            self.fits[prior] = self.shares.fitted(prior=prior, **self.options)
        fitted, links = self.fits[prior], self._links(batch)
        status = np.array([fitted.status], np.int8)
        return Scores(
            fitted.score[self._codes(batch)],
            links.component,
            status,
            np.array([fitted.iterations]),
            np.array([fitted.gradient]),
            notes=(*separation_note(batch, links, prior), *unfinished(self.structure.name, status == Status.STOPPED)),
            options={"prior": prior, "ties": None, "whole lists": self.structure.whole},
        )

    def _none(self, prior: float) -> Scores:
        """The scores of no graphs."""
        no, options = np.zeros(0), {"prior": prior, "ties": None, "whole lists": self.structure.whole}
        none = np.zeros(0, np.int32)
        return Scores(no, none, none.astype(np.int8), none.astype(np.int64), no, options=options)

    def _blocks(self, batch: Batch, _: Connectivity, options: Mapping[str, Any]) -> tuple[Floats, Flags] | None:
        """Scores of strong blocks by themselves, of the likelihood of pairs."""
        if self.structure.blocks is None:
            return None
        with stage("fitting strong blocks"):
            value, stopped = self._of_blocks()
        return value[self._codes(batch)], np.full(len(batch), stopped)

    def _of_blocks(self) -> tuple[Floats, bool]:
        return self.shares.of_blocks(**self.options)

    def _links(self, batch: Batch) -> Connectivity:
        own, links = self._codes(batch), self.shares.links
        return Connectivity(*(getattr(links, name)[own] for name in links.__dataclass_fields__))

    def _touched(self, batch: Batch) -> Ints:
        return self.shares.touched[self._codes(batch)]

    def _curvature(self, batch: Batch, scores: Scores) -> Curvature:
        own, none = self._codes(batch), np.zeros(0, np.int64)
        score = np.zeros(len(own))
        score[own] = scores.value

        found = self.shares.sums(Information(score))["cells"].matrix
        if found is None:
            raise TooMuch
        information, prior = csr_array(found[own][:, own]), float(scores.options["prior"])
        return Curvature(information, prior, nowhere, lambda: np.nan, none, meat=partial(self._middle, score, own))

    def _redraws(self, batch: Batch, options: Mapping[str, Any], replicates: int, seed: int) -> Replicates:
        """The replicates of a bootstrap. Errors: TooMuch."""
        one = np.zeros(1, np.int64)
        if not len(batch):
            return Replicates(np.zeros((replicates, 0)), one[:0], one[:0])
        if self.again is None:
            raise TooMuch
        scores, own = self._scores(batch, **options), self._codes(batch)
        place = np.argsort(own)
        information = csr_array(self._curvature(batch, scores).hessian[place][:, place])
        prior = float(scores.options["prior"])
        found, unlimited, draws = self.again.fitted(scores.value[place], information, prior, replicates, seed)
        return Replicates(found[:, own], one + unlimited, one + draws)

    def _middle(self, score: Floats, own: Ints) -> Meat:
        """Of the sandwich at some scores, of nodes by their codes."""
        if len(own) > LARGEST:
            raise TooMuch

        def meat(found: Sums, way: Ways, number: int) -> Meat:
            matrix = found["cells", way].matrix
            if matrix is None:
                raise TooMuch
            return Meat.of_sums(matrix[own][:, own].toarray(), number)

        shares = self.shares
        parts: dict[Ways, Meat] = {}
        if not shares.columns:
            return replace(meat(shares.sums(MiddleOfShares(score)), (), shares.judgments), clustered=False)
        for way, ways in every_way(len(shares.columns)):
            found = shares.by_column(way).sums(MiddleOfShares(score, ways))
            parts |= {one: meat(found, one, found["number", one]) for one in ways}
        return crossed(parts)


def nowhere(*_: Any) -> csr_array:
    """The gradients of judgments that are not here."""
    raise TypeError("the judgments lie elsewhere")


def declared(kind: str, query: Labels, items: Labels) -> Preferences:
    """The items of a query without its judgments, of which all is known."""
    size, none = len(items), np.zeros(0, np.int32)
    empty: Preferences = Comparisons(winner=none, loser=none)
    if kind != "comparisons":
        empty = counted_lists(kind, np.zeros(1, np.int64), items.take(none), np.zeros(0))
    return declare(empty, (query.take(np.zeros(size, np.int64)), items.take(np.arange(size))))
