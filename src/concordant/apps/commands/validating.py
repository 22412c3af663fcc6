"""What ``concordant fit --validate`` holds out, and how well the scorer orders it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from concordant.errors import InputError, UsageError, counted
from concordant.learning.features.matrix import Features
from concordant.learning.rankers.boosted import BoostedRanker
from concordant.learning.rankers.estimator import agreement, agreement_with_labels
from concordant.learning.rankers.target import Target, estimate
from concordant.learning.rankers.validation import Training, learning_rows
from concordant.losses.metrics.metrics import summarise
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Preferences

Floats = NDArray[np.float64]
SHOWN = (*range(6), *(digit * 10**power for power in range(1, 6) for digit in (1, 2, 5)))
"""Numbers of trees that a table on a terminal shows, beside the number that was chosen and the last."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Rows and judgments (or labels) that no scorer is fitted to."""

    what: str
    features: Features
    judged: Any
    training: Training
    target: Target

    @classmethod
    def of(cls, what: str, features: Features, judged: Any, ranker: Any) -> Self:
        """Match rows with judgments. Errors (InputError): items without features, nothing that could judge a score."""
        training = learning_rows(features, judged, ranker.missing_, whole=True)
        asked = ranker.target if hasattr(ranker, "target") else None
        if training.labelled:
            target = Target("ndcg", 10) if asked is None else Target.of(asked, "")
        else:
            target = Target.of(asked, str(training.prefs.kind))
        made = cls(what, features, judged, training, target)
        try:
            if training.flat:
                raise InputError("no query has two items of different label")
            made.loss(np.zeros(len(training.row)))
        except InputError as error:
            raise InputError(f"--validate: nothing can be judged by {what}: {error}") from None
        return made

    def loss(self, scores: Floats) -> float:
        """Return the loss of the target of scores of the nodes."""
        return 1.0 - agreement(self.training, scores, self.target)

    def row(self, ranker: Any) -> dict[str, Any]:
        """Return the target of a fitted ranker with its standard error, as ``concordant evaluate`` has it.

        Of one query there is no standard error. Of labels the pairwise loss is a share of the most that can be lost.
        """
        scores = ranker.predict(self.training.features)[self.training.row]
        lists, training = self.target.of_lists, self.training
        name = str(self.target) if lists else "pairwise-loss"
        if training.labelled:
            value = agreement_with_labels(scores, training.labels, training.groups.owner, self.target)
            found = summarise(value if lists else 1.0 - value)
            name = name if lists else "normalised pairwise-loss"
            mean, error, of = found.mean, found.standard_error, {"queries": found.queries}
        else:
            lost = estimate(self.target, training.prefs, scores)
            mean, error = 1.0 - lost.mean if lists else lost.mean, lost.error
            of = {"judgments": len(training.prefs)}
        return {"name": name, "mean": mean, "standard_error": error if np.isfinite(error) else None, **of}

    def curves(self, ranker: Any) -> dict[str, list[float]]:
        """Return losses after 0, 1, 2, … trees, by what they are losses of; nothing of other rankers."""
        if isinstance(ranker, BoostedRanker):
            return dict(ranker.curve_)
        try:
            staged = ranker.staged_predict(self.training.features)
            return {str(self.target): [self.loss(scores[self.training.row]) for scores in staged]}
        except (AttributeError, UsageError):  # a ranker, or a regressor, without stages
            return {}


def share_apart(
    features: Features, judged: Any, share: float, seed: int
) -> tuple[Features, Any, tuple[str, Features, Any]]:
    """Deal a share of the queries apart: return what is left of the rows and of the judgments, and what was dealt.

    Rows of a query go with it; rows that hold for every query stay in both parts. Errors (UsageError): fewer than two
    queries.
    """
    prefs = judged if isinstance(judged, Preferences) else None
    queries = (None if features.query is None else features.queries) if prefs is None else prefs.queries
    names = [] if queries is None else queries.tolist()
    if len(names) < 2:
        raise UsageError(
            f"--validate {share:g} holds out whole queries, and there is one; name a file of other judgments"
        )
    number = min(max(round(share * len(names)), 1), len(names) - 1)
    apart = np.zeros(len(names), bool)
    apart[np.random.default_rng(seed).permutation(len(names))[:number]] = True
    what = f"{share:g} of the queries"
    if prefs is None:
        held = apart[features.query]
        return features.take(~held), judged[~held], (what, features.take(held), judged[held])
    left, other = (
        prefs.select([name for name, one in zip(names, apart, strict=True) if one == side]) for side in (False, True)
    )
    if features.query is None:
        return features, left, (what, features, other)
    code = prefs.queries.codes_of(features.queries.values)[features.query]
    held = (code >= 0) & apart[code]
    return features.take(~held), left, (what, features.take(held), other)


def known_queries(judged: Any, features: Features, held: Any, held_features: Features) -> tuple[Note, ...]:
    """Return a note where queries that judge the scorer were also learned from."""
    ours = judged.queries if isinstance(judged, Preferences) else features.queries
    theirs = held.queries if isinstance(held, Preferences) else held_features.queries
    both = len({*map(str, ours.tolist())} & {*map(str, theirs.tolist())})
    text = (
        "{both:,} of {of:,} queries that the scorer is validated on have the name of one that it learns from: where "
        "they are the same, this says little about new queries"
    )
    return (Note("queries known", text, both=both, of=len(theirs)),) if both else ()


def validated(ranker: Any, held: HeldOut) -> tuple[pa.Table, pa.Table, str]:
    """Judge a fitted ranker, keep that in its status; return a table, the rows of it for a terminal, and a sentence."""
    row, curves = held.row(ranker), held.curves(ranker)
    count = next(counted(row[unit], unit) for unit in ("queries", "judgments") if unit in row)
    error = "" if row["standard_error"] is None else f" ± {row['standard_error']:.4f}"
    said = f"{row['name']} {row['mean']:.4f}{error} on what was held out: {held.what}, {count}"
    ranker.status_["validation"] = {"held_out": held.what, **row, "curves": curves, "said": said}
    if not curves:
        table = pa.Table.from_pylist([row])
        return table, table, said
    stopped = (
        {one["loss"]: one["iterations"] for one in ranker.status_.get("stopped", [])}
        if isinstance(ranker, BoostedRanker)
        else {}
    )
    rows = [
        {"curve": name, "trees": trees, "loss": loss, "chosen": trees == stopped.get(name, len(losses) - 1)}
        for name, losses in curves.items()
        for trees, loss in enumerate(losses)
    ]
    last = {name: len(losses) - 1 for name, losses in curves.items()}
    few = [one for one in rows if one["chosen"] or one["trees"] in SHOWN or one["trees"] == last[one["curve"]]]
    return pa.Table.from_pylist(rows), pa.Table.from_pylist(few), said
