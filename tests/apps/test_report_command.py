"""``concordant report`` and the page of ``concordant demo`` as their users meet them."""

import csv
import json
import re
import shlex
from importlib import resources

import pytest

import concordant as cc
from concordant.apps.commands import main

VOTES = "query,winner,loser,who,team\n" + "".join(
    f"{q},{a},{b},{who},{team}\n"
    for q in ("p", "q")
    for a, b in (("x", "y"), ("y", "z"), ("x", "z"), ("z", "x"))
    for who, team in (("ann", "red"), ("ben", "blue"), ("cat", "blue"))
)
FEATURES = "item,length,price\nx,3,1\ny,2,5\nz,1,4\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "votes.csv").write_text(VOTES)
    (tmp_path / "items.csv").write_text(FEATURES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(capsys, *arguments):
    status = 0
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as stop:
        status = stop.code or 0
    out = capsys.readouterr()
    return status, out.out, out.err


def data_in(path):
    """The data of a page, as its script reads them."""
    found = re.search(
        r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', path.read_text(encoding="utf-8"), re.S
    )
    return json.loads(found[1])


def test_a_page_is_written_with_the_data_of_report(folder, capsys):
    status, out, err = call(capsys, "report", "votes.csv", "--cluster", "who", "-o", "page.html", "--seed", 4)
    assert status == 0 and out == "" and "wrote page.html" in err
    made = data_in(folder / "page.html")
    expected = cc.report(
        cc.read("votes.csv", cluster="who"),
        column="who",
        title="votes.csv",
        command="concordant report votes.csv --cluster who --seed 4 -o report.html",
        seed=4,
    )
    # the page says options where the data of Python say parameters
    assert made["absent"].keys() == expected.data["absent"].keys()
    for said in (made, expected.data):
        del said["notes"], said["absent"], said["audit"]["notes"], said["views"]
    assert made == expected.data
    assert made["annotators"]["column"] == "who" and len(made["annotators"]["groups"]) == 3


def test_the_page_says_how_it_can_be_made_again(folder, capsys):
    call(capsys, "report", "votes.csv", "--title", "It's <b>", "--no-audit", "--level", "0.9", "-q", "-o", "a.html")
    made = data_in(folder / "a.html")
    assert made["title"] == "It's <b>"
    words = made["command"]
    assert words == "concordant report votes.csv --title 'It'\"'\"'s <b>' --no-audit --level 0.9 -o report.html"


def test_a_log_whose_name_looks_like_an_option_can_be_made_again(folder, capsys):
    (folder / "-q it's.csv").write_text(VOTES)
    assert call(capsys, "report", "-q", "--no-audit", "-o", "a.html", "--", "-q it's.csv")[0] == 0
    words = shlex.split(data_in(folder / "a.html")["command"])
    assert words == ["concordant", "report", "./-q it's.csv", "--no-audit", "-o", "report.html"]
    assert call(capsys, *words[1:])[0] == 0


def test_groups_may_be_others_than_clusters(folder, capsys):
    call(capsys, "report", "votes.csv", "--group", "team", "--no-audit", "-o", "a.html")
    made = data_in(folder / "a.html")
    assert {row["group"] for row in made["annotators"]["groups"]} == {"red", "blue"}
    assert made["settings"]["interval"] == "hessian", "groups do not make clusters of the judgments"
    call(capsys, "report", "votes.csv", "--group", "team", "--cluster", "who", "--no-audit", "-o", "a.html")
    assert data_in(folder / "a.html")["settings"]["interval"] == "sandwich"


def test_a_scorer_and_a_model_are_shown(folder, capsys):
    call(capsys, "report", "votes.csv", "-f", "items.csv", "--no-audit", "-o", "a.html")
    made = data_in(folder / "a.html")
    assert {row["feature"] for row in made["scorer"]["features"]} == {"length", "price"} and made["order"]["points"]
    assert call(capsys, "fit", "votes.csv", "-f", "items.csv", "-m", "model", "-q")[0] == 0
    assert call(capsys, "report", "votes.csv", "-m", "model", "--no-audit", "-o", "b.html")[0] == 0
    assert data_in(folder / "b.html")["scorer"]["kind"].startswith("AggregationRanker")
    status, _, _ = call(capsys, "report", "votes.csv", "-m", "model", "-f", "items.csv", "--no-audit", "-o", "c.html")
    assert status == 0 and data_in(folder / "c.html")["scorer"]["metrics"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["votes.csv", "-o", "page.txt"], "unknown ending '.txt'; allowed: .html, .htm"),
        (["votes.csv"], "--output"),
        (["nowhere.csv", "-o", "a.html"], "nowhere.csv"),
        (["votes.csv", "-o", "nowhere/a.html"], "the folder nowhere does not exist"),
        (["votes.csv", "--winner", "colour", "-o", "a.html"], "colour"),
        (["votes.csv", "--cluster", "colour", "-o", "a.html"], "colour"),
        (["votes.csv", "--group", "colour", "-o", "a.html"], "colour"),
        (["empty.csv", "-o", "a.html"], "no rows"),
        (["votes.csv", "--structure", "elo", "-o", "a.html"], "unknown structure 'elo'"),
        (["votes.csv", "--feature-item", "item", "-o", "a.html"], "it is about --features"),
        (["votes.csv", "--unsafe-load-pickle", "-o", "a.html"], "is about --model"),
        (["votes.csv", "-f", "few.csv", "-o", "a.html"], "z"),
        (["votes.csv", "-m", "votes.csv", "-o", "a.html"], "votes.csv"),
        (["votes.csv", "-m", "model", "-f", "other.csv", "-o", "a.html"], "price"),
        (["votes.html", "-o", "votes.html"], "is the log itself"),
        (["votes.csv", "-f", "items.html", "-o", "items.html"], "is the file of features itself"),
        (["votes.csv", "-m", "model", "-o", "model/a.html"], "lies in the folder of the model"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(folder, capsys, arguments, said):
    (folder / "empty.csv").write_text("winner,loser\n")
    (folder / "few.csv").write_text("item,length\nx,1\ny,2\n")
    (folder / "other.csv").write_text("item,length\nx,1\ny,2\nz,3\n")
    (folder / "votes.html").write_text(VOTES)
    (folder / "items.html").write_text(FEATURES)
    if "model" in arguments:
        features = cc.read_features("items.csv")
        cc.save_model(cc.EdgeRanker("ranknet").fit(features, cc.read("votes.csv")), "model")
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    status, out, err = call(capsys, "report", *arguments)
    assert (status, out) == (2, "") and said in err
    assert err.startswith("error: ") and err.count("\n") == 1
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_hostile_labels_stay_text(folder, capsys):
    labels = ["</script><script>alert(1)</script>", "a\nb\u2028c", "=1+1", "\u202eevil", "🦆" * 40]
    with open(folder / "odd.csv", "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["winner", "loser"])
        rows.writerows(zip(labels, labels[1:] + labels[:1], strict=True))
    assert call(capsys, "report", "odd.csv", "-q", "-o", "odd.html") == (0, "", "")
    assert set(data_in(folder / "odd.html")["items"]) == set(labels)
    assert "<script>alert" not in (folder / "odd.html").read_text(encoding="utf-8")


def test_scores_of_any_scorer_are_held_against_what_people_agree_on(folder, capsys):
    (folder / "rewards.csv").write_text("item,score\nx,1\ny,3\nz,2\n")
    call(capsys, "report", "votes.csv", "--cluster", "who", "--scores", "rewards.csv", "-o", "a.html")
    made = data_in(folder / "a.html")["axioms"]
    found = cc.axiom_audit(cc.read("votes.csv", cluster="who"), {"x": 1.0, "y": 3.0, "z": 2.0})
    named = [{name: row[name] for name in ("axiom", "of", "violated", "sure")} for row in made["rows"]]
    assert named == found.table.select(["axiom", "of", "violated", "sure"]).to_pylist()
    assert [case["item"] for case in made["cases"]] == found.cases["item"].to_pylist()
    # in both queries all three put x before y and y before z, and each is for and against x before z
    assert (named[0]["of"], named[0]["violated"]) == (4, 2)
    status, _, err = call(capsys, "report", "votes.csv", "--scores", "rewards.csv", "--no-audit", "-o", "b.html")
    assert status == 2 and "--scores does nothing here" in err
    (folder / "rewards.csv").write_text("item,score\na,1\n")
    assert call(capsys, "report", "votes.csv", "--scores", "rewards.csv", "-o", "c.html")[0] == 0
    assert "none of the judged items has a score" in data_in(folder / "c.html")["absent"]["axioms"]


def test_the_demo_has_a_page(tmp_path, capsys):
    status, out, _ = call(capsys, "demo", "-o", tmp_path / "demo")
    page = tmp_path / "demo" / "report.html"
    assert status == 0 and "report.html" in out and page.stat().st_size <= 3_000_000
    made = data_in(page)
    assert [group["group"] for group in made["annotators"]["groups"]] == ["people", "GPT-4"]
    assert "vendor-extract" in [view["name"] for view in made["views"]], "prompts go by their names"
    votes = resources.files("concordant") / "apps" / "data" / "llmfao" / "crowd-comparisons.csv"
    people = cc.read(str(votes), columns={"query": "prompt"}, cluster="worker")
    board = cc.rank(people.pool())
    assert made["views"][0]["ranking"]["score"] == board.score.tolist()


def test_queries_are_pooled_and_the_prior_is_that_of_rank(folder, capsys):
    assert call(capsys, "report", "votes.csv", "--pool", "--prior", 2, "--no-audit", "-o", "a.html")[0] == 0
    [view] = data_in(folder / "a.html")["views"]
    board = cc.rank(cc.read("votes.csv").pool(), prior=2.0)
    assert view["ranking"]["score"] == pytest.approx(board.score.tolist())
    assert view["judgments"] == 24
