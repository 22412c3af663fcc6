"""RankBoostRanker: threshold rules on single features, boosted on pairs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from concordant.errors import InputError, UsageError, did_you_mean
from concordant.learning.features.matrix import Matrix
from concordant.learning.rankers.columns import Columns
from concordant.learning.rankers.estimator import Ranker, described, restored
from concordant.learning.rankers.validation import Training
from concordant.learning.solvers.rankboost import CHOICES, RankBoost, rankboost
from concordant.losses.graded import GradedLists
from concordant.losses.surrogates import surrogate
from concordant.preferences.graphs import Batch

Floats = NDArray[np.float64]
COLUMNS = ("feature", "threshold", "alpha", "direction", "missing", "z")


class RankBoostRanker(Ranker):
    """RankBoost: each round adds the rule "feature above a threshold" that orders the weighted pairs best.

    It descends on the exponential loss of every judgment by itself (``EdgeRanker("rankboost")`` is its linear sibling),
    so it is consistent for nothing beyond two items; a baseline for curved scores. y is preferences, or relevance
    labels: then every item against every one of lower label in its query, in linear time.

    Parameters
    ----------
    rounds : rules at most; fewer where no rule orders the pairs better than chance.
    choose : 'r' (largest |r|) or 'z' (least normaliser; a pass over the pairs for every feature, preferences only).
    thresholds : cuts of each feature that are tried, evenly by rows; None: all.
    smoothing : ε of the rules' coefficients; None is 1/(2 · pairs).
    missing : 'raise', 'keep' (a missing value is above no threshold or above all, whichever is better), 'mean',
        'median' or 'zero'.

    Attributes: ``rules_`` (a ``RankBoost``), ``status_``. Errors: InputError, UsageError.

    >>> X, query = [[1.0], [2.0], [3.0], [4.0]], ["q"] * 4
    >>> ranker = RankBoostRanker(rounds=5).fit((X, query, list("abcd")), [0, 1, 2, 0])  # the third is best
    >>> int(ranker.predict(X).argmax())
    2

    Source: Freund, Iyer, Schapire and Singer, JMLR 4 (2003).
    """

    # thresholds do not see the scale of a feature
    standardise = False
    log = False

    def __init__(
        self,
        rounds: int = 100,
        *,
        choose: str = "r",
        thresholds: int | None = 255,
        smoothing: float | None = None,
        missing: str = "raise",
    ) -> None:
        self.rounds = rounds
        self.choose = choose
        self.thresholds = thresholds
        self.smoothing = smoothing
        self.missing = missing

    @property
    def foreign_(self) -> None:
        """None: the rules are concordant's own."""

    def _check(self) -> None:
        if self.choose not in CHOICES:
            raise UsageError(f"unknown choice {self.choose!r}; {did_you_mean(str(self.choose), CHOICES)}")

    def _learn(self, training: Training, columns: Columns) -> None:
        pairs: Any
        if training.labelled:
            pairs = GradedLists.of(training.labels, training.start)
            some = bool(pairs.pairs.any())
        else:
            pairs = surrogate("rankboost").objective(Batch.whole(training.prefs))
            some = len(pairs.edges.weight) > 0
        if not some:
            raise InputError("no query has two items of which one is preferred: RankBoost has nothing to learn from")
        self.rules_ = rankboost(
            columns.matrix,
            pairs,
            rows=training.row,
            weight=training.share,
            rounds=self.rounds,
            choose=self.choose,
            smoothing=self.smoothing,
            thresholds=self.thresholds,
        )
        self.status_: dict[str, Any] = {
            "status": self.rules_.status,
            "iterations": len(self.rules_.alpha),
            "gradient": None,
            "exponential_loss": float(np.prod(self.rules_.z)),
            "notes": list(training.notes),
        }

    def _scores(self, Z: Matrix) -> Floats:
        return self.rules_.scores(Z)

    def to_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return all that scoring needs: values that JSON keeps, and arrays. Errors: NotFittedError."""
        arrays = {name: np.asarray(getattr(self.rules_, name)) for name in COLUMNS} if hasattr(self, "rules_") else {}
        return described(self), arrays

    @classmethod
    def from_state(cls, values: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return the fitted ranker of a ``to_state``; its scores have the same bits. Errors: InputError."""
        made = restored(cls, values)
        columns: dict[str, Any] = {name: arrays[name] for name in COLUMNS if name in arrays}
        kinds = {name: "f" if name in ("threshold", "alpha", "z") else "i" for name in COLUMNS}
        if len(columns) < len(COLUMNS) or any(
            column.dtype.kind != kinds[name] or column.ndim != 1 or len(column) != len(columns["alpha"])
            for name, column in columns.items()
        ):
            raise InputError(
                "the state of the ranker cannot be read: columns of its rules are missing or not of one length"
            )
        width = made.n_features_in_
        if not ((columns["feature"] >= 0) & (columns["feature"] < width)).all():
            raise InputError(f"the state of the ranker cannot be read: a rule is not on one of the {width:,} features")
        if not (
            np.isfinite(columns["alpha"]).all()
            and not np.isnan(columns["threshold"]).any()
            and (np.abs(columns["direction"]) == 1).all()
            and np.isin(columns["missing"], (0, 1)).all()
        ):
            raise InputError("the state of the ranker cannot be read: a rule with numbers that no rule has")
        made.rules_ = RankBoost(**columns, features=width, status=str(made.status_["status"]))
        return made
