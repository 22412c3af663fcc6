"""A report: what is known of a preference log and of a scorer, as data (docs/report.md) and as one page to look at."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

import concordant
from concordant.apps.commands.given import worded
from concordant.apps.report.annotators import agreement_of, groups_of
from concordant.apps.report.audited import Audited, audited, graphs_of, overall, parts_of
from concordant.apps.report.axioms import axioms_of, verdict
from concordant.apps.report.beside import groups_beside, models_beside
from concordant.apps.report.in_short import in_short, may_lead
from concordant.apps.report.learned import Learned, by_ranking, coverage_of, learned
from concordant.apps.report.over_time import over_time
from concordant.apps.report.views import (
    LIMIT,
    QueryGroup,
    View,
    beats_of,
    plain,
    query_groups,
    recurring,
    short,
    singles,
    texts,
    views_of,
)
from concordant.boards.prediction_powered import PredictionPowered
from concordant.errors import ConcordantError, Idle, InputError, Setting, UsageError, counted, refuse_idle
from concordant.io.log.disk import in_place_of
from concordant.preferences.notes import Note
from concordant.preferences.preferences import Comparisons, Lists, Preferences
from concordant.preferences.ragged import affordable
from concordant.preferences.unused_clusters import one_cluster
from concordant.progress import stage
from concordant.ranking.structures import structure as find_structure
from concordant.ranking.summary import term_of

SCHEMA = 1
NO_AUDIT: dict[str, Any] = {"audit": None, "settling": None, "ask": None}
NO_PAIRS: dict[str, Any] = {"pairs": [], "left_out": 0}
NO_GRAPH: dict[str, Any] = {"nodes": [], "edges": [], "cycles": [], "components": 0, "left_out": 0}


@dataclass
class ReportInputs:
    """What was found out, part by part."""

    prefs: Preferences
    pairs: str | None
    """Why pairs are not looked at; None where they are."""
    learned: Learned = field(default_factory=Learned)
    groups: list[QueryGroup] = field(default_factory=list)
    audits: list[Audited] = field(default_factory=list)
    annotators: dict[str, Any] | None = None
    models: list[dict[str, Any]] | None = None
    paths: dict[str, Any] | None = None
    axioms: dict[str, Any] | None = None
    absent: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Settings:
    """What the report is called and how it was made."""

    title: str | None
    command: str | None
    options: dict[str, Any]


def data_of(known: ReportInputs, settings: Settings, version: str) -> dict[str, Any]:
    """Return the data; labels are texts, items codes of ``items``."""
    prefs = known.prefs
    views = views_of(known.groups)
    shown = _views(known, views)
    items, cut = texts(prefs.items, _recoded(shown, len(prefs.items)))
    each = known.groups[-1]
    board = each.board
    return {
        "schema": SCHEMA,
        "title": short(settings.title or "Report on preferences"),
        "facts": prefs.facts,
        "version": version,
        "command": settings.command,
        "settings": settings.options | {"interval": board.interval, "interval_asked": settings.options["interval"]},
        "notes": [short(worded(note)) for note in (*board.notes, *known.learned.notes)],
        "left_out": _left_out(known, views, shown, cut),
        "items": items,
        "in_short": in_short(views, shown, settings.options["level"])
        + ([[said]] if (said := verdict(known.axioms)) else []),
        "may_lead": may_lead(views),
        "elo": _elo(settings.options["structure"]),
        "covariates": _covariates(prefs),
        "views": shown,
        "audit": overall(known.audits[-1]) if known.audits else None,
        "annotators": known.annotators,
        "models": known.models,
        "paths": known.paths,
        "order": known.learned.order,
        "scorer": known.learned.scorer,
        "axioms": known.axioms,
        "coverage": known.learned.coverage,
        "absent": {name: worded(why) for name, why in (known.absent | known.learned.absent).items()},
    }


def _elo(structure: str) -> dict[str, float] | None:
    """How scores in log-odds become those of chess; None for scores that are none."""
    return {"centre": 1000.0, "per": 400 / np.log(10)} if find_structure(structure).expects else None


def _covariates(prefs: Preferences) -> list[str]:
    return [term_of(name) for name in prefs.covariate_names] if isinstance(prefs, Comparisons) else []


def _views(known: ReportInputs, views: list[View]) -> list[dict[str, Any]]:
    audits = {id(one): done for one, done in zip(known.groups, known.audits, strict=False)}
    if known.pairs is None:
        edges = {id(one): audits[id(one)].edges_of(one) for one in known.groups if id(one) in audits}
        pairs, graphs = beats_of(views), graphs_of(views, edges)
    else:
        pairs, graphs = [dict(NO_PAIRS) for _ in views], [dict(NO_GRAPH) for _ in views]
        known.absent |= {"beats": known.pairs, "graph": known.pairs}
    found = []
    for view, beats, graph in zip(views, pairs, graphs, strict=True):
        done = audits.get(id(view.group))
        said = dict(NO_AUDIT) if done is None else parts_of(view, done, known.prefs.items)
        head = view.head()
        head["ranking"]["win_rate"] = view.win_rates() if known.pairs is None else np.full(view.rows, np.nan)
        found.append(head | {"beats": beats, "graph": graph} | said)
    return found


def _recoded(views: list[dict[str, Any]], width: int) -> np.ndarray[Any, Any]:
    """Number the items that are shown anew, in every view; return their codes in the log."""
    used = np.zeros(width, bool)
    for view in views:
        used[np.asarray(view["ranking"]["item"])] = True
        for row in view["beats"]["pairs"]:
            used[row[:2]] = True
        used[np.asarray(view["graph"]["nodes"], np.int64)] = True
        for row in view["graph"]["edges"]:
            used[row[:2]] = True
        for cycle in view["graph"]["cycles"]:
            used[cycle] = True
        for row in view["ask"] or []:
            used[[row["first"], row["second"]]] = True
    number = np.cumsum(used) - 1
    for view in views:
        view["ranking"]["item"] = number[view["ranking"]["item"]]
        view["beats"] = view["beats"] | {"pairs": [_numbered(row, number) for row in view["beats"]["pairs"]]}
        graph = view["graph"]
        graph["nodes"] = number[np.asarray(graph["nodes"], np.int64)]
        graph["edges"] = [_numbered(row, number) for row in graph["edges"]]
        graph["cycles"] = [number[cycle] for cycle in graph["cycles"]]
        for row in view["ask"] or []:
            row |= {side: int(number[row[side]]) for side in ("first", "second")}
    return np.flatnonzero(used)


def _numbered(row: list[Any], number: Any) -> list[Any]:
    return [int(number[row[0]]), int(number[row[1]]), *row[2:]]


def _left_out(known: ReportInputs, views: list[View], shown: list[dict[str, Any]], cut: int) -> list[str]:
    """What is not on the page, and where it is."""
    said = []
    queries = len(known.prefs.queries)
    if not known.groups[0].pooled and recurring(known.prefs):
        said.append("all queries together make too many pairs to be shown as one; concordant rank --pool ranks them")
    there = sum(not view.pooled for view in views)
    if singles(known.prefs):
        said.append(
            f"most of the {queries:,} queries have one judgment, which is no ranking: all were ranked and audited "
            "together; name the queries that you mean by --query"
        )
    elif there < queries:
        audited = bool(known.audits) and len(known.audits[-1].found.queries) == queries
        said.append(
            f"{queries - there:,} of {queries:,} queries, the least judged, are not shown"
            f"{'' if audited else ', and not in the audit'}; concordant rank and concordant audit write all of them"
        )
    rows = sum(view.size - view.rows for view in views)
    if rows:
        said.append(f"{counted(rows, 'rows')} of rankings are not shown; concordant rank writes all of them")
    for name, what in (("beats", "judged pairs"), ("graph", "net preferences")):
        number = sum(view[name]["left_out"] for view in shown)
        if number:
            said.append(
                f"{number:,} {what} are not shown, those of the items that rank lowest"
                + ("; concordant audit --edges writes all of them" if name == "graph" else "")
            )
    if cut:
        said.append(f"of {counted(cut, 'items')} only the beginning of the label is shown, up to …")
    return said


SCRIPTS = (
    *("elements", "numbers", "state", "colours", "tip", "figure", "grid", "intervals", "bars", "matrix", "picking"),
    *(
        "overview",
        "tiers",
        "ranking",
        "ranking_chart",
        "side",
        "paths",
        "beats",
        "graph",
        "audit",
        "annotators",
        "models",
        "order",
        "scorer",
        "axioms",
    ),
    *("coverage", "ask", "chooser", "main"),
)
"""Files of page/ in the order in which they are joined; each holds one thought."""

UNSAFE = re.compile("[<>&\u2028\u2029\x7f-\x9f\ud800-\udfff]")
"""What a script element, or UTF-8, would take for something else than text."""


def page(data: dict[str, Any]) -> str:
    """Return the page that shows the data of a report: whole, without network, equal bytes for equal data.

    The data stand in it as JSON that the page's own script reads; labels become text nodes, never markup. A content
    security policy allows the two scripts and the one style sheet of the page by their hashes and nothing else.

    Errors: ValueError for NaN and infinities (see ``commands.output.plain``).

    >>> text = page({"schema": 1, "title": "votes", "items": ["<b>"], "views": [], "absent": {}})
    >>> print(text.split('id="data">')[1].split("<")[0])
    {"schema":1,"title":"votes","items":["\\u003cb\\u003e"],"views":[],"absent":{}}
    """
    style, library, script = _file("page.css"), _file("echarts/echarts.min.js"), _script()
    parts = {
        "policy": _policy(scripts=(library, script), styles=(style,)),
        "title": html.escape(_clean(str(data.get("title", "")))),
        "licence": f"{_file('echarts/NOTICE').strip()}\n\n{_head_of(library)}",
        "style": style,
        "library": library,
        "script": script,
        "data": _json(data),
    }
    return re.sub(r"@\[(\w+)\]", lambda found: parts[found[1]], _file("page.html"))


def _json(data: dict[str, Any]) -> str:
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _clean(text: str) -> str:
    return re.sub("[\x00-\x1f\x7f-\x9f\ud800-\udfff]", "\ufffd", text)


@cache
def _file(name: str) -> str:
    return (resources.files("concordant") / "apps" / "report" / "page" / name).read_text(encoding="utf-8")


@cache
def _script() -> str:
    """Join the scripts in a scope of their own."""
    text = "\n".join(_file(f"{name}.js") for name in SCRIPTS)
    return f'"use strict";\n(() => {{\n{text}\n}})();\n'


def _policy(*, scripts: tuple[str, ...], styles: tuple[str, ...]) -> str:
    allowed = {"script-src": scripts, "style-src": styles}
    sources = [f"{name} {' '.join(map(_hash, texts))}" for name, texts in allowed.items()]
    return "; ".join(["default-src 'none'", *sources, "base-uri 'none'", "form-action 'none'"])


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _head_of(library: str) -> str:
    """Return the licence's words from the first comment of the library."""
    return "\n".join(line.strip("/* ") for line in library.split("*/", 1)[0].splitlines()).strip()


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
        with in_place_of(path) as temporary:
            temporary.write_bytes(self.html.encode())
        return Path(path)

    def __repr__(self) -> str:
        shown = [
            name
            for name in ("audit", "annotators", "order", "scorer", "axioms", "coverage")
            if self.data[name] is not None
        ]
        return f"Report({self.data['facts']}: {len(self.data['views'])} views, {', '.join(shown)})"


