"""Exact least squares over the simplex: the compiled and the portable version against a slow one."""

from __future__ import annotations

import numpy as np
import pytest
from tests.references.simplex import simplex_kkt, simplex_row

from nonneg._threads import threads
from nonneg.kernels import simplex
from nonneg.kernels.simplex import portable_simplex_pivoting


@pytest.fixture(params=["door", "numpy", "array_api_strict", pytest.param("torch", marks=pytest.mark.torch)])
def pivoting(request):
    """`simplex_pivoting` of one version, NumPy arrays in and out; the door takes the core."""
    if request.param == "door":
        return simplex.simplex_pivoting
    if request.param == "numpy":

        def plain(gram, cross, *, start=None, max_pivots=None):
            return portable_simplex_pivoting(start, gram, cross, max_pivots or 20 + 5 * cross.shape[1])

        return plain
    xp = pytest.importorskip(request.param)

    def portable(gram, cross, *, start=None, **options):
        begun = None if start is None else xp.asarray(start)
        rows, flags = simplex.simplex_pivoting(xp.asarray(gram), xp.asarray(cross), start=begun, **options)
        return np.asarray(rows), np.asarray(flags)

    return portable


def problem(k, n_rows=40, n_features=None, noise=0.5, seed=0):
    rng = np.random.default_rng(seed)
    points = rng.random((k, n_features or k + 3))
    X = rng.dirichlet(np.ones(k), n_rows) @ points + noise * rng.normal(size=(n_rows, points.shape[1]))
    return points @ points.T, X @ points.T


@pytest.mark.covering(1)
@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_rows_are_the_best_over_all_supports(pivoting, k):
    gram, cross = problem(k)
    rows, flags = pivoting(gram, cross)
    assert not flags.any()
    expected = np.array([simplex_row(gram, c) for c in cross])
    np.testing.assert_allclose(rows, expected, atol=1e-10)


@pytest.mark.parametrize(("k", "noise"), [(12, 0.05), (30, 0.3), (30, 5.0)])
def test_many_components_meet_the_conditions_of_a_minimum(pivoting, k, noise):
    gram, cross = problem(k, n_rows=60, noise=noise)
    rows, flags = pivoting(gram, cross)
    assert not flags.any()
    assert simplex_kkt(rows, gram, cross) < 1e-11


def test_the_answer_does_not_depend_on_the_guess(pivoting):
    gram, cross = problem(7)
    expected, _ = pivoting(gram, cross)
    rng = np.random.default_rng(3)
    for guess in (np.zeros((40, 7)), np.ones((40, 7)), rng.integers(0, 2, size=(40, 7)).astype(float)):
        rows, flags = pivoting(gram, cross, start=guess)
        assert not flags.any()
        np.testing.assert_allclose(rows, expected, atol=1e-11)


@pytest.mark.parametrize("exponent", [-600, 600])
def test_the_unit_of_the_data_does_not_change_the_answer(pivoting, exponent):
    rng = np.random.default_rng(0)
    points = rng.random((4, 6))
    gram, cross = points @ points.T, rng.random((20, 6)) @ points.T
    unit = 2.0**exponent
    expected, scaled = (pivoting(gram * u, cross * u, start=None)[0] for u in (1.0, unit))
    np.testing.assert_allclose(scaled, expected, atol=1e-12)


def test_corners_and_middles_come_out_exactly(pivoting):
    rng = np.random.default_rng(1)
    points = rng.random((6, 9))
    truth = np.vstack([np.eye(6), 0.5 * (np.eye(6) + np.roll(np.eye(6), 1, axis=1))])
    rows, flags = pivoting(points @ points.T, truth @ points @ points.T)
    assert not flags.any()
    np.testing.assert_allclose(rows, truth, atol=1e-10)
    np.testing.assert_array_equal(rows.sum(axis=1).round(14), 1.0)


def test_float32_rows_stay_float32(pivoting):
    gram, cross = problem(8)
    cross = cross.astype(np.float32)
    rows, flags = pivoting(gram, cross)
    assert rows.dtype == np.float32
    assert not flags.any()
    assert simplex_kkt(rows.astype(float), gram, cross.astype(float)) < 1e-6


def test_rows_that_need_more_exchanges_than_allowed_are_flagged(pivoting):
    gram, cross = problem(8, noise=5.0)
    start = np.full((40, 8), 1 / 8)
    rows, flags = pivoting(gram, cross, start=start, max_pivots=1)
    assert flags.any()
    np.testing.assert_array_equal(rows[flags], start[flags])
    some, none = pivoting(gram, cross, max_pivots=60)
    assert not none.any()
    assert simplex_kkt(some, gram, cross) < 1e-11


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("k", "n_rows"), [(1, 7), (4, 0), (9, 33), (30, 3000)])
def test_threads_change_nothing(k, n_rows, dtype):
    gram, cross = problem(k, n_rows=n_rows)
    cross = np.asfortranarray(cross, dtype=dtype)
    with threads(1):
        one, _ = simplex.simplex_pivoting(gram, cross)
    with threads(3):
        three, flags = simplex.simplex_pivoting(gram, cross)
    np.testing.assert_array_equal(one, three)
    assert one.shape == cross.shape
    assert one.dtype == dtype
    assert not flags.any()


def test_nan_stays_in_its_row(pivoting):
    gram, cross = problem(5)
    expected, _ = pivoting(gram, cross, start=np.ones((40, 5)))
    cross[3, 1] = np.nan
    rows, flags = pivoting(gram, cross, start=np.ones((40, 5)))
    assert flags[3] or np.isnan(rows[3]).any()
    np.testing.assert_allclose(np.delete(rows, 3, axis=0), np.delete(expected, 3, axis=0), atol=1e-12)


def test_the_input_is_not_changed(pivoting):
    gram, cross = problem(5)
    start = np.full((40, 5), 0.2)
    before = gram.copy(), cross.copy(), start.copy()
    pivoting(gram, cross, start=start)
    for now, then in zip((gram, cross, start), before, strict=True):
        np.testing.assert_array_equal(now, then)
