"""The data of a report: equal to what the parts say, to counts from raw rows, and to plain loops."""

import csv
import json
from collections import defaultdict
from dataclasses import replace
from importlib import resources

import numpy as np
import pytest
from scipy.stats import kendalltau

import concordant as cc
from concordant.abstention.risk_coverage import RiskCoverage
from concordant.apps.report import audited as difference_graph
from concordant.apps.report import views
from concordant.apps.report import views as beats
from concordant.apps.report.learned import coverage_of
from concordant.apps.report.views import plain
from concordant.auditing.counterexamples import known_counterexample
from concordant.errors import InputError, UsageError
from concordant.preferences.connectivity import majority_agreement
from concordant.preferences.layouts import KINDS
from concordant.preferences.splits import folds

LLMFAO = resources.files("concordant") / "apps" / "data" / "llmfao"
PROMPTS = ["5", "9", "11", "20"]
SECTIONS = ("audit", "annotators", "order", "scorer", "axioms", "coverage")


@pytest.fixture(scope="module")
def people():
    votes = cc.read(str(LLMFAO / "crowd-comparisons.csv"), columns={"query": "prompt"}, cluster="worker")
    return votes.select(PROMPTS)


@pytest.fixture(scope="module")
def data(people):
    return cc.report(people, column="worker").data


@pytest.fixture(scope="module")
def rows():
    with (LLMFAO / "crowd-comparisons.csv").open(encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row["prompt"] in PROMPTS]


def small_votes(**more):
    winner, loser = list("aabbccad"), list("bccaabdc")
    return cc.Preferences.from_comparisons(winner, loser, **more)


def judged(rows):
    """Per query and ordered pair of labels: (wins, ties); under the name of the query, and for all."""
    wins, ties = defaultdict(int), defaultdict(int)
    for row in rows:
        for query in (None, row["prompt"]):
            if row["winner"] == "tie":
                ties[query, row["left"], row["right"]] += 1
                ties[query, row["right"], row["left"]] += 1
            else:
                sides = ("left", "right") if row["winner"] == "left" else ("right", "left")
                wins[query, row[sides[0]], row[sides[1]]] += 1
    return wins, ties


# -- ranking -----------------------------------------------------------------------------------------------------------
def test_rankings_are_those_of_rank(people, data):
    boards = [cc.rank(people.pool()), cc.rank(people)]
    assert len(data["views"]) == 5 and data["views"][0]["pooled"]
    counts = [view["judgments"] for view in data["views"][1:]]
    assert counts == sorted(counts, reverse=True)
    for view in data["views"]:
        board = boards[0 if view["pooled"] else 1].to_arrow().to_pylist()
        expected = [row for row in board if view["pooled"] or str(row["query"]) == view["query"]]
        columns = view["ranking"]
        assert [data["items"][code] for code in columns["item"]] == [row["item"] for row in expected]
        for name in (
            "component",
            "rank",
            "score",
            "lower",
            "upper",
            "rank_lower",
            "rank_upper",
            "judgments",
            "flag",
            "provisional",
        ):
            assert columns[name] == [plain(row[name]) for row in expected]


def test_without_intervals_bounds_are_null():
    made = cc.report(small_votes(), interval="none", audit=False).data
    ranking = made["views"][0]["ranking"]
    for name in ("lower", "upper", "rank_lower", "rank_upper"):
        assert set(ranking[name]) == {None}


def test_queries_are_pooled_where_items_recur_and_only_there():
    own = cc.Preferences.from_comparisons(list("abxy"), list("bcyz"), list("ppqq"))
    assert [view["pooled"] for view in cc.report(own, audit=False).data["views"]] == [False, False]
    shared = cc.Preferences.from_comparisons(list("abab"), list("bcbc"), list("ppqq"))
    assert [view["name"] for view in cc.report(shared, audit=False).data["views"]] == ["All queries", "p", "q"]
    assert [view["name"] for view in cc.report(small_votes(), audit=False).data["views"]] == ["All judgments"]


def test_a_query_of_one_judgment_is_no_ranking():
    votes = small_votes(query=[f"q{at}" for at in range(8)])
    made = cc.report(votes).data
    assert [view["name"] for view in made["views"]] == ["All queries"]
    assert made["views"][0]["ranking"] == cc.report(votes.pool()).data["views"][0]["ranking"]
    assert made["left_out"] == [
        "most of the 8 queries have one judgment, which is no ranking: all were ranked and audited together; name the "
        "queries that you mean by --query"
    ]


