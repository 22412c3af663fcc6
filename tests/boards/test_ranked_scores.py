"""Boards of scores against plain loops, SciPy and least squares written out, on real and drawn tables."""

from __future__ import annotations

import gzip
import itertools
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import concordant as cc
from concordant.boards.averages import medians, shares_beaten
from concordant.boards.over_tasks import OverTasks
from concordant.errors import InputError, UsageError
from seeds import seed

Floats = NDArray[np.float64]
BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def rows_of(score: Floats, **more: Any) -> dict[str, Any]:
    """Rows of a matrix; NaN cells are left out, further columns are of tasks."""
    system, task = np.nonzero(~np.isnan(score))
    names = np.array([f"s{i:03}" for i in range(len(score))]), np.array([f"t{i:03}" for i in range(score.shape[1])])
    columns = {name: np.asarray(column)[task] for name, column in more.items()}
    return {"system": names[0][system], "task": names[1][task], "score": score[system, task], **columns}


def real(kind: str, which: tuple[str, int]) -> tuple[dict[str, list[Any]], list[str]]:
    """Rankers × queries: NDCG@10 of the arms of a benchmark, each split that holds a query out a trial."""
    rows: dict[str, list[Any]] = defaultdict(list)
    with gzip.open(BENCHMARKS / f"boosted-{kind}.jsonl.gz", "rt") as lines:
        for line in map(json.loads, lines):
            name, per_query, split = line["cell"]
            for arm, found in line.items():
                if (name, per_query) == which and isinstance(found, dict):
                    for query, value in zip(line["queries"], found["ndcg"], strict=True):
                        for column, cell in zip(
                            ("system", "task", "score", "trial"), (arm, query, value, split), strict=True
                        ):
                            rows[column].append(cell)
    return rows, sorted(set(rows["system"]))


def matrix_of(rows: dict[str, list[Any]]) -> tuple[Floats, list[str]]:
    """Means of trials of the tasks that all systems have."""
    cells: dict[Any, list[float]] = defaultdict(list)
    for system, task, score in zip(rows["system"], rows["task"], rows["score"], strict=True):
        cells[system, task].append(score)
    systems = sorted({system for system, _ in cells})
    tasks = sorted({task for _, task in cells}, key=str)
    return np.array([[np.mean(cells.get((s, t), [np.nan])) for t in tasks] for s in systems]), systems


def plainly_above(score: Floats, signs: Floats, level: float) -> NDArray[np.bool_]:
    """Romano and Wolf's step-down over signs of tasks, pair by pair."""
    k = len(score)
    pairs = [(i, j) for i in range(k) for j in range(k) if i != j and (score[i] != score[j]).any()]
    d = {pair: score[pair[0]] - score[pair[1]] for pair in pairs}
    seen = {pair: d[pair].sum() / np.sqrt((d[pair] ** 2).sum()) for pair in pairs}
    drawn = {pair: signs @ d[pair] / np.sqrt((d[pair] ** 2).sum()) for pair in pairs}
    above: set[Any] = set()
    while True:
        most = np.sort(np.max([drawn[pair] for pair in pairs if pair not in above] or [np.zeros(len(signs))], axis=0))
        critical = most[min(int(np.ceil(level * (len(signs) + 1))), len(signs)) - 1]
        more = {pair for pair in pairs if seen[pair] > critical * (1 + 1e-12)}
        if more <= above:
            break
        above |= more
    out = np.zeros((k, k), bool)
    for i, j in above:
        out[i, j] = True
    return out


def plain_tiers(mean: Floats, above: NDArray[np.bool_]) -> dict[int, int]:
    """A cut after the first m where all of them are among the first m for certain."""
    order = np.argsort(-mean, kind="stable")
    tier, out = 1, {int(order[0]): 1}
    for m in range(1, len(mean)):
        if all(len(mean) - above[i].sum() <= m for i in order[:m]):
            tier += 1
        out[int(order[m])] = tier
    return out


