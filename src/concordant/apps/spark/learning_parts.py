"""Parts of a query that no task can hold, in a fit of several passes: its scores by any structure, its pairs joined.

The slices of a query are shares of it, so what a ranking reads of shares (``structure_sums``, ``splitting``) is read of
the judgments that a fold leaves as of all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from queue import SimpleQueue
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from concordant.apps.spark.coefficients import as_pairs, scores_beside, used, with_coefficients
from concordant.apps.spark.divided import declared
from concordant.apps.spark.frames import JudgedQueries
from concordant.apps.spark.learning_cutting import sliced
from concordant.apps.spark.learning_draws import drawn_targets
from concordant.apps.spark.learning_held import (
    JOINED,
    Dividing,
    Held,
    HeldFrame,
    Slice,
    Split,
    Summing,
    Sums,
    Which,
    Work,
)
from concordant.apps.spark.learning_passes import Aim, Fit, KnownScores, Prior
from concordant.apps.spark.learning_slices import Along, Part, Scored, fitted, log_odds
from concordant.apps.spark.shares import CELLS, Listed, Pairs, Share, TooMuch, narrow
from concordant.apps.spark.splitting import Divided, divisible, options_of_fit
from concordant.apps.spark.structure_sums import estimated, reading
from concordant.apps.spark.tied_rankings import TiedLists, fits_tied, seen_ties, sizes_of, tied_scores
from concordant.apps.spark.valued_pairs import ValuedPairs, outcomes_of, seen_outcomes
from concordant.errors import UsageError
from concordant.learning.rankers.aggregation import AggregationRanker
from concordant.learning.rankers.edge_sources import usual_structure
from concordant.learning.rankers.plans import Plan, Recipe, options_of
from concordant.learning.targets.mean_targets import Targets
from concordant.losses.surrogates import surrogate
from concordant.preferences.graphs import Batch
from concordant.preferences.labels import ONE_QUERY, Labels
from concordant.preferences.preferences import Preferences
from concordant.preferences.sampling import label_keys
from concordant.ranking.click_models import KnownClicks
from concordant.ranking.cumulative import Outcomes
from concordant.ranking.ranked_lists import all_linked
from concordant.ranking.scores import Scores
from concordant.ranking.structures import structure as find_structure

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
K = TypeVar("K")
W = TypeVar("W", bound=Which)
T = TypeVar("T")
Ask = Callable[[Any], Sums]
"""Ask for a piece of work on all shares, added up."""


def dividing(ranker: AggregationRanker, kind: str, judged: JudgedQueries) -> Dividing | None:
    """How a query that no task can hold becomes slices; None where what a fit asks of it is no sum over them.

    It is one where scores follow from such sums.
    """
    informed = ranker._informed(kind)
    tried, _, _ = ranker._to_try(kind, max(judged.large_sizes, default=1), informed, "cascade")
    if any(not isinstance(plan.structure, str) for plan in tried):
        return None
    for plan in tried:
        options = options_of_plan(plan, ranker._recipe())
        if estimated(plan.structure, options):
            continue
        fits = divisible(judged, plan.structure, options) or fits_tied(kind, plan.structure, options)
        fits = fits or with_coefficients(*as_pairs(plan.structure, kind, options))
        if reading(str(plan.structure), kind) is None and not fits:
            return None
    return sliced


def options_of_plan(plan: Plan, recipe: Recipe) -> dict[str, Any]:
    """What the structure of a plan is asked for."""
    own = recipe.options if plan.c0 is None else {**recipe.options, "c0": plan.c0}
    return options_of(plan.structure, own)


# -- scores ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Sharing:
    """A slice becomes shares of some of its judgments, each made by a function."""

    parts: Mapping[Any, Callable[[Preferences], Share]]

    def __call__(self, held: Held) -> dict[Which, Share]:
        return {which: make(held.part(which)).coded(held.prefs.items) for which, make in self.parts.items()}


@dataclass(frozen=True)
class _Outcomes:
    """The outcomes of the judgments of each part."""

    parts: tuple[Which, ...]

    def __call__(self, held: Held) -> Sums:
        return Sums({which: outcomes_of(held.part(which))["outcomes"] for which in self.parts})


@dataclass(frozen=True)
class _Ties:
    """What is seen of the ties of the rankings of each part; ``items``: of the query."""

    parts: tuple[Which, ...]
    items: int

    def __call__(self, held: Held) -> Sums:
        return Sums({which: seen_ties(Listed.of(held.part(which)), self.items) for which in self.parts})


@dataclass(frozen=True)
class _Each:
    """A piece of work for the shares of each part."""

    works: Mapping[Which, Work]

    def __call__(self, shares: dict[Which, Share]) -> Sums:
        return Sums({which: work(shares[which]) for which, work in self.works.items()})


class OfPart(Divided):
    """Some of the judgments of a query, whose shares somebody else passes over."""

    ask: Callable[[Any], Sums]

    def sums(self, work: Any) -> Sums:
        self.passes += 1
        return self.ask(work)


def side_by_side(
    readers: Mapping[K, Callable[[Ask], T]], passed: Callable[[Mapping[K, Any]], Mapping[K, Sums]]
) -> dict[K, T]:
    """Run readers that ask for one sum after another: what all of them ask for at a time is done in one pass.

    Errors: those of the first reader that ends with one.
    """
    asked: SimpleQueue[tuple[K, Any]] = SimpleQueue()
    answers: dict[K, SimpleQueue[Any]] = {key: SimpleQueue() for key in readers}

    def run(key: K) -> T:
        def ask(work: Any) -> Sums:
            asked.put((key, work))
            found: Sums | BaseException = answers[key].get()
            if isinstance(found, BaseException):
                raise found
            return found

        try:
            return readers[key](ask)
        finally:
            asked.put((key, None))

    with ThreadPoolExecutor(max(len(readers), 1)) as pool:
        ends, live, waiting = {key: pool.submit(run, key) for key in readers}, set(readers), dict[K, Any]()
        try:
            while live:
                key, work = asked.get()
                if work is None:
                    live.remove(key)
                else:
                    waiting[key] = work
                if waiting and len(waiting) == len(live):
                    for one, found in passed(waiting).items():
                        answers[one].put(found)
                    waiting = {}
        except BaseException as error:  # it ends those that wait, too
            for answer in answers.values():
                answer.put(error)
            raise
        return {key: end.result() for key, end in ends.items()}


def scores_of_parts(
    slices: HeldFrame,
    parts: Mapping[W, int],
    about: Sums,
    structure: str,
    kind: str,
    options: Mapping[str, Any],
    means: Mapping[W, Mapping[str, Any]] | None = None,
) -> dict[W, Scores]:
    """Scores of the items of a query, ``about`` which this is known, from parts of so many of its judgments each.

    ``means``: of each part the prior with a mean. Errors (UsageError): more pairs than are brought together.
    """
    number, items = len(about["buckets"]), about["items"]
    member, how = find_structure(structure), reading(structure, kind)
    member.check(kind, options)
    structure, options = as_pairs(structure, kind, options)
    pairs, tied = structure == "bradley-terry", fits_tied(kind, structure, options)
    beside = how is None and pairs and (means is not None or fits_beside(about, options))
    kept: type[Share] = Listed if structure == "plackett-luce" else Pairs
    kept = how.kept if how is not None else ValuedPairs if beside else kept
    makers: dict[W, Callable[[Preferences], Share]] = dict.fromkeys(parts, kept.of)
    seen: dict[W, Outcomes] = {}
    if beside and options.get("ties") == "cumulative":
        found = slices.sums(_Outcomes(tuple(parts)))
        seen = {which: seen_outcomes(found[which]) for which in parts}
        names = used(about["covariates"], options)
        makers = {which: partial(ValuedPairs.of, names=names, seen=seen[which]) for which in parts}
    ties: dict[W, Sums] = {}
    if tied:
        ties = slices.sums(_Ties(tuple(parts), items))
        makers = {which: partial(TiedLists.of, sizes=sizes_of(ties[which])) for which in parts}
    shares = slices.changed(_Sharing(makers))

    def read(ask: Ask, which: W) -> Scores:
        part = OfPart(None, number, number)
        part.ask, part.by = ask, "pairs" if kind == "comparisons" else "lists"
        part.items, part.query = about["labels"].labels, Labels.encode([about["query"]])[0]
        part.judgments, part.touched = parts[which], np.zeros(items, np.int64)
        own = {} if means is None else means[which]
        if how is None and not own:
            part.link()
        if beside:
            given = {**options, **{name: value for name, value in own.items() if name != "mean"}}
            return scores_beside(part, kind, about["covariates"], given, own.get("mean"), seen.get(which))
        if tied:
            return tied_scores(part, ties[which], nobody(kind, items), **options)
        if how is None:
            return part.scores(**options_of_fit(options))
        part.links = all_linked(np.ones(items, bool))  # which items are connected is not asked of scores to learn from
        return how.read(part, member, options).scores(Batch.whole(nobody(kind, items)))

    try:
        readers = {which: partial(read, which=which) for which in parts}
        return side_by_side(readers, lambda works: shares.sums(_Each(dict(works))))
    except TooMuch:
        raise UsageError(
            f"{named(about)} has more than {CELLS:,} pairs of items that were judged: on Spark the structure "
            f"{structure} is not found of so many; take another, or fit it on one machine"
        ) from None
    finally:
        shares.forget()


def fits_beside(about: Sums, options: Mapping[str, Any]) -> bool:
    """Whether Bradley–Terry's scores of a query have coefficients beside them."""
    return bool(about["covariates"] or options.get("covariates")) or options.get("ties", "half") != "half"