# -- who beats whom ----------------------------------------------------------------------------------------------------
def test_who_beats_whom_is_counted_from_the_rows(data, rows):
    wins, ties = judged(rows)
    for view in data["views"]:
        pairs = view["beats"]["pairs"]
        place = {code: i for i, code in enumerate(view["ranking"]["item"])}
        found = {}
        for i, j, one, other, tied in pairs:
            assert place[i] < place[j], "the better-placed item stands first"
            found[data["items"][i], data["items"][j]] = (one, other, tied)
        query = view["query"]
        expected = {(a, b): (wins[query, a, b], wins[query, b, a], ties[query, a, b]) for a, b in found}
        assert found == expected
        assert sum(sum(counts) for counts in found.values()) == view["judgments"]


def test_pairs_beyond_the_budget_are_those_of_low_rank(monkeypatch, people):
    monkeypatch.setattr(beats, "PAIRS", 300)
    found = cc.report(people, audit=False).data
    shown = 0
    for view in found["views"]:
        pairs = view["beats"]["pairs"]
        place = {code: i for i, code in enumerate(view["ranking"]["item"])}
        lowest = [max(place[i], place[j]) for i, j, *_ in pairs]
        assert lowest == sorted(lowest)
        shown += len(pairs)
    assert shown == 300
    left = sum(view["beats"]["left_out"] for view in found["views"])
    assert any(f"{left:,} judged pairs" in said for said in found["left_out"]) and left > 0


# -- difference graph --------------------------------------------------------------------------------------------------
def reachable(edges, node):
    seen, front = set(), [node]
    while front:
        for other in edges[front.pop()]:
            if other not in seen:
                seen.add(other)
                front.append(other)
    return seen


def test_difference_graph_is_counted_from_the_rows(people, data, rows):
    wins, ties = judged(rows)
    audits = {None: cc.audit(people.pool()), "each": cc.audit(people)}
    for view in data["views"]:
        query, graph, label = view["query"], view["graph"], data["items"]
        holds = {
            (row["above"], row["below"]): row["sign_holds"]
            for row in audits[None if query is None else "each"].edges.to_pylist()
            if query is None or str(row["query"]) == query
        }
        found = {(label[i], label[j]): edge for i, j, *edge in graph["edges"]}
        expected = {}
        for of, a, b in {*wins, *ties, *((q, y, x) for q, x, y in wins)}:
            one, other = wins[of, a, b], wins[of, b, a]
            if of == query and one > other:
                expected[a, b] = ((one - other) / view["judgments"], one + other + ties[of, a, b])
        assert found.keys() == expected.keys() == holds.keys()
        beaten = defaultdict(list)
        for a, b in expected:
            beaten[a].append(b)
        reached = {item: reachable(beaten, item) for item in label}
        for pair, (net, judgments, held, on_cycle, part) in found.items():
            assert (pytest.approx(net), judgments) == expected[pair]
            assert held == holds[pair]
            assert on_cycle == (pair[0] in reached[pair[1]]) == (part > 0)
        for cycle in graph["cycles"]:
            for i, j in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
                assert (label[i], label[j]) in expected
        assert bool(graph["cycles"]) == any(edge[5] for edge in graph["edges"])
        assert sorted(graph["nodes"]) == sorted(view["ranking"]["item"])


def test_the_edges_of_a_cycle_are_shown_first(monkeypatch):
    """Ten items in order, and a cycle of the last three."""
    pairs = [(f"i{a}", f"i{b}") for a in range(10) for b in range(a + 1, 10)]
    winner, loser = map(list, zip(*[(b, a) if (a, b) == ("i7", "i9") else (a, b) for a, b in pairs], strict=True))
    votes = cc.Preferences.from_comparisons(winner, loser)
    monkeypatch.setattr(difference_graph, "EDGES", 5)
    made = cc.report(votes, audit=False).data
    graph = made["views"][0]["graph"]
    assert [edge[5] for edge in graph["edges"]] == [True, True, True, False, False]
    assert {made["items"][code] for code in graph["cycles"][0]} == {"i7", "i8", "i9"}
    assert graph["left_out"] == 40 and any("40 net preferences" in said for said in made["left_out"])


