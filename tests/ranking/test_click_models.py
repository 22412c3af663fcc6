"""Models of clicks against brute force, against logs drawn from them, and by hand."""

import numpy as np
import pytest
from scipy.optimize import minimize

import concordant as cc
from concordant.apps.commands.matching import read_propensities
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences
from concordant.ranking.click_models import (
    cascade_likelihood,
    examination,
    inverse_propensity,
    position_trials,
    usual_clicks,
)
from concordant.ranking.dependent_clicks import dependent_trials, going_on
from concordant.ranking.ranked_lists import lists_with_gaps, several_clicks
from concordant.ranking.structures import STRUCTURES


def log_of(lists, clicks, query=None):
    """A log of lists of one length, given as arrays (lists, places)."""
    sessions, places = np.shape(lists)
    query = np.zeros(sessions, int) if query is None else query
    row = np.repeat(np.arange(sessions), places)
    position = np.tile(np.arange(1, places + 1), sessions)
    return Preferences.from_selections(query[row], row, position, np.ravel(lists), np.ravel(clicks).astype(int))


def drawn(queries, items, places, sessions, theta, seed, model="position-based", going_on=None):
    """Lists in random order of each query, with clicks of a model; also the attractions, shape (queries, items)."""
    draw = np.random.default_rng(seed)
    a = draw.uniform(0.1, 0.9, (queries, items))
    query = np.repeat(np.arange(queries), sessions)
    lists = np.array([draw.permutation(items)[:places] for _ in query])
    attracted = draw.random(lists.shape) < a[query[:, None], lists]
    if model == "position-based":
        return log_of(lists, attracted & (draw.random(lists.shape) < theta), query), a
    stays = np.cumsum(attracted & (draw.random(lists.shape) >= going_on), axis=1)
    before = np.column_stack([np.zeros(len(lists), int), stays[:, :-1]])
    return log_of(lists, attracted & (before == 0), query), a


def test_position_based_is_the_maximum_that_brute_force_finds():
    draw = np.random.default_rng(4)
    lists = np.array([draw.permutation(4)[:3] for _ in range(60)])
    clicks = draw.random(lists.shape) < np.array([0.7, 0.5, 0.3, 0.6])[lists] * np.array([1.0, 0.6, 0.5])
    prefs = log_of(lists, clicks)

    def loss(z):
        p = np.exp(np.append(0.0, z[:2])[None, :] + z[2:][lists])
        return 1e9 if (p >= 1).any() else -np.where(clicks, np.log(p), np.log1p(-p)).sum() + 0.005 * (z[:2] ** 2).sum()

    start = np.r_[-0.5, -0.5, np.full(4, -1.0)]
    best = minimize(loss, start, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 20000})
    assert np.exp(best.x[:2]) == pytest.approx(examination(prefs).value[1:], abs=1e-5)
    assert np.exp(best.x[2:]) == pytest.approx(STRUCTURES["position-based"](Batch.whole(prefs)).value, abs=1e-5)


def with_gaps(seed, sessions=400):
    """Lists of three of six items at three of the positions 2, 3, 5 and 8, columns (sessions, 3), with clicks."""
    draw = np.random.default_rng(seed)
    lists = np.array([draw.permutation(6)[:3] for _ in range(sessions)])
    at = np.sort([draw.permutation([2, 3, 5, 8])[:3] for _ in range(sessions)], axis=1)
    theta = np.array([np.nan, np.nan, 1.0, 0.7, np.nan, 0.5, np.nan, np.nan, 0.3])
    return lists, at, draw.random(lists.shape) < np.linspace(0.2, 0.8, 6)[lists] * theta[at]


def log_at(lists, at, clicks):
    session = np.repeat(np.arange(len(lists)), lists.shape[1])
    return Preferences.from_selections(None, session, at.ravel(), lists.ravel(), clicks.ravel().astype(int))


