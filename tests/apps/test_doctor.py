"""What concordant doctor says of a file: its numbers against counts by hand, its commands by running them."""

from __future__ import annotations

import csv
import json
import shlex
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import concordant as cc
from concordant.apps.commands import COMMANDS
from concordant.apps.doctor.examination import Examination
from concordant.apps.doctor.examine import examine
from concordant.apps.doctor.support import recurring, supports, width
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences
from hostile import good_files, good_folder
from running import exit_status
from seeds import seed

VOTES = Path(cc.__file__).parent / "apps" / "data" / "llmfao" / "crowd-comparisons.csv"


def look(path: Path | str) -> Examination:
    return examine(path, list(COMMANDS))


def said(seen: Examination) -> str:
    return "\n".join(seen.lines())


def test_votes_are_counted_as_by_hand() -> None:
    with VOTES.open(newline="") as file:
        rows = list(csv.DictReader(file))
    people = Counter(row["worker"] for row in rows)
    seen = look(VOTES)
    found = seen.numbers
    assert seen.usable and not seen.stops
    assert found["rows"] == found["judgments"] == len(rows)
    assert found["items"] == len({row[side] for row in rows for side in ("left", "right")})
    assert found["ties"] == sum(row["winner"] == "tie" for row in rows)
    assert found["equal rows"] == len(rows) - len({tuple(row.items()) for row in rows})
    judges = {"different": len(people), "least": min(people.values()), "most": max(people.values())}
    assert judges.items() <= found["judges"].items()
    assert found["judges"]["median"] == np.median(list(people.values()))
    assert found["prompts"]["different"] == len({row["prompt"] for row in rows})


def test_rows_and_ids_that_are_there_twice(tmp_path: Path) -> None:
    random = Random(seed(0))
    drawn = [
        (f"id{number}", *random.sample("abc", 2), random.choice(["model_a", "tie"]), number) for number in range(60)
    ]
    more = [*drawn, *drawn[:7], (drawn[9][0], "a", "b", "tie", 99)]
    text = "vote_id,model_a,model_b,winner,tstamp\n" + "".join(",".join(map(str, row)) + "\n" for row in more)
    for name, data in (("x.csv", text), ("x.jsonl", _as_lines(text))):
        (tmp_path / name).write_text(data)
        seen = look(tmp_path / name)
        assert seen.numbers["equal rows"] == 7
        assert seen.numbers["identities"] == {"vote_id": 8}
    pa.parquet.write_table(
        pa.table(dict(zip(["vote_id", "model_a", "model_b", "winner", "t"], map(list, zip(*more))))),
        tmp_path / "x.parquet",
    )
    assert look(tmp_path / "x.parquet").numbers["equal rows"] == 7


def _as_lines(text: str) -> str:
    return "".join(json.dumps(row) + "\n" for row in csv.DictReader(text.splitlines()))


def test_the_width_is_that_of_a_level_board() -> None:
    """Where all items win half of their votes, Bradley–Terry's own intervals are as wide as the counts foretell."""
    random = np.random.default_rng(seed(0))
    winner, loser = [], []
    for one in range(9):
        for other in range(one):
            for _ in range(int(random.integers(0, 30)) if one - other > 1 else 5):
                winner += [f"m{one}", f"m{other}"]
                loser += [f"m{other}", f"m{one}"]
    votes = Preferences.from_comparisons(winner, loser)
    board = cc.rank(votes, prior=1e-9, interval="hessian").to_arrow().sort_by("item")
    half = (board["upper"].to_numpy() - board["lower"].to_numpy()) / 2
    foretold = width(Batch.whole(votes).graphs)
    assert foretold is not None
    assert foretold.middle == pytest.approx(np.median(half), rel=1e-5)
    assert (foretold.least, foretold.most) == pytest.approx((half.min(), half.max()), rel=1e-5)
    assert foretold.told_apart == pytest.approx(1 / (1 + np.exp(-np.sqrt(2) * np.median(half))), rel=1e-5)


def test_circles_parts_and_open_ends() -> None:
    numbers: dict[str, object] = {}
    votes = Preferences.from_comparisons([*"abcx", "a"], [*"bcay", "d"])
    lines, stops = supports(votes, numbers)
    assert numbers["items on circles"] == 3
    assert numbers["components"] == [2]
    assert (numbers["never lost"], numbers["never won"]) == (1, 2)
    assert not stops
    assert any("2 parts that were never compared" in line for line in lines)
    assert any("no circles" in line for line in supports(Preferences.from_comparisons([*"ab"], [*"bc"]), {})[0])


