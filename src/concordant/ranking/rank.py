"""Ranking: an order of the items of each query, with its uncertainty and what the data cannot support."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from concordant.errors import Idle, UsageError, counted, whole_number
from concordant.memory import at_once, needs
from concordant.preferences.connectivity import Connectivity
from concordant.preferences.counts import read_only
from concordant.preferences.frames import as_pandas, as_polars
from concordant.preferences.graphs import Batch
from concordant.preferences.labels import Labels
from concordant.preferences.notes import Note, added_up
from concordant.preferences.pooling import scattered_notes
from concordant.preferences.preferences import Lists, Preferences
from concordant.preferences.ragged import Ragged
from concordant.preferences.status import Status
from concordant.preferences.unused_clusters import one_cluster
from concordant.progress import stage, steps
from concordant.ranking.answers import Answers
from concordant.ranking.contrasts import Gauge, firm, held_at
from concordant.ranking.empirical_bayes import chosen_prior
from concordant.ranking.fit_checks import Check, check_of, checked
from concordant.ranking.flags import LABELS, flags_of, undecided
from concordant.ranking.intervals import Bounds, IntervalOptions, bounds, refuse_idle_wishes
from concordant.ranking.joint import Fitted
from concordant.ranking.rank_intervals import AT_ONCE, among_others, anywhere, draws, places
from concordant.ranking.residuals import standardised
from concordant.ranking.scores import Scores
from concordant.ranking.shown import Shown
from concordant.ranking.standard_errors import few_weighted
from concordant.ranking.structures import Structure
from concordant.ranking.structures import structure as find_structure
from concordant.ranking.unchanged import Earlier, Kept, metadata, query_signs, refuse_whole, settings

Ints = NDArray[np.int32]
Floats = NDArray[np.float64]

BLOCK = AT_ONCE
"""Judgments (or pairs of a list) that are worked on at a time; bounds the memory, changes no more than last bits."""
STEPS, SMALL = 16, 1 << 17
"""In how many blocks fewer are, so that it is known how long they take; and how many make one at least."""
BYTES, BYTES_OF_PAIR, BYTES_OF_ROW = 205, 138, 300
"""What a judgment, a pair of a list, and a row of the ranking take while they are worked on."""


@dataclass(frozen=True, eq=False, repr=False)
class Ranking(Answers, Shown):
    """Items in order of their scores, per query and component; immutable.

    Rows stand by query, component, rank, item. Ranks restart in each component, because scores of two components
    cannot be compared; equal scores share the better rank. ``lower`` and ``upper`` bound the score, ``rank_lower``
    and ``rank_upper`` the ranks of a component together, at ``level``. NaN bounds: no interval was asked for.

    >>> import concordant as cc
    >>> board = cc.rank(cc.Preferences.from_comparisons(["a", "a", "b"], ["b", "b", "a"]))
    >>> board.to_arrow().select(["item", "rank", "judgments"]).to_pylist()
    [{'item': 'a', 'rank': 1, 'judgments': 3}, {'item': 'b', 'rank': 2, 'judgments': 3}]
    """

    queries: Labels
    items: Labels
    query: Ints
    component: Ints
    """1 is the largest of its query."""
    item: Ints
    rank: NDArray[np.int64]
    """From 1; 0 for an item that nobody judged or that is ``provisional``, which stands after the others (in tables it
    is missing then)."""
    score: Floats
    lower: Floats
    upper: Floats
    judgments: NDArray[np.int64]
    """Judgments that touch the item."""
    rank_lower: NDArray[np.int64]
    """Best rank that is compatible with the data; 0 without intervals or rank (in tables it is missing then)."""
    rank_upper: NDArray[np.int64]
    flag: NDArray[np.int8]
    """Sum of the codes of the item's flags (``ranking.flags.FLAGS``); 0: none."""
    provisional: NDArray[np.bool_]
    """Whether the item stands apart from the ranking, without a rank: the data do not decide its place, for wins and
    losses set its score no limit and its rank interval leaves open more than half of the places, or it has fewer
    judgments than were asked for."""
    quasi_error: Floats | None
    """Quasi-standard errors, when asked for: √(q_i² + q_j²) is about the standard error of s_i − s_j."""
    structure: str
    interval: str
    level: float
    status: Mapping[str, NDArray[Any]]
    """Per query: status (a ``Status``), iterations, gradient."""
    coefficients: Mapping[str, Floats] = field(default_factory=dict)
    """Per query: covariates' coefficients, log ν of Davidson's ties ("ties"), log δ of Davidson–Luce's ("ties of 2"),
    with "s.e. of …" beside each."""
    lack_of_fit: Floats | None = None
    """Per query: p-value of the test that one scale explains its pairs; NaN where untested, None where the structure
    has no such test."""
    contradicted: pa.Table | None = None
    """Pairs whose majority contradicts the order of the scores beyond noise, all queries together at 5%: query, winner
    (by the majority), loser, wins, losses, p_value (Holm's), against_ranks (whether the ranks given exclude it)."""
    judged: Fitted | None = None
    """What was ranked and how, of which residuals, comparisons and predictions are computed; None where executors of
    Spark have it."""
    notes: tuple[str, ...] = ()
    """What a reader should know: sentences, which carry what they are made of (``preferences.notes.Note``)."""
    rests: Mapping[str, Any] = field(default_factory=dict)
    """What it rests on, where somebody said so: the command writes down the log, or a store's batches and days, with a
    hash of the judgments. Tables have it as the metadata ``concordant``."""

    def __post_init__(self) -> None:
        for name, value in vars(self).copy().items():
            if isinstance(value, np.ndarray):
                object.__setattr__(self, name, read_only(value))
            elif isinstance(value, dict) and name != "rests":
                object.__setattr__(self, name, {key: read_only(column) for key, column in value.items()})

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update({name: state[name] for name in self.__dataclass_fields__})  # without what was cached
        self.__post_init__()

    def __len__(self) -> int:
        return len(self.item)

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table with the columns of the contract, then rank bounds and flag.

        What the ranking rests on stands in the metadata of the schema, as JSON under ``concordant``.
        """
        quasi = {} if self.quasi_error is None else {"quasi_error": self.quasi_error}
        ranks = {name: getattr(self, name) for name in ("rank", "rank_lower", "rank_upper")}
        ranks = {name: pa.array(column, mask=column == 0) for name, column in ranks.items()}
        flags = pa.DictionaryArray.from_arrays(pa.array(self.flag), pa.array(LABELS)).cast(pa.string())
        table = pa.table(
            {
                "query": self.queries.take(self.query),
                "component": self.component,
                "item": self.items.take(self.item),
                "rank": ranks.pop("rank"),
                "score": self.score,
                "lower": self.lower,
                "upper": self.upper,
                "judgments": self.judgments,
                **ranks,
                "flag": flags,
                "provisional": self.provisional,
                **quasi,
            }
        )
        return table.replace_schema_metadata(self._carried(table) if self.rests else None)

    def _carried(self, table: pa.Table) -> dict[str, Any]:
        """What a table carries: what the ranking rests on, and what tells which queries a later one may keep."""
        held = self.judged
        if held is None or not held.how or not 1 < len(self.queries) == len(np.unique(self.query)):
            return {"concordant": json.dumps(dict(self.rests))}
        signs = query_signs(held.prefs, held.drawn)
        signs[self.status["status"] == Status.STOPPED] = 0
        return metadata(table, self.rests, self.interval, held.how, signs)

    def to_pandas(self) -> Any:
        """Return the rows as a pandas data frame (pandas must be installed)."""
        return as_pandas(self.to_arrow())

    def to_polars(self) -> Any:
        """Return the rows as a polars data frame (polars must be installed)."""
        return as_polars(self.to_arrow())

    def residuals(self) -> pa.Table:
        """Return what the scores expect of every judged pair beside what was observed.

        Columns: query, first, second, judgments (their strength), expected and observed (wins of the first, ties half),
        standardised: observed − expected over its standard error, which accounts for the fitted scores and clusters;
        missing where nothing is left to vary, or one cluster alone judged the pair. What is expected at the values of
        covariates is added up. With ``ties="cumulative"`` judgments are counted, and expected and observed are sums of
        grades, positive where the first is preferred.

        Errors: UsageError when the scores do not say how often one item beats another.

        >>> import concordant as cc
        >>> votes = cc.Preferences.from_comparisons(list("1213"), list("2331"), count=[25, 1, 50, 24])
        >>> found = cc.rank(votes).residuals().to_pylist()[2]
        >>> found["first"], found["second"], found["observed"], round(found["expected"], 3)
        ('2', '3', 1.0, 0.079)

        Source: Agresti, Categorical Data Analysis (2013), §4.5, standardised Pearson residuals.
        """
        if self.structure != "bradley-terry" or self.judged is None:
            raise UsageError(
                f"residuals need scores that say how often one item beats another, as those of bradley-terry do, not "
                f"those of {self.structure}"
            )
        return pa.concat_tables(_residuals(*part) for part in self._parts())

    def _parts(self) -> Iterator[tuple[Batch, Scores]]:
        return (self._fit_of(codes) for codes in _blocks(self._fitted.prefs))

    def _links(self, batch: Batch) -> Connectivity:
        return find_structure(self.structure).links(batch, self._fitted.used.get("ties"))

    @property
    def converged(self) -> bool:
        """Whether every query's scores are exact or reached the tolerance."""
        return not bool((self.status["status"] == Status.STOPPED).any())

    def __repr__(self) -> str:
        return (
            f"Ranking({self.structure}, {len(self.queries):,} queries, {len(self):,} rows, interval={self.interval}, "
            f"{'converged' if self.converged else 'NOT converged'})"
        )


