"""Guarantees of the theorems and of the default update, measured against the truth."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.linalg
from reproduction.purification.perturbation import perturbed_features
from tests.references.purification import purify_with_truth

from nonneg import metrics, purify
from nonneg.datasets import purification_data
from nonneg.exceptions import InvalidParameterError


@pytest.mark.parametrize("weights", ["binary", "uniform", "heavy"])
def test_without_noise_the_features_are_recovered(planted, weights):
    data, init = planted(weights=weights)
    result = purify_with_truth(data.X, init, truth=data.H, tol=0, max_iter=40, normalize="l1")
    errors = result.history["e_norm"]
    assert min(errors) == pytest.approx(0, abs=1e-6)
    assert errors[-1] <= 1e-6
    if weights == "binary":
        assert errors[24] <= 1e-10
    np.testing.assert_allclose(result.W, data.W, atol=1e-6)
    found = metrics.mixing(data.H, result.H)
    assert found.e_norm <= 1e-6
    assert found.n_norm <= 1e-6


def test_the_rate_is_geometric(planted):
    data, init = planted()
    errors = np.array(purify_with_truth(data.X, init, truth=data.H, tol=0, max_iter=8).history["e_norm"])
    ratios = errors[1:] / errors[:-1]
    assert ratios.max() < 0.3


def test_the_step_sizes_of_the_notes_and_signed_features(planted):
    data, init = planted(features="signed", level=0.3)
    result = purify_with_truth(data.X, init, truth=data.H, step_size=0.5, max_iter=60, tol=0)
    assert data.H.min() < 0
    assert result.history["e_norm"][-1] <= 1e-10
    assert result.parameters["step_size"] == 0.5


@pytest.mark.parametrize("n_samples", [2000, 8000])
def test_the_published_update_moves_to_its_floor(planted, n_samples):
    data, init = planted(n_samples=n_samples)
    result = purify_with_truth(data.X, init, truth=data.H, update="covariance", max_iter=30, tol=0)
    errors = np.array(result.history["e_norm"])
    floor = 0.8 * 20 / np.sqrt(n_samples)
    assert errors[-1] == pytest.approx(floor, rel=0.3)
    # Geometrically: what is left to go shrinks by a factor an iteration.
    left = np.abs(errors[:12] - errors[-1])
    assert left[6] < 0.2 * left[0]
    assert left[11] < 0.05 * left[0]
    assert result.parameters["decode"] == "shifted"


def test_the_default_has_no_such_floor_with_uniform_weights(planted):
    data, init = planted(n_samples=2000, weights="uniform")
    published = purify_with_truth(data.X, init, truth=data.H, update="covariance", max_iter=30, tol=0)
    shifted = purify_with_truth(
        data.X, init, truth=data.H, decode="shifted", threshold=0.25, max_iter=30, tol=0
    )
    default = purify_with_truth(data.X, init, truth=data.H, max_iter=40, tol=0)
    assert default.history["e_norm"][-1] < 1e-6
    assert shifted.history["e_norm"][-1] > 0.05
    assert published.history["e_norm"][-1] > 0.05


def test_unbiased_noise(planted):
    data, init = planted(n_samples=20000, noise="unbiased", noise_level=1.0)
    result = purify_with_truth(data.X, init, truth=data.H)
    error = result.history["normalized_error"][-1]
    assert error <= 0.03
    assert result.stop_reason.name == "CONVERGED"
    # No method that is told the true weights does much better.
    centered = data.W - data.W.mean(axis=0)
    best = np.linalg.solve(centered.T @ centered, centered.T @ data.X)
    best /= np.abs(best).sum(axis=1, keepdims=True)
    assert error <= 1.2 * np.abs(best - data.H).sum(axis=1).max()


@pytest.mark.parametrize("kind", ["adversarial", "correlated"])
def test_adversarial_noise_costs_at_most_in_proportion(planted, kind):
    errors = []
    for level in (0.1, 0.3):
        data, init = planted(n_samples=8000, noise=kind, noise_level=level)
        result = purify_with_truth(data.X, init, truth=data.H)
        errors.append(result.history["normalized_error"][-1])
        assert errors[-1] <= 2 * level
    assert errors[0] < 0.7 * errors[1]


def test_without_the_relu_it_fails():
    # Decoded without it, weights are M^-1 x*, and 2 r Cov(y, x) is A* M^-T: every rotation M is a fixed point
    # of the published update, and every M at all is one of the regression.
    data = purification_data(10000, 60, 10, sparsity=2, rng=0)
    skew = np.triu(np.random.default_rng(0).uniform(0.01, 0.03, (10, 10)), 1)
    rotation = scipy.linalg.expm(skew - skew.T)
    init = rotation.T @ data.H
    begin = metrics.mixing(data.H, init).e_norm
    options = {"truth": data.H, "tol": 0, "max_iter": 30}
    without = purify_with_truth(data.X, init, update="covariance", decode="linear", **options).history[
        "e_norm"
    ]
    with_it = purify_with_truth(data.X, init, update="covariance", **options).history["e_norm"]
    assert without[-1] > 0.8 * begin > 0.15
    assert with_it[-1] < 0.4 * begin
    unmoved = purify_with_truth(data.X, init, decode="linear", **options)
    np.testing.assert_allclose(unmoved.H, init, atol=1e-12)
    assert purify_with_truth(data.X, init, **options).history["e_norm"][-1] < 1e-10


def test_linear_sparsity(planted):
    data, init = planted(sparsity=8, weights="binary")
    assert (data.W > 0).mean() == pytest.approx(0.4, abs=0.02)
    assert purify_with_truth(data.X, init, truth=data.H, max_iter=60).history["e_norm"][-1] <= 1e-9


@pytest.mark.parametrize("level", [0.3, 0.6])
def test_starts_beyond_the_theorem(planted, level):
    data, init = planted(level=level, weights="uniform")
    assert purify_with_truth(data.X, init, truth=data.H, max_iter=60).history["e_norm"][-1] <= 1e-6


@pytest.mark.covering(0)
@pytest.mark.parametrize("weights", ["binary", "uniform", "heavy"])
def test_starts_that_lack_a_part_of_one_other_feature(planted, weights):
    # What is missing comes back as positive values in a few samples: the bulk of the values does not show it.
    data, _ = planted(weights=weights)
    init = data.H - 0.2 * np.roll(data.H, 1, axis=0)
    result = purify_with_truth(data.X, init, truth=data.H, max_iter=40)
    assert result.history["e_norm"][-1] < 1e-6
    assert result.init_quality.level == pytest.approx(0.2, rel=0.5)
    published = purify_with_truth(data.X, init, truth=data.H, update="covariance", max_iter=40)
    assert published.history["e_norm"][-1] < 0.45


def test_a_start_outside_the_span(planted):
    data, _ = planted()
    init = perturbed_features(data.H, 0.1, outside=0.2, diagonal=0.1, rng=3)
    result = purify_with_truth(data.X, init, truth=data.H, max_iter=40)
    assert result.history["n_norm"][0] < 0.2
    assert result.history["n_norm"][-1] < 1e-10
    assert result.history["e_norm"][-1] < 1e-10


def test_the_potential_falls(planted):
    data, init = planted()
    result = purify_with_truth(data.X, init, truth=data.H, beta=2.0, max_iter=6, tol=0)
    potential = result.history["potential"]
    assert all(after < before for before, after in pairwise(potential))


def test_features_that_are_no_warm_start_are_refused(planted):
    data, _ = planted()
    rng = np.random.default_rng(0)
    for init in (rng.random(data.H.shape), rng.random((20, 20)) @ data.H):
        with pytest.raises(InvalidParameterError, match=r"Not a warm start.*combinations of each other"):
            purify(data.X, init)
        result = purify(data.X, init, check_init="report", max_iter=2)
        assert not result.certificate["warm-start"].holds
    silent = data.H.copy()
    silent[3] = -silent[3]
    with pytest.raises(InvalidParameterError, match="no sample is decoded to feature 3"):
        purify(data.X, silent)
