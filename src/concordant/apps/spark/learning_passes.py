"""What the passes of a fit add up in each bucket of queries: facts, Newton's sums, equations of targets, losses.

Weights are those of single judgments, so that sums of buckets add up; the driver divides by their number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.apps.spark.learning_held import HELD, JOINED, WHOLE, Held, Split, Summing, Sums
from concordant.apps.spark.learning_slices import Begins, Scored, first_cards
from concordant.apps.spark.learning_sums import Part
from concordant.apps.spark.splitting import Union
from concordant.learning.rankers.disagreement import Disagreement
from concordant.learning.rankers.edge_sources import of_preferences, of_scores
from concordant.learning.rankers.plans import Plan, Recipe
from concordant.learning.rankers.target import PARTS, Difference, Target, judges_of_parts, spread
from concordant.learning.solvers.edge_problem import EdgeProblem, factorised
from concordant.learning.solvers.least_squares import NormalEquations, products
from concordant.learning.targets.informed import SAMPLE
from concordant.learning.targets.mean_targets import Targets
from concordant.losses.surrogates import surrogate
from concordant.preferences.graphs import Batch
from concordant.preferences.ragged import Ragged
from concordant.preferences.sampling import deal, deal_part, dealt_cards, label_keys
from concordant.ranking.ranked_lists import lists_with_gaps, several_clicks
from concordant.ranking.scores import Scores

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
OF_PAIRS = ("ranknet", "difference-graph")
"""Surrogates that read how often either item of a pair won, with the logistic φ; the last in all judgments together."""


@dataclass(frozen=True)
class Distinct:
    """Pairs; those of parts are counted once, up to as many as a sample has."""

    key: Ints

    def __add__(self, other: Distinct) -> Distinct:
        return Distinct(np.union1d(self.key, other.key)[:SAMPLE])

    def __int__(self) -> int:
        return len(self.key)


@dataclass(frozen=True)
class Facts:
    """What there is."""

    seed: int

    def __call__(self, held: Held | Part) -> Sums:
        if isinstance(held, Part):
            return Sums(lacking=held)
        prefs, graphs = held.prefs, Batch.whole(held.prefs).graphs
        clusters = [] if prefs.cluster is None or prefs.clusters is None else [label_keys(prefs.clusters, self.seed)]
        found = Sums(
            judgments=len(prefs),
            mass=float(graphs.above.sum() + graphs.below.sum()),
            largest=[int(prefs.judgments.max())],
            single=int((held.groups.sizes == 1).sum()) * held.speaks,
            several=several_clicks(prefs),
            gaps=lists_with_gaps(prefs),
            clusters=clusters,
            clustered=[prefs.cluster is not None],
        )
        if held.speaks:
            found["lacking"] = Part(0, len(held.row))
            found["queries"] = Sums({held.bucket: (label_keys(prefs.queries, self.seed), graphs.pairs.sizes)})
        if held.slice is not None:
            pairs = Distinct((graphs.first * graphs.nodes + graphs.second)[:SAMPLE])
            own = Sums(judgments=len(prefs), distinct=prefs.distinct, pairs=pairs)
            own["buckets"] = [held.bucket]
            if held.speaks:
                own |= Sums(bucket=held.bucket, query=prefs.queries[0], items=len(held.row), by=held.slice.by)
                own |= Sums(labels=Union(prefs.items), covariates=prefs.covariate_names)
            found["divided"] = Sums({held.slice.query: own})
        return found


@dataclass(frozen=True)
class Sampling:
    """Some whole queries: their judgments, and the features of each node."""

    chosen: Mapping[int, NDArray[np.int64]]
    """By bucket the codes of the queries."""

    def __call__(self, held: Held) -> Sums:
        codes = self.chosen.get(held.bucket)
        if codes is None:
            return Sums()
        prefs = held.prefs.select(held.prefs.queries.take(codes).to_pylist())
        nodes = held.groups.take(np.sort(codes))[1]
        return Sums(sample=[(prefs, held.Z[held.row[nodes]])])


def narrow(values: NDArray[Any]) -> NDArray[Any]:
    """The same numbers in as few bytes as hold them."""
    if values.dtype.kind == "f" and (values != np.floor(values)).any():
        return values
    return values.astype(np.min_scalar_type(int(values.max(initial=0))))


@dataclass(frozen=True)
class Dealing:
    """Deal the judgments into folds, and keep the pairs of each part that something is fitted to."""

    n: int
    seed: int
    ways: frozenset[str]
    """judgments, queries, clusters."""
    pairs: bool
    folds: Mapping[int, NDArray[Any]]
    """By bucket the fold of each query."""
    clusters: NDArray[np.uint64]
    """The keys of all clusters, sorted."""
    divided: Mapping[int, int] = field(default_factory=dict)
    """Distinct judgments of each divided query."""
    begins: Begins = field(default_factory=dict)

    def __call__(self, held: Held) -> Held:
        prefs, shares = held.prefs, {}
        if "judgments" in self.ways:
            shares["judgments"] = self._dealt(held)
        if "clusters" in self.ways and prefs.clusters is not None:
            fold = np.searchsorted(self.clusters, label_keys(prefs.clusters, self.seed)) % self.n
            shares["clusters"] = np.where(fold[prefs.cluster] == np.arange(self.n)[:, None], prefs.count, 0)
        made = replace(held, shares={way: narrow(share) for way, share in shares.items()})
        made.query_fold = self.folds.get(held.bucket, held.query_fold)
        if self.pairs:
            graphs = Batch.whole(prefs).graphs
            made.ends = np.array([graphs.first, graphs.second], np.int32)
            made.tables[WHOLE] = narrow(graphs.above), narrow(graphs.below)
            code = graphs.first * graphs.nodes + graphs.second
            for split in [(way, fold) for way in shares for fold in range(self.n)]:
                part = Batch.whole(made.learned(split)).graphs
                place = np.searchsorted(code, part.first * part.nodes + part.second)
                table = np.zeros((2, len(code)))
                table[:, place] = part.above, part.below
                made.tables[split] = narrow(table[0]), narrow(table[1])
        return made

    def _dealt(self, held: Held) -> NDArray[np.int64]:
        prefs, at = held.prefs, held.slice
        keys = label_keys(prefs.queries, self.seed)
        if at is None:
            return deal(prefs.start, prefs.count, keys, self.n)
        even, cards = dealt_cards(prefs.count, self.divided[at.query], self.n)
        begin, total = self.begins[at.query, at.number]
        return deal_part(first_cards(prefs, cards, begin), even, cards, keys[0], total, self.n)


@dataclass(frozen=True)
class Totals:
    """Judgments that each part learns from, and their strength."""

    splits: tuple[Split, ...]
    mass: bool

    def __call__(self, held: Held) -> Sums:
        found = Sums({("pairs", held.slice.query): held.ends.shape[1]} if held.slice is not None else {})
        for split in self.splits:
            out = 0 if split == WHOLE else int(held.counts(split).sum())
            found[split, "held"], found[split, "judgments"] = out, len(held.prefs) - out
            found[split, "mass"] = float(sum(each.sum() for each in held.wins(split))) if self.mass else 0.0
            if held.slice is not None:
                mass = float(sum(each.sum() for each in held.held_wins(split))) if split != WHOLE else 0.0
                own = Sums({"judgments": len(held.prefs) - out, "held": out, "held mass": mass})
                found["divided", held.slice.query, split] = own
        return found


Fit = tuple[str, Split] | tuple[str, Split, float]
"""A surrogate, the judgments that are learned from, and what tells it from others of the same."""


KnownScores = Mapping[tuple[int, str, Split], tuple[Scores, int]]
"""By divided query, surrogate and what is learned from: what it reads, the scores of so many judgments."""


@dataclass(frozen=True)
class Points:
    """Value, gradient and Hessian of the sums of surrogates at a point each."""

    thetas: Mapping[Fit, Floats]
    seed: int
    known: KnownScores = field(default_factory=dict)

    def __call__(self, held: Held) -> Sums:
        found = Sums()
        for fit, theta in self.thetas.items():
            name, split = fit[:2]
            by = "pairs" if held.slice is None else held.slice.by
            if by != "pairs" and (by == JOINED) != (name == "difference-graph"):
                continue
            work = self._of_pairs if name in OF_PAIRS else self._of_edges
            made = work(held, name, split, theta)
            if made is not None:
                found[fit, "value"], found[fit, "slope"], found[fit, "bend"] = made
        return found

    def _of_pairs(self, held: Held, name: str, split: Split, theta: Floats) -> tuple[float, Floats, Floats]:
        above, below = held.wins(split)
        if name == "difference-graph":
            above, below = np.maximum(above - below, 0.0), np.maximum(below - above, 0.0)
        problem = held.pairs
        margin = problem.gaps(problem.times(theta))
        small = np.exp(-np.abs(margin))
        chance = np.where(margin >= 0, 1.0, small) / (1.0 + small)
        value = (above + below) @ np.log1p(small) + above @ np.maximum(-margin, 0.0) + below @ np.maximum(margin, 0.0)
        slope = below * chance - above * (1.0 - chance)
        bend = (above + below) * (small / np.square(1.0 + small))
        none = np.zeros(problem.units)
        return float(value), problem.back(problem.to_units(slope)), problem.hessian(bend, none)

    def _of_edges(self, held: Held, name: str, split: Split, theta: Floats) -> tuple[float, Floats, Floats] | None:
        member = surrogate(name)
        if held.slice is not None and member.reads == "scores":
            scores, number = self.known.get((held.slice.query, name, split), (None, 0))
            if scores is None or not held.speaks:
                return None
            source = of_scores(scores, held.row)
        else:
            prefs = held.learned(split)
            if not len(prefs):
                return None
            usual: dict[str, Any] = {"structure": None, "structure_options": {}, "order": "all", "subsets": 1}
            source, number = of_preferences(held.training(prefs), member, **usual, seed=self.seed), len(prefs)
        options = {"gain": "identity" if name == "err-pairwise" else "2^s"} if member.reads == "scores" else {}
        objective = member.objective(source.law, **options)
        problem = EdgeProblem.of(held.Z, objective, 0.0, source.rows, source.weight * number)
        alpha = problem.times(theta)
        gap, pulled = problem.gaps(alpha), alpha[problem.unit]
        slope = problem.back(problem.slopes(gap, pulled))
        return problem.value(gap, pulled, theta), slope, problem.hessian(*problem.bends(gap, pulled))


TOLERANCE, SHRINK, SLACK, STEPS = 1e-8, 1e-4, 1e-13, 200
"""Of Newton's method: as in ``fit_edges``; SLACK is what sums of parts may be off by rounding."""


