"""Ordered outcomes with thresholds against the formula written out, closed forms, and a printed table.

The oracle is ``probability`` below: P(Y ≥ k) = σ(t − c_k), P(Y ≤ −k) = σ(−t − c_k), each difference taken as it stands.
"""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit

import concordant as cc
from concordant.preferences.graphs import Batch
from concordant.ranking import cumulative
from concordant.ranking.curvature import bradley_terry_curvature
from concordant.ranking.structures import structure

RIBBON = {  # Agresti, Applied Statistics 41, 1992, table 1: brands of typewriter ribbons, seven grades, 30 secretaries
    (2, 1): (4, 4, 0, 5, 5, 8, 4), (3, 1): (5, 12, 4, 6, 0, 2, 1), (4, 1): (0, 2, 2, 2, 5, 15, 4),
    (5, 1): (4, 4, 5, 4, 2, 8, 3), (3, 2): (6, 9, 3, 4, 1, 4, 3), (4, 2): (2, 4, 1, 6, 4, 8, 5),
    (5, 2): (5, 5, 6, 6, 1, 4, 3), (4, 3): (0, 1, 0, 3, 1, 13, 12), (5, 3): (1, 6, 3, 4, 3, 11, 2),
    (5, 4): (6, 12, 5, 3, 1, 3, 0),
}  # fmt: skip


def votes_of(left, right, grade, count=None, **more):
    """Preferences of graded votes; grades are positive for the left."""
    left, right, grade = map(np.asarray, (left, right, grade))
    first = grade >= 0
    if "home" in more:
        more["covariates"] = {"home": np.where(first, 1.0, -1.0) * more.pop("home")}
    return cc.Preferences.from_comparisons(
        np.where(first, left, right), np.where(first, right, left), tie=grade == 0,
        weight=np.maximum(np.abs(grade), 1).astype(float), count=count, **more,
    )  # fmt: skip


def probability(grade, margin, cuts):
    """P(Y = grade), ``cuts`` of the grades 1 … m."""
    whole = np.concatenate([[-np.inf], -cuts[::-1], cuts, [np.inf]])
    place = grade + len(cuts)
    return expit(margin - whole[place]) - expit(margin - whole[place + 1])


def fitted(left, right, grade, count, items, home=None, prior=0.0):
    """Scores that sum to 0, the home advantage and thresholds, by BFGS; then the log-likelihood."""
    m = int(np.abs(grade).max())
    extra = 0 if home is None else 1

    def loss(x):
        s = np.append(x[: items - 1], -x[: items - 1].sum())
        margin = s[left] - s[right] + (0.0 if home is None else x[items - 1] * home)
        cuts = np.cumsum(np.exp(x[items - 1 + extra :]))
        return -(count * np.log(probability(grade, margin, cuts))).sum() + 0.5 * prior * (s**2).sum()

    found = minimize(loss, np.zeros(items - 1 + extra + m), method="BFGS", options={"gtol": 1e-9})
    x = found.x
    s = np.append(x[: items - 1], -x[: items - 1].sum())
    return s, x[items - 1 : items - 1 + extra], np.cumsum(np.exp(x[items - 1 + extra :])), -found.fun


def ribbons():
    rows = [(*pair, 3 - k, n) for pair, counts in RIBBON.items() for k, n in enumerate(counts) if n]
    return tuple(np.array(column) for column in zip(*rows, strict=True))


def drawn(seed, items=6, votes=400, cuts=(0.4, 1.1, 2.5), home=0.0):
    rng = np.random.default_rng(seed)
    truth = rng.normal(0, 0.8, items)
    left, right = np.array([rng.permutation(items)[:2] for _ in range(votes)]).T
    side = rng.integers(-1, 2, votes).astype(float)
    latent = truth[left] - truth[right] + home * side + rng.logistic(size=votes)
    grade = np.sign(latent).astype(int) * np.searchsorted(np.array(cuts), np.abs(latent))
    return left, right, grade, side


def by_item(board):
    return board.score[np.argsort(board.item)]


