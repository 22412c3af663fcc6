"""People and a judge model together: scores of people's votes, with what a model that judged everything adds to them.

People decide n of N comparisons, drawn at random, a judge model all N. The judge's own scores are fitted to all N
(maximum likelihood, with the judge's preference for what stands first); what it says of a comparison beyond them is its
surprise, r = f − σ(x'θ_f), whose mean over the N is nothing. With e = y − σ(x'θ) the people's surprises at their own
scores and H the curvature of their likelihood, the score of item i is

    θ_i − λ [H⁻¹ Σ x r]_i,   λ = Σ_i C_i / Σ_i V_i,   its variance  (1/n − 1/N) V(ψ − λφ) + V(ψ) / N,

to first order (it is the fit to the votes y − λ r).
ψ = H⁻¹ x e and φ = H⁻¹ x r of the comparisons that people decided, scores measured against the mean of all items. C is
their covariance and V that of φ; each squared surprise counts 1/(1 − h) times, h its leverage, since the scores are
fitted to it. λ is thus the one by which the variances are least in sum, between 0 and 1; an item that it would make
less sure has λ = 0. So no interval is wider than by people alone, and the judge may be as wrong as it likes: it only
has to be wrong in the same way where people looked and where they did not, so where its verdicts set a score no limit a
weak prior may. ``these``: the intervals are those of the
scores if people decided all N, without the last term. Intervals are by Student's law with as many degrees of freedom as
people decided comparisons of the item, less one.

Scores of a system that are means over tasks (ratings by people on some tasks, by a judge on all) have the same form:
x is the system, ψ and φ are scores less their means.

Source: Angelopoulos, Duchi and Zrnic, PPI++: efficient prediction-powered inference, 2023 (arXiv:2311.01453), with the
judge's surprises at its own scores as in Miao and Lu, 2024 (arXiv:2405.20039); for two-phase samples Chen and Chen,
JRSS B 62, 2000; leverages: MacKinnon and White, Journal of Econometrics 29, 1985 (HC2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import chi2

from concordant.errors import CannotRank, InputError, UsageError, few
from concordant.preferences.connectivity import connected
from concordant.preferences.labels import Labels
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Comparisons, Lists, Preferences
from concordant.preferences.ragged import Ragged
from concordant.ranking.covariance import t_quantile

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
STEPS, TOLERANCE = 100, 1e-10
MOST = 2_000
"""Items whose curvature is inverted."""
PRIOR = 0.01
"""Precision of the normal prior of a judge's scores, where its verdicts alone set them no limit."""
NO_MAXIMUM = "the scores of these comparisons have no maximum likelihood"
NOT_RANDOM = 0.001
"""Below this p-value a note says that the comparisons of the people look chosen."""


# -- the fit and what a surprise moves ---------------------------------------------------------------------------------
def fit_scores(
    first: Ints, second: Ints, won: Floats, items: int, side: Floats | None = None, prior: float = 0.0
) -> tuple[Floats, Floats]:
    """Fit scores by maximum likelihood, P(first wins) = σ(s_first − s_second + γ side); ``prior``: its precision.

    ``won``: 1, 0, or ½ where they tied; shapes (comparisons,). Returned are the scores less their mean and, with
    ``side``, γ after them; and the probabilities. Errors: CannotRank where there is no maximum.
    """
    pair = first * items + second
    size = items + (side is not None)
    theta = np.zeros(size)
    for _ in range(STEPS):
        chance = _chances(theta, first, second, side)
        off = won - chance
        slope = np.bincount(first, off, size) - np.bincount(second, off, size)
        bent = chance * (1.0 - chance)
        H = np.zeros((size, size))
        H[:items, :items] = _laplacian(pair, bent, items) + 1.0 / items
        H += prior * np.eye(size)
        if side is not None:
            slope[items] = off @ side
            H[items, :items] = np.bincount(first, bent * side, items) - np.bincount(second, bent * side, items)
            H[:items, items] = H[items, :items]
            H[items, items] += (bent * side) @ side
        try:
            step = np.linalg.solve(H, slope - prior * theta)
        except np.linalg.LinAlgError:
            raise CannotRank(NO_MAXIMUM) from None
        theta = theta + step * min(1.0, 2.0 / max(float(np.abs(step).max()), 1e-300))
        if np.abs(step).max() < TOLERANCE:
            break
    else:
        raise CannotRank(NO_MAXIMUM)
    return theta, _chances(theta, first, second, side)


