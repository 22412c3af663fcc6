"""What can be asked of a ranking beyond its rows: covariance, comparisons, predictions, a summary."""

from __future__ import annotations

import difflib
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from concordant.errors import Setting, UsageError, few
from concordant.preferences.connectivity import Connectivity
from concordant.preferences.graphs import Batch
from concordant.preferences.labels import Labels
from concordant.preferences.preferences import Preferences
from concordant.ranking.comparing import Contrast, ScoreCovariance, contrast, contrasts, covariance_of
from concordant.ranking.cumulative import Cuts
from concordant.ranking.flags import without_judgment
from concordant.ranking.held_out import HeldOut, Predicted, matched, predicted
from concordant.ranking.joint import Fitted, Joint
from concordant.ranking.prediction import covariate_values, paired, predictions
from concordant.ranking.rank_sets import rank_sets
from concordant.ranking.scores import Scores
from concordant.ranking.structures import structure
from concordant.ranking.summary import ModelSummary, coefficient_table, freedom_of, summarise

Floats = NDArray[np.float64]


class Answers:
    """The part of a ``Ranking`` that computes more from the judgments that were ranked, when somebody asks."""

    queries: Labels
    items: Labels
    query: NDArray[np.int32]
    component: NDArray[np.int32]
    item: NDArray[np.int32]
    rank: NDArray[np.int64]
    score: Floats
    flag: NDArray[np.int8]
    structure: str
    coefficients: Mapping[str, Floats]
    level: float
    interval: str
    judged: Fitted | None

    @abstractmethod
    def _links(self, batch: Batch) -> Connectivity:
        """What connects the items of a batch for this structure."""

    @abstractmethod
    def _parts(self) -> Iterator[tuple[Batch, Scores]]:
        """Judgments and scores of some queries at a time."""

    @property
    def _fitted(self) -> Fitted:
        if self.judged is None:
            raise UsageError("this ranking holds no judgments to compute more from; rank them with concordant.rank")
        return self.judged

    def _fit_of(self, codes: NDArray[np.int64]) -> tuple[Batch, Scores]:
        """The judgments of some queries with the scores of this ranking."""
        fitted = self._fitted
        rows = np.lexsort((self.item, self.query))
        rows = rows[np.isin(self.query[rows], codes)] if len(self.queries) > 1 else rows
        batch = Batch.whole(fitted.prefs, codes)
        none = np.zeros(len(batch))
        scores = Scores(
            self.score[rows], self.component[rows] - 1, none.astype(np.int8), none.astype(np.int64), none,
            {name: column[codes] for name, column in self.coefficients.items()}, options=dict(fitted.used),
        )  # fmt: skip
        return batch, scores

    def _code_of(self, query: Any) -> int:
        """The code of a query, which has to be named where there are several. Errors (UsageError): unknown."""
        if query is None and len(self.queries) > 1:
            raise UsageError(
                f"which query? There are {len(self.queries):,}: {few(self.queries, 4)}; give ", Setting("query")
            )
        code = 0 if query is None else int(self.queries.codes_of([query])[0])
        if code < 0:
            raise UsageError(f"unknown query {query!r}; there are {len(self.queries):,}: {few(self.queries)}")
        return code

    def _joint(self, query: Any) -> tuple[Joint, NDArray[np.int64]]:
        """How the scores of a query vary together, and its nodes in the order of the rows."""
        code = self._code_of(query)
        held: tuple[int, Joint] | None = vars(self).get("_held")
        if held is None or held[0] != code:
            batch, scores = self._fit_of(np.array([code]))
            member = structure(self.structure)
            held = (code, self._fitted.joint(batch, scores, member, self._links(batch)))
            vars(self)["_held"] = held
        own = self.item[self.query == code]
        return held[1], np.argsort(np.argsort(own))

    def _nodes(self, joint: Joint, items: Sequence[Any]) -> NDArray[np.int64]:
        """Nodes of some items of a query. Errors (UsageError): unknown ones."""
        codes = self.items.codes_of(list(items))
        at = np.searchsorted(joint.batch.item, codes)
        there = (codes >= 0) & (joint.batch.item[np.minimum(at, joint.size - 1)] == codes)
        if not there.all():
            unknown = [item for item, one in zip(items, there, strict=True) if not one]
            labels = [str(label) for label in self.items.take(joint.batch.item).to_pylist()]
            close = difflib.get_close_matches(str(unknown[0])[:200], labels, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"items there: {few(labels)}"
            raise UsageError(f"this ranking has no item {few(unknown)}; {hint}")
        return at.astype(np.int64)

    def covariance(self, *, query: Any = None) -> ScoreCovariance:
        """Return the covariance matrix of the scores of a query (and of the coefficients beside them).

        By the method of the intervals (Hessian, sandwich, bootstrap), items in the order of the rows, scores as they
        are reported: the diagonal is their squared standard errors. See ``ScoreCovariance`` for what is not determined.

        Errors: UsageError for a ranking without such intervals, an unknown query, or more than 6,000 items.

        >>> import concordant as cc
        >>> found = cc.rank(cc.Preferences.from_comparisons(list("aabbc"), list("bccab"))).covariance()
        >>> found.items, found.matrix.shape, abs(found.matrix.sum().round(9))
        (('a', 'b', 'c'), (3, 3), np.float64(0.0))
        """
        joint, order = self._joint(query)
        return covariance_of(joint, order, tuple(self.items.take(joint.batch.item[order]).to_pylist()))

    def compare(self, first: Any, second: Any, *, query: Any = None) -> Contrast:
        """Compare two items: the difference of their scores with standard error, interval and p-value (of equality).

        And the probability 1/(1 + e^−difference) that a vote between them prefers the first, of structures whose scores
        say it. By the method and at the level of the intervals; from a bootstrap the interval holds the middle share
        of the replicates' differences, and p is 2(1 + those on the rarer side of 0)/(replicates + 1).

        Errors: UsageError for unknown items or a ranking without intervals of which two scores could be compared.

        >>> import concordant as cc
        >>> votes = cc.Preferences.from_comparisons(["a", "b", "b", "c"], ["b", "a", "c", "b"], count=[30, 12, 9, 8])
        >>> print(cc.rank(votes).compare("a", "b"))
        a − b = 0.916 ± 0.341 (95%: 0.246 … 1.585), p = 0.0073; a vote prefers a with probability 0.714 (0.561 … 0.830)
        """
        joint, _ = self._joint(query)
        one, other = self._nodes(joint, [first, second])
        return contrast(joint, int(one), int(other), (first, second))

    def contrasts(self, *, query: Any = None) -> pa.Table:
        """Compare all pairs of each component of a query, the better placed item first.

        Columns: component, first, second, difference, standard_error, lower, upper (of this pair alone), lower_all,
        upper_all (all pairs of the query together), p_value, p_max_t, p_holm (adjusted for all pairs; module
        ``comparing``). Not determined: an infinite standard error, no limits and no p-values. From a bootstrap no
        p_value is below 2/(replicates + 1), which Holm multiplies by the number of pairs: use p_max_t.

        Errors: as of ``compare``; more than 6,000 items.

        >>> import concordant as cc
        >>> votes = cc.Preferences.from_comparisons(["a", "b", "b", "c"], ["b", "a", "c", "b"], count=[30, 12, 9, 8])
        >>> table = cc.rank(votes).contrasts().select(["first", "second", "p_value", "p_holm"])
        >>> [round(p, 3) for p in table["p_value"].to_pylist()], [round(p, 3) for p in table["p_holm"].to_pylist()]
        ([0.007, 0.082, 0.81], [0.022, 0.164, 0.81])
        """
        joint, order = self._joint(query)
        return contrasts(joint, order, self.items.take(joint.batch.item), joint.gauge.group)

    def rank_sets(
        self, kind: str = "together", *, top: int | None = None, items: Sequence[Any] | None = None, query: Any = None
    ) -> pa.Table:
        """Return which ranks the data leave open, each kind with a critical value of its own, at the intervals' level.

        'together': rank_lower and rank_upper of all items of a component at once (by step-down, and, as all of these,
        by one-sided limits of those that the data limit on one side). 'alone': of each item by itself, whatever is said
        of others. 'top': among_first says which items may be among the first ``top``; all that are
        truly there are marked. 'tiers': of two items in different tiers the one in the better tier (1 is the best) is
        better, for all such pairs at once. Items without a rank (never judged, or ``provisional``) do not count, and
        nothing is said of them.

        Parameters
        ----------
        kind : the statement.
        top : how many are the first, with the kind 'top'.
        items : those to list (all when not given), in this order.
        query : its label, where there are several.

        Errors: as of ``contrasts``; Idle for a ``top`` with another kind.

        >>> import concordant as cc
        >>> votes = cc.Preferences.from_comparisons(["a", "b", "b", "c"], ["b", "a", "c", "b"], count=[50, 12, 9, 8])
        >>> cc.rank(votes).rank_sets("tiers").select(["item", "tier"]).to_pylist()
        [{'item': 'a', 'tier': 1}, {'item': 'b', 'tier': 2}, {'item': 'c', 'tier': 2}]

        Source: Mogstad, Romano, Shaikh and Wilhelm, Review of Economic Studies 91, 2024 (module ``rank_sets``).
        """
        joint, order = self._joint(query)
        nodes = order if items is None else self._nodes(joint, items)
        rows = np.flatnonzero(self.query == (0 if query is None else int(self.queries.codes_of([query])[0])))
        ranked = self.rank[rows[np.argsort(self.item[rows])]] > 0
        return rank_sets(joint, kind, top, nodes, self.items.take(joint.batch.item[nodes]), ranked)

    def predict(
        self, first: Any, second: Any, *, covariates: Mapping[str, Any] | None = None, query: Any = None
    ) -> pa.Table:
        """Return how likely the next judgments between items are to end in a win, a tie or a loss of the first.

        Columns: first, second, then win, tie and loss, each with _lower and _upper (at the level of the intervals). A
        tie has a probability only with ``ties="davidson"`` or ``"cumulative"``, and the latter has further columns
        win_3 … loss_3 where there are grades; with ties as half wins win and loss hold half of the ties each.
        Probabilities are missing, and intervals from 0 to 1, for items that no chain of comparisons connects; intervals
        also where the data set a difference no limits.

        Parameters
        ----------
        first, second : an item each, or as many of either; one is paired with all of the other.
        covariates : values by name, first minus second, for all pairs or one for each; not given: 0. The home side is
            the covariate "home": 1 where the first is at home, −1 where the second is, 0 on neutral ground.
        query : its label, where there are several.

        Errors: UsageError for unknown items or covariates, and for scores that do not say how often one item beats
        another (all but those of bradley-terry and plackett-luce).

        >>> import concordant as cc
        >>> votes = cc.Preferences.from_comparisons(["a", "b", "b", "c"], ["b", "a", "c", "b"], count=[30, 12, 9, 8])
        >>> table = cc.rank(votes, prior=0).predict("a", ["b", "c"])
        >>> [round(chance, 3) for chance in table["win"].to_pylist()], table.column_names[:4]
        ([0.714, 0.738], ['first', 'second', 'win', 'win_lower'])
        """
        fitted, member = self._fitted, structure(self.structure)
        if member.curvature is None:
            raise UsageError(
                f"the scores of {member.name} do not say how often one item beats another; rank with ",
                Setting("structure", "bradley-terry"),
            )
        one, other = paired(first, second)
        joint, _ = self._joint(query)
        nodes = [self._nodes(joint, side.to_pylist()) for side in (one, other)]
        names = fitted.prefs.covariate_names if fitted.used.get("covariates") else ()
        values = covariate_values(names, covariates or {}, len(one))
        tied = fitted.used.get("ties") == "davidson" and "ties" in joint.scores.coefficients
        log_nu = float(joint.scores.coefficients["ties"][0]) if tied else None
        found = predictions(joint, nodes[0], nodes[1], names, values, log_nu, joint.cuts)
        return pa.table({"first": one, "second": other, **dict(zip(found.column_names, found.columns, strict=True))})

    def summary(self) -> ModelSummary:
        """Return what the model says of itself: log-likelihood, deviance, AIC, BIC, tests of its terms, coefficients.

        Sums over all queries; ``print`` shows them as sentences, ``to_dict`` gives them as plain data. Terms are
        tested by likelihood ratios (the model is fitted again without each), or by sandwich errors where judgments are
        no independent draws of the model. Formulas and sources: module ``ranking.summary``.

        Errors: UsageError for structures without a likelihood that this covers (all but bradley-terry and
        plackett-luce).

        >>> import concordant as cc
        >>> votes = cc.Preferences.from_comparisons(["a", "b", "b", "c"], ["b", "a", "c", "b"], count=[30, 12, 9, 8])
        >>> print(cc.rank(votes, prior=0).summary())
        bradley-terry: log-likelihood -36.88 of 59 judgments, 2 parameters
        deviance 0.00 on 0 degrees of freedom (all alike: 8.03), AIC 77.76, BIC 81.92
        items: χ² = 8.029 on 2 degrees of freedom, p = 0.018 (likelihood ratio)
        """
        fitted, member = self._fitted, structure(self.structure)
        if member.curvature is None:
            raise UsageError(
                f"{member.name} is fitted by no likelihood, so it has no deviance and no tests; rank with ",
                Setting("structure", "bradley-terry"),
            )
        clustered = "sandwich" in self.interval
        return summarise(self._parts(), member, fitted.options, self._links, self.level, self.coefficients, clustered)

    def coefficient_table(self) -> pa.Table:
        """Return the coefficients beside the scores (covariates, home advantage, ties), a row for each of each query.

        Columns: query, name (that of the covariate; "home", "ties"), term (the name for people), estimate (in log-odds
        per unit of the covariate; log ν of Davidson's ties), standard_error, lower, upper (at the level of the scores),
        p_value (of 0; missing for ties, of which 0 is nothing special). What the data do not determine has an infinite
        error and no p-value; without intervals there is none of either.

        >>> import concordant as cc
        >>> sides = {"home": [1.0, -1.0, 1.0, -1.0]}
        >>> votes = cc.Preferences.from_comparisons(list("aabb"), list("bbaa"), count=[9, 4, 7, 3], covariates=sides)
        >>> row = cc.rank(votes, prior=0).coefficient_table().to_pylist()[0]
        >>> row["term"], round(row["estimate"], 2), round(row["standard_error"], 2)
        ('home advantage', 0.83, 0.46)
        """
        fitted = self.judged
        freedom = np.full(len(self.queries), np.inf)
        if fitted is not None and "sandwich" in self.interval and fitted.prefs.cluster_ways:
            freedom = freedom_of(Batch.whole(fitted.prefs))
        return coefficient_table(self.queries.values, self.coefficients, self.level, freedom)

    def evaluate(self, votes: Preferences) -> HeldOut:
        """Return how well this ranking foretells judgments that it has not seen.

        Accuracy, log-loss, Brier score and calibration slope with standard errors (clustered where ``votes`` are), and
        a calibration table. Items are matched by their labels, queries too where the ranking has several; judgments of
        items without a score are counted in ``notes``. Ties are half wins, or an outcome of their own where the ranking
        has Davidson's or thresholds; the home side and other covariates are used where the ranking has them. Formulas
        and sources: module ``ranking.held_out``.

        Errors: UsageError for scores that do not say how often one item beats another, covariates that ``votes`` lack,
        a ranking of several queries with covariates or Davidson's ties, and where nothing can be predicted.

        >>> import concordant as cc
        >>> votes = cc.Preferences.from_comparisons(["a", "b", "b", "c"], ["b", "a", "c", "b"], count=[30, 12, 9, 8])
        >>> new = cc.Preferences.from_comparisons(["a", "a", "b"], ["b", "c", "d"])
        >>> found = cc.rank(votes, prior=0).evaluate(new)
        >>> [(row["name"], round(row["mean"], 3)) for row in found.table.to_pylist()][:3], found.notes[0].items
        ([('accuracy', 1.0), ('log-loss', 0.32), ('brier', 0.075)], ('d',))
        """
        return expected(self, votes, votes).judged()


def expected(board: Answers, votes: Preferences, among: Preferences) -> Predicted:
    """Return what a ranking expects of ``votes``, a part of the log ``among``. Errors: those of ``evaluate``."""
    fitted, member = board._fitted, structure(board.structure)
    if member.curvature is None:
        raise UsageError(f"the scores of {member.name} do not say how often one item beats another")
    several = len(board.queries) > 1
    names = fitted.prefs.covariate_names if fitted.used.get("covariates") else ()
    ties = fitted.used.get("ties")
    if several and (names or ties in ("davidson", "cumulative")):
        raise UsageError("coefficients differ between the queries of this ranking: evaluate one query at a time")
    known = matched(
        query=board.queries.take(board.query) if several else None,
        item=board.items.take(board.item),
        score=board.score,
        component=np.where(without_judgment(board.flag), -1, board.component),
    )
    beta = {name: float(board.coefficients[name][0]) for name in names}
    held = {name: float(column[0]) for name, column in board.coefficients.items()}
    cuts = Cuts.of(held) if ties == "cumulative" else None
    return predicted(votes, known, beta, held["ties"] if ties == "davidson" else None, cuts, among)