@dataclass(frozen=True)
class Asked:
    """A surrogate to be minimised: (1/total) Σ + (ridge/2)‖θ‖², from a point."""

    total: float
    ridge: float
    start: Floats


def minimised(
    held: Summing, asked: Mapping[Fit, Asked], seed: int, known: KnownScores | None = None
) -> dict[Fit, Floats]:
    """Return the minimiser of each surrogate by Newton's method; one pass evaluates all that are still on their way."""
    found: dict[Fit, Floats] = {}
    at = {fit: one.start for fit, one in asked.items()}
    last: dict[Fit, tuple[Floats, float, Floats, float, float]] = {}  # point, value, step, fall, length
    for _ in range(STEPS):
        if not at:
            return found
        sums = held.sums(Points(dict(at), seed, known or {}))
        for fit, theta in list(at.items()):
            one = asked[fit]
            value = sums[fit, "value"] / one.total + 0.5 * one.ridge * float(theta @ theta)
            if fit in last:
                point, before, step, fall, length = last[fit]
                slack = SLACK * abs(before)
                if not value <= before + SHRINK * length * fall + slack and length > 1e-12:
                    last[fit] = point, before, step, fall, 0.5 * length
                    at[fit] = point + 0.5 * length * step
                    continue
            gradient = sums[fit, "slope"] / one.total + one.ridge * theta
            step = -factorised(sums[fit, "bend"] / one.total + one.ridge * np.eye(len(theta)))(gradient)
            fall = float(gradient @ step)
            if fit[0] == "linear" or -fall <= TOLERANCE**2 * abs(value):
                found[fit] = theta + step
                del at[fit]
            else:
                last[fit], at[fit] = (theta, value, step, fall, 1.0), theta + step
    return found | at


