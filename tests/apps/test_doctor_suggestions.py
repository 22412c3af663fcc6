"""Every command line that ``concordant doctor`` prints does what it says: it runs, and exits with 0."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from running import exit_status
from seeds import seed

ITEMS = "wxyz"


def table(header: str, rows: list[tuple[Any, ...]]) -> str:
    return header + "\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)


def votes(random: Random, number: int, *more: Callable[[int], Any], items: str = ITEMS) -> list[tuple[Any, ...]]:
    """Rows of the two sides, who won, and what ``more`` says of each row."""
    return [
        (*random.sample(items, 2), random.choice(["model_a", "model_b", "tie"]), *(one(at) for one in more))
        for at in range(number)
    ]


def judged(random: Random, name: str = "prompt") -> str:
    """Three judges on the one pair of each of 40 prompts."""
    rows = []
    for prompt in range(40):
        pair = random.sample(ITEMS, 2)
        rows += [(f"p{prompt}", f"j{judge}", *pair, random.choice(["model_a", "model_b", "tie"])) for judge in range(3)]
    return table(f"{name},judge,model_a,model_b,winner", rows)


def answers(random: Random) -> str:
    """Votes on texts of answers, several a prompt."""
    rows = []
    for number in range(120):
        one, other = random.sample(range(3), 2)
        sides = {"chosen": f"answer {one} to {number % 12}", "rejected": f"answer {other} to {number % 12}"}
        rows.append({"prompt": f"question {number % 12}?", **sides, "annotator": number // 30})
    return "".join(json.dumps(row) + "\n" for row in rows)


def clicks(random: Random, length: int) -> str:
    """Lists of so many items; the first ones are clicked more often."""
    rows = []
    for session in range(200):
        shown = random.sample("abcdef", length)
        for place, item in enumerate(shown, 1):
            at = place if length > 1 else session % 4 + 1
            rows.append((f"s{session}", at, item, int(random.random() < 0.6 / at)))
    return table("session,position,item,clicked", rows)


MAKERS: dict[str, Callable[[Random], str]] = {
    "judges-and-prompts.csv": judged,
    "judges-and-questions.csv": lambda random: judged(random, "question_id"),
    "judges-and-queries.csv": lambda random: judged(random, "query"),
    "judges-and-tasks.csv": lambda random: table(
        "model_a,model_b,winner,worker,task",
        votes(random, 300, lambda at: f"w{at % 7}", lambda _: random.randrange(5)),
    ),
    "plain.csv": lambda random: table("model_a,model_b,winner", votes(random, 80)),
    "winner-and-loser.csv": lambda random: table("winner,loser", [tuple(random.sample(ITEMS, 2)) for _ in range(60)]),
    "one-a-question.csv": lambda random: table(
        "model_a,model_b,winner,question_id", votes(random, 80, lambda at: f"q{at}")
    ),
    "of-queries.csv": lambda random: table(
        "query,winner,loser", [(f"q{at % 4}", *random.sample(f"{at % 4}abc", 2)) for at in range(80)]
    ),
    "times-and-groups.csv": lambda random: table(
        "model_a,model_b,winner,judge,prompt,language,date",
        votes(random, 300, lambda at: f"j{at % 9}", lambda at: f"p{at % 11}", lambda _: random.choice(["en", "de"]),
              lambda at: f"2026-01-{at % 28 + 1:02}"),
    ),
    "with-ids.csv": lambda random: table(
        "model_a,model_b,winner,vote_id,judge",
        [*(rows := votes(random, 80, lambda at: f"v{at}", lambda at: f"j{at % 5}")), *rows[:9]],
    ),
    "with-wrong-rows.csv": lambda random: table(
        "model_a,model_b,winner,judge",
        [*votes(random, 80, lambda at: f"j{at % 5}"), ("w", "x", "model_c", "j1"), ("w", "w", "tie", "j2")],
    ),
    "other-names.csv": lambda random: table("first model,second model,verdict,judge,prompt", [
        (*random.sample(["gpt 4", "claude", "llama"], 2), random.choice(["A", "B", "tie"]), f"j{at % 4}", at % 6)
        for at in range(90)
    ]),
    "answers.jsonl": answers,
    "wide-ballots.csv": lambda random: table(
        "rank1,rank2,rank3,voter", [(*random.sample(ITEMS, 3), f"v{at}") for at in range(40)]
    ),
    "long-ballots.csv": lambda random: table("judgment,item,rank", [
        (at, item, place) for at in range(40) for place, item in enumerate(random.sample(ITEMS, 3), 1)
    ]),
    "ballots-of-prompts.csv": lambda random: table("prompt_id,judge,item,rank", [
        (at % 6, f"j{at // 6}", item, place)
        for at in range(48) for place, item in enumerate(random.sample(ITEMS, 4), 1)
    ]),
    "best-and-worst.csv": lambda random: table("option1,option2,option3,best,worst", [
        (*(some := random.sample(ITEMS, 3)), some[0], some[2]) for _ in range(40)
    ]),
    "ratings.csv": lambda random: table("user,item,rating", [
        (f"u{user}", item, random.randint(1, 5)) for user in range(30) for item in random.sample("abcdef", 3)
    ]),
    "ratings-of-queries.csv": lambda random: table("query,item,rating", [
        (query, f"{query}-{item}", random.randint(1, 5)) for query in range(10) for item in range(5)
    ]),
    "clicks.csv": lambda random: clicks(random, 4),
    "clicks-alone.csv": lambda random: clicks(random, 1),
    "choices.csv": lambda random: table("session,item,chosen", [
        (at, item, int(place == 0)) for at in range(60) for place, item in enumerate(random.sample("abcde", 3))
    ]),
    "features.csv": lambda random: table(
        "item,length,price", [(item, random.random(), random.randint(1, 9)) for item in ITEMS]
    ),
    "scores-of-a-ranker.csv": lambda _: table("query,item,score,rank", [
        (query, item, 1 / place, place) for query in (1, 2) for place, item in enumerate(ITEMS, 1)
    ]),
    "labels.letor": lambda random: "".join(
        f"{random.randint(0, 2)} qid:{query} 1:{random.random():.3f} 2:{random.random():.3f}\n"
        for query in range(12) for _ in range(6)
    ),
    "labels.qrels": lambda random: "".join(
        f"{query} 0 {item} {random.randint(0, 2)}\n" for query in (1, 2) for item in ITEMS
    ),
    "lists.run": lambda _: "".join(
        f"{query} Q0 {item} {place} {9 - place} mine\n" for query in (1, 2) for place, item in enumerate(ITEMS, 1)
    ),
    "board.csv": lambda random: table(
        "model,arc,boolq,mmlu", [(f"m{at}", *(round(random.random(), 3) for _ in range(3))) for at in range(6)]
    ),
    "board-without-tasks.csv": lambda random: table("model,accuracy,dataset_name,shots", [
        (f"m{at}", round(random.random(), 3), name, 5) for at in range(4) for name in ("arc", "boolq", "mmlu")
    ]),
    "recognisers.csv": lambda _: table(
        "model,Average,clean WER,noisy WER", [("a", 3.5, 2, 5), ("b", 5, 4, 6), ("c", 7, 6, 8)]
    ),
}  # fmt: skip
"""Files by their names, each of a kind of its own."""


def stand_ins(random: Random) -> dict[str, str]:
    """What stands for the words in capitals of a command: a file of what it asks for."""
    known = [*ITEMS, *"abcdef", "gpt 4", "claude", "llama", *(f"q{at}" for at in range(4)), *"0123"]
    known += [f"answer {one} to {prompt}" for one in range(3) for prompt in range(12)]
    Path("SCORES.csv").write_text(table("item,score", [(item, random.random()) for item in known]))
    Path("FEATURES.csv").write_text(table("item,x,y", [(item, random.random(), random.random()) for item in known]))
    Path("LABELS.csv").write_text(
        table("query,item,label", [(query, item, random.randint(0, 2)) for query in (1, 2) for item in ITEMS])
    )
    Path("LOG.csv").write_text(table("winner,loser", [tuple(random.sample(ITEMS, 2)) for _ in range(60)]))
    Path("QRELS.qrels").write_text(MAKERS["labels.qrels"](random))
    for name in ("OTHER.run", "RUN.run"):
        Path(name).write_text(MAKERS["lists.run"](random).replace("mine", "other"))
    names = {"SCORES": "SCORES.csv", "FEATURES": "FEATURES.csv", "LABELS": "LABELS.csv", "LOG": "LOG.csv"}
    return names | {"QRELS": "QRELS.qrels", "RUN": "RUN.run"}


@pytest.mark.parametrize("name", MAKERS)
def test_every_command_that_doctor_prints_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    random = Random(seed(0))
    Path(name).write_text(MAKERS[name](random))
    files = stand_ins(random)
    assert exit_status("doctor", name) == 0
    printed = [line[2:] for line in capsys.readouterr().out.splitlines() if line.startswith("  concordant ")]
    assert printed
    for line in printed:
        words = [files.get(word, word) for word in shlex.split(line)[1:]]
        assert exit_status(*words) == 0, f"{line}\n{capsys.readouterr().err}"
        capsys.readouterr()


SUGGESTED = {
    "rank": ("judge", "prompt"),
    "rank --structure kemeny": ("judge",),
    "rank --structure kemeny --cluster judge": (),
    "rank --interval bootstrap": ("judge",),
    "rank --interval hessian": (),
    "rank --time date --moving": (),
    "compare": ("judge", "prompt"),
    "compare OTHER.csv": ("judge",),
    "compare OTHER.csv --cluster judge": (),
    "compare --by judge --values j0 j1": ("prompt",),
    "report -o page.html": ("judge",),
    "report -o page.html --cluster judge": (),
    "audit": ("judge",),
    "evaluate": ("judge", "prompt"),
}
"""Commands, and the columns of clusters that their notes suggest."""


@pytest.mark.parametrize("command", SUGGESTED)
def test_notes_suggest_what_the_command_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    random = Random(seed(0))
    header = "model_a,model_b,winner,judge,prompt,date"
    for name in ("votes.csv", "OTHER.csv"):
        more = (lambda at: f"j{at % 9}", lambda at: f"p{at % 11}", lambda at: f"2026-01-{at % 28 + 1:02}")
        Path(name).write_text(table(header, votes(random, 300, *more)))
    stand_ins(random)
    name, *rest = command.split()
    words = [name, *(["SCORES.csv"] if name == "evaluate" else []), "votes.csv", *rest]
    assert exit_status(*words) == 0
    said = capsys.readouterr().err
    asked = [part for column in SUGGESTED[command] for part in ("--cluster", column)]
    found = {line.split("not used: ")[1].split(" allows")[0] for line in said.splitlines() if "not used: " in line}
    assert found == ({" ".join(asked)} if asked else set())
    if name == "report" and asked:
        assert "--cluster judge allows" in Path("page.html").read_text()
        assert "--cluster judge --cluster prompt" not in Path("page.html").read_text()
    assert exit_status(*words, *asked) == 0, capsys.readouterr().err


def test_what_semicolons_separate_is_said_by_every_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for text in (
        "left;right;winner\na;b;left\n",
        "left;right;winner;note\na;b;left;good, really\n",
        "model;arc;boolq\na;0,5;0,75\nb;0,3;0,9\n",
        '"left";"right";"winner"\n"a";"b";"left"\n',
        "left;right;winner;note, if any\na;b;left;good\n",
    ):
        Path("x.csv").write_text(text)
        commands = ["doctor", "rank", "rank --cluster judge", "ingest --store s", "ingest --store s --cluster judge"]
        for command in (*commands, "scores", "judges", "audit"):
            name, *rest = command.split()
            assert exit_status(name, "x.csv", *rest) == 2
            out, err = capsys.readouterr()
            assert "separated by ';'" in err or "separated by semicolons" in err, (text, command, err)
            assert "a .csv file has commas, a .tsv file tabs" in err
            assert "Invalid Input Error" not in out + err and "could not be looked at" not in out


def test_rankings_by_one_person_each_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("ratings.csv", "ratings-of-queries.csv"):
        Path(name).write_text(MAKERS[name](Random(seed(0))))
    said = (
        "each of the 30 queries ('user') is ranked by itself, most by one list of ratings, while the same 6 items recur"
    )
    for words, wanted in (
        (["rank", "ratings.csv"], True),
        (["rank", "ratings.csv", "--pool"], False),
        (["rank", "ratings.csv", "--no-pool"], False),
        (["rank", "ratings-of-queries.csv"], False),
    ):
        assert exit_status(*words) == 0
        err = capsys.readouterr().err
        assert (f"{said}: --pool makes one ranking of all" in err) == wanted, err
        assert wanted or "is ranked by itself" not in err