def named(found: Sums) -> str:
    """A query that is divided, by its name."""
    return "the log" if found["query"] == ONE_QUERY else f"query {found['query']!r}"


def nobody(kind: str, items: int) -> Preferences:
    """So many items of one query, without judgments."""
    return declared(kind, Labels.encode(np.zeros(1, np.int64))[0], Labels.encode(np.arange(items))[0])


def known_targets(plan: Plan, recipe: Recipe, scores: Scores, kind: str) -> Targets:
    """The targets that a plan makes of scores of all judgments of a query."""

    def known(_: Batch, **__: Any) -> Scores:
        return scores

    return recipe.targets([replace(plan, structure=known)], nobody(kind, len(scores.value)))[0]


def orders_of(aims: list[Aim]) -> set[int]:
    """The sizes of the subsets that plans draw."""
    return {int(plan.order) for aim in aims for plan in aim.plans if plan.order != "all"}


def scored_alike(plan: Plan) -> Plan:
    """A plan that has the same scores as all others that differ in gains."""
    return Plan(plan.structure, "all", "identity", False, c0=plan.c0)


# -- pairs -----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Parting:
    """What a slice of lists says of the pairs of each of ``parts`` parts."""

    parts: int

    def __call__(self, held: Held) -> Iterator[tuple[int, Held]]:
        """Its pair tables in parts; the features go with the first slice."""
        query, size = held.at.query, len(held.row)
        place = (held.ends[0].astype(np.int64) * size + held.ends[1]) % self.parts
        Z = held.Z if held.speaks else held.Z[:0]
        for part in range(self.parts):
            own = np.flatnonzero(place == part)
            tables = {split: (above[own], below[own]) for split, (above, below) in held.tables.items()}
            whose = Slice(query, part, JOINED)
            yield part, replace(held.bare, Z=Z, slice=whose, ends=held.ends[:, own], tables=tables)