# -- audit -------------------------------------------------------------------------------------------------------------
def test_the_audit_is_that_of_audit(people, data):
    whole, pooled = cc.audit(people), cc.audit(people.pool())
    assert data["audit"]["lines"] == list(replace(whole, settling=None).summary)
    assert data["audit"]["surrogates"] == plain(whole.overall.to_pylist())
    assert data["audit"]["held_out"] == plain(whole.held_out.to_pylist())
    assert data["views"][0]["audit"]["lines"] == list(replace(pooled, settling=None).summary)[1:]
    by_query = {str(row["query"]): row for row in whole.queries.to_pylist()}
    for view in data["views"][1:]:
        row = plain(by_query[view["query"]])
        del row["query"]
        assert view["audit"]["row"] == row
        alone = cc.audit(people.select([view["query"]]), replicates=0)
        assert view["audit"]["lines"][:2] == list(alone.summary)[1:3]


def test_what_to_ask_is_what_the_audit_asks(people, data):
    for view, found in ((data["views"][0], cc.audit(people.pool(), ask=10)),):
        assert len(view["ask"]) == 10
        for said, row in zip(view["ask"], found.ask.to_pylist(), strict=True):
            assert (data["items"][said["first"]], data["items"][said["second"]]) == (row["better"], row["worse"])
            for name in ("judgments", "share", "predicted", "gain", "to_settle", "reason"):
                assert said[name] == plain(row[name])
        settled = plain(found.settling.to_pylist()[0])
        del settled["query"]
        assert view["settling"] == settled


def test_theorem_3_is_told():
    made = cc.report(known_counterexample("theorem-3").preferences).data
    verdicts = {row["surrogate"]: row["consistent"] for row in made["views"][0]["audit"]["surrogates"]}
    assert verdicts["ranknet"] is False and verdicts["difference-graph"] is True


# -- agreement of those who judged -------------------------------------------------------------------------------------
def test_agreement_is_that_of_a_count_by_hand():
    """Three people on the pairs ab, bc, ac, cd.

    Ann: a>b, b>c, a>c, c>d. Ben: a>b, b>c, c>a. Cat: b>a, a tie on bc, a>c twice.
    Others of Ann: ab level (1 : 1), bc b, ac a (2 : 1), cd nobody. Of Ben: ab level, bc b, ac a (3 : 0).
    Of Cat: ab a (2 : 0), bc (she has no side), ac level (1 : 1).
    """
    winner = list("abac" + "abc" + "bbaa")
    loser = list("bccd" + "bca" + "accc")
    who = ["Ann"] * 4 + ["Ben"] * 3 + ["Cat"] * 4
    tie = [False] * 8 + [True] + [False] * 2
    found = cc.report(
        cc.Preferences.from_comparisons(winner, loser, cluster=who, tie=tie), audit=False, column="who"
    ).data["annotators"]
    assert found["column"] == "who" and found["left_out"] == 0
    told = {row["group"]: row for row in found["groups"]}
    counts = {name: (row["judgments"], row["pairs"], row["agreement"], row["even"]) for name, row in told.items()}
    assert counts == {"Ann": (4, 2, 1, 1), "Ben": (3, 2, 0.5, 1), "Cat": (4, 1, 0, 2)}
    assert told["Cat"]["ties"] == 0.25 and told["Ann"]["ties"] == 0
    assert told["Ben"]["lower"] == pytest.approx(0.0945, abs=1e-4), "Wilson for 1 of 2"
    order = [found["between"]["groups"].index(name) for name in ("Ann", "Ben", "Cat")]
    agreement = np.array(found["between"]["agreement"], float)[np.ix_(order, order)]
    pairs = np.array(found["between"]["pairs"])[np.ix_(order, order)]
    assert pairs.tolist() == [[4, 3, 2], [3, 3, 2], [2, 2, 2]]
    assert agreement.tolist() == [[1, pytest.approx(2 / 3), 0.5], [pytest.approx(2 / 3), 1, 0], [0.5, 0, 1]]


def test_groups_of_their_own_agree_as_the_demo_says(people):
    gpt4 = cc.read(str(LLMFAO / "gpt4-crowd-comparisons.csv"), columns={"query": "prompt"}).select(PROMPTS)
    found = cc.report(people, annotators={"people": people, "GPT-4": gpt4}, audit=False).data["annotators"]
    facts, same = found["between"], majority_agreement(people, gpt4)
    assert (facts["agreement"][0][1], facts["pairs"][0][1]) == (pytest.approx(same.share), same.pairs)
    assert [row["pairs"] for row in found["groups"]] == [same.pairs] * 2
    one, other = (cc.rank(votes.pool(), interval="none") for votes in (people, gpt4))
    score = dict(zip(other.item.tolist(), other.score.tolist(), strict=True))
    assert one.items == other.items
    assert facts["tau"][0][1] == pytest.approx(kendalltau(one.score, [score[i] for i in one.item]).statistic)


