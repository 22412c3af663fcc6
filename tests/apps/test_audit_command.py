"""``concordant audit`` as its users meet it."""

import csv
import itertools
import json
import re
from io import StringIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from concordant.apps.commands import main
from concordant.apps.commands.output import show_table

VOTES = (
    "prompt_id,winner,loser,count\n"
    + "".join(f"p1,{a},{b},{n}\n" for a, b, n in (("1", "2", 25), ("2", "3", 1), ("1", "3", 50), ("3", "1", 24)))
    + "p2,x,y,3\np2,y,z,3\np2,z,x,3\np3,only,other,1\n"
)
CONTRACT = ["query", "items", "judgments", "components", "acyclic", "low_noise", "row_sum_condition", "optimal_loss",
            "optimal_exact"]  # fmt: skip


@pytest.fixture
def votes(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text(VOTES)
    return path


def call(capsys, *arguments):
    status = 0
    try:
        main(["audit", *(str(argument) for argument in arguments)])
    except SystemExit as stop:
        status = stop.code or 0
    out = capsys.readouterr()
    return status, out.out, out.err


def test_json_has_the_contract_and_the_evidence(capsys, votes, tmp_path):
    output = tmp_path / "audit.json"
    status, out, err = call(capsys, votes, "-o", output, "--replicates", "20")
    assert (status, out) == (0, "")
    found = json.loads(output.read_text())
    assert 1 <= len(found["summary"]) <= 10
    assert all(line in err for line in found["summary"])
    rows = {row["query"]: row for row in found["queries"]}
    assert list(rows) == ["p1", "p2", "p3"]
    for row in rows.values():
        assert list(row)[: len(CONTRACT)] == CONTRACT
        assert set(row["surrogates"]) >= {"ranknet", "ranksvm", "rankboost", "linear", "difference-graph"}
        assert all({"consistent", "regret"} <= set(one) for one in row["surrogates"].values())
    assert rows["p1"]["low_noise"] is True
    assert rows["p1"]["surrogates"]["ranknet"]["consistent"] is False
    assert rows["p1"]["surrogates"]["difference-graph"]["consistent"] is True
    assert rows["p2"]["acyclic"] is False
    assert rows["p2"]["cycles_are"] == "within sampling noise"
    assert rows["p3"]["surrogates"]["ranknet"]["regret"] == 0.0
    assert rows["p2"]["ask"][0]["number"] == 1
    overall = {row["surrogate"]: row for row in found["surrogates"]}
    assert (overall["ranknet"]["queries"], overall["ranknet"]["wrong"]) == (3, 2)


def test_a_pipe_gets_a_row_for_each_query(capsys, votes):
    status, out, err = call(capsys, votes, "--surrogate", "ranknet", "--surrogate", "linear", "--replicates", "0")
    assert status == 0
    rows = list(csv.DictReader(StringIO(out)))
    assert list(rows[0])[: len(CONTRACT)] == CONTRACT
    assert [row["ranknet.consistent"] for row in rows] == ["false", "false", "true"]
    assert float(rows[0]["ranknet.regret"]) == pytest.approx(0.01)
    assert rows[1]["cycle"] == '["x", "y", "z"]'
    assert "With infinite data" in err


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl", "arrow", "tsv"])
def test_tables_in_every_format(capsys, votes, tmp_path, ending):
    output = tmp_path / f"audit.{ending}"
    status, _, _ = call(capsys, votes, "-o", output, "--replicates", "0", "--quiet")
    assert status == 0
    assert output.stat().st_size > 100


def test_the_same_seed_gives_the_same_bytes(capsys, votes, tmp_path):
    texts = []
    for name in ("one.json", "two.json"):
        call(capsys, votes, "-o", tmp_path / name, "--replicates", "30", "--seed", "7")
        texts.append((tmp_path / name).read_text())
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--surrogate", "ranknt"], "ranknet"),
        (["--surrogate", "ranknet:hinge"], "allowed: logistic"),
        (["--structure", "bordo"], "borda"),
        (["--order", "many"], "order must be"),
        (["--output", "audit.xls"], "unknown ending"),
        (["--ties", "half"], "heavier"),
        (["--top", "9"], "below the 3 items"),
        (["--level", "2"], "level"),
        (["--time-limit", "0"], "time-limit"),
        (["--winner", "nobody"], "nobody"),
    ],
)
def test_wrong_options_are_one_line(capsys, votes, arguments, said):
    status, out, err = call(capsys, votes, *arguments)
    assert (status, out) == (2, "")
    lines = err.strip().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("error: ")
    assert said in lines[0]


