"""May the first places be named while votes still come in? Statements that hold at every look, however often one looks.

How much likelier are the votes if j is better than i than if they are equal? Let δ = s_j − s_i, and

    E_ij = ∫ L(δ) dF(δ)/L(0),   F the law of |N(0, ρ²)|, ρ² = ½.

Whoever chooses the next pair, by whatever the votes so far say, the chances of the answer are those of the model: the
choice cancels, and E_ij is a martingale where s_j = s_i (falling where s_j < s_i). By Ville's inequality the chance
that it *ever* exceeds 1/α is at most α. It depends on the counts only, not on the order of the votes or on the looks.
Two likelihoods:

- ``bradley-terry``: of all votes. The other abilities are integrated out under N(0, 1); L is a normal curve about the
  maximum (Laplace), with m and v the mean and variance of δ given the votes and 1/u = 1/v − 1/2, x = mu/v:

      E_ij = 2 √(u/(u + ρ²)) exp(x²ρ²/(2u(u + ρ²))) Φ(xρ/√(u(u + ρ²))).

- ``direct``: of the votes between the two, which j wins with the chance 1/(1 + e^−δ); F in 32 points of equal
  probability. Nothing is approximate, no model is needed, and ties as halves leave it valid (the ratio is convex).

i belongs to the first k if at most k − 1 are better. Of these E_ij the k − 1 largest may be right; the mean of the
other n − k is evidence against i (means of martingales are martingales), and i is out from k/α on. With probability
1 − α none of the true first k is ever out: the mean is what the number of items costs.

Sources: Ville 1939; Robbins, Ann. Math. Statist. 41, 1970 (mixtures); Vovk and Wang, Ann. Statist. 49, 2021 (means,
several hypotheses); Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas, Ann. Statist. 52, 2024 (normal approximation).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import log_ndtr, logsumexp, ndtri

from concordant.auditing.stopping import check_tops
from concordant.errors import InputError, UsageError
from concordant.preferences.frames import as_pandas
from concordant.preferences.graphs import Batch
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Comparisons, Preferences
from concordant.progress import stage, steps
from concordant.ranking.bradley_terry import bradley_terry
from concordant.ranking.shown import LEFT, LINES, html_lines, html_table, html_words, in_markdown, markdown_rows
from concordant.stages import Stage

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
LARGEST = 2_000
"""Items of a query, at most: all pairs are looked at."""
SPREAD = 0.5
"""ρ², about the square of a difference that is worth telling apart."""
POINTS = np.sqrt(SPREAD) * ndtri(0.5 + (np.arange(32) + 0.5) / 64)
"""|N(0, ρ²)| in 32 points of equal probability."""
HELD = 1 << 21
"""Numbers of a stack of matrices held at once."""
JUDGES = Note(
    "judges alike", "votes of one judge are taken as independent of each other; where judges differ, this is too sure"
)
NUMBERS = ("place", "judgments", "p_value", "among_first", "rank_lower", "rank_upper")
"""Columns that are no labels."""
FAR = 3.0
"""When votes are shared out no difference is taken for larger: few votes say so by chance."""


@dataclass(frozen=True, eq=False)
class Stack:
    """Queries with the same number of items side by side."""

    graph: Ints
    nodes: Ints
    """Shape (G, n), as nodes of the batch."""
    value: Floats
    covariance: Floats
    """Shape (G, n, n): of the abilities given the votes, under N(0, 1)."""
    evidence: Floats
    """log E_ij at [g, i, j]: that j is better than i; −inf on the diagonal."""


def by_model(value: Floats, covariance: Floats) -> Floats:
    """log E_ij by the abilities given all votes; ``value`` (G, n), ``covariance`` (G, n, n)."""
    own = np.einsum("gii->gi", covariance)
    v = own[:, :, None] + own[:, None, :] - 2.0 * covariance
    np.einsum("gii->gi", v)[:] = 2.0
    u = 1.0 / np.maximum(1.0 / v - 0.5, 1e-12)
    x = (value[:, None, :] - value[:, :, None]) * u / v
    part = SPREAD / (u + SPREAD)
    found = np.log(2.0) + 0.5 * np.log1p(-part) + 0.5 * part * x * x / u + log_ndtr(x * np.sqrt(part / u))
    np.einsum("gii->gi", found)[:] = -np.inf
    return np.asarray(found)


def by_direct_votes(won: Floats) -> Floats:
    """log E_ij by the votes between the two; ``won`` (G, n, n), [g, i, j] how often i was preferred to j."""
    found = np.full(won.shape, -np.inf)
    for point in POINTS:
        win, loss = np.log(2.0) - np.logaddexp(0.0, -point), np.log(2.0) - np.logaddexp(0.0, point)
        found = np.logaddexp(found, win * won.swapaxes(1, 2) + loss * won)
    found -= np.log(len(POINTS))
    np.einsum("gii->gi", found)[:] = -np.inf
    return np.asarray(found)


def against_first(evidence: Floats, top: int) -> Floats:
    """Logarithm of the evidence that an item is not among the first ``top``; shape (G, n), 0 where n ≤ ``top``."""
    n = evidence.shape[1]
    if n <= top:
        return np.zeros(evidence.shape[:2])
    if top > 1:
        evidence = np.sort(evidence, axis=2)[:, :, : n - top + 1]  # the diagonal and the n − k smallest
    return np.asarray(logsumexp(evidence, axis=2) - np.log(n - top))


def better_pairs(evidence: Floats, level: float) -> Bools:
    """Which j are better than i, all at once: Holm's steps with 1/E for p-values; shape (G, n, n)."""
    graphs, n = evidence.shape[:2]
    flat = evidence.reshape(graphs, -1)
    order = np.argsort(-flat, axis=1, kind="stable")
    ranked = np.take_along_axis(flat, order, 1)
    left = np.maximum(n * (n - 1) - np.arange(n * n), 1)
    passed = np.logical_and.accumulate(ranked >= np.log(left) - np.log1p(-level), axis=1)
    found = np.empty(flat.shape, bool)
    np.put_along_axis(found, order, passed, 1)
    return found.reshape(evidence.shape)


