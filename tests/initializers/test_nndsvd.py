"""NNDSVD against scikit-learn's, whose singular vectors are accurate on these data."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition._nmf import _initialize_nmf

from nonneg.data import as_data_matrix
from nonneg.exceptions import InvalidParameterError
from nonneg.initializers.registry import INITS


@pytest.fixture
def matrix(rng):
    """Singular values with gaps, so that the randomized ones of scikit-learn are exact."""
    X = (rng.gamma(1.0, size=(60, 6)) * 3.0 ** -np.arange(6)) @ rng.gamma(1.0, size=(6, 40))
    X[:, 3] = 0.0
    return X


@pytest.mark.parametrize("name", ["nndsvd", "nndsvda"])
def test_it_is_scikit_learn_s(name, matrix):
    W, H = _initialize_nmf(matrix, 5, init=name, random_state=0)
    ours, Ht = INITS[name](as_data_matrix(matrix), 5)
    np.testing.assert_allclose(ours, W, atol=1e-6)
    np.testing.assert_allclose(Ht.T, H, atol=1e-6)


def test_wide_data_agree_as_well(rng):
    X = (rng.gamma(1.0, size=(50, 5)) * 3.0 ** -np.arange(5)) @ rng.gamma(1.0, size=(5, 700))
    W, H = _initialize_nmf(X, 5, init="nndsvd", random_state=0)
    ours, Ht = INITS["nndsvd"](as_data_matrix(X), 5)
    np.testing.assert_allclose(ours, W, atol=1e-5)
    np.testing.assert_allclose(Ht.T, H, atol=1e-5)


def test_random_filling_is_small_and_only_in_place_of_zeros(matrix):
    plain_W, plain_B = INITS["nndsvd"](as_data_matrix(matrix), 5)
    W, Ht = INITS["nndsvdar"](as_data_matrix(matrix), 5, rng=0)
    for plain, filled in ((plain_W, W), (plain_B, Ht)):
        np.testing.assert_array_equal(filled[plain > 0], plain[plain > 0])
        filling = filled[plain == 0] / (matrix.mean() / 100)
        assert (filling > 0).all()
        assert 0.6 < filling.mean() < 1.0  # |N(0, 1)| has 0.798
        assert filling.max() < 5


@pytest.mark.parametrize("name", ["nndsvd", "nndsvda", "nndsvdar"])
def test_more_components_than_the_smaller_side_is_refused(name):
    with pytest.raises(InvalidParameterError) as caught:
        INITS[name](as_data_matrix(np.ones((9, 4))), 5)
    # The first sentence is scikit-learn's.
    theirs = f"init = '{name}' can only be used when n_components <= min(n_samples, n_features)"
    assert theirs in str(caught.value)
    assert "Use init='random'" in str(caught.value)


def test_more_components_than_the_rank_has_give_empty_ones(rng):
    X = rng.random((20, 3)) @ rng.random((3, 10))
    W, Ht = INITS["nndsvd"](as_data_matrix(X), 5)
    assert np.abs(W[:, 3:] @ Ht[:, 3:].T).max() < 1e-6 * X.max()