def test_positions_are_those_that_the_log_gives():
    """Of entries that stand anywhere the maximum is that of the counts by item and position, by brute force."""
    lists, at, clicks = with_gaps(3)
    prefs = log_at(lists, at, clicks)
    place = np.searchsorted([2, 3, 5, 8], at)

    def loss(z):
        p = np.exp(np.append(0.0, z[:3])[place] + z[3:][lists])
        return 1e9 if (p >= 1).any() else -np.where(clicks, np.log(p), np.log1p(-p)).sum() + 0.005 * (z[:3] ** 2).sum()

    options = {"xatol": 1e-9, "fatol": 1e-12, "maxiter": 40000, "maxfev": 40000}
    best = minimize(loss, np.r_[-0.3, -0.7, -1.2, np.full(6, -1.0)], method="Nelder-Mead", options=options)
    found = cc.click_positions(prefs).to_pydict()
    assert found["position"] == [2, 3, 5, 8] and found["shown"] == [np.sum(at == one) for one in (2, 3, 5, 8)]
    assert found["clicks"] == [np.sum(clicks[at == one]) for one in (2, 3, 5, 8)]
    assert found["examination"] == pytest.approx([1.0, *np.exp(best.x[:3])], abs=1e-5)
    assert np.exp(best.x[3:]) == pytest.approx(STRUCTURES["position-based"](Batch.whole(prefs)).value, abs=1e-5)
    said = cc.rank(prefs, "position-based").notes[-1]
    assert said.startswith("position-based: positions 2, 3, 5, 8 are examined as 1, 0.")


@pytest.mark.parametrize("structure", ["position-based", "dependent-click", "inverse-propensity"])
def test_which_positions_are_used_decides_and_not_their_numbers(structure):
    """Each position has a parameter of its own, so 2, 3, 5, 8 are as good as 1, 2, 3, 4 and other than an order."""
    lists, at, clicks = with_gaps(5)
    known = np.array([0, 0, 1, 2, 0, 3, 0, 0, 4])
    one, other = log_at(lists, at, clicks), log_at(lists, known[at], clicks)
    scores = [STRUCTURES[structure](Batch.whole(log)).value for log in (one, other)]
    np.testing.assert_allclose(*scores, rtol=0, atol=1e-9)
    order = log_at(lists, np.tile([1, 2, 3], (len(lists), 1)), clicks)
    assert np.abs(STRUCTURES[structure](Batch.whole(order)).value - scores[0]).max() > 1e-3
    if structure == "inverse-propensity":
        return
    tables = [cc.click_positions(log, structure).drop(["position"]) for log in (one, other)]
    for name in tables[0].column_names:
        np.testing.assert_allclose(tables[0][name], tables[1][name], rtol=0, atol=1e-8)
    assert usual_clicks(one) == usual_clicks(other)


def test_propensities_are_needed_where_the_log_has_items():
    prefs = log_at(*with_gaps(7))
    given = [None, 1.0, 0.7, None, 0.5, None, None, 0.3]
    whole = [one or 0.9 for one in given]
    found = [inverse_propensity(Batch.whole(prefs), propensities=one).value.tolist() for one in (given, whole)]
    assert found[0] == found[1]
    with pytest.raises(cc.UsageError, match="there is no propensity of 2 positions at which the log has items: 3, 8"):
        inverse_propensity(Batch.whole(prefs), propensities=[1, 1, None, 1, 1, 1, 1, None])
    with pytest.raises(cc.UsageError, match="propensities are numbers in"):
        inverse_propensity(Batch.whole(prefs), propensities=[np.nan] + 7 * [1.0])


def test_positions_come_back_from_a_store_and_its_export(tmp_path):
    lists, at, clicks = with_gaps(8, 50)
    at[0] = [998, 999, 1000]  # which is far but no further
    at[1] = [1, 1001, 3000]  # which counts as 1, 999, 1000
    rows = zip(np.repeat(np.arange(50), 3), at.ravel(), lists.ravel(), clicks.ravel().astype(int), strict=True)
    log = tmp_path / "log.csv"
    log.write_text("session,position,item,clicked\n" + "".join(f"{s},{p},i{i},{c}\n" for s, p, i, c in rows))
    prefs = cc.read(log)
    store = cc.Store(tmp_path / "s")
    store.ingest(log)
    assert cc.read(tmp_path / "s") == prefs
    store.export(tmp_path / "back.csv")
    assert cc.read(tmp_path / "back.csv") == prefs
    table = cc.click_positions(prefs).to_pydict()
    assert table["position"] == [1, 2, 3, 5, 8, 998, 999, 1000]
    assert sum(table["clicks"]) == clicks.sum() and table["shown"][-3:] == [1, 2, 2]


