"""Rankings: ranks, components, flags, blocks; and every kind of real log, looked at for what is known about it."""

import csv
import gzip
import json
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

import concordant as cc
from concordant.apps.commands.output import write
from concordant.errors import UsageError
from concordant.preferences.preferences import counted_comparisons, counted_lists
from concordant.ranking import rank as ranking
from concordant.ranking.flags import FLAGS, LABELS, SUPPORTS, code_of
from concordant.ranking.shown import remarks
from concordant.ranking.structures import STRUCTURES
from conftest import shared_data


def table(board):
    return {row["item"]: row for row in board.to_arrow().to_pylist()}


# -- ranks -------------------------------------------------------------------------------------------------------
def test_equal_scores_share_the_better_rank():
    votes = counted_comparisons(["a", "b", "c", "d", "a", "b"], ["b", "a", "d", "c", "c", "d"])
    board = table(cc.rank(votes, interval="none"))
    assert [board[x]["rank"] for x in "abcd"] == [1, 1, 3, 3]


def test_components_stand_largest_first_and_ranks_restart():
    votes = counted_comparisons([9, 9, 1, 2, 2, 3, 1], [8, 8, 2, 1, 3, 2, 3])
    rows = cc.rank(votes, interval="none").to_arrow().to_pylist()
    assert [(row["component"], row["item"], row["rank"]) for row in rows] == [
        (1, 1, 1), (1, 2, 2), (1, 3, 3), (2, 9, 1), (2, 8, 2)
    ]  # fmt: skip
    across = cc.rank(votes, interval="none", across_components=True).to_arrow().to_pylist()
    assert sorted(row["rank"] for row in across) == [1, 2, 3, 4, 5]


def test_flags_say_what_the_data_cannot_support():
    votes = counted_comparisons(
        ["top", "top", "b", "c", "b", "c", "b"],
        ["b", "c", "c", "b", "end", "end", "c"],
        declared=(None, ["absent"]),
    )
    board = table(cc.rank(votes))
    assert {item: row["flag"] for item, row in board.items()} == {
        "top": "never lost", "b": "", "c": "", "end": "never won", "absent": "never compared"
    }  # fmt: skip
    assert board["top"]["upper"] == np.inf
    assert np.isfinite(board["top"]["lower"])
    assert board["end"]["lower"] == -np.inf
    assert (board["absent"]["lower"], board["absent"]["upper"]) == (-np.inf, np.inf)
    assert board["absent"]["judgments"] == 0
    assert np.isfinite([board["b"]["lower"], board["b"]["upper"]]).all()


def test_without_a_prior_the_missing_maximum_is_an_error_that_names_items_and_query():
    votes = counted_comparisons(["a", "a", "x", "y"], ["b", "b", "y", "x"], query=["p", "p", "q", "q"])
    with pytest.raises(cc.NoMaximumLikelihood, match=r"query 'p' does not exist.*'b'"):
        cc.rank(votes, prior=0)
    assert len(cc.rank(votes.select(["q"]), prior=0)) == 2


def test_intervals_are_wider_at_a_higher_level_and_absent_when_not_asked_for():
    votes = counted_comparisons([0, 1, 0, 2, 1, 2], [1, 0, 2, 0, 2, 1], count=np.array([9, 5, 8, 3, 6, 5]))
    narrow, wide, none = (cc.rank(votes, **o) for o in ({"level": 0.5}, {"level": 0.99}, {"interval": "none"}))
    assert (wide.lower < narrow.lower).all()
    assert (wide.upper > narrow.upper).all()
    assert np.isnan(none.lower).all()
    assert not none.rank_lower.any()


