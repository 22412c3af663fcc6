"""Notes: records that print as sentences, in singular and plural, added up over parts of a log."""

import ast
import json
import pickle
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

import concordant as cc
from concordant.apps.commands import main
from concordant.errors import CannotRank, Setting
from concordant.preferences.notes import MOST, Note, added_up, of_queries
from concordant.ranking import rank as ranking

TEXT = "{judges:judges} {judges:is|are} of one mind about {items}{query}; ask for {ask}"


def note(judges=2, items=("a", "b"), **more):
    return Note("of one mind", TEXT, items=items, judges=judges, ask=Setting("interval", "bootstrap"), **more)


def test_a_note_is_its_sentence_and_what_it_is_made_of():
    made = note(1, ("{x}", "y", "{x}"), query="q{0}")
    assert made == "1 judge is of one mind about '{x}', 'y' of query 'q{0}'; ask for interval='bootstrap'"
    assert (made.code, made.items, made.query, made.numbers["judges"]) == ("of one mind", ("{x}", "y"), "q{0}", 1)
    assert note(1200).startswith("1,200 judges are of one mind")
    assert note(others=1000).endswith("'a', 'b' and 1,000 more; ask for interval='bootstrap'")
    assert note().said(lambda setting: f"--{setting.name} {setting.value}").endswith("ask for --interval bootstrap")


def test_a_note_goes_through_a_pickle():
    made = pickle.loads(pickle.dumps(note()))
    assert type(made) is Note and made == note()
    assert (made.code, made.items, made.numbers) == (note().code, note().items, note().numbers)


def test_notes_of_parts_add_up():
    many = [f"i{n}" for n in range(MOST)]
    first, last = added_up([note(2, many), "as it is", note(3, ["a", *many[1:]]), "as it is"], 7)
    assert (first.numbers["judges"], first.items, first.numbers["others"], last) == (5, tuple(many), 1, "as it is")
    text = "{queries:is|are} odd, at most {most}"
    odd = [of_queries("odd", np.arange(size) < 2, text, most=float(size))[0] for size in (2, 5)]
    assert added_up(odd, 9) == ("4 of 9 queries are odd, at most 5.0",)
    assert len(added_up([note(query="p"), note(query="q")], 7)) == 2


def test_an_error_in_a_note_keeps_its_parameters():
    made = Note("cannot rank", "{error}", error=CannotRank("no maximum; ask for ", Setting("prior", 0.01)))
    assert made == "no maximum; ask for prior=0.01"
    assert made.said(lambda setting: f"--{setting.name}") == "no maximum; ask for --prior"


@pytest.mark.parametrize("block", [1, 3, 10**6])
def test_notes_of_a_ranking_do_not_depend_on_its_blocks(monkeypatch, block):
    monkeypatch.setattr(ranking, "BLOCK", block)
    winner, loser, query = ["a", "b", "x", "c", "c"], ["b", "a", "c", "x", "y"], [1, 1, 2, 2, 3]
    prefs = cc.Preferences.from_comparisons(winner, loser, query=query)
    notes = {note.code: note for note in cc.rank(prefs, ties="davidson").notes}
    assert notes["no ties"] == (
        "no ties in 3 of 3 graphs: nothing is to be learned of them, and the scores are those of plain Bradley–Terry "
        "(ν = 0)"
    )
    assert notes["kept finite by the prior"].items == ("c", "y")


def test_an_item_of_two_queries_is_named_once():
    prefs = cc.Preferences.from_comparisons(["a", "b"], ["c", "c"], query=[1, 2])
    note = next(note for note in cc.rank(prefs).notes if note.items)
    assert note.items == ("a", "c", "b") and "set the scores of 'a', 'c', 'b' no limit" in note


@pytest.mark.parametrize("items", ["ab", "ba", "abcd", "dcba", "bcad"])
def test_all_items_of_a_chain_have_no_limit(items):
    """Whichever of them the others are measured by."""
    prefs = cc.Preferences.from_comparisons([*items[:-1]], [*items[1:]])
    for structure in ("bradley-terry", "plackett-luce"):
        board = cc.rank(prefs, structure)
        note = next(note for note in board.notes if note.code == "kept finite by the prior")
        assert sorted(note.items) == sorted(items)
        assert {board.items[item] for item in board.item[board.flag > 0]} == {*items}


# -- parameters of functions, options of commands ----------------------------------------------------------------------
OPTION = re.compile(r"(?<![\w-])--[a-z]")


def test_below_the_commands_no_text_names_an_option():
    source = Path(cc.__file__).parent
    said = [
        f"{path.relative_to(source)}: {node.value}"
        for path in sorted(source.rglob("*.py"))
        if "apps" not in path.relative_to(source).parts[:1]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and OPTION.search(node.value)
    ]
    assert said == ["__init__.py: " + cc.__getattr__.__doc__]  # `concordant --help` itself


@pytest.mark.parametrize(
    ("columns", "options", "python", "command"),
    [
        ({"winner": ["a"], "loser": ["b"]}, {"prior": 0}, "(prior=0.01)", "(--prior 0.01)"),
        (
            {"session": [1, 1], "position": [1, 2], "item": ["x", "y"], "clicked": [1, 1]},
            {"structure": "cascade"},
            "clicks='first' or clicks='last'",
            "--clicks first or --clicks last",
        ),
        (
            {"left": ["a"], "right": ["b"], "model_a": ["a"], "model_b": ["b"], "winner": ["a"]},
            {},
            "columns={'left': …} and columns={'right': …}",
            "--left and --right",
        ),
    ],
    ids=["prior", "clicks", "columns"],
)
def test_python_hears_of_parameters_and_the_command_of_options(tmp_path, capsys, columns, options, python, command):
    log = tmp_path / "log.csv"
    pacsv.write_csv(pa.table(columns), log)
    with pytest.raises(cc.ConcordantError) as problem:
        cc.rank(cc.read(log), **options)
    assert python in str(problem.value) and "--" not in str(problem.value)
    with pytest.raises(SystemExit):
        main(["rank", str(log), *(part for name, value in options.items() for part in (f"--{name}", str(value)))])
    said = capsys.readouterr().err
    assert command in said and python not in said


def test_a_note_in_the_log_of_a_command_says_what_it_is_made_of(tmp_path, capsys):
    log = tmp_path / "log.csv"
    pacsv.write_csv(pa.table({"winner": ["a", "a"], "loser": ["b", "c"], "weight": [1.0, 2.0]}), log)
    main(["rank", str(log), "--interval", "none", "--log-format", "json"])
    said = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    notes = {one["code"]: one for one in said if one["event"] == "note"}
    assert notes["read as weight"]["message"].endswith("(--count) where it says how often a row was seen")
    assert notes["never lost"]["items"] == ["a"] and notes["never lost"]["numbers"]["rows"] == 1
