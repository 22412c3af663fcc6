"""What a critical user found: each test failed before it was mended."""

import gzip
import os
import pty
import subprocess
import sys

import duckdb
import numpy as np
import pytest

import concordant as cc
from concordant.apps.commands import main
from concordant.apps.commands.output import one_line
from concordant.errors import InputError, UsageError
from concordant.io.read import read

VOTES = "winner,loser\na,b\nb,a\na,c\nb,c\nc,b\na,b\n"
PAIR = {"winner": ["a", "b", "a"], "loser": ["b", "a", "c"]}


@pytest.fixture
def votes(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text(VOTES)
    return path


def call(capsys, *arguments):
    status = 0
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as stop:
        status = stop.code or 0
    out = capsys.readouterr()
    return status, out.out, out.err


def refused(capsys, *arguments):
    """Return the only line on stderr of a command that has to fail with status 2 and print nothing."""
    status, out, err = call(capsys, *arguments)
    assert (status, out) == (2, ""), err
    assert err.startswith("error: ") and err.count("\n") == 1, err
    return err


def on_a_terminal(*arguments, **environment):
    """Return status and output of the command on a terminal of its own."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "concordant", *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=subprocess.STDOUT,
        env={**os.environ, "TERM": "dumb", "COLUMNS": "120", **environment},
    ) as process:
        os.close(theirs)
        parts = []
        try:
            while part := os.read(ours, 65536):
                parts.append(part)
        except OSError:  # the other end has been closed
            pass
    os.close(ours)
    return process.returncode, b"".join(parts).decode(errors="replace")


# -- reading ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("lead", ["\n", "\n\n", "\r\n\r\n", "\ufeff\n"])
def test_blank_lines_before_the_header_are_no_rows_on_either_engine(tmp_path, lead):
    path = tmp_path / "votes.csv"
    path.write_bytes((lead + VOTES).encode())
    expected = cc.Preferences.from_comparisons(list("ababca"), list("baccbb"))
    for engine in ("duckdb", "memory"):
        assert read(path, engine=engine) == expected, engine


@pytest.mark.parametrize(
    ("line", "items"),
    [
        ('a, "b"', ["a", "b"]),
        (' "a", "b,c"', ["a", "b,c"]),
        ('a, "b\nc" ', ["a", "b\nc"]),
        ('a, "b""c"', ["a", 'b"c']),
        ('"a ""b"" , ""c""",d', ['a "b" , "c"', "d"]),
        ("a, b", [" b", "a"]),
        ('a,  "b"', ['  "b"', "a"]),
    ],
)
@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_a_space_before_a_quote_means_the_same_to_both_engines(tmp_path, line, items, ending):
    path = tmp_path / f"votes.{ending}"
    text = f"winner,loser\n{line}\ny,z\n"
    path.write_text(text if ending == "csv" else text.replace(",", "\t"))
    expected = sorted([*(item if ending == "csv" else item.replace(",", "\t") for item in items), "y", "z"])
    for engine in ("duckdb", "memory"):
        assert list(read(path, engine=engine).items) == expected, engine


@pytest.mark.parametrize(("line", "said"), [('a, "b"x', "text after a closing quote"), ('a, "b', "never closed")])
def test_a_broken_quote_after_a_space_is_an_error(tmp_path, line, said):
    path = tmp_path / "votes.csv"
    path.write_text(f"winner,loser\n{line}\n")
    for engine in ("duckdb", "memory"):
        with pytest.raises(InputError, match=f"line 2 .*{said}"):
            read(path, engine=engine)


@pytest.mark.parametrize("layout", ["session,item,chosen", "judgment,item,rank"])
def test_rows_without_a_session_do_not_hide_behind_an_equal_list(tmp_path, layout):
    path = tmp_path / "log.csv"
    path.write_text(f"{layout}\na,x,1\n,x,1\n")
    for engine in ("duckdb", "memory"):
        with pytest.raises(InputError, match=r"1 of 2 (sets|rankings) have no (session|judgment) \(line 3\)"):
            read(path, engine=engine)


@pytest.mark.parametrize("name", ["votes.csv.gz", "votes.tsv.gz", "votes.jsonl.gz", "votes.jsonl"])
def test_a_small_file_fits_in_a_small_memory_limit(tmp_path, name):
    path = tmp_path / name
    text = VOTES.replace(",", "\t") if "tsv" in name else VOTES
    if "json" in name:
        text = "".join(f'{{"winner": "{line[0]}", "loser": "{line[2]}"}}\n' for line in VOTES.splitlines()[1:])
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    assert len(read(path, memory_limit="200MB", threads=1)) == 6


@pytest.mark.parametrize("options", [{"memory_limit": "-1GB"}, {"threads": "two"}, {"threads": 10**6}, {"threads": 0}])
def test_limits_that_limit_nothing_are_refused(votes, options):
    with pytest.raises(UsageError, match=next(iter(options))):
        read(votes, **options)


