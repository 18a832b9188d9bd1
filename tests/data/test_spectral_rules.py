"""Which way eigenvalues are found, what counts as rounding, and the bound of Kuczynski and Wozniakowski."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from nonneg.data import as_data_matrix, eckart_young, spectral
from nonneg.data.eckart_young import _largest_outside, _largest_sum, eckart_young_bound
from nonneg.data.spectral import leading_eigenpairs, numerical_noise
from nonneg.exceptions import InvalidParameterError


def like(n_rows, n_columns, dtype=np.float64):
    """Data of any size, of which only the form is asked."""
    return SimpleNamespace(
        shape=(n_rows, n_columns), dtype=np.dtype(dtype), xp=np, to_device=lambda array: np.asarray(array)
    )


@pytest.mark.parametrize(
    ("n_columns", "k", "way"),
    [
        (500, 1, "dense"),
        (501, 1, "lanczos"),
        (600, 150, "lanczos"),
        (600, 151, "dense"),  # more than a quarter of them
        (4096, 1025, "dense"),
        (4097, 1025, "lanczos"),
    ],
)
def test_few_columns_or_many_vectors_are_decomposed_whole(n_columns, k, way, monkeypatch):
    monkeypatch.setattr(spectral, "dense_eigenpairs", lambda data, k: "dense")
    monkeypatch.setattr(spectral, "block_lanczos", lambda *given, **options: "lanczos")
    assert leading_eigenpairs(like(10**4, n_columns), k) == way


@pytest.mark.parametrize(
    ("dtype", "tol", "expected"),
    [
        (np.float64, None, 1e-12),
        (np.float64, 1e-8, 1e-8),
        (np.float64, 0.0, 100 * np.finfo(np.float64).eps),
        (np.float32, None, 100 * np.finfo(np.float32).eps),
    ],
)
def test_the_tolerance_is_no_smaller_than_rounding(dtype, tol, expected, monkeypatch):
    asked = {}

    def lanczos(apply, order, k, source, **options):
        asked.update(options, order=order, k=k, draw=source.random())

    monkeypatch.setattr(spectral, "block_lanczos", lanczos)
    leading_eigenpairs(like(900, 700, dtype), 3, tol=tol, max_passes=17)
    assert asked == {
        "tol": expected, "max_passes": 17, "order": 700, "k": 3, "draw": np.random.default_rng(700).random()
    }  # fmt: skip
    leading_eigenpairs(like(900, 700, dtype), 3, rng=5)
    assert asked["draw"] == np.random.default_rng(5).random()
    assert asked["max_passes"] == 300


@pytest.mark.parametrize(("k", "good"), [(0, False), (1, True), (4, True), (5, False)])
def test_there_are_as_many_values_as_the_shorter_side_is_long(k, good):
    for shape in ((4, 9), (9, 4)):
        if good:
            spectral.check_count(like(*shape), k)
        else:
            with pytest.raises(InvalidParameterError, match=f"from 1 to 4 for data of shape .*, got {k}"):
                spectral.check_count(like(*shape), k)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_of_a_singular_value(dtype):
    eps = float(np.finfo(dtype).eps)
    assert numerical_noise(like(5, 4, dtype), 2.0) == pytest.approx(2.0 * 10 * eps**0.75)
    assert numerical_noise(like(5, 10**9, dtype), 2.0) == pytest.approx(2.0 * 10**9 * eps)
    assert numerical_noise(like(10**9, 5, dtype), 2.0) == pytest.approx(2.0 * 10**9 * eps)
    assert spectral._repeated(like(5, 4, dtype)) == max(1e-12, 100 * eps)


def test_the_bound_outside_of_some_directions_is_that_of_the_theorem(monkeypatch):
    # All eigenvalues are 9: Lanczos finds that exactly, and allows for what it might have missed.
    n, data = 40, as_data_matrix(3.0 * np.eye(40))
    V = np.eye(n)[:, :2]
    each = 1e-10 ** (1 / 8)
    share = (math.log(1.648 * math.sqrt(n) / each) / (2 * 20 - 1)) ** 2
    assert _largest_outside(data, V, np.random.default_rng(0)) == pytest.approx(9.0 / (1.0 - share))
    monkeypatch.setattr(eckart_young, "STEPS", 1)
    assert _largest_outside(data, V, np.random.default_rng(0)) == math.inf  # too few steps say nothing


@pytest.mark.parametrize("rounding", [0.0, 0.01])
def test_the_sum_of_the_largest_values_is_raised_by_what_is_not_known(rounding, rng, monkeypatch):
    sizes = np.array([5.0, 4.0, 3.0, *np.full(37, 1.0)])
    Q, R = (np.linalg.qr(rng.standard_normal((40, 40)))[0] for _ in range(2))
    data = as_data_matrix(Q * sizes @ R.T)
    found, most = _largest_sum(data, 3, np.random.default_rng(0), rounding)
    assert found == pytest.approx(50.0)
    assert most == pytest.approx(50.0 + 3 * rounding * 25.0)
    # A value outside that may be as large as 20 counts instead of 16 and 9.
    monkeypatch.setattr(eckart_young, "_largest_outside", lambda *given: 20.0)
    found, most = _largest_sum(data, 3, np.random.default_rng(0), rounding)
    assert most == pytest.approx(25.0 + 20.0 + 20.0 + 3 * rounding * 25.0)


@pytest.mark.parametrize("k", [1, 4])
def test_rounding_of_single_precision_is_subtracted_from_the_bound(k, rng):
    X = rng.random((60, 30)).astype(np.float32)
    bound = eckart_young_bound(as_data_matrix(X), k)
    squares = np.linalg.svd(X.astype(float), compute_uv=False) ** 2
    eps = float(np.finfo(np.float32).eps)
    allowed = (bound.estimate**2 - bound.relative_error**2) * squares.sum()
    least = k * math.sqrt(30) * eps * squares[0] + eps * squares.sum()
    assert least < allowed < 5 * least
    assert bound.estimate == pytest.approx(math.sqrt(squares[k:].sum() / squares.sum()), rel=1e-9)
    assert bound.failure_probability == 0.0
    assert bound.norm == pytest.approx(math.sqrt(squares.sum()))


@pytest.mark.parametrize("shape", [(6, 4), (4, 6)])
def test_the_bound_of_all_components_is_zero_and_of_one_less_is_not(shape, rng):
    X = rng.random(shape)
    assert eckart_young_bound(as_data_matrix(X), 4).relative_error == 0.0
    values = np.linalg.svd(X, compute_uv=False)
    bound = eckart_young_bound(as_data_matrix(X), 3).relative_error
    assert bound == pytest.approx(values[3] / np.linalg.norm(X), rel=1e-6)
