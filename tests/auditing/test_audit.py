"""The audit as a whole: known populations, brute force over orders, laws, and what cannot be answered."""

import itertools
from dataclasses import replace

import numpy as np
import pyarrow.compute as pc
import pytest
from scipy.optimize import minimize

import concordant as cc
from concordant.auditing.regret import order_loss
from concordant.losses import surrogates as registry
from concordant.losses.surrogates import each_judgment
from concordant.preferences.graphs import Batch
from concordant.ranking.adjacency import mean_adjacency
from concordant.ranking.best_orders import best_orders
from concordant.ranking.structures import structure

THEOREM_3 = cc.Preferences.from_comparisons(list("1213"), list("2331"), count=[25, 1, 50, 24])


def audited(prefs, **options):
    """The rows of an audit without noise: queries, and surrogates by (query, name)."""
    found = cc.audit(prefs, **{"replicates": 0} | options)
    by_name = {(row["query"], row["surrogate"]): row for row in found.surrogates.to_pylist()}
    return found, found.queries.to_pylist(), by_name


def random_log(rng, items, queries=1, pairs=0.7, votes=6):
    """Votes on random pairs; every query has at least one."""
    winner, loser, query, count = [], [], [], []
    for q in range(queries):
        for i, j in itertools.combinations(range(items), 2):
            if rng.random() < pairs or (i, j) == (0, 1):
                for a, b in ((i, j), (j, i)):
                    n = rng.integers(0, votes) + ((a, b) == (0, 1))
                    if n:
                        winner.append(a), loser.append(b), query.append(q), count.append(n)
    return cc.Preferences.from_comparisons(winner, loser, query, count=count)


def dense(prefs, query, items):
    """The mean adjacency of one query, straight from the counts."""
    one = prefs.select([query])
    table = np.zeros((items, items))
    np.add.at(table, (np.array(one.items.tolist())[one.winner], np.array(one.items.tolist())[one.loser]), one.count)
    return table / table.sum()


def loss_of(scores, table):
    """Loss (10), a tie charged the heavier direction."""
    total = 0.0
    for i, j in itertools.combinations(range(len(table)), 2):
        gap = scores[i] - scores[j]
        total += max(table[i, j], table[j, i]) if abs(gap) < 1e-7 else table[j, i] if gap > 0 else table[i, j]
    return total


def test_theorem_3():
    found, (row,), by_name = audited(THEOREM_3)
    assert (row["items"], row["judgments"], row["components"]) == (3, 100, 1)
    assert row["acyclic"] is True
    assert row["low_noise"] == "true"
    assert row["row_sum_condition"] is True
    assert row["optimal_exact"] is True
    assert row["optimal_loss"] == pytest.approx(0.24, abs=1e-12)
    assert row["condorcet_winner"] == "1"
    for name in ("ranknet", "ranksvm", "rankboost"):
        verdict = by_name[None, name] if (None, name) in by_name else by_name[row["query"], name]
        assert verdict["consistent"] is False, name
        assert verdict["regret"] == pytest.approx(0.01, abs=1e-12), name
        assert (verdict["flipped"], verdict["above"], verdict["below"]) == (1, "2", "3"), name
    for name in ("difference-graph", "linear", "ndcg-pairwise", "err-pairwise", "gain-regression"):
        verdict = by_name[row["query"], name]
        assert verdict["consistent"] is True, name
        assert verdict["regret"] == 0.0, name
    assert found.orders["item"].to_pylist() == ["1", "2", "3"]


@pytest.mark.parametrize("phi", ["hinge", "squared-hinge", "logistic", "exponential"])
def test_the_difference_graph_is_right_with_every_phi(phi):
    _, (row,), by_name = audited(THEOREM_3, surrogates=[f"difference-graph:{phi}"])
    name = "difference-graph" if phi == "logistic" else f"difference-graph:{phi}"
    assert by_name[row["query"], name]["consistent"] is True


