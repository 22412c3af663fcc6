"""``concordant ingest`` and ``concordant store`` as their users meet them, and stores in the place of logs."""

from __future__ import annotations

import csv
import json
import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from concordant.apps.commands import main
from concordant.io.read import read
from concordant.io.store.catalogue import read_catalogue

MONDAY = "winner,loser\na,b\nb,a\na,c\nb,c\n"
TUESDAY = "winner,loser\nc,b\na,b\n"


@pytest.fixture(name="days")
def _days(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two logs, where the command is run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "monday.csv").write_text(MONDAY)
    (tmp_path / "tuesday.csv").write_text(TUESDAY)
    return tmp_path


@pytest.fixture(name="run")
def _run(capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*arguments: object, status: int = 0) -> tuple[str, str]:
        """Run in this process; return stdout and stderr. Whatever fails says one line."""
        found = 0
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as stop:
            found = int(stop.code or 0)
        out = capsys.readouterr()
        assert found == status, out.err
        if status:
            assert out.err.splitlines()[-1].startswith("error: ")
            assert sum(line.startswith("error: ") for line in out.err.splitlines()) == 1
        return out.out, out.err

    return run


def facts(text: str) -> dict[str, str]:
    return {row["fact"]: row["value"] for row in csv.DictReader(StringIO(text))}


def test_logs_are_taken_in_once_each(days: Path, run: Any) -> None:
    _, said = run("ingest", "monday.csv", "tuesday.csv", "--store", "s")
    assert [line.rpartition(" in ")[0] for line in said.splitlines()] == [
        "monday.csv: taken in, 4 rows",
        "tuesday.csv: taken in, 2 rows",
    ]
    assert "comparisons, 1 query, 3 items, 2 judgments, 2 distinct, 0 ties" in said
    _, said = run("ingest", "tuesday.csv", "monday.csv", "-s", "s")
    assert said.splitlines() == [f"{day}.csv: known already, nothing taken in" for day in ("tuesday", "monday")]
    (days / "copy.csv").write_text(MONDAY)
    assert run("ingest", "copy.csv", "-s", "s")[1] == "copy.csv (as monday.csv): known already, nothing taken in\n"
    assert run("ingest", "copy.csv", "-s", "s", "--quiet") == ("", "")
    assert read("s") == read("monday.csv") + read("tuesday.csv")


def test_a_log_that_fails_leaves_those_before_it(days: Path, run: Any) -> None:
    (days / "bad.csv").write_text("winner,loser\na,a\nc,a\n")
    _, said = run("ingest", "monday.csv", "bad.csv", "tuesday.csv", "-s", "s", status=2)
    assert said.splitlines()[0].startswith("monday.csv: taken in")
    assert said.splitlines()[1] == "error: bad.csv: 1 of 2 rows compare an item with itself (line 2: 'a')."
    assert read("s") == read("monday.csv")
    _, said = run("ingest", "monday.csv", "bad.csv", "tuesday.csv", "-s", "s", "--on-error", "skip")
    assert [line.split(": ")[0] for line in said.splitlines()] == ["monday.csv", "skipped", "bad.csv", "tuesday.csv"]
    assert len(read("s")) == 7


def test_a_folder_says_what_it_left_out(days: Path, run: Any) -> None:
    (days / "logs").mkdir()
    (days / "monday.csv").rename(days / "logs" / "monday.csv")
    run("ingest", "logs", "-s", "s")
    (days / "tuesday.csv").rename(days / "logs" / "tuesday.csv")
    _, said = run("ingest", "logs", "-s", "s")
    assert said.splitlines()[0].startswith("logs: taken in, 2 rows")
    assert said.splitlines()[1] == "logs: left out, known already: 'logs/monday.csv'"


