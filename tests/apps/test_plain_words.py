"""What people read on the command line has no Python in it: no keyword of a function, no None, True or False."""

from __future__ import annotations

import ast
import re
from contextlib import suppress
from pathlib import Path

import pytest

import concordant
from concordant.apps.commands import main

PACKAGE = Path(concordant.__file__).parent
KEYWORD = re.compile(r"(?<![\w.\-/<: '])\b[a-z]\w*=(?:…|'|\"|None\b|True\b|False\b|\[|\{|\)|$)|\([a-z]\w*=")
ONLY_PYTHON = {
    "abstention/ranker.py": "a ranker that was made in Python",
    "apps/commands/regressors.py": "--regressor-options takes KEY=VALUE",
    "apps/spark/frames.py": "a frame of Spark",
    "io/engines/spark_session.py": "a session of Spark",
    "learning/features/normalising.py": "moments that were given",
    "learning/rankers/aggregation.py": "a ranker that was made in Python",
    "learning/rankers/judged.py": "rows of a matrix",
    "learning/rankers/validation.py": "shapes, as scikit-learn says them",
    "ranking/rank.py": "repr of a ranking",
    "torch/fitting.py": "tensors",
}
"""Files whose messages only whoever calls functions can see, and why."""
PYTHON = re.compile(r"\w=['\"\w{[]|\b(?:None|True|False)\b|\w\(\)")


def sentences(file: Path) -> list[str]:
    """Texts of a file that are no docstrings and have more than one word."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return [node.value for node in texts if id(node) not in docs and " " in node.value]


def test_messages_name_parameters_as_settings() -> None:
    """A parameter in a message is a ``Setting``, which a command writes as its option."""
    found: dict[str, list[str]] = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        name = file.relative_to(PACKAGE).as_posix()
        wrong = [text for text in sentences(file) if KEYWORD.search(text) and not re.search(r"<\w|=\"|SELECT", text)]
        if wrong and name not in ONLY_PYTHON:
            found[name] = wrong
    assert not found


VOTES = "winner,loser,prompt,worker,tie,when,longer\n" + "".join(
    f"{a},{b},p{n % 3},w{n % 5},{'true' if n % 7 == 0 else 'false'},2026-01-{1 + n % 28:02d},{n % 4}\n"
    for n, (a, b) in enumerate([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("e", "f")] * 20)
)


@pytest.mark.parametrize(
    "words",
    [
        "rank votes.csv",
        "rank votes.csv --query prompt --structure kemeny",
        "rank votes.csv --structure borda --min-judgments 3",
        "rank votes.csv --interval none --level 0.9",
        "rank votes.csv --prior 0",
        "rank votes.csv --time when --covariate longer",
        "rank votes.csv --home",
        "compare votes.csv --top 9",
        "compare votes.csv --structure counting",
        "audit votes.csv --replicates 20 --fragility",
        "audit votes.csv --query prompt --fragility",
        "look votes.csv --top 9",
        "look votes.csv --query prompt",
        "judges votes.csv",
        "judges votes.csv --judge worker --length a b",
        "report votes.csv --cluster worker --time when -o page.html",
        "report votes.csv --no-audit -o page.html",
        "report votes.csv --query prompt --home --no-audit -o page.html",
        "fit votes.csv --model m",
        "tree votes.csv",
        "explain votes.csv",
        "evaluate votes.csv --split time",
        "scores votes.csv",
        "doctor votes.csv",
    ],
)
def test_nothing_said_is_python(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("votes.csv").write_text(VOTES)
    with suppress(SystemExit):
        main(words.split())
    out, err = capsys.readouterr()
    said = err if "audit" in words or "look" in words else err + out
    if Path("page.html").exists():
        page = Path("page.html").read_text(encoding="utf-8")
        data = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
        assert data is not None
        said += " ".join(re.findall(r'"(?:notes|absent|left_out|lines)":[\[{](.*?)[\]}]', data[1]))
    lines = [line for line in said.splitlines() if PYTHON.search(re.sub(r"\b[pR]²? ?= ?[\d.e-]+", "", line))]
    assert not lines