def test_errors_of_examination_and_attraction_are_those_of_the_whole_information():
    prefs, _ = drawn(2, 4, 3, 60, np.array([1.0, 0.6, 0.4]), 1)
    batch, found = Batch.whole(prefs), examination(prefs)
    a = STRUCTURES["position-based"](batch).value
    lists, node, value = batch.entries(prefs)
    times = lists.spread(batch.multiplicity)
    design = np.zeros((len(node), 2 + len(a)))
    place = lists.place
    design[place > 0, place[place > 0] - 1] = 1.0
    design[np.arange(len(node)), 2 + node] = 1.0
    p = found.value[place] * a[node]
    weight = times * np.where(value > 0, 0.0, p / (1 - p) ** 2)
    cov = np.linalg.inv(design.T @ (weight[:, None] * design) + np.diag([0.01] * 2 + [0.0] * len(a)))
    assert found.covariance[1:, 1:] == pytest.approx(cov[:2, :2], rel=1e-6)
    clicks, trials = position_trials(batch)
    assert clicks / trials == pytest.approx(a, rel=1e-9)
    assert a * (1 - a) / trials == pytest.approx(a**2 * np.diag(cov)[2:], rel=1e-6)


@pytest.mark.parametrize("theta", [np.array([1.0, 0.7, 0.5, 0.35, 0.2]), np.array([1.0, 1.3, 0.8, 0.5, 0.4])])
def test_position_based_parameters_come_back_from_unseen_layouts(theta):
    prefs, a = drawn(20, 8, 5, 2000, theta / max(theta), 2)
    found = examination(prefs)
    assert (np.abs(found.value - theta) < 4 * found.error + 1e-12).all() and found.error.max() < 0.02
    board = cc.rank(prefs, "position-based")
    truth = a.ravel()[np.lexsort((board.item, board.query)).argsort()] / max(theta)
    assert np.abs(board.score - truth).max() < 0.1
    inside = (board.lower <= truth) & (truth <= board.upper)
    assert inside.mean() > 0.9
    assert [note.code for note in board.notes].count("examination") == 1


@pytest.mark.parametrize("on", [np.array([0.8, 0.6, 0.5, 0.4, 0.0]), np.array([0.2, 0.9, 0.0, 0.7, 0.0])])
def test_dependent_click_parameters_come_back_from_unseen_layouts(on):
    prefs, a = drawn(10, 8, 5, 1500, None, 3, "dependent-click", on)
    found = going_on(prefs)
    assert (np.abs(found.value - on)[:4] < 4 * found.error[:4] + 1e-12).all() and found.error[:4].max() < 0.05
    assert np.isnan(found.value[4])  # nothing stands below the last place
    board = cc.rank(prefs, "dependent-click")
    truth = a.ravel()[np.lexsort((board.item, board.query)).argsort()]
    assert np.abs(board.score - truth).max() < 0.1
    assert ((board.lower <= truth) & (truth <= board.upper)).mean() > 0.9
    assert usual_clicks(prefs) == "dependent-click"


def test_dependent_clicks_come_back_from_one_layout_a_query():
    """What stands above the first click was surely examined, so attractions are known without any change of places."""
    draw, on = np.random.default_rng(6), np.array([0.7, 0.5, 0.3, 0.0])
    a, query = draw.uniform(0.1, 0.6, (10, 4)), np.repeat(np.arange(10), 3000)
    attracted = draw.random((len(query), 4)) < a[query]
    stays = np.cumsum(attracted & (draw.random(attracted.shape) >= on), axis=1)
    clicks = attracted & (np.column_stack([np.zeros(len(query), int), stays[:, :-1]]) == 0)
    prefs = log_of(np.tile(np.arange(4), (len(query), 1)), clicks, query)
    found = going_on(prefs)
    assert (np.abs(found.value - on)[:3] < 4 * found.error[:3]).all()
    assert np.abs(STRUCTURES["dependent-click"](Batch.whole(prefs)).value.reshape(10, 4) - a).max() < 0.06
    assert usual_clicks(prefs) == "dependent-click"