def test_groups_of_different_labels_are_refused():
    one, other = small_votes(), cc.Preferences.from_comparisons([1], [2])
    with pytest.raises(InputError, match="labels are"):
        cc.report(one, annotators={"x": one, "y": other}, audit=False)
    with pytest.raises(UsageError, match="at least two groups"):
        cc.report(one, annotators={"x": one}, audit=False)


# -- risk–coverage -----------------------------------------------------------------------------------------------------
def test_coverage_of_a_ranking_is_that_of_plain_loops():
    random = np.random.default_rng(3)
    first, second = random.integers(0, 6, 200), random.integers(1, 6, 200)
    items = np.array(list("abcdef"))
    second = (first + second) % 6
    swap = random.random(200) < np.where(first < second, 0.2, 0.8)
    votes = cc.Preferences.from_comparisons(
        items[np.where(swap, second, first)], items[np.where(swap, first, second)], tie=random.random(200) < 0.1
    )
    found = cc.report(votes, audit=False, seed=5).data["coverage"]
    pairs = []
    for train, held in folds(votes, 5, seed=5):
        board = cc.rank(train, interval="none").to_arrow()
        score = dict(zip(board["item"].to_pylist(), board["score"].to_pylist(), strict=True))
        wins = defaultdict(float)
        tie = np.zeros(held.distinct, bool) if held.tie is None else held.tie
        for w, x, n, tied in zip(held.winner, held.loser, held.count, tie, strict=True):
            a, b = held.items[w], held.items[x]
            wins[a, b] += n / 2 if tied else n
            wins[b, a] += n / 2 if tied else 0
        for a, b in {tuple(sorted(pair)) for pair in wins}:
            gap = score[a] - score[b]
            pairs.append((abs(gap), wins[a, b] + wins[b, a], wins[b, a] if gap > 0 else wins[a, b]))
    assert found["pairs"] == len(pairs) and found["mass"] == 200
    for threshold, declined, wrong in zip(
        found["threshold"][1:], found["declined"][1:], found["wrong"][1:], strict=True
    ):
        assert declined == pytest.approx(sum(mass for gap, mass, _ in pairs if gap <= threshold * (1 + 1e-9)))
        assert wrong == pytest.approx(sum(bad for gap, _, bad in pairs if gap > threshold * (1 + 1e-9)), abs=1e-9)
    assert found["threshold"][0] is None and found["declined"][0] == 0
    assert found["wrong"][0] == pytest.approx(sum(bad for *_, bad in pairs))


def test_a_thinned_curve_holds_the_best_step_of_every_cost():
    random = np.random.default_rng(0)
    gap, mass = random.random(5000), np.ones(5000)
    wrong = (random.random(5000) < 0.5 - 0.5 * gap).astype(float)
    curve = RiskCoverage.of(gap, mass, wrong, by="risk")
    shown = coverage_of(curve, "")
    assert len(shown["threshold"]) <= 400
    for cost in np.linspace(0, 1, 101):
        loss = (shown["wrong"] + cost * shown["declined"]) / shown["mass"]
        assert loss.min() == pytest.approx(curve.losses(cost).min(), abs=1e-15)


def test_items_that_the_rest_does_not_connect_have_no_difference():
    """Without the only judgment of b and x their scores, of two components, are not comparable."""
    votes = cc.Preferences.from_comparisons(list("aaabxxx"), list("bbbxyyy"))
    found = cc.report(votes, audit=False).data["coverage"]
    assert found["threshold"][1] == 0 and found["declined"][1] == 1 and found["wrong"][:2] == [0.5, 0]
    assert found["mass"] == 7


# -- scorers -----------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def learnable():
    """Items of four queries whose length decides, beside a feature of noise and one that is constant."""
    random = np.random.default_rng(1)
    item = [f"d{i}" for i in range(40)]
    X = np.column_stack([random.normal(size=40), random.normal(size=40), np.ones(40)])
    winner, loser, query = [], [], []
    for q in range(4):
        for _ in range(150):
            i, j = random.choice(40, 2, replace=False)
            better = random.random() < 1 / (1 + np.exp(-2 * (X[i, 0] - X[j, 0])))
            winner.append(item[i if better else j])
            loser.append(item[j if better else i])
            query.append(f"q{q}")
    features = {"item": item, "length": X[:, 0], "noise": X[:, 1], "same": X[:, 2]}
    return features, cc.Preferences.from_comparisons(winner, loser, query)


