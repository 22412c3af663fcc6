"""The list of tests/same_answers.py asks for everything that is public, and what differs is seen. It is not run."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import concordant as cc
import same_answers
from same_answers import CALLS, COMMANDS, LEFT_OUT

LINES = [line for group in COMMANDS.values() for line in group.values()]
FUNCTIONS = [function for group in CALLS.values() for function in group.values()]


def known(*words: str) -> list[str]:
    """Return the commands that a help page lists."""
    said = subprocess.run(
        [sys.executable, "-m", "concordant", *words, "--help"], capture_output=True, text=True, check=True
    )
    return re.findall(r"^  (\w+) +\S", said.stdout.partition("Commands:\n")[2], re.MULTILINE)


def functions_there() -> list[Callable[..., Any]]:
    """Return the calls, and what they call in that file."""
    there = [inspect.unwrap(one) for one in vars(same_answers).values() if callable(one)]
    return [one for one in there if inspect.isfunction(one) and one.__module__ == same_answers.__name__]


def names_of_cc(function: Callable[[], Any]) -> set[str]:
    """Return the NAMEs of all ``cc.NAME`` in a function, and ``torch.NAME`` for those of ``cc.torch``."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name) and node.value.id == "cc":
                found.add(node.attr)
            elif ast.unparse(node.value) in ("ct", "cc.torch"):
                found.add(f"torch.{node.attr}")
    return found


def test_there_are_forty_commands_and_forty_calls() -> None:
    assert len(LINES) >= 40
    assert len(FUNCTIONS) >= 40


def test_every_command_is_on_the_list_or_left_out_for_a_reason() -> None:
    asked = {line.split()[0] for line in LINES}
    commands = known()
    assert {"rank", "fit", "store"} <= set(commands)
    assert set(commands) == asked | set(LEFT_OUT)
    assert not asked & set(LEFT_OUT)
    assert all(LEFT_OUT.values())
    assert {line.split()[1] for line in LINES if line.startswith("store ")} == set(known("store"))


def test_every_public_function_and_class_is_on_the_list() -> None:
    asked = set().union(*map(names_of_cc, functions_there()))
    public = {name for name in cc.__all__ if inspect.isclass(getattr(cc, name)) or inspect.isroutine(getattr(cc, name))}
    assert len(public) > 40
    assert not public - asked


def test_every_public_name_of_torch_is_on_the_list() -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed: the extra [torch]", exc_type=ImportError)
    asked = set().union(*map(names_of_cc, functions_there()))
    assert not {f"torch.{name}" for name in cc.torch.__all__} - asked


def test_only_public_names_are_imported() -> None:
    tree = ast.parse(Path(same_answers.__file__).read_text())
    froms = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    plain = [one.name for node in ast.walk(tree) if isinstance(node, ast.Import) for one in node.names]
    assert [name for name in (*froms, *plain) if name.startswith("concordant")] == ["concordant"]


def test_values_are_written_to_the_last_bit() -> None:
    table = pa.table({"item": ["a", None], "score": [0.1, 0.1 + 2**-56]})
    said = same_answers.listed({"x": np.array([0.1 + 0.2]), "table": table, "none": [], "words": ("a\nb", True, None)})
    assert said.splitlines() == [
        "x = float64 (1,)",
        "x[0] = 0.30000000000000004",
        "table.item[0] = 'a'",
        "table.item[1] = None",
        "table.score[0] = 0.1",
        "table.score[1] = 0.10000000000000002",
        "none = []",
        "words[0][0] = 'a'",
        "words[0][1] = 'b'",
        "words[1] = True",
        "words[2] = None",
    ]
    with pytest.raises(TypeError, match="Preferences"):
        same_answers.listed(cc.Preferences.empty())


def test_what_may_differ_is_put_aside_and_numbers_are_not() -> None:
    said = (
        f"{Path(__file__).parents[2]}/a.csv took 0.3 s at 2026-11-22T13:29:05+00:00, concordant {cc.__version__}: 0.1"
    )
    assert same_answers.settled(said) == "<repository>/a.csv took <duration> at <time>, concordant <version>: 0.1"
    for numbers in ("0.30000000000000004,10.10", "2022-07-20", "1-5  Tacos  0.917", "segment 3"):
        assert same_answers.settled(numbers) == numbers


def test_a_recording_says_what_differs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    long = "\n".join(f"row {number}" for number in range(1000))
    answer = {"rank": {"food": {"stdout": "a\n0.1\n", "stderr": ""}, "votes": {"stdout": long}}}
    monkeypatch.setattr(same_answers, "answers", lambda *_: answer)
    assert same_answers.main(["record", str(tmp_path)]) == 0
    assert same_answers.main(["compare", str(tmp_path)]) == 0
    assert "row 500" not in (tmp_path / "rank.json").read_text()
    answer["rank"]["food"]["stdout"] = "a\n0.10000000000000002\n"
    answer["rank"]["votes"] = {"stdout": long.replace("row 500", "row 501"), "file x.csv": "x"}
    answer["fit"] = {"default": {"stdout": ""}}
    capsys.readouterr()
    assert same_answers.main(["compare", str(tmp_path)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "fit/default: only now",
        "rank/food, stdout:",
        "  line 2",
        "    was 0.1",
        "    is  0.10000000000000002",
        "rank/votes, stdout:",
        "  line 501",
        "    was row 500",
        "    is  row 501",
        "rank/votes, file x.csv: only now",
        "4 answers differ, in 3 entries",
    ]


def test_what_gives_no_answer_is_not_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    broken = same_answers.run_call(lambda: 1 / 0)
    monkeypatch.setattr(same_answers, "answers", lambda *_: {"call-rank": {"board": broken}})
    assert same_answers.main(["record", str(tmp_path)]) == 2
    assert "ZeroDivisionError" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_the_shipped_votes_are_found_wherever_they_lie(tmp_path: Path) -> None:
    same_answers.prepare(tmp_path)
    assert (tmp_path / "votes.csv").read_text().startswith("id,prompt,")
    lines = {name: len((tmp_path / name).read_text().splitlines()) for name in ("votes.csv", "gpt4.csv", "food.csv")}
    assert lines == {"votes.csv": 8932, "gpt4.csv": 2140, "food.csv": 31}
