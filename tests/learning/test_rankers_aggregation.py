"""AggregationRanker against scikit-learn on data put together by hand, and any regressor inside it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.validation import has_fit_parameter
from threadpoolctl import threadpool_limits

from concordant.errors import InputError, UsageError
from concordant.learning.features.matrix import Features, align
from concordant.learning.rankers.aggregation import AggregationRanker
from concordant.learning.rankers.columns import WholeColumns
from concordant.learning.targets.informed import informed_prior
from concordant.preferences.graphs import Batch
from concordant.preferences.preferences import Preferences
from concordant.ranking.structures import structure
from ranking_problems import Problem, bradley_terry_problem

PROBLEM = bradley_terry_problem(seed=3, comparisons=40)
WHOLE = {"order": "all", "gain": "identity", "normalise": False}


def by_hand(problem: Problem, weights: dict[str, float] | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of features and Bradley–Terry scores, centred in each query, and weights n̂_q/(n m_q), item by item."""
    batch = Batch.whole(problem.prefs)
    scores = structure("bradley-terry")(batch).value
    row_of = {pair: row for row, pair in enumerate(zip(problem.query, problem.item, strict=True))}
    X, y, w = [], [], []
    total = sum((weights or {}).get(q, 1.0) * n for q, n in zip(problem.prefs.queries, problem.prefs.judgments))
    for code, q in enumerate(problem.prefs.queries):
        nodes = np.flatnonzero(batch.owner == code)
        rows = [row_of[q, problem.prefs.items[batch.item[node]]] for node in nodes]
        X.append(problem.X[rows] - problem.X[rows].mean(axis=0))
        y.append(scores[nodes] - scores[nodes].mean())
        share = (weights or {}).get(q, 1.0) * problem.prefs.judgments[code] / total
        w.append(np.full(len(nodes), share / len(nodes)))
    return np.concatenate(X), np.concatenate(y), np.concatenate(w)


def test_complete_aggregation_is_weighted_least_squares_on_centred_rows() -> None:
    X, y, w = by_hand(PROBLEM)
    ranker = AggregationRanker("bradley-terry", ridge=0, **WHOLE).fit(PROBLEM.features, PROBLEM.prefs)
    expected = LinearRegression(fit_intercept=False).fit(X, y, sample_weight=w).coef_
    assert np.allclose(ranker.coef_, expected, rtol=1e-9)
    assert ranker.status_["status"] == "closed form" and ranker.status_["gradient"] < 1e-12


@pytest.mark.parametrize("ridge", [0.003, 0.5])
def test_ridge_is_half_lambda_theta_squared_on_standardised_features(ridge: float) -> None:
    X, y, w = by_hand(PROBLEM)
    scale = PROBLEM.X.std(axis=0)
    ranker = AggregationRanker("bradley-terry", ridge=ridge, **WHOLE).fit(PROBLEM.features, PROBLEM.prefs)
    # ½ Σ w r² + (λ/2)‖θ‖² is half of scikit-learn's Σ w r² + λ‖θ‖²
    expected = Ridge(alpha=ridge, fit_intercept=False, tol=1e-12).fit(X / scale, y, sample_weight=w).coef_
    assert np.allclose(ranker.coef_standardised_, expected, rtol=1e-8)
    assert np.allclose(ranker.coef_, expected / scale, rtol=1e-8)
    assert np.allclose(np.diff(ranker.predict(PROBLEM.X)), np.diff(PROBLEM.X @ ranker.coef_), atol=1e-12)


def test_a_regressor_given_gets_the_same_targets_centred_and_weighted() -> None:
    _, y, w = by_hand(PROBLEM)
    rows = Features.of(PROBLEM.X, PROBLEM.item, PROBLEM.query)
    ranker = AggregationRanker("bradley-terry", regressor=LinearRegression(), **WHOLE).fit(rows, PROBLEM.prefs)
    Z = (PROBLEM.X - PROBLEM.X.mean(axis=0)) / PROBLEM.X.std(axis=0)
    order = np.lexsort((PROBLEM.item, PROBLEM.query))  # every item of the problem is judged
    peer = LinearRegression().fit(Z[order], y, sample_weight=w)
    assert np.allclose(ranker.predict(rows), peer.predict(Z), atol=1e-10)
    assert isinstance(ranker.foreign_, LinearRegression) and not hasattr(ranker, "coef_standardised_")


