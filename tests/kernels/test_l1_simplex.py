"""Left inverses of minimum infinity norm against HiGHS, from cold and warm bases."""

from __future__ import annotations

import numpy as np
import pytest
from tests.references.purification import smallest_infinity_norm

from nonneg._compiled import core
from nonneg._threads import threads
from nonneg.kernels.l1_simplex import minimum_l1_rows

pytestmark = pytest.mark.skipif(core() is None, reason="the core was not built")


def sparse(rng, m, n):
    A = rng.random((m, n)) * (rng.random((m, n)) < 0.2)
    A[rng.permutation(m)[:n], np.arange(n)] += 1
    return A


def normal(rng, m, n):
    return rng.normal(size=(m, n))


@pytest.mark.parametrize("make", [sparse, normal])
@pytest.mark.parametrize(("m", "n"), [(1, 1), (5, 5), (30, 6), (60, 12)])
def test_equals_highs_and_proves_it(make, m, n):
    A = make(np.random.default_rng(m), m, n)
    found = minimum_l1_rows(A)
    assert found.n_pivots.min() >= 0
    norms = np.abs(found.rows).sum(axis=1)
    np.testing.assert_allclose(norms, np.abs(smallest_infinity_norm(A)).sum(axis=1), rtol=1e-7)
    np.testing.assert_allclose(found.rows @ A, np.eye(n), atol=1e-10)
    # The dual solution is feasible, and its value is the norm: no row can be shorter.
    assert np.abs(A @ found.dual.T).max() <= 1 + 1e-8
    np.testing.assert_allclose(np.diagonal(found.dual), norms, rtol=1e-7)


def test_a_warm_start_needs_few_pivots_and_gives_the_same_solution():
    rng = np.random.default_rng(0)
    A = normal(rng, 200, 20)
    cold = minimum_l1_rows(A)
    near = A + 0.001 * rng.normal(size=A.shape)
    before = cold.bases.copy()
    warm = minimum_l1_rows(near, cold.bases)
    np.testing.assert_array_equal(cold.bases, before)
    np.testing.assert_allclose(warm.rows, minimum_l1_rows(near).rows, atol=1e-10)
    assert warm.n_pivots.sum() < 0.05 * cold.n_pivots.sum()
    assert minimum_l1_rows(A, cold.bases).n_pivots.sum() == 0


def test_it_gives_up_where_it_is_told_to():
    A = normal(np.random.default_rng(0), 60, 12)
    found = minimum_l1_rows(A, max_pivots=2)
    assert found.n_pivots.min() == -1
    # Feasible whatever the basis is.
    np.testing.assert_allclose(found.rows @ A, np.eye(12), atol=1e-10)


def test_many_pivots_stay_accurate():
    A = normal(np.random.default_rng(5), 150, 40)
    found = minimum_l1_rows(A)
    assert found.n_pivots.max() > 80  # the inverse is computed anew now and then
    assert np.abs(A @ found.dual.T).max() <= 1 + 1e-8
    np.testing.assert_allclose(np.abs(found.rows).sum(axis=1), np.diagonal(found.dual), rtol=1e-7)


def test_threads_change_no_digit():
    A = normal(np.random.default_rng(6), 90, 17)
    results = []
    for n_jobs in (1, 3):
        with threads(n_jobs):
            results.append([part.tobytes() for part in minimum_l1_rows(A)])
    assert results[0] == results[1]
