"""Line searches, tridiagonal systems, cones and Gram matrices, not compiled, against formulas of NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
import scipy.sparse as sp
from tests.kernels.plain import plain

from nonneg.kernels.dual_constraints import constraint_sums
from nonneg.kernels.grams import (
    DenseGrams,
    ListedGrams,
    MaskedGrams,
    SharedGram,
    gram_matrices,
    numpy_gram,
    quadratic_form,
)

DIAGONAL = "nonneg.kernels.dominating_diagonal.numba"


def test_rows_are_projected_onto_the_cone_of_their_diagonal(rng):
    n = 5
    C, weights = 1.5 * rng.standard_normal((n, n)), 0.5 + rng.random(n)
    weights[3] = 0.0
    found = plain(DIAGONAL).dominating_diagonal(C, weights, 100)
    for i in range(n):
        if weights[i] == 0.0:
            expected = np.maximum(C[i], 0.0)
            expected[i] = min(expected[i], 1.0)
            np.testing.assert_allclose(found[i], expected)
            continue

        def distance(level, i=i):
            row = np.clip(C[i], 0.0, weights * level / weights[i])
            row[i] = level
            return np.sum((row - C[i]) ** 2)

        best = scipy.optimize.minimize_scalar(
            distance, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-10}
        )
        lowest = min(best.fun, distance(0.0), distance(1.0))
        assert np.sum((found[i] - C[i]) ** 2) == pytest.approx(lowest, abs=1e-8)
        assert 0.0 <= found[i, i] <= 1.0
        others = np.delete(np.arange(n), i)
        assert (found[i, others] <= weights[others] * found[i, i] / weights[i] + 1e-12).all()
    given = C.copy()
    assert plain(DIAGONAL).dominating_diagonal(C, weights, 100, out=given) is given
    np.testing.assert_array_equal(given, found)


@pytest.fixture
def grams(rng):
    other, mask = rng.random((7, 3)), rng.random((5, 7)) < 0.6
    exact = np.array([other[row].T @ other[row] for row in mask])
    listed, missing = sp.csr_array(mask), sp.csr_array(~mask)
    return {
        "listed": (ListedGrams(np.zeros((3, 3)), 1.0, other, listed.indptr, listed.indices), exact),
        "missing": (ListedGrams(other.T @ other, -1.0, other, missing.indptr, missing.indices), exact),
        "masked": (MaskedGrams(mask, other), exact),
        "dense": (DenseGrams(exact), exact),
        "shared": (SharedGram(other.T @ other), np.tile(other.T @ other, (5, 1, 1))),
    }


@pytest.mark.parametrize("kind", ["listed", "missing", "masked", "dense", "shared"])
def test_gram_matrices_of_every_kind(kind, grams, rng):
    gram, exact = grams[kind]
    factor = rng.random((5, 3))
    found = gram_matrices(gram)
    np.testing.assert_allclose(np.broadcast_to(found, exact.shape), exact, atol=1e-12)
    forms = np.einsum("ia,iab,ib->", factor, exact, factor)
    assert quadratic_form(factor, gram) == pytest.approx(forms)
    ridged = gram.plus_ridge(0.3)
    assert quadratic_form(factor, ridged) == pytest.approx(forms + 0.3 * np.sum(factor**2))
    np.testing.assert_allclose(
        np.broadcast_to(gram_matrices(ridged), exact.shape), exact + 0.3 * np.eye(3), atol=1e-12
    )
    assert quadratic_form(factor, gram.plus_ridge(0.0)) == pytest.approx(forms)
    both = gram + (SharedGram(np.eye(3)) if kind == "shared" else DenseGrams(np.tile(np.eye(3), (5, 1, 1))))
    np.testing.assert_allclose(
        np.broadcast_to(gram_matrices(both), exact.shape), exact + np.eye(3), atol=1e-12
    )
    if kind != "shared":
        np.testing.assert_allclose(numpy_gram(gram).dense().matrices, exact, atol=1e-12)
        if kind != "dense":
            np.testing.assert_allclose(gram.dense_rows(1, 4), exact[1:4], atol=1e-12)


@pytest.mark.parametrize("n", [3, 300, 1100])
def test_sums_of_violated_constraints_are_upper_bounds(n, rng):
    points, residual, levels = (
        rng.standard_normal((n, 4)),
        rng.standard_normal((n, 4)),
        rng.standard_normal(n),
    )
    radius = np.linalg.norm(points, axis=1).max()
    found = constraint_sums(lambda start, stop: points[start:stop], n, radius, residual, levels)
    exact = np.maximum(levels[None, :] - points @ residual.T, 0.0).sum(axis=1)
    assert (found >= exact).all()
    np.testing.assert_allclose(found, exact, rtol=1e-3, atol=1e-4 * n)