class Spy(LinearRegression):
    """Remembers the targets that it was given, in every fit of every clone."""

    seen: list[np.ndarray] = []  # noqa: RUF012

    def fit(self, X, y, sample_weight=None):
        self.seen.append(y)
        return super().fit(X, y, sample_weight)


def test_targets_are_centred_in_each_query_in_every_fit() -> None:
    """Gains 2^s over Z have another mean in every query, which would cost a regressor its strength."""
    Spy.seen.clear()
    AggregationRanker("log-odds", order=[5, "all"], gain="2^s", regressor=Spy()).fit(PROBLEM.features, PROBLEM.prefs)
    assert len(Spy.seen) == 2 * 3 + 1
    for target in Spy.seen:
        sums = np.bincount(np.unique(np.sort(PROBLEM.query), return_inverse=True)[1], target)
        assert np.abs(sums).max() < 1e-10 * np.abs(target).max()


def test_row_order_changes_nothing() -> None:
    shuffled = np.random.default_rng(1).permutation(len(PROBLEM.X))
    votes = np.random.default_rng(2).permutation(len(PROBLEM.winner))
    prefs = Preferences.from_comparisons(
        PROBLEM.item[PROBLEM.winner[votes]], PROBLEM.item[PROBLEM.loser[votes]], PROBLEM.query[PROBLEM.winner[votes]]
    )
    for given in ({"order": 7}, {"order": "auto", "gain": "auto"}):
        first = AggregationRanker("log-odds", **given).fit(PROBLEM.features, PROBLEM.prefs)
        again = AggregationRanker("log-odds", **given).fit(PROBLEM.features.take(shuffled), prefs)
        assert np.allclose(again.predict(PROBLEM.X), first.predict(PROBLEM.X), rtol=1e-9, atol=1e-12)
        assert again.order_ == first.order_ and again.gain_ == first.gain_


def test_count_is_repetition() -> None:
    count = np.random.default_rng(0).integers(1, 4, len(PROBLEM.winner))
    up, down = PROBLEM.winner, PROBLEM.loser
    counted = Preferences.from_comparisons(PROBLEM.item[up], PROBLEM.item[down], PROBLEM.query[up], count=count)
    up, down = np.repeat(up, count), np.repeat(down, count)
    repeated = Preferences.from_comparisons(PROBLEM.item[up], PROBLEM.item[down], PROBLEM.query[up])
    first, second = (
        AggregationRanker("log-odds", order=9).fit(PROBLEM.features, prefs) for prefs in (counted, repeated)
    )
    assert np.array_equal(first.coef_, second.coef_)


def test_sample_weight_multiplies_the_loss_of_a_query() -> None:
    weights = {q: 1.0 + (place % 3) for place, q in enumerate(PROBLEM.prefs.queries)}
    per_row = np.array([weights[q] for q in PROBLEM.query])
    X, y, w = by_hand(PROBLEM, weights)
    ranker = AggregationRanker("bradley-terry", ridge=0, **WHOLE)
    ranker.fit(PROBLEM.X, PROBLEM.judged, sample_weight=per_row)
    assert np.allclose(ranker.coef_, LinearRegression(fit_intercept=False).fit(X, y, sample_weight=w).coef_, rtol=1e-9)
    doubled = ranker.coef_
    assert np.allclose(ranker.fit(PROBLEM.X, PROBLEM.judged, 7 * per_row).coef_, doubled, rtol=1e-12)
    without = np.where(PROBLEM.query == "q00", 0.0, 1.0)
    alone = AggregationRanker("log-odds", order="all", ridge=0.1, standardise=False)
    rest = PROBLEM.prefs.select(PROBLEM.prefs.queries.tolist()[1:])
    expected = alone.fit(PROBLEM.features, rest).coef_
    assert np.allclose(alone.fit(PROBLEM.X, PROBLEM.judged, without).coef_, expected, rtol=1e-10)
    for wrong, said in ((np.arange(len(PROBLEM.X)), "differs within a query"), (-per_row, "negative"),
                        (per_row[1:], "entries"), (0 * per_row, "zero for every query")):  # fmt: skip
        with pytest.raises(InputError, match=said):
            ranker.fit(PROBLEM.X, PROBLEM.judged, sample_weight=wrong)


def test_recovers_the_truth_as_comparisons_grow() -> None:
    errors = []
    for comparisons in (30, 3000):
        problem = bradley_terry_problem(comparisons=comparisons, seed=8)
        ranker = AggregationRanker("bradley-terry", ridge=0, **WHOLE).fit(problem.features, problem.prefs)
        truth = np.linspace(1.0, -1.0, 3)
        errors.append(np.abs(ranker.coef_ - truth).max())
    assert errors[1] < 0.25 * errors[0] and errors[1] < 0.15


