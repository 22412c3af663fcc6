"""A query that no task can hold, judged by what is no sum over its judgments: by whole lists, or by pairs of clicks.

A loss of lists reads the scores of all held-out judgments together. Pairs of clicks are between lists: who was clicked
in one stands against who was passed over in another, so their strength follows from how often each item was clicked and
passed over in all of them, less what stands so within one list. The error of either is from what is left without each
of ten parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from concordant.apps.spark.learning_held import HELD, Held, HeldFrame, Split, Sums
from concordant.apps.spark.learning_parts import ClickScores, nobody, scores_of_parts
from concordant.apps.spark.learning_passes import Losses, Trial, narrow, products_of
from concordant.apps.spark.learning_slices import Begins, begins, first_cards, of_winners
from concordant.learning.rankers.disagreement import BetweenLists
from concordant.learning.rankers.target import PARTS, ListLoss, Target, part_of_clusters
from concordant.preferences.graphs import Batch
from concordant.preferences.ragged import Ragged
from concordant.preferences.sampling import deal, deal_part, dealt_cards, label_keys
from concordant.ranking.ranked_lists import examinations, rates_of
from concordant.ranking.scores import Scores

Floats = NDArray[np.float64]
Out = tuple[str, Split, int]
"""(HELD, split, part): what a fold holds out, without a part of it, −1: none."""


# -- in a task -----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Distinct:
    """Distinct judgments of each query that folds hold out."""

    splits: Sequence[Split]

    def __call__(self, held: Held) -> Sums:
        return Sums({(held.at.query, split): int((held.counts(split) > 0).sum()) for split in self.splits})


@dataclass(frozen=True)
class _Cards:
    """How many of these cards each item wins in each slice."""

    splits: Sequence[Split]
    distinct: Sums

    def __call__(self, held: Held) -> Sums:
        found, at = Sums(), held.at
        for split in self.splits:
            _, cards = dealt_cards(held.counts(split), self.distinct[at.query, split], PARTS)
            found[split] = Sums({(at.query, at.number): of_winners(held.prefs, cards)})
        return found


@dataclass(frozen=True)
class _Dealing:
    """Deal what folds hold out into parts, as ``judges_of_parts`` does."""

    splits: Sequence[Split]
    distinct: Sums
    begins: Mapping[Split, Begins]
    seed: int
    keys: Mapping[Split, NDArray[np.uint64]]
    """Of clusters, where there are some."""

    def __call__(self, held: Held) -> Held:
        prefs = held.prefs
        if held.slice is None and prefs.clusters is None:
            return replace(held, parts={split: narrow(self._whole(held, split)) for split in self.splits})
        if prefs.clusters is not None and prefs.cluster is not None:
            part = {split: part_of_clusters(prefs.clusters, self.seed, keys) for split, keys in self.keys.items()}
            mine = {split: each[prefs.cluster] == np.arange(PARTS)[:, None] for split, each in part.items()}
            return replace(held, parts={split: narrow(each * held.counts(split)) for split, each in mine.items()})
        at, key, parts = held.at, label_keys(held.prefs.queries, self.seed)[0], {}
        for split, places in self.begins.items():
            even, cards = dealt_cards(held.counts(split), self.distinct[at.query, split], PARTS)
            begin, total = places[at.query, at.number]
            parts[split] = narrow(deal_part(first_cards(held.prefs, cards, begin), even, cards, key, total, PARTS))
        return replace(held, parts=parts)

    def _whole(self, held: Held, split: Split) -> NDArray[np.int64]:
        """Those of whole queries."""
        count = held.counts(split)
        out, rows = held.left_out(split), np.flatnonzero(count)
        parts = np.zeros((PARTS, len(count)), np.int64)
        parts[:, rows] = deal(out.start, out.count, label_keys(out.queries, self.seed), PARTS)
        return parts


def _sizes(held: Held) -> Sums:
    """Judgments of each part of what folds hold out."""
    return Sums({(held.at.query, split): parts.sum(axis=1, dtype=np.int64) for split, parts in held.parts.items()})


@dataclass(frozen=True)
class _Between:
    """Clicks and passes of each item in parts of what folds hold out, and what of that stands within one list."""

    parts: Sequence[Out]
    thetas: Mapping[Split, Floats]

    def __call__(self, held: Held) -> Sums:
        found = Sums()
        for which in self.parts:
            scores = products_of(held, self.thetas[which[1]])
            between = BetweenLists.of(held.part(which), scores)
            found[held.at.query, which] = between
        return found


@dataclass(frozen=True)
class _Rates:
    """Clicks and examinations of the items of a query in parts of what folds hold out; lists end at their last click.

    By these rates memory reads such lists, whether some have several clicks or not.
    """

    parts: Sequence[Out]

    def __call__(self, held: Held) -> Sums:
        found = Sums()
        for which in self.parts:
            clicks, examined = examinations(Batch.whole(held.part(which)))
            found[which] = Sums(clicks=clicks, examined=examined)
        return found


@dataclass(frozen=True)
class _Scorers:
    """Scores of the items of divided queries by linear scorers."""

    thetas: Mapping[Split, Floats]

    def __call__(self, held: Held) -> Sums:
        if not held.speaks:
            return Sums()
        return Sums({(held.at.query, split): products_of(held, theta) for split, theta in self.thetas.items()})


# -- on the driver -------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Verdict:
    """What scorers lost by a part of what a fold holds out, times its weight, and what judges there."""

    lost: Floats
    weight: float
    edges: int

    @classmethod
    def by(cls, judge: ListLoss, scores: Floats) -> _Verdict:
        return cls(Losses.lost(judge, scores).sum(axis=0), float(judge.weight.sum()), judge.edges)


def dealt_parts(
    held: HeldFrame,
    slices: HeldFrame | None,
    splits: Sequence[Split],
    seed: int,
    keys: Mapping[Split, NDArray[np.uint64]],
) -> HeldFrame:
    """What is held with what folds hold out in parts, to be freed; ``slices``: those of queries that are divided."""
    if keys or slices is None:
        return held.changed(_Dealing(splits, Sums(), {}, seed, keys))
    distinct = slices.sums(_Distinct(splits))
    cards = slices.sums(_Cards(splits, distinct))
    return held.changed(_Dealing(splits, distinct, {split: begins(cards[split]) for split in splits}, seed, {}))


def losses_together(
    target: Target,
    kind: str,
    slices: HeldFrame,
    divided: Sums,
    totals: Sums,
    trials: Sequence[Trial],
    seed: int,
    keys: Mapping[Split, NDArray[np.uint64]],
    clicks: ClickScores | None = None,
) -> Sums:
    """What ``Losses`` finds of queries, of those that are divided. Errors: as of ``scores_of_parts``.

    ``clicks``: how clicks are read where all of the log tells; what is compared is then dealt into parts already.
    """
    apart = [trial.split for trial in trials if _in_parts(trial)]
    dealt = dealt_parts(slices, slices, apart, seed, keys) if apart and clicks is None else slices
    try:
        sizes = dealt.sums(_sizes) if apart else Sums()
        scorers = slices.sums(_Scorers({trial.split: trial.thetas for trial in trials}))
        found = Sums()
        for query, about in divided.items():
            held = [(trial, int(totals["divided", query, trial.split]["held"])) for trial in trials]
            held = [(trial, number) for trial, number in held if number]
            parts: dict[Out, int] = {}
            for trial, number in held:
                parts[HELD, trial.split, -1] = number
                if _in_parts(trial):
                    left = number - sizes[query, trial.split]
                    parts |= {(HELD, trial.split, part): int(left[part]) for part in range(PARTS)}
            if not parts:
                continue
            some = dealt.some(about["buckets"])
            if target.of_lists:
                own = {trial.split: scorers[query, trial.split] for trial, _ in held}
                made = _list_scores(target, kind, some, query, about, parts, clicks)
                verdicts = _of_lists(target, kind, about, parts, made, own)
            else:
                verdicts = _of_pairs(some, query, parts, {trial.split: trial.thetas for trial, _ in held}, scorers)
            for trial, _ in held:
                found += _of_query(query, trial, verdicts)
        return found
    finally:
        if dealt is not slices:
            dealt.forget()


def _in_parts(trial: Trial) -> bool:
    return trial.compared and not trial.by_query


def _list_scores(
    target: Target,
    kind: str,
    slices: HeldFrame,
    query: int,
    about: Sums,
    parts: Mapping[Out, int],
    clicks: ClickScores | None,
) -> dict[Out, Scores]:
    """Scores that parts of what folds hold out give to the items of a query."""
    if clicks is not None:
        return {which: clicks.scores(query, which) for which in parts}
    if kind != "selections":
        return scores_of_parts(slices, parts, about, target.structure_of(kind), kind, {})
    found, batch = slices.sums(_Rates([*parts])), Batch.whole(nobody(kind, about["items"]))
    return {which: rates_of(batch, "cascade", *found[which].values()) for which in parts}


def _of_lists(
    target: Target,
    kind: str,
    about: Sums,
    parts: Mapping[Out, int],
    made: Mapping[Out, Scores],
    scores: Mapping[Split, Floats],
) -> dict[Out, _Verdict]:
    """By whole lists; ``scores``: of the items of a query by the scorers of each fold."""
    nodes, found = Ragged(np.array([0, about["items"]])), dict[Out, _Verdict]()
    for which, number in parts.items():
        judge = ListLoss.of_scores(target, kind, nodes, made[which], np.array([float(number)]))
        found[which] = _Verdict.by(judge, scores[which[1]])
    return found


def _of_pairs(
    slices: HeldFrame, query: int, parts: Mapping[Out, int], thetas: Mapping[Split, Floats], scorers: Sums
) -> dict[Out, _Verdict]:
    """By pairs of clicks."""
    made, found = slices.sums(_Between([*parts], thetas)), dict[Out, _Verdict]()
    for which, number in parts.items():
        total, wrong = made[query, which].strength(scorers[query, which[1]])
        weight = float(number) if total > 0 else 0.0
        found[which] = _Verdict(weight * wrong / total if total > 0 else 0.0 * wrong, weight, int(total > 0))
    return found


def _of_query(query: int, trial: Trial, verdicts: Mapping[Out, _Verdict]) -> Sums:
    split = trial.split
    whole = verdicts[HELD, split, -1]
    found = Sums({(split, "lost"): whole.lost, (split, "weight"): whole.weight, (split, "edges"): whole.edges})
    if trial.by_query:
        return found + Sums({("divided", query, split): Sums(lost=whole.lost, weight=whole.weight)})
    if not trial.compared:
        return found
    parts = [verdicts[HELD, split, part] for part in range(PARTS)]
    found[split, "parts lost"] = np.array([part.lost for part in parts])
    found[split, "parts weight"] = np.array([part.weight for part in parts])
    return found