def _side_by_side(size: Ints) -> list[Ints]:
    """Queries with the same number of items, as many as are held at once."""
    found = []
    for n in np.unique(size[size > 1]).tolist():
        chosen, step = np.flatnonzero(size == n), max(1, HELD // n**2)
        found += [chosen[begin : begin + step] for begin in range(0, len(chosen), step)]
    return found


def _stack(batch: Batch, graph: Ints, value: Floats, direct: bool) -> Stack:
    graphs, n, start = batch.graphs, int(batch.sizes[graph[0]]), batch.node_start[:-1]
    won = np.zeros((len(graph), n, n))
    pairs = np.flatnonzero(np.isin(graphs.graph, graph))
    row = np.searchsorted(graph, graphs.graph[pairs])
    first, second = (side[pairs] - start[graph[row]] for side in (graphs.first, graphs.second))
    won[row, first, second], won[row, second, first] = graphs.above[pairs], graphs.below[pairs]
    nodes = start[graph][:, None] + np.arange(n)
    s = value[nodes]
    share = 1.0 / (1.0 + np.exp(s[:, None, :] - s[:, :, None]))
    hessian = -(won + won.swapaxes(1, 2)) * share * (1.0 - share)
    np.einsum("gii->gi", hessian)[:] = 1.0 - hessian.sum(axis=2)
    covariance = np.asarray(np.linalg.inv(hessian), np.float64)
    evidence = by_direct_votes(won) if direct else by_model(s, covariance)
    return Stack(graph, nodes, s, covariance, evidence)


@dataclass(frozen=True, eq=False)
class Look:
    """What may be said of each query now, and was allowed to be looked at as often as anybody liked before.

    >>> votes = Preferences.from_comparisons(["x", "y", "x", "z"], ["y", "x", "z", "y"], count=[70, 30, 40, 35])
    >>> found = look(votes)
    >>> found.settled.tolist(), found.among_first.tolist(), found.lines()
    ([True], [True, False, False], ['Settled: x is the first of 3 items, with 95% confidence at every look.'])
    """

    batch: Batch
    top: int
    level: float
    direct: bool
    place: Ints
    """Shape (items of all queries,): the place by the scores, 1 the best of its query."""
    p_value: Floats
    """That the item is among the first k: k over the evidence against it, at most 1. Valid at every look."""
    among_first: NDArray[np.bool_]
    """Which may be among the first k. With probability ``level`` none of the true ones is missing at any look."""
    rank_lower: Ints
    """Best and worst rank that the votes leave open: all items, at all looks together with probability ``level``."""
    rank_upper: Ints
    settled: NDArray[np.bool_]
    """Shape (queries,): no more than k items may be among the first k."""
    stacks: tuple[Stack, ...]
    notes: tuple[Note, ...] = ()

    def to_arrow(self, *, ranks: bool = False) -> pa.Table:
        """Return a row for each item, best place first: whether it may be among the first, or its range of ranks."""
        batch = self.batch
        order = np.lexsort((self.place, batch.owner))
        total = batch.graphs.above + batch.graphs.below
        said: dict[str, Any] = {"p_value": self.p_value[order], "among_first": self.among_first[order]}
        if ranks:
            said = {"rank_lower": self.rank_lower[order], "rank_upper": self.rank_upper[order]}
        return pa.table(
            {
                "query": batch.prefs.queries.take(batch.query[batch.owner[order]]),
                "place": self.place[order],
                "item": batch.prefs.items.take(batch.item[order]),
                "judgments": np.round(batch.graphs.add_to_nodes(total, total)[order]).astype(np.int64),
                **said,
            }
        )

    def to_pandas(self, *, ranks: bool = False) -> Any:
        """Return the rows as a pandas data frame (pandas must be installed)."""
        return as_pandas(self.to_arrow(ranks=ranks))

    def lines(self, *, ranks: bool = False) -> list[str]:
        """Say in a sentence how the first places stand, or what the ranks promise."""
        if ranks:
            return [f"With {100 * self.level:g}% confidence the ranks of all items lie in their ranges, at every look."]
        batch, level = self.batch, f"{100 * self.level:g}% confidence at every look"
        asked = batch.sizes > self.top
        what = "the first" if self.top == 1 else f"the first {self.top}"
        if len(batch) > 1:
            done = int((self.settled & asked).sum())
            return [f"{done:,} of {int(asked.sum()):,} queries are settled: {what} can be named, with {level}."]
        items = batch.prefs.items.take(batch.item[np.lexsort((self.place, ~self.among_first))]).to_pylist()
        left = int(self.among_first.sum())
        if self.settled[0]:
            named = ", ".join(str(item) for item in items[:left])
            return [f"Settled: {named} {'is' if left == 1 else 'are'} {what} of {len(items):,} items, with {level}."]
        return [f"Not settled: {left:,} of {len(items):,} items may be {'' if self.top == 1 else 'among '}{what}, "
                f"with {level}."]  # fmt: skip

    def to_markdown(self, said: Callable[[str], str] = str, *, ranks: bool = False) -> str:
        """Return what is said, the items as a table, and the notes, in Markdown. ``said``: how a note is written."""
        names, rows = self._cells(ranks)
        lines = [in_markdown(line) for line in self.lines(ranks=ranks)]
        notes = [f"- {in_markdown(said(note))}" for note in self.notes]
        right = [name for name in names if name not in LEFT]
        return "\n".join([*lines, "", *markdown_rows(names, rows, right), *([""] if notes else []), *notes, ""])

    def _repr_html_(self) -> str:
        names, rows = self._cells(False)
        more = f"… {len(rows) - LINES:,} more items" if len(rows) > LINES else ""
        said = "".join(html_words(line) for line in [*self.lines(), *([more] if more else [])])
        return f"<div>{said}{html_table(names, rows[:LINES])}{html_lines(self.notes)}</div>"

    def _cells(self, ranks: bool) -> tuple[list[str], list[list[str]]]:
        """The table as texts under names."""
        table = self.to_arrow(ranks=ranks)
        if len(self.batch) == 1:
            table = table.drop_columns("query")
        return [name.replace("_", " ") for name in table.column_names], [
            [_said(value) if name in NUMBERS else str(value) for name, value in row.items()]
            for row in table.to_pylist()
        ]

    def ask(self, votes: int = 100) -> pa.Table:
        """Share out the next ``votes`` of each query: columns ``query, first, second, votes``, most votes first.

        Always one of the present first k against one below, the pair whose order is then expected to be the least
        certain: its evidence now, and what the votes that were shared out already would add to it, δ²/2 times the
        information, were δ as it seems. Queries that are settled get none.

        Errors: UsageError for less than one vote.
        """
        if votes < 1:
            raise UsageError(f"votes to share out: a number of at least 1, not {votes}")
        rows = [(np.zeros(0, np.int64),) * 4]
        opened = [(one, np.flatnonzero(~self.settled[one.graph])) for one in self.stacks]
        costs = [float(len(rows) * one.nodes.shape[1] ** 2) for one, rows in opened]
        with stage("pairs to ask", sum(costs)) as advance:
            for (stack, some), cost in zip(opened, costs, strict=True):
                if len(some):
                    row, first, second, many = _shared(stack, some, self.top, votes, advance, cost)
                    rows.append((stack.graph[row], stack.nodes[row, first], stack.nodes[row, second], many))
        graph, first, second, many = (np.concatenate(column) for column in zip(*rows, strict=True))
        order = np.lexsort((-many, graph))
        prefs, item = self.batch.prefs, self.batch.item
        return pa.table(
            {
                "query": prefs.queries.take(self.batch.query[graph[order]]),
                "first": prefs.items.take(item[first[order]]),
                "second": prefs.items.take(item[second[order]]),
                "votes": many[order],
            }
        )


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}"