REGRESSORS = (
    RandomForestRegressor(40, random_state=0),
    HistGradientBoostingRegressor(max_iter=40, min_samples_leaf=5),
    MLPRegressor(hidden_layer_sizes=(8,), max_iter=3000, tol=1e-3, random_state=0),
    make_pipeline(MinMaxScaler(), RandomForestRegressor(20, random_state=0)),
    TransformedTargetRegressor(LinearRegression()),
)


@pytest.mark.parametrize("regressor", REGRESSORS, ids=lambda r: type(r).__name__)
def test_any_regressor(regressor) -> None:
    if isinstance(regressor, MLPRegressor) and not has_fit_parameter(regressor, "sample_weight"):
        pytest.skip("networks of scikit-learn before 1.7 take no weights")
    with threadpool_limits(1):  # threads that wait for each other are slow on a busy machine
        ranker = AggregationRanker("bradley-terry", regressor=regressor, **WHOLE).fit(PROBLEM.features, PROBLEM.prefs)
    assert ranker.score(PROBLEM.features, PROBLEM.prefs) > 0.7
    assert np.corrcoef(ranker.predict(PROBLEM.X), PROBLEM.truth)[0, 1] > 0.8
    assert ranker.regressor_ is not regressor and type(ranker.foreign_) is type(regressor)
    assert not hasattr(regressor, "n_features_in_")  # it was cloned


def test_lightgbm_splits_though_weights_are_small() -> None:
    lightgbm = pytest.importorskip("lightgbm")
    regressor = lightgbm.LGBMRegressor(n_estimators=30, min_child_samples=5, verbose=-1, n_jobs=1)
    ranker = AggregationRanker("bradley-terry", regressor=regressor, **WHOLE).fit(PROBLEM.features, PROBLEM.prefs)
    assert ranker.score(PROBLEM.features, PROBLEM.prefs) > 0.7


def test_weights_reach_the_last_step_of_a_pipeline() -> None:
    plain = AggregationRanker("log-odds", order="all", regressor=Ridge(1e-9)).fit(PROBLEM.features, PROBLEM.prefs)
    piped = AggregationRanker("log-odds", order="all", regressor=make_pipeline(MinMaxScaler(), Ridge(1e-9)))
    piped.fit(PROBLEM.features, PROBLEM.prefs)
    nested = AggregationRanker(
        "log-odds", order="all", regressor=make_pipeline(make_pipeline(MinMaxScaler(), Ridge(1e-9)))
    )
    nested.fit(PROBLEM.features, PROBLEM.prefs)
    assert np.allclose(piped.predict(PROBLEM.X), plain.predict(PROBLEM.X), atol=1e-7)
    assert np.allclose(nested.predict(PROBLEM.X), plain.predict(PROBLEM.X), atol=1e-7)


def test_a_regressor_without_weights_is_refused_unless_all_weigh_the_same() -> None:
    ranker = AggregationRanker("log-odds", order="all", regressor=KNeighborsRegressor(3))
    with pytest.raises(UsageError, match="KNeighborsRegressor takes no sample_weight"):
        ranker.fit(PROBLEM.features, PROBLEM.prefs)
    even = Preferences.from_comparisons(["a", "b", "c", "a"], ["b", "c", "a", "b"], ["p", "p", "p", "p"])
    ranker.fit({"item": ["a", "b", "c"], "x": [1.0, 2.0, 3.0]}, even)
    for wrong in (Ridge, "ridge"):
        with pytest.raises(UsageError, match="regressor"):
            AggregationRanker("log-odds", regressor=wrong).fit(PROBLEM.features, PROBLEM.prefs)


def test_missing_values() -> None:
    X = np.where(np.random.default_rng(0).random(PROBLEM.X.shape) < 0.1, np.nan, PROBLEM.X)
    with pytest.raises(InputError, match="not finite"):
        AggregationRanker("log-odds", order=5).fit(X, PROBLEM.judged)
    for missing in ("mean", "median", "zero"):
        ranker = AggregationRanker("log-odds", order=5, missing=missing).fit(X, PROBLEM.judged)
        assert np.isfinite(ranker.predict(X)).all() and ranker.score(X, PROBLEM.judged) > 0.6
    with pytest.raises(UsageError, match="needs a fill"):
        AggregationRanker("log-odds", order=5, missing="keep").fit(X, PROBLEM.judged)
    boosted = HistGradientBoostingRegressor(max_iter=20, min_samples_leaf=5)
    with threadpool_limits(1):
        ranker = AggregationRanker("log-odds", order=5, missing="keep", regressor=boosted).fit(X, PROBLEM.judged)
    gaps = np.full((1, 3), np.nan)
    assert np.isfinite(ranker.predict(gaps)).all()
    assert ranker.predict(gaps)[0] != ranker.predict(np.nanmean(X, axis=0)[None])[0]  # not filled in before