@pytest.mark.parametrize("name", sorted(STRUCTURES))
@pytest.mark.parametrize("interval", ["auto", "bootstrap", "none"])
def test_every_structure_has_intervals_that_hold_its_score(name, interval):
    member = STRUCTURES[name]
    rng = np.random.default_rng(5)
    if "comparisons" in member.kinds:
        pairs = np.array([rng.permutation(5)[:2] for _ in range(200)])
        votes = counted_comparisons(pairs.min(axis=1), pairs.max(axis=1)) + counted_comparisons(
            pairs[:80].max(axis=1), pairs[:80].min(axis=1)
        )
    else:
        shown = np.array([rng.permutation(5) for _ in range(100)])
    if member.reads == "lists" and member.kinds != ("selections",):
        votes = counted_lists(member.kinds[0], np.arange(0, 501, 5), shown.ravel(), 1.0 + rng.random(500))
    elif "comparisons" not in member.kinds:
        clicked = np.eye(5)[rng.integers(0, 5, 100)]
        votes = counted_lists("selections", np.arange(0, 501, 5), shown.ravel(), clicked.ravel())
    board = cc.rank(votes, name, interval=interval, **({"replicates": 200} if interval == "bootstrap" else {}))
    assert len(board) == 5
    if interval == "none":
        assert np.isnan(board.lower).all()
    else:
        assert (board.lower <= board.score).all()
        assert (board.score <= board.upper).all()
        whole = member.gauge == "places" or name == "copeland"  # which may be the same in every replicate
        assert (board.lower < board.upper).all() or whole
        assert (board.rank_lower <= board.rank).all()
        assert (board.rank <= board.rank_upper).all()


def test_the_result_does_not_depend_on_the_size_of_the_blocks(monkeypatch):
    rng = np.random.default_rng(1)
    query, winner = rng.integers(0, 30, 600), rng.integers(0, 6, 600)
    votes = counted_comparisons(winner, (winner + rng.integers(1, 6, 600)) % 6, query=query)
    whole = cc.rank(votes)
    monkeypatch.setattr(ranking, "BLOCK", 40)
    seen = []
    parts = cc.rank(votes, progress=lambda done, total: seen.append((done, total)))
    assert len(seen) > 5
    assert seen[-1] == (30, 30)
    for name in ("query", "item", "rank", "rank_lower", "rank_upper", "judgments", "flag"):
        assert np.array_equal(getattr(parts, name), getattr(whole, name)), name
    for name in ("score", "lower", "upper"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), rtol=0, atol=1e-11)


def test_quasi_standard_errors_stand_for_all_differences():
    """With even designs a quasi-error is a score's standard error, but for the gauge (1 − 1/n)."""
    rng = np.random.default_rng(3)
    winner = rng.integers(0, 6, 900)
    votes = counted_comparisons(winner, (winner + rng.integers(1, 6, 900)) % 6)
    board = cc.rank(votes, prior=0, quasi=True)
    assert board.to_arrow().column_names[-1] == "quasi_error"
    assert "quasi errors" in [note.code for note in board.notes]
    spread = (board.upper - board.lower) / (2 * 1.959964)
    np.testing.assert_allclose(board.quasi_error * np.sqrt(5 / 6), spread, rtol=0.05)
    with pytest.raises(cc.UsageError, match="quasi"):
        cc.rank(votes, "borda", quasi=True)


def test_quasi_standard_errors_of_separated_items_are_infinite():
    votes = counted_comparisons(["s", "a", "b", "c", "a"], ["a", "b", "c", "a", "c"])
    board = cc.rank(votes, quasi=True)
    found = {board.items[i]: q for i, q in zip(board.item, board.quasi_error, strict=True)}
    assert found["s"] == np.inf
    assert np.isfinite([found["a"], found["b"], found["c"]]).all()


def test_an_empty_log_ranks_to_an_empty_table():
    board = cc.rank(cc.Preferences.empty())
    assert len(board) == 0
    assert board.to_arrow().num_rows == 0
    assert board.converged


