"""A linear fit that needs more than one pass on Spark: informed aggregation, what held-out judgments choose, the gate.

What is done is what ``AggregationRanker`` does in memory, step by step; what crosses queries is added up in tasks.
The two numbers of the prior are chosen on a sample of whole queries (32,768 judged pairs), which comes to the driver.

A query that no task can hold is slices (``learning_slices``) where all that is asked of it are sums over its pairs; in
the sample it is sums as well (``learning_numbers``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.apps.spark.frames import JudgedQueries
from concordant.apps.spark.learning_clicks import ClicksRead, needs_below, of_positions, read_parts
from concordant.apps.spark.learning_features import FeatureFrame
from concordant.apps.spark.learning_held import WHOLE, Held, HeldFrame, Split, Sums
from concordant.apps.spark.learning_judged import dealt_parts, losses_together
from concordant.apps.spark.learning_numbers import SampledSums
from concordant.apps.spark.learning_parts import Both, Parts, dividing, named
from concordant.apps.spark.learning_passes import (
    Aim,
    Asked,
    Dealing,
    Equations,
    Facts,
    Fit,
    HeldClusters,
    Losses,
    Prior,
    Sampling,
    Totals,
    Trial,
    differences,
    minimised,
    scaled,
)
from concordant.apps.spark.learning_slices import Begins, Winners, bare, begins, with_divided
from concordant.errors import InputError, counted
from concordant.learning.features.matrix import Alignment
from concordant.learning.features.normalising import Normaliser
from concordant.learning.rankers.aggregation import AggregationRanker
from concordant.learning.rankers.choosing import Curve, TooFew, refuse_few
from concordant.learning.rankers.columns import Learned
from concordant.learning.rankers.disagreement import FEW_QUERIES
from concordant.learning.rankers.edge_sources import note_of_usual
from concordant.learning.rankers.gate import (
    CURVATURE,
    DEFAULT,
    NO_EDGES,
    NO_JUDGMENTS,
    Gate,
    closed,
    decided,
    names_for,
    target_plans,
    too_little,
)
from concordant.learning.rankers.plans import RIDGE, Plan, model_of_clicks
from concordant.learning.rankers.residual_fit import surest
from concordant.learning.rankers.target import ROUNDING, Difference, Target
from concordant.learning.rankers.validation import reads_below
from concordant.learning.solvers.least_squares import NormalEquations
from concordant.learning.targets.informed import FEW_QUERIES as FEW_SAMPLED
from concordant.learning.targets.informed import FOLDS, Numbers, drawn_queries, numbers_of_sample
from concordant.learning.targets.mean_targets import TargetFacts
from concordant.preferences.preferences import Preferences
from concordant.preferences.ragged import Ragged
from concordant.preferences.sampling import label_keys
from concordant.preferences.splits import check_folds, dealt
from concordant.progress import stage

Floats = NDArray[np.float64]


HERE = -1
"""Bucket of what the driver holds."""
Found = tuple[Floats, Learned, tuple[str, ...], Curve | None]
"""Coefficients, how they came about, what to note of targets and prior, and what was tried on held-out judgments."""


@dataclass(eq=False)
class Choosing:
    """The steps of a fit, on the driver."""

    ranker: AggregationRanker
    kind: str
    held: HeldFrame
    normaliser: Normaliser
    facts: Sums = field(default_factory=Sums)
    totals: Sums = field(default_factory=Sums)
    made: Sums = field(default_factory=Sums)
    """Equations by aim."""
    priors: dict[Split, Prior] = field(default_factory=dict)
    pairs: HeldFrame | None = None
    """The pairs of divided queries, once they are dealt."""
    clicks: ClicksRead | None = None
    """How clicks are read, where some lists have several and all of the log tells."""
    edges: dict[Fit, Floats] = field(default_factory=dict)
    """Coefficients of candidates of the gate, and of pairwise scorers."""

    @classmethod
    def of(
        cls, ranker: Any, kind: str, judged: JudgedQueries, features: FeatureFrame, fitted: Normaliser, rows: int
    ) -> Choosing:
        """Bring a log and its features together, to be freed by ``forget``."""
        below = needs_below(ranker.structure, judged)
        how = dividing(ranker, kind, judged)
        return cls(ranker, kind, HeldFrame.of(judged, features, fitted, rows, below=below, dividing=how), fitted)

    def _look(self, features: FeatureFrame, rows: int) -> None:
        """Learn what there is. Errors: InputError, UsageError."""
        with stage("counting judgments and features"):
            self.facts = self.held.sums(Facts(self.ranker.seed))
        if not self.facts:
            raise InputError("there are no judgments to learn from")
        self.facts["lacking"].check(features, rows)
        for found in self.divided.values():
            keys, _ = self.facts["queries"][found["bucket"]]
            self.facts["queries"][found["bucket"]] = keys, np.array([int(found["pairs"])])
            self.facts["largest"].append(found["judgments"])

    # -- what there is -----------------------------------------------------------------------------------------------
    @property
    def judgments(self) -> int:
        return int(self.facts["judgments"])

    @property
    def rows(self) -> int:
        """Items of all queries."""
        return int(self.facts["lacking"].rows)

    @property
    def divided(self) -> Sums:
        """By its number what there is of each query that is divided."""
        found: Sums = self.facts.get("divided", Sums())
        return found

    @property
    def slices(self) -> HeldFrame:
        """The parts of queries that are divided; there are some."""
        return self.held.some(sorted(bucket for found in self.divided.values() for bucket in found["buckets"]))

    @property
    def said(self) -> tuple[str, ...]:
        """What was divided."""
        return tuple(
            f"{named(found)}: {counted(found['judgments'], 'judgments')} of {counted(found['items'], 'items')}, "
            f"divided among tasks by their {found['by']} ({counted(len(found['buckets']), 'slices')})"
            for _, found in sorted(self.divided.items())
        )

    @property
    def n(self) -> int:
        return int(self.ranker.folds)

    @property
    def target(self) -> Target:
        target = Target.of(self.ranker.target, self.kind)
        if self.kind != "selections" or not target.of_lists:
            return target
        if self.clicks is not None:
            return replace(target, clicks=self.clicks.known[WHOLE].usual)
        usual = "dependent-click" if self.facts["several"] else "cascade"
        return replace(target, clicks=self._named or usual)

    @property
    def _named(self) -> str:
        """The model of clicks that is named."""
        return model_of_clicks(self.ranker.structure, self.ranker.structure_options)

    @property
    def usual(self) -> bool:
        """Whether no structure is named."""
        return self.ranker.structure is None or self.ranker.structure == "auto"

    @property
    def queries(self) -> int:
        return sum(len(keys) for keys, _ in self.facts["queries"].values())

    @property
    def cluster_keys(self) -> NDArray[np.uint64] | None:
        """Keys of all clusters, sorted; None where judgments are in none."""
        return np.unique(np.concatenate(self.facts["clusters"])) if any(self.facts["clustered"]) else None

    # -- the steps ---------------------------------------------------------------------------------------------------
    def learned(self, features: FeatureFrame, rows: int) -> Found:
        """Take them, one after another. Errors: InputError, UsageError."""
        self._look(features, rows)
        ranker, kind, n = self.ranker, self.kind, self.n
        informed = ranker._informed(kind)
        clicks = self._usual_clicks()
        tried, ridges, beyond = ranker._to_try(kind, max(self.facts["largest"]), informed, clicks)
        way = ""
        if beyond and len(ridges) > 1:
            way = "queries" if self.queries >= max(FEW_QUERIES, 2 * n) else "judgments"
        elif len(tried) * len(ridges) > 1:
            way = ranker.split
        gated = ranker._gated(kind, beyond, streamed=False)
        if way or gated:
            check_folds(n, way or "judgments", self.queries)
        clusters = self.cluster_keys
        edge_names = names_for(self.target, kind) if gated else ()
        by_targets = target_plans(self.target, kind) if gated else {}
        number = None if clusters is None else len(clusters)
        why = too_little(1 + len(edge_names) + len(by_targets), self.judgments, number, n) if gated else "not asked"
        gate_way = "" if why else "judgments" if clusters is None else "clusters"
        cv, gate = [(way, k) for k in range(n) if way], [(gate_way, k) for k in range(n) if gate_way]
        numbers, start = self._numbers() if informed else (None, np.zeros(len(self.normaliser.names)))
        logistic = any(name not in ("ndcg-pairwise", "err-pairwise") for name in edge_names)
        pairs = informed or logistic or bool(self.divided)
        self._deal({way, gate_way} - {""}, pairs, clusters, [WHOLE, *dict.fromkeys([*cv, *gate])])
        unchosen: TooFew | None = None
        if any(not self.totals[split, "judgments"] or not self.totals[split, "held"] for split in gate):
            gate, why = [], NO_JUDGMENTS
        try:
            for split in cv:
                refuse_few(split[1], n, self.totals[split, "held"], self.totals[split, "judgments"], *self._of)
        except TooFew as error:
            unchosen, cv = error, []
        if self._reads_positions(tried):
            clicks = self._read_clicks(tried, dict.fromkeys([*cv, *gate]), [*gate, *(cv if beyond else [])])
            tried = ranker._to_try(kind, max(self.facts["largest"]), informed, clicks)[0]
        pilot = RIDGE if numbers is None or not beyond else numbers.precision / self.facts["mass"]
        precision = pilot * self.judgments
        self._fit_pairs(numbers, start, dict.fromkeys([WHOLE, *cv, *gate]), edge_names, gate, precision)
        aims = [Aim(tuple(tried), split, informed, beyond) for split in cv]
        others = [Aim((plan,), split) for plan in by_targets.values() for split in gate]
        mine = [Aim((tried[0],), split, informed, beyond) for split in (WHOLE, *gate)] if len(tried) == 1 else []
        self._equations([*aims, *others, *mine])
        curve, place = None, 0
        try:
            if unchosen is None and cv:
                curve = self._beyond(aims, tried[0], ridges) if beyond else self._chosen(aims, tried, ridges)
                ridges = curve["ridge"].tolist()[: len(ridges)]
                place = curve.best
        except TooFew as error:
            unchosen = error
        if unchosen is not None:
            if ranker._asked_to_choose(tried):
                raise unchosen
            tried, ridges = tried[-1:], [np.inf if beyond else RIDGE]
        plan, ridge = tried[place // len(ridges)], ridges[place % len(ridges)]
        mine = [Aim((plan,), split, informed, beyond) for split in (WHOLE, *gate)]
        self._equations(mine)
        facts = self._facts_of(mine[0])
        if unchosen is not None and not facts.largest:
            raise unchosen
        gates = []
        taken = ""
        if gated:
            alone = beyond and np.isinf(ridge)
            first = "pairwise logistic" if alone else DEFAULT if beyond else str(plan.row["structure"])
            names = (first, *edge_names, *by_targets)
            gates = [
                self._gate(names, by_targets, plan, ridge, mine[1:], precision)
                if gate
                else closed(self.target, names, why)
            ]
            taken = gates[0].name if gates[0].taken else ""
        theta, ended = self._last(mine[0], ridge, beyond)
        if taken in by_targets:
            aim = Aim((by_targets[taken],))
            self._equations([aim])
            theta = self._solved(aim, 0, CURVATURE * precision / self.judgments)
        elif taken:
            asked = Asked(float(self.judgments), precision / self.judgments, self.edges[taken, gate[0]])
            theta = self._minimised({(taken, WHOLE): asked})[taken, WHOLE]
        prior = {}
        if numbers is not None:
            prior = {"tau2": float(numbers.variance), "prior_ridge": float(numbers.precision / self.facts["mass"])}
        how = Learned(plan, facts, ended, ridge, ridges, prior, beyond, gated, gates, unchosen)
        notes = (*facts.notes, *(() if numbers is None else numbers.notes))
        examined = None if self.clicks is None else self.clicks.known[WHOLE].examined
        if ranker.structure is None and kind == "selections":
            linked = examined is not None and examined.linked
            notes += (*note_of_usual(self.facts["several"], self.facts["gaps"], self.judgments, clicks, linked),)
        if plan.row["structure"] == "position-based" and examined is not None:
            notes += examined.apart
        return theta, how, notes, curve

    @property
    def _of(self) -> tuple[tuple[int, int], str]:
        return (self.judgments, self.queries), self.kind

    def _numbers(self) -> tuple[Numbers, Floats]:
        """Choose the numbers of the prior on a sample of queries, and fit the pairwise scorer to it."""
        if self.facts["mass"] <= 0:
            raise InputError("informed aggregation needs comparisons: these preferences prefer no item to another")
        by_bucket = sorted(self.facts["queries"].items())
        bucket = np.concatenate([np.full(len(keys), place) for place, (keys, _) in by_bucket])
        code = np.concatenate([np.arange(len(keys)) for _, (keys, _) in by_bucket])
        keys, pairs = (np.concatenate([found[part] for _, found in by_bucket]) for part in (0, 1))
        drawn = drawn_queries(keys, pairs)
        divided = {found["bucket"]: query for query, found in self.divided.items()}
        places = {divided[one]: place for place, one in enumerate(bucket[drawn].tolist()) if one in divided}
        whole = [int(one) for one in np.unique(bucket[drawn]) if one not in divided]
        chosen = {one: code[drawn[bucket[drawn] == one]] for one in whole}
        sample = self.held.sums(Sampling(chosen))["sample"] if chosen else []
        prefs = sum((each for each, _ in sample), Preferences.empty())
        size = prefs.member_groups.sizes
        Z = np.empty((int(size.sum()), len(self.normaliser.names)))
        for part, rows in sample:
            nodes = prefs.member_groups.take(prefs.queries.codes_of(part.queries.values))[1]
            Z[nodes] = rows
        where = Alignment(Ragged.of_sizes(size).start, np.arange(len(Z)), np.arange(0))
        if not places:
            return numbers_of_sample(Z, where, prefs, self.facts["mass"], tau2=self.ranker.tau2, seed=self.ranker.seed)
        return self._numbers_of_sums(Held(prefs, Z, where.row, HERE) if chosen else None, keys[drawn], places)

    def _numbers_of_sums(
        self, local: Held | None, keys: NDArray[np.uint64], places: Mapping[int, int]
    ) -> tuple[Numbers, Floats]:
        """The same where queries of the sample are divided; ``places`` of these in it, and the keys of all."""
        seed, by_query = self.ranker.seed, len(keys) >= FEW_SAMPLED
        folds = {one: np.array([place % FOLDS]) for query, place in places.items() for one in self._buckets(query)}
        if local is not None:
            place_of = {key: place for place, key in enumerate(keys.tolist())}
            own = label_keys(local.prefs.queries, seed).tolist()
            folds[HERE] = np.array([place_of[key] % FOLDS for key in own])
        slices = self.held.some(sorted(one for query in places for one in self._buckets(query)))
        dealing = self._dealing(slices, FOLDS, {"judgments", "queries"}, True, folds, np.zeros(0, np.uint64))
        dealt_slices = slices.changed(dealing)
        pairs = dealt_slices.changed(bare)
        try:
            of_query = {query: place % FOLDS for query, place in places.items()}
            mine = None if local is None else dealing(local)
            start = np.zeros(len(self.normaliser.names))
            sums = SampledSums(dealt_slices, pairs, mine, of_query, by_query, self.facts["mass"], seed, start)
            return sums.numbers(self.ranker.tau2)
        finally:
            pairs.forget()
            dealt_slices.forget()

    def _buckets(self, query: int) -> list[int]:
        found: list[int] = self.divided[query]["buckets"]
        return found

    def _dealing(
        self,
        slices: HeldFrame | None,
        n: int,
        ways: set[str],
        pairs: bool,
        folds: dict[int, NDArray[Any]],
        clusters: NDArray[np.uint64],
    ) -> Dealing:
        """How judgments are dealt; those of divided queries by the places of their cards among all of the query."""
        distinct = {query: int(found["distinct"]) for query, found in self.divided.items()}
        begin: Begins = {}
        if slices is not None and "judgments" in ways:
            begin = begins(slices.sums(Winners(n, distinct)))
        return Dealing(n, self.ranker.seed, frozenset(ways), pairs, folds, clusters, distinct, begin)

    def _deal(self, ways: set[str], pairs: bool, clusters: NDArray[np.uint64] | None, splits: list[Split]) -> None:
        """Deal the judgments into folds, in the tasks; those of queries and of clusters by the keys of them all."""
        folds: dict[int, NDArray[Any]] = {}
        if "queries" in ways:
            by_bucket = self.facts["queries"]
            fold = dealt(np.concatenate([keys for keys, _ in by_bucket.values()]), self.n)
            ends = np.cumsum([len(keys) for keys, _ in by_bucket.values()])[:-1]
            kind = np.min_scalar_type(self.n)
            folds = dict(zip(by_bucket, np.split(fold.astype(kind), ends), strict=True))
            for found in self.divided.values():
                folds |= dict.fromkeys(found["buckets"], folds[found["bucket"]])
        keys = np.zeros(0, np.uint64) if clusters is None else clusters
        dealing = self._dealing(self.slices if self.divided else None, self.n, ways, pairs, folds, keys)
        before, self.held = self.held, self.held.changed(dealing)
        with stage("dealing judgments into folds"):
            self.totals = self.held.sums(Totals(tuple(splits), pairs))
        before.forget()
        self.pairs = self.slices.changed(bare) if self.divided else None

    def _reads_positions(self, tried: list[Plan]) -> bool:
        """Whether all of the log has to say how its clicks are read."""
        below = self.usual or reads_below(self.ranker.structure, Preferences.empty())
        unlike = bool(self.facts["several"] or self.facts["gaps"])
        judged = bool(self.facts["gaps"]) and self.target.of_lists and not self._named
        return of_positions(tried, self.ranker.structure_options) or (unlike and (below or judged))

    def _usual_clicks(self) -> str:
        """The structure that reads clicks where none is named, or another with as many plans."""
        if self.facts["several"]:
            return "dependent-click"
        if not self.facts["gaps"] or self.ranker.structure != "auto":
            return "cascade"
        return ClicksRead.of(self.held, [WHOLE], self._items).known[WHOLE].usual

    @property
    def _items(self) -> dict[int, int]:
        """Items of the divided queries."""
        return {query: int(found["items"]) for query, found in self.divided.items()}

    def _read_clicks(self, tried: list[Plan], splits: Iterable[Split], compared: list[Split]) -> str:
        """Find how clicks are read from all of the log, from what each fold leaves and what it holds out.

        ``compared``: folds by which losses are compared. Return the structure that reads them where none is named.
        """
        apart = [split for split in dict.fromkeys(compared) if split[0] != "queries" and self.target.of_lists]
        if apart:
            slices = self.slices if self.divided else None
            self._replace(dealt_parts(self.held, slices, apart, self.ranker.seed, self._keys(apart)))
        how: dict[str, Any] = {"named": of_positions(tried, self.ranker.structure_options), "model": self._named}
        with stage("reading clicks"):
            parts = read_parts(splits, apart, self.target.of_lists)
            self.clicks = ClicksRead.of(self.held, parts, self._items, **how)
            self._replace(self.clicks.tell(self.held))
        return self.clicks.known[WHOLE].usual

    def _replace(self, held: HeldFrame) -> None:
        """Go on with other objects, made of those that there are."""
        before, self.held = self.held, held
        self.held.sums(Totals((), False))
        before.forget()
        if self.divided and self.pairs is not None:
            self.pairs.forget()
            self.pairs = self.slices.changed(bare)

    def _keys(self, splits: Iterable[Split]) -> dict[Split, NDArray[np.uint64]]:
        """The keys of all clusters of what each fold holds out, sorted; none where judgments are in none."""
        if not any(self.facts["clustered"]):
            return {}
        found = self.held.sums(HeldClusters(tuple(splits), self.ranker.seed))
        return {split: each.values for split, each in found.items()}

    def forget(self) -> None:
        """Free what is kept."""
        for held in (self.held, self.pairs):
            if held is not None:
                held.forget()

    def _fit_pairs(
        self,
        numbers: Numbers | None,
        start: Floats,
        splits: Iterable[Split],
        names: tuple[str, ...],
        gate: list[Split],
        precision: float,
    ) -> None:
        """Fit the pairwise scorers of the prior and the candidates on edges, all at once."""
        asked: dict[Fit, Asked] = {}
        if numbers is not None:
            for split in splits:
                learned = self.totals[split, "judgments"]
                ridge = numbers.precision / self.facts["mass"] * (self.judgments / learned)
                asked["ranknet", split] = Asked(self.totals[split, "mass"], ridge, start)
        for name in names:
            begin = start if name == "difference-graph" else np.zeros_like(start)
            for split in gate:
                learned = self.totals[split, "judgments"]
                asked[name, split] = Asked(float(learned), precision / learned, begin)
        with stage("fitting pairwise scorers"):
            self.edges = self._minimised(asked)
        if numbers is not None:
            scorers = {fit: theta for fit, theta in self.edges.items() if fit[0] == "ranknet"}
            self.priors = {split: Prior(theta, numbers.variance) for (_, split, *_), theta in scorers.items()}

    def _minimised(self, asked: dict[Fit, Asked]) -> dict[Fit, Floats]:
        """The minimisers of surrogates."""
        together = self._parts.joined() if any(fit[0] == "difference-graph" for fit in asked) else []
        try:
            known = self._parts.read_by(list(asked), self.totals)
            return minimised(Both((self.held, *together)), asked, self.ranker.seed, known)
        finally:
            for pairs in together:
                pairs.forget()

    @property
    def _parts(self) -> Parts:
        return Parts(self.held, self.pairs or self.held, self.divided, self.kind, self.ranker._recipe(), self.clicks)

    def _equations(self, aims: list[Aim]) -> None:
        """Make the targets that were not made yet, and add up their normal equations."""
        aims = [aim for aim in dict.fromkeys(aims) if (aim, 0, "weight") not in self.made]
        if aims:
            with stage("aggregating"):
                scored = self._parts.scored(aims, self.totals, self.priors) if self.divided else {}
                self.made += self.held.sums(Equations(tuple(aims), self.priors, self.ranker._recipe(), scored))

    def _system(self, aim: Aim, place: int) -> NormalEquations:
        return scaled(self.made[aim, place, "equations"], 1.0 / self.made[aim, place, "weight"])

    def _solved(self, aim: Aim, place: int, ridge: float) -> Floats:
        """Coefficients of a plan of an aim: the scorer of the prior and what targets add, or those of the targets."""
        theta = np.zeros(len(self.normaliser.names))
        if not np.isinf(ridge):
            theta = self._system(aim, place).solve(ridge).theta
        return self.priors[aim.split].theta + theta if aim.beyond else theta

    def _facts_of(self, aim: Aim) -> TargetFacts:
        found = self.made[aim, 0, "facts"]
        order = aim.plans[0].order
        largest = max(found["largest"])
        return TargetFacts(**{**found, "largest": largest}, order=None if isinstance(order, str) else int(order))

    def _last(self, aim: Aim, ridge: float, beyond: bool) -> tuple[Floats, dict[str, Any]]:
        if beyond:
            said = "pairwise logistic scorer" if np.isinf(ridge) else "closed form, beyond a pairwise logistic scorer"
            ended = {"status": said, "iterations": 0, "gradient": 0.0, "ridge": None if np.isinf(ridge) else ridge}
            return self._solved(aim, 0, ridge), ended
        fit = self._system(aim, 0).solve(ridge)
        return fit.theta, {"status": fit.status, "iterations": fit.iterations, "gradient": fit.gradient, "ridge": ridge}

    # -- choosing ----------------------------------------------------------------------------------------------------
    def _judged(self, trials: list[Trial], what: str) -> Sums:
        with stage(what):
            clusters = any(self.facts["clustered"])
            found = {
                (query, one.split): self.totals["divided", query, one.split] for query in self.divided for one in trials
            }
            strength = {part: one["held mass"] / one["held"] for part, one in found.items() if one["held"]}
            seed, together = self.ranker.seed, not self.target.adds_up(self.kind)
            keys = self._keys(one.split for one in trials) if together else {}
            sums = self.held.sums(Losses(tuple(trials), self.target, seed, clusters, strength, keys))
            if self.divided and together:
                of_query = self.slices, self.divided, self.totals
                clicks = self.clicks if self.target.of_lists else None
                sums += losses_together(self.target, self.kind, *of_query, trials, seed, keys, clicks)
            return sums

    def _checked(self, sums: Sums, cv: list[Split]) -> Floats:
        """Losses of each fold. Errors (TooFew): nothing to judge by, or to learn from."""
        for way, k in cv:
            refuse_few(k, self.n, sums.get(((way, k), "edges"), 0), self.totals[(way, k), "judgments"], *self._of)
        return np.array([sums[split, "lost"] / sums[split, "weight"] for split in cv])

    def _chosen(self, aims: list[Aim], tried: list[Plan], ridges: list[float]) -> Curve:
        """Judge every plan and ridge on the judgments that are held out."""
        combinations = [(place, ridge) for place in range(len(tried)) for ridge in ridges]
        trials = []
        for aim in aims:
            thetas = [self._solved(aim, place, ridge) for place, ridge in combinations]
            trials.append(Trial(aim.split, np.column_stack(thetas), compared=False))
        losses = self._checked(self._judged(trials, "cross-validation"), [aim.split for aim in aims])
        rows = [{**tried[place].row, "ridge": ridge} for place, ridge in combinations]
        return Curve.of(rows, losses, str(self.target))

    def _beyond(self, aims: list[Aim], plan: Plan, ridges: list[float]) -> Curve:
        """Choose the ridge on what targets add to the scorer, as ``one_standard_error_ridge`` does."""
        ridges = sorted(ridges)
        cv = [aim.split for aim in aims]
        by_query = cv[0][0] == "queries"
        last = len(ridges) - 1
        trials = [
            Trial(aim.split, np.column_stack([self._solved(aim, 0, ridge) for ridge in ridges]), by_query, last)
            for aim in aims
        ]
        sums = self._judged(trials, "choosing the ridge")
        if by_query:
            sums = with_divided(sums, self.divided, cv, last)
        losses = self._checked(sums, cv)
        curve = Curve.of([{**plan.row, "ridge": ridge} for ridge in ridges], losses, str(self.target))
        if by_query:
            names = ("apart", "products", "with weight", "weights", "weight", "queries")
            apart, products, with_weight, weights, weight, queries = (
                sum(sums[one, name] for one in cv) for name in names
            )
            return curve.choosing(surest(apart, products, with_weight, weights, weight, queries))
        best = int(curve["loss"].argmin())
        gaps = differences(sums, cv, best)
        return curve.choosing(max(place for place, gap in enumerate(gaps) if gap.mean <= gap.error + ROUNDING))

    def _gate(
        self,
        names: tuple[str, ...],
        by_targets: Mapping[str, Plan],
        plan: Plan,
        ridge: float,
        mine: list[Aim],
        precision: float,
    ) -> Gate:
        """Judge the candidates on what is held out, and take the first unless another is surely better."""
        trials = []
        for aim in mine:
            split = aim.split
            other = CURVATURE * precision / self.totals[split, "judgments"]
            thetas = [self._solved(aim, 0, ridge)]
            for name in names[1:]:
                own = Aim((by_targets[name],), split) if name in by_targets else None
                thetas.append(self.edges[name, split] if own is None else self._solved(own, 0, other))
            trials.append(Trial(split, np.column_stack(thetas)))
        sums = self._judged(trials, "gate")
        splits = [aim.split for aim in mine]
        if not all(sums.get((split, "edges"), 0) for split in splits):
            return closed(self.target, names, NO_EDGES)
        weights = np.array([sums[split, "weight"] for split in splits])
        lost = np.array([sums[split, "lost"] / sums[split, "weight"] for split in splits])
        loss = (weights @ lost) / max(float(weights.sum()), 1e-300)
        gaps = differences(sums, splits, 0)
        first_less_each = [Difference(0.0 - gap.mean, gap.error) for gap in gaps]
        return decided(self.target, names, loss.tolist(), first_less_each)
