"""Coordinate descent on rows: the compiled and the portable version against a loop in Python."""

from __future__ import annotations

import numpy as np
import pytest
from tests.references.least_squares import coordinate_passes

from nonneg.kernels.grams import SharedGram
from nonneg.kernels.hals import hals_passes


def problem(n_rows, k, dtype=np.float64, seed=0):
    """Rows with zeros in the start and slopes of both signs."""
    rng = np.random.default_rng(seed)
    Ht = rng.gamma(1.0, size=(4 * k, k)).astype(dtype)
    cross = (rng.normal(size=(n_rows, k)) * 4 * k).astype(dtype)
    factor = np.where(rng.random((n_rows, k)) < 0.4, 0, rng.random((n_rows, k))).astype(dtype)
    return factor, Ht.T @ Ht, cross


def run(xp, factor, gram, cross, **options):
    as_xp = [array if xp.__name__.endswith("numpy") else xp.asarray(array) for array in (factor, gram, cross)]
    rows, violation = hals_passes(as_xp[0], SharedGram(as_xp[1]), as_xp[2], **options)
    return np.asarray(rows), float(violation)


@pytest.mark.parametrize(("n_rows", "k"), [(0, 3), (1, 1), (5, 3), (128, 4), (131, 6), (300, 33)])
@pytest.mark.parametrize(("passes", "shrink"), [(1, 0.0), (3, 0.0), (40, 0.1)])
def test_every_version_does_what_the_loop_does(xp, n_rows, k, passes, shrink):
    factor, gram, cross = problem(n_rows, k)
    rows, violation = run(xp, factor, gram, cross, max_passes=passes, shrink=shrink)
    expected, expected_violation = coordinate_passes(factor, [gram] * n_rows, cross, range(k), passes, shrink)
    np.testing.assert_allclose(rows, expected, rtol=1e-10, atol=1e-11)
    assert violation == pytest.approx(expected_violation, rel=1e-12)


def test_float32_rows_stay_float32_and_agree_with_float64(xp):
    factor, gram, cross = problem(140, 5)
    rows, violation = run(xp, *(a.astype(np.float32) for a in (factor, gram, cross)), max_passes=2)
    expected, expected_violation = coordinate_passes(factor, [gram] * 140, cross, range(5), 2, 0.0)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, expected, rtol=1e-4, atol=1e-4)
    assert violation == pytest.approx(expected_violation, rel=1e-5)


@pytest.mark.parametrize("order", [[2], [3, 1], [4, 3, 2, 1, 0], []])
def test_only_the_components_of_the_order_change_and_in_that_order(xp, order):
    factor, gram, cross = problem(20, 5)
    rows, violation = run(xp, factor, gram, cross, order=order, max_passes=2)
    expected, expected_violation = coordinate_passes(factor, [gram] * 20, cross, order, 2, 0.0)
    np.testing.assert_allclose(rows, expected, rtol=1e-11, atol=1e-12)
    untouched = [a for a in range(5) if a not in order]
    np.testing.assert_array_equal(rows[:, untouched], factor[:, untouched])
    assert violation == pytest.approx(expected_violation, rel=1e-12, abs=0)


def test_a_component_without_curvature_stays_and_counts_nothing(xp):
    factor, gram, cross = problem(10, 4)
    gram[2, :] = gram[:, 2] = 0.0
    rows, violation = run(xp, factor, gram, cross, max_passes=3)
    expected, expected_violation = coordinate_passes(factor, [gram] * 10, cross, range(4), 3, 0.0)
    np.testing.assert_array_equal(rows[:, 2], factor[:, 2])
    np.testing.assert_allclose(rows, expected, rtol=1e-11, atol=1e-12)
    assert violation == pytest.approx(expected_violation)


def test_the_violation_is_zero_at_an_optimum(xp):
    factor, gram, cross = problem(6, 3)
    optimum, _ = run(xp, factor, gram, cross, max_passes=2000, shrink=1e-13)
    _, violation = run(xp, optimum, gram, cross)
    assert violation <= 1e-10 * np.abs(cross).sum()


def test_the_start_is_not_changed(xp):
    factor, gram, cross = problem(9, 3)
    as_xp = xp.asarray(factor.copy())
    hals_passes(as_xp, SharedGram(xp.asarray(gram)), xp.asarray(cross))
    np.testing.assert_array_equal(np.asarray(as_xp), factor)


def test_a_row_does_not_depend_on_its_neighbors():
    factor, gram, cross = problem(400, 7)
    options = {"max_passes": 30, "shrink": 0.1}
    whole, _ = hals_passes(factor, SharedGram(gram), cross, **options)
    shuffled = np.random.default_rng(1).permutation(400)
    moved, _ = hals_passes(factor[shuffled], SharedGram(gram), cross[shuffled], **options)
    alone, _ = hals_passes(factor[37:38], SharedGram(gram), cross[37:38], **options)
    np.testing.assert_allclose(moved, whole[shuffled], rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(alone, whole[37:38], rtol=1e-13, atol=1e-14)


def test_nan_is_not_hidden(xp):
    factor, gram, cross = problem(4, 3)
    cross[1, 1] = np.nan
    rows, violation = run(xp, factor, gram, cross, max_passes=2)
    assert np.isnan(violation) or np.isnan(rows[1]).any()
    assert np.isfinite(rows[[0, 2, 3]]).all()