def test_tables_of_other_makes():
    board = cc.rank(counted_comparisons(["a"], ["b"]))
    assert board.to_pandas()["item"].tolist() == ["a", "b"]
    assert board.to_polars()["item"].to_list() == ["a", "b"]
    assert "bradley-terry" in repr(board)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"structure": "elo"}, "unknown structure"),
        ({"interval": "wald"}, "unknown interval method"),
        ({"level": 1.0}, "between 0 and 1"),
        ({"replicates": 1, "interval": "bootstrap"}, "replicates"),
        ({"structure": "borda", "interval": "hessian"}, "borda has no hessian intervals"),
        ({"structure": "counting", "prior": 1.0}, "counting has no option 'prior'"),
        ({"ties": "davidsen"}, "did you mean 'davidson'"),
        ({"structure": None}, "unknown structure None"),
        ({"interval": None}, "unknown interval method None"),
        ({"level": "x"}, "level must lie between 0 and 1"),
        ({"replicates": 2.5}, "replicates must be an integer"),
        ({"prior": "weak"}, "prior must be a number"),
    ],
)
def test_wrong_options_are_refused(options, words):
    with pytest.raises(cc.UsageError, match=words):
        cc.rank(counted_comparisons(["a", "b"], ["b", "a"]), **options)


# -- real logs ---------------------------------------------------------------------------------------------------
def test_llmfao_agrees_with_the_published_scores(small_data):
    """evalica's golden of this log: Bradley–Terry with a tie as half a win each, scores that sum to one."""
    from concordant.apps.commands.demo import _votes

    board = cc.rank(_votes("crowd-comparisons.csv").pool(), prior=0, interval="none")
    with (small_data / "evalica" / "llmfao-golden.csv").open(newline="") as handle:
        golden = {
            row["item"]: float(row["score"]) for row in csv.DictReader(handle) if row["algorithm"] == "bradley_terry"
        }
    scores = {row["item"]: row["score"] for row in board.to_arrow().to_pylist()}
    total = sum(np.exp(list(scores.values())))
    assert scores.keys() == golden.keys()
    for item, value in golden.items():
        assert np.exp(scores[item]) / total == pytest.approx(value, abs=2e-7)


@pytest.mark.parametrize("name", ["food", "simple"])
def test_evalica_fixtures(small_data, name):
    votes = cc.read(small_data / "evalica" / f"{name}.csv")
    assert len(cc.rank(votes)) == len(votes.items)


def test_national_teams_of_four_years(small_data):
    path = small_data / "international_football" / "results-2022-07-20-to-2026-07-19.csv.gz"
    board = cc.rank(cc.read(path, home="left"), ties="davidson")
    rows = board.to_arrow().to_pylist()
    best = [row["item"] for row in rows if row["component"] == 1 and not row["flag"]][:12]
    assert {"Argentina", "Spain", "France", "Brazil", "England"} <= set(best)
    assert board.coefficients["home"][0] > 0.2
    assert 0.02 < board.coefficients["s.e. of home"][0] < 0.2


def small_table(path):
    with gzip.open(path, "rt", newline="") as handle:
        return list(csv.DictReader(handle))


def test_vicuna_ratings_by_question_and_pooled(small_data):
    rows = small_table(small_data / "prd_vicuna80" / "ratings.csv.gz")
    verdict = {"1": "model_a", "2": "model_b", "3": "tie"}
    log = {name: [row[name] for row in rows] for name in ("model_a", "model_b", "question_id")}
    votes = cc.read(log | {"winner": [verdict[row["score"]] for row in rows]})
    assert len(votes) == 7_040
    assert votes.summary()["ties"] == 804
    by_question = cc.rank(votes)
    assert set(by_question.query.tolist()) == set(range(80))
    pooled = cc.rank(votes.pool(), prior=0)
    assert pooled.items[pooled.item[0]] == "gpt4"
    weakest = {pooled.items[i] for i in pooled.item[-2:]}
    assert weakest == {"gpt35", "bard"}  # the raters' order in the study that collected them (QLoRA, 2023)


def test_pandalm_annotators(small_data):
    rows = small_table(small_data / "pandalm" / "annotators.csv.gz")
    log = {"left": [], "right": [], "winner": [], "who": []}
    for row in rows:
        left, right = row["cmp_key"].split("_")
        for annotator in ("annotator1", "annotator2", "annotator3"):
            for name, value in zip(log, (left, right, ("tie", "left", "right")[int(row[annotator])], annotator)):
                log[name].append(value)
    votes = cc.read(log, cluster="who")
    assert len(votes) == 3 * 999
    board = cc.rank(votes, prior=0)
    assert board.interval == "sandwich"
    assert board.converged
    llama, opt = (table(board)[name]["rank"] for name in ("llama-7b", "opt-7b"))
    assert llama < opt