def test_the_scorer_is_the_one_that_anybody_would_fit(learnable):
    features, votes = learnable
    data = cc.report(votes, features=features, audit=False).data
    ranker = cc.AggregationRanker("log-odds", order="auto").fit(features, votes)
    assert data["order"]["points"] == plain(ranker.curve().to_pylist())
    assert sum(point["chosen"] for point in data["order"]["points"]) == 1 and data["order"]["axis"] == "order"
    told = {row["feature"]: row["value"] for row in data["scorer"]["features"]}
    assert told == dict(zip(("length", "noise", "same"), plain(ranker.coef_standardised_), strict=True))
    assert data["scorer"]["what"] == "coefficient" and data["scorer"]["features"][0]["feature"] == "length"
    assert data["scorer"]["metrics"][0]["value"] == pytest.approx(ranker.score(features, votes))
    careful = cc.AbstainingRanker(
        cc.AggregationRanker("log-odds", order=ranker.order_, ridge=ranker.ridge_), by="risk", split="judgments"
    ).fit(features, votes)
    best = careful.curve_.losses(0.2).min()
    coverage = data["coverage"]
    loss = (np.array(coverage["wrong"]) + 0.2 * np.array(coverage["declined"])) / coverage["mass"]
    assert loss.min() == pytest.approx(best)
    assert not {"order", "scorer", "coverage"} & set(data["absent"])


def test_importances_are_what_shuffling_costs(learnable):
    features, votes = learnable
    ranker = cc.RankBoostRanker(rounds=20).fit(features, votes)
    scorer = cc.report(votes, features=features, model=ranker, audit=False, seed=2).data["scorer"]
    told = {row["feature"]: (row["value"], row["standard_error"]) for row in scorer["features"]}
    assert scorer["what"] == "importance" and told["same"] == (0, 0)
    assert told["length"][0] > 0.1 > abs(told["noise"][0])
    # by hand: the first feature is shuffled first, five times
    random = np.random.default_rng(2)
    drops = []
    for _ in range(5):
        other = features | {"length": features["length"][random.permutation(40)]}
        drops.append(ranker.score(features, votes) - ranker.score(other, votes))
    assert told["length"][0] == pytest.approx(np.mean(drops))


def test_a_kept_model_keeps_its_curve(learnable, tmp_path):
    features, votes = learnable
    ranker = cc.AggregationRanker(order="auto", seed=1).fit(features, votes)
    cc.save_model(ranker, tmp_path / "model")
    again = cc.load_model(tmp_path / "model")
    assert again.curve().equals(ranker.curve()) and again.cv_.axis == "ridge"
    data = cc.report(votes, model=tmp_path / "model", audit=False).data
    assert [point["chosen"] for point in data["order"]["points"]] == ranker.curve()["chosen"].to_pylist()
    assert data["order"]["axis"] == "ridge" and data["order"]["points"][-1]["order"] == "inf"
    assert "what aggregation adds to a pairwise scorer (inf: it adds nothing)" in data["order"]["explained"]
    assert data["scorer"]["features"][0]["feature"] == "length" and data["scorer"]["metrics"] == []
    careful = cc.AbstainingRanker(ranker).fit(features, votes)
    coverage = cc.report(votes, model=careful, audit=False).data["coverage"]
    assert coverage["by"] == "distance" and coverage["wrong"] == plain(careful.curve_.wrong)


def test_what_people_agree_on_is_asked_of_the_scorer_shown():
    votes = small_votes()
    X = {"item": ["a", "b", "c", "d"], "x": [0.0, 10.0, 110.0, 0.0], "y": [0.0, 0.0, 100.0, 1.0]}
    shown = cc.report(votes, features=X).data["axioms"]
    assert shown["whose"] == "a linear scorer that was fitted here"
    model = cc.EdgeRanker("ranknet", ridge=1e-3).fit(X, votes)
    given = cc.report(votes, features=X, model=model).data
    found = cc.axiom_audit(votes, model, X, refits=3)
    assert [row["violated"] for row in given["axioms"]["rows"]] == found.table["violated"].to_pylist()
    assert given["axioms"]["lines"] == [*found.lines()]
    assert "turns round" in given["in_short"][-1][0] or "keeps the order" in given["in_short"][-1][0]
    assert "features" in cc.report(votes, model=model).data["absent"]["axioms"]
    assert "scores" in cc.report(votes).data["absent"]["axioms"]


