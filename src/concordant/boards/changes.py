"""Two boards beside each other: what changed, how sure that is, and why.

Scores of two fits are compared in one gauge, less the mean of the items that both limit. Each fit is, to first order,
θ̂ − θ = A⁻¹ Σ_v g_v, g_v the gradient of judgment v at the fit and A the curvature, so the difference of two fits is a
sum over judgments: of one that both hold A_n⁻¹ g_v(θ_n) − A_o⁻¹ g_v(θ_o), of others the one or minus the other. Its
variance is that sum's, Σ_u ψ_u ψ_uᵀ K/(K − 1), over judgments or over clusters, whatever the logs share: nothing (the
variances add), all of the old one (a file that grew), or the people who judged. Source: Huber (1967); Liang and Zeger
(1986), as ``ranking.covariance`` has them.

Why a score moved: with the scores of its opponents fixed, the score of an item solves its own score equation. It is
solved with the old votes (which gives the old score), with the new votes of judges that the old board knows, with all
new votes, with the opponents' new scores, and with the opponents that the old board did not know (which gives the new
score). The steps between add up to the change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array
from scipy.special import betainc, expit

from concordant.errors import InputError, Setting, UsageError, counted, few
from concordant.preferences.counted import recounted
from concordant.preferences.graphs import Batch
from concordant.preferences.labels import Labels
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Comparisons, Preferences, keep
from concordant.preferences.sampling import whole_seed
from concordant.ranking.comparing import p_said
from concordant.ranking.contrasts import firm
from concordant.ranking.covariance import t_quantile, two_sided
from concordant.ranking.edge_tests import family_wise
from concordant.ranking.joint import DRAWS, WHOLE, Curved
from concordant.ranking.rank import Ranking

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
SHARED = ("auto", "none", "common", "clusters")
PARTS = ("own_votes", "new_clusters", "opponents", "new_opponents")
"""Columns of the steps by which a score moved."""
CHANCE = 0.01
"""How likely it may be at most that one log seems to hold all of the other by chance, to be taken for one that grew."""
GREW = "may have grown"
"""The code of the note that one board may hold all judgments of the other: what they are does not tell."""
ROUNDING = 1e-13
"""Share of a variance that is left of it by rounding."""
SAID = {"own_votes": "its own votes", "new_clusters": "new judges", "opponents": "the scores of its opponents"}
SAID |= {"new_opponents": "new opponents"}


@dataclass(frozen=True, eq=False)
class BoardChange:
    """What changed from one board to another; ``print`` shows it in sentences.

    >>> import concordant as cc
    >>> old = cc.Preferences.from_comparisons(list("abac"), list("baca"), count=[60, 40, 60, 40])
    >>> new = old + cc.Preferences.from_comparisons(list("ab"), list("ba"), count=[10, 60])
    >>> change = cc.board_changes(cc.rank(old), cc.rank(new), shared="common")
    >>> row = change.table.to_pylist()[0]
    >>> row["item"], round(row["difference"], 2), round(row["own_votes"] + row["opponents"], 2), row["p_max_t"] < 0.01
    ('b', 0.51, 0.51, True)
    """

    table: pa.Table
    """A row for each item of either board, the surest changes first: item, old, new (scores in the common gauge),
    difference, standard_error, lower, upper, p_value, p_max_t and p_holm (adjusted for all items), rank_old, rank_new,
    judgments_old, judgments_new, and, of plain Bradley–Terry, the steps that add up to the difference: own_votes,
    new_clusters (with clusters), opponents, new_opponents."""
    shared: int
    """Judgments that both boards hold and that are counted once."""
    level: float
    notes: tuple[Note, ...]

    def worse(self, items: Sequence[Any]) -> list[tuple[dict[str, Any], float, bool]]:
        """Return for each of these its row, its p-value by Holm among them, and whether it is worse at the level.

        Errors: UsageError where an item is not on both boards.
        """
        rows = {row["item"]: row for row in self.table.to_pylist()}
        named = [*dict.fromkeys(items)]
        if missing := [item for item in named if rows.get(item, {}).get("difference") is None]:
            raise UsageError(f"not on both boards: {few(missing)}")
        p = np.array([np.nan if rows[item]["p_value"] is None else rows[item]["p_value"] for item in named])
        known, adjusted = np.isfinite(p), p.copy()
        adjusted[known] = family_wise(p[known], int(known.sum()))
        return [
            (rows[item], float(one), bool(one < 1 - self.level and rows[item]["difference"] < 0))
            for item, one in zip(named, adjusted, strict=True)
        ]

    @property
    def adjusted(self) -> str:
        """The column of p-values by which items are said to have moved."""
        return "p_max_t" if "p_max_t" in self.table.column_names else "p_holm"

    def lines(self) -> list[str]:
        """Return it in sentences."""
        rows = [row for row in self.table.to_pylist() if row["difference"] is not None]
        sure = [row for row in rows if (p := row[self.adjusted]) is not None and p < 1 - self.level]
        first = f"{counted(len(sure), 'items')} of {len(rows):,} on both boards moved beyond chance"
        return [f"{first} (all together, {100 * self.level:g}%)" + (":" if sure else ""), *map(self._line, sure[:10])]

    def _line(self, row: dict[str, Any]) -> str:
        text = (
            f"- {row['item']}: {row['old']:.3f} → {row['new']:.3f}, {row['difference']:+.3f} ± "
            f"{row['standard_error']:.3f}, {p_said(row[self.adjusted])}"
        )
        parts = [name for name in PARTS if row.get(name) is not None and abs(row[name]) >= 0.0005]
        return text + ("; by " + ", ".join(f"{SAID[name]} {row[name]:+.3f}" for name in parts) if parts else "")

    def __str__(self) -> str:
        return "\n".join([*self.lines(), *self.notes])


def board_changes(old: Ranking, new: Ranking, *, shared: str | Preferences = "auto", seed: int = 0) -> BoardChange:
    """Say what changed from one board to another: the difference of each item's score, how sure it is, and why.

    Parameters
    ----------
    old, new : rankings of comparisons of one query, by the same structure with a likelihood, as ``rank`` returns them.
        With clusters (one column in both) judgments of equal clusters depend on each other, on either board.
    shared : which judgments the boards share. 'auto': all of one that the other holds, too, as often, where chance
        would hardly do that (a log that grew), else none; 'common': whatever stands in both; 'clusters': none, as of
        two parts of one log, but clusters of the same name are the same; 'none': none, and clusters of the same name
        are others, too. Or the judgments themselves that both hold, where these are known: by their ids, or those of
        the days that two windows share.
    seed : of the draws for p_max_t.

    Errors: UsageError for rankings of other kinds; InputError where fewer than two items are on both.

    >>> import concordant as cc
    >>> old = cc.Preferences.from_comparisons(["a", "b"], ["b", "a"], count=[60, 40])
    >>> [cc.board_changes(cc.rank(old), cc.rank(old + old), shared=how).shared for how in ("auto", "common")]
    [0, 100]

    Source: the sandwich of Huber (1967), clustered as Liang and Zeger (1986); Westfall and Young (1993) for p_max_t.
    """
    if isinstance(shared, Preferences) and not len(shared):
        shared = "clusters"  # none of them
    known = shared if isinstance(shared, Comparisons) else None
    if known is None and shared not in SHARED:
        what = "comparisons" if isinstance(shared, Preferences) else f"one of {', '.join(SHARED)}"
        raise UsageError(f"shared must be {what}, not {shared!r}")
    sides = _Side.of(old, "the old board"), _Side.of(new, "the new board")
    if old.structure != new.structure or sides[0].used != sides[1].used:
        raise UsageError("the two boards are ranked in different ways; rank both by the same structure and options")
    if [side.prefs.clusters is None for side in sides] not in ([True, True], [False, False]):
        raise UsageError("one board has clusters and the other has none; give both the same column of clusters")
    if known is not None and any(_kind(known) != _kind(side.prefs) for side in sides):
        raise UsageError("what both boards hold has other clusters or covariates than they have; read it as they were")
    pairs = _Pair.of(*sides, known)
    both = int(pairs.both.sum())
    held = [both == len(side.prefs) for side in sides]
    grew = shared == "auto" and any(held)
    told = grew and (all(held) or chance_of_holding(*sorted(pairs.count, key=np.sum)) < CHANCE)
    joined = known is not None or shared == "common" or told
    matrix, freedom = pairs.covariance(joined, apart=known is None and shared == "none")
    table = _table(pairs, matrix, freedom, new.level, seed)
    return BoardChange(
        table,
        both if joined else 0,
        new.level,
        tuple(_notes(pairs, held, both if joined else 0, 0 if joined or shared == "clusters" else both, grew, known)),
    )


def _notes(
    pairs: _Pair, held: list[bool], joined: int, alike: int, grew: bool, known: Comparisons | None
) -> list[Note]:
    one, other = (len(side.prefs) for side in pairs.sides)
    if joined and all(held):
        text = "both boards hold the same {joined:judgments}"
    elif joined and held[0]:
        text = "the new board holds the {joined:judgments} of the old one and {more:,} more: they are counted once"
    elif joined and held[1]:
        text = "the old board holds the {joined:judgments} of the new one, too: they are counted once"
    elif joined and known is not None:
        text = "both boards hold {joined:judgments}: they are counted once"
    elif joined:
        text = (
            "{joined:judgments} of both boards, as many as are equal, are taken for the same: they are counted once; "
            "where fewer are the same, differences are less sure"
        )
    elif grew and alike:
        text = (
            "the two boards are taken to hold different judgments: all {alike:,} of one look like some of the other, "
            "but so would others; if the log grew: {ask}; an id of each vote tells ({id})"
        )
    else:
        text = "the two boards are taken to hold different judgments"
        if alike:
            text += ", though up to {alike:,} look alike; if all of those are the same votes: {ask}"
    ask, column = Setting("shared", "common"), Setting("columns", key="id")
    code = "shared judgments" if joined or not grew else GREW
    notes = [Note(code, text, joined=joined, more=other - one, alike=alike, ask=ask, id=column)]
    return [*notes, *came_and_went(pairs.names, np.array(pairs.there), pairs.common & ~pairs.sure)]


def check_common(names: Sequence[Any], there: NDArray[np.bool_], sure: NDArray[np.bool_]) -> None:
    """Errors (InputError): fewer than two items are on both boards (``there``, (2, items)) with a limited score."""
    if sure.sum() > 1:
        return
    if there.all(axis=0).any():
        raise InputError(f"{counted(int(sure.sum()), 'items')} on both boards with a limited score; two are needed")
    old, new = ([names[i] for i in np.flatnonzero(side).tolist()] for side in there)
    other = {str(name).casefold().strip(): name for name in new}
    alike = [(one, other[key]) for one in old if (key := str(one).casefold().strip()) in other]
    more = f"; {alike[0][0]!r} and {alike[0][1]!r} differ by case or space alone" if alike else ""
    raise InputError(f"no item is on both boards: {few(old)} on the old one, {few(new)} on the new one{more}")


def came_and_went(names: Sequence[Any], there: NDArray[np.bool_], open_: NDArray[np.bool_]) -> list[Note]:
    """Notes of items on one board only (``there``: shape (2, items)), and of those whose change is open."""
    notes = []
    for code, at in (("entered", 0), ("left", 1)):
        if who := [names[i] for i in np.flatnonzero(~there[at]).tolist()]:
            text = "{number:items} " + code + ": {items}"
            notes.append(Note(code, text, items=who, number=len(who)))
    if open_.any():
        text = "of {open:items} the votes of one board set the score no limit: the change is not determined"
        notes.append(Note("not determined", text, open=int(open_.sum())))
    return notes


@dataclass(frozen=True, eq=False)
class _Side:
    """One board and its fit."""

    board: Ranking
    joint: Curved
    prefs: Comparisons
    used: dict[str, Any]

    @classmethod
    def of(cls, board: Ranking, name: str) -> _Side:
        if not isinstance(board, Ranking):
            raise UsageError(f"{name} must be a Ranking, not {type(board).__name__}; rank it first: rank(read(…))")
        fitted = board.judged
        if fitted is None or not isinstance(fitted.prefs, Comparisons):
            kind = "nothing that it keeps" if fitted is None else fitted.prefs.kind or "nothing"
            raise UsageError(f"boards are compared by the comparisons that they were made of; {name} is of {kind}")
        if len(board.queries) != 1:
            text = f"{name} ranks {len(board.queries):,} queries; boards are compared as wholes: pool them ("
            raise UsageError(text, Setting("pool", True), "), or compare parts of one log by a column")
        if len(fitted.prefs.cluster_columns) > 1:
            raise UsageError(f"{name} has {few(fitted.prefs.cluster_columns)}: two boards heed one column of clusters")
        joint, _ = board._joint(None)
        if not isinstance(joint, Curved) or joint.parameters > WHOLE:
            raise UsageError(
                f"two boards are compared by a likelihood of up to {WHOLE:,} items, with intervals by its curvature "
                f"(hessian or sandwich); {name} is by {board.structure}, interval {board.interval}"
            )
        used = {key: value for key, value in fitted.used.items() if not key.startswith("undetermined")}
        return cls(board, joint, fitted.prefs, used)

    @property
    def plain(self) -> bool:
        """Whether an item's own score equation is that of Bradley and Terry, ties half."""
        usual = {"ties": "half", "covariates": False, "mean": False}
        return self.board.structure == "bradley-terry" and all(self.used.get(k) == v for k, v in usual.items())

    @property
    def inverse(self) -> Floats:
        """A⁻¹, shape (parameters, items)."""
        curvature, n = self.joint.curvature, self.joint.size
        bread = curvature.hessian.toarray()
        bread[np.arange(n), np.arange(n)] += max(curvature.prior, 1e-9)  # a shift, which the gauge takes out again
        return np.asarray(np.linalg.inv(bread)[:, :n])


