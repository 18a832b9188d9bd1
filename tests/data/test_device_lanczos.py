"""Block Lanczos on a GPU against the eigenvalues of the whole matrix; other tensors serve as well."""

from __future__ import annotations

import numpy as np
import pytest

from nonneg.data import as_data_matrix, spectral
from nonneg.data import device_lanczos as module
from nonneg.data.device_lanczos import device_lanczos

pytestmark = pytest.mark.torch


def spectrum(X, k):
    values, V = np.linalg.eigh(X.T @ X)
    return values[::-1][:k], V[:, ::-1][:, :k]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("decay", [0.8, 0.99])
def test_values_and_vectors(decay, dtype, torch):
    rng = np.random.default_rng(0)
    k, X = 5, rng.random((120, 80)) * decay ** np.arange(80)
    data = as_data_matrix(torch.asarray(X.astype(dtype)))
    tol = 1e-9 if dtype == np.float64 else 1e-5
    found = device_lanczos(data, k, np.random.default_rng(1), tol=tol, max_passes=300)
    assert found is not None
    values, V = spectrum(X, k)
    np.testing.assert_allclose(found[0], values, rtol=10 * tol)
    np.testing.assert_allclose(np.abs(np.sum(found[1] * V, axis=0)), 1.0, atol=1e-6)
    np.testing.assert_allclose(found[1].T @ found[1], np.eye(k), atol=1e-6)


def test_weights_count_rows(torch):
    rng = np.random.default_rng(0)
    X, weights = rng.random((60, 70)), rng.integers(1, 4, 60)
    data = as_data_matrix(torch.asarray(X), weights=weights.astype(float))
    found = device_lanczos(data, 4, np.random.default_rng(1), tol=1e-9, max_passes=300)
    assert found is not None
    np.testing.assert_allclose(found[0], spectrum(np.repeat(X, weights, axis=0), 4)[0], rtol=1e-8)


@pytest.mark.parametrize("case", ["low rank", "repeated", "too few columns"])
def test_what_it_cannot_do_is_left_to_the_other_version(case, torch):
    rng = np.random.default_rng(0)
    X = np.eye(90)
    if case == "low rank":
        X = rng.random((90, 2)) @ rng.random((2, 90))
    elif case == "too few columns":
        X = rng.random((90, 40))
    data = as_data_matrix(torch.asarray(X))
    assert device_lanczos(data, 4, np.random.default_rng(1), tol=1e-9, max_passes=300) is None


@pytest.mark.parametrize(("repeated", "left"), [(7, False), (8, True), (9, True)])
def test_as_many_equal_values_as_a_block_is_wide_are_left_to_the_other_version(repeated, left, torch):
    rng = np.random.default_rng(0)
    sizes = np.concatenate([np.full(repeated, 2.0), 0.8 ** np.arange(1, 121 - repeated)])
    Q = np.linalg.qr(rng.standard_normal((120, 120)))[0]
    data = as_data_matrix(torch.asarray(Q * sizes @ Q.T))
    found = device_lanczos(data, 10, np.random.default_rng(1), tol=1e-9, max_passes=300)
    assert (found is None) is left
    if found is not None:
        np.testing.assert_allclose(found[0], np.sort(sizes**2)[::-1][:10], rtol=1e-7)


@pytest.mark.parametrize("gives_up", [False, True])
def test_data_on_a_gpu_stay_there_unless_it_gives_up(gives_up, torch, monkeypatch):
    X = np.random.default_rng(0).random((120, 80)) * 0.8 ** np.arange(80)
    called = []

    def lanczos(*args, **options):
        called.append(args)
        return None if gives_up else device_lanczos(*args, **options)

    monkeypatch.setattr(spectral, "on_gpu", lambda array: True)
    monkeypatch.setattr(spectral, "device_lanczos", lanczos)
    if not gives_up:
        monkeypatch.setattr(spectral, "dense_eigenpairs", None)  # nothing else is asked
    values, V = spectral.leading_eigenpairs(as_data_matrix(torch.asarray(X)), 4, rng=0)
    assert len(called) == 1
    expected = spectrum(X, 4)
    np.testing.assert_allclose(values, expected[0], rtol=1e-8)
    np.testing.assert_allclose(np.abs(np.sum(V * expected[1], axis=0)), 1.0, atol=1e-6)


@pytest.mark.parametrize("max_passes", [1, 2, 3, 5])
def test_a_search_that_is_not_finished_is_left_to_the_other_version(max_passes, torch):
    X = np.random.default_rng(0).random((120, 80))
    data = as_data_matrix(torch.asarray(X))
    options = {"tol": 1e-9, "max_passes": max_passes}
    assert device_lanczos(data, 5, np.random.default_rng(1), **options) is None


def test_it_begins_from_the_given_generator_and_restarts(torch, monkeypatch):
    # A slow decay: the basis of 3 (k + 8) vectors fills up several times.
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((300, 300)))[0]
    sizes = 1.0 / np.sqrt(1.0 + np.arange(300.0))
    data, widths = as_data_matrix(torch.asarray(Q * sizes @ Q.T)), []
    product = module.gram_product
    monkeypatch.setattr(module, "gram_product", lambda data, V: widths.append(V.shape[1]) or product(data, V))
    found = device_lanczos(data, 20, np.random.default_rng(1), tol=1e-10, max_passes=300)
    assert set(widths) == {10}  # half of k, and at least 8
    assert len(widths) > 3 * (20 + 10) // 10
    np.testing.assert_allclose(found[0], sizes[:20] ** 2, rtol=1e-8)
    np.testing.assert_allclose(found[1].T @ found[1], np.eye(20), atol=1e-8)
    again = device_lanczos(data, 20, np.random.default_rng(1), tol=1e-10, max_passes=300)
    np.testing.assert_array_equal(again[1], found[1])


@pytest.mark.parametrize(("n_columns", "fits"), [(44, True), (43, False)])
def test_the_basis_and_one_more_block_have_room(n_columns, fits, torch):
    """Three times k + 8 vectors and 8 more."""
    X = np.random.default_rng(0).random((60, n_columns)) * 0.8 ** np.arange(n_columns)
    found = device_lanczos(
        as_data_matrix(torch.asarray(X)), 4, np.random.default_rng(1), tol=1e-8, max_passes=99
    )
    assert (found is not None) == fits
    if fits:
        np.testing.assert_allclose(found[0], spectrum(X, 4)[0], rtol=1e-7)


def test_too_large_a_basis_is_left_to_the_other_version(torch, monkeypatch):
    X = np.random.default_rng(0).random((60, 100)) * 0.8 ** np.arange(100)
    data = as_data_matrix(torch.asarray(X))
    for entries, fits in ((100 * 36, True), (100 * 36 - 1, False)):
        monkeypatch.setattr(module, "MOST_ENTRIES", entries)
        found = device_lanczos(data, 4, np.random.default_rng(1), tol=1e-8, max_passes=99)
        assert (found is not None) == fits


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_the_scale_of_the_data_does_not_matter(scale, torch):
    X = np.random.default_rng(0).random((120, 80)) * 0.8 ** np.arange(80)
    found = device_lanczos(
        as_data_matrix(torch.asarray(scale * X)), 5, np.random.default_rng(1), tol=1e-9, max_passes=300
    )
    assert found is not None
    np.testing.assert_allclose(found[0], scale**2 * spectrum(X, 5)[0], rtol=1e-8)