@pytest.mark.parametrize("command", [["rank"], ["rank", "--pool"], ["audit", "--replicates", "0"]])
def test_a_store_stands_in_the_place_of_a_log(days: Path, run: Any, command: list[str]) -> None:
    (days / "both.csv").write_text(MONDAY + TUESDAY.partition("\n")[2])
    run("ingest", "monday.csv", "tuesday.csv", "-s", "prefs.duckdb", "-q")
    ours, _ = run(*command, "prefs.duckdb", "-q")
    theirs, _ = run(*command, "both.csv", "-q")
    assert ours == theirs != ""
    run("store", "compact", "prefs.duckdb", "-q")
    assert run(*command, "prefs.duckdb", "-q") == (theirs, "")


def test_a_model_is_fitted_to_a_store(days: Path, run: Any) -> None:
    (days / "items.csv").write_text("item,size\na,3\nb,2\nc,1\n")
    (days / "both.csv").write_text(MONDAY + TUESDAY.partition("\n")[2])
    run("ingest", "monday.csv", "tuesday.csv", "-s", "s", "-q")
    scores = []
    for log in ("s", "both.csv"):
        run("fit", log, "--features", "items.csv", "--model", f"model-{log}", "-q")
        scores.append(run("score", "--model", f"model-{log}", "--features", "items.csv", "-q")[0])
    assert scores[0] == scores[1]


def test_an_output_may_not_be_the_store(days: Path, run: Any) -> None:
    run("ingest", "monday.csv", "-s", "s.csv", "-q")
    before = (days / "s.csv").read_bytes()
    assert "is the log itself" in run("rank", "s.csv", "-o", "s.csv", status=2)[1]
    assert "is the store itself" in run("store", "export", "s.csv", "-o", "s.csv", status=2)[1]
    assert "is the store itself" in run("store", "info", "s.csv", "-o", "s.csv", status=2)[1]
    assert (days / "s.csv").read_bytes() == before


def test_info(days: Path, run: Any) -> None:
    run("ingest", "monday.csv", "tuesday.csv", "-s", "s", "-q")
    said = facts(run("store", "info", "s")[0])
    assert {name: said[name] for name in ("kind", "logs", "judgments", "segments", "cluster", "revision")} == {
        "kind": "comparisons",
        "logs": "2",
        "judgments": "6",
        "segments": "2",
        "cluster": "none",
        "revision": "2",
    }
    listed = list(csv.DictReader(StringIO(run("store", "info", "s", "--batches")[0])))
    assert [(row["name"], row["rows"], row["files"]) for row in listed] == [
        ("monday.csv", "4", "1"),
        ("tuesday.csv", "2", "1"),
    ]
    run("store", "info", "s", "-o", "info.json")
    assert {row["fact"]: row["value"] for row in json.loads((days / "info.json").read_text())} == said


def test_verify_compact_and_export(days: Path, run: Any) -> None:
    run("ingest", "monday.csv", "tuesday.csv", "-s", "s", "-q")
    (days / "s.parts" / ".segment-000009-dead.parquet.new").write_text("cut sh")
    _, said = run("store", "verify", "s")
    assert said.splitlines()[0].startswith("s: all is as it was written: 6 judgments of 2 logs in 2 segments")
    assert "harmless leftovers" in said.splitlines()[1]
    expected = read("s")
    _, said = run("store", "compact", "s")
    assert said.startswith("s: 2 → 1 segments, 6 → 5 rows, ")
    assert run("store", "compact", "s")[1] == "s: one segment already\n"
    assert run("store", "verify", "s", "--quiet") == ("", "")
    assert sorted(path.suffix for path in (days / "s.parts").iterdir()) == [".json", *[".parquet"] * 3]  # two, one sum
    for ending in ("parquet", "csv", "tsv", "arrow"):
        assert run("store", "export", "s", "-o", f"out.{ending}")[1].splitlines() == [
            f"wrote out.{ending}",
            f"wrote _out.{ending}.known.json: the files that the store knows, for ingest",
        ]
        assert read(f"out.{ending}") == expected == read("s")
    segment = days / "s.parts" / read_catalogue(days / "s").sums[0].file
    segment.write_bytes(segment.read_bytes()[:-1])
    for command in (["store", "verify", "s"], ["rank", "s"], ["store", "export", "s", "-o", "out.csv"]):
        assert "was changed since it was written" in run(*command, status=2)[1]


