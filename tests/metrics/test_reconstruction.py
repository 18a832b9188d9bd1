"""Errors of reconstruction against the plain formulas and scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition._nmf import _beta_divergence

from nonneg.exceptions import InvalidParameterError, NegativeDataError, ShapeError
from nonneg.metrics import beta_divergence, reconstruction, relative_error


@pytest.fixture
def problem(rng):
    return rng.gamma(1.0, size=(30, 8)) + 0.01, rng.random((30, 3)) + 0.01, rng.random((3, 8)) + 0.01


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, sp.csc_matrix, np.ndarray.tolist])
@pytest.mark.parametrize("block", [8, 100, 1 << 20])
def test_the_relative_error_is_its_formula(make, block, problem, monkeypatch):
    monkeypatch.setattr(reconstruction, "_BLOCK_ENTRIES", block)
    X, W, H = problem
    expected = np.linalg.norm(X - W @ H) / np.linalg.norm(X)
    assert relative_error(make(X), W, H) == pytest.approx(expected, rel=1e-13)


def test_small_errors_keep_their_digits(problem):
    _, W, H = problem
    X = W @ H
    X[0, 0] += 1e-11
    assert relative_error(X, W, H) == pytest.approx(1e-11 / np.linalg.norm(X), rel=1e-3)


@pytest.mark.parametrize("beta", [-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, "itakura-saito", "kullback-leibler"])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_divergences_are_scikit_learn_s(beta, make, problem):
    X, W, H = problem
    assert beta_divergence(make(X), W, H, beta_loss=beta) == pytest.approx(
        _beta_divergence(X, W, H, beta), rel=1e-10
    )


@pytest.mark.parametrize("beta", [0.5, 1.0, 1.5, 2.0, 3.0])
def test_zeros_of_the_data_cost_what_they_should(beta, problem):
    X, W, H = problem
    X[X < 0.5] = 0.0
    # In the limit of small entries, because scikit-learn leaves zeros of X out for some betas.
    near = np.where(X > 0, X, 1e-200)
    assert beta_divergence(X, W, H, beta_loss=beta) == pytest.approx(
        beta_divergence(near, W, H, beta_loss=beta), rel=1e-9
    )


def test_infinite_divergences_are_infinite(problem):
    X, W, H = problem
    X[3, 2] = 0.0
    assert beta_divergence(X, W, H, beta_loss=0.0) == np.inf
    assert beta_divergence(X, W, H, beta_loss=-0.5) == np.inf
    H[:, 1] = 0.0
    assert beta_divergence(X, W, H, beta_loss=1.0) == np.inf
    assert np.isfinite(beta_divergence(X, W, H, beta_loss=2.0))


@pytest.mark.parametrize("beta", [0.5, 1.0, 1.5, 2.0])
def test_zeros_met_by_zeros_cost_nothing(beta):
    X = np.array([[1.0, 0.0], [2.0, 0.0]])
    W, H = np.array([[1.0], [2.0]]), np.array([[1.0, 0.0]])
    assert beta_divergence(X, W, H, beta_loss=beta) == pytest.approx(0.0)


def test_weights_equal_repetition(problem, rng):
    X, W, H = problem
    weights = rng.integers(1, 4, size=30)
    many, rows = np.repeat(X, weights, axis=0), np.repeat(W, weights, axis=0)
    assert relative_error(X, W, H, sample_weight=weights) == pytest.approx(relative_error(many, rows, H))
    for beta in (0.0, 1.0, 2.0):
        once = beta_divergence(X, W, H, beta_loss=beta, sample_weight=weights)
        assert once == pytest.approx(beta_divergence(many, rows, H, beta_loss=beta))


def test_a_matrix_of_zeros():
    assert relative_error(np.zeros((3, 2)), np.zeros((3, 1)), np.ones((1, 2))) == 0.0
    assert relative_error(np.zeros((3, 2)), np.ones((3, 1)), np.ones((1, 2))) == np.inf


def test_what_does_not_fit_is_refused(problem):
    X, W, H = problem
    with pytest.raises(ShapeError, match=r"got X \(30, 8\), W \(30, 3\) and H \(8, 3\)"):
        relative_error(X, W, H.T)
    with pytest.raises(ShapeError, match=r"Expected sample_weight of shape \(30,\), got \(4,\)"):
        relative_error(X, W, H, sample_weight=np.ones(4))
    with pytest.raises(InvalidParameterError, match="beta_loss must be a number or one of"):
        beta_divergence(X, W, H, beta_loss="euclid")


@pytest.mark.parametrize("unit", [1e-200, 1e200])
@pytest.mark.parametrize("sparse", [False, True])
def test_relative_error_does_not_depend_on_the_unit(unit, sparse):
    """Squares of such entries vanish or overflow."""
    rng = np.random.default_rng(0)
    X, W, H = rng.random((6, 4)), rng.random((6, 2)), rng.random((2, 4))
    scaled = X * unit
    found = relative_error(sp.csr_array(scaled) if sparse else scaled, W * unit, H)
    assert found == pytest.approx(relative_error(X, W, H), rel=1e-12)


@pytest.mark.parametrize("beta", [0, -1, -0.5])
@pytest.mark.parametrize(("x", "y"), [(1.0, 0.0), (0.0, 1.0), (0.0, 0.0)])
def test_divergences_that_are_infinite(beta, x, y):
    """Where data or model are zero, and no NaN."""
    assert beta_divergence([[x]], [[y]], [[1.0]], beta_loss=beta) == np.inf


def test_wrong_arguments_of_divergences():
    """Negative numbers have a squared error alone; weights are not negative; beta is a number."""
    one = [[1.0]]
    with pytest.raises(NegativeDataError, match="beta_loss=1"):
        beta_divergence([[-1.0]], one, one, beta_loss=1)
    assert beta_divergence([[-1.0]], one, one) == 2.0
    with pytest.raises(InvalidParameterError, match="sample_weight"):
        relative_error(one, one, one, sample_weight=[-1.0])
    for beta in (None, np.nan, "squares"):
        with pytest.raises(InvalidParameterError, match="beta"):
            beta_divergence(one, one, one, beta_loss=beta)


@pytest.mark.parametrize(
    ("entries", "columns", "sizes"), [(16, 8, [2, 2, 1]), (1, 8, [1] * 5), (3, 1, [3, 2]), (4, 0, [4, 1])]
)
def test_blocks_have_as_many_rows_as_fit(entries, columns, sizes, monkeypatch):
    monkeypatch.setattr(reconstruction, "_BLOCK_ENTRIES", entries)
    X = np.ones((5, columns))
    blocks = list(reconstruction._blocks(X, np.ones((5, 1)), np.ones((1, columns)), np.arange(5)))
    assert [len(rows) for rows, *_ in blocks] == sizes
    np.testing.assert_array_equal(np.concatenate([weights for *_, weights in blocks]), np.arange(5))


def test_squares_that_overflow_on_one_side():
    one = [[1.0]]
    assert relative_error([[1e150]], [[1e160]], one) == pytest.approx(1e10)
    assert relative_error([[1e160]], [[1e160 * (1 - 1e-8)]], one) == pytest.approx(1e-8)
    assert np.isnan(relative_error([[np.inf]], one, one))


def test_the_unit_is_the_largest_entry_of_all_blocks(monkeypatch):
    monkeypatch.setattr(reconstruction, "_BLOCK_ENTRIES", 1)
    X = [[1e200], [1e-200], [1e200]]
    assert relative_error(X, [[1e200], [0.0], [0.0]], [[1.0]]) == pytest.approx(np.sqrt(0.5))


@pytest.mark.parametrize(
    "shapes",
    [((4,), (4, 1), (1, 1)), ((4, 3), (4,), (1, 3)), ((4, 3), (4, 1), (3,)), ((4, 3), (5, 1), (1, 3)),
     ((4, 3), (4, 1), (1, 2)), ((4, 3), (4, 2), (1, 3))],
)  # fmt: skip
def test_shapes_that_do_not_fit_are_refused(shapes):
    with pytest.raises(ShapeError, match="Expected X"):
        relative_error(*map(np.ones, shapes))


def test_weights_may_be_zero_and_fractions_but_none_negative():
    X, W, H = np.ones((2, 1)), np.array([[0.0], [1.0]]), np.ones((1, 1))
    assert relative_error(X, W, H, sample_weight=[0.0, 0.5]) == 0.0
    assert relative_error(X, W, H, sample_weight=[0.25, 0.75]) == pytest.approx(0.5)
    for wrong in ([1.0, -1.0], [np.inf, 1.0]):
        with pytest.raises(InvalidParameterError, match="finite sample_weight"):
            relative_error(X, W, H, sample_weight=wrong)


def test_a_negative_model_is_refused_too():
    for X, W in (([[1.0]], [[-1.0]]), ([[-1.0]], [[1.0]])):
        with pytest.raises(NegativeDataError, match=r"beta_loss=1\.5"):
            beta_divergence(X, W, [[1.0]], beta_loss=1.5)