@dataclass(frozen=True, eq=False)
class _Pair:
    """Both boards with the same codes: of items (all that either has), judgments and clusters."""

    sides: tuple[_Side, _Side]
    names: list[Any]
    place: tuple[Ints, Ints]
    """The item of each node, of either side."""
    there: tuple[NDArray[np.bool_], NDArray[np.bool_]]
    sure: NDArray[np.bool_]
    """Items whose scores both boards limit: the gauge is their mean."""
    score: tuple[Floats, Floats]
    """NaN where a board has no such item."""
    shift: tuple[float, float]
    """What was taken off the scores of the fit, whose mean the prior holds at 0."""
    key: tuple[Ints, Ints]
    """Of each distinct judgment of a side, equal where the judgments are."""
    count: tuple[Ints, Ints]
    """Of each key."""
    both: Ints
    """Of each key, how many judgments both boards may hold, or hold."""
    cluster: tuple[Ints, Ints] | None

    @property
    def common(self) -> NDArray[np.bool_]:
        return np.asarray(self.there[0] & self.there[1], bool)

    @classmethod
    def of(cls, old: _Side, new: _Side, known: Comparisons | None = None) -> _Pair:
        """Match two boards; ``known``: the judgments that both hold."""
        sides = (old, new)
        if old.prefs.covariate_names != new.prefs.covariate_names:
            raise UsageError("the two boards have other covariates; give both the same")
        items, *maps = old.prefs.items.union(new.prefs.items)
        place = tuple(maps[at][side.joint.batch.item].astype(np.int64) for at, side in enumerate(sides))
        size = len(items)
        there, sure = np.zeros((2, size), bool), np.ones(size, bool)
        score = np.full((2, size), np.nan)
        for at, side in enumerate(sides):
            batch, links = side.joint.batch, side.joint.links
            limited = firm(batch.node_start, links) & (links.component == 0)
            there[at, place[at]] = True
            own = np.zeros(size, bool)
            own[place[at]] = limited
            sure &= own
            value, group = side.joint.value, links.component  # whose mean the prior holds at 0
            score[at, place[at]] = value - (np.bincount(group, value) / np.bincount(group))[group]
        check_common(items.tolist(), there, sure)
        shift = score[:, sure].mean(axis=1)
        people, cluster = None, None
        if old.prefs.clusters is not None and new.prefs.clusters is not None:
            people, one, other = old.prefs.clusters.union(new.prefs.clusters)
            cluster = (one[old.prefs.cluster].astype(np.int64), other[new.prefs.cluster].astype(np.int64))
        every = [old.prefs, new.prefs, *([] if known is None else [known])]
        rows = [_told_apart(prefs, items, people) for prefs in every]
        key = _kinds(np.concatenate(rows))
        keys = np.split(key, np.cumsum([len(each) for each in rows])[:-1])
        most = int(key.max(initial=-1)) + 1
        count = [np.bincount(mine, prefs.count, most).astype(np.int64) for mine, prefs in zip(keys, every, strict=True)]
        both = np.minimum.reduce(count)
        return cls(
            sides, items.tolist(), (place[0], place[1]), (there[0], there[1]), sure,
            (score[0] - shift[0], score[1] - shift[1]), (float(shift[0]), float(shift[1])),
            (keys[0], keys[1]), (count[0], count[1]), both, cluster,
        )  # fmt: skip

    def covariance(self, joined: bool, apart: bool) -> tuple[Floats, float]:
        """That of the differences of all items, in the common gauge, and its degrees of freedom."""
        influence, rows = [], []
        for at, side in enumerate(self.sides):
            own = np.zeros((side.joint.parameters, len(self.names)))
            own[:, self.place[at]] = side.inverse
            influence.append(own - own[:, self.sure].mean(axis=1, keepdims=True))
        old, new = self.count
        if self.cluster is None:
            common = self.both * joined
            units, freedom = int((old + new - common).sum()), np.inf
            rows = [_each(side, key, len(old)) for side, key in zip(self.sides, self.key, strict=True)]
            meat = [
                one.T @ (diags_array(number.astype(np.float64)) @ one)
                for one, number in zip(rows, self.count, strict=True)
            ]
            cross = rows[1].T @ (diags_array(common.astype(np.float64)) @ rows[0])
        else:
            most = 1 + max(int(one.max(initial=-1)) for one in self.cluster)
            units = min(len(np.unique(one)) for one in self.cluster)
            freedom = float(units - 1)
            if units < 2:
                raise InputError("a board with judgments of one cluster only does not say how clusters differ")
            for side, cluster in zip(self.sides, self.cluster, strict=True):
                place = (cluster, np.arange(len(cluster)))
                gather = csr_array((side.prefs.count.astype(np.float64), place), shape=(most, len(cluster)))
                rows.append(csr_array(gather @ side.joint.curvature.contributions))
            meat = [one.T @ one for one in rows]
            cross = (rows[1].T @ rows[0]) * (not apart)
        for who, one in zip(("old", "new"), meat, strict=True):
            if not one.diagonal().any():
                raise InputError(f"the {who} board has ties alone, which do not say how sure its scores are")
        matrix = influence[0].T @ (meat[0] @ influence[0]) + influence[1].T @ (meat[1] @ influence[1])
        both = influence[1].T @ (cross @ influence[0])
        left = matrix - both - both.T
        rounding = np.diagonal(left) <= ROUNDING * np.diagonal(
            matrix
        )  # nothing is left: both boards are the same there
        left[rounding], left[:, rounding] = 0.0, 0.0
        return left * units / max(units - 1, 1), freedom


