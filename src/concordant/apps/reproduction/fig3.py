"""AoS Figure 3: NDCG risk of gain regression against the order k, beside pairwise logistic and the limit scores.

Three panels: both methods by the paper's stochastic gradients, both at their minima with every setting chosen the same
way, and the second again at the paper's number of comparisons.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from concordant.apps.reproduction.data import FULL, TITLES, GradedLists, read_graded
from concordant.apps.reproduction.fig3_converged import (
    ALL,
    BT,
    INFORMED,
    LOGISTIC,
    ON_DRAWS,
    RIDGES,
    UNTUNED,
    Chosen,
    choose,
    fitted_risks,
    orders_of,
)
from concordant.apps.reproduction.fig3_drawing import draw
from concordant.apps.reproduction.fig3_many import QUERIES, Found, ManyQueries, many_risks
from concordant.apps.reproduction.fig3_many import choose as choose_many
from concordant.apps.reproduction.fig3_stochastic import RIDGE, STEPS, stochastic_risks
from concordant.apps.reproduction.fitting import equations, limit_targets
from concordant.apps.reproduction.outcome import Efforts, Outcome, Row, Setting, found
from concordant.losses.metrics.metrics import Comparison, compare

PER_QUERY = (20, 40, 80, 160, 320, 640)
"""Comparisons a query. The paper's 2·10⁵ … 1.6·10⁶ on 10⁴ queries are the first four."""
PAPER = 160
"""The most of the paper."""
ORDERS = (1, 3, 10, 30, 100, 300)
FEW_ORDERS = (1, 10, 100)
"""Of the stochastic panel."""
RUNS, FEW_RUNS, MANY_RUNS = 30, 10, 5
"""Of the converged panel, of the stochastic one, of the paper's number of comparisons."""
PILOTS = 10
"""Draws on which settings are chosen; half as many where comparisons are plenty."""
DATA = ("mslr", "mq2008")
STOCHASTIC, CONVERGED, MANY = "stochastic", "converged", "10⁴ queries"
BESIDE = (LOGISTIC, UNTUNED, BT, INFORMED, *ON_DRAWS.values())
"""Methods that are no order k with c₀ and β chosen."""


