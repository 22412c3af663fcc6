"""EdgeRanker: a linear scorer that minimises any surrogate of the registry on judgments, scores or relevance labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.errors import InputError, UsageError
from concordant.learning.features.matrix import Matrix
from concordant.learning.rankers.columns import Columns
from concordant.learning.rankers.estimator import LinearRanker
from concordant.learning.rankers.plans import one_ridge
from concordant.learning.rankers.validation import Training
from concordant.learning.solvers.edges import fit_edges
from concordant.learning.targets.mean_targets import one_subset
from concordant.losses.objective import Population, Relevance
from concordant.losses.surrogates import Surrogate, surrogate
from concordant.preferences.graphs import Batch
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Preferences
from concordant.preferences.ragged import Ragged
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
    name = _structure(member, structure, prefs.kind)
    function = find_structure(name) if isinstance(name, str) else name
    found = function(batch, **structure_options)
    facts["structure"] = name if isinstance(name, str) else name.__name__
    law = Relevance.of(_draws(batch, found.value, training.start, drawn), training.start)
    return Source(law, training.row, training.share, facts, (*notes, *found.notes))


def clicks_note(name: str) -> Note:
    """Say what pairs read from click logs do."""
    text = (
        "{name} reads a click as preferred to what stands above it and never the reverse: lists shown in one order "
        "teach it to reverse that order; the structure 'cascade' (with err-pairwise or gain regression) does not"
    )
    return Note("pairs of clicks", text, name=name)


def _structure(member: Surrogate, given: Any, kind: str | None) -> Any:
    """The structure given, or the usual one: for ERR chances in [0, 1], else log-odds."""
    if given is not None:
        return given
    if member.consistent_for != "err":
        return "log-odds"
    return "cascade" if kind == "selections" else "budgeted-borda"


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


class EdgeRanker(LinearRanker):
    """Minimise Σ_q (n̂_q/n) φ_q(Xθ) + (λ/2)‖θ‖² for a surrogate φ_q of weighted edges between the items of a query.

    Parameters
    ----------
    loss : 'difference-graph', 'linear' (closed form), 'ranksvm', 'ranknet', 'rankboost', 'margin-based',
        'ndcg-pairwise', 'err-pairwise' or 'gain-regression'. What each is consistent for stands in the registry of
        surrogates and in ``status_``.
    phi : margin function, such as 'hinge' or 'logistic', where the loss leaves a choice (``losses/pair_losses.py``).
    ridge : λ; 'auto' is 0.001. Features are standardised and the weights of queries add up to 1.
    options : options of the loss, such as {"nu": 0.1} of 'linear' or {"gain": "2^s"} of 'ndcg-pairwise'.
    structure, structure_options : how losses that read scores (ndcg-pairwise, err-pairwise, gain-regression) get them
        from preferences; by default log-odds, for err-pairwise chances: the cascade's of click logs, else budgeted
        Borda.
    order, subsets, seed : 'all' judgments of a query aggregated at once (17), or ``subsets`` subsets of k (18), drawn
        from ``seed``; losses that do not aggregate take 'all'.
    tolerance, max_iterations : of the solver.
    standardise, log, missing : what is done to features (``Normaliser``).

    y may also be relevance labels (complete preference data): a point law of scores, or one person's ratings. Losses
    that penalise values ('linear', 'gain-regression') see the features less their means.

    Attributes: ``coef_``, ``coef_standardised_``, ``status_``. Errors: InputError, UsageError.

    >>> from concordant.preferences.preferences import Preferences
    >>> votes = Preferences.from_comparisons(["b", "c", "c", "a"], ["a", "b", "a", "b"])
    >>> features = {"item": ["a", "b", "c"], "length": [1.0, 2.0, 3.0]}
    >>> EdgeRanker("ranknet").fit(features, votes).coef_ > 0
    array([ True])

    Source: Duchi, Mackey and Jordan (2013), (12), (13), (17)–(19), (23), §3.3; (2010), (14), (15).
    """

    def __init__(
        self,
        loss: str = "difference-graph",
        *,
        phi: str | None = None,
        ridge: float | str = "auto",
        options: Mapping[str, Any] | None = None,
        structure: Any = None,
        structure_options: Mapping[str, Any] | None = None,
        order: int | str = "all",
        subsets: int = 32,
        tolerance: float = 1e-8,
        max_iterations: int = 200,
        standardise: bool = True,
        log: bool = False,
        missing: str = "raise",
        seed: int = 0,
    ) -> None:
        self.loss = loss
        self.phi = phi
        self.ridge = ridge
        self.options = options
        self.structure = structure
        self.structure_options = structure_options
        self.order = order
        self.subsets = subsets
        self.tolerance = tolerance
        self.max_iterations = max_iterations
        self.standardise = standardise
        self.log = log
        self.missing = missing
        self.seed = seed

    def _check(self) -> None:
        surrogate(self.loss)
        one_ridge(self.ridge)
        if self.missing == "keep":
            raise UsageError("missing='keep' is for regressors that know missing values; a linear scorer needs a fill")

    def _learn(self, training: Training, columns: Columns) -> None:
        member = surrogate(self.loss)
        options = dict(self.options or {})
        if training.labelled:
            if self.order != "all" or self.structure is not None:
                raise UsageError("labels are complete preference data: there is no order and no structure")
            if member.consistent_for == "err":
                options.setdefault("gain", "err")
            source = of_labels(training, member.reads)
        else:
            source = of_preferences(
                training,
                member,
                structure=self.structure,
                structure_options=self.structure_options or {},
                order=self.order,
                subsets=self.subsets,
                seed=self.seed,
            )
        self.status_ = self._fit(training, columns.matrix, member, source, options)

    def _fit(
        self, training: Training, Z: Matrix, member: Surrogate, source: Source, options: Mapping[str, Any]
    ) -> dict[str, Any]:
        objective = member.objective(source.law, phi=self.phi, **options)
        if not len(objective.edges.weight) and not objective.edges.pull.any():
            raise InputError(f"the judgments leave {member.name} no edge between two items: there is nothing to learn")
        fit = fit_edges(
            Z,
            objective,
            ridge=one_ridge(self.ridge),
            rows=source.rows,
            weight=source.weight,
            tolerance=self.tolerance,
            max_iterations=self.max_iterations,
        )
        self._take_linear(fit.theta)
        return {
            "status": fit.status,
            "iterations": fit.iterations,
            "gradient": fit.gradient,
            "gap": fit.gap,
            "loss": member.name,
            "phi": self.phi or member.phi,
            "ridge": fit.ridge,
            "edges": len(objective.edges.weight),
            "queries": len(training.weight),
            **source.facts,
            "consistent_for": member.consistent_for if member.consistent(self.phi) else None,
            "condition": member.condition if member.consistent(self.phi) else None,
            "notes": [*training.notes, *source.notes],
        }
