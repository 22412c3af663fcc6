"""ListRanker: a scorer from relevance labels, that is from complete preference data."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.errors import InputError, Setting, UsageError, did_you_mean
from concordant.learning.features.matrix import Matrix
from concordant.learning.rankers.columns import Columns
from concordant.learning.rankers.edge_sources import of_labels
from concordant.learning.rankers.plans import check_at, one_ridge
from concordant.learning.rankers.regression import RegressionRanker, refuse_negative
from concordant.learning.rankers.regressors import check_regressor
from concordant.learning.rankers.target import Target
from concordant.learning.rankers.validation import Training
from concordant.learning.solvers.edges import fit_edges
from concordant.learning.solvers.graded import fit_graded
from concordant.learning.solvers.least_squares import INTERCEPTS, LinearFit
from concordant.losses.surrogates import Surrogate, surrogate
from concordant.preferences.notes import Note

Floats = NDArray[np.float64]
LOSSES = ("gain-regression", "ndcg-pairwise", "err-pairwise", "ranksvm", "ranknet", "rankboost")
PAIRS = 2_000_000
"""Pairs up to which they are written out; beyond, losses and gradients come from sorting."""


class ListRanker(RegressionRanker):
    """Learn from a relevance label for each row: each query is judged once, and completely.

    gain-regression fits the target's gains by least squares with a free intercept per query (or with any regressor), so
    that items are ordered by their conditional means: for NDCG G(label)/Z(labels), G = 2^s − 1 (AoS (28)); for ERR
    2^s − 1 (right for labels independent of each other, AoS, Lemma 1); for precision 1 where the label is at least 1,
    else 0; for the pairwise loss the labels (their difference is the mean of Y_ij − Y_ji). ndcg-pairwise and
    err-pairwise weigh each item's gain against every other item; ranksvm, ranknet and rankboost take every pair of
    different labels, as strong as the difference.

    Parameters
    ----------
    loss : 'gain-regression', 'ndcg-pairwise', 'err-pairwise', 'ranksvm', 'ranknet' or 'rankboost'.
    target : "ndcg@10", "err@10", "precision@5", "pairwise", … (``Target``): what ``score`` returns, and by which
        gain-regression takes its gains; None: NDCG.
    phi : margin function of the losses on pairs, where they leave a choice.
    gain : '2^s-1', '2^s' (default of ndcg-pairwise), 'identity', 'err' (of err-pairwise); for gain-regression also a
        function, or the table of the gains of labels 0, 1, 2, …; None there: that of the target.
    at, normalise : cut-off of Z, and whether gains are divided by it; None: as the target asks, of pairs yes.
    regressor : any scikit-learn regressor, for gain-regression, instead of a linear scorer; one that was told to stop
        early does so by the target, as in ``AggregationRanker`` (with six queries or more).
    ridge, intercept, standardise, log, missing : as in ``AggregationRanker``; ridge 'auto' is 0.001.
    tolerance, max_iterations : of the solver of the losses on pairs.

    ``fit(features, labels)`` takes rows that say their query, ``fit(X, judged)`` a matrix and ``Judged.of_labels``,
    ``fit(X, labels, qid=…)`` or ``group=…`` a matrix; without them all rows are one list.
    Numbers below 0 are for the pairwise target; of a plain matrix and plain numbers with such it is the default (a note
    says so). A label of −1 in a LETOR file says that nobody judged the row: it is left out. Errors (InputError): labels
    that are negative, not finite or not in the table of gains; UsageError.

    >>> ranker = ListRanker().fit((np.arange(6.0)[:, None], list("ppppqq"), list(range(6))), [0, 1, 2, 3, 0, 1])
    >>> ranker.coef_ > 0
    array([ True])

    Source: Cossock and Zhang (2008); Duchi, Mackey and Jordan (2013), (12), (28), §3.3.
    """

    def __init__(
        self,
        loss: str = "gain-regression",
        *,
        target: str | None = None,
        phi: str | None = None,
        gain: Any = None,
        at: int | None = None,
        normalise: bool | None = None,
        regressor: Any = None,
        ridge: float | str = "auto",
        intercept: str = "query",
        tolerance: float = 1e-8,
        max_iterations: int = 200,
        standardise: bool = True,
        log: bool = False,
        missing: str = "auto",
    ) -> None:
        self.loss = loss
        self.target = target
        self.phi = phi
        self.gain = gain
        self.at = at
        self.normalise = normalise
        self.regressor = regressor
        self.ridge = ridge
        self.intercept = intercept
        self.tolerance = tolerance
        self.max_iterations = max_iterations
        self.standardise = standardise
        self.log = log
        self.missing = missing

    def _check(self) -> None:
        if self.loss not in LOSSES:
            raise UsageError(f"unknown loss {self.loss!r}; {did_you_mean(str(self.loss), LOSSES)}")
        if self.intercept not in INTERCEPTS:
            raise UsageError(f"intercept must be one of {', '.join(INTERCEPTS)}, not {self.intercept!r}")
        one_ridge(self.ridge)
        check_at(self.at)
        Target.of(self.target, "comparisons")
        if self.regressor is not None:
            check_regressor(self.regressor)
            if self.loss != "gain-regression":
                raise UsageError(f"{self.loss} fits a linear scorer; a regressor is for gain-regression")
        elif self.missing_ == "keep":
            raise UsageError(
                Setting("missing", "keep"), " is for regressors that know missing values; a linear scorer needs a fill"
            )
        if self.phi is not None and self.loss == "gain-regression":
            raise UsageError("gain-regression is least squares; phi is for losses on pairs")

    def _learn(self, training: Training, columns: Columns) -> None:
        if not training.labelled:
            raise InputError("ListRanker learns from relevance labels; for preferences use AggregationRanker")
        one = (training.labels == training.labels[0]).all()
        if training.flat and (self.loss != "gain-regression" or self.intercept == "query" or one):
            raise InputError(f"no query has two items of different label: {self.loss} has nothing to learn from")
        target, notes = self._aim(training)
        facts = (
            self._regress(training, columns, target, self.gain, self.normalise, self.at)
            if self.loss == "gain-regression"
            else self._pairs(training, columns.matrix)
        )
        self.status_ = {"loss": self.loss, **facts, "notes": [*training.notes, *notes, *facts["notes"]]}

    def _aim(self, training: Training) -> tuple[Target, list[Note]]:
        """Return what gains are for; labels below 0 are numbers whose differences alone mean something."""
        target = Target.of(self.target or "ndcg", "comparisons")
        negative = training.labels < 0
        differences = self.loss in ("ranksvm", "ranknet", "rankboost") or (
            self.loss == "gain-regression" and self.gain is None and not self.normalise
        )
        if not negative.any() or (differences and target.name == "pairwise"):
            return target, []
        if not (differences and training.plain and self.target is None):
            refuse_negative(training)
        text = "{negative:,} of {of:,} numbers are below 0: they are no grades of relevance, and taken as they are"
        return Target("pairwise"), [Note("numbers below 0", text, negative=int(negative.sum()), of=len(negative))]

    def _pairs(self, training: Training, Z: Matrix) -> dict[str, Any]:
        member = surrogate(self.loss)
        options: dict[str, Any] = {}
        if member.reads == "scores":
            options = {"gain": self.gain or ("err" if member.consistent_for == "err" else "2^s")}
            if member.consistent_for == "ndcg":
                options |= {"at": self.at, "normalised": self.normalise in (None, True)}
        elif self.gain is not None:
            raise UsageError(f"{self.loss} takes differences of labels; it has no gain")
        phi = self.phi or member.phi
        if phi not in member.phis:
            raise UsageError(f"{self.loss} has no φ {phi!r}; allowed: {', '.join(member.phis)}")
        size = training.groups.sizes
        if member.reads == "judgments" and float((size * (size - 1.0)).sum()) > 2 * PAIRS:
            fit = fit_graded(
                Z,
                training.labels,
                training.start,
                phi,
                one_ridge(self.ridge),
                rows=training.row,
                weight="difference",
                query_weight=training.share,
                tolerance=max(self.tolerance, 1e-6),
                max_iterations=max(self.max_iterations, 1000),
            )
        else:
            fit = self._listed(training, Z, member, phi, options)
        self._take_linear(fit.theta)
        return {
            "status": fit.status,
            "iterations": fit.iterations,
            "gradient": fit.gradient,
            "gap": fit.gap,
            "phi": phi,
            "ridge": fit.ridge,
            "notes": [],
        }

    def _listed(self, training: Training, Z: Matrix, member: Surrogate, phi: str, options: dict[str, Any]) -> LinearFit:
        """Fit with all pairs written out, by Newton's method."""
        source = of_labels(training, member.reads)
        return fit_edges(
            Z,
            member.objective(source.law, phi=phi, **options),
            ridge=one_ridge(self.ridge),
            rows=source.rows,
            weight=source.weight,
            tolerance=self.tolerance,
            max_iterations=self.max_iterations,
        )