def test_informed_aggregation_regresses_on_scores_with_a_prior_from_the_features() -> None:
    few = bradley_terry_problem(queries=6, comparisons=6, seed=5)
    ranker = AggregationRanker("bradley-terry", informed=True, tau2=0.5, ridge=0, **WHOLE)
    ranker.fit(few.features, few.prefs)
    Z = (few.X - few.X.mean(axis=0)) / few.X.std(axis=0)
    prior = informed_prior(Z, align(few.features, few.prefs), few.prefs, tau2=0.5)
    rows, targets, weights = [], [], []
    for code, q in enumerate(few.prefs.queries):
        nodes = slice(*few.prefs.members[0][code : code + 2])
        mine = [int(np.flatnonzero((few.query == q) & (few.item == few.prefs.items[i]))[0])
                for i in few.prefs.members[1][nodes]]  # fmt: skip
        place = {row: at for at, row in enumerate(mine)}
        fought = [(place[up], place[down]) for up, down in zip(few.winner, few.loser, strict=True) if up in place]

        def loss(s: np.ndarray, mean=prior.mean[nodes], fought=fought) -> float:
            return sum(np.logaddexp(0, s[down] - s[up]) for up, down in fought) + ((s - mean) ** 2).sum() / (2 * 0.5)

        s = minimize(loss, np.zeros(len(mine)), options={"gtol": 1e-9}).x
        rows.append(few.X[mine] - few.X[mine].mean(axis=0))
        targets.append(s - s.mean())
        weights.append(np.full(len(mine), 1 / len(mine)))
    X, y, w = map(np.concatenate, (rows, targets, weights))
    expected = LinearRegression(fit_intercept=False).fit(X, y, sample_weight=w).coef_
    assert np.allclose(ranker.coef_, expected, rtol=1e-5)
    assert ranker.status_["tau2"] == 0.5 and ranker.structure_ == "bradley-terry"
    with pytest.raises(UsageError, match="informed aggregation is Bradley–Terry's"):
        AggregationRanker("borda", informed=True).fit(few.features, few.prefs)


def test_informed_aggregation_fades_where_judgments_are_many() -> None:
    apart = []
    for comparisons in (10, 5000):
        problem = bradley_terry_problem(queries=10, comparisons=comparisons, seed=5, noise=0.5, scale=0.2)
        fits = [AggregationRanker("bradley-terry", informed=one, tau2=1.0, ridge=0, **WHOLE) for one in (True, False)]
        first, second = (fit.fit(problem.features, problem.prefs).coef_ for fit in fits)
        apart.append(np.abs(first - second).max() / np.abs(second).max())
    assert apart[1] < 0.1 * apart[0]


def test_state_comes_back_to_the_bit() -> None:
    ranker = AggregationRanker("log-odds", order="auto", log=True).fit(PROBLEM.features, PROBLEM.prefs)
    values, arrays = ranker.to_state()
    again = AggregationRanker.from_state(json.loads(json.dumps(values)), arrays)
    assert np.array_equal(again.predict(PROBLEM.features), ranker.predict(PROBLEM.features))
    assert np.array_equal(again.coef_, ranker.coef_) and again.get_params() == ranker.get_params() | {
        "missing": "raise"
    }
    assert (again.order_, again.ridge_, again.gain_) == (ranker.order_, ranker.ridge_, ranker.gain_)
    with pytest.raises(InputError, match="lack '3'"):
        again.predict(Features.of(PROBLEM.X[:, :2], PROBLEM.item, PROBLEM.query))
    for broken in ({**values, "features": 4}, {k: v for k, v in values.items() if k != "normaliser"},
                   {**values, "ranker": "EdgeRanker"}, {**values, "params": {"nothing": 1}}):  # fmt: skip
        with pytest.raises(InputError, match="state"):
            AggregationRanker.from_state(broken, arrays)
    with pytest.raises(InputError, match="state"):
        AggregationRanker.from_state(values, {"coef": np.array([1.0, np.nan, 0.0])})