def test_printed_table_is_fitted_as_the_formula_says():
    left, right, grade, count = ribbons()
    board = cc.rank(votes_of(left, right, grade, count), ties="cumulative", prior=0)
    s, _, cuts, ell = fitted(left - 1, right - 1, grade, count, 5)
    np.testing.assert_allclose(by_item(board), s, atol=2e-6)
    names = ["threshold 0|1", "threshold 1|2", "threshold 2|3"]
    np.testing.assert_allclose([board.coefficients[name][0] for name in names], cuts, atol=2e-6)
    summary = board.summary()
    assert summary.log_likelihood == pytest.approx(ell, abs=1e-8)
    assert (summary.parameters, summary.df_residual) == (4 + 3, 10 * 6 - 7)
    total = {pair: sum(counts) for pair, counts in RIBBON.items()}
    each = np.array([total[pair] for pair in zip(left.tolist(), right.tolist(), strict=True)])
    assert summary.deviance == pytest.approx(2 * ((count * np.log(count / each)).sum() - ell), abs=1e-6)
    assert [test.term for test in summary.tests] == ["items"]


def test_home_advantage_and_prior():
    left, right, grade, side = drawn(1, home=0.5)
    votes = votes_of(left, right, grade, home=side)
    board = cc.rank(votes, ties="cumulative", prior=0.7)
    s, home, cuts, _ = fitted(left, right, grade, np.ones(len(left)), 6, side, 0.7)
    np.testing.assert_allclose(by_item(board), s, atol=5e-6)
    assert board.coefficients["home"][0] == pytest.approx(home[0], abs=5e-6)
    assert board.coefficients["threshold 2|3"][0] == pytest.approx(cuts[2], abs=5e-6)


def test_two_items_with_ties_have_a_closed_form():
    """Rao and Kupper's model of two items fits their shares: σ(t − c) and σ(−t − c) are what was seen."""
    votes = votes_of([0] * 3, [1] * 3, [1, 0, -1], [50, 20, 30])
    board = cc.rank(votes, ties="cumulative", prior=0)
    won, lost = logit(0.5), logit(0.3)
    np.testing.assert_allclose(board.score[0] - board.score[1], (won - lost) / 2, atol=1e-9)
    np.testing.assert_allclose(board.coefficients["threshold 0|1"][0], -(won + lost) / 2, atol=1e-9)


def test_wins_and_losses_alone_are_those_of_bradley_and_terry():
    left, right, grade, _ = drawn(2)
    kept = grade != 0
    votes = votes_of(left[kept], right[kept], np.sign(grade[kept]))
    ours, theirs = cc.rank(votes, ties="cumulative"), cc.rank(votes)
    np.testing.assert_allclose(by_item(ours), by_item(theirs), atol=1e-8)
    np.testing.assert_allclose(ours.lower, theirs.lower, atol=1e-6)
    assert any(getattr(note, "code", "") == "no thresholds" for note in ours.notes)