def chance_of_holding(less: Ints, more: Ints) -> float:
    """How likely a log of other judgments of the same kinds would hold at most as many of each kind as a larger one.

    Of the z judgments of a kind in both logs each is of the smaller one with the same chance p, that of all: the
    product of P(Binomial(z, p) ≤ z/2) over the kinds. 0 where it does not hold at most as many.

    >>> chance_of_holding(np.array([30, 20]), np.array([100, 90])) > 0.99
    True
    >>> chance_of_holding(np.array([1000, 900, 800, 700] * 4), np.array([1010, 930, 800, 710] * 4)) < 0.01
    True
    """
    if (less > more).any():
        return 0.0
    both = (less + more).astype(np.float64)
    p, both = less.sum() / max(both.sum(), 1.0), both[both > 0]
    half = np.floor(both / 2)
    within = betainc(both - half, half + 1.0, 1.0 - p)  # the law of the binomial
    return float(np.exp(np.log(np.maximum(within, 1e-300)).sum()))


def _kinds(rows: Floats) -> Ints:
    """Number the rows that differ in their order, the first column first (many times faster than as whole rows)."""
    key = np.zeros(len(rows), np.int64)
    for column in rows.T:
        values, code = np.unique(column, return_inverse=True)
        if len(values) > 1:
            key = np.unique(key * len(values) + code.ravel(), return_inverse=True)[1].ravel().astype(np.int64)
    return key


