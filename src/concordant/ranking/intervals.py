"""Intervals for any structure, by the method that fits it: what ``rank`` asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concordant.errors import Setting, UsageError, did_you_mean, refuse_idle
from concordant.preferences.connectivity import Connectivity
from concordant.preferences.graphs import Batch
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Lists
from concordant.preferences.sampling import whole_seed
from concordant.ranking.bootstrap import bootstrap
from concordant.ranking.contrasts import Gauge
from concordant.ranking.covariance import quasi_errors
from concordant.ranking.curvature import Curvature
from concordant.ranking.few_judgments import exact_ends
from concordant.ranking.names import INTERVALS as METHODS
from concordant.ranking.rank_intervals import rank_intervals, rank_intervals_of_replicates, ranks_from_ends, share_of
from concordant.ranking.ranked_lists import touches
from concordant.ranking.scores import Scores
from concordant.ranking.separated import Separated
from concordant.ranking.standard_errors import Intervals, default_method, score_intervals, too_few, wilson
from concordant.ranking.structures import STRUCTURES, Structure

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
CHEAP, DEAR = 2e7, 1e8
"""Work (distinct judgments or list entries × replicates) to which ``auto`` keeps a bootstrap by drawing fewer
replicates, 200 at least; beyond the second bound it draws none and says so."""
FEWEST = 200


@dataclass(frozen=True)
class IntervalOptions:
    """What intervals are asked for."""

    method: str = "auto"
    level: float = 0.95
    replicates: int = 1000
    seed: int = 0
    quasi: bool = False
    """Quasi-standard errors too (likelihoods only)."""

    def __post_init__(self) -> None:
        if not isinstance(self.method, str) or self.method not in METHODS:
            raise UsageError(f"unknown interval method {self.method!r}: {did_you_mean(str(self.method), METHODS)}")
        if not isinstance(self.level, Real) or not 0 < self.level < 1:
            raise UsageError(f"level must lie between 0 and 1 (0.95 for 95%), not {self.level!r}")
        if not isinstance(self.replicates, Integral) or self.replicates < 2:
            raise UsageError(f"replicates must be an integer of at least 2, not {self.replicates!r}")
        if not isinstance(self.quasi, bool | np.bool_):
            raise UsageError(f"quasi must be True or False, not {self.quasi!r}")
        whole_seed(self.seed)


@dataclass(frozen=True, eq=False)
class Bounds:
    """Limits of the scores and of the ranks of a batch's nodes, and how they were found."""

    lower: Floats
    upper: Floats
    rank_lower: Ints
    rank_upper: Ints
    method: str
    quasi: Floats | None = None
    """Quasi-standard errors, when asked for."""
    coefficients: dict[str, Floats] = field(default_factory=dict)
    """Standard errors of the coefficients beside the scores, one per graph."""
    notes: tuple[Note, ...] = ()


def refuse_idle_wishes(member: Structure, wanted: IntervalOptions) -> None:
    """Refuse what would do nothing: a level without intervals, replicates where none are drawn. Errors: Idle."""
    given, usual = vars(wanted), IntervalOptions()
    if wanted.method == "none":
        refuse_idle(given, {"level": usual.level}, "no interval is asked for")
    drawn = wanted.method == "auto" and member.curvature is None and member.reads != "exposures"
    if wanted.method == "bootstrap" or drawn:
        return
    how = "by a formula" if wanted.method == "auto" else f"by the method {wanted.method}"
    instead = "no interval is asked for" if wanted.method == "none" else f"{member.name} has its intervals {how}"
    why = f"only the bootstrap draws replicates, and {instead}"
    refuse_idle(given, {"replicates": usual.replicates}, why, "leave it out, or ask for the interval bootstrap")


def bounds(
    batch: Batch,
    scores: Scores,
    member: Structure,
    linked: Connectivity,
    wanted: IntervalOptions,
    options: Mapping[str, Any],
    gauge: Gauge | None = None,
    counted: NDArray[np.bool_] | None = None,
    drawn: bool | None = None,
) -> Bounds:
    """Return intervals of the scores of a batch and simultaneous intervals of their ranks.

    ``gauge``: what the scores are measured against, when not their component's firm items; ``counted``: the items whose
    differences from others say something of ranks (all when not given); ``drawn``: as in ``rank_intervals``.
    Whatever the method, an item that nobody judged has (−inf, inf) and no rank.
    """
    counted = np.ones(len(batch.item), bool) if counted is None else counted
    found = _bounds_of(batch, scores, member, linked, wanted, options, gauge, counted, drawn)
    judged = linked.compared
    if found.method == "none" or judged.all():
        return found
    return replace(
        found,
        lower=np.where(judged, found.lower, -np.inf),
        upper=np.where(judged, found.upper, np.inf),
        rank_lower=np.where(judged, found.rank_lower, 0),
        rank_upper=np.where(judged, found.rank_upper, 0),
    )


