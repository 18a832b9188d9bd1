"""No result hinges on the sign of a singular vector or an eigenvector, or on the last digit of anything."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg import NMF, ConeNMF, MinVolNMF, PurificationNMF, SeparableNMF, TransformNMF, select_anchors
from nonneg.applications.communities import METHODS as COMMUNITY_METHODS
from nonneg.applications.communities import MixedMembership
from nonneg.applications.hyperspectral import Unmixing
from nonneg.datasets import purification_data
from nonneg.initializers.registry import INITS
from nonneg.purification.pseudo_inverse import dependent_feature
from nonneg.separable.registry import METHODS


def points(seed: int = 0) -> np.ndarray:
    """Mixtures of four spectra with a little noise; so many features that the Lanczos method is used."""
    rng = np.random.default_rng(seed)
    pure = rng.gamma(1.0, size=(4, 520))
    weights = np.concatenate([np.eye(4), rng.dirichlet(np.ones(4), 60)])
    return weights @ pure + 1e-3 * rng.random((64, 520))


def unit_points() -> np.ndarray:
    """Points of one length: any of them could be the longest but for the tie-breaking rule."""
    X = points(1)[:, :30]
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def centered_points() -> np.ndarray:
    """Points with a mean of zero, up to rounding."""
    X = points(2)[:, :12]
    return X - X.mean(axis=0)


@pytest.mark.covering(1)
@pytest.mark.parametrize("init", [name for name, init in INITS.items() if not init.takes_factors])
def test_initializations(init, perturbed_lapack):
    X = points()
    model = NMF(4, init=init, random_state=0, max_iter=3, tol=0)
    before = model.fit(X).components_
    perturbed_lapack()
    np.testing.assert_allclose(model.fit(X).components_, before, rtol=1e-7, atol=1e-9)


@pytest.mark.covering(2)
@pytest.mark.parametrize("make", [points, unit_points, centered_points])
@pytest.mark.parametrize("method", METHODS)
def test_anchors(method, make, perturbed_lapack):
    X = make()
    if X.min() < 0 and not METHODS[method].signed:
        X = np.abs(X)
    options = {"max_iter": 30} if METHODS[method].kind == "convex" else {}
    before = select_anchors(X, 4, method=method, rng=0, **options)
    perturbed_lapack()
    after = select_anchors(X, 4, method=method, rng=0, **options)
    np.testing.assert_array_equal(after.anchors, before.anchors)


@pytest.mark.parametrize("snr", [5.0, 90.0])
def test_anchors_along_random_directions(snr, perturbed_lapack):
    options = {"method": "vca", "method_params": {"snr": snr}}
    before = [select_anchors(points(), 4, rng=seed, **options).anchors for seed in range(5)]
    perturbed_lapack()
    after = [select_anchors(points(), 4, rng=seed, **options).anchors for seed in range(5)]
    np.testing.assert_array_equal(after, before)


@pytest.mark.covering(1)
@pytest.mark.parametrize("init", ["auto", "anchors", "cone", "nmf"])
def test_purification(init, perturbed_lapack):
    X = purification_data(400, 30, 5, sparsity=1.5, rng=0).X
    model = PurificationNMF(5, init=init, random_state=0, max_iter=10, tol=0)
    before = model.fit(X).components_
    perturbed_lapack()
    np.testing.assert_allclose(model.fit(X).components_, before, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("n", [1, 3])
def test_purification_of_centered_samples(n, perturbed_lapack):
    model = PurificationNMF(n, max_iter=1)
    before = model.fit(centered_points()).components_
    perturbed_lapack()
    np.testing.assert_allclose(model.fit(centered_points()).components_, before, rtol=1e-7, atol=1e-9)


@pytest.mark.covering(1)
@pytest.mark.parametrize(
    "model",
    [
        ConeNMF(4),
        MinVolNMF(4, init="mv-dual", max_iter=20, tol=0),
        SeparableNMF(4, method="merit", max_iter=30),
    ],
)
def test_estimators(model, perturbed_lapack):
    before = model.fit(points()).components_
    perturbed_lapack()
    np.testing.assert_allclose(model.fit(points()).components_, before, rtol=1e-7, atol=1e-9)


@pytest.mark.covering(1)
@pytest.mark.parametrize("method", ["tl", "jd"])
@pytest.mark.parametrize("length", [6, 72])
def test_transforms(length, method, perturbed_lapack):
    # The longer frames lie in a few directions: the rest of the transform is free.
    rng = np.random.default_rng(0)
    frames = rng.standard_normal((2, 12, 6)) @ rng.standard_normal((6, length))
    model = TransformNMF(2, method=method, max_iter=5, tol=0, random_state=0)
    before = model.fit(frames).transform_
    assert np.allclose(before @ before.T, np.eye(length))
    perturbed_lapack()
    np.testing.assert_allclose(model.fit(frames).transform_, before, atol=1e-7)


@pytest.mark.covering(1)
@pytest.mark.parametrize("method", COMMUNITY_METHODS)
def test_communities(method, perturbed_lapack):
    rng = np.random.default_rng(0)
    groups = np.arange(60) % 3
    links = np.triu(rng.random((60, 60)) < np.where(groups[:, None] == groups, 0.7, 0.05), 1)
    graph = sp.csr_array((links | links.T).astype(float))
    model = MixedMembership(3, method=method, random_state=0)
    before = model.fit(graph).memberships_
    perturbed_lapack()
    np.testing.assert_allclose(model.fit(graph).memberships_, before, atol=1e-7)


@pytest.mark.covering(1)
@pytest.mark.parametrize("method", COMMUNITY_METHODS)
def test_equal_communities(method, perturbed_lapack):
    # All leading eigenvalues are equal: nothing but a rule fixes the vectors.
    cliques = sp.block_diag([sp.coo_array(np.ones((6, 6)) - np.eye(6))] * 3, format="csr")
    model = MixedMembership(3, method=method, random_state=0)
    before = model.fit(cliques).memberships_
    np.testing.assert_allclose(before.max(axis=1), 1.0)
    perturbed_lapack()
    np.testing.assert_allclose(model.fit(cliques).memberships_, before, atol=1e-7)


@pytest.mark.parametrize("init", ["nndsvd", "nndsvda"])
def test_initializations_where_singular_values_are_repeated(init, perturbed_lapack):
    X = np.kron(np.eye(3), np.outer(np.arange(1.0, 5.0), np.arange(1.0, 4.0)))
    model = NMF(3, init=init, max_iter=1, tol=0)
    before = model.fit(X).components_
    perturbed_lapack()
    np.testing.assert_allclose(model.fit(X).components_, before, atol=1e-9)


def test_endmembers(perturbed_lapack):
    cube = points()[:, :40].reshape(8, 8, 40)
    model = Unmixing(4, random_state=0)
    before = model.fit(cube).endmembers_
    perturbed_lapack()
    np.testing.assert_allclose(model.fit(cube).endmembers_, before, rtol=1e-9)


def test_dependent_features(perturbed_lapack):
    rng = np.random.default_rng(0)
    features = rng.random((6, 20))
    features[[2, 4, 5]] = features[[1, 3, 3]]
    assert dependent_feature(features[:4]) == 1  # as much as 2: of tied ones the first
    assert dependent_feature(features) == 3
    perturbed_lapack()
    assert dependent_feature(features[:4]) == 1
    assert dependent_feature(features) == 3
