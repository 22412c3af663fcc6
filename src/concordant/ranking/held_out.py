"""How well the scores of a ranking foretell judgments that it has not seen.

Each pair of a judgment is predicted: P(win) : P(tie) : P(loss) of ``prediction``. Without a probability of ties a tie
is half a win each way, y = ½. Of one draw, with w its strength, y what happened and p what was expected,

- accuracy: whether the likelier side won (½ where both were as likely); ties are left out;
- log-loss: −log of the probability of what happened, −(y log p + (1 − y) log(1 − p)) with half ties;
- brier: (y − p)², with three outcomes, or one for each grade of a preference, the sum over them (an outcome that no
  judgment ranked had, a grade or a tie, has the probability 0);
- calibration slope: b of the logistic regression of y on b log(p/(1 − p)), with Davidson's ties of wins and losses
  alone (Cox, Biometrika 45, 1958). 1: as sure as it should be; below, too sure.

Means are Σ wl/Σ w, their standard errors those of a ratio over independent draws, or over clusters; of clusters in two
ways V_A + V_B − V_AB (Cameron, Gelbach and Miller 2011), in three ways likewise, and at least the largest of one way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy.special import expit

from concordant.errors import UsageError, few
from concordant.preferences.counts import rows_alike
from concordant.preferences.graphs import Batch
from concordant.preferences.labels import Labels
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Preferences
from concordant.ranking.cumulative import Cuts
from concordant.ranking.problem import davidson_probabilities, win_probability

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
BINS = np.array([0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
"""Ends of the bins of the calibration table, by the probability of the likelier side."""
STEPS = 50


@dataclass(frozen=True, eq=False)
class Known:
    """Scores of items by their labels as texts, row by row."""

    query: pa.Array | None
    """None: the scores hold in every query."""
    item: pa.Array
    score: Floats
    component: Ints
    """Scores of different components of a query are not comparable; −1 for an item without a score of its own."""

    def rows(self, prefs: Preferences, query: NDArray[np.int32], item: NDArray[np.int32]) -> Ints:
        """Return the row of each (query, item) of some preferences, by their codes; −1 where there is none."""
        items, own = Labels.encode(self.item)
        code = items.codes_of(prefs.items.values.cast(pa.large_string()))
        wanted, key = code[item].astype(np.int64), own.astype(np.int64)
        if self.query is not None:
            queries, own_query = Labels.encode(self.query)
            of_query = queries.codes_of(prefs.queries.values.cast(pa.large_string()))[query]
            wanted = np.where(of_query < 0, -1, wanted + np.where(wanted < 0, 0, of_query * np.int64(len(items))))
            wanted[code[item] < 0] = -1
            key = key + own_query * np.int64(len(items))
        sorter = np.argsort(key, kind="stable")
        if len(key) > 1 and (np.diff(key[sorter]) == 0).any():
            twice = self.item[int(sorter[np.flatnonzero(np.diff(key[sorter]) == 0)[0]])].as_py()
            raise UsageError(f"the ranking has the item {twice!r} twice{'' if self.query is None else ' in a query'}")
        at = np.minimum(np.searchsorted(key[sorter], wanted), max(len(key) - 1, 0))
        found = sorter[at]
        return np.where((wanted >= 0) & (key[found] == wanted), found, -1).astype(np.int64)


@dataclass(frozen=True, eq=False)
class HeldOut:
    """How predictions did on judgments that they had not seen."""

    table: pa.Table
    """Columns name, mean, standard_error, judgments (those that could be predicted)."""
    calibration: pa.Table
    """Columns from, to (what is expected of the likelier side, ties half), predicted, observed, standard_error,
    strength."""
    notes: tuple[Note, ...]


@dataclass(frozen=True, eq=False)
class Predicted:
    """Held-out pairs and what was expected of them; ``together`` puts several parts in one."""

    draws: _Draws
    margin: Floats
    """Of each pair: of the winner (of a tie, one side) over the other."""
    tie: NDArray[np.bool_]
    foretold: _Foretold
    unknown: tuple[Any, ...]
    """Items without a score."""
    lost: int
    """Judgments that were not predicted."""
    of: int
    never: tuple[str, ...]
    """Outcomes of these judgments that had no probability."""

    @classmethod
    def together(cls, parts: Sequence[Predicted]) -> Predicted:
        """Return what several parts of one log hold."""
        return cls(
            _Draws.together([part.draws for part in parts]),
            np.concatenate([part.margin for part in parts]),
            np.concatenate([part.tie for part in parts]),
            _Foretold.together([part.foretold for part in parts]),
            tuple(dict.fromkeys(item for part in parts for item in part.unknown)),
            sum(part.lost for part in parts),
            sum(part.of for part in parts),
            tuple(sorted({name for part in parts for name in part.never})),
        )

    def judged(self) -> HeldOut:
        """Judge the predictions. Errors: UsageError where nothing could be predicted."""
        if not len(self.margin):
            raise UsageError("no judgment compares two items that the ranking has scores for, of one component")
        return _judged(self.draws, self.margin, self.tie, self.foretold, self._notes())

    def _notes(self) -> tuple[Note, ...]:
        """Say which judgments were not predicted, and why, and which came out as none had before."""
        notes: list[Note] = []
        if self.never:
            text = (
                "{judgments:judgments} came out as none that was ranked ({never}), which has the probability 0 there: "
                "the log-loss is infinite, the other rows are not; put rare grades together, or rank more judgments"
            )
            number = int(self.draws.times[self.draws.holder[np.isinf(self.foretold.loss)]].sum())
            notes.append(Note("no probability", text, judgments=number, never=", ".join(self.never)))
        if not self.lost:
            return tuple(notes)
        text = "{judgments:judgments} of {of:,} not predicted: "
        if self.unknown:
            text += "the ranking has no score of {items}"
        else:
            text += "no chain of comparisons connects their items in the ranking"
        shown = self.unknown[:8]
        numbers = {"judgments": self.lost, "of": self.of}
        return (*notes, Note("not predicted", text, items=shown, others=len(self.unknown) - len(shown), **numbers))


def held_out(
    prefs: Preferences, known: Known, beta: Mapping[str, float], log_nu: float | None, cuts: Cuts | None = None
) -> HeldOut:
    """Judge predictions by held-out judgments: scores by label, coefficients of covariates, log ν of ties, thresholds.

    Errors (UsageError): covariates that the judgments lack, no judgment of which both items are known.
    """
    return predicted(prefs, known, beta, log_nu, cuts).judged()


def predicted(
    prefs: Preferences,
    known: Known,
    beta: Mapping[str, float],
    log_nu: float | None,
    cuts: Cuts | None = None,
    among: Preferences | None = None,
) -> Predicted:
    """Return what scores expect of held-out judgments, ``among`` being the log that they are a part of.

    Errors (UsageError): covariates that the judgments lack.
    """
    batch = Batch.whole(prefs)
    edges = batch.edges
    if missing := [name for name in beta if name not in prefs.covariate_names]:
        raise UsageError(f"the ranking knows the covariates {few(missing)}, which these judgments lack")
    graph = batch.owner[edges.winner].astype(np.int64)
    nodes = (edges.winner, edges.loser)
    sides = [known.rows(prefs, batch.query[graph], batch.item[node]) for node in nodes]
    component = [np.where(side < 0, -1, known.component[side]) for side in sides]
    there = (component[0] == component[1]) & (component[0] >= 0)
    margin = known.score[sides[0]] - known.score[sides[1]]
    for name, slope in beta.items():
        if edges.covariates is not None:
            margin = margin + slope * edges.covariates[:, prefs.covariate_names.index(name)]
    tie, strength = edges.tie[there], edges.strength[there]
    weight = strength if cuts is None else np.ones_like(strength)
    draws = _Draws.of(batch, edges.holder[there], weight, among or prefs)
    out = np.setdiff1d(edges.holder[~there], edges.holder[there])
    foretold = _foretold(margin[there], tie, strength, log_nu, cuts)
    impossible = np.isinf(foretold.loss) & (tie if cuts is None else True)
    grades = np.unique(np.where(tie, 0.0, strength)[impossible]).tolist()
    unknown = np.unique(batch.item[np.concatenate([node[own < 0] for node, own in zip(nodes, component, strict=True)])])
    return Predicted(
        draws,
        margin[there],
        tie,
        foretold,
        tuple(prefs.items[int(code)] for code in unknown),
        int(batch.multiplicity[out].sum()),
        int(batch.multiplicity.sum()),
        tuple("a tie" if grade == 0 else f"grade {grade:g}" for grade in grades),
    )


@dataclass(frozen=True, eq=False)
class _Foretold:
    """What was expected of the winner (of a tie, one side), and how far it was from what happened."""

    share: Floats
    """Wins of the winner, ties half."""
    loss: Floats
    square: Floats
    log_odds: Floats
    """Of a win against a loss."""
    tied: bool
    """Whether ties have a probability of their own."""

    @classmethod
    def together(cls, parts: Sequence[_Foretold]) -> _Foretold:
        share, loss, square, log_odds = (
            np.concatenate(columns)
            for columns in zip(*((part.share, part.loss, part.square, part.log_odds) for part in parts), strict=True)
        )
        return cls(share, loss, square, log_odds, parts[0].tied)


def _foretold(
    margin: Floats, tie: NDArray[np.bool_], strength: Floats, log_nu: float | None, cuts: Cuts | None
) -> _Foretold:
    with np.errstate(divide="ignore"):
        if cuts is not None:
            found = {name: one.value for name, one in cuts.chances(margin).items()}
            several = len(cuts.levels) > 1
            names = [name for name in found if not several or name not in ("win", "loss")]
            at = np.where(tie, "tie", np.char.mod("win_%d", strength.astype(int)) if several else "win")
            happened, square = np.zeros_like(margin), np.where(np.isin(at, names), 0.0, 1.0)  # P(what never was) = 0
            for name in names:
                happened += found[name] * (at == name)
                square += ((at == name) - found[name]) ** 2
            return _Foretold(cuts.prefers(margin), -np.log(happened), square, cuts.log_odds(margin), True)
        share, other = win_probability(margin)
        if log_nu is None:
            loss = -np.where(tie, 0.5 * (np.log(share) + np.log(other)), np.log(share))
            return _Foretold(share, loss, (np.where(tie, 0.5, 1.0) - share) ** 2, margin, False)
        win, lost, tied = davidson_probabilities(margin, np.full(len(margin), log_nu))
        loss = -np.log(np.where(tie, tied, win))
        square = (~tie - win) ** 2 + (tie - tied) ** 2 + lost**2
        return _Foretold(win + 0.5 * tied, loss, square, margin, True)


@dataclass(frozen=True, eq=False)
class _Draws:
    """Pairs that were judged, and which of them are independent of each other."""

    holder: Ints
    """The judgment of each pair."""
    strength: Floats
    times: Floats
    """How often each judgment was made."""
    ways: tuple[Ints, ...]
    """Clusters of each judgment; none: every draw by itself."""

    @classmethod
    def of(cls, batch: Batch, holder: Ints, strength: Floats, among: Preferences) -> _Draws:
        """``among``: the log that the judgments are of, whose clusters are named."""
        ways: tuple[Ints, ...] = ()
        own = batch.prefs
        if own.cluster is not None and own.clusters is not None and among.clusters is not None:
            cell = among.clusters.codes_of(own.clusters.values)[own.cluster[batch.judgment]]
            ways = tuple(codes[cell].astype(np.int64) for codes in among.cluster_codes)
        return cls(holder, strength, batch.multiplicity.astype(float), ways)

    @classmethod
    def together(cls, parts: Sequence[_Draws]) -> _Draws:
        first = np.cumsum([0, *(len(part.times) for part in parts)])
        return cls(
            np.concatenate([part.holder + at for part, at in zip(parts, first, strict=False)]),
            np.concatenate([part.strength for part in parts]),
            np.concatenate([part.times for part in parts]),
            tuple(np.concatenate(way) for way in zip(*(part.ways for part in parts), strict=True)),
        )

    @property
    def weight(self) -> Floats:
        """Of each pair: strength, as often as it was judged."""
        return self.strength * self.times[self.holder]

    def variance(self, pull: Floats) -> float:
        """Variance of the sum of a pair's ``pull`` over all draws."""
        own = np.asarray(np.bincount(self.holder, self.strength * pull, len(self.times)), np.float64)
        seen = np.bincount(self.holder, minlength=len(self.times)) > 0
        if not self.ways:
            count = float(self.times[seen].sum())
            return float((self.times * own**2).sum()) * count / max(count - 1, 1)
        crossed = 0.0
        for number in range(1, len(self.ways) + 1):
            for chosen in combinations(self.ways, number):
                cell = rows_alike(*chosen)[1]
                crossed += (-1.0) ** (number + 1) * self._by(cell, own, seen)
        return max(crossed, *(self._by(way, own, seen) for way in self.ways))

    def _by(self, way: Ints, own: Floats, seen: NDArray[np.bool_]) -> float:
        sums = np.bincount(way, self.times * own)
        count = len(np.unique(way[seen]))
        return float((sums**2).sum()) * count / (count - 1) if count > 1 else np.nan

    def mean(self, value: Floats, chosen: NDArray[np.bool_] | None = None) -> tuple[float, float]:
        """Mean of a pair's value, and its standard error."""
        weight = self.weight if chosen is None else np.where(chosen, self.weight, 0.0)
        total = float(weight.sum())
        if total == 0:
            return float("nan"), float("nan")
        middle = float((weight * value).sum() / total)
        if not np.isfinite(middle):  # what happened had no probability
            return middle, float("nan")
        pull = value - middle if chosen is None else np.where(chosen, value - middle, 0.0)
        return middle, float(np.sqrt(self.variance(pull)) / total)


