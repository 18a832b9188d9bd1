"""Restarts: measures of agreement against hand-computed cases, and planted ranks."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.cluster.hierarchy import average, cophenet
from scipy.spatial.distance import squareform

from nonneg import estimate_rank
from nonneg.exceptions import InvalidParameterError
from nonneg.rank_selection.stability import (
    consensus_matrix,
    cophenetic_correlation,
    dispersion,
    first_fall,
)


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


@pytest.mark.parametrize(
    ("values", "at"), [([1, 1, 0.9, 1], 1), ([0.8, 0.9, 1.0], 2), ([0.9, 0.8, 1], 0), ([0.7], 0)]
)
def test_where_values_begin_to_fall(values, at):
    assert first_fall(np.array(values)) == at


@pytest.mark.parametrize("container", [lambda X: X, sp.csr_array])
def test_the_reason_gives_what_the_curves_show(container, digits):
    found = estimate(container(digits[:150]), candidates=[2, 8, 12], k_max=None)
    assert [curve.name for curve in found.curves] == ["cophenetic correlation", "dispersion"]
    cophenetic = found.curve
    assert found.rank == cophenetic.candidates[first_fall(cophenetic.mean)] < 12
    assert f"of 6 restarts is {cophenetic.at(found.rank)[0]:.3f}, and falls to" in found.reason


def test_the_same_seed_gives_the_same_numbers_whatever_the_threads_and_candidates(clusters):
    one = estimate(clusters, n_jobs=1, candidates=[3, 5])
    two = estimate(clusters, n_jobs=2, candidates=[3, 4, 5])
    for first, second in zip(one.curves, two.curves, strict=True):
        assert [first.at(k) for k in (3, 5)] == [second.at(k) for k in (3, 5)]
    seeds = [estimate(clusters, rng=seed, candidates=[5]).curves[1].at(5) for seed in (0, 1)]
    assert seeds[0] != seeds[1]


def test_too_few_restarts_are_refused(clusters):
    with pytest.raises(
        InvalidParameterError, match="n_init must be an integer of at least 3 restarts, got 2"
    ):
        estimate(clusters, n_init=2)


def test_progress_is_shown_on_request(clusters, capsys):
    estimate(clusters, candidates=[2, 3], n_init=3, verbose=1)
    assert "stability: 6 of 6 (k=3)" in capsys.readouterr().err
