"""What the fronts of the kernels hand on where nothing else is said, and to whom."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.kernels import beta_products, block_pivoting, dominating_diagonal, hals, l1_simplex, simplex
from nonneg.kernels.beta_products import kl_coordinate
from nonneg.kernels.block_pivoting import native
from nonneg.kernels.grams import DenseGrams, SharedGram


class Noted:
    """In place of a function: notes what it was given and returns what it is told to."""

    def __init__(self, answer=None):
        self.answer, self.given = answer, None

    def __call__(self, *given, **named):
        self.given = given, named
        return self.answer


@pytest.fixture
def noted(monkeypatch):
    def replace(module, name, answer=None):
        found = Noted(answer)
        monkeypatch.setattr(module, name, found)
        return found

    return replace


def test_coordinate_descent_makes_one_sweep_in_one_round(noted):
    found = noted(kl_coordinate, "kl_passes", "rows")
    assert beta_products.kl_passes("csr", "factor", "other", "sums") == "rows"
    order, l1, l2, max_rounds, max_sweeps, shrink, tol, unit = found.given[0][4:]
    assert found.given[0][:4] == ("csr", "factor", "other", "sums")
    assert (order, l1, l2, max_rounds, max_sweeps, shrink, tol, unit) == (None, 0.0, 0.0, 1, 1, 0.0, 0.0, 1.0)


def test_one_pass_over_all_components(noted):
    # Integers are left to the array code.
    found = noted(hals.array_api, "hals_passes", "rows")
    factor = np.zeros((2, 3), dtype=int)
    assert hals.hals_passes(factor, SharedGram(np.eye(3)), factor) == "rows"
    _, _, _, order, max_passes, shrink = found.given[0]
    assert (order.tolist(), max_passes, shrink) == ([0, 1, 2], 1, 0.0)


@pytest.mark.parametrize(("given", "limit"), [({}, 20 + 5 * 3), ({"max_pivots": 4}, 4)])
def test_exchanges_that_rows_may_take(given, limit, noted, monkeypatch):
    answer = np.zeros((2, 3)), np.zeros(2, dtype=bool)
    found = noted(native, "block_pivoting", answer)
    block_pivoting.block_pivoting(np.zeros((2, 3)), SharedGram(np.eye(3)), np.zeros((2, 3)), **given)
    assert found.given[0][3] == limit
    monkeypatch.setattr("nonneg.kernels.simplex.numba.SMALL_SIMPLEX", 10**9)
    found = noted(simplex.array_api, "simplex_pivoting", answer)
    simplex.simplex_pivoting(np.eye(3), np.zeros((2, 3)), **given)
    assert found.given[0][0] is None
    assert found.given[0][3] == limit


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(("few", "again"), [(0, False), (8, False), (9, True)])
def test_few_rows_that_failed_are_tried_in_array_code(shared, few, again, noted, monkeypatch):
    monkeypatch.setattr(block_pivoting, "FEW_ENTRIES", few)
    noted(native, "block_pivoting", (np.zeros((2, 3)), np.array([False, True])))
    tried = noted(block_pivoting.array_api, "block_pivoting", (np.full((1, 3), 7.0), np.array([False])))
    matrices = np.stack([np.eye(3), 2 * np.eye(3)])
    gram = SharedGram(np.eye(3)) if shared else DenseGrams(matrices)
    factor, cross = np.arange(6.0).reshape(2, 3), np.arange(6.0, 12.0).reshape(2, 3)
    rows, unsolved = block_pivoting.block_pivoting(factor, gram, cross)
    assert unsolved.tolist() == [False, not again]
    np.testing.assert_array_equal(rows[1], 7.0 if again else 0.0)
    np.testing.assert_array_equal(rows[0], 0.0)
    if again:
        start, own, targets, _ = tried.given[0]
        np.testing.assert_array_equal(start, factor[1:])
        np.testing.assert_array_equal(targets, cross[1:])
        assert own is gram if shared else np.array_equal(own.matrices, matrices[1:])


def test_which_simplices_are_compiled(monkeypatch):
    from nonneg.kernels.simplex import numba

    monkeypatch.setattr(numba, "SMALL_SIMPLEX", 40)
    assert numba.is_supported(np.zeros((11, 2)))
    assert not numba.is_supported(np.zeros((10, 2)))
    assert not numba.is_supported([[0.0] * 99])


@pytest.mark.parametrize(("given", "limit"), [({}, 50 * 2), ({"max_pivots": 3}, 3)])
def test_pivots_that_a_row_of_an_inverse_may_take(given, limit, noted, rng):
    from nonneg.kernels.l1_simplex import numba

    found = noted(numba, "l1_rows")
    l1_simplex.minimum_l1_rows(rng.random((5, 2)), **given)
    assert found.given[0][6:8] == (1e-9, limit)
    targets = found.given[0][1]
    assert (np.abs(targets - np.eye(2)) <= l1_simplex.PERTURBATION).all()


def test_a_diagonal_that_dominates_already_stays(rng):
    C = 0.1 * rng.random((4, 4)) + 0.5 * np.eye(4)
    np.testing.assert_allclose(dominating_diagonal.dominating_diagonal(C, np.ones(4)), C)
