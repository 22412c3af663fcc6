"""A report: what is known of a preference log and of a scorer, as data and as one page to look at."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import concordant
from concordant.disk import check_replaced
from concordant.errors import ConcordantError, Idle, InputError, UsageError, refuse_idle
from concordant.listing import affordable
from concordant.preferences import Preferences
from concordant.progress import stage
from concordant.reporting.annotators import agreement_of, groups_of
from concordant.reporting.audited import audited
from concordant.reporting.coverage import by_ranking, coverage_of
from concordant.reporting.data import Known, Settings, data_of
from concordant.reporting.learned import learned
from concordant.reporting.page import page
from concordant.reporting.values import plain
from concordant.reporting.views import LIMIT, stages_of
from concordant.structures.registry import structure as find_structure

__all__ = ["Report", "report"]


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """What is known of a preference log and of a scorer.

    ``data`` is nested data as JSON holds it (docs/report.md says what is where), ``html`` one page that shows it, with
    everything inside: no network, no other file.

    >>> import concordant as cc
    >>> votes = cc.Preferences.from_comparisons(["a", "a", "b"], ["b", "c", "c"])
    >>> cc.report(votes, audit=False).data["facts"]
    'comparisons, 1 query, 3 items, 3 judgments, 3 distinct, 0 ties'
    """

    data: dict[str, Any]

    @cached_property
    def html(self) -> str:
        """The page; equal data make equal bytes."""
        return page(self.data)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to a file, whole or not at all. Errors: UsageError for what the disk refuses."""
        check_replaced(path)
        target = Path(path).resolve()
        text = self.html.encode()
        temporary = None
        try:
            handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=".concordant-", suffix=".html")
            with os.fdopen(handle, "wb") as file:
                file.write(text)
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(temporary, 0o666 & ~mask)
            os.replace(temporary, target)
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror or error}") from None
        finally:
            if temporary is not None:
                Path(temporary).unlink(missing_ok=True)
        return Path(path)

    def __repr__(self) -> str:
        shown = [name for name in ("audit", "annotators", "order", "scorer", "coverage") if self.data[name] is not None]
        return f"Report({self.data['facts']}: {len(self.data['views'])} views, {', '.join(shown)})"


def report(
    prefs: Preferences,
    *,
    features: Any = None,
    model: Any = None,
    annotators: Mapping[str, Preferences] | None = None,
    structure: str = "bradley-terry",
    interval: str = "auto",
    level: float = 0.95,
    replicates: int = 1000,
    ask: int = 10,
    audit: bool = True,
    title: str | None = None,
    command: str | None = None,
    column: str | None = None,
    seed: int = 0,
) -> Report:
    """Put together what a person wants to see of a preference log, and of a scorer, on one page.

    The ranking of all queries together (where items recur in them) and of each query, who beats whom, the difference
    graph, the audit and which pairs to ask; agreement of those who judged; with features a scorer's risk against the
    order k, its coefficients or importances, and risk–coverage. What cannot be had is null in ``Report.data``, with a
    sentence in ``absent``.

    ``features``: as any ranker takes them. ``model``: a fitted ranker or its directory; without one a linear
    ``AggregationRanker`` is fitted to the features. ``annotators``: the judgments of each group whose agreement is of
    interest; the clusters of ``prefs`` when not given, which ``column`` names. ``structure``, ``interval``, ``level``,
    ``replicates``: of ``rank``. ``ask``: pairs to ask next, a query. ``audit=False`` saves the time of the audit.
    ``command`` is how the report can be made again, for the page to say. Equal input and seed make equal bytes.

    Errors: UsageError for wrong options; InputError without judgments, and for features that lack judged items.

    >>> import concordant as cc
    >>> votes = cc.Preferences.from_comparisons(["a", "a", "b", "c"], ["b", "c", "c", "a"])
    >>> made = cc.report(votes, audit=False)
    >>> [made.data["items"][code] for code in made.data["views"][0]["ranking"]["item"]]
    ['a', 'b', 'c']
    >>> made.data["scorer"], made.data["absent"]["audit"]
    (None, 'left out on request (--no-audit, audit=False)')
    """
    if not isinstance(prefs, Preferences):
        raise UsageError(f"report takes Preferences, not {type(prefs).__name__}; read them first: report(read(…))")
    if not len(prefs):
        raise InputError("there is no judgment to report on")
    find_structure(structure).check(prefs.kind, {})
    if not 0.5 < level < 1:
        raise UsageError(f"level must be between 0.5 and 1, not {level}")
    if ask < 0:
        raise UsageError(f"ask must be at least 0, not {ask}")
    how: dict[str, Any] = {"interval": interval, "level": level, "replicates": replicates, "seed": seed}
    if not audit:
        refuse_idle({"ask": ask}, {"ask": 10}, "without the audit nothing is said of what to ask")
    if column is not None and annotators is None and prefs.clusters is None:
        raise Idle("column", "it names who judged, and neither annotators nor clusters say so")
    known = Known(prefs, _pairs(prefs))
    with stage("making the report", 6) as advance:
        known.learned = learned(prefs, features, model, seed=seed)
        advance()
        known.stages = stages_of(prefs, structure, how)
        advance()
        if not audit:
            known.absent["audit"] = "left out on request (--no-audit, audit=False)"
        elif known.pairs is not None:
            known.absent["audit"] = known.pairs
        else:
            _audits(known, level=level, seed=seed, ask=ask)
        advance(2)
        known.annotators = _agreement(known, annotators, column, structure, level)
        advance()
        if known.learned.coverage is None and "coverage" not in known.learned.absent:
            known.learned.coverage = _without_scorer(known, structure, seed)
        advance()
    settings = Settings(title, command, {"structure": structure, **how, "ask": ask})
    return Report(plain(data_of(known, settings, concordant.__version__)))