def joined(parts: list[Held], bucket: int) -> Held:
    """Put together what all slices say of some pairs."""
    size, whole = len(parts[0].row), next(part for part in parts if len(part.Z) or not len(part.row))
    key, place = np.unique(
        np.concatenate([part.ends[0].astype(np.int64) * size + part.ends[1] for part in parts]), return_inverse=True
    )
    tables: dict[Split, tuple[NDArray[Any], NDArray[Any]]] = {}
    for split in parts[0].tables:
        sides = [np.concatenate([part.tables[split][side] for part in parts]) for side in (0, 1)]
        above, below = (np.bincount(place, each.astype(np.float64), len(key)).astype(np.float64) for each in sides)
        tables[split] = narrow(above), narrow(below)
    ends = np.array(np.divmod(key, max(size, 1)), np.int32)
    return replace(whole, bucket=bucket, ends=ends, tables=tables)


@dataclass(frozen=True)
class Both:
    """Objects of several frames, whose sums add up."""

    frames: tuple[Summing, ...]

    def sums(self, work: Work) -> Sums:
        """Do a piece of work on every object and add up."""
        return sum((frame.sums(work) for frame in self.frames), Sums())


class ClickScores(Protocol):
    """How the clicks of parts of the judgments are read, where all of a log tells."""

    known: dict[Which, KnownClicks]

    def scores(self, query: int, which: Which, structure: str = "", **options: Any) -> Scores:
        """Of the items of a divided query, by the usual structure of a part or by another."""
        ...


