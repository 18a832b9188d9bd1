"""Newton steps of rows: the compiled kernel against its portable twin."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg._threads import threads
from nonneg.kernels.newton_targets import newton_targets, portable_newton_targets


@pytest.mark.parametrize("order", [None, np.array([0, 2])])
def test_compiled_equals_portable(order, rng):
    factor, gradient = rng.gamma(0.3, size=(150, 5)), rng.standard_normal((150, 5))
    factor[rng.random(factor.shape) < 0.2] = 0.0
    points = rng.random((30, 5))
    correlations = np.corrcoef(points.T) ** 2
    arguments = factor, gradient, rng.gamma(1.0, size=(150, 5)), correlations, order, 0.3, 0.2
    found, wanted = newton_targets(*arguments), portable_newton_targets(*arguments)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
    assert (factor + found[0]).min() >= 0
    assert np.abs(found[0]).max() > 0
    if order is not None:
        assert not found[0][:, [1, 3, 4]].any()


@pytest.mark.parametrize(("n_rows", "k"), [(0, 3), (1, 1), (129, 7), (700, 33)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_odd_sizes_and_threads(n_rows, k, dtype, rng):
    factor, gradient, diagonal = (rng.random((n_rows, k)).astype(dtype) for _ in range(3))
    correlations = (np.eye(k) + 1).astype(dtype) / 2
    arguments = factor, gradient - dtype(0.5), diagonal + dtype(0.1), correlations, None, 0.3, 0.2
    results = []
    for n_jobs in (1, 3):
        with threads(n_jobs):
            results.append(newton_targets(*arguments))
    tolerance = 1e-9 if dtype == np.float64 else 2e-3
    for one, three, wanted in zip(*results, portable_newton_targets(*arguments), strict=True):
        assert one.tobytes() == three.tobytes()
        np.testing.assert_allclose(one, wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("batched", [False, True])
def test_steps_of_independent_components(batched):
    # Newton's, but to a fifth of an entry at most, unless that is a small part of its row.
    factor = np.array([[1.0, 1.0, 5e-4, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0]])
    gradient = np.array([[1.0, 4.0, 4.0, -1.0, 1.0], [-2.0, 2.0, 0.0, 0.0, 0.0]])
    diagonal, expected = np.full((2, 5), 2.0), [[-0.5, -0.8, -5e-4, 0.5, 0.0], [1.0, 0.0, 0.0, 0.0, 0.0]]
    arrays = factor, gradient, diagonal, np.eye(5)
    results = portable_newton_targets(
        *(array[None] if batched else array for array in arrays), None, 0.3, 0.2
    )
    found, _, linear, quadratic, slopes = (part[0] if batched else part for part in results)
    np.testing.assert_allclose(linear, np.sum((0.3 + 0.2 * factor) * expected, axis=1))
    np.testing.assert_allclose(quadratic, 0.2 * np.sum(np.square(expected), axis=1))
    np.testing.assert_allclose(found, expected, atol=1e-12)
    np.testing.assert_allclose(slopes, np.sum(gradient * expected, axis=1))