@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_standard_input_is_refused_with_the_reason(name):
    with pytest.raises(InputError, match="standard input; save it to a file"):
        read(name)


def test_a_dangling_link_is_not_proposed_for_itself(tmp_path):
    (tmp_path / "votes.csv").symlink_to(tmp_path / "gone.csv")
    with pytest.raises(InputError) as caught:
        read(tmp_path / "votes.csv")
    assert "did you mean" not in str(caught.value)


@pytest.mark.parametrize("mark", [";", "|", "\t"])
def test_another_delimiter_is_named(tmp_path, mark):
    path = tmp_path / "votes.csv"
    path.write_text(VOTES.replace(",", mark))
    with pytest.raises(InputError, match="fields seem to be separated by") as caught:
        read(path)
    assert repr(mark) in str(caught.value)


def test_skipping_every_list_says_that_nothing_is_left(tmp_path):
    path = tmp_path / "clicks.csv"
    path.write_text("session,position,item,clicked\n1,1,a,1\n1,2,b,1\n")
    with pytest.raises(InputError, match="no judgment is left: 1 of 1 lists have more than one click"):
        read(path, clicks="skip")


@pytest.mark.parametrize("error", [RuntimeError("Query interrupted"), duckdb.InterruptException("INTERRUPT Error")])
def test_ctrl_c_while_duckdb_counts_is_an_interruption(votes, capsys, tmp_path, monkeypatch, error):
    def interrupted(*_):
        raise error

    monkeypatch.setattr("concordant.io.engines.duckdb._gather", interrupted)
    said = call(capsys, "rank", votes, "-o", tmp_path / "ranking.csv")
    assert (said[0], said[1], said[2].strip()) == (130, "", "interrupted")
    assert [path.name for path in tmp_path.iterdir()] == ["votes.csv"]


# -- Python ----------------------------------------------------------------------------------------------------------
def test_from_selections_skips_lists_with_many_clicks():
    session, position, item = [1, 1, 2, 2], [1, 2, 1, 2], ["a", "b", "a", "b"]
    prefs = cc.Preferences.from_selections(None, session, position, item, [1, 1, 0, 1], clicks="skip")
    assert prefs == cc.Preferences.from_selections(None, [2, 2], [1, 2], ["a", "b"], [0, 1])
    assert len(cc.Preferences.from_selections(None, session, position, item, [1, 1, 1, 1], clicks="skip")) == 0
    with pytest.raises(InputError, match="hold an item twice"):  # other faults are not skipped
        cc.Preferences.from_selections(None, session, position, ["a", "b", "c", "c"], [1, 1, 0, 1], clicks="skip")


def test_from_choices_skips_sets_with_many_choices():
    prefs = cc.Preferences.from_choices(None, [1, 1, 2, 2], ["a", "b", "a", "b"], [1, 1, 0, 1], clicks="skip")
    assert len(prefs) == 1


@pytest.mark.parametrize("rank", [np.array([np.nan, 1.0, 2.0]), [float("nan"), 1, 2], [None, 1, 2]])
def test_a_rank_that_is_nan_is_no_opinion(rank):
    prefs = cc.Preferences.from_orders(None, [1, 1, 1], ["a", "b", "c"], rank)
    assert prefs == read({"judgment": [1, 1, 1], "item": ["a", "b", "c"], "rank": rank}, engine="duckdb")
    assert (len(prefs), len(prefs.declared), list(prefs.items)) == (1, 1, ["a", "b", "c"])
    with pytest.raises(InputError, match="a rank that is not finite"):
        cc.Preferences.from_orders(None, [1, 1], ["a", "b"], [np.inf, 1.0])


@pytest.mark.parametrize("column", ["ada", {"a", "b", "c"}, {"a": 1, "b": 2, "c": 3}, b"abc", frozenset("abc")])
def test_what_has_no_rows_in_order_is_no_column(column):
    with pytest.raises(InputError, match="the column of winner is of type"):
        cc.Preferences.from_comparisons(column, ["x", "y", "z"])


@pytest.mark.parametrize(
    ("make", "role"),
    [
        (lambda: cc.Preferences.from_comparisons(["a"], None), "loser"),
        (lambda: cc.Preferences.from_selections(None, [1], [1], None, [1]), "item"),
        (lambda: cc.Preferences.from_choices(None, [1], ["a"], None), "clicked"),
        (lambda: cc.Preferences.from_orders(None, [1], ["a"], None), "rank"),
        (lambda: cc.Preferences.from_ratings(["u"], ["a"], None), "rating"),
    ],
)
def test_a_missing_column_is_named(make, role):
    with pytest.raises(InputError, match=f"the column of {role} is None"):
        make()


