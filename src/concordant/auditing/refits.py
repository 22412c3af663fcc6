"""What becomes of a ranker's order when it is fitted again: an item entered twice, and annotators in two halves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from concordant.learning.features.matrix import Features, align
from concordant.learning.rankers.estimator import Ranker
from concordant.learning.scikit import clone
from concordant.preferences.graphs import Batch
from concordant.preferences.labels import Labels
from concordant.preferences.preferences import Comparisons, Preferences, keep
from concordant.ranking.pair_votes import annotators_of

Floats = NDArray[np.float64]
Found = tuple[dict[str, Any], list[dict[str, Any]]]
SLIGHT = 1e-6
"""Differences of scores below this share of their standard deviation are level: fits end at a tolerance."""


def copies(
    ranker: Ranker, features: Features | None, prefs: Preferences, number: int, worst: int, fitted: Callable[[], object]
) -> Found:
    """Enter items twice, with all their votes and features, and count pairs of others that change their order.

    The ``number`` most judged items, one at a time (independence of clones). ``fitted`` is called after each fit.
    """
    row: dict[str, Any] = {"axiom": "copies", "of": 0, "violated": 0}
    cases: list[dict[str, Any]] = []
    if not isinstance(prefs, Comparisons) or features is None:
        return row, cases
    before = _order_of(clone(ranker).fit(features, prefs), features, prefs)
    fitted()
    times = np.bincount(np.concatenate((prefs.winner, prefs.loser)), np.tile(prefs.count, 2), len(prefs.items))
    for code in np.argsort(-times, kind="stable")[:number].tolist():
        twice, more = _with_copy(prefs, features, code)
        after = _order_of(clone(ranker).fit(more, twice), features, prefs)
        fitted()
        others = (before.first_item != code) & (before.second_item != code)
        changed = np.flatnonzero(others & (before.sign * after.sign < 0))
        row["of"] += int(others.sum())
        row["violated"] += len(changed)
        items = prefs.items
        for at in changed[: max(worst - len(cases), 0)].tolist():
            one, other = items[int(before.first_item[at])], items[int(before.second_item[at])]
            cases.append(
                {"axiom": "copies", "item": f"{one} and {other}, {items[code]!r} entered twice", "other": None}
            )
    return row, cases


def parts(
    ranker: Ranker, features: Features | None, prefs: Preferences, number: int, worst: int, seed: int,
    fitted: Callable[[], object],
) -> Found:  # fmt: skip
    """Deal the annotators into halves and count pairs that both order alike and all together the other way.

    ``fitted`` is called after each fit.
    """
    row: dict[str, Any] = {"axiom": "separability", "of": 0, "violated": 0}
    cases: list[dict[str, Any]] = []
    who = annotators_of(prefs)
    if features is None or len(prefs) < 4 or (who is not None and who.max(initial=0) < 1):
        return row, cases
    whole = _order_of(clone(ranker).fit(features, prefs), features, prefs)
    fitted()
    rng = np.random.default_rng(seed)
    none = np.zeros((0, 2), np.int64)
    for _ in range(number):
        if who is None:
            halves = prefs.folds(2, seed=int(rng.integers(1 << 30)))
        else:
            side = rng.permutation(int(who.max()) + 1) % 2
            chosen = [np.flatnonzero(side[who] == half) for half in (0, 1)]
            halves = [keep(prefs, rows, prefs.count[rows], none) for rows in chosen]
        signs = []
        try:
            for half in halves:
                signs.append(_order_of(clone(ranker).fit(features, half), features, prefs).sign)
                fitted()
        except ValueError:  # a half that nothing can be learned from
            continue
        alike = (signs[0] == signs[1]) & (signs[0] != 0)
        wrong = np.flatnonzero(alike & (signs[0] * whole.sign < 0))
        row["of"] += int(alike.sum())
        row["violated"] += len(wrong)
        for at in wrong[: max(worst - len(cases), 0)].tolist():
            items = (prefs.items[int(one)] for one in (whole.first_item[at], whole.second_item[at]))
            one, other = items if signs[0][at] > 0 else tuple(items)[::-1]
            cases.append({"axiom": "separability", "item": one, "other": other})
    return row, cases


class _Order:
    """The order of the judged pairs by a scorer."""

    def __init__(self, score: Floats, batch: Batch) -> None:
        graphs = batch.graphs
        gap = score[graphs.first] - score[graphs.second]
        self.sign = np.where(np.abs(gap) <= SLIGHT * max(float(score.std()), 1e-300), 0, np.sign(gap)).astype(np.int64)
        self.first_item, self.second_item = batch.item[graphs.first], batch.item[graphs.second]


def _order_of(ranker: Ranker, features: Features, prefs: Preferences) -> _Order:
    return _Order(ranker.predict(features)[align(features, prefs).row], Batch.whole(prefs))


def _with_copy(prefs: Comparisons, features: Features, code: int) -> tuple[Preferences, Features]:
    """Return votes and features with an item entered a second time."""
    label = prefs.items[code]
    whole = isinstance(label, int)
    name: Any = max(max(prefs.items.tolist()), max(features.items.tolist())) + 1 if whole else f"{label} (again)"
    while not whole and (features.items.codes_of(pa.array([name])) >= 0).any():
        name += "'"
    rows = np.flatnonzero((prefs.winner == code) | (prefs.loser == code))
    names = np.array(prefs.items.tolist(), object)
    sides = [names[side[rows]] for side in (prefs.winner, prefs.loser)]
    for side, codes in zip(sides, (prefs.winner, prefs.loser), strict=True):
        side[codes[rows] == code] = name

    def taken(column: Any) -> Any:
        return None if column is None else column[rows]

    more = Preferences.from_comparisons(
        sides[0].tolist(),
        sides[1].tolist(),
        prefs.queries.take(prefs.query[rows]),
        taken(prefs.weight),
        tie=taken(prefs.tie),
        count=prefs.count[rows],
        cluster=None if prefs.cluster is None else prefs.clusters.take(prefs.cluster[rows]),  # type: ignore[union-attr]
    )
    own = np.flatnonzero(features.item == features.items.codes_of(pa.array([label]))[0])
    labels = np.array(features.items.tolist(), object)[features.item].tolist() + [name] * len(own)
    items, item = Labels.encode(labels)
    query = None if features.query is None else np.concatenate((features.query, features.query[own]))
    X = np.concatenate((features.X, features.X[own]))
    return prefs + more, replace(features, X=X, items=items, item=item, query=query)