def _each(side: _Side, key: Ints, keys: int) -> csr_array:
    """The gradient of each kind of judgment, a row for each key."""
    kinds, first = np.unique(key, return_index=True)
    pick = csr_array((np.ones(len(kinds)), (kinds, first)), shape=(keys, len(key)))
    return csr_array(pick @ side.joint.curvature.contributions)


def _kind(prefs: Comparisons) -> tuple[bool, tuple[str, ...]]:
    return prefs.clusters is None, tuple(prefs.covariate_names)


def _told_apart(prefs: Comparisons, items: Labels, people: Labels | None) -> Floats:
    """The rows by which judgments are told apart: by items, by what else is said of them and, if asked, by who did."""
    place = items.codes_of(prefs.items.values)
    columns = [place[prefs.winner], place[prefs.loser], *_more(prefs)]
    if people is not None and prefs.clusters is not None:
        columns.append(people.codes_of(prefs.clusters.values)[prefs.cluster])
    return np.column_stack(columns).astype(np.float64)


def _more(prefs: Comparisons) -> list[NDArray[Any]]:
    """The columns beside the items that tell judgments apart."""
    size = len(prefs.count)
    tie = np.zeros(size) if prefs.tie is None else prefs.tie
    weight = np.ones(size) if prefs.weight is None else prefs.weight
    covariates = [] if prefs.covariates is None else [*np.asarray(prefs.covariates).reshape(size, -1).T]
    return [tie, weight, *covariates]


