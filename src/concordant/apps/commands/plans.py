"""What the commands do that read a log, piece by piece, and how long each takes (``durations``)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from concordant.apps.commands.durations import READING, cells_of, features_of, size_of, unknown
from concordant.apps.commands.fit_options import OF_ONE
from concordant.apps.commands.reading_log import is_letor
from concordant.apps.commands.saying import one_line
from concordant.apps.models.directory import is_model
from concordant.ranking.intervals import CHEAP, DEAR, FEWEST
from concordant.ranking.lack_of_fit import FIRST, MOST_DRAWN, MOST_GRAPHS, SIGNED, THEN
from concordant.ranking.moving import DRAWN
from concordant.ranking.over_time import TOGETHER, WORK
from concordant.ranking.rank_intervals import AT_ONCE
from concordant.ranking.structures import STRUCTURES
from concordant.time_left import PART, Cost

Known = Mapping[str, float]
SMALL = 1 << 17
"""Judgments up to which queries are ranked at once (``ranking.rank``)."""
FEW = 5000
"""The same of an audit (``auditing.audit``)."""
UNSURE = 0.25
"""By which share what is guessed of a log before it is counted may be wrong."""


def _power(k: Known, p: int) -> float:
    """Σ n^p over the n items of each query; where they are not known, as if all had as many."""
    return k.get(f"power {p}", k["queries"] * (k["nodes"] / max(k["queries"], 1.0)) ** p)


def _orders(k: Known) -> float:
    """What the best orders of all queries cost (``ranking.best_orders``), as if all had as many items."""
    size = k["nodes"] / max(k["queries"], 1.0)
    return float(k["queries"] * (size * 2**size / 2 if size <= 12 else 5e4 + 50 * size**2))


def _programs(k: Known) -> float:
    """The squared numbers of pairs of the two linear programs of an audit of axioms, about, before they are known."""
    pairs = max(0.5 * (_power(k, 2) - k["nodes"]), 1.0)
    never = 1.0 - min(0.5 * k["distinct"] / pairs, 1.0)  # one way round
    return float(0.9 * (pairs * (1.0 - never**2)) ** 2)


def _sandwich(k: Known) -> float:
    """What clusters add to intervals: of each its items by each other (``ranking.standard_errors``)."""
    if not k["clusters"]:
        return 0.0
    judged, size = k["distinct"] / max(k["queries"], 1.0), k["nodes"] / max(k["queries"], 1.0)
    clusters = max(min(k["clusters"], judged), 1.0)
    items = -size * math.expm1(-2 * judged / max(clusters * size, 1.0))
    return float(1.6e-9 * k["queries"] * clusters * items**2)


def _signs(k: Known) -> float:
    """What clusters add to the test of a fit: as many random signs of each as are drawn (``ranking.lack_of_fit``)."""
    if not k["clusters"]:
        return 0.0
    judged = max(k["distinct"] / max(k["queries"], 1.0), 1.0)
    times = min(FIRST + THEN, SIGNED / judged)
    drawn = -times * k["clusters"] * math.expm1(-judged / k["clusters"]) if times >= FIRST else 0.0
    return float(3e-8 * k["queries"] * drawn + 1.3e-9 * _power(k, 3))


def _tables(k: Known) -> float:
    """What the test of a fit costs where tables with the same totals are drawn (``ranking.lack_of_fit``)."""
    few = k["queries"] <= MOST_GRAPHS and _judgments(k) <= MOST_DRAWN * k["queries"]
    return 8e-6 * _judgments(k) if few and not k["clusters"] and "entries" not in k else 0.0


def _judgments(k: Known) -> float:
    """All judgments, alike ones too; before they are counted the rows."""
    return k.get("judgments", k.get("rows", k["distinct"]))


def _as_one(k: Known) -> Known:
    """What is known of all queries as one, where all have the same items."""
    size = k["nodes"] / max(k["queries"], 1.0)
    return {**k, "queries": 1.0, "nodes": size, "power 2": size**2, "power 3": size**3}


def _several(k: Known) -> bool:
    """Whether queries are ranked some at a time, which says how long the others take."""
    return k["distinct"] > SMALL and k["queries"] > 1


DREW = {"eigenvector": 2.5e-7, "thurstone-mosteller": 3e-7, "kemeny": 1.4e-6}
"""Seconds of a bootstrap replicate for each distinct judgment, of the structures of which it is not 1.4e-7."""


def _few_or_many(dense: float, k: Known, each: float) -> float:
    """What systems of equations of the items cost: as their third power, of many items as the judgments."""
    return min(dense * _power(k, 3), each * k["distinct"])


def _rank(options: Any) -> dict[str, Cost]:
    """A ranking: of many queries block by block, else its scores, its replicates, its ranks."""
    member = STRUCTURES.get(options.structure or "bradley-terry")
    sure, asked = options.interval != "none", options.interval == "bootstrap"
    expects = member is None or bool(member.expects)
    usual = sure and not asked and member is not None and member.curvature is None and member.reads != "exposures"

    def drawn(k: Known) -> float:
        work = min(k["distinct"], AT_ONCE) * (member.dearness if member else 1.0)
        if usual and "judgments" not in k and abs(math.log(max(work, 1.0) * FEWEST / DEAR)) < UNSURE:
            raise KeyError("judgments")  # whether there is a bootstrap, which takes long, nobody knows yet
        affordable = max(FEWEST, CHEAP / max(work, 1.0)) if usual and work * FEWEST <= DEAR else 0.0
        return float(options.replicates if asked else min(affordable, options.replicates))

    chosen = options.structure or "bradley-terry"
    apart = bool(options.covariates or options.home)  # each judgment by itself, not each pair
    luce, shown = chosen == "plackett-luce", member is not None and member.reads == "exposures"

    def judged(k: Known) -> float:  # lists are taken as such, not as the pairs that they make
        return k.get("rows", k["distinct"]) if luce else k["distinct"]

    def scores(k: Known) -> float:
        each = 1.2e-6 if apart else 1.9e-6 if luce else 8e-9 if shown else 2e-8
        return 0.02 + each * judged(k) + _few_or_many(1.6e-10, k, 7e-7)

    def intervals(k: Known) -> float:
        each = 7e-7 + 1.9e-6 * bool(k["clusters"]) if apart else 6.5e-6 if luce else 8e-9 if shown else 8e-8
        each += 6e-7 * (options.half_life is not None)
        found = 0.03 + each * judged(k) + _few_or_many(8e-11, k, 6e-7) + _sandwich(k)
        return (sure and not drawn(k)) * found

    def replicates(k: Known) -> float:
        each = DREW.get(chosen, 1.4e-7) if chosen != "bradley-terry" else 7e-8 if "entries" in k else 0.0
        one = 9.5e-5 * k["queries"] + 1.3e-8 * _power(k, 2) + 3e-8 * k["clusters"]
        one += 1.3e-9 * k["distinct"] * bool(k["clusters"])
        return drawn(k) * (one + each * k.get("different", k["distinct"]))

    def test(k: Known) -> float:
        each = 8e-7 * (options.half_life is not None) + apart * (1e-6 + 2.7e-6 * bool(k["clusters"]))
        return 0.03 + (each + 1.3e-7) * k["distinct"] + _signs(k) + _tables(k)

    def ranks(k: Known) -> float:
        return 1e-9 * drawn(k) * _power(k, 2)

    def whole(k: Known) -> float:
        if shown or luce:
            return 0.05 + (1.4e-5 if luce else 2.5e-8) * judged(k)
        each = 0.05 + (7e-7 if "entries" in k else 1e-6) * k["distinct"] + _few_or_many(1e-10, k, 5e-7)
        beside = (sure and not drawn(k)) * (each + 1.3e-5 * k["nodes"] + _sandwich(k))
        return each + beside + replicates(k) + ranks(k) + (_signs(k) + _tables(k) if expects else 0.0)

    def alone(cost: Cost) -> Cost:
        return lambda k: 0.0 if _several(k) else cost(k)

    pieces = {"scores": alone(scores), "bootstrap": alone(replicates), "rank intervals": alone(ranks)}
    if not asked and not usual:
        pieces = {"scores": alone(scores), "intervals": alone(intervals)}
    if expects:
        pieces["fit of the model"] = alone(test)
    pieces["ranking queries"] = lambda k: whole(k) if _several(k) else 0.0
    if sure:
        pieces["ranking queries > bootstrap"] = lambda k: replicates(k) if _several(k) else 0.0
    if options.moving:
        pieces = _moving(options)
    return pieces | {f"writing {options.output}": lambda k: 1.7e-6 * k["nodes"] if options.output else 0.0}


def _moving(options: Any) -> dict[str, Cost]:
    """Abilities that move: where prior and drift are, by some of the judgments, then all of them, and their variances.

    A knot is an item at a time at which it was judged.
    """
    free = (options.prior in (None, "auto")) + (options.drift is None)
    ties = 1.7 if options.ties == "davidson" else 1.0

    def knots(k: Known) -> float:
        return k.get("knots", min(1.5 * k["distinct"], k.get("times", 4000.0) * k["nodes"]))

    def one(k: Known) -> float:  # of longer walks each system takes more steps
        drawn = min(k["distinct"], DRAWN)
        held = min(knots(k), 2 * drawn)
        return ties * (2e-3 + 2.5e-7 * drawn + 3.5e-7 * held * (1 + held / (3000 * max(k["nodes"], 1.0))))

    def searching(k: Known) -> float:
        return 0.3 + (0.0, 11.0, 32.0)[free] * one(k) if free else 0.0

    def testing(k: Known) -> float:
        return 10 * one(k) if options.statistics else 0.0

    def together(k: Known) -> bool:
        return k["nodes"] <= TOGETHER and k["nodes"] ** 3 * k.get("times", 300.0) <= WORK

    def far(k: Known) -> float:  # what lies far apart in memory takes longer
        return knots(k) * (1.0 + knots(k) / 5e6)

    def edges(k: Known) -> float:
        return k.get("edges", k["distinct"])

    def filtered(k: Known) -> float:  # by the games of each time or all items, whichever are fewer
        times = k.get("times", 300.0)
        size = min(edges(k) / times, k["nodes"])
        return times * (1e-4 + 1.5e-10 * size**2 * k["nodes"]) + 4e-7 * edges(k)

    def at(k: Known) -> float:
        return filtered(k) if together(k) else 1e-6 * edges(k) + 3.3e-7 * far(k)

    def paths(k: Known) -> float:
        smoothed = k.get("times", 300.0) * (2e-4 + 1.3e-9 * k["nodes"] ** 3)
        every = filtered(k) + smoothed if together(k) else 1.2e-6 * knots(k)
        return every + (6e-7 if options.paths.endswith(".parquet") else 2e-6) * knots(k)

    pieces = {
        "placing judgments in time": lambda k: 0.02 + 4.5e-7 * k["distinct"],
        "prior and drift": searching,
        "abilities over time": lambda k: 0.02 + ties * (7.5e-7 * edges(k) + 1.3e-6 * far(k)),
        "ranking at one time": at,
        "whether abilities move": testing,
        "whether abilities move > prior and drift": lambda k: 0.7 * testing(k),
    }
    return pieces | ({one_line(f"writing {options.paths}"): paths} if options.paths else {})


def _compare(options: Any) -> dict[str, Cost]:
    """A ranking, and all pairs of its items."""

    def comparing(k: Known) -> float:
        return 0.05 + (0.01 * k["queries"] if k["queries"] > 1 else 0.0) + 1e-5 * _power(k, 2)

    return _rank(options) | {"comparing": comparing}


def of_boards(options: Any, other: float) -> dict[str, Cost]:
    """The ranking of one of two boards that are compared; ``other``: how large the one is that comes after it."""
    pieces = READING | _rank(options)

    def again(k: Known) -> float:
        return other * sum(cost(k) for name, cost in pieces.items() if PART not in name)

    def comparing(k: Known) -> float:
        return 0.2 + (2.1e-6 if k["clusters"] else 1.7e-6) * k["distinct"] + 1e-9 * _power(k, 3)

    return pieces | {"the other board": again, "comparing": comparing}


def _audit(options: Any, together: bool = False) -> dict[str, Cost]:
    """An audit: of many queries block by block, else its cycles, its best order, its losses, and what is noise.

    ``together``: all queries as one, as if each had the same items.
    """
    drawn = options.replicates

    def of_lists(k: Known) -> float:
        return k["distinct"] if "entries" in k else 0.0

    def alike(k: Known) -> float:  # judgments of pairs that are there more than once: on several dates, say
        return 0.0 if "entries" in k or k["clusters"] else max(k["distinct"] - _power(k, 2), 0.0)

    def noise(k: Known) -> float:
        each = 2.4e-7 * _power(k, 2) + 1.8e-8 * k["distinct"] * bool(k["clusters"])
        return each + 3.7e-8 * alike(k) + 7e-8 * k.get("different", 0.0) * ("entries" in k)

    parts: dict[str, Cost] = {
        "cycles": lambda k: 0.4 + 1e-8 * _power(k, 3) + 1e-6 * alike(k),
        "best orders": lambda k: 0.05 + 1e-8 * _power(k, 3) + 5e-7 * of_lists(k),
        "surrogates": lambda k: 0.1 + 1e-7 * _power(k, 3) + 6e-7 * of_lists(k),
        "held-out judgments": lambda k: (
            bool(drawn) * (0.4 + 1e-6 * _power(k, 3) + 5e-6 * of_lists(k) + 3.5e-6 * alike(k))
        ),
        "sampling noise": lambda k: drawn * noise(k),
        "what to ask": lambda k: bool(drawn) * (0.05 + 1e-6 * _power(k, 2) + 1.6e-7 * of_lists(k)),
    }

    def whole(k: Known) -> float:
        pairs = min(k["distinct"], _power(k, 2)) if "entries" in k else k["distinct"]  # lists say pairs again
        each = (
            1e-3 * k["queries"] + 2.7e-4 * pairs**2 / max(_power(k, 2), 1.0) + 4e-6 * _judgments(k)
            if drawn
            else 3.3e-4 * k["queries"] + 1.6e-6 * _power(k, 2)
        )
        return 0.5 + each if several(k) else 0.0

    def several(k: Known) -> bool:
        return k["queries"] > 1 and k["distinct"] > FEW and not together

    def alone(cost: Cost) -> Cost:
        return lambda k: 0.0 if several(k) else cost(_as_one(k) if together else k)

    output = str(getattr(options, "output", None) or "")

    def writing(k: Known) -> float:
        return (2.2e-4 if output.lower().endswith(".json") else 1e-5) * k["queries"] + 2e-4 * k["queries"] * bool(drawn)

    found = {name: alone(cost) for name, cost in parts.items()} | {"auditing queries": whole}
    if getattr(options, "fragility", False):  # each cluster and each item is left out once, about
        found = {"fragility": lambda k: (k["clusters"] + k["nodes"]) * (1e-3 + 1e-7 * k["distinct"])} | found
    return found | ({one_line(f"writing {output}"): writing} if output else {})


def _report(options: Any) -> dict[str, Cost]:
    """A scorer, rankings of all queries together and of each, the audit of both, and the rest of the page."""
    parts = _audit(SimpleNamespace(replicates=200)) if options.audit else {}
    pooled = _audit(SimpleNamespace(replicates=200), together=True) if options.audit else {}
    scorer = options.features is not None or options.model is not None

    def ranking(k: Known) -> float:
        each = 0.1 + 4e-7 * k["distinct"] + 3e-10 * _power(k, 3) + 1e-3 * k["queries"] + _sandwich(k) + _signs(k)
        return 2.0 * each + _tables(k) if k["queries"] > 1 else each

    def axioms(k: Known) -> float:
        programs = 7.1e-8 * k.get("programs", _programs(k)) if scorer else 0.0
        return programs + (0.4 + 1.1e-5 * k["distinct"] if scorer or options.scores else 0.0)

    def agreement(k: Known) -> float:
        return (0.1 + 2e-6 * k["distinct"]) * bool(k["clusters"] or options.group)

    def moving(k: Known) -> float:
        if not options.time:
            return 0.0
        given = SimpleNamespace(prior=None, drift=None, ties=options.ties, statistics=False, paths=None)
        return 1.3 * sum(cost(k) for name, cost in _moving(given).items() if name != "ranking at one time")

    before: dict[str, Cost] = {
        "scorer and its risk": lambda k: scorer * (0.4 + 3.6e-4 * k["distinct"] ** 0.73 + 8.5e-6 * k["distinct"]),
        "rankings": ranking,
    }
    after: dict[str, Cost] = {
        "axioms of the scorer": axioms,
        "agreement of those who judged": agreement,
        "rankings over time": moving,
        "rankings over time > prior and drift": lambda k: 0.7 * moving(k),
        "risk of leaving pairs open": lambda k: 0.03 + 8e-7 * k["distinct"],
        "writing the page": lambda k: 0.2 + 2e-7 * k["distinct"],
    }
    return before | {name: _both(pooled[name], cost) for name, cost in parts.items()} | after


def _both(one: Cost, other: Cost) -> Cost:
    return lambda k: one(k) * (k["queries"] > 1) + other(k)


FOREIGN = {"random-forest": 1e-4, "hist-gradient-boosting": 1e-5, "network": 4e-6, "lightgbm": 5e-6, "xgboost": 7e-6}
"""Seconds of fitting a regressor for each number of its table, about: a forest's trees are as many as rows."""
KINKED = ("ranksvm", "margin-based")
"""Losses whose margin functions have a kink, which takes longer."""