@pytest.mark.parametrize("seed", range(8))
def test_best_order_and_regrets_by_brute_force(seed):
    rng = np.random.default_rng(seed)
    items = int(rng.integers(3, 7))
    prefs = random_log(rng, items, queries=4, votes=5)
    _, rows, by_name = audited(prefs, surrogates=["ranknet", "linear", "difference-graph"])
    for row in rows:
        table = dense(prefs, row["query"], items)
        best = min(loss_of(np.argsort(order)[::-1] * 1.0, table) for order in itertools.permutations(range(items)))
        assert row["optimal_loss"] == pytest.approx(best, abs=1e-12)
        assert row["optimal_exact"] is True
        sums = table.sum(axis=1) - table.sum(axis=0)
        linear = by_name[row["query"], "linear"]
        assert linear["regret"] == pytest.approx(loss_of(sums, table) - best, abs=1e-12)
        assert linear["consistent"] == (loss_of(sums, table) - best < 1e-12)
        logistic = by_name[row["query"], "ranknet"]
        if logistic["status"] == "attained":
            risk = lambda a, w=table: float((w * np.logaddexp(0.0, a[None, :] - a[:, None])).sum())  # noqa: E731
            alpha = minimize(risk, np.zeros(items), method="BFGS", options={"gtol": 1e-10}).x
            gaps = np.abs(alpha[:, None] - alpha[None, :])[np.triu_indices(items, 1)]
            if gaps.min() > 1e-4:
                assert logistic["regret"] == pytest.approx(loss_of(alpha, table) - best, abs=1e-12)
        difference = by_name[row["query"], "difference-graph"]
        if row["acyclic"]:
            assert difference["consistent"] is True


@pytest.mark.parametrize("ties", ["heavier", "paper"])
def test_the_worst_of_many_minimisers_of_the_hinge(ties):
    """On small integer votes the hinge's minimisers have vertices among whole numbers; half steps lie between them."""
    rng = np.random.default_rng(8)
    prefs = random_log(rng, 4, queries=40, pairs=0.9, votes=4)
    _, rows, by_name = audited(prefs, surrogates=["ranksvm", "difference-graph:hinge"], ties=ties)
    grid = np.array([point for point in itertools.product(np.arange(0, 3.5, 0.5), repeat=4) if min(point) == 0])
    decided = 0
    for row in rows:
        table = dense(prefs, row["query"], 4)
        for name, weight in (("ranksvm", table), ("difference-graph:hinge", np.maximum(table - table.T, 0))):
            hinge = np.maximum(0, 1 - (grid[:, :, None] - grid[:, None, :]))
            value = (hinge * weight).sum(axis=(1, 2))
            face = grid[value <= value.min() + 1e-9]
            charge = loss_of if ties == "heavier" else literal_loss
            right = max(charge(point, table) for point in face) <= row["optimal_loss"] + 1e-9
            verdict = by_name[row["query"], name]["consistent"]
            assert verdict in (right, None), (name, table)
            decided += verdict is not None
    assert decided >= 79


def literal_loss(scores, table):
    """Loss (10) to the letter: i before j in the numbering pays Y_ij for a tie."""
    pairs = itertools.combinations(range(len(table)), 2)
    return sum(table[i, j] if scores[i] <= scores[j] else table[j, i] for i, j in pairs)


@pytest.mark.parametrize("votes", [10**7, 10**8])
def test_one_vote_in_many_is_a_preference(votes):
    """With two items every surrogate of preferences is right, however near the vote was."""
    prefs = cc.Preferences.from_comparisons(["a", "b"], ["b", "a"], count=[votes + 1, votes])
    found = cc.audit(prefs, surrogates=["ranknet", "rankboost", "linear", "difference-graph"], replicates=0)
    assert found.surrogates["consistent"].to_pylist() == [True] * 4


