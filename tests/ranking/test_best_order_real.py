"""Kemeny orders of PrefLib's sets: the least distances that corankco's integer program finds."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import pytest

import concordant as cc
from concordant.ranking.kemeny import optimal_order

EXPECTED = json.loads((Path(__file__).parents[1] / "data" / "kemeny_golden.json").read_text())


def distance(path: Path, rank: dict[str, int]) -> int:
    """Pairs that voters rank otherwise, voter by voter, from the text of the file."""
    text = path.read_text(encoding="utf-8")
    name = dict(re.findall(r"^# ALTERNATIVE NAME (\d+): (.*)$", text, re.MULTILINE))
    total = 0
    for count, order in re.findall(r"^(\d+): *([\d, ]+)$", text, re.MULTILINE):
        places = [rank[name[item.strip()].strip()] for item in order.split(",")]
        total += int(count) * sum(a > b for a, b in combinations(places, 2))
    return total


@pytest.mark.parametrize("name", EXPECTED)
def test_kemeny_orders(shared_data: Callable[[str], Path], name: str) -> None:
    path = shared_data(f"preflib/{name}")
    prefs = cc.read(path)
    best = optimal_order(prefs, exact=True)
    assert best.exact.all() and len(best) == len(prefs.items)
    votes = int(best.judgments[0])
    assert best.loss[0] * votes == pytest.approx(EXPECTED[name], rel=1e-9)
    table = best.to_arrow()
    rank = dict(zip(table["item"].to_pylist(), table["rank"].to_pylist(), strict=True))
    assert distance(path, rank) == EXPECTED[name]
    quick = optimal_order(prefs)
    assert quick.lower[0] <= best.loss[0] + 1e-12 <= quick.loss[0] + 2e-12


def test_orders_with_ties(shared_data: Callable[[str], Path]) -> None:
    """A tie of a voter costs ½ whatever the order is: 30 skaters, nine judges."""
    path = shared_data("preflib/00006_skate/00006-00000001.toc")
    prefs = cc.read(path)
    best = optimal_order(prefs, exact=True)
    table = best.to_pandas()
    assert best.exact.all() and table["rank"].tolist() == list(range(1, 31))
    text = path.read_text(encoding="utf-8")
    name = dict(re.findall(r"^# ALTERNATIVE NAME (\d+): (.*)$", text, re.MULTILINE))
    rank = dict(zip(table["item"], table["rank"], strict=True))
    total = 0.0
    for count, order in re.findall(r"^(\d+): *([\d, {}]+)$", text, re.MULTILINE):
        tiers = [re.findall(r"\d+", tier) for tier in re.findall(r"\{[^}]*\}|\d+", order)]
        pairs = combinations(
            [(rank[name[item].strip()], tier) for tier, items in enumerate(tiers) for item in items], 2
        )
        total += int(count) * sum(0.5 if a[1] == b[1] else a[0] > b[0] for a, b in pairs)
    assert best.loss[0] * best.judgments[0] == pytest.approx(total)
