"""Files as data: one read per pass, two blocks in memory, checks and statistics in the first pass."""

from __future__ import annotations

import threading
import weakref
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from tests.references.stored import write

from nonneg import NMF, estimate_rank, factorize, non_negative_factorization, open_matrix
from nonneg.data import as_data_matrix
from nonneg.data.door import Request, wrap
from nonneg.data.fingerprint import fingerprint
from nonneg.data.streamed import StreamedMatrix
from nonneg.exceptions import InvalidDataError, NegativeDataError, NonFiniteDataError, ShapeError
from nonneg.io.stored import CompressedRows
from nonneg.solvers.hals import hals
from nonneg.solvers.registry import SOLVERS, Solver

N, M = 96, 12
ONE_PASS = Solver(
    partial(hals, momentum=0.0), "never a second pass in an iteration", (2.0, 2.0), missing=(2.0, 2.0)
)


def entries(dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.gamma(1.0, size=(N, 3)) @ rng.gamma(1.0, size=(3, M))
    return np.where(rng.random((N, M)) < 0.3, 0.0, X * (0.9 + 0.2 * rng.random((N, M)))).astype(dtype)


def stored(X, folder, form="npy", memory=4000):
    if form == "csr":
        csr = sp.csr_array(X)
        return CompressedRows(csr.data, csr.indices, csr.indptr, csr.shape, "arrays", memory)
    return open_matrix(write(X, form, folder)[0], memory=memory)


@pytest.fixture(params=["npy", "csr"])
def form(request):
    return request.param


def test_the_operator_equals_that_of_memory(form, tmp_path):
    X = entries()
    rng = np.random.default_rng(1)
    weights, V, W = rng.gamma(1.0, size=N), rng.random((M, 2)), rng.random((N, 2))
    data = StreamedMatrix(stored(X, tmp_path, form), weights=weights)
    whole = as_data_matrix(sp.csr_array(X) if form == "csr" else X, weights=weights)
    assert data.container == "streamed"
    assert data.shape == whole.shape
    np.testing.assert_allclose(data.times(V), whole.times(V), rtol=1e-12)
    np.testing.assert_allclose(data.transposed_times(W), whole.transposed_times(W), rtol=1e-12)
    np.testing.assert_allclose(data.weighted_gram(W), whole.weighted_gram(W), rtol=1e-12)
    for name in ("squared_norm", "total", "count_nonzero", "observed_weight", "mean", "extremes"):
        assert getattr(data, name)() == pytest.approx(getattr(whole, name)(), rel=1e-12), name
    np.testing.assert_array_equal(data.take_rows([5, 90, 5]), X[[5, 90, 5]])
    np.testing.assert_array_equal(data.to_sample_array(W), W)
    assert sum(block.shape[0] for block in data.local_blocks()) == N


def test_an_iteration_is_one_read_and_rows_of_W_need_none(form, tmp_path, monkeypatch):
    monkeypatch.setitem(SOLVERS, "one-pass", ONE_PASS)
    matrix = stored(entries(), tmp_path, form)
    rows_read = []
    plain = matrix.read_rows
    matrix.read_rows = lambda start, stop: rows_read.append(stop - start) or plain(start, stop)
    data = wrap(matrix)
    assert sum(rows_read) == N  # entries, norm, sum, nonzeros and extremes
    for statistic in ("squared_norm", "total", "count_nonzero", "extremes"):
        getattr(data, statistic)()
    assert data.n_passes == 1
    fingerprint(data)
    assert data.n_passes == 2
    passes = []
    for n_iter in (3, 8):
        before = data.n_passes
        model = NMF(3, solver="one-pass", max_iter=n_iter, tol=0.0).fit(data)
        passes.append(data.n_passes - before)
        assert sum(rows_read) == N * data.n_passes
    # The Gram matrix and the projections of the initialization, the final W, the certificate.
    assert passes == [3 + 4, 8 + 4]
    before = data.n_passes
    model.transform(data)
    assert data.n_passes == before + 1


def test_two_blocks_are_in_memory_and_the_next_is_read_meanwhile(tmp_path):
    X = entries()
    matrix = stored(X, tmp_path)
    alive, most, threads = [0], [0], set()
    reading = threading.Semaphore(0)
    plain = matrix.read_rows

    def gone():
        alive[0] -= 1

    def read_rows(start, stop):
        rows = plain(start, stop)
        alive[0] += 1
        weakref.finalize(rows if rows.base is None else rows.base, gone)
        most[0] = max(most[0], alive[0])
        threads.add(threading.current_thread().name)
        reading.release()
        return rows

    matrix.read_rows = read_rows
    data = StreamedMatrix(matrix)
    n_blocks = len(matrix.cuts()) - 1
    seen = []

    def work(block):
        # The block itself and, unless it is the last one, the next: read while this function runs.
        seen.append(reading.acquire(timeout=5))
        if len(seen) < n_blocks:
            seen[-1] &= reading.acquire(timeout=5)
            reading.release()
        return (), (block.shape[0],)

    assert data.map_reduce_rows(work, n_out=0)[1] == (N,)
    assert n_blocks > 8
    assert all(seen)
    assert most[0] == 2
    assert threads
    assert threading.current_thread().name not in threads


@pytest.mark.parametrize("bad", [np.nan, -1.0, np.inf])
def test_a_wrong_entry_is_named_in_the_first_pass(bad, form, tmp_path):
    X = entries()
    X[61, 7] = bad
    matrix = stored(X, tmp_path, form)
    rows_read = []
    plain = matrix.read_rows
    matrix.read_rows = lambda start, stop: rows_read.append(start) or plain(start, stop)
    error = NegativeDataError if bad == -1.0 else NonFiniteDataError
    with pytest.raises(error, match=r"\[61, 7\]"):
        NMF(3).fit(matrix)
    assert rows_read == sorted(set(rows_read))  # no block twice
    assert max(rows_read) < N - 10


def test_zeros_are_named_for_itakura_saito(tmp_path):
    X = entries() + 1.0
    X[70, 2] = 0.0
    with pytest.raises(InvalidDataError, match=r"\[70, 2\]"):
        factorize(stored(X, tmp_path), 3, beta_loss="itakura-saito")


@pytest.mark.covering(1)
@pytest.mark.parametrize("dtype", [np.float32, np.uint16])
def test_types(dtype, form, tmp_path):
    X = np.round(entries() * 9).astype(dtype)
    model = NMF(3, max_iter=5, tol=0)
    W = model.fit_transform(stored(X, tmp_path, form))
    expected = np.float32 if dtype == np.float32 else np.float64
    assert W.dtype == model.components_.dtype == expected
    whole = NMF(3, max_iter=5, tol=0).fit(X)
    np.testing.assert_allclose(
        model.components_, whole.components_, rtol=0, atol=1e-4 if W.itemsize == 4 else 1e-8
    )


def test_weights_missing_entries_and_restarts_agree_with_memory(form, tmp_path):
    X, rng = entries(), np.random.default_rng(3)
    weights = rng.gamma(1.0, size=N)
    X[rng.random((N, M)) < 0.05] = np.nan
    given = stored(X, tmp_path, form)
    whole = sp.csr_array(X) if form == "csr" else X
    options = {"missing": "mask", "max_iter": 3, "tol": 0.0, "init": "random", "random_state": 0}
    found = NMF(3, n_init=2, **options).fit(given, sample_weight=weights)
    expected = NMF(3, n_init=2, **options).fit(whole, sample_weight=weights)
    np.testing.assert_allclose(found.components_, expected.components_, atol=1e-8)
    np.testing.assert_allclose(found.transform(given), expected.transform(whole), atol=1e-8)
    mask = rng.random((N, M)) < 0.8
    found = NMF(3, **options).fit(given, mask=mask)
    expected = NMF(3, **options).fit(whole, mask=mask)
    np.testing.assert_allclose(found.components_, expected.components_, atol=1e-8)


def test_complete_data_keep_the_solvers_for_complete_data(tmp_path):
    data = wrap(stored(entries(), tmp_path), Request(missing="mask"))
    assert not data.has_missing


def test_a_W_larger_than_the_budget_is_in_a_temporary_file(tmp_path):
    X = entries()
    found = NMF(3, max_iter=4, tol=0).fit_transform(stored(X, tmp_path, memory=4000))
    assert isinstance(found.base, np.memmap)
    np.testing.assert_allclose(found, NMF(3, max_iter=4, tol=0).fit_transform(X), atol=1e-10)
    in_memory = NMF(1, max_iter=4, tol=0).fit_transform(stored(X, tmp_path, memory=11000))
    assert not isinstance(in_memory.base, np.memmap)


def test_what_fits_is_read_whole(form, tmp_path):
    X = entries()
    data = wrap(stored(X, tmp_path, form, memory="1MB"))
    assert data.container == ("sparse" if form == "csr" else "dense")
    expected = NMF(3, max_iter=4, tol=0).fit(sp.csr_array(X) if form == "csr" else X)
    found = NMF(3, max_iter=4, tol=0).fit(stored(X, tmp_path, form, memory="1MB"))
    np.testing.assert_array_equal(found.components_, expected.components_)


def test_the_digest_knows_the_entries_and_not_the_blocks(form, tmp_path):
    X = entries()
    digests = {
        fingerprint(StreamedMatrix(stored(X, tmp_path, form, memory=memory))) for memory in (3000, 5000)
    }
    assert len(digests) == 1
    X[50, 3] += 1e-9
    assert fingerprint(StreamedMatrix(stored(X, tmp_path, form, memory=3000))) not in digests


def test_partial_fit_functions_score_certify_and_rank(tmp_path):
    X = entries()
    whole, given = X[:], stored(X, tmp_path)
    model, expected = (NMF(3, random_state=0).partial_fit(one) for one in (given, whole))
    np.testing.assert_allclose(model.components_, expected.components_, atol=1e-8)
    _, H, _ = non_negative_factorization(given, n_components=3, max_iter=4, tol=0)
    np.testing.assert_allclose(
        H, non_negative_factorization(whole, n_components=3, max_iter=4, tol=0)[1], atol=1e-8
    )
    model, expected = (NMF(3, max_iter=4, tol=0).fit(one) for one in (given, whole))
    assert model.score(given) == pytest.approx(expected.score(whole))
    assert model.certify(given)["eckart-young-bound"].number == pytest.approx(
        expected.certify(whole)["eckart-young-bound"].number, rel=1e-6
    )
    assert estimate_rank(given).rank == estimate_rank(whole).rank
    with pytest.raises(ShapeError, match="expecting 12 features"):
        model.transform(stored(X[:, :5], tmp_path, memory=1000))


def test_entries_that_were_not_observed_are_counted(form, tmp_path):
    X = entries()
    X[3, 4] = X[3, 5] = X[90, 0] = np.nan
    data = wrap(stored(X, tmp_path, form), Request(missing="mask"))
    assert data.n_missing == 3
    assert data.observed_weight() == N * M - 3
    assert data.count_nonzero() == np.count_nonzero(np.nan_to_num(X))
    assert data.total() == pytest.approx(np.nansum(X))
    assert wrap(stored(entries(), tmp_path, form)).n_missing == 0


def test_columns_beyond_32_bits_are_read():
    n_columns = 2**31 + 5
    indices, indptr = np.array([7, n_columns - 1]), np.arange(3)
    matrix = CompressedRows(np.array([1.0, 2.0]), indices, indptr, (2, n_columns), "arrays", 10**6)
    rows = matrix.read_rows(0, 2)
    assert rows.shape == (2, n_columns)
    assert rows.indices.tolist() == [7, n_columns - 1]
