"""One query of rankings that no task can hold, whose ties are outcomes with parameters of their own.

Bradley–Terry's of the pairs of each ranking (Davidson), or Plackett–Luce's (Davidson–Luce): sums over rankings, whose
parameters of ties stand behind the scores. Plackett–Luce's are of the numbers of items that ever tied, and of how many
were left then, which takes a pass over all rankings first (``ranking.tied_terms``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from concordant.apps.spark.coefficients import JointSystem, WithCoefficients
from concordant.apps.spark.divided import Known, nowhere
from concordant.apps.spark.frames import JudgedQueries
from concordant.apps.spark.learning_held import Sums
from concordant.apps.spark.redrawn import Again, Levels, Replicated, as_judged
from concordant.apps.spark.shares import BETWEEN, Cells, Crossing, Listed, ListedPairs, Pairs, Share, TooMuch, among
from concordant.apps.spark.splitting import DIVISIBLE, Divided, Information, alike, pairless
from concordant.apps.spark.valued_pairs import Beside, Largest, Point, ValuedPairs, facts_of_share
from concordant.preferences.graphs import Batch
from concordant.preferences.labels import Labels
from concordant.preferences.preferences import Preferences
from concordant.preferences.ragged import Ragged
from concordant.preferences.status import Status
from concordant.progress import stage
from concordant.ranking.covariance import CROSSED, Meat
from concordant.ranking.curvature import Curvature
from concordant.ranking.elimination import FAR
from concordant.ranking.multinomial import Replicates
from concordant.ranking.newton import fit_system
from concordant.ranking.plackett_luce import (
    ending_notes,
    refuse_infinite,
    refuse_unbounded,
    tie_coefficients,
    tie_name,
)
from concordant.ranking.rank import Ranking
from concordant.ranking.scores import RUNAWAY, Scores, check_prior, refuse_separated, separation_note
from concordant.ranking.structures import Structure, structure
from concordant.ranking.tied_terms import Sizes, TiedPosition, TiedTerms

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
FAR_OUT, FLAT = 10.0, 1e-12
"""Scores from which on a maximum is doubted, and curvature of a judgment that is no more than rounding."""


# -- in a task -----------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class TiedPairs(ListedPairs, Beside):
    """The pairs of some rankings with their ties, and the rankings, of which each is one judgment."""

    valued: ValuedPairs

    @classmethod
    def of(cls, prefs: Preferences) -> Self:
        """The pairs of some rankings of one query."""
        return cls(**vars(ListedPairs.of(prefs)), valued=ValuedPairs.of(prefs))

    def coded(self, items: Labels) -> Share:
        valued = self.valued.coded(items)
        return replace(super().coded(items), valued=valued)  # type: ignore[call-arg]

    def derivatives(self, point: Point, whole: bool) -> Sums:
        return self.valued.derivatives(point, whole)

    def bent(self, point: Point | None, along: Floats) -> Floats:
        return self.valued.bent(point, along)

    def _scores(self, score: Floats) -> Scores:
        scores, log_nu = super()._scores(score), score[len(self.touched) :]
        return replace(scores, coefficients={"ties": log_nu}, options={"ties": "davidson"}) if len(log_nu) else scores


def _facts(share: TiedPairs) -> Sums:
    return facts_of_share(share.valued)


@dataclass(frozen=True, eq=False)
class TiedLists(Listed, Beside):
    """Some rankings; once that is known with the sizes of all ties of the query."""

    sizes: Sizes | None = None

    @classmethod
    def of(cls, prefs: Preferences, sizes: Sizes | None = None) -> Self:
        """Some rankings of one query."""
        return replace(super().of(prefs), sizes=sizes)

    @property
    def terms(self) -> TiedTerms:
        """The likelihood."""
        return TiedTerms(self.lists, self.sizes)

    @property
    def pairs(self) -> Pairs:
        """Each item against the next: all pairs of a ranking hang on such a chain, whose ties are wins both ways."""
        chain, held = self.lists.chain(), (self.queries, None, self.touched, self.judgments)
        return Pairs(*held, self.code[chain.first], self.code[chain.second], chain.above, chain.below)

    def links(self) -> tuple[NDArray[Any], NDArray[np.bool_], NDArray[np.bool_]]:
        return self.pairs.links()

    def between(self, block: NDArray[np.int32]) -> Crossing:
        return self.pairs.between(block)

    def _at(self, score: Floats, level: Floats) -> TiedPosition:
        return self.terms.at(np.concatenate([score[self.code], level]))

    def derivatives(self, point: Point, whole: bool) -> Sums:
        at, nodes, extras = self._at(point.score, point.extra), len(self.code), len(point.extra)
        gradient, size = at.gradient(), len(self.touched)
        if whole:
            bent = at.information()
            cells = Cells(among(csr_array(bent[:nodes][:, :nodes]), self.code, size)).checked()
            columns, diagonal = bent[:, nodes:].toarray(), bent.diagonal()
        else:
            each = [at.times(column) for column in np.eye(nodes + extras)[nodes:]] if extras else []
            columns = np.column_stack(each) if each else np.zeros((nodes, 0))
            diagonal = at.diagonal()
        found = Sums(pull=self._spread(gradient[:nodes]), lean=gradient[nodes:], corner=columns[nodes:])
        found |= {"degree": self._spread(diagonal[:nodes]), "border": np.zeros((size, extras))}
        found["border"][self.code] = columns[:nodes]
        return Sums(found | ({"cells": cells} if whole else {}))

    def bent(self, point: Point | None, along: Floats) -> Floats:
        if point is None:
            raise TypeError("rankings have no covariates")
        at, none = self._at(point.score, point.extra), np.zeros(len(point.extra))
        return self._spread(at.times(np.concatenate([along[self.code], none]))[: len(self.code)])

    def information(self, score: Floats) -> csr_array:
        size = len(self.touched)
        at = self._at(score, score[size:])
        return among(at.information(), np.append(self.code, np.arange(size, len(score))), len(score))

    def draws(self, score: Floats) -> Iterator[tuple[csr_array, Floats, Ints]]:
        level, nodes = score[len(self.touched) :], len(self.code)
        work = np.cumsum(self.lists.length.astype(np.float64) ** 2) / BETWEEN
        for rows in Ragged.runs(work.astype(np.int64)).slices if len(work) else ():
            lists = self.lists.take(np.arange(rows.start, rows.stop))
            at = TiedTerms(lists, self.sizes).at(np.concatenate([score[self.code], level]))
            of_sizes, parameter = at.extra_entries
            known = parameter >= 0
            row = np.append(lists.row, at.terms.own.owner[known])
            place = np.append(lists.node, nodes + parameter[known])
            slope, shape = np.append(at.gradient_entries(), of_sizes[known]), (len(lists.weight), nodes + len(level))
            yield csr_array(coo_array((slope, (row, place)), shape=shape)), lists.weight, lists.holder


@dataclass(frozen=True, eq=False)
class _Sized:
    """Rankings with the sizes of all ties of the query."""

    sizes: Sizes

    def __call__(self, share: Share) -> Share:
        if not isinstance(share, TiedLists):
            raise TypeError("these are no rankings")
        TiedTerms(share.lists, self.sizes)  # errors, before anything is fitted
        return replace(share, sizes=self.sizes)


@dataclass(frozen=True, eq=False)
class SizedLists:
    """What makes shares of rankings, given the sizes of all ties of the query."""

    sizes: Sizes

    def of(self, prefs: Preferences) -> TiedLists:
        """The share of some rankings."""
        return TiedLists.of(prefs, self.sizes)


def seen_ties(share: Listed, items: int) -> Sums:
    """Of each number of items that were placed together the most that were left then; how often lists were seen.

    ``items``: of the query.
    """
    lists = share.lists
    size, first, reach = lists.tier_size, lists.tier_first, np.zeros(items + 1)
    np.maximum.at(reach, size, lists.groups.spread(lists.start[1:])[first] - first)
    often = Largest(np.array([-lists.weight.min(initial=np.inf), lists.weight.max(initial=0.0)]))
    return Sums(reach=Largest(reach), often=often)


def _seen(share: TiedLists) -> Sums:
    return seen_ties(share, len(share.touched))


# -- on the driver -------------------------------------------------------------------------------------------------
def tied(judged: JudgedQueries, name: Any, asked: Mapping[str, Any]) -> bool:
    """Whether the ranking of one query of rankings follows from sums over these, ties with parameters of their own."""
    if judged.kind != "orders" or name not in ("bradley-terry", "plackett-luce"):
        return False
    known = DIVISIBLE | ({"tolerance", "max_iterations"} if name == "bradley-terry" else set())
    if asked.get("ties") != "davidson" or {name for name, value in asked.items() if value is not None} - known:
        return False
    columns = judged.cluster_columns
    most = 1 if asked["interval"] == "bootstrap" else CROSSED
    return columns <= most and not asked.get("covariates")


def fits_tied(kind: str, name: Any, options: Mapping[str, Any]) -> bool:
    """Whether these are Plackett–Luce's scores of rankings to learn from, with Davidson–Luce's ties."""
    known = kind == "orders" and name == "plackett-luce" and {*options} <= {"prior", "ties"}
    return known and options.get("ties") == "davidson"


def tied_scores(shares: Divided, seen: Sums, query: Preferences, prior: float = 0.01, **_: Any) -> Scores:
    """These scores, given what was ``seen`` of all rankings; shares are ``TiedLists`` with the sizes of ties.

    ``query``: it without judgments. Errors: as of ``plackett_luce``.
    """
    batch = Batch.whole(query)
    if prior == 0:
        refuse_separated(batch, shares.links)
    with stage("fitting scores"):
        return OfLists(shares, structure("plackett-luce"), {}, **_known(seen)).fitted(batch, float(prior))


def prepared(shares: Divided) -> Sums:
    """What is seen of the ties of all rankings, of which their shares know then."""
    seen = shares.sums(_seen)
    shares.prepare(_Sized(sizes_of(seen)))
    return seen


def _known(seen: Sums) -> dict[str, Any]:
    """What the fit has to know of all rankings."""
    least, most = seen["often"].values.tolist()
    return {"sizes": sizes_of(seen), "often": (-least, most)}


def sizes_of(seen: Sums) -> Sizes:
    """How many items ever tied, by what ``seen_ties`` found of all rankings."""
    reach = seen["reach"].values.astype(np.int64)
    order = np.union1d([1], np.flatnonzero(reach))
    return Sizes.reaching(Ragged(np.array([0, len(order)])), order, reach[order])


def tied_query(
    judged: JudgedQueries, label: Any, member: Structure, asked: Mapping[str, Any]
) -> OfPairs | OfLists | None:
    """A query that no task can hold as ``rank`` sees it; its shares are to be freed. None without rankings.

    Errors: as of any task; TooMuch.
    """
    kept: type[OfPairs] | type[OfLists] = OfLists if member.name == "plackett-luce" else OfPairs
    drawn = asked["interval"] == "bootstrap"
    shares = Divided.of(judged, label, kept.kept, clusters=drawn or asked["interval"] == "sandwich")
    if shares is None:
        return None
    whole = None
    try:
        known = kept.of(shares, member, asked)
        if drawn and (whole := as_judged(judged, label)) is not None:
            known = replace(known, again=Again.of(whole, shares))
        return known
    except BaseException:
        shares.forget()
        if whole is not None:
            whole.forget()
        raise


def _said(shares: Divided, board: Ranking) -> list[str]:
    """How a ranking was made, and the parameters of its ties, which its table does not have."""
    found = [alike(shares.columns, shares.numbers)] if board.interval == "sandwich" and shares.columns else []
    prefix = f"{shares.what}: " if shares.named else ""
    for name, value in board.coefficients.items():
        if name.startswith("ties"):
            error = board.coefficients.get(f"s.e. of {name}")
            with_error = "" if error is None else f" ± {error[0]:.4g}"
            called = "log ν of ties" if name == "ties" else f"log δ of {name}"
            found.append(f"{prefix}coefficient {called}: {value[0]:.4g}{with_error}")
    return [*found, f"{shares.said}; whether the model fits was not looked at"]


@dataclass(frozen=True, eq=False)
class OfPairs(WithCoefficients):
    """The pairs of all rankings, and Davidson's ties."""

    kept = TiedPairs

    @classmethod
    def of(cls, shares: Divided, member: Structure, asked: Mapping[str, Any]) -> Self:
        """Learn what there is of outcomes. Errors: TooMuch where there is nothing but ties."""
        facts = shares.sums(_facts)
        if not facts["others"]:
            raise TooMuch
        return cls(shares, member, asked, names=(), ties="davidson", facts=facts)

    def said(self, board: Ranking) -> list[str]:
        """How a ranking was made, and log ν."""
        return _said(self.shares, board)

    def _meat(self, batch: Batch, scores: Scores, names: tuple[str, ...]) -> Meat:
        own, size = self._codes(batch), len(self.shares.items)
        point = np.zeros(size)
        point[own] = scores.value
        extra = [scores.coefficients[name][0] for name in names]
        return self._middle(np.append(point, extra), np.append(own, np.arange(size, size + len(extra))))


