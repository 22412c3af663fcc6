"""What a notebook and a page of Markdown show of a ranking: a table, the notes, pictures by Matplotlib."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from concordant.errors import Setting, Unavailable, UsageError, did_you_mean, whole_number
from concordant.preferences.counts import rows_alike
from concordant.preferences.graphs import Batch
from concordant.preferences.notes import Note
from concordant.preferences.status import Status
from concordant.ranking.flags import FLAGS, flag_said, parted
from concordant.ranking.lack_of_fit import rejected
from concordant.ranking.structures import structure
from concordant.ranking.summary import term_of

if TYPE_CHECKING:
    from concordant.ranking.rank import Ranking

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LINES, FEW = 60, 20
"""Rows that are shown at most, and of each of several queries."""
WIDTH, HEIGHT, MARGIN = 160, 14, 8
"""Of a drawn interval, in pixels."""
LEFT = ("query", "item", "flag", "loss", "judged by")
"""Columns of words."""
KINDS = ("intervals", "tiers", "matrix")
ANNOTATED = 15
"""Items up to which each cell of a matrix says its number."""


# -- words -------------------------------------------------------------------------------------------------------------
def remarks(board: Ranking) -> list[str]:
    """What a reader should know before trusting the table."""
    notes, of = [*_right(board), *board.notes], len(board.queries)
    kind = None if board.judged is None else board.judged.prefs.kind
    if stopped := int((board.status["status"] == Status.STOPPED).sum()):
        text = "{queries:,} of {of:queries} stopped before convergence"
        notes.append(Note("queries stopped", text, queries=stopped, of=of))
    if split := len(np.unique(board.query[(board.component > 1) & (board.rank > 0)])):
        text = (
            "{of:the items fall|in {queries:queries} the items fall} into groups {parted}: ranks restart in each "
            "(column component)"
        )
        notes.append(Note("components", text, queries=split, of=of, parted=parted(kind)))
    notes += _provisional(board)
    for flag in FLAGS:
        codes = board.item[board.flag & flag.code > 0]
        if len(codes) and (flag.needs_prior or structure(board.structure).reads != "exposures"):  # it has said so
            items = [board.items[i] for i in dict.fromkeys(codes[:5].tolist())]
            words = flag_said(flag, len(codes), structure(board.structure).unlimited)
            shown = ", ".join([*map(str, items), *["…"] * (len(codes) > 5)])
            notes.append(Note(flag.label, words + " ({shown})", items=items, rows=len(codes), shown=shown))
            clicks = flag.label == "never compared" and kind in (None, "selections", "choices")
            if clicks and len(codes) == len(board.item) and board.judgments.any():
                text = "no judgment compares two items; of clicks {structure} reads items that were shown alone, too"
                notes.append(Note("nothing compared", text, structure=Setting("structure", "position-based")))
    if of == 1:
        for name, value in board.coefficients.items():
            if not name.startswith("s.e."):
                error = board.coefficients.get(f"s.e. of {name}", [math.nan])[0]
                text = "coefficient {term}: {value:.4g}" + (" ± {error:.3g}" if np.isfinite(error) else "")
                notes.append(
                    Note("coefficient", text, term=term_of(name), name=name, value=float(value[0]), error=float(error))
                )
    return notes


def _provisional(board: Ranking) -> list[Note]:
    """Which items stand apart, by why they do."""
    least = 0 if board.judged is None else board.judged.least
    few = board.provisional & ((board.judgments < least) | (board.flag == 0))
    notes = []
    for chosen, name, why in (
        (few, "few judgments", "with fewer than {least:judgments}" if least else "with few judgments"),
        (board.provisional & ~few, "undecided", "to which the judgments leave more than half of the places"),
    ):
        codes = board.item[chosen]
        if len(codes):
            items = [board.items[i] for i in dict.fromkeys(codes[:5].tolist())]
            shown = ", ".join([*map(str, items), *["…"] * (len(codes) > 5)])
            text = "{rows:items} " + why + " {rows:stands|stand} apart after the ranking ({shown})"
            notes.append(Note(name, text, items=items, rows=len(codes), shown=shown, least=least))
    return notes


def _right(board: Ranking) -> list[Note]:
    """What the scores are right for, and whether anything speaks against it; nothing where a test does."""
    where = structure(board.structure).right
    if not where or (board.lack_of_fit is not None and rejected(board.lack_of_fit)):
        return []
    tested = np.zeros(0) if board.lack_of_fit is None else board.lack_of_fit[~np.isnan(board.lack_of_fit)]
    text = "the scores are right where {where}"
    if board.contradicted is not None and len(board.contradicted):
        if len(tested) == 1:
            text += " (lack of fit: p = {p:.2g})"
    elif len(tested) == 1:
        text += "; nothing speaks against it (lack of fit: p = {p:.2g})"
    elif len(tested):
        text += "; nothing speaks against it (lack of fit tested in {tested:queries})"
    elif board.lack_of_fit is not None or structure(board.structure).expects:
        text += "; that was not tested"
    return [Note("right where", text, where=where, p=float(tested[0]) if len(tested) else None, tested=len(tested))]


# -- tables ------------------------------------------------------------------------------------------------------------
def portions(
    board: Ranking, asked: int | None = None, queries: int | None = None
) -> tuple[list[tuple[int, int, int]], int]:
    """Return the rows to show, (begin, last, end of the query) of each query shown, and how many queries are left out.

    A query has ``asked`` rows, without it all of up to 60, and 20 where it has more or is one of several; ``queries``
    are shown, without it as many as make 60 rows.
    """
    begin = np.flatnonzero(np.diff(board.query, prepend=-1)) if len(board) else np.zeros(0, int)
    ends = np.append(begin[1:], len(board))
    rows = asked or (LINES if len(board) <= LINES and len(begin) == 1 else FEW)
    shown = list(zip(begin.tolist(), ends.tolist()))[: queries or max(1, LINES // rows)]
    return [(start, min(end, start + rows), end) for start, end in shown], len(begin) - len(shown)


def heading(board: Ranking, start: int, end: int) -> list[str]:
    """Names of the columns that say something of these rows."""
    names = ["component"] if bool(((board.component > 1) & (board.rank > 0)).any()) else []
    names += ["rank", *(["ranks"] if board.interval != "none" else []), "item", "score"]
    names += [f"{100 * board.level:g}% interval", "judgments"]
    return names + (["flag"] if board.flag[start:end].any() else [])


def cells(board: Ranking, names: Sequence[str], start: int, end: int) -> Iterator[list[str]]:
    """The texts of some rows under ``heading``'s names; labels as they are."""
    for row in board.to_arrow().slice(start, end - start).to_pylist():
        said = {
            "component": str(row["component"]),
            "rank": "–" if row["rank"] is None else str(row["rank"]),
            "ranks": "–" if row["rank_lower"] is None else f"{row['rank_lower']}–{row['rank_upper']}",
            "item": str(row["item"]),
            "score": f"{row['score']:.3f}",
            "judgments": f"{row['judgments']:,}",
            "flag": row["flag"],
        }
        yield [said[name] if name in said else _interval(row["lower"], row["upper"]) for name in names]