def test_dependent_clicks_are_the_maximum_that_brute_force_finds_and_its_curvature():
    draw = np.random.default_rng(8)
    lists = np.array([draw.permutation(4)[:3] for _ in range(80)])
    attracted = draw.random(lists.shape) < np.array([0.7, 0.5, 0.3, 0.6])[lists]
    stays = np.cumsum(attracted & (draw.random(lists.shape) >= 0.6), axis=1)
    clicks = attracted & (np.column_stack([np.zeros(80, int), stays[:, :-1]]) == 0)
    prefs = log_of(lists, clicks)

    def loss(z):
        """Minus the log-likelihood, list by list, of readers who go on with chance z[:2] after a click at 1, 2."""
        on, total = np.append(z[:2], 0.0), 0.0
        for items, clicked in zip(lists, clicks, strict=True):
            a, last = z[2:][items], np.flatnonzero(clicked)
            end = last[-1] if len(last) else 2
            total += np.log(np.where(clicked, a, 1 - a)[: end + 1]).sum() + np.log(on[last[:-1]]).sum()
            if len(last) and end < 2:
                total += np.log(1 - on[end] + on[end] * np.prod(1 - a[end + 1 :]))
        return -total

    best = minimize(loss, np.full(6, 0.5), bounds=[(1e-6, 1 - 1e-6)] * 6, method="L-BFGS-B", tol=1e-13)
    found = going_on(prefs)
    assert found.value[:2] == pytest.approx(best.x[:2], abs=1e-4)
    assert found.likelihood == pytest.approx(-best.fun, abs=1e-7)
    batch = Batch.whole(prefs)
    a = STRUCTURES["dependent-click"](batch).value
    assert a == pytest.approx(best.x[2:], abs=1e-4)
    at, step = np.concatenate([found.value[:2], a]), 1e-4 * np.eye(6)
    curvature = [[(loss(at + u + v) - loss(at + u - v) - loss(at - u + v) + loss(at - u - v)) / 4e-8 for u in step]
                 for v in step]  # fmt: skip
    own, (successes, trials) = np.diag(curvature), dependent_trials(batch)
    assert successes / trials == pytest.approx(a)
    assert a * (1 - a) / trials == pytest.approx(1 / own[2:], rel=1e-4)
    profiled = own[:2] - (np.array(curvature)[:2, 2:] ** 2 / own[2:]).sum(axis=1)
    between = -(np.array(curvature)[0, 2:] * np.array(curvature)[1, 2:] / own[2:]).sum()
    covariance = np.linalg.inv(np.array([[profiled[0], between], [between, profiled[1]]]))
    assert found.error[:2] == pytest.approx(np.sqrt(np.diag(covariance)), rel=1e-4)


def test_of_two_models_that_the_log_tells_the_likelier_one_is_usual():
    theta = np.array([1.0, 0.7, 0.5, 0.35, 0.2])
    assert usual_clicks(drawn(20, 8, 5, 300, theta, 2)[0]) == "position-based"
    assert usual_clicks(drawn(20, 8, 5, 300, None, 2, "dependent-click", theta)[0]) == "dependent-click"


def test_one_click_a_list_is_the_cascade():
    prefs, _ = drawn(5, 6, 4, 50, None, 5, "dependent-click", np.zeros(4))
    batch = Batch.whole(prefs)
    assert STRUCTURES["dependent-click"](batch).value.tolist() == STRUCTURES["cascade"](batch).value.tolist()


def test_positions_that_no_clicked_item_links_have_scales_of_their_own():
    lists = [[1, 2, 3, 4], [2, 1, 4, 3]] * 20
    prefs = log_of(lists, np.random.default_rng(0).random((40, 4)) < 0.5)
    assert examination(prefs).component.tolist() == [0, 0, 1, 1]
    assert examination(prefs).value[[0, 2]].tolist() == [1.0, 1.0]
    board = cc.rank(prefs, "position-based")
    assert board.component.tolist() == [1, 1, 2, 2]
    note = next(note for note in board.notes if note.code == "not identified")
    assert "1, 2 | 3, 4" in note
    fixed = cc.rank(log_of([[1, 2, 3]] * 20, np.random.default_rng(0).random((20, 3)) < 0.5), "position-based")
    assert sorted(fixed.component) == [1, 2, 3]
    with pytest.raises(cc.UsageError, match="give propensities"):
        inverse_propensity(Batch.whole(prefs))


def test_inverse_propensities_by_hand_and_clipped():
    prefs = log_of([["x", "y"], ["y", "x"], ["x", "y"]], [[1, 1], [0, 1], [0, 0]])
    batch = Batch.whole(prefs)
    assert inverse_propensity(batch, propensities=[1.0, 0.5]).value.tolist() == [1.0, 2 / 3]
    assert inverse_propensity(batch, propensities=[1.0, 0.5], clip=0.8).value == pytest.approx([0.75, 1.25 / 3])
    for wrong in ([1.0], [1.0, 0.0], "ab", [1.0, 2.0]):
        with pytest.raises(cc.UsageError, match=r"propensities are numbers|1 propensities and 2 positions"):
            inverse_propensity(batch, propensities=wrong)
    with pytest.raises(cc.UsageError, match="clip"):
        inverse_propensity(batch, clip=0)


