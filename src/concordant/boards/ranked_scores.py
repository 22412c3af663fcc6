"""Systems ranked by their scores on tasks: how sure the order is, tiers, who may be the best, and tests of it."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from concordant.boards.averages import FEWEST, WAYS, Medians, beaten, filled, medians, orders
from concordant.boards.block_tests import Friedman, sign_test, signed_ranks
from concordant.boards.over_tasks import Effects, OverTasks
from concordant.boards.score_table import ScoreTable
from concordant.errors import Setting, UsageError, did_you_mean, few, whole_number
from concordant.preferences.frames import as_pandas
from concordant.preferences.graphs import Batch
from concordant.preferences.notes import Note
from concordant.ranking.bradley_terry import bradley_terry
from concordant.ranking.comparing import contrasts as of_model
from concordant.ranking.comparing import p_said
from concordant.ranking.covariance import t_quantile
from concordant.ranking.edge_tests import family_wise
from concordant.ranking.joint import Joint, Varying
from concordant.ranking.largest import largest, quantile
from concordant.ranking.rank import rank
from concordant.ranking.rank_sets import certainly_above, rank_sets

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
AT_A_TIME = 1 << 22
"""Cells of pairs and tasks that are compared at a time."""


@dataclass(frozen=True, eq=False, repr=False)
class ScoreBoard:
    """Systems ranked by their scores on tasks; ``rank_scores`` makes it.

    >>> import concordant as cc
    >>> scores = {"system": list("aaaaaabbbbbbcccccc"), "task": [1, 2, 3, 4, 5, 6] * 3,
    ...           "score": [9, 8, 9, 7, 9, 8, 5, 6, 4, 5, 5, 3, 5, 5, 5, 4, 5, 4]}
    >>> board = cc.rank_scores(scores)
    >>> board.to_arrow().select(["tier", "rank", "system"]).to_pylist()[0]
    {'tier': 1, 'rank': 1, 'system': 'a'}
    >>> print(board.lines()[0])
    with 95% confidence a is the best by mean score
    """

    table: ScoreTable
    by: str
    level: float
    joint: Varying
    score: Floats
    """Shape (systems,), in the order of ``table.systems``; as it was given where less is better for all tasks."""
    standard_error: Floats
    """Of ``score``, the tasks being a sample."""
    lower: Floats
    upper: Floats
    resamples: int
    notes: tuple[str, ...] = ()

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems, best first, component by component."""
        return tuple(self.table.systems[i] for i in self.order)

    @property
    def way(self) -> str:
        """What ``score`` is, in words."""
        return WAYS[self.by]

    @cached_property
    def order(self) -> Ints:
        """The systems of ``table`` in the order of the rows."""
        return np.lexsort((np.arange(len(self.score)), -self.joint.value, self.joint.group)).astype(np.int64)

    def to_arrow(self) -> pa.Table:
        """Return a row for each system, the best first.

        Columns: component (systems that no chain of tasks connects are not ranked together), tier, rank, rank_lower,
        rank_upper (all ranks at once), may_be_first (missing for a system that shares no task), system, score,
        standard_error, lower, upper (of other tasks of this kind; missing where a single task says nothing of that),
        tasks (with a score) and trials (scores in all).
        """
        order, group = self.order, self.joint.group
        value = self.joint.value
        place = 1 + ((value[None, :] > value[:, None]) & (group[None, :] == group[:, None])).sum(axis=1)
        sets = {kind: self.rank_sets(kind) for kind in ("tiers", "together")}
        known = np.isfinite(self.standard_error)
        of_score = {"standard_error": self.standard_error, "lower": self.lower, "upper": self.upper}
        return pa.table(
            {
                "component": group[order] + 1,
                "tier": sets["tiers"]["tier"],
                "rank": pa.array(place[order], mask=~self.joint.compared[order]),
                "rank_lower": sets["together"]["rank_lower"],
                "rank_upper": sets["together"]["rank_upper"],
                "may_be_first": self.rank_sets("top", top=1)["among_first"],
                "system": pa.array(self.systems),
                "score": self.score[order],
                **{name: pa.array(column[order], mask=~known[order]) for name, column in of_score.items()},
                "tasks": (self.table.trials > 0).sum(axis=1)[order],
                "trials": self.table.trials.sum(axis=1)[order],
            }
        )

    def to_pandas(self) -> Any:
        """Return the rows of ``to_arrow`` as a pandas data frame (pandas must be installed)."""
        return as_pandas(self.to_arrow())

    def rank_sets(
        self, kind: str = "together", *, top: int | None = None, systems: Sequence[str] | None = None
    ) -> pa.Table:
        """Return which ranks the tasks leave open, at the board's level: as ``Ranking.rank_sets``, items being systems.

        Parameters
        ----------
        kind : 'together' (all ranks at once), 'alone' (of each system by itself), 'top' (who may be among the first
            ``top``) or 'tiers' (of two systems in different tiers the one in the better tier is better).
        top : how many are the first, with the kind 'top'.
        systems : those to list (all when not given), in this order.

        Errors: UsageError for unknown systems or kinds; Idle for a ``top`` with another kind.
        """
        nodes = self.order if systems is None else np.array([self._code(one) for one in systems], np.int64)
        items = pa.array([self.table.systems[i] for i in nodes])
        key = (kind, top)
        if key not in self._sets:
            whole = pa.array(self.table.systems)
            every = np.arange(len(self.score))
            self._sets[key] = rank_sets(self.joint, kind, top, every, whole, self.joint.compared)
        found = self._sets[key].take(pa.array(nodes))
        return found.set_column(1, "item", items)

    @cached_property
    def _sets(self) -> dict[Any, pa.Table]:
        return {}

    def _code(self, system: str) -> int:
        if system not in self.table.systems:
            close = difflib.get_close_matches(str(system)[:200], self.table.systems, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"systems there: {few(self.table.systems)}"
            raise UsageError(f"no system {system!r}; {hint}")
        return self.table.systems.index(system)

    def contrasts(self) -> pa.Table:
        """Compare all pairs of each component, the better placed system first.

        Columns: component, first, second, tasks (that both have); difference (positive: the first is better),
        standard_error, lower, upper (of this pair alone), lower_all, upper_all (all pairs at once); p_value (of the
        mean Student's paired t), p_max_t, p_holm (adjusted for all pairs: by the largest statistic, by Holm); wins,
        ties, losses of the first (tasks, or clusters of them), p_sign, p_wilcoxon and both after Holm. Each p-value is
        that of the hypothesis that the two are equal. Missing: the tasks say nothing of the pair.
        """
        first, second = self._pairs()
        if isinstance(self.joint, Joint):
            items = pa.array(self.table.systems)
            found = of_model(self.joint, self.order, items, self.joint.group.astype(np.int64))
        else:
            found = self._differences(first, second)
        there = (self.table.trials > 0).astype(np.float64)
        both = (there @ there.T)[first, second].astype(np.int64)
        found = found.add_column(3, "tasks", pa.array(both))
        for name, column in self._counted(first, second).items():
            found = found.append_column(name, pa.array(column, from_pandas=True))
        return found

    def _pairs(self) -> tuple[Ints, Ints]:
        one, other = np.triu_indices(len(self.order), 1)
        first, second = self.order[one], self.order[other]
        same = self.joint.group[first] == self.joint.group[second]
        return first[same], second[same]

    def _differences(self, first: Ints, second: Ints) -> pa.Table:
        joint = self.joint
        gap = joint.value[first] - joint.value[second]
        alone = joint.alone(first, second)  # type: ignore[attr-defined]
        weight = np.where(np.isfinite(joint.pair_errors), 1.0 / joint.pair_errors, 0.0)
        most = np.sort(largest(joint.draws, weight, joint.group))
        statistic = np.abs(gap) * weight[first, second]
        reached = len(most) - np.searchsorted(most, statistic * (1 - 1e-12), side="left")
        half = joint.together(float(quantile(most, self.level)), first, second)  # type: ignore[attr-defined]
        p_value = alone["p_value"]
        known = ~np.isnan(p_value)
        p_max = np.maximum((1.0 + reached) / (1.0 + len(most)), p_value)
        p_max = np.where(known, np.where(gap != 0, p_max, 1.0), np.nan)
        names = pa.array(self.table.systems)
        columns = {"p_value": p_value, "p_max_t": p_max, "p_holm": _holm(p_value)}
        return pa.table(
            {
                "component": joint.group[first] + 1,
                "first": names.take(pa.array(first)),
                "second": names.take(pa.array(second)),
                "difference": gap,
                **{name: alone[name] for name in ("standard_error", "lower", "upper")},
                "lower_all": gap - half,
                "upper_all": gap + half,
                **{name: pa.array(column, from_pandas=True) for name, column in columns.items()},
            }
        )

    def _counted(self, first: Ints, second: Ints) -> dict[str, Any]:
        """Wins, ties and losses by task, and the tests that go by them."""
        blocks = self.table.blocks
        count = [np.empty(len(first), np.int64) for _ in range(3)]
        p_wilcoxon = np.empty(len(first))
        step = max(1, AT_A_TIME // blocks.shape[1])
        for begin in range(0, len(first), step):
            at = slice(begin, begin + step)
            d = blocks[first[at]] - blocks[second[at]]
            for number, which in zip(count, (d > 0, d == 0, d < 0), strict=True):
                number[at] = which.sum(axis=1)
            p_wilcoxon[at] = signed_ranks(d)
        p_sign = sign_test(count[0], count[2])
        return {
            **dict(zip(("wins", "ties", "losses"), count, strict=True)),
            "p_sign": p_sign,
            "p_sign_holm": _holm(p_sign),
            "p_wilcoxon": p_wilcoxon,
            "p_wilcoxon_holm": _holm(p_wilcoxon),
        }

    def averages(self) -> pa.Table:
        """Return each system by every way to make one number of its scores, with its rank by each (1 the best).

        Columns: component, system, then mean, median, win_rate, borda, bradley_terry and rank_mean and so on. Missing
        cells are filled as for the mean; Bradley–Terry is left out where tasks have weights.
        """
        table, group, order = self.table, self.joint.group, self.order
        effects = Effects.of(table.better, table.weight, table.component)
        shares = Effects.of(beaten(table), table.weight, table.component).mean
        sign = -1.0 if table.lower.all() else 1.0
        better = {
            "mean": effects.mean,
            "median": medians(filled(table, effects), table.weight[None, :])[0],
            "win_rate": shares,
            "borda": shares * (np.bincount(group)[group] - 1),
        }
        if len(np.unique(table.weight)) == 1:
            better["bradley_terry"] = _bradley_terry(table)
        rows: dict[str, Any] = {"component": group[order] + 1, "system": pa.array(self.systems)}
        for name, value in better.items():
            shown = sign * value if name in ("mean", "median") else value
            rows[name] = pa.array(shown[order], from_pandas=True)
        for name, value in better.items():
            above = (value[None, :] > value[:, None] + 1e-12 * np.abs(value[:, None])) & (
                group[None, :] == group[:, None]
            )
            rows[f"rank_{name}"] = pa.array((1 + above.sum(axis=1))[order], mask=np.isnan(value)[order])
        return pa.table(rows)

    @cached_property
    def friedman(self) -> Friedman | None:
        """Friedman's test with Iman and Davenport's, Kendall's W and Nemenyi's critical difference (``block_tests``),
        over the tasks (clusters) that all systems have; None where these are fewer than two."""
        return Friedman.of(self.table.blocks, self.level)

    @cached_property
    def first(self) -> list[str]:
        """The systems of the largest component that may be the best, with the board's confidence."""
        found = self.rank_sets("top", top=1)
        rows = zip(
            found["component"].to_pylist(), found["item"].to_pylist(), found["among_first"].to_pylist(), strict=True
        )
        return [item for component, item, may in rows if component == 1 and may]

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the pairs as nested dictionaries and lists, which JSON can hold."""
        friedman = self.friedman
        return {
            "by": self.by,
            "level": self.level,
            "said": list(map(str, self.lines())),
            "systems": self.to_arrow().to_pylist(),
            "averages": self.averages().to_pylist(),
            "friedman": None if friedman is None else asdict(friedman),
            "notes": list(map(str, self.notes)),
        }

    def __str__(self) -> str:
        return "\n".join(map(str, self.lines()))

    def __repr__(self) -> str:
        k, n = self.table.score.shape
        return f"ScoreBoard({k} systems, {n} tasks, by {self.by})"

    def lines(self) -> list[Note]:
        """Return what the board says as sentences: who may be the best, tiers, neighbours, and Friedman's test."""
        level, first, group = 100 * self.level, self.first, self.joint.group
        of = " of the largest group" if group.any() else ""
        way = self.way + (" (the lowest)" if self.table.lower.all() and self.by in ("mean", "median") else "")
        named: dict[str, Any] = {"level": level, "of": of, "way": way, "systems": int((group == 0).sum())}
        if len(first) == 1:
            said = [Note("first", "with {level:g}% confidence {best} is the best{of} by {way}", best=first[0], **named)]
        elif len(first) == named["systems"]:
            text = "which of {systems:systems}{of} is the best by {way} is open: none is surely not ({level:g}%)"
            said = [Note("first", text, may=len(first), **named)]
        else:
            text = "with {level:g}% confidence the best{of} by {way} is one of {may} of {systems:systems}: {listed}"
            listed = ", ".join(first[:8]) + (f" and {len(first) - 8} more" if len(first) > 8 else "")
            said = [Note("first", text, may=len(first), listed=listed, **named)]
        own = self.order[group[self.order] == 0]
        apart = self.above[np.ix_(own, own)]
        pairs, next_ = len(own) * (len(own) - 1) // 2, int(np.diagonal(apart, 1).sum())
        text = "{apart:,} of {pairs:pairs}{of} can be told apart, all at once; of neighbours {next:,} of {gaps:,}"
        named |= {"apart": int(apart.sum()), "pairs": pairs, "next": next_, "gaps": len(own) - 1}
        said.append(Note("pairs", text, **named))
        tiers = self.rank_sets("tiers", systems=[self.table.systems[i] for i in own])["tier"].to_pylist()
        text = "{tiers:tiers}{of}: every system of a tier is better than every system of the tiers below it"
        said.append(
            Note(
                "tiers",
                text if max(tiers) > 1 else "one tier{of}: no cut of the order is certain",
                tiers=max(tiers),
                **named,
            )
        )
        if (test := self.friedman) is not None:
            text = (
                "Friedman's test that all systems are alike, on {blocks:,} {what}: χ² = {chi:.4g} on {freedom}, {p}; "
                "how much these agree (Kendall's W, 0 to 1): {w:.2f}"
            )
            named = {"blocks": test.tasks, "what": "clusters" if self.table.clustered else "tasks"}
            named |= {"chi": test.chi_square, "freedom": test.systems - 1, "w": test.concordance}
            said.append(Note("friedman", text, p=p_said(test.p_value), **named))
        return said

    @cached_property
    def above(self) -> NDArray[np.bool_]:
        """Which systems are certainly above which, all statements at once, in the order of ``table.systems``."""
        return certainly_above(self.joint, np.ones(len(self.score), bool), self.joint.level_of_differences)


def _holm(p: Floats) -> Floats:
    out, known = np.full(len(p), np.nan), ~np.isnan(p)
    out[known] = family_wise(p[known], int(known.sum()))
    return out


def _bradley_terry(table: ScoreTable) -> Floats:
    """Scores of the systems, NaN for those that no task compares with another one."""
    prefs = orders(table)
    found = bradley_terry(Batch.whole(prefs)).value
    place = {name: at for at, name in enumerate(prefs.items.tolist())}
    return np.array([found[place[name]] if name in place else np.nan for name in table.systems])


def rank_scores(
    scores: Any,
    *,
    by: str = "mean",
    lower_is_better: bool | str | Sequence[str] | None = None,
    level: float = 0.95,
    resamples: int = 5000,
    seed: int = 0,
) -> ScoreBoard:
    """Rank systems by their scores on tasks, and say which differences are more than chance.

    Parameters
    ----------
    scores : rows with the columns system, task, score and, where they are there, trial (several scores of a system on a
        task, which are averaged), weight (> 0, of a task) and cluster (tasks that belong together: of one source, one
        document): an Arrow, pandas or polars table or a mapping of columns, such as ``read_scores`` returns.
    by : 'mean', 'median', 'win-rate', 'borda' or 'bradley-terry' (``averages`` has all of them beside each other).
    lower_is_better : true or false, or the tasks of which a lower score is better; None: true where the names of all
        tasks, or that of the scores, say so (WER, loss, perplexity, …), which a note says.
    level : confidence of intervals, rank sets, tiers.
    resamples : draws of the law of all differences at once: signs of tasks (mean, win-rate, borda), tasks with
        replacement (median).
    seed : of the draws.

    Missing cells are neither zero nor ignored: systems are compared on tasks that they share (module ``over_tasks``).

    Errors: InputError for rows that are no scores (``ScoreTable.of``); UsageError for a way, level or number that is
    not allowed, and for weights with Bradley–Terry.

    >>> import concordant as cc
    >>> rows = {"system": ["a", "a", "b", "b"], "task": [1, 2, 1, 2], "score": [0.5, 0.75, 0.25, 0.5]}
    >>> cc.rank_scores(rows).to_arrow().select(["system", "score", "rank_upper"]).to_pylist()
    [{'system': 'a', 'score': 0.625, 'rank_upper': 2}, {'system': 'b', 'score': 0.375, 'rank_upper': 2}]

    Source: Romano and Wolf, JASA 100, 2005; Mogstad, Romano, Shaikh and Wilhelm, Review of Economic Studies 91, 2024.
    """
    if by not in WAYS:
        raise UsageError(f"unknown way to average {by!r}; {did_you_mean(str(by), WAYS)}")
    if not isinstance(level, float | int) or not 0 < level < 1:
        raise UsageError(f"the level of an interval lies between 0 and 1, not {level!r}")
    drawn = whole_number(resamples, "resamples", least=100, most=1_000_000)
    table = ScoreTable.of(scores, lower_is_better)
    sign = -1.0 if table.lower.all() and by in ("mean", "median") else 1.0
    asked: dict[str, Any] = {"level": float(level), "resamples": drawn, "seed": seed}
    joint, value, error, ends = _fitted(table, by, asked)
    notes = (*table.notes, *_notes(table, by, joint))
    lower, upper = np.sort(sign * np.stack(ends), axis=0)
    return ScoreBoard(table, by, float(level), joint, sign * value, error, lower, upper, drawn, notes)


def _fitted(table: ScoreTable, by: str, asked: dict[str, Any]) -> tuple[Varying, Floats, Floats, Sequence[Floats]]:
    """How the scores vary together; scores, their standard errors, the ends of their intervals."""
    level = asked["level"]
    if by == "bradley-terry":
        if len(np.unique(table.weight)) > 1:
            why = "Bradley–Terry takes each task as one judgment, and tasks have weights here; take "
            raise UsageError(why, Setting("by", "win-rate"))
        prefs = orders(table)
        if lost := sorted({*table.systems} - {*prefs.items.tolist()}):
            raise UsageError(
                f"no task compares {few(lost)} with another system; leave out what is compared with nothing"
            )
        board = rank(prefs, "bradley-terry", interval="sandwich", level=level)
        rows = np.argsort(board.item)
        error = np.sqrt(np.diagonal(board.covariance().matrix))
        alike = (board.upper - board.lower) / 2 / t_quantile(0.5 + level / 2, np.inf)  # of ties alone
        error = np.where(error > 0, error, alike)
        return board._joint(None)[0], board.score[rows], error[rows], (board.lower[rows], board.upper[rows])
    if by == "median":
        drawn = Medians.of(table, **asked)
        half = t_quantile(0.5 + level / 2, np.inf) * drawn.errors
        return drawn, drawn.value, drawn.errors, (drawn.value - half, drawn.value + half)
    score = table.better if by == "mean" else beaten(table)
    if by == "borda":
        score = score * (np.bincount(table.component)[table.component] - 1)[:, None]
    found = OverTasks.of(table, score, **asked)
    freedom = np.maximum(found.effective - 1, 1e-9)
    half = np.where(np.isfinite(found.errors), t_quantile(0.5 + level / 2, freedom) * found.errors, np.inf)
    value = found.effects.mean
    return found, value, found.errors, (value - half, value + half)


def _notes(table: ScoreTable, by: str, joint: Varying) -> list[str]:
    """What a reader should know of the result."""
    notes: list[str] = []
    what = "clusters" if table.clustered else "tasks"
    if joint.group.any():
        text = (
            "no chain of tasks connects all systems: they fall into {groups:groups}, which are ranked by themselves "
            "(column component)"
        )
        alone = [table.systems[i] for i in np.flatnonzero(~joint.compared)]
        text += "; {items} {count:shares|share} no task with another system" if alone else ""
        notes.append(Note("components", text, groups=int(joint.group.max()) + 1, items=alone, count=len(alone)))
    if by != "bradley-terry" and table.clusters < FEWEST:
        text = (
            "{clusters:CLUSTERS} {clusters:is|are} too few to tell systems apart at 95%: that one is better on all of "
            "them happens by chance in {chance:.0%} of such tables; six are needed, at least"
        ).replace("CLUSTERS", what)
        notes.append(Note("few tasks", text, clusters=table.clusters, chance=2.0 ** (1 - table.clusters)))
    if table.lower.any() and not table.lower.all() and by in ("mean", "median"):
        text = (
            "lower is better on {lower:,} of {tasks:tasks}, whose scores count with a minus: a {by} of such a mixture "
            "has no unit; {ask} needs none"
        )
        lower, tasks = int(table.lower.sum()), len(table.tasks)
        notes.append(Note("mixed directions", text, lower=lower, tasks=tasks, by=by, ask=Setting("by", "win-rate")))
    with np.errstate(all="ignore"):
        spread = np.nan_to_num(np.nanstd(table.score, axis=0))
    usual = float(np.percentile(spread, 50, method="lower"))
    if by == "mean" and spread.max() > 10 * usual > 0:
        text = (
            "the scores on {task} spread {times:.0f} times as wide as on the median task and rule the mean; {ask} "
            "weighs tasks alike"
        )
        times, task = float(spread.max() / usual), table.tasks[int(spread.argmax())]
        notes.append(Note("wide task", text, task=task, times=times, ask=Setting("by", "win-rate")))
    if isinstance(joint, OverTasks) and by == "mean" and (table.trials > 1).any() and table.clusters > 1:
        notes.append(_of_trials(table, joint))
    return notes


def _of_trials(table: ScoreTable, joint: OverTasks) -> Note:
    """How much of the variance of differences is that of trials."""
    several = table.trials > 1
    usual = float(np.nanmean(table.within[several] * table.trials[several]))
    part = np.where(table.trials > 0, np.where(several, table.within, usual / np.maximum(table.trials, 1)), 0.0)
    share = joint.effects.share[table.component]
    of_trials = 2 * float((part * share**2).sum(axis=1).mean())
    square = joint.standard_errors[np.isfinite(joint.standard_errors)] ** 2
    of = min(of_trials / float(square.mean()), 1.0) if len(square) and square.mean() > 0 else 0.0
    text = (
        "{cells:cells} {cells:holds|hold} several trials, which are averaged; trials make {of:.0%} of the variance of "
        "the differences: with endless trials standard errors would be {less:.0%} smaller, the rest is which tasks "
        "there are"
    )
    return Note("trials", text, cells=int(several.sum()), of=of, less=1 - float(np.sqrt(1 - of)))
