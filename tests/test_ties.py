"""Choices among numbers that are nearly equal do not depend on rounding."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg._ties import first_largest, fixed_vectors, rounded, vector_signs


def test_the_first_of_the_largest_but_for_rounding():
    values = np.array([[1.0, 2.0 - 1e-7, -4.0, 0.0], [3.0, 2.0, -2.0 - 1e-7, 0.0], [2.0, 1.0, -2.0, 0.0]])
    np.testing.assert_array_equal(first_largest(values), [1, 0, 1, 0])
    # A difference that means something decides.
    np.testing.assert_array_equal(first_largest(np.array([[1.0], [1.0 + 1e-4]])), [1])


def test_signs_make_the_largest_entry_positive_and_of_tied_ones_the_first():
    vectors = np.array([[0.1, -0.5, 0.5, 0.0], [-0.9, 0.5, -0.5, 0.0], [0.2, 0.1, 0.1, 0.0]])
    np.testing.assert_array_equal(vector_signs(vectors), [-1.0, -1.0, 1.0, 1.0])
    vectors[1, 1:3] *= 1 + 1e-9
    np.testing.assert_array_equal(vector_signs(vectors), [-1.0, -1.0, 1.0, 1.0])


def turned(vectors, columns, angle):
    """The vectors, those of two columns turned within their span."""
    found = vectors.copy()
    found[:, columns] = found[:, columns] @ [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    return found


@pytest.mark.parametrize("columns", [[0, 1], [1, 2], [2, 3]])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_basis_of_a_repeated_eigenvalue_depends_on_its_span_alone(columns, sign, rng):
    vectors = np.linalg.qr(rng.standard_normal((7, 4)))[0]
    values = sign * np.array([4.0, 3.0, 2.0, 1.0])
    values[columns[1]] = values[columns[0]]
    first = fixed_vectors(values, vectors)
    for angle in (0.3, 1.2, 2.9):
        np.testing.assert_allclose(fixed_vectors(values, turned(vectors, columns, angle)), first, atol=1e-12)
    np.testing.assert_allclose(first.T @ first, np.eye(4), atol=1e-12)
    # The longest projection of a unit vector to the span, its direction and what is orthogonal to it there.
    span = vectors[:, columns] @ vectors[:, columns].T
    longest = span[:, np.argmax(np.diag(span))]
    np.testing.assert_allclose(first[:, columns[0]], longest / np.linalg.norm(longest), atol=1e-12)
    np.testing.assert_allclose(first[:, columns] @ first[:, columns].T, span, atol=1e-12)
    others = [at for at in range(4) if at not in columns]
    np.testing.assert_allclose(np.abs(first[:, others]), np.abs(vectors[:, others]))
    np.testing.assert_array_equal(vector_signs(first), 1.0)


def test_vectors_of_zero_and_of_different_values_change_their_signs_alone(rng):
    vectors = np.linalg.qr(rng.standard_normal((6, 4)))[0]
    for values in ([3.0, 2.0, 0.0, 0.0], [3.0, 2.0, 1e-13, 0.0], [4.0, 3.0, 2.0, 2.0 - 1e-10]):
        found = fixed_vectors(np.array(values), vectors)
        np.testing.assert_array_equal(found, vectors * vector_signs(vectors))
    # What counts as repeated may be given.
    near = fixed_vectors(np.array([4.0, 3.0, 2.0, 2.0 - 1e-10]), vectors, 1e-9)
    assert np.abs(near[:, 2:] - found[:, 2:]).max() > 0.01
    np.testing.assert_array_equal(near[:, :2], found[:, :2])


def test_unit_vectors_come_back_in_their_order():
    unit = np.eye(4)[:, [2, 0]]
    for angle in (0.0, 0.7, 2.0):
        found = fixed_vectors(np.array([5.0, 5.0]), turned(unit, [0, 1], angle))
        np.testing.assert_allclose(found, np.eye(4)[:, [0, 2]], atol=1e-12)


def test_sums_in_any_order_are_equal_when_rounded(rng):
    values = rng.standard_normal((200, 30))
    sums = values.sum(axis=1)
    other = sum(values[:, at] for at in rng.permutation(30))
    assert np.any(sums != other)
    np.testing.assert_array_equal(rounded(sums[np.abs(sums) > 1]), rounded(other[np.abs(sums) > 1]))
    np.testing.assert_allclose(rounded(sums), sums, rtol=2.0**-40)
    assert np.abs(rounded(sums) / sums - 1).max() > 2.0**-43
    np.testing.assert_array_equal(rounded([0.0, -1.5, 2.0**-300]), [0.0, -1.5, 2.0**-300])


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_values_are_repeated_in_proportion_to_the_largest(size, rng):
    vectors = np.linalg.qr(rng.standard_normal((6, 3)))[0]
    for gap, repeated in ((2e-13, True), (1e-11, False)):
        values = size * np.array([4.0, 2.0, 2.0 - 4.0 * gap])
        first = fixed_vectors(values, vectors)
        again = fixed_vectors(values, turned(vectors, [1, 2], 0.8))
        assert np.allclose(first, again, atol=1e-9) == repeated