def _table(pairs: _Pair, matrix: Floats, freedom: float, level: float, seed: int) -> pa.Table:
    known = pairs.sure & (np.diagonal(matrix) > 0)
    difference = np.where(pairs.common, pairs.score[1] - pairs.score[0], np.nan)
    error = np.where(pairs.sure, np.sqrt(np.diagonal(matrix)), np.inf)
    p_value = np.where(pairs.sure, 1.0, np.nan)
    holm, largest = p_value.copy(), p_value.copy()
    p_value[known] = two_sided(difference[known] / error[known], freedom)
    if known.any():
        holm[known] = family_wise(p_value[known], int(known.sum()))
        own = matrix[np.ix_(known, known)] / error[known, None] / error[known]
        values, vectors = np.linalg.eigh(own)
        rng = np.random.default_rng([whole_seed(seed) % (1 << 128), int(known.sum())])
        drawn = rng.standard_normal((DRAWS, len(own))) @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
        if np.isfinite(freedom):
            drawn /= np.sqrt(rng.chisquare(freedom, DRAWS) / freedom)[:, None]
        most = np.sort(np.abs(drawn).max(axis=1))
        reached = len(most) - np.searchsorted(most, np.abs(difference[known] / error[known]) * (1 - 1e-12))
        bound = np.minimum(1.0, len(own) * p_value[known])  # Bonferroni's, which the draws cannot resolve in the tail
        largest[known] = np.maximum(np.minimum((1.0 + reached) / (1.0 + len(most)), bound), p_value[known])
    half = t_quantile(0.5 + level / 2, freedom) * error
    rank, judgments = np.zeros((2, len(error)), np.int64), np.zeros((2, len(error)), np.int64)
    for at, side in enumerate(pairs.sides):
        code = np.zeros(len(side.prefs.items), np.int64)
        code[side.joint.batch.item] = pairs.place[at]
        rank[at, code[side.board.item]] = side.board.rank
        judgments[at, code[side.board.item]] = side.board.judgments
    columns: dict[str, Any] = {"item": pa.array(pairs.names)}
    columns |= {"old": pairs.score[0], "new": pairs.score[1], "difference": difference}
    columns |= {"standard_error": np.where(pairs.common, error, np.nan)}
    columns |= {"lower": difference - half, "upper": difference + half}
    columns |= {"p_value": p_value, "p_max_t": largest, "p_holm": holm}
    columns |= {f"rank_{at}": pa.array(rank[i], mask=rank[i] == 0) for i, at in enumerate(("old", "new"))}
    columns |= {f"judgments_{at}": judgments[i] for i, at in enumerate(("old", "new"))}
    if all(side.plain for side in pairs.sides):
        columns |= _steps(pairs)
    order = np.lexsort((-np.nan_to_num(pairs.score[1], nan=-np.inf), np.nan_to_num(p_value, nan=2.0)))
    made = {
        name: column if isinstance(column, pa.Array) else pa.array(column, from_pandas=True)
        for name, column in columns.items()
    }
    return pa.table(made).take(pa.array(order))