def report(
    prefs: Preferences,
    *,
    features: Any = None,
    model: Any = None,
    scores: Any = None,
    annotators: Mapping[str, Preferences] | None = None,
    model_judges: Mapping[str, PredictionPowered] | None = None,
    structure: str = "bradley-terry",
    prior: float | str | None = None,
    ties: str | None = None,
    interval: str = "auto",
    level: float = 0.95,
    min_judgments: int = 0,
    replicates: int = 1000,
    ask: int = 10,
    audit: bool = True,
    title: str | None = None,
    command: str | None = None,
    column: str | None = None,
    seed: int = 0,
) -> Report:
    """Put together what a person wants to see of a preference log, and of a scorer, on one page.

    The page shows the ranking of all queries together (where items recur in them) and of each query, who beats whom,
    the difference graph, the audit and which pairs to ask; agreement of those who judged; with features a scorer's risk
    against the order k, its coefficients or importances, whether it keeps what people agree on, and risk–coverage. What
    cannot be had is null in ``Report.data``, with a sentence in ``absent``. Equal input and seed make equal bytes.

    Parameters
    ----------
    prefs : the judgments.
    features : as any ranker takes them.
    model : a fitted ranker or its directory; None, a linear ``AggregationRanker`` is fitted to the features.
    scores : of the items by any other scorer, such as a reward model, in a form that ``axiom_audit`` takes: it is held
        against what people agree on in the place of the model.
    annotators : the judgments of each group whose agreement is of interest; None, the clusters of ``prefs``.
    model_judges : what ``prediction_powered`` found of people and each judge model, by the name of the model.
    structure, prior, ties, interval, level, min_judgments, replicates, seed : as in ``rank``.
    ask : number of pairs to ask next, in each query.
    audit : False saves the time of the audit.
    title : of the page.
    command : how the report can be made again, for the page to say.
    column : name of the column that says who judged.

    Errors: UsageError for wrong options; InputError without judgments, and for features that lack judged items.

    >>> import concordant as cc
    >>> votes = cc.Preferences.from_comparisons(["a", "a", "b", "c"], ["b", "c", "c", "a"])
    >>> made = cc.report(votes, audit=False)
    >>> [made.data["items"][code] for code in made.data["views"][0]["ranking"]["item"]]
    ['a', 'b', 'c']
    >>> made.data["scorer"], made.data["absent"]["audit"]
    (None, 'left out on request')
    """
    if not isinstance(prefs, Preferences):
        raise UsageError(f"report takes Preferences, not {type(prefs).__name__}; read them first: report(read(…))")
    if not len(prefs):
        raise InputError("there is no judgment to report on")
    given = {name: value for name, value in (("prior", prior), ("ties", ties)) if value is not None}
    prefs = replace(prefs, told=tuple(one_cluster(prefs.told)))  # an audit heeds one column
    find_structure(structure).check(prefs.kind, given | ({"prior": 1.0} if prior == "auto" else {}))
    if not 0.5 < level < 1:
        raise UsageError(f"level must be between 0.5 and 1, not {level}")
    if ask < 0:
        raise UsageError(f"ask must be at least 0, not {ask}")
    how: dict[str, Any] = {"interval": interval, "level": level, "replicates": replicates, "seed": seed}
    how["min_judgments"] = min_judgments
    how |= given
    if not audit:
        refuse_idle({"ask": ask}, {"ask": 10}, "without the audit nothing is said of what to ask")
        refuse_idle({"scores": scores}, {"scores": None}, "without the audit no scorer is held against anything")
    if column is not None and annotators is None and prefs.clusters is None:
        raise Idle("column", "it names who judged, and neither annotators nor clusters say so")
    known = ReportInputs(prefs, _pairs(prefs))
    with stage("making the report", 6, even=False) as advance:
        with stage("scorer and its risk"):
            known.learned = learned(prefs, features, model, seed=seed)
        advance()
        with stage("rankings"):
            known.groups = query_groups(prefs, structure, how)
        advance()
        if not audit:
            known.absent |= dict.fromkeys(("audit", "axioms"), "left out on request")
        elif known.pairs is not None:
            known.absent |= dict.fromkeys(("audit", "axioms"), known.pairs)
        else:
            _audits(known, level=level, seed=seed, ask=ask)
            if known.audits:
                with stage("axioms of the scorer"):
                    known.axioms = axioms_of(prefs, known.learned, features, scores, level=level, seed=seed)
        advance(2)
        with stage("agreement of those who judged"):
            known.annotators = _agreement(known, annotators, column, structure, how)
        if model_judges:
            known.models = models_beside(model_judges)
        else:
            text = "{judge} names a file of what a judge model decided of the same comparisons, to stand beside people"
            known.absent["models"] = Note("no judge model", text, judge=Setting("model_judge"))
        if isinstance(prefs, Comparisons) and prefs.time is not None:
            try:
                with stage("rankings over time"):
                    known.paths = over_time(prefs, level, ties)
            except ConcordantError as problem:
                known.absent["paths"] = worded(problem)
        advance()
        with stage("risk of leaving pairs open"):
            if known.learned.coverage is None and "coverage" not in known.learned.absent:
                known.learned.coverage = _without_scorer(known, structure, seed)
        _only_if_it_matters(known)
        advance()
    settings = Settings(title, command, {"structure": structure, **how, "ask": ask})
    return Report(plain(data_of(known, settings, concordant.__version__)))