# -- a real matrix -----------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def queries() -> tuple[dict[str, list[Any]], cc.ScoreBoard]:
    """Arms on the queries of LightGBM's example that all of them were judged by."""
    rows, _ = real("grades", ("LightGBM's example", 0))
    several = defaultdict(set)
    for system, task in zip(rows["system"], rows["task"], strict=True):
        several[task].add(system)
    full = max(map(len, several.values()))
    kept = [at for at, task in enumerate(rows["task"]) if len(several[task]) == full]
    rows = {name: [column[at] for at in kept] for name, column in rows.items()}
    return rows, cc.rank_scores(rows, resamples=2000, seed=3)


def test_pairs_of_rankers_are_those_of_scipy(queries: Any) -> None:
    rows, board = queries
    score, systems = matrix_of(rows)
    assert board.table.full and len(systems) >= 10 and score.shape[1] > 100
    found = board.contrasts().to_pylist()
    assert len(found) == len(systems) * (len(systems) - 1) // 2
    tests = []
    for row in found:
        one, other = score[systems.index(row["first"])], score[systems.index(row["second"])]
        test = stats.ttest_rel(one, other)
        ends = test.confidence_interval(0.95)
        given = (row["difference"], row["standard_error"], row["lower"], row["upper"], row["p_value"])
        error = (one - other).std(ddof=1) / np.sqrt(len(one))
        assert given == pytest.approx(((one - other).mean(), error, ends.low, ends.high, test.pvalue), rel=1e-9)
        assert row["p_wilcoxon"] == pytest.approx(stats.wilcoxon(one, other, method="approx").pvalue, rel=1e-9)
        up, down = int((one > other).sum()), int((one < other).sum())
        assert (row["wins"], row["losses"], row["ties"]) == (up, down, len(one) - up - down)
        assert row["p_sign"] == pytest.approx(stats.binomtest(up, up + down).pvalue, rel=1e-9)
        tests.append(test.pvalue)
    order = np.argsort(tests)
    worst, holm = 0.0, np.empty(len(tests))
    for place, at in enumerate(order):
        worst = max(worst, min(1.0, (len(tests) - place) * tests[at]))
        holm[at] = worst
    assert [row["p_holm"] for row in found] == pytest.approx(holm.tolist(), rel=1e-9)


def test_pairs_and_tiers_that_separate_are_those_of_a_plain_loop(queries: Any) -> None:
    rows, board = queries
    score, systems = matrix_of(rows)
    rng = np.random.default_rng([3, score.shape[1]])
    signs = rng.integers(0, 2, (2000, score.shape[1]), np.int8) * 2.0 - 1.0
    above = plainly_above(score, signs, 0.95)
    assert above.any() and (board.above == above).all()
    tiers = plain_tiers(score.mean(axis=1), above)
    table = board.to_arrow().to_pylist()
    assert {systems.index(row["system"]): row["tier"] for row in table} == tiers
    for row in table:
        own = systems.index(row["system"])
        assert row["rank_lower"] == 1 + above[:, own].sum() and row["rank_upper"] == len(systems) - above[own].sum()
        assert row["score"] == pytest.approx(score[own].mean(), rel=1e-12)
        assert row["standard_error"] == pytest.approx(stats.sem(score[own]), rel=1e-9)
    pairs = board.contrasts().to_pylist()  # one step rejects no more than all of them
    for row in pairs:
        i, j = systems.index(row["first"]), systems.index(row["second"])
        assert (row["lower_all"] > 0) == (row["p_max_t"] <= 0.05)
        assert above[i, j] or row["p_max_t"] > 0.05


# -- signs -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("tasks", [5, 6, 8])
def test_with_few_tasks_all_signs_are_gone_through(tasks: int) -> None:
    rng = np.random.default_rng(seed(0))
    score = rng.normal(size=(5, tasks)) + 6.0 * np.arange(5)[:, None]
    board = cc.rank_scores(rows_of(score))
    signs = np.array(list(itertools.product([1.0, -1.0], repeat=tasks)))
    assert (board.above == plainly_above(score, signs, 0.95)).all()
    assert board.above.any() == (tasks >= 6)  # 2/2⁵ is more than 5%
    assert any("too few" in note for note in board.notes) == (tasks < 6)


