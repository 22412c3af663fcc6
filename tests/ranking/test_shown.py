"""What a ranking shows of itself: HTML, Markdown and pictures say what its rows say, and labels do no harm."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser

import numpy as np
import pytest

import concordant as cc
from concordant.abstention.risk_coverage import RiskCoverage
from concordant.ranking.shown import KINDS, tiers

EVIL = ["<script>alert(1)</script>", "a|b", "*c*\n", "d&amp;"]


def strong():
    """Four items, each of which beats the next by far."""
    pairs = [(0, 1), (1, 2), (2, 3), (1, 0), (2, 1), (3, 2)]
    return cc.Preferences.from_comparisons(
        [EVIL[a] for a, _ in pairs], [EVIL[b] for _, b in pairs], count=[400, 400, 60, 40, 40, 50]
    )


class Cells(HTMLParser):
    """The texts of the cells of all tables, and all tags."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.rows, self.inside = [], [], False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self.inside = True

    def handle_endtag(self, tag):
        self.inside = self.inside and tag not in ("td", "th")

    def handle_data(self, data):
        if self.inside:
            self.rows[-1][-1] += data


@pytest.fixture
def pyplot():
    matplotlib = pytest.importorskip("matplotlib")
    from matplotlib import pyplot

    pyplot.close("all")
    matplotlib.use("Agg")
    yield pyplot
    pyplot.close("all")


def test_html_holds_the_rows_and_escapes_labels():
    board = cc.rank(strong())
    made = Cells(board._repr_html_())
    head, *rows = made.rows
    assert "script" not in made.tags and head[:4] == ["rank", "ranks", "item", "score"]
    assert [row[2] for row in rows] == [one.replace("\n", "\\n") for one in board.to_arrow()["item"].to_pylist()]
    assert [float(row[3]) for row in rows] == pytest.approx(board.score.tolist(), abs=5e-4)
    assert made.tags.count("circle") == 4 and made.tags.count("svg") == 4


def test_drawn_intervals_are_to_scale():
    board = cc.rank(strong())
    text = board._repr_html_()
    ends = np.array(re.findall(r'x1="([\d.]+)" x2="([\d.]+)"', text), float)
    middle = np.array(re.findall(r'cx="([\d.]+)"', text), float)
    slope, start = np.polyfit(board.score, middle, 1)
    assert np.allclose(slope * board.lower + start, ends[:, 0], atol=0.2)
    assert np.allclose(slope * board.upper + start, ends[:, 1], atol=0.2)


def test_tiers_are_those_of_the_rank_sets():
    board = cc.rank(strong())
    assert tiers(board).tolist() == board.rank_sets("tiers")["tier"].to_pylist() == [1, 2, 3, 3]
    assert board._repr_html_().count("border-top:2px") == 2 * 7  # two rules over seven cells
    rng = np.random.default_rng(0)
    for n in range(2, 8):
        first, second = np.triu_indices(n, 1)
        far = rng.random(len(first)) < 0.95
        winner, loser = np.where(far, first, second), np.where(far, second, first)
        some = cc.rank(cc.Preferences.from_comparisons(winner, loser, count=rng.integers(5, 200, len(first))))
        found, rows = tiers(some), some.to_arrow()
        for i in range(len(some)):  # whoever is in a better tier has no rank beyond any of the next
            behind = found > found[i] if found[i] else np.zeros(len(some), bool)
            behind &= some.component == some.component[i]
            assert not behind.any() or some.rank_upper[i] < min(rows["rank"].to_numpy()[behind])


def test_several_queries_say_how_many_more():
    votes = cc.Preferences.from_comparisons(["a"] * 9, ["b"] * 9, list(range(9)))
    text = cc.rank(votes)._repr_html_()
    assert text.count("<table>") == 3 and "… 6 more queries" in text
    long = cc.Preferences.from_comparisons(list(range(99)), list(range(1, 100)))
    assert "… 80 more rows of this query" in cc.rank(long)._repr_html_()


def test_markdown_is_a_table_whatever_the_labels():
    board = cc.rank(strong())
    head, rule, *rest = board.to_markdown().splitlines()
    rows = rest[: len(board)]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in (head, rule, *rows)} == {7}
    assert "\\<script\\>" in rows[0] and "a\\|b" in rows[1] and rest[len(board)] == ""
    assert all(line.startswith("- ") for line in rest[len(board) + 1 :])
    several = cc.rank(cc.Preferences.from_comparisons(["a"] * 5, ["b"] * 5, list("vwxyz")))
    text = several.to_markdown()
    assert text.startswith("| query | rank ") and text.count("\n| z ") == 2
    assert "more rows" in cc.rank(strong()).to_markdown(rows=2)
    with pytest.raises(cc.UsageError, match="rows must be"):
        board.to_markdown(rows=0)