def _fit(options: Any) -> dict[str, Cost]:
    """A scorer: what is chosen, fold by fold, what it is tested against, and the fit to all judgments."""
    if options.kind == "labels" or (options.kind is None and is_letor(options.log)):
        return _fit_labels(options)
    cells = cells_of(options.features or options.log)
    pieces: dict[str, Cost] = {f"reading {options.features}": features_of(options.features)} if options.features else {}
    pieces |= READING
    if options.start is not None:
        return pieces | {"learning": lambda k: 0.05 + 2e-6 * k["distinct"]}
    if options.regressor == "boosted":
        return pieces | {"learning": lambda k: 0.6 + 4.5e-6 * k["distinct"] + 5e-6 * cells}
    if options.loss not in (None, "gain-regression"):
        each = 3e-5 if options.loss == "leximax-copeland" else 3e-6 if options.loss in KINKED else 1e-6
        steps = 4e-5 * (options.steps or 100_000) * (options.solver == "stochastic")
        return pieces | {"learning": lambda k: 0.05 + steps + each * k["distinct"]}
    if options.structure is not None or options.order != "auto" or options.gain is not None:
        chosen = options.order == "auto" or "auto" in (options.ridge, options.c0, options.score_scale)
        drawn = isinstance(options.order, int)  # a fit of each subset
        each = 8.5e-5 if options.structure not in (None, "log-odds") else 1e-5
        orders = 16 * each * (options.subsets or 32) * (options.order == "auto" and each > 1e-5)  # of all folds
        if chosen:
            pieces |= {"cross-validation: folds": lambda k: 0.2 + 5.5e-6 * k["distinct"] + orders * k["queries"]}
        subsets = each * (options.subsets or 32) * drawn
        aside = 0.7 if options.regressor in FOREIGN else 0.1
        if not chosen:
            pieces |= {"aggregating": lambda k: aside + 2e-7 * k["distinct"] + subsets * k["queries"]}
        learned = 1.0
    else:
        pieces |= _informed(options.regressor in FOREIGN)
        learned = 1.75 if options.regressor == "random-forest" else 1.0  # targets of more values make deeper trees
    if options.regressor in FOREIGN:
        pieces |= {"fitting the regressor": lambda _: 0.5 + learned * FOREIGN[options.regressor] * cells}

    def agreement(k: Known) -> float:
        return 0.1 + (2e-8 if "entries" in k else 5e-7) * k["distinct"]

    return pieces | {"agreement with the judgments": agreement}