# -- why ---------------------------------------------------------------------------------------------------------------
def _steps(pairs: _Pair) -> dict[str, Floats]:
    """The steps from the old score to the new one, of the items on both boards."""
    old, new = (_wins(pairs, at) for at in (0, 1))
    known = new
    if pairs.cluster is not None:
        seen = np.isin(pairs.cluster[1], pairs.cluster[0])
        known = _wins(pairs, 1, seen)
    was, now = pairs.score
    there = pairs.there[0]
    prior = [float(side.used.get("prior", 0.0)) for side in pairs.sides]
    first = _own(*known, there, was, was, prior[0], pairs.shift[0])
    second = _own(*new, there, was, first, prior[0], pairs.shift[0])
    third = _own(*new, there, now, second, prior[1], pairs.shift[1])
    first = np.where(_same(old, known, there), was, first)  # to the bit, where there is no new vote
    second = np.where(_same(known, new, there), first, second)
    steps = dict(zip(PARTS, (first - was, second - first, third - second, now - third), strict=True))
    if pairs.cluster is None:
        del steps["new_clusters"]
    return {name: np.where(pairs.common, step, np.nan) for name, step in steps.items()}


def _same(one: tuple[Floats, Floats], other: tuple[Floats, Floats], there: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether an item's votes against those that are ``there`` are the same."""
    equal = (one[0] == other[0]) & (one[1] == other[1])
    return np.asarray(equal[:, there].all(axis=1), bool)


def _wins(pairs: _Pair, at: int, seen: NDArray[np.bool_] | None = None) -> tuple[Floats, Floats]:
    """Wins of each item over each other (ties half) and their judgments, in strength; of some judgments."""
    batch: Batch = pairs.sides[at].joint.batch
    edges, place, size = batch.edges, pairs.place[at], len(pairs.names)
    strength = edges.strength * batch.multiplicity[edges.holder]
    if seen is not None:
        strength = strength * seen[batch.judgment[edges.holder]]
    winner, loser, half = place[edges.winner], place[edges.loser], np.where(edges.tie, 0.5, 1.0)
    wins = np.zeros((size, size))
    np.add.at(wins, (winner, loser), strength * half)
    np.add.at(wins, (loser, winner), strength * (1.0 - half))
    return wins, wins + wins.T


def _own(
    wins: Floats, total: Floats, there: NDArray[np.bool_], others: Floats, start: Floats, prior: float, shift: float
) -> Floats:
    """Solve Σ_j (W_ij − N_ij σ(s_i − o_j)) = λ(s_i + shift) for each i, over the opponents that are ``there``."""
    seen = there & np.isfinite(others)
    wins, total, others = wins[:, seen], total[:, seen], others[seen]
    score = np.nan_to_num(start)
    for _ in range(200):
        p = expit(score[:, None] - others)
        slope = (wins - total * p).sum(axis=1) - prior * (score + shift)
        step = slope / np.maximum((total * p * (1.0 - p)).sum(axis=1) + prior, 1e-12)
        reach = np.maximum(np.abs(step), 1e-300)
        score = score + step * np.log1p(reach) / reach
        if reach.max(initial=0.0) < 1e-11:
            break
    return score


# -- one log, two parts ------------------------------------------------------------------------------------------------
def divided(prefs: Preferences, by: str, kept: Any, more: Sequence[str] = ()) -> Preferences:
    """Return the judgments whose value of a column of clusters ``kept`` takes (a function of texts), without it.

    ``more``: the other column of clusters, which stays.
    """
    if not isinstance(prefs, Comparisons) or prefs.clusters is None or prefs.cluster is None:
        raise UsageError(f"boards are compared by comparisons, not {prefs.kind or 'nothing'} with a column {by!r}")
    labels = (prefs.by_cluster(by).clusters if prefs.cluster_columns else None) or prefs.clusters
    way = prefs.cluster_columns.index(by) if prefs.cluster_columns else 0
    take = np.array([bool(kept(str(label))) for label in labels.tolist()], bool)
    rows = np.flatnonzero(take[prefs.cluster_ways[way]])
    part = keep(prefs, rows, prefs.count[rows], prefs.declared[:0])
    if not len(part):
        return part
    if more:
        return part.by_cluster(*more)
    plain = replace(part, cluster=None, clusters=None, cluster_columns=())
    return recounted(plain, plain.query, plain.count)