def test_many_lists_of_the_same_items_are_quick():
    """Judgments share their pairs: the work is by pairs, not by judgments (5,000 lists of 10 items, all different)."""
    rng = np.random.default_rng(0)
    order = np.argsort(rng.normal(size=(5000, 10)) - 0.2 * np.arange(10), axis=1)
    rows = np.repeat(np.arange(5000), 10)
    prefs = cc.Preferences.from_orders(np.zeros(50_000, int), rows, order.ravel(), np.tile(np.arange(1, 11), 5000))
    batch = cc.Batch.whole(prefs)
    for name in ("ranksvm", "margin-based", "ranknet"):
        found = cc.minimise(cc.surrogate(name).objective(batch))
        assert len(found.objective.edges.weight) == 90
        original = cc.surrogate(name).objective(batch)
        assert original.value(found.alpha) == pytest.approx(found.value, rel=1e-12)


def test_low_noise_makes_linear_right_and_acyclic_the_difference_graph():
    rng = np.random.default_rng(5)
    prefs = random_log(rng, 3, queries=150, pairs=1.0, votes=9)
    _, rows, by_name = audited(prefs)
    low = [row["query"] for row in rows if row["low_noise"] == "true"]
    acyclic = [row["query"] for row in rows if row["acyclic"]]
    assert len(low) > 3
    assert set(low) < set(acyclic)
    assert all(by_name[query, "linear"]["consistent"] for query in low)
    assert all(by_name[query, "difference-graph"]["consistent"] for query in acyclic)
    assert not all(by_name[query, "ranknet"]["consistent"] for query in acyclic)


def test_a_query_is_audited_alike_alone_and_in_company():
    rng = np.random.default_rng(3)
    prefs = random_log(rng, 7, queries=12, pairs=0.5)
    whole = cc.audit(prefs, replicates=20)
    for query in (0, 5, 11):
        alone = cc.audit(prefs.select([query]), replicates=20)
        row = whole.to_arrow().slice(query, 1).to_pylist()[0]
        for name, value in alone.to_arrow().to_pylist()[0].items():
            if name.startswith("default."):
                continue  # one aggregation is taken for all queries together
            same = value == row[name] or (value != value and row[name] != row[name])
            assert same or value == pytest.approx(row[name], abs=1e-9), name


def test_losses_do_not_depend_on_the_numbering():
    rng = np.random.default_rng(4)
    prefs = random_log(rng, 6)
    rename = rng.permutation(6)
    other = cc.Preferences.from_comparisons(
        rename[np.array(prefs.items.tolist())[prefs.winner]],
        rename[np.array(prefs.items.tolist())[prefs.loser]],
        count=prefs.count,
    )
    columns = ["optimal_loss", "acyclic", "low_noise", "row_sum_condition", "ranknet.regret", "ranksvm.regret"]
    one, two = (cc.audit(log, replicates=0).to_arrow().select(columns).to_pylist()[0] for log in (prefs, other))
    for name in columns:
        assert one[name] == (pytest.approx(two[name], abs=1e-9) if isinstance(two[name], float) else two[name]), name


def test_a_new_member_of_the_registry_is_audited(monkeypatch):
    doubled = registry.Surrogate(
        "doubled",
        lambda source: each_judgment(source, h="identity"),
        "judgments",
        phi="squared-hinge",
        source="nowhere",
    )
    members = dict(registry.SURROGATES) | {"doubled": doubled}
    monkeypatch.setattr(registry, "SURROGATES", members)
    monkeypatch.setattr("concordant.losses.surrogates.SURROGATES", members)
    found, (row,), by_name = audited(THEOREM_3)
    assert by_name[row["query"], "doubled"]["consistent"] is False
    assert "doubled" in found.overall["surrogate"].to_pylist()


def test_a_cycle_is_shown_and_its_best_order_is_exact():
    rock = cc.Preferences.from_comparisons(["r", "s", "p"], ["s", "p", "r"], count=[30, 30, 20])
    found = cc.audit(rock, replicates=50)
    row = found.queries.to_pylist()[0]
    assert row["acyclic"] is False
    assert row["low_noise"] == "false"
    assert set(row["cycle"]) == {"r", "s", "p"}
    assert row["optimal_loss"] == pytest.approx(0.25)
    assert row["cycles_are"] == "cyclic"
    assert row["condorcet_winner"] is None
    assert found.orders["item"].to_pylist() == ["r", "s", "p"]


