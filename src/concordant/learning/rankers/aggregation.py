"""AggregationRanker: aggregate each query's judgments into targets, then fit least squares or any regressor to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from concordant.errors import Setting, UsageError, refuse_idle
from concordant.learning.features.normalising import Normaliser
from concordant.learning.features.streamed import FeatureFile
from concordant.learning.rankers.choosing import Curve, TooFew, cross_validate, target_weights
from concordant.learning.rankers.columns import Columns, Learned, StreamedTraining, TargetSums, WholeColumns, note_needs
from concordant.learning.rankers.diagnosis import Diagnosis, diagnosed
from concordant.learning.rankers.edge_sources import notes_of_clicks
from concordant.learning.rankers.estimator import known
from concordant.learning.rankers.gate import (
    DEFAULT,
    Candidate,
    Gate,
    choose,
    fitted,
    linear_candidates,
    target_candidates,
)
from concordant.learning.rankers.plans import (
    RIDGE,
    Plan,
    Recipe,
    check_at,
    plans_asked,
    ridges_to_try,
    scales_to_try,
    settled,
)
from concordant.learning.rankers.regression import RegressionRanker, refuse_negative
from concordant.learning.rankers.regressors import check_regressor, told_categories
from concordant.learning.rankers.residual_fit import (
    RIDGES,
    added,
    beyond_scorer,
    every_row,
    one_standard_error_ridge,
    remainder,
)
from concordant.learning.rankers.stopping import Regression, judged_parts
from concordant.learning.rankers.target import Target
from concordant.learning.rankers.targeting import Choices, TargetMaker
from concordant.learning.rankers.validation import Training
from concordant.learning.scikit import check_is_fitted
from concordant.learning.solvers.least_squares import INTERCEPTS
from concordant.learning.targets.informed import Informed
from concordant.learning.targets.mean_targets import Targets
from concordant.losses.gains import Gain
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Preferences
from concordant.preferences.splits import SPLITS
from concordant.progress import stage
from concordant.ranking.click_models import usual_clicks

Floats = NDArray[np.float64]


OF_GATES = ("status", "structure", "gate", "target", "consistent_for", "condition")
"""What ``status_`` says of the gates; of choices that are kept it stays."""


INFORMED = ("log-odds", "bradley-terry")
"""Structures that informed=True replaces by, or takes as, Bradley–Terry with a prior."""

OF_VOTES = {"structure": None, "structure_options": None, "order": "auto", "subsets": 32, "score_scale": 1.0}
OF_VOTES |= {"informed": "auto", "tau2": "auto", "gate": "auto", "folds": 3, "split": "judgments", "seed": 0}
"""Parameters that say how votes are aggregated, as they are unless they are given: labels are not."""
CONDITION = "net preferences without cycles, whose order the scorer can express; as the judgments of each query grow"
"""Under which the gate finds the right order: the difference graph is among its candidates (AoS (23))."""


class AggregationRanker(RegressionRanker):
    """Aggregate each query's judgments into targets, then fit linear scorers or any regressor to them.

    Where nothing is named, the scores of informed Bradley–Terry are the targets, which lose least where judgments are
    few and follow such a model, and a gate cross-fits over judgments: where the loss of the ``target`` on held-out ones
    is surely lower with another aggregation, that is taken. The difference graph (AoS (23)) is among them, so as
    judgments grow the order is right for the pairwise loss wherever net preferences have no cycle and the scorer can
    express it.

    With a structure, order or gain of one's own (and for click logs) targets are those of gain regression: ȳ = the mean
    over k-subsets of G(s_j)/Z(s), s the structure of the subset; Σ_q n̂_q/(n m_q) Σ_j (f(x_qj) + t_q − ȳ_qj)² is
    minimised, with a free intercept t_q per query, which no order sees. That is the minimiser of the risk (18) of the
    surrogate (28), consistent for NDCG as k → ∞, k = o(√n).

    Parameters
    ----------
    structure : a name of the registry, a function of a batch, a list of these, 'auto' (the usual ones for the kind, by
        cross-validation), or None: informed Bradley–Terry, but ``usual_clicks`` for click logs, and where options are
        given the usual one that they belong to (log-odds for comparisons).
    structure_options : options of the structure, such as {"c0": 0.5}; not the prior, where the features inform it. Of
        c0 a list, or 'auto' (0.01, 0.1, 0.5, 2, 8), is tried.
    order : k, 'all' (complete aggregation), a list, or 'auto': 1, 3, 10, … up to the largest query (300,000 at
        most), and 'all'; the largest that is within one standard error of the best.
    subsets : k-subsets drawn for each query.
    gain : '2^s-1', '2^s', 'identity', a function, 'auto', a list of these or of pairs (gain, divided by Z), or None:
        'identity' where the aggregation is informed and for chances of clicks, else '2^s-1'.
    normalise, at : whether gains are divided by Z(s) (None: unless the aggregation is informed), with this cut-off.
    score_scale : β of G(β s), how steeply gains rise with scores; a list, or 'auto' (¼, ½, 1, 2, 5).
    regressor : None (linear, least squares, exact) or any scikit-learn regressor; it is cloned, fitted to targets
        centred within the query with weights of mean 1, and kept as ``regressor_``. One that was told to stop early
        (scikit-learn's boosting and networks, LightGBM, XGBoost) does so by the target on what is held out, by query,
        in ``folds`` parts, and is then fitted to all with that number of iterations: ``status_["stopped"]``.
    ridge : λ of (λ/2)‖θ‖², a list, or 'auto' (RIDGES where something is chosen by cross-validation, else 0.001).
        Features are standardised and weights of all judged rows add up to 1. Not used with a regressor.
    intercept : 'query', 'one' or 'none' (linear only).
    informed, tau2 : aggregate by Bradley–Terry with a prior from a first pairwise logistic fit to the features, N(x'θ,
        ``tau2``), tau2 'auto' from held-out judgments: where items have few judgments their scores s are those of the
        scorer, with many the prior washes out. 'auto': where ``structure`` is None. With the identity as gain, not
        divided by Z, and no other order or gain to try beside it, what is fitted is what s adds, s − x'θ (0 where
        nobody judged): a regressor to all rows; a linear δ with the ridge on δ. With ``order`` 'auto' that is 'all',
        and the ridge the greatest within one standard error of the best on held-out queries, ∞ (nothing is added)
        included.
    target : "pairwise", "ndcg@10", "err@10", "precision@5", … (ndcg and err without @: the whole list), the loss that
        the scorer is for (``Target``); None: ERR for click logs, else pairwise. It decides the gate, orders, ridges and
        ``score``.
    gate : whether other aggregations are tried beside the default; 'auto': where structure, order, gain and informed
        are left as they are. ``status_["gate"]`` holds what each candidate lost, and which was taken. With a regressor
        there are two gates: the linear scorer that it starts from, and its targets.
    standardise, log, missing : what is done to features (``Normaliser``); missing is 'raise', 'mean', 'median',
        'zero', with a regressor 'keep' (it sees them; the linear scorer that it starts from has them at the mean), or
        'auto': 'keep' for a regressor that knows missing values, else 'raise'.
    folds, split, seed : where order is 'auto' or anything is a list or 'auto', cross-validation over ``folds`` parts of
        the 'judgments' (or of the 'queries') takes the combination of least loss by the target. (The ridge on what
        informed aggregation adds is judged on queries, on judgments where there are fewer than ten.) Of judgments too
        few for that all are aggregated at once, with the usual ridge, or nothing is added to the pairwise scorer: a
        note and ``status_["unchosen"]`` say so. What was asked for by name and cannot be chosen is an error.

    y may also be relevance labels, or plain numbers: then they are fitted as they are, by the gain of the target
    (pairwise: the labels themselves), as ``ListRanker`` does for NDCG.

    Attributes: ``coef_``, ``coef_standardised_`` (linear), ``regressor_``, ``order_``, ``structure_``, ``gain_``,
    ``normalise_``, ``score_scale_``, ``ridge_``, ``cv_`` (a ``Curve``; only where something was chosen), ``status_``,
    ``n_features_in_``, ``feature_names_in_``. Errors: InputError, UsageError.

    >>> from concordant.preferences.preferences import Preferences
    >>> votes = Preferences.from_comparisons(["b", "c", "c"] * 4, ["a", "b", "a"] * 4)
    >>> features = {"item": ["a", "b", "c", "d"], "length": [1.0, 2.0, 3.0, 4.0]}
    >>> ranker = AggregationRanker(order="all").fit(features, votes)
    >>> bool((np.diff(ranker.predict(features)) > 0).all())
    True

    Source: Duchi, Mackey and Jordan (2013), (18), (23), (28), §6.1; Cossock and Zhang (2008).
    """

    def __init__(
        self,
        structure: Any = None,
        *,
        structure_options: Mapping[str, Any] | None = None,
        order: int | str | list[int | str] = "auto",
        subsets: int = 32,
        gain: str | Gain | list[Any] | None = None,
        normalise: bool | None = None,
        score_scale: float | str | list[float] = 1.0,
        at: int | None = None,
        regressor: Any = None,
        ridge: float | str | list[float] = "auto",
        intercept: str = "query",
        informed: bool | str = "auto",
        tau2: float | str = "auto",
        target: str | None = None,
        gate: bool | str = "auto",
        standardise: bool = True,
        log: bool = False,
        missing: str = "auto",
        folds: int = 3,
        split: str = "judgments",
        seed: int = 0,
    ) -> None:
        self.structure = structure
        self.structure_options = structure_options
        self.order = order
        self.subsets = subsets
        self.gain = gain
        self.normalise = normalise
        self.score_scale = score_scale
        self.at = at
        self.regressor = regressor
        self.ridge = ridge
        self.intercept = intercept
        self.informed = informed
        self.tau2 = tau2
        self.target = target
        self.gate = gate
        self.standardise = standardise
        self.log = log
        self.missing = missing
        self.folds = folds
        self.split = split
        self.seed = seed

    def refit(self, X: Any, y: Any, sample_weight: Any = None, *, qid: Any = None, group: Any = None) -> Self:
        """Learn anew from the judgments of today what held-out judgments chose before: only the coefficients change.

        The aggregation, the ridges and τ² stay, so nothing is cross-validated: coefficients are those of ``fit``, to
        the last bit, wherever that would choose the same. More judgments than a tenth beyond those of the choice (or
        fewer) have all chosen anew, as by ``fit``; a note says which. ``status_["choices"]`` are the choices.
        Arguments as of ``fit``. Errors: NotFittedError; UsageError for regressors, and where nothing was chosen.

        >>> from concordant.preferences.preferences import Preferences
        >>> votes = Preferences.from_comparisons(["b", "c", "c"] * 40, ["a", "b", "a"] * 40)
        >>> features = {"item": ["a", "b", "c", "d"], "length": [1.0, 2.0, 3.0, 4.0]}
        >>> ranker = AggregationRanker().fit(features, votes)
        >>> before = ranker.coef_
        >>> bool((ranker.refit(features, votes).coef_ == before).all())
        True
        """
        check_is_fitted(self)
        if not isinstance(found := self.status_.get("choices"), Mapping):
            raise UsageError(
                "this scorer keeps no choices: it has a regressor or too few judgments, or is of Spark or 0.1; fit it"
            )
        self._start = Choices.of(found)
        try:
            return self.fit(X, y, sample_weight, qid=qid, group=group)
        finally:
            del self._start

    def _check(self) -> None:
        if self.intercept not in INTERCEPTS:
            raise UsageError(f"intercept must be one of {', '.join(INTERCEPTS)}, not {self.intercept!r}")
        if self.split not in SPLITS:
            raise UsageError(f"split must be one of {', '.join(SPLITS)}, not {self.split!r}")
        if self.regressor is not None:
            check_regressor(self.regressor)
        elif self.missing_ == "keep":
            raise UsageError(
                Setting("missing", "keep"), " is for regressors that know missing values; a linear scorer needs a fill"
            )
        if self.gate not in (True, False, "auto"):
            raise UsageError(f"gate must be True, False or 'auto', not {self.gate!r}")
        Target.of(self.target, "comparisons")
        if self.informed not in (True, False, "auto"):
            raise UsageError(f"informed must be True, False or 'auto', not {self.informed!r}")
        ours = self.structure is None or (isinstance(self.structure, str) and self.structure in INFORMED)
        check_at(self.at)
        scales_to_try(self.score_scale)
        if self.normalise not in (None, True, False):
            raise UsageError(f"normalise must be True, False or None, not {self.normalise!r}")
        if self.informed is True and (own := {"prior", "mean"} & set(self.structure_options or {})):
            raise UsageError(f"informed aggregation has a prior of its own (tau2); {min(own)!r} is no option beside it")
        if self.informed is True and not ours:
            raise UsageError(f"informed aggregation is Bradley–Terry's; the structure {self.structure!r} has no prior")

    def _check_streamed(self, file: FeatureFile, y: Any) -> None:
        if self.regressor is not None:
            raise UsageError(
                f"{file.log.name}: features that stay on disk are fitted by linear least squares; a regressor needs "
                "them in memory (read_features)"
            )
        if self._informed(str(getattr(y, "kind", None))):
            raise UsageError(
                f"{file.log.name}: features that stay on disk do not inform the aggregation; name a structure (",
                Setting("structure", "log-odds"),
                ") or read them into memory (read_features)",
            )

    def _learn(self, training: Training, columns: Columns) -> None:
        if training.labelled:
            self._learn_grades(training, columns)
        else:
            self._learn_votes(training, columns)

    def _learn_votes(self, training: Training, columns: Columns) -> None:
        note_needs(training)
        kind = str(training.prefs.kind)
        informed = self._informed(kind)
        clicks = usual_clicks(training.prefs)
        tried, ridges, beyond = self._to_try(kind, int(training.prefs.judgments.max()), informed, clicks)
        seen = self._for_linear(training, columns)
        maker = TargetMaker(training, seen, self._recipe(), informed, self.tau2)
        place, (kept, outgrown) = 0, self._kept(training, tried)
        if kept is not None:
            tried, ridges = [plan for plan in tried if plan.row == kept.plan], [kept.ridge]
            maker = replace(maker, tau2=kept.tau2 or self.tau2, precision=kept.precision)
        self._forget("cv_")
        target = Target.of(self.target, kind).reading(training.prefs, self.structure, self.structure_options)
        how: dict[str, Any] = {"intercept": self.intercept, "n": self.folds, "seed": self.seed, "target": target}
        unchosen: TooFew | None = None
        gated = self._gated(kind, beyond, streamed=isinstance(training, StreamedTraining)) and kept is None
        with stage("aggregating"):
            try:
                if beyond and len(ridges) > 1:
                    self.cv_: Curve = one_standard_error_ridge(training, seen, tried[0], ridges, maker, **how)
                    ridges = self.cv_["ridge"].tolist()
                    place = self.cv_.best
                elif len(tried) * len(ridges) > 1:
                    regressor = told_categories(self.regressor, training.features.categories)
                    how |= {"regressor": regressor, "split": self.split}
                    self.cv_ = cross_validate(training, columns, tried, ridges, maker, **how)
                    place = self.cv_.best
            except TooFew as error:
                if self._asked_to_choose(tried):
                    raise
                unchosen = error
                tried, ridges = tried[-1:], [np.inf if beyond else 0.0 if self.regressor is not None else RIDGE]
            plan, ridge = tried[place // len(ridges)], ridges[place % len(ridges)]
            targets = maker([plan], training.prefs)[0]
            weight = target_weights(targets, training.weight)
            facts = targets.facts(weight)
            if unchosen is not None and not facts.largest:
                raise unchosen
            gates: list[Gate] = []
            start = aim = None
            if gated:
                gates, start, aim = self._through_gates(training, seen, target, plan, ridge, maker, beyond)
            elif kept is not None and kept.gate is not None:
                others = self._beside(training, seen, target, maker, beyond)
                start = next(one for one in others if one.name == kept.gate)
        if self.regressor is None:
            prior = maker.prior_of(training.prefs) if beyond else None
            ended = self._fit_linear(training, columns, targets, weight, ridge, prior)
            if start is not None:
                self._take_linear(start.scores(training.prefs))
        else:

            def made(prefs: Preferences) -> Regression:
                if aim is not None:
                    theta = maker.prior_of(prefs).theta if start is None else start.scores(prefs)
                    return beyond_scorer(training, seen, training.groups.centred(aim.scores(prefs)), theta)
                own = targets if prefs is training.prefs else maker([plan], prefs)[0]
                if beyond:
                    prior = maker.prior_of(prefs)
                    return every_row(training, remainder(prior, own), prior.theta)
                each = own.spread(target_weights(own, training.weight))
                return Regression(training.row, own.centred(), each, owner=training.groups.owner)

            likely = self.target is None and not target.of_lists and start is None and aim is None
            of_parts = partial(judged_parts, training, made, target, self.folds, self.seed, likely)
            ended = self._fit_regressor(training, columns, made(training.prefs), target, of_parts)
        notes = [*training.notes, *facts.notes, *maker.notes, *outgrown]
        notes += notes_of_clicks(training.prefs, self.structure is None, str(plan.row["structure"]), clicks)
        told = beyond, gated or kept is not None
        told = beyond, gated or kept is not None
        found = Learned(plan, facts, ended, ridge, ridges, maker.facts, *told, gates, unchosen)
        before = getattr(self, "status_", {})
        self._tell(kind, found, notes)
        if kept is not None:
            self.status_ |= {name: before[name] for name in OF_GATES if name in before} | {"choices": kept.row}
        elif self.regressor is None and unchosen is None:
            prior = maker.prior if informed else None
            precision, tau2 = (None, None) if prior is None else (prior.precision, prior.tau2)
            taken, number = None if start is None else start.name, len(training.prefs)
            self.status_["choices"] = Choices(kind, number, plan.row, ridge, precision, tau2, taken).row

    def _kept(self, training: Training, tried: list[Plan]) -> tuple[Choices | None, tuple[Note, ...]]:
        """Return the choices that ``refit`` keeps, if it is that and they can be kept, and what to say of it."""
        start: Choices | None = getattr(self, "_start", None)
        if start is None:
            return None, ()
        alike = training.features.names == (self._names or training.features.names)
        if why := start.outgrown(training.prefs, tried) or ("" if alike else "the features are others"):
            return None, (Note("chosen anew", "held-out judgments choose all anew, for {why}", why=why),)
        text = "aggregation, ridges and variance stay as they were chosen when there were {judgments:judgments}"
        return start, (Note("choices kept", text, judgments=start.judgments),)

    def _learn_grades(self, training: Training, columns: Columns) -> None:
        """Fit relevance labels: each query is one complete judgment, so nothing is aggregated."""
        why = "labels are complete preference data: nothing is aggregated"
        refuse_idle({name: getattr(self, name) for name in OF_VOTES}, OF_VOTES, why)
        if isinstance(self.gain, list) or self.gain == "auto":
            raise UsageError("labels are regressed on one gain; GridSearchCV chooses among several")
        target = Target.of(self.target, "comparisons")
        self._forget("cv_")
        if target.name != "pairwise":
            refuse_negative(training)
        facts = self._regress(training, columns, target, self.gain, self.normalise, self.at)
        plan = {"structure": None, "order": "all", "gain": str(self.gain or target), "normalise": self.normalise}
        note = Note("grades", "labels are one complete judgment of each query: they are fitted as they are")
        self.status_ = {**facts, **plan, "notes": [*training.notes, note, *facts["notes"]]}

    def _for_linear(self, training: Training, columns: Columns) -> Columns:
        """What a linear scorer sees: a missing value at the mean, and of codes of categories nothing."""
        if not isinstance(columns, WholeColumns):
            return columns
        if self.missing_ == "keep":
            columns = replace(columns, normalised=lambda normaliser, X: known(self._normalised(normaliser, X)))
        if not training.features.categories:
            return columns
        X = np.array(columns.X)
        X[:, list(training.features.categories)] = 0.0
        return replace(columns, X=X)

    def _asked_to_choose(self, tried: list[Plan]) -> bool:
        """Whether a choice was asked for by name, and is not only the usual one of order and ridge."""
        left = {replace(plan, order="all") for plan in tried}
        return len(left) > 1 or not isinstance(self.order, str) or not isinstance(self.ridge, str)

    def _to_try(self, kind: str, largest: int, informed: bool, clicks: str) -> tuple[list[Plan], list[float], bool]:
        """Return plans, ridges, and whether what is fitted is what informed scores add to their scorer."""
        tried = self._plans(kind, largest=largest, informed=informed, clicks=clicks)
        several = len(tried) > 1 or isinstance(self.structure, list) or self.order == "auto"
        ridges = [0.0] if self.regressor is not None else ridges_to_try(self.ridge, several)
        beyond = informed and len(tried) == 1 and tried[0].gain == "identity" and not tried[0].normalise
        return tried, list(RIDGES) if beyond and len(ridges) > 1 and self.ridge == "auto" else ridges, beyond

    def _gated(self, kind: str, beyond: bool, *, streamed: bool) -> bool:
        """Whether other aggregations are tried beside the usual one: where nothing of it was asked for."""
        tried = beyond or (kind == "selections" and self.regressor is None and not streamed)
        if self.gate is True and not tried:
            raise UsageError("the gate is that of the informed aggregation, which structure, order or gain replace")
        named = (self.structure, self.structure_options, self.gain, self.normalise)
        usual = self.informed == "auto" and isinstance(self.order, str) and self.order == "auto"
        return tried and (self.gate is True or (self.gate == "auto" and usual and all(one is None for one in named)))

    def _through_gates(
        self,
        training: Training,
        columns: Columns,
        target: Target,
        plan: Plan,
        ridge: float,
        maker: TargetMaker,
        beyond: bool,
    ) -> tuple[list[Gate], Candidate | None, Candidate | None]:
        """Return the gates, the linear scorer that takes the place of the usual one, and the targets that do.

        A linear scorer goes through one gate. With a regressor the first chooses the linear scorer that it starts from,
        the second the targets; there are some wherever either gate takes another.
        """
        how: dict[str, Any] = {"n": self.folds, "seed": self.seed}
        others = self._beside(training, columns, target, maker, beyond)

        def default(prefs: Preferences) -> Floats:
            if not beyond:
                return fitted(training, columns, maker([plan], prefs)[0], ridge, self.intercept)
            start = maker.prior_of(prefs)
            if self.regressor is not None:
                return start.theta
            return added(training, columns, start, maker([plan], prefs)[0], [ridge], self.intercept)[:, 0]

        alone = self.regressor is not None or (beyond and np.isinf(ridge))
        name = "pairwise logistic" if alone else DEFAULT if beyond else str(plan.row["structure"])
        found = [choose(training, columns, [Candidate(name, default), *others], target, **how)]
        start = others[found[0].taken - 1] if found[0].taken else None
        if self.regressor is None:
            return found, start, None
        by_target = target_candidates(training, self._recipe(), lambda prefs: maker([plan], prefs)[0].value, target)
        found.append(choose(training, columns, by_target, target, linear=False, **how))
        return found, start, by_target[found[1].taken] if found[1].taken or start is not None else None

    def _beside(
        self, training: Training, columns: Columns, target: Target, maker: TargetMaker, beyond: bool
    ) -> list[Candidate]:
        """Return the linear scorers that the gate tries beside the usual one."""
        precision = (maker.prior_of(training.prefs).ridge if beyond else RIDGE) * len(training.prefs)
        return linear_candidates(training, columns, self._recipe(), target, precision, self.intercept)

    def _tell_gates(self, gates: list[Gate]) -> None:
        if not gates:
            return
        self.status_["gate"] = [gate.row for gate in gates]
        self.status_["target"] = str(gates[0].target)
        taken = [gate for gate in gates if gate.taken]
        if taken:
            self.status_["status"] = f"{' on '.join(gate.name for gate in reversed(gates))}, chosen by the gate"
            self.status_["structure"] = gates[-1].name
        looked = not any(gate.unlooked for gate in gates) and gates[0].target.name == "pairwise"
        if looked and "difference-graph" in gates[0].names:
            self.status_ |= {"consistent_for": "pairwise", "condition": CONDITION}

    def _learn_sums(self, source: TargetSums) -> Normaliser:
        kind = source.begin(self)
        self._forget("cv_")
        theta, normaliser, found, notes, curve = source.learned(self, kind)
        if self._informed(kind) and not found.prior:
            text = "structure {structure}: {place} the features do not inform the aggregation"
            notes = (Note("not informed", text, structure=found.plan.structure, place=source.place), *notes)
        if curve is not None:
            self.cv_ = curve
        self._take_linear(theta)
        self._tell(kind, found, notes)
        self._say_target(kind)
        return normaliser

    def _plans(self, kind: str, **known: Any) -> list[Plan]:
        asked: dict[str, Any] = {"order": self.order, "gain": self.gain, "normalise": self.normalise}
        asked["scale"] = self.score_scale
        return plans_asked(kind, self.structure, self.structure_options, **asked, **known)

    def _recipe(self) -> Recipe:
        return Recipe(settled(self.structure_options), self.subsets, self.at, self.seed)

    def _tell(self, kind: str, found: Learned, said: Sequence[str]) -> None:
        """Set ``status_``; ``said`` are the notes of judgments and targets."""
        plan, unchosen, notes = found.plan, found.unchosen, [*said]
        notes += found.warnings(kind)
        notes += [*found.ended.pop("notes", []), *(gate.note for gate in found.gates)]
        made = {**plan.row, "order": plan.order}
        self.status_ = {**found.ended, **found.facts.status(self.subsets), **made, **found.prior, "notes": notes}
        self._tell_gates(found.gates)
        if unchosen is not None:
            self.status_["unchosen"] = str(unchosen)

    def _informed(self, kind: str) -> bool:
        """Whether the features inform the aggregation; not of clicks, whose pairs speak against the order shown."""
        if self.informed != "auto":
            return bool(self.informed)
        return self.structure is None and kind != "selections" and not self.structure_options

    @property
    def structure_(self) -> str:
        """Name of the structure that was used."""
        return str(self.status_["structure"])

    @property
    def order_(self) -> int | str:
        """k, or 'all'."""
        return self.status_["order"]  # type: ignore[no-any-return]

    @property
    def gain_(self) -> str:
        """Name of the gain that was used; ``normalise_`` says whether it was divided by Z."""
        return str(self.status_["gain"])

    @property
    def normalise_(self) -> bool:
        """Whether gains were divided by Z."""
        return bool(self.status_["normalise"])

    @property
    def score_scale_(self) -> float:
        """β of the gains G(β s) that were used."""
        return float(self.status_.get("score_scale", 1.0))

    @property
    def ridge_(self) -> float | None:
        """λ; None with a regressor, or where nothing is added to the pairwise scorer."""
        return self.status_["ridge"]  # type: ignore[no-any-return]

    def curve(self) -> pa.Table:
        """Return order, loss, standard_error and chosen of the orders tried, other things as chosen.

        Errors: UsageError when nothing was chosen by cross-validation.
        """
        check_is_fitted(self)
        if not hasattr(self, "cv_"):
            raise UsageError("nothing was chosen by cross-validation, so there is no curve; order='auto' makes one")
        return self.cv_.curve()

    def to_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return all that scoring needs, and the curve of the cross-validation. Errors: NotFittedError."""
        values, arrays = super().to_state()
        return (values | {"curve": self.cv_.to_state()} if hasattr(self, "cv_") else values), arrays

    @classmethod
    def from_state(cls, values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return the fitted ranker of a ``to_state``; its scores have the same bits. Errors: InputError."""
        made = super().from_state(values, arrays)
        if values.get("curve") is not None:
            made.cv_ = Curve.from_state(values["curve"])
        return made

    def diagnose(
        self, X: Any, y: Any, *, radius: float | None = None, replicates: int = 400, seed: int = 0
    ) -> Diagnosis:
        """Return what Theorem 4 says about the fit to the judgments ``y`` on the rows ``X``.

        That is of a linear scorer whose aggregation the features do not inform, with an intercept for each query: what
        is minimised then is the U-statistic risk (18) of (28). ``radius`` of the ball ‖θ‖ ≤ r, of coefficients of
        standardised features, that is looked at: by default the norm of those of the fit. Errors: NotFittedError;
        UsageError for other fits; InputError as of ``fit``.

        Source: Duchi, Mackey and Jordan (2013), Theorem 4.
        """
        return diagnosed(self, X, y, radius=radius, replicates=replicates, seed=seed)

    def _fit_linear(
        self,
        training: Training,
        columns: Columns,
        targets: Targets,
        weight: Floats,
        ridge: float,
        prior: Informed | None,
    ) -> dict[str, Any]:
        """Fit the targets, or what they add to the pairwise scorer of a prior; return how that went."""
        if prior is None:
            return self._fit_targets(training, columns, targets.value, weight, ridge, targets.unknown)
        self._take_linear(added(training, columns, prior, targets, [ridge], self.intercept)[:, 0])
        said = "pairwise logistic scorer" if np.isinf(ridge) else "closed form, beyond a pairwise logistic scorer"
        return {"status": said, "iterations": 0, "gradient": 0.0, "ridge": None if np.isinf(ridge) else ridge}