def test_pictures_show_the_numbers(pyplot):
    board = cc.rank(strong())
    axes = board.plot()
    (lines,) = axes.collections[:1]
    drawn = np.array([path.vertices[:, 0] for path in lines.get_paths()])
    assert np.allclose(drawn, np.stack([board.lower, board.upper], axis=1))
    assert len(axes.get_yticklabels()) == 4 and axes.get_title() == "3 tiers"
    mine = pyplot.figure().subplots()
    assert board.plot("tiers", axes=mine) is mine
    assert np.array_equal(mine.lines[0].get_xdata(), [1, 2, 3, 4])
    matrix = board.plot("matrix").images[0].get_array()
    share = np.full((4, 4), np.nan)
    share[0, 1], share[1, 2], share[2, 3] = 400 / 440, 400 / 440, 60 / 110
    share[1, 0], share[2, 1], share[3, 2] = 40 / 440, 40 / 440, 50 / 110
    assert np.allclose(matrix.filled(np.nan), share, equal_nan=True)
    assert len(board.plot("matrix", most=2).images[0].get_array()) == 2


def test_pictures_refuse_in_a_sentence(monkeypatch):
    board = cc.rank(strong(), interval="none")
    for kind in KINDS[:2]:
        with pytest.raises(cc.UsageError, match="needs intervals"):
            board.plot(kind)
    two = cc.rank(cc.Preferences.from_comparisons(["a", "a"], ["b", "b"], ["x", "y"]))
    with pytest.raises(cc.UsageError, match="which query"):
        two.plot()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(cc.ConcordantError, match=r"pip install 'concordant\[figures\]'"):
        cc.rank(strong()).plot()


@pytest.mark.usefixtures("pyplot")
def test_paths_and_curves():
    when = np.arange(60) / 10
    winner = np.where(when < 3, "a", "b")
    paths = cc.rank_over_time(cc.Preferences.from_comparisons(winner, np.where(winner == "a", "b", "a"), time=when))
    axes, table = paths.plot(["b"]), paths.to_arrow().to_pylist()
    (line,) = axes.lines
    assert np.allclose(line.get_ydata(), [row["score"] for row in table if row["item"] == "b"])
    with pytest.raises(cc.UsageError, match="no item 'c'"):
        paths.plot(["c"])
    assert "Paths(2 items" in paths._repr_html_() and len(paths.plot().lines) == 2
    curve = RiskCoverage.of(np.array([1.0, 2.0]), np.ones(2), np.array([0.5, 0.0]), by="distance")
    assert np.array_equal(curve.plot().lines[0].get_ydata(), [0.25, 0.0])
    assert ["75%", f"{curve.at(0.75):.4f}"] in Cells(curve._repr_html_()).rows


def test_what_an_audit_shows():
    found = cc.audit(strong(), replicates=0)
    html, text = found._repr_html_(), found.to_markdown()
    assert all(one.partition(" (")[0].partition(":")[0] in text.replace("\\", "") for one in found.summary)
    assert "<script" not in html and len(Cells(html).rows) == 1 + len(found.overall)
    assert text.count("\n| ") == 1 + len(found.overall)


def test_fragility_and_looks_show_themselves_and_escape_labels():
    votes = cc.Preferences.from_comparisons(["<b>", "c"], ["c", "<b>"], count=[30, 20])
    for found in (cc.fragility(votes), cc.look(votes)):
        text = found._repr_html_()
        assert "&lt;b&gt;" in text and "<b>" not in text
        assert "\\<b\\>" in found.to_markdown()
    many = cc.Preferences.from_comparisons([f"i{x}" for x in range(100)], [f"i{x + 1}" for x in range(100)])
    assert cc.look(many)._repr_html_().count("<tr>") == 61 and "… 41 more items" in cc.look(many)._repr_html_()
    even = cc.Preferences.from_comparisons(["a", "b"], ["b", "a"])
    assert str(cc.fragility(even)) == "Nothing need change the first place of a: b is level with a already."