def _chances(theta: Floats, first: Ints, second: Ints, side: Floats | None) -> Floats:
    margin = theta[first] - theta[second]
    return np.asarray(expit(margin if side is None else margin + theta[-1] * side), np.float64)


def _laplacian(pair: Ints, weight: Floats, items: int) -> Floats:
    both = np.bincount(pair, weight, items * items).reshape(items, items)
    both = both + both.T
    return np.asarray(np.diag(both.sum(1)) - both, np.float64)


def inverse_curvature(first: Ints, second: Ints, chance: Floats, items: int, prior: float = 0.0) -> Floats:
    """Return the inverse of the curvature of a fit, scores less their mean, (items, items)."""
    bent = chance * (1.0 - chance)
    inverse = np.linalg.inv(_laplacian(first * items + second, bent, items) + 1.0 / items + prior * np.eye(items))
    return np.asarray(inverse - 1.0 / items / (1.0 + prior), np.float64)


# -- both together -----------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class Powered:
    """Scores by people and a judge together; arrays have an entry for each item."""

    score: Floats
    standard_error: Floats
    people: Floats
    people_error: Floats
    weight: Floats
    """λ: how much of the judge is believed."""
    power: Floats
    """Squared correlation of what people and the judge move: the share of the variance that the judge can save."""
    shift: Floats
    """How far the judge's scores on the comparisons of the people are from its scores on all, by people's measure."""
    bias_error: Floats
    """Standard error of the judge's own score less this one."""


def powered(
    score: Floats, ours: Floats, theirs: Floats, shift: Floats, root: Floats, part: Floats, *,
    own: Floats | None = None, these: bool = False,
) -> Powered:  # fmt: skip
    """Put people's scores and a judge's surprises together.

    Parameters
    ----------
    score : people's scores, (items,).
    ours, theirs : what the surprises of people and of the judge move in each comparison of the people, (n, items).
    shift : by how much the judge's scores are off on the comparisons of the people, (items,).
    own : what the judge's surprises move in its own scores, times N/n; None, as ``theirs``.
    root : √(1/(1 − h)) for each of these comparisons, or for each entry.
    part : share of the comparisons that people decided, n/N, (items,).
    these : whether the errors are those of the scores of these N comparisons.
    """
    fine, other = ours * root, theirs * root
    apart = (((ours - (theirs if own is None else own)) * root) ** 2).sum(0)
    alone, both, judge = (fine * fine).sum(0), (fine * other).sum(0), (other * other).sum(0)
    best = float(np.clip(both.sum() / judge.sum(), 0.0, 1.0)) if judge.sum() > 0 else 0.0
    left = alone - 2.0 * best * both + best * best * judge
    weight = np.where(left < alone, best, 0.0)
    left = np.minimum(left, alone)
    beyond, bias = (0.0, 0.0) if these else (part * alone, part * apart)
    return Powered(
        score=score - weight * shift,
        standard_error=np.sqrt((1.0 - part) * left + beyond),
        people=score,
        people_error=np.sqrt((1.0 - part) * alone + beyond),
        weight=weight,
        power=np.divide(both * both, alone * judge, out=np.zeros(len(alone)), where=alone * judge > 0),
        shift=shift,
        bias_error=np.sqrt((1.0 - part) * left + bias),
    )


