"""A tree over judges as one SVG: what divides, by which p-value, and the scores of each group with their intervals."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

import numpy as np

from concordant.ranking.partitioning import Group
from concordant.ranking.trees import RankingTree

WIDTH, GAP, LINE, LABEL = 250, 24, 18, 110
"""Of a group's panel, between two of them, of a line of text or an item, and of the items' names."""
LEVEL = 84
"""From one division to the next."""
INK, SOFT, FILL, BLUE = "#1d1d1f", "#6e6e73", "#f5f5f7", "#0b63ce"


def tree_picture(tree: RankingTree, items: int = 10) -> str:
    """Return the tree as the text of an SVG file.

    Each group that is not divided is a panel with the items that rank first over all judgments, ``items`` at most, in
    that order everywhere: points are the group's scores, lines their intervals, one scale for all; hollow points stand
    apart without a rank.

    >>> import concordant as cc
    >>> votes = cc.Preferences.from_comparisons(["a", "b"] * 20, ["b", "a"] * 20, cluster=[1, 1, 2, 2] * 10)
    >>> cc.tree_picture(cc.ranking_tree(votes)).startswith("<svg")
    True
    """
    whole = tree.ranking(1)
    shown = whole.items.take(whole.item[whole.rank > 0][:items]).to_pylist()
    panels = {leaf.number: _scores(tree, leaf, shown) for leaf in tree.leaves}
    ends = np.array([[row["lower"], row["upper"], row["score"]] for panel in panels.values() for row in panel.values()])
    ends = ends[np.isfinite(ends)]
    low, high = (float(ends.min()), float(ends.max())) if len(ends) else (0.0, 1.0)
    places, depth = _places(tree)
    top = 28 + LEVEL * max(depth.values())
    width = len(panels) * (WIDTH + GAP) + GAP
    height = top + 3 * LINE + LINE * (len(shown) + 1) + GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height:g}" viewBox="0 0 {width} {height:g}" '
        'font-family="system-ui, sans-serif" font-size="12" role="img">',
        f"<title>{_text(str(tree.lines()[0]))}</title>",
        f'<rect width="{width}" height="{height:g}" fill="white"/>',
    ]
    for group in tree.groups:
        x, y = places[group.number], 28 + LEVEL * depth[group.number]
        if group.parent is not None:
            above = places[group.parent], 28 + LEVEL * depth[group.parent] + 16
            end = y - 16 if group.divided_by else top - 6
            parts.append(f'<path d="M{above[0]:g} {above[1]:g}L{x:g} {end:g}" stroke="{SOFT}" fill="none"/>')
            parts.append(_label(x, end - 8, _of_division(tree, group), 36, halo=True))
    for group in tree.groups:
        x, y = places[group.number], 28 + LEVEL * depth[group.number]
        if group.divided_by:
            p = next(test.p_adjusted for test in group.tests if test.property == group.divided_by)
            said = f"{group.divided_by} (p {'< 0.001' if p < 0.001 else f'= {p:.2g}'})"
            parts.append(
                f'<rect x="{x - 85:g}" y="{y - 16:g}" width="170" height="32" rx="8" fill="{FILL}" stroke="{SOFT}"/>'
            )
            parts.append(_label(x, y + 4, said, 28, weight=600))
        else:
            parts += _panel(group, panels[group.number], shown, x - WIDTH / 2, top, low, high)
    return "\n".join([*parts, "</svg>\n"])


def _scores(tree: RankingTree, group: Group, shown: list[Any]) -> dict[Any, dict[str, Any]]:
    rows = tree.ranking(group.number).to_arrow().to_pylist()
    return {row["item"]: row for row in rows if row["item"] in set(shown)}


def _places(tree: RankingTree) -> tuple[dict[int, float], dict[int, int]]:
    """The middle of each group, leaves side by side, and how many divisions lie above it."""
    middle = {leaf.number: GAP + WIDTH / 2 + at * (WIDTH + GAP) for at, leaf in enumerate(tree.leaves)}
    depth = {group.number: 0 for group in tree.groups}
    for group in tree.groups:
        depth[group.number] = 0 if group.parent is None else depth[group.parent] + 1
    for group in reversed(tree.groups):
        if group.divided_by:
            below = [middle[other.number] for other in tree.groups if other.parent == group.number]
            middle[group.number] = sum(below) / len(below)
    return middle, depth


def _of_division(tree: RankingTree, group: Group) -> str:
    """What distinguishes a group from the one that it was divided off, in words."""
    parent = next(other for other in tree.groups if other.number == group.parent)
    return str(group.values[parent.divided_by]) if parent.divided_by else ""


def _panel(
    group: Group, rows: dict[Any, dict[str, Any]], shown: list[Any], x: float, y: float, low: float, high: float
) -> Iterator[str]:
    span = (high - low) or 1.0

    def at(score: float) -> float:
        return x + LABEL + (WIDTH - LABEL - 14) * (min(max(score, low), high) - low) / span

    many = "".join(f", {number:,} × {name}" for name, number in group.clusters.items())
    tall = LINE * len(shown) + 12
    yield _label(x + WIDTH / 2, y + 10, f"group {group.number}", 40, weight=600)
    yield _label(x + WIDTH / 2, y + 10 + LINE, f"{group.judgments:,} judgments{many}", 42, SOFT)
    head = y + 14 + LINE
    yield f'<rect x="{x:g}" y="{head:g}" width="{WIDTH}" height="{tall:g}" fill="{FILL}"/>'
    yield f'<path d="M{at(0):g} {head:g}v{tall:g}" stroke="#c7c7cc" stroke-dasharray="2 3"/>'
    for place, item in enumerate(shown):
        middle = head + 6 + LINE * (place + 0.5)
        yield _label(x + LABEL - 8, middle + 4, str(item), 16, anchor="end")
        row = rows.get(item)
        if row is None:
            yield _label(x + LABEL + 4, middle + 4, "not judged", 20, SOFT, anchor="start")
            continue
        ends = [row["lower"], row["upper"]]
        if not any(end is None or np.isnan(end) for end in ends):
            reach = f"M{at(ends[0]):g} {middle:g}H{at(ends[1]):g}"
            yield f'<path d="{reach}" stroke="{BLUE}" stroke-opacity=".5" stroke-width="2"/>'
        fill = BLUE if row["rank"] is not None else "white"
        said = f"{item}: score {row['score']:.2f}, rank {row['rank'] or 'open'}"
        yield (
            f'<circle cx="{at(row["score"]):g}" cy="{middle:g}" r="4" fill="{fill}" stroke="{BLUE}">'
            f"<title>{_text(said)}</title></circle>"
        )


def _label(
    x: float,
    y: float,
    text: str,
    most: int,
    ink: str = INK,
    *,
    anchor: str = "middle",
    weight: int = 400,
    halo: bool = False,
) -> str:
    short = text if len(text) <= most else f"{text[: most - 1]}…"
    full = f"<title>{_text(text)}</title>" if short != text else ""
    how = f'text-anchor="{anchor}" font-weight="{weight}" fill="{ink}"'
    how += ' stroke="white" stroke-width="5" paint-order="stroke"' * halo
    return f'<text x="{x:g}" y="{y:g}" {how}>{full}{_text(short)}</text>'


def _text(text: str) -> str:
    """A text of labels as XML may hold it."""
    return escape("".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text))