def test_pairs_never_judged_leave_low_noise_open():
    chain = cc.Preferences.from_comparisons(["a", "b"], ["b", "c"], count=[3, 3])
    _, (row,), _ = audited(chain)
    assert row["low_noise"] == "undetermined"
    assert row["missing_pair"] == ["a", "c"]
    assert cc.audit(chain, replicates=0).to_dict()["queries"][0]["low_noise"] == "undetermined"


@pytest.mark.parametrize(
    "prefs",
    [
        cc.Preferences.from_comparisons(["a", "b"], ["b", "a"]),
        cc.Preferences.from_comparisons(["a", "b"], ["b", "c"], tie=[True, True]),
        cc.Preferences.from_comparisons(["a"] * 3 + ["b"], ["b"] * 3 + ["a"], weight=[0.1, 0.1, 0.1, 0.3]),
        cc.Preferences.from_orders(["q"], [0], ["only"], [1]),
    ],
    ids=["opposite votes", "ties only", "weights that cancel", "one item"],
)
def test_nothing_to_prefer(prefs):
    found = cc.audit(prefs, replicates=10)
    row = found.queries.to_pylist()[0]
    assert row["acyclic"] is True
    assert row["optimal_exact"] is True
    assert found.surrogates["regret"].to_pylist() == [0.0] * len(found.surrogates)
    assert found.surrogates["consistent"].to_pylist() == [True] * len(found.surrogates)
    assert 1 <= len(found.summary) <= 10


def test_wrong_options_are_refused():
    for options, said in (
        ({"surrogates": ["rankent"]}, "ranknet"),
        ({"surrogates": ["ranknet:hinge"]}, "allowed: logistic"),
        ({"surrogates": ["linear", "linear"]}, "twice"),
        ({"ties": "none"}, "heavier"),
        ({"time_limit": 0}, "positive"),
        ({"replicates": -1}, "at least 0"),
        ({"replicates": "x"}, "replicates must be an integer of at least 0, not 'x'"),
        ({"replicates": 1.5}, "replicates must be an integer of at least 0"),
        ({"ask": "x"}, "ask must be an integer"),
        ({"top": 1.5}, "top must be an integer"),
        ({"level": "x"}, "level must be a number, not 'x'"),
        ({"time_limit": None}, "time_limit must be a number, not None"),
        ({"level": 1.0}, "between"),
        ({"order": "some"}, "order must be"),
        ({"order": 0}, "order must be"),
        ({"structure": "cascade"}, "cascade reads"),
    ):
        with pytest.raises(cc.UsageError, match=said):
            cc.audit(THEOREM_3, **options)
    with pytest.raises(cc.UsageError, match="Preferences"):
        cc.audit([1, 2])
    with pytest.raises(cc.InputError, match="no judgment"):
        cc.audit(cc.Preferences.empty())


def test_subsets_of_judgments_as_a_law():
    found, (row,), by_name = audited(
        THEOREM_3, order=5, surrogates=["gain-regression", "ndcg-pairwise", "err-pairwise"]
    )
    for name in ("gain-regression", "ndcg-pairwise"):
        assert by_name[row["query"], name]["consistent"] is True, name
        assert by_name[row["query"], name]["loss"] > 0.01, name
    assert found.settings["order"] == 5


