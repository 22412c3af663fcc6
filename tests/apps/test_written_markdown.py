"""Tables as Markdown: every ``-o F.md`` is one, its notes have the words of the command line."""

import re

import pyarrow as pa
import pytest

from concordant.apps.commands import main
from concordant.apps.commands.output import write, write_parts

VOTES = "winner,loser,prompt\n" + "a|b,c,p\n" * 30 + "c,a|b,q\n" * 9 + "c,d,p\n" * 30 + "d,c,q\n" * 8 + "d,a|b,p\n" * 30


def columns(line):
    return len(re.findall(r"(?<!\\)\|", line))


@pytest.mark.parametrize(
    "arguments",
    [
        ["rank"],
        ["compare"],
        ["audit", "--replicates", "0"],
        ["compare", "--ranks", "tiers"],
        ["rank", "--interval", "none"],
    ],
    ids=" ".join,
)
def test_tables_of_commands(tmp_path, arguments):
    log, made = tmp_path / "votes.csv", tmp_path / "made.md"
    log.write_text(VOTES)
    main([arguments[0], str(log), *arguments[1:], "-o", str(made)])
    lines = [line for line in made.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    assert len(lines) > 2 and len({columns(line) for line in lines}) == 1 and set(lines[1]) <= set("|-:")
    assert not re.search(r"\w=['\"(\w]|\bNone\b|\bTrue\b", made.read_text(encoding="utf-8").replace("p = ", ""))


def test_notes_in_the_file_name_options(tmp_path):
    log, made = tmp_path / "votes.csv", tmp_path / "made.md"
    log.write_text(VOTES)
    main(["rank", str(log), "-o", str(made)])
    assert "--structure kemeny" in made.read_text(encoding="utf-8")


def test_values(tmp_path):
    table = pa.table({"x": [0.5, None, float("inf")], "y": [True, False, None], "z": ["a\nb", "<i>", "é"]})
    write(table, str(tmp_path / "x.md"))
    assert (tmp_path / "x.md").read_text(encoding="utf-8").splitlines() == [
        "| x | y | z |", "|---:|---|---|", "| 0.5000 | yes | a\\\\nb |", "| – | no | \\<i\\> |", "| inf | – | é |",
    ]  # fmt: skip
    write_parts([table, table], str(tmp_path / "twice.md"))
    assert len((tmp_path / "twice.md").read_text(encoding="utf-8").splitlines()) == 2 + 6