def test_equal_ratings_stop_it_and_are_called_so() -> None:
    equal = Preferences.from_ratings(None, [*"abab"], [5, 5, 3, 3], [*"uuvv"])
    assert supports(equal, {})[1] == [
        "no judgment prefers an item to another: whoever rated several items rated them equally"
    ]


def test_one_vote_a_query_is_pooled(tmp_path: Path) -> None:
    """Chatbot Arena's question_id is another one for nearly every vote: its rankings of two are not what is wanted."""
    random = Random(seed(0))
    text = "question_id,model_a,model_b,winner\n"
    text += "".join(
        f"q{one},{','.join(random.sample('abcd', 2))},{random.choice(['model_a', 'model_b'])}\n" for one in range(200)
    )
    (tmp_path / "arena.csv").write_text(text)
    seen = look(tmp_path / "arena.csv")
    pooled = len(cc.read(tmp_path / "arena.csv").queries) == 1  # by itself
    assert seen.commands[0][0] == f"concordant rank {tmp_path / 'arena.csv'}{'' if pooled else ' --pool'}"
    assert any("together" in note if pooled else "hardly a judgment of its own" in note for note in seen.notes)
    assert seen.numbers["components"] == [1]
    documents = Preferences.from_comparisons([*"aceg"], [*"bdfh"], query=[1, 1, 2, 2])
    assert not recurring(documents)


