"""The command as its users meet it: a process, its exit status, what it prints and what it writes."""

import csv
import json
import os
import subprocess
import sys
from io import StringIO

import pyarrow.feather
import pyarrow.parquet
import pytest

from concordant.apps.commands import main

COLUMNS = [
    *("query", "component", "item", "rank", "score", "lower", "upper", "judgments"),
    *("rank_lower", "rank_upper", "flag", "provisional"),
]
VOTES = "winner,loser\na,b\nb,a\na,c\nb,c\nc,b\na,b\n"


@pytest.fixture
def votes(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text(VOTES)
    return path


def run(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "concordant", *map(str, arguments)], capture_output=True, text=True, timeout=120
    )


def call(capsys, *arguments):
    """Run in this process; return (exit status, stdout, stderr)."""
    status = 0
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as stop:
        status = stop.code or 0
    out = capsys.readouterr()
    return status, out.out, out.err


def rows(text):
    return list(csv.DictReader(StringIO(text, newline="")))


def test_rank_prints_csv_into_a_pipe(votes):
    done = run("rank", votes)
    assert done.returncode == 0
    assert done.stdout.splitlines()[0].split(",") == COLUMNS
    assert [row["item"] for row in rows(done.stdout)] == ["a", "b", "c"]
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "arrow", "json", "jsonl"])
def test_output_by_ending(votes, tmp_path, capsys, ending):
    target = tmp_path / f"out.{ending}"
    status, out, _ = call(capsys, "rank", votes, "--output", target, "--quiet")
    assert status == 0
    assert out == ""
    if ending in ("csv", "tsv"):
        found = list(csv.DictReader(StringIO(target.read_text()), delimiter="," if ending == "csv" else "\t"))
    elif ending == "parquet":
        found = pyarrow.parquet.read_table(target).to_pylist()
    elif ending == "arrow":
        found = pyarrow.feather.read_table(target).to_pylist()
    elif ending == "json":
        found = json.loads(target.read_text())
    else:
        found = [json.loads(line) for line in target.read_text().splitlines()]
    assert list(found[0]) == COLUMNS
    assert [row["item"] for row in found] == ["a", "b", "c"]
    assert [int(row["rank"]) for row in found] == [1, 2, 3]
    assert sum(float(row["score"]) for row in found) == pytest.approx(0, abs=1e-9)
    assert all(float(row["lower"]) < float(row["score"]) < float(row["upper"]) for row in found)