def test_bad_rows_are_refused_or_skipped_as_in_rank(capsys, tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("model_a,model_b,winner\na,b,left\na,b,lefft\n")
    status, _, err = call(capsys, path)
    assert status == 2
    assert "lefft" in err
    status, _, err = call(capsys, path, "--on-error", "skip", "--replicates", "0")
    assert status == 0
    assert "skipped" in err


def test_labels_are_text(capsys, tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text('winner,loser\n"<b>x</b>","y\nz"\n"y\nz","=cmd()"\n"=cmd()","<b>x</b>"\n')
    output = tmp_path / "audit.json"
    status, _, err = call(capsys, path, "-o", output, "--replicates", "10")
    assert status == 0
    assert set(json.loads(output.read_text())["queries"][0]["cycle"]) == {"<b>x</b>", "y\nz", "=cmd()"}
    assert "y\\nz" in err


def test_edges_say_how_sure_each_preference_is(capsys, votes, tmp_path):
    edges = tmp_path / "edges.csv"
    status, _, err = call(capsys, votes, "-o", tmp_path / "a.csv", "--edges", edges, "--replicates", "200")
    assert status == 0
    assert "7 preferences" in err
    rows = {(row["above"], row["below"]): row for row in csv.DictReader(StringIO(edges.read_text()))}
    assert set(rows) == {("1", "2"), ("2", "3"), ("1", "3"), ("x", "y"), ("y", "z"), ("z", "x"), ("only", "other")}
    assert float(rows["1", "3"]["net"]) == pytest.approx(0.26)
    assert float(rows["1", "3"]["sign_holds"]) > 0.97
    assert 0.5 < float(rows["2", "3"]["sign_holds"]) < 0.75  # one vote: it is in 63% of the replicates
    status, _, err = call(capsys, votes, "--edges", edges, "--replicates", "0")
    assert (status, err.count("\n")) == (2, 1)
    status, _, err = call(capsys, votes, "--edges", edges, "-o", tmp_path / "." / "edges.csv")
    assert (status, err.count("\n")) == (2, 1)
    assert "name two files" in err


def on_a_terminal(capsys, monkeypatch, columns, *arguments):
    """What a terminal of so many columns shows on stdout."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "dumb")
    status, out, _ = call(capsys, *arguments)
    assert status == 0
    return out


def table(out, header):
    """The lines of the table whose header begins so, up to the next empty line."""
    lines = out.splitlines()
    begin = next(at for at, line in enumerate(lines) if line.split()[:1] == [header])
    return [line.rstrip() for line in itertools.takewhile(str.strip, lines[begin:])]


def test_tables_of_many_queries_fit_80_columns(capsys, monkeypatch, votes):
    out = on_a_terminal(capsys, monkeypatch, 80, votes, "--replicates", "0")
    shown = table(out, "query")
    assert shown[0].split()[1:4] == ["items", "judgments", "acyclic"]  # parts: where there are several
    assert shown[0].endswith("exact")
    assert [line.split()[0] for line in shown[1:]] == ["p1", "p2", "p3"]
    assert all(len(line) <= 80 for line in shown)


def test_long_names_of_queries_do_not_push_columns_out(capsys, monkeypatch, tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("query,winner,loser\nqid:10002-and-more,a,b\nqid:10032-and-more,c,d\n")
    shown = table(on_a_terminal(capsys, monkeypatch, 80, path, "--replicates", "0"), "query")
    assert shown[0].endswith("exact")
    assert all(line.endswith("yes") for line in shown[1:])


def test_tables_of_one_query_fit_80_columns_and_say_how_the_order_was_found(capsys, monkeypatch, tmp_path):
    long = "A label of a model that is much longer than is good for a table"
    path = tmp_path / "votes.csv"
    path.write_text(f"winner,loser\n{long},b\nb,c\nc,{long}\nb,d\nb,d\nd,b\n")
    out = on_a_terminal(capsys, monkeypatch, 80, path, "--replicates", "10")
    facts = dict(re.split(r"\s{2,}", line, maxsplit=1) for line in table(out, "fact"))
    assert facts["best order found by"] == "dynamic programming, exact"
    assert facts["cycles are"] == "within sampling noise"
    assert facts["first that beat all others (Smith)"] == "4"
    assert facts["leads add up (low noise)"] == facts["without cycles"] == "no"
    surrogates = table(out, "loss")
    assert "excess" in surrogates[0] and "True" not in out and "False" not in out
    assert surrogates[1].split()[0] == "default" and any(row.startswith("ranksvm ") for row in surrogates)
    assert any(line.startswith("difference-graph ") for line in surrogates)
    asked = table(out, "#")
    assert asked[0].split()[:3] == ["#", "ask", "judged"]
    assert all(len(line) <= 80 for rows in (surrogates, asked) for line in rows)


def test_headers_are_broken_between_words_only(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    wide = {f"row_sum_condition_{n}": [0.5] for n in range(4)}
    show_table(pa.table(wide))
    head = capsys.readouterr().out.splitlines()
    assert {word for line in head[:-1] for word in line.split()} == {"row", "sum", "condition", "0", "1", "2", "3"}


CLICKS = "session,position,item,clicked\n" + "".join(
    f"{session},{place + 1},{item},{int(item == clicked)}\n"
    for session, (shown, clicked) in enumerate((("abc", "b"), ("bac", "a"), ("cab", "b"), ("abc", "")))
    for place, item in enumerate(shown)
)
CHOICES = "session,item,chosen\n" + "".join(
    f"{session},{item},{int(item == chosen)}\n"
    for session, (offered, chosen) in enumerate((("abc", "a"), ("ab", "b"), ("bc", "b"), ("ca", "c")))
    for item in offered
)
# a click is a preference to what was passed over above it, a choice to all that was on offer; by hand:
BY_HAND = [
    (
        CLICKS,
        {("b", "a"): 0.25, ("b", "c"): 0.25},
        {"judgments": 4, "pairs": 2, "level_pairs": 0, "optimal_loss": 0.25},
    ),
    (CHOICES, {("b", "c"): 0.25}, {"judgments": 4, "pairs": 3, "level_pairs": 2, "optimal_loss": 0.5}),
]


@pytest.mark.parametrize(("text", "net", "facts"), BY_HAND, ids=["selections", "choices"])
def test_clicks_and_choices(capsys, tmp_path, text, net, facts):
    log, edges = tmp_path / "log.csv", tmp_path / "edges.csv"
    log.write_text(text)
    status, out, err = call(capsys, log, "--target", "pairwise", "--replicates", "10", "--edges", edges)
    assert status == 0 and "With infinite data" in err
    (row,) = csv.DictReader(StringIO(out))
    assert {name: float(row[name]) for name in facts} == facts
    found = {(edge["above"], edge["below"]): float(edge["net"]) for edge in csv.DictReader(StringIO(edges.read_text()))}
    assert found == net
    for ending in ("json", "jsonl", "parquet", "arrow", "tsv"):
        output = tmp_path / f"audit.{ending}"
        assert call(capsys, log, "--target", "pairwise", "--replicates", "10", "-o", output, "--quiet")[0] == 0
        if ending == "json":
            (whole,) = json.loads(output.read_text())["queries"]
            assert {name: whole[name] for name in facts} == facts
            assert whole["surrogates"]["difference-graph"]["consistent"] is True
        elif ending == "parquet":
            assert {name: pq.read_table(output)[name].to_pylist()[0] for name in facts} == facts


KEMENY = json.loads((Path(__file__).parents[1] / "data" / "kemeny_golden.json").read_text())
SETS = ("00001_irish/00001-00000001.soi", "00014_sushi/00014-00000001.soc", "00009_agh/00009-00000001.soc",
        "00006_skate/00006-00000008.soc", "00006_skate/00006-00000028.soc")  # fmt: skip


@pytest.mark.parametrize("name", SETS)
def test_exact_audits_of_elections_find_their_kemeny_orders(capsys, tmp_path, shared_data, name):
    output = tmp_path / "audit.json"
    path = shared_data(f"preflib/{name}")
    options = ("--exact", "--time-limit", "30", "--replicates", "0", "--surrogate", "linear", "--quiet", "-o", output)
    assert call(capsys, path, *options)[0] == 0
    (row,) = json.loads(output.read_text())["queries"]
    assert row["optimal_exact"] is True and row["optimal_lower"] == row["optimal_loss"]
    assert row["optimal_loss"] * row["judgments"] == pytest.approx(KEMENY[name], rel=1e-9)


def test_an_interrupt_leaves_nothing_half_written(capsys, monkeypatch, votes, tmp_path):
    """Ctrl-C while the table is being written: status 130, the old file as it was, no temporary one."""
    output = tmp_path / "audit.parquet"
    output.write_text("before")

    def interrupted(_, name, **_options):
        with open(name, "w") as file:
            file.write("half")
        raise KeyboardInterrupt

    monkeypatch.setattr("concordant.apps.commands.output.pa.parquet.write_table", interrupted)
    status, out, err = call(capsys, votes, "--replicates", "0", "--quiet", "-o", output)
    assert (status, out, err.strip()) == (130, "", "interrupted")
    assert output.read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["audit.parquet", "votes.csv"]


def test_fragility_is_a_section(capsys, tmp_path):
    path, output = tmp_path / "votes.csv", tmp_path / "audit.json"
    path.write_text("winner,loser,count\n1,2,30\n2,1,20\n2,3,25\n3,2,24\n1,3,25\n3,1,3\n")
    asked = ("--replicates", "0", "--surrogate", "ranknet", "--fragility")
    status, _, err = call(capsys, path, *asked, "-o", output)
    assert (status, "How little changes the first place of 1 (by Bradley–Terry scores):" in err) == (0, True)
    found = json.loads(output.read_text())["fragility"]
    assert [row["change"] for row in found["fewest"]] == ["removed", "flipped", "added", "removed"]
    removed = [row for row in found["witness"] if row["change"] == "removed" and row["unit"] == "judgments"]
    assert sum(row["times"] for row in removed) == found["fewest"][0]["fewest"]
    status, _, err = call(capsys, path, *asked, "-o", tmp_path / "audit.md")
    written = (tmp_path / "audit.md").read_text(encoding="utf-8").partition("How little changes ")[2].splitlines()
    said = err.partition("How little changes ")[2].splitlines()[1:5]
    assert written[2:6] == said and said[0].startswith("- without 24 of 127 judgments (19%): ")
    assert "who is among the first 2" in call(capsys, path, *asked, "--top", "2")[2]
    assert "that 2 is ahead of 3" in call(capsys, path, *asked, "--pair", "3", "2")[2]
    status, _, err = call(capsys, path, "--pair", "3", "2")
    assert (status, "only --fragility asks for two items" in err) == (2, True)
    status, _, err = call(capsys, path, *asked, "--pair", "3", "x")
    assert (status, "'x' is no item with a rank in this log" in err) == (2, True)


@pytest.mark.parametrize("times", [10, 1])
def test_the_verdict_knows_of_a_sure_circle(capsys, tmp_path, times):
    path = tmp_path / "votes.csv"
    path.write_text("winner,loser,count\n" + "".join(f"{a},{b},{n * times}\n" for a, b, n in (
        ("a", "b", 8), ("b", "a", 3), ("b", "c", 8), ("c", "b", 3), ("c", "a", 8), ("a", "c", 3))))  # fmt: skip
    _, _, err = call(capsys, path)
    verdict = next(line for line in err.splitlines() if "logistic loss" in line)
    sure = "The cycles are more than chance" in err
    assert sure == (times == 10)
    assert verdict.endswith("by more than chance, so that no order agrees with all of them.") == sure
