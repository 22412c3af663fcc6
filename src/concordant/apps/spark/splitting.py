"""One query that no task can hold, divided among tasks: scores of Bradley–Terry and Plackett–Luce, those of memory.

The likelihood, its gradient and its Hessian times a vector are sums over pairs, or over lists. Rows of a pair (either
way) or of a list go to one share, which counts them and keeps the pair table or the lists; what travels after that is a
number for each item: Newton's method runs on the driver, and asks the shares for each gradient and each product.

What connects the items: a share sends which of them its own wins connect, and what it connects is connected in the
whole. Only wins between items that no share connects strongly are sent as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import from_arrow_schema
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from concordant.apps.spark.checking import KEYS, Checks
from concordant.apps.spark.frames import JudgedQueries
from concordant.apps.spark.learning_held import PIECES, Sums, _whole, changed, pieces, summed
from concordant.apps.spark.partitioning import BUCKET, PACKED, put_together, spread
from concordant.errors import InputError, NoMaximumLikelihood, counted
from concordant.io.engines.spark_session import parallelism
from concordant.preferences.connectivity import Connectivity, connected
from concordant.preferences.graphs import Batch
from concordant.preferences.labels import Labels
from concordant.preferences.preferences import Preferences
from concordant.preferences.ragged import Ragged
from concordant.preferences.status import Status
from concordant.progress import stage
from concordant.ranking.luce_terms import LuceTerms
from concordant.ranking.newton import System, fit_system
from concordant.ranking.problem import Problem, win_derivatives
from concordant.ranking.ranked_lists import Rankings, touches
from concordant.ranking.scores import HELP, check_prior

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
SHARE = 1 << 20
"""Distinct judgments of a share, about."""
TASKS = 2
"""Tasks for each core, at most: each sends a number for each item in every pass."""
BETWEEN = 1 << 22
"""Wins between blocks that a task lays out at once."""
CROSSING = 1 << 23
"""Wins between items that no share connects which the driver takes at most."""


@dataclass(frozen=True, eq=False)
class Share:
    """What a share keeps: items by their codes among ``items`` or, then None, among those of the query."""

    queries: Labels
    items: Labels | None
    touched: Ints
    """Judgments of each item, while ``items`` are its own."""
    judgments: int

    def coded(self, items: Labels) -> Self:
        """Name the items by their codes among ``items``."""
        own = items.codes_of((self.items or items).values)
        touched = np.zeros(len(items), np.int64)
        touched[own] = self.touched
        return replace(self, items=None, touched=touched, **self._placed(own))

    def _placed(self, own: NDArray[np.int32]) -> dict[str, Any]:
        """The fields that name items, where item i is called own[i]."""
        raise NotImplementedError

    def links(self) -> tuple[NDArray[Any], NDArray[np.bool_], NDArray[np.bool_]]:
        """Which items its own wins connect strongly (a number for each), who ever won, and who ever lost."""
        raise NotImplementedError

    def between(self, block: NDArray[np.int32]) -> Crossing:
        """The wins between items of different blocks; of those between two blocks one is enough."""
        raise NotImplementedError

    def slopes(self, score: Floats) -> tuple[Floats, Floats]:
        """What it adds to the gradient of the log-likelihood, and to the diagonal of the negative Hessian."""
        raise NotImplementedError

    def image(self, score: Floats, along: Floats) -> Floats:
        """The negative Hessian at some scores times a vector."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Pairs(Share):
    """The pair table of a share."""

    first: NDArray[np.int32]
    second: NDArray[np.int32]
    above: NDArray[Any]
    below: NDArray[Any]

    @classmethod
    def of(cls, prefs: Preferences) -> Pairs:
        """The pair table of some judgments of one query."""
        batch = Batch.whole(prefs)
        graphs, codes = batch.graphs, batch.item.astype(np.int32)
        wins = _narrow(graphs.above), _narrow(graphs.below)
        return cls(*_known(prefs, batch), codes[graphs.first], codes[graphs.second], *wins)

    def _placed(self, own: NDArray[np.int32]) -> dict[str, Any]:
        return {"first": own[self.first], "second": own[self.second]}

    @property
    def wins(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Whoever won, and against whom."""
        up, down = self.above > 0, self.below > 0
        return np.append(self.first[up], self.second[down]), np.append(self.second[up], self.first[down])

    def links(self) -> tuple[NDArray[Any], NDArray[np.bool_], NDArray[np.bool_]]:
        source, target = self.wins
        size = len(self.touched)
        beats = csr_array((np.ones(len(source), np.int8), (source, target)), shape=(size, size))
        strong = connected_components(beats, directed=True, connection="strong")[1]
        won, lost = (np.bincount(side, minlength=size) > 0 for side in (source, target))
        return strong, won, lost

    def between(self, block: NDArray[np.int32]) -> Crossing:
        return Crossing.of(block, *self.wins)

    def slopes(self, score: Floats) -> tuple[Floats, Floats]:
        pull, curve = self._derivatives(score)
        size = len(self.touched)
        both = np.bincount(self.first, curve, size) + np.bincount(self.second, curve, size)
        return self._differences(pull), np.asarray(both, np.float64)

    def image(self, score: Floats, along: Floats) -> Floats:
        return self._differences(self._derivatives(score)[1] * (along[self.first] - along[self.second]))

    def _derivatives(self, score: Floats) -> tuple[Floats, Floats]:
        above, below = (np.asarray(each, np.float64) for each in (self.above, self.below))
        return win_derivatives(score[self.first] - score[self.second], above, below)

    def _differences(self, of_pairs: Floats) -> Floats:
        size = len(self.touched)
        found = np.bincount(self.first, of_pairs, size) - np.bincount(self.second, of_pairs, size)
        return np.asarray(found, np.float64)


@dataclass(frozen=True, eq=False)
class Listed(Share):
    """The lists of a share."""

    lists: Rankings
    code: NDArray[np.int32]
    """Of each of their nodes."""

    @classmethod
    def of(cls, prefs: Preferences) -> Listed:
        """Some lists of one query."""
        batch = Batch.whole(prefs)
        return cls(*_known(prefs, batch), Rankings.of(batch), batch.item.astype(np.int32))

    def _placed(self, own: NDArray[np.int32]) -> dict[str, Any]:
        return {"code": own[self.code]}

    def links(self) -> tuple[NDArray[Any], NDArray[np.bool_], NDArray[np.bool_]]:
        linked, size = self.lists.connected(), len(self.touched)
        strong = int(linked.block.max(initial=-1)) + 1 + np.arange(size)
        strong[self.code] = linked.block
        won, lost = np.zeros(size, bool), np.zeros(size, bool)
        won[self.code], lost[self.code] = linked.won, linked.lost
        return np.unique(strong, return_inverse=True)[1], won, lost

    def between(self, block: NDArray[np.int32]) -> Crossing:
        lists, own = self.lists, block[self.code]
        of_entries = own[lists.node]
        mixed = np.flatnonzero(lists.groups.most(of_entries) > -lists.groups.most(-of_entries))
        some = lists.take(mixed)
        tier = np.unique(np.column_stack([some.row, some.tier, own[some.node]]), axis=0, return_index=True)[1]
        tiers = Ragged.runs(some.row[tier], some.tier[tier])
        node = self.code[some.node[tier]]
        upper = np.flatnonzero(np.diff(some.row[tier[tiers.first]]) == 0)
        work = np.cumsum(tiers.sizes[upper] * tiers.sizes[upper + 1])
        found = Crossing.none()
        for run in Ragged.runs(work // BETWEEN).slices if len(work) else ():
            below = tiers.sizes[upper[run] + 1]
            each = Ragged.of_sizes(tiers.sizes[upper[run]] * below)
            above, under = np.divmod(each.place, each.spread(below))
            source, target = each.spread(tiers.first[upper[run]]), each.spread(tiers.first[upper[run] + 1])
            found += Crossing.of(block, node[source + above], node[target + under])
        return found

    def slopes(self, score: Floats) -> tuple[Floats, Floats]:
        at = LuceTerms(self.lists).at(score[self.code])
        return self._spread(at.gradient()), self._spread(at.diagonal())

    def image(self, score: Floats, along: Floats) -> Floats:
        return self._spread(LuceTerms(self.lists).at(score[self.code]).times(along[self.code]))

    def _spread(self, of_nodes: Floats) -> Floats:
        found = np.zeros(len(self.touched))
        found[self.code] = of_nodes
        return found


def _known(prefs: Preferences, batch: Batch) -> tuple[Labels, Labels, Ints, int]:
    touched = np.zeros(len(prefs.items), np.int64)
    touched[batch.item] = touches(batch)
    return prefs.queries, prefs.items, touched, len(prefs)


Work = Callable[[Share], Sums]


# -- in a task -----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Making:
    """The task: packed rows of a share become an object, such as its pair table."""

    checks: Checks
    most: int
    of: Callable[[Preferences], Any]

    def __call__(self, key: tuple[Any, ...], rows: pa.Table) -> pa.Table:
        table = put_together(iter(rows.select(PACKED.names).to_batches()), self.most, stopping=False)
        prefs = None if table is None else self.checks.preferences(table)
        return _whole(pieces(int(key[0].as_py()), None if prefs is None or not len(prefs) else self.of(prefs)))


def _narrow(values: Floats) -> NDArray[Any]:
    whole = not len(values) or bool((values == np.floor(values)).all())
    return values.astype(np.min_scalar_type(int(values.max(initial=0)))) if whole else values


@dataclass(frozen=True)
class Union:
    """Labels; those of parts are united."""

    labels: Labels

    def __add__(self, other: Union) -> Union:
        return Union(self.labels.union(other.labels)[0])


def _labels(share: Share) -> Sums:
    return Sums(items=Union(share.items or Labels.empty()), queries=Union(share.queries), judgments=share.judgments)


def _nothing(_: Share) -> Sums:
    return Sums()


@dataclass(frozen=True)
class _Coding:
    """Name the items by their codes among all of the query."""

    items: Labels

    def __call__(self, share: Share) -> Share:
        return share.coded(self.items)


@dataclass(frozen=True, eq=False)
class Blocks:
    """Which items belong together; what parts connect is connected."""

    block: NDArray[np.int32]

    def __add__(self, other: Blocks) -> Blocks:
        size, begin = len(self.block), int(self.block.max(initial=-1)) + 1
        item, ends = np.arange(size), (self.block.astype(np.int64), other.block.astype(np.int64) + begin)
        row, column = np.append(item, item), size + np.append(*ends)
        nodes = size + begin + int(other.block.max(initial=-1)) + 1
        graph = csr_array((np.ones(2 * size, np.int8), (row, column)), shape=(nodes, nodes))
        joined = connected_components(graph, directed=False)[1][:size]
        return Blocks(np.unique(joined, return_inverse=True)[1].astype(np.int32))


def _links(share: Share) -> Sums:
    strong, won, lost = share.links()
    ever = {"won": won.astype(np.int64), "lost": lost.astype(np.int64)}
    return Sums(strong=Blocks(strong.astype(np.int32)), touched=share.touched, **ever)


@dataclass(frozen=True, eq=False)
class Crossing:
    """A win for each two blocks between which there are some."""

    key: Ints
    source: NDArray[np.int32]
    target: NDArray[np.int32]

    @classmethod
    def of(cls, block: NDArray[np.int32], source: NDArray[np.int32], target: NDArray[np.int32]) -> Crossing:
        """Of the wins of ``source`` over ``target``. Errors: as of ``checked``."""
        one, other = block[source], block[target]
        kept = np.flatnonzero(one != other)
        key = one[kept].astype(np.int64) * (int(block.max()) + 1) + other[kept]
        key, first = np.unique(key, return_index=True)
        return cls(key, source[kept][first], target[kept][first]).checked()

    @classmethod
    def none(cls) -> Crossing:
        """No wins."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int32))

    def __add__(self, other: Crossing) -> Crossing:
        key, first = np.unique(np.append(self.key, other.key), return_index=True)
        return Crossing(
            key, np.append(self.source, other.source)[first], np.append(self.target, other.target)[first]
        ).checked()

    def checked(self) -> Crossing:
        """Errors: InputError where there are too many."""
        if len(self.key) > CROSSING:
            raise InputError(
                f"one query has more than {CROSSING:,} wins between items that few others connect: it is not divided "
                "among tasks; rank it on one machine that holds it"
            )
        return self


@dataclass(frozen=True, eq=False)
class _Between:
    """Wins between blocks."""

    block: NDArray[np.int32]

    def __call__(self, share: Share) -> Sums:
        return Sums(crossing=share.between(self.block))


@dataclass(frozen=True, eq=False)
class _At:
    """The gradient's part at some scores, and the Hessian's diagonal."""

    score: Floats

    def __call__(self, share: Share) -> Sums:
        pull, degree = share.slopes(self.score)
        return Sums(pull=pull, degree=degree)


@dataclass(frozen=True, eq=False)
class _Times:
    """The Hessian at some scores times a vector."""

    score: Floats
    along: Floats

    def __call__(self, share: Share) -> Sums:
        return Sums(image=share.image(self.score, self.along))


# -- on the driver -------------------------------------------------------------------------------------------------
def together(judged: JudgedQueries, label: Any, of: Callable[[Preferences], Any]) -> tuple[DataFrame, int, int]:
    """Bring the rows of each pair, or list, of a query to one share and keep what is made of it; how many shares and
    tasks.
    """
    if judged.compared:
        one, other = (fn.col(f"`{role}`") for role in judged._sides)
        return shared_out(judged, label, of, fn.least(one, other), fn.greatest(one, other))
    return shared_out(judged, label, of, *(fn.col(key) for key in KEYS if key in judged.frame.columns))


def shared_out(
    judged: JudgedQueries, label: Any, of: Callable[[Preferences], Any], *together: Any
) -> tuple[DataFrame, int, int]:
    """Bring the rows of a query with equal values in the columns ``together`` to one share, as ``together`` does."""
    frame = judged.frame if label is None else judged.frame.where(fn.col("query") == fn.lit(label))
    number = dict(zip(judged.large, judged.large_sizes, strict=True))[label]
    shares = -(-number // min(SHARE, judged.most))
    tasks = min(shares, TASKS * parallelism(judged.session))
    bucket = fn.pmod(fn.xxhash64(*together), fn.lit(shares)).cast("int")
    packing = partial(spread, roles=judged.frame.columns, counting=judged.compared, by_query=False)
    packed = frame.withColumn(BUCKET, bucket).mapInArrow(packing, from_arrow_schema(PACKED))
    making = _Making(judged.checks, 2 * SHARE, of)
    made = packed.repartition(tasks, BUCKET).groupBy(BUCKET)
    found = made.applyInArrow(lambda key, rows: making(key, rows), from_arrow_schema(PIECES))
    return found.persist(StorageLevel.MEMORY_AND_DISK), shares, tasks


@dataclass(eq=False)
class Divided:
    """The shares of a query, and of each item what is known of it; to be freed by ``forget``."""

    frame: DataFrame
    shares: int
    tasks: int
    query: Labels = field(init=False)
    items: Labels = field(init=False)
    judgments: int = field(init=False)
    links: Connectivity = field(init=False)
    touched: Ints = field(init=False)
    """Judgments of each item."""
    passes: int = 0
    """Over all pairs or lists."""
    by: str = "pairs"
    """What it is divided by."""

    @classmethod
    def of(cls, judged: JudgedQueries, label: Any, *, lists: bool = False) -> Divided | None:
        """Count the judgments of a query in shares, as ``lists`` or as pairs; None where it has none.

        Errors: as of any task.
        """
        self = cls(*together(judged, label, Listed.of if lists else Pairs.of))
        self.by = "pairs" if judged.compared else "lists"
        try:
            return self if self.look() else None
        except BaseException:
            self.forget()
            raise

    def look(self) -> bool:
        """Learn what there is, and what connects the items; False, and nothing is kept, where there is nothing."""
        with stage(f"counting {self.by}"):
            found = self.sums(_labels)
        if not found:
            self.forget()
            return False
        self.query, self.items, self.judgments = found["queries"].labels, found["items"].labels, found["judgments"]
        with stage("what connects the items"):
            self.change(_Coding(self.items))
            self._link()
        return True

    def change(self, change: Callable[[Share], Share]) -> None:
        """Change every share."""
        before, self.frame = self.frame, changed(self.frame, change)
        self.sums(_nothing)
        before.unpersist()

    def _link(self) -> None:
        found = self.sums(_links)
        block = found["strong"].block.astype(np.int64)
        sorter = np.argsort(block, kind="stable")
        runs = Ragged.runs(block[sorter])
        after = np.append(sorter[1:], sorter[:1])
        after[runs.start[1:] - 1] = sorter[runs.first]  # each block a cycle, which connects as all of its wins do
        several = runs.spread(runs.sizes) > 1
        source, target = sorter[several], after[several]
        if len(runs.sizes) > 1:
            between = self.sums(_Between(block.astype(np.int32)))["crossing"]
            source, target = np.append(source, between.source), np.append(target, between.target)
        size = len(self.items)
        links = connected(Ragged(np.array([0, size])), source.astype(np.int64), target.astype(np.int64))
        self.links = replace(links, won=found["won"] > 0, lost=found["lost"] > 0)
        self.touched = found["touched"]

    def sums(self, work: Work) -> Sums:
        """Do a piece of work on every share and add up."""
        self.passes += 1
        return summed(self.frame, work, self.tasks)

    def fitted(self, *, prior: float = 0.01, tolerance: float = 1e-10, max_iterations: int = 100) -> Fitted:
        """The scores that maximise the likelihood, as ``fit_sparse`` finds them in memory."""
        check_prior(prior)
        apart = int(self.links.separated.sum())
        if prior == 0 and apart:
            raise NoMaximumLikelihood(
                f"the maximum likelihood of {self._what} does not exist: no chain of wins limits "
                f"{counted(apart, 'items')} on both sides. ",
                *HELP,
            )
        component = self.links.component.astype(np.int64)
        none, no = np.zeros(0, np.int64), np.zeros(0)
        start = np.array([0, len(self.items)])
        problem = Problem(start, np.zeros(2, np.int64), none, none, no, no, None, None, component, prior)
        with stage("fitting scores"):
            fit = fit_system(problem, tolerance, max_iterations, lambda one: _System(one, self))
        return Fitted(fit.score, int(fit.status[0]), int(fit.iterations[0]), float(fit.gradient[0]))

    def forget(self) -> None:
        """Free what is kept."""
        self.frame.unpersist()

    @property
    def _what(self) -> str:
        return f"query {self.query[0]!r}" if self.query[0] not in (None, "") else "the log"

    @property
    def said(self) -> str:
        """How it was done."""
        return (
            f"{self._what}: {counted(self.judgments, 'judgments')} of {counted(len(self.items), 'items')}, divided "
            f"among tasks by their {self.by} ({self.shares:,} shares, {self.passes:,} passes)"
        )


@dataclass(frozen=True)
class Fitted:
    """Where a fit ended."""

    score: Floats
    status: int
    iterations: int
    gradient: float

    @property
    def stopped(self) -> bool:
        """Whether before convergence."""
        return self.status == Status.STOPPED


class SummedSystem(System):
    """Newton's equations of graphs whose pairs or lists lie in shares; conjugate gradients to the end."""

    def slopes(self, s: Floats) -> tuple[Floats, Floats]:
        """What the pairs add to the gradient, its sign changed, and to the diagonal of the Hessian."""
        raise NotImplementedError

    def image(self, xs: Floats) -> Floats:
        """The Hessian of the pairs, where ``slopes`` was last, times a vector."""
        raise NotImplementedError

    def evaluate(self, s: Floats, b: Floats) -> None:
        super().evaluate(s, b)  # without pairs: the prior alone
        pull, degree = self.slopes(s)
        self.slope_s = self.slope_s - pull
        self.diagonal = degree + self.problem.prior
        self.settle()

    def apply(self, xs: Floats, xb: Floats) -> tuple[Floats, Floats]:
        return self.image(xs) + self.problem.prior * xs, xb

    def spread(self, ds: Floats, db: Floats) -> Floats:
        return self.spread_bound(ds, db)  # at least the range over the pairs

    def newton_step(self, precision: Floats) -> tuple[Floats, Floats]:
        patience = np.full(self.problem.graphs, 2_000)
        xs, xb, open_ = self.conjugate_gradients(-self.slope_s, -self.slope_b, precision, patience)
        self.unfinished[:] = open_
        return self.centre(xs), xb


class _System(SummedSystem):
    """Of the one graph of a divided query."""

    def __init__(self, problem: Problem, divided: Divided) -> None:
        super().__init__(problem)
        self.divided = divided

    def slopes(self, s: Floats) -> tuple[Floats, Floats]:
        self.score = s.copy()
        found = self.divided.sums(_At(s))
        return found["pull"], found["degree"]

    def image(self, xs: Floats) -> Floats:
        return np.asarray(self.divided.sums(_Times(self.score, xs))["image"], np.float64)