@dataclass(frozen=True, eq=False)
class OfLists(Known):
    """All rankings, and Davidson–Luce's ties."""

    kept = TiedLists
    sizes: Sizes = field(kw_only=True)
    often: tuple[float, float] = field(kw_only=True)
    """The fewest and the most times that a ranking was seen."""
    found: dict[float, Scores] = field(default_factory=dict, kw_only=True)
    """By the prior: the scores of all items."""

    @classmethod
    def of(cls, shares: Divided, member: Structure, asked: Mapping[str, Any]) -> Self:
        """Learn how many items ever tied, of how many. Errors: UsageError where sums over sets are beyond numbers."""
        return cls(shares, member, asked, **_known(prepared(shares)))

    def said(self, board: Ranking) -> list[str]:
        """How a ranking was made, and log δ of each number of tied items."""
        return _said(self.shares, board)

    @property
    def names(self) -> tuple[str, ...]:
        """What the parameters of ties are called that are to be found."""
        return tuple(tie_name(int(one)) for one in self.sizes.order[self.sizes.free])

    def _scores(self, batch: Batch, *, prior: float = 0.01, **_: Any) -> Scores:
        check_prior(prior)
        if not len(batch):
            return self._none(prior)
        links = self._links(batch)
        if prior == 0:
            refuse_separated(batch, links)
        if prior not in self.found:
            with stage("fitting scores"):
                self.found[prior] = self.fitted(batch, float(prior))
        known, own = self.found[prior], self._codes(batch)
        notes = separation_note(batch, links, prior) + known.notes
        return replace(known, value=known.value[own], components=links.component, notes=notes)

    def fitted(self, batch: Batch, prior: float) -> Scores:
        """The scores of all items; ``batch`` names them in errors."""
        shares, free, one = self.shares, len(self.sizes.free), np.zeros(1, np.int64)
        problem = pairless(len(shares.items), shares.links.component, prior)
        problem = replace(problem, covariates=np.zeros((0, free)))
        point = Point(np.zeros(0), np.zeros(0), np.ones(free), False)
        about = np.zeros(len(shares.items))
        fit = fit_system(problem, 1e-10, 100, lambda each: JointSystem(each, shares, point, about))
        status, level, far = fit.status.copy(), fit.extra[0], np.array([self.often[0] < FAR * self.often[1]])
        status[far] = Status.STOPPED
        if prior == 0 or free:
            joint = np.append(fit.score, level)
            endless = prior == 0 and self._endless(joint)
            refuse_unbounded(batch, joint, np.zeros(len(joint), np.int64), status, np.array([endless]))
        coefficients, said = tie_coefficients(self.sizes, level)
        notes = (*said, *ending_notes(np.array(self.often), status, far))
        options = {"prior": prior, "ties": "davidson", "whole lists": True}
        none = np.zeros(len(fit.score), np.int32)
        return Scores(fit.score, none, status, one + fit.iterations, fit.gradient, coefficients, notes, options)

    def _endless(self, point: Floats) -> bool:
        """Whether a fit without a prior has no maximum: far out, the likelihood is flat some way, but for rounding."""
        if not np.isfinite(point).all() or (farthest := np.abs(point).max(initial=0.0)) > RUNAWAY:
            return True
        found = self.shares.sums(Information(point))["cells"].matrix if farthest > FAR_OUT else None
        if found is None:
            return False
        size, component = len(self.shares.items), self.shares.links.component
        often = np.append(self.shares.touched, np.full(len(point) - size, self.shares.judgments)).astype(np.float64)
        scale = 1.0 / np.sqrt(np.maximum(often, 1.0))
        matrix = scale[:, None] * found.toarray() * scale
        along = 1.0 / scale[:size]
        shifts = (component[:, None] == component) * np.outer(along, along)
        matrix[:size, :size] += shifts / np.diagonal(shifts).sum()
        return bool(np.linalg.eigvalsh(matrix)[0] < FLAT)

    def _curvature(self, batch: Batch, scores: Scores) -> Curvature:
        own, size, names = self._codes(batch), len(self.shares.items), self.names
        point = np.zeros(size)
        point[own] = scores.value
        point = np.append(point, [scores.coefficients[name][0] for name in names])
        refuse_infinite(point)
        own = np.append(own, np.arange(size, len(point)))
        found = self.shares.sums(Information(point))["cells"].matrix
        if found is None:
            raise TooMuch
        prior, owner = float(scores.options["prior"]), np.zeros(len(names), np.int64)

        def meat() -> Meat:
            return self._middle(point, own)

        return Curvature(csr_array(found[own][:, own]), prior, nowhere, lambda: np.nan, owner, names, meat=meat)

    def _redraws(self, batch: Batch, options: Mapping[str, Any], replicates: int, seed: int) -> Replicates:
        one = np.zeros(1, np.int64)
        if not len(batch):
            return Replicates(np.zeros((replicates, 0)), one[:0], one[:0])
        if self.again is None or self.sizes.endless.any():
            raise TooMuch
        scores, own = self._scores(batch, **options), self._codes(batch)
        prior, place = float(scores.options["prior"]), np.argsort(own)
        point = np.append(scores.value[place], [scores.coefficients[name][0] for name in self.names])
        order = np.append(place, np.arange(len(own), len(point)))
        information = csr_array(self._curvature(batch, scores).hessian[order][:, order])
        given = point, information, prior, replicates, seed, Levels(self.sizes), TiedLists, partial(self._alone, batch)
        found, unlimited, draws = self.again.fitted_beside(*given)
        return Replicates(found[:, own], one + unlimited, one + draws)

    def _alone(self, batch: Batch, replicate: Replicated, prior: float) -> Floats:
        """The scores of one replicate by itself."""
        known = _known(replicate.sums(TiedLists, _seen))
        sized = SizedLists(known["sizes"])
        return replace(self, shares=replicate.shares(sized), **known).fitted(batch, prior).value
