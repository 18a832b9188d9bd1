"""The projection of Gillis and Luce: both versions against the method of sorting in their paper."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg._threads import threads
from nonneg.kernels.dominating_diagonal import MAX_STEPS, dominating_diagonal, portable_dominating_diagonal


def by_sorting(C, w):
    """Raise the diagonal entry as long as the next largest quotient is above it."""
    out = np.zeros_like(C)
    for i, row in enumerate(C):
        if w[i] == 0:
            out[i] = np.maximum(row, 0)
            out[i, i] = min(out[i, i], 1.0)
            continue
        others = sorted((j for j in range(len(w)) if j != i and w[j] > 0), key=lambda j: -row[j] / w[j])
        top, bottom = w[i] * row[i], w[i] ** 2
        level = min(max(row[i], 0.0), 1.0)
        for j in others:
            if w[i] * row[j] <= w[j] * level:
                break
            top, bottom = top + w[j] * row[j], bottom + w[j] ** 2
            level = min(max(w[i] * top / bottom, 0.0), 1.0)
        out[i] = np.minimum(np.maximum(row, 0), level * w / w[i])
        out[i, i] = level
    return out


@pytest.fixture(params=["numpy", "array_api_strict", pytest.param("torch", marks=pytest.mark.torch)])
def project(request):
    if request.param == "numpy":
        return dominating_diagonal
    xp = pytest.importorskip(request.param)
    return lambda C, w: np.asarray(dominating_diagonal(xp.asarray(C), xp.asarray(w)))


@pytest.mark.parametrize("n", [1, 2, 6, 30])
@pytest.mark.parametrize("size", [0.1, 1.0, 5.0])
def test_equals_the_method_of_sorting(project, n, size):
    rng = np.random.default_rng(n)
    C, w = size * rng.normal(size=(n, n)), rng.random(n) + 0.05
    np.testing.assert_allclose(project(C, w), by_sorting(C, w), atol=1e-13)


def test_points_of_weight_zero(project):
    rng = np.random.default_rng(0)
    C, w = rng.normal(size=(8, 8)), rng.random(8)
    w[[2, 5]] = 0.0
    np.testing.assert_allclose(project(C, w), by_sorting(C, w), atol=1e-13)


def test_is_the_nearest_point_of_the_set(project):
    rng = np.random.default_rng(4)
    C, w = rng.normal(size=(6, 6)), rng.random(6) + 0.2
    P = project(C, w)
    diagonal = np.diagonal(P)
    assert P.min() >= 0
    assert diagonal.max() <= 1
    assert (w[:, None] * P <= w[None, :] * diagonal[:, None] + 1e-14).all()
    # A projection makes an obtuse angle with every other member of the set.
    for _ in range(50):
        other = project(2 * rng.normal(size=(6, 6)), w)
        assert np.sum((C - P) * (other - P)) <= 1e-12
    np.testing.assert_allclose(project(P, w), P, atol=1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [0, 1, 33, 130])
def test_odd_sizes_on_one_and_three_threads(n, dtype):
    rng = np.random.default_rng(n)
    C, w = rng.normal(size=(n, n)).astype(dtype), rng.random(n).astype(dtype)
    results, before = [], C.copy()
    for n_jobs in (1, 3):
        with threads(n_jobs):
            results.append(dominating_diagonal(C, w))
    np.testing.assert_array_equal(C, before)
    assert results[0].dtype == dtype
    assert results[0].tobytes() == results[1].tobytes()
    expected = portable_dominating_diagonal(C, w, MAX_STEPS)
    np.testing.assert_allclose(results[0], expected, atol=1e-12 if dtype == np.float64 else 1e-5)
