"""EdgeRanker: a linear scorer that minimises any surrogate of the registry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from concordant.errors import InputError, UsageError
from concordant.features.matrix import Matrix
from concordant.rankers.columns import Columns
from concordant.rankers.intake import Training
from concordant.rankers.linear import LinearRanker
from concordant.rankers.plans import one_ridge
from concordant.rankers.sources import Source, of_labels, of_preferences
from concordant.solvers.edges import fit_edges
from concordant.surrogates.registry import Surrogate, surrogate

__all__ = ["EdgeRanker"]


class EdgeRanker(LinearRanker):
    """Minimise Σ_q (n̂_q/n) φ_q(Xθ) + (λ/2)‖θ‖² for a surrogate φ_q of weighted edges between the items of a query.

    Parameters
    ----------
    loss : 'difference-graph', 'linear' (closed form), 'ranksvm', 'ranknet', 'rankboost', 'margin-based',
        'ndcg-pairwise', 'err-pairwise' or 'gain-regression'. What each is consistent for stands in the registry of
        surrogates and in ``status_``.
    phi : margin function ('hinge', 'squared-hinge', 'logistic', 'exponential'), where the loss leaves a choice.
    ridge : λ; 'auto' is 0.001. Features are standardised and the weights of queries add up to 1.
    options : options of the loss, such as {"nu": 0.1} of 'linear' or {"gain": "2^s"} of 'ndcg-pairwise'.
    structure, structure_options : how losses that read scores (ndcg-pairwise, err-pairwise, gain-regression) get them
        from preferences; by default log-odds, for err-pairwise chances: the cascade's of click logs, else budgeted
        Borda.
    order, subsets : 'all' judgments of a query aggregated at once (17), or ``subsets`` subsets of k (18); losses
        that do not aggregate take 'all'.
    tolerance, max_iterations : of the solver.
    standardise, log, missing : what is done to features (``Normaliser``).

    y may also be relevance labels (complete preference data): a point law of scores, or one person's ratings. Losses
    that penalise values ('linear', 'gain-regression') see the features less their means.

    Attributes: ``coef_``, ``coef_standardised_``, ``status_``. Errors: InputError, UsageError.

    >>> from concordant.preferences import Preferences
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
        if training.prefs is None:
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
        if not len(objective.arcs.weight) and not objective.arcs.pull.any():
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
            "edges": len(objective.arcs.weight),
            "queries": len(training.weight),
            **source.facts,
            "consistent_for": member.consistent_for if member.consistent(self.phi) else None,
            "condition": member.condition if member.consistent(self.phi) else None,
            "notes": [*training.notes, *source.notes],
        }
