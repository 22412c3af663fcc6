"""Score maps of lists and graphs: straight from their definitions, in targets, and what is refused."""

import itertools

import numpy as np
import pytest

import concordant as cc
from concordant.errors import UsageError
from concordant.ranking.score_maps import scores_of_graphs, scores_of_lists
from seeds import seed


def drawn(rng, items=5, votes=30, queries=4):
    first = rng.integers(0, items, votes * queries)
    second = (first + rng.integers(1, items, votes * queries)) % items
    return cc.Preferences.from_comparisons(first, second, query=np.repeat(np.arange(queries), votes))


def net_of(batch, graph):
    """Who is preferred by how many votes of a graph, judgment by judgment; items as in the batch."""
    prefs = batch.prefs
    nodes = slice(batch.node_start[graph], batch.node_start[graph + 1])
    code = {int(item): place for place, item in enumerate(batch.item[nodes])}
    table = np.zeros((len(code), len(code)))
    held = slice(batch.start[graph], batch.start[graph + 1])
    for judgment, count in zip(batch.judgment[held], batch.multiplicity[held], strict=True):
        table[code[int(prefs.winner[judgment])], code[int(prefs.loser[judgment])]] += count
    total = table.sum()
    return nodes, np.maximum(table - table.T, 0) / total


def reached(net, start):
    found, todo = set(), [start]
    while todo:
        for other in np.flatnonzero(net[todo.pop()]):
            if other not in found:
                found.add(other)
                todo.append(other)
    return found


@pytest.mark.parametrize("votes", [6, 30])
def test_graphs(votes):
    batch = cc.Batch.whole(drawn(np.random.default_rng(seed(votes)), votes=votes))
    maps = {name: scores_of_graphs(name)(batch).value for name in ("wins", "reach", "net")}
    own = scores_of_graphs(lambda d: d.sum(axis=1) - d.sum(axis=0))(batch).value
    for graph in range(len(batch)):
        nodes, net = net_of(batch, graph)
        beats = net > 0
        assert maps["wins"][nodes].tolist() == (beats.sum(axis=1) - beats.sum(axis=0)).tolist()
        assert maps["net"][nodes] == pytest.approx(net.sum(axis=1) - net.sum(axis=0))
        assert own[nodes] == pytest.approx(maps["net"][nodes])
        down = [reached(net, item) for item in range(len(net))]
        right = [len(down[i]) - sum(i in other for other in down) for i in range(len(net))]
        assert maps["reach"][nodes].tolist() == right


def test_lists():
    batch = cc.Batch.whole(drawn(np.random.default_rng(seed(1))))
    scores = cc.structure("borda")(batch).value
    places = scores_of_lists("places", order="borda")(batch).value
    for graph in range(len(batch)):
        nodes = slice(batch.node_start[graph], batch.node_start[graph + 1])
        own = scores[nodes]
        place = np.array([1 + (own > one).sum() + ((own == one).sum() - 1) / 2 for one in own])
        assert places[nodes].tolist() == (len(own) - place).tolist()
        for name, right in (("reciprocal", 1 / place), (lambda p: p**2, place**2)):
            assert scores_of_lists(name, order="borda")(batch).value[nodes].tolist() == right.tolist()
        top = scores_of_lists("top", order="borda", top=2)(batch).value[nodes]
        assert top.tolist() == (place <= 2).astype(float).tolist()
    with_option = scores_of_lists(order="log-odds", c0=1.0)(batch).value
    assert len(with_option) == len(scores)


def test_one_judge():
    """k = 1 of judges who give lists: r(s) is of the judge's own list, and the targets are the mean of its gains."""
    lists = {"a": "xyz", "b": "yzx", "c": "yxz"}
    log = cc.Preferences.from_orders(["q"] * 9, np.repeat(list(lists), 3), list("".join(lists.values())), [1, 2, 3] * 3)
    found = cc.mean_targets(log, scores_of_lists("places"), order=1, subsets=3, gain="2^s-1")
    best = 3 + 1 / np.log2(3)
    gains = np.array(
        [[{"0": 0, "1": 1, "2": 3}[str(2 - order.index(item))] for item in "xyz"] for order in lists.values()]
    )
    assert found.value == pytest.approx(gains.mean(axis=0) / best)


def test_targets_order_by_the_law_of_the_map():
    """Every pair of votes gone through: gain regression on E G(r(s))/Z is right for NDCG of r(s) (AoS Corollary 1)."""
    votes = [("x", "y")] * 3 + [("y", "z")] * 2 + [("z", "x"), ("x", "z")]
    log = cc.Preferences.from_comparisons(*zip(*votes, strict=True))
    exact = []
    for pair in itertools.combinations(votes, 2):
        table = np.zeros((3, 3))
        for winner, loser in pair:
            table["xyz".index(winner), "xyz".index(loser)] += 1
        beats = table > table.T
        exact.append(np.exp2(beats.sum(axis=1) - beats.sum(axis=0)))
    inverse = 1 / np.log2([2, 3, 4])
    value = np.array([gain / (np.sort(gain)[::-1] @ inverse) for gain in exact])
    found = cc.mean_targets(log, scores_of_graphs("wins"), order=2, subsets=4000, gain="2^s", seed=seed(1))
    assert np.abs(found.value - value.mean(axis=0)).max() < 5 * found.error.max()
    losses = {
        order: np.mean([1 - one[list(order)] @ inverse for one in value]) for order in itertools.permutations(range(3))
    }
    assert min(losses, key=losses.get) == tuple(np.argsort(-found.value))


def test_in_a_ranker():
    rng = np.random.default_rng(seed(2))
    log = drawn(rng, votes=60)
    ranker = cc.AggregationRanker(scores_of_graphs("wins"), order="all", gain="identity", normalise=False, gate=False)
    X = np.eye(5)
    judged = cc.Judged.of(log, item=np.arange(5))
    scores = ranker.fit(X, judged).predict(X)
    assert np.isfinite(scores).all()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: scores_of_lists("place"), "unknown values 'place'"),
        (lambda: scores_of_lists("top"), "top is the number"),
        (lambda: scores_of_lists("places", top=2), "top is the number"),
        (lambda: scores_of_lists("top", top=0), "top"),
        (lambda: scores_of_lists(order="kemny"), "unknown structure"),
        (lambda: scores_of_lists(order="borda", c0=1.0), "no option 'c0'"),
        (lambda: scores_of_graphs("win"), "unknown values 'win'"),
        (
            lambda: scores_of_graphs(lambda d: d[:1, 0])(cc.Batch.whole(drawn(np.random.default_rng(0)))),
            "finite number",
        ),
        (lambda: scores_of_lists(lambda p: p / 0.0)(cc.Batch.whole(drawn(np.random.default_rng(0)))), "finite number"),
        (lambda: scores_of_graphs(lambda _: "no")(cc.Batch.whole(drawn(np.random.default_rng(0)))), "finite number"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_refused(make, said):
    with pytest.raises(UsageError, match=said):
        make()