def single_items(theta, seed, number=20_000, steady=0.0):
    """Rows of one item each, 4 queries of 6 items, at any position; where ``steady`` the better stand lower."""
    draw = np.random.default_rng(seed)
    query, item = draw.integers(0, 4, number), draw.integers(0, 6, number)
    a = draw.uniform(0.1, 0.9, (4, 6))
    apart = (np.argsort(np.argsort(a, axis=1), axis=1)[query, item] * len(theta)) // 6
    at = np.where(draw.random(number) < steady, apart, draw.integers(0, len(theta), number))
    clicked = draw.random(number) < a[query, item] * np.array(theta)[at]
    return Preferences.from_selections(query, np.arange(number), at + 1, item, clicked.astype(int)), a


@pytest.mark.parametrize("seed", range(4))
def test_single_items_are_read_by_their_positions_where_these_make_a_difference(seed):
    matter, a = single_items([1.0, 0.6, 0.3], seed, steady=0.7)
    assert lists_with_gaps(matter) > 0 and several_clicks(matter) == 0
    assert usual_clicks(matter) == "position-based"
    rates, attractions = (STRUCTURES[name](Batch.whole(matter)).value for name in ("cascade", "position-based"))
    assert np.abs(attractions - a.ravel()).max() < 0.15 < np.abs(rates - a.ravel()).max()
    assert usual_clicks(single_items([1.0, 0.6, 0.3], seed, number=200)[0]) == "position-based"
    none, _ = single_items([1.0], seed)
    assert lists_with_gaps(none) == 0 and usual_clicks(none) == "cascade"


@pytest.mark.parametrize(
    ("at", "rows", "clicks"),
    [(7, 1, 0), (7, 500, 0), (7, 20, 2), (0, 20, 3)],
    ids=["one row", "never clicked", "few", "few in front"],
)
def test_a_rare_position_decides_nothing(at, rows, clicks):
    prefs, _ = single_items([1.0, 0.6, 0.3], 0, steady=0.7)
    query, item, click = prefs.query, prefs.list_item, prefs.list_value > 0
    place = np.where(click, prefs.list_value, 1 - prefs.list_value).astype(int)
    query, item, place, click = (np.repeat(each, prefs.count) for each in (query, item, place, click))
    draw = np.random.default_rng(1)
    query, item = np.append(query, draw.integers(0, 4, rows)), np.append(item, draw.integers(0, 6, rows))
    place, click = np.append(place, np.full(rows, at)), np.append(click, np.arange(rows) < clicks)
    more = Preferences.from_selections(query, np.arange(len(query)), place + (at == 0), item, click.astype(int))
    assert usual_clicks(prefs) == usual_clicks(more) == "position-based"


def test_positions_that_nothing_links_are_not_compared():
    """Half of the items only on top, the others only below: who is liked and what is seen cannot be told apart."""
    draw = np.random.default_rng(0)
    item = draw.integers(0, 6, 20_000)
    place = np.where(item < 3, 1, 2)
    clicked = draw.random(20_000) < np.where(place == 1, 0.95, 0.05) * 0.5
    log = Preferences.from_selections(None, np.arange(20_000), place, item, clicked.astype(int))
    assert not examination(log).sure and usual_clicks(log) == "cascade"


