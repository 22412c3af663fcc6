"""Outcomes between 0 and 1: one judgment whose win is shared, held against the same wins as rows of a cluster."""

import numpy as np
import pytest

import concordant as cc
from concordant.errors import InputError, UsageError
from concordant.io.ingest import Store
from concordant.preferences.graphs import Batch
from concordant.ranking.edge_tests import edge_tests
from seeds import seed

ITEMS = list("abcde")


def table(number=150, values=(0.0, 0.25, 0.5, 0.7, 0.75, 1.0)):
    draw = np.random.default_rng(seed(0))
    sides = [draw.choice(ITEMS, 2, replace=False).tolist() for _ in range(number)]
    lift = [0.4 * (ITEMS.index(other) - ITEMS.index(one)) for one, other in sides]
    won = [values[int(np.clip(np.digitize(x + draw.normal(), [-1, -0.5, 0, 0.5, 1]), 0, 5))] for x in lift]
    return {"left": [one for one, _ in sides], "right": [other for _, other in sides], "outcome": won}


def halves(log):
    """A row for each part of a win, as strong as it is, those of one judgment in one cluster."""
    rows = [
        (*pair, part, f"{at}")
        for at, (one, other, won) in enumerate(zip(*log.values(), strict=True))
        for pair, part in (((one, other), won), ((other, one), 1 - won))
        if part > 0
    ]
    winner, loser, weight, cluster = map(list, zip(*rows, strict=True))
    return cc.Preferences.from_comparisons(winner, loser, weight=weight, cluster=cluster)


@pytest.mark.parametrize("engine", ["duckdb", "memory"])
def test_a_share_is_one_judgment(engine, tmp_path):
    log = table()
    lines = [",".join(map(str, row)) for row in zip(*log.values(), strict=True)]
    (tmp_path / "votes.csv").write_text("\n".join(["left,right,outcome", *lines]))
    votes = cc.read(tmp_path / "votes.csv", engine=engine)
    assert votes == cc.read(log, engine="memory") and len(votes) == 150
    assert votes.summary()["ties"] == log["outcome"].count(0.5) > 0
    assert any("'outcome' is read as the share of a win that 'left' has" in note for note in votes.notes)
    assert cc.read({"left": log["right"], "right": log["left"], "outcome": [1 - x for x in log["outcome"]]}) == votes
    assert sum(votes.folds(3, seed=1)) == votes


@pytest.mark.parametrize("interval", ["sandwich", "auto", "bootstrap"])
def test_scores_and_intervals_are_those_of_the_parts(interval):
    log = table() | {"row": [f"{at}" for at in range(150)]}
    votes = cc.read(log, cluster="row"), halves(table()), cc.read(table())
    ours, twin, alone = (cc.rank(one, interval=interval, seed=seed(0)).to_arrow() for one in votes)
    assert ours["item"].to_pylist() == twin["item"].to_pylist() == alone["item"].to_pylist()
    for name in ("score", "lower", "upper"):
        assert np.allclose(ours[name], twin[name], atol=1e-6)
        assert np.allclose(
            ours[name], alone[name], atol=0.1 if interval == "bootstrap" else 0.005
        )  # no clusters: not t
    assert sum(ours["judgments"].to_pylist()) == 2 * 150


def test_log_likelihood_by_its_formula():
    log = table()
    board = cc.rank(cc.read(log), prior=0, interval="none")
    score = dict(zip(board.items.take(board.item).to_pylist(), board.score.tolist(), strict=True))
    rows = [(score[one] - score[other], won) for one, other, won in zip(*log.values(), strict=True)]
    gradient = dict.fromkeys(ITEMS, 0.0)
    for (margin, won), one, other in zip(rows, log["left"], log["right"], strict=True):
        pull = won - 1 / (1 + np.exp(-margin))
        gradient[one] += pull
        gradient[other] -= pull
    assert max(map(abs, gradient.values())) < 1e-6  # the maximum of Σ w log σ(m) + (1 − w) log σ(−m)


@pytest.mark.parametrize("structure", ["log-odds", "borda", "thurstone-mosteller", "eigenvector", "kemeny"])
def test_every_structure_reads_them(structure):
    ours, twin = (cc.rank(one, structure, interval="none") for one in (cc.read(table()), halves(table())))
    assert np.allclose(np.sort(ours.score), np.sort(twin.score), atol=1e-6)


def test_audit_trees_and_tests_count_a_share_once():
    votes, twin = cc.read(table()), halves(table())
    ours, theirs = (edge_tests(Batch.whole(one)) for one in (votes, twin))
    assert np.allclose(ours.above, theirs.above) and np.allclose(ours.below, theirs.below)
    found, other = (cc.audit(one, replicates=0).queries.to_pylist()[0] for one in (votes, twin))
    assert np.isclose(found["optimal_loss"] * 150, other["optimal_loss"] * len(twin))
    sizes = {"item": ITEMS, "size": [3.0, 1.0, 4.0, 1.0, 5.0]}
    for effects in ("none", "random"):
        ours, theirs = (cc.explain(one, sizes, effects=effects).coefficients for one in (votes, twin))
        assert np.allclose(ours["estimate"], theirs["estimate"], atol=1e-6)
        assert np.allclose(ours["standard_error"], theirs["standard_error"], rtol=1e-4)


def test_chess_results_are_wins_and_ties():
    log = table(values=(0.0, 0.0, 0.5, 0.5, 1.0, 1.0))
    votes = cc.read(log)
    said = [{0.0: "right", 0.5: "tie", 1.0: "left"}[x] for x in log["outcome"]]
    assert votes == cc.read({**log, "outcome": said}) and any("share of a win" in note for note in votes.notes)
    assert cc.read(log, columns={"tie_values": "0.5", "outcomes": "0=right"}) == votes


def test_what_reads_no_shares_says_so(tmp_path):
    log = table()
    with pytest.raises(UsageError, match="which no model of times reads"):
        cc.read({**log, "day": list(range(150))}, time="day")
    with pytest.raises(UsageError, match="keeps no shares of a win"):
        Store(tmp_path / "s").ingest(log)
    with pytest.raises(UsageError, match="not shares of a win"):
        cc.rank(cc.read(log), ties="cumulative")
    with pytest.raises(InputError, match="unknown outcome"):
        cc.read({**log, "outcome": [*log["outcome"][:-1], 1.5]})  # no shares, then
    assert cc.read({**log, "home_edge": [1.0, 2.0, 3.0] * 50}, covariates=["home_edge"]).covariates is not None
