"""Labels that a spreadsheet would run as formulas: kept as they are, and with --spreadsheet-safe shown, not run."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from pathlib import Path
from random import Random
from typing import Any

import pytest

import concordant as cc
from running import exit_status

LABELS = [
    *("=cmd|'/C calc'!A0", "=1+1", "@SUM(1)", "+1", "-1", "-", "'=x", "''=x", "'", "''", "'x", "x", "x=1", " =x"),
    *(
        "\t=x",
        "\r=x",
        "\n=x",
        "'\t",
        "＝1",
        "－1",
        "'＋",
        '=HYPERLINK("http://x","y")',
        "-1.5",
        "1,5",
        "é",
        "=\u0000"[:1],
    ),
]
TRIGGERS = tuple("=+-@\t\r\n＝＋－＠")


def unescaped(text: str) -> str:
    """The rule of docs/logs.md as it stands there."""
    return re.sub(r"^'('*[=+\-@\t\r\n＝＋－＠])", r"\1", text)


def votes(folder: Path, labels: list[str]) -> Path:
    """A log in which each of the labels wins against the next."""
    made = folder / "votes.jsonl"
    pairs = itertools.pairwise(labels)
    made.write_text("".join(json.dumps({"query": "=q", "winner": a, "loser": b}) + "\n" for a, b in pairs))
    return made


def rows(text: str, delimiter: str = ",") -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter))


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_texts_are_shown_and_come_back_and_numbers_stay(tmp_path: Path, ending: str) -> None:
    log = votes(tmp_path, LABELS)
    plain, safe = tmp_path / f"plain.{ending}", tmp_path / f"safe.{ending}"
    assert exit_status("rank", log, "-o", plain, "-q") == 0
    assert exit_status("rank", log, "-o", safe, "-q", "--spreadsheet-safe") == 0
    delimiter = "\t" if ending == "tsv" else ","
    before, after = (rows(path.read_bytes().decode(), delimiter) for path in (plain, safe))
    assert {row["item"] for row in before} == set(LABELS)  # a label is data, and stays as it is
    assert len(before) == len(after) == len(LABELS)
    for one, other in zip(before, after):
        assert not other["item"].startswith(TRIGGERS) and other["query"] == "'=q"
        assert unescaped(other["item"]) == one["item"] and unescaped(other["query"]) == one["query"]
        assert {name: one[name] for name in one if name not in ("item", "query")} == {
            name: other[name] for name in other if name not in ("item", "query")
        }
        formula = re.match(r"'*[=+\-@\t\r\n＝＋－＠]", one["item"])
        assert (other["item"] == f"'{one['item']}") if formula else (other["item"] == one["item"])
    assert any(float(row["score"]) < 0 for row in after)


def test_the_rule_is_reversible_for_any_text(tmp_path: Path, capfdbinary: Any) -> None:
    random = Random(10)
    drawn = {"".join(random.choice("=+-@\t\r\n'ab \"") for _ in range(random.randrange(1, 6))) for _ in range(400)}
    labels = sorted(text for text in drawn if text.strip())
    assert exit_status("rank", votes(tmp_path, labels), "-q", "--spreadsheet-safe") == 0
    found = [row["item"] for row in rows(capfdbinary.readouterr().out.decode())]
    assert len(set(found)) == len(labels) and {unescaped(text) for text in found} == set(labels)
    assert not [text for text in found if text.startswith(TRIGGERS)]


def test_without_the_option_files_are_read_again_as_they_were_written(tmp_path: Path, capsys: Any) -> None:
    """score → evaluate: nothing is escaped unless it is asked for, so joins hold."""
    items = ["=a", "+b", "-c", "@d"]
    table = {"item": items, "x": [1.0, 2.0, 3.0, 4.0]}
    ranker = cc.EdgeRanker("ranknet").fit(table, cc.Preferences.from_comparisons(items[1:], items[:-1]))
    cc.save_model(ranker, tmp_path / "model")
    (tmp_path / "items.csv").write_text("item,x\n" + "".join(f"{i},{x}\n" for i, x in zip(items, table["x"])))
    (tmp_path / "labels.csv").write_text("item,label\n" + "".join(f"{i},{k}\n" for k, i in enumerate(items)))
    scores = tmp_path / "scores.csv"
    shared = ["-m", tmp_path / "model", "-f", tmp_path / "items.csv", "-q", "-o", scores]
    assert exit_status("score", *shared) == 0
    assert exit_status("evaluate", scores, tmp_path / "labels.csv", "--metric", "ndcg", "-q") == 0
    assert rows(capsys.readouterr().out)[0]["mean"] == "1"
    assert exit_status("score", *shared, "--spreadsheet-safe") == 0  # escaped labels are others: a refusal, no number
    assert exit_status("evaluate", scores, tmp_path / "labels.csv", "--metric", "ndcg", "-q") == 2
    assert "no row" in (said := capsys.readouterr().err) or "match" in said


@pytest.mark.parametrize("ending", ["json", "jsonl", "parquet", "arrow"])
def test_where_no_csv_is_written_the_option_is_refused(tmp_path: Path, capsys: Any, ending: str) -> None:
    log = votes(tmp_path, LABELS)
    assert exit_status("rank", log, "-o", tmp_path / f"x.{ending}", "--spreadsheet-safe") == 2
    said = capsys.readouterr().err
    assert said.startswith("error: --spreadsheet-safe is for CSV and TSV; here ") and said.count("\n") == 1
    assert not (tmp_path / f"x.{ending}").exists()


def test_audit_and_evaluate_have_it_too(tmp_path: Path, capfdbinary: Any) -> None:
    log = votes(tmp_path, ["a", "b", "c"])
    assert exit_status("audit", log, "-q", "--spreadsheet-safe") == 0
    assert rows(capfdbinary.readouterr().out.decode())[0]["query"] == "'=q"
    (tmp_path / "s.csv").write_text("query,item,score\n=q,a,1\n=q,b,0\n")
    (tmp_path / "l.csv").write_text("query,item,label\n=q,a,1\n=q,b,0\n")
    command = ["evaluate", tmp_path / "s.csv", tmp_path / "l.csv", "--metric", "ndcg", "--per-query", "-q"]
    for option, query in (([], "=q"), (["--spreadsheet-safe"], "'=q")):
        assert exit_status(*command, *option) == 0
        assert rows(capfdbinary.readouterr().out.decode())[0]["query"] == query