def _shared(
    stack: Stack, rows: Ints, top: int, votes: int, advance: Stage, cost: float
) -> tuple[Ints, Ints, Ints, Ints]:
    """Row of the stack, two places in it, and the votes that the pair gets; ``cost``: what ``advance`` hears in all."""
    value, covariance = stack.value[rows], stack.covariance[rows].copy()
    row = np.arange(len(rows))
    order = np.argsort(-value, axis=1, kind="stable")
    high, low = order[:, :top], order[:, top:]
    at = row[:, None, None], high[:, :, None], low[:, None, :]
    gap = value[:, :, None] - value[:, None, :]
    evidence = stack.evidence[rows].swapaxes(1, 2)[at]
    v = _variances(covariance, at)
    x = np.minimum(gap[at] / np.maximum(1.0 - 0.5 * v, 1e-12), FAR)  # by the votes alone, without the prior
    growth, before = 0.5 * x * x, 1.0 / v
    given = np.zeros(v.shape, np.int64)
    each = max(1, votes // 1000)
    for begin in range(0, votes, each):
        many = min(each, votes - begin)
        least = (evidence + growth * (1.0 / v - before)).reshape(len(rows), -1).argmin(axis=1)
        a, b = np.divmod(least, low.shape[1])
        given[row, a, b] += many
        i, j = high[row, a], low[row, b]
        w = many / (2.0 + 2.0 * np.cosh(gap[row, i, j]))
        u = covariance[row, i] - covariance[row, j]
        by = w / (1.0 + w * (u[row, i] - u[row, j]))
        covariance -= by[:, None, None] * u[:, :, None] * u[:, None, :]
        v = _variances(covariance, at)
        advance(cost * many / votes)
    g, a, b = np.nonzero(given)
    return rows[g], high[g, a], low[g, b], given[g, a, b]


def _variances(covariance: Floats, at: tuple[Ints, Ints, Ints]) -> Floats:
    """Of the differences between two items; ``at``: row, one item, the other."""
    row, high, low = at
    return np.asarray(covariance[row, high, high] + covariance[row, low, low] - 2.0 * covariance[at])


def look(source: Preferences | Batch, *, top: int = 1, level: float = 0.95, direct: bool = False) -> Look:
    """Say which items may be the first, so that it may be asked after every vote and the voting stopped by the answer.

    The ``level`` of other intervals is that of one look; who stops at the first good one is wrong far more often. Here
    it is the probability that nothing wrong is said at any look, whatever pairs were asked, by whomever they were
    chosen. Each vote may depend on earlier ones only through the pair that was asked.

    Parameters
    ----------
    source : votes between two items (ties are halves), each query by itself, or a batch of them.
    top : how many places are to be settled.
    level : probability that the true first ones are never excluded.
    direct : whether only the votes between two items say which is better: valid without a model and from the first vote
        on; needs votes on the pairs that matter, as ``Look.ask`` has them asked. Without it all votes count, by the
        Bradley–Terry model with abilities of about N(0, 1); the curve of the likelihood is taken for a normal one.

    Errors: InputError where nothing is compared; UsageError for rankings, ratings and selections, for votes of unequal
    strength or with covariates, more than 2,000 items, a top that no query has and a level outside (0.5, 1).

    >>> votes = Preferences.from_comparisons(["x", "y"], ["y", "x"], count=[12, 4])
    >>> look(votes).among_first.tolist(), look(votes + votes + votes).among_first.tolist()
    ([True, True], [True, False])

    Source: see ``concordant.auditing.looking``.
    """
    batch = source if isinstance(source, Batch) else Batch.whole(source)
    prefs = batch.prefs
    if not 0.5 < level < 1:
        raise UsageError(f"the level lies between 0.5 and 1, not {level}")
    with stage("adding up votes"):
        none = not len(batch.graphs.first)
    if none:
        raise InputError(f"no pair of items is compared in {len(batch):,} queries, so there is nothing to look at")
    if not isinstance(prefs, Comparisons):
        raise UsageError(f"looking while votes come in is for votes between two items, not for {prefs.kind}")
    if prefs.weighted or prefs.covariates is not None:
        what = "votes of unequal strength (weights, grades)" if prefs.weighted else "covariates of votes"
        raise UsageError(f"looking while votes come in knows no {what}: one vote counts as one")
    if (largest := int(batch.sizes.max())) > LARGEST:
        raise UsageError(f"a query has {largest:,} items; all pairs are looked at, of at most {LARGEST:,} items")
    check_tops((top,), batch.sizes)
    nodes = len(batch.item)
    p_value, among, place = np.ones(nodes), np.ones(nodes, bool), np.ones(nodes, np.int64)
    lower, upper = np.ones(nodes, np.int64), np.ones(nodes, np.int64)
    with stage("scores"):
        value = bradley_terry(batch, prior=1.0).value
    stacks, chosen = [], _side_by_side(batch.sizes)
    for graph in steps(
        "evidence", chosen, costs=[float(batch.sizes[one[0]] * batch.sizes[one].sum()) for one in chosen], single=True
    ):
        stacks.append(stack := _stack(batch, graph, value, direct))
        n = stack.nodes.shape[1]
        against = against_first(stack.evidence, top) - np.log(top)
        p_value[stack.nodes] = np.exp(-np.maximum(against, 0.0))
        among[stack.nodes] = against < -np.log1p(-level)
        place[stack.nodes] = np.argsort(np.argsort(-stack.value, axis=1, kind="stable"), axis=1) + 1
        better = better_pairs(stack.evidence, level)
        lower[stack.nodes], upper[stack.nodes] = 1 + better.sum(axis=2), n - better.sum(axis=1)
    settled = np.bincount(batch.owner, among, len(batch)) <= top
    notes = () if prefs.cluster is None else (JUDGES,)
    return Look(batch, top, level, direct, place, p_value, among, lower, upper, settled, tuple(stacks), notes)