def test_grades_that_nobody_gave_change_nothing():
    """1 and 3 alone, or called 1 and 2, are one model; a scale without a tie has its first threshold at 0."""
    left, right, grade, _ = drawn(3)
    kept = (np.abs(grade) != 2) & (grade != 0)
    left, right, grade = left[kept], right[kept], grade[kept]
    ours = cc.rank(votes_of(left, right, grade), ties="cumulative")
    renamed = cc.rank(votes_of(left, right, np.sign(grade) * (np.abs(grade) + 1) // 2), ties="cumulative")
    np.testing.assert_allclose(by_item(ours), by_item(renamed), atol=1e-9)
    assert set(ours.coefficients) == {"threshold 0|1", "threshold 2|3", "s.e. of threshold 2|3"}
    assert ours.coefficients["threshold 0|1"][0] == 0
    assert ours.coefficients["threshold 2|3"][0] == pytest.approx(renamed.coefficients["threshold 1|2"][0], abs=1e-9)
    assert "tie" not in ours.predict(0, 1).column_names


def log_likelihood(x, left, right, grade, items, side):
    margin = x[left] - x[right] + x[items] * side
    return np.log(probability(grade, margin, x[items + 1 :]))


def test_curvature_and_gradients_are_those_of_finite_differences():
    left, right, grade, side = drawn(4, items=4, votes=60, home=0.4)
    votes = votes_of(left, right, grade, home=side, cluster=np.arange(60))
    batch, member = Batch.whole(votes), structure("bradley-terry")
    scores = member.function(batch, ties="cumulative", prior=0.5)
    found = bradley_terry_curvature(batch, scores)
    order = batch.prefs.cluster[batch.judgment]
    x = np.concatenate([scores.value, *(scores.coefficients[name] for name in found.extra_name)])
    at = lambda x: log_likelihood(x, left, right, grade, 4, side)  # noqa: E731
    step = 1e-5 * np.eye(len(x))
    gradient = np.column_stack([(at(x + e) - at(x - e)) / 2e-5 for e in step])
    np.testing.assert_allclose(found.contributions.toarray()[np.argsort(order)], gradient, atol=1e-8)
    total = lambda x: at(x).sum()  # noqa: E731
    step = 1e-3 * np.eye(len(x))
    bent = [
        [(total(x + e + f) - total(x + e - f) - total(x - e + f) + total(x - e - f)) / 4e-6 for f in step] for e in step
    ]
    np.testing.assert_allclose(found.hessian.toarray(), -np.array(bent), atol=2e-3)
    assert found.log_likelihood() == pytest.approx(total(x), abs=1e-9)


def test_several_queries_are_fitted_side_by_side():
    """One with all grades, one without ties, one of mild ones alone, one of nothing but ties."""
    parts = [drawn(seed, items=4, votes=80)[:3] for seed in range(4)]
    parts[1] = tuple(column[parts[1][2] != 0] for column in parts[1])
    parts[2] = tuple(column[np.abs(parts[2][2]) == 1] for column in parts[2])
    parts[3] = (*parts[3][:2], 0 * parts[3][2])
    whole = [np.concatenate(column) for column in zip(*parts, strict=True)]
    query = np.repeat(np.arange(4), [len(part[0]) for part in parts])
    board = cc.rank(votes_of(*whole, query=query), ties="cumulative")
    for number, part in enumerate(parts):
        alone = cc.rank(votes_of(*part), ties="cumulative")
        own = board.query == number
        np.testing.assert_allclose(board.score[own], alone.score, atol=1e-9)
        np.testing.assert_allclose(board.upper[own], alone.upper, atol=1e-7)
        for name in ("threshold 1|2", "threshold 2|3") if number < 2 else ():
            assert board.coefficients[name][number] == pytest.approx(alone.coefficients[name][0], abs=1e-9)
    assert [board.coefficients["threshold 0|1"][k] for k in (1, 2, 3)] == [0.0, 0.0, np.inf]
    assert board.coefficients["threshold 1|2"][2] == np.inf


# -- what the data limit ---------------------------------------------------------------------------------------------
def test_who_always_won_mildly_has_a_score_with_two_limits():
    left, right, grade, _ = drawn(5, items=4)
    mild = votes_of([*left, 4, 4], [*right, 0, 1], [*grade, 1, 2])
    board = cc.rank(mild, ties="cumulative", prior=0)
    assert board.flag.sum() == 0
    assert np.isfinite(board.lower).all()
    assert np.isfinite(board.upper).all()
    strong = votes_of([*left, 4, 4], [*right, 0, 1], [*grade, 3, 3])
    with pytest.raises(cc.NoMaximumLikelihood, match="limits 4 from above"):
        cc.rank(strong, ties="cumulative", prior=0)


def test_the_limit_of_who_always_won_clearly_is_that_of_the_likelihood():
    """Beside items that are known well: n outcomes P(Y ≥ m) = σ(δ − c_m), so σ(δ − c_m)^n = 2.5% at the limit."""
    left, right, grade, _ = drawn(6, items=3, votes=60_000)
    n = 7
    votes = votes_of([*left, *[3] * n], [*right, *[0] * n], [*grade, *[3] * n])
    board = cc.rank(votes, ties="cumulative")
    top = board.item == 3
    cut, met = board.coefficients["threshold 2|3"][0], board.score[board.item == 0][0]
    assert board.upper[top] == np.inf
    assert board.lower[top][0] == pytest.approx(met + cut + logit(0.025 ** (1 / n)), abs=0.02)


def test_without_a_prior_a_maximum_that_does_not_exist_is_refused():
    """A win of 1 and ties: t = c + x, and the likelihood rises with c for ever. So with wins of 1 and 2 one way."""
    for grades in ([1, 0], [1, 2], [3, 1, 0]):
        votes = votes_of([0] * len(grades), [1] * len(grades), grades, [5] * len(grades))
        with pytest.raises(cc.NoMaximumLikelihood, match="with thresholds does not exist"):
            cc.rank(votes, ties="cumulative", prior=0)
        assert np.isfinite(cc.rank(votes, ties="cumulative").score).all()
    for grades in ([2, 1, -1], [1, 0, -1], [2, 0, -1]):  # the last by what a linear programme says of no direction
        votes = votes_of([0] * 3, [1] * 3, grades, [5, 4, 3])
        assert np.abs(cc.rank(votes, ties="cumulative", prior=0).score).max() < 10
    three = votes_of([0, 1, 2, 0], [1, 2, 0, 1], [2, 2, 2, 1])  # a cycle of the strongest wins
    assert np.abs(cc.rank(three, ties="cumulative", prior=0).score).max() < 10
    side = np.array([1.0, 1.0, 1.0, -1.0, -1.0, -1.0])
    home = votes_of([0, 1, 2] * 2, [1, 2, 0] * 2, [1, 2, 1, -1, -2, -1], home=side)
    with pytest.raises(cc.NoMaximumLikelihood, match="with thresholds"):
        cc.rank(home, ties="cumulative", prior=0)
    said = cc.rank(votes_of([0, 0], [1, 1], [1, 0], [5, 5]), ties="cumulative").notes
    assert [note.code for note in said if "thresholds finite" in note] == ["kept finite by the prior"]


@pytest.mark.parametrize("covariate", [False, True])
def test_some_of_many_comparisons_tell_that_nothing_grows_without_end(covariate, monkeypatch):
    """What is looked at first changes no answer: no direction, one of items apart, one with a covariate, two parts."""
    found = {}
    for number in range(24):
        draw = np.random.default_rng(number)
        items, rows = int(draw.integers(3, 7)), int(draw.integers(60, 300))
        one = draw.integers(0, items, rows)
        other = (one + draw.integers(1, items, rows)) % items
        if number % 4 == 1:  # two parts
            other = np.where((one - other) % 2 == 1, (other + 1) % items, other)
            one, other = one[one != other], other[one != other]
        margin = 0.4 * (one - other) + draw.logistic(size=len(one))
        margin = np.where(number % 3 == 2, 1.0 * (one - other), margin)  # as their numbers say, always
        z = {"z": draw.normal(size=len(one)).round(2)}
        if number % 6 in (0, 4):  # it counts in one judgment alone, which some of them hardly have
            z = {"z": 1.0 * (np.arange(len(one)) == number)}
        votes = cc.Preferences.from_comparisons(
            np.where(margin > 0, one, other), np.where(margin > 0, other, one), tie=np.abs(margin) < 0.5,
            weight=np.where(np.abs(margin) < 1.5, 1, 2), covariates=z if covariate else None,
        )  # fmt: skip
        for most in (1 << 14, 60):
            monkeypatch.setattr(cumulative, "MANY", most)
            batch = Batch.whole(votes)
            one_of = cumulative.Graded.of(batch, tuple(votes.covariate_names)).endless()
            found.setdefault(number, []).append(None if one_of is None else (one_of[0], one_of[1].tolist()))
    assert all(usual == first for usual, first in found.values())
    assert 3 < sum(usual is None for usual, _ in found.values()) < 21


# -- further questions -----------------------------------------------------------------------------------------------
def test_probabilities_of_the_next_judgment_are_those_of_the_formula():
    left, right, grade, side = drawn(7, home=0.5)
    board = cc.rank(votes_of(left, right, grade, home=side), ties="cumulative")
    row = board.predict(0, 1, covariates={"home": 1.0}).to_pylist()[0]
    cuts = np.array([board.coefficients[f"threshold {k - 1}|{k}"][0] for k in (1, 2, 3)])
    score = dict(zip(board.item.tolist(), board.score, strict=True))
    margin = score[0] - score[1] + board.coefficients["home"][0]
    expected = {g: probability(np.array(g), margin, cuts) for g in range(-3, 4)}
    for g, chance in expected.items():
        name = "tie" if g == 0 else f"{'win' if g > 0 else 'loss'}_{abs(g)}"
        assert row[name] == pytest.approx(chance, abs=1e-12)
    assert row["win"] == pytest.approx(sum(expected[g] for g in (1, 2, 3)), abs=1e-12)
    assert row["win"] + row["tie"] + row["loss"] == pytest.approx(1, abs=1e-12)

    found = board.covariance()
    names = found.coefficients
    values = np.concatenate([[score[item] for item in found.items], [board.coefficients[name][0] for name in names]])

    def log_odds(x, g):
        known = dict(zip([*found.items, *names], x, strict=True))
        own = np.array([known[f"threshold {k - 1}|{k}"] for k in (1, 2, 3)])
        return logit(probability(np.array(g), known[0] - known[1] + known["home"], own))

    for g, name in ((2, "win_2"), (0, "tie"), (-3, "loss_3"), (-1, "loss_1")):
        slope = np.array(
            [(log_odds(values + e, g) - log_odds(values - e, g)) / 2e-6 for e in 1e-6 * np.eye(len(values))]
        )
        half = 1.959964 * np.sqrt(slope @ found.matrix @ slope)
        assert logit(row[f"{name}_upper"]) - logit(row[name]) == pytest.approx(half, rel=1e-5)
    t = score[0] - score[1]
    told = board.compare(0, 1)
    assert told.probability == pytest.approx((expit(t - cuts[0]) + expit(t + cuts[0])) / 2, abs=1e-12)


def test_held_out_votes_are_judged_by_the_probability_of_their_grade():
    left, right, grade, _ = drawn(8)
    board = cc.rank(votes_of(left, right, grade), ties="cumulative")
    new = votes_of([0, 1, 2], [1, 2, 3], [2, 0, -3])
    found = {row["name"]: row["mean"] for row in board.evaluate(new).table.to_pylist()}
    cuts = np.array([board.coefficients[f"threshold {k - 1}|{k}"][0] for k in (1, 2, 3)])
    score = dict(zip(board.item.tolist(), board.score, strict=True))
    margins = [score[0] - score[1], score[1] - score[2], score[2] - score[3]]
    chance = np.array([[probability(np.array(g), m, cuts) for g in range(-3, 4)] for m in margins])
    seen = np.eye(7)[[2 + 3, 0 + 3, -3 + 3]]
    assert found["log-loss"] == pytest.approx(-np.log((chance * seen).sum(axis=1)).mean(), abs=1e-12)
    assert found["brier"] == pytest.approx(((chance - seen) ** 2).sum(axis=1).mean(), abs=1e-12)
    judged = board.evaluate(votes_of([0, 1, 2, 0], [1, 2, 3, 1], [2, 0, -3, 4]))  # of 4 none was ranked
    again = {row["name"]: row["mean"] for row in judged.table.to_pylist()}
    last = (chance[0] ** 2).sum() + 1
    assert again["log-loss"] == np.inf
    assert again["brier"] == pytest.approx((3 * found["brier"] + last) / 4, abs=1e-12)
    assert "1 judgment came out as none that was ranked (grade 4)" in str(judged.notes[0])


@pytest.mark.filterwarnings("error")
def test_what_had_no_probability_costs_without_limit():
    """A tie where the ranking knows none, and a win where it knows nothing but ties."""
    decided, level = votes_of([0, 1], [1, 0], [1, 1]), votes_of([0, 1], [1, 0], [0, 0])
    for known, new in ((decided, level), (level, decided)):
        found = cc.rank(known, ties="cumulative").evaluate(new).table.to_pylist()
        assert [row["mean"] for row in found if row["name"] == "log-loss"] == [np.inf]
    again = cc.cross_validate(votes_of([0, 1] * 9, [1, 0] * 9, [1, -2, 0] * 6), folds=3, ties="cumulative")
    assert np.isfinite(again.table["mean"].to_numpy()).all()


def test_clusters_and_the_bootstrap():
    left, right, grade, _ = drawn(9)
    votes = votes_of(left, right, grade, cluster=np.arange(len(left)) % 20)
    board = cc.rank(votes, ties="cumulative")
    assert board.interval == "sandwich"
    assert cc.rank(votes_of(left, right, grade), ties="cumulative").interval == "hessian"
    other = cc.rank(votes_of(left, right, grade), ties="cumulative", interval="bootstrap", replicates=300)
    assert np.median((other.upper - other.lower) / (board.upper - board.lower)) == pytest.approx(1, abs=0.25)
    prior = cc.rank(votes, ties="cumulative", prior="auto")
    assert np.ptp(prior.score) < np.ptp(board.score)


def test_what_it_does_not_do_is_said():
    votes = votes_of([0, 1, 0], [1, 0, 1], [1, 2, 0])
    board = cc.rank(votes, ties="cumulative")
    assert np.isnan(board.lack_of_fit).all()
    real = cc.Preferences.from_comparisons([0, 1], [1, 0], weight=[0.5, 1.0])
    with pytest.raises(cc.UsageError, match=r"integers from 1 to 50; 0\.5 is none"):
        cc.rank(real, ties="cumulative")
    with pytest.raises(cc.UsageError, match="integers from 1 to 50; 60 is none"):
        cc.rank(cc.Preferences.from_comparisons([0, 1], [1, 0], weight=[60.0, 1.0]), ties="cumulative")
    with pytest.raises(cc.UsageError, match="reads comparisons, not orders"):
        cc.rank(cc.Preferences.from_orders(None, [1, 1], ["a", "b"], [1, 2]), ties="cumulative")
    with pytest.raises(cc.UsageError, match="means of its own"):
        structure("bradley-terry")(Batch.whole(votes), ties="cumulative", mean=[0.0, 1.0])
    with pytest.raises(cc.UsageError, match="by plackett-luce"):
        cc.rank(votes, "plackett-luce", ties="cumulative")
    for empty in (cc.Preferences.empty(), votes_of([0, 0], [1, 1], [0, 0])):
        assert (cc.rank(empty, ties="cumulative").score == 0).all()


def test_residuals_of_grades_are_those_of_the_formula():
    """Var Σ(Y − e) = V − D H⁻¹ Dᵀ with D and H by finite differences of e and of the log-likelihood as written out."""
    left, right, grade, count = ribbons()
    items, levels = 5, 3
    found = cc.rank(votes_of(left, right, grade, count), ties="cumulative", prior=0).residuals().to_pylist()
    s, _, cuts, _ = fitted(left - 1, right - 1, grade, count, items)
    grades, pairs = np.arange(-levels, levels + 1), [(row["first"] - 1, row["second"] - 1) for row in found]
    times = [count[(np.minimum(left, right) == a + 1) & (np.maximum(left, right) == b + 1)].sum() for a, b in pairs]

    def moments(x):
        chance = np.array([[probability(k, x[a] - x[b], x[items:]) for k in grades] for a, b in pairs])
        mean = chance @ grades
        return times * mean, times * (chance @ grades**2 - mean**2)

    def loss(x):
        return -(count * np.log(probability(grade, x[left - 1] - x[right - 1], x[items:]))).sum()

    at, step = np.concatenate([s, cuts]), 1e-4 * np.eye(items + levels)
    slopes = np.array([(moments(at + h)[0] - moments(at - h)[0]) / 2e-4 for h in step]).T
    bend = np.array(
        [[loss(at + h + k) - loss(at + h - k) - loss(at - h + k) + loss(at - h - k) for k in step] for h in step]
    )
    expected, variance = moments(at)
    left_over = variance - np.einsum("pi,ij,pj->p", slopes, np.linalg.pinv(bend / 4e-8, rcond=1e-6), slopes)
    signed, low = count * grade * np.where(left < right, 1, -1), np.minimum(left, right)
    observed = [signed[(low == a + 1) & (np.maximum(left, right) == b + 1)].sum() for a, b in pairs]
    assert [row["judgments"] for row in found] == times and [row["observed"] for row in found] == observed
    assert [row["expected"] for row in found] == pytest.approx(expected, abs=2e-3)
    assert [row["standardised"] for row in found] == pytest.approx((observed - expected) / np.sqrt(left_over), abs=2e-3)


@pytest.mark.parametrize("clustered", [False, True])
def test_size_and_power_of_the_fit_of_grades(clustered):
    """Of judges who say everything twice, too; away from one scale, a cycle, it is seen."""
    rejected, squares = [], []
    for bent in (0.0, 1.0):
        found = []
        for draw in range(50):
            rng = np.random.default_rng(draw)
            left, right = np.array([rng.permutation(5)[:2] for _ in range(200)]).T
            cycle = bent * (((right - left) % 5 == 1).astype(float) - ((left - right) % 5 == 1))
            latent = 0.4 * (right - left) + cycle + rng.logistic(size=200)
            grade = np.sign(latent).astype(int) * np.searchsorted([0.4, 1.1, 2.5], np.abs(latent))
            more = {"cluster": np.repeat(np.arange(200), 2)} if clustered else {}
            times = 2 if clustered else 1
            votes = votes_of(*(np.repeat(side, times) for side in (left, right, grade)), **more)
            board = cc.rank(votes, ties="cumulative", interval="none", prior=0.01 if draw % 2 else 2.0)
            found.append(board.lack_of_fit[0])
            if not bent and draw % 2:
                squares += [row["standardised"] ** 2 for row in board.residuals().to_pylist()]
        rejected.append(np.mean(np.array(found) <= 0.05))
    assert rejected[0] <= 0.12 and rejected[1] >= 0.9
    assert np.mean(squares) == pytest.approx(1.0, abs=0.25)