def _informed(foreign: bool) -> dict[str, Cost]:
    """What is learned where nothing is named: of clicks by orders of subsets, else with the features as a prior."""

    def clicked(k: Known, each: float) -> float:
        return (1.0 if k["several"] else 0.15) * each * k["distinct"]

    def of_lists(k: Known, each: float) -> float:
        return each * k["distinct"] + 5e-4 * k["nodes"]

    def ridge(k: Known) -> float:
        if "clicks" in k:
            return 0.0
        return 0.25 + (of_lists(k, 5e-7) if "entries" in k else 4.4e-4 * k["distinct"] ** 0.73)

    def orders(k: Known) -> float:
        if "clicks" not in k:
            return 0.0
        return clicked(k, 7e-7 * (1.0 + 2.0 * math.log10(max(k["different"] / max(k["queries"], 1.0), 1.0))))

    def gate(k: Known) -> float:
        if "clicks" in k:
            return 0.2 + (1.0 if k["several"] else 0.15) * (8e-7 * k["distinct"] + 2.5e-4 * k["nodes"])
        return 0.35 + (1e-6 if "entries" in k else 3e-5 if foreign else 1e-5) * k["distinct"]

    return {
        "choosing the ridge: folds": ridge,
        "cross-validation: folds": orders,
        "gate: folds": gate,
        "gate: parts left out": lambda k: (1.0 if k["several"] else 0.15) * of_lists(k, 2e-7) if "clicks" in k else 0.0,
    }


