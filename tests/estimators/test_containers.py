"""The array type of the input is that of the output, and the numbers agree."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from nonneg import NMF

SETTINGS = {"n_components": 4, "max_iter": 20, "tol": 0}


def numbers(array):
    array = array.compute() if hasattr(array, "compute") else array
    return np.asarray(array)


@pytest.fixture
def expected(low_rank):
    model = NMF(**SETTINGS)
    return model.fit_transform(low_rank), model


@pytest.mark.filterwarnings("ignore:Constructing a DIA matrix")
@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("container", ["array", "matrix"])
def test_sparse_formats(kind, container, counts):
    X = getattr(scipy.sparse, f"{kind}_{container}")(counts)
    before = X.toarray()
    model = NMF(**SETTINGS)
    W = model.fit_transform(X)
    dense = NMF(**SETTINGS)
    np.testing.assert_allclose(W, dense.fit_transform(counts.toarray()), rtol=1e-8, atol=1e-10)
    assert model.reconstruction_err_ == pytest.approx(dense.reconstruction_err_, rel=1e-8)
    np.testing.assert_array_equal(X.toarray(), before)
    np.testing.assert_allclose(model.transform(X), W, rtol=1e-9, atol=1e-12)


def test_other_namespaces(xp, low_rank, expected):
    X = xp.asarray(low_rank)
    model = NMF(**SETTINGS)
    W = model.fit_transform(X)
    assert type(W) is type(X) is type(model.components_) is type(model.transform(X))
    np.testing.assert_allclose(numbers(W), expected[0], rtol=1e-8, atol=1e-10)
    assert model.reconstruction_err_ == pytest.approx(expected[1].reconstruction_err_, rel=1e-8)
    assert isinstance(model.reconstruction_err_, float)
    assert type(model.inverse_transform(W)) is type(X)
    np.testing.assert_array_equal(numbers(X), low_rank)
    # Learned on one kind, used on another.
    np.testing.assert_allclose(model.transform(low_rank), expected[0], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(numbers(expected[1].transform(X)), expected[0], rtol=1e-7, atol=1e-9)
    assert type(expected[1].inverse_transform(X[:, :4])) is type(X)


def test_other_namespaces_keep_single_precision_and_count_features(xp, low_rank):
    X = xp.asarray(low_rank.astype(np.float32))
    model = NMF(**SETTINGS).fit(X)
    assert model.components_.dtype == model.transform(X).dtype == X.dtype
    assert model.n_features_in_ == 40
    with pytest.raises(ValueError, match="X has 39 features, but NMF is expecting 40 features as input"):
        model.transform(X[:, :39])
    whole = xp.asarray(np.arange(12).reshape(4, 3))
    assert numbers(NMF(2, max_iter=2, tol=0).fit_transform(whole)).dtype == np.float64


@pytest.mark.torch
def test_tensors_are_detached(torch, low_rank):
    X = torch.tensor(low_rank, requires_grad=True)
    assert not NMF(**SETTINGS).fit_transform(X).requires_grad
    sparse = X.detach().to_sparse().requires_grad_()
    assert not NMF(**SETTINGS).fit_transform(sparse).requires_grad


def test_dask(low_rank, expected):
    da = pytest.importorskip("dask.array")
    X = da.from_array(low_rank, chunks=(17, 13))
    model = NMF(**SETTINGS)
    W = model.fit_transform(X)
    assert isinstance(W, da.Array)
    assert isinstance(model.components_, np.ndarray)
    np.testing.assert_allclose(numbers(W), expected[0], rtol=1e-8, atol=1e-10)
    assert isinstance(model.transform(X), da.Array)
    np.testing.assert_allclose(numbers(model.transform(X)), numbers(W), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        numbers(model.inverse_transform(W)), expected[1].inverse_transform(expected[0]), rtol=1e-7
    )
    assert model.reconstruction_err_ == pytest.approx(expected[1].reconstruction_err_, rel=1e-7)
    assert "eckart-young-bound" in model.certify(X)
    single = NMF(**SETTINGS).fit(X.astype(np.float32))
    assert single.components_.dtype == np.float32
    with pytest.raises(ValueError, match="X has 39 features, but NMF is expecting 40"):
        model.transform(X[:, :39])


def test_dask_penalised_and_weighted(low_rank, rng):
    da = pytest.importorskip("dask.array")
    weights = rng.integers(1, 4, 60)
    settings = SETTINGS | {"alpha_W": 0.01, "l1_ratio": 0.5}
    chunked = NMF(**settings).fit(da.from_array(low_rank, chunks=(25, 40)), sample_weight=weights)
    local = NMF(**settings).fit(low_rank, sample_weight=weights)
    np.testing.assert_allclose(chunked.components_, local.components_, rtol=1e-7, atol=1e-9)
    assert chunked.reconstruction_err_ == pytest.approx(local.reconstruction_err_, rel=1e-7)


def test_data_frames(low_rank):
    pd = pytest.importorskip("pandas")
    names = [f"f{at}" for at in range(40)]
    frame = pd.DataFrame(low_rank, columns=names, index=[f"row {at}" for at in range(60)])
    model = NMF(**SETTINGS).set_output(transform="pandas")
    W = model.fit_transform(frame)
    assert list(model.feature_names_in_) == names
    assert list(W.columns) == ["nmf0", "nmf1", "nmf2", "nmf3"]
    assert list(W.index) == list(frame.index)
    pd.testing.assert_frame_equal(W, model.transform(frame))
    assert list(model.get_feature_names_out()) == list(W.columns)
    with pytest.raises(ValueError, match="The feature names should match those that were passed during fit"):
        model.transform(frame.rename(columns={"f0": "other"}))
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        model.transform(low_rank)


def test_names_do_not_outlive_a_fit_without_them(low_rank):
    pd = pytest.importorskip("pandas")
    model = NMF(**SETTINGS).fit(pd.DataFrame(low_rank).rename(columns=str))
    assert hasattr(model, "feature_names_in_")
    assert not hasattr(model.fit(low_rank), "feature_names_in_")


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.uint8, bool, object])
def test_dtypes(dtype, low_rank):
    X = (low_rank * 3).astype(np.int32).clip(0, 200).astype(dtype)
    before = X.copy()
    model = NMF(2, max_iter=5, tol=0)
    W = model.fit_transform(X)
    expected = np.float32 if dtype is np.float32 else np.float64
    assert W.dtype == model.components_.dtype == expected
    np.testing.assert_array_equal(X, before)


def test_memory_layout_does_not_matter(low_rank, expected):
    wide = np.zeros((120, 80))
    wide[::2, ::2] = low_rank
    frozen = low_rank.copy()
    frozen.flags.writeable = False
    for X in (np.asfortranarray(low_rank), wide[::2, ::2], frozen, low_rank.tolist()):
        np.testing.assert_allclose(NMF(**SETTINGS).fit_transform(X), expected[0], rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])
def test_single_precision_agrees_with_double(loss, low_rank):
    fits = [NMF(4, beta_loss=loss, max_iter=30, tol=0).fit(low_rank.astype(t)) for t in ("f4", "f8")]
    assert fits[0].components_.dtype == np.float32
    assert fits[0].reconstruction_err_ == pytest.approx(fits[1].reconstruction_err_, rel=0.02)