def rank(
    prefs: Preferences,
    structure: str | Structure = "bradley-terry",
    *,
    interval: str = "auto",
    level: float = 0.95,
    seed: int = 0,
    replicates: int = 1000,
    quasi: bool = False,
    reference: Any = None,
    min_judgments: int = 0,
    across_components: bool = False,
    start: Ranking | pa.Table | Earlier | None = None,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> Ranking:
    """Rank the items of every query by a structure function, with intervals for scores and ranks.

    Parameters
    ----------
    prefs : the judgments.
    structure : a name of the registry, or what it holds.
    interval : 'auto', 'hessian', 'sandwich', 'bootstrap' or 'none'. auto takes the sandwich when judgments are
        clustered, carry several edges, half ties or strengths, the Hessian for other likelihoods, Wilson's interval for
        click rates and, for structures without a likelihood, the bootstrap where it is cheap.
    level : confidence of the intervals.
    seed, replicates : of the bootstrap.
    quasi : whether to add quasi-standard errors (Firth & de Menezes, Biometrika 91, 2004).
    reference : an item whose score is 0 (likelihoods). Otherwise, and where a component does not hold it, 0 is the mean
        of the items of the component that the data limit on both sides (of all its items where none is).
    min_judgments : items with fewer judgments stand apart after the ranking (``Ranking.provisional``).
    across_components : whether to rank items of different components together, by the prior's answer alone.
    start : an earlier ranking by the same settings, or the table that the command wrote of one: queries with the same
        judgments keep its rows.
    progress : called with the number of queries done and of all.
    **options : options of the structure (``prior`` and ``ties`` for Bradley–Terry and Plackett–Luce; ``prior="auto"``
        takes the precision under which the judgments are likeliest, see ``ranking.empirical_bayes``).

    Errors: UsageError for an unknown name or option, and (Idle) for one that does nothing here: ``replicates`` where
    no bootstrap is drawn, ``level`` without intervals; CannotRank where the data do not determine what is asked; for a
    ``start`` by other settings, or where rows of a query rest on others (InputError: it does not say what it rests on).

    >>> import concordant as cc
    >>> votes = cc.Preferences.from_comparisons(["a", "a", "b", "b", "c"], ["b", "c", "c", "a", "b"])
    >>> board = cc.rank(votes)
    >>> board.to_arrow()["item"].to_pylist()
    ['a', 'b', 'c']
    """
    if not isinstance(prefs, Preferences):
        raise UsageError(f"rank takes Preferences, not {type(prefs).__name__}; read them first: rank(read(…))")
    wanted = IntervalOptions(interval, level, replicates, seed, quasi)
    member = find_structure(structure)
    given = {**options, "prior": 1.0} if options.get("prior") == "auto" else options
    member.check(prefs.kind, given)
    refuse_idle_wishes(member, wanted)
    if not isinstance(options.get("ties", "half"), str):
        raise UsageError(f"ties must be the name of a treatment of ties, not {type(options['ties']).__name__}")
    if options.get("ties") == "davidson" and prefs.kind in ("selections", "choices", "ratings"):
        raise Idle("ties", f"{prefs.kind} hold no ties")
    gauged = member.likelihood and member.gauge == "sum zero"
    if reference is not None and not gauged:
        raise Idle("reference", f"scores of {member.name} have a zero of their own")
    zero = None if reference is None else _code(prefs, reference)
    least = whole_number(min_judgments, "min_judgments", least=0)
    said: tuple[Note, ...] = ()
    asked = {"structure": member.name, "interval": interval, "level": level, "seed": seed, "replicates": replicates}
    asked |= {"quasi": quasi, "reference": reference, "min_judgments": least, "across_components": across_components}
    how = settings(prefs, {**options, **asked})
    if start is not None:
        refuse_whole(member, interval, options, bool(prefs.covariate_names), reference is not None)
    if options.get("prior") == "auto":
        options["prior"], note = chosen_prior(prefs, member, options)
        said = (note,)
    without: list[NDArray[np.int64]] = []
    if across_components and member.absolute:
        raise Idle("across_components", f"scores of {member.name} compare all items of a query")
    parts: list[_Part] = []
    used: Mapping[str, Any] = {}
    blocks = list(_blocks(prefs))
    drawn = np.repeat([draws(prefs, codes) for codes in blocks] or [False], [len(codes) for codes in blocks] or [0])
    kept = None if start is None else _kept(start, prefs, how, drawn)
    most = max((float(prefs.work[codes].sum()) for codes in blocks), default=0.0)
    rows = int(prefs.member_groups.sizes.sum())
    what = f"{most:,.0f} {'pairs' if isinstance(prefs, Lists) else 'distinct judgments'} at a time"
    needs(
        _each(prefs) * most + BYTES_OF_ROW * rows,
        what + (f", {counted(rows, 'rows')} of the ranking" if rows > most else ""),
    )
    done = 0 if kept is None else int(kept.same.sum())
    if kept is not None:
        blocks = [codes[~kept.same[codes]] for codes in blocks if not kept.same[codes].all()]
    for codes in steps("ranking queries", blocks, costs=[float(prefs.work[codes].sum()) for codes in blocks]):
        batch = Batch.whole(prefs, codes)
        with stage("scores"):
            scores = member.function(batch, **options)
        linked = member.links(batch, options.get("ties"))
        gauge = held_at(batch.node_start, linked, batch.item, zero)
        if gauged:
            at = None if zero is None else firm(batch.node_start, linked) & (batch.item == zero)
            scores = _anchored(batch, scores, linked, at, across_components)
            without.append(codes if at is None else codes[batch.node_groups.sums(at) == 0])
        judgments = member.touched(batch)
        few = linked.compared & (judgments < least)
        with stage("intervals"):
            limits = bounds(batch, scores, member, linked, wanted, options, gauge, ~few, bool(drawn[codes[0]]))
        limits, apart = _apart(batch, linked, limits, few, member)
        used = scores.options
        part = _part(batch, scores, linked, limits, judgments, apart, across_components)
        parts.append(replace(part, check=check_of(_one_way(batch), scores, limits)) if member.expects else part)
        done += len(codes)
        if progress is not None:
            progress(done, len(prefs.queries))
    if zero is not None:
        parts[0] = replace(parts[0], notes=(*parts[0].notes, *_elsewhere(prefs, zero, np.concatenate(without))))
    fitted = Fitted(prefs, options, used, wanted, zero, least, how, drawn)
    if kept is None:
        return _joined(prefs, member.name, parts, fitted, said)
    codes = np.concatenate([*blocks, np.flatnonzero(kept.same)])
    return _joined(prefs, member.name, [*parts, _of_kept(kept)], fitted, (*said, kept.note), np.argsort(codes))


def _of_kept(kept: Kept) -> _Part:
    """The rows of queries that keep theirs; of their fits it is known that they converged."""
    none = np.zeros(int(kept.same.sum()))
    status = {"status": none + Status.CONVERGED, "iterations": none, "gradient": none}
    return _Part({"quasi_error": np.zeros(0), **kept.columns}, status, {}, (), kept.interval)


def _kept(start: Ranking | pa.Table | Earlier, prefs: Preferences, how: str, drawn: NDArray[np.bool_]) -> Kept:
    """The queries that keep the rows of an earlier ranking."""
    if isinstance(start, Ranking):
        table = start.to_arrow()
        start = table.replace_schema_metadata(start._carried(table))
    if isinstance(start, pa.Table):
        start = Earlier.of(start)
    if not isinstance(start, Earlier):
        raise UsageError(
            f"an earlier ranking is a Ranking, or the table that the command wrote of one, not {type(start).__name__}"
        )
    return start.kept(prefs, how, query_signs(prefs, drawn))


def _code(prefs: Preferences, reference: Any) -> int:
    """Return the code of the item that the scores are measured against."""
    labels = prefs.items
    whole = pa.types.is_integer(labels.values.type)
    try:
        wanted = int(reference) if whole else reference
        found = labels.codes_of(pa.array([wanted]))
    except (ValueError, TypeError, OverflowError, pa.ArrowInvalid):
        found = np.array([-1])
    if found[0] < 0:
        close = difflib.get_close_matches(str(reference)[:200], map(str, labels.tolist()), n=1, cutoff=0.5)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise UsageError(f"there is no item {reference!r} to measure the scores against{hint}")
    return int(found[0])


def _anchored(batch: Batch, scores: Scores, linked: Connectivity, at: NDArray[np.bool_] | None, across: bool) -> Scores:
    """Measure the scores against the anchors of their standard errors; ``across``: one shift for a whole query.

    Scores whose prior has means keep the level that it gives them.
    """
    if at is None and scores.options.get("mean"):
        return scores
    if across:
        linked = replace(linked, component=(~linked.compared).astype(np.int32))
    return replace(scores, value=Gauge.of(batch.node_start, linked, at).centre(scores.value))


def _elsewhere(prefs: Preferences, zero: int, without: NDArray[np.int64]) -> tuple[Note, ...]:
    """Say in how many queries the item was not there to be measured against; an error where in none it was."""
    label = prefs.items[zero]
    why = "nobody judged it there, or the data set it no limit on one side: it never lost, never won, or is separated"
    if len(without) == len(prefs.queries):
        raise UsageError(
            f"the scores cannot be measured against {label!r}: {why.replace(' there', '')}; name an item that both won "
            "and lost"
        )
    text = "in {queries:queries} zero is the mean of the items that the data limit, and not {item}: " + why
    return (
        (Note("no reference", text, queries=len(without), of=len(prefs.queries), item=label),) if len(without) else ()
    )


def _each(prefs: Preferences) -> int:
    return BYTES_OF_PAIR if isinstance(prefs, Lists) else BYTES


def _blocks(prefs: Preferences) -> Iterator[NDArray[np.int64]]:
    """Query codes, some at a time, so that memory stays bounded."""
    most = min(at_once(BLOCK, _each(prefs)), max(float(prefs.work.sum()) / STEPS, SMALL))
    for block in Ragged.runs((np.cumsum(prefs.work) / most).astype(np.int64)).slices:
        yield np.arange(block.start, block.stop)


def _one_way(batch: Batch) -> Batch:
    """The judgments clustered by the first of what they depend on: the fit of the model is tested by one."""
    names = batch.prefs.cluster_columns
    return Batch.whole(batch.prefs.by_cluster(names[0]), batch.query) if names else batch


def _residuals(batch: Batch, scores: Scores) -> pa.Table:
    batch = _one_way(batch)
    found, items = standardised(batch, scores), batch.prefs.items
    return pa.table(
        {
            "query": batch.prefs.queries.take(batch.query[found.graph]),
            "first": items.take(batch.item[found.first]),
            "second": items.take(batch.item[found.second]),
            "judgments": found.judgments,
            "expected": found.expected,
            "observed": found.observed,
            "standardised": pa.array(found.standardised, from_pandas=True),
        }
    )


@dataclass(frozen=True)
class _Part:
    """The rows of some queries."""

    columns: dict[str, NDArray[Any]]
    status: dict[str, NDArray[Any]]
    coefficients: dict[str, Floats]
    notes: tuple[Note, ...]
    interval: str
    check: Check | None = None


def _apart(
    batch: Batch, linked: Connectivity, limits: Bounds, few: NDArray[np.bool_], member: Structure
) -> tuple[Bounds, NDArray[np.bool_]]:
    """Limits of the ranks among the items that the data give a place, and which items they give none."""
    group = Gauge.of(batch.node_start, linked).group
    apart = few
    if member.likelihood:
        apart = few | undecided(flags_of(linked), group, limits.rank_lower, limits.rank_upper)
    if not apart.any():
        return limits, apart
    lower, upper = among_others(limits.rank_lower, limits.rank_upper, group, apart)
    return replace(limits, rank_lower=lower, rank_upper=upper), apart


def _part(
    batch: Batch,
    scores: Scores,
    linked: Connectivity,
    limits: Bounds,
    judgments: NDArray[np.int64],
    apart: NDArray[np.bool_],
    across: bool,
) -> _Part:
    group = np.zeros_like(scores.component) if across else scores.component
    exact = bool((scores.status == Status.CLOSED_FORM).all())
    after = np.where(linked.compared, apart, 2)
    order, place = places(batch.owner, group, after, scores.value, batch.item, 1e-12 if exact else 1e-8)
    columns: dict[str, NDArray[Any]] = {
        "query": batch.query[batch.owner],
        "component": scores.component + 1,
        "item": batch.item,
        "score": scores.value,
        "lower": limits.lower,
        "upper": limits.upper,
        "judgments": judgments,
        "rank_lower": limits.rank_lower,
        "rank_upper": anywhere(batch, linked, linked.compared & ~apart, limits.rank_upper)
        if across
        else limits.rank_upper,
        "flag": flags_of(linked, batch),
        "provisional": apart,
        "quasi_error": limits.quasi if limits.quasi is not None else np.zeros(0),
    }
    columns = {name: column[order] if len(column) else column for name, column in columns.items()} | {"rank": place}
    status: dict[str, NDArray[Any]] = {
        "status": scores.status,
        "iterations": scores.iterations,
        "gradient": scores.gradient,
    }
    errors = {f"s.e. of {name}": value for name, value in limits.coefficients.items()}
    return _Part(columns, status, scores.coefficients | errors, scores.notes + limits.notes, limits.method)


def _joined(
    prefs: Preferences,
    name: str,
    parts: Sequence[_Part],
    fitted: Fitted,
    chosen: tuple[Note, ...],
    order: NDArray[np.int64] | None = None,
) -> Ranking:
    """Put parts together; ``order``: of their queries, where they do not follow each other."""
    queries = np.concatenate([np.zeros(0, np.int64), *(part.columns["query"] for part in parts)])
    rows = slice(None) if order is None else np.argsort(queries, kind="stable")
    turn = slice(None) if order is None else order

    def column(key: str, kind: Any) -> NDArray[Any]:
        return np.concatenate([np.zeros(0, kind), *(part.columns[key] for part in parts)]).astype(kind)[rows]

    status = {
        key: np.concatenate([np.zeros(0), *(part.status[key] for part in parts)])[turn]
        for key in ("status", "iterations", "gradient")
    }
    p_value, contradicted, said = checked(prefs, [part.check for part in parts if part.check is not None])
    if p_value is not None:
        p_value = np.append(p_value, np.full(len(status["status"]) - len(p_value), np.nan))[turn]
    member, method, read = find_structure(name), fitted.wanted.method, iter(prefs.notes)
    of_lists = member.reads == "lists"  # it puts what they leave out below what they hold
    if method in ("bootstrap", "hessian", "none") or member.curvature is None:  # the sandwich alone takes several
        read = one_cluster(read, used=method not in ("hessian", "none"))
    keys = list(dict.fromkeys(key for part in parts for key in part.coefficients))
    coefficients = {
        key: np.concatenate(
            [part.coefficients.get(key, np.full(len(part.status["status"]), np.nan)) for part in parts]
        )[turn]
        for key in keys
    }
    return Ranking(
        queries=prefs.queries,
        items=prefs.items,
        query=column("query", np.int32),
        component=column("component", np.int32),
        item=column("item", np.int32),
        rank=column("rank", np.int64),
        score=column("score", np.float64),
        lower=column("lower", np.float64),
        upper=column("upper", np.float64),
        judgments=column("judgments", np.int64),
        rank_lower=column("rank_lower", np.int64),
        rank_upper=column("rank_upper", np.int64),
        flag=column("flag", np.int8),
        provisional=column("provisional", bool),
        quasi_error=column("quasi_error", np.float64) if fitted.wanted.quasi else None,
        structure=name,
        interval=" or ".join(dict.fromkeys(part.interval for part in parts)) or "none",
        level=fitted.wanted.level,
        status=status,
        coefficients=coefficients,
        lack_of_fit=p_value,
        contradicted=contradicted,
        judged=fitted,
        notes=(
            *(note for note in read if not (of_lists and getattr(note, "code", "") == "not ranked")),
            *chosen,
            *scattered_notes(prefs),
            *_population(prefs, parts),
            *added_up((note for part in parts for note in part.notes), len(prefs.queries)),
            *said,
        ),
    )


FEW = 30
"""Degrees of freedom below which it is said that the t law is not the normal one."""


def _population(prefs: Preferences, parts: Sequence[_Part]) -> tuple[Note, ...]:
    """Say for which new judgments clustered intervals hold, and by which law where clusters are few; or weights."""
    if not any(part.interval == "sandwich" for part in parts):
        return ()
    if not prefs.cluster_ways:
        return few_weighted(prefs)
    numbers = [len(np.unique(codes)) for codes in prefs.cluster_codes]  # every label is used
    return (clusters_note(prefs.cluster_columns or ("cluster",), numbers, len(prefs.queries)),)


def clusters_note(names: Sequence[str], numbers: Sequence[int], queries: int) -> Note:
    """Return the note on what intervals allow for, where judgments lie in so many clusters of each column."""
    which = " and ".join(f"the same {name} ({number:,})" for name, number in zip(names, numbers, strict=True))
    text = "intervals allow for judgments of {which} being alike: they hold for new ones like these"
    freedom = min(numbers) - 1
    if queries == 1 and freedom < FEW:
        text += ", by the t law with {freedom} degrees of freedom"
    return Note("clusters", text, which=which, freedom=freedom)
