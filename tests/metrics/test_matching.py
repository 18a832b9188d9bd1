"""The pairing of components is the best one, whatever their order and scale."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nonneg.exceptions import NonFiniteDataError, ShapeError
from nonneg.metrics import match_components


@given(seed=st.integers(0, 10**6), k=st.integers(1, 6))
@settings(max_examples=30, deadline=None)
def test_a_permutation_and_scales_are_undone(seed, k):
    rng = np.random.default_rng(seed)
    true = rng.gamma(0.3, size=(k, 12)) + 1e-9
    order = rng.permutation(k)
    found = true[order] * 10.0 ** rng.uniform(-200, 100, size=(k, 1))
    permutation, cosines = match_components(true, found)
    np.testing.assert_array_equal(order[permutation], np.arange(k))
    np.testing.assert_allclose(cosines, 1.0)


def test_no_other_pairing_is_better(rng):
    true, found = rng.random((5, 4)), rng.random((5, 4))
    _, cosines = match_components(true, found)
    unit = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (true, found)]
    table = unit[0] @ unit[1].T
    assert cosines.sum() == pytest.approx(max(table[range(5), list(p)].sum() for p in permutations(range(5))))


def test_numbers_of_components_may_differ(rng):
    true = rng.random((4, 10))
    permutation, cosines = match_components(true, true[[2, 0]])
    np.testing.assert_array_equal(permutation, [1, -1, 0, -1])
    np.testing.assert_allclose(cosines, [1, 0, 1, 0])
    permutation, _ = match_components(true[:1], true[::-1])
    np.testing.assert_array_equal(permutation, [3])


def test_components_of_zeros_have_cosine_zero():
    _, cosines = match_components(np.array([[1.0, 0.0], [0.0, 0.0]]), np.eye(2))
    np.testing.assert_allclose(cosines, [1.0, 0.0])


def test_what_does_not_fit_is_refused():
    with pytest.raises(ShapeError, match=r"got \(2, 3\) and \(2, 4\)"):
        match_components(np.ones((2, 3)), np.ones((2, 4)))
    with pytest.raises(NonFiniteDataError, match="`estimated`"):
        match_components(np.ones((2, 3)), np.full((2, 3), np.nan))
    with pytest.raises(NonFiniteDataError, match="`true`"):
        match_components([[1.0, np.nan, 1.0]], np.ones((1, 3)))


@pytest.mark.parametrize("shapes", [((3,), (2, 3)), ((2, 3), (3,)), ((1, 2, 3), (2, 2))])
def test_tables_of_other_dimensions_are_refused(shapes):
    with pytest.raises(ShapeError, match=r"of shape .n_components, n_features"):
        match_components(*map(np.ones, shapes))


def test_components_may_have_any_sign():
    _, cosines = match_components([[3.0, -4.0]], [[-4.0, -3.0]])
    np.testing.assert_allclose(cosines, 0.0, atol=1e-15)
    _, cosines = match_components([[3.0, -4.0]], [[-3.0, 4.0]])
    np.testing.assert_allclose(cosines, -1.0)