def test_where_one_order_was_possible_the_ridge_is_explained(learnable):
    features, _ = learnable
    graded = cc.Preferences.from_ratings([str(i % 20) for i in range(40)], features["item"], np.arange(40) // 20)
    order = cc.report(graded, features=features, audit=False).data["order"]
    assert order["axis"] == "ridge" and "aggregation adds" not in order["explained"]
    assert "the penalty on large coefficients" in order["explained"]


def test_features_and_models_that_do_not_fit_are_refused(learnable):
    features, votes = learnable
    with pytest.raises(InputError, match="d39"):
        cc.report(votes, features={name: column[:39] for name, column in features.items()}, audit=False)
    ranker = cc.EdgeRanker("ranknet").fit(features, votes)
    other = {"item": features["item"], "colour": features["length"]}
    with pytest.raises(InputError, match="'colour'"):
        cc.report(votes, features=other, model=ranker, audit=False)
    with pytest.raises(UsageError, match="fitted ranker"):
        cc.report(votes, model=cc.EdgeRanker("ranknet"), audit=False)


# -- all of it ---------------------------------------------------------------------------------------------------------
def every_kind():
    random = np.random.default_rng(0)
    row = np.repeat(np.arange(12), 4)
    item = np.concatenate([random.permutation(list("abcde"))[:4] for _ in range(12)])
    query = np.where(row < 6, "p", "q")
    place = np.tile(np.arange(1, 5), 12)
    click = (place - 1 == row % 4).astype(int)
    return {
        "comparisons": small_votes(),
        "selections": cc.Preferences.from_selections(query, row, place, item, click),
        "choices": cc.Preferences.from_choices(query, row, item, click),
        "orders": cc.Preferences.from_orders(query, row, item, place),
        "ratings": cc.Preferences.from_ratings(query, item, random.integers(1, 6, 48), row),
    }


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_log_has_a_report(kind):
    votes = every_kind()[kind]
    assert votes.kind == kind
    made = cc.report(votes)
    data = made.data
    json.dumps(data, allow_nan=False)
    for name in SECTIONS:
        assert (data[name] is None) == (name in data["absent"]) and data["absent"].get(name, "said") != ""
    for view in data["views"]:
        assert view["ranking"]["item"] and view["audit"]["lines"] and view["graph"]["nodes"]
    assert data["audit"] is not None and data["coverage"] is not None
    features = {"item": list("abcde"), "size": [1.0, 2.0, 3.0, 5.0, 4.0]}
    learned = cc.report(votes, features=features, audit=False).data
    assert learned["scorer"] is not None or "scorer" in learned["absent"]


def test_equal_input_and_seed_make_equal_bytes(people):
    some = people.select(people.queries.tolist()[:2])
    assert cc.report(some, seed=3).html == cc.report(some, seed=3).html


def test_labels_are_texts_however_they_look():
    labels = ["</script><img src=x>", "a\nb", "🦆", "שלום", "x" * 10_000, "\u202egnp", "'\"&"]
    votes = cc.Preferences.from_comparisons(labels, labels[1:] + labels[:1])
    data = cc.report(votes).data
    assert set(data["items"]) == {label if len(label) < 2000 else "x" * 1999 + "…" for label in labels}
    assert any("of 1 item only" in said for said in data["left_out"])
    numbers = cc.report(cc.Preferences.from_comparisons([10, 2], [2, 3]), audit=False).data
    assert sorted(numbers["items"]) == ["10", "2", "3"]


def test_what_is_not_shown_is_said(monkeypatch):
    monkeypatch.setattr(views, "VIEWS", 3)
    monkeypatch.setattr(views, "ROWS", 8)
    query = [f"q{i}" for i in range(5) for _ in range(i + 3)]
    items = [f"d{i}-{j}" for i in range(5) for j in range(i + 3)]
    votes = cc.Preferences.from_comparisons(items, [f"{item.split('-')[0]}-last" for item in items], query)
    data = cc.report(votes, audit=False).data
    assert [view["query"] for view in data["views"]] == ["q4", "q3", "q2"]
    assert [len(view["ranking"]["item"]) for view in data["views"]] == [3, 3, 2]
    assert "2 of 5 queries" in data["left_out"][0] and "13 rows" in data["left_out"][1]
    assert {"q0", "q1"}.isdisjoint(label.split("-")[0].replace("d", "q") for label in data["items"])


def test_all_of_a_small_log_is_audited_though_some_queries_are_shown(monkeypatch, people):
    monkeypatch.setattr(views, "VIEWS", 3)
    data = cc.report(people).data
    whole = cc.audit(people)
    assert len(data["views"]) == 3
    assert data["audit"]["lines"] == list(replace(whole, settling=None).summary)
    assert "2 of 4 queries" in data["left_out"][0] and "audit;" not in data["left_out"][0]
    for view in data["views"][1:]:
        rows = [row for row in whole.edges.to_pylist() if row["query"] == view["query"]]
        holds = {(row["above"], row["below"]): row["sign_holds"] for row in rows}
        assert {(data["items"][i], data["items"][j]): held for i, j, _, _, held, *_ in view["graph"]["edges"]} == holds


def test_lists_too_long_for_pairs_still_have_a_ranking(monkeypatch):
    monkeypatch.setattr("concordant.preferences.ragged.MOST_PAIRS", 20)
    votes = every_kind()["orders"]
    data = cc.report(votes, structure="plackett-luce").data
    assert data["views"][0]["ranking"]["item"] and data["views"][0]["graph"]["edges"] == []
    for name in ("beats", "graph", "audit", "annotators", "coverage"):
        assert "pairs" in data["absent"][name]


def test_what_makes_too_many_pairs_is_left_out_and_said(monkeypatch, people):
    monkeypatch.setattr(views, "LIMIT", 2000)
    monkeypatch.setattr("concordant.apps.report.report.LIMIT", 2000)
    data = cc.report(people).data
    assert not any(view["pooled"] for view in data["views"]) and "rank --pool" in data["left_out"][0]
    assert "2,801 pairs, more than the 2,000" in data["absent"]["audit"] and data["audit"] is None
    assert "2,801 pairs" in data["absent"]["coverage"] and data["views"][0]["ask"] is None


def test_bad_input_is_refused():
    with pytest.raises(InputError, match="no judgment"):
        cc.report(cc.Preferences.empty())
    with pytest.raises(UsageError, match="takes Preferences"):
        cc.report("votes.csv")
    with pytest.raises(UsageError, match="unknown structure"):
        cc.report(small_votes(), structure="bradly-terry")
    with pytest.raises(UsageError, match="level"):
        cc.report(small_votes(), level=1.5)


def test_a_report_is_saved_whole_or_not_at_all(tmp_path):
    made = cc.report(small_votes(), audit=False)
    assert made.save(tmp_path / "report.html").read_text(encoding="utf-8") == made.html
    with pytest.raises(UsageError, match="nowhere"):
        made.save(tmp_path / "nowhere" / "report.html")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_paths_are_those_of_the_first_items_over_time():
    votes = {"winner": list("aabbcab"), "loser": list("bccabca"), "time": [f"2026-01-0{at}" for at in range(1, 8)]}
    prefs = cc.Preferences.from_comparisons(**votes)
    found = cc.report(prefs, audit=False).data["paths"]
    paths = cc.rank_over_time(prefs)
    table = paths.to_arrow().to_pylist()
    first = paths.at().to_arrow()["item"].to_pylist()
    assert [one["item"] for one in found["series"]] == first and found["dated"] is True
    for one in found["series"]:
        own = [row for row in table if row["item"] == one["item"]]
        assert [(point["time"], point["score"]) for point in one["points"]] == [
            (str(r["time"]), r["score"]) for r in own
        ]
    plainly = cc.report(cc.Preferences.from_comparisons(votes["winner"], votes["loser"]), audit=False).data
    assert plainly["paths"] is None and "paths" not in plainly["absent"]
    grouped = cc.Preferences.from_comparisons(**votes, cluster=list("uvuvuvu"))
    assert "take every judgment by itself" in cc.report(grouped, audit=False).data["absent"]["paths"]


def test_paths_treat_ties_as_the_ranking_does_or_say_that_they_do_not():
    tie = [False, True, False, False, True, False] * 6
    sides = [list("abcabc") * 6, list("bcacab") * 6]
    prefs = cc.Preferences.from_comparisons(*sides, tie=tie, time=list(range(36)))
    found = {
        ties: cc.report(prefs, ties=ties, audit=False).data["paths"] for ties in ("half", "davidson", "cumulative")
    }
    for ties in ("half", "davidson"):
        table = cc.rank_over_time(prefs, ties=ties).to_arrow().to_pylist()
        for one in found[ties]["series"]:
            own = [row["score"] for row in table if row["item"] == one["item"]]
            assert [point["score"] for point in one["points"]] == own
    assert found["half"]["series"] != found["davidson"]["series"]
    assert found["cumulative"]["series"] == found["half"]["series"]
    assert found["cumulative"]["explained"].endswith("here a tie is half a win each, and a grade is a strength.")


def test_coefficients_stand_below_the_ranking_and_ranks_beside_those_without_them():
    rng = np.random.default_rng(0)
    one, home = rng.integers(0, 5, 300), rng.choice([-1.0, 1.0], 300)
    sides = one, (one + rng.integers(1, 5, 300)) % 5
    tie = rng.random(300) < 0.2
    votes = cc.Preferences.from_comparisons(*sides, tie=tie, covariates={"home": home})
    data = cc.report(votes, audit=False, ties="davidson", prior=0.5).data
    [view] = data["views"]
    table = cc.rank(votes, ties="davidson", prior=0.5).coefficient_table().to_pylist()
    assert view["coefficients"] == [plain({k: x for k, x in row.items() if k != "query"}) for row in table]
    assert len(table) == 2 and view["notes"] == []
    without = cc.rank(cc.Preferences.from_comparisons(*sides, tie=tie), ties="davidson", prior=0.5).to_arrow()
    expected = {row["item"]: row for row in without.to_pylist()}
    for at, code in enumerate(view["ranking"]["item"]):
        row = expected[int(data["items"][code])]
        assert all(view["uncontrolled"][name][at] == row[name] for name in ("rank", "rank_lower", "rank_upper"))
    assert data["covariates"] == ["home advantage"]
    assert cc.report(small_votes(), audit=False).data["views"][0]["uncontrolled"] is None


def test_ranks_without_covariates_are_those_of_each_query():
    rng = np.random.default_rng(1)
    one = rng.integers(0, 4, 200)
    sides, query = (one, (one + rng.integers(1, 4, 200)) % 4), rng.choice(["p", "q"], 200)
    votes = cc.Preferences.from_comparisons(*sides, query, covariates={"length": rng.normal(size=200)})
    data = cc.report(votes, audit=False).data
    plainly = cc.rank(cc.Preferences.from_comparisons(*sides, query)).to_arrow().to_pylist()
    for view in data["views"][1:]:
        ranks = {row["item"]: row["rank"] for row in plainly if row["query"] == view["query"]}
        labels = [int(data["items"][code]) for code in view["ranking"]["item"]]
        assert view["uncontrolled"]["rank"] == [ranks[label] for label in labels]


def test_tiers_are_those_of_rank_sets(people, data):
    board = cc.rank(people.pool())
    assert data["views"][0]["ranking"]["tier"] == board.rank_sets("tiers")["tier"].to_pylist()
    rng = np.random.default_rng(3)
    strength = np.repeat([3.0, 0.0, -2.0], [2, 3, 2])
    for _ in range(5):
        one, shift = rng.integers(0, 7, 600), rng.integers(1, 7, 600)
        other = (one + shift) % 7
        won = rng.random(600) < 1 / (1 + np.exp(strength[other] - strength[one]))
        votes = cc.Preferences.from_comparisons(np.where(won, one, other), np.where(won, other, one))
        found = cc.report(votes, audit=False).data["views"][0]["ranking"]["tier"]
        assert found == cc.rank(votes).rank_sets("tiers")["tier"].to_pylist()
        assert max(found) > 1


def test_win_rates_are_counted_from_the_rows(data, rows):
    wins, ties = judged(rows)
    for view in data["views"]:
        for code, rate in zip(view["ranking"]["item"], view["ranking"]["win_rate"], strict=True):
            item = data["items"][code]
            won = sum(n for (q, a, _), n in wins.items() if q == view["query"] and a == item)
            lost = sum(n for (q, _, b), n in wins.items() if q == view["query"] and b == item)
            tied = sum(n for (q, a, _), n in ties.items() if q == view["query"] and a == item)
            assert rate == pytest.approx((won + tied / 2) / (won + lost + tied))


def test_scores_in_log_odds_have_an_elo_scale():
    """A difference of 400 points is odds of 10 to 1."""
    scale = cc.report(small_votes(), audit=False).data["elo"]
    assert scale["centre"] == 1000 and 10 ** (scale["per"] * np.log(10) / 400) == pytest.approx(10)
    assert cc.report(small_votes(), audit=False, structure="borda").data["elo"] is None