def _interval(low: float, high: float) -> str:
    if math.isnan(low):
        return "–"
    return " … ".join("−∞" if x == -math.inf else "∞" if x == math.inf else f"{x:.2f}" for x in (low, high))


def tiers(board: Ranking) -> Ints:
    """Number of the tier of each row: of two items in different tiers the one in the better tier is better.

    A tier ends after k items of which none has a rank beyond k. So all of it holds at once, as the ranks do. 0 for a
    row without a range of ranks.
    """
    out = np.zeros(len(board), np.int64)
    ranked = np.flatnonzero(board.rank_upper > 0)
    if not len(ranked):
        return out
    query, component = board.query[ranked], board.component[ranked]
    begin = rows_alike(query, component)[0]
    group = component if (board.rank[ranked][begin] == 1).all() else np.zeros_like(component)  # ranked across them
    owner = rows_alike(query, group)[1]
    for number in range(int(owner.max()) + 1):
        rows = ranked[owner == number]
        cut = np.maximum.accumulate(board.rank_upper[rows])[:-1] <= np.arange(1, len(rows))
        out[rows] = 1 + np.concatenate([[0], np.cumsum(cut)])
    return out


def printable(text: str) -> str:
    """A label on one line, control characters escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def in_markdown(text: str) -> str:
    r"""Return a text that Markdown shows as it is, in a cell of a table.

    >>> print(in_markdown("a|b <i>*c*</i>"))
    a\|b \<i\>\*c\*\</i\>
    """
    return re.sub(r"([\\`*_\[\]<>|~$&])", r"\\\1", printable(text))


def markdown_rows(names: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[str] = ()) -> Iterator[str]:
    """Lines of a table of Markdown; the columns ``right`` are aligned there. Cells are escaped, names are not."""
    aligned = set(right)
    yield f"| {' | '.join(names)} |"
    yield f"|{'|'.join('---:' if name in aligned else '---' for name in names)}|"
    yield from markdown_lines(rows)


def markdown_lines(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Rows of a table of Markdown without its head."""
    for row in rows:
        yield f"| {' | '.join(map(in_markdown, row))} |"