@dataclass(frozen=True)
class Prior:
    """The normal prior that a scorer gives: N(x'θ, τ²)."""

    theta: Floats
    tau2: float


@dataclass(frozen=True)
class Aim:
    """Targets of one kind: plans, the judgments that they are made of, whether informed, or only what is beyond."""

    plans: tuple[Plan, ...]
    split: Split = WHOLE
    informed: bool = False
    beyond: bool = False


@dataclass(frozen=True)
class Equations:
    """Normal equations of the targets of aims, each query with the weight n̂_q/m_q, and facts of those of all."""

    aims: tuple[Aim, ...]
    priors: Mapping[Split, Prior]
    recipe: Recipe
    scored: Mapping[tuple[int, Aim], Scored] = field(default_factory=dict)
    """Targets of divided queries."""

    def __call__(self, held: Held) -> Sums:
        found = Sums()
        for aim in self.aims:
            scored = None if held.slice is None else self.scored[held.slice.query, aim]
            prefs = held.learned(aim.split) if scored is None else held.prefs
            if not len(prefs) or (scored is not None and not (held.speaks and scored.judgments)):
                continue
            mean = options = None
            if aim.informed:
                prior = self.priors[aim.split]
                mean = held.groups.centred(products(held.Z, prior.theta)[held.row])
                options = {"prior": 1.0 / prior.tau2, "mean": mean}
            judgments = prefs.judgments if scored is None else np.array([scored.judgments])
            made = self.recipe.targets(list(aim.plans), prefs, options) if scored is None else [*scored.targets]
            alone = any(each.unknown is not None for each in made)
            for places in [[place] for place in range(len(made))] if alone else [[*range(len(made))]]:
                Y = np.column_stack([made[place].value for place in places])
                if aim.beyond and mean is not None:
                    Y = held.groups.centred(Y[:, 0])[:, None] - mean[:, None]
                self._add(found, aim, places, held, judgments, made, Y)
        return found

    def _add(
        self, found: Sums, aim: Aim, places: list[int], held: Held, judgments: Ints, made: list[Targets], Y: Floats
    ) -> None:
        first = made[places[0]]
        sizes, without = first.sizes, first.unknown
        weight = np.where(sizes > 0, judgments / np.maximum(sizes, 1), 0.0)
        rows, start = held.row, held.start
        if without is not None:
            Y, rows = Y[~without], rows[~without]
            start = Ragged.of_sizes(sizes).start
        equations = NormalEquations.of(held.Z, Y, start, weight, rows=rows)
        for column, place in enumerate(places):
            part = slice(column, column + 1)
            one = replace(
                equations, moment=equations.moment[:, part], squares=equations.squares[part],
                mean_y=equations.mean_y[part], single=True,
            )  # fmt: skip
            found[aim, place, "equations"] = one
            found[aim, place, "weight"] = float((weight * sizes).sum())
            if aim.split == WHOLE:
                said = made[place].facts(weight)
                summed = {each.name: getattr(said, each.name) for each in fields(said) if each.name != "order"}
                found[aim, place, "facts"] = Sums({**summed, "largest": [said.largest]})


