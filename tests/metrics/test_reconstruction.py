"""Errors of reconstruction against the plain formulas and scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg.exceptions import InvalidParameterError, ShapeError
from nonneg.metrics import relative_error


@pytest.fixture
def problem(rng):
    return rng.gamma(1.0, size=(30, 8)) + 0.01, rng.random((30, 3)) + 0.01, rng.random((3, 8)) + 0.01


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, sp.csc_matrix, np.ndarray.tolist])
@pytest.mark.parametrize("copies", [1, 5_000])  # in one block of rows, and in several
def test_the_relative_error_is_its_formula(make, copies, problem):
    X, W, H = problem
    X, W = np.tile(X, (copies, 1)), np.tile(W, (copies, 1))
    expected = np.linalg.norm(X - W @ H) / np.linalg.norm(X)
    assert relative_error(make(X), W, H) == pytest.approx(expected, rel=1e-13)


def test_small_errors_keep_their_digits(problem):
    _, W, H = problem
    X = W @ H
    X[0, 0] += 1e-11
    assert relative_error(X, W, H) == pytest.approx(1e-11 / np.linalg.norm(X), rel=1e-3)


def test_a_matrix_of_zeros():
    assert relative_error(np.zeros((3, 2)), np.zeros((3, 1)), np.ones((1, 2))) == 0.0
    assert relative_error(np.zeros((3, 2)), np.ones((3, 1)), np.ones((1, 2))) == np.inf


def test_what_does_not_fit_is_refused(problem):
    X, W, H = problem
    with pytest.raises(ShapeError, match=r"got X \(30, 8\), W \(30, 3\) and H \(8, 3\)"):
        relative_error(X, W, H.T)
    with pytest.raises(ShapeError, match=r"Expected sample_weight of shape \(30,\), got \(4,\)"):
        relative_error(X, W, H, sample_weight=np.ones(4))


@pytest.mark.parametrize("unit", [1e-200, 1e200])
@pytest.mark.parametrize("sparse", [False, True])
def test_relative_error_does_not_depend_on_the_unit(unit, sparse):
    """Squares of such entries vanish or overflow."""
    rng = np.random.default_rng(0)
    X, W, H = rng.random((6, 4)), rng.random((6, 2)), rng.random((2, 4))
    scaled = X * unit
    found = relative_error(sp.csr_array(scaled) if sparse else scaled, W * unit, H)
    assert found == pytest.approx(relative_error(X, W, H), rel=1e-12)


def test_squares_that_overflow_on_one_side():
    one = [[1.0]]
    assert relative_error([[1e150]], [[1e160]], one) == pytest.approx(1e10)
    assert relative_error([[1e160]], [[1e160 * (1 - 1e-8)]], one) == pytest.approx(1e-8)
    assert np.isnan(relative_error([[np.inf]], one, one))


@pytest.mark.parametrize(
    "shapes",
    [((4,), (4, 1), (1, 1)), ((4, 3), (4,), (1, 3)), ((4, 3), (4, 1), (3,)), ((4, 3), (5, 1), (1, 3)),
     ((4, 3), (4, 1), (1, 2)), ((4, 3), (4, 2), (1, 3))],
)  # fmt: skip
def test_shapes_that_do_not_fit_are_refused(shapes):
    with pytest.raises(ShapeError, match=r"Expected (X|`[XWH]`)"):
        relative_error(*map(np.ones, shapes))


def test_weights_may_be_zero_and_fractions_but_none_negative():
    X, W, H = np.ones((2, 1)), np.array([[0.0], [1.0]]), np.ones((1, 1))
    assert relative_error(X, W, H, sample_weight=[0.0, 0.5]) == 0.0
    assert relative_error(X, W, H, sample_weight=[0.25, 0.75]) == pytest.approx(0.5)
    for wrong in ([1.0, -1.0], [np.inf, 1.0]):
        with pytest.raises(InvalidParameterError, match="finite sample_weight"):
            relative_error(X, W, H, sample_weight=wrong)