@pytest.mark.usefixtures("days")
def test_many_segments_are_worth_a_note(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("concordant.apps.commands.store.MANY", 2)
    run("ingest", "monday.csv", "tuesday.csv", "-s", "s", "-q")
    assert run("store", "info", "s")[1] == "note: 2 segments; concordant store compact s merges them\n"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["ingest", "monday.csv"], "Missing option '--store'"),
        (["ingest", "-s", "s"], "Missing argument 'LOG...'"),
        (["ingest", "mondy.csv", "-s", "s"], "no file mondy.csv; did you mean 'monday.csv'?"),
        (["ingest", "monday.csv", "-s", "no/s"], "the folder .*no does not exist"),
        (["ingest", "monday.csv", "-s", "tuesday.csv"], "tuesday.csv: the file is no store"),
        (["ingest", "monday.csv", "-s", "s", "--neutral", "n"], "add --home"),
        (["ingest", "monday.csv", "-s", "s", "--wait", "-1"], "--wait"),
        (["ingest", "monday.csv", "-s", "s", "--cluster", "worker"], "no column 'worker'"),
        (["store", "info", "s"], "s: there is no store"),
        (["store", "verify", "monday.csv"], "monday.csv: the file is no store"),
        (["store", "export", "s"], "Missing option '--output'"),
        (["store", "export", "s", "-o", "x.json"], "unknown ending '.json'; allowed: .parquet, .csv, .tsv, .arrow"),
        (["store", "compac", "s"], "No such command 'compac'"),
        (["rank", "s.store"], "no file s.store"),
    ],
)
def test_one_line_for_every_mistake(days: Path, run: Any, arguments: list[str], why: str) -> None:

    assert re.search(why, run(*arguments, status=2)[1])
    assert sorted(path.name for path in days.iterdir()) == ["monday.csv", "tuesday.csv"]


# -- real data -------------------------------------------------------------------------------------------------------
def test_football_with_an_advantage_at_home(days: Path, run: Any, shared_data: Any) -> None:
    lines = (shared_data("international_football") / "results.csv").read_text(encoding="utf-8").splitlines(True)
    (days / "all.csv").write_text("".join(lines), encoding="utf-8")
    names = []
    for number, begin in enumerate(range(1, len(lines), 20_000)):
        names.append(f"part{number}.csv")
        (days / names[-1]).write_text("".join([lines[0], *lines[begin : begin + 20_000]]), encoding="utf-8")
    home = ["--home", "--neutral", "neutral"]
    run("ingest", *names, "-s", "s", *home, "-q")
    found, _ = run("rank", "s", "--interval", "none", "-q")
    assert found == run("rank", "all.csv", *home, "--interval", "none", "-q")[0] != ""
    assert run("rank", "s", "--home", "--interval", "none", "-q")[0] == found
    assert "keeps the covariates 'home'" in run("ingest", "all.csv", "--grown", "-s", "s", status=2)[1]


@pytest.mark.usefixtures("days")
def test_votes_with_their_workers(run: Any, shared_data: Any) -> None:
    votes = shared_data("llmfao") / "crowd-comparisons.csv"
    run("ingest", votes, "-s", "s", "--cluster", "worker", "--query", "prompt", "-q")
    options = ["--interval", "sandwich", "-q", "--cluster", "worker"]
    assert run("rank", "s", *options)[0] == run("rank", votes, "--query", "prompt", *options)[0] != ""
    assert facts(run("store", "info", "s")[0])["cluster"] == "worker (texts)"


def test_ratings(days: Path, run: Any, shared_data: Any) -> None:
    lines = (shared_data("ml-latest-small") / "ratings.csv").read_text(encoding="utf-8").splitlines(True)
    whole = "".join(lines[:30_000])
    (days / "ratings.csv").write_text(whole)
    run("ingest", "ratings.csv", "-s", "s", "-q")
    assert read("s") == read("ratings.csv")
    assert run("store", "verify", "s", "-q") == ("", "")
