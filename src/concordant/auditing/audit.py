"""``cc.audit``: the facts of each query, the best order, every surrogate's minimiser, sampling noise; part by part."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from concordant.auditing import default_scorer
from concordant.auditing.active_pairs import pairs_to_ask
from concordant.auditing.findings import Audit
from concordant.auditing.gain_laws import Law, Yardstick, judge_by_gains, minimised
from concordant.auditing.held_out import HeldOut, held_out_regrets
from concordant.auditing.noise import noise
from concordant.auditing.regret import SurrogateVerdict, check_ties, judge_by_pairs
from concordant.auditing.rows import edge_rows, held_out_rows, order_rows, query_rows, surrogate_rows
from concordant.auditing.scores_covariance import fitted
from concordant.auditing.settings import AuditSettings
from concordant.auditing.shapes import shapes
from concordant.auditing.stopping import settling
from concordant.errors import CannotRank, InputError, UsageError, refuse_idle, whole_number
from concordant.learning.rankers.edge_sources import usual_note
from concordant.learning.rankers.plans import CHANCES
from concordant.learning.rankers.target import Target
from concordant.losses.surrogates import Chosen, choose
from concordant.memory import needs
from concordant.preferences.connectivity import Differences
from concordant.preferences.counted import refuse_crossed
from concordant.preferences.graphs import Batch, Graphs
from concordant.preferences.notes import Note, added_up, of_queries
from concordant.preferences.pooling import scattered_notes
from concordant.preferences.preferences import Lists, Preferences
from concordant.preferences.ragged import Ragged
from concordant.preferences.status import Status
from concordant.progress import stage, steps
from concordant.ranking.adjacency import mean_adjacency
from concordant.ranking.best_orders import BestOrders, best_orders, improved
from concordant.ranking.ranked_lists import examined_only

WHY = {
    Status.STOPPED: "{queries:was|were} still moving when the time for them was spent",
    Status.LEFT_OUT: "{queries:has|have} too many items and preferences",
}
"""Why nothing is said of a surrogate, by its status."""


def left_out(queries: pa.Table, surrogates: pa.Table) -> list[Note]:
    """Which surrogates were not minimised, which orders not searched to the end, what was not resampled."""
    notes: list[Note] = []
    status, name = np.array(surrogates["status"].to_pylist()), np.array(surrogates["surrogate"].to_pylist())
    for ended, why in WHY.items():
        if (status == ended.word).any():
            names, counts = np.unique(name[status == ended.word], return_counts=True)
            each = ", ".join(f"{one} ({count:,})" for one, count in zip(names.tolist(), counts.tolist(), strict=True))
            text = why + ": nothing is said of {each}"
            which = np.arange(len(queries)) < counts.max()
            notes.extend(of_queries("no minimiser", which, text, each=each))
    short = np.array(["too large" in method for method in queries["optimal_method"].to_pylist()], bool)
    text = "{queries:is|are} too large to search for the best order to the end"
    notes.extend(of_queries("best order open", short, text))
    if "acyclic_share" in queries.column_names:
        shares = queries["acyclic_share"].to_numpy(zero_copy_only=False).astype(float)
        text = "{queries:has|have} too many pairs to be resampled: no shares of replicates"
        notes.extend(of_queries("not resampled", np.isnan(shares), text))
    return notes


Floats = NDArray[np.float64]
WORK, BLOCKS, LEAST = 500_000, 20, 5_000
"""Judgments (or pairs of a list) that are audited at a time, at most; in how many blocks fewer are, and how many make
one at least. Bounds the memory, and what an interrupted audit loses."""
COMPILED, BYTES, BYTES_OF_CELL = 150e6, 400, 100
"""What compiled loops, a judgment and a pair of items of a query take while they are audited."""
LARGEST = 5_000
"""Items of a query up to which an eighth of the square of their number counts as work, too."""
DRAWS = 1_000
"""From how many draws it is said how sure the top is: to within .016."""
SPLITTINGS = 1_000
"""Splits of the judgments of all queries: five of each of few queries, one of each of many."""
HALVED = 1_000_000
"""Distinct judgments that are split in all."""


@dataclass(frozen=True)
class Extent:
    """How much all of a log holds, of which a part may be audited."""

    queries: int
    distinct: int
    largest: int
    """Items of its largest query."""

    @classmethod
    def of(cls, prefs: Preferences) -> Extent:
        """Count what preferences hold."""
        return cls(len(prefs.queries), len(prefs.count), int(prefs.member_groups.sizes.max(initial=0)))


@dataclass(frozen=True)
class Wanted:
    """What was asked for, and what it means for these preferences."""

    settings: AuditSettings
    chosen: tuple[Chosen, ...]
    law: Law
    target: Target | None
    """What every surrogate is judged by; None: each by its own."""
    default: tuple[Chosen, ...]
    """The surrogates that say what the default scorer would do; none where it was not asked for."""

    @classmethod
    def of(cls, prefs: Preferences, settings: AuditSettings) -> Wanted:
        """Read the names of what is to be audited; without one all, the default scorer included.

        Of ``prefs`` only the kind counts, but of clicks how they are read.
        """
        kind = str(prefs.kind)
        usual = Target.of(settings.target, kind)
        target = usual if settings.target is not None or usual.of_lists else None
        structure = settings.structure or (usual.structure_for(prefs) if usual.of_lists else None)
        made = (settings.order, settings.subsets, settings.seed)
        law = Law.of(prefs, structure, *made, options=settings.structure_options)
        names, default = asked_for(settings.surrogates)
        return cls(settings, names, law, target, default_scorer.needed(kind, usual) if default else ())

    @property
    def judged(self) -> dict[str, Chosen]:
        """Every surrogate that has to be minimised, by name."""
        return {one.name: one for one in (*self.chosen, *self.default)}

    def target_of(self, chosen: Chosen) -> str:
        """What a surrogate is judged by."""
        return str(self.target or chosen.target)

    @property
    def by_lists(self) -> Yardstick | None:
        """The loss of lists that every surrogate is judged by; None where there is not one for all."""
        listed = self.target is not None and self.target.of_lists
        return Yardstick.asked(self.target, self.law) if self.target is not None and listed else None


def asked_for(names: Sequence[str] | None) -> tuple[tuple[Chosen, ...], bool]:
    """Return the surrogates that are named and whether the default scorer is; without a name all of it.

    >>> asked_for(["default"]), asked_for(["default", "linear"])[0][0].name
    (((), True), 'linear')
    """
    others = [name for name in names or () if name != default_scorer.NAME]
    if names and len(names) - len(others) > 1:
        raise UsageError("a surrogate is named twice")
    return choose(others) if others or not names else (), not names or len(others) < len(names)


def audit(
    prefs: Preferences,
    *,
    surrogates: Sequence[str] | None = None,
    target: str | None = None,
    ties: str = "heavier",
    exact: bool = False,
    time_limit: float = 10.0,
    structure: str | None = None,
    structure_options: Mapping[str, Any] | None = None,
    order: int | str = "all",
    subsets: int = 32,
    replicates: int = 200,
    level: float = 0.95,
    top: int | None = None,
    ask: int = 10,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Audit:
    """Say for each query whether its preferences, with a loss, can lead to the right order.

    With s the mean adjacency of a query's judgments, the audit says whether the difference graph d_ij = [s_ij − s_ji]₊
    is acyclic, whether it is low-noise (AoS Definition 4), and whether ICML (16) holds. It gives the least pairwise
    loss (10) over all orders, and for each surrogate its minimisers over α ∈ ℝ^m, whether every one is optimal (AoS
    Definition 3), and the regret of the worst. Surrogates of scores are judged by NDCG or ERR. Losses are per judgment,
    as strong as its weight.

    Parameters
    ----------
    prefs : the judgments.
    surrogates : names, "name" or "name:phi", and "default", the aggregation that the gate of the default scorer would
        take; None, all of the registry and the default.
    target : what every surrogate and the default are judged by, as ``AggregationRanker`` reads it: 'pairwise',
        'ndcg@10', 'err@10', 'precision@5'; lists by the scores that ``structure`` gives all judgments. None: each
        surrogate by the loss that it is for, the default by the pairwise loss; of click logs all by ERR.
    ties : how the pairwise loss charges tied scores, 'heavier' or 'paper'.
    exact : whether best orders are found by dynamic programming up to 20 items that hang together in cycles, then by an
        integer programme; otherwise up to 12, then by a local search with a proven bound.
    time_limit : seconds of each integer programme.
    structure, structure_options, order, subsets : surrogates of scores are judged on the law of this structure's scores
        of 'all' judgments, or of ``subsets`` random subsets of ``order`` judgments.
    replicates : bootstrap samples of the judgments for what is said of noise. With 0 nothing is said of noise, of what
        would settle the top, nor which pairs to ask.
    level : confidence of what is said of noise.
    top : number of items whose place at the top is to be settled; None, the first.
    ask : number of pairs to ask, for the top where it is given, else for the whole order.
    seed : of the bootstrap, the subsets and the local search.
    progress : called with the number of queries done and of all.

    Errors: UsageError for wrong options, and (Idle) for those that would do nothing beside the others; InputError
    without judgments.

    >>> import concordant as cc
    >>> theorem3 = cc.Preferences.from_comparisons(list("1213"), list("2331"), count=[25, 1, 50, 24])
    >>> found = cc.audit(theorem3, replicates=0)
    >>> row = found.queries.to_pylist()[0]
    >>> row["acyclic"], row["low_noise"], round(row["optimal_loss"], 12), row["optimal_exact"]
    (True, 'true', 0.24, True)
    >>> found.to_arrow().select(["ranknet.consistent", "difference-graph.consistent"]).to_pylist()
    [{'ranknet.consistent': False, 'difference-graph.consistent': True}]

    Source: Duchi, Mackey and Jordan (2013), §3, §5.3; (2010), §1–3.
    """
    settings = AuditSettings(
        surrogates=surrogates, target=target, ties=ties, exact=exact, time_limit=time_limit, structure=structure,
        structure_options=structure_options, order=order, subsets=subsets, replicates=replicates, level=level, top=top,
        ask=ask, seed=seed,
    )  # fmt: skip
    return audited(prefs, settings, progress)


def audited(
    prefs: Preferences,
    settings: AuditSettings,
    progress: Callable[[int, int], None] | None = None,
    *,
    keep: bool = False,
) -> Audit:
    """Do what ``audit`` does, for settings that are one object.

    ``keep``: a KeyboardInterrupt ends it with what is done: the queries that are audited, or of the first ones the
    surrogates that are judged; ``settings["incomplete"]`` and a note say what is missing. Before there is one it goes
    on.
    """
    if not isinstance(prefs, Preferences):
        raise UsageError(f"audit takes Preferences, not {type(prefs).__name__}; read them first: audit(read(…))")
    refuse_crossed(prefs, "an audit")
    wanted = Wanted.of(prefs, settings)
    items = int(prefs.member_groups.sizes.sum())
    usual = prefs.kind == "selections" and settings.structure is None and wanted.law.structure.name in CHANCES
    noted = usual_note(prefs, wanted.law.structure.name) if usual else []
    prefs = prefs if wanted.law.structure.below else examined_only(prefs)
    unseen = items - int(prefs.member_groups.sizes.sum())
    parts = parts_of(prefs, wanted, progress, keep=keep)
    done = sum(len(part.queries) for part in parts)
    whole = prefs.facts, scattered_notes(prefs), len(prefs.queries)
    cut = parts[-1].cut or done < len(prefs.queries)
    found = (_cut if cut else put_together)(wanted, parts, *whole)
    text = "{unseen:items} {unseen:was|were} never examined: nothing is known of {unseen:it|them}, and nothing is said"
    noted += [Note("never examined", text, unseen=unseen)] if unseen else []
    return replace(found, notes=(*noted, *found.notes)) if noted else found


def parts_of(
    prefs: Preferences,
    wanted: Wanted,
    progress: Callable[[int, int], None] | None = None,
    *,
    keep: bool = False,
    extent: Extent | None = None,
) -> list[Part]:
    """Audit the queries of preferences, which may be a part of a log of this ``extent``; ``keep``: as ``audited``.

    Errors: as ``audit``.
    """
    extent = extent or Extent.of(prefs)
    _check(prefs, wanted.settings, extent)
    _refuse_idle(wanted)
    parts: list[Part] = []
    done = 0
    blocks = list(_some(prefs))
    most = max(float(prefs.work[codes].sum()) for codes in blocks)
    largest = int(prefs.member_groups.sizes.max())
    text = (
        f"{most:,.0f} {'pairs' if isinstance(prefs, Lists) else 'distinct judgments'} and {largest:,} items at a time"
    )
    needs(COMPILED + BYTES * most + BYTES_OF_CELL * largest**2, f"the audit of {text}")
    try:
        for codes in steps("auditing queries", blocks, costs=[float(prefs.work[codes].sum()) for codes in blocks]):
            part = _part(prefs, codes, wanted, extent, keep)
            if part.cut and parts:  # others are whole
                break
            parts.append(part)
            if part.cut:
                break
            done += len(codes)
            if progress is not None:
                progress(done, len(prefs.queries))
    except KeyboardInterrupt:
        if not keep or not parts:
            raise
    return parts


def _check(prefs: Preferences, asked: AuditSettings, extent: Extent) -> None:
    if not len(prefs.queries):
        raise InputError("there is no judgment to audit")
    check_ties(asked.ties)
    for name, least in (("replicates", 0), ("ask", 0), ("top", 1)):
        if (value := getattr(asked, name)) is not None:
            whole_number(value, name, least)
    for name in ("time_limit", "level"):
        if isinstance(value := getattr(asked, name), bool) or not isinstance(value, Real):
            raise UsageError(f"{name} must be a number, not {value!r}")
    if not 0 < asked.time_limit < np.inf:
        raise UsageError(f"time_limit must be a positive number of seconds, not {asked.time_limit}")
    if not 0.5 < asked.level < 1:
        raise UsageError(f"level must be between 0.5 and 1, not {asked.level}")
    most = extent.largest
    if asked.top is not None and not 1 <= asked.top < most:
        raise UsageError(f"top must be at least 1 and below the {most:,} items of the largest query, not {asked.top}")


def _refuse_idle(wanted: Wanted) -> None:
    """Refuse options that nothing reads beside the others. Errors: Idle."""
    asked = wanted.settings
    given = {one.name: getattr(asked, one.name) for one in fields(AuditSettings)}
    if not asked.replicates:
        why = "without replicates nothing is said of sampling noise, nor of what would settle it"
        refuse_idle(given, {"level": 0.95, "top": None, "ask": 10}, why, "leave it out, or ask for replicates")
    if not asked.exact:
        why = "only exact best orders take an integer programme"
        refuse_idle(given, {"time_limit": 10.0}, why, "leave it out, or ask for exact ones")
    members = wanted.judged.values()
    targets = {wanted.target_of(chosen) for chosen in members}
    if "pairwise" not in targets:
        refuse_idle(given, {"ties": "heavier"}, "nothing asked for is judged by the pairwise loss")
    if targets == {"pairwise"} and all(chosen.member.reads != "scores" for chosen in members):
        why = "all that was asked for is judged by the pairwise loss, nothing by NDCG or ERR"
        refuse_idle(given, {"structure": None, "structure_options": None, "order": "all", "subsets": 32}, why)
    if asked.order == "all":
        why = "all judgments of a query are aggregated at once"
        refuse_idle(given, {"subsets": 32}, why, "leave it out, or give order a number")


@dataclass(frozen=True)
class Part:
    """The findings of some queries."""

    queries: pa.Table
    surrogates: dict[str, pa.Table]
    default: dict[str, pa.Table]
    """The rows that the default scorer has if its gate takes this candidate."""
    orders: pa.Table
    settling: pa.Table | None
    ask: pa.Table | None
    held_out: HeldOut | None
    edges: pa.Table | None
    notes: tuple[Note, ...]
    cut: bool = False
    """Whether it was interrupted: some surrogates, and nothing of noise."""


def _cut(wanted: Wanted, parts: list[Part], facts: str, said: Sequence[Note], queries: int) -> Audit:
    """Put together what an interrupted audit has done, and say what it has not."""
    done = sum(len(part.queries) for part in parts)
    of, some = len(wanted.chosen), [one for one in wanted.chosen if one.name in parts[-1].surrogates]
    if parts[-1].cut:
        text = (
            "interrupted: {judged} of {of} losses are judged, in {queries:queries}; nothing is said of the others, "
            "nor of sampling noise"
        )
        wanted = replace(
            wanted, chosen=tuple(some), default=wanted.default if parts[-1].default else (),
            settings=replace(wanted.settings, replicates=0),
        )  # fmt: skip
    else:
        text = "interrupted: {queries} of {all:queries} are audited; nothing is said of the others"
    found = put_together(wanted, parts, facts, said, queries)
    incomplete = {"queries": done, "of_queries": queries, "losses": len(some), "of_losses": of}
    note = Note("incomplete", text, judged=len(some), of=of, queries=done, all=queries)
    return replace(found, settings={**found.settings, "incomplete": incomplete}, notes=(note, *found.notes))


def _some(prefs: Preferences) -> Iterator[NDArray[np.int64]]:
    """Query codes, some at a time, so that memory stays bounded."""
    items = prefs.member_groups.sizes.astype(np.float64)
    complete = np.where(items <= LARGEST, items * items, 0.0) / 8
    work = np.maximum(prefs.work, complete)
    at_once = np.clip(work.sum() / BLOCKS, LEAST, WORK)
    for block in Ragged.runs((np.cumsum(work) / at_once).astype(np.int64)).slices:
        yield np.arange(block.start, block.stop)


def _part(prefs: Preferences, codes: NDArray[np.int64], wanted: Wanted, extent: Extent, keep: bool) -> Part:
    batch = Batch.whole(prefs, codes)
    mean = mean_adjacency(batch)
    with stage("cycles"):
        facts = shapes(mean)
    with stage("best orders"):
        best = best_orders(
            mean,
            exact_up_to=20 if wanted.settings.exact else 12,
            programme=wanted.settings.exact,
            time_limit=wanted.settings.time_limit,
            seed=wanted.settings.seed,
        )
    judged, tried, best, noted, cut = _judged(batch, mean, best, facts.acyclic, wanted, keep)
    target = wanted.target_of
    rows = partial(surrogate_rows, batch)
    default = {name: rows(target(wanted.default[0]), verdict, default_scorer.NAME) for name, verdict in tried.items()}
    resampled = held = settled = asked = None
    said: tuple[Note, ...] = ()
    try:
        if wanted.settings.replicates and not cut:
            held = _held_out(prefs, codes, wanted, extent)
            with stage("sampling noise"):
                resampled = noise(
                    batch,
                    replicates=wanted.settings.replicates,
                    level=1 - wanted.settings.level,
                    seed=wanted.settings.seed,
                    place=best.place,
                )
            with stage("what to ask"):
                settled, asked, said = _more_judgments(batch, wanted)
    except KeyboardInterrupt:
        if not keep:
            raise
        cut, held, resampled = True, None, None
    return Part(
        queries=query_rows(batch, facts, best, resampled),
        surrogates={
            one.name: rows(target(one), judged[one.name], one.name, one.phi)
            for one in wanted.chosen
            if one.name in judged
        },
        default=default,
        orders=order_rows(batch, best),
        settling=settled,
        ask=asked,
        held_out=held,
        edges=None if resampled is None else edge_rows(batch, resampled),
        notes=(*noted, *said),
        cut=cut,
    )


def _judged(
    batch: Batch, mean: Graphs, best: BestOrders, acyclic: NDArray[np.bool_], wanted: Wanted, keep: bool
) -> tuple[dict[str, SurrogateVerdict], dict[str, SurrogateVerdict], BestOrders, tuple[Note, ...], bool]:
    """Judge the surrogates and the candidates of the default; a surrogate's order may be the best one known.

    Last: whether it was interrupted.
    """
    net, ties, law = Differences.of(mean), wanted.settings.ties, wanted.law
    members = list(wanted.judged.values())
    of_scores = any(one.member.reads == "scores" for one in members)
    drawn = law.relevance(batch) if of_scores or wanted.by_lists is not None else None

    def judge(one: Chosen, best: BestOrders) -> SurrogateVerdict:
        by_scores = one.member.reads == "scores"
        minimum = minimised(
            one, drawn if by_scores and drawn else mean if one.member.reads == "adjacency" else batch, law
        )
        by = wanted.by_lists or (Yardstick.own(one, law) if wanted.target is None and by_scores else None)
        if by is not None and drawn is not None:
            return judge_by_gains(minimum, by, drawn)
        if by_scores:
            return default_scorer.judge_scores(minimum.alpha, mean, net, best, ties, minimum.status)
        return judge_by_pairs(minimum, mean, net, best, acyclic, ties)

    def judged_by(best: BestOrders, judged: dict[str, SurrogateVerdict]) -> dict[str, SurrogateVerdict]:
        for one in steps("surrogates", members, even=False):
            judged[one.name] = judge(one, best)
        return judged

    judged: dict[str, SurrogateVerdict] = {}
    known, ahead = best, np.zeros(len(batch), bool)
    try:
        judged_by(known, judged)
        for one in members:
            if one.member.reads != "scores":
                best, better = improved(best, mean, judged[one.name].alpha)
                ahead |= better
        judged = judged_by(best, {}) if ahead.any() else judged
    except KeyboardInterrupt:
        if not keep or not any(one.name in judged for one in wanted.chosen):
            raise
        return judged, {}, known, (), True

    def charge(scores: Floats) -> SurrogateVerdict:
        if wanted.by_lists is None or drawn is None:
            return default_scorer.judge_scores(scores, mean, net, best, ties)
        status, known = np.full(len(batch), Status.ATTAINED, np.int8), np.ones(len(batch), bool)
        return wanted.by_lists.charge(drawn, scores, status, known)

    tried = {}
    if wanted.default:
        tried = default_scorer.candidates(batch, {one.name: judged[one.name] for one in wanted.default}, charge)
    text = (
        "{queries:has|have} a better order by one of the losses than by the search: that one is taken as the best known"
    )
    return judged, tried, best, of_queries("surrogate ahead", ahead, text) if ahead.any() else (), False


def _held_out(prefs: Preferences, codes: NDArray[np.int64], wanted: Wanted, extent: Extent) -> HeldOut | None:
    """Excess losses of the surrogates of preferences on judgments held out; few queries are split several times."""
    names = [chosen.name for chosen in wanted.chosen if chosen.member.reads != "scores"]
    codes = codes[prefs.judgments[codes] > 1]
    if not names or not len(codes):
        return None
    splits = int(np.clip(min(SPLITTINGS // extent.queries, HALVED // extent.distinct), 1, 5))
    return held_out_regrets(prefs, names, splits=splits, seed=wanted.settings.seed, queries=codes, by=wanted.by_lists)


def _more_judgments(batch: Batch, wanted: Wanted) -> tuple[pa.Table | None, pa.Table | None, tuple[Note, ...]]:
    """What more judgments would settle, and on which pairs; nothing where nothing is compared."""
    if not wanted.settings.replicates or not len(batch.graphs.first):
        return None, None, ()
    settled = asked = None
    notes: tuple[Note, ...] = ()
    top = wanted.settings.top or 1
    beyond = bool(batch.sizes.max() > top)
    try:
        fit = fitted(batch)
        if beyond:
            one = settling(fit, top=top, level=wanted.settings.level, seed=wanted.settings.seed, draws=DRAWS)
            settled, notes = one.to_arrow(), notes + one.notes
        if wanted.settings.ask:
            pairs = pairs_to_ask(
                fit, top=wanted.settings.top if beyond else None, most=wanted.settings.ask, level=wanted.settings.level
            )
            asked, notes = pairs.to_arrow(), notes + pairs.notes
    except CannotRank as error:  # strengths too far apart: the rest of the audit stands
        notes = (*notes, Note("cannot rank", "{error}", error=error))
    return settled, asked, notes


def put_together(wanted: Wanted, parts: Sequence[Part], facts: str, said: Sequence[Note], queries: int) -> Audit:
    """Return the audit that its parts are; ``said``: notes on all of the log, which holds so many ``queries``."""

    def tables(name: str) -> pa.Table | None:
        found = [getattr(part, name) for part in parts if getattr(part, name) is not None]
        return pa.concat_tables(found).combine_chunks() if found else None

    taken = ""
    by_surrogate = []
    if wanted.default:
        regrets = [[rows["regret"].to_numpy() for rows in part.default.values()] for part in parts]
        judgments = [part.queries["judgments"].to_numpy() for part in parts]
        taken = list(parts[0].default)[default_scorer.taken(regrets, judgments)]
        by_surrogate = [part.default[taken] for part in parts]
    by_surrogate += [part.surrogates[one.name] for one in wanted.chosen for part in parts]
    each = pa.concat_tables([part.queries for part in parts]).combine_chunks()
    surrogates = pa.concat_tables(by_surrogate).combine_chunks()
    law = wanted.law
    return Audit(
        queries=each,
        surrogates=surrogates,
        orders=tables("orders"),
        settling=tables("settling"),
        ask=tables("ask"),
        edges=tables("edges"),
        held_out=held_out_rows([part.held_out for part in parts if part.held_out is not None]),
        settings={
            "surrogates": [*[default_scorer.NAME] * bool(wanted.default), *(one.name for one in wanted.chosen)],
            "default": taken or None,
            **{name: getattr(wanted.settings, name) for name in ("ties", "exact", "time_limit")},
            "target": None if wanted.target is None else str(wanted.target),
            "structure": law.structure.name,
            "order": "all" if law.order is None else law.order,
            **{name: getattr(wanted.settings, name) for name in ("replicates", "level")},
            "top": wanted.settings.top or 1,
            "seed": wanted.settings.seed,
        },
        facts=facts,
        notes=(
            *left_out(each, surrogates),
            *said,
            *added_up((note for part in parts for note in part.notes), queries),
        ),
    )