def test_equal_systems_are_seldom_told_apart() -> None:
    rng, wrong, times = np.random.default_rng(seed(1)), 0, 200
    for draw in range(times):
        score = rng.integers(1, 4, (8, 16)) + 2.0 * (np.arange(8) >= 4)[:, None]  # ties, two groups of equals
        board = cc.rank_scores(rows_of(score), resamples=399, seed=draw)
        wrong += board.above[:4].any() or board.above[4:, 4:].any()
    assert wrong / times <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / times)


def test_systems_with_one_row_of_scores_are_equal() -> None:
    score = np.array([[1.0, 2, 3, 4, 5, 6, 7], [1, 2, 3, 4, 5, 6, 7], [0, 1, 2, 3, 4, 5, 6]])
    board = cc.rank_scores(rows_of(score))
    assert board.to_arrow()["rank"].to_pylist() == [1, 1, 3]
    pair, other = board.contrasts().to_pylist()[:2]
    assert (pair["difference"], pair["p_max_t"], pair["wins"], pair["ties"]) == (0.0, 1.0, 0, 7)
    assert pair["p_sign"] is None and pair["p_wilcoxon"] is None  # nothing differs
    assert other["difference"] == pytest.approx(1.0) and board.above[:2, 2].all() and not board.above[0, 1]


# -- missing cells, weights, clusters ----------------------------------------------------------------------------------
def least_squares(
    score: Floats, weight: Floats, cluster: NDArray[np.int64]
) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """System effects and their covariance by dummies: bread, meat of clusters, bread."""
    k, n = score.shape
    system, task = np.nonzero(~np.isnan(score))
    x = np.zeros((len(system), k + n))
    x[np.arange(len(system)), system] = 1.0
    x[np.arange(len(system)), k + task] = 1.0
    w, y = weight[task], score[system, task]
    bread = np.linalg.pinv(x.T @ (x * w[:, None]))
    effect = bread @ x.T @ (w * y)
    left = w * (y - x @ effect)
    parts = np.array([x[cluster[task] == c].T @ left[cluster[task] == c] for c in np.unique(cluster)])
    return (
        effect[:k],
        (bread @ parts.T @ parts @ bread)[:k, :k],
        np.array([len(np.unique(cluster[task[system == i]])) for i in range(k)]),
    )


@pytest.mark.parametrize("clustered", [False, True])
def test_missing_cells_are_least_squares_with_dummies(clustered: bool) -> None:
    rng = np.random.default_rng(seed(2))
    score = rng.normal(size=(6, 24)) + rng.normal(size=24) + np.arange(6)[:, None] / 3
    score[rng.random(score.shape) < 0.3] = np.nan
    cluster = np.arange(24) // 3 if clustered else np.arange(24)
    board = cc.rank_scores(rows_of(score, **({"cluster": cluster} if clustered else {})))
    effect, matrix, held = least_squares(score, np.ones(24), cluster)
    for row in board.contrasts().to_pylist():
        i, j = int(row["first"][1:]), int(row["second"][1:])
        n = min(held[i], held[j])
        if clustered:  # of clusters with unequal numbers of tasks: (Σ w)²/Σ w²
            own = [np.bincount(cluster[~np.isnan(score[s])]) for s in (i, j)]
            n = min(one.sum() ** 2 / (one**2).sum() for one in own)
        square = (matrix[i, i] + matrix[j, j] - 2 * matrix[i, j]) * n / (n - 1)
        assert row["difference"] == pytest.approx(effect[i] - effect[j], rel=1e-9)
        assert row["standard_error"] == pytest.approx(np.sqrt(square), rel=1e-8)
        assert row["tasks"] == (~np.isnan(score[i]) & ~np.isnan(score[j])).sum()
    assert any("missing" in note for note in board.notes)


def test_nobody_gains_by_leaving_out_hard_tasks() -> None:
    rng = np.random.default_rng(seed(3))
    hard = np.linspace(0, 5, 20)
    score = 10 - hard + rng.normal(size=(4, 20)) * 0.1
    score[0, hard > 1.5] = np.nan  # its plain mean is by far the highest
    board = cc.rank_scores(rows_of(score))
    plain = np.nanmean(score, axis=1)
    assert plain[0] > plain[1:].max() + 1
    mean = dict(zip(board.systems, board.to_arrow()["score"].to_pylist(), strict=True))
    assert mean["s000"] == pytest.approx(mean["s001"], abs=0.2) and not board.above.any()