@pytest.mark.parametrize("exact_too", [False, True])
def test_an_order_of_a_surrogate_that_beats_the_search_is_the_best_known(monkeypatch, exact_too):
    """A search that gives the worst order it knows: the surrogates' orders are taken, and no regret is negative."""

    def poor(mean, **options):
        best = best_orders(mean, **options)
        size = np.bincount(mean.owner)[mean.owner]
        place = size - 1 - best.place
        charged = np.where(place[mean.first] < place[mean.second], mean.below, mean.above)
        loss = np.bincount(mean.graph, charged, len(mean))
        lower = best.loss if exact_too else 0.0 * best.loss
        return replace(best, place=place, loss=loss, lower=lower, exact=loss <= lower + 1e-12)

    rng = np.random.default_rng(0)
    prefs = random_log(rng, 5, queries=6)
    _, right, _ = audited(prefs)
    monkeypatch.setattr("concordant.auditing.audit.best_orders", poor)
    found, rows, by_name = audited(prefs)
    assert [note.code for note in found.notes] == ["surrogate ahead"]
    names = [name for query, name in by_name if query == 0 and by_name[0, name]["target"] == "pairwise"]
    reached = 0
    for row, truth in zip(rows, right, strict=True):
        query, table = row["query"], dense(prefs, row["query"], 5)
        regrets = [by_name[query, name]["regret"] for name in names]
        assert min(regrets) >= 0.0
        for name in names:
            one = by_name[query, name]
            assert one["loss"] - row["optimal_loss"] == pytest.approx(one["regret"], abs=1e-9)
        mine = found.orders.filter(pc.equal(found.orders["query"], query))["item"].to_pylist()
        scores = np.zeros(5)
        scores[mine] = -np.arange(len(mine))
        if len(mine) == 5:
            assert row["optimal_loss"] == pytest.approx(loss_of(scores, table), abs=1e-12)
        assert row["optimal_lower"] <= row["optimal_loss"]
        best = row["optimal_loss"] <= truth["optimal_loss"] + 1e-12
        assert row["optimal_exact"] == (exact_too and best)
        reached += best
    assert reached >= 3


def test_whose_judgments_they_were_changes_no_regret():
    """The same counts, one row each or counted, in any order, with and without clusters: the same minimisers."""
    rng = np.random.default_rng(1)
    strong = rng.integers(0, 8, (2400, 2))
    strong = strong[strong[:, 0] != strong[:, 1]]
    query = rng.integers(0, 60, len(strong))
    names = ["ranksvm", "margin-based", "difference-graph:hinge"]
    tables = []
    for turn in range(4):
        order = rng.permutation(len(strong))
        cluster = {"cluster": rng.integers(0, 5, len(strong))} if turn else {}
        prefs = cc.Preferences.from_comparisons(*strong[order].T, query[order], **cluster)
        tables.append(
            cc.audit(prefs, surrogates=names, replicates=0).surrogates.sort_by(
                [("surrogate", "ascending"), ("query", "ascending")]
            )
        )
    assert any(status == "not unique" for status in tables[0]["status"].to_pylist())
    assert all(table.equals(tables[0]) for table in tables[1:])


def test_the_default_is_what_its_gate_would_take_for_all_queries_together():
    """Theorem 3's population takes the difference graph; of a population of a model the default stays."""
    wrong = cc.Preferences.from_comparisons(list("1213"), list("2331"), ["w"] * 4, count=[2500, 100, 5000, 2400])
    found = cc.audit(wrong, replicates=0)
    assert found.settings["default"] == "difference-graph" and found.settings["surrogates"][0] == "default"
    assert found.surrogates.to_pylist()[0]["regret"] == 0 and found.surrogates["phi"][0].as_py() is None
    model = cc.Preferences.from_comparisons(list("aabbcc"), list("bcacab"), ["m"] * 6, count=[8, 16, 4, 8, 4, 4])
    assert cc.audit(model, replicates=0).settings["default"] == "informed bradley-terry"
    both = cc.audit(wrong + model, surrogates=["default"], replicates=0)
    rows = {row["query"]: row for row in both.surrogates.to_pylist()}
    assert both.settings["default"] == "difference-graph" and both.settings["surrogates"] == ["default"]
    assert rows["w"]["regret"] == 0 and rows["w"]["consistent"] and rows["m"]["consistent"]
    few = cc.audit(wrong, surrogates=["linear"], replicates=0)
    assert few.settings["default"] is None and few.surrogates["surrogate"].to_pylist() == ["linear"]