def _pairs(prefs: Preferences) -> str | None:
    """Why lists cannot be read as pairs: there are too many; None where they can."""
    if prefs.list_start is None:
        return None
    try:
        affordable(prefs.kind, prefs.list_start)
    except UsageError as problem:
        return str(problem)
    return None


def _audits(known: Known, **how: Any) -> None:
    large = max(one.work for one in known.stages)
    if large > LIMIT:
        known.absent["audit"] = (
            f"the judgments make {large:,} pairs, more than the {LIMIT:,} that a report audits: concordant audit does"
        )
        return
    known.audits = [audited(one, **how) for one in known.stages]


def _agreement(
    known: Known, annotators: Mapping[str, Preferences] | None, column: str | None, structure: str, level: float
) -> dict[str, Any] | None:
    prefs = known.prefs
    if known.pairs is not None:
        known.absent["annotators"] = known.pairs
        return None
    if annotators is None and prefs.clusters is None:
        known.absent["annotators"] = (
            "the log does not say who judged: name the column that does with --group C (or --cluster C; annotators=)"
        )
        return None
    groups = groups_of(prefs) if annotators is None else annotators
    named = column or ("cluster" if annotators is None else "group")
    if annotators is None and len(groups) < 2:
        known.absent["annotators"] = f"all judgments are of one {named}: there is nobody to agree with"
        return None
    return agreement_of(groups, named, structure, level)


def _without_scorer(known: Known, structure: str, seed: int) -> dict[str, Any] | None:
    """Without a scorer it is the ranking that errs, on judgments it was not made from."""
    if known.pairs is not None:
        known.absent["coverage"] = known.pairs
        return None
    first = known.stages[0]
    if first.work > LIMIT:
        known.absent["coverage"] = f"the judgments make {first.work:,} pairs, more than the {LIMIT:,} that are held out"
        return None
    whose = "of all queries together" if first.pooled else "of each query"
    how = (
        f"Rankings {whose} were made five times without a fifth of the judgments, and judged by that fifth (without "
        "features there is no scorer)."
    )
    try:
        return coverage_of(by_ranking(first.prefs, structure, seed=seed), how)
    except ConcordantError as problem:
        known.absent["coverage"] = f"nothing could be held out: {problem}"
        return None
