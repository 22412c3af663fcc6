"""The loss that a scorer is chosen for, estimated on judgments that it was not fitted to, with its standard error."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.errors import UsageError, did_you_mean
from concordant.learning.rankers.disagreement import Disagreement
from concordant.learning.rankers.plans import model_of_clicks
from concordant.losses.gains import best_value, inverse_discount, the_gain
from concordant.losses.metrics.err import err
from concordant.losses.metrics.ndcg import ndcg
from concordant.preferences.graphs import Batch
from concordant.preferences.labels import Labels
from concordant.preferences.preferences import Preferences, keep
from concordant.preferences.ragged import Ragged
from concordant.preferences.sampling import deal, label_keys
from concordant.progress import steps
from concordant.ranking.click_models import usual_clicks
from concordant.ranking.scores import Scores
from concordant.ranking.structures import structure as find_structure

Floats = NDArray[np.float64]
TARGETS = ("pairwise", "ndcg", "err", "precision")
USUAL = {"selections": "err"}
"""The target of kinds of preferences whose target is not pairwise: a click says that a user was satisfied there."""
PARTS = 10
"""Parts of the held-out judgments that are left out in turn for the error of a loss that is no sum over judgments."""
ZERO = 1e-9
ROUNDING = 1e-12
"""Difference of losses up to which two scorers order what was held out alike."""


@dataclass(frozen=True)
class Target:
    """The loss that a scorer is chosen for: "pairwise", "ndcg@10", "err@10", "precision@5".

    Without @ ndcg and err look at the whole list. pairwise is the generalised pairwise disagreement with judgments. The
    others judge the order of a query's items by scores s of *all* its held-out judgments together, L(f, s):
    1 − Σ_r G(s_(r))/F(r) / Z(s) with G(s) = 2^s − 1 and F(r) = log2(1 + r) for NDCG (AoS (14)), F = 1 up to the cut-off
    for precision; ERR (16) reads s as chances.

    >>> Target.of("NDCG@10", "comparisons"), str(Target.of(None, "selections"))
    (Target(name='ndcg', at=10), 'err')
    """

    name: str
    at: int | None = None
    clicks: str = field(default="", repr=False)
    """The structure that clicks are read by; empty: the usual one of those that are judged by."""

    @classmethod
    def of(cls, asked: Any, kind: str) -> Target:
        """Return what was asked for, or the usual one of a kind of preferences where it is None.

        Errors (UsageError): an unknown name, a cut-off below 1 or one of the pairwise loss, precision without one.
        """
        if isinstance(asked, Target):
            return asked
        if asked is None:
            return cls(USUAL.get(kind, "pairwise"))
        match = re.fullmatch(r"\s*([A-Za-z-]+?)(?:@([0-9]{1,9}))?\s*", asked) if isinstance(asked, str) else None
        name = match[1].lower() if match else str(asked)
        if match is None or name not in TARGETS:
            raise UsageError(f"unknown target {asked!r}; {did_you_mean(name, TARGETS)} With a cut-off: ndcg@10.")
        at = None if match[2] is None else int(match[2])
        if at is not None and (at < 1 or name == "pairwise"):
            raise UsageError(f"target {asked!r}: a cut-off is at least 1, and the pairwise loss has none")
        if at is None and name == "precision":
            raise UsageError(
                "target 'precision': of a whole list every order has the same; give a cut-off: precision@5"
            )
        return cls(name, at)

    def __str__(self) -> str:
        return self.name if self.at is None else f"{self.name}@{self.at}"

    @property
    def of_lists(self) -> bool:
        """Whether it judges whole lists, through a structure, and is therefore no sum over judgments."""
        return self.name != "pairwise"

    def adds_up(self, kind: str) -> bool:
        """Whether it is a sum over judgments of a kind; pairs of clicks are between lists."""
        return not self.of_lists and kind != "selections"

    def reading(self, prefs: Preferences, structure: Any = None, options: Mapping[str, Any] | None = None) -> Target:
        """The same for parts of these judgments: clicks are read as all of them are, by a named model or the usual one.

        How a log is to be read is a fact of the log: a part of it may tell less, and the parts would be judged by
        several models. What is known of a whole log stays for its parts.
        """
        if self.clicks or prefs.kind != "selections" or not self.of_lists:
            return self
        return replace(self, clicks=model_of_clicks(structure, options) or usual_clicks(prefs))

    def structure_for(self, held: Preferences) -> str:
        """The structure whose scores of the held-out judgments a list is judged by."""
        clicks = self.clicks or (usual_clicks(held) if held.kind == "selections" else "")
        return self.structure_of(str(held.kind), clicks)

    def structure_of(self, kind: str, clicks: str = "cascade") -> str:
        """The same of a kind of judgments; ``clicks``: the usual structure of the clicks."""
        if kind == "selections":
            return clicks
        if self.name == "err":
            return "budgeted-borda"
        return {"comparisons": "log-odds", "choices": "plackett-luce"}.get(kind, "borda")

    def judge(self, held: Preferences, weight: Floats | None = None) -> Disagreement | ListLoss:
        """Return what charges scores with held-out judgments; ``weight`` is one for each query."""
        if not self.of_lists:
            return Disagreement(held, weight)
        return ListLoss(self, held, weight)


class ListLoss:
    """The loss of a target of lists: each query by the scores that a structure gives its held-out judgments.

    Items that nobody examined have no score, so a list is judged without them. It answers as ``Disagreement`` does:
    ``rates`` and ``weight`` of queries, their mean ``loss``, and ``edges``, the items of queries that can be judged.
    """

    def __init__(self, target: Target, held: Preferences, weight: Floats | None) -> None:
        batch = Batch.whole(held)
        scores = find_structure(target.structure_for(held)).function(batch)
        self.held, self.given = held, weight
        judgments = np.asarray(held.judgments * (1.0 if weight is None else weight), np.float64)
        self._read(target, str(held.kind), batch.node_groups, scores, judgments)

    @classmethod
    def of_scores(cls, target: Target, kind: str, groups: Ragged, scores: Scores, judgments: Floats) -> ListLoss:
        """That of queries whose held-out judgments have given these scores; ``groups``: their nodes."""
        self = cls.__new__(cls)
        self._read(target, kind, groups, scores, judgments)
        return self

    def _read(self, target: Target, kind: str, groups: Ragged, scores: Scores, judgments: Floats) -> None:
        self.target = target
        self.told = np.ones(len(scores.value), bool) if scores.known is None else scores.known
        found = scores.value[self.told]
        self.lists = Ragged.of_sizes(groups.sums(self.told).astype(np.int64))
        self.owner = self.lists.owner
        chances = target.name == "err" or kind == "selections"
        self.gains = np.asarray(found if chances else the_gain("2^s-1")(found), np.float64)
        longest = int(self.lists.sizes.max(initial=0))
        flat = np.ones_like if target.name == "precision" else None
        self.discount: Any = flat or (lambda rank: np.log2(1.0 + rank))
        best = best_value(self.lists.start, self.gains, inverse_discount(longest, flat, target.at))
        self.weight = np.where((best > ZERO) & (judgments > 0), judgments, 0.0)

    @property
    def edges(self) -> int:
        """Items of queries that can be judged."""
        return int(self.lists.sizes[self.weight > 0].sum())

    def rates(self, scores: Floats) -> Floats:
        """Return the loss of each query, NaN where nothing judges it; tied scores count as their mean."""
        at, given = self.target.at, {"query": self.owner, "gain": lambda s: s, "discount": self.discount}
        rate = np.full(len(self.lists), np.nan)
        if not len(scores):
            return rate
        scores = scores[self.told]
        if self.target.name == "err":
            ends = [err(scores, self.gains, self.owner, at, gain=lambda s: s, ties=ties) for ties in ("worst", "best")]
            value = 0.5 * (ends[0] + ends[1])
        else:
            value = ndcg(scores, self.gains, at=at, ties="averaged", **given)
        rate[self.lists.sizes > 0] = 1.0 - value
        rate[self.weight <= 0] = np.nan
        return rate

    def loss(self, scores: Floats) -> float:
        """Return the mean over the queries, weighted by judgments; NaN where none can be judged."""
        whole = float(self.weight.sum())
        return float((np.nan_to_num(self.rates(scores)) * self.weight).sum() / whole) if whole > 0 else float("nan")

    additive = False
    """The loss is no sum over judgments."""


def part_of_clusters(clusters: Labels, seed: int, keys: NDArray[np.uint64] | None = None) -> NDArray[np.int64]:
    """Which of ``PARTS`` parts each cluster is in, by its place among all clusters in the order of their keys.

    ``keys``: those of all clusters, sorted, where these are some of them.
    """
    own = label_keys(clusters, seed)
    return np.searchsorted(np.sort(own) if keys is None else keys, own) % PARTS


def judges_of_parts(
    judge: Disagreement | ListLoss, target: Target, seed: int, keys: NDArray[np.uint64] | None = None
) -> list[Disagreement | ListLoss]:
    """What judges without each of ``PARTS`` parts of the judgments (of the clusters, where there are some).

    ``keys``: of ``part_of_clusters``.
    """
    held = judge.held
    if held.cluster is not None and held.clusters is not None:
        share = part_of_clusters(held.clusters, seed, keys)
        shares = [np.where(share[held.cluster] == part, held.count, 0) for part in range(PARTS)]
    else:
        shares = list(deal(held.start, held.count, label_keys(held.queries, seed), PARTS))
    known = np.column_stack([held.member_groups.owner, held.members[1]]).astype(np.int64)
    rests = [held.count - part for part in shares]
    return [target.judge(keep(held, np.flatnonzero(rest), rest[rest > 0], known), judge.given) for rest in rests]


@dataclass(frozen=True)
class Difference:
    """Loss of one scorer less that of another on held-out judgments, with its standard error."""

    mean: float
    error: float


def estimate(target: Target, held: Preferences, scores: Floats, seed: int = 0) -> Difference:
    """Return the loss of scores of the nodes of ``Batch.whole(held)`` on judgments, with its standard error.

    Of the pairwise loss, a mean over judgments, that of a mean over draws, or over clusters; of lists the jackknife's.
    """
    judges = Judges(target.reading(held), [held], None, seed)
    (judge,), loss = judges.folds, judges.folds[0].loss(scores)
    if isinstance(judge, ListLoss) or not judge.additive:
        values = np.array([part.loss(scores) for part in judges.parts[0]])
        return Difference(loss, spread(values[np.isfinite(values)]))
    each, count = judge.of_judgments(scores, np.zeros(len(scores))), judge.batch.multiplicity
    each = each - float(count @ each) / float(count.sum())
    if held.cluster is None:
        square = float(count @ each**2)
    else:
        square = float((np.bincount(held.cluster[judge.batch.judgment], count * each) ** 2).sum())
    return Difference(loss, float(np.sqrt(square)) / float(judge.weight.sum()))


class Judges:
    """What charges scores with the held-out judgments of each fold, and says how surely one is better than another."""

    def __init__(self, target: Target, helds: Iterable[Preferences], weight: Floats | None, seed: int = 0) -> None:
        self.target, self.seed = target, seed
        self.folds = [target.judge(held, weight) for held in helds]
        self.weights = np.array([float(judge.weight.sum()) for judge in self.folds])

    @cached_property
    def parts(self) -> list[list[Disagreement | ListLoss]]:
        """The judges of each fold without a part of its judgments; none where the loss is a sum over judgments."""
        folds = steps("gate: parts left out", self.folds)
        return [[] if judge.additive else judges_of_parts(judge, self.target, self.seed) for judge in folds]

    def loss(self, scores: Sequence[Floats]) -> float:
        """Return the mean loss of scores, those of each fold."""
        found = [judge.loss(one) for judge, one in zip(self.folds, scores, strict=True)]
        return float((np.nan_to_num(found) * self.weights).sum() / max(float(self.weights.sum()), 1e-300))

    def difference(self, scores: Sequence[Floats], others: Sequence[Floats]) -> Difference:
        """Return the mean over folds of the loss of ``scores`` less that of ``others``, and its standard error.

        A pairwise loss is a sum over judgments, each of which is held out once: D = Σ_i d_i / W, with the error
        (Σ_i d_i²)^½ / W, of clusters (Σ_c (Σ_{i ∈ c} d_i)²)^½ / W. A loss of lists is none: its error is that of the
        delete-a-part jackknife, ((G − 1)/G Σ_g (D_g − D̄)²)^½ in each fold, with the folds added up.
        """
        total, square, keys, sums = 0.0, 0.0, [], []
        for fold, (one, other) in enumerate(zip(scores, others, strict=True)):
            judge = self.folds[fold]
            if isinstance(judge, ListLoss) or not judge.additive:
                total += self.weights[fold] * float(np.nan_to_num(judge.loss(one) - judge.loss(other)))
                square += self.weights[fold] ** 2 * _jackknife(self.parts[fold], one, other)
                continue
            each, count = judge.of_judgments(one, other), judge.batch.multiplicity
            total += float(count @ each)
            held = judge.held
            if held.cluster is None or held.clusters is None:
                square += float(count @ each**2)
            else:
                keys.append(label_keys(held.clusters, 0)[held.cluster])
                sums.append(count * each)
        if keys:
            _, code = np.unique(np.concatenate(keys), return_inverse=True)
            square += float((np.bincount(code, np.concatenate(sums)) ** 2).sum())
        whole = max(float(self.weights.sum()), 1e-300)
        return Difference(total / whole, float(np.sqrt(square)) / whole)


def _jackknife(parts: list[Disagreement | ListLoss], one: Floats, other: Floats) -> float:
    """The variance of the difference in a fold."""
    left = np.array([part.loss(one) - part.loss(other) for part in parts])
    return spread(left[np.isfinite(left)]) ** 2


def spread(left: Floats) -> float:
    """The jackknife's error of an estimate from those without each part; 0 from fewer than two."""
    if len(left) < 2:
        return 0.0
    return float(np.sqrt((len(left) - 1) / len(left) * float(((left - left.mean()) ** 2).sum())))
