"""Restarts: measures of agreement against hand-computed cases, and planted ranks."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.cluster.hierarchy import average, cophenet
from scipy.spatial.distance import squareform

from nonneg import estimate_rank
from nonneg.exceptions import InvalidParameterError
from nonneg.rank_selection import stability
from nonneg.rank_selection.consensus import consensus_matrix, cophenetic_correlation, dispersion
from nonneg.rank_selection.result import RankCurve


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
