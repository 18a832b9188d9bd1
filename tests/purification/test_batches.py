"""Samples of an iteration: which rows they are, and when a stream ends."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nonneg.data import as_data_matrix
from nonneg.exceptions import InvalidDataError, InvalidParameterError, ShapeError, UnsupportedError
from nonneg.purification.decode import Decoder
from nonneg.purification.moments import moments_of
from nonneg.purification.samples import (
    STREAM_PER_FEATURE,
    STREAM_SAMPLES,
    BatchStream,
    FullBatch,
    MiniBatches,
    SamplesExhausted,
    is_stream,
    samples_of,
    spread_rows,
)

DECODER = Decoder(np.eye(2, 3), np.zeros(2), "unshifted")
REFERENCE = np.zeros(2)


def same(one, other):
    for a, b in zip(vars(one).values(), vars(other).values(), strict=True):
        np.testing.assert_allclose(a, b)


def moments(X):
    return moments_of(as_data_matrix(X), DECODER, REFERENCE)


def test_batches_of_rows_go_round(rng):
    X = rng.random((10, 3))
    batches = MiniBatches(as_data_matrix(X), 4)
    for iteration, rows in enumerate(([0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 0, 1], [2, 3, 4, 5])):
        same(batches.moments(DECODER, REFERENCE, iteration), moments(X[rows]))
    assert batches.batch_size == 4.0
    whole = MiniBatches(as_data_matrix(X), 99)
    same(whole.moments(DECODER, REFERENCE, 3), moments(X))
    same(FullBatch(as_data_matrix(X)).moments(DECODER, REFERENCE, 1), moments(X))
    assert isinstance(samples_of(X, None, 2, None), FullBatch)
    assert isinstance(samples_of(X, 3, 2, None), MiniBatches)
    with pytest.raises(UnsupportedError, match="no sample_weight"):
        samples_of(iter([X]), None, 2, np.ones(10))


def test_a_stream_that_can_be_opened_again_is_read_to_its_end(rng):
    X = rng.random((12, 3))
    stream = BatchStream([X[:5], X[5:8], X[8:]], None, 2)
    for _ in range(2):
        same(stream.moments(DECODER, REFERENCE, 0), moments(X))
    assert stream.n_seen == 24
    first, second = stream.halves
    same(first + second, moments(X))
    assert stream.batch_size == 5.0
    some = BatchStream([X[:5], X[5:8], X[8:]], 6, 2)
    same(some.moments(DECODER, REFERENCE, 0), moments(X[:8]))
    same(some.moments(DECODER, REFERENCE, 1), moments(np.vstack([X[8:], X[:5]])))


def test_a_stream_that_is_read_once_ends(rng):
    X = rng.random((12, 3))
    stream = BatchStream(iter([X[:4], X[4:8], X[8:]]), 6, 2)
    same(stream.moments(DECODER, REFERENCE, 0), moments(X[:8]))
    same(stream.moments(DECODER, REFERENCE, 1), moments(X[8:]))  # four of six are enough
    with pytest.raises(SamplesExhausted):
        stream.moments(DECODER, REFERENCE, 2)
    few = BatchStream(iter([X[:2]]), 6, 2)
    with pytest.raises(SamplesExhausted):
        few.moments(DECODER, REFERENCE, 0)
    half = BatchStream(iter([X[:3]]), 6, 2)
    same(half.moments(DECODER, REFERENCE, 0), moments(X[:3]))
    assert BatchStream(iter([X]), None, 2).batch_size == STREAM_SAMPLES
    many = STREAM_SAMPLES // STREAM_PER_FEATURE + 1
    assert BatchStream(iter([X]), None, many).batch_size == STREAM_PER_FEATURE * many
    with pytest.raises(InvalidDataError, match="empty"):
        BatchStream(iter([]), None, 2)
    with pytest.raises(ShapeError, match="has 2 columns, but the previous ones had 3"):
        BatchStream(iter([X, X[:, :2]]), 20, 2).moments(DECODER, REFERENCE, 0)
    with pytest.raises(InvalidParameterError, match="returned int"):
        BatchStream(lambda: 3, None, 2)


def test_what_is_a_stream(rng):
    X = rng.random((4, 3))
    assert is_stream([X, X])
    assert is_stream(iter([X]))
    assert is_stream(lambda: iter([X]))
    assert is_stream({1: X}.values())
    for table in (X, sp.csr_array(X), X.tolist(), [], "text", [1.0, 2.0]):
        assert not is_stream(table)


def test_rows_are_spread_evenly_or_by_weight(rng):
    X = np.arange(20.0).reshape(10, 2)
    np.testing.assert_array_equal(spread_rows(as_data_matrix(X)), X)
    np.testing.assert_array_equal(spread_rows(as_data_matrix(X), 4), X[[0, 3, 6, 9]])
    np.testing.assert_array_equal(spread_rows(as_data_matrix(X), 1), X[[0]])
    weights = np.zeros(10)
    weights[[2, 7]] = [3.0, 1.0]
    found = spread_rows(as_data_matrix(X, weights=weights), 4)
    np.testing.assert_array_equal(found, X[[2, 2, 2, 7]])
