"""Recursive partitioning: judgments are divided by a property wherever the scores of their model change with it.

Fits of the tests and cuts are maximum likelihood (a prior of precision 10⁻⁶). Items without limit have no part in the
tests: scores are compared within the sets of items that chains of wins connect both ways.

Source: Zeileis, Hothorn & Hornik, Journal of Computational and Graphical Statistics 17 (2008), §3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from concordant.errors import CannotRank, Setting, UsageError, did_you_mean, few, twice
from concordant.preferences.counted import recounted
from concordant.preferences.graphs import Batch, Kinds
from concordant.preferences.labels import Labels
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Comparisons, Preferences, keep
from concordant.ranking.curvature import Curvature, pair_log_likelihoods, pair_margins
from concordant.ranking.instability import Instability, Kind, Units, instability, whitener
from concordant.ranking.scores import Scores
from concordant.ranking.structures import Structure
from concordant.stages import Stage

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

PRIOR = 1e-6
"""Precision of the prior with which the tests and cuts are fitted: as good as none."""
CUTS = 100
"""Cuts of a numeric property that are tried, at most."""
SIMPLE = (None, "half", "davidson")
"""What ties may be that many sides are fitted at once."""
AT_ONCE = 500_000
"""Distinct judgments of the sides that are."""
UNLIKE = 1.15
"""How much longer groups may take than as many judgments took so far."""
LAST = 8
"""Groups by which it is told how high that line is now."""
KEPT = (0.06, 0.5)
"""What a part keeps of how sure a group was that its scores change with the property that divides it: as of a trend, a
quarter in each half of half as many judgments, or as of values that are unlike each other. Of other properties half."""
NAMES = 10
"""Values of a property of names up to which all divisions in two are tried; of more, cuts of one order of them."""


@dataclass(frozen=True)
class Values:
    """Which values of a property belong to a group: ``names``, or the numbers above ``low`` up to ``high``."""

    property: str
    names: tuple[Any, ...] | None = None
    low: float = -math.inf
    high: float = math.inf

    def __contains__(self, value: Any) -> bool:
        if self.names is not None:
            return value in self.names
        number = _numbers([value])
        return number is not None and bool(self.low < number[0] <= self.high)

    def __str__(self) -> str:
        if self.names is not None:
            return f"{self.property} is {' or '.join(map(str, self.names))}"
        if math.isinf(self.low):
            return f"{self.property} ≤ {self.high:g}"
        return (
            f"{self.property} > {self.low:g}"
            if math.isinf(self.high)
            else f"{self.low:g} < {self.property} ≤ {self.high:g}"
        )


@dataclass(frozen=True, eq=False)
class Property:
    """What may divide the judgments: its value for each distinct judgment."""

    name: str
    kind: Kind
    code: Ints
    values: tuple[Any, ...]
    """By code, ascending."""


@dataclass(frozen=True, eq=False)
class Group:
    """A node of the tree: some of the judgments, how they were tested, and what divides them.

    ``divided_by``: the property that divides it, None for a group of the answer, of which ``why`` says why it is not
    divided.
    """

    number: int
    """From 1, the root, each followed by what it is divided into."""
    parent: int | None
    judgments: int
    clusters: dict[str, int]
    """How many of each there are, by the name of their column."""
    tests: tuple[Instability, ...]
    divided_by: str | None
    why: str
    prefs: Preferences = field(repr=False)
    values: Mapping[str, Values]
    """What belongs to it, by the properties that lead to it."""

    @property
    def named(self) -> str:
        """The group in words."""
        return " and ".join(map(str, self.values.values())) or "all"


def properties_of(prefs: Preferences, by: str | Sequence[str] | None, names: Sequence[str]) -> list[Property]:
    """Find the properties among the columns of clusters."""
    if prefs.clusters is None or prefs.cluster is None:
        raise UsageError("the judgments have no properties: read them with ", Setting("cluster", ("…",)))
    asked = [by] if isinstance(by, str) else None if by is None else list(by)
    columns = prefs.cluster_columns or tuple(asked or ["cluster"])[:1]
    if asked is None and len(columns) > 1:
        raise UsageError(
            f"which of {few(columns)} are the properties that may divide the judgments? Name them: ", Setting("by")
        )
    asked = list(columns) if asked is None else asked
    if not asked or twice(asked) or any(name not in columns for name in asked):
        wrong = next((name for name in asked if name not in columns), None)
        raise UsageError(
            f"by names columns of the judgments' clusters, each once: {did_you_mean(str(wrong or ''), columns)}"
        )
    if odd := [name for name in names if name not in asked]:
        raise UsageError(f"names says which of {few(asked)} are names; {odd[0]!r} is none of them")
    found = []
    for name, way in zip(columns, prefs.cluster_ways, strict=True):
        if name in asked:
            labels = (
                prefs.clusters.tolist() if not prefs.cluster_columns else prefs.by_cluster(name).clusters.tolist()  # type: ignore[union-attr]
            )
            found.append(_property(name, way.astype(np.int64), labels, as_names=name in names))
    return sorted(found, key=lambda one: asked.index(one.name))


def _property(name: str, code: Ints, labels: list[Any], *, as_names: bool) -> Property:
    """Read values as numbers where all of them are."""
    numbers = None if as_names else _numbers(labels)
    if numbers is None:
        return Property(name, "name", code, tuple(labels))
    values, place = np.unique(numbers, return_inverse=True)
    return Property(name, "number", place.ravel()[code].astype(np.int64), tuple(values.tolist()))


def _numbers(labels: list[Any]) -> NDArray[np.float64] | None:
    try:
        values = np.array([float(label) for label in labels])
    except (TypeError, ValueError):
        return None
    return values if np.isfinite(values).all() else None


@dataclass(eq=False)
class _Node:
    """Some of the judgments, on their way to a group."""

    rows: Ints
    values: Mapping[str, Values]
    depth: int
    """How often its judgments may be divided."""
    parts: int
    """Into how many groups, at most."""
    hints: tuple[float, ...] = ()
    """Of each property how sure its parent was of a change: minus the logarithm of the adjusted p-value."""
    cut_by: int = -1
    """Which property divided its parent."""
    made: Callable[[int, int | None], Group] | None = None
    """Makes the group of its number and its parent's."""
    notes: list[str] = field(default_factory=list)
    divided: list[_Node] = field(default_factory=list)