@pytest.mark.parametrize("structure", ["bradley-terry", "plackett-luce", "borda"])
def test_dublin_ballots(structure):
    votes = cc.read(shared_data("preflib/00001_irish/00001-00000001.soi"))
    assert len(votes) == 43_942
    board = cc.rank(votes, structure, interval="none")
    top = [board.items[i] for i in board.item[:4]]
    assert sum("F.F." in name or "G.P." in name or "Lab" in name for name in top) >= 3


def test_ratings_of_many_users():
    rows = np.loadtxt(shared_data("ml-100k/u.data"), dtype=np.int64)
    by_user = cc.Preferences.from_ratings(rows[:, 0], rows[:, 1], rows[:, 2])
    assert len(by_user.queries) == 943
    some = by_user.select([1, 2, 3])
    board = cc.rank(some, "borda", interval="none")
    best = board.to_arrow().to_pylist()[0]
    mine = rows[(rows[:, 0] == 1)]
    assert dict(zip(mine[:, 1], mine[:, 2]))[best["item"]] == 5
    pooled = cc.Preferences.from_ratings(None, rows[:, 1], rows[:, 2], judgment=rows[:, 0])
    assert len(pooled) == 943
    films = table(cc.rank(pooled, interval="none"))
    assert films[50]["rank"] < films[1]["rank"]  # Star Wars before Toy Story, as in the mean ratings


def test_click_log_through_the_cascade():
    folder = shared_data("clicks_sogou_clickmodel_wc")
    query, session, position, item, clicked = [], [], [], [], []
    for number, line in enumerate((folder / "train_data").read_text().splitlines()):
        fields = line.split("\t")
        urls, clicks = fields[1].split(), fields[2].split()
        for place, (url, click) in enumerate(zip(urls, clicks, strict=True), 1):
            query.append(fields[0])
            session.append(number)
            position.append(place)
            item.append(url)
            clicked.append(int(click))
    columns = (query, session, position, item, clicked)
    with pytest.raises(cc.UsageError, match=r"1,566 of 7,018 lists .*clicks='first' or clicks='last'"):
        cc.rank(cc.Preferences.from_selections(*columns), "cascade")
    votes = cc.Preferences.from_selections(*columns, clicks="first")
    assert len(votes) == 7_018
    board = cc.rank(votes, "cascade")
    assert board.interval == "wilson"
    seen = board.rank > 0
    assert ((board.lower >= 0) & (board.upper <= 1) & (board.lower < board.upper))[seen].all()
    assert (np.isinf(board.lower) & np.isinf(board.upper))[~seen].all()
    clicks, examined = {}, {}
    for number in range(7_018):
        first = True
        for at in range(10 * number, 10 * number + 10):
            key = query[at], item[at]
            if first:
                examined[key] = examined.get(key, 0) + 1
                clicks[key] = clicks.get(key, 0) + clicked[at]
                first = not clicked[at]
    for row in board.to_arrow().to_pylist()[::50]:
        key = row["query"], row["item"]
        if examined.get(key):
            assert row["score"] == pytest.approx(clicks[key] / examined[key])


def test_items_that_never_lost_are_flagged_where_every_block_is_one_item():
    chain = table(cc.rank(counted_comparisons(["a", "b", "c"], ["b", "c", "d"])))
    assert [chain[x]["flag"] for x in "abcd"] == ["never lost", "separated", "separated", "never won"]
    pairs = table(cc.rank(counted_comparisons(["a", "c"], ["b", "d"])))
    assert [pairs[x]["flag"] for x in "abcd"] == ["never lost", "never won"] * 2


def test_quasi_standard_errors_of_a_query_without_spread_do_not_stop_the_others():
    votes = counted_comparisons(
        ["a", "b", "a", "b", "c", "a", "x", "y"], ["b", "a", "c", "c", "a", "c", "y", "z"],
        query=["p"] * 6 + ["q"] * 2, tie=np.array([False] * 6 + [True] * 2),
    )  # fmt: skip
    board = cc.rank(votes, quasi=True, interval="sandwich")
    one = np.isin(board.query, np.flatnonzero(np.array(board.queries.tolist()) == "p"))
    assert np.isfinite(board.quasi_error[one]).all()