def test_the_default_loses_as_much_as_the_best_of_its_candidates():
    """By brute force over the candidates' scores, each minimised or computed apart, on random logs with cycles."""
    for draw in range(6):
        prefs = random_log(np.random.default_rng(draw), 5, queries=3, pairs=0.8)
        found = cc.audit(prefs, replicates=0)
        rows = found.surrogates.to_pylist()
        weight = np.array(found.queries["judgments"].to_pylist())
        lost = {
            name: float(np.array([row["regret"] for row in rows if row["surrogate"] == name]) @ weight)
            for name in ("default", "ranknet", "difference-graph", "linear")
        }
        batch = Batch.whole(prefs)
        mean = mean_adjacency(batch)
        loss = order_loss(mean, structure("log-odds")(batch).value, close=1e-9)
        lost["log-odds"] = float((loss - np.array(found.queries["optimal_loss"].to_pylist())) @ weight)
        assert lost.pop("default") == pytest.approx(min(lost.values()), abs=1e-7)


def test_the_default_of_clicks_is_the_cascade_unless_another_loses_less():
    """Its rates are judged by ERR on their own law, of which they are the best order: nothing loses less."""
    rng = np.random.default_rng(5)
    session, position, item, clicked = [], [], [], []
    for shown in range(60):
        order = rng.permutation(4)
        at = int(rng.integers(0, 5))
        for place, one in enumerate(order):
            session.append(shown), position.append(place + 1), item.append(int(one)), clicked.append(int(place == at))
    clicks = cc.Preferences.from_selections(["q"] * len(item), session, position, item, clicked)
    found, _, by_name = audited(clicks)
    assert found.settings["default"] == "cascade"
    row = by_name["q", "default"]
    assert row["target"] == "err" and row["regret"] == 0 and row["consistent"]
    assert set(found.surrogates["target"].to_pylist()) == {"err"} == {found.settings["target"]}
    assert cc.audit(clicks, replicates=0, surrogates=["default"]).settings["default"] == "cascade"


def value_by(name, gains, order, at):
    """What an order of items is worth by a loss of lists, from its formula; a share of the best but for ERR."""
    k = min(at or len(order), len(order))
    if name == "err":
        passed, total = 1.0, 0.0
        for place in range(k):
            total, passed = total + passed * gains[order[place]] / (place + 1), passed * (1 - gains[order[place]])
        return total
    weight = 1 / np.log2(np.arange(k) + 2) if name == "ndcg" else np.ones(k)
    return float(gains[list(order[:k])] @ weight)


def least_by(name, gains, alpha, at):
    """Loss of the best order, and the largest of the orders that sort these scores, over all permutations."""
    worth = {o: value_by(name, gains, o, at) for o in itertools.permutations(range(len(gains)))}
    whole = 1.0 if name == "err" else max(worth.values())
    mine = [worth[o] for o in worth if all(np.diff(alpha[list(o)]) <= 1e-7)]
    return 1 - max(worth.values()) / whole, 1 - min(mine) / whole


@pytest.mark.parametrize("target", ["ndcg", "ndcg@2", "precision@2", "err", "err@1"])
def test_every_surrogate_is_judged_by_the_target_asked_for(target):
    """By brute force: minimisers by SciPy or in closed form, charged over all permutations by a structure's scores."""
    name, _, cut = target.partition("@")
    at = int(cut) if cut else None
    for draw in range(3):
        prefs = random_log(np.random.default_rng(draw), 4, pairs=1.0)
        found, _, by_name = audited(prefs, target=target)
        query = prefs.queries.tolist()[0]
        table = dense(prefs, query, 4)
        net = table - table.T
        scores = structure(found.settings["structure"])(Batch.whole(prefs)).value
        gains = scores if name == "err" else 2**scores - 1

        def logistic(alpha, table=table):
            gap = alpha[:, None] - alpha[None, :]
            return (table * np.logaddexp(0, -gap)).sum() + 1e-12 * alpha @ alpha

        by_hand = {"ranknet": minimize(logistic, np.zeros(4), tol=1e-13).x, "linear": net.sum(axis=1)}
        by_hand |= dict.fromkeys(("ndcg-pairwise", "err-pairwise", "gain-regression"), gains)
        for one, alpha in by_hand.items():
            least, worst = least_by(name, gains, np.asarray(alpha), at)
            row = by_name[query, one]
            assert row["target"] == target and row["regret"] == pytest.approx(worst - least, abs=1e-7), (one, draw)
            assert row["consistent"] == (worst - least < 1e-9), (one, draw)
        lost = [row["regret"] for (_, one), row in by_name.items() if one in ("ranknet", "difference-graph", "linear")]
        assert by_name[query, "default"]["regret"] <= min(lost) + 1e-12


