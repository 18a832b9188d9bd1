"""Dask arrays: chunks of any kind, on dask's own threads and on a cluster."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg import NMF, factorize
from nonneg._arrays import to_numpy
from nonneg.data import as_data_matrix
from nonneg.data.door import wrap
from nonneg.exceptions import NegativeDataError, NonFiniteDataError, ShapeError

da = pytest.importorskip("dask.array")


@pytest.fixture
def X():
    return np.random.default_rng(0).gamma(1.0, size=(30, 8))


def unknown_chunks(X, keep):
    """A dask array whose row chunks are not known, made of the kept rows of X."""
    array = da.from_array(X, chunks=(10, 8))
    return array[da.from_array(keep, chunks=10)]


def test_unknown_chunk_sizes_are_found_and_the_input_keeps_its_own(X):
    keep = np.arange(30) % 3 > 0
    array = unknown_chunks(X, keep)
    data = wrap(array)
    assert data.shape == (20, 8)
    assert data.total() == pytest.approx(X[keep].sum())
    assert np.isnan(array.shape[0])


def test_unknown_chunk_sizes_go_with_weights_and_a_mask(X):
    keep = np.arange(30) % 3 > 0
    mask = np.random.default_rng(1).random((20, 8)) < 0.8
    weights = np.arange(1.0, 21.0)
    result = factorize(unknown_chunks(X, keep), 2, sample_weight=weights, mask=mask, max_iter=5)
    expected = factorize(X[keep], 2, sample_weight=weights, mask=mask, max_iter=5)
    np.testing.assert_allclose(result.H, expected.H, rtol=1e-8)


def test_chunks_without_rows_are_harmless(X):
    keep = np.arange(30) // 10 != 1
    result = factorize(unknown_chunks(X, keep), 2, max_iter=5)
    np.testing.assert_allclose(result.H, factorize(X[keep], 2, max_iter=5).H, rtol=1e-8)


def test_float32_and_integers(X):
    assert as_data_matrix(da.from_array(X.astype(np.float32), chunks=(7, 3))).dtype == np.float32
    counts = np.arange(24).reshape(6, 4)
    data = as_data_matrix(da.from_array(counts, chunks=(2, 2)))
    assert data.dtype == np.float64
    assert data.total() == counts.sum()


@pytest.mark.parametrize("chunks", [(30, 8), (7, 8), ((1, 1, 28), 8), ((3, 20, 7), (5, 3))])
def test_results_do_not_depend_on_the_chunks(X, chunks):
    result = factorize(da.from_array(X, chunks=chunks), 3, max_iter=20, tol=0)
    expected = factorize(X, 3, max_iter=20, tol=0, solver=result.solver)
    np.testing.assert_allclose(result.W.compute(), expected.W, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(result.H, expected.H, rtol=1e-8, atol=1e-8)
    assert result.loss == pytest.approx(expected.loss, rel=1e-8)


def test_the_left_factor_stays_lazy_in_the_chunks_of_the_data(X):
    result = factorize(da.from_array(X, chunks=(7, 8)), 2, max_iter=2)
    assert isinstance(result.W, da.Array)
    assert result.W.chunks == ((7, 7, 7, 7, 2), (2,))
    assert isinstance(result.H, np.ndarray)


def test_a_cluster_gives_what_threads_give(dask_client, X):
    array = da.from_array(X, chunks=(7, 8))
    result = factorize(array, 3, max_iter=10)
    expected = factorize(X, 3, max_iter=10, solver=result.solver)
    np.testing.assert_allclose(result.W.compute(), expected.W, rtol=1e-8, atol=1e-9)
    mask = np.random.default_rng(2).random(X.shape) < 0.8
    masked = factorize(array, 3, mask=mask, sample_weight=np.arange(1.0, 31.0), max_iter=5)
    local = factorize(X, 3, mask=mask, sample_weight=np.arange(1.0, 31.0), max_iter=5)
    np.testing.assert_allclose(masked.W.compute(), local.W, rtol=1e-8, atol=1e-9)


def test_the_cluster_takes_sparse_blocks_and_unknown_sizes(dask_client, X):
    blocks = da.from_array(np.where(X > 1, X, 0), chunks=(7, 8)).map_blocks(sp.csr_array)
    expected = factorize(np.where(X > 1, X, 0), 2, max_iter=5, solver="hals")
    result = factorize(blocks, 2, max_iter=5, solver="hals")
    np.testing.assert_allclose(result.W.compute(), expected.W, rtol=1e-8, atol=1e-9)
    keep = X[:, 0] > 0.2
    assert wrap(unknown_chunks(X, keep)).shape == (keep.sum(), 8)


def test_a_pass_over_the_data_computes_each_chunk_once(X):
    read = []

    def count(block):
        read.append(block.shape)
        return block

    array = da.from_array(X, chunks=(10, 8)).map_blocks(count, meta=np.empty((0, 0)))
    data = as_data_matrix(array)
    left = data.to_sample_array(np.ones((30, 2)))
    read.clear()
    data.transposed_times(left)
    assert len(read) == 3


def test_given_left_factors_may_be_dask_arrays_of_other_chunks(X):
    rng = np.random.default_rng(3)
    W, H = rng.random((30, 2)), rng.random((2, 8))
    given = da.from_array(W, chunks=(4, 1))
    result = factorize(da.from_array(X, chunks=(7, 8)), 2, W=given, H=H, max_iter=5, solver="hals")
    np.testing.assert_allclose(result.H, factorize(X, 2, W=W, H=H, max_iter=5, solver="hals").H, rtol=1e-9)


def test_a_left_factor_in_other_chunks_is_refused(X):
    data = as_data_matrix(da.from_array(X, chunks=(7, 8)))
    with pytest.raises(ShapeError, match="row chunks"):
        data.weighted_gram(da.ones((30, 2), chunks=(10, 2)))


def test_a_wrong_entry_is_named_by_its_place_in_the_whole(X):
    X[17, 5] = -2.0
    with pytest.raises(NegativeDataError, match=r"entry \[17, 5\] is -2"):
        wrap(da.from_array(X, chunks=(7, 8)))
    X[23, 1] = np.inf
    with pytest.raises(NonFiniteDataError, match=r"infinity: entry \[23, 1\]"):
        wrap(da.from_array(X, chunks=(7, 3)))


@pytest.mark.torch
@pytest.mark.parametrize(("solver", "beta_loss"), [("hals", 2), ("anls", 2), ("auto", 1), ("mu", 0)])
def test_tensors_as_chunks(torch, X, solver, beta_loss):
    options = {"beta_loss": beta_loss, "max_iter": 6, "tol": 0, "init": "random", "rng": 0}
    result = factorize(da.from_array(X, chunks=(7, 8)).map_blocks(torch.asarray), 3, solver=solver, **options)
    expected = factorize(X, 3, solver=result.solver, **options)
    np.testing.assert_allclose(result.H, expected.H, rtol=1e-7, atol=1e-9)
    W = result.W.compute()
    assert isinstance(W, torch.Tensor)
    np.testing.assert_allclose(W, expected.W, rtol=1e-7, atol=1e-9)


@pytest.mark.torch
def test_tensors_with_all_that_goes_with_them(torch, X):
    """Other dtypes, weights, missing entries, restarts, a certificate, transform, and wrong entries."""
    chunks = da.from_array(X, chunks=(7, 8))
    model = NMF(2, random_state=0, n_init=2, init="random", max_iter=30, tol=1e-3)
    W = model.fit_transform(chunks.astype(np.float32).map_blocks(torch.asarray), sample_weight=range(1, 31))
    assert W.dtype == torch.float32
    assert model.components_.dtype == np.float32
    local = NMF(2, random_state=0, n_init=2, init="random", max_iter=30, tol=1e-3)
    local.fit(X.astype(np.float32), sample_weight=range(1, 31))
    assert model.reconstruction_err_ == pytest.approx(local.reconstruction_err_, rel=1e-3)
    assert model.certificate_.statements
    counts = np.arange(24).reshape(6, 4)
    data = as_data_matrix(da.from_array(counts, chunks=(2, 4)).map_blocks(torch.asarray))
    assert data.total() == counts.sum()
    np.testing.assert_array_equal(data.take_rows([5, 0]), counts[[5, 0]])
    holes = X.copy()
    holes[3, 2] = np.nan
    tensors = da.from_array(holes, chunks=(7, 8)).map_blocks(torch.asarray)
    options = {"missing": "mask", "max_iter": 5, "tol": 0, "init": "random", "rng": 0}
    np.testing.assert_allclose(
        factorize(tensors, 2, **options).H, factorize(holes, 2, **options).H, rtol=1e-7
    )
    with pytest.raises(NonFiniteDataError, match=r"entry \[3, 2\]"):
        factorize(tensors, 2)


@pytest.mark.torch
@pytest.mark.parametrize("library", ["torch", "cupy"])
@pytest.mark.parametrize("beta_loss", [2, 1])
def test_chunks_on_a_gpu(dask_client, X, library, beta_loss):
    array = pytest.importorskip(library)
    if not (array.cuda.is_available() if library == "torch" else array.is_available()):
        pytest.skip("there is no GPU")
    to_gpu = (lambda rows: array.asarray(rows, device="cuda")) if library == "torch" else array.asarray
    chunks = da.from_array(X, chunks=(7, 8)).map_blocks(to_gpu)
    options = {"beta_loss": beta_loss, "max_iter": 6, "tol": 0, "init": "random", "rng": 0}
    result = factorize(chunks, 3, **options)
    expected = factorize(X, 3, solver=result.solver, **options)
    np.testing.assert_allclose(result.H, expected.H, rtol=1e-6, atol=1e-8)
    W = result.W.compute()
    assert type(W).__module__.partition(".")[0] == library
    assert str(W.device) != "cpu"
    np.testing.assert_allclose(to_numpy(W), expected.W, rtol=1e-6, atol=1e-8)
    model = NMF(2, random_state=0, max_iter=20, tol=1e-2).fit(chunks, sample_weight=np.arange(1.0, 31.0))
    assert to_numpy(model.transform(chunks).compute()).shape == (30, 2)