# -- the result --------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, eq=False)
class PredictionPowered:
    """Scores of people's votes with what a judge model adds; ``prediction_powered`` makes it.

    >>> import concordant as cc
    >>> judge = cc.Preferences.from_ratings([1, 1, 2, 2, 3, 3], [*"xyxyxy"], [1, 3, 2, 3, 4, 5])
    >>> both = cc.prediction_powered(judge.select([1, 2]), judge)
    >>> both.to_arrow().select(["item", "people_score", "judge_score", "decided", "of"]).to_pylist()[0]
    {'item': 'y', 'people_score': 3.0, 'judge_score': 3.6666666666666665, 'decided': 2, 'of': 3}
    """

    items: Labels
    found: Powered
    judge: Floats
    """The judge's own scores, on all that it judged."""
    judged: Ints
    """Comparisons (or tasks) of each item that people decided."""
    of: Ints
    """Those that the judge decided."""
    freedom: Floats
    """Degrees of freedom of Student's law, by which the intervals are: one less than ``judged``."""
    level: float
    scored: bool
    """Whether scores are means over tasks, and not those of Bradley and Terry."""
    first_side: tuple[float, float] | None = None
    """How far the judge prefers what stands first (log-odds), and its standard error."""
    notes: tuple[str, ...] = ()

    def to_arrow(self) -> pa.Table:
        """Return a row for each item, the best first.

        Columns: item, score and its interval; by people alone; by the judge alone (judge_score) and its bias, the
        judge's score less that of both together, with an interval; power (share of the variance that this judge can
        save), weight (λ), labels (how many labels of people alone would be as sure), decided (comparisons or tasks that
        people decided), of (that the judge did).
        """
        one = self.found
        z = self.reach
        bias = self.judge - one.score
        with np.errstate(divide="ignore", invalid="ignore"):
            labels = self.judged * (one.people_error / one.standard_error) ** 2
        columns: dict[str, Any] = {
            "score": one.score, "standard_error": one.standard_error,
            "lower": one.score - z * one.standard_error, "upper": one.score + z * one.standard_error,
            "people_score": one.people, "people_error": one.people_error,
            "people_lower": one.people - z * one.people_error, "people_upper": one.people + z * one.people_error,
            "judge_score": self.judge, "bias": bias,
            "bias_lower": bias - z * one.bias_error, "bias_upper": bias + z * one.bias_error,
            "power": one.power, "weight": one.weight, "labels": labels, "decided": self.judged, "of": self.of,
        }  # fmt: skip
        order = np.argsort(-one.score, kind="stable")
        table = {"item": self.items.take(order)}
        return pa.table(table | {name: pa.array(np.asarray(value)[order]) for name, value in columns.items()})

    @property
    def reach(self) -> Floats:
        """Standard errors from a score to the ends of its interval, (items,)."""
        return np.array([t_quantile(0.5 + self.level / 2, float(df)) for df in self.freedom])

    @property
    def saved(self) -> float:
        """How much narrower the intervals are than by people alone, on average."""
        return float(1.0 - np.mean(self.found.standard_error / self.found.people_error))

    def lines(self) -> Iterator[str]:
        """Yield what a person wants to know of it, as sentences."""
        what = "scores" if self.scored else "comparisons"
        total, some = int(self.of.sum()), int(self.judged.sum())
        if not self.scored:
            total, some = total // 2, some // 2
        text = (
            "people decided {some:,} of {total:,} {what}, the judge all; with it the intervals are {saved:.1%} "
            "narrower than by people alone, as if people had decided {worth:,}"
        )
        worth = round(some * float(np.mean((self.found.people_error / self.found.standard_error) ** 2)))
        yield Note("people and judge", text, some=some, total=total, what=what, saved=self.saved, worth=worth)
        beyond = np.abs(self.judge - self.found.score) > self.reach * self.found.bias_error
        text = "the judge alone is off by more than chance for {beyond:,} of {of_all:items}"
        yield Note("judge alone", text, beyond=int(beyond.sum()), of_all=len(beyond))
        if self.first_side is not None:
            value, error = self.first_side
            z = t_quantile(0.5 + self.level / 2, np.inf)
            low, middle, high = expit([value - z * error, value, value + z * error])
            text = "of two equally good ones the judge prefers what stands first in {share:.0%}"
            text += " ({low:.0%} … {high:.0%})"
            yield Note("judge first side", text, share=float(middle), low=float(low), high=float(high))