class _Durations:
    """How long something takes of so many judgments: a line through what it took, as high as the last of them are."""

    def __init__(self) -> None:
        self.took: list[tuple[int, float]] = []

    def line(self) -> tuple[float, float]:
        """Seconds of a group, and of each of its judgments."""
        size, seconds = np.array(self.took, np.float64).reshape(-1, 2).T
        fixed, each = 0.0, float(seconds.sum() / max(size.sum(), 1.0))
        if len(size) > 1 and np.ptp(size) > 0:
            slope, begins = np.polyfit(size, seconds, 1).tolist()
            fixed, each = (begins, slope) if slope >= 0 and begins >= 0 else (fixed, each)
        foreseen = (fixed + each * size)[-LAST:]
        longer = float(seconds[-LAST:].sum() / foreseen.sum()) if foreseen.sum() > 0 else 0.0
        return fixed * longer, each * longer


@dataclass(eq=False)
class Growth:
    prefs: Preferences
    member: Structure
    curvature: Callable[[Batch, Scores], Curvature]
    options: dict[str, Any]
    properties: list[Property]
    ways: dict[str, Ints]
    """Codes of what judgments depend on, by the name of the column."""
    alpha: float
    least: int
    seed: int
    told: Stage
    groups: list[Group] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _tested: _Durations = field(default_factory=_Durations)
    _cut: _Durations = field(default_factory=_Durations)

    def grow(self, rows: Ints, depth: int) -> None:
        """Test the judgments and divide them, then the parts, and so on, level by level; number the groups."""
        root = self._node(rows, {}, depth)
        level = [root]
        while level:
            below: list[_Node] = []
            for place, node in enumerate(level):
                self._look(node)
                below += node.divided
                self._foresee([*level[place + 1 :], *below])
            level = below
        self._number(root, None)

    def _number(self, node: _Node, parent: int | None) -> None:
        """Add a group to the groups, each followed by what it is divided into."""
        number = len(self.groups) + 1
        if node.made is not None:
            self.groups.append(node.made(number, parent))
        self.notes += node.notes
        for part in node.divided:
            self._number(part, number)

    def _node(self, rows: Ints, values: Mapping[str, Values], depth: int) -> _Node:
        most = int(self.prefs.count[rows].sum(dtype=np.int64)) // max(self.least, 1)
        return _Node(rows, values, depth, most if depth and most >= 2 else 1)

    def _look(self, node: _Node) -> None:
        """Test the judgments of one group, and divide it."""
        rows, judgments = node.rows, int(self.prefs.count[node.rows].sum(dtype=np.int64))
        since, cutting = self.told.worked, 0.0
        tests, found = self._tests(rows), None
        tried = [place for place, test in enumerate(tests) if not test.why]
        why = "nothing could be tested"
        if tried:
            best = min(tried, key=lambda place: (tests[place].p_adjusted, tests[place].p_value))
            if not tests[best].p_adjusted < self.alpha:
                why = "no property changes the scores beyond chance"
            elif node.depth == 0:
                why = "as many divisions as were allowed"
            else:
                begun = self.told.worked
                found = _Cut.best(self, rows, self.properties[best], node.notes)
                cutting = self.told.worked - begun
                self._cut.took.append((len(rows), cutting))
                why = "" if found else f"no cut leaves {self.least:,} judgments on both sides"
        clusters = {name: len(_present(way[rows])[0]) for name, way in self.ways.items()}
        divided_by = None if found is None else found.property.name
        kept = self._kept(rows)
        node.made = lambda number, parent: Group(
            number, parent, judgments, clusters, tuple(tests), divided_by, why, kept, node.values
        )
        sides = [] if found is None else found.sides(node.values.get(found.property.name))
        node.divided = [
            self._node(rows[side], {**node.values, there.property: there}, node.depth - 1) for side, there in sides
        ]
        if found is not None:
            hints = tuple(0.0 if test.why else -math.log(max(test.p_adjusted, 1e-300)) for test in tests)
            for part in node.divided:
                part.hints, part.cut_by = hints, self.properties.index(found.property)
        self._tested.took.append((len(rows), self.told.worked - since - cutting))

    def _foresee(self, ahead: list[_Node]) -> None:
        """Say how long it takes where groups are divided as long as what their parents showed would let expect it.

        The least and the most are those of how much of that is left in a part. The first group says nothing of smaller
        ones.
        """
        if len(self._tested.took) < 2:
            return
        least, most = (sum(self._seconds(node, self._levels(node, kept)) for node in ahead) for kept in KEPT)
        self.told.foresee(least, UNLIKE * most)

    def _seconds(self, node: _Node, levels: int) -> float:
        """What a group takes, which is divided so many times over."""
        test, cut = self._tested.line(), self._cut.line()
        size, seconds = len(node.rows), 0.0
        for level in range(levels + 1):
            groups = min(2**level, node.parts)
            seconds += test[0] * groups + test[1] * size
            if level < levels and groups < node.parts:
                seconds += cut[0] * min(groups, node.parts // 2) + cut[1] * size
        return seconds

    def _levels(self, node: _Node, kept: float) -> int:
        """How many times over a group will be divided, where a part keeps that share of what divides it."""
        sure, cut_by, levels = list(node.hints), node.cut_by, 0
        while sure:
            sure = [one * (kept if place == cut_by else 0.5) for place, one in enumerate(sure)]
            cut_by = max(range(len(sure)), key=sure.__getitem__)
            if sure[cut_by] < -math.log(self.alpha) or levels == min(node.depth, node.parts - 1):
                break
            levels += 1
        return levels

    def _kept(self, rows: Ints) -> Preferences:
        """The judgments of a group, which depend on each other by what is no property."""
        part = keep(self.prefs, rows.astype(np.intp), self.prefs.count[rows], self.prefs.declared[:0])
        return without_columns(part, [one.name for one in self.properties])

    def batch(self, prefs: Preferences, rows: Ints) -> Batch:
        start = np.array([0, len(rows)], np.int64)
        return Batch(prefs, np.zeros(1, np.int32), start, rows, prefs.count[rows].astype(np.int64))

    def scores(self, batch: Batch) -> Scores:
        asked = {name: value for name, value in self.options.items() if name == "ties"}
        return self.member.function(batch, prior=PRIOR, **asked)

    def fitted(self, batch: Batch) -> Curvature:
        return self.curvature(batch, self.scores(batch))

    def order_of(self, part: Preferences) -> Ints:
        """Order the clusters of some judgments by the first principal axis of their mean contributions."""
        batch = self.batch(part, np.arange(part.distinct))
        psi, information = self.contributions(batch)
        (code,) = part.cluster_ways
        gather = csr_array((part.count.astype(float), (code, np.arange(part.distinct))))
        judged = np.bincount(code, part.count)
        mean = np.asarray(gather @ psi @ whitener(information)) / judged[:, None]
        axis = np.linalg.svd(mean * np.sqrt(judged)[:, None], full_matrices=False)[2][0]
        return np.argsort(mean @ axis, kind="stable")

    def contributions(self, batch: Batch) -> tuple[csr_array, Floats]:
        """Score contributions of the judgments of a group, and its information, of the parameters that are free.

        Of each set of items that chains of wins connect both ways all but one are, and none of an item by itself.
        """
        curvature = self.fitted(batch)
        block = self.member.links(batch, self.options.get("ties")).block
        _, first, inverse = np.unique(block, return_index=True, return_inverse=True)
        free = np.flatnonzero(first[inverse.ravel()] != np.arange(len(block)))
        free = np.concatenate([free, np.arange(len(block), curvature.hessian.shape[0])])
        psi = csr_array(csr_array(curvature.contributions)[:, free])
        return psi, csr_array(curvature.hessian)[free][:, free].toarray()

    def _tests(self, rows: Ints) -> list[Instability]:
        batch = self.batch(self.prefs, rows)
        try:
            psi, information = self.contributions(batch)
        except CannotRank as problem:
            number = int(self.prefs.count[rows].sum())
            return [Instability(one.name, one.kind, "judgment", number, why=str(problem)) for one in self.properties]
        tests = [self._test(one, rows, batch.multiplicity, psi, information) for one in self.properties]
        number = sum(not test.why for test in tests)
        return [test if test.why else replace(test, p_adjusted=min(1.0, number * test.p_value)) for test in tests]

    def _test(self, one: Property, rows: Ints, count: Ints, psi: csr_array, information: Any) -> Instability:
        present, value = _present(one.code[rows])
        unit, codes = self._unit(rows, value)
        if codes is None:
            units = Units(unit, psi, count, np.ones(len(rows)), information)
        else:
            held = np.arange(len(rows))
            gather = csr_array((count.astype(float), (codes, held)), shape=(int(codes.max()) + 1, len(rows)))
            size, of_unit = np.bincount(codes, count).astype(float), np.zeros(int(codes.max()) + 1, np.int64)
            units = Units(unit, csr_array(gather @ psi), np.ones(len(size), np.int64), size, information)
            of_unit[codes] = value
            value = of_unit
        if len(present) < 2:
            return units.untested(one.name, one.kind, "all judgments have one value")
        value = binned(value, units.times * units.size) if one.kind == "number" else value
        judged = np.bincount(value, units.times * units.size)
        if one.kind == "name" and np.bincount(value, units.times).max() == 1:
            return units.untested(one.name, one.kind, f"each value belongs to one {unit} alone")
        kind: Kind = "name" if len(present) == 2 else one.kind
        before = np.cumsum(judged)[:-1]
        enough = (before >= self.least) & (judged.sum() - before >= self.least)
        if not (enough.any() if kind == "number" else next(_divisions(kind, judged, self.least), None)):
            return units.untested(one.name, one.kind, f"no cut leaves {self.least:,} judgments on both sides")
        return instability(units, one.name, value, kind, enough, self.seed)

    def _unit(self, rows: Ints, value: Ints) -> tuple[str, Ints | None]:
        """The first column of clusters within which the property is the same, and the codes of its clusters."""
        for name, way in self.ways.items():
            present, codes = _present(way[rows])
            of_code = np.zeros(len(present), np.int64)
            of_code[codes] = value
            if (of_code[codes] == value).all():
                return name, codes
        return "judgment", None


def _present(codes: Ints) -> tuple[Ints, Ints]:
    """Return which codes there are, ascending, and the place of each code among them (as ``np.unique``)."""
    there = np.bincount(codes) > 0
    return np.flatnonzero(there), (np.cumsum(there) - 1)[codes]


def binned(value: Ints, judged: Any) -> Ints:
    """Join neighbouring values until there are ``CUTS`` cuts between them, about evenly by judgments."""
    share = np.cumsum(np.bincount(value, judged))
    if len(share) <= CUTS + 1:
        return value
    ends = np.unique(np.searchsorted(share, share[-1] * np.arange(1, CUTS + 1) / (CUTS + 1)))
    return np.searchsorted(ends, np.arange(len(share)))[value].astype(np.int64)


def without_columns(prefs: Preferences, columns: Sequence[str]) -> Preferences:
    """Return the preferences without some of the columns that their judgments depend on."""
    left = [name for name in prefs.cluster_columns if name not in columns]
    if len(left) == 1:
        return prefs.by_cluster(left[0])
    if not left:
        part = replace(prefs, cluster=None, clusters=None, cluster_columns=())
        return recounted(part, part.query, part.count)
    return prefs.by_cluster(*left)


@dataclass(frozen=True, eq=False)
class _Cut:
    """Where a group is divided: which of the values that are present are on the left."""

    property: Property
    value: Ints
    """Of each of the group's judgments."""
    left: frozenset[int]

    @classmethod
    def best(cls, growth: Growth, rows: Ints, one: Property, notes: list[str]) -> _Cut | None:
        """The division with the largest sum of the log-likelihoods of both sides; None where none leaves enough."""
        value, count = one.code[rows], growth.prefs.count[rows]
        present, place = _present(value)
        bins, of_place = binned(place, count) if one.kind == "number" else place, np.zeros(len(present), np.int64)
        of_place[place] = bins
        last = present[np.flatnonzero(np.append(of_place[1:] > of_place[:-1], True))]
        whole = keep(growth.prefs, rows.astype(np.intp), count, growth.prefs.declared[:0])
        labels, codes = Labels.encode(np.arange(len(last)))
        less: dict[str, Any] = {"time": None, "dated": False} if isinstance(whole, Comparisons) else {}
        part = replace(whole, clusters=labels, cluster=codes[bins].astype(np.int32), cluster_columns=(), **less)
        part = recounted(part, part.query, part.count)
        (code,) = part.cluster_ways
        judged = np.bincount(code, part.count, len(last))
        order = growth.order_of(part) if one.kind == "name" and len(last) > NAMES else None
        best: tuple[float, frozenset[int]] | None = None
        divisions = [*_divisions(one.kind, judged, growth.least, order)]
        which = np.zeros((len(divisions), len(last)), bool)
        for row, left in enumerate(divisions):
            which[row, list(left)] = True
        for left, total in zip(divisions, _likelihoods(growth, part, which), strict=True):
            if total is not None and (best is None or total > best[0] + 1e-9 * abs(best[0])):
                best = (total, left)
        if best is None:
            return None
        if order is not None:
            text = "{property} has {values:,} values: divisions of them are tried along one order, a principal axis"
            notes.append(Note("divisions along an order", text, property=one.name, values=len(last)))
        if one.kind == "number":
            return cls(one, value, frozenset(range(int(last[max(best[1])]) + 1)))
        return cls(one, value, frozenset(last[list(best[1])].tolist()))

    def sides(self, known: Values | None) -> Iterator[tuple[NDArray[np.bool_], Values]]:
        """Which judgments are on each side, and the values of that side; ``known`` are those of the group."""
        on_left, values, name = np.isin(self.value, list(self.left)), self.property.values, self.property.name
        if self.property.kind == "number":
            at, whole = float(values[max(self.left)]), known or Values(name)
            yield on_left, replace(whole, high=at)
            yield ~on_left, replace(whole, low=at)
            return
        for side in (on_left, ~on_left):
            yield side, Values(name, tuple(values[code] for code in np.unique(self.value[side])))


def _likelihoods(growth: Growth, part: Preferences, which: NDArray[np.bool_]) -> Iterator[float | None]:
    """Yield the sum of the log-likelihoods of both sides of each division; None where a model is not determined.

    ``which``, shape (divisions, values): whether a value, a cluster of ``part``, is on the left. Where plain
    comparisons are fitted by Bradley and Terry's model, many sides are at once.
    """
    kinds = growth.batch(part, np.arange(part.distinct)).kinds
    many = kinds is not None and growth.member.name == "bradley-terry" and growth.options.get("ties") in SIMPLE
    step = max(1, AT_ONCE // max(2 * kinds.prefs.distinct, 1)) if many and kinds is not None else 1
    for begin in range(0, len(which), step):
        some = which[begin : begin + step]
        if many and kinds is not None:
            try:
                found = _at_once(growth, kinds, np.concatenate([some, ~some]))
            except CannotRank:  # one of them is not determined
                pass
            else:
                yield from found.reshape(2, len(some)).sum(axis=0).tolist()
                continue
        for left in some:
            on_left = left[part.cluster_ways[0]]
            sides = (growth.batch(part, np.flatnonzero(side)) for side in (on_left, ~on_left))
            try:
                yield sum(growth.fitted(side).log_likelihood() for side in sides)
            except CannotRank:  # a side on which the model is not determined
                yield None


def _at_once(growth: Growth, kinds: Kinds, sides: NDArray[np.bool_]) -> Floats:
    """The log-likelihood of each side, whose judgments are those of its values, alike ones once."""
    times = kinds.who @ sides.T.astype(np.int64)
    side, rows = np.nonzero(times.T)
    start = np.searchsorted(side, np.arange(len(sides) + 1))
    batch = Batch(kinds.prefs, np.zeros(len(sides), np.int32), start, rows, times[rows, side])
    scores = growth.scores(batch)
    log_nu = scores.coefficients["ties"][batch.graphs.graph] if growth.options.get("ties") == "davidson" else None
    each = pair_log_likelihoods(batch.graphs, pair_margins(batch.graphs, scores, ()), log_nu)
    return np.asarray(batch.graphs.pairs.sums(each))


def _divisions(kind: str, judged: Any, least: int, order: Ints | None = None) -> Iterator[frozenset[int]]:
    """The ways to divide values in two, each by its left side: cuts of an ``order``, or all of them for a few names."""
    number, total = len(judged), judged.sum()

    def fits(left: Sequence[int]) -> bool:
        there = judged[list(left)].sum()
        return bool(there >= least and total - there >= least)

    if kind == "number" or number > NAMES:
        along = list(range(number)) if order is None else order.tolist()
        yield from (frozenset(along[:cut]) for cut in range(1, number) if fits(along[:cut]))
        return
    for size in range(number - 1):
        for others in combinations(range(1, number), size):
            if fits((0, *others)):
                yield frozenset((0, *others))