def test_a_system_with_few_tasks_is_never_told_apart_by_them() -> None:
    rng = np.random.default_rng(seed(4))
    score = rng.normal(size=(4, 40)) * 0.01
    score[0] += 9
    score[0, 4:] = np.nan
    board = cc.rank_scores(rows_of(score))
    assert not board.above[0].any()  # four tasks; √4 is below every critical value
    row = next(row for row in board.contrasts().to_pylist() if row["first"] == "s000")
    assert row["p_value"] < 1e-4 and row["p_max_t"] > 0.05


def test_weights_are_those_of_weighted_least_squares() -> None:
    rng = np.random.default_rng(seed(5))
    score, weight = rng.normal(size=(4, 12)), rng.integers(1, 5, 12).astype(float)
    board = cc.rank_scores(rows_of(score, weight=weight))
    mean = (score * weight).sum(axis=1) / weight.sum()
    assert board.to_arrow()["score"].to_pylist() == pytest.approx(sorted(mean.tolist(), reverse=True))
    effect, matrix, _ = least_squares(score, weight, np.arange(12))
    n = weight.sum() ** 2 / (weight**2).sum()
    for row in board.contrasts().to_pylist():
        i, j = int(row["first"][1:]), int(row["second"][1:])
        square = (matrix[i, i] + matrix[j, j] - 2 * matrix[i, j]) * n / (n - 1)
        assert (row["difference"], row["standard_error"]) == pytest.approx((effect[i] - effect[j], np.sqrt(square)))
    with pytest.raises(UsageError, match="weights"):
        cc.rank_scores(rows_of(score, weight=weight), by="bradley-terry")
    assert "bradley_terry" not in board.averages().column_names


def test_clusters_are_the_draws() -> None:
    """Each task three times over is no more evidence than once."""
    rng = np.random.default_rng(seed(6))
    score = rng.normal(size=(4, 15)) + np.arange(4)[:, None]
    tripled = rows_of(np.repeat(score, 3, axis=1), cluster=np.repeat(np.arange(15), 3))
    once, thrice = (cc.rank_scores(rows, resamples=1 << 15) for rows in (rows_of(score), tripled))  # all signs
    names = ["first", "second", "difference", "standard_error", "p_value", "p_max_t", "wins", "p_wilcoxon"]
    one, other = (board.contrasts().select(names).to_pylist() for board in (once, thrice))
    for first, second in zip(one, other, strict=True):
        assert list(first.values())[:2] == list(second.values())[:2]
        assert list(first.values())[2:] == pytest.approx(list(second.values())[2:], rel=1e-9)


def test_components_are_ranked_by_themselves() -> None:
    score = np.full((5, 20), np.nan)
    rng = np.random.default_rng(seed(7))
    score[:3, :10], score[3:, 10:] = rng.normal(size=(3, 10)), rng.normal(size=(2, 10)) + 50
    board = cc.rank_scores(rows_of(score))
    table = board.to_arrow().to_pylist()
    assert [row["component"] for row in table] == [1, 1, 1, 2, 2]
    assert [row["rank"] for row in table] == [1, 2, 3, 1, 2] and max(row["rank_upper"] for row in table[:3]) == 3
    parts = [cc.rank_scores(rows_of(part)).to_arrow() for part in (score[:3, :10], score[3:, 10:])]
    alone = [row for part in parts for row in part.select(["score", "standard_error", "lower"]).to_pylist()]
    for row, other in zip(table, alone, strict=True):
        assert [row[name] for name in other] == pytest.approx([*other.values()])
    assert len(board.contrasts()) == 3 + 1 and any("column component" in note for note in board.notes)


