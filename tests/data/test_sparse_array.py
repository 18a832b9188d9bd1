"""Sparse tensors: the same answers as SciPy's."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from tests.references.containers import ON_GPU, sparse_array

from nonneg import NMF, factorize, non_negative_factorization, select_anchors
from nonneg._arrays import to_numpy
from nonneg.applications import MixedMembership, TopicModel
from nonneg.data import as_data_matrix
from nonneg.data.door import Request, wrap
from nonneg.data.sparse import scipy_matrix
from nonneg.data.views import ScaledMatrix, transposed
from nonneg.exceptions import (
    DataTypeError,
    InvalidDataError,
    NegativeDataError,
    NonFiniteDataError,
    ShapeError,
    UnsupportedInputError,
)
from nonneg.losses.penalties import Penalties
from nonneg.solvers.encoding import encode

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:Sparse"),  # that layouts are in beta state and not checked
]
FORMS = ("torch-csr", "torch-csc", "torch-coo", *ON_GPU)


def brought(X, form):
    return sparse_array(X, *form.split("-"))


def small(seed=0, shape=(12, 9), dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.gamma(1.0, size=shape) * (rng.random(shape) < 0.5)
    X[3], X[:, 5] = 0.0, 0.0
    return X.astype(dtype)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("weights", [None, np.linspace(0.5, 2.0, 12)])
def test_the_operator_gives_the_numbers_of_scipy(form, weights):
    X = small()
    data, expected = (as_data_matrix(each, weights=weights) for each in (brought(X, form), sp.csr_array(X)))
    assert data.container == "sparse-array"
    rng = np.random.default_rng(1)
    Ht, W = rng.random((9, 3)), rng.random((12, 3))
    pairs = [
        (data.times(data.to_device(Ht)), expected.times(Ht)),
        (data.transposed_times(data.to_device(W)), expected.transposed_times(W)),
        (data.weighted_gram(data.to_device(W)), expected.weighted_gram(W)),
        (data.squared_row_norms(), expected.squared_row_norms()),
        (data.take_rows([4, 0, 4]), X[[4, 0, 4]]),
        (data.dense_rows(2, 5), X[2:5]),
        (data.select(slice(1, 11, 3)).dense_rows(0, 4), X[1:11:3]),
        (data.select(np.arange(12) % 2 == 0).dense_rows(0, 6), X[::2]),
        (data.on_host().csr.toarray(), X),
    ]
    for found, right in pairs:
        np.testing.assert_allclose(to_numpy(found), right, rtol=1e-13)
    for name in ("squared_norm", "total", "count_nonzero", "extremes", "mean", "total_weight"):
        np.testing.assert_allclose(getattr(data, name)(), getattr(expected, name)(), rtol=1e-13)


def test_views_of_it_are_not_made_dense():
    X = small()
    data = as_data_matrix(brought(X, "torch-csr"))
    rows, columns = np.linspace(1, 2, 12)[:, None], np.linspace(3, 4, 9)
    scaled = ScaledMatrix(data, row_scale=data.to_device(rows), column_scale=data.to_device(columns))
    right = X * rows * columns
    assert scaled.materialized().container == "sparse-array"
    assert scaled.squared_norm() == pytest.approx(np.sum(right**2))
    assert scaled.extremes() == pytest.approx((right.min(), right.max()))
    np.testing.assert_allclose(scaled.squared_row_norms(), np.sum(right**2, axis=1))
    turned = transposed(data)
    np.testing.assert_array_equal(turned.dense_rows(0, 9), X.T)
    assert turned.transposed is data.csr


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
def test_unsorted_and_repeated_entries_are_added_and_the_input_stays(torch, layout):
    rows, columns = [0, 2, 0, 1, 0], [2, 0, 2, 1, 0]
    values = torch.tensor([1.0, 2, 3, 4, 5])
    if layout == "coo":
        X = torch.sparse_coo_tensor(torch.tensor([rows, columns]), values, (3, 3))
    elif layout == "csr":
        X = torch.sparse_csr_tensor([0, 3, 4, 5], [2, 2, 0, 1, 0], torch.tensor([1.0, 3, 5, 4, 2]), (3, 3))
    else:
        X = torch.sparse_csc_tensor([0, 2, 3, 5], [2, 0, 1, 0, 0], torch.tensor([2.0, 5, 4, 1, 3]), (3, 3))
    before = X.clone()
    data = as_data_matrix(X)
    np.testing.assert_array_equal(data.dense_rows(0, 3), [[5, 0, 4], [0, 4, 0], [2, 0, 0]])
    assert data.csr.nnz == 4
    result = factorize(X, 2, max_iter=3)
    assert result.W.dtype == torch.float32
    assert torch.equal(X.to_dense(), before.to_dense())


@pytest.mark.parametrize("index", ["int32", "int64"])
def test_both_widths_of_indices_give_the_same_bytes(torch, index):
    csr = sp.csr_array(small())
    places = (torch.asarray(part.astype(index)) for part in (csr.indptr, csr.indices))
    X = torch.sparse_csr_tensor(*places, torch.asarray(csr.data), csr.shape)
    expected = factorize(brought(small(), "torch-coo"), 3, max_iter=5)
    assert torch.equal(factorize(X, 3, max_iter=5).W, expected.W)


@pytest.mark.parametrize("form", ["torch-coo", *ON_GPU])
def test_explicit_zeros_change_nothing(form):
    X = small()
    data = as_data_matrix(brought(X, form))
    stored = as_data_matrix(brought(X + 1.0, form))
    stored.csr.data[:] = data.to_device(X.ravel())
    assert stored.count_nonzero() == data.count_nonzero()
    np.testing.assert_allclose(
        to_numpy(factorize(stored, 3, max_iter=5).H), to_numpy(factorize(data, 3, max_iter=5).H), rtol=1e-9
    )


@pytest.mark.parametrize("form", ["torch-csr", "torch-csc", *ON_GPU])
@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (np.nan, NonFiniteDataError, r"entry \[7, 2\] is nan"),
        (np.inf, NonFiniteDataError, r"entry \[7, 2\] is inf"),
        (-1.0, NegativeDataError, r"entry \[7, 2\] is -1"),
    ],
)
def test_wrong_entries_are_named_by_their_place(form, value, error, words):
    X = small()
    X[7, 2] = value
    with pytest.raises(error, match=words):
        factorize(brought(X, form), 2)


def test_wrong_layouts_and_types_are_refused_with_a_remedy(torch):
    X = torch.asarray(small()[:, :8])
    with pytest.raises(DataTypeError, match=r"sparse_csr, .*sparse_bsr.*to_sparse_csr"):
        factorize(X.to_sparse_bsr((2, 2)), 2)
    for dtype in (torch.int64, torch.bool, torch.float16, torch.complex64):
        with pytest.raises(DataTypeError, match=rf"float32 or float64, got {dtype}.*to\(torch.float32\)"):
            factorize(X.to(dtype).to_sparse(), 2)
    with pytest.raises(DataTypeError, match="1 dense dimensions"):
        factorize(X.to_sparse(1), 2)
    with pytest.raises(ShapeError, match="Expected 2D array X"):
        factorize(X[None].to_sparse(), 2)
    with pytest.raises(InvalidDataError, match="at least one sample"):
        factorize(X[:0].to_sparse(), 2)
    with pytest.raises(ShapeError, match="same shape as X"):
        factorize(X.to_sparse(), 2, mask=X[:3].to_sparse())
    with pytest.raises(UnsupportedInputError, match=r"every zero to be stored.*to_dense"):
        factorize(X.to_sparse(), 2, beta_loss=0.5)


def test_index_arrays_that_lead_elsewhere_are_refused(torch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        cases = [([0, 1, 2], [0, 3]), ([0, 2, 1], [0, 1]), ([0, 1, 2], [-1, 1])]
        for indptr, indices in cases:
            X = torch.sparse_csr_tensor(indptr, indices, torch.ones(2), (2, 3), check_invariants=False)
            with pytest.raises(InvalidDataError, match="index arrays of the sparse X"):
                factorize(X, 1)


@pytest.mark.covering(1)
@pytest.mark.parametrize("beta", [2.0, 1.0])
@pytest.mark.parametrize("form", ["torch-csr", *ON_GPU])
@pytest.mark.parametrize("share", [0.3, 0.9])
def test_a_sparse_mask_gives_the_fit_of_scipy(beta, form, share):
    X = small()
    mask = np.random.default_rng(2).random(X.shape) < share
    options = {"beta_loss": beta, "max_iter": 10, "tol": 0.0, "rng": 0, "init": "random"}
    expected = factorize(sp.csr_array(X), 2, mask=sp.csr_array(mask), **options)
    for given in (brought(mask.astype(float), form), mask, sp.csr_array(mask)):
        result = factorize(brought(X, form), 2, mask=given, **options)
        np.testing.assert_allclose(to_numpy(result.W), expected.W, rtol=1e-8, atol=1e-10)
        assert result.loss == pytest.approx(expected.loss, rel=1e-9)


@pytest.mark.parametrize("form", ["torch-csr", *ON_GPU])
@pytest.mark.parametrize("masked", [False, True])
def test_stored_nan_is_missing_and_absent_entries_are_zeros(form, masked):
    X = small()
    X[X > 1.5] = np.nan
    mask = np.random.default_rng(2).random(X.shape) < 0.8 if masked else None
    data = wrap(brought(X, form), Request(mask=mask, missing="mask", sparse_arrays=True))
    expected = wrap(sp.csr_array(X), Request(mask=mask, missing="mask"))
    assert data.observed_weight() == expected.observed_weight()
    assert data.total() == pytest.approx(expected.total())
    np.testing.assert_array_equal(
        to_numpy(data.observed.dense_rows(2, 9)), expected.observed.dense_rows(2, 9)
    )
    host = data.on_host()
    np.testing.assert_array_equal(host.observed.dense_rows(0, 12), expected.observed.dense_rows(0, 12))


@pytest.mark.covering(1)
@pytest.mark.parametrize("form", ["torch-csr", *ON_GPU])
@pytest.mark.parametrize("beta_loss", ["frobenius", "kullback-leibler"])
def test_an_estimator_gives_tensors_and_the_numbers_of_scipy(form, beta_loss):
    X = small(shape=(40, 25))
    settings = {"n_components": 3, "beta_loss": beta_loss, "solver": "auto", "max_iter": 400, "tol": 1e-8}
    if beta_loss != "frobenius":
        settings["solver"] = "newton"  # what "auto" takes on a GPU
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = NMF(**settings).fit(brought(X, form))
        expected = NMF(**settings).fit(sp.csr_array(X))
    given = brought(X, form)
    W = model.transform(given)
    assert W.device == given.device
    assert type(W) is type(model.components_) is type(model.inverse_transform(W))
    np.testing.assert_allclose(to_numpy(W), expected.transform(sp.csr_array(X)), rtol=1e-5, atol=1e-6)
    assert model.reconstruction_err_ == pytest.approx(expected.reconstruction_err_, rel=1e-6)
    assert model.score(given) == pytest.approx(expected.score(sp.csr_array(X)), rel=1e-6)
    found, right = model.certificate_["stationarity"], expected.certificate_["stationarity"]
    assert found.verdict == right.verdict
    assert model.certify(given)["eckart-young-bound"].verdict == (
        expected.certify(sp.csr_array(X))["eckart-young-bound"].verdict
    )


@pytest.mark.parametrize("init", ["random", "nndsvda", "cr1"])
def test_initializations_agree_with_scipy(init):
    X = small(shape=(40, 25))
    options = {"init": init, "max_iter": 1, "tol": 0.0, "rng": 0, "solver": "hals"}
    expected = factorize(sp.csr_array(X), 3, **options)
    result = factorize(brought(X, "torch-csr"), 3, **options)
    np.testing.assert_allclose(to_numpy(result.H), expected.H, rtol=1e-6, atol=1e-9)


def test_more_columns_than_a_gram_matrix_is_formed_for():
    X = sp.random_array((60, 700), density=0.05, random_state=np.random.default_rng(3), format="csr")
    expected = factorize(X, 4, max_iter=5, tol=0)
    result = factorize(brought(X.toarray(), "torch-csr"), 4, max_iter=5, tol=0)
    np.testing.assert_allclose(to_numpy(result.W), expected.W, rtol=1e-6, atol=1e-8)


@pytest.mark.covering(1)
@pytest.mark.parametrize("shape", [(1, 6), (6, 1), (1, 1)])
@pytest.mark.parametrize("beta", [2.0, 1.0])
def test_single_rows_and_columns(shape, beta):
    X = np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape)
    result = factorize(brought(X, "torch-csr"), 1, beta_loss=beta, max_iter=20)
    np.testing.assert_allclose(to_numpy(result.W @ result.H), X, rtol=1e-6)


def test_many_components_and_float32():
    X = small(shape=(300, 260), dtype=np.float32)
    result = factorize(brought(X, "torch-csr"), 255, max_iter=2, init="random", rng=0)
    assert result.H.shape == (255, 260)
    assert "float32" in str(result.W.dtype)


def test_the_function_of_scikit_learn_and_restarts(torch):
    X = brought(small(), "torch-csr")
    W, H, _ = non_negative_factorization(X, n_components=2, init="random", random_state=0)
    assert isinstance(W, torch.Tensor)
    assert isinstance(H, torch.Tensor)
    result = factorize(X, 2, n_init=3, rng=0, max_iter=20)
    expected = factorize(sp.csr_array(small()), 2, n_init=3, rng=0, max_iter=20)
    assert result.loss == pytest.approx(expected.loss, rel=1e-6)


@pytest.mark.parametrize("form", ["torch-csr", "torch-coo", *ON_GPU])
def test_anchors_are_those_of_scipy(form):
    X = small(shape=(40, 25))
    for method in ("spa", "xray"):
        found = select_anchors(brought(X, form), 4, method=method, normalize="l1")
        expected = select_anchors(sp.csr_array(X), 4, method=method, normalize="l1")
        np.testing.assert_array_equal(found.anchors, expected.anchors)


@pytest.mark.parametrize("form", ["torch-csr", *ON_GPU])
def test_topics_and_communities_are_those_of_scipy(form):
    rng = np.random.default_rng(4)
    counts = rng.poisson(rng.gamma(0.3, size=(60, 3)) @ rng.gamma(0.3, size=(3, 40)) * 20).astype(float)
    found = TopicModel(3, random_state=0).fit(brought(counts, form))
    expected = TopicModel(3, random_state=0).fit(sp.csr_array(counts))
    np.testing.assert_allclose(found.topics_, expected.topics_, rtol=1e-8)
    blocks = np.kron(np.eye(2), np.ones((12, 12)))
    graph = np.triu((rng.random((24, 24)) < 0.1 + 0.7 * blocks).astype(float), 1)
    graph = graph + graph.T
    found = MixedMembership(2, random_state=0).fit(brought(graph, form))
    expected = MixedMembership(2, random_state=0).fit(sp.csr_array(graph))
    np.testing.assert_allclose(found.memberships_, expected.memberships_, rtol=1e-8)


def test_whole_numbers_become_floats_before_they_are_added(torch):
    X = torch.sparse_coo_tensor(
        torch.tensor([[0, 0], [1, 1]]), torch.tensor([200, 100], dtype=torch.uint8), (2, 2)
    )
    assert scipy_matrix(X).toarray()[0, 1] == 300.0


def on_device(torch, device, X):
    return torch.asarray(X, device=device).to_sparse()


def test_kl_encoding_on_a_gpu_is_that_of_scipy(torch, device):
    X = small(shape=(7, 9))
    H = np.random.default_rng(6).gamma(0.5, size=(2, 9)) + 1e-3
    H[:, 5] = 0.0
    X[2, 5] = 1.0  # a feature that no component has
    data, expected = (
        wrap(each, Request(sparse_arrays=True)) for each in (on_device(torch, device, X), sp.csr_array(X))
    )
    options = {"beta": 1.0, "penalties": Penalties(0.01, 0.02)}
    W, _ = encode(data, data.to_device(H.T), **options)
    right, _ = encode(expected, np.ascontiguousarray(H.T), **options)
    np.testing.assert_allclose(to_numpy(W), right, rtol=1e-6, atol=1e-7 * right.max())


@pytest.mark.parametrize(("solver", "beta"), [("hals", 2.0), ("newton", 1.0), ("mu", 1.0)])
def test_fits_on_a_gpu_are_those_of_scipy(torch, device, solver, beta):
    X = small(shape=(6, 8))
    options = {"solver": solver, "beta_loss": beta, "max_iter": 2, "tol": 0.0, "init": "random", "rng": 0}
    expected = factorize(sp.csr_array(X), 2, **options)
    result = factorize(on_device(torch, device, X), 2, **options)
    np.testing.assert_allclose(to_numpy(result.W), expected.W, rtol=1e-8, atol=1e-10)
    assert result.loss == pytest.approx(expected.loss, rel=1e-9)
    if device.type == "cuda":
        assert torch.equal(result.W, factorize(on_device(torch, device, X), 2, **options).W)


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
def test_sparse_matrices_of_cupy_give_tensors(layout, torch):
    cupy, sparse = (pytest.importorskip(name) for name in ("cupy", "cupyx.scipy.sparse"))
    if not cupy.is_available():
        pytest.skip("there is no GPU")
    given = getattr(sparse, f"{layout}_matrix")(getattr(sp, f"{layout}_matrix")(small()))
    result = factorize(given, 3, max_iter=5)
    assert isinstance(result.W, torch.Tensor)
    np.testing.assert_allclose(
        to_numpy(result.W), factorize(sp.csr_array(small()), 3, max_iter=5).W, rtol=1e-8
    )