def test_arguments_of_another_shape_are_refused():
    with pytest.raises(InputError, match="covariates are a mapping"):
        cc.Preferences.from_comparisons(["a"], ["b"], covariates=[1])
    with pytest.raises(UsageError, match="columns= is a mapping"):
        read(PAIR, columns=["winner"])
    with pytest.raises(InputError, match="no column 3"):
        read(PAIR, columns={"winner": 3})


@pytest.mark.parametrize("covariates", ["effort", ["effort", "effort"]])
def test_a_covariate_named_alone_or_twice_is_one_covariate(covariates):
    prefs = read({**PAIR, "effort": np.array([1.0, 2.0, 3.0])}, covariates=covariates)
    assert prefs.covariate_names == ("effort",)


@pytest.mark.parametrize("given", ["votes.csv", PAIR, None])
def test_rank_takes_preferences(given):
    with pytest.raises(UsageError, match="rank takes Preferences, not"):
        cc.rank(given)


# -- the command -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("options", [["--rows", "0"], ["--memory-limit", "-1GB"], ["--prior", "0"], ["--level", "2"]])
def test_an_error_is_the_only_line(tmp_path, capsys, options):
    path = tmp_path / "votes.csv"
    path.write_text("winner,loser\na,b\n")
    refused(capsys, "rank", path, *options)


def test_the_output_never_replaces_the_log(votes, capsys, tmp_path):
    (tmp_path / "link.csv").symlink_to(votes)
    for output in (votes, tmp_path / "link.csv"):
        assert "is the log itself" in refused(capsys, "rank", votes, "-o", output)
    assert votes.read_text() == VOTES


def test_an_output_through_a_link_leaves_the_link(votes, capsys, tmp_path):
    (tmp_path / "target.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to("target.csv")
    assert call(capsys, "rank", votes, "-o", tmp_path / "link.csv")[0] == 0
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "target.csv").read_text().startswith("query,")


def test_an_empty_output_name_is_refused(votes, capsys):
    assert "unknown ending" in refused(capsys, "rank", votes, "-o", "")


def test_the_longest_name_a_file_can_have_can_be_written(votes, capsys, tmp_path):
    output = tmp_path / ("x" * 251 + ".csv")
    assert call(capsys, "rank", votes, "-o", output)[0] == 0
    assert output.read_text().startswith("query,")


def test_an_output_that_cannot_be_written_is_named_as_given(votes, capsys, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device", ".concordant-1.csv")

    monkeypatch.setattr("concordant.apps.commands.output.os.replace", full)
    said = call(capsys, "rank", votes, "-q", "-o", tmp_path / "ranking.csv")
    assert said == (2, "", f"error: --output {tmp_path / 'ranking.csv'}: No space left on device\n")
    assert [path.name for path in tmp_path.iterdir()] == ["votes.csv"]


def test_an_unwritable_folder_is_refused_before_any_work(votes, capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("concordant.apps.commands.output.os.access", lambda *_: False)
    assert "no permission to write" in refused(capsys, "rank", votes, "-o", tmp_path / "ranking.csv")


def test_the_command_alone_shows_its_help(capsys):
    status, _, err = call(capsys)
    assert status == 2
    assert err.startswith("Usage: concordant") and "\n  rank " in err


def test_labels_with_markup_and_line_ends_are_data_on_a_terminal(tmp_path):
    path = tmp_path / "[b] votes [b].csv"
    path.write_text('query,winner,loser\n[/],[bold]x[/],"two\nlines"\n[/],"two\nlines",[bold]x[/]\n[red]q,é,b\n')
    status, text = on_a_terminal("rank", path, PYTHONIOENCODING="utf-8")
    assert status == 0, text
    assert "query [/]" in text and "query [red]q" in text and "[bold]x[/]" in text and "two\\nlines" in text


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_without_utf8_gets_a_table(tmp_path, encoding):
    path = tmp_path / "votes.csv"
    path.write_text("winner,loser\né≻,b\nb,é≻\n", encoding="utf-8")
    status, text = on_a_terminal("rank", path, PYTHONIOENCODING=encoding)
    assert status == 0, text
    assert "Traceback" not in text and "judgments" in text


def test_notes_are_one_line_each(tmp_path, capsys):
    path = tmp_path / "votes.csv"
    path.write_text('winner,loser\n"two\nlines\x1b[1m",b\n')
    status, _, err = call(capsys, "rank", path)
    assert status == 0
    assert "two\\nlines\\x1b[1m" in err
    assert all(line.startswith(("note: ", str(path))) for line in err.splitlines())


def test_one_line_keeps_what_is_printable():
    assert one_line("é ≻ b") == "é ≻ b"
    assert one_line("a\r\n\tb\x00") == "a\\r\\n\\tb\\x00"


def test_clicks_are_not_ignored_where_there_are_none():
    with pytest.raises(cc.UsageError, match="selections and choices; this log holds comparisons"):
        cc.read({"winner": ["a"], "loser": ["b"]}, clicks="first")