def test_commands_are_ready_to_paste(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Names with spaces, quotes and semicolons are quoted, and each command that names only the file runs."""
    monkeypatch.chdir(tmp_path)
    random = Random(seed(0))
    name = "my votes; rm -rf 'x' $HOME.csv"
    text = 'model_a,model_b,winner,"judge",language,date\n'
    for number in range(300):
        one, other = random.sample("abcd", 2)
        said = (random.choice(["model_a", "tie"]), f"j{number % 5}", random.choice(["en", "de"]))
        text += f"{one},{other},{','.join(said)},2026-01-{number % 28 + 1:02}\n"
    Path(name).write_text(text)
    assert exit_status("doctor", name) == 0
    printed = [line.strip() for line in capsys.readouterr().out.splitlines() if line.startswith("  concordant ")]
    lines = [shlex.split(line) for line in printed]
    assert [line[1] for line in lines][:3] == ["rank", "report", "audit"]
    assert all(line[2] == name for line in lines)
    assert lines[0][3:] == ["--cluster", "judge"]
    for line in lines:
        if line[1] in ("rank", "tree"):
            assert exit_status(*line[1:]) == 0, line


@pytest.mark.parametrize("column", ["prompt", "query", "instruction"])
def test_votes_on_texts_of_answers_are_made_pairs_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, column: str
) -> None:
    """A file to train a reward model on: several people, several votes a prompt; chat messages, too."""
    monkeypatch.chdir(tmp_path)
    random = Random(seed(0))
    rows = []
    for number in range(120):
        prompt, (one, other) = number % 12, random.sample(range(3), 2)
        texts = [f"answer {at} to question {prompt}" for at in (one, other)]
        rows.append(
            {column: f"question {prompt}?", "chosen": texts[0], "rejected": texts[1], "annotator": number // 30}
        )
    Path("votes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    commands = [command for command, _ in look(Path("votes.jsonl")).commands]
    asked = "" if column == "query" else f" --query {column}"
    assert commands[0] == f"concordant pairs votes.jsonl{asked} -o votes-pairs.jsonl"
    assert f"concordant axioms votes.jsonl SCORES{asked} --cluster annotator" in commands
    assert exit_status(*shlex.split(commands[0])[1:]) == 0
    for row in rows:
        row |= {side: [{"role": "assistant", "content": row[side]}] for side in ("chosen", "rejected")}
        row[column] = [{"role": "user", "content": row[column]}]
    Path("chat.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = look(Path("chat.jsonl")).commands[0][0]
    assert command == f"concordant pairs chat.jsonl{asked} -o chat-pairs.jsonl"
    assert exit_status(*shlex.split(command)[1:]) == 0
    same = [
        sorted((row["weight"], row["votes"]) for row in map(json.loads, Path(name).read_text().splitlines()))
        for name in ("votes-pairs.jsonl", "chat-pairs.jsonl")
    ]
    assert same[0] == same[1]


def test_names_of_systems_are_no_answers() -> None:
    said = [command.split()[1] for command, _ in look(Path(VOTES)).commands]
    assert said == ["rank", "report", "audit", "judges", "axioms"]


@pytest.mark.parametrize("name", sorted({*good_files()} - {"x.soc"}))  # which lacks a line that it has to have
def test_any_good_file_can_be_used(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(good_files()[name])
    seen = look(f"{tmp_path / name}::votes" if name.endswith(".duckdb") else tmp_path / name)
    assert seen.usable, said(seen)
    assert seen.what
    assert seen.commands


@pytest.mark.parametrize("kind", ["model", "trees", "s.store"])
def test_models_and_stores(tmp_path: Path, kind: str) -> None:
    for name, data in good_folder(kind).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    seen = look(tmp_path / kind)
    assert seen.usable
    assert ("store" if kind == "s.store" else "a model") in seen.what


NOTHING = {
    "empty.csv": (b"", "the file is empty"),
    "blank.jsonl": (b"\n\n", "the file is empty"),
    "header.csv": (b"winner,loser\n", "no rows"),
    "picture.png": (b"\x89PNG\r\n\x1a\n\x00\x00", "a file that is no text"),
    "utf16.csv": ("winner,loser\na,b\n".encode("utf-16"), "UTF-16"),
    "cut.parquet": (b"PAR1 and no more", "not a complete Parquet file"),
    "broken.json": (b'{"results": {', "not valid JSON"),
    "prose.md": (b"# Title\nwords and words\n", "unknown ending '.md'"),
    "cut.eval": (b"PK\x03\x04" + bytes(30), "cut or damaged"),
    "archive.zip": (b"PK\x05\x06" + bytes(18), "an archive"),
    "means.csv": (b"model,win_rate,avg_length\na,50,10\nb,40,20\n", "A mean alone does not say how sure it is"),
    "deep.json": (b"[" * 100_000, "nested too deeply"),
}


@pytest.mark.parametrize("name", NOTHING)
def test_what_nothing_can_be_done_with_is_said(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    data, says = NOTHING[name]
    (tmp_path / name).write_bytes(data)
    assert exit_status("doctor", tmp_path / name, "-o", tmp_path / "out.json") == 2
    out, err = capsys.readouterr()
    assert says in " ".join(out.split()), out
    assert err.startswith("error: ") and err.count("\n") == 1
    assert not (tmp_path / "out.json").exists()


def test_a_name_of_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "votes.csv").write_text("winner,loser\na,b\n")
    for name in (tmp_path / "vots.csv", "", "a\0b", "x::y", "-"):
        assert exit_status("doctor", name) == 2
    assert "did you mean 'votes.csv'?" in capsys.readouterr().out


def test_rows_that_cannot_be_understood_are_said(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("model_a,model_b,winner\na,b,model_a\nb,a,model_c\na,a,tie\nb,a,model_a\n")
    seen = look(tmp_path / "x.csv")
    assert seen.usable
    assert "have an unknown outcome (line 3: 'model_c')" in seen.stops[0]
    assert "--on-error skip" in seen.commands[0][0]
    assert seen.numbers["judgments"] == 2


def test_columns_that_are_not_called_as_usual_are_told_by_their_values(tmp_path: Path) -> None:
    random = Random(seed(0))
    text = "first model,second model,verdict,note\n"
    for _ in range(80):
        sides = ",".join(random.sample(["gpt 4", "claude", "llama"], 2))
        text += f"{sides},{random.choice(['A', 'B', 'tie'])},n{random.randrange(9)}\n"
    (tmp_path / "x.csv").write_text(text)
    seen = look(tmp_path / "x.csv")
    asked = "--left 'first model' --right 'second model' --outcome verdict"
    assert seen.commands[0][0] == f"concordant rank {tmp_path / 'x.csv'} {asked}"
    assert asked in seen.stops[0] and seen.stops[0].endswith("is that right?")
    (tmp_path / "y.csv").write_text(
        "better one,worse one,n\n" + "".join(f"{','.join(random.sample('abc', 2))},{k}\n" for k in range(60))
    )
    assert "'better one' and 'worse one' hold the same items" in look(tmp_path / "y.csv").stops[0]
    (tmp_path / "z.csv").write_text("text,number of words\nhello,1\nhello you,2\n")
    assert look(tmp_path / "z.csv").stops[0].startswith("Which columns say who won?")


def test_words_of_verdicts_are_asked_about(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("left,right,verdict\ngpt,llama,better\nllama,gpt,worse\ngpt,koala,same\n")
    seen = look(tmp_path / "x.csv")
    assert seen.stops[0].endswith("--outcome verdict --outcomes better=left,same=tie,worse=right: is that right?")
    assert seen.numbers["judgments"] == 3 and seen.numbers["ties"] == 1
    assert exit_status(*shlex.split(seen.commands[0][0])[1:]) == 0
    (tmp_path / "y.csv").write_text("left,right,verdict\ngpt,llama,L\nllama,gpt,R\ngpt,koala,X\n")
    assert "which value says who won ('verdict': 'L', 'R', 'X')?" in look(tmp_path / "y.csv").stops[0]


def test_fields_that_stand_apart_by_another_mark(tmp_path: Path) -> None:
    for mark, said_so in ((";", "semicolons"), ("\t", "tabs"), ("|", "vertical bars")):
        (tmp_path / "x.csv").write_text(f"winner{mark}loser\na{mark}b\n")
        seen = look(tmp_path / "x.csv")
        assert f"separated by {said_so};" in seen.stops[0]
        assert seen.usable == (mark == "\t")


def test_clicks_of_items_that_were_shown_alone(tmp_path: Path) -> None:
    """They compare nothing, and there is a ranking of them all the same; of no click there is none."""
    log = tmp_path / "c.csv"
    log.write_text("session,position,item,clicked\n1,1,a,1\n2,2,a,0\n3,1,b,0\n4,2,b,1\n5,3,a,1\n")
    seen = cc.doctor(log)
    assert seen.usable and not seen.stops
    assert [command.split(str(log))[1] for command, _ in seen.commands] == [
        " --structure position-based",
        " --features FEATURES --model model",
    ]
    log.write_text("session,position,item,clicked\n1,1,a,0\n2,2,a,0\n")
    assert cc.doctor(log).stops == ["no judgment prefers an item to another"]
    log.write_text("position,item,clicked\n1,a,1\n2,a,0\n")
    (stop,) = cc.doctor(log).stops
    assert stop.startswith("No column says what was shown together: session (") and not cc.doctor(log).usable


def test_votes_with_an_id_are_taken_once(tmp_path: Path) -> None:
    head = "id,model_a,model_b,winner\n"
    (tmp_path / "x.csv").write_text(head + "1,a,b,model_a\n2,b,a,model_a\n1,a,b,model_a\n")
    seen = look(tmp_path / "x.csv")
    assert seen.numbers["judgments"] == 2
    assert seen.commands[0][0].endswith("x.csv --id id")
    assert exit_status(*shlex.split(seen.commands[0][0])[1:]) == 0
    (tmp_path / "y.csv").write_text(head + "1,a,b,model_a\n2,b,a,model_a\n1,a,b,model_b\n")
    seen = look(tmp_path / "y.csv")
    assert "--id" not in seen.commands[0][0]
    assert any("1 id in 'id' has rows that differ" in note for note in seen.notes)


def test_grades_are_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.csv").write_text("model_a,model_b,overall_preference\na,b,2\nb,a,-1\n")
    assert exit_status("doctor", tmp_path / "x.csv") == 0
    assert "--scale -3:3" in capsys.readouterr().out


def test_scores_and_how_sure_their_differences_are(tmp_path: Path) -> None:
    cells = np.random.default_rng(seed(0)).normal(size=(2, 30))
    text = "model," + ",".join(f"t{one}" for one in range(30)) + "\n"
    text += "".join(f"m{one}," + ",".join(map(str, row.tolist())) + "\n" for one, row in enumerate(cells))
    (tmp_path / "x.csv").write_text(text)
    seen = look(tmp_path / "x.csv")
    difference = cells[0] - cells[1]
    assert seen.usable
    assert seen.what == "scores of 2 systems on 30 tasks (wide table of scores)"
    assert seen.numbers["half width"] == pytest.approx(1.959964 * np.std(difference, ddof=1) / np.sqrt(30))


def test_scores_of_which_less_is_better_are_asked_about(tmp_path: Path) -> None:
    """By their names, or because the rows rise: recognisers of speech by word error rate are not turned around."""
    cells = [[1.0, 2.0, 3.0], [2.0, 2.5, 3.5], [4.0, 5.0, 6.0], [5.0, 5.5, 6.5]]
    names = {"w.csv": [f"t{one} WER" for one in range(3)], "r.csv": [f"t{one}" for one in range(3)]}
    for name, tasks in names.items():
        text = f"model,Average,RTFx,{','.join(tasks)}\n"
        text += "".join(f"m{n},{np.mean(row)},900,{','.join(map(str, row))}\n" for n, row in enumerate(cells))
        (tmp_path / name).write_text(text)
        seen = look(tmp_path / name)
        assert seen.commands[0][0] == f"concordant scores {tmp_path / name} --lower-is-better"
        assert seen.stops[0].endswith("is that right?")
        assert dict(seen.found)["range"] == "1 to 6.5; lower is taken for better"
        assert "What to settle" in said(seen)
        assert exit_status(*shlex.split(seen.commands[0][0])[1:], "-o", tmp_path / "o.csv") == 0
        with (tmp_path / "o.csv").open() as file:
            assert [row["system"] for row in csv.DictReader(file)] == ["m0", "m1", "m2", "m3"]


def test_scores_without_a_task_are_asked_about(tmp_path: Path) -> None:
    """WMT's automatic scores: a pair of languages, a system, a metric, a score."""
    text = "pair\tsystem\tmetric\tscore\n"
    text += "".join(
        f"{pair}\ts{one}\t{metric}\t{one + n}\n" for n, pair in enumerate(("cs-uk", "en-de", "en-ja"))
        for one in range(3) for metric in ("bleu", "chrf")
    )  # fmt: skip
    (tmp_path / "x.tsv").write_text(text)
    seen = look(tmp_path / "x.tsv")
    assert "'pair' (3 different)" in seen.stops[0]
    assert seen.commands[0][0] == f"concordant scores {tmp_path / 'x.tsv'} --task pair --metric bleu"
    assert exit_status(*shlex.split(seen.commands[0][0])[1:]) == 0
    assert exit_status("scores", tmp_path / "x.tsv") == 2


def test_one_json_object_is_told_from_a_table(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(json.dumps({"about": {"rows": [{"a": 1}]}, "n": 1}, indent=2))
    assert "x.json is one JSON object ('about', 'n')" in (seen := look(tmp_path / "x.json")).stops[0]
    assert seen.stops[0].endswith("which may be one: 'about.rows'")
    (tmp_path / "y.jsonl").write_text('{"accuracy": 0.5, "f1": 0.25}\n')
    assert look(tmp_path / "y.jsonl").stops[0].startswith("It has one row")


def test_doctor_in_python_says_what_the_command_says(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_status("doctor", VOTES) == 0
    assert str(cc.doctor(VOTES)).replace("cluster=", "").splitlines()[:12] == capsys.readouterr().out.splitlines()[:12]
    assert "<pre>crowd-comparisons.csv: votes" in cc.doctor(VOTES)._repr_html_()


def test_all_of_it_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_status("doctor", VOTES, "--json", "-o", tmp_path / "x.json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((tmp_path / "x.json").read_text())
    assert {"file", "what", "usable", "found", "supports", "stops", "notes", "commands", "numbers"} == set(printed)
    assert printed["numbers"]["judgments"] == 8931


def test_a_file_with_another_ending(tmp_path: Path) -> None:
    (tmp_path / "u.data").write_text("a\tb\tc\n1\t2\t3\n")
    seen = look(tmp_path / "u.data")
    assert [command for command, _ in seen.commands] == [
        f"cp {tmp_path / 'u.data'} {tmp_path / 'u.tsv'}", f"concordant doctor {tmp_path / 'u.tsv'}"
    ]  # fmt: skip


def test_columns_that_cannot_be_looked_at_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "votes.csv"
    log.write_text("winner,loser,judge\n" + "a,b,j\nb,c,k\nc,a,j\n" * 4)

    def fails(*_: Any) -> Any:
        raise duckdb.Error("no such compression\nmore")

    monkeypatch.setattr("concordant.apps.doctor.columns.duckdb.ask", fails)
    notes = " ".join(cc.doctor(log).notes)
    assert "could not be looked at one by one (no such compression)" in notes
