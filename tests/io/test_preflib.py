"""PrefLib files: read as their text says, and refused where header and body disagree."""

from __future__ import annotations

import gzip
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from concordant import Preferences
from concordant.errors import Idle, InputError, UsageError
from concordant.io.read import read, read_log
from concordant.preferences.preferences import Lists
from conftest import shared_data
from seeds import seed

SOI = """# FILE NAME: x.soi
# TITLE: Three courses
# DATA TYPE: soi
# NUMBER ALTERNATIVES: 3
# NUMBER VOTERS: 6
# NUMBER UNIQUE ORDERS: 3
# ALTERNATIVE NAME 1: Tea: green
# ALTERNATIVE NAME 2: O'Brien "Jr."
# ALTERNATIVE NAME 3: Third
3: 2,1
2: 1
1: 1, 2
"""
TOC = """# DATA TYPE: toc
# NUMBER ALTERNATIVES: 4
# NUMBER VOTERS: 5
# NUMBER UNIQUE ORDERS: 2
# ALTERNATIVE NAME 1: a
# ALTERNATIVE NAME 2: b
# ALTERNATIVE NAME 3: c
# ALTERNATIVE NAME 4: d
3: 2,{1,3},4
2: {4,1},{2,3}
"""


def save(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def tiers(prefs: Preferences) -> Counter[tuple[frozenset[str], ...]]:
    """The orders as a plain multiset of tuples of tiers."""
    found: Counter[tuple[frozenset[str], ...]] = Counter()
    for j in range(prefs.distinct):
        at = slice(prefs.list_start[j], prefs.list_start[j + 1])
        order: dict[float, set[str]] = {}
        for item, value in zip(prefs.list_item[at], prefs.list_value[at], strict=True):
            order.setdefault(float(value), set()).add(prefs.items[item])
        assert sorted(order) == list(range(1, len(order) + 1))
        found[tuple(frozenset(order[rank]) for rank in sorted(order))] += int(prefs.count[j])
    return found


def one(*names: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset([name]) for name in names)


def test_strict_orders(tmp_path: Path) -> None:
    reading = read_log(save(tmp_path, "x.soi", SOI))
    green, obrien = "Tea: green", 'O\'Brien "Jr."'
    assert tiers(reading.preferences) == {one(obrien, green): 3, one(green): 2, one(green, obrien): 1}
    assert reading.rows == len(reading.preferences) == 6
    assert [reading.preferences.items[i] for _, i in reading.preferences.declared] == ["Third"]


def test_orders_with_ties(tmp_path: Path) -> None:
    found = tiers(read(save(tmp_path, "x.toc", TOC)))
    a, b, c, d = "abcd"
    assert found == {(frozenset([b]), frozenset([a, c]), frozenset([d])): 3, (frozenset([a, d]), frozenset([b, c])): 2}


def test_gzip_and_mark(tmp_path: Path) -> None:
    plain = read(save(tmp_path, "x.soi", SOI))
    (tmp_path / "x.soi.gz").write_bytes(gzip.compress(SOI.encode()))
    assert read(tmp_path / "x.soi.gz") == plain
    (tmp_path / "y.soi").write_bytes(b"\xef\xbb\xbf" + SOI.replace("\n", "\r\n").encode())
    assert read(tmp_path / "y.soi") == plain


DISAGREE = {
    "alternatives": (("ALTERNATIVES: 3", "ALTERNATIVES: 4"), "the header says NUMBER ALTERNATIVES 4, the file holds 3"),
    "voters": (("VOTERS: 6", "VOTERS: 7"), "the header says NUMBER VOTERS 7, the file holds 6"),
    "orders": (("ORDERS: 3", "ORDERS: 2"), "the header says NUMBER UNIQUE ORDERS 2, the file holds 3"),
    "an order twice": (("1: 1, 2\n", "1: 2,1\n"), "the header says NUMBER UNIQUE ORDERS 3, the file holds 2"),
    "data type": (("TYPE: soi", "TYPE: soc"), "the header says DATA TYPE soc, the ending says soi"),
    "unknown alternative": (("2: 1\n", "2: 4\n"), "line 11: alternative 4 is not in the header, which names 3"),
    "an alternative twice": (("1: 1, 2", "1: 1,2,1"), "line 12 ranks alternative 1 twice"),
    "a tie": (("3: 2,1", "3: {2,1}"), "line 10 holds a tie, but a .soi file holds strict orders, incomplete"),
    "no number": (("3: 2,1", "3: 2,x"), "line 10: 'x' is not the number of an alternative"),
    "an empty place": (("3: 2,1", "3: 2,,1"), "line 10: '' is not the number of an alternative"),
    "no count": (("3: 2,1", "x: 2,1"), "line 10 is not of the form 'count: order'"),
    "a negative count": (("3: 2,1", "-3: 2,1"), "line 10 is not of the form 'count: order'"),
    "no voters": (("3: 2,1", "0: 2,1"), "line 10 counts 0 voters"),
    "no order": (("3: 2,1", "3:"), "line 10 is not of the form 'count: order'"),
    "open braces": (("3: 2,1", "3: {2,1"), "line 10: cannot read '{2,1' as alternatives"),
    "no name": (("NAME 3: Third", "NAME 3:"), "line 9: alternative 3 has no name"),
    "a number named twice": (("NAME 3: Third", "NAME 2: Third"), "line 9: alternative 2 is named twice"),
    "a name twice": (("NAME 3: Third", "NAME 3: Tea: green"), "alternatives share a name: 'Tea: green'"),
    "a null byte": (("NAME 3: Third", "NAME 3: Thi\0rd"), "line 9: the name of alternative 3 holds a null byte"),
    "no number of voters": (("# NUMBER VOTERS: 6\n", ""), "the header has no NUMBER VOTERS"),
}


@pytest.mark.parametrize("name", DISAGREE)
def test_header_and_body_disagree(tmp_path: Path, name: str) -> None:
    (old, new), says = DISAGREE[name]
    assert SOI.count(old) == 1
    with pytest.raises(InputError, match=re.escape(f"x.soi: {says}")):
        read(save(tmp_path, "x.soi", SOI.replace(old, new)))


def test_complete_orders_hold_all_alternatives(tmp_path: Path) -> None:
    text = SOI.replace("TYPE: soi", "TYPE: soc")
    with pytest.raises(InputError, match=r"x.soc: line 10 ranks 2 of 3 alternatives, but a .soc file holds"):
        read(save(tmp_path, "x.soc", text))
    with pytest.raises(InputError, match=r"x.toc: line 9 ranks 3 of 4 alternatives"):
        read(save(tmp_path, "x.toc", TOC.replace("3: 2,{1,3},4", "3: 2,{1,3}")))


def test_not_preflib_at_all(tmp_path: Path) -> None:
    for text, says in (
        ("winner,loser\n", "not of the form"),
        ("\n", "no PrefLib header"),
        ("# x\n", "no PrefLib header"),
    ):
        with pytest.raises(InputError, match=says):
            read(save(tmp_path, "x.soi", text))
    with pytest.raises(InputError, match="there is a header but no orders"):
        read(save(tmp_path, "x.soi", "".join(line + "\n" for line in SOI.splitlines() if line[0] == "#")))


def test_options_that_make_no_sense(tmp_path: Path) -> None:
    path = save(tmp_path, "x.soi", SOI)
    with pytest.raises(UsageError, match="a PrefLib file holds orders, not ratings"):
        read(path, kind="ratings")
    with pytest.raises(UsageError, match="has no columns to name"):
        read(path, columns={"item": "x"})
    assert read(path, kind="orders") == read(path)


# -- real files ----------------------------------------------------------------------------------------------------
def voters(path: Path) -> int:
    """Number of voters, by the plainest reading of the text."""
    found = re.findall(r"^(\d+): ", path.read_text(encoding="utf-8"), re.MULTILINE)
    return sum(map(int, found))


def test_all_files_at_hand_are_read(shared_data: Callable[[str], Path]) -> None:
    files = sorted(
        path for path in shared_data("preflib").rglob("*.*") if path.suffix in (".soc", ".soi", ".toc", ".toi")
    )
    assert len(files) > 100
    for path in [*files[::20], *shared_data("preflib/00014_sushi").glob("*.to?")]:
        reading = read_log(path)
        said = re.search(r"# NUMBER ALTERNATIVES: (\d+)", path.read_text(encoding="utf-8"))
        assert said is not None
        assert len(reading.preferences.items) == int(said.group(1)), path.name
        assert len(reading.preferences) == reading.rows == voters(path), path.name


@pytest.mark.parametrize(
    ("name", "votes", "most"),
    [
        (
            "00001_irish/00001-00000001.soi",
            43_942,
            (800, ("G.V. Wright F.F.", "Michael Kennedy F.F.", "Jim Glennon F.F.")),
        ),
        ("00009_agh/00009-00000001.soc", 146, (4, tuple(f"Course {i}" for i in (9, 2, 5, 6, 7, 8, 4, 3, 1)))),
    ],
)
def test_dublin_and_agh(
    shared_data: Callable[[str], Path], name: str, votes: int, most: tuple[int, tuple[str, ...]]
) -> None:
    found = tiers(read(shared_data(f"preflib/{name}")))
    assert found.total() == votes
    assert found[one(*most[1])] == most[0]


# -- items that a ranking leaves out ---------------------------------------------------------------------------------
def drawn_orders(random: np.random.Generator, queries: int) -> list[tuple[int, int, str, int]]:
    """Rows (query, judgment, item, rank) of rankings of some of five items, some of them tied."""
    rows = []
    for query in range(queries):
        for judgment in range(6):
            chosen = random.choice(list("abcde"), random.integers(1, 6), replace=False)
            rows += [(query, judgment, str(item), int(random.integers(1, 4))) for item in chosen]
    return rows


def test_unranked_items_stand_last_as_if_they_were_written_there() -> None:
    rows = drawn_orders(np.random.default_rng(seed(11)), 7)
    known = {query: {item for q, _, item, _ in rows if q == query} for query, *_ in rows}
    ranked: dict[tuple[int, int], set[str]] = defaultdict(set)
    for query, judgment, item, _ in rows:
        ranked[query, judgment].add(item)
    filled = rows + [(q, j, item, 9) for (q, j), own in ranked.items() for item in sorted(known[q] - own)]
    columns = ("query", "judgment", "item", "rank")
    log, written = (dict(zip(columns, map(list, zip(*each, strict=True)), strict=True)) for each in (rows, filled))
    assert read(log, unranked="last") == read(written)
    assert Preferences.from_orders(*log.values(), unranked="last") == read(written)
    assert read(log, unranked="missing") == Preferences.from_orders(*log.values()) == read(log)
    assert read(log, unranked="missing").notes == () == read(written).notes
    (note,) = read(log).notes
    partial = sum(own < known[query] for (query, _), own in ranked.items())
    assert note.startswith(f"table: {partial} of {len(ranked)} rankings leave out items of their query; ")


def test_declared_items_are_unranked_too(tmp_path: Path) -> None:
    (tmp_path / "x.soi").write_text(SOI)
    found = read(tmp_path / "x.soi", unranked="last")
    assert isinstance(found, Lists) and not len(found.declared)
    assert found.lists.sizes.tolist() == [3, 3, 3]


def test_a_log_with_both_readings_asks() -> None:
    """Ballots that write what they do not rank in last place, and ballots that leave it out."""
    both = [["a", "bc"], ["b", "a"], ["c"]]
    rows = [(j, item, r + 1) for j, tiers in enumerate(both) for r, tier in enumerate(tiers) for item in tier]
    log = dict(zip(("judgment", "item", "rank"), map(list, zip(*rows, strict=True)), strict=True))
    with pytest.raises(UsageError, match=r"2 of 3 rankings leave out .* 1 other names all of them, sev"):
        read(log)
    assert [len(read(log, unranked=how).list_item) for how in ("last", "missing")] == [9, 6]  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match="one of last, missing, not 'first'"):
        read(log, unranked="first")
    with pytest.raises(Idle, match="every ranking of table ranks all items"):
        read({"judgment": [1, 1], "item": ["a", "b"], "rank": [1, 2]}, unranked="missing")
    with pytest.raises(Idle, match="holds comparisons; only orders leave items out"):
        read({"winner": ["a"], "loser": ["b"]}, unranked="last")


@pytest.mark.parametrize("number", [1, 3])
def test_irish_ballots_filled_up_are_those_that_preflib_filled_up(number: int) -> None:
    """PrefLib's .toc of an election is its .soi with all candidates that a ballot leaves out tied in last place."""
    folder = shared_data("preflib") / "00001_irish"
    name = f"00001-{number:08d}"
    assert read(folder / f"{name}.soi", unranked="last") == read(folder / f"{name}.toc")
