"""Block Lanczos with dense operators of known spectra."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.data.lanczos import _next_block, _outside, _split, block_lanczos, most_equal


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([5.0, 4.0, 3.0], 1),
        ([5.0, 5.0, 3.0], 2),
        ([5.0, 4.0, 4.0, 4.0], 3),
        ([5.0, 5.0, 4.0, 4.0, 4.0, 1.0], 3),
        ([5.0, 5.0 - 1e-12, 4.0], 2),
        ([5.0, 0.0, 0.0, 0.0], 1),
        ([5.0, 1e-12, 1e-12], 1),
        ([0.0, 0.0], 0),
    ],
)
def test_equal_values_are_counted_and_zeros_are_not(values, expected):
    assert most_equal(np.array(values)) == expected


def test_a_product_is_split_into_what_lies_inside_and_outside(rng):
    basis = np.linalg.qr(rng.standard_normal((20, 5)))[0]
    product = rng.standard_normal((20, 3))
    inside, outside = _split(basis, product)
    np.testing.assert_allclose(basis @ inside + outside, product, atol=1e-13)
    np.testing.assert_allclose(basis.T @ outside, 0.0, atol=1e-14)
    block = _outside(basis, product)
    np.testing.assert_allclose(block.T @ block, np.eye(3), atol=1e-13)
    np.testing.assert_allclose(basis.T @ block, 0.0, atol=1e-13)


def test_directions_of_rounding_size_are_dropped(rng):
    directions = np.linalg.qr(rng.standard_normal((10, 3)))[0]
    triangle = np.diag([1.0, 1e-3, 1e-16])
    found = _next_block(directions, triangle, 1.0)
    assert found.shape == (10, 2)
    np.testing.assert_allclose(directions[:, :2] @ (directions[:, :2].T @ found), found, atol=1e-13)
    assert _next_block(directions, triangle, 1e12).shape == (10, 1)
    assert _next_block(directions, 0.0 * triangle, 1.0).shape == (10, 0)


@pytest.mark.parametrize("repeated", [1, 7, 8, 9, 20])
@pytest.mark.parametrize("k", [3, 12])
def test_repeated_values_are_all_found(repeated, k, rng):
    sizes = np.concatenate([np.full(repeated, 4.0), 3.0 * 0.7 ** np.arange(60 - repeated)])
    Q = np.linalg.qr(rng.standard_normal((60, 60)))[0]
    A = Q * sizes @ Q.T
    values, vectors = block_lanczos(lambda V: A @ V, 60, k, rng, tol=1e-12)
    np.testing.assert_allclose(values, np.sort(sizes)[::-1][:k], rtol=1e-9)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(k), atol=1e-9)
    np.testing.assert_allclose(A @ vectors, vectors * values, atol=1e-7)


@pytest.mark.parametrize("order", [1, 3, 8, 9, 30])
def test_operators_of_any_order(order, rng):
    A = rng.standard_normal((order, order))
    A = A.T @ A
    k = min(order, 3)
    values, _ = block_lanczos(lambda V: A @ V, order, k, rng, tol=1e-12)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(A)[::-1][:k], rtol=1e-9)


@pytest.mark.parametrize("max_passes", [1, 2, 3])
def test_passes_are_counted(max_passes, rng):
    A = np.diag(1.0 + 0.01 * np.arange(200.0))
    seen = []
    values, vectors = block_lanczos(
        lambda V: seen.append(V.shape[1]) or A @ V, 200, 2, rng, tol=1e-12, max_passes=max_passes
    )
    assert seen == [8] * max_passes
    np.testing.assert_allclose(np.sum(vectors * (A @ vectors), axis=0), values, rtol=1e-10)
    assert values[0] <= 2.99 + 1e-9