def _fit_labels(options: Any) -> dict[str, Cost]:
    """A scorer of graded labels: of the kinds that are tried the best, or the one that was asked for."""
    both = features_of(options.log), (features_of(options.features) if options.features else (lambda _: 0.0))
    cells = cells_of(options.features or options.log)
    pieces: dict[str, Cost] = {one_line(f"reading {options.log}"): lambda k: sum(cost(k) for cost in both)}
    trees = 8.3 + 5.6e-6 * cells
    if not options.gave(*OF_ONE):

        def parts(k: Known) -> float:  # trees of few lists are grown sooner
            return k["parts"] * min(0.45 + 1e-3 * k["lists"], 1.0) * trees

        pieces |= {"choosing the scorer: parts": parts}
        pieces |= {"fitting the best scorer": lambda k: trees * k.get("best", 1.0)}
        return pieces | {"agreement with the judgments": lambda _: 0.05 + 1e-6 * cells}
    one = trees if options.regressor == "boosted" else 0.2 + FOREIGN.get(options.regressor, 7e-7) * cells
    return pieces | {"learning": lambda _: one + 0.05 + 1e-6 * cells}


def _camps(options: Any) -> dict[str, Cost]:
    """The trials of each number of camps, by as many priors as are tried, and the last fit."""
    numbers = [*range(1, options.most + 1)] if options.number == "auto" else sorted({1, int(options.number)})
    tried = [2.0] * len(numbers) if options.prior != "auto" else [4.0, 4.0, *[3.0] * len(numbers)]
    trials = sum(times * (one if one > 1 else 0.2) for times, one in zip(tried, numbers, strict=False))
    each = trials / 30 * options.folds / 5  # of the usual options

    def searching(k: Known) -> float:
        pairs = 0.5 * k["clusters"] * (_power(k, 2) - k["nodes"])
        return float(0.1 + each * (2.9 * min(1.0, k["distinct"] / 2e4) + 1.15e-5 * pairs + 1.05e-4 * k["distinct"]))

    return {"numbers of camps": searching, "finding the camps": lambda k: 0.05 + 4e-6 * k["distinct"]}


