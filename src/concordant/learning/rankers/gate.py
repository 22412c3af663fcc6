"""The gate: of several aggregations the default stays unless held-out judgments show that another loses less."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.special import ndtri

from concordant.errors import counted
from concordant.learning.rankers.choosing import target_weights
from concordant.learning.rankers.columns import Columns
from concordant.learning.rankers.edge_sources import of_preferences
from concordant.learning.rankers.plans import STRUCTURE_CHOICES, Plan, Recipe
from concordant.learning.rankers.target import ROUNDING, Difference, Judges, Target
from concordant.learning.rankers.validation import Training
from concordant.learning.solvers.edges import fit_edges
from concordant.learning.targets.mean_targets import Targets
from concordant.losses.surrogates import surrogate
from concordant.preferences.graphs import Batch
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Preferences
from concordant.preferences.splits import clusters_of, folds
from concordant.progress import steps
from concordant.ranking.adjacency import mean_adjacency
from concordant.ranking.best_orders import best_orders

Floats = NDArray[np.float64]
SURROGATES: Mapping[str, tuple[str, ...]] = {
    "pairwise": ("difference-graph", "linear"),
    "ndcg": ("difference-graph", "linear", "ndcg-pairwise"),
    "precision": ("difference-graph", "linear", "ndcg-pairwise"),
    "err": ("difference-graph", "linear", "err-pairwise"),
}
"""Surrogates on edges that are candidates, by target."""
CLICKS = ("err-pairwise",)
"""Those of click logs, where pairs speak against the order shown."""
LEVEL = 0.05
"""Chance that a candidate takes the place of a default that is as good, of all candidates together."""
DEFAULT = "informed bradley-terry"
CURVATURE = 4.0
"""Ridge of a least-squares fit beside that of a logistic one: the curvature of log(1 + e^−t) is at most ¼."""


@dataclass(frozen=True)
class Candidate:
    """A way to make scores of all nodes from judgments, which have the queries and items of the training rows."""

    name: str
    scores: Callable[[Preferences], Floats]
    """Scores of the nodes, or coefficients (features,), from judgments."""


@dataclass(frozen=True)
class Gate:
    """What the candidates lost on held-out judgments, and which one is taken."""

    target: Target
    names: tuple[str, ...]
    """The first is the default."""
    loss: tuple[float, ...]
    difference: tuple[float, ...]
    """Loss of the default less that of the candidate; positive where the candidate is better."""
    error: tuple[float, ...]
    """Standard error of the difference, over judgments, or clusters where there are some."""
    taken: int
    unlooked: str = ""
    """Why it could not look; empty where it did."""

    @property
    def name(self) -> str:
        """The candidate that is taken."""
        return self.names[self.taken]

    @property
    def row(self) -> dict[str, Any]:
        """The gate as values that JSON keeps."""
        numbers = ([None if np.isnan(x) else x for x in each] for each in (self.loss, self.difference, self.error))
        columns = zip(self.names, *numbers, strict=True)
        tried = [
            {"name": name, "loss": loss, "difference": gap, "standard_error": error, "taken": place == self.taken}
            for place, (name, loss, gap, error) in enumerate(columns)
        ]
        why = self.unlooked or ("no candidate is surely better" if not self.taken else "surely better than the default")
        return {"target": str(self.target), "candidates": tried, "why": why}

    @property
    def note(self) -> Note:
        """The gate in one line."""
        if self.unlooked:
            text = "gate: {default} stays unquestioned, for there is too little to hold out ({why})"
            return Note("gate closed", text, why=self.unlooked, default=self.names[0])
        best = self.taken or int(np.argmax([-np.inf, *self.difference[1:]]))
        facts: dict[str, Any] = {"target": str(self.target), "default": self.names[0], "name": self.names[best]}
        facts |= {"difference": self.difference[best], "error": self.error[best]}
        facts |= {"apart": abs(self.difference[best]), "way": "lower" if self.difference[best] >= 0 else "higher"}
        if self.taken:
            text = (
                "gate: {name} takes the place of {default}, for its loss on held-out judgments is lower by "
                "{difference:.2g} ± {error:.2g} (target {target})"
            )
        elif max(self.error) > ROUNDING:
            text = (
                "gate: {default} stays, for no other aggregation loses surely less on held-out judgments "
                "(nearest: {name}, its loss {way} by {apart:.2g} ± {error:.2g}; target {target})"
            )
        else:
            text = "gate: {default} stays, for the others order what was held out alike (target {target})"
        return Note("gate", text, **facts)


def choose(
    training: Training,
    columns: Columns,
    candidates: Sequence[Candidate],
    target: Target,
    *,
    n: int,
    seed: int,
    linear: bool = True,
) -> Gate:
    """Cross-fit the candidates over judgments and take the first unless another one is surely better.

    In each of ``n`` folds every candidate learns from the other judgments and is charged with the fold's by the target.
    Of the candidates whose loss is surely lower than that of the first (the paired difference beyond its standard error
    times the normal quantile, 5% shared among the candidates) the one of the least loss is taken. Folds are of clusters
    where there are some. Whatever is taken loses at most O(√(log |C| / n)) more than the best candidate: what is
    strictly better in the limit is found as judgments grow, and a wrong choice is one that is not visibly worse.
    ``linear``: candidates return coefficients.
    """
    names = tuple(one.name for one in candidates)
    prefs = training.prefs
    clusters = len(clusters_of(prefs)) if prefs.cluster is not None else None
    if why := too_little(len(candidates), len(prefs), clusters, n):
        return closed(target, names, why)
    split = "clusters" if clusters else "judgments"
    helds: list[Preferences] = []
    found: list[list[Floats]] = [[] for _ in candidates]
    for train, held in steps("gate: folds", folds(prefs, n, split=split, seed=seed), n):
        if not len(train) or not len(held):
            return closed(target, names, NO_JUDGMENTS)
        helds.append(held)
        made = [one.scores(train) for one in candidates]
        if linear:
            table = columns.times(np.column_stack(made))[training.row]
            made = [table[:, place] for place in range(len(made))]
        for scores, kept in zip(made, found, strict=True):
            kept.append(scores)
    judges = Judges(target, helds, training.weight, seed)
    if not all(judge.edges for judge in judges.folds):
        return closed(target, names, NO_EDGES)
    return _taken(target, names, judges, found)


def _taken(target: Target, names: tuple[str, ...], judges: Judges, found: list[list[Floats]]) -> Gate:
    gaps = [judges.difference(found[0], scores) for scores in found]
    return decided(target, names, [judges.loss(scores) for scores in found], gaps)


NO_JUDGMENTS, NO_EDGES = "a fold without judgments", "held-out judgments that nothing can be judged by"


def too_little(candidates: int, judgments: int, clusters: int | None, n: int) -> str:
    """Say why the gate cannot look, empty where it can; ``clusters``: how many there are, None: judgments have none."""
    if clusters is not None and clusters < n:
        return f"{clusters} clusters for {n} folds"
    if judgments < 2 * n:
        return f"{counted(judgments, 'judgments')} for {n} folds"
    return "" if candidates >= 2 else "nothing to choose from"


def decided(target: Target, names: tuple[str, ...], loss: Sequence[float], gaps: Sequence[Difference]) -> Gate:
    """Take the candidate of least loss among those that are surely better than the first; ``gaps``: that less each."""
    errors = float(-ndtri(LEVEL / (len(names) - 1)))
    passing = [place for place, gap in enumerate(gaps) if gap.mean > errors * gap.error + ROUNDING]
    taken = min(passing, key=lambda place: loss[place], default=0)
    return Gate(target, names, tuple(loss), tuple(gap.mean for gap in gaps), tuple(gap.error for gap in gaps), taken)


def closed(target: Target, names: tuple[str, ...], why: str) -> Gate:
    """The gate that could not look."""
    nothing = (float("nan"),) * len(names)
    return Gate(target, names, nothing, nothing, nothing, 0, why)


def names_for(target: Target, kind: str) -> tuple[str, ...]:
    """The surrogates on edges that are candidates for a target."""
    return CLICKS if kind == "selections" else SURROGATES[target.name]


def linear_candidates(
    training: Training, columns: Columns, recipe: Recipe, target: Target, precision: float, intercept: str
) -> list[Candidate]:
    """Return the aggregations beside the default that a linear scorer may be fitted to.

    ``precision``: n times the ridge of the pairwise scorer, the precision of a normal prior on the coefficients.
    """
    kind = str(training.prefs.kind)

    def by_edges(name: str) -> Callable[[Preferences], Floats]:
        def scores(prefs: Preferences) -> Floats:
            part, ridge = replace(training, judged=prefs), precision / max(len(prefs), 1)
            return edge_scorer(part, columns, name, ridge, recipe.seed, target.clicks or None)

        return scores

    def by_targets(plan: Plan) -> Callable[[Preferences], Floats]:
        def scores(prefs: Preferences) -> Floats:
            ridge = CURVATURE * precision / max(len(prefs), 1)
            return fitted(training, columns, recipe.targets([plan], prefs)[0], ridge, intercept)

        return scores

    found = [Candidate(name, by_edges(name)) for name in names_for(target, kind)]
    found += [Candidate(name, by_targets(plan)) for name, plan in target_plans(target, kind).items()]
    return found


def target_plans(target: Target, kind: str) -> dict[str, Plan]:
    """The targets that are candidates for a linear scorer, by name."""
    usual = STRUCTURE_CHOICES[kind][0]
    if kind == "selections":
        return {}
    found = {usual: Plan(usual, "all", "identity", False)}
    if target.name in ("ndcg", "precision"):
        found[f"{usual}, (2^s-1)/Z"] = Plan(usual, "all", "2^s-1", True)
    return found


def fitted(training: Training, columns: Columns, targets: Targets, ridge: float, intercept: str) -> Floats:
    """Return the coefficients of a linear scorer fitted to targets by least squares."""
    weight = target_weights(targets, training.weight)
    how: dict[str, Any] = {"rows": training.row, "intercept": intercept, "without": targets.unknown}
    equations = columns.equations(targets.value, training.start, weight, **how)
    return np.asarray(equations.solve(ridge).theta, np.float64)


def edge_scorer(
    training: Training, columns: Columns, name: str, ridge: float, seed: int, clicks: str | None = None
) -> Floats:
    """Return the coefficients of a linear scorer that minimises a surrogate on the edges of all judgments.

    ``clicks``: the structure that clicks are read by; None: the usual one of these judgments.
    """
    member = surrogate(name)
    how: dict[str, Any] = {"structure": clicks if member.reads == "scores" else None, "structure_options": {}}
    source = of_preferences(training, member, **how, order="all", subsets=1, seed=seed)
    options = {"gain": "identity" if name == "err-pairwise" else "2^s"} if member.reads == "scores" else {}
    objective = member.objective(source.law, **options)
    found = fit_edges(columns.matrix, objective, ridge=ridge, rows=source.rows, weight=source.weight)
    return np.asarray(found.theta, np.float64)


STRICT = 0.1
"""Gap between neighbours of a projected order, as a share of the mean gap of the scores."""


def projected(scores: Floats, prefs: Preferences) -> Floats:
    """Return the scores of each query projected on the order that contradicts fewest of its judgments.

    Least squares under that order (pool adjacent violators); what is pooled keeps a small gap, so that the order is
    strict. Shape of ``scores``: (nodes of ``Batch.whole(prefs)``,).

    >>> votes = Preferences.from_comparisons(["a", "b", "a", "c"], ["b", "c", "c", "a"], count=[3, 3, 2, 1])
    >>> projected(np.array([1.0, -1.0, 0.0]), votes).round(2).tolist()  # b stands before c
    [1.1, -0.5, -0.6]
    """
    batch = Batch.whole(prefs)
    place = best_orders(mean_adjacency(batch)).place
    found = np.empty(len(scores))
    for query in batch.node_groups.slices:
        sorter = np.argsort(place[query], kind="stable")
        given = scores[query][sorter]
        if len(given) > 1:
            step = STRICT * float(np.ptp(given)) / (len(given) - 1)
            given = scipy.optimize.isotonic_regression(given, increasing=False).x - step * (
                np.arange(len(given)) - (len(given) - 1) / 2
            )
        found[query] = given[np.argsort(sorter, kind="stable")]
    return found


def target_candidates(
    training: Training, recipe: Recipe, informed: Callable[[Preferences], Floats], target: Target
) -> list[Candidate]:
    """Return the targets that a regressor may be fitted to, the informed scores first; each scores the nodes itself."""
    kind = str(training.prefs.kind)
    usual = STRUCTURE_CHOICES[kind][0]

    def by_targets(plan: Plan) -> Callable[[Preferences], Floats]:
        return lambda prefs: recipe.targets([plan], prefs)[0].value

    found = [
        Candidate(DEFAULT, informed),
        Candidate("informed, projected on the best order", lambda prefs: projected(informed(prefs), prefs)),
        Candidate(usual, by_targets(Plan(usual, "all", "identity", False))),
    ]
    if target.name in ("ndcg", "precision"):
        found.append(Candidate(f"{usual}, (2^s-1)/Z", by_targets(Plan(usual, "all", "2^s-1", True))))
    return found