def _bounds_of(
    batch: Batch,
    scores: Scores,
    member: Structure,
    linked: Connectivity,
    wanted: IntervalOptions,
    options: Mapping[str, Any],
    gauge: Gauge | None,
    counted: NDArray[np.bool_],
    drawn: bool | None,
) -> Bounds:
    notes: tuple[Note, ...] = ()
    if wanted.method == "auto":
        wanted, notes = suited(batch, member, wanted)
    method = wanted.method
    if wanted.quasi and (member.curvature is None or method in ("none", "bootstrap")):
        raise UsageError(
            f"quasi-standard errors come from a likelihood's covariance; {member.name} with {method} has none"
        )
    if method == "none":
        return _nothing(len(batch.item), notes)
    if member.reads == "exposures" and method != "bootstrap":
        return _proportions(batch, linked, wanted.level, counted, member)
    if method == "bootstrap":
        boot = bootstrap(batch, member, replicates=wanted.replicates, seed=wanted.seed, options=options, gauge=gauge)
        found = boot.intervals(wanted.level)
        open_ = separated_items(batch, member, linked, options, gauge, default_method(batch, scores))
        found = _one_sided(found, open_, scores.value)
        places = member.gauge == "places"
        ranks = rank_intervals_of_replicates(
            boot, batch, connectivity=linked, counted=counted, separated=open_, level=wanted.level, places=places
        )
        return _bounds(found, ranks.lower, ranks.upper, {}, notes)
    if member.curvature is None:
        able = " and ".join(other.name for other in STRUCTURES.values() if other.curvature is not None)
        raise UsageError(f"{member.name} has no {method} intervals ({able} have); use bootstrap or none")
    if _of_one_list(batch, scores, member, wanted):
        return _limitless(batch, linked, notes)
    curvature = member.curvature(batch, scores)
    errors = partial(score_intervals, batch, scores, curvature, connectivity=linked, method=method, level=wanted.level)
    against_firm = errors()
    found = against_firm if gauge is None else errors(gauge=gauge)
    zero = Gauge.of(batch.node_start, linked) if gauge is None else gauge
    found = exact_ends(found, batch, scores, linked, zero, curvature.prior)
    open_ = separated_items(batch, member, linked, options, gauge, found.method)
    found = _one_sided(found, open_, scores.value)
    ranks = rank_intervals(
        batch, scores, curvature, against_firm, connectivity=linked, counted=counted, separated=open_,
        seed=wanted.seed, drawn=drawn,
    )  # fmt: skip
    limits = _bounds(found, ranks.lower, ranks.upper, _errors(scores, curvature, found), notes)
    return _with_quasi(limits, batch, curvature, linked) if wanted.quasi else limits


def _of_one_list(batch: Batch, scores: Scores, member: Structure, wanted: IntervalOptions) -> bool:
    """Whether a sandwich has one list in each query and no spread to go by, whatever the curvature is."""
    if member.touched is not touches:  # judgments lie elsewhere, and those of the batch stand for them
        return False
    if not isinstance(batch.prefs, Lists) or scores.coefficients or wanted.quasi or not (batch.judgments < 2).all():
        return False
    return (default_method(batch, scores) if wanted.method == "auto" else wanted.method) == "sandwich"


def _limitless(batch: Batch, linked: Connectivity, notes: tuple[Note, ...]) -> Bounds:
    """Infinite intervals, and ranks anywhere in a component."""
    gauge, wide = Gauge.of(batch.node_start, linked), np.full(len(batch.item), np.inf)
    ranks = ranks_from_ends(-wide, wide, gauge, np.zeros(len(wide), bool))
    return Bounds(-wide, wide, *ranks, "sandwich", notes=(*notes, too_few(len(batch))))


def separated_items(
    batch: Batch,
    member: Structure,
    linked: Connectivity,
    options: Mapping[str, Any],
    gauge: Gauge | None,
    method: str,
) -> Separated | None:
    """What is known of the separated items of a likelihood; None where there are none."""
    if member.curvature is None:
        return None
    gauge = Gauge.of(batch.node_start, linked) if gauge is None else gauge
    lists = member.reads == "orders" and batch.prefs.kind != "comparisons"
    given = batch, member.function, member.curvature, options, linked, gauge
    return Separated.of(*given, lists=lists, method=method, blocks=member.blocks)