def test_trials_are_averaged_and_their_part_is_said() -> None:
    rng = np.random.default_rng(seed(8))
    true = rng.normal(size=(3, 40)) * 0.5
    draws = true[:, :, None] + rng.normal(size=(3, 40, 4))
    rows = rows_of(true)
    several = {name: np.repeat(rows[name], 4) for name in ("system", "task")}
    board = cc.rank_scores(several | {"trial": np.tile(np.arange(4), 120), "score": draws.reshape(-1)})
    mean = cc.rank_scores(rows_of(draws.mean(axis=2)))
    assert board.contrasts().equals(mean.contrasts())
    note = next(note for note in board.notes if getattr(note, "code", "") == "trials")
    assert note.numbers["of"] == pytest.approx(0.25 / (0.25 + 0.25), abs=0.15)  # type: ignore[attr-defined]


# -- other ways to average ---------------------------------------------------------------------------------------------
def test_every_way_to_average_is_what_it_says() -> None:
    rng = np.random.default_rng(seed(9))
    score = rng.integers(0, 5, (6, 9)).astype(float)
    table = {row["system"]: row for row in cc.rank_scores(rows_of(score)).averages().to_pylist()}
    for i in range(6):
        wins = [
            [1.0 if a > b else 0.5 if a == b else 0.0 for b in np.delete(score[:, t], i)]
            for t, a in enumerate(score[i])
        ]
        row = table[f"s{i:03}"]
        given = (row["mean"], row["median"], row["win_rate"], row["borda"])
        assert given == pytest.approx((score[i].mean(), np.median(score[i]), np.mean(wins), np.sum(wins) / 9))
    rank = stats.rankdata(-score, method="min", axis=0)
    system, task = np.indices(score.shape)
    orders = cc.Preferences.from_orders(None, task.ravel(), system.ravel(), rank.ravel())
    fitted = cc.rank(orders)
    scores = dict(zip(fitted.items.take(fitted.item).to_pylist(), fitted.score, strict=True))
    assert [table[f"s{i:03}"]["bradley_terry"] for i in range(6)] == pytest.approx([scores[i] for i in range(6)])
    board = cc.rank_scores(rows_of(score), by="bradley-terry")
    sets = fitted.rank_sets("together").to_pylist()
    bounds = {f"s{row['item']:03}": (row["rank_lower"], row["rank_upper"]) for row in sets}
    assert {row["system"]: (row["rank_lower"], row["rank_upper"]) for row in board.to_arrow().to_pylist()} == bounds


def test_win_rates_are_means_of_shares() -> None:
    rng = np.random.default_rng(seed(10))
    score = rng.normal(size=(5, 12))
    rates = cc.rank_scores(rows_of(shares_beaten(score)))
    board = cc.rank_scores(rows_of(score), by="win-rate")
    assert board.contrasts()["p_max_t"].to_pylist() == pytest.approx(rates.contrasts()["p_max_t"].to_pylist())
    points = cc.rank_scores(rows_of(score), by="borda")
    assert points.to_arrow()["score"].to_pylist() == pytest.approx(
        [4 * s for s in board.to_arrow()["score"].to_pylist()]
    )
    scaled = cc.rank_scores(rows_of(np.exp(3 * score)), by="win-rate")
    assert scaled.to_arrow().equals(board.to_arrow())  # only the order on each task counts


def test_weighted_medians_are_those_of_repeated_values() -> None:
    rng = np.random.default_rng(seed(11))
    for _ in range(30):
        value, times = rng.integers(0, 6, (2, 8)).astype(float), rng.integers(1, 4, 8)
        plain = [np.median(np.repeat(row, times)) for row in value]
        assert medians(value, times[None, :].astype(float))[0].tolist() == plain


def test_the_median_is_resampled_over_tasks() -> None:
    rng = np.random.default_rng(seed(12))
    score = rng.normal(size=(3, 41)) + np.array([[0.0], [0.0], [3.0]])
    board = cc.rank_scores(rows_of(score), by="median", resamples=2000)
    drawn = np.array([np.median(score[:, rng.integers(0, 41, 41)], axis=1) for _ in range(2000)])
    error = dict(zip(board.systems, board.to_arrow()["standard_error"].to_pylist(), strict=True))
    expected = np.sqrt(((drawn - np.median(score, axis=1)) ** 2).mean(axis=0))
    assert [error[f"s{i:03}"] for i in range(3)] == pytest.approx(expected.tolist(), rel=0.1)
    assert board.above[2].sum() == 2 and not board.above[0, 1]