def prediction_powered(
    people: Preferences, judge: Preferences, *, level: float = 0.95, these: bool = False
) -> PredictionPowered:
    """Estimate what people would say of everything, from their labels on some of it and a judge's on all.

    Comparisons are matched by their clusters, which name each of them: ``read(…, cluster="question_id")``. A tie is
    half a win each way; several votes on one comparison count as their mean. Read with ``home="left"``, the judge's
    preference for what stands first is estimated and taken out. Ratings are matched by query (the task) and item.

    The comparisons of the people have to be drawn at random from those of the judge; what speaks against it is noted.
    Formula and source: ``concordant.boards.prediction_powered``.

    Parameters
    ----------
    people : comparisons or ratings by people.
    judge : the same by a judge model, of all that people decided and more.
    level : confidence level of the intervals.
    these : intervals of the scores if people decided all that the judge did; else of new ones like these, too.

    Errors: InputError where comparisons cannot be matched; CannotRank where the labels of the people set no limit to a
    score; UsageError.

    >>> import concordant as cc
    >>> pairs = [("a", "b"), ("b", "a")] * 40 + [("a", "b")] * 60
    >>> judge = cc.Preferences.from_comparisons(*zip(*pairs), cluster=list(range(140)))
    >>> people = cc.Preferences.from_comparisons(*zip(*pairs[30:90]), cluster=list(range(30, 90)))
    >>> both = cc.prediction_powered(people, judge)
    >>> both.found.people.round(3).tolist(), both.found.score.round(3).tolist(), both.saved > 0.2
    ([0.168, -0.168], [0.437, -0.437], True)
    """
    if not 0 < level < 1:
        raise UsageError(f"level must lie between 0 and 1, not {level}")
    if isinstance(people, Comparisons) and isinstance(judge, Comparisons):
        return _of_comparisons(people, judge, level, these)
    if isinstance(people, Lists) and isinstance(judge, Lists) and people.kind == judge.kind == "ratings":
        return _of_ratings(people, judge, level, these)
    kinds = f"{people.kind or 'nothing'} by people and {judge.kind or 'nothing'} by the judge"
    raise UsageError(f"people and a judge are put together by comparisons or by ratings of both, not {kinds}")


# -- comparisons -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Units:
    """Comparisons by their ids, in order: first < second by code."""

    first: Ints
    second: Ints
    won: Floats
    side: Floats | None
    ids: Labels

    def only(self, fine: NDArray[np.bool_], code: Ints) -> _Units:
        """Return some of them, with other codes of items."""
        side = None if self.side is None else self.side[fine]
        return _Units(code[self.first[fine]], code[self.second[fine]], self.won[fine], side, self.ids.only(fine)[0])


def _units(prefs: Comparisons, items: Ints, who: str) -> _Units:
    """Return a row for each comparison, the mean of its votes; ``items``: new code of each item."""
    if prefs.cluster is None or prefs.clusters is None:
        raise UsageError(f"what {who} decided has no ids to match it by: name a column of them as cluster")
    if prefs.weighted:
        raise UsageError(f"what {who} decided has strengths (weights); here all votes count alike")
    winner, loser, count = items[prefs.winner], items[prefs.loser], prefs.count.astype(np.float64)
    swap = winner > loser
    won = np.where(swap, 0.0, 1.0) if prefs.tie is None else np.where(prefs.tie, 0.5, np.where(swap, 0.0, 1.0))
    unit, number = prefs.cluster, len(prefs.clusters)
    low, high = np.minimum(winner, loser), np.maximum(winner, loser)
    some = np.zeros(number, np.int64)
    some[unit] = np.arange(len(unit))
    mixed = (low != low[some][unit]) | (high != high[some][unit])
    if mixed.any():
        ids = prefs.clusters.take(np.unique(unit[mixed])).to_pylist()
        raise InputError(
            f"{len(ids):,} of {number:,} ids of what {who} decided stand for comparisons of several pairs "
            f"({few(ids)}): name a column, or several, that tell the comparisons apart"
        )
    total = np.bincount(unit, count, number)
    side = None
    if "home" in prefs.covariate_names and prefs.covariates is not None:
        home = prefs.covariates[:, prefs.covariate_names.index("home")]
        side = np.bincount(unit, count * np.where(swap, -home, home), number) / total
    won = np.bincount(unit, count * won, number) / total
    return _Units(low[some].astype(np.int64), high[some].astype(np.int64), won, side, prefs.clusters)


def _joint(one: Labels, other: Labels) -> tuple[Labels, Ints, Ints]:
    """Labels of both, and the new codes of each; texts and integers are matched as they are written."""
    values = [one.values, other.values]
    if pa.types.is_integer(values[0].type) != pa.types.is_integer(values[1].type):
        values = [value.cast(pa.large_string()) for value in values]
    labels, codes = Labels.encode_all(*values)
    return labels, codes[0].astype(np.int64), codes[1].astype(np.int64)