def scaled(equations: NormalEquations, factor: float) -> NormalEquations:
    """The equations with all weights times a factor."""
    names = ("gram", "moment", "squares", "level", "total")
    return replace(equations, **{name: getattr(equations, name) * factor for name in names})


@dataclass(frozen=True, eq=False)
class Keys:
    """Keys of clusters, sorted; those of parts are counted once."""

    values: NDArray[np.uint64]

    def __add__(self, other: Keys) -> Keys:
        return Keys(np.union1d(self.values, other.values))


@dataclass(frozen=True)
class HeldClusters:
    """The keys of the clusters of what each fold holds out."""

    splits: tuple[Split, ...]
    seed: int

    def __call__(self, held: Held) -> Sums:
        clusters, whose = held.prefs.clusters, held.prefs.cluster
        if clusters is None or whose is None:
            return Sums()
        keys = label_keys(clusters, self.seed)
        return Sums({split: Keys(np.unique(keys[whose[held.counts(split) > 0]])) for split in self.splits})


@dataclass(frozen=True)
class Trial:
    """Linear scorers that the judgments held out are to judge."""

    split: Split
    thetas: Floats
    """Coefficients, shape (features, scorers)."""
    by_query: bool = False
    """Whether the error of a difference is over queries, and not over judgments."""
    reference: int = 0
    """The scorer that the others are compared with."""
    compared: bool = True
    """Whether they are compared, with an error."""