def _explain(options: Any) -> dict[str, Cost]:
    """Fits of all judgments, most of them to find the spread of the items."""
    cells, fits = cells_of(options.features), 1.0 if options.effects == "random" and options.spread is None else 0.12

    def explaining(k: Known) -> float:
        width = cells / max(k["nodes"], 1.0)
        return float(0.05 + fits * ((2e-5 + 1.6e-6 * width) * k["distinct"] + 2.2e-8 * _power(k, 3)))

    return {"explaining": explaining, "explaining > spread of the items": lambda k: 0.84 * explaining(k)}


def _judging(k: Known) -> float:
    """Judges and items in turn, of many judgments far apart in memory."""
    return 0.1 + 7e-6 * k["distinct"] * (1.0 + k["distinct"] / 2.5e6) + 1e-4 * k["clusters"]


PLANS: dict[str, Callable[[Any], dict[str, Cost]]] = {
    "RankOptions": _rank,
    "CompareOptions": _compare,
    "AuditOptions": _audit,
    "ReportOptions": _report,
    "FitOptions": _fit,
    "TreeOptions": lambda one: (
        READING
        | {
            "checking rows": lambda k: (1.9e-6 if len({*one.cluster, *one.by}) > 1 else 3e-8) * k["distinct"],
            "groups": unknown,  # how often they are divided, the tests say
            "rankings of the groups": lambda k: (0.2 + 6e-7 * k["distinct"]) * (k.get("groups", 2.0) > 1),
        }
    ),
    "JudgesOptions": lambda _: {
        "measuring the judges": _judging,
        "measuring the judges > weighing": _judging,
    },
    "CampsOptions": _camps,
    "ExplainOptions": _explain,
    "LookOptions": lambda one: {
        "adding up votes": lambda k: 0.02 + 2.8e-7 * k["distinct"] + 1.6e-8 * _power(k, 2),
        "scores": lambda k: 0.02 + 2.5e-7 * k["distinct"] + 3.5e-8 * _power(k, 2) + 1.4e-6 * k["nodes"],
        "evidence": lambda k: 0.02 + 2.8e-7 * _power(k, 2) + 1.9e-10 * _power(k, 3),
        "pairs to ask": lambda k: min(one.ask, 1000) * (2.3e-9 * _power(k, 2) + 4.5e-8 * k["nodes"]),
    },
    "PairsOptions": lambda one: {
        "matching texts": lambda k: 0.02 + 4e-6 * k["nodes"] + 3e-7 * k["distinct"],
        "ordering": lambda k: 0.4 + 1.1e-9 * k.get("ordering", _orders(k)),
        "making pairs": lambda k: 0.02 + 9e-7 * k["distinct"],
        f"writing {one.output}": lambda k: (1e-7 if one.output.endswith(".parquet") else 1.5e-6) * k["distinct"],
    },
    "AxiomsOptions": lambda one: {
        "what a linear scorer could do": lambda k: (
            0.1 + 6.6e-8 * k.get("programs", _programs(k) if one.features else 0)
        ),
        "fitting again": lambda k: (
            (2 + 3 * one.refits) * (0.4 + 1.3e-5 * k["distinct"]) if is_model(Path(one.scorer)) else 0.0
        ),
    },
}
"""What a command does once its log is read."""


