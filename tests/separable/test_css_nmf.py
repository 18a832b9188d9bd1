"""Convex smooth separable NMF: shared weight, averages, optimality, and its bound."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from nonneg import select_anchors
from nonneg.exceptions import InvalidParameterError, UnknownNameError, UnsupportedError, UnsupportedInputError
from nonneg.leastsquares.projections import onto_dominating_diagonal
from nonneg.separable.css_nmf import _distinct


def near_duplicates(seed, noise, copies=(6, 10, 4), n_mixed=30, n_features=15):
    """Copies of vertices and mixtures of them, with noise; rows sum to one."""
    rng = np.random.default_rng(seed)
    W = rng.dirichlet(np.full(n_features, 0.5), size=len(copies))
    mixed = 0.3 / len(copies) + 0.7 * rng.dirichlet(np.ones(len(copies)), size=n_mixed)
    H = np.vstack([np.repeat(np.eye(len(copies)), copies, axis=0), mixed])
    X = H @ W
    X = np.maximum(X + noise * rng.standard_normal(X.shape) * np.linalg.norm(X) / np.sqrt(X.size), 0.0)
    return X / X.sum(axis=1, keepdims=True), W


def distances(found, W):
    """Distances of matched vertices."""
    table = np.linalg.norm(found[:, None] - W[None], axis=2)
    return table[linear_sum_assignment(table)]


def test_copies_share_the_weight_of_their_vertex():
    X, W = near_duplicates(0, 0.0)
    found = select_anchors(X, 3, method="css-nmf", method_params={"lam": 1e-3}, max_iter=3000)
    assert [sorted(group) for group in sorted(found.members, key=min)] == [
        [*range(6)],
        [*range(6, 16)],
        [*range(16, 20)],
    ]
    np.testing.assert_allclose(distances(found.components, W), 0.0, atol=1e-12)
    # 1 / p each, as the minimum without noise has it.
    diagonal = np.diagonal(found.coefficients.toarray())
    np.testing.assert_allclose(diagonal[:20], np.repeat([1 / 6, 1 / 10, 1 / 4], [6, 10, 4]), rtol=0.01)
    assert diagonal[20:].max() < 0.2 * diagonal[:20].min()
    assert found.certificate["vertex-error"].holds
    assert found.facts["n_averaged"] == [len(group) for group in found.members]


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.05, 0.2, 0.5])
def test_averages_are_nearer_than_any_single_sample_where_near_duplicates_share_weight(noise):
    errors = {"css-nmf": [], "spa": [], "merit": [], "fast-gradient": []}
    for seed in range(4):
        X, W = near_duplicates(seed, noise)
        for name in errors:
            found = select_anchors(X, 3, method=name, rng=0)
            vertices = X[found.anchors] if found.components is None else found.components
            errors[name].append(np.sqrt(np.mean(distances(vertices, W) ** 2)))
    ours = np.mean(errors.pop("css-nmf"))
    assert ours < 0.8 * min(np.mean(values) for values in errors.values())


def test_the_bound_is_true():
    for seed in range(4):
        X, W = near_duplicates(seed, 0.01)
        found = select_anchors(X, 3, method="css-nmf")
        assert distances(found.components, W).max() <= found.certificate["vertex-error"].number
    median = select_anchors(X, 3, method="css-nmf", method_params={"aggregate": "median"})
    assert median.certificate["vertex-error"].number is None
    assert distances(median.components, W).max() < 0.05


def test_reaches_the_optimum_of_a_fixed_weight(clean):
    lam = 0.2
    found = select_anchors(clean.X, 6, method="css-nmf", method_params={"lam": lam}, max_iter=3000, tol=0.0)
    C, weights = found.coefficients.toarray(), np.abs(clean.X).sum(axis=1)
    np.testing.assert_allclose(onto_dominating_diagonal(C, weights), C, atol=1e-12)
    # At a minimum a projected gradient step goes nowhere.
    gradient = clean.X @ (clean.X.T @ C - clean.X.T) + lam * np.diag(np.diagonal(C))
    step = 1.0 / (np.linalg.norm(clean.X, 2) ** 2 + lam)
    assert np.abs(onto_dominating_diagonal(C - step * gradient, weights) - C).max() < 1e-6
    objective = 0.5 * np.sum((clean.X.T - clean.X.T @ C) ** 2) + 0.5 * lam * np.sum(np.diagonal(C) ** 2)
    assert found.objective == pytest.approx(objective, rel=1e-10)


def test_the_automatic_weight_follows_the_noise_and_not_the_units():
    weights = {}
    for noise in (0.05, 0.5):
        X, _ = near_duplicates(1, noise)
        found = select_anchors(X, 3, method="css-nmf", max_iter=300)
        assert found.history["trace"][-1] == pytest.approx(3.0, rel=0.1)
        weights[noise] = found.lam
        small = select_anchors(1e-6 * X, 3, method="css-nmf", max_iter=300)
        assert [list(group) for group in small.members] == [list(group) for group in found.members]
        assert small.lam == pytest.approx(1e-12 * found.lam, rel=1e-6)
    assert weights[0.5] > 2.0 * weights[0.05]


def test_single_precision_reduced_samples_and_limits(clean):
    X, W = near_duplicates(2, 0.1)
    found = select_anchors(X.astype(np.float32), 3, method="css-nmf")
    assert found.components.dtype == np.float32
    # Averages of the samples themselves, whatever the method saw.
    reduced = select_anchors(X, 3, method="css-nmf", reduce=3)
    assert reduced.components.shape == W.shape
    assert distances(reduced.components, W).max() < 0.1
    with pytest.raises(UnsupportedInputError, match="css-nmf would need"):
        select_anchors(X, 3, method="css-nmf", method_params={"memory_limit": 1e3})
    with pytest.raises(UnknownNameError, match="aggregate"):
        select_anchors(X, 3, method="css-nmf", method_params={"aggregate": "mode"})
    with pytest.raises(InvalidParameterError, match="threshold"):
        select_anchors(X, 3, method="css-nmf", method_params={"threshold": 0.0})
    with pytest.raises(UnsupportedError, match="init"):
        select_anchors(X, 3, method="css-nmf", init=[0, 1, 2])
    with pytest.raises(InvalidParameterError, match="n_components"):
        select_anchors(X, method="css-nmf")


def test_vertices_that_differ_by_rounding_are_one():
    vertices = np.array([[1.0, 2.0], [3.0, 1.0], [1.0, 2.0 + 1e-14], [3.0, 1.1]])
    assert _distinct(vertices).tolist() == [0, 1, 3]