@dataclass(frozen=True)
class Losses:
    """Sums that losses on held-out judgments are made of, and the errors of their differences."""

    trials: tuple[Trial, ...]
    target: Target
    seed: int
    clusters: bool = field(default=False)
    """Whether judgments of one cluster, wherever they are, are one."""
    strength: Mapping[tuple[int, Split], float] = field(default_factory=dict)
    """Of divided queries: the mean strength of the judgments that a fold holds out."""
    keys: Mapping[Split, NDArray[np.uint64]] = field(default_factory=dict)
    """Those of all clusters of what a fold holds out, sorted, where whole lists are judged."""

    def __call__(self, held: Held) -> Sums:
        found = Sums()
        for trial in self.trials:
            prefs = held.left_out(trial.split)
            if not len(prefs) or (held.slice is not None and not self.target.adds_up(str(prefs.kind))):
                continue
            judge = self.target.judge(prefs, np.ones(len(held.start) - 1))
            scores = products_of(held, trial.thetas)
            scale = self._scale(held, trial.split, judge)
            lost = scale * self.lost(judge, scores)
            found[trial.split, "lost"], found[trial.split, "weight"] = lost.sum(axis=0), float(judge.weight.sum())
            found[trial.split, "edges"] = judge.edges
            apart = lost - lost[:, [trial.reference]]
            if not trial.compared:
                continue
            if trial.by_query and held.slice is not None:
                own = Sums(lost=lost.sum(axis=0), weight=float(judge.weight.sum()))
                found["divided", held.slice.query, trial.split] = own
            elif trial.by_query:
                judged = judge.weight > 0
                some, weight = apart[judged], judge.weight[judged]
                found[trial.split, "queries"] = int(judged.sum())
                found[trial.split, "apart"], found[trial.split, "products"] = some.sum(axis=0), some.T @ some
                found[trial.split, "with weight"], found[trial.split, "weights"] = weight @ some, float(weight @ weight)
            elif isinstance(judge, Disagreement) and judge.additive:
                none = np.zeros(len(held.row))
                each = np.column_stack([judge.of_judgments(one, none) for one in scores.T])
                each = scale * (each - each[:, [trial.reference]])
                count = judge.batch.multiplicity
                found[trial.split, "sum"] = count @ each
                if self.clusters and prefs.cluster is not None and prefs.clusters is not None:
                    code = prefs.cluster[judge.batch.judgment]
                    sums = [np.bincount(code, count * one, len(prefs.clusters)) for one in each.T]
                    found["clusters"] = [*found.get("clusters", []), (label_keys(prefs.clusters, 0), np.array(sums).T)]
                else:
                    found[trial.split, "products"] = each.T @ (count[:, None] * each)
            else:
                parts = self._parts(held, trial.split, judge)
                found[trial.split, "parts lost"] = np.array([self.lost(part, scores).sum(axis=0) for part in parts])
                found[trial.split, "parts weight"] = np.array([float(part.weight.sum()) for part in parts])
        return found

    def _parts(self, held: Held, split: Split, judge: Any) -> list[Any]:
        """What judges without each part of what a fold holds out."""
        if split not in held.parts:
            return [*judges_of_parts(judge, self.target, self.seed, self.keys.get(split))]
        return [self.target.judge(held.part((HELD, split, part)), judge.given) for part in range(PARTS)]

    def _scale(self, held: Held, split: Split, judge: Any) -> float:
        """Judgments of a divided query count by their strength among all of it, not of the slice."""
        if held.slice is None:
            return 1.0
        strength = self.strength[held.slice.query, split]
        judge.weight[:] = len(judge.held) * (strength > 0)  # those without edges, too
        return float(judge.total.sum()) / len(judge.held) / strength if strength > 0 else 1.0

    @staticmethod
    def lost(judge: Any, scores: Floats) -> Floats:
        rates = [np.nan_to_num(judge.rates(np.ascontiguousarray(one))) for one in scores.T]
        return np.asarray(judge.weight[:, None] * np.column_stack(rates), np.float64)


def products_of(held: Held, thetas: Floats) -> Floats:
    """Scores of the nodes, shape (nodes, scorers)."""
    return np.asarray((held.Z @ thetas)[held.row], np.float64)


def differences(sums: Sums, splits: list[Split], of: int) -> list[Difference]:
    """Loss of each scorer less that of one of them over all folds, as ``Judges.difference``."""
    weights = np.array([sums[split, "weight"] for split in splits])
    whole = max(float(weights.sum()), 1e-300)
    if (splits[0], "sum") in sums:
        total = sum(sums[split, "sum"] for split in splits)
        if "clusters" in sums:
            keys = np.concatenate([keys for keys, _ in sums["clusters"]])
            known, code = np.unique(keys, return_inverse=True)
            table = np.zeros((len(known), len(total)))
            np.add.at(table, code, np.concatenate([each for _, each in sums["clusters"]]))
            square = np.square(table - table[:, [of]]).sum(axis=0)
        else:
            products = sum(sums[split, "products"] for split in splits)
            square = np.diag(products) - 2 * products[:, of] + products[of, of]
        mean = (total - total[of]) / whole
        return [Difference(float(m), float(np.sqrt(max(s, 0.0))) / whole) for m, s in zip(mean, square, strict=True)]
    found = []
    for place in range(len(sums[splits[0], "lost"])):
        mean = variance = 0.0
        for split, weight in zip(splits, weights, strict=True):
            lost = sums[split, "lost"]
            mean += float(lost[place] - lost[of]) if weight > 0 else 0.0
            with np.errstate(invalid="ignore", divide="ignore"):
                left = sums[split, "parts lost"] / sums[split, "parts weight"][:, None]
            left = left[:, place] - left[:, of]
            variance += weight**2 * spread(left[np.isfinite(left)]) ** 2
        found.append(Difference(mean / whole, float(np.sqrt(variance)) / whole))
    return found