def run(setting: Setting) -> Outcome:
    """Run the experiment on the sets that are there."""
    sets = [read_graded(name, setting.data) for name in DATA if found(name, setting.data)]
    runs, few, pilots, repeated = (3, 2, 2, 2) if setting.quick else (RUNS, FEW_RUNS, PILOTS, MANY_RUNS)
    steps = STEPS // 10 if setting.quick else STEPS
    plan = [(lists, each) for lists in sets for each in _sizes(lists, setting.quick)]
    efforts = [_Effort.of(lists, each, steps, setting.quick) for lists, each in plan]
    told = Efforts(
        setting,
        sum(
            one.pilot * _pilots(each, pilots)
            + one.run * runs
            + (one.stochastic * few + one.many * (repeated + CHOOSING)) * (each <= PAPER)
            for one, (_, each) in zip(efforts, plan, strict=True)
        ),
    )
    curves: list[Row] = []
    singles: list[Row] = []
    for effort, (lists, each) in zip(efforts, plan, strict=True):
        seeds = [setting.seed, 0, each]
        draws = [_drawn(lists, each, [*seeds, number]) for number in range(_pilots(each, pilots))]
        chosen = choose(lists, draws, orders_of(each, ORDERS), setting.seed, told.part_of(effort.pilot))
        tables: dict[str, list[dict[str, float]]] = {CONVERGED: [], STOCHASTIC: [], MANY: []}
        for number in range(runs):
            prefs = _drawn(lists, each, [setting.seed, 1, each, number])
            tables[CONVERGED].append(fitted_risks(lists, prefs, chosen, number))
            told.done(effort.run)
            if each <= PAPER and number < few:
                tables[STOCHASTIC].append(
                    stochastic_risks(lists, prefs, orders_of(each, FEW_ORDERS), steps, setting.seed + number)
                )
                told.done(effort.stochastic)
        known: dict[str, Chosen | Found | None] = {CONVERGED: chosen, STOCHASTIC: None, MANY: None}
        if each <= PAPER and len(lists) < FULL:
            many = ManyQueries.of(lists, QUERIES // 10 if setting.quick else QUERIES)
            known[MANY] = settled = choose_many(many, each, setting.seed)
            told.done(effort.many * CHOOSING)
            for number in range(repeated):
                rng = np.random.default_rng([setting.seed, 3, each, number])
                tables[MANY].append(many_risks(many, each, settled, rng))
                told.done(effort.many)
        for panel, table in tables.items():
            singles += [
                {"data": lists.name, "panel": panel, "per query": each, "run": number + 1, "method": name, "risk": risk}
                for number, line in enumerate(table)
                for name, risk in line.items()
            ]
            curves += _curve(lists.name, panel, each, table, known[panel])
    limits = {lists.name: _limit_risk(lists) for lists in sets}
    numbers = _Numbers(curves, singles, limits)
    converged = numbers.converged()
    return Outcome(
        "fig3",
        "AoS Figure 3: NDCG risk against the order of aggregation",
        converged,
        numbers.agreement(),
        lambda figure: draw(figure, [row for row in curves if row["panel"] != MANY], limits, BESIDE),
        {
            "curve": curves,
            "runs": singles,
            "stochastic": numbers.stochastic(),
            "beside": numbers.beside(),
            "many": numbers.many(),
        },
        shown={
            "Both methods by stochastic gradients:": numbers.stochastic(),
            "Converged, beside (differences from pairwise logistic chosen the same way):": numbers.beside(),
            "Converged, 10⁴ queries (each query stands so often that there are as many):": numbers.many(),
        },
        size=(13.0, 4.4 * len(sets) + 0.5),
        notes=[
            f"{TITLES[lists.name]}: {len(lists):,} queries, {len(lists.X):,} documents, {lists.X.shape[1]} features. "
            for lists in sets
        ]
        + [
            "Comparisons drawn by (26); risk (14) with G(s) = 2^s on the limit scores (27) of the training queries, "
            f"as in the paper. Converged ({runs} runs): ridges, c₀, β (and how the informed one aggregates) chosen by "
            f"the risk of held-out queries on {pilots} other draws ({_pilots(2 * PAPER, pilots)} from "
            f"{2 * PAPER} comparisons a query on). Stochastic ({few} of the same runs): {steps:,} steps of 1/(L√t) "
            f"from 0, their mean, ridge {RIDGE:g}, c₀ = ½, β = 1. Differences are paired, with 95% intervals over runs."
        ],
    )


@dataclass(frozen=True)
class _Effort:
    """Seconds of a step of each kind, about, of so many comparisons a query."""

    pilot: float
    run: float
    stochastic: float
    many: float

    @classmethod
    def of(cls, lists: GradedLists, per_query: int, steps: int, quick: bool) -> _Effort:
        documents, width = lists.X.shape
        size = documents / len(lists)
        pairs = max(0.5 * size * (size - 1), 1.0)
        distinct = -len(lists) * pairs * math.expm1(-per_query / pairs)
        pilot = (1.35e-6 * documents + 9e-7 * distinct) * width
        queries = 0 if len(lists) >= FULL else QUERIES // 10 if quick else QUERIES
        many = queries * (2.5e-6 * size + 1.2e-6 * per_query)
        orders = len(orders_of(per_query, FEW_ORDERS))
        stochastic = 0.06 + 7e-4 * per_query + steps * orders * (1.4e-5 + 1.6e-7 * width)
        return cls(pilot, 0.12 + 2e-7 * distinct * width, stochastic, many)


CHOOSING = 4.0
"""How many times as long as a run the choice takes before the runs of the paper's number of comparisons."""


def _sizes(lists: GradedLists, quick: bool) -> list[int]:
    sizes = PER_QUERY[::3] if quick else PER_QUERY
    return [each for each in sizes if len(lists) < FULL or each <= PAPER]


def _pilots(per_query: int, pilots: int) -> int:
    return pilots if per_query <= PAPER else max(2, pilots // 2)


def _drawn(lists: GradedLists, per_query: int, seed: Sequence[int]) -> Any:
    return lists.draw(per_query * len(lists), np.random.default_rng(seed))


def _limit_risk(lists: GradedLists) -> float:
    fitted = equations(lists, limit_targets(lists))
    return min(lists.risk(lists.X @ fitted.solve(ridge).theta) for ridge in RIDGES)


def _curve(
    data: str, panel: str, per_query: int, table: Sequence[Mapping[str, float]], known: Chosen | Found | None
) -> list[Row]:
    """Mean risk and 95% interval of each method, with its settings."""
    rows: list[Row] = []
    for name in table[0] if table else ():
        spread = compare([line[name] for line in table], np.zeros(len(table)))
        row: dict[str, Any] = {"data": data, "panel": panel, "per query": per_query, "method": name}
        row |= {"risk": spread.mean, "lower": spread.lower, "upper": spread.upper}
        row |= {"ridge": "", "c0": "", "scale": "", "gain": "", "tau2": ""}
        if isinstance(known, Chosen):
            row["ridge"] = known.ridge[name]
            of = ALL if name.isdigit() else name
            row |= {"c0": known.c0.get(of, ""), "scale": known.scale.get(of, "")}
            if name == INFORMED:
                row |= {"gain": known.gain, "tau2": known.tau2}
        elif isinstance(known, Found):
            row["ridge"] = {LOGISTIC: known.logistic, ALL: known.ridge, UNTUNED: known.plain}[name]
            row |= {"c0": known.c0, "scale": known.scale} if name == ALL else {}
        rows.append(row)
    return rows


class _Numbers:
    """Tables and sentences from the means and the single runs."""

    def __init__(self, curves: Sequence[Row], singles: Sequence[Row], limits: Mapping[str, float]) -> None:
        self._row: dict[tuple[str, str, int, str], Row] = {
            (row["data"], row["panel"], row["per query"], row["method"]): row for row in curves
        }
        self._limits = limits
        self._runs: dict[tuple[str, str, int, str], list[float]] = {}
        for row in singles:
            key = (row["data"], row["panel"], row["per query"], row["method"])
            self._runs.setdefault(key, []).append(row["risk"])

    def _places(self, panel: str) -> list[tuple[str, int]]:
        return list(dict.fromkeys((data, each) for data, name, each, _ in self._row if name == panel))

    def _risk(self, data: str, panel: str, each: int, method: str) -> float:
        return float(self._row[data, panel, each, method]["risk"])

    def _best(self, data: str, panel: str, each: int) -> str:
        """The order of the lowest mean risk."""
        orders = [key[3] for key in self._row if key[:3] == (data, panel, each) and key[3] not in BESIDE]
        return min(orders, key=lambda name: self._risk(data, panel, each, name))

    def _paired(self, data: str, panel: str, each: int, method: str, against: str = LOGISTIC) -> Comparison:
        """The method less the other, run by run."""
        one, two = (self._runs[data, panel, each, name] for name in (method, against))
        return compare(one, two)

    def _line(self, data: str, panel: str, each: int) -> dict[str, Any]:
        best = self._best(data, panel, each)
        names = {"logistic": LOGISTIC, "k = 1": "1"}
        line: dict[str, Any] = {"data": TITLES[data], "per query": each}
        line |= {title: self._risk(data, panel, each, name) for title, name in names.items()}
        line |= {"best k": best, "its risk": self._risk(data, panel, each, best)}
        return line | {"all": self._risk(data, panel, each, ALL)}

    def _apart(self, data: str, panel: str, each: int) -> dict[str, str]:
        best = self._best(data, panel, each)
        return {
            f"{title} − logistic": _interval(self._paired(data, panel, each, name))
            for title, name in (("k = 1", "1"), ("best k", best), ("all", ALL))
        }

    def converged(self) -> list[Row]:
        """The table of the paper's figure, both methods at their minima."""
        out: list[Row] = []
        for data, each in self._places(CONVERGED):
            known = self._row[data, CONVERGED, each, ALL]
            line = self._line(data, CONVERGED, each) | {"c₀": f"{known['c0']:g}", "β": f"{known['scale']:g}"}
            out.append(line | {"limit scores": self._limits[data]} | self._apart(data, CONVERGED, each))
        return out

    def stochastic(self) -> list[Row]:
        """The same by stochastic gradients, and how far these are from the minimum."""
        out: list[Row] = []
        for data, each in self._places(STOCHASTIC):
            line = self._line(data, STOCHASTIC, each) | self._apart(data, STOCHASTIC, each)
            stopped = self._runs[data, STOCHASTIC, each, LOGISTIC]
            at_minimum = self._runs[data, CONVERGED, each, LOGISTIC][: len(stopped)]
            out.append(line | {"logistic − converged": _interval(compare(stopped, at_minimum))})
        return out

    def beside(self) -> list[Row]:
        """What the paper does not have, and what depends on how settings are chosen."""
        out: list[Row] = []
        for data, each in self._places(CONVERGED):
            line: dict[str, Any] = {"data": TITLES[data], "per query": each}
            for name in (UNTUNED, BT, INFORMED):
                line[name] = _interval(self._paired(data, CONVERGED, each, name))
            here = {name: self._risk(data, CONVERGED, each, on) for name, on in ON_DRAWS.items()}
            line |= {"logistic, on draws": here[LOGISTIC], "all, on draws": here[ALL]}
            apart = self._paired(data, CONVERGED, each, ON_DRAWS[ALL], ON_DRAWS[LOGISTIC])
            out.append(line | {"all − logistic, on draws": _interval(apart)})
        return out

    def many(self) -> list[Row]:
        """At the paper's number of comparisons."""
        out: list[Row] = []
        for data, each in self._places(MANY):
            known = self._row[data, MANY, each, ALL]
            line: dict[str, Any] = {"data": TITLES[data], "per query": each}
            line |= {name: self._risk(data, MANY, each, name) for name in (LOGISTIC, UNTUNED, ALL)}
            line |= {"c₀": f"{known['c0']:g}", "β": f"{known['scale']:g}"}
            for name in (UNTUNED, ALL):
                line[f"{name} − logistic"] = _interval(self._paired(data, MANY, each, name))
            out.append(line)
        return out

    def agreement(self) -> list[str]:
        """Say what agrees with the paper."""
        said = []
        for data in dict.fromkeys(key[0] for key in self._row):
            title = TITLES[data]
            for panel in (STOCHASTIC, CONVERGED):
                sizes = [each for name, each in self._places(panel) if name == data]
                one = [self._paired(data, panel, each, "1") for each in sizes]
                best = [self._paired(data, panel, each, self._best(data, panel, each)) for each in sizes]
                said.append(
                    f"{title}, {panel}: k = 1 is {_verdict(sizes, one)} (paper: worse at all four); the best order is "
                    f"{_verdict(sizes, best)} (paper: better at all four)."
                )
            sizes = [each for name, each in self._places(CONVERGED) if name == data]
            for name, says in (
                (ALL, "complete aggregation with c₀ and β chosen"),
                (UNTUNED, "complete aggregation with c₀ = ½, β = 1"),
                (BT, "complete aggregation by Bradley–Terry"),
                (INFORMED, "feature-informed aggregation"),
            ):
                apart = [self._paired(data, CONVERGED, each, name) for each in sizes]
                means = ", ".join(f"{x.mean:+.4f}" for x in apart)
                said.append(f"{title}, converged: {says} is {_verdict(sizes, apart)} (mean differences {means}).")
            sizes = [each for name, each in self._places(MANY) if name == data]
            for name, says in ((ALL, "c₀ and β chosen"), (UNTUNED, "c₀ = ½, β = 1")) if sizes else ():
                apart = [self._paired(data, MANY, each, name) for each in sizes]
                said.append(f"{title}, 10⁴ queries: complete aggregation with {says} is {_verdict(sizes, apart)}.")
        return said


def _interval(apart: Comparison) -> str:
    return f"{apart.mean:+.4f} [{apart.lower:+.4f}, {apart.upper:+.4f}]"


def _verdict(sizes: Sequence[int], apart: Sequence[Comparison]) -> str:
    """Better, worse than pairwise logistic beyond the interval, or level, by comparisons a query."""
    better = ", ".join(str(each) for each, x in zip(sizes, apart, strict=True) if x.upper < 0) or "none"
    worse = ", ".join(str(each) for each, x in zip(sizes, apart, strict=True) if x.lower > 0) or "none"
    return f"better than pairwise logistic at {better}, worse at {worse} comparisons a query, level elsewhere"
