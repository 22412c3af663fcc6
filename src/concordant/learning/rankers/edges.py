"""EdgeRanker: a linear scorer that minimises any surrogate of the registry on judgments, scores or relevance labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.errors import InputError, Setting, UsageError, did_you_mean, refuse_idle
from concordant.learning.features.matrix import Matrix
from concordant.learning.rankers.columns import Columns
from concordant.learning.rankers.diagnosis import Diagnosis, diagnose
from concordant.learning.rankers.edge_sources import Source, of_labels, of_preferences, structure_for
from concordant.learning.rankers.estimator import LinearRanker
from concordant.learning.rankers.gate import Candidate, Gate, choose, edge_scorer, names_for
from concordant.learning.rankers.plans import one_ridge
from concordant.learning.rankers.target import Target
from concordant.learning.rankers.validation import Training, learning_rows, matched
from concordant.learning.scikit import check_is_fitted
from concordant.learning.solvers.edge_problem import EdgeProblem
from concordant.learning.solvers.edges import fit_edges
from concordant.learning.solvers.least_squares import LinearFit
from concordant.learning.solvers.sampled_edges import EdgeSamples
from concordant.learning.solvers.stochastic import checked_radius, projected, stochastic_fit
from concordant.losses.objective import Objective, Relevance
from concordant.losses.surrogates import Surrogate, surrogate
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences
from concordant.ranking.structures import structure as find_structure

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
SOLVERS = ("exact", "stochastic")
OF_EXACT = {"tolerance": 1e-8, "max_iterations": 200}
OF_STOCHASTIC = {"steps": 100_000, "step_size": "1/sqrt(t)", "radius": None, "average": "suffix", "batch": 1}
"""Parameters that only one of the solvers reads, as they are unless they are given."""


class EdgeRanker(LinearRanker):
    """Minimise Σ_q (n̂_q/n) φ_q(Xθ) + (λ/2)‖θ‖² for a surrogate φ_q of weighted edges between the items of a query.

    Parameters
    ----------
    loss : 'auto', or 'difference-graph', 'linear' (closed form), 'ranksvm', 'ranknet', 'rankboost', 'margin-based',
        'ndcg-pairwise', 'err-pairwise' or 'gain-regression'. What each is consistent for stands in the registry of
        surrogates and in ``status_``. 'auto' is 'ranknet' unless held-out judgments show that another one of the
        ``target`` loses surely less ('difference-graph', 'linear', for lists also 'ndcg-pairwise' or 'err-pairwise'; of
        clicks always the last): ``status_["gate"]``, as of ``AggregationRanker``. For labels it is that of the target.
    target : what 'auto' chooses by and ``score`` returns (``Target``); None: ERR for clicks, NDCG for labels, else
        pairwise.
    phi : margin function, such as 'hinge' or 'logistic', where the loss leaves a choice (``losses/pair_losses.py``).
    ridge : λ; 'auto' is 0.001. Features are standardised and the weights of queries add up to 1.
    options : options of the loss, such as {"nu": 0.1} of 'linear' or {"gain": "2^s"} of 'ndcg-pairwise'.
    structure, structure_options : how losses that read scores (ndcg-pairwise, err-pairwise, gain-regression) get them
        from preferences; by default log-odds, for err-pairwise chances: the cascade's of click logs, else budgeted
        Borda.
    order, subsets, seed : 'all' judgments of a query aggregated at once (17), or ``subsets`` subsets of k (18), drawn
        from ``seed``; losses that do not aggregate take 'all'.
    solver : 'exact', Newton's method, an interior point method or the closed form, whichever the loss has; or
        'stochastic', the composite stochastic gradients (25), whose steps cost the same however many judgments there
        are: each draws a query with probability n̂_q/n and, with ``order`` k, k of its judgments (of losses that do not
        aggregate a single judgment). Every loss has both.
    tolerance, max_iterations : of the exact solver.
    steps, step_size, radius, average, batch : of the stochastic one. ``step_size`` '1/sqrt(t)' needs convexity only,
        '1/t' strong convexity (a ridge above 0, or values that are penalised); θ, of the standardised features, stays
        in the ball ‖θ‖ ≤ ``radius`` (None: no ball; losses with the exponential function need one); ``average`` is
        'suffix' (the second half of the points), 'plain' (all, as in the paper), 'weighted' (∝ t) or 'none' (the last
        point); ``batch`` samples are drawn a step. ``status_`` then holds objective and gradient of the result, on the
        judgments (or ``subsets`` subsets of them), and how long the last step was.
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
        target: str | None = None,
        phi: str | None = None,
        ridge: float | str = "auto",
        options: Mapping[str, Any] | None = None,
        structure: Any = None,
        structure_options: Mapping[str, Any] | None = None,
        order: int | str = "all",
        subsets: int = 32,
        tolerance: float = 1e-8,
        max_iterations: int = 200,
        solver: str = "exact",
        steps: int = 100_000,
        step_size: str = "1/sqrt(t)",
        radius: float | None = None,
        average: bool | str = "suffix",
        batch: int = 1,
        standardise: bool = True,
        log: bool = False,
        missing: str = "raise",
        seed: int = 0,
    ) -> None:
        self.loss = loss
        self.target = target
        self.phi = phi
        self.ridge = ridge
        self.options = options
        self.structure = structure
        self.structure_options = structure_options
        self.order = order
        self.subsets = subsets
        self.tolerance = tolerance
        self.max_iterations = max_iterations
        self.solver = solver
        self.steps = steps
        self.step_size = step_size
        self.radius = radius
        self.average = average
        self.batch = batch
        self.standardise = standardise
        self.log = log
        self.missing = missing
        self.seed = seed

    @property
    def _takes_sparse(self) -> bool:
        return self.solver == "exact"

    def _check(self) -> None:
        Target.of(self.target, "comparisons")
        if self.loss == "auto":
            given = {"phi": self.phi, "options": self.options, "structure": self.structure, "order": self.order}
            refuse_idle(given, {"phi": None, "options": None, "structure": None, "order": "all"}, "loss is 'auto'")
        else:
            surrogate(self.loss)
        one_ridge(self.ridge)
        if self.solver not in SOLVERS:
            raise UsageError(f"unknown solver {self.solver!r}; {did_you_mean(str(self.solver), SOLVERS)}")
        exact = self.solver == "exact"
        why = f"the solver is {self.solver!r}"
        refuse_idle(vars(self), OF_STOCHASTIC if exact else OF_EXACT, why)
        if self.missing_ == "keep":
            raise UsageError(
                Setting("missing", "keep"), " is for regressors that know missing values; a linear scorer needs a fill"
            )

    def _learn(self, training: Training, columns: Columns) -> None:
        gate = self._through_gate(training, columns) if self.loss == "auto" and not training.labelled else None
        member = surrogate(self._loss_of(training) if gate is None else gate.name)
        options = dict(self.options or {})
        if self.loss == "auto" and member.consistent_for == "err" and not training.labelled:
            options["gain"] = "identity"
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
        objective = member.objective(source.law, phi=self.phi, **options)
        if not len(objective.edges.weight) and not objective.edges.pull.any():
            raise InputError(f"the judgments leave {member.name} no edge between two items: there is nothing to learn")
        Z, ridge = columns.matrix, one_ridge(self.ridge)
        fit: LinearFit
        if self.solver == "stochastic":
            problem = EdgeProblem.of(Z, objective, ridge, source.rows, source.weight)
            fit, ended = self._descend(training, Z, member, objective, problem, options, source.rows)
        else:
            fit, ended = self._exact(Z, objective, source), {}
        self._take_linear(fit.theta)
        self.status_ = self._told(training, member, source, objective, fit) | ended
        if gate is not None:
            self.status_ |= {"gate": [gate.row], "target": str(gate.target)}
            self.status_["notes"] += [gate.note] if len(gate.names) > 1 else []

    def _loss_of(self, training: Training) -> str:
        """The loss, of 'auto' with labels that of the target."""
        if self.loss != "auto":
            return self.loss
        name = Target.of(self.target or "ndcg", "comparisons").name
        return {"pairwise": "difference-graph", "err": "err-pairwise"}.get(name, "ndcg-pairwise")

    def _through_gate(self, training: Training, columns: Columns) -> Gate:
        """Compare the usual pairwise loss with the surrogates of the target on held-out judgments."""
        kind, ridge = str(training.prefs.kind), one_ridge(self.ridge)
        target = Target.of(self.target, kind).reading(training.prefs)
        clicks = target.clicks or None

        def by(name: str) -> Candidate:
            def scores(prefs: Preferences) -> Floats:
                return edge_scorer(replace(training, judged=prefs), columns, name, ridge, 0, clicks)

            return Candidate(name, scores)

        first = () if kind == "selections" else ("ranknet",)
        candidates = [by(name) for name in (*first, *names_for(target, kind))]
        return choose(training, columns, candidates, target, n=3, seed=self.seed)

    def _exact(self, Z: Matrix, objective: Objective, source: Source) -> LinearFit:
        return fit_edges(
            Z,
            objective,
            ridge=one_ridge(self.ridge),
            rows=source.rows,
            weight=source.weight,
            tolerance=self.tolerance,
            max_iterations=self.max_iterations,
        )

    def _descend(
        self,
        training: Training,
        Z: Matrix,
        member: Surrogate,
        objective: Objective,
        problem: EdgeProblem,
        options: dict[str, Any],
        rows: NDArray[np.int64],
    ) -> tuple[LinearFit, dict[str, Any]]:
        """Take the steps of (25); return where they led, and what the objective says of that place."""
        radius, ridge = checked_radius(self.radius), one_ridge(self.ridge)
        graphs = training.labelled or (self.order == "all" and member.reads != "judgments")
        items = np.ascontiguousarray(Z[rows if graphs else training.row])
        if graphs:
            samples = EdgeSamples.of_graphs(items, objective, training.share, radius=radius)
        elif member.reads == "judgments":
            each = partial(member.objective, phi=self.phi, **options)
            samples = EdgeSamples.of_judgments(items, training.prefs, each, training.share, radius=radius)
        else:
            if options.get("gain") == "err":
                raise UsageError("gain 'err' divides by the largest score of all, which the subset of a step hides")
            if training.prefs.kind == "selections":
                text = "of lists as shown a step's subset leaves items unexamined, which this solver cannot leave out: "
                raise UsageError(text, Setting("order", "all"), " or ", Setting("solver", "exact"))
            make = self._maker(member, training.prefs, options)
            k = int(self.order)
            samples = EdgeSamples.of_subsets(items, training.prefs, k, make, training.share, radius=radius)
        fit = stochastic_fit(
            samples,
            ridge=ridge,
            steps=self.steps,
            step_size=self.step_size,
            radius=self.radius,
            average=self.average,
            batch=self.batch,
            seed=self.seed,
        )
        value, slope = problem.at(fit.theta)
        moved = fit.theta - projected(fit.theta - slope, radius)
        ended = {
            "objective": value,  # of the average, where the fit has that of the samples
            "gradient": float(np.abs(moved).max(initial=0.0)),
            "last_step": fit.last_step,
            "radius": self.radius,
        }
        return fit, ended

    def _maker(self, member: Surrogate, prefs: Preferences, options: dict[str, Any]) -> Callable[[Batch], Objective]:
        """Return what makes the surrogate of the subsets of a batch."""
        if member.reads != "scores":
            return lambda batch: member.objective(batch, phi=self.phi, **options)
        name, given = structure_for(member, self.structure, prefs), dict(self.structure_options or {})
        function = find_structure(name) if isinstance(name, str) else name

        def make(batch: Batch) -> Objective:
            law = Relevance.of(function(batch, **given).value, batch.node_start)
            return member.objective(law, phi=self.phi, **options)

        return make

    def _told(
        self, training: Training, member: Surrogate, source: Source, objective: Objective, fit: LinearFit
    ) -> dict[str, Any]:
        """Return what ``status_`` says."""
        return {
            "status": fit.status,
            "iterations": fit.iterations,
            "gradient": fit.gradient,
            "gap": fit.gap,
            "objective": float(fit.value),
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

    def diagnose(
        self, X: Any, y: Any, *, radius: float | None = None, replicates: int = 400, seed: int = 0
    ) -> Diagnosis:
        """Return what Theorem 4 says about the fit to the judgments ``y`` on the rows ``X``.

        ``radius`` of the ball ‖θ‖ ≤ r, of coefficients of standardised features, that is looked at: by default that of
        the fit, or else the norm of the coefficients. Of loss 'auto' the loss that was taken is looked at.

        Errors: NotFittedError; InputError, UsageError as of ``fit``.

        Source: Duchi, Mackey and Jordan (2013), Theorem 4.
        """
        check_is_fitted(self)
        training = learning_rows(X, y, self.missing_, structure=self.structure)
        prefs, member = training.prefs, surrogate(self.status_["loss"])
        rows = matched(training.features, training.named, self._names, self.n_features_in_)[training.row]
        each = member.reads == "judgments"
        return diagnose(
            np.asarray(self._normalised(self.normaliser_, rows), np.float64),
            prefs,
            self._maker(member, prefs, dict(self.options or {})),
            self.coef_standardised_,
            order=1 if each else None if self.order == "all" else int(self.order),
            share=training.share,
            radius=self.radius if radius is None else radius,
            aggregates=not each,
            replicates=replicates,
            seed=seed,
        )
