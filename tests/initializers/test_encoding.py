"""A factor fitted to the other one by multiplicative updates, against the updates written out."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.data import as_data_matrix
from nonneg.initializers.encoding import _LOWER_BOUND, _STEPS, fit_H, fit_rows, fit_W, init_from_anchors


def updated(X, H, n_steps, first=None):
    """Row by row: the best multiple of the first rows, and then multiplicative updates."""
    gram, cross = H @ H.T, X @ H.T
    first = cross if first is None else first
    rows = []
    for c, f in zip(cross, first, strict=True):
        f = f / f.max() if f.max() > 0 else f
        denominator = f @ gram @ f
        f = f * (c @ f / denominator if denominator > 0 else 0.0)
        for _ in range(n_steps):
            model = gram @ f
            f = f * np.divide(c, model, out=np.zeros_like(c), where=model > 0)
        rows.append(np.maximum(f, _LOWER_BOUND * f.mean()))
    return np.array(rows)


@pytest.fixture
def problem(rng):
    X, H = rng.random((9, 6)), rng.random((3, 6))
    X[4] = 0.0
    return X, H


@pytest.mark.parametrize("n_steps", [0, 1, 3])
@pytest.mark.parametrize("empty", [False, True])
def test_rows_are_updated_as_the_formula_says(problem, n_steps, empty, rng):
    X, H = problem
    if empty:
        H = H * np.array([[1.0], [0.0], [1.0]])  # a component of zeros
    for first in (None, rng.random((9, 3))):
        found = fit_rows(np, H @ H.T, X @ H.T, n_steps, first=first)
        np.testing.assert_allclose(found, updated(X, H, n_steps, first), rtol=1e-10)


def test_both_factors_have_ten_updates(problem, rng):
    X, H = problem
    data = as_data_matrix(X)
    assert _STEPS == 10
    np.testing.assert_allclose(fit_W(data, H.T), updated(X, H, 10), rtol=1e-10)
    W = rng.random((9, 2))
    np.testing.assert_allclose(fit_H(data, W), updated(X.T, W.T, 10), rtol=1e-10)
    weights = rng.integers(1, 4, 9)
    heavy = as_data_matrix(X, weights=weights.astype(float))
    repeated = updated(np.repeat(X, weights, axis=0).T, np.repeat(W, weights, axis=0).T, 10)
    np.testing.assert_allclose(fit_H(heavy, W), repeated, rtol=1e-10)


def test_anchors_are_the_components(rng):
    H = np.vstack([np.eye(3), rng.random((2, 3))])[:3] + 0.1
    W = rng.dirichlet(np.ones(3), 8)
    W[[2, 5, 7]] = np.eye(3)
    found_W, Ht = init_from_anchors(as_data_matrix(W @ H), np.array([2, 5, 7]))
    np.testing.assert_allclose(Ht.T, H)
    np.testing.assert_allclose(found_W, W, atol=1e-8)