def test_a_function_as_gain_is_not_kept_and_not_needed() -> None:
    ranker = AggregationRanker("log-odds", order=5, gain=np.tanh, normalise=False).fit(PROBLEM.features, PROBLEM.prefs)
    values, arrays = ranker.to_state()
    assert values["not_kept"] == ["gain"]
    again = AggregationRanker.from_state(values, arrays)
    assert np.array_equal(again.predict(PROBLEM.X), ranker.predict(PROBLEM.X))


def test_the_state_of_a_given_regressor_is_kept_beside() -> None:
    ranker = AggregationRanker("log-odds", order="all", regressor=Ridge()).fit(PROBLEM.features, PROBLEM.prefs)
    values, arrays = ranker.to_state()
    again = AggregationRanker.from_state(values, arrays)
    again.regressor_ = ranker.foreign_
    assert arrays == {} and values["not_kept"] == ["regressor"]
    assert np.array_equal(again.predict(PROBLEM.X), ranker.predict(PROBLEM.X))


def test_status_says_what_happened() -> None:
    votes = Preferences.from_comparisons(["a", "b", "c"], ["b", "a", "d"], ["p", "p", "q"])
    table = {"query": ["p", "p", "p", "q", "q"], "item": ["a", "b", "e", "c", "d"], "x": [1.0, 2.0, 3.0, 4.0, 5.0]}
    ranker = AggregationRanker("log-odds", order=50).fit(table, votes)
    notes = {note.code: note.numbers for note in ranker.status_["notes"]}
    assert notes["rows without judgment"] == {"rows": 1, "of": 5}
    assert notes["one subset"] == {"queries": 2, "of": 2} and ranker.status_["queries_below_order"] == 2
    assert notes["no best order"] == {"zero": 1, "drawn": 2, "within": 1}
    drawn = AggregationRanker("log-odds", order=5, subsets=8).fit(PROBLEM.features, PROBLEM.prefs)
    more = AggregationRanker("log-odds", order=5, subsets=128).fit(PROBLEM.features, PROBLEM.prefs)
    assert 0 < more.status_["monte_carlo_error"] < 0.5 * drawn.status_["monte_carlo_error"]
    assert AggregationRanker("log-odds", order="all").fit(table, votes).status_["monte_carlo_error"] == 0


def test_a_feature_of_the_query_alone_gets_no_weight_even_without_ridge() -> None:
    """Constant in every query: rounding leaves something of it, which a fit without ridge would blow up."""
    codes = np.unique(PROBLEM.query, return_inverse=True)[1]
    of_query = np.random.default_rng(1).normal(size=codes.max() + 1)[codes] * 7.3
    X = np.column_stack([PROBLEM.X, of_query, np.full(len(codes), 0.1)])
    for kind in (np.float64, np.float32):
        ranker = AggregationRanker("bradley-terry", ridge=0, **WHOLE).fit(X.astype(kind), PROBLEM.judged)
        assert np.array_equal(ranker.coef_[3:], [0.0, 0.0])
        assert ranker.status_["status"].endswith("undetermined directions set to 0")
        alone = AggregationRanker("bradley-terry", ridge=0, **WHOLE).fit(PROBLEM.X, PROBLEM.judged)
        assert np.allclose(ranker.coef_[:3], alone.coef_, rtol=1e-9 if kind is np.float64 else 1e-3)


@pytest.mark.parametrize("intercept", ["query", "one", "none"])
@pytest.mark.parametrize("log", [False, True])
def test_no_copy_or_a_copy_of_the_features_is_one(intercept: str, log: bool, monkeypatch) -> None:
    """Features far from 0 and of very different scale; forced through the normalised copy as well."""
    X = PROBLEM.X * [1e-3, 1.0, 1e4] + [5.0, -1e5, 1e6]
    given = {"intercept": intercept, "log": log, "order": [3, "all"], "ridge": [0.01, 0.1]}
    first = AggregationRanker("log-odds", **given).fit(X, PROBLEM.judged)
    monkeypatch.setattr(WholeColumns, "_linear", False)
    second = AggregationRanker("log-odds", **given).fit(X, PROBLEM.judged)
    assert np.allclose(first.coef_standardised_, second.coef_standardised_, rtol=1e-7)
    assert np.allclose(first.cv_.folds, second.cv_.folds, atol=1e-12)