def _places(wanted: Ints, known: Ints, what: str, names: Callable[[Ints], list[Any]]) -> Ints:
    """Return where each of the ``wanted`` is among the ``known``. Errors: InputError for those that are not there."""
    order = np.argsort(known)
    place = order[np.minimum(np.searchsorted(known, wanted, sorter=order), len(known) - 1)]
    if len(lacking := wanted[known[place] != wanted]):
        raise InputError(
            f"{len(lacking):,} of {len(wanted):,} {what} that people decided are not among the {len(known):,} of the "
            f"judge ({few(names(lacking))}); the judge has to have decided them all"
        )
    return np.asarray(place, np.int64)


def _of_comparisons(people: Comparisons, judge: Comparisons, level: float, these: bool) -> PredictionPowered:
    items, codes, own = _joint(judge.items, people.items)
    said, ours = _units(judge, codes, "the judge"), _units(people, own, "people")
    ids, known, wanted = _joint(said.ids, ours.ids)
    place = _places(wanted, known, "comparisons", lambda found: ids.take(found).to_pylist())
    other = (said.first[place] != ours.first) | (said.second[place] != ours.second)
    if other.any():
        named = ours.ids.take(np.flatnonzero(other)).to_pylist()
        at = int(np.flatnonzero(other)[0])
        one, its = (items.take(np.array([units.first[i], units.second[i]])).to_pylist() for units, i in
                    ((ours, at), (said, int(place[at]))))  # fmt: skip
        raise InputError(
            f"{len(named):,} of {len(place):,} ids stand for other pairs at the judge: {few(named)} ({named[0]!r}: "
            f"{one[0]!r} and {one[1]!r} for people, {its[0]!r} and {its[1]!r} for the judge)"
        )
    keep, notes = _limited(ours, len(items))
    if not keep.all():
        code = np.cumsum(keep) - 1
        fine = keep[said.first] & keep[said.second]
        there = fine[place]
        place = (np.cumsum(fine) - 1)[place[there]]
        said, ours, items = said.only(fine, code), ours.only(there, code), items.only(keep)[0]
    size = len(items)
    if size > MOST:
        raise UsageError(f"people and a judge are put together for up to {MOST:,} items, not {size:,}")
    if (ours.won == 0.5).all():
        raise CannotRank("people call all that they decided a tie, which does not say how sure the scores are")
    prior = 0.0
    try:
        theta, chance = fit_scores(said.first, said.second, said.won, size, said.side)
    except CannotRank:
        prior = PRIOR
        theta, chance = fit_scores(said.first, said.second, said.won, size, said.side, prior)
        text = "the judge's verdicts alone set no limit to some of its scores; a weak prior (precision {prior:g}) does"
        notes.append(Note("judge by a prior", text, prior=prior))
    surprise = said.won - chance
    inverse = inverse_curvature(said.first, said.second, chance, size, prior)
    found = board(ours.first, ours.second, ours.won, surprise[place], size, len(said.won), own=inverse, these=these)
    if len(place) == len(said.won):
        notes.append(Note("nothing more", "the judge decided no more than people did, so it adds nothing"))
    p = _chosen(ours.first, ours.second, surprise[place], size, len(said.won))
    if p < NOT_RANDOM:
        text = (
            "the comparisons that people decided do not look drawn at random from those of the judge (p = {p:.1g}: the "
            "judge's scores are others on them); then the scores of both together hold for neither"
        )
        notes.append(Note("not at random", text, p=p))
    sides = None
    if said.side is not None:
        bent = chance * (1.0 - chance) * said.side
        across = np.bincount(said.first, bent, size) - np.bincount(said.second, bent, size)
        rest = bent @ said.side - across @ inverse @ across + prior
        sides = (float(theta[-1]), float(1.0 / np.sqrt(rest)))
    decided, whole = (
        np.bincount(one.first, minlength=size) + np.bincount(one.second, minlength=size) for one in (ours, said)
    )
    return PredictionPowered(
        items, found, theta[:size], decided, whole, np.maximum(decided - 1.0, 1.0), level, False, sides, tuple(notes)
    )


