"""Contract of every initialization: run on each container, keep the type, modify nothing."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from nonneg.data import as_data_matrix
from nonneg.exceptions import UnknownNameError
from nonneg.initializers.registry import INITS, Initializer, default_init

CONTAINERS = {
    "fortran": np.asfortranarray,
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "torch": lambda X: pytest.importorskip("torch").asarray(X),
    "array_api_strict": lambda X: pytest.importorskip("array_api_strict").asarray(X),
    "dask": lambda X: pytest.importorskip("dask.array").from_array(X, chunks=(17, -1)),
}
K = 4


def run(name, X, *, rng=0, **container):
    """Run an initialization on X and return both factors as NumPy arrays."""
    initializer = INITS[name]
    given_factors = (
        {"H": np.random.default_rng(1).random((K, X.shape[1]))} if initializer.takes_factors else {}
    )
    factors = initializer(as_data_matrix(X, **container), K, rng=rng, **given_factors)
    return tuple(np.asarray(a.compute() if hasattr(a, "compute") else a) for a in factors)


@pytest.fixture
def matrix(rng):
    """Low rank, half of it zeros, with a row of zeros and a column of zeros."""
    X = rng.gamma(1.0, size=(60, 4)) @ rng.gamma(1.0, size=(4, 30))
    X[rng.random(X.shape) < 0.5] = 0.0
    X[7] = 0.0
    X[:, 5] = 0.0
    return X


@pytest.mark.parametrize("name", INITS)
def test_factors_are_nonnegative_and_have_the_shapes(name, matrix):
    W, Ht = run(name, matrix)
    assert W.shape == (60, K)
    assert Ht.shape == (30, K)
    for factor in (W, Ht):
        assert factor.flags.c_contiguous
        assert np.isfinite(factor).all()
        assert (factor >= 0).all()
    if name in ("random", "nndsvd-scaled", "nndsvda", "nndsvdar"):
        assert (np.delete(W, 7, axis=0) > 0).all()
        assert (np.delete(Ht, 5, axis=0) > 0).all()


@pytest.mark.covering(1)
@pytest.mark.parametrize("name", INITS)
@pytest.mark.parametrize("container", CONTAINERS)
def test_every_container_gives_the_dense_initialization(name, container, matrix):
    W, Ht = run(name, matrix)
    other_W, other_B = run(name, CONTAINERS[container](matrix))
    np.testing.assert_allclose(other_W, W, atol=1e-9)
    np.testing.assert_allclose(other_B, Ht, atol=1e-9)


@pytest.mark.parametrize("name", INITS)
def test_factors_stay_where_the_data_are(name, matrix, torch):
    options = {"H": np.ones((K, 30))} if INITS[name].takes_factors else {}
    for factor in INITS[name](as_data_matrix(torch.asarray(matrix)), K, rng=0, **options):
        assert isinstance(factor, torch.Tensor)


@pytest.mark.parametrize("name", INITS)
def test_rows_may_be_permuted(name, matrix, rng):
    order = rng.permutation(60)
    W, Ht = run(name, matrix)
    permuted_W, permuted_B = run(name, matrix[order])
    np.testing.assert_allclose(permuted_W, W[order], atol=1e-9)
    np.testing.assert_allclose(permuted_B, Ht, atol=1e-9)


@pytest.mark.covering(1)
@pytest.mark.parametrize("name", INITS)
@pytest.mark.parametrize("container", [None, "csr", "torch", "dask"])
def test_integer_weights_equal_repetition(name, container, matrix, rng):
    weights = rng.integers(1, 4, size=60)
    order = rng.permutation(int(weights.sum()))
    X = matrix if container is None else CONTAINERS[container](matrix)
    W, Ht = run(name, X, weights=weights.astype(float))
    repeated_W, repeated_B = run(name, np.repeat(matrix, weights, axis=0)[order])
    np.testing.assert_allclose(repeated_W, np.repeat(W, weights, axis=0)[order], atol=1e-9)
    np.testing.assert_allclose(repeated_B, Ht, atol=1e-9)


@pytest.mark.parametrize("name", INITS)
def test_float32_is_kept(name, matrix):
    W, Ht = run(name, matrix)
    small_W, small_B = run(name, matrix.astype(np.float32))
    assert small_W.dtype == small_B.dtype == np.float32
    # The random numbers of a row are a steep function of it: a hundred times its rounding.
    np.testing.assert_allclose(small_W, W, atol=5e-3)
    np.testing.assert_allclose(small_B, Ht, atol=1e-4)


@pytest.mark.parametrize("name", INITS)
def test_seeds_matter_where_the_registry_says_so(name, matrix):
    first, again, other = run(name, matrix, rng=0), run(name, matrix, rng=0), run(name, matrix, rng=1)
    np.testing.assert_array_equal(first[0], again[0])
    np.testing.assert_array_equal(first[1], again[1])
    assert np.array_equal(first[0], other[0]) != INITS[name].seeded


@pytest.mark.parametrize("name", INITS)
def test_data_are_not_changed(name, matrix):
    before = matrix.copy()
    matrix.flags.writeable = False
    run(name, matrix)
    np.testing.assert_array_equal(matrix, before)


@pytest.mark.parametrize("name", INITS)
def test_a_matrix_of_zeros_has_an_initialization(name):
    W, Ht = run(name, np.zeros((6, 5)))
    assert np.isfinite(W).all()
    assert np.isfinite(Ht).all()


@pytest.mark.parametrize("name", INITS)
def test_missing_entries_are_allowed(name, matrix, rng):
    mask = rng.random(matrix.shape) < 0.8
    holed = np.where(mask, matrix, np.nan)
    W, Ht = run(name, holed, mask=mask)
    assert np.isfinite(W).all()
    assert np.isfinite(Ht).all()


# Not where zeros are filled with the mean: scikit-learn's rule does not scale like a factor.
@pytest.mark.parametrize("name", [name for name in INITS if name not in ("nndsvda", "nndsvdar")])
@given(power=st.integers(-8, 8))
@settings(max_examples=8, deadline=None)
def test_initializations_scale_with_the_data(name, power):
    X = np.random.default_rng(3).gamma(1.0, size=(12, 9))
    W, Ht = run(name, X)
    scaled_W, scaled_B = run(name, X * 4.0**power)
    model, scaled = W @ Ht.T, scaled_W @ scaled_B.T
    np.testing.assert_allclose(scaled, model * 4.0**power, rtol=1e-6, atol=1e-8 * 4.0**power)


def test_unknown_names_say_the_near_ones():
    with pytest.raises(UnknownNameError, match=r"init='nndsvb' is not known.*Did you mean 'nndsvd"):
        INITS.find("nndsvb")
    with pytest.raises(UnknownNameError, match="init=3 is not known"):
        INITS.find(3)


def test_an_initialization_can_be_registered():
    mine = Initializer(lambda data, k, *, rng=None: (data, k), "for this test")
    with patch.dict(INITS, {"mine": mine}):
        assert INITS.find("mine") is mine
        assert INITS.find("mine")("data", 3) == ("data", 3)
    assert "mine" not in INITS


def test_the_default_is_an_svd_where_there_is_one():
    assert default_init((10, 6), 6) == "nndsvd-scaled"
    assert default_init((10, 6), 7) == "random"