def test_the_pairwise_target_judges_surrogates_of_scores_too():
    for draw in range(3):
        prefs = random_log(np.random.default_rng(draw), 4, pairs=1.0)
        _, (row,), by_name = audited(prefs, target="pairwise")
        table = dense(prefs, row["query"], 4)
        odds = structure("log-odds")(Batch.whole(prefs)).value
        for name in ("gain-regression", "ndcg-pairwise"):
            found = by_name[row["query"], name]
            assert found["target"] == "pairwise"
            assert found["regret"] == pytest.approx(loss_of(odds, table) - row["optimal_loss"], abs=1e-12)


def test_the_default_of_a_target_is_what_its_gate_takes():
    """The population of the method, section 11: the pairwise order is not the one of NDCG (``test_gate``)."""
    counts = [int(10_000 * x) for x in (0.18, 0.12, 0.016, 0.004, 0.3536, 0.3264)]
    votes = cc.Preferences.from_comparisons([0, 1, 1, 2, 0, 2], [1, 0, 2, 1, 2, 0], count=counts)
    pairs, lists = (cc.audit(votes, target=target, replicates=40) for target in ("pairwise", "ndcg"))
    assert pairs.surrogates["regret"][0].as_py() == 0 == lists.surrogates["regret"][0].as_py()
    assert pairs.settings["default"] == "difference-graph" and lists.settings["default"] == "ndcg-pairwise"
    by_name = {row["surrogate"]: row for row in lists.surrogates.to_pylist()}
    assert by_name["difference-graph"]["regret"] > 0.05 and by_name["ranknet"]["consistent"] is False
    assert lists.summary[1].startswith("By NDCG (at most 1) the order of scores learnt from pairs in the usual way")
    assert (
        "that is more than chance. With enough judgments the gate of fit takes ndcg-pairwise and loses nothing"
        in (lists.summary[1])
    )
    assert not any("(by NDCG)" in line for line in lists.summary)
    assert any(line.startswith("With infinite data exactly like this, by NDCG, losses") for line in lists.summary)


def test_of_many_minimisers_the_worst_is_charged_by_a_list_target():
    """The hinge leaves b and c in any order; their log-odds differ."""
    votes = cc.Preferences.from_comparisons(list("aaaa"), list("bbbc"))
    _, _, by_name = audited(votes, target="ndcg", surrogates=["ranksvm"])
    row = by_name["all", "ranksvm"]
    assert row["status"] == "not unique" and row["consistent"] is False and row["regret"] > 0
    _, _, by_name = audited(votes, target="ndcg@1", surrogates=["ranksvm"])
    assert by_name["all", "ranksvm"]["regret"] == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"target": "precision"}, "give a cut-off: precision@5"),
        ({"target": "ndgc"}, "unknown target 'ndgc'"),
        ({"target": 5}, "unknown target 5"),
        (
            {"target": "ndcg", "ties": "paper"},
            "ties does nothing here: nothing asked for is judged by the pairwise",
        ),
        ({"target": "pairwise", "surrogates": ["linear"], "structure": "borda"}, "structure does nothing here"),
    ],
)
def test_targets_that_cannot_be(options, said):
    with pytest.raises(cc.UsageError, match=said):
        cc.audit(THEOREM_3, replicates=0, **options)