def _one_sided(found: Intervals, separated: Separated | None, value: Floats) -> Intervals:
    """Put the limits of separated items in the place of those about the prior's answer; ``value``: the scores."""
    if separated is None:
        return found
    tail = (1.0 - found.level) / 2
    below, above = separated.ends(tail, value)
    own = ~np.isnan(below) & (np.isfinite(found.lower) | np.isfinite(found.upper))  # or there was too little to go by
    number = int((own & (np.isfinite(below) | np.isfinite(above))).sum())
    text = (
        "{rows:items} {rows:has an interval|have intervals} with one end only, as wins or losses are missing: it lies "
        "where the judgments, without the prior, are {share:.3g} times as likely as they can be"
    )
    return replace(
        found,
        lower=np.where(own, below, found.lower),
        upper=np.where(own, above, found.upper),
        notes=(*found.notes, *([Note("one-sided limits", text, rows=number, share=tail)] if number else [])),
    )


def _with_quasi(limits: Bounds, batch: Batch, curvature: Curvature, linked: Connectivity) -> Bounds:
    error, worst = quasi_errors(batch, curvature, linked, method=limits.method)
    if np.isnan(worst).all():
        note = Note("no quasi errors", "no quasi-standard errors: queries with 2 to 500 connected items have them")
    else:
        text = "quasi-standard errors reproduce those of all differences to within {worst:.1%}"
        note = Note("quasi errors", text, worst=float(np.nanmax(worst)))
    return replace(limits, quasi=error, notes=(*limits.notes, note))


def suited(batch: Batch, member: Structure, wanted: IntervalOptions) -> tuple[IntervalOptions, tuple[Note, ...]]:
    """What ``auto`` stands for here: for likelihoods their own method, else a bootstrap as large as is cheap."""
    if member.curvature is not None or member.reads == "exposures":
        return wanted, ()
    prefs, work = batch.prefs, len(batch.judgment)
    if isinstance(prefs, Lists):
        work = int(prefs.lists.sizes[batch.judgment].sum())
    return cheap_bootstrap(int(work * share_of(batch)), member, wanted)


def cheap_bootstrap(work: int, member: Structure, wanted: IntervalOptions) -> tuple[IntervalOptions, tuple[Note, ...]]:
    """As many replicates of so many judgments (entries of lists) as are cheap; none where the fewest are dear."""
    ask = Setting("interval", "bootstrap")
    if work * member.dearness * FEWEST > DEAR:
        text = f"no intervals: {FEWEST} bootstrap replicates of {{entries:,}} entries take long; ask for {{ask}}"
        return replace(wanted, method="none"), (Note("no intervals", text, entries=work, ask=ask),)
    affordable = max(FEWEST, int(CHEAP / max(work * member.dearness, 1)))
    if affordable >= wanted.replicates:
        return replace(wanted, method="bootstrap"), ()
    text = "intervals from {drawn} bootstrap replicates ({ask} draws {whole:,.0f})"
    return replace(wanted, method="bootstrap", replicates=affordable), (
        Note("few replicates", text, drawn=f"{affordable}", ask=ask, whole=float(wanted.replicates)),
    )


def _nothing(nodes: int, notes: tuple[Note, ...]) -> Bounds:
    none, zero = np.full(nodes, np.nan), np.zeros(nodes, np.int64)
    return Bounds(none, none, zero, zero, "none", notes=notes)


def _proportions(
    batch: Batch, linked: Connectivity, level: float, counted: NDArray[np.bool_], member: Structure
) -> Bounds:
    """Wilson's intervals of click rates; ranks from intervals that hold for all items of a query together."""
    clicks, examined = member.trials(batch)
    lower, upper = wilson(clicks, examined, level)
    size = batch.sizes
    together = level ** (1.0 / np.maximum(size, 1))  # Šidák: items are examined independently of each other
    low, high = np.zeros(len(clicks)), np.ones(len(clicks))
    for share in np.unique(together):
        chosen = (together == share)[batch.owner]
        low[chosen], high[chosen] = wilson(clicks[chosen], examined[chosen], float(share))
    gauge = Gauge.of(batch.node_start, linked)
    rank_lower, rank_upper = ranks_from_ends(low, high, gauge, counted)
    return Bounds(lower, upper, rank_lower, rank_upper, "wilson")


def _errors(scores: Scores, curvature: Curvature, found: Intervals) -> dict[str, Floats]:
    """Standard errors of the extra coefficients by name, one value for each graph; infinite where not determined."""
    graphs = len(scores.status)
    errors: dict[str, Floats] = {}
    names = np.asarray(found.coefficient_names, object)
    for name in dict.fromkeys(found.coefficient_names):
        own = names == name
        column = errors.setdefault(str(name), np.full(graphs, np.nan))
        column[curvature.extra_owner[own]] = found.coefficient_error[own]
        column[np.asarray(scores.options.get(f"undetermined {name}", np.zeros(graphs, bool)))] = np.inf
    return errors


def _bounds(
    found: Intervals, rank_lower: Ints, rank_upper: Ints, errors: dict[str, Floats], notes: tuple[Note, ...]
) -> Bounds:
    return Bounds(found.lower, found.upper, rank_lower, rank_upper, found.method, None, errors, notes + found.notes)