def _judged(
    draws: _Draws, margin: Floats, tie: NDArray[np.bool_], found: _Foretold, notes: tuple[Note, ...]
) -> HeldOut:
    """Judge predictions of the winner's (of a tie, one side's) margin."""
    y = np.where(tie, 0.5, 1.0)
    hit = np.where(margin == 0, 0.5, (margin > 0).astype(float))
    rows = [("accuracy", *draws.mean(hit, ~tie))]
    rows += [("log-loss", *draws.mean(found.loss)), ("brier", *draws.mean(found.square))]
    decided, won = (np.where(tie, 0.0, found.log_odds), np.ones_like(y)) if found.tied else (margin, y)
    rows.append(("calibration slope", *_slope(draws, decided, won)))
    judgments = int(draws.times[np.unique(draws.holder)].sum())
    names = ("name", "mean", "standard_error")
    table = pa.table({name: [row[at] for row in rows] for at, name in enumerate(names)})
    table = table.append_column("judgments", pa.array([judgments] * len(rows)))
    favourite, won = np.maximum(found.share, 1.0 - found.share), np.where(margin >= 0, y, 1 - y)
    place = np.clip(np.searchsorted(BINS, favourite, side="right") - 1, 0, len(BINS) - 2)
    bins = []
    for at in np.unique(place).tolist():
        own = place == at
        observed, error = draws.mean(won, own)
        ends = {"from": BINS[at], "to": BINS[at + 1], "predicted": draws.mean(favourite, own)[0]}
        strength = float(draws.weight[own].sum())
        bins.append({**ends, "observed": observed, "standard_error": error, "strength": strength})
    return HeldOut(table, pa.Table.from_pylist(bins), notes)


def _slope(draws: _Draws, margin: Floats, y: Floats) -> tuple[float, float]:
    """Calibration slope and its standard error."""
    weight, slope = draws.weight, 1.0
    if not ((margin > 0) | (y < 1)).any() or not ((margin < 0) | (y < 1)).any() or not margin[margin != 0].any():
        return float("nan"), float("nan")  # favourites (or the others) always won: no finite slope
    for _ in range(STEPS):
        p = expit(slope * margin)
        step = float((weight * (y - p) * margin).sum() / max((weight * p * (1 - p) * margin**2).sum(), 1e-300))
        slope += float(np.clip(step, -1, 1))
        if abs(step) < 1e-10:
            break
    p = expit(slope * margin)
    curve = float((weight * p * (1 - p) * margin**2).sum())
    return slope, float(np.sqrt(draws.variance((y - p) * margin)) / curve)


def matched(*, query: pa.Array | None, item: pa.Array, score: Floats, component: Ints) -> Known:
    """Return scores by labels as texts, of whatever type these are."""
    text = None if query is None else pc.cast(query, pa.large_string())
    return Known(text, pc.cast(item, pa.large_string()), score, component)
