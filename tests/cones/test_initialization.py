"""The start from cones: the rank-one pair moved apart, for every solver and loss."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg import NMF, cone_rank_one, datasets, factorize
from nonneg.cones import initialization as module
from nonneg.cones.encoding import sums_by_cone, unit_rows
from nonneg.cones.initialization import cone_init
from nonneg.data import as_data_matrix
from nonneg.initializers import INITS
from nonneg.solvers import SOLVERS


@pytest.fixture
def cones():
    """Six cones that satisfy the paper's assumption."""
    return datasets.circular_cones(200, 40, 6, size_angle=0.15, rng=4).X


def test_names():
    assert INITS.find("cr1") is INITS["cone"]


def test_it_is_the_rank_one_pair_with_directions_moved_apart(cones):
    found = cone_rank_one(cones, 6)
    W, Ht = cone_init(as_data_matrix(cones), 6)
    np.testing.assert_allclose(W, found.W + found.W.sum(axis=1, keepdims=True) * 0.7 / (6 * 0.3), rtol=1e-3)
    moved = found.H - found.H.mean(axis=0) * 0.7
    np.testing.assert_allclose(Ht.T, np.maximum(moved, 0.01 * found.H.mean(axis=1, keepdims=True)), atol=1e-4)


def test_moving_apart_keeps_the_product_where_nothing_is_cut_off(rng):
    # Three clusters about directions with much in common.
    axes = 1.0 + np.eye(3, 12) * 0.3
    X = (axes[np.arange(60) % 3] + 0.05 * rng.random((60, 12))) * rng.gamma(2.0, size=(60, 1))
    W, Ht = cone_init(as_data_matrix(X), 3)
    error = np.linalg.norm(X - W @ Ht.T) / np.linalg.norm(X)
    assert error == pytest.approx(cone_rank_one(X, 3).relative_error, rel=1e-6)


@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_goes_on_from_it(name, cones):
    solver = SOLVERS[name]
    beta = next(beta for beta in (2.0, 1.0, 0.0) if solver.minimizes(beta))
    X = cones + 1e-3
    loss = {2.0: "frobenius", 1.0: "kullback-leibler", 0.0: "itakura-saito"}[beta]
    fitted = factorize(X, 6, init="cone", solver=name, beta_loss=loss, max_iter=15, tol=0)
    before = factorize(X, 6, init="cone", solver=name, beta_loss=loss, max_iter=1, tol=0)
    assert fitted.loss < before.loss


def test_fewer_directions_than_components_are_no_error(rng):
    X = rng.gamma(2.0, size=(30, 1)) * rng.random((3, 8))[np.arange(30) % 3]
    W, Ht = cone_init(as_data_matrix(X), 5)
    assert (W > 0).all()
    assert (Ht > 0).all()
    np.testing.assert_array_equal(Ht[:, 3], Ht[:, 4])
    for solver in ("mu", "auto"):
        model = NMF(5, init="cone", solver=solver, max_iter=300, tol=1e-8).fit(X)
        assert model.reconstruction_err_ < 0.02 * np.linalg.norm(X)


def test_a_fit_from_it_needs_few_iterations():
    X = datasets.circular_cones(400, 100, 8, size_angle=0.2, rng=1).X
    target = factorize(X, 8, init="random", rng=0, max_iter=10, tol=0).loss
    assert factorize(X, 8, init="cone", max_iter=4, tol=0).loss < target


def test_rows_that_share_no_feature_with_their_cluster_are_filled_too():
    W, Ht = cone_init(as_data_matrix(np.eye(6)), 3)
    assert (W > 0).all()
    assert (Ht > 0).all()


def test_more_components_than_rows(rng):
    X = rng.random((4, 9))
    W, Ht = cone_init(as_data_matrix(X), 7)
    assert W.shape == (4, 7)
    assert np.isfinite(Ht).all()


@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])
def test_masks_and_weights_go_with_it(loss, cones, rng):
    mask = rng.random(cones.shape) < 0.9
    weights = rng.integers(1, 3, size=200).astype(float)
    options = {"beta_loss": loss, "mask": mask, "sample_weight": weights, "max_iter": 20, "tol": 0}
    fitted = factorize(np.where(mask, cones, np.nan), 6, init="cone", **options)
    assert fitted.history.loss[-1] < 0.9 * fitted.history.loss[0]
    # What stands at missing places does not matter.
    other = factorize(np.where(mask, cones, 1e3), 6, init="cone", **options)
    np.testing.assert_array_equal(other.W, fitted.W)


def test_rows_without_a_share_in_their_direction_have_their_norm():
    block, labels = as_data_matrix(np.array([[3.0, 4.0], [1.0, 0.0], [0.0, 0.0]])), np.array([[0], [1], [-1]])
    products = np.array([[0.0], [0.5], [0.0]])
    (found,), _ = module._w_rows(block, labels, products, k=2, share=0.25)
    np.testing.assert_allclose(found, [[5.0 * 1.25, 5.0 * 0.25], [0.5 * 0.25, 0.5 * 1.25], [0.0, 0.0]])
    (plain,), _ = module._w_rows(block, labels, np.array([[2.0], [0.5], [0.0]]), k=2, share=0.25)
    np.testing.assert_allclose(plain, [[2.5, 0.5], [0.125, 0.625], [0.0, 0.0]])


def test_zeros_have_equal_components():
    W, Ht = cone_init(as_data_matrix(np.zeros((3, 4))), 2)
    np.testing.assert_array_equal(W, 0.0)
    np.testing.assert_allclose(Ht, 0.5)


@pytest.mark.parametrize("weighted", [False, True])
def test_labels_products_and_sums_of_cones(weighted, rng):
    X = rng.random((9, 3))
    X[4] = 0.0
    weights = rng.integers(0, 3, 9).astype(float) if weighted else np.ones(9)
    data = as_data_matrix(X, weights=weights if weighted else None)
    units = unit_rows(data, np.array([2, 0]))
    np.testing.assert_allclose(units, X[[2, 0]] / np.linalg.norm(X[[2, 0]], axis=1, keepdims=True))
    labels = rng.integers(-1, 2, 9)[:, None]
    counts, squares = sums_by_cone(data, labels, 2)
    own = [(labels[:, 0] == c) for c in range(2)]
    np.testing.assert_allclose(counts, [np.sum(part & (weights > 0)) for part in own])
    np.testing.assert_allclose(squares, [np.sum(weights[part, None] * X[part] ** 2) for part in own])
