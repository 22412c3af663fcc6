"""Standard streams that are closed, full, or lose their reader: no traceback, nothing lost, the work is done."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

import concordant as cc
from hostile import good_files, good_folder
from running import exit_status

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="redirections of Unix shells")
PRINTS = [
    "rank votes.csv",
    "audit votes.csv --replicates 0",
    "score -m model -f features.csv",
    "score -m model -f features.parquet --stream",
    "evaluate scores.csv labels.csv",
    "store info s.store",
    "counterexample theorem-3",
    "--help",
    "rank --help",
    "--version",
]
"""Commands whose result goes to standard output."""
WRITES = {
    "rank votes.csv -o made.csv": "made.csv",
    "rank votes.csv -o made.parquet": "made.parquet",
    "audit votes.csv -o audit.json --edges edges.csv": "edges.csv",
    "fit votes.csv -f features.csv -m made": "made/hashes.json",
    "score -m model -f features.csv -o scored-items.csv": "scored-items.csv",
    "report votes.csv -o made.html": "made.html",
    "export -m model --to json -o made.json --card made.md": "made.md",
    "ingest votes.csv weights.csv --store made.store": "made.store",
    "store export s.store -o exported.csv": "exported.csv",
    "counterexample theorem-3 -o wrong": "wrong/right.csv",
}
"""Commands whose result goes to a file, and the last file that they write."""
ERRORS = ["rank nosuch.csv", "rank", "nosuch", "rank votes.csv --no-such"]
DRIVER = """
import json, os, sys
from concordant.apps.commands import main
found = []
for line in json.loads(sys.argv[1]):
    sys.argv[1:] = line.split()
    if sys.stderr is not None:
        try:
            print("==", line, file=sys.stderr, flush=True)
        except OSError:
            pass
    try:
        main()
        found.append(0)
    except SystemExit as stop:
        found.append(stop.code)
with open("statuses.json", "w") as file:
    json.dump(found, file)
"""
"""Run command lines as a process of their own does, one after another: starting Python takes longer than they do."""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, data in good_files().items():
        Path(name).write_bytes(data)
    for kind in ("model", "s.store"):
        for name, data in good_folder(kind).items():
            Path(name).parent.mkdir(exist_ok=True)
            Path(name).write_bytes(data)
    Path("driver.py").write_text(DRIVER)
    return tmp_path


def run(lines: list[str], redirection: str) -> tuple[list[int], bytes, dict[str, str]]:
    """Return the exit status of each command, all of stdout, and what stderr has of each command."""
    line = f"'{sys.executable}' driver.py '{json.dumps(lines)}' {redirection}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, timeout=300, check=False)
    assert b"Traceback" not in done.stderr and b"Exception ignored" not in done.stderr, done.stderr.decode()
    said = {part.split("\n", 1)[0]: part.split("\n", 1)[1] for part in done.stderr.decode().split("== ")[1:]}
    return json.loads(Path("statuses.json").read_text()), done.stdout, said


def test_results_for_a_stdout_that_takes_nothing() -> None:
    """Closed or full: one line says so, exit status 2."""
    for redirection, why in ((">&-", "closed"), ("> /dev/full", "No space left")):
        statuses, _, said = run(PRINTS, redirection)
        assert statuses == [2] * len(PRINTS)
        for line in PRINTS:
            last = said[line].splitlines()[-1]
            assert last.startswith("error: standard output") and why in last, (line, last)
            assert said[line].count("error: ") == 1


def test_results_where_stderr_takes_nothing() -> None:
    """The exit status is that of the work, and the result is whole."""
    statuses, plain, _ = run([*PRINTS, *ERRORS], "")
    assert statuses == [0] * len(PRINTS) + [2] * len(ERRORS)
    for redirection in ("2>&-", "2> /dev/full", "<&- 2>&-"):
        assert run([*PRINTS, *ERRORS], redirection)[:2] == (statuses, plain), redirection


@pytest.mark.parametrize("redirection", [">&-", "<&- >&- 2>&-", "> /dev/full 2> /dev/full"])
def test_what_goes_to_a_file_is_written(redirection: str) -> None:
    lines = list(WRITES)
    assert run([*lines, *ERRORS], redirection)[0] == [0] * len(lines) + [2] * len(ERRORS)
    assert all(Path(name).stat().st_size > 0 for name in WRITES.values())
    assert cc.read("made.store") == cc.read("votes.csv") + cc.read("weights.csv")
    closed = Path("made.csv").read_bytes()
    assert exit_status("rank", "votes.csv", "-o", "made.csv") == 0
    assert Path("made.csv").read_bytes() == closed
    assert Path("exported.csv").read_text().startswith('"winner","loser","count"')


def test_a_reader_that_leaves(place: Path) -> None:
    """``| head -n 1``: the notes on stderr are said all the same, the exit status is 0."""
    rows = "".join(f"item {number:06},z\nz,item {number:06}\n" for number in range(20_000))
    Path("many.csv").write_text("winner,loser\n" + rows + "alone,other\n")
    items = pa.table({"item": [f"item {number:06}" for number in range(400_000)], "x": pa.array([1.0, 2.0] * 200_000)})
    pa.parquet.write_table(items, place / "many-items.parquet")
    assert exit_status(*["fit", "votes.csv", "-f", "features.csv", "--feature-columns", "x", "-m", "one", "-q"]) == 0
    lines = ["rank many.csv --interval none", "score -m one -f many-items.parquet"]
    lines += ["score -m one -f many-items.parquet --stream", "rank votes.csv -o made.csv"]
    statuses, first, said = run(lines, "| head -n 1")
    assert statuses == [0] * 4 and first.count(b"\n") == 1
    assert "groups that were never compared" in said[lines[0]] and Path("made.csv").exists()


def test_a_reader_of_stderr_that_leaves() -> None:
    """Every log is taken in, although nobody hears of the second; an error is an error."""
    lines = ["ingest votes.csv weights.csv --store made.store", "ingest x.qrels --store made.store"]
    assert run(lines, "2>&1 | true")[0] == [0, 2]
    assert cc.read("made.store") == cc.read("votes.csv") + cc.read("weights.csv")


def test_in_a_process_without_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows without a console, some servers: sys.stdout is None."""
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    assert exit_status("rank", "votes.csv", "-o", "made.csv") == 0
    assert exit_status("rank", "votes.csv") == 0
    assert exit_status("rank", "nosuch.csv") == 2
    assert sys.stdout is None