def test_lower_is_better_turns_everything_round() -> None:
    rng = np.random.default_rng(seed(13))
    score = rng.normal(size=(4, 10)) + np.arange(4)[:, None]
    up, down = cc.rank_scores(rows_of(score)), cc.rank_scores(rows_of(-score), lower_is_better=True)
    assert up.systems == down.systems and up.contrasts().equals(down.contrasts())
    assert down.to_arrow()["score"].to_pylist() == pytest.approx([-s for s in up.to_arrow()["score"].to_pylist()])
    assert down.to_arrow()["lower"].to_pylist() == pytest.approx([-s for s in up.to_arrow()["upper"].to_pylist()])
    mixed = score.copy()
    mixed[:, 3] *= -1
    one = cc.rank_scores(rows_of(mixed), lower_is_better="t003", by="win-rate")
    assert one.to_arrow().equals(cc.rank_scores(rows_of(score), by="win-rate").to_arrow())


def test_losses_are_noticed_by_their_names() -> None:
    rows = {"system": list("aabb"), "task": ["wiki perplexity", "books perplexity"] * 2, "score": [3.0, 4, 2, 4]}
    found = cc.rank_scores(rows)
    note = next(note for note in found.notes if "less is better: the lowest is the best" in note)
    assert "lower_is_better=False" in note and found.systems == ("b", "a")
    for said in (True, False):
        told = cc.rank_scores(rows, lower_is_better=said)
        assert not any("less is better" in note for note in told.notes) and (told.systems == ("b", "a")) is said
    named = cc.rank_scores(
        cc.read_scores({"system": list("ab"), "task": ["x", "x"], "WER": [3.0, 4.0]}, columns={"score": "WER"})
    )
    assert named.systems == ("a", "b") and named.table.lower.all()
    one = cc.rank_scores(rows | {"task": ["wiki perplexity", "accuracy"] * 2})
    assert "lower=" in next(note for note in one.notes if "less is better" in note) and not one.table.lower.any()