def test_a_bootstrap_has_the_same_bits_in_blocks_of_any_size(monkeypatch):
    rng = np.random.default_rng(1)
    query, winner = rng.integers(0, 3, 900), rng.integers(0, 26, 900)
    votes = counted_comparisons(winner, (winner + rng.integers(1, 26, 900)) % 26, query=query)
    whole = cc.rank(votes, interval="bootstrap", replicates=50)
    monkeypatch.setattr(ranking, "BLOCK", 40)
    parts = cc.rank(votes, interval="bootstrap", replicates=50)
    for name in ("score", "lower", "upper"):
        assert getattr(parts, name).tolist() == getattr(whole, name).tolist(), name


@pytest.mark.parametrize("interval", ["auto", "bootstrap", "none"])
def test_ranks_across_components_are_as_unsure_as_these_are_apart(interval):
    votes = counted_comparisons(
        ["a", "b", "b", "c", "x", "y"], ["b", "a", "c", "b", "y", "x"], count=np.array([900, 100, 900, 100, 6, 1])
    )
    drawn = {"replicates": 200} if interval == "bootstrap" else {}
    board = table(cc.rank(votes, interval=interval, across_components=True, **drawn))
    bounds = [(board[x]["rank_lower"], board[x]["rank_upper"]) for x in "abcxy"]
    expected = [(1, 3), (2, 4), (3, 5), (1, 5), (1, 5)]  # in its own component a is first, b second, c third
    assert bounds == (expected if interval != "none" else [(None, None)] * 5)
    within = table(cc.rank(votes, interval=interval, **drawn))
    assert within["a"]["rank_upper"] == (1 if interval != "none" else None)


@pytest.mark.parametrize("interval", ["hessian", "bootstrap"])
def test_seeds_are_integers(interval):
    votes = counted_comparisons(["a", "b", "b", "c"], ["b", "a", "c", "b"], count=np.array([5, 4, 3, 2]))
    drawn = {"replicates": 50} if interval == "bootstrap" else {}
    for seed in (0, 2**64, np.int64(3)):
        assert len(cc.rank(votes, interval=interval, seed=seed, **drawn)) == 3
    for seed in (1.5, "a", None, 2**200):
        with pytest.raises(UsageError, match="seed"):
            cc.rank(votes, interval=interval, seed=seed, **drawn)
        with pytest.raises(UsageError, match="seed"):
            votes.folds(2, seed=seed)


# -- what is said of scores that the data do not limit ---------------------------------------------------------------
OPTIONS = {"prior": ({"prior": 0.01}, {"prior": 1.0}), "c0": ({"c0": 0.25}, {"c0": 1.0})}


@pytest.mark.parametrize("name", sorted(STRUCTURES))
def test_scores_without_limit_rest_on_what_is_said(name):
    """The score of an item that never lost moves with the option that it rests on, or is the largest share."""
    member = STRUCTURES[name]
    assert [other for other in OPTIONS if other in member.options] == [
        one for one in [member.unlimited] if one in OPTIONS
    ]
    if "comparisons" not in member.kinds:
        return
    votes = counted_comparisons(["x", "a", "b", "x", "a"], ["a", "b", "a", "b", "b"], count=np.array([4, 3, 2, 1, 1]))
    made = [cc.rank(votes, name, interval="none", **how) for how in OPTIONS.get(member.unlimited, ({}, {}))]
    assert [LABELS[board.flag[0]] for board in made] == ["never lost"] * 2
    lead = [board.score[0] - board.score[1] for board in made]
    if member.unlimited == "shares":
        most = {"borda": 2.0, "budgeted-borda": 1.0, "counting": 1.0}[name]  # of two opponents, both beaten always
        assert made[0].score[0] == pytest.approx(most, rel=1e-12)
    elif member.unlimited == "places":
        assert made[0].score[0] == -1.0
    elif member.unlimited == "majorities":
        assert made[0].score[0] == 2.0  # of two opponents
    else:
        assert lead[0] > 1.05 * lead[1] > 0
    said = f"1 item never lost: {SUPPORTS[member.unlimited].one} (x)"
    assert [note for note in remarks(made[0]) if note.code == "never lost"] == [said]


