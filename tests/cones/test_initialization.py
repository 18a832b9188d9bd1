"""The initialization `cr1`: the factors of clustering and rank-one NMF, for every solver and loss."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg import NMF, cone_rank_one, datasets, factorize
from nonneg.data import as_data_matrix
from nonneg.initializers.registry import INITS
from nonneg.solvers import SOLVERS


@pytest.fixture
def cones():
    """Six cones that satisfy the paper's assumption."""
    return datasets.circular_cones(200, 40, 6, size_angle=0.15, rng=4).X


def test_it_is_the_pair_of_the_paper_with_its_perturbation(cones):
    published = cone_rank_one(cones, 6)
    W, Ht = INITS["cr1"](as_data_matrix(cones), 6)
    assert np.linalg.norm(W) == pytest.approx(np.linalg.norm(Ht))
    scale = np.linalg.norm(Ht[:, 0])
    np.testing.assert_allclose(Ht.T / scale, published.H, atol=1e-3)
    np.testing.assert_allclose(W * scale, published.W + published.W[published.W > 0].mean(), rtol=1e-3)


@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_goes_on_from_it(name, cones):
    solver = SOLVERS[name]
    beta = next(beta for beta in (2.0, 1.0, 0.0) if solver.minimizes(beta))
    X = cones + 1e-3
    loss = {2.0: "frobenius", 1.0: "kullback-leibler", 0.0: "itakura-saito"}[beta]
    fitted = factorize(X, 6, init="cr1", solver=name, beta_loss=loss, max_iter=15, tol=0)
    before = factorize(X, 6, init="cr1", solver=name, beta_loss=loss, max_iter=1, tol=0)
    assert fitted.loss < before.loss


def test_fewer_directions_than_components_are_no_error(rng):
    X = rng.gamma(2.0, size=(30, 1)) * rng.random((3, 8))[np.arange(30) % 3]
    for solver in ("mu", "auto"):
        model = NMF(5, init="cr1", solver=solver, max_iter=300, tol=1e-3).fit(X)
        assert model.reconstruction_err_ < 0.02 * np.linalg.norm(X)


def test_more_components_than_rows_and_zeros(rng):
    W, Ht = INITS["cr1"](as_data_matrix(rng.random((4, 9))), 7)
    assert W.shape == (4, 7)
    assert np.isfinite(Ht).all()
    W, Ht = INITS["cr1"](as_data_matrix(np.zeros((3, 4))), 2)
    np.testing.assert_array_equal(W, 0.0)
    np.testing.assert_allclose(Ht, 0.5)


def test_on_cones_it_begins_ahead_of_random_factors():
    X = datasets.circular_cones(400, 100, 8, size_angle=0.2, rng=1).X
    cones, drawn = (factorize(X, 8, init=init, rng=0, max_iter=2, tol=0).loss for init in ("cr1", "random"))
    assert cones < 0.5 * drawn


@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])
def test_masks_and_weights_go_with_it(loss, cones, rng):
    mask = rng.random(cones.shape) < 0.9
    weights = rng.integers(1, 3, size=200).astype(float)
    options = {"beta_loss": loss, "mask": mask, "sample_weight": weights, "max_iter": 20, "tol": 0}
    fitted = factorize(np.where(mask, cones, np.nan), 6, init="cr1", **options)
    assert fitted.history.loss[-1] < 0.9 * fitted.history.loss[0]
    # What stands at missing places does not matter.
    other = factorize(np.where(mask, cones, 1e3), 6, init="cr1", **options)
    np.testing.assert_array_equal(other.W, fitted.W)