def test_infinite_bounds_and_odd_labels_survive_the_files(tmp_path, capsys):
    log = tmp_path / "log.csv"
    hostile = ['say "hi"', "a,b", "line\nbreak", "'; DROP TABLE x; --", "<script>alert(1)</script>", " lead", "é😀"]
    with log.open("w", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(["winner", "loser"])
        writer.writerows([[hostile[i], hostile[i + 1]] for i in range(len(hostile) - 1)])
    for ending in ("csv", "json"):
        target = tmp_path / f"out.{ending}"
        assert call(capsys, "rank", log, "-o", target)[0] == 0
        text = target.read_bytes().decode()
        found = json.loads(text) if ending == "json" else rows(text)
        assert [row["item"] for row in found] == hostile
        assert str(found[-1]["lower"]) == "-inf"
        assert found[0]["flag"] in ("never lost", "")


def test_every_output_is_reproducible_to_the_bit(votes, tmp_path, capsys):
    texts = []
    for name in ("one.csv", "two.csv"):
        target = tmp_path / name
        assert call(capsys, "rank", votes, "-o", target, "--interval", "bootstrap", "--seed", "7")[0] == 0
        texts.append(target.read_bytes())
    assert texts[0] == texts[1]
    assert call(capsys, "rank", votes, "-o", target, "--interval", "bootstrap", "--seed", "8")[0] == 0
    assert target.read_bytes() != texts[0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["rank", "{votes}", "--structure", "bradly-terry"], ["did you mean 'bradley-terry'", "borda"]),
        (["rank", "{votes}", "--interval", "hesian"], ["did you mean 'hessian'"]),
        (["rank", "{votes}", "--structure", "borda", "--prior", "1"], ["borda", "prior"]),
        (["rank", "{votes}", "--structure", "cascade"], ["cascade", "comparisons"]),
        (["rank", "{votes}", "--prior", "-1"], ["prior"]),
        (["rank", "{votes}", "--prior", "many"], ["prior", "many"]),
        (["rank", "{votes}", "--level", "95"], ["level", "between 0 and 1"]),
        (["rank", "{votes}", "--winner", "champion"], ["champion", "winner", "loser"]),
        (["rank", "{votes}", "--output", "ranking.docx"], [".docx", ".csv", ".parquet"]),
        (["rank", "{votes}", "--output", "{tmp}/no/such/x.csv"], ["does not exist"]),
        (["rank", "{votes}", "--neutral", "n"], ["--home"]),
        (["rank", "{votes}", "--clicks", "every"], ["first", "last", "skip"]),
        (["rank", "{votes}", "--no-such"], ["no-such"]),
        (["rank", "{votes}", "--memory-limit", "lots"], ["memory", "lots"]),
        (["rank", "{tmp}/missing.csv"], ["missing.csv"]),
        (["rank", "{tmp}/.."], ["folder"]),
        (["rank"], ["LOG"]),
        (["ranc", "{votes}"], ["did you mean 'rank'"]),
    ],
)
def test_usage_errors_are_one_line_with_status_2(votes, tmp_path, capsys, arguments, words):
    filled = [argument.format(votes=votes, tmp=tmp_path) for argument in arguments]
    status, out, err = call(capsys, *filled)
    assert status == 2
    assert out == ""
    lines = [line for line in err.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1, err
    for word in words:
        assert word in lines[0]


def test_errors_of_the_process_itself(tmp_path):
    bad = tmp_path / "bad.csv"
    bad.write_text("winner,loser\na,b\nc,c\n")
    done = run("rank", bad)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert "line 3" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_skipped_rows_are_reported(tmp_path, capsys):
    log = tmp_path / "log.csv"
    log.write_text("winner,loser\na,b\nc,c\nb,a\n")
    status, out, err = call(capsys, "rank", log, "--on-error", "skip")
    assert status == 0
    assert "1 of 3 rows" in err
    assert len(rows(out)) == 2


def test_no_maximum_likelihood_is_an_error_that_names_the_items(tmp_path, capsys):
    log = tmp_path / "log.csv"
    log.write_text("winner,loser\nstar,b\nstar,c\nb,c\nc,b\n")
    status, _, err = call(capsys, "rank", log, "--prior", "0")
    assert status == 2
    assert "star" in err
    status, out, err = call(capsys, "rank", log)
    assert status == 0
    apart = rows(out)[-1]  # two wins do not decide its place
    assert (apart["item"], apart["flag"], apart["upper"]) == ("star", "never lost", "inf")
    assert (apart["rank"], apart["provisional"]) == ("", "true")
    assert "never lost" in err


def test_components_are_ranked_within_unless_asked(tmp_path, capsys):
    log = tmp_path / "log.csv"
    log.write_text("winner,loser\na,b\nb,a\na,b\nx,y\ny,x\ny,z\nz,y\n")
    _, out, err = call(capsys, "rank", log)
    assert [(row["component"], row["rank"]) for row in rows(out)][:1] == [("1", "1")]
    assert sorted({row["component"] for row in rows(out)}) == ["1", "2"]
    assert [row["rank"] for row in rows(out) if row["component"] == "2"] == ["1", "2"]
    assert "never compared with each other" in err
    _, out, _ = call(capsys, "rank", log, "--across-components", "--structure", "bradley-terry")
    assert sorted(int(row["rank"]) for row in rows(out))[-1] >= 4


def test_pool_makes_one_ranking(tmp_path, capsys):
    log = tmp_path / "log.csv"
    log.write_text("query,winner,loser\np,a,b\nq,b,a\np,a,b\n")
    assert {row["query"] for row in rows(call(capsys, "rank", log)[1])} == {"p", "q"}
    pooled = rows(call(capsys, "rank", log, "--pool")[1])
    assert {row["query"] for row in pooled} == {"all"}
    assert {row["judgments"] for row in pooled} == {"3"}


def test_help_names_every_command_and_version_is_known(capsys):
    status, out, _ = call(capsys, "--help")
    assert status == 0
    assert "rank" in out
    assert "demo" in out
    status, out, _ = call(capsys, "--version")
    assert status == 0
    assert "concordant" in out


def test_help_imports_no_numerical_library():
    code = "import sys, concordant.apps.commands as c\ntry: c.main(['--help'])\nexcept SystemExit: pass\n"
    code += "print([m for m in ('numpy', 'scipy', 'pyarrow', 'duckdb', 'rich') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_reader_that_goes_away_is_no_error(votes):
    command = f"'{sys.executable}' -m concordant rank '{votes}' | head -n 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, env=os.environ)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr


def test_a_contradicted_pair_speaks_against_scores_that_fit_as_a_whole(tmp_path, capsys):
    """Of 190 pairs one is 20 : 0 against two scores that all others put the other way round."""
    pairs = [
        (i, j, 10 + 3 * (i == 0) - 3 * (i == 1), 10 - 3 * (i == 0) + 3 * (i == 1))
        for i in range(20)
        for j in range(i + 1, 20)
    ]
    pairs[0] = (0, 1, 0, 20)
    log = tmp_path / "votes.csv"
    log.write_text("winner,loser,count\n" + "".join(f"{i},{j},{n}\n{j},{i},{m}\n" for i, j, n, m in pairs if n or m))
    log.write_text("\n".join(row for row in log.read_text().splitlines() if not row.endswith(",0")))
    status, _, told = call(capsys, "rank", log)
    assert status == 0 and "contradict the majority of a pair" in told
    assert "(lack of fit: p =" in told and "nothing speaks against it" not in told


def test_demo_writes_its_files_and_says_where(tmp_path, capsys):
    folder = tmp_path / "out"
    status, out, _ = call(capsys, "demo", "--output", folder)
    assert status == 0
    assert "59" in out and "structure=" not in out  # notes name options, not parameters
    assert {path.name for path in folder.iterdir()} == {
        "people-and-gpt4.json",
        "ranking-by-prompt.csv",
        "ranking-gpt4-by-prompt.csv",
        "ranking-gpt4.csv",
        "ranking.csv",
        "report.html",
    }
    overall = rows((folder / "ranking.csv").read_text())
    assert len(overall) == 59
    by_prompt = rows((folder / "ranking-by-prompt.csv").read_text())
    assert len({row["query"] for row in by_prompt}) == 13
    facts = json.loads((folder / "people-and-gpt4.json").read_text())
    assert 0 < facts["kendall_tau"] < 1
    (tmp_path / "file").write_text("")
    assert call(capsys, "demo", "--output", tmp_path / "file")[0] == 2


def test_coefficients_have_a_file_of_their_own(tmp_path, capsys):
    log, target = tmp_path / "games.csv", tmp_path / "coefficients.csv"
    log.write_text("home_team,away_team,home_score,away_score\n" + "a,b,2,1\nb,a,1,1\nb,a,0,3\na,b,0,1\n" * 5)
    status, _, err = call(capsys, "rank", log, "--home", "--ties", "davidson", "--coefficients", target)
    assert status == 0 and f"wrote {target}: 2 rows" in err
    found = rows(target.read_text())
    assert [row["term"] for row in found] == ["home advantage", "ties (log ν)"]
    assert float(found[0]["standard_error"]) > 0 and found[1]["p_value"] == ""
    status, _, err = call(capsys, "rank", log, "--coefficients", target)
    assert status == 2 and "this ranking has scores alone" in err
    status, _, err = call(capsys, "rank", log, "--home", "--coefficients", tmp_path / "c.txt")
    assert status == 2 and "--coefficients" in err and "unknown ending" in err