# -- what a fit asks of them -------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Parts:
    """The queries that are divided, once their judgments are dealt."""

    held: HeldFrame
    """With their slices."""
    pairs: HeldFrame
    """The pairs of their slices alone."""
    divided: Sums
    kind: str
    recipe: Recipe
    clicks: ClickScores | None = None
    """How clicks are read, where all of the log tells."""

    def joined(self) -> list[HeldFrame]:
        """Of lists the pairs, all that is said of one in one place; to be freed."""
        if self.kind == "comparisons":
            return []
        slices = [(self.held.some(found["buckets"]), len(found["buckets"])) for found in self.divided.values()]
        return [some.exchanged(Parting(number), joined, number) for some, number in slices]

    def scored(self, aims: list[Aim], totals: Sums, priors: Mapping[Split, Prior]) -> dict[tuple[int, Aim], Scored]:
        """The targets of divided queries, those of all parts of the judgments side by side."""
        told = {(query, aim.split): totals["divided", query, aim.split] for query in self.divided for aim in aims}
        parts = {part: int(found["judgments"]) for part, found in told.items() if found["judgments"]}
        informed = [part for part in parts if any(aim.informed and aim.split == part[1] for aim in aims)]
        options = self._priors(informed, priors)
        drawn: dict[tuple[Part, bool, Plan], Targets] = {}
        for query, about, order in product(self.divided, (True, False), sorted(orders_of(aims))):
            drawn |= self._drawn([aim for aim in aims if aim.informed == about], query, order, parts, options)
        found: dict[tuple[Part, Plan | None], Scores] = {}
        whole = [(part, aim, plan) for part in parts for aim in aims for plan in aim.plans if part[1] == aim.split]
        whole = [(part, aim, plan) for part, aim, plan in whole if (part, aim.informed, plan) not in drawn]
        if asked := dict.fromkeys(part for part, aim, _ in whole if aim.informed):
            made_by = self._informed({part: options[part] for part in asked}, parts, totals)
            found |= {(part, None): each for part, each in made_by.items()}
        for alike in dict.fromkeys(scored_alike(plan) for _, aim, plan in whole if not aim.informed):
            some = [part for part, aim, plan in whole if not aim.informed and scored_alike(plan) == alike]
            made_of = self.scores(alike, {part: parts[part] for part in some})
            found |= {(part, alike): each for part, each in made_of.items()}

        def targets(part: Part, aim: Aim, plan: Plan) -> Targets:
            if (part, aim.informed, plan) in drawn:
                return drawn[part, aim.informed, plan]
            return known_targets(
                plan, self.recipe, found[part, None if aim.informed else scored_alike(plan)], self.kind
            )

        def scored(part: Part, aim: Aim) -> Scored:
            if part not in parts:
                return Scored()
            return Scored(tuple([targets(part, aim, plan) for plan in aim.plans]), parts[part])

        return {(query, aim): scored((query, aim.split), aim) for query in self.divided for aim in aims}

    def read_by(self, fits: list[Fit], totals: Sums) -> KnownScores:
        """The scores that surrogates on them read of divided queries."""
        found: dict[tuple[int, str, Split], tuple[Scores, int]] = {}
        for name in dict.fromkeys(fit[0] for fit in fits if self.divided and surrogate(fit[0]).reads == "scores"):
            some = [(query, fit[1]) for query in self.divided for fit in fits if fit[0] == name]
            parts = {part: int(totals["divided", *part]["judgments"]) for part in some}
            if self.clicks is not None:
                for (query, split), number in parts.items():
                    if number:
                        found[query, name, split] = self.clicks.scores(query, split), number
                continue
            plan = Plan(usual_structure(surrogate(name), self.kind), "all", "identity", False)
            made = self.scores(plan, {part: number for part, number in parts.items() if number})
            found |= {(query, name, split): (each, parts[query, split]) for (query, split), each in made.items()}
        return found

    def _informed(
        self, options: Mapping[Part, Mapping[str, Any]], judgments: Mapping[Part, int], totals: Sums
    ) -> dict[Part, Scores]:
        """Scores with a prior, those without coefficients in the same passes."""
        own, found = self.recipe.options, dict[Part, Scores]()
        beside = {query for query, about in self.divided.items() if own or fits_beside(about, own)}
        if plain := {part: each for part, each in options.items() if part[0] not in beside}:
            made = fitted(self.pairs, {(*part, each["prior"]): each["mean"] for part, each in plain.items()}, totals)
            found |= {(query, split): each for (query, split, _), each in made.items()}
        for query in sorted(beside):
            priors = {split: each for (one, split), each in options.items() if one == query}
            some = {split: judgments[query, split] for split in priors}
            slices, about = self.held.some(self.divided[query]["buckets"]), self.divided[query]
            scores = scores_of_parts(slices, some, about, "bradley-terry", self.kind, own, priors) if some else {}
            found |= {(query, split): each for split, each in scores.items()}
        return found

    def _priors(self, parts: list[Part], priors: Mapping[Split, Prior]) -> dict[Part, dict[str, Any]]:
        """Options of the structure where features inform it."""
        means = self.held.sums(Along({part: priors[part[1]].theta for part in parts})) if parts else {}
        return {part: {"prior": 1.0 / priors[part[1]].tau2, "mean": means[part]} for part in parts}

    def _drawn(
        self, aims: list[Aim], query: int, order: int, parts: Mapping[Part, int], options: Mapping[Part, dict[str, Any]]
    ) -> dict[tuple[Part, bool, Plan], Targets]:
        """Targets of a query by plans of this order, of parts with more judgments; aims: all informed, or none."""
        plans = dict.fromkeys(plan for aim in aims for plan in aim.plans if plan.order == order)
        splits = dict.fromkeys(aim.split for aim in aims if any(plan in plans for plan in aim.plans))
        own = {split: parts[query, split] for split in splits if parts.get((query, split), 0) > order}
        if not own:
            return {}
        informed, about = aims[0].informed, self.divided[query]
        key = label_keys(Labels.encode([about["query"]])[0], self.recipe.seed)[0]
        prior = {split: options[query, split] for split in own} if informed else {}
        known = {} if self.clicks is None else {split: self.clicks.known[split] for split in own}
        made = drawn_targets(self.held.some(about["buckets"]), own, key, [*plans], self.recipe, prior, known)
        return {((query, split), informed, plan): each for (split, plan), each in made.items()}

    def scores(self, plan: Plan, parts: Mapping[Part, int]) -> dict[Part, Scores]:
        """Scores by the structure of a plan. Errors: as of ``scores_of_parts``."""
        options, structure = options_of_plan(plan, self.recipe), str(plan.structure)
        if self.clicks is not None and estimated(structure, options):
            return {(query, split): self.clicks.scores(query, split, structure, **options) for query, split in parts}
        if structure == "log-odds" and self.kind == "comparisons" and not options and parts:
            return log_odds(self.pairs, tuple(parts))
        found = dict[Part, Scores]()
        for query in dict.fromkeys(query for query, _ in parts):
            own = {split: judgments for (one, split), judgments in parts.items() if one == query}
            about = self.divided[query]
            made = scores_of_parts(self.held.some(about["buckets"]), own, about, structure, self.kind, options)
            found |= {(query, split): each for split, each in made.items()}
        return found
