"""Host data for a device: their size there, copies of any type, and the statistics of the first pass."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg._arrays import to_numpy
from nonneg.data import streamed
from nonneg.data.fingerprint import fingerprint
from nonneg.data.streamed import StreamedMatrix, copied
from nonneg.exceptions import DeviceMemoryError
from nonneg.io.stored import ArrayRows, CompressedRows

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore:Sparse")]


@pytest.fixture
def X(rng):
    return np.where(rng.random((11, 6)) < 0.4, 0.0, rng.random((11, 6)))


def test_sparse_data_that_do_not_fit_are_refused(X, torch):
    csr = sp.csr_array(X)
    stored = CompressedRows(csr.data, csr.indices, csr.indptr, X.shape, "file")
    with pytest.raises(DeviceMemoryError, match="file is sparse and larger than memory"):
        StreamedMatrix(stored, device=torch.device("cpu"))


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int8])
@pytest.mark.parametrize("form", ["csr", "csc", "twice"])
def test_sparse_matrices_are_copied_with_their_repeated_entries_added(kind, form, torch):
    rows, columns, values = [0, 0, 2], [1, 1, 0], np.array([100, 100, 3], dtype=kind)
    given = sp.coo_array((values, (rows, columns)), shape=(3, 2))
    if form == "twice":
        given = sp.csr_array((values, np.array([1, 1, 0]), np.array([0, 2, 2, 3])), shape=(3, 2))
        before = given.nnz
    else:
        given = given.astype(np.float64).asformat(form)
    found = copied(given, torch.device("cpu"))
    np.testing.assert_array_equal(found.to_dense().numpy(), [[0, 200], [0, 0], [3, 0]])
    if form == "twice":
        assert given.nnz == before  # the user's matrix stays
        assert found.dtype == (torch.float32 if kind == np.float32 else torch.float64)


def test_a_stream_says_the_same_as_the_processor(X, torch, monkeypatch):
    monkeypatch.setattr(streamed, "BLOCK_BYTES", 100)
    X[3, 2] = np.nan
    options = {"weights": np.linspace(1.0, 2.0, 11), "missing": "mask"}
    found = StreamedMatrix(ArrayRows(X, "X"), device=torch.device("cpu"), **options)
    expected = StreamedMatrix(ArrayRows(X, "X"), **options)
    assert found.n_missing == expected.n_missing == 1
    assert found.total() == pytest.approx(expected.total())
    for rows in ([10, 3, 3], [0]):
        np.testing.assert_allclose(to_numpy(found.take_rows(rows)), expected.take_rows(rows))
    assert found.numpy_out
    assert fingerprint(found) == fingerprint(expected)
    complete = StreamedMatrix(ArrayRows(np.nan_to_num(X), "X"), device=torch.device("cpu"), missing="mask")
    assert complete.has_mask
    complete.examine(lambda block, first_row: None)
    assert not complete.has_mask  # nothing is missing
