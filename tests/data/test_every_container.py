"""Every container is the same operator: products, sums, rows and ranges against plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.references.containers import SPARSE_TENSOR, TORCH, as_container, plain

from nonneg.data import as_data_matrix, streamed
from nonneg.data.fingerprint import fingerprint
from nonneg.data.matrix import rows_only
from nonneg.data.spectral import apply_gram, compressed, gram_matrix
from nonneg.data.streamed import StreamedMatrix
from nonneg.data.views import BlockView, ScaledMatrix, transposed
from nonneg.io.stored import ArrayRows, CompressedRows

N_ROWS, N_COLUMNS = 13, 6
WEIGHTS = np.linspace(0.5, 2.0, N_ROWS)
STREAMED = ("streamed", "streamed sparse", "device")
MEMORY = 8 * 4 * N_COLUMNS * 8  # of which a block of four rows takes an eighth
FORMS = ("dense", "csr", "dask", TORCH, SPARSE_TENSOR, *STREAMED)


@pytest.fixture
def X(rng):
    X = np.where(rng.random((N_ROWS, N_COLUMNS)) < 0.4, 0.0, rng.standard_normal((N_ROWS, N_COLUMNS)))
    X[4], X[0, 0] = 0.0, -3.0
    return X


@pytest.fixture
def mask(rng):
    return rng.random((N_ROWS, N_COLUMNS)) < 0.7


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(streamed, "BLOCK_BYTES", 4 * N_COLUMNS * 8)


def matrix(X, form, weights=None, mask=None, missing="error", memory=MEMORY):
    """The data in a container; what is streamed comes in several blocks."""
    if form not in STREAMED:
        if missing == "mask":
            mask = ~np.isnan(X) if mask is None else mask & ~np.isnan(X)
        return as_data_matrix(as_container(X, form), weights=weights, mask=mask)
    options = {"weights": weights, "mask": mask, "missing": missing}
    if form == "device":
        torch = pytest.importorskip("torch")
        return StreamedMatrix(ArrayRows(X, "X", memory), device=torch.device("cpu"), **options)
    if form == "streamed":
        return StreamedMatrix(ArrayRows(X, "X", memory), **options)
    csr = sp.csr_array(X)
    return StreamedMatrix(CompressedRows(csr.data, csr.indices, csr.indptr, X.shape, "X", memory), **options)


def check_operator(data, X, rng, weights=None, seen=None):
    """Compare all that an operator does with X, where entries that were not seen are zero."""
    each = np.ones(len(X)) if weights is None else weights
    seen = np.ones(X.shape) if seen is None else seen
    X = np.where(seen, X, 0.0)
    n_rows, n_columns = data.shape
    assert (n_rows, n_columns) == X.shape
    Ht, W = rng.random((n_columns, 3)), rng.random((n_rows, 3))
    near = {"rtol": 1e-12, "atol": 1e-12}
    np.testing.assert_allclose(plain(data.times(data.to_device(Ht))), X @ Ht, **near)
    left = data.to_sample_array(W)
    np.testing.assert_allclose(plain(left), W)
    np.testing.assert_allclose(plain(data.transposed_times(left)), X.T @ (each[:, None] * W), **near)
    np.testing.assert_allclose(plain(data.weighted_gram(left)), W.T @ (each[:, None] * W), **near)
    assert data.squared_norm() == pytest.approx(np.sum(each[:, None] * X**2))
    assert data.total() == pytest.approx(np.sum(each[:, None] * X))
    assert data.observed_weight() == pytest.approx(np.sum(each[:, None] * seen))
    assert data.count_nonzero() == np.count_nonzero(X)
    assert data.extremes() == pytest.approx((X.min(), X.max()))
    for rows in ([2], [9, 0, 3, 3]):
        np.testing.assert_allclose(plain(data.take_rows(rows)), X[rows], **near)
    # A block on a device is valid until the next one is asked for.
    dense = [plain(block.dense_rows(0, block.shape[0])).copy() for block in data.local_blocks()]
    np.testing.assert_allclose(np.concatenate(dense), X, **near)


@pytest.mark.covering(2)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("hidden", ["nothing", "mask", "nan", "both"])
def test_products_and_sums(form, weighted, hidden, X, mask, rng):
    if form == "streamed sparse" and hidden in ("mask", "both"):
        mask = sp.csr_array(mask)
    weights, seen, missing = WEIGHTS if weighted else None, np.ones(X.shape, dtype=bool), "error"
    given = X.copy()
    if hidden in ("mask", "both"):
        seen &= mask.toarray() if sp.issparse(mask) else mask
    if hidden in ("nan", "both"):
        lost = (np.arange(X.size).reshape(X.shape) % 7 == 3) & (X != 0)
        given[lost], missing = np.nan, "mask"
        seen &= ~lost
    data = matrix(given, form, weights, mask if hidden in ("mask", "both") else None, missing)
    assert data.has_missing == (hidden != "nothing")
    check_operator(data, X, rng, weights, seen)
    if form in STREAMED:
        assert data.n_missing == X.size - seen.sum()
        chosen = data.select([1, 4, 5, 12])
        np.testing.assert_allclose(plain(chosen.dense_rows(0, 4)), np.where(seen, X, 0)[[1, 4, 5, 12]])
        assert chosen.observed_weight() == pytest.approx(
            np.sum((np.ones(13) if weights is None else weights)[[1, 4, 5, 12], None] * seen[[1, 4, 5, 12]])
        )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("weighted", [False, True])
def test_gram_matrices(form, weighted, X, rng):
    data = matrix(X, form, WEIGHTS if weighted else None)
    expected = X.T @ ((WEIGHTS if weighted else np.ones(N_ROWS))[:, None] * X)
    np.testing.assert_allclose(gram_matrix(data), expected, atol=1e-12)
    V = rng.random((N_COLUMNS, 2))
    np.testing.assert_allclose(apply_gram(data, V), expected @ V, atol=1e-12)


@pytest.mark.parametrize("form", ["dense", "csr", TORCH, SPARSE_TENSOR])
@pytest.mark.parametrize("sides", ["rows", "columns", "both", "none"])
@pytest.mark.parametrize("weighted", [False, True])
def test_scaled_views(form, sides, weighted, X, rng):
    base = matrix(X, form, WEIGHTS if weighted else None)
    rows, columns = rng.random((N_ROWS, 1)) + 0.5, rng.random(N_COLUMNS) + 0.5
    row_scale = base.to_device(rows) if sides in ("rows", "both") else None
    column_scale = base.to_device(columns) if sides in ("columns", "both") else None
    data = ScaledMatrix(base, row_scale=row_scale, column_scale=column_scale)
    scaled = X * (rows if row_scale is not None else 1.0) * (columns if column_scale is not None else 1.0)
    check_operator(data, scaled, rng, WEIGHTS if weighted else None)
    np.testing.assert_allclose(plain(data.squared_row_norms()), np.sum(scaled**2, axis=1))
    np.testing.assert_allclose(plain(data.materialized().dense_rows(2, 9)), scaled[2:9])
    np.testing.assert_allclose(plain(data.select(slice(3, 8)).dense_rows(0, 5)), scaled[3:8])
    if weighted:
        return
    turned = transposed(data)
    np.testing.assert_allclose(plain(turned.dense_rows(0, N_COLUMNS)), scaled.T)
    np.testing.assert_allclose(plain(turned.times(turned.to_device(np.eye(N_ROWS)))), scaled.T)
    np.testing.assert_allclose(plain(transposed(turned).dense_rows(0, N_ROWS)), scaled)


@pytest.mark.parametrize("entries", [np.zeros((3, 4)), np.ones((3, 4)), -np.ones((3, 4)), np.eye(4)[:3]])
@pytest.mark.parametrize("form", ["dense", "csr", SPARSE_TENSOR])
def test_ranges_count_zeros_that_are_not_stored(entries, form):
    data = as_data_matrix(as_container(entries, form))
    assert data.extremes() == (entries.min(), entries.max())
    twice = ScaledMatrix(data, column_scale=data.to_device(np.full(4, 2.0)))
    assert twice.extremes() == (2 * entries.min(), 2 * entries.max())


@pytest.mark.parametrize("form", ["dask", *STREAMED])
def test_scaled_blocks(form, X, rng):
    base = matrix(X, form, WEIGHTS)
    scale = rng.random((N_ROWS, 1)) + 0.5
    check_operator(BlockView(base, ScaledMatrix, base.to_sample_array(scale)), scale * X, rng, WEIGHTS)


@pytest.mark.parametrize("form", ["dense", "dask", "streamed", TORCH])
def test_compressed_data(form, X, rng):
    low = X[:, :3] @ rng.random((3, N_COLUMNS))
    data = compressed(matrix(low, form, WEIGHTS), 3, dtype=matrix(low, form).dtype)
    W, Ht = rng.random((N_ROWS, 2)), rng.random((N_COLUMNS, 2))
    np.testing.assert_allclose(plain(data.times(data.to_device(Ht))), low @ Ht, atol=1e-9)
    product = plain(data.transposed_times(data.to_sample_array(W)))
    np.testing.assert_allclose(product, low.T @ (WEIGHTS[:, None] * W), atol=1e-9)
    assert data.squared_norm() == pytest.approx(np.sum(WEIGHTS[:, None] * low**2))
    assert data.total() == pytest.approx(np.sum(WEIGHTS[:, None] * low))
    assert data.extremes() == pytest.approx((low.min(), low.max()))
    np.testing.assert_allclose(plain(data.take_rows([5, 2])), low[[5, 2]], atol=1e-9)
    blocks = [plain(block.dense_rows(0, block.shape[0])) for block in data.local_blocks()]
    np.testing.assert_allclose(np.concatenate(blocks), low, atol=1e-9)
    hidden = matrix(low, form, mask=np.arange(X.size).reshape(X.shape) > 0)
    for other in (hidden, matrix(low, "csr")):
        assert compressed(other, 3, dtype=np.float64) is None


@pytest.mark.parametrize("form", FORMS)
def test_a_fingerprint_tells_entries_weights_masks_and_samples_apart(form, X, mask):
    other = X.copy()
    other[7, 2] += 1.0
    swapped = X[:, [1, 0, *range(2, N_COLUMNS)]]
    W = np.arange(2.0 * N_ROWS).reshape(N_ROWS, 2)
    found = [
        fingerprint(matrix(X, form)),
        fingerprint(matrix(other, form)),
        fingerprint(matrix(swapped, form)),
        fingerprint(matrix(X, form, WEIGHTS)),
        fingerprint(matrix(X, form, mask=mask)),
        fingerprint(matrix(X, form), matrix(X, form).to_sample_array(W)),
        fingerprint(matrix(X, form), matrix(X, form).to_sample_array(W + 1)),
    ]
    assert len(set(found)) == len(found)
    assert fingerprint(matrix(X.copy(), form)) == found[0]


@pytest.mark.parametrize("form", STREAMED)
def test_a_pass_reads_the_file_once(form, X):
    data = matrix(X, form)
    assert data.n_passes == 0
    data.squared_norm()
    data.total()
    data.extremes()
    assert data.n_passes == 1
    data.times(data.to_device(np.eye(N_COLUMNS)))
    assert data.n_passes == 2
    # What needs no entries reads nothing.
    data.weighted_gram(data.to_sample_array(np.ones((N_ROWS, 1))))
    assert data.n_passes == 2
    firsts = []
    data.examine(lambda block, first: firsts.append(first))
    assert firsts[0] == 0
    assert len(firsts) >= 3
    assert np.all(np.diff(firsts) > 0)


@pytest.mark.parametrize("rows", [[0, 3, 7, 12], [12, 3, 3, 0], [6]])
def test_rows_of_dask_arrays_as_data_of_their_own(rows, X):
    data = matrix(X, "dask").select(np.array(rows))
    assert data.shape == (len(rows), N_COLUMNS)
    np.testing.assert_array_equal(plain(data.times(np.eye(N_COLUMNS))), X[rows])
    assert data.total() == pytest.approx(X[rows].sum())


@pytest.mark.parametrize("form", ["streamed", "streamed sparse"])
def test_other_columns_of_a_file(form, X, mask):
    data = matrix(X, form, WEIGHTS, sp.csr_array(mask) if "sparse" in form else mask)
    found = data.with_columns([4, 1])
    expected = np.where(mask, X, 0.0)[:, [4, 1]]
    np.testing.assert_array_equal(plain(found.times(np.eye(2))), expected)
    assert found.total() == pytest.approx(np.sum(WEIGHTS[:, None] * expected))
    assert data.shape == X.shape


@pytest.mark.parametrize("sparse", [False, True])
def test_what_identifies_a_file_does_not_depend_on_its_blocks(sparse, X):
    form = "streamed sparse" if sparse else "streamed"
    found = {fingerprint(matrix(X, form))}
    for memory in (400, 800, 8 * 10**6):
        data = matrix(X, form, memory=memory)
        found.add(fingerprint(data))
        assert data.squared_norm() == pytest.approx(np.sum(X**2))
    assert len(found) == 1
    assert fingerprint(matrix(X, form, WEIGHTS)) not in found
    assert fingerprint(matrix(X[::-1].copy(), form)) not in found
    assert fingerprint(matrix(X.astype(np.float32), form)) not in found


@pytest.mark.parametrize("large", [False, True])
def test_sample_arrays_of_a_twelfth_of_the_memory_go_to_a_file(large, X):
    n_bytes = N_ROWS * 3 * 8
    data = StreamedMatrix(ArrayRows(X, "X", 12 * n_bytes - large))
    ones = data.to_sample_array(np.ones((N_ROWS, 3), dtype=int))
    np.testing.assert_allclose(ones, 1.0)
    for array in (ones, data.times(np.ones((N_COLUMNS, 3)))):
        assert isinstance(array.base, np.memmap) == large


@rows_only
def shapes(block):
    """Return the shape of a block, without a look at its entries."""
    return (), ([block.shape], float(block.total_weight()))


@pytest.mark.parametrize("form", STREAMED)
def test_blocks_without_entries_know_their_rows_and_weights(form, X):
    data = matrix(X, form, WEIGHTS)
    found, weight = data.map_reduce_rows(shapes, n_out=0)[1]
    assert sum(n_rows for n_rows, _ in found) == N_ROWS
    assert {n_columns for _, n_columns in found} == {0}
    assert weight == pytest.approx(WEIGHTS.sum())
    assert data.n_passes == 0
