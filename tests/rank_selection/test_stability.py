"""Restarts: measures of agreement against hand-computed cases, and planted ranks."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.cluster.hierarchy import average, cophenet
from scipy.spatial.distance import squareform

from nonneg import estimate_rank
from nonneg.cones.geometry.spectrum import ConeSpectrum, RatioCondition, predicted_spectrum
from nonneg.data import as_data_matrix
from nonneg.exceptions import InvalidParameterError, NonnegWarning
from nonneg.rank_selection import holdouts, stability
from nonneg.rank_selection.candidates import rank_problem
from nonneg.rank_selection.consensus import consensus_matrix, cophenetic_correlation, dispersion
from nonneg.rank_selection.cross_validation import _reason
from nonneg.rank_selection.holdouts import _observed_places, wold_holdouts
from nonneg.rank_selection.nested import grown
from nonneg.rank_selection.ratio_certificate import _mean_square, implied_angles, ratio_statements
from nonneg.rank_selection.result import RankCurve
from nonneg.rank_selection.spectrum import singular_value_ratio


@pytest.fixture
def clusters(rng):
    """Points around four directions with few features in common."""
    directions = rng.gamma(0.3, size=(4, 25))
    labels = np.arange(60) % 4
    return directions[labels] * (1 + 0.2 * rng.random((60, 25))) + 0.02 * rng.random((60, 25))


def estimate(X, **options):
    params = {"n_init": options.pop("n_init", 6)}
    return estimate_rank(X, method="stability", method_params=params, **({"k_max": 6, "rng": 0} | options))


def test_measures_of_runs_that_agree():
    consensus = consensus_matrix([[0, 0, 1, 1], [1, 1, 0, 0], [2, 2, 5, 5]])
    np.testing.assert_array_equal(consensus, np.kron(np.eye(2), np.ones((2, 2))))
    assert cophenetic_correlation(consensus) == 1.0
    assert dispersion(consensus) == 1.0


def test_measures_of_runs_that_differ():
    consensus = consensus_matrix([[0, 0, 1, 1], [0, 0, 0, 1], [0, 1, 1, 1], [0, 0, 1, 1]])
    expected = np.array([[1, 0.75, 0.25, 0], [0.75, 1, 0.5, 0.25], [0.25, 0.5, 1, 0.75], [0, 0.25, 0.75, 1]])
    np.testing.assert_allclose(consensus, expected)
    # Four ones, four of 3/4 and of 1/4 each, two of 1/2 and of 0 each, as 4 (c - 1/2)^2.
    assert dispersion(consensus) == pytest.approx((4 * 1 + 8 * 0.25 + 2 * 0 + 2 * 1) / 16)
    distances = squareform(1 - expected)
    correlation, _ = cophenet(average(distances), distances)
    assert cophenetic_correlation(consensus) == pytest.approx(correlation)


def test_runs_that_tell_nothing_apart():
    assert cophenetic_correlation(consensus_matrix([[0, 1, 2], [2, 0, 1]])) == 1.0
    undecided = np.full((4, 4), 0.5) + 0.5 * np.eye(4)
    assert cophenetic_correlation(undecided) == 0.0
    assert dispersion(undecided) == pytest.approx(0.25)


@pytest.mark.parametrize("container", [lambda X: X, sp.csr_array])
def test_a_planted_number_of_clusters_is_the_last_stable_one(container, clusters):
    found = estimate(container(clusters))
    assert found.rank == 4
    names = [curve.name for curve in found.curves]
    assert names == ["component agreement", "cophenetic correlation", "dispersion"]
    for curve in found.curves:
        assert curve.at(4)[0] > 0.99
        assert np.all((curve.mean <= 1 + 1e-12) & (curve.spread >= 0))
    assert found.curve.at(5)[0] < 0.99
    assert "6 restarts agree" in found.reason


def test_the_same_seed_gives_the_same_numbers_whatever_the_threads_and_candidates(clusters):
    one = estimate(clusters, n_jobs=1, candidates=[3, 5])
    two = estimate(clusters, n_jobs=2, candidates=[3, 4, 5])
    for first, second in zip(one.curves, two.curves, strict=True):
        assert [first.at(k) for k in (3, 5)] == [second.at(k) for k in (3, 5)]
    assert estimate(clusters, rng=1, candidates=[5]).scores != estimate(clusters, candidates=[5]).scores


def test_the_reason_gives_what_the_curves_show(clusters):
    found = estimate(clusters, candidates=[5])
    agreement, cophenetic, spread = (curve.at(5)[0] for curve in found.curves)
    said = f"mean cosine of {agreement:.4f}; cophenetic correlation {cophenetic:.3f}, dispersion {spread:.3f}"
    assert said in found.reason


def test_the_consensus_is_of_a_limited_number_of_points(clusters, monkeypatch):
    monkeypatch.setattr(stability, "MAX_POINTS", 20)
    found = estimate(clusters, candidates=[4])
    assert "on 20 samples" in found.reason
    assert found.curves[2].at(4)[0] > 0.99


def test_the_largest_candidate_as_stable_as_the_best():
    mean = np.array([1.0, 0.9995, 0.998, 0.95])
    curve = RankCurve("component agreement", (2, 3, 4, 6), mean, np.zeros(4))
    assert stability.largest_as_stable(curve, 9) == 4
    wide = RankCurve("component agreement", (2, 3, 4, 6), mean, np.full(4, 0.3))
    assert stability.largest_as_stable(wide, 9) == 6


@pytest.mark.parametrize(("X", "rank"), [(np.zeros((9, 8)), 1), (np.ones((9, 8)), 1), (np.ones((9, 2)), 1)])
def test_what_has_no_candidates_has_a_stated_way_out(X, rank):
    assert estimate(X).rank == rank


def test_too_few_restarts_are_refused(clusters):
    with pytest.raises(InvalidParameterError, match="at least 3 restarts, got 2"):
        estimate(clusters, n_init=2)


def test_progress_is_shown_on_request(clusters, capsys):
    estimate(clusters, candidates=[2], verbose=1)
    assert "stability: 6 of 6 (k=2" in capsys.readouterr().err


def test_the_standard_error_is_that_of_the_jackknife():
    # Of means that leave one value out, it is the standard error of the mean.
    values = np.array([1.0, 2.0, 4.0, 9.0])
    left_out = [float(np.delete(values, at).mean()) for at in range(4)]
    assert stability._jackknife(left_out) == pytest.approx(values.std(ddof=1) / 2.0)


def test_the_largest_candidate_within_a_standard_error_is_taken():
    curve = RankCurve("measure", (2, 3, 4, 5), np.array([0.9, 1.0, 0.95, 0.9]), np.full(4, 0.16), "larger")
    # The spread of 16 runs is four times the standard error of their mean.
    assert stability.largest_as_stable(curve, 4) == 4
    assert stability.largest_as_stable(curve, 16) == 3


def test_new_components_come_from_samples_with_a_residual(rng):
    X = np.ones((12, 5)) * rng.random((12, 1))
    X[3, 1], X[8, 4] = 5.0, 7.0
    W, Ht = X[:, :1].copy(), np.ones((5, 1))
    data = as_data_matrix(X)
    expected = np.zeros((2, 5))
    expected[0, 1] = X[3, 1] - W[3, 0]
    expected[1, 4] = X[8, 4] - W[8, 0]
    expected /= np.sqrt(expected.mean(axis=1, keepdims=True))
    for seed in range(6):
        found = grown(data, W, Ht, 3, np.random.default_rng(seed))[1][:, 1:].T
        np.testing.assert_allclose(found[np.argsort(found[:, 1])[::-1]], expected)
    # More than have one: any sample may be drawn. Of zeros there is nothing to begin with.
    assert np.isfinite(grown(data, W, Ht, 4, rng)[1]).all()
    nothing = grown(as_data_matrix(np.zeros((4, 5))), np.zeros((4, 1)), Ht, 2, rng)[1]
    np.testing.assert_array_equal(nothing[:, 1], 0.0)


def test_the_spectrum_of_cones_says_how_long_samples_are():
    for n_features, k in ((6, 2), (9, 4)):
        spectrum = predicted_spectrum(n_features, k, 0.3, 1.1, mean_squared_length=2.5)
        assert _mean_square(RatioCondition(spectrum, 0.0, 0.0, True)) == pytest.approx(2.5)


def test_two_cones_are_enough_for_the_condition(rng):
    X = rng.random((40, 6))
    problem = rank_problem(as_data_matrix(X), 2, 4, None)
    for rank, covered in ((1, False), (2, True), (4, True), (5, False)):
        found = ratio_statements(problem, rank)
        assert (found["ratio-condition"].number is not None) is covered
    found = ratio_statements(problem, 2)["ratio-guarantee"]
    assert "at least 1 - 6 exp(-t^2 F)" in found.sentence  # twice the three candidates 2, 3 and 4
    assert found.quantities == {"n_cones": 2, "n_samples": 40, "n_features": 6}


def test_missing_entries_are_told_of_where_singular_values_count(rng):
    X = rng.random((12, 8))
    X[2, 3] = np.nan
    with pytest.warns(NonnegWarning, match="treat as zeros") as told:
        estimate_rank(X, missing="mask")
    assert told[0].filename == __file__


def test_observed_places_of_several_blocks(rng):
    seen = rng.random((10, 4)) < 0.5
    data = SimpleNamespace(
        shape=(10, 4),
        observed=SimpleNamespace(dense_rows=lambda start, stop: seen[start:stop]),
        row_blocks=lambda entries: [(0, 3), (3, 7), (7, 10)],
    )
    found = _observed_places(data, 99, rng)
    np.testing.assert_array_equal(np.sort(found), np.flatnonzero(seen))


def test_folds_of_dense_data_hide_at_most_so_many(monkeypatch, rng):
    monkeypatch.setattr(holdouts, "MAX_HIDDEN", 7)
    folds = wold_holdouts(as_data_matrix(rng.random((20, 10))), 4, rng)
    assert [len(fold.rows) for fold in folds] == [7] * 4
    assert all((fold.weights == 1.0).all() for fold in folds)


def test_the_reason_compares_means():
    curve = RankCurve("held-out error", (2, 3), np.array([0.25, 0.125]), np.array([9.0, 8.0]), "smaller")
    reason = _reason(curve, 2, 3, "wold", 5)
    assert "with 2 components 0.25 of the squares" in reason
    assert "of the least, 0.125 at 3 (5 folds" in reason
    assert "the least of 2 candidates (4 folds, blocks of entries)" in _reason(curve, 3, 3, "blocks", 4)


@pytest.mark.parametrize("normalize", [None, "l2"])
def test_what_is_said_of_the_levels_of_a_spectrum(normalize, rng):
    X = np.repeat(np.eye(3, 5), 200, axis=0) + 0.05 * rng.random((600, 5))
    problem = rank_problem(as_data_matrix(X), 2, 4, None, normalize=normalize)
    found = ratio_statements(problem, 3)
    squares, total = problem.singular_values**2 / 600, problem.data.squared_norm() / 600
    floor = (total - squares[:3].sum()) / 2
    level = squares[1:3].mean()
    condition = found["ratio-condition"]
    assert condition.quantities == pytest.approx(
        {"n_cones": 3, "n_samples": 600, "n_features": 5, "first_level": squares[0], "cone_level": level,
         "floor_level": floor}
    )  # fmt: skip
    deviation = max(np.abs(squares[1:3] - level).max(), np.abs(squares[3:] - floor).max())
    assert condition.number == pytest.approx(deviation, rel=1e-6)
    epsilon = floor * (level - floor) / (4 * floor + level - floor)
    assert condition.threshold == pytest.approx(epsilon, rel=1e-6)
    assert condition.holds == (deviation < epsilon)
    assert ("normalize='l2' removes" in condition.sentence) == (normalize is None and not condition.holds)
    mean = squares[0] + 2 * level + 2 * floor
    assert found["ratio-guarantee"].number == pytest.approx(600 / 5 * (epsilon / mean) ** 2, rel=1e-6)
    cones = found["cone-spectrum"]
    if cones.number is not None:
        expected = predicted_spectrum(
            5, 3, cones.quantities["size_angle"], cones.number, mean_squared_length=mean
        )
        assert expected.floor == pytest.approx(floor, rel=1e-6)
        assert expected.gap == pytest.approx(level - floor, rel=1e-6)
        assert cones.threshold == pytest.approx(4 * cones.quantities["size_angle"])
        assert cones.quantities["apart"] == (cones.number > cones.threshold)


def test_angles_of_a_spectrum_that_no_cones_have():
    def angles(floor, gap, first):
        return implied_angles(RatioCondition(ConeSpectrum(floor, gap, first, 3, 6), 0.0, 0.0, True))

    assert angles(0.0, 0.5, 1.0) is None
    assert angles(0.0, 0.0, 0.0) is None
    assert angles(1.0, 0.0, 0.1) is None  # the floor holds more than half of the squared length
    assert angles(0.01, 9.0, 0.1) is None  # axes beyond right angles
    right = predicted_spectrum(6, 3, 0.2, np.pi / 2)
    assert angles(right.floor, right.gap, right.first) == pytest.approx((0.2, np.pi / 2))


def spectrum_of(values, **options):
    """Return the answer for a diagonal matrix with some singular values."""
    problem = rank_problem(as_data_matrix(np.diag(np.array(values, dtype=float))), 2, len(values) - 1, None)
    return singular_value_ratio(problem, **options)


def test_the_last_of_several_steps_is_taken_up_to_a_tolerance():
    values = [100.0, 50.0, 10.0, 9.5, 3.0, 2.9, 2.8, 2.7]  # ratios 5 at 2 and 3.2 at 4
    assert spectrum_of(values).rank == 4
    reason = spectrum_of(values).reason
    assert "the last with at least 50% of the logarithm of the largest, 5 at 2," in reason
    plain = spectrum_of(values, tolerance=0.0)
    assert plain.rank == 2
    assert "singular values 2 and 3 is 5, the largest from k_min=2" in plain.reason
    assert spectrum_of(values, tolerance=0.25).rank == 2
    # Where no ratio stands out, the largest is taken whatever the tolerance.
    assert spectrum_of([64.0, 32.0, 15.0, 8.0, 4.1]).rank == 2
    for wrong in (-0.1, 1.0, "much"):
        with pytest.raises(InvalidParameterError, match="tolerance of at least 0 and below 1"):
            spectrum_of(values, tolerance=wrong)


def test_a_ratio_to_rounding_is_a_lower_bound():
    assert "is at least" in spectrum_of([4.0, 3.0, 2.0, 0.0, 0.0]).reason
    assert "at least" not in spectrum_of([4.0, 3.0, 2.0, 0.1, 0.1]).reason.partition(",")[0]


def test_the_reason_has_the_measures_of_the_rank(clusters):
    found = estimate(clusters, n_init=4, k_max=5)
    agreement, cophenetic, spread = (curve.at(found.rank)[0] for curve in found.curves)
    assert f"a mean cosine of {agreement:.4f}; cophenetic" in found.reason
    assert f"correlation {cophenetic:.3f}, dispersion {spread:.3f} on 60 samples." in found.reason
    assert stability.largest_as_stable(found.curves[0], 3) == found.rank