def board(
    first: Ints, second: Ints, won: Floats, surprise: Floats, items: int, of: int, *,
    own: Floats | None = None, these: bool = False,
) -> Powered:  # fmt: skip
    """Return the scores of people's comparisons with a judge's surprises on the same ones, of ``of`` in all.

    ``own``: the inverse curvature of the judge's scores, for the error of its bias.
    """
    theta, chance = fit_scores(first, second, won, items)
    inverse = inverse_curvature(first, second, chance, items)
    moved, rows = inverse[first] - inverse[second], np.arange(len(first))
    leverage = chance * (1.0 - chance) * (moved[rows, first] - moved[rows, second])
    root = 1.0 / np.sqrt(np.maximum(1.0 - leverage, 1e-3))
    part = np.full(items, len(first) / of)
    ours, theirs = (moved * off[:, None] for off in (won - chance, surprise))
    its = None if own is None else (own[first] - own[second]) * (surprise * of / len(first))[:, None]
    found = powered(theta, ours, theirs, theirs.sum(0), root[:, None], part, own=its, these=these)
    if not (best := float(found.weight.max())):
        return found
    # the votes less what the judge saw too often there: to first order θ − λ H⁻¹ Σ x r
    both = fit_scores(first, second, won - best * surprise, items)[0]
    return replace(found, score=np.where(found.weight > 0, both, theta))


def _limited(ours: _Units, items: int) -> tuple[NDArray[np.bool_], list[str]]:
    """Which items the votes of the people set a limit to on both sides, against each other."""
    won, lost = ours.won > 0, ours.won < 1
    source = np.concatenate([ours.first[won], ours.second[lost]])
    target = np.concatenate([ours.second[won], ours.first[lost]])
    linked = connected(Ragged(np.array([0, items])), source, target)
    keep = (linked.component == 0) & linked.compared & ~linked.separated
    if keep.sum() < 2:
        raise CannotRank("the labels of the people set no limit to any score: no two items won against each other")
    text = "{left:items} to whose scores the labels of the people set no limit {left:is|are} left out"
    return keep, [] if keep.all() else [Note("left out", text, left=int((~keep).sum()))]


def _chosen(first: Ints, second: Ints, surprise: Floats, size: int, of: int) -> float:
    """p-value of the judge's surprises where people decided being nothing on average; 1 for too few to tell."""
    if not 10 * size <= len(first) < of or not surprise.any():
        return 1.0
    total = np.bincount(first, surprise, size) - np.bincount(second, surprise, size)
    spread = _laplacian(first * size + second, surprise**2, size) + 1.0 / size
    square = total @ np.linalg.solve(spread, total) / (1.0 - len(first) / of)
    return float(chi2.sf(square, size - 1))


# -- means over tasks --------------------------------------------------------------------------------------------------
def _of_ratings(people: Lists, judge: Lists, level: float, these: bool) -> PredictionPowered:
    items, codes, own = _joint(judge.items, people.items)
    queries, asked, own_asked = _joint(judge.queries, people.queries)
    size = len(items)
    known, said = _cells(judge, asked, codes, size)
    wanted, ours = _cells(people, own_asked, own, size)

    def names(cells: Ints) -> list[Any]:
        tasks, systems = queries.take(cells // size).to_pylist(), items.take(cells % size).to_pylist()
        return [f"{one} {other}" for one, other in zip(tasks, systems, strict=True)]

    place = _places(wanted, known, "scores", names)
    item, of_judge = wanted % size, known % size
    number, whole = np.bincount(item, minlength=size), np.bincount(of_judge, minlength=size)
    if lonely := items.take(np.flatnonzero(number < 2)).to_pylist():
        raise CannotRank(f"people scored fewer than two tasks of {few(lonely)}; an interval needs two of each")
    mean, there = (np.bincount(item, value, size) / number for value in (ours, said[place]))
    everywhere = np.bincount(of_judge, said, size) / whole
    tasks, task = np.unique(wanted // size, return_inverse=True)
    moved, its = np.zeros((2, len(tasks), size))
    moved[task, item], its[task, item] = (ours - mean[item]) / number[item], (said[place] - there[item]) / number[item]
    freedom = np.asarray(number - 1.0, np.float64)
    found = powered(mean, moved, its, there - everywhere, np.sqrt(number / freedom), number / whole, these=these)
    return PredictionPowered(items, found, everywhere, number, whole, freedom, level, True)


def _cells(prefs: Lists, queries: Ints, items: Ints, size: int) -> tuple[Ints, Floats]:
    """Return the cells (query, item) that were rated, in order, and the mean rating of each."""
    lists = prefs.lists
    cell = queries[lists.spread(prefs.query)] * size + items[prefs.list_item]
    count = lists.spread(prefs.count).astype(np.float64)
    cell, place = np.unique(cell, return_inverse=True)
    return cell, np.bincount(place, count * prefs.list_value) / np.bincount(place, count)