@pytest.mark.parametrize(("rows", "low", "high"), [(2, 0.1, 1.0), (10, 0.0, 0.05)])
def test_of_items_with_few_rows_examinations_are_off(rows, low, high):
    draw = np.random.default_rng(5)
    item = np.repeat(np.arange(40_000 // rows), rows)
    place = draw.integers(0, 2, len(item))
    clicked = draw.random(len(item)) < draw.uniform(0.1, 0.9, item[-1] + 1)[item] * np.array([1.0, 0.5])[place]
    log = Preferences.from_selections(None, np.arange(len(item)), place + 1, item, clicked.astype(int))
    assert low <= abs(examination(log).value[1] / 0.5 - 1) < high


def test_positions_that_make_no_difference_are_left_out_of_it():
    """Of 2 Δ log-likelihood above 2 (K − 1), K = 3, where there is nothing to see: a chance of e^−2, 13.5% (χ², 2)."""
    usual = [usual_clicks(single_items([0.8] * 3, seed, number=3000)[0]) for seed in range(60)]
    assert set(usual) == {"cascade", "position-based"} and 2 <= usual.count("position-based") <= 18


def test_the_likelihood_of_the_cascade_is_that_of_its_clicks():
    draw = np.random.default_rng(3)
    lists = np.array([draw.permutation(4)[:3] for _ in range(50)])
    clicks = draw.random(lists.shape) < 0.4
    clicks &= np.cumsum(clicks, axis=1) == 1
    prefs = log_of(lists, clicks)
    chance = dict(zip(range(4), STRUCTURES["cascade"](Batch.whole(prefs)).value, strict=True))
    total = 0.0
    for shown, clicked in zip(lists, clicks, strict=True):
        for item, click in zip(shown, clicked, strict=True):
            total += np.log(chance[item] if click else 1 - chance[item])
            if click:
                break
    assert cascade_likelihood(prefs) == pytest.approx(total, rel=1e-12)


def test_lists_with_gaps_are_counted_as_often_as_they_occur():
    rows = [
        (1, 1, "x", 0),
        (1, 2, "y", 1),
        (2, 1, "x", 1),
        (2, 3, "y", 0),
        (3, 2, "y", 1),
        (4, 2, "y", 1),
        (5, 1, "y", 1),
    ]
    prefs = Preferences.from_selections(None, *[[row[at] for row in rows] for at in range(4)])
    assert lists_with_gaps(prefs) == 3 and prefs.distinct == 4


def test_several_clicks_are_kept_and_one_click_models_say_what_to_do():
    prefs = log_of([["x", "y", "z"]] * 3, [[1, 0, 1], [1, 1, 0], [0, 0, 1]])
    assert several_clicks(prefs) == 2
    for name in ("cascade", "plackett-luce"):
        with pytest.raises(cc.UsageError, match=r"2 of 3 .*have more than one click"):
            cc.rank(prefs, name)
    wins = Batch.whole(prefs).graphs  # each click over what was passed above it
    assert (wins.above + wins.below).sum() == 3


@pytest.mark.parametrize("seed", range(6))
def test_dependent_clicks_have_the_same_bits_however_a_log_is_cut(seed):
    """Queries in another order, some of them alone: extrapolated steps would make much of any rounding."""
    draw = np.random.default_rng(seed)
    query = np.repeat(np.arange(8), 12)
    lists = np.array([draw.permutation(6)[:4] for _ in query])
    clicks = draw.random(lists.shape) < draw.uniform(0.1, 0.9, (8, 6))[query[:, None], lists] * [1, 0.9, 0.4, 0.7]
    prefs, renamed = log_of(lists, clicks, query), log_of(lists, clicks, draw.permutation(8)[query])
    mine, theirs = going_on(prefs), going_on(renamed)
    assert np.nan_to_num(mine.value).tolist() == np.nan_to_num(theirs.value).tolist()
    assert mine.iterations == theirs.iterations
    model, two = STRUCTURES["dependent-click"].function, np.array([1, 4])
    whole, some = model(Batch.whole(prefs)).value, model(Batch.whole(prefs, two)).value
    assert some.tolist() == whole[prefs.member_groups.take(two)[1]].tolist()
    alone, beside = (model(Batch.subsets(prefs, 5, 3, queries=codes)).value for codes in (two[1:], two))
    assert beside[-len(alone) :].tolist() == alone.tolist()


def test_propensities_are_read_by_position_and_wrong_tables_are_refused(tmp_path):
    def read(*rows):
        (tmp_path / "p.csv").write_text("position,propensity\n" + "".join(f"{p},{c}\n" for p, c in rows))
        return read_propensities(str(tmp_path / "p.csv"))

    assert read((2, 0.5), (1, 1)) == [1.0, 0.5]
    assert read((4, 0.25), (1, 1)) == [1.0, None, None, 0.25]
    for rows, said in [
        (((1, 1), (2, 0.5), (2, 0.4)), "2 stands twice"),
        (((1, 1), (1001, 0.5)), "1001 comes where there are 2"),
        (((1, 1), (1.5, 0.5)), r"1\.5 is none"),
        (((0, 1), (1, 0.5)), "0 is none"),
        (((1, 1), (2, 0)), r"1 of 2 propensities are not in \(0, 1\] \(first: 0 of position 2\)"),
    ]:
        with pytest.raises(cc.InputError, match=said):
            read(*rows)