def _pairs(prefs: Preferences) -> str | None:
    """Why lists cannot be read as pairs: there are too many; None where they can."""
    if not isinstance(prefs, Lists):
        return None
    try:
        affordable(prefs.kind, prefs.lists)
    except UsageError as problem:
        return worded(problem)
    return None


def _audits(known: ReportInputs, **how: Any) -> None:
    large = max(one.work for one in known.groups)
    if large > LIMIT:
        why = f"the judgments make {large:,} pairs, more than the {LIMIT:,} that a report audits: concordant {{}} does"
        known.absent |= {"audit": why.format("audit"), "axioms": why.format("axioms")}
        return
    known.audits = [audited(one, **how) for one in known.groups]


def _agreement(
    known: ReportInputs,
    annotators: Mapping[str, Preferences] | None,
    column: str | None,
    structure: str,
    how: Mapping[str, Any],
) -> dict[str, Any] | None:
    prefs = known.prefs
    if known.pairs is not None:
        known.absent["annotators"] = known.pairs
        return None
    if annotators is None and prefs.clusters is None:
        known.absent["annotators"] = Note(
            "nobody judged", "the log does not say who judged: {who} names the column", who=Setting("cluster")
        )
        return None
    groups = groups_of(prefs) if annotators is None else annotators
    named = column or ("cluster" if annotators is None else "group")
    if annotators is None and len(groups) < 2:
        known.absent["annotators"] = f"all judgments are of one {named}: there is nobody to agree with"
        return None
    found = agreement_of(groups, named, structure, how["level"])
    return found | {"ranks": groups_beside(groups, structure, how)}


def _only_if_it_matters(known: ReportInputs) -> None:
    """Drop the curve of risk over coverage where declining changes nothing: where the risk is the same throughout."""
    curve = known.learned.coverage
    if curve is None:
        return
    kept = curve["mass"] - np.asarray(curve["declined"])
    some = kept > 1e-9 * curve["mass"]
    risk = np.asarray(curve["wrong"])[some] / kept[some]
    if len(risk) and np.ptp(risk) <= 1e-9:
        same = f"{risk[0]:.0%} of what is ordered is wrong, however much is left open"
        why = same if risk[0] > 0 else "no judgment that was held out contradicts the order"
        known.learned.coverage, known.absent["coverage"] = None, f"{why}, so that there is nothing to leave open"


def _without_scorer(known: ReportInputs, structure: str, seed: int) -> dict[str, Any] | None:
    """Without a scorer it is the ranking that errs, on judgments it was not made from."""
    if known.pairs is not None:
        known.absent["coverage"] = known.pairs
        return None
    first = known.groups[0]
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
        known.absent["coverage"] = f"nothing could be held out: {worded(problem)}"
        return None