def test_without_intervals_rank_bounds_are_missing_everywhere(tmp_path):
    board = cc.rank(counted_comparisons(["x", "a"], ["a", "x"]), interval="none")
    for name in ("rank_lower", "rank_upper"):
        assert board.to_arrow()[name].to_pylist() == [None, None]
        assert board.to_pandas()[name].isna().all()
        assert board.to_polars()[name].to_list() == [None, None]
    for ending in ("csv", "json", "jsonl", "parquet", "arrow"):
        write(board.to_arrow(), str(tmp_path / f"board.{ending}"))
    assert (tmp_path / "board.csv").read_text().splitlines()[1] == "all,1,a,1,0,,,2,,,,false"
    assert json.loads((tmp_path / "board.json").read_text())[0]["rank_upper"] is None
    assert pq.read_table(tmp_path / "board.parquet")["rank_lower"].null_count == 2


def test_flags_add_up():
    """An item may have several flags: their codes are bits, and the text names each of them."""
    assert [flag.code for flag in FLAGS] == [1 << place for place in range(len(FLAGS))]
    assert LABELS[0] == "" and [LABELS[flag.code] for flag in FLAGS] == [flag.label for flag in FLAGS]
    both = code_of("never compared") + code_of("separated")
    assert LABELS[both] == "never compared, separated"
    board = cc.rank(counted_comparisons(["x", "a", "b"], ["a", "b", "a"]), interval="none")
    two = replace(board, flag=np.where(board.flag > 0, both, 0))
    assert two.to_arrow()["flag"].to_pylist() == ["never compared, separated", "", ""]
    said = [(note.code, note.items) for note in remarks(two)[-2:]]
    assert said == [("never compared", ("x",)), ("separated", ("x",))]


def test_items_that_everybody_rated_equally_are_not_called_never_compared():
    """Equal ratings are no judgment of a pair: that is said, and nothing of clicks. As ranks they are ties."""
    user, item, rating = ["u1", "u1", "u2", "u2", "u3", "u3"], [*"ababab"], [5, 5, 3, 3, 4, 4]
    board = cc.rank(cc.Preferences.from_ratings(None, item, rating, user))
    assert board.to_arrow()["flag"].to_pylist() == ["rated equally"] * 2
    said = remarks(board)
    assert any(note.code == "rated equally" and note.items == ("a", "b") for note in said)
    assert not any("never compared" in note or "click" in note or "compares two" in note for note in said)
    ties = cc.rank(cc.Preferences.from_orders(None, user, item, rating))
    assert ties.flag.tolist() == [0, 0] and np.isfinite(ties.lower).all()


def test_of_ratings_some_items_are_rated_equally_and_some_alone():
    user, item = ["u", "u", "v", "v", "w", "w", "x"], ["a", "b", "b", "a", "c", "d", "e"]
    board = table(cc.rank(cc.Preferences.from_ratings(None, item, [2, 1, 2, 1, 3, 3, 4], user)))
    assert {name: row["flag"] for name, row in board.items()} == {
        "a": "", "b": "", "c": "rated equally", "d": "rated equally", "e": "never compared"
    }  # fmt: skip
    assert board["c"]["rank"] is None and board["c"]["upper"] == np.inf


def test_groups_of_ratings_are_groups_that_no_different_ratings_link():
    user, item = [*"uuvvwwxxyy"], [*"ababcdcdac"]
    prefs = cc.Preferences.from_ratings(None, item, [2, 1, 1, 2, 2, 1, 1, 2, 3, 3], user)
    note = next(note for note in remarks(cc.rank(prefs)) if note.code == "components")
    assert "groups between which nobody's ratings differ" in note


def test_advice_on_clicks_is_for_clicks():
    alone = cc.rank(cc.Preferences.from_orders(None, ["u", "v"], ["a", "b"], [1, 1]))
    assert alone.to_arrow()["flag"].to_pylist() == ["never compared"] * 2
    assert not any("click" in note for note in remarks(alone))