@pytest.mark.parametrize("tasks", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_few_tasks_tell_nothing_apart(tasks: int, missing: float) -> None:
    """One of 2ⁿ⁻¹ orders of signs is always the most extreme one: what was seen is no more than it, as it rounds."""
    rng = np.random.default_rng(seed(tasks))
    for digits in (0, 1, 2, 15) * 5:
        score = (rng.normal(size=(4, 1)) * 3 + rng.normal(size=(4, tasks))).round(digits)
        score[rng.random(score.shape) < missing] = np.nan
        if (~np.isnan(score)).any(axis=1).sum() < 2:
            continue
        board = cc.rank_scores(rows_of(score))
        assert not board.above.any() and set(board.to_arrow()["tier"].to_pylist()) == {1}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("by", ["mean", "median", "win-rate", "borda", "bradley-terry"])
@pytest.mark.parametrize("tasks", [1, 2, 7])
def test_systems_that_are_all_alike(by: str, tasks: int) -> None:
    board = cc.rank_scores(rows_of(np.full((3, tasks), 0.1)), by=by)
    for row in board.to_arrow().to_pylist():
        assert (row["rank"], row["rank_lower"], row["rank_upper"], row["may_be_first"]) == (1, 1, 3, True)
        assert by == "bradley-terry" or row["standard_error"] == (0.0 if tasks > 1 else None)
    assert not board.above.any() and board.averages().num_rows == 3 and str(board)
    for row in board.contrasts().to_pylist():
        assert row["difference"] == 0.0 and row["p_value"] in (None, 1.0) and row["ties"] == tasks


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("by", ["mean", "median", "win-rate", "borda"])
def test_a_system_that_shares_no_task_has_no_rank(by: str) -> None:
    score = np.vstack([np.random.default_rng(seed(1)).normal(size=(3, 8)), np.full((1, 8), np.nan)])
    score = np.hstack([score, [[np.nan], [np.nan], [np.nan], [5.0]]])
    board = cc.rank_scores(rows_of(score), by=by)
    last = board.to_arrow().to_pylist()[-1]
    assert (last["component"], last["system"], last["tasks"]) == (2, "s003", 1)
    assert all(last[name] is None for name in ("tier", "rank", "rank_lower", "rank_upper", "may_be_first"))
    assert "'s003' shares no task with another system" in " ".join(board.notes)
    assert board.averages().num_rows == 4 and board.contrasts().num_rows == 3 and len(board.first) >= 1


def test_medians_of_few_tasks_tell_nothing_apart() -> None:
    score = np.arange(4.0)[:, None] * 10 + np.random.default_rng(seed(2)).normal(size=(4, 5))
    board = cc.rank_scores(rows_of(score), by="median")
    assert not board.above.any() and "5 tasks are too few" in " ".join(board.notes)
    assert set(board.contrasts()["p_value"].to_pylist()) == {None}


def test_weights_count_by_their_ratios() -> None:
    score, weight = np.random.default_rng(seed(3)).normal(size=(3, 9)), np.arange(1.0, 10.0)
    one, other = (cc.rank_scores(rows_of(score, weight=weight * by)) for by in (1.0, 2.0**900))
    assert one.to_arrow().equals(other.to_arrow())


def test_names_that_differ_by_case_or_space_are_said() -> None:
    found = cc.rank_scores({"system": ["GPT", "gpt ", "b"], "task": ["x"] * 3, "score": [1.0, 2, 3]})
    assert "'GPT', 'gpt ' differ by case or space alone, and are taken as different systems" in found.notes


# -- what is refused ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"score": [1.0, 2, np.inf, 4]}, "1 of 4 rows hold a score that is no finite number"),
        ({"score": ["1", "x", "2", "3"]}, "'x'"),
        ({"system": ["a", "a", "a", "a"]}, "one system only"),
        ({"system": ["a", None, "b", "b"]}, "1 of 4 rows of scores have no system (first: row 2)"),
        ({"weight": [1.0, 2, 2, 2]}, "1 of 2 tasks have several weights"),
        ({"weight": [1.0, 0, 1, 0]}, "no weight above 0"),
        ({"cluster": ["x", "y", "z", "y"]}, "1 of 2 tasks have several clusters"),
        (
            {"task": [1, 1, 1, 2], "trial": [1, 1, 1, 1]},
            "1 trial is there more than once (first: system 'a', task '1')",
        ),
        ({"score": [1.0, 2, None, None]}, "fewer than two systems"),
        ({"task": [1, 2, 3, 4]}, "no task has the scores of two systems, so nothing is compared"),
    ],
)
def test_rows_that_are_no_scores_are_refused(change: dict[str, Any], said: str) -> None:
    rows: dict[str, Any] = {"system": ["a", "a", "b", "b"], "task": [1, 2, 1, 2], "score": [1.0, 2, 3, 4]}
    with pytest.raises(InputError) as refused:
        cc.rank_scores(rows | change)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"by": "meen"}, "did you mean 'mean'"),
        ({"level": 1.0}, "between 0 and 1"),
        ({"resamples": 5}, "at least 100"),
        ({"lower_is_better": ["t9"]}, "no task 't9'"),
    ],
)
def test_options_that_are_not_allowed_are_refused(options: dict[str, Any], said: str) -> None:
    rows = {"system": ["a", "a", "b", "b"], "task": ["t1", "t2"] * 2, "score": [1.0, 2, 3, 4]}
    with pytest.raises(UsageError, match=said):
        cc.rank_scores(rows, **options)


def test_a_board_speaks_and_is_plain_data() -> None:
    rng = np.random.default_rng(seed(14))
    board = cc.rank_scores(rows_of(rng.normal(size=(5, 12)) + 3.0 * (np.arange(5) == 2)[:, None]))
    assert "s002 is the best by mean score" in str(board) and board.first == ["s002"]
    assert json.loads(json.dumps(board.to_dict()))["systems"][0]["tier"] == 1
    assert isinstance(board.joint, OverTasks) and repr(board) == "ScoreBoard(5 systems, 12 tasks, by mean)"
    with pytest.raises(UsageError, match="did you mean 's001'"):
        board.rank_sets(systems=["s01"])
    assert board.rank_sets("top", top=1, systems=["s002", "s000"])["among_first"].to_pylist() == [True, False]
    assert len(board.to_pandas()) == 5
