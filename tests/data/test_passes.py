"""What is said of the reads of a file, what its first pass finds, and blocks that go to a device."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg import open_matrix
from nonneg.data import as_data_matrix, singular_values
from nonneg.data.device_blocks import SLOTS, DeviceStream, tensor_dtype
from nonneg.data.streamed import Statistics, StreamedMatrix, _with_nan


@pytest.fixture
def stored(tmp_path):
    X = np.random.default_rng(0).random((40, 6))
    np.save(tmp_path / "X.npy", X)
    return X, open_matrix(tmp_path / "X.npy", memory=2000)


@pytest.mark.parametrize(
    ("init", "n_columns", "first"),
    [
        ("random", 6, 2),
        ("nndsvd", 6, 2),
        ("nndsvda", 5000, 10),
        ("random", 5000, 2),
    ],
)
@pytest.mark.parametrize("n_init", [1, 3])
def test_reads_are_counted_by_their_purpose(stored, init, n_columns, first, n_init):
    data = StreamedMatrix(stored[1])
    data.examine()
    assert data.n_passes == 1
    data.shape = (40, n_columns)
    start = first * n_init
    said = data.planned_passes(init, 20 * n_init, n_init, end=3)
    most = 1 + start + 20 * n_init + 3
    assert f"It will be read at most {most} times" in said
    assert f"1 to check it, about {start} for the initialization, 1 per iteration, 3 at the end" in said
    assert f"in {len(data._edges) - 1} blocks" in said
    assert as_data_matrix(stored[0]).planned_passes(init, 20, 1, end=3) is None


def test_statistics_of_blocks_add_up():
    first = Statistics(1.0, 2.0, 3.0, 4, (0.5,), (6.0,), 7)
    second = Statistics(10.0, 20.0, 30.0, 40, (0.25,), (5.0,), 70)
    assert first + second == Statistics(11.0, 22.0, 33.0, 44, (0.25,), (6.0,), 77)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_entries_that_are_nan_or_hidden_are_missing(sparse, masked):
    X = np.array([[1.0, np.nan, 0.0], [np.nan, 2.0, 3.0]])
    mask = np.array([[True, True, False], [True, False, True]]) if masked else None
    entries = sp.csr_array(X) if sparse else X
    found = _with_nan(entries, sp.csr_array(mask) if sparse and masked else mask)
    expected = ~np.isnan(X) if mask is None else ~np.isnan(X) & mask
    if sparse and not masked:
        np.testing.assert_array_equal(found.pattern.toarray() == 0, expected)
    else:
        np.testing.assert_array_equal(found.toarray() if sparse else found, expected)


@pytest.mark.torch
@pytest.mark.parametrize("rows_that_fit", [1.0, 7.0, 1000.0])
def test_blocks_in_host_memory_hold_all_rows(stored, torch, rows_that_fit, monkeypatch):
    X, matrix = stored
    monkeypatch.setattr("nonneg.data.device_blocks.free_memory", lambda device: 12 * rows_that_fit * 6 * 8.0)
    stream = DeviceStream(matrix, torch.device("cpu"))
    assert stream.edges[0] == 0
    assert stream.edges[-1] == 40
    parts = [(start, stop, entries.clone()) for start, stop, entries in stream.blocks()]
    assert [start for start, _, _ in parts] == stream.edges[:-1]
    np.testing.assert_array_equal(torch.cat([entries for *_, entries in parts]), X)
    sizes = {stop - start for start, stop, _ in parts[:-1]}
    assert sizes <= {stream.step}
    assert stream.step == min(40, max(1, int(rows_that_fit) // matrix.chunk_rows) * matrix.chunk_rows)
    # Nothing of CUDA is made for it, and no more memory than is used.
    assert len(stream._slots) == min(SLOTS, len(parts))
    assert stream._stream is None
    assert all(slot.copied is None and slot.used is None for slot in stream._slots)
    again = [entries.clone() for *_, entries in stream.blocks()]
    np.testing.assert_array_equal(torch.cat(again), X)
    assert tensor_dtype(np.float32) == torch.float32
    assert tensor_dtype(np.float64) == torch.float64


@pytest.mark.parametrize(
    ("shape", "k", "density", "expected"),
    [
        ((100_000, 20), 5, None, True),
        ((2000, 1500), 2, None, False),
        ((20_000, 300), 65, None, True),
        ((200_000, 300), 5, 0.001, False),
        ((3000, 40), 5, 0.5, True),
    ],
)
def test_the_gram_matrix_is_formed_where_its_operations_are_fewer(shape, k, density, expected):
    n_rows, n_columns = shape

    class Sides:
        """Only the sizes count."""

    if density is None:
        data = Sides()
        data.shape = shape
    else:
        data = as_data_matrix(
            sp.random_array(shape, density=density, format="csr", random_state=np.random.default_rng(0))
        )
    assert singular_values.gram_is_cheaper(data, k) is expected
    # By hand: one Gram matrix and its eigenvalues, or passes with blocks of vectors.
    width = max(8, k // 2)
    product = (
        singular_values._THIN * n_rows * n_columns
        if density is None
        else singular_values._SPARSE * data.csr.nnz
    )
    lanczos = (
        singular_values._PASSES
        * width
        * (4.0 * product + singular_values._THIN * 24.0 * n_columns * (k + width))
    )
    assert (
        n_rows * float(n_columns) ** 2 + singular_values._EIGEN * float(n_columns) ** 3 <= lanczos
    ) is expected
