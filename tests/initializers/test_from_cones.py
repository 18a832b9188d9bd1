"""The start from cones: for every solver and loss, with zeros filled only where a solver needs it."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg import NMF, cone_rank_one, datasets, factorize
from nonneg.data import as_data_matrix
from nonneg.initializers import STARTS, find_start
from nonneg.initializers.from_cones import cone_start
from nonneg.solvers import SOLVERS


@pytest.fixture
def cones():
    """Six cones that satisfy the paper's assumption."""
    return datasets.circular_cones(200, 40, 6, size_angle=0.15, rng=4).X


def test_names():
    assert find_start("cr1") is STARTS["cone"]


def test_it_is_the_rank_one_pair_where_zeros_may_stay(cones):
    W, B = cone_start(as_data_matrix(cones), 6, positive=False)
    found = cone_rank_one(cones, 6)
    assert ((W > 0) == (found.W > 0)).all()
    np.testing.assert_allclose(W, np.where(found.W > 0, cones @ B, 0.0), rtol=1e-12)
    np.testing.assert_allclose(B, found.H.T, atol=1e-4)
    # The error of the pair is exact to the square of that.
    error = np.linalg.norm(cones - W @ B.T) / np.linalg.norm(cones)
    assert error == pytest.approx(found.relative_error, rel=1e-6)


def test_filled_zeros_are_a_documented_share(cones):
    W, B = cone_start(as_data_matrix(cones), 6)
    own = W.max(axis=1, keepdims=True)
    np.testing.assert_allclose(np.sort(W, axis=1)[:, :-1], np.repeat(0.1 * own, 5, axis=1))
    plain = cone_start(as_data_matrix(cones), 6, positive=False)[1]
    np.testing.assert_allclose(B, np.maximum(plain, 0.01 * plain.mean(axis=0)))


@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_goes_on_from_it(name, cones):
    solver = SOLVERS[name]
    beta = next(beta for beta in (2.0, 1.0, 0.0) if solver.minimises(beta))
    X = cones + 1e-3
    loss = {2.0: "frobenius", 1.0: "kullback-leibler", 0.0: "itakura-saito"}[beta]
    fitted = factorize(X, 6, init="cone", solver=name, loss=loss, max_iter=15, tol=0)
    before = factorize(X, 6, init="cone", solver=name, loss=loss, max_iter=1, tol=0)
    assert fitted.loss < before.loss


@pytest.mark.parametrize("positive", [True, False])
def test_fewer_directions_than_components_are_no_error(positive, rng):
    X = rng.gamma(2.0, size=(30, 1)) * rng.random((3, 8))[np.arange(30) % 3]
    W, B = cone_start(as_data_matrix(X), 5, positive=positive)
    assert W.shape == (30, 5)
    np.testing.assert_allclose(np.linalg.norm(B, axis=0), 1.0, rtol=0.01)
    if not positive:
        np.testing.assert_allclose(W @ B.T, X, atol=1e-6)
        assert not W[:, 3:].any()
    for solver in ("mu", "auto"):
        model = NMF(5, init="cone", solver=solver, max_iter=300, tol=1e-8).fit(X)
        assert model.reconstruction_err_ < 0.02 * np.linalg.norm(X)


def test_rows_that_share_no_feature_with_their_cluster_are_filled_too():
    W, B = cone_start(as_data_matrix(np.eye(6)), 3)
    assert (W > 0).all()
    assert (B > 0).all()


def test_more_components_than_rows(rng):
    X = rng.random((4, 9))
    W, B = cone_start(as_data_matrix(X), 7)
    assert W.shape == (4, 7)
    assert np.isfinite(B).all()


@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])
def test_masks_and_weights_go_with_it(loss, cones, rng):
    mask = rng.random(cones.shape) < 0.9
    weights = rng.integers(1, 3, size=200).astype(float)
    options = {"loss": loss, "mask": mask, "sample_weight": weights, "max_iter": 20, "tol": 0}
    fitted = factorize(np.where(mask, cones, np.nan), 6, init="cone", **options)
    assert fitted.history.loss[-1] < 0.9 * fitted.history.loss[0]
    # What stands at missing places does not matter.
    other = factorize(np.where(mask, cones, 1e3), 6, init="cone", **options)
    np.testing.assert_array_equal(other.W, fitted.W)
