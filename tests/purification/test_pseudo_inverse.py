"""The pseudo-inverses and their choice."""

from __future__ import annotations

import numpy as np
import pytest
from tests.references.purification import smallest_infinity_norm

from nonneg.kernels.l1_simplex import minimum_l1_rows
from nonneg.purification import pseudo_inverse as module
from nonneg.purification.pseudo_inverse import dependent_feature, pseudo_inverse


@pytest.fixture(scope="module")
def features():
    # Of very different sizes: the answer must not depend on that.
    rng = np.random.default_rng(0)
    return rng.random((8, 40)) * 10.0 ** rng.integers(-3, 4, size=(8, 1))


def test_moore_penrose(features):
    found = pseudo_inverse(features)
    np.testing.assert_allclose(found.inverse, np.linalg.pinv(features.T), rtol=1e-9)
    assert found.bases is None


@pytest.mark.parametrize("method", ["min-infinity"])
def test_least_infinity_norm(features, method):
    found = pseudo_inverse(features, method)
    np.testing.assert_allclose(found.inverse @ features.T, np.eye(8), atol=1e-6)
    plain = smallest_infinity_norm(features.T)
    norms = np.abs(found.inverse).sum(axis=1)
    np.testing.assert_allclose(norms, np.abs(plain).sum(axis=1), rtol=1e-5)
    assert (
        np.abs(found.inverse).sum(axis=1).max() < np.abs(pseudo_inverse(features).inverse).sum(axis=1).max()
    )
    warm = pseudo_inverse(1.001 * features, method, found.bases)
    np.testing.assert_allclose(1.001 * warm.inverse, found.inverse, rtol=1e-6, atol=1e-8)
    assert warm.n_pivots == 0


def test_highs_takes_over_where_the_simplex_method_gives_up(features, monkeypatch):
    monkeypatch.setattr(module, "minimum_l1_rows", lambda A, bases: minimum_l1_rows(A, bases, max_pivots=1))
    found = pseudo_inverse(features, "min-infinity")
    expected = np.abs(smallest_infinity_norm(features.T)).sum(axis=1)
    np.testing.assert_allclose(np.abs(found.inverse).sum(axis=1), expected, rtol=1e-5)


def test_dependent_features_are_found(features):
    assert dependent_feature(features) is None
    assert dependent_feature(np.vstack([features[:4], features[:4].sum(axis=0)])) is not None


def test_a_row_whose_dual_solution_proves_nothing_is_computed_again(features, monkeypatch):
    """A solution of 1.5 times the least norm, of which no dual one is proof."""
    exact = minimum_l1_rows(features.T / features.sum(axis=1))
    nulls = np.linalg.svd(features)[2][-1]
    worse = exact.rows + 0.5 * np.abs(exact.rows).sum(axis=1)[:, None] * nulls / np.abs(nulls).sum()
    monkeypatch.setattr(module, "minimum_l1_rows", lambda A, bases: exact._replace(rows=worse.copy()))
    found = pseudo_inverse(features, "min-infinity")
    expected = np.abs(smallest_infinity_norm(features.T)).sum(axis=1)
    np.testing.assert_allclose(np.abs(found.inverse).sum(axis=1), expected, rtol=1e-5)


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1], [1, 2, 0], [0, 2, 1]])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_feature_that_depends_most_on_the_others_is_named(order, sign):
    """The sum of two has the largest share in the dependence of all three."""
    H = np.array([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [1.0, 1.0, 0.0]])
    H[2] *= sign
    assert dependent_feature(H[order]) == order.index(2)