def of_card(options: Any) -> dict[str, Cost]:
    """The pieces of a model card: what it reads, how well the model agrees with that, and the audit of the judgments.

    Held-out judgments, before they are counted, take as long beside those learned from as their file is large.
    """

    def reading(file: str | None) -> dict[str, Cost]:
        return {} if file is None else {one_line(f"reading {file}"): features_of(file)}

    def agreement(k: Known) -> float:
        return 0.1 + 5e-7 * k["distinct"]

    pieces: dict[str, Cost] = reading(options.features) | (READING if options.log is not None else {})
    pieces |= reading(options.held_out_features)
    if options.held_out is not None:
        other = size_of(options.held_out) / max(size_of(options.log or options.held_out), 1.0)
        pieces[HELD_OUT] = lambda k: other * sum(cost(k) for cost in READING.values())
        pieces["agreement with held-out judgments"] = lambda k: other * agreement(k)
    pieces |= reading(options.labels)
    if options.labels is not None:
        rows = size_of(options.labels) / 350
        pieces["metrics of the labels"] = lambda _: 0.05 + 1e-6 * rows
    if options.log is None:
        return pieces
    audit = _audit(SimpleNamespace(replicates=200)) if options.audit else {}
    return pieces | {"agreement with the judgments": agreement} | audit


HELD_OUT = "the held-out judgments"
"""The piece of a plan that stands for reading a second log."""


def once_counted(pieces: Mapping[str, Cost], known: Known) -> dict[str, Cost]:
    """What is to come of a card once the judgments it learned from are counted: another log, counted next, tells less.

    That log is read as the first was.
    """

    def fixed(seconds: float) -> Cost:
        return lambda _: seconds

    over = {*READING, HELD_OUT}
    later = {name: cost for name, cost in pieces.items() if name not in over and not name.startswith("reading ")}
    counted = {name: fixed(cost(known)) for name, cost in later.items()}
    return (READING | counted | {HELD_OUT: fixed(0.0)}) if HELD_OUT in pieces else counted


def plan_of(options: Any) -> dict[str, Cost]:
    """Return the pieces of a command that reads a log, in order; of one whose work is not known only the reading."""
    later = PLANS.get(type(options).__name__)
    pieces = {} if later is None else later(options)
    return pieces if READING.keys() <= pieces.keys() else READING | pieces