def html_table(names: Sequence[str], rows: Iterable[Sequence[str]], rules: Iterable[int] = ()) -> str:
    """Return a table; cells that begin with ``<svg`` are pictures, all others are escaped. A rule above some rows."""
    ruled = set(rules)
    head = "".join(f'<th style="padding:2px 8px;text-align:{_side(name)}">{html.escape(name)}</th>' for name in names)
    body = []
    for number, row in enumerate(rows):
        line = "border-top:2px solid #888;" if number in ruled else ""
        made = "".join(
            f'<td style="padding:2px 8px;{line}text-align:{_side(name)}">'
            f"{cell if cell.startswith('<svg ') else html.escape(printable(cell))}</td>"
            for name, cell in zip(names, row, strict=True)
        )
        body.append(f"<tr>{made}</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def _side(name: str) -> str:
    return "left" if name in LEFT else "right"


def html_lines(lines: Iterable[str]) -> str:
    """Return sentences as a list, each a line; nothing for none."""
    made = "".join(f"<li>{html.escape(printable(line))}</li>" for line in lines)
    return f"<ul>{made}</ul>" if made else ""


def html_words(text: str) -> str:
    """Return a sentence on its own line."""
    return f"<div>{html.escape(printable(text))}</div>"


def as_html(board: Ranking) -> str:
    """The first rows, as on a terminal, with the intervals drawn, a rule between tiers, and the notes."""
    shown, more = portions(board)
    tier, made = tiers(board), []
    for start, last, end in shown:
        if len(board.queries) > 1:
            made.append(f"<b>{html.escape(printable(f'query {board.queries[board.query[start]]}'))}</b>")
        names = heading(board, start, end)
        at = names.index("score") + 1
        drawn = _drawn(board, start, last)
        rows = ([*row[:at], picture, *row[at:]] for row, picture in zip(cells(board, names, start, last), drawn))
        rules = [i for i in range(1, last - start) if tier[start + i] > tier[start + i - 1] > 0]
        columns = [*names[:at], "", *names[at:]] if drawn else names
        made.append(html_table(columns, rows if drawn else cells(board, names, start, last), rules))
        if rules:
            words = (
                f"Between two lines the data cannot say who is better; across a line they can, at {board.level:.0%}."
            )
            made.append(html_words(words))
        if last < end:
            made.append(html_words(f"… {end - last:,} more rows of this query"))
    if more:
        made.append(html_words(f"… {more:,} more queries"))
    return f"<div>{''.join(made)}{html_lines(remarks(board))}</div>"


def _drawn(board: Ranking, start: int, last: int) -> list[str]:
    """Each interval as a line with a dot at the score, all on one scale; none where there are none."""
    low, high, score = (column[start:last] for column in (board.lower, board.upper, board.score))
    ends = np.concatenate([low, high, score])
    ends = ends[np.isfinite(ends)]
    if np.isnan(low).all() or not len(ends) or ends.min() == ends.max():
        return []

    def place(value: float) -> float:
        inside = min(max(value, float(ends.min())), float(ends.max()))
        return round(MARGIN + (WIDTH - 2 * MARGIN) * (inside - float(ends.min())) / float(np.ptp(ends)), 1)

    made, y = [], HEIGHT / 2
    for one, other, middle in zip(low.tolist(), high.tolist(), score.tolist()):
        lines = f'<svg width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="{_interval(one, other)}">'
        if not math.isnan(one):
            left, right = (0 if one == -math.inf else place(one)), (WIDTH if other == math.inf else place(other))
            lines += f'<line x1="{left}" x2="{right}" y1="{y}" y2="{y}" stroke="currentColor" stroke-width="2"/>'
        if math.isfinite(middle):
            lines += f'<circle cx="{place(middle)}" cy="{y}" r="4" fill="#1f77b4"/>'
        made.append(lines + "</svg>")
    return made


def as_markdown(board: Ranking, rows: int | None = None, said: Callable[[str], str] = str) -> str:
    """What ``Ranking.to_markdown`` returns, each note as ``said`` has it."""
    if rows is None:
        shown, more = portions(board, max(len(board), 1), max(len(board.queries), 1))
    else:
        shown, more = portions(board, whole_number(rows, "rows"))
    names = heading(board, 0, len(board))
    several = ["query"] if len(board.queries) > 1 else []

    def made() -> Iterator[list[str]]:
        for start, last, _ in shown:
            label = [str(board.queries[board.query[start]])] if several else []
            for row in cells(board, names, start, last):
                yield label + row

    heads = several + names
    lines = list(markdown_rows(heads, made(), [name for name in heads if name not in LEFT]))
    left = sum(end - last for _, last, end in shown)
    lines += (
        [""] * bool(left or more) + [f"… {left:,} more rows"] * bool(left) + [f"… {more:,} more queries"] * bool(more)
    )
    notes = [f"- {in_markdown(said(note))}" for note in remarks(board)]
    return "\n".join([*lines, *([""] if notes else []), *notes, ""])


# -- pictures ----------------------------------------------------------------------------------------------------------
def canvas(axes: Any, width: float, height: float, *, shown: bool = True) -> Any:
    """Return the axes that were given, or those of a new figure, which a notebook shows unless it is for a file.

    Error (Unavailable): Matplotlib is not installed.
    """
    if axes is not None:
        return axes
    try:
        from matplotlib import figure, pyplot
    except ImportError:
        raise Unavailable("figures need Matplotlib: pip install 'concordant[figures]'") from None
    made = (pyplot.figure if shown else figure.Figure)(figsize=(width, height), layout="constrained")
    return made.subplots()


def drawn(board: Ranking, kind: str, query: int, most: int, axes: Any) -> Any:
    """What ``Ranking.plot`` draws of the query of this code."""
    if kind not in KINDS:
        raise UsageError(f"unknown kind of picture {kind!r}; {did_you_mean(str(kind), KINDS)}")
    if board.interval == "none" and kind != "matrix":
        raise UsageError(f"the picture of {kind} needs intervals: rank with them, or draw the matrix")
    every = np.flatnonzero(board.query == query)
    rows = every[: whole_number(most, "most")]
    labels = [printable(str(label))[:40] for label in board.items.take(board.item[rows]).to_pylist()]
    tall = max(2.0, 0.9 + 0.24 * len(rows))
    axes = canvas(axes, max(4.8, tall + 1) if kind == "matrix" else 6.4, max(4.4, tall) if kind == "matrix" else tall)
    left = f", the first {len(rows):,} of {len(every):,}" if len(rows) < len(every) else ""
    if kind == "matrix":
        _matrix(board, query, rows, labels, left, axes)
    else:
        _ranges(board, kind, rows, labels, left, axes)
    return axes


def _ranges(board: Ranking, kind: str, rows: Ints, labels: list[str], left: str, axes: Any) -> None:
    """Scores with their intervals, or ranks with theirs; a band of colour for each second tier."""
    y, tier = np.arange(len(rows)), tiers(board)[rows]
    by_rank = kind == "tiers"
    middle = board.rank[rows].astype(float) if by_rank else board.score[rows]
    low, high = (
        column[rows].astype(float)
        for column in ((board.rank_lower, board.rank_upper) if by_rank else (board.lower, board.upper))
    )
    known = (board.rank_upper[rows] > 0) if by_rank else ~np.isnan(low)
    ends = np.concatenate([low[known], high[known], middle[known]])
    ends = ends[np.isfinite(ends)]
    reach = 0.04 * (float(np.ptp(ends)) or 1.0) if len(ends) else 1.0
    begin, end = (float(ends.min()) - reach, float(ends.max()) + reach) if len(ends) else (0.0, 1.0)
    low, high = np.where(low == -np.inf, begin, low), np.where(high == np.inf, end, high)
    axes.hlines(y[known], low[known], high[known], color="#7f7f7f", linewidth=3 if by_rank else 1.5)
    seen = np.isfinite(middle) & (known | (not by_rank))
    axes.plot(middle[seen], y[seen], "o", color="#1f77b4", markersize=5)
    for number in range(2, int(tier.max(initial=0)) + 1, 2):
        here = y[tier == number]
        if len(here):
            axes.axhspan(here.min() - 0.5, here.max() + 0.5, color="#1f77b4", alpha=0.08, linewidth=0)
    axes.set(yticks=y, yticklabels=labels, ylim=(len(rows) - 0.5, -0.5), xlim=(begin, end))
    axes.set_xlabel(f"{'rank' if by_rank else 'score'} and what the data leave open, {board.level:.0%}")
    many = f"{int(tier.max(initial=0))} tiers" if tier.max(initial=0) > 1 else "no clean cut into tiers"
    axes.set_title((many if tier.any() else board.structure) + left)


def _matrix(board: Ranking, query: int, rows: Ints, labels: list[str], left: str, axes: Any) -> None:
    share, total = won(board, query, rows)
    axes.imshow(np.ma.masked_invalid(share), cmap="RdBu", vmin=0, vmax=1)
    axes.set_facecolor("#eeeeee")
    if len(rows) <= ANNOTATED:
        for i, j in zip(*np.nonzero(total)):
            dark = abs(share[i, j] - 0.5) > 0.3
            axes.text(j, i, f"{share[i, j]:.0%}", ha="center", va="center", fontsize=7, color="w" if dark else "k")
    at = np.arange(len(rows))
    axes.set(xticks=at, yticks=at, xticklabels=labels, yticklabels=labels)
    axes.tick_params(axis="x", rotation=90)
    axes.set_title(f"share of votes for the row against the column{left}")


def won(board: Ranking, query: int, rows: Ints) -> tuple[Floats, Floats]:
    """Share of the votes between two items that the first won, ties half (NaN: none), and how many there were."""
    batch = Batch.whole(board._fitted.prefs, np.array([query]))
    graphs, size = batch.graphs, len(batch.item)
    wins = np.zeros((size, size))
    np.add.at(wins, (graphs.first, graphs.second), graphs.above)
    np.add.at(wins, (graphs.second, graphs.first), graphs.below)
    node = np.searchsorted(batch.item, board.item[rows])
    wins = wins[np.ix_(node, node)]
    total = wins + wins.T
    return np.divide(wins, total, out=np.full_like(wins, np.nan), where=total > 0), total


def drawn_paths(table: Mapping[str, Any], wanted: Sequence[Any], level: float, axes: Any) -> Any:
    """Each wanted item's scores over time as a line with the band of its interval; columns as of ``Paths.to_arrow``."""
    axes = canvas(axes, 7.2, 4.2)
    items = np.array(table["item"], dtype=object)
    for label in wanted:
        mine = np.flatnonzero(items == label)
        time, score, lower, upper = (np.asarray(table[name])[mine] for name in ("time", "score", "lower", "upper"))
        (line,) = axes.plot(time, score, marker=".", markersize=3, label=printable(str(label))[:40])
        axes.fill_between(time, lower, upper, color=line.get_color(), alpha=0.15, linewidth=0)
    axes.set(xlabel="time", ylabel=f"score, with its interval at {level:.0%}")
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return axes


class Shown:
    """The part of a ``Ranking`` that people look at."""

    def _repr_html_(self) -> str:
        return as_html(cast("Ranking", self))

    def to_markdown(self, rows: int | None = None) -> str:
        r"""Return the ranking as a table of Markdown with its notes below; several queries under one another.

        ``rows``: so many of each query, and the first queries only; not given: all.

        >>> import concordant as cc
        >>> board = cc.rank(cc.Preferences.from_comparisons(["a", "a", "b"], ["b", "b", "a"]))
        >>> print(board.to_markdown().splitlines()[2])
        | 1 | 1–2 | a | 0.344 | -1.13 … 2.39 | 3 |
        """
        return as_markdown(cast("Ranking", self), rows)

    def plot(self, kind: str = "intervals", *, query: Any = None, most: int = 40, axes: Any = None) -> Any:
        """Draw the ranking by Matplotlib (the extra ``figures``) and return the axes.

        Parameters
        ----------
        kind : 'intervals', scores with their intervals; 'tiers', ranks with what is open of them; in both a band of
            colour marks every second tier. 'matrix': the share of votes that each item won against each other.
        query : its label, where there are several.
        most : items, the best ones.
        axes : where to draw; not given: a new figure.

        Errors: Unavailable without Matplotlib; UsageError for another kind, an unknown query, no intervals.

        >>> import concordant as cc
        >>> cc.rank(cc.Preferences.from_comparisons(["a", "b"], ["b", "a"])).plot("hexagons")
        Traceback (most recent call last):
        concordant.errors.UsageError: unknown kind of picture 'hexagons'; Known: intervals, matrix, tiers.
        """
        board = cast("Ranking", self)
        return drawn(board, kind, board._code_of(query), most, axes)
