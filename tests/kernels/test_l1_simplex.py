"""Left inverses of least infinity norm: both versions against HiGHS, from cold and from warm supports."""

from __future__ import annotations

import numpy as np
import pytest
from tests.references.purification import smallest_infinity_norm

from nonneg.kernels.l1_simplex import MOVED, first_supports, least_l1_rows
from nonneg.kernels.l1_simplex.array_api import l1_rows


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
    found = least_l1_rows(A)
    assert found.n_steps.min() >= 0
    norms = np.abs(found.rows).sum(axis=1)
    np.testing.assert_allclose(norms, np.abs(smallest_infinity_norm(A)).sum(axis=1), rtol=1e-7)
    np.testing.assert_allclose(found.rows @ A, np.eye(n), atol=1e-10)
    # The dual solution is feasible, and its value is the norm: no row can be shorter.
    assert np.abs(A @ found.dual.T).max() <= 1 + 1e-8
    np.testing.assert_allclose(np.diagonal(found.dual), norms, rtol=1e-7)


def test_twins_agree():
    A = normal(np.random.default_rng(3), 40, 8)
    compiled = least_l1_rows(A)
    supports = first_supports(A)
    rows, dual, steps = np.zeros((8, 40)), np.zeros((8, 8)), np.zeros(8, dtype=int)
    targets = np.eye(8) + MOVED * np.random.default_rng(0).uniform(0.5, 1.0, (8, 8))
    l1_rows(A, targets, supports, rows, dual, steps, 1e-9, 1000, 0, 8)
    np.testing.assert_allclose(compiled.rows, rows, atol=1e-12)
    np.testing.assert_allclose(compiled.dual, dual, atol=1e-10)
    np.testing.assert_array_equal(compiled.n_steps, steps)


def test_a_warm_start_needs_few_exchanges_and_changes_no_answer():
    rng = np.random.default_rng(0)
    A = normal(rng, 200, 20)
    cold = least_l1_rows(A)
    near = A + 0.001 * rng.normal(size=A.shape)
    before = cold.supports.copy()
    warm = least_l1_rows(near, cold.supports)
    np.testing.assert_array_equal(cold.supports, before)
    np.testing.assert_allclose(warm.rows, least_l1_rows(near).rows, atol=1e-10)
    assert warm.n_steps.sum() < 0.05 * cold.n_steps.sum()
    assert least_l1_rows(A, cold.supports).n_steps.sum() == 0


def test_it_gives_up_where_it_is_told_to():
    A = normal(np.random.default_rng(0), 60, 12)
    assert least_l1_rows(A, max_steps=2).n_steps.min() == -1
